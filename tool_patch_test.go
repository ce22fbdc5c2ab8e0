package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// file_patch over one or many files: all or nothing, and undone as one.
func TestFilePatch(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	type s = map[string]string
	for _, tc := range []changeCase{
		{"change", "file_patch", m{"patch": "--- a/in.txt\n+++ b/in.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"}, nil, s{"in.txt": "one\n2\n"}, "in.txt: changed, lines +1 -1", false},
		{"many", "file_patch", m{"patch": "--- in.txt\n+++ in.txt\n@@ -1 +1 @@\n-one\n+1\n--- sub/deep.go\n+++ sub/deep.go\n@@ -1 +1 @@\n-package deep\n+package d\n"}, nil, s{"in.txt": "1\ntwo\n", "sub/deep.go": "package d\n"}, "sub/deep.go: changed", false},
		{"one of many does not fit", "file_patch", m{"patch": "--- in.txt\n+++ in.txt\n@@ -1 +1 @@\n-one\n+1\n--- sub/deep.go\n+++ sub/deep.go\n@@ -1 +1 @@\n-package x\n+package d\n"}, nil, nil, `patch line 6: sub/deep.go: hunk 1 (patch line 8): its lines are not in the file: line 1 is "package deep", the patch has "package x"; nothing was changed`, true},
		{"new in a new folder", "file_patch", m{"patch": "--- /dev/null\n+++ b/n/m/x\n@@ -0,0 +1 @@\n+x\n"}, nil, s{"n/m/x": "x\n"}, "n/m: folder made", false},
		{"two new in one new folder", "file_patch", m{"patch": "--- /dev/null\n+++ n/x\n@@ -0,0 +1 @@\n+x\n--- /dev/null\n+++ n/y\n@@ -0,0 +1 @@\n+y\n"}, nil, s{"n/x": "x\n", "n/y": "y\n"}, "n/y: created", false},
		{"new and there", "file_patch", m{"patch": "--- /dev/null\n+++ b/in.txt\n@@ -0,0 +1 @@\n+x\n"}, nil, nil, "in.txt: exists already, and the patch wants to make it", true},
		{"gone", "file_patch", m{"patch": "--- a/in.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n"}, nil, s{"in.txt": "-"}, "in.txt: deleted, lines +0 -2", false},
		{"gone, and more in it", "file_patch", m{"patch": "--- a/in.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"}, nil, nil, "it holds more than the patch takes away", true},
		{"gone and not there", "file_patch", m{"patch": "--- a/no\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"}, nil, nil, "no: no such file", true},
		{"renamed", "file_patch", m{"patch": "diff --git a/in.txt b/sub/out.txt\nsimilarity index 50%\nrename from in.txt\nrename to sub/out.txt\n--- a/in.txt\n+++ b/sub/out.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"}, nil, s{"in.txt": "-", "sub/out.txt": "one\n2\n"}, "sub/out.txt: created", false},
		{"renamed onto something", "file_patch", m{"patch": "diff --git a/in.txt b/sub/deep.go\nrename from in.txt\nrename to sub/deep.go\n"}, nil, nil, "exists already", true},
		{"copied", "file_patch", m{"patch": "diff --git a/in.txt b/c.txt\ncopy from in.txt\ncopy to c.txt\n"}, nil, s{"in.txt": "one\ntwo\n", "c.txt": "one\ntwo\n"}, "c.txt: created", false},
		{"mode alone", "file_patch", m{"patch": "diff --git a/in.txt b/in.txt\nold mode 100644\nnew mode 100755\n"}, nil, nil, "the mode 100755 is not applied", false},
		{"old and new name, one there", "file_patch", m{"patch": "--- in.txt.orig\n+++ in.txt\n@@ -1 +1 @@\n-one\n+1\n"}, nil, s{"in.txt": "1\ntwo\n"}, "in.txt: changed", false},
		{"old and new name, both there", "file_patch", m{"patch": "--- in.txt.orig\n+++ in.txt\n@@ -1 +1 @@\n-one\n+1\n"}, s{"in.txt.orig": "one\n"}, s{"in.txt": "1\ntwo\n", "in.txt.orig": "one\n"}, "in.txt: changed", false},
		{"new by diff -N", "file_patch", m{"patch": "--- n.txt\t1970-01-01 00:00:00.000000000 +0000\n+++ n.txt\t2026-01-01 00:00:00 +0000\n@@ -0,0 +1 @@\n+x\n"}, nil, s{"n.txt": "x\n"}, "created", false},
		{"gone by diff -N", "file_patch", m{"patch": "--- in.txt\t2026-01-01 00:00:00 +0000\n+++ in.txt\t1970-01-01 00:00:00.000000000 +0000\n@@ -1,2 +0,0 @@\n-one\n-two\n"}, nil, s{"in.txt": "-"}, "deleted", false},
		{"the same file twice", "file_patch", m{"patch": "--- in.txt\n+++ in.txt\n@@ -1 +1 @@\n-one\n+1\n--- in.txt\n+++ in.txt\n@@ -2 +2 @@\n-two\n+2\n"}, nil, nil, "a second part for in.txt", true},
		{"the same file twice, once by a link", "file_patch", m{"patch": "--- in.txt\n+++ in.txt\n@@ -1 +1 @@\n-one\n+1\n--- link-in\n+++ link-in\n@@ -2 +2 @@\n-two\n+2\n"}, nil, nil, "a second part for in.txt", true},
		{"a binary", "file_patch", m{"patch": "--- b\n+++ b\n@@ -1 +1 @@\n-a\n+b\n"}, s{"b": "a\x00\n"}, nil, "b: is binary or UTF-16", true},
		{"write-protected", "file_patch", m{"patch": "--- ro.txt\n+++ ro.txt\n@@ -1 +1 @@\n-a\n+b\n"}, s{"ro.txt": "a\n"}, nil, "write-protected", true},
		{"moved place", "file_patch", m{"patch": "--- in.txt\n+++ in.txt\n@@ -9 +9 @@\n-two\n+2\n"}, nil, s{"in.txt": "one\n2\n"}, "in.txt: hunk 1 fits 7 lines earlier than it says", false},
		{"strip", "file_patch", m{"patch": "--- x/y/in.txt\n+++ x/y/in.txt\n@@ -1 +1 @@\n-one\n+1\n", "strip": 2}, nil, s{"in.txt": "1\ntwo\n"}, "changed", false},
		{"strip below nothing", "file_patch", m{"patch": "x", "strip": -1}, nil, nil, "strip", true},
		{"no patch", "file_patch", m{"patch": "x"}, nil, nil, "there is no change in the patch", true},
		{"empty", "file_patch", m{"patch": ""}, nil, nil, "patch", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newChangeRig(t, modeAllow)
			tc.prepare(t, r.w.root)
			before := changeTree(t, r.w.root)
			args := map[string]any{"dry_run": true}
			for k, v := range tc.args {
				args[k] = v
			}
			if res := r.call("file_patch", args); res.IsError != tc.err {
				t.Errorf("dry run: %s", res.Text)
			}
			changeSameTree(t, "dry run", changeTree(t, r.w.root), before)
			res := r.call("file_patch", tc.args)
			if res.IsError != tc.err || !strings.Contains(res.Text, tc.text) {
				t.Fatalf("error %v, want %v: %s\nwant %q", res.IsError, tc.err, res.Text, tc.text)
			}
			after := changeTree(t, r.w.root)
			for name, want := range tc.want {
				got, there := after[filepath.FromSlash(name)]
				if _, text, _ := strings.Cut(got, " "); there == (want == "-") || there && text != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if tc.want == nil {
				changeSameTree(t, "nothing to do", after, before)
				return
			}
			undo := r.good("file_undo", nil)
			changeSameTree(t, "undone", changeTree(t, r.w.root), before)
			r.good("file_undo", map[string]any{"change": undo})
			changeSameTree(t, "done again", changeTree(t, r.w.root), after)
		})
	}
}

// patchGit runs git in a folder and gives its output.
func patchGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "core.autocrlf=false", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %q: %v %s", args, err, errs.String())
	}
	return string(out)
}

// What git diff writes of two states of a repository, with new, deleted and renamed files and line ends of all kinds, turns the first tree into the second, and
// undone, the second into the first, byte for byte.
func TestFilePatchGit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		skipMissing(t, "no git here")
	}
	for seed := range uint64(4) {
		r := newChangeRig(t, modeAllow)
		rng := rand.New(rand.NewPCG(seed, 5))
		root := filepath.Join(r.w.root, "repo")
		files := map[string]string{"name with blank.txt": "x\ny\n", "ü.txt": "x\ny\n", "t\ttab.txt": "q\n", "empty": ""}
		next := map[string]string{"name with blank.txt": "x\nz\n", "ü.txt": "y\n", "t\ttab.txt": "r\n", "now-empty": "", "sub/folder/new.txt": "new\r\n"}
		for i := range 12 {
			a, b := patchTexts(rng)
			name := fmt.Sprintf("d%d/f%d.txt", i%3, i)
			switch {
			case i%5 == 1:
				files[name] = a
			case i%5 == 2:
				next[name] = b
			case i%5 == 3:
				files[name], next["renamed/"+name] = strings.Repeat("much the same\n", 20)+a, strings.Repeat("much the same\n", 20)+b
			default:
				files[name], next[name] = a, b
			}
		}
		filesWrite(t, root, files)
		patchGit(t, root, "init", "-q")
		patchGit(t, root, "add", "-A")
		patchGit(t, root, "commit", "-qm", "one")
		for name := range files {
			if err := os.Remove(filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
		filesWrite(t, root, next)
		patchGit(t, root, "add", "-A")
		patchGit(t, root, "commit", "-qm", "two")
		patch := patchGit(t, root, "diff", "-M", "HEAD~1", "HEAD")
		r.f.workspace.root = root
		second := changeTree(t, root)
		patchGit(t, root, "checkout", "-q", "HEAD~1")
		first := changeTree(t, root)
		r.good("file_patch", map[string]any{"patch": patch})
		if left := patchGit(t, root, "status", "--porcelain"); left == "" {
			t.Fatal("the patch changed nothing")
		}
		patchGit(t, root, "add", "-A")
		if diff := patchGit(t, root, "diff", "--cached", "HEAD@{1}"); diff != "" {
			t.Errorf("seed %d: git sees a difference:\n%s", seed, diff)
		}
		for name, want := range second {
			if got := changeTree(t, root)[name]; got != want && !strings.HasPrefix(name, ".git") {
				t.Errorf("seed %d: %s is %q, want %q", seed, name, got, want)
			}
		}
		patchGit(t, root, "reset", "-q")
		r.good("file_undo", nil)
		for name, got := range changeTree(t, root) {
			if want := first[name]; got != want && !strings.HasPrefix(name, ".git") {
				t.Errorf("seed %d, undone: %s is %q, want %q", seed, name, got, want)
			}
		}
		if left := patchGit(t, root, "status", "--porcelain"); left != "" {
			t.Errorf("seed %d, undone: git sees %s", seed, left)
		}
	}
}
