// This file is how the changing file tools reach a place: the folder is entered step by step through os.Root without following a link, and what belongs to
// tai itself is refused in every mode (ROO-06). It decides nothing else, and keeps and changes no content.
package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// fileGuard knows what no file tool may write. own are folders of tai's: its home, its keys; they need not exist.
type fileGuard struct {
	workspace workspace
	own       func() []string
}

const guardFolder = ".tai" // of a workspace; holds its policy and run logs

// check refuses a place that is tai's own or lies in it; tree also one that holds it. Names are compared without regard to case and to what Windows ignores
// at their end, and folders by what they are, so that no other spelling leads there.
func (g fileGuard) check(p place, tree bool) error {
	for name := range strings.SplitSeq(filepath.ToSlash(p.Rel), "/") {
		name, _, _ = strings.Cut(name, ":")
		if strings.EqualFold(strings.TrimRight(name, ". "), guardFolder) {
			return errorf("%s holds tai's own settings and logs, which no file tool may change in any mode", guardFolder)
		}
	}
	for _, own := range append(g.own(), filepath.Join(g.workspace.root, guardFolder)) {
		if own == "" {
			continue
		}
		if within(p.Abs, own) || tree && within(own, p.Abs) {
			return newError("tai's own files are there, which no file tool may change in any mode")
		}
	}
	return nil
}

// within reports whether path is dir or lies in it, by name or by being the same folder.
func within(path, dir string) bool {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	info, err := os.Stat(dir)
	for at := path; ; at = filepath.Dir(at) {
		if at == dir {
			return true
		}
		if here, herr := os.Stat(at); err == nil && herr == nil && os.SameFile(info, here) {
			return true
		}
		if filepath.Dir(at) == at {
			return false
		}
	}
}

// sameFile reports two names of one file, as in another case where case does not count.
func sameFile(a, b string) bool {
	if !strings.EqualFold(a, b) {
		return false
	}
	x, xerr := os.Lstat(a)
	y, yerr := os.Lstat(b)
	return xerr == nil && yerr == nil && os.SameFile(x, y)
}

// entry is locate for a name itself: its folder is resolved, and a symbolic link at the end stays one.
func (w workspace) entry(path string) (place, error) {
	clean := filepath.Clean(filepath.FromSlash(path))
	if base := filepath.Base(clean); strings.ContainsRune(path, 0) || len(path) > workspaceMaxPath || path == "" || base == "." || base == ".." || filepath.Dir(clean) == clean {
		return w.locate(path)
	}
	p, err := w.locate(filepath.Dir(clean))
	if err != nil {
		return place{}, err
	}
	p.Abs = filepath.Join(p.Abs, filepath.Base(clean))
	rel, err := filepath.Rel(w.root, p.Abs)
	if p.Rel = filepath.ToSlash(rel); err != nil || p.Outside {
		p.Rel = filepath.ToSlash(p.Abs)
	}
	return p, nil
}

// at gives the place of an absolute path that was resolved before, as the vault keeps it. A link that came since is not followed.
func (w workspace) at(abs string) place {
	rel, err := filepath.Rel(w.root, abs)
	if err != nil || !filepath.IsLocal(rel) {
		return place{Abs: abs, Rel: filepath.ToSlash(abs), Outside: true}
	}
	return place{Abs: abs, Rel: filepath.ToSlash(rel), root: w.root}
}

// spot is an opened folder and a name in it. The caller closes the folder.
type spot struct {
	dir  *os.Root
	name string
	abs  string
}

func (s spot) close() { s.dir.Close() }

// spot enters the folder of a place. Inside the root no element of the way may be a link now: it was resolved before, and one that is there has been put
// there since. missing is the first folder that does not exist, with fs.ErrNotExist.
func (p place) spot() (s spot, missing string, err error) {
	if p.Outside {
		root, err := os.OpenRoot(filepath.Dir(p.Abs))
		return spot{root, filepath.Base(p.Abs), p.Abs}, "", bareError(err)
	}
	if p.Rel == "." {
		return spot{}, "", newError("is the workspace root itself")
	}
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return spot{}, "", bareError(err)
	}
	names := strings.Split(p.Rel, "/")
	at := p.root
	for _, name := range names[:len(names)-1] {
		at = filepath.Join(at, name)
		next, err := enter(root, name)
		root.Close()
		if err != nil {
			return spot{}, at, errorf("folder %s: %w", visibleLine(at), bareError(err))
		}
		root = next
	}
	return spot{root, names[len(names)-1], p.Abs}, "", nil
}

// enter opens a folder in root that is no link.
func enter(root *os.Root, name string) (*os.Root, error) {
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, newError("a symbolic link was put in its place")
	case !info.IsDir():
		return nil, newError("not a directory")
	}
	next, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if there, err := next.Stat("."); err != nil || !os.SameFile(info, there) {
		next.Close()
		return nil, newError("it was exchanged meanwhile")
	}
	return next, nil
}

// fileState is what a name holds at one moment. Kind is "" for nothing, else one of the kinds of a step.
type fileState struct {
	Kind string
	Info fs.FileInfo
	Body []byte // of a file or a link
	Sum  string // SHA-256 of Body, "" for a folder and where nothing is
}

// state looks at the spot, and reads a file of at most limit bytes. What is neither a file, a folder nor a link is an error.
func (s spot) state(limit int64) (st fileState, err error) {
	info, err := s.dir.Lstat(s.name)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return st, bareError(err)
	}
	st.Info = info
	switch {
	case info.IsDir():
		st.Kind = changeFolder
		return st, nil
	case info.Mode()&fs.ModeSymlink != 0:
		st.Kind = changeLink
		target, err := s.dir.Readlink(s.name)
		if err != nil {
			return st, bareError(err)
		}
		st.Body = []byte(target)
	case !info.Mode().IsRegular():
		return st, newError("is no regular file, folder or symbolic link")
	case info.Size() > limit:
		return st, errorf("has %d bytes, at most %d can be kept for undo", info.Size(), limit)
	default:
		st.Kind = changeFile
		if st.Body, err = s.read(limit); err != nil {
			return st, err
		}
	}
	st.Sum = sha256Hex(st.Body)
	return st, nil
}

// look is state for what is moved: of a file over changeBodyMax the content is not read.
func (s spot) look() (fileState, error) {
	if info, err := s.dir.Lstat(s.name); err == nil && info.Mode().IsRegular() && info.Size() > changeBodyMax {
		return fileState{Kind: changeFile, Info: info}, nil
	}
	return s.state(changeBodyMax)
}

func (s spot) read(limit int64) ([]byte, error) {
	f, err := s.dir.Open(s.name)
	if err != nil {
		return nil, bareError(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = errorf("has grown over %d bytes", limit)
	}
	if err != nil {
		return nil, bareError(err)
	}
	return b, nil
}

// stage writes content beside its place and syncs it. mode nil is that of any new file.
func (s spot) stage(temp string, body []byte, mode *fs.FileMode) error {
	perm := fs.FileMode(0o666) // less what the umask takes
	if mode != nil {
		perm = 0o600 // until it is complete
	}
	f, err := s.dir.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return bareError(err)
	}
	_, err = f.Write(body)
	if err == nil && mode != nil {
		err = f.Chmod(mode.Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if err = joinErrors(err, f.Close()); err != nil {
		return joinErrors(bareError(err), s.dir.Remove(temp))
	}
	return nil
}

// sync makes names in the folder durable.
func (s spot) sync() error {
	return syncFolder(filepath.Dir(s.abs))
}
