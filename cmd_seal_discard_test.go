package main

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// discardRig has two secrets, a server with a variable, one without, and a run on record.
func discardRig(t *testing.T) (r *cliRig, run string) {
	t.Helper()
	r = newCLIRig(t)
	r.derive = quickKey
	for _, name := range []string{"A", "B"} {
		r.with("a-value-of-"+name, "secret", "set", name, "--from", "-").ok()
	}
	v := r.vault()
	defer v.close()
	for _, e := range []serverEntry{
		{Name: "with", Transport: "http", URL: "https://example.com/a", Headers: map[string]string{"X-Api-Key": "a-value-in-a-header"}, Source: "explicit"},
		{Name: "without", Transport: "http", URL: "https://example.com/b", Source: "explicit"},
	} {
		if err := v.putServer(t.Context(), e, profileDefault, true, nil, mcpMaxServers); err != nil {
			t.Fatal(err)
		}
	}
	r.tai("profile", "create", "work").ok()
	heads, err := v.auditHeads(t.Context())
	if err != nil || len(heads) == 0 {
		t.Fatalf("%d runs on record: %v", len(heads), err)
	}
	return r, heads[len(heads)-1].Run
}

func (r *cliRig) vault() *vault {
	r.t.Helper()
	v, err := openVault(context.Background(), r.home, vaultWrite, time.Now, r.keys())
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// change writes to the vault behind tai's back.
func (r *cliRig) change(query string, args ...any) {
	r.t.Helper()
	v := r.vault()
	defer v.close()
	if err := v.withTx(context.Background(), func(tx *sql.Tx) error { return execOne(context.Background(), tx, query, args...) }); err != nil {
		r.t.Fatal(err)
	}
}

// flip changes one bit of a sealed value.
func (r *cliRig) flip(table, column, where string) {
	r.t.Helper()
	r.change(`UPDATE ` + table + ` SET ` + column + ` = substr(` + column + `, 1, length(` + column + `) - 1) || CASE WHEN substr(` + column + `, -1) = x'00' THEN x'01' ELSE x'00' END WHERE ` + where)
}

// Whatever of the seal is lost, tai says so, names the way on, and after it everything else is there and everything works again (VLT-08).
func TestVaultDiscard(t *testing.T) {
	t.Parallel()
	all := lostNames{Secrets: []string{"A", "B"}, Servers: []lostServer{{Name: "with", Headers: true}}, SigningKey: true}
	for name, tc := range map[string]struct {
		harm   func(*testing.T, *cliRig)
		needs  []string // a command that fails before
		says   string
		lost   lostNames
		reseal bool
	}{
		"key file lost":    {func(t *testing.T, r *cliRig) { remove(t, discardKeyFile(t, r)) }, []string{"profile", "create", "x"}, "the key file is missing", all, true},
		"key file damaged": {func(t *testing.T, r *cliRig) { write(t, discardKeyFile(t, r), "tai-vault-key-1 AAAA\n") }, []string{"profile", "create", "x"}, "damaged", all, true},
		"another key file": {func(t *testing.T, r *cliRig) {
			write(t, discardKeyFile(t, r), keyFileHead+"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n")
		}, []string{"profile", "create", "x"}, "does not open this vault", all, true},
		"passphrase forgotten": {func(t *testing.T, r *cliRig) {
			r.env = []string{"TAI_PASSPHRASE=a-good-passphrase"}
			r.tai("vault", "seal", "--passphrase").ok()
			r.env = nil
		}, []string{"profile", "create", "x"}, "sealed with a passphrase", all, true},
		"rounds beyond all bounds": {func(t *testing.T, r *cliRig) {
			r.env = []string{"TAI_PASSPHRASE=a-good-passphrase"}
			r.tai("vault", "seal", "--passphrase").ok()
			r.env = nil
			r.change(`UPDATE settings SET value = replace(value, '600000', '1') WHERE key = 'seal'`)
		}, []string{"profile", "create", "x"}, "number of rounds", all, true},
		"row of the seal damaged": {func(_ *testing.T, r *cliRig) { r.change(`UPDATE settings SET value = 'nonsense' WHERE key = 'seal'`) },
			[]string{"profile", "create", "x"}, "does not say in full how it is sealed", all, true},
		"row of the seal gone": {func(_ *testing.T, r *cliRig) { r.change(`DELETE FROM settings WHERE key = 'seal'`) },
			[]string{"secret", "set", "NEW", "--from", "env:HOME"}, "says that none are", all, true},
		"row of the seal says off": {func(_ *testing.T, r *cliRig) {
			r.change(`UPDATE settings SET value = '{"version":1,"kind":"off"}' WHERE key = 'seal'`)
		}, []string{"secret", "set", "NEW", "--from", "env:HOME"}, "says that none are", all, true},
		"one secret": {func(_ *testing.T, r *cliRig) { r.flip("secrets", "value", "name = 'A'") }, []string{"tools", "list"}, `"A"`, lostNames{Secrets: []string{"A"}, Servers: []lostServer{}}, false},
		"one server": {func(_ *testing.T, r *cliRig) { r.flip("mcp_servers", "headers_json", "name = 'with'") }, []string{"mcp", "list"}, `"with"`,
			lostNames{Secrets: []string{}, Servers: all.Servers}, false},
		"the signing key": {func(_ *testing.T, r *cliRig) { r.flip("settings", "value", "key = 'audit_key'") }, []string{"profile", "create", "x"}, "audit_key",
			lostNames{Secrets: []string{}, Servers: []lostServer{}, SigningKey: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, run := discardRig(t)
			tc.harm(t, r)
			fault := r.tai(tc.needs...)
			fault.fails(exitFailed, tc.says)
			if !strings.Contains(name, "pass") && !strings.Contains(name, "rounds") && !strings.Contains(name, "row of the seal damaged") {
				fault.errHas("--discard")
			}
			before := discardState(r)
			r.tai("vault", "seal", "--discard").fails(exitRefused, "--yes")
			if got := discardState(r); got != before {
				t.Errorf("a refused discard changed the vault:\n%s\nwas\n%s", got, before)
			}
			discard := r.tai("vault", "seal", "--discard", "--yes", "--json")
			discard.ok()
			doc := cliJSON[struct {
				Changed bool      `json:"changed"`
				KeyFile string    `json:"key_file"`
				Lost    lostNames `json:"lost"`
			}](discard)
			if !doc.Changed || (doc.KeyFile != "") != tc.reseal || !slices.Equal(doc.Lost.Secrets, tc.lost.Secrets) || !slices.Equal(doc.Lost.Servers, tc.lost.Servers) || doc.Lost.SigningKey != tc.lost.SigningKey {
				t.Errorf("got %+v, want %+v, sealed anew: %v", doc, tc.lost, tc.reseal)
			}
			discardAfter(t, r, run, tc.lost)
		})
	}
}

// discardAfter looks at what is left after a discard.
func discardAfter(t *testing.T, r *cliRig, run string, lost lostNames) {
	t.Helper()
	r.tai("vault", "check").ok()
	r.tai("audit", "verify", run).outHas("good:", "checked against: the vault's head")
	for _, s := range r.servers() {
		want := []string(nil)
		if s.Name == "with" && len(lost.Servers) > 0 {
			want = []string{"headers"}
		}
		if !slices.Equal(s.Lost, want) || (s.State == statusEnabled) != (want == nil) {
			t.Errorf("server %s: lost %q, want %q; %s", s.Name, s.Lost, want, s.State)
		}
	}
	v := r.vault()
	for _, name := range []string{"A", "B"} {
		got, err := v.secretFor(t.Context(), "", name)
		if gone := slices.Contains(lost.Secrets, name); gone != (err != nil) || !gone && got.reveal() != "a-value-of-"+name {
			t.Errorf("secret %s: %q, %v", name, got.reveal(), err)
		}
	}
	if err := v.close(); err != nil {
		t.Fatal(err)
	}
	r.with("a-new-value", "secret", "set", "A", "--from", "-").ok()
	r.tai("mcp", "remove", "with", "--yes").ok()
	r.tai("tools", "list").ok()
	if again := cliJSON[struct{ Changed bool }](r.tai("vault", "seal", "--discard", "--yes", "--json")); again.Changed {
		t.Error("a second discard changes something")
	}
	logs, err := filepath.Glob(filepath.Join(r.home, "runs", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, log := range logs {
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), `"vault-discard"`) {
			found++
			r.tai("audit", "verify", strings.TrimSuffix(filepath.Base(log), auditExtension)).outHas("good:", "checked against: the vault's head")
		}
	}
	if found != 1 {
		t.Errorf("%d logs tell of the discard", found)
	}
	if found := sealTestFind(t, []string{"a-value-of-A", "a-value-of-B", "a-value-in-a-header", "a-new-value"}, sealTestFiles(t, r.home)...); len(found) != 0 {
		t.Errorf("found in the home: %v", found)
	}
}

// What is not lost is not given up: a folder of key files that is not known, a key file that cannot be read, a newer seal, a passphrase that
// was typed wrong, and a vault that is not there.
func TestVaultDiscardRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		harm func(*testing.T, *cliRig)
		says string
	}{
		"config folder not known": {func(_ *testing.T, r *cliRig) { r.env = []string{"HOME=", "XDG_CONFIG_HOME="} }, "no folder for it is known"},
		"key file is a folder": {func(t *testing.T, r *cliRig) {
			path := discardKeyFile(t, r)
			remove(t, path)
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "no regular file"},
		"newer seal": {func(_ *testing.T, r *cliRig) {
			r.change(`UPDATE settings SET value = replace(value, '"version":1', '"version":2') WHERE key = 'seal'`)
		}, "update it"},
		"wrong passphrase": {func(_ *testing.T, r *cliRig) {
			r.env = []string{"TAI_PASSPHRASE=a-good-passphrase"}
			r.tai("vault", "seal", "--passphrase").ok()
			r.env = []string{"TAI_PASSPHRASE=another-passphrase"}
		}, "give none"},
		"no vault": {func(t *testing.T, r *cliRig) {
			if err := os.RemoveAll(r.home); err != nil {
				t.Fatal(err)
			}
		}, "there is no vault yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := discardRig(t)
			tc.harm(t, r)
			before := discardState(r)
			r.tai("vault", "seal", "--discard", "--yes").fails(exitFailed, tc.says)
			if got := discardState(r); got != before {
				t.Errorf("the vault was changed:\n%s\nwas\n%s", got, before)
			}
		})
	}
	newCLIRig(t).tai("vault", "seal", "--discard", "--passphrase").fails(exitUsage, "exclude each other")
}

// discardState is the rows that a discard may touch, "" without a vault.
func discardState(r *cliRig) (state string) {
	r.t.Helper()
	if _, there, err := vaultPath(r.home); err != nil || !there {
		return ""
	}
	v := r.vault()
	defer v.close()
	err := v.view(context.Background(), func(tx *sql.Tx) error {
		return tx.QueryRow(`
			SELECT (SELECT group_concat(key || hex(value)) FROM settings)
				|| (SELECT group_concat(name || hex(value)) FROM secrets)
				|| (SELECT group_concat(name || hex(headers_json)) FROM mcp_servers)
				|| (SELECT group_concat(server || enabled) FROM mcp_server_profiles)
				|| (SELECT group_concat(run || hex(signature)) FROM audit_runs)`).Scan(&state)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return state
}

func discardKeyFile(t *testing.T, r *cliRig) string {
	t.Helper()
	return cliJSON[struct {
		KeyFile string `json:"key_file"`
	}](r.tai("vault", "status", "--json")).KeyFile
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// F21: a vault whose seal someone else has switched off is not written to in silence; one that tai vault unseal opened is. An old row that says
// off bears no witness once the vault was sealed again, and saying it again makes it meant.
func TestSealOffUnwitnessed(t *testing.T) {
	t.Parallel()
	const warning = "nothing on this machine says that tai vault unseal did that"
	r := newCLIRig(t)
	r.tai("profile", "create", "work").ok()
	quiet := func(when string, words ...string) {
		t.Helper()
		c := r.tai(words...)
		c.ok()
		if strings.Contains(c.err+c.out, warning) {
			t.Errorf("%s: %q warns: %s%s", when, words, c.err, c.out)
		}
	}
	quiet("sealed", "profile", "use", "work")
	r.tai("vault", "unseal", "--yes").ok()
	quiet("unsealed", "profile", "use", "default")
	quiet("unsealed", "vault", "status")
	quiet("unsealed", "vault", "check")
	v := r.vault()
	row, err := v.setting(t.Context(), settingSeal)
	if err != nil {
		t.Fatal(err)
	}
	v.close()
	r.tai("vault", "seal").ok()
	if left, err := filepath.Glob(filepath.Join(r.keys().Dir, "*.off")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	quiet("sealed again", "profile", "use", "work")
	for _, forged := range []string{row, `{"version":1,"kind":"off"}`, `{"version":1,"kind":"off","id":"../../../etc/x"}`} {
		r.change(`DELETE FROM settings WHERE key = ?`, settingAuditKey) // whoever forges the row takes sealed values away
		r.change(`UPDATE settings SET value = ? WHERE key = 'seal'`, forged)
		set := r.with("a-value", "secret", "set", "A", "--from", "-")
		set.ok()
		set.errHas(warning)
		r.tai("vault", "status").outHas(warning)
		if status := cliJSON[vaultStatus](r.tai("vault", "status", "--json")); !status.OffUnknown {
			t.Errorf("%+v", status)
		}
		r.tai("vault", "check").outHas(warning)
		r.tai("vault", "unseal", "--yes").ok()
		quiet("said again", "profile", "use", "work")
		quiet("said again", "vault", "unseal")
		r.tai("vault", "seal").ok()
		r.tai("secret", "delete", "A").ok()
	}
}
