// This file shows a turn as it happens: as text, or as a line of JSON an event. What comes from the model, from tools and peers is masked and, on a
// screen, made safe here.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// answerSink is a turnSink that holds back what may be the beginning of a secret; finish lets go of it at the end of a turn.
type answerSink interface {
	turnSink
	finish()
}

// textSink prints a turn as it happens: answer text to out, everything about it to notes. Text that a call follows is no answer; where a program
// reads out, it goes to notes.
type textSink struct {
	out, notes io.Writer
	screen     bool // out is a terminal: control characters are written out
	hold       bool // a program reads out: it gets the answer alone, at its end
	redact     func(string) string
	mask       *redactStream // of the answer, which comes in parts
	results    *resultLog    // where results go to be shown again; nil: nowhere
	width      func() int    // columns of notes, 0 where it is no screen; nil: the same

	shown visibleAnswer // how it is made safe on a screen
	held  strings.Builder
	open  bool // the last line of out has no end yet
	ended bool // an interrupt was seen

	interrupted func() bool // tells that the person has ended this turn, which the terminal shows as ^C where the cursor stood; nil: nobody does
}

func (s *textSink) textDelta(text string) { s.write(s.mask.feed(text)) }

// flush writes what was held back because a secret might begin with it.
func (s *textSink) flush() {
	s.write(s.mask.flush())
	if rest := s.shown.rest(); rest != "" {
		fmt.Fprint(s.out, rest)
	}
}

// finish ends a turn: what was said last is the answer.
func (s *textSink) finish() {
	s.flush()
	if text := strings.TrimRight(s.held.String(), "\n"); text != "" {
		fmt.Fprintln(s.out, text)
	}
	s.caret()
	if s.open {
		fmt.Fprintln(s.out)
	}
	s.held.Reset()
	s.open, s.ended = false, false
}

// caret ends the line that the terminal has put ^C on.
func (s *textSink) caret() {
	if s.screen && !s.ended && s.interrupted != nil && s.interrupted() {
		s.ended, s.open = true, false
		fmt.Fprintln(s.out)
	}
}

func (s *textSink) write(text string) {
	switch {
	case text == "":
		return
	case s.hold:
		s.held.WriteString(text)
		return
	case s.screen:
		if text = s.shown.text(text); text == "" {
			return
		}
	}
	s.open = !strings.HasSuffix(text, "\n")
	fmt.Fprint(s.out, text)
}

// aside makes way for a line about the turn. calls says that what was said so far is no answer.
func (s *textSink) aside(calls bool) {
	s.flush()
	if text := strings.TrimSpace(s.held.String()); calls && text != "" {
		fmt.Fprintln(s.notes, visible(text))
	}
	if calls {
		s.held.Reset()
	}
	s.caret()
	if s.open && s.screen {
		fmt.Fprintln(s.out)
	}
	s.open = false
}

func (s *textSink) columns() int {
	if s.width == nil {
		return 0
	}
	return s.width()
}

func (s *textSink) toolStarted(c chatToolCall) {
	s.aside(true)
	fmt.Fprintln(s.notes, callLine(c.Name, s.redact(c.Args), s.columns()))
}

func (s *textSink) toolFinished(c chatToolCall, r toolResult, took time.Duration) {
	s.caret()
	k := keepResult(c, r, took)
	if s.results != nil {
		k.N = s.results.add(k)
	}
	fmt.Fprint(s.notes, k.lines(s.redact(clip(r.Text, mcpResultMax)), s.results != nil, s.columns()))
	if r.Rule != "" && r.Hint != "" {
		fmt.Fprintln(s.notes, "  hint: "+visibleLine(r.Hint))
	}
	if r.Notice != "" {
		fmt.Fprintln(s.notes, "  warning: "+visibleLine(s.redact(r.Notice)))
	}
	for line := range strings.Lines(r.Shown) {
		fmt.Fprintln(s.notes, "  "+visibleLine(strings.TrimSuffix(line, "\n")))
	}
}

func (s *textSink) notice(text string) {
	s.aside(false)
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

func (s *jsonSink) finish() { s.flush() }

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
		Notice   string `json:"notice,omitempty"`
	}{"tool_finished", c.ID, c.Name, r.IsError, r.Text, took.Milliseconds(), r.Rule, r.Hint, s.redact(r.Notice)})
}

// turnUsage is what a turn cost, in tokens.
type turnUsage struct {
	Input  int `json:"input"`
	Output int `json:"output"`
}

// completed writes the last event, or says what kept an earlier one from being written.
func (s *jsonSink) completed(r turnResult) error {
	s.event(struct {
		Event   string    `json:"event"`
		Text    string    `json:"text"`
		Session string    `json:"session"`
		Steps   int       `json:"steps"`
		Refused int       `json:"refused,omitempty"`
		Usage   turnUsage `json:"usage"`
	}{"turn_completed", s.redact(r.Text), r.Session, r.Steps, r.Refused, turnUsage{r.Usage.Input, r.Usage.Output}})
	return s.err
}

// failed writes the last event of a turn that has no answer.
func (s *jsonSink) failed(r turnResult, ce *cliError) error {
	s.event(struct {
		Event   string      `json:"event"`
		Session string      `json:"session,omitempty"`
		Steps   int         `json:"steps"`
		Refused int         `json:"refused,omitempty"`
		Usage   turnUsage   `json:"usage"`
		Error   jsonFailure `json:"error"`
	}{"turn_failed", r.Session, r.Steps, r.Refused, turnUsage{r.Usage.Input, r.Usage.Output}, ce.json()})
	return s.err
}

// turnFailure says how a turn without an answer ended, and how to go on.
func turnFailure(err error, a *agent) error {
	ce := &cliError{Exit: exitFailed, Message: err.Error(), err: err}
	goOn := ""
	if a.session != "" {
		goOn = "tai --resume " + a.session + ` "go on" takes it up again`
	}
	bound := errors.Is(err, errStepBound) || errors.Is(err, errTokenBound) || errors.Is(err, errTimeBound)
	fault, isChat := errors.AsType[*chatError](err)
	switch {
	case errors.Is(err, errTurnInterrupted) || errors.Is(err, context.Canceled):
		ce.Exit, ce.Message, ce.Hint = exitInterrupted, "interrupted", goOn
	case isChat:
		ce.Message, ce.Hint = fault.Message, fault.Hint
	case (bound || errors.Is(err, errEmptyAnswer)) && a.refusal.Rule != "": // nothing came of the last calls but refusals
		ce.Exit, ce.Rule, ce.Hint = exitRefused, a.refusal.Rule, a.refusal.Hint
		ce.Message += "; its last calls were refused (" + a.refusal.Rule + ")"
	case bound:
		ce.Hint = goOn + "; --max-steps, --max-tokens and --max-time set the bounds"
	case errors.Is(err, errEmptyAnswer):
		ce.Hint = "ask again, or try another model; " + goOn
	}
	return ce
}
