package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Secrets come from a variable, a private file or standard input, are never shown, and go.
func TestCLISecrets(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.env = []string{"FROM_HERE=val-one-long"}
	file := filepath.Join(r.dir, "secret.txt")
	if err := os.WriteFile(file, []byte("val-two-long\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := r.tai("secret", "set", "ONE", "--from", "env:FROM_HERE").ok(); got != "ONE: stored; refer to it as ${ONE}\n" {
		t.Errorf("%q", got)
	}
	r.tai("secret", "set", "TWO", "--from", "file:"+file).ok()
	if got := canonText(t, r.with("val-three-long\n", "secret", "set", "THREE", "--from=-", "--json").ok()); got != `{"name":"THREE","state":"stored"}` {
		t.Errorf("--json: %s", got)
	}
	r.with("tiny", "secret", "set", "FOUR", "--from", "-").errHas("warning: ")
	list := r.tai("secret", "list", "--json")
	doc := cliJSON[struct{ Secrets []map[string]any }](list)
	if len(doc.Secrets) != 4 || doc.Secrets[0]["name"] != "FOUR" || doc.Secrets[0]["created"] == nil {
		t.Errorf("list: %+v", doc)
	}
	list.hides("val-")
	r.tai("secret", "list").outHas("ONE  set 20")

	r.tai("secret", "set", "X").fails(exitRefused, "hidden prompt", "hint: --from env:NAME")
	r.tai("secret", "set", "X", "--from", "env:NOT_SET").fails(exitUsage, `"NOT_SET" is not set`)
	r.tai("secret", "set", "X", "--from", "file:"+r.dir).fails(exitUsage, "no regular file")
	r.with("", "secret", "set", "X", "--from", "-").fails(exitUsage, "empty")
	r.with(strings.Repeat("x", secretMax+1), "secret", "set", "X", "--from", "-").fails(exitUsage, fmt.Sprint(secretMax))
	if runtime.GOOS != "windows" {
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
		r.tai("secret", "set", "X", "--from", "file:"+file).fails(exitUsage, "can be read by others", "hint: chmod 600")
	}
	web := newFakeHTTP(t)
	r.tai("mcp", "add", "--yes", "web", web.URL+"/mcp").ok()
	got := r.tai("mcp", "call", "web", "echo", "a=val-one-long", "b=val-two-long", "c=val-three-long")
	got.outHas("[secret:ONE]", "[secret:TWO]", "[secret:THREE]")
	r.tai("secret", "delete", "ONE").outHas("ONE: deleted")
	r.tai("secret", "delete", "ONE").fails(exitFailed, "not found", "hint: tai secret list")
}

// Run logs are listed, shown and verified; one changed byte is exit 1 at its line, a file that is none exit 2 (AUD-12).
func TestCLIAudit(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	if got := r.tai("audit", "list").ok(); got != "no runs are logged\n" {
		t.Errorf("%q", got)
	}
	if got := r.tai("audit", "list", "--json").ok(); canonText(t, got) != `{"runs":[],"total":0}` {
		t.Errorf("%q", got)
	}
	r.addFake("fake", fakeStdio{})
	r.tai("mcp", "call", "fake", "add", "a=1", "b=2").ok()
	runs := cliJSON[struct{ Runs []auditRunInfo }](r.tai("audit", "list", "--json")).Runs
	if len(runs) != 2 {
		t.Fatalf("%d runs", len(runs))
	}
	id := runs[0].Run
	shown := r.tai("audit", "show", id).ok()
	order := []string{"run_started", "tool_call_requested", "tool_call_started", "tool_call_completed", "run_completed"}
	if lines := strings.Split(strings.TrimSpace(shown), "\n"); len(lines) != len(order) {
		t.Errorf("%s", shown)
	} else {
		for i, line := range lines {
			if !strings.Contains(line, order[i]) {
				t.Errorf("line %d is no %s: %s", i+1, order[i], line)
			}
		}
	}
	if !strings.Contains(shown, "mcp-call  fake/add") {
		t.Errorf("%s", shown)
	}
	events := cliJSON[struct{ Events []json.RawMessage }](r.tai("audit", "show", id, "--json")).Events
	if len(events) != len(order) {
		t.Errorf("%d events", len(events))
	}
	r.tai("audit", "verify", id).outHas("good: 5 lines of " + id)
	if keys := cliKeys(t, json.RawMessage(r.tai("audit", "verify", id, "--ci").ok())); !slices.Contains(keys, "lines") {
		t.Errorf("--ci: %v", keys)
	}
	name := filepath.Join(r.home, "runs", id+auditExtension)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(r.dir, "copy.jsonl")
	edited := strings.Replace(string(b), `"subject":"fake/add"`, `"subject":"fake/bad"`, 1)
	for _, tc := range []struct {
		text string
		code int
		says string
	}{
		{string(b), exitDone, "good"},
		{edited, exitFailed, "tampered with: line 2"},
		{string(b[:len(b)-30]), exitFailed, "tampered with: line 5: the line is incomplete, and the head says that it was whole"},
		{string(b) + `{"seq":6,`, exitDone, "notice: an incomplete last line, as a crash leaves it"},
		{"not a log", exitUsage, "unreadable"},
	} {
		if err := os.WriteFile(copied, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := r.tai("audit", "verify", "copy.jsonl")
		if got.code != tc.code || !strings.Contains(got.out, tc.says) {
			t.Errorf("verify: exit %d, want %d with %q: %s%s", got.code, tc.code, tc.says, got.out, got.err)
		}
		if ci := r.tai("audit", "verify", copied, "--ci"); ci.code != tc.code || strings.Count(ci.out, "\n") != 1 {
			t.Errorf("--ci: exit %d: %s", ci.code, ci.out)
		}
	}
	r.tai("audit", "verify", r.dir).fails(exitUsage, "no regular file")
	r.tai("audit", "show", "none").fails(exitUsage, "no such run", "hint: tai audit list")
}

// tools call and digest: native and bridged names, the digest of the program's own log, and what is refused.
func TestCLITools(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.addFake("fake", fakeStdio{})
	if err := os.WriteFile(filepath.Join(r.dir, "note.txt"), []byte("one needle\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.tai("tools", "call", "text_search", "pattern=needle").outHas("note.txt")
	r.tai("tools", "call", "mcp_fake_add", `{"a":1,"b":1}`).outHas("2")
	r.tai("tools", "call", "echo_nothing").fails(exitFailed, "echo_nothing")
	r.tai("tools", "call", "file_read").fails(exitFailed, "path")
	r.tai("tools", "call", "file_read", "path=../outside").fails(exitRefused, "outside the root")
	r.tai("tools", "call", "ask_user", "question=who?").fails(exitRefused)
	r.tai("tools", "call", "shell_run", "command=touch made", "--permission-mode", "read-only").fails(exitRefused, "read-only")
	if _, err := os.Stat(filepath.Join(r.dir, "made")); !os.IsNotExist(err) {
		t.Errorf("read-only made a file: %v", err)
	}
	digest := strings.TrimSpace(r.tai("tools", "digest", "mcp_fake_add", `{"b":2,"a":1}`).ok())
	if want, err := payloadDigest("mcp:fake/add", json.RawMessage(`{"a":1,"b":2}`)); err != nil || digest != want {
		t.Errorf("digest %s, want %s, %v", digest, want, err)
	}
	if same := strings.TrimSpace(r.tai("tools", "digest", "mcp:fake/add", `{"a":1,"b":2}`).ok()); same != digest {
		t.Errorf("by its real name: %s", same)
	}
	r.tai("mcp", "call", "fake", "add", "a=1", "b=2").ok()
	runs := cliJSON[struct{ Runs []auditRunInfo }](r.tai("audit", "list", "--json")).Runs
	found := slices.ContainsFunc(runs, func(a auditRunInfo) bool {
		return strings.Contains(r.tai("audit", "show", a.Run, "--json").ok(), digest)
	})
	if !found {
		t.Error("the digest is in no log")
	}
	r.tai("tools", "digest", "no_such", "{}").fails(exitFailed, "no such tool")
	r.tai("tools", "digest", "file_read", "[]").fails(exitUsage, "cannot be read", "one JSON object")
}

// mcp normalize: the document of the corpus, for another system too, changing nothing.
func TestCLINormalize(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	file := filepath.Join(r.dir, "mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"a":{"command":"npx","args":["-y","pkg"],"env":{"K":"${V}"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got := r.tai("mcp", "normalize", file, "--json", "--os", "windows")
	got.ok()
	if keys := cliKeys(t, json.RawMessage(got.out)); !slices.Equal(keys, []string{"servers", "notes", "warnings"}) {
		t.Errorf("keys %v", keys)
	}
	doc := cliJSON[struct{ Servers []serverEntry }](got)
	if len(doc.Servers) != 1 || doc.Servers[0].Env["K"] != "${V}" {
		t.Errorf("%+v", doc)
	}
	plain := r.tai("mcp", "normalize", file).ok()
	var e serverEntry
	if err := json.Unmarshal([]byte(plain), &e); err != nil || e.Command != "npx" {
		t.Errorf("%v: %s", err, plain)
	}
	named := cliJSON[struct{ Servers []serverEntry }](r.with(`{"command":"npx","args":["-y","pkg"]}`, "mcp", "normalize", "-", "--name", "mine", "--json"))
	if named.Servers[0].Name != "mine" {
		t.Errorf("%+v", named)
	}
	r.tai("mcp", "normalize", "none.json").fails(exitUsage, "no such file")
	r.with("{", "mcp", "normalize", "--json").failsJSON(exitUsage)
}

// F12, STD-12: a server's own requests are answered while a person's call runs.
func TestF12CLI(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	log := filepath.Join(r.dir, "log")
	ask := `{"jsonrpc":"2.0","id":"s-1","method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":"s-2","method":"roots/list"}` + "\n" + `{"jsonrpc":"2.0","id":"s-3","method":"sampling/createMessage","params":{}}` + "\n"
	r.addFake("fake", fakeStdio{Log: log, On: map[string][]fakeStep{"tools/call echo": {{Out: ask, Await: 3}, {Reply: `{"content":[{"type":"text","text":"after three answers"}]}`}}}})
	r.tai("mcp", "call", "fake", "echo").outHas("after three answers")
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"id":"s-1","result":{}`, `"id":"s-2","error":{"code":-32601`, `"id":"s-3","error":{"code":-32601`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no answer %s in\n%s", want, b)
		}
	}
}

// F03: a command that is not there fails at once with its name and where it was looked for; F04, STD-06: banners harm nothing;
// F07, STD-13: a server that dies takes its call along, and the next one starts it anew.
func TestF03F04F07CLI(t *testing.T) {
	r := newCLIRig(t)
	begin := time.Now()
	r.tai("mcp", "add", "--yes", "x", "--", "no-such-program-here").fails(exitFailed, "no-such-program-here", "PATH")
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	r.addFake("banner", fakeStdio{Start: []fakeStep{{Out: "Notes server 1.4 ready\n\n{\"level\":\"info\"}\n"}}})
	r.tai("mcp", "call", "banner", "add", "a=1", "b=1").outHas("2")
	r.tai("mcp", "call", "banner", "exit", "code=3").fails(exitFailed, "3", "fatal: told to exit")
	r.tai("mcp", "call", "banner", "add", "a=1", "b=1").outHas("2")
}

// A value on the command line is not stored, and not repeated.
func TestSecretOnCommandLine(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	for _, words := range [][]string{{"FOO", "planted-value"}, {"FOO=planted-value"}, {"FOO=", "planted-value"}} {
		run := r.tai(append([]string{"secret", "set"}, words...)...)
		run.fails(exitUsage, "never stands on the command line", "hint: tai secret set FOO ")
		run.hides("planted-value")
	}
	r.tai("secret", "list").outHas("no secrets are stored")
}

// Whoever lists, replaces or deletes a secret, or removes a server, is told what depends on it.
func TestSecretUsers(t *testing.T) {
	t.Parallel()
	r, web := newCLIRig(t), newFakeHTTP(t)
	r.with("planted-value-1", "secret", "set", "WEB_KEY", "--from", "-").outHas("WEB_KEY: stored")
	r.with("planted-value-2", "secret", "set", "WEB_KEY", "--from", "-").outHas("WEB_KEY: replaced")
	r.with("planted-value-3", "secret", "set", "OTHER", "--from", "-").ok()
	r.tai("mcp", "add", "--yes", "web", web.URL+"/mcp", "--header", "X-Key: ${WEB_KEY}").ok()
	moved := r.tai("mcp", "add", "--yes", "--move-secrets", "web2", web.URL+"/mcp", "--header", "Authorization: Bearer "+moveToken(7))
	moved.ok()
	moved.errHas("web2: a secret is in the vault as WEB2_TOKEN now")
	list := r.tai("secret", "list")
	if list.outHas("  used by web\n", "  used by web2\n"); strings.Count(list.out, "used by") != 2 {
		t.Errorf("%s", list.out)
	}
	r.tai("secret", "list", "--json").outHas(`"servers": []`)
	r.tai("secret", "delete", "WEB_KEY").errHas("WEB_KEY: still used by web;")
	removed := r.tai("mcp", "remove", "web2", "--yes")
	removed.ok()
	removed.errHas("the secret WEB2_TOKEN stays", "tai secret delete WEB2_TOKEN drops it")
	if quiet := r.tai("secret", "delete", "OTHER"); quiet.err != "" {
		t.Errorf("%s", quiet.err)
	}
}

// A data folder that cannot be made names the way to another one.
func TestVaultFolderClosed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() <= 0 {
		t.Skip("nothing is closed to root, and Windows has no such modes")
	}
	r := newCLIRig(t)
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	r.with("planted-value-1", "secret", "set", "X", "--from", "-", "--home", filepath.Join(closed, "home")).fails(exitFailed, "permission denied", "hint: tai must be able to", "--home or TAI_HOME")
}
