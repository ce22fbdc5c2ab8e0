// This file brings sources into an in-memory database: it opens them, finds out how they are written, and inserts their rows. The formats themselves are those
// of table_csv.go and table_json.go.
package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"
)

const (
	tableSources  = 16        // sources of one call
	tableBytesMax = 256 << 20 // bytes of all sources of a call
	tableJSONMax  = 64 << 20  // bytes of a JSON file, which is read as a whole
	tableRowsMax  = 5_000_000 // rows of all sources of a call
	tableBatch    = 500       // values of one inserting statement
	tableRowCheck = 4096      // rows between two looks at the context
)

// tableSource is one source as the call names it.
type tableSource struct {
	Path, Record, Name, Format, Delimiter, Member string
	Header, Quotes                                *bool
}

// tableInput is an opened source. reader starts it again from the beginning each time.
type tableInput struct {
	tableSource
	label string // for people
	base  string // of the file's name
	size  int64
	body  io.ReadSeeker

	latin   bool // no UTF-8: read as windows-1252
	returns bool // its lines end with \r alone
}

// tableData is a source that was read once: its columns, their types, and how to read its rows.
type tableData struct {
	name, source, format string
	columns              []tableColumn
	types                []string
	rows                 int64
	notes                []string

	// each hands the rows to put, with a value for each column; the row is used again.
	each func(ctx context.Context, put func(row []driver.Value) error) error
}

// reader gives the text from its beginning, in UTF-8 and without a byte order mark.
func (in *tableInput) reader() (io.Reader, string, error) {
	if _, err := in.body.Seek(0, io.SeekStart); err != nil {
		return nil, "", bareError(err)
	}
	r := bufio.NewReaderSize(io.LimitReader(in.body, tableBytesMax+1), 64<<10)
	head, err := r.Peek(3)
	if err != nil && err != io.EOF {
		return nil, "", bareError(err)
	}
	name, mark := byteOrderMark(head)
	if _, err := r.Discard(mark); err != nil {
		return nil, "", bareError(err)
	}
	switch {
	case name == charsetUTF16LE, name == charsetUTF16BE:
		return in.recoded(&utf16Reader{r: r, big: name == charsetUTF16BE}), name, nil
	case in.latin:
		return in.recoded(r), charsetLatin, nil
	}
	return in.recoded(r), charsetUTF8, nil
}

// recoded reads on in the way that was found out.
//
//go:noinline for size: it is called in many places
func (in *tableInput) recoded(r io.Reader) io.Reader {
	if !in.latin && !in.returns {
		return r
	}
	c := &csvRecoder{r: r, returns: in.returns}
	if in.latin {
		c.upper = []rune(charsetUpper(charsetLatin))
	}
	return c
}

// head gives the first bytes of the text, and whether they are all of it.
func (in *tableInput) head() ([]byte, bool, error) {
	r, _, err := in.reader()
	if err != nil {
		return nil, false, err
	}
	head := make([]byte, csvSniff)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, false, bareError(err)
	}
	return head[:n], err != nil, nil
}

// read reads the source once, as what it is.
func (in *tableInput) read(ctx context.Context) (*tableData, error) {
	head, whole, err := in.head()
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return nil, newError("is binary; only delimited text and JSON are read here, and SQLite databases by sqlite_query")
	}
	if len(bytes.TrimSpace(head)) == 0 && whole {
		return nil, newError("is empty")
	}
	format := in.Format
	if format == "" {
		format = tableFormat(in.base, head)
	}
	d := &tableData{source: in.label, format: format}
	switch format {
	case "json":
		err = in.readJSON(ctx, d)
	case "jsonl":
		err = in.readLines(ctx, d)
	default:
		in.returns = bytes.IndexByte(head, '\n') < 0 && bytes.IndexByte(head, '\r') >= 0
		err = in.readCSV(ctx, d)
		if errors.Is(err, errTableLatin) {
			in.latin = true
			*d = tableData{source: d.source, format: d.format}
			err = in.readCSV(ctx, d)
		}
	}
	if err == nil && len(d.columns) == 0 {
		err = newError("has no columns")
	}
	return d, err
}

// tableFormat tells the format by the name, or where that says nothing by the first bytes.
func tableFormat(base string, head []byte) string {
	switch ext := strings.ToLower(path.Ext(base)); ext {
	case ".csv", ".tsv", ".json", ".jsonl":
		return ext[1:]
	case ".tab":
		return "tsv"
	case ".ndjson":
		return "jsonl"
	}
	head = bytes.TrimSpace(head)
	switch {
	case bytes.HasPrefix(head, []byte("[")):
		return "json"
	case bytes.HasPrefix(head, []byte("{")):
		line, rest, _ := bytes.Cut(head, []byte("\n"))
		if checkJSON(line) == nil && bytes.HasPrefix(bytes.TrimSpace(rest), []byte("{")) {
			return "jsonl"
		}
		return "json"
	}
	return "csv"
}

// csvShape is how a delimited text is written.
type csvShape struct {
	comma          byte
	quotes, header bool
	declared       bool     // a line before all rows names the delimiter
	names          []string // of the header
	first          int      // fields of the first row
}

// readCSV finds out the shape of a delimited text, and in a first pass over all rows the types of its columns.
func (in *tableInput) readCSV(ctx context.Context, d *tableData) error {
	s, err := in.csvShape(d.format)
	if err != nil {
		return err
	}
	r, encoding, err := in.reader()
	if err != nil {
		return err
	}
	watch := &utf8Watch{r: r}
	c := newCSVReader(watch, s.comma, s.quotes)
	if s.declared {
		if _, err := c.next(); err != nil {
			return bareError(err)
		}
	}
	row, err := c.next()
	if err == io.EOF {
		return newError("has no rows")
	}
	if err != nil {
		return err
	}
	if s.first = len(row); s.first > tableColumns {
		return errorf("line %d: a row of %d fields, at most %d; is the delimiter %q right?", c.line, s.first, tableColumns, s.comma)
	}
	if s.header = csvHeader(row); in.Header != nil {
		s.header = *in.Header
	}
	kinds := make([]tableKind, len(row))
	ragged, line := 0, 0
	if s.header {
		for _, f := range row {
			s.names = append(s.names, string(f))
		}
		row, err = c.next()
	}
	for ; err == nil; row, err = c.next() {
		if d.rows++; d.rows%tableRowCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if len(row) != s.first {
			if ragged++; ragged == 1 {
				line = c.line
			}
		}
		for len(kinds) < len(row) {
			if len(kinds) == tableColumns {
				return errorf("line %d: a row of %d fields, at most %d; is the delimiter %q right?", c.line, len(row), tableColumns, s.comma)
			}
			kinds = append(kinds, 0)
		}
		for i, f := range row {
			if len(f) > 0 && kinds[i]&tableText == 0 {
				kinds[i] |= tableCell(f)
			}
		}
	}
	switch {
	case err != io.EOF:
		return bareError(err)
	case watch.bad > watch.good:
		return errTableLatin
	}
	d.columns = tableColumnNames(s.names, len(kinds))
	for i := range d.columns {
		d.columns[i].kind = kinds[i]
		d.types = append(d.types, d.columns[i].text())
	}
	d.notes = s.notes(encoding, ragged, line)
	if in.returns {
		d.notes = append(d.notes, "lines end with a carriage return alone")
	}
	if watch.bad > 0 {
		d.notes = append(d.notes, plural(watch.bad, "byte")+" of it no UTF-8")
	}
	d.each = func(ctx context.Context, put func([]driver.Value) error) error { return in.eachCSV(ctx, s, d, put) }
	return nil
}

// errTableLatin says that a text is no UTF-8 but, as far as that can be told, of an encoding with a byte for each character.
var errTableLatin = errors.New("is no UTF-8")

// csvShape finds out the delimiter, unless the call or the text names it.
func (in *tableInput) csvShape(format string) (csvShape, error) {
	s := csvShape{comma: ',', quotes: in.Quotes == nil || *in.Quotes}
	head, whole, err := in.head()
	if err != nil {
		return s, err
	}
	named, ok := csvDeclared(head)
	s.declared = ok && format == "csv"
	switch {
	case in.Delimiter == "\\t":
		s.comma = '\t'
	case in.Delimiter != "":
		s.comma = in.Delimiter[0]
	case format == "tsv":
		s.comma = '\t'
	case s.declared:
		s.comma = named
	default:
		s.comma = csvDelimiter(head, whole, s.quotes)
	}
	return s, nil
}

// csvHeader takes a first row for names, unless a number or nothing stands in it.
func csvHeader(row [][]byte) bool {
	for _, f := range row {
		if len(bytes.TrimSpace(f)) > 0 && tableCell(f) != tableText {
			return false
		}
	}
	return true
}

// notes says how the text was read.
func (s csvShape) notes(encoding string, ragged, line int) []string {
	header := "no header: columns are called c1, c2 …"
	if s.header {
		header = "header in the first row"
	}
	notes := []string{fmt.Sprintf("delimiter %q", s.comma), header}
	if encoding != charsetUTF8 {
		notes = append(notes, encoding)
	}
	if ragged > 0 {
		notes = append(notes, fmt.Sprintf("%s with another number of fields than the first row's %d, the first in line %d: missing ones are NULL", plural(ragged, "row"), s.first, line))
	}
	return notes
}

// eachCSV is the second pass.
func (in *tableInput) eachCSV(ctx context.Context, s csvShape, d *tableData, put func([]driver.Value) error) error {
	r, _, err := in.reader()
	if err != nil {
		return err
	}
	c := newCSVReader(r, s.comma, s.quotes)
	for _, skip := range [...]bool{s.declared, s.header} {
		if !skip {
			continue
		}
		if _, err := c.next(); err != nil {
			return bareError(err)
		}
	}
	values := make([]driver.Value, len(d.types))
	for n := 0; ; n++ {
		row, err := c.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return bareError(err)
		}
		if n%tableRowCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if len(row) > len(values) {
			return errTableChanged
		}
		clear(values)
		for i, f := range row {
			if len(f) == 0 {
				continue
			}
			if values[i], err = csvValue(f, d.types[i]); err != nil {
				return err
			}
		}
		if err := put(values); err != nil {
			return err
		}
	}
}

var errTableChanged = errors.New("was changed while it was read; try again")

// csvValue reads a field as the type that its whole column has.
func csvValue(f []byte, kind string) (driver.Value, error) {
	if kind == "text" {
		return string(f), nil
	}
	f = bytes.Trim(f, " \t")
	if kind == "integer" {
		if len(f) > 0 && numberLen(f) == len(f) && !bytes.ContainsAny(f, ".eE") {
			if v, ok := tableInteger(f); ok {
				return v, nil
			}
		}
		return nil, errTableChanged
	}
	v, err := strconv.ParseFloat(string(f), 64)
	if err != nil || math.IsInf(v, 0) {
		return nil, errTableChanged
	}
	return v, nil
}

// load makes the table of a source and inserts its rows, many with one statement.
func (c *dataConn) load(ctx context.Context, d *tableData) (err error) {
	var columns []string
	for i, col := range d.columns {
		columns = append(columns, sqlName(col.Name)+" "+tableAffinity(d.types[i]))
	}
	if err := c.exec(ctx, "CREATE TABLE "+sqlName(d.name)+" ("+strings.Join(columns, ", ")+")"); err != nil {
		return err
	}
	width := len(columns)
	b := tableBatcher{conn: c, insert: "INSERT INTO " + sqlName(d.name) + " VALUES ", row: "(?" + strings.Repeat(",?", width-1) + ")"}
	b.args = make([]driver.NamedValue, width*max(1, tableBatch/width))
	for i := range b.args {
		b.args[i].Ordinal = i + 1
	}
	if b.stmt, err = b.prepare(ctx, len(b.args)/width); err != nil {
		return err
	}
	defer func() { err = joinErrors(err, b.stmt.Close()) }()
	rows := int64(0)
	err = d.each(ctx, func(row []driver.Value) error {
		rows++
		for i, v := range row {
			b.args[b.used+i].Value = v
		}
		if b.used += width; b.used < len(b.args) {
			return nil
		}
		b.used = 0
		return b.run(b.stmt, b.args)
	})
	if err != nil {
		return err
	}
	if rows != d.rows {
		return errTableChanged
	}
	return b.rest(ctx, width)
}

// tableBatcher collects rows for one inserting statement.
type tableBatcher struct {
	conn        *dataConn
	insert, row string
	stmt        driver.Stmt
	args        []driver.NamedValue
	used        int
}

func (b *tableBatcher) prepare(ctx context.Context, rows int) (driver.Stmt, error) {
	return b.conn.raw.PrepareContext(ctx, b.insert+b.row+strings.Repeat(","+b.row, rows-1))
}

// run inserts one batch. Its context does not end: the driver starts a goroutine for one that does, and a batch is short.
func (b *tableBatcher) run(stmt driver.Stmt, args []driver.NamedValue) error {
	s, ok := stmt.(driver.StmtExecContext)
	if !ok {
		return newError("the SQLite driver lacks what the data tools need")
	}
	_, err := s.ExecContext(context.Background(), args)
	return err
}

// rest inserts what does not fill a batch.
func (b *tableBatcher) rest(ctx context.Context, width int) (err error) {
	if b.used == 0 {
		return nil
	}
	stmt, err := b.prepare(ctx, b.used/width)
	if err != nil {
		return err
	}
	defer func() { err = joinErrors(err, stmt.Close()) }()
	return b.run(stmt, b.args[:b.used])
}
