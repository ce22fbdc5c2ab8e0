// This file holds the native tools about profiles: which there are, and switching the run to another one. It stores nothing: the profile that
// new runs begin in is a person's to choose.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const (
	profileListMax = 200 // profiles that profile_list gives
	profileHint    = "profile_list shows the names, tai profile create makes one"
)

// profileDesk is what the profile tools work with. model may be "", as may current where none can be told.
type profileDesk struct {
	vault   func(context.Context) (*vault, error)
	current func(context.Context) (string, error)        // of this run
	use     func(ctx context.Context, name string) error // makes one that is there the profile of this run
	model   func(context.Context) string
	mode    func() string
	limits  map[string]rateLimit // of calls in this workspace, by tool
}

// profileJSON is a profile as profile_list gives it.
type profileJSON struct {
	Name    string          `json:"name"`
	Current bool            `json:"current"`
	Stored  bool            `json:"stored"` // a new run begins in it
	Created time.Time       `json:"created"`
	Servers []profileServer `json:"servers"`
}

type profileServer struct {
	Name  string `json:"name"`
	Tools int    `json:"tools"` // that are approved
}

type profileLimit struct {
	Tool string `json:"tool"`
	rateLimit
}

func (p profileJSON) line() string {
	text := visibleLine(p.Name)
	switch {
	case p.Current:
		text += "  current"
	case p.Stored:
		text += "  new runs begin in it"
	}
	names := []string{}
	for _, s := range p.Servers {
		names = append(names, fmt.Sprintf("%s (%s)", visibleLine(s.Name), plural(s.Tools, "tool")))
	}
	if len(names) == 0 {
		return text + "  no server enabled"
	}
	return text + "  servers: " + strings.Join(names, ", ")
}

// profileTools gives profile_list and profile_use.
func profileTools(d profileDesk) []tool {
	const servers = `"servers":{"type":"array","description":"Servers enabled in it.","items":{"type":"object","properties":{"name":{"type":"string"},"tools":{"type":"integer","description":"Its approved tools."}}}}`
	return []tool{{
		Name: "profile_list", Family: "profiles",
		Description: "List the profiles: which MCP servers are enabled in each and how many tools they bring, which profile is current, and the model, permission mode and tool limits of this run.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"properties":{
"name":{"type":"string","minLength":1,"maxLength":%d,"description":"Only this profile (default: all)."}}}`, profileNameMax)),
		Output: json.RawMessage(`{"type":"object","properties":{
"profiles":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"current":{"type":"boolean"},"stored":{"type":"boolean","description":"New runs begin in it."},"created":{"type":"string"},` + servers + `}}},
"model":{"type":"string","description":"Of this run, in every profile; missing without one."},
"mode":{"type":"string","description":"The permission mode of this run, in every profile."},
"limits":{"type":"array","description":"Tools whose calls are limited in this workspace.","items":{"type":"object","properties":{"tool":{"type":"string"},"calls":{"type":"integer"},"per_s":{"type":"number","description":"Seconds."}}}},
"left_out":{"type":"integer"},
` + toolRecordSchema + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		run:   d.list,
	}, {
		Name: "profile_use", Family: "profiles",
		Description: "Switch this session to another profile: from the next step on the tools of the MCP servers enabled there are offered. Other sessions and the stored choice stay as they are.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["name"],"properties":{
"name":{"type":"string","minLength":1,"maxLength":%d,"description":"The profile to switch to."}}}`, profileNameMax)),
		Output: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"before":{"type":"string","description":"The profile until now."},` + servers + `,` + toolRecordSchema + `}}`),
		Hints:  toolHints{Destructive: true, Idempotent: true, Stateful: true},
		judge:  func(toolCall) policyRequest { return policyRequest{Destructive: true, Exact: true} },
		run:    d.switchTo,
	}}
}

// profiles gives the profiles with the servers enabled in them, all or the one of that name.
func (d profileDesk) profiles(ctx context.Context, name string) (list []profileJSON, current string, err error) {
	v, err := d.vault(ctx)
	if err != nil {
		return nil, "", err
	}
	if current, err = d.current(ctx); err != nil {
		return nil, "", err
	}
	all, err := v.profiles(ctx)
	if err != nil {
		return nil, "", err
	}
	rows, err := v.serverList(ctx)
	if err != nil {
		return nil, "", err
	}
	approved := map[string]int{}
	for _, row := range rows {
		tools, err := v.cachedTools(ctx, row.Name)
		if err != nil {
			return nil, "", err
		}
		for _, t := range tools {
			if t.Hash != "" {
				approved[row.Name]++
			}
		}
	}
	for _, p := range all {
		if name != "" && p.Name != name {
			continue
		}
		out := profileJSON{Name: p.Name, Current: p.Name == current, Stored: p.Current, Created: p.Created.UTC(), Servers: []profileServer{}}
		for _, row := range rows {
			if row.Profiles[p.Name] {
				out.Servers = append(out.Servers, profileServer{row.Name, approved[row.Name]})
			}
		}
		list = append(list, out)
	}
	return list, current, nil
}

func (d profileDesk) list(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct{ Name string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	list, _, err := d.profiles(ctx, args.Name)
	if err != nil {
		return toolResult{}, err
	}
	if len(list) == 0 {
		return toolResult{Hint: profileHint}, errorf(`property "name": there is no profile %s`, quoteClip(args.Name))
	}
	left := max(0, len(list)-profileListMax)
	list = list[:len(list)-left]
	limits := []profileLimit{}
	for name, l := range d.limits {
		limits = append(limits, profileLimit{name, l})
	}
	sortBy(limits, func(a, b profileLimit) int { return strings.Compare(a.Tool, b.Tool) })
	model, mode := d.model(ctx), d.mode()
	var text textBuilder
	for _, p := range list {
		text.WriteString(p.line() + "\n")
	}
	if left > 0 {
		fmt.Fprintf(&text, "[%d more are left out; name shows one]\n", left)
	}
	if model != "" {
		fmt.Fprintf(&text, "in every profile of this run: model %s, permission mode %s\n", visibleLine(model), mode)
	} else {
		fmt.Fprintf(&text, "in every profile of this run: no model, permission mode %s\n", mode)
	}
	for _, l := range limits {
		fmt.Fprintf(&text, "limit in this workspace: %s, %d calls in %g s\n", visibleLine(l.Tool), l.Calls, l.PerS)
	}
	structured, err := json.Marshal(struct {
		Profiles []profileJSON  `json:"profiles"`
		Model    string         `json:"model,omitempty"`
		Mode     string         `json:"mode"`
		Limits   []profileLimit `json:"limits"`
		LeftOut  int            `json:"left_out"`
	}{list, model, mode, limits, left})
	return toolResult{Text: text.String(), Structured: structured}, err
}

// switchTo makes another profile that of this run. A server's many sessions share a run, so that none of them can.
func (d profileDesk) switchTo(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct{ Name string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	list, before, err := d.profiles(ctx, args.Name)
	switch {
	case err != nil:
		return toolResult{}, err
	case len(list) == 0:
		return toolResult{Hint: profileHint}, errorf(`property "name": there is no profile %s`, quoteClip(args.Name))
	case c.served():
		return toolResult{Hint: "tai --profile NAME starts a server in another one"}, errorf("a served session stays in the profile that tai was started in, which is %s", visibleLine(before))
	}
	if err := d.use(ctx, args.Name); err != nil {
		return toolResult{}, err
	}
	p := list[0]
	p.Current = true
	structured, err := json.Marshal(struct {
		Name    string          `json:"name"`
		Before  string          `json:"before"`
		Servers []profileServer `json:"servers"`
	}{p.Name, before, p.Servers})
	text := fmt.Sprintf("this run works in profile %s from now on; it was %s before\n%s", visibleLine(p.Name), visibleLine(before), p.line())
	return toolResult{Text: text, Structured: structured, Anew: true, Shown: "profile " + visibleLine(p.Name) + " from now on, in this run"}, err
}
