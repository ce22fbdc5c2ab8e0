package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// canonMaker makes JSON values and spells one value in many ways. Objects are lists of members, so that a key may stand twice.
type canonMaker struct{ *rand.Rand }

type canonField struct {
	key   string
	value any
}

var canonRunes = []rune{'a', 'b', 'Z', '0', ' ', '"', '\\', '/', 0, '\n', '\t', 0x1f, 0x7f, 0x80, 'é', '\u0301', 0x202e, 0x2028, 0xd7ff, 0xe000, 0xfb33, 0xffff, 0x10000, '😀', 0x10ffff}

func (m canonMaker) text() string {
	r := make([]rune, m.IntN(6))
	for i := range r {
		r[i] = canonRunes[m.IntN(len(canonRunes))]
	}
	return string(r)
}

func (m canonMaker) number() float64 {
	switch m.IntN(5) {
	case 0:
		return float64(m.IntN(2000) - 1000)
	case 1:
		return float64(m.Int64N(1<<62)) * float64(1-2*m.IntN(2))
	case 2:
		return float64(m.IntN(100000)) / 1000
	case 3:
		return []float64{0, 1e21, 1e-7, 1e-6, 999999999999999900000, 9007199254740992, 5e-324, math.MaxFloat64}[m.IntN(8)]
	}
	for {
		if f := math.Float64frombits(m.Uint64()); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	}
}

func (m canonMaker) value(depth int) any {
	kind := m.IntN(8)
	if depth == 0 {
		kind = m.IntN(6)
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return m.IntN(2) == 0
	case 2, 3:
		return m.number()
	case 4, 5:
		return m.text()
	case 6:
		list := make([]any, m.IntN(4))
		for i := range list {
			list[i] = m.value(depth - 1)
		}
		return list
	}
	return m.object(depth - 1)
}

func (m canonMaker) object(depth int) []canonField {
	var fields []canonField
	for range m.IntN(5) {
		key := m.text()
		if !slices.ContainsFunc(fields, func(f canonField) bool { return f.key == key }) {
			fields = append(fields, canonField{key, m.value(depth)})
		}
	}
	return fields
}

// spell writes a value with random white space, order of members, escapes and spelling of numbers.
func (m canonMaker) spell(b *strings.Builder, v any) {
	m.space(b)
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case float64:
		b.WriteString(m.digits(v))
	case string:
		m.quote(b, v)
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			m.spell(b, item)
		}
		b.WriteByte(']')
	case []canonField:
		b.WriteByte('{')
		for i, at := range m.Perm(len(v)) {
			if i > 0 {
				b.WriteByte(',')
			}
			m.space(b)
			m.quote(b, v[at].key)
			m.space(b)
			b.WriteByte(':')
			m.spell(b, v[at].value)
		}
		b.WriteByte('}')
	}
	m.space(b)
}

func (m canonMaker) space(b *strings.Builder) {
	for m.IntN(3) == 0 {
		b.WriteByte(" \t\r\n"[m.IntN(4)])
	}
}

func (m canonMaker) digits(f float64) string {
	switch m.IntN(5) {
	case 0:
		return strconv.FormatFloat(f, 'e', -1, 64)
	case 1:
		return strings.ToUpper(strconv.FormatFloat(f, 'e', 20+m.IntN(20), 64))
	case 2:
		if a := math.Abs(f); a < 1e30 && (a > 1e-30 || a == 0) {
			return strconv.FormatFloat(f, 'f', 60, 64)
		}
	case 3:
		if f == 0 {
			return []string{"-0", "-0.0", "0e0", "0E+5"}[m.IntN(4)]
		}
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func (m canonMaker) quote(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch short := strings.IndexRune("\b\t\n\f\r\"\\/", r); {
		case short >= 0 && m.IntN(2) == 0:
			b.WriteByte('\\')
			b.WriteByte(`btnfr"\/`[short])
		case r < ' ' || r == '"' || r == '\\' || m.IntN(3) == 0:
			form := []string{`\u%04x`, `\u%04X`}[m.IntN(2)]
			if r > 0xffff {
				fmt.Fprintf(b, form+form, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
			} else {
				fmt.Fprintf(b, form, r)
			}
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

func (m canonMaker) spelled(v any) string {
	var b strings.Builder
	m.spell(&b, v)
	return b.String()
}

// change makes a value of the same shape that differs in one place, in the ways in which values are confused.
func (m canonMaker) change(v any) any {
	switch v := v.(type) {
	case float64:
		return []any{strconv.FormatFloat(v, 'f', -1, 64), math.Nextafter(v, 0), nil, []any{v}}[m.IntN(4)]
	case string:
		return []any{v + "x", "x" + v, strings.ToUpper(v) + " ", nil, []any{v}, v + "\u0301"}[m.IntN(6)]
	case []any:
		if len(v) > 0 && m.IntN(3) > 0 {
			list, i := slices.Clone(v), m.IntN(len(v))
			list[i] = m.change(list[i])
			return list
		}
		return append(slices.Clone(v), nil)
	case []canonField:
		if i := len(v); i > 0 && m.IntN(4) > 0 {
			fields := slices.Clone(v)
			i = m.IntN(i)
			switch m.IntN(4) {
			case 0:
				return slices.Delete(fields, i, i+1)
			case 1:
				fields[i].key += "x"
			default:
				fields[i].value = m.change(fields[i].value)
			}
			return fields
		}
		return append(slices.Clone(v), canonField{"added", nil})
	}
	return []any{"null", false, 0.0, "", []any{}, []canonField(nil)}[m.IntN(6)]
}

// TestPOL04AnySpelling, POL-05: one value has one digest however it is spelled and ordered, and a value that differs anywhere has
// another. What the values are the standard library says.
func TestPOL04AnySpelling(t *testing.T) {
	t.Parallel()
	m := canonMaker{rand.New(rand.NewPCG(85, 87))}
	digest := func(args string) string { return canonDigest(t, "tool", args) }
	decoded := func(args string) (v any) {
		if err := json.Unmarshal([]byte(args), &v); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return v
	}
	seen, differ := map[string]any{}, 0
	for range 4000 {
		fields := m.object(3)
		args := m.spelled(fields)
		want, value := digest(args), decoded(args)
		for range 4 {
			if again := m.spelled(fields); digest(again) != want {
				t.Fatalf("two digests of one value:\n%q\n%q", args, again)
			}
		}
		if other, ok := seen[want]; ok && !reflect.DeepEqual(other, value) {
			t.Fatalf("one digest of %v and %v", other, value)
		}
		seen[want] = value
		changed := m.spelled(m.change(fields))
		switch same := reflect.DeepEqual(decoded(changed), value); {
		case !same && digest(changed) == want:
			t.Fatalf("one digest of two values:\n%q\n%q", args, changed)
		case same && digest(changed) != want:
			t.Fatalf("two digests of one value:\n%q\n%q", args, changed)
		case !same:
			differ++
		}
	}
	if differ < 3500 || len(seen) < 2000 {
		t.Errorf("%d changes made a difference, %d values, too few to tell", differ, len(seen))
	}
}

// TestPOL06AnyDuplicate: a key that stands twice at any depth, in any spelling, has no digest; nor has a number beyond a double or
// half of a surrogate pair.
func TestPOL06AnyDuplicate(t *testing.T) {
	t.Parallel()
	m := canonMaker{rand.New(rand.NewPCG(6, 6))}
	for range 2000 {
		fields := m.object(2)
		twice := append(fields, canonField{"k", m.value(1)}, canonField{"k", m.value(1)})
		var v any = twice
		for range m.IntN(4) {
			v = []canonField{{"in", []any{m.value(0), v}}}
		}
		args := m.spelled(v)
		if d, err := payloadDigest("tool", json.RawMessage(args)); err == nil || d != "" || !strings.Contains(err.Error(), "duplicate key") {
			t.Fatalf("%q: %q %v", args, d, err)
		}
	}
	for _, bad := range []string{`1e400`, `-1e309`, strings.Repeat("9", 400), `"\ud800"`, `"\udfff x"`, `"\ud83d\u0041"`, "\"\xed\xa0\x80\""} {
		for _, args := range []string{`{"a":` + bad + `}`, `{"a":[{"b":` + bad + `}]}`} {
			if d, err := payloadDigest("tool", json.RawMessage(args)); err == nil || d != "" {
				t.Errorf("%.60q: %q %v, want an error", args, d, err)
			}
		}
	}
}

// TestPOL05Integers: whole numbers up to 2^53 all stay apart. Beyond, RFC 8785 takes the nearest double, and two texts that are
// one double are one value.
func TestPOL05Integers(t *testing.T) {
	t.Parallel()
	digest := func(n string) string { return canonDigest(t, "tool", `{"n":`+n+`}`) }
	for _, n := range []int64{0, 1, 9, 999_999_999_999_999, 1_000_000_000_000_000, 1<<53 - 1} {
		if digest(strconv.FormatInt(n, 10)) == digest(strconv.FormatInt(n+1, 10)) {
			t.Errorf("%d and its neighbour share a digest", n)
		}
		if n > 0 && digest(strconv.FormatInt(n, 10)) == digest(strconv.FormatInt(-n, 10)) {
			t.Errorf("%d and its negative share a digest", n)
		}
	}
	if digest("9007199254740993") != digest("9007199254740992") || digest("9007199254740993") == digest(`"9007199254740993"`) {
		t.Error("2^53+1 is not the double that RFC 8785 makes of it")
	}
	if digest("-0") != digest("0") || digest("-0.0") != digest("0") {
		t.Error("minus zero is not zero")
	}
}
