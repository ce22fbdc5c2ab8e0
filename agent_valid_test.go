package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// agentStrict holds a history to what the strictest endpoints want of one: the roles take turns, each call has exactly one result, in order and
// right behind it, ids are of one form and stand once, names fit, nothing is blank, and the person or a result comes last.
func agentStrict(msgs []chatMessage) error {
	ids, want := map[string]bool{}, []string{}
	before := roleAssistant
	for i, m := range msgs {
		fail := func(format string, args ...any) error {
			return fmt.Errorf("message %d (%s): %s", i, m.Role, fmt.Sprintf(format, args...))
		}
		switch m.Role {
		case roleTool:
			if len(want) == 0 || want[0] != m.CallID {
				return fail("result of %q, wanted are %q", m.CallID, want)
			}
			want = want[1:]
		case roleUser, roleAssistant:
			if len(want) > 0 {
				return fail("no result of %q before it", want)
			}
			if m.Role == before && m.Role == roleUser || before == roleAssistant && m.Role == roleAssistant || before == roleTool && m.Role == roleUser {
				return fail("comes after %s", before)
			}
		default:
			return fail("unknown role")
		}
		if m.Role != roleAssistant && len(m.Calls) > 0 || m.Role != roleTool && m.CallID != "" {
			return fail("calls or a result in the wrong place")
		}
		if strings.TrimSpace(m.Content) == "" && (len(m.Calls) == 0 || m.Content != "") {
			return fail("blank")
		}
		for _, c := range m.Calls {
			if !fitName(c.ID) || len(c.ID) > chatMaxID || ids[c.ID] {
				return fail("id %q", c.ID)
			}
			if !fitName(c.Name) {
				return fail("name %q", c.Name)
			}
			ids[c.ID] = true
			want = append(want, c.ID)
		}
		before = m.Role
	}
	if len(want) > 0 || len(msgs) > 0 && before == roleAssistant {
		return fmt.Errorf("ends with %s, without the results of %q", before, want)
	}
	return nil
}

// agentWire reads the messages of an OpenAI-like request body back, and refuses arguments that are no object.
func agentWire(t testing.TB, body []byte) []chatMessage {
	t.Helper()
	var doc struct {
		Messages []struct {
			Role       string
			Content    *string
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Tools []json.RawMessage
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var out []chatMessage
	for i, m := range doc.Messages {
		if m.Role == "system" && i == 0 {
			continue
		}
		msg := chatMessage{Role: chatRole(m.Role), CallID: m.ToolCallID}
		if m.Content != nil {
			msg.Content = *m.Content
		}
		for _, c := range m.ToolCalls {
			if _, err := jsonObject([]byte(c.Function.Arguments)); err != nil || c.Type != "function" || checkJSON([]byte(c.Function.Arguments)) != nil {
				t.Errorf("message %d: arguments %q", i, c.Function.Arguments)
			}
			msg.Calls = append(msg.Calls, chatToolCall{c.ID, c.Function.Name, c.Function.Arguments})
		}
		out = append(out, msg)
	}
	return out
}

// agentBodies holds all that an endpoint was sent to agentStrict.
func agentBodies(t testing.TB, bodies [][]byte) {
	t.Helper()
	for i, body := range bodies {
		if err := agentStrict(agentWire(t, body)); err != nil {
			t.Errorf("request %d: %v\n%s", i+1, err, clip(string(body), 3000))
		}
	}
}

// agentOneResult wants that each call of a session's rows has exactly one result, and each result its call.
func agentOneResult(t testing.TB, rows []storedMessage) {
	t.Helper()
	results, calls := map[string]int{}, map[string]int{}
	for _, row := range rows {
		if row.Role == roleCompact {
			continue
		}
		m, err := fromStored(row)
		if err != nil {
			t.Fatal(err)
		}
		if m.Role == roleTool {
			results[m.CallID]++
		}
		for _, c := range m.Calls {
			calls[c.ID]++
		}
	}
	for id, n := range calls {
		if n != 1 || results[id] != 1 {
			t.Errorf("call %s stands %d times and has %d results", id, n, results[id])
		}
	}
	if len(results) != len(calls) {
		t.Errorf("%d results of %d calls", len(results), len(calls))
	}
}

func TestAgentStrict(t *testing.T) {
	user, says := chatMessage{Role: roleUser, Content: "u"}, chatMessage{Role: roleAssistant, Content: "s"}
	call := func(ids ...string) (m chatMessage) {
		m.Role = roleAssistant
		for _, id := range ids {
			m.Calls = append(m.Calls, chatToolCall{id, "n", "{}"})
		}
		return m
	}
	result := func(id string) chatMessage { return chatMessage{Role: roleTool, CallID: id, Content: "r"} }
	for _, good := range [][]chatMessage{{user}, {user, says, user}, {user, call("a", "b"), result("a"), result("b")}, {user, call("a"), result("a"), call("b"), result("b"), says, user}} {
		if err := agentStrict(good); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	blank := user
	blank.Content = " \n"
	odd := call("a")
	odd.Calls[0].Name = "rm -rf"
	for name, bad := range map[string][]chatMessage{
		"two of the person": {user, user}, "begins with the model": {says, user}, "ends with the model": {user, says}, "no result": {user, call("a")},
		"wrong order": {user, call("a", "b"), result("b"), result("a")}, "a second result": {user, call("a"), result("a"), result("a")}, "person after a result": {user, call("a"), result("a"), user},
		"id twice": {user, call("a"), result("a"), call("a"), result("a")}, "odd id": {user, call("a b"), result("a b")}, "blank": {blank}, "odd name": {user, odd, result("a")},
	} {
		if agentStrict(bad) == nil {
			t.Errorf("%s passes", name)
		}
	}
	back := agentWire(t, appendChatRequest(nil, chatEndpoint{}, chatRequest{System: "x", Messages: []chatMessage{user, call("a"), result("a")}}))
	if len(back) != 3 || !slices.Equal(back[1].Calls, call("a").Calls) || back[2].CallID != "a" {
		t.Errorf("%+v", back)
	}
}

// anthropicStrict holds a request body of the Messages API to what that takes: the sides in turn, the person first and last, each tool_use answered
// by one tool_result at the head of the next message, ids of one form that stand once, no blank text.
func anthropicStrict(body []byte) error {
	var doc struct {
		Model     string
		MaxTokens int `json:"max_tokens"`
		Tools     []struct {
			Name   string
			Schema json.RawMessage `json:"input_schema"`
		}
		Messages []struct {
			Role    string
			Content []struct {
				Type, Text, ID, Name, Content string
				ToolUseID                     string `json:"tool_use_id"`
				Input                         json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return err
	}
	ids, want, tools := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, tool := range doc.Tools {
		if _, err := jsonObject(tool.Schema); err != nil || !fitName(tool.Name) || tools[tool.Name] {
			return fmt.Errorf("tool %q, with schema %s", tool.Name, tool.Schema)
		}
		tools[tool.Name] = true
	}
	if doc.Model == "" || checkJSON(body) != nil {
		return fmt.Errorf("model %q, %v", doc.Model, checkJSON(body))
	}
	if doc.MaxTokens < 1 || len(doc.Messages) == 0 || len(doc.Messages)%2 == 0 {
		return fmt.Errorf("%d tokens, %d messages", doc.MaxTokens, len(doc.Messages))
	}
	for i, m := range doc.Messages {
		if role := [2]string{"user", "assistant"}[i%2]; m.Role != role || len(m.Content) == 0 {
			return fmt.Errorf("message %d is of %s, with %d blocks", i, m.Role, len(m.Content))
		}
		others := false
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				others = true
				if strings.TrimSpace(b.Text) == "" {
					return fmt.Errorf("message %d has a blank text", i)
				}
			case "tool_use":
				if _, err := jsonObject(b.Input); err != nil || !fitName(b.ID) || ids[b.ID] || !fitName(b.Name) || m.Role != "assistant" {
					return fmt.Errorf("message %d: tool_use %q of %q with %s", i, b.ID, b.Name, b.Input)
				}
				if len(tools) == 0 {
					return fmt.Errorf("message %d: tool_use in a request that declares no tools", i)
				}
				ids[b.ID], want[b.ID] = true, true
			case "tool_result":
				if !want[b.ToolUseID] || others || m.Role != "user" || strings.TrimSpace(b.Content) == "" || b.ID != "" || b.Name != "" {
					return fmt.Errorf("message %d: tool_result of %q", i, b.ToolUseID)
				}
				delete(want, b.ToolUseID)
			default:
				return fmt.Errorf("message %d has a block of type %q", i, b.Type)
			}
		}
		if m.Role == "user" && len(want) > 0 {
			return fmt.Errorf("message %d lacks the results of %v", i, want)
		}
	}
	return nil
}

func TestAnthropicStrict(t *testing.T) {
	t.Parallel()
	const head, ask = `{"model":"m","max_tokens":9,"tools":[{"name":"n","input_schema":{}}],"messages":[`, `{"role":"user","content":[{"type":"text","text":"u"}]}`
	use := func(id string) string {
		return `{"role":"assistant","content":[{"type":"tool_use","id":"` + id + `","name":"n","input":{}}]}`
	}
	const result, says = `{"type":"tool_result","tool_use_id":"a","content":"r"}`, `{"role":"assistant","content":[{"type":"text","text":"s"}]}`
	turn := func(blocks ...string) string { return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}` }
	for name, tc := range map[string]struct {
		messages []string
		fine     bool
	}{
		"one message": {[]string{ask}, true}, "a call": {[]string{ask, use("a"), turn(result)}, true}, "a word behind a result": {[]string{ask, use("a"), turn(result, `{"type":"text","text":"u"}`)}, true},
		"the model last": {[]string{ask, says}, false}, "the model first": {[]string{says}, false}, "twice the person": {[]string{ask, ask, ask}, false}, "no result": {[]string{ask, use("a"), ask}, false},
		"a word before a result": {[]string{ask, use("a"), turn(`{"type":"text","text":"u"}`, result)}, false}, "a result twice": {[]string{ask, use("a"), turn(result, result)}, false},
		"a result of no call": {[]string{ask, says, turn(result)}, false}, "a late result": {[]string{ask, use("a"), ask, says, turn(result)}, false}, "an odd id": {[]string{ask, use("a b"), turn(strings.Replace(result, `"a"`, `"a b"`, 1))}, false},
		"an id twice": {[]string{ask, use("a"), turn(result), use("a"), turn(result)}, false}, "a blank": {[]string{turn(`{"type":"text","text":" "}`)}, false}, "nothing": {[]string{turn()}, false},
	} {
		body := head + strings.Join(tc.messages, ",") + "]}"
		if err := anthropicStrict([]byte(body)); (err == nil) != tc.fine {
			t.Errorf("%s: %v", name, err)
		}
		if tc.fine && strings.Contains(body, "tool_use") && anthropicStrict([]byte(strings.Replace(body, `{"name":"n","input_schema":{}}`, "", 1))) == nil {
			t.Errorf("%s: passes without tools", name)
		}
	}
}
