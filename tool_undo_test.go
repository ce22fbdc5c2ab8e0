package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// An undo that would take away what came since is refused, and says what is in the way.
func TestFileUndoRefused(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modeAllow)
	type m = map[string]any
	refused := func(args m, want string) {
		t.Helper()
		before := changeTree(t, r.w.root)
		if res := r.call("file_undo", args); !res.IsError || !strings.Contains(res.Text, want) {
			t.Errorf("undo %v: %s\nwant %q", args, res.Text, want)
		}
		changeSameTree(t, "after a refusal", changeTree(t, r.w.root), before)
	}
	refused(nil, "there is no change to undo in this workspace")
	refused(m{"path": "in.txt"}, "there is no change to undo of in.txt")
	refused(m{"change": "h-0000"}, `there is no change "h-0000": it was never made`)
	refused(m{"change": ""}, "change")
	one := r.good("file_edit", m{"path": "in.txt", "old": "one", "new": "1"})
	two := r.good("file_edit", m{"path": "in.txt", "old": "two", "new": "2"})
	other := r.good("file_write", m{"path": "other.txt", "content": "x"})
	refused(m{"change": one}, fmt.Sprintf("change %s cannot be undone: in.txt has been changed since, by %s (file_edit); undo that one first", one, two))
	refused(m{"change": one, "path": "other.txt"}, "did not touch other.txt")
	if id := r.good("file_undo", m{"path": "link-in"}); id == "" {
		t.Error("the last change of a file by a link to it")
	}
	refused(m{"change": two}, "is undone already, by h-")
	r.good("file_undo", m{"change": strings.ToUpper(one)})
	filesWrite(t, r.w.root, map[string]string{"other.txt": "by hand"})
	refused(m{"change": other}, "other.txt has been changed since, and not by a file tool")
	refused(nil, "other.txt has been changed since, and not by a file tool")

	patch := r.good("file_patch", m{"patch": "--- in.txt\n+++ in.txt\n@@ -1 +1 @@\n-one\n+1\n--- sub/deep.go\n+++ sub/deep.go\n@@ -1 +1 @@\n-package deep\n+package d\n"})
	filesWrite(t, r.w.root, map[string]string{"sub/deep.go": "by hand"})
	refused(m{"change": patch}, "sub/deep.go has been changed since") // and in.txt stays too
	moved := r.good("file_move", m{"src": "sub", "dst": "sub2"})
	filesWrite(t, r.w.root, map[string]string{"sub/x": "again"})
	refused(m{"change": moved}, "sub is there again")

	made := r.good("file_write", m{"path": "n/m/x", "content": "x", "mkdirs": true})
	filesWrite(t, r.w.root, map[string]string{"n/y": "mine"})
	if res := r.call("file_undo", m{"change": made}); res.IsError || !strings.Contains(res.Text, "the folder n stays, as it holds y") {
		t.Errorf("undo of a folder with more in it: %s", res.Text)
	}
	deleted := r.good("file_delete", m{"path": "n/y"})
	if err := os.Remove(filepath.Join(r.w.root, "n")); err != nil {
		t.Fatal(err)
	}
	r.good("file_undo", m{"change": deleted}) // makes the folder again
	if b, err := os.ReadFile(filepath.Join(r.w.root, "n", "y")); err != nil || string(b) != "mine" {
		t.Errorf("n/y is %q, %v", b, err)
	}
	w2 := r.f.workspace
	r.f.workspace.root = filepath.Join(r.w.root, "sub2")
	refused(m{"change": deleted}, "was made in another workspace")
	refused(nil, "there is no change to undo")
	r.f.workspace = w2
}

// When no id is given, changes are undone from the last to the first, and what was done by an undo is done again by undoing that.
func TestFileUndoOrder(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modeAllow)
	var states []map[string]string
	for i := range 5 {
		states = append(states, changeTree(t, r.w.root))
		r.good("file_write", map[string]any{"path": "in.txt", "content": fmt.Sprint(i), "mode": "replace"})
	}
	var undos []string
	for i := 4; i >= 2; i-- {
		undos = append(undos, r.good("file_undo", nil))
		changeSameTree(t, fmt.Sprint("before change ", i), changeTree(t, r.w.root), states[i])
	}
	r.good("file_undo", map[string]any{"change": undos[2]})
	changeSameTree(t, "the last undo undone", changeTree(t, r.w.root), states[3])
	for i := 2; i >= 0; i-- {
		r.good("file_undo", nil)
		changeSameTree(t, fmt.Sprint("again before change ", i), changeTree(t, r.w.root), states[i])
	}
}

// Old changes go when there are too many bytes or too many days of them, with their trash; the new one stays.
func TestChangesPruned(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modeAllow)
	now := time.Now()
	r.toolsBox.vault.now = func() time.Time { return now }
	trashed := r.good("file_delete", map[string]any{"path": "sub", "recursive": true})
	if _, err := os.Stat(filepath.Join(r.f.trash, trashed, "sub", "deep.go")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(r.f.trash); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("the trash: %v, %v", info, err)
	}
	now = now.Add(changesMaxAge - time.Hour)
	r.good("file_write", map[string]any{"path": "a", "content": "x"})
	if _, err := os.Stat(filepath.Join(r.f.trash, trashed)); err != nil {
		t.Errorf("pruned too early: %v", err)
	}
	now = now.Add(2 * time.Hour)
	last := r.good("file_write", map[string]any{"path": "b", "content": "x"})
	if _, err := os.Stat(filepath.Join(r.f.trash, trashed)); !os.IsNotExist(err) {
		t.Errorf("the trash of a dropped change is there: %v", err)
	}
	if res := r.call("file_undo", map[string]any{"change": trashed}); !res.IsError || !strings.Contains(res.Text, "older than what is kept") {
		t.Errorf("undo of a dropped change: %s", res.Text)
	}
	v := r.toolsBox.vault
	big := fileChange{Tool: "file_write", Root: r.w.root, Steps: []changeStep{{Path: "/x", Kind: changeMove, Size: trashMax, Existed: true}}}
	dropped, err := v.keepChange(t.Context(), &big)
	if err != nil || len(dropped) != 0 {
		t.Fatalf("%v, %v", dropped, err)
	}
	bigger := fileChange{Tool: "file_write", Root: r.w.root, Steps: []changeStep{{Path: "/y", Kind: changeMove, Size: 1, Existed: true}}}
	if dropped, err = v.keepChange(t.Context(), &bigger); err != nil || len(dropped) < 1 || dropped[0] != big.ID {
		t.Errorf("over the bytes of the trash: %q, %v, want %s", dropped, err, big.ID)
	}
	if _, err := v.change(t.Context(), last); !errors.Is(err, errNotFound) {
		t.Errorf("what is older than the first one that is over goes too: %v", err)
	}
	if _, err := v.change(t.Context(), bigger.ID); err != nil {
		t.Errorf("the newest one: %v", err)
	}
}

// The limits: what cannot be kept is not changed.
func TestChangeLimits(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modeAllow)
	big := filepath.Join(r.w.root, "big")
	if err := os.WriteFile(big, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, changeBodyMax+1); err != nil {
		t.Fatal(err)
	}
	for tool, args := range map[string]map[string]any{
		"file_write": {"path": "big", "content": "x", "mode": "append"}, "file_edit": {"path": "big", "old": "a", "new": "b"},
		"file_read_hashed": {"path": "big"}, "file_move": {"src": "in.txt", "dst": "big", "overwrite": true},
		"file_patch": {"patch": "--- big\n+++ big\n@@ -1 +1 @@\n-a\n+b\n"},
	} {
		if res := r.call(tool, args); !res.IsError || !strings.Contains(res.Text, "33554433 bytes") {
			t.Errorf("%s: %s", tool, res.Text)
		}
	}
	r.good("file_move", map[string]any{"src": "big", "dst": "big2"})
	id := r.good("file_delete", map[string]any{"path": "big2"}) // to the trash
	if info, err := os.Stat(filepath.Join(r.f.trash, id, "big2")); err != nil || info.Size() != changeBodyMax+1 {
		t.Errorf("%v, %v", info, err)
	}
	r.good("file_undo", nil)
	r.good("file_undo", nil)
	if info, err := os.Stat(big); err != nil || info.Size() != changeBodyMax+1 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.Truncate(big, changeBodyMax); err != nil {
		t.Fatal(err)
	}
	if res := r.call("file_write", map[string]any{"path": "big", "content": "x", "mode": "append"}); !res.IsError || !strings.Contains(res.Text, "would have 33554433 bytes") {
		t.Errorf("append: %s", res.Text)
	}
	if res := r.call("file_write", map[string]any{"path": "new", "content": strings.Repeat("x", fileWriteMax+1)}); !res.IsError || !strings.Contains(res.Text, "content") {
		t.Errorf("too long: %.300s", res.Text)
	}
	huge := filepath.Join(r.w.root, "huge", "x")
	if err := os.Mkdir(filepath.Dir(huge), 0o755); err == nil {
		if err := os.WriteFile(huge, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if os.Truncate(huge, trashMax+1) == nil { // a file with a hole
			if res := r.call("file_delete", map[string]any{"path": "huge", "recursive": true}); !res.IsError || !strings.Contains(res.Text, "erase deletes it for good") {
				t.Errorf("larger than the trash: %s", res.Text)
			}
			if res := r.call("file_delete", map[string]any{"path": "huge", "recursive": true, "erase": true}); res.IsError {
				t.Errorf("erase: %s", res.Text)
			}
		}
	}
	if res := r.call("file_delete", map[string]any{"path": "big", "erase": true}); res.IsError || !strings.Contains(res.Text, "big: erased for good") {
		t.Errorf("erase: %s", res.Text)
	}
	if _, err := os.Lstat(big); !os.IsNotExist(err) {
		t.Errorf("big is there: %v", err)
	}
}

// No record, no change: where the vault cannot be written nothing is touched.
func TestChangeNeedsVault(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modeAllow)
	before := changeTree(t, r.w.root)
	r.f.vault = func(context.Context) (*vault, error) { return nil, errors.New("no vault today") }
	for _, c := range changeEach("sub/deep.go") {
		if c.tool == "file_read_hashed" || c.args["erase"] != nil || c.args["dst"] == "sub/deep.go" && c.args["overwrite"] == nil {
			continue
		}
		if res := r.call(c.tool, c.args); !res.IsError {
			t.Errorf("%s %v: %s", c.tool, c.args, res.Text)
		}
	}
	changeSameTree(t, "without a vault", changeTree(t, r.w.root), before)
}

// Modes are kept, a new file has what the umask leaves, and a file with two names says so.
func TestChangeModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no modes there")
	}
	r := newChangeRig(t, modeAllow)
	script := filepath.Join(r.w.root, "run.sh")
	filesWrite(t, r.w.root, map[string]string{"run.sh": "a\n"})
	if err := os.Chmod(script, 0o751); err != nil {
		t.Fatal(err)
	}
	mode := func(path string) os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if err := os.WriteFile(filepath.Join(r.w.root, "probe"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	r.good("file_edit", map[string]any{"path": "run.sh", "old": "a", "new": "b"})
	r.good("file_write", map[string]any{"path": "new", "content": "x"})
	r.good("file_patch", map[string]any{"patch": "diff --git a/run.sh b/run2.sh\nrename from run.sh\nrename to run2.sh\n"})
	if got, want := mode(filepath.Join(r.w.root, "run2.sh")), os.FileMode(0o751); got != want {
		t.Errorf("a changed and renamed file has mode %v, want %v", got, want)
	}
	if got, want := mode(filepath.Join(r.w.root, "new")), mode(filepath.Join(r.w.root, "probe")); got != want {
		t.Errorf("a new file has mode %v, want %v", got, want)
	}
	r.good("file_delete", map[string]any{"path": "run2.sh"})
	for range 4 {
		r.good("file_undo", nil)
	}
	if got := mode(script); got != 0o751 {
		t.Errorf("undone: mode %v", got)
	}
	if err := os.Link(script, filepath.Join(r.w.root, "second")); err != nil {
		skipMissing(t, "%v", err)
	}
	if res := r.call("file_edit", map[string]any{"path": "run.sh", "old": "a", "new": "c"}); !strings.Contains(res.Text, "had 2 names (hard links)") {
		t.Errorf("%s", res.Text)
	}
}

// Calls at once on one file: each sees what the one before has left.
func TestChangeAtOnce(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modeAllow)
	filesWrite(t, r.w.root, map[string]string{"log": ""})
	const calls = 16
	done := make(chan toolResult)
	for i := range calls {
		go func() {
			b, _ := json.Marshal(map[string]any{"path": "log", "content": fmt.Sprintln(i), "mode": "append"})
			res, err := r.dispatch(t.Context(), toolCall{Name: "file_write", Args: b, Origin: "mcp"})
			if err != nil {
				res.Text += err.Error()
			}
			done <- res
		}()
	}
	for range calls {
		if res := <-done; res.IsError {
			t.Errorf("%s", res.Text)
		}
	}
	b, err := os.ReadFile(filepath.Join(r.w.root, "log"))
	if got := strings.Count(string(b), "\n"); err != nil || got != calls {
		t.Errorf("%d lines of %d, %v", got, calls, err)
	}
}
