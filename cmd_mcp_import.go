// This file holds tai mcp import: it lists the servers that other apps have, lets a person choose, and stores what was chosen. Finding and reading
// is mcp_import.go's business, storing the bridge's.
package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func mcpImportCommands() []command {
	apps := appIDs(importApps())
	return []command{{Path: "mcp import", Args: "[APP…]", Short: "bring in the servers that other apps on this machine have", Example: "tai mcp import cursor vscode --dry-run",
		Long: "APP is one of\n  " + strings.Join(apps, ", ") + `
where project stands for the workspace's own files. Without it all are read.

Every server is listed with what it runs or dials and where it stands; nothing
is started by looking. On a terminal tai then asks about each: y, n, a (all that
are left and new, dangerous ones excepted), q (no more). Without one --yes takes
all that are new. A stored server that differs is replaced only by a y, or where
--yes and --server name it. What comes in is disabled and unchecked:
tai mcp add NAME checks it live and enables it, as --enable does at once.`,
		Flags: []flagSpec{{Name: "dry-run", Help: "list only; nothing is asked or written"}, {Name: "server", Value: "SERVER", Help: "only the server of that name", Many: true},
			{Name: "enable", Help: "check each one live and enable it, as tai mcp add does"},
			{Name: "move-secrets", Help: "move secrets in the entries into the vault without asking"}, {Name: "keep-secrets", Help: "keep them in the entries without asking"}},
		Max: -1, Store: storeThere, Redacts: true, Run: cmdMCPImport}}
}

func appIDs(apps []clientApp) []string {
	ids := make([]string, len(apps))
	for i := range apps {
		ids[i] = apps[i].ID
	}
	return ids
}

// The states of a server that was found, before and after it was stored.
const (
	importNew      = "new"
	importStored   = "stored"  // as it is here
	importDiffers  = "differs" // stored under this name with other content
	importUnusable = "unusable"
	importDone     = "imported" // and disabled; one that was checked has the status of tai mcp add
	importFault    = "failed"
)

// importDoc is what tai mcp import --json prints. Room is how many more servers can be stored.
type importDoc struct {
	Error   *jsonFailure  `json:"error,omitempty"`
	Files   []*importFile `json:"files"`
	Servers []*foundJSON  `json:"servers"`
	Room    int           `json:"room"`
}

// foundJSON is a server that was found. Of variables and headers it has the names, and secrets elsewhere are masked.
type foundJSON struct {
	Name       string         `json:"name"`
	State      string         `json:"state"`
	Transport  string         `json:"transport,omitempty"`
	Command    string         `json:"command,omitempty"`
	Args       []string       `json:"args,omitempty"`
	Cwd        string         `json:"cwd,omitempty"`
	URL        string         `json:"url,omitempty"`
	Env        []string       `json:"envNames,omitempty"`
	Headers    []string       `json:"headerNames,omitempty"`
	Source     string         `json:"source,omitempty"`
	Origins    []importOrigin `json:"origins"`
	Difference string         `json:"difference,omitempty"`
	Danger     []string       `json:"danger,omitempty"`
	Reason     string         `json:"reason,omitempty"`
	Secrets    []string       `json:"secrets,omitempty"` // names of those moved into the vault
	Notes      []string       `json:"notes,omitempty"`
	Warnings   []string       `json:"warnings,omitempty"`

	entry serverEntry
}

// importing is one run of the command.
type importing struct {
	*invocation
	doc    importDoc
	missed bool // something that was asked for by its name was not read, found or stored
}

func cmdMCPImport(ctx context.Context, c *invocation) error {
	m := &importing{invocation: c}
	apps, err := m.apps()
	if err != nil {
		return err
	}
	if c.given("move-secrets") && c.given("keep-secrets") {
		return usageError("", "--move-secrets and --keep-secrets exclude each other")
	}
	files, found, err := findImports(ctx, importPlace{GOOS: c.goos, Env: c.out.Getenv, Root: c.root}, apps)
	if err != nil {
		return err
	}
	m.doc.Files = orEmpty(files)
	if err := m.classify(ctx, found); err != nil {
		return err
	}
	if err := m.pick(); err != nil {
		return err
	}
	m.tellFiles(apps)
	if !c.json {
		m.list()
	}
	if err = m.bring(ctx); err == nil && m.missed {
		err = errQuiet{exitFailed}
	}
	if !c.json {
		return err
	}
	if _, quiet := err.(errQuiet); err != nil && !quiet {
		first := failure(err).json()
		m.doc.Error = &first
		err = errQuiet{first.Code}
	}
	if werr := writeJSON(c.stdout, m.doc); werr != nil {
		return werr
	}
	return err
}

// apps gives the ids of the apps that were named.
func (m *importing) apps() ([]string, error) {
	known := importApps()
	var out []string
next:
	for _, word := range m.args {
		for i := range known {
			if a := &known[i]; strings.EqualFold(a.ID, word) || strings.EqualFold(a.Title, word) {
				out = append(out, a.ID)
				continue next
			}
		}
		return nil, usageError("the apps are "+strings.Join(appIDs(known), ", ")+"; --server names a server", "no such app: %s", quoteClip(word))
	}
	return out, nil
}

// classify holds what was found against what is stored.
func (m *importing) classify(ctx context.Context, found []*importServer) error {
	rows, err := m.storedEntries(ctx)
	if err != nil {
		return err
	}
	m.doc.Room, m.doc.Servers = max(0, mcpMaxServers-len(rows)), []*foundJSON{}
	same := func(a, b serverEntry) bool {
		return a.Name == b.Name && (sameEntry(a, b) || sameEntry(m.filled(ctx, a), m.filled(ctx, b)))
	}
	for _, s := range found {
		e := fixedPlace(s.Entry, m.out.Dir)
		j := &foundJSON{Name: e.Name, State: importNew, Source: e.Source, Origins: s.Origins, Reason: s.Fault, Notes: s.Notes, Warnings: s.Warnings, entry: e}
		m.doc.Servers = append(m.doc.Servers, j)
		if s.Fault != "" {
			j.State = importUnusable
			continue
		}
		shown := maskedEntry(e)
		j.Transport, j.Command, j.Args, j.Cwd, j.URL = e.Transport, m.redact(shown.Command), shown.Args, e.Cwd, m.redact(shown.URL)
		for i := range j.Args {
			j.Args[i] = m.redact(j.Args[i])
		}
		j.Env, j.Headers = slices.Sorted(maps.Keys(e.Env)), slices.Sorted(maps.Keys(e.Headers))
		if e.Transport == "stdio" {
			j.Danger = spawnConsent(spawnInfo{Argv: spawnArgv(shown, m.goos), Env: j.Env}).Danger
		}
		for _, row := range rows {
			switch {
			case same(row, e):
				j.State = importStored
			case row.Name == e.Name && j.State == importNew:
				j.State, j.Difference = importDiffers, cmp.Or(diffText(shownText(maskedEntry(row), m.goos), shownText(shown, m.goos)), "only values of variables or headers differ")
			case strings.HasPrefix(row.Name, e.Name+"-"+s.Origins[0].App) && same(row, renamed(e, row.Name)): // it came in beside another of its name
				j.Name, j.State, j.Difference = row.Name, importStored, ""
			}
		}
	}
	return nil
}

func renamed(e serverEntry, name string) serverEntry {
	e.Name = name
	return e
}

// filled is an entry with what the vault has for its references, so that one whose secrets were moved equals what it was.
func (m *importing) filled(ctx context.Context, e serverEntry) serverEntry {
	v, err := m.vault(ctx)
	if err != nil {
		return e
	}
	_, display, _ := expandEntry(e, func(string) (string, bool) { return "", false }, func(name string) (string, bool) {
		s, err := v.secretFor(ctx, "", name)
		return s.reveal(), err == nil
	}) // what is not in the vault stays as it is written, which is what is compared
	return display
}

// pick leaves the servers that --server names.
func (m *importing) pick() error {
	names := m.flags["server"]
	if len(names) == 0 {
		return nil
	}
	there, left := map[string]bool{}, []*foundJSON{}
	for _, j := range m.doc.Servers {
		if slices.Contains(names, j.Name) {
			there[j.Name], left, m.missed = true, append(left, j), m.missed || j.State == importUnusable
		}
	}
	for _, name := range names {
		if !there[name] {
			return &cliError{Exit: exitFailed, Message: "no app has a server named " + quoteClip(name), Hint: "tai mcp import --dry-run lists them"}
		}
	}
	m.doc.Servers = left
	return nil
}

// tellFiles says on stderr which files could not be read, and what was said about the others.
func (m *importing) tellFiles(apps []string) {
	read, failed, have := 0, 0, map[string]bool{}
	for _, f := range m.doc.Files {
		m.say(prefixed(f.Path+": ", f.Notes), "note")
		m.say(prefixed(f.Path+": ", f.Warnings), "warning")
		if f.Status != confMissing {
			have[f.App], have[importProject] = true, have[importProject] || f.Project
		}
		switch f.Status {
		case confFailed:
			failed++
			m.say([]string{f.App + ": " + f.Path + " was not read: " + f.Reason}, "warning")
			m.missed = m.missed || len(apps) > 0
		case confRead:
			read++
		}
	}
	m.missed = m.missed || failed > 0 && read == 0
	for _, id := range apps {
		if !have[id] {
			m.say([]string{id + ": no config was found"}, "note")
		}
	}
}

func prefixed(prefix string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = prefix + l
	}
	return out
}

// list prints what was found, each server with what it runs and where it stands.
func (m *importing) list() {
	w := m.stdout
	if len(m.doc.Servers) == 0 {
		fmt.Fprintln(w, "no servers of other apps were found")
	}
	home := m.out.Getenv("HOME")
	for _, j := range m.doc.Servers {
		what := j.Reason
		if j.State != importUnusable {
			if what = j.URL; j.Transport == "stdio" {
				what = quoteLine(spawnArgv(serverEntry{Command: j.Command, Args: j.Args}, m.goos))
			}
			what = j.Transport + "  " + what
		}
		printWrapped(w, visibleLine(j.Name)+"  "+j.State+"  "+visibleLine(what))
		var parts, from []string
		add := func(label string, texts ...string) {
			if text := strings.Join(texts, ", "); text != "" {
				parts = append(parts, label+text)
			}
		}
		for _, o := range j.Origins {
			text := o.App + " " + tildePath(o.File, home)
			if o.Folder != "" && o.Folder != m.root {
				text += " for " + tildePath(o.Folder, home)
			}
			if o.Name != j.Name && j.State != importUnusable {
				text += " as " + o.Name
			}
			if o.Off {
				text += " (off there)"
			}
			from = append(from, text)
		}
		add("from ", from...)
		add("in the folder ", tildePath(j.Cwd, home))
		add("with variables ", j.Env...)
		add("with headers ", j.Headers...)
		add("! dangerous: ", j.Danger...)
		parts = append(parts, prefixed("warning: ", j.Warnings)...)
		if m.given("server") {
			parts = append(parts, prefixed("note: ", j.Notes)...)
		}
		for _, p := range parts {
			printWrapped(w, "  "+visibleLine(m.redact(p)))
		}
		if j.Difference != "" {
			printWrapped(w, "  stored otherwise (- stored, + there):\n    "+strings.ReplaceAll(visible(m.redact(strings.TrimRight(j.Difference, "\n"))), "\n", "\n    "))
		}
	}
}

// tildePath shortens a path below the home folder.
func tildePath(path, home string) string {
	if rest, ok := strings.CutPrefix(path, home+"/"); ok && home != "" {
		return "~/" + rest
	}
	return path
}

// bring stores what is chosen.
func (m *importing) bring(ctx context.Context) error {
	var open []*foundJSON
	for _, j := range m.doc.Servers {
		if j.State == importNew || j.State == importDiffers {
			open = append(open, j)
		}
	}
	if len(open) == 0 || m.given("dry-run") {
		if m.given("dry-run") && !m.json {
			m.tellRoom(open)
		} else if len(m.doc.Servers) > 0 {
			m.say([]string{"nothing new to import; tai mcp add NAME checks and enables what is stored"}, "note")
		}
		return nil
	}
	chosen, err := m.choose(ctx, open)
	if err == nil && len(chosen) == 0 {
		m.say([]string{"nothing was imported"}, "note")
	}
	if err != nil || len(chosen) == 0 {
		return err
	}
	if n := countNew(chosen); n > m.doc.Room {
		return &cliError{Exit: exitFailed, Message: fmt.Sprintf("chosen: %s, and %d fit: %d of %d are stored", plural(n, "new server"), m.doc.Room, mcpMaxServers-m.doc.Room, mcpMaxServers), err: errTooManyServers,
			Hint: "choose fewer, by APP or --server, or make room: tai mcp remove"}
	}
	entries := make([]serverEntry, len(chosen))
	for i, j := range chosen {
		entries[i] = j.entry
	}
	if _, err := m.writableVault(ctx); err != nil {
		return err
	}
	secrets, err := m.moveSecrets(ctx, entries)
	if err != nil {
		return err
	}
	return m.store(ctx, chosen, entries, secrets)
}

func countNew(list []*foundJSON) (n int) {
	for _, j := range list {
		if j.State == importNew {
			n++
		}
	}
	return n
}

// tellRoom says what a run without --dry-run could bring in.
func (m *importing) tellRoom(open []*foundJSON) {
	n := countNew(open)
	fmt.Fprintf(m.stderr, "tai: %s and %d that differ could be imported; there is room for %d (%d of %d are stored)\n", plural(n, "new server"), len(open)-n, m.doc.Room, mcpMaxServers-m.doc.Room, mcpMaxServers)
}

// asks reports whether a person chooses.
func (m *importing) asks() bool {
	return m.console != nil && !m.given("yes") && m.policy.mode() == modePrompt
}

// choose gives the servers to store. Without a person those are the new ones, and of the others the ones named.
func (m *importing) choose(ctx context.Context, open []*foundJSON) ([]*foundJSON, error) {
	if m.asks() {
		return m.ask(ctx, open)
	}
	var chosen []*foundJSON
	for _, j := range open {
		if j.State == importNew || slices.Contains(m.flags["server"], j.Name) {
			chosen = append(chosen, j)
			continue
		}
		m.say([]string{j.Name + " is stored with other content and was left as it is; --yes --server " + quoteWord(j.Name) + " replaces it"}, "note")
	}
	if len(chosen) > 0 && m.policy.mode() == modePrompt && !m.given("yes") {
		return nil, &cliError{Exit: exitRefused, Rule: ruleNobody, Message: "refused (" + ruleNobody + "): " + plural(len(chosen), "server") + " could be imported, and nobody can be asked here",
			Hint: "--yes imports them, --yes --server NAME just one; --dry-run only lists"}
	}
	return chosen, nil
}

// registering says how one server comes in.
func (m *importing) registering(agreed bool) registerOptions {
	return registerOptions{Profile: m.profileWord(), Yes: "--yes", Later: !m.given("enable"), Agreed: agreed}
}

// ask puts the question about each. All takes what is left and new and not dangerous; what differs or is dangerous is asked about all the same.
func (m *importing) ask(ctx context.Context, open []*foundJSON) (chosen []*foundJSON, err error) {
	all := false
	for i, j := range open {
		left := open[i:]
		if j.State == importNew && countNew(chosen) >= m.doc.Room {
			m.say([]string{fmt.Sprintf("there is room for no more: %d servers at most can be stored; %d were not asked about", mcpMaxServers, countNew(left))}, "note")
			break
		}
		unseen := m.given("enable") && len(entryReferences(j.entry)) > 0 // what it would run is not in the list
		if all && j.State == importNew && len(j.Danger) == 0 && !unseen {
			chosen = append(chosen, j)
			continue
		}
		p, err := m.bridge.prepare(ctx, j.entry, m.registering(false))
		if err != nil {
			m.fault(j, err)
			continue
		}
		q, err := m.policy.consentFor(p.request, "")
		if err != nil {
			return nil, err
		}
		for _, o := range j.Origins {
			q.Lines = append(q.Lines, consentLine{Label: "as it stands in", Name: o.App, Text: o.File, Exact: true})
		}
		q.Rule, q.Choices = "", []consentChoice{{choiceYes, "yes"}, {choiceNo, "no"}}
		if rest := len(left) - 1; rest > 0 {
			if !all && countNew(left)+countNew(chosen) <= m.doc.Room {
				q.Choices = append(q.Choices, consentChoice{choiceAlways, fmt.Sprintf("yes, and to the %d left too, but for dangerous and stored ones", rest)})
			}
			q.Choices = append(q.Choices, consentChoice{"q", "no, and no more questions"})
		}
		answer, err := m.console.confirm(ctx, q)
		if err != nil {
			return nil, err
		}
		if answer.Key == "q" {
			break
		}
		if all = all || answer.Key == choiceAlways; answer.Key != choiceNo {
			chosen = append(chosen, j)
		}
	}
	return chosen, nil
}

// fault notes that a server did not come in, and says so.
func (m *importing) fault(j *foundJSON, err error) *cliError {
	ce := failure(err)
	j.State, j.Reason, m.missed = importFault, visible(m.redact(ce.Message)), true
	if !m.json {
		tell(ce, false, m.stdout, m.stderr)
	}
	return ce
}

// store registers the chosen servers. A refusal would meet every other too, so it ends the run.
func (m *importing) store(ctx context.Context, chosen []*foundJSON, entries []serverEntry, secrets map[int][]namedSecret) error {
	done := 0
	for i, j := range chosen {
		o := m.registering(m.asks())
		o.Moved = secrets[i]
		r, err := m.addServer(ctx, entries[i], o)
		if err != nil {
			if ce := m.fault(j, err); ce.Exit == exitRefused || endsAdding(ctx, ce) {
				return errQuiet{ce.Exit}
			}
			continue
		}
		if j.State = r.Status; o.Later {
			j.State = importDone
		}
		for _, s := range secrets[i] {
			j.Secrets = append(j.Secrets, s.Name)
		}
		j.Warnings = append(j.Warnings, r.Warnings...)
		if done++; !m.json {
			if o.Later {
				fmt.Fprintf(m.stdout, "%s: imported, disabled\n", visibleLine(r.Name))
			} else {
				m.printAdded(r)
			}
		}
		m.tellMoved(r.Name, secrets[i])
		m.say(r.Warnings, "warning")
	}
	if done > 0 && !m.given("enable") {
		m.say([]string{"nothing was started; tai mcp add NAME checks a server live and enables it"}, "note")
	}
	return nil
}
