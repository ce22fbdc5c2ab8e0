package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// normRow is one paste and what it has to give. want is a JSON list of canonical entries without source (config-json, or
// what src says). notes, warns and err are pieces joined by |; "-" means none at all, "" that it does not matter.
type normRow struct {
	name, in, want    string
	src, os, given    string
	notes, warns, err string
}

func normPieces(s string) *[]string {
	switch s {
	case "":
		return nil
	case "-":
		return &[]string{}
	}
	p := strings.Split(s, "|")
	return &p
}

func normRun(t *testing.T, rows []normRow) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			c := normCase{Notes: normPieces(row.notes), Warnings: normPieces(row.warns)}
			c.With.OS, c.With.Name = row.os, row.given
			if row.err != "" {
				p := *normPieces(row.err)
				c.Error, c.ErrorAlso = p[0], p[1:]
			} else if err := json.Unmarshal([]byte(row.want), &c.Servers); err != nil {
				t.Fatalf("the case itself: %v", err)
			}
			for _, e := range c.Servers {
				if e["source"] = "config-json"; row.src != "" {
					e["source"] = row.src
				}
				if _, ok := e["transport"]; !ok {
					if e["transport"] = "stdio"; e["url"] != nil {
						e["transport"] = "http"
					}
				}
			}
			c.check(t, []byte(row.in))
		})
	}
}

// Pieces as people copy them: with too much or too little around, in strange quotes, or with broken escapes.
func TestNormalizeLenientJSON(t *testing.T) {
	const one = `[{"name":"a","command":"x"}]`
	normRun(t, []normRow{
		{name: "leftover brace", in: `{"mcpServers":{"a":{"command":"x"}}}}`, want: one, warns: "-"},
		{name: "leftover semicolon and fence", in: "{\"mcpServers\":{\"a\":{\"command\":\"x\"}}};\n```\n", want: one},
		{name: "fragment with closers", in: "\"a\": {\"command\": \"x\"}\n  }\n}", want: one, notes: "brace"},
		{name: "fragment of an entry", in: `"command": "x", "args": ["y"],`, given: "a", want: `[{"name":"a","command":"x","args":["y"]}]`, notes: "brace"},
		{name: "fragment behind a comment", in: "// mine\n\"mcpServers\": {\"a\": {\"command\": \"x\"}}", want: one, notes: "brace"},
		{name: "fragment in curly quotes", in: `“a”: {“command”: “x”}`, want: one, notes: "brace|quotes"},
		{name: "single curly quotes", in: `{‘a’: {‘command’: ‘x’}}`, want: one, notes: "quotes"},
		{name: "curly quote inside plain", in: `{"a": {"command": "x", "args": ["say “hi”"]}}`, want: `[{"name":"a","command":"x","args":["say “hi”"]}]`, notes: "-"},
		{name: "low opening quote", in: `{„a“: {"command": "x"}}`, want: one, notes: "quotes"},
		{name: "apostrophe in double curly", in: `{“a”: {“command”: “x”, “args”: [“it’s”]}}`, want: `[{"name":"a","command":"x","args":["it’s"]}]`},
		{name: "escaped curly quote", in: `{“a”: {“command”: “x”, “args”: [“\”q\””]}}`, want: `[{"name":"a","command":"x","args":["\"q\""]}]`},
		{name: "escaped single quote", in: `{'a': {'command': 'x', 'args': ['it\'s']}}`, want: `[{"name":"a","command":"x","args":["it's"]}]`, warns: "-"},
		{name: "comments and trailing commas", in: "/* c */ {\"a\": {\"command\": \"x\", /* } */ \"args\": [\"1\", ], }, } // end", want: `[{"name":"a","command":"x","args":["1"]}]`, notes: "-", warns: "-"},
		{name: "comment marks in strings", in: `{"a": {"command": "x", "args": ["/*", "//"]}}`, want: `[{"name":"a","command":"x","args":["/*","//"]}]`, notes: "-"},
		{name: "non-breaking space first", in: "\u00a0{\"a\": {\"command\": \"x\"}}", want: one, notes: "non-breaking space"},
		{name: "zero width space", in: "{\u200b\"a\":\u2003{\"command\": \"x\"}}", want: one, notes: "space"},
		{name: "objects with commas between", in: `{"a": {"command": "x"}}, {"b": {"url": "https://b.example.com/mcp"}},`, want: `[{"name":"a","command":"x"},{"name":"b","url":"https://b.example.com/mcp"}]`, notes: "several"},
		{name: "lines of objects", in: "{\"name\":\"a\",\"command\":\"x\"}\n{\"name\":\"b\",\"command\":\"y\"}", want: `[{"name":"a","command":"x"},{"name":"b","command":"y"}]`, notes: "several"},
		{name: "second object without servers", in: `{"inputs": []} {"servers": {"a": {"command": "x"}}}`, want: one, notes: "several", warns: "inputs"},
		{name: "same server in two objects", in: `{"a": {"command": "old"}} {"a": {"command": "x"}}`, want: one, warns: "a"},
		{name: "shell quotes around it", in: `'{"a": {"command": "x"}}'`, want: one, notes: "string|quotes"},
		{name: "fragment in a string", in: `"\"a\": {\"command\": \"x\"}"`, want: one, notes: "string|brace"},
		{name: "bad JSON in a string", in: `"{\n\"a\": {\"command\" \"x\"}}"`, err: "JSON|line 1|line 2"},
		{name: "string in a string", in: `"\"{}\""`, err: "JSON|line 1"},
		{name: "plain text in quotes", in: `"hello there"`, err: "JSON|line 1"},
		{name: "missing comma in a list", in: "{\"a\": {\"command\": \"x\",\n\"args\": [\"1\"\n\"2\"]}}", err: "JSON|line 3"},
		{name: "missing closing brace", in: "{\"a\": {\"command\": \"x\"}\n\n", err: "JSON|line 1"},
		{name: "missing closing quote", in: "{\"a\": {\"command\": \"x,\n\"args\": []}}", err: "JSON|line 1"},
		{name: "missing opening quote", in: "{\"a\": {\n\"command\": x\"}}", err: "JSON|line 2"},
		{name: "unquoted key", in: "{\"a\": {\ncommand: \"x\"}}", err: "JSON|line 2"},
		{name: "double comma", in: `{"a": {"command": "x",, "args": []}}`, err: "JSON|line 1"},
		{name: "Python words", in: "{'a': {'command': 'x',\n'enabled': True}}", err: "JSON|line 2|True"},
		{name: "hash comment", in: "{\n# mine\n\"a\": {\"command\": \"x\"}}", err: "JSON|line 2"},
		{name: "words behind", in: "{\"a\": {\"command\": \"x\"}}\nand restart", err: "JSON|line 2|and"},
		{name: "words before", in: "Add this:\n{\"a\": {\"command\": \"x\"}}", err: "JSON|line"},
		{name: "open comment", in: "{\"a\": {\"command\": \"x\"}} /* end", err: "JSON|line 1"},
		{name: "leading zero", in: `{"a": {"command": "x", "args": [007]}}`, err: "JSON|line 1|007"},
		{name: "tab inside a string", in: "{\"a\": {\"command\": \"x\ty\"}}", err: "JSON|line 1"},
		{name: "drive with t and n", in: `{"a": {"command": "d:\temp\new\x.exe"}}`, want: `[{"name":"a","command":"d:\\temp\\new\\x.exe"}]`, warns: "backslash"},
		{name: "drive with u", in: `{"a": {"command": "C:\users\u0041\x"}}`, want: `[{"name":"a","command":"C:\\users\\u0041\\x"}]`, warns: "backslash"},
		{name: "drive ends in a backslash", in: `{"a": {"command": "x", "args": ["C:\dir\", "D:\e\"]}}`, want: `[{"name":"a","command":"x","args":["C:\\dir\\","D:\\e\\"]}]`, warns: "backslash"},
		{name: "drive with doubled first", in: `{"a": {"command": "x", "args": ["C:\\tmp\\new"]}}`, want: `[{"name":"a","command":"x","args":["C:\\tmp\\new"]}]`, warns: "-"},
		{name: "drive mixes single and double", in: `{"a": {"command": "x", "args": ["C:\tmp\\new"]}}`, want: `[{"name":"a","command":"x","args":["C:\\tmp\\new"]}]`, warns: "backslash"},
		{name: "no drive, real escapes", in: `{"a": {"command": "x", "args": ["a\tb", "\u00e9", "\/"]}}`, want: `[{"name":"a","command":"x","args":["a\tb","é","/"]}]`, warns: "-"},
		{name: "u without digits", in: `{"a": {"command": "x", "args": ["\\srv\users"]}}`, want: `[{"name":"a","command":"x","args":["\\srv\\users"]}]`, warns: "backslash"},
		{name: "surrogate pair", in: `{"a": {"command": "x", "args": ["\ud83d\ude00"]}}`, want: `[{"name":"a","command":"x","args":["😀"]}]`, warns: "-"},
		{name: "UTF-16 little endian", in: "\xff\xfe{\x00\"\x00a\x00\"\x00:\x00{\x00\"\x00u\x00r\x00l\x00\"\x00:\x00\"\x00h\x00t\x00t\x00p\x00:\x00/\x00/\x00h\x00\"\x00}\x00}\x00", want: `[{"name":"a","url":"http://h"}]`, notes: "UTF-16"},
		{name: "UTF-16 big endian", in: "\xfe\xff\x00{\x00\"\x00a\x00\"\x00:\x00{\x00\"\x00u\x00r\x00l\x00\"\x00:\x00\"\x00h\x00t\x00t\x00p\x00:\x00/\x00/\x00h\x00\"\x00}\x00}", want: `[{"name":"a","url":"http://h"}]`, notes: "UTF-16"},
		{name: "UTF-16 cut off", in: "\xff\xfe{\x00\"", err: "UTF-8"},
		{name: "Latin-1", in: "{\"a\": {\"command\": \"caf\xe9\"}}", err: "UTF-8"},
		{name: "UTF-16 without a mark", in: "{\x00}\x00", err: "UTF-8"},
		{name: "only a comment", in: "// nothing", err: "JSON|line 1"},
		{name: "deep at the limit", in: `{"a": {"command": "x", "y": ` + strings.Repeat("[", 98) + strings.Repeat("]", 98) + `}}`, want: one, notes: "y"},
		{name: "deep over the limit", in: `{"a": {"command": "x", "y": ` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}}`, err: "nest"},
		{name: "odd blanks only", in: "\u00a0\u200b\ufeff \r\n", err: "empty"},
	})
}

// Text that is no JSON.
func TestNormalizeText(t *testing.T) {
	const foo = `[{"name":"foo","command":"npx","args":["-y","@acme/foo"]}]`
	normRun(t, []normRow{
		{name: "prompt of PowerShell", in: `PS C:\Users\dev> npx -y @acme/foo`, want: foo, src: "explicit", notes: "command line|foo"},
		{name: "prompt of cmd", in: `C:\Users\dev>npx -y @acme/foo`, want: foo, src: "explicit"},
		{name: "prompt with host", in: `dev@box:~/src$ npx -y @acme/foo`, want: foo, src: "explicit"},
		{name: "prompt of zsh", in: "% npx -y @acme/foo", want: foo, src: "explicit"},
		{name: "code marks around it", in: "`npx -y @acme/foo`", want: foo, src: "explicit"},
		{name: "comments and installs before", in: "# install\nnpm install -g @acme/foo\n# run\nnpx -y @acme/foo\nnpx -y @acme/bar", want: foo, src: "explicit", notes: "first"},
		{name: "Windows line ends joined", in: "npx \\\r\n  -y \\\r\n  @acme/foo\r\n", want: foo, src: "explicit"},
		{name: "wrapped on Windows", in: "npx -y @acme/foo", os: "windows", want: `[{"name":"foo","command":"cmd","args":["/c","npx","-y","@acme/foo"]}]`, src: "explicit"},
		{name: "caller's name", in: "npx -y @acme/foo", given: "mine", want: `[{"name":"mine","command":"npx","args":["-y","@acme/foo"]}]`, src: "explicit"},
		{name: "bunx", in: "bunx @acme/foo@1.0", want: `[{"name":"foo","command":"bunx","args":["@acme/foo@1.0"]}]`, src: "explicit"},
		{name: "pipx run", in: "pipx run foo==2.1 --stdio", want: `[{"name":"foo","command":"pipx","args":["run","foo==2.1","--stdio"]}]`, src: "explicit"},
		{name: "uvx with options", in: "uvx --python 3.12 --with bar foo[cli]@latest", want: `[{"name":"foo","command":"uvx","args":["--python","3.12","--with","bar","foo[cli]@latest"]}]`, src: "explicit"},
		{name: "npx with package option", in: "npx --package=@acme/foo foo-cli", want: `[{"name":"foo","command":"npx","args":["--package=@acme/foo","foo-cli"]}]`, src: "explicit"},
		{name: "podman with port and digest", in: "podman run -it -p 80:80 quay.example.com:5000/acme/foo@sha256:00ff", want: `[{"name":"foo","command":"podman","args":["run","-it","-p","80:80","quay.example.com:5000/acme/foo@sha256:00ff"]}]`, src: "explicit", warns: "-"},
		{name: "docker without -i", in: "docker run --rm --name i acme/foo -i", want: `[{"name":"foo","command":"docker","args":["run","--rm","--name","i","acme/foo","-i"]}]`, src: "explicit", warns: "-i"},
		{name: "docker --interactive", in: "docker run --interactive acme/foo", want: `[{"name":"foo","command":"docker","args":["run","--interactive","acme/foo"]}]`, src: "explicit", warns: "-"},
		{name: "variables in front", in: `A=1 B_2="x y" C= npx -y @acme/foo`, want: `[{"name":"foo","command":"npx","args":["-y","@acme/foo"],"env":{"A":"1","B_2":"x y","C":""}}]`, src: "explicit"},
		{name: "shell signs", in: "npx -y @acme/foo && echo", want: `[{"name":"foo","command":"npx","args":["-y","@acme/foo","&&","echo"]}]`, src: "explicit", warns: "&&"},
		{name: "quotes in words", in: `npx -y @acme/foo --a='b c'"d" "" e\ f 'g\h'`, want: `[{"name":"foo","command":"npx","args":["-y","@acme/foo","--a=b cd","","e f","g\\h"]}]`, src: "explicit"},
		{name: "open quote", in: `npx -y @acme/foo "bar`, err: "quote"},
		{name: "npx alone", in: "npx", err: "npx"},
		{name: "docker build", in: "docker build -t foo .", err: "JSON|TOML"},
		{name: "npm install", in: "npm install -g @acme/foo", err: "JSON|TOML"},
		{name: "address in angle brackets", in: "<https://h.example.com/mcp>", want: `[{"name":"h.example.com","url":"https://h.example.com/mcp"}]`, src: "explicit", warns: "-"},
		{name: "address with port and query", in: "http://127.0.0.1:9000/mcp?x=1", want: `[{"name":"127.0.0.1","url":"http://127.0.0.1:9000/mcp?x=1"}]`, src: "explicit"},
		{name: "address of IPv6", in: "http://[::1]:9000/mcp", want: `[{"name":"::1","url":"http://[::1]:9000/mcp"}]`, src: "explicit"},
		{name: "address ends in sse", in: "https://h.example.com/sse", want: `[{"name":"h.example.com","url":"https://h.example.com/sse"}]`, src: "explicit", warns: "sse"},
		{name: "address without host", in: "https://", err: "http://"},
		{name: "address with a hole for a host", in: "https://${HOST}/mcp", err: "name"},
		{name: "WebSocket address", in: "wss://h.example.com/mcp", err: "wss://h.example.com/mcp|WebSocket"},
		{name: "host without scheme", in: "h.example.com/mcp", err: "h.example.com/mcp|http://"},
		{name: "GitHub without scheme", in: "github.com/acme/foo", err: "GitHub"},
		{name: "GitHub with www", in: "https://www.GitHub.com/acme/foo.git", err: "GitHub"},
		{name: "GitHub over ssh", in: "git@github.com:acme/foo.git", err: "GitHub"},
		{name: "host that only starts like GitHub", in: "https://github.com.example.com/mcp", want: `[{"name":"github.com.example.com","url":"https://github.com.example.com/mcp"}]`, src: "explicit"},
		{name: "XML", in: "<?xml version=\"1.0\"?><a/>", err: "HTML"},
		{name: "HTML comment", in: "  <!-- x --> {}", err: "HTML"},
		{name: "YAML list", in: "- name: a\n  command: x\n", err: "YAML"},
		{name: "YAML document mark", in: "---\nmcpServers: {}\n", err: "YAML"},
		{name: "YAML with a run line in it", in: "steps:\n  run: |\n    npx -y @acme/foo\n  shell: bash\n", err: "YAML"},
		{name: "TOML without servers", in: "[tool.poetry]\nname = \"x\"\n", err: "mcp_servers"},
		{name: "TOML syntax", in: "[mcp_servers.a]\ncommand = \"x\nargs = []\n", err: "TOML|line 2"},
		{name: "TOML key without value", in: "a = 1\nb =\n", err: "TOML|line 2"},
		{name: "TOML duplicate", in: "[mcp_servers.a]\ncommand = \"x\"\ncommand = \"y\"\n", err: "TOML|line 3"},
		{name: "TOML empty table", in: "[mcp_servers]\n", err: "mcp_servers"},
		{name: "TOML camel case", in: "[mcpServers.a]\ncommand = \"x\"\nincludeTools = [\"t\"]\n", want: `[{"name":"a","command":"x","allow":["t"]}]`, src: "config-toml"},
		{name: "TOML both tables", in: "[mcp_servers.a]\ncommand = \"x\"\n[mcpServers.b]\ncommand = \"y\"\n", want: `[{"name":"a","command":"x"},{"name":"b","command":"y"}]`, src: "config-toml", notes: "mcp_servers|mcpServers"},
		{name: "TOML text with a run line", in: "[mcp_servers.a]\ncommand = \"bash\"\nargs = [\"-c\", '''\nnpx -y @acme/foo\n''']\n", want: `[{"name":"a","command":"bash","args":["-c","npx -y @acme/foo\n"]}]`, src: "config-toml"},
		{name: "TOML one bad of two", in: "[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.b]\nenabled = true\n", want: `[{"name":"a","command":"x"}]`, src: "config-toml", warns: "b|command|url"},
		{name: "TOML long number", in: "[mcp_servers.a]\ncommand = \"x\"\nenv = { N = 1_000_000, F = 1.50, H = 0xff }\n", want: `[{"name":"a","command":"x","env":{"N":"1000000","F":"1.50","H":"0xff"}}]`, src: "config-toml", notes: "N|F|H"},
		{name: "TOML body with name", in: "name = \"a\"\nurl = \"https://h.example.com/mcp\"\n", want: `[{"name":"a","url":"https://h.example.com/mcp"}]`, src: "config-toml"},
		{name: "block never closed", in: "Use:\n\n```json\n{\"a\": {\"command\": \"x\"}}\n", want: `[{"name":"a","command":"x"}]`, notes: "code block"},
		{name: "block in a list item", in: "1. Add\n\n   - ```json\n     {\"a\": {\"command\": \"x\"}}\n     ```\n", want: `[{"name":"a","command":"x"}]`},
		{name: "block in a quotation", in: "> ```json\n> {\"a\":\n>  {\"command\": \"x\"}}\n> ```\n", want: `[{"name":"a","command":"x"}]`},
		{name: "block of tildes", in: "~~~\n{\"a\": {\"command\": \"x\"}}\n~~~\n", want: `[{"name":"a","command":"x"}]`},
		{name: "text right behind the fence", in: "```{\"a\":\n{\"command\": \"x\"}}```", want: `[{"name":"a","command":"x"}]`},
		{name: "text right before the fence too", in: "```{\"a\":\n{\"command\": \"x\"}}``` like this\nthanks", want: `[{"name":"a","command":"x"}]`},
		{name: "block on one line", in: "Use ```npx``` or\n```{\"a\": {\"command\": \"x\"}}```\nthanks", want: `[{"name":"a","command":"x"}]`},
		{name: "longer fence outside", in: "````md\n```json\n{}\n```\n````\n\n```json\n{\"a\": {\"command\": \"x\"}}\n```\n", want: `[{"name":"a","command":"x"}]`},
		{name: "TOML block before shell block", in: "```sh\nnpx -y @acme/foo\n```\n\n```toml\n[mcp_servers.a]\ncommand = \"x\"\n```\n", want: `[{"name":"a","command":"x"}]`, src: "config-toml", notes: "code block|first"},
		{name: "shell block alone", in: "Run\n```sh\nnpm i\nnpx -y @acme/foo\n```\n", want: foo, src: "explicit", notes: "code block|command line"},
		{name: "broken block before a good one", in: "```json\n{\"a\": \n```\n```json\n{\"b\": {\"command\": \"x\"}}\n```\n", want: `[{"name":"b","command":"x"}]`, notes: "first"},
		{name: "line of a broken block", in: "# Title\n\n```json\n{\n \"a\": {\"command\" \"x\"}\n}\n```\n", err: "JSON|line 5"},
		{name: "line of a broken TOML block", in: "text\n```toml\n[mcp_servers.a]\ncommand = x\n```\n", err: "TOML|line 4"},
		{name: "blocks without servers", in: "```\nls -l\n```\n", err: "code block"},
	})
}
