// This file holds sqlite_query and sqlite_exec, which read and change a database file. Which files that may be is sqlite_file.go's matter, what SQL may do
// sqlite_guard.go's.
package main

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"os"

	sqlite3 "modernc.org/sqlite/lib"
)

const sqliteStatements = 1000 // statements of one sqlite_exec

// sqliteTools gives the tools of this file.
func sqliteTools(d dataFiles) []tool {
	params := fmt.Sprintf(`"params":{"type":"array","maxItems":%d,"description":"Values for ? and ?1, in order: text, numbers (integers to 64 bits), true and false as 1 and 0, null, or {\"blob\":BASE64}.","items":{"type":["string","number","boolean","null","object"],"description":"One value."}}`, dataParamsMax)
	return []tool{{
		Name: "sqlite_query", Family: "data",
		Description: "Read a SQLite database with one SELECT, WITH … SELECT, VALUES, EXPLAIN or reading PRAGMA such as table_info. The file is opened read-only and cannot be changed, nor any other be attached.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["path","sql"],"properties":{
"path":{"type":"string","minLength":1,"description":"The database file, relative to the workspace root or absolute."},
"sql":{"type":"string","minLength":1,"maxLength":%d,"description":"One reading statement. SELECT name, sql FROM sqlite_schema shows the tables."},
%s,
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"Rows to give at most (default %d)."}}}`, dataSQLMax, params, dataRowsMax, dataRows)),
		Output: json.RawMessage(`{"type":"object","properties":{` + dataRowsOutput + `}}`),
		Hints:  toolHints{ReadOnly: true, Idempotent: true},
		judge:  func(c toolCall) policyRequest { return judgePath(d.guard.workspace, c) },
		run:    d.sqliteQuery,
	}, {
		Name: "sqlite_exec", Family: "data",
		Description: "Change a SQLite database: INSERT, UPDATE, DELETE, CREATE, DROP, ALTER and the like, several statements as one transaction, all or nothing. A missing file is made. It cannot be taken back with file_undo.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["path","sql"],"properties":{
"path":{"type":"string","minLength":1,"description":"The database file, relative to the workspace root or absolute; made if it is missing, its folder is not."},
"sql":{"type":"string","minLength":1,"maxLength":%d,"description":"The statements, separated by semicolons, without BEGIN and COMMIT. With params only one."},
%s}}`, fileWriteMax, params)),
		Output: json.RawMessage(`{"type":"object","properties":{
"statements":{"type":"integer","description":"Statements that were run."},
"changed":{"type":"integer","description":"Rows that were inserted, updated or deleted, those of triggers and foreign keys too."},
"last_insert_id":{"type":"integer","description":"The rowid of the last row inserted; missing without one."},
"created":{"type":"boolean","description":"The file was made."},` + toolRecordSchema + `}}`),
		Hints: toolHints{Destructive: true},
		judge: func(c toolCall) policyRequest {
			req := judgePath(d.guard.workspace, c)
			req.Destructive = true
			return req
		},
		run: d.sqliteExec,
	}}
}

// sqliteArgs are the arguments of both tools.
type sqliteArgs struct {
	Path, SQL string
	Params    json.RawMessage
	Limit     int
}

func (d dataFiles) sqliteQuery(ctx context.Context, c toolCall) (toolResult, error) {
	a := sqliteArgs{Limit: dataRows}
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	st, err := readingStatement(a.SQL)
	if err != nil {
		return toolResult{}, err
	}
	args, err := sqlParams(a.Params, st)
	if err != nil {
		return toolResult{}, err
	}
	return d.engine.do(ctx, func(ctx context.Context) (toolResult, error) {
		f, _, err := d.find(c, a.Path, false)
		if err != nil {
			return toolResult{}, err
		}
		if f.info.Size() == 0 {
			return toolResult{}, errorf("%s is an empty file, no database yet; sqlite_exec makes one", visibleLine(a.Path))
		}
		var t *dataTable
		err = d.read(ctx, f, func(db *dataConn, note string) (err error) {
			if t, err = db.selectRows(ctx, st, args, a.Limit); err == nil {
				t.note = note
			}
			return err
		})
		if err != nil {
			return toolResult{}, err
		}
		return toolResult{Text: t.text(), Structured: append(t.appendJSON([]byte("{")), '}')}, nil
	})
}

// readingStatement gives the one statement of a text, if its kind is one that can read.
func readingStatement(text string) (sqlStatement, error) {
	list, err := sqlStatements(text)
	switch {
	case err != nil:
		return sqlStatement{}, err
	case len(list) == 0:
		return sqlStatement{}, newError("sql holds no statement")
	case len(list) > 1:
		return sqlStatement{}, errorf("sql holds %d statements; only one is run", len(list))
	}
	switch st := list[0]; st.Word {
	case "SELECT", "WITH", "VALUES", "EXPLAIN", "PRAGMA":
		return st, nil
	default:
		return sqlStatement{}, errorf("sql begins with %s; only SELECT, WITH, VALUES, EXPLAIN and reading PRAGMAs are run here", clip(visibleLine(st.Word), 40))
	}
}

// changingStatements gives the statements of a text that changes a database.
func changingStatements(text string) ([]sqlStatement, error) {
	list, err := sqlStatements(text)
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, newError("sql holds no statement")
	case len(list) > sqliteStatements:
		return nil, errorf("sql holds %d statements, at most %d", len(list), sqliteStatements)
	}
	for i, st := range list {
		switch st.Word {
		case "BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE":
			return nil, errorf("statement %d: refused: %s; all statements of a call are one transaction already", i+1, st.Word)
		case "VACUUM":
			return nil, errorf("statement %d: refused: VACUUM writes other files and cannot be part of a transaction", i+1)
		}
	}
	return list, nil
}

func (d dataFiles) sqliteExec(ctx context.Context, c toolCall) (toolResult, error) {
	var a sqliteArgs
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	list, err := changingStatements(a.SQL)
	if err != nil {
		return toolResult{}, err
	}
	if len(a.Params) > 2 && len(list) > 1 {
		return toolResult{}, errorf("params: sql holds %d statements; values are given to one only", len(list))
	}
	args := make([][]driver.NamedValue, len(list))
	for i, st := range list {
		if args[i], err = sqlParams(a.Params, st); err != nil {
			return toolResult{}, err
		}
	}
	return d.engine.do(ctx, func(ctx context.Context) (toolResult, error) {
		f, made, err := d.find(c, a.Path, true)
		var r sqliteOutcome
		if err == nil {
			err = d.change(ctx, f, func(db *dataConn) (err error) {
				r, err = db.execAll(ctx, list, args)
				return err
			})
		}
		if err != nil {
			if made {
				err = joinErrors(err, f.discard())
			}
			return toolResult{}, err
		}
		r.made = made
		return r.result(f), nil
	})
}

// discard removes a file that was made for a change which did not come about, unless somebody wrote to it.
func (f dataFile) discard() error {
	root, name, err := f.place.open()
	if err != nil {
		return err
	}
	defer root.Close()
	if info, err := root.Lstat(name); err != nil || info.Size() > 0 || !os.SameFile(info, f.info) {
		return nil
	}
	return bareError(root.Remove(name))
}

// sqliteOutcome is what statements did.
type sqliteOutcome struct {
	statements       int
	changed          int64
	inserted         bool
	lastID           int64
	made             bool
	structureChanged bool
}

// execAll runs the statements one after the other; the first that fails ends it.
func (c *dataConn) execAll(ctx context.Context, list []sqlStatement, args [][]driver.NamedValue) (r sqliteOutcome, err error) {
	var schema, schemaNow, before, first int64
	if err := joinErrors(c.one(ctx, "SELECT total_changes(), last_insert_rowid()", &before, &first), c.one(ctx, "PRAGMA schema_version", &schema)); err != nil {
		return r, err
	}
	for i, st := range list {
		err := c.guarded(func() error {
			_, err := c.raw.ExecContext(ctx, st.Text, args[i])
			return err
		})
		switch {
		case err != nil && ctx.Err() != nil, isBusy(err):
			return r, err
		case err != nil && len(list) > 1:
			return r, errorf("statement %d of %d (%s): %w; nothing was changed", i+1, len(list), brief(visibleLine(st.Text), 60), sqliteKeep(err))
		case err != nil:
			return r, errorf("%w; nothing was changed", sqliteKeep(err))
		}
		r.statements++
	}
	err = joinErrors(c.one(ctx, "SELECT total_changes(), last_insert_rowid()", &r.changed, &r.lastID), c.one(ctx, "PRAGMA schema_version", &schemaNow))
	r.changed -= before
	r.inserted = r.lastID != first
	r.structureChanged = schemaNow != schema
	return r, err
}

// sqliteKeep puts an error of a statement into words, but leaves one that is about the file as it is.
func sqliteKeep(err error) error {
	switch driverCode(err) {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_AUTH:
		return sqlFault(err)
	}
	return err
}

func (r sqliteOutcome) result(f dataFile) toolResult {
	var b textBuilder
	if r.made {
		fmt.Fprintf(&b, "%s was made.\n", visibleLine(f.Rel))
	}
	fmt.Fprintf(&b, "%s run and committed in %s: %s changed", plural(r.statements, "statement"), visibleLine(f.Rel), plural(int(r.changed), "row"))
	if r.structureChanged {
		b.WriteString(", the structure too")
	}
	out := fmt.Appendf(nil, `{"statements":%d,"changed":%d,"created":%v`, r.statements, r.changed, r.made)
	if r.inserted {
		fmt.Fprintf(&b, "; last insert id %d", r.lastID)
		out = fmt.Appendf(out, `,"last_insert_id":%d`, r.lastID)
	}
	return toolResult{Text: b.String() + ".\n", Structured: append(out, '}')}
}
