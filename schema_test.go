package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"
)

const (
	schemaURI7    = `"$schema":"http://json-schema.org/draft-07/schema#"`
	schemaURI2019 = `"$schema":"https://json-schema.org/draft/2019-09/schema"`
)

func schemaFor(t *testing.T, raw string) *jsonSchema {
	t.Helper()
	s, err := compileSchema(json.RawMessage(raw))
	if err != nil {
		t.Fatalf("compile %.200s: %v", raw, err)
	}
	return s
}

// TestSchemaKeywords: each row is a schema, values that fit it and values that do not.
func TestSchemaKeywords(t *testing.T) {
	for _, tc := range []struct {
		schema   string
		yes, not []string
	}{
		{`true`, []string{`1`, `null`, `{}`}, nil},
		{`{}`, []string{`1`, `"x"`}, nil},
		{`false`, nil, []string{`1`, `null`, `{}`}},
		{`{"type":"integer"}`, []string{`1`, `1.0`, `1e0`, `10e-1`, `-0`, `1e400`, `123456789012345678901234567890`, `12345678901234567890.0`}, []string{`1.5`, `1e-1`, `"1"`, `null`, `true`, `9007199254740993.5`}},
		{`{"type":["string","null"]}`, []string{`"x"`, `null`}, []string{`1`, `[]`}},
		{`{"type":"number"}`, []string{`1`, `1.5`}, []string{`"1"`, `false`}},
		{`{"type":"boolean"}`, []string{`true`}, []string{`0`, `"true"`, `null`}},
		{`{"type":"object"}`, []string{`{}`}, []string{`[]`, `null`}},
		{`{"type":"array"}`, []string{`[]`}, []string{`{}`, `null`}},
		{`{"const":{"a":1,"b":[true]}}`, []string{`{"b":[true],"a":1.0}`}, []string{`{"a":1}`, `{"a":true,"b":[true]}`, `{"a":1,"b":[true],"c":0}`}},
		{`{"const":9007199254740993}`, []string{`9007199254740993`, `9007199254740993.0`}, []string{`9007199254740992`}},
		{`{"const":0}`, []string{`0`, `-0`, `0.0e5`}, []string{`false`, `"0"`, `null`}},
		{`{"const":"é"}`, []string{`"\u00e9"`}, []string{`"e\u0301"`}},
		{`{"const":null}`, []string{`null`}, []string{`0`, `""`}},
		{`{"enum":[1,"a",null,[1,2]]}`, []string{`1.0`, `"a"`, `null`, `[1,2.0]`}, []string{`2`, `"A"`, `[2,1]`, `false`}},
		{`{"enum":[]}`, nil, []string{`1`}},
		{`{"minimum":1.1,"maximum":3}`, []string{`1.1`, `3`, `3.0`, `"x"`}, []string{`1.09999999999999999999`, `3.00000000000000000001`, `-5`}},
		{`{"exclusiveMinimum":0,"exclusiveMaximum":1e30}`, []string{`1e-300`, `999999999999999999999999999999`}, []string{`0`, `-0.0`, `1000000000000000000000000000000`, `-1`}},
		{`{"minimum":0,"exclusiveMinimum":true,"maximum":5,"exclusiveMaximum":false}`, []string{`1`, `5`}, []string{`0`, `6`}},
		{`{"minimum":-2}`, []string{`-2`, `-1.5`, `1e9`}, []string{`-2.0001`, `-3`, `-1e9`}},
		{`{"multipleOf":0.01}`, []string{`4.02`, `0`, `1e300`, `-7.77`}, []string{`4.021`, `1e-3`}},
		{`{"multipleOf":3}`, []string{`9`, `9e0`, `300000000000000000000000000003`, `3e999999999`}, []string{`10`, `1.5`, `1e999999999`}},
		{`{"minLength":2,"maxLength":3}`, []string{`"ab"`, `"😀é"`, `"abc"`, `7`}, []string{`"a"`, `"😀"`, `"abcd"`}},
		{`{"maxLength":2.0}`, []string{`"ab"`}, []string{`"abc"`}},
		{`{"maxLength":1e30}`, []string{`"ab"`}, nil},
		{`{"pattern":"b+c"}`, []string{`"abbcd"`, `3`}, []string{`"ac"`}},
		{`{"pattern":"^a$"}`, []string{`"a"`}, []string{`"a\n"`, `"ba"`, "\"b\\na\""}},
		{`{"pattern":"^\\u00e9\\s$"}`, []string{`"é\u00a0"`, `"é "`, `"é\u2003"`}, []string{`"e "`, `"éx"`}},
		{`{"pattern":"^\\S[\\s]\\/\\u{1F600}?$"}`, []string{`"a\u00a0/"`, `"a /😀"`}, []string{`"\u00a0 /"`}},
		{`{"pattern":"^\\ud83d\\ude00$"}`, []string{`"😀"`}, []string{`"x"`}},
		{`{"minItems":1,"maxItems":2}`, []string{`[1]`, `[1,2]`, `{}`}, []string{`[]`, `[1,2,3]`}},
		{`{"uniqueItems":true}`, []string{`[1,"1",true,[1],{"a":1}]`, `[]`}, []string{`[1,1.0]`, `[{"a":1,"b":2},{"b":2,"a":1}]`, `[[1],[1e0]]`}},
		{`{"uniqueItems":false}`, []string{`[1,1]`}, nil},
		{`{"items":{"type":"string"}}`, []string{`[]`, `["a"]`, `{"0":1}`}, []string{`["a",1]`}},
		{`{"prefixItems":[{"type":"string"},{"type":"number"}],"items":false}`, []string{`["a",1]`, `["a"]`, `[]`}, []string{`[1]`, `["a",1,2]`}},
		{`{"items":[{"type":"string"}],"additionalItems":{"type":"number"}}`, []string{`["a",1]`}, []string{`["a","b"]`}},
		{`{` + schemaURI7 + `,"prefixItems":[{"type":"string"}]}`, []string{`[1]`}, nil},
		{`{"additionalItems":false,"items":{}}`, []string{`[1]`}, nil},
		{`{"contains":{"const":1}}`, []string{`[2,1]`, `"x"`}, []string{`[]`, `[2]`}},
		{`{"contains":{"const":1},"minContains":0,"maxContains":1}`, []string{`[]`, `[1,2]`}, []string{`[1,1]`}},
		{`{"contains":{"const":1},"minContains":2}`, []string{`[1,1]`}, []string{`[1]`}},
		{`{"properties":{"a":{"type":"string"}},"required":["a"]}`, []string{`{"a":"x"}`, `{"a":"x","b":1}`, `[]`}, []string{`{}`, `{"a":1}`, `{"A":"x"}`}},
		{`{"properties":{"a":true},"patternProperties":{"^x-":{"type":"number"}},"additionalProperties":false}`, []string{`{"a":1,"x-b":2}`}, []string{`{"x-b":"2"}`, `{"b":1}`, `{"ax-":1}`}},
		{`{"additionalProperties":{"type":"number"}}`, []string{`{"a":1}`}, []string{`{"a":"1"}`}},
		{`{"propertyNames":{"maxLength":2}}`, []string{`{"ab":1}`}, []string{`{"abc":1}`}},
		{`{"minProperties":1,"maxProperties":2}`, []string{`{"a":1}`}, []string{`{}`, `{"a":1,"b":2,"c":3}`}},
		{`{"dependentRequired":{"a":["b"]}}`, []string{`{"a":1,"b":2}`, `{"b":1}`}, []string{`{"a":1}`}},
		{`{"dependentSchemas":{"a":{"required":["b"]}}}`, []string{`{"a":1,"b":2}`, `{}`}, []string{`{"a":1}`}},
		{`{` + schemaURI7 + `,"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, []string{`{"a":1,"b":2}`, `{"c":1,"d":1}`}, []string{`{"a":1}`, `{"c":1}`}},
		{`{"allOf":[{"minimum":1},{"maximum":2}]}`, []string{`1`, `2`}, []string{`0`, `3`}},
		{`{"anyOf":[{"type":"string"},{"minimum":5}]}`, []string{`"a"`, `5`}, []string{`4`}},
		{`{"oneOf":[{"type":"integer"},{"minimum":2}]}`, []string{`1`, `2.5`}, []string{`3`, `1.5`}},
		{`{"not":{"type":"string"}}`, []string{`1`}, []string{`"a"`}},
		{`{"not":{"not":{"type":"string"}}}`, []string{`"a"`}, []string{`1`}},
		{`{"if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"required":["a"]},"else":{"required":["b"]}}`, []string{`{"k":1,"a":0}`, `{"k":2,"b":0}`, `{"b":0}`}, []string{`{"k":1}`, `{"k":2,"a":0}`, `{}`}},
		{`{"if":true,"else":false}`, []string{`1`}, nil},
		{`{"then":false,"else":false}`, []string{`1`}, nil},
		{`{"format":"email","contentEncoding":"base64","x-mine":7,"title":3}`, []string{`"no mail"`}, nil},
		{`{"unevaluatedProperties":false,"allOf":[{"properties":{"a":true}}],"properties":{"b":true}}`, []string{`{"a":1,"b":2}`}, []string{`{"c":1}`}},
		{`{"unevaluatedProperties":false,"anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":true}}]}`, []string{`{"a":"x","b":1}`, `{"b":1}`}, []string{`{"a":1}`, `{"c":1}`}},
		{`{"unevaluatedItems":false,"prefixItems":[true],"contains":{"type":"string"}}`, []string{`[1,"a"]`}, []string{`[1,"a",2]`}},
		{`{` + schemaURI2019 + `,"unevaluatedItems":false,"items":[true],"contains":{"type":"string"}}`, []string{`["a"]`}, []string{`[1,"a"]`}},
		{`{"$ref":"#/$defs/s","maxLength":1,"$defs":{"s":{"type":"string"}}}`, []string{`"a"`}, []string{`1`, `"ab"`}},
		{`{` + schemaURI7 + `,"$ref":"#/definitions/s","maxLength":1,"definitions":{"s":{"type":"string"}}}`, []string{`"a"`, `"ab"`}, []string{`1`}},
		{`{"$defs":{"a/b":{"$anchor":"here","const":1},"c~d%":{"const":2}},"anyOf":[{"$ref":"#here"},{"$ref":"#/$defs/c~0d%25"},{"$ref":"#/anyOf/3/properties/x"},{"properties":{"x":{"const":3}},"type":"object"}]}`, []string{`1`, `2`, `3`}, []string{`4`}},
		{`{"$defs":{"a/b":{"const":1}},"$ref":"#/$defs/a~1b"}`, []string{`1`}, []string{`2`}},
		{`{"$id":"https://example.com/tree","type":"object","properties":{"kids":{"items":{"$ref":"https://example.com/tree#"}},"v":{"type":"integer"}}}`, []string{`{"kids":[{"v":1,"kids":[{"v":2}]}]}`}, []string{`{"kids":[{"kids":[{"v":"2"}]}]}`}},
		{`{"$id":"https://example.com/a","$defs":{"in":{"$id":"in","$defs":{"x":{"const":1}},"$ref":"#/$defs/x"}},"$ref":"in"}`, []string{`1`}, []string{`2`}},
		{`{` + schemaURI2019 + `,"properties":{"n":{"$recursiveRef":"#"}},"additionalProperties":false}`, []string{`{"n":{"n":{}}}`}, []string{`{"n":{"m":{}}}`}},
		{`{"$dynamicAnchor":"node","properties":{"n":{"$dynamicRef":"#node"}},"additionalProperties":false}`, []string{`{"n":{"n":{}}}`}, []string{`{"n":{"m":{}}}`}},
		{`{"properties":{"$ref":{"type":"string"},"$id":{"type":"number"},"enum":{"const":1}}}`, []string{`{"$ref":"x","$id":1,"enum":1}`}, []string{`{"$ref":1}`, `{"$id":"x"}`, `{"enum":[]}`}},
		{`{"const":{"$ref":"http://example.com/x","$id":"y"}}`, []string{`{"$id":"y","$ref":"http://example.com/x"}`}, []string{`1`}},
		{`{"$defs":{"broken":{"type":"nonsense"}}}`, []string{`1`}, nil}, // never reached, so it harms nobody
	} {
		s := schemaFor(t, tc.schema)
		for _, v := range tc.yes {
			if err := s.validate(json.RawMessage(v)); err != nil {
				t.Errorf("%s refuses %s: %v", tc.schema, v, err)
			}
		}
		for _, v := range tc.not {
			if err := s.validate(json.RawMessage(v)); err == nil {
				t.Errorf("%s takes %s", tc.schema, v)
			}
		}
	}
}

func TestSchemaFaultTexts(t *testing.T) {
	for _, tc := range []struct{ schema, value, want string }{
		{`{"properties":{"a":{"properties":{"b":{"type":"integer"}}}}}`, `{"a":{"b":"x"}}`, `property "a.b": expected integer, got "x"`},
		{`{"type":"object"}`, `[1]`, `expected object, got an array`},
		{`{"properties":{"l":{"items":{"properties":{"n":{"maximum":5}}}}}}`, `{"l":[{"n":1},{"n":7}]}`, `property "l[1].n": expected at most 5, got 7`},
		{`{"required":["path"],"properties":{"path":{"type":"string"}}}`, `{}`, `missing property "path" (string)`},
		{`{"properties":{"o":{"required":["x"]}}}`, `{"o":{}}`, `property "o": missing property "x"`},
		{`{"properties":{"a":{},"b":{}},"additionalProperties":false}`, `{"c":1}`, `unknown property "c" (known: a, b)`},
		{`{"enum":["a","b"]}`, `"c"`, `expected one of "a", "b"; got "c"`},
		{`{"properties":{"m":{"const":"x"}}}`, `{"m":null}`, `property "m": expected "x", got null`},
		{`{"type":["string","null"]}`, `{"a":1}`, `expected string or null, got an object`},
		{`{"minLength":3}`, `"é"`, `expected at least 3 characters, got 1`},
		{`{"minItems":1}`, `[]`, `expected at least 1 item, got 0`},
		{`{"maxProperties":1}`, `{"a":1,"b":2}`, `expected at most 1 property, got 2`},
		{`{"multipleOf":0.5}`, `0.7`, `expected a multiple of 0.5, got 0.7`},
		{`{"uniqueItems":true}`, `[1,2,1]`, `expected items that differ, got the same at 0 and 2`},
		{`{"pattern":"^a"}`, `"b"`, `expected a match of "^a", got "b"`},
		{`{"anyOf":[{"type":"string"},{"properties":{"a":{"type":"null"}},"type":"object"}]}`, `{"a":1}`, `none of 2 alternatives fits: expected string, got an object; property "a": expected null, got 1`},
		{`{"properties":{"x":{"oneOf":[{"minimum":1},{"minimum":2}]}}}`, `{"x":3}`, `property "x": expected exactly one of 2 alternatives, got one that fits number 1 and number 2`},
		{`{"additionalProperties":{"items":{"type":"null"}}}`, `{"[0]":[null,1]}`, `property "[0][1]": expected null, got 1`},
		{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `name of property "ab": expected at most 1 character, got 2`},
		{`{"not":{}}`, `1`, `expected something else than 1, which not excludes`},
		{`{"properties":{"a":false}}`, `{"a":1}`, `property "a": nothing is allowed here, got 1`},
		{`{"unevaluatedProperties":false}`, `{"a":1}`, `unknown property "a"`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `missing property "b", which "a" asks for`},
	} {
		err := schemaFor(t, tc.schema).validate(json.RawMessage(tc.value))
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s with %s\n got %v\nwant %s", tc.schema, tc.value, err, tc.want)
		}
	}
}

// TestSchemaFaultIsSafe: R6, a fault carries neither raw control characters nor much of a peer's text.
func TestSchemaFaultIsSafe(t *testing.T) {
	key := "\x1b[2J\u202e" + strings.Repeat("k", 5000)
	quoted, _ := json.Marshal(key)
	value, _ := json.Marshal(map[string]any{key: map[string]any{key: key}})
	for _, schema := range []string{
		`{"additionalProperties":{"additionalProperties":{"type":"integer"}}}`,
		`{"additionalProperties":false,"properties":{` + string(quoted) + `2":1}}`,
		`{"additionalProperties":false}`, `{"propertyNames":{"maxLength":1}}`, `{"required":[` + string(quoted) + `,"b"]}`,
		`{"enum":[` + string(quoted) + `]}`, `{"anyOf":[{"additionalProperties":{"additionalProperties":{"const":` + string(quoted[:40]) + `"}}},{"type":"null"}]}`,
	} {
		s, err := compileSchema(json.RawMessage(schema))
		if err != nil {
			schemaSafe(t, err)
			continue
		}
		if err := s.validate(value); err == nil {
			t.Errorf("%.60s takes it", schema)
		} else {
			schemaSafe(t, err)
		}
	}
	for _, schema := range []string{`{"type":` + string(quoted) + `}`, `{"$ref":` + string(quoted) + `}`, `{"pattern":` + strings.Replace(string(quoted), `"`, `"(`, 1) + `}`, `{"$schema":` + string(quoted) + `}`, `{"properties":{` + string(quoted) + `:3}}`} {
		if _, err := compileSchema(json.RawMessage(schema)); err == nil {
			t.Errorf("%.60s compiles", schema)
		} else {
			schemaSafe(t, err)
		}
	}
}

func schemaSafe(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if len(text) > 900 || strings.ContainsAny(text, "\x1b\u202e\n") || !utf8.ValidString(text) {
		t.Errorf("%d bytes: %.300q", len(text), text)
	}
}

func TestSchemaRefuses(t *testing.T) {
	for _, tc := range []struct{ schema, want string }{
		{``, "schema:"}, {`null`, "a schema is an object or a boolean, not null"}, {`[]`, "not an array"}, {`"x"`, "a schema is an object"}, {`{"a":1,"a":2}`, "twice"},
		{`{"type":"any"}`, `at "#/type": unknown type "any"`}, {`{"type":[]}`, "no type"}, {`{"type":3}`, "unknown type 3"}, {`{"properties":{"a":{"type":"int"}}}`, `at "#/properties/a/type": unknown type "int"`},
		{`{"enum":"x"}`, "expected an array"}, {`{"minimum":"1"}`, "expected a number"}, {`{"minLength":-1}`, "whole number"}, {`{"minLength":1.5}`, "whole number"}, {`{"multipleOf":0}`, "above 0"}, {`{"multipleOf":-1}`, "above 0"},
		{`{"required":"a"}`, "array of strings"}, {`{"required":[1]}`, "array of strings"}, {`{"properties":[]}`, "object of schemas"}, {`{"properties":{"a":null}}`, "a schema is an object"},
		{`{"allOf":{}}`, "array of schemas"}, {`{"anyOf":[]}`, "array of schemas"}, {`{"items":3}`, "a schema is an object"}, {`{"uniqueItems":"yes"}`, "boolean"}, {`{"$ref":3}`, "a reference is a string"},
		{`{"maximum":1e9999999999}`, "exponent"}, {`{"dependentRequired":[]}`, "expected an object"},
		{`{"pattern":"(?=a)b"}`, `unsupported pattern "(?=a)b"`}, {`{"pattern":"(a)\\1"}`, "unsupported pattern"}, {`{"pattern":"("}`, "unsupported pattern"}, {`{"patternProperties":{"(?!x)":{}}}`, "unsupported pattern"}, {`{"pattern":3}`, "expected a string"},
		{`{"pattern":"(` + strings.Repeat("a", 100) + `){1000}"}`, "too large"}, {`{"pattern":"` + strings.Repeat("a", 5000) + `"}`, "more than 4096 bytes"},
		{`{"$ref":"#/$defs/none"}`, `reference "#/$defs/none" has no target`}, {`{"$ref":"#none"}`, "no target"}, {`{"allOf":[{"$ref":"#/allOf/01"}]}`, "no target"}, {`{"allOf":[{"$ref":"#/allOf/-1"}]}`, "no target"},
		{`{"$ref":"#/$defs/%zz"}`, "no URI"}, {`{"title":"x","$ref":"#/title"}`, "a schema is an object"},
		{`{"$schema":"http://json-schema.org/draft-04/schema#"}`, "dialect"},
		{`{"$id":"https://example.com/a","$dynamicAnchor":"n","$defs":{"b":{"$id":"b","$dynamicAnchor":"n"}},"$dynamicRef":"#n"}`, "unsupported"},
		{`{` + schemaURI7 + `,"$anchor":"a","not":{"$ref":"#a"}}`, "no target"},
	} {
		if _, err := compileSchema(json.RawMessage(tc.schema)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.80s: %v, want an error with %q", tc.schema, err, tc.want)
		}
	}
	for _, v := range []string{``, `{"a":1,"a":1}`, `{`, "\"\xff\""} {
		if err := schemaFor(t, `{}`).validate(json.RawMessage(v)); err == nil {
			t.Errorf("the empty schema takes %q", v)
		}
	}
}

func TestW28NoRemoteReference(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, `{}`)
	}))
	defer server.Close()
	for _, schema := range []string{
		`{"$ref":"` + server.URL + `/x.json"}`, `{"properties":{"a":{"$ref":"` + server.URL + `/x#/a"}}}`,
		`{"$id":"` + server.URL + `/root.json","items":{"$ref":"other.json"}}`, `{"$dynamicRef":"` + server.URL + `/x#a"}`,
		`{"$ref":"file:///etc/hosts"}`, `{"$ref":"http://json-schema.org/draft-07/schema#"}`, `{"$ref":"other.json"}`,
	} {
		if _, err := compileSchema(json.RawMessage(schema)); err == nil || !strings.Contains(err.Error(), "is not local; nothing is fetched") {
			t.Errorf("%s: %v", schema, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestW29Dialects(t *testing.T) {
	for schema, ok := range map[string]bool{
		`{}`: true, `{"$schema":"http://json-schema.org/draft-07/schema#"}`: true, `{"$schema":"http://json-schema.org/draft-07/schema"}`: true, `{"$schema":"https://json-schema.org/draft-07/schema#"}`: true,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema"}`: true, `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`: true,
		`{"$schema":"http://json-schema.org/draft-04/schema#"}`: false, `{"$schema":"http://json-schema.org/draft-06/schema#"}`: false, `{"$schema":"https://example.com/mine"}`: false, `{"$schema":""}`: false,
		`{"$schema":7}`: false, `{"$schema":"https://json-schema.org/draft/2020-12/schema/x"}`: false, `[]`: false,
	} {
		err := schemaDialect(json.RawMessage(schema))
		_, compileErr := compileSchema(json.RawMessage(schema))
		if (err == nil) != ok || (compileErr == nil) != ok {
			t.Errorf("%s: dialect %v, compile %v, want ok %v", schema, err, compileErr, ok)
		}
	}
	if err := schemaDialect(json.RawMessage(`{"$schema":"https://example.com/mine"}`)); err == nil || !strings.Contains(err.Error(), `"https://example.com/mine"`) {
		t.Errorf("the dialect is not named: %v", err)
	}
}

func TestW24Structured(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"qty":{"type":"integer"}},"required":["qty"]}`)
	for _, tc := range []struct{ schema, value, want string }{
		{"", `{"x":1}`, ""}, {"", "", ""}, {string(schema), `{"qty":14}`, ""},
		{string(schema), `{"qty":"many"}`, `structured content does not fit the output schema: property "qty": expected integer, got "many"`},
		{string(schema), ``, "structured content is missing"}, {string(schema), `{"qty":1,"qty":2}`, "twice"}, {`{"type":"thing"}`, `{}`, "output schema: at"},
	} {
		err := checkStructured(json.RawMessage(tc.schema), json.RawMessage(tc.value))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("checkStructured(%s, %s) = %v, want %q", tc.schema, tc.value, err, tc.want)
		}
	}
}

// TestLST10HostileSchemas: each ends with an error, and soon.
func TestLST10HostileSchemas(t *testing.T) {
	start := time.Now()
	for _, tc := range []struct{ name, schema, want string }{
		{"10,001 levels", strings.Repeat(`{"not":`, 10001) + `{}` + strings.Repeat(`}`, 10001), "nested deeper"},
		{"too many subschemas", `{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{},`, 10001), ",") + `]}`, "more than 10000 subschemas"},
		{"too many patterns", `{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"pattern":"(abcdefghij){1000}"},`, 1000), ",") + `]}`, "patterns too large"},
	} {
		if _, err := compileSchema(json.RawMessage(tc.schema)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	var doubling strings.Builder
	for i := range 60 {
		fmt.Fprintf(&doubling, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	var choice strings.Builder
	for i := range 40 {
		fmt.Fprintf(&choice, `"a%d":{"anyOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	long := `"` + strings.Repeat("a", 1<<20) + `"`
	for _, tc := range []struct{ name, schema, value, want string }{
		{"a reference to itself", `{"$ref":"#"}`, `1`, "references of the schema follow one another"},
		{"two references in a ring", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}`, `1`, "follow one another"},
		{"a ring through not", `{"not":{"$ref":"#"}}`, `1`, "follow one another"},
		{"2^60 ways", `{"$ref":"#/$defs/a0","$defs":{` + doubling.String() + `"a60":{}}}`, `1`, "steps"},
		{"2^40 ways that fail", `{"$ref":"#/$defs/a0","$defs":{` + choice.String() + `"a40":false}}`, `1`, "steps"},
		{"a dear pattern", `{"pattern":"(x+x+)+y(abcdefghij){500}"}`, long, "steps"},
	} {
		if err := schemaFor(t, tc.schema).validate(json.RawMessage(tc.value)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if err := schemaFor(t, `{"items":{}}`).validate(json.RawMessage("[" + strings.Repeat("1,", schemaMaxValues) + "1]")); err == nil || !strings.Contains(err.Error(), "more than 1048576 values") {
		t.Errorf("too many values: %v", err)
	}
	if d := time.Since(start); d > 2*time.Minute { // about 2 s; a loaded machine under the race detector needs many times that
		t.Errorf("took %v", d)
	}
	// What is merely large goes through.
	chain := `{"$ref":"#/$defs/a0","$defs":{`
	for i := range 1500 {
		chain += fmt.Sprintf(`"a%d":{"properties":{"n":{"$ref":"#/$defs/a%d"}}},`, i, i+1)
	}
	s := schemaFor(t, chain+`"a1500":{"type":"string"}}}`)
	if err := s.validate(json.RawMessage(strings.Repeat(`{"n":`, 900) + `1` + strings.Repeat(`}`, 900))); err != nil {
		t.Errorf("900 levels of value: %v", err)
	}
	tree := schemaFor(t, `{"properties":{"n":{"$ref":"#"},"v":{"type":"integer"}}}`)
	if err := tree.validate(json.RawMessage(strings.Repeat(`{"n":`, 900) + `{"v":"x"}` + strings.Repeat(`}`, 900))); err == nil || !strings.Contains(err.Error(), "expected integer") {
		t.Errorf("a fault 900 levels down: %v", err)
	}
	if err := schemaFor(t, `{"pattern":"^[a-z]+$"}`).validate(json.RawMessage(long)); err != nil {
		t.Errorf("a plain pattern over 1 MiB: %v", err)
	}
}

// TestSchemaConcurrent: one compiled schema serves many calls; the race detector would tell.
func TestSchemaConcurrent(t *testing.T) {
	s := schemaFor(t, `{"const":{"a":1},"properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				if err := s.validate(json.RawMessage(`{"a":1}`)); err != nil {
					t.Error(err)
				}
				if s.validate(json.RawMessage(`{"a":2}`)) == nil {
					t.Error("taken")
				}
			}
		})
	}
	wg.Wait()
}

func TestStrictSchemaKeywords(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"title":{"type":"string","description":"x"},"odd":{"minLength":1}},"required":["odd"],"additionalProperties":false}`: "",
		`true`:                "",
		`{"discription":"x"}`: `unknown keyword "discription" at "#"`,
		`{"properties":{"a":{"anyOf":[{},{"maxlength":3}]}}}`:  `unknown keyword "maxlength" at "#/properties/a/anyOf/1"`,
		`{"items":{"not":{"x":1}}}`:                            `unknown keyword "x" at "#/items/not"`,
		`{"$defs":{"d":{"nullable":true}}}`:                    `unknown keyword "nullable"`,
		`{"enum":[{"x":1}],"default":{"y":2},"const":{"z":1}}`: "",
		`{"a":1,"a":1}`: "twice",
	} {
		err := strictSchemaKeywords(json.RawMessage(schema))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", schema, err, want)
		}
	}
}

// FuzzDecimal holds comparison and divisibility against exact fractions.
func FuzzDecimal(f *testing.F) {
	for _, p := range [][2]string{{"1", "1.0"}, {"-0.5", "0.1"}, {"1e3", "7"}, {"123.4500", "0.05"}, {"0", "-0"}, {"9007199254740993", "9007199254740992"}, {"1e-7", "1e-9"}} {
		f.Add(p[0], p[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if numberLen([]byte(a)) != len(a) || numberLen([]byte(b)) != len(b) || a == "" || b == "" {
			return
		}
		for _, s := range []string{a, b} {
			if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 4 {
				return // fractions of that size would take long
			}
		}
		x, y := parseDecimal([]byte(a)), parseDecimal([]byte(b))
		p, ok1 := new(big.Rat).SetString(a)
		q, ok2 := new(big.Rat).SetString(b)
		if !ok1 || !ok2 {
			t.Fatalf("no fraction: %q %q", a, b)
		}
		if got, want := x.compare(y), p.Cmp(q); got != want {
			t.Fatalf("%s against %s: %d, want %d", a, b, got, want)
		}
		if x.integer() != p.IsInt() {
			t.Fatalf("%s whole: %v", a, x.integer())
		}
		if y.sign() > 0 && x.multipleOf(y) != new(big.Rat).Quo(p, q).IsInt() {
			t.Fatalf("%s multiple of %s: %v", a, b, x.multipleOf(y))
		}
		if r, ok := new(big.Rat).SetString(x.String()); len(x.digits) <= 40 && (!ok || r.Cmp(p) != 0) {
			t.Fatalf("%s is shown as %s", a, x)
		}
	})
}

// FuzzSchema: any schema and any value end without a panic, and the answer does not change.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"$ref":"#"}},"items":[{"type":"integer"}],"anyOf":[{"minLength":1},{"required":["a"]}]}`), []byte(`{"a":{"a":[1,"x"]}}`))
	f.Add([]byte(`{"$defs":{"x":{"$anchor":"q","enum":[1,{}]}},"not":{"$ref":"#q"},"unevaluatedProperties":false}`), []byte(`[1e3,{}]`))
	f.Add([]byte(`{"pattern":"\\s\\u00e9[\\s]$","multipleOf":0.1,"if":{},"then":false}`), []byte(`"é "`))
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		s, err := compileSchema(schema)
		if err != nil {
			return
		}
		first, second := s.validate(value), s.validate(value)
		if fmt.Sprint(first) != fmt.Sprint(second) {
			t.Fatalf("%v, then %v", first, second)
		}
		if first != nil && len(first.Error()) > 2000 {
			t.Fatalf("a fault of %d bytes", len(first.Error()))
		}
	})
}

func BenchmarkSchemaValidate(b *testing.B) {
	s, err := compileSchema(json.RawMessage(canonSample()))
	if err != nil {
		b.Fatal(err)
	}
	value := json.RawMessage(`{"p1":"a","p2":"b","p3":"some longer text that is not special","p4":"x"}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.validate(value); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSchemaCompile4K(b *testing.B) {
	raw := json.RawMessage(canonSample())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := compileSchema(raw); err != nil {
			b.Fatal(err)
		}
	}
}
