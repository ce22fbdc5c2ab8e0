//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// STD-17: after kill -9 of tai itself with three servers at work, one of them behind a wrapper and one that ignores the end of its
// input and SIGTERM, no process is left.
func TestSTD17CLIKilled(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("the parent-death signal is Linux's")
	}
	r := newCLIRig(t)
	v, err := openVault(context.Background(), r.home, vaultWrite, time.Now, r.keys())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		spec := fakeStdio{Start: []fakeStep{{PidFile: filepath.Join(r.dir, fmt.Sprint("pid", i))}}, On: map[string][]fakeStep{methodToolsList: {{SleepMS: 600_000}}}}
		if i == 0 {
			spec.Start[0].IgnoreTerm = true
			spec.AtEOF = []fakeStep{{SleepMS: 600_000}}
		}
		e := stdioEntry(t, fmt.Sprint("s", i), spec)
		if i == 1 {
			e.Command, e.Args = "/bin/sh", []string{"-c", `"$0"; exit $?`, e.Command}
		}
		if err := v.putServer(context.Background(), e, "default", true, nil, mcpMaxServers); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.close(); err != nil {
		t.Fatal(err)
	}
	cmd := r.process("mcp", "tools", "--auto")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for i := range 3 {
		pids = append(pids, stdioPid(t, filepath.Join(r.dir, fmt.Sprint("pid", i))))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed: that is its error
	for _, pid := range pids {
		stdioGone(t, pid, 5*time.Second)
	}
	if want := "tai: runs mcp_add s1\n"; !strings.Contains(stderr.String(), want) { // mode allow shows what it lets run
		t.Errorf("stderr: %s, want a line %q", &stderr, want)
	}
	if list := r.servers(); len(list) != 3 {
		t.Errorf("after the kill the vault has %+v", list)
	}
}

// A terminate in the middle of a call ends the server too, closes the log in order, and is exit 130.
func TestCLITerminated(t *testing.T) {
	r := newCLIRig(t)
	log, pidFile := filepath.Join(r.dir, "server.log"), filepath.Join(r.dir, "pid")
	r.addFake("fake", fakeStdio{Log: log, Start: []fakeStep{{PidFile: pidFile}}})
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		if err := os.WriteFile(log, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := r.process("mcp", "call", "fake", "sleep", "ms=600000")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
		for b := []byte(nil); !strings.Contains(string(b), `"sleep"`); time.Sleep(5 * time.Millisecond) {
			b, _ = os.ReadFile(log) // not there yet is not there
		}
		pid := stdioPid(t, pidFile)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its exit code says it
		kill.Stop()
		if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || stdout.Len() > 0 || stderr.String() != "tai: interrupted\n" {
			t.Errorf("%v: exit %d\nstdout: %s\nstderr: %s", sig, code, &stdout, &stderr)
		}
		stdioGone(t, pid, 5*time.Second)
		if b, err := os.ReadFile(log); err != nil || !strings.Contains(string(b), "notifications/cancelled") { // F19
			t.Errorf("%v: the server was not told: %v, %s", sig, err, b)
		}
	}
}
