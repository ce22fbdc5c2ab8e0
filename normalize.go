// This file turns whatever a person pastes into canonical server entries. It decides what the text is, in one fixed order,
// and hands it to the reader of that kind. It is a pure function: no file, no network, no environment.
package main

import (
	"errors"
	"fmt"
	"strings"
)

const normalizeMax = 1 << 20 // bytes of pasted text

// normalizeOptions is what the caller knows besides the text.
type normalizeOptions struct {
	OS     string        // GOOS of the machine that will run the servers; "" is linux
	Name   string        // for an entry that has none; "" when the caller gives none
	Stored []serverEntry // a text that is one of their names gives that entry back
}

// normalizeResult is what a text gave. Notes say what was understood and ignored, warnings what may not be meant.
type normalizeResult struct {
	Servers  []serverEntry `json:"servers"`
	Notes    []string      `json:"notes"`
	Warnings []string      `json:"warnings"`
}

// confInput is one text to recognise: the paste itself or a code block of it.
type confInput struct {
	text string
	line int // number of its first line in the paste
	o    normalizeOptions
}

// normalize reads pasted text: JSON in all the states it is copied in, TOML with mcp_servers, a run line, an address, or the
// name of a stored server. References stay as they are. An error says what is wrong with the text as a whole; an entry that
// can't be used beside others that can is a warning. The rules are those of testdata/corpus/README.md.
func normalize(b []byte, o normalizeOptions) (normalizeResult, error) {
	if len(b) > normalizeMax {
		return normalizeResult{}, errorf("the text is too large: %d bytes, at most %d are read", len(b), normalizeMax)
	}
	text, wide, err := decodeText(b)
	if err != nil {
		return normalizeResult{}, err
	}
	if o.Name = strings.TrimFunc(o.Name, isBlank); o.Name != "" {
		if err := goodServerName(o.Name); err != nil {
			return normalizeResult{}, err
		}
	}
	rep := &confReport{}
	if wide {
		rep.note("the text was converted from UTF-16")
	}
	in := confInput{text: text, line: 1, o: o}
	servers, err := in.recognise(rep)
	if err != nil {
		return normalizeResult{}, err
	}
	return normalizeResult{servers, append([]string{}, rep.notes...), append([]string{}, rep.warnings...)}, nil
}

// recognise goes through the kinds of text in their order.
func (in confInput) recognise(rep *confReport) ([]serverEntry, error) {
	trimmed := strings.TrimFunc(in.text, isBlank)
	switch {
	case trimmed == "":
		return nil, newError("the text is empty")
	case startsMarkup(trimmed):
		return nil, newError("this is an HTML or XML page; paste the JSON or TOML that stands on it")
	case startsJSON(in.text):
		return in.json(rep)
	}
	if blocks := fencedBlocks(in.text); len(blocks) > 0 {
		return in.blocks(blocks, rep)
	}
	return in.other(trimmed, rep)
}

// other recognises what is neither JSON nor a page with code blocks.
func (in confInput) other(trimmed string, rep *confReport) ([]serverEntry, error) {
	for _, e := range in.o.Stored {
		if e.Name == trimmed {
			return []serverEntry{cloneEntry(e)}, nil
		}
	}
	word := !strings.ContainsFunc(trimmed, isBlank)
	if address := strings.TrimSuffix(strings.TrimPrefix(trimmed, "<"), ">"); word && isGitHubRepository(address) {
		return nil, newError("this is a GitHub link, not a configuration: it has to be resolved first")
	} else if word && isHTTPAddress(address) {
		return in.explicit(serverEntry{URL: address}, rep)
	}
	servers := hasServerTable(in.text)
	if !servers && !isTOMLEntry(in.text) {
		if line, found, others, err := findRunLine(in.text); err != nil {
			return nil, err
		} else if found && !(others && looksYAML(in.text)) {
			return in.run(line, others, rep)
		}
	}
	switch {
	case servers:
		return in.toml(rep)
	case word:
		return nil, unknownName(trimmed)
	case looksYAML(in.text):
		return nil, errorf("line %d looks like YAML, which is not read: paste JSON or TOML", in.line)
	case looksTOML(in.text):
		return in.toml(rep)
	}
	if before, _, ok := strings.Cut(in.text, "{"); ok && strings.TrimFunc(before, isBlank) != "" {
		return nil, errorf("the JSON is not valid: line %d: there are words before the first brace (and the text is no TOML)", in.line)
	}
	return nil, newError("the text is neither JSON nor TOML, nor a run line, an address or the name of a stored server")
}

func unknownName(word string) error {
	hint := "paste its JSON or TOML, a run line or its address"
	owner, name, _ := strings.Cut(word, "/")
	switch scheme, _, ok := strings.Cut(strings.ToLower(word), "://"); {
	case ok && (scheme == "ws" || scheme == "wss"):
		hint = "and WebSocket addresses are not supported"
	case githubName(owner, githubOwnerMax) && !strings.ContainsAny(owner, ".:") && githubName(name, githubRepoMax):
		hint = "a repository of GitHub is added as https://github.com/" + word
	case ok || strings.ContainsAny(word, ".:/"):
		hint = "an address must start with http:// or https://"
	}
	return errorf("no stored server has the name %s: %s", confQuote(word), hint)
}

// explicit makes the one entry of an address or a run line.
func (in confInput) explicit(e serverEntry, rep *confReport) ([]serverEntry, error) {
	b := newConfBuilder(in.o.OS, "explicit", in.o.Name, rep)
	sub := &confReport{}
	e, err := ruleEntry(e, "explicit", sub)
	b.single("", e, err, sub)
	return b.result()
}

func (in confInput) run(line runLine, others bool, rep *confReport) ([]serverEntry, error) {
	rep.note("the text was read as a command line")
	if others {
		rep.note("only the first run line counts; the other lines were passed over")
	}
	if sign := hasShellSign(line.argv); sign != "" {
		rep.warn("the command line holds %s: there is no shell, it is passed on as an argument", sign)
	}
	return in.explicit(serverEntry{Command: line.argv[0], Args: line.argv[1:], Env: line.env}, rep)
}

// json reads the text as JSON.
func (in confInput) json(rep *confReport) ([]serverEntry, error) {
	docs, r, err := readLenient(in.text, in.line)
	if err != nil {
		return nil, err
	}
	noteRepairs(r, rep)
	warnDuplicates(docs, rep)
	name := in.o.Name
	if len(docs) > 1 {
		name = ""
	}
	b := newConfBuilder(in.o.OS, "config-json", name, rep)
	var faults []string
	for _, d := range docs {
		if err := b.document(d); err != nil {
			faults = append(faults, err.Error())
		}
	}
	if len(b.slots) == 0 {
		return nil, newError(strings.Join(faults, "; "))
	}
	for _, f := range faults {
		rep.warn("one of the objects gives no server: %s", f)
	}
	return b.result()
}

// noteRepairs says which repairs the lenient reader made.
func noteRepairs(r *confReader, rep *confReport) {
	for _, n := range []struct {
		made bool
		text string
	}{
		{r.unquote, "the JSON stood inside a string; one layer of quotes was taken off"},
		{r.braces, "the outer braces were missing and were added"},
		{r.quotes, "curly or single quotes were read as plain quotes"},
		{r.spaces, "odd spaces between tokens (such as a non-breaking space) were read as plain ones"},
		{r.several, "several objects stand one after the other and were read together"},
		{r.leftover, "what was left over behind the JSON (brackets, semicolons or a code fence) was dropped"},
	} {
		if n.made {
			rep.note("%s", n.text)
		}
	}
	if r.backslash > 0 {
		rep.warn("line %d: a single backslash was read as a plain backslash; in JSON it is written twice", r.backslash)
	}
}

// hasServerTable reports a header of a server table on some line.
func hasServerTable(s string) bool {
	if !strings.Contains(s, "mcp_servers") && !strings.Contains(s, "mcpServers") {
		return false
	}
	for line := range strings.Lines(s) {
		name := strings.TrimLeft(strings.TrimSpace(line), "[ \t\"'")
		if strings.HasPrefix(strings.TrimSpace(line), "[") && (strings.HasPrefix(name, "mcp_servers") || strings.HasPrefix(name, "mcpServers")) {
			return true
		}
	}
	return false
}

// isTOMLEntry reports the body of a server table without its header.
func isTOMLEntry(s string) bool {
	if !looksTOML(s) {
		return false
	}
	m, err := parseTOML([]byte(s))
	return err == nil && looksLikeEntry(tomlNode(m))
}

// toml reads the text as TOML. Of a settings file only the server tables count.
func (in confInput) toml(rep *confReport) ([]serverEntry, error) {
	m, err := parseTOML([]byte(in.text))
	if err != nil {
		if te, ok := errors.AsType[*tomlError](err); ok && in.line > 1 {
			moved := *te
			moved.Line += in.line - 1
			err = &moved
		}
		if strings.Contains(in.text, `":`) {
			err = errorf("%w (nor is the JSON valid: line %d: there are words before it)", err, in.line)
		}
		return nil, err
	}
	b := newConfBuilder(in.o.OS, "config-toml", in.o.Name, rep)
	n := tomlNode(m)
	var places []confPlace
	for _, key := range []string{"mcp_servers", "mcpServers"} {
		if v, ok := n.get(key); ok && v.kind >= confList {
			places = append(places, confPlace{key, v})
		}
	}
	switch {
	case len(places) > 0:
		err = b.maps(places, confGate{})
	case looksLikeEntry(n):
		b.bare(n)
	default:
		err = errorf("the TOML has no mcp_servers table; its keys are: %s", keyList(n))
	}
	if err != nil {
		return nil, err
	}
	return b.result()
}

// blocks tries the code blocks of a page: the first that is JSON or TOML and gives servers, then the first that gives
// servers at all. Blocks are alternatives, so they are never joined.
func (in confInput) blocks(blocks []codeBlock, rep *confReport) ([]serverEntry, error) {
	var faults []string
	for _, structured := range []bool{true, false} {
		for _, block := range blocks {
			part := confInput{text: block.text, line: in.line + block.line - 1, o: in.o}
			if part.structured() != structured {
				continue
			}
			sub := &confReport{}
			servers, err := part.block(structured, sub)
			if err != nil {
				if len(faults) < 10 {
					faults = append(faults, fmt.Sprintf("the code block at line %d: %v", part.line, err))
				}
				continue
			}
			rep.note("the servers were read from the code block at line %d", part.line)
			if len(blocks) > 1 {
				rep.note("of %d code blocks only the first one with servers is used; the others were passed over", len(blocks))
			}
			rep.add("", sub)
			return servers, nil
		}
	}
	return nil, newError("no code block gives a server: " + strings.Join(faults, "; "))
}

// structured reports text that can only be JSON or TOML.
func (in confInput) structured() bool {
	return startsJSON(in.text) || hasServerTable(in.text) || isTOMLEntry(in.text)
}

func (in confInput) block(structured bool, rep *confReport) ([]serverEntry, error) {
	trimmed := strings.TrimFunc(in.text, isBlank)
	switch {
	case trimmed == "":
		return nil, newError("it is empty")
	case startsJSON(in.text):
		return in.json(rep)
	case structured:
		return in.toml(rep)
	}
	return in.other(trimmed, rep)
}
