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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeModel is a scripted OpenAI-compatible endpoint: each request takes the next answer, the last one stays.
type fakeModel struct {
	*httptest.Server
	mu       sync.Mutex
	answers  []func(w http.ResponseWriter)
	requests [][]byte
	headers  []http.Header
}

func newFakeModel(t *testing.T, answers ...func(w http.ResponseWriter)) *fakeModel {
	t.Helper()
	m := &fakeModel{answers: answers}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/chat/completions" && r.URL.Path != "/v1/messages" || r.Method != http.MethodPost {
			http.Error(w, "wrong door", http.StatusTeapot)
			return
		}
		m.mu.Lock()
		m.requests, m.headers = append(m.requests, body), append(m.headers, r.Header.Clone())
		next := m.answers[min(len(m.requests), len(m.answers))-1]
		m.mu.Unlock()
		next(w)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *fakeModel) seen() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

// client is a chatClient of the endpoint that waits for nothing; waits holds what it would have waited.
func (m *fakeModel) client(t *testing.T) (c *chatClient, waits *[]time.Duration) {
	t.Helper()
	c = newChatClient(chatEndpoint{Name: "test", BaseURL: m.URL + "/v1", Model: "m-1", Key: "sk-very-secret-key", KeyFrom: "TEST_KEY"}, newHTTPClient(httpClientConfig{}))
	waits = &[]time.Duration{}
	c.wait = func(_ context.Context, d time.Duration) error {
		*waits = append(*waits, d)
		return nil
	}
	return c, waits
}

// chatStream answers with events as they are on the wire, cut into pieces of size bytes.
func chatStream(size int, events ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		body := []byte{}
		for _, e := range events {
			body = append(body, "data: "+e+"\n\n"...)
		}
		for piece := range slices.Chunk(body, size) {
			if _, err := w.Write(piece); err != nil {
				return
			}
			if f, ok := w.(http.Flusher); ok && len(events) < 40 {
				f.Flush()
			}
		}
	}
}

func chatStatus(status int, kind, body string, header ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", kind)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body) // a client that is gone is no matter here
	}
}

func chatText(text string) string {
	return fmt.Sprintf(`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}],"usage":null}`, text)
}

func chatCall(index int, id, name, args string) string {
	head := ""
	if id != "" {
		head = fmt.Sprintf(`"id":%q,"type":"function",`, id)
	}
	fn := ""
	if name != "" {
		fn = fmt.Sprintf(`"name":%q,`, name)
	}
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,%s"function":{%s"arguments":%q}}]},"finish_reason":null}]}`, index, head, fn, args)
}

func chatStop(why string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, why)
}

const (
	chatFirst = `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
	chatUses  = `{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":5,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":4}}}`
)

func TestChatStream(t *testing.T) {
	twoCalls := []string{
		chatFirst, chatText("I will look."), chatCall(0, "call_a", "file_read", ""), chatCall(0, "", "", `{"pa`), chatCall(1, "call_b", "text_search", `{"pattern"`),
		chatCall(0, "", "", `th":"a"}`), chatCall(1, "", "", `:"né\"e"}`), chatStop("tool_calls"), chatUses, "[DONE]",
	}
	for name, tc := range map[string]struct {
		events []string
		want   chatReply
	}{
		"text": {
			[]string{chatFirst, chatText("Héllo "), chatText("wörld 🌍"), chatStop("stop"), chatUses, "[DONE]"},
			chatReply{Text: "Héllo wörld 🌍", Stop: "stop", Usage: chatUsage{12, 5, 4}},
		},
		"two calls": {twoCalls, chatReply{
			Text: "I will look.", Stop: "tool_calls", Usage: chatUsage{12, 5, 4},
			Calls: []chatToolCall{{"call_a", "file_read", `{"path":"a"}`}, {"call_b", "text_search", `{"pattern":"né\"e"}`}},
		}},
		"no DONE":   {[]string{chatText("x"), chatStop("length")}, chatReply{Text: "x", Stop: "length"}},
		"no finish": {[]string{chatText("x"), "[DONE]"}, chatReply{Text: "x", Stop: "stop"}},
		"every call counted as 0": {
			[]string{chatCall(0, "a", "one", "{}"), chatCall(0, "b", "two", "{}"), chatStop("tool_calls")},
			chatReply{Stop: "tool_calls", Calls: []chatToolCall{{"a", "one", "{}"}, {"b", "two", "{}"}}},
		},
		"no index": {
			[]string{
				`{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"one","arguments":"{"}}]}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"}"}},{"id":"b","function":{"name":"two","arguments":"{}"}}]}}]}`, chatStop("stop"),
			},
			chatReply{Stop: "stop", Calls: []chatToolCall{{"a", "one", "{}"}, {"b", "two", "{}"}}},
		},
		"arguments as an object, null content": {
			[]string{`{"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":{"x":1}}}]},"finish_reason":"tool_calls"}]}`},
			chatReply{Stop: "tool_calls", Calls: []chatToolCall{{"a", "one", `{"x":1}`}}},
		},
		"key of another case is another key": {
			[]string{`{"choices":[{"delta":{"content":"a","Content":"b"}}]}`, chatStop("stop")}, chatReply{Text: "a", Stop: "stop"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 3, 7, 1000} { // chunks end anywhere, also inside a character
				m := newFakeModel(t, chatStream(size, tc.events...))
				c, _ := m.client(t)
				var shown strings.Builder
				got, err := c.complete(t.Context(), chatRequest{}, func(d chatDelta) { shown.WriteString(d.Text) })
				if err != nil || got.Text != tc.want.Text || got.Stop != tc.want.Stop || got.Usage != tc.want.Usage || !slices.Equal(got.Calls, tc.want.Calls) {
					t.Errorf("pieces of %d: %+v, %v, want %+v", size, got, err, tc.want)
				}
				if shown.String() != tc.want.Text {
					t.Errorf("pieces of %d: shown %q", size, shown.String())
				}
			}
		})
	}
}

// Calls without an id, or with one that stands twice, get ids of their own, since results are told apart by them.
func TestChatCallIDs(t *testing.T) {
	m := newFakeModel(t, chatStream(50, chatCall(0, "", "one", "{}"), chatCall(1, "", "two", "{}"), chatCall(2, "x", "three", "{}"), chatCall(3, "x", "four", "{}"), chatStop("tool_calls")))
	c, _ := m.client(t)
	r, err := c.complete(t.Context(), chatRequest{}, func(chatDelta) {})
	if err != nil || len(r.Calls) != 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	ids := map[string]bool{}
	for _, call := range r.Calls {
		ids[call.ID] = true
	}
	if len(ids) != 4 || ids[""] {
		t.Errorf("ids: %+v", r.Calls)
	}
}

// An endpoint that does not stream is understood, too.
func TestChatWhole(t *testing.T) {
	body := `{"choices":[{"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"a","function":{"name":"one","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`
	m := newFakeModel(t, chatStatus(200, "application/json", body))
	c, _ := m.client(t)
	r, err := c.complete(t.Context(), chatRequest{}, func(chatDelta) {})
	if err != nil || r.Text != "hi" || len(r.Calls) != 1 || r.Usage.Output != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestChatRequestBody(t *testing.T) {
	m := newFakeModel(t, chatStream(100, chatText("x"), chatStop("stop")))
	c, _ := m.client(t)
	_, err := c.complete(t.Context(), chatRequest{
		System: "Be \"short\"\n",
		Messages: []chatMessage{
			{Role: roleUser, Content: "hé"},
			{Role: roleAssistant, Calls: []chatToolCall{{"a", "one", `{"x":1}`}, {"b", "two", `{"broken`}, {"c", "three", ``}, {"d", "four", `[1]`}}},
			{Role: roleTool, CallID: "a", Content: "res"}, {Role: roleTool, CallID: "b", Content: "r2"}, {Role: roleTool, CallID: "c", Content: "r3"}, {Role: roleTool, CallID: "d", Content: "r4"},
		},
		Tools:     []chatTool{{"one", "Does one.", json.RawMessage(`{"type":"object","properties":{}}`)}},
		MaxTokens: 7,
	}, func(chatDelta) {})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"m-1","stream":true,"stream_options":{"include_usage":true},"max_tokens":7,"messages":[` +
		`{"role":"system","content":"Be \"short\"\n"},{"role":"user","content":"hé"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"one","arguments":"{\"x\":1}"}},` +
		`{"id":"b","type":"function","function":{"name":"two","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"three","arguments":"{}"}},` +
		`{"id":"d","type":"function","function":{"name":"four","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"a","content":"res"},{"role":"tool","tool_call_id":"b","content":"r2"},{"role":"tool","tool_call_id":"c","content":"r3"},{"role":"tool","tool_call_id":"d","content":"r4"}],` +
		`"tools":[{"type":"function","function":{"name":"one","description":"Does one.","parameters":{"type":"object","properties":{}}}}]}`
	if got := string(m.requests[0]); got != want {
		t.Errorf("body\n%s\nwant\n%s", got, want)
	}
	if got := m.headers[0].Get("Authorization"); got != "Bearer sk-very-secret-key" {
		t.Errorf("Authorization %q", got)
	}
	for _, name := range []string{"mistral", "openai"} {
		e := chatEndpoint{Name: name, chatQuirks: quirksOf(name, "x")}
		body := appendChatRequest(nil, e, chatRequest{MaxTokens: 3})
		if bytes.Contains(body, []byte("stream_options")) == e.plainUsage || bytes.Contains(body, []byte("max_completion_tokens")) != (e.Name == "openai") || checkJSON(body) != nil {
			t.Errorf("%s: %s", e.Name, body)
		}
	}
}

func TestChatFaults(t *testing.T) {
	t.Parallel()
	const page = "<!DOCTYPE html><html><body>Bad gateway</body></html>"
	hang := func(w http.ResponseWriter) {
		if hj, ok := w.(http.Hijacker); ok {
			if conn, _, err := hj.Hijack(); err == nil {
				conn.Close()
			}
		}
	}
	for name, tc := range map[string]struct {
		answer   func(http.ResponseWriter)
		fault    chatFault
		requests int
		text     string // part of the message
		hint     string
		kept     string // text that had come
	}{
		"wrong key":          {chatStatus(401, "application/json", `{"error":{"message":"Incorrect API key provided: sk-very-secret-key.","code":"invalid_api_key"}}`), faultKey, 1, "HTTP 401", "check TEST_KEY", ""},
		"gemini's wrong key": {chatStatus(400, "application/json", `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`), faultKey, 1, "API key not valid", "check TEST_KEY", ""},
		"no credit":          {chatStatus(429, "application/json", `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}`), faultCredit, 1, "quota", "no credit", ""},
		"payment":            {chatStatus(402, "application/json", `{"error":{"message":"Insufficient credits","code":402}}`), faultCredit, 1, "credits", "no credit", ""},
		"unknown model":      {chatStatus(404, "application/json", `{"error":{"message":"The model 'm-1' does not exist","code":"model_not_found"}}`), faultModel, 1, "does not exist", "TAI_MODEL", ""},
		"ollama's model":     {chatStatus(404, "application/json", `{"error":"model \"m-1\" not found, try pulling it first"}`), faultModel, 1, "not found", `"m-1"`, ""},
		"mistral's model":    {chatStatus(400, "application/json", `{"object":"error","message":"Invalid model: m-1","type":"invalid_model","code":"1500"}`), faultModel, 1, "Invalid model", "TAI_MODEL", ""},
		"too long":           {chatStatus(400, "application/json", `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`), faultContext, 1, "8192", "new conversation", ""},
		"wrong address":      {chatStatus(404, "text/html", page), faultRequest, 1, "web page", "OpenAI-compatible", ""},
		"page and 200":       {chatStatus(200, "text/html", page), faultReply, 1, "web page", "OpenAI-compatible", ""},
		"not JSON":           {chatStatus(200, "application/json", "ok"), faultReply, 1, "read reply chunk", "OpenAI-compatible", ""},
		"moved":              {chatStatus(307, "text/plain", "", "Location", "https://elsewhere.example/v1"), faultRequest, 1, "moved to", "OpenAI-compatible", ""},
		"bad request":        {chatStatus(400, "application/json", `{"detail":"tools[0] is \u001b[31mwrong"}`), faultRequest, 1, `tools[0] is \u001b[31mwrong`, "OpenAI-compatible", ""},
		"no body":            {chatStatus(418, "text/plain", ""), faultRequest, 1, "no reason given", "OpenAI-compatible", ""},
		"server fault":       {chatStatus(500, "application/json", `{"error":{"message":"oops"}}`), faultOverloaded, chatTries, "HTTP 500: oops", "later", ""},
		"gateway page":       {chatStatus(502, "text/html", page), faultOverloaded, chatTries, "web page", "later", ""},
		"rate":               {chatStatus(429, "application/json", `{"error":{"message":"slow down"}}`), faultRate, chatTries, "slow down", "later", ""},
		"long wait":          {chatStatus(429, "application/json", `{"error":{"message":"slow down"}}`, "Retry-After", "3600"), faultRate, 1, "slow down", "1h0m0s", ""},
		"hangs up":           {hang, faultUnreachable, chatTries, "EOF", "started?", ""},
		"cut stream":         {chatStream(9, chatFirst, chatText("half an ans")), faultReply, 1, "ended before it was complete", "", "half an ans"},
		"half a tool call":   {chatStream(9, chatCall(0, "a", "one", `{"pa`)), faultReply, 1, "ended before it was complete", "", ""},
		"error in stream":    {chatStream(9, chatText("so far"), `{"error":{"message":"Provider overloaded","code":503}}`), faultOverloaded, 1, "overloaded", "later", "so far"},
		"broken chunk":       {chatStream(9, chatText("so far"), `{"choices":[{"delta":{"content":`), faultReply, 1, "read reply chunk", "", "so far"},
		"endless calls":      {chatStream(1<<20, slices.Repeat([]string{chatCall(0, "", "", strings.Repeat("x", 1<<20))}, 5)...), faultReply, 1, "arguments over", "", ""},
		"endless stream":     {chatStream(1<<20, slices.Repeat([]string{chatText(strings.Repeat("x", 1<<20))}, 12)...), faultReply, 1, "over 10485760 bytes", "", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newFakeModel(t, tc.answer)
			c, waits := m.client(t)
			r, err := c.complete(t.Context(), chatRequest{}, func(chatDelta) {})
			ce, ok := errors.AsType[*chatError](err)
			if !ok || ce.Fault != tc.fault || !strings.Contains(ce.Message, tc.text) || !strings.Contains(ce.Hint, tc.hint) {
				t.Fatalf("%#v, want %s with %q and hint %q", err, tc.fault, tc.text, tc.hint)
			}
			if strings.Contains(ce.Message+ce.Hint, "very-secret") || strings.ContainsRune(ce.Message, 0x1b) {
				t.Errorf("the message shows what it must not: %q", ce.Message)
			}
			if m.seen() != tc.requests || len(*waits) != tc.requests-1 {
				t.Errorf("%d requests and %d waits, want %d requests", m.seen(), len(*waits), tc.requests)
			}
			if !strings.HasPrefix(r.Text, tc.kept) || len(r.Calls) > 0 {
				t.Errorf("reply %.50q with %d calls, want text %q and none", r.Text, len(r.Calls), tc.kept)
			}
		})
	}
}

// A fault that passes is waited out: as long as the endpoint says, else longer each time; the person is told.
func TestChatRetries(t *testing.T) {
	fine := chatStream(50, chatText("fine"), chatStop("stop"))
	m := newFakeModel(t, chatStatus(429, "application/json", `{}`, "Retry-After", "7"), chatStatus(503, "text/plain", "busy"), chatStatus(500, "text/plain", ""), fine)
	c, waits := m.client(t)
	var notices []string
	r, err := c.complete(t.Context(), chatRequest{}, func(d chatDelta) {
		if d.Notice != "" {
			notices = append(notices, d.Notice)
		}
	})
	if err != nil || r.Text != "fine" || m.seen() != 4 || len(notices) != 3 {
		t.Fatalf("%+v, %v after %d requests, notices %q", r, err, m.seen(), notices)
	}
	w := *waits
	if w[0] != 7*time.Second || w[1] < 2*chatFirstWait || w[2] < 4*chatFirstWait || w[2] > 6*chatFirstWait {
		t.Errorf("waits %v", w)
	}
	if !strings.Contains(notices[0], "HTTP 429") || !strings.Contains(notices[0], "7s") {
		t.Errorf("notice %q", notices[0])
	}
	c.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC) }
	ms := &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"6500.5"}}}
	if got := c.retryAfter(ms); got != 6500500*time.Microsecond {
		t.Errorf("retry-after-ms = %s", got)
	}
	ms.Header.Set("X-Should-Retry", "false")
	if got := c.retryAfter(ms); got >= 0 {
		t.Errorf("x-should-retry: false = %s", got)
	}
	for value, want := range map[string]time.Duration{
		"Fri, 02 Jan 2026 03:04:09 GMT": 9 * time.Second, "Fri, 02 Jan 2026 03:03:00 GMT": 0, "1.5": 1500 * time.Millisecond, "-3": 0, "soon": 0, "": 0,
	} {
		resp := &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {value}}}
		if got := c.retryAfter(resp); got != want {
			t.Errorf("Retry-After %q = %s, want %s", value, got, want)
		}
	}
}

// One deadline for the whole completion; bytes that trickle in do not extend it (R1). An interrupt ends it at once.
func TestChatDeadline(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	first := make(chan struct{}, 1)
	m := newFakeModel(t, func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", chatText("so far"))
		w.(http.Flusher).Flush()
		first <- struct{}{}
		for {
			select {
			case <-release:
				return
			case <-time.After(5 * time.Millisecond):
				if _, err := io.WriteString(w, ": still here\n"); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			}
		}
	})
	c, _ := m.client(t)
	if c.timeout != 600*time.Second {
		t.Errorf("the deadline is %s", c.timeout)
	}
	c.timeout = 100 * time.Millisecond
	r, err := c.complete(t.Context(), chatRequest{}, func(chatDelta) {})
	ce, ok := errors.AsType[*chatError](err)
	if !ok || !strings.Contains(ce.Message, "within 100ms") || r.Text != "so far" || m.seen() != 1 {
		t.Errorf("%+v, %v after %d requests", r, err, m.seen())
	}
	<-first
	c.timeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	r, err = c.complete(ctx, chatRequest{}, func(chatDelta) { cancel() })
	if !errors.Is(err, context.Canceled) || r.Text != "so far" {
		t.Errorf("interrupted: %+v, %v", r, err)
	}
}

func TestChatUnreachable(t *testing.T) {
	m := newFakeModel(t, chatStatus(200, "", ""))
	c, waits := m.client(t)
	m.Close()
	_, err := c.complete(t.Context(), chatRequest{}, func(chatDelta) {})
	ce, ok := errors.AsType[*chatError](err)
	if !ok || ce.Fault != faultUnreachable || !strings.Contains(ce.Message, "refused") || !strings.Contains(ce.Hint, m.URL) || len(*waits) != chatTries-1 {
		t.Errorf("%#v after %d waits", err, len(*waits))
	}
}

func TestFindEndpoint(t *testing.T) {
	known := func(name, model, key, from string) chatEndpoint {
		p, ok := chatProviderOf(name)
		if !ok {
			t.Fatalf("no provider %s", name)
		}
		e := p.endpoint(model)
		e.Key, e.KeyFrom = secret(key), from
		return e
	}
	custom := func(base, model, key, from string) chatEndpoint {
		return chatEndpoint{Name: "custom", Wire: wireOpenAI, BaseURL: base, Model: model, Key: secret(key), KeyFrom: from}
	}
	claude := custom("http://127.0.0.1:1/v1", "x", "k", "ANTHROPIC_API_KEY")
	claude.Wire = wireAnthropic
	for name, tc := range map[string]struct {
		env  map[string]string
		want chatEndpoint
		err  string
	}{
		"nothing":       {nil, chatEndpoint{}, "no model is set: looked for TAI_BASE_URL"},
		"anthropic":     {map[string]string{"ANTHROPIC_API_KEY": " k1\n", "OPENAI_API_KEY": "o"}, known("anthropic", "", "k1", "ANTHROPIC_API_KEY"), ""},
		"claude there":  {map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "ANTHROPIC_MODEL": "x"}, claude, ""},
		"openai":        {map[string]string{"OPENAI_API_KEY": " k1\n"}, known("openai", "", "k1", "OPENAI_API_KEY"), ""},
		"openai model":  {map[string]string{"OPENAI_API_KEY": "k", "OPENAI_MODEL": "x"}, known("openai", "x", "k", "OPENAI_API_KEY"), ""},
		"tai's model":   {map[string]string{"OPENAI_API_KEY": "k", "OPENAI_MODEL": "x", "TAI_MODEL": "y"}, known("openai", "y", "k", "OPENAI_API_KEY"), ""},
		"own address":   {map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1/", "OPENAI_MODEL": "x"}, custom("http://127.0.0.1:1/v1", "x", "", ""), ""},
		"its own":       {map[string]string{"OPENAI_BASE_URL": "https://api.openai.com/v1/", "OPENAI_API_KEY": "k"}, known("openai", "", "k", "OPENAI_API_KEY"), ""},
		"own, no model": {map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "k"}, chatEndpoint{}, "no model: set OPENAI_MODEL or TAI_MODEL"},
		"tai first": {
			map[string]string{"TAI_BASE_URL": "http://h/v1/chat/completions", "TAI_MODEL": "m", "TAI_API_KEY": "t", "OPENAI_API_KEY": "o"},
			custom("http://h/v1", "m", "t", "TAI_API_KEY"), "",
		},
		"tai without key": {map[string]string{"TAI_BASE_URL": "http://h/v1", "TAI_MODEL": "m", "OPENAI_API_KEY": "o"}, custom("http://h/v1", "m", "", ""), ""}, // R9: the other key stays home
		"key, no address": {map[string]string{"TAI_API_KEY": "t"}, chatEndpoint{}, "without TAI_BASE_URL"},
		"groq":            {map[string]string{"GROQ_API_KEY": "g", "TAI_MODEL": "m"}, known("groq", "m", "g", "GROQ_API_KEY"), ""},
		"google":          {map[string]string{"GOOGLE_API_KEY": "g"}, known("gemini", "", "g", "GOOGLE_API_KEY"), ""},
		"no address":      {map[string]string{"TAI_BASE_URL": "localhost:11434", "TAI_MODEL": "m"}, chatEndpoint{}, "no http or https address"},
		"user in address": {map[string]string{"TAI_BASE_URL": "http://a:b@h/v1", "TAI_MODEL": "m"}, chatEndpoint{}, "a user"},
		"header break":    {map[string]string{"OPENAI_API_KEY": "k\r\nX: y"}, chatEndpoint{}, "OPENAI_API_KEY holds a line break"},
	} {
		got, err := findEndpoint(func(k string) string { return tc.env[k] })
		if got != tc.want || (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%s: got %+v, %v, want %+v, %q", name, got, err, tc.want, tc.err)
		}
		if (name == "nothing") != errors.Is(err, errNoModel) {
			t.Errorf("%s: errNoModel told wrong: %v", name, err)
		}
	}
	for _, p := range chatProviders() {
		for _, key := range p.keys {
			got, err := findEndpoint(func(k string) string { return map[string]string{key: "k"}[k] })
			if err != nil || got.Name != p.name || got.BaseURL != p.base || got.Model != p.model || got.KeyFrom != key {
				t.Errorf("%s: got %+v, %v", key, got, err)
			}
			if checked, err := got.checked("", ""); err != nil || checked != got {
				t.Errorf("%s: its own address changes when it is checked: got %+v, %v", key, checked, err)
			}
		}
	}
}
