// This file cuts texts into words that can be compared: lower-case, without endings. It knows no tool and no message.
package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const rankMaxWord = 64 // bytes of a word; a longer one is data

// rankEachWord hands over the words of a text in lower case: cut at case changes (getHTTPLog: get http log), between letters and digits, and at
// everything else. Runs of Chinese, Japanese or Korean become pairs of characters. A word may share the memory of the text.
func rankEachWord(text string, emit func(word string)) {
	var few [rankMaxWord + utf8.UTFMax]byte
	word, long := few[:0], false
	flush := func() {
		if len(word) > 0 && !long {
			emit(string(word))
		}
		word, long = word[:0], false
	}
	prev := rune(0) // the letter or digit before; 0 at the start of a word
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= 'a' && r <= 'z' && len(word) == 0 { // nearly all of most texts: a word from here to the next other character
			end := i + 1
			for end < len(text) && text[end] >= 'a' && text[end] <= 'z' {
				end++
			}
			if end == len(text) || text[end] < utf8.RuneSelf {
				if end-i <= rankMaxWord {
					emit(text[i:end])
				}
				prev, i = r, end
				continue
			}
		}
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		i += n
		switch {
		case !rankLetter(r):
			flush()
			prev = 0
			continue
		case rankCJK(r):
			flush()
			if rankCJK(prev) {
				emit(string([]rune{prev, r}))
			}
			prev = r
			continue
		case len(word) > 0 && rankBreak(prev, r, text[i:]):
			flush()
		}
		if prev = r; len(word) > rankMaxWord {
			long = true
		} else if r < utf8.RuneSelf {
			if r >= 'A' && r <= 'Z' {
				r += 'a' - 'A'
			}
			word = append(word, byte(r))
		} else {
			word = utf8.AppendRune(word, unicode.ToLower(r))
		}
	}
	flush()
}

// rankBreak reports whether a new word begins with r, which follows prev within letters and digits.
func rankBreak(prev, r rune, rest string) bool {
	switch {
	case unicode.IsDigit(r) != unicode.IsDigit(prev):
		return true
	case !unicode.IsUpper(r):
		return false
	case unicode.IsLower(prev):
		return true
	}
	next, _ := utf8.DecodeRuneInString(rest)
	return unicode.IsUpper(prev) && unicode.IsLower(next)
}

func rankLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

func rankCJK(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// rankSplit gives the words of a text as strings.
func rankSplit(text string) []string {
	var words []string
	rankEachWord(text, func(w string) { words = append(words, w) })
	return words
}

func rankIsASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// rankStem takes plural and common endings off an English word, so that listing, lists and list meet.
func rankStem(w string) string {
	switch w {
	case "always", "analysis", "gas", "lens", "news", "series", "species":
		return w
	}
	if !rankIsASCII(w) {
		return w
	}
	w = rankSingular(w)
	for _, end := range [...]string{"ations", "ation", "ing", "ed", "ers", "er", "ors", "or", "ion", "ly"} {
		if stem, ok := strings.CutSuffix(w, end); ok && len(stem) >= 4 {
			w = stem
			break
		}
	}
	if len(w) > 4 && strings.HasSuffix(w, "e") {
		w = w[:len(w)-1]
	}
	if n := len(w); n > 4 && w[n-1] == w[n-2] && w[n-1] != 'l' && w[n-1] != 's' {
		w = w[:n-1]
	}
	return w
}

func rankSingular(w string) string {
	if stem, ok := strings.CutSuffix(w, "ies"); ok && stem != "" {
		return stem + "y"
	}
	for _, end := range [...]string{"sses", "shes", "ches", "xes", "zes"} {
		if strings.HasSuffix(w, end) {
			return w[:len(w)-2]
		}
	}
	plural := len(w) > 3 && strings.HasSuffix(w, "s")
	if plural && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is") {
		return w[:len(w)-1]
	}
	return w
}
