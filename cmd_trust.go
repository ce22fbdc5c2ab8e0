// This file holds the commands for what this workspace lets the tools of MCP servers do: tai mcp trust allow, deny, revoke. What may widen
// asks, what narrows does not. How trust decides is not known here.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

func trustCommands() []command {
	server := flagSpec{Name: "server", Value: "SERVER", Help: "the server; * in it stands for any text"}
	tools := flagSpec{Name: "tools", Value: "TOOL", Help: "a tool by its own name, further ones behind it; * in it stands for any text", Many: true}
	of, named := []flagSpec{server, tools}, "--server SERVER --tools TOOL…"
	exact := flagSpec{Name: "server", Value: "SERVER", Help: "the server"}
	return []command{
		{Path: "mcp trust list", Short: "what this workspace says of MCP servers, and whether it counts", Example: "tai mcp trust list",
			Flags: []flagSpec{{Name: "confirm", Help: "show trust.json as somebody else wrote it, and ask whether it counts"}}, Store: storeThere, Run: cmdTrustList},
		{Path: "mcp trust inspect", Args: "--server SERVER [--tools TOOL…]", Short: "what would happen to a call of each tool, and why", Example: "tai mcp trust inspect --server files --root .",
			Long:  "tai connects, unless --stored is given, and judges each tool as a call by a\nmodel would be: pin, trust, the server's own lists, deny presets, the mode.",
			Flags: []flagSpec{exact, tools, {Name: "stored", Help: "from the vault alone, without connecting"}}, Max: -1, Store: storeThere, Redacts: true, Run: cmdTrustInspect},
		{Path: "mcp trust allow", Args: named, Short: "let only these tools of a server be used in this workspace; asks first", Example: "tai mcp trust allow --tools search fetch --server my-server --root .",
			Long:  "From the first tool that is allowed on, all tools of the server that are not\nallowed are refused here. Trust only narrows: a tool that is allowed still needs\nits grant, and meets denies and the mode.",
			Flags: append(slices.Clone(of), flagSpec{Name: "note", Value: "TEXT", Help: "why, for people"}), Max: -1, Store: storeWrite, Signs: true, Run: cmdTrustAllow},
		{Path: "mcp trust deny", Args: named, Short: "refuse tools of a server in this workspace, in every mode", Example: "tai mcp trust deny --tools 'write_*' --server files",
			Flags: append(slices.Clone(of), flagSpec{Name: "note", Value: "TEXT", Help: "why, for people"}), Max: -1, Store: storeWrite, Signs: true, Run: cmdTrustDeny},
		{Path: "mcp trust revoke", Args: "--server SERVER [--tools TOOL…]", Short: "take back what was allowed or denied; asks where that lets more through", Example: "tai mcp trust revoke --server files --tools 'write_*'",
			Long:  "Without --tools all that the file says of the server is taken back.",
			Flags: of, Max: -1, Store: storeWrite, Signs: true, Run: cmdTrustRevoke},
		{Path: "mcp trust audit", Args: "[--server SERVER] [--tools TOOL…]", Short: "what trust let through and refused in this workspace, from the run logs", Example: "tai mcp trust audit --server files --limit 20",
			Flags: append(slices.Clone(of), flagSpec{Name: "limit", Value: "N", Help: fmt.Sprintf("read at most this many runs, the newest (default %d)", recordListLimit)}), Max: -1, Store: storeRead, Run: cmdTrustAudit},
	}
}

// trustDeed is a change of the file for the run log: d, and what it is about.
func (c *invocation) trustDeed(d deed, server string, tools []string) (deed, error) {
	data, err := json.Marshal(map[string]any{"file": filepath.Join(c.policyFolder(), trustName), "server": server, "tools": orEmpty(tools)})
	d.Subject, d.Data = server, data
	return d, err
}

// trustChange is one change that a command makes to what the file says of a server. Made is what it says then.
type trustChange struct {
	server string
	edit   func(*trustEntry) error
	made   trustEntry
}

// apply is the edit of the whole file. An entry that says nothing any more goes.
func (t *trustChange) apply(now time.Time) func(map[string]trustEntry) error {
	return func(have map[string]trustEntry) error {
		e, ok := have[t.server]
		if !ok {
			e.Created = now.UTC().Format(time.RFC3339)
		}
		if err := t.edit(&e); err != nil {
			return err
		}
		if t.made = e; len(e.Allow)+len(e.Deny) == 0 {
			delete(have, t.server)
			return nil
		}
		have[t.server] = e
		return nil
	}
}

// adding gives the edit that puts tools behind those of a list, and the note where one is given.
func (c *invocation) adding(list func(*trustEntry) *[]string, tools []string) func(*trustEntry) error {
	return func(e *trustEntry) error {
		to := list(e)
		for _, tool := range tools {
			if !slices.Contains(*to, tool) {
				*to = append(*to, tool)
			}
		}
		if c.given("note") {
			e.Note = c.flag("note")
		}
		return nil
	}
}

func trustAllowList(e *trustEntry) *[]string { return &e.Allow }

func trustDenyList(e *trustEntry) *[]string { return &e.Deny }

// trustNamed is trustWords for what needs tools.
func trustNamed(c *invocation) (string, []string, error) {
	server, tools, err := trustWords(c, true)
	if err == nil && len(tools) == 0 {
		err = usageError("--tools NAME…, or --tools '*' for all", "no tool is named")
	}
	if err == nil && len(c.flag("note")) > trustNoteMax {
		err = usageError("", "the note has more than %d bytes", trustNoteMax)
	}
	return server, tools, err
}

func cmdTrustAllow(ctx context.Context, c *invocation) error {
	server, tools, err := trustNamed(c)
	if err != nil {
		return err
	}
	f, err := c.trustFile()
	if err != nil {
		return err
	}
	v, err := c.writableVault(ctx)
	if err != nil {
		return err
	}
	req, err := trustAllowRequest(ctx, v, server, tools, f)
	if err != nil {
		return err
	}
	d, err := c.trustDeed(deed{Kind: "trust-allow"}, server, tools)
	if err != nil {
		return err
	}
	t := trustChange{server: server, edit: c.adding(trustAllowList, tools)}
	err = c.bridge.decided(ctx, req, d, func() (string, error) {
		return "", policyFault(trustName, changeTrust(ctx, v, c.policyFolder(), f.Hash, true, t.apply(c.out.Now())))
	})
	if err != nil {
		return err
	}
	for _, tool := range tools {
		if i := trustMatch(t.made.Deny, tool); i >= 0 {
			fmt.Fprintf(c.stderr, "note: %s stays shut out, the file also denies %s; tai mcp trust revoke lifts that\n", trustShown(tool), trustShown(t.made.Deny[i]))
		}
	}
	c.trustUnknown(ctx, v, server, tools)
	return c.printTrust(t, "allowed", tools)
}

// trustAllowRequest is the question of allow. A file that somebody else wrote is shown with it, since it would come to count.
func trustAllowRequest(ctx context.Context, v *vault, server string, tools []string, f policyFile) (policyRequest, error) {
	req := policyRequest{Tool: "mcp_trust_allow", Title: "let these tools of the server " + trustShown(server) + " through in this workspace?", Destructive: true, Always: true, Person: true,
		Lines: []consentLine{trustLine("the tools", tools)}}
	var have trustEntry
	if f.Trust != nil {
		have = f.Trust.Servers[server]
	}
	if len(have.Allow) > 0 {
		req.Lines = append(req.Lines, trustLine("allowed so far", have.Allow))
	} else {
		req.Lines = append(req.Lines, consentLine{Label: "what else", Text: "all its other tools are refused here from then on"})
	}
	if len(have.Deny) > 0 {
		req.Lines = append(req.Lines, trustLine("denied, also after this", have.Deny))
	}
	if slices.Contains(tools, "*") {
		req.Danger = append(req.Danger, "every tool of the server, also those that it adds later")
	}
	if !f.Known {
		lines, err := policyFileLines(ctx, v, f)
		if err != nil {
			return req, err
		}
		req.Lines = append(req.Lines, lines...)
		req.Danger = append(req.Danger, "somebody else wrote "+trustName+", and what it allows would count too")
	}
	return trustDigest(req, map[string]any{"server": server, "tools": tools, "file": f.Hash})
}

// trustLine shows names one a line. None can look like two.
func trustLine(label string, names []string) consentLine {
	lines := slices.Clone(names)
	for i, name := range lines {
		if strings.ContainsAny(name, "\r\n") {
			lines[i] = strconv.Quote(name)
		}
	}
	return consentLine{Label: label, Text: strings.Join(lines, "\n"), Exact: true}
}

// trustDigest binds the answer to what it is about.
func trustDigest(req policyRequest, about any) (_ policyRequest, err error) {
	if req.Args, err = json.Marshal(about); err != nil {
		return req, err
	}
	req.Digest, err = payloadDigest(req.Tool, req.Args)
	return req, err
}

// trustUnknown tells what of a change fits no server or tool that is known: a slip of the pen narrows nothing.
func (c *invocation) trustUnknown(ctx context.Context, v *vault, server string, tools []string) {
	rows, err := v.serverList(ctx)
	var known []toolRow
	found := false
	for _, row := range rows {
		if globMatch(server, row.Name) && err == nil {
			var list []toolRow
			list, err = v.cachedTools(ctx, row.Name)
			known, found = append(known, list...), true
		}
	}
	switch {
	case err != nil:
		c.sayLine("warning: the servers cannot be read: " + visibleLine(err.Error()))
	case !found:
		fmt.Fprintf(c.stderr, "note: no server that is stored fits %s; tai mcp list shows the names\n", trustShown(server))
	default:
		for _, tool := range tools {
			if !slices.ContainsFunc(known, func(t toolRow) bool { return globMatch(tool, t.Tool) }) {
				fmt.Fprintf(c.stderr, "note: no tool of %s, as last seen, fits %s; tai mcp tools shows the names\n", trustShown(server), trustShown(tool))
			}
		}
	}
}

func cmdTrustDeny(ctx context.Context, c *invocation) error {
	server, tools, err := trustNamed(c)
	if err != nil {
		return err
	}
	v, err := c.writableVault(ctx)
	if err != nil {
		return err
	}
	d, err := c.trustDeed(deed{Kind: "trust-deny"}, server, tools)
	if err != nil {
		return err
	}
	t := trustChange{server: server, edit: c.adding(trustDenyList, tools)}
	err = c.audit.perform(d, func() (string, error) { return "", nil }, func() (string, error) {
		return "", policyFault(trustName, changeTrust(ctx, v, c.policyFolder(), "", false, t.apply(c.out.Now())))
	})
	if err != nil {
		return err
	}
	c.trustUnknown(ctx, v, server, tools)
	return c.printTrust(t, "denied", tools)
}

func cmdTrustRevoke(ctx context.Context, c *invocation) error {
	server, tools, err := trustWords(c, true)
	if err != nil {
		return err
	}
	f, err := c.trustFile()
	if err != nil {
		return err
	}
	have, ok := trustEntry{}, false
	if f.Trust != nil {
		have, ok = f.Trust.Servers[server]
	}
	if !ok {
		return &cliError{Exit: exitFailed, Message: trustName + " says nothing of " + quoteClip(server), Hint: "tai mcp trust list shows what it says", err: errNotFound}
	}
	for _, tool := range tools {
		if !slices.Contains(have.Allow, tool) && !slices.Contains(have.Deny, tool) {
			return &cliError{Exit: exitFailed, Message: fmt.Sprintf("%s neither allows nor denies %s of %s", trustName, quoteClip(tool), quoteClip(server)), Hint: "tai mcp trust list shows what it says, letter by letter", err: errNotFound}
		}
	}
	gone := func(tool string) bool { return len(tools) == 0 || slices.Contains(tools, tool) }
	t := trustChange{server: server, edit: func(e *trustEntry) error {
		if !reflect.DeepEqual(*e, have) {
			return newError("what it says of the server was changed meanwhile")
		}
		e.Allow, e.Deny = slices.DeleteFunc(e.Allow, gone), slices.DeleteFunc(e.Deny, gone)
		return nil
	}}
	if err := c.revokeTrust(ctx, &t, tools, trustLifted(server, have, gone)); err != nil {
		return err
	}
	return c.printTrust(t, "revoked", tools)
}

// trustLifted says what would be let through without what gone takes away, nil where nothing would.
func trustLifted(server string, have trustEntry, gone func(string) bool) (lines []consentLine) {
	var denies []string
	for _, tool := range have.Deny {
		if gone(tool) {
			denies = append(denies, tool)
		}
	}
	if len(denies) > 0 {
		lines = append(lines, trustLine("no longer refused", denies))
	}
	if len(have.Allow) > 0 && !slices.ContainsFunc(have.Allow, func(tool string) bool { return !gone(tool) }) {
		lines = append(lines, trustLine("no tool of "+trustShown(server)+" is refused any more for not being one of these", have.Allow))
	}
	return lines
}

// revokeTrust makes the change, after a question where lifted is not empty.
func (c *invocation) revokeTrust(ctx context.Context, t *trustChange, tools []string, lifted []consentLine) error {
	v, err := c.writableVault(ctx)
	if err != nil {
		return err
	}
	d, err := c.trustDeed(deed{Kind: "trust-revoke"}, t.server, tools)
	if err != nil {
		return err
	}
	change := func() (string, error) {
		return "", policyFault(trustName, changeTrust(ctx, v, c.policyFolder(), "", false, t.apply(c.out.Now())))
	}
	if len(lifted) == 0 {
		return c.audit.perform(d, func() (string, error) { return "", nil }, change)
	}
	req := policyRequest{Tool: "mcp_trust_revoke", Title: "let more of the server " + trustShown(t.server) + " through in this workspace?", Destructive: true, Always: true, Person: true, Lines: lifted}
	if req, err = trustDigest(req, map[string]any{"server": t.server, "tools": orEmpty(tools)}); err != nil {
		return err
	}
	return c.bridge.decided(ctx, req, d, change)
}

// printTrust tells what the file says of a server after a change.
func (c *invocation) printTrust(t trustChange, state string, tools []string) error {
	what := strings.Join(trustShownAll(tools), ", ")
	if len(tools) == 0 {
		what = "all that it said"
	}
	doc := struct {
		trustJSON
		State string `json:"state"`
	}{trustJSONOf(t.server, t.made, true), state}
	return c.done(doc, "%s: %s %s\n%s", trustShown(t.server), state, what, visible(c.redact(doc.line())))
}
