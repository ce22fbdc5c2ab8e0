//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shellBox(t *testing.T, mode approvalMode, w workspace) *toolsBox {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs /bin/sh")
	}
	return newToolsBox(t, mode, nil, shellTools(w, os.Environ)...)
}

func TestShellRun(t *testing.T) {
	t.Parallel()
	w, outside := workspaceDirs(t)
	box := shellBox(t, modeAllow, w)
	for _, tc := range []struct {
		args    string
		want    []string
		not     string
		isError bool
	}{
		{args: `{"command":"echo hi; touch made"}`, want: []string{"exit status 0 after", "\nhi\n"}},
		{args: `{"command":"true >made"}`, want: []string{"exit status 0", ", no output\n"}},
		{args: `{"command":"echo a; sleep 0.05; echo b >&2; sleep 0.05; printf c"}`, want: []string{"\na\nstderr| b\nc\n"}},
		{args: `{"command":"echo out; exit 3"}`, want: []string{"exit status 3", "out"}, isError: true},
		{args: `{"command":"kill -KILL $$"}`, want: []string{"signal: killed"}, isError: true},
		{args: `{"command":"no-such-program-here x"}`, want: []string{"exit status 127", "stderr| "}, isError: true},
		{args: `{"command":"rm -f made; pwd","cwd":"sub"}`, want: []string{filepath.Join(w.root, "sub") + "\n"}},
		{args: `{"command":"echo \"$X-$Y\"","env":{"X":"1","Y":""}}`, want: []string{"\n1-\n"}},
		{args: `{"command":"rm -f made; echo \"$PAGER\""}`, want: []string{"\ncat\n"}},
		{args: `{"command":"cat; rm -f made","stdin":"from me"}`, want: []string{"\nfrom me\n"}},
		{args: `{"command":"cat; rm -f made"}`, want: []string{"exit status 0", "no output"}}, // nothing waits for a key
		{args: `{"command":"printf 'a\\377b'; rm -f made"}`, want: []string{"a\uFFFDb"}},
		{args: `{"command":"exit 0 >made","cwd":"missing"}`, want: []string{"cwd \"missing\": there is no such folder"}, isError: true},
		{args: `{"command":"exit 0 >made","cwd":"link-dir"}`, want: []string{"refused by policy"}, isError: true}, // ROO-02
		{args: fmt.Sprintf(`{"command":"exit 0 >made","cwd":%q}`, outside), want: []string{"refused by policy"}, isError: true},
		{args: `{"command":"exit 0 >made","env":{"A=B":"x"}}`, want: []string{"env:"}, isError: true},
		{args: `{"command":"exit 0 >made","env":{"A":1}}`, want: []string{"env"}, isError: true},
		{args: `{"command":"exit 0 >made","env":{"A":"\u0000"}}`, want: []string{"NUL"}, isError: true},
		{args: `{"command":""}`, want: []string{"command"}, isError: true},
		{args: `{}`, want: []string{"command"}, isError: true},
		{args: `{"command":"rm -f made","timeout_s":0}`, want: []string{"timeout_s"}, isError: true},
		{args: `{"command":"rm -f made","timeout_s":601}`, want: []string{"timeout_s"}, isError: true},
		{args: `{"command":"rm -f made","shell":"bash"}`, want: []string{"shell"}, isError: true},
		{args: `{"command":"rm -f made","stdin":5}`, want: []string{"stdin"}, isError: true},
	} {
		r := toolsRun(t, box, "shell_run", tc.args)
		for _, want := range tc.want {
			if !strings.Contains(r.Text, want) {
				t.Errorf("shell_run %s: %.300q, want %q", tc.args, r.Text, want)
			}
		}
		if r.IsError != tc.isError {
			t.Errorf("shell_run %s: error %v, want %v: %.300q", tc.args, r.IsError, tc.isError, r.Text)
		}
	}
}

func TestShellStructured(t *testing.T) {
	w, _ := workspaceDirs(t)
	box := shellBox(t, modeAllow, w)
	r := toolsRun(t, box, "shell_run", `{"command":"echo a; echo b; sleep 0.05; echo c >&2; exit 4"}`)
	schema, err := compileSchema(box.natives()[0].Output)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Exit   int
		Output []shellPart
	}
	if err := errors.Join(schema.validate(r.Structured), json.Unmarshal(r.Structured, &doc)); err != nil {
		t.Fatalf("%s: %v", r.Structured, err)
	}
	if doc.Exit != 4 || len(doc.Output) != 2 || doc.Output[0] != (shellPart{"stdout", "a\nb\n"}) || doc.Output[1] != (shellPart{"stderr", "c\n"}) {
		t.Errorf("structured %s", r.Structured)
	}
}

// Reading commands run unasked in prompt mode, all others need the person; nobody sits here, so they are denied at once (F22).
func TestF22ShellAsks(t *testing.T) {
	w, _ := workspaceDirs(t)
	box := shellBox(t, modePrompt, w)
	for _, tc := range []struct {
		args, origin string
		runs         bool
	}{
		{`{"command":"echo hi"}`, "agent", true},
		{`{"command":"cat in.txt | wc -l"}`, "agent", true},
		{`{"command":"echo hi"}`, "mcp", false}, // always destructive on tai mcp serve
		{`{"command":"echo hi","env":{"LD_PRELOAD":"./x.so"}}`, "agent", false},
		{`{"command":"echo hi","cwd":"link-dir"}`, "agent", false},
		{`{"command":"head in.txt sub/*.go"}`, "agent", true},
		{`{"command":"head link-file"}`, "agent", false}, // ROO-02
		{`{"command":"head ../link-file","cwd":"sub"}`, "agent", false},
		{`{"command":"ls -l link-dir/"}`, "agent", false},
		{`{"command":"ls -l link-fil?"}`, "agent", false},
		{`{"command":"ls -l link-fil?x"}`, "agent", true},
		{fmt.Sprintf(`{"command":"head %s/link-file"}`, w.root), "agent", false},
		{fmt.Sprintf(`{"command":"head in.txt","cwd":%q}`, w.root), "agent", true},
		{fmt.Sprintf(`{"command":"head deep.go link-file","cwd":%q}`, w.root), "agent", false},
		{`{"command":"rm in.txt"}`, "agent", false},
		{`{"command":"echo hi > in.txt"}`, "agent", false},
		{`{"command":"echo 'hi"}`, "agent", false}, // SHL-11
	} {
		r, err := box.dispatch(t.Context(), toolCall{Name: "shell_run", Args: json.RawMessage(tc.args), Origin: tc.origin})
		if err != nil || (r.Rule == "") != tc.runs {
			t.Errorf("%s from %s: %+v, %v, want run %v", tc.args, tc.origin, r, err, tc.runs)
		}
		if !tc.runs && !strings.Contains(r.Text, "--auto") && !strings.Contains(r.Text, "--yolo") {
			t.Errorf("%s: the refusal names no flag: %q", tc.args, r.Text)
		}
	}
	allow := shellBox(t, modeAllow, w)
	if r := toolsRun(t, allow, "shell_run", `{"command":"echo 'hi"}`); r.Rule == "" {
		t.Errorf("SHL-11: a command that cannot be split ran in allow mode: %+v", r)
	}
	if b, err := os.ReadFile(filepath.Join(w.root, "in.txt")); err != nil || string(b) != "one\ntwo\n" {
		t.Errorf("a refused command changed a file: %q, %v", b, err)
	}
}

// A program of the workspace's own in PATH is not the program its name says (SHL-12).
func TestSHL12TrustedProgram(t *testing.T) {
	w, outside := workspaceDirs(t)
	filesWrite(t, w.root, map[string]string{"bin/cat": "#!/bin/sh\n"})
	filesWrite(t, outside, map[string]string{"open/cat": "#!/bin/sh\n"})
	if err := os.Chmod(filepath.Join(outside, "open"), 0o777); err != nil {
		t.Fatal(err)
	}
	list := string(filepath.ListSeparator)
	for path, want := range map[string]bool{
		"/usr/bin" + list + "/bin":                                       true,
		filepath.Join(w.root, "bin") + list + "/bin":                     false,
		filepath.Join(outside, "open") + list + "/bin":                   false,
		"/nonexistent" + list + "/bin":                                   true,
		"/bin" + list + filepath.Join(w.root, "bin"):                     true,
		filepath.Join(w.root, "sub") + list + "/usr/bin" + list + "/bin": true,
	} {
		s := shellRunner{workspace: w, environ: func() []string { return []string{"PATH=" + path} }}
		if got := s.trusted("cat"); got != want {
			t.Errorf("trusted(cat) with PATH %q = %v, want %v", path, got, want)
		}
	}
}

// shellGone waits until the process whose id stands in the file is gone.
func shellGone(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || (err == nil && strings.Contains(string(stat), ") Z ")) {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("process %d is still there", pid)
}

// At its time limit, on an interrupt, and at its end a command's whole group goes, also one that ignores the polite signal.
func TestShellEndsGroup(t *testing.T) {
	t.Parallel()
	w, _ := workspaceDirs(t)
	if runtime.GOOS == "windows" {
		t.Skip("no process groups")
	}
	s := shellRunner{workspace: w, environ: os.Environ, goos: runtime.GOOS, grace: 50 * time.Millisecond, unit: 100 * time.Millisecond}
	for name, tc := range map[string]struct {
		command   string
		interrupt bool
		want      string
		isError   bool
	}{
		"time limit":      {command: `sleep 60 & echo $! >pid; echo begun; wait`, want: "ended at its time limit", isError: true},
		"ignores TERM":    {command: `trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $! >pid; echo begun; while :; do wait; done`, want: "ended at its time limit", isError: true},
		"asked first":     {command: `trap 'echo bye; exit 7' TERM; echo $$ >pid; echo begun; while :; do sleep 0.01; done`, want: "\nbye\n", isError: true},
		"interrupt":       {command: `sleep 60 & echo $! >pid; echo begun; wait`, interrupt: true, want: "interrupted", isError: true},
		"holds the pipe":  {command: `sleep 60 & echo $! >pid; echo begun`, want: "a process it left running was ended"},
		"quiet left-over": {command: `sleep 60 >/dev/null 2>&1 & echo $! >pid; echo begun`, want: "exit status 0"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if err := os.RemoveAll(filepath.Join(w.root, "pid")); err != nil {
				t.Fatal(err)
			}
			args := fmt.Sprintf(`{"command":%q,"timeout_s":5}`, tc.command)
			if tc.interrupt {
				args = fmt.Sprintf(`{"command":%q,"timeout_s":500}`, tc.command)
				go func() { // ends when the command has begun
					for {
						if b, err := os.ReadFile(filepath.Join(w.root, "pid")); err == nil && strings.HasSuffix(string(b), "\n") {
							cancel()
							return
						}
						runtime.Gosched()
					}
				}()
			}
			start := time.Now()
			r, err := s.run(ctx, toolCall{Args: json.RawMessage(args)})
			if err != nil || !strings.Contains(r.Text, tc.want) || r.IsError != tc.isError || time.Since(start) > 10*time.Second {
				t.Errorf("%+v, %v after %s, want %q", r, err, time.Since(start), tc.want)
			}
			if !tc.interrupt && !strings.Contains(r.Text, "\nbegun\n") {
				t.Errorf("what it wrote before is lost: %q", r.Text)
			}
			shellGone(t, filepath.Join(w.root, "pid"))
		})
	}
	d := shellTools(w, os.Environ)[0]
	if shellTime != 60*time.Second || shellGrace != 2*time.Second || !strings.Contains(string(d.Schema), `"maximum":600`) {
		t.Errorf("the limits are not the documented ones: %s, %s, %s", shellTime, shellGrace, d.Schema)
	}
}

// A flood of output neither blocks the command nor fills memory: the start and the end are kept, the middle is counted.
func TestShellOutputBound(t *testing.T) {
	o := &shellOutput{}
	out := o.stream("stdout")
	line := strings.Repeat("x", 99) + "\n"
	total := 0
	for range 3 * shellMaxOutput / len(line) {
		n, err := out.Write([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	fmt.Fprint(out, "the end")
	r := o.result(shellEnd{status: "exit status 0"})
	if len(r.Text) > shellMaxOutput+1000 || !strings.HasSuffix(r.Text, "\nthe end\n") {
		t.Errorf("%d bytes kept, end %q", len(r.Text), r.Text[len(r.Text)-20:])
	}
	kept := strings.Count(r.Text, line) * len(line)
	if want := fmt.Sprintf("[%d bytes of output left out here]", total-kept); !strings.Contains(r.Text, want) {
		t.Errorf("the text does not say %q", want)
	}
	o = &shellOutput{}
	if _, err := o.stream("stderr").Write(make([]byte, 5*shellMaxLine)); err != nil || len(o.partial["stderr"]) >= shellMaxLine {
		t.Errorf("a line without an end is kept whole: %d bytes, %v", len(o.partial["stderr"]), err)
	}
}

// A long output spills to a record through the whole door.
func TestShellSpills(t *testing.T) {
	w, _ := workspaceDirs(t)
	box := shellBox(t, modeAllow, w)
	r := toolsRun(t, box, "shell_run", `{"command":"i=0; while [ $i -lt 2000 ]; do echo this line is forty-odd characters long $i; i=$((i+1)); done"}`)
	if r.Record == "" || !strings.HasPrefix(r.Text, "exit status 0 after") || len(r.Text) > toolHeadMax+200 {
		t.Errorf("record %q, %d bytes: %.100q", r.Record, len(r.Text), r.Text)
	}
}
