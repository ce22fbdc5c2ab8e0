package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var clientTestInfo = clientInfo{Name: "tai", Version: "0"}

// clientStdio connects to the fake and closes the client at the end of the test.
func clientStdio(t testing.TB, spec fakeStdio) *mcpClient {
	t.Helper()
	c, err := clientConnect(t, fakeStdioConfig(t, spec), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func clientConnect(t testing.TB, cfg stdioConfig, limit time.Duration) (*mcpClient, error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errConnectTimeout)
	defer cancel()
	tr := startStdioTest(t, cfg)
	c, err := connectMCP(ctx, tr, clientTestInfo)
	if err == nil {
		t.Cleanup(func() {
			if err := c.close(); err != nil {
				t.Error(err)
			}
		})
	}
	return c, err
}

func clientText(t testing.TB, c *mcpClient, tool, args string) string {
	t.Helper()
	r, err := c.callTool(context.Background(), tool, json.RawMessage(args))
	if err != nil || len(r.Content) != 1 {
		t.Fatalf("%s: %d parts, %v", tool, len(r.Content), err)
	}
	var part struct{ Text string }
	if err := json.Unmarshal(r.Content[0], &part); err != nil {
		t.Fatal(err)
	}
	return part.Text
}

func clientNames(l toolList) string {
	var names []string
	for _, t := range l.Tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

// pages makes the answers of a server to the tools/list requests of one cursor each.
func pages(byCursor map[string]string) func(cursor *string) string {
	return func(cursor *string) string {
		key := ""
		if cursor != nil {
			key = *cursor
		}
		return byCursor[key]
	}
}

// scriptTransport is an in-process server: answer gets each request. It notes every message.
type scriptTransport struct {
	answer   func(m rpcMessage) (result string, err error)
	onNote   func(string, json.RawMessage)
	versions []string
	mu       sync.Mutex
	sent     []rpcMessage
	closed   int
}

func (s *scriptTransport) call(ctx context.Context, m rpcMessage) (rpcMessage, error) {
	s.note(m)
	result, err := s.answer(m)
	if re, ok := err.(*rpcError); ok {
		return rpcMessage{ID: m.ID, Error: re}, nil
	}
	return rpcMessage{ID: m.ID, Result: json.RawMessage(result)}, err
}

func (s *scriptTransport) notify(ctx context.Context, m rpcMessage) error { s.note(m); return nil }
func (s *scriptTransport) setVersion(v string)                            { s.versions = append(s.versions, v) }
func (s *scriptTransport) close() error                                   { s.closed++; return nil }
func (s *scriptTransport) diagnostics() string                            { return "" }
func (s *scriptTransport) setNotify(f func(string, json.RawMessage))      { s.onNote = f }

func (s *scriptTransport) note(m rpcMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, m)
}

// methods lists what was sent, in order.
func (s *scriptTransport) methods() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, m := range s.sent {
		out = append(out, m.Method)
	}
	return strings.Join(out, " ")
}

const clientInit = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}`

// scriptClient connects to a server that answers initialize itself and hands the rest to answer.
func scriptClient(t testing.TB, answer func(m rpcMessage) (string, error)) (*mcpClient, *scriptTransport) {
	t.Helper()
	s := &scriptTransport{answer: func(m rpcMessage) (string, error) {
		if m.Method == methodInitialize {
			return clientInit, nil
		}
		return answer(m)
	}}
	c, err := connectMCP(t.Context(), s, clientTestInfo)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// listClient connects to a server whose tools/list answer depends on the cursor.
func listClient(t testing.TB, answer func(cursor *string) string) (*mcpClient, *scriptTransport) {
	t.Helper()
	return scriptClient(t, func(m rpcMessage) (string, error) {
		var p struct{ Cursor *string }
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return "", err
		}
		return answer(p.Cursor), nil
	})
}

// W4, W5, W7: initialize, then initialized, then the list; ids are new each time and never null.
func TestW04HandshakeOrder(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	c := clientStdio(t, fakeStdio{Log: log})
	l, err := c.listTools(t.Context())
	if err != nil || l.Total != 13 || l.Incomplete != "" || len(l.Warnings) != 0 {
		t.Fatalf("list: %d tools, %q, %q, %v", l.Total, l.Incomplete, l.Warnings, err)
	}
	if got := clientText(t, c, "echo", ""); got != "{}" {
		t.Errorf("echo = %q", got)
	}
	want := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tai","version":"0"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{}}}`,
	}
	if got := stdioLog(t, log); !slices.Equal(got, want) {
		t.Errorf("the server read %q, want %q", got, want)
	}
}

// W6, STD-19, F10, W13: which answers to initialize are taken.
func TestSTD19Negotiation(t *testing.T) {
	tests := []struct {
		version, caps string
		want          []string // in the error; none if it is taken
	}{
		{"2025-11-25", "", nil}, {"2025-06-18", "", nil}, {"2025-03-26", "", nil}, {"2024-11-05", "", nil},
		{"1999-01-01", "", []string{"1999-01-01", "2025-11-25"}},
		{"2026-07-28", "", []string{"2026-07-28"}},
		{"2025-11-25", `{"prompts":{},"resources":{}}`, []string{"no tools", "prompts, resources"}},
		{"2025-11-25", `{}`, []string{"no tools", "none"}},
		{"2025-11-25", `{"tools":null}`, []string{"no tools"}},
		{"2025-11-25", `[]`, []string{"capabilities"}},
	}
	for _, tc := range tests {
		log := filepath.Join(t.TempDir(), "log")
		cfg := fakeStdioConfig(t, fakeStdio{Version: tc.version, Caps: tc.caps, Log: log})
		tr := startStdioTest(t, cfg)
		c, err := connectMCP(t.Context(), tr, clientTestInfo)
		if tc.want == nil {
			if err != nil || c.version() != tc.version {
				t.Errorf("%s: %v", tc.version, err)
			}
			continue
		}
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v, want %q in it", tc.version, tc.caps, err, want)
			}
		}
		if !waitFor(0, tr.exited) {
			t.Errorf("%s %s: the process was not stopped", tc.version, tc.caps)
		}
		if lines := stdioLog(t, log); len(lines) != 1 {
			t.Errorf("%s %s: the server read %q", tc.version, tc.caps, lines)
		}
	}
}

// F10: a server that refuses the newest revision and names its own is asked once more, with the newest of those.
func TestF10RefusedWithAList(t *testing.T) {
	refusals := map[string]error{
		"error data":  &rpcError{Code: codeInvalidParams, Message: "Unsupported protocol version", Data: json.RawMessage(`{"supported":["2024-11-05","2025-06-18"],"requested":"2025-11-25"}`)},
		"HTTP text":   &mcpHTTPError{Status: 400, Message: "Bad Request: Unsupported protocol version (supported versions: 2025-06-18, 2024-11-05)"},
		"HTTP error":  &mcpHTTPError{Status: 400, RPC: &rpcError{Code: -32000, Message: "supported: 2025-06-18"}},
		"always":      &rpcError{Code: codeInvalidParams, Message: "supported: 2025-06-18"},
		"none listed": &rpcError{Code: codeInvalidParams, Message: "no", Data: json.RawMessage(`{"supported":["2031-01-01"]}`)},
		"HTTP 500":    &mcpHTTPError{Status: 500, Message: "2025-06-18"},
	}
	for name, refusal := range refusals {
		s := &scriptTransport{}
		s.answer = func(m rpcMessage) (string, error) {
			if strings.Contains(string(m.Params), `"protocolVersion":"2025-06-18"`) && name != "always" {
				return strings.Replace(clientInit, "2025-11-25", "2025-06-18", 1), nil
			}
			return "", refusal
		}
		c, err := connectMCP(t.Context(), s, clientTestInfo)
		switch name {
		case "always", "none listed", "HTTP 500":
			want := map[string]int{"always": 2, "none listed": 1, "HTTP 500": 1}[name]
			if err == nil || len(s.sent) != want || s.closed != 1 {
				t.Errorf("%s: %v after %s, closed %d times", name, err, s.methods(), s.closed)
			}
		default:
			if err != nil || c.version() != "2025-06-18" || !slices.Equal(s.versions, []string{"2025-06-18"}) || s.methods() != "initialize initialize notifications/initialized" {
				t.Errorf("%s: %v, versions %q after %s", name, err, s.versions, s.methods())
			}
			if string(s.sent[0].ID) == string(s.sent[1].ID) {
				t.Errorf("%s: id %s was used twice", name, s.sent[0].ID)
			}
		}
	}
}

// STD-01, W10, F04: a silent server ends at the connect cap, is not sent a cancel, and what it wrote instead is quoted.
func TestSTD01SilentServer(t *testing.T) {
	if mcpConnectTimeout != 20*time.Second {
		t.Errorf("the connect cap is %v", mcpConnectTimeout)
	}
	log := filepath.Join(t.TempDir(), "log")
	cfg := fakeStdioConfig(t, fakeStdio{Log: log, Start: []fakeStep{{Out: "Usage: serve --stdio\n", Err: "waiting for a terminal\n"}}, On: on(methodInitialize)})
	start := time.Now()
	_, err := clientConnect(t, cfg, 150*time.Millisecond)
	if !errors.Is(err, errConnectTimeout) || !strings.Contains(err.Error(), "Usage: serve --stdio") || !strings.Contains(err.Error(), "waiting for a terminal") {
		t.Errorf("connect = %v", err)
	}
	if d := time.Since(start); d > stdioPrompt {
		t.Errorf("it took %v", d)
	}
	if lines := stdioLog(t, log); len(lines) != 1 || !strings.Contains(lines[0], methodInitialize) {
		t.Errorf("the server read %q", lines)
	}
}

// F04, STD-18: a server that says why on stdout and exits is quoted too.
func TestF04ExitsWithABanner(t *testing.T) {
	_, err := clientConnect(t, fakeStdioConfig(t, fakeStdio{Start: []fakeStep{{Out: "API key missing\n", Err: "see the manual\n", Exit: 3}}}), 5*time.Second)
	for _, want := range []string{"status 2", "API key missing", "see the manual"} {
		if err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("connect = %v, want %q in it once", err, want)
		}
	}
}

// STD-02, STD-09, W11, F19: at the cap the call fails, the server is told once with the right id and stays up, and its late
// answer disturbs nothing. The same for the caller's own interrupt.
func TestSTD02CallCap(t *testing.T) {
	t.Parallel()
	if mcpCallTimeout != 60*time.Second {
		t.Errorf("the call cap is %v", mcpCallTimeout)
	}
	c := clientStdio(t, fakeStdio{})
	if c.callTimeout != mcpCallTimeout {
		t.Errorf("the client's cap is %v", c.callTimeout)
	}
	c.callTimeout = 30 * time.Millisecond
	_, err := c.callTool(t.Context(), "sleep", json.RawMessage(`{"ms":120}`)) // id 2
	if !errors.Is(err, errCallTimeout) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "MCP_CALL_TIMEOUT") {
		t.Errorf("call = %v", err)
	}
	c.callTimeout = mcpCallTimeout
	if got := clientText(t, c, "add", `{"a":1,"b":2}`); got != "3" { // id 3, while the first still sleeps
		t.Errorf("add = %q", got)
	}
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(interrupted) })
	if _, err := c.callTool(ctx, "sleep", json.RawMessage(`{"ms":120}`)); !errors.Is(err, interrupted) { // id 4
		t.Errorf("interrupted call = %v", err)
	}
	c.wg.Wait() // both notices are out
	if got := clientText(t, c, "cancelled", "{}"); got != "2,4" {
		t.Errorf("cancelled ids = %q, want 2,4", got)
	}
	if got := clientText(t, c, "sleep", `{"ms":200}`); got != "late" { // both late answers come meanwhile
		t.Errorf("sleep = %q", got)
	}
	tr := c.t.(*stdioTransport)
	if tr.mu.Lock(); tr.dropped != 2 {
		t.Errorf("%d late answers dropped, want 2", tr.dropped)
	}
	tr.mu.Unlock()
	if !c.alive() {
		t.Error("the client counts as dead")
	}
}

// A server that reads nothing any more does not hold up the caller's end of the call, nor close.
func TestCancelToADeafServer(t *testing.T) {
	c := clientStdio(t, fakeStdio{On: on(methodInitialized, fakeStep{SleepMS: 60_000})})
	if c.cancelLimit != 2*time.Second {
		t.Errorf("the limit of a cancel notification is %v", c.cancelLimit)
	}
	c.callTimeout, c.cancelLimit = 30*time.Millisecond, 50*time.Millisecond
	start := time.Now()
	if _, err := c.callTool(t.Context(), "x", json.RawMessage(`{"a":"`+strings.Repeat("x", 1<<20)+`"}`)); !errors.Is(err, errCallTimeout) {
		t.Errorf("call = %v", err)
	}
	if d := time.Since(start); d > stdioPrompt {
		t.Errorf("it took %v", d)
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > stdioPrompt {
		t.Errorf("close took %v", d)
	}
}

// W23, LST-15: a failed tool is a result, a protocol error an error, and neither is the other. F20: no content is an empty result.
func TestW23ErrorKinds(t *testing.T) {
	c := clientStdio(t, fakeStdio{On: on("tools/call bare", fakeStep{Reply: `{}`})})
	r, err := c.callTool(t.Context(), "fail", nil)
	if err != nil || !r.IsError || len(r.Content) != 1 {
		t.Errorf("fail = %+v, %v", r, err)
	}
	_, err = c.callTool(t.Context(), "protocol", nil)
	if re, ok := errors.AsType[*rpcError](err); !ok || re.Code != -32602 || string(re.Data) != `{"name":"x"}` {
		t.Errorf("protocol = %v", err)
	}
	r, err = c.callTool(t.Context(), "structured", nil)
	if err != nil || string(r.Structured) != `{"rows":[1,2]}` {
		t.Errorf("structured = %+v, %v", r, err)
	}
	if r, err = c.callTool(t.Context(), "bare", nil); err != nil || r.IsError || len(r.Content) != 0 {
		t.Errorf("bare = %+v, %v", r, err)
	}
	if _, err = c.callTool(t.Context(), "big", json.RawMessage(`{"n":11000000}`)); !errors.Is(err, errMessageTooBig) {
		t.Errorf("big = %v", err)
	}
	_, err = c.callTool(t.Context(), "exit", json.RawMessage(`{"code":4}`))
	if e, ok := errors.AsType[*stdioExitError](err); !ok || e.Code != 4 || c.alive() {
		t.Errorf("exit = %v", err)
	}
}

// F17: arguments are always an object on the wire.
func TestF17Arguments(t *testing.T) {
	c, s := scriptClient(t, func(rpcMessage) (string, error) { return `{"content":[]}`, nil })
	for _, args := range []string{"", "null", `""`, "{}", " { } ", "\n"} {
		if _, err := c.callTool(t.Context(), `na"me`, json.RawMessage(args)); err != nil {
			t.Errorf("arguments %q: %v", args, err)
		}
		if got := string(compactJSON(nil, s.sent[len(s.sent)-1].Params)); got != `{"name":"na\"me","arguments":{}}` {
			t.Errorf("arguments %q: params %s", args, got)
		}
	}
	sent := len(s.sent)
	for _, args := range []string{"[]", `"x"`, "1", "{", `{"a":1,"a":2}`, "{\"a\":\"\xff\"}"} {
		if _, err := c.callTool(t.Context(), "x", json.RawMessage(args)); err == nil {
			t.Errorf("arguments %q were taken", args)
		}
	}
	if len(s.sent) != sent {
		t.Errorf("%d calls with bad arguments were sent", len(s.sent)-sent)
	}
}

// F11, W21: pages are followed, cursors go back as they came, an empty one ends the list.
func TestF11Pages(t *testing.T) {
	tool := func(name string) string { return `{"name":"` + name + `","inputSchema":{"type":"object"}}` }
	cursor := ` p"2\/é+= `
	c, s := listClient(t, pages(map[string]string{
		"":     `{"tools":[` + tool("a") + `,` + tool("b") + `],"nextCursor":` + string(appendJSONString(nil, cursor)) + `}`,
		cursor: `{"tools":[` + tool("c") + `]}`,
	}))
	l, err := c.listTools(t.Context())
	if err != nil || clientNames(l) != "a b c" || l.Total != 3 || l.Incomplete != "" || len(l.Warnings) != 0 {
		t.Errorf("list = %s, %+v, %v", clientNames(l), l, err)
	}
	if got := s.methods(); got != "initialize notifications/initialized tools/list tools/list" {
		t.Errorf("sent %s", got)
	}
	for _, last := range []string{`,"nextCursor":""`, `,"nextCursor":null`, ``} {
		c, s := listClient(t, func(*string) string { return `{"tools":[` + tool("a") + `]` + last + `}` })
		if l, err := c.listTools(t.Context()); err != nil || clientNames(l) != "a" || len(s.sent) != 3 {
			t.Errorf("%s: list = %s, %v", last, clientNames(l), err)
		}
	}
}

// LST-01, F11: a cursor that comes back ends the list, marked incomplete, without duplicates.
func TestLST01CursorCircle(t *testing.T) {
	same := `{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}],"nextCursor":"x"}`
	c, s := listClient(t, func(*string) string { return same })
	l, err := c.listTools(t.Context())
	if err != nil || clientNames(l) != "a b" || l.Total != 2 || !strings.Contains(l.Incomplete, "cursor") || len(l.Warnings) != 0 {
		t.Errorf("list = %s, %+v, %v", clientNames(l), l, err)
	}
	if got := strings.Count(s.methods(), methodToolsList); got != 2 {
		t.Errorf("%d pages were asked for", got)
	}
	n := 0
	c, _ = listClient(t, func(*string) string { n++; return fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n) })
	if l, err = c.listTools(t.Context()); err != nil || n != mcpMaxPages || !strings.Contains(l.Incomplete, "200 pages") {
		t.Errorf("after %d pages: %+v, %v", n, l, err)
	}
	// Pages that are large, each with a new cursor: what is kept stays bounded.
	n = 0
	wide := strings.Repeat("w", 4<<20)
	c, _ = listClient(t, func(*string) string {
		n++
		return fmt.Sprintf(`{"tools":[{"name":"t%d","description":"%s","inputSchema":{}}],"nextCursor":"%d"}`, n, wide, n)
	})
	if l, err = c.listTools(t.Context()); err != nil || n != 3 || !strings.Contains(l.Incomplete, "10 MB") {
		t.Errorf("after %d large pages: %q, %v", n, l.Incomplete, err)
	}
	// R2: cursors are kept too.
	c, _ = listClient(t, func(*string) string { return `{"tools":[],"nextCursor":"` + wide + `"}` })
	if l, err = c.listTools(t.Context()); err != nil || !strings.Contains(l.Incomplete, "64 KB") {
		t.Errorf("a cursor of %d bytes: %q, %v", len(wide), l.Incomplete, err)
	}
	c, _ = listClient(t, func(*string) string { return `{"tools":"x"}` })
	if _, err := c.listTools(t.Context()); err == nil || !strings.Contains(err.Error(), "tools") {
		t.Errorf("no list = %v", err)
	}
}

func TestLST02TenThousandTools(t *testing.T) {
	const tool = `{"name":"tool_$N","description":"Does number $N","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`
	c := clientStdio(t, fakeStdio{On: on(methodToolsList,
		fakeStep{Out: `{"jsonrpc":"2.0","id":$ID,"result":{"tools":[`}, fakeStep{Times: 10_000, Items: true, Out: tool}, fakeStep{Out: "]}}\n"})})
	start := time.Now()
	l, err := c.listTools(t.Context())
	if err != nil || l.Total != 10_000 || len(l.Tools) != 10_000 || l.Incomplete != "" || l.Tools[9999].Name != "tool_9999" {
		t.Errorf("%d of %d tools, %q, %v", len(l.Tools), l.Total, l.Incomplete, err)
	}
	if d := time.Since(start); d > stdioPrompt {
		t.Errorf("it took %v", d)
	}
	var more []string
	for i := range 10_001 {
		more = append(more, strings.ReplaceAll(tool, "$N", fmt.Sprint(i)))
	}
	c, _ = listClient(t, func(*string) string { return `{"tools":[` + strings.Join(more, ",") + `]}` })
	if l, err = c.listTools(t.Context()); err != nil || l.Total != 10_001 || len(l.Tools) != 10_000 || !strings.Contains(l.Incomplete, "10001") {
		t.Errorf("%d of %d tools, %q, %v", len(l.Tools), l.Total, l.Incomplete, err)
	}
}

// LST-03, LST-04, LST-05, LST-09, LST-10: one bad tool costs itself only, and is reported.
func TestLST03BadTools(t *testing.T) {
	const ok = `"inputSchema":{"type":"object"}`
	deep := strings.Repeat(`{"a":`, 10_001) + "1" + strings.Repeat("}", 10_001)
	list := []string{
		`{"name":"read",` + ok + `}`, `{"name":"read","inputSchema":{"type":"object","properties":{"x":{}}}}`, `{"name":"read",` + ok + `}`,
		`{"name":"read-file",` + ok + `}`, `{"name":"read.file",` + ok + `}`, `{"name":"read_file",` + ok + `}`,
		`{` + ok + `}`, `{"name":7,` + ok + `}`, `{"name":"",` + ok + `}`, `{"name":"` + strings.Repeat("n", 1<<20) + `",` + ok + `}`,
		`{"name":"string","inputSchema":"x"}`, `{"name":"array","inputSchema":[]}`, `{"name":"null","inputSchema":null}`, `{"name":"missing"}`,
		`{"name":"huge","inputSchema":{"a":"` + strings.Repeat("x", 5<<20) + `"}}`, `{"name":"deep","inputSchema":` + deep + `}`,
		`7`, `{"name":"a\u001b[2J",` + ok + `}`, `{"name":"a\u001b[2J","description":"other",` + ok + `}`, `{"name":"last",` + ok + `}`,
	}
	c, _ := listClient(t, func(*string) string { return `{"tools":[` + strings.Join(list, ",") + `]}` })
	l, err := c.listTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]string{}
	for _, d := range l.Tools {
		name := d.Name[:min(len(d.Name), 20)]
		switch {
		case d.Fault != "":
			state[name] = "fault"
		case d.Warn != "":
			state[name] = "warn"
		default:
			state[name] = "ok"
		}
	}
	want := map[string]string{"read": "ok", "read-file": "ok", "read.file": "ok", "read_file": "ok", strings.Repeat("n", 20): "fault",
		"string": "warn", "array": "warn", "null": "warn", "missing": "warn", "huge": "fault", "deep": "fault", "a\x1b[2J": "ok", "last": "ok"}
	for name, w := range want {
		if state[name] != w {
			t.Errorf("tool %q is %q, want %q", name, state[name], w)
		}
	}
	if len(state) != len(want) || string(l.Tools[0].Raw) != list[0] {
		t.Errorf("tools %v; read is %s", state, l.Tools[0].Raw)
	}
	all := strings.Join(l.Warnings, "\n")
	if strings.Count(all, "twice") != 2 || !strings.Contains(all, "4 tools without a name") || strings.Contains(all, "\x1b") || l.Total != len(list)-1 {
		t.Errorf("total %d, warnings %q", l.Total, l.Warnings)
	}
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf(`{"name":"x","description":"%d"}`, i))
	}
	c, _ = listClient(t, func(*string) string { return `{"tools":[` + strings.Join(many, ",") + `]}` })
	if l, err = c.listTools(t.Context()); err != nil || len(l.Warnings) != mcpListWarnings+1 || !strings.Contains(l.Warnings[mcpListWarnings], "479 more") {
		t.Errorf("%d warnings, %v", len(l.Warnings), err)
	}
}

// A changed list is noted, and no longer once it has been read.
func TestListChanged(t *testing.T) {
	fail := false
	c, s := listClient(t, func(*string) string {
		if fail {
			return `[]`
		}
		return `{"tools":[]}`
	})
	s.onNote("notifications/message", nil)
	if c.stale() {
		t.Error("stale after another notification")
	}
	s.onNote(methodListChanged, nil)
	if !c.stale() {
		t.Error("not stale after list_changed")
	}
	fail = true
	if _, err := c.listTools(t.Context()); err == nil || !c.stale() {
		t.Errorf("stale %v after a list that failed: %v", c.stale(), err)
	}
	fail = false
	if _, err := c.listTools(t.Context()); err != nil || c.stale() {
		t.Errorf("stale %v after a list: %v", c.stale(), err)
	}
	note := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n"
	cc := clientStdio(t, fakeStdio{On: on("tools/call note", fakeStep{Out: note, Reply: `{}`})})
	if _, err := cc.callTool(t.Context(), "note", nil); err != nil || !cc.stale() {
		t.Errorf("over stdio: stale %v, %v", cc.stale(), err)
	}
}

// sessionServer is a Streamable HTTP server that can lose its sessions.
type sessionServer struct {
	mu       sync.Mutex
	sessions int
	live     string // the id that is known
	lost     int    // status for any other one
	never    bool   // every session is unknown at once
	seen     []string
	hold     chan struct{} // a call to the tool "hold" waits for it
	arrived  chan struct{}
}

func (s *sessionServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	m, err := decodeMessage(b)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id := r.Header.Get("Mcp-Session-Id")
	if strings.Contains(string(m.Params), `"hold"`) {
		s.arrived <- struct{}{}
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, m.Method+" "+id)
	switch {
	case m.Method == methodInitialize:
		s.sessions++
		s.live = fmt.Sprintf("s%d", s.sessions)
		w.Header().Set("Mcp-Session-Id", s.live)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, clientInit)
	case id != s.live || s.never && m.ID != nil:
		http.Error(w, "no valid session", s.lost)
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		result := `{"content":[]}`
		if m.Method == methodToolsList {
			result = `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
}

// forget makes the server lose its session.
func (s *sessionServer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live, s.seen = "none", nil
}

func (s *sessionServer) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.seen, ", ")
}

func clientHTTP(t testing.TB, s *sessionServer) *mcpClient {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	tr, err := newHTTPTransport(httpConfig{URL: srv.URL, Client: srv.Client()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := connectMCP(t.Context(), tr, clientTestInfo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.close() })
	return c
}

// F08, HTC-13, W34: two calls that lose the session together share one new one and are not sent again; a list is.
func TestF08SessionLost(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest} {
		s := &sessionServer{lost: status, hold: make(chan struct{}), arrived: make(chan struct{}, 2)}
		c := clientHTTP(t, s)
		s.forget()
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := c.callTool(context.Background(), "hold", nil)
				errs <- err
			}()
		}
		<-s.arrived
		<-s.arrived
		close(s.hold)
		for range 2 {
			err := <-errs
			if he, ok := errors.AsType[*mcpHTTPError](err); !errors.Is(err, errSessionRenewed) || !ok || he.Status != status {
				t.Errorf("%d: call = %v", status, err)
			}
		}
		want := "tools/call s1, tools/call s1, initialize , notifications/initialized s2"
		if got := s.log(); got != want && got != strings.Replace(want, "tools/call s1, initialize , notifications/initialized s2", "initialize , notifications/initialized s2, tools/call s1", 1) {
			t.Errorf("%d: the server saw %s", status, got)
		}
		if !c.stale() || !c.alive() {
			t.Errorf("%d: stale %v, alive %v", status, c.stale(), c.alive())
		}
		if l, err := c.listTools(t.Context()); err != nil || len(l.Tools) != 1 || c.stale() {
			t.Errorf("%d: list = %v, %v", status, l, err)
		}
		if _, err := c.callTool(t.Context(), "a", nil); err != nil {
			t.Errorf("%d: the next call: %v", status, err)
		}
		s.forget()
		if l, err := c.listTools(t.Context()); err != nil || len(l.Tools) != 1 {
			t.Errorf("%d: list = %v, %v", status, l, err)
		}
		if got := s.log(); got != "tools/list s2, initialize , notifications/initialized s3, tools/list s3" {
			t.Errorf("%d: the server saw %s", status, got)
		}
	}
}

// HTC-13, F08: a server that knows no session ever is given up after one new one.
func TestHTC13NeverASession(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest} {
		s := &sessionServer{lost: status, never: true}
		c := clientHTTP(t, s)
		for range 3 {
			if _, err := c.callTool(t.Context(), "a", nil); err == nil {
				t.Errorf("%d: the call was answered", status)
			}
			if _, err := c.listTools(t.Context()); err == nil {
				t.Errorf("%d: the list was answered", status)
			}
		}
		if s.sessions != 2 {
			t.Errorf("%d: %d sessions were made: %s", status, s.sessions, s.log())
		}
	}
	// A renewal that fails makes the client one that has to be connected anew.
	s := &sessionServer{lost: http.StatusNotFound}
	c := clientHTTP(t, s)
	s.forget()
	ctx, cancel := context.WithCancel(t.Context())
	c.t = failingInit{c.t.(*httpTransport)}
	_, err := c.callTool(ctx, "a", nil)
	cancel()
	if err == nil || c.alive() || !strings.Contains(err.Error(), "renewing the session") {
		t.Errorf("call = %v, alive %v", err, c.alive())
	}
}

// failingInit refuses every further initialize.
type failingInit struct{ *httpTransport }

func (f failingInit) call(ctx context.Context, m rpcMessage) (rpcMessage, error) {
	if m.Method == methodInitialize {
		return rpcMessage{}, errors.New("not now")
	}
	return f.httpTransport.call(ctx, m)
}

func TestClientSurvivesOthers(t *testing.T) { // R3: one server's death is no other's
	one, two := clientStdio(t, fakeStdio{}), clientStdio(t, fakeStdio{})
	if _, err := one.callTool(t.Context(), "exit", json.RawMessage(`{"code":1}`)); err == nil {
		t.Error("exit was answered")
	}
	if got := clientText(t, two, "add", `{"a":1,"b":1}`); got != "2" {
		t.Errorf("add = %q", got)
	}
	before := runtime.NumGoroutine()
	three := clientStdio(t, fakeStdio{})
	if err := three.close(); err != nil {
		t.Error(err)
	}
	if n := runtime.NumGoroutine(); n > before+1 {
		t.Errorf("%d goroutines before a connection, %d after it", before, n)
	}
}

func BenchmarkListParse(b *testing.B) {
	var list strings.Builder
	for i := range 100 {
		fmt.Fprintf(&list, `,{"name":"tool_%d","description":"Does it","inputSchema":{"type":"object","properties":{`, i)
		for j := range 200 {
			if j > 0 {
				list.WriteByte(',')
			}
			fmt.Fprintf(&list, `"p%d":{"type":"string","description":"%s"}`, j, strings.Repeat("words ", 10))
		}
		list.WriteString(`}}}`)
	}
	result := `{"tools":[` + list.String()[1:] + `]}`
	c, _ := listClient(b, func(*string) string { return result })
	b.SetBytes(int64(len(result)))
	b.ReportAllocs()
	for b.Loop() {
		if l, err := c.listTools(b.Context()); err != nil || len(l.Tools) != 100 {
			b.Fatal(err)
		}
	}
}

// HTC-13: an answer that an old session gave late does not speak for the one that has taken its place.
func TestHTC13OldAnswer(t *testing.T) {
	c := clientHTTP(t, &sessionServer{lost: http.StatusNotFound})
	c.generation = 1
	for generation, want := range []bool{false, true} {
		c.answered(t.Context(), generation, methodToolsList, true)
		if c.proven != want {
			t.Errorf("an answer of session %d in session 1: proven %v", generation, c.proven)
		}
	}
}
