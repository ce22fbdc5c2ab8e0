// This file chooses the tools that a turn offers to the model, and adds to them what calls have found. It runs none and knows none by name.
package main

import (
	"context"
	"slices"
	"strings"
)

// offer chooses the tools for a turn. They stay for all its steps unless a call changes which there are, so that the endpoint's prompt cache holds.
func (a *agent) offer(ctx context.Context, text string) []chatTool {
	defs, err := a.Tools.selectFor(ctx, text, slices.Concat(a.found, a.used()), a.ToolLimit)
	if err != nil {
		a.notice(err.Error())
	}
	names := rankNames(clip(text, rankMaxMessage))
	for _, d := range defs { // what the person named stays for the turns after, as what was found does
		if slices.Contains(names, strings.ToLower(d.Name)) || slices.Contains(names, strings.ToLower(d.Title)) {
			a.find(d.Name)
		}
	}
	return a.fit(defs)
}

// find remembers a tool that is to be offered from now on.
func (a *agent) find(name string) {
	a.found = append(slices.DeleteFunc(a.found, func(n string) bool { return n == name }), name)
}

// fit gives the tools as the endpoint takes them, and tells once of each that it does not take.
func (a *agent) fit(defs []toolDef) []chatTool {
	tools := make([]chatTool, 0, len(defs))
	for _, d := range defs {
		fitted, err := fitTool(d)
		if err == nil {
			tools = append(tools, fitted)
		} else if !a.keptOut[d.Name] {
			a.keptOut[d.Name] = true
			a.notice("kept back from the model: " + err.Error())
		}
	}
	return tools
}

// again gives the tools for the next step of a turn: the same, chosen anew where a call has changed which there are, and those that calls have found.
func (a *agent) again(ctx context.Context, text string, tools []chatTool) []chatTool {
	if a.anew {
		a.anew = false
		tools = a.offer(ctx, text)
	}
	return a.widen(ctx, tools)
}

// widen adds the tools that calls have found to those offered, behind them. Where there is no room, bridged tools that were neither found nor
// used make place, the last first.
func (a *agent) widen(ctx context.Context, tools []chatTool) []chatTool {
	offered := map[string]bool{}
	for _, t := range tools {
		offered[t.Name] = true
	}
	missing := slices.DeleteFunc(slices.Clone(a.found), func(name string) bool { return offered[name] || a.keptOut[name] })
	if len(missing) == 0 {
		return tools
	}
	defs, err := a.Tools.named(ctx, missing)
	if err != nil {
		a.notice(err.Error())
	}
	more := a.fit(defs)
	over, stay := len(tools)+len(more)-min(a.ToolLimit, toolMaxOffered), slices.Concat(a.found, a.used())
	kept := slices.Clone(tools)
	for i := len(kept) - 1; i >= 0 && over > 0; i-- {
		if name := kept[i].Name; !a.Tools.native(name) && !slices.Contains(stay, name) {
			kept = slices.Delete(kept, i, i+1)
			over--
		}
	}
	return append(kept, more[max(0, min(over, len(more))):]...)
}

// used gives the names of the tools called so far, the last used last.
//
//go:noinline for size: it is called in many places
func (a *agent) used() []string {
	return calledNames(slices.Clone(a.called), a.history)
}
