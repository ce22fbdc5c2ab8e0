// This file reads a message for the ranking: which words are looked for, and what its addresses, file names and turns of phrase hint at. It
// knows no tool.
package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	rankMaxMessage   = 8000 // characters of a message that are looked at
	rankMaxRun       = 60   // ASCII characters without a space from which on a run is data, not words
	rankRepeatWeight = 0.6  // of the logarithm of how often a word stands in the message
	rankFromTo       = 5    // words between from and to
)

// rankTerm is a word that is looked for.
type rankTerm struct {
	Word   string
	Weight float32
}

// rankQuery is what a message looks for. Of a hint only the best word counts at one tool.
type rankQuery struct {
	words []rankTerm   // stemmed, each once, in the order met
	pairs []string     // neighbouring words joined, not stemmed, each once
	hints [][]rankTerm // stemmed
	names []string     // what looks like a tool's full name, in lower case
}

// rankReader collects one message.
type rankReader struct {
	counts     map[string]int
	order      []string // the words of counts as met
	requests   []string // the words that only ask
	pairs      map[string]bool
	pairOrder  []string
	seen       int // hints, as bits
	url, path  bool
	extensions []string
	last       string          // the word before, as it stood there
	kept       strings.Builder // what is left to be cut into words
}

// readMessage reads the first rankMaxMessage characters of a message. Of a search, which is nothing but what is looked for, the words of a
// request count where it has no others ("create").
func readMessage(message string, search bool) rankQuery {
	chars := 0
	for i := range message {
		if chars++; chars > rankMaxMessage {
			message = message[:i]
			break
		}
	}
	r := rankReader{counts: map[string]int{}, pairs: map[string]bool{}}
	fields := strings.Fields(message)
	for i, f := range fields {
		r.field(f)
		if f == "from" || f == "From" {
			r.fromTo(fields[i+1:])
		}
	}
	rankEachWord(r.kept.String(), r.word)
	if search && len(r.order) == 0 {
		for _, w := range r.requests {
			r.count(w)
		}
	}
	return rankQuery{r.words(), r.pairOrder, r.hints(), rankNames(message)}
}

// field takes one run without spaces: addresses shrink to their host, paths and data fall away.
func (r *rankReader) field(f string) {
	for {
		at := strings.Index(f, "://")
		if at < 0 {
			break
		}
		start, end := at, at+len("://")
		for start > 0 && rankASCIILetter(f[start-1]) {
			start--
		}
		for end < len(f) && f[end] < utf8.RuneSelf && !strings.ContainsRune("\"'`<>{}|", rune(f[end])) {
			end++
		}
		host, path, _ := strings.Cut(f[at+len("://"):end], "/")
		if scheme := f[start:at]; strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http") {
			r.url = true
		}
		r.extension(path)
		r.text(f[:start])
		r.kept.WriteString(host + " ")
		f = f[end:]
	}
	bare := strings.TrimLeft(f, "\"'`([{<*")
	if rankIsPath(bare) {
		r.path = true
		r.extension(bare)
		return
	}
	r.extension(f)
	r.text(f)
}

// text keeps a run but for those parts that are too long to be words.
func (r *rankReader) text(f string) {
	for len(f) > 0 {
		end := strings.IndexFunc(f, func(c rune) bool { return c >= utf8.RuneSelf })
		if end < 0 {
			end = len(f)
		}
		if end >= rankMaxRun {
			f = f[end:]
			r.kept.WriteByte(' ')
			continue
		}
		wide := end
		for wide < len(f) && f[wide] >= utf8.RuneSelf {
			wide++
		}
		r.kept.WriteString(f[:wide])
		f = f[wide:]
	}
	r.kept.WriteByte(' ')
}

func rankASCIILetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// rankIsPath reports whether a run is the path of a file: /…, ~/…, ./…, ../…, C:\…
func rankIsPath(f string) bool {
	for _, start := range [...]string{"~/", "./", "../", `.\`, `..\`} {
		if strings.HasPrefix(f, start) {
			return true
		}
	}
	if len(f) > 2 && rankASCIILetter(f[0]) && f[1] == ':' && (f[2] == '\\' || f[2] == '/') {
		return true
	}
	r, _ := utf8.DecodeRuneInString(strings.TrimPrefix(f, "/"))
	return strings.HasPrefix(f, "/") && (unicode.IsLetter(r) || r == '.' || r == '_')
}

// extension notes the extensions of file names in a run.
func (r *rankReader) extension(f string) {
	for i := 1; i < len(f); i++ {
		if f[i] != '.' || !rankLetter(rune(f[i-1])) && f[i-1] < utf8.RuneSelf && f[i-1] != '_' && f[i-1] != '-' && f[i-1] != ')' && f[i-1] != '*' {
			continue
		}
		end := i + 1
		for end < len(f) && f[end] < utf8.RuneSelf && rankLetter(rune(f[end])) {
			end++
		}
		if ext := strings.ToLower(f[i+1 : end]); end-i <= 5 && rankExtension(ext) != "" && !slices.Contains(r.extensions, ext) {
			r.extensions = append(r.extensions, ext)
		}
	}
}

// fromTo looks for a way between two places, which have capitals, behind the word from.
func (r *rankReader) fromTo(fields []string) {
	for i, f := range fields[:min(len(fields), rankFromTo+1)] {
		if f == "to" && i > 0 && i+1 < len(fields) && rankCapital(fields[0]) && rankCapital(fields[i+1]) {
			r.seen |= hintRoute
		}
	}
}

func rankCapital(f string) bool {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(f, "\"'`(*"))
	return unicode.IsUpper(r)
}

// word takes the words of what is left, one after another.
func (r *rankReader) word(w string) {
	r.seen |= rankHint(w) | rankPhrase(r.last, w)
	if r.last != "" && rankIsASCII(w) && rankIsASCII(r.last) && !r.pairs[r.last+w] {
		r.pairs[r.last+w] = true
		r.pairOrder = append(r.pairOrder, r.last+w)
	}
	r.last = w
	if rankRequest(w) {
		r.requests = append(r.requests, w)
		return
	}
	r.count(w)
	if !rankIsASCII(w) {
		for more := range strings.FieldsSeq(rankGloss(w)) {
			if !rankRequest(more) {
				r.count(more)
			}
		}
	}
}

// count counts a word that says something: no stop-word, bare number or single letter.
func (r *rankReader) count(w string) {
	number := strings.IndexFunc(w, func(c rune) bool { return !unicode.IsDigit(c) }) < 0
	if len(w) == 1 || number || rankStop(w) {
		return
	}
	stem := rankStem(w)
	if r.counts[stem]++; r.counts[stem] == 1 {
		r.order = append(r.order, stem)
	}
}

// words weighs the words: 1 + 0.6 ln c for one that stands there c times.
func (r *rankReader) words() []rankTerm {
	out := make([]rankTerm, len(r.order))
	for i, w := range r.order {
		out[i] = rankTerm{Word: w, Weight: float32(1 + rankRepeatWeight*math.Log(float64(r.counts[w])))}
	}
	return out
}

// hints turns what was seen into words to look for.
func (r *rankReader) hints() [][]rankTerm {
	var out [][]rankTerm
	if r.url {
		out = append(out, rankTerms("url fetch web 0.7 page 0.7", ""))
	}
	for _, ext := range r.extensions {
		out = append(out, rankTerms(rankExtension(ext), "file"))
	}
	if r.path {
		out = append(out, rankTerms("file", ""))
	} else {
		r.seen &^= hintWrite | hintRead
	}
	for hint := 1; hint <= hintWeb; hint <<= 1 {
		if r.seen&hint != 0 {
			out = append(out, rankTerms(rankHintWords(hint), ""))
		}
	}
	return out
}

// rankTerms reads words with their weights; the word low counts 0.7 where no weight is given.
func rankTerms(list, low string) []rankTerm {
	var out []rankTerm
	for f := range strings.FieldsSeq(list) {
		if weight, err := strconv.ParseFloat(f, 32); err == nil && len(out) > 0 {
			out[len(out)-1].Weight = float32(weight)
			continue
		}
		t := rankTerm{Word: rankStem(f), Weight: 1}
		if f == low {
			t.Weight = 0.7
		}
		out = append(out, t)
	}
	return out
}

// rankNames gives what in a message could be a tool's full name.
func rankNames(message string) []string {
	var names []string
	for f := range strings.FieldsFuncSeq(message, func(r rune) bool { return r != '_' && r != '-' && r != '/' && !rankLetter(r) }) {
		if f = strings.Trim(f, "-/"); rankLooksLikeName(f) {
			names = append(names, strings.ToLower(f))
		}
	}
	return names
}

// rankLooksLikeName keeps plain words like "search" words: a name has _, -, / or a change of case in it.
func rankLooksLikeName(s string) bool {
	if strings.ContainsAny(s, "_-/") {
		return true
	}
	prev := rune(0)
	for _, r := range s {
		if unicode.IsUpper(r) && unicode.IsLower(prev) {
			return true
		}
		prev = r
	}
	return false
}
