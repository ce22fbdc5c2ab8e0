// This file checks what lies around the vault: who may read and change its files, what was left behind, and the run logs that the vault
// knows. It opens no database and changes nothing.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	leftoverAge  = 10 * time.Minute // that an unfinished file may belong to a process which still writes it
	runsCheckMax = 10_000           // runs that a check looks at, the newest ones
)

// fileCheck checks files on one system. home is the folder whose owner the others must have.
type fileCheck struct {
	goos string
	home string
	r    *vaultReport
}

// private notes who else may read or change a file or folder, and one that is a link or belongs to another user. It is false where there
// is nothing.
func (c fileCheck) private(path string) (there bool) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		c.r.addFault("permissions", err)
		return false
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := filepath.EvalSymlinks(path)
		if err != nil {
			c.r.add("permissions", findError, 1, "", "%s is a link that leads nowhere", path)
			return false
		}
		c.r.add("permissions", findNote, 1, "", "%s is a link to %s", path, to)
		if info, err = os.Stat(path); err != nil {
			c.r.addFault("permissions", err)
			return false
		}
	}
	if level, words := openTo(info, c.goos); level != "" {
		mode := "600"
		if info.IsDir() {
			mode = "700"
		}
		if path == c.home && level == findWarning {
			level = findNote // it may be somebody's whole home; the files in it are closed
		}
		c.r.add("permissions", level, 1, "chmod "+mode+" "+quoteWord(path), "%s %s (mode %04o)", path, words, info.Mode().Perm())
		c.r.canMend(mending{Kind: mendMode, Path: path, Mode: info.Mode().Perm() &^ 0o077})
	}
	if home, err := os.Stat(c.home); err == nil && fileOwner(home) != fileOwner(info) {
		c.r.add("permissions", findWarning, 1, fmt.Sprintf("chown %d %s", fileOwner(home), quoteWord(path)), "%s belongs to user %d, and the data folder to user %d", path, fileOwner(info), fileOwner(home))
	}
	return true
}

// openTo says what users other than the owner may do with a file, "" where nothing. Windows keeps rights elsewhere.
func openTo(info fs.FileInfo, goos string) (level, words string) {
	switch perm := info.Mode().Perm(); {
	case goos == "windows":
		return "", ""
	case perm&0o022 != 0:
		return findError, "can be changed by other users"
	case perm&0o044 != 0:
		return findWarning, "can be read by other users"
	}
	return "", ""
}

// checkFiles looks at the vault's own files, the run logs and the key files.
func (c fileCheck) checkFiles(vaultPath, keyDir string) {
	c.private(c.home)
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		c.private(vaultPath + suffix)
	}
	if c.private(filepath.Join(c.home, "runs")) {
		c.checkLogFiles(filepath.Join(c.home, "runs"))
	}
	if keyDir == "" || !c.private(keyDir) {
		return
	}
	keys, err := filepath.Glob(filepath.Join(globQuote(keyDir), "*.key"))
	if err != nil {
		c.r.addFault("permissions", err)
	}
	for _, path := range keys {
		c.private(path)
	}
}

// globQuote makes a path match itself alone. On Windows no sign can be quoted, and none of these stands in a folder's usual place.
func globQuote(path string) string {
	if filepath.Separator == '\\' {
		return path
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// checkLogFiles looks at the run logs, told of together.
func (c fileCheck) checkLogFiles(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		c.r.addFault("permissions", err)
		return
	}
	found := map[string]*findNames{}
	words := []string{"can be changed by other users", "can be read by other users", "no file of its own"}
	for _, w := range words {
		found[w] = &findNames{}
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), auditExtension) {
			continue
		}
		if !e.Type().IsRegular() {
			found[words[2]].add(e.Name())
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			c.r.addFault("permissions", err)
			return
		}
		if _, w := openTo(info, c.goos); w != "" {
			found[w].add(e.Name())
		}
	}
	for i, w := range words {
		if n := found[w]; n.count > 0 {
			level := []string{findError, findWarning, findError}[i]
			do := "chmod 600 " + quoteWord(dir) + "/*" + auditExtension
			if i == 2 {
				do = ""
			}
			c.r.add("permissions", level, n.count, do, "%s in %s: %s: %s", plural(n.count, "run log"), dir, w, n)
			if i < 2 {
				c.r.canMend(mending{Kind: mendMode, Path: dir})
			}
		}
	}
}

// checkLeftovers names what killed processes left in a folder. A file that is not older than a process may live is perhaps still in use.
func (c fileCheck) checkLeftovers(dir string, now time.Time) {
	paths, err := backupLeftovers(dir)
	if err != nil {
		c.r.addFault("file", err)
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			continue // it is gone
		}
		if now.Sub(info.ModTime()) < leftoverAge {
			c.r.add("file", findNote, 1, "", "%s is an unfinished file of %d bytes, perhaps still being written", path, info.Size())
			continue
		}
		c.r.add("file", findWarning, 1, "rm "+quoteWord(path), "%s is an unfinished file of %d bytes", path, info.Size())
		c.r.canMend(mending{Kind: mendLeftover, Path: path})
	}
}

// checkRuns holds the runs on record against the logs on disk. Logs from before the first of them are but a note.
func (c fileCheck) checkRuns(heads []auditHead, dir string) {
	var gone, short, unread, forged, unknown, early findNames
	var first time.Time
	for _, h := range heads {
		if h.verify() != nil {
			forged.add(h.Run)
		}
		if first.IsZero() || h.Started.Before(first) {
			first = h.Started
		}
	}
	runs, total, err := listAudit(heads, runsCheckMax, dir)
	if err != nil {
		c.r.addFault("runs", err)
	}
	if total > len(runs) {
		c.r.add("runs", findNote, total-len(runs), "", "only the newest %d of %d runs were looked at", len(runs), total)
	}
	for _, l := range runs {
		switch {
		case l.State == runGone:
			gone.add(l.Run)
		case l.head != nil && l.Lines < l.head.Lines:
			short.add(l.Run) // also one that cannot be read
		case l.State == runUnreadable:
			unread.add(l.Run)
		case l.head != nil || !l.Completed:
		case first.IsZero() || l.Started.Before(first):
			early.add(l.Run)
		default:
			unknown.add(l.Run)
		}
	}
	for _, f := range []struct {
		names           findNames
		level, do, what string
	}{
		{forged, findError, "tai audit verify RUN", "%s on record with a signature that does not fit: %s"},
		{short, findError, "tai audit verify RUN", "%s whose log is shorter than what is on record: %s"},
		{gone, findWarning, "put the log back; tai audit list --json tells where it was", "%s on record, but the log is gone: %s"},
		{unknown, findWarning, "tai audit verify RUN", "%s with a log that is not on record: %s"},
		{unread, findNote, "tai audit verify RUN", "%s whose log cannot be read: %s"},
		{early, findNote, "", "%s from before the vault kept account of them: %s"},
	} {
		if n := f.names; n.count > 0 {
			c.r.add("runs", f.level, n.count, f.do, f.what, plural(n.count, "run"), &n)
		}
	}
}

// mendFiles closes files to other users and removes what is left over. It returns what it did.
func mendFiles(plan []vaultFinding) (done []string, err error) {
	for _, f := range plan {
		switch m := f.mend; {
		case m.Kind == mendLeftover:
			err = os.Remove(m.Path)
			done = append(done, m.Path+": removed")
		case m.Kind == mendMode && m.Mode == 0: // a folder of run logs
			var closed int
			closed, err = closeLogs(m.Path)
			done = append(done, fmt.Sprintf("%s: %s closed to other users", m.Path, plural(closed, "run log")))
		case m.Kind == mendMode:
			err = os.Chmod(m.Path, m.Mode)
			done = append(done, m.Path+": closed to other users")
		}
		if err != nil {
			return done[:len(done)-1], err
		}
	}
	return done, nil
}

func closeLogs(dir string) (closed int, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), auditExtension) || !e.Type().IsRegular() {
			continue
		}
		info, infoErr := e.Info()
		if infoErr != nil || info.Mode().Perm()&0o077 == 0 {
			continue // it is gone, or closed
		}
		if err := os.Chmod(filepath.Join(dir, e.Name()), info.Mode().Perm()&^0o077); err != nil {
			return closed, err
		}
		closed++
	}
	return closed, err
}
