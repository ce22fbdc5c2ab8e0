// This file holds what all searches of the vault share: which words of a text an index knows, how a query is cut into words, and the piece
// of a text around a word that was found. A query is words and never an expression. It knows no table.
package main

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	searchWordsMax  = 64 << 10 // different words of a text that an index knows; it bounds how long the vault stays locked
	searchTermsMax  = 32       // words of a query that count
	searchTermMax   = 128      // bytes of one word that count
	searchPrefixMin = 3        // characters from which a word finds longer ones too, where there are too many of those otherwise
	searchScanMax   = 1 << 20  // bytes of a hit that are read for its snippet
	searchSnippet   = 160      // bytes of text around a hit
)

// searchTerms cuts a query into its different words.
func searchTerms(query string) (terms []string) {
	for t := range searchWords(query, false) {
		if slices.Contains(terms, t) {
			continue
		}
		if terms = append(terms, t); len(terms) == searchTermsMax {
			break
		}
	}
	return terms
}

// eachMatch asks search for what holds all terms, as words and then as beginnings of words, and where it finds nothing for what holds any.
// Without a term nothing is found.
func eachMatch(terms []string, search func(expression string) (found int, err error)) error {
	if len(terms) == 0 {
		return nil
	}
	for _, expression := range []string{matchExpression(terms, " AND ", 0), matchExpression(terms, " AND ", 1), matchExpression(terms, " OR ", 1)} {
		found, err := search(expression)
		if err != nil || found > 0 {
			return err
		}
	}
	return nil
}

// matchExpression writes words as FTS5 strings (https://sqlite.org/fts5.html, section 3.1). Words of at least prefix characters match those that
// begin so too; 0 is for whole words alone.
func matchExpression(terms []string, operator string, prefix int) string {
	quoted := make([]string, len(terms))
	for i, t := range terms {
		if quoted[i] = `"` + t + `"`; prefix > 0 && (utf8.RuneCountInString(t) >= prefix || strings.ContainsFunc(t, isUnspaced)) {
			quoted[i] += "*"
		}
	}
	return strings.Join(quoted, operator)
}

// indexText gives the different words of a text, up to searchWordsMax. Indexing each word as often as it stands in 10 MB
// would keep the vault locked for seconds.
func indexText(text string) string {
	seen := map[string]bool{}
	var b strings.Builder
	for w := range searchWords(text, true) {
		if seen[w] {
			continue
		}
		if len(seen) == searchWordsMax {
			break
		}
		seen[w] = true
		b.WriteString(w)
		b.WriteByte(' ')
	}
	return b.String()
}

// searchWords yields the words that an index knows: runs of letters, digits and signs such as emoji, each cut at searchTermMax bytes. Of
// writing that puts no spaces between words it yields every two characters that follow each other, and, for an index, the last one alone: so
// any part of a run is found.
func searchWords(text string, index bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		for run := range strings.FieldsFuncSeq(text, isNoWord) {
			if !strings.ContainsFunc(run, isUnspaced) {
				if !yield(cutWord(run)) {
					return
				}
				continue
			}
			for _, part := range unspacedParts(run, index) {
				if !yield(cutWord(part)) {
					return
				}
			}
		}
	}
}

func cutWord(w string) string {
	if len(w) > searchTermMax {
		return strings.ToValidUTF8(w[:searchTermMax], "")
	}
	return w
}

// unspacedParts cuts a run that holds writing without spaces.
func unspacedParts(run string, index bool) (parts []string) {
	for run != "" {
		unspaced := strings.IndexFunc(run, isUnspaced) == 0
		n := strings.IndexFunc(run, func(c rune) bool { return isUnspaced(c) != unspaced && !unicode.Is(unicode.M, c) })
		if n < 0 {
			n = len(run)
		}
		part := run[:n]
		run = run[n:]
		if !unspaced {
			parts = append(parts, part)
			continue
		}
		starts := make([]int, 0, len(part))
		for i := range part {
			starts = append(starts, i)
		}
		for i := 2; i < len(starts); i++ {
			parts = append(parts, part[starts[i-2]:starts[i]])
		}
		if len(starts) > 1 {
			parts = append(parts, part[starts[len(starts)-2]:])
		}
		if index || len(starts) == 1 {
			parts = append(parts, part[starts[len(starts)-1]:])
		}
	}
	return parts
}

// isUnspaced reports a character of Chinese or Japanese writing.
func isUnspaced(c rune) bool {
	return c >= 0x2e80 && (c == 'ー' || unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana))
}

// isNoWord agrees with the tokenizer of the indexes.
func isNoWord(c rune) bool {
	if c < utf8.RuneSelf {
		return !(c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9')
	}
	return c == utf8.RuneError || !unicode.In(c, unicode.L, unicode.N, unicode.M, unicode.Co, unicode.So)
}

// snippet cuts the piece of text around the first place of any term, or the beginning, on one line.
func snippet(body []byte, terms []string) string {
	at := -1
	for _, t := range terms {
		if i := indexFold(body, t); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	from := max(0, at-searchSnippet/2)
	to := min(len(body), from+searchSnippet)
	for from > 0 && !utf8.RuneStart(body[from]) {
		from++
	}
	for to < len(body) && !utf8.RuneStart(body[to]) {
		to--
	}
	s := strings.Join(strings.Fields(string(body[from:to])), " ")
	if from > 0 {
		s = "… " + s
	}
	if to < len(body) {
		s += " …"
	}
	return s
}

// indexFold finds word in text, ASCII letters of either case alike.
func indexFold(text []byte, word string) int {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i]|0x20 == word[0]|0x20 && strings.EqualFold(string(text[i:i+len(word)]), word) {
			return i
		}
	}
	return -1
}
