package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fakeHTTP is a Streamable HTTP server that follows the protocol until a test scripts one method otherwise. It records what it
// gets. The fields are set before the first request; a later session comes with renew.
type fakeHTTP struct {
	*httptest.Server
	Version string   // what initialize answers; "" = what was asked
	Session string   // id that initialize gives and the rest must carry; "" = none
	Tools   []string // JSON of each tool
	SSE     bool     // answer in event streams

	mu      sync.Mutex
	seen    []fakeHTTPRequest
	scripts map[string]func(http.ResponseWriter, fakeHTTPRequest)
}

// fakeHTTPRequest is one request as it came. RPC aliases Body and is zero where the body is no message.
type fakeHTTPRequest struct {
	Verb, Path string
	Proto      string
	Remote     string
	Header     http.Header
	Body       []byte
	RPC        rpcMessage
}

const fakeHTTPTool = `{"name":"echo","description":"Gives back its arguments","inputSchema":{"type":"object"}}`

func newFakeHTTP(t testing.TB) *fakeHTTP {
	t.Helper()
	f := &fakeHTTP{Session: "s1", Tools: []string{fakeHTTPTool}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Server.Close)
	return f
}

// on scripts the requests of one JSON-RPC method; "" takes all that have no script, "response" the answers to the server's requests.
func (f *fakeHTTP) on(method string, h func(w http.ResponseWriter, r fakeHTTPRequest)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.scripts == nil {
		f.scripts = map[string]func(http.ResponseWriter, fakeHTTPRequest){}
	}
	f.scripts[method] = h
}

// renew is what a restart of the server does: the old session is unknown from now on, initialize gives the new one.
func (f *fakeHTTP) renew(session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Session = session
}

func (f *fakeHTTP) session() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Session
}

// requests returns what came so far, of one method or of all ("").
func (f *fakeHTTP) requests(method string) []fakeHTTPRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []fakeHTTPRequest
	for _, r := range f.seen {
		if method == "" || r.RPC.Method == method {
			out = append(out, r)
		}
	}
	return out
}

// verbs returns the distinct HTTP methods that came.
func (f *fakeHTTP) verbs() []string {
	var out []string
	for _, r := range f.requests("") {
		if !slices.Contains(out, r.Verb) {
			out = append(out, r.Verb)
		}
	}
	return out
}

func (f *fakeHTTP) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return // the client went away
	}
	r := fakeHTTPRequest{Verb: hr.Method, Path: hr.URL.Path, Proto: hr.Proto, Remote: hr.RemoteAddr, Header: hr.Header, Body: body}
	if m, err := decodeMessage(body); err == nil {
		r.RPC = m
	}
	key := r.RPC.Method
	if r.RPC.kind() == rpcResponse {
		key = "response"
	}
	f.mu.Lock()
	f.seen = append(f.seen, r)
	h := f.scripts[key]
	if h == nil {
		h = f.scripts[""]
	}
	f.mu.Unlock()
	if h == nil {
		h = f.answer
	}
	h(w, r)
}

// answer is the behaviour without a script.
func (f *fakeHTTP) answer(w http.ResponseWriter, r fakeHTTPRequest) {
	switch {
	case r.Verb != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.RPC.Method == methodInitialize:
		f.initialize(w, r)
	case f.session() != "" && r.Header.Get(headerSession) != f.session():
		w.WriteHeader(http.StatusNotFound)
	case r.RPC.kind() != rpcRequest:
		w.WriteHeader(http.StatusAccepted)
	case r.RPC.Method == methodPing:
		f.result(w, r, `{}`)
	case r.RPC.Method == methodToolsList:
		f.result(w, r, `{"tools":[`+strings.Join(f.Tools, ",")+`]}`)
	case r.RPC.Method == methodToolsCall:
		f.result(w, r, `{"content":[{"type":"text","text":`+string(appendJSONString(nil, string(r.RPC.Params)))+`}]}`)
	default:
		f.send(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, r.RPC.ID))
	}
}

func (f *fakeHTTP) initialize(w http.ResponseWriter, r fakeHTTPRequest) {
	version := f.Version
	if version == "" {
		var p struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if err := json.Unmarshal(r.RPC.Params, &p); err != nil {
			http.Error(w, "bad params", http.StatusBadRequest)
			return
		}
		version = p.ProtocolVersion
	}
	if session := f.session(); session != "" {
		w.Header().Set(headerSession, session)
	}
	f.result(w, r, `{"protocolVersion":"`+version+`","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`)
}

// result answers r with a result.
func (f *fakeHTTP) result(w http.ResponseWriter, r fakeHTTPRequest, result string) {
	f.send(w, fakeHTTPResult(r, result))
}

func fakeHTTPResult(r fakeHTTPRequest, result string) string {
	return `{"jsonrpc":"2.0","id":` + string(r.RPC.ID) + `,"result":` + result + `}`
}

// send writes one message in the form the server is set to.
func (f *fakeHTTP) send(w http.ResponseWriter, message string) {
	if f.SSE {
		fakeHTTPStream(w, "event: message\ndata: "+message+"\n\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, message)
}

// fakeHTTPStream writes pieces of an event stream, each on the wire before the next.
func fakeHTTPStream(w http.ResponseWriter, pieces ...string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for _, p := range pieces {
		io.WriteString(w, p)
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
}

// fakeHTTPStatus answers with a status and a body.
func fakeHTTPStatus(status int, contentType, body string) func(http.ResponseWriter, fakeHTTPRequest) {
	return func(w http.ResponseWriter, _ fakeHTTPRequest) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}
