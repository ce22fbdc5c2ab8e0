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
	"testing"
	"time"
)

// procRig is the tools over a manager that is closed at the end.
type procRig struct {
	*toolsBox
	m *procManager
	w workspace
}

func newProcRig(t *testing.T, mode approvalMode) *procRig {
	t.Helper()
	w, _ := workspaceDirs(t)
	m := newProcManager(time.Now)
	t.Cleanup(func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
	mask := newRedactor([]namedSecret{{Name: "TOKEN", Value: "hush-hush-1"}}).text
	return &procRig{newToolsBox(t, mode, nil, procTools(m, w, os.Environ, runtime.GOOS, mask)...), m, w}
}

// procDoc is what the structured results hold.
type procDoc struct {
	procInfo
	Output             []shellPart
	From, Cursor, More int64
	Lost               int64
	Found              *bool
	Sent               int
	Closed             bool
	Processes          []procInfo
}

func (r *procRig) call(t *testing.T, name, args string) (toolResult, procDoc) {
	t.Helper()
	res := toolsRun(t, r.toolsBox, name, args)
	var doc procDoc
	if res.Structured == nil {
		return res, doc
	}
	for _, tl := range r.natives() {
		if tl.Name == name {
			schema, err := compileSchema(tl.Output)
			if err = errors.Join(err, schema.validate(res.Structured), json.Unmarshal(res.Structured, &doc)); err != nil {
				t.Errorf("%s %s: %s: %v", name, args, res.Structured, err)
			}
		}
	}
	return res, doc
}

// start starts a command that is to be running afterwards.
func (r *procRig) start(t *testing.T, command string) string {
	t.Helper()
	res, doc := r.call(t, "proc_start", fmt.Sprintf(`{"command":%q}`, command))
	if res.IsError || doc.State != procRunning {
		t.Fatalf("start %s: %+v", command, res)
	}
	return doc.ID
}

func (d procDoc) text() string {
	var b strings.Builder
	for _, p := range d.Output {
		b.WriteString(p.Text)
	}
	return b.String()
}

// A command is started, spoken with, read on from a cursor, and ends.
func TestProcTalk(t *testing.T) {
	t.Parallel()
	r := newProcRig(t, modeAllow)
	res, doc := r.call(t, "proc_start", `{"command":"echo ready; echo fault >&2; while read -r l; do echo \"got $l in $PWD $X\"; done; exit 3","cwd":"sub","env":{"X":"y"},"name":"echoer"}`)
	if res.IsError || doc.ID != "p-1" || doc.State != procRunning || doc.Name != "echoer" || doc.Cwd != "sub" || doc.Pid <= 0 || doc.Started.IsZero() || !strings.Contains(res.Text, "p-1 (echoer) running for") {
		t.Fatalf("start: %+v", res)
	}
	_, doc = r.call(t, "proc_read", `{"id":"p-1","wait_s":60,"until":"fault\n"}`)
	if doc.Found == nil || !*doc.Found || doc.text() != "ready\nfault\n" && doc.text() != "fault\nready\n" || len(doc.Output) != 2 {
		t.Errorf("first read: %+v", doc)
	}
	cursor := doc.Cursor
	if res, doc := r.call(t, "proc_write", `{"id":"p-1","text":"one\ntwo\n"}`); res.IsError || doc.Sent != 8 || doc.Closed {
		t.Errorf("write: %+v", res)
	}
	want := fmt.Sprintf("got one in %s y\ngot two in %s y\n", filepath.Join(r.w.root, "sub"), filepath.Join(r.w.root, "sub"))
	if _, doc = r.call(t, "proc_read", fmt.Sprintf(`{"id":"p-1","cursor":%d,"wait_s":60,"until":"two in"}`, cursor)); !strings.HasPrefix(want, doc.text()) || doc.From != cursor {
		t.Errorf("second read: %+v, want %q", doc, want)
	}
	if res, doc := r.call(t, "proc_write", `{"id":"p-1","close":true}`); res.IsError || !doc.Closed {
		t.Errorf("close: %+v", res)
	}
	if res, doc = r.call(t, "proc_read", fmt.Sprintf(`{"id":"p-1","cursor":%d,"wait_s":60,"until":"never said"}`, cursor)); doc.text() != want || doc.State != procExited || doc.Exit == nil || *doc.Exit != 3 || *doc.Found || !strings.Contains(res.Text, "exited after") || !strings.Contains(res.Text, "exit status 3") {
		t.Errorf("at the end: %+v", res)
	}
	if res, doc := r.call(t, "proc_read", fmt.Sprintf(`{"id":"p-1","cursor":%d,"wait_s":60}`, doc.Cursor)); len(doc.Output) != 0 || !strings.Contains(res.Text, "[no output from here on]") {
		t.Errorf("behind the end: %+v", res)
	}
	if res, _ := r.call(t, "proc_write", `{"id":"p-1","text":"x"}`); !res.IsError || !strings.Contains(res.Text, "has ended: exit status 3") {
		t.Errorf("write to an ended one: %+v", res)
	}
	if res, doc := r.call(t, "proc_list", `{}`); len(doc.Processes) != 1 || doc.Processes[0].State != procExited || !strings.Contains(res.Text, "p-1 (echoer) exited after") {
		t.Errorf("list: %+v", res)
	}
}

func TestProcStartAtOnce(t *testing.T) {
	t.Parallel()
	r := newProcRig(t, modeAllow)
	res, doc := r.call(t, "proc_start", `{"command":"echo no luck >&2; exit 7"}`)
	if doc.State == procRunning { // a slow machine
		if res, doc = r.call(t, "proc_read", `{"id":"p-1","wait_s":60,"until":"never"}`); doc.Exit == nil || *doc.Exit != 7 {
			t.Fatalf("%+v", res)
		}
	} else if !res.IsError || !strings.Contains(res.Text, "stderr| no luck\n") || *doc.Exit != 7 {
		t.Errorf("a command that fails at once: %+v", res)
	}
}

// A command line of its own ends with what it started, and says so.
func TestProcStartByCommand(t *testing.T) {
	t.Parallel()
	c := newCLIRig(t).tai("tools", "call", "proc_start", "command=cat")
	if c.ok(); !strings.Contains(c.err, "note: p-1 ends with this command") {
		t.Errorf("told %q", c.err)
	}
}

func TestProcArguments(t *testing.T) {
	t.Parallel()
	r := newProcRig(t, modeAllow)
	id := r.start(t, "cat")
	for _, tc := range []struct{ tool, args, want string }{
		{"proc_start", `{}`, "command"},
		{"proc_start", `{"command":""}`, "command"},
		{"proc_start", `{"command":"a\u0000b","cwd":"sub"}`, "refused by policy"}, // it cannot be split
		{"proc_start", `{"command":"cat","cwd":"missing"}`, "cwd \"missing\": there is no such folder"},
		{"proc_start", `{"command":"cat","cwd":"link-dir"}`, "refused by policy"}, // ROO-02
		{"proc_start", `{"command":"cat","env":{"A=B":"x"}}`, "env:"},
		{"proc_start", `{"command":"cat","env":["x"]}`, "env"},
		{"proc_start", fmt.Sprintf(`{"command":"cat","name":%q}`, strings.Repeat("n", procMaxName+1)), "name"},
		{"proc_start", `{"command":"cat","timeout_s":5}`, "timeout_s"},
		{"proc_read", `{}`, "id"},
		{"proc_read", `{"id":"p-99"}`, `no background command has the id "p-99"`},
		{"proc_read", `{"id":"p-1","cursor":-1}`, "cursor"},
		{"proc_read", `{"id":"p-1","cursor":1}`, "behind the 0 bytes"},
		{"proc_read", `{"id":"p-1","wait_s":301}`, "wait_s"},
		{"proc_read", `{"id":"p-1","until":""}`, "until"},
		{"proc_read", `{"id":"p-1","limit":0}`, "limit"},
		{"proc_read", fmt.Sprintf(`{"id":"p-1","limit":%d}`, procMaxRead+1), "limit"},
		{"proc_write", `{"id":"p-1"}`, "give text, or close"},
		{"proc_write", `{"id":"p-99","text":"x"}`, "p-99"},
		{"proc_write", `{"id":"p-1","text":5}`, "text"},
		{"proc_list", `{"id":"p-1"}`, "id"},
		{"proc_stop", `{}`, "id"},
		{"proc_stop", `{"id":"p-99"}`, "p-99"},
		{"proc_stop", `{"id":"p-1","grace_s":61}`, "grace_s"},
		{"proc_stop", `{"id":"p-1","grace_s":-1}`, "grace_s"},
	} {
		if res := toolsRun(t, r.toolsBox, tc.tool, tc.args); !res.IsError || !strings.Contains(res.Text, tc.want) {
			t.Errorf("%s %s: %v %q, want %q", tc.tool, tc.args, res.IsError, res.Text, tc.want)
		}
	}
	if _, doc := r.call(t, "proc_list", `{}`); len(doc.Processes) != 1 || doc.Processes[0].ID != id || doc.Processes[0].State != procRunning {
		t.Errorf("a refused call left something: %+v", doc.Processes)
	}
	if res, doc := r.call(t, "proc_write", `{"id":"p-1","close":true}`); res.IsError || !doc.Closed {
		t.Fatalf("close: %+v", res)
	}
	if res, _ := r.call(t, "proc_write", `{"id":"p-1","text":"x"}`); !res.IsError || !strings.Contains(res.Text, "was closed before") && !strings.Contains(res.Text, "has ended") {
		t.Errorf("write behind a close: %+v", res)
	}
}

// Background commands are judged as those of shell_run are.
func TestProcAsks(t *testing.T) {
	t.Parallel()
	r := newProcRig(t, modePrompt)
	for _, tc := range []struct {
		tool, args, origin string
		runs               bool
	}{
		{"proc_start", `{"command":"tail -n 1 in.txt"}`, "agent", true},
		{"proc_start", `{"command":"tail -n 1 in.txt"}`, "mcp", false},
		{"proc_start", `{"command":"tail -n 1 link-file"}`, "agent", false},
		{"proc_start", `{"command":"tail -n 1 in.txt","env":{"LD_PRELOAD":"./x.so"}}`, "agent", false},
		{"proc_start", `{"command":"touch made"}`, "agent", false},
		{"proc_start", `{"command":"cat 'x"}`, "agent", false}, // SHL-11
		{"proc_list", `{}`, "mcp", true},
		{"proc_read", `{"id":"p-1"}`, "mcp", true},
		{"proc_write", `{"id":"p-1","text":"x"}`, "agent", false},
		{"proc_stop", `{"id":"p-1"}`, "agent", false},
	} {
		res, err := r.dispatch(t.Context(), toolCall{Name: tc.tool, Args: json.RawMessage(tc.args), Origin: tc.origin})
		if err != nil || (res.Rule == "") != tc.runs {
			t.Errorf("%s %s from %s: %+v, %v, want run %v", tc.tool, tc.args, tc.origin, res, err, tc.runs)
		}
	}
	if existsAt(filepath.Join(r.w.root, "made")) {
		t.Error("a refused command ran")
	}
	asked := &fakePrompter{keys: []string{choiceNo}}
	r.policy = newPolicy(policyConfig{Mode: modePrompt, Prompter: asked})
	toolsRun(t, r.toolsBox, "proc_start", fmt.Sprintf(`{"command":%q}`, strings.Repeat("touch made\n", 50)))
	if len(asked.asked) != 1 || strings.Count(renderConsent(asked.asked[0], 80), "touch made") != 50 {
		t.Errorf("the command is not shown whole: %+v", asked.asked)
	}
}

// Reading: the newest part without a cursor, pieces with one, what is lost is said.
func TestProcReadLimits(t *testing.T) {
	t.Parallel()
	r := newProcRig(t, modeAllow)
	id := r.start(t, `i=0; while [ $i -lt 9000 ]; do echo "line $i of the output that is longer than what is kept, as it has so many bytes"; i=$((i+1)); done; echo the end; cat`)
	res, doc := r.call(t, "proc_read", fmt.Sprintf(`{"id":%q,"wait_s":120,"until":"the end\n"}`, id))
	if !*doc.Found || int64(len(doc.text())) != procReadLimit || !strings.HasSuffix(doc.text(), "the end\n") || !strings.Contains(res.Text, "bytes before; cursor ") || doc.More != 0 {
		t.Fatalf("the newest part: %d bytes, %.300q", len(doc.text()), res.Text)
	}
	end := doc.Cursor
	res, doc = r.call(t, "proc_read", fmt.Sprintf(`{"id":%q,"cursor":0,"limit":1000}`, id))
	if doc.Lost == 0 || !strings.Contains(res.Text, fmt.Sprintf("[%d bytes before are no longer kept]", doc.Lost)) || doc.Lost != doc.From || doc.Cursor-doc.From != 1000 || doc.More != end-doc.Cursor {
		t.Errorf("a lost part: %+v", doc.Lost)
	}
	var all strings.Builder
	for at := end - 5000; at < end; at = doc.Cursor {
		if _, doc = r.call(t, "proc_read", fmt.Sprintf(`{"id":%q,"cursor":%d,"limit":777}`, id, at)); doc.Cursor <= at {
			t.Fatalf("no way on from %d", at)
		}
		all.WriteString(doc.text())
	}
	if got := all.String(); len(got) != 5000 || !strings.HasSuffix(got, "\nthe end\n") || strings.Count(got, "line ") < 50 {
		t.Errorf("in pieces: %d bytes, %q", len(got), got[max(0, len(got)-100):])
	}
}

// A read that waits ends when its time is over, and when it is interrupted.
func TestProcReadWaits(t *testing.T) {
	t.Parallel()
	r := newProcRig(t, modeAllow)
	p, ok := r.m.find(r.start(t, "cat"))
	if !ok {
		t.Fatal("not there")
	}
	if found, err := p.await(t.Context(), 0, "x", time.Millisecond); found || err != nil {
		t.Errorf("time over: %v, %v", found, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.await(ctx, 0, "", time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := p.write(t.Context(), "abc", time.Minute); err != nil { // the text comes in two writes
		t.Fatal(err)
	}
	if _, err := p.await(t.Context(), 0, "c", time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := p.write(t.Context(), "def", time.Minute); err != nil {
		t.Fatal(err)
	}
	if found, err := p.await(t.Context(), 0, "bcde", time.Minute); !found || err != nil {
		t.Errorf("a text across two writes: %v, %v", found, err)
	}
}

// A secret is masked however a read is cut.
func TestProcReadMasks(t *testing.T) {
	t.Parallel()
	r := newProcRig(t, modeAllow)
	id := r.start(t, "echo before; echo the key is hush-hush-1 now; echo after; cat")
	if _, doc := r.call(t, "proc_read", fmt.Sprintf(`{"id":%q,"wait_s":60,"until":"after\n"}`, id)); !*doc.Found {
		t.Fatal("nothing came")
	}
	for at := range 40 {
		res := toolsRun(t, r.toolsBox, "proc_read", fmt.Sprintf(`{"id":%q,"cursor":%d,"limit":5}`, id, at))
		for _, piece := range []string{"hush", "ush-h", "h-hus", "sh-1 "} {
			if strings.Contains(res.Text, piece) {
				t.Errorf("cursor %d shows a piece of the secret: %q", at, res.Text)
			}
		}
	}
}

// A process that does not read its input holds up nobody.
func TestProcWriteFull(t *testing.T) {
	t.Parallel()
	r := newProcRig(t, modeAllow)
	p, ok := r.m.find(r.start(t, "sleep 300"))
	if !ok {
		t.Fatal("not there")
	}
	n, err := p.write(t.Context(), strings.Repeat("x", 1<<20), 20*time.Millisecond)
	if !errors.Is(err, os.ErrDeadlineExceeded) || n <= 0 || n >= 1<<20 {
		t.Errorf("a full pipe: %d, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.write(ctx, "x", time.Hour); err == nil {
		t.Error("an interrupted write went on")
	}
}

// Stopping ends the whole group, politely first; what has ended is no error.
func TestProcStop(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		command, grace, want string
	}{
		"polite":       {`trap 'echo bye; exit 4' TERM; sleep 300 & echo $! >pid; echo begun; wait`, "60", "exit status 4"},
		"ignores TERM": {`trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $! >pid; echo begun; while :; do wait; done`, "0", "signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newProcRig(t, modeAllow)
			id := r.start(t, tc.command)
			if _, doc := r.call(t, "proc_read", fmt.Sprintf(`{"id":%q,"wait_s":60,"until":"begun"}`, id)); !*doc.Found {
				t.Fatal("it does not run")
			}
			res, doc := r.call(t, "proc_stop", fmt.Sprintf(`{"id":%q,"grace_s":%s}`, id, tc.grace))
			if res.IsError || doc.State != procStopped || doc.Status != tc.want {
				t.Errorf("stop: %+v", res)
			}
			shellGone(t, filepath.Join(r.w.root, "pid"))
			if res, again := r.call(t, "proc_stop", fmt.Sprintf(`{"id":%q}`, id)); res.IsError || again.State != procStopped || again.Ran != doc.Ran {
				t.Errorf("stop again: %+v", res)
			}
		})
	}
}

// What a command leaves running ends with it.
func TestProcLeftOver(t *testing.T) {
	t.Parallel()
	r := newProcRig(t, modeDanger)
	res, doc := r.call(t, "proc_start", `{"command":"sleep 300 >/dev/null 2>&1 & echo $! >pid; echo left"}`)
	if doc.State == procRunning {
		res, doc = r.call(t, "proc_read", `{"id":"p-1","wait_s":60,"until":"never"}`)
	}
	if doc.State != procExited || *doc.Exit != 0 {
		t.Fatalf("%+v", res)
	}
	shellGone(t, filepath.Join(r.w.root, "pid"))
}

// Only so many run at a time, only so many ended ones are remembered, and closing ends all.
func TestProcCapAndClose(t *testing.T) {
	t.Parallel()
	r := newProcRig(t, modeAllow)
	for i := range procMax {
		r.start(t, fmt.Sprintf("echo $$ >pid%d; echo begun; exec sleep 300", i))
	}
	if res, _ := r.call(t, "proc_start", `{"command":"touch made"}`); !res.IsError || !strings.Contains(res.Text, "16 background commands are running") || res.Hint == "" {
		t.Errorf("one too many: %+v", res)
	}
	for i := range procMax {
		if _, doc := r.call(t, "proc_read", fmt.Sprintf(`{"id":"p-%d","wait_s":60}`, i+1)); doc.text() != "begun\n" {
			t.Fatalf("p-%d does not run", i+1)
		}
	}
	if err := r.m.close(); err != nil {
		t.Error(err)
	}
	for i := range procMax {
		shellGone(t, filepath.Join(r.w.root, "pid"+strconv.Itoa(i)))
	}
	if res, _ := r.call(t, "proc_start", `{"command":"touch made"}`); !res.IsError || !strings.Contains(res.Text, "tai is ending") || existsAt(filepath.Join(r.w.root, "made")) {
		t.Errorf("after the end: %+v", res)
	}

	m := newProcManager(time.Now)
	for range procKept + procMax {
		p, err := m.start(procSpec{Argv: []string{"/bin/sh", "-c", ":"}, Dir: r.w.root})
		if err != nil {
			t.Fatal(err)
		}
		<-p.done
	}
	list := m.all()
	if len(list) != procKept+1 || list[len(list)-1].ID != fmt.Sprintf("p-%d", procKept+procMax) {
		t.Errorf("%d are remembered, the last is %s", len(list), list[len(list)-1].ID)
	}
}

// fakeAgents is background work of another kind.
type fakeAgents struct{ stopped string }

func (f *fakeAgents) background() []procInfo {
	return []procInfo{{ID: "a-1", What: "agent", Command: "look it up", State: procRunning}}
}

func (f *fakeAgents) stopBackground(_ context.Context, id string, grace time.Duration) (procInfo, bool, error) {
	if id != "a-1" {
		return procInfo{}, false, nil
	}
	f.stopped = grace.String()
	return procInfo{ID: id, What: "agent", Command: "look it up", State: procStopped, Status: "stopped"}, true, nil
}

func TestProcSources(t *testing.T) {
	t.Parallel()
	r := newProcRig(t, modeAllow)
	agents := &fakeAgents{}
	r.m.join(agents)
	if res, doc := r.call(t, "proc_list", `{}`); len(doc.Processes) != 1 || doc.Processes[0].What != "agent" || !strings.Contains(res.Text, "a-1 running") {
		t.Errorf("list: %+v", res)
	}
	if res, doc := r.call(t, "proc_stop", `{"id":"a-1"}`); res.IsError || doc.State != procStopped || agents.stopped != "5s" {
		t.Errorf("stop: %+v, %s", res, agents.stopped)
	}
	if res, _ := r.call(t, "proc_stop", `{"id":"a-2"}`); !res.IsError {
		t.Errorf("an unknown id: %+v", res)
	}
}
