// This file holds agent_run and agent_status, and makes the tool set of a sub-agent: never more than the agent that starts it has. The agents
// themselves are the host's.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	subTaskText  = 64 << 10 // bytes of a task
	subMaxTools  = 100      // names and globs in one call
	subRunName   = "agent_run"
	subStateName = "agent_status"
)

const subReportSchema = `"id":{"type":"string","description":"Id for agent_status and proc_stop."},
"state":{"type":"string","description":"running, done, failed, stopped or interrupted."},
"task":{"type":"string"},"session":{"type":"string","description":"Its own conversation."},
"parent":{"type":"string","description":"The agent that started it, if another one did."},
"background":{"type":"boolean"},
"steps":{"type":"integer","description":"Replies of its model so far."},
"max_steps":{"type":"integer","description":"Its bound of them."},
"refused":{"type":"integer","description":"Its calls that were refused."},
"usage":{"type":"object","description":"Tokens so far.","properties":{"input":{"type":"integer"},"output":{"type":"integer"}}},
"doing":{"type":"string","description":"What it does now."},
"answer":{"type":"string"},
"error":{"type":"string","description":"Why there is no answer."},
"said":{"type":"string","description":"What its model said last, where there is no answer."},
"started":{"type":"string"},"ran_ms":{"type":"integer"}`

// agentScope is whose sub-agents the two tools start and see: those of the conversation itself, or of one sub-agent. Box is the toolbox of that
// agent, which holds the tools themselves; Profiles gives the servers enabled for a profile, or errNotFound.
type agentScope struct {
	host    *agentHost
	self    *subAgent // nil for the conversation itself
	box     func() (*toolbox, error)
	servers func(ctx context.Context, profile string) ([]string, error)
}

// subKeptBack reports the tools that a sub-agent gets only where a call names them: those that change what tai itself is and may do, and the
// task list and plan, which belong to the conversation with the person.
//
//go:noinline for size: it is called in many places
func subKeptBack(name string) bool {
	switch name {
	case "mcp_add", "mcp_enable", "mcp_disable", "mcp_remove", "mcp_login", "profile_use", "secret_set", "secret_delete", "todo_write", "plan_submit":
		return true
	}
	return false
}

// subagentTools declares the tools. Nothing is called before a tool runs.
func subagentTools(s agentScope) []tool {
	return []tool{{
		Name: subRunName, Family: "agents", Core: true,
		Description: "Give one task to a sub-agent with a history, bounds and tools of its own: wait for its answer, or let it run in the background. It sees nothing of this conversation, so the task has to say all.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["task"],"properties":{
"task":{"type":"string","minLength":1,"maxLength":%d,"description":"What to do, with all that it has to know, and what its answer has to say."},
"tools":{"type":"array","minItems":1,"maxItems":%d,"items":{"type":"string","minLength":1,"maxLength":128},"description":"Names or globs (file_*) of the tools that it gets, of those that you have (default: all but those that change tai itself)."},
"profile":{"type":"string","minLength":1,"maxLength":%d,"description":"Only bridged tools of servers that this profile has enabled too."},
"max_steps":{"type":"integer","minimum":1,"maximum":%d,"description":"Replies of its model at most (default %d), and never more than you have left."},
"background":{"type":"boolean","description":"Return its id at once; agent_status tells what comes of it (default false)."}}}`, subTaskText, subMaxTools, profileNameMax, agentMaxSteps, subSteps)),
		Output: json.RawMessage(`{"type":"object","properties":{` + subReportSchema + "," + toolRecordSchema + `}}`),
		Hints:  toolHints{Destructive: true, Stateful: true}, run: s.run,
	}, {
		Name: subStateName, Family: "agents",
		Description: "Say how a sub-agent is: state, steps, what it does now, and its answer. Without an id list all.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
"id":{"type":"string","minLength":1,"maxLength":40,"description":"Id that agent_run gave, such as a-1 (default: all)."}}}`),
		Output: json.RawMessage(`{"type":"object","properties":{` + subReportSchema + `,
"agents":{"type":"array","description":"All, oldest first, where no id was given.","items":{"type":"object","properties":{` + subReportSchema + `}}},` + toolRecordSchema + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true, Stateful: true}, run: s.status,
	}}
}

type subArgs struct {
	Task       string
	Tools      []string
	Profile    string
	Steps      int `json:"max_steps"`
	Background bool
}

func (s agentScope) run(ctx context.Context, c toolCall) (toolResult, error) {
	var args subArgs
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	if strings.TrimSpace(args.Task) == "" {
		return toolResult{}, newError(`property "task": expected a text`)
	}
	sub, given, hint, err := s.start(ctx, c, args, false)
	if err != nil {
		return toolResult{Hint: hint}, err
	}
	if !args.Background {
		r := sub.result()
		r.IsError, r.Spent = sub.report().State != subDone, sub.spent()
		return r, nil
	}
	report := sub.report()
	text := fmt.Sprintf("%s runs in the background, for %s at most. agent_status %s tells how it is and what its answer is, proc_stop %s ends it; it ends with tai.\n", sub.id, plural(report.MaxSteps, "step"), sub.id, sub.id)
	return toolResult{Text: text, Structured: procJSON(report), Spent: toolSpent{Given: given}}, nil
}

// start makes the tool set that a call asks for and starts the sub-agent. hint says what to do about an error.
func (s agentScope) start(ctx context.Context, c toolCall, args subArgs, brief bool) (sub *subAgent, given int, hint string, err error) {
	box, err := s.box()
	if err != nil {
		return nil, 0, "", err
	}
	set := subSet{patterns: args.Tools, deep: s.self.depth()+1 >= subDepth}
	if len(args.Tools) > 0 {
		if err := set.check(ctx, box); err != nil {
			return nil, 0, "tool_search finds the names of your tools; without tools it gets what you have", err
		}
	}
	var servers []string
	if args.Profile != "" {
		if servers, err = s.servers(ctx, args.Profile); errors.Is(err, errNotFound) {
			return nil, 0, "leave profile out for the one in use", errorf("no such profile: %s", quoteClip(args.Profile))
		} else if err != nil {
			return nil, 0, "", err
		}
	}
	order := subOrder{Call: c, Parent: s.self, Task: args.Task, Profile: args.Profile, Steps: args.Steps, Background: args.Background, Brief: brief}
	order.Box = func(sub *subAgent) *toolbox { return s.narrowed(box, sub, set, servers) }
	sub, given, err = s.host.start(ctx, order)
	return sub, given, "agent_status shows the agents, proc_stop ends one; or do the task yourself", err
}

// fork runs a strict brief to its end, with these tools and at most so many steps, and gives the answer. The call is the one that wants it.
func (s agentScope) fork(ctx context.Context, c toolCall, brief string, steps int, tools ...string) (string, error) {
	sub, _, _, err := s.start(ctx, c, subArgs{Task: brief, Tools: tools, Steps: steps}, true)
	if err != nil {
		return "", errorf("start an agent: %w", err)
	}
	r := sub.report()
	if r.State != subDone {
		return "", errorf("agent %s %s: %s", r.ID, r.account(), r.Error)
	}
	return r.Answer, nil
}

func (s agentScope) status(_ context.Context, c toolCall) (toolResult, error) {
	var args struct{ ID string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	if args.ID != "" {
		sub, ok := s.host.find(s.self, args.ID)
		if !ok {
			return toolResult{Hint: "agent_status without an id lists them; agents end with tai, the session of an ended one is kept"}, errorf("no agent has the id %s", quoteClip(args.ID))
		}
		return sub.result(), nil
	}
	reports := []subReport{}
	var b textBuilder
	for _, sub := range s.host.all(s.self) {
		r := sub.report()
		r.Answer, r.Said = brief(r.Answer, 200), ""
		reports = append(reports, r)
		fmt.Fprintf(&b, "%s %s: %s\n", r.ID, r.account(), brief(visibleLine(r.Task), 200))
	}
	if len(reports) == 0 {
		b.WriteString("no agent was started\n")
	}
	return toolResult{Text: b.String(), Structured: procJSON(map[string]any{"agents": reports})}, nil
}

// result tells a model all about a sub-agent.
func (s *subAgent) result() toolResult {
	r := s.report()
	text := fmt.Sprintf("%s %s", r.ID, r.account())
	if r.Session != "" {
		text += ", session " + r.Session
	}
	text += "\n"
	switch {
	case r.State == subRunning:
		text += "task: " + brief(visibleLine(r.Task), 200) + "\n"
	case r.State == subDone:
		text += "\n" + r.Answer
	default:
		text += "it has no answer: " + visibleLine(r.Error) + "\n" + "What it said last:\n" + cmp.Or(r.Said, "(nothing)")
	}
	return toolResult{Text: text, Structured: procJSON(r)}
}

// subSet is which of its parent's tools a sub-agent gets.
type subSet struct {
	patterns []string // names and globs; nil is the default
	deep     bool     // no agent may stand below it
}

// keep has a word for the tools that are in.
func (s subSet) keep(name string) bool {
	switch {
	case s.deep && (name == subRunName || name == subStateName):
		return false
	case s.patterns == nil:
		return !subKeptBack(name)
	}
	return slices.ContainsFunc(s.patterns, func(p string) bool {
		return p == name || !subKeptBack(name) && globMatch(p, name)
	})
}

// check wants each pattern to name a tool that the parent has.
func (s subSet) check(ctx context.Context, parent *toolbox) error {
	names, err := parent.names(ctx)
	var unknown []string
	for _, p := range s.patterns {
		one := subSet{[]string{p}, s.deep}
		if !slices.ContainsFunc(names, one.keep) {
			unknown = append(unknown, quoteClip(p))
		}
	}
	switch {
	case len(unknown) == 0:
		return nil
	case err != nil:
		return errorf("tools that are not there, or not to be given: %s (%w)", strings.Join(unknown, ", "), err)
	}
	return errorf("tools that are not there, or not to be given: %s", strings.Join(unknown, ", "))
}

// narrowed makes the toolbox of a sub-agent: what finds, judges or calls other tools there knows that set alone.
func (s agentScope) narrowed(parent *toolbox, sub *subAgent, set subSet, servers []string) *toolbox {
	var box *toolbox
	source := &narrowSource{inner: parent.bridge, keep: set.keep, servers: servers}
	own := map[string]tool{}
	for _, t := range slices.Concat(
		findTools(func() (toolFinder, error) { return box, nil }),
		policyTools(func() (policyForeseer, error) { return box, nil }),
		subagentTools(agentScope{s.host, sub, func() (*toolbox, error) { return box, nil }, s.servers}),
	) {
		own[t.Name] = t
	}
	change := func(t tool) tool {
		if mine, ok := own[t.Name]; ok {
			return mine
		}
		switch t.Name {
		case "mcp_call":
			run := t.run
			t.run = func(ctx context.Context, c toolCall) (toolResult, error) {
				if r, err := source.admit(ctx, parent.audit, c); err != nil || r.Rule != "" {
					return r, err
				}
				return run(ctx, c)
			}
			forecast := t.forecast
			t.forecast = func(ctx context.Context, c toolCall) (policyForecast, error) {
				ref, inner, err := innerCall(c)
				if err != nil {
					return policyForecast{}, err
				}
				if ok, err := source.has(ctx, ref.Server, ref.Tool); ok || err != nil {
					return forecast(ctx, c)
				}
				subject := bridgedSubject(ref.Server, ref.Tool)
				digest, err := payloadDigest(subject, inner.Args)
				return parent.policy.refuse(subject, digest, ruleToolSet, "this agent was not given that tool", ""), err
			}
		case "mcp_login":
			alone := t.unattended
			t.unattended = func(c toolCall) bool { return alone(c) || sub.background }
		case "ask_user":
			alone := t.unattended
			t.unattended = func(c toolCall) bool { return alone(c) || sub.background && !s.host.attended() }
		}
		return t
	}
	var bridge toolSource
	if parent.bridge != nil {
		bridge = source
	}
	box = parent.narrow(set.keep, change, bridge)
	return box
}

// admit refuses an mcp_call of a tool outside the set, and writes that down; a call that passes is the bridge's.
func (s *narrowSource) admit(ctx context.Context, log *auditLog, c toolCall) (toolResult, error) {
	ref, inner, err := innerCall(c)
	if err != nil {
		return toolResult{}, err
	}
	if ok, err := s.has(ctx, ref.Server, ref.Tool); ok || err != nil {
		return toolResult{}, err
	}
	subject := bridgedSubject(ref.Server, ref.Tool)
	args, err := objectArguments(inner.Args)
	if err != nil {
		return toolResult{}, err
	}
	digest, err := payloadDigest(subject, args)
	if err != nil {
		return toolResult{}, err
	}
	ev := auditEvent{Event: auditCallRequested, Call: cmp.Or(c.ID, log.nextCall()), Parent: c.Parent, Kind: auditKindMCP, Subject: ref.Server + "/" + ref.Tool, Digest: digest, Data: args, Size: int64(len(args))}
	err = log.record(ev)
	ev.Event, ev.Rule, ev.Outcome, ev.Data, ev.Size = auditCallBlocked, ruleToolSet, auditDenied, nil, 0
	return refused(ruleToolSet, "this agent was not given that tool of "+visibleLine(ref.Server), "tool_search shows what it has"), joinErrors(err, log.record(ev))
}
