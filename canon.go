// This file turns JSON into its canonical form (RFC 8785, JCS) and into digests. It owns the order of keys and the
// spelling of numbers and strings; it knows no tool, no policy and no file.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	canonMax       = 1 << 30 // bytes of input; offsets are 32 bits
	canonErrorText = 64      // bytes of a key or number shown in an error
	canonPlainInt  = 15      // decimal digits that a double always holds and prints as written
)

// canonicalJSON gives the canonical form of one JSON value (RFC 8785): members ordered by the UTF-16 units of their
// keys, numbers spelled as ECMAScript does from the IEEE double, strings with the shortest escapes. It refuses
// duplicate keys at any level, lone surrogates, invalid UTF-8, numbers beyond a double's range and nesting deeper than
// jsonMaxDepth. The result is the caller's own.
func canonicalJSON(raw []byte) ([]byte, error) { return canonicalize(canonizer{in: raw}) }

// canonicalKeep is canonicalJSON with each number kept as written, so that two numbers that are one double stay apart.
// A lone surrogate is kept as its lower-case escape: peers cut descriptions inside a character.
func canonicalKeep(raw []byte) ([]byte, error) { return canonicalize(canonizer{in: raw, keep: true}) }

// canonicalLog is canonicalJSON with each whole number that no double is as a string, so that none is written down as another.
func canonicalLog(raw []byte) ([]byte, error) { return canonicalize(canonizer{in: raw, big: true}) }

// payloadDigest names one exact call: the SHA-256, lower-case hex, of the canonical {"arguments":…,"tool":"…"}.
// Missing arguments are {}; arguments that are no object are an error.
func payloadDigest(tool string, args json.RawMessage) (string, error) {
	c := canonizer{in: args, out: make([]byte, 0, len(args)+len(tool)+32)}
	c.out = append(c.out, `{"arguments":`...)
	c.space()
	switch {
	case c.pos == len(args):
		c.out = append(c.out, "{}"...)
	case args[c.pos] != '{':
		return "", newError("digest: arguments are not an object")
	default:
		if err := c.document(); err != nil {
			return "", errorf("digest of arguments: %w", err)
		}
	}
	if !utf8.ValidString(tool) {
		return "", newError("digest: tool name is not UTF-8")
	}
	c.out = append(c.out, `,"tool":"`...)
	for _, r := range tool {
		c.out = appendCanonRune(c.out, r)
	}
	return sha256Hex(append(c.out, `"}`...)), nil
}

// exactDigest is the digest where it stands for these arguments alone. Of whole numbers beyond 2^53 RFC 8785 takes the nearest double, so that
// 9007199254740993 and its neighbour share one: then it is longer, tells them apart, and is none that a person could have approved by flag.
func exactDigest(digest string, args json.RawMessage) string {
	run := 0
	for _, c := range args {
		if run++; c < '0' || c > '9' {
			run = 0
		} else if run > canonPlainInt {
			round, err := canonicalJSON(args)
			exact, fault := canonicalLog(args)
			if err != nil || fault != nil || !bytes.Equal(round, exact) {
				return digest + "+" + sha256Hex(exact)
			}
			return digest
		}
	}
	return digest
}

// bridgedSubject is the name under which a server's tool is decided, digested and audited: mcp:SERVER/TOOL. "%" and "/"
// in the server's name are percent-encoded, so the first "/" always ends it.
func bridgedSubject(server, tool string) string {
	if strings.ContainsAny(server, "%/") {
		server = strings.ReplaceAll(strings.ReplaceAll(server, "%", "%25"), "/", "%2F")
	}
	return bridgedSubjectPrefix + server + "/" + tool
}

// bridgedSubjectPrefix begins the name of every bridged tool, and of no native one.
const bridgedSubjectPrefix = "mcp:"

// subjectTool takes a bridgedSubject apart; false for any other name.
func subjectTool(subject string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(subject, bridgedSubjectPrefix)
	if server, tool, found := strings.Cut(rest, "/"); ok && found {
		server = strings.ReplaceAll(strings.ReplaceAll(server, "%2F", "/"), "%25", "%")
		return server, tool, bridgedSubject(server, tool) == subject
	}
	return "", "", false
}

// sha256Hex is the SHA-256 of b in lower-case hex.
func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// canonizer reads the input once and writes its tokens in canonical spelling. Objects whose members came in order
// are finished then; the others are remembered and put in order in a second pass over the output, so that the cost does
// not grow with nesting.
type canonizer struct {
	in      []byte
	pos     int
	out     []byte
	keys    []byte // keys that had escapes
	keep    bool   // numbers as written
	big     bool   // a whole number that no double is as a string
	depth   int
	stack   []canonMember // members of the objects being read
	members []canonMember // members of the objects to be put in order
	objects []canonObject // those objects, in the order of their first byte
}

// canonMember is one "key":value of the output, and the objects inside its value that need work. It holds no pointers:
// there may be very many.
type canonMember struct {
	start, end     int32 // in out
	value          int32 // where the value starts in out
	keyFrom, keyTo int32 // the unescaped key, in keys if it was written with escapes, else in out
	escaped        bool
	objFrom, objTo int32
}

type canonObject struct {
	start, end int32 // in out
	next       int32 // first object that is not inside this one
	from, to   int32 // its members
}

func canonicalize(c canonizer) ([]byte, error) {
	c.out, c.stack = make([]byte, 0, len(c.in)), make([]canonMember, 0, 16)
	if err := c.document(); err != nil {
		return nil, errorf("canonical json: %w", err)
	}
	return c.out, nil
}

// document reads one value and what is left of the input, and appends the value's canonical form to out.
func (c *canonizer) document() error {
	if len(c.in) > canonMax {
		return errorf("more than %d bytes", canonMax)
	}
	if !utf8.Valid(c.in) {
		return errJSONNotUTF8
	}
	from := len(c.out)
	if err := c.value(); err != nil {
		return err
	}
	c.space()
	if c.pos != len(c.in) {
		return c.fault("more after the value")
	}
	if len(c.objects) > 0 {
		ordered := make([]byte, 0, cap(c.out))
		c.out = c.emit(append(ordered, c.out[:from]...), int32(from), int32(len(c.out)), 0, int32(len(c.objects)))
	}
	return nil
}

func (c *canonizer) fault(what string) error {
	return errorf("offset %d: %s", c.pos, what)
}

func (c *canonizer) space() {
	for c.pos < len(c.in) {
		switch c.in[c.pos] {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return
		}
	}
}

// peek skips white space and gives the next byte, 0 at the end.
func (c *canonizer) peek() byte {
	c.space()
	if c.pos == len(c.in) {
		return 0
	}
	return c.in[c.pos]
}

func (c *canonizer) value() error {
	switch b := c.peek(); b {
	case '{', '[':
		if c.depth++; c.depth > jsonMaxDepth {
			return c.fault(fmt.Sprintf("nested deeper than %d", jsonMaxDepth))
		}
		var err error
		if b == '{' {
			err = c.object()
		} else {
			err = c.array()
		}
		c.depth--
		return err
	case '"':
		_, err := c.text(false)
		return err
	case 't':
		return c.literal("true")
	case 'f':
		return c.literal("false")
	case 'n':
		return c.literal("null")
	default:
		if b == '-' || '0' <= b && b <= '9' {
			return c.number()
		}
		return c.fault("expected a value")
	}
}

func (c *canonizer) literal(word string) error {
	if len(c.in)-c.pos < len(word) || string(c.in[c.pos:c.pos+len(word)]) != word {
		return c.fault("expected a value")
	}
	c.pos += len(word)
	c.out = append(c.out, word...)
	return nil
}

func (c *canonizer) array() error {
	c.pos++
	c.out = append(c.out, '[')
	if c.peek() == ']' {
		c.pos++
		c.out = append(c.out, ']')
		return nil
	}
	for {
		if err := c.value(); err != nil {
			return err
		}
		switch c.peek() {
		case ',':
			c.pos++
			c.out = append(c.out, ',')
		case ']':
			c.pos++
			c.out = append(c.out, ']')
			return nil
		default:
			return c.fault("expected , or ]")
		}
	}
}

func (c *canonizer) object() error {
	c.pos++
	own, base := len(c.objects), len(c.stack)
	c.objects = append(c.objects, canonObject{start: int32(len(c.out))})
	c.out = append(c.out, '{')
	if c.peek() == '}' {
		c.pos++
		c.out = append(c.out, '}')
		c.objects = c.objects[:own]
		return nil
	}
	ordered := true
	for {
		m, err := c.member()
		if err != nil {
			return err
		}
		if ordered && len(c.stack) > base {
			ordered = canonCompare(c.key(c.stack[len(c.stack)-1]), c.key(m)) < 0
		}
		c.stack = append(c.stack, m)
		switch c.peek() {
		case ',':
			c.pos++
			c.out = append(c.out, ',')
			continue
		case '}':
			c.pos++
			c.out = append(c.out, '}')
		default:
			return c.fault("expected , or }")
		}
		break
	}
	return c.closeObject(own, base, ordered)
}

// closeObject sorts the members read since base, refuses duplicates, and forgets the object if nothing in it moves.
func (c *canonizer) closeObject(own, base int, ordered bool) error {
	members := c.stack[base:]
	if !ordered {
		slices.SortFunc(members, func(a, b canonMember) int { return canonCompare(c.key(a), c.key(b)) })
		for i := 1; i < len(members); i++ {
			if key := c.key(members[i]); bytes.Equal(key, c.key(members[i-1])) {
				return c.fault("duplicate key " + strconv.Quote(canonBrief(string(key))))
			}
		}
	}
	if ordered && len(c.objects) == own+1 {
		c.objects = c.objects[:own]
	} else {
		o := &c.objects[own]
		o.end, o.next = int32(len(c.out)), int32(len(c.objects))
		o.from = int32(len(c.members))
		c.members = append(c.members, members...)
		o.to = int32(len(c.members))
	}
	c.stack = c.stack[:base]
	return nil
}

func (c *canonizer) member() (canonMember, error) {
	m := canonMember{start: int32(len(c.out))}
	if c.peek() != '"' {
		return m, c.fault("expected a key")
	}
	base := len(c.keys)
	escaped, err := c.text(true)
	if err != nil {
		return m, err
	}
	if m.escaped = escaped; escaped {
		m.keyFrom, m.keyTo = int32(base), int32(len(c.keys))
	} else {
		m.keyFrom, m.keyTo = m.start+1, int32(len(c.out)-1)
	}
	if c.peek() != ':' {
		return m, c.fault("expected :")
	}
	c.pos++
	c.out = append(c.out, ':')
	m.value, m.objFrom = int32(len(c.out)), int32(len(c.objects))
	err = c.value()
	m.end, m.objTo = int32(len(c.out)), int32(len(c.objects))
	return m, err
}

// key is the unescaped key of m, valid until the next byte is written.
func (c *canonizer) key(m canonMember) []byte {
	if m.escaped {
		return c.keys[m.keyFrom:m.keyTo]
	}
	return c.out[m.keyFrom:m.keyTo]
}

// emit appends out[from:to] with the objects objFrom to objTo, which lie in it, put in order.
func (c *canonizer) emit(dst []byte, from, to, objFrom, objTo int32) []byte {
	for objFrom < objTo {
		o := c.objects[objFrom]
		dst = append(dst, c.out[from:o.start]...)
		dst = append(dst, '{')
		for i, m := range c.members[o.from:o.to] {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, c.out[m.start:m.value]...)
			dst = c.emit(dst, m.value, m.end, m.objFrom, m.objTo)
		}
		dst = append(dst, '}')
		from, objFrom = o.end, o.next
	}
	return append(dst, c.out[from:to]...)
}

// text reads a string and writes it with the shortest escapes. escaped says that it was written with escapes; the
// unescaped text of a key is then appended to keys.
func (c *canonizer) text(key bool) (escaped bool, err error) {
	c.pos++
	c.out = append(c.out, '"')
	start := len(c.out)
	for {
		run := c.pos
		if c.pos = plainText(c.in, run); c.pos == len(c.in) {
			return false, c.fault("string not closed")
		}
		c.out = append(c.out, c.in[run:c.pos]...)
		if key && escaped {
			c.keys = append(c.keys, c.in[run:c.pos]...)
		}
		switch c.in[c.pos] {
		default:
			return false, c.fault("control character in a string")
		case '"':
			c.pos++
			c.out = append(c.out, '"')
			return escaped, nil
		case '\\':
			if key && !escaped {
				c.keys = append(c.keys, c.out[start:]...)
			}
			escaped = true
			if err := c.escape(key); err != nil {
				return false, err
			}
		}
	}
}

// escape reads one escape and writes its character. Half of a surrogate pair passes only with keep.
func (c *canonizer) escape(key bool) error {
	if c.pos+1 >= len(c.in) {
		return c.fault("string not closed")
	}
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	r, ok := c.unit(c.pos)
	length := 6
	if i := strings.IndexByte(from, c.in[c.pos+1]); i >= 0 {
		r, ok, length = rune(to[i]), true, 2
	}
	if !ok {
		return c.fault("bad escape")
	}
	if low, ok := c.unit(c.pos + 6); ok && utf16.IsSurrogate(r) {
		if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
			r, length = full, 12
		}
	}
	if utf16.IsSurrogate(r) {
		if !c.keep {
			return c.fault("lone surrogate")
		}
		c.out = fmt.Appendf(c.out, `\u%04x`, r)
		if key {
			c.keys = append(c.keys, 0xed, byte(0x80|r>>6&0x3f), byte(0x80|r&0x3f)) // the three bytes UTF-8 would need
		}
	} else {
		c.out = appendCanonRune(c.out, r)
		if key {
			c.keys = utf8.AppendRune(c.keys, r)
		}
	}
	c.pos += length
	return nil
}

// unit reads \uXXXX at p.
func (c *canonizer) unit(p int) (rune, bool) {
	if p+6 > len(c.in) || c.in[p] != '\\' || c.in[p+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, b := range c.in[p+2 : p+6] {
		switch {
		case '0' <= b && b <= '9':
			r = r<<4 | rune(b-'0')
		case 'a' <= b|0x20 && b|0x20 <= 'f':
			r = r<<4 | rune(b|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// number reads a number by the grammar of RFC 8259 and writes it as ECMAScript would (RFC 8785, 3.2.2.3), or as written.
func (c *canonizer) number() error {
	start, p := c.pos, c.pos
	digits := func() int {
		n := p
		for p < len(c.in) && '0' <= c.in[p] && c.in[p] <= '9' {
			p++
		}
		return p - n
	}
	at := func(set string) bool { return p < len(c.in) && strings.IndexByte(set, c.in[p]) >= 0 }
	if at("-") {
		p++
	}
	whole, first := true, p
	n := digits()
	if n == 0 || n > 1 && c.in[first] == '0' {
		return c.fault("bad number")
	}
	if at(".") {
		whole = false
		if p++; digits() == 0 {
			return c.fault("bad number")
		}
	}
	if at("eE") {
		whole = false
		if p++; at("+-") {
			p++
		}
		if digits() == 0 {
			return c.fault("bad number")
		}
	}
	text := c.in[start:p]
	if c.keep || whole && n <= canonPlainInt && !(c.in[first] == '0' && first > start) {
		c.out = append(c.out, text...)
		c.pos = p
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsInf(f, 0) {
		return c.fault("number " + canonBrief(string(text)) + " is beyond a double's range")
	}
	c.pos = p
	if c.big && whole && n > canonPlainInt && strconv.FormatFloat(f, 'f', 0, 64) != string(text) {
		c.out = append(append(append(c.out, '"'), text...), '"')
	} else {
		c.out = appendCanonNumber(c.out, f)
	}
	return nil
}

// appendCanonNumber spells a finite double as ECMAScript's Number::toString (ECMA-262, 6.1.6.1.20): the shortest digits
// that give the same double, no exponent from 1e-6 up to but not including 1e21, and 0 for minus zero.
func appendCanonNumber(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, '0')
	}
	if a := math.Abs(f); 1e-6 <= a && a < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if n := len(dst); dst[n-2] == '0' && dst[n-4] == 'e' { // Go writes e-07, ECMAScript e-7
		dst = append(dst[:n-2], dst[n-1])
	}
	return dst
}

// appendCanonRune writes r as it stands in a canonical string (RFC 8785, 3.2.2.2).
func appendCanonRune(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, `\b`...)
	case '\t':
		return append(dst, `\t`...)
	case '\n':
		return append(dst, `\n`...)
	case '\f':
		return append(dst, `\f`...)
	case '\r':
		return append(dst, `\r`...)
	}
	if r < ' ' {
		const digits = "0123456789abcdef"
		return append(dst, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
	}
	return utf8.AppendRune(dst, r)
}

// canonCompare orders two UTF-8 texts by their UTF-16 units. That is the order of their bytes, except that characters
// beyond U+FFFF (surrogates in UTF-16, first byte F0 and up) come before U+E000–U+FFFF (first byte EE or EF).
func canonCompare(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if x, y := a[i], b[i]; x != y {
			if x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0) {
				return int(y) - int(x)
			}
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

// canonBrief cuts a text for an error.
func canonBrief(s string) string {
	if len(s) <= canonErrorText {
		return s
	}
	return s[:canonErrorText] + "…"
}
