//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Who else may read or change a file is told, with the command that ends it, and --repair ends it.
func TestVaultCheckModes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		mode        os.FileMode
		level, what string
	}{
		{vaultFile, 0o644, findWarning, "can be read by other users (mode 0644)"},
		{vaultFile, 0o660, findError, "can be changed by other users"},
		{"", 0o777, findError, "can be changed by other users"},
		{"", 0o755, findNote, "can be read by other users"},
		{"runs", 0o755, findWarning, "can be read by other users"},
		{"runs/cli-1.jsonl", 0o644, findWarning, "1 run log in"},
		{"runs/cli-1.jsonl", 0o666, findError, "can be changed by other users"},
	} {
		home := fullVault(t)
		if err := errors.Join(os.Mkdir(filepath.Join(home, "runs"), 0o700), os.WriteFile(filepath.Join(home, "runs", "cli-1.jsonl"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(home, tc.name)
		if err := os.Chmod(path, tc.mode); err != nil {
			t.Fatal(err)
		}
		r := checkedVault(t, home)
		if !findingHas(r, "permissions", tc.level, tc.what) || !slices.ContainsFunc(r.Problems, func(f vaultFinding) bool { return strings.HasPrefix(f.Do, "chmod ") }) {
			t.Errorf("%s %o: %+v", tc.name, tc.mode, r.Problems)
		}
		if _, err := mendFiles(r.repairs()); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s after the repair: %v, %v", tc.name, info.Mode(), err)
		}
	}
}

// Links, second names, another owner and unfinished files.
func TestVaultCheckAround(t *testing.T) {
	t.Parallel()
	home := fullVault(t)
	path := filepath.Join(home, vaultFile)
	if err := os.Link(path, filepath.Join(home, "second")); err != nil {
		t.Fatal(err)
	}
	if r := checkedVault(t, home); !findingHas(r, "file", findError, "has 2 names") {
		t.Errorf("%+v", r.Problems)
	}
	byLink := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Remove(filepath.Join(home, "second")), os.Symlink(home, byLink)); err != nil {
		t.Fatal(err)
	}
	if r := checkedVault(t, byLink); r.State != vaultFine || !findingHas(r, "permissions", findNote, "is a link to") {
		t.Errorf("%+v", r.Problems)
	}
	for _, name := range []string{vaultTemp + "1", "copy.db" + backupTemp + "2"} {
		left := filepath.Join(home, name)
		if err := os.WriteFile(left, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := checkedVault(t, home); !findingHas(r, "file", findNote, "perhaps still being written") || !r.fine() {
			t.Errorf("%+v", r.Problems)
		}
		if err := os.Chtimes(left, time.Now(), time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		r := checkedVault(t, home)
		if !findingHas(r, "file", findWarning, name+" is an unfinished file of 1 bytes") {
			t.Errorf("%+v", r.Problems)
		}
		if _, err := mendFiles(r.repairs()); err != nil {
			t.Error(err)
		}
	}
	if r := checkedVault(t, home); len(r.Problems) != 0 {
		t.Errorf("%+v", r.Problems)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(path, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if r := checkedVault(t, home); !findingHas(r, "permissions", findWarning, "belongs to user 12345") {
			t.Errorf("%+v", r.Problems)
		}
	}
}
