// This file cuts text into the characters that a person sees (grapheme clusters, UAX #29) and says how many columns of a terminal each
// takes. Its tables are small: what they leave out is told beside them. It knows no screen.
package main

import (
	"unicode"
	"unicode/utf8"
)

const (
	zeroWidthJoiner  = 0x200d
	textStyle        = 0xfe0e
	emojiStyle       = 0xfe0f
	blackFlag        = 0x1f3f4
	editTabColumns   = 4  // columns of a tab: a fixed number, so that a character's width depends on nothing before it
	editClusterRunes = 32 // of one cluster
)

// runeSpan is an inclusive range of characters.
type runeSpan struct{ first, last rune }

// wideSpans are the characters of two columns (East Asian Width W and F, UAX #11), blocks rounded to their ends. Ambiguous ones take one
// column, as most terminals have it.
var wideSpans = [...]runeSpan{
	{0x1100, 0x115f}, {0x231a, 0x231b}, {0x2329, 0x232a}, {0x23e9, 0x23ec}, {0x23f0, 0x23f0}, {0x23f3, 0x23f3}, {0x25fd, 0x25fe},
	{0x2614, 0x2615}, {0x2630, 0x2637}, {0x2648, 0x2653}, {0x267f, 0x267f}, {0x268a, 0x268f}, {0x2693, 0x2693}, {0x26a1, 0x26a1}, {0x26aa, 0x26ab},
	{0x26bd, 0x26be}, {0x26c4, 0x26c5}, {0x26ce, 0x26ce}, {0x26d4, 0x26d4}, {0x26ea, 0x26ea}, {0x26f2, 0x26f3}, {0x26f5, 0x26f5}, {0x26fa, 0x26fa},
	{0x26fd, 0x26fd}, {0x2705, 0x2705}, {0x270a, 0x270b}, {0x2728, 0x2728}, {0x274c, 0x274c}, {0x274e, 0x274e}, {0x2753, 0x2755}, {0x2757, 0x2757},
	{0x2795, 0x2797}, {0x27b0, 0x27b0}, {0x27bf, 0x27bf}, {0x2b1b, 0x2b1c}, {0x2b50, 0x2b50}, {0x2b55, 0x2b55}, {0x2e80, 0x303e}, {0x3041, 0x3247},
	{0x3250, 0xa4cf}, {0xa960, 0xa97f}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe10, 0xfe19}, {0xfe30, 0xfe6f}, {0xff01, 0xff60}, {0xffe0, 0xffe6},
	{0x16fe0, 0x18dff}, {0x1aff0, 0x1b2ff}, {0x1d300, 0x1d376}, {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a},
	{0x1f200, 0x1f320}, {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c}, {0x1f37e, 0x1f393}, {0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3}, {0x1f3e0, 0x1f3f0},
	{0x1f3f4, 0x1f3f4}, {0x1f3f8, 0x1f43e}, {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f54e}, {0x1f550, 0x1f567},
	{0x1f57a, 0x1f57a}, {0x1f595, 0x1f596}, {0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6d2},
	{0x1f6d5, 0x1f6d8}, {0x1f6dc, 0x1f6df}, {0x1f6eb, 0x1f6ec}, {0x1f6f4, 0x1f6fc}, {0x1f7e0, 0x1f7eb}, {0x1f7f0, 0x1f7f0}, {0x1f90c, 0x1f93a},
	{0x1f93c, 0x1f945}, {0x1f947, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
}

// pictureSpans are the pictures that a joiner ties together and that the emoji style widens (Extended_Pictographic, blocks rounded).
var pictureSpans = [...]runeSpan{
	{0xa9, 0xa9}, {0xae, 0xae}, {0x203c, 0x203c}, {0x2049, 0x2049}, {0x2122, 0x2122}, {0x2139, 0x2139}, {0x2194, 0x21aa}, {0x231a, 0x23ff}, {0x24c2, 0x24c2},
	{0x25aa, 0x25fe}, {0x2600, 0x27bf}, {0x2934, 0x2935}, {0x2b05, 0x2b55}, {0x3030, 0x3030}, {0x303d, 0x303d}, {0x3297, 0x3299},
	{0x1f000, 0x1f1e5}, {0x1f200, 0x1f3fa}, {0x1f400, 0x1faff}, {0x1fc00, 0x1fffd},
}

func inSpans(r rune, spans []runeSpan) bool {
	lo, hi := 0, len(spans)
	for lo < hi {
		if mid := (lo + hi) / 2; r > spans[mid].last {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(spans) && r >= spans[lo].first
}

func isPicture(r rune) bool { return r >= 0xa9 && inSpans(r, pictureSpans[:]) }

func isFlagLetter(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

func isSkinTone(r rune) bool { return r >= 0x1f3fb && r <= 0x1f3ff }

// isTag reports the hidden letters that spell the name of a region behind a black flag.
func isTag(r rune) bool { return r >= 0xe0020 && r <= 0xe007f }

// extendsCluster reports what never stands alone: marks, joiners, the two styles, skin tones. Other variation selectors and tags can
// carry hidden text, so they stand apart and are shown.
func extendsCluster(r rune) bool {
	switch {
	case r < 0x300:
		return false
	case r == zeroWidthJoiner, r == 0x200c, r == textStyle, r == emojiStyle, isSkinTone(r):
		return true
	}
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc) && !hiddenRune(r)
}

// Kinds of Hangul letters, which join to one syllable.
const (
	hangulNone = iota
	hangulLead
	hangulVowel
	hangulTail
)

func hangulKind(r rune) int {
	switch {
	case r >= 0x1100 && r <= 0x115f, r >= 0xa960 && r <= 0xa97c:
		return hangulLead
	case r >= 0x1160 && r <= 0x11a7, r >= 0xd7b0 && r <= 0xd7c6, r >= 0xac00 && r <= 0xd7a3 && (r-0xac00)%28 == 0:
		return hangulVowel
	case r >= 0x11a8 && r <= 0x11ff, r >= 0xd7cb && r <= 0xd7fb, r >= 0xac00 && r <= 0xd7a3:
		return hangulTail
	}
	return hangulNone
}

// joinsHangul applies GB6 to GB8: a lead takes anything but a tail letter alone, a vowel takes vowels and tails, a tail takes tails.
func joinsHangul(a, b rune) bool {
	if b >= 0xac00 && b <= 0xd7a3 {
		return hangulKind(a) == hangulLead && a < 0xac00
	}
	switch hangulKind(a) {
	case hangulLead:
		return hangulKind(b) == hangulLead || hangulKind(b) == hangulVowel
	case hangulVowel:
		return hangulKind(b) == hangulVowel || hangulKind(b) == hangulTail
	case hangulTail:
		return hangulKind(b) == hangulTail
	}
	return false
}

// clusterLen gives how many runes the first cluster of text has. A cluster ends at editClusterRunes, so that a heap of marks stays
// something that can be edited. Prepended marks (GB9b) and the conjuncts of Indic scripts (GB9c) stay apart.
func clusterLen(text []rune) int {
	if len(text) < 2 || text[0] < 0x20 || text[1] < 0x300 {
		return min(len(text), 1)
	}
	if text[0] == 0x7f || unicode.IsControl(text[0]) || text[0] == 0x2028 || text[0] == 0x2029 {
		return 1
	}
	n := 1
	if isFlagLetter(text[0]) && isFlagLetter(text[1]) {
		n = 2
	}
	picture := isPicture(text[0])
	for n < len(text) && n < editClusterRunes {
		r := text[n]
		switch {
		case extendsCluster(r):
		case text[0] == blackFlag && isTag(r):
		case picture && text[n-1] == zeroWidthJoiner && isPicture(r):
		case joinsHangul(text[n-1], r):
		default:
			return n
		}
		n++
	}
	return n
}

// clusterWidth gives the columns of one cluster as it is shown.
func clusterWidth(cluster []rune) int {
	if len(cluster) == 0 {
		return 0
	}
	r := cluster[0]
	switch {
	case r >= 0x20 && r < 0x7f && len(cluster) == 1:
		return 1
	case r == '\t':
		return editTabColumns
	case len(shownRune(r)) > 0:
		w := len(shownRune(r))
		if len(cluster) > 1 {
			w += clusterWidth(cluster[1:])
		}
		return w
	case extendsCluster(r) && !isSkinTone(r): // a mark without a letter is shown on a circle
		return 1
	case inSpans(r, wideSpans[:]), isFlagLetter(r) && len(cluster) > 1:
		return 2
	}
	for _, m := range cluster[1:] {
		if (m == emojiStyle || isSkinTone(m)) && isPicture(r) {
			return 2
		}
	}
	return 1
}

// shownRune gives the text that stands for a character which must not reach the screen, and "" for the others: ^C for a control
// character, <U+202E> for a hidden one. The joiner and the selectors are hidden only where they join nothing.
func shownRune(r rune) string {
	switch {
	case r >= 0x20 && r < 0x7f:
		return ""
	case r < 0x20 && r != '\n' && r != '\t':
		return string([]byte{'^', byte(r) + '@'})
	case r == 0x7f:
		return "^?"
	case r == '\n' || r == '\t':
		return ""
	case unicode.IsControl(r), hiddenRune(r):
		return visibleLine(string(r))
	}
	return ""
}

// clusterText gives the bytes that show a cluster, and whether terminals disagree on its width: then the cursor has to be put.
func clusterText(cluster []rune) (shown string, unsure bool) {
	r := cluster[0]
	if len(cluster) == 1 && r >= 0x20 && r < 0x7f {
		return string(r), false
	}
	if mark := shownRune(r); mark != "" {
		return mark, false
	}
	if extendsCluster(r) && !isSkinTone(r) {
		return "\u25cc" + string(cluster), true
	}
	if len(cluster) == 1 {
		return string(r), !(r < 0x300 || inSpans(r, wideSpans[:]) || unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.P, unicode.S) && !isPicture(r) && !isFlagLetter(r))
	}
	return string(cluster), true
}

// textWidth gives the columns of a text on one line.
func textWidth(s string) int {
	w := 0
	for text := []rune(s); len(text) > 0; {
		n := clusterLen(text)
		w += clusterWidth(text[:n])
		text = text[n:]
	}
	return w
}

// clipWidth cuts s between clusters so that it takes at most width columns, with an ellipsis where something was left out.
func clipWidth(s string, width int) string {
	if len(s) <= width || textWidth(s) <= width {
		return s
	}
	text := []rune(s)
	used, end := 0, 0
	for end < len(text) {
		n := clusterLen(text[end:])
		w := clusterWidth(text[end : end+n])
		if used+w > width-1 {
			break
		}
		used, end = used+w, end+n
	}
	return string(text[:end]) + "…"
}

// cleanRunes turns bytes into text for the editor: line ends are evened out, newline and tab stay, other control characters are written
// out as visibleLine has them, and bytes that are no UTF-8 become the replacement character.
func cleanRunes(b []byte) []rune {
	out := make([]rune, 0, len(b))
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		i += n
		switch {
		case r == '\r':
			if i < len(b) && b[i] == '\n' {
				i++
			}
			out = append(out, '\n')
		case r == '\n' || r == '\t' || r >= 0x20 && r < 0x7f:
			out = append(out, r)
		case unicode.IsControl(r):
			out = append(out, []rune(visibleLine(string(r)))...)
		default:
			out = append(out, r)
		}
	}
	return out
}
