package main

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// OAU-19: whatever a server sends as a challenge is read without harm, and the Bearer part of it is found.
func TestParseChallenge(t *testing.T) {
	t.Parallel()
	const meta = "https://h.test/.well-known/oauth-protected-resource"
	found := func(metadata, scope, fault string) bearerChallenge {
		return bearerChallenge{true, metadata, scope, fault}
	}
	cases := []struct {
		name    string
		headers []string
		want    bearerChallenge
	}{
		{"none", nil, bearerChallenge{}},
		{"plain", []string{`Bearer resource_metadata="` + meta + `", scope="a b"`}, found(meta, "a b", "")},
		{"name alone", []string{`Bearer`}, found("", "", "")},
		{"any case, odd spaces", []string{"bEARER\t SCOPE = \"x\" ,  Error=invalid_token"}, found("", "x", "invalid_token")},
		{"Basic before", []string{`Basic realm="a, Bearer scope=\"no\"", Bearer scope="yes"`}, found("", "yes", "")},
		{"Basic after", []string{`Bearer scope="yes", Basic realm="x", scope="no"`}, found("", "yes", "")},
		{"two headers", []string{`Basic realm="x"`, `Bearer error="insufficient_scope"`}, found("", "", "insufficient_scope")},
		{"escapes", []string{`Bearer scope="a\"b\\c"`}, found("", `a"b\c`, "")},
		{"address without quotes", []string{`Bearer resource_metadata=` + meta + `, scope=x`}, found(meta, "x", "")},
		{"token68 before", []string{`Negotiate YWJj/ZGVm==, Bearer scope="s"`}, found("", "s", "")},
		{"unterminated", []string{`Bearer scope="s", resource_metadata="https://h`}, found("", "s", "")},
		{"first counts", []string{`Bearer scope="a", scope="b"`}, found("", "a", "")},
		{"value too long", []string{`Bearer scope="` + strings.Repeat("x", challengeText+1) + `", error="e"`}, found("", "", "e")},
		{"100 KB", []string{`Bearer scope="` + strings.Repeat("x", 100<<10) + `"`}, found("", "", "")},
		{"100 KB, then another", []string{strings.Repeat("x", 100<<10), `Bearer scope="s"`}, bearerChallenge{}},
		{"not Bearer", []string{`DPoP algs="ES256", error="use_dpop_nonce"`}, bearerChallenge{}},
		{"no header at all", []string{"\x00\xff=,=\"\\"}, bearerChallenge{}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := parseChallenge(tc.headers); got != tc.want {
				t.Errorf("parseChallenge = %+v, want %+v", got, tc.want)
			}
		})
	}
}

func FuzzParseChallenge(f *testing.F) {
	f.Add(`Bearer resource_metadata="https://h.test/x", scope="a b"`)
	f.Add(`Basic YWJj==, Bearer error="e\"`)
	f.Fuzz(func(t *testing.T, s string) {
		c := parseChallenge([]string{s, s})
		if len(c.Metadata) > challengeText || len(c.Scope) > challengeText || len(c.Error) > challengeText {
			t.Errorf("parseChallenge(%q) keeps too much", s)
		}
	})
}

// oauthTestFlow is a flow for a server's address; names are looked up in addrs alone.
func oauthTestFlow(t testing.TB, server string, addrs map[string]string) *oauthFlow {
	t.Helper()
	web := newWebFetcher(webFetcherConfig{Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
		if a, ok := addrs[host]; ok {
			return []netip.Addr{netip.MustParseAddr(a)}, nil
		}
		return nil, errors.New("no such host")
	}})
	t.Cleanup(web.close)
	f, err := newOAuthFlow(t.Context(), web, server, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestOAuthDiscovery(t *testing.T) {
	t.Parallel()
	const prm, as = "GET /.well-known/oauth-protected-resource", "GET /.well-known/oauth-authorization-server"
	html := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>all pages are this one</html>")) })
	gone := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) })
	fails := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	to := func(place string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, place, 302) })
	}
	large := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"x":"` + strings.Repeat("y", oauthBodyMax) + `"}`))
	})
	cases := []struct {
		name      string
		set       func(f *fakeOAuth)
		challenge string // with ORIGIN
		paths     []string
		scope     string
		fault     string // "" for none
	}{
		{"W50 named document", nil, `Bearer resource_metadata="ORIGIN/.well-known/oauth-protected-resource/mcp"`, []string{prm + "/mcp", as}, "tools more", ""},
		{"W50 inserted path", nil, `Bearer`, []string{prm + "/mcp", as}, "tools more", ""},
		{"W50 root", func(f *fakeOAuth) {
			f.Answer = map[string]http.Handler{"/.well-known/oauth-protected-resource/mcp": gone, "/.well-known/oauth-protected-resource": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Write([]byte(`{"resource":"` + f.URL + `","authorization_servers":["` + f.URL + `"]}`))
			})}
		}, ``, []string{prm + "/mcp", prm, as}, "", ""},
		{"no document, as in 2025-03-26", func(f *fakeOAuth) {
			f.Answer = map[string]http.Handler{"/.well-known/oauth-protected-resource/mcp": gone}
		}, ``, []string{prm + "/mcp", prm, as}, "", ""},
		{"a site that answers everything with a page", func(f *fakeOAuth) {
			f.Answer = map[string]http.Handler{"/.well-known/oauth-protected-resource/mcp": html, "/.well-known/oauth-protected-resource": html}
		}, ``, []string{prm + "/mcp", prm, as}, "", ""},
		{"named document is none", func(f *fakeOAuth) { f.Answer = map[string]http.Handler{"/named": html} }, `Bearer resource_metadata="ORIGIN/named"`, []string{"GET /named"}, "", "is no document"},
		{"document fails", func(f *fakeOAuth) {
			f.Answer = map[string]http.Handler{"/.well-known/oauth-protected-resource/mcp": fails}
		}, ``, []string{prm + "/mcp"}, "", "HTTP 503"},
		{"document too large", func(f *fakeOAuth) {
			f.Answer = map[string]http.Handler{"/.well-known/oauth-protected-resource/mcp": large}
		}, ``, []string{prm + "/mcp"}, "", "too large"},
		{"document redirects to metadata of a cloud", func(f *fakeOAuth) {
			f.Answer = map[string]http.Handler{"/.well-known/oauth-protected-resource/mcp": to("http://169.254.169.254/latest/")}
		}, ``, []string{prm + "/mcp"}, "", "https is required"},
		{"OAU-03 named address of a cloud", nil, `Bearer resource_metadata="http://169.254.169.254/latest/"`, nil, "", "https is required"},
		{"OAU-03 with https", nil, `Bearer resource_metadata="https://169.254.169.254/latest/"`, nil, "", "hands out the machine's credentials"},
		{"OAU-03 in a network of one's own", nil, `Bearer resource_metadata="https://10.0.0.1/x"`, nil, "", "private, link-local"},
		{"W51 no authorization server", func(f *fakeOAuth) { f.PRM = map[string]any{"authorization_servers": []string{}} }, ``, []string{prm + "/mcp"}, "", "names no authorization server"},
		{"W52 OAU-04 resource of another origin", func(f *fakeOAuth) { f.PRM = map[string]any{"resource": "https://other.test/mcp"} }, ``, []string{prm + "/mcp"}, "", "about another server"},
		{"resource of a part of a segment", func(f *fakeOAuth) { f.PRM = map[string]any{"resource": f.URL + "/mc"} }, ``, []string{prm + "/mcp"}, "", "about another server"},
		{"resource deeper than the server", func(f *fakeOAuth) { f.PRM = map[string]any{"resource": f.URL + "/mcp/x"} }, ``, []string{prm + "/mcp"}, "", "about another server"},
		{"resource with a slash at its end", func(f *fakeOAuth) { f.PRM = map[string]any{"resource": f.URL + "/mcp/"} }, ``, []string{prm + "/mcp", as}, "tools more", ""},
		{"W53 path issuer, first", func(f *fakeOAuth) { f.Issuer = "/tenant" }, ``, []string{prm + "/mcp", as + "/tenant"}, "tools more", ""},
		{"W53 path issuer, all three", func(f *fakeOAuth) {
			f.PRM = map[string]any{"authorization_servers": []string{f.URL + "/other/"}}
		}, ``, []string{prm + "/mcp", as + "/other", "GET /.well-known/openid-configuration/other", "GET /other/.well-known/openid-configuration"}, "", "no description of an authorization server"},
		{"W53 issuer without a path, both", func(f *fakeOAuth) {
			f.Answer = map[string]http.Handler{"/.well-known/oauth-authorization-server": gone}
		}, ``, []string{prm + "/mcp", as, "GET /.well-known/openid-configuration"}, "", "no description of an authorization server"},
		{"W54 OAU-06 document of another issuer", func(f *fakeOAuth) { f.AS = map[string]any{"issuer": "https://other.test"} }, ``, []string{prm + "/mcp", as}, "", "is that of another: https://other.test"},
		{"OAU-06 a slash is forgiven", func(f *fakeOAuth) { f.AS = map[string]any{"issuer": f.URL + "/"} }, ``, []string{prm + "/mcp", as}, "tools more", ""},
		{"W55 OAU-07 no challenge methods", func(f *fakeOAuth) { f.AS = map[string]any{"code_challenge_methods_supported": nil} }, ``, []string{prm + "/mcp", as}, "", "S256"},
		{"OAU-07 plain alone", func(f *fakeOAuth) { f.AS = map[string]any{"code_challenge_methods_supported": []string{"plain"}} }, ``, []string{prm + "/mcp", as}, "", "S256"},
		{"OAU-05 token endpoint on plain http", func(f *fakeOAuth) { f.AS = map[string]any{"token_endpoint": "http://as.test/token"} }, ``, []string{prm + "/mcp", as}, "", "token_endpoint http://as.test/token is refused: https is required"},
		{"OAU-05 registration on plain http", func(f *fakeOAuth) { f.AS = map[string]any{"registration_endpoint": "http://as.test/r"} }, ``, []string{prm + "/mcp", as}, "", "registration_endpoint http://as.test/r is refused"},
		{"W69 OAU-01 script", func(f *fakeOAuth) { f.AS = map[string]any{"authorization_endpoint": "javascript:alert(1)"} }, ``, []string{prm + "/mcp", as}, "", "authorization_endpoint must start with http"},
		{"W69 OAU-01 file", func(f *fakeOAuth) { f.AS = map[string]any{"authorization_endpoint": "file:///bin/sh"} }, ``, []string{prm + "/mcp", as}, "", "authorization_endpoint must start with http"},
		{"W69 OAU-01 data", func(f *fakeOAuth) { f.AS = map[string]any{"authorization_endpoint": "data:text/html,x"} }, ``, []string{prm + "/mcp", as}, "", "authorization_endpoint must start with http"},
		{"W69 OAU-01 ssh", func(f *fakeOAuth) { f.AS = map[string]any{"authorization_endpoint": "ssh://h.test/x"} }, ``, []string{prm + "/mcp", as}, "", "authorization_endpoint must start with http"},
		{"OAU-02 line break", func(f *fakeOAuth) { f.AS = map[string]any{"authorization_endpoint": "https://as.test/a\nx"} }, ``, []string{prm + "/mcp", as}, "", "is no web address"},
		{"issuer with a query", func(f *fakeOAuth) { f.PRM = map[string]any{"authorization_servers": []string{f.URL + "?x=1"}} }, ``, []string{prm + "/mcp"}, "", "query or a fragment"},
		{"issuer on plain http", func(f *fakeOAuth) { f.PRM = map[string]any{"authorization_servers": []string{"http://as.test"}} }, ``, []string{prm + "/mcp"}, "", "https is required"},
		{"W58 scope of the challenge", nil, `Bearer scope="a b a"`, []string{prm + "/mcp", as}, "a b", ""},
		{"W58 no scope", func(f *fakeOAuth) { f.PRM = map[string]any{"scopes_supported": nil} }, ``, []string{prm + "/mcp", as}, "", ""},
		{"scopes that are none", func(f *fakeOAuth) { f.PRM = map[string]any{"scopes_supported": []string{"a\"b", "", "ok", "x y"}} }, ``, []string{prm + "/mcp", as}, "ok", ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeOAuth(t)
			if tc.set != nil {
				tc.set(f)
			}
			flow := oauthTestFlow(t, f.URL+"/mcp", nil)
			target, err := flow.discover(t.Context(), []string{strings.ReplaceAll(tc.challenge, "ORIGIN", f.URL)}, "")
			if got := f.paths(); !slices.Equal(got, tc.paths) {
				t.Errorf("asked for %q, want %q", got, tc.paths)
			}
			if tc.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fault) {
					t.Fatalf("error %v, want %q in it", err, tc.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if target.Scope != tc.scope || !sameIssuer(target.Issuer, f.issuer()) || !resourceCovers(target.Resource, flow.server) {
				t.Errorf("target = %+v, want the scope %q", target, tc.scope)
			}
		})
	}
}

// OAU-05: https endpoints of other origins are used, and told.
func TestOAuthElsewhere(t *testing.T) {
	t.Parallel()
	f := newFakeOAuth(t)
	f.AS = map[string]any{"token_endpoint": "https://tokens.test/t", "registration_endpoint": "https://tokens.test/r"}
	target, err := oauthTestFlow(t, f.URL+"/mcp", nil).discover(t.Context(), nil, "")
	if err != nil || !slices.Equal(target.elsewhere(), []string{"https://tokens.test"}) {
		t.Errorf("elsewhere = %q, %v", target.elsewhere(), err)
	}
}

// Where a server lies decides how far its documents may lead (wire.md 2, SSRF).
func TestOAuthReach(t *testing.T) {
	t.Parallel()
	addrs := map[string]string{"public.test": "8.8.8.8", "inner.test": "10.1.2.3", "cloud.test": "169.254.169.254"}
	cases := []struct{ server, address, fault string }{
		{"https://public.test/mcp", "https://as.test/a", ""},
		{"https://public.test/mcp", "http://as.test/a", "https is required"},
		{"https://public.test/mcp", "https://127.0.0.1/a", "this machine itself"},
		{"https://public.test/mcp", "http://localhost/a", "https is required"},
		{"https://public.test/mcp", "https://192.168.0.1/a", "private"},
		{"https://inner.test/mcp", "https://10.9.9.9/a", ""},
		{"https://inner.test/mcp", "https://127.0.0.1/a", "this machine itself"},
		{"https://inner.test/mcp", "http://10.9.9.9/a", "https is required"},
		{"http://127.0.0.1:1/mcp", "http://localhost:2/a", ""},
		{"http://127.0.0.1:1/mcp", "https://as.test/a", ""},
		{"http://127.0.0.1:1/mcp", "http://as.test/a", "https is required"},
		{"http://127.0.0.1:1/mcp", "https://10.0.0.1/a", "private"},
		{"https://cloud.test/mcp", "https://169.254.169.254/a", "hands out"},
		{"https://public.test/mcp", "https://user:pw@as.test/a", "user name or password"},
	}
	for _, tc := range cases {
		flow := oauthTestFlow(t, tc.server, addrs)
		_, err := flow.address("token_endpoint", tc.address)
		if tc.fault == "" && err != nil || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)) {
			t.Errorf("%s names %s: %v, want %q", tc.server, tc.address, err, tc.fault)
		}
	}
}

func TestResourceCovers(t *testing.T) {
	t.Parallel()
	cases := []struct {
		resource, server string
		want             bool
	}{
		{"https://h.test/mcp", "https://h.test/mcp", true}, {"https://H.test:443/mcp/", "https://h.test/mcp", true},
		{"https://h.test", "https://h.test/a/b", true}, {"https://h.test/a", "https://h.test/a/b", true}, {"https://h.test/a", "https://h.test/ab", false},
		{"http://h.test/mcp", "https://h.test/mcp", false}, {"https://h.test:8443/mcp", "https://h.test/mcp", false}, {"https://h.test/mcp#x", "https://h.test/mcp", false},
		{"https://u@h.test/mcp", "https://h.test/mcp", false}, {"https://h.test/mcp?a=1", "https://h.test/mcp", false}, {"https://h.test/mcp?a=1", "https://h.test/mcp?a=1", true},
		{"", "https://h.test/mcp", false}, {"mcp", "https://h.test/mcp", false},
	}
	for _, tc := range cases {
		u, err := url.Parse(tc.server)
		if err != nil {
			t.Fatal(err)
		}
		if got := resourceCovers(tc.resource, u); got != tc.want {
			t.Errorf("resourceCovers(%q, %q) = %v, want %v", tc.resource, tc.server, got, tc.want)
		}
	}
}

// No login begins where its token could not be sent.
func TestOAuthPlainServer(t *testing.T) {
	t.Parallel()
	web := newWebFetcher(webFetcherConfig{})
	defer web.close()
	for server, fault := range map[string]string{"http://h.test/mcp": "unencrypted", "http://10.0.0.1/mcp": "unencrypted", "ftp://h.test/": "must start with http"} {
		if _, err := newOAuthFlow(t.Context(), web, server, time.Now); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q: %v, want %q", server, err, fault)
		}
	}
}
