package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type trustListDoc struct {
	Path    string
	Counts  bool
	Servers []trustJSON
}

func (r *cliRig) trustList() trustListDoc {
	r.t.Helper()
	got := r.tai("--json", "mcp", "trust", "list")
	got.ok()
	return cliJSON[trustListDoc](got)
}

// inspected gives what tai mcp trust inspect says of each tool, as decision and rule.
func (r *cliRig) inspected(words ...string) map[string]string {
	r.t.Helper()
	got := r.tai(append([]string{"--json", "mcp", "trust", "inspect"}, words...)...)
	got.ok()
	out := map[string]string{}
	for _, t := range cliJSON[struct{ Tools []inspected }](got).Tools {
		out[t.Tool] = t.Decision + ": " + t.Rule
	}
	return out
}

// From allow to audit: what widens asks, what narrows does not, the bridge obeys in every mode, and the run logs tell of it.
func TestCLITrust(t *testing.T) {
	r := newCLIRig(t)
	const server = "my files"
	names := []string{"read_a", "read_b", "write_a", "odd/na me"}
	r.addFake(server, fakeStdio{Tools: trustTools(t, names...), On: map[string][]fakeStep{"tools/call": {{Reply: `{"content":[{"type":"text","text":"ran"}]}`}}}})
	r.tai("mcp", "trust", "list").done("says nothing of any MCP server")
	r.tai("mcp", "trust", "allow", "--server", server, "--tools", "read_*").fails(exitRefused, "nobody to ask", "--yes")
	r.tai("--permission-mode", "read-only", "mcp", "trust", "allow", "--server", server, "--tools", "read_*", "--yes").fails(exitRefused, "read-only")
	r.tai("mcp", "trust", "allow", "--tools", "read_*", "odd/na me", "--server", server, "--note", "reads only", "--yes").done(`"my files": allowed read_*, "odd/na me"`)
	r.tai("mcp", "trust", "deny", "--server", server, "--tools", "read_b").done("denied read_b") // narrows: no question
	slip := r.tai("mcp", "trust", "deny", "--server", server, "--tools", "raed_a", "write_*")
	slip.errHas("note: no tool of \"my files\", as last seen, fits raed_a")
	slip.done("denied raed_a")
	r.tai("mcp", "trust", "revoke", "--server", server, "--tools", "raed_a", "write_*", "--yes").ok()
	r.tai("mcp", "trust", "deny", "--server", "file*", "--tools", "x").errHas("note: no server that is stored fits file*")
	r.tai("mcp", "trust", "revoke", "--server", "file*", "--yes").ok()
	if doc := r.trustList(); !doc.Counts || len(doc.Servers) != 1 || !slices.Equal(doc.Servers[0].Allow, []string{"read_*", "odd/na me"}) || !slices.Equal(doc.Servers[0].Deny, []string{"read_b"}) ||
		doc.Servers[0].Note != "reads only" || doc.Servers[0].Created == "" || !doc.Servers[0].Counts || doc.Path != filepath.Join(r.dir, ".tai", trustName) {
		t.Fatalf("%+v", doc)
	}
	r.tai("mcp", "trust", "list").done(`"my files"`, `allows only read_*, "odd/na me"`, "denies read_b", "note: reads only")
	for _, mode := range []string{"read-only", "prompt", "allow", "danger-full-access"} {
		r.tai("--permission-mode", mode, "mcp", "call", server, "write_a").fails(exitRefused, "trust allow list", "tai mcp trust allow")
		r.tai("--permission-mode", mode, "mcp", "call", server, "read_b").fails(exitRefused, "trust deny read_b")
	}
	r.tai("mcp", "call", server, "read_a").done("ran")
	r.tai("mcp", "call", server, "odd/na me").done("ran")
	want := map[string]string{"read_a": "allow: mode danger-full-access", "read_b": "deny: trust deny read_b", "write_a": "deny: trust allow list", "odd/na me": "allow: mode danger-full-access"}
	for _, words := range [][]string{{"--server", server}, {"--server", server, "--stored"}} {
		for tool, got := range r.inspected(append(words, "--yolo")...) {
			if got != want[tool] {
				t.Errorf("inspect %q: %s: %s, want %s", words, tool, got, want[tool])
			}
		}
	}
	if got := r.inspected("--server", server, "--tools", "write_*", "read_b"); len(got) != 2 {
		t.Errorf("inspect of some: %v", got)
	}
	r.tai("mcp", "trust", "inspect", "--server", server).done("write_a  deny (trust allow list)", "read_a  deny (nobody to ask)", "[trust allow read_*]")
	r.tai("mcp", "tools", server).done("write_a  [denied: trust allow list: ")
	r.tai("tools", "call", "mcp_tools").done("write_a as mcp_my_files_write_a (denied)")
	r.tai("tools", "call", "policy_check", `{"tool":"mcp:my files/write_a"}`).done("mcp:my files/write_a: deny", "rule: trust allow list")
	r.trustRevokes(server)
	audit := func(words ...string) []trustEvent {
		t.Helper()
		got := r.tai(append([]string{"--json", "mcp", "trust", "audit", "--limit", "100"}, words...)...)
		got.ok()
		return cliJSON[struct{ Events []trustEvent }](got).Events
	}
	count := map[string]int{}
	for _, e := range audit("--server", server) {
		count[e.What+" "+strings.Join(e.Tools, ",")+" "+e.Rule]++
	}
	for what, n := range map[string]int{"refused write_a trust allow list": 4, "refused read_b trust deny read_b": 4, "let through read_a trust allow read_*": 1, "let through odd/na me trust allow odd/na me": 0,
		`let through odd/na me trust allow "odd/na me"`: 1, "trust-allow (denied) read_* nobody to ask": 1, "trust-allow (denied) read_* mode read-only": 1, "trust-allow read_*,odd/na me --yes": 1, "trust-deny read_b ": 1, "trust-revoke read_b --yes": 1} {
		if count[what] != n {
			t.Errorf("audit: %q %d times, want %d in %v", what, count[what], n, count)
		}
	}
	r.tai("mcp", "trust", "audit", "--tools", "read_b", "--limit", "100").done("refused", "(trust deny read_b)", "trust-deny")
	if other := audit("--server", "other"); len(other) != 0 {
		t.Errorf("audit of another server: %+v", other)
	}
}

// trustRevokes takes everything back again: only what lets more through asks.
func (r *cliRig) trustRevokes(server string) {
	r.t.Helper()
	revoke := func(words ...string) cliRun {
		return r.tai(append([]string{"mcp", "trust", "revoke", "--server", server}, words...)...)
	}
	revoke("--tools", "read_b").fails(exitRefused, "nobody to ask")
	revoke("--tools", "read_").fails(exitFailed, "neither allows nor denies")
	revoke("--tools", "odd/na me").ok() // the list that stays is narrower
	revoke("--tools", "read_*").fails(exitRefused, "nobody to ask")
	revoke("--tools", "read_b", "--yes").ok()
	r.tai("mcp", "call", server, "read_b").done("ran")
	revoke().fails(exitRefused, "nobody to ask")
	revoke("--yes").done("revoked all that it said")
	revoke("--yes").fails(exitFailed, "says nothing of")
	r.tai("mcp", "call", server, "write_a").done("ran")
}

// A file that somebody else wrote: its denies count, what it allows does not before a person has seen it, and an allow beside it asks with its content.
func TestCLITrustForeign(t *testing.T) {
	r := newCLIRig(t)
	r.addFake("s", fakeStdio{Tools: trustTools(t, "a", "b"), On: map[string][]fakeStep{"tools/call": {{Reply: `{"content":[{"type":"text","text":"ran"}]}`}}}})
	r.trustPut(`{"version":1,"servers":{"s":{"allow":["a"]}}}`)
	refused := r.tai("--yolo", "mcp", "call", "s", "a")
	refused.fails(exitRefused, ruleTrustUnconfirmed, "tai mcp trust list --confirm")
	refused.errHas("trust.json: what it allows of 1 server is passed over")
	r.tai("mcp", "trust", "list").done("does not count")
	r.tai("mcp", "trust", "list", "--confirm").fails(exitRefused, "nobody to ask")
	r.tai("mcp", "trust", "list", "--confirm", "--yes").done("allows only a")
	if doc := r.trustList(); !doc.Counts {
		t.Errorf("%+v", doc)
	}
	r.tai("mcp", "call", "s", "a").done("ran")
	r.tai("mcp", "call", "s", "b").fails(exitRefused, ruleTrustAllowList)
	r.tai("tools", "call", "file_write", "--yolo", "path=.tai/trust.json", "content:={}").fails(exitFailed, "no file tool may change in any mode") // ROO-06
	r.trustPut(`{"version":1,"servers":{"s":{"deny":["b"]}}}`)
	quiet := r.tai("mcp", "call", "s", "b")
	quiet.fails(exitRefused, "trust deny b")
	if strings.Contains(quiet.err, "passed over") {
		t.Errorf("a deny is not passed over: %s", quiet.err)
	}
	r.trustPut(`{"version":1,"servers":{"s":{"deny":"b"}}}`)
	r.tai("mcp", "call", "s", "a").fails(exitUsage, "trust.json", "a lost deny is worse") // POL-09
}

func (r *cliRig) trustPut(text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Join(r.dir, ".tai"), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, ".tai", trustName), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// Words that make no sense are refused with the way out, and change nothing.
func TestCLITrustWords(t *testing.T) {
	r := newCLIRig(t)
	for _, tc := range []struct {
		words []string
		exit  int
		text  string
	}{
		{[]string{"allow", "--tools", "a", "--yes"}, exitUsage, "no server is named"},
		{[]string{"allow", "--server", "", "--tools", "a", "--yes"}, exitUsage, "no server is named"},
		{[]string{"allow", "--server", "s", "--yes"}, exitUsage, "no tool is named"},
		{[]string{"deny", "--server", "s"}, exitUsage, "no tool is named"},
		{[]string{"deny", "--server", "s", "--tools="}, exitUsage, "a tool has no name"},
		{[]string{"deny", "--server", "s", "x"}, exitUsage, "stands without --tools"},
		{[]string{"deny", "--server", "s", "--tools", "x", "--note", strings.Repeat("n", trustNoteMax+1)}, exitUsage, "note"},
		{[]string{"revoke", "--server", "s"}, exitFailed, "says nothing of"},
		{[]string{"inspect", "--server", "s"}, exitFailed, "no such MCP server"},
		{[]string{"inspect"}, exitUsage, "no server is named"},
		{[]string{"audit", "--limit", "0"}, exitUsage, "--limit"},
		{[]string{"permit"}, exitUsage, "no such command"},
		{[]string{"inspect", "files"}, exitUsage, "hint: --server files"},
	} {
		r.tai(append([]string{"mcp", "trust"}, tc.words...)...).fails(tc.exit, tc.text)
	}
	if _, err := os.Stat(filepath.Join(r.dir, ".tai")); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
}
