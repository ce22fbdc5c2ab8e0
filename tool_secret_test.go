package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// secretRig is a toolbox with the secret tools over a workspace.
type secretRig struct {
	*toolsBox
	root, home string
	typed      string // at the hidden prompt
	stored     []string
	changes    int
	locked     bool
}

func newSecretRig(t *testing.T, mode approvalMode) *secretRig {
	t.Helper()
	r := &secretRig{home: t.TempDir()}
	w, err := openWorkspace(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r.root = w.root
	d := secretDesk{
		vault: func(context.Context) (*vault, error) { return r.toolsBox.vault, nil }, quiet: func(context.Context, *vault) bool { return !r.locked },
		env: func(name string) (string, bool) {
			return map[string]string{"HERE": "val-of-env"}[name], name == "HERE"
		},
		hidden: func(_ context.Context, prompt string) (string, error) {
			if r.typed == "" {
				return "", errors.New("interrupted")
			}
			return r.typed, nil
		},
		store: func(ctx context.Context, name, value string) (string, string, error) {
			if value == "bad" {
				return "", "", &hintedError{errors.New("it is bad"), "take a good one"}
			}
			r.stored = append(r.stored, name+"="+value)
			return "stored", map[bool]string{true: "it is short"}[len(value) < 4], r.toolsBox.vault.putSecret(ctx, "", name, secret(value), nil)
		},
		changed: func() { r.changes++ }, guard: fileGuard{w, func() []string { return []string{r.home} }}, goos: runtime.GOOS,
	}
	r.toolsBox = newToolsBox(t, mode, nil, secretTools(d)...)
	return r
}

// A value comes from the person, a variable or a private file of the workspace; no answer and no error has it.
func TestSecretSet(t *testing.T) {
	t.Parallel()
	r := newSecretRig(t, modeAllow)
	r.typed = "val-typed"
	for name, text := range map[string]string{"key": "val-of-file\r\n", "loose": "val-loose", "big": strings.Repeat("v", secretMax+3), ".tai/x": "val-own"} {
		path := filepath.Join(r.root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chmod(filepath.Join(r.root, "loose"), 0o644), os.WriteFile(filepath.Join(r.home, "key"), []byte("val-home"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ from, stored string }{{"prompt", "A=val-typed"}, {"env:HERE", "A=val-of-env"}, {"file:key", "A=val-of-file"}, {"file:" + filepath.Join(r.root, "key"), "A=val-of-file"}} {
		r.stored = nil
		got := toolsRun(t, r.toolsBox, "secret_set", fmt.Sprintf(`{"name":"A","from":%q}`, tc.from))
		if got.IsError || strings.Join(r.stored, " ") != tc.stored || got.Text != "A: stored; refer to it as ${A}" || strings.Contains(got.Text+string(got.Structured), "val-") {
			t.Errorf("%s: %+v, stored %q", tc.from, got, r.stored)
		}
	}
	r.typed = "abc"
	if got := toolsRun(t, r.toolsBox, "secret_set", `{"name":"A","from":"prompt"}`); got.Text != "A: stored; refer to it as ${A}\nwarning: it is short" || string(got.Structured) != `{"name":"A","state":"stored","warning":"it is short"}` {
		t.Errorf("%+v", got)
	}
	r.stored, r.typed = nil, "bad"
	if got := toolsRun(t, r.toolsBox, "secret_set", `{"name":"A","from":"prompt"}`); !got.IsError || got.Hint != "take a good one" {
		t.Errorf("a value that cannot be kept: %+v", got)
	}
	r.typed = ""
	for args, want := range map[string]string{
		`{"name":"A"}`: "from", `{"from":"prompt"}`: "name", `{"name":"A","from":""}`: "from", `{"name":"A","from":7}`: "from", `{"name":"1A","from":"env:HERE"}`: `property "name"`, `{"name":"A","from":"env:HERE","value":"x"}`: "value",
		`{"name":"A","from":"env:GONE"}`: `variable "GONE" is not set`, `{"name":"A","from":"env:"}`: "expected prompt, env:NAME or file:PATH", `{"name":"A","from":"file:"}`: "expected prompt", `{"name":"A","from":"prompt"}`: "interrupted",
		`{"name":"A","from":"file:none"}`: "no such file", `{"name":"A","from":"file:."}`: "is a folder", `{"name":"A","from":"file:big"}`: "too many bytes", `{"name":"A","from":"file:.tai/x"}`: "tai's own files",
	} {
		if got := toolsRun(t, r.toolsBox, "secret_set", args); !got.IsError || !strings.Contains(got.Text, want) {
			t.Errorf("%s: %+v, want %q", args, got, want)
		}
	}
	if got := toolsRun(t, r.toolsBox, "secret_set", `{"name":"A","from":"sk-the-value-itself"}`); !got.IsError || strings.Contains(got.Text, "itself") {
		t.Errorf("a value in the place of its source: %+v", got)
	}
	if got := toolsRun(t, r.toolsBox, "secret_set", `{"name":"A","from":"file:loose"}`); runtime.GOOS != "windows" && (!got.IsError || !strings.Contains(got.Text, "can be read by others")) {
		t.Errorf("a file for all: %+v", got)
	}
	if len(r.stored) != 0 {
		t.Errorf("stored %q", r.stored)
	}
}

// The policy asks; a file outside the root is its matter, one of tai's own is refused in every mode; the prompt needs a person.
func TestSecretSetPolicy(t *testing.T) {
	t.Parallel()
	outer := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(outer, []byte("val-outer"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		mode         approvalMode
		origin, from string
		rule, want   string
	}{
		{modePrompt, "cli", "env:HERE", ruleNobody, ""}, {modeReadOnly, "cli", "env:HERE", "mode read-only", ""}, {modeAllow, "cli", "env:HERE", "", "stored"},
		{modeAllow, "cli", "file:" + outer, ruleOutside, ""}, {modeDanger, "cli", "file:" + outer, "", "stored"}, {modeDanger, "cli", "HOME", "", "tai's own files"},
		{modeDanger, "mcp", "prompt", toolRulePerson, ""}, {modeDanger, "http", "prompt", toolRulePerson, ""}, {modeDanger, "http", "env:HERE", "", "stored"},
	} {
		r := newSecretRig(t, tc.mode)
		if err := os.WriteFile(filepath.Join(r.home, "key"), []byte("val-home"), 0o600); err != nil {
			t.Fatal(err)
		}
		if tc.from == "HOME" {
			tc.from = "file:" + filepath.Join(r.home, "key")
		}
		got, err := r.dispatch(t.Context(), toolCall{Name: "secret_set", Args: json.RawMessage(fmt.Sprintf(`{"name":"A","from":%q}`, tc.from)), Origin: tc.origin})
		if err != nil || got.Rule != tc.rule || !strings.Contains(got.Text, tc.want) || (len(r.stored) > 0) != (tc.want == "stored") {
			t.Errorf("%s %s %s: %+v, %v", tc.mode, tc.origin, tc.from, got, err)
		}
	}
	d := secretDesk{}
	for _, tl := range secretTools(d) {
		if tl.Name == "secret_set" && (!tl.unattended(toolCall{Args: json.RawMessage(`{"from":"prompt"}`)}) || tl.unattended(toolCall{Args: json.RawMessage(`{"from":"env:A"}`)})) {
			t.Error("a run without a terminal has a prompt, or none needs one")
		}
	}
}

// Names, times in UTC, the servers that refer to each and the models whose key it is; a deletion says who is left without.
func TestSecretListAndDelete(t *testing.T) {
	t.Parallel()
	r := newSecretRig(t, modeAllow)
	if got := toolsRun(t, r.toolsBox, "secret_list", `{}`); got.Text != "no secrets are stored\n" || string(got.Structured) != `{"secrets":[],"left_out":0}` {
		t.Errorf("none: %+v", got)
	}
	v := r.toolsBox.vault
	for _, name := range []string{"ONE", "TWO"} {
		if err := v.putSecret(t.Context(), "", name, "val-"+secret(name), nil); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(
		v.putServer(t.Context(), serverEntry{Name: "files", Transport: "stdio", Command: "x", Env: map[string]string{"K": "${ONE}"}, Source: "explicit"}, profileDefault, true, nil, mcpMaxServers),
		v.putModel(t.Context(), storedModel{Name: "big", Provider: "openai", Model: "m", Key: "secret:ONE"}), v.putModel(t.Context(), storedModel{Name: "env", Provider: "openai", Model: "m", Key: "env:TWO"}))
	if err != nil {
		t.Fatal(err)
	}
	got := toolsRun(t, r.toolsBox, "secret_list", `{}`)
	var doc struct {
		Secrets []struct {
			Name, Updated   string
			Servers, Models []string
		}
	}
	if err := json.Unmarshal(got.Structured, &doc); err != nil || len(doc.Secrets) != 2 || fmt.Sprint(doc.Secrets[0].Servers, doc.Secrets[0].Models, doc.Secrets[1].Servers, doc.Secrets[1].Models) != "[files] [big] [] []" {
		t.Errorf("%+v, %v", doc, err)
	}
	at, err := time.Parse(time.RFC3339, doc.Secrets[0].Updated)
	want := fmt.Sprintf("ONE  set %s  used by files, big (model)\nTWO  set ", at.Format(time.RFC3339))
	if err != nil || at.Location() != time.UTC || !strings.HasPrefix(got.Text, want) || strings.Contains(got.Text+string(got.Structured), "val-") {
		t.Errorf("%+v, want %q, %v", got, want, err)
	}
	r.locked = true
	if got := toolsRun(t, r.toolsBox, "secret_list", `{}`); !strings.Contains(got.Text, "used by big (model)\n") || !strings.Contains(got.Text, "asks for its passphrase") || strings.Contains(string(got.Structured), "servers") {
		t.Errorf("locked: %+v", got)
	}
	gone := toolsRun(t, r.toolsBox, "secret_delete", `{"name":"ONE"}`)
	if gone.IsError || !strings.HasPrefix(gone.Text, "ONE: deleted\nwarning: still used by files, big (model);") || r.changes != 1 {
		t.Errorf("%+v, %d changes", gone, r.changes)
	}
	if got := toolsRun(t, r.toolsBox, "secret_delete", `{"name":"TWO"}`); got.Text != "TWO: deleted" || string(got.Structured) != `{"name":"TWO","state":"deleted"}` {
		t.Errorf("%+v", got)
	}
	for args, want := range map[string]string{`{"name":"ONE"}`: `property "name": there is no secret "ONE"`, `{}`: "name", `{"name":""}`: "name", `{"name":"A","all":true}`: "all"} {
		if got := toolsRun(t, r.toolsBox, "secret_delete", args); !got.IsError || !strings.Contains(got.Text, want) {
			t.Errorf("%s: %+v, want %q", args, got, want)
		}
	}
	if got := toolsRun(t, r.toolsBox, "secret_list", `{"name":"A"}`); !got.IsError {
		t.Errorf("an argument that does not exist: %+v", got)
	}
}

// Over a real run: what was set is masked from the next text on, the command lists what the tool lists, and the log has no value.
func TestCLISecretTools(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.env = []string{"PLAIN=val-not-secret-by-name"}
	r.tai("tools", "call", "secret_set", "name=KEY", "from=prompt").fails(exitRefused, "no person sits here")
	r.tai("tools", "call", "secret_set", "name=KEY", "from=env:PLAIN").outHas("KEY: stored; refer to it as ${KEY}")
	r.tai("tools", "call", "secret_set", "name=KEY", "from=env:PLAIN").outHas("KEY: replaced")
	if got := r.tai("tools", "call", "shell_run", "command=echo val-not-secret-by-name").ok(); !strings.Contains(got, "[secret:KEY]") {
		t.Errorf("%q", got)
	}
	r.tai("model", "set", "mine", "--provider", "openai", "--key", "secret:KEY").ok()
	for name, words := range map[string]string{"usual": "", "mine-2": "--key env:KEY", "else": "--base-url http://127.0.0.1:1/v1"} { // of these only the first takes the provider's usual secret
		r.tai(append([]string{"model", "set", name, "--provider", "anthropic", "--model", "m"}, strings.Fields(words)...)...).ok()
	}
	r.env = append(r.env, "USUAL=value-of-the-usual-one")
	r.tai("secret", "set", "ANTHROPIC_API_KEY", "--from", "env:USUAL").ok()
	r.tai("secret", "list").outHas("ANTHROPIC_API_KEY  set ", "Z  used by usual (model)\n")
	r.tai("secret", "delete", "ANTHROPIC_API_KEY").errHas("still used by usual (model)")
	line := r.tai("secret", "list").ok()
	if got := r.tai("tools", "call", "secret_list").ok(); got != line || !strings.Contains(line, "Z  used by mine (model)\n") {
		t.Errorf("the tool says %q, the command %q", got, line)
	}
	if doc := cliJSON[struct{ Secrets []secretJSON }](r.tai("secret", "list", "--json")); len(doc.Secrets) != 1 || len(doc.Secrets[0].Models) != 1 || doc.Secrets[0].Updated.Location() != time.UTC {
		t.Errorf("%+v", doc)
	}
	r.tai("secret", "delete", "KEY").errHas("still used by mine (model)")
	logs, err := filepath.Glob(filepath.Join(r.home, "runs", "*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%q, %v", logs, err)
	}
	for _, name := range logs {
		if b, err := os.ReadFile(name); err != nil || strings.Contains(string(b), "val-not") {
			t.Errorf("%s: %v: %s", name, err, b)
		}
	}
}
