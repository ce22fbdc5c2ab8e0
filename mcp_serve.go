// This file is the core of tai as an MCP server, the same behind every door: what each method answers, which calls are under way, and how
// they are cancelled (MCP 2024-11-05, 2025-06-18 and 2025-11-25). It knows no transport and reaches no bridged tool: all that it
// may run is what dispatchNative runs. What a door serves beyond the native tools is declared in the toolbox it is given.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	serveCallTimeout = 660 * time.Second // one served tools/call; more than the 600 s that a tool may be asked to take
	serveMaxCalls    = 256               // tools/call under way at a time, over all sessions
	serveEchoMax     = 100               // bytes of a client's own word repeated in an error
)

// servesVersion reports a revision that tai speaks as a server. 2025-03-26 is not among them: it would have tai take batches.
func servesVersion(v string) bool {
	return v == mcpProtocolVersion || v == "2025-06-18" || v == "2024-11-05"
}

// servesMethod reports a request that tai answers with anything but -32601.
func servesMethod(method string) bool {
	switch method {
	case methodInitialize, methodPing, methodToolsList, methodToolsCall:
		return true
	}
	return false
}

// serveCore answers messages. It is safe for concurrent use.
type serveCore struct {
	tools       *toolbox
	origin      string // of its calls in the run log: http or mcp
	profile     string
	version     string
	list        []byte          // the result of tools/list
	structured  map[string]bool // tools that declare an outputSchema
	log         func(string)
	callTimeout time.Duration
	asJSON      bool         // a result's text is the JSON of the result
	ended       func(string) // is told of each session that has ended, by its name; nil: nobody cares

	mu    sync.Mutex
	calls map[*servedCall]struct{}
}

// servedCall is one tools/call under way. ID is the request's id as it came.
type servedCall struct {
	session   string
	id        string
	cancel    context.CancelFunc
	cancelled bool // by the client, who then gets no answer
}

// newServeCore writes the tool list once. log takes single lines for the person who runs the server.
func newServeCore(tools *toolbox, origin, profile, version string, log func(string)) *serveCore {
	c := &serveCore{tools: tools, origin: origin, profile: profile, version: version, log: log, callTimeout: serveCallTimeout, structured: map[string]bool{}, calls: map[*servedCall]struct{}{}}
	c.list = append(c.list, `{"tools":[`...)
	for i, t := range tools.natives() {
		if i > 0 {
			c.list = append(c.list, ',')
		}
		c.list = appendServedTool(c.list, t.def())
		c.structured[t.Name] = t.Output != nil
	}
	c.list = append(c.list, "]}"...)
	return c
}

func appendServedTool(dst []byte, d toolDef) []byte {
	dst = appendJSONString(append(dst, `{"name":`...), d.Name)
	dst = appendJSONString(append(dst, `,"description":`...), d.Description)
	dst = compactJSON(append(dst, `,"inputSchema":`...), d.InputSchema)
	if d.OutputSchema != nil {
		dst = compactJSON(append(dst, `,"outputSchema":`...), d.OutputSchema)
	}
	return append(compactJSON(append(dst, `,"annotations":`...), d.Annotations), '}')
}

// reply appends to dst the answer to m, one message. It appends nothing where none is due: to a notification, to a response, and to a call
// that the client has cancelled. session names the session to the tools; it is no credential. A panic ends this request alone.
func (c *serveCore) reply(ctx context.Context, dst []byte, session string, m rpcMessage) []byte {
	switch {
	case m.kind() != rpcRequest:
		c.note(session, m)
		return dst
	case m.Method != methodToolsCall:
		return c.answer(ctx, dst, m, nil)
	}
	ctx, call, fault := c.start(ctx, session, m.ID)
	if fault != nil {
		return appendMessage(dst, rpcMessage{ID: m.ID, Error: fault})
	}
	return c.answer(ctx, dst, m, call)
}

// start puts a call under way, so that a cancel that comes after it finds it. The caller answers it, under the context given back.
func (c *serveCore) start(ctx context.Context, session string, id json.RawMessage) (context.Context, *servedCall, *rpcError) {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	call := &servedCall{session: session, id: string(id), cancel: cancel}
	if !c.begin(call) {
		cancel()
		return nil, nil, &rpcError{Code: codeInternal, Message: fmt.Sprintf("busy: %d calls are under way, no more are taken until one ends", serveMaxCalls)}
	}
	return ctx, call, nil
}

// answer appends the answer to a request, nothing to a call that the client has cancelled. call is the one that start gave for m, nil for
// any other request; it has ended when answer returns.
func (c *serveCore) answer(ctx context.Context, dst []byte, m rpcMessage, call *servedCall) (out []byte) {
	start := len(dst)
	if call != nil {
		defer c.end(call)
	}
	defer func() {
		if p := recover(); p != nil {
			out = appendMessage(dst[:start], rpcMessage{ID: m.ID, Error: c.fault(m.Method, p)})
		}
	}()
	dst = append(append(append(dst, `{"jsonrpc":"2.0","id":`...), m.ID...), `,"result":`...)
	out, fault := c.result(ctx, dst, m, call)
	switch {
	case fault != nil:
		return appendMessage(dst[:start], rpcMessage{ID: m.ID, Error: fault})
	case out == nil:
		return dst[:start]
	}
	return append(out, '}')
}

// fault is what a client hears of a panic: nothing of where and why, which the person at the server reads.
func (c *serveCore) fault(where string, why any) *rpcError {
	c.log(visibleLine(clip(fmt.Sprintf("fault in %s: %v", where, why), 500)))
	return &rpcError{Code: codeInternal, Message: "a fault in tai itself; the server goes on"}
}

// result appends the result of a request. Nil and no error mean that the client wants none any more.
func (c *serveCore) result(ctx context.Context, dst []byte, m rpcMessage, call *servedCall) ([]byte, *rpcError) {
	switch m.Method {
	case methodPing:
		return append(dst, "{}"...), nil
	case methodInitialize:
		version, fault := negotiate(m.Params)
		return c.appendInitialize(dst, version), fault
	case methodToolsList:
		return append(dst, c.list...), checkListParams(m.Params)
	case methodToolsCall:
		return c.callTool(ctx, dst, call, m.Params)
	}
	return nil, &rpcError{Code: codeUnknownMethod, Message: "tai serves no method " + echoed(m.Method)}
}

// echoed makes a client's own word fit to stand in an answer.
func echoed(s string) string { return strconv.Quote(clip(visibleLine(s), serveEchoMax)) }

// negotiate reads the parameters of initialize and gives the revision to answer: the one asked for if tai serves it, else its own newest
// (MCP 2025-11-25, Lifecycle, Version Negotiation).
func negotiate(params json.RawMessage) (string, *rpcError) {
	members, err := jsonObject(params)
	if err != nil {
		return "", &rpcError{Code: codeInvalidParams, Message: "params of initialize are no object"}
	}
	for _, p := range members {
		if p.Key != "protocolVersion" {
			continue
		}
		if v, ok := jsonString(p.Value); !ok {
			break
		} else if servesVersion(v) {
			return v, nil
		}
		return mcpProtocolVersion, nil
	}
	return "", &rpcError{Code: codeInvalidParams, Message: "params of initialize need protocolVersion, a string"}
}

func (c *serveCore) appendInitialize(dst []byte, version string) []byte {
	dst = append(append(append(dst, `{"protocolVersion":"`...), version...), `","capabilities":{"tools":{}},"serverInfo":{"name":"tai","version":`...)
	return append(appendJSONString(dst, c.version), "}}"...)
}

// checkListParams refuses every cursor but an empty one: the list is one page, so tai has given none out.
func checkListParams(params json.RawMessage) *rpcError {
	if params == nil {
		return nil
	}
	members, err := jsonObject(params)
	if err != nil {
		return &rpcError{Code: codeInvalidParams, Message: "params of tools/list are no object"}
	}
	for _, p := range members {
		if p.Key == "cursor" && !isNull(p.Value) && string(p.Value) != `""` {
			return &rpcError{Code: codeInvalidParams, Message: "unknown cursor: tools/list is one page"}
		}
	}
	return nil
}

// callParams reads the parameters of tools/call. Absent arguments are none; whether they are an object is dispatchNative's to say.
func callParams(params json.RawMessage) (name string, args json.RawMessage, fault *rpcError) {
	var few [4]jsonMember
	members, err := jsonObjectInto(few[:0], params)
	if err != nil {
		return "", nil, &rpcError{Code: codeInvalidParams, Message: "params of tools/call are no object"}
	}
	for _, p := range members {
		switch p.Key {
		case "name":
			name, _ = jsonString(p.Value)
		case "arguments":
			args = bytes.Clone(p.Value) // a tool may keep them longer than the message's buffer lives
		}
	}
	if name == "" {
		return "", nil, &rpcError{Code: codeInvalidParams, Message: "params of tools/call need name, a string"}
	}
	return name, args, nil
}

// callTool runs one native tool. A refusal is -32001 and names its rule; a failure of the tool is a result with isError.
func (c *serveCore) callTool(ctx context.Context, dst []byte, call *servedCall, params json.RawMessage) ([]byte, *rpcError) {
	name, args, fault := callParams(params)
	if fault != nil {
		return nil, fault
	}
	r, err := c.tools.dispatchNative(ctx, toolCall{Name: name, Args: args, Origin: c.origin, Profile: c.profile, Session: call.session})
	switch fault, isRPC := errors.AsType[*rpcError](err); {
	case c.wasCancelled(call):
		return nil, nil
	case isRPC:
		return nil, fault
	case err != nil:
		c.log(visibleLine(err.Error()))
		return nil, &rpcError{Code: codeInternal, Message: clip(visibleLine(c.tools.redact(err.Error())), 500)}
	case r.Fault:
		return nil, c.fault(name, r.Text)
	case r.Rule != "":
		return nil, deniedError(r)
	}
	dst = appendToolResult(dst, r, c.asJSON)
	if c.structured[name] && len(r.Structured) == 0 && !r.IsError { // clients refuse a result without what its tool declares (MCP 2025-11-25, Output Schema)
		dst = append(bytes.TrimSuffix(dst, []byte("}")), `,"structuredContent":{}}`...)
	}
	return dst, nil
}

// deniedError is what a refused call gets over MCP. The rule and the way out are in the message for a reader and in data for a program.
func deniedError(r toolResult) *rpcError {
	data := appendJSONString([]byte(`{"rule":`), r.Rule)
	if r.Hint != "" && !strings.Contains(r.Text, r.Hint) { // many clients show the message alone
		r.Text += "; " + r.Hint
	}
	if r.Hint != "" {
		data = appendJSONString(append(data, `,"hint":`...), r.Hint)
	}
	return &rpcError{Code: codeDenied, Message: r.Text, Data: append(data, '}')}
}

// appendToolResult writes what a tool gave. asJSON has the text be the JSON of the result (a failure's stays plain): the structured content
// where there is one, which is then all of it, else an object of the text. A word about the result for the reader is a part of its own.
func appendToolResult(dst []byte, r toolResult, asJSON bool) []byte {
	text, notice := r.Text, r.Notice
	switch {
	case !asJSON || r.IsError:
		if r.Hint != "" {
			text += "\nhint: " + r.Hint
		}
	case len(r.Structured) > 0 && r.Record == "":
		text, notice = string(compactJSON(nil, r.Structured)), strings.TrimSpace(r.Notice+"\n"+r.Hint)
	default:
		text = resultJSON(r)
	}
	dst = appendTextPart(append(dst, `{"content":[`...), text)
	if notice != "" {
		dst = appendTextPart(append(dst, ','), notice)
	}
	dst = append(dst, ']')
	if len(r.Structured) > 0 {
		dst = appendRaw(append(dst, `,"structuredContent":`...), r.Structured)
	}
	return append(strconv.AppendBool(append(dst, `,"isError":`...), r.IsError), '}')
}

func appendTextPart(dst []byte, text string) []byte {
	return append(appendJSONString(append(dst, `{"type":"text","text":`...), text), '}')
}

// resultJSON is the JSON of a result that has no structured content of its own.
func resultJSON(r toolResult) string {
	b := appendJSONString([]byte(`{"text":`), r.Text)
	if r.Hint != "" {
		b = appendJSONString(append(b, `,"hint":`...), r.Hint)
	}
	if r.Record != "" {
		b = appendJSONString(append(b, `,"record":`...), r.Record)
	}
	return string(append(b, '}'))
}

// newServedSession names a served session to tools and records. It opens nothing.
func newServedSession() string { return "s-" + strings.ToLower(rand.Text()[:8]) }

func (c *serveCore) begin(call *servedCall) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) >= serveMaxCalls {
		return false
	}
	c.calls[call] = struct{}{}
	return true
}

func (c *serveCore) end(call *servedCall) {
	call.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, call)
}

func (c *serveCore) wasCancelled(call *servedCall) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return call.cancelled
}

// note takes what needs no answer. Only a cancel means anything: it ends the client's own call of that id, if it is still under way.
func (c *serveCore) note(session string, m rpcMessage) {
	if m.Method != methodCancelled {
		return
	}
	members, err := jsonObject(m.Params)
	if err != nil {
		return // a notification is never answered, not even a malformed one
	}
	for _, p := range members {
		if p.Key == "requestId" {
			c.cancelCalls(true, func(call *servedCall) bool { return call.session == session && call.id == string(p.Value) })
		}
	}
}

// cancelSession ends the calls of a session that its client has ended.
func (c *serveCore) cancelSession(session string) {
	c.cancelCalls(true, func(call *servedCall) bool { return call.session == session })
}

// forget is told of each session that is no more, whoever ended it.
func (c *serveCore) forget(session string) {
	if c.ended != nil {
		c.ended(session)
	}
}

// tellWaiting says what an end waits for, if it does.
func (c *serveCore) tellWaiting(grace time.Duration) {
	c.mu.Lock()
	n := len(c.calls)
	c.mu.Unlock()
	if n > 0 {
		c.log(fmt.Sprintf("%s under way: cancelled after %v; a second Ctrl-C ends tai at once", plural(n, "call"), grace))
	}
}

// cancelAll ends every call; each is answered with how far it came.
func (c *serveCore) cancelAll() {
	c.cancelCalls(false, func(*servedCall) bool { return true })
}

func (c *serveCore) cancelCalls(byClient bool, match func(*servedCall) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for call := range c.calls {
		if match(call) {
			call.cancelled = call.cancelled || byClient
			call.cancel()
		}
	}
}
