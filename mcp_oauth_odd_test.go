package main

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// What is posted, codes, verifiers and tokens among it, goes to the one address that the document names: no redirect is followed (OAU-18's sibling).
func TestOAuthPostStays(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, place := range []string{"/elsewhere", "https://evil.test/"} {
			f := newFakeOAuth(t)
			flow, a, code := oauthTestCode(t, f, oauthClient{ID: "client-1"})
			away := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", place)
				w.WriteHeader(status)
			})
			f.Answer = map[string]http.Handler{"/token": away, "/register": away}
			_, err := flow.exchange(t.Context(), a, code)
			_, err2 := flow.register(t.Context(), a.Target, "http://127.0.0.1:1/callback")
			for _, err := range []error{err, err2} {
				if err == nil || !strings.Contains(err.Error(), "not sent elsewhere") || strings.Contains(err.Error(), "made-up") {
					t.Errorf("%d to %s: %v", status, place, err)
				}
			}
			if slices.ContainsFunc(f.paths(), func(p string) bool { return strings.HasSuffix(p, "/elsewhere") }) {
				t.Errorf("%d: it was followed: %q", status, f.paths())
			}
		}
	}
}

// A byte order mark, which some editors put first, makes no document of another; members of the wrong kind do.
func TestOAuthDocumentForms(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, before, issuer, fault string }{
		{"byte order mark", charsetBOM, `"ORIGIN"`, ""},
		{"issuer a number", "", `7`, "no description"},
		{"issuer null", "", `null`, "no description"},
		{"issuer twice", "", `"ORIGIN","issuer":"https://evil.test"`, "no description"},
	} {
		f := newFakeOAuth(t)
		f.Answer = map[string]http.Handler{"/.well-known/oauth-authorization-server": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte(strings.ReplaceAll(tc.before+`{"issuer":`+tc.issuer+`,"authorization_endpoint":"ORIGIN/a","token_endpoint":"ORIGIN/t","code_challenge_methods_supported":["S256"]}`, "ORIGIN", f.URL)))
		})}
		target, err := oauthTestFlow(t, f.URL+"/mcp", nil).discover(t.Context(), nil, "")
		if tc.fault == "" && (err != nil || target.Token != f.URL+"/t") || tc.fault != "" && (err == nil || !strings.Contains(err.Error(), tc.fault)) {
			t.Errorf("%s: %+v, %v, want %q", tc.name, target, err, tc.fault)
		}
	}
}

// W57: a server that names itself no other way is the resource without query and fragment, which may hold what only the server is to know.
func TestOAuthResourceName(t *testing.T) {
	t.Parallel()
	for _, doc := range []bool{true, false} {
		f := newFakeOAuth(t)
		if f.PRM = map[string]any{"resource": nil}; !doc {
			gone := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) })
			f.Answer = map[string]http.Handler{"/.well-known/oauth-protected-resource/mcp": gone}
		}
		target, err := oauthTestFlow(t, f.URL+"/mcp?key=made-up#x", nil).discover(t.Context(), nil, "")
		if err != nil || target.Resource != f.URL+"/mcp" {
			t.Errorf("with a document %t: resource %q, %v", doc, target.Resource, err)
		}
	}
}

// W65: an address that a reference completes with a secret leaves none of it in the vault's readable columns, the logs or the browser's address.
func TestLoginSecretAddress(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	r.env["KEY"] = "query-key-made-up"
	r.f.PRM = map[string]any{"resource": nil}
	e := r.entry()
	e.URL += "?key=${KEY}"
	r.add(t, e)
	if got, err := r.login(loginOptions{}); err != nil || got.Status != statusEnabled {
		t.Fatalf("login = %+v, %v", got, err)
	}
	if err := loginCall(r.mcpBridge); err != nil {
		t.Error(err)
	}
	r.f.expire()
	if err := loginCall(r.mcpBridge); err != nil || r.f.refreshes() != 1 {
		t.Errorf("after the token ran out: %v, %d refreshes", err, r.f.refreshes())
	}
	if got := r.f.grants[0].Encode(); strings.Contains(got, "made-up") {
		t.Errorf("the browser was sent to %s", got)
	}
	if err := r.cfg.Audit.sync(); err != nil {
		t.Fatal(err)
	}
	nothingHolds(t, r.dir, "query-key-made-up")
}

// A server that goes or becomes another while its login is on the way is not brought back, and gets no token.
func TestLoginMeanwhile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *loginRig) error{
		"another list of tools": func(r *loginRig) error {
			e := r.entry()
			e.Deny = []string{"echo"}
			return r.store.putServer(context.Background(), e, profileDefault, false, nil, mcpMaxServers)
		},
		"removed": func(r *loginRig) error { return r.store.removeServer(context.Background(), "f") },
		"another address": func(r *loginRig) error {
			e := r.entry()
			e.URL = "https://other.test/mcp"
			return r.store.putServer(context.Background(), e, profileDefault, false, nil, mcpMaxServers)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newLoginRig(t).added()
			_, err := r.login(loginOptions{Show: func(ctx context.Context, v loginShown) error {
				if err := change(r); err != nil {
					return err
				}
				go r.browse(ctx, v)
				return nil
			}})
			if !errors.Is(err, errLoginMoved) {
				t.Errorf("login = %v", err)
			}
			row, err := r.store.server(t.Context(), "f")
			if name == "removed" && !errors.Is(err, errNotFound) || name != "removed" && (err != nil || row.URL == r.entry().URL && len(row.Deny) == 0) {
				t.Errorf("stored: %+v, %v", row.serverEntry, err)
			}
			if list, err := r.store.secrets(t.Context()); err != nil || len(list) != 0 {
				t.Errorf("secrets = %v, %v", list, err)
			}
		})
	}
}

// W66: where the new tokens cannot be stored, the error says that the old ones are used up; nothing of them is shown.
func TestLoginRefreshUnstored(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).loggedIn()
	if err := loginCall(r.mcpBridge); err != nil {
		t.Fatal(err)
	}
	err := r.store.withTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `CREATE TRIGGER full BEFORE INSERT ON secrets BEGIN SELECT RAISE(ABORT, 'disk is full'); END`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r.f.expire()
	err = loginCall(r.mcpBridge)
	wantsLogin(t, err)
	if err == nil || !strings.Contains(err.Error(), "could not be stored") || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("call = %v", err)
	}
}

// OAU-14: who waits for a refresh that another run died in is told what for; with the end of the right it goes on.
func TestLoginRefreshWaits(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).loggedIn()
	if err := loginCall(r.mcpBridge); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if got, err := r.store.leaseRefresh(t.Context(), profileDefault, "f", "dead", refreshLease); err != nil || !got {
		t.Fatal(got, err)
	}
	r.f.expire()
	ctx, cancel := context.WithTimeout(t.Context(), 40*refreshLook)
	defer cancel()
	if _, err := r.callTool(ctx, toolRef{"f", "echo"}, toolCall{}); err == nil || !strings.Contains(err.Error(), "another tai refreshes its token") || !strings.Contains(err.Error(), refreshLease.String()) {
		t.Errorf("call = %v", err)
	}
	r.store.now = func() time.Time { return now.Add(refreshLease + time.Second) }
	if err := loginCall(r.mcpBridge); err != nil || r.f.refreshes() != 1 {
		t.Errorf("after its time: %v, %d refreshes", err, r.f.refreshes())
	}
}

// W63, W68: what one issuer asked for in addition is not asked of another one.
func TestLoginOtherIssuer(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).loggedIn()
	if err := r.store.wantScope(t.Context(), profileDefault, "f", "deep"); err != nil {
		t.Fatal(err)
	}
	r.f.mu.Lock()
	r.f.Issuer = "/tenant"
	r.f.mu.Unlock()
	if _, err := r.login(loginOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := r.f.grants[1].Get("scope"); got != "tools more" || len(r.f.clients) != 2 {
		t.Errorf("asked for %q, %d registrations", got, len(r.f.clients))
	}
}

// W68: what was asked for step by step is asked for together, with what the login had.
func TestLoginStepUpUnion(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	r.f.Challenge = `Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp", scope="tools read"`
	r.loggedIn()
	r.f.mu.Lock()
	r.f.Challenge = `Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp", scope="tools"`
	r.f.mu.Unlock()
	for _, want := range []string{"admin", "audit"} {
		r.f.mu.Lock()
		r.f.want = want
		r.f.mu.Unlock()
		wantsLogin(t, loginCall(r.mcpBridge))
	}
	r.f.mu.Lock()
	r.f.want = ""
	r.f.mu.Unlock()
	r.f.expire() // a refresh forgets nothing of it
	if err := loginCall(r.mcpBridge); err != nil || r.f.refreshes() != 1 {
		t.Errorf("call = %v, %d refreshes", err, r.f.refreshes())
	}
	if _, err := r.login(loginOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := r.f.grants[1].Get("scope"); got != "tools read admin audit" {
		t.Errorf("the second login asks for %q", got)
	}
}

// W65: a token counts as put to use, and is masked from then on, as soon as it is read or got.
func TestLoginTokensTold(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).loggedIn()
	told := 0
	r.cfg.Changed = func() { told++ }
	for _, tc := range []struct {
		name string
		do   func()
		min  int
	}{
		{"first call", func() {}, 1},
		{"refresh", r.f.expire, 1},
	} {
		tc.do()
		told = 0
		if err := loginCall(r.mcpBridge); err != nil || told < tc.min {
			t.Errorf("%s: told %d times, %v", tc.name, told, err)
		}
	}
	other := r.another(r.store)
	other.cfg.Web = r.cfg.Web
	defer func() {
		if err := errors.Join(other.close(), other.cfg.Audit.close()); err != nil {
			t.Error(err)
		}
	}()
	r.f.expire()
	if err := loginCall(other); err != nil {
		t.Fatal(err)
	}
	told = 0
	if err := loginCall(r.mcpBridge); err != nil || told == 0 {
		t.Errorf("after a refresh elsewhere: told %d times, %v", told, err)
	}
}

// W65: a server that says the new tokens back, before they are stored, has none of them in the error.
func TestLoginEcho(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).added()
	r.f.Answer = map[string]http.Handler{"/mcp": http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(401)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"bad: ` + r.f.access + ` ` + r.f.refresh + `"}}`))
	})}
	_, err := r.login(loginOptions{})
	if err == nil || !strings.Contains(err.Error(), "bad: ") || strings.Contains(err.Error(), "made-up") {
		t.Errorf("login = %v", err)
	}
}

// A profile that is deleted while a login for it is on the way gets no token.
func TestLoginProfileGone(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).added()
	if err := r.store.createProfile(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	_, err := r.login(loginOptions{Profile: "guest", Show: func(ctx context.Context, v loginShown) error {
		if err := r.store.deleteProfile(ctx, "guest"); err != nil {
			return err
		}
		go r.browse(ctx, v)
		return nil
	}})
	if !errors.Is(err, errNotFound) || !strings.Contains(err.Error(), `profile "guest"`) {
		t.Errorf("login = %v", err)
	}
	if list, err := r.store.secrets(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("secrets = %v, %v", list, err)
	}
}

// F14, OAU-14: what a refresh brings after another login took its place, or after a logout, is not stored.
func TestLoginRefreshOvertaken(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ gone, refused bool }{{true, false}, {false, false}, {false, true}} {
		gone := tc.gone
		r := newLoginRig(t).loggedIn()
		if err := loginCall(r.mcpBridge); err != nil {
			t.Fatal(err)
		}
		l, err := r.store.login(t.Context(), profileDefault, "f")
		if err != nil {
			t.Fatal(err)
		}
		r.f.expire()
		r.f.mu.Lock()
		r.f.gate, r.f.atGate = make(chan struct{}), make(chan struct{})
		r.f.mu.Unlock()
		over := make(chan error)
		go func() { over <- loginCall(r.mcpBridge) }()
		<-r.f.atGate
		if gone {
			_, err = r.store.dropLogin(t.Context(), profileDefault, "f", "")
		} else {
			l.Access, l.Refresh = "newer-made-up", "newer-refresh-made-up"
			err = r.store.putLogin(t.Context(), profileDefault, "f", "", l)
		}
		if err != nil {
			t.Error(err)
		}
		if tc.refused {
			r.f.revoke()
		}
		close(r.f.gate)
		wantsLogin(t, <-over)
		now, err := r.store.login(t.Context(), profileDefault, "f")
		if gone && !errors.Is(err, errNotFound) || !gone && (err != nil || now.Access != l.Access || now.Refresh != l.Refresh) {
			t.Errorf("gone %t: stored %t, %v", gone, now.Access != "", err)
		}
	}
}

// W71: what a program on this machine says is never taken for a wish for a login.
func TestLoginNotForPrograms(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t)
	err := error(&mcpHTTPError{Status: 401, Challenge: []string{"Bearer"}})
	if got := r.authFault(t.Context(), serverEntry{Name: "f", Transport: "stdio", Command: "x"}, err); got != err {
		t.Errorf("authFault = %v", got)
	}
}

// F14, OAU-14: who comes late with a token that is no longer the stored one gets the stored one, without a refresh and without waiting for one.
func TestLoginRefreshLate(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t).loggedIn()
	s := r.tokens(r.entry(), profileDefault).(*tokenSource)
	if got, err := s.refresh(t.Context(), r.store, "stale", nil); err != nil || got.reveal() != r.f.access {
		t.Errorf("refresh: %v", err)
	}
	if _, err := r.store.leaseRefresh(t.Context(), profileDefault, "f", "other", refreshLease); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if got, err := s.renew(ctx, "stale", nil); err != nil || got.reveal() != r.f.access || r.f.refreshes() != 0 {
		t.Errorf("renew: %v, %d refreshes", err, r.f.refreshes())
	}
}

// OAU-15, OAU-18: a client secret that comes back in a refusal, as sent or as it stands in the header, is not shown.
func TestOAuthEchoSecret(t *testing.T) {
	t.Parallel()
	for _, method := range []string{oauthBasic, oauthPost} {
		f := newFakeOAuth(t)
		flow, a, code := oauthTestCode(t, f, oauthClient{ID: "client-1", Method: method, Secret: "hush-hush-hush"})
		sent := ""
		f.Answer = map[string]http.Handler{"/token": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent = r.FormValue("client_secret") + strings.TrimPrefix(r.Header.Get("Authorization"), "Basic ")
			w.WriteHeader(401)
			w.Write([]byte(`{"error":"invalid_client","error_description":"not good: ` + sent + `"}`))
		})}
		if _, err := flow.exchange(t.Context(), a, code); err == nil || sent == "" || !strings.Contains(err.Error(), "not good") || strings.Contains(err.Error(), sent) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// OAU-20: of a login that was made for another address, or for an entry that has got credentials of its own since, nothing is sent.
func TestLoginEntryChanged(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		r := newLoginRig(t).loggedIn()
		f, e := r.f, r.entry()
		if e.Headers = map[string]string{"Authorization": "Bearer own-made-up"}; !own {
			f = newFakeOAuth(t)
			f.AS = map[string]any{"revocation_endpoint": f.URL + "/token"}
			e.Headers, e.URL = nil, f.URL+"/mcp"
		}
		if err := r.store.putServer(t.Context(), e, profileDefault, true, nil, mcpMaxServers); err != nil {
			t.Fatal(err)
		}
		before := len(f.bearers)
		if err := loginCall(r.mcpBridge); err == nil {
			t.Error("the call succeeded")
		}
		for _, got := range f.bearers[before:] {
			if got != strings.TrimPrefix(e.Headers["Authorization"], "Bearer ") {
				t.Errorf("own %t: the token %q was sent", own, got)
			}
		}
		if len(f.bearers) == before {
			t.Errorf("own %t: nothing was sent", own)
		}
		if own {
			continue
		}
		out, err := r.logout(t.Context(), "f", "")
		if err != nil || !out.Had || out.Revoked || !strings.Contains(out.Note, "another address") || len(f.forms) != 0 {
			t.Errorf("logout = %+v, %v, %d forms", out, err, len(f.forms))
		}
	}
}
