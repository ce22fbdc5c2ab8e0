//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stdioShell starts sh with a script, and stops it at the end of the test.
func stdioShell(t testing.TB, script string) *stdioTransport {
	t.Helper()
	return startStdioTest(t, stdioConfig{
		Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Grace: 300 * time.Millisecond, Drain: 200 * time.Millisecond,
	})
}

// stdioGone waits until no process of the id is left, zombies not counted.
func stdioGone(t testing.TB, pid int, within time.Duration) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for stdioRuns(pid) {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Errorf("process %d still runs after %v", pid, within)
			syscall.Kill(pid, syscall.SIGKILL)
			return
		}
	}
}

func stdioRuns(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) || !isDir("/proc/self")
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// stdioPid reads the process id that a child writes into a file, once it is there.
func stdioPid(t testing.TB, file string) int {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(5 * time.Second)
	for {
		if b, err := os.ReadFile(file); err == nil && strings.HasSuffix(string(b), "\n") {
			pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s was not written", file)
		}
	}
}

// STD-13, F07: the running call fails at once with exit status or signal and what stderr said; so does every later one.
func TestSTD13Exit(t *testing.T) {
	tr := fakeStdioStart(t, fakeStdio{})
	start := time.Now()
	_, err := stdioTool(tr, 1, "exit", `{"code":3}`)
	e, ok := errors.AsType[*stdioExitError](err)
	if !ok || e.Code != 3 || e.Signal != "" || e.Cut || !strings.Contains(err.Error(), "status 3") || !strings.Contains(err.Error(), "fatal: told to exit") {
		t.Errorf("call = %v", err)
	}
	if d := time.Since(start); d > stdioPrompt {
		t.Errorf("it took %v", d)
	}
	if tr.alive() {
		t.Error("the connection counts as alive")
	}
	if _, again := stdioTool(tr, 2, "pid", "{}"); again != err {
		t.Errorf("a later call = %v", again)
	}
	tr = stdioShell(t, `read line; printf 'bad \033[2J thing' >&2; kill -SEGV $$`)
	_, err = stdioTool(tr, 1, "x", "{}")
	e, ok = errors.AsType[*stdioExitError](err)
	if !ok || e.Signal != syscall.SIGSEGV.String() || e.Code != -1 || !strings.Contains(e.Tail, `bad \u001b[2J thing`) {
		t.Errorf("call = %v", err)
	}
}

// F07: an idle server killed from outside is known to be gone before the next call.
func TestF07IdleServerKilled(t *testing.T) {
	tr := fakeStdioStart(t, fakeStdio{})
	pid, err := strconv.Atoi(stdioText(t, tr, 1, "pid", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	if !waitFor(stdioPrompt, tr.gone) || tr.alive() {
		t.Error("it still counts as alive")
	}
	if _, err := stdioTool(tr, 2, "pid", "{}"); !strings.Contains(fmt.Sprint(err), "killed") {
		t.Errorf("call = %v", err)
	}
}

// STD-18: a server that exits at every start is one clear error, not a loop.
func TestSTD18ExitsAtOnce(t *testing.T) {
	for range 3 {
		tr := stdioShell(t, `echo no config >&2; exit 7`)
		if _, err := stdioSend(tr, 1, methodInitialize, "{}"); !strings.Contains(fmt.Sprint(err), "status 7") || !strings.Contains(fmt.Sprint(err), "no config") {
			t.Errorf("call = %v", err)
		}
	}
}

// STD-14, W12: stdin, wait, SIGTERM, wait, SIGKILL; each rung is seen to be used.
func TestSTD14Ladder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tests := []struct {
		name, script, mark string
		min                time.Duration // in graces
	}{
		{"ends with its stdin", `cat >/dev/null; echo eof >MARK`, "eof", 0},
		{"ends at SIGTERM", `trap 'echo term >MARK; exit' TERM; echo up >&2; while :; do sleep 0.01; done`, "term", 1},
		{"ignores both", `trap '' TERM; echo $$ >MARK; echo up >&2; sleep 999`, "", 2},
	}
	for _, tc := range tests {
		mark := filepath.Join(dir, "mark")
		tr := stdioShell(t, strings.ReplaceAll(tc.script, "MARK", mark))
		for tc.min > 0 && tr.tail.String() == "" { // its trap stands
			waitFor(time.Millisecond, tr.exited)
		}
		start := time.Now()
		if err := tr.close(); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if d := time.Since(start); d < tc.min*tr.grace || d > tc.min*tr.grace+2*tr.drain+stdioPrompt {
			t.Errorf("%s: close took %v", tc.name, d)
		}
		b, err := os.ReadFile(mark)
		if err != nil || tc.mark != "" && strings.TrimSpace(string(b)) != tc.mark {
			t.Errorf("%s: mark %q, %v", tc.name, b, err)
		}
		stdioGone(t, tr.cmd.Process.Pid, stdioPrompt)
		if _, err := stdioSend(tr, 1, "x", ""); err != errTransportClosed {
			t.Errorf("%s: call after close = %v", tc.name, err)
		}
		os.Remove(mark)
	}
}

// STD-15: a process that left the group and holds the pipes delays neither close nor the news of the server's end.
func TestSTD15GrandchildHoldsPipes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	holder := []string{"/bin/sh", "-c", "echo $$ >" + file + "; exec sleep 300"}
	if _, err := exec.LookPath("setsid"); err != nil {
		skipMissing(t, "needs setsid")
	}
	for name, end := range map[string]func(*stdioTransport){
		"close": func(tr *stdioTransport) {
			if err := tr.close(); err != nil {
				t.Error(err)
			}
		},
		"exit": func(tr *stdioTransport) {
			if _, err := stdioTool(tr, 2, "exit", `{"code":5}`); !strings.Contains(fmt.Sprint(err), "status 5") {
				t.Errorf("call = %v", err)
			}
		},
	} {
		tr := fakeStdioStart(t, fakeStdio{Start: []fakeStep{{Spawn: append([]string{"setsid"}, holder...)}}}, "PATH=/usr/bin:/bin")
		stdioWorks(t, tr, 1)
		pid := stdioPid(t, file)
		start := time.Now()
		end(tr)
		if d := time.Since(start); d > stdioPrompt {
			t.Errorf("%s took %v", name, d)
		}
		syscall.Kill(pid, syscall.SIGKILL) // out of the group, so out of reach of close
		os.Remove(file)
	}
	// One that stays in the group goes with the server, however that ends.
	tr := fakeStdioStart(t, fakeStdio{Start: []fakeStep{{Spawn: holder}}})
	pid := stdioPid(t, file)
	if err := tr.close(); err != nil {
		t.Error(err)
	}
	stdioGone(t, pid, stdioPrompt)
}

// STD-16: a server that closes its stdout is gone, and is stopped.
func TestSTD16ClosesStdout(t *testing.T) {
	t.Parallel()
	tr := fakeStdioStart(t, fakeStdio{On: on("tools/call", fakeStep{CloseOut: true}, fakeStep{IgnoreTerm: true, SleepMS: 60_000})})
	start := time.Now()
	_, err := stdioTool(tr, 1, "x", "{}")
	if e, ok := errors.AsType[*stdioExitError](err); !ok || !e.Open || !strings.Contains(err.Error(), "closed its output") {
		t.Errorf("call = %v", err)
	}
	if d := time.Since(start); d > stdioPrompt {
		t.Errorf("it took %v", d)
	}
	stdioGone(t, tr.cmd.Process.Pid, 5*time.Second) // nobody had to call close
}

// STD-20: descriptors that tai itself was started with do not reach its servers.
func TestSTD20Descriptors(t *testing.T) {
	if !isDir("/proc/self") {
		skipMissing(t, "needs /proc to tell descriptors apart")
	}
	fd, err := syscall.Dup(2) // as one inherited from a shell, without the close-on-exec mark
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if got := stdioText(t, fakeStdioStart(t, fakeStdio{}), 1, "fds", "{}"); got != "0,1,2" {
		t.Errorf("open descriptors are %s, want 0,1,2", got)
	}
}

// STD-17: after kill -9 of tai no server is left, not even one that ignores the end of its stdin and SIGTERM, be it behind a wrapper; nor is what
// a command started.
func TestSTD17ParentKilled(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("the parent-death signal is Linux's")
	}
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(exe)
	parent.Env = []string{"TAI_TEST_FAKE=stdio-parent", "TAI_FAKE_DIR=" + dir}
	parent.Stderr = os.Stderr
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for i := range 5 {
		pids = append(pids, stdioPid(t, filepath.Join(dir, strconv.Itoa(i+1))))
	}
	for _, pid := range pids {
		if !stdioRuns(pid) {
			t.Errorf("process %d does not run", pid)
		}
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	parent.Wait() // killed: that is its error
	for _, pid := range pids {
		stdioGone(t, pid, 5*time.Second)
	}
}
