package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// docShape is a shape of JSON as mcp.md writes it: {"key","optional"?,"inner":{…},"list":[…],"any":*}. A key without more is a
// text, a number or a boolean.
type docShape struct {
	any, list bool
	keys      []string
	optional  map[string]bool
	inner     map[string]*docShape // of keys; of a list its item under ""
}

// docParser reads shapes.
type docParser struct {
	s string
	i int
}

func parseShape(s string) (*docShape, error) {
	p := &docParser{s: s}
	out, err := p.value()
	if err == nil && p.i != len(s) {
		err = fmt.Errorf("shape %q: rest %q", s, s[p.i:])
	}
	return out, err
}

func (p *docParser) take(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *docParser) value() (*docShape, error) {
	out := &docShape{optional: map[string]bool{}, inner: map[string]*docShape{}}
	switch {
	case p.take('*'):
		out.any = true
		return out, nil
	case p.take('['):
		out.list = true
		if p.take(']') {
			out.inner[""] = &docShape{}
			return out, nil
		}
		item, err := p.value()
		out.inner[""] = item
		if err == nil && !p.take(']') {
			err = fmt.Errorf("shape %q: ] is missing at %d", p.s, p.i)
		}
		return out, err
	case !p.take('{'):
		return nil, fmt.Errorf("shape %q: { is missing at %d", p.s, p.i)
	}
	for {
		end := strings.IndexByte(p.s[min(p.i+1, len(p.s)):], '"')
		if !p.take('"') || end < 0 {
			return nil, fmt.Errorf("shape %q: a key is missing at %d", p.s, p.i)
		}
		key := p.s[p.i : p.i+end]
		p.i += end + 1
		out.keys = append(out.keys, key)
		out.optional[key] = p.take('?')
		if p.take(':') {
			inner, err := p.value()
			if err != nil {
				return nil, err
			}
			out.inner[key] = inner
		}
		if p.take('}') {
			return out, nil
		}
		if !p.take(',') {
			return nil, fmt.Errorf("shape %q: , is missing at %d", p.s, p.i)
		}
	}
}

// check holds a value against the shape and notes in seen each key that was there.
func (s *docShape) check(at string, v any, seen map[string]bool) error {
	switch v := v.(type) {
	case map[string]any:
		if s.any {
			return nil
		}
		if s.list || s.keys == nil {
			return fmt.Errorf("%s is an object, mcp.md says otherwise", at)
		}
		for _, key := range s.keys {
			if _, ok := v[key]; !ok && !s.optional[key] {
				return fmt.Errorf("%s lacks %q, which mcp.md has", at, key)
			}
		}
		for key, value := range v {
			if !slices.Contains(s.keys, key) {
				return fmt.Errorf("%s has %q, which mcp.md lacks", at, key)
			}
			seen[at+"."+key] = true
			inner := s.inner[key]
			if inner == nil {
				inner = &docShape{}
			}
			if err := inner.check(at+"."+key, value, seen); err != nil {
				return err
			}
		}
	case []any:
		if s.any {
			return nil
		}
		if !s.list {
			return fmt.Errorf("%s is a list, mcp.md says otherwise", at)
		}
		for _, item := range v {
			if err := s.inner[""].check(at+"[]", item, seen); err != nil {
				return err
			}
		}
	default:
		if s.list || s.keys != nil {
			return fmt.Errorf("%s is %v, mcp.md says otherwise", at, v)
		}
	}
	return nil
}

// all gives every key of the shape as check notes it.
func (s *docShape) all(at string) []string {
	if s == nil || s.any {
		return nil
	}
	if s.list {
		return s.inner[""].all(at + "[]")
	}
	var out []string
	for _, key := range s.keys {
		out = append(append(out, at+"."+key), s.inner[key].all(at+"."+key)...)
	}
	return out
}

// docRig runs tai's commands over one home.
type docRig struct {
	t         *testing.T
	home, dir string
	env       map[string]string
}

func (r *docRig) run(stdin string, words ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	var environ []string
	for k, v := range r.env {
		environ = append(environ, k+"="+v)
	}
	code = run(r.t.Context(), words, outside{
		Getenv: func(k string) string { return r.env[k] }, Environ: environ, Stdin: io.Reader(strings.NewReader(stdin)), Stdout: &out, Stderr: &errs,
		GOOS: runtime.GOOS, Now: time.Now, Dir: r.dir,
	})
	return code, out.String(), errs.String()
}

// TestDocJSON runs every command with --json and holds what it prints to the shapes of mcp.md: no key that is not there, none
// missing that is not marked, and each marked one seen at least once.
func TestDocJSON(t *testing.T) {
	t.Parallel()
	page := readDoc(t)
	shapes := map[string]*docShape{}
	for _, row := range page.table(t, "JSON", "Command") {
		shape, err := parseShape(row[1])
		if err != nil {
			t.Fatal(err)
		}
		shapes[row[0]] = shape
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	r := &docRig{t: t, home: home, dir: t.TempDir(), env: map[string]string{"TAI_HOME": home, "DOC_KEY": "a-value-kept-secret", "PATH": os.Getenv("PATH"), "HOME": home, "XDG_CONFIG_HOME": t.TempDir()}}
	seen, run := map[string]map[string]bool{}, map[string]bool{}
	do := func(want int, stdin string, words ...string) string {
		t.Helper()
		code, out, errs := r.run(stdin, append([]string{"--json"}, words...)...)
		cmd, _ := commandFor(words, commands())
		name := "tai " + cmd.Path
		run[name] = true
		if slices.Contains(words, "--all") {
			name += " --all"
			run[name] = true
		}
		var doc any
		if err := json.Unmarshal([]byte(out), &doc); err != nil || code != want {
			t.Fatalf("tai --json %q: exit %d, want %d: %v\n%s%s", words, code, want, err, out, errs)
		}
		if m, ok := doc.(map[string]any); ok && m["error"] != nil {
			name = "any that fails"
		}
		if shapes[name] == nil {
			t.Fatalf("mcp.md has no document for %s", name)
		}
		if seen[name] == nil {
			seen[name] = map[string]bool{}
		}
		if err := shapes[name].check(name, doc, seen[name]); err != nil {
			t.Errorf("tai --json %q: %v\n%s", words, err, out)
		}
		return out
	}
	docServers(t, r, do, exe)
	do(exitUsage, "", "mcp", "serve", "--permission-mode", "workspace-write")
	docVault(t, r, do)
	docModels(t, r, do)

	for _, c := range commands() {
		if name := "tai " + c.Path; c.Path != "help" && !run[name] {
			t.Errorf("%s was not run with --json", name)
		}
	}
	for name, shape := range shapes {
		if name != "any that fails" && !run[name] {
			t.Errorf("mcp.md has a document of %q, the program has no such command", name)
		}
		for _, key := range shape.all(name) {
			if !seen[name][key] {
				t.Errorf("mcp.md has %s, which no run printed", key)
			}
		}
	}
}

// docServers runs the commands about MCP servers, with a server that is changed underway.
func docServers(t *testing.T, r *docRig, do func(int, string, ...string) string, exe string) {
	t.Helper()
	web := newFakeHTTP(t)
	do(0, "", "mcp", "add", "fake", "--yes", "--env", "TAI_TEST_FAKE=stdio", "--env", "GORACE=atexit_sleep_ms=0", "--env", "TAI_FAKE_STDIO=${SPEC:-}", "--", exe, "-x")
	do(0, "", "mcp", "add", "web", web.URL, "--yes", "--header", "X-Plain: 1")
	do(0, "", "mcp", "list")
	do(0, "", "mcp", "tools", "fake")
	do(0, "", "mcp", "tools", "web")
	do(0, "", "mcp", "call", "fake", "echo", "a=b")
	do(0, "", "mcp", "call", "fake", "structured")
	do(0, "", "mcp", "check", "fake")
	r.env["SPEC"] = `{"Tools":"[{\"name\":\"echo\",\"title\":\"Echo\",\"description\":\"Other\",\"inputSchema\":{\"type\":\"object\"},\"annotations\":{\"readOnlyHint\":true}},{\"name\":\"more\",\"description\":\"\"}]"}`
	do(3, "", "mcp", "check", "fake")
	do(0, "", "mcp", "tools", "fake")
	do(0, "", "mcp", "list")
	do(3, "", "mcp", "call", "fake", "echo")
	do(0, "", "mcp", "add", "fake", "--yes")
	do(0, "", "mcp", "grant", "fake", "echo", "more", "--yes")
	do(0, "", "tools", "list")
	do(0, "", "tools", "search", "echo")
	do(0, "", "tools", "call", "mcp_list")
	do(0, "", "tools", "digest", "file_read", `{"path":"x"}`)
	docApprovals(r, do)
	docTrust(do)
	docImport(t, r, do)
	do(0, "", "mcp", "disable", "web")
	do(0, "", "mcp", "enable", "web")
	do(0, "", "mcp", "remove", "web", "--yes")
	locked := newFakeOAuth(t)
	r.env["BROWSER"], r.env["TAI_TEST_FAKE"] = quoteWord(exe), "browser"
	do(4, "", "mcp", "add", "locked", locked.URL+"/mcp", "--yes")
	do(0, "", "mcp", "login", "locked", "--yes")
	do(0, "", "mcp", "list")
	locked.mu.Lock()
	locked.Tools = `[{"name":"echo","description":"Other.","inputSchema":{"type":"object"}},{"name":"bad","inputSchema":7}]`
	locked.mu.Unlock()
	do(0, "", "mcp", "login", "locked", "--yes")
	do(0, "", "mcp", "logout", "locked")
	do(0, `{"mcpServers":{"a":{"command":"x","args":["y"],"env":{"A":"b"},"cwd":"/tmp","enabled_tools":["t"],"disabled_tools":["u"],"disabled":true},"b":{"url":"http://127.0.0.1/","headers":{"X":"y"}}}}`, "mcp", "normalize")
	do(2, "no config", "mcp", "normalize")
}

// docApprovals runs the commands about presets, of which each has a field that no other has.
func docApprovals(r *docRig, do func(int, string, ...string) string) {
	do(0, "", "approval", "grant", "mcp:fake/echo", "--arg", "text=a*", "--yes")
	do(0, "", "approval", "grant", "shell_run", "--command", "go test", "--yes")
	for _, words := range [][]string{{"--arg", "command=x"}, {"--command", "git push"}} {
		do(0, "", append([]string{"approval", "deny", "shell_run"}, words...)...)
	}
	var doc struct{ Presets []preset }
	if err := json.Unmarshal([]byte(do(0, "", "approval", "list")), &doc); err != nil || len(doc.Presets) != 4 {
		r.t.Fatalf("%+v, %v", doc, err)
	}
	for _, ps := range doc.Presets {
		do(0, "", "approval", "revoke", ps.ID, "--yes")
	}
	do(0, "", "approval", "digest", "file_read", `{"path":"x"}`)
}

// docTrust runs the commands about trust and about other apps.
func docTrust(do func(int, string, ...string) string) {
	do(0, "", "mcp", "trust", "allow", "--server", "fake", "--tools", "echo", "--note", "why", "--yes")
	do(0, "", "mcp", "trust", "deny", "--server", "fake", "--tools", "more")
	do(3, "", "mcp", "call", "fake", "more")
	do(0, "", "mcp", "trust", "list")
	do(0, "", "mcp", "trust", "inspect", "--server", "fake")
	do(0, "", "mcp", "trust", "audit")
	do(0, "", "mcp", "trust", "revoke", "--server", "fake", "--yes")
	do(0, "", "mcp", "config")
	do(0, "", "mcp", "config", "zed", "--http")
}

// docImport runs the import of servers of all states, from files of all states.
func docImport(t *testing.T, r *docRig, do func(int, string, ...string) string) {
	t.Helper()
	write := func(name, text string) {
		name = filepath.Join(r.home, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.env["USERPROFILE"] = r.home
	write(".cursor/mcp.json", `{"mcpServers":{"off":{"command":"sudo","args":["x"],"env":{"A_TOKEN":"made-up-word-7f3a9c"},"cwd":"/tmp","disabled":true,"timeout":1,"args":["x"]},"bad":{"type":"sse"},
		"net":{"url":"https://h.test/sse","headers":{"X":"y"}},"fake":{"command":"other"}}}`)
	write(".claude.json", `{"mcpServers":{},"projects":{"/p":{"mcpServers":{"p":{"command":"p"}}}}}`)
	write(".gemini/settings.json", "{")
	write("elsewhere.json", "“")
	if err := os.MkdirAll(filepath.Join(r.home, ".lmstudio"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(r.home, "elsewhere.json"), filepath.Join(r.home, ".lmstudio", "mcp.json")); err != nil {
		t.Fatal(err)
	}
	write("elsewhere.json", `{“mcpServers”:{"l":{"command":"l"}}}`)
	do(0, "", "mcp", "import", "--yes", "--move-secrets", "--server", "off", "--server", "net", "--server", "p")
	do(0, "", "mcp", "import", "--dry-run")
	for _, name := range []string{"off", "net", "p"} {
		do(0, "", "mcp", "remove", name, "--yes")
	}
}

// docModels runs the commands about models, with an endpoint that calls its tool only the first time.
func docModels(t *testing.T, r *docRig, do func(int, string, ...string) string) {
	t.Helper()
	ready := chatStream(1<<16, chatText("ready"), chatStop("stop"), chatUses, "[DONE]")
	model := newFakeModel(t, ready, chatStream(1<<16, chatCall(0, "c", "add", `{"a":2,"b":3}`), chatStop("tool_calls"), "[DONE]"), ready)
	r.env["TAI_LOCAL_MODELS"] = "off"
	do(0, "", "model", "list")
	do(2, "", "model", "test")
	do(0, "", "model", "set", "here", "--base-url", model.URL+"/v1", "--model", "m", "--context", "1000", "--max-tokens", "500")
	do(0, "", "model", "set", "keyless", "--provider", "openai", "--key", "env:NOT_SET")
	do(0, "", "model", "use", "here")
	do(0, "", "model", "list")
	do(0, "", "model", "test")
	do(0, "", "model", "test", "here")
	do(2, "", "model", "test", "keyless")
	do(0, "", "model", "use", "--none")
	do(0, "", "model", "remove", "here")
	do(1, "", "model", "remove", "here")
}

// docVault runs the commands about what the vault keeps and what the run log holds.
func docVault(t *testing.T, r *docRig, do func(int, string, ...string) string) {
	t.Helper()
	do(0, "", "version")
	do(0, "", "secret", "set", "DOC", "--from", "env:DOC_KEY")
	do(0, "", "secret", "list")
	do(0, "", "secret", "delete", "DOC")
	do(0, "", "profile", "create", "work")
	do(0, "", "profile", "use", "work")
	do(0, "", "profile", "list")
	do(0, "", "profile", "use", "default")
	do(0, "", "profile", "delete", "work")
	v, err := openVault(t.Context(), r.home, vaultWrite, time.Now, vaultKeys{Dir: filepath.Join(configFolder(outside{Getenv: func(k string) string { return r.env[k] }, GOOS: runtime.GOOS}), "keys")})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := v.putRecord(t.Context(), "result", "test", "", []byte("invoice of spring"))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.close(); err != nil {
		t.Fatal(err)
	}
	docSessions(t, r, do)
	docMemories(do)
	do(0, "", "record", "list")
	do(0, "", "record", "show", rec.ID)
	do(0, "", "record", "search", "invoice")
	do(0, "", "record", "delete", rec.ID)
	logs, err := filepath.Glob(filepath.Join(r.home, "runs", "*"+auditExtension))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no run logs: %v", err)
	}
	do(0, "", "audit", "show", logs[0])
	do(0, "", "audit", "report", logs[0], "-o", "report.html")
	do(0, "", "audit", "verify", logs[0])
	b, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cut": string(b[:len(b)-3]), "edited": strings.Replace(string(b), "run_started", "run_Started", 1), "empty": ""} {
		file := filepath.Join(r.home, "runs", name+auditExtension)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		do(map[string]int{"cut": 1, "edited": 1, "empty": 2}[name], "", "audit", "verify", file)
	}
	elsewhere := auditTestLog(t) // a run that this vault has no head of
	auditTestRecord(t, elsewhere, auditEvent{Event: auditCallRequested})
	do(0, "", "audit", "verify", elsewhere.path())
	if b, err = os.ReadFile(elsewhere.path()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.home, "runs", filepath.Base(elsewhere.path())), b, 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere.close()
	do(1, "", "audit", "verify", "--all")
	do(0, "", "audit", "head", strings.TrimSuffix(filepath.Base(logs[0]), auditExtension))
	do(0, "", "audit", "list")
	do(0, "", "vault", "backup", "copy.db")
	if err := os.WriteFile(filepath.Join(r.home, vaultTemp+"1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	do(1, "", "vault", "check")
	do(0, "", "vault", "status")
	do(0, "", "vault", "rekey")
	r.env["TAI_PASSPHRASE"] = "a-passphrase-kept"
	do(0, "", "vault", "seal", "--passphrase")
	do(0, "", "vault", "status")
	do(0, "", "vault", "seal", "--key-file")
	do(0, "", "vault", "unseal", "--yes")
	witness, err := filepath.Glob(filepath.Join(r.env["XDG_CONFIG_HOME"], "tai", "keys", "*.off"))
	if err != nil || len(witness) != 1 {
		t.Fatalf("%q, %v", witness, err)
	}
	if err := os.Remove(witness[0]); err != nil {
		t.Fatal(err)
	}
	do(0, "", "vault", "status")
	do(0, "", "vault", "seal")
	do(0, "", "vault", "seal", "--passphrase")
	delete(r.env, "TAI_PASSPHRASE") // forgotten
	do(0, "", "vault", "seal", "--discard", "--yes")
	do(0, "", "mcp", "list")
}

// docSessions runs the commands about sessions over one with every kind of row.
func docSessions(t *testing.T, r *docRig, do func(int, string, ...string) string) {
	t.Helper()
	v, err := openVault(t.Context(), r.home, vaultWrite, time.Now, vaultKeys{Dir: filepath.Join(configFolder(outside{Getenv: func(k string) string { return r.env[k] }, GOOS: runtime.GOOS}), "keys")})
	if err != nil {
		t.Fatal(err)
	}
	id, err := v.createSession(t.Context(), sessionInfo{Profile: profileDefault, Root: r.dir, Title: "tea"})
	if err != nil {
		t.Fatal(err)
	}
	err = v.appendMessages(t.Context(), id, []storedMessage{{Role: "user", Content: "tea?"}, {Role: "assistant", ToolCalls: json.RawMessage(`[{"id":"c","name":"n","args":"{}"}]`)},
		{Role: "tool", ToolCallID: "c", Content: "no", Meta: json.RawMessage(`{"is_error":true}`)}, {Role: roleCompact, Content: "s", Meta: json.RawMessage(`{"compaction":{"keep_from":2,"clip":9,"by":"model","tokens":5}}`)}})
	below, childErr := v.createSession(t.Context(), sessionInfo{Profile: profileDefault, Parent: id, Title: "milk"})
	if err := cmp.Or(err, childErr, v.putUsage(t.Context(), usageRow{Session: id, Model: "m", Input: 3}), v.close()); err != nil {
		t.Fatal(err)
	}
	do(0, "", "usage", "--by", "session")
	do(0, "", "session", "list")
	for _, one := range []string{id, below} {
		do(0, "", "session", "show", one)
		do(0, "", "session", "export", one)
	}
	do(0, "", "session", "delete", id)
}

// docMemories runs the commands about memories, and those that add up what was used.
func docMemories(do func(int, string, ...string) string) {
	for _, text := range []string{"make", "just"} {
		do(0, "", "tools", "call", "memory_save", `{"text":"`+text+`","key":"build","tags":["go"]}`)
	}
	do(0, "", "memory", "save", "the garden has a gate", "--key", "gate", "--tag", "garden")
	do(0, "", "memory", "save", "just as before", "--key", "build", "--tag", "go")
	do(0, "", "memory", "list")
	do(0, "", "memory", "search", "just")
	do(0, "", "memory", "show", "build")
	do(0, "", "memory", "delete", "build")
	do(1, "", "memory", "delete", "build")
	for _, by := range []string{"tool", "session"} {
		do(0, "", "usage", "--by", by, "--since", "1h")
	}
}

// TestDocEvents holds the lines of a turn with --json to mcp.md.
func TestDocEvents(t *testing.T) {
	shapes := map[string]*docShape{}
	for _, row := range readDoc(t).table(t, "JSON", "Event") {
		shape, err := parseShape(row[1])
		if err != nil {
			t.Fatal(err)
		}
		shapes[row[0]] = shape
	}
	model := newFakeModel(t,
		chatStream(1<<16, chatCall(0, "c1", "shell_run", `{"command":"rm x"}`), chatStop("tool_calls"), "[DONE]"),
		chatStream(1<<16, chatText("done"), chatStop("stop"), "[DONE]"))
	home := t.TempDir()
	r := &docRig{t: t, home: home, dir: t.TempDir(), env: map[string]string{"TAI_HOME": home, "TAI_BASE_URL": model.URL + "/v1", "TAI_MODEL": "m", "HOME": home, "XDG_CONFIG_HOME": t.TempDir()}}
	code, out, errs := r.run("", "--json", "do it")
	if code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	model.mu.Lock()
	model.answers = []func(http.ResponseWriter){chatStream(1<<16, chatCall(0, "c1", "shell_run", `{"command":"rm x"}`), chatStop("tool_calls"), "[DONE]")}
	model.mu.Unlock()
	code, failed, errs := r.run("", "--json", "--max-steps", "1", "do it")
	if code != exitRefused {
		t.Fatalf("exit %d: %s%s", code, failed, errs)
	}
	out += failed
	var notice bytes.Buffer
	var noMask *redactor
	sink := &jsonSink{out: &notice, redact: noMask.text, mask: noMask.stream()}
	sink.notice("x")
	sink.toolFinished(chatToolCall{ID: "c", Name: "n"}, toolResult{Text: "x", Notice: "y"}, 0)
	seen := map[string]map[string]bool{}
	for line := range strings.Lines(out + notice.String()) {
		var doc map[string]any
		if err := json.Unmarshal([]byte(line), &doc); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint(doc["event"])
		if shapes[name] == nil {
			t.Fatalf("mcp.md has no event %s", name)
		}
		if seen[name] == nil {
			seen[name] = map[string]bool{}
		}
		if err := shapes[name].check(name, doc, seen[name]); err != nil {
			t.Error(err)
		}
	}
	for name, shape := range shapes {
		for _, key := range shape.all(name) {
			if !seen[name][key] {
				t.Errorf("mcp.md has %s, which no run printed", key)
			}
		}
	}
}
