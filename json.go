// This file reads JSON strictly: UTF-8, exact key names, no duplicate keys, bounded nesting (RFC 8259; MCP messages and
// everything tai stores). It splits without building values, so that schemas, arguments, results and ids travel as they came.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// jsonMaxDepth is how deep a value that tai looks into may be nested. Splitting passes over any depth.
const jsonMaxDepth = 1000

// jsonMaxItems bounds the elements of an array that is split, and the keys that are kept to find one that stands twice: a
// message within its cap can hold millions of either, at many times its own size in memory (R2).
const jsonMaxItems = 50_000 // entries

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

var (
	errJSONNotUTF8 = errors.New("not valid JSON: not UTF-8")
	errJSONItems   = fmt.Errorf("an array has more than %d elements", jsonMaxItems)
)

// jsonObject splits one object and nothing else. Duplicate keys are refused; values are split, not checked in depth.
func jsonObject(b []byte) ([]jsonMember, error) { return jsonObjectInto(nil, b) }

// jsonObjectInto is jsonObject appending to buf, so that a caller with few keys allocates nothing.
func jsonObjectInto(buf []jsonMember, b []byte) ([]jsonMember, error) {
	if !utf8.Valid(b) {
		return nil, errJSONNotUTF8
	}
	p := jsonScan{b: b}
	buf, err := p.members(buf)
	if err != nil {
		return nil, err
	}
	return buf, p.end()
}

// members splits the object at the cursor and leaves the cursor behind it.
func (p *jsonScan) members(buf []jsonMember) ([]jsonMember, error) {
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
		if len(buf)-first == jsonMaxItems {
			return nil, p.fault(fmt.Sprintf("an object has more than %d keys", jsonMaxItems))
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
	if key, twice := duplicateKey(buf[first:]); twice {
		return nil, &jsonError{Msg: fmt.Sprintf("key %s stands twice", quoteClip(key)), Offset: 0}
	}
	return buf, nil
}

// jsonArray splits one array of at most jsonMaxItems elements and nothing else.
func jsonArray(b []byte) ([]json.RawMessage, error) {
	var out []json.RawMessage
	err := jsonEach(b, func(v json.RawMessage) error {
		if len(out) == jsonMaxItems {
			return errJSONItems
		}
		out = append(out, v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// jsonEach hands the elements of one array to take, one after another, however many there are; an error of take ends it. That
// the whole text is an array is known only when it has returned nil. The values alias b.
func jsonEach(b []byte, take func(json.RawMessage) error) error {
	if !utf8.Valid(b) {
		return errJSONNotUTF8
	}
	p := jsonScan{b: b}
	p.space()
	if p.i == len(p.b) || p.b[p.i] != '[' {
		return p.fault("an array was expected")
	}
	err := p.eachItem(func() error {
		v, err := p.value()
		if err != nil {
			return err
		}
		return take(v)
	})
	if err != nil {
		return err
	}
	return p.end()
}

// eachItem calls f at each item of the array at the cursor; f reads it.
func (p *jsonScan) eachItem(f func() error) error {
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
		if err := f(); err != nil {
			return err
		}
	}
}

// eachMember calls f with each key of the object at the cursor; f reads the value and does not keep the key.
func (p *jsonScan) eachMember(f func(key []byte) error) error {
	p.i++
	var few [16][]byte
	keys := few[:0]
	for p.space(); !p.take('}'); p.space() {
		if len(keys) > 0 {
			if !p.take(',') {
				return p.fault("a comma or a closing brace was expected")
			}
			p.space()
		}
		if p.keys == jsonMaxItems {
			return p.fault(fmt.Sprintf("an object and those around it have more than %d keys", jsonMaxItems))
		}
		p.keys++
		raw, err := p.rawKey()
		if err != nil {
			return err
		}
		key := raw[1 : len(raw)-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key = []byte(knownKey(raw))
		}
		keys = append(keys, key)
		p.space()
		if err := f(key); err != nil {
			return err
		}
	}
	if key, twice := duplicateBytes(keys); twice {
		return p.fault(fmt.Sprintf("key %s stands twice in the object that ends", quoteClip(string(key))))
	}
	p.keys -= len(keys)
	return nil
}

// duplicateBytes is duplicateKey for keys that are not strings yet.
func duplicateBytes(keys [][]byte) ([]byte, bool) {
	if len(keys) > 16 {
		keys = slices.Clone(keys)
		slices.SortFunc(keys, bytes.Compare)
		for i := range keys[1:] {
			if bytes.Equal(keys[i], keys[i+1]) {
				return keys[i], true
			}
		}
		return nil, false
	}
	for i := range keys {
		for j := range i {
			if bytes.Equal(keys[i], keys[j]) {
				return keys[i], true
			}
		}
	}
	return nil, false
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
	b     []byte
	i     int
	keys  int  // that are remembered, of all the objects the cursor is inside of
	again bool // the text lies inside one that was split before, so its UTF-8 and its strings are known to be good
}

//go:noinline for size: it is called in many places
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
	raw, err := p.rawKey()
	if err != nil {
		return "", err
	}
	return knownKey(raw), nil
}

// rawKey is key with the name in its quotes, as it was written.
func (p *jsonScan) rawKey() ([]byte, error) {
	start := p.i
	if !p.take('"') {
		return nil, p.fault("a key was expected")
	}
	if err := p.stringTail(); err != nil {
		return nil, err
	}
	raw := p.b[start:p.i]
	if p.space(); !p.take(':') {
		return nil, p.fault("a colon was expected")
	}
	return raw, nil
}

// jsonNames are the keys that messages, tool lists and run logs are made of.
var jsonNames = [...]string{
	"jsonrpc", "id", "method", "params", "result", "error", "name", "arguments", "content", "type", "text", "isError",
	"description", "inputSchema", "seq", "time", "run", "event", "call", "parent", "kind", "subject", "digest", "outcome",
	"duration_ms", "size", "rule", "data", "prev", "hash",
}

// knownKey unquotes a key; the names in jsonNames come without an allocation.
func knownKey(raw []byte) string {
	in := raw[1 : len(raw)-1]
	for _, name := range jsonNames {
		if string(in) == name {
			return name
		}
	}
	s, _ := jsonString(raw)
	return s
}

// stringTail reads the rest of a string after its opening quote.
func (p *jsonScan) stringTail() error {
	if p.again {
		return p.knownTail()
	}
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

// knownTail is stringTail where nothing is left to be checked: it looks for the quote that no backslash stands before.
func (p *jsonScan) knownTail() error {
	for from := p.i; ; {
		n := bytes.IndexByte(p.b[p.i:], '"')
		if n < 0 {
			p.i = len(p.b)
			return p.fault("a string is not closed")
		}
		p.i += n + 1
		slash := p.i - 1
		for slash > from && p.b[slash-1] == '\\' {
			slash--
		}
		if (p.i-1-slash)%2 == 0 {
			return nil
		}
	}
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
	return p.eachMember(func([]byte) error { return p.check(depth) })
}

func (p *jsonScan) checkArray(depth int) error {
	if depth > jsonMaxDepth {
		return p.fault(fmt.Sprintf("nested deeper than %d levels", jsonMaxDepth))
	}
	return p.eachItem(func() error { return p.check(depth) })
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
	err := json.Unmarshal(b, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return errorf("not the expected JSON: %s may not be of the type %s", visibleLine(wrong.Field), visibleLine(wrong.Value))
	}
	if err != nil {
		return errorf("not the expected JSON: %w", err)
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
				return errorf("unknown field %s", quoteClip(path+m.Key))
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

// orEmpty keeps a list from being null in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// appendMembers writes members as an object.
func appendMembers(dst []byte, members []jsonMember) []byte {
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendJSONString(dst, m.Key), ':')
		dst = append(dst, m.Value...)
	}
	return append(dst, '}')
}
