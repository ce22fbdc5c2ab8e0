//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// peersTerminal is tai on a terminal of its own.
type peersTerminal struct {
	*termPty
	cmd *exec.Cmd
}

// onTerminal starts tai with a terminal for all three streams.
func (h *peersHome) onTerminal(t *testing.T, env []string, words ...string) *peersTerminal {
	t.Helper()
	p := &peersTerminal{newTermPty(t), exec.Command(h.tai, words...)}
	p.cmd.Dir, p.cmd.Env = h.work, append(h.env[:len(h.env):len(h.env)], env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = p.slave, p.slave, p.slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.cmd.Process.Kill()
			p.cmd.Wait()
		}
	})
	return p
}

// shows waits, as long as a peer may take, until the screen shows that.
func (p *peersTerminal) shows(s string) {
	p.t.Helper()
	buf := make([]byte, 4096)
	if err := p.master.SetReadDeadline(time.Now().Add(peersLimit)); err != nil {
		p.t.Fatal(err)
	}
	for !strings.Contains(p.screen.String()[p.seen:], s) {
		n, err := p.master.Read(buf)
		if err != nil {
			p.t.Fatalf("screen shows %q, want %q: %v", p.screen.Bytes()[p.seen:], s, err)
		}
		p.screen.Write(buf[:n])
	}
	p.seen += strings.Index(p.screen.String()[p.seen:], s) + len(s)
}

// finish reads the screen until tai has ended, wants that exit code, and gives all that was shown.
func (p *peersTerminal) finish(t *testing.T, code int) string {
	t.Helper()
	p.slave.Close() // so that the last one to have it open is tai
	if err := p.master.SetReadDeadline(time.Now().Add(peersLimit)); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(p.master)
	p.screen.Write(rest)
	if err != nil && !strings.Contains(err.Error(), syscall.EIO.Error()) { // EIO: nobody has the other side open any more
		t.Fatalf("screen shows %q: %v", p.screen.String(), err)
	}
	p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit %d, want %d: %q", got, code, p.screen.String())
	}
	return p.screen.String()
}

// peersKey is what the clients of these tests call with; it opens nothing outside of one test.
const peersKey = "peer-test-key-0123456789"

// SRV: real clients list the tools of tai --serve-mcp and of tai mcp serve --http and read a file through them, each with the key that its person
// gave it.
func peersClients(t *testing.T, p *peers) {
	h := p.newHome(t)
	h.note(t)
	for _, d := range []peersDoor{h.owner(t), h.governed(t, peersKey)} {
		t.Run(d.name, func(t *testing.T) {
			peersClientsAt(t, p, d)
		})
	}
	verifyLogs(t, filepath.Join(h.work, ".tai", "runs"))
}

func peersClientsAt(t *testing.T, p *peers, at peersDoor) {
	inspector := func(words ...string) []string {
		return append([]string{p.file(t, ".bin/mcp-inspector"), "--cli", at.url, "--transport", "http", "--header", "Authorization: Bearer " + peersKey, "--stored-auth-only", "--format", "json", "-q"}, words...)
	}
	porter := func(verb string, words ...string) []string {
		return append([]string{p.file(t, ".bin/mcporter"), verb, "--http-url", at.url, "--allow-http", "--header", "Authorization=Bearer " + peersKey}, words...)
	}
	sdk := func(generation string) []string {
		return []string{filepath.Join(p.root, "sdk-client.mjs"), generation, at.url, peersKey}
	}
	read := `{"path":"note.txt"}`
	for _, tc := range []struct {
		name, pkg string
		words     []string
		want      []string
	}{
		{"inspector lists", "@modelcontextprotocol/inspector", inspector("--method", "tools/list"), []string{`"file_read"`, `"inputSchema"`}},
		{"inspector calls", "@modelcontextprotocol/inspector", inspector("--method", "tools/call", "--tool-name", "file_read", "--tool-args-json", read), []string{"the kettle is on"}},
		{"mcporter lists", "mcporter", porter("list", "--json"), []string{`"file_read"`}},
		{"mcporter calls", "mcporter", porter("call", "--tool", "file_read", "--args", read, "--output", "json"), []string{"the kettle is on"}},
		{"TypeScript SDK, first generation", "@modelcontextprotocol/sdk", sdk("v1"), []string{`"file_read"`, "the kettle is on"}},
		{"TypeScript SDK, second generation, probing first", "@modelcontextprotocol/client", sdk("v2"), []string{`"file_read"`, "the kettle is on"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client := p.newHome(t)
			r := client.program(t, nil, []string{"MCP_INSPECTOR_SECRET_STORE=memory"}, p.node, tc.words...)
			for _, want := range tc.want {
				if r.code != 0 || !strings.Contains(r.out, want) {
					t.Errorf("exit %d, want %q in %s%s", r.code, want, r.out, r.err)
				}
			}
			t.Logf("%s %s: %d ms", tc.pkg, p.version(t, tc.pkg), r.took.Milliseconds())
		})
	}
	at.ends(t)
}

// SRV: the same clients start tai mcp serve over stdio, list, call, and are refused what changes something; each run has a log that is whole.
func peersGoverned(t *testing.T, p *peers) {
	h := p.newHome(t)
	h.note(t)
	serve := []string{h.tai, "mcp", "serve", "--root", h.work}
	inspector := func(words ...string) []string {
		return append(append([]string{p.file(t, ".bin/mcp-inspector"), "--cli", "--format", "json", "-q"}, words...), append([]string{"--"}, serve...)...)
	}
	porter := func(verb string, words ...string) []string {
		return append([]string{p.file(t, ".bin/mcporter"), verb, "--stdio", strings.Join(serve, " ")}, words...)
	}
	sdk := func(generation string) []string {
		return append([]string{filepath.Join(p.root, "sdk-client.mjs"), generation}, serve...)
	}
	read, write := `{"path":"note.txt"}`, `{"path":"made.txt","content":"x"}`
	for _, tc := range []struct {
		name, pkg string
		words     []string
		want      []string
		fails     bool
	}{
		{"inspector lists", "@modelcontextprotocol/inspector", inspector("--method", "tools/list"), []string{`"file_read"`, `"inputSchema"`}, false},
		{"inspector calls", "@modelcontextprotocol/inspector", inspector("--method", "tools/call", "--tool-name", "file_read", "--tool-args-json", read), []string{"the kettle is on"}, false},
		{"inspector is refused", "@modelcontextprotocol/inspector", inspector("--method", "tools/call", "--tool-name", "file_write", "--tool-args-json", write), []string{"nobody to ask"}, true},
		{"mcporter lists", "mcporter", porter("list", "--json"), []string{`"file_read"`}, false},
		{"mcporter calls", "mcporter", porter("call", "--tool", "file_read", "--args", read, "--output", "json"), []string{"the kettle is on"}, false},
		{"TypeScript SDK, first generation", "@modelcontextprotocol/sdk", sdk("v1"), []string{`"file_read"`, "the kettle is on"}, false},
		{"TypeScript SDK, second generation, probing first", "@modelcontextprotocol/client", sdk("v2"), []string{`"file_read"`, "the kettle is on"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := h.program(t, nil, []string{"MCP_INSPECTOR_SECRET_STORE=memory"}, p.node, tc.words...)
			for _, want := range tc.want {
				if (r.code != 0) != tc.fails || !strings.Contains(r.out+r.err, want) {
					t.Errorf("exit %d, want %q in %s%s", r.code, want, r.out, r.err)
				}
			}
			t.Logf("%s %s: %d ms", tc.pkg, p.version(t, tc.pkg), r.took.Milliseconds())
		})
	}
	if _, err := os.Stat(filepath.Join(h.work, "made.txt")); err == nil {
		t.Error("a refused call wrote a file")
	}
	verifyLogs(t, filepath.Join(h.work, ".tai", "runs"))
}

// peersModel starts a scripted OpenAI-compatible endpoint and gives its address.
func (h *peersHome) peersModel(t *testing.T, fixtures []map[string]any) string {
	t.Helper()
	doc, err := json.Marshal(map[string]any{"fixtures": fixtures})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(h.work), "model.json")
	if err := os.WriteFile(file, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	port := peersPort(t)
	h.start(t, nil, h.node, h.file(t, "@copilotkit/aimock/dist/cli.js"), "-p", strconv.Itoa(port), "-f", file, "--strict", "--log-level", "warn").listens(t, port)
	return fmt.Sprintf("http://127.0.0.1:%d", port)
}

// peersJournal gives what the mock received, as JSON.
func peersJournal(t *testing.T, base string) []byte {
	t.Helper()
	resp, err := http.Get(base + "/__aimock/journal")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// peersSent gives the messages of the requests that the model got, oldest first.
func peersSent(t *testing.T, base string) [][]peersMessage {
	t.Helper()
	body := peersJournal(t, base)
	var entries []struct {
		Body struct{ Messages []peersMessage }
	}
	if err := json.Unmarshal(body, &entries); err != nil {
		t.Fatalf("%v: %s", err, clip(string(body), 500))
	}
	var all [][]peersMessage
	for _, e := range entries {
		all = append(all, e.Body.Messages)
	}
	return all
}

type peersMessage struct {
	Role    string
	Content any
}

// toolResults gives what the tools said in the last request.
func toolResults(sent [][]peersMessage) (texts []string) {
	if len(sent) == 0 {
		return nil
	}
	for _, m := range sent[len(sent)-1] {
		if m.Role == "tool" {
			texts = append(texts, fmt.Sprint(m.Content))
		}
	}
	return texts
}

// AGT: one turn with a scripted model reads a real file, asks before it calls a bridged tool, and answers. Nobody to ask is a
// refusal that names the way, and --auto is that way.
func peersAgent(t *testing.T, p *peers) {
	h := p.newHome(t)
	shared := filepath.Join(h.work, "shared")
	if err := os.Mkdir(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{filepath.Join(h.work, "note.txt"): "the kettle is on\n", filepath.Join(shared, "tea.txt"): "two spoons of leaves\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.add(t, peersServer{name: "files", bin: "mcp-server-filesystem", args: []string{"DIR/shared"}})
	call := func(name, args string) map[string]any {
		return map[string]any{"toolCalls": []any{map[string]any{"name": name, "arguments": args}}}
	}
	base := h.peersModel(t, []map[string]any{
		{"match": map[string]any{"toolResultContains": "two spoons"}, "response": map[string]any{"content": "Put two spoons in: the kettle is on."}},
		{"match": map[string]any{"toolResultContains": "refused"}, "response": map[string]any{"content": "I was not let."}},
		{"match": map[string]any{"toolResultContains": "the kettle is on"}, "response": call("mcp_files_read_text_file", `{"path":"`+filepath.Join(shared, "tea.txt")+`"}`)},
		{"match": map[string]any{"userMessage": "make tea", "hasToolResult": false}, "response": call("file_read", `{"path":"note.txt"}`)},
	})
	env := []string{"TAI_BASE_URL=" + base + "/v1", "TAI_MODEL=scripted"}
	const answer = "Put two spoons in: the kettle is on."

	t.Run("asked on a terminal", func(t *testing.T) {
		p := h.onTerminal(t, env, "make tea from the notes")
		p.shows("files") // the consent names server and tool
		p.shows("tea.txt")
		p.shows("your answer (")
		p.keys("y\n")
		p.shows(answer)
		p.finish(t, 0)
		if got := toolResults(peersSent(t, base)); len(got) != 2 || !strings.Contains(got[0], "the kettle is on") || !strings.Contains(got[1], "two spoons of leaves") {
			t.Errorf("the model was told %q", got)
		}
	})
	t.Run("said no to", func(t *testing.T) {
		p := h.onTerminal(t, env, "make tea from the notes")
		p.shows("your answer (")
		p.keys("n\n")
		p.shows("I was not let.")
		p.finish(t, 0)
	})
	t.Run("nobody to ask", func(t *testing.T) {
		r := h.program(t, nil, env, h.tai, "make tea from the notes")
		if r.code != 0 || !strings.Contains(r.out, "I was not let.") || !strings.Contains(r.err, "--auto") || strings.Contains(r.out, answer) {
			t.Errorf("exit %d, %q, %q", r.code, r.out, r.err)
		}
		if got := toolResults(peersSent(t, base)); len(got) != 2 || strings.Contains(got[1], "two spoons") {
			t.Errorf("the model was told %q", got)
		}
	})
	t.Run("with --auto", func(t *testing.T) {
		r := h.program(t, nil, env, h.tai, "--auto", "make tea from the notes")
		if r.code != 0 || !strings.Contains(r.out, answer) {
			t.Errorf("exit %d, %q, %q", r.code, r.out, r.err)
		}
	})
	t.Run("with --auto and --json", func(t *testing.T) {
		r := h.program(t, nil, env, h.tai, "--auto", "--json", "make tea from the notes")
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		var last struct{ Event, Text string }
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || r.code != 0 || last.Event != "turn_completed" || last.Text != answer {
			t.Errorf("exit %d, %v, %q, %q", r.code, err, r.out, r.err)
		}
	})
}
