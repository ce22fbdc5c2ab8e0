package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// changeEach gives a call of each changing tool on a path, and of each listing and reading one.
func changeEach(path string) []struct {
	tool string
	args map[string]any
} {
	type m = map[string]any
	quoted := quoteGitName(path)
	return []struct {
		tool string
		args m
	}{
		{"file_write", m{"path": path, "content": "new", "mkdirs": true}},
		{"file_write", m{"path": path, "content": "new", "mode": "replace"}},
		{"file_write", m{"path": path, "content": "new", "mode": "append"}},
		{"file_edit", m{"path": path, "old": "secret", "new": "open"}},
		{"file_edit_anchored", m{"path": path, "edits": []m{{"op": "insert_after", "anchor": "0", "text": "x"}}}},
		{"file_move", m{"src": path, "dst": "moved"}},
		{"file_move", m{"src": "in.txt", "dst": path, "overwrite": true}},
		{"file_delete", m{"path": path, "recursive": true}},
		{"file_delete", m{"path": path, "recursive": true, "erase": true}},
		{"file_patch", m{"patch": "--- " + quoted + "\n+++ " + quoted + "\n@@ -1 +1 @@\n-the outside secret\n+x\n", "strip": 0}},
		{"file_patch", m{"patch": "--- /dev/null\n+++ " + quoted + "\n@@ -0,0 +1 @@\n+x\n", "strip": 0}},
		{"file_read_hashed", m{"path": path}},
		{"file_undo", m{"path": path}},
	}
}

// Whatever leads out of the root, and however, is refused by every tool, and nothing is read, made or changed there.
func TestROOChangingTools(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modeAllow)
	before := changeTree(t, filepath.Dir(r.w.root))
	for _, tc := range []struct{ path, want string }{
		{"../../etc/tai-passwd", "refused by policy"},                        // ROO-01
		{filepath.Join(r.outside, "x"), "refused by policy"},                 // ROO-01
		{"a/../../x", "refused by policy"},                                   // ROO-01
		{"link-dir/x", "refused by policy"},                                  // ROO-02
		{"link-dir/new", "refused by policy"},                                // ROO-02
		{"../app-secret/x", "refused by policy"},                             // ROO-03
		{"a\x00b", "NUL"},                                                    // ROO-04
		{strings.Repeat("a", 5000), "at most 4096"},                          // ROO-04
		{"link-dir/../../app-secret/x", "refused by policy"},                 // ROO-02
		{filepath.Join(r.w.root, "..", "app-secret/x"), "refused by policy"}, // ROO-03
	} {
		for _, c := range changeEach(tc.path) {
			if c.tool == "file_undo" && strings.HasPrefix(tc.want, "refused") {
				continue // with nothing to undo there is no place to judge
			}
			res := r.call(c.tool, c.args)
			if !res.IsError || !strings.Contains(res.Text, tc.want) || strings.Contains(res.Text, "outside secret") {
				t.Errorf("%s %.60q: error %v, %.300s\nwant %q", c.tool, tc.path, res.IsError, res.Text, tc.want)
			}
		}
	}
	for _, c := range changeEach("link-file") { // ROO-02: what it leads to is outside, the link itself is not
		if c.tool == "file_move" || c.tool == "file_delete" || c.tool == "file_undo" {
			continue
		}
		if res := r.call(c.tool, c.args); !res.IsError || !strings.Contains(res.Text, "refused by policy") {
			t.Errorf("%s link-file: %s", c.tool, res.Text)
		}
	}
	changeSameTree(t, "after all of them", changeTree(t, filepath.Dir(r.w.root)), before)
	for _, name := range []string{"~/x", "%2e%2e/x", `..\x`, "a\nb"} { // ROO-04: names, taken as they are
		if runtime.GOOS == "windows" && strings.ContainsAny(name, "\\\n") {
			continue
		}
		r.good("file_write", map[string]any{"path": name, "content": "x", "mkdirs": true})
		if _, err := os.Stat(filepath.Join(r.w.root, name)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		r.good("file_undo", map[string]any{"path": name})
	}
	changeSameTree(t, "after names", changeTree(t, filepath.Dir(r.w.root)), before)
}

// ROO-06: tai's own files are refused in every mode, under any spelling, also what holds them.
func TestROO06ChangingTools(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modeDanger)
	filesWrite(t, r.w.root, map[string]string{".tai/config.json": "the outside secret\n", "other/.tai/x": "the outside secret\n"})
	home := filepath.Join(r.w.root, "home") // as of a person whose workspace is a whole disk
	filesWrite(t, home, map[string]string{"vault.db": "the outside secret\n"})
	own := r.f.guard.own()
	r.f.guard.own = func() []string { return append(own, home) }
	if err := os.Symlink(filepath.Join(r.w.root, ".tai"), filepath.Join(r.w.root, "mine")); err != nil {
		t.Fatal(err)
	}
	before := changeTree(t, r.w.root)
	paths := []string{".tai/config.json", ".tai/new", ".TAI/new", ".tai./new", ".tai ", ".tai::$DATA", "sub/../.tai/config.json", "other/.tai/x", "mine/config.json", "mine/new",
		".tai", "home/vault.db", "home/new", "home/runs/x", filepath.Join(home, "vault.db"), filepath.Join(r.home, "vault.db")}
	for _, path := range paths {
		for _, c := range changeEach(path) {
			if c.tool == "file_read_hashed" || c.tool == "file_undo" {
				continue
			}
			res := r.call(c.tool, c.args)
			if !res.IsError || !strings.Contains(res.Text, "tai's own") && !strings.Contains(res.Text, "is a folder") {
				t.Errorf("%s %s: error %v, %.300s", c.tool, path, res.IsError, res.Text)
			}
		}
	}
	for _, path := range []string{".", "home", filepath.Dir(r.w.root), r.home} {
		for _, c := range changeEach(path) {
			if c.tool != "file_delete" && c.tool != "file_move" {
				continue
			}
			if res := r.call(c.tool, c.args); !res.IsError || !strings.Contains(res.Text, "tai's own") {
				t.Errorf("%s %s: error %v, %.300s", c.tool, path, res.IsError, res.Text)
			}
		}
	}
	changeSameTree(t, "after all of them", changeTree(t, r.w.root), before)
}

// ROO-02, between check and use: a folder that is exchanged for a link after the path was resolved leads nowhere, neither out of the root nor to tai's own files.
func TestROO02FolderSwapped(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"outside", "own"} {
		r := newChangeRig(t, modeAllow)
		filesWrite(t, r.w.root, map[string]string{".tai/deep.go": "package deep\n", "sub/two.go": "package two\n"})
		filesWrite(t, r.outside, map[string]string{"deep.go": "package deep\n", "two.go": "package two\n"})
		target := map[string]string{"outside": r.outside, "own": filepath.Join(r.w.root, ".tai")}[to]
		want := changeTree(t, target)
		sub, away := filepath.Join(r.w.root, "sub"), filepath.Join(r.w.root, "away")
		swapped := false
		r.f.reached = func(point string) {
			if point == "kept" && !swapped {
				swapped = true
				if err := os.Rename(sub, away); err != nil {
					t.Error(err)
				}
				if err := os.Symlink(target, sub); err != nil {
					t.Error(err)
				}
			}
		}
		for _, c := range []struct {
			tool string
			args map[string]any
		}{
			{"file_write", map[string]any{"path": "sub/new.go", "content": "x"}},
			{"file_edit", map[string]any{"path": "sub/deep.go", "old": "deep", "new": "x"}},
			{"file_delete", map[string]any{"path": "sub/deep.go"}},
			{"file_move", map[string]any{"src": "sub/deep.go", "dst": "x.go"}},
			{"file_patch", map[string]any{"patch": "--- sub/two.go\n+++ sub/two.go\n@@ -1 +1 @@\n-package two\n+package x\n"}},
		} {
			swapped = false
			res := r.call(c.tool, c.args)
			if !res.IsError || !strings.Contains(res.Text, "a symbolic link was put in its place") {
				t.Errorf("%s, swapped for a link to %s: %s", c.tool, to, res.Text)
			}
			if err := os.Remove(sub); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(away, sub); err != nil {
				t.Fatal(err)
			}
		}
		changeSameTree(t, "where the link led", changeTree(t, target), want)
	}
}

// A place outside that the policy allows can be changed, and undone.
func TestChangeOutsideAllowed(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modeDanger)
	before := changeTree(t, filepath.Dir(r.w.root))
	x := filepath.Join(r.outside, "x")
	r.good("file_edit", map[string]any{"path": x, "old": "secret", "new": "thing"})
	r.good("file_move", map[string]any{"src": x, "dst": "in-here"})
	r.good("file_move", map[string]any{"src": "sub", "dst": filepath.Join(r.outside, "sub")})
	r.good("file_delete", map[string]any{"path": filepath.Join(r.outside, "sub"), "recursive": true})
	r.policy.cfg.Mode = modeAllow
	if res := r.call("file_undo", nil); !res.IsError || !strings.Contains(res.Text, "refused by policy (outside the root)") {
		t.Errorf("an undo outside in mode allow: %s", res.Text)
	}
	r.policy.cfg.Mode = modeDanger
	for range 4 {
		r.good("file_undo", nil)
	}
	changeSameTree(t, "undone", changeTree(t, filepath.Dir(r.w.root)), before)
}

// changePerson says yes once, after something else has happened.
type changePerson struct {
	before func()
	last   consent
	asked  int
}

func (p *changePerson) confirm(_ context.Context, c consent) (consentAnswer, error) {
	p.before()
	p.last, p.asked = c, p.asked+1
	return consentAnswer{Key: choiceYes}, nil
}

// A person who is asked sees what will change, and what is there no longer then is not changed.
func TestChangeConsent(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modePrompt)
	meanwhile := func() {}
	p := &changePerson{before: func() { meanwhile() }}
	r.policy.cfg.Prompter = p
	r.good("file_edit", map[string]any{"path": "in.txt", "old": "two", "new": "2\x1b[31m"})
	screen := renderConsent(p.last, 0)
	for _, want := range []string{"in.txt: changed, lines +1 -1", "-two", "\"+2\\x1b[31m\""} {
		if !strings.Contains(screen, want) {
			t.Errorf("the consent lacks %q:\n%s", want, screen)
		}
	}
	r.good("file_write", map[string]any{"path": ".git/hooks/pre-commit", "content": strings.Repeat("x\n", 100), "mkdirs": true})
	if screen = renderConsent(p.last, 0); !strings.Contains(screen, "lies in .git") || !strings.Contains(screen, "folded: ") || strings.Count(renderConsent(p.last.unfolded(), 0), "| +x") != 100 {
		t.Errorf("the consent:\n%s", screen)
	}
	if res := r.call("file_delete", map[string]any{"path": "sub", "recursive": true, "erase": true}); res.IsError || !strings.Contains(res.Text, "erased for good") {
		t.Errorf("erase: %s", res.Text)
	}
	if screen = renderConsent(p.last, 0); !strings.Contains(screen, "! dangerous: erases for good") || !strings.Contains(screen, "1 files and folders") {
		t.Errorf("the consent of an erase:\n%s", screen)
	}
	r.good("file_undo", map[string]any{"path": "in.txt"})
	if screen = renderConsent(p.last, 0); !strings.Contains(screen, "+two") || !strings.Contains(screen, "back to the state before") {
		t.Errorf("the consent of an undo:\n%s", screen)
	}
	asked := p.asked
	if res := r.call("file_patch", map[string]any{"dry_run": true, "patch": "--- in.txt\n+++ in.txt\n@@ -1 +1 @@\n-one\n+1\n"}); res.IsError || p.asked != asked {
		t.Errorf("a dry run asks or fails: %s", res.Text)
	}
	meanwhile = func() { filesWrite(t, r.w.root, map[string]string{"in.txt": "one\ntwo\nthree\n"}) }
	res := r.call("file_write", map[string]any{"path": "in.txt", "content": "mine\n", "mode": "replace"})
	if !res.IsError || !strings.Contains(res.Text, "has changed since this change was shown") {
		t.Errorf("a file changed while the person was asked: %s", res.Text)
	}
	if b, err := os.ReadFile(filepath.Join(r.w.root, "in.txt")); err != nil || string(b) != "one\ntwo\nthree\n" {
		t.Errorf("in.txt is %q, %v", b, err)
	}
}

// What is in the structured result fits the schema and says what is on the disk.
func TestChangeStructured(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modeAllow)
	for _, tl := range changingTools(r.f) {
		schema, err := compileSchema(tl.Output)
		if err != nil {
			t.Fatal(err)
		}
		args := map[string]map[string]any{
			"file_read_hashed": {"path": "in.txt"}, "file_write": {"path": "in.txt", "content": "a\nb\n", "mode": "replace"}, "file_edit": {"path": "in.txt", "old": "a", "new": "c"},
			"file_edit_anchored": {"path": "in.txt", "edits": []any{map[string]any{"op": "delete", "anchor": "1#" + lineHash("c")}}},
			"file_patch":         {"patch": "--- in.txt\n+++ in.txt\n@@ -1 +1,2 @@\n b\n+d\n"}, "file_move": {"src": "in.txt", "dst": "m.txt"}, "file_delete": {"path": "m.txt"}, "file_undo": {},
			"file_find": {"pattern": "*"}, "dir_list": {"hash": true},
		}[tl.Name]
		res := r.call(tl.Name, args)
		if err := schema.validate(res.Structured); res.IsError || err != nil {
			t.Errorf("%s: %v: %s %s", tl.Name, err, res.Text, res.Structured)
		}
		var doc struct {
			Path, SHA256 string
			Bytes        int
		}
		if err := json.Unmarshal(res.Structured, &doc); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(r.w.root, doc.Path)); doc.SHA256 != "" && tl.Name != "file_move" && (err != nil || sha256Hex(b) != doc.SHA256 || len(b) != doc.Bytes) {
			t.Errorf("%s says %+v, the file has %d bytes and %s, %v", tl.Name, doc, len(b), sha256Hex(b), err)
		}
	}
}
