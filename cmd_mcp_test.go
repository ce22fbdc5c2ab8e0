package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// cliServers is tai mcp list --json.
func (r *cliRig) servers(words ...string) []serverSummary {
	r.t.Helper()
	list := r.tai(append([]string{"mcp", "list", "--json"}, words...)...)
	list.ok()
	return cliJSON[struct{ Servers []serverSummary }](list).Servers
}

// fakeConfig is the fake server as an entry of a pasted config, with further members.
func fakeConfig(t testing.TB, more string) string {
	t.Helper()
	e := stdioEntry(t, "x", fakeStdio{})
	b, err := json.Marshal(map[string]any{"command": e.Command, "env": e.Env})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(b), "}") + more + "}"
}

// Every form of SOURCE brings a real server in, and a call through it works.
func TestCLIAddForms(t *testing.T) {
	t.Parallel()
	web := newFakeHTTP(t)
	config := `{"mcpServers":{"pasted":` + fakeConfig(t, "") + `}}`
	e := stdioEntry(t, "x", fakeStdio{})
	toml := fmt.Sprintf("[mcp_servers.pasted]\ncommand = %q\nenv = { TAI_TEST_FAKE = \"stdio\", TAI_FAKE_STDIO = '%s' }\n", e.Command, e.Env["TAI_FAKE_STDIO"])
	for _, tc := range []struct {
		name  string
		words []string // after mcp add --yes
		in    string
		file  string // written to paste.conf
		want  string // the server's name
	}{
		{"JSON", []string{config}, "", "", "pasted"},
		{"JSON, other name", []string{config, "--name", "mine"}, "", "", "mine"},
		{"a bare entry with a name", []string{fakeConfig(t, ""), "--name=mine"}, "", "", "mine"},
		{"TOML", []string{toml}, "", "", "pasted"},
		{"file", []string{"FILE"}, "", config, "pasted"},
		{"TOML file", []string{"FILE"}, "", toml, "pasted"},
		{"standard input", []string{"-"}, config, "", "pasted"},
		{"URL", []string{web.URL + "/mcp", "--name", "web"}, "", "", "web"},
		{"name and URL", []string{"web", web.URL + "/mcp", "--header", "X-Team: blue"}, "", "", "web"},
		{"command with --name", []string{"--name", "cmd", "--env", "TAI_TEST_FAKE=stdio", "--", e.Command, "-x", "--yes"}, "", "", "cmd"},
		{"name and command", []string{"cmd", "--env", "TAI_TEST_FAKE=stdio", "--", e.Command}, "", "", "cmd"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newCLIRig(t)
			file := filepath.Join(r.dir, "paste.conf")
			if err := os.WriteFile(file, []byte(tc.file), 0o600); err != nil {
				t.Fatal(err)
			}
			words := []string{"mcp", "add", "--yes"}
			for _, w := range tc.words {
				words = append(words, strings.ReplaceAll(w, "FILE", file))
			}
			got := r.with(tc.in, words...)
			got.ok()
			got.outHas(tc.want+": enabled for profile default, ", "  echo  ")
			if tc.want == "web" {
				got.outHas("1 tool\n")
			} else {
				got.outHas("13 tools\n")
			}
			if list := r.servers(); len(list) != 1 || list[0].Name != tc.want || list[0].State != statusEnabled {
				t.Errorf("list: %+v", list)
			}
			r.tai("mcp", "call", tc.want, "echo", "a=b").outHas(`"a":"b"`)
			if requests := web.requests(methodToolsList); tc.words[0] == "web" && requests[len(requests)-1].Header.Get("X-Team") != "blue" {
				t.Error("--header was not sent")
			}
			if verbs := web.verbs(); tc.want == "web" && !slices.Equal(verbs, []string{http.MethodPost}) { // W37, W38: the seed's "never GET or DELETE"
				t.Errorf("W37, W38: verbs %v", verbs)
			}
		})
	}
}

// A run line is taken quoted and as words; its flags are the program's own.
func TestCLIAddRunLine(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a script")
	}
	r := newCLIRig(t)
	e := stdioEntry(t, "x", fakeStdio{})
	bin := filepath.Join(r.dir, "bin")
	script := "#!/bin/sh\nTAI_TEST_FAKE=stdio exec " + e.Command + ` "$@"` + "\n"
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "npx"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	for i, words := range [][]string{{"npx -y notes-mcp --yes 'a b'"}, {"npx", "-y", "notes-mcp", "--yes", "a b"}} {
		name := fmt.Sprint("notes", i)
		r.tai(append([]string{"mcp", "add", "--yes", "--name", name}, words...)...).ok()
		if got := r.tai("mcp", "call", name, "argv").ok(); got != "-y\x00notes-mcp\x00--yes\x00a b\n" {
			t.Errorf("%q: argv %q", words, got)
		}
	}
	r.tai("mcp", "add", "--yes", "npx", "-y", "notes-mcp").ok()
	if list := r.servers(); len(list) != 3 || list[0].Name != "notes-mcp" {
		t.Errorf("a run line without a name: %+v", list)
	}
	r.tai("mcp", "add", "notes", "npx", "-y", "notes-mcp", "--yes").fails(exitUsage, "unknown flag -y", "after --")
}

// What cannot be a source is exit 2 with the way round, and nothing is started or stored.
func TestCLIAddUnusable(t *testing.T) {
	r := newCLIRig(t)
	for _, tc := range []struct {
		words []string
		texts []string
	}{
		{[]string{"https://github.com/owner"}, []string{"names no repository", "https://github.com/OWNER/REPOSITORY"}},
		{[]string{"no-such-file.json"}, []string{"no such file: no-such-file.json"}},
		{[]string{"./none"}, []string{"no such file"}},
		{[]string{"{"}, []string{"hint: tai mcp normalize"}},
		{[]string{`{"mcpServers":{}}`}, []string{"tai: "}},
		{[]string{"gibberish"}, []string{"tai: "}},
		{[]string{"-"}, []string{"tai: "}},
		{[]string{"x", "https://h.example/mcp", "--header", "no colon"}, []string{"header", "hint: --header 'Name: value'"}},
		{[]string{"x", "https://h.example/mcp", "--env", "A=b"}, []string{"variable", "for started servers"}},
		{[]string{"x", "--header", "A: b", "--", "prog"}, []string{"for remote servers"}},
		{[]string{"a", "b", "--", "prog"}, []string{"one name was expected"}},
		{[]string{"a", "--name", "b", "--", "prog"}, []string{"one name was expected"}},
		{[]string{"a", "--", ""}, []string{"the command is empty"}},
		{[]string{`{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}}}`, "--cwd", "/"}, []string{"for one server, the source gives 2"}},
	} {
		r.tai(append([]string{"mcp", "add", "--yes"}, tc.words...)...).fails(exitUsage, tc.texts...)
		r.tai(append([]string{"mcp", "add", "--yes", "--json"}, tc.words...)...).failsJSON(exitUsage)
	}
	// CFG-07: the name rule, whichever way the name comes.
	for _, name := range []string{"../x", "..", "", strings.Repeat("n", 1024), "a\x1b[2Jb", "a\u202eb"} {
		got := r.tai("mcp", "add", "--yes", "--name", name, "--", "prog")
		if name == "" {
			continue // no name given: one is made from the command
		}
		got.fails(exitUsage, "name", "hint: --name")
		r.tai("mcp", "add", "--yes", name, "http://127.0.0.1:1/mcp").fails(exitUsage, "name")
	}
	if list := r.servers(); len(list) != 0 {
		t.Errorf("stored: %+v", list)
	}
}

// CFG-06: what is too large or too deep is refused with its limit, a doubled mcpServers is joined with a warning, and of 10,000
// entries 32 come in.
func TestCFG06CLI(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	big := filepath.Join(r.dir, "big.json")
	if err := os.WriteFile(big, []byte(`{"mcpServers":{"a":{"command":"`+strings.Repeat("x", 10<<20)+`"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r.tai("mcp", "add", "--yes", big).fails(exitUsage, "too large", fmt.Sprint(configMax))
	deep := `{"mcpServers":{"a":{"command":"x","y":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}}}`
	r.with(deep, "mcp", "add", "--yes", "-").fails(exitUsage, "deep")
	one := fakeConfig(t, "")
	twice := r.tai("mcp", "add", "--yes", `{"mcpServers":{"a":`+one+`},"mcpServers":{"b":`+one+`}}`)
	twice.ok()
	twice.errHas("warning: ")
	if list := r.servers(); len(list) != 2 {
		t.Errorf("joined: %+v", list)
	}
	var b strings.Builder
	b.WriteString(`{"mcpServers":{`)
	for i := range 10_000 {
		fmt.Fprintf(&b, `"s%d":{"url":"http://127.0.0.1:1/%d"},`, i, i)
	}
	text := strings.TrimSuffix(b.String(), ",") + `}}`
	many := r.with(text, "mcp", "normalize", "--json")
	many.ok()
	doc := cliJSON[struct {
		Servers  []serverEntry
		Warnings []string
	}](many)
	if len(doc.Servers) != 10_000 || len(doc.Warnings) == 0 {
		t.Errorf("%d entries, warnings %q", len(doc.Servers), doc.Warnings)
	}
}

// CFG-06: registration stops at 32, says what was left out, and keeps what came in.
func TestCFG06CLIStops(t *testing.T) {
	r := newCLIRig(t)
	v, err := openVault(context.Background(), r.home, vaultWrite, time.Now, r.keys())
	if err != nil {
		t.Fatal(err)
	}
	for i := range mcpMaxServers - 1 {
		if err := v.putServer(context.Background(), serverEntry{Name: fmt.Sprint("old", i), Transport: "stdio", Command: "prog", Source: "explicit"}, "default", false, nil, mcpMaxServers); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.close(); err != nil {
		t.Fatal(err)
	}
	one := fakeConfig(t, "")
	got := r.tai("mcp", "add", "--yes", `{"mcpServers":{"a":`+one+`,"b":`+one+`,"c":`+one+`,"d":`+one+`}}`)
	if got.code != exitFailed {
		t.Errorf("exit %d", got.code)
	}
	got.outHas("a: enabled")
	got.errHas("32 are registered", "tai: 2 more of the source were not tried")
	if list := r.servers(); len(list) != mcpMaxServers || list[0].Name != "a" {
		t.Errorf("%d servers", len(list))
	}
}

// Several servers in one paste: the bad one is told and costs the exit code, the others come in.
func TestCLIAddSeveral(t *testing.T) {
	r := newCLIRig(t)
	paste := `{"mcpServers":{"one":` + fakeConfig(t, "") + `,"two":{"command":"no-such-program-here"},"off":` + fakeConfig(t, `,"enabled":false`) + `}}`
	got := r.tai("mcp", "add", "--yes", paste)
	if got.code != exitFailed {
		t.Errorf("exit %d, want 1", got.code)
	}
	got.outHas("one: enabled for profile default", "off: disabled for profile default")
	if n := strings.Count(got.err, "no-such-program-here"); n == 0 || !strings.Contains(got.err, `mcp server "two"`) || strings.Count(got.err, "tai: ") != 1 {
		t.Errorf("stderr: %s", got.err)
	}
	list := r.servers()
	if len(list) != 2 || list[0].Name != "off" || list[0].State != statusDisabled || len(list[0].Profiles) != 0 || list[1].State != statusEnabled {
		t.Errorf("list: %+v", list)
	}
	r.tai("mcp", "call", "off", "echo").fails(exitRefused, "not enabled", "tai mcp enable")
	r.tai("mcp", "enable", "off").ok()
	r.tai("mcp", "call", "off", "echo").ok()

	doc := r.tai("mcp", "add", "--yes", "--json", paste)
	if first := doc.failsJSON(exitFailed); !strings.Contains(first.Message, "no-such-program-here") {
		t.Errorf("error: %+v", first)
	}
	in := cliJSON[addedDoc](doc)
	if len(in.Servers) != 2 || len(in.Failed) != 1 || in.Failed[0].Name != "two" || in.Failed[0].Error.Code != exitFailed {
		t.Errorf("document: %s", doc.out)
	}
	// Without anybody to ask nothing is started, and it is said once.
	refused := r.tai("mcp", "add", `{"mcpServers":{"x":{"command":"sh"},"y":{"command":"sh"},"z":{"command":"sh"}}}`)
	refused.fails(exitRefused, "--yes", "2 more of the source were not tried")
}

// A 401 is exit 4, stored disabled, and shown as waiting for a login; with an Authorization of its own it is a failure of the
// credentials, and nothing is stored.
func TestCLIAddLogin(t *testing.T) {
	r := newCLIRig(t)
	web := newFakeHTTP(t)
	web.on(methodInitialize, fakeHTTPStatus(401, "text/plain", "who are you?"))
	r.tai("mcp", "add", "--yes", "web", web.URL+"/mcp").fails(exitLogin, "login", "hint: ", "--header 'Authorization: Bearer ${TOKEN}'")
	if list := r.servers(); len(list) != 1 || list[0].State != statusLogin || list[0].Tools != 0 || len(list[0].Profiles) != 0 {
		t.Errorf("list: %+v", list)
	}
	if out := r.tai("mcp", "list").ok(); !strings.HasPrefix(out, "web  http  login  0 tools  "+web.URL) {
		t.Errorf("list: %s", out)
	}
	r.tai("mcp", "add", "--yes", "--json", "web", web.URL+"/mcp").failsJSON(exitLogin)
	own := []string{"mcp", "add", "--yes", "own", web.URL + "/mcp", "--header", "authorization: Bearer tok-very-secret-1"}
	got := r.tai(own...)
	got.fails(exitFailed, "refuses the entry's own Authorization", "hint: check your credentials")
	got.hides("tok-very-secret-1")
	if list := r.servers(); len(list) != 1 {
		t.Errorf("list: %+v", list)
	}
	web.on(methodInitialize, nil)
	r.tai("mcp", "add", "--yes", "web").ok() // by its stored name: checked again and enabled
	if list := r.servers(); list[0].State != statusEnabled || list[0].Tools != 1 {
		t.Errorf("after the server lets us in: %+v", list)
	}
}

// A stored name verifies again: new tools of the server stay withheld, a server that is gone stays stored.
func TestCLIAddStoredName(t *testing.T) {
	r := newCLIRig(t)
	web := newFakeHTTP(t)
	r.tai("mcp", "add", "--yes", "web", web.URL+"/mcp").ok()
	r.tai("mcp", "disable", "web").ok()
	web.mu.Lock()
	web.Tools = []string{fakeHTTPTool, `{"name":"fresh","inputSchema":{}}`}
	web.mu.Unlock()
	got := r.tai("mcp", "add", "--yes", "web")
	got.ok()
	got.outHas("web: enabled for profile default, 2 tools, 1 withheld", "tai mcp check web")
	web.on(methodInitialize, fakeHTTPStatus(500, "text/plain", "broken"))
	r.tai("mcp", "add", "--yes", "web").fails(exitFailed, "500")
	if list := r.servers(); len(list) != 1 || list[0].State != statusEnabled {
		t.Errorf("list: %+v", list)
	}
}

// Secrets are referred to, kept out of every output, and refused where they would go out in the open.
func TestCLIAddSecrets(t *testing.T) {
	r := newCLIRig(t)
	web := newFakeHTTP(t)
	r.with("tok-very-secret-2\n", "secret", "set", "WEB_TOKEN", "--from", "-").ok()
	r.tai("mcp", "add", "--yes", "web", web.URL+"/mcp", "--header", "Authorization: Bearer ${WEB_TOKEN}").ok()
	if seen := web.requests(methodInitialize); seen[0].Header.Get("Authorization") != "Bearer tok-very-secret-2" {
		t.Errorf("sent: %v", seen[0].Header)
	}
	for _, words := range [][]string{{"mcp", "list"}, {"mcp", "list", "--json"}, {"mcp", "call", "web", "echo", "x=tok-very-secret-2"}, {"mcp", "call", "web", "echo", "x=tok-very-secret-2", "--json"}, {"secret", "list", "--json"}, {"mcp", "check", "web"}} {
		got := r.tai(words...)
		got.ok()
		got.hides("tok-very-secret-2")
	}
	r.tai("mcp", "call", "web", "echo", "x=tok-very-secret-2").outHas("[secret:WEB_TOKEN]")
	logs, err := filepath.Glob(filepath.Join(r.home, "runs", "*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	for _, name := range logs {
		b, err := os.ReadFile(name)
		if err != nil || strings.Contains(string(b), "tok-very-secret-2") {
			t.Errorf("%s holds the secret, or: %v", name, err)
		}
	}
	// CFG-05, F01: a missing name refuses the start; HTC-18: no header goes out over plain http.
	r.tai("mcp", "add", "--yes", "none", web.URL+"/mcp", "--header", "X-Key: ${NO_SUCH_NAME}").fails(exitFailed, `"none"`, "NO_SUCH_NAME", "headers")
	r.tai("mcp", "add", "--yes", "calc", "--", "calc", "${NO_SUCH_NAME}").fails(exitFailed, `"calc"`, "args[0]", "NO_SUCH_NAME")
	r.tai("mcp", "add", "--yes", "open", "http://mcp.example.com/mcp", "--header", "Authorization: Bearer ${WEB_TOKEN}").fails(exitFailed, "https")
	if list := r.servers(); len(list) != 1 {
		t.Errorf("list: %+v", list)
	}
}

// F01: fields expand at use, a value is not expanded twice, $NAME without braces stays, and a bad entry costs itself alone.
func TestF01CLI(t *testing.T) {
	r := newCLIRig(t)
	web := newFakeHTTP(t)
	r.env = []string{"DOCS_BASE=" + web.URL, "NESTED=${DOCS_BASE}"}
	got := r.tai("mcp", "add", "--yes", `{"mcpServers":{"docs":{"url":"${DOCS_BASE}/mcp","headers":{"X-Team":"${TEAM:-blue}","X-Raw":"$TEAM","X-Nested":"${NESTED}"}},
		"calc":{"command":"${CALC_BIN:-calc-server}","args":["--mode=${MODE}","$MODE"],"env":{"KEY":"k-${SUFFIX:-0}"}}}}`)
	if got.code != exitFailed {
		t.Errorf("exit %d", got.code)
	}
	got.outHas("docs: enabled")
	got.errHas(`"calc"`, "args[0]", "MODE")
	h := web.requests(methodInitialize)[0].Header
	if h.Get("X-Team") != "blue" || h.Get("X-Raw") != "$TEAM" || h.Get("X-Nested") != "${DOCS_BASE}" {
		t.Errorf("headers: %v", h)
	}
	if list := r.servers(); len(list) != 1 || list[0].URL != "${DOCS_BASE}/mcp" {
		t.Errorf("stored: %+v", list)
	}
}

// AUD-09: a secret that stands in an entry is known while the entry is tried, before it is stored.
func TestAUD09SecretOfTriedEntry(t *testing.T) {
	const token = "entry-token-0001"
	r := newCLIRig(t)
	e := stdioEntry(t, "x", fakeStdio{On: on(methodInitialize, fakeStep{Err: "no access for " + token, Exit: 8})})
	run := r.tai("mcp", "add", "x", "--yes", "--env", "API_TOKEN="+token, "--env", "TAI_TEST_FAKE=stdio", "--env", "TAI_FAKE_STDIO="+e.Env["TAI_FAKE_STDIO"], "--", e.Command)
	if run.code == 0 || !strings.Contains(run.err, "no access for [secret:x/API_TOKEN]") {
		t.Errorf("add = %d, %s", run.code, run.err)
	}
	logs, err := filepath.Glob(filepath.Join(r.home, "runs", "*.jsonl"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("run logs %q, %v", logs, err)
	}
	b, err := os.ReadFile(logs[0])
	if err != nil || strings.Contains(string(b), token) || !strings.Contains(string(b), "[secret:x/API_TOKEN]") {
		t.Errorf("run log: %v, %s", err, b)
	}
}
