// This file edits one line on a terminal: it owns the terminal's mode from the prompt to the line's end, reads keys, shows the text, and
// stops and goes on with the program. What a key does to the text is in edit_line.go, what is shown in edit_render.go. It does not know
// what a line is for.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

const (
	editSequenceWait = 100 * time.Millisecond // for the rest of a sequence; then an ESC was the key
	editPasteWait    = 5 * time.Second        // for the rest of a paste whose end mark does not come
	editBurstWait    = 10 * time.Millisecond  // for more of a paste that has no marks
	editChunk        = 4096                   // bytes of one read; no terminal hands over more
)

// What ends a line without one.
var (
	errLineInterrupt = errors.New("interrupt in an empty line")
	errLineOutside   = errors.New("the text is to be edited elsewhere")
)

// lineEditor reads lines from a terminal with a screen. It is for one goroutine.
type lineEditor struct {
	in, screen *os.File
	prompt     string
	reflows    bool            // the terminal wraps lines anew when it is resized
	recall     func() []string // the history, oldest first
	complete   completer       // nil without one
	news       func() []string // lines for the person that have come meanwhile; nil without any
}

// editSession is one call of readLine.
type editSession struct {
	*lineEditor
	line    *editLine
	keys    keyDecoder
	picture renderer
	shown   terminalMode // as found
	restore func() error // the screen
	raw     bool
	queue   []key // read and not done yet
	signals chan os.Signal
	cols    int
	rows    int
	waited  time.Duration // for the rest of what keys holds
	paused  int           // ticks left of a stop by Ctrl-Z; nothing is read meanwhile
}

// canEdit says whether lines can be edited on a terminal of that kind, as a function of what the environment tells: not on a dumb one, and
// not where the locale has no UTF-8. An unset locale is taken for UTF-8, as terminals are.
func canEdit(goos string, getenv func(string) string) bool {
	term := getenv("TERM")
	if goos != "windows" && (term == "" || term == "unknown") || term == "dumb" {
		return false
	}
	return utf8Locale(goos, getenv)
}

func utf8Locale(goos string, getenv func(string) string) bool {
	if goos == "windows" {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return true
}

// reflowsLines says whether a terminal wraps long lines anew when its width changes. Those known not to are named.
func reflowsLines(getenv func(string) string) bool {
	term := getenv("TERM")
	for _, kind := range []string{"linux", "rxvt", "putty", "vt", "xterm-r6", "eterm"} {
		if strings.HasPrefix(term, kind) && !strings.HasPrefix(term, "vte") {
			return false
		}
	}
	return term != "xterm" && getenv("XTERM_VERSION") == ""
}

// usable says whether the screen has a size and takes cursor moves.
func (e *lineEditor) usable() bool {
	if _, _, ok := terminalSize(e.screen); !ok {
		return false
	}
	restore, err := prepareScreen(e.screen)
	return err == nil && restore() == nil
}

// readLine shows the prompt and gives the text that a person sends, which begins as text. It ends with io.EOF on Ctrl-D and errLineInterrupt
// on Ctrl-C in an empty line, with errLineOutside and the text so far on Ctrl-X Ctrl-E, with ctx's error, and with errInterrupted on
// SIGTERM and the like. On every way out, a panic in this goroutine included, the terminal is as it was; while Ctrl-Z stops the program too.
func (e *lineEditor) readLine(ctx context.Context, text string) (line string, err error) {
	s := &editSession{lineEditor: e, line: newEditLine(text, e.recall), signals: make(chan os.Signal, 8)}
	if s.shown, err = terminalModeOf(e.in); err != nil {
		return "", errorf("edit a line: not a terminal: %w", err)
	}
	signal.Notify(s.signals, append(endSignals(), resumeSignals()...)...)
	defer signal.Stop(s.signals)
	defer func() {
		if fault := s.leave(); fault != nil && err == nil {
			line, err = "", errorf("edit a line: %w", fault)
		}
	}()
	if err := s.enter(); err != nil {
		return "", errorf("edit a line: %w", err)
	}
	return s.run(ctx)
}

// enter takes the terminal.
func (s *editSession) enter() error {
	restore, err := prepareScreen(s.screen)
	if err != nil {
		return err
	}
	s.restore, s.raw = restore, true
	if err := s.shown.editing().apply(s.in); err != nil {
		return err
	}
	_, err = io.WriteString(s.screen, "\x1b[?2004h")
	return err
}

// leave puts the terminal back.
func (s *editSession) leave() error {
	if !s.raw {
		return nil
	}
	s.raw = false
	_, err := io.WriteString(s.screen, "\x1b[?2004l")
	return joinErrors(err, s.restore(), s.shown.apply(s.in))
}

// run reads keys until the line is done.
func (s *editSession) run(ctx context.Context) (string, error) {
	deed, err := s.typedAhead()
	if err != nil {
		return "", err
	}
	for {
		if err := s.draw(); err != nil {
			return "", err
		}
		if deed == deedNone && len(s.queue) > 0 {
			deed = s.press(nil)
		} else if deed == deedNone {
			if deed, err = s.await(ctx); err != nil {
				return "", joinErrors(err, s.finish())
			}
		}
		switch deed {
		case deedSend:
			return s.line.buf.String(), s.finish()
		case deedEnd:
			return "", joinErrors(io.EOF, s.finish())
		case deedInterrupt:
			return "", joinErrors(errLineInterrupt, s.finish())
		case deedOutside:
			return s.line.buf.String(), joinErrors(errLineOutside, s.finish())
		case deedNone:
		default:
			if err := s.do(ctx, deed); err != nil {
				return "", err
			}
		}
		deed = deedNone
	}
}

// do does what does not end the line.
func (s *editSession) do(ctx context.Context, deed editDeed) error {
	switch deed {
	case deedCancel:
		err := s.finishWith("^C\r\n")
		s.queue = nil
		s.line = newEditLine("", s.recall)
		return err
	case deedSuspend:
		s.paused = hiddenSettle
		return joinErrors(s.finish(), s.leave(), suspendSelf())
	case deedClear:
		s.picture.restart()
		return s.write([]byte("\x1b[H\x1b[2J"))
	case deedComplete:
		return s.completeWord(ctx)
	}
	return nil
}

// typedAhead takes what was typed before the prompt. Its line ends are text: whoever pressed Enter then did not see what it would answer.
func (s *editSession) typedAhead() (editDeed, error) {
	ready, err := inputReady(s.in, 0)
	if err != nil || !ready {
		return deedNone, err
	}
	b, err := s.read()
	if err != nil {
		return deedNone, err
	}
	if err := s.write([]byte("\r\x1b[J")); err != nil { // what the terminal has echoed comes again with the prompt
		return deedNone, err
	}
	if !slices.Contains(b, '\n') {
		return s.take(b)
	}
	var text []rune
	for _, k := range s.keys.feed(b) {
		switch {
		case k.code == keyRune && k.mods == 0:
			text = append(text, k.r)
		case k.code == keyEnter || k.code == keyRune && k.mods == modCtrl && k.r == 'j':
			text = append(text, '\n')
		}
	}
	s.line.typed([]rune(strings.Trim(string(text), "\n")))
	return deedNone, nil
}

// await waits for keys, signals, a new size or the end of ctx, and gives the deed that a key asks for.
func (s *editSession) await(ctx context.Context) (editDeed, error) {
	for {
		if deed, done, err := s.heed(ctx); done || err != nil {
			return deed, err
		}
		if s.paused > 0 {
			if done, err := s.pause(ctx); done || err != nil {
				return deedNone, err
			}
			continue
		}
		ready, err := inputReady(s.in, hiddenTick)
		if err != nil {
			return deedNone, errorf("read the terminal: %w", err)
		}
		if !ready {
			if deed, done := s.idle(); done {
				return deed, nil
			}
			continue
		}
		s.waited = 0
		b, err := s.read()
		if err != nil {
			return deedNone, err
		}
		return s.take(b)
	}
}

// heed looks whether a signal, the end of ctx or another size has come.
func (s *editSession) heed(ctx context.Context) (deed editDeed, done bool, err error) {
	select {
	case <-ctx.Done():
		return deedNone, true, ctx.Err()
	case sig := <-s.signals:
		switch {
		case slices.Contains(resumeSignals(), sig):
			s.paused = 0
			return deedNone, true, s.resume()
		case sig == os.Interrupt:
			return s.line.press(key{code: keyRune, r: 'c', mods: modCtrl}), true, nil
		}
		return deedNone, true, errInterrupted
	default:
	}
	if s.news != nil && s.paused == 0 && s.line.search == nil && !s.keys.pending() {
		if lines := s.news(); len(lines) > 0 {
			s.line.told = strings.TrimPrefix(s.line.told+"\n· "+strings.Join(lines, "\n· "), "\n")
			return deedNone, true, nil
		}
	}
	if cols, rows, ok := terminalSize(s.screen); ok && s.cols > 0 && (cols != s.cols || rows != s.rows) && s.paused == 0 {
		return deedNone, true, nil // drawing takes it in
	}
	return deedNone, false, nil
}

// pause lets one tick pass; after the last one nothing has stopped the program, and the line goes on.
func (s *editSession) pause(ctx context.Context) (done bool, err error) {
	select {
	case <-ctx.Done():
		return true, ctx.Err()
	case <-time.After(hiddenTick):
	}
	if s.paused--; s.paused > 0 {
		return false, nil
	}
	return true, s.resume()
}

// resume takes the terminal again, whose mode a shell may have changed, and begins the picture anew.
func (s *editSession) resume() error {
	if err := s.enter(); err != nil {
		return err
	}
	s.picture.restart()
	return s.write([]byte("\r\x1b[J"))
}

// idle ends a sequence or paste that nothing more comes of.
func (s *editSession) idle() (editDeed, bool) {
	if !s.keys.pending() {
		return deedNone, false
	}
	s.waited += hiddenTick
	wait := editSequenceWait
	if s.keys.pasting {
		wait = editPasteWait
	}
	if s.waited < wait {
		return deedNone, false
	}
	s.waited = 0
	return s.press(s.keys.flush()), true
}

// read gives what the terminal has. More than one line at once is a paste without marks, of which the rest is waited for.
func (s *editSession) read() ([]byte, error) {
	var all []byte
	buf := make([]byte, editChunk)
	for {
		n, err := s.in.Read(buf)
		if n == 0 {
			return nil, joinErrors(io.EOF, err)
		}
		if len(all) <= editPasteMax { // what is beyond is only counted away
			all = append(all, buf[:n]...)
		}
		if len(all) < 2 || s.keys.pasting || !slices.Contains(all, '\r') && !slices.Contains(all, '\n') && n < editChunk/4 {
			return all, nil
		}
		if ready, err := inputReady(s.in, editBurstWait); err != nil || !ready {
			return all, err
		}
	}
}

// take does what bytes from the terminal ask for.
func (s *editSession) take(b []byte) (editDeed, error) {
	whole := b
	if len(s.keys.held) > 0 {
		whole = slices.Concat(s.keys.held, b)
	}
	marked := s.keys.pasting || strings.Contains(string(whole), pasteBegin)
	keys := s.keys.feed(b)
	if !marked && severalLines(keys) {
		s.keys = keyDecoder{}
		s.line.pasted(whole, len(whole) > editPasteMax)
		return deedNone, nil
	}
	return s.press(keys), nil
}

// severalLines reports keys with text behind a line end: nobody types so fast. What follows may not be done as if it were typed.
func severalLines(keys []key) bool {
	ended := false
	for _, k := range keys {
		switch {
		case isLineEnd(k):
			ended = true
		case ended && k.code == keyRune && k.mods == 0:
			return true
		}
	}
	return false
}

func isLineEnd(k key) bool {
	return k.code == keyEnter && k.mods == 0 || k.code == keyRune && k.mods == modCtrl && k.r == 'j'
}

// press does keys in order, characters in a row at once. A line feed right behind text of the same burst is the Enter of a program that
// types: a hand is slower. Keys behind a deed wait for it; those behind the line's end are dropped.
func (s *editSession) press(keys []key) editDeed {
	keys = append(s.queue, keys...)
	s.queue = nil
	var text []rune
	flush := func() {
		if len(text) > 0 {
			s.line.typed(text)
			text = nil
		}
	}
	for i, k := range keys {
		if k.code == keyRune && k.mods == 0 {
			text = append(text, k.r)
			continue
		}
		if len(text) > 0 && i == len(keys)-1 && isLineEnd(k) {
			k = key{code: keyEnter}
		}
		flush()
		if k.code == keyPaste {
			s.line.pasted(k.paste, k.tooLong)
			continue
		}
		if deed := s.line.press(k); deed != deedNone {
			s.queue = slices.Clone(keys[i+1:])
			return deed
		}
	}
	flush()
	return deedNone
}

// draw shows the line as it is, and before it what it has to tell.
func (s *editSession) draw() error {
	if s.paused > 0 {
		return nil
	}
	if told := s.line.told; told != "" {
		s.line.told = ""
		if err := s.say(told + "\n"); err != nil {
			return err
		}
	}
	if err := s.measure(); err != nil {
		return err
	}
	return s.write(s.picture.frame(s.picturePart(s.rows), s.cols))
}

// measure takes the screen's size. Where the width is another, what is shown is cleared, wherever the terminal has put it.
func (s *editSession) measure() error {
	before := s.cols
	if cols, rows, ok := terminalSize(s.screen); ok {
		s.cols, s.rows = cols, rows
	}
	s.cols, s.rows = max(s.cols, editMinColumns), max(s.rows, 1)
	if before == 0 || before == s.cols {
		return nil
	}
	return s.write(s.picture.again(s.cols, s.reflows))
}

func (s *editSession) picturePart(height int) layout {
	prompt, text, cursor := s.line.view()
	if prompt == "" {
		prompt = s.prompt
	}
	e := editedText{prompt: prompt, more: strings.Repeat(" ", textWidth(s.prompt)), text: text, cursor: cursor}
	return e.layout(s.cols, height)
}

// finish leaves the text whole on the screen, and the cursor on a new row below it.
func (s *editSession) finish() error { return s.finishWith("\r\n") }

func (s *editSession) finishWith(end string) error {
	s.line.acceptMatch()
	s.line.buf.cursor = len(s.line.buf.text)
	err := s.measure()
	part := s.picturePart(s.rows)
	if part.total > len(part.rows) && part.total <= editPrintRows {
		err = joinErrors(err, s.write(s.picture.again(s.cols, false)))
		part = s.picturePart(0)
	}
	err = joinErrors(err, s.write(s.picture.frame(part, s.cols)), s.write([]byte(end)))
	s.picture.restart()
	return err
}

// say writes lines below what is shown; the text comes again below them.
func (s *editSession) say(lines string) error {
	cursor := s.line.buf.cursor
	err := s.finish()
	s.line.buf.cursor = cursor
	return joinErrors(err, s.write([]byte(strings.ReplaceAll(lines, "\n", "\r\n"))))
}

func (s *editSession) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if _, err := s.screen.Write(b); err != nil {
		return errorf("write to the terminal: %w", err)
	}
	return nil
}

// completeWord puts in what all candidates for the word before the cursor share; a second Tab in a row lists them.
func (s *editSession) completeWord(ctx context.Context) error {
	if s.complete == nil {
		return nil
	}
	b := &s.line.buf
	c := s.candidates(ctx, string(b.text[:b.cursor]))
	if len(c.list) == 0 {
		return nil
	}
	from := b.cursor - min(c.replace, b.cursor)
	prefix := commonPrefix(c.list)
	if len(c.list) == 1 && !c.list[0].open {
		prefix = append(prefix, ' ')
	}
	if len(prefix) > b.cursor-from || len(c.list) == 1 {
		if !slices.Equal(prefix, b.text[from:b.cursor]) {
			b.replace(from, b.cursor, prefix)
		}
		s.line.tabs = min(s.line.tabs, 1)
		return nil
	}
	if s.line.tabs < 2 {
		return nil
	}
	return s.say(listColumns(c.list, s.cols))
}

// candidates asks the completer, which may be slow: what has not come in time is none. A panic of it becomes one of this goroutine, which
// puts the terminal back.
func (s *editSession) candidates(ctx context.Context, before string) completion {
	ctx, cancel := context.WithTimeout(ctx, completeWait)
	defer cancel()
	got, broken := make(chan completion, 1), make(chan any, 1)
	go func() { // ends when the completer does, which heeds ctx but for a file system that hangs
		defer func() {
			if v := recover(); v != nil {
				broken <- v
			}
		}()
		got <- s.complete.complete(ctx, before).sorted()
	}()
	select {
	case c := <-got:
		return c
	case v := <-broken:
		panic(v)
	case <-ctx.Done():
		return completion{}
	}
}
