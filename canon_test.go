package main

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// TestCanonNumbersRFC8785 holds the finite samples of RFC 8785, appendix B.
func TestCanonNumbersRFC8785(t *testing.T) {
	for _, tc := range []struct {
		bits uint64
		want string
	}{
		{0x0000000000000000, "0"}, {0x8000000000000000, "0"},
		{0x0000000000000001, "5e-324"}, {0x8000000000000001, "-5e-324"},
		{0x7fefffffffffffff, "1.7976931348623157e+308"}, {0xffefffffffffffff, "-1.7976931348623157e+308"},
		{0x4340000000000000, "9007199254740992"}, {0xc340000000000000, "-9007199254740992"},
		{0x4430000000000000, "295147905179352830000"},
		{0x44b52d02c7e14af5, "9.999999999999997e+22"}, {0x44b52d02c7e14af6, "1e+23"}, {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
		{0x444b1ae4d6e2ef4e, "999999999999999700000"}, {0x444b1ae4d6e2ef4f, "999999999999999900000"}, {0x444b1ae4d6e2ef50, "1e+21"},
		{0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"}, {0x3eb0c6f7a0b5ed8d, "0.000001"},
		{0x41b3de4355555553, "333333333.3333332"}, {0x41b3de4355555554, "333333333.33333325"}, {0x41b3de4355555555, "333333333.3333333"},
		{0x41b3de4355555556, "333333333.3333334"}, {0x41b3de4355555557, "333333333.33333343"},
		{0xbecbf647612f3696, "-0.0000033333333333333333"}, {0x43143ff3c1cb0959, "1424953923781206.2"},
	} {
		f := math.Float64frombits(tc.bits)
		if got := string(appendCanonNumber(nil, f)); got != tc.want {
			t.Errorf("%016x: %s, want %s", tc.bits, got, tc.want)
		}
		written := strconv.FormatFloat(f, 'e', 25, 64)
		if got, err := canonicalJSON([]byte(written)); err != nil || string(got) != tc.want {
			t.Errorf("%s: %s %v, want %s", written, got, err, tc.want)
		}
	}
}

func TestCanonicalJSON(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"RFC 8785 3.2.2", `{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
			"string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`},
		{"RFC 8785 3.2.3", `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",
			"\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			`{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`},
		{"nested", ` { "b" : [ { "z" : 1 , "a" : { "d" : { } , "c" : [ ] } } , { "y" : { "q" : 1 , "p" : 2 } } ] , "a" : { "x" : 1 } } `,
			`{"a":{"x":1},"b":[{"a":{"c":[],"d":{}},"z":1},{"y":{"p":2,"q":1}}]}`},
		{"in order outside, not inside", `{"a":{"y":1,"x":2},"b":{"d":3,"c":4},"c":[{"b":1,"a":2},{"b":{"n":1,"m":2},"a":3}]}`,
			`{"a":{"x":2,"y":1},"b":{"c":4,"d":3},"c":[{"a":2,"b":1},{"a":3,"b":{"m":2,"n":1}}]}`},
		{"prefix keys", `{"ab":1,"a":2,"":3}`, `{"":3,"a":2,"ab":1}`},
		{"escaped keys sort unescaped", `{"\"":1,"!":2,"#":3,"\u0061":4}`, `{"!":2,"\"":1,"#":3,"a":4}`},
		{"html and separators stay", `"<>&\u2028\u2029\u007f"`, "\"<>&\u2028\u2029\u007f\""},
		{"short escapes", `"\u0008\u0009\u000a\u000c\u000d\u0000\u001F"`, `"\b\t\n\f\r\u0000\u001f"`},
		{"minus zero", `[-0,-0.0,0e9,-0e-5]`, `[0,0,0,0]`},
		{"doubles", `[9007199254740993,123456789012345678,1e-400,0.1e1,100000000000000000000,1e21]`, `[9007199254740992,123456789012345680,0,1,100000000000000000000,1e+21]`},
		{"canonical already", `{"a":[1,-2,0.5,1e+21,"x"],"b":{"c":null}}`, `{"a":[1,-2,0.5,1e+21,"x"],"b":{"c":null}}`},
	} {
		got, err := canonicalJSON([]byte(tc.in))
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %s %v\nwant %s", tc.name, got, err, tc.want)
		}
		again, err := canonicalJSON(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s: a second pass gives %s %v", tc.name, again, err)
		}
	}
}

func TestCanonicalKeep(t *testing.T) {
	for in, want := range map[string]string{
		`{"b": 1.0, "a": [1e2, -0, 9007199254740993, 1E400]}`: `{"a":[1e2,-0,9007199254740993,1E400],"b":1.0}`,
		`{"b":"\uD83D x","a":"\ude00\ud83d\ud83d\ude00"}`:     `{"a":"\ude00\ud83d😀","b":"\ud83d x"}`,
		`{"\ud83dz":1,"\uD83Da":2}`:                           `{"\ud83da":2,"\ud83dz":1}`,
	} {
		if got, err := canonicalKeep([]byte(in)); err != nil || string(got) != want {
			t.Errorf("%s: %s %v, want %s", in, got, err, want)
		}
	}
	if _, err := canonicalKeep([]byte(`{"\ud83d":1,"\uD83D":2}`)); err == nil || !strings.Contains(err.Error(), "duplicate key") {
		t.Errorf("one lone surrogate twice as a key: %v", err)
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{``, "expected a value"}, {` `, "expected a value"}, {`{`, "expected a key"}, {`[`, "expected a value"}, {`[1`, "expected , or ]"}, {`{"a"`, "expected :"},
		{`{"a":1`, "expected , or }"}, {`{"a":1,}`, "expected a key"}, {`[1,]`, "expected a value"}, {`{a:1}`, "expected a key"}, {`1 2`, "more after"}, {`{}x`, "more after"},
		{`tru`, "expected a value"}, {`nulL`, "expected a value"}, {`NaN`, "expected a value"}, {`Infinity`, "expected a value"}, {`-Infinity`, "bad number"},
		{`01`, "bad number"}, {`-`, "bad number"}, {`1.`, "bad number"}, {`.5`, "expected a value"}, {`1e`, "bad number"}, {`1e+`, "bad number"}, {`+1`, "expected a value"}, {`0x1`, "more after"}, {`1_0`, "more after"},
		{`1e400`, "number 1e400 is beyond a double's range"}, {`-1e309`, "beyond"}, {`[` + strings.Repeat("9", 400) + `]`, "beyond"},
		{`"a`, "not closed"}, {`"\`, "not closed"}, {`"\q"`, "bad escape"}, {`"\u12g4"`, "bad escape"}, {`"\u12"`, "bad escape"}, {"\"a\nb\"", "control character"},
		{"\"\xff\"", "not UTF-8"}, {"\"\xed\xa0\x80\"", "not UTF-8"}, {"\"\xc0\x80\"", "not UTF-8"}, {"\"\xe2\x82\"", "not UTF-8"}, {"\xef\xbb\xbf1", "expected a value"},
		{`"\ud800"`, "lone surrogate"}, {`"\udc00\ud800"`, "lone surrogate"}, {`"\ud800\u0041"`, "lone surrogate"}, {`{"\ud800":1}`, "lone surrogate"},
		{`{"a":1,"a":1}`, `duplicate key "a"`}, {`{"a":1,"b":2,"\u0061":3}`, `duplicate key "a"`}, {`[{"x":{"k":1,"j":2,"k":3}}]`, `duplicate key "k"`}, {`{"":1,"":2}`, `duplicate key ""`},
		{"{\"\u202e\":1,\"\u202e\":2}", `duplicate key "\u202e"`}, // nothing raw in the error
		{strings.Repeat("[", jsonMaxDepth+1) + strings.Repeat("]", jsonMaxDepth+1), "nested deeper"},
	} {
		got, err := canonicalJSON([]byte(tc.in))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.60q: %q %v, want an error with %q", tc.in, got, err, tc.want)
		} else if len(err.Error()) > 300 {
			t.Errorf("%.60q: an error of %d bytes", tc.in, len(err.Error()))
		}
	}
	deep := strings.Repeat("[", jsonMaxDepth) + strings.Repeat("]", jsonMaxDepth)
	if got, err := canonicalJSON([]byte(deep)); err != nil || string(got) != deep {
		t.Errorf("%d levels: %v", jsonMaxDepth, err)
	}
}

func canonDigest(t *testing.T, tool, args string) string {
	t.Helper()
	d, err := payloadDigest(tool, json.RawMessage(args))
	if err != nil {
		t.Fatalf("digest of %s %s: %v", tool, args, err)
	}
	return d
}

func TestPOL04SameDigest(t *testing.T) {
	want := canonDigest(t, "file_write", `{"path":"a","n":1,"o":{"x":1,"y":[1,2]}}`)
	for _, args := range []string{
		"{ \"n\" : 1.0,\r\n\t\"path\":\"a\", \"o\": {\"y\":[1, 2.0],\"x\":1e0} }",
		`{"o":{"y":[10e-1,2],"x":1},"\u0070ath":"\u0061","n":1e0}`,
	} {
		if got := canonDigest(t, "file_write", args); got != want {
			t.Errorf("%s: another digest", args)
		}
	}
	if got, want := want, sha256Hex([]byte(`{"arguments":{"n":1,"o":{"x":1,"y":[1,2]},"path":"a"},"tool":"file_write"}`)); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	if canonDigest(t, "t", `{"n":1e21,"m":-0}`) != canonDigest(t, "t", `{"n":1000000000000000000000,"m":0}`) {
		t.Error("a whole number that is a double has two digests")
	}
	if got, err := canonicalLog([]byte(`{"b":[9007199254740993,1.0],"a":1e2}`)); err != nil || string(got) != `{"a":100,"b":["9007199254740993",1]}` {
		t.Errorf("for a log: %s, %v", got, err)
	}
	for args, exact := range map[string]bool{`{"a":9007199254740992}`: true, `{"a":1000000000000000000000}`: true, `{"a":"9007199254740993"}`: true, `{"a":1.00000000000000000}`: true,
		`{"a":9007199254740993}`: false, `{"a":[-9007199254740993]}`: false} { // POL-07
		if got := exactDigest("d", json.RawMessage(args)); (got == "d") != exact || !exact && got == exactDigest("d", json.RawMessage(strings.Replace(args, "3", "5", 1))) {
			t.Errorf("%s: %s, exact %v", args, got, exact)
		}
	}
	empty := canonDigest(t, "now", `{}`)
	if empty != sha256Hex([]byte(`{"arguments":{},"tool":"now"}`)) || canonDigest(t, "now", "") != empty || canonDigest(t, "now", " \n") != empty {
		t.Error("missing arguments are not {}")
	}
	// A fixed number: anyone can compute it with sha256sum.
	if want := "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"; sha256Hex([]byte("{}")) != want {
		t.Errorf("sha256 of {} is %s", sha256Hex([]byte("{}")))
	}
}

func TestPOL05OtherDigest(t *testing.T) {
	seen := map[string]string{}
	for _, args := range []string{`{"a":"1"}`, `{"a":1}`, `{"a":null}`, `{}`, `{"a":"\u00e9"}`, `{"a":"e\u0301"}`, `{"A":1}`, `{"a":[]}`, `{"a":{}}`, `{"a":false}`, `{"a":""}`, `{"a":"1 "}`} {
		d := canonDigest(t, "t", args)
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s share a digest", args, other)
		}
		seen[d] = args
	}
	if canonDigest(t, "t", `{}`) == canonDigest(t, "T", `{}`) {
		t.Error("two tools share a digest")
	}
	// A tool's name cannot reach into the arguments.
	if canonDigest(t, `t","x":"`, `{}`) == sha256Hex([]byte(`{"arguments":{},"tool":"t","x":""}`)) {
		t.Error("a quote in a tool name is not escaped")
	}
}

func TestPOL06DuplicateKeyNoDigest(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"a","path":"b"}`: `duplicate key "path"`, `{"o":{"k":1,"\u006b":2}}`: `duplicate key "k"`,
		`null`: "not an object", `[]`: "not an object", `"x"`: "not an object", `{} {}`: "more after", `{`: "expected a key",
	} {
		if d, err := payloadDigest("t", json.RawMessage(args)); err == nil || d != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q %v, want an error with %q", args, d, err, want)
		}
	}
	if d, err := payloadDigest("t\xff", nil); err == nil || d != "" {
		t.Errorf("a tool name that is not UTF-8: %q %v", d, err)
	}
}

func TestBridgedSubject(t *testing.T) {
	seen := map[string]bool{}
	for _, tc := range []struct{ server, tool, want string }{
		{"files", "read", "mcp:files/read"}, {"a/b", "c", "mcp:a%2Fb/c"}, {"a", "b/c", "mcp:a/b/c"}, {"a%2Fb", "c", "mcp:a%252Fb/c"}, {"é ü", "x%", "mcp:é ü/x%"},
	} {
		got := bridgedSubject(tc.server, tc.tool)
		if got != tc.want || seen[got] {
			t.Errorf("bridgedSubject(%q, %q) = %q, want %q", tc.server, tc.tool, got, tc.want)
		}
		seen[got] = true
	}
}

// TestCanonCompare holds the order against UTF-16 units made by the standard library.
func TestCanonCompare(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pool := []rune{0, 'a', 'b', 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xfb33, 0xffff, 0x10000, 0x1f600, 0x10ffff}
	word := func() string {
		r := make([]rune, random.IntN(4))
		for i := range r {
			r[i] = pool[random.IntN(len(pool))]
		}
		return string(r)
	}
	for range 20000 {
		a, b := word(), word()
		if got, want := canonSign(canonCompare([]byte(a), []byte(b))), canonUnits(a, b); got != want {
			t.Fatalf("canonCompare(%q, %q) = %d, want %d", a, b, got, want)
		}
	}
}

func canonSign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func canonUnits(a, b string) int {
	x, y := utf16.Encode([]rune(a)), utf16.Encode([]rune(b))
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return canonSign(int(x[i]) - int(y[i]))
		}
	}
	return canonSign(len(x) - len(y))
}

// TestCanonicalDeepUnordered: putting members in order must not cost the size of the input once for every level.
func TestCanonicalDeepUnordered(t *testing.T) {
	const levels, size = jsonMaxDepth - 1, 8 << 20
	in := strings.Repeat(`{"b":1,"a":`, levels) + `"` + strings.Repeat("x", size) + `"` + strings.Repeat("}", levels)
	start := time.Now()
	got, err := canonicalJSON([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat(`{"a":`, levels) + `"` + strings.Repeat("x", size) + `"` + strings.Repeat(`,"b":1}`, levels)
	if string(got) != want {
		t.Error("wrong order")
	}
	if d := time.Since(start); d > 2*time.Second { // tens of milliseconds; seconds if the text moved once a level
		t.Errorf("took %v", d)
	}
	wide := "[" + strings.TrimSuffix(strings.Repeat(`{"b":1,"a":2},`, 100000), ",") + "]"
	if got, err := canonicalJSON([]byte(wide)); err != nil || string(got) != strings.ReplaceAll(wide, `{"b":1,"a":2}`, `{"a":2,"b":1}`) {
		t.Errorf("wide: %v", err)
	}
}

func FuzzCanonicalJSON(f *testing.F) {
	for _, s := range []string{`{"b":[1.0,-0,1e21],"a":{"é":"\ud83d\ude00\u0000"}}`, `{"a":1,"a":2}`, `"\ud800"`, `[1e400]`, ` [ ] `, "\"\xff\"", `{"b":{"d":1,"c":2},"a":[{"z":1,"y":2}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := canonicalJSON(in)
		kept, keepErr := canonicalKeep(in)
		if err == nil && keepErr != nil {
			t.Fatalf("canonical but not kept: %v", keepErr)
		}
		if (err == nil || keepErr == nil) && !json.Valid(in) {
			t.Fatal("invalid JSON accepted")
		}
		if keepErr == nil && !json.Valid(kept) {
			t.Fatalf("kept form %q is not JSON", kept)
		}
		if err != nil {
			return
		}
		var a, b any
		if json.Unmarshal(in, &a) != nil || json.Unmarshal(got, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%q became %q: another value", in, got)
		}
		again, err := canonicalJSON(got)
		if err != nil || !bytes.Equal(again, got) || !utf8.Valid(got) {
			t.Fatalf("not stable: %q then %q %v", got, again, err)
		}
	})
}

func canonSample() []byte {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i := range 40 {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(`"p` + strconv.Itoa(i) + `":{"type":"string","description":"how many lines to read from the file","minLength":1}`)
	}
	b.WriteString(`},"required":["p1","p2"]}`)
	return []byte(b.String())
}

func BenchmarkCanonicalUnordered4K(b *testing.B) { benchCanon(b, canonSample()) }

func BenchmarkCanonicalOrdered4K(b *testing.B) {
	in, err := canonicalJSON(canonSample())
	if err != nil {
		b.Fatal(err)
	}
	benchCanon(b, in)
}

func BenchmarkCanonicalAuditLine(b *testing.B) {
	benchCanon(b, []byte(`{"seq":17,"time":"2026-01-02T03:04:05.678Z","run":"mcp-0123456789abcdef","event":"tool_call_completed","call":"c-8","kind":"native","subject":"file_read","digest":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","outcome":"ok","duration_ms":3,"size":1234,"prev":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"}`))
}

func benchCanon(b *testing.B, in []byte) {
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := canonicalJSON(in); err != nil {
			b.Fatal(err)
		}
	}
}
