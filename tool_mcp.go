// This file holds the mcp_* native tools: they bring MCP servers in, list, switch and call them for a model. Each is a thin
// face of the bridge, which asks, checks and records.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// mcpToolset is what the mcp_* tools work with.
type mcpToolset struct {
	bridge *mcpBridge
	repos  *resolver
	goos   string
	face   func() loginFace
}

// loginFace meets the person during one login; the caller calls end after it.
type loginFace interface {
	show(ctx context.Context, v loginShown) error
	pasted(ctx context.Context) (string, error)
	end()
}

// mcpTools declares the tools. face is nil where no person sits; over MCP none ever does.
func mcpTools(b *mcpBridge, r *resolver, goos string, face func() loginFace) []tool {
	s := mcpToolset{b, r, goos, face}
	object := func(required, properties string) json.RawMessage {
		return json.RawMessage(`{"type":"object","additionalProperties":false,"required":[` + required + `],"properties":{` + properties + `}}`)
	}
	server := `"server":{"type":"string","minLength":1,"maxLength":128,"description":"The server's name, as mcp_list gives it."}`
	profile := `"profile":{"type":"string","minLength":1,"maxLength":64,"description":"The profile (default: the current one)."}`
	tools := []tool{
		{Name: "mcp_add", Family: "mcp", Core: true, Hints: toolHints{Destructive: true},
			Description: "Bring an MCP server in from a pasted config, a run line, a URL, a GitHub repository or a stored name: shows what will run and asks, checks it live, stores and enables it, and gives its tools.",
			Schema:      object(`"source"`, `"source":{"type":"string","minLength":1,"maxLength":1048576,"description":"JSON or TOML config text, a run line such as npx -y PACKAGE, a URL, a GitHub address, or a stored name."},"name":{"type":"string","minLength":1,"maxLength":128,"description":"The server's name, for a source that has none."},`+profile),
			own:         true, judge: alwaysAsked, run: s.add},
		{Name: "mcp_list", Family: "mcp", Core: true, Hints: toolHints{ReadOnly: true, Idempotent: true},
			Description: "List the stored MCP servers with transport, profiles, tool counts and pin state.",
			Schema:      object(``, ``), Output: json.RawMessage(`{"type":"object","properties":{"servers":{"type":"array","items":{"type":"object"}}}}`), run: s.list},
		{Name: "mcp_enable", Family: "mcp", Core: true, Hints: toolHints{Destructive: true, Idempotent: true},
			Description: "Enable a stored MCP server for a profile, so that its tools are offered.", Schema: object(`"server"`, server+`,`+profile), run: s.enable},
		{Name: "mcp_disable", Family: "mcp", Core: true, Hints: toolHints{Destructive: true, Idempotent: true},
			Description: "Disable an MCP server for a profile; it stays stored.", Schema: object(`"server"`, server+`,`+profile), run: s.disable},
		{Name: "mcp_remove", Family: "mcp", Core: true, Hints: toolHints{Destructive: true, Idempotent: true},
			Description: "Delete an MCP server with its profile rows, pins and tokens; asks first.", Schema: object(`"server"`, server), own: true, judge: alwaysAsked, run: s.remove},
		{Name: "mcp_tools", Family: "mcp", Core: true, Hints: toolHints{ReadOnly: true, Idempotent: true},
			Description: "List the tools of the enabled MCP servers with their bridged names, descriptions and pin state, as last seen.",
			Schema:      object(``, server), Output: json.RawMessage(`{"type":"object","properties":{"tools":{"type":"array","items":{"type":"object"}}}}`), run: s.tools},
		{Name: "mcp_call", Family: "mcp", Core: true, Hints: toolHints{Destructive: true},
			Description: "Call one tool of an enabled MCP server by its own name there; the same as calling its bridged name.",
			Schema:      object(`"server","tool"`, server+`,"tool":{"type":"string","minLength":1,"description":"The tool's own name, as mcp_tools gives it."},"args":{"type":"object","description":"The tool's arguments (default: none)."}`),
			own:         true, forecast: s.foresee, run: s.call},
		{Name: "mcp_login", Family: "mcp", Core: true, Hints: toolHints{Destructive: true},
			Description: "Log in at an MCP server that wants it: the person is asked, logs in with their browser, and the server is checked and enabled. It waits for them.",
			Schema:      object(`"server"`, server+`,`+profile), own: true, judge: alwaysAsked, unattended: func(c toolCall) bool { return face == nil || c.served() }, run: s.login},
	}
	for i := range tools {
		tools[i].run = hintsForModel(tools[i].run)
	}
	return tools
}

// hintsForModel gives the faults of the bridge the tool that helps on; the bridge's own hints name commands.
func hintsForModel(run func(context.Context, toolCall) (toolResult, error)) func(context.Context, toolCall) (toolResult, error) {
	return func(ctx context.Context, c toolCall) (toolResult, error) {
		r, err := run(ctx, c)
		hinted, ok := errors.AsType[*hintedError](err)
		switch {
		case err == nil || r.Hint != "":
		case errors.Is(err, errServerUnknown):
			r.Hint = "mcp_list shows the names"
		case errors.Is(err, errNoSuchTool):
			r.Hint = "mcp_tools shows the names"
		case errors.Is(err, errNotEnabled):
			r.Hint = "mcp_enable enables it, after asking"
		case errors.Is(err, errNoLogin):
			r.Hint = "mcp_enable offers its tools"
		case ok:
			r.Hint = hinted.Hint
		}
		return r, err
	}
}

func mcpArgs(c toolCall, into any) error {
	if err := json.Unmarshal(c.Args, into); err != nil {
		return errorf("read arguments: %w", err)
	}
	return nil
}

func (s mcpToolset) add(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct{ Source, Name, Profile string }
	if err := mcpArgs(c, &args); err != nil {
		return toolResult{}, err
	}
	v, err := s.bridge.cfg.Vault(ctx)
	if err != nil {
		return toolResult{}, err
	}
	rows, err := v.servers(ctx)
	if err != nil {
		return toolResult{}, err
	}
	o := normalizeOptions{OS: s.goos, Name: args.Name}
	for _, r := range rows {
		o.Stored = append(o.Stored, r.serverEntry)
	}
	res, err := s.source(ctx, c, args.Source, o)
	if re, ok := errors.AsType[*refusedError](err); ok {
		return refused(re.Rule, re.Reason, re.Hint), nil
	}
	if err != nil {
		return toolResult{}, err
	}
	if args.Name != "" && len(res.Servers) == 1 {
		res.Servers[0].Name = args.Name
	}
	digest, err := payloadDigest("mcp_add", c.Args)
	if err != nil {
		return toolResult{}, err
	}
	var text textBuilder
	var out toolResult
	for _, line := range slices.Concat(res.Notes, res.Warnings) {
		fmt.Fprintf(&text, "note: %s\n", line)
	}
	for _, e := range res.Servers {
		r, err := s.bridge.register(ctx, e, registerOptions{Profile: args.Profile, Parent: c.Parent, Digest: digest, Yes: "--auto", Found: res.Found, Doubt: res.Doubt})
		if re, ok := errors.AsType[*refusedError](err); ok {
			out.IsError, out.Rule, out.Hint = true, re.Rule, re.Hint
		}
		if err != nil {
			out.IsError = true
			fmt.Fprintf(&text, "%v\n", err)
			continue
		}
		out.Anew = true
		text.WriteString(r.forModel())
	}
	out.Text = text.String()
	return out, nil
}

// forModel says what came in and with which tools.
func (r registered) forModel() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s for profile %s, %d tools\n", r.Name, r.Status, r.Profile, len(r.Tools))
	if r.Hint != "" {
		fmt.Fprintf(&text, "  %s\n", r.Hint)
	}
	for _, t := range r.Tools {
		fmt.Fprintf(&text, "  %s (%s): %s\n", t.Name, t.State, brief(visibleLine(summaryLine(t.Description)), 200))
	}
	return text.String()
}

func (s mcpToolset) login(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct{ Server, Profile string }
	if err := mcpArgs(c, &args); err != nil {
		return toolResult{}, err
	}
	digest, err := payloadDigest("mcp_login", c.Args)
	if err != nil {
		return toolResult{}, err
	}
	face := s.face()
	defer face.end()
	r, err := s.bridge.login(ctx, args.Server, loginOptions{Profile: args.Profile, Parent: c.Parent, Digest: digest, Yes: "--auto", Show: face.show, Pasted: face.pasted})
	if re, ok := errors.AsType[*refusedError](err); ok {
		return refused(re.Rule, re.Reason, re.Hint), nil
	}
	if err != nil {
		return toolResult{}, err
	}
	return toolResult{Text: "logged in\n" + r.forModel(), Anew: true}, nil
}

// source reads what is to be added: a GitHub repository through the resolver, all else by itself.
func (s mcpToolset) source(ctx context.Context, c toolCall, source string, o normalizeOptions) (res resolved, err error) {
	link, ok, err := s.repos.link(source, o.Stored)
	switch {
	case err != nil:
		return res, err
	case !ok:
		res.normalizeResult, err = normalize([]byte(source), o)
		return res, err
	}
	order := resolveOrder{Link: link, Call: c, Name: o.Name, Yes: "--auto"}
	if c.Turn != nil {
		order.Tell = c.Turn.Tell
	}
	return s.repos.resolve(ctx, order)
}

func (s mcpToolset) list(ctx context.Context, _ toolCall) (toolResult, error) {
	v, err := s.bridge.cfg.Vault(ctx)
	if err != nil {
		return toolResult{}, err
	}
	rows, err := v.servers(ctx)
	if err != nil {
		return toolResult{}, err
	}
	profile, err := s.bridge.cfg.Profile(ctx)
	if err != nil {
		return toolResult{}, err
	}
	list := []serverSummary{}
	var text textBuilder
	for _, row := range rows {
		tools, err := v.cachedTools(ctx, row.Name)
		if err != nil {
			return toolResult{}, err
		}
		login, err := v.wantsLogin(ctx, row.Name)
		if err != nil {
			return toolResult{}, err
		}
		sum := summarize(row, tools, profile, login)
		list = append(list, sum)
		fmt.Fprintf(&text, "%s  %s  %s  %d tools, %d withheld  profiles: %s\n", sum.Name, sum.Transport, sum.State, sum.Tools, sum.Withheld, strings.Join(sum.Profiles, ", "))
	}
	if len(list) == 0 {
		text.WriteString("no MCP servers are stored; mcp_add brings one in\n")
	}
	structured, err := json.Marshal(map[string]any{"servers": list})
	return toolResult{Text: text.String(), Structured: structured}, err
}

func (s mcpToolset) enable(ctx context.Context, c toolCall) (toolResult, error) {
	return s.turn(ctx, c, true)
}

func (s mcpToolset) disable(ctx context.Context, c toolCall) (toolResult, error) {
	return s.turn(ctx, c, false)
}

func (s mcpToolset) turn(ctx context.Context, c toolCall, on bool) (toolResult, error) {
	var args struct{ Server, Profile string }
	if err := mcpArgs(c, &args); err != nil {
		return toolResult{}, err
	}
	profile, err := s.bridge.turn(ctx, args.Server, args.Profile, on)
	if err != nil {
		return toolResult{}, err
	}
	state := statusDisabled
	if on {
		state = statusEnabled
	}
	return toolResult{Text: fmt.Sprintf("%s: %s for profile %s", args.Server, state, profile), Anew: true}, nil
}

func (s mcpToolset) remove(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct{ Server string }
	if err := mcpArgs(c, &args); err != nil {
		return toolResult{}, err
	}
	err := s.bridge.remove(ctx, args.Server, "--auto")
	if re, ok := errors.AsType[*refusedError](err); ok {
		return refused(re.Rule, re.Reason, re.Hint), nil
	}
	if err != nil {
		return toolResult{}, err
	}
	return toolResult{Text: args.Server + ": removed with its profile rows, pins and tokens", Anew: true}, nil
}

func (s mcpToolset) tools(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct{ Server string }
	if err := mcpArgs(c, &args); err != nil {
		return toolResult{}, err
	}
	rows, err := s.bridge.enabledServers(ctx, args.Server)
	if err != nil {
		return toolResult{}, err
	}
	lists := map[string][]listedTool{}
	for _, row := range rows {
		if lists[row.Name], err = s.bridge.storedList(ctx, row); err != nil {
			return toolResult{}, err
		}
	}
	views := toolViews(rows, lists, s.bridge.cfg.Taken)
	for i := range views {
		views[i].Description, views[i].InputSchema = modelText(views[i].Description), modelSchema(views[i].InputSchema)
	}
	var text textBuilder
	for _, t := range views {
		fmt.Fprintf(&text, "%s/%s as %s (%s): %s\n", t.Server, t.Tool, t.Name, t.State, brief(visibleLine(summaryLine(t.Description)), 200))
	}
	if len(views) == 0 {
		text.WriteString("no tools: no MCP server is enabled for this profile\n")
	}
	structured, err := json.Marshal(map[string]any{"tools": views})
	return toolResult{Text: text.String(), Structured: structured}, err
}

func (s mcpToolset) call(ctx context.Context, c toolCall) (toolResult, error) {
	ref, inner, err := innerCall(c)
	if err != nil {
		return toolResult{}, err
	}
	return s.bridge.callTool(ctx, ref, inner)
}

// innerCall gives the bridged call that an mcp_call is.
func innerCall(c toolCall) (toolRef, toolCall, error) {
	var args struct {
		Server, Tool string
		Args         json.RawMessage
	}
	err := mcpArgs(c, &args)
	inner := c
	inner.Name, inner.Args = args.Tool, args.Args
	return toolRef{args.Server, args.Tool}, inner, err
}

// foresee says what would happen to the bridged call that an mcp_call is.
func (s mcpToolset) foresee(ctx context.Context, c toolCall) (policyForecast, error) {
	ref, inner, err := innerCall(c)
	if err != nil {
		return policyForecast{}, err
	}
	return s.bridge.foreseeTool(ctx, ref, inner)
}

// alwaysAsked judges what the policy asks about whoever calls: which command or address, the arguments alone do not show.
func alwaysAsked(toolCall) policyRequest {
	return policyRequest{Destructive: true, Always: true, Yes: "--auto"}
}
