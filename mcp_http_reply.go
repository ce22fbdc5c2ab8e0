// This file turns HTTP responses into JSON-RPC messages and faults, and holds the rules on what an entry may send and what an
// error may show. It opens no connection.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	httpErrorRead  = 64 << 10            // bytes of an error body that are looked at
	httpErrorText  = 200                 // characters of it that are shown
	httpStreamMax  = 16 * mcpHTTPMaxBody // bytes of one event stream, all events together; time is the closer limit
	httpSessionMax = 4 << 10             // bytes of a session id
	httpValueMin   = 8                   // bytes; a shorter value of a header that is no credential may stand in errors
	oauthTokenMax  = 64 << 10            // bytes of a token or a client secret
	httpSegmentMax = 20                  // bytes of a path segment that is shown; longer ones may be keys
)

const (
	httpTypeJSON    = "application/json"
	httpTypeSSE     = "text/event-stream"
	headerSession   = "Mcp-Session-Id" // this and the next in Go's canonical form; names are case-insensitive
	headerProtocol  = "Mcp-Protocol-Version"
	headerAuthorize = "Authorization"
	headerEncoding  = "Content-Encoding"
)

var errHTTPTooLarge = errors.New("body is too large")

// mcpHTTPError is an HTTP answer that carries no result. Where the body was a JSON-RPC error, errors.As also finds that
// *rpcError; look for the mcpHTTPError first, 401 and 404 often carry one. Challenge holds the WWW-Authenticate headers as they
// came, untrusted. RetryAfter is zero where none was named. Message and URL are safe to show: no query, no user, no header value.
type mcpHTTPError struct {
	Status      int
	Challenge   []string
	SessionSent bool // the request carried a session id: a 404 then means that the session is gone
	RetryAfter  time.Duration
	Message     string
	URL         string
	RPC         *rpcError
}

func (e *mcpHTTPError) Error() string {
	s := fmt.Sprintf("HTTP %d", e.Status)
	if text := http.StatusText(e.Status); text != "" {
		s += " " + text
	}
	s += " from " + e.URL
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

func (e *mcpHTTPError) Unwrap() error {
	if e.RPC == nil {
		return nil
	}
	return e.RPC
}

// httpScrub are the values that tai itself sends and that a text written by a peer or a library must not show. The tables
// for it are made when such a text turns up, which is only when something fails.
type httpScrub []namedSecret

// add notes the value of a header or a part of the address. Of a credential such as "Bearer x" its words are noted too.
func (s httpScrub) add(name, value string, credential bool) httpScrub {
	s = append(s, namedSecret{name, secret(value)})
	if credential {
		for _, word := range strings.Fields(value) {
			if !strings.EqualFold(word, "bearer") && !strings.EqualFold(word, "basic") {
				s = append(s, namedSecret{name, secret(word)})
			}
		}
	}
	return s
}

func (s httpScrub) text(t string) string { return newRedactor(s).text(t) }

// clean makes foreign text fit for a line: no tags, no controls, no value that tai sent, at most httpErrorText characters.
func (s httpScrub) clean(t string) string {
	t = visibleLine(strings.Join(strings.Fields(stripTags(s.text(t))), " "))
	if utf8.RuneCountInString(t) <= httpErrorText {
		return t
	}
	r := []rune(t)
	return string(r[:httpErrorText-1]) + "…"
}

// stripTags drops what looks like markup, the contents of script and style included, and every angle bracket left over.
func stripTags(t string) string {
	if !strings.Contains(t, "<") {
		return t
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(t, '<')
		if i < 0 {
			break
		}
		b.WriteString(t[:i])
		t = t[i+1:]
		if t == "" || !strings.ContainsRune("/!?", rune(t[0])) && (t[0]|0x20 < 'a' || t[0]|0x20 > 'z') {
			continue
		}
		for _, name := range []string{"script", "style"} {
			if hasPrefixFold(t, name) {
				t = skipElement(t, name)
			}
		}
		if _, after, ok := strings.Cut(t, ">"); ok {
			t = " " + after
		} else {
			t = ""
		}
	}
	b.WriteString(t)
	return strings.ReplaceAll(b.String(), ">", "")
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// skipElement returns t from the end tag of the named element on, or nothing.
func skipElement(t, name string) string {
	for {
		i := strings.IndexByte(t, '<')
		if i < 0 {
			return ""
		}
		if t = t[i+1:]; hasPrefixFold(t, "/"+name) {
			return t
		}
	}
}

// shownURL is u for errors: no user, no query, and no long path segment, which may be a key.
func shownURL(u *url.URL) string {
	segments := strings.Split(u.EscapedPath(), "/")
	for i, s := range segments {
		if len(s) > httpSegmentMax {
			segments[i] = "…"
		}
	}
	return visibleLine(urlOrigin(u) + strings.Join(segments, "/"))
}

// httpFault builds the error for a response that is no answer. It reads a bounded part of the body and leaves closing to the caller.
func httpFault(resp *http.Response, shown string, scrub httpScrub, now time.Time) *mcpHTTPError {
	e := &mcpHTTPError{Status: resp.StatusCode, Challenge: resp.Header.Values("Www-Authenticate"), URL: shown}
	e.RetryAfter, _ = retryAfter(resp.Header, now)
	body, err := decodedBody(resp)
	if err != nil {
		e.Message = scrub.clean(err.Error())
		return e
	}
	b, err := io.ReadAll(io.LimitReader(body, httpErrorRead))
	if len(b) == 0 && err != nil && err != io.ErrUnexpectedEOF {
		e.Message = "its body could not be read"
		return e
	}
	e.Message = scrub.clean(string(b))
	if m, err := decodeMessage(bytes.TrimSpace(b)); err == nil && m.Error != nil {
		m.Error.Message = scrub.text(m.Error.Message)
		e.RPC, e.Message = m.Error, scrub.clean(m.Error.Message)
	}
	if e.RetryAfter > 0 {
		e.Message = strings.TrimSpace(fmt.Sprintf("it asks to wait %s, until %s. %s", e.RetryAfter, now.Add(e.RetryAfter).UTC().Format(time.RFC3339), e.Message))
	}
	return e
}

// mediaType is the type alone: parameters are ignored (MCP 2025-11-25, Transports).
func mediaType(h http.Header) string {
	t, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// decodedBody undoes gzip, the one coding that tai asks for. What it reads out is not yet capped.
func decodedBody(resp *http.Response) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(resp.Header.Get(headerEncoding))) {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(resp.Body)
		if err != nil {
			return nil, errorf("unpack the reply: %w", err)
		}
		return z, nil
	}
	return nil, newError("the reply is packed in a way that was not asked for")
}

// cappedReader fails once more than left bytes were read.
type cappedReader struct {
	src  io.Reader
	left int64
}

func (c *cappedReader) Read(p []byte) (int, error) {
	n, err := c.src.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, errHTTPTooLarge
	}
	return n, err
}

// readBody reads r to its end into buf, or a larger buffer. length is what the peer announced, -1 for unknown.
func readBody(r io.Reader, length int64, limit int, buf []byte) ([]byte, error) {
	if length > int64(limit) {
		return nil, errorf("%w: %d bytes, at most %d are taken", errHTTPTooLarge, length, limit)
	}
	if int(length) >= cap(buf) { // one byte more than announced, so that the end is seen without growing
		buf = make([]byte, 0, length+1)
	}
	buf = buf[:0]
	for {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, min(4*cap(buf)+sseBufferMin, limit+1)), buf...)
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return nil, errorf("%w: over %d bytes", errHTTPTooLarge, limit)
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		}
	}
}

// replyReader picks the answer to one request out of one response.
type replyReader struct {
	id    json.RawMessage
	batch bool             // an array is a list of messages (2025-03-26)
	peer  func(rpcMessage) // takes requests and notifications of the server, in order; it must not block and not keep the bytes
	note  func(string)     // takes what was passed over, for diagnostics
}

// fromJSON takes a whole body.
func (p *replyReader) fromJSON(b []byte) (rpcMessage, error) {
	m, found, err := p.take(b)
	if err == nil && !found {
		err = newError("the reply holds no answer to this request")
	}
	return m, err
}

// fromSSE reads events until the answer. The server's stream belongs to this one request, so its end without an answer is the
// end of the request: tai never polls by GET.
func (p *replyReader) fromSSE(s *sseReader) (rpcMessage, error) {
	var fault error
	resumable := false
	for {
		f, err := s.next()
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return rpcMessage{}, streamEnd(fault, resumable)
		}
		if err != nil {
			return rpcMessage{}, err
		}
		resumable = resumable || f.HasID && f.ID != ""
		if len(f.Data) == 0 || f.Event != "message" {
			continue
		}
		m, found, err := p.take(f.Data)
		if found {
			return m, nil
		}
		if err != nil { // it may have been a notification, so the answer can still come
			p.note(err.Error())
			fault = err
		}
	}
}

func streamEnd(fault error, resumable bool) error {
	switch {
	case fault != nil:
		return errorf("the stream ended without an answer: %w", fault)
	case resumable:
		return newError("the stream ended before the answer; the server expects polling by GET, which tai does not do")
	}
	return newError("the stream ended without an answer")
}

// take sorts what one body or event holds. An error without id is about the connection, which is this request's own.
func (p *replyReader) take(b []byte) (answer rpcMessage, found bool, err error) {
	msgs, err := p.split(b)
	if err != nil {
		return rpcMessage{}, false, err
	}
	for _, m := range msgs {
		switch m.kind() {
		case rpcResponse:
			if found || !bytes.Equal(m.ID, p.id) {
				p.note("a response to another request was dropped")
				continue
			}
			answer, found = m, true
		case rpcPeerError:
			if !found {
				m.ID = p.id
				answer, found = m, true
			}
		default:
			p.peer(m)
		}
	}
	return answer, found, nil
}

// split decodes. A fault in what the peer sent is no *rpcError: that is what a peer says, not what tai says of it.
func (p *replyReader) split(b []byte) ([]rpcMessage, error) {
	if isBatch(b) {
		if !p.batch {
			return nil, newError("the reply is an array, which only revision " + mcpVersionBatch + " allows")
		}
		msgs, err := decodeBatch(b)
		if err != nil {
			return nil, errorf("the reply is no list of messages: %v", err)
		}
		return msgs, nil
	}
	m, err := decodeMessage(b)
	if err != nil {
		return nil, errorf("the reply is no message: %v", err)
	}
	return []rpcMessage{m}, nil
}

// validSession reports a usable session id: visible ASCII alone (MCP 2025-11-25, Session Management).
func validSession(id string) bool {
	if id == "" || len(id) > httpSessionMax {
		return false
	}
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7e {
			return false
		}
	}
	return true
}

// usableToken reports visible ASCII of a bearable length, which is all that a header can carry.
func usableToken(s string) bool {
	return s != "" && len(s) <= oauthTokenMax && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// entryHeaders checks the headers of an entry and returns them in canonical form, with the names that were passed over because
// the transport sets them. Errors name a header, never a value.
func entryHeaders(entry map[string]string) (h http.Header, ignored []string, err error) {
	h = make(http.Header, len(entry)+8)
	for name, value := range entry {
		key := http.CanonicalHeaderKey(strings.TrimSpace(name))
		value = strings.Trim(value, " \t")
		switch {
		case !isToken(key):
			return nil, nil, errorf("header name %q is not allowed in HTTP", clip(visibleLine(name), 60))
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return nil, nil, errorf("header %s: its value holds a line break or another control character", key)
		case h[key] != nil:
			return nil, nil, errorf("header %s is given twice", key)
		}
		switch key {
		case "Host", "Connection", "Transfer-Encoding", "Trailer", "Te", "Upgrade", "Keep-Alive", "Expect", "Proxy-Connection", "Proxy-Authorization":
			return nil, nil, errorf("header %s belongs to the connection; remove it from the entry", key)
		case "Accept", "Accept-Encoding", "Content-Type", "Content-Length", "Content-Encoding", "Last-Event-Id",
			"Idempotency-Key", "X-Idempotency-Key": // the last two would make net/http repeat a tools/call
			ignored = append(ignored, key)
			continue
		}
		if strings.HasPrefix(key, "Mcp-") {
			ignored = append(ignored, key)
			continue
		}
		h[key] = []string{value}
	}
	sort.Strings(ignored)
	return h, ignored, nil
}

// isToken reports a header name (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// credentialName reports a header or query name that by its looks carries a credential.
func credentialName(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"auth", "cookie", "key", "token", "secret", "password", "passwd", "credential", "signature"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// plainCredential names what an entry would send readable over http to another machine, or "".
func plainCredential(u *url.URL, h http.Header) string {
	if u.User != nil {
		return "a user name in its address"
	}
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if credentialName(name) {
			return "header " + name
		}
	}
	for name := range u.Query() {
		if credentialName(name) {
			return "a credential in its query"
		}
	}
	return ""
}

// repeatable reports messages that do nothing when they arrive twice. A tools/call is none.
func repeatable(method string) bool {
	switch method {
	case methodInitialize, methodPing, methodToolsList, "":
		return true
	}
	return strings.HasPrefix(method, "notifications/")
}

// shownError is a library's error with a text that is safe to show.
type shownError struct {
	text string
	err  error
}

func (e *shownError) Error() string { return e.text }
func (e *shownError) Unwrap() error { return e.err }

// sendFault takes the URL, which may hold a key, out of an error of net/http, and what a peer may have put into it.
func sendFault(err error, scrub httpScrub) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	return &shownError{text: scrub.clean(err.Error()), err: err}
}

func httpWait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func isRedirect(status int) bool {
	switch status {
	case 301, 302, 303, 307, 308:
		return true
	}
	return false
}

// ownMessage frees m from the pooled buffer. A message that did not fit there has a buffer of its own and keeps it.
func ownMessage(m rpcMessage, in, pooled []byte) rpcMessage {
	if cap(in) == 0 || &in[:1][0] != &pooled[:1][0] {
		return m
	}
	m.ID, m.Params, m.Result = bytes.Clone(m.ID), bytes.Clone(m.Params), bytes.Clone(m.Result)
	if m.Error != nil {
		m.Error.Data = bytes.Clone(m.Error.Data)
	}
	return m
}
