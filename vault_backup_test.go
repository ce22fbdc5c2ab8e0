package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// vaultDump gives every row of every table as text, in order.
func vaultDump(t *testing.T, v *vault) string {
	t.Helper()
	var b strings.Builder
	err := v.view(t.Context(), func(tx *sql.Tx) error {
		names, err := tableNames(t.Context(), tx)
		if err != nil {
			return err
		}
		for _, name := range names {
			fmt.Fprintln(&b, "--", name)
			rows, err := tx.QueryContext(t.Context(), `SELECT * FROM `+quoteName(name)+` ORDER BY 1, 2`)
			if err != nil {
				return err
			}
			columns, err := rows.Columns()
			if err != nil {
				return err
			}
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			for rows.Next() {
				if err := rows.Scan(values...); err != nil {
					return err
				}
				for _, value := range values {
					fmt.Fprintf(&b, "%q ", fmt.Sprint(*value.(*any)))
				}
				fmt.Fprintln(&b)
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// fillVault stores something of each kind.
func fillVault(t *testing.T, v *vault) {
	t.Helper()
	ctx := t.Context()
	tools := []toolRow{{Tool: "z_last", Description: "d", Hash: strings.Repeat("a", 64)}, {Tool: "a_first", Description: "not granted"}}
	session, err := v.createSession(ctx, sessionInfo{Profile: profileDefault, Title: "tea"})
	err = errors.Join(err,
		v.putSecret(ctx, "", "PLAIN", "value-plain", nil),
		v.putSecret(ctx, profileDefault, oauthSecretPrefix("files")+"access", "value-token", nil),
		v.putServer(ctx, serverEntry{Name: "files", Transport: "stdio", Command: "x", Env: map[string]string{"K": "value-env-long"}}, profileDefault, true, tools, 32),
		v.appendMessages(ctx, session, []storedMessage{{Role: "user", Content: "tea?"}, {Role: "assistant", Content: "at four"}}))
	for _, text := range []string{"at three", "at four"} {
		_, _, memErr := v.saveMemory(ctx, memory{Text: text, Key: "tea"})
		err = errors.Join(err, memErr)
	}
	for _, body := range [][]byte{[]byte("an invoice of spring"), {0, 1, 2}, bytes.Repeat([]byte("word "), 4000)} {
		_, recErr := v.putRecord(ctx, "spill", "test", session, body)
		err = errors.Join(err, recErr)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A backup holds what the vault holds, is private, and takes the vault's place with cp.
func TestVaultBackup(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	v := vaultAt(t, home)
	fillVault(t, v)
	gone := "value-deleted-" + strconv.Itoa(os.Getpid())
	if err := errors.Join(v.putSecret(t.Context(), "", "GONE", secret(gone), nil), v.deleteSecret(t.Context(), "", "GONE")); err != nil {
		t.Fatal(err)
	}
	want := vaultDump(t, v)
	target := filepath.Join(dir, "copy.db")
	info, err := v.backup(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Stat(target)
	if err != nil || file.Size() != info.Bytes || info.Schema != len(vaultMigrations()) || info.Rows["secrets"] != 2 {
		t.Errorf("%+v, %v", info, err)
	}
	if runtime.GOOS != "windows" && file.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", file.Mode())
	}
	content, err := os.ReadFile(target)
	if err != nil || bytes.Contains(content, []byte(gone)) {
		t.Errorf("what was deleted is in the copy, or: %v", err)
	}
	if got := vaultNames(t, dir); len(got) != 1 {
		t.Errorf("beside it: %v", got)
	}
	restored := t.TempDir()
	if err := os.WriteFile(filepath.Join(restored, vaultFile), content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []vaultMode{vaultRead, vaultWrite, vaultRead} {
		r, err := openVault(t.Context(), restored, mode, vaultClock, v.keys)
		if err != nil {
			t.Fatal(err)
		}
		if got := vaultDump(t, r); got != want {
			t.Errorf("mode %d: restored\n%s\nwant\n%s", mode, got, want)
		}
		if l, err := r.cachedTools(t.Context(), "files"); err != nil || len(l) != 2 || l[0].Tool != "z_last" {
			t.Errorf("order of tools: %+v, %v", l, err)
		}
		if hits, err := r.searchRecords(t.Context(), "invoice", 0); err != nil || len(hits) != 1 {
			t.Errorf("search: %v, %v", hits, err)
		}
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}
}

// What a backup may not write to is refused with the reason, and nothing changes.
func TestVaultBackupRefuses(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	v := vaultAt(t, home)
	taken := filepath.Join(dir, "taken")
	if err := os.WriteFile(taken, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := map[string]error{
		taken:                               errBackupTaken,
		dir:                                 nil,
		v.path:                              errBackupSelf,
		v.path + "-wal":                     errBackupSelf,
		filepath.Join(home, ".", vaultFile): errBackupSelf,
		filepath.Join(dir, "none", "x.db"):  nil,
	}
	if runtime.GOOS != "windows" {
		byHome, byFile, nowhere, hard := filepath.Join(dir, "home"), filepath.Join(dir, "link"), filepath.Join(dir, "nowhere"), filepath.Join(dir, "hard")
		if err := errors.Join(os.Symlink(home, byHome), os.Symlink(v.path, byFile), os.Symlink(filepath.Join(dir, "missing"), nowhere), os.Link(v.path, hard)); err != nil {
			t.Fatal(err)
		}
		cases[filepath.Join(byHome, vaultFile)] = errBackupSelf
		cases[byFile], cases[hard] = errBackupSelf, errBackupSelf
		cases[nowhere] = errBackupTaken
	}
	before := vaultNames(t, dir)
	for target, want := range cases {
		_, err := v.backup(t.Context(), target)
		if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), target) {
			t.Errorf("%s: got %v, want %v", target, err, want)
		}
	}
	if b, err := os.ReadFile(taken); err != nil || string(b) != "mine" {
		t.Errorf("the file there: %q, %v", b, err)
	}
	if got := vaultNames(t, dir); len(got) != len(before) {
		t.Errorf("left: %v", got)
	}
	if _, err := os.Lstat(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("written through a link: %v", err)
	}
}

// R10: copies taken while another process's connection writes are each one state: all of a transaction or nothing of it.
func TestVaultBackupWhileWriting(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	reader, writer := vaultAt(t, home), vaultAt(t, home)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	written := make(chan error, 1)
	go func() { // ends with ctx
		for n := 1; ; n++ {
			err := writer.withTx(ctx, func(tx *sql.Tx) error {
				for _, key := range []string{"pair-a", "pair-b", "one-" + strconv.Itoa(n)} {
					if err := putSetting(ctx, tx, key, strconv.Itoa(n)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				written <- err
				return
			}
		}
	}()
	last := 0
	for i := range 10 {
		target := filepath.Join(dir, strconv.Itoa(i), vaultFile)
		if err := os.Mkdir(filepath.Dir(target), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := reader.backup(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		copied := vaultAt(t, filepath.Dir(target))
		var a, b string
		var rows int
		err := copied.db.QueryRow(`
			SELECT coalesce(max(iif(key = 'pair-a', value, NULL)), '0'), coalesce(max(iif(key = 'pair-b', value, NULL)), '0'), count(iif(key LIKE 'one-%', 1, NULL))
			FROM settings`).Scan(&a, &b, &rows)
		if err != nil || a != b || a != strconv.Itoa(rows) || rows < last {
			t.Errorf("copy %d: pair %s %s, %d rows after %d, %v", i, a, b, rows, last, err)
		}
		last = rows
	}
	stop()
	if err := <-written; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if last == 0 {
		t.Error("nothing was written meanwhile")
	}
}

// A backup that is killed leaves no file of the final name, or a whole one; what it left is found.
func TestVaultBackupKilled(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	if err := os.MkdirAll(r.home, 0o700); err != nil {
		t.Fatal(err)
	}
	v := vaultAt(t, r.home)
	body := make([]byte, 8<<20)
	for i := range body {
		body[i] = byte(i >> 9)
	}
	if _, err := v.putRecord(t.Context(), "spill", "x", "", body); err != nil {
		t.Fatal(err)
	}
	left := 0
	for i := range 6 {
		dir := t.TempDir()
		target := filepath.Join(dir, "copy.db")
		cmd := r.process("vault", "backup", target)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The moments lie between the first byte of the temporary file and the end.
		deadline := time.Now().Add(20 * time.Second)
		for time.Now().Before(deadline) {
			parts, err := backupLeftovers(dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(target); err == nil {
				break
			}
			if len(parts) > 0 {
				if info, err := os.Stat(parts[0]); err == nil && info.Size() >= int64(i)*3<<19 {
					break
				}
			}
		}
		cmd.Process.Kill()
		cmd.Wait() // its end is what was asked for
		parts, err := backupLeftovers(dir)
		if err != nil {
			t.Fatal(err)
		}
		left += len(parts)
		if _, err := os.Stat(target); err == nil {
			if info, err := readBackup(t.Context(), target, v.keys); err != nil || info.Rows["records"] != 1 {
				t.Errorf("kill %d: a half file: %+v, %v", i, info, err)
			}
		}
	}
	if left == 0 {
		t.Error("no kill came in the middle")
	}
}

// The command: what it says, its document, and the way back from the help.
func TestVaultBackupCLI(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.tai("vault", "backup", "none.db").fails(exitFailed, "nothing is stored yet", "none.db")
	r.with("value-kept-one", "secret", "set", "ONE", "--from", "-").ok()
	r.tai("vault", "backup", "a.db").outHas(filepath.Join(r.dir, "a.db")+": backed up, ", " bytes")
	r.tai("vault", "backup", "a.db").fails(exitFailed, "is there already", "hint: ")
	doc := cliJSON[map[string]any](r.tai("vault", "backup", "b.db", "--json"))
	if doc["bytes"] == nil || doc["schema"] == nil || doc["seal"] == nil || !strings.HasSuffix(fmt.Sprint(doc["path"]), "b.db") {
		t.Errorf("%v", doc)
	}
	r.tai("vault", "backup").fails(exitUsage, "too few")
	if err := os.Remove(filepath.Join(r.home, vaultFile)); err != nil {
		t.Fatal(err)
	}
	r.tai("secret", "list").outHas("no secrets")
	b, err := os.ReadFile(filepath.Join(r.dir, "a.db"))
	if err == nil {
		err = os.WriteFile(filepath.Join(r.home, vaultFile), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.tai("secret", "list").outHas("ONE  set 20")
	r.with("value-two", "secret", "set", "TWO", "--from", "-").ok()
}

// VLT-10: a backup put in beside the journal of the vault before it is not mixed with that journal.
func TestVLT10RestoredBesideJournal(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	startVaultWriter(t, "TAI_HOME="+home, "TAI_TEST_N=20", "TAI_TEST_ID=K", "TAI_TEST_HANG=1").kill()
	other := vaultAt(t, t.TempDir())
	fillVault(t, other)
	path, copied := filepath.Join(home, vaultFile), filepath.Join(t.TempDir(), "copy.db")
	if _, err := other.backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(copied)
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []vaultMode{vaultRead, vaultWrite} {
		v, err := openVault(t.Context(), home, mode, vaultClock, testKeys())
		if err == nil {
			v.close()
		}
		if !errors.Is(err, errVaultJournal) || !strings.Contains(err.Error(), path) {
			t.Errorf("mode %d: %v", mode, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, content) {
			t.Errorf("mode %d: the file changed (%v)", mode, err)
		}
	}
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	if l, err := vaultAt(t, home).secrets(t.Context()); err != nil || len(l) != 2 {
		t.Errorf("without it: %v, %v", l, err)
	}
}
