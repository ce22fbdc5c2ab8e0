// This file makes the requests of a public OAuth client: registration (RFC 7591), the authorization address with PKCE (RFC 7636), the judgement
// of what comes back (RFC 9207), code exchange and refresh (RFC 6749), each with the resource it is for (RFC 8707). It keeps nothing, opens no
// browser and asks nobody.
package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	oauthClientName = "tai-mcp"
	oauthLifeMax    = 10 * 365 * 24 * time.Hour // a longer life of a token counts as unknown
	oauthBasic      = "client_secret_basic"     // how a client secret is sent (RFC 7591, section 2)
	oauthPost       = "client_secret_post"
)

// oauthClient is a registration at one issuer. Secret is empty but where the issuer insists on one.
type oauthClient struct {
	ID     string
	Secret secret
	Method string // oauthBasic, oauthPost, or "" for none
}

// oauthTokens is what a token endpoint gave. Refresh may be empty; a zero Expires is unknown.
type oauthTokens struct {
	Access, Refresh secret
	Scope           string
	Expires         time.Time
}

// oauthFault is a refusal by an authorization server (RFC 6749, section 5.2). Its texts are safe to show.
type oauthFault struct {
	What   string // what was asked for
	Status int
	Code   string
	Text   string
}

func (e *oauthFault) Error() string {
	s := "the authorization server refuses " + e.What
	if e.Code != "" {
		s += ": " + e.Code
	} else if e.Status != 0 {
		s += fmt.Sprintf(": HTTP %d", e.Status)
	}
	if e.Text != "" {
		s += " (" + e.Text + ")"
	}
	return s
}

// final reports that the same will be refused again: the grant or the client is gone.
func (e *oauthFault) final() bool {
	return e.Code == "invalid_grant" || e.Code == "invalid_client" || e.Code == "unauthorized_client" || e.Status == http.StatusUnauthorized
}

// newOAuthFault reads a refusal. scrub takes out what was sent.
func newOAuthFault(what string, status int, code, text string, scrub httpScrub) *oauthFault {
	return &oauthFault{what, status, clip(scrub.clean(code), 60), scrub.clean(text)}
}

// register makes tai known as a public client with exactly this redirect address (RFC 7591, section 3).
func (f *oauthFlow) register(ctx context.Context, t oauthTarget, redirect string) (oauthClient, error) {
	if t.Register == "" {
		return oauthClient{}, errorf("authorization server %s: %w", shownPeer(t.Issuer), errNoRegistration)
	}
	body, err := json.Marshal(map[string]any{
		"client_name": oauthClientName, "redirect_uris": []string{redirect}, "grant_types": []string{"authorization_code", "refresh_token"},
		"response_types": []string{"code"}, "token_endpoint_auth_method": "none", "application_type": "native",
	})
	if err != nil {
		return oauthClient{}, err
	}
	u, err := f.address("registration_endpoint", t.Register)
	if err != nil {
		return oauthClient{}, err
	}
	status, answer, err := f.fetch(ctx, http.MethodPost, u, http.Header{"Content-Type": {httpTypeJSON}}, string(body))
	if err != nil {
		return oauthClient{}, err
	}
	var got struct {
		ID       string   `json:"client_id"`
		Secret   string   `json:"client_secret"`
		Method   string   `json:"token_endpoint_auth_method"`
		Redirect []string `json:"redirect_uris"`
		Error    string   `json:"error"`
		Text     string   `json:"error_description"`
	}
	if fault := decodeAnswer(answer, &got); status != http.StatusCreated && status != http.StatusOK || got.Error != "" {
		return oauthClient{}, newOAuthFault("the registration", status, got.Error, got.Text, nil)
	} else if fault != nil {
		return oauthClient{}, errorf("registration: %w", fault)
	}
	c := oauthClient{ID: got.ID}
	switch {
	case got.ID == "" || len(got.ID) > oauthIDMax || strings.ContainsFunc(got.ID, func(r rune) bool { return r < ' ' || r > '~' }):
		return c, newError("registration: the answer holds no usable client_id")
	case len(got.Redirect) > 0 && !slices.Contains(got.Redirect, redirect):
		return c, newError("registration: the authorization server registered another redirect address than the one asked for")
	}
	switch got.Method {
	case "", "none": // a secret is not for us then
	case oauthBasic, oauthPost:
		if c.Method, c.Secret = got.Method, secret(got.Secret); got.Secret == "" || len(got.Secret) > oauthTokenMax {
			return c, newError("registration: the authorization server wants a client secret and gave none that can be used")
		}
	default:
		return c, errorf("registration: the authorization server wants clients to prove themselves by %s, %w", shownPeer(got.Method), errNoProof)
	}
	return c, nil
}

// oauthAttempt is one authorization on its way: the address that a browser is to open, and what an answer must match. accept is safe for
// concurrent use.
type oauthAttempt struct {
	Target   oauthTarget
	Client   oauthClient
	Redirect string
	Address  string
	state    string
	Verifier secret // fmt asks the type of an exported field alone

	mu   sync.Mutex
	used bool
}

var (
	errOAuthStray = errors.New("this answer is not of this login")
	errOAuthUsed  = errors.New("this login has had its answer")
)

// newOAuthAttempt makes the address (RFC 6749, section 4.1.1).
func newOAuthAttempt(t oauthTarget, c oauthClient, redirect string) (*oauthAttempt, error) {
	random := func() string { return base64.RawURLEncoding.EncodeToString(randomBytes(32)) }
	a := &oauthAttempt{Target: t, Client: c, Redirect: redirect, state: random(), Verifier: secret(random())}
	u, err := url.Parse(t.Authorize)
	if err != nil {
		return nil, newError("its authorization_endpoint is no address")
	}
	sum := sha256.Sum256([]byte(a.Verifier.reveal()))
	q := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": c.ID, "redirect_uri": redirect, "state": a.state, "resource": t.Resource,
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256", "scope": t.Scope,
	} {
		if q.Del(name); value != "" {
			q.Set(name, value)
		}
	}
	u.RawQuery = q.Encode()
	a.Address = u.String()
	return a, nil
}

// accept judges what came to the redirect address and gives the code. errOAuthStray and errOAuthUsed leave the login as it was; every other
// error ends it. Of an answer of another issuer nothing is shown (RFC 9207, section 2.4).
func (a *oauthAttempt) accept(q url.Values) (secret, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	state, ok := single(q, "state")
	switch {
	case !ok || subtle.ConstantTimeCompare([]byte(state), []byte(a.state)) != 1:
		return "", errOAuthStray
	case a.used:
		return "", errOAuthUsed
	}
	a.used = true
	iss, ok := single(q, "iss")
	if q.Has("iss") && (!ok || iss != a.Target.Issuer) || !q.Has("iss") && a.Target.NamesItself {
		return "", errorf("the answer in the browser does not come from the authorization server %s; nothing of it was used", shownPeer(a.Target.Issuer))
	}
	if q.Has("error") {
		return "", newOAuthFault("the login", 0, q.Get("error"), q.Get("error_description"), httpScrub(nil).add("state", a.state, false))
	}
	code, ok := single(q, "code")
	if !ok || code == "" || len(code) > oauthTokenMax {
		return "", newError("the answer in the browser holds no code")
	}
	return secret(code), nil
}

// cut reports an answer whose end is missing, as of an address that was copied from two lines of a screen; the whole one may follow.
func (a *oauthAttempt) cut(q url.Values) bool {
	iss := q.Get("iss")
	return a.Target.NamesItself && iss != a.Target.Issuer && strings.HasPrefix(a.Target.Issuer, iss)
}

// single gives a parameter that stands exactly once.
func single(q url.Values, name string) (string, bool) {
	if len(q[name]) != 1 {
		return "", false
	}
	return q[name][0], true
}

// exchange turns a code into tokens.
func (f *oauthFlow) exchange(ctx context.Context, a *oauthAttempt, code secret) (oauthTokens, error) {
	return f.token(ctx, "the code", a.Target, a.Client, url.Values{
		"grant_type": {"authorization_code"}, "code": {code.reveal()}, "redirect_uri": {a.Redirect}, "code_verifier": {a.Verifier.reveal()},
	})
}

// refresh gets new tokens. The scope stays what it was.
func (f *oauthFlow) refresh(ctx context.Context, t oauthTarget, c oauthClient, refresh secret) (oauthTokens, error) {
	return f.token(ctx, "to refresh the token", t, c, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh.reveal()}})
}

// revoke tells the authorization server that a token is not wanted any more (RFC 7009, section 2.1); with a refresh token the login ends.
func (f *oauthFlow) revoke(ctx context.Context, t oauthTarget, c oauthClient, token secret, kind string) error {
	status, answer, scrub, err := f.post(ctx, t.Revoke, c, url.Values{"token": {token.reveal()}, "token_type_hint": {kind}})
	if err != nil || status == http.StatusOK {
		return err
	}
	var got struct {
		Error string `json:"error"`
		Text  string `json:"error_description"`
	}
	_ = decodeAnswer(answer, &got) // the status says enough
	return newOAuthFault("to end the login", status, got.Error, got.Text, scrub)
}

// post sends a form as the client. scrub takes out of texts what was sent.
func (f *oauthFlow) post(ctx context.Context, endpoint string, c oauthClient, form url.Values) (status int, answer []byte, scrub httpScrub, err error) {
	for _, name := range []string{"code", "code_verifier", "refresh_token", "token"} {
		if v := form.Get(name); v != "" {
			scrub = scrub.add(name, v, false)
		}
	}
	form.Set("client_id", c.ID)
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	if s := c.Secret.reveal(); s != "" {
		scrub = scrub.add("client_secret", s, false)
		if c.Method == oauthPost {
			form.Set("client_secret", s)
		} else { // both encoded as in a form (RFC 6749, section 2.3.1)
			basic := base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(c.ID) + ":" + url.QueryEscape(s)))
			scrub = scrub.add("client_secret", basic, false)
			header[headerAuthorize] = []string{"Basic " + basic}
		}
	}
	u, err := f.address("endpoint", endpoint)
	if err != nil {
		return 0, nil, nil, err
	}
	if status, answer, err = f.fetch(ctx, http.MethodPost, u, header, form.Encode()); err != nil {
		err = sendFault(err, scrub)
	}
	return status, answer, scrub, err
}

// token asks the token endpoint. Nothing that is sent stands in an error.
func (f *oauthFlow) token(ctx context.Context, what string, t oauthTarget, c oauthClient, form url.Values) (oauthTokens, error) {
	form.Set("resource", t.Resource)
	status, answer, scrub, err := f.post(ctx, t.Token, c, form)
	if err != nil {
		return oauthTokens{}, err
	}
	var got struct {
		Access  string          `json:"access_token"`
		Refresh string          `json:"refresh_token"`
		Type    string          `json:"token_type"`
		Scope   string          `json:"scope"`
		Expires json.RawMessage `json:"expires_in"`
		Error   string          `json:"error"`
		Text    string          `json:"error_description"`
	}
	if fault := decodeAnswer(answer, &got); status != http.StatusOK && status != http.StatusCreated || got.Error != "" {
		return oauthTokens{}, newOAuthFault(what, status, got.Error, got.Text, scrub)
	} else if fault != nil {
		return oauthTokens{}, errorf("token endpoint: %w", fault)
	}
	switch {
	case got.Type != "" && !strings.EqualFold(got.Type, "bearer"):
		return oauthTokens{}, errorf("token endpoint: it gives tokens of the type %s, not Bearer", shownPeer(got.Type))
	case !usableToken(got.Access) || got.Refresh != "" && !usableToken(got.Refresh):
		return oauthTokens{}, newError("token endpoint: the answer holds no usable token")
	}
	return oauthTokens{secret(got.Access), secret(got.Refresh), oauthScopes(strings.Fields(got.Scope)), expiry(got.Expires, f.now())}, nil
}

// expiry reads expires_in, seconds as a number or as digits in a string; anything else leaves the life of the token unknown (OAU-12).
func expiry(raw json.RawMessage, now time.Time) time.Time {
	s, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || !(s > 0 && s < oauthLifeMax.Seconds()) {
		return time.Time{}
	}
	return now.Add(time.Duration(s * float64(time.Second)))
}
