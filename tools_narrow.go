// This file makes a toolbox smaller: a part of the native and bridged tools under the same policy, run log and limits, so that whoever holds it
// cannot reach the others by any name. It decides nothing about a call.
package main

import (
	"context"
	"hash/maphash"
	"slices"
)

// narrow gives a toolbox with the native tools that keep has a word for, each as change gives it, and with bridge for the others. A changed tool
// has the schema that it had.
func (t *toolbox) narrow(keep func(name string) bool, change func(tool) tool, bridge toolSource) *toolbox {
	n := &toolbox{byName: map[string]*toolEntry{}, policy: t.policy, audit: t.audit, vault: t.vault, redact: t.redact, bridge: bridge, rates: t.rates, seed: maphash.MakeSeed()}
	for i, tl := range t.tools {
		if !keep(tl.Name) {
			continue
		}
		tl = change(tl)
		n.tools, n.defs = append(n.tools, tl), append(n.defs, t.defs[i])
		n.byName[tl.Name] = &toolEntry{tl, t.byName[tl.Name].schema}
	}
	return n
}

// names gives the names of all tools that a model could be offered; an error says that the bridged ones are not known.
func (t *toolbox) names(ctx context.Context) ([]string, error) {
	var names []string
	for _, tl := range t.tools {
		names = append(names, tl.Name)
	}
	bridged, err := t.bridged(ctx)
	for _, d := range bridged.tools {
		names = append(names, d.Name)
	}
	return names, err
}

// narrowSource is a part of another source: the tools that keep has a word for, of the servers named if servers is not nil.
type narrowSource struct {
	inner   toolSource
	keep    func(name string) bool
	servers []string
}

func (s *narrowSource) offered(ctx context.Context) ([]sourceTool, error) {
	all, err := s.inner.offered(ctx)
	return s.part(all), err
}

func (s *narrowSource) state(ctx context.Context) (any, error) { return s.inner.state(ctx) }

func (s *narrowSource) described(ctx context.Context, names []string) ([]sourceTool, error) {
	all, err := s.inner.described(ctx, names)
	return s.part(all), err
}

func (s *narrowSource) part(all []sourceTool) []sourceTool {
	return without(all, func(d sourceTool) bool {
		return !s.keep(d.Name) || s.servers != nil && !slices.Contains(s.servers, d.Server)
	})
}

func (s *narrowSource) owns(name string) bool { return s.keep(name) && s.inner.owns(name) }

func (s *narrowSource) call(ctx context.Context, c toolCall) (toolResult, error) {
	if s.servers == nil && s.keep(c.Name) {
		return s.inner.call(ctx, c)
	}
	all, err := s.offered(ctx)
	if err != nil {
		return toolResult{}, err
	}
	if !slices.ContainsFunc(all, func(d sourceTool) bool { return d.Name == c.Name }) {
		return refused(ruleToolSet, "this agent was not given "+quoteClip(c.Name), ""), nil
	}
	return s.inner.call(ctx, c)
}

// foresee judges a call by its bridged name, or by mcp:SERVER/TOOL.
func (s *narrowSource) foresee(ctx context.Context, c toolCall) (f policyForecast, known bool, err error) {
	all, err := s.offered(ctx)
	if err != nil {
		return f, false, err
	}
	if !slices.ContainsFunc(all, func(d sourceTool) bool { return d.Name == c.Name || bridgedSubject(d.Server, d.Tool) == c.Name }) {
		return f, false, nil
	}
	return s.inner.foresee(ctx, c)
}

// has reports whether a server's tool is among them.
func (s *narrowSource) has(ctx context.Context, server, name string) (bool, error) {
	all, err := s.offered(ctx)
	return slices.ContainsFunc(all, func(d sourceTool) bool { return d.Server == server && d.Tool == name }), err
}
