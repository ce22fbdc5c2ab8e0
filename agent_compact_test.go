package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestCompactCut(t *testing.T) {
	t.Parallel()
	// u a u a +c r +c r: each message has about 6 tokens and more where it says so.
	build := func(sizes string) (msgs []chatMessage) {
		for i, f := range strings.Fields(sizes) {
			m := chatMessage{seq: i + 1, Content: strings.Repeat("word ", len(f)*20)}
			switch f[0] {
			case 'u':
				m.Role = roleUser
			case 'a':
				m.Role = roleAssistant
			case 'c':
				m.Role, m.Content, m.Calls = roleAssistant, "", []chatToolCall{{fmt.Sprint("c", i), "n", "{}"}}
			case 'r':
				m.Role, m.CallID = roleTool, fmt.Sprint("c", i-1)
			case 'h':
				m.Role, m.seq = roleUser, 0
			}
			msgs = append(msgs, m)
		}
		return msgs
	}
	for _, tc := range []struct {
		msgs string
		room int
		want int
	}{
		{"u a u a u a", 1000, 2},       // all turns but the first, which begins the history
		{"u a u a u a", 80, 4},         // the last turn
		{"u a u a u a", 5, 5},          // not even that fits: its last step
		{"u a u c r c r c r", 110, 5},  // within the last turn
		{"u a u c r c r c r", 1, 7},    // at least the last step
		{"u c rrrrrrrrrr c r", 60, 3},  // the first turn is the last one
		{"h c r c r", 60, 3},           // again in the same turn
		{"u a uuuuuuuuuuuuuuuu", 5, 2}, // a message of the person alone stays whole
		{"h", 5, 0}, {"u", 5, 0}, {"", 5, 0},
	} {
		msgs := build(tc.msgs)
		got := compactCut(msgs, tc.room)
		if got != tc.want {
			t.Errorf("%q in %d: %d, want %d", tc.msgs, tc.room, got, tc.want)
		}
		if got > 0 && msgs[got].Role == roleTool {
			t.Errorf("%q: cut before a result", tc.msgs)
		}
	}
}

// longScript answers each request with a call whose result is long, every fourth with an answer. A request for a summary is answered by sum.
type longScript struct {
	t        *testing.T
	n        int
	size     int // bytes of arguments, which echo gives back
	sum      func() (chatReply, error)
	requests []chatRequest
	sums     []chatRequest
	limit    int // tokens over which the endpoint finds a request too long; 0 for none
	refused  int
}

func (l *longScript) complete(_ context.Context, r chatRequest, _ func(chatDelta)) (chatReply, error) {
	if r.System == compactSystem {
		l.sums = append(l.sums, r)
		return l.sum()
	}
	if err := agentStrict(r.Messages); err != nil {
		l.t.Errorf("request %d: %v", len(l.requests)+1, err)
	}
	agentBodies(l.t, [][]byte{appendChatRequest(nil, chatEndpoint{}, r)})
	if size := messagesTokens(r.Messages); l.limit > 0 && size > l.limit {
		l.refused++
		return chatReply{}, &chatError{Fault: faultContext, Status: 400, Message: "too long"}
	}
	l.requests = append(l.requests, r)
	l.n++
	usage := chatUsage{Input: messagesTokens(r.Messages) + 100, Output: 10}
	if l.n%4 == 0 {
		return chatReply{Text: fmt.Sprint("answer ", l.n), Stop: "stop", Usage: usage}, nil
	}
	args := fmt.Sprintf(`{"path":"%s"}`, strings.Repeat(fmt.Sprint("x", l.n, " "), l.size/4))
	return chatReply{Calls: []chatToolCall{{"call_0", "echo", args}, {"call_1", "echo", `{"n":1}`}}, Stop: "tool_calls", Usage: usage}, nil
}

// A conversation that nears the window is made shorter, again and again: every request can be sent, the first message and AGENTS.md stay, the vault
// has all, and a tai that resumes has the very history that the running one had (F25).
func TestF25AgentCompacts(t *testing.T) {
	t.Parallel()
	for name, sum := range map[string]func() (chatReply, error){
		"by the model": func() (chatReply, error) { return chatReply{Text: "The summary.", Usage: chatUsage{50, 5, 0}}, nil },
		"no summary":   func() (chatReply, error) { return chatReply{}, &chatError{Fault: faultOverloaded, Message: "busy"} },
		"a blank one":  func() (chatReply, error) { return chatReply{Text: " \n"}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := &longScript{t: t, size: 1600, sum: sum}
			rig := newAgentRig(t, modeDanger, agentTools())
			rig.Model, rig.Window, rig.System = script, 6000, "the notes of AGENTS.md"
			for i := range 8 {
				if _, err := rig.runTurn(t.Context(), fmt.Sprintf("message number %d", i)); err != nil {
					t.Fatal(err)
				}
			}
			if len(script.sums) < 2 {
				t.Fatalf("%d summaries", len(script.sums))
			}
			for _, r := range script.sums {
				if len(r.Tools) > 0 || r.MaxTokens != compactAnswer || len(r.Messages) != 1 || messagesTokens(r.Messages) > rig.Window {
					t.Errorf("a request for a summary has %d tools, %d messages, %d tokens", len(r.Tools), len(r.Messages), messagesTokens(r.Messages))
				}
			}
			for i, r := range script.requests {
				if r.System != rig.System || !strings.HasPrefix(r.Messages[0].Content, "message number 0") || messagesTokens(r.Messages) > rig.Window {
					t.Errorf("request %d: system %q, first %q, %d tokens", i, r.System, clip(r.Messages[0].Content, 40), messagesTokens(r.Messages))
				}
			}
			want := "The summary."
			if name != "by the model" {
				want = "- called echo"
			}
			if head := rig.history[0].Content; !strings.Contains(head, want) || !strings.Contains(head, "[End of the summary.]") {
				t.Errorf("the head is %q", clip(head, 2000))
			}
			rows := rig.rows(t)
			agentOneResult(t, rows)
			marks := 0
			for _, row := range rows {
				if row.Role == roleCompact {
					marks++
				}
			}
			if marks != len(script.sums) {
				t.Errorf("%d marks of %d", marks, len(script.sums))
			}
			again := agentRigOver(rig.box)
			if err := again.resume(t.Context(), rig.session); err != nil {
				t.Fatal(err)
			}
			agentSame(t, rig.history, again.history)
		})
	}
}

// agentSame compares two histories as they would be sent.
func agentSame(t *testing.T, want, got []chatMessage) {
	t.Helper()
	a, b := appendChatRequest(nil, chatEndpoint{}, chatRequest{Messages: want}), appendChatRequest(nil, chatEndpoint{}, chatRequest{Messages: got})
	if string(a) != string(b) {
		i := 0
		for i < min(len(a), len(b)) && a[i] == b[i] {
			i++
		}
		t.Errorf("resumed otherwise, from byte %d on:\n%s\nwant\n%s", i, clip(string(b[max(0, i-100):]), 500), clip(string(a[max(0, i-100):]), 500))
	}
}

// An endpoint that finds a conversation too long gets a shorter one, once; where even that is too long, the error stands and nothing is lost.
func TestAgentTooLong(t *testing.T) {
	t.Parallel()
	script := &longScript{t: t, size: 3200, sum: func() (chatReply, error) { return chatReply{Text: "short"}, nil }, limit: 3000}
	rig := newAgentRig(t, modeDanger, agentTools())
	rig.Model = script
	for i := range 3 {
		if res, err := rig.runTurn(t.Context(), fmt.Sprintf("m%d", i)); err != nil || res.Text == "" {
			t.Fatalf("turn %d: %+v, %v", i, res, err)
		}
	}
	if script.refused == 0 || script.refused != len(script.sums) {
		t.Errorf("%d refusals, %d summaries", script.refused, len(script.sums))
	}
	script.limit = 10
	before := script.refused
	_, err := rig.runTurn(t.Context(), "once more")
	ce, ok := errors.AsType[*chatError](err)
	if !ok || ce.Fault != faultContext || script.refused != before+2 {
		t.Errorf("%v after %d refusals more", err, script.refused-before)
	}
	agentOneResult(t, rig.rows(t))
	script.limit = 0
	if _, err := rig.runTurn(t.Context(), "and now"); err != nil {
		t.Error(err)
	}
}

// Where one step alone is too long for the window, its results are cut for the model; the vault has them whole.
func TestAgentClipsResults(t *testing.T) {
	t.Parallel()
	big := toolsPlain("big", toolHints{ReadOnly: true}, toolsText(strings.Repeat("0123456789 ", 5000)))
	rig := newAgentRig(t, modeDanger, agentTools(big),
		agentWants(chatToolCall{"a", "big", "{}"}, chatToolCall{"b", "big", "{}"}, chatToolCall{"c", "big", "{}"}), agentSays("seen"), agentSays("more"))
	rig.Window = 8000
	if _, err := rig.runTurn(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	sent := rig.model.requests[1].Messages
	if err := agentStrict(sent); err != nil || messagesTokens(sent) > 4000 || !strings.Contains(sent[len(sent)-1].Content, "bytes left out") {
		t.Errorf("%v, %d tokens", err, messagesTokens(sent))
	}
	for _, row := range rig.rows(t) {
		if row.Role == "tool" && len(row.Content) != 55000 {
			t.Errorf("the vault has a result of %d bytes", len(row.Content))
		}
	}
	again := agentRigOver(rig.box)
	if err := again.resume(t.Context(), rig.session); err != nil {
		t.Fatal(err)
	}
	agentSame(t, rig.history, again.history)
}

// compactNow keeps the last turn; with nothing before it there is nothing to do, and an interrupt leaves all as it was.
func TestAgentCompactNow(t *testing.T) {
	t.Parallel()
	rig := newAgentRig(t, modeDanger, agentTools(), agentSays("one"), agentSays("two"), agentSays("the sum"), agentSays("three"))
	if _, err := rig.compactNow(t.Context()); !errors.Is(err, errNothingToCompact) {
		t.Errorf("without a session: %v", err)
	}
	for _, text := range []string{"first", "second"} {
		if _, err := rig.runTurn(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	steps := rig.model.steps
	rig.model.steps = append(steps[:2:2], func(chatRequest) (chatReply, error) { return chatReply{}, context.Canceled })
	if _, err := rig.compactNow(stopped); !errors.Is(err, errTurnInterrupted) || len(rig.history) != 4 || len(rig.rows(t)) != 4 {
		t.Errorf("interrupted: %v, %d messages", err, len(rig.history))
	}
	rig.model.steps, rig.model.requests = steps, rig.model.requests[:2]
	if usage, err := rig.compactNow(t.Context()); err != nil || usage.Input == 0 {
		t.Fatalf("%+v, %v", usage, err)
	}
	if len(rig.history) != 4 || rig.history[2].Content != "second" || !strings.Contains(rig.history[0].Content, "the sum") {
		t.Errorf("%+v", rig.history)
	}
	if _, err := rig.compactNow(t.Context()); !errors.Is(err, errNothingToCompact) {
		t.Errorf("again: %v", err)
	}
	if _, err := rig.runTurn(t.Context(), "third"); err != nil {
		t.Fatal(err)
	}
	if err := agentStrict(rig.model.requests[3].Messages); err != nil {
		t.Error(err)
	}
	if len(rig.spent) != 1 || rig.spent[0].Requests != 4+1 {
		t.Errorf("spent %+v", rig.spent)
	}
}
