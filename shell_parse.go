// This file splits a command line into its commands and their words, without quotes, as a POSIX shell or bash would. What it cannot follow is
// an error, never a guess. It judges nothing.
package main

import (
	"strings"
)

const (
	shellDepthMax   = 32        // nesting of substitutions and subshells that is followed
	shellCommandMax = 256 << 10 // bytes of a command line that is judged; a longer one is unparsable
)

// shellWord is one word without its quotes.
type shellWord struct {
	text   string
	glob   bool // holds an unquoted * ? or [
	quoted bool
	open   bool // a shell fills something in that is not known: a variable, what a command prints, the parts of a brace, an escape
}

// shellClause is one command of a line: its words, the operator that ended it, and how deep in substitutions it stands.
type shellClause struct {
	words []shellWord
	end   string
	depth int
}

// shellTarget is the target of a redirection of command number at.
type shellTarget struct {
	word shellWord
	at   int
}

// shellParser splits a command line. Its methods follow the grammar from the top; each leaves i behind what it read.
type shellParser struct {
	s        string
	i        int
	commands []shellClause
	targets  []shellTarget
	special  string   // the first thing that makes the line more than simple
	heredocs []string // delimiters whose bodies begin on the next line
	depth    int
}

func (p *shellParser) check() error {
	switch {
	case len(p.s) > shellCommandMax:
		return errorf("it has more than %d bytes", shellCommandMax)
	case strings.IndexByte(p.s, 0) >= 0:
		return newError("it holds a zero byte")
	}
	for i := 1; i < len(p.s); i++ {
		if p.s[i-1] >= 0x80 && (p.s[i] == '\\' || p.s[i] == '|') { // bash takes both for one character where the locale is GBK, Big5 or Shift JIS
			p.mark("a character in which some shells see other ones")
			break
		}
	}
	return nil
}

//go:noinline for size: it is called in many places
func (p *shellParser) mark(what string) {
	if p.special == "" {
		p.special = what
	}
}

// peek is the byte n places on, 0 at the end.
func (p *shellParser) peek(n int) byte {
	if p.i+n < len(p.s) {
		return p.s[p.i+n]
	}
	return 0
}

// shellState is how far one list of commands has come.
type shellState struct {
	cmd     []shellWord
	grouped bool // the command at hand began with a subshell or a redirection
	need    bool // an operator waits for its right side
}

func (st *shellState) empty() bool { return len(st.cmd) == 0 && !st.grouped }

// flush ends the command at hand; end is the operator that ended it, "" for none.
//
//go:noinline for size: it is called in many places
func (p *shellParser) flush(st *shellState, end string) {
	if len(st.cmd) > 0 {
		p.commands = append(p.commands, shellClause{st.cmd, end, p.depth})
	}
	st.cmd, st.grouped = nil, false
}

// list reads commands and operators up to the end byte: ')' inside a subshell or substitution, 0 for the whole line.
func (p *shellParser) list(end byte, depth int) error {
	if depth > shellDepthMax {
		return newError("it is nested too deep")
	}
	defer func(outer int) { p.depth = outer }(p.depth)
	p.depth = depth
	var st shellState
	for p.i < len(p.s) && (end == 0 || p.s[p.i] != end) {
		if err := p.step(&st); err != nil {
			return err
		}
	}
	switch {
	case end != 0 && p.i >= len(p.s):
		return newError("a parenthesis is not closed")
	case st.need && st.empty():
		return newError("an operator stands at the end")
	case p.i >= len(p.s) && len(p.heredocs) > 0:
		return newError("a here-document does not end")
	case end != 0:
		p.i++
	}
	p.flush(&st, "")
	return nil
}

// step reads one blank, comment, operator, redirection, subshell or word.
func (p *shellParser) step(st *shellState) error {
	switch c := p.s[p.i]; {
	case c == ' ' || c == '\t':
		p.i++
	case c == '\\' && p.peek(1) == '\n':
		p.i += 2
	case c == '#':
		for p.i < len(p.s) && p.s[p.i] != '\n' {
			p.i++
		}
	case c == '\n':
		p.i++
		st.need = st.need && st.empty()
		p.flush(st, "\n")
		return p.skipHeredocs()
	case c == '<' || c == '>' || (c == '&' && p.peek(1) == '>'):
		st.grouped = st.grouped || len(st.cmd) == 0 // a redirection alone is a command
		return p.redirect()
	case c == ';' || c == '&' || c == '|':
		if st.empty() {
			return errorf("nothing stands before %q", c)
		}
		start := p.i
		st.need = p.operator()
		p.flush(st, p.s[start:p.i])
	case c == '(':
		if !st.empty() {
			return newError("a parenthesis stands inside a command")
		}
		p.mark("a subshell")
		st.grouped = true
		p.i++
		return p.list(')', p.depth+1)
	case c == ')':
		return newError("a parenthesis is closed that was not open")
	default:
		w, err := p.word()
		if err != nil {
			return err
		}
		if next := p.peek(0); (next == '<' || next == '>') && !w.quoted && shellDigits(w.text) {
			return nil // the number of a descriptor; its redirection comes next
		}
		st.cmd = append(st.cmd, w)
	}
	return nil
}

// operator reads ; & && | || |& and says whether a command must follow.
func (p *shellParser) operator() bool {
	c, next := p.s[p.i], p.peek(1)
	p.i++
	switch {
	case c == '&' && next == '&', c == '|' && (next == '|' || next == '&'):
		p.i++
		return true
	}
	return c == '|'
}

// redirect reads one redirection with its target. Only those that touch no file are simple: to /dev/null, or of one
// descriptor to another. &> never is: a plain sh reads it as & and a new command.
func (p *shellParser) redirect() error {
	start := p.i
	if p.s[p.i] == '&' {
		p.i++
	}
	for p.peek(0) == '<' || p.peek(0) == '>' {
		p.i++
	}
	op := p.s[start:p.i]
	if (op == "<" || op == ">") && p.peek(0) == '(' {
		p.mark("a process substitution")
		p.i++
		return p.list(')', p.depth+1)
	}
	switch c := p.peek(0); {
	case c == '&' || c == '|':
		op += string(c)
		p.i++
	case op == "<<" && c == '-':
		p.i++
	}
	for p.peek(0) == ' ' || p.peek(0) == '\t' {
		p.i++
	}
	if strings.IndexByte("\n;&|()<>", p.peek(0)) >= 0 || p.i == len(p.s) {
		return newError("a redirection has no target")
	}
	target, err := p.word()
	if err != nil {
		return err
	}
	if op != "<<" && op != "<<<" {
		p.targets = append(p.targets, shellTarget{target, len(p.commands)})
	}
	switch {
	case op == "<<":
		p.mark("a here-document")
		p.heredocs = append(p.heredocs, target.text)
	case (op == ">" || op == ">>" || op == "<") && target.text == "/dev/null" && !target.glob:
	case (op == ">&" || op == "<&") && (shellDigits(target.text) || target.text == "-"):
	default:
		p.mark("a redirection")
	}
	return nil
}

// skipHeredocs passes over the bodies that begin here. What they hold reaches a program as its input.
func (p *shellParser) skipHeredocs() error {
	for _, end := range p.heredocs {
		for {
			if p.i >= len(p.s) {
				return newError("a here-document does not end")
			}
			line, _, _ := strings.Cut(p.s[p.i:], "\n")
			p.i = min(p.i+len(line)+1, len(p.s))
			if strings.TrimLeft(line, "\t") == end {
				break
			}
		}
	}
	p.heredocs = nil
	return nil
}

// word reads one word up to a blank or operator and takes its quotes off.
func (p *shellParser) word() (shellWord, error) {
	var w shellWord
	var b textBuilder
	for p.i < len(p.s) {
		switch c := p.s[p.i]; c {
		case ' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')':
			w.text = b.String()
			return w, nil
		case '\'':
			w.quoted = true
			n := strings.IndexByte(p.s[p.i+1:], '\'')
			if n < 0 {
				return w, newError("a quote is not closed")
			}
			b.WriteString(p.s[p.i+1 : p.i+1+n])
			p.i += n + 2
		case '"':
			w.quoted = true
			p.i++
			open, err := p.doubleQuoted(&b)
			if w.open = w.open || open; err != nil {
				return w, err
			}
		case '\\':
			if p.i+1 == len(p.s) {
				return w, newError("a backslash stands at the end")
			}
			w.quoted = true
			if p.s[p.i+1] != '\n' { // a backslash before a newline joins the lines
				b.WriteByte(p.s[p.i+1])
			}
			p.i += 2
		case '$', '`':
			open, err := p.expansion(&b, false)
			if w.open = w.open || open; err != nil {
				return w, err
			}
		default:
			switch c {
			case '*', '?', '[':
				w.glob = true
			case '{', '}':
				p.mark("a brace")
				w.open = true
			}
			b.WriteByte(c)
			p.i++
		}
	}
	w.text = b.String()
	return w, nil
}

// doubleQuoted reads the rest of a "…" whose opening quote is behind.
func (p *shellParser) doubleQuoted(b *textBuilder) (open bool, err error) {
	for p.i < len(p.s) {
		switch c := p.s[p.i]; c {
		case '"':
			p.i++
			return open, nil
		case '\\':
			next := p.peek(1)
			switch {
			case next == '\n':
			case next != 0 && strings.IndexByte("$`\"\\", next) >= 0:
				b.WriteByte(next)
			default:
				b.WriteByte('\\')
				b.WriteByte(next)
			}
			p.i += 2
		case '$', '`':
			more, err := p.expansion(b, true)
			if open = open || more; err != nil {
				return open, err
			}
		default:
			b.WriteByte(c)
			p.i++
		}
	}
	return open, newError("a quote is not closed")
}

// expansion reads what begins with $ or a backquote. Its result is unknown, so the line is not simple; commands inside are
// collected. A $ that expands to nothing stands for itself and is not open.
func (p *shellParser) expansion(b *textBuilder, quoted bool) (open bool, err error) {
	start := p.i
	next := p.peek(1)
	switch {
	case p.s[p.i] == '`':
		p.mark("a command substitution")
		return true, p.backquoted()
	case next == '(':
		p.mark("a command substitution")
		p.i += 2
		if p.peek(0) == '(' {
			return true, p.arithmetic()
		}
		return true, p.list(')', p.depth+1)
	case next == '{':
		p.mark("a variable")
		return true, p.braced(b)
	case !quoted && next == '\'':
		p.mark("a quote with escapes")
		return true, p.ansiQuoted(b)
	case !quoted && next == '"':
		p.mark("a translated quote")
		p.i += 2
		_, err := p.doubleQuoted(b)
		return true, err
	case next == 0 || strings.IndexByte(" \t\n\"'/.,:;|&)%^]", next) >= 0:
		b.WriteByte('$')
		p.i++
		return false, nil
	}
	p.mark("a variable")
	p.i += 2
	b.WriteString(p.s[start:p.i])
	return true, nil
}

// backquoted reads `…` and the commands in it.
func (p *shellParser) backquoted() error {
	var inner textBuilder
	for p.i++; ; p.i++ {
		switch c := p.peek(0); {
		case p.i >= len(p.s):
			return newError("a backquote is not closed")
		case c == '`':
			p.i++
			sub := shellParser{s: inner.String()}
			err := sub.list(0, p.depth+1)
			for _, t := range sub.targets {
				p.targets = append(p.targets, shellTarget{t.word, len(p.commands) + t.at})
			}
			p.commands = append(p.commands, sub.commands...)
			return err
		case c == '\\' && p.i+1 < len(p.s):
			if p.i++; strings.IndexByte("`\\$", p.s[p.i]) < 0 {
				inner.WriteByte('\\')
			}
			inner.WriteByte(p.s[p.i])
		default:
			inner.WriteByte(c)
		}
	}
}

// arithmetic reads the rest of $((…)), whose second parenthesis is at hand.
func (p *shellParser) arithmetic() error {
	open := 1
	for ; p.i < len(p.s); p.i++ {
		switch p.s[p.i] {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				p.i++
				return nil
			}
		case '`', '\'', '"', '\\', '$', '\n':
			return newError("an arithmetic expression holds more than numbers and names")
		}
	}
	return newError("a parenthesis is not closed")
}

// braced reads ${…}. Quotes and substitutions in it are not followed but refused.
func (p *shellParser) braced(b *textBuilder) error {
	n := strings.IndexByte(p.s[p.i:], '}')
	if n < 0 {
		return newError("a brace is not closed")
	}
	text := p.s[p.i : p.i+n+1]
	if strings.ContainsAny(text[2:], "$`'\"\\\n{(<>") {
		return newError("a variable in braces holds more than can be followed")
	}
	b.WriteString(text)
	p.i += n + 1
	return nil
}

// ansiQuoted passes over $'…', in which a backslash escapes a quote.
func (p *shellParser) ansiQuoted(b *textBuilder) error {
	for p.i += 2; p.i < len(p.s); p.i++ {
		switch p.s[p.i] {
		case '\\':
			b.WriteByte('\\')
			p.i++
		case '\'':
			p.i++
			return nil
		}
		b.WriteByte(p.peek(0))
	}
	return newError("a quote is not closed")
}

// shellDigits reports whether s is a row of digits.
func shellDigits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}
