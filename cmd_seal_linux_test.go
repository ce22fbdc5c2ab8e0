package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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
