// This file recognises pasted text that is no JSON: encodings, markup, fenced code blocks, run lines, addresses and what
// looks like TOML or YAML. It says what a text is; which servers it gives is decided elsewhere.
package main

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decodeText turns the pasted bytes into UTF-8 text without a byte order mark. UTF-16 is read when its mark says so.
func decodeText(b []byte) (text string, wide bool, err error) {
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}), bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		if text, err = decodeUTF16(b[2:], b[0] == 0xfe); err != nil {
			return "", false, err
		}
		wide = true
	default:
		text = strings.TrimPrefix(string(b), "\ufeff")
		if !utf8.ValidString(text) {
			line := 1
			for i, c := range text {
				if _, n := utf8.DecodeRuneInString(text[i:]); c == utf8.RuneError && n == 1 {
					break
				} else if c == '\n' {
					line++
				}
			}
			return "", false, errorf("the text is not UTF-8: line %d holds other bytes", line)
		}
	}
	if strings.Contains(text, "\x00") {
		return "", false, newError("the text is not UTF-8: it holds zero bytes (UTF-16 is read when it starts with a byte order mark)")
	}
	return text, wide, nil
}

func decodeUTF16(b []byte, bigEndian bool) (string, error) {
	if len(b)%2 != 0 {
		return "", newError("the text is neither UTF-8 nor UTF-16: it ends inside a character")
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = uint16(b[2*i]) | uint16(b[2*i+1])<<8
		if bigEndian {
			units[i] = uint16(b[2*i])<<8 | uint16(b[2*i+1])
		}
	}
	for i, u := range units {
		high, low := u >= 0xd800 && u < 0xdc00, u >= 0xdc00 && u < 0xe000
		if high && (i+1 == len(units) || units[i+1]&0xfc00 != 0xdc00) || low && (i == 0 || units[i-1]&0xfc00 != 0xd800) {
			return "", newError("the text is neither UTF-8 nor UTF-16: it holds half a character")
		}
	}
	return string(utf16.Decode(units)), nil
}

// startsMarkup reports a text that starts with a tag; an address between angle brackets is none.
func startsMarkup(s string) bool {
	if len(s) < 2 || s[0] != '<' {
		return false
	}
	c := s[1] | 0x20
	return s[1] == '!' || s[1] == '?' || s[1] == '/' || 'a' <= c && c <= 'z' && !isHTTPAddress(s[1:])
}

// codeBlock is a fenced block of a page: its text, and the line of the page on which that starts.
type codeBlock struct {
	text string
	line int
}

// blockReader is the place in a page while its code blocks are read.
type blockReader struct {
	out    []codeBlock
	body   textBuilder
	fence  string // of the open block, "" outside
	start  int    // line of the first text in it
	quoted bool   // it stands in a quotation
	tight  bool   // its text starts right behind the fence and may end right before it, as chat programs copy it
}

// fencedBlocks finds the fenced code blocks of a text (CommonMark 4.5, but at any depth of indentation, in quotations and in
// list items too). A block that is never closed runs to the end.
func fencedBlocks(s string) []codeBlock {
	r := &blockReader{}
	line := 0
	for text := range strings.Lines(s) {
		line++
		trimmed := strings.TrimLeft(strings.TrimRight(text, "\r\n"), " \t>")
		if r.fence == "" {
			r.open(strings.TrimLeft(trimmed, "-*+0123456789.) \t"), line)
			r.quoted = strings.HasPrefix(strings.TrimLeft(text, " \t"), ">")
			continue
		}
		mark, rest := fenceMark(trimmed)
		if mark != "" && mark[0] == r.fence[0] && len(mark) >= len(r.fence) && strings.TrimSpace(rest) == "" {
			r.end()
			continue
		}
		if r.quoted {
			text = strings.TrimPrefix(strings.TrimPrefix(strings.TrimLeft(text, " \t"), ">"), " ")
		}
		before, _, closed := strings.Cut(text, r.fence)
		if !r.tight || !closed {
			r.body.WriteString(text)
			continue
		}
		r.body.WriteString(before)
		r.end()
	}
	if r.fence != "" {
		r.end()
	}
	return r.out
}

// open starts a block on a line that begins with a fence. Code marks that close on the same line are a block only when
// they hold JSON.
func (r *blockReader) open(s string, line int) {
	mark, info := fenceMark(s)
	if mark == "" {
		return
	}
	inner, _, closed := strings.Cut(strings.TrimSpace(info), mark)
	tight := startsJSON(inner)
	if closed && !tight {
		return
	}
	r.fence, r.tight, r.start = mark, tight, line+1
	if tight {
		r.start = line
		r.body.WriteString(inner + "\n")
	}
	if closed {
		r.end()
	}
}

//go:noinline for size: it is called in many places
func (r *blockReader) end() {
	r.out = append(r.out, codeBlock{r.body.String(), r.start})
	r.body.Reset()
	r.fence = ""
}

// fenceMark splits a line that starts with three or more backticks or tildes.
func fenceMark(s string) (mark, rest string) {
	if !strings.HasPrefix(s, "```") && !strings.HasPrefix(s, "~~~") {
		return "", s
	}
	rest = strings.TrimLeft(s, s[:1])
	return s[:len(s)-len(rest)], rest
}

// isGitHubRepository reports a link to a repository, in the forms that browsers, git and package managers use.
func isGitHubRepository(word string) bool {
	s := strings.ToLower(word)
	for _, prefix := range []string{"git+", "git://", "ssh://", "https://", "http://", "git@", "www."} {
		s = strings.TrimPrefix(s, prefix)
	}
	rest, ok := strings.CutPrefix(s, "github.com")
	return ok && (rest == "" || strings.IndexByte("/:", rest[0]) >= 0)
}

// runLine is a command line out of a README.
type runLine struct {
	env  map[string]string
	argv []string
}

// findRunLine returns the first line of s that runs a server; found says whether there was one, and others whether
// further lines were passed over.
func findRunLine(s string) (line runLine, found, others bool, err error) {
	for _, text := range joinedLines(s) {
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if found {
			return line, true, true, nil
		}
		if n := len(text); n > 2 && text[0] == '`' && text[n-1] == '`' {
			text = strings.Trim(text, "`")
		}
		if !mentionsRunner(text) {
			others = true
			continue
		}
		text = cutPrompt(text)
		words, splitErr := splitWords(text)
		env, argv := cutAssignments(words)
		if !isRunner(argv) {
			others = true
			continue
		}
		if splitErr != nil {
			return runLine{}, true, false, errorf("the command line %s: %w", confQuote(argv[0]), splitErr)
		}
		line, found = runLine{env, argv}, true
		if others {
			return line, true, true, nil
		}
	}
	return line, found, others, nil
}

// joinedLines joins lines that end in a backslash with the next one.
func joinedLines(s string) []string {
	var out []string
	var open textBuilder
	joining := false
	for text := range strings.Lines(s) {
		text = strings.TrimRight(text, " \t\r\n")
		before, more := strings.CutSuffix(text, `\`)
		if joining || more {
			open.WriteString(before + " ")
			if joining = more; more {
				continue
			}
			text = open.String()
			open.Reset()
		}
		out = append(out, text)
	}
	if joining {
		out = append(out, open.String())
	}
	return out
}

// cutPrompt drops a prompt in front of a run line: a sign alone, or what shells print before one.
func cutPrompt(s string) string {
	runs := func(s string) bool {
		words, _ := splitWords(s) // an open quote is refused where the words are used
		_, argv := cutAssignments(words)
		return isRunner(argv)
	}
	if runs(s) {
		return s
	}
	for _, sign := range []string{"$ ", "% ", "> ", "# ", "❯ ", "➜ ", "λ ", ">"} {
		head, rest, ok := strings.Cut(s, sign)
		if !ok || len(head) > 100 || strings.ContainsAny(head, "=\"'") {
			continue
		}
		if runs(rest) {
			return rest
		}
	}
	return s
}

func mentionsRunner(s string) bool {
	s = strings.ToLower(s)
	return slices.ContainsFunc([]string{"npx", "bunx", "uvx", "pipx", "docker", "podman"}, func(p string) bool { return strings.Contains(s, p) })
}

// cutAssignments takes NAME=value words off the front.
func cutAssignments(words []string) (env map[string]string, argv []string) {
	env = map[string]string{}
	for i, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok || name == "" || strings.ContainsAny(name, "-.") || refNamePrefix(name) != name {
			return env, words[i:]
		}
		env[name] = value
	}
	return env, nil
}

// isRunner reports a command line of a program that fetches and runs servers.
func isRunner(argv []string) bool {
	if len(argv) < 2 {
		return false
	}
	switch p := programName(argv[0]); p {
	case "npx", "bunx", "uvx":
		return true
	case "pipx", "docker", "podman":
		return argv[1] == "run"
	}
	return false
}

// hasShellSign finds words that a shell would act on; here they are arguments like any other.
func hasShellSign(argv []string) string {
	for _, w := range argv {
		if slices.Contains([]string{"&&", "||", "|", ";", "&", ">", ">>", "<", "#"}, w) {
			return w
		}
	}
	return ""
}

// firstLine is the first line of s that says something: not blank, no comment.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return line
		}
	}
	return ""
}

// looksTOML reports a text with a table header or a key and an equals sign on some line.
func looksTOML(s string) bool {
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") && strings.Contains(line, "]") {
			return true
		}
		if key, _, ok := strings.Cut(line, "="); ok && isPlainKey(strings.TrimSpace(key)) {
			return true
		}
	}
	return false
}

// isPlainKey reports a key without spaces in it, dotted or quoted as it may be.
func isPlainKey(s string) bool {
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return true
	}
	return s != "" && strings.IndexFunc(s, func(c rune) bool {
		return c != '_' && c != '-' && c != '.' && c != '"' && c != '\'' && c != '/' && c != '@' && c < 0x80 &&
			!('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	}) < 0
}

// looksYAML reports a text whose first line is one of YAML, and whose other lines don't speak against it.
func looksYAML(s string) bool {
	first := firstLine(s)
	if first == "---" || strings.HasPrefix(first, "--- ") || strings.HasPrefix(first, "%YAML") {
		return true
	}
	if !isYAMLLine(first) {
		return false
	}
	yaml, all := 0, 0
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if all++; isYAMLLine(line) {
			yaml++
		}
	}
	return 2*yaml > all
}

func isYAMLLine(line string) bool {
	line = strings.TrimPrefix(line, "- ")
	key, rest, ok := strings.Cut(line, ":")
	return line == "-" || ok && isPlainKey(key) && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// tomlNode turns a TOML value into the tree that JSON gives too, keys sorted. Numbers lose the underscores, dates are
// text.
func tomlNode(v any) confNode {
	n := confNode{}
	switch v := v.(type) {
	case string:
		n.kind, n.text = confText, v
	case bool:
		n.kind, n.text = confBool, strconv.FormatBool(v)
	case tomlNumber:
		n.kind, n.text = confNumber, strings.ReplaceAll(v.Text, "_", "")
	case tomlTime:
		n.kind, n.text = confText, v.Text
	case []any:
		n.kind = confList
		for _, item := range v {
			n.items = append(n.items, confMember{node: tomlNode(item)})
		}
	case map[string]any:
		n.kind = confMap
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.items = append(n.items, confMember{key, tomlNode(v[key])})
		}
	}
	return n
}
