package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// sealTestRig stores 50 secrets of every kind that the vault seals, 8 of them large and 10 deleted again, and results and logs in which they stood.
func sealTestRig(t *testing.T) (r *cliRig, planted []string) {
	t.Helper()
	r = newCLIRig(t)
	r.derive = quickKey
	r.tai("profile", "create", "work").ok()
	v, err := openVault(t.Context(), r.home, vaultWrite, time.Now, r.keys())
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	plant := func(what string) secret {
		text := sealTestText(what)
		planted = append(planted, text)
		return secret(text)
	}
	for i := range 22 {
		value := plant("secret")
		if i%3 == 0 {
			value += secret(strings.Repeat("filler", 10_000)) + value // pages of its own
		}
		if err := v.putSecret(ctx, "", fmt.Sprint("S", i), value, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 9 {
		headers, env := map[string]string{"Authorization": "Bearer " + plant("header").reveal()}, map[string]string{"API_TOKEN": plant("env").reveal()}
		entry := serverEntry{Name: fmt.Sprint("srv", i), Transport: "http", URL: "https://example.com/mcp", Headers: headers, Env: env, Source: "explicit"}
		if err := v.putServer(ctx, entry, profileDefault, i%2 == 0, nil, mcpMaxServers); err != nil {
			t.Fatal(err)
		}
		if err := v.putSecret(ctx, "work", oauthSecretPrefix(entry.Name)+"access", plant("oauth"), nil); err != nil {
			t.Fatal(err)
		}
	}
	r.tai("tools", "call", "shell_run", "command=env").ok() // makes the key that signs run logs
	seed, err := vaultSigningSeed(ctx, v)
	if err != nil || len(seed.reveal()) < 32 {
		t.Fatalf("the signing key has %d bytes: %v", len(seed.reveal()), err)
	}
	planted = append(planted, seed.reveal())
	for i := range 5 { // what is gone must be gone from the file too
		if err := errors.Join(v.deleteSecret(ctx, "", fmt.Sprint("S", 3*i)), v.removeServer(ctx, fmt.Sprint("srv", 8-i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.close(); err != nil {
		t.Fatal(err)
	}
	r.addFake("fake", fakeStdio{On: map[string][]fakeStep{"tools/call add": {{Reply: `{"content":[{"type":"text","text":"` + strings.Join(planted[1:3], " ") + strings.Repeat(" nothing", 9000) + `"}]}`}}}})
	if len(planted) != 50 {
		t.Fatalf("%d planted", len(planted))
	}
	return r, planted
}

// R9: of 50 planted secrets none can be found in any file of the home while the vault is sealed: not in vault.db, its journal and index, the
// run logs or the records, in no usual encoding; not before and not after rekey, nor when it is sealed again after it stood open.
func TestSealKeepsSecretsOutOfFiles(t *testing.T) {
	t.Parallel()
	r, planted := sealTestRig(t)
	holder := vaultProcess(t, "TAI_TEST_FAKE=vault-holder", "TAI_HOME="+r.home, "TAI_TEST_KEYS="+r.keys().Dir)
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "open\n" {
		t.Fatalf("the process that holds the vault: %q, %v", line, err)
	}
	r.tai("mcp", "call", "fake", "add", "a=1", "b:="+planted[1]).ok()
	r.tai("tools", "call", "text_search", "pattern="+planted[2]).ok()
	gone := map[string]bool{}
	for i := range 5 {
		gone[planted[3*i]] = true // S0, S3 … are the planted 0, 3 …
		for k := range 3 {        // its tokens go with a server
			gone[planted[22+3*(8-i)+k]] = true
		}
	}
	nothing := func(when string) {
		t.Helper()
		files := sealTestFiles(t, r.home)
		for _, want := range []string{"vault.db", "vault.db-wal", "vault.db-shm"} {
			if !slices.ContainsFunc(files, func(p string) bool { return filepath.Base(p) == want }) {
				t.Errorf("%s: no %s among %q", when, want, files)
			}
		}
		if len(files) < 5 {
			t.Errorf("%s: no run logs among %q", when, files)
		}
		if found := sealTestFind(t, planted, files...); len(found) != 0 {
			t.Errorf("%s: found %v", when, found)
		}
	}
	all := func(when string) {
		t.Helper()
		found := sealTestFind(t, planted, filepath.Join(r.home, vaultFile), filepath.Join(r.home, vaultFile+"-wal"))
		for _, text := range planted {
			if _, there := found[text]; there == gone[text] {
				t.Errorf("%s: %s found: %v, deleted: %v", when, text, there, gone[text])
			}
		}
	}
	nothing("sealed from the start")
	r.tai("vault", "rekey").ok()
	nothing("after rekey")
	r.tai("vault", "unseal", "--yes").ok()
	all("unsealed")
	r.tai("vault", "seal").outHas("sealed with a new key")
	nothing("sealed again")
	r.env = []string{"TAI_PASSPHRASE=a-good-passphrase"}
	r.tai("vault", "seal", "--passphrase").ok()
	nothing("by a passphrase")
	r.tai("vault", "rekey").ok()
	nothing("rekeyed by a passphrase")
	if records := cliJSON[struct{ Total int }](r.tai("record", "list", "--json")); records.Total == 0 {
		t.Error("no result became a record")
	}
	if err := errors.Join(stdin.Close(), holder.Wait()); err != nil {
		t.Error(err)
	}
	v, err := openVault(t.Context(), r.home, vaultWrite, time.Now, vaultKeys{Passphrase: r.passphrase("a-good-passphrase"), Derive: r.derive})
	if err != nil {
		t.Fatal(err)
	}
	defer v.close()
	if s, err := v.secretFor(t.Context(), "", "S1"); err != nil || s.reveal() != planted[1] {
		t.Errorf("after all that S1 reads %v", err)
	}
}

// The commands of the seal as scripts use them: exit codes, texts, what each leaves behind.
func TestCLISeal(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.derive = quickKey
	r.tai("vault", "status").outHas("there is no vault yet")
	r.tai("vault", "rekey").fails(exitFailed, "there is no vault yet")
	r.tai("vault", "unseal", "--yes").fails(exitFailed, "there is no vault yet")
	if _, err := os.Stat(r.home + "-config"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key file where nothing was stored: %v", err)
	}
	r.with("a-secret-value", "secret", "set", "A", "--from", "-").ok()
	status := func() vaultStatus { t.Helper(); return cliJSON[vaultStatus](r.tai("vault", "status", "--json")) }
	first := status()
	if first.Seal != sealByKeyFile || first.KeyFileThere == nil || !*first.KeyFileThere || filepath.Dir(first.KeyFile) != r.keys().Dir || first.Schema != len(vaultMigrations()) || first.Size == 0 {
		t.Errorf("status %+v", first)
	}
	r.tai("vault", "status").outHas("sealed  by a key file", first.KeyFile, "values  1 of 1 sealed in secrets")
	r.tai("vault", "seal").outHas("sealed by a key file already")
	r.tai("vault", "rekey").outHas("new key", "older copies", "rm "+first.KeyFile)
	if status().KeyFile == first.KeyFile {
		t.Error("rekey kept the key file")
	}
	r.tai("vault", "seal", "--passphrase").fails(exitFailed, "no terminal", "TAI_PASSPHRASE")
	r.tai("vault", "seal", "--passphrase", "--key-file").fails(exitUsage, "exclude")
	r.env = []string{"TAI_PASSPHRASE=short"}
	r.tai("vault", "seal", "--passphrase").fails(exitUsage, "8 to 4096")
	file := filepath.Join(r.dir, "pass")
	if err := os.WriteFile(file, []byte("from-a-file\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.env = []string{"TAI_PASSPHRASE_FILE=pass"}
	if runtime.GOOS != "windows" {
		r.tai("vault", "seal", "--passphrase").fails(exitFailed, "can be read by others", "chmod 600")
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	r.tai("vault", "seal", "--passphrase").outHas("by the passphrase")
	r.tai("vault", "seal").outHas("sealed by a passphrase already")
	r.tai("record", "search", "x").ok()
	r.env = nil
	sealTestLocked(t, r)
	r.env = []string{"TAI_PASSPHRASE=wrong-wrong"}
	r.tai("record", "search", "x").fails(exitFailed, "the passphrase is wrong")
	r.tai("vault", "seal", "--key-file").fails(exitFailed, "the passphrase is wrong")
	r.env = []string{"TAI_PASSPHRASE=from-a-file", "TAI_NEW_PASSPHRASE=another-passphrase"}
	r.tai("vault", "seal", "--passphrase").outHas("the passphrase is changed")
	r.tai("record", "search", "x").fails(exitFailed, "the passphrase is wrong")
	r.env = []string{"TAI_PASSPHRASE=another-passphrase"}
	r.tai("vault", "unseal").fails(exitRefused, "--yes")
	r.tai("vault", "unseal", "--yes", "--permission-mode", "read-only").fails(exitRefused, "read-only")
	r.tai("vault", "seal", "--key-file").outHas("new key")
	r.env = nil
	r.tai("vault", "unseal", "--yes").outHas("in the clear", "older copies")
	r.tai("vault", "unseal", "--yes").outHas("not sealed; nothing was changed")
	r.tai("vault", "rekey").fails(exitFailed, "not sealed", "tai vault seal")
	r.tai("vault", "status").outHas("sealed  no", "sealed  no", "0 of 1 sealed in secrets", "0 of 2 sealed in mcp_servers")
	r.tai("tools", "call", "shell_run", "command=exit 0").ok() // and the run log is signed all the same
	r.tai("vault", "seal").ok()
	kinds := map[string]int{}
	for _, run := range cliJSON[struct{ Runs []auditRunInfo }](r.tai("audit", "list", "--json")).Runs {
		for _, kind := range []string{"vault-seal", "vault-unseal", "vault-rekey"} {
			if shown := r.tai("audit", "show", run.Run); strings.Contains(shown.out, kind) {
				kinds[kind]++
			}
		}
		r.tai("audit", "verify", run.Run).ok()
	}
	if kinds["vault-seal"] < 4 || kinds["vault-unseal"] < 2 || kinds["vault-rekey"] < 1 {
		t.Errorf("in the run logs: %v", kinds)
	}
}

// sealTestLocked runs what works and what does not while the vault has a passphrase that nobody gives. Nothing derives a key.
func sealTestLocked(t *testing.T, r *cliRig) {
	t.Helper()
	v, err := openVault(t.Context(), r.home, vaultWrite, time.Now, vaultKeys{Passphrase: r.passphrase("from-a-file"), Derive: r.derive})
	if err != nil {
		t.Fatal(err)
	}
	entry := serverEntry{Name: "files", Transport: "stdio", Command: "prog", Args: []string{"--verbose"}, Env: map[string]string{"API_TOKEN": "hidden-value-1"}, Source: "explicit"}
	if err := errors.Join(v.putServer(t.Context(), entry, profileDefault, true, nil, mcpMaxServers), v.close()); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"vault status", "profile list", "record list", "secret list", "audit list", "mcp list", "version"} {
		r.tai(strings.Fields(words)...).ok()
	}
	list := r.tai("mcp", "list", "--json")
	list.ok()
	list.errHas("names of headers and variables are not shown")
	if s := cliJSON[struct{ Servers []serverSummary }](list).Servers; len(s) != 1 || s[0].Command != "prog" || len(s[0].Args) != 1 || len(s[0].Env) != 0 {
		t.Errorf("mcp list: %+v", s)
	}
	r.with(`{"command":"npx","args":["-y","pkg"]}`, "mcp", "normalize", "--name", "mine").ok() // what is pasted needs no key
	r.with("files", "mcp", "normalize").fails(exitFailed, "sealed with a passphrase")          // a stored entry does
	for _, words := range []string{"record search x", "record show r-0000", "mcp tools files", "tools list", "tools call shell_run command=env", "secret set B --from env:HOME", "vault rekey", "vault unseal --yes"} {
		r.tai(strings.Fields(words)...).fails(exitFailed, "sealed with a passphrase", "TAI_PASSPHRASE", "TAI_PASSPHRASE_FILE", "terminal")
	}
	if strings.Contains(r.tai("record", "search", "x").err, "withheld") {
		t.Error("a text was withheld where the run should have ended")
	}
}

// Commands that a tool runs do not get the passphrase.
func TestSealPassphraseStaysHere(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("env is a program of the other systems")
	}
	r := newCLIRig(t)
	r.env = []string{"TAI_PASSPHRASE=a-good-passphrase", "TAI_NEW_PASSPHRASE=b-good-passphrase", "OTHER=kept"}
	got := r.tai("tools", "call", "shell_run", "command=env")
	got.outHas("OTHER=kept")
	if strings.Contains(got.ok(), "PASSPHRASE") {
		t.Errorf("a command sees %s", got.out)
	}
}

// passphrase gives a source of one passphrase.
func (r *cliRig) passphrase(p secret) func(context.Context, string) (secret, error) {
	return func(context.Context, string) (secret, error) { return p, nil }
}

// What a person does next stands in the message: after a seal that is there already, a wrong passphrase, a lost key file, a copy that is not
// there, a repair of nothing.
func TestSealWaysOut(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.derive = quickKey
	r.with("planted-value-1", "secret", "set", "X", "--from", "-").ok()
	r.tai("vault", "seal").outHas("by a key file already", "tai vault seal --passphrase", "tai vault rekey")
	r.tai("vault", "check", filepath.Join(r.dir, "nope.db")).outHas("no such file")
	if run := r.tai("vault", "check", filepath.Join(r.dir, "nope.db")); run.code != exitFailed {
		t.Errorf("a copy that is not there: exit %d, want %d", run.code, exitFailed)
	}
	r.tai("vault", "check", "--repair", "--yes").errHas("nothing that --repair could mend")
	keys := r.keys().Dir
	if err := os.Rename(keys, keys+"-away"); err != nil {
		t.Fatal(err)
	}
	r.tai("record", "search", "x").fails(exitFailed, "the key file is missing", "hint: if no copy of the key file is left")
	if err := os.Rename(keys+"-away", keys); err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, "TAI_PASSPHRASE=planted-passphrase")
	r.tai("vault", "seal", "--passphrase").outHas("by the passphrase")
	r.tai("vault", "seal").outHas("by a passphrase already", "--key-file goes back")
	r.env[len(r.env)-1] = "TAI_PASSPHRASE=another-passphrase"
	wrong := r.tai("record", "search", "x")
	wrong.fails(exitFailed, "the passphrase is wrong", "hint: where TAI_PASSPHRASE")
	wrong.hides("another-passphrase")
	r.env[len(r.env)-1] = "TAI_PASSPHRASE_FILE=" + filepath.Join(r.dir, "nope")
	r.tai("record", "search", "x").fails(exitFailed, "read the passphrase file")
}
