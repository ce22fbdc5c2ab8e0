// This file moves JSON-RPC over Streamable HTTP (MCP 2025-11-25, Transports): one POST a message, the answer as JSON or as
// an event stream. It owns the session id and where credentials may go. It refreshes no token, stores nothing, and sends no
// GET and no DELETE. Nothing that may have acted is sent twice.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	httpAnswerTimeout = 10 * time.Second       // one answer to a request of the server
	httpAnswersMax    = 64                     // answers and drains under way; more of the server's requests stay unanswered
	httpDrainTimeout  = 250 * time.Millisecond // for the end of a stream after the answer, so that the connection can be kept
	httpDrainMax      = 64 << 10               // bytes of it
	httpRedirectMax   = 3
	httpTryMax        = 3        // sends of one message to a server that says "later"
	httpBufferMin     = 32 << 10 // bytes of a pooled buffer
	httpNotesMax      = 8        // lines kept for diagnostics
)

var errHTTPClosed = errors.New("the connection was closed")

// httpConfig describes one server. Client comes from newHTTPClient and is shared. Token, where set, is asked before each
// message; an empty one means none; it is not asked where Headers has Authorization. Renew, where set, is asked once for a message that was refused
// with a token: what it gives is sent in its place, and "" means that there is no other. Notify runs on the goroutine that reads
// the reply and must not block; params is its own to keep. Now is the clock for Retry-After, nil for the real one.
type httpConfig struct {
	URL     string
	Headers map[string]string
	Client  *http.Client
	Token   func(context.Context) (secret, error)
	Renew   func(ctx context.Context, used secret, challenge []string) (secret, error)
	Notify  func(method string, params json.RawMessage)
	Now     func() time.Time
}

// httpTransport is safe for concurrent use.
type httpTransport struct {
	url     *url.URL
	shown   string
	plain   bool // http to another machine: no credential may go there
	headers http.Header
	Scrub   httpScrub // fmt asks the type of an exported field alone
	client  http.Client
	token   func(context.Context) (secret, error)
	renew   func(context.Context, secret, []string) (secret, error)
	onNote  func(string, json.RawMessage)
	now     func() time.Time
	wait    func(context.Context, time.Duration) error
	limits  httpLimits
	buffers sync.Pool // of *[]byte
	work    sync.WaitGroup

	mu         sync.Mutex
	closed     bool
	sessionID  string
	revision   string
	running    map[int]context.CancelCauseFunc // every exchange and drain under way
	nextRun    int
	background int
	notes      []string
	notesOver  int
}

// httpLimits are the caps as fields, so that tests need not wait for them.
type httpLimits struct {
	call, answer, drain time.Duration
	body                int
	stream              int64
}

// newHTTPTransport checks the address and the headers of an entry; it sends nothing. A credential for a server on another machine
// that is not reached by https is refused.
func newHTTPTransport(c httpConfig) (*httpTransport, error) {
	u, err := url.Parse(strings.TrimSpace(c.URL))
	switch {
	case err != nil:
		return nil, newError("the server's address is no URL") // the parser's error shows all of it
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, newError("the server's address is no http or https URL")
	}
	u.Fragment, u.RawFragment = "", ""
	shown := shownURL(u)
	h, ignored, err := entryHeaders(c.Headers)
	if err != nil {
		return nil, errorf("%s: %w", shown, err)
	}
	plain := u.Scheme == "http" && !isLoopbackHost(u.Hostname())
	if what := plainCredential(u, h); plain && what != "" {
		return nil, errorf("%s: %s would cross the network unencrypted; use https", shown, what)
	}
	t := &httpTransport{
		url: u, shown: shown, plain: plain, headers: h, client: *c.Client, token: c.Token, renew: c.Renew, onNote: c.Notify,
		now: c.Now, wait: httpWait, running: map[int]context.CancelCauseFunc{},
		limits: httpLimits{call: mcpCallTimeout, answer: httpAnswerTimeout, drain: httpDrainTimeout, body: mcpHTTPMaxBody, stream: httpStreamMax},
	}
	t.client.CheckRedirect, t.client.Jar = noRedirect, nil
	t.Scrub = entryScrub(u, h)
	if t.now == nil {
		t.now = time.Now
	}
	if h[headerAuthorize] != nil || u.User != nil {
		t.token = nil
	}
	for _, name := range ignored {
		t.note("header " + name + " of the entry is not used: it is set for each message")
	}
	h["Accept"] = []string{httpTypeJSON + ", " + httpTypeSSE}
	h["Content-Type"] = []string{httpTypeJSON}
	h["Accept-Encoding"] = []string{"gzip"}
	if isLoopbackHost(u.Hostname()) {
		h["Accept-Encoding"] = []string{"identity"}
	}
	if h["User-Agent"] == nil {
		h["User-Agent"] = []string{"tai"}
	}
	return t, nil
}

// setNotify sets who hears the server's notifications besides the configured one. It is called before the first message.
func (t *httpTransport) setNotify(f func(method string, params json.RawMessage)) {
	if first := t.onNote; first != nil {
		t.onNote = func(method string, params json.RawMessage) { first(method, params); f(method, params) }
		return
	}
	t.onNote = f
}

// entryScrub collects what an entry sends and an error must not show.
func entryScrub(u *url.URL, h http.Header) httpScrub {
	var s httpScrub
	for name, values := range h {
		if c := credentialName(name); c || len(values[0]) >= httpValueMin {
			s = s.add(name, values[0], c)
		}
	}
	for name, values := range u.Query() {
		for _, v := range values {
			if credentialName(name) || len(v) >= httpValueMin {
				s = s.add("address", v, false)
			}
		}
	}
	if password, ok := u.User.Password(); ok {
		s = s.add("address", password, false)
	}
	return s
}

// call sends a request and returns the response to it, which may hold an error of the server. Without a deadline on ctx the
// call cap applies. After any other error than an mcpHTTPError it is unknown whether the request was carried out.
func (t *httpTransport) call(ctx context.Context, m rpcMessage) (rpcMessage, error) {
	run, x, err := t.begin(ctx)
	if err != nil {
		return rpcMessage{}, err
	}
	defer x.end()
	resp, scrub, err := t.post(run, x.deadline, m.Method, appendMessage(nil, m))
	if err != nil {
		return rpcMessage{}, t.outcome(run, err)
	}
	answer, err := t.reply(run, x, m, resp, scrub)
	if err != nil {
		return rpcMessage{}, t.outcome(run, err)
	}
	if answer.Error != nil {
		answer.Error.Message = scrub.text(answer.Error.Message)
	}
	if m.Method == methodInitialize && answer.Error == nil {
		t.adoptSession(resp.Header.Get(headerSession))
	}
	return answer, nil
}

// notify sends a notification. Any 2xx will do (the protocol says 202).
func (t *httpTransport) notify(ctx context.Context, m rpcMessage) error {
	return t.deliver(ctx, m.Method, appendMessage(nil, m))
}

// deliver posts what gets no answer: a notification, or a response to a request of the server (method "").
func (t *httpTransport) deliver(ctx context.Context, method string, body []byte) error {
	run, x, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer x.end()
	resp, _, err := t.post(run, x.deadline, method, body)
	if err != nil {
		return t.outcome(run, err)
	}
	if resp.Body == http.NoBody {
		return nil
	}
	x.drain(resp.Body)
	return nil
}

// setVersion gives the revision that the handshake agreed on; every message but initialize carries it from then on.
func (t *httpTransport) setVersion(v string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.revision = v
}

// session returns the session id in use, "" for none. It is a credential of a kind: not for logs.
func (t *httpTransport) session() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sessionID
}

// dropSession forgets the session; the next messages carry none.
func (t *httpTransport) dropSession() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessionID = ""
}

// close forgets the session (no DELETE is sent), ends what is under way and waits for the transport's own goroutines.
func (t *httpTransport) close() error {
	t.mu.Lock()
	t.closed, t.sessionID = true, ""
	cancels := slices.Collect(maps.Values(t.running))
	t.mu.Unlock()
	for _, cancel := range cancels {
		cancel(errHTTPClosed)
	}
	t.work.Wait()
	t.client.CloseIdleConnections()
	return nil
}

// diagnostics returns what was passed over without failing a call, one line each, safe to show.
func (t *httpTransport) diagnostics() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.Join(t.notes, "\n")
	if t.notesOver > 0 {
		s += fmt.Sprintf("\n(and %d more)", t.notesOver)
	}
	return s
}

func (t *httpTransport) note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.notes) == httpNotesMax {
		t.notesOver++
		return
	}
	t.notes = append(t.notes, t.Scrub.clean(text))
}

// httpExchange is one message under way. Its context follows the caller's until the answer is there, and may outlive the call
// to read the end of the stream.
type httpExchange struct {
	t        *httpTransport
	key      int
	deadline time.Time
	detach   func() bool
	cancel   context.CancelCauseFunc
	free     context.CancelFunc
	kept     bool // a drain ends it, not the call
}

// begin gives an exchange its one deadline and makes it known to close.
func (t *httpTransport) begin(ctx context.Context) (context.Context, *httpExchange, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, errorf("%s: %w", t.shown, err)
	}
	x := &httpExchange{t: t, free: func() {}}
	limited := ctx
	if _, ok := ctx.Deadline(); !ok {
		limited, x.free = context.WithTimeout(ctx, t.limits.call)
	}
	x.deadline, _ = limited.Deadline()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		x.free()
		return nil, nil, errorf("%s: %w", t.shown, errHTTPClosed)
	}
	run, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	x.cancel, x.key = cancel, t.nextRun
	x.detach = context.AfterFunc(limited, func() { cancel(context.Cause(limited)) })
	t.running[x.key] = cancel
	t.nextRun++
	return run, x, nil
}

func (x *httpExchange) end() {
	if !x.kept {
		x.finish()
	}
}

func (x *httpExchange) finish() {
	x.detach()
	x.cancel(nil)
	x.free()
	x.t.mu.Lock()
	defer x.t.mu.Unlock()
	delete(x.t.running, x.key)
}

// drain reads what is left of a body for a moment, in the background, so that the connection can serve the next message.
func (x *httpExchange) drain(body io.ReadCloser) {
	x.kept = true
	x.detach()
	limit := time.AfterFunc(x.t.limits.drain, x.finish) // canceling the request ends a read that blocks
	finish := func() {
		limit.Stop()
		body.Close()
		x.finish()
	}
	started := x.t.spawn(func() { // ends at the end of the body, at httpDrainMax, at the limit or at close
		io.CopyN(io.Discard, body, httpDrainMax) // how it ends does not matter: closing keeps or drops the connection
		finish()
	})
	if !started {
		finish()
	}
}

// spawn starts a goroutine that close waits for, unless there are too many or the transport is closed.
func (t *httpTransport) spawn(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.background == httpAnswersMax {
		return false
	}
	t.background++
	t.work.Go(func() {
		defer func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.background--
		}()
		f()
	})
	return true
}

// outcome names the server and, where time or a cancel ended the exchange, that rather than the read that noticed.
func (t *httpTransport) outcome(run context.Context, err error) error {
	_, answered := errors.AsType[*mcpHTTPError](err)
	if cause := context.Cause(run); cause != nil && !(answered && errors.Is(err, cause)) { // that names both
		return errorf("%s: %w", t.shown, cause)
	}
	if answered {
		return err
	}
	return errorf("%s: %w", t.shown, err)
}

// post sends body until a server takes it: along redirects within the origin and, where the server says 429 or 503 and when
// to come back, after a wait that the deadline allows. Both mean that the message was not acted on. It returns a 2xx alone,
// and with it what texts from this exchange must not show.
func (t *httpTransport) post(run context.Context, deadline time.Time, method string, body []byte) (*http.Response, httpScrub, error) {
	if len(body) > t.limits.body {
		return nil, nil, errorf("message of %d bytes is over the cap of %d", len(body), t.limits.body)
	}
	h, scrub, used, err := t.header(run, method)
	if err != nil {
		return nil, nil, err
	}
	to, redirects, tries := t.url, 0, 1
	for {
		resp, err := t.send(run, to, h, body)
		if err != nil {
			return nil, nil, sendFault(err, scrub)
		}
		switch wait, later := t.later(resp, deadline); {
		case resp.StatusCode >= 200 && resp.StatusCode < 300:
			return resp, scrub, nil
		case isRedirect(resp.StatusCode):
			resp.Body.Close()
			if to, err = t.redirected(resp, to, redirects); err != nil {
				return nil, nil, err
			}
			redirects++
		case later && tries < httpTryMax:
			resp.Body.Close()
			if err := t.wait(run, wait); err != nil {
				return nil, nil, err
			}
			tries++
		default:
			e := httpFault(resp, shownURL(to), scrub, t.now())
			e.SessionSent = h[headerSession] != nil
			resp.Body.Close()
			if e.Status != http.StatusUnauthorized || used == "" || t.renew == nil {
				return nil, nil, e
			}
			fresh, err := t.renew(run, used, e.Challenge)
			if err != nil {
				return nil, nil, errorf("%w; %w", e, err)
			}
			if used = ""; fresh == "" {
				return nil, nil, e
			}
			if scrub, err = t.bear(h, scrub, fresh); err != nil {
				return nil, nil, err
			}
		}
	}
}

// bear puts a token into the headers of a message, and among what its error texts must not show.
func (t *httpTransport) bear(h http.Header, scrub httpScrub, token secret) (httpScrub, error) {
	v := token.reveal()
	if t.plain {
		return nil, newError("a token would cross the network unencrypted; use https")
	}
	if !usableToken(v) {
		return nil, newError("the stored token holds characters that no token has")
	}
	h[headerAuthorize] = []string{"Bearer " + v}
	return scrub.add("token", v, false), nil
}

// header makes the headers of one message, what its error texts must not show, and the token in it, "" for none.
func (t *httpTransport) header(ctx context.Context, method string) (h http.Header, scrub httpScrub, token secret, err error) {
	h, scrub = maps.Clone(t.headers), slices.Clip(t.Scrub)
	if t.token != nil {
		if token, err = t.token(ctx); err != nil {
			return nil, nil, "", errorf("token for %s: %w", t.shown, err)
		}
	}
	if token != "" {
		if scrub, err = t.bear(h, scrub, token); err != nil {
			return nil, nil, "", err
		}
	}
	if repeatable(method) {
		// An entry without a value is not sent. It allows net/http to send again on a new connection where an idle one
		// turns out to be closed (net/http, Transport).
		h["Idempotency-Key"] = nil
	}
	if method == methodInitialize {
		return h, scrub, token, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sessionID != "" {
		h[headerSession] = []string{t.sessionID}
		scrub = scrub.add("session", t.sessionID, false)
	}
	if t.revision != "" {
		h[headerProtocol] = []string{t.revision}
	}
	return h, scrub, token, nil
}

func (t *httpTransport) send(ctx context.Context, to *url.URL, h http.Header, body []byte) (*http.Response, error) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	first, _ := open()
	req := &http.Request{
		Method: http.MethodPost, URL: to, Host: to.Host, Header: h, Body: first, GetBody: open,
		ContentLength: int64(len(body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return t.client.Do(req.WithContext(ctx))
}

// later reports that the server asks to send the same again, when, and whether that is before the deadline.
func (t *httpTransport) later(resp *http.Response, deadline time.Time) (time.Duration, bool) {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	now := t.now()
	d, ok := retryAfter(resp.Header, now)
	return d, ok && now.Add(d).Before(deadline)
}

// redirected returns where to post next. Only 307 and 308 keep the POST, and only the own origin may have what is sent.
func (t *httpTransport) redirected(resp *http.Response, from *url.URL, done int) (*url.URL, error) {
	e := &mcpHTTPError{Status: resp.StatusCode, URL: shownURL(from)}
	next, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || next.Hostname() == "" {
		e.Message = "it redirects to an address that is none"
		return nil, e
	}
	here, there := visibleLine(urlOrigin(from)), clip(visibleLine(urlOrigin(next)), httpErrorText)
	switch {
	case here != there:
		e.Message = fmt.Sprintf("redirect from %s to %s refused; if the server moved, add its new address", here, there)
	case resp.StatusCode < 307:
		e.Message = fmt.Sprintf("redirect within %s (to %s) refused: it would turn the POST into a GET", here, there)
	case done == httpRedirectMax:
		e.Message = fmt.Sprintf("redirected more than %d times", httpRedirectMax)
	default:
		next.User, next.Fragment, next.RawFragment = from.User, "", ""
		return next, nil
	}
	return nil, e
}

// reply reads the answer to m out of a 2xx response and closes its body, or leaves that to a drain.
func (t *httpTransport) reply(run context.Context, x *httpExchange, m rpcMessage, resp *http.Response, scrub httpScrub) (rpcMessage, error) {
	p := &replyReader{id: m.ID, batch: t.version() == mcpVersionBatch, note: t.note, peer: func(m rpcMessage) { t.fromPeer(run, m) }}
	kind := mediaType(resp.Header)
	switch {
	case resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent:
		resp.Body.Close()
		return rpcMessage{}, &mcpHTTPError{Status: resp.StatusCode, URL: t.shown, Message: "the request was taken but not answered"}
	case kind == httpTypeJSON:
		defer resp.Body.Close()
		return t.replyJSON(p, resp)
	case kind == httpTypeSSE:
		answer, err := t.replySSE(p, resp)
		if err != nil {
			resp.Body.Close()
			return rpcMessage{}, err
		}
		x.drain(resp.Body)
		return answer, nil
	}
	defer resp.Body.Close()
	e := httpFault(resp, t.shown, scrub, t.now())
	e.RPC, e.Message = nil, strings.TrimSpace(fmt.Sprintf("not an MCP answer (type %q): %s", clip(visibleLine(kind), 60), e.Message))
	return rpcMessage{}, e
}

func (t *httpTransport) replyJSON(p *replyReader, resp *http.Response) (rpcMessage, error) {
	body, err := decodedBody(resp)
	if err != nil {
		return rpcMessage{}, err
	}
	length := resp.ContentLength
	if body != io.Reader(resp.Body) {
		length = -1
	}
	first := t.buffer()
	defer t.buffers.Put(first)
	b, err := readBody(body, length, t.limits.body, *first)
	if err != nil {
		return rpcMessage{}, errorf("read the reply: %w", err)
	}
	m, err := p.fromJSON(b)
	return ownMessage(m, b, *first), err
}

func (t *httpTransport) replySSE(p *replyReader, resp *http.Response) (rpcMessage, error) {
	body, err := decodedBody(resp)
	if err != nil {
		return rpcMessage{}, err
	}
	most := t.limits.stream
	if body != io.Reader(resp.Body) { // packed: a small stream may stand for an endless one
		most = int64(t.limits.body)
	}
	first := t.buffer()
	defer t.buffers.Put(first)
	s := newSSEReader(&cappedReader{src: body, left: most}, t.limits.body, *first)
	m, err := p.fromSSE(s)
	if err != nil {
		return rpcMessage{}, errorf("read the reply: %w", err)
	}
	return ownMessage(m, s.buf, *first), nil
}

func (t *httpTransport) buffer() *[]byte {
	if b, ok := t.buffers.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, httpBufferMin)
	return &b
}

func (t *httpTransport) version() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.revision
}

// adoptSession takes the id that came with the answer to initialize.
func (t *httpTransport) adoptSession(id string) {
	if id != "" && !validSession(id) {
		t.note("the session id of the server holds characters that are not allowed and is not used")
		id = ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.sessionID = id
	}
}

// fromPeer handles what a server sends on the stream before its answer. A request is answered by a POST of its own, beside the
// stream: some servers answer only after that.
func (t *httpTransport) fromPeer(ctx context.Context, m rpcMessage) {
	reply, ok := answerPeer(m)
	if !ok {
		if t.onNote != nil && m.kind() == rpcNotification {
			t.onNote(m.Method, bytes.Clone(m.Params))
		}
		return
	}
	body := appendMessage(nil, reply)
	started := t.spawn(func() { // ends with the POST, at httpAnswerTimeout or at close
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.limits.answer)
		defer cancel()
		if err := t.deliver(ctx, "", body); err != nil {
			t.note("answer to a request of the server: " + err.Error())
		}
	})
	if !started {
		t.note("a request of the server was left unanswered: too many at a time")
	}
}
