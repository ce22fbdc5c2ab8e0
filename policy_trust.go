// This file owns what a workspace says of the MCP servers that it uses: the form of .tai/trust.json, and what it decides about one tool. It
// only ever narrows: whatever it lets through still meets pins, lists, presets and the mode. It opens no file and asks nobody.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// trustName is the file in a workspace's .tai folder.
const trustName = "trust.json"

const (
	policyFileMax   = 1 << 20 // bytes of a policy file, of each kind
	trustPatternMax = 1000    // patterns of a trust file
	trustNoteMax    = 500     // bytes of one note
)

// The rules that trust decides by. Deny and allow are followed by the pattern.
const (
	ruleTrustDeny        = "trust deny "
	ruleTrustAllow       = "trust allow "
	ruleTrustAllowList   = "trust allow list"
	ruleTrustUnconfirmed = "trust not confirmed"
	ruleTrustFile        = "trust file" // it cannot be relied on
	trustRulePrefix      = "trust "     // what all of them begin with
)

// trustEntry is what the file says of the servers that its name fits, exact or with *. Deny shuts tools out. Allow, where it is not
// empty, shuts all others out. Both are exact names or patterns with *.
type trustEntry struct {
	Allow   []string `json:"allow,omitempty"`
	Deny    []string `json:"deny,omitempty"`
	Note    string   `json:"note,omitempty"`
	Created string   `json:"created,omitempty"`
}

// trustRules is a trust file as read; it is never changed. Where it is not Confirmed its allow lists allow nothing.
type trustRules struct {
	Servers   map[string]trustEntry
	Confirmed bool
}

// trustVerdict is what trust says of one tool. Rule is "" where it says nothing, else Deny tells whether the tool is shut out.
type trustVerdict struct {
	Deny               bool
	Rule, Reason, Hint string
}

// names gives the names in the file in order.
func (r *trustRules) names() []string {
	if r == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.Servers))
}

// fitting gives the names in the file that fit a server, in order.
func (r *trustRules) fitting(server string) []string {
	return slices.DeleteFunc(r.names(), func(name string) bool { return !globMatch(name, server) })
}

// judge says what the file makes of a tool, by its own name on the server, letter by letter. Of several entries that fit the server each one
// narrows: a deny of any counts, and the allow list of each must have the tool. A nil r says nothing.
func (r *trustRules) judge(server, tool string) trustVerdict {
	fitting := r.fitting(server)
	for _, name := range fitting {
		if i := trustMatch(r.Servers[name].Deny, tool); i >= 0 {
			pattern := r.Servers[name].Deny[i]
			return trustVerdict{Deny: true, Rule: ruleTrustDeny + trustShown(pattern), Reason: fmt.Sprintf(".tai/%s denies %s of %s", trustName, trustShown(pattern), trustShown(name)),
				Hint: fmt.Sprintf("tai mcp trust revoke --server %s --tools %s lifts it", quoteWord(name), quoteWord(pattern))}
		}
	}
	var v trustVerdict
	for _, name := range fitting {
		allow := r.Servers[name].Allow
		i := trustMatch(allow, tool)
		switch {
		case len(allow) == 0:
		case !r.Confirmed:
			return trustVerdict{Deny: true, Rule: ruleTrustUnconfirmed, Reason: fmt.Sprintf(".tai/%s allows only some tools of %s, and as nobody here confirmed this file it allows none", trustName, trustShown(name)),
				Hint: "tai mcp trust list --confirm shows the file and asks"}
		case i < 0:
			return trustVerdict{Deny: true, Rule: ruleTrustAllowList, Reason: fmt.Sprintf(".tai/%s allows only other tools of %s", trustName, trustShown(name)),
				Hint: fmt.Sprintf("tai mcp trust allow --server %s --tools %s allows it", quoteWord(name), quoteWord(tool))}
		case v.Rule == "":
			v = trustVerdict{Rule: ruleTrustAllow + trustShown(allow[i]), Reason: fmt.Sprintf(".tai/%s allows %s of %s", trustName, trustShown(allow[i]), trustShown(name))}
		}
	}
	return v
}

// trustMatch gives the place of the first pattern that fits, -1 for none.
//
//go:noinline for size: it is called in many places
func trustMatch(patterns []string, tool string) int {
	return slices.IndexFunc(patterns, func(p string) bool { return globMatch(p, tool) })
}

// trustShown is a name or pattern of the file, safe to show: in quotes where it would not stand as one plain word.
func trustShown(s string) string {
	s = clip(s, 120)
	if quoted := strconv.Quote(s); visibleLine(s) != s || s == "" || slices.ContainsFunc([]rune(s), func(r rune) bool { return r == ' ' || r == '"' }) {
		return visibleLine(quoted)
	}
	return s
}

// parseTrust reads a trust file. passed counts the entries whose allow lists do not count because it is not confirmed; denies always count.
func parseTrust(b []byte, confirmed bool) (rules *trustRules, passed int, err error) {
	var file struct {
		Version int                   `json:"version"`
		Servers map[string]trustEntry `json:"servers"`
	}
	if err := decodeStrict(b, &file); err != nil {
		return nil, 0, err
	}
	if file.Version != 1 {
		return nil, 0, errorf("version %d is not known", file.Version)
	}
	rules = &trustRules{Servers: file.Servers, Confirmed: confirmed}
	patterns := 0
	for _, name := range rules.names() {
		e := file.Servers[name]
		switch {
		case name == "":
			return nil, 0, newError("a server has no name")
		case slices.Contains(e.Allow, "") || slices.Contains(e.Deny, ""):
			return nil, 0, errorf("server %s: a tool has no name", trustShown(name))
		case len(e.Note) > trustNoteMax:
			return nil, 0, errorf("server %s: its note has more than %d bytes", trustShown(name), trustNoteMax)
		}
		patterns += len(e.Allow) + len(e.Deny)
		if len(e.Allow) > 0 && !confirmed {
			passed++
		}
	}
	if patterns > trustPatternMax {
		return nil, 0, errorf("it has more than %d tools", trustPatternMax)
	}
	return rules, passed, nil
}

// trustText writes entries as a file, which must be one that tai can read again.
func trustText(servers map[string]trustEntry) ([]byte, error) {
	text, err := policyText(struct {
		Version int                   `json:"version"`
		Servers map[string]trustEntry `json:"servers"`
	}{1, servers})
	if err == nil {
		_, _, err = parseTrust(text, true)
	}
	return text, err
}

// policyText lays out a policy file. It writes <, > and & as they are, since people read it.
func policyText(file any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(file); err != nil {
		return nil, err
	}
	if b.Len() > policyFileMax {
		return nil, errorf("it would have more than %d bytes", policyFileMax)
	}
	return b.Bytes(), nil
}
