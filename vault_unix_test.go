//go:build unix

package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// VLT-09: umask 000, 022 and 0777 at creation: files 0600 with journal and index, folder 0700.
func TestVLT09Modes(t *testing.T) {
	t.Parallel()
	for _, umask := range []string{"000", "022", "0277"} {
		home := filepath.Join(t.TempDir(), "home")
		cmd := vaultProcess(t, "TAI_TEST_FAKE=vault-modes", "TAI_HOME="+home, "TAI_TEST_UMASK="+umask)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("umask %s: %v: %s", umask, err, out)
		}
		want := "home 700\nvault.db 600\nvault.db-shm 600\nvault.db-wal 600\n"
		if string(out) != want {
			t.Errorf("umask %s:\n%swant\n%s", umask, out, want)
		}
	}
}

// fakeVaultModes makes a vault under TAI_TEST_UMASK and prints the modes while it is open.
func fakeVaultModes() {
	var umask int
	_, err := fmt.Sscanf(os.Getenv("TAI_TEST_UMASK"), "%o", &umask)
	syscall.Umask(umask)
	home := os.Getenv("TAI_HOME")
	v, openErr := openVault(context.Background(), home, vaultWrite, time.Now, testKeys())
	if err = errors.Join(err, openErr); err == nil {
		err = v.setSetting(context.Background(), "a", "b")
	}
	for _, name := range []string{"", vaultFile, vaultFile + "-shm", vaultFile + "-wal"} {
		info, statErr := os.Stat(filepath.Join(home, name))
		if err = errors.Join(err, statErr); statErr == nil {
			fmt.Printf("%s %o\n", info.Name(), info.Mode().Perm())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// VLT-09: a vault that others could read is closed to them when it is next written; a folder that was there keeps its
// mode.
func TestVLT09Tightens(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	path, _ := vaultMade(t, home)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	vaultAt(t, home)
	for name, want := range map[string]os.FileMode{path: 0o600, home: 0o755} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
}

// fakeVaultLocked reads, and tries to write, a vault without being root; it prints what came of it.
func fakeVaultLocked() {
	if os.Getuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	ctx, home := context.Background(), os.Getenv("TAI_HOME")
	v, err := openVault(ctx, home, vaultRead, time.Now, testKeys())
	if err == nil {
		var list []secretInfo
		list, err = v.secrets(ctx)
		value, valueErr := v.secretFor(ctx, "", "A")
		told := []error{err, valueErr}
		sessions, _, err := v.sessions(ctx, sessionQuery{})
		told = append(told, err)
		for _, s := range sessions {
			_, err := v.session(ctx, s.ID)
			_, readErr := v.messages(ctx, s.ID)
			told = append(told, err, readErr)
		}
		_, modelErr := v.models(ctx)
		_, _, memoryErr := v.searchMemories(ctx, memoryQuery{})
		_, headErr := v.auditHeads(ctx)
		_, recordErr := v.searchRecords(ctx, "word", 0)
		_, serverErr := v.servers(ctx)
		err = errors.Join(append(told, modelErr, memoryErr, headErr, recordErr, serverErr, v.close())...)
		fmt.Println("read", len(list), value.reveal(), len(sessions))
	}
	if err != nil {
		fmt.Println("read:", err)
	}
	v, err = openVault(ctx, home, vaultWrite, time.Now, testKeys())
	if err == nil {
		err = errors.Join(v.putSecret(ctx, "", "NEW", "x", nil), v.close())
	}
	fmt.Println("write:", err)
}

// VLT-04: folder or file without write permission: reads work, writes are a clear error, nothing changes.
func TestVLT04ReadOnly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		folder, file os.FileMode
		journal      bool // a process was killed before
	}{
		{"folder", 0o555, 0o600, false},
		{"file", 0o700, 0o400, false},
		{"both", 0o555, 0o400, false},
		{"folder with a journal", 0o555, 0o600, true},
		{"both with a journal", 0o555, 0o400, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "tai-vault-*") // not t.TempDir: another user must be able to pass through
			if err != nil {
				t.Fatal(err)
			}
			home := filepath.Join(dir, "home")
			t.Cleanup(func() {
				if err := errors.Join(os.Chmod(home, 0o700), os.RemoveAll(dir)); err != nil {
					t.Error(err)
				}
			})
			path := vaultForOther(t, dir, home, tc.journal, vaultMigrations())
			for name, mode := range map[string]os.FileMode{path: tc.file, path + "-wal": tc.file, path + "-shm": tc.file, home: tc.folder} {
				if err := os.Chmod(name, mode); err != nil && !(strings.HasPrefix(name, path+"-") && os.IsNotExist(err)) {
					t.Fatal(err)
				}
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			out, err := vaultProcess(t, "TAI_TEST_FAKE=vault-locked", "TAI_HOME="+home, "TAI_TEST_KEYS="+filepath.Join(dir, "keys")).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			lines := strings.Split(string(out), "\n")
			if lines[0] != "read 1 b 1" {
				t.Errorf("got %q", lines[0])
			}
			// A writable file in a closed folder with both journal files at hand can be written.
			writable := tc.journal && tc.file == 0o600
			if !writable && (!strings.HasPrefix(lines[1], "write: ") || !strings.Contains(lines[1], errVaultReadOnly.Error()) || !strings.Contains(lines[1], path)) {
				t.Errorf("got %q", lines[1])
			}
			after, err := os.ReadFile(path)
			if err != nil || !writable && !bytes.Equal(before, after) {
				t.Errorf("the file changed (%v)", err)
			}
		})
	}
}

// VLT-04: a vault of each older schema from vaultReadsFrom on that cannot be written is read as it is, its sessions too.
func TestVLT04OlderReadOnly(t *testing.T) {
	t.Parallel()
	all := vaultMigrations()
	for schema := vaultReadsFrom; schema < len(all); schema++ {
		dir, err := os.MkdirTemp("", "tai-vault-*") // as above
		if err != nil {
			t.Fatal(err)
		}
		home := filepath.Join(dir, "home")
		t.Cleanup(func() {
			if err := errors.Join(os.Chmod(home, 0o700), os.RemoveAll(dir)); err != nil {
				t.Error(err)
			}
		})
		path := vaultForOther(t, dir, home, false, all[:schema])
		if err := errors.Join(os.Chmod(path, 0o400), os.Chmod(home, 0o555)); err != nil {
			t.Fatal(err)
		}
		out, err := vaultProcess(t, "TAI_TEST_FAKE=vault-locked", "TAI_HOME="+home, "TAI_TEST_KEYS="+filepath.Join(dir, "keys")).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "read 1 b 1\nwrite: ") || !strings.Contains(string(out), errVaultReadOnly.Error()) {
			t.Errorf("schema %d: %v, %s", schema, err, out)
		}
	}
}

// vaultForOther makes a vault of that schema, with one secret and one session, that the user of fakeVaultLocked owns.
func vaultForOther(t *testing.T, dir, home string, journal bool, migrations []string) (path string) {
	t.Helper()
	v, err := openVaultAs(t.Context(), filepath.Join(dir, "made"), vaultWrite, vaultClock, vaultKeys{Dir: filepath.Join(dir, "keys")}, migrations)
	if err != nil {
		t.Fatal(err)
	}
	err = v.withTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO sessions (id, profile, title, created, updated) VALUES ('s-1', '', 'one', 1, 1)`)
		return err
	})
	if err := errors.Join(err, v.putSecret(t.Context(), "", "A", "b", nil)); err != nil {
		t.Fatal(err)
	}
	if !journal {
		if err := v.close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(home, 0o700)); err != nil {
		t.Fatal(err)
	}
	names := vaultNames(t, filepath.Join(dir, "made"))
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, "made", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(home, name), b, 0o600)
		}
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(filepath.Join(home, name), 65534, 65534)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if journal {
		if err := v.close(); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		owned := append([]string{home, filepath.Join(dir, "keys")}, filesUnder(t, filepath.Join(dir, "keys"))...)
		for _, path := range owned {
			if err := os.Chown(path, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
	}
	return filepath.Join(home, vaultFile)
}

// filesUnder gives the paths of what stands in a folder.
func filesUnder(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	for _, name := range vaultNames(t, dir) {
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths
}
