// This file reads a JSON text once into a tree that a schema can be held against many times. Numbers stay exact
// decimals. It knows no schema keyword.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

const (
	schemaMaxValues   = 1 << 20 // values of one text that a schema looks into
	schemaMaxExponent = 9       // digits of a number's exponent
	schemaMaxDivide   = 10000   // digits of a number held against multipleOf
	schemaIndexFrom   = 16      // members from which an object is looked up through a map
)

// schemaKind is the type of a value as a bit, so that a set of types is one number.
type schemaKind uint8

const (
	schemaNull schemaKind = 1 << iota
	schemaBool
	schemaNumber
	schemaString
	schemaArray
	schemaObject
	schemaInteger // only in sets: a number with zero fraction
)

// schemaValue is one value. raw aliases the text it was read from.
type schemaValue struct {
	kind  schemaKind
	name  string // its key, in an object
	raw   json.RawMessage
	items []schemaValue // of an array or an object, in order
	index map[string]*schemaValue
}

// parseSchemaValue reads one whole text strictly.
func parseSchemaValue(raw json.RawMessage) (*schemaValue, error) {
	if err := checkJSON(raw); err != nil {
		return nil, err
	}
	left := schemaMaxValues
	v, _, err := readSchemaValue(&jsonScan{b: raw}, &left)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// readSchemaValue reads the value at p, which checkJSON has passed.
func readSchemaValue(p *jsonScan, left *int) (schemaValue, bool, error) {
	p.space()
	v := schemaValue{}
	if p.take(']') || p.take('}') {
		return v, false, nil
	}
	if *left--; *left < 0 {
		return v, false, errorf("more than %d values", schemaMaxValues)
	}
	start := p.i
	switch p.b[p.i] {
	case '{', '[':
		if err := v.readItems(p, left); err != nil {
			return v, false, err
		}
	default:
		raw, err := p.value()
		if err != nil {
			return v, false, err
		}
		switch raw[0] {
		case '"':
			v.kind = schemaString
		case 'n':
			v.kind = schemaNull
		case 't', 'f':
			v.kind = schemaBool
		default:
			v.kind = schemaNumber
			if i := strings.IndexAny(string(raw), "eE"); i >= 0 && len(strings.TrimLeft(string(raw[i+1:]), "+-0")) > schemaMaxExponent {
				return v, false, errorf("number %s has too large an exponent", clip(string(raw), 40))
			}
		}
	}
	v.raw = p.b[start:p.i:p.i]
	return v, true, nil
}

func (v *schemaValue) readItems(p *jsonScan, left *int) error {
	v.kind = schemaArray
	object := p.b[p.i] == '{'
	if object {
		v.kind = schemaObject
	}
	p.i++
	for {
		var key string
		if p.space(); object && p.b[p.i] == '"' {
			var err error
			if key, err = p.key(); err != nil {
				return err
			}
		}
		item, more, err := readSchemaValue(p, left)
		if err != nil {
			return err
		}
		if !more {
			return nil
		}
		item.name = key
		v.items = append(v.items, item)
		p.space()
		p.take(',')
	}
}

// member finds a member of an object, nil if there is none.
//
//go:noinline for size: it is called in many places
func (v *schemaValue) member(name string) *schemaValue {
	if v.kind != schemaObject {
		return nil
	}
	if len(v.items) < schemaIndexFrom {
		for i := range v.items {
			if v.items[i].name == name {
				return &v.items[i]
			}
		}
		return nil
	}
	if v.index == nil {
		v.index = make(map[string]*schemaValue, len(v.items))
		for i := range v.items {
			v.index[v.items[i].name] = &v.items[i]
		}
	}
	return v.index[name]
}

// text is the unquoted string, "" for anything else.
func (v *schemaValue) text() string {
	s, _ := jsonString(v.raw)
	return s
}

func (v *schemaValue) isTrue() bool { return v.kind == schemaBool && v.raw[0] == 't' }

// fits reports whether the value is of one of the types in the set.
func (v *schemaValue) fits(set schemaKind) bool {
	if v.kind&set != 0 {
		return true
	}
	return v.kind == schemaNumber && set&schemaInteger != 0 && parseDecimal(v.raw).integer()
}

// normal appends a spelling that two values share exactly if JSON Schema calls them equal: numbers by value, objects
// without order.
func (v *schemaValue) normal(dst []byte) []byte {
	switch v.kind {
	case schemaString:
		return appendJSONString(dst, v.text())
	case schemaNumber:
		d := parseDecimal(v.raw)
		if d.neg {
			dst = append(dst, '-')
		}
		return fmt.Appendf(dst, "%se%d", d.digits, d.exp)
	case schemaArray:
		dst = append(dst, '[')
		for i := range v.items {
			dst = append(v.items[i].normal(dst), ',')
		}
		return append(dst, ']')
	case schemaObject:
		order := make([]*schemaValue, len(v.items))
		for i := range v.items {
			order[i] = &v.items[i]
		}
		slices.SortFunc(order, func(a, b *schemaValue) int { return strings.Compare(a.name, b.name) })
		dst = append(dst, '{')
		for _, m := range order {
			dst = append(m.normal(append(appendJSONString(dst, m.name), ':')), ',')
		}
		return append(dst, '}')
	}
	return append(dst, v.raw...)
}

// brief shows the value in an error: scalars in full up to a bound, the others by type.
func (v *schemaValue) brief() string {
	switch v.kind {
	case schemaObject:
		return "an object"
	case schemaArray:
		return "an array"
	case schemaString:
		return quoteClip(v.text())
	}
	return clip(string(v.raw), 40)
}

// decimal is a number exactly: digits × 10^exp, digits without zeros at either end, "" for zero.
type decimal struct {
	neg    bool
	digits string
	exp    int64
}

// parseDecimal reads a valid JSON number with an exponent of at most schemaMaxExponent digits.
func parseDecimal(raw []byte) decimal {
	var d decimal
	s := string(raw)
	s, d.neg = strings.CutPrefix(s, "-")
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		for _, c := range strings.TrimLeft(s[i+1:], "+-") {
			d.exp = d.exp*10 + int64(c-'0')
		}
		if s[i+1] == '-' {
			d.exp = -d.exp
		}
		s = s[:i]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	d.exp -= int64(len(fraction))
	if fraction != "" {
		whole += fraction
	}
	digits := strings.TrimRight(whole, "0")
	d.exp += int64(len(whole) - len(digits))
	if d.digits = strings.TrimLeft(digits, "0"); d.digits == "" {
		return decimal{}
	}
	return d
}

func (d decimal) integer() bool { return d.digits == "" || d.exp >= 0 }

func (d decimal) compare(o decimal) int {
	switch {
	case d.sign() != o.sign():
		return cmp.Compare(d.sign(), o.sign())
	case d.digits == "":
		return 0
	}
	// of one sign: where the first digit stands decides, then the digits
	n := int64(len(d.digits)) + d.exp - int64(len(o.digits)) - o.exp
	if n == 0 {
		n = int64(strings.Compare(d.digits, o.digits))
	}
	if d.neg {
		n = -n
	}
	return cmp.Compare(n, 0)
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.neg:
		return -1
	}
	return 1
}

// multipleOf reports whether d is a whole multiple of o, which is positive. Both have at most schemaMaxDivide digits.
func (d decimal) multipleOf(o decimal) bool {
	if d.digits == "" {
		return true
	}
	if d.exp < o.exp {
		return false // d has no zero at its end, so nothing that is a multiple of 10 divides it
	}
	value, unit := new(big.Int), new(big.Int)
	value.SetString(d.digits, 10)
	unit.SetString(o.digits, 10)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(d.exp-o.exp), unit) // bounded by unit, whatever the exponent
	return value.Mul(value, power).Mod(value, unit).Sign() == 0
}

// String spells the number plainly where that is short, else with an exponent.
func (d decimal) String() string {
	sign := ""
	if d.neg {
		sign = "-"
	}
	point := int64(len(d.digits)) + d.exp // digits before the point
	switch {
	case d.digits == "":
		return "0"
	case d.exp >= 0 && point <= 21:
		return sign + d.digits + strings.Repeat("0", int(d.exp))
	case d.exp < 0 && point > 0 && len(d.digits) <= 40:
		return sign + d.digits[:point] + "." + d.digits[point:]
	case d.exp < 0 && point <= 0 && point > -6 && len(d.digits) <= 40:
		return sign + "0." + strings.Repeat("0", int(-point)) + d.digits
	}
	return fmt.Sprintf("%s%se%d", sign, clip(d.digits, 40), d.exp)
}
