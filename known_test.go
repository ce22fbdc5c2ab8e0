package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// knownApp is a long-running tai over the rig's home.
func knownApp(t *testing.T, r *cliRig) *app {
	t.Helper()
	get := func(name string) string {
		value := ""
		for _, kv := range r.environ() {
			if k, v, ok := strings.Cut(kv, "="); ok && k == name {
				value = v
			}
		}
		return value
	}
	a, err := openApp(outside{Getenv: get, Environ: r.environ(), Stdin: strings.NewReader(""), Stdout: &strings.Builder{}, Stderr: &strings.Builder{}, GOOS: runtime.GOOS, Now: time.Now, Dir: r.dir},
		map[string][]string{"home": {r.home}}, storeWrite, "cli")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// knownStale ends the time for which an answer of the vault holds.
func knownStale(k *knownSecrets) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.checked = time.Time{}
}

// elsewhere runs tai as a process of its own.
func (r *cliRig) elsewhere(stdin string, words ...string) {
	r.t.Helper()
	cmd := r.process(words...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("tai %q: %v\n%s", words, err, out)
	}
}

// AUD-09, R10: a running tai masks what another process has just stored, and what was a secret while it ran stays one: replaced or
// deleted by itself or by another.
func TestAUD09OtherProcess(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	a := knownApp(t, r)
	shows := func(want string) {
		t.Helper()
		knownStale(a.known)
		if got := a.redact("x val-first-1 val-second-2 val-third-3 x"); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	shows("x val-first-1 val-second-2 val-third-3 x")
	r.elsewhere("val-first-1", "secret", "set", "KEY", "--from", "-")
	shows("x [secret:KEY] val-second-2 val-third-3 x")
	r.elsewhere("val-second-2", "secret", "set", "KEY", "--from", "-")
	shows("x [secret:KEY] [secret:KEY] val-third-3 x")
	r.elsewhere("", "secret", "delete", "KEY")
	shows("x [secret:KEY] [secret:KEY] val-third-3 x")

	c := &invocation{app: a, args: []string{"OWN"}, flags: map[string][]string{"from": {"env:MINE"}}}
	a.out.Environ = append(a.out.Environ, "MINE=val-third-3")
	if err := cmdSecretSet(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	shows("x [secret:KEY] [secret:KEY] [secret:OWN] x")
	if err := cmdSecretDelete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	shows("x [secret:KEY] [secret:KEY] [secret:OWN] x")
}

// Without a change nothing is read again; another process's change of anything else reads, and makes no new tables.
func TestKnownReadsOnChange(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.with("val-first-1", "secret", "set", "KEY", "--from", "-").ok()
	a := knownApp(t, r)
	mask := func() *redactor {
		t.Helper()
		m, err := a.known.redactor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := mask()
	knownStale(a.known)
	if mask() != first {
		t.Error("other tables without a change")
	}
	r.elsewhere("", "profile", "create", "work")
	knownStale(a.known)
	if mask() != first {
		t.Error("other tables after a change of something else")
	}
}

// Where the secrets could never be read, nothing is shown; where a later look fails, what was known stays masked.
func TestKnownUnreadable(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, t.TempDir())
	fault := error(errNotFound)
	k := &knownSecrets{vault: func(context.Context) (*vault, error) { return v, fault }, environ: []string{"A_TOKEN=val-of-env-1"}}
	if got := k.text("plain"); got != knownWithheld {
		t.Errorf("unread: %q", got)
	}
	fault = nil
	if got := k.text("val-of-env-1"); got != "[secret:A_TOKEN]" {
		t.Errorf("read: %q", got)
	}
	fault = errNotFound
	knownStale(k)
	if got := k.text("val-of-env-1"); got != "[secret:A_TOKEN]" {
		t.Errorf("a later look fails: %q", got)
	}
	k.changed() // a secret that nobody has read may be in the text
	if got := k.text("val-of-env-1"); got != knownWithheld {
		t.Errorf("after a change: %q", got)
	}
}

// What is no longer stored is forgotten at last, the oldest first.
func TestKnownForgetsTheOldest(t *testing.T) {
	t.Parallel()
	k := &knownSecrets{}
	live := []namedSecret{{"LIVE", "value-of-live"}}
	for i := range knownOldMax + 10 {
		k.add(append([]namedSecret{{"OLD", secret(fmt.Sprintf("value-of-old-%d", i))}}, live...))
	}
	k.add(live)
	if len(k.Values) != knownOldMax+1 || len(k.seen) != knownOldMax+1 {
		t.Errorf("%d values, %d ids", len(k.Values), len(k.seen))
	}
	if got := newRedactor(k.Values).text("value-of-live value-of-old-3 value-of-old-500"); got != "[secret:LIVE] value-of-old-3 [secret:OLD]" {
		t.Errorf("%q", got)
	}
}

// AUD-09: variables of the process are secrets by their name, or hold a password.
func TestAUD09Environment(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, value, in, want string }{
		{"GITLAB_TOKEN", "tok-gitlab-1", "tok-gitlab-1", "[secret:GITLAB_TOKEN]"},
		{"DB_URL", "postgres://app:pw%2Fof-db-1@db/x", "pw%2Fof-db-1 pw/of-db-1 postgres://app:pw%2Fof-db-1@db/x", "[secret:DB_URL] [secret:DB_URL] postgres://app:[secret:DB_URL]@db/x"},
		{"DB_URL", "postgres://postgres:postgres@localhost/x", "postgres", "postgres"},
		{"DSN", "host=h user=u password=pw-of-db-1 dbname=d", "pw-of-db-1", "[secret:DSN]"},
		{"CONN", "Server=s;User Id=u;Password=pw-of-db-1;", "pw-of-db-1", "[secret:CONN]"},
		{"MYSQL", "u:pw-of-db-1@tcp(h:3306)/d", "pw-of-db-1", "[secret:MYSQL]"},
		{"HTTPS_PROXY", "http://u:pw-of-proxy@proxy:8080", "pw-of-proxy", "[secret:HTTPS_PROXY]"},
		{"HOMEPAGE", "https://example.com/a:b@c", "b", "b"},
		{"SMTP_PASS", "pass-word-9", "pass-word-9", "[secret:SMTP_PASS]"},
		{"TOKEN_FILE", "/run/secrets/token", "/run/secrets/token", "/run/secrets/token"},
		{"KEYBOARD", "qwertz-layout", "qwertz-layout", "qwertz-layout"},
	} {
		if got := newRedactor(environSecrets(tc.name, tc.value)).text(tc.in); got != tc.want {
			t.Errorf("%s=%s: %q, want %q", tc.name, tc.value, got, tc.want)
		}
	}
}

func TestNamesOfSecrets(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"TOKEN": true, "GITLAB_TOK": true, "x-api-key": true, "apiKey": true, "accessKey": true, "MY_PIN": true, "DB_PASS": true, "DB_PWD": true, "Authorization": true, "Private-Token": true, "client_secret": true, "JWT": true, "PGPASSWORD": true,
		"PWD": false, "OLDPWD": false, "OLD_PWD": false, "PATH": false, "MONKEY": false, "TOKEN_URL": false, "SSH_AUTH_SOCK": false, "KEY_FILE": false, "SSH_PUBLIC_KEY": false, "COMPASS": false, "SPIN": false, "HOST": false, "": false, "AUTHOR": false,
	} {
		if got := secretName(name); got != want {
			t.Errorf("secretName(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestSecretShapes(t *testing.T) {
	t.Parallel()
	random := strings.NewReplacer("-", "", "_", "").Replace(redactToken(3) + redactToken(4))
	for value, want := range map[string]bool{
		"ghp" + "_" + redactToken(1)[3:]: true, "sk" + "-" + redactToken(2)[3:]: true, "glpat" + "-Ab12Cd34Ef56Gh78Ij90": true, "eyJ" + "hbGciOi.eyJzdWIi.c2lnbmF0": true, random: true,
		"/usr/local/lib/node_modules/Some/Package123": false, "3f2504e0-4f89-11d3-9a0c-0305e82c3301": false, "da39a3ee5e6b4b0d3255bfef95601890afd80709": false, "my-project-name-2024-europe-west1-Abc": false,
		"@modelcontextprotocol/server-filesystem": false, "sk-learn": false, "hello world": false, "": false, "production": false, "https://example.com/Path/With/Many/Parts123": false, "2026-01-02T03:04:05.000000Z": false,
	} {
		if got := secretShape(value); got != want {
			t.Errorf("secretShape(%q) = %v, want %v", value, got, want)
		}
	}
}

// BenchmarkKnownText is a short text of a call through all of it: masked by what is known, the vault asked now and then.
func BenchmarkKnownText(b *testing.B) {
	v := vaultAt(b, b.TempDir())
	for i := range 10 {
		if err := v.putSecret(b.Context(), "", fmt.Sprint("KEY_", i), secret(redactToken(i)), nil); err != nil {
			b.Fatal(err)
		}
	}
	k := &knownSecrets{vault: func(context.Context) (*vault, error) { return v, nil }}
	b.ReportAllocs()
	for b.Loop() {
		k.text("a result of a tool, as short as most are")
	}
}

// BenchmarkKnownStamp is one question to the vault whether others wrote.
func BenchmarkKnownStamp(b *testing.B) {
	v := vaultAt(b, b.TempDir())
	for b.Loop() {
		if _, err := v.stamp(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// A value is refused only where it could not be used, and a person is told what will not be masked, or too much.
func TestCLISecretValues(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	set := func(value string) cliRun { return r.with(value, "secret", "set", "X", "--from", "-") }
	set("a\x00bcdefgh").fails(exitUsage, "zero byte", "hint: ")
	set("abcdefg\xff").fails(exitUsage, "not UTF-8", "hint: ")
	set("\n").fails(exitUsage, "empty")
	set(strings.Repeat("x", secretMax+1)).fails(exitUsage, fmt.Sprint(secretMax))
	r.env = []string{"BIG=" + strings.Repeat("x", secretMax+1)}
	r.tai("secret", "set", "X", "--from", "env:BIG").fails(exitUsage, fmt.Sprint(secretMax))
	for _, value := range []string{"abc", "12", "abc\n", " ab "} {
		set(value).errHas("NOT masked")
	}
	set("q1w2e").errHas("not in base64")
	for _, value := range []string{"localhost", "true", "Password", "12345", "aaaaaaaa"} {
		set(value).errHas("ordinary word")
	}
	for _, value := range []string{"Xk29-good-value", "line one\nline two\nline three\n", strings.Repeat("xy", secretMax/2) + "\n"} {
		if got := set(value); got.code != exitDone || got.err != "" {
			t.Errorf("%.20q: exit %d, %s", value, got.code, got.err)
		}
	}
	// One line end goes, a second one belongs to the value; a variable's value is taken as it is.
	a := knownApp(t, r)
	v, err := a.vault(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{"value-one\n": "value-one", "value-one\r\n": "value-one", "value-one\n\n": "value-one\n", "a\nb\nvalue": "a\nb\nvalue"} {
		set(in).ok()
		if got, err := v.secretFor(t.Context(), "", "X"); err != nil || got.reveal() != want {
			t.Errorf("%q: %q, %v, want %q", in, got.reveal(), err, want)
		}
	}
	for _, name := range []string{"1A", "A B", "A=B", "é", "-A", "", strings.Repeat("A", secretNameMax+1)} {
		r.with("value-one", "secret", "set", "--from", "-", "--", name).fails(exitUsage)
	}
}

// Before the vault was read, the last door masks the secrets of the environment, and asks no vault.
func TestKnownQuick(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, t.TempDir())
	asked := 0
	k := &knownSecrets{vault: func(context.Context) (*vault, error) { asked++; return v, nil }, environ: []string{"A_TOKEN=val-of-env-1", "PLAIN=val-of-env-2"}}
	for range 2 {
		if got := k.quick("val-of-env-1 val-of-env-2"); got != "[secret:A_TOKEN] val-of-env-2" || asked != 0 {
			t.Errorf("%q, the vault was asked %d times", got, asked)
		}
	}
	if err := v.putSecret(t.Context(), "", "S", "val-stored-1", nil); err != nil {
		t.Fatal(err)
	}
	if got := k.text("val-stored-1"); got != "[secret:S]" {
		t.Fatalf("read: %q", got)
	}
	before := asked
	if got := k.quick("val-of-env-1 val-stored-1"); got != "[secret:A_TOKEN] [secret:S]" || asked != before {
		t.Errorf("after a reading: %q, the vault was asked %d times more", got, asked-before)
	}
}
