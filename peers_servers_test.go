//go:build linux

package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// peersServer is one third-party server: its package, the file that is its program, and the tools it must give.
type peersServer struct {
	name, pkg, bin string
	args           []string // DIR and PORT stand for an empty folder and a free port
	env            []string
	granted        int
	overCap        int
	unusable       int
	header         string // what an HTTP server wants
	host           string // how it is spoken of, 127.0.0.1 if empty
	serverEnv      []string
}

func peersServers() []peersServer {
	return []peersServer{
		{name: "everything", pkg: "@modelcontextprotocol/server-everything", bin: "mcp-server-everything", granted: 12, unusable: 1}, // one is a task only
		{name: "filesystem", pkg: "@modelcontextprotocol/server-filesystem", bin: "mcp-server-filesystem", args: []string{"DIR"}, granted: 14},
		{name: "memory", pkg: "@modelcontextprotocol/server-memory", bin: "mcp-server-memory", env: []string{"MEMORY_FILE_PATH=DIR/memory.jsonl"}, granted: 9},
		{name: "sequential-thinking", pkg: "@modelcontextprotocol/server-sequential-thinking", bin: "mcp-server-sequential-thinking", granted: 1},
		{name: "notion", pkg: "@notionhq/notion-mcp-server", bin: "notion-mcp-server", env: []string{"NOTION_TOKEN=dummy"}, granted: 24}, // $ref and $defs in each schema
		{name: "context7", pkg: "@upstash/context7-mcp", bin: "context7-mcp", granted: 2},
		{name: "github", pkg: "@modelcontextprotocol/server-github", bin: "mcp-server-github", env: []string{"GITHUB_PERSONAL_ACCESS_TOKEN=dummy"}, granted: 26}, // answers 2024-11-05
		{name: "postgres", pkg: "@modelcontextprotocol/server-postgres", bin: "mcp-server-postgres", args: []string{"postgresql://127.0.0.1:1/x"}, granted: 1},
		{name: "gitlab", pkg: "@modelcontextprotocol/server-gitlab", bin: "mcp-server-gitlab", env: []string{"GITLAB_PERSONAL_ACCESS_TOKEN=dummy"}, granted: 9}, // schemas without a type
		{name: "zereight-gitlab", pkg: "@zereight/mcp-gitlab", bin: "mcp-gitlab", env: []string{"GITLAB_PERSONAL_ACCESS_TOKEN=dummy", "GITLAB_API_URL=http://127.0.0.1:1/api/v4"}, granted: 100, overCap: 18},
		{name: "eslint", pkg: "@eslint/mcp", bin: "@eslint/mcp/src/mcp-cli.js", granted: 1},
		{name: "playwright", pkg: "@playwright/mcp", bin: "playwright-mcp", args: []string{"--headless"}, granted: 25},
		{name: "chrome-devtools", pkg: "chrome-devtools-mcp", bin: "chrome-devtools-mcp", args: []string{"--headless", "--no-usage-statistics"},
			env: []string{"CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS=1"}, granted: 32}, // else it starts daemons of its own
		{name: "drawio", pkg: "@drawio/mcp", bin: "drawio-mcp", granted: 7},
		{name: "code-runner", pkg: "mcp-server-code-runner", bin: "mcp-server-code-runner", granted: 1}, // noise on its standard output
	}
}

func peersHTTPServers() []peersServer {
	return []peersServer{
		{name: "everything", pkg: "@modelcontextprotocol/server-everything", bin: "mcp-server-everything", args: []string{"streamableHttp"}, serverEnv: []string{"PORT=PORT"}, granted: 12, unusable: 1},
		{name: "notion", pkg: "@notionhq/notion-mcp-server", bin: "notion-mcp-server", args: []string{"--transport", "http", "--host", "127.0.0.1", "--port", "PORT", "--auth-token", "dummykey"},
			serverEnv: []string{"NOTION_TOKEN=dummy"}, header: "Authorization: Bearer dummykey", granted: 24},
		{name: "context7", pkg: "@upstash/context7-mcp", bin: "context7-mcp", args: []string{"--transport", "http", "--port", "PORT"}, granted: 2},
		{name: "playwright", pkg: "@playwright/mcp", bin: "playwright-mcp", args: []string{"--headless", "--host", "127.0.0.1", "--port", "PORT"}, host: "localhost", granted: 25}, // refuses any other Host
	}
}

func (s peersServer) program(t *testing.T, p *peers) string {
	t.Helper()
	if strings.Contains(s.bin, "/") {
		return p.file(t, s.bin)
	}
	return p.file(t, ".bin/"+s.bin)
}

func peersFill(words []string, pairs ...string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.NewReplacer(pairs...).Replace(w)
	}
	return out
}

// add brings the server in over stdio, as a person would.
func (h *peersHome) add(t *testing.T, s peersServer) peersRun {
	t.Helper()
	words := []string{"mcp", "add", s.name, "--yes"}
	for _, kv := range peersFill(s.env, "DIR", h.work) {
		words = append(words, "--env", kv)
	}
	words = append(append(words, "--", h.node, s.program(t, h.peers)), peersFill(s.args, "DIR", h.work)...)
	r := h.run(t, nil, words...)
	if strings.Contains(r.err, "MCP_CONNECT_TIMEOUT") { // a program of many files, read from a cold disk by a busy machine: they are in memory now
		t.Logf("%s was too slow once: %s", s.name, r.err)
		r = h.run(t, nil, words...)
	}
	if r.code != 0 {
		t.Fatalf("tai %q: exit %d: %s%s", words, r.code, r.out, r.err)
	}
	return r
}

// serve starts the server's own HTTP mode and gives its address.
func (h *peersHome) serve(t *testing.T, s peersServer) string {
	t.Helper()
	port := peersPort(t)
	fill := []string{"DIR", h.work, "=PORT", "=" + strconv.Itoa(port), "PORT", strconv.Itoa(port)}
	env := s.serverEnv
	for i, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		env = slices.Clone(env)
		env[i] = name + "=" + peersFill([]string{value}, fill...)[0]
	}
	h.start(t, env, h.node, append([]string{s.program(t, h.peers)}, peersFill(s.args, fill...)...)...).listens(t, port)
	return fmt.Sprintf("http://%s:%d/mcp", cmp.Or(s.host, "127.0.0.1"), port)
}

// counts wants the server's tools in the states that are known of it.
func (h *peersHome) counts(t *testing.T, s peersServer) peersTools {
	t.Helper()
	list, got := h.tools(t, s.name)
	want := map[string]int{"granted": s.granted, "over-cap": s.overCap, "unusable": s.unusable}
	maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
	if !maps.Equal(got, want) {
		t.Errorf("tools = %v, want %v", got, want)
	}
	return list
}

// STD-01, LST-01: each server is added by its command line and gives the tools that it is known for; each ends with tai.
func peersStdio(t *testing.T, p *peers) {
	for _, s := range peersServers() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h := p.newHome(t)
			added := h.add(t, s)
			h.noneLeft(t, 0)
			list := h.counts(t, s)
			for _, tool := range list.Tools {
				if len(tool.InputSchema) == 0 || !strings.HasPrefix(tool.Name, "mcp_") || len(tool.Name) > 64 {
					t.Errorf("tool %q has name %q and schema %s", tool.Tool, tool.Name, tool.InputSchema)
				}
			}
			t.Logf("stdio %s %s: %d tools, added in %d ms", s.name, p.version(t, s.pkg), len(list.Tools), added.took.Milliseconds())
		})
	}
}

// HTC-01: the same over Streamable HTTP, with a key where the server wants one; a wrong key is exit 4 or 1, and nothing is stored as enabled.
func peersHTTP(t *testing.T, p *peers) {
	for _, s := range peersHTTPServers() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h := p.newHome(t)
			url := h.serve(t, s)
			words := []string{"mcp", "add", s.name, url, "--yes"}
			if s.header != "" {
				if r := h.run(t, nil, append(words, "--header", s.header+"x")...); r.code != exitFailed && r.code != exitLogin || r.err == "" {
					t.Errorf("a wrong key gives exit %d: %s%s", r.code, r.out, r.err)
				}
				words = append(words, "--header", s.header)
			}
			begin := time.Now()
			h.must(t, words...)
			took := time.Since(begin)
			list := h.counts(t, s)
			t.Logf("http %s %s: %d tools, added in %d ms", s.name, p.version(t, s.pkg), len(list.Tools), took.Milliseconds())
		})
	}
	t.Run("code-runner", func(t *testing.T) { // answers 500 to everything after initialize
		t.Parallel()
		h := p.newHome(t)
		url := h.serve(t, peersServer{bin: "mcp-server-code-runner", args: []string{"--transport", "http", "--port", "PORT"}})
		r := h.run(t, nil, "mcp", "add", "broken", url, "--yes")
		if r.code != exitFailed || !strings.Contains(r.err, "500") {
			t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
		}
		if out := h.must(t, "mcp", "list"); strings.Contains(out, "broken") {
			t.Errorf("it was stored: %s", out)
		}
	})
}

// The words of the README, with the server's own program.
func peersFilesystem(t *testing.T, p *peers) {
	h := p.newHome(t)
	file := filepath.Join(h.work, "note.txt")
	if err := os.WriteFile(file, []byte("the kettle is on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.add(t, peersServer{name: "files", bin: "mcp-server-filesystem", args: []string{"DIR"}})
	h.filesWork(t, file)
}

// filesWork lists and calls the server named files, which serves the folder of that file, with "the kettle is on" in it.
func (h *peersHome) filesWork(t *testing.T, file string) {
	t.Helper()
	if out := h.must(t, "mcp", "tools", "files"); strings.Count(out, "\n") != 14 || !strings.Contains(out, "read_text_file  ") {
		t.Errorf("tools: %s", out)
	}
	if out := h.must(t, "mcp", "call", "files", "read_text_file", "path="+file); !strings.HasPrefix(out, "the kettle is on\n") {
		t.Errorf("call gives %q", out)
	}
	r := h.run(t, nil, "mcp", "call", "files", "read_text_file", "path=/etc/hostname")
	if r.code != exitFailed || r.out != "" || !strings.Contains(r.err, "Access denied") {
		t.Errorf("a path outside: exit %d, %q, %q", r.code, r.out, r.err)
	}
}

// npx finds the installed package by the server's working folder and so needs no registry.
func peersNpx(t *testing.T, p *peers) {
	h := p.newHome(t)
	file := filepath.Join(h.work, "note.txt")
	if err := os.WriteFile(file, []byte("the kettle is on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.must(t, "mcp", "add", "files", "--yes", "--cwd", p.root, "--env", "npm_config_offline=true", "--", "npx", "-y", "@modelcontextprotocol/server-filesystem", h.work)
	h.filesWork(t, file)
	h.noneLeft(t, 0)
}

// STD-06: what is no message on a server's standard output is told of once, when the server comes in, and reaches no output after that.
func peersNoise(t *testing.T, p *peers) {
	const noise = "running on stdio"
	h := p.newHome(t)
	s := peersServer{name: "code-runner", bin: "mcp-server-code-runner"}
	if r := h.add(t, s); strings.Contains(r.out, noise) || strings.Count(r.err, noise) != 1 || !strings.Contains(r.err, "warning: ") {
		t.Errorf("add does not tell of it once, as a warning: %s%s", r.out, r.err)
	}
	for _, words := range [][]string{
		{"mcp", "tools", "code-runner"}, {"mcp", "call", "code-runner", "run-code", "languageId=javascript", "code:=console.log(6*7)"},
	} {
		r := h.run(t, nil, words...)
		if r.code != 0 || r.out == "" || r.err != "" || strings.Contains(r.out, noise) {
			t.Errorf("tai %q: exit %d, %q, %q", words, r.code, r.out, r.err)
		}
		screen := h.onTerminal(t, nil, words...).finish(t, 0)
		if strings.Contains(screen, noise) || !strings.Contains(strings.ReplaceAll(screen, "\r", ""), strings.Split(r.out, "\n")[0]) {
			t.Errorf("tai %q on a terminal shows %q, in a pipe %q", words, screen, r.out)
		}
	}
}

// Calls over both transports: text, structured content, an image, a failed tool, a wrong argument, a state that outlives tai.
func peersCalls(t *testing.T, p *peers) {
	h := p.newHome(t)
	stdio := peersServer{name: "everything", bin: "mcp-server-everything"}
	h.add(t, stdio)
	web := peersHTTPServers()[0]
	h.must(t, "mcp", "add", "web", h.serve(t, web), "--yes")
	for _, server := range []string{"everything", "web"} {
		for _, tc := range []struct {
			words []string
			want  string
		}{
			{[]string{"echo", "message=hello there"}, "Echo: hello there"},
			{[]string{"get-sum", `{"a":5,"b":3}`}, "The sum of 5 and 3 is 8"},
			{[]string{"get-structured-content", "location=Chicago"}, `"temperature"`},
			{[]string{"get-tiny-image"}, `"mimeType":"image/png"`},
			{[]string{"trigger-long-running-operation", "duration=1", "steps=2"}, "completed"},
		} {
			if out := h.must(t, append([]string{"mcp", "call", server}, tc.words...)...); !strings.Contains(out, tc.want) {
				t.Errorf("%s %q gives %q, want %q in it", server, tc.words, clip(out, 300), tc.want)
			}
		}
		if r := h.run(t, nil, "mcp", "call", server, "get-sum", "a=x"); r.code != exitFailed || r.err == "" || r.out != "" {
			t.Errorf("%s: a wrong argument: exit %d, %q, %q", server, r.code, r.out, r.err)
		}
		if r := h.run(t, nil, "mcp", "call", server, "no-such-tool"); r.code == 0 || !strings.Contains(r.err, "no-such-tool") {
			t.Errorf("%s: an unknown tool: exit %d, %q, %q", server, r.code, r.out, r.err)
		}
	}
	h.add(t, peersServer{name: "memory", bin: "mcp-server-memory", env: []string{"MEMORY_FILE_PATH=DIR/memory.jsonl"}})
	h.must(t, "mcp", "call", "memory", "create_entities", `{"entities":[{"name":"kettle","entityType":"thing","observations":["it is on"]}]}`)
	if out := h.must(t, "mcp", "call", "memory", "read_graph"); !strings.Contains(out, "kettle") {
		t.Errorf("the next run does not know it: %s", out)
	}
	h.add(t, peersServer{name: "thinking", bin: "mcp-server-sequential-thinking"})
	if out := h.must(t, "mcp", "call", "thinking", "sequentialthinking", `{"thought":"tea","thoughtNumber":1,"totalThoughts":1,"nextThoughtNeeded":false}`); !strings.Contains(out, "thoughtNumber") {
		t.Errorf("thinking gives %s", out)
	}
}

// F08: kill -9 of tai in the middle of a call leaves no server, nor what npx started around it.
func peersKilled(t *testing.T, p *peers) {
	for _, tc := range []struct {
		name  string
		words []string
	}{
		{"node", []string{"--", p.node, p.file(t, ".bin/mcp-server-everything")}},
		{"npx", []string{"--cwd", p.root, "--env", "npm_config_offline=true", "--", "npx", "-y", "@modelcontextprotocol/server-everything"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := p.newHome(t)
			h.must(t, append([]string{"mcp", "add", "slow", "--yes"}, tc.words...)...)
			d := h.start(t, nil, h.tai, "mcp", "call", "slow", "trigger-long-running-operation", "duration=600", "steps=2")
			started := func() bool {
				logs, _ := filepath.Glob(filepath.Join(h.home, ".local", "share", "tai", "runs", "*"+auditExtension))
				return slices.ContainsFunc(logs, func(file string) bool {
					b, err := os.ReadFile(file)
					return err == nil && strings.Contains(string(b), `"tool_call_started"`) && strings.Contains(string(b), `"slow/trigger-long-running-operation"`)
				})
			}
			if !peersAwait(peersLimit, started) {
				t.Fatalf("no call started: %s%s", d.out.String(), d.err.String())
			}
			if running := h.processes(t); len(running) < 2 {
				t.Fatalf("only these run: %v", running)
			}
			if err := d.cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-d.done
			h.noneLeft(t, 5*time.Second)
		})
	}
}
