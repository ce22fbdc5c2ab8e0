package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// claude is a client of the scripted endpoint that speaks the other wire.
func (m *fakeModel) claude(t *testing.T) *chatClient {
	t.Helper()
	c, _ := m.client(t)
	c.endpoint.Wire = wireAnthropic
	return c
}

// claudeStream answers with events as they are on that wire, cut into pieces of size bytes; each event is named by its type.
func claudeStream(size int, events ...string) func(http.ResponseWriter) {
	var body []byte
	for _, e := range events {
		fields, err := chatFields([]byte(e))
		if kind, _ := jsonString(fields["type"]); err == nil {
			body = append(body, "event: "+kind+"\n"...)
		}
		body = append(body, "data: "+e+"\n\n"...)
	}
	return chatRaw(size, "text/event-stream; charset=utf-8", body)
}

// chatRaw answers with bytes, cut into pieces.
func chatRaw(size int, kind string, body []byte, header ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", kind)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		for piece := range slices.Chunk(body, size) {
			if _, err := w.Write(piece); err != nil {
				return
			}
			if f, ok := w.(http.Flusher); ok && len(body) < 1<<14 {
				f.Flush()
			}
		}
	}
}

const (
	claudeStart = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m-1","stop_reason":null,"usage":{"input_tokens":7,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":1}}}`
	claudePing  = `{"type":"ping"}`
	claudeEnd   = `{"type":"message_stop"}`
)

func claudeText(index int, parts ...string) []string {
	events := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`, index)}
	for _, p := range parts {
		events = append(events, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%q}}`, index, p))
	}
	return append(events, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))
}

func claudeCall(index int, id, name string, parts ...string) []string {
	events := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}}`, index, id, name)}
	for _, p := range parts {
		events = append(events, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`, index, p))
	}
	return append(events, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))
}

func claudeStop(why string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":15}}`, why)
}

func TestAnthropicStream(t *testing.T) {
	t.Parallel()
	used := chatUsage{127, 15, 100}
	calls := slices.Concat([]string{claudeStart, claudePing},
		[]string{`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`, `{"type":"content_block_stop","index":0}`},
		claudeText(1, "I will ", "look."), claudeCall(2, "toolu_1", "file_read", "", `{"pa`, `th":"né`, `\"e"}`), claudeCall(3, "toolu_2", "mcp_list"),
		[]string{`{"type":"content_block_start","index":4,"content_block":{"type":"of_tomorrow","x":[1]}}`, `{"type":"content_block_delta","index":4,"delta":{"type":"of_tomorrow_delta"}}`,
			`{"type":"of_tomorrow","y":{}}`, claudeStop("tool_use"), claudeEnd})
	for name, tc := range map[string]struct {
		events []string
		want   chatReply
	}{
		"text": {slices.Concat([]string{claudeStart}, claudeText(0, "Héllo ", "wörld 🌍"), []string{claudeStop("end_turn"), claudeEnd}),
			chatReply{Text: "Héllo wörld 🌍", Stop: "stop", Usage: used}},
		"thoughts, text, calls, what is unknown": {calls, chatReply{Text: "I will look.", Stop: "tool_calls", Usage: used,
			Calls: []chatToolCall{{"toolu_1", "file_read", `{"path":"né\"e"}`}, {"toolu_2", "mcp_list", "{}"}}}},
		"no message_stop":   {slices.Concat([]string{claudeStart}, claudeText(0, "x"), []string{claudeStop("max_tokens")}), chatReply{Text: "x", Stop: "length", Usage: used}},
		"refused":           {slices.Concat([]string{claudeStart}, claudeText(0, "x"), []string{claudeStop("refusal"), claudeEnd}), chatReply{Text: "x", Stop: "content_filter", Usage: used}},
		"stop sequence":     {slices.Concat([]string{claudeStart}, claudeText(0, "x"), []string{claudeStop("stop_sequence"), claudeEnd}), chatReply{Text: "x", Stop: "stop", Usage: used}},
		"the window's end":  {slices.Concat([]string{claudeStart}, claudeText(0, "x"), []string{claudeStop("model_context_window_exceeded"), claudeEnd}), chatReply{Text: "x", Stop: "length", Usage: used}},
		"a word of its own": {slices.Concat([]string{claudeStart}, claudeText(0, "x"), []string{claudeStop("pause_turn"), claudeEnd}), chatReply{Text: "x", Stop: "pause_turn", Usage: used}},
		"input at the start": {[]string{`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"one","input":{"x":1}}}`, claudeStop("tool_use")},
			chatReply{Stop: "tool_calls", Usage: chatUsage{0, 15, 0}, Calls: []chatToolCall{{"a", "one", `{"x":1}`}}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 3, 7, 4000} {
				m := newFakeModel(t, claudeStream(size, tc.events...))
				var shown strings.Builder
				got, err := m.claude(t).complete(t.Context(), chatRequest{}, func(d chatDelta) { shown.WriteString(d.Text) })
				if err != nil || got.Text != tc.want.Text || got.Stop != tc.want.Stop || got.Usage != tc.want.Usage || !slices.Equal(got.Calls, tc.want.Calls) || !got.Streamed {
					t.Errorf("pieces of %d: got %+v, %v, want %+v", size, got, err, tc.want)
				}
				if shown.String() != tc.want.Text {
					t.Errorf("pieces of %d: shown %q", size, shown.String())
				}
			}
		})
	}
}

// The same events are read the same however they are framed: CR LF, comments, data over several lines, no event names, cut at each byte.
func TestChatFraming(t *testing.T) {
	t.Parallel()
	for wire, events := range map[chatWire][]string{
		wireOpenAI:    {chatFirst, chatText("Hé🌍"), chatCall(0, "a", "one", `{"x":`), chatCall(0, "", "", `1}`), chatStop("tool_calls"), chatUses, "[DONE]"},
		wireAnthropic: slices.Concat([]string{claudeStart, claudePing}, claudeText(0, "Hé🌍"), claudeCall(1, "a", "one", `{"x":`, `1}`), []string{claudeStop("tool_use"), claudeEnd}),
	} {
		for name, frame := range map[string]func(string) string{
			"plain":          func(e string) string { return "data: " + e + "\n\n" },
			"CR LF":          func(e string) string { return "event: x\r\ndata: " + e + "\r\n\r\n" },
			"CR":             func(e string) string { return "data:" + e + "\r\r" },
			"comments":       func(e string) string { return ": still here\n\n:\ndata: " + e + "\nid: 7\nretry: 10\n\n" },
			"several lines":  func(e string) string { return "data: " + strings.Replace(e, ",", ",\ndata: ", 1) + "\n\n" },
			"unknown fields": func(e string) string { return "foo: bar\ndata: " + e + "\n\nevent: nothing\n\n" },
		} {
			var body []byte
			for _, e := range events {
				body = append(body, frame(e)...)
			}
			for cut := 0; cut <= len(body); cut++ { // two pieces, at each border
				reader := newChatReader(wire)
				resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {httpTypeSSE}}, Body: &chatPieces{parts: [][]byte{body[:cut], body[cut:]}}}
				got, err := readChatReply(resp, reader, func(chatDelta) {})
				if err != nil || got.Text != "Hé🌍" || got.Stop != stopCalls || !slices.Equal(got.Calls, []chatToolCall{{"a", "one", `{"x":1}`}}) || got.Usage.Output == 0 {
					t.Fatalf("%s, %s, cut at %d: got %+v, %v", wire, name, cut, got, err)
				}
			}
		}
	}
}

// chatPieces gives each part in one read.
type chatPieces struct{ parts [][]byte }

func (p *chatPieces) Read(b []byte) (int, error) {
	for len(p.parts) > 0 && len(p.parts[0]) == 0 {
		p.parts = p.parts[1:]
	}
	if len(p.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.parts[0])
	p.parts[0] = p.parts[0][n:]
	return n, nil
}

func (p *chatPieces) Close() error { return nil }

func TestAnthropicRequest(t *testing.T) {
	t.Parallel()
	m := newFakeModel(t, claudeStream(4000, claudeStop("end_turn")))
	tools := []chatTool{
		{"one", "Does one.", json.RawMessage(`{"type":"object","properties":{"a.b-c":{"type":"array"}}}`)},
		{"odd", "Has an odd argument.", json.RawMessage(`{"type":"object","properties":{"a b":{}}}`)},
		{"two", "Does two.", json.RawMessage(`{"type":"object","properties":{}}`)},
	}
	var notices []string
	c := m.claude(t)
	r := chatRequest{System: "Be \"short\"\n", Tools: tools, Messages: []chatMessage{
		{Role: roleUser, Content: "hé"}, {Role: roleUser, Content: "and\n"},
		{Role: roleAssistant, Content: " \n", Calls: []chatToolCall{{"a", "one", `{"x":1}`}, {"b", "two", `{"broken`}, {"functions.x:0", "no such?", ``}}},
		{Role: roleTool, CallID: "a", Content: "res"}, {Role: roleTool, CallID: "b", Content: " ", IsError: true},
		{Role: roleUser, Content: "go on"},
		{Role: roleAssistant, Content: "Yes. \n"}, {Role: roleUser, Content: "  "},
	}}
	for range 2 {
		if _, err := c.complete(t.Context(), r, func(d chatDelta) { notices = append(notices, d.Notice) }); err != nil {
			t.Fatal(err)
		}
	}
	id := "call_" + sha256Hex([]byte("functions.x:0#0"))[:24]
	want := `{"model":"m-1","max_tokens":32000,"stream":true,"system":[{"type":"text","text":"Be \"short\"\n","cache_control":{"type":"ephemeral"}}],` +
		`"tools":[{"name":"one","description":"Does one.","input_schema":{"type":"object","properties":{"a.b-c":{"type":"array"}}}},` +
		`{"name":"two","description":"Does two.","input_schema":{"type":"object","properties":{}},"cache_control":{"type":"ephemeral"}}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"hé\n\nand"}]},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"one","input":{"x":1}},{"type":"tool_use","id":"b","name":"two","input":{}},{"type":"tool_use","id":"` + id + `","name":"no_such_","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"res"},{"type":"tool_result","tool_use_id":"b","content":"(empty)","is_error":true},` +
		`{"type":"tool_result","tool_use_id":"` + id + `","content":"` + chatUnknown + `","is_error":true},{"type":"text","text":"go on","cache_control":{"type":"ephemeral"}}]},` +
		`{"role":"assistant","content":[{"type":"text","text":"Yes."}]},` +
		`{"role":"user","content":[{"type":"text","text":"(empty)","cache_control":{"type":"ephemeral"}}]}]}`
	if got := string(m.requests[0]); got != want {
		t.Errorf("body\n%s\nwant\n%s", got, want)
	}
	h := m.headers[0]
	if h.Get("X-Api-Key") != "sk-very-secret-key" || h.Get("Anthropic-Version") != "2023-06-01" || h.Get("Authorization") != "" || h.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", h)
	}
	if len(notices) != 1 || !strings.Contains(notices[0], `"odd"`) || !strings.Contains(notices[0], `"a b"`) { // told once
		t.Errorf("notices %q", notices)
	}
	for _, tc := range []struct{ request, endpoint, want int }{{0, 0, anthropicMaxTokens}, {5, 0, 5}, {0, 7, 7}, {5, 7, 5}, {9, 7, 7}} {
		body := appendChatRequest(nil, chatEndpoint{Wire: wireAnthropic, MaxTokens: tc.endpoint}, chatRequest{MaxTokens: tc.request})
		if !bytes.Contains(body, fmt.Appendf(nil, `"max_tokens":%d,`, tc.want)) || checkJSON(body) != nil {
			t.Errorf("%+v: got %s", tc, body)
		}
	}
}

func TestAnthropicWhole(t *testing.T) {
	t.Parallel()
	body := `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"a","name":"one","input":{"x":1}},{"type":"tool_use","id":"b","name":"two","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":2}}`
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(body)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for name, answer := range map[string]func(http.ResponseWriter){
		"plain": chatStatus(200, "application/json", body), "gzip": chatRaw(7, "application/json", packed.Bytes(), "Content-Encoding", "gzip"),
	} {
		m := newFakeModel(t, answer)
		r, err := m.claude(t).complete(t.Context(), chatRequest{}, func(chatDelta) {})
		want := []chatToolCall{{"a", "one", `{"x":1}`}, {"b", "two", "{}"}}
		if err != nil || r.Text != "hi" || !slices.Equal(r.Calls, want) || r.Usage != (chatUsage{3, 2, 0}) || r.Streamed {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
	}
}

func TestAnthropicFaults(t *testing.T) {
	t.Parallel()
	fault := func(kind, message string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%s},"request_id":"req_1"}`, kind, appendJSONString(nil, message))
	}
	status := func(code int, kind, message string, header ...string) func(http.ResponseWriter) {
		return chatStatus(code, "application/json", fault(kind, message), header...)
	}
	for name, tc := range map[string]struct {
		answer   func(http.ResponseWriter)
		fault    chatFault
		requests int
		text     string // part of the message
		hint     string
		kept     string // text that had come
	}{
		"wrong key":        {status(401, "authentication_error", "invalid x-api-key"), faultKey, 1, "invalid x-api-key", "check TEST_KEY", ""},
		"not allowed":      {status(403, "permission_error", "Your API key does not have permission"), faultKey, 1, "HTTP 403", "check TEST_KEY", ""},
		"no credit":        {status(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."), faultCredit, 1, "too low", "no credit", ""},
		"spend limit":      {status(429, "rate_limit_error", "You have reached your specified API usage limits."), faultCredit, 1, "usage limits", "no credit", ""},
		"billing":          {status(402, "billing_error", "There is an issue with your billing information"), faultCredit, 1, "HTTP 402", "no credit", ""},
		"unknown model":    {status(404, "not_found_error", "model: m-1"), faultModel, 1, "model: m-1", "TAI_MODEL", ""},
		"too long":         {status(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), faultContext, 1, "210000", "new conversation", ""},
		"with the answer":  {status(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 199000 + 32000 > 200000"), faultContext, 1, "199000", "new conversation", ""},
		"too large":        {status(413, "request_too_large", "Request exceeds the maximum size"), faultContext, 1, "HTTP 413", "new conversation", ""},
		"rate":             {status(429, "rate_limit_error", "slow down", "Retry-After", "2"), faultRate, chatTries, "slow down", "later", ""},
		"overloaded":       {status(529, "overloaded_error", "Overloaded"), faultOverloaded, chatTries, "HTTP 529", "later", ""},
		"own fault":        {status(500, "api_error", "Internal server error"), faultOverloaded, chatTries, "HTTP 500", "later", ""},
		"bad request":      {status(400, "invalid_request_error", "messages.0: \x1b[31mwrong"), faultRequest, 1, `\u001b[31mwrong`, "Anthropic's Messages", ""},
		"another API":      {chatStatus(404, "application/json", `{"detail":"Not Found"}`), faultRequest, 1, "Not Found", "Anthropic's Messages", ""},
		"page":             {chatStatus(200, "text/html", "<html>"), faultReply, 1, "web page", "Anthropic's Messages", ""},
		"error in stream":  {claudeStream(9, slices.Concat([]string{claudeStart}, claudeText(0, "so far"), []string{fault("overloaded_error", "Overloaded")})...), faultOverloaded, 1, "Overloaded", "later", "so far"},
		"error, no type":   {claudeStream(9, `{"error":{"message":"no GPU left"}}`), faultRequest, 1, "no GPU left", "Anthropic's", ""},
		"cut stream":       {claudeStream(9, slices.Concat([]string{claudeStart}, claudeText(0, "half an ans"))...), faultReply, 1, "ended before it was complete", "", "half an ans"},
		"half a tool call": {claudeStream(9, claudeCall(0, "a", "one", `{"pa`)[:2]...), faultReply, 1, "in the middle of 1 tool call", "", ""},
		"no tokens left":   {claudeStream(9, slices.Concat(claudeCall(0, "a", "one", `{"pa`)[:2], []string{claudeStop("max_tokens"), claudeEnd})...), faultReply, 1, "in the middle of a tool call", "--max-tokens", ""},
		"none for any":     {claudeStream(9, slices.Concat(claudeCall(0, "a", "one")[:1], []string{claudeStop("max_tokens"), claudeEnd})...), faultReply, 1, "in the middle of a tool call", "--max-tokens", ""},
		"broken event":     {claudeStream(9, slices.Concat(claudeText(0, "so far"), []string{`{"type":"content_block_delta","index":`})...), faultReply, 1, "read reply event", "", "so far"},
		"no UTF-8":         {claudeStream(9, "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\xff\xfe\"}}"), faultReply, 1, "UTF-8", "", ""},
		"endless calls":    {claudeStream(1<<20, slices.Repeat(claudeCall(0, "", "x", strings.Repeat("x", 1<<20))[:2], 6)...), faultReply, 1, "over", "", ""},
		"too many calls":   {claudeStream(1<<20, slices.Repeat(claudeCall(0, "", "x")[:1], chatMaxCalls+1)...), faultReply, 1, "more than 128 tool calls", "", ""},
		"endless text":     {claudeStream(1<<20, slices.Repeat(claudeText(0, strings.Repeat("x", 1<<20)), 12)...), faultReply, 1, "over 10485760 bytes", "", "x"},
		"endless line":     {chatRaw(1<<20, httpTypeSSE, bytes.Repeat([]byte("x"), 11<<20)), faultReply, 1, "over 10485760 bytes", "", ""},
		"not gzip":         {chatRaw(9, "application/json", []byte("{}"), "Content-Encoding", "gzip"), faultReply, 1, "unpack the reply", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFakeModel(t, tc.answer)
			r, err := m.claude(t).complete(t.Context(), chatRequest{}, func(chatDelta) {})
			ce, ok := errors.AsType[*chatError](err)
			if !ok || ce.Fault != tc.fault || !strings.Contains(ce.Message, tc.text) || !strings.Contains(ce.Hint, tc.hint) {
				t.Fatalf("got %#v, want %s with %q and hint %q", err, tc.fault, tc.text, tc.hint)
			}
			if strings.Contains(ce.Message+ce.Hint, "very-secret") || strings.ContainsRune(ce.Message, 0x1b) || !strings.Contains(ce.Message, "model endpoint test") {
				t.Errorf("the message shows what it must not, or not where: %q", ce.Message)
			}
			if m.seen() != tc.requests {
				t.Errorf("%d requests, want %d", m.seen(), tc.requests)
			}
			if !strings.HasPrefix(r.Text, tc.kept) || len(r.Calls) > 0 {
				t.Errorf("reply %.50q with %d calls, want text %q and none", r.Text, len(r.Calls), tc.kept)
			}
		})
	}
}

// A refusal that says which form is wanted is answered with that form, once and from then on.
func TestChatLearns(t *testing.T) {
	t.Parallel()
	refuse := func(message string) func(http.ResponseWriter) {
		return chatStatus(400, "application/json", `{"error":{"message":`+string(appendJSONString(nil, message))+`,"type":"invalid_request_error"}}`)
	}
	for name, tc := range map[string]struct {
		wire     chatWire
		refusals []string
		has      string // in the last request
		lacks    string
	}{
		"stream_options":        {wireOpenAI, []string{"Unrecognized request argument supplied: stream_options"}, `"stream":true`, "stream_options"},
		"max_completion_tokens": {wireOpenAI, []string{"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}, `"max_completion_tokens":9`, `"max_tokens"`},
		"reasoning effort":      {wireOpenAI, []string{"Function tools with reasoning_effort are not supported for gpt-x in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'."}, `"reasoning_effort":"none"`, "thinking"},
		"thoughts":              {wireOpenAI, []string{"The reasoning_content in the thinking mode must be passed back to the API."}, `"thinking":{"type":"disabled"}`, "reasoning"},
		"signatures":            {wireOpenAI, []string{"Function call is missing a thought_signature in functionCall parts."}, `"thought_signature":"` + chatSignature + `"`, "none"},
		"ids":                   {wireOpenAI, []string{"Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."}, `"tool_call_id":"`, "call_1"},
		"two at a time":         {wireOpenAI, []string{"no stream_options here", "use 'max_completion_tokens', not max_tokens"}, `"max_completion_tokens":9`, "stream_options"},
		"fewer tokens":          {wireAnthropic, []string{"max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-x"}, `"max_tokens":8192`, "32000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var answers []func(http.ResponseWriter)
			for _, r := range tc.refusals {
				answers = append(answers, refuse(r))
			}
			fine, max := chatStream(500, chatText("fine"), chatStop("stop")), 9
			if tc.wire == wireAnthropic {
				fine, max = claudeStream(500, slices.Concat(claudeText(0, "fine"), []string{claudeStop("end_turn"), claudeEnd})...), 0
			}
			m := newFakeModel(t, append(answers, fine)...)
			c, waits := m.client(t)
			c.endpoint.Wire = tc.wire
			r := chatRequest{MaxTokens: max, Tools: []chatTool{{"one", "", json.RawMessage(`{"type":"object","properties":{}}`)}}, Messages: []chatMessage{
				{Role: roleUser, Content: "x"}, {Role: roleAssistant, Calls: []chatToolCall{{"call_1", "one", "{}"}}}, {Role: roleTool, CallID: "call_1", Content: "y"}}}
			for range 2 {
				if reply, err := c.complete(t.Context(), r, func(chatDelta) {}); err != nil || reply.Text != "fine" {
					t.Fatalf("got %+v, %v", reply, err)
				}
			}
			if got, want := m.seen(), len(tc.refusals)+2; got != want || len(*waits) > 0 {
				t.Errorf("%d requests and %d waits, want %d and none", got, len(*waits), want)
			}
			if last := string(m.requests[m.seen()-1]); !strings.Contains(last, tc.has) || strings.Contains(last, tc.lacks) {
				t.Errorf("the last request lacks %q or has %q: %s", tc.has, tc.lacks, last)
			}
		})
	}
	m := newFakeModel(t, refuse("stream_options"))
	c, _ := m.client(t)
	if _, err := c.complete(t.Context(), chatRequest{}, func(chatDelta) {}); err == nil || m.seen() != 2 {
		t.Errorf("a refusal that stays: %v after %d requests, want 2", err, m.seen())
	}
}

// An interrupt closes the stream: the endpoint sees it at once, and stops working for nobody.
func TestChatInterruptClosesStream(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", httpTypeSSE)
		for _, e := range claudeText(0, "so far")[:2] {
			fmt.Fprintf(w, "data: %s\n\n", e)
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	defer srv.Close()
	c := newChatClient(chatEndpoint{Name: "test", Wire: wireAnthropic, BaseURL: srv.URL, Model: "m"}, newHTTPClient(httpClientConfig{}))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := c.complete(ctx, chatRequest{}, func(chatDelta) { cancel() })
	if !errors.Is(err, context.Canceled) || r.Text != "so far" {
		t.Errorf("got %+v, %v", r, err)
	}
	if !waitFor(5*time.Second, gone) {
		t.Error("the endpoint did not see the end")
	}
}
