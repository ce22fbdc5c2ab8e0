package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// sealTestText is a text that stands nowhere else.
func sealTestText(what string) string { return what + "-" + hex.EncodeToString(randomBytes(12)) }

// sealTestForms are the ways in which a text can stand in a file: as it is, in UTF-16, in base64 wherever it began.
func sealTestForms(text string) [][]byte {
	forms := [][]byte{[]byte(text)}
	var le, be []byte
	for _, u := range utf16.Encode([]rune(text)) {
		le, be = append(le, byte(u), byte(u>>8)), append(be, byte(u>>8), byte(u))
	}
	forms = append(forms, le, be)
	for before := range 3 {
		enc := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + text))
		forms = append(forms, []byte(enc[(before*8+5)/6:(before+len(text))*8/6]))
	}
	return forms
}

// sealTestFind gives which of the texts stand in any of the files, each with the file.
func sealTestFind(t *testing.T, texts []string, paths ...string) (found map[string]string) {
	t.Helper()
	found = map[string]string{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a journal that is gone holds nothing
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			for _, form := range sealTestForms(text) {
				if bytes.Contains(b, form) {
					found[text] = path
				}
			}
		}
	}
	return found
}

// sealTestFiles gives every file under a folder, the journal and its index too.
func sealTestFiles(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// sealTestOld makes a vault as it was before the seal: schema 1, everything in the clear, with deleted rows in its free pages.
func sealTestOld(t *testing.T, home string) (kept, deleted []string) {
	t.Helper()
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, vaultFile)
	db, err := sql.Open("sqlite", vaultDSN(path, "_pragma=secure_delete(OFF)"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	ctx := t.Context()
	do := func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(ctx, query, args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := migrate(ctx, db, vaultMigrations()[:1]); err != nil {
		t.Fatal(err)
	}
	do(`PRAGMA journal_mode=WAL`)
	for i := range 12 {
		text := sealTestText("old")
		value := text
		if i%3 == 0 {
			value += strings.Repeat("long", 20_000) + text // spills to overflow pages
		}
		do(`INSERT INTO secrets VALUES ('', ?, ?, '{}', 1, 1)`, fmt.Sprint("OLD_", i), []byte(value))
		if i%2 == 1 || i%3 == 0 && i > 3 {
			do(`DELETE FROM secrets WHERE name = ?`, fmt.Sprint("OLD_", i))
			deleted = append(deleted, text)
			continue
		}
		kept = append(kept, text)
	}
	env, header := sealTestText("env"), sealTestText("header")
	do(`INSERT INTO mcp_servers VALUES ('old', 'http', '', '[]', ?, 'https://example.com/mcp', ?, '', '[]', '[]', 'explicit', 1, 1)`,
		`{"API_TOKEN":"`+env+`"}`, `{"Authorization":"Bearer `+header+`"}`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return append(kept, env, header), deleted
}

// VLT-07: a vault from before the seal is sealed by its first open for writing: every value can be read as before, and of the old bytes,
// deleted ones too, none is left in the file, its free pages or the journal.
func TestVLT07SealedLater(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home")
	kept, deleted := sealTestOld(t, home)
	path := filepath.Join(home, vaultFile)
	if found := sealTestFind(t, slices.Concat(kept, deleted), path); len(found) < len(kept)+1 {
		t.Fatalf("the search finds %d of %d values in the clear", len(found), len(kept)+len(deleted))
	}
	reader, err := openVault(t.Context(), home, vaultRead, vaultClock, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	if s, err := reader.secretFor(t.Context(), "", "OLD_2"); err != nil || !strings.HasPrefix(s.reveal(), kept[1]) {
		t.Errorf("before the seal: %v", err)
	}
	defer reader.close() // another connection stays open on the vault meanwhile
	v := vaultAt(t, home)
	files := []string{path, path + "-wal", path + "-shm"}
	if found := sealTestFind(t, slices.Concat(kept, deleted), files...); len(found) != 0 || v.unwiped != nil {
		t.Errorf("still there: %v (%v)", found, v.unwiped)
	}
	for name, open := range map[string]*vault{"the one that sealed": v, "the one that was open": reader} {
		if s, err := open.secretFor(t.Context(), "", "OLD_0"); err != nil || len(s.reveal()) < 80_000 || !strings.HasPrefix(s.reveal(), kept[0]) {
			t.Errorf("%s: %d bytes, %v", name, len(s.reveal()), err)
		}
		row, err := open.server(t.Context(), "old")
		if err != nil || row.Env["API_TOKEN"] != kept[len(kept)-2] || row.Headers["Authorization"] != "Bearer "+kept[len(kept)-1] {
			t.Errorf("%s: %v, %v", name, row.Env, err)
		}
	}
	if info, err := v.sealStatus(t.Context()); err != nil || info.Kind != sealByKeyFile || !info.KeyFileThere || info.Unwiped || info.Values["mcp_servers"] != [2]int{2, 2} {
		t.Errorf("status %+v, %v", info, err)
	}
	if head, err := checkVaultFile(path, vaultRead, len(vaultMigrations())); err != nil || !head.wal {
		t.Errorf("the head after the wipe: %+v, %v", head, err)
	}
}

// VLT-07: a wipe that was cut short, or kept from its end by a reader, is marked and done by the next open.
func TestVLT07WipeFinished(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home")
	kept, deleted := sealTestOld(t, home)
	path := filepath.Join(home, vaultFile)
	reader, err := openVault(t.Context(), home, vaultRead, vaultClock, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.close()
	err = reader.view(t.Context(), func(tx *sql.Tx) error {
		if _, err := storedSeal(t.Context(), tx); err != nil { // the snapshot begins with the first read
			return err
		}
		v, err := openVault(t.Context(), home, vaultRead, vaultClock, testKeys())
		if err != nil {
			return err
		}
		v.mode, v.busyWait = vaultWrite, 50*time.Millisecond
		if err := v.settleSealFor(t.Context(), 50*time.Millisecond, 50*time.Millisecond); err != nil {
			return err
		}
		if !errors.Is(v.unwiped, errNotWiped) {
			t.Errorf("with a reader at work the wipe says %v", v.unwiped)
		}
		if info, err := v.sealStatus(t.Context()); err != nil || info.Kind != sealByKeyFile || !info.Unwiped {
			t.Errorf("status %+v, %v", info, err)
		}
		return v.close()
	})
	if err != nil {
		t.Fatal(err)
	}
	files := []string{path, path + "-wal", path + "-shm"}
	if found := sealTestFind(t, slices.Concat(kept, deleted), files...); len(found) == 0 {
		t.Error("nothing was left to wipe, so this shows nothing")
	}
	v := vaultAt(t, home)
	if found := sealTestFind(t, slices.Concat(kept, deleted), files...); len(found) != 0 || v.unwiped != nil {
		t.Errorf("still there after the next open: %v (%v)", found, v.unwiped)
	}
	if info, err := v.sealStatus(t.Context()); err != nil || info.Unwiped {
		t.Errorf("status %+v, %v", info, err)
	}
}

// VLT-08: values swapped between rows or columns, changed by a bit, or replaced by plain text are refused by name, and the others still open.
func TestVLT08Swapped(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, filepath.Join(t.TempDir(), "home"))
	ctx := t.Context()
	for _, name := range []string{"A", "B", "C", "D"} {
		if err := v.putSecret(ctx, "", name, secret("value-of-"+name), nil); err != nil {
			t.Fatal(err)
		}
	}
	entry := serverEntry{Name: "s", Transport: "stdio", Command: "c", Env: map[string]string{"K": "env-value"}, Headers: map[string]string{"K": "header-value"}, Source: "explicit"}
	if err := v.putServer(ctx, entry, profileDefault, true, nil, 9); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		`UPDATE secrets SET name = CASE name WHEN 'A' THEN 'x' ELSE 'A' END WHERE name IN ('A', 'B')`,
		`UPDATE secrets SET name = 'B' WHERE name = 'x'`,
		`UPDATE secrets SET value = CAST('plain text' AS BLOB) WHERE name = 'C'`,
		`UPDATE mcp_servers SET env_json = headers_json, headers_json = env_json`,
	} {
		if _, err := v.db.ExecContext(ctx, query); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"A", "B", "C"} {
		if s, err := v.secretFor(ctx, "", name); !errors.Is(err, errSealBroken) || !strings.Contains(err.Error(), strconv.Quote(name)) || s != "" {
			t.Errorf("%s: %q, %v", name, s.reveal(), err)
		}
	}
	if s, err := v.secretFor(ctx, "", "D"); err != nil || s.reveal() != "value-of-D" {
		t.Errorf("D: %v", err)
	}
	if row, err := v.server(ctx, "s"); !errors.Is(err, errSealBroken) || !strings.Contains(err.Error(), `"s"`) {
		t.Errorf("server: %v, %v", row.Env, err)
	}
	if _, err := v.knownSecrets(ctx); !errors.Is(err, errSealBroken) {
		t.Errorf("all at once: %v", err)
	}
	for what, change := range map[string]func(context.Context) (resealed, error){"rekey": v.rekey, "unseal": v.unseal} {
		if _, err := change(ctx); !errors.Is(err, errSealBroken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if list, err := v.serverList(ctx); err != nil || len(list) != 1 || list[0].Command != "c" {
		t.Errorf("the list needs no sealed value: %v, %v", list, err)
	}
}

// A seal whose own row was changed opens nothing, and says so.
func TestSealRowChanged(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home")
	vaultMade(t, home)
	state := func() sealState {
		v := vaultAt(t, home)
		text, err := v.setting(t.Context(), settingSeal)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parseSealState(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}()
	for name, tc := range map[string]struct {
		change func(*sealState)
		want   error
	}{
		"newer":          {func(s *sealState) { s.Version = 2 }, errSealNewer},
		"unknown kind":   {func(s *sealState) { s.Kind = "card" }, errSealNewer},
		"other key":      {func(s *sealState) { s.Key = "0123456789abcdef" }, errWrongKeyFile},
		"other salt":     {func(s *sealState) { s.Salt = randomBytes(sealSaltSize) }, errWrongKeyFile},
		"other wrap":     {func(s *sealState) { s.Wrapped = bytes.Clone(s.Wrapped); s.Wrapped[20] ^= 1 }, errWrongKeyFile},
		"path for id":    {func(s *sealState) { s.ID = "../../../../x/y" }, errSealDamaged},
		"no wrap":        {func(s *sealState) { s.Wrapped = nil }, errSealDamaged},
		"few rounds":     {func(s *sealState) { s.Kind, s.Rounds = sealByPassphrase, sealRounds-1 }, nil},
		"many rounds":    {func(s *sealState) { s.Kind, s.Rounds = sealByPassphrase, sealRoundsMax+1 }, nil},
		"another kind":   {func(s *sealState) { s.Kind, s.Rounds = sealByPassphrase, sealRounds }, errWrongPassphrase},
		"another id":     {func(s *sealState) { s.ID = "0123456789abcdef" }, errKeyFileMissing},
		"said to be off": {func(s *sealState) { *s = sealState{Version: 1, Kind: sealOff} }, errSealStripped},
	} {
		changed := state
		tc.change(&changed)
		text, err := changed.row()
		if err != nil {
			t.Fatal(err)
		}
		keys := testKeys()
		keys.Passphrase = func(context.Context, string) (secret, error) { return "some-passphrase", nil }
		v, err := openVault(t.Context(), home, vaultWrite, vaultClock, keys)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.setSetting(t.Context(), settingSeal, text); err != nil {
			t.Fatal(err)
		}
		s, err := v.secretFor(t.Context(), "", "KEPT")
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) || tc.want == nil && !strings.Contains(err.Error(), "rounds") {
			t.Errorf("%s: %q, %v", name, s.reveal(), err)
		}
		if err := v.close(); err != nil {
			t.Error(err)
		}
	}
}

// The key file: private whatever the umask, named in the error when it is gone, never made anew over a seal, and enough for a copy of the vault.
func TestSealKeyFile(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	home, keys := filepath.Join(base, "home"), vaultKeys{Dir: filepath.Join(base, "config", "tai", "keys")}
	open := func(home string, mode vaultMode, keys vaultKeys) *vault {
		t.Helper()
		v, err := openVault(t.Context(), home, mode, vaultClock, keys)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { v.close() })
		return v
	}
	open(filepath.Join(base, "nothing"), vaultRead, keys)
	if _, err := os.Stat(filepath.Join(base, "config")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading where no vault is has made something: %v", err)
	}
	v := open(home, vaultWrite, keys)
	if err := v.putSecret(t.Context(), "", "A", "value-1", nil); err != nil {
		t.Fatal(err)
	}
	names := vaultNames(t, keys.Dir)
	if len(names) != 1 {
		t.Fatalf("key files: %v", names)
	}
	key := filepath.Join(keys.Dir, names[0])
	if runtime.GOOS != "windows" {
		for path, want := range map[string]fs.FileMode{keys.Dir: 0o700, key: 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}
	copied := filepath.Join(base, "copy")
	if _, err := v.backup(t.Context(), filepath.Join(base, "copy.db")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(copied, 0o700), os.Rename(filepath.Join(base, "copy.db"), filepath.Join(copied, vaultFile))); err != nil {
		t.Fatal(err)
	}
	if s, err := open(copied, vaultWrite, keys).secretFor(t.Context(), "", "A"); err != nil || s.reveal() != "value-1" {
		t.Errorf("the copy: %v", err)
	}
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	gone := open(home, vaultWrite, keys)
	_, err := gone.secretFor(t.Context(), "", "A")
	putErr := gone.putSecret(t.Context(), "", "B", "value-2", nil)
	for _, err := range []error{err, putErr} {
		if !errors.Is(err, errKeyFileMissing) || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "backup") {
			t.Errorf("without the key file: %v", err)
		}
	}
	if list, err := gone.secrets(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("names without the key file: %v, %v", list, err)
	}
	if names := vaultNames(t, keys.Dir); len(names) != 1 || names[0] != filepath.Base(key)+".away" {
		t.Errorf("key files: %v", names)
	}
	if _, err := open(home, vaultWrite, vaultKeys{}).secretFor(t.Context(), "", "A"); !errors.Is(err, errKeyFileMissing) {
		t.Errorf("no folder known: %v", err)
	}
	if _, err := openVault(t.Context(), filepath.Join(base, "new"), vaultWrite, vaultClock, vaultKeys{}); err == nil || !strings.Contains(err.Error(), "XDG_CONFIG_HOME") {
		t.Errorf("a new vault without a place for its key: %v", err)
	}
	for name, content := range map[string]string{"empty": "", "text": "hello\n", "short": keyFileHead + "AAAA\n", "another": keyFileHead + base64.StdEncoding.EncodeToString(randomBytes(sealKeySize)) + "\n"} {
		if err := os.WriteFile(key, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := gone.secretFor(t.Context(), "", "A"); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	if s, err := gone.secretFor(t.Context(), "", "A"); err != nil || s.reveal() != "value-1" {
		t.Errorf("put back: %v", err)
	}
}

// VLT-06: a wrong passphrase is one clear error that costs what a right one costs, changes no byte, and is not tried again by itself.
func TestVLT06WrongPassphrase(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home")
	asked := 0
	keysWith := func(tries int, answers ...secret) vaultKeys {
		k := testKeys()
		k.Tries, k.Derive = tries, raceKey
		k.Passphrase = func(context.Context, string) (secret, error) {
			asked++
			return answers[min(asked, len(answers))-1], nil
		}
		return k
	}
	v := vaultAt(t, home)
	v.keys.Derive = raceKey
	if err := v.putSecret(t.Context(), "", "A", "value-1", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := v.sealWithPassphrase(t.Context(), "short"); err == nil {
		t.Error("a passphrase of 5 bytes was taken")
	}
	if _, err := v.sealWithPassphrase(t.Context(), "right-passphrase"); err != nil {
		t.Fatal(err)
	}
	if err := v.db.Close(); err != nil {
		t.Fatal(err)
	}
	before := sealTestBytes(t, home)
	took := map[bool]time.Duration{}
	for _, tc := range []struct {
		keys vaultKeys
		want error
		asks int
	}{
		{keysWith(0, "right-passphrase"), nil, 1},
		{keysWith(0, "wrong-passphrase"), errWrongPassphrase, 1},
		{keysWith(3, "wrong-1", "wrong-2", "right-passphrase"), nil, 3},
		{keysWith(3, "wrong-1", "wrong-2", "wrong-3", "right-passphrase"), errWrongPassphrase, 3},
		{testKeys(), nil, 0},
	} {
		for _, mode := range []vaultMode{vaultRead, vaultWrite} {
			asked = 0
			v, err := openVault(t.Context(), home, mode, vaultClock, tc.keys)
			if err != nil {
				t.Fatal(err)
			}
			if list, err := v.secrets(t.Context()); err != nil || len(list) != 1 || asked != 0 {
				t.Errorf("names asked %d times: %v", asked, err)
			}
			begin := time.Now()
			s, err := v.secretFor(t.Context(), "", "A")
			if tc.asks == 1 {
				took[err == nil] = max(took[err == nil], time.Since(begin))
			}
			_, again := v.secretFor(t.Context(), "", "A")
			if tc.keys.Passphrase == nil {
				if err == nil || again == nil {
					t.Error("opened without a passphrase")
				}
			} else if !errors.Is(err, tc.want) || tc.want != nil && again == nil || asked != tc.asks || tc.want == nil && s.reveal() != "value-1" {
				t.Errorf("asked %d times, want %d: %v, then %v", asked, tc.asks, err, again)
			}
			if err := v.close(); err != nil {
				t.Error(err)
			}
			if after := sealTestBytes(t, home); !bytes.Equal(before, after) {
				t.Errorf("mode %d: the vault changed", mode)
			}
		}
	}
	if took[false] > 10*time.Second || took[false] < took[true]/4 || took[true] < took[false]/4 {
		t.Errorf("a wrong one took %v, a right one %v", took[false], took[true])
	}
}

func sealTestBytes(t *testing.T, home string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(home, vaultFile))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Each change of the seal keeps every value, says what older copies need, and is followed by a connection that was open all the time.
func TestSealChanges(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home")
	v := vaultAt(t, home)
	ctx := t.Context()
	passphrase := secret("first-passphrase")
	keys := testKeys()
	keys.Passphrase, keys.Derive = func(context.Context, string) (secret, error) { return passphrase, nil }, raceKey
	v.keys.Derive = raceKey
	other, err := openVault(ctx, home, vaultWrite, vaultClock, keys)
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	if err := errors.Join(v.putSecret(ctx, "", "A", "value-1", nil), v.withSealed(ctx, func(tx *sql.Tx, s *sealer) error { return putSealedSetting(ctx, tx, s, settingAuditKey, "\x01seed") })); err != nil {
		t.Fatal(err)
	}
	sealWith := func(p secret) func(context.Context) (resealed, error) {
		return func(ctx context.Context) (resealed, error) {
			passphrase = p
			return v.sealWithPassphrase(ctx, p)
		}
	}
	for _, step := range []struct {
		name            string
		change          func(context.Context) (resealed, error)
		kind            string
		changed, newKey bool
		oldFile         bool
	}{
		{"seal again", v.sealWithKeyFile, sealByKeyFile, false, false, false},
		{"rekey", v.rekey, sealByKeyFile, true, true, true},
		{"to a passphrase", sealWith("first-passphrase"), sealByPassphrase, true, true, true},
		{"another passphrase", sealWith("second-passphrase"), sealByPassphrase, true, false, false},
		{"rekey by passphrase", v.rekey, sealByPassphrase, true, true, false},
		{"back to a key file", v.sealWithKeyFile, sealByKeyFile, true, true, false},
		{"unseal", v.unseal, sealOff, true, true, true},
		{"unseal again", v.unseal, sealOff, false, false, false},
		{"seal", v.sealWithKeyFile, sealByKeyFile, true, true, false},
	} {
		r, err := step.change(ctx)
		if err != nil || r.Unwiped != nil {
			t.Fatalf("%s: %v, %v", step.name, err, r.Unwiped)
		}
		if r.To.Kind != step.kind || r.Changed != step.changed || (r.From.Key != r.To.Key) != step.newKey || (r.OldKey != "") != step.oldFile {
			t.Errorf("%s: %+v", step.name, r)
		}
		if r.OldKey != "" {
			if _, err := os.Stat(r.OldKey); err != nil {
				t.Errorf("%s: the old key file: %v", step.name, err)
			}
		}
		for who, open := range map[string]*vault{"this": v, "the other": other} {
			a, err := open.secretFor(ctx, "", "A")
			seed, seedErr := vaultSigningSeed(ctx, open)
			if err != nil || seedErr != nil || a.reveal() != "value-1" || seed.reveal() != "\x01seed" {
				t.Errorf("%s: %s: %v, %v", step.name, who, err, seedErr)
			}
		}
		if info, err := v.sealStatus(ctx); err != nil || info.Kind != step.kind || info.Unwiped || (info.Values["secrets"][0] == 0) != (step.kind == sealOff) || info.Values["secrets"][1] == 0 {
			t.Errorf("%s: status %+v, %v", step.name, info, err)
		}
		if err := other.putSecret(ctx, "", "B", secret(step.name), nil); err != nil {
			t.Errorf("%s: the other writes: %v", step.name, err)
		}
		if b, err := v.secretFor(ctx, "", "B"); err != nil || b.reveal() != step.name {
			t.Errorf("%s: what the other wrote: %v", step.name, err)
		}
	}
}

func vaultSigningSeed(ctx context.Context, v *vault) (seed secret, err error) {
	err = v.viewSealed(ctx, func(tx *sql.Tx, s *sealer) (err error) {
		seed, err = sealedSetting(ctx, tx, s, settingAuditKey)
		return err
	})
	return seed, err
}

// fakeVaultResealer changes the seal TAI_TEST_N times, or until it is killed, and says each one when it is done.
func fakeVaultResealer() {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	n, err := strconv.Atoi(os.Getenv("TAI_TEST_N"))
	fail(err)
	ctx := context.Background()
	v, err := openVault(ctx, os.Getenv("TAI_HOME"), vaultWrite, time.Now, testKeys())
	fail(err)
	for i := range n {
		change := []func(context.Context) (resealed, error){v.rekey, v.unseal, v.sealWithKeyFile}[i%3]
		r, err := change(ctx)
		if !errors.Is(err, errNotSealed) { // the first change of the next round comes after a kill, too
			fail(err)
		}
		if r.Unwiped != nil && !errors.Is(r.Unwiped, errNotWiped) {
			fail(r.Unwiped)
		}
		fmt.Println("changed", i)
	}
	fail(v.close())
}

// fakeVaultHolder keeps a vault open until its standard input ends.
func fakeVaultHolder() {
	v, err := openVault(context.Background(), os.Getenv("TAI_HOME"), vaultWrite, time.Now, testKeys())
	if err == nil {
		_, err = v.secrets(context.Background())
	}
	if err == nil {
		fmt.Println("open")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		err = v.close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// While one process changes the seal over and over, others read and write: nothing is lost and nobody sees an error.
func TestSealTwoProcesses(t *testing.T) {
	t.Parallel()
	const changes, each = 30, 60
	home := filepath.Join(t.TempDir(), "home")
	v := vaultAt(t, home)
	if err := v.putSecret(t.Context(), "", "FIRST", "value-1", nil); err != nil {
		t.Fatal(err)
	}
	var outputs [3]bytes.Buffer
	var cmds [3]*exec.Cmd
	for i := range cmds {
		cmds[i] = vaultProcess(t, "TAI_TEST_FAKE=vault-writer", "TAI_HOME="+home, "TAI_TEST_N="+strconv.Itoa(each), fmt.Sprintf("TAI_TEST_ID=W%d", i))
		if i == 0 {
			cmds[i] = vaultProcess(t, "TAI_TEST_FAKE=vault-resealer", "TAI_HOME="+home, "TAI_TEST_N="+strconv.Itoa(changes))
		}
		cmds[i].Stdin = strings.NewReader("x")
		cmds[i].Stdout, cmds[i].Stderr = &outputs[i], &outputs[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	reads := 0
	go func() {
		defer close(done)
		for i, cmd := range cmds {
			if err := cmd.Wait(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, &outputs[i])
			}
		}
	}()
	for running := true; running; reads++ {
		select {
		case <-done:
			running = false
		default:
		}
		if s, err := v.secretFor(t.Context(), "", "FIRST"); err != nil || s.reveal() != "value-1" {
			t.Fatalf("read %d: %v", reads, err)
		}
	}
	list, err := v.knownSecrets(t.Context())
	if err != nil || len(list) != 1+2*each {
		t.Errorf("%d secrets, want %d: %v", len(list), 1+2*each, err)
	}
	for _, s := range list {
		if _, i, ok := strings.Cut(s.Name, "_"); ok && s.Value.reveal() != i+"x" {
			t.Errorf("%s has another value", s.Name)
		}
	}
	if got := strings.Count(outputs[0].String(), "changed"); got != changes || reads < 10 {
		t.Errorf("%d changes, %d reads", got, reads)
	}
}

// A process that is killed while it changes the seal leaves the old or the new one whole, and the next open finishes the wipe.
func TestSealKilled(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home")
	path, _ := vaultMade(t, home)
	for round := range 12 {
		cmd := vaultProcess(t, "TAI_TEST_FAKE=vault-resealer", "TAI_HOME="+home, "TAI_TEST_N=1000")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n <= round%4 && lines.Scan(); n++ {
		}
		cmd.Process.Kill()
		cmd.Wait()
		v, err := openVault(t.Context(), home, vaultWrite, vaultClock, testKeys())
		if err != nil {
			t.Fatal(err)
		}
		s, err := v.secretFor(t.Context(), "", "KEPT")
		info, statusErr := v.sealStatus(t.Context())
		if err != nil || s.reveal() != "value-1" || statusErr != nil || info.Unwiped || v.unwiped != nil {
			t.Errorf("round %d: %v, %+v, %v, %v", round, err, info, statusErr, v.unwiped)
		}
		if info.Kind != sealOff {
			if found := sealTestFind(t, []string{"value-1"}, path, path+"-wal"); len(found) != 0 {
				t.Errorf("round %d: sealed, and found in %v", round, found)
			}
		}
		if err := v.close(); err != nil {
			t.Error(err)
		}
	}
}

// An unsealing that ends before its commit can leave open values in the journal, and the vault sealed as it was: a mark is there before it
// begins, so that the next open wipes them.
func TestUnsealMarksFirst(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, filepath.Join(t.TempDir(), "home"))
	if err := v.putSecret(t.Context(), "", "KEPT", "value-1", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := v.db.ExecContext(t.Context(), `CREATE TRIGGER stop BEFORE UPDATE ON secrets BEGIN SELECT RAISE(ABORT, 'stop'); END`); err != nil {
		t.Fatal(err)
	}
	if _, err := v.unseal(t.Context()); err == nil {
		t.Fatal("unsealed, although a value could not be written")
	}
	info, err := v.sealStatus(t.Context())
	if err != nil || info.Kind != sealByKeyFile || !info.Unwiped {
		t.Errorf("after an unsealing that failed: %+v, %v; want sealed, and a wipe pending", info, err)
	}
	if err := v.settleSeal(t.Context()); err != nil || v.unwiped != nil {
		t.Errorf("the wipe: %v, %v", err, v.unwiped)
	}
	if info, err = v.sealStatus(t.Context()); err != nil || info.Unwiped {
		t.Errorf("after the wipe: %+v, %v", info, err)
	}
}
