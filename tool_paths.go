// This file is what the tool families share about files: what the policy is told of the place that a call names, and what is text.
package main

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

const binarySniff = 8000 // bytes at the start of a file that tell text from binary, as git does it

// judgePath judges a reading tool by its path argument. Arguments that cannot be read name no place; the schema check turns them away.
func judgePath(w workspace, c toolCall) policyRequest {
	var args struct{ Path string }
	if json.Unmarshal(c.Args, &args) != nil {
		return policyRequest{}
	}
	return judgePlace(w, args.Path, policyRequest{})
}

// judgePlace adds to req where path lies. One that cannot be resolved is left to the tool, which fails on it before it opens anything.
func judgePlace(w workspace, path string, req policyRequest) policyRequest {
	if p, err := w.locate(path); err == nil && p.Outside {
		req.Outside = true
		req.Danger = append(req.Danger, "lies outside the workspace root: "+visibleLine(p.Abs))
	}
	return req
}

// isBinary tells a binary file by its first bytes: a NUL, or text that is mostly not UTF-8.
func isBinary(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	bad := 0
	for rest := head; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 && len(rest) > utf8.UTFMax {
			bad++
		}
		rest = rest[size:]
	}
	return bad > len(head)/4
}
