// This file reads TOML 1.0 (https://toml.io/en/v1.0.0) into plain Go values. It owns the grammar and the rules of which table may be
// written where; it knows no key's meaning. Order: errors and tables, the cursor, then the grammar from the document down.
// toml_values.go has the scalars.
package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	tomlMaxDepth = 100 // tables and arrays inside one another, counted over headers, dotted keys and values
	tomlKeyMax   = 80  // bytes of a key shown in an error
)

// tomlError says where a document is wrong. Line and Column count from 1, Column in characters; Key is the key last read, with its
// table's, as written and clipped, or empty. Values are not quoted in Msg, since they may be secrets.
type tomlError struct {
	Line, Column int
	Msg          string
	Key          string
}

func (e *tomlError) Error() string {
	s := fmt.Sprintf("TOML line %d, column %d: %s", e.Line, e.Column, e.Msg)
	if e.Key != "" {
		s += fmt.Sprintf(" (last key: %q)", e.Key)
	}
	return s
}

// tomlOrigin says how a table came to be, which decides what may still be written into it.
type tomlOrigin int

const (
	tomlImplied tomlOrigin = iota // named only as a parent in a header: may still be defined, once
	tomlHeader                    // [a]
	tomlElement                   // last element of [[a]]
	tomlDotted                    // parent in a dotted key: open to dotted keys of its own section, closed to headers
)

// tomlTable is a table that may still grow. subs holds those of vals that may, too; a key of vals that is not in subs is finished:
// a scalar, an array or an inline table.
type tomlTable struct {
	vals   map[string]any
	subs   map[string]*tomlTable
	origin tomlOrigin
	depth  int
}

func newTOMLTable(origin tomlOrigin, depth int) *tomlTable {
	return &tomlTable{vals: map[string]any{}, subs: map[string]*tomlTable{}, origin: origin, depth: depth}
}

// tomlReader is a cursor over one document.
type tomlReader struct {
	src     string
	pos     int        // byte offset of the next character
	root    *tomlTable // the document
	section *tomlTable // the table of the last header
	header  string     // that header's key as written
	key     string     // the key last read as written, for errors
}

// parseTOML reads a whole document. Values are map[string]any, []any, string, bool, tomlNumber and tomlTime; errors are *tomlError.
// A byte order mark at the start is passed over, CR LF in multi-line strings is kept. The caller bounds len(b).
func parseTOML(b []byte) (map[string]any, error) {
	root := newTOMLTable(tomlHeader, 0)
	r := &tomlReader{src: strings.TrimPrefix(string(b), "\ufeff"), root: root, section: root}
	if at := tomlBadUTF8(r.src); at >= 0 {
		return nil, r.fail(at, "text is not UTF-8")
	}
	for r.pos < len(r.src) {
		if err := r.expression(); err != nil {
			return nil, err
		}
	}
	return root.vals, nil
}

// --- cursor ---

// peek gives the next byte, 0 at the end; U+0000 is valid nowhere in TOML, so the two need no telling apart before an error.
func (r *tomlReader) peek() byte {
	if r.pos < len(r.src) {
		return r.src[r.pos]
	}
	return 0
}

// take moves over s if it comes next.
//
//go:noinline for size: it is called in many places
func (r *tomlReader) take(s string) bool {
	if !strings.HasPrefix(r.src[r.pos:], s) {
		return false
	}
	r.pos += len(s)
	return true
}

// run moves over all bytes that ok accepts and gives them.
//
//go:noinline for size: it is called in many places
func (r *tomlReader) run(ok func(byte) bool) string {
	start := r.pos
	for r.pos < len(r.src) && ok(r.src[r.pos]) {
		r.pos++
	}
	return r.src[start:r.pos]
}

//go:noinline for size: it is called in many places
func (r *tomlReader) space() { r.run(func(c byte) bool { return c == ' ' || c == '\t' }) }

func (r *tomlReader) newline() bool { return r.take("\n") || r.take("\r\n") }

// next names the next character for an error.
func (r *tomlReader) next() string {
	c, _ := utf8.DecodeRuneInString(r.src[r.pos:])
	switch {
	case r.pos == len(r.src):
		return "the end of the text"
	case c == '\n' || strings.HasPrefix(r.src[r.pos:], "\r\n"):
		return "the end of the line"
	case c == '\r':
		return "a carriage return without a line feed"
	case !strconv.IsPrint(c):
		return fmt.Sprintf("the character %U", c)
	}
	return strconv.QuoteRune(c)
}

// fail makes the error for the byte offset at.
func (r *tomlReader) fail(at int, format string, args ...any) error {
	before := r.src[:at]
	start := strings.LastIndexByte(before, '\n') + 1
	return &tomlError{
		Line:   strings.Count(before, "\n") + 1,
		Column: utf8.RuneCountInString(before[start:]) + 1,
		Msg:    fmt.Sprintf(format, args...),
		Key:    tomlClip(r.key),
	}
}

// --- document, lines and tables ---

// expression reads one line with its end: blank, a comment, a header or a key with its value.
func (r *tomlReader) expression() error {
	r.space()
	var err error
	switch c := r.peek(); {
	case c == '[':
		err = r.tableHeader()
	case c == '#' || c == '\n' || c == '\r' || r.pos == len(r.src):
	default:
		err = r.keyValue(r.section)
	}
	if err != nil {
		return err
	}
	r.space()
	if err := r.comment(); err != nil {
		return err
	}
	if r.pos < len(r.src) && !r.newline() {
		return r.fail(r.pos, "want the end of the line, found %s", r.next())
	}
	return nil
}

// comment moves to the end of the line if a comment comes next.
func (r *tomlReader) comment() error {
	if r.peek() != '#' {
		return nil
	}
	r.run(func(c byte) bool { return !tomlControl(c) })
	if c := r.peek(); r.pos < len(r.src) && c != '\n' && !strings.HasPrefix(r.src[r.pos:], "\r\n") {
		return r.fail(r.pos, "a comment can't hold %s", r.next())
	}
	return nil
}

// blank moves over white space, comments and line ends, as they may stand between the elements of an array.
func (r *tomlReader) blank() error {
	for {
		r.space()
		if err := r.comment(); err != nil {
			return err
		}
		if !r.newline() {
			return nil
		}
	}
}

// tableHeader reads [key] or [[key]] and makes that table the section.
func (r *tomlReader) tableHeader() error {
	array, closing := r.take("[["), "]]"
	if !array {
		r.take("[")
		closing = "]"
	}
	r.space()
	start := r.pos
	keys, err := r.dottedKey()
	if err != nil {
		return err
	}
	r.header = strings.TrimRight(r.src[start:r.pos], " \t")
	r.key = r.header
	if !r.take(closing) {
		return r.fail(r.pos, "want %q after a table's name, found %s", closing, r.next())
	}
	return r.open(start, keys, array)
}

// open finds or makes the table that a header names. at is the place of its key.
func (r *tomlReader) open(at int, keys []string, array bool) error {
	t := r.root
	for _, k := range keys[:len(keys)-1] {
		sub, err := r.enter(at, t, k, tomlImplied)
		if err != nil {
			return err
		}
		t = sub
	}
	last := keys[len(keys)-1]
	sub, open := t.subs[last]
	_, taken := t.vals[last]
	switch {
	case open && array && sub.origin == tomlElement, !taken && array:
		list, _ := t.vals[last].([]any) // nil when this is the first element
		fresh, err := r.child(at, t, last, tomlElement)
		if err != nil {
			return err
		}
		t.vals[last] = append(list, fresh.vals)
		r.section = fresh
	case !taken:
		fresh, err := r.child(at, t, last, tomlHeader)
		if err != nil {
			return err
		}
		t.vals[last] = fresh.vals
		r.section = fresh
	case open && !array && sub.origin == tomlImplied:
		sub.origin = tomlHeader
		r.section = sub
	default:
		return r.fail(at, "%q is already defined and can't be defined again as a table", tomlClip(last))
	}
	return nil
}

// enter steps from t into its table k on the way to a later key, and makes it with the given origin where there is none.
func (r *tomlReader) enter(at int, t *tomlTable, k string, origin tomlOrigin) (*tomlTable, error) {
	sub, open := t.subs[k]
	if !open {
		if _, taken := t.vals[k]; taken {
			return nil, r.fail(at, "%q already has a value and can't be extended", tomlClip(k))
		}
		fresh, err := r.child(at, t, k, origin)
		if err != nil {
			return nil, err
		}
		t.vals[k] = fresh.vals
		return fresh, nil
	}
	if origin == tomlDotted {
		if sub.origin == tomlHeader || sub.origin == tomlElement {
			return nil, r.fail(at, "table %q has its own header and can't be extended by a dotted key", tomlClip(k))
		}
		sub.origin = tomlDotted
	}
	return sub, nil
}

// child makes a table for the key k of t; the caller puts its vals where they belong.
func (r *tomlReader) child(at int, t *tomlTable, k string, origin tomlOrigin) (*tomlTable, error) {
	if err := r.checkDepth(at, t.depth+1); err != nil {
		return nil, err
	}
	fresh := newTOMLTable(origin, t.depth+1)
	t.subs[k] = fresh
	return fresh, nil
}

func (r *tomlReader) checkDepth(at, depth int) error {
	if depth > tomlMaxDepth {
		return r.fail(at, "values are nested more than %d deep", tomlMaxDepth)
	}
	return nil
}

// keyValue reads key = value into t.
func (r *tomlReader) keyValue(t *tomlTable) error {
	start := r.pos
	keys, err := r.dottedKey()
	if err != nil {
		return err
	}
	name := strings.TrimRight(r.src[start:r.pos], " \t")
	if r.header != "" {
		name = r.header + "." + name
	}
	r.key = name
	if !r.take("=") {
		return r.fail(r.pos, "want \"=\" after a key, found %s", r.next())
	}
	r.space()
	for _, k := range keys[:len(keys)-1] {
		if t, err = r.enter(start, t, k, tomlDotted); err != nil {
			return err
		}
	}
	last := keys[len(keys)-1]
	if _, taken := t.vals[last]; taken {
		return r.fail(start, "key %q is already defined", tomlClip(last))
	}
	v, err := r.value(t.depth)
	if err != nil {
		return err
	}
	t.vals[last] = v
	r.key = name // an inline table has set it to its own last key
	return nil
}

// --- keys ---

// dottedKey reads a key and the white space after it.
func (r *tomlReader) dottedKey() ([]string, error) {
	var keys []string
	for {
		k, err := r.simpleKey()
		if err != nil {
			return nil, err
		}
		if err := r.checkDepth(r.pos, len(keys)); err != nil {
			return nil, err
		}
		keys = append(keys, k)
		r.space()
		if !r.take(".") {
			return keys, nil
		}
		r.space()
	}
}

func (r *tomlReader) simpleKey() (string, error) {
	switch r.peek() {
	case '"':
		return r.basicString()
	case '\'':
		return r.literalString()
	}
	k := r.run(tomlBareKey)
	if k == "" {
		return "", r.fail(r.pos, "want a key, found %s", r.next())
	}
	return k, nil
}

// --- values ---

// value reads one value that stands in a table or array of the given depth.
func (r *tomlReader) value(depth int) (any, error) {
	switch c := r.peek(); {
	case strings.HasPrefix(r.src[r.pos:], `"""`), strings.HasPrefix(r.src[r.pos:], `'''`):
		return r.multiString(c)
	case c == '"':
		return r.basicString()
	case c == '\'':
		return r.literalString()
	case c == '[':
		return r.array(depth + 1)
	case c == '{':
		return r.inlineTable(depth + 1)
	}
	return r.bareValue()
}

func (r *tomlReader) array(depth int) (any, error) {
	if err := r.checkDepth(r.pos, depth); err != nil {
		return nil, err
	}
	r.take("[")
	list := []any{}
	for {
		if err := r.blank(); err != nil {
			return nil, err
		}
		if r.take("]") {
			return list, nil
		}
		v, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if err := r.blank(); err != nil {
			return nil, err
		}
		if !r.take(",") && r.peek() != ']' {
			return nil, r.fail(r.pos, "want \",\" or \"]\" in an array, found %s", r.next())
		}
	}
}

// inlineTable reads {…}, which TOML 1.0 keeps on one line and without a comma after the last pair.
func (r *tomlReader) inlineTable(depth int) (any, error) {
	if err := r.checkDepth(r.pos, depth); err != nil {
		return nil, err
	}
	r.take("{")
	t := newTOMLTable(tomlHeader, depth)
	r.space()
	if r.take("}") {
		return t.vals, nil
	}
	for {
		if err := r.keyValue(t); err != nil {
			return nil, err
		}
		r.space()
		if r.take("}") {
			return t.vals, nil
		}
		if !r.take(",") {
			return nil, r.fail(r.pos, "want \",\" or \"}\" in an inline table, found %s", r.next())
		}
		r.space()
	}
}

// bareValue reads a value without quotes or brackets: true, false, a number, a date or a time.
func (r *tomlReader) bareValue() (any, error) {
	start := r.pos
	word := r.run(tomlBareValue)
	if len(word) == len("2006-01-02") && tomlDate(word) && r.pos+1 < len(r.src) && r.src[r.pos] == ' ' && tomlDigit(r.src[r.pos+1]) {
		r.pos++ // a space may stand for the T
		r.run(tomlBareValue)
		word = r.src[start:r.pos]
	}
	switch {
	case word == "":
		return nil, r.fail(r.pos, "want a value, found %s", r.next())
	case word == "true", word == "false":
		return word == "true", nil
	case tomlShape(word, "dddd-"), tomlShape(word, "dd:"):
		kind := tomlTimeKindOf(word)
		if kind == 0 {
			return nil, r.fail(start, "not a valid date or time")
		}
		return tomlTime{Kind: kind, Text: word}, nil
	case tomlInteger(word):
		if _, err := tomlInt(word); err != nil {
			return nil, r.fail(start, "integer does not fit in 64 bits")
		}
		return tomlNumber{Text: word}, nil
	case tomlFloat(word):
		return tomlNumber{Text: word, Float: true}, nil
	case tomlDigit(word[0]), word[0] == '+', word[0] == '-', word[0] == '.':
		return nil, r.fail(start, "not a valid number, date or time")
	}
	return nil, r.fail(start, "not a valid value; text needs quotes")
}

// --- strings ---

// literalString reads '…'.
func (r *tomlReader) literalString() (string, error) {
	r.take("'")
	s := r.run(func(c byte) bool { return c != '\'' && !tomlControl(c) })
	if !r.take("'") {
		return "", r.badString()
	}
	return s, nil
}

// basicString reads "…".
func (r *tomlReader) basicString() (string, error) {
	r.take(`"`)
	var b textBuilder
	for {
		b.WriteString(r.run(func(c byte) bool { return c != '"' && c != '\\' && !tomlControl(c) }))
		if r.take(`"`) {
			return b.String(), nil
		}
		if r.peek() != '\\' {
			return "", r.badString()
		}
		if err := r.escape(&b); err != nil {
			return "", err
		}
	}
}

// multiString reads a string in three quotes of the kind given; escapes hold in double ones.
func (r *tomlReader) multiString(quote byte) (string, error) {
	r.pos += 3
	r.newline() // right after the opening quotes it is no part of the string
	var b textBuilder
	for {
		b.WriteString(r.run(func(c byte) bool { return c != quote && !tomlControl(c) && (c != '\\' || quote == '\'') }))
		start := r.pos
		switch c := r.peek(); {
		case c == quote:
			n := 0
			for n < 5 && r.peek() == quote { // one or two quotes may stand before the closing three
				n++
				r.pos++
			}
			if n >= 3 {
				b.WriteString(r.src[start : start+n-3])
				return b.String(), nil
			}
			b.WriteString(r.src[start:r.pos])
		case r.newline():
			b.WriteString(r.src[start:r.pos])
		case c == '\\' && r.lineContinues():
		case c == '\\':
			if err := r.escape(&b); err != nil {
				return "", err
			}
		default:
			return "", r.badString()
		}
	}
}

// lineContinues moves over a backslash at the end of a line and all white space and line ends after it, if that comes next.
func (r *tomlReader) lineContinues() bool {
	start := r.pos
	r.pos++
	r.space()
	if !r.newline() {
		r.pos = start
		return false
	}
	for r.space(); r.newline(); r.space() {
	}
	return true
}

// escape reads one backslash escape into b.
func (r *tomlReader) escape(b *textBuilder) error {
	start := r.pos
	r.pos++
	c := r.peek()
	if i := strings.IndexByte(`btnfr"\`, c); i >= 0 && c != 0 {
		b.WriteByte("\b\t\n\f\r\"\\"[i])
		r.pos++
		return nil
	}
	digits := 4
	switch c {
	case 'u':
	case 'U':
		digits = 8
	default:
		return r.fail(start, "a string can't hold a backslash and then %s; write \\\\ or use single quotes", r.next())
	}
	r.pos++
	hex := r.src[r.pos:min(r.pos+digits, len(r.src))]
	if len(hex) < digits || strings.ContainsFunc(hex, func(c rune) bool { return c > 0x7f || !tomlHexDigit(byte(c)) }) {
		return r.fail(start, "\\%c wants %d hexadecimal digits", c, digits)
	}
	v, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || v > utf8.MaxRune || !utf8.ValidRune(rune(v)) {
		return r.fail(start, "\\%c%s is no Unicode character", c, hex)
	}
	b.WriteRune(rune(v))
	r.pos += digits
	return nil
}

// badString says why the string can't go on at the cursor.
func (r *tomlReader) badString() error {
	if c := r.peek(); r.pos == len(r.src) || c == '\n' || strings.HasPrefix(r.src[r.pos:], "\r\n") {
		return r.fail(r.pos, "a string is not closed before %s", r.next())
	}
	return r.fail(r.pos, "a string can't hold %s", r.next())
}

// tomlClip bounds a key for an error.
//
//go:noinline for size: it is called in many places
func tomlClip(s string) string {
	if len(s) <= tomlKeyMax {
		return s
	}
	cut := tomlKeyMax
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
