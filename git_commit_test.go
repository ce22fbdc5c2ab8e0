package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestGitMissingIdentity(t *testing.T) {
	t.Parallel()
	r := newGitRig(t, modeDanger)
	r.git(t, "init", "-q")
	filesWrite(t, r.root, map[string]string{"a": "1\n"})
	r.env = append(r.env, "GIT_CONFIG_GLOBAL="+os.DevNull)
	r.git(t, "config", "user.useConfigOnly", "true")
	res := toolsRun(t, r.toolsBox, "git_commit", `{"message":"m","all":true}`)
	if !res.IsError || !strings.Contains(res.Text, "git does not know who commits") || !strings.Contains(res.Hint, "user.email") {
		t.Errorf("no identity: %+v", res)
	}
	if out := r.git(t, "status", "--porcelain"); out != "?? a\n" {
		t.Errorf("something was staged: %q", out)
	}
}

func TestGitCommit(t *testing.T) {
	t.Parallel()
	r := newGitRig(t, modeDanger)
	r.git(t, "init", "-q")
	for _, tc := range []struct{ args, want string }{
		{`{"message":"m"}`, "nothing is staged"},
		{`{"message":" \n "}`, "nothing but blanks"},
		{`{"message":""}`, "message"},
		{`{}`, "message"},
		{`{"message":"a\u0000b"}`, "NUL"},
		{`{"message":"m","paths":[]}`, "paths"},
		{`{"message":"m","paths":[""]}`, "paths"},
		{`{"message":"m","paths":"a"}`, "paths"},
		{`{"message":"m","paths":["a"],"all":true}`, "exclude each other"},
		{`{"message":"m","paths":["nowhere"]}`, "did not match"},
		{`{"message":"m","amend":true}`, "amend"},
		{fmt.Sprintf(`{"message":%q}`, strings.Repeat("m", gitMaxMessage+1)), "message"},
	} {
		if res := toolsRun(t, r.toolsBox, "git_commit", tc.args); !res.IsError || !strings.Contains(res.Text, tc.want) {
			t.Errorf("git_commit %.80s: %v %q, want %q", tc.args, res.IsError, res.Text, tc.want)
		}
	}
	filesWrite(t, r.root, map[string]string{"a": "1\n", "*": "star\n", "c": "another\n", ".gitignore": "no\n", "no": "x\n"})
	res, doc := r.doc(t, "git_commit", `{"message":"First\n\n# kept\n","paths":["a","*"]}`)
	head := strings.TrimSpace(r.git(t, "rev-parse", "HEAD"))
	if doc["commit"] != head || doc["branch"] != "main" || !slices.Equal(gitPaths(doc["files"]), []string{"*", "a"}) || !strings.HasPrefix(res.Text, "committed "+head+" on branch main: First\n") {
		t.Errorf("the first commit: %q %v", res.Text, doc)
	}
	if got := r.git(t, "log", "-1", "--format=%B"); got != "First\n\n# kept\n\n" {
		t.Errorf("message %q", got)
	}
	if got := r.git(t, "status", "--porcelain"); got != "?? .gitignore\n?? c\n" {
		t.Errorf("a name was taken for a pattern: %q", got)
	}
	if res := toolsRun(t, r.toolsBox, "git_commit", `{"message":"m","paths":["no"]}`); !res.IsError || !strings.Contains(res.Text, "ignored") {
		t.Errorf("an ignored path: %+v", res)
	}
	if err := os.Remove(filepath.Join(r.root, "a")); err != nil {
		t.Fatal(err)
	}
	if _, doc := r.doc(t, "git_commit", `{"message":"All","all":true}`); !slices.Equal(gitPaths(doc["files"]), []string{".gitignore", "a", "c"}) {
		t.Errorf("all: %v", doc)
	}
	filesWrite(t, r.root, map[string]string{"c": "2\n", "d": "1\n"})
	r.git(t, "add", "c")
	if _, doc := r.doc(t, "git_commit", `{"message":"Staged alone"}`); !slices.Equal(gitPaths(doc["files"]), []string{"c"}) || doc["added"] != 1.0 {
		t.Errorf("what was staged: %v", doc)
	}
	if res := toolsRun(t, r.toolsBox, "git_commit", `{"message":"m"}`); !res.IsError || !strings.Contains(res.Hint, "name it in paths") {
		t.Errorf("nothing staged, something new: %+v", res)
	}
}

func TestGitCommitMerge(t *testing.T) {
	t.Parallel()
	r := newGitRig(t, modeDanger)
	r.git(t, "init", "-q")
	r.commitAll(t, "one", map[string]string{"a": "1\n"})
	r.git(t, "checkout", "-q", "-b", "side")
	r.commitAll(t, "theirs", map[string]string{"a": "theirs\n"})
	r.git(t, "checkout", "-q", "main")
	r.commitAll(t, "ours", map[string]string{"a": "ours\n"})
	if out, err := r.try("merge", "side"); err == nil {
		t.Fatalf("the merge has no conflict: %s", out)
	}
	for args, want := range map[string]string{`{"message":"m"}`: "still in conflict", `{"message":"m","all":true}`: "all would take them for resolved"} {
		if res := toolsRun(t, r.toolsBox, "git_commit", args); !res.IsError || !strings.Contains(res.Text, want) {
			t.Errorf("git_commit %s in conflict: %+v", args, res)
		}
	}
	filesWrite(t, r.root, map[string]string{"a": "ours\n"}) // as it was: the merge changes nothing
	if res, doc := r.doc(t, "git_commit", `{"message":"Merge","paths":["a"]}`); doc["files_changed"] != 0.0 || len(strings.Fields(r.git(t, "log", "-1", "--format=%P"))) != 2 {
		t.Errorf("the merge: %q", res.Text)
	}
}

// The consent shows the message, the paths and what would be committed; nothing is kept beyond exactly this call.
func TestGitCommitConsent(t *testing.T) {
	t.Parallel()
	r := newGitRig(t, modePrompt)
	r.git(t, "init", "-q")
	r.commitAll(t, "one", map[string]string{"a": "1\n", "b": "1\n"})
	filesWrite(t, r.root, map[string]string{"a": "1\n2\n", "b": "2\n", "new/file": "x\n"})
	r.git(t, "add", "b")
	if res := toolsRun(t, r.toolsBox, "git_commit", `{"message":"m","all":true}`); res.Rule != ruleNobody {
		t.Errorf("it did not ask: %+v", res)
	}
	asked := &fakePrompter{keys: []string{choiceYes}}
	r.policy = newPolicy(policyConfig{Mode: modePrompt, Prompter: asked, SavePreset: func(_ context.Context, p preset) (preset, error) { return p, nil }})
	if res := toolsRun(t, r.toolsBox, "git_commit", `{"message":"Two\nlines","paths":["a","new"]}`); res.IsError {
		t.Fatalf("after yes: %+v", res)
	}
	if len(asked.asked) != 1 {
		t.Fatalf("asked %d times", len(asked.asked))
	}
	screen := renderConsent(asked.asked[0], 100)
	for _, want := range []string{"commit message", "| Two\n", "| lines\n", `"a"`, `"new"`, "branch main", "staged already: 1 file changed, +1 -1", "staged now: 1 file changed, +1 -0", "new files and folders: 1", "new/"} {
		if !strings.Contains(screen, want) {
			t.Errorf("the question lacks %q:\n%s", want, screen)
		}
	}
	if strings.Contains(screen, "any arguments") || slices.ContainsFunc(asked.asked[0].Choices, func(c consentChoice) bool { return c.Key == choiceAlways }) {
		t.Errorf("a yes would cover other commits:\n%s", screen)
	}
}
