// This file knows how other apps are told of an MCP server: the form of an entry in each, where the file lies that it goes into, and which others
// may hold servers. It reads and writes no file.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// clientDoor is how an app reaches tai: a command that it starts, or an address with a key. Key is the variable that holds the key.
type clientDoor struct {
	Name    string // of the entry
	Command string
	Args    []string
	URL     string
	Key     string
	GOOS    string
}

// clientApp is one app. Files are where its settings lie, for darwin, windows and the others, with ~ for the home folder; entry writes what is to
// be pasted. Keys, Home, Beside and Projects are for reading alone.
type clientApp struct {
	ID, Title string
	Files     [3]string
	Project   string   // the file of one project, "" for none
	Format    string   // json or toml
	Keys      []string // under which its servers stand
	Home      string   // the variable that names another folder for its file, "" for none
	Beside    []string // patterns of further files: from the folder of its file, or from a folder of the system, %NAME%
	Projects  []string // further files of a project
	Notes     func(d clientDoor) []string
	entry     func(d clientDoor) any // for json
}

// clientKeyNote is where the key comes from in an app that reads its own environment.
func clientKeyNote(app string) func(clientDoor) []string {
	return func(d clientDoor) []string {
		if d.URL == "" {
			return nil
		}
		return []string{fmt.Sprintf("the key is not in the entry: %s reads it from the variable %s, so start it where that is set", app, d.Key)}
	}
}

// clientApps are those that tai mcp config knows: the ones with a form to write.
func clientApps() []clientApp {
	all := knownApps()
	out := all[:0]
	for i := range all {
		if all[i].entry != nil || all[i].Format == "toml" {
			out = append(out, all[i])
		}
	}
	return out
}

// knownApps are all, by their documentation of 2026. Claude Desktop as a package of Windows (MSIX) has its settings in a folder of the package.
func knownApps() []clientApp {
	mcpServers := []string{"mcpServers"}
	return []clientApp{
		{ID: "claude-desktop", Title: "Claude Desktop", Format: "json", Keys: mcpServers, entry: claudeDesktopEntry, Notes: claudeDesktopNotes,
			Beside: []string{`%LOCALAPPDATA%\Packages\Claude_*\LocalCache\Roaming\Claude\claude_desktop_config.json`},
			Files:  [3]string{"~/Library/Application Support/Claude/claude_desktop_config.json", `%APPDATA%\Claude\claude_desktop_config.json`, "~/.config/Claude/claude_desktop_config.json"}},
		{ID: "claude-code", Title: "Claude Code", Format: "json", Keys: mcpServers, Files: sameInHome("~/.claude.json"), Home: "CLAUDE_CONFIG_DIR", Project: ".mcp.json", Notes: clientKeyNote("Claude Code"),
			entry: func(d clientDoor) any { return under("mcpServers", d.Name, d.typed("stdio", "http", "${"+d.Key+"}")) }},
		{ID: "cursor", Title: "Cursor", Format: "json", Keys: mcpServers, Files: sameInHome("~/.cursor/mcp.json"), Project: ".cursor/mcp.json", Notes: clientKeyNote("Cursor"),
			entry: func(d clientDoor) any { return under("mcpServers", d.Name, d.plain("url", "${env:"+d.Key+"}")) }},
		{ID: "vscode", Title: "VS Code", Format: "json", Keys: []string{"servers", "mcp.servers"}, Project: ".vscode/mcp.json", Notes: clientKeyNote("VS Code"),
			Beside:   []string{"settings.json", "profiles/*/mcp.json", "../../Code - Insiders/User/mcp.json", "../../VSCodium/User/mcp.json"},
			Projects: []string{".vscode/settings.json"},
			Files:    [3]string{"~/Library/Application Support/Code/User/mcp.json", `%APPDATA%\Code\User\mcp.json`, "~/.config/Code/User/mcp.json"},
			entry:    func(d clientDoor) any { return under("servers", d.Name, d.typed("stdio", "http", "${env:"+d.Key+"}")) }},
		{ID: "windsurf", Title: "Windsurf", Format: "json", Keys: mcpServers, Files: sameInHome("~/.codeium/windsurf/mcp_config.json")},
		{ID: "codex", Title: "Codex", Format: "toml", Keys: []string{"mcp_servers"}, Files: sameInHome("~/.codex/config.toml"), Home: "CODEX_HOME", Project: ".codex/config.toml", Notes: clientKeyNote("Codex")},
		{ID: "gemini", Title: "Gemini CLI", Format: "json", Keys: mcpServers, Files: sameInHome("~/.gemini/settings.json"), Project: ".gemini/settings.json", Notes: clientKeyNote("Gemini CLI"),
			entry: func(d clientDoor) any { return under("mcpServers", d.Name, d.plain("httpUrl", "${"+d.Key+"}")) }},
		{ID: "opencode", Title: "opencode", Format: "json", Keys: []string{"mcp", "mcp.servers"}, Files: sameInHome("~/.config/opencode/opencode.json"), Project: "opencode.json", Notes: opencodeNotes,
			Beside: []string{"opencode.jsonc", "config.json"}, Projects: []string{"opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"},
			entry: func(d clientDoor) any {
				return member{"mcp", under("servers", d.Name, d.opencode())}.object()
			}},
		{ID: "zed", Title: "Zed", Format: "json", Keys: []string{"context_servers"}, Project: ".zed/settings.json", Notes: zedNotes,
			Files: [3]string{"~/.config/zed/settings.json", `%APPDATA%\Zed\settings.json`, "~/.config/zed/settings.json"},
			entry: func(d clientDoor) any { return under("context_servers", d.Name, d.plain("url", clientKeyHere)) }},
		{ID: "lm-studio", Title: "LM Studio", Format: "json", Keys: mcpServers, Files: sameInHome("~/.lmstudio/mcp.json"), Beside: []string{"../.cache/lm-studio/mcp.json"}},
	}
}

// clientKeyHere stands for the key in an app that takes no reference.
const clientKeyHere = "PUT-THE-KEY-HERE"

func sameInHome(name string) [3]string {
	return [3]string{name, strings.ReplaceAll("%USERPROFILE%"+strings.TrimPrefix(name, "~"), "/", `\`), name}
}

// file is where the app's own settings lie on a system.
func (a *clientApp) file(goos string) string {
	switch goos {
	case "darwin":
		return a.Files[0]
	case "windows":
		return a.Files[1]
	}
	return a.Files[2]
}

// clientPath writes out a path of the table as far as env knows its folders; goos says for which system. ~/.config is where XDG_CONFIG_HOME says.
func clientPath(path, goos string, env func(string) string) string {
	if goos == "windows" {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(path, "%"), "%"); ok && path[0] == '%' && env(name) != "" {
			return env(name) + rest
		}
		return path
	}
	if xdg := env("XDG_CONFIG_HOME"); goos != "darwin" && strings.HasPrefix(path, "~/.config/") && filepath.IsAbs(xdg) {
		return xdg + strings.TrimPrefix(path, "~/.config")
	}
	if home := env("HOME"); home != "" && strings.HasPrefix(path, "~/") {
		return filepath.Join(home, path[2:])
	}
	return path
}

// text is the entry to paste, with the way to it from the top of the file, and a line end.
func (a *clientApp) text(d clientDoor) (string, error) {
	if a.Format == "toml" {
		return codexText(d), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(a.entry(d)); err != nil {
		return "", errorf("write the entry: %w", err)
	}
	return b.String(), nil
}

// member is one member of a JSON object; members keep the order in which people expect them.
type member struct {
	Key   string
	Value any
}

type members []member

func (m member) object() members { return members{m} }

func (m members) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, x := range m {
		if i > 0 {
			out = append(out, ',')
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(x.Value); err != nil {
			return nil, err
		}
		out = append(append(appendJSONString(out, x.Key), ':'), bytes.TrimSpace(b.Bytes())...)
	}
	return append(out, '}'), nil
}

// under is an entry below its key.
//
//go:noinline for size: it is called in many places
func under(key, name string, entry members) members {
	return member{key, member{name, entry}.object()}.object()
}

//go:noinline for size: it is called in many places
func bearer(key string) members { return members{{"Authorization", "Bearer " + key}} }

// plain is an entry without a type: a command, or an address under that key.
//
//go:noinline for size: it is called in many places
func (d clientDoor) plain(address, key string) members {
	if d.URL != "" {
		return members{{address, d.URL}, {"headers", bearer(key)}}
	}
	return members{{"command", d.Command}, {"args", d.Args}}
}

// typed is an entry that says which sort it is.
func (d clientDoor) typed(stdio, http, key string) members {
	if d.URL != "" {
		return append(members{{"type", http}}, d.plain("url", key)...)
	}
	return append(members{{"type", stdio}}, d.plain("", "")...)
}

// opencode has the command in one list, and tries a login of its own unless told not to.
func (d clientDoor) opencode() members {
	if d.URL != "" {
		return members{{"type", "remote"}, {"url", d.URL}, {"headers", bearer("{env:" + d.Key + "}")}, {"oauth", false}}
	}
	return members{{"type", "local"}, {"command", append([]string{d.Command}, d.Args...)}}
}

func opencodeNotes(d clientDoor) []string {
	return append(clientKeyNote("opencode")(d), "opencode 1 has no servers level: there the entry stands below mcp itself")
}

func zedNotes(d clientDoor) []string {
	if d.URL == "" {
		return nil
	}
	return []string{"Zed takes no reference to a variable in a header: put the key in the place of " + clientKeyHere + ", and let nobody else read the file; the other door needs no key"}
}

// claudeDesktopEntry: its file takes commands alone, so that an address needs the bridge mcp-remote between. A blank in an argument gets lost on
// the way to it on Windows, hence the variable for the whole value.
func claudeDesktopEntry(d clientDoor) any {
	if d.URL == "" {
		return under("mcpServers", d.Name, d.plain("", ""))
	}
	argv := []string{"npx", "-y", "mcp-remote", d.URL, "--header", "Authorization:${TAI_MCP_AUTH}"}
	if d.GOOS == "windows" {
		argv = append([]string{"cmd", "/c"}, argv...)
	}
	return under("mcpServers", d.Name, members{{"command", argv[0]}, {"args", argv[1:]}, {"env", members{{"TAI_MCP_AUTH", "Bearer " + clientKeyHere}}}})
}

func claudeDesktopNotes(d clientDoor) []string {
	notes := []string{"quit Claude Desktop and start it anew; closing its window is not enough"}
	if d.URL == "" {
		return notes
	}
	return append(notes, "its file takes no address, so mcp-remote from npm (needs Node.js) stands between; put the key in the place of "+clientKeyHere+", and let nobody else read the file; the other door needs neither")
}

// codexText is a table of config.toml.
func codexText(d clientDoor) string {
	var b textBuilder
	fmt.Fprintf(&b, "[mcp_servers.%s]\n", tomlKey(d.Name))
	if d.URL != "" {
		fmt.Fprintf(&b, "url = %s\nbearer_token_env_var = %s\n", tomlText(d.URL), tomlText(d.Key))
		return b.String()
	}
	words := make([]string, 0, len(d.Args))
	for _, a := range d.Args {
		words = append(words, tomlText(a))
	}
	fmt.Fprintf(&b, "command = %s\nargs = [%s]\n", tomlText(d.Command), strings.Join(words, ", "))
	return b.String()
}

// tomlKey is a key, in quotes unless it is a bare one (TOML 1.0, Keys).
func tomlKey(s string) string {
	if s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == "" {
		return s
	}
	return tomlText(s)
}

// tomlText is a basic string (TOML 1.0, String): what JSON escapes in a string means the same there, and DEL is escaped too.
func tomlText(s string) string {
	return strings.ReplaceAll(string(appendJSONString(nil, s)), "\x7f", `\u007f`)
}
