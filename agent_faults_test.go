package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

var bothWires = [...]chatWire{wireOpenAI, wireAnthropic}

func (w chatWire) other() chatWire {
	if w == wireOpenAI {
		return wireAnthropic
	}
	return wireOpenAI
}

// wireStream is a whole reply as the wire has it: text and arguments in two pieces each, as endpoints send them.
func wireStream(w chatWire, text string, calls ...chatToolCall) string {
	var b strings.Builder
	stop := "stop"
	if len(calls) > 0 {
		stop = "tool_calls"
	}
	half := func(s string) (string, string) { return s[:len(s)/2], s[len(s)/2:] }
	one, two := half(text)
	if w == wireOpenAI {
		events := []string{chatFirst}
		if text != "" {
			events = append(events, chatText(one), chatText(two))
		}
		for i, c := range calls {
			one, two := half(c.Args)
			events = append(events, chatCall(i, c.ID, c.Name, ""), chatCall(i, "", "", one), chatCall(i, "", "", two))
		}
		for _, e := range append(events, chatStop(stop), chatUses, "[DONE]") {
			fmt.Fprintf(&b, "data: %s\n\n", e)
		}
		return b.String()
	}
	events := []string{claudeStart, claudePing}
	if text != "" {
		events = append(events, claudeText(0, one, two)...)
	}
	for i, c := range calls {
		one, two := half(c.Args)
		events = append(events, claudeCall(i+1, c.ID, c.Name, "", one, two)...)
	}
	for _, e := range append(events, claudeStop(map[string]string{"stop": "end_turn", "tool_calls": "tool_use"}[stop]), claudeEnd) {
		fields, _ := chatFields([]byte(e))
		kind, _ := jsonString(fields["type"])
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", kind, e)
	}
	return b.String()
}

// wireAnswer sends a reply in pieces of an odd size.
func wireAnswer(stream string) func(http.ResponseWriter) {
	return chatRaw(37, httpTypeSSE, []byte(stream))
}

func wireReply(w chatWire, text string, calls ...chatToolCall) func(http.ResponseWriter) {
	return wireAnswer(wireStream(w, text, calls...))
}

// wireCut is a reply that ends behind the last appearance of a text.
func wireCut(t *testing.T, stream, behind string) func(http.ResponseWriter) {
	t.Helper()
	i := strings.LastIndex(stream, behind)
	if i < 0 {
		t.Fatalf("no %q in %s", behind, stream)
	}
	return wireAnswer(stream[:i+len(behind)])
}

// wireRefusal is an error body in the words of the wire.
func wireRefusal(w chatWire, status int, kind, message string, header ...string) func(http.ResponseWriter) {
	body := fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%q}}`, message, kind, kind)
	if w == wireAnthropic {
		body = fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_1"}`, kind, message)
	}
	return chatStatus(status, httpTypeJSON, body, header...)
}

// wireStrict holds a request body to what the strictest endpoints of a wire take.
func wireStrict(t testing.TB, w chatWire, body []byte) {
	t.Helper()
	var err error
	if w == wireAnthropic {
		err = anthropicStrict(body)
	} else {
		err = agentStrict(agentWire(t, body))
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", w, err, clip(string(body), 3000))
	}
}

// agentBothTake wants that a session, as it is kept, can be gone on with on either wire, and that each of its calls has one result.
func agentBothTake(t testing.TB, rows []storedMessage) {
	t.Helper()
	agentOneResult(t, rows)
	h, err := readHistory(rows)
	if err != nil {
		t.Fatal(err)
	}
	tools := []chatTool{{Name: "echo", Schema: []byte(`{"type":"object"}`)}}
	for _, w := range bothWires {
		wireStrict(t, w, appendChatRequest(nil, chatEndpoint{Wire: w, Model: "m-1"}, chatRequest{System: "sys", Tools: tools, Messages: append(slices.Clone(h.Messages), chatMessage{Role: roleUser, Content: "go on"})}))
	}
}

// faultCase is what an endpoint does once. calls are the results that the model is told of, each by how it begins.
type faultCase struct {
	name    string
	answers func(t *testing.T, w chatWire) []func(http.ResponseWriter)
	fault   chatFault // "" for a turn that ends well
	err     error     // that ends it, where no chatFault does
	says    string    // part of the error
	calls   []string
	kept    string // how the last message of the session begins
}

func faultOnce(make func(t *testing.T, w chatWire) func(http.ResponseWriter)) func(*testing.T, chatWire) []func(http.ResponseWriter) {
	return func(t *testing.T, w chatWire) []func(http.ResponseWriter) {
		return []func(http.ResponseWriter){make(t, w)}
	}
}

func faultStatus(status int, kind, message string, header ...string) func(*testing.T, chatWire) []func(http.ResponseWriter) {
	return faultOnce(func(_ *testing.T, w chatWire) func(http.ResponseWriter) {
		return wireRefusal(w, status, kind, message, header...)
	})
}

// faultCalls is a reply with calls and, once their results are there, one that ends the turn.
func faultCalls(calls ...chatToolCall) func(*testing.T, chatWire) []func(http.ResponseWriter) {
	return func(_ *testing.T, w chatWire) []func(http.ResponseWriter) {
		return []func(http.ResponseWriter){wireReply(w, "I try.", calls...), wireReply(w, "Seen.")}
	}
}

func faultCases() []faultCase {
	call := chatToolCall{"call_1", "echo", `{"n":12345}`}
	hangUp := func(w http.ResponseWriter) { panic(http.ErrAbortHandler) }
	cut := func(text string, behind func(chatWire) string, calls ...chatToolCall) func(*testing.T, chatWire) []func(http.ResponseWriter) {
		return faultOnce(func(t *testing.T, w chatWire) func(http.ResponseWriter) {
			return wireCut(t, wireStream(w, text, calls...), behind(w))
		})
	}
	same := func(s string) func(chatWire) string { return func(chatWire) string { return s } }
	per := func(openAI, anthropic string) func(chatWire) string {
		return func(w chatWire) string { return map[chatWire]string{wireOpenAI: openAI, wireAnthropic: anthropic}[w] }
	}
	return []faultCase{
		{name: "cut in the text", answers: cut("half an answer", per("half an\"},\"finish_reason\":null}],\"usage\":null}\n\n", "half an\"}}\n\n")), fault: faultReply, says: "before it was complete", kept: "half an\n[cut off here]"},
		{name: "cut in an event", answers: cut("half an answer", same("half an")), fault: faultReply},
		{name: "cut before a call's arguments", answers: cut("I try.", same("echo"), call), fault: faultReply, kept: "I try.\n[cut off here]"},
		{name: "cut in a call's arguments", answers: cut("I try.", per(`{\"n\":`, `{\"n\":`), call), fault: faultReply, kept: "I try.\n[cut off here]"},
		{name: "cut between the arguments' pieces", answers: cut("", per("{\\\"n\\\":\"}}]},\"finish_reason\":null}]}\n\n", "{\\\"n\\\":\"}}\n\n"), call), fault: faultReply},
		{name: "cut after a whole call", answers: cut("", per("12345}\"}}]},\"finish_reason\":null}]}\n\n", "\"content_block_stop\",\"index\":1}\n\n"), call), fault: faultReply},
		{name: "reset before a byte", answers: faultOnce(func(*testing.T, chatWire) func(http.ResponseWriter) { return hangUp }), fault: faultUnreachable},
		{name: "no such tool", answers: faultCalls(chatToolCall{"call_1", "rm_rf", `{}`}), calls: []string{`unknown tool "rm_rf"`}, kept: "Seen."},
		{name: "a name that no tool can have", answers: faultCalls(chatToolCall{"call_1", "rm -rf /", `{}`}), calls: []string{`unknown tool "rm -rf /"`}, kept: "Seen."},
		{name: "no name", answers: faultCalls(chatToolCall{"call_1", "", `{}`}), calls: []string{`unknown tool ""`}, kept: "Seen."},
		{name: "arguments that are no JSON", answers: faultCalls(chatToolCall{"call_1", "echo", `{"n":1`}), calls: []string{"the arguments are no JSON object"}, kept: "Seen."},
		{name: "arguments that are no object", answers: faultCalls(chatToolCall{"call_1", "echo", `[1]`}), calls: []string{"the arguments are no JSON object"}, kept: "Seen."},
		{name: "arguments that do not fit", answers: faultCalls(chatToolCall{"call_1", "echo", `{"n":"x"}`}), calls: []string{"echo: "}, kept: "Seen."},
		{name: "no arguments", answers: faultCalls(chatToolCall{"call_1", "echo", ``}), calls: []string{"echo {}"}, kept: "Seen."},
		{name: "one id twice", answers: faultCalls(call, chatToolCall{"call_1", "echo", `{"n":2}`}), calls: []string{`echo {"n":12345}`, `echo {"n":2}`}, kept: "Seen."},
		{name: "one id in two replies", answers: func(_ *testing.T, w chatWire) []func(http.ResponseWriter) {
			return []func(http.ResponseWriter){wireReply(w, "", call), wireReply(w, "", chatToolCall{"call_1", "echo", `{"n":3}`}), wireReply(w, "Seen.")}
		}, calls: []string{`echo {"n":12345}`, `echo {"n":3}`}, kept: "Seen."},
		{name: "an id of signs", answers: faultCalls(chatToolCall{"functions.echo:0 ä", "echo", `{"n":1}`}), calls: []string{`echo {"n":1}`}, kept: "Seen."},
		{name: "no id", answers: faultCalls(chatToolCall{"", "echo", `{"n":1}`}), calls: []string{`echo {"n":1}`}, kept: "Seen."},
		{name: "a good call beside a bad one", answers: faultCalls(call, chatToolCall{"call_2", "nope", `{`}), calls: []string{`echo {"n":12345}`, "the arguments are no JSON"}, kept: "Seen."},
		{name: "a rate limit that passes", answers: func(_ *testing.T, w chatWire) []func(http.ResponseWriter) {
			return []func(http.ResponseWriter){wireRefusal(w, 429, "rate_limit_error", "slow down", "Retry-After", "2"), wireReply(w, "Seen.")}
		}, kept: "Seen."},
		{name: "a rate limit without a time", answers: faultStatus(429, "rate_limit_error", "slow down"), fault: faultRate, says: "slow down"},
		{name: "a rate limit of an hour", answers: faultStatus(429, "rate_limit_error", "slow down", "Retry-After", "3600"), fault: faultRate, says: "slow down"},
		{name: "a fault of its own", answers: faultStatus(500, "api_error", "oops"), fault: faultOverloaded, says: "HTTP 500"},
		{name: "overloaded", answers: faultStatus(529, "overloaded_error", "Overloaded"), fault: faultOverloaded, says: "HTTP 529"},
		{name: "overloaded for a moment", answers: func(_ *testing.T, w chatWire) []func(http.ResponseWriter) {
			return []func(http.ResponseWriter){wireRefusal(w, 529, "overloaded_error", "Overloaded"), wireRefusal(w, 500, "api_error", "oops"), wireReply(w, "Seen.")}
		}, kept: "Seen."},
		{name: "silence", answers: faultOnce(func(t *testing.T, _ chatWire) func(http.ResponseWriter) {
			return func(http.ResponseWriter) { <-t.Context().Done() }
		}), fault: faultUnreachable, says: "within"},
		{name: "silence in the stream", answers: faultOnce(func(t *testing.T, w chatWire) func(http.ResponseWriter) {
			return func(rw http.ResponseWriter) {
				wireCut(t, wireStream(w, "half an answer"), per("half an\"},\"finish_reason\":null}],\"usage\":null}\n\n", "half an\"}}\n\n")(w))(rw)
				<-t.Context().Done()
			}
		}), fault: faultOverloaded, says: "within", kept: "half an\n[cut off here]"},
		{name: "an empty answer", answers: faultOnce(func(_ *testing.T, w chatWire) func(http.ResponseWriter) { return wireReply(w, "") }), err: errEmptyAnswer, says: "empty answer"},
		{name: "a blank answer", answers: faultOnce(func(_ *testing.T, w chatWire) func(http.ResponseWriter) { return wireReply(w, " \n ") }), err: errEmptyAnswer, says: "empty answer"},
		{name: "an empty body", answers: faultOnce(func(*testing.T, chatWire) func(http.ResponseWriter) { return chatRaw(1, httpTypeSSE, nil) }), fault: faultReply},
		{name: "a wrong key", answers: faultStatus(401, "authentication_error", "invalid key"), fault: faultKey, says: "HTTP 401"},
		{name: "no credit", answers: faultStatus(402, "billing_error", "nothing left"), fault: faultCredit, says: "HTTP 402"},
		{name: "no such model", answers: faultStatus(404, "not_found_error", "model: m-1"), fault: faultModel, says: "m-1"},
		{name: "too long", answers: faultStatus(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum context length"), fault: faultContext, says: "210000"},
		{name: "an error in the stream", answers: faultOnce(func(_ *testing.T, w chatWire) func(http.ResponseWriter) {
			whole := wireStream(w, "half an answer")
			i := strings.Index(whole, "half an")
			i += strings.Index(whole[i:], "\n\n") + 2
			frame := "data: " + `{"error":{"message":"Overloaded","type":"overloaded_error","code":503}}` + "\n\n"
			if w == wireAnthropic {
				frame = "event: error\ndata: " + `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n"
			}
			return wireAnswer(whole[:i] + frame)
		}), fault: faultOverloaded, says: "Overloaded", kept: "half an\n[cut off here]"},
	}
}

// Whatever an endpoint does, on either wire: the turn ends in a state with a name, no call runs twice or half, what is kept is a history that the
// endpoints of both wires take, and the next turn goes on from it, on the other wire.
func TestAgentFaults(t *testing.T) {
	t.Parallel()
	for _, wire := range bothWires {
		for _, tc := range faultCases() {
			t.Run(string(wire)+"/"+tc.name, func(t *testing.T) {
				t.Parallel()
				faultRun(t, wire, tc)
			})
		}
	}
}

func faultRun(t *testing.T, wire chatWire, tc faultCase) {
	answers := tc.answers(t, wire)
	first, second := newFakeModel(t, answers...), newFakeModel(t, wireReply(wire.other(), "went on"))
	ran := 0
	echo := toolsPlain("echo", toolHints{ReadOnly: true}, func(_ context.Context, c toolCall) (toolResult, error) {
		ran++
		return toolResult{Text: "echo " + string(c.Args)}, nil
	})
	rig := agentRigOver(newToolsBox(t, modePrompt, nil, echo))
	c, _ := first.client(t)
	c.endpoint.Wire = wire
	if strings.HasPrefix(tc.name, "silence") {
		c.timeout = 50 * time.Millisecond
	}
	rig.Model = c
	res, err := rig.runTurn(t.Context(), "go")
	ce, isFault := errors.AsType[*chatError](err)
	switch {
	case tc.fault == "" && tc.err == nil:
		if err != nil || res.Text != "Seen." {
			t.Errorf("got %+v, %v, want an answer", res, err)
		}
	case tc.fault != "" && (!isFault || ce.Fault != tc.fault || ce.Hint == "" && tc.fault != faultReply), tc.err != nil && !errors.Is(err, tc.err), !strings.Contains(err.Error(), tc.says):
		t.Errorf("got %#v, want %s%v with %q", err, tc.fault, tc.err, tc.says)
	}
	if got := faultResults(rig.history); !slices.EqualFunc(got, tc.calls, strings.HasPrefix) {
		t.Errorf("the model is told %q, want %q", got, tc.calls)
	}
	good := 0
	for _, s := range tc.calls {
		good += strings.Count(s, "echo {")
	}
	if ran != good {
		t.Errorf("%d calls ran, want %d", ran, good)
	}
	if last := rig.history[len(rig.history)-1].Content; !strings.HasPrefix(last, tc.kept) {
		t.Errorf("the session ends with %q, want %q", last, tc.kept)
	}
	faultGoesOn(t, rig, second, wire, first)
}

// faultGoesOn takes the next turn on the other wire, in a process of its own as far as the session knows, and holds all to the rules of both.
func faultGoesOn(t *testing.T, rig *agentRig, second *fakeModel, wire chatWire, first *fakeModel) {
	t.Helper()
	next := agentRigOver(rig.box)
	c, _ := second.client(t)
	c.endpoint.Wire = wire.other()
	next.Model = c
	if err := next.resume(t.Context(), rig.session); err != nil {
		t.Fatal(err)
	}
	if res, err := next.runTurn(t.Context(), "go on"); err != nil || res.Text != "went on" {
		t.Errorf("the next turn: %+v, %v", res, err)
	}
	for i, m := range []*fakeModel{first, second} {
		m.mu.Lock() // a request that was given up may still be on its way into the list
		requests := slices.Clone(m.requests)
		m.mu.Unlock()
		for _, body := range requests {
			wireStrict(t, []chatWire{wire, wire.other()}[i], body)
			if bytes.Contains(body, []byte("very-secret")) {
				t.Errorf("a request shows the key: %s", body)
			}
		}
	}
	rows, err := rig.box.vault.messages(t.Context(), rig.session)
	if err != nil {
		t.Fatal(err)
	}
	agentBothTake(t, rows)
}

func faultResults(history []chatMessage) (results []string) {
	for _, m := range history {
		if m.Role == roleTool {
			results = append(results, m.Content)
		}
	}
	return results
}
