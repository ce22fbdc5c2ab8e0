// This file runs git for the git tools: it finds the repository that holds a path, reads it so that nothing which the repository names is
// executed, and says in plain words what git complains of. It knows no tool and no output format of git's commands.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	gitTime       = 30 * time.Second // one git command that reads
	gitMaxOutput  = 4 << 20          // bytes of its output that are used
	gitMaxFault   = 8 << 10          // bytes of what it complains of
	gitMaxFilters = 100              // settings of a repository that are switched off for reading
	gitLinkMax    = 4 << 10          // bytes of a .git that is a file
)

// gitRunner runs the git of a trusted folder (SHL-12).
type gitRunner struct{ shell shellRunner }

// gitRepo is a repository as one call uses it.
type gitRepo struct {
	top    string   // its work tree
	dir    string   // where git runs: the workspace root if the work tree reaches above it, else top
	gitDir string   // its own folder of data
	off    []string // settings that are switched off for reading, as -c takes them
	hooks  string   // the folder of its hooks
	runs   []string // settings of its own that name programs which a commit would run
}

// gitError is a complaint of git's, or about it. Hint says what to do.
type gitError struct {
	what, hint string
	exit       int
	text       string // what git itself said
}

func (e *gitError) Error() string { return e.what }

// gitResult turns an error into the result of a call.
//
//go:noinline for size: it is called in many places
func gitResult(err error) (toolResult, error) {
	if e, ok := errors.AsType[*gitError](err); ok {
		return toolResult{Hint: e.hint}, err
	}
	return toolResult{}, err
}

// program gives the git that may be run.
func (g gitRunner) program() (string, error) {
	file, trusted := g.shell.find("git")
	switch {
	case file == "":
		return "", &gitError{what: "git is not installed, or not in a folder of PATH", hint: "install git"}
	case !trusted:
		return "", &gitError{what: "the git that PATH finds first is not run: " + visibleLine(file) + " lies in the workspace, or in a folder that everybody can write to", hint: "put the system's folders first in PATH"}
	}
	return file, nil
}

// env gives the variables for git. Those that point it to another repository are left out. For reading it takes no locks, fetches nothing that
// a partial clone lacks, takes paths literally, and speaks English, so that its complaints can be told apart.
func (g gitRunner) env(reading bool) ([]string, error) {
	all, err := g.shell.env(nil)
	if err != nil {
		return nil, err
	}
	env := all[:0]
	for _, kv := range all {
		name, _, _ := strings.Cut(kv, "=")
		upper := strings.ToUpper(name)
		keep := strings.HasPrefix(upper, "GIT_AUTHOR_") || strings.HasPrefix(upper, "GIT_COMMITTER_") || slices.Contains([]string{
			"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_PAGER", "GIT_TERMINAL_PROMPT"}, upper)
		if !strings.HasPrefix(upper, "GIT_") || keep {
			env = append(env, kv)
		}
	}
	env = append(env, "GIT_EDITOR=true")
	if reading {
		env = append(env, "GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=-", "LC_ALL=C", "LANGUAGE=")
	}
	return env, nil
}

// gitReading are the options for every command that reads: no program of the repository's own runs, and no setting changes the output.
func gitReading() []string {
	return []string{"--no-pager", "-c", "core.fsmonitor=", "-c", "core.hooksPath=" + os.DevNull, "-c", "log.showSignature=false", "-c", "safe.bareRepository=explicit",
		"-c", "color.ui=false", "-c", "core.quotePath=false", "-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false", "-c", "diff.relative=false"}
}

// gitDiffing are the options of every command that shows differences, for the same reasons. Submodules are not entered: theirs is another
// repository with settings of its own.
func gitDiffing() []string {
	return []string{"--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty", "--submodule=short", "-O/dev/null"}
}

// read runs one git command that reads and gives its output; cut says that there was more than gitMaxOutput.
//
//go:noinline for size: it is called in many places
func (g gitRunner) read(ctx context.Context, r gitRepo, args ...string) (out []byte, cut bool, err error) {
	return g.readBy(ctx, g.shell.waitGroup, r, args...)
}

// readBy is read with another way to wait for the command.
func (g gitRunner) readBy(ctx context.Context, wait func(*exec.Cmd) error, r gitRepo, args ...string) (out []byte, cut bool, err error) {
	program, err := g.program()
	if err != nil {
		return nil, false, err
	}
	env, err := g.env(true)
	if err != nil {
		return nil, false, err
	}
	inner, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	argv := gitReading()
	for _, setting := range r.off {
		argv = append(argv, "-c", setting)
	}
	cmd := exec.CommandContext(inner, program, append(argv, args...)...)
	cmd.Dir, cmd.Env = r.dir, env
	stdout, stderr := &gitBuffer{max: gitMaxOutput, full: cancel}, &gitBuffer{max: gitMaxFault}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err = wait(cmd)
	switch {
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	case stdout.cut:
		return stdout.Bytes(), true, nil
	case inner.Err() != nil:
		return nil, false, &gitError{what: fmt.Sprintf("git %s took longer than %s and was ended", args[0], gitTime), hint: "name a path"}
	case err != nil && cmd.ProcessState == nil:
		return nil, false, errorf("start git: %w", bareError(err))
	case err != nil:
		return stdout.Bytes(), false, gitFault(args[0], cmd.ProcessState.ExitCode(), stderr.String())
	}
	return stdout.Bytes(), false, nil
}

// gitBuffer keeps the first bytes. When more come, full ends the command.
type gitBuffer struct {
	bytes.Buffer
	max  int
	cut  bool
	full context.CancelFunc // nil: the rest is dropped
}

func (b *gitBuffer) Write(p []byte) (int, error) {
	n := min(len(p), b.max-b.Len())
	b.Buffer.Write(p[:n])
	if n < len(p) {
		b.cut = true
		if b.full != nil {
			b.full()
		}
	}
	return len(p), nil
}

// gitFault says what a complaint means and what to do.
func gitFault(command string, exit int, text string) error {
	e := &gitError{exit: exit, text: text}
	line := ""
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); line == "" || strings.HasPrefix(l, "fatal:") && !strings.HasPrefix(line, "fatal:") {
			line = l
		}
	}
	line = clip(visibleLine(line), 300)
	has := func(s string) bool { return strings.Contains(text, s) }
	switch {
	case has("not a git repository"):
		e.what, e.hint = "this is no git repository, nor is a folder above it", "shell_run with git init makes one"
	case has("dubious ownership"):
		e.what = "git refuses the repository because another user owns it (safe.directory)"
		e.hint = "a person who trusts it runs git config --global --add safe.directory with its folder"
	case has("cannot use bare repository"), has("must be run in a work tree"):
		e.what, e.hint = "this is a bare repository, or the inside of .git: there is no work tree", "shell_run with git --git-dir=… log reads a bare repository"
	case has("bad revision"), has("unknown revision"), has("ambiguous argument"), has("Invalid revision range"), has("bad object"):
		e.what, e.hint = "no such revision: "+line, "git_log shows commits; a branch, a tag, a hash or A..B names them"
	case has("does not have any commits yet"):
		e.what = "the branch has no commits yet"
	case line == "":
		e.what = fmt.Sprintf("git %s ended with status %d", command, exit)
	default:
		e.what = "git " + command + ": " + line
	}
	return e
}

// open finds the repository that holds a place, and the path of that place in it as git is to get it: "." for the folder where git runs. It
// executes nothing that the repository names, and prepares that for what is read from it.
func (g gitRunner) open(ctx context.Context, p place) (r gitRepo, path string, err error) {
	r.dir = existingFolder(p.Abs)
	var config gitConfig
	told := make(chan struct{})
	go func() { // ends with the command, which ctx and its own bound end; it is asked at once, as starting git is most of what a call costs
		defer close(told)
		config = g.config(ctx, r)
	}()
	out, _, err := g.readBy(ctx, g.shell.waitAlone, r, "rev-parse", "--absolute-git-dir", "--show-toplevel", "--git-common-dir")
	<-told
	if err != nil {
		return r, "", err
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != 3 {
		return r, "", &gitError{what: "the repository's path holds a line end"}
	}
	r.gitDir, r.top, r.hooks = filepath.FromSlash(lines[0]), filepath.FromSlash(lines[1]), filepath.Join(filepath.FromSlash(lines[2]), "hooks")
	if !filepath.IsAbs(r.hooks) {
		r.hooks = filepath.Join(r.dir, r.hooks)
	}
	if real, err := filepath.EvalSymlinks(r.top); err == nil {
		r.top = real
	}
	if !insideFolder(r.top, r.dir) {
		return r, "", &gitError{what: "the repository's work tree is elsewhere, at " + visibleLine(r.top) + " (core.worktree), and not the folder it was found in", hint: "git config --unset core.worktree, if that is not wanted"}
	}
	if err := config.read(&r); err != nil {
		return r, "", err
	}
	r.dir = r.top
	if root := g.shell.workspace.root; !p.Outside && insideFolder(r.top, root) {
		r.dir = root
	}
	if path, err = filepath.Rel(r.dir, p.Abs); err != nil {
		return r, "", err
	}
	return r, filepath.ToSlash(path), nil
}

// gitConfig is what git says of its settings.
type gitConfig struct {
	out []byte
	cut bool
	err error
}

//go:noinline for size: it is called in many places
func (g gitRunner) config(ctx context.Context, r gitRepo) (c gitConfig) {
	c.out, c.cut, c.err = g.readBy(ctx, g.shell.waitAlone, r, "config", "--list", "--show-scope", "-z")
	return c
}

// read looks for programs that the repository's own configuration names: filters, which are switched off while it is read, and those that a
// commit runs. The person's own, such as the filters of git-lfs, stay.
func (c gitConfig) read(r *gitRepo) error {
	if c.err != nil {
		return c.err
	}
	cut := c.cut
	fields := strings.Split(string(c.out), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		scope := fields[i]
		key, value, _ := strings.Cut(fields[i+1], "\n")
		own := scope != "system" && scope != "global" && scope != "command"
		last := key[strings.LastIndexByte(key, '.')+1:]
		switch {
		case key == "core.hookspath" && scope != "command":
			if r.hooks = filepath.FromSlash(value); !filepath.IsAbs(r.hooks) {
				r.hooks = filepath.Join(r.top, r.hooks)
			}
		case !own:
		case strings.HasPrefix(key, "gpg.") && last == "program":
			r.runs = append(r.runs, key)
		case strings.HasPrefix(key, "filter."):
			setting := map[string]string{"clean": key + "=", "smudge": key + "=", "process": key + "=", "required": key + "=false"}[last]
			if setting == "" || slices.Contains(r.off, setting) {
				break
			}
			if r.off = append(r.off, setting); last == "clean" || last == "process" {
				r.runs = append(r.runs, key)
			}
			cut = cut || strings.ContainsAny(key, "=\n") // -c would cut it there
		}
	}
	if cut || len(r.off) > gitMaxFilters {
		return &gitError{what: "the repository's configuration names filters that cannot be switched off, so it is not read", hint: "shell_run with git runs them"}
	}
	return nil
}

// commitHooks names the hooks that a commit would run.
func (r gitRepo) commitHooks(goos string) []string {
	var found []string
	for _, name := range []string{"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-index-change", "reference-transaction"} {
		if info, err := os.Stat(filepath.Join(r.hooks, name)); err == nil && !info.IsDir() && (goos == "windows" || info.Mode()&0o111 != 0) {
			found = append(found, name)
		}
	}
	return found
}

// existsAt reports whether something is at path.
func existsAt(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// existingFolder gives the folder at path, or the next one above it that is there.
func existingFolder(path string) string {
	for {
		info, err := os.Stat(path)
		if parent := filepath.Dir(path); (err != nil || !info.IsDir()) && parent != path {
			path = parent
			continue
		}
		return path
	}
}

// insideFolder reports whether path is folder or lies in it. Both are resolved.
func insideFolder(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// strays gives where the repository that holds a place keeps its data, if that is outside the root and does not belong to it; "" if all is well.
// A .git may point anywhere, but a linked work tree and a submodule are known to the repository that they point to.
func (g gitRunner) strays(p place) string {
	w := g.shell.workspace
	if p.Outside {
		return "" // judged already
	}
	for dir, last := existingFolder(p.Abs), ""; dir != last && insideFolder(w.root, dir); last, dir = dir, filepath.Dir(dir) {
		info, err := os.Lstat(filepath.Join(dir, ".git"))
		if err != nil {
			continue
		}
		at, err := w.locate(filepath.Join(dir, ".git"))
		switch {
		case err != nil:
			return filepath.Join(dir, ".git")
		case at.Outside:
			return at.Abs
		case !info.Mode().IsRegular():
			return ""
		}
		text, err := readSmallFile(at)
		target, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir:")
		if err != nil || !ok {
			return "" // git says what is wrong with it
		}
		if target = filepath.FromSlash(strings.TrimSpace(target)); !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		to, err := w.locate(target)
		if err != nil || to.Outside && !pointsBack(to, dir) {
			return target
		}
		return ""
	}
	return ""
}

// pointsBack reports whether the data at a place outside names dir as one of its work trees.
func pointsBack(data place, dir string) bool {
	same := func(path string) bool {
		if path = filepath.FromSlash(strings.TrimSpace(path)); !filepath.IsAbs(path) {
			path = filepath.Join(data.Abs, path)
		}
		real, err := filepath.EvalSymlinks(path)
		return err == nil && real == dir
	}
	link := data
	link.Abs = filepath.Join(data.Abs, "gitdir")
	if text, err := readSmallFile(link); err == nil && same(filepath.Dir(strings.TrimSpace(text))) {
		return true
	}
	link.Abs = filepath.Join(data.Abs, "config")
	text, err := readSmallFile(link)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, "="); ok && err == nil && strings.EqualFold(strings.TrimSpace(key), "worktree") && same(value) {
			return true
		}
	}
	return false
}

// readSmallFile reads a file of at most gitLinkMax bytes.
func readSmallFile(p place) (string, error) {
	root, name, err := p.open()
	if err != nil {
		return "", err
	}
	defer root.Close()
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return "", joinErrors(err, newError("no plain file"))
	}
	f, err := root.Open(name)
	if err != nil {
		return "", bareError(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, gitLinkMax+1))
	if err == nil && len(b) > gitLinkMax {
		err = errorf("more than %d bytes", gitLinkMax)
	}
	return string(b), err
}
