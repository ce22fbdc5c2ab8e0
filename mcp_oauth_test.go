package main

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

func oauthTestTarget() oauthTarget {
	return oauthTarget{Resource: "https://h.test/mcp", Issuer: "https://as.test", Authorize: "https://as.test/authorize?kept=1&state=theirs", Token: "https://as.test/token", Register: "https://as.test/register", Scope: "a b"}
}

func oauthTestAttempt(t testing.TB, target oauthTarget) (*oauthAttempt, url.Values) {
	t.Helper()
	a, err := newOAuthAttempt(target, oauthClient{ID: "id 1"}, "http://127.0.0.1:4711/callback")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(a.Address)
	if err != nil {
		t.Fatal(err)
	}
	return a, u.Query()
}

// W56, W57, W58, W59: what the browser is sent to.
func TestOAuthAddress(t *testing.T) {
	t.Parallel()
	a, q := oauthTestAttempt(t, oauthTestTarget())
	sum := sha256.Sum256([]byte(a.Verifier.reveal()))
	for name, want := range map[string]string{
		"kept": "1", "response_type": "code", "client_id": "id 1", "redirect_uri": "http://127.0.0.1:4711/callback", "scope": "a b", "resource": "https://h.test/mcp",
		"code_challenge_method": "S256", "code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "state": a.state,
	} {
		if got := q[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if v := a.Verifier.reveal(); len(v) < 43 || len(v) > 128 || strings.Trim(v, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") != "" {
		t.Errorf("verifier of %d characters or with others than RFC 7636 allows", len(v))
	}
	b, _ := oauthTestAttempt(t, oauthTestTarget())
	if a.state == b.state || a.Verifier == b.Verifier {
		t.Error("two attempts share state or verifier")
	}
	target := oauthTestTarget()
	target.Scope = ""
	if _, q := oauthTestAttempt(t, target); q.Has("scope") {
		t.Errorf("scope = %q, want none", q["scope"])
	}
}

// OAU-02: what could mean something to a shell is encoded when the address is written anew.
func TestOAuthAddressEncoded(t *testing.T) {
	t.Parallel()
	target := oauthTestTarget()
	target.Authorize = "https://as.test/a?x=$(touch${IFS}p)&y=`id`"
	a, q := oauthTestAttempt(t, target)
	if strings.ContainsAny(a.Address, "`$(){}' \"\n") || q.Get("x") != "$(touch${IFS}p)" || q.Get("y") != "`id`" {
		t.Errorf("address %s, x %q, y %q", a.Address, q.Get("x"), q.Get("y"))
	}
}

func TestOAuthAccept(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		itself bool // the issuer says that it names itself
		change map[string][]string
		code   string
		fault  string
		shows  bool // the error shows what the answer says
	}{
		{"good", false, nil, "c", "", false},
		{"W61 iss right", true, map[string][]string{"iss": {"https://as.test"}}, "c", "", false},
		{"W61 iss right, not announced", false, map[string][]string{"iss": {"https://as.test"}}, "c", "", false},
		{"W61 OAU-11 iss of another", false, map[string][]string{"iss": {"https://evil.test"}, "error": {"bad-word"}}, "", "does not come from the authorization server https://as.test", false},
		{"W61 iss with a slash", true, map[string][]string{"iss": {"https://as.test/"}}, "", "does not come from", false},
		{"W61 iss missing, announced", true, map[string][]string{"error": {"bad-word"}}, "", "does not come from", false},
		{"W61 iss twice", false, map[string][]string{"iss": {"https://as.test", "https://as.test"}}, "", "does not come from", false},
		{"W60 wrong state", false, map[string][]string{"state": {"x"}}, "", errOAuthStray.Error(), false},
		{"W60 no state", false, map[string][]string{"state": nil}, "", errOAuthStray.Error(), false},
		{"W60 state twice", false, map[string][]string{"state": {"STATE", "STATE"}}, "", errOAuthStray.Error(), false},
		{"denied", false, map[string][]string{"error": {"access_denied"}, "error_description": {"not \x1b[31mnow <b>x</b>"}}, "", `refuses the login: access_denied (not \u001b[31mnow x)`, true},
		{"no code", false, map[string][]string{"code": nil}, "", "holds no code", false},
		{"code twice", false, map[string][]string{"code": {"c", "d"}}, "", "holds no code", false},
		{"code too long", false, map[string][]string{"code": {strings.Repeat("c", oauthTokenMax+1)}}, "", "holds no code", false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			target := oauthTestTarget()
			target.NamesItself = tc.itself
			a, _ := oauthTestAttempt(t, target)
			q := url.Values{"state": {a.state}, "code": {"c"}}
			for k, v := range tc.change {
				q[k] = nil
				for _, s := range v {
					q[k] = append(q[k], strings.ReplaceAll(s, "STATE", a.state))
				}
				if v == nil {
					q.Del(k)
				}
			}
			code, err := a.accept(q)
			if code.reveal() != tc.code || (err == nil) != (tc.fault == "") || err != nil && !strings.Contains(err.Error(), tc.fault) {
				t.Fatalf("accept = %q, %v, want %q, %q", code.reveal(), err, tc.code, tc.fault)
			}
			if err != nil && !tc.shows && strings.Contains(err.Error(), "bad-word") {
				t.Errorf("the error shows what the answer says: %v", err)
			}
		})
	}
}

// OAU-09: one answer counts, and one alone.
func TestOAuthAcceptOnce(t *testing.T) {
	t.Parallel()
	a, _ := oauthTestAttempt(t, oauthTestTarget())
	good := url.Values{"state": {a.state}, "code": {"c"}}
	if _, err := a.accept(url.Values{"state": {"wrong"}, "code": {"x"}}); !errors.Is(err, errOAuthStray) {
		t.Errorf("wrong state: %v", err)
	}
	if code, err := a.accept(good); err != nil || code != "c" {
		t.Errorf("right state: %q, %v", code.reveal(), err)
	}
	if _, err := a.accept(good); !errors.Is(err, errOAuthUsed) {
		t.Errorf("again: %v", err)
	}
}

// W59, W62, OAU-08, OAU-15
func TestOAuthRegister(t *testing.T) {
	t.Parallel()
	const redirect = "http://127.0.0.1:4711/callback"
	cases := []struct {
		name   string
		reg    map[string]any
		as     map[string]any
		want   oauthClient
		fault  string
		posted bool
	}{
		{"public", nil, nil, oauthClient{ID: "client-1"}, "", true},
		{"OAU-15 secret with none", map[string]any{"client_secret": "hush-made-up"}, nil, oauthClient{ID: "client-1"}, "", true},
		{"OAU-15 secret without a method", map[string]any{"client_secret": "hush-made-up", "token_endpoint_auth_method": nil}, nil, oauthClient{ID: "client-1"}, "", true},
		{"OAU-15 secret by Basic", map[string]any{"client_secret": "hush-made-up", "token_endpoint_auth_method": oauthBasic}, nil, oauthClient{"client-1", "hush-made-up", oauthBasic}, "", true},
		{"OAU-15 secret in the body", map[string]any{"client_secret": "hush-made-up", "token_endpoint_auth_method": oauthPost}, nil, oauthClient{"client-1", "hush-made-up", oauthPost}, "", true},
		{"method without a secret", map[string]any{"token_endpoint_auth_method": oauthPost}, nil, oauthClient{}, "gave none", true},
		{"another method", map[string]any{"token_endpoint_auth_method": "private_key_jwt"}, nil, oauthClient{}, "private_key_jwt", true},
		{"OAU-15 other redirect", map[string]any{"redirect_uris": []string{"https://evil.test/"}}, nil, oauthClient{}, "another redirect address", true},
		{"more redirects", map[string]any{"redirect_uris": []string{"https://x.test/", redirect}}, nil, oauthClient{ID: "client-1"}, "", true},
		{"no redirects", map[string]any{"redirect_uris": nil}, nil, oauthClient{ID: "client-1"}, "", true},
		{"no id", map[string]any{"client_id": nil}, nil, oauthClient{}, "no usable client_id", true},
		{"id with a line break", map[string]any{"client_id": "a\nb"}, nil, oauthClient{}, "no usable client_id", true},
		{"wrong type", map[string]any{"client_id": 7}, nil, oauthClient{}, "not in the form", true},
		{"refused", map[string]any{"error": "invalid_redirect_uri", "error_description": "no\x1b[2J loopback"}, nil, oauthClient{}, `refuses the registration: invalid_redirect_uri (no\u001b[2J loopback)`, true},
		{"OAU-08 none offered", nil, map[string]any{"registration_endpoint": nil}, oauthClient{}, "registers no clients", false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeOAuth(t)
			f.Reg, f.AS = tc.reg, tc.as
			flow := oauthTestFlow(t, f.URL+"/mcp", nil)
			target, err := flow.discover(t.Context(), nil, "")
			if err != nil {
				t.Fatal(err)
			}
			c, err := flow.register(t.Context(), target, redirect)
			if tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)) || tc.fault == "" && (err != nil || c != tc.want) {
				t.Fatalf("register = %+v, %v, want %+v, %q", c, err, tc.want, tc.fault)
			}
			if tc.fault != "" && strings.Contains(err.Error(), "hush") {
				t.Errorf("the error shows the secret: %v", err)
			}
			if len(f.clients) == 1 != tc.posted {
				t.Fatalf("%d registrations", len(f.clients))
			}
			if tc.posted {
				if got, want := fmt.Sprint(f.clients[0]), "map[application_type:native client_name:tai-mcp grant_types:[authorization_code refresh_token] redirect_uris:["+redirect+"] response_types:[code] token_endpoint_auth_method:none]"; got != want {
					t.Errorf("sent %s\nwant %s", got, want)
				}
			}
		})
	}
}

// oauthTestCode takes a flow to a code at the fake.
func oauthTestCode(t testing.TB, f *fakeOAuth, c oauthClient) (*oauthFlow, *oauthAttempt, secret) {
	t.Helper()
	flow := oauthTestFlow(t, f.URL+"/mcp", nil)
	target, err := flow.discover(t.Context(), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	a, err := newOAuthAttempt(target, c, "http://127.0.0.1:4711/callback")
	if err != nil {
		t.Fatal(err)
	}
	code, err := a.accept(fakeBrowse(t, a.Address))
	if err != nil {
		t.Fatal(err)
	}
	return flow, a, code
}

// W57, W70, OAU-12: what the token endpoint is sent, and what is made of its answers.
func TestOAuthToken(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		token   map[string]any
		life    time.Duration // 0 for unknown
		refresh bool
		fault   string
	}{
		{"plain", nil, time.Hour, true, ""},
		{"OAU-12 life in a string", map[string]any{"expires_in": "3600"}, time.Hour, true, ""},
		{"OAU-12 life below nothing", map[string]any{"expires_in": -1}, 0, true, ""},
		{"OAU-12 life without end", map[string]any{"expires_in": 1e12}, 0, true, ""},
		{"OAU-12 life that is none", map[string]any{"expires_in": "abc"}, 0, true, ""},
		{"OAU-12 life null", map[string]any{"expires_in": nil}, 0, true, ""},
		{"OAU-12 life an object", map[string]any{"expires_in": map[string]any{"x": 1}}, 0, true, ""},
		{"life with a fraction", map[string]any{"expires_in": 0.5}, time.Second / 2, true, ""},
		{"W70 no refresh token", map[string]any{"refresh_token": nil}, time.Hour, false, ""},
		{"other type", map[string]any{"token_type": "DPoP"}, 0, false, "tokens of the type DPoP"},
		{"no type", map[string]any{"token_type": nil}, time.Hour, true, ""},
		{"200 with an error", map[string]any{"error": "invalid_request", "error_description": "odd"}, 0, false, "refuses the code: invalid_request (odd)"},
		{"no token", map[string]any{"access_token": nil}, 0, false, "no usable token"},
		{"token with a line break", map[string]any{"access_token": "a\r\nX: y"}, 0, false, "no usable token"},
		{"token too long", map[string]any{"access_token": strings.Repeat("a", oauthTokenMax+1)}, 0, false, "no usable token"},
		{"refresh token with a space", map[string]any{"refresh_token": "a b"}, 0, false, "no usable token"},
		{"token a number", map[string]any{"access_token": 7}, 0, false, "not in the form"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeOAuth(t)
			f.Token = tc.token
			flow, a, code := oauthTestCode(t, f, oauthClient{ID: "client-1"})
			now := time.Unix(1e9, 0)
			flow.now = func() time.Time { return now }
			got, err := flow.exchange(t.Context(), a, code)
			if tc.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fault) || strings.Contains(err.Error(), "made-up") {
					t.Fatalf("error %v, want %q", err, tc.fault)
				}
				return
			}
			life := time.Duration(0)
			if !got.Expires.IsZero() {
				life = got.Expires.Sub(now)
			}
			if err != nil || got.Access == "" || (got.Refresh != "") != tc.refresh || life != tc.life {
				t.Errorf("exchange = access %t, refresh %t, life %v, %v", got.Access != "", got.Refresh != "", life, err)
			}
			form := f.forms[0]
			for name, want := range map[string]string{"grant_type": "authorization_code", "code": code.reveal(), "redirect_uri": "http://127.0.0.1:4711/callback", "client_id": "client-1", "code_verifier": a.Verifier.reveal(), "resource": f.URL + "/mcp"} {
				if form.Get(name) != want {
					t.Errorf("%s = %q, want %q", name, form.Get(name), want)
				}
			}
			if len(form) != 6 {
				t.Errorf("%d fields were sent: %v", len(form), form)
			}
		})
	}
}

// OAU-15: a client secret goes to the token endpoint alone, in the way that was asked for.
func TestOAuthClientSecret(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]url.Values{
		oauthBasic: {"basic": {"client%3A1:hush%3A+made%2Fup"}}, oauthPost: {"client_secret": {"hush: made/up"}}, "": {},
	} {
		f := newFakeOAuth(t)
		c := oauthClient{ID: "client:1", Method: method}
		if method != "" {
			c.Secret = "hush: made/up"
		}
		flow, a, code := oauthTestCode(t, f, c)
		if _, err := flow.exchange(t.Context(), a, code); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"basic", "client_secret"} {
			if got := f.forms[0].Get(name); got != want.Get(name) {
				t.Errorf("%q: %s = %q, want %q", method, name, got, want.Get(name))
			}
		}
	}
}

// OAU-18: a refusal that echoes what was sent shows none of it.
func TestOAuthEcho(t *testing.T) {
	t.Parallel()
	f := newFakeOAuth(t)
	flow, a, _ := oauthTestCode(t, f, oauthClient{ID: "client-1"})
	_, err := flow.exchange(t.Context(), a, "code-made-up-elsewhere")
	_, err2 := flow.refresh(t.Context(), a.Target, a.Client, "refresh-made-up-elsewhere")
	for _, err := range []error{err, err2} {
		if fault, ok := errors.AsType[*oauthFault](err); !ok || fault.Code != "invalid_grant" || !fault.final() || strings.Contains(err.Error(), "elsewhere") || !strings.Contains(err.Error(), "is not good") {
			t.Errorf("error %v", err)
		}
	}
}
