// This file reads and writes JSON strings (RFC 8259, section 7). It knows nothing of what stands around them.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// plainText gives the first place from i on with a byte that a JSON string does not hold as it is: a quote, a backslash or
// a control character; the length of b if there is none. It looks at eight bytes at a time, since texts are long: in each
// of the three sums the lowest top bit that is set marks such a byte, and only bytes above it may be marked in error.
func plainText(b []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^'"'*ones, x^'\\'*ones
		if found := ((x-0x20*ones)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(b) && b[i] >= 0x20 && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// plainASCII reports that a JSON string holds these eight bytes as they are, and that none is part of a longer character.
func plainASCII(s string) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	quote, slash := x^'"'*ones, x^'\\'*ones
	return (x|(x-0x20*ones)&^x|(quote-ones)&^quote|(slash-ones)&^slash)&tops == 0
}

func isHex4(b []byte) bool {
	for _, c := range b {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return true
}

// jsonString unquotes one JSON string as the splitters give it. A lone surrogate escape becomes U+FFFD. It reports false
// for anything but a string.
func jsonString(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	in := raw[1 : len(raw)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		if plainText(in, 0) != len(in) || !utf8.Valid(in) {
			return "", false
		}
		return string(in), true
	}
	return unquoteJSON(in)
}

// memberString is jsonString for a value that jsonObject or jsonArray gave.
func memberString(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	in := raw[1 : len(raw)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in), true
	}
	return unescapeJSON(in)
}

// jsonEscapes gives the character that a letter after a backslash stands for; 0 for none. \u is not in it.
var jsonEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unquoteJSON resolves the escapes of a string's inside. A lone surrogate becomes U+FFFD.
func unquoteJSON(in []byte) (string, bool) {
	if !utf8.Valid(in) {
		return "", false
	}
	return unescapeJSON(in)
}

func unescapeJSON(in []byte) (string, bool) {
	var b strings.Builder
	b.Grow(len(in))
	for i := 0; i < len(in); {
		j := plainText(in, i)
		b.Write(in[i:j])
		if i = j; i == len(in) {
			break
		}
		if in[i] != '\\' || i+1 == len(in) {
			return "", false
		}
		if in[i+1] == 'u' {
			r, n := unquoteRune(in[i:])
			if n == 0 {
				return "", false
			}
			b.WriteRune(r)
			i += n
			continue
		}
		c := jsonEscapes[in[i+1]]
		if c == 0 {
			return "", false
		}
		b.WriteByte(c)
		i += 2
	}
	return b.String(), true
}

// unquoteRune reads one \uXXXX, or a pair of them that is one character; n is 0 where it is malformed.
func unquoteRune(b []byte) (r rune, n int) {
	first, ok := escapedUnit(b)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(first) {
		return first, 6
	}
	if second, ok := escapedUnit(b[6:]); ok {
		if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
			return r, 12
		}
	}
	return utf8.RuneError, 6
}

// escapedUnit reads \uXXXX at the start of b.
func escapedUnit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' || !isHex4(b[2:6]) {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c <= '9':
			c -= '0'
		default:
			c = c | 0x20 - 'a' + 10
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

const jsonHex = "0123456789abcdef"

// appendJSONString appends s as a JSON string; what is not UTF-8 becomes U+FFFD. Nothing is escaped for HTML.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		for i+8 <= len(s) && plainASCII(s[i:i+8]) {
			i += 8
		}
		if i == len(s) {
			break
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', jsonHex[c>>4], jsonHex[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// escapeHidden writes the hidden characters of a JSON text as escapes. They can stand in strings alone, so the value stays.
func escapeHidden(b []byte) []byte {
	if hiddenCount(string(b)) == 0 {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if hiddenRune(r) || r >= 0x7f && r < 0xa0 {
			for _, unit := range utf16.Encode([]rune{r}) {
				out = append(out, '\\', 'u', jsonHex[unit>>12], jsonHex[unit>>8&15], jsonHex[unit>>4&15], jsonHex[unit&15])
			}
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}
