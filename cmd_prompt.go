// This file is tai without a command: what stands on the command line and on standard input becomes one turn, else the prompt opens. It picks the
// session to go on with and makes the agent. It calls no model and no tool itself.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	pipedMax   = 512 << 10         // bytes that a pipe adds to a prompt; the agent bounds the whole message
	pipedTime  = 600 * time.Second // until standard input has to have come to its end
	pipedWord  = 2 * time.Second   // then a line says what is waited for
	choicesMax = 20                // sessions that --resume shows to choose from
)

// turnFlags are those of the prompt and of one turn.
func turnFlags() []flagSpec {
	return []flagSpec{
		{Name: "continue", Help: "go on with the last session of this workspace"},
		{Name: "resume", Value: "[ID]", Fits: isSessionID, Help: "go on with a session; without an ID choose from a list"},
		{Name: "max-steps", Value: "N", Help: fmt.Sprintf("replies of the model in one turn (default %d)", agentMaxSteps)},
		{Name: "max-tokens", Value: "N", Help: "output tokens of one turn, all its replies together"},
		{Name: "max-time", Value: "TIME", Help: "time of one turn, such as 90s or 10m, questions to you included"},
		{Name: "window", Value: "TOKENS", Help: "what the model takes; a longer conversation is summed up"},
	}
}

// isSessionID reports a word that looks like the id of a session.
func isSessionID(word string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(word), "s-")
	return ok && rest != "" && strings.Trim(rest, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// runPrompt is tai without a command: one turn where there is a prompt or a pipe, else the prompt on the terminal.
func runPrompt(ctx context.Context, c *invocation) error {
	text := strings.Join(append(c.args, c.rest...), " ")
	bounds, window, err := c.turnBounds()
	if err != nil {
		return err
	}
	if !c.inTerminal {
		piped, err := pipedText(ctx, c.stdin, func(s string) { fmt.Fprintln(c.stderr, "tai: "+s) })
		if err != nil {
			return err
		}
		text = attachText(text, piped)
	}
	c.turn, c.window = turnSetup{bounds: bounds, window: window}, window
	if text == "" && (!c.person || c.given("p") || c.json) {
		return usageError(`tai "PROMPT", or a prompt on standard input; tai help lists the commands`, "nothing to do")
	}
	if c.turn.session, err = c.pickSession(ctx); err != nil {
		return err
	}
	if text != "" {
		return oneTurn(ctx, c, text)
	}
	return (&repl{invocation: c, lines: newLines(c.app, commands())}).loop(c.life)
}

// turnBounds reads the flags that bound a turn.
func (c *invocation) turnBounds() (b turnBounds, window int, err error) {
	number := func(name string, least, most int) int {
		if !c.given(name) || err != nil {
			return 0
		}
		n, bad := strconv.Atoi(c.flag(name))
		if bad != nil || n < least || n > most {
			err = usageError("", "--%s takes a whole number from %d to %d", name, least, most)
		}
		return n
	}
	b.Steps, b.Tokens, window = number("max-steps", 1, 10_000), number("max-tokens", 1, 100_000_000), number("window", 2_000, 100_000_000)
	if err == nil && c.given("max-time") {
		d, bad := time.ParseDuration(c.flag("max-time"))
		if bad != nil || d < time.Second || d > 24*time.Hour {
			return b, 0, usageError("90s, 10m, 1h30m", "--max-time takes a time from 1s to 24h")
		}
		b.Time = d
	}
	return b, window, err
}

// pipedText reads what another program hands over. It has to be text, and to end in time.
func pipedText(ctx context.Context, r io.Reader, tell func(string)) (string, error) {
	within, cancel := context.WithTimeoutCause(ctx, pipedTime, errorf("standard input did not end within %s", pipedTime))
	defer cancel()
	word := time.AfterFunc(pipedWord, func() { tell("reading standard input until it ends; </dev/null leaves it out") })
	defer word.Stop()
	b, err := readBounded(within, r, pipedMax, "standard input")
	switch {
	case err != nil && ctx.Err() == nil && within.Err() != nil:
		return "", context.Cause(within)
	case err != nil:
		return "", err
	case len(b) > pipedMax:
		return "", usageError("put it in a file and name the file in the prompt", "standard input has more than %d bytes", pipedMax)
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "", usageError("put it in a file and name the file in the prompt", "standard input is no text (UTF-8)")
	}
	return strings.TrimSpace(string(b)), nil
}

// attachText puts what came on standard input behind the prompt, in a frame that it cannot end itself: the mark is made of it. Without a prompt it
// is the prompt.
func attachText(prompt, piped string) string {
	prompt = strings.TrimSpace(prompt)
	if prompt == "" || piped == "" {
		return cmp.Or(prompt, piped)
	}
	mark := "stdin-" + sha256Hex([]byte(piped))[:12]
	return fmt.Sprintf("%s\n\nStandard input, %d bytes between the marks:\n<%s>\n%s\n</%s>", prompt, len(piped), mark, piped, mark)
}

// pickSession finds the session that the flags mean, "" for a new one.
func (c *invocation) pickSession(ctx context.Context) (string, error) {
	if c.given("continue") && c.given("resume") {
		return "", usageError("", "--continue and --resume exclude each other")
	}
	if !c.given("continue") && !c.given("resume") {
		return "", nil
	}
	v, err := c.vault(ctx)
	if err != nil {
		return "", err
	}
	profile, err := c.profile(ctx)
	if err != nil {
		return "", err
	}
	s := sessionInfo{}
	switch id := c.flag("resume"); {
	case c.given("continue"):
		list, _, err := v.sessions(ctx, sessionQuery{Root: c.root, Profile: profile, Limit: 1})
		if err != nil {
			return "", err
		}
		if len(list) == 0 {
			return "", &cliError{Exit: exitFailed, Message: fmt.Sprintf("no session of %s in profile %s is there to go on with", visibleLine(c.root), visibleLine(profile)), Hint: "tai session list shows those of all workspaces"}
		}
		s = list[0]
	case id != "":
		if s, err = v.session(ctx, id); err != nil {
			return "", orUnknown(err, "tai session list shows the ids")
		}
	default:
		if s, err = c.chooseSession(ctx, v); err != nil {
			return "", err
		}
	}
	c.tellPlace(s, profile)
	return s.ID, nil
}

// tellPlace says where a session comes from, if that is not where it goes on.
func (c *invocation) tellPlace(s sessionInfo, profile string) {
	if s.Root != "" && s.Root != c.root {
		fmt.Fprintf(c.stderr, "tai: session %s was begun in %s; it goes on in %s\n", s.ID, visibleLine(c.redact(s.Root)), visibleLine(c.root))
	}
	if s.Profile != profile {
		fmt.Fprintf(c.stderr, "tai: session %s was begun in profile %s; it goes on in profile %s\n", s.ID, visibleLine(s.Profile), visibleLine(profile))
	}
}

// chooseSession has the person choose one of the last sessions: those of this workspace, or of all where it has none.
func (c *invocation) chooseSession(ctx context.Context, v *vault) (sessionInfo, error) {
	if c.console == nil {
		return sessionInfo{}, usageError("tai session list shows the ids", "--resume needs the id of a session where no terminal is")
	}
	list, _, err := v.sessions(ctx, sessionQuery{Root: c.root, Limit: choicesMax})
	if err == nil && len(list) == 0 {
		list, _, err = v.sessions(ctx, sessionQuery{Limit: choicesMax})
	}
	if err != nil {
		return sessionInfo{}, err
	}
	if len(list) == 0 {
		return sessionInfo{}, &cliError{Exit: exitFailed, Message: "no session is there to go on with", Hint: `tai "PROMPT" begins one`}
	}
	for i, s := range list {
		fmt.Fprintf(c.stderr, "%3d  %s\n", i+1, c.sessionLine(s))
	}
	for {
		answer, err := c.console.reply(ctx, "number or id (Enter: 1): ")
		if err != nil {
			return sessionInfo{}, err
		}
		answer = cmp.Or(strings.TrimSpace(answer), "1")
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(list) {
			return list[n-1], nil
		}
		if isSessionID(answer) {
			if s, err := v.session(ctx, answer); err == nil || !errors.Is(err, errNotFound) {
				return s, err
			}
		}
		fmt.Fprintln(c.stderr, "none of these: "+quoteClip(answer))
	}
}

// newAgent makes the agent of this run, or says what model it looked for.
func (c *invocation) newAgent(ctx context.Context, sink turnSink) (*agent, error) {
	config := agentConfig{Sink: sink, Origin: c.origin, Root: c.root, Bounds: c.turn.bounds, Word: c.modeWord, Follows: true}
	err := c.equip(ctx, &config)
	if err == nil {
		config.Profile, err = c.profile(ctx)
	}
	if err != nil {
		return nil, err
	}
	a := newAgent(config)
	if c.turn.session == "" {
		return a, nil
	}
	return a, orUnknown(a.resume(ctx, c.turn.session), "tai session list shows the ids")
}

// equip gives an agent its model, tools, store and system text.
func (c *invocation) equip(ctx context.Context, config *agentConfig) error {
	if err := c.useModel(ctx, config, config.Sink.notice); err != nil {
		return err
	}
	box, err := c.toolbox()
	if err != nil {
		return err
	}
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	config.Tools, config.Store = box, v
	config.System = agentSystem(c.root, c.goos, c.out.Now(), c.notes(ctx, config.Sink))
	return nil
}

// useModel puts the model of this run into an agent's configuration.
func (c *invocation) useModel(ctx context.Context, config *agentConfig, notice func(string)) error {
	client, usage, err := c.talkTo(ctx, notice)
	if err != nil {
		return err
	}
	e := client.current()
	config.Model, config.ModelName, config.Usage = client, e.Model, usage
	config.Window = cmp.Or(c.turn.window, e.Context, modelWindow(e.Model), agentWindow)
	return nil
}

// notes reads the project's notes and says which were read.
func (c *invocation) notes(ctx context.Context, sink turnSink) []projectNote {
	notes, faults := projectNotes(ctx, c.root, c.userHome())
	for _, err := range faults {
		fmt.Fprintln(c.stderr, "tai: "+visibleLine(err.Error()))
	}
	paths := make([]string, len(notes))
	for i, n := range notes {
		paths[i] = n.Path
	}
	if len(notes) > 0 {
		sink.notice("read for the model: " + strings.Join(paths, ", "))
	}
	return notes
}

// oneTurn runs one prompt and exits; with --json each event is one line of JSON. Where its answer cannot be written any more, the turn ends.
func oneTurn(ctx context.Context, c *invocation, text string) error {
	mask, err := c.answerMask(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.stdout.broken = cancel
	var sink answerSink = &textSink{out: c.stdout, notes: c.stderr, screen: c.outTerminal, hold: !c.outTerminal, redact: c.redact, mask: mask, width: c.errWidth}
	if c.json {
		sink = &jsonSink{out: c.stdout, redact: c.redact, mask: mask}
	}
	a, err := c.newAgent(ctx, sink)
	if err != nil {
		return c.onOneLine(err)
	}
	res, err := a.runTurn(ctx, text)
	sink.finish()
	if fault := c.stdout.fault(); fault != nil {
		return fault // it is also why the turn was ended
	}
	if err != nil {
		err = turnFailure(err, a)
	}
	switch sink := sink.(type) {
	case *jsonSink:
		if err == nil {
			return sink.completed(res)
		}
		ce := failure(maskFailure(err, c.known.quick))
		return cmp.Or[error](sink.failed(res, ce), errQuiet{ce.Exit})
	}
	return err
}

// onOneLine gives a failure without a line for its hint, for a program that reads what went wrong.
func (c *invocation) onOneLine(err error) error {
	ce, ok := errors.AsType[*cliError](err)
	if !ok || c.person || c.json || ce.Hint == "" {
		return err
	}
	return &cliError{Exit: ce.Exit, Message: ce.Message + "; " + ce.Hint, Rule: ce.Rule, err: err}
}

// answerMask gives what takes known secrets out of one answer as it streams in.
func (a *app) answerMask(ctx context.Context) (*redactStream, error) {
	r, err := a.known.redactor(ctx)
	if err != nil {
		return nil, err
	}
	return r.stream(), nil
}
