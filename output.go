// This file is the last door before the screen: what a run writes on stdout and stderr passes it, and known secrets do not. Whoever
// escapes, cuts or counts a text masks it before; this is for what nobody thought of. It knows no secret itself.
package main

import (
	"io"
	"strings"
)

// maskedWriter masks each write by itself, so that nothing is held back; text that comes in pieces goes through a redactStream first.
type maskedWriter struct {
	w    io.Writer
	mask func(string) string
}

func (m *maskedWriter) Write(b []byte) (int, error) {
	text := string(b)
	clean := m.mask(text)
	if clean == text {
		return m.w.Write(b)
	}
	if checkJSON(b) == nil && checkJSON([]byte(clean)) != nil {
		clean = maskJSONStrings(text, m.mask) // a number that is also a secret would leave no document
	}
	if _, err := io.WriteString(m.w, clean); err != nil {
		return 0, err
	}
	return len(b), nil
}

// maskJSONStrings masks inside the strings of a JSON text and nowhere else.
func maskJSONStrings(text string, mask func(string) string) string {
	var b strings.Builder
	for {
		open := strings.IndexByte(text, '"')
		if open < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := open + 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end, len(text))
		b.WriteString(text[:open+1])
		b.WriteString(mask(text[open+1 : end]))
		text = text[end:]
		if text != "" {
			b.WriteByte('"')
			text = text[1:]
		}
	}
}
