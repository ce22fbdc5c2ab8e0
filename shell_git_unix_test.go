//go:build unix

package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// gitLab is a repository "r" with one commit, and what else a case makes of it.
type gitLab struct {
	t          *testing.T
	root, mark string
	runner     shellRunner
}

func newGitLab(t *testing.T) *gitLab {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		skipMissing(t, "no git")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lab := &gitLab{t: t, root: filepath.Join(base, "work"), mark: filepath.Join(base, "started")}
	environ := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + base, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@example.com", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@example.com"}
	lab.runner = newShellRunner(workspace{root: lab.root}, func() []string { return environ }, "linux")
	lab.write("r/a.txt", "a\n")
	lab.git("r", "init", "-q")
	lab.git("r", "add", ".")
	lab.git("r", "commit", "-q", "-m", "x")
	return lab
}

func (lab *gitLab) write(name, text string) {
	lab.t.Helper()
	file := filepath.Join(lab.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o700)); err != nil {
		lab.t.Fatal(err)
	}
}

func (lab *gitLab) git(dir string, args ...string) {
	lab.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = filepath.Join(lab.root, dir), lab.runner.environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		lab.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// starts is a command line that leaves the mark.
func (lab *gitLab) starts() string { return "echo x >>" + lab.mark + "; cat" }

// run gives whether a line would run unasked, and whether something of the folder's own was started by it when run so.
func (lab *gitLab) run(cwd, line string) (unasked, started bool) {
	lab.t.Helper()
	args, err := json.Marshal(map[string]string{"command": line, "cwd": cwd})
	if err != nil {
		lab.t.Fatal(err)
	}
	c := toolCall{Args: args}
	req := lab.runner.judge(c)
	unasked = !req.Destructive && !req.Outside
	_ = os.Remove(lab.mark)
	if unasked {
		if _, err := lab.runner.run(lab.t.Context(), c); err != nil {
			lab.t.Fatal(err)
		}
	}
	_, err = os.Stat(lab.mark)
	return unasked, err == nil
}

// SHL-07: wherever a repository keeps what it wants started, git of a line that runs unasked starts none of it.
func TestSHL07GitFolders(t *testing.T) {
	t.Parallel()
	move := func(lab *gitLab, from, to string) {
		if err := os.Rename(filepath.Join(lab.root, from), filepath.Join(lab.root, to)); err != nil {
			lab.t.Fatal(err)
		}
	}
	submodule := func(lab *gitLab) {
		lab.write("r/sub/x", "x\n")
		lab.git("r/sub", "init", "-q")
		lab.git("r/sub", "add", ".")
		lab.git("r/sub", "commit", "-q", "-m", "x")
		lab.git("r", "-c", "advice.addEmbeddedRepo=false", "add", ".")
		lab.git("r", "commit", "-q", "-m", "sub")
	}
	later := func(lab *gitLab, name string) { // so that git looks at the content
		at := time.Now().Add(time.Minute)
		if err := os.Chtimes(filepath.Join(lab.root, name), at, at); err != nil {
			lab.t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name, cwd, line string
		make            func(lab *gitLab)
		unasked         bool
	}{
		{"plain", "r", "git diff", func(*gitLab) {}, true},
		{"command of a diff driver", "r", "git diff", func(lab *gitLab) {
			lab.git("r", "config", "diff.x.command", lab.starts())
			lab.write("r/.gitattributes", "* diff=x\n")
			lab.write("r/a.txt", "b\n")
		}, false},
		{"hook", "r", "git diff; git describe --dirty --always", func(lab *gitLab) {
			lab.write("r/.git/hooks/post-index-change", "#!/bin/sh\n"+lab.starts()+"\n")
			later(lab, "r/a.txt")
		}, true},
		{"file for the folder", "r", "git diff", func(lab *gitLab) {
			lab.git("r", "config", "diff.external", lab.starts())
			move(lab, "r/.git", "r/g")
			lab.write("r/.git", "gitdir: ./g\n")
			lab.write("r/a.txt", "b\n")
		}, false},
		{"good file for the folder", "r", "git diff", func(lab *gitLab) {
			lab.git("r", "config", "core.worktree", filepath.Join(lab.root, "r"))
			move(lab, "r/.git", "r/g")
			lab.write("r/.git", "gitdir: ./g\n")
		}, true},
		{"work tree elsewhere", "r", "git diff", func(lab *gitLab) { lab.git("r", "config", "core.worktree", lab.root) }, false},
		{"common folder", "r", "git diff", func(lab *gitLab) {
			lab.write("r/c/config", "[diff]\n\texternal = "+lab.starts()+"\n")
			lab.write("r/.git/commondir", "../c\n")
			lab.write("r/a.txt", "b\n")
		}, false},
		{"no repository in between", "r/deep", "git diff", func(lab *gitLab) {
			lab.git("r", "config", "diff.external", lab.starts())
			lab.write("r/deep/.git/x", "")
			lab.write("r/a.txt", "b\n")
		}, false},
		{"link to a folder", "way", "git diff", func(lab *gitLab) {
			lab.write("r/deep/x", "")
			lab.git("r", "config", "diff.external", lab.starts())
			if err := os.Symlink("r/deep", filepath.Join(lab.root, "way")); err != nil {
				lab.t.Fatal(err)
			}
		}, false},
		{"lazy fetch", "r", "git show HEAD:a.txt", func(lab *gitLab) {
			lab.git("r", "config", "remote.o.promisor", "true")
			lab.git("r", "config", "extensions.partialClone", "o")
		}, false},
		{"pretty format", "r", "git log --pretty=x", func(lab *gitLab) { lab.git("r", "config", "pretty.x", "%G?") }, false},
		{"submodule", "r", "git status", submodule, true},
		{"filter of a submodule", "r", "git status", func(lab *gitLab) {
			submodule(lab)
			lab.git("r/sub", "config", "filter.z.clean", lab.starts())
			lab.write("r/sub/.gitattributes", "* filter=z\n")
			later(lab, "r/sub/x")
		}, false},
		{"hook of a submodule", "r", "git status", func(lab *gitLab) {
			submodule(lab)
			lab.write("r/sub/.git/hooks/post-index-change", "#!/bin/sh\n"+lab.starts()+"\n")
		}, false},
		{"monitor of a submodule, index of version 4", "r", "git status", func(lab *gitLab) {
			submodule(lab)
			lab.git("r", "update-index", "--index-version", "4")
			lab.git("r/sub", "config", "core.fsmonitor", lab.starts())
		}, false},
		{"split index", "r", "git status", func(lab *gitLab) { lab.git("r", "update-index", "--split-index") }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			lab := newGitLab(t)
			tc.make(lab)
			unasked, started := lab.run(tc.cwd, tc.line)
			if unasked != tc.unasked || started {
				t.Errorf("%s: unasked %v, started %v, want %v, false", tc.line, unasked, started, tc.unasked)
			}
		})
	}
}

// TestGitLinks: an index that is cut or lies about its names is never taken for one without submodules.
func TestGitLinks(t *testing.T) {
	lab := newGitLab(t)
	b, err := os.ReadFile(filepath.Join(lab.root, "r/.git/index"))
	if err != nil {
		t.Fatal(err)
	}
	if paths, ok := gitLinks(b, false); !ok || len(paths) > 0 {
		t.Fatalf("whole: %q %v", paths, ok)
	}
	more := append([]byte(nil), b...)
	binary.BigEndian.PutUint32(more[8:], 1<<31)
	v4 := append([]byte(nil), b...)
	v4[7], v4[12+62] = 4, 9
	for name, index := range map[string][]byte{"empty": nil, "cut": b[:60], "head alone": b[:12], "more entries": more, "other file": []byte(strings.Repeat("x", 200)), "strips too much": v4} {
		if paths, ok := gitLinks(index, false); ok {
			t.Errorf("%s: %q, want not ok", name, paths)
		}
	}
}

// SHL-14: a folder that is reached by a link is searched like any other.
func TestSHL14BelowLink(t *testing.T) {
	lab := newGitLab(t)
	lab.write("deep/.env", "KEY=x")
	if err := os.Symlink("deep", filepath.Join(lab.root, "way")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range [][2]string{{"", "grep -r KEY way"}, {"", "grep -r KEY w*"}, {"way", "grep -r KEY"}, {"way", "grep -r KEY ."}} {
		if unasked, _ := lab.run(tc[0], tc[1]); unasked {
			t.Errorf("%s in %q runs unasked", tc[1], tc[0])
		}
	}
}
