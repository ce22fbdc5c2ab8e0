package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const serveTestKey = "k-0123456789abcdef"

// serveTools are small tools that show what a served call does. Each test has its own.
type serveTools struct {
	deeds   atomic.Int64  // runs of deed
	started chan struct{} // one for each wait or deaf that has begun
	release chan struct{} // wait ends when this is closed
	ended   chan error    // the state of the context at the end of each wait
	stuck   chan struct{} // deaf ends when this is closed, and for nothing else
	seen    chan toolCall // what echo got, if there is room
}

func (s *serveTools) list() []tool {
	none := json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{}}`)
	return []tool{{
		Name: "echo", Family: "test", Description: "Give back what it got.", Hints: toolHints{ReadOnly: true, Idempotent: true},
		Schema: json.RawMessage("{\"type\":\"object\",\n\"additionalProperties\":false,\"required\":[\"text\"],\"properties\":{\"text\":{\"type\":\"string\",\"description\":\"Any text.\"}}}"),
		run: func(_ context.Context, c toolCall) (toolResult, error) {
			select {
			case s.seen <- c:
			default:
			}
			var a struct{ Text string }
			err := json.Unmarshal(c.Args, &a)
			return toolResult{Text: a.Text}, err
		},
	}, {
		Name: "count", Family: "test", Description: "Count the letters.", Hints: toolHints{ReadOnly: true, Stateful: true}, Schema: none,
		Output: json.RawMessage(`{"type":"object","properties":{"letters":{"type":"integer","description":"How many."},"record":{"type":"string"},"size":{"type":"integer"}}}`),
		run: func(context.Context, toolCall) (toolResult, error) {
			return toolResult{Text: "3 letters", Structured: json.RawMessage("{\n\"letters\": 3}")}, nil
		},
	}, {
		Name: "deed", Family: "test", Description: "Change something.", Hints: toolHints{Destructive: true}, Schema: none,
		run: func(context.Context, toolCall) (toolResult, error) {
			s.deeds.Add(1)
			return toolResult{Text: "done"}, nil
		},
	}, {
		Name: "broken", Family: "test", Description: "Fail.", Hints: toolHints{ReadOnly: true}, Schema: none,
		run: func(context.Context, toolCall) (toolResult, error) {
			return toolResult{Hint: "try another"}, errors.New("the disk is full")
		},
	}, {
		Name: "wait", Family: "test", Description: "Wait to be released.", Hints: toolHints{ReadOnly: true}, Schema: none,
		run: func(ctx context.Context, _ toolCall) (toolResult, error) {
			s.started <- struct{}{}
			select {
			case <-s.release:
			case <-ctx.Done():
			}
			s.ended <- ctx.Err()
			return toolResult{Text: "released"}, ctx.Err()
		},
	}, {
		Name: "deaf", Family: "test", Description: "Wait and heed no end.", Hints: toolHints{ReadOnly: true}, Schema: none,
		run: func(context.Context, toolCall) (toolResult, error) {
			s.started <- struct{}{}
			<-s.stuck
			return toolResult{Text: "late"}, nil
		},
	}, {
		Name: "panics", Family: "test", Description: "Fall over.", Hints: toolHints{ReadOnly: true}, Schema: none,
		run:   func(context.Context, toolCall) (toolResult, error) { return toolResult{}, nil },
		judge: func(c toolCall) policyRequest { panic("boom at serve_secret_place.go") },
	}, {
		Name: "falls", Family: "test", Description: "Fall over at work.", Hints: toolHints{ReadOnly: true}, Schema: none,
		run: func(context.Context, toolCall) (toolResult, error) { panic("boom at serve_secret_place.go") },
	}}
}

// serveFixture is a server over its own tools, vault and run log.
type serveFixture struct {
	*serveTools
	server *mcpServer
	audit  *auditLog
	runs   string
	url    string
	logged chan string
}

// serveStart gives a server that answers on url. edit changes the configuration, mode is the policy's.
func serveStart(t testing.TB, mode approvalMode, edit func(*serveConfig)) *serveFixture {
	t.Helper()
	f := serveMake(t, mode, edit)
	f.serveHTTP(t)
	return f
}

// serveHTTP has the server answer on url.
func (f *serveFixture) serveHTTP(t testing.TB) {
	web := httptest.NewServer(f.server)
	t.Cleanup(web.Close)
	f.url = web.URL + mcpPath
}

func serveMake(t testing.TB, mode approvalMode, edit func(*serveConfig)) *serveFixture {
	t.Helper()
	f := &serveFixture{logged: make(chan string, 100), runs: filepath.Join(t.TempDir(), "runs"), serveTools: &serveTools{
		started: make(chan struct{}, 300), release: make(chan struct{}), ended: make(chan error, 300), stuck: make(chan struct{}), seen: make(chan toolCall, 1),
	}}
	home := t.TempDir()
	f.audit = newAuditLog(auditConfig{Dir: f.runs, Origin: "http", Now: time.Now})
	t.Cleanup(func() {
		if err := f.audit.close(); err != nil {
			t.Errorf("close the run log: %v", err)
		}
	})
	tools, err := newToolbox(append(f.list(), askTools(nil)...), newPolicy(policyConfig{Mode: mode}), f.audit, func(ctx context.Context) (*vault, error) {
		v, err := openVault(ctx, home, vaultWrite, time.Now, testKeys())
		if err == nil {
			t.Cleanup(func() { v.close() })
		}
		return v, err
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := serveConfig{Tools: tools, Key: serveTestKey, Version: "9.9", Origin: "http", Profile: "work", Log: func(line string) { f.logged <- line }}
	if edit != nil {
		edit(&c)
	}
	if f.server, err = newMCPServer(c); err != nil {
		t.Fatal(err)
	}
	return f
}

// serveReply is an answer as it came.
type serveReply struct {
	status int
	header http.Header
	body   string
	rpc    rpcMessage
}

// send posts body with the key and the given headers ("Name: value"; an empty value takes a header away).
func (f *serveFixture) send(t testing.TB, method, body string, headers ...string) serveReply {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := f.try(ctx, method, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (f *serveFixture) try(ctx context.Context, method, body string, headers ...string) (serveReply, error) {
	req, err := http.NewRequestWithContext(ctx, method, f.url, strings.NewReader(body))
	if err != nil {
		return serveReply{}, err
	}
	if body == "" {
		req.Body, req.ContentLength = nil, 0
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+serveTestKey)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch {
		case value == "":
			req.Header.Del(name)
		case name == "Host":
			req.Host = value
		default:
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return serveReply{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return serveReply{}, err
	}
	out := serveReply{status: resp.StatusCode, header: resp.Header, body: string(b)}
	if m, err := decodeMessage(b); err == nil {
		out.rpc = m
	} else if fault, ok := serveIDless(b); ok {
		out.rpc.Error = fault
	}
	return out, nil
}

// serveIDless reads an error that belongs to no message.
func serveIDless(b []byte) (*rpcError, bool) {
	var e struct{ Error *rpcError }
	if json.Unmarshal(b, &e) != nil || e.Error == nil {
		return nil, false
	}
	return e.Error, true
}

func (r serveReply) code() int {
	if r.rpc.Error == nil {
		return 0
	}
	return r.rpc.Error.Code
}

// open gives the header of a new session.
func (f *serveFixture) open(t testing.TB) string {
	t.Helper()
	r := f.send(t, "POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	id := r.header.Get(headerSession)
	if r.status != 200 || id == "" {
		t.Fatalf("initialize: status %d, session %q, %s", r.status, id, r.body)
	}
	return headerSession + ": " + id
}

func serveRequest(id, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
}

func serveCall(name, args string) string {
	return serveRequest("7", methodToolsCall, fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))
}

// auditEvents gives the events of the fixture's run so far, with the rule of a blocked call.
func (f *serveFixture) auditEvents(t *testing.T) string {
	t.Helper()
	if err := f.audit.sync(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.audit.path())
	if err != nil {
		t.Fatal(err)
	}
	if rep, err := verifyAuditAt(bytes.NewReader(b), 0); err != nil || rep.Bad != 0 {
		t.Errorf("run log does not verify: %+v, %v", rep, err)
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		var e struct{ Event, Subject, Kind string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimSpace(e.Event+" "+e.Subject))
	}
	return strings.Join(out, "\n")
}

func TestServeW77Negotiation(t *testing.T) {
	f := serveStart(t, modeDanger, nil)
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "2025-03-26": "2025-11-25",
		"2026-07-28": "2025-11-25", "2099-01-01": "2025-11-25", "": "2025-11-25", "2025-11-25 ": "2025-11-25",
	} {
		r := f.send(t, "POST", serveRequest(`"a"`, "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{}}`, asked)))
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"tai","version":"9.9"}}}`, want)
		if r.status != 200 || r.body != want { // W83: the tools capability is declared
			t.Errorf("asked %q: status %d, body %s, want %s", asked, r.status, r.body, want)
		}
	}
	for _, params := range []string{`{}`, `{"protocolVersion":1}`, `[]`, `"x"`} {
		r := f.send(t, "POST", serveRequest("1", "initialize", params))
		if r.code() != codeInvalidParams || r.header.Get(headerSession) != "" {
			t.Errorf("initialize with %s: code %d, session %q", params, r.code(), r.header.Get(headerSession))
		}
	}
}

func TestServeW76W88MethodsAndIDs(t *testing.T) {
	f := serveStart(t, modeDanger, nil)
	session := f.open(t)
	for _, tc := range []struct{ body, want string }{
		{serveRequest("7", "ping", "{}"), `{"jsonrpc":"2.0","id":7,"result":{}}`},
		{`{"jsonrpc":"2.0","id":"7","method":"ping"}`, `{"jsonrpc":"2.0","id":"7","result":{}}`},
		{serveCall("echo", `{"text":"<a> \"b\"\n"}`), `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"<a> \"b\"\n"}],"isError":false}}`},
	} {
		r := f.send(t, "POST", tc.body, session)
		if r.status != 200 || r.header.Get("Content-Type") != "application/json" || r.body != tc.want {
			t.Errorf("%s: status %d, type %q, body %s, want %s", tc.body, r.status, r.header.Get("Content-Type"), r.body, tc.want)
		}
	}
	// Unknown requests are told so at once, with or without a session and whatever the revision they come with.
	for _, method := range []string{"resources/list", "prompts/list", "server/discover", "logging/setLevel", "TOOLS/LIST"} {
		for _, extra := range [][]string{{session}, nil} {
			r := f.send(t, "POST", serveRequest("1", method, "{}"), extra...)
			if r.status != 200 || r.code() != codeUnknownMethod || string(r.rpc.ID) != "1" {
				t.Errorf("%s: status %d, body %s", method, r.status, r.body)
			}
		}
	}
	r := f.send(t, "POST", serveRequest("1", methodDiscover, "{}"), headerProtocol+": 2026-07-28")
	if r.status != 200 || r.code() != codeUnknownMethod {
		t.Errorf("discover of a later revision: status %d, body %s", r.status, r.body)
	}
	if n := len(f.server.sessions); n != 1 {
		t.Errorf("%d sessions, want the one that was opened", n)
	}
}

func TestServeW75Notifications(t *testing.T) {
	f := serveStart(t, modeDanger, nil)
	session := f.open(t)
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","method":"notifications/nobody/knows","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":3}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"deed"}}`, `{"jsonrpc":"2.0","id":4,"result":{}}`, `{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"no"}}`,
	} {
		r := f.send(t, "POST", body, session)
		if r.status != 202 || r.body != "" {
			t.Errorf("%s: status %d, body %q", body, r.status, r.body)
		}
	}
	if f.deeds.Load() != 0 {
		t.Error("a notification ran a tool")
	}
}

func TestServeW83W87List(t *testing.T) {
	f := serveStart(t, modePrompt, nil)
	session := f.open(t)
	r := f.send(t, "POST", serveRequest("1", methodToolsList, "{}"), session)
	var tools []toolDef
	_, more, err := decodeToolList(r.rpc.Result, func(d toolDef) { tools = append(tools, d) })
	if err != nil || more || len(tools) != len(f.list())+1 {
		t.Fatalf("tools/list: %d tools, more %v, %v", len(tools), more, err)
	}
	for _, d := range tools {
		if d.Fault != "" || d.Warn != "" || d.Description == "" || !bytes.HasPrefix(d.InputSchema, []byte(`{"type":"object"`)) || bytes.ContainsAny(d.Raw, "\n\r") {
			t.Errorf("listed tool %s", d.Raw)
		}
	}
	if got, want := string(tools[0].Annotations), `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"statefulHint":false}`; got != want {
		t.Errorf("annotations of echo = %s, want %s", got, want)
	}
	if got, want := string(tools[2].Annotations), `{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"statefulHint":false}`; got != want {
		t.Errorf("annotations of deed = %s, want %s", got, want)
	}
	if tools[0].OutputSchema != nil || tools[1].OutputSchema == nil {
		t.Error("outputSchema stands where none was declared, or is missing where one was")
	}
	for params, want := range map[string]int{
		`{"cursor":"x"}`: codeInvalidParams, `{"cursor":7}`: codeInvalidParams, `[]`: codeInvalidParams, `"a"`: codeInvalidParams,
		`{"cursor":null}`: 0, `{"cursor":""}`: 0, `{"_meta":{}}`: 0,
	} {
		again := f.send(t, "POST", serveRequest("1", methodToolsList, params), session)
		if again.code() != want || want == 0 && again.body != r.body {
			t.Errorf("tools/list %s: %.200s", params, again.body)
		}
	}
}

func TestServeW84W86Calls(t *testing.T) {
	f := serveStart(t, modeDanger, nil)
	session := f.open(t)
	for _, params := range []string{
		`{"name":"nobody"}`, `{"name":"Echo","arguments":{}}`, `{"name":7}`, `{}`, `[]`, `{"name":"echo","arguments":[]}`, `{"name":"echo","arguments":"x"}`,
		`{"name":"echo","arguments":null}`, `{"name":"mcp_files_read","arguments":{}}`,
	} {
		r := f.send(t, "POST", serveRequest("1", methodToolsCall, params), session)
		if r.status != 200 || r.code() != codeInvalidParams {
			t.Errorf("tools/call %s: status %d, body %s", params, r.status, r.body)
		}
	}
	for _, tc := range []struct{ body, text string }{
		{serveCall("echo", `{}`), `"text"`}, {serveCall("echo", `{"text":1}`), "string"}, {serveCall("echo", `{"text":"a","more":1}`), "more"},
		{serveRequest("1", methodToolsCall, `{"name":"echo"}`), `"text"`}, // missing arguments are {}, and then text is missing
		{serveCall("broken", `{}`), "broken: the disk is full\nhint: try another"},
	} {
		r := f.send(t, "POST", tc.body, session)
		res, err := decodeCallResult(r.rpc.Result)
		if err != nil || !res.IsError || len(res.Content) != 1 || !strings.Contains(serveText(t, res), tc.text) {
			t.Errorf("%s: %s, want a failed result with %q", tc.body, r.body, tc.text)
		}
	}
	if r := f.send(t, "POST", serveRequest("1", methodToolsCall, `{"name":"deed"}`), session); r.rpc.Error != nil || f.deeds.Load() != 1 {
		t.Errorf("deed without arguments: %s, run %d times", r.body, f.deeds.Load())
	}
	f.send(t, "POST", serveCall("echo", `{"text":"x"}`), session)
	if c := <-f.seen; c.Origin != "http" || c.Person || c.Profile != "work" || c.Session == "" || strings.Contains(session, c.Session) {
		t.Errorf("the tool was given %+v", c)
	}
}

func serveText(t *testing.T, r callResult) string {
	t.Helper()
	var c struct{ Type, Text string }
	if len(r.Content) != 1 || json.Unmarshal(r.Content[0], &c) != nil || c.Type != "text" {
		t.Fatalf("content %s is not one text", r.Content)
	}
	return c.Text
}

func TestServeW85Structured(t *testing.T) {
	f := serveStart(t, modeDanger, nil)
	r := f.send(t, "POST", serveCall("count", `{}`), f.open(t))
	res, err := decodeCallResult(r.rpc.Result)
	if err != nil || res.IsError || serveText(t, res) != "3 letters" {
		t.Fatalf("count: %s, %v", r.body, err)
	}
	schema, err := compileSchema(f.list()[1].Output)
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.validate(res.Structured); err != nil || string(res.Structured) != `{"letters":3}` {
		t.Errorf("structuredContent %s: %v", res.Structured, err)
	}
}

// TestServeArgumentsKept: arguments stay what they were, also when the next message lies where theirs lay. What a client reads of tai's own faults is masked.
func TestServeArgumentsKept(t *testing.T) {
	f := serveMake(t, modeDanger, nil)
	buf := []byte(serveCall("echo", `{"text":"first"}`))
	m, err := decodeMessage(buf)
	if err != nil {
		t.Fatal(err)
	}
	f.server.core.reply(t.Context(), nil, "s", m)
	clear(buf)
	if c := <-f.seen; string(c.Args) != `{"text":"first"}` {
		t.Errorf("kept %q", c.Args)
	}
	f.server.core.tools.redact = func(s string) string { return strings.ReplaceAll(s, "runs", "[secret:PLACE]") }
	f.audit.broken = errors.New("no room in runs")
	m, err = decodeMessage([]byte(serveCall("echo", `{"text":"second"}`)))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(f.server.core.reply(t.Context(), nil, "s", m)); !strings.Contains(got, "-32603") || !strings.Contains(got, "[secret:PLACE]") || strings.Contains(got, "in runs") {
		t.Errorf("a fault of the run log: %s", got)
	}
	f.audit.broken = nil
}

func TestServeDenied(t *testing.T) {
	f := serveStart(t, modePrompt, nil)
	session := f.open(t)
	r := f.send(t, "POST", serveCall("deed", `{}`), session)
	var data struct{ Rule, Hint string }
	if r.status != 200 || r.code() != codeDenied || json.Unmarshal(r.rpc.Error.Data, &data) != nil || data.Rule == "" || data.Hint == "" {
		t.Fatalf("deed in prompt mode: status %d, body %s", r.status, r.body)
	}
	if m := r.rpc.Error.Message; !strings.Contains(m, data.Rule) || !strings.Contains(m, data.Hint) {
		t.Errorf("message %q names neither rule %q nor hint %q", m, data.Rule, data.Hint)
	}
	if f.deeds.Load() != 0 {
		t.Error("a refused tool ran")
	}
	// SRV-19: nobody sits behind a served call, in any mode.
	ask := serveStart(t, modeDanger, nil)
	if r := ask.send(t, "POST", serveCall("ask_user", `{"question":"Are you there?"}`), ask.open(t)); r.code() != codeDenied || !strings.Contains(r.body, toolRulePerson) {
		t.Errorf("SRV-19: ask_user: %s", r.body)
	}
	if got := f.auditEvents(t); !strings.HasSuffix(got, "tool_call_requested deed\ntool_call_blocked deed") {
		t.Errorf("run log:\n%s", got)
	}
}

func TestServeSRV18Panic(t *testing.T) {
	f := serveStart(t, modeDanger, nil)
	session := f.open(t)
	for _, tool := range []string{"panics", "falls"} {
		r := f.send(t, "POST", serveCall(tool, `{}`), session)
		if r.status != 200 || r.code() != codeInternal || string(r.rpc.ID) != "7" || strings.Contains(r.body, "boom") || strings.Contains(r.body, ".go") {
			t.Errorf("%s: status %d, body %s", tool, r.status, r.body)
		}
		if line := <-f.logged; !strings.Contains(line, "boom") || strings.Contains(line, "goroutine") {
			t.Errorf("%s: logged %q", tool, line)
		}
	}
	if n := len(f.server.core.calls); n != 0 {
		t.Errorf("%d calls are still under way", n)
	}
	if r := f.send(t, "POST", serveCall("echo", `{"text":"on"}`), session); !strings.Contains(r.body, `"text":"on"`) {
		t.Errorf("after a panic: %s", r.body)
	}
}

// TestServeW111Cancel: a cancelled call ends and is not answered; only its own session can cancel it, and ids are equal in type.
func TestServeW111Cancel(t *testing.T) {
	f := serveStart(t, modeDanger, nil)
	session, other := f.open(t), f.open(t)
	answer := make(chan serveReply, 1)
	go func() { // ends with the call
		r, err := f.try(context.Background(), "POST", serveCall("wait", `{}`), session)
		if err != nil {
			t.Error(err)
		}
		answer <- r
	}()
	<-f.started
	cancel := func(id string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"tired"}}`, id)
	}
	f.send(t, "POST", cancel("7"), other)
	f.send(t, "POST", cancel(`"7"`), session)
	f.send(t, "POST", cancel("8"), session)
	select {
	case err := <-f.ended:
		t.Fatalf("the call ended for a cancel that was not meant for it: %v", err)
	default:
	}
	f.send(t, "POST", cancel("7"), session)
	if err := <-f.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the tool's context ended with %v", err)
	}
	if r := <-answer; r.status != 202 || r.body != "" {
		t.Errorf("a cancelled call was answered: status %d, body %s", r.status, r.body)
	}
	if r := f.send(t, "POST", serveRequest("9", "ping", "{}"), session); r.status != 200 {
		t.Errorf("ping after a cancel: status %d", r.status)
	}
}

func TestServeCallBounds(t *testing.T) {
	if serveCallTimeout != 660*time.Second || serveMaxCalls != 256 {
		t.Error("the documented caps are 660 s and 256 calls")
	}
	f := serveStart(t, modeDanger, nil)
	f.server.core.callTimeout = 10 * time.Millisecond
	session := f.open(t)
	r := f.send(t, "POST", serveCall("wait", `{}`), session)
	if res, err := decodeCallResult(r.rpc.Result); err != nil || !res.IsError {
		t.Errorf("a call over its deadline: %s", r.body)
	}
	if err := <-f.ended; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the tool's context ended with %v", err)
	}
	for range serveMaxCalls {
		f.server.core.begin(&servedCall{cancel: func() {}})
	}
	if r := f.send(t, "POST", serveCall("deed", `{}`), session); r.code() != codeInternal || !strings.Contains(r.body, "busy") || f.deeds.Load() != 0 {
		t.Errorf("one call too many: %s", r.body)
	}
}

// TestServeW88F24Concurrent: one long call keeps nobody waiting, neither its own session nor another one.
func TestServeW88F24Concurrent(t *testing.T) {
	f := serveStart(t, modeDanger, nil)
	session := f.open(t)
	done := make(chan serveReply, 1)
	go func() { // ends when the call is released
		r, err := f.try(context.Background(), "POST", serveCall("wait", `{}`), session)
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	<-f.started
	for _, s := range []string{session, f.open(t)} {
		for _, body := range []string{serveRequest("1", "ping", "{}"), serveRequest("2", methodToolsList, "{}"), serveCall("echo", `{"text":"quick"}`)} {
			if r := f.send(t, "POST", body, s); r.status != 200 || r.rpc.Error != nil {
				t.Errorf("%s beside a long call: status %d, %.200s", body, r.status, r.body)
			}
		}
	}
	close(f.release)
	if r := <-done; !strings.Contains(r.body, "released") {
		t.Errorf("the long call: %s", r.body)
	}
}

// TestServeTellsWaiting: an end that waits for calls says so, and one that does not says nothing.
func TestServeTellsWaiting(t *testing.T) {
	t.Parallel()
	for n, want := range []string{"", "1 call under way: cancelled after 5s", "2 calls under way"} {
		said := ""
		c := serveCore{log: func(line string) { said += line }, calls: map[*servedCall]struct{}{}}
		for range n {
			c.calls[&servedCall{}] = struct{}{}
		}
		if c.tellWaiting(serveGrace); !strings.HasPrefix(said, want) || (said == "") != (n == 0) {
			t.Errorf("%d calls: %q, want %q", n, said, want)
		}
	}
}
