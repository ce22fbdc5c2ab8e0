package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// loginRig is a bridge whose server f wants a login.
type loginRig struct {
	*bridgeRig
	t testing.TB
	f *fakeOAuth
}

func newLoginRig(t testing.TB) *loginRig {
	t.Helper()
	r := &loginRig{bridgeRig: newBridgeRig(t, modeDanger, ""), t: t, f: newFakeOAuth(t)}
	r.cfg.Web = newWebFetcher(webFetcherConfig{})
	t.Cleanup(r.cfg.Web.close)
	return r
}

// added has the server stored, waiting for a login.
func (r *loginRig) added() *loginRig {
	r.t.Helper()
	if got := r.add(r.t, r.entry()); got.Status != statusLogin || !strings.Contains(got.Hint, "mcp_login") || len(got.Tools) != 0 {
		r.t.Fatalf("add = %+v", got)
	}
	return r
}

func (r *loginRig) entry() serverEntry {
	return serverEntry{Name: "f", Transport: "http", URL: r.f.URL + "/mcp", Source: "explicit"}
}

// browse is a person whose browser follows the address, as far as tai's own listener.
func (r *loginRig) browse(_ context.Context, v loginShown) error {
	resp, err := http.Get(v.Address)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}

func (r *loginRig) login(o loginOptions) (registered, error) {
	if o.Show == nil {
		// Not before the listener waits: the answer comes while Show has returned.
		o.Show = func(ctx context.Context, v loginShown) error {
			go r.browse(ctx, v)
			return nil
		}
	}
	return r.mcpBridge.login(context.Background(), "f", o)
}

func (r *loginRig) loggedIn() *loginRig {
	r.t.Helper()
	if got, err := r.added().login(loginOptions{}); err != nil || got.Status != statusEnabled || len(got.Tools) != 1 || got.Tools[0].State != stateGranted {
		r.t.Fatalf("login = %+v, %v", got, err)
	}
	return r
}

func loginCall(b *mcpBridge) error {
	res, err := b.callTool(context.Background(), toolRef{"f", "echo"}, toolCall{})
	if err == nil && res.Text != "echoed" {
		err = fmt.Errorf("result %+v", res)
	}
	return err
}

// wantsLogin holds an error to what a person needs of it.
func wantsLogin(t testing.TB, err error) {
	t.Helper()
	_, ok := errors.AsType[*loginError](err)
	if !ok || failure(err).Exit != exitLogin || !strings.Contains(err.Error(), "mcp_login") || !strings.Contains(failure(err).Hint, "tai mcp login f") || strings.Contains(err.Error(), "made-up") {
		t.Errorf("error %v (%T), want one that names the login", err, err)
	}
	if strings.Count(err.Error(), "mcp_login") > 1 {
		t.Errorf("the login is named more than once: %v", err)
	}
}

// W64, W65: a login makes the server usable; its tokens are sealed, masked, and in no log and no address.
func TestLogin(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).loggedIn()
	if err := loginCall(r.mcpBridge); err != nil {
		t.Fatal(err)
	}
	if r.f.bearers[0] != "" {
		t.Error("the first request was not anonymous")
	}
	if _, err := r.callTool(t.Context(), toolRef{"f", "echo"}, toolCall{Args: json.RawMessage(`{"x":"` + r.f.access + r.f.refresh + `"}`)}); err != nil {
		t.Error(err)
	}
	for i, form := range append(r.f.forms, r.f.grants...) {
		if got := form.Get("resource"); got != r.f.URL+"/mcp" {
			t.Errorf("request %d has the resource %q", i, got)
		}
	}
	if got := r.f.grants[0].Get("redirect_uri"); !strings.HasPrefix(got, "http://127.0.0.1:") || fmt.Sprint(r.f.clients[0]["redirect_uris"]) != "["+got+"]" || r.f.forms[0].Get("redirect_uri") != got {
		t.Errorf("redirect addresses: %q, registered %v, exchanged %q", got, r.f.clients[0]["redirect_uris"], r.f.forms[0].Get("redirect_uri"))
	}
	list, err := r.store.secrets(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "mcp-oauth-f-access" || list[1].Name != "mcp-oauth-f-refresh" || list[0].Profile != profileDefault || !strings.Contains(string(list[0].Meta), `"client_id":"client-1"`) {
		t.Errorf("secrets = %+v, %v", list, err)
	}
	if err := r.cfg.Audit.sync(); err != nil {
		t.Fatal(err)
	}
	nothingHolds(t, r.dir, r.f.access, r.f.refresh, "code-1-made-up")
	if got := r.cfg.Redact("x " + r.f.access + " " + r.f.refresh); strings.Contains(got, "made-up") {
		t.Errorf("masked text %q", got)
	}
}

// nothingHolds looks for texts in every file below dir.
func nothingHolds(t testing.TB, dir string, texts ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, s := range texts {
			if bytes.Contains(b, []byte(s)) {
				t.Errorf("%s holds %q", filepath.Base(path), s)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestLoginRefused(t *testing.T) {
	t.Parallel()
	t.Run("open server", func(t *testing.T) {
		t.Parallel()
		r := newLoginRig(t)
		r.f.open = true
		r.add(t, r.entry())
		if _, err := r.login(loginOptions{}); !errors.Is(err, errNoLogin) || len(r.f.paths()) != 0 {
			t.Errorf("login = %v, asked for %q", err, r.f.paths())
		}
	})
	t.Run("W71 stdio server", func(t *testing.T) {
		t.Parallel()
		r := newLoginRig(t)
		r.add(t, stdioEntry(t, "f", fakeStdio{}))
		if _, err := r.login(loginOptions{}); err == nil || !strings.Contains(err.Error(), "stdio") {
			t.Errorf("login = %v", err)
		}
	})
	t.Run("unknown server", func(t *testing.T) {
		t.Parallel()
		if _, err := newLoginRig(t).login(loginOptions{}); !errors.Is(err, errServerUnknown) {
			t.Errorf("login = %v", err)
		}
	})
	t.Run("OAU-08 no registration", func(t *testing.T) {
		t.Parallel()
		r := newLoginRig(t).added()
		r.f.AS = map[string]any{"registration_endpoint": nil}
		_, err := r.login(loginOptions{})
		if hint := failure(err).Hint; !errors.Is(err, errNoRegistration) || !strings.Contains(hint, "tai secret set F_TOKEN") || !strings.Contains(hint, `--header 'Authorization: Bearer ${F_TOKEN}'`) || !strings.Contains(hint, r.f.URL+"/mcp") {
			t.Errorf("login = %v, hint %q", err, hint)
		}
		if list, err := r.store.secrets(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("secrets = %v, %v", list, err)
		}
	})
	t.Run("OAU-10 denied", func(t *testing.T) {
		t.Parallel()
		r := newLoginRig(t).added()
		r.f.Back = map[string]string{"code": "", "error": "access_denied", "error_description": "<img src=x onerror=alert(1)>"}
		if _, err := r.login(loginOptions{}); err == nil || !strings.Contains(err.Error(), "access_denied") || strings.Contains(err.Error(), "<") {
			t.Errorf("login = %v", err)
		}
	})
	t.Run("W61 OAU-11 answer of another issuer", func(t *testing.T) {
		t.Parallel()
		r := newLoginRig(t).added()
		r.f.Back = map[string]string{"iss": "https://evil.test"}
		if _, err := r.login(loginOptions{}); err == nil || !strings.Contains(err.Error(), "does not come from") || len(r.f.forms) != 0 {
			t.Errorf("login = %v, %d token requests", err, len(r.f.forms))
		}
	})
	t.Run("the token is no good", func(t *testing.T) {
		t.Parallel()
		r := newLoginRig(t).added()
		r.f.Token = map[string]any{"access_token": "never-good-made-up"}
		_, err := r.login(loginOptions{})
		if err == nil || !strings.Contains(err.Error(), "the login succeeded, but") || strings.Contains(err.Error(), "made-up") {
			t.Errorf("login = %v", err)
		}
		if list, err := r.store.secrets(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("secrets = %v, %v", list, err)
		}
	})
	t.Run("own Authorization", func(t *testing.T) {
		t.Parallel()
		r := newLoginRig(t)
		r.f.open = true
		e := r.entry()
		e.Headers = map[string]string{"authorization": "Bearer own-made-up"}
		r.add(t, e)
		r.f.open = false
		err := r.forget("f")
		if err == nil {
			err = loginCall(r.mcpBridge)
		}
		if _, own := errors.AsType[*credentialsError](err); !own || !strings.Contains(failure(err).Hint, "check your credentials") {
			t.Errorf("call = %v", err)
		}
		if _, err := r.login(loginOptions{}); err == nil || !strings.Contains(err.Error(), "Authorization of its own") {
			t.Errorf("login = %v", err)
		}
	})
}

// F13, W66: what has run out is refreshed once, by whoever meets it; a new refresh token is kept, else the old one.
func TestLoginRefresh(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		t.Run(map[bool]string{false: "rotates", true: "does not rotate"}[keep], func(t *testing.T) {
			t.Parallel()
			r := newLoginRig(t)
			r.f.Keep = keep
			r.loggedIn()
			for round := 1; round <= 3; round++ {
				r.f.expire()
				if err := loginCall(r.mcpBridge); err != nil || r.f.refreshes() != round || r.f.family {
					t.Fatalf("round %d: %v, %d refreshes, ended %v", round, err, r.f.refreshes(), r.f.family)
				}
				l, err := r.store.login(t.Context(), profileDefault, "f")
				if err != nil || l.Access.reveal() != r.f.access || l.Refresh.reveal() != r.f.refresh || l.Client != "client-1" || l.Scope != "tools more" {
					t.Fatalf("round %d: stored %+v, %v", round, l.oauthMeta, err)
				}
			}
			if got := r.f.forms[1]; got.Get("client_id") != "client-1" || got.Get("resource") != r.f.URL+"/mcp" || len(got) != 4 {
				t.Errorf("refresh sent %v", got)
			}
			if len(r.f.clients) != 1 {
				t.Errorf("%d registrations", len(r.f.clients))
			}
		})
	}
}

// HTC-14: one refresh and one retry, then an error that names the login.
func TestLoginRefreshUseless(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).loggedIn()
	r.f.mu.Lock()
	r.f.Token = map[string]any{"access_token": "never-good-made-up"}
	r.f.mu.Unlock()
	r.f.expire()
	before := len(r.f.bearers)
	wantsLogin(t, loginCall(r.mcpBridge))
	if n := len(r.f.bearers) - before; r.f.refreshes() != 1 || n != 2 {
		t.Errorf("%d refreshes, %d requests, want 1 and 2", r.f.refreshes(), n)
	}
}

// F13, OAU-18: a refused refresh ends the login; every call says so, and none loops.
func TestLoginRevoked(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).loggedIn()
	r.f.revoke()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { wantsLogin(t, loginCall(r.mcpBridge)) })
	}
	wg.Wait()
	wantsLogin(t, loginCall(r.mcpBridge))
	if n := r.f.refreshes(); n != 1 {
		t.Errorf("%d refreshes", n)
	}
	if _, err := r.store.login(t.Context(), profileDefault, "f"); !errors.Is(err, errNotFound) {
		t.Errorf("stored login: %v", err)
	}
	if err := r.cfg.Audit.sync(); err != nil {
		t.Fatal(err)
	}
	nothingHolds(t, r.dir, "made-up")
	if _, err := r.login(loginOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := loginCall(r.mcpBridge); err != nil {
		t.Error(err)
	}
}

// OAU-13, F13: calls that meet a 401 together share one refresh.
func TestLoginRefreshShared(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).loggedIn()
	if err := loginCall(r.mcpBridge); err != nil {
		t.Fatal(err)
	}
	r.f.expire()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := loginCall(r.mcpBridge); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := r.f.refreshes(); n != 1 || r.f.family {
		t.Errorf("%d refreshes, ended %v", n, r.f.family)
	}
}

// A failure on the way to the issuer forgets nothing: the next call tries again.
func TestLoginRefreshUnreachable(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).loggedIn()
	r.f.expire()
	r.f.mu.Lock()
	r.f.Answer = map[string]http.Handler{"/token": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })}
	r.f.mu.Unlock()
	wantsLogin(t, loginCall(r.mcpBridge))
	r.f.mu.Lock()
	r.f.Answer = nil
	r.f.mu.Unlock()
	if err := loginCall(r.mcpBridge); err != nil || r.f.refreshes() != 1 {
		t.Errorf("call = %v, %d refreshes", err, r.f.refreshes())
	}
}

// A call that is given up during a refresh loses no token: what was asked for is stored.
func TestLoginRefreshGivenUp(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).loggedIn()
	if err := loginCall(r.mcpBridge); err != nil {
		t.Fatal(err)
	}
	r.f.expire()
	r.f.mu.Lock()
	r.f.gate, r.f.atGate = make(chan struct{}), make(chan struct{})
	r.f.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error)
	go func() {
		_, err := r.callTool(ctx, toolRef{"f", "echo"}, toolCall{})
		over <- err
	}()
	<-r.f.atGate
	cancel()
	close(r.f.gate)
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("call = %v", err)
	}
	if l, err := r.store.login(t.Context(), profileDefault, "f"); err != nil || l.Access.reveal() != r.f.access || l.Refresh.reveal() != r.f.refresh {
		t.Errorf("stored login is not the one given: %v", err)
	}
}

// The right to refresh ends with its time where its holder died, and is nobody else's before.
func TestLoginRefreshLease(t *testing.T) {
	t.Parallel()
	v, err := openVault(t.Context(), t.TempDir(), vaultWrite, time.Now, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	defer v.close()
	now := time.Now()
	v.now = func() time.Time { return now }
	take := func(id string, want bool) {
		t.Helper()
		if got, err := v.leaseRefresh(t.Context(), "p", "s", id, refreshLease); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", id, got, err, want)
		}
	}
	take("aa", true)
	take("bb", false)
	if err := v.endRefresh(t.Context(), "p", "s", "bb"); err != nil { // not its own
		t.Error(err)
	}
	now = now.Add(refreshLease - time.Second)
	take("bb", false)
	now = now.Add(time.Second)
	take("bb", true)
	if err := v.endRefresh(t.Context(), "p", "s", "bb"); err != nil {
		t.Error(err)
	}
	take("cc", true)
	now = now.Add(-time.Hour) // the clock went back
	take("dd", true)
}

// F14, OAU-14: another process's refresh, login and logout are seen by the next call; nobody wipes what another one stored.
func TestLoginTwoRuns(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).loggedIn()
	v, err := openVault(t.Context(), r.dir, vaultWrite, time.Now, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	other := r.another(v)
	other.cfg.Web = r.cfg.Web
	defer func() {
		if err := errors.Join(other.close(), other.cfg.Audit.close(), v.close()); err != nil {
			t.Error(err)
		}
	}()
	both := func() {
		t.Helper()
		var wg sync.WaitGroup
		for _, b := range []*mcpBridge{r.mcpBridge, other} {
			wg.Go(func() {
				if err := loginCall(b); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	both()
	for n := 1; n <= 5; n++ {
		r.f.expire()
		if both(); r.f.refreshes() != n || r.f.family {
			t.Fatalf("round %d: %d refreshes, ended %v", n, r.f.refreshes(), r.f.family)
		}
	}
	r.f.revoke()
	wantsLogin(t, loginCall(other))
	if _, err := r.login(loginOptions{}); err != nil {
		t.Fatal(err)
	}
	both()
	if out, err := r.logout(t.Context(), "f", ""); err != nil || !out.Had {
		t.Fatalf("logout = %+v, %v", out, err)
	}
	wantsLogin(t, loginCall(other))
	if out, err := r.logout(t.Context(), "f", ""); err != nil || out != (loggedOut{}) {
		t.Errorf("logout again = %+v, %v", out, err)
	}
}

// RFC 7009: a logout is told to the authorization server where it takes one; the tokens are forgotten here in any case.
func TestLogoutRevokes(t *testing.T) {
	t.Parallel()
	var sent url.Values
	status := 200
	revoked := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent, _ = url.ParseQuery(string(body))
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":"server_error","error_description":"not now, %s"}`, sent.Get("token"))
	})
	cases := []struct {
		name string
		set  func(*fakeOAuth)
		note string
	}{
		{"told", func(f *fakeOAuth) { f.AS = map[string]any{"revocation_endpoint": f.URL + "/revoke"} }, ""},
		{"fails", func(f *fakeOAuth) { f.AS, status = map[string]any{"revocation_endpoint": f.URL + "/revoke"}, 500 }, "server_error (not now, [secret:token])"},
		{"takes none", func(*fakeOAuth) {}, "no revocation_endpoint"},
		{"bad address", func(f *fakeOAuth) { f.AS = map[string]any{"revocation_endpoint": "http://as.test/revoke"} }, "no revocation_endpoint"},
		{"other issuer", func(f *fakeOAuth) { f.Issuer = "/tenant" }, "names another one"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			sent = nil
			r := newLoginRig(t).loggedIn()
			refresh := r.f.refresh
			r.f.mu.Lock()
			r.f.Answer = map[string]http.Handler{"/revoke": revoked}
			tc.set(r.f)
			r.f.mu.Unlock()
			out, err := r.logout(t.Context(), "f", "")
			if err != nil || !out.Had || out.Revoked != (tc.note == "") || !strings.Contains(out.Note, tc.note) || strings.Contains(out.Note, "made-up") {
				t.Errorf("logout = %+v, %v, want %q", out, err, tc.note)
			}
			if sent != nil && (sent.Get("token") != refresh || sent.Get("token_type_hint") != "refresh_token" || sent.Get("client_id") != "client-1") || (sent == nil) == (tc.name == "told" || tc.name == "fails") {
				t.Errorf("sent %v", sent)
			}
			if list, err := r.store.secrets(t.Context()); err != nil || len(list) != 0 {
				t.Errorf("secrets = %v, %v", list, err)
			}
		})
	}
}

// OAU-20, W63: a token goes to the address and the issuer that it is of, and to no other.
func TestLoginElsewhere(t *testing.T) {
	t.Parallel()
	t.Run("other address", func(t *testing.T) {
		t.Parallel()
		r := newLoginRig(t).loggedIn()
		second := newFakeOAuth(t)
		e := r.entry()
		e.URL = second.URL + "/mcp"
		if got := r.add(t, e); got.Status != statusLogin {
			t.Errorf("add = %+v", got)
		}
		if slices.ContainsFunc(second.bearers, func(s string) bool { return s != "" }) {
			t.Error("the token went to another origin")
		}
	})
	t.Run("other issuer", func(t *testing.T) {
		t.Parallel()
		r := newLoginRig(t).loggedIn()
		if err := loginCall(r.mcpBridge); err != nil {
			t.Fatal(err)
		}
		second := newFakeOAuth(t)
		r.f.expire()
		r.f.mu.Lock()
		r.f.PRM = map[string]any{"authorization_servers": []string{second.URL}}
		r.f.mu.Unlock()
		wantsLogin(t, loginCall(r.mcpBridge))
		if r.f.refreshes() != 0 || len(second.forms) != 0 {
			t.Errorf("%d refreshes at the old issuer, %d requests at the new", r.f.refreshes(), len(second.forms))
		}
		second.PRM = map[string]any{}
		if _, err := r.login(loginOptions{}); err == nil { // the token of the second is no good at the first, which is as it should be
			t.Error("login succeeded")
		}
		if len(second.clients) != 1 || len(r.f.clients) != 1 {
			t.Errorf("%d registrations at the new issuer, %d at the old", len(second.clients), len(r.f.clients))
		}
	})
	t.Run("other profile", func(t *testing.T) {
		t.Parallel()
		r := newLoginRig(t).loggedIn()
		if err := errors.Join(r.store.createProfile(t.Context(), "work"), r.store.setEnabled(t.Context(), "f", "work", true)); err != nil {
			t.Fatal(err)
		}
		_, err := r.callTool(t.Context(), toolRef{"f", "echo"}, toolCall{Profile: "work"})
		wantsLogin(t, err)
		if err := loginCall(r.mcpBridge); err != nil {
			t.Errorf("own profile: %v", err)
		}
		if _, err := r.login(loginOptions{Profile: "work"}); err != nil {
			t.Fatal(err)
		}
		for _, profile := range []string{profileDefault, "work"} {
			if _, err := r.store.login(t.Context(), profile, "f"); err != nil {
				t.Errorf("login of %s: %v", profile, err)
			}
		}
		if err := r.remove(t.Context(), "f", "--yes"); err != nil {
			t.Fatal(err)
		}
		if list, err := r.store.secrets(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("after remove: %v, %v", list, err)
		}
	})
}

// W67, W68: rights that are missing are named, and the next login asks for them with those it had.
func TestLoginStepUp(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	r.f.Challenge = `Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp", scope="tools"`
	r.loggedIn()
	r.f.mu.Lock()
	r.f.want = "admin"
	r.f.mu.Unlock()
	err := loginCall(r.mcpBridge)
	if wantsLogin(t, err); err == nil || !strings.Contains(err.Error(), "admin") {
		t.Errorf("call = %v", err)
	}
	if n := len(r.f.forms); n != 1 {
		t.Errorf("%d token requests", n)
	}
	if _, err := r.login(loginOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := r.f.grants[1].Get("scope"); got != "tools admin" {
		t.Errorf("the second login asks for %q", got)
	}
	if err := loginCall(r.mcpBridge); err != nil {
		t.Error(err)
	}
}

// The question comes before anything is sent, and a no sends nothing.
func TestLoginAsks(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).added()
	asked := newBridgeRig(t, modePrompt, "n")
	asked.cfg.Vault, asked.cfg.Web = r.cfg.Vault, r.cfg.Web
	before := len(r.f.asked)
	_, err := asked.login(t.Context(), "f", loginOptions{})
	if _, ok := errors.AsType[*refusedError](err); !ok || failure(err).Exit != exitRefused || len(r.f.asked) != before {
		t.Errorf("login = %v, %d requests", err, len(r.f.asked)-before)
	}
	if q := asked.asked.last(t); !strings.Contains(q, `log in at the server "f"`) || !strings.Contains(q, r.f.URL+"/mcp") {
		t.Errorf("asked %s", q)
	}
}

// fakeLoginRacer calls the tool of the server "f" each time a line comes in, and says how it went.
func fakeLoginRacer() {
	err := func() error {
		v, err := openVault(context.Background(), os.Getenv("TAI_HOME"), vaultWrite, time.Now, testKeys())
		if err != nil {
			return err
		}
		plain := func(s string) string { return s }
		b := newMCPBridge(bridgeConfig{
			Vault: func(context.Context) (*vault, error) { return v, nil }, Policy: newPolicy(policyConfig{Mode: modeDanger}),
			Audit:  newAuditLog(auditConfig{Dir: filepath.Join(os.Getenv("TAI_HOME"), "runs"), Origin: "cli", Now: time.Now, Redact: plain}),
			Redact: plain, Env: func(string) (string, bool) { return "", false }, GOOS: runtime.GOOS, Profile: v.currentProfile,
			HTTP: newHTTPClient(httpClientConfig{}), Web: newWebFetcher(webFetcherConfig{}), Taken: noNative, Now: time.Now,
		})
		var line string
		for {
			if _, err := fmt.Scanln(&line); err != nil {
				return errors.Join(b.close(), b.cfg.Audit.close(), v.close())
			}
			if err := loginCall(b); err != nil {
				fmt.Printf("%q\n", err)
			} else {
				fmt.Println("ok")
			}
		}
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// OAU-14: processes that meet the same expired token make one refresh a round between them, at an issuer that ends the login when a refresh token is used
// twice. With TAI_CI there are fifty rounds.
func TestLoginRefreshAcrossProcesses(t *testing.T) {
	t.Parallel()
	processes, rounds := 16, 10
	if os.Getenv("TAI_CI") != "" {
		rounds = 50
	}
	r := newLoginRig(t).loggedIn()
	type racer struct {
		in  io.WriteCloser
		out *bufio.Scanner
	}
	racers := make([]racer, processes)
	for i := range racers {
		cmd := vaultProcess(t, "TAI_TEST_FAKE=login-racer", "TAI_HOME="+r.dir, "GORACE=atexit_sleep_ms=0")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
		racers[i] = racer{in, bufio.NewScanner(out)}
	}
	for round := range rounds {
		if round > 0 { // in the first all connect
			r.f.expire()
		}
		for i := range racers {
			if _, err := io.WriteString(racers[i].in, "go\n"); err != nil {
				t.Fatal(err)
			}
		}
		for i := range racers {
			if !racers[i].out.Scan() || racers[i].out.Text() != "ok" {
				t.Errorf("round %d, process %d: %s", round, i, racers[i].out.Text())
			}
		}
		if n := r.f.refreshes(); n != round || r.f.family {
			t.Fatalf("round %d: %d refreshes, the login ended %v", round, n, r.f.family)
		}
	}
}
