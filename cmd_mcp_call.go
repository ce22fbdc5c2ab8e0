// This file holds the commands that use a stored MCP server: tai mcp tools, call, check, grant.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

func mcpCallCommands() []command {
	return []command{
		{Path: "mcp tools", Args: "[SERVER]", Short: "connect and list tools with their state", Example: "tai mcp tools files",
			Flags: []flagSpec{{Name: "stored", Help: "from the vault alone, without connecting"}}, Max: 1, Store: storeThere, Redacts: true, Run: cmdMCPTools},
		{Path: "mcp call", Args: "SERVER TOOL [JSON|-|k=v…]", Short: "call one tool of a server",
			Long:    "Arguments are one JSON object, - for standard input, or k=v words. In k=v a\nvalue that is JSON is taken as it is (n=3, on=true, list=[1,2]), any other as\ntext; k:=v is always text.",
			Example: "tai mcp call files read_text_file path=README.md", Min: 2, Max: -1, Store: storeThere, Redacts: true, Run: cmdMCPCall},
		{Path: "mcp check", Args: "SERVER [TOOL]…", Short: "connect, show what changed and what is withheld", Example: "tai mcp check files", Min: 1, Max: -1, Store: storeThere, Redacts: true, Run: cmdMCPCheck},
		{Path: "mcp grant", Args: "SERVER TOOL…", Short: "show what changed in tools, and approve it", Example: "tai mcp grant files read_text_file", Min: 2, Max: -1, Store: storeThere, Redacts: true, Run: cmdMCPGrant},
	}
}

// cmdMCPCall is a person's own word: it runs without asking, but for denies, pins and a narrower mode.
func cmdMCPCall(ctx context.Context, c *invocation) error {
	args, err := callArguments(ctx, append(c.args[2:], c.rest...), c.stdin, nil)
	if err != nil {
		return err
	}
	res, err := c.bridge.callTool(ctx, toolRef{c.args[0], c.args[1]}, toolCall{Args: args, Person: true, Origin: c.origin, Profile: c.profileWord()})
	if err != nil {
		return err
	}
	return c.result(res)
}

// result prints what a call came to. A refusal is exit 3, a tool's own failure exit 1, both with their text.
func (c *invocation) result(res toolResult) error {
	if res.Rule != "" {
		return &cliError{Exit: exitRefused, Message: res.Text, Rule: res.Rule, Hint: res.Hint}
	}
	if res.Notice != "" {
		fmt.Fprintln(c.stderr, "warning: "+visibleLine(res.Notice))
	}
	if c.json {
		r := callResult{Content: res.Content, Structured: res.Structured, IsError: res.IsError}
		if r.Content == nil {
			r.Content = textContent(res.Text)
		}
		if _, err := fmt.Fprintln(c.stdout, string(escapeHidden(appendCallResult(nil, r)))); err != nil {
			return errorf("write the answer: %w", err)
		}
	} else if res.IsError {
		fmt.Fprintln(c.stderr, "tai: the tool failed: "+visible(strings.TrimSuffix(res.Text, "\n")))
		if res.Hint != "" {
			printWrapped(c.stderr, "hint: "+visible(res.Hint))
		}
	} else {
		text := res.Text
		if c.outTerminal {
			text = visible(text)
		}
		fmt.Fprintln(c.stdout, strings.TrimSuffix(text, "\n"))
	}
	if res.IsError {
		return errQuiet{exitFailed}
	}
	return nil
}

// callArguments reads the arguments of a call: one JSON object, - for standard input, or k=v words. A value that is a whole JSON
// value is taken as it is, everything else as text; k:=text is always text, and so is what the tool takes as nothing but text.
func callArguments(ctx context.Context, words []string, stdin io.Reader, texts map[string]bool) (json.RawMessage, error) {
	if len(words) == 0 {
		return json.RawMessage(`{}`), nil
	}
	if len(words) == 1 && words[0] == "-" {
		b, err := readBounded(ctx, stdin, mcpHTTPMaxBody, "standard input")
		if err != nil {
			return nil, err
		}
		return objectWord(string(b))
	}
	if len(words) == 1 && strings.HasPrefix(strings.TrimSpace(words[0]), "{") {
		return objectWord(words[0])
	}
	out := []byte{'{'}
	var seen []string
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok || k == "" || k == ":" {
			return nil, usageError("arguments are one JSON object, - for standard input, or k=v words", "argument %s cannot be read", quoteClip(w))
		}
		text := strings.HasSuffix(k, ":")
		k = strings.TrimSuffix(k, ":")
		if slices.Contains(seen, k) {
			return nil, usageError("", "argument %s is given twice", quoteClip(k))
		}
		if len(seen) > 0 {
			out = append(out, ',')
		}
		seen = append(seen, k)
		out = append(appendJSONString(out, k), ':')
		if !text && !texts[k] && checkJSON([]byte(v)) == nil {
			out = append(out, strings.TrimSpace(v)...)
		} else {
			out = appendJSONString(out, v)
		}
	}
	return append(out, '}'), nil
}

func objectWord(s string) (json.RawMessage, error) {
	raw := json.RawMessage(strings.TrimSpace(s))
	if err := checkJSON(raw); err != nil {
		return nil, usageError("arguments are one JSON object, - for standard input, or k=v words", "arguments: %v", err)
	}
	if raw[0] != '{' {
		return nil, usageError("arguments are one JSON object, - for standard input, or k=v words", "arguments are no JSON object")
	}
	return raw, nil
}

// cmdMCPTools lists live tools. Several servers are connected in parallel, with their progress on a terminal.
func cmdMCPTools(ctx context.Context, c *invocation) error {
	rows, err := c.chosenServers(ctx)
	if err != nil {
		return err
	}
	var failed error
	lists := map[string][]listedTool{}
	if c.given("stored") {
		for _, row := range rows {
			if lists[row.Name], err = c.bridge.storedList(ctx, row); err != nil {
				return err
			}
		}
	} else {
		var faults map[string]error
		lists, faults = c.bridge.connectAll(ctx, rows, c.progress(len(rows)))
		for _, row := range rows {
			if err := faults[row.Name]; err != nil {
				failed = worse(failed, err)
				if len(rows) > 1 {
					fmt.Fprintln(c.stderr, "tai: "+visible(c.redact(err.Error())))
				}
			}
		}
	}
	if failed != nil && (len(rows) == 1 || len(lists) == 0) {
		return failed
	}
	if err := c.printTools(rows, lists); err != nil || failed == nil {
		return err
	}
	return errQuiet{failure(failed).Exit}
}

// chosenServers gives the named server, or all that are enabled for the profile.
func (c *invocation) chosenServers(ctx context.Context) ([]serverRow, error) {
	name := ""
	if len(c.args) == 1 {
		name = c.args[0]
	}
	return c.bridge.enabledServers(ctx, name)
}

// progress shows each server with its state and time, on a terminal and for several servers alone.
func (c *invocation) progress(n int) func(connectState) {
	if n < 2 || !c.errTerminal {
		return nil
	}
	return func(s connectState) {
		switch {
		case !s.Done:
			fmt.Fprintf(c.stderr, "  %s  connecting…\n", visibleLine(s.Server))
		case s.Err != nil:
			fmt.Fprintf(c.stderr, "  %s  failed after %s\n", visibleLine(s.Server), shortTime(s.Took))
		default:
			fmt.Fprintf(c.stderr, "  %s  %d tools in %s\n", visibleLine(s.Server), s.Tools, shortTime(s.Took))
		}
	}
}

func shortTime(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func (c *invocation) printTools(rows []serverRow, lists map[string][]listedTool) error {
	out := toolViews(rows, lists, c.nativeName)
	for i := range out {
		out[i].Description = c.redact(out[i].Description)
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"tools": out})
	}
	for _, t := range out {
		what := brief(visibleLine(summaryLine(t.Description)), 100)
		if t.State != stateGranted {
			what = fmt.Sprintf("[%s: %s] %s", t.State, visibleLine(t.Reason), what)
		}
		where := ""
		if len(rows) > 1 {
			where = visibleLine(t.Server) + "  "
		}
		fmt.Fprintf(c.stdout, "%s%s  %s\n", where, visibleLine(clip(t.Tool, mcpNameMax)), what)
	}
	return nil
}

type checkReport struct {
	Server   string      `json:"server"`
	Version  string      `json:"version"`
	Tools    int         `json:"tools"`
	Withheld []driftJSON `json:"withheld"`
	Warnings []string    `json:"warnings"`
}

type driftJSON struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
	Diff   string `json:"diff"`
}

// cmdMCPCheck prints drift. Exit 3 says that something is withheld.
func cmdMCPCheck(ctx context.Context, c *invocation) error {
	found, err := c.bridge.check(ctx, c.args[0])
	if err != nil {
		return err
	}
	doc := checkReport{Server: c.args[0], Version: found.Version, Tools: len(found.Tools), Withheld: []driftJSON{}, Warnings: orEmpty(found.Warnings)}
	if found.Partial != "" {
		doc.Warnings = append(doc.Warnings, "the tool list is incomplete: "+found.Partial)
	}
	for _, name := range c.args[1:] {
		if !slices.ContainsFunc(found.Tools, func(t listedTool) bool { return t.Name == name }) {
			return errorf("%w on %s: %s", errNoSuchTool, quoteClip(c.args[0]), quoteClip(name))
		}
	}
	for _, t := range found.Tools {
		if t.State == stateWithheld && (len(c.args) == 1 || slices.Contains(c.args[1:], t.Name)) {
			doc.Withheld = append(doc.Withheld, driftJSON{t.Name, t.Reason, c.redact(t.toolDiff())})
		}
	}
	if c.json {
		err = writeJSON(c.stdout, doc)
	} else {
		c.say(doc.Warnings, "warning")
		fmt.Fprintf(c.stdout, "%s: %d tools, protocol %s, %s, %d withheld\n", visibleLine(doc.Server), doc.Tools, visibleLine(doc.Version), shortTime(found.Took), len(doc.Withheld))
		for _, d := range doc.Withheld {
			fmt.Fprintf(c.stdout, "\n%s: %s\n%s\n", visibleLine(d.Tool), d.Reason, visible(d.Diff))
		}
		if len(doc.Withheld) > 0 {
			fmt.Fprintf(c.stdout, "\napprove with: tai mcp grant %s %s\n", quoteWord(doc.Server), quoteWord(doc.Withheld[0].Tool))
		}
	}
	if err != nil || len(doc.Withheld) == 0 {
		return err
	}
	return errQuiet{exitRefused}
}

func cmdMCPGrant(ctx context.Context, c *invocation) error {
	granted, err := c.bridge.grant(ctx, c.args[0], c.args[1:])
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"server": c.args[0], "granted": orEmpty(granted)})
	}
	if len(granted) == 0 {
		fmt.Fprintln(c.stdout, "nothing to grant: these tools are as they were approved")
	}
	for _, name := range granted {
		fmt.Fprintf(c.stdout, "%s: granted %s\n", visibleLine(c.args[0]), visibleLine(name))
	}
	return nil
}
