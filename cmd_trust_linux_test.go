package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// At a terminal: allow shows what it lets through and what that shuts out, revoke what it lifts, and a file that somebody else wrote is shown
// whole before it counts. A no changes nothing. Names are in quotes and cannot imitate the question.
func TestTrustPty(t *testing.T) {
	r := newCLIRig(t)
	const question = "your answer (y n w): "
	ask := func(answer string, code int, shows []string, words ...string) {
		t.Helper()
		p := r.pty(t, newTermPty(t), false, append([]string{"mcp", "trust"}, words...)...)
		p.await(question)
		p.shows(shows...)
		p.keys(answer + "\n")
		p.exit(code)
	}
	allow := []string{"allow", "--server", "my files", "--tools", "read_*", "x\x1b[2J\ny"}
	shows := []string{`let these tools of the server "my files" through in this workspace?`, "| read_*", `"\"x\\x1b[2J\\ny\""`, "all its other tools are refused here from then on"}
	ask("n", exitRefused, shows, allow...)
	if _, err := os.Stat(filepath.Join(r.dir, ".tai", trustName)); !os.IsNotExist(err) {
		t.Fatalf("a no wrote the file: %v", err)
	}
	ask("y", exitDone, shows, allow...)
	quiet := r.pty(t, newTermPty(t), false, "mcp", "trust", "deny", "--server", "my files", "--tools", "read_b")
	quiet.exit(exitDone)
	ask("y", exitDone, []string{"allowed so far", "| read_*", "denied, also after this", "| read_b", "also those that it adds later"}, "allow", "--server", "my files", "--tools", "*")
	ask("n", exitRefused, []string{"no longer refused", "| read_b"}, "revoke", "--server", "my files", "--tools", "read_b")
	if doc := r.trustList(); len(doc.Servers) != 1 || len(doc.Servers[0].Allow) != 3 || len(doc.Servers[0].Deny) != 1 {
		t.Fatalf("%+v", doc)
	}
	file := filepath.Join(r.dir, ".tai", trustName)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(b), `"read_b"`, `"nothing"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := []string{"changed since it counted last", "nothing", "the file"}
	ask("n", exitRefused, append(foreign, "somebody else wrote trust.json"), "allow", "--server", "web", "--tools", "fetch")
	ask("n", exitRefused, foreign, "list", "--confirm")
	if doc := r.trustList(); doc.Counts || len(doc.Servers) != 1 {
		t.Fatalf("after two noes: %+v", doc)
	}
	ask("y", exitDone, foreign, "list", "--confirm")
	if doc := r.trustList(); !doc.Counts {
		t.Fatalf("after a yes: %+v", doc)
	}
}
