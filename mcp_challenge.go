// This file reads the challenges of a 401 or 403 (RFC 9110, section 11.6.1; RFC 6750, section 3). What stands there is a peer's word: nothing
// is fetched or shown here.
package main

import "strings"

const (
	challengeMax  = 16 << 10 // bytes of all WWW-Authenticate headers of one answer that are looked at
	challengeText = 4 << 10  // bytes of one parameter that is kept
)

// bearerChallenge holds the parameters of the Bearer challenge, untrusted.
type bearerChallenge struct {
	Found    bool
	Metadata string // resource_metadata (RFC 9728, section 5.1)
	Scope    string
	Error    string
}

// parseChallenge finds the Bearer challenge among the WWW-Authenticate headers of an answer: several may stand in one header, names are
// case-insensitive, and commas may stand in quotes. What cannot be read ends the header it stands in. The first value of a name counts.
func parseChallenge(headers []string) (c bearerChallenge) {
	left := challengeMax
	for _, h := range headers {
		if len(h) > left {
			h = h[:left]
		}
		left -= len(h)
		c.read(&challengeScan{s: h})
	}
	return c
}

// read takes the challenges of one header. A word with no = behind it is a scheme, or the token68 of one.
func (c *bearerChallenge) read(p *challengeScan) {
	bearer := false
	for {
		p.skip(" \t,")
		word := p.word()
		if word == "" {
			return
		}
		space := p.skip(" \t")
		if !p.take('=') {
			if bearer = strings.EqualFold(word, "bearer"); bearer {
				c.Found = true
			}
			continue
		}
		if p.peek() == '=' || p.peek() == ',' && !space { // the padding of a token68
			p.skip("=")
			continue
		}
		p.skip(" \t")
		value, ok := p.value()
		if !ok {
			return
		}
		if bearer {
			c.put(word, value)
		}
	}
}

func (c *bearerChallenge) put(name, value string) {
	if len(value) > challengeText {
		return
	}
	for known, field := range map[string]*string{"resource_metadata": &c.Metadata, "scope": &c.Scope, "error": &c.Error} {
		if strings.EqualFold(name, known) && *field == "" {
			*field = value
		}
	}
}

type challengeScan struct {
	s string
	i int
}

func (p *challengeScan) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *challengeScan) take(c byte) bool {
	ok := p.peek() == c
	if ok {
		p.i++
	}
	return ok
}

// skip passes over any of the bytes in set and reports whether there was one.
func (p *challengeScan) skip(set string) bool {
	from := p.i
	for p.i < len(p.s) && strings.IndexByte(set, p.s[p.i]) >= 0 {
		p.i++
	}
	return p.i > from
}

// word reads a token, or the characters of a token68.
func (p *challengeScan) word() string {
	from := p.i
	for p.i < len(p.s) && (p.s[p.i] == '/' || isToken(p.s[p.i:p.i+1])) {
		p.i++
	}
	return p.s[from:p.i]
}

// value reads a token or a quoted string; an unterminated one is none.
func (p *challengeScan) value() (string, bool) {
	if !p.take('"') {
		// Addresses are seen without their quotes.
		from := p.i
		for p.i < len(p.s) && strings.IndexByte(" \t,", p.s[p.i]) < 0 {
			p.i++
		}
		return p.s[from:p.i], true
	}
	var b strings.Builder
	for p.i < len(p.s) {
		switch ch := p.s[p.i]; {
		case ch == '"':
			p.i++
			return b.String(), true
		case ch == '\\' && p.i+1 < len(p.s):
			p.i++
			b.WriteByte(p.s[p.i])
		default:
			b.WriteByte(ch)
		}
		p.i++
	}
	return "", false
}
