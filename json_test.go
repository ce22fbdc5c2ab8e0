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
