// This file takes the answer of an authorization server: from the browser, which is sent to a listener on this machine (RFC 8252, section 7.3),
// or from a person, who pastes the address that a browser elsewhere could not open. What counts as an answer is the attempt's to say. No page of
// another site reaches the listener, and it tells no page anything.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	callbackPath      = "/callback"
	callbackTime      = 5 * time.Second // one request, and one page
	callbackHeaderMax = 16 << 10        // bytes of request line and headers; the code stands in the line
	callbackConns     = 16              // at a time; browsers open some ahead
)

// oauthCallback is the listener of one login.
type oauthCallback struct {
	ln     net.Listener
	srv    *http.Server
	limit  time.Duration       // for one request, and for one page
	host   string              // the address it is bound to; no other Host is answered
	answer chan callbackAnswer // the final one, and the end of the listener
	served chan struct{}       // closed when no connection is taken any more; nil before wait
	open   atomic.Int32
	conns  sync.WaitGroup
}

// callbackAnswer is how a login went on.
type callbackAnswer struct {
	Code secret
	err  error
}

// listenCallback binds a free port of 127.0.0.1, another for each login (OAU-16). Connections are taken from wait on.
func listenCallback() (*oauthCallback, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, errorf("listen for the browser on this machine: %w", err)
	}
	return &oauthCallback{ln: ln, limit: callbackTime, host: ln.Addr().String(), answer: make(chan callbackAnswer, 2)}, nil
}

// redirect is the address that the browser is to be sent to.
func (c *oauthCallback) redirect() string { return "http://" + c.host + callbackPath }

// wait gives the code of the first final answer, from the browser or from what pasted gives, or ctx's error. It is called once. pasted, where
// not nil, waits for one line; that it is called again says that its last one did not count. Its error ends only the pasting.
func (c *oauthCallback) wait(ctx context.Context, a *oauthAttempt, pasted func(context.Context) (string, error)) (secret, error) {
	ctx, stop := context.WithCancel(ctx)
	c.serve(a)
	var typing sync.WaitGroup
	if pasted != nil {
		typing.Go(func() { c.paste(ctx, a, pasted) }) // ends with stop
	}
	defer typing.Wait()
	defer stop()
	select {
	case r := <-c.answer:
		return r.Code, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// serve takes connections until close.
func (c *oauthCallback) serve(a *oauthAttempt) {
	c.srv = &http.Server{
		Handler:     http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.receive(w, r, a) }),
		ReadTimeout: c.limit, WriteTimeout: c.limit, MaxHeaderBytes: callbackHeaderMax,
		DisableGeneralOptionsHandler: true, ErrorLog: log.New(io.Discard, "", 0), ConnState: c.count,
	}
	c.srv.SetKeepAlivesEnabled(false)
	c.served = make(chan struct{})
	go func() { // ends with close
		err := c.srv.Serve(c.ln)
		c.answer <- callbackAnswer{err: errorf("listen for the browser on this machine: %w", err)}
		close(c.served)
	}()
}

// count holds the connections to callbackConns, so that nothing else on this machine can have tai keep more.
func (c *oauthCallback) count(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.conns.Add(1)
		if c.open.Add(1) > callbackConns {
			conn.Close()
		}
	case http.StateClosed:
		c.open.Add(-1)
		c.conns.Done()
	}
}

// close ends the listener and waits until nothing of it runs. A page that was begun has been written by then: wait ends after that.
func (c *oauthCallback) close() error {
	if c.srv == nil {
		return c.ln.Close()
	}
	err := c.srv.Close()
	<-c.served
	c.conns.Wait()
	return err
}

// receive answers one request. The first final answer ends the login once its page is out.
func (c *oauthCallback) receive(w http.ResponseWriter, r *http.Request, a *oauthAttempt) {
	switch {
	case r.Host != c.host, fromPage(r.Header):
		callbackPage(w, http.StatusForbidden, "Not for pages", "This address takes no requests of other sites.")
	case r.URL.Path != callbackPath || r.URL.RawPath != "":
		callbackPage(w, http.StatusNotFound, "Nothing here", "tai waits for a login here, at another path.")
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		callbackPage(w, http.StatusMethodNotAllowed, "Not this way", "A browser comes here with GET.")
	case r.ContentLength != 0:
		callbackPage(w, http.StatusBadRequest, "Not this way", "A browser comes here without a body.")
	default:
		code, err := a.accept(r.URL.Query())
		if callbackResult(w, err) {
			c.answer <- callbackAnswer{code, err}
		}
	}
}

// fromPage reports a request that a page made, instead of a person's browser being sent here (Fetch standard, Origin; Fetch Metadata). Programs that
// are no browser name a mode without a destination, which no page can.
func fromPage(h http.Header) bool {
	dest := h.Get("Sec-Fetch-Dest")
	return len(h["Origin"]) > 0 || h.Get("Sec-Fetch-Mode") == "no-cors" || dest != "" && dest != "document"
}

// callbackResult shows what an answer came to. Neither code nor state stands on a page.
func callbackResult(w http.ResponseWriter, err error) (final bool) {
	_, refused := errors.AsType[*oauthFault](err)
	switch {
	case err == nil:
		callbackPage(w, http.StatusOK, "tai has its answer", "You can close this page: the terminal says how the login went.")
	case errors.Is(err, errOAuthStray):
		callbackPage(w, http.StatusBadRequest, "Not of this login", "This is the answer to another login, and was not used. The login that tai waits for goes on.")
		return false
	case errors.Is(err, errOAuthUsed):
		callbackPage(w, http.StatusConflict, "Already used", "This login has had its answer; the terminal says how it went. You can close this page.")
		return false
	case refused:
		callbackPage(w, http.StatusOK, "The login was refused", callbackFault(err))
	default:
		callbackPage(w, http.StatusBadRequest, "The login failed", callbackFault(err))
	}
	return true
}

func callbackFault(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + ". Nothing was stored; the terminal says what can be done."
}

const callbackStyle = "body{font:1.1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:20vh auto;padding:0 1.5rem}h1{font-size:1.5rem}"

// callbackPage writes a page that stands alone, whole: it is with the browser's machine when this returns.
func callbackPage(w http.ResponseWriter, status int, title, text string) {
	sum := sha256.Sum256([]byte(callbackStyle))
	title, text = escapeHTML(visibleLine(title)), escapeHTML(visibleLine(text))
	page := "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
		"<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>" + title + "</title>\n<style>" + callbackStyle +
		"</style>\n</head>\n<body>\n<h1>" + title + "</h1>\n<p>" + text + "</p>\n</body>\n</html>\n"
	h := w.Header()
	for name, value := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Length": strconv.Itoa(len(page)), "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
		"Content-Security-Policy": "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	} {
		h.Set(name, value)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, page) // the browser may be gone; what came with it counts
	_ = http.NewResponseController(w).Flush()
}

// paste takes lines until one is final, or ctx or pasted ends.
func (c *oauthCallback) paste(ctx context.Context, a *oauthAttempt, pasted func(context.Context) (string, error)) {
	for ctx.Err() == nil {
		line, err := pasted(ctx)
		if err != nil {
			return
		}
		q, err := pastedAnswer(line)
		if err != nil || a.cut(q) {
			continue
		}
		code, err := a.accept(q)
		if errors.Is(err, errOAuthUsed) {
			return
		}
		if !errors.Is(err, errOAuthStray) {
			c.answer <- callbackAnswer{code, err}
			return
		}
	}
}

// pastedAnswer reads what a person pastes: the address that the browser ended at, or the part of it behind the question mark. Its errors say
// what to paste, and quote nothing.
func pastedAnswer(line string) (url.Values, error) {
	line = strings.Trim(strings.TrimSpace(line), `"'<>`)
	_, query, ok := strings.Cut(line, "?")
	if !ok {
		query = line
	}
	query, _, _ = strings.Cut(query, "#")
	q, _ := url.ParseQuery(query) // what cannot be read is not there
	switch {
	case q.Has("code_challenge"):
		return nil, newError("this is the address to open; paste the one that the browser ended at, after the login")
	case q.Has("state") && (q.Has("code") || q.Has("error")):
		return q, nil
	case !strings.Contains(line, "="):
		return nil, newError("a code alone does not show of which login it is; paste the whole address that the browser ended at: http://127.0.0.1:…" + callbackPath + "?…")
	}
	return nil, newError("this is no answer to a login; paste the whole address that the browser ended at: http://127.0.0.1:…" + callbackPath + "?…")
}
