// This file gives the surroundings in which git, run by a command line that only reads, starts nothing that a folder brings along, and finds the
// repositories that would have it start something all the same. It reads configurations and an index, and runs nothing.
package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	gitConfigMax = 256 << 10 // bytes of a repository's configuration that are looked at; a longer one could name anything
	gitIndexMax  = 64 << 20  // bytes of an index likewise
	gitDepthMax  = 4         // submodules in submodules that are looked into
)

// gitQuiet gives variables with which git starts no program that a folder names: a bare repository put into a work tree, a file-system monitor, a
// hook; and fetches nothing that is missing. It also writes no index to note what it looked at, where it heeds that (git(1), git-config(1):
// GIT_OPTIONAL_LOCKS, GIT_NO_LAZY_FETCH, GIT_CONFIG_COUNT, safe.bareRepository, core.fsmonitor, core.hooksPath).
func gitQuiet() []string {
	return []string{"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=safe.bareRepository", "GIT_CONFIG_VALUE_0=explicit",
		"GIT_CONFIG_KEY_1=core.fsmonitor", "GIT_CONFIG_VALUE_1=false", "GIT_CONFIG_KEY_2=core.hooksPath", "GIT_CONFIG_VALUE_2=" + os.DevNull}
}

// gitRunsPrograms gives the file of the repository that dir lies in that names a program, or a further file, that git would use while it only
// shows something; "" otherwise. git does not bring such a file along with a clone, an archive may. git passes over a .git that is no repository, so all
// above dir are looked at.
func gitRunsPrograms(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for ; ; dir = filepath.Dir(dir) {
		if file := gitTreeRuns(dir, 0); file != "" || filepath.Dir(dir) == dir {
			return file
		}
	}
}

// gitTreeRuns looks at the repository whose work tree is dir and at the submodules in its index. Of those (depth over 0) git knows no setting of gitQuiet: it
// takes the variables away before it enters them.
func gitTreeRuns(dir string, depth int) string {
	at := filepath.Join(dir, ".git")
	if _, err := os.Lstat(at); err != nil {
		return ""
	}
	folder, ok := gitFolder(at)
	if !ok || depth > gitDepthMax {
		return at
	}
	common := folder
	if to, err := readHead(filepath.Join(folder, "commondir"), gitConfigMax); err == nil {
		common = gitPath(folder, string(to))
	}
	sha256 := false
	for _, file := range []string{filepath.Join(folder, "config"), filepath.Join(folder, "config.worktree"), filepath.Join(common, "config"), filepath.Join(common, "config.worktree")} {
		if _, err := os.Stat(file); err != nil {
			continue
		}
		b, err := readHead(file, gitConfigMax)
		if err != nil || gitConfigRuns(string(b), folder, dir, depth > 0) {
			return file
		}
		sha256 = sha256 || bytes.Contains(bytes.ToLower(b), []byte("sha256"))
	}
	if hook := filepath.Join(common, "hooks", "post-index-change"); depth > 0 {
		if _, err := os.Lstat(hook); err == nil {
			return hook
		}
	}
	index := filepath.Join(folder, "index")
	if _, err := os.Stat(index); err != nil {
		return ""
	}
	b, err := readHead(index, gitIndexMax)
	links, ok := gitLinks(b, sha256)
	if err != nil || !ok {
		return index
	}
	for _, link := range links {
		if file := gitTreeRuns(filepath.Join(dir, filepath.FromSlash(link)), depth+1); file != "" {
			return file
		}
	}
	return ""
}

// gitFolder gives the folder of a repository for its .git, which may be a file that names it (gitrepository-layout(5)).
func gitFolder(at string) (folder string, ok bool) {
	info, err := os.Stat(at)
	switch {
	case err != nil || !info.IsDir() && !info.Mode().IsRegular():
		return "", false
	case info.IsDir():
		return at, true
	}
	b, err := readHead(at, gitConfigMax)
	to, ok := strings.CutPrefix(string(b), "gitdir:")
	return gitPath(filepath.Dir(at), to), err == nil && ok
}

// gitPath is a path in a file of git, seen from base.
func gitPath(base, to string) string {
	to = filepath.FromSlash(strings.TrimSpace(to))
	if filepath.IsAbs(to) {
		return filepath.Clean(to)
	}
	return filepath.Join(base, to)
}

// readHead reads a regular file of at most limit bytes; another one is an error.
func readHead(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return nil, os.ErrInvalid
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// gitConfigRuns reports a configuration with a key that names a program or another file for a command that shows something, a lazy fetch or a
// signature's check among them. A work tree that is named must be tree, in which it lies.
func gitConfigRuns(text, folder, tree string, submodule bool) bool {
	keys := `external|textconv|include|program|showsignature|\[filter|\[gpg|command|promisor|partialclone|%g|signature|submodule\s*=`
	if submodule {
		keys += `|fsmonitor|hookspath`
	}
	if regexp.MustCompile(`(?i)` + keys).MatchString(text) {
		return true
	}
	for _, m := range regexp.MustCompile(`(?i)worktree\s*=(.*)`).FindAllStringSubmatch(text, -1) {
		if gitPath(folder, m[1]) != tree {
			return true
		}
	}
	return false
}

// gitLinks gives the paths of the submodules in an index (gitformat-index(5), versions 2 to 4). One that is split or cannot be read is not ok.
func gitLinks(index []byte, sha256 bool) (paths []string, ok bool) {
	const statSize, modeAt, linkMode = 40, 24, 0o160000
	fixed := statSize + 20 + 2 // with the hash and the flags
	if sha256 {
		fixed += 12
	}
	if len(index) < 12 || string(index[:4]) != "DIRC" {
		return nil, false
	}
	version, count := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	if version < 2 || version > 4 {
		return nil, false
	}
	name, at := []byte(nil), 12
	for range count {
		if at+fixed+2 > len(index) {
			return nil, false
		}
		mode, start := binary.BigEndian.Uint32(index[at+modeAt:]), at
		more := index[at+fixed-2]&0x40 != 0 && version > 2
		if at += fixed; more {
			at += 2
		}
		if version == 4 { // how many bytes to leave of the name before
			strip, n := gitOffset(index[at:])
			if n == 0 || strip > len(name) {
				return nil, false
			}
			name, at = name[:len(name)-strip], at+n
		} else {
			name = nil
		}
		end := bytes.IndexByte(index[at:], 0)
		if end < 0 {
			return nil, false
		}
		name = append(bytes.Clone(name), index[at:at+end]...)
		if at += end + 1; version < 4 { // filled up to a multiple of eight, with one zero at least
			at = start + (at-start+7)/8*8
		}
		if mode == linkMode {
			paths = append(paths, string(name))
		}
	}
	return paths, at <= len(index) && !bytes.HasPrefix(index[at:], []byte("link"))
}

// gitOffset reads a number as git packs it, and how many bytes it takes; 0 if it does not end.
func gitOffset(b []byte) (value, size int) {
	for i, c := range b[:min(len(b), 5)] {
		if i > 0 {
			value++
		}
		if value = value<<7 | int(c&0x7f); c&0x80 == 0 {
			return value, i + 1
		}
	}
	return 0, 0
}
