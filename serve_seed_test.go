package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestServeSeedGoverned is the checklist of what the second text says of tai mcp serve, one test a statement, in its order. Each has a
// workspace of its own.
func TestServeSeedGoverned(t *testing.T) {
	for _, st := range []struct {
		statement string
		check     func(t *testing.T, r *cliRig)
	}{
		{"stdio: one request a line on stdin, one response a line on stdout", func(t *testing.T, r *cliRig) {
			got := r.with(serveRequest("1", methodInitialize, `{"protocolVersion":"2024-11-05"}`)+"\n"+serveRequest("2", methodToolsList, `{}`)+"\n", "mcp", "serve", "--root", ".")
			lines := strings.Split(strings.TrimSuffix(got.ok(), "\n"), "\n")
			if len(lines) != 2 || string(servedMessage(t, lines[0]+"\n").ID) != "1" || string(servedMessage(t, lines[1]+"\n").ID) != "2" {
				t.Errorf("stdout: %s", got.out)
			}
		}},
		{"--http serves Streamable HTTP: POST, GET, DELETE on /mcp, Mcp-Session-Id, bearer token, loopback by default", func(t *testing.T, r *cliRig) {
			s := r.serve("mcp", "serve", "--http", "--port", "0", "--auth-token", "a-token-0123456789", "--root", ".")
			s.auth = "Bearer a-token-0123456789"
			session := s.session()
			for _, want := range []struct {
				method  string
				status  int
				headers []string
			}{{"POST", 200, nil}, {"POST", 401, []string{"Authorization: "}}, {"GET", 405, nil}, {"DELETE", 200, nil}, {"POST", 404, nil}} {
				if r := s.send(t, want.method, servePing, append([]string{session, "Authorization: " + s.auth}, want.headers...)...); r.status != want.status {
					t.Errorf("%s: %d, want %d", want.method, r.status, want.status)
				}
			}
			if !strings.HasPrefix(s.url, "http://127.0.0.1:") {
				t.Error(s.url)
			}
		}},
		{"--root is the workspace that is served and governed, by default the current folder", func(t *testing.T, r *cliRig) {
			other := t.TempDir()
			for dir, text := range map[string]string{r.dir: "here", other: "there"} {
				seedWrite(t, filepath.Join(dir, "where.txt"), text)
			}
			if text, _ := servedResult(t, r.governed().call("file_read", `{"path":"where.txt"}`)); !strings.Contains(text, "here") {
				t.Error(text)
			}
			if text, _ := servedResult(t, r.governed("--root", other).call("file_read", `{"path":"where.txt"}`)); !strings.Contains(text, "there") {
				t.Error(text)
			}
			servedLog(t, other)
		}},
		{"--permission-mode: read-only, prompt, allow, danger-full-access; by default the workspace's, else prompt", func(t *testing.T, r *cliRig) {
			if s := r.governed(); !strings.Contains(s.notice, "mode prompt") {
				t.Error(s.notice)
			}
			seedWrite(t, filepath.Join(r.dir, ".tai", "config.json"), `{"version":1,"permission_mode":"read-only"}`)
			if s := r.governed(); !strings.Contains(s.notice, "mode read-only") {
				t.Error(s.notice)
			}
			for _, mode := range []string{"read-only", "prompt", "allow", "danger-full-access"} {
				if s := r.governed("--permission-mode", mode); !strings.Contains(s.notice, "mode "+mode) {
					t.Error(s.notice)
				}
			}
		}},
		{"a workspace's wider mode counts only where a person has confirmed it", func(t *testing.T, r *cliRig) {
			seedWrite(t, filepath.Join(r.dir, ".tai", "config.json"), `{"version":1,"permission_mode":"danger-full-access"}`)
			if s := r.governed(); !strings.Contains(s.notice, "mode prompt") || !strings.Contains(s.notice, "passed over") {
				t.Error(s.notice)
			}
		}},
		{"workspace-write is refused with exit 2: it depends on a bound plan, which MCP clients cannot provide", func(t *testing.T, r *cliRig) {
			r.tai("mcp", "serve", "--permission-mode", "workspace-write").fails(exitUsage, "bound plan, which MCP clients cannot provide")
		}},
		{"--approve-scoped TOOL:SHA256 preapproves one exact call, may be repeated; the digest is that of tai approval digest", func(t *testing.T, r *cliRig) {
			var words []string
			for _, name := range []string{"a", "b"} {
				digest := cliJSON[struct{ Digest string }](r.tai("tools", "digest", "file_write", fmt.Sprintf(`{"path":%q,"content":"x"}`, name), "--json")).Digest
				words = append(words, "--approve-scoped", "file_write:"+digest)
			}
			s := r.governed(words...)
			for _, name := range []string{"a", "b", "c"} {
				m := s.call("file_write", fmt.Sprintf(`{"content":"x","path":%q}`, name))
				if allowed := m.Error == nil; allowed != (name != "c") {
					t.Errorf("%s: %s %+v", name, m.Result, m.Error)
				}
			}
		}},
		{"initialize: protocolVersion, capabilities {tools:{}}, serverInfo {name, version}", func(t *testing.T, r *cliRig) {
			want := fmt.Sprintf(`{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"tai","version":%q}}`, version)
			if m := r.serve("mcp", "serve").ask("1", methodInitialize, `{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`); string(m.Result) != want {
				t.Errorf("%s, want %s", m.Result, want)
			}
		}},
		{"tools/list: name, description, inputSchema and annotations with the four hints of the local tools", seedList},
		{"tools/call: one text, which is the JSON of the result, and isError false", func(t *testing.T, r *cliRig) {
			seedWrite(t, filepath.Join(r.dir, "a.txt"), "Tea at four.\n")
			s := r.governed()
			m := s.call("dir_list", `{"path":"a.txt"}`)
			text, res := servedResult(t, m)
			var listed any
			if err := json.Unmarshal([]byte(text), &listed); err != nil || len(res.Structured) == 0 || text != string(compactJSON(nil, res.Structured)) || !strings.HasSuffix(string(m.Result), `"isError":false}`) {
				t.Errorf("%s: %v", m.Result, err)
			}
			text, res = servedResult(t, s.call("file_read", `{"path":"a.txt"}`))
			var read struct{ Text string }
			if err := json.Unmarshal([]byte(text), &read); err != nil || len(res.Content) != 1 || len(res.Structured) == 0 && !strings.Contains(read.Text, "Tea at four.") {
				t.Errorf("%s: %v", text, err)
			}
		}},
		{"a request without an id gets no response", func(t *testing.T, r *cliRig) {
			s := r.governed("--permission-mode", "allow")
			s.write(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"file_write","arguments":{"path":"made","content":"x"}}}`, `{"jsonrpc":"2.0","method":"tools/list"}`, `{"jsonrpc":"2.0","method":"nobody/knows"}`)
			if m := s.ask("1", methodPing, `{}`); m.Error != nil {
				t.Error(m.Error)
			}
			if _, err := os.Stat(filepath.Join(r.dir, "made")); err == nil {
				t.Error("it was carried out")
			}
		}},
		{"any other method is -32601, and the server exposes no resources", func(t *testing.T, r *cliRig) {
			s := r.governed()
			for _, method := range []string{"resources/list", "resources/read", "resources/templates/list", "prompts/list", "tools/run", "Tools/List", "shutdown"} {
				if m := s.ask("1", method, `{}`); m.Error == nil || m.Error.Code != codeUnknownMethod {
					t.Errorf("%s: %+v", method, m)
				}
			}
		}},
		{"the server's own decision uses the registry's annotations, never hints of the client", func(t *testing.T, r *cliRig) {
			s := r.governed()
			servedDenied(t, s.ask("1", methodToolsCall, `{"name":"file_write","arguments":{"path":"a","content":"x"},"annotations":{"readOnlyHint":true,"destructiveHint":false},"_meta":{"readOnlyHint":true}}`), ruleNobody)
		}},
		{"-32602: no string name, no object arguments, or an unregistered tool", func(t *testing.T, r *cliRig) {
			s := r.governed()
			for _, params := range []string{`{}`, `{"name":7}`, `{"name":null}`, `{"name":""}`, `{"name":"file_read","arguments":"{}"}`, `{"name":"file_read","arguments":[1]}`, `{"name":"file_read","arguments":null}`, `{"name":"File_Read","arguments":{}}`, `{"name":"nobody","arguments":{}}`, `[]`} {
				if m := s.ask("1", methodToolsCall, params); m.Error == nil || m.Error.Code != codeInvalidParams {
					t.Errorf("%s: %+v", params, m)
				}
			}
		}},
		{"-32001: denied by the approval policy; the message names the rule", func(t *testing.T, r *cliRig) {
			servedDenied(t, r.governed().call("file_write", `{"path":"a","content":"x"}`), ruleNobody)
		}},
		{"a tool that raised (validation, missing file, rate limit) is a result with isError and the error text", func(t *testing.T, r *cliRig) {
			seedWrite(t, filepath.Join(r.dir, ".tai", "config.json"), `{"version":1,"rate_limits":{"sys_info":{"calls":1,"per_s":600}}}`)
			s := r.governed()
			s.call("sys_info", `{"section":"os"}`)
			for _, tc := range [][3]string{{"file_read", `{}`, `"path"`}, {"file_read", `{"path":"nowhere"}`, "no such file"}, {"file_read", `{"path":"a","more":1}`, "more"}, {"sys_info", `{"section":"os"}`, "rate limit"}} {
				if text, res := servedResult(t, s.call(tc[0], tc[1])); !res.IsError || !strings.Contains(text, tc[2]) || strings.HasPrefix(text, "{") {
					t.Errorf("%s %s: %s", tc[0], tc[1], text)
				}
			}
		}},
		{"-32603: an unexpected failure inside one request; the server keeps serving", func(t *testing.T, r *cliRig) {
			s := r.governed("--permission-mode", "allow")
			if err := os.RemoveAll(filepath.Join(r.dir, ".tai", "runs")); err != nil { // the log is gone: nothing that changes may be done
				t.Fatal(err)
			}
			if m := s.call("file_write", `{"path":"a","content":"x"}`); m.Error == nil || m.Error.Code != codeInternal {
				t.Errorf("%+v", m)
			}
			if m := s.ask("2", methodPing, `{}`); m.Error != nil {
				t.Error(m.Error)
			}
			if _, err := os.Stat(filepath.Join(r.dir, "a")); err == nil {
				t.Error("it was done without a record")
			}
			s.close() // its end says that the log is not whole
		}},
		{"every tools/call passes the policy that a run of the agent uses", func(t *testing.T, r *cliRig) {
			r.tai("approval", "deny", "file_read").ok()
			servedDenied(t, r.governed().call("file_read", `{"path":"x"}`), ruleDeny)
			if got := r.tai("tools", "call", "file_read", "path=x"); got.code != exitRefused {
				t.Errorf("exit %d", got.code)
			}
		}},
		{"a destructive tool runs with the mode allow or danger-full-access", func(t *testing.T, r *cliRig) {
			for _, mode := range []string{"allow", "danger-full-access"} {
				if _, res := servedResult(t, r.governed("--permission-mode", mode).call("file_write", `{"path":"a","content":"x"}`)); res.IsError {
					t.Error(mode)
				}
			}
		}},
		{"or where an approval preset of the workspace allows it (tai approval grant)", func(t *testing.T, r *cliRig) {
			r.tai("approval", "grant", "file_write", "--arg", "path=docs-*", "--yes").ok()
			s := r.governed()
			if _, res := servedResult(t, s.call("file_write", `{"path":"docs-1","content":"x"}`)); res.IsError {
				t.Error("refused")
			}
			servedDenied(t, s.call("file_write", `{"path":"other","content":"x"}`), ruleNobody)
		}},
		{"a matching deny preset (tai approval deny) blocks in every mode, allow included", func(t *testing.T, r *cliRig) {
			r.tai("approval", "grant", "file_write", "--yes").ok()
			r.tai("approval", "deny", "file_write").ok()
			for _, mode := range []string{"read-only", "prompt", "allow", "danger-full-access"} {
				servedDenied(t, r.governed("--permission-mode", mode).call("file_write", `{"path":"a","content":"x"}`), ruleDeny)
			}
		}},
		{"read-only blocks every destructive tool", func(t *testing.T, r *cliRig) {
			s := r.governed("--permission-mode", "read-only")
			natives, err := (&app{root: r.dir}).nativeTools()
			if err != nil {
				t.Fatal(err)
			}
			for _, tl := range natives {
				m := s.call(tl.Name, `{}`)
				if denied := m.Error != nil && m.Error.Code == codeDenied; tl.Hints.Destructive && !tl.own && !denied {
					t.Errorf("%s: %s %+v", tl.Name, m.Result, m.Error)
				}
			}
		}},
		{"--approve-call-id does not exist; JSON-RPC ids are the client's and never grant approval", func(t *testing.T, r *cliRig) {
			r.tai("mcp", "serve", "--approve-call-id", "1").fails(exitUsage, "--approve-call-id")
			digest := cliJSON[struct{ Digest string }](r.tai("tools", "digest", "file_write", `{"path":"a","content":"x"}`, "--json")).Digest
			servedDenied(t, r.governed().ask(fmt.Sprintf("%q", digest), methodToolsCall, `{"name":"file_write","arguments":{"path":"a","content":"x"}}`), ruleNobody)
		}},
		{"each process writes one hash-chained run log, .tai/runs/mcp-<hex>.jsonl: run_started at start, then the lines of each call, run_completed at a clean end", seedLog},
		{"arguments and results are redacted in the log", func(t *testing.T, r *cliRig) {
			r.with("hush-hush-9-long", "secret", "set", "WORD", "--from", "-").ok()
			s := r.governed()
			s.call("file_read", `{"path":"hush-hush-9-long"}`)
			s.close()
			run, _ := servedLog(t, r.dir)
			if b, err := os.ReadFile(filepath.Join(r.dir, ".tai", "runs", run+auditExtension)); err != nil || strings.Contains(string(b), "hush-hush") || !strings.Contains(string(b), "[secret:WORD]") {
				t.Errorf("%s %v", b, err)
			}
		}},
	} {
		t.Run(st.statement, func(t *testing.T) { st.check(t, newCLIRig(t)) })
	}
}

func seedWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func seedList(t *testing.T, r *cliRig) {
	natives, err := (&app{root: r.dir}).nativeTools()
	if err != nil {
		t.Fatal(err)
	}
	m := r.governed().ask("1", methodToolsList, `{}`)
	var served []toolDef
	if _, more, err := decodeToolList(m.Result, func(d toolDef) { served = append(served, d) }); err != nil || more || len(served) != len(natives) {
		t.Fatalf("%d tools, more %v, %v", len(served), more, err)
	}
	for i, d := range served {
		var item map[string]json.RawMessage
		if err := json.Unmarshal(d.Raw, &item); err != nil {
			t.Fatal(err)
		}
		h := natives[i].Hints
		want := fmt.Sprintf(`{"readOnlyHint":%t,"destructiveHint":%t,"idempotentHint":%t,"statefulHint":%t}`, h.ReadOnly, h.Destructive, h.Idempotent, h.Stateful)
		if d.Name != natives[i].Name || d.Description == "" || d.Fault+d.Warn != "" || string(d.Annotations) != want || len(item["inputSchema"]) == 0 {
			t.Errorf("%s, want the hints %s", d.Raw, want)
		}
	}
}

func seedLog(t *testing.T, r *cliRig) {
	seedWrite(t, filepath.Join(r.dir, "a.txt"), "x")
	s := r.governed()
	if _, events := servedLog(t, r.dir); !slices.Equal(events, []string{"run_started"}) {
		t.Errorf("at the start: %q", events)
	}
	s.call("file_write", `{"path":"b","content":"x"}`) // blocked
	s.call("file_read", `{"path":"a.txt"}`)            // completed
	s.call("file_read", `{"path":"nowhere"}`)          // failed
	s.call("file_read", `{"path":7}`)                  // failed: its schema
	s.call("nobody", `{}`)                             // no trace
	if code := s.close(); code != exitDone {
		t.Errorf("exit %d", code)
	}
	run, events := servedLog(t, r.dir)
	want := []string{"run_started", "tool_call_requested file_write", "tool_call_blocked file_write",
		"tool_call_requested file_read", "tool_call_started file_read", "tool_call_completed file_read",
		"tool_call_requested file_read", "tool_call_started file_read", "tool_call_failed file_read",
		"tool_call_requested file_read", "tool_call_started file_read", "tool_call_failed file_read", "run_completed"}
	if !slices.Equal(events, want) || !strings.HasPrefix(run, "mcp-") || !isAuditRun(run) {
		t.Errorf("%s: %q, want %q", run, events, want)
	}
	r.tai("audit", "verify", run, "--root", ".", "--ci").ok()
}
