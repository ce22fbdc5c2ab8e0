// This file is the agent: one linear history, kept in the vault, and the turn that goes back and forth between the model and the tools. It
// knows no tool's name, prints nothing (a turnSink does) and decides nothing (the toolbox does).
package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
)

const (
	agentMaxSteps = 50              // model replies in one turn, unless the run says otherwise
	agentKeepTime = 5 * time.Second // for writing down what an interrupted turn has come to
	agentMaxText  = 1 << 20         // bytes of one message of the person
	agentTitleMax = 80              // bytes of a session's title, which is how its first message begins
	agentWindow   = 128_000         // tokens that a model takes where nothing else is known
)

var (
	errEmptyAnswer     = errors.New("the model gave an empty answer")
	errStepBound       = errors.New("the turn has reached its bound of steps")
	errTokenBound      = errors.New("the turn has reached its bound of output tokens")
	errTimeBound       = errors.New("the turn has reached its bound of time")
	errTurnInterrupted = errors.New("interrupted")
)

// chatModel is who answers; chatClient, or a script in tests.
type chatModel interface {
	complete(ctx context.Context, r chatRequest, onDelta func(chatDelta)) (chatReply, error)
}

// agentStore keeps the history; the vault. appendMessages sets the Seq of each message.
type agentStore interface {
	createSession(ctx context.Context, s sessionInfo) (id string, err error)
	appendMessages(ctx context.Context, session string, messages []storedMessage) error
	messages(ctx context.Context, session string) ([]storedMessage, error)
}

// turnSink sees a turn as it happens: the REPL prints it, a one-shot run writes it as JSON lines. Calls never overlap. All text comes from the
// model, from tools or from peers and is not yet made safe for a screen. Of a call, started is told when its place in the history is
// on disk, finished when its result is.
type turnSink interface {
	textDelta(s string)
	toolStarted(c chatToolCall)
	toolFinished(c chatToolCall, r toolResult, took time.Duration)
	notice(s string)
}

// turnBounds end a turn that goes on for too long. Zero is no bound, but for Steps, where it is agentMaxSteps.
type turnBounds struct {
	Steps  int           // replies of the model
	Tokens int           // output tokens of all its replies together
	Time   time.Duration // of the whole turn, questions to the person included
}

// agentConfig is what an agent is made of. ToolLimit 0 is toolMaxOffered, Window 0 is agentWindow.
type agentConfig struct {
	Model           chatModel
	ModelName       string // for the account of what was spent
	Window          int    // tokens that the model takes
	Tools           *toolbox
	Store           agentStore
	Sink            turnSink
	Usage           func(ctx context.Context, session string, u chatUsage, took time.Duration) error // is told what each reply has cost; may be nil
	System          string
	Word            func() string // what stands behind the system text at the moment, "" for nothing; may be nil
	Profile, Origin string        // of its sessions and for the calls it makes
	Follows         bool          // its calls are made in the profile that the run has by then
	Root            string        // the workspace that its sessions belong to
	Parent          string        // the session of the agent that started it, "" for the person's own
	Call            string        // the call in the run log that started it; its own calls name it as their parent
	Depth           int           // how many agents stand above it
	Bounds          turnBounds
	ToolLimit       int
	Before          func(turnResult) error // is told before each request what the turn has come to, and may end it; may be nil
}

// agent holds one conversation and runs one turn at a time; its owner sees to that.
type agent struct {
	agentConfig
	session string // "" until the first message is kept
	history []chatMessage
	first   string          // what the person said first
	asked   string          // what the person said last
	summary string          // of what the history no longer holds
	called  []string        // tools called in what it no longer holds
	ids     map[string]bool // of calls
	turns   int
	ended   string          // how a turn without an answer came to its end
	keptOut map[string]bool // tools that do not fit the endpoint and were told of
	found   []string        // tools that the person named or calls have found, the last one last
	anew    bool            // a call has changed which tools there are
	refusal toolResult      // the last call, if all of the last reply were refused
	scale   float64         // tokens of the last request as the endpoint counts them, over the estimate; 0 before one
	spent   []agentSpent
	left    toolTurn  // what the turn has left for its calls
	below   toolSpent // what calls have spent and the turn's result does not hold yet

	keepMu sync.Mutex
	last   int  // the number of the last row that this agent knows of
	shared bool // another tai has written rows meanwhile

	sinkMu sync.Mutex
}

// agentSpent is what one model has cost.
type agentSpent struct {
	Model    string
	Requests int
	Usage    chatUsage
	Time     time.Duration
}

// turnResult is what a turn came to.
type turnResult struct {
	Text    string
	Session string
	Steps   int       // replies of the model
	Below   int       // replies to the sub-agents that it waited for
	Refused int       // calls that were refused
	Usage   chatUsage // of both
	given   int       // output tokens that sub-agents in the background may use
}

// output is what counts for the bound of output tokens.
func (r turnResult) output() int { return r.Usage.Output + r.given }

//go:noinline for size: it is called in many places
func newAgent(c agentConfig) *agent {
	a := &agent{keptOut: map[string]bool{}, ids: map[string]bool{}}
	a.configure(c)
	return a
}

// configure gives the agent what it is to work with from its next turn on. The conversation stays.
//
//go:noinline for size: it is called in many places
func (a *agent) configure(c agentConfig) {
	if c.Bounds.Steps <= 0 {
		c.Bounds.Steps = agentMaxSteps
	}
	if c.ToolLimit <= 0 {
		c.ToolLimit = toolMaxOffered
	}
	if c.Window <= 0 {
		c.Window = agentWindow
	}
	a.agentConfig = c
}

// resume goes on with a kept session, from its last compaction on. Calls without a result, as a killed tai leaves them, get one that says so; no
// tool is run again (F25).
func (a *agent) resume(ctx context.Context, session string) error {
	missing, err := a.load(ctx, spokenID(session))
	if err != nil || len(missing) == 0 {
		return err
	}
	return a.keep(ctx, missing)
}

// load reads a session. What is made up for calls without a result is given back and not kept.
func (a *agent) load(ctx context.Context, session string) (missing []chatMessage, err error) {
	rows, err := a.Store.messages(ctx, session)
	if err != nil {
		return nil, err
	}
	h, err := readHistory(rows)
	if err != nil {
		return nil, errorf("session %q: %w", session, err)
	}
	a.session, a.history, a.first, a.asked, a.summary, a.turns, a.last = session, h.Messages, h.First, h.Request, h.Summary, h.Turns, h.Last
	a.ended, a.shared, a.called = "tai ended before there was an answer", false, h.Called
	for _, id := range h.IDs {
		a.ids[id] = true
	}
	return h.Missing, nil
}

// runTurn takes what the person said to the model's final answer. On an error the history is valid all the same and the next turn goes on
// from it; Steps and Usage count what was spent. errTurnInterrupted, errEmptyAnswer and the three bounds are told apart from the model's faults.
func (a *agent) runTurn(ctx context.Context, text string) (res turnResult, err error) {
	if strings.TrimSpace(text) == "" || len(text) > agentMaxText {
		return res, errorf("a message has 1 to %d bytes, this one %d", agentMaxText, len(text))
	}
	if a.Bounds.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, a.Bounds.Time, errTimeBound)
		defer cancel()
	}
	if err := a.begin(ctx, text); err != nil {
		return res, err
	}
	res.Session = a.session
	defer func() {
		if err != nil {
			a.ended = clip(visibleLine(err.Error()), 200)
		}
	}()
	for tools := a.offer(ctx, text); ; tools = a.again(ctx, text, tools) {
		if err := a.bound(ctx, res); err != nil {
			return res, err
		}
		reply, err := a.ask(ctx, tools, &res)
		if err != nil {
			return res, a.cut(ctx, reply.Text, err)
		}
		if len(reply.Calls) == 0 {
			res.Text = reply.Text
			return res, a.answer(ctx, reply, res)
		}
		calls := a.fitCalls(reply.Calls)
		err = a.commit(ctx, chatMessage{Role: roleAssistant, Content: spokenText(reply.Text), Calls: calls})
		if err != nil {
			return res, err
		}
		a.allow(res)
		refused, err := a.runCalls(ctx, calls)
		res.Refused += refused
		res.add(a.below)
		if err != nil {
			return res, err
		}
	}
}

// allow works out what the turn has left for the calls of one reply.
func (a *agent) allow(res turnResult) {
	a.below = toolSpent{}
	a.left = toolTurn{Steps: a.Bounds.Steps - res.Steps - res.Below, Tokens: -1, Tell: a.notice}
	if a.Bounds.Tokens > 0 {
		a.left.Tokens = max(0, a.Bounds.Tokens-res.output())
	}
}

// charge takes what a call has spent from what the next ones may spend.
func (a *agent) charge(s toolSpent) {
	a.below = toolSpent{a.below.Usage.plus(s.Usage), a.below.Steps + s.Steps, a.below.Given + s.Given}
	a.left.Steps -= s.Steps
	if a.left.Tokens >= 0 {
		a.left.Tokens = max(0, a.left.Tokens-s.Usage.Output-s.Given)
	}
}

func (r *turnResult) add(s toolSpent) {
	r.Usage, r.Below, r.given = r.Usage.plus(s.Usage), r.Below+s.Steps, r.given+s.Given
}

// count tells what a reply has cost. One that failed before the endpoint said so has cost nothing that is known.
func (a *agent) count(ctx context.Context, u chatUsage, whole bool, took time.Duration) {
	if a.Usage == nil || !whole && u == (chatUsage{}) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), agentKeepTime)
	defer cancel()
	if err := a.Usage(ctx, a.session, u, took); err != nil {
		a.notice("what the reply has cost is not on record: " + err.Error())
	}
}

// spokenText is "" for a text that says nothing: endpoints refuse a blank one.
func spokenText(s string) string {
	if strings.TrimSpace(s) == "" {
		return ""
	}
	return s
}

// begin keeps the person's message, in a new session if there is none yet. Where the turn before has no answer, a word about that stands between,
// since some endpoints want the roles to take turns.
func (a *agent) begin(ctx context.Context, text string) error {
	if a.session == "" {
		id, err := a.Store.createSession(ctx, sessionInfo{Profile: a.Profile, Root: a.Root, Parent: a.Parent, Title: clip(summaryLine(text), agentTitleMax)})
		if err != nil {
			return err
		}
		a.session = id
	}
	var said []chatMessage
	if n := len(a.history); n > 0 && (a.history[n-1].Role != roleAssistant || len(a.history[n-1].Calls) > 0) {
		said = append(said, chatMessage{Role: roleAssistant, Content: "[No answer was given: " + a.ended + ".]"})
	}
	a.turns++
	if err := a.commit(ctx, append(said, chatMessage{Role: roleUser, Content: text})...); err != nil {
		return err
	}
	a.asked = text
	if a.first == "" {
		a.first = text
	}
	if a.shared {
		if _, err := a.load(ctx, a.session); err != nil {
			return err
		}
		a.notice("another tai went on with session " + a.session + "; what was said there belongs to this conversation now")
	}
	return nil
}

// bound says whether the turn is to end before another request.
func (a *agent) bound(ctx context.Context, res turnResult) error {
	switch {
	case ctx.Err() != nil:
		return turnEnd(ctx)
	case res.Steps >= a.Bounds.Steps:
		return errorf("%w (%d)", errStepBound, a.Bounds.Steps)
	case a.Bounds.Tokens > 0 && res.output() >= a.Bounds.Tokens:
		return errorf("%w (%d)", errTokenBound, a.Bounds.Tokens)
	case a.Before != nil:
		return a.Before(res)
	}
	return nil
}

// turnEnd tells the bound of time from an interrupt.
func turnEnd(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errTimeBound) {
		return errTimeBound
	}
	return errTurnInterrupted
}

// ask gets the next reply. A history that nears the model's window is made shorter before; one that the endpoint finds too long once more after.
func (a *agent) ask(ctx context.Context, tools []chatTool, res *turnResult) (chatReply, error) {
	if size := a.size(tools); size > a.Window*compactAt/100 {
		if err := a.compact(ctx, a.Window*compactKeep/100, a.Window, &res.Usage); err != nil && !errors.Is(err, errNothingToCompact) {
			return chatReply{}, err
		}
	}
	res.Steps++
	reply, err := a.request(ctx, tools, res)
	ce, ok := errors.AsType[*chatError](err)
	if !ok || ce.Fault != faultContext || reply.Text != "" {
		return reply, err
	}
	size := a.size(tools)
	if short := a.compact(ctx, size/5, size/2, &res.Usage); short != nil {
		if errors.Is(short, errNothingToCompact) {
			return reply, err
		}
		return reply, joinErrors(err, short)
	}
	return a.request(ctx, tools, res)
}

// request sends the history and counts what the reply cost. Where the endpoint says nothing of tokens, they are estimated.
func (a *agent) request(ctx context.Context, tools []chatTool, res *turnResult) (chatReply, error) {
	r := chatRequest{System: a.system(), Messages: a.history, Tools: tools}
	if a.Bounds.Tokens > 0 {
		r.MaxTokens = max(1, a.Bounds.Tokens-res.output())
	}
	estimate := a.estimate(tools)
	begin := time.Now()
	reply, err := a.Model.complete(ctx, r, a.delta)
	if err == nil && reply.Usage == (chatUsage{}) {
		reply.Usage.Output = replyTokens(reply)
	}
	if reply.Usage.Input > 0 && estimate > 0 {
		a.scale = min(max(float64(reply.Usage.Input)/float64(estimate), 0.3), 3)
	}
	a.spend(ctx, reply.Usage, err == nil, time.Since(begin))
	res.Usage = res.Usage.plus(reply.Usage)
	return reply, err
}

func (a *agent) system() string {
	if a.Word == nil {
		return a.System
	}
	return a.System + a.Word()
}

func (u chatUsage) plus(v chatUsage) chatUsage {
	return chatUsage{Input: u.Input + v.Input, Output: u.Output + v.Output, Cached: u.Cached + v.Cached}
}

// spend books one request.
func (a *agent) spend(ctx context.Context, u chatUsage, whole bool, took time.Duration) {
	a.count(ctx, u, whole, took)
	a.spent = addSpent(a.spent, agentSpent{a.ModelName, 1, u, took})
}

// addSpent adds to what the same model has cost.
//
//go:noinline for size: it is called in many places
func addSpent(list []agentSpent, more agentSpent) []agentSpent {
	for i := range list {
		if s := &list[i]; s.Model == more.Model {
			s.Requests, s.Usage, s.Time = s.Requests+more.Requests, s.Usage.plus(more.Usage), s.Time+more.Time
			return list
		}
	}
	return append(list, more)
}

// answer keeps the final answer.
func (a *agent) answer(ctx context.Context, reply chatReply, res turnResult) error {
	if spokenText(reply.Text) == "" {
		return errorf("%w (it stopped with %q)", errEmptyAnswer, clip(visibleLine(reply.Stop), 100))
	}
	if err := a.commit(ctx, chatMessage{Role: roleAssistant, Content: reply.Text}); err != nil {
		return err
	}
	switch {
	case reply.Stop == "length" && a.Bounds.Tokens > 0 && res.output() >= a.Bounds.Tokens:
		return errorf("%w (%d)", errTokenBound, a.Bounds.Tokens)
	case reply.Stop == "length":
		a.notice("the answer was cut at the most tokens the model gives")
	case reply.Stop == "content_filter":
		a.notice("the answer was cut by the endpoint's content filter")
	}
	return nil
}

// cut keeps the text that had come when a reply broke off, since it was shown, and gives the error to return.
func (a *agent) cut(ctx context.Context, text string, err error) error {
	if spokenText(text) != "" {
		if kept := a.commit(ctx, chatMessage{Role: roleAssistant, Content: text + "\n[cut off here]"}); kept != nil {
			return joinErrors(err, kept)
		}
	}
	if ctx.Err() != nil {
		return turnEnd(ctx)
	}
	return err
}

// commit keeps messages on disk and then makes them part of the history.
//
//go:noinline for size: it is called in many places
func (a *agent) commit(ctx context.Context, msgs ...chatMessage) error {
	if err := a.keep(ctx, msgs); err != nil {
		return err
	}
	a.history = append(a.history, msgs...)
	return nil
}

// keep writes messages to the store, also when the turn was interrupted, and gives each the number of its row.
func (a *agent) keep(ctx context.Context, msgs []chatMessage) error {
	rows := make([]storedMessage, len(msgs))
	for i, m := range msgs {
		s, err := toStored(m)
		if err != nil {
			return errorf("keep message: %w", err)
		}
		rows[i] = s
	}
	err := a.keepRows(ctx, rows)
	for i := range msgs {
		msgs[i].seq = rows[i].Seq
	}
	return err
}

func (a *agent) keepRows(ctx context.Context, rows []storedMessage) error {
	if len(rows) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), agentKeepTime)
	defer cancel()
	a.keepMu.Lock()
	defer a.keepMu.Unlock()
	if err := a.Store.appendMessages(ctx, a.session, rows); err != nil {
		return err
	}
	if a.last > 0 && rows[0].Seq != a.last+1 {
		a.shared = true
	}
	a.last = rows[len(rows)-1].Seq
	return nil
}

func (a *agent) sink(tell func(turnSink)) {
	a.sinkMu.Lock()
	defer a.sinkMu.Unlock()
	tell(a.Sink)
}

//go:noinline for size: it is called in many places
func (a *agent) notice(s string) { a.sink(func(t turnSink) { t.notice(s) }) }

func (a *agent) delta(d chatDelta) {
	if d.Text != "" {
		a.sink(func(s turnSink) { s.textDelta(d.Text) })
	}
	if d.Notice != "" {
		a.notice(d.Notice)
	}
}
