// This file masks known secrets in text, in the forms in which they travel: as they are, in base64, URL-encoded, escaped
// for JSON and in hex. It looks for all of them in one pass. It knows neither where secrets are kept nor where text goes.
package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"
)

const (
	redactMin     = 4   // bytes; a shorter value would mask ordinary text
	redactEncoded = 6   // bytes from which the encoded forms are looked for too
	redactHead    = 256 // bytes of a form that the automaton knows; the rest of a longer one is compared
	redactFollow  = 8   // comparisons going on at once; a further one masks what the automaton knows
	redactWindow  = 64  // most bytes of the shortest form that the skip table uses
	redactHash    = 15  // bits of the skip table
)

// namedSecret is a value that must not be shown and the name that stands for it.
type namedSecret struct {
	Name  string
	Value secret
}

// redactor replaces every form of its secrets by [secret:NAME]. A nil one changes nothing. It is safe for many goroutines.
//
// The forms are the words of an Aho-Corasick automaton, so that the work is linear in the text, whatever it holds. Most
// text is never read by it: a table of hashed three-byte blocks says how far the next possible start is (Wu and Manber).
type redactor struct {
	secrets []namedSecret
	once    sync.Once // the tables are made at the first use
	forms   []redactForm
	nodes   []redactNode
	root    [256]int32
	shift   []uint8
	window  int // bytes that every form has at least
}

// redactNode is a state: the longest beginning of a form that the text ends with.
type redactNode struct {
	child, sibling int32
	fail           int32
	depth          int32
	out            int32 // length of the longest form, or head of one, that ends here, 0 for none
	form           int32 // that form
	b              byte
}

// redactForm is one spelling of a secret.
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

// newRedactor takes the secrets to mask; nil if there are none. Of equal values the first name stands for all. Values
// shorter than redactMin bytes, white space at their ends apart, are passed over.
func newRedactor(known []namedSecret) *redactor {
	sorted := slices.SortedStableFunc(slices.Values(known), func(a, b namedSecret) int { return strings.Compare(a.Name, b.Name) })
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
		if n.out == 0 {
			continue
		}
		run.spans = addSpan(run.spans, redactSpan{at - int(n.out), at, int(n.out), r.forms[n.form].name})
		if n.out == redactHead && n.depth == redactHead {
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
	shift := r.shift
	for end := at + r.window; end <= len(s); {
		block := s[end-3 : end]
		n := shift[redactBlock(block[0], block[1], block[2])]
		if n == 0 {
			return end - r.window
		}
		end += int(n)
		at = end - r.window
	}
	return at
}

func redactBlock(a, b, c byte) uint32 {
	return (uint32(a) | uint32(b)<<8 | uint32(c)<<16) * 0x9e3779b1 >> (32 - redactHash)
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

// build makes the automaton and the skip table.
func (r *redactor) build() {
	r.nodes = make([]redactNode, 1)
	r.forms = make([]redactForm, 1) // the first stands for none
	seen := map[string]bool{}
	r.window = redactWindow
	for i, s := range r.secrets {
		for _, text := range redactForms(s.Value.reveal()) {
			if !seen[text] {
				seen[text] = true
				r.forms = append(r.forms, redactForm{text: text, name: int32(i)})
				r.insert(int32(len(r.forms) - 1))
				r.window = min(r.window, len(text))
			}
		}
	}
	r.link()
	r.shift = slices.Repeat([]uint8{uint8(r.window - 2)}, 1<<redactHash)
	for _, f := range r.forms[1:] {
		for end := 3; end <= r.window; end++ {
			h := redactBlock(f.text[end-3], f.text[end-2], f.text[end-1])
			r.shift[h] = min(r.shift[h], uint8(r.window-end))
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
			r.nodes = append(r.nodes, redactNode{b: b, depth: int32(i + 1), sibling: r.nodes[state].child})
			r.nodes[state].child = next
			if state == 0 {
				r.root[b] = next
			}
		}
		state = next
	}
	n := &r.nodes[state]
	n.out = int32(len(head))
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
			if n.out == 0 {
				n.out, n.form = r.nodes[fail].out, r.nodes[fail].form
			}
			queue = append(queue, next)
		}
	}
}

// redactForms lists the spellings of a value that are looked for.
func redactForms(value string) []string {
	forms := []string{value}
	if len(value) < redactEncoded {
		return forms
	}
	for _, enc := range [...]*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		whole := enc.EncodeToString([]byte(value))
		forms = append(forms, whole, strings.TrimRight(whole, "="))
		for before := range 3 {
			// Of the signs only those count that hold bits of the value alone, whatever stands around it.
			text := enc.EncodeToString([]byte("\x00\x00"[:before] + value))
			forms = append(forms, text[(before*8+5)/6:(before+len(value))*8/6])
		}
	}
	if !redactPlain(value) {
		forms = append(forms, redactEscapes(value)...)
	}
	lower := hex.EncodeToString([]byte(value))
	return append(forms, lower, strings.ToUpper(lower))
}

// redactPlain reports a value that neither URLs nor JSON escape, as most tokens are.
func redactPlain(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; !(c >= 'a' && c <= 'z' || s[i] >= '0' && s[i] <= '9' || s[i] == '-' || s[i] == '_' || s[i] == '.') {
			return false
		}
	}
	return true
}

func redactEscapes(value string) []string {
	var forms []string
	// What is left bare differs: form and query encoders, JavaScript's encodeURIComponent and encodeURI, path segments.
	for _, bare := range [...]string{"-_.~", "-_.*", "-_.~!*'()", "-_.~!*'();/?:@&=+$,#", "-_.~$&+=:@", "-_.~/"} {
		for _, space := range [...]string{"%20", "+"} {
			forms = append(forms, percentEncode(value, bare, space, "0123456789ABCDEF"), percentEncode(value, bare, space, "0123456789abcdef"))
		}
	}
	for _, s := range jsonForms(value) {
		forms = append(forms, s, strings.ReplaceAll(s, "/", `\/`))
	}
	return forms
}

func percentEncode(s, bare, space, digits string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', strings.IndexByte(bare, c) >= 0:
			b.WriteByte(c)
		case c == ' ':
			b.WriteString(space)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// jsonForms escapes a value as JSON encoders do: as little as allowed; signs of HTML as well (Go); all but ASCII as well
// (Python, PHP), quotes and plus by number too (.NET), in either case of digits; every control character by number; and once
// more inside another string.
func jsonForms(s string) []string {
	least := appendJSONString(nil, s)
	inner := string(least[1 : len(least)-1])
	twice := appendJSONString(nil, inner)
	forms := []string{inner, string(twice[1 : len(twice)-1])}
	for _, digits := range [...]string{`\u%04x`, `\u%04X`} {
		forms = append(forms, jsonEscape(s, digits, "<>&", false, false), jsonEscape(s, digits, "", true, false),
			jsonEscape(s, digits, "<>&", true, false), jsonEscape(s, digits, "", false, true), jsonEscape(s, digits, "<>&'\"\\", true, true), jsonEscape(s, digits, "<>&'\"+`", true, false))
	}
	return forms
}

// jsonEscape escapes by number the signs given, all but ASCII if asked, and control characters if asked; the rest as
// appendJSONString does.
func jsonEscape(s, format, signs string, ascii, control bool) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c >= 0x80 && ascii && c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, format+format, high, low)
		case c >= 0x80 && ascii, c < 0x20 && control, c < 0x80 && strings.ContainsRune(signs, c), c == 0x7f && ascii:
			fmt.Fprintf(&b, format, c)
		default:
			quoted := appendJSONString(nil, string(c))
			b.Write(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
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
