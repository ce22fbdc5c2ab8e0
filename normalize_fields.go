// This file reads the fields of one server entry: which keys count under which spelling, and which shapes their values may
// have. What the fields mean together is decided in normalize_entry.go.
package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// confReport collects what the user should know about a text that was read.
type confReport struct{ notes, warnings []string }

//go:noinline for size: it is called in many places
func (r *confReport) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

//go:noinline for size: it is called in many places
func (r *confReport) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// add takes over another report, each message with a prefix.
//
//go:noinline for size: it is called in many places
func (r *confReport) add(prefix string, o *confReport) {
	for _, m := range o.notes {
		r.notes = append(r.notes, prefix+m)
	}
	for _, m := range o.warnings {
		r.warnings = append(r.warnings, prefix+m)
	}
}

// confPair is one variable or header; key is the field it came from.
type confPair struct{ key, name, value string }

// entryReader gathers the fields of one entry, in any order, until build joins them.
type entryReader struct {
	rep    *confReport
	faults []string

	command                 string
	args                    []string
	env                     []confPair
	envVars                 []string
	cwd                     string
	urls                    []confPair // key and value
	fixed, request, fromEnv []confPair // headers
	bearer, bearerKey       string
	bearerVar, bearerVarKey string
	types                   []confPair // key and value
	enabled                 []bool     // what each switch says
	off                     bool       // an empty allow list
	limited                 bool       // an allow list was given
	allow, deny             []string
}

//go:noinline for size: it is called in many places
func (r *entryReader) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// foldKey turns serverUrl into server_url, so that both spellings of a field are one.
func foldKey(key string) string {
	if key == "" || key[0] < 'a' || key[0] > 'z' {
		return key
	}
	out := make([]byte, 0, len(key)+4)
	for i := range len(key) {
		c := key[i]
		if 'A' <= c && c <= 'Z' {
			if p := key[i-1]; p != '_' && (p < 'A' || p > 'Z') {
				out = append(out, '_')
			}
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return string(out)
}

// field reads one member of the entry. null means that the field is not there.
func (r *entryReader) field(key string, n confNode) {
	if n.kind == confNull {
		return
	}
	folded := foldKey(key)
	if strings.Contains(strings.ToLower(key), "timeout") {
		r.rep.note("%s is ignored: tai has its own limits for connecting and calling", confShow(key))
		return
	}
	switch folded {
	case "command":
		r.readCommand(key, n)
	case "args":
		r.readArgs(key, n)
	case "env", "environment":
		r.env = append(r.env, r.variables(key, n)...)
	case "env_vars":
		r.readEnvVars(key, n)
	case "url", "server_url", "http_url", "base_url":
		r.readURL(key, n)
	case "headers", "http_headers":
		r.fixed = append(r.fixed, r.headers(key, n)...)
	case "request_init", "request_options":
		r.readRequest(key, n)
	case "env_http_headers":
		r.readEnvHeaders(key, n)
	case "bearer_token_env_var":
		r.bearerVar, r.bearerVarKey = r.plain(key, n), key
	case "bearer_token":
		r.bearer, r.bearerKey = r.plain(key, n), key
	case "cwd":
		r.cwd = r.plain(key, n)
	case "enabled", "is_active", "disabled":
		r.readSwitch(key, n, folded != "disabled")
	case "enabled_tools", "include_tools":
		r.readAllow(key, n)
	case "disabled_tools", "exclude_tools":
		r.deny = append(r.deny, r.names(key, n)...)
	case "type", "transport", "transport_type":
		r.readType(key, n)
	default:
		r.otherField(key, folded, n)
	}
}

// otherField reads the keys that become nothing: some are worth a warning, some a note, descriptions nothing.
func (r *entryReader) otherField(key, folded string, n confNode) {
	switch shown := confClip(key, 200); {
	case folded == "tools" && (n.kind == confList || n.kind == confText), folded == "allow" && n.kind == confList:
		r.readAllow(key, n) // allow and deny: what tai itself writes can be read again
	case folded == "deny" && n.kind == confList:
		r.deny = append(r.deny, r.names(key, n)...)
	case folded == "tools" && n.kind == confMap, folded == "always_allow", folded == "trust",
		strings.Contains(folded, "approve"), strings.Contains(folded, "approval"):
		if says(n) {
			r.rep.note("%s is ignored: approvals are given in tai itself", shown)
		}
	case slices.Contains([]string{"oauth", "auth", "auth_provider_type", "scopes", "headers_helper", "env_file", "settings"}, folded),
		strings.HasPrefix(folded, "sandbox"):
		if says(n) {
			r.rep.warn("%s is not supported and is left out: the server may act differently", shown)
		}
	case slices.Contains([]string{"name", "key", "id", "description", "title", "icon", "icons", "version", "display_name", "author", "authors",
		"homepage", "license", "repository", "tags", "keywords", "category", "categories", "comment", "comments", "documentation", "docs",
		"website", "website_url", "vendor", "publisher", "provider", "logo", "logo_url", "icon_url", "summary", "label", "emoji", "readme",
		"long_description", "$schema", "$comment", "_comment", "//"}, folded):
	default:
		r.rep.note("%s is no field of a server and is ignored", shown)
	}
}

// says reports whether a value says something: not false, blank or empty.
func says(n confNode) bool {
	switch n.kind {
	case confNull:
		return false
	case confBool:
		return n.text == "true"
	case confText:
		return strings.TrimSpace(n.text) != ""
	case confList, confMap:
		return len(n.items) > 0
	}
	return true
}

// plain is a field that must be text; blank text counts as absent.
func (r *entryReader) plain(key string, n confNode) string {
	if n.kind != confText {
		r.fault("%s must be text, not %s", key, n.kind)
	}
	if n.kind != confText || strings.TrimSpace(n.text) == "" {
		return ""
	}
	return n.text
}

// scalar is a text, number or boolean as text. null gives false with a note.
func (r *entryReader) scalar(what string, n confNode) (string, bool) {
	switch n.kind {
	case confText:
		return n.text, true
	case confNumber, confBool:
		r.rep.note("%s is %s and is taken as text, as it is written", what, n.kind)
		return n.text, true
	case confNull:
		r.rep.note("%s is null and is left out", what)
	default:
		r.fault("%s must be text, not %s", what, n.kind)
	}
	return "", false
}

// list reads the texts of a list.
func (r *entryReader) list(key string, n confNode) []string {
	var out []string
	for i, m := range n.items {
		if v, ok := r.scalar(fmt.Sprintf("%s[%d]", key, i), m.node); ok {
			out = append(out, v)
		}
	}
	return out
}

// names reads a list of tool names; one name may stand alone.
func (r *entryReader) names(key string, n confNode) []string {
	switch n.kind {
	case confList:
		return r.list(key, n)
	case confText:
		if strings.TrimSpace(n.text) == "" {
			return nil
		}
		r.rep.note("%s is one text and is taken as a list of one", key)
		return []string{n.text}
	}
	r.fault("%s must be a list of tool names, not %s", key, n.kind)
	return nil
}

func (r *entryReader) readAllow(key string, n confNode) {
	if n.kind == confText && strings.TrimSpace(n.text) == "" {
		return
	}
	names := r.names(key, n)
	switch {
	case slices.Contains(names, "*"):
	case len(names) == 0:
		if n.kind == confList {
			r.off = true
			r.rep.warn("%s is an empty list, which allows no tool at all: the server is switched off", key)
		}
	case r.limited:
		second := map[string]bool{}
		for _, name := range names {
			second[name] = true
		}
		both := slices.DeleteFunc(r.allow, func(s string) bool { return !second[s] })
		r.rep.warn("%s is a second list of allowed tools: only the tools on both count", key)
		if r.allow = both; len(both) == 0 {
			r.off = true
		}
	default:
		r.limited, r.allow = true, names
	}
}

func (r *entryReader) readSwitch(key string, n confNode, yes bool) {
	text := strings.ToLower(strings.TrimSpace(n.text))
	if n.kind == confText && text == "" {
		return
	}
	if (n.kind != confBool && n.kind != confText) || text != "true" && text != "false" {
		r.fault("%s must be true or false", key)
		return
	}
	if n.kind == confText {
		r.rep.note("%s is the text %q and is taken as %s", key, text, text)
	}
	r.enabled = append(r.enabled, (text == "true") == yes)
}

func (r *entryReader) readType(key string, n confNode) {
	if n.kind == confMap && foldKey(key) == "transport" {
		r.rep.note("the fields inside %s are taken as fields of the entry", key)
		for _, m := range n.last() {
			if m.node.kind == confMap && foldKey(m.key) == "transport" {
				r.fault("%s holds another %s", key, m.key)
				continue
			}
			r.field(m.key, m.node)
		}
		return
	}
	if v := strings.TrimSpace(r.plain(key, n)); v != "" {
		r.types = append(r.types, confPair{key: key, value: v})
	}
}

func (r *entryReader) readCommand(key string, n confNode) {
	switch n.kind {
	case confText:
		r.setCommand(key, n.text)
	case confList:
		if words := r.list(key, n); len(words) > 0 {
			if words[0] = strings.TrimSpace(words[0]); words[0] == "" {
				return
			}
			if looksLikeSeveral(words[0]) {
				r.rep.warn("the first item of %s looks like several words; it is kept as one program", key)
			}
			r.oneCommand(key, words[0])
			r.args = append(words[1:], r.args...)
		}
	case confMap:
		r.rep.note("path, args and env inside %s are taken as fields of the entry", key)
		var inner []string
		for _, m := range n.last() {
			switch foldKey(m.key) {
			case "path", "command":
				if m.node.kind == confMap {
					r.fault("%s.%s must be text", key, m.key)
				} else if m.node.kind != confNull {
					r.readCommand(key+"."+m.key, m.node)
				}
			case "args":
				outer := r.args
				r.args = nil
				r.field(m.key, m.node)
				inner, r.args = r.args, outer
			case "env", "environment":
				r.field(m.key, m.node)
			default:
				if m.node.kind != confNull {
					r.rep.note("%s.%s is ignored", key, confClip(m.key, 200))
				}
			}
		}
		r.args = append(inner, r.args...)
	default:
		r.fault("%s must be text or a list, not %s", key, n.kind)
	}
}

//go:noinline for size: it is called in many places
func (r *entryReader) oneCommand(key, command string) {
	if r.command != "" && r.command != command {
		r.fault("%s names a second program", key)
	}
	r.command = command
}

// setCommand takes a command text: a line is split when it starts with a quote or with a plain program name, a path
// with spaces stays whole.
func (r *entryReader) setCommand(key, text string) {
	text = strings.TrimSpace(text)
	if text == "" {
		return
	}
	first := text
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		first = text[:i]
	}
	quoted := text[0] == '"' || text[0] == '\''
	if first == text && !quoted {
		r.oneCommand(key, text)
		return
	}
	if !quoted && strings.ContainsAny(first, `/\`) {
		r.rep.warn("%s is taken as one path with spaces in it: put options into args", key)
		r.oneCommand(key, text)
		return
	}
	words, err := splitWords(text)
	if err != nil {
		r.fault("%s: %v", key, err)
		return
	}
	if len(words) == 0 || strings.TrimSpace(words[0]) == "" {
		r.fault("%s names no program", key)
		return
	}
	r.rep.note("%s is a whole command line: its words were split into program and arguments", key)
	r.oneCommand(key, strings.TrimSpace(words[0]))
	r.args = append(words[1:], r.args...)
}

func (r *entryReader) readArgs(key string, n confNode) {
	switch n.kind {
	case confText:
		if strings.TrimSpace(n.text) == "" {
			return
		}
		words, err := splitWords(n.text)
		if err != nil {
			r.fault("%s: %v", key, err)
			return
		}
		r.rep.note("%s is one text and was split into %d arguments", key, len(words))
		r.args = append(r.args, words...)
	case confList:
		words := r.list(key, n)
		if len(words) > 0 && looksLikeSeveral(words[0]) {
			r.rep.warn("the first item of %s looks like several arguments; it is kept as one", key)
		}
		r.args = append(r.args, words...)
	default:
		r.fault("%s must be a list, not %s", key, n.kind)
	}
}

// variables reads env: an object, or a list of NAME=value.
func (r *entryReader) variables(key string, n confNode) []confPair {
	switch {
	case n.kind == confMap:
		out := r.pairs(key, n)
		for _, p := range out {
			if strings.ContainsAny(p.name, "=\x00") {
				r.fault("%s holds the unusable name %s", key, confQuote(p.name))
			}
		}
		return out
	case n.kind == confText && strings.TrimSpace(n.text) == "":
		return nil
	case n.kind != confList:
		r.fault("%s must be an object, not %s", key, n.kind)
		return nil
	}
	var out []confPair
	for i, m := range n.items {
		name, value, ok := strings.Cut(m.node.text, "=")
		switch {
		case m.node.kind == confNull:
			r.rep.note("%s[%d] is null and is left out", key, i)
		case m.node.kind != confText || !ok || name == "":
			r.fault("%s[%d] must be NAME=value", key, i)
		default:
			out = append(out, confPair{key, name, value})
		}
	}
	if len(out) > 0 {
		r.rep.note("%s is a list of NAME=value and was read as variables", key)
	}
	return out
}

// pairs reads an object of texts.
func (r *entryReader) pairs(key string, n confNode) []confPair {
	var out []confPair
	for _, m := range n.last() {
		if m.key == "" {
			r.fault("%s holds a value without a name", key)
			continue
		}
		if v, ok := r.scalar(key+"."+confClip(m.key, 200), m.node); ok {
			out = append(out, confPair{key, m.key, v})
		}
	}
	return out
}

func (r *entryReader) readEnvVars(key string, n confNode) {
	if n.kind == confText && strings.TrimSpace(n.text) == "" {
		return
	}
	if n.kind != confList {
		r.fault("%s must be a list of names, not %s", key, n.kind)
		return
	}
	for i, m := range n.items {
		name := m.node
		if m.node.kind == confMap {
			name, _ = m.node.get("name")
			if source, ok := m.node.get("source"); ok && source.text != "local" {
				r.rep.warn("%s: the source %s of %s is not supported; it is taken from the environment or the vault", key, confQuote(source.text), confShow(name.text))
			}
		}
		switch v := strings.TrimSpace(name.text); {
		case m.node.kind == confNull:
			r.rep.note("%s[%d] is null and is left out", key, i)
		case name.kind != confText || refNamePrefix(v) != v || v == "":
			r.fault("%s[%d] must be the name of a variable", key, i)
		default:
			r.envVars = append(r.envVars, v)
		}
	}
}

func (r *entryReader) readURL(key string, n confNode) {
	texts := []string{n.text}
	switch n.kind {
	case confText:
	case confList:
		if texts = r.list(key, n); len(texts) > 0 {
			r.rep.note("%s is a list and its address is taken", key)
		}
	default:
		r.fault("%s must be text, not %s", key, n.kind)
		return
	}
	for _, t := range texts {
		v := strings.TrimSpace(t)
		if v == "" {
			continue
		}
		if v != t {
			r.rep.note("white space around %s was cut off", key)
		}
		r.urls = append(r.urls, confPair{key: key, value: v})
	}
}

// headers reads an object of headers; white space around values is cut off, since it would break the request.
func (r *entryReader) headers(key string, n confNode) []confPair {
	if n.kind == confText && strings.TrimSpace(n.text) == "" {
		return nil
	}
	if n.kind == confList && len(n.items) == 0 {
		return nil
	}
	if n.kind != confMap {
		r.fault("%s must be an object, not %s", key, n.kind)
		return nil
	}
	out := r.pairs(key, n)
	for i, p := range out {
		if v := strings.TrimSpace(p.value); v != p.value {
			r.rep.note("white space around the header %s was cut off", confShow(p.name))
			out[i].value = v
		}
		if out[i].name = strings.TrimSpace(p.name); out[i].name == "" {
			r.fault("%s holds a header without a name", key)
		}
	}
	return out
}

func (r *entryReader) readRequest(key string, n confNode) {
	if n.kind != confMap {
		if says(n) {
			r.rep.note("%s is ignored", key)
		}
		return
	}
	for _, m := range n.last() {
		switch {
		case m.node.kind == confNull:
		case m.key == "headers":
			r.request = append(r.request, r.headers(key+".headers", m.node)...)
			r.rep.note("the headers inside %s are taken as headers", key)
		default:
			r.rep.note("%s.%s is ignored", key, confClip(m.key, 200))
		}
	}
}

func (r *entryReader) readEnvHeaders(key string, n confNode) {
	for _, p := range r.headers(key, n) {
		if p.value == "" {
			continue
		}
		if v := refToVariable(r, key+"."+p.name, p.value); v != "" {
			r.fromEnv = append(r.fromEnv, confPair{key, p.name, v})
		}
	}
}

// refToVariable turns the name of a variable into a reference to it; a reference stays one.
func refToVariable(r *entryReader, what, name string) string {
	name = strings.TrimSpace(name)
	if t := newRefText(name); name != "" {
		if ref, ok := t.next(0, len(name)); ok && ref.start == 0 && ref.end == len(name) && ref.kind <= refEnv {
			return name
		}
	}
	if refNamePrefix(name) != name || name == "" {
		r.fault("%s must be the name of a variable", what)
		return ""
	}
	return "${" + name + "}"
}
