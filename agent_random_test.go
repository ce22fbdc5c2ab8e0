package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// randomModel is an endpoint of either wire that does what endpoints do on bad days, by a seed. Every request it gets is held to what strict
// endpoints want.
type randomModel struct {
	t      *testing.T
	server *httptest.Server
	wire   chatWire

	mu     sync.Mutex
	rnd    *rand.Rand
	n      int
	bodies [][]byte
}

func newRandomModel(t *testing.T, seed uint64, wire chatWire) *randomModel {
	t.Helper()
	m := &randomModel{t: t, wire: wire, rnd: rand.New(rand.NewPCG(seed, 7))}
	m.server = httptest.NewServer(http.HandlerFunc(m.answer))
	t.Cleanup(m.server.Close)
	return m
}

func (m *randomModel) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m.mu.Lock()
	m.bodies = append(m.bodies, body)
	m.n++
	n, roll, cut, pick := m.n, m.rnd.IntN(100), m.rnd.IntN(100), m.rnd.IntN(1<<20)
	m.mu.Unlock()
	switch {
	case roll < 6:
		http.Error(w, `{"error":{"message":"slow down","type":"rate_limit_error"}}`, http.StatusTooManyRequests)
		return
	case roll < 10:
		http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway)
		return
	case roll < 13:
		http.Error(w, `{"error":{"message":"This model's maximum context length is 10 tokens","code":"context_length_exceeded"}}`, http.StatusBadRequest)
		return
	case roll < 15: // it never answers; the client's own bound ends it
		<-r.Context().Done()
		return
	}
	events := m.events(n, roll, pick)
	if cut < 15 { // the stream breaks off
		events = events[:cut%len(events)+1]
		events[len(events)-1] = events[len(events)-1][:len(events[len(events)-1])/2]
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		if _, err := io.WriteString(w, e+"\n\n"); err != nil {
			return
		}
		w.(http.Flusher).Flush()
	}
}

// events makes one reply: text, calls of all sorts, or both, or nothing.
func (m *randomModel) events(n, roll, pick int) []string {
	args := []string{`{"n":1}`, `{}`, ``, `{"n":`, `[1]`, `null`, `{"x":true}`, `{"n":1,"n":2}`, `"text"`, "{\"path\":\"" + strings.Repeat("long ", 800) + "\"}"}
	names := []string{"echo", "echo", "change", "fails", "panics", "no such tool", "", "mcp_files_read", "mcp_gone_x", "rm -rf /"}
	ids := []string{"call_0", "call_1", "", "call_0", fmt.Sprint("id", n), "ä ö", strings.Repeat("i", 90)}
	text := []string{"", " \n", "Well.", "A longer thought about it. " + strings.Repeat("and so on ", 30)}[pick%4]
	calls := 0
	if roll < 75 {
		calls = 1 + pick/7%4
	}
	stop := "stop"
	if calls > 0 {
		stop = "tool_calls"
	} else if pick%11 == 0 {
		stop = "length"
	}
	if m.wire == wireAnthropic {
		return m.anthropic(text, stop, calls, pick, names, args, ids)
	}
	out := []string{"data: " + chatFirst}
	if text != "" {
		out = append(out, "data: "+chatText(text))
	}
	for i := range calls {
		k := pick>>i + i
		a := args[k%len(args)]
		out = append(out, "data: "+chatCall(i, ids[k%len(ids)], names[k%len(names)], a[:len(a)/2]), "data: "+chatCall(i, "", "", a[len(a)/2:]))
	}
	out = append(out, "data: "+chatStop(stop))
	if pick%3 > 0 {
		out = append(out, "data: "+chatUses)
	}
	return append(out, "data: [DONE]")
}

func (m *randomModel) anthropic(text, stop string, calls, pick int, names, args, ids []string) []string {
	event := func(kind, rest string) string {
		return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}", kind, kind, rest)
	}
	out := []string{event("message_start", `,"message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":12,"output_tokens":1}}`)}
	index := 0
	block := func(start, delta string) {
		out = append(out, event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, index, start)))
		if delta != "" {
			out = append(out, event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, index, delta)))
		}
		out = append(out, event("content_block_stop", fmt.Sprintf(`,"index":%d`, index)))
		index++
	}
	if text != "" {
		block(`{"type":"text","text":""}`, fmt.Sprintf(`{"type":"text_delta","text":%s}`, appendJSONString(nil, text)))
	}
	for i := range calls {
		k := pick>>i + i
		block(fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":{}}`, appendJSONString(nil, ids[k%len(ids)]), appendJSONString(nil, names[k%len(names)])),
			fmt.Sprintf(`{"type":"input_json_delta","partial_json":%s}`, appendJSONString(nil, args[k%len(args)])))
	}
	reason := map[string]string{"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}[stop]
	return append(out, event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q},"usage":{"output_tokens":5}`, reason)), event("message_stop", ""))
}

// randomSink interrupts the turn at some event, by a seed.
type randomSink struct {
	rnd    *rand.Rand
	cancel context.CancelFunc
	left   int // events until then; negative for never
}

func (s *randomSink) tick() {
	if s.left--; s.left == 0 {
		s.cancel()
	}
}
func (s *randomSink) textDelta(string)                                     { s.tick() }
func (s *randomSink) toolStarted(chatToolCall)                             { s.tick() }
func (s *randomSink) toolFinished(chatToolCall, toolResult, time.Duration) { s.tick() }
func (s *randomSink) notice(string)                                        { s.tick() }

// Whatever an endpoint and a person do, over either wire, with a small window or a large one: each request is one that strict endpoints take, each
// call has one result in the vault, and what is resumed is what was there (F25).
func TestF25AgentRandom(t *testing.T) {
	t.Parallel()
	seeds := 40
	if testing.Short() {
		seeds = 8
	}
	for seed := range uint64(seeds) {
		wire := []chatWire{wireOpenAI, wireAnthropic}[seed%2]
		t.Run(fmt.Sprintf("%d", seed), func(t *testing.T) {
			t.Parallel()
			randomRun(t, seed, wire)
		})
	}
}

func randomRun(t *testing.T, seed uint64, wire chatWire) {
	model := newRandomModel(t, seed, wire)
	fails := toolsPlain("fails", toolHints{ReadOnly: true}, func(context.Context, toolCall) (toolResult, error) { return toolResult{}, errors.New("it failed") })
	panics := toolsPlain("panics", toolHints{Destructive: true}, func(context.Context, toolCall) (toolResult, error) { panic("a fault") })
	box := newToolsBox(t, []approvalMode{modePrompt, modeDanger, modeReadOnly}[seed%3], &fakeSource{defs: []toolDef{{Name: "mcp_files_read", Description: "Reads."}}}, agentTools(fails, panics)...)
	client := newChatClient(chatEndpoint{Name: "test", BaseURL: model.server.URL + "/v1", Model: "m-1", Wire: wire}, newHTTPClient(httpClientConfig{}))
	client.timeout = 300 * time.Millisecond
	client.wait = func(context.Context, time.Duration) error { return nil }
	rnd := rand.New(rand.NewPCG(seed, 11))
	sink := &randomSink{rnd: rnd}
	config := agentConfig{Model: client, ModelName: "m-1", Tools: box.toolbox, Store: box.vault, Sink: sink, System: "sys", Profile: "default", Origin: "agent",
		Window: []int{0, 2500, 6000}[rnd.IntN(3)], Bounds: turnBounds{Steps: 6, Tokens: []int{0, 40}[rnd.IntN(2)]}}
	a := newAgent(config)
	for turn := range 6 {
		ctx, cancel := context.WithCancel(t.Context())
		sink.cancel, sink.left = cancel, -1
		if rnd.IntN(2) == 0 {
			sink.left = 1 + rnd.IntN(9)
		}
		res, err := a.runTurn(ctx, fmt.Sprintf("message %d %s", turn, strings.Repeat("more ", rnd.IntN(50))))
		cancel()
		if err == nil && spokenText(res.Text) == "" {
			t.Errorf("turn %d ended well without an answer", turn)
		}
		if rnd.IntN(3) == 0 { // another process goes on
			b := newAgent(config)
			if err := b.resume(t.Context(), a.session); err != nil {
				t.Fatal(err)
			}
			agentSame(t, a.history, b.history)
			a = b
		}
	}
	model.mu.Lock()
	defer model.mu.Unlock()
	if wire == wireAnthropic {
		for i, body := range model.bodies {
			if err := anthropicStrict(body); err != nil {
				t.Errorf("request %d: %v\n%s", i+1, err, clip(string(body), 3000))
			}
		}
	} else {
		agentBodies(t, model.bodies)
	}
	rows, err := box.vault.messages(t.Context(), a.session)
	if err != nil {
		t.Fatal(err)
	}
	agentOneResult(t, rows)
	for i, row := range rows {
		if row.Seq != i+1 {
			t.Errorf("row %d has number %d", i+1, row.Seq)
		}
	}
}
