//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// auditKilled runs a tool that kills tai with signal 9 from inside, and gives the rig with the one run there is.
func auditKilled(t *testing.T) *auditRig {
	t.Helper()
	r := &auditRig{cliRig: newCLIRig(t)}
	cmd := r.process("tools", "call", "shell_run", "command=touch done-it; kill -9 $PPID")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	_ = cmd.Wait() // killed: that is its error
	if !limit.Stop() {
		t.Fatal("tai was not killed by its tool")
	}
	if _, err := os.Stat(filepath.Join(r.dir, "done-it")); err != nil {
		t.Fatalf("the tool did not run: %v: %s", err, &stderr)
	}
	runs := cliJSON[struct{ Runs []auditRunInfo }](r.tai("audit", "list", "--json")).Runs
	if len(runs) != 1 || runs[0].State != runNotEnded {
		t.Fatalf("%+v", runs)
	}
	r.runs = []string{runs[0].Run}
	return r
}

// AUD-07, AUD-04: kill -9 in the middle of a destructive tool leaves what was requested on disk, and the run on record: it cannot be denied by
// cutting the line or by removing the log.
func TestAUD07CLIKilled(t *testing.T) {
	t.Parallel()
	r := auditKilled(t)
	text := r.read(0)
	lines := strings.SplitAfter(text, "\n")
	if !strings.Contains(text, `"event":"tool_call_requested"`) || !strings.Contains(text, "touch done-it") || strings.Contains(text, auditRunCompleted) {
		t.Errorf("%s", text)
	}
	r.verdict(0, r.runs, "good: 3 lines", "the vault's head of 2 lines")
	r.write(0, lines[0])
	r.verdict(1, r.runs, "tampered with: line 2: the log ends before this line")
	if err := os.Remove(r.path(0)); err != nil {
		t.Fatal(err)
	}
	r.verdict(1, r.runs, "tampered with: the log is gone: 2 lines of run "+r.runs[0])
}

// AUD-07: the same seen from outside: the log is synced after the requested line was written and before the tool's process starts.
func TestAUD07Strace(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		skipMissing(t, "no strace here")
	}
	r := newCLIRig(t)
	trace := filepath.Join(r.dir, "trace")
	tai := r.process("tools", "call", "shell_run", "command=touch made-by-tool")
	cmd := exec.CommandContext(t.Context(), strace, append([]string{"-f", "-y", "-s", "400", "-e", "trace=write,pwrite64,fsync,fdatasync,execve", "-o", trace, tai.Path}, tai.Args[1:]...)...)
	cmd.Env, cmd.Dir = tai.Env, tai.Dir
	if out, err := cmd.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "ptrace") {
			skipMissing(t, "tracing is not allowed here: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	at := func(what, pattern string) int {
		t.Helper()
		loc := regexp.MustCompile(pattern).FindIndex(b)
		if loc == nil {
			t.Fatalf("the trace shows no %s:\n%s", what, b)
		}
		return loc[0]
	}
	requested := at("requested line", `write\(\d+<[^>]*\.jsonl>, "[^\n]*tool_call_requested`)
	synced := at("sync of the log", `fsync\(\d+<[^>]*\.jsonl>`)
	vault := at("head in the vault", `pwrite64\(\d+<[^>]*vault\.db-wal>`)
	tool := at("start of the tool", `execve\("[^"]*/(ba|da)?sh"[^\n]*touch made-by-tool`)
	if requested > synced || synced > vault || vault > tool {
		t.Errorf("requested at %d, synced at %d, on record at %d, tool at %d of the trace", requested, synced, vault, tool)
	}
}

// P21: eight processes that log at once, each its own run, all end with their whole log on record under one key.
func TestAUD05EightProcessesHeads(t *testing.T) {
	t.Parallel()
	r := &auditRig{cliRig: newCLIRig(t)}
	if err := os.WriteFile(filepath.Join(r.dir, "a.txt"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const processes = 8
	var wg sync.WaitGroup
	for range processes {
		cmd := r.process("tools", "call", "file_read", "path=a.txt")
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	runs := cliJSON[struct{ Runs []auditRunInfo }](r.tai("audit", "list", "--json")).Runs
	if len(runs) != processes {
		t.Fatalf("%d runs", len(runs))
	}
	keys := map[string]bool{}
	for _, run := range runs {
		f := r.verdict(0, []string{run.Run}, "good: 5 lines", "the vault's head of 5 lines")
		keys[f.Key] = true
	}
	if len(keys) != 1 {
		t.Errorf("%d keys: %v", len(keys), fmt.Sprint(keys))
	}
}

// AUD-12: a pipe that nobody writes to is refused where a file is needed, not waited for; and a file in which no line is one of a run log is not
// shown as an empty one.
func TestAuditOddFiles(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.tai("tools", "call", "file_read", "path=none")
	run := cliJSON[struct{ Runs []auditRunInfo }](r.tai("audit", "list", "--json")).Runs[0].Run
	pipe, long := filepath.Join(r.dir, "pipe"), filepath.Join(r.dir, "long.jsonl")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(long, []byte(strings.Repeat("x", auditLineMax+1)+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	r.tai("audit", "verify", run, "--head", pipe).fails(exitUsage, "no regular file")
	for _, command := range []string{"verify", "show", "head", "report"} {
		r.tai("audit", command, pipe).fails(exitUsage, "no regular file")
	}
	r.tai("audit", "show", long).fails(exitUsage, "nothing of it can be shown", "longer than any that tai writes")
	if err := syscall.Mkfifo(filepath.Join(r.home, "history"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newLineHistory(r.home, time.Now).all(); err == nil {
		t.Error("a pipe is taken for the history")
	}
}
