package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

func TestTableQuery(t *testing.T) {
	t.Parallel()
	box, w, _ := dataBox(t, modeReadOnly, nil)
	var wide []byte
	for _, u := range utf16.Encode([]rune("\ufeffname;sum\nJosé;1\n漢;2\n")) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	filesWrite(t, w.root, map[string]string{
		"orders.csv": "\ufeffid,customer,total,code,day,big,note\r\n1,10,2.50,007,2024-01-02,9007199254740993,\"a, \"\"b\"\"\nc\"\r\n2,11,3,010,2024-01-03,9223372036854775808,\r\n3,10,,9,soon,,x\r\n",
		"people.tsv": "id\tname\n10\tAda\n11\tBob\n", "semi.csv": "a;b\n1,5;x\n2,5;y\n", "pipe.txt": "a|b\n1|2\n", "ragged.csv": "a,b\n1\n2,3\n4,5,6\n\n", "plain.csv": "1,x\n2,y\n",
		"dup.csv": "a,A,,a\n1,2,3,4\n", "order.csv": "select,x y\n1,2\n", "wide.csv": string(wide), "quotes.csv": "a,b\n\"x,1\ny,2\n", "mixed.csv": "n,r,w\n1,1,1.5\n2,2.5,9007199254740993\n 3 ,1e2,2\n",
		"mac.csv": "day,n\rmon,1\r\"a\rb\",2", "excel.csv": "\ufeffsep=;\r\nday;n\r\nmon;1,5\r\n", "latin.csv": "name,n\nJos\xe9 \x80,1\n", "late.csv": "name\n" + strings.Repeat("plain\n", 20_000) + "K\xf6ln\n", "hurt.csv": "name\né\nü\n\xff\n",
		"toowide.csv": strings.Repeat("1,", tableColumns) + "1\n", "empty.csv": "", "blank.csv": " \n\n", "head.csv": "a,b\n", "null.csv": "a\x00b\n", "open.csv": "a\n\"b\n",
		"rows.json": `[{"id":1,"ok":true,"tags":["x", {"y" : 1}],"big":9223372036854775808,"s":"007"},{"id":2.5,"extra":null,"s":"é\n"},{}]`, "member.json": `{"next":null,"items":[{"a":1},{"a":"x"}],"n":2}`, "two.json": `{"a":[{"x":1}],"b":[{"y":2},{"y":3}]}`, "one.json": `{"a":1,"b":{"c":2}}`,
		"arrays.json": `[[1,"a"],[2,"b",true]]`, "scalars.json": `[3,1,2]`, "bad.json": `[{"a":1},{"a":}]`, "twice.json": `[{"a":1,"a":2}]`, "nested.json": `[{"a":[1,]}]`,
		"log.jsonl": "{\"lvl\":\"info\",\"n\":1}\n\nnonsense\n{\"lvl\":\"warn\",\"n\":2}\n5\n{\"lvl\":\"info\",\"n\":3,}\n[1]\n", "worse.jsonl": "x\ny\nz\nw\n", "sniffed": "{\"a\":1}\n{\"a\":2}\n", "sniffed2": "[{\"a\":1}]",
	})
	info, err := box.vault.putRecord(t.Context(), "result", "test", "", []byte("k,v\na,1\nb,2\n"))
	if err != nil {
		t.Fatal(err)
	}
	output, err := compileSchema(box.natives()[2].Output)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		sources string
		sql     string
		rows    string   // of the structured result; "" for a failure
		text    []string // parts of the text
	}{
		{`{"path":"orders.csv"}`, `SELECT * FROM orders`, `[[1,10,2.5,"007","2024-01-02","9007199254740993","a, \"b\"\nc"],[2,11,3.0,"010","2024-01-03","9223372036854775808",null],[3,10,null,"9","soon",null,"x"]]`,
			[]string{"orders: 3 rows from orders.csv (csv; delimiter ','; header in the first row): id integer, customer integer, total real, code text, day text, big text, note text\n", "[3 rows]\n"}},
		{`{"path":"orders.csv"},{"path":"people.tsv"}`, `SELECT name, sum(total) FROM orders JOIN people ON people.id = customer GROUP BY name ORDER BY 2`, `[["Ada",2.5],["Bob",3.0]]`, []string{"people: 2 rows from people.tsv (tsv; delimiter '\\t'"}},
		{`{"path":"orders.csv","name":"o"},{"path":"orders.csv"},{"path":"orders.csv"}`, `SELECT (SELECT count(*) FROM o), (SELECT count(*) FROM orders), (SELECT count(*) FROM orders_2)`, `[[3,3,3]]`, nil},
		{`{"path":"semi.csv"}`, `SELECT a, b FROM semi`, `[["1,5","x"],["2,5","y"]]`, []string{"delimiter ';'", "a text, b text"}},
		{`{"path":"semi.csv","delimiter":","}`, `SELECT "5;x" FROM semi`, ``, []string{"no such column", "semi: 2 rows"}},
		{`{"path":"pipe.txt"}`, `SELECT a + b FROM pipe`, `[[3]]`, nil},
		{`{"path":"people.tsv","delimiter":"\\t","format":"csv"}`, `SELECT count(name) FROM people`, `[[2]]`, nil},
		{`{"path":"ragged.csv"}`, `SELECT * FROM ragged`, `[[1,null,null],[2,3,null],[4,5,6]]`, []string{"2 rows with another number of fields than the first row's 2, the first in line 2: missing ones are NULL", "a integer, b integer, c3 integer"}},
		{`{"path":"mac.csv"}`, `SELECT * FROM mac`, `[["mon",1],["a\nb",2]]`, []string{"lines end with a carriage return alone"}},
		{`{"path":"excel.csv"}`, `SELECT * FROM excel`, `[["mon","1,5"]]`, []string{"excel: 1 row", "delimiter ';'"}},
		{`{"path":"latin.csv"}`, `SELECT name FROM latin WHERE name LIKE 'José%'`, `[["José €"]]`, []string{"windows-1252"}},
		{`{"path":"late.csv"}`, `SELECT name, count(*) FROM late GROUP BY 1 ORDER BY 1`, `[["Köln",1],["plain",20000]]`, []string{"windows-1252"}},
		{`{"path":"hurt.csv"}`, `SELECT name FROM hurt`, `[["é"],["ü"],["�"]]`, []string{"1 byte of it no UTF-8"}},
		{`{"path":"toowide.csv"}`, `SELECT 1`, ``, []string{"line 1: a row of 2001 fields, at most 2000"}},
		{`{"path":"plain.csv"}`, `SELECT c2 FROM plain WHERE c1 = 2`, `[["y"]]`, []string{"no header: columns are called c1, c2 …"}},
		{`{"path":"plain.csv","header":true}`, `SELECT "1", x FROM plain`, `[[2,"y"]]`, []string{`"1" integer, x text`}},
		{`{"path":"people.tsv","header":false}`, `SELECT count(*) FROM people WHERE c1 = 'id'`, `[[1]]`, nil},
		{`{"path":"dup.csv"}`, `SELECT a, A_2, c3, a_3 FROM dup`, `[[1,2,3,4]]`, nil},
		{`{"path":"order.csv"}`, `SELECT "select", "x y" FROM order_`, `[[1,2]]`, []string{`"select" integer, "x y" integer`}},
		{`{"path":"wide.csv"}`, `SELECT name FROM wide ORDER BY sum`, `[["José"],["漢"]]`, []string{"utf-16le"}},
		{`{"path":"quotes.csv","quotes":false}`, `SELECT a FROM quotes`, `[["\"x"],["y"]]`, nil},
		{`{"path":"mixed.csv"}`, `SELECT n, r, w, typeof(n) FROM mixed`, `[[1,1.0,"1.5","integer"],[2,2.5,"9007199254740993","integer"],[3,100.0,"2","integer"]]`, []string{"n integer, r real, w text"}},
		{`{"path":"head.csv"}`, `SELECT count(*) FROM head`, `[[0]]`, []string{"head: 0 rows"}},
		{`{"path":"rows.json"}`, `SELECT * FROM rows`, `[[1.0,1,"[\"x\",{\"y\":1}]","9223372036854775808","007",null],[2.5,null,null,null,"é\n",null],[null,null,null,null,null,null]]`, []string{"id real, ok boolean, tags json, big text, s text, extra text"}},
		{`{"path":"rows.json"}`, `SELECT json_extract(tags, '$[1].y') FROM rows LIMIT 1`, `[[1]]`, nil},
		{`{"path":"member.json"}`, `SELECT a, typeof(a) FROM member`, `[[1,"integer"],["x","text"]]`, []string{`rows of the member "items"`, "a mixed"}},
		{`{"path":"two.json","member":"b"}`, `SELECT sum(y) FROM two`, `[[5]]`, nil},
		{`{"path":"two.json"}`, `SELECT 1`, ``, []string{`sources[0]: two.json: holds several arrays; say with member which one has the rows: "a", "b"`}},
		{`{"path":"two.json","member":"c"}`, `SELECT 1`, ``, []string{`has no array called "c"`}},
		{`{"path":"one.json"}`, `SELECT a, b FROM one`, `[[1,"{\"c\":2}"]]`, []string{"one object is one row"}},
		{`{"path":"arrays.json"}`, `SELECT c1, c2, c3 FROM arrays`, `[[1,"a",null],[2,"b",1]]`, nil},
		{`{"path":"scalars.json"}`, `SELECT max(value) FROM scalars`, `[[3]]`, nil},
		{`{"path":"bad.json"}`, `SELECT 1`, ``, []string{"bad.json: row 2: not valid JSON"}},
		{`{"path":"twice.json"}`, `SELECT 1`, ``, []string{"stands twice"}},
		{`{"path":"nested.json"}`, `SELECT 1`, ``, []string{"not valid JSON"}},
		{`{"path":"log.jsonl"}`, `SELECT lvl, sum(n), count(c1) FROM log GROUP BY lvl`, `[[null,null,1],["info",1,0],["warn",2,0]]`, []string{"3 lines left out that are no rows: line 3 (no object or array), 5 (no object or array), 6 (not valid JSON"}},
		{`{"path":"worse.jsonl"}`, `SELECT 1`, ``, []string{"no line of it is a row: line 1 (no object or array), 2 ("}},
		{`{"path":"sniffed"},{"path":"sniffed2"}`, `SELECT sum(sniffed.a), sum(sniffed2.a) FROM sniffed, sniffed2`, `[[3,2]]`, []string{"(jsonl)", "(json)"}},
		{`{"record":"` + info.ID + `","name":"r"}`, `SELECT sum(v) FROM r`, `[[3]]`, []string{"from record " + info.ID + " (csv"}},
		{`{"record":"r-none"}`, `SELECT 1`, ``, []string{"not found"}},
		{`{"path":"orders.csv"}`, `SELECT totl FROM orders`, ``, []string{"no such column: totl\norders: 3 rows", "total real"}},
		{`{"path":"orders.csv"}`, `SELECT "totl" FROM orders`, ``, []string{"no such column"}},
		{`{"path":"orders.csv"}`, `SELECT ? FROM orders`, ``, []string{"there are no params"}},
		{`{"path":"orders.csv"}`, `DELETE FROM orders`, ``, []string{"sql begins with DELETE"}},
		{`{"path":"empty.csv"}`, `SELECT 1`, ``, []string{"empty.csv: is empty"}}, {`{"path":"blank.csv"}`, `SELECT 1`, ``, []string{"is empty"}}, {`{"path":"null.csv"}`, `SELECT 1`, ``, []string{"is binary"}},
		{`{"path":"open.csv"}`, `SELECT 1`, ``, []string{"line 2: a quote opens in this row and never closes"}},
		{`{"path":"missing.csv"}`, `SELECT 1`, ``, []string{"sources[0]: missing.csv: no such file"}}, {`{"path":"sub"}`, `SELECT 1`, ``, []string{"is a folder"}},
		{`{"path":"../app-secret/x"}`, `SELECT 1`, ``, []string{"refused by policy"}}, {`{"path":"orders.csv"},{"path":"link-file"}`, `SELECT 1`, ``, []string{"refused by policy"}}, // ROO-01 ROO-02
		{`{}`, `SELECT 1`, ``, []string{"one of path and record is needed"}}, {`{"path":"orders.csv","record":"r-1"}`, `SELECT 1`, ``, []string{"one of path and record"}},
		{`{"path":"orders.csv","name":"t"},{"path":"orders.csv","name":"T"}`, `SELECT 1`, ``, []string{"sources[1]: the table T stands twice"}}, {`{"path":"orders.csv","name":"sqlite_x"}`, `SELECT 1`, ``, []string{"begins with sqlite_"}},
		{`{"path":"orders.csv","name":"a b"}`, `SELECT 1`, ``, []string{"name"}}, {`{"path":"orders.csv","delimiter":"ab"}`, `SELECT 1`, ``, []string{"delimiter"}}, {`{"path":"orders.csv","format":"xls"}`, `SELECT 1`, ``, []string{"format"}},
		{`{"path":"orders.csv","header":"yes"}`, `SELECT 1`, ``, []string{"header"}}, {`{"path":"orders.csv","other":1}`, `SELECT 1`, ``, []string{"other"}}, {``, `SELECT 1`, ``, []string{"sources"}},
	} {
		args := dataArgs(t, map[string]any{"sources": json.RawMessage("[" + tc.sources + "]"), "sql": tc.sql})
		r := toolsRun(t, box, "table_query", args)
		for _, want := range tc.text {
			if !strings.Contains(r.Text, want) {
				t.Errorf("%s of %s: %q lacks %q", tc.sql, tc.sources, r.Text, want)
			}
		}
		if tc.rows == "" {
			if !r.IsError {
				t.Errorf("%s of %s: %q, want a failure", tc.sql, tc.sources, r.Text)
			}
			continue
		}
		var doc struct{ Rows json.RawMessage }
		if err := errors.Join(json.Unmarshal(r.Structured, &doc), output.validate(r.Structured)); err != nil || string(doc.Rows) != tc.rows {
			t.Errorf("%s of %s: rows %s (%v), want %s; %s", tc.sql, tc.sources, doc.Rows, err, tc.rows, r.Text)
		}
	}
}

// TestTableLimits holds the bounds of the rows, columns and bytes of a result and a source.
func TestTableLimits(t *testing.T) {
	t.Parallel()
	box, w, _ := dataBox(t, modeReadOnly, nil)
	var rows strings.Builder
	rows.WriteString("id,text\n")
	for i := range 12_345 {
		fmt.Fprintf(&rows, "%d,%s\n", i, strings.Repeat("x", i%50))
	}
	many := make([]string, tableColumns+1)
	for i := range many {
		many[i] = "n" + strconv.Itoa(i)
	}
	filesWrite(t, w.root, map[string]string{"rows.csv": rows.String(), "cols.csv": strings.Join(many[1:], ",") + "\n" + strings.Repeat(",", tableColumns-1) + "\n", "more.csv": "a\n" + strings.Repeat(",", tableColumns) + "\n", "long.csv": "a\n" + strings.Repeat("y", 20_000) + "\n"})
	big, err := os.Create(filepath.Join(w.root, "big.csv"))
	if err == nil {
		err = errors.Join(big.Truncate(tableBytesMax+1), big.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args string
		want string
	}{
		{`"rows.csv"}],"sql":"SELECT id FROM rows"`, "[100 rows; there are more: limit is 100, LIMIT and OFFSET go on]"},
		{`"rows.csv"}],"sql":"SELECT count(*), max(id), sum(length(text)) FROM rows"`, "   12345 |   12344 |            302340\n[1 row]"},
		{`"rows.csv"}],"limit":10000,"sql":"SELECT id FROM rows"`, "[10000 rows; there are more: limit is 10000, LIMIT and OFFSET go on; "},
		{`"rows.csv"}],"limit":10000,"sql":"SELECT text || printf('%.*c', 1000, 'z') FROM rows"`, "; there are more, left out as the result has"},
		{`"rows.csv"}],"limit":0,"sql":"SELECT 1"`, "limit"},
		{`"cols.csv"}],"sql":"SELECT * FROM cols"`, "; 1940 columns only in the structured result"},
		{`"more.csv"}],"sql":"SELECT 1"`, "line 2: a row of 2001 fields, at most 2000; is the delimiter ',' right?"},
		{`"long.csv"}],"sql":"SELECT a FROM long"`, "; 1 value cut"},
		{`"big.csv"}],"sql":"SELECT 1"`, "big.csv has 268435457 bytes; all sources together may have 268435456"},
	} {
		r := toolsRun(t, box, "table_query", `{"sources":[{"path":`+tc.args+`}`)
		if !strings.Contains(r.Text, tc.want) && r.Record == "" {
			t.Errorf("%s: %.300q lacks %q", tc.args, r.Text, tc.want)
		}
		if r.Record != "" {
			if _, body, err := box.vault.record(t.Context(), r.Record); err != nil || !json.Valid(body) && !strings.Contains(string(body), tc.want) {
				t.Errorf("%s: a record of %d bytes, %v", tc.args, len(body), err)
			}
		}
	}
}

// TestTableSpeed loads and aggregates a CSV file, and holds it to twice the time that only inserting the same rows takes, one by one with a prepared statement in one
// transaction. TAI_TABLE_ROWS sets how many rows (a million is what speed is promised for); the short form only shows that both come to the same sums, as its times
// say nothing.
func TestTableSpeed(t *testing.T) {
	rows, measured := 20_000, false
	if s := os.Getenv("TAI_TABLE_ROWS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		rows, measured = n, true
	} else {
		t.Parallel()
	}
	box, w, _ := dataBox(t, modeReadOnly, nil)
	f, err := os.Create(filepath.Join(w.root, "big.csv"))
	if err != nil {
		t.Fatal(err)
	}
	cities := []string{"Oslo", "Lima", "Cairo", "Quito"}
	value := func(i int) (id int, city string, amount float64, qty int, day string) {
		return i, cities[i*7%4], float64(i*31%100_000) / 4, i * 13 % 100, fmt.Sprintf("2024-%02d-%02d", i%12+1, i%28+1)
	}
	text := []byte("id,city,amount,qty,day\n")
	for i := range rows {
		id, city, amount, qty, day := value(i)
		text = fmt.Appendf(text, "%d,%s,%.2f,%d,%s\n", id, city, amount, qty, day)
	}
	if _, err := f.Write(text); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	const query = `SELECT city, count(*), sum(amount), sum(qty), max(day) FROM big GROUP BY city ORDER BY city`
	start := time.Now()
	r := toolsRun(t, box, "table_query", dataArgs(t, map[string]any{"sources": []any{map[string]any{"path": "big.csv"}}, "sql": query}))
	ours := time.Since(start)
	var doc struct{ Rows [][]any }
	if err := json.Unmarshal(r.Structured, &doc); err != nil || len(doc.Rows) != len(cities) {
		t.Fatalf("%+v, %v", r, err)
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	start = time.Now()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`CREATE TABLE big (id INTEGER, city TEXT, amount REAL, qty INTEGER, day TEXT)`); err != nil {
		t.Fatal(err)
	}
	insert, err := tx.Prepare(`INSERT INTO big VALUES (?, ?, ?, ?, ?)`)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		id, city, amount, qty, day := value(i)
		if _, err := insert.Exec(id, city, amount, qty, day); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	plain := time.Since(start)
	for _, row := range doc.Rows {
		var count, qty, amount float64
		var day string
		if err := db.QueryRow(`SELECT count(*), sum(amount), sum(qty), max(day) FROM big WHERE city = ?`, row[0]).Scan(&count, &amount, &qty, &day); err != nil {
			t.Fatal(err)
		}
		if row[1] != count || row[2] != amount || row[3] != qty || row[4] != day {
			t.Errorf("%v, want %v %v %v %v", row, count, amount, qty, day)
		}
	}
	if !measured {
		return
	}
	t.Logf("%d rows: table_query %v, inserting alone %v, ratio %.2f", rows, ours, plain, ours.Seconds()/plain.Seconds())
	if ours > 2*plain {
		t.Errorf("table_query took %v, more than twice %v", ours, plain)
	}
}
