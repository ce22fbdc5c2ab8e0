package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestTOMLCorpus compares the reader with the public corpus of github.com/toml-lang/toml-test for TOML 1.0.0:
//
//	(cd testdata/toml-test && go run . DIR) && TAI_TOML_CORPUS=DIR go test -run TOMLCorpus .
func TestTOMLCorpus(t *testing.T) {
	dir := os.Getenv("TAI_TOML_CORPUS")
	if dir == "" {
		t.Skip("TAI_TOML_CORPUS is not set; testdata/toml-test writes the corpus (its head says how)")
	}
	var valid, invalid, wrong int
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".toml" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fault := ""
		switch kind, _, _ := strings.Cut(filepath.ToSlash(name), "/"); kind {
		case "valid":
			valid++
			fault = tomlCorpusValid(b, strings.TrimSuffix(path, ".toml")+".json")
		case "invalid":
			invalid++
			fault = tomlCorpusInvalid(b)
		default:
			fault = "is neither valid nor invalid"
		}
		if fault != "" {
			wrong++
			t.Errorf("%s: %s", name, fault)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if valid < 205 || invalid < 474 {
		t.Errorf("%s has %d valid and %d invalid documents, want at least 205 and 474", dir, valid, invalid)
	}
	t.Logf("toml-test: %d valid, %d invalid, %d judged wrong", valid, invalid, wrong)
}

func tomlCorpusValid(b []byte, wantFile string) string {
	got, err := parseTOML(b)
	if err != nil {
		return err.Error()
	}
	text, err := os.ReadFile(wantFile)
	if err != nil {
		return err.Error()
	}
	var want any
	if err := json.Unmarshal(text, &want); err != nil {
		return err.Error()
	}
	return tomlDiffer("", got, want)
}

func tomlCorpusInvalid(b []byte) string {
	v, err := parseTOML(b)
	if err == nil {
		return fmt.Sprintf("taken, as %v", v)
	}
	if e, ok := errors.AsType[*tomlError](err); !ok || e.Line < 1 || e.Column < 1 {
		return fmt.Sprintf("error %#v has no place", err)
	}
	return ""
}

// tomlDiffer names the first difference between a value and the corpus's tagged JSON for it.
func tomlDiffer(path string, got, want any) string {
	switch w := want.(type) {
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s: got %v, want %v", path, got, want)
		}
		for i := range w {
			if d := tomlDiffer(fmt.Sprintf("%s[%d]", path, i), g[i], w[i]); d != "" {
				return d
			}
		}
	case map[string]any:
		if kind, ok := w["type"].(string); ok && len(w) == 2 {
			if text, ok := w["value"].(string); ok {
				if !tomlSame(got, kind, text) {
					return fmt.Sprintf("%s: got %#v, want %s %q", path, got, kind, text)
				}
				return ""
			}
		}
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s: got %v, want %v", path, got, want)
		}
		for k := range w {
			if _, ok := g[k]; !ok {
				return fmt.Sprintf("%s: no key %q", path, k)
			}
			if d := tomlDiffer(path+"."+k, g[k], w[k]); d != "" {
				return d
			}
		}
	default:
		return fmt.Sprintf("%s: corpus holds a %T", path, want)
	}
	return ""
}

// tomlSame says whether got is the scalar of the corpus's kind and text.
func tomlSame(got any, kind, text string) bool {
	switch g := got.(type) {
	case string:
		return kind == "string" && g == text
	case bool:
		return kind == "bool" && strconv.FormatBool(g) == text
	case tomlNumber:
		if !g.Float {
			v, ok := g.integer()
			return kind == "integer" && ok && strconv.FormatInt(v, 10) == text
		}
		if strings.HasSuffix(text, "nan") {
			return kind == "float" && math.IsNaN(g.float())
		}
		want, err := strconv.ParseFloat(text, 64)
		return kind == "float" && err == nil && g.float() == want
	case tomlTime:
		layouts := map[tomlTimeKind][2]string{
			tomlOffsetDateTime: {"datetime", time.RFC3339Nano},
			tomlLocalDateTime:  {"datetime-local", "2006-01-02T15:04:05.999999999"},
			tomlLocalDate:      {"date-local", time.DateOnly},
			tomlLocalTime:      {"time-local", "15:04:05.999999999"},
		}
		l := layouts[g.Kind]
		have, err1 := time.Parse(l[1], strings.NewReplacer(" ", "T", "t", "T", "z", "Z").Replace(g.Text))
		want, err2 := time.Parse(l[1], text)
		return kind == l[0] && err1 == nil && err2 == nil && have.Format(l[1]) == want.Format(l[1])
	}
	return false
}

func TestTOMLValid(t *testing.T) {
	table := func(kv ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i].(string)] = kv[i+1]
		}
		return m
	}
	integer := func(s string) tomlNumber { return tomlNumber{Text: s} }
	float := func(s string) tomlNumber { return tomlNumber{Text: s, Float: true} }
	for _, tc := range []struct {
		name, doc string
		want      map[string]any
	}{
		{"empty", "", table()},
		{"blank, comment, no last line end", " \t\r\n# héllo\ttab\n#", table()},
		{"byte order mark", "\ufeffa = 1", table("a", integer("1"))},
		{"servers", "[mcp_servers.\"my srv\"]\ncommand = 'C:\\bin\\x.exe'\nargs = [\"-y\", # why\n  \"pkg\",\n]\n[mcp_servers.\"my srv\".env]\nKEY = \"v\"\n",
			table("mcp_servers", table("my srv", table("command", `C:\bin\x.exe`, "args", []any{"-y", "pkg"}, "env", table("KEY", "v"))))},
		{"dotted keys", "a.b . \"c.d\" = true\na.e = false", table("a", table("b", table("c.d", true), "e", false))},
		{"sub-table of a dotted key's table", "[f]\na.c = 1\n[f.a.t]\ns = 2", table("f", table("a", table("c", integer("1"), "t", table("s", integer("2")))))},
		{"super-table afterwards", "[x.y]\n[x]\nz = 1", table("x", table("y", table(), "z", integer("1")))},
		{"dotted key into an implied table", "[x.y.z]\n[x]\ny.w = 1", table("x", table("y", table("z", table(), "w", integer("1"))))},
		{"array of tables", "[[a]]\nn = 1\n[a.s]\nx = 2\n[[a]]\n[[a.l]]\n[[a.l]]\ny = 3",
			table("a", []any{table("n", integer("1"), "s", table("x", integer("2"))), table("l", []any{table(), table("y", integer("3"))})})},
		{"inline tables", "a = {}\nb = { c.d = 1, c.e = [ {x = 1}, # no\n 2 ] }", table("a", table(), "b", table("c", table("d", integer("1"), "e", []any{table("x", integer("1")), integer("2")})))},
		{"strings", `a = "\b\t\n\f\r\"\\\u00e9\U0001F600"` + "\nb = ''\nc = \"\"\n'' = 'é'", table("a", "\b\t\n\f\r\"\\é😀", "b", "", "c", "", "", "é")},
		{"multi-line strings", "a = \"\"\"\r\none \\\n\n  \t two\"\" \\\" \"\"\"\"\"\nb = '''\n\\x'' '''''\nc = \"\"\"\"\"\"", table("a", "one two\"\" \" \"\"", "b", "\\x'' ''", "c", "")},
		{"integers", "a = +1_000\nb = -0\nc = 0xDEAD_beef\nd = 0o17\ne = 0b1_0\nf = -9223372036854775808",
			table("a", integer("+1_000"), "b", integer("-0"), "c", integer("0xDEAD_beef"), "d", integer("0o17"), "e", integer("0b1_0"), "f", integer("-9223372036854775808"))},
		{"floats", "a = 1.5e-3\nb = 1e06\nc = -inf\nd = +nan\ne = 6_0.0_1E+0_1\nf = 0e0", table("a", float("1.5e-3"), "b", float("1e06"), "c", float("-inf"), "d", float("+nan"), "e", float("6_0.0_1E+0_1"), "f", float("0e0"))},
		{"times", "a = 1979-05-27 07:32:00.999-07:00\nb = 2000-02-29T23:59:60z\nc = 2024-02-29t00:00:00\nd = 2024-12-31 # d\ne = 00:00:00.1",
			table("a", tomlTime{tomlOffsetDateTime, "1979-05-27 07:32:00.999-07:00"}, "b", tomlTime{tomlOffsetDateTime, "2000-02-29T23:59:60z"}, "c", tomlTime{tomlLocalDateTime, "2024-02-29t00:00:00"},
				"d", tomlTime{tomlLocalDate, "2024-12-31"}, "e", tomlTime{tomlLocalTime, "00:00:00.1"})},
		{"bare keys", "1.2 = 3\ntrue = 4\n-_ = 5", table("1", table("2", integer("3")), "true", integer("4"), "-_", integer("5"))},
	} {
		got, err := parseTOML([]byte(tc.doc))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		} else if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %#v, want %#v", tc.name, got, tc.want)
		}
	}
}

func TestTOMLInvalid(t *testing.T) {
	for _, tc := range []struct {
		doc          string
		line, column int
		msg          string
	}{
		{"a = 1\nb = 2\n  é = ]", 3, 3, `want a key, found 'é'`},
		{"a = 1\n\"é\" = ]", 2, 7, `want a value, found ']'`},
		{"a", 1, 2, "found the end of the text"},
		{"a = \n", 1, 5, "found the end of the line"},
		{"a = 1 b = 2", 1, 7, "want the end of the line, found 'b'"},
		{"a = 1\nb\xff = 2", 2, 2, "not UTF-8"},
		{"# \ufffd\n\xc3", 2, 1, "not UTF-8"},
		{"a = 1\rb = 2", 1, 6, "carriage return"},
		{"# \x7f", 1, 3, "U+007F"},
		{"a = 'x\x00'", 1, 7, "U+0000"},
		{"\x00", 1, 1, "U+0000"},
		{"a = \"\"\"\r\"\"\"", 1, 8, "carriage return"},
		{"a = 1\na = 2", 2, 1, `"a" is already defined`},
		{"a.b = 1\na.b.c = 2", 2, 1, `"b" already has a value`},
		{"[a]\n[a]", 2, 2, "already defined"},
		{"[a]\nb.c = 1\n[a.b]", 3, 2, "already defined"},
		{"[a.b]\n[a]\nb.c = 1", 3, 1, "has its own header"},
		{"[[a.b]]\n[a]\nb.c = 1", 3, 1, "has its own header"},
		{"a = {}\n[a.b]", 2, 2, "can't be extended"},
		{"a = {b.c = 1}\na.b.d = 1", 2, 1, "can't be extended"},
		{"a = {b = {}, b.c = 1}", 1, 14, "can't be extended"},
		{"a = []\n[[a]]", 2, 3, "already defined"},
		{"[[a.b]]\n[[a]]", 2, 3, "already defined"},
		{"[[a]]\n[a]", 2, 2, "already defined"},
		{"[a]\n[[a]]", 2, 3, "already defined"},
		{"[a\n]", 1, 3, `want "]"`},
		{"[[a] ]", 1, 4, `want "]]"`},
		{"[]", 1, 2, "want a key"},
		{"a = {b = 1,}", 1, 12, "want a key"},
		{"a = {b = 1\n}", 1, 11, `want "," or "}"`},
		{"a = [1 2]", 1, 8, `want "," or "]"`},
		{"a = [,]", 1, 6, "want a value"},
		{"a = [1", 1, 7, "end of the text"},
		{"a = \"x\ny\"", 1, 7, "not closed"},
		{"a = '''x", 1, 9, "not closed"},
		{`a = "\x41"`, 1, 6, "backslash"},
		{`a = "\ud800"`, 1, 6, "no Unicode character"},
		{`a = "\U00110000"`, 1, 6, "no Unicode character"},
		{`a = "\u12"`, 1, 6, "hexadecimal digits"},
		{`"""a""" = 1`, 1, 3, `want "="`},
		{"a = 01", 1, 5, "not a valid number"},
		{"a = 1__0", 1, 5, "not a valid number"},
		{"a = 0x_1", 1, 5, "not a valid number"},
		{"a = +0x1", 1, 5, "not a valid number"},
		{"a = 1.", 1, 5, "not a valid number"},
		{"a = .5", 1, 5, "not a valid number"},
		{"a = 1.e2", 1, 5, "not a valid number"},
		{"a = 03.1", 1, 5, "not a valid number"},
		{"a = 0x1e+2", 1, 5, "not a valid number"},
		{"a = 9223372036854775808", 1, 5, "64 bits"},
		{"a = 0x8000000000000000", 1, 5, "64 bits"},
		{"a = True", 1, 5, "text needs quotes"},
		{"a = npx", 1, 5, "text needs quotes"},
		{"a = 2023-02-29", 1, 5, "date or time"},
		{"a = 1900-02-29", 1, 5, "date or time"},
		{"a = 2023-13-01", 1, 5, "date or time"},
		{"a = 2023-04-31T00:00:00Z", 1, 5, "date or time"},
		{"a = 2023-01-00", 1, 5, "date or time"},
		{"a = 2023-01-01T24:00:00", 1, 5, "date or time"},
		{"a = 2023-01-01T00:00:00+24:00", 1, 5, "date or time"},
		{"a = 2023-01-01 07:32", 1, 5, "date or time"},
		{"a = 07:32:61", 1, 5, "date or time"},
		{"a = 07:32:00.", 1, 5, "date or time"},
		{"a = 07:32:00Z", 1, 5, "date or time"},
	} {
		got, err := parseTOML([]byte(tc.doc))
		e, ok := errors.AsType[*tomlError](err)
		if !ok {
			t.Errorf("parseTOML(%q) = %v, %v, want an error", tc.doc, got, err)
			continue
		}
		if e.Line != tc.line || e.Column != tc.column || !strings.Contains(e.Msg, tc.msg) {
			t.Errorf("parseTOML(%q): %v, want line %d, column %d, %q", tc.doc, err, tc.line, tc.column, tc.msg)
		}
	}
}

func TestTOMLErrorText(t *testing.T) {
	_, err := parseTOML([]byte("[mcp_servers.x]\nenv = { A = '1', B = secret }"))
	const want = `TOML line 2, column 22: not a valid value; text needs quotes (last key: "mcp_servers.x.B")`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	long := strings.Repeat("é", 5000)
	_, err = parseTOML([]byte("'" + long + "' = 1\n'" + long + "' = 1"))
	if err == nil || len(err.Error()) > 4*tomlKeyMax {
		t.Errorf("error of a long key is not clipped: %v", err)
	}
}

func TestTOMLNesting(t *testing.T) {
	at := func(n int) []string {
		return []string{
			"a = " + strings.Repeat("[", n) + strings.Repeat("]", n),
			"a = " + strings.Repeat("{a = ", n) + "1" + strings.Repeat("}", n),
			"[a" + strings.Repeat(".a", n-1) + "]",
			"a" + strings.Repeat(".a", n) + " = 1",
			"[a]\n" + strings.Repeat("a.", n-2) + "a = {}",
			"[a" + strings.Repeat(".a", n-2) + "]\na = []",
		}
	}
	for _, doc := range at(tomlMaxDepth) {
		if _, err := parseTOML([]byte(doc)); err != nil {
			t.Errorf("%.40q: %v", doc, err)
		}
	}
	for _, n := range []int{tomlMaxDepth + 1, 200_000} {
		for _, doc := range at(n) {
			if _, err := parseTOML([]byte(doc)); err == nil || !strings.Contains(err.Error(), "nest") {
				t.Errorf("%.40q nested %d deep: error %.200v, want one about nesting", doc, n, err)
			}
		}
	}
}

func TestTOMLNumbers(t *testing.T) {
	for text, want := range map[string]int64{"+1_000": 1000, "-0": 0, "0x7fff_ffff_ffff_ffff": math.MaxInt64, "0o17": 15, "0b101": 5, "-9223372036854775808": math.MinInt64} {
		if v, ok := (tomlNumber{Text: text}).integer(); !ok || v != want {
			t.Errorf("integer of %s = %d, %v, want %d", text, v, ok, want)
		}
	}
	for text, want := range map[string]float64{"6_0.5e1": 605, "-inf": math.Inf(-1), "1e999": math.Inf(1)} {
		if v := (tomlNumber{Text: text, Float: true}).float(); v != want {
			t.Errorf("float of %s = %v, want %v", text, v, want)
		}
	}
	if v := (tomlNumber{Text: "-nan", Float: true}).float(); !math.IsNaN(v) {
		t.Errorf("float of -nan = %v", v)
	}
	if v, ok := (tomlNumber{Text: "1.0", Float: true}).integer(); ok {
		t.Errorf("1.0 is an integer, %d", v)
	}
	if v := (tomlNumber{Text: "0x10"}).float(); v != 16 {
		t.Errorf("float of 0x10 = %v, want 16", v)
	}
}

func FuzzTOML(f *testing.F) {
	for _, doc := range []string{
		"a.b = {c = [1, 2.5e3, 0x1F]}\n[[x]]\ny = 2020-01-01 10:00:00Z\n", "a = \"\"\"\n\\u00e9 \\\n \"\"\"\"\"\n'b' = '''x'''", "[a]\n[a.b]\n[[a.c]]\n", "a = [[[", "\ufeff# \xff",
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, err := parseTOML(doc)
		if err == nil {
			if depth := tomlDepthOf(v); depth > 2*tomlMaxDepth+1 { // the list of an array of tables is not counted
				t.Errorf("depth %d", depth)
			}
			return
		}
		e, ok := errors.AsType[*tomlError](err)
		if !ok || v != nil || e.Line < 1 || e.Line > strings.Count(string(doc), "\n")+1 || e.Column < 1 || e.Column > len(doc)+1 {
			t.Errorf("%v with value %v is out of the document", err, v)
		}
	})
}

func tomlDepthOf(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			deepest = max(deepest, tomlDepthOf(e))
		}
	case []any:
		for _, e := range v {
			deepest = max(deepest, tomlDepthOf(e))
		}
	default:
		return 0
	}
	return deepest + 1
}

// float gives the nearest IEEE 754 binary64 value of a float or an integer; what is too large for it is an infinity.
func (n tomlNumber) float() float64 {
	if v, ok := n.integer(); ok {
		return float64(v)
	}
	if strings.HasSuffix(n.Text, "nan") {
		return math.NaN() // strconv takes no sign before it
	}
	v, _ := strconv.ParseFloat(strings.ReplaceAll(n.Text, "_", ""), 64) // the range is the one fault left; v is the infinity then
	return v
}
