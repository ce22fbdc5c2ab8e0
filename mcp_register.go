// This file brings a server in: it shows what will run, asks, verifies live, and stores server, profile row, pins and tools at
// once. It also holds what a start runs against what was agreed to. It parses no pasted text.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// registerOptions says for whom and on whose word a server comes in.
type registerOptions struct {
	Profile string // "" means the current one
	Parent  string // audit id of the call that caused it
	Digest  string // of the mcp_add call that it is, "" for a command
	Yes     string // what answers the question in its place, for the refusal's hint

	Found string // where the entry was found, if not in what the person pasted
	Doubt string // why a person should look at it twice

	Moved []namedSecret // secrets that come in with the entry, which refers to them by these names

	Later  bool // it is stored disabled, unchecked and without tools: its first start asks, and its tools wait to be granted
	Agreed bool // a person was shown the question of this registration and said yes

	// Waiting is told when the live check begins; what it gives is called when that ended. nil: nobody shows it.
	Waiting func() (done func() bool)
}

// registered is what came of one entry.
type registered struct {
	Name     string
	Status   string // enabled, disabled, or login: stored without tools until someone logs in
	Profile  string
	Tools    []listedTool
	Warnings []string
	Hint     string
}

// register consents, verifies live and stores one entry. A refusal is an error of type *refusedError.
func (b *mcpBridge) register(ctx context.Context, e serverEntry, o registerOptions) (registered, error) {
	r, err := b.registerAudited(ctx, e, o)
	if err != nil {
		return r, errorf("mcp server %s: %w", quoteClip(e.Name), b.cleanError(err))
	}
	return r, nil
}

// refusedError is a refusal by policy, consent or pin: the rule, and what would allow just this.
type refusedError struct{ Rule, Reason, Hint string }

func (e *refusedError) Error() string { return "refused (" + e.Rule + "): " + e.Reason }

func (b *mcpBridge) registerAudited(ctx context.Context, e serverEntry, o registerOptions) (r registered, err error) {
	p, err := b.prepare(ctx, e, o)
	if err != nil {
		return registered{}, err
	}
	own := p.secrets()
	err = b.decided(ctx, p.request, deed{Kind: "mcp-register", Subject: e.Name, Parent: o.Parent, Data: serverIdentity(maskedEntry(e))}, func() (string, error) {
		if o.Waiting != nil {
			defer o.Waiting()()
		}
		r, err = b.verifyAndStore(ctx, p)
		return r.Status, maskError(err, own.text)
	})
	return r, err
}

// decided asks the policy and, if it allows, does the act, with the run log around both. A refusal is a *refusedError.
//
//go:noinline for size: it is called in many places
func (b *mcpBridge) decided(ctx context.Context, req policyRequest, d deed, do func() (outcome string, err error)) error {
	return b.cfg.Audit.perform(d, func() (string, error) {
		answer, err := b.cfg.Policy.approve(ctx, req)
		if err == nil && !answer.Allow {
			err = &refusedError{Rule: answer.Rule, Reason: answer.Reason, Hint: answer.Hint}
		}
		return answer.Rule, err
	}, do)
}

// registration is an entry on its way in.
type registration struct {
	entry, expanded serverEntry
	Moved           []namedSecret
	profile         string
	later           bool
	old             *serverRow
	shown           string // what the person agrees to, without secrets
	request         policyRequest
}

// secrets gives what masks those of the entry, which are not stored yet, so that nobody else knows them.
func (p registration) secrets() *redactor {
	return newRedactor(append(entrySecrets(p.expanded), p.Moved...))
}

// prepare checks an entry, expands it and lays out what is to be agreed to.
func (b *mcpBridge) prepare(ctx context.Context, e serverEntry, o registerOptions) (registration, error) {
	e = fixedPlace(e, b.cfg.Dir)
	p := registration{entry: e, profile: o.Profile, Moved: o.Moved, later: o.Later}
	if err := goodServerName(e.Name); err != nil {
		return p, err
	}
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return p, err
	}
	if p.profile == "" {
		if p.profile, err = b.cfg.Profile(ctx); err != nil {
			return p, err
		}
	} else if list, err := v.profiles(ctx); err != nil {
		return p, err
	} else if !slices.ContainsFunc(list, func(x profileInfo) bool { return x.Name == p.profile }) {
		return p, errorf("no such profile: %s", quoteClip(p.profile))
	}
	rows, err := v.servers(ctx)
	if err != nil {
		return p, err
	}
	if i := slices.IndexFunc(rows, func(r serverRow) bool { return r.Name == e.Name }); i >= 0 {
		p.old = &rows[i]
	} else if len(rows) >= mcpMaxServers {
		return p, errorf("%w: %d are registered; tai mcp remove one first", errTooManyServers, len(rows))
	}
	shown := maskedEntry(e)
	if p.expanded = e; !o.Later { // else its references need no value yet
		if p.expanded, err = b.expand(ctx, e, p.Moved...); err != nil {
			return p, err
		}
		if shown, err = b.shownEntry(ctx, e, p.Moved...); err != nil {
			return p, err
		}
	}
	p.shown = shownText(shown, b.cfg.GOOS)
	before := ""
	if p.old != nil {
		was, err := b.shownEntry(ctx, p.old.serverEntry)
		if o.Later {
			was = maskedEntry(p.old.serverEntry)
		} else if err != nil {
			was = p.old.serverEntry // its references may have no value any more
		}
		before = shownText(was, b.cfg.GOOS)
	}
	p.request = b.startRequest(shown, p.profile, before, cmp.Or(o.Yes, "--yes"))
	if p.request.Agreed = o.Agreed; o.Later {
		p.request.Title = "import the server " + strconv.Quote(e.Name) + ", disabled? Nothing is started."
	}
	if o.Found != "" {
		p.request.Lines = append(p.request.Lines, consentLine{Label: "found in", Text: o.Found, Exact: true, Quoted: true})
	}
	if o.Doubt != "" {
		p.request.Danger = append(p.request.Danger, o.Doubt)
	}
	if p.request.Digest = o.Digest; o.Digest == "" {
		if p.request.Digest, err = deedDigest("mcp_add", e); err != nil {
			return p, err
		}
	}
	return p, nil
}

// fixedPlace ties an entry's folder, and a command that is named by a path, to the folder dir in which the entry comes in: from
// another folder the same words would start another program, which nobody agreed to (CFG-02).
func fixedPlace(e serverEntry, dir string) serverEntry {
	if e.Transport != "stdio" {
		return e
	}
	if e.Cwd != "" && !filepath.IsAbs(e.Cwd) {
		e.Cwd = filepath.Join(dir, e.Cwd)
	}
	// What begins with a reference says only at the start where it is; a ~ is a name.
	outside := filepath.IsAbs(e.Command) || strings.HasPrefix(e.Command, "$") || strings.HasPrefix(e.Command, "~")
	if e.Command != "" && filepath.Base(e.Command) != e.Command && !outside {
		e.Command = filepath.Join(cmp.Or(e.Cwd, dir), e.Command)
	}
	return e
}

// anchorEntry binds an entry whose command line names something in the folder dir to that folder, so that what was agreed to means the same
// wherever tai runs later. It gives the note about it, "" where there is nothing to bind. A folder of its own is in dir too.
func anchorEntry(e *serverEntry, dir string) string {
	if e.Transport != "stdio" || dir == "" || filepath.IsAbs(e.Cwd) {
		return ""
	}
	if e.Cwd != "" {
		e.Cwd = filepath.Join(dir, e.Cwd)
		return ""
	}
	for _, word := range slices.Concat([]string{e.Command}, e.Args) {
		named := word == "." || word == ".." || strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../")
		if !named && (word == "" || filepath.IsAbs(word) || word[0] == '-' || word == e.Command) {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, word)); err != nil && !named {
			continue
		}
		e.Cwd = dir
		return fmt.Sprintf("%s will run in %s, because %q is relative to it", visibleLine(e.Name), visibleLine(dir), visibleLine(word))
	}
	return ""
}

// deedDigest is the number of a deed that a person asked for by a command: the payload digest of what it is about.
func deedDigest(deed string, about any) (string, error) {
	args, err := json.Marshal(about)
	if err != nil {
		return "", errorf("digest of %s: %w", deed, err)
	}
	return payloadDigest(deed, args)
}

// startRequest is the question whether an entry may be started or dialled, exactly as shown. before, if not empty and other
// than it, is what was agreed to earlier: then the difference is shown too.
func (b *mcpBridge) startRequest(shown serverEntry, profile, before, yes string) policyRequest {
	was := ""
	if now := shownText(shown, b.cfg.GOOS); before != "" && before != now {
		was = diffText(before, now)
	}
	var c consent
	if shown.Transport == "http" {
		c = dialConsent(dialInfo{Server: shown.Name, Profile: profile, URL: shownAddress(shown), Headers: slices.Collect(maps.Keys(shown.Headers)), Was: was})
	} else {
		c = spawnConsent(spawnInfo{Server: shown.Name, Profile: profile, Argv: spawnArgv(shown, b.cfg.GOOS), Cwd: shown.Cwd, Env: slices.Collect(maps.Keys(shown.Env)), Was: was})
	}
	return policyRequest{Tool: "mcp_add", Title: c.Title, Server: shown.Name, Destructive: true, Always: true, Yes: yes, Lines: c.Lines, Danger: c.Danger}
}

// verifyAndStore connects with a fresh connection and stores what it found. Nothing is stored when the server cannot be used,
// but for one that wants a login.
func (b *mcpBridge) verifyAndStore(ctx context.Context, p registration) (registered, error) {
	r := registered{Name: p.entry.Name, Profile: p.profile, Status: statusEnabled}
	if p.entry.Enabled != nil && !*p.entry.Enabled {
		r.Status = statusDisabled
	}
	var list toolList
	var err error
	if p.later {
		r.Status, r.Warnings = statusDisabled, argumentSecrets(p.entry)
		if _, err := b.expand(ctx, p.entry, p.Moved...); err != nil {
			r.Warnings = append(r.Warnings, "it cannot be started yet: "+err.Error())
		}
	} else {
		list, err = b.look(ctx, p.expanded, b.tokens(p.expanded, p.profile))
	}
	if he, ok := errors.AsType[*mcpHTTPError](err); ok && he.Status == 401 {
		if ownCredential(p.entry) {
			return r, &credentialsError{err}
		}
		r.Status = statusLogin
		r.Hint = "the server wants a login; it is stored disabled, without tools: tai mcp login " + quoteWord(p.entry.Name) + " or mcp_login"
	} else if err != nil {
		return r, err
	}
	return b.storeFound(ctx, p, list, r)
}

// storeFound judges the live list and stores the server with what was found.
func (b *mcpBridge) storeFound(ctx context.Context, p registration, list toolList, r registered) (registered, error) {
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return r, err
	}
	var rows []toolRow
	if r.Status != statusLogin && !p.later {
		if rows, err = b.registerTools(ctx, v, p, list, &r); err != nil {
			return r, err
		}
	}
	if err := v.putServer(ctx, p.entry, p.profile, r.Status == statusEnabled, rows, mcpMaxServers, p.Moved...); err != nil {
		return r, err
	}
	b.cfg.Changed()
	agreed := sha256Hex([]byte(p.shown))
	if p.later {
		agreed = "" // to store it was agreed to, and not to start it
	}
	if err := v.setSetting(ctx, shownSetting(p.entry.Name), agreed); err != nil {
		return r, err
	}
	if err := v.setLogin(ctx, p.entry.Name, r.Status == statusLogin); err != nil {
		return r, err
	}
	return r, b.forget(p.entry.Name)
}

// look connects once, lists, and closes: the live check before anything is stored.
func (b *mcpBridge) look(ctx context.Context, expanded serverEntry, tokens tokenGiver) (toolList, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.cfg.Connect, errConnectTimeout)
	defer cancel()
	client, err := b.dialClient(ctx, expanded, tokens)
	if err != nil {
		return toolList{}, err
	}
	list, err := client.listTools(ctx)
	list.Warnings = append(list.Warnings, client.noise()...)
	return list, joinErrors(err, client.close())
}

// registerTools judges the live list. A new server's tools are granted by the consent it came in with; those of a server that
// is the same as before keep their pins, so that adding it again grants nothing that changed.
func (b *mcpBridge) registerTools(ctx context.Context, v *vault, p registration, list toolList, r *registered) ([]toolRow, error) {
	r.Warnings = append(argumentSecrets(p.entry), list.Warnings...)
	if list.Incomplete != "" {
		r.Warnings = append(r.Warnings, "the tool list is incomplete: "+list.Incomplete)
	}
	granted := grantAll(p.entry, list.Tools)
	if p.old != nil && string(serverIdentity(p.old.serverEntry)) == string(serverIdentity(p.entry)) {
		login, err := v.wantsLogin(ctx, p.entry.Name)
		if err != nil {
			return nil, err
		}
		agreed, err := v.setting(ctx, shownSetting(p.entry.Name))
		if err != nil && !errors.Is(err, errNotFound) {
			return nil, err
		}
		if !login && agreed != "" { // else none of its tools was ever seen: it wanted a login, or was imported
			rows, err := v.cachedTools(ctx, p.entry.Name)
			if err != nil {
				return nil, err
			}
			granted = without(rows, func(t toolRow) bool { return t.Hash == "" })
		}
	}
	tools, _ := judgeTools(p.entry, list.Tools, granted)
	own := p.secrets()
	mask := func(s string) string { return own.text(b.cfg.Redact(s)) }
	dropSecretNames(tools, mask)
	trust, err := b.trust(ctx)
	if err != nil {
		return nil, err
	}
	settle(tools, p.entry.Name, trust)
	r.Tools = tools
	var rows []toolRow
	for _, t := range tools {
		switch {
		case t.State == stateUnusable:
			r.Warnings = append(r.Warnings, fmt.Sprintf("tool %s: %s", quoteClip(t.Name), t.Reason))
		case t.State == stateWithheld && t.Was != nil:
			rows = append(rows, *t.Was)
		case t.State == stateWithheld:
			row := t.pinRow(mask)
			row.Hash = ""
			rows = append(rows, row)
		default:
			rows = append(rows, t.pinRow(mask))
		}
		if t.Warn != "" {
			r.Warnings = append(r.Warnings, fmt.Sprintf("tool %s: %s", quoteClip(t.Name), t.Warn))
		}
	}
	return rows, nil
}

func grantAll(e serverEntry, list []toolDef) []toolRow {
	identity := serverIdentity(e)
	rows := make([]toolRow, 0, len(list))
	for _, def := range list {
		if def.Fault != "" {
			continue
		}
		if hash, err := pinHash(identity, def); err == nil { // one without a hash is judged unusable, with the reason
			rows = append(rows, toolRow{Tool: def.Name, Description: def.Description, Schema: sentSchema(def), Hash: hash})
		}
	}
	return rows
}

// credentialsError is a 401 for an entry that sends its own Authorization: a login would not help.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string {
	return "the server refuses the entry's own Authorization header (" + e.err.Error() + ")"
}

func (e *credentialsError) Unwrap() error { return e.err }

// argumentSecrets warns of each secret of an entry on a command line or in an address (R9): other programs of the machine can read a
// command line, and logs on the way an address, whether the value comes from the vault or not. It names the place and never shows it.
func argumentSecrets(e serverEntry) []string {
	var args, address []string
	for _, t := range entryTokens(e) {
		if name := t.Where; t.Clear && t.Field == "url" {
			address = append(address, name)
		} else if t.Clear {
			args = append(args, name)
		}
	}
	for _, ref := range entryReferences(e) {
		if secretName(ref.Name) && strings.HasPrefix(ref.Field, "args[") {
			args = append(args, quoteClip(ref.Name))
		} else if secretName(ref.Name) && ref.Field == "url" {
			address = append(address, quoteClip(ref.Name))
		}
	}
	var out []string
	for _, p := range args {
		out = append(out, "the value of "+p+" stands in the clear on the server's command line, where other programs of this machine can read it (ps), from the vault too; use a variable (env) if the server takes one")
	}
	for _, p := range address {
		out = append(out, "the value of "+p+" stands in the clear in the server's address, which logs on the way keep, from the vault too; use a header if the server takes one")
	}
	return out
}

// shownEntry expands an entry for a person's eyes: what comes from the vault, or from a variable that is named like a secret,
// stands as its name. The same text is what later starts are held against, so that a new token asks nothing and a new argument does.
func (b *mcpBridge) shownEntry(ctx context.Context, e serverEntry, moved ...namedSecret) (serverEntry, error) {
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return serverEntry{}, err
	}
	var fault error
	env := func(name string) (string, bool) {
		value, ok := b.cfg.Env(name)
		if ok && value != "" && secretName(name) {
			value = "[env:" + name + "]"
		}
		return value, ok
	}
	shown, _, err := expandEntry(e, env, func(name string) (string, bool) {
		if _, ok := movedSecret(moved, name); ok {
			return "[secret:" + name + "]", true
		}
		s, err := v.secretFor(ctx, "", name)
		if err != nil && !errors.Is(err, errNotFound) {
			fault = err
		}
		if err == nil && s.reveal() != "" {
			return "[secret:" + name + "]", true
		}
		return "", err == nil
	})
	if shown.Transport == "stdio" && shown.Cwd == "" && namesFile(shown.Args, b.cfg.Dir) {
		shown.Cwd = b.cfg.Dir
	}
	return shown, joinErrors(fault, err)
}

// namesFile reports arguments one of which is the path of a file in dir, as in node server.js: then the folder decides which
// program runs, and is a part of what is agreed to (CFG-02).
func namesFile(args []string, dir string) bool {
	return dir != "" && slices.ContainsFunc(args, func(a string) bool {
		if filepath.IsAbs(a) || !strings.ContainsAny(a, `./\`) {
			return false
		}
		info, err := os.Stat(filepath.Join(dir, a))
		return err == nil && info.Mode().IsRegular()
	})
}

// shownText lays out what a start runs or a dial reaches, one part a line.
func shownText(e serverEntry, goos string) string {
	var lines []string
	if e.Transport == "http" {
		lines = append(lines, "url: "+e.URL)
		for _, k := range slices.Sorted(maps.Keys(e.Headers)) {
			lines = append(lines, "header: "+k)
		}
	} else {
		for i, a := range spawnArgv(e, goos) {
			lines = append(lines, fmt.Sprintf("argv[%d]: %s", i, visibleLine(a)))
		}
		for _, k := range slices.Sorted(maps.Keys(e.Env)) {
			lines = append(lines, "env: "+k)
		}
		lines = append(lines, "cwd: "+visibleLine(e.Cwd))
	}
	return strings.Join(lines, "\n")
}

func shownSetting(server string) string { return "mcp-shown:" + server }

// sameArgv asks again when what would run is not what was agreed to: references in the entry that now mean something else, or
// an entry that came in without a consent.
func (b *mcpBridge) sameArgv(ctx context.Context, stored serverEntry) error {
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return err
	}
	shown, err := b.shownEntry(ctx, stored)
	if err != nil {
		return err
	}
	text := sha256Hex([]byte(shownText(shown, b.cfg.GOOS)))
	agreed, err := v.setting(ctx, shownSetting(stored.Name))
	if err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	if agreed == text {
		return nil
	}
	req := b.startRequest(shown, "", "", "tai mcp add "+quoteWord(stored.Name))
	return b.decided(ctx, req, deed{Kind: "mcp-start", Subject: stored.Name}, func() (string, error) {
		return "", v.setSetting(ctx, shownSetting(stored.Name), text)
	})
}

// checked is what tai mcp check found.
type checked struct {
	Tools    []listedTool
	Warnings []string
	Partial  string
	Version  string
	Took     time.Duration
}

// check connects and judges the live list anew. It changes no pin.
func (b *mcpBridge) check(ctx context.Context, server string) (checked, error) {
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return checked{}, err
	}
	row, err := v.server(ctx, server)
	if errors.Is(err, errNotFound) {
		return checked{}, errorf("%w as %s", errServerUnknown, quoteClip(server))
	}
	if err != nil {
		return checked{}, err
	}
	begin := b.cfg.Now()
	if err := b.forget(server); err != nil {
		return checked{}, err
	}
	view, tools, err := b.open(ctx, row, true)
	if err != nil {
		return checked{}, b.cleanError(err)
	}
	return checked{Tools: tools, Warnings: view.warnings, Partial: view.partial, Version: view.client.version(), Took: b.cfg.Now().Sub(begin)}, nil
}

// grant shows the difference of each named tool, asks once, and pins them as they are now. It gives the tools that were granted.
func (b *mcpBridge) grant(ctx context.Context, server string, names []string) ([]string, error) {
	found, err := b.check(ctx, server)
	if err != nil {
		return nil, err
	}
	var rows []toolRow
	var lines []consentLine
	var danger []string
	for _, name := range names {
		i := slices.IndexFunc(found.Tools, func(t listedTool) bool { return t.Name == name })
		if i < 0 {
			return nil, errorf("%w on %s: %s", errNoSuchTool, quoteClip(server), quoteClip(name))
		}
		switch t := found.Tools[i]; t.State {
		case stateUnusable:
			return nil, errorf("tool %s cannot be granted: %s", quoteClip(name), t.Reason)
		case stateWithheld:
			rows = append(rows, t.pinRow(b.cfg.Redact))
			lines = append(lines, consentLine{Label: t.Reason, Name: t.Name, Text: t.toolDiff(), Exact: true})
			if n := hiddenCount(t.Name) + hiddenCount(t.Description) + hiddenCount(string(sentSchema(t.toolDef))); n > 0 {
				danger = append(danger, fmt.Sprintf("hidden or control characters in %s: %d, written out here", strconv.Quote(t.Name), n))
			}
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return nil, err
	}
	granted := make([]string, 0, len(rows))
	for _, row := range rows {
		granted = append(granted, row.Tool)
	}
	digest, err := deedDigest("mcp_grant", map[string]any{"server": server, "tools": granted})
	if err != nil {
		return nil, err
	}
	req := policyRequest{Tool: "mcp_grant", Digest: digest, Title: "approve these tools of the server " + strconv.Quote(server) + " as they are now?", Server: server, Destructive: true, Always: true, Yes: "--yes", Lines: lines, Danger: danger}
	return granted, b.decided(ctx, req, deed{Kind: "mcp-grant", Subject: server}, func() (string, error) {
		return "", joinErrors(v.grantTools(ctx, server, rows), b.forget(server))
	})
}

// remove asks, then deletes a server with everything that hangs on it, in every profile.
func (b *mcpBridge) remove(ctx context.Context, server, yes string) error {
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return err
	}
	row, err := v.server(ctx, server)
	if errors.Is(err, errNotFound) {
		return errorf("%w as %s", errServerUnknown, quoteClip(server))
	}
	if errors.Is(err, errSealBroken) { // removing it is the way out
		var rows []serverRow
		rows, err = v.serverList(ctx)
		row = rows[max(0, slices.IndexFunc(rows, func(r serverRow) bool { return r.Name == server }))]
	}
	if err != nil {
		return err
	}
	shown := shownText(row.serverEntry, b.cfg.GOOS)
	digest, err := deedDigest("mcp_remove", map[string]string{"server": server})
	if err != nil {
		return err
	}
	req := policyRequest{Tool: "mcp_remove", Digest: digest, Title: "remove the server " + strconv.Quote(server) + " with its profile rows, pins and tokens?", Server: server, Destructive: true, Always: true, Yes: yes,
		Lines: []consentLine{{Label: "it is", Text: shown, Exact: true}}}
	return b.decided(ctx, req, deed{Kind: "mcp-remove", Subject: server}, func() (string, error) {
		if err := v.removeServer(ctx, server); err != nil {
			return "", err
		}
		return "", joinErrors(v.setSetting(ctx, shownSetting(server), ""), v.setLogin(ctx, server, false), b.forget(server))
	})
}
