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

// chatFixture serves chat and completions over a model that is a function.
type chatFixture struct {
	*serveFixture
	chat  *serveChat
	vault *vault

	mu       sync.Mutex
	requests []chatRequest
	spent    []chatUsage
	answer   func(ctx context.Context, r chatRequest) (chatReply, error)
}

func (f *chatFixture) complete(ctx context.Context, r chatRequest, onDelta func(chatDelta)) (chatReply, error) {
	f.mu.Lock()
	r.Messages = slices.Clone(r.Messages)
	f.requests = append(f.requests, r)
	f.mu.Unlock()
	onDelta(chatDelta{Notice: "a word about\nthe wait"})
	reply, err := f.answer(ctx, r)
	if err == nil {
		reply.Usage = chatUsage{Input: 10, Output: 2}
	}
	return reply, err
}

func (f *chatFixture) asked() []chatRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// chatEcho answers with what was said last.
func chatEcho(_ context.Context, r chatRequest) (chatReply, error) {
	return chatReply{Text: "you said " + r.Messages[len(r.Messages)-1].Content, Stop: stopEnd}, nil
}

func chatStart(t testing.TB, mode approvalMode, answer func(context.Context, chatRequest) (chatReply, error)) *chatFixture {
	t.Helper()
	f := &chatFixture{answer: answer}
	v, err := openVault(t.Context(), t.TempDir(), vaultWrite, time.Now, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.close() })
	f.vault = v
	vaultOf := func(context.Context) (*vault, error) { return v, nil }
	f.serveFixture = serveMake(t, mode, func(c *serveConfig) {
		own := c.Tools
		model := func(_ context.Context, a *agentConfig, notice func(string)) error {
			a.Model, a.ModelName = f, "m-1"
			a.Usage = func(_ context.Context, _ string, u chatUsage, _ time.Duration) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.spent = append(f.spent, u)
				return nil
			}
			return nil
		}
		f.chat = newServeChat(serveChatConfig{Vault: vaultOf, Model: model, Log: c.Log, Timeout: mcpChatTimeout, Now: time.Now,
			Agent: func(ctx context.Context, profile string, sink turnSink) (agentConfig, error) {
				a := agentConfig{Tools: own, Store: v, Sink: sink, Origin: originHTTP, Profile: profile, System: "sys " + profileOf(ctx)}
				return a, model(ctx, &a, sink.notice)
			}})
		box, err := newToolbox(slices.Concat(own.natives(), f.chat.tools()), own.policy, own.audit, vaultOf, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Tools, c.Profile, c.Ended, c.Log = box, "default", f.chat.forget, func(string) {}
	})
	f.chat.cfg.Log = func(line string) {
		if strings.Contains(line, "\n") {
			t.Errorf("logged in two lines: %q", line)
		}
	}
	f.serveHTTP(t)
	return f
}

// chatTurn is what a served turn gave.
type chatTurn struct {
	Text, Session string
	Steps         int
	Usage         turnUsage

	failed string // text of a turn that failed
	parts  int
}

// say is one call of chat. args are further members, such as `"max_steps":1`.
func (f *chatFixture) say(t testing.TB, session, message string, args ...string) chatTurn {
	t.Helper()
	r, err := f.trySay(context.Background(), session, message, args...)
	if err != nil {
		t.Fatal(err)
	}
	return chatRead(t, r)
}

func (f *chatFixture) trySay(ctx context.Context, session, message string, args ...string) (serveReply, error) {
	members := append([]string{`"message":` + string(appendJSONString(nil, message))}, args...)
	return f.try(ctx, "POST", serveCall("chat", "{"+strings.Join(members, ",")+"}"), session)
}

func chatRead(t testing.TB, r serveReply) (turn chatTurn) {
	t.Helper()
	text, res := servedResult(t, r.rpc)
	if len(res.Structured) > 0 {
		if err := json.Unmarshal(res.Structured, &turn); err != nil {
			t.Fatal(err)
		}
	}
	turn.parts = len(res.Content)
	switch {
	case res.IsError:
		turn.failed = text
	case text != turn.Text || turn.parts != 2 || !strings.Contains(string(res.Content[1]), turn.Session):
		t.Errorf("text %q, structured %s, content %s", text, res.Structured, res.Content)
	}
	return turn
}

// TestServeChatConversation: a served session has its own conversation, a handle goes on with any, and the model sees what was said in it alone.
func TestServeChatConversation(t *testing.T) {
	f := chatStart(t, modeDanger, chatEcho)
	a, b := f.open(t), f.open(t)
	first := f.say(t, a, "one")
	if first.Text != "you said one" || first.Session == "" || first.Steps != 1 || first.Usage != (turnUsage{10, 2}) {
		t.Errorf("%+v", first)
	}
	other := f.say(t, b, "alpha")
	second := f.say(t, a, "two")
	if other.Session == first.Session || second.Session != first.Session {
		t.Errorf("sessions %q, %q, %q", first.Session, other.Session, second.Session)
	}
	third := f.say(t, b, "three", `"session":`+fmt.Sprintf("%q", strings.ToUpper(first.Session)))
	if third.Session != first.Session {
		t.Errorf("taken up as %q", third.Session)
	}
	if again := f.say(t, b, "beta"); again.Session != other.Session { // a handle changes nothing about the session's own conversation
		t.Errorf("own conversation %q, want %q", again.Session, other.Session)
	}
	var said []string
	for _, m := range f.asked()[3].Messages {
		said = append(said, m.Content)
	}
	if want := []string{"one", "you said one", "two", "you said two", "three"}; !slices.Equal(said, want) {
		t.Errorf("the model was shown %q, want %q", said, want)
	}
	f.send(t, "DELETE", "", a)
	if len(f.chat.own) != 1 {
		t.Errorf("own conversations %v after the end of a session", f.chat.own)
	}
	c := f.open(t)
	if fourth := f.say(t, c, "four", `"session":"`+first.Session+`"`); fourth.Session != first.Session {
		t.Errorf("after the end of its session: %+v", fourth)
	}
	f.chat.seats = map[string]*chatSeat{} // as after a restart
	if fifth := f.say(t, c, "five", `"session":"`+first.Session+`"`); len(f.asked()[6].Messages) != 9 || fifth.failed != "" {
		t.Errorf("taken up from the vault: %+v, %d messages", fifth, len(f.asked()[6].Messages))
	}
}

// TestServeChatSRV15: in one conversation there is one turn at a time, whatever session or handle it comes by; conversations do not wait.
func TestServeChatSRV15(t *testing.T) {
	begun, release := make(chan string, 20), make(chan struct{}, 20)
	f := chatStart(t, modeDanger, func(_ context.Context, r chatRequest) (chatReply, error) {
		begun <- r.Messages[len(r.Messages)-1].Content
		<-release
		return chatEcho(nil, r)
	})
	a, b := f.open(t), f.open(t)
	replies := make(chan serveReply, 20)
	say := func(session, message string, args ...string) {
		go func() { // ends with its turn
			r, err := f.trySay(context.Background(), session, message, args...)
			if err != nil {
				t.Error(err)
			}
			replies <- r
		}()
	}
	say(a, "first")
	<-begun
	handle := ""
	f.chat.mu.Lock()
	for _, id := range f.chat.own {
		handle = id
	}
	f.chat.mu.Unlock()
	for i := range 5 {
		say(a, fmt.Sprint("own ", i))
		say(b, fmt.Sprint("handle ", i), `"session":"`+handle+`"`)
	}
	say(b, "elsewhere")
	if got := <-begun; got != "elsewhere" { // the ten others wait
		t.Errorf("%q runs beside the first turn of its conversation", got)
	}
	for range 12 {
		release <- struct{}{}
	}
	sessions := map[string]int{}
	for range 12 {
		sessions[chatRead(t, <-replies).Session]++
	}
	if sessions[handle] != 11 || len(sessions) != 2 {
		t.Errorf("turns by conversation: %v", sessions)
	}
	rows, err := f.vault.messages(t.Context(), handle)
	if err != nil || len(rows) != 22 {
		t.Fatalf("%d messages, %v", len(rows), err)
	}
	for i := 0; i < len(rows); i += 2 {
		if rows[i].Role != string(roleUser) || rows[i+1].Content != "you said "+rows[i].Content {
			t.Errorf("interleaved: %q, %q", rows[i].Content, rows[i+1].Content)
		}
	}
	if n := len(f.chat.seats); n != 2 {
		t.Errorf("%d conversations are kept", n)
	}
}

// TestServeChatSRV16W88F24: a turn that would take its whole 600 s keeps nobody waiting.
func TestServeChatSRV16W88F24(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	f := chatStart(t, modeDanger, func(ctx context.Context, r chatRequest) (chatReply, error) {
		if dl, ok := ctx.Deadline(); !ok || time.Until(dl) < 590*time.Second || mcpChatTimeout != 600*time.Second {
			t.Errorf("the turn has until %v", dl)
		}
		close(begun)
		<-release
		return chatEcho(ctx, r)
	})
	session := f.open(t)
	done := make(chan serveReply, 1)
	go func() { // ends when the turn is released
		r, err := f.trySay(context.Background(), session, "think long")
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	<-begun
	var longest time.Duration
	for _, s := range []string{session, f.open(t)} {
		for range 20 {
			for _, body := range []string{servePing, serveRequest("2", methodToolsList, `{}`), serveCall("echo", `{"text":"quick"}`)} {
				begin := time.Now()
				if r := f.send(t, "POST", body, s); r.status != 200 || r.rpc.Error != nil {
					t.Errorf("beside a long turn: %s", r.body)
				}
				longest = max(longest, time.Since(begin))
			}
		}
	}
	if longest > time.Second { // 100 ms on a quiet machine: testdata/serve/flood measures that
		t.Errorf("answered after %v", longest)
	}
	close(release)
	if turn := chatRead(t, <-done); turn.Text != "you said think long" {
		t.Errorf("%+v", turn)
	}
}

// TestServeChatSRV17F24: a client that goes away in a turn cancels nothing; the turn ends, and its conversation goes on.
func TestServeChatSRV17F24(t *testing.T) {
	begun, release := make(chan struct{}, 2), make(chan struct{})
	f := chatStart(t, modeDanger, func(ctx context.Context, r chatRequest) (chatReply, error) {
		begun <- struct{}{}
		<-release
		if ctx.Err() != nil {
			t.Errorf("the turn was cancelled: %v", context.Cause(ctx))
		}
		return chatEcho(ctx, r)
	})
	session := f.open(t)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() { // ends when the client leaves
		defer close(gone)
		if _, err := f.trySay(ctx, session, "first"); err == nil {
			t.Error("answered")
		}
	}()
	<-begun
	leave()
	<-gone
	close(release)
	if turn := f.say(t, session, "second"); turn.failed != "" { // it waits for the first
		t.Errorf("%+v", turn)
	}
	if msgs := f.asked()[1].Messages; len(msgs) != 3 || msgs[1].Content != "you said first" {
		t.Errorf("the model was shown %+v", msgs)
	}
	if got := f.auditEvents(t); strings.Count(got, "tool_call_completed chat") != 2 {
		t.Errorf("run log:\n%s", got)
	}
}

// A cancelled turn ends unanswered and its conversation goes on; a turn over its time says so; so does one that waited for it.
func TestServeChatEnds(t *testing.T) {
	begun := make(chan struct{}, 5)
	f := chatStart(t, modeDanger, func(ctx context.Context, r chatRequest) (chatReply, error) {
		if m := r.Messages[len(r.Messages)-1].Content; m != "stall" {
			return chatEcho(ctx, r)
		}
		begun <- struct{}{}
		<-ctx.Done()
		return chatReply{}, fmt.Errorf("model reply: %w", context.Cause(ctx))
	})
	session := f.open(t)
	f.say(t, session, "hello")
	done := make(chan serveReply, 1)
	go func() { // ends with the cancel
		r, err := f.trySay(context.Background(), session, "stall")
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	<-begun
	f.send(t, "POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, session)
	if r := <-done; r.status != 202 || r.body != "" {
		t.Errorf("a cancelled turn was answered: %d %s", r.status, r.body)
	}
	turn := f.say(t, session, "again")
	if msgs := f.asked()[2].Messages; turn.failed != "" || !strings.Contains(msgs[len(msgs)-2].Content, "interrupted") {
		t.Errorf("%+v after %+v", turn, msgs)
	}
	f.chat.cfg.Timeout = 30 * time.Millisecond
	over := f.say(t, session, "stall")
	if !strings.Contains(over.failed, errTimeBound.Error()) || !strings.Contains(over.failed, "session "+turn.Session) || over.Session != turn.Session {
		t.Errorf("over its time: %+v", over)
	}
	seat := f.chat.seats[turn.Session]
	seat.turn <- struct{}{}
	if waited := f.say(t, session, "hello?"); !strings.Contains(waited.failed, "the turn before it") {
		t.Errorf("%+v", waited)
	}
	<-seat.turn
	if n := seat.users; n != 0 {
		t.Errorf("%d calls are still at the conversation", n)
	}
}

// TestServeChatSRV23: what is out of range is brought within it, what is wrong is a failure that names it, and neither reaches the model.
func TestServeChatSRV23(t *testing.T) {
	calls := 0
	f := chatStart(t, modeDanger, func(ctx context.Context, r chatRequest) (chatReply, error) {
		calls++
		return chatReply{Calls: []chatToolCall{{ID: fmt.Sprint("c", calls), Name: "count", Args: "{}"}}, Stop: stopCalls}, nil
	})
	session := f.open(t)
	for steps, want := range map[string]int{"-1": 1, "0": 1, "2": 2, "1e0": 1, "-7.0": 1} {
		turn := f.say(t, session, "go", `"max_steps":`+steps)
		if turn.Steps != want || !strings.Contains(turn.failed, errStepBound.Error()) || !strings.Contains(turn.failed, "max_steps") {
			t.Errorf("max_steps %s: %+v", steps, turn)
		}
	}
	for n, want := range map[string]int{"1e9": serveChatSteps, "1e400": serveChatSteps, "200": serveChatSteps, "-5": 1} {
		if got := chatSteps((*json.Number)(&n)); got != want {
			t.Errorf("max_steps %s is %d, want %d", n, got, want)
		}
	}
	if got := chatSteps(nil); got != agentMaxSteps {
		t.Errorf("no max_steps is %d", got)
	}
	before := len(f.asked())
	for _, tc := range []struct{ tool, args, text string }{
		{"chat", `{}`, `"message"`}, {"chat", `{"message":""}`, `"message"`}, {"chat", `{"message":7}`, `"message"`}, {"chat", `{"message":"x","max_steps":1.5}`, `"max_steps"`}, {"chat", `{"message":"x","max_steps":"9"}`, `"max_steps"`},
		{"chat", `{"message":"x","model":"m"}`, "model"}, {"chat", `{"message":"x","session":"s-none"}`, "no session"}, {"chat", `{"message":"x","session":""}`, `"session"`}, {"chat", `{"message":"x","profile":"nobody"}`, "no profile"},
		{"chat", `{"message":"  "}`, "message"}, {"chat", `{"message":"` + strings.Repeat("x", agentMaxText+1) + `"}`, `"message"`}, {"chat", `{"message":"` + strings.Repeat("é", agentMaxText/2+1) + `"}`, "bytes"},
		{"completions", `{}`, `"messages"`}, {"completions", `{"messages":[]}`, `"messages"`}, {"completions", `{"messages":"hi"}`, `"messages"`},
		{"completions", `{"messages":[{"role":"tool","content":"x"}]}`, "role"}, {"completions", `{"messages":[{"role":"User","content":"x"}]}`, "role"}, {"completions", `{"messages":[{"role":"user"}]}`, "content"},
		{"completions", `{"messages":[{"role":"user","content":""}]}`, "content"}, {"completions", `{"messages":[{"role":"user","content":"x","name":"y"}]}`, "name"}, {"completions", `{"messages":[{"role":"system","content":"x"}]}`, `"messages"`},
		{"completions", `{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"x"},`, 10_000), ",") + `]}`, "1000"},
		{"completions", `{"messages":[{"role":"user","content":"x"}],"tools":[]}`, "tools"},
	} {
		r := f.send(t, "POST", serveCall(tc.tool, tc.args), session)
		text, res := servedResult(t, r.rpc)
		if !res.IsError || !strings.Contains(text, tc.text) || !strings.HasPrefix(text, tc.tool) {
			t.Errorf("%s %.80s: %.300s, want a failure with %s", tc.tool, tc.args, text, tc.text)
		}
	}
	if n := len(f.asked()); n != before {
		t.Errorf("%d requests reached the model", n-before)
	}
	for key, seat := range f.chat.seats {
		if seat.session == "" || seat.users != 0 {
			t.Errorf("seat %q is kept: %+v", key, seat)
		}
	}
}

// A turn without a model, and one whose model fails, are failures of the tool that say what to do.
func TestServeChatNoModel(t *testing.T) {
	f := chatStart(t, modeDanger, func(context.Context, chatRequest) (chatReply, error) {
		return chatReply{}, &chatError{Fault: faultKey, Message: "the key is refused", Hint: "set another key"}
	})
	session := f.open(t)
	for _, tool := range []string{"chat", "completions"} {
		args := map[string]string{"chat": `{"message":"x"}`, "completions": `{"messages":[{"role":"user","content":"x"}]}`}[tool]
		if text, res := servedResult(t, f.send(t, "POST", serveCall(tool, args), session).rpc); !res.IsError || text != tool+": the key is refused\nhint: set another key" {
			t.Errorf("%s: %q", tool, text)
		}
	}
	f.answer = func(context.Context, chatRequest) (chatReply, error) {
		return chatReply{Text: " \n", Stop: stopEnd}, nil
	}
	for tool, args := range map[string]string{"chat": `{"message":"x"}`, "completions": `{"messages":[{"role":"user","content":"x"}]}`} {
		if text, res := servedResult(t, f.send(t, "POST", serveCall(tool, args), session).rpc); !res.IsError || !strings.Contains(text, errEmptyAnswer.Error()) {
			t.Errorf("%s: %q", tool, text)
		}
	}
	none := func(context.Context, *agentConfig, func(string)) error { return modelFailure(errNoModel) }
	f.chat.cfg.Model = none
	f.chat.cfg.Agent = func(context.Context, string, turnSink) (agentConfig, error) {
		return agentConfig{}, none(nil, nil, nil)
	}
	for tool, args := range map[string]string{"chat": `{"message":"x"}`, "completions": `{"messages":[{"role":"user","content":"x"}]}`} {
		if text, res := servedResult(t, f.send(t, "POST", serveCall(tool, args), session).rpc); !res.IsError || !strings.Contains(text, "ANTHROPIC_API_KEY") || !strings.Contains(text, "hint: ") {
			t.Errorf("%s: %q", tool, text)
		}
	}
}

// A turn is judged call by call, its own as one that reads; each call of it names the served call as its parent.
func TestServeChatPolicyAndAudit(t *testing.T) {
	for _, mode := range []approvalMode{modeReadOnly, modePrompt, modeAllow, modeDanger} {
		f := chatStart(t, mode, func(_ context.Context, r chatRequest) (chatReply, error) {
			if len(r.Messages) > 1 {
				return chatEcho(nil, r)
			}
			return chatReply{Calls: []chatToolCall{{ID: "a", Name: "deed", Args: "{}"}, {ID: "b", Name: "ask_user", Args: `{"question":"?"}`}, {ID: "c", Name: "chat", Args: `{"message":"x"}`}}, Stop: stopCalls}, nil
		})
		turn := f.say(t, f.open(t), "do it")
		runs := mode == modeAllow || mode == modeDanger
		if turn.failed != "" || (f.deeds.Load() == 1) != runs {
			t.Errorf("%s: %+v, %d deeds", mode, turn, f.deeds.Load())
		}
		results := f.asked()[1].Messages[2:]
		if !strings.Contains(results[1].Content, toolRulePerson) || !strings.Contains(results[2].Content, "unknown tool") { // a turn begins no turn
			t.Errorf("%s: %+v", mode, results)
		}
		f.auditEvents(t)
		rows := auditRows(t, f.audit.path())
		for _, r := range rows {
			if want := map[string]string{"deed": "c-1", "ask_user": "c-1"}[r.Subject]; r.Parent != want {
				t.Errorf("%s: %s %s of %s has parent %q, want %q", mode, r.Event, r.Subject, r.Call, r.Parent, want)
			}
		}
		if rows[1].Subject != "chat" || rows[1].Call != "c-1" {
			t.Errorf("%s: first call %+v", mode, rows[1])
		}
	}
	f := chatStart(t, modeDanger, chatEcho)
	f.server.core.tools.policy = newPolicy(policyConfig{Mode: modeDanger, Presets: []preset{{ID: "p-1", Effect: "deny", Tool: "chat"}}})
	r, err := f.trySay(t.Context(), f.open(t), "x")
	if err != nil {
		t.Fatal(err)
	}
	servedDenied(t, r.rpc, ruleDeny+"p-1")
}

// TestServeChatForgotten: a served session that ends before its first conversation has begun leaves nothing of it behind.
func TestServeChatForgotten(t *testing.T) {
	c := newServeChat(serveChatConfig{Now: time.Now})
	seat, err := c.sit("s-1", "")
	if err != nil {
		t.Fatal(err)
	}
	c.forget("s-1")
	c.began(seat, "c-1")
	c.rise(seat)
	if len(c.own) != 0 {
		t.Errorf("own = %v", c.own)
	}
	if next, err := c.sit("s-1", ""); err != nil || next == seat {
		t.Errorf("another session of that name goes on with it: %v", err)
	}
}

// Conversations in memory are bounded: the longest idle one goes and is taken up again from the vault; where all are at work one more is refused.
func TestServeChatBounded(t *testing.T) {
	begun, release := make(chan struct{}, serveChats), make(chan struct{})
	f := chatStart(t, modeDanger, func(ctx context.Context, r chatRequest) (chatReply, error) {
		if r.Messages[len(r.Messages)-1].Content == "stall" {
			begun <- struct{}{}
			<-release
		}
		return chatEcho(ctx, r)
	})
	sessions, oldest := make([]string, serveChats+1), ""
	for i := range sessions {
		sessions[i] = f.open(t)
		turn := f.say(t, sessions[i], fmt.Sprint("hello ", i))
		if i == 0 {
			oldest = turn.Session
		}
	}
	if n := len(f.chat.seats); n != serveChats || f.chat.seats[oldest] != nil {
		t.Errorf("%d conversations are kept, want %d without the one that was idle longest", n, serveChats)
	}
	f.say(t, sessions[0], "still there?") // it was let go
	if msgs := f.asked()[serveChats+1].Messages; len(msgs) != 3 || msgs[0].Content != "hello 0" {
		t.Errorf("taken up again with %+v", msgs)
	}
	var wg sync.WaitGroup
	for i := range serveChats {
		wg.Go(func() { // ends when it is released
			if _, err := f.trySay(context.Background(), sessions[i], "stall"); err != nil {
				t.Error(err)
			}
		})
	}
	for range serveChats {
		<-begun
	}
	if turn := f.say(t, sessions[serveChats], "one more"); !strings.Contains(turn.failed, errChatsFull.Error()) {
		t.Errorf("%+v", turn)
	}
	close(release)
	wg.Wait()
	if turn := f.say(t, sessions[serveChats], "one more"); turn.failed != "" {
		t.Errorf("%+v", turn)
	}
}

// A conversation keeps its profile: the one asked for from then on, else the one that it was begun in, else the server's.
func TestServeChatProfile(t *testing.T) {
	f := chatStart(t, modeDanger, chatEcho)
	if err := f.vault.createProfile(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	a := f.open(t)
	first := f.say(t, a, "one")
	f.say(t, a, "two", `"profile":"work"`)
	f.say(t, a, "three")
	b := f.open(t)
	other := f.say(t, b, "four", `"profile":"work"`)
	f.chat.seats = map[string]*chatSeat{}
	f.say(t, b, "five", `"session":"`+other.Session+`"`)
	f.say(t, b, "six", `"session":"`+first.Session+`"`)
	var got []string
	for _, r := range f.asked() {
		got = append(got, strings.TrimPrefix(r.System, "sys "))
	}
	if want := []string{"default", "work", "work", "work", "work", "default"}; !slices.Equal(got, want) {
		t.Errorf("profiles %q, want %q", got, want)
	}
}

// completions gives the model's one reply to just these messages, without tools, and books what it cost.
func TestServeCompletions(t *testing.T) {
	f := chatStart(t, modeReadOnly, chatEcho)
	session := f.open(t)
	r := f.send(t, "POST", serveCall("completions", `{"messages":[{"role":"system","content":"be"},{"role":"user","content":"hi"},{"role":"assistant","content":"ho"},{"role":"system","content":"short"},{"role":"user","content":"hi again"}]}`), session)
	text, res := servedResult(t, r.rpc)
	if want := `{"text":"you said hi again","model":"m-1","stop":"stop","usage":{"input":10,"output":2}}`; text != "you said hi again" || string(res.Structured) != want || len(res.Content) != 1 {
		t.Errorf("%s", r.body)
	}
	got := f.asked()[0]
	if got.System != "be\n\nshort" || len(got.Tools) != 0 || len(got.Messages) != 3 || got.Messages[1].Role != roleAssistant {
		t.Errorf("the model was asked %+v", got)
	}
	if len(f.spent) != 1 || f.spent[0].Input != 10 {
		t.Errorf("booked %+v", f.spent)
	}
	if _, total, err := f.vault.sessions(t.Context(), sessionQuery{}); err != nil || total != 0 {
		t.Errorf("%d sessions are kept, %v", total, err)
	}
	f.chat.cfg.Timeout = 10 * time.Millisecond
	f.answer = func(ctx context.Context, _ chatRequest) (chatReply, error) {
		<-ctx.Done()
		return chatReply{}, errors.New("gone")
	}
	if text, res := servedResult(t, f.send(t, "POST", serveCall("completions", `{"messages":[{"role":"user","content":"hi"}]}`), session).rpc); !res.IsError || !strings.Contains(text, errTimeBound.Error()) {
		t.Errorf("over its time: %s", text)
	}
}

// Text over the cap is kept as a record; the session is named all the same.
func TestServeChatSpills(t *testing.T) {
	f := chatStart(t, modeDanger, func(context.Context, chatRequest) (chatReply, error) {
		return chatReply{Text: strings.Repeat("long ", mcpResultMax/4), Stop: stopEnd}, nil
	})
	r, err := f.trySay(t.Context(), f.open(t), "x")
	if err != nil {
		t.Fatal(err)
	}
	text, res := servedResult(t, r.rpc)
	var spilled struct {
		Record string
		Size   int
	}
	if err := json.Unmarshal(res.Structured, &spilled); err != nil || spilled.Size != mcpResultMax/4*5 || !strings.Contains(text, spilled.Record) || len(text) > mcpResultMax || len(res.Content) != 2 {
		t.Errorf("%.200s, %s, %v", text, res.Structured, err)
	}
}
