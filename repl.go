// This file holds the prompt: lines in, text out, slash commands, and one turn from the shell or a pipe. It calls no model and no
// tool itself.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"time"
)

// pipedMax bounds what a pipe adds to a prompt, in bytes; the agent bounds the whole message.
const pipedMax = 512 << 10

// runPrompt is tai without a command: one turn where there is a prompt or a pipe, else the prompt on the terminal.
func runPrompt(ctx context.Context, c *invocation) error {
	text := strings.Join(append(c.args, c.rest...), " ")
	if !c.inTerminal {
		piped, err := pipedText(ctx, c.stdin)
		if err != nil {
			return err
		}
		if piped != "" {
			text = strings.TrimSpace(text + "\n\n" + piped)
		}
	}
	if text != "" {
		return oneTurn(ctx, c, text)
	}
	if !c.person || c.given("p") {
		return usageError(`tai "PROMPT", or a prompt on standard input; tai help lists the commands`, "nothing to do")
	}
	return (&repl{invocation: c, lines: newLines(c.app, commands())}).loop(c.life)
}

// pipedText reads what another program hands over.
func pipedText(ctx context.Context, r io.Reader) (string, error) {
	b, err := readBounded(ctx, r, pipedMax, "standard input")
	if err != nil {
		return "", err
	}
	if len(b) > pipedMax {
		return "", usageError("put it in a file and name the file in the prompt", "standard input has more than %d bytes", pipedMax)
	}
	return strings.TrimSpace(string(b)), nil
}

// newAgent makes the agent of this run, or says what model it looked for.
func (c *invocation) newAgent(ctx context.Context, sink turnSink) (*agent, error) {
	model, usage, err := c.talkTo(ctx, sink.notice)
	if err != nil {
		return nil, err
	}
	box, err := c.toolbox()
	if err != nil {
		return nil, err
	}
	v, err := c.vault(ctx)
	if err != nil {
		return nil, err
	}
	profile, err := c.profile(ctx)
	if err != nil {
		return nil, err
	}
	return newAgent(agentConfig{Model: model, Usage: usage, Tools: box, Store: v, Sink: sink, System: agentSystem(c.root, c.goos, c.out.Now(), c.projectNotes(ctx)), Profile: profile, Origin: c.origin}), nil
}

// projectNotesMax bounds an AGENTS.md in bytes; a longer one is left out, with a word about it.
const projectNotesMax = 64 << 10

// projectNotes reads AGENTS.md of the workspace as text for the model. It is never configuration.
func (c *invocation) projectNotes(ctx context.Context) string {
	b, err := c.readNotes(ctx)
	if err == nil && len(b) > projectNotesMax {
		err = fmt.Errorf("it has more than %d bytes", projectNotesMax)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintln(c.stderr, "tai: AGENTS.md is left out: "+visibleLine(err.Error()))
		}
		return ""
	}
	return string(b)
}

func (c *invocation) readNotes(ctx context.Context) ([]byte, error) {
	w, err := openWorkspace(c.root)
	if err != nil {
		return nil, err
	}
	p, err := w.locate("AGENTS.md")
	if err != nil {
		return nil, err
	}
	f, _, err := openFile(p, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(ctx, f, projectNotesMax, "AGENTS.md")
}

// oneTurn runs one prompt and exits; with --json each event is one line of JSON.
func oneTurn(ctx context.Context, c *invocation, text string) error {
	mask, err := c.answerMask(ctx)
	if err != nil {
		return err
	}
	var sink answerSink = &textSink{out: c.stdout, notes: c.stderr, screen: c.outTerminal, redact: c.redact, mask: mask}
	if c.json {
		sink = &jsonSink{out: c.stdout, redact: c.redact, mask: mask}
	}
	a, err := c.newAgent(ctx, sink)
	if err != nil {
		return err
	}
	res, err := a.runTurn(ctx, text)
	sink.flush()
	if err != nil {
		return turnFailure(err)
	}
	if sink, ok := sink.(*jsonSink); ok {
		return sink.completed(res)
	}
	_, err = fmt.Fprintln(c.stdout)
	return err
}

// answerSink is a turnSink that holds back what may be the beginning of a secret; flush lets go of it.
type answerSink interface {
	turnSink
	flush()
}

// answerMask gives what takes known secrets out of one answer as it streams in.
func (a *app) answerMask(ctx context.Context) (*redactStream, error) {
	r, err := a.known.redactor(ctx)
	if err != nil {
		return nil, err
	}
	return r.stream(), nil
}

func turnFailure(err error) error {
	if errors.Is(err, errTurnInterrupted) || errors.Is(err, context.Canceled) {
		return &cliError{Exit: exitInterrupted, Message: "interrupted", err: err}
	}
	if ce, ok := errors.AsType[*chatError](err); ok {
		return &cliError{Exit: exitFailed, Message: ce.Message, Hint: ce.Hint, err: err}
	}
	return err
}

// textSink prints a turn as it happens: answer text to out, everything about it to notes.
type textSink struct {
	out, notes io.Writer
	screen     bool // out is a terminal: control characters are written out
	redact     func(string) string
	mask       *redactStream // of the answer, which comes in parts
}

func (s *textSink) textDelta(text string) { s.write(s.mask.feed(text)) }

// flush writes what was held back because a secret might begin with it.
func (s *textSink) flush() { s.write(s.mask.flush()) }

func (s *textSink) write(text string) {
	if s.screen {
		text = visible(text)
	}
	fmt.Fprint(s.out, text)
}

func (s *textSink) toolStarted(c chatToolCall) {
	s.flush()
	fmt.Fprintf(s.notes, "· %s %s\n", visibleLine(c.Name), clip(visibleLine(s.redact(c.Args)), 200))
}

func (s *textSink) toolFinished(c chatToolCall, r toolResult, took time.Duration) {
	state := "done"
	switch {
	case r.Rule != "":
		state = "refused (" + r.Rule + ")"
	case r.IsError:
		state = "failed"
	}
	fmt.Fprintf(s.notes, "· %s %s in %s, %d bytes\n", visibleLine(c.Name), state, shortTime(took), len(r.Text))
	if r.Rule != "" && r.Hint != "" {
		fmt.Fprintln(s.notes, "  hint: "+visibleLine(r.Hint))
	}
}

func (s *textSink) notice(text string) {
	s.flush()
	fmt.Fprintln(s.notes, "· "+visible(s.redact(text)))
}

// jsonSink writes a turn as one line of JSON an event. The first line that cannot be written is the last; completed says so.
type jsonSink struct {
	out    io.Writer
	redact func(string) string
	mask   *redactStream // of the answer, which comes in parts
	err    error
}

func (s *jsonSink) event(v any) {
	if s.err == nil {
		s.err = writeJSONLine(s.out, v)
	}
}

type textEvent struct {
	Event string `json:"event"` // text or notice
	Text  string `json:"text"`
}

func (s *jsonSink) textDelta(text string) { s.text(s.mask.feed(text)) }

// flush writes what was held back because a secret might begin with it.
func (s *jsonSink) flush() { s.text(s.mask.flush()) }

func (s *jsonSink) text(text string) {
	if text != "" {
		s.event(textEvent{"text", text})
	}
}

func (s *jsonSink) notice(text string) {
	s.flush()
	s.event(textEvent{"notice", s.redact(text)})
}

func (s *jsonSink) toolStarted(c chatToolCall) {
	s.flush()
	args := json.RawMessage(s.redact(c.Args))
	if checkJSON(args) != nil {
		args = appendJSONString(nil, s.redact(c.Args))
	}
	s.event(struct {
		Event string          `json:"event"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Args  json.RawMessage `json:"arguments"`
	}{"tool_started", c.ID, c.Name, args})
}

func (s *jsonSink) toolFinished(c chatToolCall, r toolResult, took time.Duration) {
	s.event(struct {
		Event    string `json:"event"`
		ID       string `json:"id"`
		Name     string `json:"name"`
		IsError  bool   `json:"isError"`
		Text     string `json:"text"`
		Duration int64  `json:"duration_ms"`
		Rule     string `json:"rule,omitempty"`
		Hint     string `json:"hint,omitempty"`
	}{"tool_finished", c.ID, c.Name, r.IsError, r.Text, took.Milliseconds(), r.Rule, r.Hint})
}

// completed writes the last event, or says what kept an earlier one from being written.
func (s *jsonSink) completed(r turnResult) error {
	type usage struct {
		Input  int `json:"input"`
		Output int `json:"output"`
	}
	s.event(struct {
		Event   string `json:"event"`
		Text    string `json:"text"`
		Session string `json:"session"`
		Steps   int    `json:"steps"`
		Usage   usage  `json:"usage"`
	}{"turn_completed", s.redact(r.Text), r.Session, r.Steps, usage{r.Usage.Input, r.Usage.Output}})
	return s.err
}

// repl is the prompt on a terminal.
type repl struct {
	*invocation
	lines *replLines
	agent *agent
	sink  *textSink // of the agent

	otherModel bool // another model may have been chosen since the agent was made
}

// loop reads lines until the end of input, /exit or two interrupts of an empty prompt. Else an interrupt ends the running turn or
// command alone.
func (r *repl) loop(ctx context.Context) error {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt) // read by nobody: between two lines an interrupt ends nothing
	defer signal.Stop(interrupts)
	fmt.Fprintln(r.stdout, "tai "+version+"  /help lists the commands, /exit leaves")
	if notice := r.modelNotice(ctx); notice != "" {
		fmt.Fprintln(r.stdout, notice)
	}
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
			r.lines.keep(ctx, typed)
			r.handleLine(ctx, line)
			r.lines.done(ctx, typed)
		}
		interrupted = false
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
		err = r.turn(ctx, line)
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
	words, err := splitWords(line)
	if err != nil {
		return usageError("quotes come in pairs", "%v", err)
	}
	if len(words) > 0 && words[0] == "call" {
		words = append([]string{"tools"}, words...)
	}
	if len(words) > 0 && words[0] == "tools" && len(words) == 1 {
		words = []string{"tools", "list"}
	}
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
	r.lines.printKeys()
	return nil
}

func (r *repl) turn(ctx context.Context, text string) error {
	if r.agent == nil {
		sink := &textSink{out: r.stdout, notes: r.stderr, screen: true, redact: r.redact}
		a, err := r.newAgent(ctx, sink)
		if err != nil {
			return err
		}
		r.agent, r.sink = a, sink
	} else if r.otherModel {
		model, usage, err := r.talkTo(ctx, r.sink.notice)
		if err != nil {
			return err
		}
		r.agent.Model, r.agent.Usage = model, usage
	}
	r.otherModel = false
	mask, err := r.answerMask(ctx)
	if err != nil {
		return err
	}
	r.sink.mask = mask
	begin := r.out.Now()
	res, err := r.agent.runTurn(ctx, text)
	r.sink.flush()
	fmt.Fprintln(r.stdout)
	if err != nil {
		return turnFailure(err)
	}
	fmt.Fprintf(r.stderr, "· %d in, %d out, %s\n", res.Usage.Input, res.Usage.Output, shortTime(r.out.Now().Sub(begin)))
	return nil
}
