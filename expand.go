// This file turns a stored entry into what is really started or dialled: the references in it, the argument vector,
// and the rule for server names. It asks the environment and the vault only through the functions it is given.
package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	serverNameMax = 128 // bytes of a server name
	refMaxDepth   = 100 // defaults inside defaults
	refShown      = 300 // bytes of a reference repeated in a message
)

// refKind tells the forms of ${...} apart.
type refKind uint8

const (
	refName    refKind = iota // ${NAME} or ${NAME:-default}
	refInput                  // ${input:id}
	refEnv                    // ${env:NAME}, another program's spelling of ${NAME}
	refEmpty                  // ${}, plain text
	refEscape                 // $${, stands for ${
	refUnknown                // any other ${...}
	refOpen                   // ${ without its closing brace
)

// refSpan is one reference in a text: text[start:end]. def is where its default starts, -1 when it has none.
type refSpan struct {
	kind            refKind
	name            string
	start, end, def int
}

// refText is a text with its braces paired once, so that looking at every reference of it stays linear.
type refText struct {
	s     string
	close []int32 // for each { the place of its }, -1 when it has none
}

func newRefText(s string) refText {
	t := refText{s: s}
	if !strings.Contains(s, "{") {
		return t
	}
	t.close = make([]int32, len(s))
	var open []int32
	for i := range len(s) {
		t.close[i] = -1
		switch s[i] {
		case '{':
			open = append(open, int32(i))
		case '}':
			if n := len(open); n > 0 {
				t.close[open[n-1]] = int32(i)
				open = open[:n-1]
			}
		}
	}
	return t
}

// next finds the first reference in s[from:to]. The text is read from the left, so that $$${ is a dollar and $${.
func (t refText) next(from, to int) (refSpan, bool) {
	for i := from; i < to; i++ {
		j := strings.IndexByte(t.s[i:to], '$')
		if j < 0 {
			return refSpan{}, false
		}
		i += j
		switch {
		case strings.HasPrefix(t.s[i:to], "$${"):
			return refSpan{kind: refEscape, start: i, end: i + 3, def: -1}, true
		case strings.HasPrefix(t.s[i:to], "${"):
			return t.span(i, to), true
		}
	}
	return refSpan{}, false
}

func (t refText) span(i, to int) refSpan {
	r := refSpan{kind: refOpen, start: i, end: to, def: -1}
	end := int(t.close[i+1])
	if end < 0 || end >= to {
		return r
	}
	r.end = end + 1
	body := t.s[i+2 : end]
	id, isInput := strings.CutPrefix(body, "input:")
	rest, isEnv := strings.CutPrefix(body, "env:")
	switch {
	case body == "":
		r.kind = refEmpty
	case isInput && strings.TrimSpace(id) != "" && !strings.ContainsAny(id, "{}"):
		r.kind, r.name = refInput, id
	case isEnv && r.named(rest, refEnv, end), r.named(body, refName, end):
	default:
		r.kind = refUnknown
	}
	return r
}

// named reads NAME or NAME:-default, which ends at place end of the text.
func (r *refSpan) named(body string, kind refKind, end int) bool {
	name := refNamePrefix(body)
	rest := body[len(name):]
	if name == "" || rest != "" && !strings.HasPrefix(rest, ":-") {
		return false
	}
	r.kind, r.name = kind, name
	if rest != "" {
		r.def = end - len(rest) + 2
	}
	return true
}

// refNamePrefix is the longest beginning of s that is a variable name: a letter or _, then letters, digits, _ - and dots.
//
//go:noinline for size: it is called in many places
func refNamePrefix(s string) string {
	i := 0
	for i < len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || !('0' <= c && c <= '9' || c == '-' || c == '.')) {
			break
		}
		i++
	}
	return s[:i]
}

// entryRef is one variable that an entry takes from outside.
type entryRef struct {
	Field   string // command, args[0], env.KEY, url, headers.NAME
	Name    string
	Input   bool // ${input:NAME}: looked up in the vault alone
	Default bool // has a default, or stands inside one
}

// entryReferences lists the variables that e's fields refer to, in the order command, args, env, url, headers, each
// once per field. Names inside defaults are listed too.
func entryReferences(e serverEntry) []entryRef {
	var out []entryRef
	eachField(&e, func(field, text string) string {
		seen := map[string]bool{}
		t := newRefText(text)
		collectRefs(t, 0, len(text), 0, func(r refSpan, inDefault bool) {
			if r.kind == refName || r.kind == refInput {
				if key := text[r.start:r.start+3] + r.name; !seen[key] {
					seen[key] = true
					out = append(out, entryRef{Field: field, Name: r.name, Input: r.kind == refInput, Default: inDefault || r.def >= 0})
				}
			}
		})
		return text
	})
	return out
}

// collectRefs calls f for every reference in t.s[from:to], those inside defaults after the one they belong to.
func collectRefs(t refText, from, to, depth int, f func(r refSpan, inDefault bool)) {
	for {
		r, ok := t.next(from, to)
		if !ok {
			return
		}
		f(r, depth > 0)
		if r.def >= 0 && depth < refMaxDepth {
			collectRefs(t, r.def, r.end-1, depth+1, f)
		}
		from = r.end
	}
}

// eachField replaces every text of e in which references count by what f makes of it. Maps and lists are copied first,
// so that the caller's entry stays as it is.
func eachField(e *serverEntry, f func(field, text string) string) {
	if e.Command != "" {
		e.Command = f("command", e.Command)
	}
	e.Args = slices.Clone(e.Args)
	for i, a := range e.Args {
		e.Args[i] = f(fmt.Sprintf("args[%d]", i), a)
	}
	e.Env = maps.Clone(e.Env)
	for _, k := range slices.Sorted(maps.Keys(e.Env)) {
		e.Env[k] = f("env."+k, e.Env[k])
	}
	if e.URL != "" {
		e.URL = f("url", e.URL)
	}
	e.Headers = maps.Clone(e.Headers)
	for _, k := range slices.Sorted(maps.Keys(e.Headers)) {
		e.Headers[k] = f("headers."+k, e.Headers[k])
	}
}

// expandEntry fills the references in command, args, env, url and headers, once: a value is never expanded again.
// env is the process environment, vault the secrets by name; both say whether the name is there. When something is
// unresolved or unusable the error names the server, each field and each name, never a value; display then holds the
// entry with what is known filled in and the rest as it stands (it holds secrets: whoever prints it redacts).
// Without an error display equals expanded. Neither shares memory with e.
func expandEntry(e serverEntry, env, vault func(string) (string, bool)) (expanded, display serverEntry, err error) {
	x := &expander{env: env, vault: vault}
	display = e
	display.Allow, display.Deny = slices.Clone(e.Allow), slices.Clone(e.Deny)
	broken := map[string]bool{}
	eachField(&display, func(field, text string) string {
		before := len(x.faults)
		out := x.text(field, text)
		broken[field] = len(x.faults) > before
		return out
	})
	x.check(display, broken)
	if len(x.faults) > 0 {
		return serverEntry{}, display, &unresolvedError{"server " + confQuote(e.Name) + ": " + strings.Join(x.faults, "; "), x.missing}
	}
	return display, display, nil
}

// movedSecret gives a secret that is on its way into the vault.
func movedSecret(moved []namedSecret, name string) (secret, bool) {
	for _, m := range moved {
		if m.Name == name {
			return m.Value, true
		}
	}
	return "", false
}

// expander holds the two sources and the faults found so far.
type expander struct {
	env, vault func(string) (string, bool)
	field      string
	faults     []string
	missing    []string // names without a value that the vault could hold
}

// unresolvedError says which references of an entry have no value. Missing are names that tai secret set could give one.
type unresolvedError struct {
	text    string
	Missing []string
}

func (e *unresolvedError) Error() string { return e.text }

//go:noinline for size: it is called in many places
func (x *expander) fault(format string, args ...any) {
	x.faults = append(x.faults, x.field+": "+fmt.Sprintf(format, args...))
}

func (x *expander) text(field, s string) string {
	if !strings.Contains(s, "${") {
		return s
	}
	x.field = field
	var out strings.Builder
	x.fill(&out, newRefText(s), 0, len(s), 0)
	return out.String()
}

func (x *expander) fill(out *strings.Builder, t refText, from, to, depth int) {
	for {
		r, ok := t.next(from, to)
		if !ok {
			out.WriteString(t.s[from:to])
			return
		}
		out.WriteString(t.s[from:r.start])
		out.WriteString(x.value(t, r, depth))
		from = r.end
	}
}

// value is what stands in the place of r; a reference that can't be filled stays as it is.
func (x *expander) value(t refText, r refSpan, depth int) string {
	raw := t.s[r.start:r.end]
	switch r.kind {
	case refEscape:
		return "${"
	case refEmpty:
		return raw
	case refInput:
		if v, ok := x.vault(r.name); ok {
			return v
		}
		x.fault("the vault holds no secret named %s for ${input:%s}", confShow(r.name), confShow(r.name))
		x.missing = append(x.missing, r.name)
		return raw
	case refOpen:
		x.fault("%s is never closed", confClip(raw, refShown))
		return raw
	case refUnknown, refEnv:
		x.fault("%s is no reference that tai knows", confClip(raw, refShown))
		return raw
	}
	v, ok := x.env(r.name)
	if !ok {
		v, ok = x.vault(r.name)
	}
	switch {
	case ok && (v != "" || r.def < 0):
		return v
	case r.def < 0:
		x.fault("%s is set neither in the environment nor in the vault", r.name)
		x.missing = append(x.missing, r.name)
		return raw
	case depth >= refMaxDepth:
		x.fault("defaults are nested deeper than %d levels", refMaxDepth)
		return raw
	}
	before := len(x.faults)
	var out strings.Builder
	x.fill(&out, t, r.def, r.end-1, depth+1)
	if len(x.faults) > before {
		return raw
	}
	return out.String()
}

// check finds what can't be used although every name is known.
func (x *expander) check(e serverEntry, broken map[string]bool) {
	if e.Transport == "http" {
		if x.field = "url"; !broken["url"] && !isHTTPAddress(e.URL) {
			x.fault("the address must start with http:// or https://")
		}
	} else if x.field = "command"; !broken["command"] && strings.TrimSpace(e.Command) == "" {
		x.fault("the command is empty")
	}
	for _, k := range slices.Sorted(maps.Keys(e.Headers)) {
		if x.field = "headers." + k; !broken[x.field] && strings.ContainsAny(e.Headers[k], "\r\n") {
			x.fault("the value holds a line break")
		}
	}
}

// isHTTPAddress reports whether s starts with http:// or https://, the scheme in any case (RFC 3986 3.1).
func isHTTPAddress(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// spawnArgv is the argument vector that a stdio entry is started with on goos: the one to show, to store and to run.
// On Windows npx is a script, which only cmd can start; an entry that already goes through cmd is left alone.
func spawnArgv(e serverEntry, goos string) []string {
	if e.Command == "" {
		return nil
	}
	argv := append([]string{e.Command}, e.Args...)
	if base := programBase(e.Command); goos == "windows" && (base == "npx" || base == "npx.cmd") {
		argv = append([]string{"cmd", "/c"}, argv...)
	}
	return argv
}

// programBase is the last part of a program's path in either style, in lower case.
func programBase(command string) string {
	return strings.ToLower(command[strings.LastIndexAny(command, `/\`)+1:])
}

// goodServerName refuses what can't be the name of a server: nothing, more than 128 bytes, control and format
// characters, line separators, and the path parts . and .. (names may hold slashes).
func goodServerName(name string) error {
	switch {
	case name == "":
		return newError("the name is empty")
	case len(name) > serverNameMax:
		return errorf("the name has %d bytes, at most %d are allowed", len(name), serverNameMax)
	case !utf8.ValidString(name):
		return newError("the name is not UTF-8")
	}
	for _, r := range name {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return errorf("the name holds the control or format character U+%04X", r)
		}
	}
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == "." || part == ".." {
			return errorf("the name holds the path part %q", part)
		}
	}
	return nil
}

// confShow makes a piece of pasted text safe to stand in a message.
func confShow(s string) string { return visibleLine(s) }

// confClip is confShow of at most max bytes of s; it is cut first, so that a long text costs no more than a short one.
func confClip(s string, max int) string { return confShow(clip(s, max)) }

// confQuote is confClip between quotes, at a length that any name fits in.
//
//go:noinline for size: it is called in many places
func confQuote(s string) string { return `"` + confClip(s, 200) + `"` }
