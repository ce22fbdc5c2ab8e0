// This file reads members of what model endpoints send, as leniently as they write them.
package main

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// chatArgsText gives the text of arguments: a string by the book, an object as it stands from endpoints that send one.
func chatArgsText(raw json.RawMessage) string {
	if s, ok := jsonString(raw); ok {
		return s
	}
	if !chatPresent(raw) {
		return ""
	}
	return string(raw)
}

// chatCount reads a number of tokens; what is none counts as 0.
func chatCount(raw json.RawMessage) int {
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// chatFields splits an object by its exact member names.
func chatFields(b []byte) (map[string]json.RawMessage, error) {
	members, err := jsonObject(b)
	if err != nil {
		return nil, err
	}
	fields := make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		fields[m.Key] = m.Value
	}
	return fields, nil
}

// chatPresent is false for a missing member and for null, which endpoints use for the same thing.
func chatPresent(raw json.RawMessage) bool {
	return len(raw) > 0 && string(bytes.TrimSpace(raw)) != "null"
}

// chatIndex reads the number of a block or a call, -1 for none.
func chatIndex(raw json.RawMessage) int {
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 0 {
		return -1
	}
	return n
}
