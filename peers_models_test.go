//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// F25: both wires against a third-party mock of the model APIs: a turn with three calls at a time, one of which fails and one of which is
// refused; a conversation that was interrupted; tai model test.
func peersModels(t *testing.T, p *peers) {
	h := p.newHome(t)
	if err := os.WriteFile(filepath.Join(h.work, "note.txt"), []byte("the kettle is on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call := func(name, args string) any { return map[string]any{"name": name, "arguments": args} }
	base := h.peersModel(t, []map[string]any{
		{"match": map[string]any{"userMessage": "go on after that"}, "response": map[string]any{"content": "I go on."}},
		{"match": map[string]any{"userMessage": "do three things", "hasToolResult": false}, "response": map[string]any{"content": "I try.", "toolCalls": []any{
			call("file_read", `{"path":"note.txt"}`), call("file_read", `{"path":"missing.txt"}`), call("shell_run", `{"command":"touch made"}`)}}},
		{"match": map[string]any{"userMessage": "do three things", "hasToolResult": true}, "response": map[string]any{"content": "One of three worked."}},
		{"match": map[string]any{"userMessage": "the one word"}, "response": map[string]any{"content": "ready"}},
		{"match": map[string]any{"userMessage": "Add 2 and 3"}, "response": map[string]any{"toolCalls": []any{call("add", `{"a":2,"b":3}`)}}},
	})
	for _, tc := range []struct {
		wire    chatWire
		env     []string
		base    string
		results func(t *testing.T, messages []peersRaw) []string // of the last request, "!" before one that failed
	}{
		{wireOpenAI, []string{"TAI_BASE_URL=" + base + "/v1", "TAI_MODEL=scripted", "TAI_API_KEY=made-up"}, base + "/v1", peersResultsOpenAI},
		{wireAnthropic, []string{"ANTHROPIC_BASE_URL=" + base, "ANTHROPIC_MODEL=scripted", "ANTHROPIC_API_KEY=made-up"}, base + "/v1", peersResultsAnthropic},
	} {
		t.Run(string(tc.wire), func(t *testing.T) {
			r := h.program(t, nil, tc.env, h.tai, "do three things")
			if r.code != 0 || !strings.Contains(r.out, "One of three worked.") {
				t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
			}
			got := tc.results(t, peersLast(t, base))
			if len(got) != 3 || !strings.Contains(got[0], "the kettle is on") || !strings.Contains(got[1], "missing.txt") || !strings.Contains(got[2], "refused") {
				t.Errorf("the model was told %q", got)
			}

			c := newChatClient(chatEndpoint{Name: "mock", Wire: tc.wire, BaseURL: tc.base, Model: "scripted", Key: "made-up"}, newHTTPClient(httpClientConfig{}))
			reply, err := c.complete(t.Context(), chatRequest{System: "s", Messages: []chatMessage{
				{Role: roleUser, Content: "do three things"},
				{Role: roleAssistant, Calls: []chatToolCall{{"a", "one", "{}"}, {"b", "two", `{"x":1}`}, {"functions.three:2", "three", `{"cut`}}},
				{Role: roleTool, CallID: "a", Content: "done"}, {Role: roleTool, CallID: "b", Content: "no", IsError: true},
				{Role: roleUser, Content: "go on after that"},
			}}, func(chatDelta) {})
			if err != nil || reply.Text != "I go on." || !reply.Streamed {
				t.Fatalf("got %+v, %v", reply, err)
			}
			if got := tc.results(t, peersLast(t, base)); len(got) != 3 || !strings.Contains(got[0], "done") || !strings.Contains(got[1], "no") || !strings.Contains(got[2], "interrupted") {
				t.Errorf("after an interrupt the model was told %q", got)
			}

			test := h.program(t, nil, tc.env, h.tai, "model", "test")
			for _, want := range []string{"answer     ready", "streaming  yes", "tools      yes"} {
				if test.code != 0 || !strings.Contains(test.out, want) {
					t.Errorf("exit %d, no %q in %s%s", test.code, want, test.out, test.err)
				}
			}
		})
	}
}

// peersRaw is a message as the mock received it.
type peersRaw struct {
	Role    string
	Content json.RawMessage
}

// peersLast gives the messages of the last request as they were on the wire.
func peersLast(t *testing.T, base string) []peersRaw {
	t.Helper()
	body := peersJournal(t, base)
	var entries []struct{ Body struct{ Messages []peersRaw } }
	if err := json.Unmarshal(body, &entries); err != nil || len(entries) == 0 {
		t.Fatalf("%v: %s", err, clip(string(body), 500))
	}
	return entries[len(entries)-1].Body.Messages
}

func peersResultsOpenAI(_ *testing.T, messages []peersRaw) (results []string) {
	for _, m := range messages {
		if m.Role == "tool" {
			results = append(results, string(m.Content))
		}
	}
	return results
}

// peersResultsAnthropic wants all results in one message; the mock's journal has messages in the form that all its wires share.
func peersResultsAnthropic(t *testing.T, messages []peersRaw) (results []string) {
	t.Helper()
	for _, m := range messages {
		if m.Role == "tool" {
			results = append(results, string(m.Content))
			continue
		}
		var blocks []struct {
			Type    string
			Content json.RawMessage
			IsError bool `json:"is_error"`
		}
		if json.Unmarshal(m.Content, &blocks) != nil {
			continue
		}
		var here []string
		for _, b := range blocks {
			if b.Type == "tool_result" {
				here = append(here, fmt.Sprintf("%s%s", map[bool]string{true: "!"}[b.IsError], b.Content))
			}
		}
		if len(here) > 0 && len(results) > 0 {
			t.Errorf("results stand in two messages: %q and %q", results, here)
		}
		results = append(results, here...)
	}
	return results
}
