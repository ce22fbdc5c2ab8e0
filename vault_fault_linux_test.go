package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// smallDisk mounts a file system of so many bytes for one test, or skips the test.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		skipMissing(t, "no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// emptyDisk gives back what fill takes, at once: a process that another test is just starting may hold the file open for a moment more, and only
// the removal would wait for it.
func emptyDisk(fill string) error { return errors.Join(os.Truncate(fill, 0), os.Remove(fill)) }

// fillDisk leaves room for so many pages of 4 KiB and gives the file that takes the rest.
func fillDisk(t *testing.T, dir string, pages int64) (fill string) {
	t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	fill = filepath.Join(dir, "fill")
	f, err := os.OpenFile(fill, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if n := int64(st.Bfree) - pages; n > 0 {
		_, err = f.Write(make([]byte, n*st.Bsize))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return fill
}

// VLT-03, AUD-06: on a full disk the program reads, refuses to write with one sentence, acts on nothing that it cannot record,
// and writes again when there is room.
func TestVLT03DiskFullCLI(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 4<<20)
	r := newCLIRig(t)
	r.home = filepath.Join(disk, "home")
	tai := func(words ...string) (int, string) {
		t.Helper()
		out, err := r.process(words...).CombinedOutput()
		e, exited := errors.AsType[*exec.ExitError](err)
		if err != nil && !exited {
			t.Fatal(err)
		}
		if exited {
			return e.ExitCode(), string(out)
		}
		return exitDone, string(out)
	}
	r.with("value-one", "secret", "set", "ONE", "--from", "-").ok()
	r.addFake("fake", fakeStdio{})
	fill := fillDisk(t, disk, 0)
	for _, tc := range []struct {
		words []string
		want  string
	}{
		{[]string{"secret", "list"}, "ONE"},
		{[]string{"secret", "list", "--json"}, `"ONE"`},
		{[]string{"mcp", "list"}, "fake"},
		{[]string{"mcp", "tools", "fake", "--stored"}, "echo"},
		{[]string{"profile", "list"}, "default"},
		{[]string{"tools", "list"}, "mcp_fake_echo"},
	} {
		if code, out := tai(tc.words...); code != exitDone || !strings.Contains(out, tc.want) {
			t.Errorf("tai %q: exit %d: %s", tc.words, code, out)
		}
	}
	r.env = []string{"FROM=value-two"}
	for _, words := range [][]string{
		{"secret", "set", "TWO", "--from", "env:FROM"},
		{"secret", "delete", "ONE"},
		{"mcp", "disable", "fake"},
		{"profile", "create", "work", "--json"},
	} {
		code, out := tai(words...)
		if code != exitFailed {
			t.Errorf("tai %q: exit %d", words, code)
		}
		sayDiskFull(t, fmt.Sprint(words), out)
	}
	made := filepath.Join(r.dir, "made")
	if code, out := tai("tools", "call", "shell_run", "command=touch "+made, "--yolo"); code != exitFailed || !strings.Contains(out, "no space left") && !strings.Contains(out, "disk is full") {
		t.Errorf("tools call: exit %d: %s", code, out)
	}
	if _, err := os.Stat(made); !os.IsNotExist(err) {
		t.Errorf("it acted without a record: %v", err)
	}
	if err := emptyDisk(fill); err != nil {
		t.Fatal(err)
	}
	if code, out := tai("secret", "set", "TWO", "--from", "env:FROM"); code != exitDone {
		t.Errorf("with room again: exit %d: %s", code, out)
	}
	r.tai("secret", "list").outHas("ONE", "TWO")
	if left := vaultNames(t, r.home); slices.ContainsFunc(left, func(n string) bool { return strings.HasPrefix(n, vaultTemp) }) {
		t.Errorf("left behind: %v", left)
	}
}

// VLT-03: whatever room is left, a secret is kept whole or not at all, and a vault is made whole or not at all.
func TestVLT03EveryRoom(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 1<<20)
	home := filepath.Join(disk, "home")
	big := secret(bytes.Repeat([]byte("x"), 60<<10))
	failed, kept := 0, 0
	for pages := int64(0); pages < 64; pages += 3 {
		t.Run(strconv.Itoa(int(pages)), func(t *testing.T) {
			vaultMade(t, home)
			fill := fillDisk(t, disk, pages)
			v, err := openVault(t.Context(), home, vaultWrite, vaultClock, testKeys())
			if err == nil {
				err = v.putSecret(t.Context(), "", "NEW", big, nil)
				if closing := v.close(); closing != nil { // what was put stays put
					sayDiskFull(t, "close", closing.Error())
				}
			}
			if err != nil {
				failed++
				sayDiskFull(t, "put", err.Error())
			} else {
				kept++
			}
			v, openErr := openVault(t.Context(), home, vaultRead, vaultClock, testKeys())
			if openErr != nil {
				t.Fatal(openErr)
			}
			if s, err := v.secretFor(t.Context(), "", "KEPT"); err != nil || s.reveal() != "value-1" {
				t.Errorf("the old secret: %v", err)
			}
			unsure := errors.Is(err, errVaultUnsure) // then it is there whole, or not at all
			if s, readErr := v.secretFor(t.Context(), "", "NEW"); err == nil && s != big || err != nil && !errors.Is(readErr, errNotFound) && !(unsure && s == big) {
				t.Errorf("put: %v, then read: %d bytes, %v", err, len(s.reveal()), readErr)
			}
			if err := errors.Join(v.close(), emptyDisk(fill)); err != nil {
				t.Error(err)
			}
			v = vaultAt(t, home)
			if err := v.putSecret(t.Context(), "", "NEW", big, nil); err != nil {
				t.Errorf("with room again: %v", err)
			}
			var sound string
			if err := v.db.QueryRow(`PRAGMA integrity_check`).Scan(&sound); err != nil || sound != "ok" {
				t.Errorf("integrity: %q, %v", sound, err)
			}
		})
		createOnFullDisk(t, disk, home, pages)
	}
	if failed < 3 || kept < 3 {
		t.Errorf("%d failed, %d were kept: the rooms tried show too little", failed, kept)
	}
}

// createOnFullDisk makes a vault with so many pages of room: it is there whole, or not at all.
func createOnFullDisk(t *testing.T, disk, home string, pages int64) {
	t.Helper()
	if err := os.RemoveAll(home); err != nil {
		t.Fatal(err)
	}
	fill := fillDisk(t, disk, pages)
	v, err := openVault(t.Context(), home, vaultWrite, vaultClock, testKeys())
	if err == nil {
		err = v.close()
	} else {
		sayDiskFull(t, "create", err.Error())
	}
	if err := errors.Join(err, emptyDisk(fill)); err != nil && !errors.Is(err, errVaultFull) {
		t.Fatal(err)
	}
	var left []string
	if _, err := os.Stat(home); err == nil {
		left = vaultNames(t, home)
	}
	if err != nil && !slices.Contains(left, vaultFile) && len(left) > 0 {
		t.Errorf("%d pages: a vault that was not made left %v", pages, left)
	}
	vaultMade(t, home)
	if err := os.RemoveAll(home); err != nil {
		t.Fatal(err)
	}
}

// VLT-03, VLT-10: on a full disk the journal that a killed process left is read, also when its index is gone.
func TestVLT03JournalLeft(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 2<<20)
	home := filepath.Join(disk, "home")
	writer := startVaultWriter(t, "TAI_HOME="+home, "TAI_TEST_N=20", "TAI_TEST_ID=K", "TAI_TEST_HANG=1")
	writer.kill()
	path := filepath.Join(home, vaultFile)
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Fatalf("no journal was left: %v", err)
	}
	if err := os.Remove(path + "-shm"); err != nil {
		t.Fatal(err)
	}
	fillDisk(t, disk, 0)
	var open []*vault
	v, err := openVault(t.Context(), home, vaultRead, vaultClock, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	open = append(open, v)
	if l, err := v.secrets(t.Context()); err != nil || len(l) != 20 {
		t.Errorf("%d secrets, %v; want 20", len(l), err)
	}
	// Another process waits its turn, and has it.
	second := make(chan error, 1)
	go func() { // ends with the wait for the lock
		v, err := openVault(t.Context(), home, vaultRead, vaultClock, testKeys())
		if err == nil {
			_, err = v.secrets(t.Context())
			err = errors.Join(err, v.close())
		}
		second <- err
	}()
	if err := open[0].close(); err != nil {
		t.Error(err)
	}
	if err := <-second; err != nil {
		t.Errorf("the next reader: %v", err)
	}
}

// VLT-03: a backup to a full disk leaves nothing there; one from a full disk to another is made.
func TestVLT03Backup(t *testing.T) {
	t.Parallel()
	full, home := smallDisk(t, 1<<20), t.TempDir()
	v := vaultAt(t, home)
	fillVault(t, v)
	for _, pages := range []int64{0, 1, 5, 20} {
		fill := fillDisk(t, full, pages)
		_, err := v.backup(t.Context(), filepath.Join(full, "copy.db"))
		if !errors.Is(err, errVaultFull) || !strings.Contains(err.Error(), "copy.db") {
			t.Errorf("%d pages: %v", pages, err)
		}
		if got := vaultNames(t, full); len(got) != 1 {
			t.Errorf("%d pages: left %v", pages, got)
		}
		if err := emptyDisk(fill); err != nil {
			t.Fatal(err)
		}
	}
	vaultMade(t, filepath.Join(full, "home"))
	fillDisk(t, full, 0)
	from, err := openVault(t.Context(), filepath.Join(full, "home"), vaultRead, vaultClock, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	defer from.close()
	if info, err := from.backup(t.Context(), filepath.Join(t.TempDir(), "copy.db")); err != nil || info.Rows["secrets"] != 1 {
		t.Errorf("from a full disk: %+v, %v", info, err)
	}
}

// VLT-03: a vault on a full disk is checked, and nothing is written to it; so is one in a folder that nobody may write to.
func TestVLT03Check(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 1<<20)
	home := filepath.Join(disk, "home")
	vaultMade(t, home)
	fillDisk(t, disk, 0)
	if r := checkedVault(t, home); r.State != vaultFine || len(r.Problems) != 0 {
		t.Errorf("full: %+v", r)
	}
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("it cannot be mounted read-only: %v", err)
	}
	if r := checkedVault(t, home); r.State != vaultFine || len(r.Problems) != 0 {
		t.Errorf("read-only: %+v", r)
	}
}
