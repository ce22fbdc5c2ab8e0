// This file makes what a model answers safe for a screen, part by part as it comes. It lets no more through than escape.go does, but for emoji that
// are joined into one.
package main

import (
	"strings"
	"unicode/utf8"
)

// visibleAnswer is visible for what a model says, part by part. It leaves the zero-width joiner between two emoji, where it makes one picture of
// them and can hide neither: on a screen that knows no such picture both stand side by side.
type visibleAnswer struct {
	emoji bool // what was given last is one
	held  bool // a joiner behind it, of which the next part says what it joins
}

// text gives the next part; a joiner at its end waits for the one after.
func (a *visibleAnswer) text(s string) string {
	const joiner = string(rune(zeroWidthJoiner))
	if s == "" || !a.held && !a.emoji && !strings.Contains(s, joiner) {
		a.emoji = endsInEmoji(s, a.emoji)
		return visible(s)
	}
	var b strings.Builder
	if a.held {
		s, a.held = joiner+s, false
	}
	for i, part := range strings.Split(s, joiner) {
		if i > 0 {
			r, _ := utf8.DecodeRuneInString(part)
			if a.held {
				b.WriteString(visible(joiner)) // two in a row
				a.emoji = false
			}
			switch a.held = false; {
			case a.emoji && part == "":
				a.held = true
			case a.emoji && isPicture(r):
				b.WriteString(joiner)
			default:
				b.WriteString(visible(joiner))
			}
			a.emoji = a.held
		}
		b.WriteString(visible(part))
		a.emoji = endsInEmoji(part, a.emoji)
	}
	return b.String()
}

// rest gives what waits when nothing more comes, and begins anew.
func (a *visibleAnswer) rest() string {
	held := a.held
	*a = visibleAnswer{}
	if held {
		return visible(string(rune(zeroWidthJoiner)))
	}
	return ""
}

// endsInEmoji reports whether the last character of s, but for the sign of its style, is an emoji; before where there is none.
func endsInEmoji(s string, before bool) bool {
	s = strings.TrimSuffix(s, string(rune(emojiStyle)))
	if s == "" {
		return before
	}
	r, _ := utf8.DecodeLastRuneInString(s)
	return isPicture(r) || isSkinTone(r)
}
