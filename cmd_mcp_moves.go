// This file offers to move pasted secrets into the vault, before a server comes in: to a person as one question, to a script by flags.
// What is found, and under which names, is mcp_moves.go's business.
package main

import (
	"context"
	"fmt"
	"strings"
)

// moveSecrets changes the entries that hold secrets of their own, if that is wanted, and gives the secrets that each then refers to, by its
// place in servers.
func (c *invocation) moveSecrets(ctx context.Context, servers []serverEntry) (map[int][]namedSecret, error) {
	if c.given("move-secrets") && c.given("keep-secrets") {
		return nil, usageError("", "--move-secrets and --keep-secrets exclude each other")
	}
	if c.given("keep-secrets") {
		return nil, nil
	}
	plans, taken := map[int][]tokenMove{}, map[string]secret{}
	for i, e := range servers {
		moves, err := c.bridge.planMoves(ctx, e, taken)
		if err != nil {
			return nil, err
		}
		if len(moves) > 0 {
			plans[i] = moves
		}
	}
	if len(plans) == 0 {
		return nil, nil
	}
	move := c.given("move-secrets")
	if !move && c.console != nil && !c.given("yes") && c.policy.mode() == modePrompt {
		var err error
		if move, err = c.askMoves(ctx, servers, plans, taken); err != nil {
			return nil, err
		}
	} else if !move {
		c.tellKept(servers, plans)
	}
	if !move {
		return nil, nil
	}
	out := map[int][]namedSecret{}
	for i, moves := range plans {
		servers[i], out[i] = applyMoves(servers[i], moves)
	}
	return out, nil
}

// tellMoved says which secrets came into the vault with a server.
func (c *invocation) tellMoved(server string, moved []namedSecret) {
	for _, m := range moved {
		fmt.Fprintf(c.stderr, "note: %s: a secret is in the vault as %s now, and the entry says ${%s}\n", visibleLine(server), m.Name, m.Name)
	}
}

// tellKept says that secrets stay as they were pasted, and the command that moves them.
func (c *invocation) tellKept(servers []serverEntry, plans map[int][]tokenMove) {
	for i, e := range servers {
		var places []string
		for _, m := range plans[i] {
			places = append(places, m.Where)
		}
		if len(places) > 0 {
			fmt.Fprintf(c.stderr, "warning: %s: kept in the entry as pasted, and looks like a secret: %s; --move-secrets moves it into the vault, later too: tai mcp add %s --move-secrets\n",
				visibleLine(e.Name), visibleLine(strings.Join(places, ", ")), quoteWord(e.Name))
		}
	}
}

// askMoves puts the one question about all of them: y moves, n keeps, OLD=NEW gives another name and asks again. It shows names and
// places, never a value.
func (c *invocation) askMoves(ctx context.Context, servers []serverEntry, plans map[int][]tokenMove, taken map[string]secret) (bool, error) {
	for {
		q := consent{Title: "move these secrets into the vault, so that the entry keeps ${NAME} in their place?"}
		for i := range servers {
			for _, m := range plans[i] {
				q.Lines = append(q.Lines, consentLine{Label: "of " + fmt.Sprintf("%q", servers[i].Name), Name: m.Name, Text: m.Where, Exact: true})
			}
		}
		q.Choices = []consentChoice{{choiceYes, "yes, move them"}, {choiceNo, "no, keep them in the entry as pasted"}, {"NAME=OTHER", "another name for one, then asks again"}}
		fmt.Fprint(c.console.out, renderConsent(q, c.console.width()))
		line, err := c.console.reply(ctx, "your answer (y n NAME=OTHER): ")
		if err != nil {
			return false, err
		}
		old, name, rename := strings.Cut(line, "=")
		switch {
		case line == choiceYes:
			return true, nil
		case line == choiceNo:
			return false, nil
		case rename:
			if err := c.renameMove(ctx, plans, taken, strings.TrimSpace(old), strings.TrimSpace(name)); err != nil {
				fmt.Fprintln(c.console.out, consentOwn+visibleLine(err.Error()))
			}
		}
	}
}

// renameMove gives a planned secret another name, if that one is free.
func (c *invocation) renameMove(ctx context.Context, plans map[int][]tokenMove, taken map[string]secret, old, name string) error {
	value, ok := taken[old]
	if !ok {
		return errorf("none of them is named %s", quoteClip(old))
	}
	if err := validSecretName(name); err != nil {
		return err
	}
	free, err := c.bridge.moveNameFree(ctx, name, value, taken)
	if err != nil {
		return err
	}
	if !free {
		return errorf("the name %s stands for something else already, in the vault, in the environment or here", name)
	}
	delete(taken, old)
	taken[name] = value
	for i, moves := range plans {
		for k := range moves {
			if moves[k].Name == old {
				plans[i][k].Name = name
			}
		}
	}
	return nil
}
