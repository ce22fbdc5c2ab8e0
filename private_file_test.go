package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Every fault of a file of secrets is told apart, names the file and shows nothing of it.
func TestReadPrivateFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, size int, mode fs.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(strings.Repeat("s", size)), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	isLoose := func(err error) bool {
		e, ok := errors.AsType[*looseFileError](err)
		return ok && e.Mode == 0o640
	}
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	for _, tc := range []struct {
		name, path, goos string
		fits             func(error) bool
	}{
		{"full", write("full", 8, 0o600), "linux", nil},
		{"empty", write("empty", 0, 0o400), "linux", nil},
		{"over", write("over", 9, 0o600), "linux", is(errTooLarge)},
		{"loose", write("loose", 8, 0o640), "linux", isLoose},
		{"loose on windows", write("loose-too", 8, 0o640), "windows", nil},
		{"folder", dir, "linux", is(errNotRegular)},
		{"none", filepath.Join(dir, "none"), "linux", is(fs.ErrNotExist)},
	} {
		if runtime.GOOS == "windows" && tc.name == "loose" {
			continue // its modes say nothing
		}
		b, err := readPrivateFile(tc.path, 8, tc.goos)
		switch {
		case tc.fits == nil && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.fits != nil && (err == nil || !tc.fits(err)):
			t.Errorf("%s: %v", tc.name, err)
		case err != nil && (!strings.Contains(err.Error(), tc.path) || strings.Contains(err.Error(), "ssss")):
			t.Errorf("%s: %v", tc.name, err)
		case err == nil && strings.Trim(string(b), "s") != "":
			t.Errorf("%s: read %q", tc.name, b)
		}
	}
}
