// This file finds the entry of a server in a GitHub repository, in two passes: its files through the contents API, then one bounded sub-agent with a strict brief. It asks the policy before it
// reads and has the reading in the run log; what it finds is for the bridge to ask about, check live and store.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	resolveReadTime = 90 * time.Second // the first pass, all its requests
	resolveSaidMax  = 1200             // bytes of what the files gave, in a failure
)

// resolverConfig is what the resolver works with. Fork runs a strict brief to its end and gives the agent's answer; nil where no agent can be had.
type resolverConfig struct {
	Web    *webFetcher
	Env    func(string) (string, bool)
	Secret func(ctx context.Context, name string) (secret, error) // errNotFound for none
	Policy *policy
	Audit  *auditLog
	Now    func() time.Time
	GOOS   string
	Fork   func(ctx context.Context, c toolCall, brief string, steps int) (string, error)
}

// resolver is safe for concurrent use.
type resolver struct{ cfg resolverConfig }

func newResolver(c resolverConfig) *resolver { return &resolver{c} }

// resolveOrder is a repository to resolve. Call is the call that wants it, Person set for a person's own command. Name is the one that the server is to have, "" for its own. Tell shows how
// far it is; it may be nil.
type resolveOrder struct {
	Link githubLink
	Call toolCall
	Name string
	Yes  string // the flag that would answer the policy's question
	Tell func(string)
}

// resolved is the entry of a repository, with the notes of its reading. Found says where it stands, Doubt why a person should look twice, "" for no doubt.
type resolved struct {
	normalizeResult
	Found, Doubt string
}

// resolveFiles are the files of the first pass before the README, in their order.
func resolveFiles() []string { return []string{"mcp.json", ".mcp.json", "server.json", "package.json"} }

// link reports whether a source is the address of a repository: at github.com, or at the enterprise host whose API the environment names. A stored name is none.
func (r *resolver) link(source string, stored []serverEntry) (githubLink, bool, error) {
	source = strings.TrimSpace(source)
	if slices.ContainsFunc(stored, func(e serverEntry) bool { return e.Name == source }) {
		return githubLink{}, false, nil
	}
	l, ok, err := parseGitHubLink(source, githubWeb)
	if ok {
		return l, ok, err
	}
	base, err := newGitHubBase(r.cfg.Env)
	if err != nil || !base.own {
		return l, false, nil
	}
	return parseGitHubLink(source, base.web())
}

// resolve reads the repository and gives the one entry that it found. A refusal by policy is a *refusedError, a repository that cannot be read or holds no entry a *hintedError.
func (r *resolver) resolve(ctx context.Context, o resolveOrder) (res resolved, err error) {
	base, err := newGitHubBase(r.cfg.Env)
	if err != nil {
		return res, errorf("github:%s: %w", o.Link.full(), err)
	}
	c := &githubClient{web: r.cfg.Web, base: base, now: r.cfg.Now, link: o.Link}
	if c.Token, c.From, err = r.token(ctx); err != nil {
		return res, errorf("github:%s: read the token: %w", o.Link.full(), err)
	}
	d := deed{Kind: "mcp-resolve", Subject: o.Link.full(), Parent: o.Call.Parent}
	err = r.cfg.Audit.perform(d, func() (string, error) { return r.allowed(ctx, o, c) }, func() (string, error) {
		res, err = r.read(ctx, o, c)
		return "", err
	})
	if f, ok := errors.AsType[*githubFault](err); ok {
		err = &hintedError{err, f.Hint}
	}
	if err != nil {
		return resolved{}, errorf("github:%s: %w", o.Link.full(), err)
	}
	return res, nil
}

// token looks for a token where the person keeps one: in the environment, then in the vault.
func (r *resolver) token(ctx context.Context) (token secret, from string, err error) {
	if token, from = githubEnvToken(r.cfg.Env); token != "" {
		return token, from, nil
	}
	for _, name := range githubTokenNames() {
		s, err := r.cfg.Secret(ctx, name)
		if err == nil && s != "" {
			return s, name, nil
		}
		if err != nil && !errors.Is(err, errNotFound) {
			return "", "", err
		}
	}
	return "", "", nil
}

// allowed asks the policy about the reading: a person's own command names the host itself, a model's is asked about as any host that is new.
func (r *resolver) allowed(ctx context.Context, o resolveOrder, c *githubClient) (rule string, err error) {
	args := o.Call.Args
	if len(args) == 0 {
		if args, err = json.Marshal(map[string]string{"source": "https://" + githubWeb + "/" + o.Link.full()}); err != nil {
			return "", err
		}
	}
	at := c.base.url.String() + "/repos/" + o.Link.full()
	req := policyRequest{Tool: "mcp_add", Args: args, Person: o.Call.Person, Destructive: true, Yes: o.Yes, Net: netTouch{Host: hostKey(c.base.url), URL: at},
		Title: "read the GitHub repository " + o.Link.full() + ", to find how its server starts?", Lines: []consentLine{{Label: "at", Text: at, Exact: true, Quoted: true}}}
	if c.Token != "" {
		req.Net.Secrets = []string{c.From}
	}
	d, err := r.cfg.Policy.approve(ctx, req)
	if err == nil && !d.Allow {
		err = &refusedError{Rule: d.Rule, Reason: d.Reason, Hint: d.Hint}
	}
	return d.Rule, err
}

// repoReading is one repository while it is read.
type repoReading struct {
	*githubClient
	goos   string
	words  repoWords
	ref    string // "" for the default branch
	branch string // for people

	files []repoText // that were read, for the second pass
	names []string   // in the folder
	notes []string
	said  []string // what each file gave instead of an entry
}

// repoFound is the entry that was taken.
type repoFound struct {
	*repoEntry
	file   string
	sure   bool
	others []string
}

// read takes both passes.
func (r *resolver) read(ctx context.Context, o resolveOrder, c *githubClient) (resolved, error) {
	x := &repoReading{githubClient: c, goos: r.cfg.GOOS}
	tell := func(s string) {
		if o.Tell != nil {
			o.Tell(s)
		}
	}
	tell("reading " + o.Link.full() + " at " + c.host())
	first, cancel := context.WithTimeout(ctx, resolveReadTime)
	defer cancel()
	found, err := x.firstPass(first, o.Name)
	if err != nil {
		return resolved{}, err
	}
	if found == nil {
		tell("its files give no entry; a sub-agent reads on (at most " + plural(mcpResolverSteps, "step") + ")")
		if found, err = r.fromFork(ctx, o, x); err != nil {
			return resolved{}, err
		}
	}
	return x.result(found), nil
}

// result lays out what was found.
func (x *repoReading) result(f *repoFound) resolved {
	e := f.serverEntry
	where := f.file
	if f.Line > 0 {
		where += fmt.Sprintf(", line %d,", f.Line)
	}
	res := resolved{Found: fmt.Sprintf("%s of github:%s (branch %s)", where, x.link.full(), x.branch)}
	res.Notes = append(x.notes, "the entry was found in "+res.Found)
	for _, other := range f.others {
		res.Notes = append(res.Notes, "also offered there, and not taken: "+other)
	}
	if e.Cwd != "" {
		res.Notes = append(res.Notes, "its cwd is one of the repository and left out")
	}
	e.Cwd, e.Enabled, e.Source = "", nil, "github:"+x.link.full()
	if goodServerName(e.Name) != nil {
		e.Name = x.link.Name
	}
	res.Warnings = append(slices.Clone(f.Notes), entryHoles(&e)...)
	if !f.sure {
		res.Doubt = "nothing in " + entryText(&e) + " names the repository " + x.link.full()
	}
	res.Servers = []serverEntry{e}
	return res
}

// firstPass is the first pass: the folder that the address names, then the topmost one. nil is no entry.
func (x *repoReading) firstPass(ctx context.Context, want string) (*repoFound, error) {
	repo, err := x.repo(ctx)
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(repo.FullName, x.link.full()) {
		x.notes = append(x.notes, x.link.full()+" has been renamed to "+repo.FullName)
	}
	x.link.Owner, x.link.Name, _ = strings.Cut(repo.FullName, "/")
	if repo.Archived {
		x.notes = append(x.notes, repo.FullName+" is archived: nobody looks after it any more")
	}
	x.branch = visibleLine(repo.Branch)
	x.words = repoWords{Owner: x.link.Owner, Names: []string{x.link.Name}, Want: want}
	dir, file, items, err := x.place(ctx)
	if err != nil {
		return nil, err
	}
	if file != "" {
		if f, err := x.one(ctx, file); f != nil || err != nil {
			return f, err
		}
	}
	if dir != "" {
		x.words.Names = []string{path.Base(dir), x.link.Name}
		if f, err := x.fromRepoFiles(ctx, dir, items); f != nil || err != nil {
			return f, err
		}
		items, err = x.list(ctx, "", x.ref)
		if err != nil {
			return nil, err
		}
	}
	return x.fromRepoFiles(ctx, "", items)
}

// place finds what of the address is the branch (its name may have slashes), and lists the folder that is meant.
func (x *repoReading) place(ctx context.Context) (dir, file string, items []githubItem, err error) {
	parts := x.link.Place
	if len(parts) == 0 {
		items, err = x.list(ctx, "", "")
		if f, ok := errors.AsType[*githubFault](err); ok && f.gone() { // the repository was there a moment ago
			x.said = append(x.said, "the repository is empty")
			err = nil
		}
		return "", "", items, err
	}
	for i := 1; i <= min(len(parts), githubRefParts); i++ {
		ref, rest := strings.Join(parts[:i], "/"), parts[i:]
		dir, file = strings.Join(rest, "/"), ""
		if x.link.File && len(rest) > 0 {
			file, dir = dir, strings.Join(rest[:len(rest)-1], "/")
		}
		items, err = x.list(ctx, dir, ref)
		f, isFault := errors.AsType[*githubFault](err)
		switch {
		case err == nil:
			x.ref, x.branch = ref, visibleLine(ref)
			return dir, file, items, nil
		case !isFault || !f.gone():
			return "", "", nil, err
		case !f.NoRef:
			x.ref, x.branch = ref, visibleLine(ref)
			x.notes = append(x.notes, "there is no folder "+visibleLine(dir)+" on "+x.branch+"; the topmost one is read")
			items, err = x.list(ctx, "", ref)
			return "", "", items, err
		}
	}
	return "", "", nil, &githubFault{Status: 404, What: "there is no branch, tag or commit that the address " + visibleLine(strings.Join(parts, "/")) + " begins with", Hint: "leave out what stands behind the repository's name"}
}

// readFile reads one file; ok is false for one that gives no text, which is said.
func (x *repoReading) readFile(ctx context.Context, file string) (text string, ok bool, err error) {
	text, err = x.text(ctx, file, x.ref)
	f, isFault := errors.AsType[*githubFault](err)
	if errors.Is(err, errNotText) || isFault && f.gone() {
		x.said = append(x.said, visibleLine(file)+": "+strings.TrimPrefix(err.Error(), errNotText.Error()+": "))
		return "", false, nil
	}
	if err == nil && !slices.ContainsFunc(x.files, func(t repoText) bool { return t.Path == file }) {
		x.files = append(x.files, repoText{file, text})
	}
	return text, err == nil, err
}

// one reads the file that the address names.
func (x *repoReading) one(ctx context.Context, file string) (*repoFound, error) {
	if isReadme(path.Base(file)) || strings.HasSuffix(strings.ToLower(file), ".md") {
		return x.fromReadme(ctx, file)
	}
	return x.fromConfig(ctx, file)
}

// fromRepoFiles looks through the files of one folder in their order: the first entry that belongs to the repository, else the first of all.
func (x *repoReading) fromRepoFiles(ctx context.Context, dir string, items []githubItem) (*repoFound, error) {
	x.names = x.names[:0]
	for _, it := range items {
		x.names = append(x.names, it.Name)
	}
	var unsure *repoFound
	for _, name := range resolveFiles() {
		if !slices.ContainsFunc(items, func(it githubItem) bool { return it.Name == name && it.Type != "dir" }) {
			continue
		}
		f, err := x.fromConfig(ctx, path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if f != nil && f.sure {
			return f, x.readmeSays(ctx, dir, items, f)
		}
		if unsure == nil {
			unsure = f
		}
	}
	if readme := readmeOf(items); readme != "" {
		f, err := x.fromReadme(ctx, path.Join(dir, readme))
		if err != nil || f != nil && (f.sure || unsure == nil) {
			return f, err
		}
	}
	return unsure, nil
}

// fromConfig reads a file that is a configuration, a registry's server.json or a package.json.
func (x *repoReading) fromConfig(ctx context.Context, file string) (*repoFound, error) {
	text, ok, err := x.readFile(ctx, file)
	if !ok {
		return nil, err
	}
	entries, own := configEntries, false
	switch path.Base(file) {
	case "package.json":
		entries, own = packageEntry, true
	case "server.json":
		own = true
	}
	list, err := entries(text, x.link.Name, x.goos)
	if err != nil {
		x.said = append(x.said, visibleLine(file)+": "+brief(err.Error(), 300))
		return nil, nil
	}
	f := x.pick(file, list)
	if f != nil && own {
		f.sure = true
	}
	return f, nil
}

// fromReadme looks for a configuration or a command line that a README shows.
func (x *repoReading) fromReadme(ctx context.Context, file string) (*repoFound, error) {
	text, ok, err := x.readFile(ctx, file)
	if !ok {
		return nil, err
	}
	list := readmeEntries(text, x.link.Name, x.goos)
	if len(list) == 0 {
		x.said = append(x.said, visibleLine(file)+": it shows no configuration and no command line of npx, uvx or docker run")
	}
	return x.pick(file, list), nil
}

func (x *repoReading) pick(file string, list []*repoEntry) *repoFound {
	e, sure, others, said := x.words.choose(list)
	for _, s := range said {
		if x.said = append(x.said, visibleLine(file)+": "+s); len(x.said) > 30 {
			break
		}
	}
	if e == nil {
		return nil
	}
	return &repoFound{e, file, sure, others}
}

// readmeSays tells what a README gives a package to start with that a package.json cannot know of.
func (x *repoReading) readmeSays(ctx context.Context, dir string, items []githubItem, f *repoFound) error {
	readme := readmeOf(items)
	if path.Base(f.file) != "package.json" || readme == "" {
		return nil
	}
	text, ok, err := x.readFile(ctx, path.Join(dir, readme))
	if !ok {
		return err
	}
	for _, e := range readmeEntries(text, x.link.Name, x.goos) {
		same := e.Command == f.Command && commandName(e.Command, e.Args) == commandName(f.Command, f.Args)
		if same && (len(e.Env) > 0 || len(e.Args) > len(f.Args)) {
			s := fmt.Sprintf("%s, line %d, starts it with more: %s", readme, e.Line, entryText(&e.serverEntry))
			for _, name := range slices.Sorted(maps.Keys(e.Env)) {
				s += fmt.Sprintf(" and --env %s='${%s}'", visibleLine(name), visibleLine(name))
			}
			f.Notes = append(f.Notes, s)
			return nil
		}
	}
	return nil
}

// isReadme reports the name of a README in a form that has text.
func isReadme(name string) bool {
	stem, ext, _ := strings.Cut(strings.ToLower(name), ".")
	return stem == "readme" && slices.Contains([]string{"", "md", "markdown", "mdx", "rst", "txt", "adoc"}, ext)
}

// readmeOf is the README of a folder, the one in Markdown if there are several, "" for none.
func readmeOf(items []githubItem) string {
	best := ""
	for _, it := range items {
		if it.Type != "dir" && isReadme(it.Name) && (best == "" || strings.EqualFold(it.Name, "readme.md")) {
			best = it.Name
		}
	}
	return best
}

// fromFork is the second pass. A failure names both.
func (r *resolver) fromFork(ctx context.Context, o resolveOrder, x *repoReading) (*repoFound, error) {
	fail := func(why, hint string) error {
		said := brief(strings.Join(x.said, "; "), resolveSaidMax)
		if said == "" {
			said = "none of " + strings.Join(resolveFiles(), ", ") + " and README is there"
		}
		text := fmt.Sprintf("no entry was found. Pass 1, its files: %s. Pass 2, the sub-agent: %s", said, why)
		return &hintedError{newError(text), hint}
	}
	byHand := "paste the command line or the configuration that its documentation shows: tai mcp add NAME -- COMMAND ARGS…"
	if r.cfg.Fork == nil {
		return nil, fail("it is not possible here", byHand)
	}
	if slices.Contains(x.names, "pyproject.toml") {
		if _, _, err := x.readFile(ctx, "pyproject.toml"); err != nil {
			return nil, err
		}
	}
	raw := ""
	if !x.base.own {
		raw = "https://raw.githubusercontent.com/" + x.link.full() + "/" + x.branch + "/"
	}
	ctx, cancel := context.WithTimeout(ctx, mcpResolverTimeout)
	defer cancel()
	answer, err := r.cfg.Fork(ctx, o.Call, resolveBrief(x.link, x.branch, raw, x.names, x.files), mcpResolverSteps)
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(ctx.Err(), context.Canceled):
		return nil, joinErrors(context.Canceled, err)
	case errors.Is(err, errNoModel):
		return nil, fail("it is not possible without a model ("+visibleLine(err.Error())+")", byHand+"; or tai model set names a model that can look further")
	case err != nil:
		return nil, fail(visibleLine(clip(err.Error(), resolveSaidMax)), byHand)
	}
	e, err := resolveAnswer(answer, o.Name, x.link.Name, x.goos)
	if err != nil {
		return nil, fail(err.Error(), byHand)
	}
	return &repoFound{&repoEntry{serverEntry: e}, "the answer of a sub-agent that read the files", x.words.owns(&e), nil}, nil
}
