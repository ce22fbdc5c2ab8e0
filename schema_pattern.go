// This file runs the patterns of a schema, which are ECMA-262 regular expressions, with RE2 (Go's regexp): the few
// escapes that mean something else are rewritten, what RE2 cannot do is refused. It knows no other keyword.
package main

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	schemaPatternText = 4096  // bytes of one pattern
	schemaPatternCost = 20000 // RE2 instructions of one pattern, about
)

// ecmaSpace is what ECMA-262 means by \s, as the inside of a class.
const ecmaSpace = `\t\n\x0b\f\r\x{feff}\p{Z}`

// schemaPattern is a compiled pattern. cost is about its number of instructions: a match takes up to cost × bytes steps.
type schemaPattern struct {
	text string
	re   *regexp.Regexp
	cost int
}

// compileSchemaPattern compiles a pattern; it is not anchored. One that RE2 cannot run is an error, never a match.
func compileSchemaPattern(text string) (*schemaPattern, error) {
	if len(text) > schemaPatternText {
		return nil, errorf("unsupported pattern: more than %d bytes", schemaPatternText)
	}
	rewritten := re2Pattern(text)
	tree, err := syntax.Parse(rewritten, syntax.Perl)
	if err != nil {
		return nil, errorf("unsupported pattern %s", quoteClip(text))
	}
	cost := patternCost(tree)
	if cost > schemaPatternCost {
		return nil, errorf("unsupported pattern %s: too large", quoteClip(text))
	}
	re, err := regexp.Compile(rewritten)
	if err != nil {
		return nil, errorf("unsupported pattern %s", quoteClip(text))
	}
	return &schemaPattern{text: text, re: re, cost: cost}, nil
}

// patternCost counts the nodes of an expression, repeated ones as often as they are repeated.
func patternCost(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += patternCost(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, 1<<30)
}

// re2Pattern rewrites the escapes of ECMA-262 that RE2 lacks or reads otherwise.
func re2Pattern(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	class := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '[':
			class = true
		case c == ']':
			class = false
		}
		if c != '\\' || i+1 == len(s) {
			b.WriteByte(c)
			continue
		}
		i++
		switch c = s[i]; {
		case c == 'u' && i+5 <= len(s) && isHex4([]byte(s[i+1:i+5])):
			r := hexRune(s[i+1 : i+5])
			i += 4
			if i+7 <= len(s) && s[i+1:i+3] == `\u` && isHex4([]byte(s[i+3:i+7])) && utf16.DecodeRune(r, hexRune(s[i+3:i+7])) != utf8.RuneError {
				r = utf16.DecodeRune(r, hexRune(s[i+3:i+7]))
				i += 6
			}
			fmt.Fprintf(&b, `\x{%x}`, r)
		case c == 'u' && strings.HasPrefix(s[i:], "u{"):
			b.WriteString(`\x`)
		case c == 's' && class:
			b.WriteString(ecmaSpace)
		case c == 's':
			b.WriteString(`[` + ecmaSpace + `]`)
		case c == 'S' && !class:
			b.WriteString(`[^` + ecmaSpace + `]`)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

// hexRune reads four hexadecimal digits.
func hexRune(s string) rune {
	n, err := strconv.ParseUint(s, 16, 16)
	if err != nil {
		return utf8.RuneError // isHex4 has passed it
	}
	return rune(n)
}
