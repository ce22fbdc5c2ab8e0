//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// peersDoor is tai as a server over HTTP. key is "" where none is needed.
type peersDoor struct {
	name, url, key string
	server         *peersDaemon
}

// door starts tai with these words, which make it serve over HTTP and say where as JSON.
func (h *peersHome) door(t *testing.T, name, key string, words ...string) peersDoor {
	t.Helper()
	server := h.start(t, []string{"PEER_KEY=" + key}, h.tai, append(words, "--json")...)
	server.await(t, "\n")
	var at struct{ URL string }
	if !peersAwait(peersLimit, func() bool { return strings.HasSuffix(server.out.String(), "\n") }) || json.Unmarshal([]byte(server.out.String()), &at) != nil || at.URL == "" {
		t.Fatalf("no address: %s%s", server.out.String(), server.err.String())
	}
	return peersDoor{name, at.URL, key, server}
}

// owner is tai --serve-mcp in a mode that changes nothing.
func (h *peersHome) owner(t *testing.T) peersDoor {
	t.Helper()
	return h.door(t, "--serve-mcp", peersKey, "--serve-mcp", "env:PEER_KEY", "--mcp-port", "0", "--permission-mode", "read-only")
}

// governed is tai mcp serve --http, with a token if key is one.
func (h *peersHome) governed(t *testing.T, key string) peersDoor {
	t.Helper()
	words := []string{"mcp", "serve", "--http", "--port", "0", "--root", h.work}
	if key != "" {
		words = append(words, "--auth-token", "env:PEER_KEY")
	}
	return h.door(t, "mcp serve --http", key, words...)
}

// ends has the server end and wants that it came to its end by itself.
func (d peersDoor) ends(t *testing.T) {
	t.Helper()
	d.server.end(t)
	if got := d.server.cmd.ProcessState.ExitCode(); got != 0 {
		t.Errorf("%s ended with %d: %s", d.name, got, d.server.err.String())
	}
}

func (h *peersHome) note(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.work, "note.txt"), []byte("the kettle is on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// SRV: the server scenarios of the official conformance suite that 2025-11-25 requires, against both HTTP doors. testdata/peers/conformance.yml has
// those that do not apply, each with the reason; the suite fails for any other check, and for one of them that passes.
func peersConformance(t *testing.T, p *peers) {
	const pkg = "@modelcontextprotocol/conformance"
	held := []string{"dns-rebinding-protection", "ping", "server-initialize", "server-session-lifecycle", "server-sse-multiple-streams",
		"tools-call-error", "tools-call-simple-text", "tools-list"}
	for _, tc := range []struct {
		name string
		door func(*peersHome, *testing.T) peersDoor
	}{
		{"tai --serve-mcp with a key", (*peersHome).owner},
		{"tai mcp serve --http without a token", func(h *peersHome, t *testing.T) peersDoor { return h.governed(t, "") }},
		{"tai mcp serve --http with a token", func(h *peersHome, t *testing.T) peersDoor { return h.governed(t, peersKey) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := p.newHome(t)
			h.note(t)
			d := tc.door(h, t)
			out := filepath.Join(filepath.Dir(h.work), "checks")
			r := p.newHome(t).program(t, nil, nil, p.node, p.file(t, pkg+"/dist/index.js"), "server", "--url", conformanceFront(t, d),
				"--requirements", mcpProtocolVersion, "--expected-failures", filepath.Join(p.root, "conformance.yml"), "-o", out)
			if r.code != 0 {
				t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
			}
			good, bad := conformanceChecks(t, out)
			for _, scenario := range held {
				if good[scenario] == 0 || len(bad[scenario]) > 0 {
					t.Errorf("%s: %d checks passed, want some; failed: %q", scenario, good[scenario], bad[scenario])
				}
			}
			passed := 0
			for scenario, n := range good {
				passed += n
				if slices.Contains(bad[scenario], "wire-schema-valid") {
					t.Errorf("%s: a message does not fit the schema", scenario)
				}
			}
			t.Logf("%s %s: %d checks passed, %d scenarios without a fault, %d that do not apply, %d ms", pkg, p.version(t, pkg), passed, len(good)-len(bad), len(bad), r.took.Milliseconds())
			d.ends(t)
			verifyLogs(t, filepath.Join(h.work, ".tai", "runs"))
		})
	}
}

// conformanceChecks reads what the suite wrote: for each scenario how many checks passed, and the ids of those that failed.
func conformanceChecks(t *testing.T, dir string) (good map[string]int, bad map[string][]string) {
	t.Helper()
	good, bad = map[string]int{}, map[string][]string{}
	files, err := filepath.Glob(filepath.Join(dir, "server-*", "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct{ ID, Status string }
		if err := json.Unmarshal(b, &checks); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		scenario := strings.TrimPrefix(filepath.Base(filepath.Dir(file)), "server-")
		scenario = scenario[:len(scenario)-len("-2006-01-02T15-04-05-000Z")]
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				good[scenario]++
			case "FAILURE":
				bad[scenario] = append(bad[scenario], c.ID)
			}
		}
	}
	return good, bad
}

// conformanceFront stands between the suite, which can send no key and calls tools of its own, and a door: it adds the key, and puts a tool of tai's in the
// place of two of the suite's. A Host or an Origin that names the front names the door behind it; any other is passed on as it came.
func conformanceFront(t *testing.T, d peersDoor) string {
	t.Helper()
	target, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(nil)
	_, own, _ := strings.Cut(front.Listener.Addr().String(), ":")
	behind := func(s string) string {
		return strings.ReplaceAll(s, "localhost:"+own, "localhost:"+target.Port())
	}
	front.Config.Handler = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
		r.Out.Host = behind(r.In.Host)
		if origin := r.In.Header.Get("Origin"); origin != "" {
			r.Out.Header.Set("Origin", behind(origin))
		}
		if d.key != "" {
			r.Out.Header.Set("Authorization", "Bearer "+d.key)
		}
		body, err := io.ReadAll(r.In.Body)
		if err != nil {
			t.Errorf("read what the suite sends: %v", err)
		}
		body = conformanceCall(body)
		r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Out.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}}
	front.Start()
	t.Cleanup(front.Close)
	return "http://localhost:" + own + target.Path
}

// conformanceCall has the suite's call of a tool that gives text, and of one that fails, be such calls of file_read.
func conformanceCall(body []byte) []byte {
	var m map[string]any
	if json.Unmarshal(body, &m) != nil || m["method"] != "tools/call" {
		return body
	}
	params, _ := m["params"].(map[string]any)
	path := map[any]string{"test_simple_text": "note.txt", "test_error_handling": "missing.txt"}[params["name"]]
	if path == "" {
		return body
	}
	params["name"], params["arguments"] = "file_read", map[string]any{"path": path}
	changed, err := json.Marshal(m)
	if err != nil {
		return body
	}
	return changed
}

// peersCodex sets Codex up with an entry, and with nothing that it would look for outside of this machine: a model, plugins, a newer version.
func (h *peersHome) peersCodex(t *testing.T, entry string) (env []string) {
	t.Helper()
	dir := filepath.Join(h.home, "codex")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	config := "model = \"none\"\nmodel_provider = \"none\"\ncheck_for_update_on_startup = false\n\n" + entry +
		"\n[model_providers.none]\nname = \"none\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\n[analytics]\nenabled = false\n\n[features]\nplugins = false\napps = false\nshell_snapshot = false\n"
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"CODEX_HOME=" + dir}
}

// peersListed wants that a client listed the tools and read the note.
func (h *peersHome) peersListed(t *testing.T, pkg string, env []string, name string, words ...string) {
	t.Helper()
	r := h.program(t, nil, env, name, words...)
	for _, want := range []string{`"file_read"`, "the kettle is on"} {
		if r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("exit %d, want %q in %s%s", r.code, want, r.out, r.err)
		}
	}
	h.noneLeft(t, 5*time.Second) // a client may leave what it started a moment longer than itself
	t.Logf("%s: %d ms", pkg, r.took.Milliseconds())
}

// SRV: the official Go SDK, mcp-go, Codex and mcp-remote list and call over the HTTP doors and, but for mcp-remote, over stdio.
func peersMore(t *testing.T, p *peers) {
	h := p.newHome(t)
	h.note(t)
	codex, remote := "@openai/codex "+p.version(t, "@openai/codex"), "mcp-remote "+p.version(t, "mcp-remote")
	for _, d := range []peersDoor{h.owner(t), h.governed(t, peersKey)} {
		for _, c := range []string{"sdk", "mcp-go"} {
			t.Run(d.name+", Go, "+c, func(t *testing.T) {
				p.newHome(t).peersListed(t, c, nil, p.goClients, c, d.url, d.key)
			})
		}
		t.Run(d.name+", Codex", func(t *testing.T) {
			client := p.newHome(t)
			env := client.peersCodex(t, h.must(t, "mcp", "config", "codex", "--url", d.url, "--key", "PEER_KEY"))
			client.peersListed(t, codex, append(env, "PEER_KEY="+d.key), p.node, filepath.Join(p.root, "codex-client.mjs"), clientEntryName)
		})
		t.Run(d.name+", mcp-remote", func(t *testing.T) {
			p.newHome(t).peersListed(t, remote, nil, p.node, filepath.Join(p.root, "sdk-client.mjs"), "v1", p.node, p.file(t, ".bin/mcp-remote"), d.url,
				"--transport", "http-only", "--header", "Authorization:Bearer "+d.key)
		})
		d.ends(t)
	}
	w := p.newHome(t)
	w.note(t)
	for _, c := range []string{"sdk", "mcp-go"} {
		t.Run("stdio, Go, "+c, func(t *testing.T) {
			w.peersListed(t, c, nil, p.goClients, c, w.tai, "mcp", "serve", "--root", w.work)
		})
	}
	t.Run("stdio, Codex", func(t *testing.T) {
		env := w.peersCodex(t, w.must(t, "mcp", "config", "codex", "--root", w.work))
		w.peersListed(t, codex, env, p.node, filepath.Join(p.root, "codex-client.mjs"), clientEntryName)
	})
	for _, dir := range []string{h.work, w.work} {
		verifyLogs(t, filepath.Join(dir, ".tai", "runs"))
	}
}

// What tai mcp config prints is what apps start: the entry of each app, read back, lists and calls; the official inspector and mcporter take the entries
// from a file as they stand, with the key as the reference that the entry has; and the one for Claude Desktop goes by mcp-remote.
func peersEntries(t *testing.T, p *peers) {
	h := p.newHome(t)
	h.note(t)
	var doc struct{ Apps []clientJSON }
	if err := json.Unmarshal([]byte(h.must(t, "mcp", "config", "--json")), &doc); err != nil || len(doc.Apps) != len(clientApps()) {
		t.Fatalf("%d apps, %v", len(doc.Apps), err)
	}
	for _, a := range doc.Apps {
		t.Run(a.App+", its command", func(t *testing.T) {
			file := h.entryFile(t, a.App, "--root", h.work)
			var entry struct {
				Command string
				Args    []string
			}
			if err := json.Unmarshal([]byte(h.must(t, "mcp", "normalize", file)), &entry); err != nil {
				t.Fatal(err)
			}
			h.peersListed(t, "Go SDK", nil, p.goClients, append([]string{"sdk", entry.Command}, entry.Args...)...)
		})
	}
	d := h.owner(t)
	inspector, porter := "@modelcontextprotocol/inspector", "mcporter"
	inspect := func(file string, words ...string) []string {
		return append([]string{p.file(t, ".bin/mcp-inspector"), "--cli", "--config", file, "--server", clientEntryName, "--format", "json", "-q"}, words...)
	}
	own, reached := h.entryFile(t, "claude-code", "--root", h.work), h.entryFile(t, "claude-code", "--url", d.url, "--key", "PEER_KEY")
	read := `{"path":"note.txt"}`
	for _, tc := range []struct {
		name, pkg, want string
		words           []string
	}{
		{"inspector lists by the command", inspector, `"file_read"`, inspect(own, "--method", "tools/list")},
		{"inspector calls by the command", inspector, "the kettle is on", inspect(own, "--method", "tools/call", "--tool-name", "file_read", "--tool-args-json", read)},
		{"mcporter lists by the command", porter, `"file_read"`, []string{p.file(t, ".bin/mcporter"), "--config", own, "list", clientEntryName, "--json"}},
		{"mcporter calls by the command", porter, "the kettle is on", []string{p.file(t, ".bin/mcporter"), "--config", own, "call", clientEntryName + ".file_read", "--args", read, "--output", "json"}},
		{"mcporter lists by the address", porter, `"file_read"`, []string{p.file(t, ".bin/mcporter"), "--config", reached, "list", clientEntryName, "--json"}},
		{"mcporter calls by the address", porter, "the kettle is on", []string{p.file(t, ".bin/mcporter"), "--config", reached, "call", clientEntryName + ".file_read", "--args", read, "--output", "json"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := h.program(t, nil, []string{"MCP_INSPECTOR_SECRET_STORE=memory", "PEER_KEY=" + d.key}, p.node, tc.words...)
			if r.code != 0 || !strings.Contains(r.out, tc.want) {
				t.Errorf("exit %d, want %q in %s%s", r.code, tc.want, r.out, r.err)
			}
			t.Logf("%s %s: %d ms", tc.pkg, p.version(t, tc.pkg), r.took.Milliseconds())
		})
	}
	t.Run("Claude Desktop's bridge to the address", func(t *testing.T) {
		b, err := os.ReadFile(h.entryFile(t, "claude-desktop", "--url", d.url))
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Servers map[string]struct {
				Args []string
				Env  map[string]string
			} `json:"mcpServers"`
		}
		if err := json.Unmarshal(bytes.ReplaceAll(b, []byte(clientKeyHere), []byte(d.key)), &file); err != nil {
			t.Fatal(err)
		}
		entry := file.Servers[clientEntryName]
		if len(entry.Args) < 3 || entry.Args[1] != "mcp-remote" {
			t.Fatalf("entry %s", b)
		}
		var env []string
		for name, value := range entry.Env {
			env = append(env, name+"="+value)
		}
		words := append([]string{filepath.Join(p.root, "sdk-client.mjs"), "v1", p.node, p.file(t, ".bin/mcp-remote")}, entry.Args[2:]...)
		p.newHome(t).peersListed(t, "mcp-remote "+p.version(t, "mcp-remote"), env, p.node, words...)
	})
	d.ends(t)
	verifyLogs(t, filepath.Join(h.work, ".tai", "runs"))
}

// entryFile writes what tai mcp config prints for an app to a file of its own.
func (h *peersHome) entryFile(t *testing.T, app string, words ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), app)
	if err := os.WriteFile(file, []byte(h.must(t, append([]string{"mcp", "config", app}, words...)...)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
