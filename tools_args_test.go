package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// badValue is a value that a property's own schema does not take.
type badValue struct{ why, json string }

// argSchema is what the schemas of native tools say of one property.
type argSchema struct {
	Type                 any
	Enum                 []json.RawMessage
	MinLength, MaxLength *int
	Minimum, Maximum     *int64
	MinItems, MaxItems   *int
	Items                *argSchema
	Properties           map[string]argSchema
	Required             []string
	AdditionalProperties json.RawMessage
	AnyOf, OneOf         []argSchema
	Pattern              string
}

// types gives the types that the schema names, none where it takes any.
func (s argSchema) types() []string {
	switch t := s.Type.(type) {
	case string:
		return []string{t}
	case []any:
		var out []string
		for _, v := range t {
			out = append(out, fmt.Sprint(v))
		}
		return out
	}
	return nil
}

// bad gives values that break the schema, each in one way.
func (s argSchema) bad() []badValue {
	var out []badValue
	types := s.types()
	samples := map[string]string{"string": `"x"`, "integer": `1`, "boolean": `true`, "array": `[]`, "object": `{}`, "null": `null`, "number": `1.5`}
	for _, kind := range slices.Sorted(maps.Keys(samples)) {
		takes := slices.Contains(types, kind) || kind == "integer" && slices.Contains(types, "number")
		if len(types) > 0 && !takes {
			out = append(out, badValue{"of type " + kind, samples[kind]})
		}
	}
	if len(s.Enum) > 0 && slices.Contains(types, "string") {
		out = append(out, badValue{"outside the enumeration", `"no such choice"`})
	}
	if s.MinLength != nil && *s.MinLength > 0 {
		out = append(out, badValue{"too short", `"` + strings.Repeat("x", *s.MinLength-1) + `"`})
	}
	if s.MaxLength != nil && *s.MaxLength < 1<<21 {
		out = append(out, badValue{"too long", `"` + strings.Repeat("x", *s.MaxLength+1) + `"`})
	}
	if s.Minimum != nil {
		out = append(out, badValue{"too small", fmt.Sprint(*s.Minimum - 1)})
	}
	if s.Maximum != nil {
		out = append(out, badValue{"too large", fmt.Sprint(*s.Maximum + 1)})
	}
	if s.MinItems != nil && *s.MinItems > 0 {
		out = append(out, badValue{"of too few items", "[" + strings.TrimSuffix(strings.Repeat(s.Items.good()+",", *s.MinItems-1), ",") + "]"})
	}
	if s.MaxItems != nil && *s.MaxItems < 1<<14 {
		out = append(out, badValue{"of too many items", "[" + strings.TrimSuffix(strings.Repeat(s.Items.good()+",", *s.MaxItems+1), ",") + "]"})
	}
	if s.Items != nil {
		for _, b := range s.Items.bad() {
			out = append(out, badValue{"with an item " + b.why, "[" + b.json + "]"})
		}
	}
	if len(s.Properties) > 0 {
		out = append(out, badValue{"with an unknown member", s.with("no_such_member", "1")})
		for _, name := range s.Required {
			out = append(out, badValue{"without its member " + name, s.with(name, "")})
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			for _, b := range s.Properties[name].bad() {
				out = append(out, badValue{"with the member " + name + " " + b.why, s.with(name, b.json)})
			}
		}
	}
	return out
}

// good gives a value that the schema takes.
func (s *argSchema) good() string {
	if s == nil {
		return `"x"`
	}
	if len(s.Enum) > 0 {
		return string(s.Enum[0])
	}
	switch types := s.types(); {
	case len(types) == 0:
		return `"x"`
	case types[0] == "string":
		n := 1
		if s.MinLength != nil {
			n = max(n, *s.MinLength)
		}
		return `"` + strings.Repeat("a", n) + `"`
	case types[0] == "integer", types[0] == "number":
		if s.Minimum != nil {
			return fmt.Sprint(*s.Minimum)
		}
		return "1"
	case types[0] == "boolean":
		return "true"
	case types[0] == "array":
		n := 1
		if s.MinItems != nil {
			n = max(n, *s.MinItems)
		}
		return "[" + strings.TrimSuffix(strings.Repeat(s.Items.good()+",", n), ",") + "]"
	}
	return s.with("", "")
}

// with gives an object with the required members, and name set to value, or left out where value is "".
func (s *argSchema) with(name, value string) string {
	var parts []string
	for _, r := range s.Required {
		if r != name {
			p := s.Properties[r]
			parts = append(parts, fmt.Sprintf("%q:%s", r, p.good()))
		}
	}
	if value != "" {
		parts = append(parts, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// Every native tool says which property is wrong, for each way in which each of its arguments can be, and runs nothing.
func TestNativeToolsNameEachBadArgument(t *testing.T) {
	a := appOver(t, "linux")
	box, err := a.toolbox()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, tl := range box.natives() {
		var s argSchema
		if err := json.Unmarshal(tl.Schema, &s); err != nil {
			t.Fatalf("%s: %v", tl.Name, err)
		}
		refuse := func(why, property, args string) {
			t.Helper()
			tried++
			if tl.unattended != nil { // it would be refused before, as nobody sits here
				if err := box.byName[tl.Name].schema.validate([]byte(args)); err == nil || !strings.Contains(err.Error(), property) {
					t.Errorf("%s with %s %s: %v", tl.Name, property, why, err)
				}
				return
			}
			r, err := box.dispatchNative(t.Context(), toolCall{Name: tl.Name, Args: json.RawMessage(args), Person: true, Origin: "cli"})
			if err != nil || !r.IsError || r.Rule != "" || !strings.HasPrefix(r.Text, tl.Name+": ") || !strings.Contains(r.Text, property) {
				t.Errorf("%s with %s %s: %+v, %v", tl.Name, property, why, clip(r.Text, 300), err)
			}
		}
		refuse("that does not exist", "no_such_argument", s.with("no_such_argument", "1"))
		for _, name := range s.Required {
			refuse("missing", name, s.with(name, ""))
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			for _, b := range s.Properties[name].bad() {
				refuse(b.why, name, s.with(name, b.json))
			}
		}
	}
	t.Logf("%d bad arguments of %d tools", tried, len(box.natives()))
	if tried < 300 {
		t.Errorf("only %d bad arguments were tried", tried)
	}
}
