// This file judges a command line for the policy: can it be read, does it only read, and which commands does it hold. It
// is a classifier, not a shell: whatever it does not know is not reading, and whatever it cannot split is unparsable. It
// starts nothing, opens nothing and knows no mode.
package main

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

const (
	shellDepthMax   = 32        // nesting of substitutions and subshells that is followed
	shellCommandMax = 256 << 10 // bytes of a command line that is judged; a longer one is unparsable
)

// shellVerdict is what classifyShell finds. Reading commands may run unasked. Simple ones hold nothing but plain commands
// joined by operators: no substitution, variable, redirection to a file, here-document, subshell or assignment. Words
// are the commands with their words unquoted, also those inside substitutions, so that a deny finds them wherever they
// stand; they are nil when the line is not Parsable.
type shellVerdict struct {
	Reading  bool
	Parsable bool
	Simple   bool
	Reason   string // why it is not reading, one clause
	Words    [][]string
	Runs     []bool // for each of Words: a reading command on its own
}

// classifyShell judges a POSIX or bash command line. It is pure; symbolic links under the root are not its matter.
func classifyShell(command string, scope shellScope) shellVerdict {
	p := shellParser{s: command}
	err := p.check()
	if err == nil {
		err = p.list(0, 0)
	}
	if err != nil {
		return shellVerdict{Reason: "the command cannot be split: " + err.Error()}
	}
	v := shellVerdict{Parsable: true, Simple: p.special == "", Reason: p.special, Words: [][]string{}}
	for _, cmd := range p.commands {
		words := make([]string, len(cmd))
		for i, w := range cmd {
			words[i] = w.text
		}
		why := scope.judge(cmd)
		v.Words, v.Runs = append(v.Words, words), append(v.Runs, why == "")
		if v.Reason == "" {
			v.Reason = why
		}
	}
	if len(v.Words) == 0 && v.Reason == "" {
		v.Reason = "there is no command"
	}
	v.Reading = v.Reason == ""
	return v
}

// shellParser splits a command line. Its methods follow the grammar from the top; each leaves i behind what it read.
type shellParser struct {
	s        string
	i        int
	commands [][]shellWord
	special  string   // the first thing that makes the line more than simple
	heredocs []string // delimiters whose bodies begin on the next line
	depth    int
}

func (p *shellParser) check() error {
	switch {
	case len(p.s) > shellCommandMax:
		return fmt.Errorf("it has more than %d bytes", shellCommandMax)
	case strings.IndexByte(p.s, 0) >= 0:
		return errors.New("it holds a zero byte")
	}
	return nil
}

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

// flush ends the command at hand.
func (p *shellParser) flush(st *shellState) {
	if len(st.cmd) > 0 {
		p.commands = append(p.commands, st.cmd)
	}
	st.cmd, st.grouped = nil, false
}

// list reads commands and operators up to the end byte: ')' inside a subshell or substitution, 0 for the whole line.
func (p *shellParser) list(end byte, depth int) error {
	if depth > shellDepthMax {
		return errors.New("it is nested too deep")
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
		return errors.New("a parenthesis is not closed")
	case st.need && st.empty():
		return errors.New("an operator stands at the end")
	case p.i >= len(p.s) && len(p.heredocs) > 0:
		return errors.New("a here-document does not end")
	case end != 0:
		p.i++
	}
	p.flush(&st)
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
		p.flush(st)
		return p.skipHeredocs()
	case c == '<' || c == '>' || (c == '&' && p.peek(1) == '>'):
		st.grouped = st.grouped || len(st.cmd) == 0 // a redirection alone is a command
		return p.redirect()
	case c == ';' || c == '&' || c == '|':
		if st.empty() {
			return fmt.Errorf("nothing stands before %q", c)
		}
		st.need = p.operator()
		p.flush(st)
	case c == '(':
		if !st.empty() {
			return errors.New("a parenthesis stands inside a command")
		}
		p.mark("a subshell")
		st.grouped = true
		p.i++
		return p.list(')', p.depth+1)
	case c == ')':
		return errors.New("a parenthesis is closed that was not open")
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
		return errors.New("a redirection has no target")
	}
	target, err := p.word()
	if err != nil {
		return err
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
				return errors.New("a here-document does not end")
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
	var b strings.Builder
	for p.i < len(p.s) {
		switch c := p.s[p.i]; c {
		case ' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')':
			w.text = b.String()
			return w, nil
		case '\'':
			w.quoted = true
			n := strings.IndexByte(p.s[p.i+1:], '\'')
			if n < 0 {
				return w, errors.New("a quote is not closed")
			}
			b.WriteString(p.s[p.i+1 : p.i+1+n])
			p.i += n + 2
		case '"':
			w.quoted = true
			p.i++
			if err := p.doubleQuoted(&b); err != nil {
				return w, err
			}
		case '\\':
			if p.i+1 == len(p.s) {
				return w, errors.New("a backslash stands at the end")
			}
			w.quoted = true
			if p.s[p.i+1] != '\n' { // a backslash before a newline joins the lines
				b.WriteByte(p.s[p.i+1])
			}
			p.i += 2
		case '$', '`':
			if err := p.expansion(&b, false); err != nil {
				return w, err
			}
		default:
			switch c {
			case '*', '?', '[':
				w.glob = true
			case '{', '}':
				p.mark("a brace")
			}
			b.WriteByte(c)
			p.i++
		}
	}
	w.text = b.String()
	return w, nil
}

// doubleQuoted reads the rest of a "…" whose opening quote is behind.
func (p *shellParser) doubleQuoted(b *strings.Builder) error {
	for p.i < len(p.s) {
		switch c := p.s[p.i]; c {
		case '"':
			p.i++
			return nil
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
			if err := p.expansion(b, true); err != nil {
				return err
			}
		default:
			b.WriteByte(c)
			p.i++
		}
	}
	return errors.New("a quote is not closed")
}

// expansion reads what begins with $ or a backquote. Its result is unknown, so the line is not simple; commands inside are
// collected. A $ that expands to nothing stands for itself.
func (p *shellParser) expansion(b *strings.Builder, quoted bool) error {
	start := p.i
	next := p.peek(1)
	switch {
	case p.s[p.i] == '`':
		p.mark("a command substitution")
		return p.backquoted()
	case next == '(':
		p.mark("a command substitution")
		p.i += 2
		if p.peek(0) == '(' {
			return p.arithmetic()
		}
		return p.list(')', p.depth+1)
	case next == '{':
		p.mark("a variable")
		return p.braced(b)
	case !quoted && next == '\'':
		p.mark("a quote with escapes")
		return p.ansiQuoted(b)
	case !quoted && next == '"':
		p.mark("a translated quote")
		p.i += 2
		return p.doubleQuoted(b)
	case next == 0 || strings.IndexByte(" \t\n\"'/.,:;|&)%^]", next) >= 0:
		b.WriteByte('$')
		p.i++
		return nil
	}
	p.mark("a variable")
	p.i += 2
	b.WriteString(p.s[start:p.i])
	return nil
}

// backquoted reads `…` and the commands in it.
func (p *shellParser) backquoted() error {
	var inner strings.Builder
	for p.i++; ; p.i++ {
		switch c := p.peek(0); {
		case p.i >= len(p.s):
			return errors.New("a backquote is not closed")
		case c == '`':
			p.i++
			sub := shellParser{s: inner.String()}
			err := sub.list(0, p.depth+1)
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
			return errors.New("an arithmetic expression holds more than numbers and names")
		}
	}
	return errors.New("a parenthesis is not closed")
}

// braced reads ${…}. Quotes and substitutions in it are not followed but refused.
func (p *shellParser) braced(b *strings.Builder) error {
	n := strings.IndexByte(p.s[p.i:], '}')
	if n < 0 {
		return errors.New("a brace is not closed")
	}
	text := p.s[p.i : p.i+n+1]
	if strings.ContainsAny(text[2:], "$`'\"\\\n{(<>") {
		return errors.New("a variable in braces holds more than can be followed")
	}
	b.WriteString(text)
	p.i += n + 1
	return nil
}

// ansiQuoted passes over $'…', in which a backslash escapes a quote.
func (p *shellParser) ansiQuoted(b *strings.Builder) error {
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
	return errors.New("a quote is not closed")
}

// shellCommandMatch reports whether pattern, a program with leading arguments, stands anywhere in a command: also behind
// wrappers (sudo, env, xargs …), with a path before the program, and with options before the arguments. It is for
// denies, so it would rather match too much.
func shellCommandMatch(cmd, pattern []string) bool {
	for i := range cmd {
		if len(pattern) > 0 && path.Base(strings.ReplaceAll(cmd[i], `\`, "/")) == pattern[0] && shellArgsMatch(cmd[i+1:], pattern[1:]) {
			return true
		}
	}
	return false
}

// shellArgsMatch reports whether args begin with want when options, each perhaps with a value, are passed over.
func shellArgsMatch(args, want []string) bool {
	for i := 0; ; i++ {
		if len(args)-i < len(want) {
			return false
		}
		whole := true
		for j, w := range want {
			whole = whole && args[i+j] == w
		}
		if whole {
			return true
		}
		option := strings.HasPrefix(args[i], "-") || (i > 0 && strings.HasPrefix(args[i-1], "-"))
		if !option {
			return false
		}
	}
}

// shellLooseMatch looks for pattern in the bare text of a command line, quotes and backslashes taken out: for lines whose
// words do not say what runs (a shell's -c, eval, a here-document, a variable).
func shellLooseMatch(command string, pattern []string) bool {
	bare := strings.NewReplacer(`\`, "", `'`, "", `"`, "").Replace(command)
	words := strings.FieldsFunc(bare, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>`${}", r) })
	return shellCommandMatch(words, pattern)
}
