// This file logs in at MCP servers for a profile and keeps their connections supplied with tokens: one token at its own server alone, one refresh at a
// time across processes. It knows the steps of OAuth by name only; a person is reached through the options of a login.
package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	refreshLease = 45 * time.Second      // the right to refresh ends so long after its holder died
	refreshTime  = 35 * time.Second      // one refresh, the search for the issuer included; with refreshGrace it ends before the right to it does
	refreshGrace = 5 * time.Second       // the answer to a refresh is waited for after its call was given up: it may hold the only token that is still good
	revokeTime   = 10 * time.Second      // telling the authorization server of a logout
	refreshLook  = 25 * time.Millisecond // between two looks at a refresh that another one makes
)

var (
	errNoLogin    = errors.New("the server needs no login: it answers without one")
	errLoginMoved = errors.New("the server was removed or changed during the login, so nothing was stored; log in again")
)

// loginError is a refusal that a login would mend. Narrow: there is one, which does not cover this; Scope names what the server asks for then, if it does.
type loginError struct {
	Server, Scope, Profile string
	Narrow                 bool
	err                    error
}

func (e *loginError) Error() string {
	if e.Narrow {
		return fmt.Sprintf("the login does not cover this (%s asks for scope %q): %v", e.way(), e.Scope, e.err)
	}
	return fmt.Sprintf("the server wants a login (%s): %v", e.way(), e.err)
}

func (e *loginError) way() string { return loginWords(e.Server, e.Profile) + " or mcp_login" }

func (e *loginError) Unwrap() error { return e.err }

// authFault says what a 401 or 403 means for the person. e is the entry as stored.
func (b *mcpBridge) authFault(ctx context.Context, e serverEntry, err error) error {
	he, ok := errors.AsType[*mcpHTTPError](err)
	if !ok || e.Transport != "http" {
		return err
	}
	c := parseChallenge(he.Challenge)
	profile, _ := b.cfg.Profile(ctx) // for the message alone
	narrow := he.Status == 403 && c.Error == "insufficient_scope"
	switch {
	case he.Status != 401 && !narrow:
		return err
	case ownCredential(e):
		return &credentialsError{err}
	case narrow:
		scope := oauthScopes(strings.Fields(c.Scope))
		return joinErrors(&loginError{e.Name, scope, profile, true, err}, b.noteScope(ctx, e.Name, scope))
	}
	return &loginError{Server: e.Name, Profile: profile, err: err}
}

// noteScope keeps what a server asked for, with what it asked for before, so that the next login asks for all of it.
func (b *mcpBridge) noteScope(ctx context.Context, server, scope string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toolStoreTime)
	defer cancel()
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return err
	}
	profile, err := b.cfg.Profile(ctx)
	if err != nil {
		return err
	}
	l, err := v.login(ctx, profile, server)
	if errors.Is(err, errNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if wanted := oauthScopes(strings.Fields(l.Wanted + " " + scope)); wanted != l.Wanted {
		return v.wantScope(ctx, profile, server, wanted)
	}
	return nil
}

// tokenSource gives one connection its token. It is safe for concurrent use.
type tokenSource struct {
	b               *mcpBridge
	server, profile string
	url             *url.URL

	mu   sync.Mutex
	at   vaultStamp
	read bool
	Last secret
}

// tokens makes the source for an expanded entry, nil where none is wanted.
func (b *mcpBridge) tokens(e serverEntry, profile string) tokenGiver {
	u, err := url.Parse(strings.TrimSpace(e.URL))
	if b.cfg.Web == nil || profile == "" || err != nil || ownCredential(e) {
		return nil
	}
	return &tokenSource{b: b, server: e.Name, profile: profile, url: u}
}

// token gives the stored token, "" for none or for one that is not for this address (OAU-20).
func (s *tokenSource) token(ctx context.Context) (secret, error) {
	v, err := s.b.cfg.Vault(ctx)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, err := v.stamp(ctx)
	if err != nil || s.read && s.at == at {
		return s.Last, err
	}
	l, err := s.login(ctx, v)
	if err != nil && !errors.Is(err, errNotFound) {
		return "", err
	}
	if l.Access != s.Last {
		s.b.cfg.Changed() // it may have come from another process, and is masked from now on
	}
	s.at, s.read, s.Last = at, true, l.Access
	return l.Access, nil
}

// login reads the stored login if it is good for this address, else errNotFound.
func (s *tokenSource) login(ctx context.Context, v *vault) (oauthLogin, error) {
	l, err := v.login(ctx, s.profile, s.server)
	if err == nil && !resourceCovers(l.Resource, s.url) {
		return oauthLogin{}, errNotFound
	}
	return l, err
}

// renew gives another token than the one that was refused: one that somebody else has got meanwhile, or a refreshed one. "" means that only a login
// helps.
func (s *tokenSource) renew(ctx context.Context, used secret, challenge []string) (secret, error) {
	v, err := s.b.cfg.Vault(ctx)
	if err != nil {
		return "", err
	}
	id := hex.EncodeToString(randomBytes(8))
	for waits := false; ; waits = true {
		l, err := s.login(ctx, v)
		switch {
		case waits && ctx.Err() != nil:
			return "", errorf("another tai refreshes its token, or died doing so and blocks it for at most %v: %w", refreshLease, context.Cause(ctx))
		case errors.Is(err, errNotFound):
			return "", nil
		case err != nil:
			return "", err
		case l.Access != used:
			return s.took(l.Access), nil
		case l.Refresh == "":
			return "", nil
		}
		got, err := v.leaseRefresh(ctx, s.profile, s.server, id, refreshLease)
		if err != nil {
			return "", err
		}
		if got {
			break
		}
		_ = httpWait(ctx, refreshLook) // the next look tells where the time was over
	}
	fresh, err := s.refresh(ctx, v, used, challenge)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), toolStoreTime)
	defer cancel()
	return fresh, joinErrors(err, v.endRefresh(end, s.profile, s.server, id))
}

// refresh makes the one refresh, with the right to it. The new tokens are stored before they are used (W66).
func (s *tokenSource) refresh(ctx context.Context, v *vault, used secret, challenge []string) (secret, error) {
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	l, err := s.login(ctx, v) // another one may have ended its refresh before this one got the right
	if errors.Is(err, errNotFound) || err == nil && l.Refresh == "" {
		return "", nil
	}
	if err != nil || l.Access != used {
		return s.took(l.Access), err
	}
	flow, err := newOAuthFlow(ctx, s.b.cfg.Web, s.url.String(), s.b.cfg.Now)
	if err != nil {
		return "", err
	}
	target, err := flow.discover(ctx, challenge, l.Issuer)
	if err != nil {
		return "", errorf("its token could not be refreshed: %w", err)
	}
	if !sameIssuer(target.Issuer, l.Issuer) {
		return "", nil // nothing that another issuer gave goes to this one
	}
	target.Resource = l.Resource
	late, end := graceContext(ctx, refreshGrace)
	defer end()
	got, err := flow.refresh(late, target, oauthClient{l.Client, l.Proof, l.Method}, l.Refresh)
	if fault, ok := errors.AsType[*oauthFault](err); ok && fault.final() {
		_, dropErr := v.dropLogin(late, s.profile, s.server, used)
		return "", joinErrors(errorf("its token could not be refreshed: %w", err), dropErr)
	}
	if err != nil {
		return "", errorf("its token could not be refreshed: %w", err)
	}
	l.Access, l.Refresh, l.Expires = got.Access, cmp.Or(got.Refresh, l.Refresh), unixOrZero(got.Expires)
	err = v.putLogin(late, s.profile, s.server, used, l)
	if errors.Is(err, errLoginChanged) { // logged out, or in anew
		return s.token(late)
	}
	if err != nil { // the old ones are used up
		err = errorf("its token was refreshed, but the new one could not be stored, so that only another login helps: %w", err)
	}
	return s.took(l.Access), err
}

// took makes a token known for masking.
func (s *tokenSource) took(t secret) secret {
	s.b.cfg.Changed()
	return t
}

func unixOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// graceContext is ctx that ends only some time after ctx was cancelled. end frees it.
func graceContext(ctx context.Context, grace time.Duration) (late context.Context, end func()) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var mu sync.Mutex
	var timer *time.Timer
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		timer = time.AfterFunc(grace, cancel)
	})
	return late, func() {
		stop()
		mu.Lock()
		defer mu.Unlock()
		if timer != nil {
			timer.Stop()
		}
		cancel()
	}
}

// loginOptions says for whom a login is and how the person is reached.
type loginOptions struct {
	Profile, Parent, Digest, Yes string // as in registerOptions

	Show    func(ctx context.Context, v loginShown) error // tells where to go and opens the browser; called once
	Pasted  func(ctx context.Context) (string, error)     // waits for one typed line; nil: nobody can type
	Waiting func() (done func() bool)                     // as in registerOptions
}

// loginShown is what the person is told before the browser opens. Elsewhere lists origins of endpoints that are not the issuer's own.
type loginShown struct {
	Server, Issuer, Address, Scope string
	Elsewhere                      []string
}

// login asks, logs in at a stored server, verifies that it answers, and stores tokens and tools and enables it for the profile.
func (b *mcpBridge) login(ctx context.Context, server string, o loginOptions) (r registered, err error) {
	row, p, err := b.loginStart(ctx, server, o)
	if err != nil {
		return r, b.cleanError(errorf("log in at %s: %w", quoteClip(server), err))
	}
	err = b.decided(ctx, p.request, deed{Kind: "mcp-login", Subject: server, Parent: o.Parent, Data: serverIdentity(maskedEntry(row.serverEntry))}, func() (string, error) {
		r, err = b.loginRun(ctx, p, o)
		return r.Status, b.cleanError(err)
	})
	if _, refused := errors.AsType[*refusedError](err); err == nil || refused {
		return r, err
	}
	return r, errorf("log in at %s: %w", quoteClip(server), b.cleanError(err))
}

// loginStart checks what can be checked without a request and lays out the question.
func (b *mcpBridge) loginStart(ctx context.Context, server string, o loginOptions) (serverRow, registration, error) {
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return serverRow{}, registration{}, err
	}
	row, err := v.server(ctx, server)
	if errors.Is(err, errNotFound) {
		if err = errServerUnknown; strings.Contains(server, "://") {
			err = &hintedError{err, "tai mcp add " + quoteWord(server) + " adds it; then log in by its name"}
		}
	}
	switch {
	case err != nil:
		return row, registration{}, err
	case row.Transport != "http":
		return row, registration{}, newError("it is a program on this machine (stdio); only servers at an address have logins")
	case ownCredential(row.serverEntry):
		return row, registration{}, &hintedError{newError("its entry sends an Authorization of its own, which no login replaces"), "check your credentials in the entry's headers, or add the server without them"}
	}
	entry := row.serverEntry
	entry.Enabled = nil // a login enables
	p, err := b.prepare(ctx, entry, registerOptions{Profile: o.Profile, Yes: o.Yes})
	if err != nil {
		return row, p, err
	}
	if o.Digest == "" {
		if o.Digest, err = deedDigest("mcp_login", map[string]string{"server": server, "profile": p.profile}); err != nil {
			return row, p, err
		}
	}
	p.request = policyRequest{Tool: "mcp_login", Digest: o.Digest, Title: "log in at the server " + strconv.Quote(server) + " in the browser, for the profile " + strconv.Quote(p.profile) + "?",
		Server: server, Destructive: true, Always: true, Yes: cmp.Or(o.Yes, "--yes"), Lines: []consentLine{{Label: "it is", Text: p.shown, Exact: true}}}
	return row, p, nil
}

// loginRun is the login itself: an anonymous probe, discovery, registration, the browser, the exchange, and a live check with the new token.
func (b *mcpBridge) loginRun(ctx context.Context, p registration, o loginOptions) (registered, error) {
	challenge, err := b.probe(ctx, p.expanded)
	if err != nil {
		return registered{}, err
	}
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return registered{}, err
	}
	old, err := v.login(ctx, p.profile, p.entry.Name)
	if err != nil && !errors.Is(err, errNotFound) && !errors.Is(err, errSealBroken) {
		return registered{}, err
	}
	flow, err := newOAuthFlow(ctx, b.cfg.Web, p.expanded.URL, b.cfg.Now)
	if err != nil {
		return registered{}, err
	}
	target, err := flow.discover(ctx, challenge, old.Issuer)
	if err == nil && target.Register == "" {
		err = errorf("authorization server %s: %w", shownPeer(target.Issuer), errNoRegistration)
	}
	if err != nil {
		return registered{}, headerRecipe(p.entry, err)
	}
	if sameIssuer(old.Issuer, target.Issuer) && old.Wanted != "" {
		target.Scope = oauthScopes(strings.Fields(target.Scope + " " + old.Scope + " " + old.Wanted))
	}
	l, err := b.authorize(ctx, flow, target, p, o)
	if err != nil {
		return registered{}, err
	}
	if o.Waiting != nil {
		defer o.Waiting()()
	}
	return b.loggedIn(ctx, v, p, l)
}

// probe asks the server for its tools without a token and gives the challenges of its 401.
func (b *mcpBridge) probe(ctx context.Context, expanded serverEntry) ([]string, error) {
	_, err := b.look(ctx, expanded, nil)
	he, ok := errors.AsType[*mcpHTTPError](err)
	switch {
	case err == nil:
		return nil, errNoLogin
	case !ok || he.Status != 401:
		return nil, err
	}
	return he.Challenge, nil
}

// headerRecipe adds the way that is left where an authorization server takes no client like tai: a token by hand, sent by the entry.
func headerRecipe(e serverEntry, err error) error {
	fault, refused := errors.AsType[*oauthFault](err) // of the registration: some let in only the clients that they know
	if (!refused || fault.Status >= 500) && !errors.Is(err, errNoRegistration) && !errors.Is(err, errNoMetadata) && !errors.Is(err, errNoS256) && !errors.Is(err, errNoProof) {
		return err
	}
	name := strings.ToUpper(strings.Map(func(c rune) rune {
		if c < 0x80 && validSecretName("_"+string(c)) == nil && c != '.' && c != '-' {
			return c
		}
		return '_'
	}, e.Name)) + "_TOKEN"
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return &hintedError{err, fmt.Sprintf("make a token at the provider by hand; tai secret set %s keeps it, then tai mcp add %s %s --header 'Authorization: Bearer ${%s}'",
		name, quoteWord(e.Name), quoteWord(e.URL), name)}
}

// authorize takes the person through the browser and gives the login that came of it, not yet stored. The listener is bound before the redirect address
// is registered, since that must match it exactly.
func (b *mcpBridge) authorize(ctx context.Context, flow *oauthFlow, target oauthTarget, p registration, o loginOptions) (l oauthLogin, err error) {
	back, err := listenCallback()
	if err != nil {
		return l, err
	}
	defer func() { err = joinErrors(err, back.close()) }()
	client, err := flow.register(ctx, target, back.redirect())
	if err != nil {
		return l, headerRecipe(p.entry, err)
	}
	attempt, err := newOAuthAttempt(target, client, back.redirect())
	if err != nil {
		return l, err
	}
	wait, cancel := context.WithTimeoutCause(ctx, mcpOauthTimeout, errorf("no answer from the browser within %v (MCP_OAUTH_TIMEOUT)", mcpOauthTimeout))
	defer cancel()
	if o.Show != nil {
		if err := o.Show(wait, loginShown{p.entry.Name, target.Issuer, attempt.Address, target.Scope, target.elsewhere()}); err != nil {
			return l, err
		}
	}
	code, err := back.wait(wait, attempt, o.Pasted)
	if err != nil {
		return l, err
	}
	got, err := flow.exchange(ctx, attempt, code)
	if err != nil {
		return l, err
	}
	return oauthLogin{oauthMeta{Client: client.ID, Method: client.Method, Issuer: target.Issuer, Resource: target.Resource, Server: maskedEntry(p.entry).URL,
		Scope: cmp.Or(got.Scope, target.Scope), Expires: unixOrZero(got.Expires)}, got.Access, got.Refresh, client.Secret}, nil
}

// fixedToken is a token that is not stored yet.
type fixedToken secret

func (t fixedToken) token(context.Context) (secret, error) { return secret(t), nil }

func (t fixedToken) renew(context.Context, secret, []string) (secret, error) { return "", nil }

// loggedIn verifies that the server answers with the new token, and only then stores it.
func (b *mcpBridge) loggedIn(ctx context.Context, v *vault, p registration, l oauthLogin) (r registered, err error) {
	own := newRedactor([]namedSecret{{"token", l.Access}, {"token", l.Refresh}, {"client_secret", l.Proof}})
	list, err := b.look(ctx, p.expanded, fixedToken(l.Access))
	if err != nil {
		return r, maskError(errorf("the login succeeded, but the server does not answer with its token: %w", err), own.text)
	}
	if row, err := v.server(ctx, p.entry.Name); err != nil && !errors.Is(err, errNotFound) {
		return r, err
	} else if err != nil || !sameEntry(row.serverEntry, p.entry) || !slices.Equal(row.Allow, p.entry.Allow) || !slices.Equal(row.Deny, p.entry.Deny) {
		return r, errLoginMoved
	}
	if err := v.putLogin(ctx, p.profile, p.entry.Name, "", l); err != nil {
		return r, err
	}
	b.cfg.Changed()
	return b.storeFound(ctx, p, list, registered{Name: p.entry.Name, Profile: p.profile, Status: statusEnabled})
}

// loggedOut is what came of a logout. Note says what the authorization server made of it where it was not told, or did not take it.
type loggedOut struct {
	Had     bool // there were tokens
	Revoked bool // the authorization server was told, and took it
	Note    string
}

// logout forgets the tokens of a profile, "" being the current one, at a server, and tells the authorization server. The server stays as it is.
func (b *mcpBridge) logout(ctx context.Context, server, profile string) (out loggedOut, err error) {
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return out, err
	}
	row, err := v.server(ctx, server)
	if errors.Is(err, errNotFound) {
		return out, errorf("%w as %s", errServerUnknown, quoteClip(server))
	} else if err != nil && !errors.Is(err, errSealBroken) {
		return out, err
	}
	if profile == "" {
		if profile, err = b.cfg.Profile(ctx); err != nil {
			return out, err
		}
	}
	err = b.cfg.Audit.perform(deed{Kind: "mcp-logout", Subject: server}, func() (string, error) { return "", nil }, func() (string, error) {
		l, readErr := v.login(ctx, profile, server)
		if out.Had, err = v.dropLogin(ctx, profile, server, ""); err != nil {
			return "", err
		}
		b.cfg.Changed()
		if readErr == nil {
			err = b.revoke(ctx, row.serverEntry, l)
		} else if out.Had {
			err = readErr
		}
		if out.Revoked = out.Had && err == nil; err != nil {
			out.Note = "the tokens are forgotten here, but the authorization server still takes them: " + b.cfg.Redact(err.Error())
		}
		return "", b.forget(server)
	})
	return out, err
}

// revoke tells the issuer of a login that it has ended.
func (b *mcpBridge) revoke(ctx context.Context, e serverEntry, l oauthLogin) error {
	ctx, cancel := context.WithTimeout(ctx, revokeTime)
	defer cancel()
	expanded, err := b.expand(ctx, e)
	if err != nil {
		return err
	}
	if u, err := url.Parse(expanded.URL); err != nil || !resourceCovers(l.Resource, u) {
		return newError("the server has another address by now")
	}
	flow, err := newOAuthFlow(ctx, b.cfg.Web, expanded.URL, b.cfg.Now)
	if err != nil {
		return err
	}
	target, err := flow.discover(ctx, nil, l.Issuer)
	switch {
	case err != nil:
		return err
	case !sameIssuer(target.Issuer, l.Issuer):
		return newError("the server names another one by now")
	case target.Revoke == "":
		return newError("it takes no word of a logout (no revocation_endpoint)")
	}
	token, kind := l.Refresh, "refresh_token"
	if token == "" {
		token, kind = l.Access, "access_token"
	}
	return flow.revoke(ctx, target, oauthClient{l.Client, l.Proof, l.Method}, token, kind)
}
