// This file ranks tools by the words of a message: an inverted index with BM25 over tools and over their servers, without a model. It knows
// texts and numbers, no tool type.
package main

import (
	"encoding/json"
	"errors"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Weights of a word by where in a tool it stands.
const (
	rankNameWeight   = 3.0  // its name
	rankServerWeight = 1.5  // its server's name
	rankFirstWeight  = 1.0  // the first sentence of its description
	rankRestWeight   = 0.3  // the rest of it
	rankParamWeight  = 0.5  // the name of a parameter
	rankParamText    = 0.25 // the description of one

	rankSchemaDepth = 5    // levels of nested parameters that are read
	rankDocWords    = 4000 // words of one tool that are read
	rankUsual       = 128  // different words that a tool usually has, for which room is made
)

// How scores are made.
const (
	rankSynonymWeight = 0.5 // of a synonym
	rankJoinedWeight  = 0.5 // of neighbouring words joined
	rankJoinedMin     = 5   // letters that a word has at least one more of to be looked for as joined words
	rankCoverWeight   = 0.5 // of the share of the name's words that are looked for
	rankServerShare   = 0.8 // of the server's score
	rankEntryWeight   = 0.1 // what it counts more at a tool that one begins with
)

// rankCurve says how the weight of a word saturates (BM25: k1+1, k1·(1-b) and k1·b), for tools and for servers, whose texts are long.
type rankCurve struct{ peak, free, slope float32 }

var (
	rankTools   = rankCurve{2.5, 0.3, 1.2}
	rankServers = rankCurve{5, 0, 4}
)

// rankDoc is one tool as the index sees it. Alias is another full name of it, "" without one.
type rankDoc struct {
	Server, Name, Alias, Description string
	Schema                           json.RawMessage
}

// rankHit is one tool found. Named says that the message has its full name, which puts it before all others.
type rankHit struct {
	Doc   int
	Score float64
	Named bool
}

// rankIndex is read-only once built and may be shared.
type rankIndex struct {
	docs, servers int
	terms         map[string]int32
	tools, srv    rankLists
	idf           []float32 // of each term over the tools
	server        []int32   // of each tool
	entry         []bool    // of each tool
	nameAt        []int32   // where in nameTerms a tool's name begins; one more at the end
	nameTerms     []int32
	names         map[string][]int32 // lower-case full name -> tools
	synonyms      map[string][]int32
}

// rankLists holds for each term who has it and what it counts there. A posting is the number of a tool or server and, in its low bits, the
// saturation in steps of full: half the memory, and the steps are far finer than what the weights are worth.
type rankLists struct {
	at       []int32 // where a term's list begins; one more at the end
	postings []uint32
	unit     []float32 // by term, idf × peak / full: what one step counts
}

const (
	rankStepBits = 12
	rankFull     = 1<<rankStepBits - 1
	rankMaxDocs  = 1 << (32 - rankStepBits) // tools of one index; further ones are not ranked
)

func (l *rankLists) of(term int32) []uint32 {
	return l.postings[l.at[term]:l.at[term+1]]
}

// rankVectors holds the weighted words of tools, or of servers, one after another.
type rankVectors struct {
	at     []int32 // where each begins; one more at the end
	terms  []int32
	tf     []float32
	length []float32
}

func (v *rankVectors) each(doc int, f func(term int32, tf float32)) {
	for i := v.at[doc]; i < v.at[doc+1]; i++ {
		f(v.terms[i], v.tf[i])
	}
}

// rankBuilder reads tools, which follow one another, into vectors.
type rankBuilder struct {
	tools     rankVectors
	terms     map[string]int32
	nameAt    []int32 // as in the index
	nameTerms []int32
	entry     []bool
	words     rankMemo  // words as they stand there -> terms, -1 for stop-words
	sum       []float32 // by term, of the tool or server at hand
	used      []int32   // terms with a sum
	length    float32
	left      int // words that may still be read of the tool at hand
}

// newRankIndex reads every document once. On two processors two readers were no faster than one, and took more memory.
func newRankIndex(docs []rankDoc) *rankIndex {
	docs = docs[:min(len(docs), rankMaxDocs)]
	n := len(docs)
	ix := &rankIndex{docs: n, names: make(map[string][]int32, 2*n), server: make([]int32, n)}
	b := newRankBuilder(n)
	for _, d := range docs {
		b.doc(d)
		b.close(&b.tools)
	}
	ix.readNames(docs)
	ix.terms, ix.entry, ix.nameAt, ix.nameTerms = b.terms, b.entry, b.nameAt, b.nameTerms
	ix.tools, ix.idf = newRankLists(&b.tools, len(ix.terms), rankTools)
	if ix.servers > 1 {
		ix.srv, _ = newRankLists(b.serverVectors(ix), len(ix.terms), rankServers)
	}
	ix.readSynonyms()
	return ix
}

func newRankBuilder(docs int) *rankBuilder {
	b := &rankBuilder{terms: map[string]int32{}, nameAt: make([]int32, 1, docs+1), words: newRankMemo()}
	b.tools = rankVectors{at: make([]int32, 1, docs+1), length: make([]float32, 0, docs), terms: make([]int32, 0, docs*rankUsual), tf: make([]float32, 0, docs*rankUsual)}
	return b
}

// readNames notes the server and the full names of each tool.
func (ix *rankIndex) readNames(docs []rankDoc) {
	servers := map[string]int32{}
	for i, d := range docs {
		id, known := servers[d.Server]
		if !known {
			id = int32(len(servers))
			servers[d.Server] = id
		}
		ix.server[i] = id
		for _, name := range [...]string{d.Name, d.Alias, d.Server + "/" + d.Name} {
			if name != "" {
				name = strings.ToLower(name)
				ix.names[name] = append(ix.names[name], int32(i))
			}
		}
	}
	ix.servers = len(servers)
}

// doc adds up the words of one tool.
func (b *rankBuilder) doc(d rankDoc) {
	b.left, b.length = rankDocWords, 0
	entry, start := false, len(b.nameTerms)
	for _, w := range b.named(d.Name, rankNameWeight) {
		if term := b.term(w); term >= 0 && !slices.Contains(b.nameTerms[start:], term) {
			b.nameTerms = append(b.nameTerms, term)
		}
		entry = entry || rankEntry(rankStem(w))
	}
	b.nameAt, b.entry = append(b.nameAt, int32(len(b.nameTerms))), append(b.entry, entry)
	b.named(d.Server, rankServerWeight)
	first, rest := rankSentence(d.Description)
	b.text(first, rankFirstWeight)
	b.text(rest, rankRestWeight)
	p := jsonScan{b: d.Schema}
	_ = b.schema(&p, 0) // of a broken schema what stands before the fault counts
}

// named adds the words of a name and, without counting them for the length, each two neighbours joined. It gives the words.
func (b *rankBuilder) named(name string, weight float32) []string {
	words := rankSplit(name)
	b.text(name, weight)
	for i := 1; i < len(words); i++ {
		if rankIsASCII(words[i-1]) && rankIsASCII(words[i]) {
			b.add(b.newTerm("+"+rankStem(words[i-1]+words[i])), weight)
		}
	}
	return words
}

// rankSentence splits off the first sentence, or the first line if that is shorter.
func rankSentence(s string) (first, rest string) {
	for i, r := range s {
		space := i+1 == len(s) || s[i+1] == ' ' || s[i+1] == '\n'
		if r == '\n' || r == '。' || space && (r == '.' || r == '!' || r == '?') {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

func (b *rankBuilder) text(s string, weight float32) {
	rankEachWord(s, func(w string) {
		if b.left == 0 {
			return
		}
		b.left--
		b.count(w, weight)
		if w[0] >= utf8.RuneSelf {
			for more := range strings.FieldsSeq(rankGloss(w)) {
				b.count(more, weight)
			}
		}
	})
}

func (b *rankBuilder) count(w string, weight float32) {
	if term := b.term(w); term >= 0 {
		b.add(term, weight)
		b.length += weight
	}
}

// term gives the number of a word's stem, -1 for a stop-word.
func (b *rankBuilder) term(w string) int32 {
	term, key, ok := b.words.get(w)
	if !ok {
		if term = -1; !rankStop(w) {
			term = b.newTerm(rankStem(w))
		}
		b.words.put(key, term)
	}
	return term
}

func (b *rankBuilder) newTerm(stem string) int32 {
	term, ok := b.terms[stem]
	if !ok {
		term = int32(len(b.terms))
		b.terms[strings.Clone(stem)] = term
		b.sum = append(b.sum, 0)
	}
	return term
}

func (b *rankBuilder) add(term int32, weight float32) {
	if b.sum[term] == 0 {
		b.used = append(b.used, term)
	}
	b.sum[term] += weight
}

// close ends a tool or server: its sums become a vector.
func (b *rankBuilder) close(v *rankVectors) {
	for _, term := range b.used {
		v.terms = append(v.terms, term)
		v.tf = append(v.tf, b.sum[term])
		b.sum[term] = 0
	}
	b.used = b.used[:0]
	v.at = append(v.at, int32(len(v.terms)))
	v.length = append(v.length, b.length)
}

// rankMemo is a map from words to terms that is asked for every word of every tool, so it looks at one small slot instead of the word itself. Two
// words of one 64-bit hash, of which the seed differs from run to run, would be taken for one.
type rankMemo struct {
	seed  maphash.Seed
	slots []rankSlot // a power of two of them, at most half of them in use
	used  int
}

type rankSlot struct {
	key  uint64 // 0 in a free slot
	term int32
}

func newRankMemo() rankMemo {
	return rankMemo{seed: maphash.MakeSeed(), slots: make([]rankSlot, 1<<12)}
}

// get gives the term of a word, and the key to put it under where it is not there.
func (m *rankMemo) get(w string) (term int32, key uint64, ok bool) {
	key = maphash.String(m.seed, w) | 1
	s := m.slot(key)
	return s.term, key, s.key == key
}

func (m *rankMemo) slot(key uint64) *rankSlot {
	for i := key >> 1; ; i++ {
		if s := &m.slots[i&uint64(len(m.slots)-1)]; s.key == key || s.key == 0 {
			return s
		}
	}
}

func (m *rankMemo) put(key uint64, term int32) {
	if m.used++; m.used > len(m.slots)/2 {
		old := m.slots
		m.slots = make([]rankSlot, 2*len(old))
		for _, s := range old {
			if s.key != 0 {
				*m.slot(s.key) = s
			}
		}
	}
	*m.slot(key) = rankSlot{key, term}
}

var errRankDone = errors.New("enough words")

// schema adds the names and descriptions of parameters, those inside objects and lists too.
func (b *rankBuilder) schema(p *jsonScan, depth int) error {
	if p.space(); depth > rankSchemaDepth || p.i >= len(p.b) || p.b[p.i] != '{' {
		_, err := p.value()
		return err
	}
	if b.left == 0 {
		return errRankDone
	}
	return p.eachMember(func(key []byte) error {
		switch string(key) {
		case "properties":
			return b.properties(p, depth)
		case "items":
			return b.schema(p, depth+1)
		case "description":
			raw, err := p.value()
			if s, ok := memberString(raw); ok && depth > 0 {
				b.text(s, rankParamText)
			}
			return err
		}
		_, err := p.value()
		return err
	})
}

func (b *rankBuilder) properties(p *jsonScan, depth int) error {
	if p.space(); p.i >= len(p.b) || p.b[p.i] != '{' {
		_, err := p.value()
		return err
	}
	return p.eachMember(func(name []byte) error {
		b.text(string(name), rankParamWeight)
		return b.schema(p, depth+1)
	})
}

// serverVectors adds up the vectors of each server's tools.
func (b *rankBuilder) serverVectors(ix *rankIndex) *rankVectors {
	of := make([][]int, ix.servers)
	for doc, s := range ix.server {
		of[s] = append(of[s], doc)
	}
	v := &rankVectors{at: make([]int32, 1, len(of)+1)}
	for _, docs := range of {
		b.length = 0
		for _, doc := range docs {
			b.tools.each(doc, func(term int32, tf float32) {
				b.add(term, tf)
				b.length += tf
			})
		}
		b.close(v)
	}
	return v
}

// newRankLists turns vectors round: score = idf × peak × tf / (tf + free + slope × length / mean length).
func newRankLists(v *rankVectors, terms int, c rankCurve) (l rankLists, idf []float32) {
	l = rankLists{at: make([]int32, terms+1), postings: make([]uint32, len(v.terms)), unit: make([]float32, terms)}
	for _, term := range v.terms {
		l.at[term+1]++
	}
	idf = make([]float32, terms)
	n, total := float64(len(v.length)), 0.0
	for term := range idf {
		df := float64(l.at[term+1])
		idf[term] = float32(math.Log(1 + (n-df+0.5)/(df+0.5)))
		l.at[term+1] += l.at[term]
		l.unit[term] = idf[term] * c.peak / rankFull
	}
	for _, length := range v.length {
		total += float64(length)
	}
	mean := float32(max(total/max(n, 1), 1e-9))
	next := slices.Clone(l.at)
	for doc, length := range v.length {
		norm := c.free + c.slope*length/mean
		v.each(doc, func(term int32, tf float32) {
			steps := max(uint32(rankFull*tf/(tf+norm)+0.5), 1)
			l.postings[next[term]] = uint32(doc)<<rankStepBits | steps
			next[term]++
		})
	}
	return l, idf
}

// readSynonyms keeps of the groups what the tools have.
func (ix *rankIndex) readSynonyms() {
	ix.synonyms = map[string][]int32{}
	for group := range strings.SplitSeq(rankSynonyms, ";") {
		words := strings.Fields(group)
		for i, w := range words {
			words[i] = rankStem(w)
		}
		for _, w := range words {
			for _, other := range words {
				if term, ok := ix.terms[other]; ok && other != w && !slices.Contains(ix.synonyms[w], term) {
					ix.synonyms[w] = append(ix.synonyms[w], term)
				}
			}
		}
	}
}
