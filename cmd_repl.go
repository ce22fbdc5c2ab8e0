// This file holds the prompt's own commands about the conversation: /new, /resume, /compact, /cost. They exist at the prompt alone.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// printOwn is what /help says of them.
func (r *repl) printOwn() {
	fmt.Fprint(r.stdout, "\nthe conversation at this prompt:\n")
	for _, c := range [][2]string{
		{"/new", "begin a new conversation"},
		{"/resume [ID]", "go on with a kept one"},
		{"/compact", "sum up all but the end of this one, so that it takes less room"},
		{"/cost", "tokens and time of this conversation since tai started, by model"},
	} {
		printColumns(r.stdout, c[0], c[1])
	}
}

// conversation does one of these commands; false where the line is none of them.
func (r *repl) conversation(ctx context.Context, line string) (done bool, err error) {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	if word == "new" || word == "compact" || word == "cost" {
		done = true
		if rest != "" {
			return true, usageError("", "/%s takes no arguments", word)
		}
	}
	switch word {
	case "new":
		r.agent, r.turn.session = nil, ""
		fmt.Fprintln(r.stdout, "a new conversation begins")
	case "resume":
		return true, r.resumeSession(ctx, rest)
	case "compact":
		return true, r.compact(ctx)
	case "cost":
		r.printCost()
	}
	return done, err
}

func (r *repl) resumeSession(ctx context.Context, id string) error {
	if id != "" && !isSessionID(id) {
		return usageError(sessionIDsHint, "%s is no id of a session", quoteClip(id))
	}
	inv := &invocation{app: r.app, cmd: r.cmd, life: r.life, flags: map[string][]string{"resume": {id}}}
	session, err := inv.pickSession(ctx)
	if err != nil {
		return err
	}
	r.agent, r.turn.session = nil, session
	return r.showLast(ctx)
}

// showLast says which session goes on and what was said last in it.
func (r *repl) showLast(ctx context.Context) error {
	v, err := r.vault(ctx)
	if err != nil {
		return err
	}
	s, err := v.session(ctx, r.turn.session)
	if err != nil {
		return orUnknown(err, sessionIDsHint)
	}
	rows, err := v.messages(ctx, s.ID)
	if err != nil {
		return orUnknown(err, sessionIDsHint)
	}
	fmt.Fprintln(r.stdout, "going on with "+r.sessionLine(s))
	asked, answered := "", ""
	for _, row := range rows {
		switch {
		case row.Role == string(roleUser):
			asked, answered = row.Content, ""
		case row.Role == string(roleAssistant) && spokenText(row.Content) != "":
			answered = row.Content
		}
	}
	for _, said := range [][2]string{{"you: ", asked}, {"tai: ", answered}} {
		if said[1] != "" {
			fmt.Fprintln(r.stdout, said[0]+visible(clipMiddle(strings.TrimSpace(r.redact(said[1])), 1000)))
		}
	}
	return nil
}

func (r *repl) compact(ctx context.Context) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	usage, err := r.agent.compactNow(ctx)
	switch {
	case errors.Is(err, errNothingToCompact):
		fmt.Fprintln(r.stdout, err)
		return nil
	case err != nil:
		return turnFailure(err, r.agent)
	}
	fmt.Fprintf(r.stderr, "· %d in, %d out\n", usage.Input, usage.Output)
	return nil
}

func (r *repl) printCost() {
	if r.agent == nil || len(r.agent.spent) == 0 {
		fmt.Fprintln(r.stdout, "no model was asked yet in this conversation")
		return
	}
	var all agentSpent
	line := func(s agentSpent) {
		fmt.Fprintf(r.stdout, "%s  %s  %d in (%d cached)  %d out  %s\n", visibleLine(s.Model), plural(s.Requests, "request"), s.Usage.Input, s.Usage.Cached, s.Usage.Output, s.Time.Round(100*time.Millisecond))
	}
	for _, s := range r.agent.spent {
		line(s)
		all = agentSpent{"all", all.Requests + s.Requests, all.Usage.plus(s.Usage), all.Time + s.Time}
	}
	if len(r.agent.spent) > 1 {
		line(all)
	}
}
