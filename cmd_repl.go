// This file holds the prompt's own commands about the conversation: /new, /resume, /compact, /cost, /todo, and /mode, the permission
// mode of this run. They exist at the prompt alone.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
		{"/todo", "the task list of this conversation"},
		{"/mode [MODE]", "show or change the permission mode of this run: " + strings.Join(modeWords(), ", ")},
		{"/cost", "tokens and time of this conversation, by model: since tai started, and in all"},
		{"/show [N|ID]", "the whole of a tool's result: the last one, the Nth, or a record"},
		{"/undo [CHANGE]", "take back the last change of a file, or one by its id"},
	} {
		printColumns(r.stdout, c[0], c[1])
	}
}

// conversation does one of these commands; false where the line is none of them.
func (r *repl) conversation(ctx context.Context, line string) (done bool, err error) {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "new", "compact", "cost", "todo":
		if rest != "" {
			return true, usageError("", "/%s takes no arguments", word)
		}
	}
	switch word {
	case "new":
		r.agent, r.turn.session, r.results = nil, "", resultLog{}
		fmt.Fprintln(r.stdout, "a new conversation begins")
		return true, nil
	case "resume":
		return true, r.resumeSession(ctx, rest)
	case "compact":
		return true, r.compact(ctx)
	case "cost":
		return true, r.printCost(ctx)
	case "todo":
		return true, r.showTodo(ctx)
	case "mode":
		return true, r.mode(rest)
	}
	return r.showing(ctx, word, rest)
}

// mode shows the permission mode of this run, or changes it: a person's own word.
func (r *repl) mode(word string) error {
	if word != "" {
		if err := r.changeMode(word); err != nil {
			return err
		}
	}
	fmt.Fprintln(r.stdout, "mode "+r.modeMeaning())
	return nil
}

// showTodo prints the task list that the model keeps in this conversation.
func (r *repl) showTodo(ctx context.Context) error {
	session := r.session()
	if session == "" {
		fmt.Fprintln(r.stdout, errNoTodo)
		return nil
	}
	v, err := r.vault(ctx)
	if err != nil {
		return err
	}
	rows, err := v.messages(ctx, session)
	if err != nil {
		return orUnknown(err, sessionIDsHint)
	}
	items, err := lastTodo(rows)
	if errors.Is(err, errNoTodo) {
		fmt.Fprintln(r.stdout, err)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprint(r.stdout, visible(r.redact(todoText(items))))
	return nil
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
	r.results = resultLog{}
	if err := r.results.readBack(rows); err != nil {
		return err
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

// printCost says what this conversation has cost since tai started, and in all where that is more.
func (r *repl) printCost(ctx context.Context) error {
	var now, all []agentSpent
	if r.agent != nil {
		now = r.agent.spent
	}
	var below []agentSpent // of its sub-agents
	if session := r.session(); session != "" {
		for _, s := range r.agents.spentBelow(session) {
			s.Model += " (agents)"
			below = append(below, s)
		}
		v, err := r.vault(ctx)
		if err != nil {
			return err
		}
		rows, err := v.usage(ctx, session, time.Time{})
		if err != nil {
			return err
		}
		all = spentBy(rows)
	}
	switch {
	case len(now)+len(below) == 0 && len(all) == 0:
		fmt.Fprintln(r.stdout, "no model was asked yet in this conversation")
	case requests(now) >= requests(all): // all of it was spent here
		r.printSpent(slices.Concat(now, below))
	default:
		fmt.Fprintln(r.stdout, "since tai started:")
		if len(now)+len(below) == 0 {
			fmt.Fprintln(r.stdout, "no model was asked yet")
		}
		r.printSpent(slices.Concat(now, below))
		fmt.Fprintf(r.stdout, "session %s in all:\n", r.session())
		r.printSpent(all)
	}
	return nil
}

// spentBy adds rows up by model, in the order in which the models came.
func spentBy(rows []usageRow) (list []agentSpent) {
	for _, row := range rows {
		list = addSpent(list, agentSpent{row.Model, 1, chatUsage{row.Input, row.Output, row.Cached}, row.Duration})
	}
	return list
}

func requests(list []agentSpent) (n int) {
	for _, s := range list {
		n += s.Requests
	}
	return n
}

func (r *repl) printSpent(list []agentSpent) {
	var all agentSpent
	line := func(s agentSpent) {
		fmt.Fprintf(r.stdout, "%s  %s  %d in (%d cached)  %d out  %s\n", visibleLine(s.Model), plural(s.Requests, "request"), s.Usage.Input, s.Usage.Cached, s.Usage.Output, s.Time.Round(100*time.Millisecond))
	}
	for _, s := range list {
		line(s)
		all = agentSpent{"all", all.Requests + s.Requests, all.Usage.plus(s.Usage), all.Time + s.Time}
	}
	if len(list) > 1 {
		line(all)
	}
}
