// This file looks below the folders that a reading command searches whole, where the line alone does not say which files are read.
// It reads names, never contents.
package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shellBelowMax bounds the entries that are looked at; a folder with more could hold anything.
const shellBelowMax = 20_000

// shellReadsBelow gives a file that makes a reading command more than that: one with a usual name of credentials that a recursive search would
// read, or a repository's configuration that names programs for git to run. It is "" if there is none. dir is where the commands start,
// by a call's cwd. A folder with too many entries to look at is given itself, as is a cwd among credentials.
func shellReadsBelow(commands [][]string, dir, cwd string) string {
	if credentialPath(filepath.ToSlash(cwd)) || slices.Contains(strings.Split(filepath.ToSlash(cwd), "/"), ".git") {
		return cwd
	}
	for _, words := range commands {
		if words[0] == "git" {
			if config := gitRunsPrograms(dir); config != "" {
				return config
			}
		}
		hidden, recursive := shellSearches(words)
		if !recursive {
			continue
		}
		var below []string
		for _, word := range words[1:] {
			at := word
			if !filepath.IsAbs(at) {
				at = filepath.Join(dir, at)
			}
			found, err := filepath.Glob(at)
			if err != nil {
				found = nil
			}
			for _, at := range append(found, at) {
				if info, err := os.Stat(at); err == nil && info.IsDir() {
					below = append(below, at)
				}
			}
		}
		if len(below) == 0 {
			below = []string{dir}
		}
		left := shellBelowMax
		for _, at := range below {
			if found := credentialBelow(at, hidden, &left); found != "" {
				return found
			}
		}
	}
	return ""
}

// credentialPath reports a slash-separated path with a usual name of credentials in it.
func credentialPath(p string) bool {
	return slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return shellCredential(part, false) })
}

// shellSearches reports a command that reads every file below a folder, and whether the hidden ones too.
func shellSearches(words []string) (hidden, recursive bool) {
	switch words[0] {
	case "rg":
		return false, !slices.Contains(words, "--files")
	case "grep", "egrep", "fgrep":
	default:
		return false, false
	}
	narrow := false
	for _, word := range words[1:] {
		recursive = recursive || word == "--recursive" || len(word) > 1 && word[0] == '-' && word[1] != '-' && strings.Contains(word, "r")
		if glob, ok := strings.CutPrefix(word, "--include="); ok {
			if shellCredential(glob, true) || strings.ContainsAny(glob, `[\`) {
				return true, true
			}
			narrow = true
		}
	}
	return true, recursive && !narrow
}

// credentialBelow gives the first file below dir with a usual name of credentials, or dir when it has more entries than left. Links below it are not
// followed, as no reading command does, but dir itself may be one; what packages bring along is passed over.
func credentialBelow(dir string, hidden bool, left *int) (found string) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	err = filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // who cannot read it cannot search it
		}
		name := e.Name()
		if *left--; *left < 0 {
			found = dir
			return fs.SkipAll
		}
		switch {
		case at == dir:
			return nil
		case e.IsDir() && (name == ".git" || name == "node_modules" || !hidden && strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case !hidden && strings.HasPrefix(name, "."):
			return nil
		case shellCredential(name, false):
			found = at
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return dir
	}
	return found
}
