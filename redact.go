// This file masks known secrets in text, in the forms in which they travel: as they are, in base64, URL-encoded, escaped
// for JSON and in hex. It looks for all of them in one pass. It knows neither where secrets are kept nor where text goes.
package main

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"
)

const (
	redactMin     = 4   // bytes; a shorter value would mask ordinary text
	redactHead    = 256 // bytes of a form that the automaton knows; the rest of a longer one is compared
	redactFollow  = 8   // comparisons going on at once; a further one masks what the automaton knows
	redactGram    = 4   // bytes that the filter looks at together; no form is shorter (see redactMin)
	redactStride  = 8   // most bytes from one look of the filter to the next
	redactBitsMin = 12  // log2 of the filter's bits; 512 bytes
	redactBitsMax = 20  // the same at most; 128 KiB, what a core's second cache holds
	redactSparse  = 4   // log2 of the bits for each thing that the filter knows
	redactWide    = 6   // children from which a state gets a table instead of a list
)

// namedSecret is a value that must not be shown and the name that stands for it.
type namedSecret struct {
	Name  string
	Value secret
}

// redactor replaces every form of its secrets by [secret:NAME]. A nil one changes nothing. It is safe for many goroutines.
//
// The forms are the words of an Aho-Corasick automaton, so that the work is linear in the text, whatever it holds. Most
// text is never read by it: of every stride-th place the filter tells whether the four bytes there stand near the beginning
// of any form. Each place where a form can start has one such look within the form, so none is missed; the looks do not wait
// for each other, so they cost less than copying the text would.
type redactor struct {
	secrets []namedSecret
	once    sync.Once // the tables are made at the first use
	forms   []redactForm
	nodes   []redactNode
	wide    [][256]int32 // the children of states that have many
	root    [256]int32
	grams   redactSet // the four-byte blocks that start at the first stride places of a form
	heads   redactSet // the beginnings of the forms, head bytes of each
	head    int
	stride  int // bytes from one look to the next; the shortest form less three, or redactStride
}

// redactNode is a state: the longest beginning of a form that the text ends with.
type redactNode struct {
	child   int32 // the first one, or the table ^child of wide
	sibling int32
	fail    int32
	form    int32 // the longest one that, or whose head, ends here; 0 for none
	depth   uint16
	b       byte
}

// redactForm is one spelling of a secret. The automaton knows its first redactHead bytes.
type redactForm struct {
	text string
	name int32 // of the secret
	next int32 // another form with the same head, 0 for none
}

// redactTail is a long form whose head was found: its byte at pos may come next.
type redactTail struct {
	form int32
	pos  int
}

// redactRun is a place in a text being read.
type redactRun struct {
	state int32
	tails []redactTail
	spans []redactSpan // what is to be masked, in order
}

// redactSpan is a stretch of text to mask: forms that overlap are one.
type redactSpan struct {
	start, end int
	longest    int // of its forms; that one gives the name
	name       int32
}

// Format keeps the values out of what prints a redactor: fmt shows unexported fields without asking their type.
func (r *redactor) Format(f fmt.State, _ rune) { fmt.Fprint(f, sealedText) }

// newRedactor takes the secrets to mask; nil if there are none. Of equal values the first name stands for all. Values
// shorter than redactMin bytes, white space at their ends apart, are passed over.
func newRedactor(known []namedSecret) *redactor {
	sorted := slices.Clone(known)
	sortBy(sorted, func(a, b namedSecret) int { return strings.Compare(a.Name, b.Name) })
	r := &redactor{}
	for _, s := range sorted {
		if value := strings.TrimSpace(s.Value.reveal()); len(value) >= redactMin {
			r.secrets = append(r.secrets, namedSecret{s.Name, secret(value)})
		}
	}
	if len(r.secrets) == 0 {
		return nil
	}
	return r
}

// text masks s. Without a secret in it s itself comes back.
func (r *redactor) text(s string) string {
	if r == nil {
		return s
	}
	r.once.Do(r.build)
	var run redactRun
	r.scan(&run, s, 0)
	if len(run.spans) == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	at := 0
	for _, span := range run.spans {
		b.WriteString(s[at:span.start])
		b.WriteString(r.label(span))
		at = span.end
	}
	b.WriteString(s[at:])
	return b.String()
}

func (r *redactor) label(s redactSpan) string { return "[secret:" + r.secrets[s.name].Name + "]" }

// scan reads s from a position on.
func (r *redactor) scan(run *redactRun, s string, at int) {
	state := run.state
	for at < len(s) {
		if state == 0 && len(run.tails) == 0 {
			if at = r.skip(s, at); at == len(s) {
				break
			}
		}
		if len(run.tails) > 0 {
			r.follow(run, s[at], at)
		}
		state = r.step(state, s[at])
		at++
		n := &r.nodes[state]
		if n.form == 0 {
			continue
		}
		found := &r.forms[n.form]
		size := min(len(found.text), redactHead)
		run.spans = addSpan(run.spans, redactSpan{at - size, at, size, found.name})
		if size == redactHead && n.depth == redactHead {
			for f := n.form; f != 0 && len(run.tails) < redactFollow; f = r.forms[f].next {
				run.tails = append(run.tails, redactTail{f, redactHead})
			}
		}
	}
	run.state = state
}

// follow holds the byte at a place against what the long forms go on with.
func (r *redactor) follow(run *redactRun, b byte, at int) {
	kept := run.tails[:0]
	for _, t := range run.tails {
		f := &r.forms[t.form]
		if t.pos < len(f.text) && f.text[t.pos] == b {
			t.pos++
			run.spans = addSpan(run.spans, redactSpan{at - 1, at + 1, t.pos, f.name}) // the byte before belongs to it
			kept = append(kept, t)
		}
	}
	run.tails = kept
}

// skip gives the first position from at on where a form may start, or where too little is left to tell.
func (r *redactor) skip(s string, at int) int {
	stride := r.stride
	p := at + stride - 1
	for ; p+redactGram <= len(s); p += stride {
		if r.grams.has(redactBlock(s[p:p+redactGram], s[p:p+redactGram])) {
			for start := p - stride + 1; start <= p; start++ {
				if start+r.head > len(s) || r.heads.has(redactBlock(s[start:start+redactGram], s[start+r.head-redactGram:start+r.head])) {
					return start
				}
			}
		}
	}
	return p - stride + 1
}

// redactBlock hashes two times four bytes; the upper bits are the good ones.
func redactBlock(a, b string) uint32 {
	x := uint32(a[0]) | uint32(a[1])<<8 | uint32(a[2])<<16 | uint32(a[3])<<24
	y := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
	return x*0x9e3779b1 + y*0x85ebca77
}

// redactSet is a set of hashes: one that was put in is there, and one that was not is there now and then.
type redactSet struct {
	bits  []uint64
	shift int
}

func newRedactSet(things int) redactSet {
	size := min(max(bits.Len(uint(things))+redactSparse, redactBitsMin), redactBitsMax)
	return redactSet{make([]uint64, 1<<(size-6)), 32 - size}
}

func (s *redactSet) put(hash uint32) {
	hash >>= s.shift
	s.bits[hash>>6] |= 1 << (hash & 63)
}

func (s *redactSet) has(hash uint32) bool {
	hash >>= s.shift & 31
	return s.bits[hash>>6&uint32(len(s.bits)-1)]>>(hash&63)&1 != 0
}

func (r *redactor) step(state int32, b byte) int32 {
	for state != 0 {
		if next := r.childOf(state, b); next != 0 {
			return next
		}
		state = r.nodes[state].fail
	}
	return r.root[b]
}

func (r *redactor) childOf(state int32, b byte) int32 {
	next := r.nodes[state].child
	if next < 0 {
		return r.wide[^next][b]
	}
	for next != 0 && r.nodes[next].b != b {
		next = r.nodes[next].sibling
	}
	return next
}

func addSpan(spans []redactSpan, s redactSpan) []redactSpan {
	for len(spans) > 0 {
		last := spans[len(spans)-1]
		if last.end <= s.start {
			break
		}
		if last.longest >= s.longest {
			s.longest, s.name = last.longest, last.name
		}
		s.start = min(s.start, last.start)
		spans = spans[:len(spans)-1]
	}
	return append(spans, s)
}

// build makes the automaton and the filter.
func (r *redactor) build() {
	r.forms = make([]redactForm, 1, 1+24*len(r.secrets)) // the first stands for none
	seen := make(map[string]bool, cap(r.forms))
	shortest, states := redactStride+redactGram, 1
	for i, s := range r.secrets {
		for _, text := range redactForms(s.Value.reveal()) {
			if !seen[text] {
				seen[text] = true
				r.forms = append(r.forms, redactForm{text: text, name: int32(i)})
				shortest, states = min(shortest, len(text)), states+min(len(text), redactHead)
			}
		}
	}
	r.nodes = make([]redactNode, 1, states)
	for f := 1; f < len(r.forms); f++ {
		r.insert(int32(f))
	}
	r.link()
	r.widen()
	r.head = min(shortest, 2*redactGram)
	r.stride = min(shortest-redactGram+1, redactStride)
	r.grams, r.heads = newRedactSet(len(r.forms)*r.stride), newRedactSet(len(r.forms))
	for _, f := range r.forms[1:] {
		r.heads.put(redactBlock(f.text[:redactGram], f.text[r.head-redactGram:r.head]))
		for at := range r.stride {
			r.grams.put(redactBlock(f.text[at:at+redactGram], f.text[at:at+redactGram]))
		}
	}
}

func (r *redactor) insert(form int32) {
	head := r.forms[form].text
	head = head[:min(len(head), redactHead)]
	state := int32(0)
	for i := range len(head) {
		b := head[i]
		next := r.root[b]
		if state != 0 {
			next = r.childOf(state, b)
		}
		if next == 0 {
			next = int32(len(r.nodes))
			r.nodes = append(r.nodes, redactNode{b: b, depth: uint16(i + 1), sibling: r.nodes[state].child})
			r.nodes[state].child = next
			if state == 0 {
				r.root[b] = next
			}
		}
		state = next
	}
	n := &r.nodes[state]
	if n.form == 0 {
		n.form = form
		return
	}
	r.forms[form].next, r.forms[n.form].next = r.forms[n.form].next, form // behind the first, which keeps the name
}

// link sets where each state falls back to, level by level.
func (r *redactor) link() {
	queue := make([]int32, 0, len(r.nodes))
	for next := r.nodes[0].child; next != 0; next = r.nodes[next].sibling {
		queue = append(queue, next)
	}
	for i := 0; i < len(queue); i++ {
		state := queue[i]
		for next := r.nodes[state].child; next != 0; next = r.nodes[next].sibling {
			fail := r.step(r.nodes[state].fail, r.nodes[next].b)
			n := &r.nodes[next]
			n.fail = fail
			if n.form == 0 {
				n.form = r.nodes[fail].form
			}
			queue = append(queue, next)
		}
	}
}

// widen gives the states with many children a table, so that no step goes through a long list.
func (r *redactor) widen() {
	for state := 1; state < len(r.nodes); state++ {
		n := 0
		for next := r.nodes[state].child; next != 0; next = r.nodes[next].sibling {
			n++
		}
		if n < redactWide {
			continue
		}
		var table [256]int32
		for next := r.nodes[state].child; next != 0; next = r.nodes[next].sibling {
			table[r.nodes[next].b] = next
		}
		r.wide = append(r.wide, table)
		r.nodes[state].child = ^int32(len(r.wide) - 1)
	}
}

// redactStream masks text that comes in parts, so that a secret cut in two is found all the same. It holds back only what
// may be the beginning of a secret. It belongs to one goroutine.
type redactStream struct {
	r    *redactor
	held string
	run  redactRun // its spans count from the start of held; one may start before it
}

func (r *redactor) stream() *redactStream {
	if r != nil {
		r.once.Do(r.build)
	}
	return &redactStream{r: r}
}

// feed takes the next part and gives what can be shown.
func (s *redactStream) feed(part string) string {
	if s.r == nil {
		return part
	}
	at := len(s.held)
	s.held += part
	s.r.scan(&s.run, s.held, at)
	final := len(s.held) - int(s.r.nodes[s.run.state].depth)
	if len(s.run.tails) > 0 {
		final = min(final, len(s.held)-1) // the span that ends here may go on
	}
	return s.give(final)
}

// flush gives the rest; the stream can be used again.
func (s *redactStream) flush() string {
	if s.r == nil {
		return ""
	}
	s.run.state, s.run.tails = 0, nil
	return s.give(len(s.held))
}

// give shows held up to final: no form that is still to be found starts before it. A span that reaches beyond may still
// grow; what it covers is let go of already.
func (s *redactStream) give(final int) string {
	var b strings.Builder
	at := 0
	for len(s.run.spans) > 0 {
		span := s.run.spans[0]
		if span.end > final {
			break
		}
		b.WriteString(s.held[at:max(at, span.start)])
		b.WriteString(s.r.label(span))
		at = span.end
		s.run.spans = s.run.spans[1:]
	}
	stop := final
	if len(s.run.spans) > 0 {
		stop = min(stop, max(at, s.run.spans[0].start))
	}
	b.WriteString(s.held[at:stop])
	s.held = s.held[final:]
	for i := range s.run.spans {
		s.run.spans[i].start -= final
		s.run.spans[i].end -= final
	}
	return b.String()
}

// maskError gives err a text without secrets and keeps its kind.
func maskError(err error, redact func(string) string) error {
	if err == nil {
		return nil
	}
	if clean := redact(err.Error()); clean != err.Error() {
		return &redactedError{text: clean, err: err}
	}
	return err
}

// redactedError is an error whose text holds no known secret; what it wraps is there for its kind alone.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }

func (e *redactedError) Unwrap() error { return e.err }
