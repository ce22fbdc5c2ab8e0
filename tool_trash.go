// This file moves a file or folder from one place to another, also between disks, in steps of which each can be seen afterwards, so that a move that was killed is
// finished or taken back. It knows neither the vault nor who asked.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	treeMaxFiles = 100_000 // files and folders in one tree that is moved to the trash, or copied to another disk
)

// moveTemps names what is on its way: out beside where it came from, in beside where it goes.
func moveTemps(id string, n int) (out, in string) {
	temp := strings.TrimSuffix(changeTemp(id, n), ".tmp")
	return temp + ".out", temp + ".in"
}

// changeTemp names the file beside step n of a change until it gets its name.
//
//go:noinline for size: it is called in many places
func changeTemp(id string, n int) string { return fmt.Sprintf(".tai-%s-%d.tmp", id, n) }

// isCrossDevice tells that a rename failed because the two places are on different disks. Windows says not same device (winerror.h).
func isCrossDevice(err error, goos string) bool {
	no, ok := errors.AsType[syscall.Errno](err)
	return ok && (no == syscall.EXDEV || goos == "windows" && no == 17)
}

// fileMove is one move. To must be free.
type fileMove struct {
	from, to   spot
	inside     *os.Root // the workspace if both places are in it, else nil
	relFrom    string
	relTo      string
	id         string
	n          int
	goos       string
	caseOnly   bool // only the case of the name changes, so that the new one is there already where case does not count
	reached    func(point string)
	alwaysCopy bool // as if the places were on different disks
}

// do moves by one rename within the workspace. Else the thing gets a name that nobody guesses before it leaves its folder, so that a folder that is exchanged
// at this moment gives away nothing.
func (m fileMove) do(ctx context.Context) error {
	if exists(m.to.dir, m.to.name) && !m.caseOnly {
		return newError("the new place is taken")
	}
	out, in := moveTemps(m.id, m.n)
	var err error
	switch {
	case m.alwaysCopy:
		return m.copy(ctx, out, in)
	case m.inside != nil:
		err = m.inside.Rename(filepath.FromSlash(m.relFrom), filepath.FromSlash(m.relTo))
	default:
		err = m.hop(out, in)
	}
	if err != nil && isCrossDevice(err, m.goos) {
		return m.copy(ctx, out, in)
	}
	return linkError(err)
}

// linkError takes the paths out of the error of a rename.
func linkError(err error) error {
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err
	}
	return bareError(err)
}

// close ends the use of the places that the move opened itself.
func (m fileMove) close() {
	m.to.close()
	if m.inside != nil {
		m.inside.Close()
	}
}

func exists(dir *os.Root, name string) bool {
	_, err := dir.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

func (m fileMove) hop(out, in string) error {
	if err := m.from.dir.Rename(m.from.name, out); err != nil {
		return err
	}
	m.reached("out")
	outAbs, inAbs := filepath.Join(filepath.Dir(m.from.abs), out), filepath.Join(filepath.Dir(m.to.abs), in)
	err := os.Rename(outAbs, inAbs)
	if err == nil {
		m.reached("across")
		if err = m.to.dir.Rename(in, m.to.name); err == nil {
			return nil
		}
		err = joinErrors(err, os.Rename(inAbs, outAbs))
	}
	if back := m.from.dir.Rename(out, m.from.name); back != nil {
		return joinErrors(err, back)
	}
	return err
}

// copy is the move between two disks. What was moved is removed last.
func (m fileMove) copy(ctx context.Context, out, in string) error {
	t := treeCopy{ctx: ctx}
	if err := t.copy(m.from.dir, m.from.name, m.to.dir, in); err != nil {
		return joinErrors(errorf("copy to another disk: %w", bareError(err)), m.to.dir.RemoveAll(in))
	}
	m.reached("copied")
	if err := m.from.dir.Rename(m.from.name, out); err != nil {
		return joinErrors(linkError(err), m.to.dir.RemoveAll(in))
	}
	m.reached("out")
	if err := m.to.dir.Rename(in, m.to.name); err != nil {
		return joinErrors(linkError(err), m.from.dir.Rename(out, m.from.name), m.to.dir.RemoveAll(in))
	}
	m.reached("in")
	return joinErrors(m.from.sync(), m.to.sync(), m.from.dir.RemoveAll(out))
}

// settle finishes or takes back a move that was killed.
func (m fileMove) settle() error {
	out, in := moveTemps(m.id, m.n)
	switch {
	case exists(m.from.dir, m.from.name):
		return m.to.dir.RemoveAll(in)
	case exists(m.to.dir, m.to.name):
		return m.from.dir.RemoveAll(out)
	case exists(m.from.dir, out):
		return joinErrors(m.from.dir.Rename(out, m.from.name), m.to.dir.RemoveAll(in))
	case exists(m.to.dir, in):
		return m.to.dir.Rename(in, m.to.name)
	}
	return nil
}

// treeCopy copies files, folders and symbolic links with their permissions and times.
type treeCopy struct {
	ctx   context.Context
	files int
	bytes int64
}

func (t *treeCopy) copy(from *os.Root, name string, to *os.Root, as string) error {
	if t.files++; t.files > treeMaxFiles || t.bytes > trashMax {
		return errorf("over %d files or %d bytes", treeMaxFiles, trashMax)
	}
	if err := t.ctx.Err(); err != nil {
		return err
	}
	info, err := from.Lstat(name)
	if err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		target, err := from.Readlink(name)
		if err != nil {
			return err
		}
		return to.Symlink(target, as)
	case mode.IsDir():
		return t.folder(from, name, to, as, info)
	case !mode.IsRegular():
		return errorf("%s is no regular file, folder or link", visibleLine(name))
	}
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := to.OpenFile(as, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, trashMax+1))
	t.bytes += n
	if err == nil {
		err = out.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = out.Sync()
	}
	return joinErrors(err, out.Close(), to.Chtimes(as, info.ModTime(), info.ModTime()))
}

func (t *treeCopy) folder(from *os.Root, name string, to *os.Root, as string, info fs.FileInfo) error {
	if err := to.Mkdir(as, 0o700); err != nil {
		return err
	}
	inner, err := from.OpenRoot(name)
	if err != nil {
		return err
	}
	defer inner.Close()
	made, err := to.OpenRoot(as)
	if err != nil {
		return err
	}
	defer made.Close()
	entries, err := fs.ReadDir(inner.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := t.copy(inner, e.Name(), made, e.Name()); err != nil {
			return err
		}
	}
	return joinErrors(to.Chmod(as, info.Mode().Perm()), to.Chtimes(as, info.ModTime(), info.ModTime()))
}

// treeSize counts what is in a file or folder, links not followed. Over treeMaxFiles it stops with an error.
func treeSize(s spot) (files int, bytes int64, err error) {
	info, err := s.dir.Lstat(s.name)
	if err != nil || !info.IsDir() {
		if err != nil {
			return 0, 0, bareError(err)
		}
		return 1, info.Size(), nil
	}
	inner, err := s.dir.OpenRoot(s.name)
	if err != nil {
		return 0, 0, bareError(err)
	}
	defer inner.Close()
	err = fs.WalkDir(inner.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		if files++; files > treeMaxFiles {
			return errorf("holds more than %d files and folders", treeMaxFiles)
		}
		if d.Type().IsRegular() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			bytes += info.Size()
		}
		return nil
	})
	return files, bytes, bareError(err)
}
