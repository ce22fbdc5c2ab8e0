package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// F17: whatever a server sent, the model gets type object and an object for properties.
func TestF17FitSchema(t *testing.T) {
	const none = `{"type":"object","properties":{}}`
	for raw, want := range map[string]string{
		`{"type":"object"}`: none,
		`{"type":"object","additionalProperties":false}`: `{"type":"object","properties":{},"additionalProperties":false}`,
		`{}`:                                     none,
		`null`:                                   none,
		``:                                       none,
		`true`:                                   none,
		`{"properties":{"x":{"type":"string"}}}`: `{"type":"object","properties":{"x":{"type":"string"}}}`,
		`{"type":"object","properties":[]}`:      none,
		`{"type":"object","properties":null}`:    none,
		`{"type":["object","null"],"required":["x"]}`: `{"type":"object","properties":{},"required":["x"]}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","title":"T","type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`: `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`,
		`{"$ref":"#/$defs/In","$defs":{"In":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}}}`:                                              `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"$defs":{"In":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}}}`,
	} {
		got, note, err := fitSchema(json.RawMessage(raw))
		if err != nil || string(got) != want || note != "" {
			t.Errorf("fitSchema(%s) = %s, %q, %v, want %s", raw, got, note, err, want)
		}
	}
}

// F16: a combinator at the top becomes a plain object with all properties and a line that says how they exclude each other.
func TestF16FitSchema(t *testing.T) {
	for raw, want := range map[string][2]string{
		`{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}},"oneOf":[{"required":["id"]},{"required":["name"]}]}`: {
			`{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}}}`,
			"Exactly one of these sets of arguments is needed: (id) or (name).",
		},
		`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"b":{"type":"number"}}}]}`: {
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number"}}}`,
			"At least one of these sets of arguments is needed: (a) or (b).",
		},
		`{"allOf":[{"properties":{"a":{}},"required":["a"]},{"$ref":"#/definitions/B"}],"definitions":{"B":{"properties":{"b":{}},"required":["b"]}}}`: {
			`{"type":"object","properties":{"a":{},"b":{}},"required":["a","b"],"definitions":{"B":{"properties":{"b":{}},"required":["b"]}}}`, "",
		},
		`{"anyOf":[{"type":"object","properties":{"a":{}},"required":["a"]},{"type":"null"}]}`: {`{"type":"object","properties":{"a":{}}}`, ""},
		`{"type":"object","properties":{"a":{}},"not":{"required":["a"]}}`:                     {`{"type":"object","properties":{"a":{}}}`, "More conditions (not) are checked when the tool is called."},
	} {
		tool, err := fitTool(toolDef{Name: "mcp_a_b", Description: "Does it.", InputSchema: json.RawMessage(raw)})
		if err != nil || string(tool.Schema) != want[0] || tool.Description != strings.TrimSpace("Does it.\n"+want[1]) {
			t.Errorf("fitTool(%s) = %s, %q, %v, want %s, %q", raw, tool.Schema, tool.Description, err, want[0], want[1])
		}
	}
}

func TestFitRefuses(t *testing.T) {
	for raw, want := range map[string]string{
		`{"type":"string"}`:                                       "not object",
		`{"anyOf":[{"type":"null"},{"type":"string"}]}`:           "no branch is an object",
		`{"$ref":"https://x.example/s.json"}`:                     "does not lead inside",
		`{"$ref":"#/$defs/None"}`:                                 "leads nowhere",
		`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/A"}}}`: "nested too deep",
		`{"oneOf":{}}`:                                            "oneOf",
		`[]`:                                                      "input schema",
		`{"a":`:                                                   "input schema",
	} {
		if _, err := fitTool(toolDef{Name: "x", InputSchema: json.RawMessage(raw)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("fitTool(%s): %v, want %q", raw, err, want)
		}
	}
	for name, want := range map[string]bool{"a": true, "A-z_9": true, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "": false, "a b": false, "查询": false, "a.b": false} {
		if got := fitName(name); got != want {
			t.Errorf("fitName(%q) = %v", name, got)
		}
	}
}
