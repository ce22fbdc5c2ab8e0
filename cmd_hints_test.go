package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A flag that takes a value never swallows another flag; --help is help wherever it stands.
func TestFlagsSwallowNoFlags(t *testing.T) {
	r := newCLIRig(t)
	r.tai("--serve-mcp", "--help").fails(exitUsage, "--serve-mcp needs KEY", "--help is a flag")
	r.tai("mcp", "add", "x", "--name", "--json", "--yes").failsJSON(exitUsage)
	if out := r.tai("mcp", "add", "-h").ok(); !strings.Contains(out, "example:") {
		t.Errorf("-h gives %q", out)
	}
	if out := r.tai("help").ok(); !strings.Contains(out, "--mcp-port") {
		t.Errorf("the help lacks the flags of tai without a command:\n%s", out)
	}
}

// What was approved in one folder means the same in another.
func TestAddAnchorsRelativeEntries(t *testing.T) {
	r := newCLIRig(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env, err := json.Marshal(map[string]string{"TAI_TEST_FAKE": "stdio"})
	if err != nil {
		t.Fatal(err)
	}
	config := func(name, arg string) string {
		return `{"mcpServers":{"` + name + `":{"command":` + string(appendJSONString(nil, exe)) + `,"args":["` + arg + `"],"env":` + string(env) + `}}}`
	}
	r.tai("mcp", "add", config("here", "."), "--yes").errHas("will run in " + r.dir)
	if err := os.Mkdir(filepath.Join(r.dir, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.tai("mcp", "add", config("docs", "docs"), "--yes").errHas("will run in "+r.dir, `"docs" is relative`)
	if c := r.tai("mcp", "add", config("plain", "word"), "--yes"); c.code != exitDone || strings.Contains(c.err, "will run in") {
		t.Errorf("an entry without a path: exit %d, %s", c.code, c.err)
	}
	first := r.dir
	r.dir = t.TempDir()
	c := r.tai("mcp", "add", "here", "--yes")
	if c.ok(); strings.Contains(c.err, "will run in "+r.dir) {
		t.Errorf("the stored entry moved from %s: %s", first, c.err)
	}
}

// Hints can be pasted: they hold the names at hand.
func TestHintsHoldNames(t *testing.T) {
	r := newCLIRig(t)
	r.tai("mcp", "add", "lit", "--yes", "--env", "TOKEN=${GITHUB_TOKEN}", "--", "cat").fails(exitFailed, "GITHUB_TOKEN", "hint: tai secret set GITHUB_TOKEN")
	f := newFakeHTTP(t)
	r.tai("mcp", "add", "web", f.URL+"/mcp", "--yes").ok()
	r.tai("mcp", "disable", "web").ok()
	r.tai("mcp", "call", "web", "echo").fails(exitRefused, "hint: tai mcp enable web")
}

// brokenPipe is an output that takes nothing.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// An answer that could not be written is no success.
func TestUnwrittenAnswerFails(t *testing.T) {
	for _, words := range [][]string{{"version"}, {"mcp", "list"}, {"tools", "list"}, {"mcp", "list", "--json"}} {
		var stderr bytes.Buffer
		dir := t.TempDir()
		code := run(t.Context(), words, outside{Stdin: strings.NewReader(""), Stdout: brokenPipe{},
			Stderr: &stderr, GOOS: runtime.GOOS, Now: time.Now, Dir: dir}.at(dir))
		if code != exitFailed || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("tai %q: exit %d, %s", words, code, &stderr)
		}
	}
}

// at gives an outside whose home is dir.
func (o outside) at(dir string) outside {
	o.Getenv = func(name string) string {
		if name == "HOME" {
			return dir
		}
		return ""
	}
	return o
}

// STD-06: lines that are no messages are skipped, and the person is told once.
func TestSTD06AddTellsOfNoise(t *testing.T) {
	r := newCLIRig(t)
	e := stdioEntry(t, "noisy", fakeStdio{Start: []fakeStep{{Out: "Notes server ready\n"}}})
	c := r.tai("mcp", "add", "noisy", "--yes", "--env", "TAI_TEST_FAKE=stdio", "--env", "TAI_FAKE_STDIO="+e.Env["TAI_FAKE_STDIO"], "--", e.Command)
	c.ok()
	if n := strings.Count(c.err, "Notes server ready"); n != 1 {
		t.Errorf("told %d times:\n%s", n, c.err)
	}
}

// Connecting to several servers shows each with its state and time on a terminal, and nothing in a pipe or for one server.
func TestConnectProgress(t *testing.T) {
	var stderr bytes.Buffer
	c := &invocation{app: &app{errTerminal: true, stderr: &stderr}}
	show := c.progress(2)
	show(connectState{Server: "one"})
	show(connectState{Server: "two\x1b[2J"})
	show(connectState{Server: "one", Done: true, Tools: 3, Took: 40 * time.Millisecond})
	show(connectState{Server: "two\x1b[2J", Done: true, Err: errors.New("gone"), Took: 2 * time.Second})
	for _, want := range []string{"one  connecting…", "one  3 tools in 40 ms", `two\u001b[2J  failed after 2.0 s`} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("no %q in:\n%s", want, &stderr)
		}
	}
	if c.progress(1) != nil {
		t.Error("one server has a progress display")
	}
	c.errTerminal = false
	if c.progress(2) != nil {
		t.Error("a pipe gets a progress display")
	}
}

// A secret on a server's command line stands in no list and no log.
func TestSecretArgumentsMasked(t *testing.T) {
	in := []string{"--api-key", "sk-made-up-0001", "--token=made-up-0002", "--tokens-file", "x", "--mode=fast-and-long", "--password", "${DB_PASSWORD}", "made-up-0003"}
	want := "--api-key [secret] --token=[secret] --tokens-file x --mode=fast-and-long --password ${DB_PASSWORD} made-up-0003"
	if got := strings.Join(maskedEntry(serverEntry{Args: in}).Args, " "); got != want {
		t.Errorf("masked = %s, want %s", got, want)
	}
	r := newCLIRig(t)
	e := stdioEntry(t, "s", fakeStdio{})
	r.tai("mcp", "add", "s", "--yes", "--env", "TAI_TEST_FAKE=stdio", "--", e.Command, "--api-key=made-up-0004").ok()
	r.tai("mcp", "list").hides("made-up-0004")
	r.tai("mcp", "list", "--json").hides("made-up-0004")
	logs, err := filepath.Glob(filepath.Join(r.home, "runs", "*"+auditExtension))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	for _, name := range logs {
		b, err := os.ReadFile(name)
		if err != nil || bytes.Contains(b, []byte("made-up-0004")) {
			t.Errorf("%s holds the secret: %s, %v", name, b, err)
		}
	}
}

// What a native tool takes as text is text without a mark (content=1); what it takes otherwise is still JSON.
func TestCallTakesTextsAsText(t *testing.T) {
	r := newCLIRig(t)
	for _, tc := range []struct{ value, want string }{{"1", "1"}, {"true", "true"}, {`{"a":1}`, `{"a":1}`}, {`"quoted"`, `"quoted"`}, {"null", "null"}} {
		r.tai("tools", "call", "file_write", "path=one.txt", "content="+tc.value, "mode=replace", "mkdirs=true").ok()
		if got, err := os.ReadFile(filepath.Join(r.dir, "one.txt")); err != nil || string(got) != tc.want {
			t.Errorf("content=%s wrote %q, %v", tc.value, got, err)
		}
	}
	r.tai("tools", "call", "text_search", `pattern="quoted"`, "limit=1", "literal=true").ok()
	r.tai("tools", "call", "file_read", "path=one.txt", "limit=one").fails(exitFailed, `property "limit": expected integer, got "one"`)
}

// A tool that is not there is told as such, not as a fault of a protocol.
func TestCallOfNoTool(t *testing.T) {
	r := newCLIRig(t)
	r.tai("tools", "call", "file_red", "path=x").fails(exitFailed, `no such tool: "file_red"`, "tai tools list")
}

// The tools about servers name the tool that helps on, as a model has no commands.
func TestServerToolsHintAtTools(t *testing.T) {
	r := newCLIRig(t)
	r.addFake("s1", fakeStdio{})
	for _, words := range [][]string{{"mcp_tools", "server=s2"}, {"mcp_enable", "server=s2"}, {"mcp_remove", "server=s2"}, {"mcp_call", "server=s2", "tool=x"}} {
		r.tai(append([]string{"tools", "call", "--yes"}, words...)...).fails(exitFailed, `no such MCP server as "s2"`, "hint: mcp_list shows the names")
	}
	r.tai("tools", "call", "mcp_call", "server=s1", "tool=nothing").fails(exitFailed, "no such tool", "hint: mcp_tools shows the names")
}

// A host that is not found is named without the resolver that was asked.
func TestFetchHostNotFound(t *testing.T) {
	f := &webFetcher{cfg: webFetcherConfig{Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "192.0.2.53:53", IsNotFound: true}
	}}}
	if _, err := f.lookup(t.Context(), "nosuch.invalid", reachPublic); err == nil || err.Error() != "look up nosuch.invalid: no such host" {
		t.Errorf("told %v", err)
	}
}
