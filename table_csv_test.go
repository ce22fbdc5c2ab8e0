package main

import (
	"bytes"
	"database/sql/driver"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
)

// csvAll reads all rows, from a reader that gives what it likes at a time.
func csvAll(r io.Reader, comma byte, quotes bool) (rows [][]string, err error) {
	c := csvReader{r: r, comma: comma, quotes: quotes, buf: make([]byte, 16)} // so that rows go over its end
	for {
		fields, err := c.next()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		row := []string{}
		for _, f := range fields {
			row = append(row, string(f))
		}
		rows = append(rows, row)
	}
}

func TestCSVReader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", 3*csvBuffer)
	for _, tc := range []struct {
		text   string
		comma  byte
		plain  bool // quotes are text
		want   [][]string
		failed string
	}{
		{text: "", want: nil},
		{text: "a", want: [][]string{{"a"}}},
		{text: "a,b\n1,2\n", want: [][]string{{"a", "b"}, {"1", "2"}}},
		{text: "a,b\r\n1,2\r\n\r\n\n3,\r\n,4", want: [][]string{{"a", "b"}, {"1", "2"}, {"3", ""}, {"", "4"}}},
		{text: "\"a,b\",\"c\"\"d\"\n\"e\nf\",\"\"\n", want: [][]string{{"a,b", `c"d`}, {"e\nf", ""}}},
		{text: "\"\"\n\n\"\"", want: [][]string{{""}, {""}}},
		{text: "\"a\r\nb\"\r\nc", want: [][]string{{"a\r\nb"}, {"c"}}},
		{text: "a\"b,c\n", want: [][]string{{`a"b`, "c"}}},
		{text: "\"a\" b,c\n", want: [][]string{{"a b", "c"}}},
		{text: "\"a\"\"\",\"\"\"\"\n", want: [][]string{{`a"`, `"`}}},
		{text: "a;b,c;\"d;e\"\n", comma: ';', want: [][]string{{"a", "b,c", "d;e"}}},
		{text: "a\t\"b\"\tc\n", comma: '\t', plain: true, want: [][]string{{"a", `"b"`, "c"}}},
		{text: "a,\"b\nc", failed: "line 1: a quote opens in this row and never closes"},
		{text: "a\nb,\"c\nd\"\n\"", failed: "line 4: a quote opens"},
		{text: "x," + long + ",\"" + long + "\n\"\nz", want: [][]string{{"x", long, long + "\n"}, {"z"}}},
		{text: strings.Repeat("z", csvRowMax+1), failed: "line 1: a row of more than 16777216 bytes"},
		{text: "caf\xe9,\x00\n", want: [][]string{{"caf\xe9", "\x00"}}},
	} {
		if tc.comma == 0 {
			tc.comma = ','
		}
		readers := map[string]io.Reader{"whole": strings.NewReader(tc.text), "end with data": iotest.DataErrReader(strings.NewReader(tc.text))}
		if len(tc.text) < 100 {
			readers["a byte at a time"] = iotest.OneByteReader(strings.NewReader(tc.text))
		}
		for name, r := range readers {
			got, err := csvAll(r, tc.comma, !tc.plain)
			if tc.failed != "" {
				if err == nil || !strings.Contains(err.Error(), tc.failed) {
					t.Errorf("%.40q, %s: %v, want %q", tc.text, name, err, tc.failed)
				}
				continue
			}
			if err != nil || !slices.EqualFunc(got, tc.want, slices.Equal[[]string]) {
				t.Errorf("%.40q, %s: %.100q, %v, want %.100q", tc.text, name, got, err, tc.want)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := csvAll(io.MultiReader(strings.NewReader("a,b\n"), iotest.ErrReader(broken)), ',', true); err != broken {
		t.Errorf("a reader that fails: %v", err)
	}
}

func TestCSVDelimiter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]byte{
		"a,b\n1,2\n": ',', "a;b\n1,5;2\n3,5;4\n": ';', "a\tb\n1\t2\n": '\t', "a|b|c\n1|2|3": '|', "one column\nof text\n": ',', "": ',',
		"name;note\nx;\"a, b, c\"\ny;d, e, f\n": ';', "a,b,c\n\"x;y\",2,3\n\"z;w\",5,6\n": ',', "t; x,y\n1; 2,3\n": ',', "\"a;b\";c\n\"d\";e\n": ';',
	} {
		if got := csvDelimiter([]byte(text), true, true); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestUTF16Reader(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a,é,漢,😀\n", 5000)
	for _, big := range []bool{false, true} {
		var b []byte
		for _, u := range utf16.Encode([]rune(text)) {
			if big {
				b = append(b, byte(u>>8), byte(u))
			} else {
				b = append(b, byte(u), byte(u>>8))
			}
		}
		for name, r := range map[string]io.Reader{"whole": bytes.NewReader(b), "a byte at a time": iotest.OneByteReader(bytes.NewReader(b))} {
			got, err := io.ReadAll(&utf16Reader{r: r, big: big})
			if err != nil || string(got) != text {
				t.Errorf("big %v, %s: %d bytes, %v, want %d", big, name, len(got), err, len(text))
			}
		}
	}
	for in, want := range map[string]string{"a\x00\x00\xd8": "a\uFFFD", "\x00\xd8a\x00": "\uFFFDa", "\x00\xdca\x00": "\uFFFDa", "a\x00b": "a\uFFFD", "": ""} {
		if got, err := io.ReadAll(&utf16Reader{r: strings.NewReader(in)}); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
}

func TestTableCell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]tableKind{
		"0": tableInt, "-1": tableInt, "9007199254740992": tableInt, "9007199254740993": tableInt | tableWide, "-9223372036854775808": tableInt | tableWide, "9223372036854775808": tableText,
		"007": tableText, "+5": tableText, "1,5": tableText, "1.5": tableReal, "-0": tableReal, "1e3": tableReal, "1e999": tableText, "1.": tableText, ".5": tableText, "0x10": tableText,
		" 7 ": tableInt, "\t1.5": tableReal, "": tableText, " ": tableText, "-": tableText, "NaN": tableText, "Inf": tableText, "true": tableText, "2024-01-02": tableText, "1_000": tableText, "٣": tableText, "1 2": tableText,
		strings.Repeat("9", 400) + ".5": tableText,
	} {
		if got := tableCell([]byte(text)); got != want {
			t.Errorf("%q: %b, want %b", text, got, want)
		}
	}
}

func TestTableNames(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"orders.csv": "orders", "my file-2.final.csv": "my_file_2_final", "2024.csv": "t_2024", "order.csv": "order_", ".csv": "csv", "---.csv": "t", "größe.tsv": "größe", "sqlite_x.csv": "t_sqlite_x", "a\nb.csv": "a_b", "r-7k2m": "r_7k2m",
	} {
		if got := tableNameOf(base); got != want {
			t.Errorf("%q: %q, want %q", base, got, want)
		}
	}
	var got []string
	for _, c := range tableColumnNames([]string{" id ", "ID", "", "a\nb", "x\u202e\x00y", strings.Repeat("é", 200), "c3"}, 9) {
		got = append(got, c.Name)
	}
	if want := []string{"id", "ID_2", "c3", "a b", "xy", strings.Repeat("é", tableNameMax/2), "c3_2", "c8", "c9"}; !slices.Equal(got, want) {
		t.Errorf("columns %q, want %q", got, want)
	}
}

// FuzzTableCSV holds the reader against encoding/csv: what that takes for valid has as many rows and the same fields here, but for CR LF inside quotes, which
// encoding/csv makes LF. Nothing panics, and how the text comes in makes no difference.
func FuzzTableCSV(f *testing.F) {
	for _, s := range []string{"a,b\n1,2\n", "\"a\"\"b\",c\r\n\r\n\"x\ny\",\n", "a;b\n\"", "\"a\"b,c", "\r", "\"\r\n\"", "a,\"b\r\nc\"\r", "\xff,\x00", " \"a\"", ",\n,", "\"\"\n\"\""} {
		f.Add(s, byte(0))
	}
	f.Fuzz(func(t *testing.T, text string, which byte) {
		checkCSV(t, text, csvDelimiters[int(which)%len(csvDelimiters)])
	})
}

// TestCSVRandom is the same for many short texts of the characters that matter.
func TestCSVRandom(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4180, 1))
	for range 10_000 {
		b := make([]byte, r.IntN(24))
		for i := range b {
			b[i] = "a1 ,;\"\"\"\r\n\n"[r.IntN(11)]
		}
		checkCSV(t, string(b), ',')
	}
}

func checkCSV(t *testing.T, text string, comma byte) {
	t.Helper()
	got, err := csvAll(strings.NewReader(text), comma, true)
	slow, slowErr := csvAll(iotest.OneByteReader(strings.NewReader(text)), comma, true)
	if fmt.Sprint(err) != fmt.Sprint(slowErr) || !slices.EqualFunc(got, slow, slices.Equal[[]string]) {
		t.Fatalf("%q: %q, %v; a byte at a time %q, %v", text, got, err, slow, slowErr)
	}
	std := csv.NewReader(strings.NewReader(text))
	std.Comma, std.FieldsPerRecord = rune(comma), -1
	want, stdErr := std.ReadAll()
	if stdErr != nil {
		return
	}
	for _, row := range got {
		for i := range row {
			row[i] = strings.ReplaceAll(row[i], "\r\n", "\n")
		}
	}
	if err != nil || !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Fatalf("%q: %q, %v, want %q", text, got, err, want)
	}
}

// FuzzTableJSON reads any text as JSON and as JSON lines, twice as the loader does: both passes must have the same rows.
func FuzzTableJSON(f *testing.F) {
	for _, s := range []string{`[{"a":1},{"b":[1]}]`, `{"x":[[1,2],[3]]}`, "{\"a\":1}\n{\"a\":\"x\"}\nbad\n[1]\n", `[1,"x",null]`, "\xff\xfe[\x00]\x00", `[{"a":1,"a":2}]`, `{"a":{"b":[}}`, `[{"":-0,"x":1e999}]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, format := range []string{"json", "jsonl"} {
			in := &tableInput{tableSource: tableSource{Format: format}, size: int64(len(text)), body: strings.NewReader(text)}
			d, err := in.read(t.Context())
			if err != nil {
				continue
			}
			rows := int64(0)
			err = d.each(t.Context(), func(row []driver.Value) error {
				if rows++; len(row) != len(d.types) || len(row) != len(d.columns) {
					return fmt.Errorf("a row of %d values, %d columns", len(row), len(d.columns))
				}
				return nil
			})
			if err != nil || rows != d.rows {
				t.Fatalf("%s of %q: %d rows, %v, want %d", format, text, rows, err, d.rows)
			}
			var all []any
			if format == "json" && json.Unmarshal([]byte(text), &all) == nil && int64(len(all)) != d.rows {
				t.Fatalf("%q: %d rows, encoding/json has %d", text, d.rows, len(all))
			}
		}
	})
}
