//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMCPServeProcess: as a process, with warnings, notes and shown calls, stdout holds messages alone (W104, SRV-22); SIGTERM ends it in order,
// with the call under way answered and the log complete. So does SIGHUP, when the terminal goes, unless it is ignored.
func TestMCPServeProcess(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) { // as where the test itself runs under nohup
			t.Run(sig.String(), func(t *testing.T) {
				t.Parallel()
				mcpServeProcess(t, sig)
			})
		}
	}
}

func mcpServeProcess(t *testing.T, sig syscall.Signal) {
	r := newCLIRig(t)
	seedWrite(t, filepath.Join(r.dir, ".tai", "config.json"), `{"version":1,"permission_mode":"danger-full-access"}`) // passed over, with a note
	cmd := r.process("mcp", "serve", "--permission-mode", "allow", "--approve-scoped", "nobody:"+strings.Repeat("0", 64))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(servedWait, func() { cmd.Process.Kill() })
	defer kill.Stop()
	lines := newLineReader(out, mcpHTTPMaxBody)
	next := func() rpcMessage {
		line, _, err := lines.next()
		if err != nil {
			t.Fatalf("stdout: %v\n%s", err, stderr.String())
		}
		return servedMessage(t, string(line)+"\n")
	}
	for _, line := range []string{"junk", serveRequest("1", methodInitialize, `{"protocolVersion":"2025-11-25"}`), serveCall("shell_run", `{"command":"echo out; echo err >&2"}`), serveCall("file_read", `{"path":"\u001b[31m"}`)} {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		next()
	}
	fifo := filepath.Join(r.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, serveCall("shell_run", `{"command":"cat fifo"}`)+"\n"); err != nil {
		t.Fatal(err)
	}
	word, err := os.OpenFile(fifo, os.O_WRONLY, 0) // waits until the command reads
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(word, "went"); err != nil {
		t.Error(err)
	}
	word.Close()
	if m := next(); string(m.ID) != "7" || !strings.Contains(string(m.Result), "went") {
		t.Errorf("the call under way: %s %+v", m.Result, m.Error)
	}
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("stdout goes on: %q, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("end: %v\n%s", err, stderr.String())
	}
	if _, events := servedLog(t, r.dir); events[len(events)-1] != auditRunCompleted || len(events) != 11 {
		t.Errorf("events %q", events)
	}
	for _, want := range []string{"passed over", "names no tool", "mode allow", "runs shell_run"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("stderr lacks %q:\n%s", want, stderr.String())
		}
	}
}
