package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each entry, of each app, door and system, is read back by tai's own reader as the same command or address, with the key as a reference.
func TestClientConfigRoundTrip(t *testing.T) {
	t.Parallel()
	doors := map[string]clientDoor{
		"stdio":         {Name: "tai", Command: "/opt/tai/tai", Args: []string{"mcp", "serve", "--root", "/srv/a b"}},
		"odd stdio":     {Name: "my \"tai\" ✓", Command: `/o'pt/"x"/tai`, Args: []string{"mcp", "serve", "--root", "/a\tb/${HOME}x <&> \\ \x7f é"}},
		"windows stdio": {Name: "tai", Command: `C:\Program Files\tai\tai.exe`, Args: []string{"mcp", "serve", "--root", `C:\new\table`}, GOOS: "windows"},
		"http":          {Name: "tai", URL: "http://127.0.0.1:8765/mcp", Key: "TAI_MCP_KEY"},
		"windows http":  {Name: "t.a.i", URL: "https://tai.example.com/mcp?x=1&y=2", Key: "OTHER_KEY", GOOS: "windows"},
	}
	for name, d := range doors {
		for _, app := range clientApps() {
			text, err := app.text(d)
			if err != nil {
				t.Fatal(err)
			}
			for _, in := range []string{text, "# from a page\n\n```" + app.Format + "\n" + text + "```\n"} {
				res, err := normalize([]byte(in), normalizeOptions{OS: "linux"})
				if err != nil || len(res.Servers) != 1 {
					t.Errorf("%s, %s: %v\n%s", app.ID, name, err, in)
					continue
				}
				got := res.Servers[0]
				want := serverEntry{Name: d.Name, Transport: "stdio", Command: d.Command, Args: d.Args}
				if d.URL != "" {
					want = serverEntry{Name: d.Name, Transport: "http", URL: d.URL}
				}
				bridged := d.URL != "" && app.ID == "claude-desktop"
				if bridged {
					if !slices.Contains(got.Args, d.URL) || got.Name != d.Name || got.Command != map[bool]string{true: "cmd", false: "npx"}[d.GOOS == "windows"] {
						t.Errorf("%s, %s: %+v", app.ID, name, got)
					}
					continue
				}
				if got.Name != want.Name || got.Transport != want.Transport || got.Command != want.Command || !slices.Equal(got.Args, want.Args) || got.URL != want.URL {
					t.Errorf("%s, %s:\n%s\nis read as %+v\nwant %+v", app.ID, name, in, got, want)
				}
				auth := "Bearer ${" + d.Key + "}"
				if app.ID == "zed" {
					auth = "Bearer " + clientKeyHere
				}
				if d.URL != "" && got.Headers["Authorization"] != auth {
					t.Errorf("%s, %s: headers %v, want %q", app.ID, name, got.Headers, auth)
				}
			}
		}
	}
}

// The forms are those that the apps document.
func TestClientConfigForms(t *testing.T) {
	t.Parallel()
	stdio := clientDoor{Name: "tai", Command: "/tai", Args: []string{"mcp", "serve"}}
	http := clientDoor{Name: "tai", URL: "http://127.0.0.1:8765/mcp", Key: "TAI_MCP_KEY"}
	for id, want := range map[string][2]string{
		"claude-desktop": {`{"mcpServers":{"tai":{"command":"/tai","args":["mcp","serve"]}}}`, `{"mcpServers":{"tai":{"command":"npx","args":["-y","mcp-remote","http://127.0.0.1:8765/mcp","--header","Authorization:${TAI_MCP_AUTH}"],"env":{"TAI_MCP_AUTH":"Bearer PUT-THE-KEY-HERE"}}}}`},
		"claude-code":    {`{"mcpServers":{"tai":{"type":"stdio","command":"/tai","args":["mcp","serve"]}}}`, `{"mcpServers":{"tai":{"type":"http","url":"http://127.0.0.1:8765/mcp","headers":{"Authorization":"Bearer ${TAI_MCP_KEY}"}}}}`},
		"cursor":         {`{"mcpServers":{"tai":{"command":"/tai","args":["mcp","serve"]}}}`, `{"mcpServers":{"tai":{"url":"http://127.0.0.1:8765/mcp","headers":{"Authorization":"Bearer ${env:TAI_MCP_KEY}"}}}}`},
		"vscode":         {`{"servers":{"tai":{"type":"stdio","command":"/tai","args":["mcp","serve"]}}}`, `{"servers":{"tai":{"type":"http","url":"http://127.0.0.1:8765/mcp","headers":{"Authorization":"Bearer ${env:TAI_MCP_KEY}"}}}}`},
		"codex":          {"[mcp_servers.tai]\ncommand = \"/tai\"\nargs = [\"mcp\", \"serve\"]\n", "[mcp_servers.tai]\nurl = \"http://127.0.0.1:8765/mcp\"\nbearer_token_env_var = \"TAI_MCP_KEY\"\n"},
		"gemini":         {`{"mcpServers":{"tai":{"command":"/tai","args":["mcp","serve"]}}}`, `{"mcpServers":{"tai":{"httpUrl":"http://127.0.0.1:8765/mcp","headers":{"Authorization":"Bearer ${TAI_MCP_KEY}"}}}}`},
		"opencode":       {`{"mcp":{"servers":{"tai":{"type":"local","command":["/tai","mcp","serve"]}}}}`, `{"mcp":{"servers":{"tai":{"type":"remote","url":"http://127.0.0.1:8765/mcp","headers":{"Authorization":"Bearer {env:TAI_MCP_KEY}"},"oauth":false}}}}`},
		"zed":            {`{"context_servers":{"tai":{"command":"/tai","args":["mcp","serve"]}}}`, `{"context_servers":{"tai":{"url":"http://127.0.0.1:8765/mcp","headers":{"Authorization":"Bearer PUT-THE-KEY-HERE"}}}}`},
	} {
		i := slices.IndexFunc(clientApps(), func(a clientApp) bool { return a.ID == id })
		if i < 0 {
			t.Fatalf("no app %s", id)
		}
		for k, d := range []clientDoor{stdio, http} {
			got, err := clientApps()[i].text(d)
			if err != nil {
				t.Fatal(err)
			}
			if id != "codex" {
				got = string(compactJSON(nil, json.RawMessage(got)))
			}
			if got != want[k] {
				t.Errorf("%s:\n%s\nwant\n%s", id, got, want[k])
			}
		}
	}
	if n := len(clientApps()); n != 8 {
		t.Errorf("%d apps", n)
	}
}

// From the command line: the entry alone on stdout, this program and this workspace in it, where it goes on stderr, and nothing written.
func TestCLIClientConfig(t *testing.T) {
	r := newCLIRig(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.EvalSymlinks(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	r.tai("mcp", "config").done("claude-desktop", "Claude Code", "opencode", filepath.Join(r.dir, ".cursor/mcp.json"))
	got := r.tai("mcp", "config", "Cursor")
	got.done(string(appendJSONString(nil, exe)), `"serve"`, string(appendJSONString(nil, root)))
	got.errHas("for Cursor, in "+filepath.Join(r.dir, ".cursor/mcp.json"), "or .cursor/mcp.json in a project")
	res, err := normalize([]byte(got.out), normalizeOptions{OS: "linux"})
	if err != nil || len(res.Servers) != 1 || res.Servers[0].Command != exe || !slices.Equal(res.Servers[0].Args, []string{"mcp", "serve", "--root", root, "--home", r.home}) { // as TAI_HOME of this shell says
		t.Errorf("%+v, %v", res.Servers, err)
	}
	r.tai("mcp", "config", "codex", "--mode", "read-only").done("--permission-mode", "read-only")
	r.tai("mcp", "config", "codex", "--permission-mode", "read-only").done(`"--permission-mode", "read-only"`)
	r.tai("mcp", "config", "codex", "--yolo").done(`"--permission-mode", "danger-full-access"`)
	r.tai("mcp", "config", "codex", "--profile", "default").done(`"--profile", "default"`)
	doc := r.tai("--json", "mcp", "config", "gemini", "--http", "--key", "MY_KEY", "--name", "here")
	doc.ok()
	if got := cliJSON[struct{ Apps []clientJSON }](doc).Apps[0]; got.App != "gemini" || got.Format != "json" || !strings.Contains(got.Entry, "Bearer ${MY_KEY}") || !strings.Contains(got.Entry, `"here"`) || !strings.Contains(got.Entry, `"http://127.0.0.1:8765/mcp"`) || len(got.Notes) != 1 {
		t.Errorf("%+v", got)
	}
	list := r.tai("--json", "mcp", "config")
	list.ok()
	if got := cliJSON[struct{ Apps []clientJSON }](list); len(got.Apps) != 8 {
		t.Errorf("%+v", got)
	}
	for _, tc := range []struct {
		words []string
		text  string
	}{
		{[]string{"emacs"}, "claude-desktop, claude-code"}, {[]string{"zed", "--mode", "prompt", "--auto"}, "exclude"}, {[]string{"zed", "--http", "--auto"}, "is for the tai that the app starts"}, {[]string{"zed", "--url", "ftp://x"}, "no http or https address"}, {[]string{"zed", "--url", "http://u:p@h/mcp"}, "no http or https address"},
		{[]string{"zed", "--key", "K"}, "--http"}, {[]string{"zed", "--http", "--key", "not a name"}, "no name of a variable"}, {[]string{"zed", "--http", "--mode", "prompt"}, "--mode"},
		{[]string{"zed", "--mode", "workspace-write"}, "workspace-write"}, {[]string{"zed", "--name", "a\nb"}, "--name"},
	} {
		r.tai(append([]string{"mcp", "config"}, tc.words...)...).fails(exitUsage, tc.text)
	}
	r.tai("mcp", "config", "zed", "--http", "--key", "sk-not-a-name").hides("sk-not-a-name")
	for _, dir := range []string{r.home, filepath.Join(r.dir, ".cursor")} {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", dir, err)
		}
	}
}
