package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// checkedVault checks home's vault and wants its bytes, and those of its journal, to be the same after.
func checkedVault(t *testing.T, home string) vaultReport {
	t.Helper()
	return checkedWith(t, home, testKeys())
}

func checkedWith(t *testing.T, home string, keys vaultKeys) vaultReport {
	t.Helper()
	before := vaultBytes(t, home)
	r, err := vaultChecker{Home: home, Keys: keys, GOOS: runtime.GOOS, Now: time.Now}.check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after := vaultBytes(t, home); !bytes.Equal(after, before) {
		t.Error("a check changed the vault")
	}
	// The key files of all tests lie in one folder; TestVaultCheckSeal has one of its own.
	r.Problems = slices.DeleteFunc(r.Problems, func(f vaultFinding) bool { return strings.Contains(f.What, "that this vault does not use") })
	return r
}

// vaultBytes is what the vault's files hold, "" where there is none.
func vaultBytes(t *testing.T, home string) []byte {
	t.Helper()
	var all []byte
	for _, suffix := range []string{"", "-wal", "-journal"} {
		b, err := os.ReadFile(filepath.Join(home, vaultFile+suffix))
		if err != nil && !os.IsNotExist(err) && !strings.Contains(err.Error(), "directory") {
			t.Fatal(err)
		}
		all = append(append(all, b...), '|')
	}
	return all
}

// fullVault makes a closed vault with something of each kind, in a private home.
func fullVault(t *testing.T) (home string) {
	t.Helper()
	home = filepath.Join(t.TempDir(), "home")
	v, err := openVault(t.Context(), home, vaultWrite, vaultClock, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	fillVault(t, v)
	if err := v.close(); err != nil {
		t.Fatal(err)
	}
	return home
}

// vaultBreak runs statements on the file behind tai's back.
func vaultBreak(t *testing.T, home string, statements ...string) {
	t.Helper()
	vaultBreakFile(t, filepath.Join(home, vaultFile), statements...)
}

func vaultBreakFile(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", vaultDSN(path, "mode=rw"))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func findingHas(r vaultReport, section, level, what string) bool {
	return slices.ContainsFunc(r.Problems, func(f vaultFinding) bool {
		return f.Section == section && f.Level == level && strings.Contains(f.What, what)
	})
}

// A vault of tai's own is fine, whoever has it open meanwhile, and every table is measured.
func TestVaultCheckClean(t *testing.T) {
	t.Parallel()
	home := fullVault(t)
	r := checkedVault(t, home)
	if r.State != vaultFine || len(r.Problems) != 0 || r.Schema != r.Newest || r.Bytes == 0 {
		t.Errorf("%+v", r)
	}
	var sum int64
	for _, s := range r.Tables {
		sum += s.Bytes
		if want := map[string]int64{"secrets": 2, "records": 3, "records_fts": 2, "messages": 2, "messages_fts": 2, "memories": 1, "memories_fts": 1, "memory_history": 1, "mcp_server_tools": 2}[s.Table]; want != 0 && s.Rows != want {
			t.Errorf("%s: %d rows, want %d", s.Table, s.Rows, want)
		}
	}
	if sum+r.Free != r.Bytes {
		t.Errorf("the tables have %d bytes and %d are free, the file %d", sum, r.Free, r.Bytes)
	}
	v := vaultAt(t, home)
	_, err := v.keepChange(t.Context(), &fileChange{Steps: []changeStep{
		{Path: "/a", Kind: changeFile, Existed: true, Size: 3, Before: sha256Hex([]byte("abc")), Body: []byte("abc")}, {Path: "/new", Kind: changeFile}, {Path: "/empty", Kind: changeFile, Existed: true, Before: sha256Hex(nil)},
		{Path: "/l", Kind: changeLink, Existed: true, Size: 1, Before: sha256Hex([]byte("x")), Body: []byte("x")}, {Path: "/m", Target: "/n", Kind: changeMove, Existed: true, Size: 9, Before: sha256Hex(nil)},
		{Path: "/d", Kind: changeFolder, Existed: true, Before: changeFolder}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := v.setSetting(t.Context(), fmt.Sprint("open-", i), "x"); err != nil {
			t.Fatal(err)
		}
		if r := checkedVault(t, home); r.State != vaultFine || r.Journal == 0 {
			t.Errorf("open elsewhere: %+v", r)
		}
	}
}

// What a killed process left in the journal is looked at too, and stays there.
func TestVaultCheckJournal(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home")
	startVaultWriter(t, "TAI_HOME="+home, "TAI_TEST_N=20", "TAI_TEST_ID=K", "TAI_TEST_HANG=1").kill()
	for range 2 {
		r := checkedVault(t, home)
		i := slices.IndexFunc(r.Tables, func(s tableSize) bool { return s.Table == "secrets" })
		if r.State != vaultFine || i < 0 || r.Tables[i].Rows != 20 || r.Journal == 0 {
			t.Errorf("%+v", r)
		}
	}
}

// Each fault in the rows or the schema is named, and how bad it is; what can be mended without loss is mended.
func TestVaultCheckRows(t *testing.T) {
	hash := strings.Repeat("a", 64)
	for _, tc := range []struct {
		name, sql, section, level, what string
		mends                           bool
	}{
		{"profile rows of a server", `INSERT INTO mcp_server_profiles VALUES ('gone', 'default', 1)`, "rows", findWarning, "mcp_server_profiles: 1 row of servers that are gone: gone", true},
		{"pins of a server", `INSERT INTO mcp_tool_pins VALUES ('gone', 't', '` + hash + `', 1)`, "rows", findWarning, "mcp_tool_pins: 1 row of servers", true},
		{"tools of a server", `INSERT INTO mcp_server_tools VALUES ('gone', 't', '', '', 1), ('gone', 'u', '', '', 1)`, "rows", findWarning, "mcp_server_tools: 2 rows of servers", true},
		{"server rows of a profile", `INSERT INTO mcp_server_profiles VALUES ('files', 'lost', 1)`, "rows", findWarning, "of profiles that are gone: lost", true},
		{"secrets of a profile", `UPDATE secrets SET profile = 'lost' WHERE name LIKE 'mcp-oauth%'`, "rows", findWarning, "secrets: 1 row of profiles", true},
		{"tokens of a server", `DELETE FROM mcp_servers; DELETE FROM mcp_server_profiles; DELETE FROM mcp_tool_pins; DELETE FROM mcp_server_tools`, "rows", findWarning, "1 token of OAuth servers that are gone: mcp-oauth-files-access", true},
		{"messages of a session", `INSERT INTO messages VALUES ('s-gone', 1, 'user', 'x', '', '', '', 1)`, "rows", findWarning, "messages: 1 row of sessions that are gone: s-gone", true},
		{"a gap", `DELETE FROM messages WHERE seq = 1; DELETE FROM messages_fts WHERE rowid & 0xffff = 1`, "rows", findError, "lack messages in the middle: s-", false},
		{"a pin without text", `DELETE FROM mcp_server_tools WHERE tool = 'z_last'`, "rows", findError, "without the text that was granted: files/z_last", false},
		{"current profile", `INSERT INTO settings VALUES ('current_profile', 'lost')`, "rows", findError, "current profile that is gone: lost", false},
		{"a record's body", `UPDATE records SET body = x'00' WHERE seq = 1`, "rows", findError, "1 body no longer what was stored: r-", false},
		{"a record's size", `UPDATE records SET size = size + 1 WHERE seq = 2`, "rows", findError, "no longer what was stored", false},
		{"words without a record", `INSERT INTO records_fts (rowid, body, origin) VALUES (99, 'ghost', '')`, "rows", findWarning, "1 row of the words' index without a record", true},
		{"a record without words", `DELETE FROM records_fts WHERE rowid = 1`, "rows", findWarning, "1 text that no search finds: r-", true},
		{"words without a message", `DELETE FROM messages WHERE seq = 2`, "rows", findWarning, "messages_fts: 1 row of the words' index without a message", true},
		{"a message without words", `DELETE FROM messages_fts`, "rows", findWarning, "messages: 2 texts that no search finds: s-", true},
		{"words without a memory", `INSERT INTO memories_fts (rowid, text, key, tags) VALUES (99, 'ghost', '', '')`, "rows", findWarning, "memories_fts: 1 row of the words' index without a memory", true},
		{"a memory without words", `DELETE FROM memories_fts`, "rows", findWarning, "memories: 1 text that no search finds: m-", true},
		{"history of a memory", `INSERT INTO memory_history VALUES ('m-gone', 1, 'x', '', 1)`, "rows", findWarning, "memory_history: 1 row of memories that are gone: m-gone", true},
		{"a memory's text", `UPDATE memories SET text = 'other'`, "rows", findError, "memories: 1 text no longer what was stored: m-", false},
		{"what is kept of a changed file", `INSERT INTO changes VALUES (1, 'h-1', 2, '', '', 'file_write', '/', '/a', '', 'file', 1, 420, 3, 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad', '', 'done', '', '', 1, x'616264')`, "rows", findError, "changes: 1 body no longer what was stored: h-1/2", false},
		{"no UTF-8", `UPDATE sessions SET title = CAST(x'ff41' AS TEXT)`, "rows", findError, "sessions.title: 1 value that are no UTF-8", false},
		{"no JSON", `UPDATE mcp_servers SET args_json = '[' `, "rows", findError, "mcp_servers.args_json: 1 value that are no JSON", false},
		{"another type", `UPDATE sessions SET created = 'noon'`, "rows", findError, "sessions.created: 1 value of another type", false},
		{"a table missing", `DROP TABLE messages`, "schema", findError, "table messages is missing", false},
		{"a table too many", `CREATE TABLE theirs (x)`, "schema", findWarning, "table theirs is none of tai's", false},
		{"a trigger", `CREATE TRIGGER spy AFTER INSERT ON secrets BEGIN SELECT 1; END`, "schema", findWarning, "trigger spy is none", false},
		{"another table", `ALTER TABLE profiles ADD COLUMN more TEXT`, "schema", findError, "table profiles is not the one", false},
		{"the words' index", `DELETE FROM records_fts_data WHERE id > 10`, "file", findError, "records_fts", false},
		{"a run without its log", `INSERT INTO audit_runs VALUES ('cli-1', 'cli', '/nowhere/cli-1.jsonl', 3, 'h', x'00', 1, 1)`, "runs", findWarning, "1 run on record, but the log is gone: cli-1", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			home := fullVault(t)
			vaultBreak(t, home, tc.sql)
			r := checkedVault(t, home)
			if r.fine() || !findingHas(r, tc.section, tc.level, tc.what) {
				t.Fatalf("no %s %q of %s in\n%+v", tc.level, tc.what, tc.section, r.Problems)
			}
			for _, f := range r.Problems {
				if f.Count < 1 || f.What == "" {
					t.Errorf("%+v", f)
				}
			}
			if r.mends(mendRows) != tc.mends {
				t.Fatalf("it can be mended: %v, want %v", !tc.mends, tc.mends)
			}
			if !tc.mends {
				return
			}
			v := vaultAt(t, home)
			if done, err := v.repair(t.Context(), false); err != nil || len(done) == 0 {
				t.Fatalf("repair: %v, %v", done, err)
			}
			if r := checkedVault(t, home); !r.fine() {
				t.Errorf("after the repair: %+v", r.Problems)
			}
			if done, err := v.repair(t.Context(), false); err != nil || len(done) != 0 {
				t.Errorf("repaired twice: %v, %v", done, err)
			}
			if hits, err := v.searchRecords(t.Context(), "invoice", 0); err != nil || len(hits) != 1 {
				t.Errorf("search after the repair: %v, %v", hits, err)
			}
		})
	}
}

// Free pages are told of and given back.
func TestVaultCheckFreePages(t *testing.T) {
	t.Parallel()
	home := fullVault(t)
	v := vaultAt(t, home)
	info, err := v.putRecord(t.Context(), "spill", "x", "", bytes.Repeat([]byte{1, 2, 3}, 1<<20))
	if err := errors.Join(err, v.deleteRecord(t.Context(), info.ID)); err != nil {
		t.Fatal(err)
	}
	r := checkedVault(t, home)
	if r.Free < 3<<20 || !findingHas(r, "file", findNote, "are free") || !r.mends(mendPages) || r.State != vaultFine {
		t.Errorf("%+v", r)
	}
	if _, err := v.repair(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if r := checkedVault(t, home); r.Free != 0 || len(r.Problems) != 0 {
		t.Errorf("%+v", r)
	}
}

// VLT-05, VLT-11: what is no whole vault of this tai gets one verdict, and keeps every byte.
func TestVaultCheckVerdicts(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(filepath.Join(fullVault(t), vaultFile))
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.db")
	db, err := sql.Open("sqlite", other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE theirs (x)`); err != nil {
		t.Fatal(err)
	}
	theirs, err := os.ReadFile(other)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	torn := bytes.Clone(good)
	for i := vaultPageSize; i < len(torn); i++ {
		torn[i] = 0xa5
	}
	for name, tc := range map[string]struct {
		content []byte
		want    string
	}{
		"empty": {[]byte{}, vaultForeign}, "random": {bytes.Repeat([]byte("tea"), 9000), vaultForeign}, "theirs": {theirs, vaultForeign},
		"cut": {good[:len(good)/2], vaultDamaged}, "head": {good[:100], vaultDamaged}, "torn": {torn, vaultDamaged}, "newer": {vaultWith(good, 63, 99), vaultNewer},
		"none": {nil, vaultNone},
	} {
		t.Run(name, func(t *testing.T) {
			r := newCLIRig(t)
			if err := os.Mkdir(r.home, 0o700); err != nil {
				t.Fatal(err)
			}
			if tc.content != nil {
				if err := os.WriteFile(filepath.Join(r.home, vaultFile), tc.content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			rep := checkedVault(t, r.home)
			if rep.State != tc.want || len(rep.Problems) == 0 || rep.fine() != (tc.want == vaultNone) {
				t.Errorf("%+v", rep)
			}
			want := exitFailed
			if tc.want == vaultNone {
				want = exitDone
			}
			if got := r.tai("vault", "check"); got.code != want || !strings.Contains(got.out, vaultFile+": "+tc.want) || got.err != "" {
				t.Errorf("exit %d: %s%s", got.code, got.out, got.err)
			}
			if doc := cliJSON[vaultReport](r.tai("vault", "check", "--json")); doc.State != tc.want || doc.Tables == nil {
				t.Errorf("%+v", doc)
			}
		})
	}
	lone := t.TempDir()
	if err := os.WriteFile(filepath.Join(lone, vaultFile+"-wal"), []byte("journal"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := checkedVault(t, lone); r.State != vaultNone || r.fine() || !findingHas(r, "file", findError, "is gone, and its journal is there") {
		t.Errorf("%+v", r)
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, vaultFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if r := checkedVault(t, folder); r.State != vaultForeign {
		t.Errorf("%+v", r)
	}
}

// VLT-05: one byte changed anywhere is told of, or changes nothing that is stored; but for plain text, which nothing vouches for.
func TestVaultCheckFlippedBytes(t *testing.T) {
	t.Parallel()
	home := fullVault(t)
	path := filepath.Join(home, vaultFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dump := func() string {
		v, err := openVault(t.Context(), home, vaultRead, vaultClock, testKeys())
		if err != nil {
			return err.Error()
		}
		defer v.close()
		return vaultDump(t, v)
	}
	want := dump()
	told, same, plain := 0, 0, 0
	for at := 0; at < len(good); at += 797 * raceScale {
		if good[at] == 0 && at%5 != 0 { // most of the file is empty
			continue
		}
		if err := os.WriteFile(path, vaultWith(good, at, good[at]^0x11), 0o600); err != nil {
			t.Fatal(err)
		}
		r := checkedVault(t, home)
		switch {
		case !r.fine():
			told++
		case dump() == want:
			same++
		default:
			plain++
		}
	}
	t.Logf("%d told of, %d harmless, %d in plain text", told, same, plain)
	if told == 0 || same == 0 || plain > told/4 {
		t.Errorf("%d told of, %d harmless, %d in plain text", told, same, plain)
	}
}

// AUD-03, AUD-04: a run's log that is gone or cut, a head that was changed, and a log that nobody put on record.
func TestVaultCheckRuns(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	for range 2 {
		r.tai("tools", "call", "text_search", "pattern=tea").ok()
	}
	r.tai("vault", "check").outHas(vaultFile+": fine", "seal: key-file; 1 of 1 values open")
	logs, err := filepath.Glob(filepath.Join(r.home, "runs", "*"+auditExtension))
	if err != nil || len(logs) != 2 {
		t.Fatalf("%v, %v", logs, err)
	}
	run := strings.TrimSuffix(filepath.Base(logs[0]), auditExtension)
	text, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	stray := filepath.Join(r.home, "runs", "cli-0123456789abcdef"+auditExtension)
	for _, tc := range []struct {
		level, what string
		spoil, mend func() error
	}{
		{findWarning, "1 run on record, but the log is gone: " + run, func() error { return os.Remove(logs[0]) }, func() error { return os.WriteFile(logs[0], text, 0o600) }},
		{findError, "1 run whose log is shorter than what is on record: " + run, func() error { return os.WriteFile(logs[0], bytes.Join(lines[:2], nil), 0o600) }, func() error { return os.WriteFile(logs[0], text, 0o600) }},
		{findError, "shorter than what is on record: " + run, func() error { return os.WriteFile(logs[0], nil, 0o600) }, func() error { return os.WriteFile(logs[0], text, 0o600) }},
		{findWarning, "1 run with a log that is not on record: cli-0123456789abcdef", func() error { return os.WriteFile(stray, text, 0o600) }, func() error { return os.Remove(stray) }},
		{findNote, "1 run whose log cannot be read: cli-0123456789abcdef", func() error { return os.WriteFile(stray, []byte("tea"), 0o600) }, func() error { return os.Remove(stray) }},
		{findError, "signature that does not fit: " + run, func() error {
			vaultBreak(t, r.home, `UPDATE audit_runs SET lines = lines - 1 WHERE run = '`+run+`'`)
			return nil
		}, func() error {
			vaultBreak(t, r.home, `UPDATE audit_runs SET lines = lines + 1 WHERE run = '`+run+`'`)
			return nil
		}},
	} {
		if err := tc.spoil(); err != nil {
			t.Fatal(err)
		}
		if rep := checkedWith(t, r.home, r.keys()); !findingHas(rep, "runs", tc.level, tc.what) || rep.fine() != (tc.level == findNote) {
			t.Errorf("no %s %q in %+v", tc.level, tc.what, rep.Problems)
		}
		if err := tc.mend(); err != nil {
			t.Fatal(err)
		}
		if rep := checkedWith(t, r.home, r.keys()); len(rep.Problems) != 0 {
			t.Errorf("after %q: %+v", tc.what, rep.Problems)
		}
	}
}

// A copy is checked as a file, without the home around it.
func TestVaultCheckCopy(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.with("value-one-long", "secret", "set", "ONE", "--from", "-").ok()
	r.tai("vault", "backup", "copy.db").ok()
	r.tai("vault", "check", "copy.db").outHas("copy.db: fine")
	if got := vaultNames(t, r.dir); !slices.Equal(got, []string{"copy.db"}) {
		t.Errorf("beside the copy: %v", got)
	}
	vaultBreakFile(t, filepath.Join(r.dir, "copy.db"), `INSERT INTO mcp_tool_pins VALUES ('gone', 't', 'h', 1)`)
	if got := r.tai("vault", "check", "copy.db"); got.code != exitFailed || !strings.Contains(got.out, "mcp_tool_pins: 1 row") {
		t.Errorf("exit %d: %s", got.code, got.out)
	}
	r.tai("vault", "check", "copy.db", "--repair").fails(exitUsage, "mends the vault, not a copy")
	r.tai("vault", "check", "none.db").outHas("none.db: none")
	r.tai("vault", "check").outHas(vaultFile + ": fine")
}

// --repair asks first, says what it did, and checks again.
func TestVaultCheckRepairCLI(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.with("value-one-long", "secret", "set", "ONE", "--from", "-").ok()
	vaultBreak(t, r.home, `INSERT INTO mcp_tool_pins VALUES ('gone', 't', 'h', 1)`, `INSERT INTO settings VALUES ('current_profile', 'lost')`)
	r.tai("vault", "check", "--repair").fails(exitRefused, "nobody can be asked", "hint: --yes")
	got := r.tai("vault", "check", "--repair", "--yes")
	if got.code != exitFailed || strings.Contains(got.out, "mcp_tool_pins: ") || !strings.Contains(got.out, "do: tai profile use default") {
		t.Errorf("exit %d: %s", got.code, got.out)
	}
	got.errHas("mcp_tool_pins: 1 row of servers that are gone dropped")
	r.tai("profile", "use", "default").ok()
	r.tai("vault", "check", "--repair").outHas(": fine") // nothing to mend, so nothing to ask
}

// VLT-06, VLT-07, VLT-08: each way in which a seal can be broken is told, with what to do, and no value is shown.
func TestVaultCheckSeal(t *testing.T) {
	const token = "value-token"
	ctx := t.Context()
	for _, tc := range []struct {
		name        string
		spoil       func(t *testing.T, v *vault, dir string) vaultKeys // also the keys to check with
		level, what string                                             // "" for no finding
		opened      bool
	}{
		{"whole", func(t *testing.T, v *vault, dir string) vaultKeys { return v.keys }, "", "", true},
		{"a bit flipped", func(t *testing.T, v *vault, dir string) vaultKeys {
			vaultBreakFile(t, v.path, `UPDATE secrets SET value = substr(value, 1, length(value) - 1) || x'00' WHERE name = 'PLAIN'`)
			return v.keys
		}, findError, "1 value not what was sealed there: secrets.value of /PLAIN", false},
		{"two swapped", func(t *testing.T, v *vault, dir string) vaultKeys {
			vaultBreakFile(t, v.path, `CREATE TEMP TABLE old AS SELECT name, value FROM secrets`, `UPDATE secrets SET value = (SELECT value FROM old WHERE old.name <> secrets.name)`)
			return v.keys
		}, findError, "2 values not what was sealed there", false},
		{"in clear", func(t *testing.T, v *vault, dir string) vaultKeys {
			vaultBreakFile(t, v.path, `UPDATE mcp_servers SET env_json = '{"K":"`+token+`"}'`)
			return v.keys
		}, findError, "1 value in clear, though the seal is on: mcp_servers.env_json of files", false},
		{"no key file", func(t *testing.T, v *vault, dir string) vaultKeys {
			keys, err := filepath.Glob(filepath.Join(dir, "*.key"))
			if err != nil || len(keys) != 1 {
				t.Fatalf("%v, %v", keys, err)
			}
			if err := os.Remove(keys[0]); err != nil {
				t.Fatal(err)
			}
			return v.keys
		}, findError, "the key file is missing", false},
		{"another key", func(t *testing.T, v *vault, dir string) vaultKeys {
			if _, err := makeKeyFile(filepath.Join(dir, "other"), "0123456789abcdef"); err != nil {
				t.Fatal(err)
			}
			keys, err := filepath.Glob(filepath.Join(dir, "*.key"))
			if err == nil {
				err = os.Rename(filepath.Join(dir, "other", "0123456789abcdef.key"), keys[0])
			}
			if err != nil {
				t.Fatal(err)
			}
			return v.keys
		}, findError, "the key file does not open this vault", false},
		{"off", func(t *testing.T, v *vault, dir string) vaultKeys {
			if _, err := v.unseal(ctx); err != nil {
				t.Fatal(err)
			}
			return v.keys
		}, findNote, "the seal is off", true},
		{"sealed in an open vault", func(t *testing.T, v *vault, dir string) vaultKeys {
			if _, err := v.unseal(ctx); err != nil {
				t.Fatal(err)
			}
			vaultBreakFile(t, v.path, `UPDATE secrets SET value = x'01' || value WHERE name = 'PLAIN'`)
			return v.keys
		}, findError, "1 value not what was sealed there: secrets.value of /PLAIN", false},
		{"a scrub cut short", func(t *testing.T, v *vault, dir string) vaultKeys {
			vaultBreakFile(t, v.path, `INSERT INTO settings VALUES ('`+settingScrub+`', '1')`)
			return v.keys
		}, findWarning, "bytes from before the last change of the seal", true},
		{"a seal that says nothing", func(t *testing.T, v *vault, dir string) vaultKeys {
			vaultBreakFile(t, v.path, `UPDATE settings SET value = '{"version":1,"kind":"key-file"}' WHERE key = '`+settingSeal+`'`)
			return v.keys
		}, findError, "does not say in full how it is sealed", false},
		{"a key of another", func(t *testing.T, v *vault, dir string) vaultKeys {
			if _, err := makeKeyFile(dir, "0123456789abcdef"); err != nil {
				t.Fatal(err)
			}
			return v.keys
		}, findNote, "1 key file in ", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			home, dir := filepath.Join(t.TempDir(), "home"), filepath.Join(t.TempDir(), "keys")
			v, err := openVault(ctx, home, vaultWrite, vaultClock, vaultKeys{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			fillVault(t, v)
			keys := tc.spoil(t, v, dir)
			if err := v.close(); err != nil {
				t.Fatal(err)
			}
			r, err := vaultChecker{Home: home, Keys: keys, GOOS: runtime.GOOS, Now: time.Now}.check(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if tc.what == "" && len(r.Problems) > 0 || tc.what != "" && !findingHas(r, "seal", tc.level, tc.what) || r.fine() != (tc.level == findNote || tc.level == "") {
				t.Errorf("no %s %q in %+v", tc.level, tc.what, r.Problems)
			}
			if (r.Seal.Opened == r.Seal.Values) != tc.opened || r.Seal.Values != 4 {
				t.Errorf("%+v", r.Seal)
			}
			if text := fmt.Sprintf("%+v", r); strings.Contains(text, token) || strings.Contains(text, "value-plain") {
				t.Errorf("shows a value: %s", text)
			}
		})
	}
}

// VLT-06: a vault under a passphrase is checked in full with it, and as far as can be without.
func TestVaultCheckPassphrase(t *testing.T) {
	t.Parallel()
	home := fullVault(t)
	v := vaultAt(t, home)
	if _, err := v.sealWithPassphrase(t.Context(), "correct horse"); err != nil {
		t.Fatal(err)
	}
	say := func(s secret) func(context.Context, string) (secret, error) {
		return func(context.Context, string) (secret, error) { return s, nil }
	}
	for _, tc := range []struct {
		keys        vaultKeys
		level, what string
		opened      int
	}{
		{vaultKeys{Passphrase: say("correct horse")}, "", "", 4},
		{vaultKeys{Passphrase: say("wrong horse")}, findError, "the passphrase is wrong", 0},
		{vaultKeys{}, findNote, "4 sealed values could not be tried", 0},
	} {
		r, err := vaultChecker{Home: home, Keys: tc.keys, GOOS: runtime.GOOS, Now: time.Now}.check(t.Context())
		if err != nil || r.Seal.Kind != sealByPassphrase || r.Seal.Opened != tc.opened || tc.what != "" && !findingHas(r, "seal", tc.level, tc.what) || r.fine() == (tc.level == findError) {
			t.Errorf("%q: %+v, %v", tc.what, r, err)
		}
	}
}
