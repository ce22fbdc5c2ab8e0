// This file reads JSON strictly: UTF-8, exact key names, no duplicate keys, bounded nesting (RFC 8259; MCP messages and
// everything tai stores). It splits without building values, so that schemas, arguments, results and ids travel as they came.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonMaxDepth is how deep a value that tai looks into may be nested. Splitting passes over any depth.
const jsonMaxDepth = 1000

// jsonMember is one member of an object. Value aliases the bytes it was read from.
type jsonMember struct {
	Key   string
	Value json.RawMessage
}

// jsonError is a fault in a JSON text; Offset counts bytes from its start.
type jsonError struct {
	Msg    string
	Offset int
}

func (e *jsonError) Error() string {
	return fmt.Sprintf("not valid JSON: %s at byte %d", e.Msg, e.Offset)
}

var errJSONNotUTF8 = errors.New("not valid JSON: not UTF-8")

// jsonObject splits one object and nothing else. Duplicate keys are refused; values are split, not checked in depth.
func jsonObject(b []byte) ([]jsonMember, error) { return jsonObjectInto(nil, b) }

// jsonObjectInto is jsonObject appending to buf, so that a caller with few keys allocates nothing.
func jsonObjectInto(buf []jsonMember, b []byte) ([]jsonMember, error) {
	if !utf8.Valid(b) {
		return nil, errJSONNotUTF8
	}
	p := jsonScan{b: b}
	p.space()
	if !p.take('{') {
		return nil, p.fault("an object was expected")
	}
	first := len(buf)
	for p.space(); !p.take('}'); p.space() {
		if len(buf) > first {
			if !p.take(',') {
				return nil, p.fault("a comma or a closing brace was expected")
			}
			p.space()
		}
		key, err := p.key()
		if err != nil {
			return nil, err
		}
		value, err := p.value()
		if err != nil {
			return nil, err
		}
		buf = append(buf, jsonMember{Key: key, Value: value})
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	if key, twice := duplicateKey(buf[first:]); twice {
		return nil, &jsonError{Msg: fmt.Sprintf("key %s stands twice", quoteClip(key)), Offset: 0}
	}
	return buf, nil
}

// jsonArray splits one array and nothing else.
func jsonArray(b []byte) ([]json.RawMessage, error) {
	if !utf8.Valid(b) {
		return nil, errJSONNotUTF8
	}
	p := jsonScan{b: b}
	p.space()
	if !p.take('[') {
		return nil, p.fault("an array was expected")
	}
	var out []json.RawMessage
	for p.space(); !p.take(']'); p.space() {
		if len(out) > 0 {
			if !p.take(',') {
				return nil, p.fault("a comma or a closing bracket was expected")
			}
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, p.end()
}

func duplicateKey(m []jsonMember) (string, bool) {
	if len(m) > 16 {
		seen := make(map[string]struct{}, len(m))
		for _, x := range m {
			if _, ok := seen[x.Key]; ok {
				return x.Key, true
			}
			seen[x.Key] = struct{}{}
		}
		return "", false
	}
	for i := range m {
		for j := range i {
			if m[i].Key == m[j].Key {
				return m[i].Key, true
			}
		}
	}
	return "", false
}

// checkJSON reports the first fault of a whole text: syntax, UTF-8, a key that stands twice in one object at any level, or
// nesting beyond jsonMaxDepth.
func checkJSON(b []byte) error {
	if !utf8.Valid(b) {
		return errJSONNotUTF8
	}
	p := jsonScan{b: b}
	p.space()
	if err := p.check(0); err != nil {
		return err
	}
	return p.end()
}

// jsonScan is a cursor over a text.
type jsonScan struct {
	b []byte
	i int
}

func (p *jsonScan) fault(msg string) error { return &jsonError{Msg: msg, Offset: p.i} }

func (p *jsonScan) space() {
	for p.i < len(p.b) {
		switch p.b[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

func (p *jsonScan) take(c byte) bool {
	if p.i < len(p.b) && p.b[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *jsonScan) end() error {
	if p.space(); p.i < len(p.b) {
		return p.fault("something follows the value")
	}
	return nil
}

// key reads a member's name and the colon after it.
func (p *jsonScan) key() (string, error) {
	start := p.i
	if !p.take('"') {
		return "", p.fault("a key was expected")
	}
	if err := p.stringTail(); err != nil {
		return "", err
	}
	raw := p.b[start:p.i]
	if p.space(); !p.take(':') {
		return "", p.fault("a colon was expected")
	}
	return knownKey(raw), nil
}

// knownKey unquotes a key; the wire's own names come without an allocation.
func knownKey(raw []byte) string {
	switch in := raw[1 : len(raw)-1]; string(in) {
	case "jsonrpc":
		return "jsonrpc"
	case "id":
		return "id"
	case "method":
		return "method"
	case "params":
		return "params"
	case "result":
		return "result"
	case "error":
		return "error"
	case "name":
		return "name"
	case "arguments":
		return "arguments"
	case "content":
		return "content"
	case "type":
		return "type"
	case "text":
		return "text"
	case "isError":
		return "isError"
	}
	s, _ := jsonString(raw)
	return s
}

// stringTail reads the rest of a string after its opening quote.
func (p *jsonScan) stringTail() error {
	for {
		if p.i = plainText(p.b, p.i); p.i == len(p.b) {
			return p.fault("a string is not closed")
		}
		switch p.b[p.i] {
		case '"':
			p.i++
			return nil
		case '\\':
			if err := p.escape(); err != nil {
				return err
			}
		default:
			return p.fault("a control character stands in a string")
		}
	}
}

// plainText gives the first place from i on with a byte that a JSON string does not hold as it is: a quote, a backslash or
// a control character; the length of b if there is none. It looks at eight bytes at a time, since texts are long: in each
// of the three sums the lowest top bit that is set marks such a byte, and only bytes above it may be marked in error.
func plainText(b []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^'"'*ones, x^'\\'*ones
		if found := ((x-0x20*ones)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(b) && b[i] >= 0x20 && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

func (p *jsonScan) escape() error {
	if p.i+1 >= len(p.b) {
		return p.fault("a string is not closed")
	}
	switch p.b[p.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.i += 2
		return nil
	case 'u':
		if p.i+6 <= len(p.b) && isHex4(p.b[p.i+2:p.i+6]) {
			p.i += 6
			return nil
		}
	}
	return p.fault("a bad escape stands in a string")
}

func isHex4(b []byte) bool {
	for _, c := range b {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return false
		}
	}
	return true
}

// value splits off the next value: strings, scalars and matching brackets are checked, commas and colons inside are not.
func (p *jsonScan) value() (json.RawMessage, error) {
	p.space()
	start := p.i
	if p.i >= len(p.b) {
		return nil, p.fault("a value was expected")
	}
	switch c := p.b[p.i]; c {
	case '{', '[':
		if err := p.skipNested(); err != nil {
			return nil, err
		}
	case '"':
		p.i++
		if err := p.stringTail(); err != nil {
			return nil, err
		}
	default:
		if err := p.scalar(); err != nil {
			return nil, err
		}
	}
	return p.b[start:p.i:p.i], nil
}

// skipNested passes over one object or array of any depth without recursion.
func (p *jsonScan) skipNested() error {
	var shallow [64]byte
	stack := shallow[:0]
	for p.i < len(p.b) {
		c := p.b[p.i]
		p.i++
		switch c {
		case '"':
			if err := p.stringTail(); err != nil {
				return err
			}
		case '{', '[':
			stack = append(stack, c+2) // the closing sign stands two further on in ASCII
		case '}', ']':
			if stack[len(stack)-1] != c {
				return p.fault("brackets do not match")
			}
			if stack = stack[:len(stack)-1]; len(stack) == 0 {
				return nil
			}
		}
	}
	return p.fault("a bracket is not closed")
}

func (p *jsonScan) scalar() error {
	rest := p.b[p.i:]
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(rest, []byte(word)) {
			p.i += len(word)
			return nil
		}
	}
	n := numberLen(rest)
	if n == 0 {
		return p.fault("a value was expected")
	}
	p.i += n
	return nil
}

// numberLen returns the length of the JSON number that b starts with, 0 if there is none.
func numberLen(b []byte) int {
	i := 0
	digits := func() bool {
		start := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return 0
	}
	if i < len(b) && b[i] == '.' {
		if i++; !digits() {
			return 0
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return 0
		}
	}
	return i
}

// check reads one value in full.
func (p *jsonScan) check(depth int) error {
	if p.i >= len(p.b) {
		return p.fault("a value was expected")
	}
	switch p.b[p.i] {
	case '{':
		return p.checkObject(depth + 1)
	case '[':
		return p.checkArray(depth + 1)
	case '"':
		p.i++
		return p.stringTail()
	}
	return p.scalar()
}

func (p *jsonScan) checkObject(depth int) error {
	if depth > jsonMaxDepth {
		return p.fault(fmt.Sprintf("nested deeper than %d levels", jsonMaxDepth))
	}
	p.i++
	var few [16]jsonMember
	keys := few[:0]
	for p.space(); !p.take('}'); p.space() {
		if len(keys) > 0 {
			if !p.take(',') {
				return p.fault("a comma or a closing brace was expected")
			}
			p.space()
		}
		key, err := p.key()
		if err != nil {
			return err
		}
		keys = append(keys, jsonMember{Key: key})
		p.space()
		if err := p.check(depth); err != nil {
			return err
		}
	}
	if key, twice := duplicateKey(keys); twice {
		return p.fault(fmt.Sprintf("key %s stands twice in the object that ends", quoteClip(key)))
	}
	return nil
}

func (p *jsonScan) checkArray(depth int) error {
	if depth > jsonMaxDepth {
		return p.fault(fmt.Sprintf("nested deeper than %d levels", jsonMaxDepth))
	}
	p.i++
	for n := 0; ; n++ {
		if p.space(); p.take(']') {
			return nil
		}
		if n > 0 {
			if !p.take(',') {
				return p.fault("a comma or a closing bracket was expected")
			}
			p.space()
		}
		if err := p.check(depth); err != nil {
			return err
		}
	}
}

func quoteClip(s string) string { return fmt.Sprintf("%q", clip(visibleKey(s), 60)) }

// visibleKey keeps a key of a peer from carrying control characters into an error; %q escapes the rest.
func visibleKey(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

// jsonString unquotes one JSON string as the splitters give it. A lone surrogate escape becomes U+FFFD. It reports false
// for anything but a string.
func jsonString(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	in := raw[1 : len(raw)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		if plainText(in, 0) != len(in) || !utf8.Valid(in) {
			return "", false
		}
		return string(in), true
	}
	return unquoteJSON(in)
}

// unquoteJSON resolves the escapes of a string's inside. A lone surrogate becomes U+FFFD.
func unquoteJSON(in []byte) (string, bool) {
	if !utf8.Valid(in) {
		return "", false
	}
	var b strings.Builder
	b.Grow(len(in))
	for i := 0; i < len(in); {
		j := plainText(in, i)
		b.Write(in[i:j])
		if i = j; i == len(in) {
			break
		}
		if in[i] != '\\' || i+1 == len(in) {
			return "", false
		}
		if in[i+1] == 'u' {
			r, n := unquoteRune(in[i:])
			if n == 0 {
				return "", false
			}
			b.WriteRune(r)
			i += n
			continue
		}
		k := strings.IndexByte(`"\/bfnrt`, in[i+1])
		if k < 0 {
			return "", false
		}
		b.WriteByte("\"\\/\b\f\n\r\t"[k])
		i += 2
	}
	return b.String(), true
}

// unquoteRune reads one \uXXXX, or a pair of them that is one character; n is 0 where it is malformed.
func unquoteRune(b []byte) (r rune, n int) {
	first, ok := escapedUnit(b)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(first) {
		return first, 6
	}
	if second, ok := escapedUnit(b[6:]); ok {
		if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
			return r, 12
		}
	}
	return utf8.RuneError, 6
}

// escapedUnit reads \uXXXX at the start of b.
func escapedUnit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' || !isHex4(b[2:6]) {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c <= '9':
			c -= '0'
		default:
			c = c | 0x20 - 'a' + 10
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

const jsonHex = "0123456789abcdef"

// appendJSONString appends s as a JSON string; what is not UTF-8 becomes U+FFFD. Nothing is escaped for HTML.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', jsonHex[c>>4], jsonHex[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// compactJSON appends raw, which must be valid JSON, without white space outside strings.
func compactJSON(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		switch c := raw[i]; c {
		case ' ', '\t', '\n', '\r':
			i++
		case '"':
			p := jsonScan{b: raw, i: i + 1}
			if p.stringTail() != nil {
				p.i = len(raw)
			}
			dst = append(dst, raw[i:p.i]...)
			i = p.i
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst
}

// decodeStrict reads stored and policy JSON into v: checkJSON first, then every key must be a field's exact name.
func decodeStrict(b []byte, v any) error {
	if err := checkJSON(b); err != nil {
		return err
	}
	if err := exactKeys(b, reflect.TypeOf(v), ""); err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("not the expected JSON: %w", err)
	}
	return nil
}

var rawMessageType = reflect.TypeFor[json.RawMessage]()

// exactKeys holds the names of raw against t, because encoding/json folds case and drops what it does not know.
func exactKeys(raw json.RawMessage, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == rawMessageType || len(raw) == 0 {
		return nil
	}
	switch raw = bytes.TrimSpace(raw); {
	case t.Kind() == reflect.Struct && raw[0] == '{':
		members, err := jsonObject(raw)
		if err != nil {
			return err
		}
		fields := jsonFields(t)
		for _, m := range members {
			ft, ok := fields[m.Key]
			if !ok {
				return fmt.Errorf("unknown field %s", quoteClip(path+m.Key))
			}
			if err := exactKeys(m.Value, ft, path+m.Key+"."); err != nil {
				return err
			}
		}
	case t.Kind() == reflect.Map && raw[0] == '{':
		members, err := jsonObject(raw)
		if err != nil {
			return err
		}
		for _, m := range members {
			if err := exactKeys(m.Value, t.Elem(), path+m.Key+"."); err != nil {
				return err
			}
		}
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && raw[0] == '[':
		items, err := jsonArray(raw)
		if err != nil {
			return err
		}
		for i, item := range items {
			if err := exactKeys(item, t.Elem(), fmt.Sprintf("%s%d.", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// jsonFields gives the JSON names of a struct's exported fields, those of embedded structs included.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			for k, v := range jsonFields(inner) {
				out[k] = v
			}
		case !f.IsExported() || name == "-":
		case name == "":
			out[f.Name] = f.Type
		default:
			out[name] = f.Type
		}
	}
	return out
}
