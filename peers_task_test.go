//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One task from end to end against third parties alone: a mock of the model APIs on either wire, and a server of files. tai looks, edits by a tool of
// its own, writes by the server's, tests, and commits; the person is asked before each deed.
func peersTask(t *testing.T, p *peers) {
	for _, wire := range bothWires {
		t.Run(string(wire), func(t *testing.T) {
			t.Parallel()
			h := p.newHome(t)
			git := func(words ...string) string {
				t.Helper()
				r := h.program(t, nil, []string{"GIT_CONFIG_NOSYSTEM=1"}, "git", words...)
				if r.code != 0 {
					t.Fatalf("git %q: exit %d: %s%s", words, r.code, r.out, r.err)
				}
				return r.out
			}
			for name, text := range map[string]string{"sum.sh": "echo $(($1 - $2))\n", "test.sh": `[ "$(sh sum.sh 2 3)" = 5 ] && echo PASS || { echo FAIL; exit 1; }` + "\n"} {
				if err := os.WriteFile(filepath.Join(h.work, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, words := range []string{"init -q", "config user.name n", "config user.email n@example.invalid", "add .", "commit -qm begin"} {
				git(strings.Fields(words)...)
			}
			h.add(t, peersServer{name: "files", bin: "mcp-server-filesystem", args: []string{"DIR"}})
			base := h.peersModel(t, peersTaskScript(h.work))
			env := wireEnv(wire, base)
			term := h.onTerminal(t, env, "make sum.sh add")
			for _, deed := range []string{"sum.sh", "CHANGES", "sh test.sh", "Let sum.sh add"} {
				term.shows(deed)
				term.shows("your answer (")
				term.keys("y\n")
			}
			term.shows("sum.sh adds now.")
			term.finish(t, 0)
			if log, status := git("log", "--format=%s", "--name-status"), git("status", "--porcelain"); !strings.HasPrefix(log, "Let sum.sh add\n\nA\tCHANGES\nM\tsum.sh\n") || status != "" {
				t.Errorf("log %q, status %q", log, status)
			}
			for name, want := range map[string]string{"sum.sh": "echo $(($1 + $2))\n", "CHANGES": "sum.sh adds.\n"} {
				if b, err := os.ReadFile(filepath.Join(h.work, name)); err != nil || string(b) != want {
					t.Errorf("%s has %q, %v", name, b, err)
				}
			}
			results := peersResultsOpenAI
			if wire == wireAnthropic {
				results = peersResultsAnthropic
			}
			told := results(t, peersLast(t, base))
			for i, want := range []string{"branch", "test.sh", "$1 - $2", "sum.sh", "CHANGES", "PASS", "Let sum.sh add"} {
				if len(told) != 7 || !strings.Contains(told[i], want) {
					t.Errorf("result %d of %d: %q, want %q in it", i+1, len(told), told, want)
				}
			}
		})
	}
}

// peersTaskScript answers by the last results; the first that fits is taken.
func peersTaskScript(work string) []map[string]any {
	call := func(name, args string) any { return map[string]any{"name": name, "arguments": args} }
	after := func(result string, calls ...any) map[string]any {
		return map[string]any{"match": map[string]any{"toolResultContains": result}, "response": map[string]any{"toolCalls": calls}}
	}
	return []map[string]any{
		{"match": map[string]any{"toolResultContains": "Let sum.sh add"}, "response": map[string]any{"content": "sum.sh adds now."}},
		after("PASS", call("git_commit", `{"message":"Let sum.sh add","paths":["sum.sh","CHANGES"]}`)),
		after("Successfully wrote", call("shell_run", `{"command":"sh test.sh"}`)),
		after("$1 - $2", call("file_edit", `{"path":"sum.sh","old":"$1 - $2","new":"$1 + $2"}`), call("mcp_files_write_file", `{"path":"`+filepath.Join(work, "CHANGES")+`","content":"sum.sh adds.\n"}`)),
		{"match": map[string]any{"userMessage": "make sum.sh add", "hasToolResult": false}, "response": map[string]any{"content": "I look.", "toolCalls": []any{
			call("git_status", `{}`), call("text_search", `{"pattern":"sum\\.sh"}`), call("file_read", `{"path":"sum.sh"}`)}}},
	}
}
