// This file reads repositories through GitHub's REST API, at github.com or an enterprise host: a repository, the names in a folder, a file (docs.github.com, REST API, Repositories:
// Contents). It explains the answers that keep it from reading, and sends the token to the API's own origin alone. It knows nothing of MCP.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	githubAPI      = "https://api.github.com" // unless githubAPIVars say otherwise
	githubCallTime = 20 * time.Second         // one request with its redirects
	githubFileMax  = 1 << 20                  // bytes of a file that is read; the API gives larger ones no content
	githubBodyMax  = 4 << 20                  // bytes of an answer
	githubCallsMax = 30                       // requests for one repository
	githubSaidMax  = 200                      // bytes of the API's own message that an error repeats
	githubRefParts = 5                        // parts of an address that a branch's name is looked for in
)

// githubAPIVars name the API of an enterprise host, the first that is set; CI runners set the second.
func githubAPIVars() []string { return []string{"TAI_GITHUB_API", "GITHUB_API_URL"} }

// githubTokenNames are what a token is looked for under, in the environment first and then in the vault.
func githubTokenNames() []string { return []string{"GITHUB_TOKEN", "GH_TOKEN"} }

// githubBase is where the API is. Own: the person named it, so that any address of theirs may be called.
type githubBase struct {
	url *url.URL // without a slash at its end
	own bool
}

// githubEnvToken is the token that the environment holds, "" for none, and the variable that it is from.
func githubEnvToken(env func(string) (string, bool)) (token secret, from string) {
	for _, name := range githubTokenNames() {
		if v, _ := env(name); strings.TrimSpace(v) != "" {
			return secret(strings.TrimSpace(v)), name
		}
	}
	return "", ""
}

// newGitHubBase takes the API from the environment, else the public one.
func newGitHubBase(env func(string) (string, bool)) (githubBase, error) {
	for _, name := range githubAPIVars() {
		text, _ := env(name)
		if text = strings.TrimRight(strings.TrimSpace(text), "/"); text == "" || text == githubAPI {
			continue
		}
		u, err := parseWebURL(text)
		if err != nil {
			return githubBase{}, errorf("%s %w", name, err)
		}
		u.RawQuery = ""
		return githubBase{u, true}, nil
	}
	u, err := url.Parse(githubAPI)
	return githubBase{url: u}, err
}

// web is the host that browsers see: HOST of https://HOST/api/v3 and of https://api.HOST.
func (b githubBase) web() string {
	if !b.own {
		return githubWeb
	}
	return strings.TrimPrefix(hostKey(b.url), "api.")
}

// githubClient reads one repository. Token "" is none; From says where it is from. Now is the clock.
type githubClient struct {
	web   *webFetcher
	base  githubBase
	Token secret // fmt asks the type of an exported field alone
	From  string
	now   func() time.Time

	link  githubLink
	calls int
}

// githubFault is an answer that keeps a repository or a file from being read. Status 0: there was none.
type githubFault struct {
	Status int
	What   string // the deed and the cause
	Hint   string
	NoRef  bool // it is the branch that is not there
}

func (e *githubFault) Error() string { return e.What }

// gone reports that what was asked for is not there.
func (e *githubFault) gone() bool { return e.Status == http.StatusNotFound }

// githubRepo is what the API says of a repository.
type githubRepo struct {
	FullName string `json:"full_name"`
	Branch   string `json:"default_branch"`
	Archived bool   `json:"archived"`
}

// githubItem is a file, or a name in a folder.
type githubItem struct {
	Type      string `json:"type"` // file, dir, symlink, submodule
	Name      string `json:"name"`
	Size      int64  `json:"size"`
	Content   string `json:"content"`
	Encoding  string `json:"encoding"`
	Submodule string `json:"submodule_git_url"`
}

// repo reads the repository. A renamed one answers under its new name.
func (c *githubClient) repo(ctx context.Context) (githubRepo, error) {
	var r githubRepo
	body, err := c.get(ctx, "/repos/"+c.link.full(), "")
	if err == nil {
		err = json.Unmarshal(body, &r)
	}
	if err != nil {
		return r, c.cause("read the repository", err)
	}
	if owner, name, ok := strings.Cut(r.FullName, "/"); !ok || !githubName(owner, githubOwnerMax) || !githubName(name, githubRepoMax) {
		return r, &githubFault{What: "read the repository: " + c.host() + " answered without its name", Hint: "is " + githubAPIVars()[0] + " the address of a GitHub API?"}
	}
	return r, nil
}

// list reads the names in a folder, "" for the topmost; ref "" is the default branch.
func (c *githubClient) list(ctx context.Context, dir, ref string) ([]githubItem, error) {
	body, err := c.contents(ctx, dir, ref)
	if err != nil {
		return nil, c.cause("list "+folderWord(dir), err)
	}
	var items []githubItem
	if err := json.Unmarshal(body, &items); err != nil {
		return nil, &githubFault{Status: http.StatusNotFound, What: folderWord(dir) + " is no folder"}
	}
	return items, nil
}

func folderWord(dir string) string {
	if dir == "" {
		return "the topmost folder"
	}
	return "the folder " + visibleLine(dir)
}

// errNotText is a file that gives no text: too large, binary, a link to nowhere.
var errNotText = errors.New("no text")

// text reads a file as UTF-8. A file that is there but cannot be read as text is errNotText with the reason; any other error means that the API cannot be read.
func (c *githubClient) text(ctx context.Context, path, ref string) (string, error) {
	body, err := c.contents(ctx, path, ref)
	if err != nil {
		return "", c.cause("read "+visibleLine(path), err)
	}
	not := func(format string, args ...any) (string, error) {
		return "", errorf("%w: %s", errNotText, fmt.Sprintf(format, args...))
	}
	var f githubItem
	if err := json.Unmarshal(body, &f); err != nil {
		return not("it is a folder")
	}
	switch {
	case f.Type == "symlink":
		return not("it is a link to what is no file of the repository")
	case f.Type == "submodule" || f.Submodule != "":
		return not("it is another repository (a submodule)")
	case f.Size > githubFileMax || f.Encoding == "none":
		return not("it has %d bytes, at most %d are read", f.Size, githubFileMax)
	case f.Encoding != "base64" && (f.Encoding != "" || f.Content != ""):
		return not("its content comes as %s", visibleLine(clip(f.Encoding, 40)))
	}
	data, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\n", "", "\r", "").Replace(f.Content))
	switch {
	case err != nil || f.Size > 0 && int64(len(data)) != f.Size:
		return not("its content came damaged or cut off (%d of %d bytes)", len(data), f.Size)
	case !utf8.Valid(data) || strings.Contains(string(data), "\x00"):
		return not("it is binary, or no UTF-8")
	}
	return string(data), nil
}

func (c *githubClient) contents(ctx context.Context, path, ref string) ([]byte, error) {
	escaped := ""
	for part := range strings.SplitSeq(path, "/") {
		escaped += "/" + url.PathEscape(part)
	}
	query := ""
	if ref != "" {
		query = "ref=" + url.QueryEscape(ref)
	}
	return c.get(ctx, "/repos/"+c.link.full()+"/contents"+strings.TrimSuffix(escaped, "/"), query)
}

func (c *githubClient) host() string { return visibleLine(hostKey(c.base.url)) }

// get makes one request. Redirects, which renamed repositories answer with, are followed on the API's own host only.
func (c *githubClient) get(ctx context.Context, path, query string) ([]byte, error) {
	if c.calls++; c.calls > githubCallsMax {
		return nil, &githubFault{What: fmt.Sprintf("more than %d requests would be needed", githubCallsMax)}
	}
	u, err := parseWebURL(c.base.url.String() + path)
	if err != nil {
		return nil, err
	}
	u.RawQuery = query
	header := http.Header{"Accept": {"application/vnd.github+json"}, "User-Agent": {"tai/" + version}}
	if c.Token != "" {
		if u.Scheme == "http" && hostReach(u.Hostname()) != reachLoopback {
			return nil, &githubFault{What: "the token of " + c.From + " would cross the network unencrypted", Hint: "use https in " + githubAPIVars()[0]}
		}
		header.Set("Authorization", "Bearer "+c.Token.reveal())
	}
	ctx, cancel := context.WithTimeout(ctx, githubCallTime)
	defer cancel()
	a, err := c.web.fetch(ctx, webCall{Method: http.MethodGet, URL: u, Header: header, Kept: []string{"Accept", "User-Agent"}, Judge: c.judge})
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	b, err := readWebBody(a.Response, githubBodyMax)
	switch {
	case err != nil:
		return nil, err
	case a.Stopped != "":
		return nil, &githubFault{Status: a.StatusCode, What: "the redirect is not followed: " + a.Stopped}
	case a.StatusCode != http.StatusOK:
		return nil, c.refused(a.Response, b.Data)
	case b.Cut:
		return nil, &githubFault{What: fmt.Sprintf("the answer has more than %d bytes", githubBodyMax)}
	}
	return b.Data, b.Fault
}

// judge keeps requests on the API's host; a host that the person named may lie anywhere.
func (c *githubClient) judge(u *url.URL, _ netReach) string {
	switch {
	case hostKey(u) != hostKey(c.base.url):
		return "it leads to another host, " + visibleLine(hostKey(u))
	case !c.base.own:
		return "only public addresses are called"
	}
	return ""
}

// refused explains an answer other than 200 (docs.github.com, REST API: Rate limits; Troubleshooting).
func (c *githubClient) refused(resp *http.Response, body []byte) error {
	var said struct{ Message string }
	_ = json.Unmarshal(body, &said) // a message is welcome and not needed
	message := brief(visibleLine(said.Message), githubSaidMax)
	f := &githubFault{Status: resp.StatusCode, NoRef: strings.HasPrefix(said.Message, "No commit found")}
	switch s := resp.StatusCode; {
	case (s == http.StatusForbidden || s == http.StatusTooManyRequests) && c.limited(resp.Header, message):
		f.What, f.Hint = c.limit(resp.Header)
	case s == http.StatusUnauthorized && c.Token != "":
		f.What, f.Hint = c.host()+" refuses the token of "+c.From, "renew it, or take it away: a public repository needs none"
	case s == http.StatusNotFound:
		f.What, f.Hint = "it is not there, or it is private and not shown without leave", c.leave()
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		f.What, f.Hint = fmt.Sprintf("%s refuses it (%d)", c.host(), s), c.leave()
	case s >= 500:
		f.What, f.Hint = fmt.Sprintf("%s has a fault of its own (%d)", c.host(), s), "try again later"
	default:
		f.What = fmt.Sprintf("%s answered %d", c.host(), s)
	}
	if message != "" && !f.gone() {
		f.What += ": " + message
	}
	return f
}

// leave is what helps where something is not shown.
func (c *githubClient) leave() string {
	if c.Token == "" {
		return "check the address; for a private repository set GITHUB_TOKEN, or store it with tai secret set GITHUB_TOKEN"
	}
	return "check the address, and that the token of " + c.From + " may read the repository's contents"
}

// limited tells a rate limit from another refusal.
func (c *githubClient) limited(h http.Header, message string) bool {
	return h.Get("X-RateLimit-Remaining") == "0" || h.Get("Retry-After") != "" || strings.Contains(strings.ToLower(message), "rate limit")
}

// limit says until when a rate limit holds: the reset of the primary one in epoch seconds, or the wait that the secondary one asks for.
func (c *githubClient) limit(h http.Header) (what, hint string) {
	what, now := "GitHub's rate limit is used up", c.now()
	var until time.Time
	if wait, ok := retryAfter(h, now); ok {
		what, until = "GitHub asks to slow down (its secondary rate limit)", now.Add(wait)
	} else if n, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil && n > 0 && h.Get("X-RateLimit-Remaining") == "0" {
		until = time.Unix(n, 0)
	}
	when := "in a few minutes"
	if !until.IsZero() {
		when = "at " + until.UTC().Format(time.RFC3339)
		if wait := until.Sub(now).Round(time.Second); wait > 0 && wait < 365*24*time.Hour {
			when += " (in " + wait.String() + ")"
		}
	}
	hint = "try again then"
	if c.Token == "" {
		hint += ", or set GITHUB_TOKEN (or tai secret set GITHUB_TOKEN): without a token GitHub answers 60 requests an hour, with one 5000"
	}
	return what + "; it answers again " + when, hint
}

// cause puts the deed before a fault and keeps its kind.
func (c *githubClient) cause(deed string, err error) error {
	if f, ok := errors.AsType[*githubFault](err); ok {
		named := *f
		named.What = deed + ": " + f.What
		return &named
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	hint := "is the network there? " + githubAPIVars()[0] + " names another API"
	if errors.Is(err, context.DeadlineExceeded) {
		hint = "try again later; nothing was stored"
	}
	return &githubFault{What: deed + ": " + visibleLine(clip(err.Error(), 4*githubSaidMax)), Hint: hint}
}
