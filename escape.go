// This file makes text of unknown origin safe for a screen, a log line or a consent (no raw control, direction or hidden
// character survives). It knows nothing of terminals or widths.
package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible returns s with every character that could move a cursor, reorder or hide text written out: control characters as
// \u001b, format characters (bidirectional, zero width, tags, byte order mark) as <U+202E>, bytes that are no UTF-8 as \xff.
// Newline and tab stay.
//
//go:noinline for size: it is called in many places
func visible(s string) string { return escapeText(s, true) }

// visibleLine is visible for text that must stay on one line: newline, carriage return and tab are written as \n, \r and \t.
//
//go:noinline for size: it is called in many places
func visibleLine(s string) string { return escapeText(s, false) }

func escapeText(s string, lines bool) string {
	i := plainPrefix(s, lines)
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:i])
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case bareStyle(s, i, r, lines):
			fmt.Fprintf(&b, "<U+%04X>", r)
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x`)
			writeHex(&b, s[i])
		case r == '\n' && !lines:
			b.WriteString(`\n`)
		case r == '\t' && !lines:
			b.WriteString(`\t`)
		case r == '\r' && !lines:
			b.WriteString(`\r`)
		case lines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case unicode.IsControl(r):
			b.WriteString(`\u00`) // control characters end at U+009F
			writeHex(&b, byte(r))
		case hiddenRune(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// escapeHTML makes text stand as itself in HTML, between tags and in a quoted attribute.
func escapeHTML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace(s)
}

func writeHex(b *strings.Builder, c byte) {
	const digits = "0123456789abcdef"
	b.WriteByte(digits[c>>4])
	b.WriteByte(digits[c&15])
}

// plainPrefix returns how many leading bytes of s need no escape.
func plainPrefix(s string, lines bool) int {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			n := plainRun(s[i:], lines)
			if n == 0 {
				return i
			}
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || unicode.IsControl(r) || hiddenRune(r) || bareStyle(s, i, r, lines) {
			return i
		}
		i += n
	}
	return len(s)
}

// plainRun is plainPrefix of ASCII alone, which nearly all of most texts is: a loop that calls nothing.
func plainRun(s string, lines bool) int {
	i := 0
	for i < len(s) && (s[i] >= 0x20 && s[i] < 0x7f || lines && (s[i] == '\n' || s[i] == '\t')) {
		i++
	}
	return i
}

// hiddenRune reports characters that change what is seen without being seen: Unicode format characters (Cf: direction marks,
// zero width, tags), line and paragraph separators, what a renderer may leave out (default ignorable), variation selectors
// but the text and emoji pair, private characters, and characters that render as blank.
func hiddenRune(r rune) bool {
	switch {
	case r < 0x300:
		return r == 0xad
	case r == 0xfe0e, r == 0xfe0f: // text and emoji style
		return false
	case r > 0x3000 && r < 0x3164, r >= 0x3400 && r <= 0x9fff, r >= 0xac00 && r <= 0xd7a3: // Chinese, Japanese, Korean: soon done
		return false
	case r == 0x2028, r == 0x2029, r == 0x2800, r >= 0xe0000 && r <= 0xe0fff:
		return true
	case r == 0x13441, r == 0x13442, r == 0x16fe4, r == 0x1d159: // blanks, a filler and a note without a head
		return true
	case r == 0x3000, r == 0x202f, r == 0x2009: // spaces of ordinary text
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Co, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// bareStyle reports a sign for text or emoji style at s[i:] that styles nothing: behind a letter, a sign of its own kind or in a plain word it is
// not seen, and only makes two texts look like one. Before the enclosing sign of a keycap it stands rightly, and at the start of a text
// (start) too, since that may be the next part of an answer.
func bareStyle(s string, i int, r rune, start bool) bool {
	return (r == 0xfe0e || r == 0xfe0f) && stylesNothing(s, i, start)
}

// stylesNothing is bareStyle of such a sign, apart so that the look at every other one costs no call.
func stylesNothing(s string, i int, start bool) bool {
	if start && i == 0 || strings.HasPrefix(s[i+3:], "\u20e3") {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	return before < 0xa9 || before != 0x2139 && unicode.In(before, unicode.L, unicode.M, unicode.Z, unicode.C) || before == utf8.RuneError
}

// hiddenCount returns how many characters of s visible has to write out; more than none is worth a flag at consent.
func hiddenCount(s string) int {
	n := 0
	for i := 0; i < len(s); {
		if c := s[i]; c >= ' ' && c < 0x7f { // nearly all of most texts
			i++
			continue
		}
		r, w := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && w == 1 || r != '\n' && r != '\t' && unicode.IsControl(r) || hiddenRune(r) || bareStyle(s, i, r, true) {
			n++
		}
		i += w
	}
	return n
}

// clip returns at most max bytes of s, cut between characters, with the full size told when something was left out.
func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	cut := max
	for cut > 0 && cut > max-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:cut], len(s))
}

// brief returns at most max bytes of s, cut between characters, for a list where the rest can be seen elsewhere.
//
//go:noinline for size: it is called in many places
func brief(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + "…"
}

// quoteWord writes s as one word of a POSIX shell's command line, for a hint that can be pasted. What would not show stays
// written out, so that a hint may be refused by the shell but never means something else.
func quoteWord(s string) string {
	shown := visibleLine(s)
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r)
	}
	if shown != "" && strings.IndexFunc(shown, func(r rune) bool { return !plain(r) }) < 0 {
		return shown
	}
	return "'" + strings.ReplaceAll(shown, "'", `'\''`) + "'"
}

// quoteLine writes words as one command line.
func quoteLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quoteWord(w)
	}
	return strings.Join(quoted, " ")
}

// plural counts things: 1 tool, 2 tools.
//
//go:noinline for size: it is called in many places
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// summaryLine is the first line of a text that is not blank.
func summaryLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
