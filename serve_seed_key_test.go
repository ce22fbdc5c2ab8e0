package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// keySeed is one tai --serve-mcp with a model that answers by script and a bridged server, for the checklist.
type keySeed struct {
	*servedTai
	model *fakeModel
	mcp   string // header of the session
}

func newKeySeed(t *testing.T) *keySeed {
	t.Helper()
	s := &keySeed{model: newFakeModel(t,
		chatStream(1<<10, chatFirst, chatCall(0, "call_a", "mcp_peer_echo", `{"n":7}`), chatStop("tool_calls"), chatUses, "[DONE]"), // the first turn calls a bridged tool
		promptSays("The peer said 7."), promptSays("I said: The peer said 7."), promptSays("Plain reply."))}
	r := newCLIRig(t)
	r.env = []string{"TAI_BASE_URL=" + s.model.URL + "/v1", "TAI_MODEL=m-1", "DOOR=open-sesame-0123456789"}
	r.addFake("peer", fakeStdio{})
	if err := os.WriteFile(filepath.Join(r.dir, "note.txt"), []byte("Tea at four.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.servedTai = r.serve("--serve-mcp", "env:DOOR", "--mcp-port", "0")
	s.auth = "Bearer open-sesame-0123456789"
	s.mcp = s.session()
	return s
}

// rpc sends one request in the session.
func (s *keySeed) rpc(method, params string) rpcMessage {
	s.t.Helper()
	r := s.post(serveRequest("1", method, params), s.mcp)
	if r.status != 200 || r.header.Get("Content-Type") != httpTypeJSON {
		s.t.Fatalf("%s: %d, %q, %s", method, r.status, r.header.Get("Content-Type"), r.body)
	}
	return r.rpc
}

func (s *keySeed) tool(name, args string) rpcMessage {
	s.t.Helper()
	return s.rpc(methodToolsCall, fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))
}

// wants fails unless the answer is that JSON-RPC error.
func (s *keySeed) wants(code int, m rpcMessage) {
	s.t.Helper()
	if m.Error == nil || m.Error.Code != code {
		s.t.Errorf("%s %+v, want %d", m.Result, m.Error, code)
	}
}

// TestServeSeedKey is the checklist of what the first text says of tai --serve-mcp, one test a statement, in its order.
func TestServeSeedKey(t *testing.T) {
	s := newKeySeed(t)
	for _, st := range []struct {
		statement string
		check     func(t *testing.T)
	}{
		{"the protocol version is 2025-11-25, the server's name tai, its version the program's, and the answer has capabilities.tools", func(t *testing.T) {
			want := fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"tai","version":%q}}`, version)
			if m := s.rpc(methodInitialize, `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`); string(m.Result) != want {
				t.Errorf("%s, want %s", m.Result, want)
			}
		}},
		{"notifications/initialized has no answer", func(t *testing.T) {
			if r := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, s.mcp); r.status != 202 || r.body != "" {
				t.Errorf("%d %q", r.status, r.body)
			}
		}},
		{"ping: {} in, {} out", func(t *testing.T) {
			if m := s.rpc(methodPing, `{}`); string(m.Result) != `{}` {
				t.Errorf("%s", m.Result)
			}
		}},
		{"tools/list serves every native tool verbatim plus chat and completions, without pages", s.checkList},
		{"tools/call: {name, arguments?} in, {content: [...], isError?} out", func(t *testing.T) {
			if text, res := servedResult(t, s.tool("file_read", `{"path":"note.txt"}`)); res.IsError || !strings.Contains(text, "Tea at four.") {
				t.Errorf("%s", text)
			}
			if m := s.rpc(methodToolsCall, `{"name":"dir_list"}`); m.Error != nil {
				t.Errorf("without arguments: %v", m.Error)
			}
		}},
		{"notifications/cancelled is taken", func(t *testing.T) {
			if r := s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99,"reason":"x"}}`, s.mcp); r.status != 202 {
				t.Errorf("%d", r.status)
			}
		}},
		{"-32601 unknown", func(t *testing.T) { s.wants(codeUnknownMethod, s.rpc("tools/delete", `{}`)) }},
		{"-32602 bad params", func(t *testing.T) {
			s.wants(codeInvalidParams, s.rpc(methodToolsCall, `{"name":7}`))
			s.wants(codeInvalidParams, s.tool("no_such_tool", `{}`))
			s.wants(codeInvalidParams, s.tool("file_read", `[]`))
		}},
		{"a tool that ran and failed is a normal result with isError: true", func(t *testing.T) {
			if text, res := servedResult(t, s.tool("file_read", `{"path":"nowhere"}`)); !res.IsError || !strings.Contains(text, "no such file") {
				t.Errorf("%s", text)
			}
		}},
		{"roots, sampling, elicitation, logging get -32601", func(t *testing.T) {
			for _, method := range []string{"roots/list", "sampling/createMessage", "elicitation/create", "logging/setLevel", "resources/list", "prompts/list", "completion/complete", "resources/subscribe"} {
				s.wants(codeUnknownMethod, s.rpc(method, `{}`))
			}
		}},
		{"MCP_RESULT_MAX 64KB: a larger text spills to a record and the id is given, never a silent truncation", func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(s.rig.dir, "big.txt"), []byte(strings.Repeat("0123456789abcdef\n", 6000)), 0o600); err != nil {
				t.Fatal(err)
			}
			text, res := servedResult(t, s.tool("shell_run", `{"command":"cat big.txt"}`))
			var kept struct {
				Record string
				Size   int
			}
			if err := json.Unmarshal(res.Structured, &kept); err != nil || kept.Size < 102_000 || len(text) > mcpResultMax || !strings.Contains(text, kept.Record) || mcpResultMax != 64<<10 {
				t.Errorf("%.100s… %s", text, res.Structured)
			}
			if got := s.rig.tai("record", "show", kept.Record).ok(); strings.Count(got, "0123456789abcdef") != 6000 {
				t.Errorf("the record has %d bytes", len(got))
			}
		}},
		{"MCP_HTTP_MAX_BODY 10MB: the largest request body", func(t *testing.T) {
			if r := s.post(serveRequest("1", methodPing, `{"x":"`+strings.Repeat("x", mcpHTTPMaxBody)+`"}`), s.mcp); r.status != http.StatusRequestEntityTooLarge || mcpHTTPMaxBody != 10<<20 {
				t.Errorf("%d", r.status)
			}
		}},
		{"MCP_SESSION_IDLE 3600s, MCP_CHAT_TIMEOUT 600s", func(t *testing.T) {
			if mcpSessionIdle != 3600*time.Second || mcpChatTimeout != 600*time.Second {
				t.Errorf("%v, %v", mcpSessionIdle, mcpChatTimeout)
			}
		}},
		{"--serve-mcp KEY is needed; --mcp-port defaults to TAI_MCP_PORT else 8765, --mcp-bind to TAI_MCP_BIND else 127.0.0.1", func(t *testing.T) {
			if mcpDefaultPort != 8765 || mcpDefaultBind != "127.0.0.1" || !strings.HasPrefix(s.url, "http://127.0.0.1:") {
				t.Errorf("%d, %s, %s", mcpDefaultPort, mcpDefaultBind, s.url)
			}
			s.rig.tai("--serve-mcp", "").fails(exitUsage, "empty")
			other := newCLIRig(t)
			other.env = []string{"TAI_MCP_PORT=0", "TAI_MCP_BIND=::1", "DOOR=open-sesame-0123456789"}
			if got := other.serve("--serve-mcp", "env:DOOR"); !strings.HasPrefix(got.url, "http://[::1]:") {
				t.Errorf("%s", got.url)
			}
		}},
		{"POST /mcp: a missing or invalid Authorization: Bearer KEY gets 401", func(t *testing.T) {
			for _, auth := range []string{"", "Bearer", "Bearer open-sesame", "Basic open-sesame-0123456789"} {
				if r := s.send(t, "POST", servePing, s.mcp, "Authorization: "+auth); r.status != 401 || r.header.Get("WWW-Authenticate") == "" {
					t.Errorf("%q: %d", auth, r.status)
				}
			}
		}},
		{"initialize answers a new Mcp-Session-Id", func(t *testing.T) {
			if a, b := s.session(), s.session(); a == b {
				t.Errorf("%s twice", a)
			}
		}},
		{"always a single JSON reply, never SSE", func(t *testing.T) {
			if r := s.post(servePing, s.mcp, "Accept: text/event-stream"); r.header.Get("Content-Type") != httpTypeJSON {
				t.Errorf("%q", r.header.Get("Content-Type"))
			}
		}},
		{"GET /mcp: 405", func(t *testing.T) {
			if r := s.send(t, "GET", "", "Authorization: "+s.auth, s.mcp); r.status != 405 || r.header.Get("Allow") != "POST, DELETE" {
				t.Errorf("%d, %q", r.status, r.header.Get("Allow"))
			}
		}},
		{"DELETE /mcp drops the session, 200", func(t *testing.T) {
			dropped := s.session()
			if r := s.send(t, "DELETE", "", "Authorization: "+s.auth, dropped); r.status != 200 {
				t.Errorf("%d", r.status)
			}
			if r := s.post(servePing, dropped); r.status != 404 {
				t.Errorf("afterwards: %d", r.status)
			}
		}},
		{"chat is a full turn of the session's own agent, which uses bridged tools; the run log has one chain from the served call to the outbound one", s.checkChat},
		{"chat keeps its history in the session", func(t *testing.T) {
			if text, res := servedResult(t, s.tool("chat", `{"message":"what did you say?"}`)); res.IsError || text != "I said: The peer said 7." {
				t.Errorf("%s", text)
			}
			if said := promptSaid(t, s.model.requests[2]); !slices.Equal(said, []string{"what did you say?", "ask the peer"}) {
				t.Errorf("the model was shown %q", said)
			}
		}},
		{"completions is one stateless reply of the current model, without tools", func(t *testing.T) {
			text, res := servedResult(t, s.tool("completions", `{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}]}`))
			var sent struct {
				Model    string
				Messages []struct{ Role, Content string }
				Tools    []any
			}
			if err := json.Unmarshal(s.model.requests[3], &sent); err != nil || res.IsError || text != "Plain reply." || sent.Model != "m-1" || len(sent.Tools) != 0 || len(sent.Messages) != 2 || sent.Messages[0].Role != "system" {
				t.Errorf("%s, sent %+v, %v", text, sent, err)
			}
		}},
		{"completions: roles are validated (system, user, assistant)", func(t *testing.T) {
			for _, role := range []string{"tool", "developer", "", "USER"} {
				if text, res := servedResult(t, s.tool("completions", fmt.Sprintf(`{"messages":[{"role":%q,"content":"x"}]}`, role))); !res.IsError || !strings.Contains(text, "role") {
					t.Errorf("%q: %s", role, text)
				}
			}
		}},
		{"the key is the authorization: as with --yolo, said loudly at start", func(t *testing.T) {
			if _, res := servedResult(t, s.tool("file_write", `{"path":"made.txt","content":"x"}`)); res.IsError || !strings.Contains(s.notice, "WARNING: mode danger-full-access") {
				t.Errorf("%s", s.notice)
			}
		}},
		{"ask_user over the server always denies", func(t *testing.T) { servedDenied(t, s.tool("ask_user", `{"question":"there?"}`), toolRulePerson) }},
		{"bridged foreign tools are never re-served", func(t *testing.T) { s.wants(codeInvalidParams, s.tool("mcp_peer_echo", `{}`)) }},
		{"mcp_call reaches a bridged tool, as the same bridged call", func(t *testing.T) {
			if text, res := servedResult(t, s.tool("mcp_call", `{"server":"peer","tool":"echo","args":{"n":8}}`)); res.IsError || !strings.Contains(text, "8") {
				t.Errorf("%s", text)
			}
		}},
		{"batch JSON-RPC arrays are refused: one message per POST", func(t *testing.T) {
			if r := s.post("["+servePing+"]", s.mcp); r.status != 400 || r.code() != codeInvalidRequest {
				t.Errorf("%d %s", r.status, r.body)
			}
		}},
	} {
		t.Run(st.statement, st.check)
	}
	if code := s.stop(); code != exitDone {
		t.Errorf("end: exit %d\n%s", code, s.stderr())
	}
}

func (s *keySeed) checkList(t *testing.T) {
	m := s.rpc(methodToolsList, `{}`)
	var served []toolDef
	_, more, err := decodeToolList(m.Result, func(d toolDef) { served = append(served, d) })
	if err != nil || more {
		t.Fatalf("more %v, %v", more, err)
	}
	natives, err := (&app{root: s.rig.dir}).nativeTools()
	if err != nil {
		t.Fatal(err)
	}
	if len(served) != len(natives)+2 || served[len(natives)].Name != "chat" || served[len(natives)+1].Name != "completions" {
		t.Fatalf("%d tools are served, %d are native", len(served), len(natives))
	}
	for i, tl := range natives {
		if d := served[i]; d.Name != tl.Name || d.Description != tl.Description || string(compactJSON(nil, tl.Schema)) != string(d.InputSchema) {
			t.Errorf("%s is served as %s", tl.Name, d.Raw)
		}
	}
	if !strings.Contains(s.notice, fmt.Sprintf("serving %d tools", len(served))) {
		t.Errorf("%s", s.notice)
	}
}

func (s *keySeed) checkChat(t *testing.T) {
	text, res := servedResult(t, s.tool("chat", `{"message":"ask the peer","max_steps":5}`))
	if res.IsError || text != "The peer said 7." {
		t.Fatalf("%s", text)
	}
	s.rig.tai("audit", "verify", "last").ok()
	logs, err := filepath.Glob(filepath.Join(s.rig.home, "runs", "http-*"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%q, %v", logs, err)
	}
	chat := ""
	outbound := 0
	for _, r := range auditRows(t, logs[0]) {
		switch {
		case r.Subject == "chat" && r.Event == auditCallRequested:
			chat = r.Call
		case r.Kind == auditKindMCP:
			if outbound++; r.Subject != "peer/echo" || r.Parent != chat || chat == "" {
				t.Errorf("%s %s has parent %q, the served call is %q", r.Event, r.Subject, r.Parent, chat)
			}
		}
	}
	if outbound != 3 { // requested, started, completed
		t.Errorf("%d lines of the outbound call", outbound)
	}
}

// TestServeSeedKeyNoModel: without a model chat is a clear failure, and all else works.
func TestServeSeedKeyNoModel(t *testing.T) {
	r := newCLIRig(t)
	r.env = []string{"DOOR=open-sesame-0123456789"}
	s := &keySeed{servedTai: r.serve("--serve-mcp", "env:DOOR", "--mcp-port", "0")}
	s.auth = "Bearer open-sesame-0123456789"
	s.mcp = s.session()
	for name, args := range map[string]string{"chat": `{"message":"hi"}`, "completions": `{"messages":[{"role":"user","content":"hi"}]}`} {
		if text, res := servedResult(t, s.tool(name, args)); !res.IsError || !strings.HasPrefix(text, name+": no model") || !strings.Contains(text, "tai model set") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if _, res := servedResult(t, s.tool("policy_check", `{"tool":"chat","args":{"message":"hi"}}`)); !strings.Contains(string(res.Structured), `"decision":"allow"`) {
		t.Errorf("policy_check: %s", res.Structured)
	}
}
