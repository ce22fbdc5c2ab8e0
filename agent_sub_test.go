package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type subStep func(ctx context.Context, r chatRequest) (chatReply, error)

// subScripts is a model that answers each conversation by the script for its first message.
type subScripts struct {
	mu    sync.Mutex
	steps map[string][]subStep
	seen  map[string][]chatRequest
}

func (m *subScripts) complete(ctx context.Context, r chatRequest, onDelta func(chatDelta)) (chatReply, error) {
	r.Messages = slices.Clone(r.Messages)
	task := r.Messages[0].Content
	m.mu.Lock()
	if m.seen == nil {
		m.seen = map[string][]chatRequest{}
	}
	m.seen[task] = append(m.seen[task], r)
	n := len(m.seen[task])
	steps := m.steps[task]
	m.mu.Unlock()
	if n > len(steps) {
		return chatReply{}, errors.New("the script is at its end")
	}
	reply, err := steps[n-1](ctx, r)
	if reply.Text != "" {
		onDelta(chatDelta{Text: reply.Text})
	}
	if err == nil {
		reply.Usage = chatUsage{Input: 10, Output: 2}
	}
	return reply, err
}

func (m *subScripts) of(task string) []chatRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.seen[task])
}

func subSays(text string) subStep {
	return func(context.Context, chatRequest) (chatReply, error) {
		return chatReply{Text: text, Stop: "stop"}, nil
	}
}

func subFails(err error) subStep {
	return func(context.Context, chatRequest) (chatReply, error) { return chatReply{}, err }
}

// subCalls says a text and calls one tool.
func subCalls(text, name, args string) subStep {
	return func(context.Context, chatRequest) (chatReply, error) {
		return chatReply{Text: text, Calls: []chatToolCall{{"c1", name, args}}, Stop: "tool_calls"}, nil
	}
}

// subWaits answers when free is closed, or not at all.
func subWaits(began chan<- struct{}, free <-chan struct{}, reply chatReply) subStep {
	return func(ctx context.Context, _ chatRequest) (chatReply, error) {
		began <- struct{}{}
		select {
		case <-free:
			return reply, nil
		case <-ctx.Done():
			return chatReply{}, ctx.Err()
		}
	}
}

// subRig is an agent that has the two tools, and others to give away.
type subRig struct {
	*agentRig
	host  *agentHost
	procs *procManager
	subs  *subScripts
	told  chan string
}

func newSubRig(t *testing.T, mode approvalMode, subs map[string][]subStep, steps ...func(chatRequest) (chatReply, error)) *subRig {
	t.Helper()
	r := &subRig{subs: &subScripts{steps: subs}, told: make(chan string, 100), procs: newProcManager(time.Now)}
	var box *toolsBox
	mask := func(s string) string { return strings.ReplaceAll(s, "hush-hush-1", "[secret:TOKEN]") }
	r.host = newAgentHost(subConfig{Now: time.Now, Redact: mask, Tell: func(s string) { r.told <- s }, Open: func(context.Context) (agentConfig, error) {
		return agentConfig{Model: r.subs, ModelName: "m-2", Store: box.vault, System: "sys", Profile: "default"}, nil
	}})
	r.procs.join(r.host)
	get := func() (*toolbox, error) { return box.toolbox, nil }
	scope := agentScope{host: r.host, box: get, servers: func(_ context.Context, p string) ([]string, error) {
		if p != "small" {
			return nil, errNotFound
		}
		return []string{"files"}, nil
	}}
	call := toolsPlain("mcp_call", toolHints{Destructive: true}, func(_ context.Context, c toolCall) (toolResult, error) {
		return toolResult{Text: "bridged " + string(c.Args)}, nil
	})
	call.Schema, call.own = json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"server":{"type":"string","description":"s"},"tool":{"type":"string","description":"t"},"args":{"type":"object","description":"a"}}}`), true
	call.forecast = func(context.Context, toolCall) (policyForecast, error) {
		return policyForecast{Decision: forecastAsk, Rule: "bridge"}, nil
	}
	tools := agentTools(call, toolsPlain("mcp_add", toolHints{Destructive: true}, toolsText("added")))
	w := workspace{}
	for _, more := range [][]tool{subagentTools(scope), findTools(func() (toolFinder, error) { return box.toolbox, nil }), policyTools(func() (policyForeseer, error) { return box.toolbox, nil }),
		procTools(r.procs, w, os.Environ, runtime.GOOS, func(s string) string { return s }), askTools(nil)} {
		tools = append(tools, more...)
	}
	box = newToolsBox(t, mode, &fakeSource{defs: []toolDef{{Name: "mcp_files_read", Description: "Reads."}, {Name: "mcp_web_get", Description: "Gets a page."}}}, tools...)
	r.agentRig = agentRigOver(box, steps...)
	t.Cleanup(func() {
		if err := r.host.close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// direct calls a tool as the conversation would, outside a turn.
func (r *subRig) direct(t *testing.T, name, args string) (toolResult, subReport) {
	t.Helper()
	res, err := r.box.dispatch(t.Context(), toolCall{Name: name, Args: json.RawMessage(args), Origin: "cli", Session: "s-top"})
	if err != nil {
		t.Fatal(err)
	}
	var doc subReport
	if len(res.Structured) > 0 {
		if err := json.Unmarshal(res.Structured, &doc); err != nil {
			t.Fatal(err)
		}
	}
	return res, doc
}

func (r *subRig) await(t *testing.T, id string) *subAgent {
	t.Helper()
	s, ok := r.host.find(nil, id)
	if !ok || !waitFor(5*time.Second, s.done) {
		t.Fatalf("agent %s: %v, or it does not end", id, ok)
	}
	return s
}

// subLog gives "event subject parent" of the calls in the run log, ids replaced by the number of the call.
func (b *toolsBox) subLog(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(b.log.path())
	if err != nil {
		t.Fatal(err)
	}
	number := map[string]string{}
	var out []string
	for line := range strings.Lines(string(text)) {
		var ev struct{ Event, Call, Parent, Subject, Rule string }
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatal(err)
		}
		if event, ok := strings.CutPrefix(ev.Event, "tool_call_"); ok {
			if number[ev.Call] == "" {
				number[ev.Call] = fmt.Sprint("#", len(number)+1)
			}
			parent := ev.Parent
			if number[parent] != "" {
				parent = number[parent]
			} else if parent != "" {
				parent = "turn"
			}
			out = append(out, strings.TrimSpace(strings.Join([]string{number[ev.Call], event, ev.Subject, "<", parent, ev.Rule}, " ")))
		}
	}
	return out
}

// One in the foreground: its answer, its session below the other, its calls below the call that started it, its tokens on the turn's account.
func TestAgentSubForeground(t *testing.T) {
	rig := newSubRig(t, modeDanger, map[string][]subStep{"count": {subCalls("Looking.", "echo", `{"n":1}`), subSays("There are 3.")}},
		agentWants(chatToolCall{"p1", "agent_run", `{"task":"count"}`}), agentSays("Three."))
	res, err := rig.runTurn(t.Context(), "go")
	if err != nil || res.Text != "Three." || res.Steps != 2 || res.Below != 2 || res.Usage != (chatUsage{40, 8, 0}) {
		t.Fatalf("%+v, %v", res, err)
	}
	agentValid(t, rig.history)
	got := rig.history[2].Content
	if !strings.HasPrefix(got, "a-1 done after ") || !strings.HasSuffix(got, "\n\nThere are 3.") || !strings.Contains(got, ", 2 steps, 20 tokens in, 4 out, session s-") {
		t.Errorf("result %q", got)
	}
	_, doc := rig.direct(t, "agent_status", `{"id":"a-1"}`)
	if doc.State != subDone || doc.Steps != 2 || doc.Usage != (subUsage{20, 4}) || doc.Answer != "There are 3." || doc.Background || doc.MaxSteps != subSteps {
		t.Errorf("%+v", doc)
	}
	list, _, err := rig.box.vault.sessions(t.Context(), sessionQuery{})
	if err != nil || len(list) != 1 || list[0].ID != rig.session {
		t.Errorf("sessions %+v, %v", list, err)
	}
	if s, err := rig.box.vault.session(t.Context(), doc.Session); err != nil || s.Parent != rig.session || s.Title != "count" {
		t.Errorf("session %+v, %v", s, err)
	}
	want := []string{"#1 requested agent_run < turn", "#1 started agent_run < turn mode danger-full-access", "#2 requested echo < #1", "#2 started echo < #1 mode danger-full-access", "#2 completed echo < #1", "#1 completed agent_run < turn mode danger-full-access"}
	log := rig.box.subLog(t)
	for i := range want {
		if i >= len(log) || !strings.HasPrefix(log[i], want[i]) {
			t.Errorf("run log %q, want %q", log, want)
			break
		}
	}
	if events := strings.Join(rig.sink.events, "\n"); !strings.Contains(events, `notice a-1 · echo {"n":1}@`) {
		t.Errorf("events %s", events)
	}
	if spent := rig.host.spentBelow(rig.session); len(spent) != 1 || spent[0].Model != "m-2" || spent[0].Requests != 2 || spent[0].Usage.Input != 20 {
		t.Errorf("spent %+v", spent)
	}
	first := rig.subs.of("count")[0]
	if len(first.Messages) != 1 || !strings.HasPrefix(first.System, "sys\n\nYou are a-1, ") || !strings.Contains(first.System, "You have 20 steps") {
		t.Errorf("request %+v", first)
	}
}

// What it cannot do is a failed result that says how far it came and what was said last.
func TestAgentSubFailures(t *testing.T) {
	look := subCalls("So far 2.", "echo", `{}`)
	for name, tc := range map[string]struct {
		args  string
		steps []subStep
		want  []string
	}{
		"model":     {`{"task":"t"}`, []subStep{look, subFails(&chatError{Message: "no such model"})}, []string{"failed after ", ", 2 steps", "no such model", "So far 2."}},
		"steps":     {`{"task":"t","max_steps":2}`, []subStep{look, look, look}, []string{"failed after ", ", 2 steps", "bound of steps (2)", "So far 2."}},
		"empty":     {`{"task":"t"}`, []subStep{subSays(" ")}, []string{"failed", "empty answer", "(nothing)"}},
		"panic":     {`{"task":"t"}`, []subStep{func(context.Context, chatRequest) (chatReply, error) { panic("oh") }}, []string{"failed", "a fault in tai itself: oh"}},
		"no task":   {`{"task":" \n"}`, nil, []string{`property "task"`}},
		"long task": {`{"task":"` + strings.Repeat("x", subTaskText+1) + `"}`, nil, []string{"task"}},
		"no steps":  {`{"task":"t","max_steps":0}`, nil, []string{"max_steps"}},
		"too many":  {`{"task":"t","max_steps":51}`, nil, []string{"max_steps"}},
		"no tools":  {`{"task":"t","tools":[]}`, nil, []string{"tools"}},
		"unknown":   {`{"task":"t","tools":["echo","rm_rf","web_*"]}`, nil, []string{`"rm_rf", "web_*"`, "tool_search finds"}},
		"profile":   {`{"task":"t","profile":"big"}`, nil, []string{`no such profile: "big"`}},
		"surplus":   {`{"task":"t","model":"x"}`, nil, []string{"model"}},
	} {
		t.Run(name, func(t *testing.T) {
			rig := newSubRig(t, modeDanger, map[string][]subStep{"t": tc.steps})
			res, _ := rig.direct(t, "agent_run", tc.args)
			for _, want := range tc.want {
				if !res.IsError || !strings.Contains(res.Text+res.Hint, want) {
					t.Errorf("error %v, %q, want %q", res.IsError, res.Text, want)
				}
			}
			if tc.steps == nil && len(rig.host.all(nil)) > 0 {
				t.Error("an agent was started")
			}
		})
	}
	rig := newSubRig(t, modePrompt, nil)
	if res, _ := rig.direct(t, "agent_status", `{"id":"a-9"}`); !res.IsError || !strings.Contains(res.Text, `no agent has the id "a-9"`) || res.Hint == "" {
		t.Errorf("%+v", res)
	}
	if res, _ := rig.direct(t, "agent_status", `{}`); res.IsError || res.Text != "no agent was started\n" || string(res.Structured) != `{"agents":[]}` {
		t.Errorf("%+v", res)
	}
	if res, _ := rig.direct(t, "agent_run", `{"task":"t"}`); res.Rule != ruleNobody {
		t.Errorf("mode prompt: %+v", res)
	}
}

// A sub-agent has what is given to it of what the other has, and cannot reach more by any name.
func TestAgentSubTools(t *testing.T) {
	all := "echo change mcp_call agent_run agent_status tool_search policy_check proc_start proc_read proc_write proc_list proc_stop ask_user mcp_files_read mcp_web_get"
	for name, tc := range map[string]struct{ args, want string }{
		"all":         {`{"task":"t"}`, all},
		"names":       {`{"task":"t","tools":["echo","mcp_web_get"]}`, "echo mcp_web_get"},
		"globs":       {`{"task":"t","tools":["proc_*"]}`, "proc_start proc_read proc_write proc_list proc_stop"},
		"glob of all": {`{"task":"t","tools":["*"]}`, all},
		"kept back":   {`{"task":"t","tools":["echo","mcp_add"]}`, "echo mcp_add"},
		"profile":     {`{"task":"t","tools":["mcp_*"],"profile":"small"}`, "mcp_call mcp_files_read"},
	} {
		t.Run(name, func(t *testing.T) {
			rig := newSubRig(t, modeDanger, map[string][]subStep{"t": {subSays("ok")}})
			if res, _ := rig.direct(t, "agent_run", tc.args); res.IsError {
				t.Fatal(res.Text)
			}
			var got []string
			for _, tl := range rig.subs.of("t")[0].Tools {
				got = append(got, tl.Name)
			}
			want := strings.Fields(tc.want)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("tools %q, want %q", got, want)
			}
		})
	}
}

// Neither an unknown name, tool_search, policy_check nor mcp_call leads out of the set; a refused mcp_call stands in the run log.
func TestAgentSubNoWayRound(t *testing.T) {
	for name, tc := range map[string]struct{ tool, args, want, log string }{
		"native":        {"change", `{}`, `unknown tool "change"`, ""},
		"bridged":       {"mcp_web_get", `{}`, `unknown tool "mcp_web_get"`, ""},
		"inside":        {"mcp_files_read", `{}`, "from the bridge", ""},
		"mcp_call":      {"mcp_call", `{"server":"web","tool":"get"}`, "refused (tool set)", "#2 blocked web/get < #1 tool set"},
		"mcp_call in":   {"mcp_call", `{"server":"files","tool":"read"}`, "bridged ", ""},
		"tool_search":   {"tool_search", `{"query":"gets a page change echo"}`, "mcp_web_get", "-"},
		"policy native": {"policy_check", `{"tool":"change"}`, "rule: unknown tool", ""},
		"policy call":   {"policy_check", `{"tool":"mcp_call","args":{"server":"web","tool":"get"}}`, "rule: tool set", ""},
		"policy bridge": {"policy_check", `{"tool":"mcp:web/get"}`, "rule: unknown tool", ""},
		"policy inside": {"policy_check", `{"tool":"mcp_files_read"}`, "rule: from the bridge", ""},
	} {
		t.Run(name, func(t *testing.T) {
			result := ""
			rig := newSubRig(t, modeDanger, map[string][]subStep{"t": {subCalls("", tc.tool, tc.args), func(_ context.Context, r chatRequest) (chatReply, error) {
				result = r.Messages[2].Content
				return chatReply{Text: "ok", Stop: "stop"}, nil
			}}})
			res, _ := rig.direct(t, "agent_run", `{"task":"t","tools":["echo","tool_search","policy_check","mcp_call","mcp_files_*"]}`)
			if refused := strings.Contains(tc.want, "refused"); strings.Contains(res.Text, ", 1 call refused, ") != refused {
				t.Errorf("it tells of refused calls: %q", res.Text)
			}
			if tc.log == "-" {
				if strings.Contains(result, tc.want) || strings.Contains(result, "change:") || !strings.Contains(result, "echo:") {
					t.Errorf("found %q", result)
				}
				return
			}
			if !strings.Contains(result, tc.want) {
				t.Errorf("%q, want %q", result, tc.want)
			}
			if log := rig.box.subLog(t); tc.log != "" && !slices.Contains(log, tc.log) {
				t.Errorf("run log %q, want %q", log, tc.log)
			}
		})
	}
}

// Agents stand two deep; the deeper one has no agent_run, and each sees those below itself alone.
func TestAgentSubDepth(t *testing.T) {
	rig := newSubRig(t, modeDanger, map[string][]subStep{
		"one":   {subCalls("", "agent_run", `{"task":"two"}`), subCalls("", "agent_status", `{}`), subCalls("", "agent_status", `{"id":"a-1"}`), subSays("one is done")},
		"two":   {subCalls("", "agent_run", `{"task":"three"}`), subSays("two is done")},
		"other": {subSays("other is done")},
	})
	rig.direct(t, "agent_run", `{"task":"other"}`)
	if res, _ := rig.direct(t, "agent_run", `{"task":"one"}`); res.IsError {
		t.Fatal(res.Text)
	}
	if got := rig.subs.of("two")[1].Messages[2].Content; !strings.Contains(got, `unknown tool "agent_run"`) {
		t.Errorf("depth 2: %q", got)
	}
	one := rig.subs.of("one")
	if got := one[1].Messages[2].Content; !strings.Contains(got, "two is done") {
		t.Errorf("depth 1: %q", got)
	}
	if got := one[2].Messages[4].Content; !strings.HasPrefix(got, "a-3 done") || strings.Count(got, "\n") != 1 {
		t.Errorf("its agents: %q", got)
	}
	if got := one[3].Messages[6].Content; !strings.Contains(got, `no agent has the id "a-1"`) {
		t.Errorf("another's agent: %q", got)
	}
	if res, _ := rig.direct(t, "agent_run", `{"task":"one","tools":["agent_run","echo"]}`); !strings.HasPrefix(res.Text, "a-4 failed") {
		t.Errorf("%q", res.Text)
	}
}

// Its bounds are never above what the turn has left, and what it spends the turn has no more.
func TestAgentSubBounds(t *testing.T) {
	look := subCalls("", "echo", `{}`)
	task := func(name string, more string) chatToolCall {
		return chatToolCall{"p" + name, "agent_run", `{"task":"` + name + `"` + more + `}`}
	}
	many := func() map[string][]subStep {
		return map[string][]subStep{"x": slices.Repeat([]subStep{look}, 30), "y": slices.Repeat([]subStep{look}, 30)}
	}
	t.Run("steps", func(t *testing.T) {
		rig := newSubRig(t, modeDanger, many(), agentWants(task("x", `,"max_steps":3`), task("y", ""), task("y", "")), agentSays("ok"))
		rig.Bounds.Steps = 8
		res, err := rig.runTurn(t.Context(), "go")
		if err != nil || res.Steps != 2 || res.Below != 7 || len(rig.subs.of("x")) != 3 || len(rig.subs.of("y")) != 4 {
			t.Errorf("%+v, %v, %d and %d", res, err, len(rig.subs.of("x")), len(rig.subs.of("y")))
		}
		if got := rig.history[4].Content; !strings.Contains(got, "no steps left") {
			t.Errorf("%q", got)
		}
	})
	t.Run("tokens", func(t *testing.T) {
		rig := newSubRig(t, modeDanger, many(), agentWants(task("x", "")), agentSays("ok"))
		rig.Bounds.Tokens = 9
		res, err := rig.runTurn(t.Context(), "go") // 2 of its own, then 2 a reply until none of the 7 is left
		if !errors.Is(err, errTokenBound) || res.Usage.Output != 10 || rig.subs.of("x")[0].MaxTokens != 7 {
			t.Errorf("%+v, %v", res, err)
		}
	})
	t.Run("tokens in the background", func(t *testing.T) {
		rig := newSubRig(t, modeDanger, many(), agentWants(task("x", `,"background":true`)), agentSays("ok"))
		rig.Bounds.Tokens = 22
		res, err := rig.runTurn(t.Context(), "go")
		if err != nil || res.given != 10 || rig.model.requests[1].MaxTokens != 10 {
			t.Errorf("%+v, %v, %d", res, err, rig.model.requests[1].MaxTokens)
		}
		if s := rig.await(t, "a-1"); s.usage.Output != 10 || s.state != subFailed || s.bounds.Tokens != 10 {
			t.Errorf("%+v", s.report())
		}
	})
	t.Run("time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := make(chan struct{}, 2)
			h := newAgentHost(subConfig{Now: time.Now, Tell: func(string) {}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			store := &subStore{}
			h.cfg.Open = func(context.Context) (agentConfig, error) {
				return agentConfig{Model: &subScripts{steps: map[string][]subStep{"t": {subWaits(began, nil, chatReply{})}}}, Store: store}, nil
			}
			none := func(*subAgent) *toolbox { return &toolbox{} }
			s, _, err := h.start(ctx, subOrder{Task: "t", Background: true, Box: none})
			if err != nil || s.bounds.Time != time.Minute {
				t.Fatalf("%v, %+v", err, s)
			}
			begin := time.Now()
			<-s.done
			if r := s.report(); time.Since(begin) != time.Minute || r.State != subFailed || r.Error != errTimeBound.Error() {
				t.Errorf("after %s %+v", time.Since(begin), r)
			}
			if s, _, err = h.start(t.Context(), subOrder{Task: "t", Box: none}); err != nil || s.bounds.Time != subTime || s.report().Ran != subTime.Milliseconds() {
				t.Errorf("%v, %+v", err, s.report())
			}
		})
	})
}

// subStore keeps nothing.
type subStore struct{ n int }

func (s *subStore) createSession(context.Context, sessionInfo) (string, error) { return "s-1", nil }
func (s *subStore) appendMessages(_ context.Context, _ string, m []storedMessage) error {
	for i := range m {
		s.n++
		m[i].Seq = s.n
	}
	return nil
}
func (s *subStore) messages(context.Context, string) ([]storedMessage, error) { return nil, nil }

// One in the background is listed beside commands, ends softly or by force when it is stopped, and says so once.
func TestAgentSubBackground(t *testing.T) {
	began, free := make(chan struct{}, 10), make(chan struct{})
	rig := newSubRig(t, modeDanger, map[string][]subStep{
		"slow":  {subWaits(began, free, chatReply{Text: "Done.\nAll of it.", Stop: "stop"})},
		"soft":  {subWaits(began, free, chatReply{Text: "I look.", Calls: []chatToolCall{{"c", "echo", "{}"}}}), subSays("not reached")},
		"stuck": {subWaits(began, nil, chatReply{})},
	})
	for _, task := range []string{"slow", "soft", "stuck"} {
		res, doc := rig.direct(t, "agent_run", `{"task":"`+task+`","background":true}`)
		if res.IsError || doc.State != subRunning || !doc.Background || !strings.Contains(res.Text, "agent_status "+doc.ID) {
			t.Fatalf("%+v", res)
		}
		<-began
	}
	list, _ := rig.direct(t, "proc_list", `{}`)
	if !strings.Contains(list.Text, "a-1 running for ") || !strings.Contains(list.Text, "0 of 20 steps done, waits for the model: slow\n") || !strings.Contains(string(list.Structured), `"kind":"agent"`) {
		t.Errorf("%s", list.Text)
	}
	stop := make(chan toolResult, 1)
	go func() { // ends with the call
		res, err := rig.box.dispatch(context.Background(), toolCall{Name: "proc_stop", Args: json.RawMessage(`{"id":"a-2","grace_s":60}`)})
		if err != nil {
			res.Text = err.Error()
		}
		stop <- res
	}()
	soft, _ := rig.host.find(nil, "a-2")
	for asked := false; !asked; runtime.Gosched() {
		soft.mu.Lock()
		asked = soft.asked
		soft.mu.Unlock()
	}
	close(free)
	if res := <-stop; !strings.HasPrefix(res.Text, "a-2 stopped after ") || len(rig.subs.of("soft")) != 1 {
		t.Errorf("%q, %d requests", res.Text, len(rig.subs.of("soft")))
	}
	if res, _ := rig.direct(t, "proc_stop", `{"id":"a-3","grace_s":0}`); !strings.HasPrefix(res.Text, "a-3 stopped after ") {
		t.Errorf("%q", res.Text)
	}
	if res, _ := rig.direct(t, "proc_stop", `{"id":"a-3","grace_s":0}`); res.IsError || !strings.HasPrefix(res.Text, "a-3 stopped after ") {
		t.Errorf("again: %q", res.Text)
	}
	rig.await(t, "a-1")
	told := []string{<-rig.told, <-rig.told, <-rig.told}
	slices.Sort(told)
	for i, want := range []string{`agent a-1 ("slow") done after `, `agent a-2 ("soft") stopped after `, `agent a-3 ("stuck") stopped after `} {
		if !strings.HasPrefix(told[i], want) {
			t.Errorf("told %q, want %q", told[i], want)
		}
	}
	if !strings.HasSuffix(told[0], ": Done.") {
		t.Errorf("told %q", told[0])
	}
	if _, doc := rig.direct(t, "agent_status", `{"id":"a-2"}`); doc.State != subStopped || doc.Said != "I look." || doc.Steps != 1 {
		t.Errorf("%+v", doc)
	}
	if len(rig.told) > 0 {
		t.Errorf("told besides: %q", <-rig.told)
	}
}

// So many at a time, and so many remembered; with tai all end.
func TestAgentSubLimits(t *testing.T) {
	began := make(chan struct{}, 10)
	rig := newSubRig(t, modeDanger, map[string][]subStep{"stuck": slices.Repeat([]subStep{subWaits(began, nil, chatReply{})}, 10), "quick": slices.Repeat([]subStep{subSays("ok")}, 30)})
	for range subKept + 3 {
		rig.direct(t, "agent_run", `{"task":"quick"}`)
	}
	if n := len(rig.host.all(nil)); n != subKept+1 {
		t.Errorf("%d are remembered", n)
	}
	for range subMax {
		rig.direct(t, "agent_run", `{"task":"stuck","background":true}`)
		<-began
	}
	if res, _ := rig.direct(t, "agent_run", `{"task":"quick"}`); !res.IsError || !strings.Contains(res.Text, "4 agents are running, at most 4 may") || !strings.Contains(res.Hint, "proc_stop") {
		t.Errorf("%+v", res)
	}
	if err := rig.host.close(); err != nil {
		t.Error(err)
	}
	for _, s := range rig.host.all(nil)[subKept:] {
		if r := s.report(); r.State != subStopped || r.Error != "tai ended before it was done" {
			t.Errorf("%+v", r)
		}
	}
	if res, _ := rig.direct(t, "agent_run", `{"task":"quick"}`); !strings.Contains(res.Text, "tai is ending") {
		t.Errorf("%+v", res)
	}
}

// No agent stops itself or the one that waits for it.
func TestAgentSubStopsNotItself(t *testing.T) {
	rig := newSubRig(t, modeDanger, map[string][]subStep{
		"one": {subCalls("", "proc_stop", `{"id":"a-1"}`), subCalls("", "agent_run", `{"task":"two"}`), subSays("ok")},
		"two": {subCalls("", "proc_stop", `{"id":"a-1"}`), subSays("ok")},
	})
	if res, _ := rig.direct(t, "agent_run", `{"task":"one"}`); res.IsError {
		t.Fatal(res.Text)
	}
	for _, got := range []string{rig.subs.of("one")[1].Messages[2].Content, rig.subs.of("two")[1].Messages[2].Content} {
		if !strings.Contains(got, "an agent cannot stop itself") {
			t.Errorf("%q", got)
		}
	}
}

// An interrupt ends the agent that the turn waits for, and not the other; both histories are valid, and what another tai finds meanwhile too.
func TestAgentSubInterrupt(t *testing.T) {
	began, free := make(chan struct{}, 10), make(chan struct{})
	rig := newSubRig(t, modeDanger, map[string][]subStep{"front": {subCalls("", "echo", "{}"), subWaits(began, nil, chatReply{})}, "back": {subWaits(began, free, chatReply{Text: "ok", Stop: "stop"})}},
		agentWants(chatToolCall{"p1", "agent_run", `{"task":"back","background":true}`}, chatToolCall{"p2", "agent_run", `{"task":"front"}`}, chatToolCall{"p3", "echo", "{}"}), agentSays("on"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // ends with the turn
		_, err := rig.runTurn(ctx, "go")
		ended <- err
	}()
	<-began
	<-began
	dead := newAgent(agentConfig{Store: rig.box.vault, Tools: rig.box.toolbox, Sink: &randomSink{left: -1}}) // as after kill -9
	missing, err := dead.load(t.Context(), rig.session)
	if err != nil || len(missing) != 2 || missing[0].CallID != "p2" || missing[0].Content != chatUnknown {
		t.Errorf("%+v, %v", missing, err)
	}
	agentValid(t, dead.history)
	cancel()
	if err := <-ended; !errors.Is(err, errTurnInterrupted) {
		t.Errorf("%v", err)
	}
	agentValid(t, rig.history)
	if got := rig.history[3]; !strings.HasPrefix(got.Content, "a-2 interrupted after ") || !got.IsError || rig.history[4].Content != agentNotRun {
		t.Errorf("%+v, %+v", got, rig.history[4])
	}
	front := rig.await(t, "a-2")
	rows, err := rig.box.vault.messages(t.Context(), front.session)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := readHistory(rows); err != nil || len(h.Missing) > 0 || len(h.Messages) != 3 {
		t.Errorf("%+v, %v", h, err)
	}
	if back, _ := rig.host.find(nil, "a-1"); back.over() {
		t.Error("the one in the background has ended too")
	}
	close(free)
	if s := rig.await(t, "a-1"); s.state != subDone {
		t.Errorf("%+v", s.report())
	}
	if res, err := rig.runTurn(t.Context(), "and now?"); err != nil || res.Text != "on" {
		t.Errorf("%+v, %v", res, err)
	}
}

// A program gives a brief and gets the bare answer, or why there is none.
func TestAgentSubFork(t *testing.T) {
	rig := newSubRig(t, modeDanger, map[string][]subStep{"find": {subCalls("", "echo", "{}"), subSays(`{"command":"npx"}`)}, "long": slices.Repeat([]subStep{subCalls("", "echo", "{}")}, 9)})
	scope := agentScope{host: rig.host, box: func() (*toolbox, error) { return rig.box.toolbox, nil }}
	call := toolCall{ID: "c-7", Session: "s-x", Origin: "cli"}
	if got, err := scope.fork(t.Context(), call, "find", 5, "echo"); err != nil || got != `{"command":"npx"}` {
		t.Errorf("%q, %v", got, err)
	}
	if first := rig.subs.of("find")[0]; len(first.Tools) != 1 || !strings.Contains(first.System, "You have 5 steps") || !strings.Contains(first.System, "A program reads it") {
		t.Errorf("%+v", first)
	}
	if _, err := scope.fork(t.Context(), call, "long", 2, "echo"); err == nil || !strings.Contains(err.Error(), "bound of steps (2)") {
		t.Errorf("%v", err)
	}
	if _, err := scope.fork(t.Context(), call, "find", 2, "none"); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("%v", err)
	}
	if log := rig.box.subLog(t); !strings.HasPrefix(log[0], "#1 requested echo < turn") {
		t.Errorf("%q", log)
	}
}

// What is told of an agent is masked before it is cut, and never makes a second line.
func TestAgentSubLinesMasked(t *testing.T) {
	secret := "hush-hush-1"
	task := strings.Repeat("t", subTaskMax-5) + secret
	rig := newSubRig(t, modeDanger, map[string][]subStep{task: {subCalls(strings.Repeat("s", subSaidMax-5)+secret, "none", `{"a":"`+strings.Repeat("x", subLineMax-11)+secret+`",`+"\n"+`"b":1}`), subFails(errors.New("no more, " + secret))}},
		agentWants(chatToolCall{"p1", "agent_run", `{"task":"` + task + `","background":false}`}), agentSays("ok"))
	if _, err := rig.runTurn(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	s, _ := rig.host.find(nil, "a-1")
	r := s.report()
	all := append(slices.Clone(rig.sink.events), s.name(), s.closing(), r.Said, r.Error, r.Task)
	for _, text := range all {
		if strings.Contains(text, "hush") || strings.Contains(text, "notice") && strings.Contains(text, "\n") {
			t.Errorf("told %q", text)
		}
	}
	if !strings.Contains(strings.Join(all, " "), "notice a-1 · none ") || r.Error != "no more, [secret:TOKEN]" {
		t.Errorf("told %q", all)
	}
}
