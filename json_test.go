package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDecodeStrict(t *testing.T) {
	type inner struct {
		Name string `json:"name"`
	}
	type doc struct {
		Version int              `json:"version"`
		List    []inner          `json:"list"`
		Map     map[string]inner `json:"map"`
		Raw     json.RawMessage  `json:"raw"`
	}
	for in, ok := range map[string]bool{
		`{"version":1,"list":[{"name":"a"}],"map":{"X":{"name":"b"}},"raw":{"Any":1}}`: true,
		`{"Version":1}`:                    false,
		`{"version":1,"version":2}`:        false,
		`{"other":1}`:                      false,
		`{"list":[{"Name":"a"}]}`:          false,
		`{"map":{"x":{"nam":"a"}}}`:        false,
		`{"raw":{"a":1,"a":2}}`:            false,
		`{"version":"1"}`:                  false,
		`{"version":1} x`:                  false,
		"{\"list\":[{\"name\":\"\xff\"}]}": false,
	} {
		var d doc
		if err := decodeStrict([]byte(in), &d); (err == nil) != ok {
			t.Errorf("decodeStrict(%s) = %v, want ok %v", in, err, ok)
		}
	}
}

// FuzzJSON holds the splitter against encoding/json: what one takes the other takes, but for duplicate keys and depth.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":"\u00e9\n"}],"c":-0.1e+5}`, `[]`, `{}`, `"x"`, `{"a":1,"a":2}`, `[1,]`, `{"a"}`, `{"jsonrpc":"2.0"}`, `[[[]]`, "\xff", `"\ud800"`, `01`, `nul`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		valid := json.Valid(b) && utf8.Valid(b)
		err := checkJSON(b)
		if err == nil && !valid {
			t.Fatalf("checkJSON took %q", b)
		}
		if err != nil && valid && !strings.Contains(err.Error(), "twice") && !strings.Contains(err.Error(), "nested") {
			t.Fatalf("checkJSON(%q) = %v", b, err)
		}
		if err == nil {
			var want, got bytes.Buffer
			if json.Compact(&want, b) != nil {
				t.Fatal("compact")
			}
			got.Write(compactJSON(nil, b))
			if want.String() != got.String() {
				t.Fatalf("compactJSON(%q) = %q, want %q", b, got.String(), want.String())
			}
			if members, err := jsonObject(b); err == nil {
				var m map[string]json.RawMessage
				if json.Unmarshal(b, &m) != nil || len(m) != len(members) {
					t.Fatalf("jsonObject(%q) = %d members, want %d", b, len(members), len(m))
				}
				for _, x := range members {
					if v, ok := m[x.Key]; !ok || !bytes.Equal(bytes.TrimSpace(v), x.Value) {
						t.Fatalf("jsonObject(%q): %q = %q, want %q", b, x.Key, x.Value, v)
					}
				}
			}
		}
		s := string(b)
		quoted := appendJSONString(nil, s)
		back, ok := jsonString(quoted)
		if !ok || back != strings.ToValidUTF8(s, "\ufffd") && utf8.ValidString(s) {
			t.Fatalf("appendJSONString(%q) = %q, back %q", s, quoted, back)
		}
	})
}

// TestR5JSONObject: what the splitter takes, what it refuses, and what it leaves to others.
func TestR5JSONObject(t *testing.T) {
	members, err := jsonObject([]byte(" {\"a\" : [1, {\"x\":2}] ,\t\"\\u0062\":\"\\\"}\" , \"\":-1.5e+3\r\n} "))
	if err != nil || len(members) != 3 {
		t.Fatalf("%v %v", members, err)
	}
	for i, want := range [][2]string{{"a", `[1, {"x":2}]`}, {"b", `"\"}"`}, {"", "-1.5e+3"}} {
		if members[i].Key != want[0] || string(members[i].Value) != want[1] {
			t.Errorf("member %d: %q %s, want %v", i, members[i].Key, members[i].Value, want)
		}
	}
	deep := `{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`
	if _, err := jsonObject([]byte(deep)); err != nil {
		t.Errorf("splitting looks at no depth: %v", err)
	}
	if err := checkJSON([]byte(deep)); err == nil || !strings.Contains(err.Error(), "nested deeper") {
		t.Errorf("LST-10: %v", err)
	}
	for _, in := range []string{
		"", " ", "null", "[]", `"a"`, "1", "{", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `{"a" 1}`, `{"a":1 "b":2}`, `{"a":1}{}`, `{"a":1}x`, `{a:1}`, `{'a':1}`, `{1:2}`,
		`{"a":tru}`, `{"a":nan}`, `{"a":01}`, `{"a":1.}`, `{"a":.1}`, `{"a":1e}`, `{"a":+1}`, `{"a":-}`, `{"a":--1}`, `{"a":"x}`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, "{\"a\":\"\n\"}", "{\"a\":\"\x00\"}", "{\"a\n\":1}",
		`{"a":[}`, `{"a":[1}]`, `{"a":{]}`, `{"a":["]}`, "{\"a\":\"\xff\"}", "{\"\xff\":1}", "\xef\xbb\xbf{}", "{\"a\":\"\xed\xa0\x80\"}", `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"A":1,"a":2,"A":3}`, `{/**/}`, `{"a":1}//`,
	} {
		if members, err := jsonObject([]byte(in)); err == nil {
			t.Errorf("%q is taken: %v", in, members)
		}
		if strings.HasPrefix(in, "{") && checkJSON([]byte(in)) == nil {
			t.Errorf("checkJSON takes %q", in)
		}
	}
	many := make([]string, 100)
	for i := range many {
		many[i] = `"k` + strings.Repeat("x", i) + `":1`
	}
	all := strings.Join(many, ",")
	if _, err := jsonObject([]byte("{" + all + "}")); err != nil {
		t.Error(err)
	}
	if _, err := jsonObject([]byte("{" + all + `,"kxxx":2}`)); err == nil || !strings.Contains(err.Error(), `"kxxx"`) {
		t.Errorf("a duplicate among many: %v", err)
	}
	_, err = jsonObject([]byte(`{"\u001b[2J` + strings.Repeat("k", 500) + `":1,"\u001b[2J` + strings.Repeat("k", 500) + `":1}`))
	if err == nil || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 200 {
		t.Errorf("R6: %v", err)
	}
}

func TestR5JSONArray(t *testing.T) {
	items, err := jsonArray([]byte(` [ 1 , "a,]" , {"b":[ ]},null ] `))
	if err != nil || len(items) != 4 || string(items[0]) != "1" || string(items[1]) != `"a,]"` || string(items[2]) != `{"b":[ ]}` || string(items[3]) != "null" {
		t.Errorf("%s %v", items, err)
	}
	for _, in := range []string{"", "{}", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1]]", "[1}", "[\"\xff\"]", "[tru]", "[1]x"} {
		if items, err := jsonArray([]byte(in)); err == nil {
			t.Errorf("%q is taken: %s", in, items)
		}
	}
}

func TestDecodeStrictNested(t *testing.T) {
	type base struct {
		ID string `json:"id"`
	}
	type item struct {
		N int `json:"n"`
	}
	type doc struct {
		*base
		Pair  [2]item           `json:"pair"`
		Deep  map[string][]item `json:"deep"`
		Any   any               `json:"any"`
		Skip  int               `json:"-"`
		Plain int
		small int
	}
	for in, want := range map[string]string{
		`{"pair":[{"n":1},{"n":2}],"deep":{"K":[{"n":3}]},"any":{"Whatever":[{"N":1}]},"Plain":1}`: "",
		`{"pair":[{"N":1},{"n":2}]}`: `unknown field "pair.0.N"`, `{"deep":{"k":[{"n":1},{"m":2}]}}`: `unknown field "deep.k.1.m"`,
		`{"plain":1}`: `unknown field "plain"`, `{"Skip":1}`: "unknown field", `{"-":1}`: "unknown field", `{"small":1}`: "unknown field",
		`{"ID":"x"}`: `unknown field "ID"`, `[]`: "not the expected JSON", `null`: "", `{"any":{"a":1,"a":2}}`: "twice",
	} {
		var d doc
		d.small = 1
		err := decodeStrict([]byte(in), &d)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

func TestJSONString(t *testing.T) {
	for in, want := range map[string]string{`""`: "", `"a"`: "a", ` "a" `: "a", `"\u00e9\n\/\ud83d\ude00"`: "é\n/😀", `"\ud800x"`: "\ufffdx", `"漢"`: "漢", `"\\"`: `\`, `"\""`: `"`} {
		if got, ok := jsonString(json.RawMessage(in)); !ok || got != want {
			t.Errorf("%s: %q %v, want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{"", `"`, `a`, `1`, `null`, `"a`, `a"`, `"a"b"`, `"\"`, `"\x"`, "\"\n\"", "\"\xff\"", `"a" "b"`, `["a"]`} {
		if got, ok := jsonString(json.RawMessage(in)); ok {
			t.Errorf("%q is a string: %q", in, got)
		}
	}
}

// FuzzPlainText holds the eight-at-a-time search against the plain one.
func FuzzPlainText(f *testing.F) {
	for _, s := range []string{"", "abcdefgh", "abcdefg\"", "\x1fabcdefgh", "é漢字😀\\", "\x80\x9f\xa0\xff\x20\x21\x23\x5b\x5d\x7f\x00", "aaaaaaaaaaaaaaaa!\"", "\x22\x23\x21\x1f\x20\x5c\x5d\x5b"} {
		f.Add([]byte(s), uint8(0))
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, from uint8) {
		i := min(int(from), len(b))
		want := i
		for want < len(b) && b[want] >= 0x20 && b[want] != '"' && b[want] != '\\' {
			want++
		}
		if got := plainText(b, i); got != want {
			t.Fatalf("plainText(%q, %d) = %d, want %d", b, i, got, want)
		}
	})
}

// FuzzJSONString holds quoting and unquoting against encoding/json.
func FuzzJSONString(f *testing.F) {
	for _, s := range []string{`"a"`, `"\ud83d\ude00"`, `"\ud800"`, `"a"b"`, "\"\x01\"", `"\/"`, "\"\xff\"", "a\x00\u2028<é\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var want string
		valid := json.Unmarshal(b, &want) == nil && utf8.Valid(b) && !bytes.Equal(bytes.TrimSpace(b), []byte("null"))
		got, ok := jsonString(b)
		if ok != valid && utf8.Valid(b) || ok && got != want {
			t.Fatalf("jsonString(%q) = %q %v, want %q %v", b, got, ok, want, valid)
		}
		quoted := appendJSONString([]byte("x"), string(b))[1:]
		var back string
		if err := json.Unmarshal(quoted, &back); err != nil || back != strings.Map(func(r rune) rune { return r }, string(b)) || !utf8.Valid(quoted) {
			t.Fatalf("appendJSONString(%q) = %q, read as %q %v", b, quoted, back, err)
		}
		if checkJSON(quoted) != nil {
			t.Fatalf("checkJSON refuses %q", quoted)
		}
	})
}

// FuzzDecodeStrict: what it takes, encoding/json takes too with unknown fields refused, and with the same outcome.
func FuzzDecodeStrict(f *testing.F) {
	type inner struct {
		Name string          `json:"name"`
		Raw  json.RawMessage `json:"raw,omitempty"`
	}
	type doc struct {
		Version int              `json:"version"`
		List    []inner          `json:"list"`
		Map     map[string]inner `json:"map"`
	}
	for _, s := range []string{`{"version":1,"list":[{"name":"a","raw":{"X":1}}],"map":{"k":{"name":"b"}}}`, `{"Version":1}`, `{"list":[{"NAME":""}]}`, `null`, `{"map":{"a":null}}`, `{"version":1,"version":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var got, want doc
		if decodeStrict(b, &got) != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("%q is taken, encoding/json says %v", b, err)
		}
		x, _ := json.Marshal(got)
		y, _ := json.Marshal(want)
		if !bytes.Equal(x, y) {
			t.Fatalf("%q: %s, want %s", b, x, y)
		}
	})
}

func BenchmarkJSONObjectText1M(b *testing.B) {
	in := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat(`some text of a tool result, with a line break\nand more `, 19000) + `"}]}`)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if _, err := jsonObject(in); err != nil {
			b.Fatal(err)
		}
	}
}

// LST-07: a JSON text on a screen hides nothing, and means the same.
func TestEscapeHidden(t *testing.T) {
	in := "{\"a\":\"x\u202ey\U000e0041\u0085 é\"}"
	got := string(escapeHidden([]byte(in)))
	if want := `{"a":"x\u202ey\udb40\udc41\u0085 é"}`; got != want {
		t.Errorf("escapeHidden = %s, want %s", got, want)
	}
	var before, after map[string]string
	if json.Unmarshal([]byte(in), &before) != nil || json.Unmarshal([]byte(got), &after) != nil || before["a"] != after["a"] {
		t.Errorf("the value changed from %q to %q", before["a"], after["a"])
	}
}

// What has been split before is split alike: strings are only passed over, and must end where they end.
func TestJSONSplitAgain(t *testing.T) {
	for _, in := range []string{`{}`, `{"a":"x\\"}`, `{"a":"\\\\\"","b":"\"\\"}`, `{"a":{"b":["]","\"}"]},"c":1}`, `{"":"","k\"":"é"}`, ` { "a" : [ 1 , "\u0041" ] } `} {
		want, err := jsonObject([]byte(in))
		if err != nil {
			t.Fatal(in, err)
		}
		p := jsonScan{b: []byte(in), again: true}
		got, err := p.members(nil)
		if err != nil || len(got) != len(want) {
			t.Fatalf("split again, %s = %v, %v", in, got, err)
		}
		for i := range got {
			if got[i].Key != want[i].Key || string(got[i].Value) != string(want[i].Value) {
				t.Errorf("split again, %s member %d = %s:%s, want %s:%s", in, i, got[i].Key, got[i].Value, want[i].Key, want[i].Value)
			}
			a, aok := jsonString(want[i].Value)
			b, bok := memberString(got[i].Value)
			if a != b || aok != bok {
				t.Errorf("memberString(%s) = %q %v, want %q %v", got[i].Value, b, bok, a, aok)
			}
		}
	}
	for _, in := range []string{`{"a":"x`, `{"a":"x\"`, `{"a":[}`, `{"a" 1}`, `{"a":1`, `"`, ``} {
		p := jsonScan{b: []byte(in), again: true}
		if got, err := p.members(nil); err == nil {
			t.Errorf("split again, %q = %v, want an error", in, got)
		}
	}
}
