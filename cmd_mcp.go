// This file holds the commands that bring MCP servers in, list them and switch them: tai mcp add, list, enable, disable,
// remove, normalize.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// configMax bounds a pasted config in bytes; normalize refuses what is larger.
const configMax = 1 << 20

func mcpCommands() []command {
	return []command{
		{Path: "mcp add", Args: "SOURCE | NAME URL | NAME -- COMMAND ARGS…", Short: "bring an MCP server in: show what will run, check it live, store it",
			Long: `SOURCE is one of
  a config as JSON or TOML text     tai mcp add '{"mcpServers":{…}}'
  a file that holds one             tai mcp add claude_desktop_config.json
  - for standard input              tai mcp add - < mcp.json
  a URL                             tai mcp add https://mcp.example.com/mcp
  a GitHub repository               tai mcp add https://github.com/OWNER/REPOSITORY
  a run line as in a README         tai mcp add npx -y some-mcp-server
  a stored name                     tai mcp add files

tai shows exactly what will be started or dialled and asks; then it connects,
and stores the server only if that worked. A stored name is checked again and
enabled. tai's own flags stand before a run line. Write ${NAME} for a secret:
its value comes from the environment or from tai secret set when the server is
used, and is not stored with it. Where a pasted entry holds what looks like a
secret, tai offers to move it into the vault and to keep ${NAME} in its place.`,
			Example: "tai mcp add files -- npx -y @modelcontextprotocol/server-filesystem .",
			Flags: []flagSpec{{Name: "name", Value: "NAME", Help: "the server's name"}, {Name: "header", Value: "'K: V'", Help: "a header for a remote server", Many: true},
				{Name: "env", Value: "K=V", Help: "a variable for a started server", Many: true}, {Name: "cwd", Value: "DIR", Help: "the folder it starts in"}, {Name: "disabled", Help: "store it without enabling it"},
				{Name: "move-secrets", Help: "move pasted secrets into the vault without asking"}, {Name: "keep-secrets", Help: "keep them in the entry without asking"}},
			Max: -1, Store: storeWrite, Redacts: true, Run: cmdMCPAdd},
		{Path: "mcp list", Short: "stored servers with their transport, profiles and tools", Example: "tai mcp list --json", Store: storeRead, Run: cmdMCPList},
		{Path: "mcp enable", Args: "SERVER", Short: "offer a server's tools in a profile", Example: "tai mcp enable files --profile work", Min: 1, Max: 1, Store: storeThere, Signs: true, Run: cmdMCPEnable},
		{Path: "mcp disable", Args: "SERVER", Short: "stop offering a server's tools in a profile", Example: "tai mcp disable files", Min: 1, Max: 1, Store: storeThere, Signs: true, Run: cmdMCPDisable},
		{Path: "mcp remove", Args: "SERVER", Short: "delete a server with its profile rows, pins and tokens", Example: "tai mcp remove files --yes", Min: 1, Max: 1, Store: storeThere, Signs: true, Run: cmdMCPRemove},
		{Path: "mcp normalize", Args: "[FILE|-]", Short: "show the entries that a pasted config gives, changing nothing", Example: "tai mcp normalize config.json --os windows",
			Flags: []flagSpec{{Name: "os", Value: "GOOS", Help: "read it for this system (default: this one)"}, {Name: "name", Value: "NAME", Help: "the name of a bare entry"}}, Max: 1, Store: storeRead, Run: cmdMCPNormalize},
	}
}

// cmdMCPAdd reads the source, and registers each entry that it gives.
func cmdMCPAdd(ctx context.Context, c *invocation) error {
	res, err := readSource(ctx, c)
	if err != nil {
		return err
	}
	if err := applyEntryFlags(c, res.Servers); err != nil {
		return err
	}
	for i := range res.Servers {
		if note := anchorEntry(&res.Servers[i], c.out.Dir); note != "" {
			res.Notes = append(res.Notes, note)
		}
	}
	c.say(res.Notes, "note")
	c.say(res.Warnings, "warning")
	secrets, err := c.moveSecrets(ctx, res.Servers)
	if err != nil {
		return err
	}
	out := addedDoc{Servers: []addedJSON{}, Notes: orEmpty(res.Notes), Warnings: orEmpty(res.Warnings)}
	var failed error
	for i, e := range res.Servers {
		r, err := c.addServer(ctx, e, registerOptions{Profile: c.profileWord(), Yes: "--yes", Moved: secrets[i], Found: res.Found, Doubt: res.Doubt})
		if err == nil {
			out.Servers = append(out.Servers, addedJSONOf(r))
			if !c.json {
				c.printAdded(r)
			}
			c.tellMoved(r.Name, secrets[i])
			c.say(r.Warnings, "warning")
			continue
		}
		failed = worse(failed, err)
		if len(res.Servers) == 1 {
			return err
		}
		ce := failure(err)
		if c.json {
			out.Failed = append(out.Failed, failedJSON{e.Name, ce.json()})
		} else {
			tell(ce, false, c.stdout, c.stderr)
		}
		if left := len(res.Servers) - i - 1; left > 0 && endsAdding(ctx, ce) {
			fmt.Fprintf(c.stderr, "tai: %d more of the source were not tried\n", left)
			break
		}
	}
	if c.json {
		if failed != nil {
			first := failure(failed).json()
			out.Error = &first
		}
		if err := writeJSON(c.stdout, out); err != nil {
			return err
		}
	}
	if failed != nil {
		return errQuiet{failure(failed).Exit}
	}
	return nil
}

// addServer registers one entry. One that wants a login is stored, and a failure all the same: it cannot be used.
func (c *invocation) addServer(ctx context.Context, e serverEntry, o registerOptions) (registered, error) {
	if !o.Later {
		o.Waiting = c.waiting(e.Name, "npx and uvx download a program at its first start; ")
	}
	r, err := c.bridge.register(ctx, e, o)
	if err == nil && r.Status == statusLogin {
		err = &cliError{Exit: exitLogin, Message: fmt.Sprintf("mcp server %s: %s", quoteClip(r.Name), r.Hint), Hint: loginWords(r.Name, r.Profile) + " logs in with the browser; or add it with a token: --header 'Authorization: Bearer ${TOKEN}'"}
	}
	return r, err
}

// addPatience is how long a live check is silent about a server that does not answer yet.
const addPatience = 3 * time.Second

// waiting says on a terminal which server is waited for, once that takes long. It is the Waiting of registerOptions.
func (c *invocation) waiting(server, why string) func() (done func() bool) {
	if !c.errTerminal || c.json {
		return nil
	}
	return func() (done func() bool) {
		return time.AfterFunc(addPatience, func() { // one write, and nothing waits for it
			fmt.Fprintf(c.stderr, "tai: waiting for %s (%sCtrl-C stops)\n", visibleLine(server), why)
		}).Stop
	}
}

// endsAdding reports a failure that every further server of the source would meet too.
func endsAdding(ctx context.Context, ce *cliError) bool {
	return ctx.Err() != nil || ce.Rule == ruleNobody || errors.Is(ce, errTooManyServers)
}

// addedDoc is what tai mcp add --json prints: with an error, when some servers of the source did not come in.
type addedDoc struct {
	Error    *jsonFailure `json:"error,omitempty"`
	Servers  []addedJSON  `json:"servers"`
	Failed   []failedJSON `json:"failed,omitempty"`
	Notes    []string     `json:"notes"`
	Warnings []string     `json:"warnings"`
}

type failedJSON struct {
	Name  string      `json:"name"`
	Error jsonFailure `json:"error"`
}

type addedJSON struct {
	Name     string   `json:"name"`
	Status   string   `json:"status"`
	Profile  string   `json:"profile"`
	Tools    []string `json:"tools"`
	Withheld []string `json:"withheld,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

func addedJSONOf(r registered) addedJSON {
	a := addedJSON{Name: r.Name, Status: r.Status, Profile: r.Profile, Tools: []string{}, Warnings: r.Warnings}
	for _, t := range r.Tools {
		if t.State == stateWithheld {
			a.Withheld = append(a.Withheld, t.Name)
		} else if t.State != stateUnusable {
			a.Tools = append(a.Tools, t.Name)
		}
	}
	return a
}

func (c *invocation) printAdded(r registered) {
	w := c.stdout
	count := map[toolState]int{}
	for _, t := range r.Tools {
		count[t.State]++
	}
	fmt.Fprintf(w, "%s: %s for profile %s, %s\n", visibleLine(r.Name), r.Status, visibleLine(r.Profile), countText(len(r.Tools), count))
	for _, t := range r.Tools {
		if t.State == stateGranted {
			fmt.Fprintf(w, "  %s  %s\n", visibleLine(t.Name), brief(visibleLine(c.redact(summaryLine(t.Description))), 100))
		}
	}
	if count[stateWithheld] > 0 {
		fmt.Fprintf(w, "  %d withheld: tai mcp check %s shows the difference\n", count[stateWithheld], quoteWord(r.Name))
	}
}

func countText(total int, count map[toolState]int) string {
	text := plural(total, "tool")
	for _, s := range []toolState{stateWithheld, stateDenied, stateOverCap, stateUnusable} {
		if count[s] > 0 {
			text += fmt.Sprintf(", %d %s", count[s], s)
		}
	}
	return text
}

// readSource finds out what the words of tai mcp add mean.
func readSource(ctx context.Context, c *invocation) (resolved, error) {
	var res resolved
	o := normalizeOptions{OS: c.goos, Name: c.flag("name")}
	rows, err := c.storedEntries(ctx)
	if err != nil {
		return res, err
	}
	o.Stored = rows
	args := c.args
	if c.dash {
		res.normalizeResult, err = commandSource(args, c.rest, o)
		return res, err
	}
	if len(args) == 2 && o.Name == "" && (isAddress(args[1]) || c.isRepository(args[1])) {
		o.Name, args = args[0], args[1:]
	}
	if len(args) == 0 {
		return res, usageError("tai mcp add --help shows the forms", "nothing to add")
	}
	text := []byte(args[0])
	if len(args) > 1 {
		words := make([]string, len(args))
		for i, a := range args {
			words[i] = quoteWord(a)
		}
		text = []byte(strings.Join(words, " "))
	} else if c.isRepository(args[0]) {
		text = []byte(args[0])
	} else if text, err = sourceText(ctx, args[0], c.stdin, rows); err != nil {
		return res, err
	}
	link, ok, err := c.repos.link(string(text), rows)
	switch {
	case err != nil:
		return res, &cliError{Exit: exitUsage, Message: err.Error(), err: err}
	case ok:
		res, err = c.repos.resolve(ctx, resolveOrder{Link: link, Call: toolCall{Person: true, Origin: c.origin}, Name: o.Name, Yes: "--yes", Tell: c.stepLine()})
	default:
		if res.normalizeResult, err = normalize(text, o); err != nil {
			err = &cliError{Exit: exitUsage, Message: err.Error(), Hint: "tai mcp normalize shows how a config is read", err: err}
		}
	}
	if err != nil {
		return res, err
	}
	if o.Name != "" && len(res.Servers) == 1 {
		res.Servers[0].Name = o.Name
	}
	return res, nil
}

func (c *invocation) isRepository(word string) bool {
	_, ok, err := c.repos.link(word, nil)
	return ok && err == nil
}

// stepLine shows on a terminal how far a long command is.
func (c *invocation) stepLine() func(string) {
	if !c.errTerminal || c.json {
		return nil
	}
	return func(line string) { fmt.Fprintln(c.stderr, "tai: "+visibleLine(c.redact(line))) }
}

// commandSource is the form NAME -- COMMAND ARGS…: the words are taken as they are, none is split.
func commandSource(args, rest []string, o normalizeOptions) (normalizeResult, error) {
	if len(rest) == 0 {
		return normalizeResult{}, usageError("tai mcp add NAME -- COMMAND ARGS…", "no command follows --")
	}
	if len(args) > 1 || len(args) == 1 && o.Name != "" {
		return normalizeResult{}, usageError("tai mcp add NAME -- COMMAND ARGS…", "one name was expected before --")
	}
	if len(args) == 1 {
		o.Name = args[0]
	}
	e := serverEntry{Name: o.Name, Transport: "stdio", Command: rest[0], Args: rest[1:], Source: "explicit"}
	if e.Name == "" {
		bare, err := json.Marshal(map[string]any{"command": e.Command, "args": orEmpty(e.Args)})
		if err != nil {
			return normalizeResult{}, err
		}
		res, err := normalize(bare, o)
		if err != nil {
			return res, &cliError{Exit: exitUsage, Message: err.Error(), Hint: "name it: tai mcp add NAME -- COMMAND ARGS…", err: err}
		}
		e.Name = res.Servers[0].Name
	}
	if e.Command == "" {
		return normalizeResult{}, usageError("tai mcp add NAME -- COMMAND ARGS…", "the command is empty")
	}
	return normalizeResult{Servers: []serverEntry{e}}, nil
}

func isAddress(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "${")
}

// sourceText gives the bytes to read: standard input for -, a file that is there, else the word itself. A stored name wins over
// a file of that name.
func sourceText(ctx context.Context, word string, stdin io.Reader, stored []serverEntry) ([]byte, error) {
	if word == "-" {
		return readBounded(ctx, stdin, configMax, "standard input")
	}
	if slices.ContainsFunc(stored, func(e serverEntry) bool { return e.Name == word }) || strings.ContainsAny(word, "{\n") {
		return []byte(word), nil
	}
	info, err := os.Stat(word)
	if err != nil || info.IsDir() {
		if looksLikeFile(word) {
			return nil, usageError("", "no such file: %s", visibleLine(word))
		}
		return []byte(word), nil
	}
	f, err := os.Open(word)
	if err != nil {
		return nil, errorf("read config: %w", err)
	}
	defer f.Close()
	return readBounded(ctx, f, configMax, word)
}

// looksLikeFile reports a word that can only be meant as a file.
func looksLikeFile(s string) bool {
	if isAddress(s) || strings.ContainsAny(s, " \t") {
		return false
	}
	return strings.HasSuffix(s, ".json") || strings.HasSuffix(s, ".toml") || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~/")
}

// applyEntryFlags lays --header, --env, --cwd and --disabled over the entries.
func applyEntryFlags(c *invocation, servers []serverEntry) error {
	if len(servers) > 1 && (c.given("header") || c.given("env") || c.given("cwd") || c.given("name")) {
		return usageError("", "--name, --header, --env and --cwd are for one server, the source gives %d", len(servers))
	}
	for i := range servers {
		e := &servers[i]
		if err := goodServerName(e.Name); err != nil {
			return &cliError{Exit: exitUsage, Message: fmt.Sprintf("mcp server %s: %v", quoteClip(e.Name), err), Hint: "--name gives another name", err: err}
		}
		for _, h := range c.flags["header"] {
			k, v, ok := strings.Cut(h, ":")
			if !ok || e.Transport != "http" {
				return usageError("--header 'Name: value', for remote servers", "header %s cannot be used", quoteClip(k))
			}
			e.Headers = withPair(e.Headers, strings.TrimSpace(k), strings.TrimSpace(v))
		}
		for _, kv := range c.flags["env"] {
			k, v, ok := strings.Cut(kv, "=")
			if !ok || k == "" || e.Transport != "stdio" {
				return usageError("--env NAME=value, for started servers", "variable %s cannot be used", quoteClip(k))
			}
			e.Env = withPair(e.Env, k, v)
		}
		if c.given("cwd") {
			e.Cwd = c.flag("cwd")
		}
		if c.given("disabled") {
			off := false
			e.Enabled = &off
		}
	}
	return nil
}

//go:noinline for size: it is called in many places
func withPair(m map[string]string, k, v string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[k] = v
	return m
}

// say prints notes and warnings on stderr, one line each.
func (c *invocation) say(lines []string, kind string) {
	for _, l := range lines {
		fmt.Fprintln(c.stderr, kind+": "+visibleLine(c.redact(l)))
	}
}

func cmdMCPList(ctx context.Context, c *invocation) error {
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	rows, mask, err := c.listedServers(ctx, v)
	if err != nil {
		return err
	}
	profile, err := c.profile(ctx)
	if err != nil {
		return err
	}
	list := make([]serverSummary, 0, len(rows))
	for _, row := range rows {
		tools, err := v.cachedTools(ctx, row.Name)
		if err != nil {
			return err
		}
		login, err := v.wantsLogin(ctx, row.Name)
		if err != nil {
			return err
		}
		s := summarize(row, tools, profile, login)
		if s.Lost, err = v.lostOf(ctx, row.Name); err != nil {
			return err
		}
		if s.Logins, err = v.loginProfiles(ctx, row.Name); err != nil {
			return err
		}
		s.Command, s.URL = mask(s.Command), mask(s.URL)
		for i, a := range s.Args {
			s.Args[i] = mask(a)
		}
		list = append(list, s)
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"servers": list})
	}
	if len(list) == 0 {
		fmt.Fprintln(c.stdout, "no MCP servers are stored; tai mcp add brings one in")
	}
	for _, s := range list {
		what := s.URL
		if s.Transport == "stdio" {
			what = quoteLine(slices.Concat([]string{s.Command}, s.Args))
		}
		tools := countText(s.Tools, map[toolState]int{stateWithheld: s.Withheld})
		if slices.Contains(s.Logins, profile) {
			what += "  (logged in)"
		}
		printWrapped(c.stdout, fmt.Sprintf("%s  %s  %s  %s  %s", visibleLine(s.Name), s.Transport, s.State, tools, visibleLine(what)))
		if len(s.Lost) > 0 {
			fmt.Fprintln(c.stdout, lostNote(s.Name, s.Lost))
		}
	}
	return nil
}

// lostNote says what tai vault seal --discard took from a server.
func lostNote(server string, lost []string) string {
	s := lostServer{Env: slices.Contains(lost, "env"), Headers: slices.Contains(lost, "headers")}
	return fmt.Sprintf("  the %s of %s were given up with the seal; tai mcp add brings it in again with them", strings.Join(s.parts(), " and "), visibleLine(server))
}

// listedServers gives the servers and what masks their texts. Where that would take asking for a passphrase, or the key file is gone, names
// of headers and variables are left out, and only what looks like a secret is masked: a list asks nobody.
func (c *invocation) listedServers(ctx context.Context, v *vault) ([]serverRow, func(string) string, error) {
	locked, err := v.needsPassphrase(ctx)
	if err != nil {
		return nil, nil, err
	}
	why := "the vault is sealed with a passphrase (TAI_PASSPHRASE, or TAI_PASSPHRASE_FILE, would open it)"
	if locked = locked && !c.passphraseGiven(); !locked {
		err := c.openSealed(ctx)
		if !errors.Is(err, errKeyFileMissing) {
			if err != nil {
				return nil, nil, err
			}
			rows, err := v.servers(ctx)
			return rows, c.redact, err
		}
		why = err.Error()
	}
	rows, err := v.serverList(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(rows) > 0 {
		fmt.Fprintln(c.stderr, "tai: names of headers and variables are not shown: "+visible(why))
	}
	var known []namedSecret
	for _, kv := range c.out.Environ {
		name, value, _ := strings.Cut(kv, "=")
		known = append(known, environSecrets(name, value)...)
	}
	for _, row := range rows {
		known = append(known, entrySecrets(row.serverEntry)...)
	}
	return rows, newRedactor(known).text, nil
}

func cmdMCPEnable(ctx context.Context, c *invocation) error { return switchServer(ctx, c, true) }

func cmdMCPDisable(ctx context.Context, c *invocation) error { return switchServer(ctx, c, false) }

func switchServer(ctx context.Context, c *invocation, on bool) error {
	name := c.args[0]
	profile, err := c.profile(ctx)
	if err != nil {
		return err
	}
	state, d := statusDisabled, deed{Kind: "mcp-disable", Subject: name, Data: auditText("profile", profile)}
	if on {
		state, d.Kind = statusEnabled, "mcp-enable"
	}
	err = c.recorded(ctx, d, func(*vault) error {
		_, err := c.bridge.turn(ctx, name, profile, on)
		return err
	})
	if err != nil {
		return err
	}
	if v, err := c.vault(ctx); err == nil && on {
		if lost, err := v.lostOf(ctx, name); err == nil && len(lost) > 0 {
			fmt.Fprintln(c.stderr, "tai:"+lostNote(name, lost)[1:])
		}
		if wanted, err := v.wantsLogin(ctx, name); err == nil && wanted {
			c.say([]string{"it wanted a login when it was checked last: " + loginWords(name, profile) + " logs in"}, "note")
		}
	}
	if c.json {
		return writeJSON(c.stdout, map[string]string{"name": name, "profile": profile, "state": state})
	}
	fmt.Fprintf(c.stdout, "%s: %s for profile %s\n", visibleLine(name), state, visibleLine(profile))
	return nil
}

func cmdMCPRemove(ctx context.Context, c *invocation) error {
	name := c.args[0]
	before := c.usersNow(ctx)
	if err := c.bridge.remove(ctx, name, "--yes"); err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.stdout, map[string]string{"name": name, "state": "removed"})
	}
	fmt.Fprintf(c.stdout, "%s: removed with its profile rows, pins and tokens\n", visibleLine(name))
	return c.tellUnused(ctx, name, before)
}

// usersNow gives which servers use which secret, nil where that cannot be said.
func (c *invocation) usersNow(ctx context.Context) map[string][]string {
	v, err := c.vault(ctx)
	if err != nil {
		return nil
	}
	if !c.opensQuietly(ctx, v) {
		return nil
	}
	users, err := secretServers(ctx, v)
	if err != nil {
		return nil
	}
	return users
}

// tellUnused names the secrets of the vault that only the removed server used, and no model: they stay.
func (c *invocation) tellUnused(ctx context.Context, server string, before map[string][]string) error {
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	models, err := secretModels(ctx, v)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if !slices.Equal(before[name], []string{server}) || len(models[name]) > 0 {
			continue
		}
		if has, err := v.hasSecret(ctx, "", name); err != nil {
			return err
		} else if has {
			fmt.Fprintf(c.stderr, "note: the secret %s stays, and no server uses it now; tai secret delete %s drops it\n", visibleLine(name), quoteWord(name))
		}
	}
	return nil
}

func cmdMCPNormalize(ctx context.Context, c *invocation) error {
	word := "-"
	if len(c.args) == 1 {
		word = c.args[0]
	}
	o := normalizeOptions{OS: c.goos, Name: c.flag("name")}
	if c.given("os") {
		o.OS = c.flag("os")
	}
	var text []byte
	var err error
	if word == "-" {
		text, err = readBounded(ctx, c.stdin, configMax, "standard input")
	} else {
		text, err = sourceText(ctx, word, c.stdin, nil)
	}
	if err != nil {
		return err
	}
	if o.Stored, err = c.storedNamed(ctx, strings.TrimSpace(string(text))); err != nil {
		return err
	}
	res, err := normalize(text, o)
	if err != nil {
		ce := &cliError{Exit: exitUsage, Message: err.Error(), err: err}
		if c.isRepository(string(text)) {
			ce.Hint = "tai mcp add reads the repository, shows what it found and asks"
		}
		return ce
	}
	if c.json {
		return writeJSON(c.stdout, struct {
			Servers  []serverEntry `json:"servers"`
			Notes    []string      `json:"notes"`
			Warnings []string      `json:"warnings"`
		}{orEmpty(res.Servers), orEmpty(res.Notes), orEmpty(res.Warnings)})
	}
	for _, e := range res.Servers {
		if err := writeJSON(c.stdout, e); err != nil {
			return err
		}
	}
	c.say(res.Notes, "note")
	c.say(res.Warnings, "warning")
	return nil
}

// storedNamed gives the entries of the vault where one has that name, else none: only then is the key needed, and for what cannot be a name
// not even the vault.
func (a *app) storedNamed(ctx context.Context, name string) ([]serverEntry, error) {
	if name == "" || len(name) > serverNameMax || strings.ContainsAny(name, "{}[]\n") {
		return nil, nil
	}
	v, err := a.vault(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := v.serverList(ctx)
	if err != nil || !slices.ContainsFunc(rows, func(r serverRow) bool { return r.Name == name }) {
		return nil, err
	}
	return a.storedEntries(ctx)
}

// storedEntries gives the entries of the vault, to be named by a word.
func (a *app) storedEntries(ctx context.Context) ([]serverEntry, error) {
	v, err := a.vault(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := v.servers(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]serverEntry, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.serverEntry)
	}
	return out, nil
}
