package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// F25: whatever a history is cut to, both wires get one that their APIs take.
func TestF25WireHistory(t *testing.T) {
	t.Parallel()
	calls := []chatToolCall{{"call_1", "one", `{"a":1}`}, {"call_2", "two", ""}, {"functions.three:2", "three", `{"b":`}}
	whole := []chatMessage{
		{Role: roleUser, Content: "do three things"}, {Role: roleAssistant, Content: "Yes.", Calls: calls},
		{Role: roleTool, CallID: "call_1", Content: "done"}, {Role: roleTool, CallID: "call_2", Content: "no such thing", IsError: true},
		{Role: roleTool, CallID: "functions.three:2", Content: agentNotRun, IsError: true},
		{Role: roleUser, Content: "again"}, {Role: roleAssistant, Calls: calls[:1]}, {Role: roleTool, CallID: "call_1", Content: ""},
		{Role: roleAssistant, Content: "Done."}, {Role: roleUser, Content: "thanks"},
	}
	for from := range whole {
		for to := from; to <= len(whole); to++ {
			wireValid(t, fmt.Sprintf("%d to %d", from, to), whole[from:to])
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 { // and any order
		mixed := slices.Clone(whole)
		random.Shuffle(len(mixed), func(a, b int) { mixed[a], mixed[b] = mixed[b], mixed[a] })
		wireValid(t, fmt.Sprintf("order %d", i), mixed[:1+random.IntN(len(mixed))])
	}
	for _, m := range whole {
		if m.Role == roleAssistant && len(m.Calls) > 0 && (m.Calls[0].ID != "call_1" || len(m.Calls) == 3 && m.Calls[2].ID != "functions.three:2") {
			t.Errorf("the history was changed: %+v", m)
		}
	}
}

// wireValid holds a history to the rules of the APIs, as they stand in their references.
func wireValid(t *testing.T, name string, msgs []chatMessage) {
	t.Helper()
	type block struct {
		Type, Text, ID, Name, Content string
		ToolUseID                     string `json:"tool_use_id"`
		Input                         json.RawMessage
		Mark                          json.RawMessage `json:"cache_control"`
	}
	var doc struct {
		Messages []struct {
			Role    string
			Content []block
		}
	}
	body := appendChatRequest(nil, chatEndpoint{Wire: wireAnthropic, Model: "m"}, chatRequest{System: "s", Messages: msgs, Tools: []chatTool{{"one", "", json.RawMessage(`{"type":"object"}`)}}})
	if err := json.Unmarshal(body, &doc); err != nil || checkJSON(body) != nil {
		t.Fatalf("%s: %v: %s", name, err, body)
	}
	fail := func(what string) { t.Errorf("%s: %s: %s", name, what, body) }
	ids, open := map[string]bool{}, []string{}
	for i, m := range doc.Messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want || len(m.Content) == 0 {
			fail("the sides do not take turns")
		}
		var results []string
		for j, b := range m.Content {
			switch {
			case b.Type == "text" && strings.TrimSpace(b.Text) == "":
				fail("a blank text")
			case b.Type == "tool_use":
				if ids[b.ID] || !fitName(b.ID) || !fitName(b.Name) || len(b.Input) == 0 || b.Input[0] != '{' || m.Role != "assistant" {
					fail("a call that is refused")
				}
				ids[b.ID] = true
				open = append(open, b.ID)
			case b.Type == "tool_result":
				if len(results) != j || m.Role != "user" {
					fail("a result that is not first")
				}
				results = append(results, b.ToolUseID)
			}
		}
		if m.Role == "user" {
			if !slices.Equal(results, open) {
				fail("calls and results do not match")
			}
			open = nil
		}
	}
	if n := len(doc.Messages); n%2 == 0 {
		fail("the last word is not the person's")
	}
	if n := bytes.Count(body, []byte("cache_control")); n > 4 {
		fail("too many cache marks")
	}
	for _, provider := range []string{"openai", "mistral", "gemini"} {
		wireValidOpenAI(t, name+", "+provider, provider, msgs)
	}
}

func wireValidOpenAI(t *testing.T, name, provider string, msgs []chatMessage) {
	t.Helper()
	var doc struct {
		Messages []struct {
			Role, Content string
			ToolCallID    string `json:"tool_call_id"`
			ToolCalls     []struct {
				ID       string
				Extra    json.RawMessage `json:"extra_content"`
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	e := chatEndpoint{Wire: wireOpenAI, Model: "m", chatQuirks: quirksOf(provider, "m")}
	body := appendChatRequest(nil, e, chatRequest{Messages: msgs})
	if err := json.Unmarshal(body, &doc); err != nil || checkJSON(body) != nil {
		t.Fatalf("%s: %v: %s", name, err, body)
	}
	fail := func(what string) { t.Errorf("%s: %s: %s", name, what, body) }
	var open []string
	last := ""
	for _, m := range doc.Messages {
		if m.Role != "tool" && len(open) > 0 {
			fail("calls without a result")
		}
		switch {
		case m.Role == "tool" && (len(open) == 0 || open[0] != m.ToolCallID):
			fail("a result of no call")
		case m.Role == "tool":
			open = open[1:]
		case m.Role == last:
			if m.Role == "user" || len(m.ToolCalls) == 0 {
				fail("the same side twice")
			}
		case m.Role == "user" && last == "tool" && e.answersFirst:
			fail("the person right after a result")
		}
		for i, c := range m.ToolCalls {
			if !fitName(c.ID) || len(c.ID) > 40 || e.shortIDs && (len(c.ID) != 9 || strings.ContainsAny(c.ID, "_-")) || json.Unmarshal([]byte(c.Function.Arguments), &map[string]any{}) != nil {
				fail("a call that is refused")
			}
			if e.signedCalls != (len(c.Extra) > 0) && i == 0 {
				fail("a call without its signature, or with one")
			}
			open = append(open, c.ID)
		}
		last = m.Role
	}
	if len(open) > 0 {
		fail("calls without a result")
	}
}

func TestCallNames(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"a-b_1": "a-b_1", "no such?": "no_such_", "": "unnamed", "functions.read": "functions_read", "读": "_", strings.Repeat("x", 70): strings.Repeat("x", 64)} {
		if got := fitCallName(in); got != want {
			t.Errorf("fitCallName(%q) = %q, want %q", in, got, want)
		}
	}
}

// Each provider gets tools in its own form; the tool itself stays as it was.
func TestF16FitProvider(t *testing.T) {
	t.Parallel()
	endpoint := func(provider string) chatEndpoint {
		p, ok := chatProviderOf(provider)
		if !ok {
			t.Fatal(provider)
		}
		return p.endpoint("")
	}
	for _, tc := range []struct{ provider, schema, want, err string }{
		{"openai", `{"type":"object","properties":{"a":{"type":"array"},"b":{"type":["array","null"],"items":{"type":"array"}},"c":{"anyOf":[{"type":"array"},true]}},"$defs":{"d":{"type":"array"}}}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{}},"b":{"type":["array","null"],"items":{"type":"array","items":{}}},"c":{"anyOf":[{"type":"array","items":{}},true]}},"$defs":{"d":{"type":"array","items":{}}}}`, ""},
		{"openai", `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{}]}}}`, `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{}]}}}`, ""},
		{"anthropic", `{"type":"object","properties":{"a.b-c_9":{"type":"array"}}}`, `{"type":"object","properties":{"a.b-c_9":{"type":"array"}}}`, ""},
		{"anthropic", `{"type":"object","properties":{"$filter":{}}}`, "", `no argument named "$filter"`},
		{"anthropic", `{"type":"object","properties":{"` + strings.Repeat("x", 65) + `":{}}}`, "", "no argument named"},
		{"gemini", `{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",1,"y"],"pattern":"z","description":"d"},"b":{"$ref":"#/$defs/B"},"c":{"type":"integer","enum":[1],"exclusiveMinimum":0,"minimum":1},"d":{"const":"k"},"e":{},"f":{"oneOf":[{"type":"string"},{"type":"array"}]},"g":{"allOf":[{"$ref":"#/$defs/B"},{"required":["q"]}]},"h":true},"required":["a","zz"],"additionalProperties":false,"$defs":{"B":{"properties":{"q":{"type":"number"}}}}}`,
			`{"type":"object","properties":{"a":{"type":"string","nullable":true,"description":"d","enum":["x","y"]},"b":{"type":"object","properties":{"q":{"type":"number"}}},"c":{"type":"integer","minimum":1},"d":{"type":"string","enum":["k"]},"e":{"type":"string"},"f":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},"g":{"type":"object","properties":{"q":{"type":"number"}},"required":["q"]},"h":{"type":"string"}},"required":["a"]}`, ""},
		{"gemini", `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}}}}}`, "", "leads back to itself"},
		{"gemini", `{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"$ref":"#/$defs/A"}}}`, "", "leads back to itself"},
	} {
		tool := chatTool{"t", strings.Repeat("ü", 1100), json.RawMessage(tc.schema)}
		got, err := endpoint(tc.provider).fitTool(tool)
		if string(tool.Schema) != tc.schema {
			t.Fatalf("%s: the tool was changed: %s", tc.provider, tool.Schema)
		}
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s %s: got %v, want %q", tc.provider, tc.schema, err, tc.err)
			}
			continue
		}
		if err != nil || string(got.Schema) != tc.want || checkJSON(got.Schema) != nil {
			t.Errorf("%s %s: got %s, %v, want %s", tc.provider, tc.schema, got.Schema, err, tc.want)
		}
		if n := len([]rune(got.Description)); n != map[bool]int{true: 1024, false: 1100}[tc.provider == "openai"] {
			t.Errorf("%s: the description has %d characters", tc.provider, n)
		}
	}
}

// FuzzChatReply reads any stream on both wires: no panic, and what is whole has calls that can be told apart.
func FuzzChatReply(f *testing.F) {
	for _, events := range [][]string{
		{chatFirst, chatText("Hé🌍"), chatCall(0, "a", "one", `{"x":`), chatCall(0, "", "", `1}`), chatStop("tool_calls"), chatUses, "[DONE]"},
		slices.Concat([]string{claudeStart, claudePing}, claudeText(0, "Hé🌍"), claudeCall(1, "a", "one", `{"x":`, `1}`), []string{claudeStop("tool_use"), claudeEnd}),
	} {
		f.Add([]byte("data: "+strings.Join(events, "\n\ndata: ")+"\n\n"), true)
		f.Add([]byte("data: "+strings.Join(events, "\r\n\r\ndata: ")+"\r\n\r\n"), false)
	}
	f.Add([]byte(`{"choices":[{"message":{"content":[{"type":"text","text":"x"}],"tool_calls":[{"function":{"name":"a"}},{"function":{"name":"b"}}]},"finish_reason":"stop"}]}`), false)
	f.Fuzz(func(t *testing.T, body []byte, claude bool) {
		wire, kind := wireOpenAI, httpTypeSSE
		if claude {
			wire = wireAnthropic
		}
		if bytes.HasPrefix(body, []byte("{")) {
			kind = httpTypeJSON
		}
		shown := ""
		resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: &chatPieces{parts: [][]byte{body}}}
		reply, err := readChatReply(resp, newChatReader(wire), func(d chatDelta) { shown += d.Text })
		if reply.Text != shown {
			t.Errorf("the text is %q, shown was %q", reply.Text, shown)
		}
		if err != nil {
			if len(reply.Calls) > 0 {
				t.Errorf("a broken reply has calls: %+v", reply)
			}
			return
		}
		ids := map[string]bool{}
		for _, c := range reply.Calls {
			if c.ID == "" || ids[c.ID] {
				t.Errorf("ids of calls: %+v", reply.Calls)
			}
			ids[c.ID] = true
		}
		wireValid(t, "fuzzed", []chatMessage{{Role: roleUser, Content: "x"}, {Role: roleAssistant, Content: reply.Text, Calls: reply.Calls}})
	})
}
