// This file lists the spellings in which a secret travels: as it is, in base64, URL-encoded, escaped for JSON or HTML, in hex,
// and the double forms that programs really write. It searches nothing.
package main

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf16"
)

const (
	redactEncoded = 6  // bytes from which the encoded forms are looked for too; three would do harm in any hex dump
	redactLineMin = 24 // bytes of a line of a longer secret that is one by itself, as those of a PEM key are
	redactLineMax = 64 // such lines of one secret
)

// The digits of hex in either case.
const (
	lowerDigits = "0123456789abcdef"
	upperDigits = "0123456789ABCDEF"
)

// redactForms lists the spellings of a value that are looked for.
func redactForms(value string) []string {
	forms := append([]string{value}, lineForms(value)...)
	if len(value) < redactEncoded {
		return forms
	}
	forms = append(forms, base64Forms(value)...)
	if !redactPlain(value) {
		forms = append(forms, percentForms(value)...)
		forms = append(forms, htmlForms(value)...)
		for _, s := range jsonForms(value) {
			forms = append(forms, s, strings.ReplaceAll(s, "/", `\/`))
		}
	}
	// Every byte escaped, which no encoder does to a plain value by itself and everyone does who wants to hide one.
	for _, digits := range [...]string{lowerDigits, upperDigits} {
		forms = append(forms, hexOf(value, "", digits), hexOf(value, "%", digits), jsonEscapeAll(value, digits))
	}
	return forms
}

// lineForms are the parts of a value of several lines that show it: with the line ends of Windows, and each line that is one
// long word, which is how a key looks in a listing with numbers or indents.
func lineForms(value string) []string {
	if !strings.Contains(value, "\n") {
		return nil
	}
	forms := []string{strings.ReplaceAll(strings.ReplaceAll(value, "\r\n", "\n"), "\n", "\r\n"), strings.ReplaceAll(value, "\r\n", "\n")}
	lines := 0
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if len(line) >= redactLineMin && strings.Trim(line, tokenLetters+"+/=") == "" {
			forms = append(forms, line)
			if lines++; lines == redactLineMax {
				break
			}
		}
	}
	return forms
}

const tokenLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

// redactPlain reports a value that neither URLs nor JSON nor HTML escape, as most tokens are.
func redactPlain(s string) bool { return strings.Trim(s, tokenLetters) == "" }

// base64Forms are a value's spellings in base64 of either alphabet: whole with and without padding, and as a part of longer
// data at each of the three offsets, as in a Basic header. Each also as it stands in a URL and in JSON.
func base64Forms(value string) []string {
	var forms []string
	add := func(s string) {
		forms = append(forms, s)
		if strings.Trim(s, tokenLetters) != "" {
			forms = append(forms, escapedBase64(s)...)
		}
	}
	for _, enc := range [...]*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		whole := enc.EncodeToString([]byte(value))
		add(whole)
		add(strings.TrimRight(whole, "="))
		for _, width := range [...]int{64, 76} { // PEM; MIME and the base64 command
			if len(whole) > width {
				add(wrapped(whole, width, "\n"))
				add(wrapped(whole, width, "\r\n"))
				add(wrapped(whole, width, `\n`))
			}
		}
		for before := range 3 {
			// Of the signs only those count that hold bits of the value alone, whatever stands around it.
			text := enc.EncodeToString([]byte("\x00\x00"[:before] + value))
			add(text[(before*8+5)/6 : (before+len(value))*8/6])
		}
	}
	return forms
}

// escapedBase64 escapes the signs of base64 as URLs do and as those JSON encoders do that touch them (PHP, .NET, Gson).
func escapedBase64(s string) []string {
	return []string{
		percentEncode(s, "-_.", "", upperDigits), percentEncode(s, "-_.", "", lowerDigits), percentEncode(s, "-_.=", "", upperDigits),
		strings.ReplaceAll(s, "/", `\/`), strings.ReplaceAll(s, "+", `\u002B`), strings.ReplaceAll(s, "=", `\u003d`),
	}
}

//go:noinline for size: it is called in many places
func wrapped(s string, width int, end string) string {
	var b strings.Builder
	for len(s) > width {
		b.WriteString(s[:width] + end)
		s = s[width:]
	}
	return b.String() + s
}

// percentForms are the spellings in a URL, and in a URL inside a URL. What is left bare differs: form and query encoders,
// JavaScript's encodeURIComponent and encodeURI, path segments.
func percentForms(value string) []string {
	var forms []string
	for _, bare := range [...]string{"-_.~", "-_.*", "-_.~!*'()", "-_.~!*'();/?:@&=+$,#", "-_.~$&+=:@", "-_.~/"} {
		for _, space := range [...]string{"%20", "+"} {
			for _, digits := range [...]string{upperDigits, lowerDigits} {
				once := percentEncode(value, bare, space, digits)
				forms = append(forms, once, strings.ReplaceAll(once, "%", "%25"))
			}
		}
	}
	return forms
}

func percentEncode(s, bare, space, digits string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/4)
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', strings.IndexByte(bare, c) >= 0:
			b.WriteByte(c)
		case c == ' ':
			b.WriteString(space)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// hexOf writes each byte as two digits behind a sign.
//
//go:noinline for size: it is called in many places
func hexOf(s, sign, digits string) string {
	out := make([]byte, 0, len(s)*(len(sign)+2))
	for i := range len(s) {
		out = append(out, sign...)
		out = append(out, digits[s[i]>>4], digits[s[i]&15])
	}
	return string(out)
}

// htmlForms are the spellings in a page or in XML, which differ in the quotes.
func htmlForms(value string) []string {
	if !strings.ContainsAny(value, `<>&"'`) {
		return nil
	}
	var forms []string
	for _, quotes := range [...][2]string{{`"`, "'"}, {"&#34;", "&#39;"}, {"&quot;", "&#x27;"}, {"&quot;", "&#39;"}, {"&quot;", "&#039;"}, {"&quot;", "&apos;"}, {"&quot;", "'"}} {
		forms = append(forms, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, quotes[0], "'", quotes[1]).Replace(value))
	}
	return forms
}

// jsonForms escapes a value as JSON encoders do: as little as allowed; signs of HTML as well (Go, Gson); all but ASCII as well
// (Python, PHP), quotes and plus by number too (.NET), in either case of digits; every control character by number. Each also
// inside another string.
func jsonForms(s string) []string {
	least := appendJSONString(nil, s)
	forms := []string{string(least[1 : len(least)-1])}
	for _, digits := range [...]string{`\u%04x`, `\u%04X`} {
		forms = append(forms, jsonEscape(s, digits, "<>&", false, false), jsonEscape(s, digits, "<>&='", false, false), jsonEscape(s, digits, "", true, false),
			jsonEscape(s, digits, "<>&", true, false), jsonEscape(s, digits, "", false, true), jsonEscape(s, digits, "<>&'\"\\", true, true), jsonEscape(s, digits, "<>&'\"+`", true, false))
	}
	for _, once := range forms[:len(forms):len(forms)] {
		twice := strings.ReplaceAll(strings.ReplaceAll(once, `\`, `\\`), `"`, `\"`)
		forms = append(forms, twice, strings.ReplaceAll(twice, "/", `\\/`))
	}
	return forms
}

// jsonEscape escapes by number the signs given, all but ASCII if asked, and control characters if asked; the rest as
// appendJSONString does.
func jsonEscape(s, format, signs string, ascii, control bool) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c >= 0x80 && ascii && c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, format+format, high, low)
		case c >= 0x80 && ascii, c < 0x20 && control, c < 0x80 && strings.ContainsRune(signs, c), c == 0x7f && ascii:
			fmt.Fprintf(&b, format, c)
		default:
			quoted := appendJSONString(nil, string(c))
			b.Write(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// jsonEscapeAll writes every character by number.
func jsonEscapeAll(s, digits string) string {
	out := make([]byte, 0, 6*len(s))
	for _, c := range utf16.Encode([]rune(s)) {
		out = append(out, '\\', 'u', digits[c>>12], digits[c>>8&15], digits[c>>4&15], digits[c&15])
	}
	return string(out)
}
