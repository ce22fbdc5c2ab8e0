package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// VLT-03: every spelling of a full disk that a system has, and none of another fault.
func TestVLT03Spellings(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  error
		goos string
		want bool
	}{
		{syscall.ENOSPC, "linux", true},
		{syscall.EDQUOT, "linux", true},
		{syscall.EFBIG, "darwin", true},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, "darwin", true},
		{fmt.Errorf("deed: %w", errors.Join(nil, &os.SyscallError{Syscall: "write", Err: syscall.EDQUOT})), "linux", true},
		{syscall.EIO, "linux", false},
		{syscall.EACCES, "linux", false},
		{syscall.Errno(112), "windows", true}, // ERROR_DISK_FULL; EHOSTDOWN elsewhere
		{syscall.Errno(112), "linux", false},
		{syscall.Errno(39), "windows", true},
		{syscall.Errno(1295), "windows", true},
		{syscall.Errno(5), "windows", false},
		{errors.New("no space left on device"), "linux", false}, // a text is no proof
		{nil, "linux", false},
	} {
		if got := isDiskFull(tc.err, tc.goos); got != tc.want {
			t.Errorf("isDiskFull(%v, %s) = %v, want %v", tc.err, tc.goos, got, tc.want)
		}
	}
	path := filepath.Join(t.TempDir(), vaultFile)
	if err := vaultFault(path, &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}); !errors.Is(err, errVaultFull) {
		t.Errorf("got %v", err)
	}
	if noRoomFor(path) {
		t.Error("no room where there is some")
	}
	if got := vaultNames(t, filepath.Dir(path)); len(got) != 0 {
		t.Errorf("the trial left %v", got)
	}
}

// sayDiskFull wants the one sentence for it.
func sayDiskFull(t *testing.T, what, text string) {
	t.Helper()
	if !strings.Contains(text, "disk is full") || strings.Contains(text, "disk fault") {
		t.Errorf("%s: got %q", what, text)
	}
}
