// This file owns the sub-agents of one tai: it starts each with a history and bounds of its own, keeps what it does and what it came to, and ends
// all of them with tai. What they may call is given to it; it knows no tool by name, prints nothing and asks nobody.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	subSteps    = 20               // replies of the model, unless the call says otherwise
	subTokens   = 64_000           // output tokens of all its replies together
	subTime     = 10 * time.Minute // of the whole, questions to the person included
	subDepth    = 2                // agents one below the other
	subMax      = 4                // at a time
	subKept     = 16               // ended ones that are remembered
	subStopTime = 5 * time.Second  // for one whose context has ended to be gone
	subSaidMax  = 8 << 10          // bytes of what one said last that are told where it has no answer
	subTaskMax  = 60               // bytes of its task in its name
	subLineMax  = 160              // bytes of what a line about it quotes
)

// The states of a sub-agent.
const (
	subRunning     = "running"
	subDone        = "done"
	subFailed      = "failed"
	subStopped     = "stopped"     // by somebody, or with tai
	subInterrupted = "interrupted" // with the turn that it was started in
)

// subNoParent stands in a session for the one that started it where a call outside a conversation did.
const subNoParent = "-"

var (
	errSubStopped = errors.New("it was stopped")
	errSubClosing = errors.New("tai is ending")
)

// subConfig is what the sub-agents of a run have in common.
type subConfig struct {
	// Open gives the model, the store, the system text and the rest that does not depend on the task.
	Open     func(ctx context.Context) (agentConfig, error)
	Tell     func(line string)    // a line for the person about one that runs in the background
	Asking   func(id string) bool // it waits for an answer of the person; may be nil
	Attended func() bool          // a person can be asked for one in the background; nil is no
	Redact   func(string) string  // takes known secrets out of what is cut
	Now      func() time.Time
}

// subOrder is a sub-agent to start. Call is the call that wants it, Turn of it included; Box makes its tools.
type subOrder struct {
	Call       toolCall
	Parent     *subAgent // nil for the conversation itself
	Task       string
	Profile    string // "" is that of the call
	Steps      int    // 0 is subSteps
	Background bool
	Brief      bool // the task is a strict brief: the answer is read by a program
	Box        func(*subAgent) *toolbox
}

// agentHost is safe for concurrent use.
type agentHost struct {
	cfg subConfig

	mu     sync.Mutex
	list   []*subAgent // oldest first
	last   int         // the number of the newest id
	closed bool
	spent  map[string][]agentSpent // by the session of the conversation that they belong to
}

// subAgent is one sub-agent. What stands above mu is set before anybody sees it.
type subAgent struct {
	host       *agentHost
	id, task   string
	parent     *subAgent
	talk       string // session of the conversation that it belongs to
	background bool   // nobody waits for it, or for one above it
	bounds     turnBounds
	started    time.Time
	tell       func(string) // shows a line in the turn that waits for it; nil in the background
	cancel     context.CancelCauseFunc
	done       chan struct{} // closed when it has ended; state and what it came to stand by then

	mu      sync.Mutex
	asked   bool // somebody wants it to end
	state   string
	doing   string // the tool that runs
	session string
	steps   int
	deeper  int // steps of those that it waited for
	refused int // of its calls
	usage   chatUsage
	said    string // what the model said last
	answer  string
	fault   string
	ended   time.Time
}

// subReport is how a sub-agent is, for results.
type subReport struct {
	ID         string    `json:"id"`
	State      string    `json:"state"`
	Task       string    `json:"task"`
	Session    string    `json:"session,omitempty"`
	Parent     string    `json:"parent,omitempty"`
	Background bool      `json:"background"`
	Steps      int       `json:"steps"`
	MaxSteps   int       `json:"max_steps"`
	Refused    int       `json:"refused"` // of its calls
	Usage      subUsage  `json:"usage"`
	Doing      string    `json:"doing,omitempty"`
	Answer     string    `json:"answer,omitempty"`
	Error      string    `json:"error,omitempty"`
	Said       string    `json:"said,omitempty"`
	Started    time.Time `json:"started"`
	Ran        int64     `json:"ran_ms"`
}

type subUsage struct {
	Input  int `json:"input"`
	Output int `json:"output"`
}

func newAgentHost(c subConfig) *agentHost {
	if c.Redact == nil {
		c.Redact = func(s string) string { return s }
	}
	return &agentHost{cfg: c, spent: map[string][]agentSpent{}}
}

// attended reports whether questions of agents in the background reach a person.
func (h *agentHost) attended() bool { return h.cfg.Attended != nil && h.cfg.Attended() }

// depth is how many agents stand above it and itself.
func (s *subAgent) depth() int {
	n := 0
	for ; s != nil; s = s.parent {
		n++
	}
	return n
}

// below reports whether s is other or was started by it, at whatever distance.
func (s *subAgent) below(other *subAgent) bool {
	for ; s != nil; s = s.parent {
		if s == other {
			return true
		}
	}
	return other == nil
}

// name is how questions name it.
func (s *subAgent) name() string {
	return fmt.Sprintf("agent %s (%s)", s.id, strconv.Quote(clip(summaryLine(s.host.cfg.Redact(s.task)), subTaskMax)))
}

// start starts a sub-agent. One in the background is under way when it returns, another has ended by then, with ctx at the latest. given are the
// output tokens that one in the background may use of a turn that counts them. An error means that nothing was started.
func (h *agentHost) start(ctx context.Context, o subOrder) (s *subAgent, given int, err error) {
	bounds, err := subBounds(ctx, o)
	if err != nil {
		return nil, 0, err
	}
	c, err := h.cfg.Open(ctx)
	if err != nil {
		return nil, 0, err
	}
	s = &subAgent{host: h, task: o.Task, parent: o.Parent, background: o.Background || o.Parent != nil && o.Parent.background,
		bounds: bounds, started: h.cfg.Now(), done: make(chan struct{}), state: subRunning}
	s.talk = o.Call.Session
	if o.Parent != nil {
		s.talk = o.Parent.talk
	}
	if !s.background && o.Call.Turn != nil {
		s.tell = o.Call.Turn.Tell
	}
	if o.Background {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, s.cancel = context.WithCancelCause(ctx)
	if err := h.enter(s); err != nil {
		s.cancel(nil)
		return nil, 0, err
	}
	ctx = withAsker(ctx, askerInfo{s.id, s.name(), s.background})
	s.configure(&c, o)
	if !o.Background {
		s.run(ctx, c)
		return s, 0, nil
	}
	if o.Call.Turn != nil && o.Call.Turn.Tokens >= 0 {
		given = bounds.Tokens
	}
	go s.run(ctx, c) // ends with its turn, which bounds hold; close cancels it and waits
	return s, given, nil
}

// subBounds are those of a sub-agent: its own, and never more than the turn has left that it belongs to. One in the background gets half of the
// output tokens, so that the turn can go on beside it.
func subBounds(ctx context.Context, o subOrder) (turnBounds, error) {
	b := turnBounds{Steps: cmp.Or(o.Steps, subSteps), Tokens: subTokens, Time: subTime}
	if turn := o.Call.Turn; turn != nil {
		b.Steps = min(b.Steps, turn.Steps)
		if left := turn.Tokens; left >= 0 {
			if o.Background {
				left /= 2
			}
			b.Tokens = min(b.Tokens, left)
		}
	}
	if until, ok := ctx.Deadline(); ok {
		b.Time = min(b.Time, time.Until(until))
	}
	switch {
	case b.Steps < 1:
		return b, newError("the turn has no steps left for an agent")
	case b.Tokens < 1:
		return b, newError("the turn has no output tokens left for an agent")
	case b.Time <= 0:
		return b, newError("the turn has no time left for an agent")
	}
	return b, nil
}

// enter gives a sub-agent its id and its place in the list, if there is room.
func (h *agentHost) enter(s *subAgent) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	running := 0
	for _, other := range h.list {
		if !other.over() {
			running++
		}
	}
	switch {
	case h.closed:
		return errSubClosing
	case s.depth() > subDepth:
		return errorf("agents may stand %d deep, this one would be the next", subDepth)
	case running >= subMax:
		return errorf("%d agents are running, at most %d may", running, subMax)
	}
	h.last++
	s.id = "a-" + strconv.Itoa(h.last)
	h.list = append(h.list, s)
	over := len(h.list) - running - 1 - subKept
	h.list = slices.DeleteFunc(h.list, func(other *subAgent) bool {
		drop := over > 0 && other.over()
		if drop {
			over--
		}
		return drop
	})
	return nil
}

// configure makes the configuration of the agent that does the work.
func (s *subAgent) configure(c *agentConfig, o subOrder) {
	c.Tools, c.Sink, c.Before = o.Box(s), &subSink{s: s}, s.before
	c.Parent, c.Call, c.Depth = cmp.Or(o.Call.Session, subNoParent), o.Call.ID, s.depth()
	c.Origin, c.Profile, c.Bounds = o.Call.Origin, cmp.Or(o.Profile, o.Call.Profile, c.Profile), s.bounds
	usage := c.Usage
	model := c.ModelName
	c.Usage = func(ctx context.Context, session string, u chatUsage, took time.Duration) error {
		s.host.spend(s.talk, agentSpent{model, 1, u, took})
		if usage == nil {
			return nil
		}
		return usage(ctx, session, u, took)
	}
	c.System += fmt.Sprintf("\n\nYou are %s, started by another agent for one task. Do this task and nothing else; you see nothing of the conversation it comes from. "+
		"You have %s. Your last message is your answer, and all that the other agent gets of your work: say what you found or did, and what is left.", s.id, plural(s.bounds.Steps, "step"))
	if o.Brief {
		c.System += " A program reads it: give exactly what is asked for, without a word around it."
	}
}

// run takes the task to its end.
func (s *subAgent) run(ctx context.Context, c agentConfig) {
	defer close(s.done)
	defer s.cancel(nil)
	defer func() {
		if p := recover(); p != nil {
			s.finish(turnResult{}, errorf("a fault in tai itself: %v", p), nil)
		}
	}()
	res, err := newAgent(c).runTurn(ctx, s.task)
	s.finish(res, err, context.Cause(ctx))
}

// before is told what the turn has come to before each request, and ends it when somebody has asked for that.
func (s *subAgent) before(res turnResult) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.steps, s.deeper, s.refused, s.usage, s.doing = res.Session, res.Steps, res.Below, res.Refused, res.Usage, ""
	if s.asked {
		return errSubStopped
	}
	return nil
}

// finish puts down what it came to. cause says why its context ended, nil if it did not.
func (s *subAgent) finish(res turnResult, err, cause error) {
	s.mu.Lock()
	if res.Session != "" { // else nothing came of it, or tai itself fell over
		s.steps, s.deeper, s.refused, s.usage, s.session = res.Steps, res.Below, res.Refused, res.Usage, res.Session
	}
	s.doing, s.ended = "", s.host.cfg.Now()
	switch {
	case err == nil:
		s.state, s.answer = subDone, res.Text
	case s.asked || errors.Is(cause, errSubStopped) || errors.Is(cause, errSubClosing):
		s.state, s.fault = subStopped, errSubStopped.Error()
		if errors.Is(cause, errSubClosing) {
			s.fault = "tai ended before it was done"
		}
	case errors.Is(err, errTurnInterrupted) || errors.Is(err, context.Canceled):
		s.state, s.fault = subInterrupted, "the turn that it belongs to was interrupted"
	default:
		s.state, s.fault = subFailed, err.Error()
	}
	s.mu.Unlock()
	if s.background && (s.parent == nil || !s.parent.background) {
		s.host.cfg.Tell(s.closing())
	}
}

// closing is the line about one that ran in the background.
func (s *subAgent) closing() string {
	r := s.report()
	rest := cmp.Or(summaryLine(r.Answer), r.Error)
	return fmt.Sprintf("%s %s: %s", s.name(), r.account(), brief(visibleLine(rest), subLineMax))
}

// over reports whether it has ended.
func (s *subAgent) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// report says how it is.
func (s *subAgent) report() subReport {
	asking := s.host.cfg.Asking != nil && s.host.cfg.Asking(s.id)
	redact := s.host.cfg.Redact
	s.mu.Lock()
	defer s.mu.Unlock()
	r := subReport{ID: s.id, State: s.state, Task: clip(redact(s.task), subSaidMax), Session: s.session, Background: s.background, Steps: s.steps, MaxSteps: s.bounds.Steps, Refused: s.refused,
		Usage: subUsage{s.usage.Input, s.usage.Output}, Answer: redact(s.answer), Error: redact(s.fault), Started: s.started.UTC()}
	if s.parent != nil {
		r.Parent = s.parent.id
	}
	if r.State != subRunning {
		r.Ran = s.ended.Sub(s.started).Milliseconds()
		if r.State != subDone {
			r.Said = clip(redact(s.said), subSaidMax)
		}
		return r
	}
	r.Ran, r.Doing = s.host.cfg.Now().Sub(s.started).Milliseconds(), cmp.Or(s.doing, "waits for the model")
	if asking {
		r.Doing = "waits for an answer of the person"
	}
	return r
}

// spent is what it took of the turn that waited for it.
func (s *subAgent) spent() toolSpent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return toolSpent{Usage: s.usage, Steps: s.steps + s.deeper}
}

// account is one clause about how far it got.
func (r subReport) account() string {
	ran := (time.Duration(r.Ran) * time.Millisecond).Round(100 * time.Millisecond)
	refused := ""
	if r.Refused > 0 {
		refused = ", " + plural(r.Refused, "call") + " refused"
	}
	if r.State == subRunning {
		return fmt.Sprintf("running for %s, %d of %s done%s, %s", ran, r.Steps, plural(r.MaxSteps, "step"), refused, visibleLine(r.Doing))
	}
	return fmt.Sprintf("%s after %s, %s%s, %d tokens in, %d out", r.State, ran, plural(r.Steps, "step"), refused, r.Usage.Input, r.Usage.Output)
}

// find gives the sub-agent with that id, if it is one below top; nil is the conversation, below which all are.
//
//go:noinline for size: it is called in many places
func (h *agentHost) find(top *subAgent, id string) (*subAgent, bool) {
	for _, s := range h.all(top) {
		if s.id == id {
			return s, true
		}
	}
	return nil, false
}

// all gives those below top, oldest first.
func (h *agentHost) all(top *subAgent) []*subAgent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.list), func(s *subAgent) bool { return s == top || !s.below(top) })
}

// background gives all sub-agents as work beside the processes (part of procSource).
func (h *agentHost) background() []procInfo {
	out := []procInfo{}
	for _, s := range h.all(nil) {
		out = append(out, s.info())
	}
	return out
}

func (s *subAgent) info() procInfo {
	r := s.report()
	i := procInfo{ID: r.ID, What: "agent", Command: r.Task, State: procRunning, Status: fmt.Sprintf("%d of %s done, %s", r.Steps, plural(r.MaxSteps, "step"), r.Doing), Started: r.Started, Ran: r.Ran, Bytes: int64(len(r.Answer))}
	switch r.State {
	case subRunning:
	case subStopped:
		i.State, i.Status = procStopped, r.Error
	default:
		i.State, i.Status = procExited, strings.TrimSuffix(r.State+": "+r.Error, ": ")
	}
	return i
}

// stopBackground asks a sub-agent to end before its next request, and cancels it after grace or when ctx ends (part of procSource). It waits until
// the agent has ended. No agent ends itself or one that waits for it.
func (h *agentHost) stopBackground(ctx context.Context, id string, grace time.Duration) (procInfo, bool, error) {
	s, ok := h.find(nil, id)
	if !ok {
		return procInfo{}, false, nil
	}
	if who, ok := h.find(nil, askerOf(ctx).ID); ok && who.below(s) {
		return s.info(), true, newError("an agent cannot stop itself or the one that it works for")
	}
	if s.over() {
		return s.info(), true, nil
	}
	s.mu.Lock()
	s.asked = true
	s.mu.Unlock()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-s.done:
		return s.info(), true, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	s.cancel(errSubStopped)
	if !waitFor(subStopTime, s.done) {
		return s.info(), true, errorf("it was still there after %s", subStopTime)
	}
	return s.info(), true, nil
}

// close cancels all sub-agents and waits until they have ended.
func (h *agentHost) close() error {
	h.mu.Lock()
	h.closed = true
	list := slices.Clone(h.list)
	h.mu.Unlock()
	var ends []<-chan struct{}
	for _, s := range list {
		s.cancel(errSubClosing)
		ends = append(ends, s.done)
	}
	if !waitFor(subStopTime, ends...) {
		return errorf("end agents: they were still there after %s", subStopTime)
	}
	return nil
}

// spend books what one request of a sub-agent has cost its conversation.
func (h *agentHost) spend(session string, s agentSpent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spent[session] = addSpent(h.spent[session], s)
}

// spentBelow gives what the sub-agents of a conversation have cost, by model.
func (h *agentHost) spentBelow(session string) []agentSpent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.spent[session])
}

// subSink follows a sub-agent: what it does is told to the turn that waits for it, on a line each.
type subSink struct {
	s    *subAgent
	text strings.Builder // of the reply under way
}

func (k *subSink) textDelta(text string) {
	if k.text.Len() < 2*subSaidMax { // more than is told, so that no secret is cut where it would not be known
		k.text.WriteString(text)
	}
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	if said := k.text.String(); spokenText(said) != "" {
		k.s.said = said
	}
}

//go:noinline for size: it is called in many places
func (k *subSink) tell(line string) {
	if k.s.tell != nil {
		k.s.tell(k.s.id + " · " + line)
	}
}

func (k *subSink) toolStarted(c chatToolCall) {
	k.text.Reset()
	k.s.mu.Lock()
	k.s.doing = "runs " + c.Name
	k.s.mu.Unlock()
	k.tell(visibleLine(c.Name) + " " + clip(visibleLine(k.s.host.cfg.Redact(c.Args)), subLineMax))
}

func (k *subSink) toolFinished(c chatToolCall, r toolResult, _ time.Duration) {
	switch {
	case r.Rule != "":
		k.tell(visibleLine(c.Name) + " refused (" + r.Rule + ")")
	case r.IsError:
		k.tell(visibleLine(c.Name) + " failed")
	}
	if r.Notice != "" {
		k.tell(visibleLine(c.Name) + ": " + brief(visibleLine(k.s.host.cfg.Redact(r.Notice)), subLineMax))
	}
}

func (k *subSink) notice(text string) {
	if k.s.tell == nil {
		k.s.host.cfg.Tell(k.s.name() + ": " + brief(visibleLine(k.s.host.cfg.Redact(text)), subLineMax))
		return
	}
	k.tell(text)
}
