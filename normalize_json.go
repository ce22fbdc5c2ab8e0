// This file reads pasted JSON leniently: it makes the repairs that leave one meaning, remembers which it made, and keeps
// what a strict reader would lose (key order, duplicate keys, the digits of numbers, line numbers). It knows no key.
package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const confMaxDepth = 100 // levels of objects and lists inside one another

// confKind is the kind of a configuration value.
type confKind uint8

const (
	confNull confKind = iota
	confBool
	confNumber
	confText
	confList
	confMap
)

func (k confKind) String() string {
	return [...]string{"null", "a boolean", "a number", "text", "a list", "an object"}[k]
}

// confNode is one value of a pasted configuration, from JSON or TOML.
type confNode struct {
	kind  confKind
	text  string       // of a text; the literal of a number; true or false
	items []confMember // of a list (keys empty) or a map (in the order of the text, duplicates kept)
	line  int          // where it starts, 0 when not known
}

type confMember struct {
	key  string
	node confNode
}

// get returns the last member of that name; a member that is null counts as missing.
func (n confNode) get(key string) (confNode, bool) {
	for _, m := range slices.Backward(n.items) {
		if n.kind == confMap && m.key == key {
			return m.node, m.node.kind != confNull
		}
	}
	return confNode{}, false
}

// last returns the members without those that a later one of the same name replaces.
func (n confNode) last() []confMember {
	seen := make(map[string]bool, len(n.items))
	out := make([]confMember, 0, len(n.items))
	for _, m := range slices.Backward(n.items) {
		if !seen[m.key] {
			seen[m.key] = true
			out = append(out, m)
		}
	}
	slices.Reverse(out)
	return out
}

// confSyntaxError says where the JSON stopped making sense.
type confSyntaxError struct {
	Line int
	Msg  string
}

func (e *confSyntaxError) Error() string {
	return fmt.Sprintf("the JSON is not valid: line %d: %s", e.Line, e.Msg)
}

// confReader is the place in the text and the repairs made so far.
type confReader struct {
	s                          string
	i, line                    int
	quotes, spaces, braces     bool
	several, leftover, unquote bool
	backslash                  int // line of the first plain backslash, 0 for none
}

//go:noinline for size: it is called in many places
func (r *confReader) fail(line int, format string, args ...any) error {
	return &confSyntaxError{line, fmt.Sprintf(format, args...)}
}

// readLenient reads the whole text, which starts at the given line, as one or more JSON documents.
func readLenient(s string, line int) (docs []confNode, r *confReader, err error) {
	r = &confReader{s: s, line: line}
	if err := r.space(); err != nil {
		return nil, r, err
	}
	if quoteFamily(r.s[r.i:]) != 0 {
		docs, err = r.fragment()
	} else {
		docs, err = r.documents()
	}
	if err == nil {
		err = r.tail()
	}
	return docs, r, err
}

// fragment reads a text that opens with a string: members without their braces, or JSON inside the string.
func (r *confReader) fragment() ([]confNode, error) {
	start := *r
	first := r.line
	text, err := r.str()
	if err == nil {
		err = r.space()
	}
	if err != nil {
		return nil, err
	}
	if r.peek() == ':' {
		*r = start
		r.braces = true
		n := confNode{kind: confMap, line: first}
		n.items, err = r.members(1, true)
		return []confNode{n}, err
	}
	if r.unquote = true; !startsJSON(text) || quoteFamily(strings.TrimLeft(text, " \t\r\n")) != 0 && !strings.Contains(text, ":") {
		return nil, r.fail(first, "a string that holds no JSON object")
	}
	inner := &confReader{s: text, line: 1}
	docs, err := inner.inside()
	if err != nil {
		return nil, r.fail(first, "in the text of the string: %v", err)
	}
	r.quotes, r.spaces, r.braces = r.quotes || inner.quotes, r.spaces || inner.spaces, inner.braces
	r.several, r.leftover = inner.several, inner.leftover
	if inner.backslash > 0 && r.backslash == 0 {
		r.backslash = first
	}
	return docs, nil
}

// inside reads the text of an unpacked string; a string in it is not unpacked again.
func (r *confReader) inside() (docs []confNode, err error) {
	if err = r.space(); err != nil {
		return nil, err
	}
	if quoteFamily(r.s[r.i:]) != 0 {
		n := confNode{kind: confMap, line: r.line}
		r.braces = true
		n.items, err = r.members(1, true)
		docs = []confNode{n}
	} else {
		docs, err = r.documents()
	}
	if err == nil {
		err = r.tail()
	}
	return docs, err
}

// documents reads objects and lists that follow one another, with or without a comma or semicolon between.
func (r *confReader) documents() ([]confNode, error) {
	var docs []confNode
	for {
		if c := r.peek(); c != '{' && c != '[' {
			return nil, r.unexpected("an object or a list")
		}
		n, err := r.value(1)
		if err != nil {
			return nil, err
		}
		docs = append(docs, n)
		back := *r
		for {
			if err := r.space(); err != nil {
				return nil, err
			}
			if c := r.peek(); c != ',' && c != ';' {
				break
			}
			r.i++
		}
		if c := r.peek(); c != '{' && c != '[' {
			spaces := r.spaces
			*r = back
			r.spaces = spaces
			return docs, nil
		}
		r.several = true
	}
}

// tail accepts what is often left over behind a pasted piece: closing brackets, commas, semicolons, a code fence.
func (r *confReader) tail() error {
	for {
		if err := r.space(); err != nil {
			return err
		}
		rest := r.s[r.i:]
		switch {
		case rest == "":
			return nil
		case strings.ContainsRune("}]),;", rune(rest[0])):
			r.leftover = r.leftover || rest[0] != ','
			r.i++
		case strings.HasPrefix(rest, "```"), strings.HasPrefix(rest, "~~~"):
			r.leftover = true
			r.i += len(rest) - len(strings.TrimLeft(rest, rest[:1]))
		default:
			return r.unexpected("the end of the text")
		}
	}
}

// value reads one value, at the given level of nesting.
func (r *confReader) value(depth int) (confNode, error) {
	n := confNode{line: r.line}
	var err error
	switch c := r.peek(); {
	case c == '{' || c == '[':
		if depth > confMaxDepth {
			return n, r.fail(r.line, "objects and lists are nested deeper than %d levels", confMaxDepth)
		}
		r.i++
		if n.kind = confMap; c == '{' {
			n.items, err = r.members(depth, false)
		} else {
			n.kind = confList
			n.items, err = r.elements(depth, n.line)
		}
	case c == '-' || '0' <= c && c <= '9':
		n.kind = confNumber
		n.text, err = r.number()
	case quoteFamily(r.s[r.i:]) != 0:
		n.kind = confText
		n.text, err = r.str()
	default:
		word := r.word()
		switch word {
		case "true", "false":
			n.kind, n.text = confBool, word
		case "null":
		default:
			return n, r.unexpected("a value")
		}
		r.i += len(word)
	}
	return n, err
}

// members reads the inside of an object. A bare one stands without braces: it ends at the end of the text or at what
// tail accepts.
func (r *confReader) members(depth int, bare bool) ([]confMember, error) {
	var out []confMember
	opened := r.line
	for {
		if err := r.space(); err != nil {
			return nil, err
		}
		switch {
		case bare && (r.i == len(r.s) || len(out) > 0 && strings.IndexByte("}]);`~", r.peek()) >= 0):
			return out, nil
		case r.i == len(r.s):
			return nil, r.unclosed("{", opened)
		case !bare && r.peek() == '}':
			r.i++
			return out, nil
		case quoteFamily(r.s[r.i:]) == 0:
			return nil, r.unexpected("a key in quotes")
		}
		key, err := r.str()
		if err == nil {
			err = r.space()
		}
		if err != nil {
			return nil, err
		}
		if r.peek() != ':' {
			return nil, r.unexpected("a colon after the key " + confQuote(key))
		}
		r.i++
		if err = r.space(); err != nil {
			return nil, err
		}
		n, err := r.value(depth + 1)
		if err == nil {
			err = r.space()
		}
		if err != nil {
			return nil, err
		}
		out = append(out, confMember{key, n})
		if ended, err := r.separator('}', bare, "{", opened); err != nil || ended {
			return out, err
		}
	}
}

// elements reads the inside of a list.
func (r *confReader) elements(depth, opened int) ([]confMember, error) {
	var out []confMember
	for {
		if err := r.space(); err != nil {
			return nil, err
		}
		if r.peek() == ']' {
			r.i++
			return out, nil
		}
		if r.i == len(r.s) {
			return nil, r.unclosed("[", opened)
		}
		n, err := r.value(depth + 1)
		if err == nil {
			err = r.space()
		}
		if err != nil {
			return nil, err
		}
		out = append(out, confMember{node: n})
		if ended, err := r.separator(']', false, "[", opened); err != nil || ended {
			return out, err
		}
	}
}

// separator reads the comma or the closing bracket behind a member.
func (r *confReader) separator(end byte, bare bool, open string, opened int) (ended bool, err error) {
	switch c := r.peek(); {
	case c == ',':
		r.i++
		return false, nil
	case bare && (r.i == len(r.s) || strings.IndexByte("}]);`~", c) >= 0):
		return true, nil
	case r.i == len(r.s):
		return false, r.unclosed(open, opened)
	case c == end && !bare:
		r.i++
		return true, nil
	}
	return false, r.unexpected("a comma or a closing bracket")
}

// unclosed names the line where the text ends, blank lines aside, and the line of the bracket that stayed open.
func (r *confReader) unclosed(open string, opened int) error {
	blank := r.s[len(strings.TrimRightFunc(r.s, unicode.IsSpace)):]
	return r.fail(max(r.line-strings.Count(blank, "\n"), opened), "the text ends, but the %s of line %d is not closed", open, opened)
}

func (r *confReader) unexpected(want string) error {
	got := "the end of the text"
	if r.i < len(r.s) {
		if word := r.word(); word != "" {
			got = confQuote(word)
		} else if quoteFamily(r.s[r.i:]) != 0 {
			got = "a quote"
		} else {
			_, n := utf8.DecodeRuneInString(r.s[r.i:])
			got = confQuote(r.s[r.i : r.i+n])
		}
	}
	return r.fail(r.line, "expected %s, found %s", want, got)
}

// peek is the next byte, 0 at the end.
func (r *confReader) peek() byte {
	if r.i < len(r.s) {
		return r.s[r.i]
	}
	return 0
}

// word is the run of letters, digits and the like at the place, at most 40 bytes of it.
//
//go:noinline for size: it is called in many places
func (r *confReader) word() string {
	j := r.i
	for j < len(r.s) && j < r.i+40 {
		if c := r.s[j]; c != '_' && c != '-' && c != '.' && !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') {
			break
		}
		j++
	}
	return r.s[r.i:j]
}

// space passes over white space, odd spaces and comments.
func (r *confReader) space() error {
	for r.i < len(r.s) {
		switch c := r.s[r.i]; {
		case c == '\n':
			r.line++
			r.i++
		case c == ' ' || c == '\t' || c == '\r':
			r.i++
		case c == '/':
			ok, err := r.comment()
			if err != nil || !ok {
				return err
			}
		default:
			n := oddSpace(r.s[r.i:])
			if n == 0 {
				return nil
			}
			r.spaces = true
			r.i += n
		}
	}
	return nil
}

func (r *confReader) comment() (bool, error) {
	rest := r.s[r.i:]
	switch {
	case strings.HasPrefix(rest, "//"):
		if end := strings.IndexByte(rest, '\n'); end >= 0 {
			r.i += end
		} else {
			r.i = len(r.s)
		}
	case strings.HasPrefix(rest, "/*"):
		end := strings.Index(rest[2:], "*/")
		if end < 0 {
			return false, r.fail(r.line, "a comment that is never closed")
		}
		r.line += strings.Count(rest[:end+2], "\n")
		r.i += end + 4
	default:
		return false, nil
	}
	return true, nil
}

// oddSpace is the length of a space that is none in JSON (non-breaking, zero width, byte order mark ...) at the start of s.
func oddSpace(s string) int {
	c, n := utf8.DecodeRuneInString(s)
	switch {
	case c == '\v' || c == '\f', c > 0x7f && unicode.IsSpace(c),
		0x200b <= c && c <= 0x200f, c == 0x2060, c == 0xfeff, c == 0x180e:
		return n
	}
	return 0
}

// number reads a JSON number (RFC 8259 6) and keeps its digits.
func (r *confReader) number() (string, error) {
	s, j := r.s, r.i
	digits := func() int {
		k := j
		for j < len(s) && '0' <= s[j] && s[j] <= '9' {
			j++
		}
		return j - k
	}
	if s[j] == '-' {
		j++
	}
	start := j
	n := digits()
	ok := n == 1 || n > 1 && s[start] != '0'
	if ok && j < len(s) && s[j] == '.' {
		j++
		ok = digits() > 0
	}
	if ok && j < len(s) && (s[j] == 'e' || s[j] == 'E') {
		if j++; j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		ok = digits() > 0
	}
	text := s[r.i:j]
	if !ok || len(r.word()) > len(text) && len(text) < 40 {
		return "", r.fail(r.line, "%s is not a number", confQuote(r.word()))
	}
	r.i = j
	return text, nil
}

// quoteFamily tells which quote s starts with: the plain ones stand for themselves, D and S for the curly double and
// single ones, 0 for none.
//
//go:noinline for size: it is called in many places
func quoteFamily(s string) byte {
	if s == "" {
		return 0
	}
	switch c := s[0]; {
	case c == '"' || c == '\'':
		return c
	case c == 0xe2 && len(s) >= 3 && s[1] == 0x80: // U+2018 to U+201F
		if b := s[2]; 0x98 <= b && b <= 0x9b {
			return 'S'
		} else if 0x9c <= b && b <= 0x9f {
			return 'D'
		}
	}
	return 0
}

// str reads a string. It closes with a quote of the family that opened it; other quotes inside are text.
func (r *confReader) str() (string, error) {
	family := quoteFamily(r.s[r.i:])
	size := 1
	if family == 'S' || family == 'D' {
		size = 3
	}
	start := r.i + size
	path := drivePath(r.s[start:])
	var b strings.Builder
	from := start
	for j := start; j < len(r.s); {
		c := r.s[j]
		switch {
		case c == '\\':
			text, n := r.escape(j, family, path)
			b.WriteString(r.s[from:j])
			b.WriteString(text)
			j += n
			from = j
		case c == '\n' || c == '\r':
			return "", r.fail(r.line, "a string that is not closed on its line")
		case c < 0x20:
			return "", r.fail(r.line, "the control character U+%04X inside a string", c)
		case (c == family || c == 0xe2 && size == 3) && quoteFamily(r.s[j:]) == family:
			b.WriteString(r.s[from:j])
			r.i = j + size
			r.quotes = r.quotes || family != '"'
			return b.String(), nil
		default:
			j++
		}
	}
	return "", r.fail(r.line, "the text ends inside a string")
}

// drivePath reports whether a string starts like a Windows path whose backslashes were not doubled.
func drivePath(s string) bool {
	if len(s) < 4 || s[1] != ':' || s[2] != '\\' || s[3] == '\\' {
		return false
	}
	c := s[0] | 0x20
	return 'a' <= c && c <= 'z'
}

// escape reads what the backslash at place j stands for and how many bytes that takes.
func (r *confReader) escape(j int, family byte, path bool) (string, int) {
	next := r.s[j+1:]
	plain := func() (string, int) {
		if r.backslash == 0 {
			r.backslash = r.line
		}
		return `\`, 1
	}
	switch {
	case next == "":
		return plain()
	case quoteFamily(next) == family: // the quote itself, unless a path ends with its last backslash
		size := 1
		if family == 'S' || family == 'D' {
			size = 3
		}
		if path && r.closesAt(j+1+size) {
			return plain()
		}
		if family == '\'' || family == 'S' {
			return "'", 1 + size
		}
		return `"`, 1 + size
	case next[0] == '\\':
		return `\`, 2
	case path:
		return plain()
	}
	switch next[0] {
	case '"', '/':
		return next[:1], 2
	case 'b':
		return "\b", 2
	case 'f':
		return "\f", 2
	case 'n':
		return "\n", 2
	case 'r':
		return "\r", 2
	case 't':
		return "\t", 2
	}
	c, ok := confHexRune(next)
	if !ok {
		return plain()
	}
	if utf16.IsSurrogate(c) {
		if low, ok := confHexRune(strings.TrimPrefix(next[5:], `\`)); ok && next[5] == '\\' {
			if both := utf16.DecodeRune(c, low); both != utf8.RuneError {
				return string(both), 12
			}
		}
	}
	return string(c), 6
}

// confHexRune reads uXXXX.
func confHexRune(s string) (rune, bool) {
	if len(s) < 5 || s[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[1:5], 16, 16)
	return rune(n), err == nil
}

// closesAt reports whether place j can be the one behind a string: a comma, a colon, a closing bracket or the end.
func (r *confReader) closesAt(j int) bool {
	rest := strings.TrimLeft(r.s[j:], " \t\r\n")
	return rest == "" || strings.IndexByte(",:}]", rest[0]) >= 0
}

// startsJSON reports whether a text is meant as JSON: it starts with a brace, a quote or a comment, or with a list of
// objects (a lone bracket starts a TOML table).
func startsJSON(s string) bool {
	r := &confReader{s: strings.TrimLeftFunc(s, isBlank)}
	if strings.HasPrefix(r.s, "//") || strings.HasPrefix(r.s, "/*") {
		return true
	}
	switch {
	case r.peek() == '{' || quoteFamily(r.s[r.i:]) != 0:
		return true
	case r.peek() == '[':
		r.i++
		return r.space() == nil && r.peek() == '{'
	}
	return false
}

// isBlank reports white space, the odd kinds included.
func isBlank(c rune) bool { return unicode.IsSpace(c) || c > 0x7f && oddSpace(string(c)) > 0 }
