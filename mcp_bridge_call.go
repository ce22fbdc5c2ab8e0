// This file carries out one call of a bridged tool: pin, trust, lists, policy, connection, pin again, call, redaction, cap, record,
// audit. It is the one door for bridged calls, whoever asks.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// callTool runs one tool of a stored server. A refusal is a result with Rule set; a fault of the protocol, the connection or of
// tai is an error; a tool that ran and failed is a result with IsError.
func (b *mcpBridge) callTool(ctx context.Context, ref toolRef, call toolCall) (toolResult, error) {
	args, err := objectArguments(call.Args)
	if err != nil {
		return toolResult{}, errorf("call %s/%s: %w", visibleLine(ref.Server), visibleLine(ref.Tool), err)
	}
	subject := bridgedSubject(ref.Server, ref.Tool)
	digest, err := payloadDigest(subject, args)
	if err != nil {
		return toolResult{}, errorf("call %s/%s: %w", visibleLine(ref.Server), visibleLine(ref.Tool), err)
	}
	id := call.ID
	if id == "" {
		id = b.cfg.Audit.nextCall()
	}
	ev := auditEvent{Call: id, Parent: call.Parent, Kind: auditKindMCP, Subject: ref.Server + "/" + ref.Tool, Digest: digest}
	requested := ev
	requested.Event, requested.Data, requested.Size = auditCallRequested, args, int64(len(args))
	if err := b.cfg.Audit.record(requested); err != nil {
		return toolResult{}, errorf("call %s refused, it cannot be recorded: %w", quoteClip(ev.Subject), err)
	}
	if call.Profile != "" {
		ctx = withProfile(ctx, call.Profile) // whose login is sent
	}
	view, tool, refusal, err := b.admit(ctx, ref, call, args, digest)
	if err != nil || refusal.Rule != "" {
		blocked := ev
		blocked.Event, blocked.Rule, blocked.Outcome = auditCallBlocked, refusal.Rule, auditDenied
		if tool.Trust.Deny && refusal.Rule == tool.Trust.Rule {
			blocked.Data = b.cfg.Trust.note(ref, tool.Trust)
		}
		if err != nil {
			blocked.Data = auditText("error", err.Error())
			switch {
			case errors.Is(err, errNotEnabled):
				blocked.Rule = "enablement"
			case errors.Is(err, errTrustFile):
				blocked.Rule = ruleTrustFile
			default:
				blocked.Rule, blocked.Outcome = "not reachable", auditError
			}
		}
		return refusal, joinErrors(err, b.cfg.Audit.record(blocked))
	}
	ev.Rule = tool.Ruled
	return b.run(ctx, admitted{view, tool}, ref, args, ev, call.Session)
}

// admitted is a call that nothing refuses: its connection, and what was found about its tool.
type admitted struct {
	view *bridgeView
	tool bridgeTool
}

// admit passes one call through everything that can refuse it and gives the connection to use. A refusal is a result with Rule.
func (b *mcpBridge) admit(ctx context.Context, ref toolRef, call toolCall, args json.RawMessage, digest string) (*bridgeView, bridgeTool, toolResult, error) {
	row, pinned, err := b.storedTool(ctx, ref, call.Profile)
	if err != nil {
		return nil, pinned, toolResult{}, err
	}
	if pinned.State == stateWithheld {
		// Not pinned: only the server knows whether there is such a tool. No call is sent for it.
		if _, err := b.liveTool(ctx, row, ref, &pinned); err != nil {
			return nil, pinned, toolResult{}, err
		}
	}
	if r := refuseTool(ref, pinned); r.Rule != "" {
		return nil, pinned, r, nil
	}
	d, err := b.cfg.Policy.approve(ctx, bridgedRequest(ref, call, args, digest, pinned.Hash))
	if err != nil {
		return nil, pinned, toolResult{}, err
	}
	if !d.Allow {
		return nil, pinned, refused(d.Rule, d.Reason, d.Hint), nil
	}
	asked := pinned.Hash
	if d.Rule == ruleConsent { // the answer may have taken long
		trust, err := b.trust(ctx)
		if err != nil {
			return nil, pinned, toolResult{}, err
		}
		pinned.Trust = trust.judge(ref.Server, ref.Tool)
	}
	view, err := b.liveTool(ctx, row, ref, &pinned)
	if err != nil {
		return nil, pinned, toolResult{}, err
	}
	if pinned.State == stateGranted && pinned.Hash != asked {
		// Granted in between by another process: what was asked about is not what would run.
		return nil, pinned, refused("pin", "the tool changed while this call was decided", "call it again"), nil
	}
	pinned.Ruled = d.Rule
	return view, pinned, refuseTool(ref, pinned), nil
}

// bridgedRequest is what the policy is asked about a bridged call.
func bridgedRequest(ref toolRef, call toolCall, args json.RawMessage, digest, pin string) policyRequest {
	return policyRequest{
		Tool: bridgedSubject(ref.Server, ref.Tool), Server: ref.Server, Args: args, Digest: digest, Pin: pin, Person: call.Person,
		Destructive: true,                     // whatever the server says of it: foreign hints relax nothing
		Approved:    call.Origin == originMCP, // foreign servers are not to be reached through a governed workspace by the way
	}
}

// liveTool connects if need be and puts the live judgement of a tool into t.
func (b *mcpBridge) liveTool(ctx context.Context, row serverRow, ref toolRef, t *bridgeTool) (*bridgeView, error) {
	view, _, err := b.open(ctx, row, false)
	if err != nil {
		return nil, err
	}
	live, ok := view.tools[ref.Tool]
	if !ok {
		return nil, &hintedError{errorf("%w on %s: %s", errNoSuchTool, quoteClip(ref.Server), quoteClip(ref.Tool)), "tai mcp tools " + quoteWord(ref.Server) + " shows the names"}
	}
	live.Trust = t.Trust
	*t = live
	return view, nil
}

// pinnedTool judges a tool by the vault alone: granted with its pin, shut out by the entry's lists, or withheld. Trust is left out.
func (b *mcpBridge) pinnedTool(ctx context.Context, row serverRow, tool string) (bridgeTool, error) {
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return bridgeTool{}, err
	}
	hash, err := v.pin(ctx, row.Name, tool)
	if errors.Is(err, errNotFound) {
		return bridgeTool{State: stateWithheld}, nil
	}
	t := listedTool{toolDef: toolDef{Name: tool}, State: stateGranted}
	t.judgeLists(row.serverEntry)
	return bridgeTool{State: t.State, Reason: t.Reason, Hash: hash}, err
}

// refuseTool says why a listed tool may not be called, or nothing: its pin comes first, then trust, then the entry's own lists. A tool over
// the cap is not offered, but may be called by name.
func refuseTool(ref toolRef, t bridgeTool) toolResult {
	name := visibleLine(ref.Tool)
	if t.Trust.Deny && t.State != stateWithheld && t.State != stateUnusable {
		return refused(t.Trust.Rule, fmt.Sprintf("tool %s of %s is shut out: %s", name, visibleLine(ref.Server), t.Trust.Reason), t.Trust.Hint)
	}
	switch t.State {
	case stateWithheld:
		return refused("pin", fmt.Sprintf("tool %s of %s is withheld: %s", name, visibleLine(ref.Server), t.Reason),
			fmt.Sprintf("tai mcp check %s %s shows the difference, tai mcp grant %s %s approves it", quoteWord(ref.Server), quoteWord(ref.Tool), quoteWord(ref.Server), quoteWord(ref.Tool)))
	case stateDenied:
		return refused("tool list", fmt.Sprintf("tool %s of %s is shut out: %s", name, visibleLine(ref.Server), t.Reason), "")
	case stateUnusable:
		return refused("unusable", fmt.Sprintf("tool %s of %s cannot be used: %s", name, visibleLine(ref.Server), t.Reason), "")
	}
	return toolResult{}
}

//go:noinline for size: it is called in many places
func refused(rule, reason, hint string) toolResult {
	return toolResult{Text: "refused (" + rule + "): " + reason, Hint: hint, Rule: rule, IsError: true}
}

// run sends an admitted call and records what came of it. The started line is on disk before the call goes out.
func (b *mcpBridge) run(ctx context.Context, call admitted, ref toolRef, args json.RawMessage, ev auditEvent, session string) (toolResult, error) {
	started := ev
	started.Event = auditCallStarted
	started.Data = b.cfg.Trust.note(ref, call.tool.Trust)
	if err := joinErrors(b.cfg.Audit.record(started), b.cfg.Audit.sync()); err != nil {
		return toolResult{}, errorf("call %s refused, it cannot be recorded: %w", quoteClip(ev.Subject), err)
	}
	if err := b.cfg.Rates.take(bridgedSubject(ref.Server, ref.Tool)); err != nil {
		failed := ev
		failed.Event, failed.Outcome, failed.Data = auditCallFailed, auditError, auditText("error", err.Error())
		return toolResult{Text: err.Error(), IsError: true}, b.cfg.Audit.record(failed)
	}
	begin := b.cfg.Now()
	raw, callErr := call.view.client.callTool(ctx, ref.Tool, args)
	done := ev
	done.Event, done.Outcome, done.Duration = auditCallCompleted, auditOK, b.cfg.Now().Sub(begin)
	if callErr != nil {
		done.Event, done.Outcome, done.Data = auditCallFailed, auditError, auditText("error", callErr.Error())
		return toolResult{}, joinErrors(errorf("mcp server %s: call %s: %w", quoteClip(ref.Server), quoteClip(ref.Tool), b.cleanError(b.authFault(ctx, call.view.entry, callErr))), b.cfg.Audit.record(done))
	}
	res, err := b.finish(ctx, call.view, ref, raw, session)
	done.Size = int64(len(res.Text))
	if res.IsError || err != nil {
		done.Event, done.Outcome = auditCallFailed, auditError
	}
	return res, joinErrors(err, b.cfg.Audit.record(done))
}

// cleanError redacts an error's text and keeps its kind.
func (b *mcpBridge) cleanError(err error) error { return maskError(err, b.cfg.Redact) }

// finish turns a result into what is handed on: text joined, known secrets out, then the cap, then a record for what is over it.
func (b *mcpBridge) finish(ctx context.Context, view *bridgeView, ref toolRef, raw callResult, session string) (toolResult, error) {
	text := b.cfg.Redact(resultText(raw))
	res := toolResult{Text: text, IsError: raw.IsError}
	if raw.IsError && text == "" {
		res.Text = "the tool reported a failure and gave no text"
	}
	if len(text) > mcpResultMax {
		return b.spill(ctx, ref, res, session)
	}
	res.Content = make([]json.RawMessage, 0, len(raw.Content)) // not nil: no content is what the server sent
	for _, part := range raw.Content {
		if part = b.redactJSON(part); part != nil {
			res.Content = append(res.Content, part)
		}
	}
	if raw.Structured != nil {
		res.Structured = b.redactJSON(raw.Structured)
		if !raw.IsError {
			res.Notice = b.cfg.Redact(outputFault(view.tools[ref.Tool].Output, raw.Structured))
		}
	}
	return res, nil
}

// redactJSON takes known secrets out of a JSON value. Where one stood outside a string no value is left: the text tells the rest.
func (b *mcpBridge) redactJSON(raw json.RawMessage) json.RawMessage {
	clean := b.cfg.Redact(string(raw))
	if clean == string(raw) {
		return raw
	}
	if checkJSON([]byte(clean)) != nil {
		return nil
	}
	return json.RawMessage(clean)
}

// outputFault checks structured content against the schema the tool declared (MCP 2025-11-25, Tools, Output Schema). The
// content is handed on as it is, with what is wrong said beside it.
func outputFault(schema, structured json.RawMessage) string {
	if schema == nil {
		return ""
	}
	if err := checkStructured(schema, structured); err != nil {
		return "structured content does not fit the tool's own outputSchema: " + visibleLine(err.Error())
	}
	return ""
}

// spill keeps a text over mcpResultMax as a vault record; the answer carries its id and size, never a cut text. It is kept also
// when the call was interrupted meanwhile: what a tool did is not to be lost.
func (b *mcpBridge) spill(ctx context.Context, ref toolRef, res toolResult, session string) (toolResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toolStoreTime)
	defer cancel()
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return toolResult{}, err
	}
	rec, err := v.putRecord(ctx, "result", ref.Server+"/"+ref.Tool, session, []byte(res.Text))
	if err != nil {
		return toolResult{}, errorf("keep the result of %s/%s: %w", visibleLine(ref.Server), visibleLine(ref.Tool), err)
	}
	res.Record = rec.ID
	res.Text = fmt.Sprintf("The result has %d bytes, over the %d kept inline. It is kept whole as record %s; tai record show %s prints it.",
		rec.Size, mcpResultMax, rec.ID, rec.ID)
	return res, nil
}

// connectState is one step of connecting a server, for whoever shows progress.
type connectState struct {
	Server string
	Tools  int
	Took   time.Duration
	Err    error
	Done   bool
}

// connectAll lists servers in parallel, each under its own deadline, and tells show of each start and end. show may be nil; it
// is called from one goroutine. What failed has an error in the answer, the others their lists.
func (b *mcpBridge) connectAll(ctx context.Context, rows []serverRow, show func(connectState)) (lists map[string][]listedTool, failed map[string]error) {
	type outcome struct {
		connectState
		tools []listedTool
	}
	slots := make(chan struct{}, mcpMaxServers)
	outcomes := make(chan outcome)
	for _, row := range rows {
		go func() { // ends after one connect, which has a deadline
			slots <- struct{}{}
			defer func() { <-slots }()
			begin := b.cfg.Now()
			outcomes <- outcome{connectState: connectState{Server: row.Name}}
			tools, err := b.liveList(ctx, row)
			outcomes <- outcome{connectState{Server: row.Name, Tools: len(tools), Took: b.cfg.Now().Sub(begin), Err: err, Done: true}, tools}
		}()
	}
	lists, failed = map[string][]listedTool{}, map[string]error{}
	for left := len(rows); left > 0; {
		o := <-outcomes
		if show != nil {
			show(o.connectState)
		}
		if !o.Done {
			continue
		}
		left--
		if o.Err != nil {
			failed[o.Server] = o.Err
		} else {
			lists[o.Server] = o.tools
		}
	}
	return lists, failed
}
