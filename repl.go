// This file holds the prompt: lines in, text out, slash commands. It calls no model and no tool itself.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

// repl is the prompt on a terminal.
type repl struct {
	*invocation
	lines *replLines
	agent *agent
	sink  *textSink // of the agent

	results    resultLog // of this conversation's tools
	otherModel bool      // another model may have been chosen since the agent was made
}

// loop reads lines until the end of input, /exit or two interrupts of an empty prompt. Else an interrupt ends the running turn or
// command alone.
func (r *repl) loop(ctx context.Context) error {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt) // read by nobody: between two lines an interrupt ends nothing
	defer signal.Stop(interrupts)
	notice := r.modelNotice(ctx)
	if head, width := "tai "+version+"  ", helpColumns(r.stdout); notice == "" {
		fmt.Fprint(r.stdout, wrapWords(head, "/help lists the commands, /exit leaves", "", width))
	} else {
		fmt.Fprint(r.stdout, wrapWords(head, "without a model /tools, /call and /mcp work; /help lists all", "", width))
		for line := range strings.Lines(notice) {
			fmt.Fprint(r.stdout, wrapWords("", line, "", width))
		}
	}
	if r.turn.session != "" {
		if err := r.showLast(ctx); err != nil {
			return err
		}
	}
	r.desk.attend(true)
	defer r.desk.attend(false)
	for interrupted := false; ; {
		typed, err := r.lines.next(ctx)
		switch line := strings.TrimSpace(typed); {
		case errors.Is(err, errNoAnswer):
			return nil
		case err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled):
			if interrupted {
				return nil
			}
			interrupted = true
			fmt.Fprintln(r.stdout, "Ctrl-C again or /exit leaves")
			continue
		case err != nil:
			return err
		case line == "/exit" || line == "/quit":
			return nil
		case line != "":
			r.attend(ctx) // whoever has waited for this line to be done
			r.lines.keep(ctx, typed)
			r.handleLine(ctx, line)
			r.lines.done(ctx, typed)
		}
		r.attend(ctx)
		interrupted = false
	}
}

// attend shows what the background has to tell and puts its questions, one after the other. An interrupt gives up one question.
func (r *repl) attend(ctx context.Context) {
	for more := true; more; {
		for _, line := range r.desk.told() {
			r.showLine(line)
		}
		one, stop := signal.NotifyContext(ctx, os.Interrupt)
		more = r.desk.serve(one)
		stop()
	}
}

// handleLine runs one line to its end; what goes wrong is told and the prompt goes on.
func (r *repl) handleLine(ctx context.Context, line string) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	var err error
	if word, ok := strings.CutPrefix(line, "/"); ok {
		err = r.slash(ctx, word)
	} else {
		err = r.say(ctx, line)
	}
	if err != nil && ctx.Err() != nil {
		err = &cliError{Exit: exitInterrupted, Message: "interrupted", err: err}
	}
	if _, quiet := errors.AsType[errQuiet](err); err != nil && !quiet {
		tell(err, strings.HasPrefix(line, "/") && strings.Contains(line, " --json"), r.stdout, r.stderr)
	}
}

// slash runs a command of the tree in this run: /mcp list is tai mcp list, /call is /tools call.
func (r *repl) slash(ctx context.Context, line string) error {
	if done, err := r.lines.slash(ctx, line); done {
		return err
	}
	if done, err := r.conversation(ctx, line); done {
		return err
	}
	words, err := splitWords(line)
	if err != nil {
		return usageError("quotes come in pairs", "%v", err)
	}
	if len(words) > 0 && words[0] == "call" {
		words = append([]string{"tools"}, words...)
	}
	words = aloneWords(words, commands())
	if plain := plainWords(words, command{}); len(plain) == 0 || !isCommandWord(plain[0], commands()) {
		return usageError("/help lists the commands", "no such command: /%s", visibleLine(line))
	}
	inv, err := resolve(words, commands(), command{})
	if err != nil {
		return err
	}
	for _, f := range globalFlags() {
		if inv.given(f.Name) && f.Name != "help" && f.Name != "json" {
			return usageError("start tai with it; what needs an answer asks here", "--%s is for the command line", f.Name)
		}
	}
	if inv.given("help") {
		return printHelp(r.stdout, commands(), command{}, inv.cmd.Path)
	}
	inv.app, inv.json, inv.life = r.app, inv.given("json"), r.life
	r.otherModel = r.otherModel || strings.HasPrefix(inv.cmd.Path, "model ")
	if err := inv.cmd.Run(ctx, inv); err != nil || inv.cmd.Path != "help" || len(inv.args) > 0 {
		return err
	}
	r.printOwn()
	r.lines.printKeys()
	return nil
}

// open makes the agent of this conversation, if there is none yet, ready for a turn.
func (r *repl) open(ctx context.Context) error {
	mask, err := r.answerMask(ctx)
	if err != nil {
		return err
	}
	if r.agent == nil {
		sink := &textSink{out: r.stdout, notes: r.stderr, screen: true, redact: r.redact, mask: mask, results: &r.results, width: r.errWidth}
		a, err := r.newAgent(ctx, sink)
		if err != nil {
			return err
		}
		r.agent, r.sink = a, sink
	} else if r.otherModel {
		if err := r.useModel(ctx, &r.agent.agentConfig, r.sink.notice); err != nil {
			return err
		}
	}
	r.otherModel = false
	r.sink.mask = mask
	return nil
}

func (r *repl) say(ctx context.Context, text string) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	r.sink.interrupted = func() bool { return ctx.Err() != nil }
	begin := r.out.Now()
	res, err := r.agent.runTurn(ctx, text)
	r.sink.finish()
	if err != nil {
		return turnFailure(err, r.agent)
	}
	fmt.Fprintf(r.stderr, "· %d in, %d out, %s\n", res.Usage.Input, res.Usage.Output, shortTime(r.out.Now().Sub(begin)))
	return nil
}
