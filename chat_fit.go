// This file makes tool definitions fit what model endpoints take: a plain object at the top of every schema. What the server sent stays
// untouched; only the copy that goes to the model changes.
package main

import (
	"encoding/json"
	"slices"
	"strings"
)

const (
	chatMaxToolName = 64 // characters of a tool name at the endpoints
	chatMaxRefs     = 16 // local references followed at the top of one schema
	chatMaxBranches = 32 // branches of a top-level combinator that are read
)

// fitName reports whether an endpoint takes the name: ^[a-zA-Z0-9_-]{1,64}$.
//
//go:noinline for size: it is called in many places
func fitName(name string) bool {
	if name == "" || len(name) > chatMaxToolName {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

// fitTool gives the tool as the model gets it (F16, F17). The error says why the tool has to be kept back.
func fitTool(def toolDef) (chatTool, error) {
	if !fitName(def.Name) {
		return chatTool{}, errorf("tool %q: name does not fit [a-zA-Z0-9_-]{1,64}", def.Name)
	}
	schema, note, err := fitSchema(def.InputSchema)
	if err != nil {
		return chatTool{}, errorf("tool %q: input schema: %w", def.Name, err)
	}
	desc := def.Description
	if note != "" {
		desc = strings.TrimSpace(desc + "\n" + note)
	}
	return chatTool{Name: def.Name, Description: desc, Schema: schema}, nil
}

// fitSchema gives an object schema that has type "object", an object for properties and no combinator at the top, and a sentence on what was
// taken away. Missing, null, true and {} all mean a tool without parameters.
func fitSchema(raw json.RawMessage) (fitted json.RawMessage, note string, err error) {
	if !chatPresent(raw) || string(raw) == "true" {
		raw = json.RawMessage("{}")
	}
	f := schemaFitter{root: raw}
	if err := f.merge(raw, true, 0); err != nil {
		return nil, "", err
	}
	return f.schema(), strings.Join(f.notes, " "), nil
}

// schemaFitter collects what the fitted schema is made of.
type schemaFitter struct {
	root     json.RawMessage
	props    []jsonMember // in the order met; the first of a name wins
	required []string
	rest     []jsonMember // members taken over as they are ($defs, additionalProperties)
	notes    []string
}

// merge reads one object schema into f; must says whether its required members are required of the whole.
func (f *schemaFitter) merge(raw json.RawMessage, must bool, depth int) error {
	if depth > chatMaxRefs {
		return newError("references nested too deep")
	}
	members, err := jsonObject(raw)
	if err != nil {
		return err
	}
	for _, m := range members {
		if err := f.member(m, must, depth); err != nil {
			return err
		}
	}
	return nil
}

func (f *schemaFitter) member(m jsonMember, must bool, depth int) error {
	switch m.Key {
	case "type":
		if !fitIsObject(m.Value) {
			return errorf("type is %s, not object", clip(string(m.Value), 80))
		}
	case "properties":
		return f.properties(m.Value)
	case "required":
		for _, name := range fitStrings(m.Value) {
			if must && !slices.Contains(f.required, name) {
				f.required = append(f.required, name)
			}
		}
	case "$ref":
		target, err := f.resolve(m.Value)
		if err != nil {
			return err
		}
		return f.merge(target, must, depth+1)
	case "allOf":
		return f.branches(m, must, depth, "")
	case "anyOf":
		return f.branches(m, false, depth, "At least one of these sets of arguments is needed")
	case "oneOf":
		return f.branches(m, false, depth, "Exactly one of these sets of arguments is needed")
	case "not", "if", "then", "else", "enum", "const", "dependentSchemas", "dependentRequired", "dependencies":
		if depth == 0 && m.Key != "then" && m.Key != "else" {
			f.notes = append(f.notes, "More conditions ("+m.Key+") are checked when the tool is called.")
		}
	case "$schema", "$id", "title", "description", "$comment", "examples", "default":
	default:
		if depth == 0 {
			f.rest = append(f.rest, m)
		}
	}
	return nil
}

// properties takes over one properties object; anything else in its place (an empty list, null) means none.
func (f *schemaFitter) properties(raw json.RawMessage) error {
	members, err := jsonObject(raw)
	if err != nil {
		if checkJSON(raw) == nil {
			return nil
		}
		return errorf("properties: %w", err)
	}
	for _, m := range members {
		if !slices.ContainsFunc(f.props, func(p jsonMember) bool { return p.Key == m.Key }) {
			f.props = append(f.props, m)
		}
	}
	return nil
}

// branches unites the branches of a combinator; intro, if any, opens the note that names what each branch requires.
func (f *schemaFitter) branches(m jsonMember, must bool, depth int, intro string) error {
	list, err := jsonArray(m.Value)
	if err != nil {
		return errorf("%s: %w", m.Key, err)
	}
	if len(list) > chatMaxBranches {
		return errorf("%s has %d branches, at most %d", m.Key, len(list), chatMaxBranches)
	}
	var sets []string
	for _, b := range list {
		if string(b) == "true" || string(b) == "false" {
			continue
		}
		if fields, err := chatFields(b); err == nil && m.Key != "allOf" && !fitIsObject(fields["type"]) {
			continue // a null or a string beside the object; arguments are always an object
		}
		if err := f.merge(b, must, depth+1); err != nil {
			return errorf("%s: %w", m.Key, err)
		}
		sets = append(sets, "("+strings.Join(f.branchNames(b), ", ")+")")
	}
	if len(sets) == 0 && len(list) > 0 && intro != "" {
		return errorf("%s: no branch is an object", m.Key)
	}
	if intro != "" && len(sets) > 1 {
		f.notes = append(f.notes, clip(intro+": "+strings.Join(sets, " or ")+".", 2000))
	}
	return nil
}

// branchNames lists what a branch requires, or else what it speaks of.
func (f *schemaFitter) branchNames(raw json.RawMessage) []string {
	fields, err := chatFields(raw)
	if err != nil {
		return nil
	}
	if ref := fields["$ref"]; ref != nil {
		if target, err := f.resolve(ref); err == nil {
			if fields, err = chatFields(target); err != nil {
				return nil
			}
		}
	}
	if names := fitStrings(fields["required"]); len(names) > 0 {
		return names
	}
	members, err := jsonObject(fields["properties"])
	if err != nil {
		return nil
	}
	var names []string
	for _, m := range members {
		names = append(names, m.Key)
	}
	return names
}

// resolve follows a reference inside the schema ("#/$defs/X"); nothing else is followed, and nothing is ever fetched.
func (f *schemaFitter) resolve(raw json.RawMessage) (json.RawMessage, error) {
	ref, _ := jsonString(raw)
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, errorf("reference %q does not lead inside the schema", clip(ref, 200))
	}
	at := f.root
	for step := range strings.SplitSeq(path, "/") {
		fields, err := chatFields(at)
		if err != nil {
			return nil, errorf("reference %q leads nowhere", clip(ref, 200))
		}
		next, ok := fields[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		if !ok {
			return nil, errorf("reference %q leads nowhere", clip(ref, 200))
		}
		at = next
	}
	return at, nil
}

// schema writes the fitted schema.
func (f *schemaFitter) schema() json.RawMessage {
	dst := []byte(`{"type":"object","properties":`)
	dst = appendMembers(dst, f.props)
	if len(f.required) > 0 {
		dst = appendStrings(append(dst, `,"required":`...), f.required)
	}
	for _, m := range f.rest {
		dst = append(dst, ',')
		dst = append(appendJSONString(dst, m.Key), ':')
		dst = append(dst, m.Value...)
	}
	return append(dst, '}')
}

// fitIsObject accepts "object" and a list of types that has it.
func fitIsObject(raw json.RawMessage) bool {
	if s, ok := jsonString(raw); ok {
		return s == "object"
	}
	return !chatPresent(raw) || slices.Contains(fitStrings(raw), "object")
}

// fitStrings gives the strings of a list; anything else is none.
func fitStrings(raw json.RawMessage) []string {
	list, err := jsonArray(raw)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range list {
		if s, ok := jsonString(e); ok {
			out = append(out, s)
		}
	}
	return out
}

// appendStrings writes a list of strings.
func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONString(dst, s)
	}
	return append(dst, ']')
}
