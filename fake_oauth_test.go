package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fakeOAuth is an MCP server at /mcp behind an authorization server of the same origin. It wants S256, the resource and the exact redirect address,
// gives a new refresh token with each refresh, and ends the login when one is used twice.
type fakeOAuth struct {
	*httptest.Server
	t testing.TB

	// Set before the first request.
	Issuer    string                  // path of the issuer, "" for the origin
	Challenge string                  // WWW-Authenticate of a 401; with %s for the origin
	PRM       map[string]any          // changes to the protected-resource document; nil values delete
	AS        map[string]any          // changes to the issuer's document
	Reg       map[string]any          // changes to the answer of a registration
	Token     map[string]any          // changes to the answer of the token endpoint
	Answer    map[string]http.Handler // by path, in the place of what stands there
	Tools     string                  // the JSON list of tools, "" for the one called echo
	Keep      bool                    // refresh tokens do not rotate and are not given again
	Back      map[string]string       // changes to the redirect; "" deletes

	mu      sync.Mutex
	open    bool     // no token is wanted
	want    string   // scope that tools/call wants
	asked   []string // paths, in order
	bearers []string
	clients []map[string]any
	forms   []url.Values // of the token endpoint
	grants  []url.Values // of the authorization endpoint
	codes   map[string]url.Values
	access  string
	refresh string
	spent   map[string]bool
	family  bool // the login was ended for reuse
	serial  int
	scope   string
	gate    chan struct{} // a refresh waits for it, nil for none
	atGate  chan struct{}
}

func newFakeOAuth(t testing.TB) *fakeOAuth {
	t.Helper()
	f := &fakeOAuth{t: t, Challenge: `Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, codes: map[string]url.Values{}, spent: map[string]bool{}}
	f.Server = httptest.NewServer(f)
	f.Config.ErrorLog = httpTestSilent()
	t.Cleanup(f.Close)
	return f
}

func (f *fakeOAuth) issuer() string { return f.URL + f.Issuer }

func changed(doc, changes map[string]any) map[string]any {
	for k, v := range changes {
		if doc[k] = v; v == nil {
			delete(doc, k)
		}
	}
	return doc
}

func (f *fakeOAuth) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	h := f.Answer[r.URL.Path]
	f.mu.Unlock()
	if h != nil {
		h.ServeHTTP(w, r)
		return
	}
	reply := func(status int, doc any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(doc)
	}
	switch r.URL.Path {
	case "/mcp":
		f.serveMCP(w, r)
	case "/.well-known/oauth-protected-resource/mcp":
		reply(200, changed(map[string]any{"resource": f.URL + "/mcp", "authorization_servers": []string{f.issuer()}, "scopes_supported": []string{"tools", "more"}}, f.PRM))
	case "/.well-known/oauth-authorization-server" + f.Issuer:
		reply(200, changed(map[string]any{"issuer": f.issuer(), "authorization_endpoint": f.URL + "/authorize?kept=1", "token_endpoint": f.URL + "/token", "registration_endpoint": f.URL + "/register",
			"code_challenge_methods_supported": []string{"plain", "S256"}, "authorization_response_iss_parameter_supported": true}, f.AS))
	case "/register":
		var doc map[string]any
		json.NewDecoder(r.Body).Decode(&doc)
		f.mu.Lock()
		f.clients = append(f.clients, doc)
		n := len(f.clients)
		f.mu.Unlock()
		reply(201, changed(map[string]any{"client_id": "client-" + strconv.Itoa(n), "redirect_uris": doc["redirect_uris"], "token_endpoint_auth_method": "none"}, f.Reg))
	case "/authorize":
		f.serveAuthorize(w, r)
	case "/token":
		body, _ := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(body))
		if user, password, ok := r.BasicAuth(); ok {
			form.Set("basic", user+":"+password)
		}
		status, doc := f.serveToken(form)
		reply(status, doc)
	default:
		w.WriteHeader(404)
	}
}

func (f *fakeOAuth) serveMCP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	json.NewDecoder(r.Body).Decode(&m)
	f.mu.Lock()
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	f.bearers = append(f.bearers, bearer)
	good := f.open || bearer != "" && bearer == f.access
	narrow := f.want != "" && m.Method == "tools/call" && !slices.Contains(strings.Fields(f.scope), f.want)
	want := f.want
	f.mu.Unlock()
	if !good {
		challenge := f.Challenge
		if strings.Contains(challenge, "%s") {
			challenge = fmt.Sprintf(challenge, f.URL)
		}
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(401)
		return
	}
	if narrow {
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+want+`"`)
		w.WriteHeader(403)
		return
	}
	if m.ID == nil {
		w.WriteHeader(202)
		return
	}
	result := `{}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}`
	case "tools/list":
		f.mu.Lock()
		result = `{"tools":` + cmp.Or(f.Tools, `[{"name":"echo","description":"Says it again.","inputSchema":{"type":"object"}}]`) + `}`
		f.mu.Unlock()
	case "tools/call":
		result = `{"content":[{"type":"text","text":"echoed"}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// serveAuthorize lets everyone in at once.
func (f *fakeOAuth) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	f.mu.Lock()
	f.serial++
	code := "code-" + strconv.Itoa(f.serial) + "-made-up"
	f.codes[code] = q
	f.grants = append(f.grants, q)
	f.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {f.issuer()}}
	for k, v := range f.Back {
		if back.Set(k, v); v == "" {
			back.Del(k)
		}
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (f *fakeOAuth) serveToken(form url.Values) (int, map[string]any) {
	f.mu.Lock()
	f.forms = append(f.forms, form)
	gate, at := f.gate, f.atGate
	f.mu.Unlock()
	if gate != nil && form.Get("grant_type") == "refresh_token" {
		at <- struct{}{}
		<-gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	no := func(code string) (int, map[string]any) {
		return 400, map[string]any{"error": code, "error_description": "the token " + form.Get("refresh_token") + form.Get("code") + " is not good"}
	}
	if form.Get("resource") != f.URL+"/mcp" && f.PRM == nil {
		return no("invalid_target")
	}
	switch form.Get("grant_type") {
	case "authorization_code":
		q := f.codes[form.Get("code")]
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if q == nil || q.Get("redirect_uri") != form.Get("redirect_uri") || q.Get("client_id") != form.Get("client_id") || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
			return no("invalid_grant")
		}
		delete(f.codes, form.Get("code"))
		f.scope, f.family = q.Get("scope"), false
	case "refresh_token":
		r := form.Get("refresh_token")
		if f.spent[r] {
			f.family, f.access, f.refresh = true, "", ""
		}
		if r == "" || r != f.refresh {
			return no("invalid_grant")
		}
	default:
		return no("unsupported_grant_type")
	}
	f.serial++
	f.access = fmt.Sprintf("access-%d-made-up", f.serial)
	doc := map[string]any{"access_token": f.access, "token_type": "bearer", "expires_in": 3600}
	if !f.Keep || f.refresh == "" {
		f.spent[f.refresh] = true
		f.refresh = fmt.Sprintf("refresh-%d-made-up", f.serial)
		doc["refresh_token"] = f.refresh
	}
	return 200, changed(doc, f.Token)
}

// expire makes the access token of this moment useless.
func (f *fakeOAuth) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.access = "gone"
}

// revoke ends the login.
func (f *fakeOAuth) revoke() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.access, f.refresh = "gone", "gone too"
}

// refreshes counts the refreshes that were asked for.
func (f *fakeOAuth) refreshes() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, form := range f.forms {
		if form.Get("grant_type") == "refresh_token" {
			n++
		}
	}
	return n
}

// paths gives the paths that were asked for, without those of the MCP server.
func (f *fakeOAuth) paths() (list []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.asked {
		if p != "POST /mcp" {
			list = append(list, p)
		}
	}
	return list
}

// fakeBrowse opens an address as a browser would, up to the redirect to the loopback address, and gives what that carries.
func fakeBrowse(t testing.TB, address string) url.Values {
	t.Helper()
	client := http.Client{CheckRedirect: noRedirect}
	resp, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || resp.StatusCode != http.StatusFound {
		t.Fatalf("authorize: HTTP %d, %v", resp.StatusCode, err)
	}
	return back.Query()
}
