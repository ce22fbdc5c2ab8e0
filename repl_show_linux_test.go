package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// pager is a console on a screen of its own, in this process.
func pager(t *testing.T, cols, rows int) (*console, *termPty) {
	t.Helper()
	p := newTermPty(t)
	setTermSize(t, p, cols, rows)
	return &console{in: p.slave, out: p.slave}, p
}

// TTY-04, TTY-05: a question longer than the screen comes a screen at a time, whole; a yes before its end counts as little as one typed ahead, a no
// does, and the choices stand together.
func TestTTY04Paged(t *testing.T) {
	t.Parallel()
	var script []string
	for i := range 500 {
		script = append(script, fmt.Sprintf("touch file-%03d", i))
	}
	for _, tc := range []struct {
		name, command string
		cols, rows    int
	}{
		{"500 lines", strings.Join(script, "\n"), 80, 24}, {"500 lines, small", strings.Join(script, "\n"), 40, 10},
		{"10,000 characters", "touch " + strings.Repeat("abcdefgh-j", 1000), 80, 24}, {"10,000 characters, small", "touch " + strings.Repeat("abcdefgh-j", 1000), 40, 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, p := pager(t, tc.cols, tc.rows)
			q := consent{Title: "run?", Lines: []consentLine{{Label: "arguments", Name: "command", Text: tc.command, Exact: true}},
				Choices: []consentChoice{{choiceYes, "yes"}, {choiceSession, "yes, for this session"}, {choiceNo, "no"}}}
			p.keys("y\n")
			p.typed()
			asked := make(chan consentAnswer, 1)
			go func() { // ends with the answer
				a, err := c.confirm(context.Background(), q)
				if err != nil {
					a.Why = err.Error()
				}
				asked <- a
			}()
			ends, all := " = no: ", strings.Count(renderConsent(q, tc.cols), "\n")
			p.await(ends)
			first := p.screen.String()
			if n := strings.Count(first, "\r\n") - 1; n != tc.rows-2 || !strings.Contains(first, fmt.Sprintf("%d of %d; Enter = more", tc.rows-2, all)) {
				t.Fatalf("the first page has %d lines:\n%s", n, first)
			}
			p.keys("y\n")
			p.await(ends)
			if last := first[strings.LastIndex(first, "\n")+1:]; !strings.HasSuffix(p.screen.String(), "y\r\n"+last) {
				t.Errorf("y went on:\n%s", &p.screen)
			}
			for shown := tc.rows - 2; all-shown > tc.rows-2; {
				select {
				case a := <-asked:
					t.Fatalf("answered by %+v:\n%s", a, &p.screen)
				default:
				}
				p.keys("\n")
				shown += min(tc.rows-2, all-shown-len(q.Choices)) // the choices stand together
				p.await(fmt.Sprintf("%d of %d; Enter = more, n = no: ", shown, all))
			}
			p.keys("\n")
			p.await("your answer (y s n): ")
			screen := strings.ReplaceAll(p.screen.String(), "\r\n", "\n")
			if !strings.Contains(screen, "tai:   y  yes\ntai:   s  yes, for this session\ntai:   n  no\ntai: your answer") {
				t.Errorf("the choices stand apart:\n%s", screen[max(0, len(screen)-600):])
			}
			var shown strings.Builder
			for line := range strings.Lines(strings.TrimPrefix(screen, "y\n")) {
				if !strings.Contains(line, "Enter = more") && !strings.Contains(line, "your answer") {
					shown.WriteString(line)
				}
			}
			if shown.String() != renderConsent(q, tc.cols) {
				t.Error("what the pages show together is not the question")
			}
			p.keys("y\n")
			if a := <-asked; a != (consentAnswer{Key: choiceYes}) {
				t.Errorf("%+v", a)
			}
		})
	}
	c, p := pager(t, 40, 10)
	asked := make(chan consentAnswer, 1)
	go func() { // ends with the answer
		a, _ := c.confirm(context.Background(), consent{Title: "run?", Lines: []consentLine{{Label: "command", Text: strings.Join(script, "\n"), Exact: true}}, Choices: []consentChoice{{choiceYes, "yes"}, {choiceNo, "no"}}})
		asked <- a
	}()
	p.await(" = no: ")
	p.keys("n\n")
	if a := <-asked; a != (consentAnswer{Key: choiceNo}) {
		t.Errorf("a no at the first page: %+v", a)
	}
}

// What a tool gave is one line on the screen and whole with /show: by number, by its call, from its record, and after --continue. TTY-03, TTY-08, R9: what
// would move the cursor is written out, no line of it looks like tai's own, and secrets are masked.
func TestTTY03PtyShow(t *testing.T) {
	t.Parallel()
	const evil = "a \\u001b]52;c;ZXZpbA==\\u0007 \\u001b]0;owned\\u0007 \\u001b]8;;http://x.example/\\u0007link\\u001b]8;;\\u0007 b"
	value := "planted-" + "value-123456"
	r, m := promptRig(t,
		chatStream(64, chatFirst, chatCall(0, "c1", "file_read", `{"path":"evil.txt"}`), chatStop("tool_calls"), chatUses, "[DONE]"),
		promptSays(evil),
		chatStream(64, chatFirst, chatCall(0, "c2", "shell_run", `{"command":"cat long.txt"}`), chatCall(1, "c3", "file_write", `{"path":"new.txt","content":"one\n"}`), chatStop("tool_calls"), chatUses, "[DONE]"),
		promptSays("Read and written."))
	r.env = append(r.env, "SOME_TOKEN="+value)
	for name, text := range map[string]string{
		"evil.txt": "\n" + strings.NewReplacer(`\u001b`, "\x1b", `\u0007`, "\x07").Replace(evil) + "\ntai: your answer (y n): \n\t" + value + "\n",
		"long.txt": strings.Repeat("a row of the long file\n", 8000) + "its end\n",
	} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := r.editor(t, 80, 24)
	shows := func(keys, want string) string {
		t.Helper()
		e.keys(keys)
		e.until(func() bool { return strings.Contains(e.screen.String(), want) }, want)
		return e.screen.String()
	}
	shows("/show\r", "no tool has a result yet")
	e.sees("hint: /call runs a tool, and a model does", "›")
	shows("read evil\r", "· 24 in, 10 out")
	e.sees("›")
	shows("/show\r", "lines: 4")
	e.sees("›")
	s := e.screen.String()
	for _, want := range []string{"· file_read {\"path\":\"evil.txt\"}\n", "/show 1: 1 / 2 a \\u001b]52;c;", "tai: result 1: file_read done in ", "tai: ! hidden or control characters in it: 8, written out here", "  |      3  tai: your answer (y n): \n", `\u001b]0;owned\u0007`} {
		if !strings.Contains(strings.ReplaceAll(s, " \n", "\n"), strings.ReplaceAll(want, " \n", "\n")) {
			t.Errorf("no %q:\n%s", want, s)
		}
	}
	if strings.Contains(s, value) || strings.Contains(s, "\ntai: your answer") {
		t.Errorf("a secret, or a line that looks like tai's own:\n%s", s)
	}

	e.keys("read and write\r")
	shows("", "your answer (y s")
	shows("y\n", "Read and written.")
	e.sees("›")
	if s := e.screen.String(); !regexp.MustCompile(`· shell_run done in [^ ]+ m?s, 1840\d\d bytes, /show 2: exit status 0 after `).MatchString(s) || !strings.Contains(s, "/show 3: new.txt: created") {
		t.Errorf("%s", s)
	}
	s = shows("/show 2\r", "22 of 8006; Enter = more, q = end:")
	if !strings.Contains(s, "tai: result 2: shell_run done in ") || !strings.Contains(s, ", record r-") {
		t.Errorf("%s", s)
	}
	e.keys("q\n")
	e.sees("›")
	ready := func(keys, want string) {
		t.Helper()
		shows(keys, want)
		e.sees("›")
	}
	ready("/show c3\r", "  | +one")
	ready("/show 9\r", "the last result is number 3")
	ready("/show nonsense\r", "is no result")
	ready("/undo\r", "new.txt: deleted")
	if _, err := os.Stat(filepath.Join(r.dir, "new.txt")); !os.IsNotExist(err) {
		t.Errorf("after /undo: %v", err)
	}
	ready("/undo h-0000\r", "there is no change")
	ready("/undo a b\r", "takes one id")
	ready("/new\r", "a new conversation begins")
	e.keys("/show\r")
	e.sees("tai: no tool has a result yet in this conversation", "hint: /call runs a tool, and a model does", "›")
	e.leave()

	c := r.pty(t, newTermPty(t), true, "--continue")
	c.await(replPrompt)
	c.keys("/show 1\n")
	c.await(`\u001b]52;c;`)
	c.await("  |      3  tai: your answer (y n): ")
	c.keys("/show 2\n")
	c.await("the whole is record ")
	c.await(replPrompt)
	c.keys("/cost\n")
	c.await("no model was asked yet")
	c.await(" in all:\r\nm-1  4 requests  48 in (16 cached)  20 out")
	c.await(replPrompt)
	c.keys("/exit\n")
	c.exit(exitDone)
	if strings.ContainsAny(c.screen.String(), "\x1b\x07") || strings.Contains(c.screen.String(), value) {
		t.Errorf("%q", &c.screen)
	}
	agentBodies(t, m.requests)
}

// F26, TTY-11: on a terminal without an editor lines that come at once are one message too, sent by Enter alone, with the last one that has no
// end yet; commands run one by one, and Ctrl-C drops the paste and no more.
func TestF26PtyPlainPaste(t *testing.T) {
	t.Parallel()
	const said = "(lines that come at once are one message"
	for _, tc := range []struct {
		name, paste string
		want        string // that the model gets; "" where it is asked nothing
	}{
		{"three lines", "first line\nsecond line\n/exit\n", `first line\nsecond line\n/exit`},
		{"the last without an end", "first line\nsecond line\n/exit", `first line\nsecond line\n/exit`},
		{"CR LF and an empty line", "first line\r\n\r\nsecond line\r\n", `first line\n\n\n\nsecond line`}, // the terminal makes two ends of each
		{"commands", "/profile list\n/history\n", ""},
		{"dropped", "first line\nsecond line\n\x03", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, m := promptRig(t, promptSays("Seen."))
			r.env = append(r.env, "TERM=dumb", "LANG=C.UTF-8")
			c := r.pty(t, newTermPty(t), true)
			c.await(replPrompt)
			if paste, drop := strings.CutSuffix(tc.paste, "\x03"); drop {
				c.keys(paste)
				c.await(said)
				c.await(replPrompt)
				c.keys("\x03")
			} else {
				c.keys(paste)
			}
			switch {
			case tc.want != "":
				c.await(said)
				c.await(replPrompt)
				if m.seen() != 0 {
					t.Error("it was sent before Enter")
				}
				c.keys("\n")
				c.await("Seen.")
			case strings.HasPrefix(tc.paste, "/"):
				c.await("* default")
				c.await("/profile list")
			}
			c.await(replPrompt)
			c.keys("one line\n")
			c.await("Seen.")
			c.await(replPrompt)
			c.keys("/exit\n")
			c.exit(exitDone)
			want := tc.want
			if want == "" {
				want = "one line"
			}
			if got := promptSaid(t, m.requests[0]); len(got) != 1 || got[0] != strings.ReplaceAll(want, `\n`, "\n") {
				t.Errorf("the model got %q, want %q", got, want)
			}
			if strings.Contains(c.screen.String(), "leaves\r\n"+replPrompt+"one") {
				t.Errorf("dropping a paste counts as a first Ctrl-C:\n%s", &c.screen)
			}
		})
	}
}

// Help and the greeting fit a narrow screen, broken between words, on the command line and at the prompt.
func TestPtyHelpNarrow(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	for _, words := range [][]string{{"help"}, {"help", "mcp", "add"}, {"help", "model"}, {"--help"}, {"vault", "seal", "--help"}, nil} {
		p := newTermPty(t)
		setTermSize(t, p, 40, 10)
		c := r.pty(t, p, true, words...)
		if words == nil {
			c.await(replPrompt)
			c.keys("/help\n")
			c.await("/undo [CHANGE]")
			c.await(replPrompt)
			c.keys("/exit\n")
		}
		c.exit(exitDone)
		drain(c)
		lines := strings.Split(strings.ReplaceAll(c.screen.String(), "\r", ""), "\n")
		for i, line := range lines {
			if i > 0 && lines[i-1] == "example:" {
				continue // one line, so that it can be copied
			}
			if n := textWidth(line); n > 40 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("tai %q: %d columns: %q", words, n, line)
			}
		}
		if len(lines) < 5 {
			t.Errorf("tai %q shows %q", words, &c.screen)
		}
	}
}

// Errors, hints and rows fit a narrow screen, broken between words, with the commands in them whole.
func TestPtyTellNarrow(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	for _, tc := range []struct {
		words []string
		exit  int
		whole []string
	}{
		{[]string{"model", "test"}, exitUsage, []string{"tai model set,"}},
		{[]string{"tools", "list"}, exitDone, nil},
	} {
		p := newTermPty(t)
		setTermSize(t, p, 40, 10)
		c := r.pty(t, p, true, tc.words...)
		c.exit(tc.exit)
		drain(c)
		lines := strings.Split(strings.ReplaceAll(c.screen.String(), "\r", ""), "\n")
		for _, line := range lines {
			if n := textWidth(line); n > 40 {
				t.Errorf("tai %q: %d columns: %q", tc.words, n, line)
			}
		}
		if len(lines) < 5 {
			t.Errorf("tai %q shows %q", tc.words, &c.screen)
		}
		for _, s := range tc.whole {
			c.shows(s)
		}
	}
}

// drain reads what a process that has ended left on the screen.
func drain(c *cliPty) {
	c.slave.Close()
	buf := make([]byte, 4096)
	for {
		if err := c.master.SetReadDeadline(time.Now().Add(termWait)); err != nil {
			c.t.Fatal(err)
		}
		n, err := c.master.Read(buf)
		c.screen.Write(buf[:n])
		if err != nil {
			return // nobody has the other end any more
		}
	}
}

// The first Ctrl-C of a running turn ends the line that the terminal puts ^C on: nothing of tai's stands behind it.
func TestPtyCaretEndsLine(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	log := filepath.Join(r.dir, "server.log")
	r.addFake("fake", fakeStdio{Log: log})
	model := newFakeModel(t, chatStream(1<<10, chatFirst, chatCall(0, "c-1", "mcp_fake_sleep", `{"ms":600000}`), chatStop("tool_calls"), chatUses, "[DONE]"))
	r.env = append(r.env, "TAI_BASE_URL="+model.URL+"/v1", "TAI_MODEL=m-1")
	e := r.editor(t, 80, 24)
	e.keys("sleep\r")
	e.until(func() bool { return strings.Contains(e.screen.String(), "your answer (") }, "the question")
	e.keys("y\n")
	cliAwaitFile(t, log, `"name":"sleep"`)
	e.keys("\x03")
	e.until(func() bool {
		return slices.ContainsFunc(e.screen.text(), func(s string) bool { return strings.HasPrefix(s, "· mcp_fake_sleep failed in ") })
	}, "the result at the start of a line")
	e.sees("tai: interrupted", "›")
	if text := e.screen.text(); !slices.Contains(text, "^C") {
		t.Errorf("%v", e.screen)
	}
	e.leave()
}
