//go:build !windows

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf16"
)

// importFixture is a system with all apps and a project; its files stand below testdata/import.
func importFixture(t *testing.T, goos string) (importPlace, string) {
	t.Helper()
	home, err := filepath.Abs(filepath.Join("testdata", "import", goos))
	if err != nil {
		t.Fatal(err)
	}
	if home, err = filepath.EvalSymlinks(home); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home}
	if goos == "windows" {
		env = map[string]string{"USERPROFILE": home, "APPDATA": home + `\AppData\Roaming`, "LOCALAPPDATA": home + `\AppData\Local`}
	}
	return importPlace{GOOS: goos, Env: func(name string) string { return env[name] }, Root: filepath.Join(home, "project")}, home
}

// importLines writes down what was found, one line a file and a server, with the home folder as ~.
func importLines(files []*importFile, servers []*importServer, home string) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%s %s: %s %d %s\n", f.App, f.Path, f.Status, f.Servers, f.Reason)
	}
	for _, s := range servers {
		e := s.Entry
		fmt.Fprintf(&b, "%s %s %q env=%v %s %v cwd=%s allow=%v deny=%v %s", e.Name, e.Source, append([]string{e.Command}, e.Args...), e.Env, e.URL, e.Headers, e.Cwd, e.Allow, e.Deny, s.Fault)
		for _, o := range s.Origins {
			fmt.Fprintf(&b, " <%s %s %s %s %v>", o.App, filepath.Base(o.File), o.Name, o.Folder, o.Off)
		}
		b.WriteString("\n")
	}
	return strings.ReplaceAll(b.String(), home, "~")
}

// Each app's own form is read from where the app keeps it, on each system.
func TestImportFixtures(t *testing.T) {
	t.Parallel()
	for _, goos := range []string{"linux", "darwin", "windows"} {
		place, home := importFixture(t, goos)
		files, servers, err := findImports(t.Context(), place, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("testdata", "import", goos+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if got := importLines(files, servers, home); got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", goos, got, want)
		}
	}
}

// importHome is a home folder with these files in it, and an empty project beside it.
func importHome(t *testing.T, files map[string]string) (importPlace, string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, root := filepath.Join(base, "home"), filepath.Join(base, "project")
	for _, dir := range []string{home, root} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		importWrite(t, filepath.Join(base, name), text)
	}
	return importPlace{GOOS: "linux", Root: root, Env: func(name string) string { return map[string]string{"HOME": home}[name] }}, base
}

func importWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const (
	importCursor = "home/.cursor/mcp.json"
	importGood   = `{"mcpServers":{"good":{"command":"good-mcp"}}}`
)

// A file that cannot be read is told of with its reason, and the others are read; none shows what stands in it.
func TestImportFiles(t *testing.T) {
	t.Parallel()
	token := moveToken(20)
	wide := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(`{"mcpServers":{"bad":{"command":"x"}}}`)) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	for _, tc := range []struct{ name, text, status, reason string }{
		{"no end", `{"mcpServers":{"bad":{"command":"x"}`, confFailed, "line 1: the text ends"},
		{"no quote", "{\n\"mcpServers\": {\"bad\": {\"env\": {\"T\": " + token, confFailed, "line 2"},
		{"a list", `[]`, confFailed, "one JSON object"},
		{"two objects", `{} {}`, confFailed, "one JSON object"},
		{"map is text", `{"mcpServers":"` + token + `"}`, confFailed, "mcpServers must be an object, not text"},
		{"map is an entry", `{"mcpServers":{"command":"x"}}`, confFailed, "a name is missing around it"},
		{"too deep", strings.Repeat(`{"a":`, 200) + "1", confFailed, "nested deeper than 100"},
		{"no UTF-8", "{\xff}", confFailed, "not UTF-8"},
		{"HTML", "<html>", confFailed, "not valid"},
		{"empty", " \n", confEmpty, ""},
		{"no servers", `{"other":{"mcpServers":{"x":{"command":"x"}}}}`, confEmpty, ""},
		{"empty map", `{"mcpServers":{}}`, confEmpty, ""},
		{"null", `{"mcpServers":null}`, confEmpty, ""},
		{"mark, CRLF, comments, commas", "\ufeff// c\r\n{\"mcpServers\":{/* c */\"bad\":{\"command\":\"x\",},},}\r\n", confRead, ""},
		{"UTF-16", string(wide), confRead, ""},
		{"entry of a wrong type", `{"mcpServers":{"bad":["` + token + `"]}}`, confRead, ""},
		{"argument of a wrong type", `{"mcpServers":{"bad":{"command":"x","args":[{"a":1}]}}}`, confRead, ""},
	} {
		place, _ := importHome(t, map[string]string{importCursor: tc.text, "home/.lmstudio/mcp.json": importGood})
		files, servers, err := findImports(t.Context(), place, []string{"cursor", "lm-studio"})
		if err != nil || len(files) != 2 {
			t.Fatalf("%s: %v %+v", tc.name, err, files)
		}
		if f := files[0]; f.Status != tc.status || !strings.Contains(f.Reason, tc.reason) {
			t.Errorf("%s: %s %q, want %s %q", tc.name, f.Status, f.Reason, tc.status, tc.reason)
		}
		if last := servers[len(servers)-1]; last.Entry.Name != "good" || last.Fault != "" {
			t.Errorf("%s: the other file gave %+v", tc.name, last)
		}
		if tc.status == confRead != (len(servers) == 2) {
			t.Errorf("%s: servers %+v", tc.name, servers)
		}
		if text := fmt.Sprintf("%+v %+v", files, servers); strings.Contains(text, token) {
			t.Errorf("%s: the token shows: %s", tc.name, text)
		}
	}
}

// What is no plain file is told of and never waited for; a link is followed, but not out of the project. A config over the cap is refused.
func TestImportOddFiles(t *testing.T) {
	t.Parallel()
	place, base := importHome(t, map[string]string{"dotfiles/zed.json": `{"context_servers":{"linked":{"command":"linked-mcp"}}}`, "home/.cursor/mcp.json/x": "", "home/.codeium": "a file", "other/mcp.json": importGood})
	at := func(name string) string { return filepath.Join(base, name) }
	importWrite(t, at("home/.gemini/settings.json"), "{")
	for _, err := range []error{
		os.Truncate(at("home/.gemini/settings.json"), importFileMax+1),
		os.Mkdir(at("home/.lmstudio"), 0o700), syscall.Mkfifo(at("home/.lmstudio/mcp.json"), 0o600),
		os.MkdirAll(at("home/.config/zed"), 0o700), os.Symlink(at("dotfiles/zed.json"), at("home/.config/zed/settings.json")),
		os.Mkdir(at("home/.codex"), 0o700), os.Symlink("nowhere", at("home/.codex/config.toml")),
		os.Symlink(at("other/mcp.json"), at("project/mcp.json")), os.Symlink(at("other"), at("project/.vscode")),
		os.Symlink("mcp.json", at("project/.mcp.json")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	files, servers, err := findImports(t.Context(), place, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range files {
		name, _ := filepath.Rel(base, f.Path)
		got[name] = f.Status + ": " + f.Reason
	}
	for name, want := range map[string]string{
		"home/.cursor/mcp.json":                  "failed: it is no regular file",
		"home/.codeium/windsurf/mcp_config.json": "failed: not a directory",
		"home/.gemini/settings.json":             "failed: it is too large: at most 16777216 bytes are read",
		"home/.lmstudio/mcp.json":                "failed: it is no regular file",
		"home/.codex/config.toml":                "failed: it is a link that cannot be followed",
		"home/.config/zed/settings.json":         "read: ",
		"home/.claude.json":                      "missing: ",
		"project/mcp.json":                       "failed: it is a link out of the project, to " + at("other/mcp.json"),
		"project/.mcp.json":                      "failed: it is a link out of the project",
		"project/.vscode/mcp.json":               "failed: it is a link out of the project",
	} {
		if !strings.HasPrefix(got[name], want) {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
	if len(servers) != 1 || servers[0].Entry.Name != "linked" {
		t.Errorf("servers: %+v", servers)
	}
}

// CFG-06: of 10,000 entries the cap is taken and told; names keep apart; variables name other folders; tai is not taken into itself.
func TestImportMany(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, `"s%d":{"command":"x%d"},`, i, i)
	}
	place, base := importHome(t, map[string]string{
		"home/.cursor/mcp.json":       `{"mcpServers":{"a":{"command":"one"},"b":{"command":"two","args":["x"]},"tai":{"command":"/opt/tai","args":["mcp","serve"]}}}`,
		"claude/.claude.json":         `{"mcpServers":{"a":{"command":"three"}},"projects":{"/p":{"mcpServers":{"a":{"command":"four"}}},"/q":{"mcpServers":{"a":{"command":"one"},"b":{"command":"two","args":["x"],"disabled":true}}}}}`,
		"home/.gemini/settings.json":  "{\"mcpServers\":{" + many.String() + "}}",
		"xdg/opencode/opencode.json":  `{"mcp":{"x":{"type":"local","command":["x"]}}}`,
		"home/.config/zed/x.json":     "",
		"codex/config.toml":           "[mcp_servers.of-codex]\ncommand = 'c'\n",
		"home/.codex/config.toml":     "[mcp_servers.not-this]\ncommand = 'c'\n",
		"project/.gemini/x.json":      "",
		"project/.vscode/mcp.json":    `{"servers":{"sub":{"command":"./run","cwd":"${workspaceFolder}/sub"}}}`,
		"project/.cursor/mcp.json":    `{"mcpServers":{"rel":{"command":"bin/run","cwd":"sub"}}}`,
		"project/.mcp.json/not-there": "",
	})
	env := map[string]string{"HOME": filepath.Join(base, "home"), "XDG_CONFIG_HOME": filepath.Join(base, "xdg"), "CODEX_HOME": filepath.Join(base, "codex"), "CLAUDE_CONFIG_DIR": filepath.Join(base, "claude")}
	place.Env = func(name string) string { return env[name] }
	files, servers, err := findImports(t.Context(), place, nil)
	if err != nil || len(servers) != importServersMax {
		t.Fatalf("%v, %d servers", err, len(servers))
	}
	var got []string
	for _, s := range servers[:11] {
		got = append(got, fmt.Sprintf("%s=%s@%s*%d%s", s.Entry.Name, s.Entry.Command, s.Entry.Cwd, len(s.Origins), s.Fault))
	}
	want := "a=three@*1 a-claude-code=four@*1 a-claude-code-2=one@*2 b=two@*2 tai=/opt/tai@*1it is tai itself rel=~/project/sub/bin/run@~/project/sub*1 sub=~/project/sub/run@~/project/sub*1 of-codex=c@*1 s0=x0@*1 s1=x1@*1 s2=x2@*1"
	if text := strings.ReplaceAll(strings.Join(got, " "), base, "~"); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	for _, f := range files {
		if f.App == "gemini" && !f.Project && !strings.Contains(f.Reason, "no more than 500 servers") {
			t.Errorf("gemini: %+v", f)
		}
	}
	if _, servers, _ = findImports(t.Context(), place, []string{importProject}); len(servers) != 2 {
		t.Errorf("project: %+v", servers)
	}
}
