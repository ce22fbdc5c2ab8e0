// This file is where the prompt's lines come from: the line editor on a terminal that can show it, else plain lines; the history that they
// go to, and the text that a person writes in an editor of their own. It runs nothing that a line says.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	replPrompt      = "› "
	replPromptPlain = "> "    // where the terminal may not know the other one
	historyShown    = 20      // entries that /history shows
	replPasteMax    = 1 << 20 // bytes of lines that come at once and are taken for one text

	replBurstWait = 30 * time.Millisecond // for the next line of a paste that comes without an editor
)

// replLines reads the lines of one run.
type replLines struct {
	*app
	editor  *lineEditor // nil where lines come plain
	history *lineHistory
	warned  bool   // that the history cannot be kept
	text    string // what the next line begins with
}

// newLines chooses how lines are read. The terminal's screen is stdout, or stderr where stdout goes elsewhere.
func newLines(a *app, commands []command) *replLines {
	l := &replLines{app: a, history: newLineHistory(a.home, a.out.Now)}
	screen, ok := a.out.Stdout.(*os.File)
	if !ok || !a.outTerminal {
		screen, ok = a.out.Stderr.(*os.File)
	}
	if !ok || a.console == nil || !canEdit(a.goos, a.out.Getenv) {
		return l
	}
	e := &lineEditor{in: a.console.in, screen: screen, prompt: replPrompt, reflows: reflowsLines(a.out.Getenv), recall: l.recall, news: a.desk.typing}
	e.complete = &replCompleter{app: a, commands: commands}
	if e.usable() {
		l.editor = e
	}
	return l
}

// recall gives the history, or says once that it cannot be read.
func (l *replLines) recall() []string {
	entries, err := l.history.all()
	if err != nil {
		l.warn(err)
	}
	return entries
}

func (l *replLines) warn(err error) {
	if !l.warned {
		l.warned = true
		fmt.Fprintln(l.stderr, "tai: "+visibleLine(err.Error())+"; lines are kept for this session only")
	}
}

// next asks for a line. It ends with errNoAnswer at the end of input, with context.Canceled after an interrupt of an empty line, and only
// then, and with an error of its own when the program is to end.
func (l *replLines) next(ctx context.Context) (string, error) {
	if l.editor == nil {
		return l.plain(ctx)
	}
	for {
		text := l.text
		l.text = ""
		line, err := l.editor.readLine(ctx, text)
		switch {
		case errors.Is(err, errLineOutside):
			if err := l.outside(ctx, line); err != nil {
				tell(err, false, l.stdout, l.stderr)
				l.text = line
			}
			continue
		case errors.Is(err, io.EOF):
			return "", joinErrors(errNoAnswer, err)
		case errors.Is(err, errLineInterrupt):
			return "", context.Canceled
		case errors.Is(err, errInterrupted):
			return "", &cliError{Exit: exitInterrupted, Message: "interrupted", err: err}
		}
		return line, err
	}
}

// plain asks on a plain line. The interrupt is listened for before the prompt shows, so that none is missed. Lines that come at once are a paste
// (F26): one text, unless it begins with a command. It and a text that came from an editor are sent by an empty line.
func (l *replLines) plain(ctx context.Context) (string, error) {
	heed, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	prompt := replPrompt
	if !utf8Locale(l.goos, l.out.Getenv) {
		prompt = replPromptPlain
	}
	text := l.text
	if l.text = ""; text != "" {
		fmt.Fprintln(l.stdout, visible(text)+"\nEnter sends this text, another line takes its place")
	}
	fmt.Fprint(l.stdout, prompt)
	line, err := l.console.lineWhile(heed, func() {
		if news := l.desk.typing(); len(news) > 0 {
			fmt.Fprint(l.stdout, "\n· "+strings.Join(news, "\n· ")+"\n"+prompt)
		}
	})
	if err == nil && line == "" {
		line = text
	} else if err == nil && !strings.HasPrefix(line, "/") {
		if line, err = l.burst(heed, line, prompt); errors.Is(err, context.Canceled) && ctx.Err() == nil {
			line, err = "", nil // the paste is dropped, no more
			fmt.Fprintln(l.stdout)
		}
	}
	if err != nil {
		fmt.Fprintln(l.stdout)
	}
	return line, err
}

// burst adds to a line those that came with it. Where there are some, the text is sent only by Enter: what was pasted may end in a line that has no
// end yet, which then belongs to it.
func (l *replLines) burst(ctx context.Context, text, prompt string) (string, error) {
	for asked := false; ; {
		more, err := inputReady(l.console.in, replBurstWait)
		switch {
		case err != nil:
			return "", errorf("read the terminal: %w", err)
		case !more && (asked || !strings.Contains(text, "\n")):
			return text, nil
		case !more:
			asked = true
			fmt.Fprint(l.stdout, "\n(lines that come at once are one message: Enter sends it, Ctrl-C drops it)\n"+prompt)
		}
		line, err := l.console.readLine(ctx)
		if err != nil || !more && line == "" {
			return text, err
		}
		if text += "\n" + line; len(text) > replPasteMax {
			tell(usageError("put it in a file and name the file with @", "more than %d bytes were pasted", replPasteMax), false, l.stdout, l.stderr)
			return "", flushInput(l.console.in)
		}
	}
}

// outside has a person write a text in their own editor; the next line begins with it.
func (l *replLines) outside(ctx context.Context, text string) error {
	argv, err := editorArgv(l.goos, l.out.Getenv)
	if err != nil {
		return err
	}
	var screen io.Writer = l.out.Stderr
	if l.editor != nil {
		screen = l.editor.screen
	}
	edited, err := editOutside(ctx, argv, text, l.console.in, screen)
	if err != nil {
		return err
	}
	l.text = strings.TrimRight(edited, "\n")
	return nil
}

// keep takes a line into the history before it is done. What begins with a space, sets a secret, or holds a known one is left out. A
// command is written to the file only by done, when what it has told tai is known.
func (l *replLines) keep(ctx context.Context, line string) {
	if !l.keeps(ctx, line) {
		return
	}
	l.history.remember(strings.TrimSpace(line))
	if !strings.HasPrefix(line, "/") {
		l.write(line)
	}
}

// done takes a command's line into the file, now that the secrets it may have brought are known.
func (l *replLines) done(ctx context.Context, line string) {
	switch {
	case !strings.HasPrefix(line, "/"):
	case l.keeps(ctx, line):
		l.write(line)
	default:
		l.history.forget(strings.TrimSpace(line))
	}
}

func (l *replLines) write(line string) {
	if err := l.history.store(strings.TrimSpace(line)); err != nil {
		l.warn(err)
	}
}

// keeps says whether a line may be kept. In doubt it may not.
func (l *replLines) keeps(ctx context.Context, line string) bool {
	if line == "" || line[0] == ' ' || slices.Contains([]string{"/exit", "/quit", "/history clear"}, strings.TrimSpace(line)) {
		return false
	}
	if words := strings.Fields(line); words[0] == "/secret" || words[0] == "/vault" {
		return false
	} else if strings.HasPrefix(line, "/") && slices.ContainsFunc(words, tellsSecret) {
		return false
	}
	if v, err := l.vault(ctx); err != nil || l.asksFor(ctx, v) {
		return false // whoever types a line is not asked for a passphrase to keep it
	}
	known, err := l.known.redactor(ctx)
	return err == nil && known.text(line) == line
}

// asksFor reports whether reading the vault's secrets would ask the person for the passphrase.
func (l *replLines) asksFor(ctx context.Context, v *vault) bool {
	needs, err := v.needsPassphrase(ctx)
	return err != nil || needs && !l.passphraseGiven()
}

// tellsSecret reports a word of a command that brings values of a kind which is secret, or may.
func tellsSecret(word string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(word, `-{"'`), "=")
	name, _, _ = strings.Cut(name, ":")
	return strings.HasPrefix(word, "--") && slices.Contains([]string{"header", "env", "auth-token", "serve-mcp"}, name) || secretName(name)
}

// slash does the prompt's own commands; false where the line is none of them.
func (l *replLines) slash(ctx context.Context, line string) (done bool, err error) {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "edit":
		return true, l.outside(ctx, rest)
	case "history":
		return true, l.showHistory(rest)
	}
	return false, nil
}

func (l *replLines) showHistory(word string) error {
	if word == "clear" {
		return l.history.clear()
	}
	n := historyShown
	if word != "" {
		var err error
		if n, err = strconv.Atoi(word); err != nil || n < 1 {
			return usageError("/history, /history 50, /history clear", "%s is no number of entries", quoteClip(word))
		}
	}
	entries, err := l.history.all()
	if err != nil {
		return err
	}
	from := max(0, len(entries)-n)
	for i, e := range entries[from:] {
		fmt.Fprintf(l.stdout, "%4d  %s\n", from+i+1, strings.ReplaceAll(visible(e), "\n", "\n      "))
	}
	return nil
}

// printKeys is what /help says beside the commands.
func (l *replLines) printKeys() {
	fmt.Fprint(l.stdout, "\n"+wrapWords("", "in the prompt every command has a slash: /mcp list; and also:", "", helpColumns(l.stdout)))
	printColumns(l.stdout, "/call NAME [JSON|k=v…]", "the same as /tools call")
	printColumns(l.stdout, "/edit [TEXT]", "write the next message in $VISUAL or $EDITOR")
	printColumns(l.stdout, "/history [N|clear]", "the last lines entered; lines that begin with a space are not kept")
	printColumns(l.stdout, "/exit", "leave")
	if l.editor == nil {
		return
	}
	fmt.Fprint(l.stdout, "\nkeys:\n")
	for _, k := range editKeysHelp() {
		printColumns(l.stdout, k[0], k[1])
	}
}
