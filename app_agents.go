// This file wires the sub-agents of one run: with what model, system text and store they work, and who hears of them. It starts none.
package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
)

// newAgents makes the host of the sub-agents of this run.
func (a *app) newAgents() *agentHost {
	c := subConfig{Open: a.openAgent, Tell: a.tellBackground, Now: a.out.Now, Redact: a.redact}
	if a.desk != nil {
		c.Asking, c.Attended = a.desk.asking, a.desk.attended
	}
	return newAgentHost(c)
}

// tellBackground shows a line about work in the background where and when it disturbs nobody.
func (a *app) tellBackground(line string) {
	if a.desk != nil {
		a.desk.post(line)
		return
	}
	a.showLine(a.redact(visibleLine(line)))
}

func (a *app) showLine(line string) { fmt.Fprintln(a.stderr, "· "+line) }

// openAgent gives a sub-agent what the prompt's own agent would have here: the model in use, the project's notes, the vault.
func (a *app) openAgent(ctx context.Context) (agentConfig, error) {
	client, usage, err := a.talkTo(ctx, func(string) {}) // which model is used was told when the conversation began
	if err != nil {
		return agentConfig{}, err
	}
	v, err := a.vault(ctx)
	if err != nil {
		return agentConfig{}, err
	}
	profile, err := a.profile(ctx)
	if err != nil {
		return agentConfig{}, err
	}
	e := client.current()
	notes, _ := projectNotes(ctx, a.root, a.userHome()) // what cannot be used was told when the conversation began
	return agentConfig{
		Model: client, ModelName: e.Model, Usage: usage, Window: cmp.Or(a.window, e.Context, modelWindow(e.Model), agentWindow), Store: v,
		System: agentSystem(a.root, a.goos, a.out.Now(), notes), Profile: profile, Root: a.root,
	}, nil
}

// userHome is the home folder of the person, links resolved; "" where none is known.
func (a *app) userHome() string {
	home := cmp.Or(a.out.Getenv("HOME"), a.out.Getenv("USERPROFILE"))
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	return home
}

// agentScope is that of the conversation itself.
func (a *app) agentScope() agentScope {
	return agentScope{host: a.agents, box: a.toolbox, servers: a.serversOf}
}

// forkReader has a sub-agent that can only fetch pages carry out a strict brief.
func (a *app) forkReader(ctx context.Context, c toolCall, brief string, steps int) (string, error) {
	return a.agentScope().fork(ctx, c, brief, steps, "http_get")
}

// serversOf gives the servers that a profile has enabled, or errNotFound.
func (a *app) serversOf(ctx context.Context, profile string) ([]string, error) {
	v, err := a.vault(ctx)
	if err != nil {
		return nil, err
	}
	list, err := v.profiles(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(list, func(p profileInfo) bool { return p.Name == profile }) {
		return nil, errNotFound
	}
	rows, err := v.servers(ctx)
	names := []string{}
	for _, row := range rows {
		if row.Profiles[profile] {
			names = append(names, row.Name)
		}
	}
	return names, err
}
