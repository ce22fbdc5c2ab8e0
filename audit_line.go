// This file judges one line of a run log by itself: that it is spelled as tai writes it, and that its hash is its own. It
// knows nothing of the lines around it, which audit_verify.go compares. The quick way reads the one form that record writes;
// what it does not know, which is every fault and every rare spelling, the exact way judges. So the quick way can only accept.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"unicode"
	"unicode/utf8"
)

const (
	auditQuickDepth = 32 // nesting of data that the quick way follows
	auditHashText   = 2 * sha256.Size
)

// auditLink is what a line that is good by itself says about its place in the log. The texts may alias the line.
type auditLink struct {
	seq                    int64
	run, event, prev, hash []byte
}

// auditJudge judges lines one after the other. Its buffers are reused, so that a line costs one pass and one hash.
type auditJudge struct {
	auditParser
	spans [len(auditForm)]auditSpan
	canon []byte
	line  []byte
}

// auditSpan is where a field stands in a line, its comma or closing brace included; empty where the line has no such field.
type auditSpan struct{ from, to int }

// judge takes one line without its newline. It must be byte for byte what record would write for its own values, so no
// edit goes unseen, not even of white space, of a number's spelling or of an escape.
func (j *auditJudge) judge(line []byte) (auditLink, error) {
	if link, ok := j.quick(line); ok && auditHashFits(j.canon, link.hash) {
		return link, nil
	}
	return j.exact(line)
}

// exact reads the line as JSON, writes it again and compares.
func (j *auditJudge) exact(line []byte) (auditLink, error) {
	rec, err := j.parse(line)
	if err != nil {
		return auditLink{}, err
	}
	j.line = rec.appendLine(j.line[:0])
	if !bytes.Equal(j.line[:len(j.line)-1], line) {
		return auditLink{}, newError("the line is not spelled as tai writes it")
	}
	j.canon = rec.appendCanonical(j.canon[:0])
	j.rec = rec
	link := auditLink{seq: rec.Seq, run: []byte(rec.Run), event: []byte(rec.Event), prev: []byte(rec.Prev), hash: []byte(rec.Hash)}
	if !auditHashFits(j.canon, link.hash) {
		return link, newError("the hash does not fit the line")
	}
	return link, nil
}

func auditHashFits(canon, hash []byte) bool {
	sum := sha256.Sum256(canon)
	var text [auditHashText]byte
	hex.Encode(text[:], sum[:])
	return string(text[:]) == string(hash)
}

// auditKind says how the value of a field is spelled.
type auditKind int

const (
	auditKindText   auditKind = iota // a string that is not empty
	auditKindCount                   // a whole number above zero
	auditKindMillis                  // milliseconds with decimals
	auditKindData                    // any canonical JSON
)

// auditForm is the form of a line: its fields in the order in which appendLine writes them.
var auditForm = [...]struct {
	key  string
	kind auditKind
	must bool
}{
	{`"seq":`, auditKindCount, true}, {`"time":`, auditKindText, true}, {`"run":`, auditKindText, true}, {`"event":`, auditKindText, true},
	{`"call":`, auditKindText, false}, {`"parent":`, auditKindText, false}, {`"kind":`, auditKindText, false}, {`"subject":`, auditKindText, false},
	{`"digest":`, auditKindText, false}, {`"outcome":`, auditKindText, false}, {`"duration_ms":`, auditKindMillis, false},
	{`"size":`, auditKindCount, false}, {`"rule":`, auditKindText, false}, {`"data":`, auditKindData, false},
	{`"prev":`, auditKindText, true}, {`"hash":`, auditKindText, true},
}

// Places in auditForm.
const (
	auditAtSeq   = 0
	auditAtRun   = 2
	auditAtEvent = 3
	auditAtPrev  = 14
	auditAtHash  = 15
)

// auditHashed is the order in which appendCanonical writes the fields: that of their names.
var auditHashed = [...]int{4, 13, 8, 10, 3, 6, 9, 5, 14, 12, 2, 0, 11, 7, 1}

// quick reads a line of exactly the written form and leaves in canon what is hashed: the fields as they stand, in the order of
// their names. It is false for every line that is not certain to be what appendLine writes for its own values.
func (j *auditJudge) quick(line []byte) (auditLink, bool) {
	var link auditLink
	if len(line) == 0 || line[0] != '{' || !auditPlain(line) {
		return link, false
	}
	at := 1
	for f := range auditForm {
		field := &auditForm[f]
		if len(line)-at < len(field.key) || string(line[at:at+len(field.key)]) != field.key {
			if field.must {
				return link, false
			}
			j.spans[f] = auditSpan{}
			continue
		}
		end := auditValueEnd(line, at+len(field.key), field.kind)
		if end < 0 || end == len(line) {
			return link, false
		}
		j.spans[f] = auditSpan{at, end + 1}
		if f == auditAtHash {
			break
		}
		if line[end] != ',' {
			return link, false
		}
		at = end + 1
	}
	hash := j.spans[auditAtHash]
	if hash.to != len(line) || line[hash.to-1] != '}' {
		return link, false
	}
	j.canon = append(j.canon[:0], '{')
	for _, f := range auditHashed {
		j.canon = append(j.canon, line[j.spans[f].from:j.spans[f].to]...)
	}
	j.canon[len(j.canon)-1] = '}'
	for _, b := range j.text(line, auditAtSeq) {
		link.seq = link.seq*10 + int64(b-'0')
	}
	link.run, link.event, link.prev, link.hash = j.text(line, auditAtRun), j.text(line, auditAtEvent), j.text(line, auditAtPrev), j.text(line, auditAtHash)
	return link, bytes.IndexByte(link.run, '\\') < 0 && bytes.IndexByte(link.event, '\\') < 0 && bytes.IndexByte(link.prev, '\\') < 0
}

// text is the value of a field that the line has, without its quotes.
//
//go:noinline for size: it is called in many places
func (j *auditJudge) text(line []byte, f int) []byte {
	value := line[j.spans[f].from+len(auditForm[f].key) : j.spans[f].to-1]
	if value[0] == '"' {
		return value[1 : len(value)-1]
	}
	return value
}

// auditPlain reports a line without a byte that appendLine would write as an escape: UTF-8 without control and hidden
// characters. Lines are nearly always ASCII, so it looks at eight bytes at a time first.
func auditPlain(line []byte) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	var above uint64
	i := 0
	for ; i+8 <= len(line); i += 8 {
		x := binary.LittleEndian.Uint64(line[i:])
		above |= x | (x + ones) // a byte from 0x7f on has its top bit in one of the two, or carries into one that has
	}
	for ; i < len(line); i++ {
		above |= uint64(line[i]) | uint64(line[i]+1)
	}
	if above&tops == 0 {
		return true
	}
	if !utf8.Valid(line) {
		return false
	}
	for i := 0; i < len(line); {
		if line[i] < 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(line[i:])
		if unicode.IsControl(r) || hiddenRune(r) {
			return false
		}
		i += n
	}
	return true
}

// auditValueEnd gives the end of the value at i, -1 where it is not surely one of that kind in its canonical spelling.
func auditValueEnd(line []byte, i int, kind auditKind) int {
	switch kind {
	case auditKindText:
		if i+1 >= len(line) || line[i] != '"' || line[i+1] == '"' {
			return -1
		}
		return auditStringEnd(line, i)
	case auditKindData:
		return auditDataEnd(line, i, 0)
	case auditKindMillis:
		return auditMillisEnd(line, i)
	}
	end := auditDigitsEnd(line, i)
	if end == i || end-i > canonPlainInt || line[i] == '0' {
		return -1
	}
	return end
}

func auditDigitsEnd(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// auditMillisEnd takes decimals with no more digits than a double keeps as they were written, and no zero that could go.
func auditMillisEnd(b []byte, i int) int {
	whole := auditDigitsEnd(b, i)
	if whole == i || b[i] == '0' && whole-i > 1 {
		return -1
	}
	end := whole
	if end < len(b) && b[end] == '.' {
		if end = auditDigitsEnd(b, whole+1); end == whole+1 || b[end-1] == '0' {
			return -1
		}
	}
	if end-i > canonPlainInt {
		return -1
	}
	return end
}

// auditStringEnd passes over a string with no escapes but the short ones, which have no other spelling.
func auditStringEnd(b []byte, i int) int {
	for i++; ; i += 2 {
		if i = plainText(b, i); i+1 >= len(b) || b[i] < 0x20 {
			return -1
		}
		if b[i] == '"' {
			return i + 1
		}
		switch b[i+1] {
		case '"', '\\', 'b', 'f', 'n', 'r', 't':
		default:
			return -1
		}
	}
}

// auditDataEnd passes over one canonical JSON value.
func auditDataEnd(b []byte, i, depth int) int {
	if i >= len(b) || depth > auditQuickDepth {
		return -1
	}
	switch b[i] {
	case '"':
		return auditStringEnd(b, i)
	case '{':
		return auditMembersEnd(b, i, depth+1)
	case '[':
		return auditItemsEnd(b, i, depth+1)
	case 't', 'f', 'n':
		for _, word := range [...]string{"true", "false", "null"} {
			if len(b)-i >= len(word) && string(b[i:i+len(word)]) == word {
				return i + len(word)
			}
		}
		return -1
	}
	first := i
	if b[i] == '-' {
		first++
	}
	end := auditDigitsEnd(b, first)
	if end == first || end == len(b) || end-first > canonPlainInt || b[first] == '0' && end-i > 1 || b[end] == '.' || b[end] == 'e' || b[end] == 'E' {
		return -1 // what is no plain whole number has more than one spelling
	}
	return end
}

// auditMembersEnd passes over an object whose keys stand in order and have no escapes.
func auditMembersEnd(b []byte, i, depth int) int {
	if i+1 < len(b) && b[i+1] == '}' {
		return i + 2
	}
	var before []byte
	for first := true; ; first = false {
		i++ // the brace or the comma
		if i >= len(b) || b[i] != '"' {
			return -1
		}
		end := plainText(b, i+1)
		if end+1 >= len(b) || b[end] != '"' || b[end+1] != ':' {
			return -1
		}
		key := b[i+1 : end]
		if !first && canonCompare(before, key) >= 0 {
			return -1
		}
		before = key
		if i = auditDataEnd(b, end+2, depth); i < 0 || i >= len(b) {
			return -1
		}
		switch b[i] {
		case ',':
		case '}':
			return i + 1
		default:
			return -1
		}
	}
}

func auditItemsEnd(b []byte, i, depth int) int {
	if i+1 < len(b) && b[i+1] == ']' {
		return i + 2
	}
	for {
		if i = auditDataEnd(b, i+1, depth); i < 0 || i >= len(b) {
			return -1
		}
		switch b[i] {
		case ',':
		case ']':
			return i + 1
		default:
			return -1
		}
	}
}

// auditParser reads lines strictly, known fields of their type only; its caller compares the spelling. A log repeats its
// run, its events and each line's hash, so texts that stood in the line before are shared with it.
type auditParser struct {
	rec     auditRecord // of the line before
	members []jsonMember
}

//go:noinline for size: it is called in many places
func parseAuditLine(line []byte) (auditRecord, error) { return new(auditParser).parse(line) }

// parse reads one line; the record does not alias it.
func (p *auditParser) parse(line []byte) (auditRecord, error) {
	var rec auditRecord
	members, err := jsonObjectInto(p.members[:0], line)
	if err != nil {
		return rec, errorf("the line is no JSON object: %w", err)
	}
	p.members = members
	for _, m := range members {
		if err := p.set(&rec, m.Key, m.Value); err != nil {
			return rec, err
		}
	}
	return rec, nil
}

// set puts one field's raw value in place.
func (p *auditParser) set(r *auditRecord, key string, raw json.RawMessage) error {
	var err error
	switch key {
	case "seq":
		r.Seq, err = strconv.ParseInt(string(raw), 10, 64)
	case "size":
		r.Size, err = strconv.ParseInt(string(raw), 10, 64)
	case "duration_ms":
		r.Duration = string(raw)
		var ms float64
		if ms, err = strconv.ParseFloat(r.Duration, 64); err == nil && strconv.FormatFloat(ms, 'f', -1, 64) != r.Duration {
			err = newError("not in canonical form")
		}
	case "data":
		r.Data, err = canonicalJSON(raw)
	default:
		field := r.textField(key)
		if field == nil {
			return errorf("the line has an unknown field %q", clip(visibleLine(key), 64))
		}
		before := *p.rec.textField(key)
		if key == "prev" {
			before = p.rec.Hash
		}
		if len(raw) == len(before)+2 && string(raw[1:len(raw)-1]) == before && bytes.IndexByte(raw, '\\') < 0 {
			*field = before
			break
		}
		var ok bool
		if *field, ok = jsonString(raw); !ok {
			err = newError("not a string")
		}
	}
	if err != nil {
		return errorf("field %s: %w", key, err)
	}
	return nil
}

// textField is the place of a text field, nil for a name that no line has.
//
//go:noinline for size: it is called in many places
func (r *auditRecord) textField(key string) *string {
	switch key {
	case "time":
		return &r.Time
	case "run":
		return &r.Run
	case "event":
		return &r.Event
	case "call":
		return &r.Call
	case "parent":
		return &r.Parent
	case "kind":
		return &r.Kind
	case "subject":
		return &r.Subject
	case "digest":
		return &r.Digest
	case "outcome":
		return &r.Outcome
	case "rule":
		return &r.Rule
	case "prev":
		return &r.Prev
	case "hash":
		return &r.Hash
	}
	return nil
}
