// This file is the registry of the native tools: it checks their declarations, and takes each native call through its one order: shape, policy, schema, run, redaction, cap, record, with the run log around it. Bridged tools reach
// it only as a toolSource; it knows no tool by name.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	toolMaxOffered = 128             // tools in one request to a model, the lowest limit among the endpoints
	toolHeadMax    = 8 << 10         // bytes of a spilled result that stay inline
	toolKind       = "tool-call"     // kind of a native call in the run log
	toolStoreTime  = 5 * time.Second // for storing a result whose call was interrupted
	toolRulePerson = "needs-a-person"
)

// The origins of the runs that serve others: for whoever has the key, and the governed workspace.
const (
	originHTTP = "http"
	originMCP  = "mcp"
)

// toolRecordSchema are the properties that every outputSchema has room for: what is left of a structured result that spilled.
const toolRecordSchema = `"record":{"type":"string","description":"Where the whole result is kept if it was too long."},
"size":{"type":"integer","description":"Bytes of the whole result."}`

// toolHints are the annotations of a tool (MCP 2025-11-25, Tools). Destructive decides whether the policy asks.
type toolHints struct{ ReadOnly, Destructive, Idempotent, Stateful bool }

// tool is one native tool. Schema is the one that the model, tools/list and the validator use; Output, if any, has no required property,
// as a result that spills carries its record and size alone.
type tool struct {
	Name, Description, Family string
	Schema, Output            json.RawMessage
	Hints                     toolHints
	Core                      bool // offered to every message; the others where they fit it or all have room

	// run does the work. Its error is a failure of the call, told to the caller as a failed result.
	run func(ctx context.Context, c toolCall) (toolResult, error)

	// judge, if set, refines from the arguments, which it must take as they are: not yet checked. What it leaves out of the request
	// (tool, digest, arguments, person) is filled in.
	judge func(c toolCall) policyRequest

	// own is set for a tool that decides and records what it does itself, each effect once: it gets its call after the shape and the
	// schema, and nobody asks or records before it.
	own bool

	// forecast, if set, says what would happen to a call whose effect is another tool's.
	forecast func(ctx context.Context, c toolCall) (policyForecast, error)

	// unattended is set for a tool that talks to the person: true means that none sits there, and the call is refused. Such a tool
	// never runs beside another.
	unattended func(c toolCall) bool
}

// toolCall is one call on its way. ID and Parent are ids of the run log; an empty ID is filled in.
type toolCall struct {
	ID, Parent string
	Name       string
	Args       json.RawMessage
	Person     bool   // a person's own words: tai tools call, /call
	Origin     string // repl, cli, http, mcp
	Profile    string
	Session    string
	Turn       *toolTurn // nil outside a turn
	outside    bool      // the policy allowed a path outside the root; set by dispatchNative alone
	asked      bool      // a person was shown this very call and agreed; set there too
	reach      netReach  // how far into the network the policy allowed it; set there too
}

// served reports a call of a client, behind which no person sits.
func (c toolCall) served() bool { return c.Origin == originMCP || c.Origin == originHTTP }

// toolTurn is the turn that a call is part of: what it has left for a tool that asks a model itself, and how it tells the person something.
type toolTurn struct {
	Steps  int          // replies of the model
	Tokens int          // output tokens; -1 is no bound
	Tell   func(string) // shows a line while the call runs
}

// toolSpent is what a call took of its turn's bounds. Given are output tokens that work in the background may still use.
type toolSpent struct {
	Usage        chatUsage
	Steps, Given int
}

// profileKey is where a context carries the profile that calls under it work in.
type profileKey struct{}

// withProfile has all that is done under the context work in that profile, whichever is the current one.
func withProfile(ctx context.Context, profile string) context.Context {
	return context.WithValue(ctx, profileKey{}, profile)
}

// profileOf gives that profile, "" for the current one.
func profileOf(ctx context.Context) string {
	profile, _ := ctx.Value(profileKey{}).(string)
	return profile
}

// toolResult is what a call came to. Rule is set when it was refused, Record when the text was too long and is kept there.
type toolResult struct {
	Text       string
	Structured json.RawMessage
	IsError    bool
	Hint       string
	Rule       string
	Record     string
	Fault      bool              // tai itself fell over; over MCP that is -32603
	Content    []json.RawMessage // the parts of a bridged result; nil: Text is all
	Notice     string            // what a person should know of it
	Shown      string            // what the person is shown of it as it stands, in lines
	Found      []string          // names of tools to be offered from now on
	Anew       bool              // there are other tools now: those to be offered are chosen anew
	Spent      toolSpent         // on a model
}

// sourceTool is one tool of a toolSource. Its Name is what a model calls it by; Server and Tool say where it comes from. Hash, if any, changes
// whenever description or schema do.
type sourceTool struct {
	toolDef
	Server, Tool, Hash string
}

// toolSource is where tools that are not native come from. It approves and audits its own calls.
type toolSource interface {
	// offered reads all its tools; state names what they depend on, with nil for a source that does not know: while it is the same, so are
	// they. described reads just the tools of these names, and leaves out those that are gone.
	offered(ctx context.Context) ([]sourceTool, error)
	state(ctx context.Context) (any, error)
	described(ctx context.Context, names []string) ([]sourceTool, error)
	owns(name string) bool
	call(ctx context.Context, c toolCall) (toolResult, error)
	foresee(ctx context.Context, c toolCall) (f policyForecast, known bool, err error)
}

// offeredList is what the bridge offered in one state. The toolbox's lock guards what changes: index and texts.
type offeredList struct {
	state  any          // nil: not known
	tools  []sourceTool // by name; nobody changes it
	stamps []uint64     // of tools, to tell whether an index still fits
	index  *rankIndex   // nil until it is asked for
	brief  bool         // the tools have no description and no schema
	texts  map[string]sourceTool
	size   int // bytes in texts
}

// toolbox is safe for concurrent calls.
type toolbox struct {
	tools  []tool
	byName map[string]*toolEntry
	defs   []toolDef // of the native tools, in order
	policy *policy
	audit  *auditLog
	vault  func(context.Context) (*vault, error)
	redact func(string) string
	bridge toolSource // nil without one
	rates  *rateLimiter

	seed   maphash.Seed
	mu     sync.Mutex   // guards listed and what changes in it
	listed *offeredList // of the bridge, as last read; nil before
}

type toolEntry struct {
	tool   tool
	schema *jsonSchema
}

// newToolbox checks and compiles every declaration; a wrong one or a name that stands twice is an error. redact may be nil.
func newToolbox(tools []tool, p *policy, a *auditLog, v func(context.Context) (*vault, error), redact func(string) string, bridge toolSource) (*toolbox, error) {
	t := &toolbox{tools: tools, byName: map[string]*toolEntry{}, policy: p, audit: a, vault: v, redact: redact, bridge: bridge, seed: maphash.MakeSeed()}
	if redact == nil {
		t.redact = func(s string) string { return s }
	}
	for _, tl := range tools {
		if t.byName[tl.Name] != nil {
			return nil, errorf("register tool %q: the name stands twice", tl.Name)
		}
		schema, err := checkTool(tl)
		if err != nil {
			return nil, errorf("register tool %q: %w", tl.Name, err)
		}
		t.byName[tl.Name] = &toolEntry{tl, schema}
		t.defs = append(t.defs, tl.def())
	}
	return t, nil
}

// natives gives the native tools in the order they were declared. The caller does not change them.
func (t *toolbox) natives() []tool { return t.tools }

// textProperties names the arguments that a native tool takes as nothing but text; none of another tool.
func (t *toolbox) textProperties(name string) map[string]bool {
	e := t.byName[name]
	if e == nil {
		return nil
	}
	var schema struct {
		Properties map[string]struct{ Type any }
	}
	if json.Unmarshal(e.tool.Schema, &schema) != nil {
		return nil // compiled once, so it is JSON
	}
	texts := map[string]bool{}
	for property, p := range schema.Properties {
		texts[property] = p.Type == "string"
	}
	return texts
}

// native reports whether there is a native tool of that name.
func (t *toolbox) native(name string) bool { return t.byName[name] != nil }

// def gives the tool as tools/list and the model see it.
func (tl tool) def() toolDef {
	h := tl.Hints
	notes := fmt.Sprintf(`{"readOnlyHint":%t,"destructiveHint":%t,"idempotentHint":%t,"statefulHint":%t}`, h.ReadOnly, h.Destructive, h.Idempotent, h.Stateful)
	return toolDef{Name: tl.Name, Description: tl.Description, InputSchema: tl.Schema, OutputSchema: tl.Output, Annotations: json.RawMessage(notes)}
}

// dispatch runs a native or a bridged tool.
func (t *toolbox) dispatch(ctx context.Context, c toolCall) (toolResult, error) {
	if t.byName[c.Name] == nil && t.bridge != nil && t.bridge.owns(c.Name) {
		return t.bridge.call(ctx, c)
	}
	return t.dispatchNative(ctx, c)
}

// reading reports whether the call only reads and asks nobody, so that it may run beside others of its kind. What keeps something without being
// destructive, as a note, is no such call: of two the second counts.
func (t *toolbox) reading(c toolCall) bool {
	e := t.byName[c.Name]
	if e == nil || e.tool.unattended != nil || !e.tool.Hints.ReadOnly && !e.tool.Hints.Destructive {
		return false
	}
	req := e.request(c, "")
	return !req.Destructive && !req.Outside && !req.Always && (req.Net.Host == "" || t.policy.foresee(req).Decision == forecastAllow)
}

// dispatchNative runs a native tool. A call that cannot be read (no such tool, arguments that are no JSON object) is an *rpcError and leaves
// no trace; a refused one is a result with Rule; one that failed a result with IsError. Any other error means that the call could
// not be written down, and then nothing ran or nothing may be said of it.
func (t *toolbox) dispatchNative(ctx context.Context, c toolCall) (toolResult, error) {
	e := t.byName[c.Name]
	if e == nil {
		return toolResult{}, &rpcError{Code: codeInvalidParams, Message: fmt.Sprintf("unknown tool %q", clip(visibleLine(c.Name), 100))}
	}
	if len(bytes.TrimSpace(c.Args)) == 0 {
		c.Args = json.RawMessage("{}")
	}
	if _, err := jsonObject(c.Args); err != nil {
		return toolResult{}, &rpcError{Code: codeInvalidParams, Message: fmt.Sprintf("arguments of %s: %v", c.Name, err)}
	}
	if e.tool.own {
		return t.dispatchOwn(ctx, e, c)
	}
	digest, err := payloadDigest(c.Name, c.Args)
	if err != nil {
		return toolResult{}, &rpcError{Code: codeInvalidParams, Message: fmt.Sprintf("arguments of %s: %v", c.Name, err)}
	}
	if c.ID == "" {
		c.ID = t.audit.nextCall()
	}
	asked := auditEvent{Event: auditCallRequested, Call: c.ID, Parent: c.Parent, Kind: toolKind, Subject: c.Name, Digest: digest, Size: int64(len(c.Args)), Data: c.Args}
	ev := asked
	ev.Data, c.Args = nil, plainNumbers(c.Args)
	req := e.request(c, digest)
	lines := append(make([]auditEvent, 0, 2), asked)
	if req.Destructive || !c.served() { // else nothing waits on a person or a disk before the next line, and one write takes both
		if err := t.audit.record(asked); err != nil {
			return toolResult{}, errorf("tool %s: run log: %w", c.Name, err)
		}
		lines = lines[:0]
	}
	d := t.decide(ctx, e, c, req)
	if !d.Allow {
		ev.Event, ev.Outcome, ev.Rule = auditCallBlocked, auditDenied, d.Rule
		if err := t.audit.record(append(lines, ev)...); err != nil {
			return toolResult{}, errorf("tool %s: run log: %w", c.Name, err)
		}
		return toolResult{Text: c.Name + ": " + d.refusal(), IsError: true, Rule: cmp.Or(d.Rule, "denied"), Hint: d.Hint}, nil
	}
	if req.Destructive {
		if err := t.audit.sync(); err != nil {
			return toolResult{}, errorf("tool %s: run log: %w", c.Name, err)
		}
	}
	ev.Event, ev.Rule = auditCallStarted, d.Rule
	if err := t.audit.record(append(lines, ev)...); err != nil {
		return toolResult{}, errorf("tool %s: run log: %w", c.Name, err)
	}
	c.outside, c.reach, c.asked = req.Outside, req.Net.Reach, d.Rule == ruleConsent || strings.HasPrefix(d.Rule, ruleAllow)
	start := time.Now()
	r, full := t.keep(ctx, c, t.perform(ctx, e, c))
	ev.Event, ev.Outcome, ev.Duration, ev.Size = auditCallCompleted, auditOK, time.Since(start), full
	if r.IsError {
		ev.Event, ev.Outcome = auditCallFailed, auditError
	}
	if err := t.audit.record(ev); err != nil {
		return toolResult{}, errorf("tool %s: run log: %w", c.Name, err)
	}
	return r, nil
}

// plainNumbers spells whole numbers that are members of args plainly: 10.0 and 1e1 are 10 to a schema and to a digest, and so they have to be to
// a tool.
func plainNumbers(args json.RawMessage) json.RawMessage {
	members, err := jsonObject(args)
	changed := false
	for i, m := range members {
		if len(m.Value) == 0 || m.Value[0] != '-' && (m.Value[0] < '0' || m.Value[0] > '9') || !bytes.ContainsAny(m.Value, ".eE") {
			continue
		}
		if plain, err := canonicalJSON(m.Value); err == nil && !bytes.ContainsAny(plain, ".eE") {
			members[i].Value, changed = plain, true
		}
	}
	if err != nil || !changed {
		return args
	}
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(appendJSONString(out, m.Key), ':'), m.Value...)
	}
	return append(out, '}')
}

// dispatchOwn hands a call to a tool that decides and records itself. One that nobody is there for, or whose arguments break its schema, never
// reaches it and is recorded here.
func (t *toolbox) dispatchOwn(ctx context.Context, e *toolEntry, c toolCall) (toolResult, error) {
	alone := e.needsPerson(c)
	var fault error
	if alone.Rule == "" {
		if fault = joinErrors(checkJSON(c.Args), e.schema.validate(c.Args)); fault == nil {
			r, _ := t.keep(ctx, c, t.perform(ctx, e, c))
			return r, nil
		}
	}
	ev := auditEvent{Call: cmp.Or(c.ID, t.audit.nextCall()), Parent: c.Parent, Kind: toolKind, Subject: c.Name, Size: int64(len(c.Args))}
	events := []string{auditCallRequested, auditCallStarted, auditCallFailed}
	if fault == nil {
		events = []string{auditCallRequested, auditCallBlocked}
	}
	for _, event := range events {
		switch ev.Event = event; event {
		case auditCallFailed:
			ev.Outcome = auditError
		case auditCallBlocked:
			ev.Outcome, ev.Rule = auditDenied, alone.Rule
		}
		if err := t.audit.record(ev); err != nil {
			return toolResult{}, errorf("tool %s: run log: %w", c.Name, err)
		}
	}
	if fault == nil {
		return toolResult{Text: c.Name + ": " + alone.refusal(), IsError: true, Rule: alone.Rule, Hint: alone.Hint}, nil
	}
	return toolResult{Text: t.redact(fmt.Sprintf("%s: %v", c.Name, fault)), IsError: true}, nil
}

// request fills in what the policy is asked; a tool without judge is judged by its annotations alone.
func (e *toolEntry) request(c toolCall, digest string) policyRequest {
	req := policyRequest{Destructive: e.tool.Hints.Destructive}
	if e.tool.judge != nil {
		req = e.tool.judge(c)
	}
	req.Tool, req.Args, req.Digest, req.Person = c.Name, c.Args, digest, c.Person
	return req
}

// needsPerson is the refusal of a tool that talks to the person where none sits; its Rule is "" otherwise.
//
//go:noinline for size: it is called in many places
func (e *toolEntry) needsPerson(c toolCall) decision {
	if e.tool.unattended == nil || !e.tool.unattended(c) {
		return decision{}
	}
	return decision{Rule: toolRulePerson, Reason: "no person sits here to answer", Hint: "run tai on a terminal, or go on without the answer"}
}

// decide asks the policy. A question that could not be put means no (R8).
func (t *toolbox) decide(ctx context.Context, e *toolEntry, c toolCall, req policyRequest) decision {
	if d := e.needsPerson(c); d.Rule != "" {
		return d
	}
	d, err := t.policy.approve(ctx, req)
	if err != nil {
		return decision{Rule: d.Rule, Reason: "asking failed: " + err.Error(), Hint: d.Hint}
	}
	return d
}

// perform checks the arguments and runs the tool. Every fault becomes a failed result, a panic too: the tool's fault ends that call only.
func (t *toolbox) perform(ctx context.Context, e *toolEntry, c toolCall) (r toolResult) {
	defer func() {
		if p := recover(); p != nil {
			r = toolResult{Text: fmt.Sprintf("%s: a fault in tai itself: %v", c.Name, p), IsError: true, Fault: true}
		}
	}()
	if err := e.schema.validate(c.Args); err != nil {
		return toolResult{Text: fmt.Sprintf("%s: %v", c.Name, err), IsError: true}
	}
	if err := t.rates.take(c.Name); err != nil {
		return toolResult{Text: err.Error(), IsError: true}
	}
	r, err := e.tool.run(ctx, c)
	switch {
	case err == nil:
		return r
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return toolResult{Text: c.Name + ": interrupted", IsError: true, Hint: r.Hint}
	}
	return toolResult{Text: fmt.Sprintf("%s: %v", c.Name, err), IsError: true, Hint: r.Hint}
}

// keep takes known secrets out of a result and moves text over mcpResultMax into a record, of which the result then holds the head, the size
// and the id. full is the number of bytes of the whole text.
func (t *toolbox) keep(ctx context.Context, c toolCall, r toolResult) (kept toolResult, full int64) {
	r.Text, r.Hint, r.Shown = t.redact(r.Text), t.redact(r.Hint), t.redact(r.Shown)
	if len(r.Structured) > 0 {
		r.Structured = json.RawMessage(t.redact(string(r.Structured)))
		if checkJSON(r.Structured) != nil {
			r.Structured = nil // a secret stood where a number was; the text still tells the rest
		}
	}
	size := len(r.Text)
	if size <= mcpResultMax && len(r.Structured) <= mcpResultMax {
		return r, int64(size)
	}
	body := r.Text
	if size <= mcpResultMax {
		body = string(r.Structured)
	}
	id, err := t.store(ctx, c, body)
	r.Structured = nil
	where := "the whole is record " + id
	if err != nil {
		where = "the rest is lost: " + t.redact(err.Error())
	} else {
		r.Record, r.Structured = id, json.RawMessage(fmt.Sprintf(`{"record":%s,"size":%d}`, appendJSONString(nil, id), len(body)))
	}
	if size > mcpResultMax {
		r.Text = fmt.Sprintf("%s\n[the first bytes of %d; %s]", headOf(r.Text, toolHeadMax), size, where)
	} else {
		r.Text += fmt.Sprintf("\n[structured result of %d bytes; %s]", len(body), where)
	}
	return r, int64(size)
}

// store writes the record even when the call itself was interrupted: what a tool did is not to be lost.
func (t *toolbox) store(ctx context.Context, c toolCall, body string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toolStoreTime)
	defer cancel()
	v, err := t.vault(ctx)
	if err != nil {
		return "", errorf("open the vault: %w", err)
	}
	info, err := v.putRecord(ctx, "result", c.Name, c.Session, []byte(body))
	if err != nil {
		return "", errorf("store the record: %w", err)
	}
	return info.ID, nil
}

// headOf cuts s to at most n bytes, at the end of a line if one is near, else between characters.
func headOf(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if i := strings.LastIndexByte(s[:n], '\n'); i > n/2 {
		return s[:i]
	}
	return strings.ToValidUTF8(s[:n], "")
}

// checkTool holds a declaration to the rules for native tools: a plain name, one description, a schema that is closed, says a line about each
// property and uses only the keywords that the validator knows.
func checkTool(tl tool) (*jsonSchema, error) {
	switch {
	case !fitName(tl.Name) || strings.ToLower(tl.Name) != tl.Name:
		return nil, newError("name does not fit [a-z0-9_-]{1,64}")
	case strings.TrimSpace(tl.Description) == "" || tl.Family == "":
		return nil, newError("description and family are needed")
	case tl.run == nil:
		return nil, newError("nothing to run")
	case tl.Hints.ReadOnly && tl.Hints.Destructive:
		return nil, newError("read-only and destructive at once")
	}
	if err := joinErrors(strictSchemaKeywords(tl.Schema), checkToolSchema(tl.Schema, true)); err != nil {
		return nil, errorf("schema: %w", err)
	}
	schema, err := compileSchema(tl.Schema)
	if err != nil {
		return nil, errorf("schema: %w", err)
	}
	if tl.Output == nil {
		return schema, nil
	}
	out, err := compileSchema(tl.Output)
	if err != nil {
		return nil, errorf("output schema: %w", err)
	}
	if err := out.validate(json.RawMessage(`{"record":"r-0","size":1}`)); err != nil {
		return nil, errorf("output schema has no room for a spilled result: %w", err)
	}
	return schema, nil
}

// checkToolSchema walks one schema of a native tool; root says that it is the whole.
func checkToolSchema(raw json.RawMessage, root bool) error {
	fields, err := chatFields(raw)
	if err != nil {
		return err
	}
	if desc, ok := jsonString(fields["description"]); !root && (!ok || desc == "" || strings.Contains(desc, "\n")) {
		return newError("a property needs a description of one line")
	}
	if items := fields["items"]; items != nil {
		if inner, err := chatFields(items); err != nil || inner["type"] == nil {
			return newError("items need a type")
		}
	}
	if !root {
		return nil
	}
	if kind, _ := jsonString(fields["type"]); kind != "object" || string(fields["additionalProperties"]) != "false" {
		return newError(`the whole needs "type":"object" and "additionalProperties":false`)
	}
	props, err := jsonObject(fields["properties"])
	if err != nil {
		return errorf("properties: %w", err)
	}
	for _, p := range props {
		if err := checkToolSchema(p.Value, false); err != nil {
			return errorf("property %q: %w", p.Key, err)
		}
	}
	for _, name := range fitStrings(fields["required"]) {
		if !slices.ContainsFunc(props, func(p jsonMember) bool { return p.Key == name }) {
			return errorf("required property %q does not exist", name)
		}
	}
	return nil
}
