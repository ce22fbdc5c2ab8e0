// This file ranks tools by the words of a message: an inverted index with BM25 over names and descriptions, no model and no tables of
// meaning. It knows texts and numbers, no tool type.
package main

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	rankMaxMessage  = 8000 // characters of a message that are looked at
	rankNameWeight  = 3.0  // a word of the name
	rankFirstWeight = 1.0  // a word of the description's first sentence
	rankRestWeight  = 0.3  // a word of the rest
	rankPairWeight  = 0.5  // two neighbouring words of the message, joined
	rankK           = 1.5  // BM25 saturation
	rankB           = 0.8  // BM25 length norm
	rankMaxRun      = 60   // characters without a space from which on a run is data, not words

	rankStopWords = " a about above after again all also am an and any are as at be because been before being below between both but by can cannot could did do does doing down during each few for from further get give had has have having he help her here hers him his how i if in into is it its itself just know let like ll m make me more most my need no nor not now of off on once only or other our ours out over own please re really s same she should so some such t than that the their theirs them then there these they this those through to too under until up ve very want was we were what when where which while who whom why will with would you your yours "

	rankRequestWords = " able actually additional additionally also anything assist based best bit could create curious current currently details ensure everything finally find first furthermore get give going hello help hey hi important include including information interested kind kindly know lastly let like look looking lot make many maybe moreover much multiple need next one plan planning please provide really recommend related second several show some someone something sort specific suggest sure tell thank thanks thing third three trying two use used user using want way whether wondering would "
)

// rankDoc is one tool as the index sees it.
type rankDoc struct{ Name, Description string }

type rankPosting struct {
	doc   int
	score float64 // idf × saturation, ready to be added
}

// rankIndex is read-only once built and may be shared.
type rankIndex struct {
	docs     int
	names    map[string][]int // lower-case full name -> docs
	postings map[string][]rankPosting
}

// newRankIndex reads every document once.
func newRankIndex(docs []rankDoc) *rankIndex {
	ix := &rankIndex{docs: len(docs), names: map[string][]int{}, postings: map[string][]rankPosting{}}
	tfs, lengths, total := make([]map[string]float64, len(docs)), make([]float64, len(docs)), 0.0
	for i, d := range docs {
		ix.names[strings.ToLower(d.Name)] = append(ix.names[strings.ToLower(d.Name)], i)
		tfs[i], lengths[i] = rankDocTerms(d)
		total += lengths[i]
		for t, tf := range tfs[i] {
			ix.postings[t] = append(ix.postings[t], rankPosting{i, tf})
		}
	}
	n, avg := float64(len(docs)), max(total/max(float64(len(docs)), 1), 1e-9)
	for _, ps := range ix.postings {
		idf := math.Log(1 + (n-float64(len(ps))+0.5)/(float64(len(ps))+0.5))
		for i, p := range ps {
			norm := rankK * (1 - rankB + rankB*lengths[p.doc]/avg)
			ps[i].score = idf * (rankK + 1) * p.score / (p.score + norm)
		}
	}
	return ix
}

// rankDocTerms weighs the words of one tool; joined neighbours of the name ("+wordcloud") do not count for the length.
func rankDocTerms(d rankDoc) (tf map[string]float64, length float64) {
	tf = map[string]float64{}
	add := func(words []string, weight float64) {
		for _, w := range words {
			tf[w] += weight
			length += weight
		}
	}
	raw := rankSplit(d.Name)
	add(rankStems(raw), rankNameWeight)
	first, rest := d.Description, ""
	if i := strings.Index(first, ". "); i >= 0 {
		first, rest = first[:i], first[i:]
	}
	add(rankStems(rankSplit(first)), rankFirstWeight)
	add(rankStems(rankSplit(rest)), rankRestWeight)
	for i := 1; i < len(raw); i++ {
		tf["+"+raw[i-1]+raw[i]] += rankNameWeight
	}
	return tf, length
}

// top gives at most k documents for the message, best first. A tool whose full name stands in the message comes before all others; one
// without any score is never listed; ties keep the order of the documents.
func (ix *rankIndex) top(message string, k int) []int {
	if k = min(k, ix.docs); k <= 0 {
		return nil
	}
	scores := make([]float64, ix.docs)
	for term, weight := range rankQuery(message) {
		for _, p := range ix.postings[term] {
			scores[p.doc] += weight * p.score
		}
	}
	for _, name := range strings.FieldsFunc(message, func(r rune) bool {
		return r != '_' && r != '-' && r != '/' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if rankLooksLikeName(name) {
			for _, d := range ix.names[strings.ToLower(name)] {
				scores[d] = math.Inf(1)
			}
		}
	}
	best := make([]int, 0, k+1)
	for d, score := range scores {
		if score <= 0 || (len(best) == k && score <= scores[best[k-1]]) {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, score, func(other int, score float64) int {
			if scores[other] >= score {
				return -1 // an equal one came before and stays before
			}
			return 1
		})
		best = slices.Insert(best, at, d)
		best = best[:min(k, len(best))]
	}
	return best
}

// rankLooksLikeName keeps plain words like "search" words: a name has _, -, / or a change of case in it.
func rankLooksLikeName(s string) bool {
	return strings.ContainsAny(s, "_-/") || len(rankSplit(s)) > 1
}

// rankQuery gives the words of a message with their weights: 1 + 0.6 ln c for a word that stands there c times, neighbours joined at half.
func rankQuery(message string) map[string]float64 {
	if utf8.RuneCountInString(message) > rankMaxMessage {
		message = string([]rune(message)[:rankMaxMessage])
	}
	counts, pairs := map[string]int{}, map[string]bool{}
	for field := range strings.FieldsSeq(message) {
		if utf8.RuneCountInString(field) >= rankMaxRun && rankIsASCII(field) {
			message = strings.Replace(message, field, " ", 1)
		} else if host, ok := rankURLHost(field); ok {
			message = strings.Replace(message, field, host, 1)
		} else if strings.HasPrefix(field, "/") || strings.HasPrefix(field, "~/") || strings.HasPrefix(field, "./") {
			if strings.Count(field, "/") > 1 || !strings.HasPrefix(field, "/") {
				message = strings.Replace(message, field, " ", 1)
			}
		}
	}
	raw := rankSplit(message)
	for i, w := range raw {
		if i > 0 {
			pairs[raw[i-1]+w] = true
		}
		if !rankDropped(w) {
			counts[rankStem(w)]++
		}
	}
	terms := map[string]float64{}
	for p := range pairs {
		terms["+"+p] = rankPairWeight
		terms[rankStem(p)] = rankPairWeight
	}
	for w, c := range counts {
		terms[w] = 1 + 0.6*math.Log(float64(c))
		if utf8.RuneCountInString(w) > 5 {
			terms["+"+w] = rankPairWeight
		}
	}
	return terms
}

// rankDropped says which words of a message say nothing about a tool.
func rankDropped(w string) bool {
	latin := len(w) == 1 && w[0] < utf8.RuneSelf
	number := strings.IndexFunc(w, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
	return latin || number || rankListed(rankStopWords, w) || rankListed(rankRequestWords, w)
}

func rankListed(list, w string) bool { return strings.Contains(list, " "+w+" ") }

func rankIsASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// rankURLHost gives the host of a field that is a URL.
func rankURLHost(field string) (string, bool) {
	_, rest, ok := strings.Cut(field, "://")
	if !ok {
		return "", false
	}
	host, _, _ := strings.Cut(rest, "/")
	return host, true
}

// rankSplit cuts text into lower-case words: at case changes (getHTTPLog: get http log), between letters and digits, at everything else.
// Runs of Chinese, Japanese or Korean become pairs of characters.
func rankSplit(text string) []string {
	var words []string
	var cur []rune
	flush := func() {
		if len(cur) > 0 {
			words = append(words, strings.ToLower(string(cur)))
		}
		cur = cur[:0]
	}
	rs := []rune(text)
	for i, r := range rs {
		prev := rune(0)
		if i > 0 {
			prev = rs[i-1]
		}
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			flush()
			continue
		case rankCJK(r):
			flush()
			if rankCJK(prev) {
				words = append(words, string([]rune{prev, r}))
			}
			continue
		case rankCJK(prev), unicode.IsDigit(r) != unicode.IsDigit(prev) && len(cur) > 0:
			flush()
		case unicode.IsUpper(r) && unicode.IsLower(prev):
			flush()
		case unicode.IsUpper(r) && unicode.IsUpper(prev) && i+1 < len(rs) && unicode.IsLower(rs[i+1]):
			flush()
		}
		cur = append(cur, r)
	}
	flush()
	return words
}

func rankCJK(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// rankStems drops stop-words and stems the rest.
func rankStems(words []string) []string {
	out := make([]string, 0, len(words))
	for _, w := range words {
		if !rankListed(rankStopWords, w) {
			out = append(out, rankStem(w))
		}
	}
	return out
}

// rankStem takes plural and common endings off an English word, so that listing, lists and list meet.
func rankStem(w string) string {
	if rankListed(" always analysis gas lens news series species ", w) || !rankIsASCII(w) {
		return w
	}
	w = rankSingular(w)
	for _, end := range []string{"ations", "ation", "ing", "ed", "ers", "er", "ors", "or", "ion", "ly"} {
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
	for _, end := range []string{"sses", "shes", "ches", "xes", "zes"} {
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
