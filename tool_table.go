// This file holds table_query: sources are loaded into a database in memory that lives for one call, and asked there. How they are read is table_load.go's
// matter.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

const tableShown = 50 // columns of a table that the text names

// dataTools gives the tools for data; v opens the vault, whose records are sources too.
func dataTools(d dataFiles, v func(context.Context) (*vault, error)) []tool {
	q := tableQuery{d, v}
	return append(sqliteTools(d), tool{
		Name: "table_query", Family: "data",
		Description: "Query CSV, TSV, JSON or JSON-lines files, or records, with one SELECT in SQLite's SQL: each source is a table, also to join. The types of the columns are found from all values and told; empty fields are NULL, dates and numbers like 007 stay text. Nothing is changed.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["sources","sql"],"properties":{
"sources":{"type":"array","minItems":1,"maxItems":%d,"description":"The files and records, each a table.","items":{"type":"object","additionalProperties":false,"properties":{
"path":{"type":"string","minLength":1,"description":"A file, relative to the workspace root or absolute; this or record."},
"record":{"type":"string","minLength":1,"maxLength":64,"description":"The id of a record; this or path."},
"name":{"type":"string","pattern":"^[A-Za-z_][A-Za-z0-9_]*$","maxLength":64,"description":"The name of the table (default: that of the file, of letters, digits and _)."},
"format":{"type":"string","enum":["csv","tsv","json","jsonl"],"description":"How it is written (default: by the name of the file, else by its beginning)."},
"delimiter":{"type":"string","pattern":"^([ -~\\t]|\\\\t)$","description":"One character between fields (default: found out of , ; | and tab)."},
"header":{"type":"boolean","description":"Whether the first row has the names of the columns (default: unless a number stands in it)."},
"quotes":{"type":"boolean","description":"Whether fields may stand in double quotes (default true)."},
"member":{"type":"string","maxLength":200,"description":"The member of a JSON object whose array has the rows (default: the only array)."}}}},
"sql":{"type":"string","minLength":1,"maxLength":%d,"description":"One reading statement. SELECT * FROM t LIMIT 5 shows how a table looks."},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"Rows to give at most (default %d)."}}}`, tableSources, dataSQLMax, dataRowsMax, dataRows)),
		Output: json.RawMessage(`{"type":"object","properties":{
"tables":{"type":"array","description":"The sources as tables.","items":{"type":"object","properties":{
"name":{"type":"string","description":"What sql calls it."},
"source":{"type":"string"},
"format":{"type":"string"},
"rows":{"type":"integer"},
"columns":{"type":"array","items":{"type":"object","properties":{
"name":{"type":"string"},
"type":{"type":"string","description":"integer, real, text, boolean (1 and 0), json (its text) or mixed."}}}},
"notes":{"type":"array","description":"How it was read, and what was left out.","items":{"type":"string"}}}}},` + dataRowsOutput + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		judge: q.judge,
		run:   q.run,
	})
}

// tableQuery is what the tool works with.
type tableQuery struct {
	files dataFiles
	vault func(context.Context) (*vault, error)
}

type tableArgs struct {
	Sources []tableSource
	SQL     string
	Limit   int
}

// judge tells the policy of every source that lies outside the root.
func (q tableQuery) judge(c toolCall) policyRequest {
	var a tableArgs
	var req policyRequest
	if json.Unmarshal(c.Args, &a) != nil {
		return req
	}
	for _, s := range a.Sources {
		if s.Path != "" {
			req = judgePlace(q.files.guard.workspace, s.Path, req)
		}
	}
	return req
}

func (q tableQuery) run(ctx context.Context, c toolCall) (toolResult, error) {
	a := tableArgs{Limit: dataRows}
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	st, err := readingStatement(a.SQL)
	if err == nil && (st.Params > 0 || st.Named != "") {
		err = newError("sql: values have to be written out here; there are no params")
	}
	if err != nil {
		return toolResult{}, err
	}
	return q.files.engine.do(ctx, func(ctx context.Context) (r toolResult, err error) {
		err = q.files.engine.open(ctx, dataDSN("", "_dqs=0"), &sqlGuard{}, func(db *dataConn) error {
			tables, err := q.load(ctx, c, db, a.Sources)
			if err != nil {
				return err
			}
			t, err := db.selectRows(ctx, st, nil, a.Limit)
			if err != nil {
				return errorf("%w\n%s", sqlFault(err), tablesText(tables))
			}
			r = tableResult(tables, t)
			return nil
		})
		return r, sqlFault(err)
	})
}

// load brings all sources into the database, which from then on is only read.
func (q tableQuery) load(ctx context.Context, c toolCall, db *dataConn, sources []tableSource) ([]*tableData, error) {
	if err := db.exec(ctx, "BEGIN"); err != nil {
		return nil, err
	}
	var tables []*tableData
	names, size, rows := map[string]bool{}, int64(0), int64(0)
	for i, s := range sources {
		d, n, err := q.loadOne(ctx, c, db, s, names, tableBytesMax-size, tableRowsMax-rows)
		if err != nil {
			return nil, errorf("sources[%d]: %w", i, err)
		}
		size, rows = size+n, rows+d.rows
		tables = append(tables, d)
	}
	return tables, joinErrors(db.exec(ctx, "COMMIT"), db.exec(ctx, "PRAGMA query_only = 1"))
}

// loadOne opens, reads and loads one source, of which room bytes and rows may be used. It gives the bytes that it has.
func (q tableQuery) loadOne(ctx context.Context, c toolCall, db *dataConn, s tableSource, names map[string]bool, room, rows int64) (*tableData, int64, error) {
	in, closed, err := q.input(ctx, c, s)
	if err != nil {
		return nil, 0, err
	}
	defer closed()
	if in.size > room {
		return nil, 0, errorf("%s has %d bytes; all sources together may have %d", in.label, in.size, tableBytesMax)
	}
	d, err := in.read(ctx)
	if err == nil && d.rows > rows {
		err = errorf("has %d rows; all sources together may have %d", d.rows, tableRowsMax)
	}
	if err != nil {
		return nil, 0, errorf("%s: %w", in.label, err)
	}
	d.name = s.Name
	switch {
	case d.name == "":
		d.name = uniqueName(names, tableNameOf(in.base))
	case names[strings.ToLower(d.name)]:
		return nil, 0, errorf("the table %s stands twice", d.name)
	case strings.HasPrefix(strings.ToLower(d.name), "sqlite_"):
		return nil, 0, errorf("name: %s begins with sqlite_, which SQLite keeps for itself", d.name)
	default:
		names[strings.ToLower(d.name)] = true
	}
	if err := db.load(ctx, d); err != nil {
		return nil, 0, errorf("%s: %w", in.label, sqlFault(err))
	}
	d.each = nil // and with it what it was read from
	return d, in.size, nil
}

// input opens a file or a record. The caller calls closed.
func (q tableQuery) input(ctx context.Context, c toolCall, s tableSource) (in *tableInput, closed func(), err error) {
	switch {
	case (s.Path == "") == (s.Record == ""):
		return nil, nil, newError("one of path and record is needed")
	case s.Record != "":
		v, err := q.vault(ctx)
		if err != nil {
			return nil, nil, errorf("open the vault: %w", err)
		}
		info, body, err := v.record(ctx, s.Record)
		if err != nil {
			return nil, nil, err
		}
		return &tableInput{tableSource: s, label: "record " + info.ID, base: info.ID, size: info.Size, body: bytes.NewReader(body)}, func() {}, nil
	}
	p, err := q.files.guard.workspace.locate(s.Path)
	if err != nil {
		return nil, nil, err
	}
	f, size, err := openFile(p, c.outside)
	if err != nil {
		return nil, nil, errorf("%s: %w", visibleLine(s.Path), err)
	}
	return &tableInput{tableSource: s, label: visibleLine(p.Rel), base: path.Base(p.Rel), size: size, body: f}, func() { f.Close() }, nil // only read
}

func tableResult(tables []*tableData, t *dataTable) toolResult {
	out := []byte(`{"tables":[`)
	for i, d := range tables {
		if i > 0 {
			out = append(out, ',')
		}
		out = d.appendJSON(out)
	}
	out = append(t.appendJSON(append(out, "],"...)), '}')
	return toolResult{Text: tablesText(tables) + t.text(), Structured: out}
}

// tablesText names the tables with their columns and types, a line each.
func tablesText(tables []*tableData) string {
	var b textBuilder
	for _, d := range tables {
		fmt.Fprintf(&b, "%s: %s from %s (%s", d.name, plural(int(d.rows), "row"), d.source, d.format)
		for _, n := range d.notes {
			b.WriteString("; " + n)
		}
		b.WriteString("): ")
		for i, c := range d.columns {
			if i == tableShown {
				fmt.Fprintf(&b, " and %d more", len(d.columns)-i)
				break
			}
			if i > 0 {
				b.WriteString(", ")
			}
			name := c.Name
			if !sqlPlainName(name) {
				name = sqlName(name)
			}
			b.WriteString(name + " " + d.types[i])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// sqlPlainName reports a name that needs no quotes.
func sqlPlainName(name string) bool {
	for i := range len(name) {
		if c := name[i]; !sqlNameByte(c) || i == 0 && c >= '0' && c <= '9' {
			return false
		}
	}
	return !sqlHolds(tableKeywords, name)
}

func (d *tableData) appendJSON(dst []byte) []byte {
	dst = appendJSONString(append(dst, `{"name":`...), d.name)
	dst = appendJSONString(append(dst, `,"source":`...), d.source)
	dst = appendJSONString(append(dst, `,"format":`...), d.format)
	dst = fmt.Appendf(dst, `,"rows":%d,"columns":[`, d.rows)
	for i, c := range d.columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONString(append(dst, `{"name":`...), c.Name)
		dst = append(appendJSONString(append(dst, `,"type":`...), d.types[i]), '}')
	}
	dst = append(dst, `],"notes":[`...)
	for i, n := range d.notes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONString(dst, n)
	}
	return append(dst, "]}"...)
}
