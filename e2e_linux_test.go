package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wireRig is a rig whose model answers by script on one wire.
func wireRig(t *testing.T, w chatWire, answers ...func(http.ResponseWriter)) (*cliRig, *fakeModel) {
	t.Helper()
	r, m := newCLIRig(t), newFakeModel(t, answers...)
	r.env = wireEnv(w, m.URL)
	return r, m
}

func wireEnv(w chatWire, url string) []string {
	if w == wireAnthropic {
		return []string{"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_MODEL=m-1", "ANTHROPIC_API_KEY=made-up-for-tests"}
	}
	return []string{"TAI_BASE_URL=" + url + "/v1", "TAI_MODEL=m-1", "TAI_API_KEY=made-up-for-tests"}
}

// repository makes a git repository with a script that subtracts and a test that wants it to add. run is git in it.
func (r *cliRig) repository(t *testing.T) (run func(args ...string) string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		skipMissing(t, "no git here: %v", err)
	}
	for name, text := range map[string]string{"sum.sh": "# Adds two numbers.\necho $(($1 - $2))\n", "test.sh": `[ "$(sh sum.sh 2 3)" = 5 ] && echo PASS || { echo FAIL; exit 1; }` + "\n"} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run = func(args ...string) string {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Env = r.dir, append(r.environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("init", "-q")
	run("config", "user.name", "n")
	run("config", "user.email", "n@example.invalid")
	run("add", ".")
	run("commit", "-qm", "begin")
	return run
}

// verified wants that every run log of the rig is whole, as a person would ask.
func (r *cliRig) verified(t *testing.T) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(r.home, "runs", "*"+auditExtension))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%d run logs, %v", len(logs), err)
	}
	for _, log := range logs {
		r.tai("audit", "verify", strings.TrimSuffix(filepath.Base(log), auditExtension)).ok()
	}
}

// session gives the rows of the rig's only session.
func (r *cliRig) session(t *testing.T) []storedMessage {
	t.Helper()
	v, err := openVault(t.Context(), r.home, vaultRead, time.Now, r.keys())
	if err != nil {
		t.Fatal(err)
	}
	defer v.close()
	list, _, err := v.sessions(t.Context(), sessionQuery{Limit: 2})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d sessions, %v", len(list), err)
	}
	rows, err := v.messages(t.Context(), list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// One task from end to end, on each wire: it looks, edits, writes, tests and commits; the person is asked before each deed.
func TestWholeTask(t *testing.T) {
	for _, wire := range bothWires {
		t.Run(string(wire), func(t *testing.T) {
			t.Parallel()
			r, m := wireRig(t, wire,
				wireReply(wire, "I look first.", chatToolCall{"c1", "file_read", `{"path":"sum.sh"}`}, chatToolCall{"c2", "text_search", `{"pattern":"sum\\.sh"}`}, chatToolCall{"c3", "git_status", `{}`}),
				wireReply(wire, "", chatToolCall{"c4", "shell_run", `{"command":"sh test.sh"}`}),
				wireReply(wire, "It subtracts.", chatToolCall{"c5", "file_edit", `{"path":"sum.sh","old":"$1 - $2","new":"$1 + $2"}`}, chatToolCall{"c6", "file_write", `{"path":"CHANGES","content":"sum.sh adds.\n"}`}),
				wireReply(wire, "", chatToolCall{"c7", "shell_run", `{"command":"sh test.sh"}`}),
				wireReply(wire, "", chatToolCall{"c8", "git_commit", `{"message":"Let sum.sh add","paths":["sum.sh","CHANGES"]}`}),
				wireReply(wire, "sum.sh adds now, the test passes, and it is committed."))
			git := r.repository(t)
			c := r.pty(t, newTermPty(t), false, "make sum.sh add, test it, and commit")
			for _, deed := range []string{"sh test.sh", "sum.sh", "CHANGES", "sh test.sh", "Let sum.sh add"} {
				c.await("your answer (")
				c.shows(deed)
				c.keys("y\n")
			}
			c.exit(exitDone)
			if out := c.stdout.String(); out != "sum.sh adds now, the test passes, and it is committed.\n" {
				t.Errorf("stdout %q", out)
			}
			if log, status := git("log", "--format=%s", "--name-status"), git("status", "--porcelain"); !strings.HasPrefix(log, "Let sum.sh add\n\nA\tCHANGES\nM\tsum.sh\n") || status != "" {
				t.Errorf("log %q, status %q", log, status)
			}
			for name, want := range map[string]string{"sum.sh": "# Adds two numbers.\necho $(($1 + $2))\n", "CHANGES": "sum.sh adds.\n"} {
				if b, err := os.ReadFile(filepath.Join(r.dir, name)); err != nil || string(b) != want {
					t.Errorf("%s has %q, %v", name, b, err)
				}
			}
			for _, body := range m.requests {
				wireStrict(t, wire, body)
			}
			rows := r.session(t)
			agentBothTake(t, rows)
			told := taskResults(t, rows)
			for i, want := range []string{"$1 - $2", "test.sh", "branch", "FAIL", "sum.sh", "CHANGES", "PASS", "Let sum.sh add"} {
				if len(told) != 8 || !strings.Contains(told[i], want) {
					t.Errorf("result %d of %d: %q, want %q in it", i+1, len(told), told, want)
				}
			}
			r.verified(t)
		})
	}
}

func taskResults(t *testing.T, rows []storedMessage) []string {
	t.Helper()
	h, err := readHistory(rows)
	if err != nil {
		t.Fatal(err)
	}
	return faultResults(h.Messages)
}

// fifo makes a named pipe that the test holds open at both ends, so that nobody waits for an open, and whoever reads it waits until the test is over.
func fifo(t *testing.T, name string) *os.File {
	t.Helper()
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// fifoLine waits for a line.
func fifoLine(t *testing.T, f *os.File) string {
	t.Helper()
	if err := f.SetReadDeadline(time.Now().Add(termWait)); err != nil {
		t.Fatal(err)
	}
	var line []byte
	for b := make([]byte, 1); ; line = append(line, b[0]) {
		if _, err := f.Read(b); err != nil {
			t.Fatalf("nothing came, after %q: %v", line, err)
		}
		if b[0] == '\n' {
			return string(line)
		}
	}
}

// stuckCommand is a shell command that leaves a mark each time it runs, says its process group in the pipe begun, and hangs.
const stuckCommand = `{"command":"echo ran >> ran.txt; echo $$ > begun; cat hold"}`

// F25: kill -9 in the middle of a command, of a bridged call, or of a reply, and --continue on each wire afterwards: nothing runs twice, the model is
// told that the outcome is unknown, and the histories are ones that both wires take.
func TestF25Killed(t *testing.T) {
	for _, in := range []string{"command", "bridged call", "reply"} {
		for _, wire := range bothWires {
			for _, next := range bothWires {
				t.Run(fmt.Sprintf("%s/%s then %s", in, wire, next), func(t *testing.T) {
					t.Parallel()
					killedRun(t, in, wire, next)
				})
			}
		}
	}
}

func killedRun(t *testing.T, in string, wire, next chatWire) {
	streamed := make(chan struct{})
	note := chatToolCall{"c1", "file_read", `{"path":"note.txt"}`}
	first := map[string]func(http.ResponseWriter){
		"command":      wireReply(wire, "I begin.", note, chatToolCall{"c2", "shell_run", stuckCommand}, chatToolCall{"c3", "shell_run", `{"command":"echo third >> ran.txt"}`}),
		"bridged call": wireReply(wire, "I begin.", note, chatToolCall{"c2", "mcp_fake_sleep", `{"ms":600000}`}, chatToolCall{"c3", "shell_run", `{"command":"echo third >> ran.txt"}`}),
		"reply": func(w http.ResponseWriter) {
			whole := wireStream(wire, "I begin.", note)
			wireAnswer(whole[:strings.LastIndex(whole, "path")])(w)
			close(streamed)
			<-t.Context().Done()
		},
	}[in]
	r, m := wireRig(t, wire, first)
	log := filepath.Join(r.dir, "server.log")
	if in == "bridged call" {
		r.addFake("fake", fakeStdio{Log: log})
	}
	if err := os.WriteFile(filepath.Join(r.dir, "note.txt"), []byte("the note\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	begun, hold := fifo(t, filepath.Join(r.dir, "begun")), fifo(t, filepath.Join(r.dir, "hold"))
	defer hold.Close()
	cmd := r.process("--yolo", "do three things")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(2*termWait, func() { cmd.Process.Kill() })
	defer stop.Stop()
	switch in {
	case "command":
		fifoLine(t, begun)
	case "bridged call":
		cliAwaitFile(t, log, `"name":"sleep"`)
	case "reply":
		<-streamed
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	second := newFakeModel(t, wireReply(next, "Going on."))
	r.env = wireEnv(next, second.URL)
	if out := r.tai("--continue", "go on").ok(); out != "Going on.\n" {
		t.Errorf("%q", out)
	}
	if m.seen() != 1 || second.seen() != 1 {
		t.Errorf("%d and %d requests", m.seen(), second.seen())
	}
	wireStrict(t, next, second.requests[0])
	rows := r.session(t)
	agentBothTake(t, rows)
	killedResults(t, r, in, taskResults(t, rows), log)
	if in != "reply" { // which has called nothing
		r.verified(t)
	}
}

// killedResults holds what the model is told, and what was done, against how often each call was begun.
func killedResults(t *testing.T, r *cliRig, in string, told []string, log string) {
	t.Helper()
	ran, err := os.ReadFile(filepath.Join(r.dir, "ran.txt"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	want := map[string]string{"command": "ran\n"}[in]
	if string(ran) != want {
		t.Errorf("ran %q, want %q", ran, want)
	}
	if in == "reply" {
		if len(told) != 0 {
			t.Errorf("the model is told %q of calls it never made", told)
		}
		return
	}
	if len(told) != 3 || !strings.Contains(told[0], "the note") || told[1] != chatUnknown || told[2] != chatUnknown {
		t.Errorf("the model is told %q", told)
	}
	if in == "bridged call" {
		if b, err := os.ReadFile(log); err != nil || strings.Count(string(b), `"name":"sleep"`) != 1 {
			t.Errorf("%v, the server was sent %s", err, b)
		}
	}
}

// Ctrl-C at the prompt, on either wire, in the middle of a command, of a bridged call, or of an answer: the command's processes are gone, the server
// is told, the text that was shown is kept, and the session goes on with a history that both wires take.
func TestREPLPtyInterrupted(t *testing.T) {
	for _, in := range []string{"command", "bridged call", "reply"} {
		for _, wire := range bothWires {
			t.Run(in+"/"+string(wire), func(t *testing.T) {
				t.Parallel()
				interruptedRun(t, in, wire)
			})
		}
	}
}

func interruptedRun(t *testing.T, in string, wire chatWire) {
	first := map[string]func(http.ResponseWriter){
		"command":      wireReply(wire, "", chatToolCall{"c1", "shell_run", `{"command":"cat hold & a=$!; cat hold & echo $$ $a $! > begun; wait"}`}, chatToolCall{"c2", "shell_run", `{"command":"echo third >> ran.txt"}`}),
		"bridged call": wireReply(wire, "", chatToolCall{"c1", "mcp_fake_sleep", `{"ms":600000}`}, chatToolCall{"c2", "shell_run", `{"command":"echo third >> ran.txt"}`}),
		"reply": func(w http.ResponseWriter) {
			whole := wireStream(wire, "half of it, and more")
			i := strings.Index(whole, "half of i")
			wireAnswer(whole[:i+strings.Index(whole[i:], "\n\n")+2])(w)
			<-t.Context().Done()
		},
	}[in]
	r, m := wireRig(t, wire, first, wireReply(wire, "Here I am again."))
	log := filepath.Join(r.dir, "server.log")
	r.addFake("fake", fakeStdio{Log: log})
	begun, hold := fifo(t, filepath.Join(r.dir, "begun")), fifo(t, filepath.Join(r.dir, "hold"))
	defer hold.Close()
	c := r.pty(t, newTermPty(t), true, "--yolo")
	c.await(replPrompt)
	c.keys("begin\n")
	var pids [3]int
	switch in {
	case "command":
		if _, err := fmt.Sscan(fifoLine(t, begun), &pids[0], &pids[1], &pids[2]); err != nil {
			t.Fatal(err)
		}
	case "bridged call":
		cliAwaitFile(t, log, `"name":"sleep"`)
	case "reply":
		c.await("half of i") // what may be the beginning of a secret is held back
	}
	c.keys("\x03")
	c.await("interrupted")
	c.await(replPrompt)
	for _, pid := range pids {
		if pid > 0 {
			stdioGone(t, pid, 5*time.Second)
		}
	}
	if in == "bridged call" {
		cliAwaitFile(t, log, "notifications/cancelled")
	}
	c.keys("are you there?\n")
	c.await("Here I am again.")
	c.await(replPrompt)
	c.keys("/exit\n")
	c.exit(exitDone)
	for _, body := range m.requests {
		wireStrict(t, wire, body)
	}
	rows := r.session(t)
	agentBothTake(t, rows)
	told := taskResults(t, rows)
	switch {
	case in == "reply":
		if len(told) > 0 || !slices.ContainsFunc(rows, func(s storedMessage) bool {
			return strings.HasPrefix(s.Content, "half of it\n") && strings.HasSuffix(s.Content, "[cut off here]")
		}) {
			t.Errorf("kept %+v", rows)
		}
	case len(told) != 2 || !strings.Contains(told[0], "interrupted") || told[1] != agentNotRun:
		t.Errorf("the model is told %q", told)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "ran.txt")); err == nil {
		t.Error("a call was run after the interrupt")
	}
	r.verified(t)
}

// What each of the file tools did before tai was killed, in a later call of the same turn, is undone by the command line of another tai.
func TestUndoAfterKilled(t *testing.T) {
	for _, tc := range []struct {
		name, tool string
		args       map[string]any
	}{
		{"replace", "file_write", map[string]any{"path": "a.txt", "content": "new", "mode": "replace"}},
		{"create", "file_write", map[string]any{"path": "new/n.txt", "content": "new", "mkdirs": true}},
		{"edit", "file_edit", map[string]any{"path": "a.txt", "old": "b", "new": "x\ny"}},
		{"anchored", "file_edit_anchored", map[string]any{"path": "a.txt", "edits": []any{map[string]any{"op": "delete", "anchor": "2#" + lineHash("b")}}}},
		{"patch", "file_patch", map[string]any{"patch": "--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n--- gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"}},
		{"move", "file_move", map[string]any{"src": "d", "dst": "moved"}},
		{"trash", "file_delete", map[string]any{"path": "d", "recursive": true}},
		{"delete", "file_delete", map[string]any{"path": "b.txt"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newCLIRig(t)
			begun, hold := fifo(t, r.home+"-begun"), fifo(t, r.home+"-hold")
			defer hold.Close()
			stuck := mustJSON(t, map[string]any{"command": fmt.Sprintf("echo $$ > %s-begun; cat %s-hold", r.home, r.home)})
			m := newFakeModel(t, wireReply(wireOpenAI, "", chatToolCall{"c1", tc.tool, string(mustJSON(t, tc.args))}, chatToolCall{"c2", "shell_run", string(stuck)}))
			r.env = wireEnv(wireOpenAI, m.URL)
			changeCrashFiles(t, r.dir)
			before := changeTree(t, r.dir)
			cmd := r.process("--yolo", "change it")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			stop := time.AfterFunc(2*termWait, func() { cmd.Process.Kill() })
			defer stop.Stop()
			fifoLine(t, begun)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed
			if maps.Equal(changeTree(t, r.dir), before) {
				t.Errorf("%s changed nothing", tc.tool)
			}
			r.tai("tools", "call", "file_undo").ok()
			changeSameTree(t, "undone", changeTree(t, r.dir), before)
			r.tai("tools", "call", "file_undo").fails(exitFailed, "there is no change to undo")
		})
	}
}
