package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The whole way at a terminal: a passphrase is set by typing it twice, asked for once by what needs it, three times at most when it is wrong,
// and never by what does not need it. Nothing of it is on the screen, and the echo is back.
func TestTTY10PtyPassphrase(t *testing.T) {
	t.Parallel()
	const good, wrong = "correct-horse", "wrong-horse-1"
	r := newCLIRig(t)
	r.with("a-secret-value", "secret", "set", "A", "--from", "-").ok()
	p := newTermPty(t)
	before := p.mode()
	c := r.pty(t, p, true, "vault", "seal", "--passphrase")
	c.await("new passphrase of the vault, at least 8 bytes (not shown): ")
	if p.mode().echoes() {
		t.Error("the new passphrase is shown")
	}
	c.keys(good + "\r")
	c.await("the same again (not shown): ")
	c.keys(good + "\r")
	c.exit(exitDone)
	c = r.pty(t, p, true, "vault", "seal", "--passphrase")
	c.await("passphrase of the vault (not shown): ")
	c.keys(good + "\r")
	c.await("new passphrase of the vault")
	c.keys("another-one-1\r")
	c.await("the same again")
	c.keys("another-one-2\r")
	c.await("the two passphrases differ")
	c.exit(exitUsage)
	c = r.pty(t, p, true, "record", "search", "x")
	c.await("passphrase of the vault (not shown): ")
	c.keys(wrong + "\r")
	c.await("wrong; passphrase of the vault (not shown): ")
	c.keys(good + "\r")
	c.exit(exitDone)
	c = r.pty(t, p, true, "record", "search", "y")
	for _, question := range []string{"y\r\npassphrase", "wrong; passphrase", "wrong; passphrase"} {
		c.await(strings.TrimPrefix(question, "y\r\n"))
		c.keys(wrong + "\r")
	}
	c.await("the passphrase is wrong")
	c.exit(exitFailed)
	c = r.pty(t, p, true, "secret", "list")
	c.exit(exitDone)
	if p.mode() != before || !p.mode().echoes() {
		t.Errorf("mode is %+v, was %+v", p.mode(), before)
	}
	if shown := p.screen.String(); strings.Contains(shown, good) || strings.Contains(shown, wrong) || strings.Contains(shown, "another-one") {
		t.Errorf("the screen shows a passphrase:\n%s", shown)
	}
}

// TTY-10: SIGTERM and Ctrl-C at the passphrase prompt of a command put the echo back, end it with 130 and change nothing.
func TestTTY10PtyPassphraseInterrupted(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.env = []string{"TAI_PASSPHRASE=correct-horse"}
	r.tai("vault", "seal", "--passphrase").ok()
	r.env = nil
	path := filepath.Join(r.home, vaultFile)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(c *cliPty){
		"ctrl-c":  func(c *cliPty) { c.keys("half\x03") },
		"SIGTERM": func(c *cliPty) { c.keys("half"); c.cmd.Process.Signal(syscall.SIGTERM) },
	} {
		p := newTermPty(t)
		before := p.mode()
		c := r.pty(t, p, true, "record", "search", "x")
		c.await("passphrase of the vault (not shown): ")
		if p.mode().echoes() {
			t.Errorf("%s: the passphrase is shown", name)
		}
		end(c)
		c.exit(exitInterrupted)
		if p.mode() != before {
			t.Errorf("%s: mode is %+v, was %+v", name, p.mode(), before)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(content) {
			t.Errorf("%s: the vault changed (%v)", name, err)
		}
		if strings.Contains(p.screen.String(), "half") {
			t.Errorf("%s: the screen shows %q", name, &p.screen)
		}
	}
}

// TTY-10, VLT-06: a command that shows no secret asks for the passphrase all the same, because the run log is signed, and says so; it waits as
// long as the person needs, and SIGTERM ends it with the echo back and no log begun. The line history never asks.
func TestTTY10PtyPassphraseForLog(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.env = []string{"TAI_PASSPHRASE=correct-horse"}
	r.tai("vault", "seal", "--passphrase").ok()
	r.env = nil
	runs := func() int {
		t.Helper()
		logs, err := filepath.Glob(filepath.Join(r.home, "runs", "*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return len(logs)
	}
	before := runs()
	p := newTermPty(t)
	mode := p.mode()
	c := r.pty(t, p, true, "profile", "create", "work")
	c.await("passphrase of the vault, for the key that signs the run log (not shown): ")
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	c.exit(exitInterrupted)
	if p.mode() != mode || runs() != before {
		t.Errorf("mode %+v, was %+v; %d logs, were %d", p.mode(), mode, runs(), before)
	}
	c = r.pty(t, p, true, "profile", "create", "work")
	c.await("for the key that signs the run log (not shown): ")
	c.keys("correct-horse\r")
	c.exit(exitDone)
	a, err := openApp(outside{Getenv: r.getenv, Environ: r.environ(), Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, GOOS: "linux", Now: time.Now, Dir: r.dir}, nil, storeRead, "repl")
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	lines := &replLines{app: a, history: newLineHistory(r.home, time.Now)}
	asked := 0
	v, err := a.vault(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v.keys.Passphrase = func(context.Context, string) (secret, error) { asked++; return "correct-horse", nil }
	if lines.keeps(t.Context(), "a line") || asked != 0 {
		t.Errorf("a line was kept though nothing can tell whether it holds a secret, or the passphrase was asked for (%d)", asked)
	}
	if err := v.openSeal(t.Context()); err != nil || asked != 1 {
		t.Fatalf("asked %d times: %v", asked, err)
	}
	if !lines.keeps(t.Context(), "a line") {
		t.Error("a line is not kept though the vault is open")
	}
}
