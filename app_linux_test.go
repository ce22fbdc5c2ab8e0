package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A terminal is not read to its end for a prompt, wherever stderr goes; without a prompt that is told.
func TestPromptAtTerminal(t *testing.T) {
	for _, tc := range []struct {
		words []string
		want  string
	}{{[]string{"hello"}, "no model is set"}, {nil, "nothing to do"}, {[]string{"-p"}, "nothing to do"}} {
		p := newTermPty(t)
		var stdout, stderr bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), termWait)
		code := run(ctx, append([]string{"--home", t.TempDir()}, tc.words...), outside{
			Getenv: testEnv(t.TempDir()), Stdin: p.slave, Stdout: &stdout, Stderr: &stderr, GOOS: "linux", Now: time.Now, Dir: t.TempDir(),
		})
		cancel()
		if code != exitUsage || !strings.Contains(stderr.String(), tc.want) {
			t.Errorf("tai %q: exit %d, stderr %q, want %q", tc.words, code, stderr.String(), tc.want)
		}
	}
}

// A named pipe in the place of a file is turned away before it is opened, which would wait for its writer for ever.
func TestCLIPipes(t *testing.T) {
	r := newCLIRig(t)
	pipe := filepath.Join(r.dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		skipMissing(t, "no named pipes here: %v", err)
	}
	r.tai("secret", "set", "S", "--from", "file:"+pipe).fails(exitUsage, "is no regular file")
	r.tai("audit", "show", pipe).fails(exitUsage, "is no regular file")
	r.tai("audit", "verify", "log.jsonl", "--head", pipe).fails(exitUsage, "is no regular file")
	r.tai("--serve-mcp", "file:"+pipe, "--mcp-port", "0").fails(exitUsage, "is no regular file")
	if err := syscall.Mkfifo(filepath.Join(r.dir, historyFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newLineHistory(r.dir, time.Now).all(); !errors.Is(err, errNotRegular) {
		t.Errorf("a history that is a pipe: %v", err)
	}
	if err := syscall.Mkfifo(filepath.Join(r.dir, "AGENTS.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, faults := projectNotes(t.Context(), r.dir, ""); len(got) > 0 || len(faults) != 1 || !strings.Contains(faults[0].Error(), "is no regular file") {
		t.Errorf("AGENTS.md = %q, %v", got, faults)
	}
}
