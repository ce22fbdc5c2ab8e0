package main

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// httpRig is both tools over servers on loopback that play public hosts: a name is looked up in hosts, and what is dialled at port 80 or 443 of a public address
// reaches the servers.
type httpRig struct {
	*toolsBox
	t       testing.TB
	root    string
	outside string
	tools   httpTools
	asker   *fakePrompter

	mu     sync.Mutex
	hosts  map[string][]string
	looked []string
	dialed []string
	seen   []*http.Request
	bodies []string
}

const (
	httpPublicA = "93.184.215.14"
	httpPublicB = "93.184.215.15"
)

func newHTTPRig(t *testing.T, mode approvalMode, env map[string]string) *httpRig {
	t.Helper()
	w, outside := workspaceDirs(t)
	r := &httpRig{t: t, root: w.root, outside: outside, hosts: map[string][]string{"example.com": {httpPublicA}, "other.example": {httpPublicB}}}
	plain := httptest.NewServer(http.HandlerFunc(r.serve))
	secure := httptest.NewTLSServer(http.HandlerFunc(r.serve))
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	at := map[string]string{"80": plain.Listener.Addr().String(), "443": secure.Listener.Addr().String()}
	var dialer net.Dialer
	web := newWebFetcher(webFetcherConfig{
		Env: func(name string) string { return env[name] }, RootCAs: roots,
		Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.looked = append(r.looked, host)
			var out []netip.Addr
			for _, a := range r.hosts[host] {
				out = append(out, netip.MustParseAddr(a))
			}
			if out == nil {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
			return out, nil
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			r.mu.Lock()
			r.dialed = append(r.dialed, address)
			r.mu.Unlock()
			host, port, _ := net.SplitHostPort(address)
			if host == httpPublicA || host == httpPublicB {
				return dialer.DialContext(ctx, network, at[port])
			}
			if netip.MustParseAddr(host).IsLoopback() {
				return dialer.DialContext(ctx, network, address)
			}
			return nil, errors.New("no route in a test")
		},
	})
	t.Cleanup(web.close)
	files := newFileChanger(w, t.TempDir(), func() []string { return nil }, func(ctx context.Context) (*vault, error) { return r.toolsBox.vault, nil }, time.Now)
	variable := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	named := func(ctx context.Context, name string) (secret, error) {
		return r.toolsBox.vault.secretFor(ctx, "", name)
	}
	foresee := func(req policyRequest) policyForecast { return r.policy.foresee(req) }
	r.tools = httpTools{web: web, files: files, foresee: foresee, env: variable, secret: named, unit: time.Millisecond}
	tools := append(webTools(web, files, foresee, variable, named), undoTools(files)...)
	tools = append(tools, policyTools(func() (policyForeseer, error) { return r.toolsBox.toolbox, nil })...)
	r.toolsBox = newToolsBox(t, mode, nil, tools...)
	return r
}

// sit puts a person there who gives these answers.
func (r *httpRig) sit(keys ...string) {
	r.asker = &fakePrompter{keys: keys}
	r.policy.cfg.Prompter = r.asker
}

func (r *httpRig) call(name string, args map[string]any) toolResult {
	r.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := r.dispatch(r.t.Context(), toolCall{Name: name, Args: b, Origin: "mcp"})
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

func (r *httpRig) get(url string) toolResult { return r.call("http_get", map[string]any{"url": url}) }

// last is the last request that came, and its body.
func (r *httpRig) last() (*http.Request, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[len(r.seen)-1], r.bodies[len(r.bodies)-1]
}

// serve answers as all public hosts.
func (r *httpRig) serve(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	r.seen, r.bodies = append(r.seen, req), append(r.bodies, string(body))
	r.mu.Unlock()
	put := func(kind, coding string, body []byte) {
		w.Header().Set("Content-Type", kind)
		if coding != "" {
			w.Header().Set("Content-Encoding", coding)
		}
		_, _ = w.Write(body) // the reader may have had enough
	}
	switch req.URL.Path {
	case "/page":
		put("text/html; charset=iso-8859-1", "", []byte("<title>P\xe9</title><h1>Caf\xe9</h1><a href=x>l</a><script>no</script>"))
	case "/json":
		put("application/problem+json", "", []byte(`{"a":[1,2]}`))
	case "/gzip":
		put("text/plain", "gzip", httpPacked("gzip", []byte("packed")))
	case "/zlib":
		put("text/plain", "deflate", httpPacked("zlib", []byte("packed")))
	case "/flate":
		put("text/plain", "deflate", httpPacked("flate", []byte("packed")))
	case "/bomb":
		put("text/plain", "gzip", httpPacked("gzip", bytes.Repeat([]byte("a"), 20<<20)))
	case "/parts":
		put("text/plain", "gzip", bytes.Repeat(httpPacked("gzip", nil), 100_000))
	case "/broken":
		packed := httpPacked("gzip", []byte(strings.Repeat("some words ", 1000)))
		put("text/plain", "gzip", packed[:len(packed)-9])
	case "/br":
		put("text/plain", "br", []byte("x"))
	case "/sjis":
		put("text/html; charset=shift_jis", "", []byte("\x83\x65"))
	case "/png":
		put("image/png", "", []byte("\x89PNG\r\n\x1a\n\x00"))
	case "/bare":
		w.Header()["Content-Type"] = nil
		put("", "", []byte("<!DOCTYPE html><p>bare"))
	case "/missing":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(404)
		fmt.Fprint(w, "<p>not <b>here</b>"+strings.Repeat("x", 3000))
	case "/limited":
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "session=hidden")
		w.WriteHeader(429)
		fmt.Fprint(w, `{"error":"slow down"}`)
	case "/echo":
		put("text/plain", "", []byte(req.Header.Get("X-Key")+"|"+req.Header.Get("Authorization")+"|"+string(body)))
	case "/slow": // a redirect whose text does not end
		w.Header().Set("Location", "/page")
		w.WriteHeader(302)
		fmt.Fprint(w, "moved")
		w.(http.Flusher).Flush()
		<-req.Context().Done()
	case "/short": // one whose text is shorter than it says
		w.Header().Set("Location", "/page")
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(302)
		fmt.Fprint(w, "moved")
	case "/wait":
		<-req.Context().Done()
	case "/to":
		w.Header().Set("Location", req.URL.Query().Get("l"))
		w.WriteHeader(map[string]int{"": 302, "303": 303, "307": 307, "308": 308}[req.URL.Query().Get("s")])
	default:
		put("text/plain", "", []byte("ok "+req.Host+" "+req.URL.Path))
	}
}

func httpPacked(how string, data []byte) []byte {
	var out bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&out)
	switch how {
	case "zlib":
		w = zlib.NewWriter(&out)
	case "flate":
		w, _ = flate.NewWriter(&out, 5) // 5 is a level
	}
	_, _ = w.Write(data) // into memory
	_ = w.Close()
	return out.Bytes()
}

func TestHTTPGet(t *testing.T) {
	t.Parallel()
	r := newHTTPRig(t, modeAllow, nil)
	type m = map[string]any
	for _, tc := range []struct {
		name string
		args m
		fail bool
		want []string
	}{
		{"a page", m{"url": "http://example.com/page"}, false, []string{"200 OK http://example.com/page (text/html, windows-1252, ", "title: Pé", "\n# Café\n\n[l](http://example.com/x)\n"}},
		{"a page as text", m{"url": "http://example.com/page", "as": "text"}, false, []string{"\nCafé\n\nl\n"}},
		{"a page as it is", m{"url": "http://example.com/page", "as": "raw"}, false, []string{"<h1>Café</h1>", "<script>no"}},
		{"a page over TLS", m{"url": "https://example.com/page"}, false, []string{"# Café"}},
		{"JSON", m{"url": "http://example.com/json"}, false, []string{"{\n  \"a\": [\n    1,\n"}},
		{"JSON as it is", m{"url": "http://example.com/json", "as": "raw"}, false, []string{`{"a":[1,2]}`}},
		{"gzip", m{"url": "http://example.com/gzip"}, false, []string{"\npacked\n", "6 bytes)"}},
		{"deflate", m{"url": "http://example.com/zlib"}, false, []string{"\npacked\n"}},
		{"bare deflate", m{"url": "http://example.com/flate"}, false, []string{"\npacked\n"}},
		{"a bomb", m{"url": "http://example.com/bomb", "max_bytes": 5000}, false, []string{"aaa", "[the first 5000 bytes, unpacked; how much is left out is not known; max_bytes can be more]"}},
		{"many empty parts", m{"url": "http://example.com/parts", "max_bytes": 10}, true, []string{"packed into more bytes than it holds"}},
		{"an answer that breaks off", m{"url": "http://example.com/broken"}, false, []string{"the answer broke off: unexpected EOF", "some words some"}},
		{"a packing that was not asked for", m{"url": "http://example.com/br"}, true, []string{"packed as br"}},
		{"an encoding that is not decoded", m{"url": "http://example.com/sjis"}, true, []string{"shift_jis", "save_to"}},
		{"no text", m{"url": "http://example.com/png"}, false, []string{"(image/png, 9 bytes)", "this is no text; http_request with save_to"}},
		{"no type", m{"url": "http://example.com/bare"}, false, []string{"(text/html, utf-8, ", "\nbare\n"}},
		{"a bound", m{"url": "http://example.com/plain", "max_bytes": 4}, false, []string{"\nok e\n[the first 4 bytes; 17 left out; max_bytes"}},
		{"not found", m{"url": "http://example.com/missing"}, true, []string{"404 Not Found http://example.com/missing", "not **here**x", " bytes)"}},
		{"no such host", m{"url": "http://nowhere.example/"}, true, []string{"nowhere.example", "no such host"}},
		{"no address", m{"url": "ftp://example.com/"}, true, []string{"url: it must start with http:// or https://"}},
		{"a bad port", m{"url": "http://example.com:x/"}, true, []string{"url: it is no web address"}},
		{"no as", m{"url": "http://example.com/", "as": "pdf"}, true, []string{"as"}},
		{"too many bytes", m{"url": "http://example.com/", "max_bytes": httpGetMax + 1}, true, []string{"max_bytes"}},
		{"no bytes", m{"url": "http://example.com/", "max_bytes": 0}, true, []string{"max_bytes"}},
		{"no url", m{}, true, []string{"url"}},
		{"another argument", m{"url": "http://example.com/", "body": "x"}, true, []string{"body"}},
		{"headers that are none", m{"url": "http://example.com/", "headers": m{"X": 1}}, true, []string{"headers"}},
		{"a header's name", m{"url": "http://example.com/", "headers": m{"X Y": "1"}}, true, []string{`headers: "X Y" is no name`}},
		{"a header of tai's", m{"url": "http://example.com/", "headers": m{"host": "x"}}, true, []string{"headers: Host is set by tai itself"}},
		{"a header for proxies", m{"url": "http://example.com/", "headers": m{"proxy-authorization": "x"}}, true, []string{"Proxy-Authorization is not sent"}},
		{"a header twice", m{"url": "http://example.com/", "headers": m{"x-a": "1", "X-A": "2"}}, true, []string{"X-A stands twice"}},
		{"a line break", m{"url": "http://example.com/", "headers": m{"X": "1\r\nY: 2"}}, true, []string{"headers.X: the value holds a line break"}},
		{"a secret that is none", m{"url": "https://example.com/", "headers": m{"X": "a ${NO_SUCH}"}}, true, []string{"headers.X: NO_SUCH is set neither in the environment nor in the vault"}},
	} {
		res := r.call("http_get", tc.args)
		for _, want := range tc.want {
			if res.IsError != tc.fail || !strings.Contains(res.Text, want) {
				t.Errorf("%s: error %v, %.600q, want %q", tc.name, res.IsError, res.Text, want)
			}
		}
	}
	var doc httpDoc
	if err := json.Unmarshal(r.get("http://example.com/page").Structured, &doc); err != nil || doc.Status != 200 || doc.Title != "Pé" || doc.Charset != "windows-1252" || doc.URL != "http://example.com/page" || doc.Bytes == 0 {
		t.Errorf("%+v, %v", doc, err)
	}
}

// No spelling of an address that is not public is dialled, in any mode but danger, nor a name that stands for one, also at the second look.
func TestHTTPPrivateAddresses(t *testing.T) {
	t.Parallel()
	for _, mode := range []approvalMode{modeReadOnly, modePrompt, modeAllow} {
		r := newHTTPRig(t, mode, nil)
		for s := range netSpellings() {
			res := r.get(s)
			if !res.IsError {
				t.Errorf("%s %q: %.200s", mode, s, res.Text)
			}
			r.call("http_request", map[string]any{"method": "POST", "url": s, "body": "x"})
		}
		if len(r.dialed)+len(r.looked) > 0 {
			t.Errorf("%s: dialled %q, looked up %q", mode, r.dialed, r.looked)
		}
	}
	r := newHTTPRig(t, modeAllow, nil)
	for i, addrs := range [][]string{{"127.0.0.1"}, {"::1"}, {"169.254.169.254"}, {"10.1.2.3"}, {"fe80::1"}, {"fd00::1"}, {"::ffff:127.0.0.1"}, {"0.0.0.0"}, {"64:ff9b::7f00:1"}, {httpPublicA, "192.168.0.1"}, {"100.64.3.2"}, {"::"}} {
		host := fmt.Sprintf("h%d.example", i)
		r.hosts[host] = addrs
		for _, url := range []string{"http://" + host + "/", "http://example.com/to?l=http://" + host + "/"} {
			if res := r.get(url); !res.IsError || !strings.Contains(res.Text, host+" stands for "+netip.MustParseAddr(addrs[len(addrs)-1]).Unmap().String()) {
				t.Errorf("%s as %v: %v %.300s", url, addrs, res.IsError, res.Text)
			}
		}
	}
	if want := []string{httpPublicA + ":80"}; !slices.Equal(slices.Compact(r.dialed), want) {
		t.Errorf("dialled %q, want %q", r.dialed, want)
	}
	if res := r.get("http://example.com/a"); res.IsError {
		t.Error(res.Text)
	}
	r.tools.web.close() // what is kept open would need no second look
	r.hosts["example.com"] = []string{"127.0.0.1"}
	if res := r.get("http://example.com/b"); !res.IsError || !strings.Contains(res.Text, "example.com stands for 127.0.0.1, which is this machine itself") {
		t.Errorf("another answer at the second look: %s", res.Text)
	}
}

func TestHTTPRedirects(t *testing.T) {
	t.Parallel()
	r := newHTTPRig(t, modeAllow, map[string]string{"API_TOKEN": "tok-12345"})
	header := map[string]any{"Authorization": "Bearer ${API_TOKEN}", "X-Key": "plain", "Accept": "text/x", "Accept-Language": "${API_TOKEN}"}
	for _, tc := range []struct{ name, url, want string }{
		{"within the origin", "https://example.com/to?l=/echo", "\nplain|Bearer [secret:API_TOKEN]|\n"},
		{"to plain http", "https://example.com/to?l=http://example.com/", "it redirects from https to plain http"},
		{"to metadata", "https://example.com/to?l=https://169.254.169.254/", "where a cloud hands out"},
		{"to this machine", "https://example.com/to?l=https://localhost/", "this machine itself"},
		{"to a private address in numbers", "https://example.com/to?l=https://0xa000001/", "redirects to an address that spells the address 10.0.0.1"},
		{"to no web address", "https://example.com/to?l=file:///etc/passwd", "redirects to an address that must start with http"},
		{"with a text that does not end", "https://example.com/slow", "# Café"},
		{"with a text that breaks off", "https://example.com/short", "# Café"},
		{"to a user", "https://example.com/to?l=https://x:y@example.com/", "user name or password"},
	} {
		res := r.call("http_get", map[string]any{"url": tc.url, "headers": header})
		if !strings.Contains(res.Text, tc.want) || strings.Contains(res.Text, "tok-12345") {
			t.Errorf("%s: %s", tc.name, res.Text)
		}
	}
	if res := r.get("http://example.com/to?l="); !res.IsError || !strings.Contains(res.Text, "302 Found") {
		t.Errorf("a redirect without a target: %s", res.Text)
	}
}

// To another origin go neither the credentials nor any other header of the caller but three, and a loop of redirects ends.
func TestHTTPRedirectHeaders(t *testing.T) {
	t.Parallel()
	r := newHTTPRig(t, modeAllow, nil)
	res := r.call("http_request", map[string]any{"method": "GET", "url": "http://example.com/to?l=http://other.example/to%3Fl=http://example.com/echo", "headers": map[string]any{"X-Key": "plain", "Cookie": "a=b", "Accept": "text/x"}})
	if res.IsError || !strings.Contains(res.Text, "not sent on to another origin: Cookie, X-Key") || !strings.Contains(res.Text, "after 2 redirects") {
		t.Fatal(res.Text)
	}
	last, _ := r.last()
	if last.Host != "example.com" || last.Header.Get("X-Key") != "" || last.Header.Get("Cookie") != "" || last.Header.Get("Accept") != "text/x" || !strings.HasPrefix(last.UserAgent(), "tai/") {
		t.Errorf("%s got %v", last.Host, last.Header)
	}
	for _, tc := range []struct{ method, status, to, want, body string }{
		{"POST", "307", "/echo", "200 OK", "b"}, {"POST", "303", "/echo", "200 OK", ""}, {"POST", "", "/echo", "a POST is not sent to another address by itself", "b"},
		{"PUT", "308", "http://other.example/echo", "a PUT is not sent to another address by itself", "b"}, {"DELETE", "307", "/echo", "200 OK", ""},
	} {
		args := map[string]any{"method": tc.method, "url": "http://example.com/to?s=" + tc.status + "&l=" + tc.to}
		if tc.method != "DELETE" {
			args["body"] = "b"
		}
		res := r.call("http_request", args)
		if _, got := r.last(); res.IsError || !strings.Contains(res.Text, tc.want) || got != tc.body {
			t.Errorf("%+v: body %q, %s", tc, got, res.Text)
		}
	}
	deep := "/x"
	for range fetchRedirectMax + 1 {
		deep = "/to?l=" + strings.NewReplacer("%", "%25", "?", "%3F", "=", "%3D", "/", "%2F").Replace(deep)
	}
	if res := r.get("http://example.com" + deep); !res.IsError || !strings.Contains(res.Text, "more than 10 redirects") {
		t.Errorf("%.300s", res.Text)
	}
}

// In prompt a new host is asked about; y is for one call, s for the host; a redirect to a new one is reported; nobody to ask means no.
func TestHTTPAsksForHosts(t *testing.T) {
	t.Parallel()
	r := newHTTPRig(t, modePrompt, map[string]string{"API_TOKEN": "tok-12345"})
	served := r.get("http://example.com/")
	if served.Rule != ruleNobody || !strings.Contains(served.Text, "example.com is new to this session") || len(r.dialed) > 0 {
		t.Errorf("nobody there: %+v, dialled %q", served, r.dialed)
	}
	check := func(tool, args, decision, rule string) {
		t.Helper()
		if f := checkTestCall(t, r.toolbox, toolCall{}, tool, args); f.Decision != decision || f.Rule != rule {
			t.Errorf("%s %s: %+v, want %s by %s", tool, args, f, decision, rule)
		}
	}
	check("http_get", `{"url":"http://example.com/"}`, forecastDeny, ruleNobody)
	check("http_get", `{"url":"http://10.0.0.1/"}`, forecastDeny, ruleAddress)
	r.sit(choiceYes, choiceYes, choiceSession, choiceNo, choiceYes, choiceSession, choiceYes)
	steps := []struct {
		name, tool, args string
		asked            int
		want             string
	}{
		{"once", "http_get", `{"url":"http://example.com/1"}`, 1, "ok example.com /1"},
		{"once more", "http_get", `{"url":"http://example.com/2"}`, 2, "ok example.com /2"},
		{"for the session", "http_get", `{"url":"https://example.com/3"}`, 3, "ok example.com /3"},
		{"known, plain too", "http_get", `{"url":"http://EXAMPLE.com:80/4"}`, 3, "ok example.com /4"},
		{"another port is another host, and no", "http_get", `{"url":"http://example.com:8080/5"}`, 4, "refused by policy"},
		{"a redirect to a new host", "http_get", `{"url":"http://example.com/to?l=http://other.example/6"}`, 4, "other.example is new to this session\nit leads to http://other.example/6 ; call"},
		{"a secret to a known host", "http_get", `{"url":"https://example.com/echo","headers":{"X-Key":"${API_TOKEN}"}}`, 5, "[secret:API_TOKEN]|"},
		{"the same for the session", "http_get", `{"url":"https://example.com/echo","headers":{"X-Key":"${API_TOKEN}"}}`, 6, "[secret:API_TOKEN]|"},
		{"and again", "http_get", `{"url":"https://example.com/echo?2","headers":{"X-Key":"${API_TOKEN}"}}`, 6, "[secret:API_TOKEN]|"},
		{"a request is always asked about", "http_request", `{"method":"GET","url":"https://example.com/9"}`, 7, "ok example.com /9"},
	}
	for _, s := range steps {
		res, err := r.dispatch(t.Context(), toolCall{Name: s.tool, Args: json.RawMessage(s.args)})
		if err != nil || len(r.asker.asked) != s.asked || !strings.Contains(res.Text, s.want) || strings.Contains(res.Text, "tok-12345") {
			t.Fatalf("%s: %v, asked %d, %s", s.name, err, len(r.asker.asked), res.Text)
		}
	}
	screen := renderConsent(r.asker.asked[4], 200)
	for _, want := range []string{"the value of API_TOKEN goes to example.com", "${API_TOKEN}", "it sends API_TOKEN to example.com", "yes, for this session: this tool at example.com"} {
		if !strings.Contains(screen, want) || strings.Contains(screen, "tok-12345") {
			t.Errorf("want %q in\n%s", want, screen)
		}
	}
	check("http_get", `{"url":"http://example.com/x"}`, forecastAllow, ruleReading)
	check("http_get", `{"url":"http://other.example/x"}`, forecastAsk, "mode prompt")
	check("http_request", `{"method":"GET","url":"http://example.com/x"}`, forecastAsk, "mode prompt")
	if r.reading(toolCall{Name: "http_get", Args: json.RawMessage(`{"url":"http://other.example/"}`)}) || !r.reading(toolCall{Name: "http_get", Args: json.RawMessage(`{"url":"http://example.com/"}`)}) {
		t.Error("which calls may run beside others")
	}
}

// Loopback: prompt asks, danger runs, the others refuse; a person's own words ask as well. Presets cover a host, and neither this machine nor secrets.
func TestHTTPLoopbackAndPresets(t *testing.T) {
	t.Parallel()
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "local") }))
	defer local.Close()
	args := json.RawMessage(`{"url":"` + local.URL + `/"}`)
	for mode, want := range map[approvalMode]string{modeReadOnly: ruleHost, modeAllow: ruleAddress, modePrompt: "", modeDanger: ""} {
		r := newHTTPRig(t, mode, nil)
		r.sit(choiceYes)
		res, err := r.dispatch(t.Context(), toolCall{Name: "http_get", Args: args})
		if err != nil || res.Rule != want || (want == "") != strings.Contains(res.Text, "\nlocal\n") || (mode == modePrompt) != (len(r.asker.asked) == 1) {
			t.Errorf("%s: %v, %+v, asked %d", mode, err, res, len(r.asker.asked))
		}
		r.hosts["alias.example"] = []string{"127.0.0.1"}
		r.sit(choiceYes)
		res = r.get(strings.Replace(local.URL, "127.0.0.1", "alias.example", 1))
		if (mode == modeDanger) == res.IsError {
			t.Errorf("%s: a name for this machine: %s", mode, res.Text)
		}
		r.policy.presets = []preset{{ID: "p-1", Effect: "allow", Tool: "http_*"}, {ID: "p-2", Effect: "deny", Tool: "http_get", Arguments: map[string]string{"url": "http://other.example/*"}}}
		r.policy.cfg.Prompter = nil
		if res := r.get("HTTP://Other.Example:80/x"); mode != modeDanger && res.Rule != "deny preset p-2" {
			t.Errorf("%s: a denied host in capitals: %+v", mode, res)
		}
		if res := r.get("http://example.com/to?l=http://other.example/x"); mode != modeReadOnly && !strings.Contains(res.Text, "this workspace denies") {
			t.Errorf("%s: a redirect to a denied host: %+v", mode, res)
		}
		if res := r.get("http://example.com/"); (mode == modeReadOnly) != (res.Rule == ruleHost) {
			t.Errorf("%s: preset: %+v", mode, res)
		}
		if res := r.get(local.URL); (mode == modeDanger) == res.IsError {
			t.Errorf("%s: preset and this machine: %+v", mode, res)
		}
	}
	r := newHTTPRig(t, modePrompt, nil)
	res, err := r.dispatch(t.Context(), toolCall{Name: "http_get", Args: args, Person: true})
	if err != nil || res.Rule != ruleNobody || res.Hint != "--yes would allow it" {
		t.Errorf("a person's own words: %+v, %v", res, err)
	}
	if res, err = r.dispatch(t.Context(), toolCall{Name: "http_get", Args: json.RawMessage(`{"url":"http://example.com/"}`), Person: true}); err != nil || res.IsError {
		t.Errorf("a person's own words: %+v, %v", res, err)
	}
	r.policy.cfg.SavePreset = func(_ context.Context, ps preset) (preset, error) { ps.ID = "p-9"; return ps, nil }
	r.sit(choiceAlways)
	if res := r.get("https://example.com/a"); res.IsError || !r.policy.presets[0].allows(presetCall{Tool: "http_get", Args: json.RawMessage(`{"url":"https://example.com/b/c?d"}`)}) || r.policy.presets[0].allows(presetCall{Tool: "http_get", Args: json.RawMessage(`{"url":"https://example.com.evil.example/"}`)}) {
		t.Errorf("always: %+v, %s", r.policy.presets, res.Text)
	}
}

func TestHTTPRequest(t *testing.T) {
	t.Parallel()
	r := newHTTPRig(t, modeAllow, map[string]string{"API_TOKEN": "tok-12345", "PLAIN": "$1"})
	if err := r.toolsBox.vault.putSecret(t.Context(), "", "STORED", "kept-secret", nil); err != nil {
		t.Fatal(err)
	}
	filesWrite(t, r.root, map[string]string{"there.txt": "old", "dir/x": ""})
	type m = map[string]any
	sum := sha256Hex([]byte("ok example.com /file"))
	for _, tc := range []struct {
		name string
		args m
		fail bool
		want []string
	}{
		{"a body with secrets", m{"method": "POST", "url": "https://example.com/echo", "headers": m{"X-Key": "k${STORED}"}, "body": `{"t":"${API_TOKEN}","p":"$${PLAIN}"}`}, false, []string{`k[secret:STORED]||{"t":"[secret:API_TOKEN]","p":"${PLAIN}"}`}},
		{"another status", m{"method": "GET", "url": "http://example.com/limited"}, false, []string{"429 Too Many Requests", "Retry-After: 7", `"error": "slow down"`}},
		{"a page as it is", m{"method": "GET", "url": "http://example.com/page"}, false, []string{"<h1>Café</h1>"}},
		{"no text", m{"method": "GET", "url": "http://example.com/png"}, false, []string{"save_to keeps it as a file"}},
		{"a head", m{"method": "HEAD", "url": "http://example.com/gzip"}, false, []string{"200 OK"}},
		{"saved", m{"method": "GET", "url": "http://example.com/file", "save_to": "dir/new.txt", "sha256": strings.ToUpper(sum)}, false, []string{"saved to dir/new.txt: 20 bytes, sha256 " + sum, "file_undo takes it back"}},
		{"saved over a file", m{"method": "POST", "url": "http://example.com/counted", "save_to": "there.txt"}, true, []string{"save_to: there.txt: exists already"}},
		{"saved again", m{"method": "GET", "url": "http://example.com/counted", "save_to": "dir/new.txt"}, true, []string{"exists already"}},
		{"another checksum", m{"method": "GET", "url": "http://example.com/file", "save_to": "sum.txt", "sha256": strings.Repeat("0", 64)}, true, []string{"it was sent and answered with 200, but sha256: the answer has " + sum, "nothing was saved"}},
		{"a checksum alone", m{"method": "GET", "url": "http://example.com/file", "sha256": sum}, false, []string{"ok example.com /file"}},
		{"no answer of success", m{"method": "GET", "url": "http://example.com/missing", "save_to": "sum.txt"}, true, []string{"404 Not Found", "nothing was saved"}},
		{"an answer that breaks off", m{"method": "GET", "url": "http://example.com/broken", "save_to": "sum.txt"}, true, []string{"broke off", "nothing was saved"}},
		{"no folder", m{"method": "GET", "url": "http://example.com/counted", "save_to": "no/x"}, true, []string{"its folder does not exist"}},
		{"tai's own", m{"method": "GET", "url": "http://example.com/counted", "save_to": ".tai/config.json"}, true, []string{"no file tool may change"}},
		{"a folder", m{"method": "GET", "url": "http://example.com/counted", "save_to": "dir"}, true, []string{"is a folder"}},
		{"outside", m{"method": "GET", "url": "http://example.com/counted", "save_to": "../x"}, true, []string{ruleOutside}},
		{"a body for a GET", m{"method": "GET", "url": "http://example.com/counted", "body": "x"}, true, []string{"body: a GET has none"}},
		{"a secret over plain http", m{"method": "POST", "url": "http://example.com/counted", "body": "${API_TOKEN}"}, true, []string{"API_TOKEN would cross the network unencrypted"}},
		{"a reference that is none", m{"method": "POST", "url": "https://example.com/counted", "body": "`${a + b}`"}, true, []string{"body: ${a + b} is no reference", "$${"}},
		{"a secret that is none", m{"method": "POST", "url": "https://example.com/counted", "body": "${NO_SUCH}"}, true, []string{"body: NO_SUCH is set neither"}},
		{"no method", m{"method": "CONNECT", "url": "http://example.com/counted"}, true, []string{"method"}},
		{"no url", m{"method": "GET"}, true, []string{"url"}},
		{"no checksum", m{"method": "GET", "url": "http://example.com/counted", "sha256": "abc"}, true, []string{"sha256"}},
		{"no time", m{"method": "GET", "url": "http://example.com/counted", "timeout_s": 0}, true, []string{"timeout_s"}},
		{"too much time", m{"method": "GET", "url": "http://example.com/counted", "timeout_s": httpRequestMaxTime + 1}, true, []string{"timeout_s"}},
	} {
		res := r.call("http_request", tc.args)
		for _, want := range tc.want {
			if res.IsError != tc.fail || !strings.Contains(res.Text, want) || strings.Contains(res.Text, "tok-12345") || strings.Contains(res.Text, "kept-secret") || strings.Contains(res.Text, "hidden") {
				t.Errorf("%s: error %v, %.600q, want %q", tc.name, res.IsError, res.Text, want)
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, req := range r.seen {
		if req.URL.Path == "/counted" {
			t.Errorf("%s %s was sent", req.Method, req.URL)
		}
	}
	if got, err := os.ReadFile(filepath.Join(r.root, "dir", "new.txt")); err != nil || string(got) != "ok example.com /file" {
		t.Errorf("saved %q, %v", got, err)
	}
	if res := r.call("file_undo", m{}); res.IsError {
		t.Error(res.Text)
	}
	left := changeTree(t, r.root)
	if _, ok := left["dir/new.txt"]; ok || left["sum.txt"] != "" || len(left) == 0 {
		t.Errorf("left %v", left)
	}
}

func TestHTTPTime(t *testing.T) {
	t.Parallel()
	r := newHTTPRig(t, modeDanger, nil)
	_, err := r.tools.request(t.Context(), toolCall{Name: "http_request", Args: json.RawMessage(`{"method":"GET","url":"http://example.com/wait","timeout_s":30}`)})
	if err == nil || !strings.Contains(err.Error(), "example.com did not answer in time") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan toolResult)
	go func() {
		res, _ := r.dispatch(ctx, toolCall{Name: "http_get", Args: json.RawMessage(`{"url":"http://example.com/wait"}`)}) // its error shows in the result
		done <- res
	}()
	cancel()
	if res := <-done; !res.IsError || !strings.Contains(res.Text, "interrupted") {
		t.Errorf("%+v", res)
	}
}

// A name is looked up here before a proxy gets it; one that is not known goes there unless it can only be a name of a network of one's own.
func TestHTTPProxy(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, req.URL.String())
		fmt.Fprint(w, "through")
	}))
	defer proxy.Close()
	r := newHTTPRig(t, modeAllow, map[string]string{"HTTP_PROXY": strings.Replace(proxy.URL, "://", "://u:pass-word@", 1)})
	r.hosts["inside.example"] = []string{"10.0.0.1"}
	for url, want := range map[string]string{"http://example.com/": "through", "http://unknown.example/": "through", "http://inside.example/": "inside.example stands for 10.0.0.1", "http://wiki/": "only a proxy could know", "http://a.internal/": "only a proxy could know"} {
		if res := r.get(url); !strings.Contains(res.Text, want) || strings.Contains(res.Text, "pass-word") {
			t.Errorf("%s: %s", url, res.Text)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(got)
	if !slices.Equal(got, []string{"http://example.com/", "http://unknown.example/"}) {
		t.Errorf("the proxy got %q", got)
	}
}

// BenchmarkHTTPGet compares a small page through the toolbox with the same through a plain client.
func BenchmarkHTTPGet(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<p>hello") }))
	defer srv.Close()
	b.Run("client", func(b *testing.B) {
		for b.Loop() {
			resp, err := srv.Client().Get(srv.URL)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				b.Fatal(err)
			}
			resp.Body.Close()
		}
	})
	b.Run("toolbox", func(b *testing.B) {
		dir := b.TempDir()
		log := newAuditLog(auditConfig{Dir: filepath.Join(dir, "runs"), Origin: "test", Now: time.Now})
		defer log.close()
		pol := newPolicy(policyConfig{Mode: modeDanger})
		web := newWebFetcher(webFetcherConfig{})
		defer web.close()
		none := func(context.Context) (*vault, error) { return nil, errors.New("none") }
		tools := webTools(web, nil, pol.foresee, os.LookupEnv, func(context.Context, string) (secret, error) { return "", errNotFound })
		box, err := newToolbox(tools, pol, log, none, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		args := json.RawMessage(`{"url":"` + srv.URL + `"}`)
		for b.Loop() {
			if res, err := box.dispatch(b.Context(), toolCall{Name: "http_get", Args: args}); err != nil || res.IsError {
				b.Fatal(err, res.Text)
			}
		}
	})
}
