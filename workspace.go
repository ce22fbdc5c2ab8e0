// This file decides where a path given to a tool really lies: under the workspace root or outside it. It resolves and opens, and leaves to
// the policy what outside means.
package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const workspaceMaxPath = 4096 // bytes of a path given to a tool (PATH_MAX of Linux)

// workspace is the folder that the tools work in.
type workspace struct {
	root string // absolute, symbolic links resolved once (ROO-05)
}

// place is where a path really lies.
type place struct {
	Abs     string // absolute, symbolic links of what exists resolved
	Rel     string // relative to the root and slash-separated, "." for the root; for a place outside the same as Abs
	Outside bool
	root    string
}

// openWorkspace resolves dir, which has to be an existing folder.
func openWorkspace(dir string) (workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return workspace{}, errorf("workspace root %q: %w", dir, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return workspace{}, errorf("workspace root %q: %w", dir, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return workspace{}, errorf("workspace root %q: %w", dir, err)
	}
	if !info.IsDir() {
		return workspace{}, errorf("workspace root %q: not a folder", dir)
	}
	return workspace{root: real}, nil
}

// locate resolves path against the root: a relative one starts there, "" is the root itself. Nothing in it is expanded: ~, %2e and $X
// are names (ROO-04). Containment is decided on resolved path elements, so a link that leads out counts as outside (ROO-02) and
// /srv/app-secret is not inside /srv/app (ROO-03). The last elements need not exist.
func (w workspace) locate(path string) (place, error) {
	if strings.ContainsRune(path, 0) {
		return place{}, newError("path holds a NUL byte")
	}
	if len(path) > workspaceMaxPath {
		return place{}, errorf("path of %d bytes, at most %d", len(path), workspaceMaxPath)
	}
	abs := filepath.Clean(filepath.FromSlash(path))
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(w.root, abs)
	}
	real, err := resolveExisting(abs)
	if err != nil {
		return place{}, errorf("path %q: %w", path, err)
	}
	rel, err := filepath.Rel(w.root, real)
	if err != nil || !filepath.IsLocal(rel) {
		return place{Abs: real, Rel: filepath.ToSlash(real), Outside: true}, nil
	}
	return place{Abs: real, Rel: filepath.ToSlash(rel), root: w.root}, nil
}

// resolveExisting resolves the symbolic links of the longest part of abs that exists and joins the rest. A link that leads nowhere is an
// error, as nobody can say where it will lead.
func resolveExisting(abs string) (string, error) {
	rest := ""
	for dir := abs; ; {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", bareError(err)
		}
		if _, lerr := os.Lstat(dir); lerr == nil {
			return "", newError("a symbolic link that leads nowhere")
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", err
		}
		rest, dir = filepath.Join(filepath.Base(dir), rest), parent
	}
}

// open gives the folder to work through and the name of the place in it. Every access goes through the os.Root, so that a link put in
// place after locate cannot lead out. The caller closes it.
func (p place) open() (*os.Root, string, error) {
	dir, name := p.root, filepath.FromSlash(p.Rel)
	if p.Outside {
		dir, name = filepath.Split(p.Abs)
		if name == "" {
			name = "."
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", bareError(err)
	}
	return root, name, nil
}

// check refuses a place outside the root unless the policy allowed it.
func (p place) check(allowed bool) error {
	if p.Outside && !allowed {
		return errorf("lies outside the workspace root, at %s", visibleLine(p.Abs))
	}
	return nil
}
