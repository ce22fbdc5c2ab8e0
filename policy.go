// This file is the policy door: every call, native or bridged, is decided here and nowhere else, by one table. It owns the
// modes' meaning, the order of the rules, session grants and who is asked; it runs nothing, stores nothing and draws
// nothing. Pins, trust and a server's own lists are checked by the bridge before, with rules of their own.
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
)

// The rules a decision can name. They are stable: audit lines, errors and scripts carry them. A preset's rule is followed
// by its id, a mode's by the mode.
const (
	ruleReading    = "reading"
	ruleMode       = "mode "
	ruleAllow      = "allow preset "
	ruleDeny       = "deny preset "
	ruleDigest     = "digest"
	ruleSession    = "session grant"
	ruleYes        = "--yes"
	ruleConsent    = "consent"
	ruleRefused    = "person said no"
	ruleNobody     = "nobody to ask"
	ruleOutside    = "outside the root"
	ruleUnparsable = "unparsable command"
	ruleHost       = "new host"
	ruleAddress    = "address"
	ruleArguments  = "arguments"
	ruleToolSet    = "tool set"     // of a sub-agent: it was not given the tool
	ruleUnknown    = "unknown tool" // of a forecast alone
	ruleApproved   = "not approved beforehand"
	rulePresets    = "policy file"
)

const (
	shownArgsMax = 4 << 10 // bytes of arguments up to which a shown line quotes them
	shownLineMax = 200     // bytes of them in the line
)

// policyRequest is one call to decide. Tool is the digest name: a native tool's, or mcp:SERVER/TOOL. Digest is computed from
// Tool and Args when it is empty; a caller that gives it must run exactly the value it was made from.
type policyRequest struct {
	Tool        string
	Title       string // the question in tai's words, "" for a plain call
	Server      string // of a bridged tool
	Destructive bool
	Args        json.RawMessage
	Digest      string
	Pin         string        // hash of the granted definition of a bridged tool
	Lines       []consentLine // what is shown; nil: the arguments
	Danger      []string
	Command     string // the text a shell would run, for the tools that do
	Dir         string // the folder it starts in, absolute; "" is the root
	Exact       bool   // a session grant covers only the same arguments
	Person      bool   // the person's own words: tai mcp call, tai tools call, /call
	Agreed      bool   // a person was shown this very question and said yes
	Always      bool   // asks even for a person's words: the argv or URL of add, login, remove, grant
	Outside     bool   // touches a path outside the root
	Net         netTouch
	Approved    bool   // runs only where an allow preset or a digest covers it, whatever the mode
	exact       string // exactDigest of Digest, filled in when it is judged
	Yes         string // the flag that answers it, for the hint; "" is --yes for a person's command, else --auto
}

// decision is the answer. Rule says which rule decided, Reason is one clause for a person or a model, Hint the flag, digest or
// command that would allow just this. Shown: the mode wants one line about it on the screen.
type decision struct {
	Allow  bool
	Rule   string
	Reason string
	Hint   string
	Shown  bool
}

// refusal is the one line for a refused call (R12): rule, reason, and what to do.
func (d decision) refusal() string {
	s := "refused by policy (" + d.Rule + "): " + d.Reason
	if d.Hint != "" {
		s += "; " + d.Hint
	}
	return s
}

// prompter asks a person. It returns only answers that the consent offers, choiceOpen excepted, which it handles itself.
type prompter interface {
	confirm(ctx context.Context, c consent) (consentAnswer, error)
}

// policyConfig is what a policy is made of; Mode and ModeGiven can change later. ModeGiven: the mode was stated (--permission-mode), so that a person's own words
// obey it where it is narrower than allow. Digests are TOOL:SHA256 (checkScoped). Show gets the line of a decision that is
// Shown, Redact takes known secrets out of what is asked and shown; SavePreset stores an allow preset and returns it with
// its id; Fresh gives the presets anew where they have changed, and with an error every call is refused. Prompter, Show, Redact, SavePreset and
// Fresh may be nil.
type policyConfig struct {
	Mode       approvalMode
	ModeGiven  bool
	Prompter   prompter
	Yes        bool
	Digests    []string
	ScopedFlag bool // this front door takes --approve-scoped, so a hint may name it
	Presets    []preset
	Root       string
	Show       func(ctx context.Context, line string)
	Redact     func(string) string
	SavePreset func(ctx context.Context, ps preset) (preset, error)
	Fresh      func() (presets []preset, changed bool, err error)

	// Turn waits until a question may be put, and gives the context to ask in and what ends it; errNobodyAsked where it never may. nil: one
	// after the other.
	Turn func(ctx context.Context) (context.Context, func(), error)
}

// policy decides calls. It is safe for concurrent use; one question is asked at a time.
type policy struct {
	cfg     policyConfig
	digests map[string]bool
	asking  chan struct{} // one slot

	mu      sync.Mutex
	presets []preset
	grants  map[policyGrant]bool
	hosts   map[string]bool // that a person said yes to for this session
	before  *policyStance   // while a plan is wanted: what is in force again after a yes to it; cfg.Mode and cfg.ModeGiven are guarded too
}

// policyStance is a mode, and whether it was stated.
type policyStance struct {
	mode  approvalMode
	given bool
}

// policyGrant is the scope of a "yes for this session": one tool in one definition, and its arguments unless digest is "". Of a tool that goes to the network it is
// for one host and the secrets that go there.
type policyGrant struct{ tool, pin, digest, host, secrets string }

func newPolicy(c policyConfig) *policy {
	p := &policy{cfg: c, digests: map[string]bool{}, asking: make(chan struct{}, 1), presets: slices.Clone(c.Presets), grants: map[policyGrant]bool{}, hosts: map[string]bool{}}
	for _, d := range c.Digests {
		p.digests[d] = true
	}
	return p
}

// mode is the mode in force.
func (p *policy) mode() approvalMode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cfg.Mode
}

// planning reports that a plan is wanted before anything is changed. The mode is read-only then.
func (p *policy) planning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.before != nil
}

// setMode puts another mode in force, as a person has stated it. No plan is wanted then.
func (p *policy) setMode(m approvalMode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cfg.Mode, p.cfg.ModeGiven, p.before = m, true, nil
}

// startPlan narrows the mode to read-only until endPlan brings back the one before, or setMode another.
func (p *policy) startPlan() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.before == nil {
		p.before = &policyStance{p.cfg.Mode, p.cfg.ModeGiven}
		p.cfg.Mode, p.cfg.ModeGiven = modeReadOnly, true
	}
}

// afterPlan is the mode that endPlan would bring back; false where no plan is wanted.
func (p *policy) afterPlan() (approvalMode, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.before == nil {
		return p.cfg.Mode, false
	}
	return p.before.mode, true
}

// endPlan brings back the mode from before startPlan.
func (p *policy) endPlan() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.before != nil {
		p.cfg.Mode, p.cfg.ModeGiven, p.before = p.before.mode, p.before.given, nil
	}
}

// approve decides one call and asks where the table says so. An error means that the question failed or ctx ended; the call
// is refused then too.
func (p *policy) approve(ctx context.Context, r policyRequest) (decision, error) {
	d, ask := p.judge(&r)
	if ask != "" {
		var err error
		if d, err = p.ask(ctx, r, d); err != nil {
			return d, err
		}
	}
	if d.Allow && d.Shown && p.cfg.Show != nil {
		line := p.shownLine(r)
		if who := askerOf(ctx).Name; who != "" {
			line = p.redact(visibleLine(who)) + " " + line
		}
		p.cfg.Show(ctx, line)
	}
	return d, nil
}

// The outcomes of a policyForecast.
const (
	forecastAllow = "allow"
	forecastAsk   = "ask"
	forecastDeny  = "deny"
)

// policyForecast is what would happen to a call, without asking and without running it. Tool is its digest name.
type policyForecast struct {
	Tool     string `json:"tool"`
	Decision string `json:"decision"` // one of the outcomes
	Rule     string `json:"rule"`
	Reason   string `json:"reason,omitempty"`
	Hint     string `json:"hint,omitempty"`
	Digest   string `json:"digest,omitempty"`
	Mode     string `json:"mode"`
}

// foresee judges a call as approve would, and stops where a person would be asked.
func (p *policy) foresee(r policyRequest) policyForecast {
	d, ask := p.judge(&r)
	mode := string(p.mode())
	f := policyForecast{Tool: r.Tool, Decision: forecastDeny, Rule: d.Rule, Reason: d.Reason, Hint: d.Hint, Digest: r.Digest, Mode: mode}
	switch {
	case d.Allow:
		f.Decision = forecastAllow
	case ask != "" && p.cfg.Prompter != nil:
		f.Decision, f.Rule, f.Reason, f.Hint = forecastAsk, ruleMode+mode, ask, ""
	}
	return f
}

// refuse is the forecast for a call that is turned away before the table is asked.
//
//go:noinline for size: it is called in many places
func (p *policy) refuse(tool, digest, rule, reason, hint string) policyForecast {
	return policyForecast{Tool: tool, Decision: forecastDeny, Rule: rule, Reason: reason, Hint: hint, Digest: digest, Mode: string(p.mode())}
}

// judge is the table. It asks nobody: a non-empty ask is why a person must be asked, and the decision is then the refusal that
// holds if nobody can be. It fills r.Digest.
func (p *policy) judge(r *policyRequest) (d decision, ask string) {
	if r.Digest == "" {
		digest, err := payloadDigest(r.Tool, r.Args)
		if err != nil {
			return decision{Rule: ruleArguments, Reason: err.Error()}, ""
		}
		r.Digest = digest
	}
	r.exact = exactDigest(r.Digest, r.Args)
	call := presetCall{Tool: r.Tool, Pin: r.Pin, Command: r.Command, Root: p.cfg.Root, Args: r.Args}
	if r.Command != "" {
		call.Shell = classifyShell(r.Command, shellScope{Root: p.cfg.Root, Dir: r.Dir})
		if out := call.Shell.Outside; out != "" && !r.Outside {
			r.Outside = true
			r.Danger = append(slices.Clone(r.Danger), "the command names a path outside the workspace root: "+visibleLine(out))
		}
	}
	unparsable := r.Command != "" && !call.Shell.Parsable
	plain := call
	plain.Args = r.Net.plainArgs(call.Args)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.refresh(); err != nil {
		return decision{Rule: rulePresets, Reason: "what this workspace denies can no longer be read: " + visibleLine(err.Error()), Hint: "mend or remove the file; tai approval list shows it"}, ""
	}
	for _, ps := range p.presets {
		if ps.denies(call) || ps.denies(plain) {
			return decision{Rule: ruleDeny + ps.ID, Reason: "this workspace denies " + visibleLine(r.Tool), Hint: "only removing " + visibleLine(ps.ID) + " from .tai/approvals.json lifts it"}, ""
		}
	}
	if r.Approved && p.cfg.Mode != modeReadOnly && !p.approvedBefore(r, call) {
		return decision{Rule: ruleApproved, Reason: "whatever the mode, a tool of another server runs here only where a person has approved the call beforehand", Hint: p.hint(r, false)}, ""
	}
	mode := p.modeFor(r, unparsable)
	if d, refused := refuseNet(r.Net, mode, p.hosts[r.Net.Host]); refused {
		if p.before != nil && d.Rule == ruleHost {
			d.Hint = p.planHint()
		} else if r.Net.Reach <= reachLoopback {
			d.Hint = p.unasked(r, d.Hint)
		}
		return d, ""
	}
	switch mode {
	case modeDanger:
		return allowed(ruleMode+string(modeDanger), false), ""
	case modeReadOnly:
		return p.judgeReadOnly(r), ""
	case modeAllow:
		return p.judgeAllow(r, unparsable), ""
	case modePrompt:
		return p.judgePrompt(r, call, unparsable)
	default: // never made by parseMode: in doubt, no
		return decision{Rule: ruleMode + string(mode), Reason: "this mode is not known"}, ""
	}
}

// refresh takes presets that were changed by another tai; p.mu is held.
func (p *policy) refresh() error {
	if p.cfg.Fresh == nil {
		return nil
	}
	presets, changed, err := p.cfg.Fresh()
	if changed && err == nil {
		p.presets = presets
	}
	return err
}

// approvedBefore says whether an allow preset or a digest covers the call; p.mu is held.
func (p *policy) approvedBefore(r *policyRequest, call presetCall) bool {
	return p.digests[r.Tool+":"+r.exact] || slices.ContainsFunc(p.presets, func(ps preset) bool { return ps.allows(call) })
}

// refuseNet is the refusal of a mode that neither runs nor asks; ok is false where there is none. Its hint names the wider mode alone.
func refuseNet(n netTouch, mode approvalMode, known bool) (d decision, ok bool) {
	switch {
	case n.Host == "" || mode == modeDanger:
		return decision{}, false
	case n.Reach > reachLoopback:
		return decision{Rule: ruleAddress, Reason: visibleLine(n.Host) + " is " + n.Reach.String(), Hint: "only --yolo goes there"}, true
	case n.Reach == reachLoopback && mode == modeAllow:
		return decision{Rule: ruleAddress, Reason: visibleLine(n.Host) + " is " + n.Reach.String(), Hint: "--yolo would run it"}, true
	case n.Reach == reachLoopback && mode == modeReadOnly && !known:
		return decision{Rule: ruleHost, Reason: "mode read-only goes to no host that is new to this session", Hint: "--yolo would run it"}, true
	case mode == modeReadOnly && (!known || len(n.Secrets) > 0):
		return decision{Rule: ruleHost, Reason: "mode read-only goes to no host that is new to this session", Hint: "--auto would run it"}, true
	}
	return decision{}, false
}

func allowed(rule string, shown bool) decision {
	return decision{Allow: true, Rule: rule, Shown: shown}
}

// modeFor is the mode in which the request is judged: a person's own words run as in allow, unless a narrower mode was stated,
// or the matter is one where allow itself is no answer but a person can be asked.
func (p *policy) modeFor(r *policyRequest, unparsable bool) approvalMode {
	if r.Person && !r.Always && !r.Outside && !unparsable && r.Net.Reach == reachPublic && !p.cfg.ModeGiven && p.cfg.Mode.rank() < modeAllow.rank() {
		return modeAllow
	}
	return p.cfg.Mode
}

func (p *policy) judgeReadOnly(r *policyRequest) decision {
	switch {
	case r.Outside:
		d := decision{Rule: ruleOutside, Reason: "mode read-only reads nothing outside the root", Hint: "another --root, or --permission-mode prompt to be asked"}
		if p.cfg.ScopedFlag { // nobody would be
			d.Hint = "another --root, or --yolo"
		}
		return d
	case r.Destructive || r.Always:
		d := decision{Rule: ruleMode + string(modeReadOnly), Reason: visibleLine(r.Tool) + " may change something", Hint: p.unasked(r, "--auto would run it")}
		if p.before != nil {
			d.Hint = p.planHint()
		}
		return d
	}
	return allowed(ruleReading, false)
}

// planHint is the way out while a plan is wanted; p.mu is held.
func (p *policy) planHint() string {
	return "a plan is wanted first: plan_submit shows it to the person, whose yes brings back mode " + string(p.before.mode)
}

func (p *policy) judgeAllow(r *policyRequest, unparsable bool) decision {
	switch {
	case r.Outside:
		return decision{Rule: ruleOutside, Reason: "mode allow stays inside the root", Hint: "another --root, or --yolo"}
	case unparsable && !p.digests[r.Tool+":"+r.exact]:
		return decision{Rule: ruleUnparsable, Reason: "the command cannot be split into its parts", Hint: "write it more plainly, or --yolo"}
	}
	return allowed(ruleMode+string(modeAllow), !r.Person)
}

// judgePrompt is the column of the default mode; p.mu is held.
func (p *policy) judgePrompt(r *policyRequest, call presetCall, unparsable bool) (decision, string) {
	ask, net := "", r.Net.asks(p.hosts[r.Net.Host])
	switch {
	case !r.Destructive && !r.Always && !r.Outside && net == "":
		return allowed(ruleReading, false), ""
	case !r.Outside && p.digests[r.Tool+":"+r.exact]:
		return allowed(ruleDigest, false), ""
	case r.Always:
		ask = "this is always asked about"
	case r.Outside:
		ask = "it touches a path outside the root"
	case unparsable:
		ask = "the command cannot be split into its parts"
	default:
		ask = cmp.Or(net, "mode prompt asks before anything that may change something")
		for _, ps := range p.presets {
			if ps.allows(call) && r.Net.presetsCount() {
				return allowed(ruleAllow+ps.ID, false), ""
			}
		}
	}
	exact := r.grant()
	exact.digest = r.exact
	if !r.Always && (p.grants[r.grant()] || p.grants[exact]) {
		return allowed(ruleSession, false), ""
	}
	if r.Agreed {
		return allowed(ruleConsent, false), ""
	}
	if p.cfg.Yes && (r.Always || r.Person) {
		return allowed(ruleYes, false), ""
	}
	return decision{Rule: ruleNobody, Reason: ask + ", and nobody can be asked here", Hint: p.hint(r, unparsable)}, ask
}

// hint names what would allow just this request without a person.
func (p *policy) hint(r *policyRequest, unparsable bool) string {
	switch {
	case r.Yes != "":
		return r.Yes + " would allow it"
	case r.Person:
		return "--yes would allow it"
	case r.Outside:
		return "another --root, or --yolo"
	case p.cfg.ScopedFlag && r.exact != r.Digest:
		return "a number in it is beyond 2^53, so that its digest is not its own; tai approval grant writes a preset"
	case p.cfg.ScopedFlag:
		return p.scoped(r) + " would allow just this call" + presetHint(r, unparsable)
	case unparsable:
		return "write it more plainly, or --yolo"
	}
	return "--auto would allow it (and whatever else is asked)" + presetHint(r, unparsable)
}

// presetHint goes on with the preset that would do, "" where none would.
func presetHint(r *policyRequest, unparsable bool) string {
	if r.Always || unparsable || !r.Net.presetsCount() {
		return ""
	}
	return "; tai approval grant writes a preset for more"
}

// scoped is the flag that approves just this call.
func (p *policy) scoped(r *policyRequest) string {
	return "--approve-scoped " + quoteWord(r.Tool+":"+r.Digest)
}

// unasked is the way out of a mode that asks nobody into one that asks, or, where nobody sits who could be asked, lets just this call through.
func (p *policy) unasked(r *policyRequest, wider string) string {
	if p.cfg.ScopedFlag {
		return "--permission-mode prompt with " + p.scoped(r) + " would allow just this call, " + wider
	}
	return "--permission-mode prompt would ask, " + wider
}

// grant is the scope that a "yes for this session" to r has. It covers other arguments only of a tool whose definition is
// known and whose arguments are no program of their own.
func (r *policyRequest) grant() policyGrant {
	g := policyGrant{tool: r.Tool, pin: r.Pin, host: r.Net.Host, secrets: r.Net.secrets()}
	if r.Exact || r.Outside || r.Command != "" || (r.Server != "" && r.Pin == "") {
		g.digest = r.exact
	}
	return g
}

// ask puts the question, one at a time; while it waited, another answer may have settled it. refuse is the decision where
// nobody can be asked.
func (p *policy) ask(ctx context.Context, r policyRequest, refuse decision) (decision, error) {
	if p.cfg.Prompter == nil {
		return refuse, nil
	}
	turn := p.cfg.Turn
	if turn == nil {
		turn = p.oneByOne
	}
	ctx, done, err := turn(ctx)
	switch {
	case errors.Is(err, errNobodyAsked):
		return refuse, nil
	case err != nil:
		return decision{Rule: ruleRefused, Reason: "interrupted before an answer"}, err
	}
	defer done()
	d, why := p.judge(&r)
	if why == "" {
		return d, nil
	}
	c, err := p.consentFor(r, why)
	if err != nil {
		return decision{Rule: ruleArguments, Reason: err.Error()}, nil
	}
	c.Asker = p.redact(askerOf(ctx).Name)
	answer, err := p.cfg.Prompter.confirm(ctx, c)
	if err != nil {
		return decision{Rule: ruleRefused, Reason: "there was no answer"}, errorf("ask about %s: %w", r.Tool, err)
	}
	if !slices.ContainsFunc(c.Choices, func(ch consentChoice) bool { return ch.Key == answer.Key }) {
		return decision{Rule: ruleRefused, Reason: "the answer was none of those offered"}, nil
	}
	return p.settle(ctx, r, answer), nil
}

// oneByOne is the turn of questions where nobody else sees to it.
func (p *policy) oneByOne(ctx context.Context) (context.Context, func(), error) {
	select {
	case p.asking <- struct{}{}:
		return ctx, func() { <-p.asking }, nil
	case <-ctx.Done():
		return ctx, nil, context.Cause(ctx)
	}
}

// settle turns an answer into a decision and remembers what it grants.
func (p *policy) settle(ctx context.Context, r policyRequest, answer consentAnswer) decision {
	switch answer.Key {
	case choiceYes:
		return allowed(ruleConsent, false)
	case choiceSession:
		p.mu.Lock()
		g := r.grant()
		p.grants[g] = true
		if g.host != "" && g.digest == "" {
			p.hosts[g.host] = true
		}
		p.mu.Unlock()
		return allowed(ruleConsent, false)
	case choiceAlways:
		d := allowed(ruleConsent, false)
		want, _ := p.lasting(&r)
		ps, err := p.cfg.SavePreset(ctx, want)
		if err != nil {
			d.Reason = "it runs now, but the preset was not saved: " + err.Error()
			if p.cfg.Show != nil {
				p.cfg.Show(ctx, p.redact(visibleLine(d.Reason)))
			}
			return d
		}
		p.mu.Lock()
		p.presets = append(p.presets, ps)
		p.mu.Unlock()
		d.Rule = ruleAllow + ps.ID
		return d
	case choiceWhy:
		return decision{Rule: ruleRefused, Reason: answer.Why}
	}
	return decision{Rule: ruleRefused, Reason: "nothing was done"}
}

// lasting is the preset that "always in this workspace" would write for r; false where none would cover just what was shown.
func (p *policy) lasting(r *policyRequest) (preset, bool) {
	ps := preset{Effect: "allow", Tool: r.Tool, Pin: r.Pin}
	switch {
	case p.cfg.SavePreset == nil || r.Always || r.Outside:
		return ps, false
	case r.Net.Host != "":
		ps.Arguments = map[string]string{"url": r.Net.lasting()}
		return ps, !r.Destructive && r.Net.presetsCount()
	case strings.Contains(r.Tool, "*") || r.Server != "" && r.Pin == "":
		return ps, false
	case r.Command == "":
		return ps, !r.Exact // a preset is open to arguments it does not name; only a command's are closed
	case !classifyShell(r.Command, shellScope{}).Parsable:
		return ps, false
	}
	members, err := jsonObject(r.Args)
	if err != nil {
		return ps, false
	}
	ps.Arguments = map[string]string{}
	for _, m := range members {
		text, ok := jsonString(m.Value)
		if !ok || strings.Contains(text, "*") { // a glob would cover more than what was shown
			return ps, false
		}
		ps.Arguments[m.Key] = text
	}
	return ps, true
}

// consentFor builds the question with the choices that r can have, each stating its scope.
func (p *policy) consentFor(r policyRequest, why string) (consent, error) {
	c, err := callConsent(r.Tool, r.Server, r.Digest, why, r.Args)
	if err != nil {
		return consent{}, err
	}
	if r.Title != "" {
		c.Title = r.Title
	}
	if r.Lines != nil {
		c.Lines = slices.Clone(r.Lines)
	}
	c.Danger = slices.Clone(r.Danger)
	if p.cfg.Redact != nil {
		c.Title = p.cfg.Redact(c.Title)
		for i := range c.Danger {
			c.Danger[i] = p.cfg.Redact(c.Danger[i])
		}
		for i := range c.Lines {
			c.Lines[i].Name, c.Lines[i].Text = p.cfg.Redact(c.Lines[i].Name), p.cfg.Redact(c.Lines[i].Text)
		}
	}
	c.Choices = append(c.Choices, consentChoice{choiceYes, "yes, this once"})
	if !r.Always {
		scope := "this tool with any arguments"
		switch g := r.grant(); {
		case g.digest != "":
			scope = "exactly this call"
		case g.host != "":
			scope = r.Net.scope()
		case g.pin != "":
			scope = "this tool as it is defined now, with any arguments"
		}
		c.Choices = append(c.Choices, consentChoice{choiceSession, "yes, for this session: " + scope})
	}
	if ps, ok := p.lasting(&r); ok {
		scope := "this tool with any arguments"
		if r.Net.Host != "" {
			scope = "this tool at " + ps.Arguments["url"] + ", with any other arguments"
		} else if ps.Arguments != nil {
			scope = "exactly these arguments"
		} else if ps.Pin != "" {
			scope = "this tool as it is defined now, with any arguments"
		}
		c.Choices = append(c.Choices, consentChoice{choiceAlways, "always in this workspace: " + scope})
	}
	c.Choices = append(c.Choices, consentChoice{choiceNo, "no"}, consentChoice{choiceWhy, "no, and say why: w REASON"})
	return c, nil
}

// shownLine is the line for a call that runs without asking.
func (p *policy) shownLine(r policyRequest) string {
	if len(r.Args) > shownArgsMax {
		return fmt.Sprintf("runs %s with %d bytes of arguments", visibleLine(r.Tool), len(r.Args))
	}
	args := string(compactJSON(nil, r.Args))
	if args == "" {
		args = r.Server // an add, a remove or a grant: which server it is about
	}
	args = p.redact(args)
	return "runs " + visibleLine(r.Tool) + " " + clip(visibleLine(args), shownLineMax)
}

func (p *policy) redact(s string) string {
	if p.cfg.Redact == nil {
		return s
	}
	return p.cfg.Redact(s)
}
