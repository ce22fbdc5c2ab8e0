// This file tells terminals from other files and asks for one line that is not shown. It owns the terminal's mode from the prompt to the
// answer, and nothing of what the line means. What each operating system does its own way is in term_linux.go, term_darwin.go and
// term_windows.go.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"
	"unicode/utf8"
)

const (
	hiddenTick   = 50 * time.Millisecond // how often a hidden prompt looks for the end of its context and for signals
	hiddenSettle = 4                     // ticks that a stop may take to come, or not to come where nothing can stop the program
	hiddenMax    = 4096                  // bytes of a hidden line
)

// errInterrupted is the answer of a prompt that a signal has ended.
var errInterrupted = errors.New("interrupted")

// isTerminal says whether f is a terminal.
func isTerminal(f *os.File) bool {
	_, err := terminalModeOf(f)
	return err == nil
}

// readHidden writes the prompt to out and reads one line from the terminal in, without its end and without showing it. What was typed
// before the prompt, or pasted after the line's end, is dropped. It fails if in is no terminal, with ctx's error, with errInterrupted on
// SIGINT, SIGTERM and the like, and with io.EOF on Ctrl-D in an empty line. On every way out, a panic in this goroutine included, the
// terminal is as it was; while Ctrl-Z stops the program too, and back in the foreground the prompt comes again, hidden.
func readHidden(ctx context.Context, in *os.File, out io.Writer, prompt string) (line string, err error) {
	shown, err := terminalModeOf(in)
	if err != nil {
		return "", errorf("read hidden input: not a terminal: %w", err)
	}
	p := &hiddenPrompt{in: in, out: out, prompt: prompt, shown: shown, signals: make(chan os.Signal, 8)}
	signal.Notify(p.signals, append(endSignals(), resumeSignals()...)...)
	defer signal.Stop(p.signals)
	defer clear(p.line[:])
	defer func() {
		if err = joinErrors(err, p.show()); err != nil {
			line, err = "", errorf("read hidden input: %w", err)
		}
	}()
	if err := p.hide(); err != nil {
		return "", err
	}
	if line, err = p.read(ctx); err != nil {
		return "", joinErrors(err, p.newline())
	}
	return line, p.newline()
}

// hiddenPrompt is one call of readHidden.
type hiddenPrompt struct {
	in      *os.File
	out     io.Writer
	prompt  string
	shown   terminalMode // as found
	signals chan os.Signal
	line    [hiddenMax]byte // an array, so that no copies of a growing slice stay behind
	n       int             // bytes of line in use
	paused  int             // ticks left of a stop by Ctrl-Z; nothing is read meanwhile
}

// hide turns echo off, drops what is waiting and asks.
func (p *hiddenPrompt) hide() error {
	p.n, p.paused = 0, 0
	if err := p.shown.hidden().apply(p.in); err != nil {
		return err
	}
	if err := flushInput(p.in); err != nil {
		return err
	}
	_, err := io.WriteString(p.out, p.prompt)
	return err
}

// show puts the terminal back. Input that nobody has read is dropped first, since it may be part of the secret.
func (p *hiddenPrompt) show() error {
	return joinErrors(flushInput(p.in), p.shown.apply(p.in))
}

func (p *hiddenPrompt) newline() error {
	_, err := io.WriteString(p.out, "\n")
	return err
}

func (p *hiddenPrompt) read(ctx context.Context) (string, error) {
	var buf [256]byte
	defer clear(buf[:])
	for {
		if err := p.heed(ctx); err != nil {
			return "", err
		}
		if p.paused > 0 {
			if err := p.pause(ctx); err != nil {
				return "", err
			}
			continue
		}
		ready, err := inputReady(p.in, hiddenTick)
		if err != nil {
			return "", err
		}
		if !ready {
			continue
		}
		n, err := p.in.Read(buf[:])
		if err != nil {
			return "", err
		}
		done, err := p.take(buf[:n])
		if done || err != nil {
			return string(p.line[:p.n]), err
		}
	}
}

// heed looks whether a signal or the end of ctx has come.
func (p *hiddenPrompt) heed(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case s := <-p.signals:
		if slices.Contains(resumeSignals(), s) {
			return p.hide() // a shell may have changed the mode while the program was stopped
		}
		return errInterrupted
	default:
		return nil
	}
}

// pause lets one tick pass and asks again after the last one: then nothing has stopped the program.
func (p *hiddenPrompt) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(hiddenTick):
	}
	if p.paused--; p.paused == 0 {
		return p.hide()
	}
	return nil
}

// take adds typed bytes to the line and says whether it is complete.
func (p *hiddenPrompt) take(typed []byte) (bool, error) {
	for _, c := range typed {
		switch c {
		case '\r', '\n':
			return true, nil
		case 0x04: // Ctrl-D
			if p.n == 0 {
				return false, io.EOF
			}
			return true, nil
		case '\b', 0x7f:
			_, size := utf8.DecodeLastRune(p.line[:p.n])
			p.n -= size
		case 0x15: // Ctrl-U
			p.n = 0
		case 0x1a: // Ctrl-Z
			return false, p.suspend()
		default:
			if p.n == hiddenMax {
				return false, errorf("line is longer than %d bytes", hiddenMax)
			}
			p.line[p.n] = c
			p.n++
		}
	}
	return false, nil
}

// suspend does what the terminal does on Ctrl-Z, with the terminal put back first. The mode takes that key away from the terminal,
// because a Go program that has once been notified of SIGTSTP never again stops on it.
func (p *hiddenPrompt) suspend() error {
	p.n, p.paused = 0, hiddenSettle
	if err := joinErrors(p.show(), p.newline()); err != nil {
		return err
	}
	return suspendSelf()
}
