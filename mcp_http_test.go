package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"
)

func httpTestSilent() *log.Logger { return log.New(io.Discard, "", 0) }

// httpTestTransport opens a transport that the test closes; without a Client it gets the program's.
func httpTestTransport(t testing.TB, c httpConfig) *httpTransport {
	t.Helper()
	if c.Client == nil {
		c.Client = newHTTPClient(httpClientConfig{})
	}
	tr, err := newHTTPTransport(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.close() })
	return tr
}

func httpTestInit(tr *httpTransport) (rpcMessage, error) {
	return tr.call(context.Background(), rpcMessage{ID: json.RawMessage("1"), Method: methodInitialize,
		Params: json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tai","version":"0"}}`)})
}

// httpTestHandshake does what a client does first.
func httpTestHandshake(t testing.TB, tr *httpTransport) {
	t.Helper()
	if _, err := httpTestInit(tr); err != nil {
		t.Fatalf("initialize: %v", err)
	}
	tr.setVersion("2025-06-18")
	if err := tr.notify(context.Background(), rpcMessage{Method: methodInitialized}); err != nil {
		t.Fatalf("initialized: %v", err)
	}
}

func httpTestCall(id int) rpcMessage {
	return rpcMessage{ID: json.RawMessage(strconv.Itoa(id)), Method: methodToolsCall, Params: json.RawMessage(`{"name":"echo","arguments":{}}`)}
}

// httpTestScripted is a transport past the handshake, whose tools/call the server answers with h.
func httpTestScripted(t *testing.T, h func(http.ResponseWriter, fakeHTTPRequest)) (*fakeHTTP, *httpTransport) {
	t.Helper()
	f := newFakeHTTP(t)
	f.on(methodToolsCall, h)
	tr := httpTestTransport(t, httpConfig{URL: f.URL + "/mcp"})
	httpTestHandshake(t, tr)
	return f, tr
}

// httpTestStatus returns the mcpHTTPError in err or fails.
func httpTestStatus(t *testing.T, err error, status int) *mcpHTTPError {
	t.Helper()
	he, ok := errors.AsType[*mcpHTTPError](err)
	if !ok || he.Status != status {
		t.Fatalf("error %v, want an mcpHTTPError of status %d", err, status)
	}
	return he
}

// W31 W33 W35 W38: one POST a message, both types in Accept, session and revision on all messages but initialize, no GET, no DELETE.
func TestW31W33W35W38Headers(t *testing.T) {
	f := newFakeHTTP(t)
	tr := httpTestTransport(t, httpConfig{URL: f.URL + "/mcp", Headers: map[string]string{"x-api-key": "k1", "accept": "text/html", "MCP-Session-Id": "evil", "Content-Length": "1"}})
	httpTestHandshake(t, tr)
	if _, err := tr.call(context.Background(), httpTestCall(2)); err != nil {
		t.Fatal(err)
	}
	if err := tr.notify(context.Background(), rpcMessage{Method: methodCancelled, Params: json.RawMessage(`{"requestId":2}`)}); err != nil { // W40
		t.Fatal(err)
	}
	if got := tr.session(); got != "s1" {
		t.Errorf("session %q, want s1", got)
	}
	tr.close()
	if tr.session() != "" {
		t.Error("close kept the session")
	}
	var methods []string
	for _, r := range f.requests("") {
		methods = append(methods, r.RPC.Method)
		first := r.RPC.Method == methodInitialize
		for name, want := range map[string]string{
			"Accept": "application/json, text/event-stream", "Content-Type": "application/json", "X-Api-Key": "k1",
			headerSession: map[bool]string{false: "s1"}[first], headerProtocol: map[bool]string{false: "2025-06-18"}[first], "User-Agent": "tai",
			"Idempotency-Key": "", "Accept-Encoding": "identity",
		} {
			if got := strings.Join(r.Header.Values(name), ";"); got != want {
				t.Errorf("%s: header %s = %q, want %q", r.RPC.Method, name, got, want)
			}
		}
	}
	if want := []string{methodInitialize, methodInitialized, methodToolsCall, methodCancelled}; !slices.Equal(methods, want) {
		t.Errorf("messages %q, want %q", methods, want)
	}
	if got := f.verbs(); !slices.Equal(got, []string{"POST"}) {
		t.Errorf("HTTP methods %q, want POST alone", got)
	}
	for _, name := range []string{"Accept", "Mcp-Session-Id", "Content-Length"} {
		if !strings.Contains(tr.diagnostics(), "header "+name+" of the entry is not used") {
			t.Errorf("diagnostics do not name %s:\n%s", name, tr.diagnostics())
		}
	}
	if _, err := tr.call(context.Background(), httpTestCall(3)); !errors.Is(err, errHTTPClosed) {
		t.Errorf("call after close: %v", err)
	}
}

// W32 HTC-08 HTC-20: both kinds of reply, whatever the parameters of the type.
func TestW32ReplyForms(t *testing.T) {
	for _, contentType := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON;x", "text/event-stream", "TEXT/event-stream; charset=\"utf-8\"; q=1"} {
		_, tr := httpTestScripted(t, func(w http.ResponseWriter, r fakeHTTPRequest) {
			w.Header().Set("Content-Type", contentType)
			body := fakeHTTPResult(r, `{"content":[]}`)
			if strings.Contains(strings.ToLower(contentType), "stream") {
				body = "data: " + body + "\n\n"
			}
			io.WriteString(w, body)
		})
		m, err := tr.call(context.Background(), httpTestCall(7))
		if err != nil || string(m.Result) != `{"content":[]}` || string(m.ID) != "7" {
			t.Errorf("%s: %+v, %v", contentType, m, err)
		}
	}
}

// httpTestStream runs one call that is answered by an event stream. %s in a piece is the right answer.
func httpTestStream(t *testing.T, pieces ...string) (*fakeHTTP, rpcMessage, error) {
	t.Helper()
	f, tr := httpTestScripted(t, func(w http.ResponseWriter, r fakeHTTPRequest) {
		var out []string
		for _, p := range pieces {
			out = append(out, strings.ReplaceAll(p, "%s", fakeHTTPResult(r, `{"ok":true}`)))
		}
		fakeHTTPStream(w, out...)
	})
	m, err := tr.call(context.Background(), httpTestCall(7))
	return f, m, err
}

func TestHTCStreams(t *testing.T) {
	tests := []struct {
		name   string
		pieces []string
		fault  string // "" = the answer is found
	}{
		{"F09 HTC-08 several data lines", []string{"data: {\"jsonrpc\":\"2.0\",\"id\":7,\n", "data:\"result\":{\"ok\":true}}\n\n"}, ""},
		{"W39 HTC-07 CRLF, comment, no event line", []string{": hello\r\n\r\n", "id: 1\r\ndata:\r\n\r\n", "data: %s\r\n\r\n"}, ""},
		{"W39 HTC-07 CR", []string{"data: %s\r\r"}, ""},
		{"HTC-06 no blank line", []string{"data: %s\n"}, ""},
		{"HTC-06 no line end", []string{"data: %s"}, ""},
		{"HTC-06 part of a reply", []string{"data: {\"jsonrpc\":\"2.0\",\"id\":7,\"res"}, "the stream ended without an answer"},
		{"HTC-06 nothing", []string{}, "the stream ended without an answer"},
		{"HTC-09 priming, retry, keep-alive", []string{"id: 1\ndata:\n\n", "retry: 10\n\n", strings.Repeat(": keep-alive\n\n", 50), "data: %s\n\n"}, ""},
		{"W36 W37 polling", []string{"id: 1\nretry: 1\ndata:\n\n"}, "polling by GET, which tai does not do"},
		{"HTC-10 other events", []string{"event: endpoint\ndata: %s\n\n"}, "the stream ended without an answer"},
		{"HTC-10 then ours", []string{"event: ping\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"wrong\":1}}\n\n", "event: message\ndata: %s\n\n"}, ""},
		{"HTC-11 others first", []string{"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":6,\"result\":{}}\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":{}}\n\n", "data: %s\n\n"}, ""},
		{"HTC-11 first answer wins", []string{"data: %s\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"late\":1}}\n\n"}, ""},
		{"HTC-21 exact names", []string{"data: {\"jsonrpc\":\"2.0\",\"ID\":7,\"Result\":{}}\n\n"}, "the stream ended without an answer"},
		{"broken event, then ours", []string{"data: {\n\n", "data: %s\n\n"}, ""},
		{"W30 array where it is not allowed", []string{"data: [%s]\n\n"}, "only revision 2025-03-26 allows"},
	}
	for _, tc := range tests {
		f, m, err := httpTestStream(t, tc.pieces...)
		switch {
		case tc.fault == "" && (err != nil || string(m.Result) != `{"ok":true}`):
			t.Errorf("%s: %s, %v; want the answer", tc.name, m.Result, err)
		case tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)):
			t.Errorf("%s: %s, %v; want an error with %q", tc.name, m.Result, err, tc.fault)
		}
		if got := f.verbs(); !slices.Equal(got, []string{"POST"}) {
			t.Errorf("%s: HTTP methods %q", tc.name, got)
		}
		if n := len(f.requests(methodToolsCall)); n != 1 {
			t.Errorf("%s: the call was sent %d times", tc.name, n)
		}
	}
}

// W30: an array is a list of messages under 2025-03-26, in a body and in an event.
func TestW30Batch(t *testing.T) {
	for _, sse := range []bool{false, true} {
		f := newFakeHTTP(t)
		f.on(methodToolsCall, func(w http.ResponseWriter, r fakeHTTPRequest) {
			body := `[{"jsonrpc":"2.0","method":"notifications/x"},` + fakeHTTPResult(r, `{"ok":true}`) + `]`
			if sse {
				fakeHTTPStream(w, "data: "+body+"\n\n")
				return
			}
			fakeHTTPStatus(200, "application/json", body)(w, r)
		})
		var told atomic.Int32
		tr := httpTestTransport(t, httpConfig{URL: f.URL, Notify: func(string, json.RawMessage) { told.Add(1) }})
		httpTestHandshake(t, tr)
		if _, err := tr.call(context.Background(), httpTestCall(2)); err == nil {
			t.Errorf("SSE %v: an array was taken under 2025-06-18", sse)
		}
		tr.setVersion("2025-03-26")
		m, err := tr.call(context.Background(), httpTestCall(3))
		if err != nil || string(m.Result) != `{"ok":true}` || told.Load() != 1 {
			t.Errorf("SSE %v: %s, %v, %d notifications", sse, m.Result, err, told.Load())
		}
	}
}

// A server's request on the stream is answered by its own POST, while the stream waits; notifications go to Notify.
func TestHTTPServerRequests(t *testing.T) {
	f := newFakeHTTP(t)
	answered := make(chan fakeHTTPRequest, 8)
	f.on("response", func(w http.ResponseWriter, r fakeHTTPRequest) {
		w.WriteHeader(http.StatusAccepted)
		answered <- r
	})
	got := map[string]string{}
	f.on(methodToolsCall, func(w http.ResponseWriter, r fakeHTTPRequest) {
		fakeHTTPStream(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\n\n",
			"data: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n",
			"data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"sampling/createMessage\",\"params\":{}}\n\n")
		for range 2 { // as servers do that wait for the client
			select {
			case a := <-answered:
				got[string(a.RPC.ID)] = string(a.Body)
				if a.Header.Get(headerSession) != "s1" || a.Header.Get(headerProtocol) != "2025-06-18" {
					t.Errorf("answer without session or revision: %v", a.Header)
				}
			case <-time.After(5 * time.Second):
				t.Error("no answer to a server's request")
			}
		}
		fakeHTTPStream(w, "data: "+fakeHTTPResult(r, `{}`)+"\n\n")
	})
	var told []json.RawMessage
	tr := httpTestTransport(t, httpConfig{URL: f.URL, Notify: func(method string, params json.RawMessage) { told = append(told, json.RawMessage(method), params) }})
	httpTestHandshake(t, tr)
	if _, err := tr.call(context.Background(), httpTestCall(7)); err != nil {
		t.Fatal(err)
	}
	if got[`"p"`] != `{"jsonrpc":"2.0","id":"p","result":{}}` || !strings.Contains(got["9"], "-32601") {
		t.Errorf("answers %q", got)
	}
	if len(told) != 2 || string(told[0]) != "notifications/progress" || string(told[1]) != `{"progress":1}` {
		t.Errorf("notifications %q", told)
	}
}

// A flood of requests is bounded: beyond httpAnswersMax under way they stay unanswered, and the call goes on.
func TestHTTPServerRequestFlood(t *testing.T) {
	f := newFakeHTTP(t)
	release := make(chan struct{})
	var open, most atomic.Int32
	f.on("response", func(w http.ResponseWriter, r fakeHTTPRequest) {
		n := open.Add(1)
		defer open.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-release
		w.WriteHeader(http.StatusAccepted)
	})
	f.on(methodToolsCall, func(w http.ResponseWriter, r fakeHTTPRequest) {
		fakeHTTPStream(w, strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n", 3*httpAnswersMax), "data: "+fakeHTTPResult(r, `{}`)+"\n\n")
	})
	tr := httpTestTransport(t, httpConfig{URL: f.URL})
	httpTestHandshake(t, tr)
	if _, err := tr.call(context.Background(), httpTestCall(7)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(tr.diagnostics(), "left unanswered") {
		t.Errorf("diagnostics:\n%s", tr.diagnostics())
	}
	close(release)
	tr.close()
	if n := most.Load(); n > httpAnswersMax {
		t.Errorf("%d answers at a time, at most %d", n, httpAnswersMax)
	}
}

// HTC-12: an empty acceptance is no answer.
func TestHTC12Accepted(t *testing.T) {
	for _, status := range []int{202, 204} {
		_, tr := httpTestScripted(t, func(w http.ResponseWriter, _ fakeHTTPRequest) { w.WriteHeader(status) })
		_, err := tr.call(context.Background(), httpTestCall(7))
		if he := httpTestStatus(t, err, status); !strings.Contains(he.Error(), "not answered") {
			t.Errorf("%v", he)
		}
	}
}

// Any 2xx takes a notification; other statuses are errors.
func TestHTTPNotifyStatus(t *testing.T) {
	for _, status := range []int{200, 202, 204, 400, 500} {
		f := newFakeHTTP(t)
		f.on(methodCancelled, fakeHTTPStatus(status, "application/json", map[bool]string{true: "{}"}[status == 200]))
		tr := httpTestTransport(t, httpConfig{URL: f.URL})
		httpTestHandshake(t, tr)
		err := tr.notify(context.Background(), rpcMessage{Method: methodCancelled})
		if status < 300 && err != nil {
			t.Errorf("status %d: %v", status, err)
		} else if status >= 300 {
			httpTestStatus(t, err, status)
		}
	}
}

// HTC-01 HTC-02: nothing goes to another origin, whatever the status, and the POST never becomes a GET.
func TestHTC01HTC02RedirectAway(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		other := newFakeHTTP(t)
		f, tr := httpTestScripted(t, func(w http.ResponseWriter, _ fakeHTTPRequest) {
			w.Header().Set("Location", other.URL+"/mcp?token=leak")
			w.WriteHeader(status)
		})
		_, err := tr.call(context.Background(), httpTestCall(7))
		he := httpTestStatus(t, err, status)
		if !strings.Contains(he.Error(), f.URL) || !strings.Contains(he.Error(), other.URL) || strings.Contains(he.Error(), "leak") {
			t.Errorf("%d: error %q does not name both origins, or more", status, he)
		}
		if n := len(other.requests("")); n != 0 {
			t.Errorf("%d: %d requests reached the other origin", status, n)
		}
		if n := len(f.requests(methodToolsCall)); n != 1 || !slices.Equal(f.verbs(), []string{"POST"}) {
			t.Errorf("%d: %d calls, HTTP methods %q", status, n, f.verbs())
		}
	}
}

// HTC-03: 307 and 308 within the origin are followed as POST, at most 3 times; the others are not.
func TestHTC03RedirectWithin(t *testing.T) {
	tests := []struct {
		name    string
		status  int
		hops    int // redirects before the answer; -1 = for ever
		arrived int // POSTs of the call in all
		ok      bool
	}{
		{"308 once", 308, 1, 2, true}, {"307 three times", 307, 3, 4, true}, {"four times", 308, 4, 4, false}, {"loop", 307, -1, 4, false},
		{"301", 301, 1, 1, false}, {"302", 302, 1, 1, false}, {"303", 303, 1, 1, false},
	}
	for _, tc := range tests {
		f := newFakeHTTP(t)
		n := 0
		f.on(methodToolsCall, func(w http.ResponseWriter, r fakeHTTPRequest) {
			if n++; tc.hops < 0 || n <= tc.hops {
				w.Header().Set("Location", fmt.Sprintf("/mcp/%d", n))
				w.WriteHeader(tc.status)
				return
			}
			f.result(w, r, `{}`)
		})
		tr := httpTestTransport(t, httpConfig{URL: f.URL + "/mcp", Headers: map[string]string{"Authorization": "Bearer abcdef"}})
		httpTestHandshake(t, tr)
		_, err := tr.call(context.Background(), httpTestCall(7))
		if ok := err == nil; ok != tc.ok {
			t.Errorf("%s: %v, want success %v", tc.name, err, tc.ok)
		}
		calls := f.requests(methodToolsCall)
		if len(calls) != tc.arrived || !slices.Equal(f.verbs(), []string{"POST"}) {
			t.Errorf("%s: %d posts of the call, want %d; HTTP methods %q", tc.name, len(calls), tc.arrived, f.verbs())
		}
		for i, r := range calls {
			if r.Header.Get("Authorization") != "Bearer abcdef" || r.RPC.Method != methodToolsCall || i > 0 && r.Path != fmt.Sprintf("/mcp/%d", i) {
				t.Errorf("%s: hop %d came to %s without its headers or body", tc.name, i, r.Path)
			}
		}
	}
}

// httpTestBomb streams n bytes of white space, packed.
func httpTestBomb(w io.Writer, n int) {
	z := gzip.NewWriter(w)
	chunk := []byte(strings.Repeat(" ", 1<<20))
	for range n >> 20 {
		if _, err := z.Write(chunk); err != nil {
			return // the client went away
		}
	}
	z.Close()
}

// HTC-04: a packed body stops at the cap of its expanded form, as JSON and as events, with little memory.
func TestHTC04Gzip(t *testing.T) {
	for _, contentType := range []string{"application/json", "text/event-stream"} {
		_, tr := httpTestScripted(t, func(w http.ResponseWriter, r fakeHTTPRequest) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Content-Encoding", "gzip")
			httpTestBomb(w, 256<<20)
		})
		tr.limits.stream = 1 << 40 // the cap on packed streams is a closer one
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := tr.call(context.Background(), httpTestCall(7))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, errHTTPTooLarge) && !errors.Is(err, errSSETooLarge) {
			t.Errorf("%s: %v, want the size fault", contentType, err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
			t.Errorf("%s: %d bytes allocated", contentType, grown)
		}
	}
	_, tr := httpTestScripted(t, func(w http.ResponseWriter, r fakeHTTPRequest) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, fakeHTTPResult(r, `{"packed":true}`))
		z.Close()
	})
	if m, err := tr.call(context.Background(), httpTestCall(7)); err != nil || string(m.Result) != `{"packed":true}` {
		t.Errorf("small packed reply: %s, %v", m.Result, err)
	}
	_, tr = httpTestScripted(t, func(w http.ResponseWriter, r fakeHTTPRequest) {
		w.Header().Set("Content-Encoding", "br")
		fakeHTTPStatus(200, "application/json", "x")(w, r)
	})
	if _, err := tr.call(context.Background(), httpTestCall(7)); err == nil || !strings.Contains(err.Error(), "not asked for") {
		t.Errorf("unknown coding: %v", err)
	}
}

// HTC-05: the cap on bytes; announced or not.
func TestHTC05EndlessBody(t *testing.T) {
	for name, header := range map[string]string{"endless": "", "announced": strconv.Itoa(mcpHTTPMaxBody + 1)} {
		_, tr := httpTestScripted(t, func(w http.ResponseWriter, _ fakeHTTPRequest) {
			w.Header().Set("Content-Type", "application/json")
			if header != "" {
				w.Header().Set("Content-Length", header)
			}
			chunk := []byte(strings.Repeat(" ", 1<<20))
			for range 64 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		})
		if _, err := tr.call(context.Background(), httpTestCall(7)); !errors.Is(err, errHTTPTooLarge) {
			t.Errorf("%s: %v, want the size fault", name, err)
		}
	}
}

// HTC-05 HTC-09 R1: bytes, comments and dripping headers never move the deadline.
func TestHTC05Deadline(t *testing.T) {
	t.Parallel()
	drip := func(contentType, piece string) func(http.ResponseWriter, fakeHTTPRequest) {
		return func(w http.ResponseWriter, r fakeHTTPRequest) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+contentType)
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for range 10_000 {
				<-tick.C
				if _, err := io.WriteString(conn, piece); err != nil {
					return
				}
			}
			t.Error("the client never went away")
		}
	}
	tests := map[string]func(http.ResponseWriter, fakeHTTPRequest){
		"body":     drip("Content-Type: application/json\r\nContent-Length: 9999999\r\n\r\n", " "),
		"comments": drip("Content-Type: text/event-stream\r\n\r\n", ": keep-alive\n\n"),
		"progress": drip("Content-Type: text/event-stream\r\n\r\n", "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n"),
		"headers":  drip("X-A: ", "a"),
		"error":    drip("", "Content-Type: text/plain\r\n"),
	}
	for name, h := range tests {
		_, tr := httpTestScripted(t, h)
		tr.limits.call = 50 * time.Millisecond
		start := time.Now()
		_, err := tr.call(context.Background(), httpTestCall(7))
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 5*time.Second {
			t.Errorf("%s: %v after %v, want the deadline of 50 ms", name, err, took)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		if _, err := tr.call(ctx, httpTestCall(8)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s, caller's deadline: %v", name, err)
		}
		cancel()
		tr.limits.call = time.Minute // so that only the caller can end it
		ctx, cancel = context.WithCancel(context.Background())
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, err := tr.call(ctx, httpTestCall(9)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, canceled: %v", name, err)
		}
	}
	if tr := httpTestTransport(t, httpConfig{URL: "http://127.0.0.1:1"}); tr.limits.call != mcpCallTimeout || tr.limits.body != mcpHTTPMaxBody {
		t.Errorf("default limits %+v", tr.limits)
	}
}

// F08 HTC-13 W34, the transport's part: a 404 says whether a session was sent; a dropped one is on no message, and the next
// initialize brings a new one. Nothing is sent twice.
func TestF08HTC13W34Session(t *testing.T) {
	f := newFakeHTTP(t)
	tr := httpTestTransport(t, httpConfig{URL: f.URL})
	httpTestHandshake(t, tr)
	f.renew("s2")
	_, err := tr.call(context.Background(), httpTestCall(2))
	if he := httpTestStatus(t, err, 404); !he.SessionSent {
		t.Error("SessionSent is false for a 404 to a session")
	}
	if tr.session() != "s1" {
		t.Error("the transport dropped the session by itself")
	}
	if _, err := httpTestInit(tr); err != nil || tr.session() != "s2" { // a dead session is on no initialize, dropped or not
		t.Errorf("initialize beside a dead session: %v, session %q", err, tr.session())
	}
	tr.dropSession()
	_, err = tr.call(context.Background(), httpTestCall(3))
	if he := httpTestStatus(t, err, 404); he.SessionSent {
		t.Error("SessionSent is true without a session")
	}
	httpTestHandshake(t, tr)
	if _, err := tr.call(context.Background(), httpTestCall(4)); err != nil || tr.session() != "s2" {
		t.Errorf("after the new session: %v, session %q", err, tr.session())
	}
	for _, r := range f.requests(methodInitialize) {
		if len(r.Header.Values(headerSession))+len(r.Header.Values(headerProtocol)) != 0 {
			t.Errorf("an initialize carried %v", r.Header)
		}
	}
	if n := len(f.requests(methodToolsCall)); n != 3 {
		t.Errorf("%d calls arrived, 3 were made", n)
	}
}

// W33: an id is taken from the answer to initialize alone, and only if it is visible ASCII.
func TestW33SessionID(t *testing.T) {
	for id, want := range map[string]string{"abc-~!": "abc-~!", "a b": "", "a\tb": "", "ü": "", strings.Repeat("x", httpSessionMax+1): "", "": ""} {
		f := newFakeHTTP(t)
		f.Session = id
		tr := httpTestTransport(t, httpConfig{URL: f.URL})
		if _, err := httpTestInit(tr); err != nil {
			t.Errorf("%q: %v", id, err)
		}
		if tr.session() != want {
			t.Errorf("id %q: session %q, want %q", id, tr.session(), want)
		}
		if told := strings.Contains(tr.diagnostics(), "session id"); told != (id != want) {
			t.Errorf("id %q: diagnostics %q", id, tr.diagnostics())
		}
	}
	f, tr := httpTestScripted(t, func(w http.ResponseWriter, r fakeHTTPRequest) {
		w.Header().Set(headerSession, "s9")
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, fakeHTTPResult(r, `{}`))
	})
	if _, err := tr.call(context.Background(), httpTestCall(2)); err != nil || tr.session() != "s1" {
		t.Errorf("session %q, %v after a call that named another", tr.session(), err)
	}
	f.on(methodInitialize, func(w http.ResponseWriter, r fakeHTTPRequest) {
		w.Header().Set(headerSession, "s9")
		f.send(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}`)
	})
	if m, err := httpTestInit(tr); err != nil || m.Error == nil || tr.session() != "s1" {
		t.Errorf("refused initialize: %+v, %v, session %q", m, err, tr.session())
	}
}

// HTC-14, the transport's part: a 401 is reported once, with its challenge, and the request is not repeated.
func TestHTC14Unauthorized(t *testing.T) {
	f, tr := httpTestScripted(t, func(w http.ResponseWriter, _ fakeHTTPRequest) {
		w.Header().Add("WWW-Authenticate", `Bearer resource_metadata="https://x.test/m"`)
		w.Header().Add("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
	})
	_, err := tr.call(context.Background(), httpTestCall(2))
	he := httpTestStatus(t, err, 401)
	if want := []string{`Bearer resource_metadata="https://x.test/m"`, "Basic"}; !slices.Equal(he.Challenge, want) {
		t.Errorf("challenges %q, want %q", he.Challenge, want)
	}
	if n := len(f.requests(methodToolsCall)); n != 1 {
		t.Errorf("the call arrived %d times", n)
	}
}

// A JSON-RPC error that comes with an HTTP error is both.
func TestHTTPErrorBody(t *testing.T) {
	for _, status := range []int{400, 403, 404, 500} {
		f := newFakeHTTP(t)
		f.on(methodInitialize, fakeHTTPStatus(status, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"Unsupported <b>version</b>","data":{"supported":["2025-06-18"]}}}`))
		tr := httpTestTransport(t, httpConfig{URL: f.URL})
		_, err := httpTestInit(tr)
		he := httpTestStatus(t, err, status)
		re, ok := errors.AsType[*rpcError](err)
		if !ok || re.Code != -32602 || string(re.Data) != `{"supported":["2025-06-18"]}` || he.Message != "Unsupported version" {
			t.Errorf("%d: %v, protocol error %+v", status, err, re)
		}
	}
}

// httpTestClock stands still; its waits are noted and over at once.
type httpTestClock struct {
	at    time.Time
	waits []time.Duration
}

func (c *httpTestClock) now() time.Time { return c.at }
func (c *httpTestClock) wait(_ context.Context, d time.Duration) error {
	c.waits = append(c.waits, d)
	c.at = c.at.Add(d)
	return nil
}

func TestHTC15RetryAfter(t *testing.T) {
	start := time.Now().Truncate(time.Second)
	tests := []struct {
		name, header string
		status       int
		busy         int // answers of that status before a good one
		waits        []time.Duration
		ok           bool
		shown        string
	}{
		{"seconds", "2", 429, 1, []time.Duration{2 * time.Second}, true, ""},
		{"503", "2", 503, 2, []time.Duration{2 * time.Second, 2 * time.Second}, true, ""},
		{"few tries", "1", 429, 9, []time.Duration{time.Second, time.Second}, false, "asks to wait 1s"},
		{"date", start.Add(3 * time.Second).UTC().Format(http.TimeFormat), 429, 1, []time.Duration{3 * time.Second}, true, ""},
		{"past date", start.Add(-time.Hour).UTC().Format(http.TimeFormat), 429, 1, []time.Duration{0}, true, ""},
		{"over the deadline in sum", "25", 429, 9, []time.Duration{25 * time.Second, 25 * time.Second}, false, "asks to wait 25s"},
		{"long", "99999", 429, 1, nil, false, "asks to wait 27h46m39s, until " + start.Add(99999*time.Second).UTC().Format(time.RFC3339)},
		{"longer than any number", strings.Repeat("9", 400), 503, 1, nil, false, "asks to wait"},
		{"negative", "-5", 429, 1, nil, false, "Too Many Requests"},
		{"garbage", "soon", 503, 1, nil, false, "Service Unavailable"},
		{"none", "", 429, 1, nil, false, "Too Many Requests"},
		{"another status", "2", 500, 1, nil, false, "Internal Server Error"},
	}
	for _, tc := range tests {
		f := newFakeHTTP(t)
		n := 0
		f.on(methodToolsCall, func(w http.ResponseWriter, r fakeHTTPRequest) {
			if n++; n > tc.busy {
				f.result(w, r, `{}`)
				return
			}
			if tc.header != "" {
				w.Header().Set("Retry-After", tc.header)
			}
			w.WriteHeader(tc.status)
		})
		clock := &httpTestClock{at: start}
		tr := httpTestTransport(t, httpConfig{URL: f.URL, Now: clock.now})
		tr.wait = clock.wait
		httpTestHandshake(t, tr)
		_, err := tr.call(context.Background(), httpTestCall(2))
		if ok := err == nil; ok != tc.ok || !slices.Equal(clock.waits, tc.waits) {
			t.Errorf("%s: %v, waits %v; want success %v, waits %v", tc.name, err, clock.waits, tc.ok, tc.waits)
		}
		if !tc.ok && !strings.Contains(err.Error(), tc.shown) {
			t.Errorf("%s: error %q does not say %q", tc.name, err, tc.shown)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := httpWait(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled wait: %v", err)
	}
	if err := httpWait(context.Background(), 0); err != nil {
		t.Errorf("wait: %v", err)
	}
}

// HTC-16 R6 R9: what is no MCP answer is shown as a short clean line, without what tai sent.
func TestHTC16NotMCP(t *testing.T) {
	t.Parallel()
	page := "<!DOCTYPE html><html><head><title>Sign in</title><style>b{color:red}</style><script>alert('x')</script></head><body>\n<p>Hello\x1b[2J &amp; key topsecret99</p>" + strings.Repeat("<i>more</i> ", 1<<17)
	tests := []struct {
		name        string
		status      int
		contentType string
		body, shown string
	}{
		{"plain text", 200, "text/plain", "It works!\n", `not an MCP answer (type "text/plain"): It works!`},
		{"login page", 200, "text/html; charset=utf-8", page, `not an MCP answer (type "text/html"): Sign in Hello\u001b[2J &amp; key [secret:Authorization]`},
		{"gateway page", 502, "text/html", page, "HTTP 502 Bad Gateway"},
		{"no type", 200, "", "{}", "not an MCP answer"},
		{"empty 500", 500, "text/plain", "", "HTTP 500 Internal Server Error"},
		{"unknown status", 599, "text/plain", "\xff\xfe", "HTTP 599 from"},
		{"broken markup", 400, "text/plain", "<<b>script>alert(1)<</b>/script> 1 < 2 <a", "script"},
		{"own header in it", 400, "text/plain", "bad key Bearer topsecret99, session s-session1, dG9wc2VjcmV0OTk=", "bad key [secret:Authorization], session [secret:session]"},
	}
	for _, tc := range tests {
		f := newFakeHTTP(t)
		f.Session = "s-session1"
		f.on(methodToolsCall, func(w http.ResponseWriter, r fakeHTTPRequest) {
			w.Header()["Content-Type"] = []string{tc.contentType}
			w.WriteHeader(tc.status)
			io.WriteString(w, tc.body)
		})
		tr := httpTestTransport(t, httpConfig{URL: f.URL + "/mcp?api_key=queryvalue", Headers: map[string]string{"Authorization": "Bearer topsecret99"}})
		httpTestHandshake(t, tr)
		_, err := tr.call(context.Background(), httpTestCall(2))
		he := httpTestStatus(t, err, tc.status)
		if !strings.Contains(he.Error(), tc.shown) {
			t.Errorf("%s: %q, want %q in it", tc.name, he, tc.shown)
		}
		_, body, _ := strings.Cut(he.Message, "): ")
		if tc.status != 200 {
			body = he.Message
		}
		if n := utf8.RuneCountInString(body); n > httpErrorText {
			t.Errorf("%s: %d characters shown", tc.name, n)
		}
		for _, bad := range []string{"<", ">", "alert('", "color", "\x1b", "\n", "topsecret", "dG9wc2VjcmV0OTk", "queryvalue", "s-session1"} {
			if strings.Contains(err.Error(), bad) {
				t.Errorf("%s: %q holds %q", tc.name, err, bad)
			}
		}
	}
}

// HTC-18: no credential goes over plain http to another machine, be it configured or a token.
func TestHTC18PlainHTTP(t *testing.T) {
	tests := []struct {
		url, header string
		ok          bool
	}{
		{"http://mcp.test/mcp", "Authorization", false},
		{"http://mcp.test/mcp", "x-api-key", false},
		{"http://mcp.test/mcp", "Cookie", false},
		{"http://mcp.test/mcp", "X-Access-Token", false},
		{"http://mcp.test/mcp", "Client-Secret", false},
		{"http://mcp.test/mcp", "X-Region", true},
		{"http://192.168.1.5/mcp", "Authorization", false},
		{"http://user:pw@mcp.test/mcp", "X-Region", false},
		{"http://mcp.test/mcp?api_key=1", "X-Region", false},
		{"http://localhost.mcp.test/", "Authorization", false},
		{"HTTPS://mcp.test/mcp", "Authorization", true},
		{"http://localhost:1/mcp", "Authorization", true},
		{"http://127.0.0.1:1/mcp", "Authorization", true},
		{"http://[::1]:1/mcp", "Authorization", true},
	}
	for _, tc := range tests {
		_, err := newHTTPTransport(httpConfig{URL: tc.url, Headers: map[string]string{tc.header: "hunter22"}, Client: newHTTPClient(httpClientConfig{})})
		if ok := err == nil; ok != tc.ok || !tc.ok && (!strings.Contains(err.Error(), "use https") || strings.Contains(err.Error(), "hunter22")) {
			t.Errorf("%s with %s: %v, want success %v", tc.url, tc.header, err, tc.ok)
		}
	}
	token := func(context.Context) (secret, error) { return "hunter22", nil }
	tr := httpTestTransport(t, httpConfig{URL: "http://mcp.test/", Token: token})
	if _, err := httpTestInit(tr); err == nil || !strings.Contains(err.Error(), "use https") {
		t.Errorf("token over http: %v", err)
	}
}

func TestHTTPToken(t *testing.T) {
	f := newFakeHTTP(t)
	value, fault := secret("tok-1"), error(nil)
	tr := httpTestTransport(t, httpConfig{URL: f.URL, Token: func(context.Context) (secret, error) { return value, fault }})
	httpTestHandshake(t, tr)
	value = "tok-2"
	if _, err := tr.call(context.Background(), httpTestCall(2)); err != nil {
		t.Fatal(err)
	}
	value = ""
	if _, err := tr.call(context.Background(), httpTestCall(3)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range f.requests("") {
		got = append(got, r.Header.Get("Authorization"))
	}
	if want := []string{"Bearer tok-1", "Bearer tok-1", "Bearer tok-2", ""}; !slices.Equal(got, want) {
		t.Errorf("Authorization %q, want %q", got, want)
	}
	value = "tok-echoed"
	for _, h := range []func(http.ResponseWriter, fakeHTTPRequest){
		fakeHTTPStatus(200, "text/plain", "hello tok-echoed"), fakeHTTPStatus(403, "text/plain", "hello tok-echoed"),
		fakeHTTPStatus(400, "application/json", `{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"hello tok-echoed"}}`),
	} {
		f.on(methodToolsList, h)
		_, err := tr.call(context.Background(), rpcMessage{ID: json.RawMessage("4"), Method: methodToolsList})
		re, _ := errors.AsType[*rpcError](err)
		if err == nil || !strings.Contains(err.Error(), "hello [secret:token]") || re != nil && re.Message != "hello [secret:token]" {
			t.Errorf("R9 echoed token: %v, %v", err, re)
		}
	}
	f.on(methodToolsList, fakeHTTPStatus(200, "application/json", `{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"hello tok-echoed"}}`))
	if m, err := tr.call(context.Background(), rpcMessage{ID: json.RawMessage("4"), Method: methodToolsList}); err != nil || m.Error.Message != "hello [secret:token]" {
		t.Errorf("R9 echoed token: %v, %v", m.Error, err)
	}
	value = "a\r\nX: y"
	if _, err := tr.call(context.Background(), httpTestCall(4)); err == nil || strings.Contains(err.Error(), "X: y") {
		t.Errorf("token with a line break: %v", err)
	}
	fault = errors.New("vault is locked")
	if _, err := tr.call(context.Background(), httpTestCall(5)); !errors.Is(err, fault) {
		t.Errorf("token fault: %v", err)
	}
	if n := len(f.requests("")); n != 8 {
		t.Errorf("%d requests arrived, want 8", n)
	}
	own := httpTestTransport(t, httpConfig{URL: f.URL, Headers: map[string]string{"authorization": "Basic eDp5"}, Token: func(context.Context) (secret, error) {
		t.Error("the token was asked for beside an Authorization of the entry")
		return "", nil
	}})
	httpTestHandshake(t, own)
}

func TestHTTPEntryFaults(t *testing.T) {
	tests := []struct {
		name, url string
		headers   map[string]string
		fault     string
	}{
		{"line break", "https://a.test", map[string]string{"X-A": "hunter22\r\nX-B: 1"}, "header X-A: its value holds a line break"},
		{"NUL", "https://a.test", map[string]string{"X-A": "hunter22\x00"}, "control character"},
		{"name", "https://a.test", map[string]string{"X A": "hunter22"}, "not allowed in HTTP"},
		{"empty name", "https://a.test", map[string]string{"": "hunter22"}, "not allowed in HTTP"},
		{"twice", "https://a.test", map[string]string{"X-A": "hunter22", "x-a": "2"}, "header X-A is given twice"},
		{"Host", "https://a.test", map[string]string{"host": "hunter22"}, "header Host belongs to the connection"},
		{"Transfer-Encoding", "https://a.test", map[string]string{"Transfer-Encoding": "hunter22"}, "belongs to the connection"},
		{"scheme", "ftp://u:hunter22@a.test", nil, "no http or https URL"},
		{"no host", "https:///hunter22", nil, "no http or https URL"},
		{"no URL", "https://a.test/%zz?hunter22", nil, "is no URL"},
		{"control", "https://a.test/\nhunter22", nil, "is no URL"},
	}
	for _, tc := range tests {
		_, err := newHTTPTransport(httpConfig{URL: tc.url, Headers: tc.headers, Client: newHTTPClient(httpClientConfig{})})
		if err == nil || !strings.Contains(err.Error(), tc.fault) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %v, want %q and no value", tc.name, err, tc.fault)
		}
	}
}

// httpTestConn tells when the client closes it.
type httpTestConn struct {
	net.Conn
	closed chan<- struct{}
}

func (c *httpTestConn) Close() error {
	select {
	case c.closed <- struct{}{}:
	default: // one is told already
	}
	return c.Conn.Close()
}

// HTC-20: a connection that the server closed while idle is dialled again, and that is no error.
func TestHTC20IdleClose(t *testing.T) {
	f := newFakeHTTP(t)
	tr := httpTestTransport(t, httpConfig{URL: f.URL})
	httpTestHandshake(t, tr)
	for i := range 20 {
		f.Server.CloseClientConnections()
		if _, err := tr.call(context.Background(), rpcMessage{ID: json.RawMessage(strconv.Itoa(i + 2)), Method: methodPing}); err != nil {
			t.Fatalf("ping %d after an idle close: %v", i, err)
		}
	}
	closed := make(chan struct{}, 1)
	client := newHTTPClient(httpClientConfig{})
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &httpTestConn{Conn: conn, closed: closed}, err
	}
	tr = httpTestTransport(t, httpConfig{URL: f.URL, Client: client})
	httpTestHandshake(t, tr)
	f.Server.CloseClientConnections()
	<-closed // the client has seen it
	if _, err := tr.call(context.Background(), httpTestCall(99)); err != nil {
		t.Errorf("tools/call after an idle close: %v", err)
	}
	if httpIdleConn >= 5*time.Second {
		t.Error("idle connections are kept as long as servers keep them")
	}
}

// R4: a tools/call whose connection breaks after it was sent is not sent again; the error does not claim to know more.
func TestR4NoReplay(t *testing.T) {
	f, tr := httpTestScripted(t, func(w http.ResponseWriter, _ fakeHTTPRequest) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	})
	if _, err := tr.call(context.Background(), httpTestCall(2)); err == nil || strings.Contains(err.Error(), "Post \"") {
		t.Errorf("cut connection: %v", err)
	}
	if n := len(f.requests(methodToolsCall)); n != 1 {
		t.Errorf("the call was sent %d times", n)
	}
}

// HTC-20: the connection serves the next call after JSON, and after a stream that ends a little later than the answer came.
func TestHTTPConnectionReuse(t *testing.T) {
	for _, sse := range []bool{false, true} {
		f := newFakeHTTP(t)
		f.SSE = sse
		answered := make(chan struct{}, 1)
		f.on(methodToolsCall, func(w http.ResponseWriter, r fakeHTTPRequest) {
			f.result(w, r, `{}`)
			if sse {
				<-answered
			}
		})
		tr := httpTestTransport(t, httpConfig{URL: f.URL})
		tr.limits.drain = time.Minute
		httpTestHandshake(t, tr)
		tr.work.Wait()
		remotes := map[string]bool{}
		for i := range 5 {
			if _, err := tr.call(context.Background(), httpTestCall(i+2)); err != nil {
				t.Fatal(err)
			}
			answered <- struct{}{}
			if !sse {
				<-answered
			}
			tr.work.Wait() // the drain, so that the count below is exact
		}
		for _, r := range f.requests(methodToolsCall) {
			remotes[r.Remote] = true
		}
		if len(remotes) != 1 {
			t.Errorf("SSE %v: 5 calls in a row used %d connections", sse, len(remotes))
		}
	}
}

// A stream that stays open after the answer delays neither the call nor close.
func TestHTTPStreamStaysOpen(t *testing.T) {
	gone := make(chan struct{}, 2)
	f := newFakeHTTP(t)
	f.on(methodToolsCall, func(w http.ResponseWriter, r fakeHTTPRequest) {
		fakeHTTPStream(w, "data: "+fakeHTTPResult(r, `{}`)+"\n\n")
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range 10_000 { // comments until the client is gone
			<-tick.C
			if _, err := io.WriteString(w, ": x\n"); err != nil {
				gone <- struct{}{}
				return
			}
			w.(http.Flusher).Flush()
		}
	})
	tr := httpTestTransport(t, httpConfig{URL: f.URL})
	httpTestHandshake(t, tr)
	tr.limits.drain = 20 * time.Millisecond
	if _, err := tr.call(context.Background(), httpTestCall(2)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		t.Error("the stream was kept open")
	}
	tr.limits.drain = time.Hour
	if _, err := tr.call(context.Background(), httpTestCall(3)); err != nil {
		t.Fatal(err)
	}
	tr.close()
	if n := len(tr.running); n != 0 {
		t.Errorf("%d exchanges left after close", n)
	}
}

// close ends a call that waits.
func TestHTTPCloseEndsCalls(t *testing.T) {
	started := make(chan struct{})
	_, tr := httpTestScripted(t, func(w http.ResponseWriter, r fakeHTTPRequest) {
		close(started)
		fakeHTTPStream(w, ": wait\n\n")
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			io.Copy(io.Discard, conn) // until the client is gone
			conn.Close()
		}
	})
	got := make(chan error, 1)
	go func() {
		_, err := tr.call(context.Background(), httpTestCall(2))
		got <- err
	}()
	<-started
	tr.close()
	select {
	case err := <-got:
		if !errors.Is(err, errHTTPClosed) {
			t.Errorf("call: %v, want %v", err, errHTTPClosed)
		}
	case <-time.After(5 * time.Second):
		t.Error("the call went on")
	}
}

func TestHTTPJSONReplies(t *testing.T) {
	tests := []struct {
		name, body, result, fault string
		rpc                       int
	}{
		{"result", `{"jsonrpc":"2.0","id":7,"result":{}}`, `{}`, "", 0},
		{"LST-15 error", `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"x"}}`, "", "", -32602},
		{"error without id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}`, "", "", -32600},
		{"HTC-21 wrong case", `{"jsonrpc":"2.0","ID":7,"Result":{}}`, "", "is no message", 0},
		{"HTC-21 folded", "{\"jsonrpc\":\"2.0\",\"id\":7,\"re\u017fult\":{}}", "", "is no message", 0},
		{"R5 id of another type", `{"jsonrpc":"2.0","id":"7","result":{}}`, "", "no answer to this request", 0},
		{"R5 id of another request", `{"jsonrpc":"2.0","id":8,"result":{}}`, "", "no answer to this request", 0},
		{"R5 duplicate", `{"jsonrpc":"2.0","id":7,"result":{},"result":{}}`, "", "is no message", 0},
		{"R5 not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\xff\xfe\"}", "", "is no message", 0},
		{"two messages", `{"jsonrpc":"2.0","id":7,"result":{}}{}`, "", "is no message", 0},
		{"empty", ``, "", "is no message", 0},
		{"array", `[{"jsonrpc":"2.0","id":7,"result":{}}]`, "", "only revision 2025-03-26", 0},
		{"notification alone", `{"jsonrpc":"2.0","method":"notifications/x"}`, "", "no answer to this request", 0},
	}
	for _, tc := range tests {
		_, tr := httpTestScripted(t, fakeHTTPStatus(200, "application/json", tc.body))
		m, err := tr.call(context.Background(), httpTestCall(7))
		code := 0
		if m.Error != nil {
			code = m.Error.Code
		}
		if string(m.Result) != tc.result || code != tc.rpc || tc.fault == "" && err != nil || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)) {
			t.Errorf("%s: result %s, code %d, error %v; want %q, %d, %q", tc.name, m.Result, code, err, tc.result, tc.rpc, tc.fault)
		}
		if _, ok := errors.AsType[*rpcError](err); ok {
			t.Errorf("%s: tai's own finding looks like the server's error", tc.name)
		}
	}
}

// Results keep their bytes when later calls use the same buffers, small ones and large ones.
func TestHTTPResultsOwnTheirBytes(t *testing.T) {
	for _, sse := range []bool{false, true} {
		f := newFakeHTTP(t)
		f.SSE = sse
		f.on(methodToolsCall, func(w http.ResponseWriter, r fakeHTTPRequest) {
			size := 10
			if r.RPC.ID[0] == '2' {
				size = 3 * httpBufferMin
			}
			f.result(w, r, `"`+strings.Repeat(string(r.RPC.ID[1:]), size)+`"`)
		})
		tr := httpTestTransport(t, httpConfig{URL: f.URL})
		httpTestHandshake(t, tr)
		var got []rpcMessage
		for i := range 8 {
			m, err := tr.call(context.Background(), httpTestCall(10+i%2*10+i))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, m)
		}
		for _, m := range got {
			if text, ok := jsonString(m.Result); !ok || strings.Trim(text, string(m.ID[1:])) != "" || text == "" {
				t.Errorf("SSE %v: result of %s was overwritten", sse, m.ID)
			}
		}
	}
}

// Two transports and many calls at once share one client without mixing anything up.
func TestHTTPConcurrentCalls(t *testing.T) {
	f := newFakeHTTP(t)
	f.on(methodToolsCall, func(w http.ResponseWriter, r fakeHTTPRequest) {
		fakeHTTPStream(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n", "data: "+fakeHTTPResult(r, string(r.RPC.ID))+"\n\n")
	})
	tr := httpTestTransport(t, httpConfig{URL: f.URL})
	httpTestHandshake(t, tr)
	errs := make(chan error, 32)
	for i := range cap(errs) {
		go func() {
			m, err := tr.call(context.Background(), httpTestCall(100+i))
			if err == nil && string(m.Result) != strconv.Itoa(100+i) {
				err = fmt.Errorf("call %d got %s", 100+i, m.Result)
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestHTTPMessageCap(t *testing.T) {
	f, tr := httpTestScripted(t, nil)
	m := httpTestCall(2)
	m.Params = json.RawMessage(`"` + strings.Repeat("x", mcpHTTPMaxBody) + `"`)
	if _, err := tr.call(context.Background(), m); err == nil || !strings.Contains(err.Error(), "over the cap") {
		t.Errorf("message over the cap: %v", err)
	}
	if n := len(f.requests(methodToolsCall)); n != 0 {
		t.Errorf("%d calls arrived", n)
	}
}

func TestShownURL(t *testing.T) {
	for in, want := range map[string]string{
		"https://user:pw@A.test:443/mcp?key=1#f":          "https://a.test/mcp",
		"http://a.test:8080/":                             "http://a.test:8080/",
		"https://[2001:DB8::1]:9/x":                       "https://[2001:db8::1]:9/x",
		"https://a.test/s/0123456789abcdef0123456789/mcp": "https://a.test/s/…/mcp",
		"https://a.test/%1b%5b2J":                         "https://a.test/%1b%5b2J",
	} {
		tr := httpTestTransport(t, httpConfig{URL: in})
		if tr.shown != want {
			t.Errorf("shown %q = %q, want %q", in, tr.shown, want)
		}
	}
}

func TestHTTPDiagnosticsBounded(t *testing.T) {
	tr := httpTestTransport(t, httpConfig{URL: "https://a.test"})
	for i := range 100 {
		tr.note(fmt.Sprintf("%d\x1b[2J%s", i, strings.Repeat("x", 1000)))
	}
	got := tr.diagnostics()
	if lines := strings.Split(got, "\n"); len(lines) != httpNotesMax+1 || lines[httpNotesMax] != "(and 92 more)" {
		t.Errorf("%d lines:\n%s", len(lines), got)
	}
	if strings.Contains(got, "\x1b") || len(got) > httpNotesMax*2*httpErrorText {
		t.Errorf("diagnostics are raw or long: %q", got)
	}
}

func BenchmarkHTTPCall(b *testing.B) {
	for _, sse := range []bool{false, true} {
		b.Run(map[bool]string{false: "json", true: "sse"}[sse], func(b *testing.B) { httpBench(b, sse, 100) })
	}
}

func BenchmarkHTTPBigResult(b *testing.B) {
	for _, sse := range []bool{false, true} {
		for _, mib := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s-%dMiB", map[bool]string{false: "json", true: "sse"}[sse], mib), func(b *testing.B) {
				b.SetBytes(int64(mib) << 20)
				httpBench(b, sse, mib<<20)
			})
		}
	}
}

// httpBench calls a server that does next to nothing; what is measured is net/http twice and the transport.
func httpBench(b *testing.B, sse bool, size int) {
	result := `{"content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if sse {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":"+result+"}\n\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		body := `{"jsonrpc":"2.0","id":7,"result":` + result + `}`
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		io.WriteString(w, body)
	}))
	defer s.Close()
	tr := httpTestTransport(b, httpConfig{URL: s.URL})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		m, err := tr.call(ctx, httpTestCall(7))
		if err != nil || len(m.Result) != len(result) {
			b.Fatal(len(m.Result), err)
		}
	}
}
