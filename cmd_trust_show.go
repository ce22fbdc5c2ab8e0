// This file holds the commands that show what this workspace says of MCP servers and what came of it: tai mcp trust list, inspect, audit.
// They change nothing but what a person confirms.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// trustWords reads --server, and --tools with the words that follow. With need both must be given.
func trustWords(c *invocation, need bool) (server string, tools []string, err error) {
	server = c.flag("server")
	if server == "" && (need || c.given("server")) {
		hint := "--server NAME; tai mcp list shows the names"
		if len(c.args) > 0 {
			hint = "--server " + quoteWord(c.args[0])
		}
		return "", nil, usageError(hint, "no server is named")
	}
	for _, tool := range slices.Concat(c.flags["tools"], c.args) {
		if tool == "" {
			return "", nil, usageError("--tools '*' stands for all", "a tool has no name")
		}
		if !slices.Contains(tools, tool) {
			tools = append(tools, tool)
		}
	}
	if len(c.args) > 0 && !c.given("tools") {
		return "", nil, usageError("--tools "+quoteWord(c.args[0]), "%s stands without --tools", quoteClip(c.args[0]))
	}
	return server, tools, nil
}

// trustFile reads the workspace's trust.json.
func (c *invocation) trustFile() (policyFile, error) {
	f, err := readTrust(c.policyFolder(), c.trustedFile)
	return f, policyFault(trustName, err)
}

// trustJSON is what the file says of one server. Counts: its allow list does, or it has none.
type trustJSON struct {
	Server  string   `json:"server"`
	Allow   []string `json:"allow"`
	Deny    []string `json:"deny"`
	Note    string   `json:"note,omitempty"`
	Created string   `json:"created,omitempty"`
	Counts  bool     `json:"counts"`
}

//go:noinline for size: it is called in many places
func trustJSONOf(server string, e trustEntry, confirmed bool) trustJSON {
	return trustJSON{server, orEmpty(e.Allow), orEmpty(e.Deny), e.Note, e.Created, confirmed || len(e.Allow) == 0}
}

// line says it in words.
func (t trustJSON) line() string {
	var parts []string
	if len(t.Allow) > 0 {
		part := "  allows only " + strings.Join(trustShownAll(t.Allow), ", ")
		if !t.Counts {
			part += " (does not count: nothing is allowed)"
		}
		parts = append(parts, part)
	}
	if len(t.Deny) > 0 {
		parts = append(parts, "  denies "+strings.Join(trustShownAll(t.Deny), ", "))
	}
	if len(parts) == 0 {
		return "  nothing is said of it"
	}
	if t.Note != "" {
		parts = append(parts, "  note: "+visibleLine(t.Note))
	}
	if t.Created != "" {
		parts = append(parts, "  since "+visibleLine(t.Created))
	}
	return strings.Join(parts, "\n")
}

//go:noinline for size: it is called in many places
func trustShownAll(list []string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		out = append(out, trustShown(s))
	}
	return out
}

func cmdTrustList(ctx context.Context, c *invocation) error {
	f, err := c.trustFile()
	if err != nil {
		return err
	}
	if c.given("confirm") && !f.Known {
		if err := c.confirmFiles(ctx, []policyFile{f}, deed{Kind: "trust-confirm"}); err != nil {
			return err
		}
		if f, err = c.trustFile(); err != nil {
			return err
		}
	}
	doc := struct {
		Path    string      `json:"path"`
		Counts  bool        `json:"counts"`
		Servers []trustJSON `json:"servers"`
	}{f.Path, f.Known, []trustJSON{}}
	for _, name := range f.Trust.names() {
		doc.Servers = append(doc.Servers, trustJSONOf(name, f.Trust.Servers[name], f.Known))
	}
	if c.json {
		return writeJSON(c.stdout, doc)
	}
	for _, s := range doc.Servers {
		fmt.Fprintf(c.stdout, "%s\n%s\n", trustShown(s.Server), visible(c.redact(s.line())))
	}
	if len(doc.Servers) == 0 {
		fmt.Fprintln(c.stdout, "this workspace says nothing of any MCP server; tai mcp trust allow and deny do")
	}
	return nil
}

// inspected is what would happen to a call of one tool. State is that of lists; Rule and Reason say what decides.
type inspected struct {
	Tool     string    `json:"tool"`
	State    toolState `json:"state"`
	Decision string    `json:"decision"`
	Rule     string    `json:"rule"`
	Reason   string    `json:"reason,omitempty"`
	Hint     string    `json:"hint,omitempty"`
	Trust    string    `json:"trust,omitempty"` // the rule of trust that fits, also where another decides
}

func cmdTrustInspect(ctx context.Context, c *invocation) error {
	server, patterns, err := trustWords(c, true)
	if err != nil {
		return err
	}
	f, err := c.trustFile()
	if err != nil {
		return err
	}
	listed, err := c.inspectList(ctx, server)
	if err != nil {
		return err
	}
	for _, p := range patterns {
		if !strings.Contains(p, "*") && !slices.ContainsFunc(listed, func(t listedTool) bool { return t.Name == p }) {
			return errorf("%w on %s: %s", errNoSuchTool, quoteClip(server), quoteClip(p))
		}
	}
	doc := struct {
		Server string      `json:"server"`
		Counts bool        `json:"counts"`
		Trust  []trustJSON `json:"trust"`
		Tools  []inspected `json:"tools"`
	}{server, f.Known, []trustJSON{}, []inspected{}}
	for _, name := range f.Trust.fitting(server) {
		doc.Trust = append(doc.Trust, trustJSONOf(name, f.Trust.Servers[name], f.Known))
	}
	for _, t := range listed {
		if len(patterns) > 0 && trustMatch(patterns, t.Name) < 0 {
			continue
		}
		got, err := c.inspect(ctx, server, t)
		if err != nil {
			return err
		}
		got.Trust = f.Trust.judge(server, t.Name).Rule
		doc.Tools = append(doc.Tools, got)
	}
	if c.json {
		return writeJSON(c.stdout, doc)
	}
	for _, s := range doc.Trust {
		fmt.Fprintf(c.stdout, "%s in %s\n%s\n", trustShown(s.Server), visibleLine(f.Path), visible(c.redact(s.line())))
	}
	if len(doc.Trust) == 0 {
		fmt.Fprintf(c.stdout, "this workspace says nothing of %s\n", visibleLine(server))
	}
	for _, t := range doc.Tools {
		fmt.Fprintf(c.stdout, "%s  %s (%s)", visibleLine(clip(t.Tool, mcpNameMax)), t.Decision, visibleLine(t.Rule))
		if t.Reason != "" {
			fmt.Fprintf(c.stdout, ": %s", visibleLine(c.redact(t.Reason)))
		}
		if t.Trust != "" && t.Trust != t.Rule {
			fmt.Fprintf(c.stdout, "  [%s]", visibleLine(t.Trust))
		}
		fmt.Fprintln(c.stdout)
	}
	return nil
}

// inspectList gives the tools of a server: as they are now, or as last seen where it is not enabled or --stored is given.
func (c *invocation) inspectList(ctx context.Context, server string) ([]listedTool, error) {
	row, err := c.bridge.enabledServer(ctx, server, "")
	off := errors.Is(err, errNotEnabled)
	if off {
		v, fault := c.vault(ctx)
		if fault != nil {
			return nil, fault
		}
		row, err = v.server(ctx, server)
	}
	switch {
	case err != nil:
		return nil, err
	case off || c.given("stored"):
		return c.bridge.storedList(ctx, row)
	}
	return c.bridge.liveList(ctx, row)
}

// inspect judges a call of a tool as a model would make it, without arguments.
func (c *invocation) inspect(ctx context.Context, server string, t listedTool) (inspected, error) {
	ref := toolRef{server, t.Name}
	f, err := c.bridge.foreseeTool(ctx, ref, toolCall{Origin: c.origin, Profile: c.profileWord()})
	if err != nil {
		return inspected{}, err
	}
	if t.State == stateWithheld || t.State == stateUnusable { // the live list knows more than the vault
		r := refuseTool(ref, bridgeTool{State: t.State, Reason: t.Reason})
		f.Decision, f.Rule, f.Reason, f.Hint = forecastDeny, r.Rule, strings.TrimPrefix(r.Text, "refused ("+r.Rule+"): "), r.Hint
	}
	return inspected{Tool: t.Name, State: t.State, Decision: f.Decision, Rule: f.Rule, Reason: f.Reason, Hint: f.Hint}, nil
}

// trustEvent is one line of tai mcp trust audit: a call that trust decided about, or a change of the file.
type trustEvent struct {
	Time   string   `json:"time"`
	Run    string   `json:"run"`
	Call   string   `json:"call"`
	What   string   `json:"what"` // let through, refused, or the kind of a change
	Server string   `json:"server,omitempty"`
	Tools  []string `json:"tools,omitempty"`
	Rule   string   `json:"rule,omitempty"`
}

// What trust audit says of a call.
const (
	trustLet     = "let through"
	trustRefused = "refused"
)

func cmdTrustAudit(ctx context.Context, c *invocation) error {
	server, tools, err := trustWords(c, false)
	if err != nil {
		return err
	}
	limit, err := c.limit(recordListLimit)
	if err != nil {
		return err
	}
	runs, total, err := listAudit(nil, limit, c.auditFolders()...)
	if err != nil {
		return err
	}
	events := []trustEvent{}
	keep := func(e trustEvent) bool {
		return (server == "" || globMatch(server, e.Server) || e.Server == "") && (len(tools) == 0 || slices.ContainsFunc(e.Tools, func(t string) bool { return trustMatch(tools, t) >= 0 }))
	}
	for _, r := range slices.Backward(runs) { // oldest first, as the lines of each
		if ctx.Err() != nil {
			return ctx.Err()
		}
		found, err := c.trustEvents(ctx, r)
		if err != nil {
			fmt.Fprintf(c.stderr, "warning: %s cannot be read to its end: %s\n", visibleLine(r.Run), visibleLine(err.Error()))
		}
		events = append(events, without(found, func(e trustEvent) bool { return !keep(e) })...)
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"events": events, "runs": len(runs), "total": total})
	}
	for _, e := range events {
		fmt.Fprintf(c.stdout, "%s  %s  %s  %s", e.Time, visibleLine(e.Run), e.What, visibleLine(c.redact(trustShown(e.Server)+"/"+strings.Join(trustShownAll(e.Tools), ","))))
		if e.Rule != "" {
			fmt.Fprintf(c.stdout, "  (%s)", visibleLine(c.redact(e.Rule)))
		}
		fmt.Fprintln(c.stdout)
	}
	if len(events) == 0 {
		fmt.Fprintf(c.stdout, "trust decided nothing in the %s that were read\n", plural(len(runs), "run"))
	}
	if total > len(runs) {
		fmt.Fprintf(c.stderr, "%d more runs; --limit reads them\n", total-len(runs))
	}
	return nil
}

// trustEvents gives what one run log tells of this workspace's trust file.
func (c *invocation) trustEvents(ctx context.Context, r auditRunInfo) (events []trustEvent, err error) {
	file, finding, err := c.checkLog(ctx, r.Path, false)
	if err != nil || file == nil {
		return nil, err
	}
	defer file.Close() // only read
	if finding.Tampered || finding.Unreadable {
		fmt.Fprintf(c.stderr, "warning: %s cannot be trusted: %s", visibleLine(r.Run), auditVerdict(finding))
	}
	own := filepath.Join(c.policyFolder(), trustName)
	changes := map[string]trustEvent{} // by call, until they are done
	err = readAudit(file, func(rec auditRecord) bool {
		e := trustEvent{Time: rec.Time, Run: rec.Run, Call: rec.Call, Rule: rec.Rule}
		var data struct {
			trustNote
			Tools []string `json:"tools"`
		}
		if len(rec.Data) > 0 && json.Unmarshal(rec.Data, &data) != nil {
			data.File = "" // some other line
		}
		isChange := strings.HasPrefix(rec.Kind, "trust-")
		switch {
		case rec.Kind == auditKindMCP && data.File == own && strings.HasPrefix(data.Rule, trustRulePrefix):
			e.What, e.Server, e.Tools, e.Rule = trustLet, data.Server, []string{data.Tool}, data.Rule
			if rec.Event == auditCallBlocked {
				e.What = trustRefused
			}
			events = append(events, e)
		case isChange && rec.Event == auditCallRequested && (data.File == own || rec.Subject == c.policyFolder()):
			e.What, e.Server, e.Tools = rec.Kind, data.Server, data.Tools
			changes[rec.Call] = e
		case isChange && rec.Event == auditCallStarted:
			if e, ok := changes[rec.Call]; ok {
				e.Rule = rec.Rule
				changes[rec.Call] = e
			}
		case isChange:
			if e, ok := changes[rec.Call]; ok {
				delete(changes, rec.Call)
				if rec.Event != auditCallCompleted {
					e.What, e.Rule = e.What+" ("+rec.Outcome+")", cmp.Or(rec.Rule, e.Rule)
				}
				events = append(events, e)
			}
		}
		return true
	})
	return events, err
}
