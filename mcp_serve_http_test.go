package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

const servePing = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// serveRaw sends bytes as they are and gives the status of the first answer with what follows it until the server closes or has
// answered. The connection is closed then.
func serveRaw(t *testing.T, addr, text string) (status int, rest string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Logf("write: %v", err) // the server may have answered and closed before the end
	}
	method, _, _ := strings.Cut(text, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		t.Errorf("read the answer to %.40q: %v", text, err)
	}
	return resp.StatusCode, string(b)
}

func (f *serveFixture) addr() string {
	return strings.TrimSuffix(strings.TrimPrefix(f.url, "http://"), mcpPath)
}

// TestServeW72SRV08SRV09F23Origin: what a web page can send is refused before anything else is looked at, on every method.
func TestServeW72SRV08SRV09F23Origin(t *testing.T) {
	f := serveStart(t, modeDanger, func(c *serveConfig) { c.AllowedOrigins = []string{"HTTPS://App.example:443/", "vscode-webview://abc"} })
	session := f.open(t)
	own := f.addr()
	for _, tc := range []struct {
		origin, host string
		want         int
	}{
		{"", "", 200}, {"https://evil.example", "", 403}, {"null", "", 403}, {"http://localhost:3000", "", 403}, {"http://127.0.0.1", "", 403}, {"https://" + own, "", 403},
		{"http://" + own, "", 200}, {"http://localhost:1234", "localhost:1234", 200}, {"https://app.example", "", 200}, {"https://APP.example", "", 200}, {"vscode-webview://abc", "", 200},
		{"http://app.example", "", 403}, {"https://app.example.evil", "", 403}, {"https://app.example:8443", "", 403}, {"*", "", 403},
		{"", "evil.example:8765", 403}, {"http://evil.example:8765", "evil.example:8765", 403}, {"https://app.example", "evil.example", 403}, {"", "localhost.evil.example", 403},
		{"", "127.0.0.1.nip.example", 403}, {"", "192.168.0.9:8765", 403}, {"", "localhost", 200}, {"", "LOCALHOST:9", 200}, {"", "127.0.0.1:1", 200}, {"", "[::1]:8765", 200}, {"", "[::1]", 200},
	} {
		for _, method := range []string{"POST", "GET", "DELETE", "PUT", "OPTIONS"} {
			if method != "POST" && tc.want == 200 {
				continue
			}
			for _, key := range []string{"Bearer " + serveTestKey, "Bearer wrong", ""} {
				if key != "Bearer "+serveTestKey && tc.want == 200 {
					continue
				}
				headers := []string{session, "Authorization: " + key}
				if tc.origin != "" {
					headers = append(headers, "Origin: "+tc.origin)
				}
				if tc.host != "" {
					headers = append(headers, "Host: "+tc.host)
				}
				r := f.send(t, method, serveCall("deed", `{}`), headers...)
				if r.status != tc.want {
					t.Errorf("%s, Origin %q, Host %q, %q: status %d, want %d", method, tc.origin, tc.host, key, r.status, tc.want)
				}
				if listed := strings.Contains(tc.origin, "app.") && tc.want == 200 || strings.Contains(tc.origin, "vscode"); !listed && !strings.EqualFold(tc.origin, "https://app.example") {
					for name := range r.header {
						if strings.HasPrefix(name, "Access-Control-") {
							t.Errorf("Origin %q: header %s", tc.origin, name)
						}
					}
				}
			}
		}
	}
	if got := f.deeds.Load(); got != 11 {
		t.Errorf("deed ran %d times, want once for each allowed line", got)
	}
	// Two Origins, and none at all in HTTP/1.0 without Host.
	head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + serveTestKey + "\r\nContent-Length: 2\r\n"
	if got, _ := serveRaw(t, own, head+"Origin: https://app.example\r\nOrigin: https://evil.example\r\n\r\n{}"); got != 403 {
		t.Errorf("two Origins: status %d", got)
	}
	if got, _ := serveRaw(t, own, "POST /mcp HTTP/1.0\r\nAuthorization: Bearer "+serveTestKey+"\r\nContent-Length: 2\r\n\r\n{}"); got != 403 {
		t.Errorf("no Host: status %d", got)
	}
}

// TestServeListedOrigin: a page of a listed origin may ask first (without the key) and read the answer.
func TestServeListedOrigin(t *testing.T) {
	f := serveStart(t, modeDanger, func(c *serveConfig) { c.AllowedOrigins = []string{"https://app.example"} })
	r := f.send(t, "OPTIONS", "", "Origin: https://app.example", "Access-Control-Request-Method: POST", "Authorization: ")
	if r.status != 204 || r.header.Get("Access-Control-Allow-Origin") != "https://app.example" || r.header.Get("Vary") != "Origin" || !strings.Contains(r.header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("preflight: status %d, %v", r.status, r.header)
	}
	if r := f.send(t, "OPTIONS", "", "Access-Control-Request-Method: POST", "Authorization: "); r.status != 401 {
		t.Errorf("preflight without Origin: status %d", r.status)
	}
	if r := f.send(t, "POST", servePing, "Origin: https://app.example", "Authorization: "); r.status != 401 {
		t.Errorf("listed origin without the key: status %d", r.status)
	}
	for _, o := range []string{"*", "null", "app.example", "https://", "https://a/path", "https://u@a", "", "https://*.example", "https://ключ.example", "https://a,b"} {
		if _, err := newMCPServer(serveConfig{Tools: f.server.core.tools, Key: "k", AllowedOrigins: []string{o}}); err == nil {
			t.Errorf("allowed origin %q was taken", o)
		}
	}
}

// TestServeSRV20HostFollowsBind: on another address Host may be any name of the machine, Origin and key still hold.
func TestServeSRV20HostFollowsBind(t *testing.T) {
	for _, bind := range []string{"0.0.0.0", "::", "192.0.2.7", "box.example"} {
		f := serveStart(t, modeDanger, func(c *serveConfig) { c.Bind = bind })
		for want, headers := range map[int][]string{
			400: {"Host: box.example:8765"}, 401: {"Host: box.example:8765", "Authorization: Bearer x"}, 403: {"Host: box.example", "Origin: http://box.example"},
		} {
			if r := f.send(t, "POST", servePing, headers...); r.status != want {
				t.Errorf("bound to %s, %v: status %d, want %d", bind, headers, r.status, want)
			}
		}
	}
	for bind, want := range map[string]string{"0.0.0.0": "tcp4", "192.0.2.7": "tcp4", "::": "tcp", "::ffff:127.0.0.1": "tcp", "box.example": "tcp"} { // 0.0.0.0 asks for IPv4 alone
		if got := serveNetwork(bind); got != want {
			t.Errorf("serveNetwork(%q) = %q, want %q", bind, got, want)
		}
	}
	for _, bind := range []string{"127.0.0.1", "127.0.0.9", "::1", "[::1]", "localhost", ""} {
		f := serveStart(t, modeDanger, func(c *serveConfig) { c.Bind = bind })
		if r := f.send(t, "POST", servePing, "Host: box.example:8765"); r.status != 403 {
			t.Errorf("bound to %q: status %d, want 403", bind, r.status)
		}
	}
}

// TestServeListener: what counts is the address that is listened on, not its name. One that turns out to be this machine's alone holds Host to it, and
// one that does not is not served without a key (SRV-20).
func TestServeListener(t *testing.T) {
	t.Parallel()
	f := serveMake(t, modeDanger, func(c *serveConfig) { c.Bind = "box.example" })
	f.server.bind = "127.0.0.1" // what the name leads to
	_, stop := f.serveRun(t)
	if r := f.send(t, "POST", servePing, "Host: box.example"); r.status != 403 {
		t.Errorf("a name of its own on this machine: status %d", r.status)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	open := serveMake(t, modeDanger, func(c *serveConfig) { c.Key, c.Open = "", true })
	open.server.bind = "0.0.0.0"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := open.server.serve(ctx, func(string) { cancel() }); err == nil || !strings.Contains(err.Error(), "there is no key") {
		t.Errorf("every address without a key: %v", err)
	}
}

// TestServeSRV01Unread: what is refused is not read, and a body that does not come holds the connection for the linger alone.
func TestServeSRV01Unread(t *testing.T) {
	t.Parallel()
	f := serveMake(t, modeDanger, nil)
	f.server.limits.linger = 100 * time.Millisecond
	addr, stop := f.serveRun(t)
	for _, length := range []string{"Content-Length: 100", "Transfer-Encoding: chunked"} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(5 * time.Second))
		io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n"+length+"\r\n\r\n")
		got, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 401") || !strings.Contains(string(got), "Connection: close\r\n") {
			t.Errorf("%s: %q, %v", length, got, err)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestServeSRV01SRV02W74W89Key: one header, one key, whatever else comes with it.
func TestServeSRV01SRV02W74W89Key(t *testing.T) {
	t.Parallel()
	f := serveStart(t, modeDanger, nil)
	session := f.open(t)
	for _, tc := range []struct {
		auth string
		want int
	}{
		{"Bearer " + serveTestKey, 200}, {"bearer " + serveTestKey, 200}, {"BEARER  " + serveTestKey, 200},
		{"", 401}, {"Bearer", 401}, {"Bearer ", 401}, {serveTestKey, 401}, {"Basic " + serveTestKey, 401}, {"Bearer k-0123456789abcdeX", 401}, {"Bearer " + serveTestKey[:9], 401},
		{"Bearer " + serveTestKey + "0", 401}, {"Bearer " + strings.ToUpper(serveTestKey), 401}, {"Bearer " + serveTestKey + ", Bearer x", 401}, {"Bearer" + serveTestKey, 401},
	} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			if method != "POST" && tc.want == 200 {
				continue
			}
			r := f.send(t, method, servePing, session, "Authorization: "+tc.auth)
			if r.status != tc.want || (r.header.Get("WWW-Authenticate") == `Bearer realm="tai"`) != (tc.want == 401) {
				t.Errorf("%s with %q: status %d, WWW-Authenticate %q, want %d", method, tc.auth, r.status, r.header.Get("WWW-Authenticate"), tc.want)
			}
			if strings.Contains(r.body, "k-0123") {
				t.Errorf("%q: the answer repeats a key", tc.auth)
			}
		}
	}
	head := "POST /mcp?key=" + serveTestKey + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Api-Key: " + serveTestKey + "\r\nCookie: key=" + serveTestKey + "\r\n"
	if got, _ := serveRaw(t, f.addr(), head+"Content-Length: 2\r\n\r\n{}"); got != 401 {
		t.Errorf("key in query, cookie and X-Api-Key: status %d", got)
	}
	twice := "Authorization: Bearer " + serveTestKey + "\r\nAuthorization: Bearer " + serveTestKey + "\r\n"
	if got, _ := serveRaw(t, f.addr(), head+twice+"Content-Length: 2\r\n\r\n{}"); got != 401 {
		t.Errorf("two Authorization headers: status %d", got)
	}
	// Decided before the body is read: it never comes, be it large or small.
	for _, length := range []string{"Content-Length: 5000000", "Content-Length: 100", "Transfer-Encoding: chunked"} {
		if got, _ := serveRaw(t, f.addr(), head+length+"\r\n\r\n"); got != 401 {
			t.Errorf("wrong key and a body that does not come (%s): status %d", length, got)
		}
	}
}

// TestServeSRV03Key: a key that no client could send is no key.
func TestServeSRV03Key(t *testing.T) {
	f := serveMake(t, modeDanger, nil)
	for _, key := range []secret{"", " ", "open sesame", "sesame\n", "ключ", "sesame\x7f"} {
		if _, err := newMCPServer(serveConfig{Tools: f.server.core.tools, Key: key}); err == nil {
			t.Errorf("key %q was taken", key.reveal())
		} else if len(key) > 1 && strings.Contains(err.Error(), key.reveal()) {
			t.Errorf("error repeats the key: %v", err)
		}
	}
	for _, port := range []int{-1, 65536} {
		if _, err := newMCPServer(serveConfig{Tools: f.server.core.tools, Key: "k", Port: port}); err == nil {
			t.Errorf("port %d was taken", port)
		}
	}
}

// TestServeSRV04Size: over the cap is 413 before the body is read where its length is announced, and while it is read where not.
func TestServeSRV04Size(t *testing.T) {
	if mcpHTTPMaxBody != 10<<20 {
		t.Error("the documented cap is 10 MB")
	}
	f := serveStart(t, modeDanger, nil)
	session := f.open(t)
	head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + session + "\r\nAuthorization: Bearer " + serveTestKey + "\r\n"
	if got, _ := serveRaw(t, f.addr(), head+"Content-Length: 11534336\r\n\r\n"); got != 413 {
		t.Errorf("11 MB announced, none sent: status %d", got)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat(" ", 64<<10))
	conn, err := net.Dial("tcp", f.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	go func() { // ends when the server closes, or with conn
		if _, err := io.WriteString(conn, head+"Transfer-Encoding: chunked\r\n\r\n"); err != nil {
			return
		}
		for range 16 << 10 { // 1 GB unless it is stopped
			if _, err := io.WriteString(conn, chunk); err != nil {
				return
			}
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 413 {
		t.Fatalf("chunks without an end: %v, %v", resp, err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 96<<20 {
		t.Errorf("%d MB were allocated for a body over the cap", grown>>20)
	}
	// Just under the cap is fine, and a call of that size too.
	big := serveCall("echo", `{"text":"`+strings.Repeat("x", mcpHTTPMaxBody-200)+`"}`)
	if r := f.send(t, "POST", big, session); r.status != 200 || r.rpc.Error != nil {
		t.Errorf("%d bytes: status %d, %.300s", len(big), r.status, r.body)
	}
	if r := f.send(t, "POST", servePing, session); r.status != 200 {
		t.Errorf("after bodies over the cap: status %d", r.status)
	}
}

func TestServeSRV05Type(t *testing.T) {
	f := serveStart(t, modeDanger, nil)
	session := f.open(t)
	for kind, want := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON": 200,
		"": 415, "text/plain": 415, "text/plain; application/json": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=a": 415, "application/jsonp": 415, "application/json, text/plain": 415,
	} {
		if r := f.send(t, "POST", serveCall("deed", `{}`), session, "Content-Type: "+kind); r.status != want {
			t.Errorf("%q: status %d, want %d", kind, r.status, want)
		}
	}
	if got := f.deeds.Load(); got != 3 {
		t.Errorf("deed ran %d times, want 3", got)
	}
	if r := f.send(t, "POST", servePing, session, "Content-Encoding: gzip"); r.status != 415 {
		t.Errorf("an encoded body: status %d", r.status)
	}
}

// TestServeSRV06SRV07W82Body: what is not one strict message is not executed, not even in part.
func TestServeSRV06SRV07W82Body(t *testing.T) {
	f := serveStart(t, modeDanger, nil)
	session := f.open(t)
	call := serveCall("deed", `{}`)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, tc := range map[string]struct {
		body string
		code int
	}{
		"batch":                {"[" + call + "," + call + "]", codeInvalidRequest},
		"empty batch":          {"[]", codeInvalidRequest},
		"two methods":          {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"deed"}}`, codeInvalidRequest},
		"two escaped methods":  {`{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call","params":{"name":"deed"}}`, codeInvalidRequest},
		"method of other case": {`{"jsonrpc":"2.0","id":1,"Method":"tools/call","params":{"name":"deed"}}`, codeInvalidRequest},
		"two names":            {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"deed"}}`, codeParse},
		"null id":              {`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"deed"}}`, codeInvalidRequest},
		"fractional id":        {`{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"deed"}}`, codeInvalidRequest},
		"no version":           {`{"id":1,"method":"tools/call","params":{"name":"deed"}}`, codeInvalidRequest},
		"number":               {"5", codeInvalidRequest},
		"empty object":         {"{}", codeInvalidRequest},
		"empty":                {" ", codeParse},
		"truncated":            {call[:len(call)-3], codeParse},
		"two messages":         {call + call, codeParse},
		"nested 10,001":        {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deed","arguments":{"a":` + deep(10_001) + `}}}`, codeParse},
		"nested 1,001":         {`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + deep(1_001) + `}`, codeParse},
		"only nesting":         {deep(10_001), codeParse},
		"not UTF-8":            {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"deed\",\"x\":\"\xff\xfe\"}}", codeParse},
		"broken inside":        {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deed","x":[1 2]}}`, codeParse},
		"HTML":                 {"<html>", codeParse},
	} {
		r := f.send(t, "POST", tc.body, session)
		if r.status != 400 || r.code() != tc.code || strings.Contains(r.body, `"id"`) {
			t.Errorf("%s: status %d, body %.300s, want 400 and %d without an id", name, r.status, r.body, tc.code)
		}
	}
	if got := f.deeds.Load(); got != 0 {
		t.Errorf("deed ran %d times", got)
	}
	if r := f.send(t, "POST", servePing, session); r.status != 200 {
		t.Errorf("after bad bodies: status %d", r.status)
	}
}

// TestServeW78W79W80SRV10SRV11Session: ids are the server's own, and each request needs a live one.
func TestServeW78W79W80SRV10SRV11Session(t *testing.T) {
	f := serveStart(t, modeDanger, nil)
	body := serveRequest("1", methodInitialize, `{"protocolVersion":"2025-06-18"}`)
	ids := map[string]bool{"chosen-by-client": true}
	for range 20 {
		r := f.send(t, "POST", body, headerSession+": chosen-by-client", headerProtocol+": 2099-01-01") // W80 is for what follows initialize
		id := r.header.Get(headerSession)
		if r.status != 200 || len(id) < 20 || ids[id] || strings.ContainsFunc(id, func(c rune) bool { return c < '!' || c > '~' }) {
			t.Fatalf("initialize: status %d, session %q", r.status, id)
		}
		ids[id] = true
	}
	session := f.open(t)
	n := len(f.server.sessions)
	for _, tc := range []struct {
		method, body string
		headers      []string
		want         int
	}{
		{"POST", servePing, []string{session}, 200},
		{"POST", servePing, nil, 400},
		{"POST", serveCall("deed", `{}`), nil, 400},
		{"POST", serveCall("deed", `{}`), []string{headerSession + ": chosen-by-client"}, 404},
		{"POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 400},
		{"POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, []string{headerSession + ": x"}, 404},
		{"POST", servePing, []string{session, headerProtocol + ": 2025-11-25"}, 200},
		{"POST", servePing, []string{session, headerProtocol + ": 2024-11-05"}, 200},
		{"POST", servePing, []string{session, headerProtocol + ": 2025-03-26"}, 400},
		{"POST", serveCall("deed", `{}`), []string{session, headerProtocol + ": 2099-01-01"}, 400},
		{"POST", serveCall("deed", `{}`), []string{session, headerProtocol + ": 2026-07-28"}, 400},
		{"POST", serveCall("deed", `{}`), []string{session, headerProtocol + ": nonsense"}, 400},
		{"DELETE", "", nil, 400},
		{"DELETE", "", []string{headerSession + ": x"}, 404},
		{"DELETE", "", []string{session, headerProtocol + ": nonsense"}, 400},
		{"DELETE", "", []string{session}, 200},
		{"DELETE", "", []string{session}, 404},
		{"POST", servePing, []string{session}, 404},
		{"POST", serveCall("deed", `{}`), []string{session}, 404},
	} {
		r := f.send(t, tc.method, tc.body, tc.headers...)
		if r.status != tc.want {
			t.Errorf("%s %s %v: status %d, want %d", tc.method, tc.body, tc.headers, r.status, tc.want)
		}
		if r.status >= 400 && tc.method == "POST" && strings.Contains(tc.body, `"id"`) && r.rpc.ID == nil {
			t.Errorf("%s %v: error without the request's id: %s", tc.body, tc.headers, r.body)
		}
	}
	head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nAuthorization: Bearer " + serveTestKey + "\r\nContent-Length: " + strconv.Itoa(len(servePing)) + "\r\n"
	other := f.open(t)
	for headers, want := range map[string]int{other: 200, other + "\r\n" + other: 400, other + "\r\n" + headerProtocol + ": 2025-11-25\r\n" + headerProtocol + ": 2025-11-25": 400} {
		if got, body := serveRaw(t, f.addr(), head+headers+"\r\n\r\n"+servePing); got != want {
			t.Errorf("%q: status %d, want %d: %s", headers, got, want, body)
		}
	}
	if f.deeds.Load() != 0 {
		t.Error("a tool ran without a session")
	}
	if got := len(f.server.sessions); got != n {
		t.Errorf("%d sessions, want %d: refusals allocate nothing", got, n-1)
	}
}

// TestServeSessionIdle: a session goes after an hour without a request, on access and in the sweep; one at work stays.
func TestServeSessionIdle(t *testing.T) {
	if mcpSessionIdle != time.Hour || defaultServeLimits().session != mcpSessionIdle {
		t.Error("the documented time is 3600 s")
	}
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := serveStart(t, modeDanger, func(c *serveConfig) { c.Now = func() time.Time { return clock } })
	first, second, third := f.open(t), f.open(t), f.open(t)
	_ = third
	busy, _, _ := f.server.sessionFor([]string{strings.TrimPrefix(second, headerSession+": ")})
	clock = clock.Add(time.Hour)
	if r := f.send(t, "POST", servePing, first); r.status != 200 {
		t.Errorf("after an hour to the second: status %d", r.status)
	}
	clock = clock.Add(time.Hour)
	if r := f.send(t, "POST", servePing, first); r.status != 200 {
		t.Errorf("a request did not renew the session: status %d", r.status)
	}
	clock = clock.Add(time.Hour + time.Second)
	if r := f.send(t, "POST", servePing, first); r.status != 404 {
		t.Errorf("after an idle hour: status %d", r.status)
	}
	f.open(t)
	if got := len(f.server.sessions); got != 2 {
		t.Errorf("%d sessions after the sweep, want the busy and the new one", got)
	}
	f.server.leave(busy)
	if r := f.send(t, "POST", servePing, second); r.status != 200 {
		t.Errorf("a session that was at work: status %d", r.status)
	}
}

// TestServeSRV12Sessions: 10,000 initialises stay within the cap, the longest idle goes first, and who is at work is never dropped.
func TestServeSRV12Sessions(t *testing.T) {
	if mcpMaxSessions != 1000 || defaultServeLimits().sessions != mcpMaxSessions {
		t.Error("the documented cap is 1000")
	}
	var clock time.Time
	f := serveMake(t, modeDanger, func(c *serveConfig) {
		c.Now = func() time.Time { clock = clock.Add(time.Millisecond); return clock }
	})
	initialize := func() (int, string) {
		r := httptest.NewRequest("POST", mcpPath, strings.NewReader(serveRequest("1", methodInitialize, `{"protocolVersion":"2025-11-25"}`)))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+serveTestKey)
		w := httptest.NewRecorder()
		f.server.ServeHTTP(w, r)
		return w.Code, w.Header().Get(headerSession)
	}
	_, live := initialize()
	_, idle := initialize()
	_, working := initialize()
	busy, _, _ := f.server.sessionFor([]string{working})
	for range 10_000 {
		if status, id := initialize(); status != 200 || id == "" {
			t.Fatalf("initialize: status %d", status)
		}
		s, _, _ := f.server.sessionFor([]string{live})
		if s == nil {
			t.Fatal("a session in use was dropped")
		}
		f.server.leave(s)
	}
	if got := len(f.server.sessions); got != mcpMaxSessions {
		t.Errorf("%d sessions, want %d", got, mcpMaxSessions)
	}
	if s, status, _ := f.server.sessionFor([]string{idle}); s != nil || status != 404 {
		t.Errorf("the longest idle session is still there")
	}
	f.server.leave(busy)
	if s, _, _ := f.server.sessionFor([]string{working}); s == nil {
		t.Errorf("a session at work was dropped")
	}
	f.server.limits.sessions = 1
	for _, s := range f.server.sessions {
		s.busy++
	}
	if status, id := initialize(); status != 503 || id != "" {
		t.Errorf("every session at work: status %d, session %q", status, id)
	}
}

// serveRun runs serve and gives its address. stop ends it and gives its error.
func (f *serveFixture) serveRun(t *testing.T) (addr string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- f.server.serve(ctx, func(addr string) { ready <- addr }) }() // ends with ctx
	select {
	case addr = <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	f.url = "http://" + addr + mcpPath
	return addr, func() error {
		cancel()
		return <-done
	}
}

// TestServeSRV13W73Connections: half a header, silence, a body that stalls and a head of 2 MB hold nothing for long.
func TestServeSRV13W73Connections(t *testing.T) {
	t.Parallel()
	l := defaultServeLimits()
	if l.header > 10*time.Second || l.header != 5*time.Second || l.body != 30*time.Second || l.write != 30*time.Second || l.idle != 120*time.Second || serveHeaderMax != 32<<10 {
		t.Errorf("the documented waits are 5, 30, 30 and 120 s, and 32 KB of headers: %+v", l)
	}
	f := serveMake(t, modeDanger, nil)
	f.server.limits.header, f.server.limits.body, f.server.limits.idle = 500*time.Millisecond, 200*time.Millisecond, 300*time.Millisecond
	addr, stop := f.serveRun(t)
	if a, err := netip.ParseAddrPort(addr); err != nil || a.Addr().String() != "127.0.0.1" {
		t.Errorf("the default bind is %s", addr)
	}
	var stuck []net.Conn
	for i := range 200 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 {
			if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: loc"); err != nil {
				t.Fatal(err)
			}
		}
		stuck = append(stuck, conn)
	}
	session := f.open(t) // a new client is served
	for _, conn := range stuck {
		conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a stuck connection stays open")
		}
	}
	for _, size := range []int{48 << 10, 2 << 20} {
		if got, _ := serveRaw(t, addr, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Big: "+strings.Repeat("x", size)+"\r\n\r\n"); got != 431 {
			t.Errorf("%d bytes of headers: status %d", size, got)
		}
	}
	head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + session + "\r\nAuthorization: Bearer " + serveTestKey + "\r\nContent-Length: 100\r\n\r\n"
	if got, _ := serveRaw(t, addr, head+"{"); got != 408 {
		t.Errorf("a body that stalls: status %d", got)
	}
	kept, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	kept.SetReadDeadline(time.Now().Add(5 * time.Second))
	io.WriteString(kept, "GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if got, err := io.ReadAll(kept); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 404") || strings.Contains(string(got), "Connection: close") {
		t.Errorf("a kept connection without a further request: %q, %v", got, err)
	}
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Error("the port is still open")
	}
}

// TestServeUnreadAnswers: a client that asks and never reads does not hold its connection for ever.
func TestServeUnreadAnswers(t *testing.T) {
	t.Parallel()
	f := serveStart(t, modeDanger, nil)
	f.server.limits.write = 200 * time.Millisecond
	session := f.open(t)
	body := serveRequest("1", methodToolsList, "{}")
	ask := fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", session, serveTestKey, len(body), body)
	conn, err := net.Dial("tcp", f.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	many := strings.Repeat(ask, 100)
	for range 10_000 {
		if _, err = io.WriteString(conn, many); err != nil {
			break
		}
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection was kept: %v", err)
	}
}

// TestServeSRV14W81Paths: one path, two methods, nothing else to find.
func TestServeSRV14W81Paths(t *testing.T) {
	f := serveMake(t, modeDanger, nil)
	_, stop := f.serveRun(t)
	session := f.open(t)
	body := serveCall("deed", `{}`)
	for _, tc := range []struct {
		method, target string
		want           int
	}{
		{"POST", "/mcp", 200}, {"POST", "/mcp?x=1", 200}, {"POST", "http://localhost/mcp", 200},
		{"GET", "/mcp", 405}, {"PUT", "/mcp", 405}, {"HEAD", "/mcp", 405}, {"PATCH", "/mcp", 405}, {"OPTIONS", "/mcp", 405}, {"TRACE", "/mcp", 405}, {"post", "/mcp", 405},
		{"POST", "/", 404}, {"POST", "/mcp/", 404}, {"POST", "//mcp", 404}, {"POST", "/MCP", 404}, {"POST", "/%6dcp", 404}, {"POST", "/mcp/../mcp", 404}, {"POST", "/mcp%2f", 404}, {"POST", "/./mcp", 404},
		{"GET", "/debug/pprof/", 404}, {"GET", "/debug/vars", 404}, {"GET", "/metrics", 404}, {"OPTIONS", "*", 404}, {"GET", "/.well-known/oauth-protected-resource", 404},
	} {
		status, text := serveRaw(t, f.addr(), fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
			tc.method, tc.target, session, serveTestKey, len(body), body))
		if status != tc.want {
			t.Errorf("%s %s: status %d, want %d (%s)", tc.method, tc.target, status, tc.want, text)
		}
	}
	if got := f.deeds.Load(); got != 3 {
		t.Errorf("deed ran %d times, want 3", got)
	}
	if r := f.send(t, "GET", "", "Accept: text/event-stream", session); r.status != 405 || r.header.Get("Allow") != "POST, DELETE" {
		t.Errorf("W81: GET: status %d, Allow %q", r.status, r.header.Get("Allow"))
	}
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// TestServeSRV17F24Disconnect: a client that goes away cancels nothing; the outcome is in the run log and the session can be used.
func TestServeSRV17F24Disconnect(t *testing.T) {
	f := serveMake(t, modeDanger, nil)
	gone := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Leaves") != "" {
			go func() { // ends when the connection is seen to be gone
				<-r.Context().Done()
				close(gone)
			}()
		}
		f.server.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	f.url = web.URL + mcpPath
	session := f.open(t)
	ctx, leave := context.WithCancel(context.Background())
	lost := make(chan error, 1)
	go func() { // ends when the client leaves
		_, err := f.try(ctx, "POST", serveCall("wait", `{}`), session, "X-Leaves: yes")
		lost <- err
	}()
	<-f.started
	leave()
	if err := <-lost; err == nil {
		t.Fatal("the call was answered")
	}
	<-gone
	if r := f.send(t, "POST", servePing, session); r.status != 200 {
		t.Errorf("session of a lost connection: status %d", r.status)
	}
	close(f.release)
	if err := <-f.ended; err != nil {
		t.Errorf("the lost connection cancelled the call: %v", err)
	}
	web.Close() // waits for the handler
	if got := f.auditEvents(t); !strings.HasSuffix(got, "tool_call_completed wait") {
		t.Errorf("run log:\n%s", got)
	}
	if n := len(f.server.core.calls); n != 0 {
		t.Errorf("%d calls are still under way", n)
	}
}

// TestServeDeleteCancels: the end of a session ends what it has under way, unanswered.
func TestServeDeleteCancels(t *testing.T) {
	f := serveStart(t, modeDanger, nil)
	session := f.open(t)
	answer := make(chan serveReply, 1)
	go func() { // ends with the call
		r, err := f.try(context.Background(), "POST", serveCall("wait", `{}`), session)
		if err != nil {
			t.Error(err)
		}
		answer <- r
	}()
	<-f.started
	if r := f.send(t, "DELETE", "", session); r.status != 200 || r.body != "" {
		t.Errorf("DELETE: status %d, body %q", r.status, r.body)
	}
	if err := <-f.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call's context ended with %v", err)
	}
	if r := <-answer; r.status != 202 {
		t.Errorf("the call of an ended session: status %d, %s", r.status, r.body)
	}
}

// TestServeStop: calls under way are finished, those that take too long cancelled and answered, and one that heeds nothing is left.
func TestServeStop(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, tool string, grace time.Duration) (f *serveFixture, answer chan serveReply, stop func() error) {
		f = serveMake(t, modeDanger, nil)
		f.server.limits.grace = grace
		_, stop = f.serveRun(t)
		session := f.open(t)
		answer = make(chan serveReply, 1)
		go func() { // ends with the call or the server
			r, err := f.try(context.Background(), "POST", serveCall(tool, `{}`), session)
			if err != nil {
				r.body = err.Error()
			}
			answer <- r
		}()
		<-f.started
		return f, answer, stop
	}
	t.Run("finished", func(t *testing.T) {
		f, answer, stop := start(t, "wait", 10*time.Second)
		ended := make(chan error, 1)
		go func() { ended <- stop() }() // ends when the call has
		for {                           // the port closes first
			conn, err := net.Dial("tcp", f.addr())
			if err != nil {
				break
			}
			conn.Close()
		}
		close(f.release)
		if r := <-answer; !strings.Contains(r.body, "released") {
			t.Errorf("call at the end: %s", r.body)
		}
		if err := <-ended; err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		_, answer, stop := start(t, "wait", 300*time.Millisecond)
		if err := stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if r := <-answer; !strings.Contains(r.body, `"isError":true`) {
			t.Errorf("cancelled call: %s", r.body)
		}
	})
	t.Run("deaf", func(t *testing.T) {
		f, answer, stop := start(t, "deaf", 20*time.Millisecond)
		if err := stop(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stop: %v", err)
		}
		if r := <-answer; r.status != 0 {
			t.Errorf("call that heeds nothing: %s", r.body)
		}
		close(f.stuck)
	})
	if defaultServeLimits().grace != 5*time.Second {
		t.Error("the documented grace is 5 s")
	}
}

// TestServePortTaken: a second server on the same port fails at once and says why.
func TestServePortTaken(t *testing.T) {
	f := serveMake(t, modeDanger, nil)
	addr, stop := f.serveRun(t)
	second := serveMake(t, modeDanger, func(c *serveConfig) { c.Port = int(netip.MustParseAddrPort(addr).Port()) })
	err := second.server.serve(context.Background(), func(string) { t.Error("ready on a taken port") })
	if err == nil || !strings.Contains(err.Error(), addr) {
		t.Errorf("port taken: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestServeOwnClient: tai's own transport against tai's own server.
func TestServeOwnClient(t *testing.T) {
	f := serveStart(t, modeDanger, nil)
	tr, err := newHTTPTransport(httpConfig{URL: f.url, Headers: map[string]string{"Authorization": "Bearer " + serveTestKey}, Client: newHTTPClient(httpClientConfig{})})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ask := func(method, params string) rpcMessage {
		t.Helper()
		m, err := tr.call(ctx, rpcMessage{ID: []byte("1"), Method: method, Params: []byte(params)})
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		return m
	}
	ask(methodInitialize, `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tai","version":"1"}}`)
	tr.setVersion(mcpProtocolVersion)
	if err := tr.notify(ctx, rpcMessage{Method: methodInitialized}); err != nil {
		t.Error(err)
	}
	if _, _, err := decodeToolList(ask(methodToolsList, `{}`).Result, func(toolDef) {}); err != nil {
		t.Error(err)
	}
	res, err := decodeCallResult(ask(methodToolsCall, `{"name":"echo","arguments":{"text":"both ways"}}`).Result)
	if err != nil || serveText(t, res) != "both ways" {
		t.Errorf("call: %v, %v", res, err)
	}
}

// serveNull takes an answer and keeps nothing of it.
type serveNull struct{ header http.Header }

func (w *serveNull) Header() http.Header         { return w.header }
func (w *serveNull) Write(p []byte) (int, error) { return len(p), nil }
func (w *serveNull) WriteHeader(int)             {}

// A connection has deadlines; they cost little, the refusal of an unsupported one would cost much.
func (w *serveNull) SetReadDeadline(time.Time) error  { return nil }
func (w *serveNull) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkServedCall is a cheap reading tool through the door and back, with the run log, without the network.
func BenchmarkServedCall(b *testing.B) { serveBench(b, serveCall("echo", `{"text":"hello"}`)) }

// BenchmarkServedPing is the same for ping; the difference is the tool's way through policy, schema and run log.
func BenchmarkServedPing(b *testing.B) { serveBench(b, servePing) }

// BenchmarkServedList is the whole list.
func BenchmarkServedList(b *testing.B) { serveBench(b, serveRequest("1", methodToolsList, `{}`)) }

func serveBench(b *testing.B, body string) {
	f := serveMake(b, modeDanger, nil)
	session := f.server.openSession()
	f.server.leave(session)
	reader := strings.NewReader(body)
	r := httptest.NewRequest("POST", mcpPath, reader)
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+serveTestKey)
	r.Header.Set(headerSession, session.id)
	w := &serveNull{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(body)
		f.server.ServeHTTP(w, r)
	}
}
