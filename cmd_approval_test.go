package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// done wants a command line to end well and to say the texts.
func (c cliRun) done(texts ...string) {
	c.t.Helper()
	c.ok()
	c.outHas(texts...)
}

func approvalTestList(t *testing.T, r *cliRig) (doc struct {
	Counts  bool         `json:"counts"`
	Presets []presetJSON `json:"presets"`
}) {
	t.Helper()
	out := r.tai("--json", "approval", "list")
	out.ok()
	if err := json.Unmarshal([]byte(out.out), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// POL-10 from the command line: a grant covers what it says, and nothing after it is revoked; a deny wins over it in every mode (POL-02).
func TestPOL10CLIGrant(t *testing.T) {
	r := newCLIRig(t)
	model := func(command string) policyForecast { // what a model's call would meet
		t.Helper()
		out := r.tai("--json", "--permission-mode", "prompt", "tools", "call", "policy_check", `{"tool":"shell_run","args":{"command":`+string(appendJSONString(nil, command))+`}}`)
		out.ok()
		var doc struct{ StructuredContent policyForecast }
		if err := json.Unmarshal([]byte(out.out), &doc); err != nil {
			t.Fatal(err)
		}
		return doc.StructuredContent
	}
	r.tai("approval", "grant", "shell_run", "--command", "go test").fails(exitRefused, "nobody to ask", "--yes")
	r.tai("--permission-mode", "read-only", "approval", "grant", "shell_run", "--yes").fails(exitRefused, "read-only")
	r.tai("approval", "list").done("no presets")
	r.tai("approval", "grant", "shell_run", "--command", " go   test ", "--yes").done(`granted shell_run with the command "go test" and any further arguments`)
	r.tai("approval", "grant", "shell_run", "--command", "go test", "--yes").ok() // twice is once
	list := approvalTestList(t, r)
	if len(list.Presets) != 1 || !list.Counts || !list.Presets[0].Counts || list.Presets[0].Created == "" {
		t.Fatalf("%+v", list)
	}
	id := list.Presets[0].ID
	for command, want := range map[string]string{"go test ./...": ruleAllow + id, "go build": ruleNobody, "go test; rm x": ruleNobody} {
		if f := model(command); f.Rule != want {
			t.Errorf("%s: %+v, want %s", command, f, want)
		}
	}
	r.tai("approval", "deny", "shell_run", "--command", "go test").done("denied shell_run")
	for _, mode := range []string{"read-only", "prompt", "allow", "danger-full-access"} {
		r.tai("--permission-mode", mode, "tools", "call", "shell_run", "command=ls && go test").fails(exitRefused, "deny preset p-")
	}
	deny := approvalTestList(t, r).Presets[1].ID
	for _, words := range [][]string{{"file_write", "--arg", "pth=x"}, {"file_write", "--command", "rm"}, {"shell_run", "--arg", "timeout_s=5"}, {"shell_*", "--arg", "pth=x"}} {
		r.tai(append([]string{"approval", "deny"}, words...)...).fails(exitUsage, "takes these arguments as text") // a deny that fits nothing
	}
	other := r.tai("approval", "deny", "file_*", "--arg", "path=secret/*")
	other.errHas("note: not of ", "file_move", "no such text")
	r.tai("approval", "revoke", approvalTestList(t, r).Presets[2].ID, "--yes").ok()
	r.tai("approval", "revoke", deny).fails(exitRefused, "nobody to ask") // it widens
	r.tai("approval", "revoke", deny, "--yes").ok()
	r.tai("approval", "revoke", id).ok()
	r.tai("approval", "revoke", id).fails(exitFailed, "no such preset")
	if f := model("go test"); f.Rule != ruleNobody {
		t.Errorf("revoked: %+v", f)
	}
}

// Grants that no call could fit, or that would cover too much, are refused with the way out; a bridged tool's is bound to its definition.
func TestPOL10CLIBridged(t *testing.T) {
	r := newCLIRig(t)
	r.tai(fakeWords(t, "fake", fakeStdio{})...).ok()
	for _, tc := range []struct {
		words []string
		exit  int
		text  string
	}{
		{[]string{"*"}, exitUsage, "every bridged tool"}, {[]string{"m*"}, exitUsage, "every bridged tool"}, {[]string{"nothing"}, exitFailed, "no such tool"},
		{[]string{"file_read", "--arg", "nothing=*"}, exitUsage, "these arguments"}, {[]string{"file_read", "--command", "ls"}, exitUsage, "these arguments"},
		{[]string{"shell_run", "--command", " "}, exitUsage, "--command"}, {[]string{"shell_run", "--arg", "x"}, exitUsage, `"x"`}, {[]string{"shell_run", "--pin", "12"}, exitUsage, "--pin"},
		{[]string{"mcp:fake/none"}, exitRefused, "no granted tool"}, {[]string{"mcp:fake/*", "--pin", strings.Repeat("0", 64)}, exitRefused, "no granted tool"}, {[]string{"mcp_fake_echo", "--command", "ls"}, exitUsage, "command line"},
	} {
		r.tai(append([]string{"approval", "grant", "--yes"}, tc.words...)...).fails(tc.exit, tc.text)
	}
	r.tai("approval", "grant", "mcp_fake_echo", "--arg", "text=a*", "--yes").done(`mcp:fake/echo as it is defined now where "text" is "a*"`)
	r.tai("approval", "grant", "mcp:fake/*", "--yes").ok()
	list := approvalTestList(t, r).Presets
	if len(list) < 3 {
		t.Fatalf("%+v", list)
	}
	for _, ps := range list {
		if !isSHA256(ps.Pin) || strings.Contains(ps.Tool, "*") {
			t.Errorf("not bound: %+v", ps)
		}
	}
	digest := r.tai("tools", "digest", "mcp_fake_echo", `{"a":1}`).out
	r.tai("approval", "digest", "mcp_fake_echo", `{"a":1}`).done(digest + "--approve-scoped mcp:fake/echo:" + digest)
}

// CFG-02: a file that came with a folder counts only after a person saw it, and a later change of somebody else's does not count again.
func TestCFG02CLIConfirm(t *testing.T) {
	r := newCLIRig(t)
	dir := filepath.Join(r.dir, ".tai")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(approvalsName, presetTestApprovals)
	put(configName, `{"version":1,"permission_mode":"danger-full-access"}`)
	out := r.tai("approval", "list")
	out.done("p-3f2a  allow", "does not count")
	if !strings.Contains(out.err, "tai approval list --confirm") {
		t.Errorf("no way out: %s", out.err)
	}
	r.tai("approval", "list", "--confirm").fails(exitRefused, "nobody to ask")
	r.tai("approval", "grant", "file_read", "--permission-mode", "prompt").fails(exitRefused, "nobody to ask")
	if approvalTestList(t, r).Counts {
		t.Error("a refused question made the file count")
	}
	r.tai("approval", "list", "--confirm", "--yes").ok()
	if list := approvalTestList(t, r); !list.Counts || !list.Presets[0].Counts {
		t.Errorf("%+v", list)
	}
	put(approvalsName, strings.Replace(presetTestApprovals, "docs/*", "*", 1))
	if approvalTestList(t, r).Counts {
		t.Error("a changed file counts")
	}
	put(approvalsName, presetTestApprovals[:50])
	for _, words := range [][]string{{"approval", "list"}, {"approval", "grant", "file_read", "--yes"}, {"tools", "list"}, {"version"}} {
		if words[0] == "version" {
			r.tai(words...).ok()
			continue
		}
		r.tai(words...).fails(exitUsage, filepath.Join(dir, approvalsName)) // POL-09
	}
}
