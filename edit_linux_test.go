package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// editPty is tai's prompt on a pseudo-terminal with a screen: tests say what a person sees.
type editPty struct {
	*cliPty
	screen *vtScreen
	fed    int // bytes of what came that screen has
}

const (
	editUp    = "\x1b[A"
	editLeft  = "\x1b[D"
	editPaste = "\x1b[200~"
)

// editor starts the prompt on a screen of that size.
func (r *cliRig) editor(t *testing.T, cols, rows int) *editPty {
	t.Helper()
	r.env = append(r.env, "TERM=xterm-256color", "LANG=C.UTF-8")
	p := newTermPty(t)
	e := &editPty{screen: newVTScreen(t, cols, rows)}
	setTermSize(t, p, cols, rows)
	e.cliPty = r.pty(t, p, true)
	e.sees("›")
	return e
}

func setTermSize(t *testing.T, p *termPty, cols, rows int) {
	t.Helper()
	size := struct{ rows, cols, x, y uint16 }{rows: uint16(rows), cols: uint16(cols)}
	if err := terminalCall(p.master, syscall.TIOCSWINSZ, unsafe.Pointer(&size)); err != nil {
		t.Fatal(err)
	}
}

// sees waits until the last rows of the screen are these.
func (e *editPty) sees(rows ...string) {
	e.t.Helper()
	e.until(func() bool {
		text := e.screen.text()
		return len(text) >= len(rows) && slices.Equal(text[len(text)-len(rows):], rows)
	}, strings.Join(rows, "\n"))
}

// cursorAt waits until the cursor stands in a column of the last row but so many.
func (e *editPty) cursorAt(col, above int) {
	e.t.Helper()
	e.until(func() bool {
		x, y := e.screen.cursor()
		return x == col && y == len(e.screen.text())-1-above
	}, "the cursor elsewhere")
}

func (e *editPty) until(seen func() bool, want string) {
	e.t.Helper()
	buf := make([]byte, 4096)
	for !seen() {
		if err := e.master.SetReadDeadline(time.Now().Add(termWait)); err != nil {
			e.t.Fatal(err)
		}
		n, err := e.master.Read(buf)
		if err != nil {
			e.t.Fatalf("the screen shows\n%v\nwant\n%s\n(%v)", e.screen, want, err)
		}
		e.screen.write(buf[:n])
	}
}

// resize changes the screen's size; the terminal wraps lines anew.
func (e *editPty) resize(cols, rows int) {
	e.t.Helper()
	e.screen.resize(cols, rows, true)
	setTermSize(e.t, e.termPty, cols, rows)
}

func (e *editPty) leave() {
	e.t.Helper()
	e.keys("zzz\x03")
	e.until(func() bool {
		text := e.screen.text()
		return len(text) > 1 && text[len(text)-1] == "›" && strings.HasSuffix(text[len(text)-2], "^C") && strings.Contains(text[len(text)-2], "zzz")
	}, "a new prompt")
	e.keys("\x04")
	e.exit(exitDone)
	if !e.mode().echoes() {
		e.t.Error("echo is off after the end")
	}
}

// A person types, moves, mends, and finds their lines again in the next session.
func TestEditPtyLineAndHistory(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	e := r.editor(t, 80, 24)
	if _, err := os.Stat(r.home); !os.IsNotExist(err) {
		t.Errorf("the prompt made %s", r.home)
	}
	e.keys("/prfile list" + strings.Repeat(editLeft, 9))
	e.cursorAt(5, 0)
	e.keys("o")
	e.sees("› /profile list")
	e.keys("\r")
	e.sees("› /profile list", "* default", "›")
	e.keys("/nonsense 一二\x7f\x7fé")
	e.sees("› /nonsense é")
	e.cursorAt(13, 0)
	e.keys("\r")
	e.sees("tai: no such command: /nonsense é", "hint: /help lists the commands", "›")
	e.keys(" /profile list\r")
	e.sees("›  /profile list", "* default", "›")
	e.keys("/secret list\r")
	e.sees("› /secret list", "no secrets are stored", "›")
	e.leave()

	e = r.editor(t, 80, 24)
	e.keys("draft" + editUp)
	e.sees("› /nonsense é")
	e.keys(editUp)
	e.sees("› /profile list")
	e.keys("\x1b[B\x1b[B")
	e.sees("› draft")
	e.keys("\x12prof")
	e.sees("search 'prof': /profile list")
	e.cursorAt(16, 0)
	e.keys("\x07")
	e.sees("› draft")
	e.keys("\x12prof\r")
	e.sees("› /profile list", "* default", "›")
	e.keys("/history\r")
	e.sees("› /history", "   1  /nonsense é", "   2  /profile list", "   3  /history", "›")
	e.leave()
	if b, err := os.ReadFile(filepath.Join(r.home, historyFile)); err != nil || strings.Contains(string(b), "/secret") || strings.Contains(string(b), `" `) {
		t.Errorf("the history holds %s, %v", b, err)
	}
}

// F26: three pasted lines are one message, whether marked or in one burst; control characters do nothing.
func TestF26PtyPaste(t *testing.T) {
	t.Parallel()
	const text = "first line\r\nsecond\x1b[2J line\r/exit"
	for _, tc := range []struct{ name, keys string }{
		{"marked", editPaste + text + pasteEnd}, {"one burst", strings.ReplaceAll(text, "\r\n", "\r")}, {"one burst, line feeds", "first line\nsecond\x1b[2J line\n/exit"}, {"one burst with an end", text + "\r\x7f"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newCLIRig(t)
			model := newFakeModel(t, chatStream(1<<10, chatFirst, chatText("Three lines."), chatStop("stop"), chatUses, "[DONE]"))
			r.env = []string{"TAI_BASE_URL=" + model.URL + "/v1", "TAI_MODEL=m-1"}
			e := r.editor(t, 80, 24)
			e.keys(strings.TrimSuffix(tc.keys, "\x7f"))
			rows := []string{"› first line", `  second\u001b[2J line`, "  /exit"}
			if strings.HasSuffix(tc.keys, "\x7f") {
				e.sees(append(rows, "")...)
				e.keys("\x7f")
			}
			e.sees(rows...)
			e.keys("\r")
			e.until(func() bool {
				return strings.Contains(e.screen.String(), "Three lines.") && strings.Contains(e.screen.String(), "· 12 in, 5 out")
			}, "the answer")
			e.sees("›")
			model.mu.Lock()
			asked := string(model.requests[0])
			model.mu.Unlock()
			if !strings.Contains(asked, `first line\nsecond\\u001b[2J line\n/exit"`) {
				t.Errorf("the model got %s", asked)
			}
			e.leave()
		})
	}
}

// Tab completes, and lists at the second press; what is listed stays above the prompt.
func TestEditPtyCompletion(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	for _, name := range []string{"note one.txt", "note two.txt"} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte("it says "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := r.editor(t, 60, 12)
	e.keys("/prof\t")
	e.sees("› /profile")
	e.keys("l\t")
	e.sees("› /profile list")
	e.keys("\x15/profile \t\t")
	e.sees("› /profile", "create  delete  list    use", "› /profile")
	e.cursorAt(11, 0)
	e.keys("\x15/call file_read path=note\t")
	e.sees("› /call file_read path='note")
	e.keys("o\t\r")
	e.sees("› /call file_read path='note one.txt'", "     1  it says note one.txt", "›")
	e.leave()
}

// Ctrl-C clears a line and says so; twice at an empty prompt leaves.
func TestEditPtyInterrupt(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	e := r.editor(t, 60, 12)
	e.keys("half a line\x03")
	e.sees("› half a line^C", "›")
	e.keys("\x03")
	e.sees("›", "Ctrl-C again or /exit leaves", "›")
	e.keys("/profile list\r")
	e.sees("* default", "›")
	e.keys("\x03")
	e.sees("Ctrl-C again or /exit leaves", "›")
	e.keys("\x03")
	e.exit(exitDone)
	if !e.mode().echoes() {
		t.Error("echo is off after the end")
	}
}

// TTY-10: the terminal is as it was after a signal, and while the editor of the person runs.
func TestTTY10EditEnds(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		r := newCLIRig(t)
		e := r.editor(t, 60, 12)
		e.keys("half a line")
		e.sees("› half a line")
		if e.mode().echoes() {
			t.Error("echo is on while a line is edited")
		}
		if err := e.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		e.exit(exitInterrupted)
		if !e.mode().echoes() {
			t.Errorf("echo is off after %v", sig)
		}
	}
}

func TestTTY10EditPanic(t *testing.T) {
	t.Parallel()
	p := newTermPty(t)
	setTermSize(t, p, 60, 12)
	before := p.mode()
	func() {
		defer func() {
			if v := recover(); v != "completer" {
				t.Errorf("recovered %v", v)
			}
		}()
		p.keys("a\t")
		e := &lineEditor{in: p.slave, screen: p.slave, prompt: "> ", recall: func() []string { return nil }, complete: panicCompleter{}}
		line, err := e.readLine(t.Context(), "")
		t.Errorf("readLine = %q, %v", line, err)
	}()
	if p.mode() != before {
		t.Errorf("mode is %+v, was %+v", p.mode(), before)
	}
}

// The editor of the person writes the text; it comes back into the line and is sent by Enter alone.
func TestEditPtyOutside(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	script := filepath.Join(r.dir, "ed.sh")
	seen := filepath.Join(r.dir, "seen")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nstat -c %a \"$2\" >"+seen+"\nstty -a >>"+seen+"\nprintf '%s' \"$1 \" >>\"$2\"; printf 'second\\n' >>\"$2\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.env = []string{"VISUAL=" + script + " 'an argument'"}
	e := r.editor(t, 60, 12)
	e.keys("/edit draft: \r")
	e.sees("› draft:an argument second")
	e.keys("\x18\x05")
	e.sees("› draft:an argument second", "› draft:an argument secondan argument second")
	if b, err := os.ReadFile(seen); err != nil || !strings.HasPrefix(string(b), "600\n") || strings.Contains(string(b), "-icanon") || strings.Contains(string(b), "-echo ") {
		t.Errorf("the editor saw %s, %v", b, err)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "tai-*.md")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	e.leave()
}

type panicCompleter struct{}

func (panicCompleter) complete(context.Context, string) completion { panic("completer") }

// TTY-10: Ctrl-Z stops the program under a shell, with the terminal as it was; fg brings the line back.
func TestTTY10EditStop(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	p := newTermPty(t)
	setTermSize(t, p, 60, 12)
	before := p.mode()
	e := &editPty{screen: newVTScreen(t, 60, 12), cliPty: &cliPty{termPty: p}}
	e.cmd = exec.Command("/bin/sh", "-c", `set -m; /proc/$PPID/exe; echo "stopped"; read x; fg; echo "ended $?"`)
	e.cmd.Env = append(r.environ(), "TAI_TEST_FAKE=tai", "TERM=xterm-256color", "LANG=C.UTF-8")
	e.cmd.Dir = r.dir
	e.cmd.Stdin, e.cmd.Stdout, e.cmd.Stderr = p.slave, p.slave, p.slave
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.master.Close() // the terminal's end takes the whole session along
		e.cmd.Process.Kill()
		e.cmd.Wait()
	})
	e.sees("›")
	e.keys("half一" + editLeft + "\x1a")
	e.sees("stopped", "")
	if p.mode() != before {
		t.Errorf("while stopped the mode is %+v, was %+v", p.mode(), before)
	}
	e.keys("\n")
	e.sees("› half一")
	e.keys("X")
	e.sees("› half一X")
	if p.mode().echoes() {
		t.Error("echo is on after fg")
	}
	e.keys("\x15\x04")
	e.sees("ended 0", "")
	if p.mode() != before {
		t.Errorf("at the end the mode is %+v, was %+v", p.mode(), before)
	}
}

// Ctrl-Z where no shell could continue the program does not stop it.
func TestEditPtyStopWithoutShell(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	e := r.editor(t, 60, 12)
	e.keys("half\x1a")
	e.sees("› half", "› half")
	e.keys("X")
	e.sees("› halfX")
	e.leave()
}

// The line follows the size of the screen, down to ten columns and back.
func TestEditPtyResize(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	e := r.editor(t, 80, 24)
	e.keys("a long line with 一二三 wide characters in it that is over forty columns")
	e.sees("› a long line with 一二三 wide characters in it that is over forty columns")
	e.resize(40, 10)
	e.sees("› a long line with 一二三 wide character", "s in it that is over forty columns")
	e.cursorAt(34, 0)
	e.keys("\x01\x1bf\x1bf!")
	e.sees("› a long! line with 一二三 wide characte", "rs in it that is over forty columns")
	e.cursorAt(9, 1)
	e.resize(10, 10)
	e.sees("› a long!", "line with", "一二三 wid", "e characte", "rs in it t", "hat is ove", "r forty co", "lumns")
	e.cursorAt(9, 7)
	e.resize(80, 24)
	e.sees("› a long! line with 一二三 wide characters in it that is over forty columns")
	e.cursorAt(9, 0)
	e.leave()
}

// On a screen of 40x10 a long text scrolls inside the screen, and is whole above the answer once it is sent.
func TestEditPtySmallScreen(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	e := r.editor(t, 40, 10)
	var rows []string
	for _, w := range strings.Fields("one two three four five six seven eight nine ten eleven twelve") {
		mark := "  "
		if len(rows) == 0 {
			mark = "› "
		}
		rows = append(rows, mark+w)
		e.keys(w)
		e.sees(rows[max(0, len(rows)-10):]...)
		e.keys("\n") // on its own, as a person's: behind text it would be the Enter of a program
		e.sees(append(slices.Clone(rows[max(0, len(rows)-9):]), "")...)
	}
	e.sees(append(slices.Clone(rows[3:]), "")...)
	e.keys("\x1b[1;5H")
	e.sees(rows[:10]...)
	e.cursorAt(2, 9)
	e.keys("\x03")
	e.sees(append(slices.Clone(rows[4:]), "  ^C", "›")...)
	e.leave()
}

// What is typed while something runs begins the next line, unsent, and answers no question.
func TestTTY05EditTypedAhead(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.addFake("fake", fakeStdio{})
	e := r.editor(t, 60, 12)
	e.keys("/call mcp_fake_sleep ms=1000\r")
	for end := time.Now().Add(termWait); !e.mode().echoes(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the command does not run")
		}
	}
	e.keys("y\nnext thing")
	e.sees("› y", "  next thing")
	e.keys("\x15\x7f\x7f/mcp add x -- no-such-program-here\r")
	e.sees(consentOwn + strings.TrimSpace(cliQuestion))
	e.keys("n\n")
	e.until(func() bool { text := e.screen.text(); return text[len(text)-1] == "›" }, "the prompt")
	e.leave()
}

// TTY-11: on a dumb terminal, and in a locale without UTF-8, lines come plain and no sequence is written.
func TestTTY11PtyPlain(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		env    []string
		prompt string
	}{
		{"dumb", []string{"TERM=dumb", "LANG=C.UTF-8"}, replPrompt}, {"LANG=C", []string{"TERM=xterm", "LANG=C"}, replPromptPlain}, {"no TERM", nil, replPrompt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newCLIRig(t)
			r.env = append(tc.env, "NO_COLOR=1")
			p := newTermPty(t)
			setTermSize(t, p, 80, 24)
			c := r.pty(t, p, true)
			c.await("\n" + tc.prompt)
			c.keys("/nonsense \xe9\n")
			c.await(`tai: no such command: /nonsense \xe9`)
			c.await("\n" + tc.prompt)
			c.keys("/exit\n")
			c.exit(exitDone)
			if strings.Contains(c.screen.String(), "\x1b") {
				t.Errorf("the screen got an escape: %q", &c.screen)
			}
		})
	}
}

// A secret that tai knows, or that a line brings, is never kept.
func TestEditPtyHistoryKeepsNoSecret(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	value := "planted-" + "value-123456"
	r.env = []string{"SOME_TOKEN=" + value, "OTHER=stored-" + "value-987654"}
	r.tai("secret", "set", "NAME", "--from", "env:OTHER").ok()
	e := r.editor(t, 80, 24)
	for _, line := range []string{"/history clear", "/call file_read path=" + value, "/call file_read path=stored-value-987654", "/mcp add x http://127.0.0.1:1/ --header 'X: y'", "/secret delete GONE", " /profile list", "/profile list"} {
		e.keys(line + "\r")
		e.until(func() bool {
			text := e.screen.text()
			last := text[len(text)-1]
			return slices.Contains(text, "› "+line) && (strings.HasSuffix(last, strings.TrimSpace(cliQuestion)) || last == "›")
		}, "the prompt")
		if strings.Contains(line, "mcp add") {
			e.keys("n\n")
			e.until(func() bool { text := e.screen.text(); return text[len(text)-1] == "›" }, "the prompt")
		}
	}
	e.leave()
	b, err := os.ReadFile(filepath.Join(r.home, historyFile))
	if err != nil || string(b) != "\"/profile list\"\n" {
		t.Errorf("the history holds %s, %v", b, err)
	}
}
