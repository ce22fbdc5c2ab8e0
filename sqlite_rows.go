// This file turns the rows of a query into a result: a table for the model and the values as JSON, both bounded. It runs no query and knows no tool.
package main

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	dataRows      = 100      // rows unless limit says otherwise
	dataRowsMax   = 10_000   // the most it may say
	dataCellMax   = 16 << 10 // bytes of one text in a result; of a blob a sixteenth
	dataResultMax = 4 << 20  // bytes of the rows of a result as JSON
	dataTextMax   = 40 << 10 // bytes of the table for the model
	dataCellShown = 60       // columns of the screen that one cell takes there
	dataColsShown = 60       // columns of the table there
	dataParamsMax = 1000     // values for the parameters of a statement
	dataSQLMax    = 100_000  // bytes of sql
)

// dataRowsOutput are the properties of a result's schema that hold rows.
const dataRowsOutput = `
"columns":{"type":"array","description":"The columns of the rows.","items":{"type":"object","properties":{
"name":{"type":"string"},
"type":{"type":"string","description":"The declared type; missing for an expression."}}}},
"rows":{"type":"array","description":"The rows, each an array with a value for each column. Integers are exact to 64 bits. A blob is an object with its size and the base64 of its beginning; an infinite number is a text.","items":{"type":"array"}},
"count":{"type":"integer","description":"Rows that are given."},
"more":{"type":"boolean","description":"There are more rows than these."},
"cut":{"type":"integer","description":"Values of which only the beginning is given."},` + toolRecordSchema

// dataTable collects the rows of a query.
type dataTable struct {
	names, types []string
	shown        [][]string // cells for the table of the model
	number       []bool     // columns in which nothing but numbers and NULL was seen
	rows         []byte     // JSON, without the outer brackets
	count, limit int
	cut          int
	more, full   bool // full: the rows were too many bytes
	note         string
}

// selectRows runs one reading statement and gives its rows, at most limit.
func (c *dataConn) selectRows(ctx context.Context, st sqlStatement, args []driver.NamedValue, limit int) (*dataTable, error) {
	t := &dataTable{limit: limit}
	text := st.Text
	err := c.guarded(func() error {
		info, err := c.raw.ColumnInfo(text)
		timed := false
		for _, col := range info {
			t.names, t.types = append(t.names, col.Name), append(t.types, col.DeclType)
			timed = timed || sqlHolds(" date datetime timestamp ", col.DeclType)
		}
		if timed && st.Word != "EXPLAIN" && st.Word != "PRAGMA" {
			text = untyped(text, len(info))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	t.number = make([]bool, len(t.names))
	for i := range t.number {
		t.number[i] = true
	}
	return t, c.query(ctx, text, args, t.take)
}

// untyped writes a query so that its columns have no declared type: the driver would turn the text of a DATE into a time, and the text as it is would be lost.
func untyped(text string, columns int) string {
	var names, values strings.Builder
	for i := range columns {
		if i > 0 {
			names.WriteByte(',')
			values.WriteByte(',')
		}
		fmt.Fprintf(&names, "c%d", i)
		fmt.Fprintf(&values, "+c%d", i)
	}
	return "WITH tai_query(" + names.String() + ") AS (" + text + "\n) SELECT " + values.String() + " FROM tai_query"
}

// take adds a row, unless there are enough.
func (t *dataTable) take(row []driver.Value) bool {
	if t.count == t.limit {
		t.more = true
		return false
	}
	before := len(t.rows)
	if t.count > 0 {
		t.rows = append(t.rows, ',')
	}
	t.rows = append(t.rows, '[')
	shown := make([]string, min(len(row), dataColsShown))
	for i, v := range row {
		if i > 0 {
			t.rows = append(t.rows, ',')
		}
		var cut bool
		if t.rows, cut = appendSQLValue(t.rows, v); cut {
			t.cut++
		}
		if i < len(shown) {
			shown[i] = showSQLValue(v)
		}
		switch v.(type) {
		case int64, float64, nil:
		default:
			t.number[i] = false
		}
	}
	t.rows = append(t.rows, ']')
	if len(t.rows) > dataResultMax && t.count > 0 {
		t.rows, t.more, t.full = t.rows[:before], true, true
		return false
	}
	t.count++
	t.shown = append(t.shown, shown)
	return true
}

// appendSQLValue writes a value as JSON; cut says that not all of it is there.
func appendSQLValue(dst []byte, v driver.Value) (_ []byte, cut bool) {
	switch v := v.(type) {
	case int64:
		return strconv.AppendInt(dst, v, 10), false
	case float64:
		return append(dst, sqlReal(v, `"`)...), false
	case string:
		if cut = len(v) > dataCellMax; cut {
			v = clip(v, dataCellMax)
		}
		return appendJSONString(dst, strings.ToValidUTF8(v, "\uFFFD")), cut
	case []byte:
		head := v[:min(len(v), dataCellMax/16)]
		return fmt.Appendf(dst, `{"blob":%q,"size":%d}`, base64.StdEncoding.EncodeToString(head), len(v)), len(head) < len(v)
	case nil:
		return append(dst, "null"...), false
	}
	return appendJSONString(dst, fmt.Sprint(v)), false
}

// sqlReal writes a number so that it shows that it is no integer. JSON has none that is infinite.
func sqlReal(f float64, quote string) string {
	switch {
	case math.IsInf(f, 1):
		return quote + "Infinity" + quote
	case math.IsInf(f, -1):
		return quote + "-Infinity" + quote
	case math.IsNaN(f):
		return "null"
	}
	s := string(appendCanonNumber(nil, f))
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// showSQLValue writes a value for the table of the model, on one line and clipped.
func showSQLValue(v driver.Value) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return sqlReal(v, "")
	case string:
		return clipWidth(visibleLine(strings.ToValidUTF8(brief(v, 8*dataCellShown), "\uFFFD")), dataCellShown)
	case []byte:
		return fmt.Sprintf("x'%x' (%d bytes)", v[:min(len(v), 16)], len(v))
	}
	return visibleLine(fmt.Sprint(v))
}

// text writes the table, and what it leaves out.
func (t *dataTable) text() string {
	var b strings.Builder
	cols := min(len(t.names), dataColsShown)
	header := make([]string, cols)
	width := make([]int, cols)
	for i := range cols {
		header[i] = showSQLValue(t.names[i])
		width[i] = textWidth(header[i])
	}
	for _, row := range t.shown {
		for i, cell := range row {
			width[i] = max(width[i], textWidth(cell))
		}
	}
	lines := 0
	if cols > 0 {
		t.line(&b, header, width)
		for i, w := range width {
			if i > 0 {
				b.WriteString("-+-")
			}
			b.WriteString(strings.Repeat("-", w))
		}
		b.WriteByte('\n')
	}
	for ; lines < len(t.shown) && b.Len() < dataTextMax; lines++ {
		t.line(&b, t.shown[lines], width)
	}
	t.tell(&b, lines)
	return b.String()
}

// tell says how many rows there are and what the table does not show; lines of them stand above.
func (t *dataTable) tell(b *strings.Builder, lines int) {
	b.WriteString("[" + plural(t.count, "row"))
	switch {
	case t.full:
		fmt.Fprintf(b, "; there are more, left out as the result has %d bytes: ask for fewer columns or rows", len(t.rows))
	case t.more:
		fmt.Fprintf(b, "; there are more: limit is %d, LIMIT and OFFSET go on", t.limit)
	}
	if lines < t.count {
		fmt.Fprintf(b, "; %d of them only in the structured result", t.count-lines)
	}
	if left := len(t.names) - dataColsShown; left > 0 {
		fmt.Fprintf(b, "; %d columns only in the structured result", left)
	}
	if t.cut > 0 {
		fmt.Fprintf(b, "; %s cut", plural(t.cut, "value"))
	}
	b.WriteString("]\n")
	if t.note != "" {
		b.WriteString("[" + t.note + "]\n")
	}
}

// line writes one row; numbers stand at the right.
func (t *dataTable) line(b *strings.Builder, cells []string, width []int) {
	var line []byte
	for i, cell := range cells {
		if i > 0 {
			line = append(line, " | "...)
		}
		pad := strings.Repeat(" ", max(0, width[i]-textWidth(cell)))
		if t.number[i] && t.count > 0 {
			line = append(append(line, pad...), cell...)
		} else {
			line = append(append(line, cell...), pad...)
		}
	}
	b.Write(append(bytes.TrimRight(line, " "), '\n'))
}

// appendJSON writes the members of the structured result.
func (t *dataTable) appendJSON(dst []byte) []byte {
	dst = append(dst, `"columns":[`...)
	for i, name := range t.names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONString(append(dst, `{"name":`...), strings.ToValidUTF8(name, "\uFFFD"))
		if t.types[i] != "" {
			dst = appendJSONString(append(dst, `,"type":`...), strings.ToValidUTF8(t.types[i], "\uFFFD"))
		}
		dst = append(dst, '}')
	}
	dst = append(append(dst, `],"rows":[`...), t.rows...)
	return fmt.Appendf(dst, `],"count":%d,"more":%v,"cut":%d`, t.count, t.more, t.cut)
}

// sqlParams reads the values for a statement's parameters.
func sqlParams(raw json.RawMessage, st sqlStatement) ([]driver.NamedValue, error) {
	if st.Named != "" {
		return nil, errorf("sql: the parameter %s has a name; params are given by position: write ? or ?1", visibleLine(clip(st.Named, 60)))
	}
	var items []json.RawMessage
	if len(raw) > 0 {
		var err error
		if items, err = jsonArray(raw); err != nil {
			return nil, errorf("params: %w", err)
		}
	}
	if len(items) != st.Params {
		return nil, errorf("params: %s given, sql takes %d", plural(len(items), "value"), st.Params)
	}
	args := make([]driver.NamedValue, len(items))
	for i, item := range items {
		v, err := sqlValueOf(item)
		if err != nil {
			return nil, errorf("params[%d]: %w", i, err)
		}
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return args, nil
}

// sqlValueOf reads one value: integers stay what they are, true and false are 1 and 0, {"blob":BASE64} is bytes.
func sqlValueOf(raw json.RawMessage) (driver.Value, error) {
	switch raw[0] {
	case 'n':
		return nil, nil
	case 't':
		return int64(1), nil
	case 'f':
		return int64(0), nil
	case '"':
		if s, ok := memberString(raw); ok && utf8.ValidString(s) {
			return s, nil
		}
		return nil, newError("not a valid string")
	case '{':
		var blob struct {
			Blob *[]byte `json:"blob"`
		}
		if decodeStrict(raw, &blob) != nil || blob.Blob == nil {
			return nil, newError(`an object must be {"blob":BASE64}`)
		}
		return *blob.Blob, nil
	case '[':
		return nil, newError("an array is no value; give it as text, or each element by itself")
	}
	if strings.ContainsAny(string(raw), ".eE") {
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return nil, errorf("%s is no number that 64 bits hold", clip(string(raw), 60))
		}
		return f, nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return nil, errorf("%s does not fit an integer of 64 bits; give it as text or as a real number", clip(string(raw), 60))
	}
	return n, nil
}
