package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// changeCrash is what a process is told that changes files and is killed at the nth point.
type changeCrash struct {
	Root, Home, Tool string
	Args             json.RawMessage
	Nth              int
	Copy             bool
}

// fakeChangeCrash plays that process. It ends itself as kill -9 would: nothing is flushed, closed or put back.
func fakeChangeCrash() {
	var c changeCrash
	err := json.Unmarshal([]byte(os.Getenv("TAI_TEST_CRASH")), &c)
	if err == nil {
		err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

func (c changeCrash) run() error {
	ctx := context.Background()
	f, v, err := c.changer(ctx)
	if err != nil {
		return err
	}
	defer v.close()
	n := 0
	f.reached = func(string) {
		if n++; n == c.Nth {
			p, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = p.Kill()
			}
			fmt.Fprintln(os.Stderr, "kill:", err)
			select {} // until it takes effect
		}
	}
	return c.call(ctx, f)
}

func (c changeCrash) changer(ctx context.Context) (*fileChanger, *vault, error) {
	w, err := openWorkspace(c.Root)
	if err != nil {
		return nil, nil, err
	}
	v, err := openVault(ctx, c.Home, vaultWrite, time.Now, testKeys())
	f := newFileChanger(w, c.Home, func() []string { return []string{c.Home} }, func(context.Context) (*vault, error) { return v, nil }, time.Now)
	f.alwaysCopy = c.Copy
	return f, v, err
}

func (c changeCrash) call(ctx context.Context, f *fileChanger) error {
	for _, tl := range changingTools(f) {
		if tl.Name == c.Tool {
			_, err := tl.run(ctx, toolCall{Name: c.Tool, Args: c.Args, ID: "c-1"})
			return err
		}
	}
	return fmt.Errorf("no tool %s", c.Tool)
}

func changeCrashFiles(t *testing.T, root string) {
	filesWrite(t, root, map[string]string{"a.txt": "a\nb\nc\n", "b.txt": "1\n2\n3\n", "d/e/f.txt": "deep\n", "d/g.sh": "run\n", "gone.txt": "gone\n"})
	if err := os.Chmod(filepath.Join(root, "d", "g.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// "Every change can be undone, also after a crash": whatever a process was doing when it was killed, file_undo brings every file back to the byte, and nothing is
// left beside them.
func TestChangeKilled(t *testing.T) {
	t.Parallel()
	patch := "--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n--- b.txt\n+++ b.txt\n@@ -2,2 +2,1 @@\n-2\n 3\n--- /dev/null\n+++ new/dir/n.txt\n@@ -0,0 +1 @@\n+new\n--- gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
	for _, tc := range []struct {
		name, tool string
		args       map[string]any
		first      bool // a change is made before, and what is killed is its undo
		copied     bool
		points     int // at least
	}{
		{"create", "file_write", map[string]any{"path": "x/y/z.txt", "content": "new", "mkdirs": true}, false, false, 6},
		{"replace", "file_write", map[string]any{"path": "a.txt", "content": "new", "mode": "replace"}, false, false, 5},
		{"edit", "file_edit", map[string]any{"path": "a.txt", "old": "b", "new": "x\ny"}, false, false, 5},
		{"anchored", "file_edit_anchored", map[string]any{"path": "a.txt", "edits": []any{map[string]any{"op": "replace", "anchor": "2#" + lineHash("b"), "text": "x\ny"}}}, false, false, 5},
		{"patch", "file_patch", map[string]any{"patch": patch}, false, false, 12},
		{"move", "file_move", map[string]any{"src": "d", "dst": "moved"}, false, false, 4},
		{"move over", "file_move", map[string]any{"src": "a.txt", "dst": "d/g.sh", "overwrite": true}, false, false, 5},
		{"move to another disk", "file_move", map[string]any{"src": "d", "dst": "moved"}, false, true, 7},
		{"delete", "file_delete", map[string]any{"path": "a.txt"}, false, false, 4},
		{"trash", "file_delete", map[string]any{"path": "d", "recursive": true}, false, false, 6},
		{"trash on another disk", "file_delete", map[string]any{"path": "d", "recursive": true}, false, true, 7},
		{"undo of a patch", "file_undo", map[string]any{}, true, false, 10},
		{"undo of a trash", "file_undo", map[string]any{}, true, false, 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			args, err := json.Marshal(tc.args)
			if err != nil {
				t.Fatal(err)
			}
			n := 1
			for ; changeKilledAt(t, changeCrash{Tool: tc.tool, Args: args, Nth: n, Copy: tc.copied}, tc.name, tc.first, patch); n++ {
			}
			if n-1 < tc.points {
				t.Errorf("killed at %d points, want %d or more", n-1, tc.points)
			}
		})
	}
}

// changeKilledAt does one run. killed is false when the process came to its end.
func changeKilledAt(t *testing.T, c changeCrash, name string, first bool, patch string) (killed bool) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.Root, c.Home = filepath.Join(base, "root"), filepath.Join(base, "home")
	changeCrashFiles(t, c.Root)
	before := changeTree(t, c.Root)
	if first {
		done := changeCrash{Root: c.Root, Home: c.Home, Tool: "file_patch", Args: mustJSON(t, map[string]any{"patch": patch})}
		if strings.Contains(name, "trash") {
			done.Tool, done.Args = "file_delete", json.RawMessage(`{"path":"d","recursive":true}`)
		}
		if err := done.run(); err != nil {
			t.Fatal(err)
		}
	}
	text := mustJSON(t, c)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "TAI_TEST_FAKE=change-crash", "TAI_TEST_CRASH="+string(text))
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code == 3 || code == 2 {
		t.Fatalf("the process failed: %s", out)
	}
	killed = err != nil
	f, v, err := c.changer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer v.close()
	undo := changeCrash{Tool: "file_undo", Args: json.RawMessage(`{}`)}
	if err := undo.call(t.Context(), f); err != nil && !(first && strings.Contains(err.Error(), "there is no change to undo")) {
		t.Fatalf("killed at point %d, undo: %v", c.Nth, err)
	}
	changeSameTree(t, fmt.Sprintf("killed at point %d and undone", c.Nth), changeTree(t, c.Root), before)
	if err := undo.call(t.Context(), f); err == nil || !strings.Contains(err.Error(), "there is no change to undo") {
		t.Errorf("killed at point %d, undone twice: %v", c.Nth, err)
	}
	if runtime.GOOS != "windows" && !t.Failed() {
		f.now = func() time.Time { return time.Now().Add(time.Hour) } // long afterwards the next change clears up what is left
		c.Args, c.Tool = json.RawMessage(`{"path":"later.txt","content":"x"}`), "file_write"
		if err := c.call(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		left, err := v.unfinishedChanges(t.Context(), c.Root, time.Now().Add(time.Hour))
		if err != nil || len(left) > 0 {
			t.Errorf("killed at point %d: unfinished %+v, %v", c.Nth, left, err)
		}
	}
	return killed
}

func mustJSON(t *testing.T, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What a killed process left is cleared up by the next change, later, and the change it was about can still be undone.
func TestChangeSweep(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modeAllow)
	before := changeTree(t, r.w.root)
	func() {
		defer func() { recover() }()
		r.f.reached = func(point string) {
			if point == "staged" {
				panic("as if killed")
			}
		}
		b, _ := json.Marshal(map[string]any{"path": "in.txt", "content": "x", "mode": "replace"})
		for _, tl := range changingTools(r.f) {
			if tl.Name == "file_write" {
				_, err := tl.run(t.Context(), toolCall{Args: b})
				t.Errorf("not killed: %v", err)
			}
		}
	}()
	r.f.reached = nil
	if left := changeTree(t, r.w.root); len(left) != len(before)+1 {
		t.Fatalf("nothing was left to clear up: %v", left)
	}
	r.good("file_write", map[string]any{"path": "soon", "content": ""})
	r.good("file_undo", nil)
	if left := changeTree(t, r.w.root); len(left) != len(before)+1 {
		t.Errorf("cleared up what may still be under way: %v", left)
	}
	r.f.now = func() time.Time { return time.Now().Add(changeSettle + time.Minute) }
	r.good("file_write", map[string]any{"path": "later", "content": ""})
	r.good("file_undo", nil)
	changeSameTree(t, "cleared up", changeTree(t, r.w.root), before)
}

// A change that fails halfway is put back whole, and leaves nothing to undo.
func TestChangeFailsHalfway(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modeAllow)
	filesWrite(t, r.w.root, map[string]string{"b.txt": "b\n"})
	before := changeTree(t, r.w.root)
	n := 0
	r.f.reached = func(point string) {
		if point == "renamed" {
			if n++; n == 2 { // the third file is not what it was
				filesWrite(t, r.w.root, map[string]string{"b.txt": "by somebody else\n"})
			}
		}
	}
	res := r.call("file_patch", map[string]any{"patch": "--- in.txt\n+++ in.txt\n@@ -1 +1 @@\n-one\n+1\n--- /dev/null\n+++ n/new.txt\n@@ -0,0 +1 @@\n+new\n--- b.txt\n+++ b.txt\n@@ -1 +1 @@\n-b\n+c\n"})
	if !res.IsError || !strings.Contains(res.Text, "was changed by somebody else at this moment") {
		t.Errorf("%s", res.Text)
	}
	before["b.txt"] = "-rw-r--r-- by somebody else\n"
	changeSameTree(t, "put back", changeTree(t, r.w.root), before)
	if res := r.call("file_undo", nil); !res.IsError || !strings.Contains(res.Text, "there is no change to undo") {
		t.Errorf("undo: %s", res.Text)
	}
}
