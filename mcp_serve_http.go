// This file is the HTTP door of tai as an MCP server: one path, POST and DELETE, sessions (MCP 2025-11-25, Transports, Streamable HTTP).
// It decides who may speak before it reads what is said, in the order: Origin and Host, path, key, method, type, size, JSON,
// revision, session. What a message means is the core's. There is no stream, and a lost connection is no cancel.
package main

import (
	"container/list"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	mcpDefaultPort = 8765
	mcpDefaultBind = "127.0.0.1"
	mcpPath        = "/mcp"

	serveHeaderTime = 5 * time.Second   // request line and headers; a connection that sends nothing is closed then too
	serveBodyTime   = 30 * time.Second  // the whole body of one request
	serveWriteTime  = 30 * time.Second  // the whole of one answer
	serveIdleTime   = 120 * time.Second // a kept connection without a request
	serveLinger     = time.Second       // for the rest of a body that was refused unread
	serveGrace      = 5 * time.Second   // at the end, for calls under way; then they are cancelled and get it once more
	serveHeaderMax  = 32 << 10          // bytes of request line and headers; more is 431
	serveBufferMax  = 64 << 10          // bytes of a buffer that is kept for the next request
)

// methodDiscover is how clients of later revisions ask first. They want a plain "no such method" and then initialize.
const methodDiscover = "server/discover"

// serveConfig is what one HTTP server is made of. Everything in Tools is served. Open means that no key is needed, which only a server on
// loopback may do without. Bind "" means loopback, Port 0 a free one. Each of AllowedOrigins is scheme://host[:port]. Origin names the calls in
// the run log. AsJSON has a result's text be the JSON of the result. Ended, which may be nil, is told of each session that is no more. Now nil
// means the real clock; Log gets single lines for the person who runs the server, nil means that nobody reads them.
type serveConfig struct {
	Tools          *toolbox
	Key            secret
	Open           bool
	Bind           string
	Port           int
	AllowedOrigins []string
	Now            func() time.Time
	Version        string
	Origin         string
	Profile        string
	AsJSON         bool
	Ended          func(session string)
	Log            func(string)
}

// serveLimits are the waits and sizes of the door; tests shorten them.
type serveLimits struct {
	header, body, write, idle, linger, grace time.Duration
	maxBody                                  int64
	session                                  time.Duration // without a request, then the session is dropped
	sessions                                 int
}

func defaultServeLimits() serveLimits {
	return serveLimits{
		header: serveHeaderTime, body: serveBodyTime, write: serveWriteTime, idle: serveIdleTime, linger: serveLinger, grace: serveGrace,
		maxBody: mcpHTTPMaxBody, session: mcpSessionIdle, sessions: mcpMaxSessions,
	}
}

// mcpServer is an http.Handler.
type mcpServer struct {
	core     *serveCore
	key      [sha256.Size]byte
	open     bool // no key is needed
	bind     string
	port     int
	loopback bool // bound to this machine alone
	origins  map[string]struct{}
	now      func() time.Time
	log      func(string)
	limits   serveLimits
	buffers  sync.Pool // of *[]byte

	mu       sync.Mutex
	sessions map[string]*serveSession
	used     list.List // of *serveSession, the one used last in front
}

// serveSession is one client's session. Its id is as secret as the client keeps it; name is what tools and records see.
type serveSession struct {
	id, name string
	seen     time.Time
	busy     int // requests under way
	place    *list.Element
}

// newMCPServer checks the configuration. The server answers through ServeHTTP at once; serve listens.
func newMCPServer(c serveConfig) (*mcpServer, error) {
	s := &mcpServer{
		bind: strings.Trim(c.Bind, "[]"), port: c.Port, now: c.Now, log: c.Log, limits: defaultServeLimits(),
		origins: map[string]struct{}{}, sessions: map[string]*serveSession{},
	}
	if s.bind == "" {
		s.bind = mcpDefaultBind
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = func(string) {}
	}
	switch err := checkServeKey(c.Key); {
	case !c.Open && err != nil:
		return nil, err
	case c.Open && (c.Key != "" || !isLoopbackHost(s.bind)):
		return nil, errorf("whoever reaches %s could call: without a key only this machine is served", quoteClip(s.bind))
	}
	if c.Port < 0 || c.Port > 65535 {
		return nil, errorf("port %d is not within 0 to 65535", c.Port)
	}
	for _, o := range c.AllowedOrigins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, errorf("allowed origin %s: expected scheme://host[:port]", quoteClip(o))
		}
		if strings.Trim(strings.ToLower(u.Hostname()), "abcdefghijklmnopqrstuvwxyz0123456789.-_:") != "" { // such as *: no browser sends it, so it would allow nothing
			return nil, errorf("allowed origin %s: expected one host as a browser sends it, without * and with xn-- for letters outside ASCII", quoteClip(o))
		}
		s.origins[urlOrigin(u)] = struct{}{}
	}
	s.key, s.open = sha256.Sum256([]byte(c.Key.reveal())), c.Open
	s.loopback = isLoopbackHost(s.bind)
	s.buffers.New = func() any { b := make([]byte, 0, 4<<10); return &b }
	s.core = newServeCore(c.Tools, c.Origin, c.Profile, c.Version, s.log)
	s.core.asJSON, s.core.ended = c.AsJSON, c.Ended
	return s, nil
}

// checkServeKey refuses a key that no client could send: empty, or with anything but visible ASCII (RFC 6750, section 2.1).
func checkServeKey(key secret) error {
	if key == "" {
		return newError("the key is empty")
	}
	for _, c := range []byte(key.reveal()) {
		if c <= ' ' || c > '~' {
			return newError("the key holds a blank, a control character or a letter outside ASCII, which no client can send")
		}
	}
	return nil
}

// ServeHTTP answers one request.
func (s *mcpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	foreign, ok := s.originAllowed(r)
	if !ok {
		s.refuse(w, r, http.StatusForbidden, "the Origin or the Host of this request is not allowed")
		return
	}
	if r.URL.Path != mcpPath || r.URL.RawPath != "" {
		s.refuse(w, r, http.StatusNotFound, "there is nothing here but "+mcpPath)
		return
	}
	if foreign {
		allowOrigin(w.Header(), r.Header.Get("Origin"))
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	if !s.open && !s.authorized(r.Header[headerAuthorize]) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="tai"`)
		s.refuse(w, r, http.StatusUnauthorized, "the key is missing or wrong: send Authorization: Bearer KEY")
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r)
	case http.MethodDelete:
		s.endSession(w, r)
	default:
		w.Header().Set("Allow", "POST, DELETE")
		s.refuse(w, r, http.StatusMethodNotAllowed, "only POST and DELETE are served, and no stream")
	}
}

// originAllowed looks at Origin and Host, which a web page cannot choose, so that none that a person visits can reach the server: neither
// by a request across origins nor by a name of its own that leads to this machine. A request without Origin comes from no page.
// foreign reports an origin that was listed.
func (s *mcpServer) originAllowed(r *http.Request) (foreign, ok bool) {
	if s.loopback && !s.ownHost(r.Host) {
		return false, false
	}
	origins := r.Header["Origin"]
	switch len(origins) {
	case 0:
		return false, true
	case 1:
	default:
		return false, false
	}
	origin := strings.ToLower(origins[0])
	if _, listed := s.origins[origin]; listed {
		return true, true
	}
	// Host is known to mean this machine, so an equal Origin is this very server, which serves no pages.
	return false, s.loopback && origin == "http://"+strings.ToLower(r.Host)
}

// ownHost reports a Host that means this machine, with any port.
func (s *mcpServer) ownHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return isLoopbackHost(host)
}

// allowOrigin lets a page of a listed origin read the answers (Fetch standard, CORS protocol).
func allowOrigin(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Methods", "POST, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, "+headerSession+", "+headerProtocol)
	h.Set("Access-Control-Expose-Headers", headerSession+", WWW-Authenticate")
	h.Set("Access-Control-Max-Age", "600")
	h.Set("Vary", "Origin")
}

// authorized takes exactly one Authorization header with the key. The time it takes tells nothing of the key, not even its length.
func (s *mcpServer) authorized(values []string) bool {
	if len(values) != 1 {
		return false
	}
	scheme, given, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	sum := sha256.Sum256([]byte(strings.TrimLeft(given, " ")))
	return subtle.ConstantTimeCompare(sum[:], s.key[:]) == 1
}

// post reads one message and answers it.
func (s *mcpServer) post(w http.ResponseWriter, r *http.Request) {
	if !isJSONBody(r.Header) {
		s.refuse(w, r, http.StatusUnsupportedMediaType, "the body must be application/json")
		return
	}
	buf := s.buffers.Get().(*[]byte)
	defer s.putBuffer(buf)
	err := s.readBody(w, r, buf)
	switch {
	case errors.Is(err, errHTTPTooLarge):
		s.refuse(w, r, http.StatusRequestEntityTooLarge, fmt.Sprintf("a message has at most %d bytes", s.limits.maxBody))
		return
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.refuse(w, r, http.StatusRequestTimeout, fmt.Sprintf("the body did not come within %v", s.limits.body))
		return
	case err != nil:
		s.refuse(w, r, http.StatusBadRequest, "the body could not be read")
		return
	}
	m, err := decodeMessage(*buf)
	if err == nil {
		if err = checkJSON(*buf); err != nil {
			err = &rpcError{Code: codeParse, Message: err.Error()}
		}
	}
	if fault, isRPC := errors.AsType[*rpcError](err); isRPC {
		s.writeFault(w, http.StatusBadRequest, nil, fault)
		return
	}
	s.answer(w, r, m)
}

// isJSONBody keeps a page's plain form post out, which needs no preflight, and refuses encodings that would hide the size.
func isJSONBody(h http.Header) bool {
	types := h["Content-Type"]
	if len(types) != 1 || len(h[headerEncoding]) > 0 {
		return false
	}
	if types[0] == httpTypeJSON {
		return true
	}
	kind, _, err := mime.ParseMediaType(types[0])
	return err == nil && kind == httpTypeJSON
}

// readBody reads the whole body into buf, which grows with what comes, never with what was announced.
func (s *mcpServer) readBody(w http.ResponseWriter, r *http.Request, buf *[]byte) error {
	if r.ContentLength > s.limits.maxBody {
		return errHTTPTooLarge
	}
	b := (*buf)[:0]
	defer func() { *buf = b }()
	setDeadline(http.NewResponseController(w).SetReadDeadline, s.limits.body)
	for {
		n, err := r.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case int64(len(b)) > s.limits.maxBody:
			return errHTTPTooLarge
		case err == io.EOF:
			return nil // net/http takes the deadline away with the end of the body
		case err != nil:
			return errorf("read body: %w", err)
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}

// setDeadline sets a deadline d from now. A connection that cannot have one (a test's recorder) goes without.
func setDeadline(set func(time.Time) error, d time.Duration) {
	_ = set(time.Now().Add(d)) // only an unsupported or a closed connection fails, and the read or write that follows tells of the latter
}

// answer holds m to the rules of revision and session, then has the core reply. Requests that tai does not know are told so without a
// session: clients of later revisions ask first and wait for it.
func (s *mcpServer) answer(w http.ResponseWriter, r *http.Request, m rpcMessage) {
	request := m.kind() == rpcRequest
	opening := request && m.Method == methodInitialize
	if versions := r.Header[headerProtocol]; len(versions) > 0 && !opening && !(request && m.Method == methodDiscover) {
		if len(versions) > 1 || !servesVersion(versions[0]) {
			s.writeFault(w, http.StatusBadRequest, m.ID, &rpcError{Code: codeInvalidRequest, Message: "MCP-Protocol-Version names no revision that tai serves"})
			return
		}
	}
	var session *serveSession
	var status int
	var fault string
	switch {
	case opening:
		if _, bad := negotiate(m.Params); bad == nil {
			if session = s.openSession(); session == nil {
				s.writeFault(w, http.StatusServiceUnavailable, m.ID, &rpcError{Code: codeInternal, Message: "every session is at work; try again later"})
				return
			}
			w.Header().Set(headerSession, session.id)
		}
	case request && !servesMethod(m.Method):
	default:
		if session, status, fault = s.sessionFor(r.Header[headerSession]); session == nil {
			s.writeFault(w, status, m.ID, &rpcError{Code: codeInvalidRequest, Message: fault})
			return
		}
	}
	name := ""
	if session != nil {
		name = session.name
		defer s.leave(session)
	}
	out := s.buffers.Get().(*[]byte)
	defer s.putBuffer(out)
	*out = s.core.reply(context.WithoutCancel(r.Context()), (*out)[:0], name, m)
	if len(*out) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.write(w, http.StatusOK, *out)
}

// openSession makes a session with an id of its own and drops what it must: those idle for too long, and at the cap the one that has been
// idle longest. It gives nil if every session is at work. The caller ends its request with leave.
func (s *mcpServer) openSession() *serveSession {
	session := &serveSession{id: rand.Text(), name: newServedSession(), busy: 1}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for e := s.used.Back(); e != nil; {
		old := e.Value.(*serveSession)
		e = e.Prev()
		switch {
		case s.expired(old, now) || old.busy == 0 && len(s.sessions) >= s.limits.sessions:
			s.drop(old)
		case old.busy == 0:
			e = nil // all others were used later
		}
	}
	if len(s.sessions) >= s.limits.sessions {
		return nil
	}
	session.seen, session.place = now, s.used.PushFront(session)
	s.sessions[session.id] = session
	return session
}

// drop forgets a session; s.mu is held. One that was dropped already stays so.
func (s *mcpServer) drop(session *serveSession) {
	delete(s.sessions, session.id)
	s.used.Remove(session.place)
	s.core.forget(session.name)
}

func (s *mcpServer) expired(session *serveSession, now time.Time) bool {
	return session.busy == 0 && now.Sub(session.seen) > s.limits.session
}

// sessionFor finds the session that a request names, and enters it; the caller leaves it again. Without one it gives the status and why.
func (s *mcpServer) sessionFor(ids []string) (session *serveSession, status int, fault string) {
	if len(ids) != 1 {
		return nil, http.StatusBadRequest, "exactly one " + headerSession + " is needed: initialize gives it"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	session = s.sessions[ids[0]]
	if session != nil && s.expired(session, now) {
		s.drop(session)
		session = nil
	}
	if session == nil {
		return nil, http.StatusNotFound, "no such session: it has ended or never was; initialize anew"
	}
	session.busy++
	s.touch(session, now)
	return session, 0, ""
}

// touch notes a use; s.mu is held.
//
//go:noinline for size: it is called in many places
func (s *mcpServer) touch(session *serveSession, now time.Time) {
	session.seen = now
	s.used.MoveToFront(session.place) // no effect on one that was dropped
}

func (s *mcpServer) leave(session *serveSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session.busy--
	s.touch(session, s.now())
}

// endSession answers DELETE. What the session still has under way is cancelled.
func (s *mcpServer) endSession(w http.ResponseWriter, r *http.Request) {
	if versions := r.Header[headerProtocol]; len(versions) > 1 || len(versions) == 1 && !servesVersion(versions[0]) {
		s.refuse(w, r, http.StatusBadRequest, "MCP-Protocol-Version names no revision that tai serves")
		return
	}
	session, status, fault := s.sessionFor(r.Header[headerSession])
	if session == nil {
		s.refuse(w, r, status, fault)
		return
	}
	s.mu.Lock()
	s.drop(session)
	s.mu.Unlock()
	s.core.cancelSession(session.name)
	s.limitUnread(w, r)
	w.WriteHeader(http.StatusOK)
}

// refuse answers a request whose body has not been read, with an error that belongs to no message.
func (s *mcpServer) refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	s.limitUnread(w, r)
	s.writeFault(w, status, nil, &rpcError{Code: codeInvalidRequest, Message: message})
}

// limitUnread closes a connection on which a body is still to come: what was refused is not read, and must not hold the connection.
func (s *mcpServer) limitUnread(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	w.Header().Set("Connection", "close")
	setDeadline(http.NewResponseController(w).SetReadDeadline, s.limits.linger)
}

// writeFault writes an error response; without an id it has none, as the schema of 2025-11-25 wants it.
func (s *mcpServer) writeFault(w http.ResponseWriter, status int, id []byte, fault *rpcError) {
	if id != nil {
		s.write(w, status, appendMessage(nil, rpcMessage{ID: id, Error: fault}))
		return
	}
	b := strconv.AppendInt([]byte(`{"jsonrpc":"2.0","error":{"code":`), int64(fault.Code), 10)
	s.write(w, status, append(appendJSONString(append(b, `,"message":`...), fault.Message), "}}"...))
}

func (s *mcpServer) write(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", httpTypeJSON)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	setDeadline(http.NewResponseController(w).SetWriteDeadline, s.limits.write)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone; what was done is in the run log
}

func (s *mcpServer) putBuffer(b *[]byte) {
	if cap(*b) <= serveBufferMax {
		s.buffers.Put(b)
	}
}

// serve listens and answers until ctx ends; ready gets the address once connections are taken. At the end no new request is taken, calls
// under way get the grace, are then cancelled and get it once more to answer. Nil means that all came to their end.
func (s *mcpServer) serve(ctx context.Context, ready func(addr string)) error {
	ln, err := (&net.ListenConfig{}).Listen(ctx, serveNetwork(s.bind), net.JoinHostPort(s.bind, strconv.Itoa(s.port)))
	if err != nil {
		return errorf("serve MCP: %w", err)
	}
	if a, ok := ln.Addr().(*net.TCPAddr); ok {
		s.loopback = a.IP.IsLoopback() // the bind may have been a name
	}
	if s.open && !s.loopback {
		return joinErrors(errorf("serve MCP: %s is not this machine alone, and there is no key", ln.Addr()), ln.Close())
	}
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: s.limits.header, IdleTimeout: s.limits.idle, MaxHeaderBytes: serveHeaderMax,
		DisableGeneralOptionsHandler: true, ErrorLog: log.New(serveLog(s.log), "", 0),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }() // ends when srv is shut down, at the latest closed, below
	ready(ln.Addr().String())
	select {
	case err := <-failed:
		return joinErrors(errorf("serve MCP on %s: %w", ln.Addr(), err), srv.Close())
	case <-ctx.Done():
	}
	s.core.tellWaiting(s.limits.grace)
	err = s.shutdown(ctx, srv)
	if err != nil {
		s.core.cancelAll()
		err = s.shutdown(ctx, srv)
	}
	if err != nil {
		err = joinErrors(errorf("stop serving MCP: calls did not end in time: %w", err), srv.Close())
	}
	<-failed
	return err
}

// serveNetwork keeps an IPv4 address to IPv4: plain tcp would take 0.0.0.0 for every address of both kinds.
func serveNetwork(bind string) string {
	if a, err := netip.ParseAddr(bind); err == nil && a.Is4() {
		return "tcp4"
	}
	return "tcp"
}

func (s *mcpServer) shutdown(ctx context.Context, srv *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limits.grace)
	defer cancel()
	return srv.Shutdown(ctx)
}

// serveLog passes on the first line of what net/http has to say; the rest would be a stack.
type serveLog func(string)

func (l serveLog) Write(p []byte) (int, error) {
	line, _, _ := strings.Cut(string(p), "\n")
	l(visibleLine(clip(line, 500)))
	return len(p), nil
}
