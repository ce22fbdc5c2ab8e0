// This file holds the two tools that tai --serve-mcp adds to the native ones: chat, a whole turn of an agent, and completions, one reply of the
// model. It owns the conversations under way: which served session has which, one turn at a time in each, and how many agents are kept.
// It knows no transport; what the agent's calls may do is the toolbox's.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	serveChats       = 64   // conversations kept in memory; of others the vault has all, and they can be taken up again
	serveChatSteps   = 200  // replies of the model in one served turn, however many were asked for
	serveCompletions = 1000 // messages in one call of completions
)

// errChatsFull says that every conversation that is kept has a turn under way.
var errChatsFull = fmt.Errorf("%d conversations have a turn under way, no more are begun until one ends", serveChats)

// serveChatConfig is what the two tools work with. Agent gives what an agent works with in its next turn, in that profile; Model only puts the
// model into it. Log takes single lines for the person who runs the server.
type serveChatConfig struct {
	Agent   func(ctx context.Context, profile string, sink turnSink) (agentConfig, error)
	Model   func(ctx context.Context, c *agentConfig, notice func(string)) error
	Vault   func(context.Context) (*vault, error)
	Log     func(string)
	Timeout time.Duration // of one turn
	Now     func() time.Time
}

// serveChat is safe for concurrent use.
type serveChat struct {
	cfg serveChatConfig

	mu    sync.Mutex
	seats map[string]*chatSeat // by key
	own   map[string]string    // of each served session the conversation that it began
}

// chatSeat is one conversation. Whoever holds turn, which has one slot, may use agent and profile; the lock of serveChat guards the rest.
type chatSeat struct {
	turn    chan struct{}
	agent   *agent // nil before its first turn here
	profile string

	key     string // session, or a name of its own before there is one
	session string // id of the kept session, "" before its first message
	served  string // the served session whose own it is, "" for none
	users   int    // calls that have or await the turn
	used    time.Time
}

func newServeChat(c serveChatConfig) *serveChat {
	return &serveChat{cfg: c, seats: map[string]*chatSeat{}, own: map[string]string{}}
}

// tools declares both. chat changes nothing by itself: each call of its turn is judged by itself, under the id of the chat call.
func (s *serveChat) tools() []tool {
	usage := `"usage":{"type":"object","description":"Tokens as the endpoint counts them.","properties":{"input":{"type":"integer"},"output":{"type":"integer"}}},
"record":{"type":"string","description":"Where the whole result is kept if it was too long."},
"size":{"type":"integer","description":"Bytes of the whole result."}}}`
	return []tool{{
		Name: "chat", Family: "chat",
		Description: "Say something to tai's own agent and get its answer, after it has used tai's tools and those of the MCP servers it knows. A conversation goes on from call to call; the result names its session.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["message"],"properties":{
"message":{"type":"string","minLength":1,"maxLength":%d,"description":"What to say."},
"session":{"type":"string","minLength":1,"maxLength":64,"description":"The conversation to go on with, as an earlier result named it (default: the one that this MCP session began, else a new one)."},
"profile":{"type":"string","minLength":1,"maxLength":64,"description":"The profile to work in from now on in this conversation (default: its own, else the server's)."},
"max_steps":{"type":"integer","description":"Replies of the model in this turn, brought within 1 to %d (default %d)."}}}`, agentMaxText, serveChatSteps, agentMaxSteps)),
		Output: json.RawMessage(`{"type":"object","properties":{
"text":{"type":"string","description":"The answer."},
"session":{"type":"string","description":"The conversation, to be given back as session."},
"steps":{"type":"integer","description":"Replies of the model."},
"refused":{"type":"integer","description":"Calls of tools that were refused."},
` + usage),
		Hints: toolHints{Destructive: true, Stateful: true},
		judge: func(toolCall) policyRequest { return policyRequest{} },
		run:   s.chat,
	}, {
		Name: "completions", Family: "chat",
		Description: "Send messages to the model that tai uses and get its one reply. No tools, no memory.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["messages"],"properties":{
"messages":{"type":"array","minItems":1,"maxItems":%d,"description":"The conversation so far, the oldest message first; at least one of them is no system message.","items":{"type":"object","additionalProperties":false,"required":["role","content"],"properties":{
"role":{"type":"string","enum":["system","user","assistant"]},"content":{"type":"string","minLength":1}}}}}}`, serveCompletions)),
		Output: json.RawMessage(`{"type":"object","properties":{
"text":{"type":"string","description":"The reply."},
"model":{"type":"string","description":"The model's name."},
"stop":{"type":"string","description":"Why it ended: stop, length, content_filter, or the endpoint's own word."},
` + usage),
		Hints: toolHints{ReadOnly: true},
		run:   s.complete,
	}}
}

// chat runs one turn. The wait for the turn before it counts towards its time.
func (s *serveChat) chat(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct {
		Message, Session, Profile string
		MaxSteps                  *json.Number `json:"max_steps"`
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, errTimeBound)
	defer cancel()
	seat, err := s.sit(c.Session, args.Session)
	if err != nil {
		return toolResult{}, err
	}
	defer s.rise(seat)
	select {
	case seat.turn <- struct{}{}:
		defer func() { <-seat.turn }()
	case <-ctx.Done():
		return toolResult{}, errorf("the turn before it in this conversation has not ended: %w", turnEnd(ctx))
	}
	if err := s.prepare(ctx, seat, c, args.Profile, chatSteps(args.MaxSteps)); err != nil {
		return servedFailure(err, ""), nil
	}
	res, err := seat.agent.runTurn(withProfile(ctx, seat.profile), args.Message)
	if err != nil {
		out := servedFailure(err, seat.agent.session)
		out.Structured = chatOutcome("", res)
		return out, nil
	}
	return toolResult{Text: res.Text, Structured: chatOutcome(res.Text, res), Notice: chatGoesOn(res.Session)}, nil
}

func chatGoesOn(session string) string {
	return "session " + session + ": give it as session to go on with this conversation"
}

// chatOutcome is the structured content of a turn.
func chatOutcome(text string, r turnResult) json.RawMessage {
	b := appendJSONString([]byte(`{"text":`), text)
	if r.Session != "" {
		b = appendJSONString(append(b, `,"session":`...), r.Session)
	}
	return fmt.Appendf(b, `,"steps":%d,"refused":%d,"usage":{"input":%d,"output":%d}}`, r.Steps, r.Refused, r.Usage.Input, r.Usage.Output)
}

// chatSteps is the bound that a call states; one out of range is brought within it (SRV-23).
func chatSteps(n *json.Number) int {
	if n == nil {
		return agentMaxSteps
	}
	f, _ := n.Float64() // what is out of range is infinite, and brought within as well
	return int(min(max(f, 1), serveChatSteps))
}

// servedFailure tells how a turn without an answer ended, and how to go on.
func servedFailure(err error, session string) toolResult {
	r := toolResult{Text: "chat: " + err.Error(), IsError: true}
	if session != "" {
		r.Hint = "the conversation is kept: call chat again with session " + session
	}
	fault, isChat := errors.AsType[*chatError](err)
	cli, isCLI := errors.AsType[*cliError](err)
	switch {
	case isChat:
		r.Text, r.Hint = "chat: "+fault.Message, cmp.Or(fault.Hint, r.Hint)
	case isCLI:
		r.Text, r.Hint = "chat: "+cli.Message, cmp.Or(cli.Hint, r.Hint)
	case errors.Is(err, errStepBound):
		r.Hint += "; max_steps sets the bound"
	}
	return r
}

// prepare makes the seat's agent ready for a turn; the caller holds the turn.
func (s *serveChat) prepare(ctx context.Context, seat *chatSeat, c toolCall, profile string, steps int) error {
	if err := s.chooseProfile(ctx, seat, profile, c.Profile); err != nil {
		return err
	}
	config, err := s.cfg.Agent(withProfile(ctx, seat.profile), seat.profile, chatSink{s.cfg.Log})
	if err != nil {
		return err
	}
	config.Call, config.Bounds = c.ID, turnBounds{Steps: steps}
	config.Store = chatStore{config.Store, func(id string) { s.began(seat, id) }}
	if seat.agent != nil {
		seat.agent.configure(config)
		return nil
	}
	a := newAgent(config)
	if seat.session != "" { // it does not change once it is set
		if err := a.resume(ctx, seat.session); errors.Is(err, errNotFound) {
			return &cliError{Message: "there is no session " + quoteClip(seat.session), Hint: "leave session out to begin a new conversation"}
		} else if err != nil {
			return err
		}
	}
	seat.agent = a
	return nil
}

// chooseProfile sets the profile of a conversation: the one asked for, which must be there, else its own, else that of the server.
func (s *serveChat) chooseProfile(ctx context.Context, seat *chatSeat, asked, served string) error {
	if asked == "" && seat.profile != "" {
		return nil
	}
	v, err := s.cfg.Vault(ctx)
	if err != nil {
		return err
	}
	kept := ""
	if asked == "" && seat.session != "" {
		if info, err := v.session(ctx, seat.session); err == nil { // one that is not there is told of by whoever takes it up
			kept = info.Profile
		}
	}
	list, err := v.profiles(ctx)
	if err != nil {
		return err
	}
	there := func(name string) bool {
		return slices.ContainsFunc(list, func(p profileInfo) bool { return p.Name == name })
	}
	switch {
	case asked != "" && !there(asked):
		return &cliError{Message: "there is no profile " + quoteClip(asked), Hint: "profile_list gives the names; leave profile out to work in the server's"}
	case asked != "":
		seat.profile = asked
	case there(kept):
		seat.profile = kept
	default:
		seat.profile = served
	}
	return nil
}

// sit takes a place at a conversation: the one named, else the one that the served session began, else a new one. The caller rises again.
func (s *serveChat) sit(served, session string) (*chatSeat, error) {
	if session != "" {
		session = spokenID(session)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	session = cmp.Or(session, s.own[served])
	key := cmp.Or(session, newChatKey(served))
	seat := s.seats[key]
	if seat == nil {
		if !s.makeRoom() {
			return nil, errChatsFull
		}
		seat = &chatSeat{turn: make(chan struct{}, 1), key: key, session: session}
		if session == "" {
			seat.served = served
		}
		s.seats[key] = seat
	}
	seat.users++
	return seat, nil
}

// newChatKey stands for the conversation that a served session is about to begin; no session has such an id.
func newChatKey(served string) string { return "new " + served }

// makeRoom lets go of the conversation that has been idle longest if no further one is to be kept; s.mu is held. False: none is idle.
func (s *serveChat) makeRoom() bool {
	if len(s.seats) < serveChats {
		return true
	}
	var idle *chatSeat
	for _, seat := range s.seats {
		if seat.users == 0 && (idle == nil || seat.used.Before(idle.used)) {
			idle = seat
		}
	}
	if idle == nil {
		return false
	}
	delete(s.seats, idle.key)
	return true
}

// rise leaves a conversation. One of which nothing is kept is forgotten when the last has left.
func (s *serveChat) rise(seat *chatSeat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seat.users--
	seat.used = s.cfg.Now()
	if seat.users == 0 && (seat.agent == nil || seat.session == "") {
		delete(s.seats, seat.key)
	}
}

// began notes the id that a new conversation has got.
func (s *serveChat) began(seat *chatSeat, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seats, seat.key)
	seat.key, seat.session = id, id
	s.seats[id] = seat
	if seat.served != "" {
		s.own[seat.served] = id
	}
}

// forget is told that a served session is no more. Its conversation is kept, and can be taken up by name.
func (s *serveChat) forget(served string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.own, served)
	if seat := s.seats[newChatKey(served)]; seat != nil {
		seat.served = ""
	}
}

// chatStore tells of the session that an agent begins.
type chatStore struct {
	agentStore
	created func(id string)
}

func (s chatStore) createSession(ctx context.Context, info sessionInfo) (string, error) {
	id, err := s.agentStore.createSession(ctx, info)
	if err == nil {
		s.created(id)
	}
	return id, err
}

// chatSink sees a served turn: the answer is the call's result and the calls are in the run log, so that notices alone are passed on.
type chatSink struct{ log func(string) }

func (chatSink) textDelta(string) {}

func (chatSink) toolStarted(chatToolCall) {}

func (chatSink) toolFinished(chatToolCall, toolResult, time.Duration) {}

func (s chatSink) notice(text string) { s.log(visibleLine(clip("chat: "+text, 500))) }

// complete asks the model for one reply.
func (s *serveChat) complete(ctx context.Context, c toolCall) (toolResult, error) {
	r, err := completionRequest(c.Args)
	if err != nil {
		return toolResult{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, errTimeBound)
	defer cancel()
	sink := chatSink{s.cfg.Log}
	var config agentConfig
	if err := s.cfg.Model(ctx, &config, sink.notice); err != nil {
		return completionFailure(err), nil
	}
	begin := s.cfg.Now()
	reply, err := config.Model.complete(ctx, r, func(d chatDelta) {
		if d.Notice != "" {
			sink.notice(d.Notice)
		}
	})
	if config.Usage != nil && (err == nil || reply.Usage != (chatUsage{})) {
		spent, done := context.WithTimeout(context.WithoutCancel(ctx), agentKeepTime)
		defer done()
		if kept := config.Usage(spent, "", reply.Usage, s.cfg.Now().Sub(begin)); kept != nil {
			sink.notice("what the reply has cost is not on record: " + kept.Error())
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return completionFailure(turnEnd(ctx)), nil
	case err != nil:
		return completionFailure(err), nil
	case spokenText(reply.Text) == "":
		return completionFailure(errorf("%w (it stopped with %q)", errEmptyAnswer, clip(visibleLine(reply.Stop), 100))), nil
	}
	b := appendJSONString([]byte(`{"text":`), reply.Text)
	b = appendJSONString(append(b, `,"model":`...), config.ModelName)
	b = appendJSONString(append(b, `,"stop":`...), reply.Stop)
	b = fmt.Appendf(b, `,"usage":{"input":%d,"output":%d}}`, reply.Usage.Input, reply.Usage.Output)
	return toolResult{Text: reply.Text, Structured: b}, nil
}

// completionRequest reads the messages of a call. System messages, wherever they stand, make up the system text.
func completionRequest(raw json.RawMessage) (r chatRequest, err error) {
	var args struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(raw, &args); err != nil {
		return r, errorf("read arguments: %w", err)
	}
	var system []string
	for _, m := range args.Messages {
		if m.Role == "system" {
			system = append(system, m.Content)
			continue
		}
		r.Messages = append(r.Messages, chatMessage{Role: chatRole(m.Role), Content: m.Content})
	}
	if len(r.Messages) == 0 {
		return r, newError(`property "messages": expected one message at least whose role is user or assistant`)
	}
	r.System = strings.Join(system, "\n\n")
	return r, nil
}

func completionFailure(err error) toolResult {
	r := servedFailure(err, "")
	r.Text = "completions" + strings.TrimPrefix(r.Text, "chat")
	return r
}
