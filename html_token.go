// This file cuts HTML into texts and tags, as the tokenizer of the HTML standard does (13.2.5) but for what needs a tree. It takes any text, never fails, and
// reads each byte a bounded number of times. It knows no element's meaning but whether its content is raw text.
package main

import (
	"html"
	"strings"
)

// htmlKind tells tokens apart. Comments, declarations and processing instructions give none.
type htmlKind uint8

const (
	htmlText  htmlKind = iota // text: as it stands, references not resolved
	htmlRaw                   // text: the content of a raw element, named name
	htmlStart                 // name, attrs
	htmlEnd                   // name
)

// htmlToken is one piece of a document.
type htmlToken struct {
	kind  htmlKind
	name  string // in lower case
	text  string
	attrs string // what stands between the name and the closing >, for parseHTMLAttrs
}

// htmlTokenizer reads s from a place on.
type htmlTokenizer struct {
	s    string
	at   int
	raw  string // the raw element whose content comes next
	last bool   // plaintext: nothing but text follows
}

// htmlRawElement reports an element whose content is text up to its end tag (13.2.5.1). Scripting is off, so noscript is none.
//
//go:noinline for size: it is called in many places
func htmlRawElement(name string) bool {
	switch name {
	case "script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes":
		return true
	}
	return false
}

// next gives the next token; ok is false at the end.
func (z *htmlTokenizer) next() (t htmlToken, ok bool) {
	if z.raw != "" {
		name := z.raw
		z.raw = ""
		if text := z.rawText(name); text != "" {
			return htmlToken{kind: htmlRaw, name: name, text: text}, true
		}
	}
	for z.at < len(z.s) {
		if z.last || !z.tagAhead(z.at) {
			return htmlToken{kind: htmlText, text: z.plain()}, true
		}
		if t, ok := z.markup(); ok {
			return t, true
		}
	}
	return t, false
}

// tagAhead reports a < that begins markup and not text.
func (z *htmlTokenizer) tagAhead(i int) bool {
	if z.s[i] != '<' || i+1 == len(z.s) {
		return false
	}
	c := z.s[i+1]
	return c == '/' && i+2 < len(z.s) || c == '!' || c == '?' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// plain takes text up to the next markup.
func (z *htmlTokenizer) plain() string {
	start := z.at
	if z.last {
		z.at = len(z.s)
		return z.s[start:]
	}
	for z.at < len(z.s) {
		i := strings.IndexByte(z.s[z.at:], '<')
		if i < 0 {
			z.at = len(z.s)
			break
		}
		z.at += i
		if z.tagAhead(z.at) {
			break
		}
		z.at++
	}
	return z.s[start:z.at]
}

// rawText takes text up to </name.
func (z *htmlTokenizer) rawText(name string) string {
	start := z.at
	for i := start; ; {
		j := strings.Index(z.s[i:], "</")
		if j < 0 {
			z.at = len(z.s)
			return z.s[start:]
		}
		i += j
		rest := z.s[i+2:]
		if len(rest) > len(name) && strings.EqualFold(rest[:len(name)], name) && strings.IndexByte("\t\n\f\r />", rest[len(name)]) >= 0 {
			z.at = i
			return z.s[start:i]
		}
		i += 2
	}
}

// markup takes what begins with the < here; ok is false for what gives no token.
func (z *htmlTokenizer) markup() (t htmlToken, ok bool) {
	rest := z.s[z.at:]
	switch c := rest[1]; {
	case strings.HasPrefix(rest, "<!--"):
		z.comment()
		return t, false
	case c == '!' || c == '?' || c == '/' && (rest[2]|0x20 < 'a' || rest[2]|0x20 > 'z'):
		if i := strings.IndexByte(rest, '>'); i >= 0 {
			z.at += i + 1
		} else {
			z.at = len(z.s)
		}
		return t, false
	case c == '/':
		z.at += 2
		t.kind = htmlEnd
	default:
		z.at++
		t.kind = htmlStart
	}
	start := z.at
	for z.at < len(z.s) && strings.IndexByte("\t\n\f\r />", z.s[z.at]) < 0 {
		z.at++
	}
	t.name = strings.ToLower(z.s[start:z.at])
	start = z.at
	if z.at = htmlTagEnd(z.s, z.at); z.at == len(z.s) {
		return t, false // a tag that is never closed is dropped with the end (13.2.5.8)
	}
	t.attrs = z.s[start:z.at]
	z.at++
	if t.kind == htmlStart {
		if z.last = t.name == "plaintext"; htmlRawElement(t.name) {
			z.raw = t.name
		}
	}
	return t, true
}

// comment passes over a comment (13.2.5.43 and on): it ends with --> or --!>, and <!--> is a whole one.
func (z *htmlTokenizer) comment() {
	z.at += len("<!--")
	rest := z.s[z.at:]
	for _, short := range [...]string{">", "->"} {
		if strings.HasPrefix(rest, short) {
			z.at += len(short)
			return
		}
	}
	for i := 0; ; {
		j := strings.Index(rest[i:], "--")
		if j < 0 {
			z.at = len(z.s)
			return
		}
		i += j
		for _, end := range [...]string{"-->", "--!>"} {
			if strings.HasPrefix(rest[i:], end) {
				z.at += i + len(end)
				return
			}
		}
		i++
	}
}

// htmlTagEnd gives the place of the > that closes a tag, past quoted values, or the end.
func htmlTagEnd(s string, at int) int {
	for value := false; at < len(s); at++ {
		switch c := s[at]; c {
		case '>':
			return at
		case '=':
			value = true
		case '\t', '\n', '\f', '\r', ' ':
		case '"', '\'':
			if value {
				i := strings.IndexByte(s[at+1:], c)
				if i < 0 {
					return len(s)
				}
				at += 1 + i
			}
			value = false
		default:
			value = false
		}
	}
	return at
}

// parseHTMLAttrs reads the attributes of a tag, names in lower case, references in values resolved. Of several with one name the first counts.
func parseHTMLAttrs(s string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(s); {
		if strings.IndexByte("\t\n\f\r /", s[i]) >= 0 {
			i++
			continue
		}
		start := i
		for i++; i < len(s) && strings.IndexByte("\t\n\f\r /=", s[i]) < 0; {
			i++
		}
		name, value := strings.ToLower(s[start:i]), ""
		i = htmlSkipBlank(s, i)
		if i < len(s) && s[i] == '=' {
			value, i = htmlValue(s, htmlSkipBlank(s, i+1))
		}
		if _, twice := out[name]; !twice {
			out[name] = html.UnescapeString(value)
		}
	}
	return out
}

func htmlSkipBlank(s string, i int) int {
	for i < len(s) && strings.IndexByte("\t\n\f\r ", s[i]) >= 0 {
		i++
	}
	return i
}

// htmlValue reads one value, quoted or not, and gives the place behind it.
func htmlValue(s string, i int) (string, int) {
	if i == len(s) {
		return "", i
	}
	if q := s[i]; q == '"' || q == '\'' {
		j := strings.IndexByte(s[i+1:], q)
		if j < 0 {
			return s[i+1:], len(s)
		}
		return s[i+1 : i+1+j], i + j + 2
	}
	start := i
	for i < len(s) && strings.IndexByte("\t\n\f\r ", s[i]) < 0 {
		i++
	}
	return s[start:i], i
}
