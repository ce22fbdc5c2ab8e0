package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

const termWait = 10 * time.Second // for what comes at once

// termPty is a pseudo-terminal: what a person types is written to master, what the screen shows is read from it.
type termPty struct {
	t             *testing.T
	master, slave *os.File
	screen        bytes.Buffer // all that was shown
	seen          int          // bytes of screen that await has passed
}

func newTermPty(t *testing.T) *termPty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	var unlock, n int32
	if err := terminalCall(master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock)); err != nil {
		t.Fatal(err)
	}
	if err := terminalCall(master, syscall.TIOCGPTN, unsafe.Pointer(&n)); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(int(n)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return &termPty{t: t, master: master, slave: slave}
}

func (p *termPty) keys(s string) {
	p.t.Helper()
	if _, err := p.master.WriteString(s); err != nil {
		p.t.Fatal(err)
	}
}

// await reads the screen until it shows s after what was awaited before.
func (p *termPty) await(s string) {
	p.t.Helper()
	buf := make([]byte, 1024)
	for {
		if i := bytes.Index(p.screen.Bytes()[p.seen:], []byte(s)); i >= 0 {
			p.seen += i + len(s)
			return
		}
		if err := p.master.SetReadDeadline(time.Now().Add(termWait)); err != nil {
			p.t.Fatal(err)
		}
		n, err := p.master.Read(buf)
		if err != nil {
			p.t.Fatalf("screen shows %q, want %q: %v", p.screen.Bytes()[p.seen:], s, err)
		}
		p.screen.Write(buf[:n])
	}
}

// typed waits until what keys wrote has come through to the terminal's reader.
func (p *termPty) typed() {
	p.t.Helper()
	if ready, err := inputReady(p.slave, termWait); !ready || err != nil {
		p.t.Fatalf("nothing typed: %v", err)
	}
}

func (p *termPty) mode() terminalMode {
	p.t.Helper()
	m, err := terminalModeOf(p.slave)
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

func (m terminalMode) echoes() bool { return m.termios.Lflag&syscall.ECHO != 0 }

func TestTerminalSize(t *testing.T) {
	p := newTermPty(t)
	if _, _, ok := terminalSize(p.slave); ok {
		t.Error("a new pseudo-terminal knows a size")
	}
	size := struct{ rows, cols, x, y uint16 }{rows: 40, cols: 132}
	if err := terminalCall(p.master, syscall.TIOCSWINSZ, unsafe.Pointer(&size)); err != nil {
		t.Fatal(err)
	}
	if cols, rows, ok := terminalSize(p.slave); cols != 132 || rows != 40 || !ok {
		t.Errorf("terminalSize = %d, %d, %v, want 132, 40, true", cols, rows, ok)
	}
	if !isTerminal(p.slave) {
		t.Error("a pseudo-terminal is no terminal")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if _, _, ok := terminalSize(null); ok || isTerminal(null) {
		t.Errorf("%s is a terminal", os.DevNull)
	}
}

// TTY-05: what was typed before the question does not answer it.
func TestTTY05FlushInput(t *testing.T) {
	p := newTermPty(t)
	p.keys("y\n")
	p.typed()
	if err := flushInput(p.slave); err != nil {
		t.Fatal(err)
	}
	if ready, err := inputReady(p.slave, 0); ready || err != nil {
		t.Errorf("after flushInput input is ready: %v, %v", ready, err)
	}
	p.keys("n\n")
	p.typed()
	buf := make([]byte, 10)
	if n, err := p.slave.Read(buf); err != nil || string(buf[:n]) != "n\n" {
		t.Errorf("read %q, %v, want the second answer", buf[:n], err)
	}
}

// TTY-05, TTY-10: the ways out of a hidden prompt that need no second process.
func TestTTY10ReadHidden(t *testing.T) {
	for _, tc := range []struct {
		name, keys, want string
		err              error
	}{
		{"line", "pass wörd\n", "pass wörd", nil},
		{"carriage return", "pass\r", "pass", nil},
		{"keys that mend", "x\x15paß\x7fss\x08s\x7f\x7f\x7f\x7f\x7f\x7fok\n", "ok", nil},
		{"pasted lines", "first\nsecond\n", "first", nil},
		{"empty", "\n", "", nil},
		{"end of input", "\x04", "", io.EOF},
		{"cancelled", "", "", context.Canceled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newTermPty(t)
			before := p.mode()
			p.keys("early\n")
			p.typed()
			p.await("early\r\n")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var line string
			var err error
			done := make(chan struct{})
			go func() { // ends with the line, cancel or the pty's end
				defer close(done)
				line, err = readHidden(ctx, p.slave, p.slave, "Passphrase: ")
			}()
			p.await("Passphrase: ")
			if p.mode().echoes() {
				t.Error("echo is on at the prompt")
			}
			if tc.keys == "" {
				cancel()
			}
			p.keys(tc.keys)
			p.await("\r\n")
			<-done
			if line != tc.want || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Errorf("readHidden = %q, %v, want %q, %v", line, err, tc.want, tc.err)
			}
			if p.mode() != before {
				t.Errorf("mode is %+v, was %+v", p.mode(), before)
			}
			if want := "early\r\nPassphrase: \r\n"; p.screen.String() != want {
				t.Errorf("screen shows %q, want %q", &p.screen, want)
			}
			if ready, err := inputReady(p.slave, 0); ready || err != nil {
				t.Errorf("input is left over: %v, %v", ready, err)
			}
		})
	}
}

func TestReadHiddenTooLong(t *testing.T) {
	var p hiddenPrompt
	if done, err := p.take(bytes.Repeat([]byte("x"), hiddenMax)); done || err != nil {
		t.Errorf("a line of hiddenMax bytes: %v, %v", done, err)
	}
	if _, err := p.take([]byte("x")); err == nil {
		t.Error("a longer line is taken")
	}
}

func TestReadHiddenNoTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var out bytes.Buffer
	if line, err := readHidden(t.Context(), r, &out, "Passphrase: "); err == nil || !strings.Contains(err.Error(), "not a terminal") || out.Len() > 0 {
		t.Errorf("readHidden of a pipe = %q, %v, wrote %q", line, err, &out)
	}
}

type termPanic struct{}

func (termPanic) Write([]byte) (int, error) { panic("screen") }

func TestTTY10Panic(t *testing.T) {
	p := newTermPty(t)
	before := p.mode()
	func() {
		defer func() {
			if v := recover(); v != "screen" {
				t.Errorf("recovered %v", v)
			}
		}()
		line, err := readHidden(t.Context(), p.slave, termPanic{}, "Passphrase: ")
		t.Errorf("readHidden = %q, %v", line, err)
	}()
	if p.mode() != before {
		t.Errorf("mode is %+v, was %+v", p.mode(), before)
	}
}

// The processes below have the pseudo-terminal as their controlling one. They exist on Linux only, so they are tests that do their part
// only when started with termRole, and no entries of testFakes.
const termRole = "TAI_TEST_TERM"

func termCommand(role string, in *os.File, attr *syscall.SysProcAttr) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestTermRole$")
	cmd.Env = append(os.Environ(), termRole+"="+role)
	cmd.Stdin, cmd.Stderr, cmd.SysProcAttr = in, in, attr
	return cmd
}

func TestTermRole(t *testing.T) {
	switch os.Getenv(termRole) {
	case "prompt":
		line, err := readHidden(context.Background(), os.Stdin, os.Stderr, "Passphrase: ")
		fmt.Printf("%q %v", line, err)
		os.Exit(0)
	case "shell":
		if err := termShell(); err != nil {
			fmt.Fprintln(os.Stderr, "shell:", err)
			os.Exit(1)
		}
		os.Exit(0)
	default:
		t.Skip("is a part of the other tests")
	}
}

// termShell runs a prompt as a shell with job control does: when it is stopped, the next line continues it.
func termShell() error {
	signal.Ignore(syscall.SIGTTOU)
	cmd := termCommand("prompt", os.Stdin, &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0})
	cmd.Stdout = os.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	foreground := func(group int32) error {
		return terminalCall(os.Stdin, syscall.TIOCSPGRP, unsafe.Pointer(&group))
	}
	for {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil {
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			return err
		}
		if !status.Stopped() {
			return nil
		}
		if err := foreground(int32(syscall.Getpgrp())); err != nil {
			return err
		}
		fmt.Fprint(os.Stderr, "stopped$ ")
		if _, err := os.Stdin.Read(make([]byte, 80)); err != nil {
			return err
		}
		if err := foreground(int32(cmd.Process.Pid)); err != nil {
			return err
		}
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT); err != nil {
			return err
		}
	}
}

// termStart starts a role in a session of its own on p. The function it gives waits for the end and gives what the prompt answered.
func termStart(t *testing.T, p *termPty, role string) (*exec.Cmd, func() string) {
	t.Helper()
	var out bytes.Buffer
	cmd := termCommand(role, p.slave, &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0})
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(3*termWait, func() { cmd.Process.Kill() })
	ended := false
	wait := func() string {
		t.Helper()
		ended = true
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v, screen shows %q", role, err, &p.screen)
		}
		kill.Stop()
		return out.String()
	}
	t.Cleanup(func() {
		if !ended { // the test has failed; the terminal's end takes the whole session along
			p.master.Close()
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return cmd, wait
}

// TTY-10: signals.
func TestTTY10Signals(t *testing.T) {
	for _, tc := range []struct {
		name string
		send func(p *termPty, cmd *exec.Cmd) error
	}{
		{"Ctrl-C", func(p *termPty, _ *exec.Cmd) error { p.keys("half\x03"); return nil }},
		{"SIGTERM", func(_ *termPty, cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGTERM) }},
		{"SIGHUP", func(_ *termPty, cmd *exec.Cmd) error { return cmd.Process.Signal(syscall.SIGHUP) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newTermPty(t)
			before := p.mode()
			cmd, wait := termStart(t, p, "prompt")
			p.await("Passphrase: ")
			if p.mode().echoes() {
				t.Error("echo is on at the prompt")
			}
			if err := tc.send(p, cmd); err != nil {
				t.Fatal(err)
			}
			if got, want := wait(), `"" read hidden input: interrupted`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if p.mode() != before {
				t.Errorf("mode is %+v, was %+v", p.mode(), before)
			}
			p.await("\r\n")
			if strings.Contains(p.screen.String(), "half") {
				t.Errorf("screen shows %q", &p.screen)
			}
		})
	}
}

// TTY-10: Ctrl-Z and fg.
func TestTTY10Stop(t *testing.T) {
	p := newTermPty(t)
	before := p.mode()
	_, wait := termStart(t, p, "shell")
	p.await("Passphrase: ")
	p.keys("half\x1a")
	p.await("stopped$ ")
	if p.mode() != before {
		t.Errorf("while stopped the mode is %+v, was %+v", p.mode(), before)
	}
	p.keys("fg\n")
	p.await("Passphrase: ")
	if p.mode().echoes() {
		t.Error("echo is on after fg")
	}
	p.keys("whole\n")
	if got, want := wait(), `"whole" <nil>`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if p.mode() != before {
		t.Errorf("mode is %+v, was %+v", p.mode(), before)
	}
	if s := p.screen.String(); strings.Contains(s, "half") || strings.Contains(s, "whole") || strings.Count(s, "Passphrase: ") != 2 {
		t.Errorf("screen shows %q", s)
	}
}

// TTY-10: Ctrl-Z where no shell could continue the program does not stop it.
func TestTTY10StopWithoutShell(t *testing.T) {
	p := newTermPty(t)
	_, wait := termStart(t, p, "prompt")
	p.await("Passphrase: ")
	p.keys("half\x1a")
	p.await("Passphrase: ")
	if p.mode().echoes() {
		t.Error("echo is on")
	}
	p.keys("whole\n")
	if got, want := wait(), `"whole" <nil>`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
