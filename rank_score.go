// This file scores the tools of an index for one message and takes the best.
package main

import (
	"math"
	"slices"
)

// rankWeighted is a term of the index that is looked for.
type rankWeighted struct {
	term   int32
	weight float32
}

// rankScan is what was found for one message.
type rankScan struct {
	ix      *rankIndex
	own     []float32 // by tool
	srv     []float32 // by server
	best    []float32 // by tool or server, of the group at hand
	touched []uint32  // who has a best
	looked  []float32 // by term, the highest weight with which it is looked for
	group   []rankWeighted
	named   map[int]bool // tools whose full name stands in the message
}

// scan looks for a message in the index.
func (ix *rankIndex) scan(message string) *rankScan {
	return ix.look(readMessage(message, false))
}

func (ix *rankIndex) look(q rankQuery) *rankScan {
	s := &rankScan{ix: ix, own: make([]float32, ix.docs), srv: make([]float32, ix.servers), best: make([]float32, max(ix.docs, ix.servers)), looked: make([]float32, len(ix.terms)), named: map[int]bool{}}
	s.query(q)
	for _, name := range q.names {
		for _, doc := range ix.names[name] {
			s.named[int(doc)] = true
		}
	}
	return s
}

// top gives at most k tools, best first, and how many have a score at all. A tool without any is never listed; a tool whose full name stands
// in the message comes before all others; ties keep the order of the documents. keep, unless nil, says which tools count.
func (s *rankScan) top(k int, keep func(doc int) bool) (hits []rankHit, fit int) {
	heap := rankHeap{}
	for doc := range s.ix.docs {
		if keep != nil && !keep(doc) {
			continue
		}
		hit := rankHit{Doc: doc, Score: s.score(doc), Named: len(s.named) > 0 && s.named[doc]}
		if hit.Score > 0 || hit.Named {
			fit++
			heap.offer(hit, k)
		}
	}
	slices.SortFunc(heap, func(a, b rankHit) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return heap, fit
}

// query adds up everything that is looked for, group by group.
func (s *rankScan) query(q rankQuery) {
	asked := map[int32]bool{} // words of the message itself
	for _, w := range q.words {
		if term, ok := s.ix.terms[w.Word]; ok {
			asked[term] = true
		}
	}
	for _, w := range q.words {
		s.word(w.Word, w.Weight)
		if len(w.Word) > rankJoinedMin {
			s.word("+"+w.Word, rankJoinedWeight)
		}
		for _, term := range s.ix.synonyms[w.Word] {
			if !asked[term] {
				s.group = append(s.group, rankWeighted{term, w.Weight * rankSynonymWeight})
			}
		}
		s.flush()
	}
	for _, pair := range q.pairs {
		stem := rankStem(pair)
		s.word(stem, rankJoinedWeight)
		s.word("+"+stem, rankJoinedWeight)
		s.flush()
	}
	for _, hint := range q.hints {
		for _, t := range hint {
			if term, ok := s.ix.terms[t.Word]; ok && !asked[term] {
				s.group = append(s.group, rankWeighted{term, t.Weight})
			}
		}
		s.flush()
	}
}

// word adds a word to the group at hand, if any tool has it.
func (s *rankScan) word(w string, weight float32) {
	if term, ok := s.ix.terms[w]; ok {
		s.group = append(s.group, rankWeighted{term, weight})
	}
}

// flush counts the group at hand: at each tool and at each server only the best of its words.
func (s *rankScan) flush() {
	for _, g := range s.group {
		s.looked[g.term] = max(s.looked[g.term], g.weight)
	}
	s.add(&s.ix.tools, s.own)
	if s.ix.servers > 1 {
		s.add(&s.ix.srv, s.srv)
	}
	s.group = s.group[:0]
}

func (s *rankScan) add(l *rankLists, sums []float32) {
	if len(s.group) == 1 {
		g := s.group[0]
		unit := g.weight * l.unit[g.term]
		for _, p := range l.of(g.term) {
			sums[p>>rankStepBits] += unit * float32(p&rankFull)
		}
		return
	}
	s.touched = s.touched[:0]
	for _, g := range s.group {
		unit := g.weight * l.unit[g.term]
		for _, p := range l.of(g.term) {
			doc, score := p>>rankStepBits, unit*float32(p&rankFull)
			switch best := s.best[doc]; {
			case best == 0:
				s.touched = append(s.touched, doc)
				s.best[doc] = score
			case score > best:
				s.best[doc] = score
			}
		}
	}
	for _, doc := range s.touched {
		sums[doc] += s.best[doc]
		s.best[doc] = 0
	}
}

// score puts together what was found for a tool.
func (s *rankScan) score(doc int) float64 {
	score, entry := float64(s.own[doc]), 1.0
	if score > 0 {
		score *= 1 + rankCoverWeight*s.cover(doc)
	}
	if s.ix.entry[doc] {
		entry += rankEntryWeight
	}
	return score + rankServerShare*entry*float64(s.srv[s.ix.server[doc]])
}

// cover is the share of the words of a tool's name that are looked for, rare words counting more.
func (s *rankScan) cover(doc int) float64 {
	var looked, all float32
	for _, term := range s.ix.nameTerms[s.ix.nameAt[doc]:s.ix.nameAt[doc+1]] {
		all += s.ix.idf[term]
		looked += s.ix.idf[term] * min(s.looked[term], 1)
	}
	if all == 0 {
		return 0
	}
	return math.Min(float64(looked/all), 1)
}

// before says which of two hits is the better one.
func (h rankHit) before(other rankHit) bool {
	switch {
	case h.Named != other.Named:
		return h.Named
	case h.Score != other.Score:
		return h.Score > other.Score
	}
	return h.Doc < other.Doc
}

// rankHeap holds the best hits, the worst of them first.
type rankHeap []rankHit

// offer takes a hit in if it is among the best k.
func (h *rankHeap) offer(hit rankHit, k int) {
	list := *h
	if len(list) < k {
		list = append(list, hit)
		for i := len(list) - 1; i > 0; {
			up := (i - 1) / 2
			if !list[up].before(list[i]) {
				break
			}
			list[up], list[i] = list[i], list[up]
			i = up
		}
		*h = list
		return
	}
	if k <= 0 || !hit.before(list[0]) {
		return
	}
	list[0] = hit
	for i := 0; ; {
		down := 2*i + 1
		if down+1 < len(list) && list[down].before(list[down+1]) {
			down++
		}
		if down >= len(list) || !list[i].before(list[down]) {
			return
		}
		list[i], list[down] = list[down], list[i]
		i = down
	}
}
