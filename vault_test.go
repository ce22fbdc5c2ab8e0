package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func vaultClock() time.Time { return time.Unix(1_800_000_000, 0) }

// vaultAt opens home's vault for writing and closes it with the test.
func vaultAt(t testing.TB, home string) *vault {
	t.Helper()
	v, err := openVault(t.Context(), home, vaultWrite, vaultClock, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// vaultMade makes a vault with one secret, closed, and gives its path and bytes.
func vaultMade(t testing.TB, home string) (path string, content []byte) {
	t.Helper()
	v, err := openVault(t.Context(), home, vaultWrite, vaultClock, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(v.putSecret(t.Context(), "", "KEPT", "value-1", nil), v.close()); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(home, vaultFile)
	content, err = os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, content
}

func vaultNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// fakeVaultWriter stores TAI_TEST_N secrets, one transaction each, under names that start with TAI_TEST_ID, once a line
// comes on stdin; with TAI_TEST_HANG it then waits to be killed.
func fakeVaultWriter() {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	ctx := context.Background()
	n, err := strconv.Atoi(os.Getenv("TAI_TEST_N"))
	fail(err)
	var line [1]byte
	fmt.Println("ready")
	_, err = os.Stdin.Read(line[:])
	fail(err)
	v, err := openVault(ctx, os.Getenv("TAI_HOME"), vaultWrite, time.Now, testKeys())
	fail(err)
	for i := range n {
		fail(v.putSecret(ctx, "", fmt.Sprintf("%s_%d", os.Getenv("TAI_TEST_ID"), i), secret(strconv.Itoa(i)+"x"), nil))
	}
	if os.Getenv("TAI_TEST_HANG") != "" {
		fmt.Println("written")
		_, _ = os.Stdin.Read(line[:])
	}
	fail(v.close())
}

func vaultProcess(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 60*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// VLT-01: two processes write at once, from the very creation of the vault.
func TestVLT01TwoWriters(t *testing.T) {
	t.Parallel()
	const each = 1000
	home := filepath.Join(t.TempDir(), "home")
	var outputs [2]bytes.Buffer
	var cmds [2]*exec.Cmd
	for i := range cmds {
		cmds[i] = vaultProcess(t, "TAI_TEST_FAKE=vault-writer", "TAI_HOME="+home, "TAI_TEST_N="+strconv.Itoa(each), fmt.Sprintf("TAI_TEST_ID=W%d", i))
		cmds[i].Stdin = strings.NewReader("x")
		cmds[i].Stdout, cmds[i].Stderr = &outputs[i], &outputs[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("writer %d: %v: %s", i, err, &outputs[i])
		}
		if strings.Contains(outputs[i].String(), "locked") {
			t.Errorf("writer %d shows a lock: %s", i, &outputs[i])
		}
	}
	v := vaultAt(t, home)
	list, err := v.knownSecrets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{}
	for _, s := range list {
		kept[s.Name] = s.Value.reveal()
	}
	for i := range 2 * each {
		name, want := fmt.Sprintf("W%d_%d", i/each, i%each), strconv.Itoa(i%each)+"x"
		if kept[name] != want {
			t.Errorf("%s = %q, want %q", name, kept[name], want)
		}
	}
	if len(list) != 2*each {
		t.Errorf("%d secrets, want %d", len(list), 2*each)
	}
	if got := vaultNames(t, home); strings.Contains(strings.Join(got, " "), ".new-") {
		t.Errorf("left behind: %v", got)
	}
}

// VLT-01: a lock that never ends becomes a sentence, after the cap.
func TestVLT01BusySentence(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	holder, waiter := vaultAt(t, home), vaultAt(t, home)
	if waiter.busyWait != 10*time.Second || vaultBusyWait != 10*time.Second {
		t.Errorf("default wait is %v", waiter.busyWait)
	}
	waiter.busyWait = time.Millisecond
	err := holder.withTx(t.Context(), func(*sql.Tx) error {
		err := waiter.putSecret(t.Context(), "", "A", "b", nil)
		if !errors.Is(err, errVaultBusy) || strings.Contains(err.Error(), "locked (") || !strings.Contains(err.Error(), vaultFile) {
			t.Errorf("got %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := waiter.putSecret(t.Context(), "", "A", "b", nil); err != nil {
		t.Errorf("after the lock: %v", err)
	}
}

// A method called inside a transaction would wait for itself; it ends after the cap.
func TestVaultNestedUseEnds(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, t.TempDir())
	v.busyWait = time.Millisecond
	err := v.withTx(t.Context(), func(*sql.Tx) error { return v.setSetting(t.Context(), "a", "b") })
	if !errors.Is(err, errVaultBusy) {
		t.Errorf("got %v", err)
	}
}

// Many callers of one vault wait for each other.
func TestVaultConcurrentUse(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, t.TempDir())
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			name := fmt.Sprintf("N%d", i)
			if err := v.putSecret(t.Context(), "", name, secret(name), nil); err != nil {
				t.Error(err)
			}
			if s, err := v.secretFor(t.Context(), "", name); err != nil || s.reveal() != name {
				t.Errorf("%s = %q, %v", name, s.reveal(), err)
			}
		})
	}
	wg.Wait()
}

// A full disk is a sentence, the vault keeps its old rows and works again when there is room.
func TestVaultDiskFull(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, t.TempDir())
	if err := v.putSecret(t.Context(), "", "OLD", "kept", nil); err != nil {
		t.Fatal(err)
	}
	big := secret(bytes.Repeat([]byte("x"), 100<<10))
	if _, err := v.db.Exec(`PRAGMA max_page_count = 1`); err != nil { // SQLite raises it to the pages there are
		t.Fatal(err)
	}
	err := v.putSecret(t.Context(), "", "NEW", big, nil)
	if !errors.Is(err, errVaultFull) || !strings.HasPrefix(err.Error(), `store secret "NEW": vault `+v.path) {
		t.Errorf("got %v", err)
	}
	if l, err := v.secrets(t.Context()); err != nil || len(l) != 1 {
		t.Errorf("%d secrets, %v", len(l), err)
	}
	if _, err := v.db.Exec(`PRAGMA max_page_count = 1000000`); err != nil {
		t.Fatal(err)
	}
	if err := v.putSecret(t.Context(), "", "NEW", big, nil); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// Where there are no hard links one of many gets the name, and keeps it.
func TestVaultRenameNew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "v")
	var wg sync.WaitGroup
	for i := range 8 {
		temp := filepath.Join(dir, fmt.Sprint("temp", i))
		if err := os.WriteFile(temp, []byte(temp), 0o600); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := renameNew(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	winner, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(string(winner)); !errors.Is(err, fs.ErrNotExist) || len(vaultNames(t, dir)) != 8 {
		t.Errorf("%s won; files %v", winner, vaultNames(t, dir))
	}
	if err := renameNew(filepath.Join(dir, "missing"), filepath.Join(dir, "w")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a rename that failed: %v", err)
	}
	if noHardLinks(&os.LinkError{Op: "link", Err: syscall.EIO}, "linux") || !noHardLinks(&os.LinkError{Op: "link", Err: syscall.EPERM}, "linux") {
		t.Error("noHardLinks takes one fault for another")
	}
}

// VLT-02, VLT-03: only what is known to have left nothing says so.
func TestVLT02Outcome(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, t.TempDir())
	if _, err := v.db.Exec(`PRAGMA max_page_count = 1`); err != nil {
		t.Fatal(err)
	}
	err := v.putSecret(t.Context(), "", "NEW", secret(bytes.Repeat([]byte("x"), 100<<10)), nil)
	if err == nil || !strings.HasSuffix(err.Error(), "the disk is full; nothing was changed") {
		t.Errorf("got %v", err)
	}
	if got := vaultOutcome(errNotFound, errNotFound, true); got != errNotFound {
		t.Errorf("no disk fault: %v", got)
	}
}

func TestVaultWaitEndsWithContext(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	holder, waiter := vaultAt(t, home), vaultAt(t, home)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := holder.withTx(t.Context(), func(*sql.Tx) error { return waiter.putSecret(ctx, "", "A", "b", nil) })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// Reading where there is no vault makes nothing, not even a folder.
func TestVaultReadMakesNothing(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "a", "b")
	v, err := openVault(t.Context(), home, vaultRead, vaultClock, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	defer v.close()
	if p, err := v.currentProfile(t.Context()); err != nil || p != "default" {
		t.Errorf("profile %q, %v", p, err)
	}
	if l, err := v.servers(t.Context()); err != nil || len(l) != 0 {
		t.Errorf("servers %v, %v", l, err)
	}
	if err := v.setSetting(t.Context(), "a", "b"); !errors.Is(err, errVaultReading) {
		t.Errorf("write: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(home)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was made: %v", err)
	}
}

// vaultWriter is a running fakeVaultWriter.
type vaultWriter struct{ cmd *exec.Cmd }

// startVaultWriter starts one with TAI_TEST_HANG and returns when it has written all.
func startVaultWriter(t *testing.T, env ...string) vaultWriter {
	t.Helper()
	cmd := vaultProcess(t, append(env, "TAI_TEST_FAKE=vault-writer")...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close() })
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	var seen []byte
	for b := make([]byte, 64); !bytes.Contains(seen, []byte("written")); {
		n, err := stdout.Read(b)
		seen = append(seen, b[:n]...)
		if err != nil {
			t.Fatalf("%v after %q", err, seen)
		}
	}
	return vaultWriter{cmd}
}

func (w vaultWriter) kill() {
	w.cmd.Process.Kill()
	w.cmd.Wait()
}

// VLT-10: what a killed process left in the journal is there again; a copy without the journal is an older whole state.
func TestVLT10JournalLeft(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	startVaultWriter(t, "TAI_HOME="+home, "TAI_TEST_N=20", "TAI_TEST_ID=K", "TAI_TEST_HANG=1").kill()
	path := filepath.Join(home, vaultFile)
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Fatalf("no journal was left: %v", err)
	}
	main, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []vaultMode{vaultRead, vaultWrite} {
		v, err := openVault(t.Context(), home, mode, vaultClock, testKeys())
		if err != nil {
			t.Fatal(err)
		}
		if l, err := v.secrets(t.Context()); err != nil || len(l) != 20 {
			t.Errorf("mode %d: %d secrets, %v; want 20", mode, len(l), err)
		}
		if err := v.close(); err != nil {
			t.Error(err)
		}
	}
	bare := t.TempDir()
	if err := os.WriteFile(filepath.Join(bare, vaultFile), main, 0o600); err != nil {
		t.Fatal(err)
	}
	v := vaultAt(t, bare)
	var sound string
	if err := v.db.QueryRow(`PRAGMA integrity_check`).Scan(&sound); err != nil || sound != "ok" {
		t.Errorf("copy: %q, %v", sound, err)
	}
	list, err := v.knownSecrets(t.Context())
	if err != nil || len(list) > 20 {
		t.Errorf("copy: %d secrets, %v", len(list), err)
	}
	for i, s := range list { // by name; the first so many were written before
		if _, err := v.secretFor(t.Context(), "", fmt.Sprint("K_", i)); err != nil {
			t.Errorf("copy: %s is there and not what was written before: %v", s.Name, err)
		}
	}
}

// VLT-10: a journal without its vault is not played into a new one.
func TestVLT10JournalAlone(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	wal := filepath.Join(home, vaultFile+"-wal")
	if err := os.WriteFile(wal, []byte("journal"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := openVault(t.Context(), home, vaultWrite, vaultClock, testKeys())
	if err == nil || !strings.Contains(err.Error(), wal) {
		t.Errorf("got %v", err)
	}
	if got := vaultNames(t, home); len(got) != 1 {
		t.Errorf("files: %v", got)
	}
}

// VLT-11: a newer schema is refused and both files keep their bytes, also when the news is in the journal alone.
func TestVLT11Newer(t *testing.T) {
	t.Parallel()
	newer := append(vaultMigrations(), `CREATE TABLE later (x)`)
	for _, inJournal := range []bool{false, true} {
		home := t.TempDir()
		path, _ := vaultMade(t, home)
		v, err := openVaultAs(t.Context(), home, vaultWrite, vaultClock, testKeys(), newer)
		if err != nil {
			t.Fatal(err)
		}
		var wal []byte
		if inJournal { // take the files as a killed process would leave them
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if wal, err = os.ReadFile(path + "-wal"); err != nil {
				t.Fatal(err)
			}
			home = t.TempDir()
			path = filepath.Join(home, vaultFile)
			if err := errors.Join(os.WriteFile(path, content, 0o600), os.WriteFile(path+"-wal", wal, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if err := v.close(); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []vaultMode{vaultRead, vaultWrite} {
			v, err := openVault(t.Context(), home, mode, vaultClock, testKeys())
			if err == nil {
				v.close()
			}
			if !errors.Is(err, errVaultNewer) || !strings.Contains(err.Error(), path) {
				t.Errorf("journal %v, mode %d: %v", inJournal, mode, err)
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(after, before) {
				t.Errorf("journal %v, mode %d: the file changed (%v)", inJournal, mode, err)
			}
			if left, err := os.ReadFile(path + "-wal"); inJournal && (err != nil || !bytes.Equal(left, wal)) {
				t.Errorf("mode %d: the journal changed (%v)", mode, err)
			}
		}
	}
}

// An older vault is brought up to date, once, whoever opens it; a step that fails leaves nothing of itself.
func TestVaultMigrates(t *testing.T) {
	t.Parallel()
	for _, mode := range []vaultMode{vaultRead, vaultWrite} {
		home := t.TempDir()
		vaultMade(t, home)
		broken := append(vaultMigrations(), `CREATE TABLE later (x); INSERT INTO nowhere VALUES (1)`)
		if v, err := openVaultAs(t.Context(), home, mode, vaultClock, testKeys(), broken); err == nil {
			v.close()
			t.Fatal("a broken step passed")
		}
		good := append(vaultMigrations(), `CREATE TABLE later (x); INSERT INTO later VALUES (7)`)
		for range 2 {
			v, err := openVaultAs(t.Context(), home, mode, vaultClock, testKeys(), good)
			if err != nil {
				t.Fatal(err)
			}
			var rows, version int
			if err := v.db.QueryRow(`SELECT count(*), user_version FROM later, pragma_user_version`).Scan(&rows, &version); err != nil || rows != 1 || version != len(good) {
				t.Errorf("mode %d: %d rows, version %d, %v", mode, rows, version, err)
			}
			if s, err := v.secretFor(t.Context(), "", "KEPT"); err != nil || s.reveal() != "value-1" {
				t.Errorf("the old secret: %v", err)
			}
			if err := v.close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// VLT-12: two names lead to one file and one journal.
func TestVLT12Links(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	dir := t.TempDir()
	home, byHome, byFile := filepath.Join(dir, "home"), filepath.Join(dir, "byhome"), filepath.Join(dir, "byfile")
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := vaultAt(t, home)
	if err := errors.Join(os.Symlink(home, byHome), os.Mkdir(byFile, 0o700), os.Symlink(a.path, filepath.Join(byFile, vaultFile))); err != nil {
		t.Fatal(err)
	}
	if err := a.putSecret(t.Context(), "", "A", "one", nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{byHome, byFile} {
		v := vaultAt(t, name)
		if want := filepath.Join(real, "home", vaultFile); v.path != want {
			t.Errorf("%s: path %s, want %s", name, v.path, want)
		}
		if s, err := v.secretFor(t.Context(), "", "A"); err != nil || s.reveal() != "one" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := vaultNames(t, byFile); len(got) != 1 {
		t.Errorf("a second journal: %v", got)
	}
	lost := t.TempDir()
	if err := os.Symlink(filepath.Join(lost, "gone"), filepath.Join(lost, vaultFile)); err != nil {
		t.Fatal(err)
	}
	hard := filepath.Join(t.TempDir(), "[x]*")
	path, _ := vaultMade(t, hard)
	if err := os.Link(path, filepath.Join(hard, "second.db")); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []vaultMode{vaultRead, vaultWrite} {
		for home, want := range map[string]string{lost: "leads nowhere", hard: "second name"} {
			if v, err := openVault(t.Context(), home, mode, vaultClock, testKeys()); err == nil {
				v.close()
				t.Errorf("opened, want %q", want)
			} else if !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
	// What a crash between the two names of a new vault leaves is cleared away.
	if err := os.Rename(filepath.Join(hard, "second.db"), filepath.Join(hard, vaultFile+".new-1")); err != nil {
		t.Fatal(err)
	}
	vaultAt(t, hard)
	if _, err := os.Stat(filepath.Join(hard, vaultFile+".new-1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the first name is still there: %v", err)
	}
}

// VLT-13: older ones can lose commits when two connections checkpoint; 3.52.0 was withdrawn.
func TestVLT13SQLiteVersion(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, t.TempDir())
	var text string
	if err := v.db.QueryRow(`SELECT sqlite_version()`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	var n [3]int
	if _, err := fmt.Sscanf(text, "%d.%d.%d", &n[0], &n[1], &n[2]); err != nil {
		t.Fatal(err)
	}
	if number := n[0]*1_000_000 + n[1]*1000 + n[2]; number < 3_051_003 || number == 3_052_000 {
		t.Errorf("SQLite %s", text)
	}
}

func TestVaultPragmas(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "what? 50%#a b")
	v := vaultAt(t, home)
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "busy_timeout": "200",
		"application_id": strconv.Itoa(vaultAppID), "user_version": strconv.Itoa(len(vaultMigrations())), "page_size": strconv.Itoa(vaultPageSize),
	} {
		var got string
		if err := v.db.QueryRow(`PRAGMA ` + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", pragma, got, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(home, vaultFile)); err != nil {
		t.Error(err)
	}
}

// A backup (VACUUM INTO) has the rollback journal; opened for writing it gets the write-ahead journal back.
func TestVaultBackupOpens(t *testing.T) {
	t.Parallel()
	home, restored := t.TempDir(), t.TempDir()
	v := vaultAt(t, home)
	if err := v.putSecret(t.Context(), "", "A", "one", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := v.db.Exec(`VACUUM INTO ?`, filepath.Join(restored, vaultFile)); err != nil {
		t.Fatal(err)
	}
	r := vaultAt(t, restored)
	var mode string
	if err := r.db.QueryRow(`PRAGMA journal_mode`).Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("journal %q, %v", mode, err)
	}
	if s, err := r.secretFor(t.Context(), "", "A"); err != nil || s.reveal() != "one" {
		t.Error(err)
	}
}

// A cancelled call leaves the vault usable.
func TestVaultAfterCancel(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	err := v.withTx(ctx, func(tx *sql.Tx) error {
		if err := putSetting(ctx, tx, "a", "b"); err != nil {
			return err
		}
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := v.setting(t.Context(), "a"); !errors.Is(err, errNotFound) {
		t.Errorf("after the cancel: %v", err)
	}
	if err := v.setSetting(t.Context(), "a", "c"); err != nil {
		t.Error(err)
	}
}

// No home is an error, not a vault in the current folder.
func TestVaultNeedsHome(t *testing.T) {
	t.Parallel()
	if _, err := openVault(t.Context(), "", vaultWrite, vaultClock, testKeys()); err == nil || !strings.Contains(err.Error(), "--home") {
		t.Errorf("got %v", err)
	}
}

// BenchmarkVaultOpen opens an existing vault, runs one SELECT and closes it; speed.md wants at most 1 ms.
func BenchmarkVaultOpen(b *testing.B) {
	home := b.TempDir()
	vaultMade(b, home)
	for b.Loop() {
		v, err := openVault(b.Context(), home, vaultRead, vaultClock, testKeys())
		if err != nil {
			b.Fatal(err)
		}
		if _, err := v.secretFor(b.Context(), "", "KEPT"); err != nil {
			b.Fatal(err)
		}
		if err := v.close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVaultCreate makes a vault; P10 allows 20 ms.
func BenchmarkVaultCreate(b *testing.B) {
	dir := b.TempDir()
	for i := 0; b.Loop(); i++ {
		v, err := openVault(b.Context(), filepath.Join(dir, strconv.Itoa(i)), vaultWrite, vaultClock, testKeys())
		if err != nil {
			b.Fatal(err)
		}
		if err := v.close(); err != nil {
			b.Fatal(err)
		}
	}
}
