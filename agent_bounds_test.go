package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each bound ends the turn in a state that is said, with a history that goes on.
func TestAgentBounds(t *testing.T) {
	t.Parallel()
	again := func(n *int) func(chatRequest) (chatReply, error) {
		return func(chatRequest) (chatReply, error) {
			*n++
			return chatReply{Calls: []chatToolCall{{fmt.Sprint("c", *n), "echo", "{}"}}}, nil
		}
	}
	slow := toolsPlain("slow", toolHints{Destructive: true}, func(ctx context.Context, _ toolCall) (toolResult, error) {
		<-ctx.Done()
		return toolResult{}, ctx.Err()
	})
	for name, tc := range map[string]struct {
		bounds   turnBounds
		step     func(chatRequest) (chatReply, error)
		want     error
		requests int
		last     string // of what is kept
	}{
		"steps":  {turnBounds{Steps: 3}, nil, errStepBound, 3, "tool ->c3 echo {}"},
		"tokens": {turnBounds{Tokens: 5}, nil, errTokenBound, 3, "tool ->c3 echo {}"}, // 2 each
		"a cut answer": {turnBounds{Tokens: 2}, func(chatRequest) (chatReply, error) { return chatReply{Text: "half", Stop: "length"}, nil },
			errTokenBound, 1, "assistant half"},
		"time in a call": {turnBounds{Time: 250 * time.Millisecond}, func(chatRequest) (chatReply, error) {
			return chatReply{Calls: []chatToolCall{{"x", "slow", "{}"}, {"y", "echo", "{}"}}}, nil
		}, errTimeBound, 1, "tool ->y " + agentNotRun},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			step := tc.step
			if step == nil {
				step = again(&n)
			}
			rig := newAgentRig(t, modeDanger, agentTools(slow), slices.Repeat([]func(chatRequest) (chatReply, error){step}, tc.requests)...)
			rig.Bounds = tc.bounds
			if rig.Bounds.Steps == 0 {
				rig.Bounds.Steps = agentMaxSteps
			}
			res, err := rig.runTurn(t.Context(), "go")
			if !errors.Is(err, tc.want) || res.Steps != tc.requests || len(rig.model.requests) != tc.requests {
				t.Fatalf("%+v, %v after %d requests, want %v after %d", res, err, len(rig.model.requests), tc.want, tc.requests)
			}
			if kept := rig.kept(); kept[len(kept)-1] != tc.last {
				t.Errorf("kept %q, want %q at the end", kept, tc.last)
			}
			if tc.bounds.Tokens > 0 && rig.model.requests[0].MaxTokens != tc.bounds.Tokens || tc.requests == 3 && tc.bounds.Tokens > 0 && rig.model.requests[2].MaxTokens != 1 {
				t.Errorf("requests allow %d tokens first", rig.model.requests[0].MaxTokens)
			}
			failed := failure(turnFailure(err, rig.agent))
			if failed.Exit != exitFailed || !strings.Contains(failed.Hint, "tai --resume "+rig.session) {
				t.Errorf("%+v", failed)
			}
			rig.Bounds, rig.model.steps = turnBounds{Steps: 5}, append(rig.model.steps[:tc.requests:tc.requests], agentSays("on"))
			if res, err := rig.runTurn(t.Context(), "go on"); err != nil || res.Text != "on" {
				t.Errorf("the next turn: %+v, %v", res, err)
			}
			if err := agentStrict(rig.model.requests[tc.requests].Messages); err != nil {
				t.Error(err)
			}
			agentOneResult(t, rig.rows(t))
		})
	}
}

// rows is the session as it stands in the vault.
func (r *agentRig) rows(t *testing.T) []storedMessage {
	t.Helper()
	rows, err := r.box.vault.messages(t.Context(), r.session)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Ids that come twice, in one reply or in two, are odd or missing; names that no endpoint takes back; more calls than are run: each call has one
// result and the history is one that can be sent.
func TestAgentOddCalls(t *testing.T) {
	t.Parallel()
	many := make([]chatToolCall, agentMaxCalls+2)
	for i := range many {
		many[i] = chatToolCall{fmt.Sprint("m", i), "echo", "{}"}
	}
	long := strings.Repeat("x", 200)
	rig := newAgentRig(t, modeDanger, agentTools(),
		agentWants(chatToolCall{"call_0", "echo", `{"n":1}`}, chatToolCall{"call_0", "echo", `{"n":2}`}, chatToolCall{"", "echo", `{"n":3}`}),
		agentWants(chatToolCall{"call_0", "rm -rf /", `{}`}, chatToolCall{long, "", `{`}, chatToolCall{"ä b", long, `{"n":`}, chatToolCall{"x", "echo", `{"n":4}`}),
		agentWants(many...), agentSays("done"))
	if res, err := rig.runTurn(t.Context(), "go"); err != nil || res.Text != "done" {
		t.Fatalf("%+v, %v", res, err)
	}
	last := rig.model.requests[3]
	agentBodies(t, [][]byte{appendChatRequest(nil, chatEndpoint{}, last)})
	agentOneResult(t, rig.rows(t))
	var got []string
	for _, m := range last.Messages {
		if m.Role == roleTool {
			got = append(got, clip(m.Content, 24))
		}
	}
	want := []string{`echo {"n":1}`, `echo {"n":2}`, `echo {"n":3}`, `unknown tool "rm -rf /"`, "the arguments are no JSO…", "the arguments are no JSO…", `echo {"n":4}`}
	for i, w := range want {
		if !strings.HasPrefix(got[i], strings.TrimSuffix(w, "…")) {
			t.Errorf("result %d is %q, want %q", i, got[i], w)
		}
	}
	if n := len(got); n != len(want)+len(many) || !strings.HasPrefix(got[n-1], "not run: of one reply") || got[n-3] != "echo {}" {
		t.Errorf("%d results, the last %q", n, got[n-3:])
	}
	if last.Messages[1].Calls[0].ID != "call_0" {
		t.Error("a good id was changed")
	}
}

// A changing call between reading ones waits for those before it, and those after it wait for it.
func TestAgentSegments(t *testing.T) {
	t.Parallel()
	rig := newAgentRig(t, modeDanger, agentTools(),
		agentWants(chatToolCall{"a", "echo", "{}"}, chatToolCall{"b", "echo", "{}"}, chatToolCall{"c", "change", "{}"}, chatToolCall{"d", "echo", "{}"}), agentSays("ok"))
	if _, err := rig.runTurn(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, e := range rig.sink.events {
		e, _, _ = strings.Cut(e, "@")
		order = append(order, strings.TrimSuffix(e, " error=false"))
	}
	at := func(s string) int { return slices.Index(order, s) }
	if at("start c") < at("finish a") || at("start c") < at("finish b") || at("start d") < at("finish c") || at("start a") < 0 {
		t.Errorf("order %q", order)
	}
}

// A turn that ends with nothing but refusals says so with its own exit code.
func TestAgentEndsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		calls []chatToolCall
		after func(chatRequest) (chatReply, error)
		exit  int
	}{
		"all refused":  {[]chatToolCall{{"a", "change", "{}"}, {"b", "change", "{}"}}, agentSays(" "), exitRefused},
		"some refused": {[]chatToolCall{{"a", "change", "{}"}, {"b", "echo", "{}"}}, agentSays(" "), exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			rig := newAgentRig(t, modePrompt, agentTools(), agentWants(tc.calls...), tc.after)
			res, err := rig.runTurn(t.Context(), "go")
			got := failure(turnFailure(err, rig.agent))
			if got.Exit != tc.exit || (tc.exit == exitRefused) != (got.Rule == "nobody to ask" && strings.Contains(got.Hint, "--auto")) || res.Refused == 0 {
				t.Errorf("%+v, %+v", got, res)
			}
		})
	}
}

// Two tai on one session: rows of both are kept whole, the next message takes in what the other one said, and that is told.
func TestAgentShared(t *testing.T) {
	t.Parallel()
	box := newToolsBox(t, modeDanger, nil, agentTools()...)
	one := agentRigOver(box, agentSays("one"), agentWants(chatToolCall{"a", "echo", "{}"}), agentSays("three"), agentSays("five"))
	if _, err := one.runTurn(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	two := agentRigOver(box, agentSays("two"), agentSays("four"))
	if err := two.resume(t.Context(), one.session); err != nil {
		t.Fatal(err)
	}
	if _, err := two.runTurn(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	one.model.steps[1] = func(r chatRequest) (chatReply, error) { // while the first has a call under way
		if _, err := two.runTurn(t.Context(), "fourth"); err != nil {
			t.Error(err)
		}
		return agentWants(chatToolCall{"a", "echo", "{}"})(r)
	}
	for _, text := range []string{"third", "fifth"} {
		if _, err := one.runTurn(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	for _, rig := range []*agentRig{one, two} {
		for _, r := range rig.model.requests {
			agentBodies(t, [][]byte{appendChatRequest(nil, chatEndpoint{}, r)})
		}
	}
	said := ""
	for _, m := range one.model.requests[3].Messages {
		said += m.Content + " "
	}
	for _, want := range []string{"first", "one", "second", "two", "third", "fourth", "four", "three", "fifth"} {
		if !strings.Contains(said, want) {
			t.Errorf("the last request lacks %q: %s", want, said)
		}
	}
	if told := strings.Join(one.sink.events, "\n"); strings.Count(told, "another tai went on with session "+one.session) != 2 {
		t.Errorf("told: %s", told)
	}
	agentOneResult(t, one.rows(t))
	again := agentRigOver(box)
	if err := again.resume(t.Context(), one.session); err != nil {
		t.Fatal(err)
	}
	agentValid(t, again.history)
}
