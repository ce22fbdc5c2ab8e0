// This file reads tables from JSON: an array of rows, an object with such an array in it, or one row a line. A row is an object, or an array whose values are
// its columns. Values keep the types that they have; objects and arrays in them become their JSON text.
package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

const tableBadLines = 3 // bad lines that are named

// jsonColumns collects the columns of rows in the order in which they come up.
type jsonColumns struct {
	columns []tableColumn
	at      map[string]int // by key
	seen    map[string]bool
	members []jsonMember // of the last row
}

func newJSONColumns() *jsonColumns {
	return &jsonColumns{at: map[string]int{}, seen: map[string]bool{}}
}

// split gives the members of a row; those of an array are called c1, c2 …, one that stands alone value.
func (j *jsonColumns) split(item json.RawMessage) (err error) {
	j.members = j.members[:0]
	switch item[0] {
	case '{':
		j.members, err = jsonObjectInto(j.members, item)
	case '[':
		err = jsonEach(item, func(v json.RawMessage) error {
			if len(j.members) == tableColumns {
				return errorf("a row of more than %d values", tableColumns)
			}
			j.members = append(j.members, jsonMember{Key: fmt.Sprintf("c%d", len(j.members)+1), Value: v})
			return nil
		})
	default:
		j.members = append(j.members, jsonMember{Key: "value", Value: item})
	}
	for i := 0; err == nil && i < len(j.members); i++ {
		if v := j.members[i].Value; v[0] == '{' || v[0] == '[' {
			err = checkJSON(v)
		}
	}
	return err
}

// note takes the columns and kinds of a row.
func (j *jsonColumns) note(item json.RawMessage) error {
	if err := j.split(item); err != nil {
		return err
	}
	for _, m := range j.members {
		i, ok := j.at[m.Key]
		if !ok {
			if i = len(j.columns); i == tableColumns {
				return errorf("the rows have more than %d different keys", tableColumns)
			}
			name := tableName(m.Key)
			if name == "" {
				name = fmt.Sprintf("c%d", i+1)
			}
			j.at[m.Key] = i
			j.columns = append(j.columns, tableColumn{Name: uniqueName(j.seen, name)})
		}
		_, kind := jsonTableValue(m.Value)
		j.columns[i].kind |= kind
	}
	return nil
}

// fill writes the values of a row to where their columns are.
func (j *jsonColumns) fill(item json.RawMessage, row []driver.Value) error {
	if err := j.split(item); err != nil {
		return err
	}
	clear(row)
	for _, m := range j.members {
		i, ok := j.at[m.Key]
		if !ok {
			return errTableChanged
		}
		row[i], _ = jsonTableValue(m.Value)
	}
	return nil
}

// jsonTableValue gives a value as SQL has it. A number that 64 bits do not hold is the text of it.
func jsonTableValue(raw json.RawMessage) (driver.Value, tableKind) {
	switch raw[0] {
	case 'n':
		return nil, 0
	case 't':
		return int64(1), tableBool
	case 'f':
		return int64(0), tableBool
	case '"':
		s, _ := memberString(raw)
		return s, tableText
	case '{', '[':
		return string(compactJSON(nil, raw)), tableNested
	}
	switch kind := tableCell(raw); {
	case kind&tableInt != 0:
		v, _ := tableInteger(raw)
		return v, kind
	case kind == tableReal:
		if v, err := strconv.ParseFloat(string(raw), 64); err == nil && !math.IsInf(v, 0) {
			return v, kind
		}
	}
	return string(raw), tableText
}

// finish takes over what was collected.
//
//go:noinline for size: it is called in many places
func (j *jsonColumns) finish(d *tableData) {
	d.columns = j.columns
	for _, c := range j.columns {
		d.types = append(d.types, c.json())
	}
}

// readJSON reads a whole document. In memory it stays until the rows are loaded.
func (in *tableInput) readJSON(ctx context.Context, d *tableData) error {
	if in.size > tableJSONMax {
		return errorf("has %d bytes; a JSON document of at most %d is read, JSON lines up to %d", in.size, tableJSONMax, tableBytesMax)
	}
	r, encoding, err := in.reader()
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(r, 2*tableJSONMax))
	if err != nil {
		return bareError(err)
	}
	if encoding != charsetUTF8 {
		d.notes = append(d.notes, encoding)
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return newError("is empty")
	}
	if body, err = in.jsonRows(d, body); err != nil {
		return err
	}
	j := newJSONColumns()
	err = jsonEach(body, func(item json.RawMessage) error {
		if d.rows++; d.rows%tableRowCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := j.note(item); err != nil {
			return errorf("row %d: %w", d.rows, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	j.finish(d)
	d.each = func(ctx context.Context, put func([]driver.Value) error) error {
		row, n := make([]driver.Value, len(d.columns)), 0
		return jsonEach(body, func(item json.RawMessage) error {
			if n++; n%tableRowCheck == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := j.fill(item, row); err != nil {
				return err
			}
			return put(row)
		})
	}
	return nil
}

// jsonRows finds the array of rows: the document itself, the member that is named, the only member that is an array, or else the document as one row.
func (in *tableInput) jsonRows(d *tableData, body []byte) ([]byte, error) {
	if body[0] == '[' && in.Member == "" {
		return body, nil
	}
	members, err := jsonObject(body)
	if err != nil {
		return nil, err
	}
	var names []string
	var rows []byte
	for _, m := range members {
		if m.Value[0] == '[' && (in.Member == "" || m.Key == in.Member) {
			names, rows = append(names, m.Key), m.Value
		}
	}
	switch {
	case len(names) == 1:
		d.notes = append(d.notes, "rows of the member "+quoteClip(names[0]))
		return rows, nil
	case in.Member != "":
		return nil, errorf("has no array called %s", quoteClip(in.Member))
	case len(names) > 1:
		for i := range names {
			names[i] = quoteClip(names[i])
		}
		return nil, errorf("holds several arrays; say with member which one has the rows: %s", clip(strings.Join(names, ", "), 500))
	}
	d.notes = append(d.notes, "one object is one row")
	return append(append([]byte{'['}, body...), ']'), nil
}

// readLines reads one row a line. A line that is none is counted and left out.
func (in *tableInput) readLines(ctx context.Context, d *tableData) error {
	j := newJSONColumns()
	bad, named := 0, []string{}
	skip := map[int]bool{}
	encoding, err := in.eachLine(ctx, func(n int, line []byte) error {
		err := jsonRowLine(line)
		if err == nil {
			err = j.note(line)
		}
		switch {
		case err == nil:
			d.rows++
			return nil
		case len(j.columns) == tableColumns:
			return err
		case bad < tableBadLines:
			named = append(named, fmt.Sprintf("%d (%v)", n, err))
		}
		bad++
		skip[n] = true
		return nil
	})
	if err != nil {
		return err
	}
	if bad > 0 && d.rows == 0 {
		return errorf("no line of it is a row: line %s", strings.Join(named, ", "))
	}
	if encoding != charsetUTF8 {
		d.notes = append(d.notes, encoding)
	}
	if bad > 0 {
		d.notes = append(d.notes, fmt.Sprintf("%s left out that are no rows: line %s", plural(bad, "line"), strings.Join(named, ", ")))
	}
	j.finish(d)
	d.each = func(ctx context.Context, put func([]driver.Value) error) error {
		row := make([]driver.Value, len(d.columns))
		_, err := in.eachLine(ctx, func(n int, line []byte) error {
			if skip[n] {
				return nil
			}
			if jsonRowLine(line) != nil || j.fill(line, row) != nil {
				return errTableChanged
			}
			return put(row)
		})
		return err
	}
	return nil
}

// jsonRowLine reports what keeps a line from being a row.
func jsonRowLine(line []byte) error {
	switch {
	case line[0] != '{' && line[0] != '[':
		return newError("no object or array")
	case !utf8.Valid(line):
		return errJSONNotUTF8
	}
	return checkJSON(line)
}

// eachLine hands over the lines that are not blank, with their numbers.
func (in *tableInput) eachLine(ctx context.Context, take func(n int, line []byte) error) (encoding string, err error) {
	r, encoding, err := in.reader()
	if err != nil {
		return "", err
	}
	lines := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		for long = long[:0]; err == bufio.ErrBufferFull; line, err = lines.ReadSlice('\n') {
			if long = append(long, line...); len(long) > csvRowMax {
				return "", errorf("line %d: more than %d bytes", n, csvRowMax)
			}
		}
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		if err != nil && err != io.EOF {
			return "", bareError(err)
		}
		if n%tableRowCheck == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := take(n, line); err != nil {
				return "", err
			}
		}
		if err == io.EOF {
			return encoding, nil
		}
	}
}
