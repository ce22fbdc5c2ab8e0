// This file asks the person on a plain line: the consent, whole, then one documented answer. It decides nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// console is where a person sits: a terminal for input and one for what tai says to them. It implements prompter.
type console struct {
	in  *os.File
	out io.Writer
}

// answerMax bounds one typed line in bytes: no terminal hands over more at once.
const answerMax = 4 << 10

var errNoAnswer = errors.New("no answer was given")

// confirm shows a consent in full, a screen at a time where it is longer than that, and waits for one of its answers. What was typed before the
// question appeared does not count. Between two screens a no is an answer; a yes comes only after the end (TTY-04).
func (c *console) confirm(ctx context.Context, q consent) (consentAnswer, error) {
	width := c.width()
	if ended, err := c.present(ctx, q, width); err != nil || ended {
		return consentAnswer{Key: choiceNo}, err
	}
	for {
		if err := flushInput(c.in); err != nil {
			return consentAnswer{}, errorf("ask for consent: %w", err)
		}
		choices := q.choices(width)
		fmt.Fprint(c.out, consentOwn+"your answer ("+choiceKeys(choices)+"): ")
		line, err := c.readLine(ctx)
		if err != nil {
			return consentAnswer{}, err
		}
		a, ok := parseConsentAnswer(line, choices)
		switch {
		case ok && a.Key == choiceOpen:
			q = q.unfolded()
			if ended, err := c.present(ctx, q, width); err != nil || ended {
				return consentAnswer{Key: choiceNo}, err
			}
		case ok:
			return a, nil
		case line != "":
			fmt.Fprintln(c.out, consentOwn+"only one of these counts, with nothing around it")
		}
	}
}

// present shows a consent to its end; ended says that a no came before. The choices stand together.
func (c *console) present(ctx context.Context, q consent, width int) (ended bool, err error) {
	text, together := renderConsent(q, width), 0
	choices := q.choices(width)
	if len(choices) > 0 {
		if i := strings.LastIndex(text, consentOwn+"  "+choices[0].Key+"  "); i >= 0 {
			together = strings.Count(text[i:], "\n")
		}
	}
	var no consentChoice
	if slices.ContainsFunc(choices, func(ch consentChoice) bool { return ch.Key == choiceNo }) {
		no = consentChoice{choiceNo, "no"}
	}
	return c.page(ctx, c.out, text, together, no)
}

// page writes a text of whole lines to a screen, no more at a time than it shows, and waits for Enter in between; the last lines stay together where
// they fit. The answer end, where its key is not "", stops it; everything else asks again, and what was typed before does not count. All that was
// shown stays in the terminal's scrollback.
func (c *console) page(ctx context.Context, out io.Writer, text string, together int, end consentChoice) (ended bool, err error) {
	lines := slices.Collect(strings.Lines(text))
	for shown := 0; ; {
		room, left := c.rows()-2, len(lines)-shown // the line that asks, and the one it leaves
		if room <= 0 || left <= room {
			fmt.Fprint(out, strings.Join(lines[shown:], ""))
			return false, nil
		}
		n := room
		if left-together > 0 && together <= room {
			n = min(n, left-together)
		}
		fmt.Fprint(out, strings.Join(lines[shown:shown+n], ""))
		shown += n
		prompt := fmt.Sprintf("%d of %d; Enter = more: ", shown, len(lines)) // fits 40 columns
		if end.Key != "" {
			prompt = fmt.Sprintf("%d of %d; Enter = more, %s = %s: ", shown, len(lines), end.Key, end.Text)
		}
		for line := " "; line != ""; {
			if line, err = c.reply(ctx, prompt); err != nil || end.Key != "" && line == end.Key {
				return true, err
			}
		}
	}
}

// reply asks for one line; what was typed before does not count.
func (c *console) reply(ctx context.Context, prompt string) (string, error) {
	if err := flushInput(c.in); err != nil {
		return "", errorf("ask: %w", err)
	}
	fmt.Fprint(c.out, consentOwn+prompt)
	return c.readLine(ctx)
}

func choiceKeys(choices []consentChoice) string {
	keys := make([]string, len(choices))
	for i, ch := range choices {
		keys[i] = ch.Key
	}
	return strings.Join(keys, " ")
}

func (c *console) width() int {
	cols, _ := screenSize(c.out)
	return cols
}

func (c *console) rows() int {
	_, rows := screenSize(c.out)
	return rows
}

// screenSize gives the columns and rows of a screen, 0 and 0 for what is none.
func screenSize(w io.Writer) (cols, rows int) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, 0
	}
	if cols, rows, ok = terminalSize(f); !ok {
		return 0, 0
	}
	return cols, rows
}

// ask puts one question of a tool to the person (part of asker). What the tool says is marked as foreign on every line.
func (c *console) ask(ctx context.Context, question string, choices []string, def string) (string, error) {
	for line := range strings.SplitSeq(visible(question), "\n") {
		fmt.Fprintln(c.out, consentText+line)
	}
	for i, choice := range choices {
		fmt.Fprintf(c.out, "%s%d  %s\n", consentText, i+1, visibleLine(choice))
	}
	for {
		if err := flushInput(c.in); err != nil {
			return "", errorf("ask: %w", err)
		}
		fmt.Fprint(c.out, consentOwn+"your answer"+defaultText(def)+": ")
		line, err := c.readLine(ctx)
		if err != nil {
			return "", err
		}
		if line == "" && def != "" {
			return def, nil
		}
		if len(choices) == 0 && line != "" {
			return line, nil
		}
		if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(choices) {
			return choices[n-1], nil
		}
		if slices.Contains(choices, line) {
			return line, nil
		}
	}
}

func defaultText(def string) string {
	if def == "" {
		return ""
	}
	return " (Enter: " + visibleLine(def) + ")"
}

// readLine reads one line from the terminal, or gives ctx's error. It looks for input in ticks: a read that waits cannot be
// interrupted on every system, and would swallow the answer to the next question.
func (c *console) readLine(ctx context.Context) (string, error) { return c.lineWhile(ctx, func() {}) }

// lineWhile is readLine that calls idle at each tick.
func (c *console) lineWhile(ctx context.Context, idle func()) (string, error) {
	buf := make([]byte, answerMax)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		ready, err := inputReady(c.in, hiddenTick)
		if err != nil {
			return "", errorf("read the terminal: %w", err)
		}
		if !ready {
			idle()
			continue
		}
		n, err := c.in.Read(buf)
		if n == 0 {
			return "", joinErrors(errNoAnswer, err)
		}
		return trimLineEnd(string(buf[:n])), nil
	}
}

func trimLineEnd(s string) string {
	for len(s) > 0 && (s[len(s)-1] == '\n' || s[len(s)-1] == '\r') {
		s = s[:len(s)-1]
	}
	return s
}
