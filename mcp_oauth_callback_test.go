package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const callbackIssuer = "https://as.test"

// callbackTest is a listener with an attempt on it, whose wait runs beside the test.
type callbackTest struct {
	*oauthCallback
	attempt *oauthAttempt
	answer  chan callbackAnswer
	cancel  context.CancelCauseFunc
}

func newCallbackTest(t *testing.T, pasted func(context.Context) (string, error)) *callbackTest {
	t.Helper()
	c, err := listenCallback()
	if err != nil {
		t.Fatal(err)
	}
	a, err := newOAuthAttempt(oauthTarget{Issuer: callbackIssuer, Authorize: callbackIssuer + "/a", Resource: "https://mcp.test/mcp"}, oauthClient{ID: "tai"}, c.redirect())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ct := &callbackTest{c, a, make(chan callbackAnswer, 1), cancel}
	go func() { // ends with an answer or with the test
		code, err := c.wait(ctx, a, pasted)
		ct.answer <- callbackAnswer{code, err}
	}()
	t.Cleanup(func() {
		cancel(nil)
		c.close()
	})
	return ct
}

// at is the redirect address with the right state; pairs come before it.
func (ct *callbackTest) at(pairs ...string) string {
	q := url.Values{"state": {ct.attempt.state}}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return ct.redirect() + "?" + q.Encode()
}

// visit sends one request, as the browser or as somebody else.
func (ct *callbackTest) visit(t *testing.T, method, address, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("the page is not whole: %v", err)
	}
	return resp.StatusCode, resp.Header, string(page)
}

// waits wants that the login goes on.
func (ct *callbackTest) waits(t *testing.T) {
	t.Helper()
	select {
	case r := <-ct.answer:
		t.Fatalf("the login ended with %q, %v", r.Code.reveal(), r.err)
	default:
	}
}

func TestOAU09Callback(t *testing.T) { // W60
	t.Parallel()
	ct := newCallbackTest(t, nil)
	for _, stray := range []string{ct.redirect(), ct.redirect() + "?code=c0de&state=other", ct.at("code", "c0de") + "&state=other", ct.redirect() + "?error=access_denied"} {
		if status, _, page := ct.visit(t, "GET", stray, ""); status != 400 || !strings.Contains(page, "goes on") {
			t.Errorf("%s: %d %s", stray, status, page)
		}
		ct.waits(t)
	}
	status, _, page := ct.visit(t, "GET", ct.at("code", "c0de-1"), "")
	if status != 200 || !strings.Contains(page, "tai has its answer") {
		t.Errorf("%d %s", status, page)
	}
	if r := <-ct.answer; r.Code.reveal() != "c0de-1" || r.err != nil {
		t.Errorf("got %q, %v", r.Code.reveal(), r.err)
	}
	if status, _, page := ct.visit(t, "GET", ct.at("code", "c0de-2"), ""); status != 409 || !strings.Contains(page, "Already used") {
		t.Errorf("the same again: %d %s", status, page)
	}
	if err := ct.close(); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", ct.host); err == nil {
		conn.Close()
		t.Error("the listener is still there")
	}
}

func TestOAU10Denied(t *testing.T) {
	t.Parallel()
	ct := newCallbackTest(t, nil)
	status, header, page := ct.visit(t, "GET", ct.at("error", "access_denied", "code", "c0de", "error_description", "<img src=x onerror=alert(1)>R&D says \"no\"\u202e"+ct.attempt.state), "")
	r := <-ct.answer
	if fault, ok := errors.AsType[*oauthFault](r.err); !ok || fault.Code != "access_denied" || strings.Contains(r.err.Error(), ct.attempt.state) {
		t.Errorf("got %q, %v", r.Code.reveal(), r.err)
	}
	if status != 200 || !strings.Contains(page, "R&amp;D says &#34;no&#34;&lt;U+202E&gt;") || !strings.Contains(page, "access_denied") {
		t.Errorf("%d %s", status, page)
	}
	for _, not := range []string{"<img", "c0de", ct.attempt.state, "\u202e", "http", "src=\"", "<script"} {
		if strings.Contains(page, not) {
			t.Errorf("%q is on the page: %s", not, page)
		}
	}
	rec := httptest.NewRecorder()
	if callbackPage(rec, 200, "<b>", `"<img src=x onerror=alert(1)>`); strings.Contains(rec.Body.String(), "<b>") || strings.Contains(rec.Body.String(), "<img") {
		t.Errorf("not escaped: %s", rec.Body)
	}
	policy := header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q lacks %q", policy, want)
		}
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "Content-Type": "text/html; charset=utf-8"} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestOAU11OtherIssuer(t *testing.T) { // W61
	t.Parallel()
	ct := newCallbackTest(t, nil)
	status, _, page := ct.visit(t, "GET", ct.at("code", "c0de", "iss", "https://evil.test", "error_description", "trust me"), "")
	if r := <-ct.answer; r.err == nil || r.Code != "" {
		t.Errorf("got %q, %v", r.Code.reveal(), r.err)
	}
	if status != 400 || strings.Contains(page, "trust me") || strings.Contains(page, "evil") || !strings.Contains(page, "as.test") {
		t.Errorf("%d %s", status, page)
	}
}

func TestOAU16OwnPort(t *testing.T) {
	t.Parallel()
	one, two := newCallbackTest(t, nil), newCallbackTest(t, nil)
	if one.redirect() == two.redirect() || !strings.HasPrefix(one.redirect(), "http://127.0.0.1:") || !strings.HasSuffix(one.redirect(), callbackPath) {
		t.Errorf("%s and %s", one.redirect(), two.redirect())
	}
	if status, _, _ := two.visit(t, "GET", two.redirect()+"?code=c0de&state="+one.attempt.state, ""); status != 400 {
		t.Errorf("the answer of the other login: %d", status)
	}
	two.waits(t)
	two.visit(t, "GET", two.at("code", "of-two"), "")
	if r := <-two.answer; r.Code.reveal() != "of-two" || r.err != nil {
		t.Errorf("got %q, %v", r.Code.reveal(), r.err)
	}
	one.waits(t)
}

func TestOAU17NotForPages(t *testing.T) {
	t.Parallel()
	ct := newCallbackTest(t, nil)
	good := ct.at("code", "c0de")
	_, port, _ := net.SplitHostPort(ct.host)
	for _, tc := range []struct {
		name, method, address, body string
		header                      []string
		status                      int
	}{
		{"another Host", "GET", good, "", []string{"Host", "evil.example"}, 403},
		{"the Host by name", "GET", good, "", []string{"Host", "localhost:" + port}, 403},
		{"the Host without its port", "GET", good, "", []string{"Host", "127.0.0.1"}, 403},
		{"another origin", "GET", good, "", []string{"Origin", "https://evil.example"}, 403},
		{"no origin to speak of", "GET", good, "", []string{"Origin", "null"}, 403},
		{"its own origin", "GET", good, "", []string{"Origin", "http://" + ct.host}, 403},
		{"a picture", "GET", good, "", []string{"Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, 403},
		{"a script", "GET", good, "", []string{"Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}, 403},
		{"a frame", "GET", good, "", []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"another path", "GET", strings.Replace(good, callbackPath, "/", 1), "", nil, 404},
		{"a path below", "GET", strings.Replace(good, callbackPath, callbackPath+"/x", 1), "", nil, 404},
		{"an escaped path", "GET", strings.Replace(good, callbackPath, "/c%61llback", 1), "", nil, 404},
		{"POST", "POST", good, "code=c0de", nil, 405},
		{"HEAD", "HEAD", good, "", nil, 405},
		{"a preflight", "OPTIONS", good, "", []string{"Access-Control-Request-Method", "GET", "Access-Control-Request-Private-Network", "true"}, 405},
		{"a body", "GET", good, "x", nil, 400},
		{"too long", "GET", good, "", []string{"X-Long", strings.Repeat("x", 2*callbackHeaderMax)}, 431},
	} {
		status, header, page := ct.visit(t, tc.method, tc.address, tc.body, tc.header...)
		if status != tc.status || strings.Contains(page, "c0de") || strings.Contains(page, ct.attempt.state) {
			t.Errorf("%s: %d, want %d: %s", tc.name, status, tc.status, page)
		}
		for name := range header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: there is %s", tc.name, name)
			}
		}
		ct.waits(t)
	}
	if status, _, _ := ct.visit(t, "GET", good, "", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-Site", "cross-site"); status != 200 {
		t.Errorf("a browser that is sent here: %d", status)
	}
	if r := <-ct.answer; r.Code.reveal() != "c0de" || r.err != nil {
		t.Errorf("got %q, %v", r.Code.reveal(), r.err)
	}
}

func TestCallbackBounds(t *testing.T) {
	t.Parallel()
	c, err := listenCallback()
	if err != nil {
		t.Fatal(err)
	}
	c.serve(&oauthAttempt{})
	held := make([]net.Conn, callbackConns+1)
	for i := range held {
		if held[i], err = net.Dial("tcp", c.host); err != nil {
			t.Fatal(err)
		}
		defer held[i].Close()
	}
	begin := time.Now()
	if _, err := held[callbackConns].Read(make([]byte, 1)); err == nil || time.Since(begin) > c.limit {
		t.Errorf("connection %d is kept for %v: %v", callbackConns+1, time.Since(begin), err)
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
	short, err := listenCallback()
	if err != nil {
		t.Fatal(err)
	}
	short.limit = 20 * time.Millisecond
	short.serve(&oauthAttempt{})
	half, err := net.Dial("tcp", short.host)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	io.WriteString(half, "GET /callback?") // and no more
	half.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadAll(half); err != nil {
		t.Errorf("half a request is kept: %v", err)
	}
	if err := short.close(); err != nil {
		t.Error(err)
	}
	never, err := listenCallback()
	if err != nil {
		t.Fatal(err)
	}
	if err := never.close(); err != nil {
		t.Errorf("one that never waited: %v", err)
	}
}

func TestCallbackEnds(t *testing.T) {
	t.Parallel()
	late := errors.New("it took too long")
	typing := make(chan struct{})
	ct := newCallbackTest(t, func(ctx context.Context) (string, error) {
		close(typing)
		<-ctx.Done()
		return "", ctx.Err()
	})
	<-typing
	ct.cancel(late)
	if r := <-ct.answer; !errors.Is(r.err, late) {
		t.Errorf("got %v, want %v", r.err, late)
	}
}

func TestCallbackPasted(t *testing.T) {
	t.Parallel()
	lines := make(chan string)
	ct := newCallbackTest(t, func(ctx context.Context) (string, error) {
		select {
		case l := <-lines:
			return l, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	for _, stray := range []string{"", "c0de", ct.attempt.Address, ct.redirect() + "?code=c0de", ct.redirect() + "?code=c0de&state=other"} {
		lines <- stray
	}
	ct.waits(t)
	lines <- "  \"" + ct.at("code", "c0de") + "#\" \r"
	if r := <-ct.answer; r.Code.reveal() != "c0de" || r.err != nil {
		t.Errorf("got %q, %v", r.Code.reveal(), r.err)
	}
	if status, _, _ := ct.visit(t, "GET", ct.at("code", "c0de"), ""); status != 409 {
		t.Errorf("the browser after that: %d", status)
	}

	gone := newCallbackTest(t, func(context.Context) (string, error) { return "", io.EOF }) // nobody can paste: the browser still can
	gone.visit(t, "GET", gone.at("code", "c0de"), "")
	if r := <-gone.answer; r.Code.reveal() != "c0de" || r.err != nil {
		t.Errorf("got %q, %v", r.Code.reveal(), r.err)
	}
}

// An address that was copied from two lines of a screen lacks its end; that ends no login.
func TestCallbackPastedCut(t *testing.T) {
	t.Parallel()
	a, err := newOAuthAttempt(oauthTarget{Issuer: callbackIssuer, Authorize: callbackIssuer + "/a", NamesItself: true}, oauthClient{ID: "tai"}, "http://127.0.0.1:1/callback")
	if err != nil {
		t.Fatal(err)
	}
	part := "?code=c0de&state=" + a.state
	lines := []string{part, part + "&iss=", part + "&iss=" + callbackIssuer[:9], part + "&iss=" + callbackIssuer}
	c := &oauthCallback{answer: make(chan callbackAnswer, 2)}
	c.paste(t.Context(), a, func(context.Context) (string, error) {
		line := lines[0]
		lines = lines[1:]
		return line, nil
	})
	if r := <-c.answer; r.Code.reveal() != "c0de" || r.err != nil || len(lines) != 0 {
		t.Errorf("got %q, %v, %d lines left", r.Code.reveal(), r.err, len(lines))
	}
}

func TestPastedAnswer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, line, want, fault string }{
		{"an address", "http://127.0.0.1:4711/callback?code=a%2Fb&state=s", "code=a%2Fb&state=s", ""},
		{"in angle brackets", "<http://127.0.0.1:4711/callback?code=a&state=s>", "code=a&state=s", ""},
		{"with a fragment", "http://127.0.0.1:4711/callback?code=a&state=s#_=_", "code=a&state=s", ""},
		{"its query", "?code=a&state=s", "code=a&state=s", ""},
		{"its query without the mark", "code=a&state=s", "code=a&state=s", ""},
		{"a refusal", "http://127.0.0.1:4711/callback?error=access_denied&state=s", "error=access_denied&state=s", ""},
		{"a code alone", "SplxlOBeZQQYbYS6WxSbIA", "", "a code alone does not show of which login it is; paste the whole address that the browser ended at: http://127.0.0.1:…/callback?…"},
		{"a code without state", "http://127.0.0.1:4711/callback?code=a", "", "this is no answer to a login; paste the whole address that the browser ended at: http://127.0.0.1:…/callback?…"},
		{"the address to open", "https://as.test/a?state=s&code_challenge=x", "", "this is the address to open; paste the one that the browser ended at, after the login"},
	} {
		q, err := pastedAnswer(tc.line)
		fault := ""
		if err != nil {
			fault = err.Error()
		}
		if got := q.Encode(); got != tc.want || fault != tc.fault {
			t.Errorf("%s: %q, %q, want %q, %q", tc.name, got, fault, tc.want, tc.fault)
		}
	}
}
