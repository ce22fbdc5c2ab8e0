//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGitCommitHooks(t *testing.T) {
	t.Parallel()
	r := newGitRig(t, modeDanger)
	r.git(t, "init", "-q")
	hook := func(name, script string) {
		file := filepath.Join(r.root, ".git", "hooks", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	filesWrite(t, r.root, map[string]string{"a": "1\n"})
	hook("pre-commit", "echo checks failed >&2; exit 1\n")
	res := toolsRun(t, r.toolsBox, "git_commit", `{"message":"m","paths":["a"]}`)
	if !res.IsError || !strings.Contains(res.Text, "nothing was committed, what was staged stays staged") || !strings.Contains(res.Text, "stderr| checks failed\n") || !strings.Contains(res.Hint, "pre-commit") {
		t.Errorf("a hook that fails: %+v", res)
	}
	hook("pre-commit", `echo looked at $(git diff --cached --name-only -- '*'); sleep 300 >/dev/null 2>&1 & echo $! >.git/left`+"\n")
	hook("commit-msg", `echo "signed off" >>"$1"`+"\n")
	res, doc := r.doc(t, "git_commit", `{"message":"m","paths":["a"]}`)
	if !strings.Contains(res.Text, "hooks said:\n") || !strings.Contains(res.Text, "looked at a\n") || len(doc["output"].([]any)) == 0 {
		t.Errorf("hooks that pass: %q", res.Text)
	}
	if got := r.git(t, "log", "-1", "--format=%B"); got != "m\nsigned off\n\n" {
		t.Errorf("commit-msg did not run: %q", got)
	}
	shellGone(t, filepath.Join(r.root, ".git", "left"))
}
