// This file is the client side of MCP over any transport: handshake and negotiation (MCP 2025-11-25, Lifecycle), the whole
// tool list, one tool call with its time cap and cancellation, and a new session where a server has lost the old one. It knows
// no servers by name, no policy and no pins.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const mcpCancelLimit = 2 * time.Second // for writing notifications/cancelled; the call itself has failed by then

var (
	errCallTimeout    = fmt.Errorf("no result within %v (MCP_CALL_TIMEOUT): %w", mcpCallTimeout, context.DeadlineExceeded)
	errConnectTimeout = fmt.Errorf("no connection within %v (MCP_CONNECT_TIMEOUT): %w", mcpConnectTimeout, context.DeadlineExceeded)

	// errSessionRenewed ends a request that the server refused because it no longer knew the session. There is a new one now.
	errSessionRenewed = errors.New("the server had lost the session, which has been renewed; the request was not sent again")
)

// transport moves messages to one server and back. Whoever holds it closes it.
type transport interface {
	call(ctx context.Context, m rpcMessage) (rpcMessage, error)
	notify(ctx context.Context, m rpcMessage) error
	setVersion(v string)
	close() error
	diagnostics() string
}

// sessionTransport is one that carries a session id, which is HTTP.
type sessionTransport interface {
	transport
	session() string
	dropSession()
}

// clientInfo is what tai says of itself in initialize.
type clientInfo struct{ Name, Version string }

// mcpClient is one connected server. Its methods may be called from several goroutines.
type mcpClient struct {
	t           transport
	info        clientInfo
	callTimeout time.Duration
	cancelLimit time.Duration
	lastID      atomic.Int64 // ids are never reused, not even in a new session
	changed     atomic.Bool
	lost        atomic.Bool // the session is gone and could not be renewed

	mu       sync.Mutex
	protocol string
	closed   bool
	wg       sync.WaitGroup // cancel notifications on their way

	renewing   chan struct{} // one slot; guards the fields below
	generation int           // counts handshakes
	proven     bool          // this session has answered something since its handshake
	spent400   bool          // a 400 has led to a new session, and no tool has answered since
}

// connectMCP does the handshake over t, which it owns from here on: after an error t is closed. ctx bounds the handshake, which
// is never cancelled at the server (W10).
func connectMCP(ctx context.Context, t transport, info clientInfo) (*mcpClient, error) {
	c := &mcpClient{t: t, info: info, callTimeout: mcpCallTimeout, cancelLimit: mcpCancelLimit, renewing: make(chan struct{}, 1)}
	if n, ok := t.(interface {
		setNotify(func(method string, params json.RawMessage))
	}); ok {
		n.setNotify(c.heard)
	}
	if err := c.handshake(ctx); err != nil {
		err = errorf("initialize: %w", err)
		if _, exited := errors.AsType[*stdioExitError](err); !exited { // which tells all of it itself
			if d := t.diagnostics(); d != "" {
				err = errorf("%w; %s", err, d)
			}
		}
		return nil, joinErrors(err, t.close())
	}
	return c, nil
}

// heard notes a notification of the server. A transport without setNotify is to be given it as its Notify.
func (c *mcpClient) heard(method string, _ json.RawMessage) {
	if method == methodListChanged {
		c.changed.Store(true)
	}
}

// handshake proposes the newest revision and, where the server refuses that and names others, the newest of those, once.
func (c *mcpClient) handshake(ctx context.Context) error {
	version, err := c.propose(ctx, mcpProtocolVersion)
	if other := offeredVersion(err); other != "" {
		version, err = c.propose(ctx, other)
	}
	if err != nil {
		return err
	}
	c.t.setVersion(version)
	c.mu.Lock()
	c.protocol = version
	c.mu.Unlock()
	return c.t.notify(ctx, rpcMessage{Method: methodInitialized})
}

// propose sends initialize with one revision and returns the one the server wants.
func (c *mcpClient) propose(ctx context.Context, version string) (string, error) {
	params := appendJSONString([]byte(`{"protocolVersion":`), version)
	params = appendJSONString(append(params, `,"capabilities":{},"clientInfo":{"name":`...), c.info.Name)
	params = append(appendJSONString(append(params, `,"version":`...), c.info.Version), "}}"...)
	m, err := c.t.call(ctx, rpcMessage{ID: c.newID(), Method: methodInitialize, Params: params})
	if err != nil {
		return "", err
	}
	if m.Error != nil {
		return "", m.Error
	}
	return initializeResult(m.Result, version)
}

// initializeResult checks what the server answered: a revision that tai speaks, and tools.
func initializeResult(raw json.RawMessage, asked string) (version string, err error) {
	members, err := jsonObject(raw)
	if err != nil {
		return "", errorf("result: %w", err)
	}
	var caps []jsonMember
	for _, m := range members {
		switch m.Key {
		case "protocolVersion":
			version, _ = jsonString(m.Value)
		case "capabilities":
			if caps, err = jsonObject(m.Value); err != nil {
				return "", errorf("result: member capabilities: %w", err)
			}
		}
	}
	if !slices.Contains(mcpVersions(), version) {
		return "", errorf("server answers protocol version %s to %s; tai speaks %s",
			clip(visibleLine(strconv.Quote(version)), 60), asked, strings.Join(mcpVersions(), ", "))
	}
	names := make([]string, 0, len(caps))
	for _, m := range caps {
		if m.Key == "tools" && !isNull(m.Value) {
			return version, nil
		}
		names = append(names, m.Key)
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	return "", errorf("server offers no tools (protocol version %s, its capabilities: %s)", version, clip(visibleLine(strings.Join(names, ", ")), 200))
}

// offeredVersion returns the newest other revision that tai speaks and a refusal of initialize names, or "". Servers name them
// in data.supported (-32602) or in the text of an HTTP 400.
func offeredVersion(err error) string {
	var text string
	if he, ok := errors.AsType[*mcpHTTPError](err); ok {
		if he.Status != http.StatusBadRequest {
			return ""
		}
		text = he.Message
	}
	if re, ok := errors.AsType[*rpcError](err); ok {
		text += " " + re.Message + " " + string(re.Data)
	}
	for _, v := range mcpVersions()[1:] { // the first was refused
		if strings.Contains(text, v) {
			return v
		}
	}
	return ""
}

func (c *mcpClient) newID() json.RawMessage { return strconv.AppendInt(nil, c.lastID.Add(1), 10) }

// request sends a request and returns its result. An error of the server is an *rpcError. If ctx ends first the server is told, and
// the error is ctx's cause. Where the server has lost the session and renew is true, there is a new one afterwards and the error
// is errSessionRenewed: only the caller knows whether to ask again.
func (c *mcpClient) request(ctx context.Context, method string, params json.RawMessage, renew bool) (json.RawMessage, error) {
	generation, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	id := c.newID()
	m, err := c.t.call(ctx, rpcMessage{ID: id, Method: method, Params: params})
	switch {
	case err == nil && m.Error != nil:
		c.answered(ctx, generation, method, false)
		return nil, m.Error
	case err == nil:
		c.answered(ctx, generation, method, true)
		return m.Result, nil
	case ctx.Err() != nil && c.alive():
		c.cancel(ctx, id)
		return nil, err
	}
	if he, ok := errors.AsType[*mcpHTTPError](err); ok && renew && he.SessionSent &&
		(he.Status == http.StatusNotFound || he.Status == http.StatusBadRequest) {
		return nil, c.renew(ctx, generation, he)
	}
	return nil, err
}

// current returns the number of the session in use, after a renewal that is under way.
func (c *mcpClient) current(ctx context.Context) (int, error) {
	if err := c.lockSession(ctx); err != nil {
		return 0, err
	}
	defer c.unlockSession()
	if c.lost.Load() {
		return 0, errTransportClosed
	}
	return c.generation, nil
}

func (c *mcpClient) lockSession(ctx context.Context) error {
	select {
	case c.renewing <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.renewing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *mcpClient) unlockSession() { <-c.renewing }

// answered notes that the session of that generation works. What an older one answered says nothing of the one in use.
func (c *mcpClient) answered(ctx context.Context, generation int, method string, ok bool) {
	if _, has := c.t.(sessionTransport); !has {
		return
	}
	if c.lockSession(ctx) != nil {
		return // ctx ended while the session was being renewed
	}
	defer c.unlockSession()
	if c.generation != generation {
		return
	}
	c.proven = true
	if ok && method == methodToolsCall {
		c.spent400 = false
	}
}

// renew makes a new session in place of the one of that generation, once for all requests that lost it together, and returns
// the error for the request. A session that was lost before it answered anything is not renewed again (HTC-13), and after a
// 400, which may mean something else altogether, one try is made.
func (c *mcpClient) renew(ctx context.Context, generation int, cause *mcpHTTPError) error {
	st, ok := c.t.(sessionTransport)
	if !ok {
		return cause
	}
	ctx, cancel := context.WithTimeoutCause(ctx, mcpConnectTimeout, errConnectTimeout)
	defer cancel()
	if err := c.lockSession(ctx); err != nil {
		return joinErrors(cause, err)
	}
	defer c.unlockSession()
	switch {
	case c.lost.Load():
		return cause
	case c.generation != generation: // another request has done it
		return errorf("%w: %w", errSessionRenewed, cause)
	case cause.Status == http.StatusBadRequest && c.spent400:
		return cause
	case generation > 0 && !c.proven:
		c.lost.Store(true)
		return cause
	}
	st.dropSession()
	if err := c.handshake(ctx); err != nil {
		c.lost.Store(true)
		return errorf("%w; renewing the session: %w", cause, err)
	}
	c.generation++
	c.proven = false
	c.spent400 = cause.Status == http.StatusBadRequest
	c.changed.Store(true)
	return errorf("%w: %w", errSessionRenewed, cause)
}

// cancel tells the server that a request is no longer waited for, without holding up the caller (W11). close waits for it.
func (c *mcpClient) cancel(ctx context.Context, id json.RawMessage) {
	reason := context.Cause(ctx).Error()
	params := append(append([]byte(`{"requestId":`), id...), `,"reason":`...)
	params = append(appendJSONString(params, reason), '}')
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.wg.Go(func() { // ends with its limit at the latest
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), c.cancelLimit)
		defer stop()
		c.t.notify(ctx, rpcMessage{Method: methodCancelled, Params: params}) // the call has failed already; there is nobody to tell
	})
}

// callTool sends tools/call and returns the tool's result; one that says the tool failed has IsError and is no error here. The
// error is an *rpcError if the server refused the call, errCallTimeout after mcpCallTimeout, the cause of ctx's end, or what
// the transport reports. A call is never sent twice. args is an object; nil, null and "" are the empty one.
func (c *mcpClient) callTool(ctx context.Context, name string, args json.RawMessage) (callResult, error) {
	args = bytes.TrimSpace(args)
	switch {
	case len(args) == 0, isNull(args), string(args) == `""`:
		args = json.RawMessage("{}")
	case args[0] != '{':
		return callResult{}, newError("arguments are no JSON object")
	}
	if err := checkJSON(args); err != nil {
		return callResult{}, errorf("arguments: %w", err)
	}
	params := append(make([]byte, 0, len(name)+len(args)+32), `{"name":`...)
	params = append(appendJSONString(params, name), `,"arguments":`...)
	params = append(append(params, args...), '}')
	ctx, cancel := context.WithTimeoutCause(ctx, c.callTimeout, errCallTimeout)
	defer cancel()
	raw, err := c.request(ctx, methodToolsCall, params, true)
	if err != nil {
		return callResult{}, err
	}
	return decodeCallResult(raw)
}

// version is the negotiated revision.
func (c *mcpClient) version() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.protocol
}

// stale reports that the tool list may have changed since it was last read: the server said so, or the session is a new one.
func (c *mcpClient) stale() bool { return c.changed.Load() }

// noise is what a person should know of lines that the server wrote where only messages belong (STD-06).
func (c *mcpClient) noise() []string {
	if n, ok := c.t.(interface{ noise() string }); ok {
		if text := n.noise(); text != "" {
			return []string{text}
		}
	}
	return nil
}

// alive reports whether the next call can reach the server, as far as is known.
func (c *mcpClient) alive() bool {
	if t, ok := c.t.(interface{ alive() bool }); ok && !t.alive() {
		return false
	}
	return !c.lost.Load()
}

// close ends the connection and, on stdio, the server.
func (c *mcpClient) close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wg.Wait() // a cancelled call's notification goes out before stdin is closed
	return c.t.close()
}
