package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeScript is a model that answers by script; each step sees the request it answers.
type fakeScript struct {
	steps    []func(chatRequest) (chatReply, error)
	requests []chatRequest
}

func (f *fakeScript) complete(_ context.Context, r chatRequest, onDelta func(chatDelta)) (chatReply, error) {
	r.Messages = slices.Clone(r.Messages)
	f.requests = append(f.requests, r)
	if len(f.requests) > len(f.steps) {
		return chatReply{}, errors.New("the script is at its end")
	}
	reply, err := f.steps[len(f.requests)-1](r)
	if reply.Text != "" {
		onDelta(chatDelta{Text: reply.Text})
	}
	reply.Usage = chatUsage{Input: 10, Output: 2}
	return reply, err
}

func agentSays(text string) func(chatRequest) (chatReply, error) {
	return func(chatRequest) (chatReply, error) { return chatReply{Text: text, Stop: "stop"}, nil }
}

func agentWants(calls ...chatToolCall) func(chatRequest) (chatReply, error) {
	return func(chatRequest) (chatReply, error) { return chatReply{Calls: calls, Stop: "tool_calls"}, nil }
}

// fakeSink writes down what it is told, and what was in the store at that moment.
type fakeSink struct {
	events []string
	stored func() int
}

func (f *fakeSink) add(s string)       { f.events = append(f.events, fmt.Sprintf("%s@%d", s, f.stored())) }
func (f *fakeSink) textDelta(s string) { f.add("text " + s) }
func (f *fakeSink) notice(s string)    { f.add("notice " + s) }
func (f *fakeSink) toolStarted(c chatToolCall) {
	f.add("start " + c.ID)
}

func (f *fakeSink) toolFinished(c chatToolCall, r toolResult, _ time.Duration) {
	f.add(fmt.Sprintf("finish %s error=%v", c.ID, r.IsError))
}

type agentRig struct {
	*agent
	box   *toolsBox
	model *fakeScript
	sink  *fakeSink
}

func newAgentRig(t *testing.T, mode approvalMode, tools []tool, steps ...func(chatRequest) (chatReply, error)) *agentRig {
	t.Helper()
	return agentRigOver(newToolsBox(t, mode, &fakeSource{defs: []toolDef{{Name: "mcp_files_read", Description: "Reads."}}}, tools...), steps...)
}

func agentRigOver(box *toolsBox, steps ...func(chatRequest) (chatReply, error)) *agentRig {
	rig := &agentRig{box: box, model: &fakeScript{steps: steps}, sink: &fakeSink{}}
	rig.agent = newAgent(agentConfig{Model: rig.model, Tools: box.toolbox, Store: box.vault, Sink: rig.sink, System: "sys", Profile: "default", Origin: "agent"})
	rig.sink.stored = func() int { return len(rig.kept()) }
	return rig
}

// kept is the session as the vault has it.
func (r *agentRig) kept() []string {
	msgs, err := r.box.vault.messages(context.Background(), r.session)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, s := range msgs {
		m, err := fromStored(s)
		if err != nil {
			return []string{err.Error()}
		}
		out = append(out, agentLine(m))
	}
	return out
}

func agentLine(m chatMessage) string {
	line := string(m.Role)
	for _, c := range m.Calls {
		line += " +" + c.ID
	}
	if m.CallID != "" {
		line += " ->" + m.CallID
	}
	return line + " " + clip(strings.ReplaceAll(m.Content, "\n", "/"), 60)
}

// agentValid holds the rule of all endpoints: each call has exactly one result, right after the message that made it.
func agentValid(t *testing.T, msgs []chatMessage) {
	t.Helper()
	open := map[string]bool{}
	for i, m := range msgs {
		if m.Role != roleTool && len(open) > 0 {
			t.Errorf("message %d: calls %v have no result", i, open)
			clear(open)
		}
		if m.Role == roleTool && !open[m.CallID] {
			t.Errorf("message %d: a result of no call, or a second one: %q", i, m.CallID)
		}
		delete(open, m.CallID)
		for _, c := range m.Calls {
			open[c.ID] = true
		}
		if m.Content == "" && len(m.Calls) == 0 {
			t.Errorf("message %d is empty", i)
		}
	}
	if len(open) > 0 {
		t.Errorf("at the end calls %v have no result", open)
	}
}

func agentTools(extra ...tool) []tool {
	echo := toolsPlain("echo", toolHints{ReadOnly: true}, func(_ context.Context, c toolCall) (toolResult, error) {
		return toolResult{Text: "echo " + string(c.Args)}, nil
	})
	change := toolsPlain("change", toolHints{Destructive: true}, toolsText("changed"))
	return append([]tool{echo, change}, extra...)
}

// One turn with a native and a bridged call: what the model was sent, what the sink saw and when, what the vault keeps.
func TestAgentTurn(t *testing.T) {
	rig := newAgentRig(t, modePrompt, agentTools(),
		agentWants(chatToolCall{"c1", "echo", `{"n":1}`}, chatToolCall{"c2", "mcp_files_read", `{"p":"x"}`}), agentSays("All done."))
	res, err := rig.runTurn(t.Context(), "do it\nplease")
	if err != nil || res.Text != "All done." || res.Steps != 2 || res.Usage != (chatUsage{20, 4, 0}) || res.Session == "" {
		t.Fatalf("%+v, %v", res, err)
	}
	want := []string{"user do it/please", "assistant +c1 +c2 ", `tool ->c1 echo {"n":1}`, "tool ->c2 from the bridge", "assistant All done."}
	if got := rig.kept(); !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
	// Each event comes after what it tells of is on disk: the call in message 2, its result in message 3, …
	events := []string{"start c1@2", "finish c1 error=false@3", "start c2@3", "finish c2 error=false@4", "text All done.@4"}
	if !slices.Equal(rig.sink.events, events) {
		t.Errorf("events %q, want %q", rig.sink.events, events)
	}
	last := rig.model.requests[1]
	agentValid(t, last.Messages)
	var names []string
	for _, tl := range last.Tools {
		names = append(names, tl.Name)
	}
	if last.System != "sys" || strings.Join(names, " ") != "echo change mcp_files_read" {
		t.Errorf("system %q, tools %v", last.System, names)
	}
	if sessions, _, err := rig.box.vault.sessions(t.Context(), sessionQuery{Limit: 1}); err != nil || sessions[0].Title != "do it" || sessions[0].Profile != "default" {
		t.Errorf("session %+v, %v", sessions, err)
	}
	if got := strings.Join(rig.box.events(t), " "); got != "requested started completed" {
		t.Errorf("run log %q", got)
	}
}

// Every call has exactly one result, whatever was wrong with it, and the turn goes on.
func TestAgentBadCalls(t *testing.T) {
	for name, tc := range map[string]struct {
		call chatToolCall
		want string
	}{
		"refused":          {chatToolCall{"c", "change", `{}`}, "change: refused by policy"},
		"unknown":          {chatToolCall{"c", "rm_rf", `{}`}, `unknown tool "rm_rf"`},
		"no name":          {chatToolCall{"c", "", `{}`}, `unknown tool ""`},
		"broken JSON":      {chatToolCall{"c", "echo", `{"n":`}, "the arguments are no JSON object"},
		"array":            {chatToolCall{"c", "echo", `[1]`}, "the arguments are no JSON object"},
		"duplicate key":    {chatToolCall{"c", "echo", `{"n":1,"n":2}`}, "the arguments are no JSON object"},
		"wrong type":       {chatToolCall{"c", "echo", `{"n":"x"}`}, "echo: "},
		"unknown argument": {chatToolCall{"c", "echo", `{"x":1}`}, "echo: "},
		"empty result":     {chatToolCall{"c", "silent", ``}, agentNoContent},
	} {
		t.Run(name, func(t *testing.T) {
			silent := toolsPlain("silent", toolHints{ReadOnly: true}, toolsText(" \n"))
			rig := newAgentRig(t, modePrompt, agentTools(silent), agentWants(tc.call, chatToolCall{"d", "echo", `{}`}), agentSays("went on"))
			res, err := rig.runTurn(t.Context(), "go")
			if err != nil || res.Text != "went on" {
				t.Fatalf("%+v, %v", res, err)
			}
			msgs := rig.model.requests[1].Messages
			agentValid(t, msgs)
			if got := msgs[2]; !strings.HasPrefix(got.Content, tc.want) || got.IsError != (name != "empty result") {
				t.Errorf("result %+v, want %q", got, tc.want)
			}
			if got := msgs[3].Content; got != "echo {}" {
				t.Errorf("the call beside it: %q", got)
			}
			if body := appendChatRequest(nil, chatEndpoint{}, rig.model.requests[1]); checkJSON(body) != nil || strings.Contains(string(body), `{\"n\":\"}`) {
				t.Errorf("the request is not valid: %s", body)
			}
		})
	}
}

// F17: a call without arguments, with null or with an empty string carries {}.
func TestF17AgentArgs(t *testing.T) {
	for _, args := range []string{"", "null", `""`, "{}", " {} ", "\n"} {
		rig := newAgentRig(t, modePrompt, agentTools(), agentWants(chatToolCall{"a", "echo", args}, chatToolCall{"b", "mcp_files_read", args}), agentSays("ok"))
		if _, err := rig.runTurn(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		bridged := rig.box.bridge.(*fakeSource).calls
		if got := rig.history[2].Content; got != "echo {}" || len(bridged) != 1 || bridged[0] != "mcp_files_read {}" {
			t.Errorf("arguments %q: native %q, bridged %q", args, got, bridged)
		}
	}
}

// F22: nobody to ask; each call that needs consent is denied at once, the flag is named, the turn goes on.
func TestF22AgentPiped(t *testing.T) {
	add := toolsPlain("mcp_add", toolHints{Destructive: true}, toolsText("added"))
	rig := newAgentRig(t, modePrompt, agentTools(add), agentWants(chatToolCall{"a", "mcp_add", "{}"}, chatToolCall{"b", "change", "{}"}), agentSays("could not"))
	res, err := rig.runTurn(t.Context(), "add it")
	if err != nil || res.Text != "could not" {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, m := range rig.history[2:4] {
		if !m.IsError || !strings.Contains(m.Content, "refused by policy") || !strings.Contains(m.Content, "--auto") {
			t.Errorf("result %+v names no flag", m)
		}
	}
	if got := strings.Join(rig.box.events(t), " "); got != "requested blocked requested blocked" {
		t.Errorf("run log %q", got)
	}
}

func TestAgentEmptyAnswer(t *testing.T) {
	for _, text := range []string{"", " \n"} {
		rig := newAgentRig(t, modePrompt, agentTools(), agentSays(text), agentSays("now"))
		if _, err := rig.runTurn(t.Context(), "go"); !errors.Is(err, errEmptyAnswer) || !strings.Contains(err.Error(), `"stop"`) {
			t.Errorf("answer %q: %v", text, err)
		}
		if res, err := rig.runTurn(t.Context(), "again"); err != nil || res.Text != "now" {
			t.Errorf("the next turn: %+v, %v", res, err)
		}
		agentValid(t, rig.history)
	}
}

func TestAgentStepBound(t *testing.T) {
	n := 0
	again := func(chatRequest) (chatReply, error) {
		n++
		return chatReply{Calls: []chatToolCall{{fmt.Sprint("c", n), "echo", "{}"}}}, nil
	}
	rig := newAgentRig(t, modePrompt, agentTools(), slices.Repeat([]func(chatRequest) (chatReply, error){again}, 10)...)
	rig.Bounds.Steps = 3
	res, err := rig.runTurn(t.Context(), "go")
	if !errors.Is(err, errStepBound) || res.Steps != 3 || len(rig.model.requests) != 3 {
		t.Errorf("%+v, %v after %d requests", res, err, len(rig.model.requests))
	}
	agentValid(t, rig.history)
	if newAgent(agentConfig{}).Bounds.Steps != agentMaxSteps || agentMaxSteps != 50 {
		t.Errorf("the bound is %d", newAgent(agentConfig{}).Bounds.Steps)
	}
}

// Text that was shown before a reply broke off is kept; the history stays valid and the turn can be taken up again.
func TestAgentCutReply(t *testing.T) {
	fault := &chatError{Fault: faultReply, Message: "cut"}
	rig := newAgentRig(t, modePrompt, agentTools(),
		func(chatRequest) (chatReply, error) { return chatReply{Text: "half an"}, fault },
		func(chatRequest) (chatReply, error) { return chatReply{}, fault }, agentSays("whole"))
	for range 2 {
		if _, err := rig.runTurn(t.Context(), "go"); !errors.Is(err, fault) {
			t.Errorf("%v", err)
		}
	}
	if res, err := rig.runTurn(t.Context(), "go"); err != nil || res.Text != "whole" {
		t.Errorf("%+v, %v", res, err)
	}
	want := []string{"user go", "assistant half an/[cut off here]", "user go", "assistant [No answer was given: cut.]", "user go", "assistant whole"}
	if got := rig.kept(); !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
}

// An interrupt in the middle of a call: the running call and those after it get results, nothing more runs, all of it is on disk.
func TestF25AgentInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	slow := toolsPlain("slow", toolHints{Destructive: true}, func(ctx context.Context, _ toolCall) (toolResult, error) {
		cancel()
		<-ctx.Done()
		return toolResult{}, ctx.Err()
	})
	rig := newAgentRig(t, modeDanger, agentTools(slow),
		agentWants(chatToolCall{"a", "echo", "{}"}, chatToolCall{"b", "slow", "{}"}, chatToolCall{"c", "change", "{}"}), agentSays("back again"))
	if _, err := rig.runTurn(ctx, "go"); !errors.Is(err, errTurnInterrupted) {
		t.Fatalf("%v", err)
	}
	want := []string{"user go", "assistant +a +b +c ", "tool ->a echo {}", "tool ->b slow: interrupted", "tool ->c " + agentNotRun}
	if got := rig.kept(); !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
	agentValid(t, rig.history)
	if res, err := rig.runTurn(t.Context(), "go on"); err != nil || res.Text != "back again" {
		t.Errorf("%+v, %v", res, err)
	}
	if got := strings.Join(rig.box.events(t), " "); got != "requested started completed requested started failed" {
		t.Errorf("run log %q", got)
	}
}

// A tai that was killed leaves calls without results: they get some, in place and on disk, and no tool runs again (F25).
func TestF25AgentResume(t *testing.T) {
	ran := 0
	count := toolsPlain("count", toolHints{ReadOnly: true}, func(context.Context, toolCall) (toolResult, error) {
		ran++
		return toolResult{Text: "ran"}, nil
	})
	box := newToolsBox(t, modePrompt, nil, count)
	id, err := box.vault.createSession(t.Context(), sessionInfo{Profile: "default", Title: "t"})
	if err != nil {
		t.Fatal(err)
	}
	var stored []storedMessage
	for _, m := range []chatMessage{
		{Role: roleUser, Content: "go"},
		{Role: roleAssistant, Calls: []chatToolCall{{"a", "count", "{}"}, {"b", "count", "{}"}, {"c", "count", "{}"}}},
		{Role: roleTool, CallID: "a", Content: "first", IsError: true},
	} {
		s, err := toStored(m)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, s)
	}
	if err := box.vault.appendMessages(t.Context(), id, stored); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing left to repair
		rig := agentRigOver(box, agentSays("on we go"))
		if err := rig.resume(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		agentValid(t, rig.history)
		if kept := rig.kept(); len(kept) != 5 || !strings.HasPrefix(kept[3], "tool ->b interrupted:") || !strings.HasPrefix(kept[4], "tool ->c interrupted:") {
			t.Errorf("kept %q", kept)
		}
		if m := rig.history[2]; m.Content != "first" || !m.IsError || ran != 0 {
			t.Errorf("first result %+v, ran %d", m, ran)
		}
	}
	rig := agentRigOver(box, agentSays("on we go"))
	if err := rig.resume(t.Context(), " "+strings.ToUpper(id)); err != nil { // as it is spoken
		t.Fatal(err)
	}
	if res, err := rig.runTurn(t.Context(), "go on"); err != nil || res.Session != id || len(rig.model.requests[0].Messages) != 7 {
		t.Errorf("%+v, %v", res, err)
	}
	if err := agentRigOver(box).resume(t.Context(), "s-none"); !errors.Is(err, errNotFound) {
		t.Errorf("an unknown session: %v", err)
	}
}

func TestRepairHistory(t *testing.T) {
	calls := func(ids ...string) chatMessage {
		m := chatMessage{Role: roleAssistant}
		for _, id := range ids {
			m.Calls = append(m.Calls, chatToolCall{ID: id, Name: "x"})
		}
		return m
	}
	user, says := chatMessage{Role: roleUser, Content: "u"}, chatMessage{Role: roleAssistant, Content: "s"}
	result := func(id string) chatMessage { return chatMessage{Role: roleTool, CallID: id, Content: "r" + id} }
	for name, tc := range map[string]struct {
		in            []chatMessage
		want, missing string
	}{
		"whole":            {[]chatMessage{user, calls("a", "b"), result("a"), result("b"), says}, "u +a+b ra rb s", ""},
		"other order":      {[]chatMessage{user, calls("a", "b"), result("b"), result("a")}, "u +a+b ra rb", ""},
		"none":             {[]chatMessage{user, calls("a", "b")}, "u +a+b ?a ?b", "?a ?b"},
		"second result":    {[]chatMessage{user, calls("a"), result("a"), result("a"), says}, "u +a ra s", ""},
		"result of none":   {[]chatMessage{user, result("z"), says}, "u s", ""},
		"hole in the past": {[]chatMessage{user, calls("a"), says, user, says}, "u +a ?a s u s", ""},
		"hole, then whole": {[]chatMessage{user, calls("a"), calls("b"), result("b")}, "u +a ?a +b rb", ""},
		"said between":     {[]chatMessage{user, calls("a"), user, result("a"), says}, "u +a ra u s", ""},
		"empty answer":     {[]chatMessage{user, {Role: roleAssistant}, user}, "u u", ""},
		"nothing":          {nil, "", ""},
	} {
		line := func(msgs []chatMessage) string {
			var out []string
			for _, m := range msgs {
				s := m.Content
				if s == chatUnknown {
					s = "?" + m.CallID
				}
				for _, c := range m.Calls {
					s += "+" + c.ID
				}
				out = append(out, s)
			}
			return strings.Join(out, " ")
		}
		fixed, missing := repairHistory(tc.in)
		if line(fixed) != tc.want || line(missing) != tc.missing {
			t.Errorf("%s: %q and %q, want %q and %q", name, line(fixed), line(missing), tc.want, tc.missing)
		}
	}
}

// Reading calls of one reply run side by side; with one that changes something among them all run in order.
func TestAgentParallel(t *testing.T) {
	var mu sync.Mutex
	together, most := 0, 0
	all := make(chan struct{})
	meet := toolsPlain("meet", toolHints{ReadOnly: true}, func(ctx context.Context, _ toolCall) (toolResult, error) {
		mu.Lock()
		together++
		if most = max(most, together); together == 3 {
			close(all)
		}
		mu.Unlock()
		select {
		case <-all:
		case <-time.After(5 * time.Second):
			return toolResult{}, errors.New("alone")
		}
		mu.Lock()
		together--
		mu.Unlock()
		return toolResult{Text: "met"}, nil
	})
	alone := toolsPlain("alone", toolHints{ReadOnly: true}, func(context.Context, toolCall) (toolResult, error) {
		mu.Lock()
		together++
		most = max(most, together)
		mu.Unlock()
		defer func() {
			mu.Lock()
			together--
			mu.Unlock()
		}()
		return toolResult{Text: "alone"}, nil
	})
	rig := newAgentRig(t, modeDanger, agentTools(meet, alone),
		agentWants(chatToolCall{"a", "meet", "{}"}, chatToolCall{"b", "meet", "{}"}, chatToolCall{"c", "meet", "{}"}),
		agentWants(chatToolCall{"d", "alone", "{}"}, chatToolCall{"e", "change", "{}"}, chatToolCall{"f", "alone", "{}"}), agentSays("ok"))
	if _, err := rig.runTurn(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	var starts []string
	for _, e := range rig.sink.events {
		if id, ok := strings.CutPrefix(e, "start "); ok {
			starts = append(starts, id[:1])
		}
	}
	if got := strings.Join(starts, ""); got != "abcdef" {
		t.Errorf("calls are told to begin in the order %s, want abcdef", got)
	}
	for i, want := range []string{"a", "b", "c"} {
		if m := rig.history[2+i]; m.CallID != want || m.Content != "met" {
			t.Errorf("result %d: %+v", i, m)
		}
	}
	if most != 3 {
		t.Errorf("%d ran together, want 3", most)
	}
	agentValid(t, rig.history)
	if got := strings.Join(rig.sink.events[len(rig.sink.events)-7:], " "); !strings.HasPrefix(got, "start d@") || strings.Index(got, "finish d") > strings.Index(got, "start e") {
		t.Errorf("not in order: %s", got)
	}
}

// What does not fit the endpoint is kept back with one notice, the rest works; a bridge that fails does not end the turn.
func TestAgentOffer(t *testing.T) {
	src := &fakeSource{defs: []toolDef{{Name: "mcp_a_bad", InputSchema: json.RawMessage(`{"type":"string"}`)}, {Name: "mcp_a_good"}}}
	rig := agentRigOver(newToolsBox(t, modePrompt, src, agentTools()...), agentSays("one"), agentSays("two"), agentSays("three"))
	for range 2 {
		if _, err := rig.runTurn(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
	}
	notices := slices.DeleteFunc(slices.Clone(rig.sink.events), func(s string) bool { return !strings.HasPrefix(s, "notice") })
	if len(notices) != 1 || !strings.Contains(notices[0], `tool "mcp_a_bad"`) || len(rig.model.requests[1].Tools) != 3 {
		t.Errorf("notices %q, %d tools", notices, len(rig.model.requests[1].Tools))
	}
	src.err = errors.New("no vault")
	if res, err := rig.runTurn(t.Context(), "go"); err != nil || res.Text != "three" || len(rig.model.requests[2].Tools) != 2 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestAgentMessageBounds(t *testing.T) {
	rig := newAgentRig(t, modePrompt, agentTools(), agentSays("x"))
	for _, text := range []string{"", " \n", strings.Repeat("x", agentMaxText+1)} {
		if _, err := rig.runTurn(t.Context(), text); err == nil || rig.session != "" || len(rig.model.requests) > 0 {
			t.Errorf("a message of %d bytes: %v, session %q", len(text), err, rig.session)
		}
	}
}

// fakeStore fails when it is told to.
type fakeStore struct {
	agentStore
	after int // appends that work
}

func (f *fakeStore) appendMessages(ctx context.Context, session string, m []storedMessage) error {
	if f.after--; f.after < 0 {
		return errors.New("disk full")
	}
	return f.agentStore.appendMessages(ctx, session, m)
}

// What cannot be kept is not shown, and ends the turn (R10).
func TestAgentStoreFails(t *testing.T) {
	for after := range 4 {
		rig := newAgentRig(t, modePrompt, agentTools(), agentWants(chatToolCall{"a", "echo", "{}"}), agentSays("ok"))
		rig.Store = &fakeStore{rig.box.vault, after}
		if _, err := rig.runTurn(t.Context(), "go"); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("after %d appends: %v", after, err)
		}
		if shown := strings.Join(rig.sink.events, " "); strings.Contains(shown, "finish") != (after > 2) || strings.Contains(shown, "start") != (after > 1) {
			t.Errorf("after %d appends: shown %q", after, shown)
		}
	}
}

// The whole way: a scripted endpoint on the wire, a real file, one answer.
func TestAgentOverTheWire(t *testing.T) {
	w, _ := workspaceDirs(t)
	m := newFakeModel(t,
		chatStream(5, chatFirst, chatText("Looking."), chatCall(0, "call_1", "file_read", `{"path"`), chatCall(0, "", "", `:"in.txt"}`), chatStop("tool_calls"), chatUses, "[DONE]"),
		chatStream(5, chatFirst, chatText("It says one, two."), chatStop("stop"), chatUses, "[DONE]"))
	c, _ := m.client(t)
	rig := agentRigOver(newToolsBox(t, modePrompt, nil, fileTools(w)...))
	rig.Model = c
	res, err := rig.runTurn(t.Context(), "what does in.txt say?")
	if err != nil || res.Text != "It says one, two." || res.Usage != (chatUsage{24, 10, 8}) {
		t.Fatalf("%+v, %v", res, err)
	}
	if body := string(m.requests[1]); !strings.Contains(body, `"role":"tool","tool_call_id":"call_1","content":"     1\tone\n     2\ttwo\n"`) {
		t.Errorf("second request %s", body)
	}
}

func TestAgentSystem(t *testing.T) {
	day := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	got := agentSystem("/srv/app", "linux", day, []projectNote{{"AGENTS.md", "Use tabs."}})
	if !strings.Contains(got, "/srv/app") || !strings.Contains(got, "2026-05-04") || !strings.HasSuffix(got, "\nUse tabs.") {
		t.Errorf("%q", got)
	}
	if got != agentSystem("/srv/app", "linux", day.Add(time.Hour), []projectNote{{"AGENTS.md", "Use tabs."}}) {
		t.Error("the system text changes within a day")
	}
}

// What a server says in an error of its own reaches the model as the bridge tells it: whole, and masked.
func TestAgentForeignError(t *testing.T) {
	fault := fmt.Errorf("mcp server files: call read: %w", maskError(&rpcError{Code: codeInternal, Message: "key s3cr3t-value"}, func(s string) string {
		return strings.ReplaceAll(s, "s3cr3t-value", "[secret:K]")
	}))
	src := &fakeSource{defs: []toolDef{{Name: "mcp_files_read", Description: "Reads."}}, broken: fault}
	rig := agentRigOver(newToolsBox(t, modePrompt, src), agentWants(chatToolCall{"c", "mcp_files_read", `{}`}), agentSays("done"))
	if _, err := rig.runTurn(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if got := rig.model.requests[1].Messages[2].Content; got != fault.Error() || strings.Contains(got, "s3cr3t") {
		t.Errorf("the model hears %q, want %q", got, fault.Error())
	}
}

// Nothing further is done once a result could not be kept; the history is whole all the same.
func TestAgentStopsUnkept(t *testing.T) {
	done := 0
	deed := toolsPlain("deed", toolHints{Destructive: true}, func(context.Context, toolCall) (toolResult, error) {
		done++
		return toolResult{Text: "done"}, nil
	})
	rig := newAgentRig(t, modeDanger, agentTools(deed), agentWants(chatToolCall{"a", "deed", "{}"}, chatToolCall{"b", "deed", "{}"}))
	rig.Store = &fakeStore{rig.box.vault, 2}
	if _, err := rig.runTurn(t.Context(), "go"); err == nil || done != 1 {
		t.Errorf("%v after %d deeds, want the first alone", err, done)
	}
	agentValid(t, rig.history)
}
