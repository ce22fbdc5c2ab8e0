package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func storeTestVault(t *testing.T, home string) *vault {
	t.Helper()
	v, err := openVault(t.Context(), home, vaultWrite, time.Now, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.close() })
	return v
}

func storeTestTrusted(t *testing.T, v *vault) func(string) bool {
	return func(sum string) bool {
		ok, err := v.trustedFile(t.Context(), sum)
		if err != nil {
			t.Error(err)
		}
		return ok
	}
}

// Several tais that add presets at the same time lose none, and what they wrote counts, with the modes that it must have.
func TestStoreTogether(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), filepath.Join(t.TempDir(), ".tai")
	const writers, each = 4, 5
	var wg sync.WaitGroup
	for w := range writers {
		v := storeTestVault(t, home)
		wg.Go(func() {
			for i := range each {
				var added []preset
				ps := preset{Effect: "allow", Tool: "file_write", Arguments: map[string]string{"path": fmt.Sprintf("<%d/%d>*", w, i)}}
				if err := changeApprovals(t.Context(), v, dir, "", true, addPresets(time.Now(), []preset{ps}, &added)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	v := storeTestVault(t, home)
	f, err := readApprovals(dir, storeTestTrusted(t, v))
	if err != nil || !f.Known || len(f.Presets) != writers*each {
		t.Fatalf("%d presets, counts %v, %v", len(f.Presets), f.Known, err)
	}
	ids := map[string]bool{}
	for _, ps := range f.Presets {
		ids[ps.ID] = true
	}
	w, err := loadWorkspacePolicy(dir, storeTestTrusted(t, v))
	if err != nil || len(w.Presets) != writers*each || len(ids) != writers*each || len(w.Notes) != 0 {
		t.Errorf("%+v, %v", w, err)
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{dir: 0o700, f.Path: 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v, want %o", path, info.Mode(), err, want)
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A file that somebody else wrote is not made to count by a grant, keeps what it is under a deny, and counts when confirmed; a state
// that was replaced counts no longer.
func TestStoreForeign(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), filepath.Join(t.TempDir(), ".tai")
	v := storeTestVault(t, home)
	trusted := storeTestTrusted(t, v)
	add := func(confirmed, effect, tool string) error {
		var added []preset
		return changeApprovals(t.Context(), v, dir, confirmed, effect == "allow", addPresets(time.Now(), []preset{{Effect: effect, Tool: tool}}, &added))
	}
	if err := add("", "allow", "file_read"); err != nil {
		t.Fatal(err)
	}
	mine, err := readApprovals(dir, trusted)
	if err != nil || !mine.Known {
		t.Fatalf("%+v, %v", mine, err)
	}
	foreign := strings.Replace(string(mine.Text), "file_read", "shell_run", 1)
	if err := os.WriteFile(mine.Path, []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := readApprovals(dir, trusted)
	if err != nil || f.Known {
		t.Fatalf("a changed file counts: %+v, %v", f, err)
	}
	if err := add("", "allow", "file_write"); !errors.Is(err, errPolicyChanged) {
		t.Errorf("a grant over a foreign file: %v", err)
	}
	if err := add(strings.Repeat("0", 64), "allow", "file_write"); !errors.Is(err, errPolicyChanged) {
		t.Errorf("a grant over another file than was shown: %v", err)
	}
	if b, err := os.ReadFile(mine.Path); err != nil || string(b) != foreign {
		t.Errorf("a refused grant wrote: %s, %v", b, err)
	}
	if err := add("", "deny", "file_delete"); err != nil {
		t.Fatal(err)
	}
	if f, err = readApprovals(dir, trusted); err != nil || f.Known || len(f.Presets) != 2 {
		t.Errorf("a deny made a foreign file count: %+v, %v", f, err)
	}
	w, err := loadWorkspacePolicy(dir, trusted)
	if err != nil || len(w.Presets) != 1 || w.Presets[0].Effect != "deny" {
		t.Errorf("the deny does not count: %+v, %v", w, err)
	}
	if err := add(f.Hash, "allow", "file_write"); err != nil {
		t.Fatal(err)
	}
	if f, err = readApprovals(dir, trusted); err != nil || !f.Known || len(f.Presets) != 3 {
		t.Errorf("confirmed: %+v, %v", f, err)
	}
	if text, err := v.trustedText(t.Context(), f.Path); err != nil || text != string(f.Text) {
		t.Errorf("the text that counts: %q, %v", text, err)
	}
}

// POL-10: what was taken back does not come back with an old file.
func TestPOL10RevokedStays(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), ".tai")
	v := storeTestVault(t, t.TempDir())
	var added []preset
	if err := changeApprovals(t.Context(), v, dir, "", true, addPresets(time.Now(), []preset{{Effect: "allow", Tool: "shell_run"}}, &added)); err != nil {
		t.Fatal(err)
	}
	before, err := readApprovals(dir, storeTestTrusted(t, v))
	if err != nil {
		t.Fatal(err)
	}
	if err := changeApprovals(t.Context(), v, dir, "", false, func(have []preset) ([]preset, error) { return slices.Delete(have, 0, 1), nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(before.Path, before.Text, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := readApprovals(dir, storeTestTrusted(t, v)); err != nil || f.Known {
		t.Errorf("an old file counts again: %+v, %v", f, err)
	}
}

// POL-09: a file or folder that cannot be relied on is not written through, and a confirmation is for the file that was shown.
func TestPOL09Store(t *testing.T) {
	t.Parallel()
	v := storeTestVault(t, t.TempDir())
	var added []preset
	edit := addPresets(time.Now(), []preset{{Effect: "deny", Tool: "x"}}, &added)
	for name, spoil := range map[string]func(dir string) error{
		"bad JSON": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, approvalsName), []byte(`{"version":1`), 0o600)
		},
		"linked":         func(dir string) error { return os.Symlink("other.json", filepath.Join(dir, approvalsName)) },
		"world-writable": func(dir string) error { return os.Chmod(dir, 0o777) },
		"linked folder": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".real"), os.Symlink(dir+".real", dir))
		},
	} {
		dir := presetTestDir(t, nil)
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		if err := changeApprovals(t.Context(), v, dir, "", false, edit); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := presetTestDir(t, map[string]string{approvalsName: presetTestApprovals})
	f, err := readApprovals(dir, storeTestTrusted(t, v))
	if err != nil || f.Known {
		t.Fatalf("%+v, %v", f, err)
	}
	if err := os.WriteFile(f.Path, []byte(strings.Replace(presetTestApprovals, "docs/*", "*", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := confirmFile(t.Context(), v, f); err == nil {
		t.Error("a file was confirmed that nobody saw")
	}
	if now, err := readApprovals(dir, storeTestTrusted(t, v)); err != nil || now.Known {
		t.Errorf("%+v, %v", now, err)
	}
}

func TestPresetScope(t *testing.T) {
	for want, ps := range map[string]preset{
		"file_write with any arguments":                                                {Tool: "file_write"},
		`file_write where "path" is "docs/*"`:                                          {Tool: "file_write", Arguments: map[string]string{"path": "docs/*"}},
		`x where "a" is "1", and "b" is "2\n"`:                                         {Tool: "x", Arguments: map[string]string{"b": "2\n", "a": "1"}},
		`shell_run with the command "git status" and any further arguments`:            {Tool: "shell_run", Command: "git status"},
		"mcp:files/write as it is defined now with any arguments":                      {Tool: "mcp:files/write", Pin: strings.Repeat("a", 64)},
		`shell_run with the command "go" and any further arguments where "cwd" is "a"`: {Tool: "shell_run", Command: "go", Arguments: map[string]string{"cwd": "a"}},
	} {
		if got := ps.scope(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
