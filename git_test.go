package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// gitRig is a workspace with git and a person's configuration of its own.
type gitRig struct {
	*toolsBox
	w    workspace
	root string
	env  []string
}

func newGitRig(t *testing.T, mode approvalMode) *gitRig {
	t.Helper()
	return newGitRigAt(t, mode, "")
}

// newGitRigAt has its workspace root in a folder below the base folder, which root names.
func newGitRigAt(t *testing.T, mode approvalMode, sub string) *gitRig {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		skipMissing(t, "needs git")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	filesWrite(t, home, map[string]string{".gitconfig": "[user]\n\tname = Ada Test\n\temail = ada@example.test\n[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n"})
	root := filepath.Join(base, sub)
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := openWorkspace(root)
	if err != nil {
		t.Fatal(err)
	}
	r := &gitRig{w: w, root: w.root, env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "USERPROFILE=" + home, "GIT_CONFIG_NOSYSTEM=1", "SYSTEMROOT=" + os.Getenv("SYSTEMROOT")}}
	environ := func() []string { return r.env }
	r.toolsBox = newToolsBox(t, mode, nil, append(gitTools(w, environ, runtime.GOOS, time.Now), inspectTools(w, environ, runtime.GOOS)...)...)
	return r
}

// git runs git as the person would.
func (r *gitRig) git(t *testing.T, args ...string) string {
	t.Helper()
	out, err := r.try(args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

func (r *gitRig) try(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = r.root, r.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// commitAll puts files into a new commit.
func (r *gitRig) commitAll(t *testing.T, message string, files map[string]string) {
	t.Helper()
	filesWrite(t, r.root, files)
	r.git(t, "add", "-A")
	r.git(t, "commit", "-q", "-m", message)
}

// doc reads the structured result of a call that went well and holds it to the tool's output schema.
func (r *gitRig) doc(t *testing.T, name, args string) (toolResult, map[string]any) {
	t.Helper()
	res := toolsRun(t, r.toolsBox, name, args)
	if res.IsError {
		t.Fatalf("%s %s: %s (%s)", name, args, res.Text, res.Hint)
	}
	for _, tl := range r.natives() {
		if tl.Name != name {
			continue
		}
		schema, err := compileSchema(tl.Output)
		if err == nil {
			err = schema.validate(res.Structured)
		}
		if err != nil {
			t.Errorf("%s %s: the result breaks its schema: %v", name, args, err)
		}
	}
	doc := map[string]any{}
	if err := json.Unmarshal(res.Structured, &doc); err != nil {
		t.Fatalf("%s %s: %q: %v", name, args, res.Structured, err)
	}
	return res, doc
}

// gitPaths gives "change path" of each entry of a list.
func gitPaths(list any) []string {
	out := []string{}
	items, _ := list.([]any)
	for _, item := range items {
		switch v := item.(type) {
		case string:
			out = append(out, v)
		case map[string]any:
			line := fmt.Sprint(v["path"])
			if v["change"] != nil {
				line = fmt.Sprint(v["change"], " ", line)
			}
			if v["from"] != nil {
				line += fmt.Sprint(" from ", v["from"])
			}
			out = append(out, line)
		}
	}
	return out
}

func TestGitStatus(t *testing.T) {
	t.Parallel()
	r := newGitRig(t, modeReadOnly)
	r.git(t, "init", "-q")
	if res, doc := r.doc(t, "git_status", `{}`); doc["branch"] != "main" || doc["head"] != nil || doc["clean"] != true || !strings.Contains(res.Text, "without commits yet") {
		t.Errorf("a fresh repository: %q %v", res.Text, doc)
	}
	r.commitAll(t, "one", map[string]string{"a": "1\n", "old name": strings.Repeat("long enough to be the same\n", 5), "gone": "x\n", "sub/deep": "y\n", "both": "z\n", ".gitignore": "ignored\n"})
	r.git(t, "mv", "old name", "new name")
	filesWrite(t, r.root, map[string]string{"a": "2\n", "both": "staged\n", "fresh/x": "1\n", "fresh/y": "2\n", "ünï\tcode": "1\n", "ignored": "1\n"})
	r.git(t, "add", "both")
	filesWrite(t, r.root, map[string]string{"both": "and changed\n"})
	if err := os.Remove(filepath.Join(r.root, "gone")); err != nil {
		t.Fatal(err)
	}
	res, doc := r.doc(t, "git_status", `{}`)
	for key, want := range map[string][]string{
		"staged": {"modified both", "renamed new name from old name"}, "changed": {"modified a", "modified both", "deleted gone"},
		"conflicts": {}, "untracked": {"fresh/", "ünï\tcode"},
	} {
		if got := gitPaths(doc[key]); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	for _, want := range []string{"branch main\n", "staged: 2\n", "renamed  old name -> new name\n", "changed, not staged: 3\n", "untracked: 2\n", `ünï\tcode`} {
		if !strings.Contains(res.Text, want) {
			t.Errorf("the text lacks %q:\n%s", want, res.Text)
		}
	}
	if _, doc := r.doc(t, "git_status", `{"path":"sub"}`); doc["clean"] != true {
		t.Errorf("a folder without changes: %v", doc)
	}
	if _, doc := r.doc(t, "git_status", `{"path":"gone"}`); !slices.Equal(gitPaths(doc["changed"]), []string{"deleted gone"}) {
		t.Errorf("a deleted file: %v", doc)
	}
	if _, doc := r.doc(t, "git_status", `{"path":"fresh"}`); !slices.Equal(gitPaths(doc["untracked"]), []string{"fresh/"}) {
		t.Errorf("an untracked folder: %v", doc)
	}
}

func TestGitBranches(t *testing.T) {
	t.Parallel()
	r := newGitRig(t, modeReadOnly)
	r.git(t, "init", "-q")
	r.commitAll(t, "one", map[string]string{"a": "1\n"})
	r.git(t, "branch", "base")
	r.git(t, "checkout", "-q", "-b", "side")
	r.git(t, "branch", "-q", "--set-upstream-to=base")
	r.commitAll(t, "theirs", map[string]string{"a": "theirs\n"})
	if _, doc := r.doc(t, "git_status", `{}`); doc["upstream"] != "base" || doc["ahead"] != 1.0 || doc["behind"] != 0.0 {
		t.Errorf("ahead: %v", doc)
	}
	r.git(t, "branch", "-q", "-D", "base")
	if res, doc := r.doc(t, "git_status", `{}`); doc["ahead"] != nil || !strings.Contains(res.Text, "upstream base is gone") {
		t.Errorf("upstream gone: %q %v", res.Text, doc)
	}
	filesWrite(t, r.root, map[string]string{"a": "put away\n"})
	r.git(t, "stash", "-q")
	r.git(t, "checkout", "-q", "main")
	r.commitAll(t, "ours", map[string]string{"a": "ours\n"})
	if out, err := r.try("merge", "side"); err == nil {
		t.Fatalf("the merge has no conflict: %s", out)
	}
	res, doc := r.doc(t, "git_status", `{}`)
	if doc["operation"] != "merge" || doc["stashes"] != 1.0 || !slices.Equal(gitPaths(doc["conflicts"]), []string{"modified by both a"}) || !strings.Contains(res.Text, "a merge is under way") {
		t.Errorf("in conflict: %q %v", res.Text, doc)
	}
	r.git(t, "merge", "--abort")
	r.git(t, "checkout", "-q", "--detach")
	if res, doc := r.doc(t, "git_status", `{}`); doc["branch"] != nil || !strings.HasPrefix(res.Text, "no branch, at commit ") {
		t.Errorf("detached: %q %v", res.Text, doc)
	}
	if _, doc := r.doc(t, "git_log", `{"rev":"main..side"}`); len(doc["commits"].([]any)) != 1 {
		t.Errorf("a range: %v", doc)
	}
}

func TestGitDiff(t *testing.T) {
	t.Parallel()
	r := newGitRig(t, modeReadOnly)
	r.git(t, "init", "-q")
	r.commitAll(t, "one", map[string]string{"a": "1\n2\n", "b": "1\n", "-odd": "1\n", "bin": "\x00\x01"})
	r.commitAll(t, "two", map[string]string{"b": "1\n2\n3\n"})
	if res, doc := r.doc(t, "git_diff", `{}`); res.Text != "no differences\n" || doc["files_changed"] != 0.0 {
		t.Errorf("nothing changed: %q %v", res.Text, doc)
	}
	filesWrite(t, r.root, map[string]string{"a": "1\nzwei\n", "-odd": "2\n", "bin": "\x00\x02"})
	r.git(t, "add", "--", "-odd")
	r.git(t, "config", "diff.noprefix", "true") // nothing of it changes the form
	r.git(t, "config", "color.ui", "always")
	r.git(t, "config", "diff.orderFile", "nowhere")
	for _, tc := range []struct {
		args  string
		files []string
		want  string
		not   string
	}{
		{`{}`, []string{"a", "bin"}, "\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+zwei\n", "odd"},
		{`{"stat":true}`, []string{"a", "bin"}, "+1 -1  a\n  binary  bin\n", "@@"},
		{`{"staged":true}`, []string{"-odd"}, "+++ b/-odd", "zwei"},
		{`{"rev":"HEAD"}`, []string{"-odd", "a", "bin"}, "+zwei", "\x1b"},
		{`{"rev":"HEAD~1..HEAD"}`, []string{"b"}, "+3\n", "zwei"},
		{`{"rev":"HEAD~1","path":"b"}`, []string{"b"}, "+3\n", "zwei"},
		{`{"rev":"HEAD~1","staged":true}`, []string{"-odd", "b"}, "+3\n", "zwei"},
		{`{"path":"a"}`, []string{"a"}, "+zwei", "bin"},
		{`{"path":"./-odd","rev":"HEAD"}`, []string{"-odd"}, "b/-odd", "zwei"},
		{`{"path":"b"}`, []string{}, "no differences\n", "zwei"},
	} {
		res, doc := r.doc(t, "git_diff", tc.args)
		if got := gitPaths(doc["files"]); !slices.Equal(got, tc.files) {
			t.Errorf("git_diff %s: files %q, want %q", tc.args, got, tc.files)
		}
		if !strings.Contains(res.Text, tc.want) || strings.Contains(res.Text, tc.not) {
			t.Errorf("git_diff %s: %q, want %q and not %q", tc.args, res.Text, tc.want, tc.not)
		}
	}
}

func TestGitLog(t *testing.T) {
	t.Parallel()
	r := newGitRig(t, modeReadOnly)
	r.git(t, "init", "-q")
	if res, doc := r.doc(t, "git_log", `{}`); res.Text != "no commits\n" || len(doc["commits"].([]any)) != 0 {
		t.Errorf("a fresh repository: %q", res.Text)
	}
	at := func(day int) {
		r.env = append(r.env, fmt.Sprintf("GIT_AUTHOR_DATE=2020-01-%02dT03:04:05Z", day), fmt.Sprintf("GIT_COMMITTER_DATE=2020-01-%02dT03:04:05Z", day))
	}
	at(2)
	r.commitAll(t, "Begin\n\nWith a body\x1f of two\nlines.", map[string]string{"a": "1\n"})
	at(3)
	r.commitAll(t, "Fix the kettle", map[string]string{"b": "1\n"})
	r.git(t, "tag", "v1")
	r.git(t, "checkout", "-q", "-b", "side")
	at(4)
	r.commitAll(t, "Side", map[string]string{"c": "1\n"})
	r.git(t, "checkout", "-q", "main")
	at(5)
	r.git(t, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
	for _, tc := range []struct {
		args string
		want []string
		more bool
	}{
		{`{}`, []string{"Merge side", "Side", "Fix the kettle", "Begin"}, false},
		{`{"n":2}`, []string{"Merge side", "Side"}, true},
		{`{"path":"a"}`, []string{"Begin"}, false},
		{`{"grep":"KETTLE|nothing"}`, []string{"Fix the kettle"}, false},
		{`{"rev":"v1"}`, []string{"Fix the kettle", "Begin"}, false},
		{`{"rev":"v1..main"}`, []string{"Merge side", "Side"}, false},
		{`{"since":"50 years ago","path":"b"}`, []string{"Fix the kettle"}, false},
		{`{"since":"2020-01-03T12:00:00Z"}`, []string{"Merge side", "Side"}, false},
		{`{"rev":"v1~1","patch":true}`, []string{"Begin"}, false},
		{`{"path":"b","patch":true,"n":1}`, []string{"Fix the kettle"}, false},
	} {
		_, doc := r.doc(t, "git_log", tc.args)
		got := []string{}
		for _, c := range doc["commits"].([]any) {
			got = append(got, fmt.Sprint(c.(map[string]any)["subject"]))
		}
		if !slices.Equal(got, tc.want) || doc["more"] != tc.more {
			t.Errorf("git_log %s: %q, more %v, want %q, %v", tc.args, got, doc["more"], tc.want, tc.more)
		}
	}
	res, doc := r.doc(t, "git_log", `{"rev":"v1~1","patch":true}`)
	first := doc["commits"].([]any)[0].(map[string]any)
	if first["author"] != "Ada Test" || first["email"] != "ada@example.test" || first["date"] != "2020-01-02T03:04:05Z" && first["date"] != "2020-01-02T03:04:05+00:00" || first["body"] != "With a body\x1f of two\nlines." {
		t.Errorf("a commit: %v", first)
	}
	if !strings.Contains(res.Text, "\nauthor Ada Test <ada@example.test>\n") || !strings.Contains(res.Text, "\n+++ b/a\n@@ -0,0 +1 @@\n+1\n") {
		t.Errorf("the first commit with its patch: %q", res.Text)
	}
	if res, _ := r.doc(t, "git_log", `{"patch":true}`); !strings.Contains(res.Text, "a merge; what it changed against its first parent") || !strings.Contains(res.Text, "+++ b/c") {
		t.Errorf("a merge with its patch: %q", res.Text)
	}
	if res, _ := r.doc(t, "git_log", `{"n":1}`); !strings.Contains(res.Text, "Ada Test (HEAD -> main): Merge side\n[there are more") {
		t.Errorf("one line: %q", res.Text)
	}
}

// What is wrong is said, with what to do, and nothing is taken for an option (SHL-07).
func TestGitFaults(t *testing.T) {
	t.Parallel()
	r := newGitRig(t, modeReadOnly)
	bare := filepath.Join(r.root, "bare.git")
	for _, tool := range []string{"git_status", "git_diff", "git_log"} {
		if res := toolsRun(t, r.toolsBox, tool, `{}`); !res.IsError || !strings.Contains(res.Text, "no git repository") || !strings.Contains(res.Hint, "git init") {
			t.Errorf("%s without a repository: %+v", tool, res)
		}
	}
	r.git(t, "init", "-q", "--bare", bare)
	r.git(t, "init", "-q")
	r.commitAll(t, "one", map[string]string{"a": "1\n"})
	outside := filepath.Dir(r.root)
	for _, tc := range []struct{ tool, args, want string }{
		{"git_status", `{"path":"bare.git"}`, "bare repository"},
		{"git_status", `{"path":".git"}`, "bare repository, or the inside of .git"},
		{"git_log", `{"path":"bare.git/objects"}`, "bare repository"},
		{"git_status", fmt.Sprintf(`{"path":%q}`, outside), "refused by policy"},
		{"git_status", `{"path":"../x"}`, "refused by policy"},
		{"git_status", `{"path":"a\u0000b"}`, "NUL"},
		{"git_status", `{"path":5}`, "path"},
		{"git_status", `{"rev":"x"}`, "rev"},
		{"git_diff", `{"rev":"--output=made"}`, "begins with -"},
		{"git_diff", `{"rev":"HEAD:a"}`, "colon"},
		{"git_diff", `{"rev":"a b\n"}`, "no revision"},
		{"git_diff", `{"rev":"nowhere"}`, "no such revision"},
		{"git_diff", `{"rev":"a"}`, "no such revision"}, // a path is no revision
		{"git_diff", `{"rev":""}`, "rev"},
		{"git_diff", `{"staged":"yes"}`, "staged"},
		{"git_diff", `{"path":"../x"}`, "refused by policy"},
		{"git_log", `{"rev":"-n1"}`, "begins with -"},
		{"git_log", `{"rev":"nowhere"}`, "no such revision"},
		{"git_log", `{"n":0}`, "n"},
		{"git_log", `{"n":201}`, "n"},
		{"git_log", `{"n":2,"patch":true}`, "a patch is shown of one commit"},
		{"git_log", `{"grep":"("}`, "git log"},
		{"git_log", `{"since":"some time or other"}`, "no time in the past"},
		{"git_log", `{"path":"../x"}`, "refused by policy"},
	} {
		res := toolsRun(t, r.toolsBox, tc.tool, tc.args)
		if !res.IsError || !strings.Contains(res.Text, tc.want) {
			t.Errorf("%s %s: %v %q, want %q", tc.tool, tc.args, res.IsError, res.Text, tc.want)
		}
	}
	if existsAt(filepath.Join(r.root, "made")) {
		t.Error("a revision was taken for an option")
	}
	r.git(t, "config", "core.worktree", outside)
	if res := toolsRun(t, r.toolsBox, "git_status", `{}`); res.IsError || !strings.Contains(res.Text, "repository "+outside+"\n") {
		t.Errorf("a work tree around the root: %+v", res)
	}
	r.git(t, "config", "core.worktree", t.TempDir())
	if res := toolsRun(t, r.toolsBox, "git_status", `{}`); !res.IsError || !strings.Contains(res.Text, "core.worktree") {
		t.Errorf("a work tree elsewhere: %+v", res)
	}
	r.env[0] = "PATH=" + filepath.Join(r.root, "bin")
	if res := toolsRun(t, r.toolsBox, "git_status", `{}`); !res.IsError || !strings.Contains(res.Text, "not installed") {
		t.Errorf("no git: %+v", res)
	}
	filesWrite(t, r.root, map[string]string{"bin/git": "#!/bin/sh\n", "bin/git.exe": ""})
	if res := toolsRun(t, r.toolsBox, "git_status", `{}`); !res.IsError || !strings.Contains(res.Text, "is not run") {
		t.Errorf("a git of the workspace's own (SHL-12): %+v", res)
	}
}

func TestGitFault(t *testing.T) {
	for text, want := range map[string]string{
		"fatal: detected dubious ownership in repository at '/x'\nTo add an exception…": "another user owns it",
		"warning: one thing\nfatal: bad object 1234":                                    "no such revision: fatal: bad object 1234",
		"hint: x\nerror: something else\n":                                              "git log: hint: x",
		"":                                                                              "git log ended with status 3",
		"fatal: \x1b[2Jx":                                                               `git log: fatal: \u001b[2Jx`,
	} {
		if got := gitFault("log", 3, text).Error(); !strings.Contains(got, want) {
			t.Errorf("gitFault(%q) = %q, want %q", text, got, want)
		}
	}
}

// Where the repository reaches above the root, only what is below is shown; a repository below the root has its paths from the root.
func TestGitPlaces(t *testing.T) {
	t.Parallel()
	r := newGitRigAt(t, modePrompt, "top/app")
	top := filepath.Dir(r.root)
	r.git(t, "init", "-q", top)
	filesWrite(t, top, map[string]string{"secret": "outside\n", "app/in": "1\n"})
	r.git(t, "add", "-A", top)
	r.git(t, "commit", "-q", "-m", "both")
	filesWrite(t, top, map[string]string{"secret": "outside too\n", "app/in": "2\n", "new-outside": "x\n", "app/new": "x\n"})
	res, doc := r.doc(t, "git_status", `{}`)
	if got := slices.Concat(gitPaths(doc["changed"]), gitPaths(doc["untracked"])); !slices.Equal(got, []string{"modified in", "new"}) || !strings.Contains(res.Text, "repository "+top) {
		t.Errorf("status: %q, %q", got, res.Text)
	}
	if res, doc := r.doc(t, "git_diff", `{}`); strings.Contains(res.Text, "outside") || !slices.Equal(gitPaths(doc["files"]), []string{"in"}) || !strings.Contains(res.Text, "+++ b/in\n") {
		t.Errorf("diff: %q", res.Text)
	}
	if res, _ := r.doc(t, "git_log", `{"patch":true}`); strings.Contains(res.Text, "outside") || !strings.Contains(res.Text, "+++ b/in\n") {
		t.Errorf("log: %q", res.Text)
	}
	r.git(t, "add", filepath.Join(top, "secret"))
	person := func(name, args string) toolResult {
		res, err := r.dispatch(t.Context(), toolCall{Name: name, Args: json.RawMessage(args), Person: true})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := person("git_commit", `{"message":"in","paths":["in"]}`); !res.IsError || !strings.Contains(res.Text, "staged and lies outside the workspace root") {
		t.Errorf("commit with more staged outside: %+v", res)
	}
	r.git(t, "reset", "-q")
	if res := person("git_commit", `{"message":"all below","all":true}`); res.IsError || !strings.Contains(res.Text, "2 files changed") {
		t.Errorf("commit of all: %+v", res)
	}
	if got := r.git(t, "-C", top, "status", "--porcelain"); got != " M secret\n?? new-outside\n" {
		t.Errorf("what is outside was touched: %q", got)
	}

	r.git(t, "init", "-q", "nested")
	filesWrite(t, r.root, map[string]string{"nested/x/y": "1\n", "nested/x/z": "1\n"})
	r.git(t, "-C", "nested", "add", "x/y")
	if _, doc := r.doc(t, "git_status", `{"path":"nested"}`); !slices.Equal(gitPaths(doc["staged"]), []string{"added nested/x/y"}) || !slices.Equal(gitPaths(doc["untracked"]), []string{"nested/x/z"}) {
		t.Errorf("nested status: %v", doc)
	}
	if res, _ := r.doc(t, "git_diff", `{"path":"nested/x","staged":true}`); !strings.Contains(res.Text, "+++ b/nested/x/y\n") {
		t.Errorf("nested diff: %q", res.Text)
	}
	if res := person("git_commit", `{"message":"m","paths":["nested/x/y","in"]}`); !res.IsError || !strings.Contains(res.Text, "in another repository") {
		t.Errorf("two repositories: %+v", res)
	}
}

// A .git that leads to a repository outside is a path outside, unless that repository knows of it: then it is a work tree of it.
func TestGitStrays(t *testing.T) {
	t.Parallel()
	r := newGitRigAt(t, modePrompt, "app")
	other := filepath.Join(filepath.Dir(r.root), "other")
	r.git(t, "init", "-q", other)
	filesWrite(t, other, map[string]string{"private": "x\n"})
	r.git(t, "-C", other, "add", "-A")
	r.git(t, "-C", other, "commit", "-q", "-m", "private words")
	try := func(what string, allowed bool) {
		t.Helper()
		for _, tool := range []string{"git_status", "git_log", "git_diff"} {
			res := toolsRun(t, r.toolsBox, tool, `{}`)
			if ok := !res.IsError; ok != allowed || !allowed && !strings.Contains(res.Rule, ruleOutside) && res.Rule != ruleNobody || !allowed && strings.Contains(res.Text, "private") {
				t.Errorf("%s: %s: %+v, want allowed %v", what, tool, res, allowed)
			}
		}
		if res := toolsRun(t, r.toolsBox, "shell_inspect", `{"argv":["git","log"]}`); !res.IsError != allowed {
			t.Errorf("%s: shell_inspect: %+v, want allowed %v", what, res, allowed)
		}
	}
	filesWrite(t, r.root, map[string]string{".git": "gitdir: ../other/.git\n"})
	try("a file that points outside", false)
	if err := os.Remove(filepath.Join(r.root, ".git")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(other, ".git"), filepath.Join(r.root, ".git")); err == nil {
		try("a link that points outside", false)
		if err := os.Remove(filepath.Join(r.root, ".git")); err != nil {
			t.Fatal(err)
		}
	}
	r.git(t, "-C", other, "worktree", "add", "-q", "-f", r.root, "-b", "linked")
	try("a linked work tree", true)
}

// gitHostile makes a repository whose configuration and files run programs wherever git lets them. Each leaves a file of its own in canaries.
func gitHostile(t *testing.T, r *gitRig) (canaries string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("its programs are shell scripts")
	}
	canaries = t.TempDir()
	touch := func(name string) string { return "touch " + filepath.Join(canaries, name) + "; cat" }
	script := func(name string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte("#!/bin/sh\ntouch "+filepath.Join(canaries, name)+"\nexit 0\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	r.git(t, "init", "-q")
	r.commitAll(t, "one", map[string]string{"a.evil": "1\n", "b": "1\n", ".gitattributes": "*.evil filter=evil diff=evil\n"})
	tree, parent := strings.TrimSpace(r.git(t, "rev-parse", "HEAD^{tree}")), strings.TrimSpace(r.git(t, "rev-parse", "HEAD"))
	signed := fmt.Sprintf("tree %s\nparent %s\nauthor A <a@b.c> 1700000000 +0000\ncommitter A <a@b.c> 1700000000 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n", tree, parent)
	filesWrite(t, canaries, map[string]string{"../commit": signed})
	r.git(t, "update-ref", "HEAD", strings.TrimSpace(r.git(t, "hash-object", "-t", "commit", "-w", filepath.Join(canaries, "../commit"))))
	r.commitAll(t, "two", map[string]string{"a.evil": "2\n", "b": "2\n"})
	inner := filepath.Join(t.TempDir(), "inner")
	r.git(t, "init", "-q", inner)
	filesWrite(t, inner, map[string]string{"f.evil": "1\n", ".gitattributes": "*.evil filter=inner\n"})
	r.git(t, "-C", inner, "add", "-A")
	r.git(t, "-C", inner, "commit", "-q", "-m", "inner")
	r.git(t, "submodule", "--quiet", "add", inner, "module")
	r.git(t, "commit", "-q", "-m", "three")
	hooks := filepath.Join(r.root, "hooks")
	for _, hook := range []string{"pre-commit", "commit-msg", "post-commit", "post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman", "prepare-commit-msg"} {
		filesWrite(t, hooks, map[string]string{hook: "#!/bin/sh\ntouch " + filepath.Join(canaries, "hook-"+hook) + "\n"})
		if err := os.Chmod(filepath.Join(hooks, hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range map[string]string{
		"core.fsmonitor": script("fsmonitor"), "core.hooksPath": "hooks", "core.pager": touch("pager"), "pager.log": touch("pager-log"), "core.editor": script("editor"),
		"core.sshCommand": script("ssh"), "core.askPass": script("askpass"), "diff.external": script("external"), "diff.evil.textconv": script("textconv"),
		"diff.evil.command": script("command"), "filter.evil.clean": touch("clean"), "filter.evil.smudge": touch("smudge"), "filter.evil.required": "true",
		"log.showSignature": "true", "gpg.program": script("gpg"), "alias.status": "!" + touch("alias"), "alias.log": "!" + touch("alias"), "diff.submodule": "diff",
		"diff.ignoreSubmodules": "none", "submodule.module.ignore": "none", "status.submoduleSummary": "true", "credential.helper": "!" + touch("credential"),
	} {
		r.git(t, "config", key, value)
	}
	r.git(t, "-C", "module", "config", "core.fsmonitor", script("inner-fsmonitor"))
	r.git(t, "-C", "module", "config", "filter.inner.clean", touch("inner-clean"))
	filesWrite(t, r.root, map[string]string{"a.evil": "3\n", "b": "3\n", "module/f.evil": "2\n"})
	return canaries
}

// gitCanaries lists and removes what was executed.
func gitCanaries(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// Reading a repository executes nothing that it names, though the same commands of plain git do.
func TestGitReadsHostileRepository(t *testing.T) {
	t.Parallel()
	r := newGitRig(t, modeReadOnly)
	dir := gitHostile(t, r)
	gitCanaries(t, dir)
	for _, plain := range [][]string{{"status"}, {"diff"}, {"diff", "--no-ext-diff"}, {"log", "-p"}, {"diff", "--submodule=diff"}} {
		r.try(append([]string{"-c", "core.pager=cat"}, plain...)...) // what it says is not the matter
	}
	ran := gitCanaries(t, dir)
	for _, want := range []string{"fsmonitor", "clean", "external", "textconv", "gpg", "inner-fsmonitor", "inner-clean"} {
		if !slices.Contains(ran, want) && !(want == "external" && slices.Contains(ran, "command")) {
			t.Errorf("plain git does not run %s, so the test shows nothing: %q", want, ran)
		}
	}
	for _, call := range [][2]string{
		{"git_status", `{}`}, {"git_status", `{"path":"a.evil"}`}, {"git_diff", `{}`}, {"git_diff", `{"staged":true}`}, {"git_diff", `{"rev":"HEAD~2"}`}, {"git_diff", `{"stat":true,"rev":"HEAD"}`},
		{"git_log", `{}`}, {"git_log", `{"patch":true}`}, {"git_log", `{"rev":"HEAD~2","patch":true}`}, {"git_log", `{"path":"a.evil","since":"10 years ago"}`}, {"git_log", `{"grep":"one"}`},
		{"shell_inspect", `{"argv":["git","status"]}`}, {"shell_inspect", `{"argv":["git","diff"]}`}, {"shell_inspect", `{"argv":["git","--no-pager","log","-p"]}`},
		{"shell_inspect", `{"argv":["git","show","HEAD~1"]}`}, {"shell_inspect", `{"argv":["git","blame","a.evil"]}`}, {"shell_inspect", `{"argv":["git","ls-files","-m"]}`},
	} {
		// Git looks into a file only where its times differ from those in the index.
		now := time.Now().Add(time.Second)
		for _, name := range []string{"a.evil", "module/f.evil"} {
			if err := os.Chtimes(filepath.Join(r.root, name), now, now); err != nil {
				t.Fatal(err)
			}
		}
		if res := toolsRun(t, r.toolsBox, call[0], call[1]); res.IsError {
			t.Errorf("%s %s: %q", call[0], call[1], res.Text)
		}
		if ran := gitCanaries(t, dir); len(ran) > 0 {
			t.Errorf("%s %s executed %q", call[0], call[1], ran)
		}
	}
	if _, doc := r.doc(t, "git_diff", `{"path":"a.evil"}`); !slices.Equal(gitPaths(doc["files"]), []string{"a.evil"}) {
		t.Errorf("the change is not seen: %v", doc)
	}
	// What a person is asked about a commit is read in the same way.
	for _, tl := range r.natives() {
		if tl.Name == "git_commit" {
			req := tl.judge(toolCall{Args: json.RawMessage(`{"message":"m","all":true}`)})
			if ran := gitCanaries(t, dir); len(ran) > 0 || !strings.Contains(strings.Join(req.Danger, "|"), "filter.evil.clean") || !strings.Contains(strings.Join(req.Danger, "|"), "pre-commit") {
				t.Errorf("the consent executed %q and warns of %q", ran, req.Danger)
			}
		}
	}
}

// A partial clone fetches what it lacks when it is read; here it does not.
func TestGitFetchesNothing(t *testing.T) {
	t.Parallel()
	r := newGitRig(t, modeReadOnly)
	if runtime.GOOS == "windows" {
		t.Skip("its program is a shell script")
	}
	canary := filepath.Join(t.TempDir(), "fetched")
	filesWrite(t, filepath.Dir(canary), map[string]string{"pack": "#!/bin/sh\ntouch " + canary + "\nexit 1\n"})
	pack := filepath.Join(filepath.Dir(canary), "pack")
	if err := os.Chmod(pack, 0o755); err != nil {
		t.Fatal(err)
	}
	r.git(t, "init", "-q")
	r.commitAll(t, "one", map[string]string{"a": "1\n"})
	r.commitAll(t, "two", map[string]string{"a": "2\n"})
	blob := strings.TrimSpace(r.git(t, "rev-parse", "HEAD~1:a"))
	for key, value := range map[string]string{"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true", "remote.origin.url": r.root, "remote.origin.uploadpack": pack} {
		r.git(t, "config", key, value)
	}
	if err := os.Remove(filepath.Join(r.root, ".git", "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	if out, err := r.try("log", "-p"); err == nil || !existsAt(canary) {
		skipMissing(t, "this git does not fetch here: %v %s", err, out)
	}
	if err := os.Remove(canary); err != nil {
		t.Fatal(err)
	}
	for _, call := range [][2]string{{"git_log", `{"patch":true}`}, {"git_diff", `{"rev":"HEAD~1"}`}, {"shell_inspect", `{"argv":["git","log","-p"]}`}} {
		if res := toolsRun(t, r.toolsBox, call[0], call[1]); !res.IsError {
			t.Errorf("%s read what is not there: %q", call[0], res.Text)
		}
		if existsAt(canary) {
			t.Fatalf("%s %s ran the program that a fetch runs", call[0], call[1])
		}
	}
}
