// This file holds shell_run: one command line in a process group of its own, bounded in time and output. There is no shell that lives on
// between calls; what a command leaves running ends with it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	shellTime       = 60 * time.Second // one command unless the call says otherwise
	shellMaxTime    = 600              // seconds, the most it may ask for
	shellGrace      = 2 * time.Second  // between asking the group to end and killing it, and for output held open by a child
	shellMaxOutput  = 1 << 20          // bytes of output kept, half from the start and half from the end
	shellMaxLine    = 64 << 10         // bytes after which a line without an end is passed on in parts
	shellMaxCommand = 100_000          // bytes of a command line; Linux takes 128 KiB for one argument
	shellMaxStdin   = 1 << 20          // bytes of stdin
	shellMaxGlob    = 10_000           // names that one pattern may stand for and still run unasked
	shellMark       = "stderr| "       // in front of each line that came on stderr
)

// shellTools gives shell_run over w. environ gives the variables that commands start with.
func shellTools(w workspace, environ func() []string) []tool {
	s := newShellRunner(w, environ, runtime.GOOS)
	return []tool{{
		Name: "shell_run", Family: "shell", Core: true,
		Description: "Run a command line in a shell (tests, builds, scripts), bounded in time and output. Nothing lives on between calls: pass cwd and env each time; background processes end with the command.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["command"],"properties":{
"command":{"type":"string","minLength":1,"maxLength":%d,"description":"Command line for /bin/sh (cmd on Windows)."},
"cwd":{"type":"string","description":"Folder to run in (default: the workspace root)."},
"env":{"type":"object","additionalProperties":{"type":"string"},"description":"Variables to set on top of the inherited ones."},
"stdin":{"type":"string","maxLength":%d,"description":"Text for standard input (default: none)."},
"timeout_s":{"type":"integer","minimum":1,"maximum":%d,"description":"Seconds after which the command is ended (default %d)."}}}`,
			shellMaxCommand, shellMaxStdin, shellMaxTime, int(shellTime/time.Second))),
		Output: shellResultSchema(),
		Hints:  toolHints{Destructive: true},
		judge:  s.judge,
		run:    s.run,
	}}
}

// shellResultSchema describes the result of one command.
func shellResultSchema() json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{
"exit":{"type":"integer","description":"Exit status, -1 if a signal ended the command."},
"status":{"type":"string","description":"How the command ended, in words."},
"timed_out":{"type":"boolean","description":"It was ended at the time limit."},
"duration_ms":{"type":"integer","description":"How long it ran."},
"output":{"type":"array","description":"Output in the order it came.","items":{"type":"object","properties":{"stream":{"type":"string"},"text":{"type":"string"}}}},
"left_out":{"type":"integer","description":"Bytes of output left out in the middle."},` + toolRecordSchema + `}}`)
}

type shellRunner struct {
	workspace workspace
	environ   func() []string
	goos      string
	grace     time.Duration
	unit      time.Duration // of timeout_s
}

//go:noinline for size: it is called in many places
func newShellRunner(w workspace, environ func() []string, goos string) shellRunner {
	return shellRunner{workspace: w, environ: environ, goos: goos, grace: shellGrace, unit: time.Second}
}

type shellArgs struct {
	Command string
	Cwd     string
	Env     map[string]string
	Stdin   *string
	Timeout int `json:"timeout_s"`
}

// judge lets reading commands run unasked where tai itself chose the surroundings: variables can turn any program into another one, and a
// client of tai mcp serve is nobody's words.
func (s shellRunner) judge(c toolCall) policyRequest {
	req := policyRequest{Destructive: true}
	var args shellArgs
	if json.Unmarshal(c.Args, &args) != nil {
		return req
	}
	req.Command = args.Command // what cannot be split the policy finds out itself (SHL-11)
	req.Dir = s.folder(args.Cwd)
	verdict := classifyShell(args.Command, shellScope{Root: s.workspace.root, Dir: req.Dir, Trusted: s.trusted})
	req.Destructive = !verdict.Reading || len(args.Env) > 0 || c.Origin == originMCP || s.goos == "windows"
	if !req.Destructive {
		if secret := shellReadsBelow(verdict.Words, req.Dir, args.Cwd); secret != "" {
			req.Destructive = true
			req.Danger = append(req.Danger, "it is not known to only read, because of "+visibleLine(secret))
		}
	}
	words := verdict.Words
	if !verdict.Reading {
		words = [][]string{append([]string{""}, verdict.Paths...)}
	}
	if out := s.leavesRoot(words, req.Dir, verdict.Reading, true); out != "" && verdict.Outside == "" {
		req.Outside = true
		req.Danger = append(req.Danger, "a link leads outside the workspace root, or to credentials: "+visibleLine(out))
	}
	return judgePlace(s.workspace, args.Cwd, req)
}

// folder is where a command with that cwd starts.
func (s shellRunner) folder(cwd string) string {
	if filepath.IsAbs(cwd) {
		return filepath.Clean(cwd)
	}
	return filepath.Join(s.workspace.root, cwd)
}

// leavesRoot gives the first word that names something outside the root by way of a symbolic link, which the classifier cannot see (ROO-02);
// "" if there is none. In a reading command a pattern that cannot be followed counts as such a word; globs says that a shell expands them.
func (s shellRunner) leavesRoot(commands [][]string, cwd string, reading, globs bool) string {
	for _, words := range commands {
		for _, word := range words[min(1, len(words)):] {
			if strings.HasPrefix(word, "-") {
				_, word, _ = strings.Cut(word, "=")
			}
			path := word
			if !filepath.IsAbs(path) {
				path = filepath.Join(cwd, path)
			}
			paths := []string{path}
			if strings.Contains(word, "..") {
				paths = append(paths, walkedPath(cwd, word))
			}
			if globs && strings.ContainsAny(word, "*?[") {
				found, err := filepath.Glob(path)
				if err != nil && reading || len(found) > shellMaxGlob {
					return word
				}
				paths = append(paths, found...)
			}
			for _, path := range paths {
				p, err := s.workspace.locate(path)
				if err == nil && !shellDevice(path) && (p.Outside || reading && p.Abs != path && credentialPath(p.Rel)) {
					return word
				}
			}
		}
	}
	return ""
}

// walkedPath gives where a path leads from dir as the system walks it: a .. behind a link is above what the link leads to.
func walkedPath(dir, path string) string {
	at := dir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		at = real
	}
	if filepath.IsAbs(path) {
		at = filepath.VolumeName(path) + string(filepath.Separator)
	}
	for name := range strings.SplitSeq(filepath.ToSlash(path[len(filepath.VolumeName(path)):]), "/") {
		if at = filepath.Join(at, name); name == "" || name == ".." {
			continue
		}
		if real, err := filepath.EvalSymlinks(at); err == nil {
			at = real
		}
	}
	return at
}

// trusted reports whether PATH finds program in a folder that neither the workspace nor everybody can write to (SHL-12). A name that is not
// found at all runs nothing, unless it is built into the shell.
func (s shellRunner) trusted(program string) bool {
	file, ok := s.find(program)
	return ok || file == ""
}

// find gives the file that PATH leads to for program, "" if there is none, and whether it lies in a trusted folder. Windows does not say in a
// folder's mode who may write to it.
func (s shellRunner) find(program string) (file string, trusted bool) {
	env := s.environ()
	for _, dir := range filepath.SplitList(envValue(env, "PATH", s.goos)) {
		for _, ext := range executableExts(env, s.goos) {
			file = filepath.Join(dir, program+ext)
			info, err := os.Stat(file)
			if err != nil || info.IsDir() {
				continue
			}
			p, err := s.workspace.locate(dir)
			if err != nil || !filepath.IsAbs(dir) || !p.Outside {
				return file, false
			}
			folder, err := os.Stat(dir)
			return file, err == nil && (s.goos == "windows" || folder.Mode().Perm()&0o002 == 0)
		}
	}
	return "", false
}

func (s shellRunner) run(ctx context.Context, c toolCall) (toolResult, error) {
	var args shellArgs
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	dir, env, err := s.place(c, args.Command, args.Cwd, args.Env)
	if err != nil {
		return toolResult{}, err
	}
	if !s.judge(c).Destructive {
		env = append(env, gitQuiet()...)
	}
	limit := shellTime
	if args.Timeout > 0 {
		limit = time.Duration(args.Timeout) * s.unit
	}
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	argv := s.argv(args.Command)
	cmd := exec.CommandContext(inner, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir.Abs, env
	if args.Stdin != nil {
		cmd.Stdin = strings.NewReader(*args.Stdin)
	}
	return s.outcome(ctx, inner, cmd, limit)
}

// outcome runs cmd, which belongs to inner, and gives its result.
func (s shellRunner) outcome(ctx, inner context.Context, cmd *exec.Cmd, limit time.Duration) (toolResult, error) {
	out := &shellOutput{}
	end, err := s.finish(ctx, inner, cmd, out)
	if err != nil {
		return toolResult{}, err
	}
	if end.timedOut {
		end.status += fmt.Sprintf(", ended at its time limit of %s", limit)
	}
	return out.result(end), nil
}

// place checks what a command is to run with: its text, its folder and the call's variables.
func (s shellRunner) place(c toolCall, command, cwd string, extra map[string]string) (dir place, env []string, err error) {
	dir, err = s.workspace.locate(cwd)
	if err == nil {
		err = dir.check(c.outside)
	}
	if err == nil {
		err = standsAsFolder(dir.Abs)
	}
	if err != nil {
		return place{}, nil, errorf("cwd %s: %w", quoteClip(cwd), err)
	}
	if env, err = s.env(extra); err == nil && strings.ContainsRune(command, 0) {
		err = newError("command holds a NUL byte")
	}
	return dir, env, err
}

// standsAsFolder finds out why no command could start in a folder; the system names only the program that did not start.
func standsAsFolder(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newError("there is no such folder")
	case err != nil:
		return bareError(err)
	case !info.IsDir():
		return newError("is no folder")
	}
	return nil
}

// argv gives the words that run a command line.
//
//go:noinline for size: it is called in many places
func (s shellRunner) argv(command string) []string {
	if s.goos == "windows" {
		return []string{"cmd", "/c", command}
	}
	return []string{"/bin/sh", "-c", command}
}

// finish runs cmd, which belongs to inner, and says how it ended. An error means that it did not start.
func (s shellRunner) finish(ctx, inner context.Context, cmd *exec.Cmd, out *shellOutput) (shellEnd, error) {
	start := time.Now()
	err := s.wait(cmd, out)
	took := time.Since(start)
	if cmd.ProcessState == nil {
		return shellEnd{}, errorf("start the command: %w", err)
	}
	end := shellEnd{exit: cmd.ProcessState.ExitCode(), status: cmd.ProcessState.String(), took: took}
	switch {
	case ctx.Err() != nil:
		end.status += ", interrupted"
		end.failed = true
	case inner.Err() != nil && err != nil:
		end.failed, end.timedOut = true, true
	case errors.Is(err, exec.ErrWaitDelay):
		end.status += ", and a process it left running was ended"
	}
	return end, nil
}

// wait runs cmd with its output collected in out.
func (s shellRunner) wait(cmd *exec.Cmd, out *shellOutput) error {
	cmd.Stdout, cmd.Stderr = out.stream("stdout"), out.stream("stderr")
	return s.waitGroup(cmd)
}

// waitGroup runs cmd in a group of its own and ends the whole group before it returns. The thread that starts the child stays locked to it
// until then, which is what ownGroup asks for.
func (s shellRunner) waitGroup(cmd *exec.Cmd) error { return s.waitUnder(cmd, guardGroup) }

// waitAlone is waitGroup for a program that starts no other and is soon done: it has no guard, which is a process too.
func (s shellRunner) waitAlone(cmd *exec.Cmd) error {
	return s.waitUnder(cmd, func(int) (func(), error) { return func() {}, nil })
}

func (s shellRunner) waitUnder(cmd *exec.Cmd, guard func(pid int) (stop func(), err error)) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ownGroup(cmd)
	cmd.WaitDelay = s.grace
	cmd.Cancel = func() error { return terminate(cmd.Process.Pid) }
	if err := cmd.Start(); err != nil {
		return err
	}
	unguard, guardErr := guard(cmd.Process.Pid)
	if guardErr != nil {
		unguard = func() {} // the child itself still ends with tai
	}
	err := cmd.Wait()
	err = joinErrors(err, killGroup(cmd.Process.Pid))
	unguard()
	return err
}

// env lays the call's variables over the inherited ones. Programs are told that nobody pages or answers.
func (s shellRunner) env(extra map[string]string) ([]string, error) {
	env := slices.Concat(s.environ(), []string{"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "TERM=dumb"})
	names := make([]string, 0, len(extra))
	for name, value := range extra {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return nil, errorf("env: %q is no name of a variable, or its value holds a NUL byte", clip(visibleLine(name), 100))
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		env = append(env, name+"="+extra[name])
	}
	return env, nil
}

// shellOutput collects what both streams say, line by line in the order the lines were complete.
type shellOutput struct {
	mu      sync.Mutex
	head    []shellPart
	tail    []shellPart
	kept    [2]int // bytes in head and tail
	leftOut int64
	partial map[string][]byte
}

type shellPart struct {
	Stream string `json:"stream"`
	Text   string `json:"text"`
}

type shellStream struct {
	out  *shellOutput
	name string
}

func (o *shellOutput) stream(name string) *shellStream { return &shellStream{o, name} }

// Write never fails and never waits for a reader, so that a command cannot block on its output.
func (w *shellStream) Write(b []byte) (int, error) {
	o := w.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.partial == nil {
		o.partial = map[string][]byte{}
	}
	buf := append(o.partial[w.name], b...)
	for {
		i := bytes.IndexByte(buf, '\n') + 1
		if i == 0 && len(buf) >= shellMaxLine {
			i = shellMaxLine
		}
		if i == 0 {
			break
		}
		o.add(shellPart{w.name, string(buf[:i])})
		buf = buf[i:]
	}
	o.partial[w.name] = slices.Clone(buf)
	return len(b), nil
}

// add keeps a part in the first half, then in the second, whose oldest parts make room.
func (o *shellOutput) add(p shellPart) {
	if len(o.tail) == 0 && o.kept[0]+len(p.Text) <= shellMaxOutput/2 {
		o.head, o.kept[0] = append(o.head, p), o.kept[0]+len(p.Text)
		return
	}
	o.tail, o.kept[1] = append(o.tail, p), o.kept[1]+len(p.Text)
	for o.kept[1] > shellMaxOutput/2 {
		n := len(o.tail[0].Text)
		o.leftOut, o.kept[1] = o.leftOut+int64(n), o.kept[1]-n
		o.tail = o.tail[1:]
	}
}

// flush keeps the last lines that have no end; o.mu is held.
func (o *shellOutput) flush() {
	for _, name := range []string{"stdout", "stderr"} {
		if rest := o.partial[name]; len(rest) > 0 {
			o.add(shellPart{name, string(rest)})
		}
	}
	o.partial = nil
}

// all gives what was kept of a command that has ended.
func (o *shellOutput) all() []shellPart {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
	return slices.Concat(o.head, o.tail)
}

// shellEnd is how a command ended.
type shellEnd struct {
	exit             int
	status           string
	took             time.Duration
	timedOut, failed bool
}

// result says first how the command ended, then what it wrote; each line of stderr carries shellMark.
func (o *shellOutput) result(end shellEnd) toolResult {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
	var b textBuilder
	fmt.Fprintf(&b, "%s after %s", end.status, end.took.Round(time.Millisecond))
	if len(o.head) == 0 {
		b.WriteString(", no output")
	}
	b.WriteByte('\n')
	appendShellText(&b, o.head)
	if o.leftOut > 0 {
		fmt.Fprintf(&b, "[%d bytes of output left out here]\n", o.leftOut)
	}
	appendShellText(&b, o.tail)
	doc := struct {
		Exit     int         `json:"exit"`
		Status   string      `json:"status"`
		TimedOut bool        `json:"timed_out"`
		Took     int64       `json:"duration_ms"`
		Output   []shellPart `json:"output"`
		LeftOut  int64       `json:"left_out"`
	}{end.exit, end.status, end.timedOut, end.took.Milliseconds(), mergeParts(o.head, o.tail), o.leftOut}
	structured, err := json.Marshal(doc)
	if err != nil {
		panic("tool_shell: marshal of plain strings and numbers: " + err.Error())
	}
	return toolResult{Text: b.String(), Structured: structured, IsError: end.exit != 0 || end.failed}
}

func appendShellText(b *textBuilder, parts []shellPart) {
	for _, p := range parts {
		if p.Stream == "stderr" {
			b.WriteString(shellMark)
		}
		b.WriteString(strings.ToValidUTF8(p.Text, "\uFFFD"))
		if !strings.HasSuffix(p.Text, "\n") {
			b.WriteByte('\n')
		}
	}
}

// mergeParts joins neighbours of one stream.
func mergeParts(lists ...[]shellPart) []shellPart {
	out := []shellPart{}
	var text textBuilder
	stream := ""
	flush := func() {
		if text.Len() > 0 {
			out = append(out, shellPart{stream, strings.ToValidUTF8(text.String(), "\uFFFD")})
		}
		text.Reset()
	}
	for _, list := range lists {
		for _, p := range list {
			if p.Stream != stream {
				flush()
				stream = p.Stream
			}
			text.WriteString(p.Text)
		}
	}
	flush()
	return out
}
