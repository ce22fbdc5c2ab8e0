package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// dataBox gives the data tools over a workspace, in a mode that asks nobody.
func dataBox(t *testing.T, mode approvalMode, change func(*dataEngine)) (*toolsBox, workspace, string) {
	t.Helper()
	w, outside := workspaceDirs(t)
	engine := newDataEngine()
	if change != nil {
		change(engine)
	}
	home := filepath.Join(w.root, "home")
	var v *vault
	box := newToolsBox(t, mode, nil, dataTools(dataFiles{engine, fileGuard{w, func() []string { return []string{home} }}}, func(context.Context) (*vault, error) { return v, nil })...)
	v = box.vault
	return box, w, outside
}

// dataSQLite makes a database with statements, by the driver as it is. It stays open until the test ends if keep is set.
func dataSQLite(t *testing.T, path string, keep bool, statements ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", vaultDSN(path))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if !keep {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		return nil
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// dataState is the content of the files of a folder.
func dataState(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range list {
		if e.Type().IsRegular() {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			out[e.Name()] = string(b)
		}
	}
	return out
}

func dataArgs(t *testing.T, args map[string]any) string {
	t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSqliteQuery(t *testing.T) {
	t.Parallel()
	box, w, _ := dataBox(t, modeReadOnly, nil)
	dataSQLite(t, filepath.Join(w.root, "shop.db"), false,
		`CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, added DATE, data BLOB, big BIGINT)`,
		`INSERT INTO item VALUES (1, 'tea', 2.5, '2024-01-02', x'00ff', 9007199254740993), (2, 'pot', 12, '2024-02-03 10:00', NULL, -9223372036854775808), (3, 'é' || char(10) || 'x', 1e300 * 1e300, 'soon', zeroblob(5000), NULL)`,
		`CREATE VIRTUAL TABLE notes USING fts5(body)`, `INSERT INTO notes VALUES ('green tea'), ('a pot')`,
		`CREATE VIRTUAL TABLE area USING rtree(id, x0, x1)`, `INSERT INTO area VALUES (1, 0, 1)`,
		`CREATE VIEW cheap AS SELECT name FROM item WHERE price < 10`)
	output, err := compileSchema(box.natives()[0].Output)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		sql, params string
		limit       int
		rows        string // of the structured result
		text        string // part of the text
	}{
		{sql: `SELECT id, name, price, added, big FROM item WHERE id < 3 ORDER BY id DESC`, rows: `[[2,"pot",12.0,"2024-02-03 10:00",-9223372036854775808],[1,"tea",2.5,"2024-01-02",9007199254740993]]`,
			text: "id | name | price | added            |                  big\n---+------+-------+------------------+---------------------\n 2 | pot  |  12.0 | 2024-02-03 10:00 | -9223372036854775808\n"},
		{sql: `SELECT added FROM item ORDER BY id`, rows: `[["2024-01-02"],["2024-02-03 10:00"],["soon"]]`},
		{sql: `SELECT a.added, b.added FROM item a, item b WHERE a.id = 1 AND b.id = 3 -- the end`, rows: `[["2024-01-02","soon"]]`},
		{sql: `SELECT data, name, price FROM item WHERE id = 3;`, text: "x'00000000000000000000000000000000' (5000 bytes) | é\\nx | Infinity\n[1 row; 1 value cut]"},
		{sql: `SELECT data FROM item WHERE id = 1; -- nothing behind`, rows: `[[{"blob":"AP8=","size":2}]]`},
		{sql: `SELECT ?, ?2, ?1, ?, ?, ?`, params: `["a", 9007199254740993, 1.0, true, null, 7]`, text: "params: 6 values given, sql takes 5"},
		{sql: `SELECT ?, ?2, ?1, ?, ?`, params: `["a", 9223372036854775807, 1.0, true]`, rows: `[["a",9223372036854775807,"a",1.0,1]]`, text: "[1 row]"},
		{sql: `SELECT typeof(?), hex(?)`, params: `[1e2, {"blob":"AP8="}]`, rows: `[["real","00FF"]]`},
		{sql: `SELECT 9e999, -9e999, 0.1, 1e21, ''`, rows: `[["Infinity","-Infinity",0.1,1e+21,""]]`},
		{sql: `WITH t(x) AS (VALUES (1), (2), (3)) SELECT x FROM t`, limit: 2, rows: `[[1],[2]]`, text: "[2 rows; there are more: limit is 2"},
		{sql: `WITH t(x) AS (VALUES (1), (2)) SELECT x FROM t`, limit: 2, rows: `[[1],[2]]`, text: "2\n[2 rows]\n"},
		{sql: `VALUES (1, 'a'), (2, 'b')`, rows: `[[1,"a"],[2,"b"]]`},
		{sql: `SELECT name FROM item WHERE 0`, rows: `[]`, text: "name\n----\n[0 rows]\n"},
		{sql: `PRAGMA user_version`, rows: `[[0]]`},
		{sql: `PRAGMA table_info(item)`, text: "name"},
		{sql: `PRAGMA integrity_check`, rows: `[["ok"]]`},
		{sql: `SELECT name FROM pragma_table_info('item') LIMIT 1`, rows: `[["id"]]`},
		{sql: `EXPLAIN QUERY PLAN SELECT * FROM item WHERE id = 1`, text: "SEARCH item USING INTEGER PRIMARY KEY"},
		{sql: `SELECT name FROM cheap ORDER BY 1`, rows: `[["tea"]]`},
		{sql: `SELECT body FROM notes WHERE notes MATCH 'tea'`, rows: `[["green tea"]]`},
		{sql: `SELECT id FROM area WHERE x0 < 1`, rows: `[[1]]`},
		{sql: `SELECT value FROM json_each('[1,"x"]')`, rows: `[[1],["x"]]`},
		{sql: `SELECT ';' || '--' || "id" || [name] FROM item WHERE id = 1 /* ; */`, rows: `[[";--1tea"]]`},
		{sql: `SELECT nowhere FROM item`, text: "sqlite_query: no such column: nowhere"},
		{sql: `SELECT * FROM nowhere`, text: "no such table: nowhere"},
		{sql: `SELEC 1`, text: "sql begins with SELEC"},
		{sql: `SELECT 1 FROM`, text: "incomplete input"},
		{sql: ` -- nothing`, text: "sql holds no statement"},
		{sql: `SELECT 1; SELECT 2`, text: "sql holds 2 statements"},
		{sql: "SELECT 1\x00", text: "NUL"},
		{sql: `SELECT :a`, text: "the parameter :a has a name"},
		{sql: `SELECT ?`, params: `[12345678901234567890]`, text: "params[0]: 12345678901234567890 does not fit"},
		{sql: `SELECT ?`, params: `[[1]]`, text: "params"},
		{sql: `SELECT ?`, params: `[{"blob":5}]`, text: "params[0]: an object must be"},
		{sql: `SELECT ?`, text: "params: 0 values given, sql takes 1"},
		{sql: `SELECT 1`, limit: 10001, text: "limit"},
	} {
		args := map[string]any{"path": "shop.db", "sql": tc.sql}
		if tc.limit > 0 {
			args["limit"] = tc.limit
		}
		if tc.params != "" {
			args["params"] = json.RawMessage(tc.params)
		}
		r := toolsRun(t, box, "sqlite_query", dataArgs(t, args))
		if !strings.Contains(r.Text, tc.text) {
			t.Errorf("%s: %q lacks %q", tc.sql, r.Text, tc.text)
		}
		if tc.rows == "" {
			continue
		}
		var doc struct{ Rows json.RawMessage }
		if err := errors.Join(json.Unmarshal(r.Structured, &doc), output.validate(r.Structured)); err != nil || string(doc.Rows) != tc.rows {
			t.Errorf("%s: rows %s (%v), want %s; %s", tc.sql, doc.Rows, err, tc.rows, r.Text)
		}
	}
}

func TestSqliteExec(t *testing.T) {
	t.Parallel()
	box, w, _ := dataBox(t, modeAllow, nil)
	output, err := compileSchema(box.natives()[1].Output)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		sql, params string
		want        string // of the structured result, "" for a failure
		text        string
	}{
		{sql: `CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT UNIQUE, y); CREATE TRIGGER g AFTER DELETE ON t BEGIN INSERT INTO log VALUES (old.id); UPDATE log SET n = n; END; CREATE TABLE log (n)`, want: `{"statements":3,"changed":0,"created":true}`,
			text: "new.db was made.\n3 statements run and committed in new.db: 0 rows changed, the structure too."},
		{sql: `INSERT INTO t (x, y) VALUES (?, ?)`, params: `["a;b", 9007199254740993]`, want: `{"statements":1,"changed":1,"created":false,"last_insert_id":1}`, text: "1 statement run and committed in new.db: 1 row changed; last insert id 1."},
		{sql: `INSERT INTO t (x, y) VALUES (?1, ?2), (?2, ?3)`, params: `["c", {"blob":"AAE="}, null]`, want: `{"statements":1,"changed":2,"created":false,"last_insert_id":3}`},
		{sql: `UPDATE t SET y = y WHERE id < 3; DELETE FROM t WHERE id = 3; -- done`, want: `{"statements":2,"changed":5,"created":false}`},
		{sql: `INSERT INTO t (x) VALUES ('d') RETURNING id, x`, want: `{"statements":1,"changed":1,"created":false,"last_insert_id":3}`},
		{sql: `PRAGMA user_version = 7`, want: `{"statements":1,"changed":0,"created":false}`},
		{sql: `CREATE VIRTUAL TABLE f USING fts5(b); INSERT INTO f VALUES ('green tea')`, text: "structure too"},
		{sql: `SELECT 1`, want: `{"statements":1,"changed":0,"created":false}`},
		{sql: `ALTER TABLE t ADD COLUMN z; CREATE INDEX i ON t(z); ANALYZE; REINDEX; DROP INDEX i`, text: "5 statements"},
		{sql: `DELETE FROM t; INSERT INTO t (x) VALUES ('a'), ('a')`, text: "statement 2 of 2 (INSERT INTO t (x) VALUES ('a'), ('a')): constraint failed: UNIQUE constraint failed: t.x; nothing was changed"},
		{sql: `INSERT INTO t (id) VALUES ('x')`, text: "datatype mismatch"},
		{sql: `DELETE FROM t; DELETE FROM t`, params: `[1]`, text: "params: sql holds 2 statements"},
		{sql: `DELETE FROM t WHERE id = ?`, text: "params: 0 values given, sql takes 1"},
		{sql: `DELETE FROM t WHERE id = :id`, text: "the parameter :id has a name"},
		{sql: ` ; `, text: "sql holds no statement"},
		{sql: `DELETE FROM nowhere`, text: "no such table: nowhere; nothing was changed"},
		{sql: `INSERT INTO t (x) VALUES (zeroblob(20000000))`, text: "over 16777216 bytes"},
	} {
		args := map[string]any{"path": "new.db", "sql": tc.sql}
		if tc.params != "" {
			args["params"] = json.RawMessage(tc.params)
		}
		r := toolsRun(t, box, "sqlite_exec", dataArgs(t, args))
		if !strings.Contains(r.Text, tc.text) || tc.want != "" && string(r.Structured) != tc.want {
			t.Errorf("%s: %s%s, want %s, %s", tc.sql, r.Text, r.Structured, tc.text, tc.want)
		}
		if tc.want != "" {
			if err := output.validate(r.Structured); err != nil {
				t.Error(err)
			}
		}
	}
	r := toolsRun(t, box, "sqlite_query", `{"path":"new.db","sql":"SELECT id, x, typeof(y) FROM t ORDER BY id"}`)
	if !strings.Contains(string(r.Structured), `"rows":[[1,"a;b","integer"],[2,"c","blob"],[3,"d","null"]]`) {
		t.Errorf("the table holds %s", r.Structured)
	}
	for path, want := range map[string]string{"failed.db": "no such table", "nowhere/x.db": "no such file", "sub": "is a folder", "in.txt": "is no SQLite database"} {
		r := toolsRun(t, box, "sqlite_exec", dataArgs(t, map[string]any{"path": path, "sql": "DELETE FROM t"}))
		if _, err := os.Stat(filepath.Join(w.root, path)); !r.IsError || !strings.Contains(r.Text, want) || path == "failed.db" && err == nil {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
	}
	reading, _, _ := dataBox(t, modeReadOnly, nil)
	if r := toolsRun(t, reading, "sqlite_exec", `{"path":"x.db","sql":"SELECT 1"}`); r.Rule == "" {
		t.Errorf("in read-only mode: %+v", r)
	}
}

// ROO-01 ROO-02 ROO-06
func TestSqlitePlaces(t *testing.T) {
	t.Parallel()
	box, w, outside := dataBox(t, modeAllow, nil)
	make := []string{`CREATE TABLE t (x)`}
	for _, path := range []string{filepath.Join(w.root, "a.db"), filepath.Join(outside, "o.db")} {
		dataSQLite(t, path, false, make...)
	}
	filesWrite(t, w.root, map[string]string{"home/x": "", ".tai/x": "", "empty.db": "", "text.db": strings.Repeat("no database ", 100), "short.db": "SQLite", "link.db-wal": ""})
	dataSQLite(t, filepath.Join(w.root, "home", vaultFile), false, make...)
	dataSQLite(t, filepath.Join(w.root, ".tai", "t.db"), false, make...)
	whole, err := os.ReadFile(filepath.Join(w.root, "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	filesWrite(t, w.root, map[string]string{
		"torn.db": string(whole[:4096]) + strings.Repeat("x", len(whole)-4096), "super.db": string(whole), "super.db-journal": strings.Repeat("\x00", 600) + sqliteSuper})
	links := map[string]string{"to-out.db": filepath.Join(outside, "o.db"), "to-in.db": filepath.Join(w.root, "a.db"), "odd.db-journal": filepath.Join(outside, "x"), "dead.db": filepath.Join(outside, "nowhere.db")}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(w.root, name)); err != nil {
			skipMissing(t, "%v", err)
		}
	}
	filesWrite(t, w.root, map[string]string{"odd.db": string(whole)})
	if err := os.Link(filepath.Join(w.root, "home", vaultFile), filepath.Join(w.root, "hard.db")); err != nil {
		skipMissing(t, "%v", err)
	}
	for _, tc := range []struct{ path, query, exec string }{
		{"a.db", "", ""}, {"to-in.db", "", ""}, {"sub/../a.db", "", ""},
		{"../app-secret/o.db", "refused by policy", "refused by policy"}, {filepath.Join(outside, "o.db"), "refused by policy", "refused by policy"}, {"to-out.db", "refused by policy", "refused by policy"},
		{"link-dir/o.db", "refused by policy", "refused by policy"}, {"dead.db", "leads nowhere", "leads nowhere"},
		{"home/" + vaultFile, "tai's own", "tai's own"}, {"HOME/../home/x.db", "tai's own", "tai's own"}, {".tai/t.db", "tai's own", "tai's own"}, {".TAI/new.db", "tai's own", "tai's own"}, {"hard.db", "vault under another name", "vault under another name"},
		{"empty.db", "empty file", "no such table"}, {"text.db", "no SQLite database", "no SQLite database"}, {"short.db", "no SQLite database", "no SQLite database"}, {"torn.db", "damaged", "damaged"},
		{"missing.db", "no such file", "no such table"}, {"sub", "is a folder", "is a folder"}, {"in.txt/x", "not a directory", "not a directory"}, {"a\x00.db", "NUL", "NUL"},
		{"super.db", "several databases at once", "several databases at once"}, {"odd.db", "no regular file", "no regular file"},
	} {
		for tool, want := range map[string]string{"sqlite_query": tc.query, "sqlite_exec": tc.exec} {
			text := map[string]string{"sqlite_query": "SELECT * FROM t", "sqlite_exec": "DELETE FROM t"}[tool]
			r := toolsRun(t, box, tool, dataArgs(t, map[string]any{"path": tc.path, "sql": text}))
			if r.IsError != (want != "") || !strings.Contains(r.Text, want) {
				t.Errorf("%s of %q: %+v, want %q", tool, tc.path, r, want)
			}
		}
	}
	if b, err := os.ReadFile(filepath.Join(outside, "x")); err != nil || string(b) != "the outside secret\n" {
		t.Errorf("outside: %q, %v", b, err)
	}
	danger, w2, outside2 := dataBox(t, modeDanger, nil)
	dataSQLite(t, filepath.Join(outside2, "o.db"), false, make...)
	filesWrite(t, w2.root, map[string]string{"home/x": ""})
	if r := toolsRun(t, danger, "sqlite_query", `{"path":"../app-secret/o.db","sql":"SELECT count(*) FROM t"}`); r.IsError {
		t.Errorf("outside, allowed by the mode: %+v", r)
	}
	if r := toolsRun(t, danger, "sqlite_exec", `{"path":"home/vault.db","sql":"SELECT 1"}`); !strings.Contains(r.Text, "tai's own") {
		t.Errorf("home in danger mode: %+v", r)
	}
}

// TestSqliteWAL reads a database in WAL mode: closed, open elsewhere, and left behind without its writer. Reading leaves nothing.
func TestSqliteWAL(t *testing.T) {
	t.Parallel()
	box, w, _ := dataBox(t, modeAllow, nil)
	path := filepath.Join(w.root, "w.db")
	count := func(want int) {
		t.Helper()
		r := toolsRun(t, box, "sqlite_query", `{"path":"w.db","sql":"SELECT count(*) FROM t"}`)
		if !strings.Contains(string(r.Structured), fmt.Sprintf(`"rows":[[%d]]`, want)) {
			t.Errorf("%s %s, want %d rows", r.Text, r.Structured, want)
		}
	}
	dataSQLite(t, path, false, `PRAGMA journal_mode = WAL`, `CREATE TABLE t (x)`, `INSERT INTO t VALUES (1)`)
	before := dataState(t, w.root)
	count(1)
	if after := dataState(t, w.root); !maps.Equal(before, after) {
		t.Errorf("reading left %v", slicesOfKeys(after))
	}
	db := dataSQLite(t, path, true, `INSERT INTO t VALUES (2)`)
	count(2)
	if r := toolsRun(t, box, "sqlite_exec", `{"path":"w.db","sql":"INSERT INTO t VALUES (3)"}`); r.IsError {
		t.Error(r.Text)
	}
	count(3)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`INSERT INTO t VALUES (4)`); err != nil {
		t.Fatal(err)
	}
	count(3) // what is not committed does not count
	for suffix := range map[string]bool{"": true, "-wal": true} {
		b, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		filesWrite(t, w.root, map[string]string{"copy.db" + suffix: string(b)})
	}
	if r := toolsRun(t, box, "sqlite_query", `{"path":"copy.db","sql":"SELECT count(*) FROM t"}`); !strings.Contains(string(r.Structured), `"rows":[[3]]`) {
		t.Errorf("a copy with its journal: %s %s", r.Text, r.Structured)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

// TestSqliteLocked meets a database that another connection has locked. The wait is cut by the bound of the call.
func TestSqliteLocked(t *testing.T) {
	t.Parallel()
	box, w, _ := dataBox(t, modeAllow, func(e *dataEngine) { e.bounds.time = 200 * time.Millisecond })
	db := dataSQLite(t, filepath.Join(w.root, "l.db"), true, `CREATE TABLE t (x)`, `BEGIN EXCLUSIVE`)
	for tool, text := range map[string]string{"sqlite_query": "SELECT * FROM t", "sqlite_exec": "DELETE FROM t"} {
		if r := toolsRun(t, box, tool, dataArgs(t, map[string]any{"path": "l.db", "sql": text})); !r.IsError || !strings.Contains(r.Text, "locked by another program") && !strings.Contains(r.Text, "was stopped after") {
			t.Errorf("%s: %+v", tool, r)
		}
	}
	if _, err := db.Exec(`COMMIT`); err != nil {
		t.Fatal(err)
	}
}

// A call that is cancelled ends, and what it did is undone.
func TestSqliteCancel(t *testing.T) {
	t.Parallel()
	box, w, _ := dataBox(t, modeAllow, nil)
	dataSQLite(t, filepath.Join(w.root, "c.db"), false, `CREATE TABLE t (x)`, `INSERT INTO t VALUES (1)`)
	for _, tc := range []struct{ tool, sql string }{
		{"sqlite_query", `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c`},
		{"sqlite_exec", `DELETE FROM t; WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) INSERT INTO t SELECT x FROM c WHERE x < 0`},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		r, err := box.dispatch(ctx, toolCall{Name: tc.tool, Args: json.RawMessage(dataArgs(t, map[string]any{"path": "c.db", "sql": tc.sql})), Origin: "cli"})
		cancel()
		if err != nil || !r.IsError || !strings.Contains(r.Text, "interrupted") {
			t.Errorf("%s: %+v, %v", tc.tool, r, err)
		}
	}
	if r := toolsRun(t, box, "sqlite_query", `{"path":"c.db","sql":"SELECT count(*) FROM t"}`); !strings.Contains(string(r.Structured), `"rows":[[1]]`) {
		t.Errorf("after it: %+v", r)
	}
}
