//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const shellCanary = "CANARY-7f3a"

// shellLab is a folder with files, secrets inside and outside of it, and programs that tell when they are started.
type shellLab struct {
	base, root string
	runner     shellRunner
	shells     []string
	before     string
}

func newShellLab(t testing.TB) *shellLab {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lab := &shellLab{base: base, root: filepath.Join(base, "work")}
	files := map[string]string{
		"out/secret.txt": shellCanary, "home/.ssh/id_rsa": shellCanary, "home/.bashrc": "exit 9\n", "work/.env": "KEY=" + shellCanary + "\n", "work/id_rsa": shellCanary, "work/src/prod.pem": shellCanary, "work/.hidden/credentials.json": shellCanary,
		"work/README.md": "begin\nfoo\nend\n", "work/main.go": "package main\n\nfunc main() {}\n", "work/src/a.go": "package src // TODO error\n", "work/src/b.go": "package src\n", "work/docs/x.md": "x\n", "work/a.txt": "a\nb\n", "work/b.txt": "b\nc\n",
		"work/data.txt": "a:1 2\nb:3 4\n", "work/data.csv": "h,i\n1,2\n", "work/data.json": "[1]\n", "work/package.json": `{"name":"x","scripts":{"a":"b"},"dependencies":{}}`, "work/config.toml": "# x\na=1\n", "work/build.log": "error 1\n", "work/data.bin": "\x00\x01text text\x02", "work/go.mod": "module x\n",
		"work/-rf": "x", "work/-exec": "x", "work/-delete": "x", "work/-o": "x", "work/--output=pwned": "x", "work/--files0-from=.env": "x", "work/--compress-program=rm": "x", "work/--pre=rm": "x", "work/x;rm x": "x", "work/$(touch pwned)": "x",
	}
	for _, name := range []string{"rm", "sh", "bash", "dash", "zsh", "perl", "ruby", "curl", "wget", "nc", "ssh", "tee", "dd", "cp", "mv", "touch", "chmod", "ln", "vi", "vim", "ed", "less", "more", "pager", "xargs", "sudo", "env", "nice", "timeout", "make", "go", "npm", "gpg", "x"} {
		files["bin/"+name] = "#!/bin/sh\necho " + name + " >> " + filepath.Join(base, "started") + "\n"
	}
	for name, text := range files {
		file := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(base, "out"), filepath.Join(lab.root, "link")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(base, "bin") + ":/usr/local/bin:/usr/bin:/bin"
	environ := []string{"PATH=" + path, "HOME=" + filepath.Join(base, "home"), "LAB_SECRET=" + shellCanary, "LC_ALL=C.UTF-8"}
	if git, err := exec.LookPath("git"); err == nil {
		for _, args := range [][]string{{"init", "-q"}, {"add", "main.go", "README.md", "src/a.go"}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "x"}} {
			cmd := exec.Command(git, args...)
			cmd.Dir, cmd.Env = lab.root, environ
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v\n%s", args, err, out)
			}
		}
	}
	w, err := openWorkspace(lab.root)
	if err != nil {
		t.Fatal(err)
	}
	lab.runner = shellRunner{workspace: w, environ: func() []string { return environ }, goos: runtime.GOOS, grace: time.Second, unit: time.Second}
	lab.shells = []string{"/bin/sh"}
	for _, shell := range []string{"/bin/bash", "/bin/dash", "/usr/bin/bash", "/usr/bin/dash"} {
		real, err := filepath.EvalSymlinks(shell)
		if err == nil && !slices.Contains(lab.shells, real) {
			lab.shells = append(lab.shells, real)
		}
	}
	lab.before = lab.state(t)
	return lab
}

// state tells every file below the lab with size, mode and time of change.
func (lab *shellLab) state(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(lab.base, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			fmt.Fprintf(&b, "%s %d %v %d\n", at, info.Size(), info.Mode(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// unasked reports whether shell_run would run the line without asking.
func (lab *shellLab) unasked(line string) bool {
	args, err := json.Marshal(map[string]string{"command": line})
	if err != nil || strings.ContainsRune(line, 0) {
		return false
	}
	req := lab.runner.judge(toolCall{Args: args})
	return !req.Destructive && !req.Outside && classifyShell(line, shellScope{Root: lab.root}).Reading
}

// try runs a line that would run unasked in every shell, and wants nothing changed, nothing started and no secret shown.
func (lab *shellLab) try(t testing.TB, line string) {
	t.Helper()
	env, err := lab.runner.env(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, shell := range lab.shells {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		var out bytes.Buffer
		cmd := exec.CommandContext(ctx, shell, "-c", line)
		cmd.Dir, cmd.Env, cmd.WaitDelay = lab.root, append(env, gitQuiet()...), time.Second
		head := &headWriter{w: &out, left: 1 << 20}
		cmd.Stdout, cmd.Stderr = head, head // one writer for both, so that one goroutine copies
		ownGroup(cmd)
		cmd.Cancel = func() error { return terminate(cmd.Process.Pid) }
		_ = cmd.Run() // how it ends is its own matter
		cancel()
		if cmd.Process != nil {
			_ = killGroup(cmd.Process.Pid)
		}
		if strings.Contains(out.String(), shellCanary) {
			t.Errorf("%s: %q shows a secret:\n%.300s", shell, line, &out)
		}
	}
	if now := lab.state(t); now != lab.before {
		t.Errorf("%q changed something:\n%s", line, diffText(lab.before, now))
		lab.before = now
	}
}

// headWriter passes on the first bytes and takes the rest.
type headWriter struct {
	w    *bytes.Buffer
	left int
}

func (h *headWriter) Write(b []byte) (int, error) {
	n := min(len(b), h.left)
	h.left -= n
	h.w.Write(b[:n])
	return len(b), nil
}

// TestShellDifferential runs every line of the corpus that would run unasked, in sh, bash and dash.
func TestShellDifferential(t *testing.T) {
	t.Parallel()
	lab := newShellLab(t)
	lines, _ := shellCorpus(t, "reading.txt")
	ran := 0
	for _, line := range lines {
		if lab.unasked(line) {
			lab.try(t, line)
			ran++
		}
	}
	if ran < 200 {
		t.Errorf("%d lines ran", ran)
	}
}

// SHL-07: a repository that lies in the work tree as plain files, as a clone may bring one, has no say in what git starts.
func TestSHL07BareRepository(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		skipMissing(t, "no git")
	}
	lab := newShellLab(t)
	evil := filepath.Join(lab.root, "evil")
	marker := filepath.Join(lab.base, "started")
	for _, args := range [][]string{{"init", "-q", "--bare", evil}, {"-C", evil, "config", "core.bare", "false"}, {"-C", evil, "config", "core.worktree", "."}, {"-C", evil, "config", "core.fsmonitor", "echo x >" + marker + ";:"}} {
		cmd := exec.Command(git, args...)
		cmd.Env = lab.runner.environ()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	call := func(command string) (started bool) {
		t.Helper()
		args, err := json.Marshal(map[string]string{"command": command, "cwd": "evil"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lab.runner.run(t.Context(), toolCall{Args: args}); err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(marker)
		_ = os.Remove(marker)
		return err == nil
	}
	if call("git status") {
		t.Error("a monitor of the folder's own was started by a command that runs unasked")
	}
	if !call("git status; :") && !call("git -C . status") {
		t.Skip("this git starts no monitor there") // else the test could not fail
	}
}

// TestShellMutants does the same with lines that are put together at random from both corpora: what the classifier takes for reading must be it in a
// real shell too. The lines are the same in each run.
func TestShellMutants(t *testing.T) {
	t.Parallel()
	lab := newShellLab(t)
	reading, _ := shellCorpus(t, "reading.txt")
	bypass, _ := shellCorpus(t, "bypass.txt")
	r := rand.New(rand.NewPCG(1, 2))
	tried, ran := 0, 0
	for end := time.Now().Add(8 * time.Second); ran < 60 && tried < 30_000 && time.Now().Before(end); tried++ {
		line := shellMutant(r, reading, bypass)
		if !slices.Contains(reading, line) && lab.unasked(line) {
			lab.try(t, line)
			ran++
		}
	}
	t.Logf("%d of %d mutants ran", ran, tried)
	if ran < 20 {
		t.Errorf("%d of %d mutants would run unasked, too few to say anything", ran, tried)
	}
}

// shellMutant puts pieces of two lines together, with what shells take for special between them.
func shellMutant(r *rand.Rand, reading, bypass []string) string {
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	cut := func(s string) string { return s[r.IntN(len(s)+1):] }
	words := func(s string) string {
		f := strings.Fields(s)
		if len(f) == 0 {
			return s
		}
		return f[r.IntN(len(f))]
	}
	base := pick(reading)
	glue := pick([]string{" ", "", "; ", " && ", "|", "\n", "\t", "\\\n", "'", `"`, " -", " --", "*", "?", "\\", "#", " # ", "&", ">", "<", "2>&1 ", " > /dev/null ", "=", ":", ",", "/", ".", "~", "$", "-- ", "\r", "{", "}", "!", "[", "]", "\u00a0"})
	switch r.IntN(6) {
	case 0:
		return base + glue + cut(pick(bypass))
	case 1:
		return base + " " + words(pick(bypass))
	case 2:
		at := r.IntN(len(base) + 1)
		return base[:at] + glue + base[at:]
	case 3:
		at := r.IntN(len(base) + 1)
		return base[:at] + words(pick(bypass)) + base[at:]
	case 4:
		f := strings.Fields(base)
		f[r.IntN(len(f))] = words(pick(bypass))
		return strings.Join(f, " ")
	}
	f := strings.Fields(base)
	at := r.IntN(len(f)) + 1
	return strings.Join(slices.Concat(f[:at], []string{words(pick(bypass)), words(pick(reading))}, f[at:]), " ")
}

// FuzzShellRuns does it with whatever the fuzzer finds; its seeds are both corpora.
func FuzzShellRuns(f *testing.F) {
	lab := newShellLab(f)
	for _, name := range []string{"reading.txt", "bypass.txt"} {
		lines, _ := shellCorpus(f, name)
		for i, line := range lines {
			if i%8 == 0 || name == "bypass.txt" {
				f.Add(line)
			}
		}
	}
	f.Fuzz(func(t *testing.T, line string) {
		if lab.unasked(line) {
			lab.try(t, line)
		}
	})
}
