// This file finds the authorization server of an MCP server (MCP 2025-11-25, Authorization; RFC 9728, RFC 8414, OpenID Connect Discovery 1.0).
// Every address in these documents is a peer's word and is checked before it is used. It registers nothing and holds no token.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	oauthBodyMax  = 256 << 10        // bytes of one document or answer
	oauthTime     = 20 * time.Second // one request, redirects included
	oauthScopeMax = 4 << 10          // bytes of scopes that are asked for
	oauthIDMax    = 4 << 10          // bytes of a client id
)

var (
	errNoRegistration = errors.New("it registers no clients by itself (no registration_endpoint), and tai has none registered there")
	errNoS256         = errors.New("does not say that it takes S256 challenges (code_challenge_methods_supported); they are required")
	errNoProof        = errors.New("which tai does not do")
	errNoMetadata     = errors.New("no description of an authorization server was found")
)

// oauthFlow makes the requests of one login or one refresh. Server is the MCP server's address. It is for one goroutine.
type oauthFlow struct {
	web    *webFetcher
	server *url.URL
	reach  netReach // where the MCP server lies; nothing else than that and the public internet is called
	now    func() time.Time
}

// oauthTarget is an authorization server that fits. Issuer is as it writes itself; Resource is sent with every request (RFC 8707).
type oauthTarget struct {
	Resource, Issuer           string
	Authorize, Token, Register string
	Revoke                     string // "" for none (RFC 7009)
	Scope                      string // to ask for, "" for none
	NamesItself                bool   // its answers carry iss (RFC 9207)
}

// newOAuthFlow looks up where the server lies, so that its documents can lead no further.
func newOAuthFlow(ctx context.Context, web *webFetcher, server string, now func() time.Time) (*oauthFlow, error) {
	u, err := parseWebURL(server)
	if err != nil {
		return nil, errorf("the server's address %w", err)
	}
	if u.Scheme == "http" && !isLoopbackHost(u.Hostname()) {
		return nil, newError("its token would cross the network unencrypted; a login needs an https address")
	}
	f := &oauthFlow{web: web, server: u, reach: hostReach(u.Hostname()), now: now}
	if f.reach == reachPublic {
		// One that is not known here, as behind a proxy, counts as public.
		addrs, _ := web.lookup(ctx, u.Hostname(), reachMetadata)
		for _, a := range addrs {
			f.reach = max(f.reach, addrReach(a))
		}
	}
	f.reach = min(f.reach, reachPrivate)
	return f, nil
}

// address checks an address of the protocol: https, or http where it and the MCP server are on this machine, and no nearer network than
// the MCP server's own (OAU-01, OAU-03, OAU-05).
func (f *oauthFlow) address(what, s string) (*url.URL, error) {
	u, err := parseWebURL(s)
	if err != nil {
		return nil, errorf("its %s %w", what, err)
	}
	if err := f.near(u, hostReach(u.Hostname())); err != nil {
		return nil, errorf("its %s %s %w", what, shownURL(u), err)
	}
	return u, nil
}

// near says why an address is out of bounds.
func (f *oauthFlow) near(u *url.URL, reach netReach) error {
	if u.Scheme != "https" && (reach != reachLoopback || f.reach != reachLoopback) {
		return newError("is refused: https is required, but where all is on this machine")
	}
	if reach != reachPublic && reach != f.reach {
		return errorf("is refused: it is %s, and the MCP server is not there", reach)
	}
	return nil
}

// fetch makes one request and reads its answer. Only a GET follows redirects.
func (f *oauthFlow) fetch(ctx context.Context, method string, u *url.URL, header http.Header, body string) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, oauthTime)
	defer cancel()
	header["Accept"], header["User-Agent"] = []string{httpTypeJSON}, []string{"tai"}
	header["Mcp-Protocol-Version"] = []string{mcpProtocolVersion}
	a, err := f.web.fetch(ctx, webCall{Method: method, URL: u, Header: header, Body: body, Reach: f.reach, Kept: []string{"Accept", "User-Agent"},
		Stay: method != http.MethodGet, Judge: func(next *url.URL, reach netReach) string {
			if err := f.near(next, reach); err != nil {
				return err.Error()
			}
			return ""
		}})
	if err != nil {
		return 0, nil, err
	}
	defer a.Body.Close()
	if a.Stopped != "" {
		return 0, nil, errorf("%s redirects to %s: %s", shownURL(a.URL), shownURL(a.Next), a.Stopped)
	}
	r, err := decodedBody(a.Response)
	if err == nil {
		answer, err = readBody(r, -1, oauthBodyMax, nil)
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, nil, errorf("read the answer of %s: %w", shownURL(u), err)
	}
	return a.StatusCode, answer, nil
}

// document reads a JSON document into doc; found is false where there is none: a 4xx, or a page that is no JSON object.
func (f *oauthFlow) document(ctx context.Context, u *url.URL, doc any) (found bool, err error) {
	status, body, err := f.fetch(ctx, http.MethodGet, u, http.Header{}, "")
	switch {
	case err != nil:
		return false, err
	case status >= 400 && status < 500:
		return false, nil
	case status != http.StatusOK:
		return false, errorf("%s answers HTTP %d", shownURL(u), status)
	}
	return decodeAnswer(body, doc) == nil, nil
}

// decodeAnswer reads an answer of an authorization server. A byte order mark before it is passed over (RFC 8259, section 8.1). Its errors quote nothing of it.
func decodeAnswer(b []byte, into any) error {
	b = bytes.TrimPrefix(b, []byte(charsetBOM))
	if checkJSON(b) != nil || json.Unmarshal(b, into) != nil {
		return newError("the answer is not in the form that the protocol says")
	}
	return nil
}

// resourceMetadata is the document of a protected resource (RFC 9728, section 2).
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// issuerMetadata is the document of an authorization server (RFC 8414, section 2).
type issuerMetadata struct {
	Issuer      string   `json:"issuer"`
	Authorize   string   `json:"authorization_endpoint"`
	Token       string   `json:"token_endpoint"`
	Register    string   `json:"registration_endpoint"`
	Revoke      string   `json:"revocation_endpoint"`
	Challenges  []string `json:"code_challenge_methods_supported"`
	NamesItself bool     `json:"authorization_response_iss_parameter_supported"`
}

// discover finds the authorization server: by the challenge's resource_metadata, else by the well-known places of the MCP server, else, as
// servers of 2025-03-26 have it, at the server's own origin. prefer is the issuer that a client is registered with, if it is still named.
func (f *oauthFlow) discover(ctx context.Context, challenge []string, prefer string) (oauthTarget, error) {
	c := parseChallenge(challenge)
	doc, err := f.resource(ctx, c.Metadata)
	if err != nil {
		return oauthTarget{}, err
	}
	t := oauthTarget{Resource: doc.Resource, Issuer: doc.Servers[0]}
	for _, s := range doc.Servers {
		if sameIssuer(s, prefer) {
			t.Issuer = s
		}
	}
	if t.Scope = oauthScopes(strings.Fields(c.Scope)); t.Scope == "" {
		t.Scope = oauthScopes(doc.Scopes)
	}
	return t, f.issuer(ctx, &t)
}

// resource reads the document of the protected resource and holds it against the server's address.
func (f *oauthFlow) resource(ctx context.Context, named string) (resourceMetadata, error) {
	var doc resourceMetadata
	if named != "" {
		u, err := f.address("resource_metadata", named)
		if err != nil {
			return doc, err
		}
		found, err := f.document(ctx, u, &doc)
		if err != nil {
			return doc, err
		}
		if !found {
			return doc, errorf("its resource_metadata %s is no document", shownURL(u))
		}
		return doc, f.checkResource(&doc)
	}
	path := strings.TrimSuffix(f.server.EscapedPath(), "/")
	for _, p := range slices.Compact([]string{path, ""}) {
		var found bool
		u, err := url.Parse(urlOrigin(f.server) + "/.well-known/oauth-protected-resource" + p)
		if err == nil {
			found, err = f.document(ctx, u, &doc)
		}
		if err != nil {
			return doc, err
		}
		if found {
			return doc, f.checkResource(&doc)
		}
		doc = resourceMetadata{}
	}
	return resourceMetadata{Resource: f.resourceName(), Servers: []string{urlOrigin(f.server)}}, nil
}

// resourceName is the server's address as the resource that it names no other way (MCP 2025-11-25, Canonical Server URI). The query is left out (RFC 8707,
// section 2): it may hold what only the server is to know, and the name goes through the browser.
func (f *oauthFlow) resourceName() string {
	if path := f.server.EscapedPath(); path != "/" {
		return urlOrigin(f.server) + path
	}
	return urlOrigin(f.server)
}

// checkResource refuses a document that speaks of another server (OAU-04, RFC 9728, section 3.3) or names no authorization server.
func (f *oauthFlow) checkResource(doc *resourceMetadata) error {
	if len(doc.Servers) == 0 {
		return newError("its protected-resource document names no authorization server")
	}
	doc.Resource = cmp.Or(doc.Resource, f.resourceName())
	if !resourceCovers(doc.Resource, f.server) {
		return errorf("its protected-resource document is about another server: %s", shownPeer(doc.Resource))
	}
	return nil
}

// resourceCovers reports whether a resource stands for an address: the same but for a slash at the end, or the same origin with a path that
// is a part of it, segment by segment.
func resourceCovers(resource string, u *url.URL) bool {
	r, err := url.Parse(resource)
	if err != nil || r.Fragment != "" || r.User != nil || urlOrigin(r) != urlOrigin(u) || r.RawQuery != "" && r.RawQuery != u.RawQuery {
		return false
	}
	have, want := strings.TrimSuffix(r.EscapedPath(), "/"), strings.TrimSuffix(u.EscapedPath(), "/")
	return have == want || strings.HasPrefix(want, have+"/")
}

// issuer reads the document of t.Issuer from its well-known places and fills in the rest of t.
func (f *oauthFlow) issuer(ctx context.Context, t *oauthTarget) error {
	u, err := f.address("authorization server", t.Issuer)
	if err != nil {
		return err
	}
	if u.RawQuery != "" || strings.Contains(t.Issuer, "#") {
		return newError("its authorization server's name holds a query or a fragment")
	}
	origin, path := urlOrigin(u), strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{"/.well-known/oauth-authorization-server" + path, "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, path+"/.well-known/openid-configuration")
	}
	for _, p := range places {
		at, err := url.Parse(origin + p)
		if err != nil {
			return err
		}
		var doc issuerMetadata
		found, err := f.document(ctx, at, &doc)
		if err != nil {
			return errorf("authorization server %s: %w", shownPeer(t.Issuer), err)
		}
		if found && doc.Issuer != "" {
			return f.fill(t, doc)
		}
	}
	return errorf("authorization server %s: %w", shownPeer(t.Issuer), errNoMetadata)
}

// fill takes over a document, which must be the issuer's own (OAU-06), prove S256 (OAU-07) and hold addresses that may be called.
func (f *oauthFlow) fill(t *oauthTarget, doc issuerMetadata) error {
	if !sameIssuer(doc.Issuer, t.Issuer) {
		return errorf("the document of the authorization server %s is that of another: %s", shownPeer(t.Issuer), shownPeer(doc.Issuer))
	}
	t.Issuer, t.NamesItself = doc.Issuer, doc.NamesItself
	if !slices.Contains(doc.Challenges, "S256") {
		return errorf("authorization server %s %w", shownPeer(t.Issuer), errNoS256)
	}
	for _, e := range []struct {
		what, from string
		to         *string
	}{
		{"authorization_endpoint", doc.Authorize, &t.Authorize}, {"token_endpoint", doc.Token, &t.Token}, {"registration_endpoint", doc.Register, &t.Register},
	} {
		if e.from == "" && e.to == &t.Register {
			continue // said where one is needed
		}
		u, err := f.address(e.what, e.from)
		if err != nil {
			return errorf("authorization server %s: %w", shownPeer(t.Issuer), err)
		}
		*e.to = u.String()
	}
	if u, err := f.address("revocation_endpoint", doc.Revoke); err == nil { // without a good one tokens end by themselves
		t.Revoke = u.String()
	}
	return nil
}

// elsewhere lists the endpoints that are not at the issuer's own origin, for the person to see (OAU-05).
func (t oauthTarget) elsewhere() []string {
	var out []string
	home, err := url.Parse(t.Issuer)
	for _, s := range []string{t.Authorize, t.Token, t.Register} {
		if u, e := url.Parse(s); s != "" && err == nil && e == nil && urlOrigin(u) != urlOrigin(home) && !slices.Contains(out, urlOrigin(u)) {
			out = append(out, urlOrigin(u))
		}
	}
	return out
}

// sameIssuer compares two names of issuers; a slash at the end alone is forgiven.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// oauthScopes joins scope tokens (RFC 6749, section 3.3), without doubles and without what is none.
func oauthScopes(list []string) string {
	var out []string
	size := 0
	for _, s := range list {
		bad := strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
		if size += len(s) + 1; s == "" || bad || slices.Contains(out, s) || size > oauthScopeMax {
			continue
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// shownPeer is a peer's word for a line of ours.
func shownPeer(s string) string { return clip(visibleLine(s), 60) }
