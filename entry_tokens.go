// This file finds the values in a server's entry that are secrets or look like one, says where they stand, and puts references in
// their place. What is masked, what is warned of and what a person is offered to move all come from here. It knows no vault.
package main

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// entryToken is such a value: a stretch of one field of an entry.
type entryToken struct {
	Field string // args[0], env.KEY, url, headers.NAME
	Span  textSpan
	Label string // the name it stands under: of the variable, header, flag or query value; "" where it has none
	Where string // the place in words
	Base  string // the name it would have in the vault, before others that have it are looked at
	Clear bool   // it is in the clear for others whatever the vault holds: on a command line, or in an address
}

// entryTokens lists them: headers and variables by name, then arguments, then the address.
func entryTokens(e serverEntry) []entryToken {
	f := tokenFinder{server: serverWord(e.Name)}
	for _, k := range slices.Sorted(maps.Keys(e.Env)) {
		f.variable("env."+k, k, "the variable "+quoteClip(k), textSpan{0, len(e.Env[k])}, e.Env[k])
	}
	for _, k := range slices.Sorted(maps.Keys(e.Headers)) {
		f.header("headers."+k, k, "the header "+quoteClip(k), textSpan{0, len(e.Headers[k])}, e.Headers[k])
	}
	f.clear = true
	for i := 0; i < len(e.Args); i++ {
		i += f.argument(e.Args, i)
	}
	f.address("url", "the address", textSpan{0, len(e.URL)}, e.URL)
	return f.found
}

type tokenFinder struct {
	server string
	clear  bool
	found  []entryToken
}

// take notes a stretch of a field if it can be a secret at all. sure says that its name speaks of one; else its shape must.
func (f *tokenFinder) take(field, text string, span textSpan, sure bool, label, where, base string) bool {
	v := span.of(text)
	if len(v) < passwordMin || strings.ContainsAny(v, "{}") || placeholder(v) || ordinaryWord(v) || !(sure && len(v) >= secretEnvMin || secretShape(v)) {
		return false
	}
	f.found = append(f.found, entryToken{field, span, label, where, base, f.clear})
	return true
}

// variable looks at the value of a variable: by its name, its shape, or as a connection string.
func (f *tokenFinder) variable(field, name, where string, span textSpan, text string) {
	v := span.of(text)
	if p, ok := passwordIn(v); ok && len(p.of(v)) >= passwordMin && !ordinaryWord(p.of(v)) && !placeholder(p.of(v)) {
		f.found = append(f.found, entryToken{field, textSpan{span.start + p.start, span.start + p.end}, name, where + ", the password in it", nameBase(name) + "_PASSWORD", f.clear})
		return
	}
	sure := secretName(name) && !strings.HasPrefix(v, "/") && !strings.HasPrefix(v, "~/") && !strings.HasPrefix(v, "./") && !isHTTPScheme(v)
	f.take(field, text, span, sure, name, where, nameBase(name))
}

// header looks at a header's value; of "Bearer x" the secret is x.
func (f *tokenFinder) header(field, name, where string, span textSpan, text string) {
	v := span.of(text)
	if scheme, rest, ok := strings.Cut(v, " "); ok && !strings.ContainsAny(scheme, "=;,") {
		trimmed := strings.TrimLeft(rest, " ")
		span.start += len(scheme) + 1 + len(rest) - len(trimmed)
	}
	word := strings.TrimPrefix(nameWords(name), "X_")
	if word == "AUTHORIZATION" || word == "PROXY_AUTHORIZATION" {
		word = "TOKEN"
	}
	f.take(field, text, span, secretName(name), name, where, f.named(word))
}

// named puts the server's name before a word that does not begin with it.
func (f *tokenFinder) named(word string) string {
	word = nameBase(word)
	if strings.HasPrefix(word, f.server+"_") {
		return word
	}
	return f.server + "_" + word
}

// argument looks at one argument, and at the next where it is the value of this one; then it gives 1.
func (f *tokenFinder) argument(args []string, i int) int {
	arg, field := args[i], fmt.Sprintf("args[%d]", i)
	where := fmt.Sprintf("argument %d", i+1)
	name, _, joined := strings.Cut(arg, "=")
	flag := strings.TrimLeft(name, "-")
	isFlag := len(flag) < len(name)
	before := len(f.found)
	switch {
	case joined && isVariableName(flag):
		span := textSpan{len(name) + 1, len(arg)}
		if isFlag {
			f.take(field, arg, span, secretName(flag), name, where+" ("+quoteClip(name)+")", f.named(flag))
		} else {
			f.variable(field, name, where+" ("+quoteClip(name)+")", span, arg)
		}
	case isFlag && secretName(flag) && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
		next := args[i+1]
		f.take(fmt.Sprintf("args[%d]", i+1), next, textSpan{0, len(next)}, true, name, fmt.Sprintf("argument %d (%s)", i+2, quoteClip(name)), f.named(flag))
		return 1
	}
	if len(f.found) > before {
		return 0
	}
	if key, value, ok := strings.Cut(arg, ":"); ok && secretName(key) && isVariableName(key) && !strings.HasPrefix(value, "//") { // mcp-remote's --header
		value = strings.TrimLeft(value, " ")
		f.header(field, key, where+" ("+quoteClip(key)+")", textSpan{len(arg) - len(value), len(arg)}, arg)
	} else if isHTTPScheme(arg) {
		f.address(field, where, textSpan{0, len(arg)}, arg)
	} else if _, ok := passwordIn(arg); ok {
		f.variable(field, "", where, textSpan{0, len(arg)}, arg)
		f.rename(before, "", f.named("PASSWORD"))
	} else {
		f.take(field, arg, textSpan{0, len(arg)}, false, "", where, f.named("TOKEN"))
	}
	return 0
}

// rename gives what was found since its final names.
func (f *tokenFinder) rename(since int, label, base string) {
	for i := since; i < len(f.found); i++ {
		f.found[i].Label, f.found[i].Base = label, base
	}
}

// address looks at a URL: user and password, path and query, all as they are written.
func (f *tokenFinder) address(field, where string, span textSpan, text string) {
	v := span.of(text)
	rest := strings.Index(v, "://")
	if rest < 0 {
		return
	}
	at := span.start + rest + 3
	end := at + len(text[at:span.end])
	if n := strings.IndexAny(text[at:span.end], "/?#"); n >= 0 {
		end = at + n
	}
	if host := strings.LastIndexByte(text[at:end], '@'); host >= 0 {
		user := textSpan{at, at + host}
		if colon := strings.IndexByte(user.of(text), ':'); colon >= 0 {
			user.start += colon + 1
			if p := user.of(text); len(p) >= passwordMin && !ordinaryWord(p) && !placeholder(p) {
				f.found = append(f.found, entryToken{field, user, "", where + ", its password", f.named("PASSWORD"), f.clear})
			}
		} else {
			f.take(field, text, user, false, "", where+", its user", f.named("TOKEN"))
		}
	}
	query := span.end
	if n := strings.IndexAny(text[end:span.end], "?#"); n >= 0 {
		query = end + n
	}
	for start := end; start < query; {
		stop := start + 1
		for stop < query && text[stop] != '/' {
			stop++
		}
		f.take(field, text, textSpan{start + 1, stop}, false, "", where+", its path", f.named("TOKEN"))
		start = stop
	}
	for start := query + 1; start < span.end; {
		stop := start
		for stop < span.end && text[stop] != '&' && text[stop] != '#' {
			stop++
		}
		if key, _, ok := strings.Cut(text[start:stop], "="); ok {
			f.take(field, text, textSpan{start + len(key) + 1, stop}, secretName(key), key, where+" ("+quoteClip(key)+")", f.named(key))
		}
		start = stop + 1
	}
}

func isHTTPScheme(s string) bool {
	return len(s) > 8 && (strings.EqualFold(s[:7], "http://") || strings.EqualFold(s[:8], "https://"))
}

func isVariableName(s string) bool {
	return s != "" && strings.Trim(s, tokenLetters) == "" && (s[0] < '0' || s[0] > '9') && s[0] != '.'
}

// placeholder reports what a README puts where the token goes.
func placeholder(v string) bool {
	n := nameWords(v)
	return strings.ContainsAny(v, "<>") || strings.Contains(v, "${") || strings.HasPrefix(n, "YOUR") || strings.HasPrefix(n, "MY_") || strings.HasPrefix(n, "ENTER_") || strings.HasPrefix(n, "INSERT_") || strings.HasPrefix(n, "REPLACE") ||
		strings.Contains(n, "_YOUR_") || strings.HasSuffix(n, "_HERE") || strings.Contains(v, "...") || strings.Contains(v, "…") || strings.Contains(strings.ToLower(v), "xxxx")
}

// serverWord is a server's name as the beginning of a variable's name.
func serverWord(name string) string {
	w := nameBase(name)
	if w == "" || w[0] >= '0' && w[0] <= '9' {
		w = "MCP_" + w
	}
	return strings.TrimRight(w[:min(len(w), 64)], "_")
}

// nameBase makes a variable's name of any: capitals, digits and single _.
func nameBase(name string) string {
	words := strings.FieldsFunc(nameWords(name), func(r rune) bool { return !(r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') })
	w := strings.Join(words, "_")
	return w[:min(len(w), 64)]
}

// fieldText gives the text of a field as entryToken names it.
func fieldText(e serverEntry, field string) string {
	if k, ok := strings.CutPrefix(field, "env."); ok {
		return e.Env[k]
	}
	if k, ok := strings.CutPrefix(field, "headers."); ok {
		return e.Headers[k]
	}
	if field == "url" {
		return e.URL
	}
	for i, arg := range e.Args {
		if field == fmt.Sprintf("args[%d]", i) {
			return arg
		}
	}
	return ""
}

// value is the secret itself, of the entry it was found in.
func (t entryToken) value(e serverEntry) secret { return secret(t.Span.of(fieldText(e, t.Field))) }

// putTexts gives e with a text in the place of each token; texts are in the order of tokens. e stays as it is.
func putTexts(e serverEntry, tokens []entryToken, texts []string) serverEntry {
	e.Args, e.Env, e.Headers = slices.Clone(e.Args), maps.Clone(e.Env), maps.Clone(e.Headers)
	order := make([]int, len(tokens))
	for i := range order {
		order[i] = i
	}
	sortBy(order, func(a, b int) int { return tokens[b].Span.start - tokens[a].Span.start }) // the last first: places before it stay
	for _, i := range order {
		t := tokens[i]
		old := fieldText(e, t.Field)
		text := old[:t.Span.start] + texts[i] + old[t.Span.end:]
		if k, ok := strings.CutPrefix(t.Field, "env."); ok {
			e.Env[k] = text
		} else if k, ok := strings.CutPrefix(t.Field, "headers."); ok {
			e.Headers[k] = text
		} else if t.Field == "url" {
			e.URL = text
		}
		for n := range e.Args {
			if t.Field == fmt.Sprintf("args[%d]", n) {
				e.Args[n] = text
			}
		}
	}
	return e
}

// entrySecrets gives the secret values that stand in an entry itself. A reference is none: its value is the vault's or the
// environment's.
func entrySecrets(e serverEntry) []namedSecret {
	var out []namedSecret
	for _, t := range entryTokens(e) {
		label := t.Label
		if label == "" {
			label, _, _ = strings.Cut(t.Field, "[")
		}
		v := t.value(e)
		out = append(out, namedSecret{e.Name + "/" + label, v})
		if plain := unescaped(v.reveal()); plain != v.reveal() {
			out = append(out, namedSecret{e.Name + "/" + label, secret(plain)})
		}
	}
	return out
}

// shownAddress is an entry's address for a consent: secrets in it stand as a mark that an address may hold everywhere.
func shownAddress(e serverEntry) string {
	tokens := entryTokens(serverEntry{Name: e.Name, URL: e.URL})
	texts := make([]string, len(tokens))
	for i := range texts {
		texts[i] = "(secret)"
	}
	return putTexts(serverEntry{URL: e.URL}, tokens, texts).URL
}

// maskedEntry is an entry for a list or a log, where such values are nobody's business. A consent shows arguments as they are.
func maskedEntry(e serverEntry) serverEntry {
	tokens := entryTokens(e)
	texts := make([]string, len(tokens))
	for i := range texts {
		texts[i] = "[secret]"
	}
	return putTexts(e, tokens, texts)
}

// ownCredential reports an entry that brings its own Authorization: no token is sent then, and no login helps.
func ownCredential(e serverEntry) bool {
	u, err := url.Parse(e.URL)
	return hasAuthorization(e.Headers) || err == nil && u.User != nil
}

func hasAuthorization(headers map[string]string) bool {
	for name := range headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}
