// This file makes a tool fit one provider beyond what all of them want: what stands deeper in its schema, and how long its text is. The tool
// that chat_fit.go made stays as it is.
package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

const (
	chatShortText   = 1024 // characters of a tool's description at OpenAI
	chatMaxProperty = 64   // characters of a property's name at Anthropic
	chatMaxDepth    = 32   // levels of one schema that are followed
	chatMaxNodes    = 5000 // schemas inside one schema, references followed
)

// fitTool gives the tool as this endpoint takes it. The error says why it has to be kept back.
func (e chatEndpoint) fitTool(t chatTool) (chatTool, error) {
	var err error
	switch {
	case e.Wire == wireAnthropic:
		err = fitAnthropicNames(t.Schema)
	case e.openAPI:
		f := openAPIFitter{schemaFitter: schemaFitter{root: t.Schema}}
		t.Schema, err = f.node(nil, t.Schema, 0)
	case bytes.Contains(t.Schema, []byte(`"array"`)):
		t.Schema, err = fitItems(nil, t.Schema, 0)
	}
	if err != nil {
		return chatTool{}, errorf("tool %q: input schema: %w", t.Name, err)
	}
	if r := []rune(t.Description); e.shortTexts && len(r) > chatShortText {
		t.Description = string(r[:chatShortText-1]) + "…"
	}
	return t, nil
}

// fitAnthropicNames refuses a schema with an argument whose name Anthropic does not take: ^[a-zA-Z0-9_.-]{1,64}$. Another name would not be
// the argument's.
func fitAnthropicNames(schema json.RawMessage) error {
	fields, err := chatFields(schema)
	if err != nil {
		return err
	}
	props, err := jsonObject(fields["properties"])
	if err != nil {
		return err
	}
	for _, p := range props {
		if len(p.Key) > chatMaxProperty || !fitName(strings.ReplaceAll(p.Key, ".", "_")) {
			return errorf("the endpoint takes no argument named %s", quoteClip(p.Key))
		}
	}
	return nil
}

// fitItems writes the schema with an items in every array that has none, which OpenAI refuses.
func fitItems(dst []byte, raw json.RawMessage, depth int) ([]byte, error) {
	if depth > chatMaxDepth {
		return nil, newError("nested too deep")
	}
	members, err := jsonObject(raw)
	if err != nil {
		return append(dst, raw...), nil // true, false, or what the schema's check will say
	}
	dst = append(dst, '{')
	array, items := false, false
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, m.Key), ':')
		array = array || m.Key == "type" && (bytes.Contains(m.Value, []byte(`"array"`)))
		items = items || m.Key == "items" || m.Key == "prefixItems"
		place, known := schemaPlaceOf(m.Key)
		if !known && m.Key == "definitions" { // $defs before 2019-09
			place = schemaHoldsNamed
		}
		if dst, err = fitPlace(dst, place, m.Value, func(dst []byte, raw json.RawMessage) ([]byte, error) { return fitItems(dst, raw, depth+1) }); err != nil {
			return nil, err
		}
	}
	if array && !items {
		dst = append(dst, `,"items":{}`...)
	}
	return append(dst, '}'), nil
}

// fitPlace writes the value of a keyword, each schema in it through node.
func fitPlace(dst []byte, place schemaPlace, raw json.RawMessage, node func([]byte, json.RawMessage) ([]byte, error)) ([]byte, error) {
	var err error
	switch place {
	case schemaHoldsOne:
		return node(dst, raw)
	case schemaHoldsNamed:
		members, bad := jsonObject(raw)
		if bad != nil {
			return append(dst, raw...), nil
		}
		dst = append(dst, '{')
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = node(append(appendJSONString(dst, m.Key), ':'), m.Value); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	case schemaHoldsList:
		list, bad := jsonArray(raw)
		if bad != nil {
			return append(dst, raw...), nil
		}
		dst = append(dst, '[')
		for i, s := range list {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = node(dst, s); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	}
	return append(dst, raw...), nil
}

// openAPIFitter writes a schema in the subset of OpenAPI that Gemini takes: one type a node, references written out, no keywords beyond.
type openAPIFitter struct {
	schemaFitter
	nodes int
}

// openAPINode is what one node comes to. Of what it leaves out the call itself is checked against the whole schema.
type openAPINode struct {
	kind     string
	nullable bool
	keep     []jsonMember // description, bounds
	enum     []string
	required []string
	props    []jsonMember
	items    json.RawMessage
	anyOf    []json.RawMessage
}

func (f *openAPIFitter) node(dst []byte, raw json.RawMessage, depth int) ([]byte, error) {
	if f.nodes++; f.nodes > chatMaxNodes || depth > chatMaxDepth {
		return nil, newError("too large, or a reference that leads back to itself")
	}
	var n openAPINode
	if err := f.read(&n, raw, depth); err != nil {
		return nil, err
	}
	switch {
	case n.kind != "":
	case len(n.props) > 0:
		n.kind = "object"
	case n.items != nil:
		n.kind = "array"
	case len(n.anyOf) == 0:
		n.kind = "string"
	}
	return f.write(dst, n, depth)
}

// read takes over the members of one schema, and those of the schemas that it refers to or consists of.
func (f *openAPIFitter) read(n *openAPINode, raw json.RawMessage, depth int) error {
	members, err := jsonObject(raw)
	if err != nil {
		return nil // true: anything
	}
	if depth > chatMaxDepth {
		return newError("a reference that leads back to itself")
	}
	for _, m := range members {
		switch m.Key {
		case "type":
			n.take(m.Value)
		case "description", "minimum", "maximum", "minItems", "maxItems":
			n.keep = append(n.keep, m)
		case "enum":
			n.enum = fitStrings(m.Value)
		case "const":
			if s, ok := jsonString(m.Value); ok {
				n.enum = []string{s}
			}
		case "required":
			n.required = append(n.required, fitStrings(m.Value)...)
		case "properties":
			if props, err := jsonObject(m.Value); err == nil {
				n.props = append(n.props, props...)
			}
		case "items":
			n.items = m.Value
		case "anyOf", "oneOf":
			if list, err := jsonArray(m.Value); err == nil {
				n.anyOf = list
			}
		case "$ref":
			target, err := f.resolve(m.Value)
			if err == nil {
				err = f.read(n, target, depth+1)
			}
			if err != nil {
				return err
			}
		case "allOf":
			list, err := jsonArray(m.Value)
			if err != nil {
				return err
			}
			for _, part := range list {
				if err := f.read(n, part, depth+1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// take reads type: of a list the first that is no null counts.
func (n *openAPINode) take(raw json.RawMessage) {
	kinds := fitStrings(raw)
	if s, ok := jsonString(raw); ok {
		kinds = []string{s}
	}
	for _, k := range kinds {
		if k == "null" {
			n.nullable = true
		} else if n.kind == "" {
			n.kind = k
		}
	}
}

func (f *openAPIFitter) write(dst []byte, n openAPINode, depth int) ([]byte, error) {
	one := func(dst []byte, raw json.RawMessage) ([]byte, error) { return f.node(dst, raw, depth+1) }
	dst = append(dst, '{')
	put := func(key string, value []byte) {
		if len(dst) > 0 && dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(append(appendJSONString(dst, key), ':'), value...)
	}
	if n.kind != "" {
		put("type", appendJSONString(nil, n.kind))
	}
	if n.nullable {
		put("nullable", []byte("true"))
	}
	seen := map[string]bool{}
	for _, m := range n.keep {
		if !seen[m.Key] {
			put(m.Key, m.Value)
		}
		seen[m.Key] = true
	}
	if n.kind == "string" && len(n.enum) > 0 && !slices.Contains(n.enum, "") {
		put("enum", appendStrings(nil, n.enum))
	}
	if n.kind == "object" {
		var props []jsonMember
		for _, p := range n.props {
			if !slices.ContainsFunc(props, func(q jsonMember) bool { return q.Key == p.Key }) {
				props = append(props, p)
			}
		}
		value, err := fitPlace(nil, schemaHoldsNamed, appendMembers(nil, props), one)
		if err != nil {
			return nil, err
		}
		put("properties", value)
		n.required = slices.DeleteFunc(n.required, func(name string) bool {
			return !slices.ContainsFunc(props, func(p jsonMember) bool { return p.Key == name })
		})
		if len(n.required) > 0 {
			put("required", appendStrings(nil, n.required))
		}
	}
	if n.kind == "array" {
		if n.items == nil {
			n.items = json.RawMessage(`{}`)
		}
		value, err := one(nil, n.items)
		if err != nil {
			return nil, err
		}
		put("items", value)
	}
	if len(n.anyOf) > 0 && n.kind != "object" && n.kind != "array" {
		value, err := fitPlace(nil, schemaHoldsList, joinJSON(n.anyOf), one)
		if err != nil {
			return nil, err
		}
		put("anyOf", value)
	}
	return append(dst, '}'), nil
}

// joinJSON writes a list of values as one.
func joinJSON(list []json.RawMessage) json.RawMessage {
	dst := []byte{'['}
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, v...)
	}
	return append(dst, ']')
}
