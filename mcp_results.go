// This file turns a tool's result into text for a model or a person. It changes nothing it does not understand.
package main

import (
	"bytes"
	"encoding/json"
	"strings"
)

// resultText joins the text parts of r, a decoded result, by line ends; any other part stands as its JSON, unchanged. Structured content follows
// unless a text part is the same JSON already, so that it is seen once and never lost (MCP 2025-11-25, Tools, Structured Content).
func resultText(r callResult) string {
	var parts []string
	for i, raw := range r.Content {
		if text, ok := memberString(r.texts[i]); ok {
			parts = append(parts, text)
		} else {
			parts = append(parts, string(raw))
		}
	}
	if r.Structured != nil && !holdsJSON(parts, r.Structured) {
		parts = append(parts, string(r.Structured))
	}
	return strings.Join(parts, "\n")
}

// holdsJSON reports whether one of the texts is the JSON value want, whatever its spacing and key order. Most servers write
// both with one encoder, so the bytes are compared before anything is parsed.
func holdsJSON(texts []string, want json.RawMessage) bool {
	var canonical []byte
	for _, s := range texts {
		if s = strings.TrimSpace(s); s == "" || len(s) > 4*len(want)+64 {
			continue
		}
		if s == string(want) {
			return true
		}
		if canonical == nil {
			var err error
			if canonical, err = canonicalJSON(want); err != nil {
				return false
			}
		}
		if got, err := canonicalJSON([]byte(s)); err == nil && bytes.Equal(got, canonical) {
			return true
		}
	}
	return false
}

// modelText gives a server's description as a model may see it: nothing hidden in it, and no longer than a description is.
func modelText(s string) string { return clip(visible(s), mcpDescriptionMax) }

// modelSchema does the same for the titles and descriptions inside a schema; what arguments are held against stays as it is.
func modelSchema(raw json.RawMessage) json.RawMessage {
	if hiddenCount(string(raw)) == 0 && !bytes.Contains(raw, []byte(`\u`)) {
		return raw
	}
	return appendModelSchema(nil, raw)
}

func appendModelSchema(dst []byte, raw json.RawMessage) []byte {
	if members, err := jsonObject(raw); err == nil {
		dst = append(dst, '{')
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSONString(dst, m.Key), ':')
			if text, ok := jsonString(m.Value); ok && (m.Key == "description" || m.Key == "title") {
				dst = appendJSONString(dst, modelText(text))
			} else {
				dst = appendModelSchema(dst, m.Value)
			}
		}
		return append(dst, '}')
	}
	if items, err := jsonArray(raw); err == nil {
		dst = append(dst, '[')
		for i, item := range items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendModelSchema(dst, item)
		}
		return append(dst, ']')
	}
	return append(dst, raw...)
}
