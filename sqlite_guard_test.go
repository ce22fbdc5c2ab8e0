package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSqliteQueryOnlyReads tries to change something by way of the tool that reads: none may succeed, and no file in the workspace may be another after it.
func TestSqliteQueryOnlyReads(t *testing.T) {
	t.Parallel()
	box, w, outside := dataBox(t, modeReadOnly, nil)
	dataSQLite(t, filepath.Join(w.root, "a.db"), false, `CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)`, `INSERT INTO t VALUES (1, 'one')`, `CREATE VIRTUAL TABLE f USING fts5(b)`, `CREATE VIRTUAL TABLE r USING rtree(id, x0, x1)`, `CREATE VIEW v AS SELECT * FROM t`, `CREATE TRIGGER g INSTEAD OF INSERT ON v BEGIN DELETE FROM t; END`)
	dataSQLite(t, filepath.Join(w.root, "b.db"), false, `CREATE TABLE secret (x)`, `INSERT INTO secret VALUES ('other file')`)
	before, beforeOut := dataState(t, w.root), dataState(t, outside)
	other := filepath.ToSlash(filepath.Join(w.root, "b.db"))
	for i, try := range []string{
		`INSERT INTO t VALUES (2, 'two')`, `UPDATE t SET x = 'z'`, `DELETE FROM t`, `REPLACE INTO t VALUES (1, 'z')`,
		`WITH a AS (SELECT 5) INSERT INTO t SELECT *, 'x' FROM a`, `WITH a AS (SELECT 1) DELETE FROM t`, `WITH a AS (SELECT 1) UPDATE t SET x = 1`,
		`WITH a AS (SELECT 1) INSERT INTO v VALUES (1, 1)`, `WITH a AS (SELECT 1) DELETE FROM r_node`, `WITH a AS (SELECT 1) DELETE FROM r_rowid RETURNING *`, `WITH a AS (SELECT 1) INSERT INTO f VALUES ('x')`,
		`WITH a AS (SELECT 1) INSERT INTO f(f) VALUES ('rebuild')`, `WITH a AS (SELECT 1) UPDATE sqlite_schema SET sql = ''`, `WITH a AS (SELECT 1) UPDATE sqlite_dbpage SET data = zeroblob(4096)`,
		`CREATE TABLE n (x)`, `CREATE TEMP TABLE n (x)`, `CREATE TABLE n AS SELECT 1`, `DROP TABLE t`, `ALTER TABLE t ADD COLUMN y`, `CREATE INDEX i ON t(x)`, `CREATE VIEW w AS SELECT 1`,
		`CREATE VIRTUAL TABLE z USING fts5(x)`, `REINDEX`, `ANALYZE`, `VACUUM`, `VACUUM INTO 'c.db'`,
		`ATTACH 'c.db' AS c`, `ATTACH '` + other + `' AS c`, `ATTACH ':memory:' AS c`, `ATTACH 'file:` + other + `?mode=rw' AS c`, `DETACH main`, `EXPLAIN ATTACH 'c.db' AS c`,
		`SELECT 1; ATTACH 'c.db' AS c`, `SELECT 1; DELETE FROM t`, `PRAGMA query_only = 0; DELETE FROM t`, `SELECT 1 /*; */; DELETE FROM t`, "SELECT 1 -- ;\n; DELETE FROM t",
		`PRAGMA query_only = 0`, `PRAGMA query_only(0)`, `PRAGMA journal_mode = DELETE`, `PRAGMA journal_mode(WAL)`, `PRAGMA user_version = 5`, `PRAGMA application_id(7)`, `PRAGMA schema_version = 99`, `PRAGMA writable_schema = 1`, `PRAGMA main.writable_schema(ON)`,
		`PRAGMA temp_store = FILE`, `PRAGMA temp_store_directory = '/tmp'`, `PRAGMA data_store_directory = '/tmp'`, `PRAGMA locking_mode = EXCLUSIVE`, `PRAGMA wal_checkpoint(TRUNCATE)`, `PRAGMA incremental_vacuum`, `PRAGMA optimize`, `PRAGMA page_size = 512`, `PRAGMA auto_vacuum = 1`,
		`PRAGMA encoding = 'UTF-16'`, `PRAGMA trusted_schema = 1`, `PRAGMA mmap_size = 1000000`, `PRAGMA hard_heap_limit = 1`, `PRAGMA soft_heap_limit = 1`, `PRAGMA case_sensitive_like = 1`, `PRAGMA shrink_memory`, `PRAGMA foreign_keys = ON`, `PRAGMA synchronous = OFF`, `PRAGMA max_page_count = 1`, `PRAGMA busy_timeout = 100000`, `PRAGMA threads = 8`,
		`SELECT load_extension('x')`, `SELECT load_extension('x', 'y') FROM t`, `SELECT fts3_tokenizer('x')`, `SELECT tai_rows()`, `SELECT readfile('b.db')`, `SELECT writefile('c.db', 'x')`, `SELECT edit('x')`,
		`BEGIN`, `BEGIN EXCLUSIVE`, `COMMIT`, `ROLLBACK`, `SAVEPOINT s`, `RELEASE s`, `EXPLAIN BEGIN`,
		`SELECT * FROM fsdir('.')`, `SELECT * FROM csv`, `SELECT * FROM zipfile('x')`, `SELECT * FROM sqlite_stmt`, `SELECT * FROM c.t`,
	} {
		for _, tool := range []string{"sqlite_query", "table_query"} {
			args := map[string]any{"path": "a.db", "sql": try}
			if tool == "table_query" {
				filesWrite(t, w.root, map[string]string{"t.csv": "id,x\n1,one\n"})
				args = map[string]any{"sources": []any{map[string]any{"path": "t.csv"}}, "sql": try}
			}
			r := toolsRun(t, box, tool, dataArgs(t, args))
			if !r.IsError || r.Rule != "" {
				t.Errorf("try %d, %s: %s went through: %s", i, tool, try, r.Text)
			}
		}
	}
	after := dataState(t, w.root)
	delete(after, "t.csv")
	if !maps.Equal(before, after) || !maps.Equal(beforeOut, dataState(t, outside)) {
		t.Errorf("files differ: %v, want %v", slicesOfKeys(after), slicesOfKeys(before))
	}
}

func slicesOfKeys(m map[string]string) (out []string) {
	for k, v := range m {
		out = append(out, fmt.Sprintf("%s (%d bytes)", k, len(v)))
	}
	return out
}

// TestSqliteExecStays tries to reach other files, or to break out of the transaction, by way of the tool that changes.
func TestSqliteExecStays(t *testing.T) {
	t.Parallel()
	box, w, outside := dataBox(t, modeAllow, nil)
	dataSQLite(t, filepath.Join(w.root, "a.db"), false, `CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)`, `INSERT INTO t VALUES (1, 'one')`)
	before, beforeOut := dataState(t, w.root), dataState(t, outside)
	target := filepath.ToSlash(filepath.Join(outside, "c.db"))
	for i, try := range []string{
		`ATTACH '` + target + `' AS c`, `ATTACH 'c.db' AS c; CREATE TABLE c.t (x)`, `ATTACH 'file:` + target + `?mode=rwc' AS c`, `ATTACH 'c' || '.db' AS c`, `ATTACH '' AS c`, `ATTACH ':memory:' AS c`, `DETACH temp`,
		`VACUUM`, `VACUUM INTO '` + target + `'`, `VACUUM main INTO 'c.db'`, `DELETE FROM t; VACUUM`,
		`SELECT load_extension('/tmp/x.so')`, `INSERT INTO t SELECT 2, load_extension('x')`, `CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT load_extension('x'); END; INSERT INTO t VALUES (3, 'x')`,
		`PRAGMA writable_schema = 1`, `PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE t (y)'`, `UPDATE sqlite_schema SET name = 'z'`, `DELETE FROM sqlite_schema`, `INSERT INTO sqlite_dbpage VALUES (1, zeroblob(4096))`, `UPDATE sqlite_dbpage SET data = zeroblob(4096) WHERE pgno = 1`,
		`PRAGMA journal_mode = OFF`, `PRAGMA journal_mode = MEMORY`, `PRAGMA journal_mode = WAL`, `PRAGMA temp_store_directory = '/tmp'`, `PRAGMA temp_store = 1`, `PRAGMA locking_mode = EXCLUSIVE`, `PRAGMA synchronous = OFF`, `PRAGMA query_only = 1`, `PRAGMA max_page_count = 999999999`, `PRAGMA trusted_schema = 1`,
		`PRAGMA mmap_size = 99999999`, `PRAGMA wal_checkpoint`, `PRAGMA schema_version = 3`, `PRAGMA busy_timeout = 999999`, `PRAGMA hard_heap_limit = 9`,
		`BEGIN; DELETE FROM t; COMMIT`, `COMMIT; DELETE FROM t`, `ROLLBACK`, `SAVEPOINT x`, `END`, `DELETE FROM t; RELEASE x`, `EXPLAIN COMMIT; DELETE FROM t`,
		`CREATE VIRTUAL TABLE z USING dbstat`, `CREATE VIRTUAL TABLE z USING csv(filename='/etc/passwd')`, `CREATE VIRTUAL TABLE z USING sqlite_dbpage`, `CREATE VIRTUAL TABLE z USING nothing`,
		`DELETE FROM t; INSERT INTO t VALUES (NULL, 'a'); INSERT INTO nowhere VALUES (1)`, `INSERT INTO t VALUES (2, 'x'), (1, 'twice')`, `DELETE FROM t; SELEC`, `DELETE FROM t; SELECT ? FROM t`, "DELETE FROM t; SELECT '\x00'",
	} {
		r := toolsRun(t, box, "sqlite_exec", dataArgs(t, map[string]any{"path": "a.db", "sql": try}))
		if !r.IsError || r.Rule != "" {
			t.Errorf("try %d: %s went through: %s", i, try, r.Text)
		}
	}
	after := dataState(t, w.root)
	if !maps.Equal(before, after) || !maps.Equal(beforeOut, dataState(t, outside)) {
		t.Errorf("files differ: %v, want %v", slicesOfKeys(after), slicesOfKeys(before))
	}
}

// TestDataBounds holds the bounds of time, memory and size against queries that know none.
// It runs beside no other test, as the memory that counts is that of the process.
func TestDataBounds(t *testing.T) {
	tight, w, _ := dataBox(t, modeReadOnly, func(e *dataEngine) {
		e.bounds = dataBounds{time: 150 * time.Millisecond, grace: 20 * time.Second, memory: 64 << 20}
	})
	dataSQLite(t, filepath.Join(w.root, "a.db"), false, `CREATE TABLE t (x)`)
	roomy, w2, _ := dataBox(t, modeReadOnly, nil)
	dataSQLite(t, filepath.Join(w2.root, "a.db"), false, `CREATE TABLE t (x)`)
	endless := `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) `
	for _, tc := range []struct{ sql, want string }{
		{endless + `SELECT count(*) FROM c`, "was stopped after"},
		{endless + `SELECT 1 UNION ALL SELECT count(*) FROM c`, "was stopped after"}, // the first row is there at once
		{endless + `SELECT x FROM c WHERE x < 0`, "was stopped after"},
		{endless + `SELECT randomblob(1000000) FROM c ORDER BY 1`, "took"},
		{endless + `SELECT DISTINCT randomblob(100000) FROM c WHERE x > 0 GROUP BY 1`, "took"},
		{`WITH RECURSIVE c(x) AS (SELECT randomblob(100000) UNION SELECT randomblob(100000) FROM c) SELECT count(*) FROM c`, "took"},
		{`SELECT randomblob(1000000000)`, "over 16777216 bytes"},
		{`SELECT zeroblob(1000000000)`, "over 16777216 bytes"},
		{`SELECT printf('%.*c', 1000000000, 'x')`, "over 16777216 bytes"},
		{`SELECT printf('%1000000000d', 1)`, "over 16777216 bytes"},
		{`SELECT replace(printf('%.*c', 1000000, 'x'), 'x', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')`, "over 16777216 bytes"},
		{`SELECT hex(zeroblob(10000000))`, "over 16777216 bytes"},
		{endless + `SELECT group_concat(printf('%.*c', 4000000, 'x')) FROM c`, "took"},
		{`SELECT 'x' LIKE printf('%.*c', 2000, '%')`, "LIKE or GLOB pattern too complex"},
		{`SELECT 'x' GLOB printf('%.*c', 2000, '*')`, "LIKE or GLOB pattern too complex"},
		{`SELECT ` + strings.Repeat("(", 3000) + "1" + strings.Repeat(")", 3000), "Recursion limit"},
		{`SELECT 1` + strings.Repeat("+1", 600), "Expression tree is too large"},
		{`SELECT 1` + strings.Repeat(" UNION ALL SELECT 1", 600), "too many terms in compound SELECT"},
	} {
		box, want := roomy, []string{tc.want}
		if !strings.HasPrefix(tc.want, "over") && strings.HasPrefix(tc.sql, "WITH") {
			box = tight
		}
		if tc.want == "took" { // which bound is met first depends on the machine
			want = []string{"bytes of memory", "was stopped after"}
		}
		r := toolsRun(t, box, "sqlite_query", dataArgs(t, map[string]any{"path": "a.db", "sql": tc.sql}))
		if !r.IsError || !strings.Contains(r.Text, want[0]) && !strings.Contains(r.Text, want[len(want)-1]) {
			t.Errorf("%.80s: %+v, want %q", tc.sql, r, want)
		}
	}
	if r := toolsRun(t, tight, "sqlite_query", `{"path":"a.db","sql":"SELECT 1"}`); r.IsError {
		t.Errorf("after all that: %+v", r)
	}
}

// A call that cannot be stopped is left behind, said so, and keeps the next one out until it has ended.
func TestDataLeftBehind(t *testing.T) {
	t.Parallel()
	e := newDataEngine()
	e.bounds = dataBounds{time: 10 * time.Millisecond, grace: 10 * time.Millisecond, memory: 1 << 40}
	release, ended := make(chan struct{}), make(chan struct{})
	_, err := e.do(t.Context(), func(context.Context) (toolResult, error) {
		defer close(ended)
		<-release
		return toolResult{}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "cannot be interrupted") {
		t.Errorf("a step without an end: %v", err)
	}
	if _, err := e.do(t.Context(), func(context.Context) (toolResult, error) { return toolResult{}, nil }); err == nil || !strings.Contains(err.Error(), "has not ended yet") {
		t.Errorf("the call after it: %v", err)
	}
	close(release)
	<-ended
	e.bounds.time = time.Minute
	if r, err := e.do(t.Context(), func(context.Context) (toolResult, error) { return toolResult{Text: "x"}, nil }); err != nil || r.Text != "x" {
		t.Errorf("once that has ended: %+v, %v", r, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a panic is not passed on")
		}
	}()
	_, _ = e.do(t.Context(), func(context.Context) (toolResult, error) { panic("of a fault") })
}

func TestSQLStatements(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text   string
		want   []string
		params int // of the first
		named  string
	}{
		{text: "", want: nil},
		{text: " ; -- x\n;/* y", want: nil},
		{text: "select 1", want: []string{"select 1"}},
		{text: "-- a;b\nSELECT 1; /* c;d */ SELECT 2 -- e", want: []string{"SELECT 1", "SELECT 2"}},
		{text: "SELECT ';', \"a;\"\";b\", `c;`, [d;] ; SELECT 'it''s;'", want: []string{"SELECT ';', \"a;\"\";b\", `c;`, [d;]", "SELECT 'it''s;'"}},
		{text: "SELECT ?, ?5, ?, :a, $b::c", want: []string{"SELECT ?, ?5, ?, :a, $b::c"}, params: 6, named: ":a"},
		{text: "SELECT '?', x -- ?", want: []string{"SELECT '?', x"}},
		{text: "CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT CASE WHEN 1 THEN 2 END; DELETE FROM u; END; SELECT 1", want: []string{"CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT CASE WHEN 1 THEN 2 END; DELETE FROM u; END", "SELECT 1"}},
		{text: "create temp trigger g after insert on t begin select 1; end", want: []string{"create temp trigger g after insert on t begin select 1; end"}},
		{text: "CREATE TABLE trigger_x (a); SELECT 1", want: []string{"CREATE TABLE trigger_x (a)", "SELECT 1"}},
		{text: "SELECT 'open; SELECT 2", want: []string{"SELECT 'open; SELECT 2"}},
	} {
		list, err := sqlStatements(tc.text)
		var got []string
		for _, st := range list {
			got = append(got, st.Text)
		}
		if err != nil || strings.Join(got, "|") != strings.Join(tc.want, "|") {
			t.Errorf("%s: %q, %v, want %q", tc.text, got, err, tc.want)
		}
		if len(list) > 0 && (list[0].Params != tc.params || list[0].Named != tc.named) {
			t.Errorf("%s: %d params, named %q, want %d, %q", tc.text, list[0].Params, list[0].Named, tc.params, tc.named)
		}
	}
}
