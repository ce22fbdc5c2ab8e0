// This file runs the calls of one reply: each gets exactly one result, also one that is refused, unknown, half there, interrupted or one too many.
// What a call may do and what it does is the toolbox's.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	agentParallel  = 8  // reading calls of one reply that run at the same time
	agentMaxCalls  = 64 // calls of one reply that are run; the others get a result that says so
	agentNotRun    = "interrupted before this call was run"
	agentNoContent = "(the result is empty)" // several endpoints refuse an empty message
)

// fitCalls gives each call an id of its own, in the whole history: results name their call by it, and some endpoints count their calls from 0 in
// each reply.
func (a *agent) fitCalls(calls []chatToolCall) []chatToolCall {
	out := make([]chatToolCall, len(calls))
	for i, c := range calls {
		id := c.ID
		for n := 0; !fitName(id) || len(id) > chatMaxID || a.ids[id]; n++ {
			id = fmt.Sprintf("call_%d_%s", n, sha256Hex([]byte(fmt.Sprint(len(a.ids), c.ID, c.Name, c.Args)))[:12])
		}
		a.ids[id] = true
		c.ID = id
		out[i] = c
	}
	return out
}

// runCalls gives each call exactly one result, in their order: calls side by side that only read run at the same time, the others one by one, so
// that the person is asked one question at a time. Their beginnings are told in their order, their ends as they come. An interrupt leaves results for
// those that had not run, too.
func (a *agent) runCalls(ctx context.Context, calls []chatToolCall) (refused int, err error) {
	results, ran, errs := make([]chatMessage, len(calls)), make([]toolResult, len(calls)), make([]error, len(calls))
	kept := true
	for from := 0; from < len(calls); {
		to := from
		for to < min(len(calls), agentMaxCalls) && a.Tools.reading(a.toolCall(calls[to], agentArgs(calls[to].Args))) {
			to++
		}
		to = max(to, from+1)
		if !kept { // nothing further is done that could not be written down
			results[from] = chatMessage{Role: roleTool, CallID: calls[from].ID, Content: agentNotRun, IsError: true}
			from++
			continue
		}
		var wg sync.WaitGroup
		slots := make(chan struct{}, agentParallel)
		for i := from; i < to; i++ {
			slots <- struct{}{}
			// Told here, so that calls begin in their order.
			a.sink(func(s turnSink) { s.toolStarted(calls[i]) })
			wg.Go(func() { // ends with its call; all are waited for below
				results[i], ran[i], errs[i] = a.runCall(ctx, calls[i], i)
				<-slots
			})
		}
		wg.Wait()
		for ; from < to; from++ {
			kept = kept && errs[from] == nil
			a.charge(ran[from].Spent)
		}
	}
	a.history = append(a.history, results...)
	a.refusal = toolResult{}
	for _, r := range ran {
		for _, name := range r.Found {
			a.find(name)
		}
		a.anew = a.anew || r.Anew
		if r.Rule != "" {
			refused++
			a.refusal = r
		}
	}
	if refused < len(calls) {
		a.refusal = toolResult{}
	}
	return refused, joinErrors(errs...)
}

// runCall runs one call and keeps its result. The error is that of keeping it; every other fault is a result.
func (a *agent) runCall(ctx context.Context, c chatToolCall, place int) (chatMessage, toolResult, error) {
	start := time.Now()
	r := a.callTool(ctx, c, place)
	took := time.Since(start)
	text := r.Text
	if r.Hint != "" && !strings.Contains(text, r.Hint) {
		text += "\n" + r.Hint
	}
	if strings.TrimSpace(text) == "" {
		text = agentNoContent
	}
	m := []chatMessage{{Role: roleTool, CallID: c.ID, Content: text, IsError: r.IsError}}
	if err := a.keep(ctx, m); err != nil {
		return m[0], toolResult{Spent: r.Spent}, err
	}
	a.sink(func(s turnSink) { s.toolFinished(c, r, took) })
	return m[0], r, nil
}

func (a *agent) callTool(ctx context.Context, c chatToolCall, place int) toolResult {
	if ctx.Err() != nil {
		return toolResult{Text: agentNotRun, IsError: true}
	}
	if place >= agentMaxCalls {
		return toolResult{Text: fmt.Sprintf("not run: of one reply %d calls are run, this was number %d; ask for it again", agentMaxCalls, place+1), IsError: true}
	}
	args := agentArgs(c.Args)
	if _, err := jsonObject(args); err != nil {
		return toolResult{Text: fmt.Sprintf("the arguments are no JSON object: %v. They were: %s", err, clip(c.Args, 500)), IsError: true}
	}
	r, err := a.Tools.dispatch(ctx, a.toolCall(c, args))
	switch {
	case err == nil:
		return r
	case ctx.Err() != nil:
		return toolResult{Text: "interrupted: " + err.Error(), IsError: true}
	}
	if re, ok := err.(*rpcError); ok { // not one inside: a server's is told with what stands around it, and masked
		return toolResult{Text: re.Message, IsError: true} // the model's own slip; the code is for protocols
	}
	return toolResult{Text: err.Error(), IsError: true}
}

func (a *agent) toolCall(c chatToolCall, args json.RawMessage) toolCall {
	turn := a.left
	call := toolCall{
		Parent: cmp.Or(a.Call, fmt.Sprintf("%s/%d", a.session, a.turns)), Name: c.Name, Args: args,
		Origin: a.Origin, Profile: a.Profile, Session: a.session, Turn: &turn,
	}
	if a.Follows {
		call.Profile = ""
	}
	return call
}

// agentArgs gives the arguments a model means: nothing and null are {} (F17), anything else stays as it is.
func agentArgs(args string) json.RawMessage {
	b := bytes.TrimSpace([]byte(args))
	if len(b) == 0 || string(b) == "null" || string(b) == `""` {
		return json.RawMessage("{}")
	}
	return b
}
