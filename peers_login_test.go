//go:build linux

package main

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// peersIssuer is a real authorization server in front of server-everything.
type peersIssuer struct {
	t                    *testing.T
	MCP, Issuer, Control string
}

// issuer starts one, with the options of oauth-server.mjs.
func (h *peersHome) issuer(t *testing.T, options ...string) *peersIssuer {
	t.Helper()
	behind := h.peers.newHome(t) // it has no part in the person's machine
	d := behind.start(t, nil, h.node, append([]string{filepath.Join(h.root, "oauth-server.mjs"), behind.serve(t, peersHTTPServers()[0])}, options...)...)
	d.await(t, "\n")
	s := &peersIssuer{t: t}
	if !peersAwait(peersLimit, func() bool { return strings.HasSuffix(d.out.String(), "\n") }) || json.Unmarshal([]byte(d.out.String()), s) != nil || s.MCP == "" {
		t.Fatalf("no address: %s%s", d.out.String(), d.err.String())
	}
	return s
}

// step has the issuer forget something: expire, revoke or forget.
func (s *peersIssuer) step(name string) {
	s.t.Helper()
	resp, err := http.Post(s.Control+"/"+name, "", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		s.t.Fatalf("%s: HTTP %d", name, resp.StatusCode)
	}
}

// saw counts what clients did. pairs are names and values that an entry has to have.
func (s *peersIssuer) saw(what string, pairs ...string) (n int) {
	s.t.Helper()
	resp, err := http.Get(s.Control)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var list []map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		s.t.Fatal(err)
	}
entries:
	for _, e := range list {
		for i := 0; i < len(pairs); i += 2 {
			if e[pairs[i]] != pairs[i+1] {
				continue entries
			}
		}
		if e["what"] == what {
			n++
		}
	}
	return n
}

var (
	peersForm   = regexp.MustCompile(`(?is)<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>`)
	peersInput  = regexp.MustCompile(`(?is)<input[^>]*>`)
	peersName   = regexp.MustCompile(`(?i)\bname="([^"]*)"`)
	peersValue  = regexp.MustCompile(`(?i)\bvalue="([^"]*)"`)
	peersCancel = regexp.MustCompile(`(?i)href="([^"]*abort[^"]*)"`)
)

// peersBrowse is a person at a browser: they fill in the forms that come, or cancel at the one that asks for their consent. It gives the last page and
// where it came from.
func peersBrowse(t *testing.T, address string, deny bool) (page string, at *url.URL) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	read := func(resp *http.Response, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		page, at = string(b), resp.Request.URL
	}
	read(client.Get(address))
	for range 4 {
		form := peersForm.FindStringSubmatch(page)
		if form == nil {
			return page, at
		}
		fields := url.Values{}
		for _, input := range peersInput.FindAllString(form[2], -1) {
			name := peersName.FindStringSubmatch(input)
			if name == nil {
				continue
			}
			value := peersValue.FindStringSubmatch(input)
			switch {
			case name[1] == "login" || name[1] == "password":
				fields.Set(name[1], "someone")
			case value != nil:
				fields.Set(name[1], html.UnescapeString(value[1]))
			}
		}
		target := form[1]
		cancel := peersCancel.FindStringSubmatch(page)
		denied := deny && !fields.Has("login") && cancel != nil
		if denied {
			target = cancel[1]
		}
		u, err := at.Parse(html.UnescapeString(target))
		if err != nil {
			t.Fatal(err)
		}
		if denied {
			read(client.Get(u.String()))
		} else {
			read(client.PostForm(u.String(), fields))
		}
	}
	t.Fatalf("too many forms at %s: %s", at, page)
	return "", nil
}

// login runs tai mcp login with a person at the browser, and gives what came of it and the page that tai showed them.
func (h *peersHome) login(t *testing.T, deny bool) (peersRun, string) {
	t.Helper()
	d := h.start(t, nil, h.tai, "mcp", "login", "locked", "--yes", "--no-browser")
	d.await(t, "waiting up to")
	address := regexp.MustCompile(`\n  (http://\S+)\n`).FindStringSubmatch(d.err.String())
	if address == nil {
		t.Fatalf("no address: %s", d.err.String())
	}
	page, at := peersBrowse(t, address[1], deny)
	if at.Path != callbackPath {
		t.Errorf("the browser ended at %s: %s", at, page)
	}
	if !waitFor(peersLimit, d.done) {
		t.Fatalf("the login does not end: %s", d.err.String())
	}
	return peersRun{out: d.out.String(), err: d.err.String(), code: d.cmd.ProcessState.ExitCode()}, page
}

// W56, W57, W59, W62, W66: a login at a real authorization server from the first 401 to the logout, through its forms, with refresh and rotation.
func peersLogin(t *testing.T, p *peers) {
	call := func(h *peersHome) peersRun { return h.run(t, nil, "mcp", "call", "locked", "echo", "message=there") }
	for _, tc := range []struct {
		name    string
		options []string
		whole   bool
	}{
		{"from end to end", nil, true},
		{"an issuer with a path", []string{"--tenant", "/t1"}, false},
		{"a challenge that names no document", []string{"--plain-challenge"}, false},
		{"both", []string{"--tenant", "/t1", "--plain-challenge"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := p.newHome(t)
			s := h.issuer(t, tc.options...)
			works := func(when string) {
				t.Helper()
				if r := call(h); r.code != 0 || !strings.Contains(r.out, "Echo: there") {
					t.Errorf("%s: exit %d: %s%s", when, r.code, r.out, r.err)
				}
			}
			wants := func(when string) {
				t.Helper()
				if r := call(h); r.code != exitLogin || !strings.Contains(r.err, "tai mcp login locked") {
					t.Errorf("%s: exit %d: %s%s", when, r.code, r.out, r.err)
				}
			}
			if r := h.run(t, nil, "mcp", "add", "locked", s.MCP, "--yes"); r.code != exitLogin {
				t.Errorf("add: exit %d: %s%s", r.code, r.out, r.err)
			}
			r, page := h.login(t, false)
			if r.code != 0 || !strings.HasPrefix(r.out, "locked: logged in\n") || !strings.Contains(page, "tai has its answer") {
				t.Fatalf("login: exit %d: %s%s%s", r.code, r.out, r.err, page)
			}
			works("logged in")
			resource := []string{"resource", s.MCP}
			if n := s.saw("registered", "name", "tai-mcp", "method", "none", "type", "native", "grants", "authorization_code refresh_token"); n != 1 || s.saw("authorized", resource...) != 1 || s.saw("granted", resource...) != 1 {
				t.Errorf("%d registrations, %d authorizations, %d codes", n, s.saw("authorized", resource...), s.saw("granted", resource...))
			}
			if !tc.whole {
				return
			}
			for range 2 { // the second time with the token that the first refresh brought
				s.step("expire")
				works("expired")
			}
			if refreshed, reused := s.saw("granted", append(resource, "grant", "refresh_token")...), s.saw("reused"); refreshed != 2 || reused != 0 {
				t.Errorf("%d refreshes, %d of them with a used token", refreshed, reused)
			}
			s.step("revoke")
			wants("revoked")
			wants("revoked, once more")
			if r, page := h.login(t, true); r.code != exitLogin || !strings.Contains(r.err, "access_denied") || !strings.Contains(page, "The login was refused") {
				t.Errorf("denied: exit %d: %s%s", r.code, r.err, page)
			}
			wants("denied")
			if r, _ := h.login(t, false); r.code != 0 {
				t.Fatalf("login again: exit %d: %s", r.code, r.err)
			}
			works("logged in again")
			s.step("forget")
			s.step("expire")
			wants("the client is unknown")
			if r, _ := h.login(t, false); r.code != 0 || s.saw("registered") < 3 {
				t.Errorf("a new registration: exit %d: %s", r.code, r.err)
			}
			if out := h.must(t, "mcp", "logout", "locked", "--json"); !strings.Contains(out, `"revoked": true`) { // RFC 7009
				t.Errorf("logout: %s", out)
			}
			wants("logged out")
			t.Logf("oidc-provider %s", p.version(t, "oidc-provider"))
		})
	}
	h := p.newHome(t)
	s := h.issuer(t, "--no-registration")
	h.run(t, nil, "mcp", "add", "locked", s.MCP, "--yes")
	if r := h.run(t, nil, "mcp", "login", "locked", "--yes", "--no-browser"); r.code != exitFailed || !strings.Contains(r.err, "registration_endpoint") {
		t.Errorf("no registration: exit %d: %s", r.code, r.err)
	}
}

// W50 to W63, W67, W68: the client scenarios of the official conformance suite that 2025-11-25 requires, played by tai's command line, and those of later
// revisions about authorization that fit it. testdata/peers/conformance-client.yml has what tai does not do, each with the reason.
func peersConformanceClient(t *testing.T, p *peers) {
	const pkg = "@modelcontextprotocol/conformance"
	suite := func(t *testing.T, words ...string) peersRun {
		t.Helper()
		h := p.newHome(t)
		driver := p.node + " " + filepath.Join(p.root, "conformance-client.mjs")
		r := h.program(t, nil, []string{"TAI=" + h.tai}, p.node, append([]string{p.file(t, pkg+"/dist/index.js"), "client", "--command", driver}, words...)...)
		if r.code != 0 {
			t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
		}
		return r
	}
	t.Run("required", func(t *testing.T) {
		t.Parallel()
		r := suite(t, "--requirements", mcpProtocolVersion, "--expected-failures", filepath.Join(p.root, "conformance-client.yml"))
		total := regexp.MustCompile(`Total: (\d+) passed`).FindStringSubmatch(r.out)
		if total == nil || len(total[1]) < 3 {
			t.Fatalf("too few checks: %q", total)
		}
		t.Logf("%s %s: %s checks passed, %d ms", pkg, p.version(t, pkg), total[1], r.took.Milliseconds())
	})
	for _, s := range []string{"auth/resource-mismatch", "auth/metadata-issuer-mismatch", "auth/iss-supported", "auth/iss-not-advertised", "auth/iss-supported-missing", "auth/iss-wrong-issuer",
		"auth/iss-unexpected", "auth/iss-normalized", "auth/offline-access-scope", "auth/offline-access-not-supported", "auth/authorization-server-migration", "json-schema-ref-no-deref"} {
		t.Run(s, func(t *testing.T) {
			t.Parallel()
			suite(t, "--scenario", s, "--spec-version", mcpProtocolVersion, "--force")
		})
	}
	t.Run("of 2025-03-26", func(t *testing.T) {
		t.Parallel()
		suite(t, "--scenario", "auth/2025-03-26-oauth-metadata-backcompat")
	})
}
