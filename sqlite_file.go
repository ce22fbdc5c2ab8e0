// This file opens a database file for the sqlite tools: which file that may be, what lies beside it, and what SQLite's faults mean for it. What is done with
// the open database is not its matter.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"
)

const (
	sqliteGrowMax = int64(1) << 30                     // bytes that a database may grow by in one call
	sqliteHead    = "SQLite format 3\x00"              // "Database File Format" (sqlite.org/fileformat2.html), section 1.3.1
	sqliteSuper   = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" // ends a journal that names another file, which SQLite would delete; section 3
)

// dataFiles is where the data tools find files and what they never touch.
type dataFiles struct {
	engine *dataEngine
	guard  fileGuard
}

// dataFile is a database file that was looked at. Of the files beside it, those that exist are in beside.
type dataFile struct {
	place
	info   fs.FileInfo
	beside map[string]bool
	wal    bool // it is in WAL mode
}

// find looks at the file of a path before SQLite does. create makes an empty one where none is.
func (d dataFiles) find(c toolCall, path string, create bool) (f dataFile, made bool, err error) {
	defer func() {
		if err != nil {
			err = errorf("%s: %w", visibleLine(path), err)
		}
	}()
	if f.place, err = d.guard.workspace.locate(path); err != nil {
		return f, false, err
	}
	if err := joinErrors(f.check(c.outside), d.guard.check(f.place, false)); err != nil {
		return f, false, err
	}
	root, name, err := f.place.open()
	if err != nil {
		return f, false, err
	}
	defer root.Close()
	f.info, err = root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) && create {
		made = true
		f.info, err = createEmpty(root, name)
	}
	switch {
	case err != nil:
		return f, false, bareError(err)
	case f.info.IsDir():
		return f, false, newError("is a folder")
	case !f.info.Mode().IsRegular():
		return f, false, newError("is no regular file")
	case d.isVault(f.info):
		return f, false, newError("is tai's own vault under another name, which no tool opens")
	}
	if f.beside, err = sqliteBeside(root, name); err == nil {
		f.wal, err = sqliteHeader(root, name, f.info.Size())
	}
	return f, made, err
}

// createEmpty makes the file that SQLite then opens, so that it comes to lie where os.Root says.
func createEmpty(root *os.Root, name string) (fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	return info, joinErrors(err, f.Close())
}

// isVault knows the vault by what it is, as a hard link has another name.
func (d dataFiles) isVault(info fs.FileInfo) bool {
	for _, own := range d.guard.own() {
		if vault, err := os.Stat(filepath.Join(own, vaultFile)); own != "" && err == nil && os.SameFile(vault, info) {
			return true
		}
	}
	return false
}

// sqliteBeside looks for the journals that SQLite reads and writes beside a database. One that is no regular file, or a rollback journal that names a further
// file, is refused.
func sqliteBeside(root *os.Root, name string) (map[string]bool, error) {
	there := map[string]bool{}
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		info, err := root.Lstat(name + suffix)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, bareError(err)
		case !info.Mode().IsRegular():
			return nil, errorf("%s beside it is no regular file", visibleLine(name+suffix))
		}
		there[suffix] = info.Size() > 0 || suffix == "-shm"
		if suffix != "-journal" || info.Size() < int64(len(sqliteSuper)) {
			continue
		}
		tail := make([]byte, len(sqliteSuper))
		f, err := root.Open(name + suffix)
		if err != nil {
			return nil, bareError(err)
		}
		_, err = f.ReadAt(tail, info.Size()-int64(len(tail)))
		if err = joinErrors(err, f.Close()); err != nil {
			return nil, bareError(err)
		}
		if string(tail) == sqliteSuper {
			return nil, errorf("%s beside it belongs to a change of several databases at once; let the program that made it finish it", visibleLine(name+suffix))
		}
	}
	return there, nil
}

// sqliteHeader reads whether a database is in WAL mode. Closing the file drops no lock, as no other call on data runs meanwhile.
func sqliteHeader(root *os.Root, name string, size int64) (wal bool, err error) {
	if size == 0 {
		return false, nil
	}
	f, err := root.Open(name)
	if err != nil {
		return false, bareError(err)
	}
	defer f.Close()
	head := make([]byte, 20)
	if n, _ := f.ReadAt(head, 0); n < len(head) || string(head[:len(sqliteHead)]) != sqliteHead {
		return false, errNoDatabase
	}
	return head[18] == 2 || head[19] == 2, nil
}

var errNoDatabase = errors.New("is no SQLite database, or an encrypted one")

// same reports whether the place still holds the file that was looked at, reached without a link that was put in since.
func (f dataFile) same() error {
	if real, err := filepath.EvalSymlinks(f.Abs); err != nil || real != f.Abs {
		return newError("it was exchanged while it was opened")
	}
	root, name, err := f.place.open()
	if err != nil {
		return err
	}
	defer root.Close()
	there, err := root.Stat(name)
	if err != nil || !os.SameFile(there, f.info) {
		return newError("it was exchanged while it was opened")
	}
	return nil
}

// read opens the file for reading and hands it to use. One in WAL mode that nobody has open is read as a file that does not change, since SQLite would make
// files beside it otherwise; if it did change meanwhile, it is read again in the ordinary way. So is one in a folder where those files cannot be made. note
// says so.
func (d dataFiles) read(ctx context.Context, f dataFile, use func(c *dataConn, note string) error) error {
	guard := &sqlGuard{}
	open := func(note string, params ...string) error {
		return d.engine.open(ctx, dataDSN(f.Abs, append(params, "mode=ro", "_pragma=query_only(1)")...), guard, func(c *dataConn) error {
			var schema int64
			if err := c.one(ctx, "PRAGMA schema_version", &schema); err != nil {
				return err
			}
			if err := f.same(); err != nil {
				return err
			}
			return use(c, note)
		})
	}
	alone := !f.beside["-wal"] && !f.beside["-shm"] && !f.beside["-journal"]
	if !f.wal || !alone {
		return sqliteFault(open(""), f)
	}
	err := open("", "immutable=1")
	if f.unchanged() {
		return sqliteFault(err, f)
	}
	err = open("")
	if isUnshared(err) || isCannotWrite(err) {
		err = open("Another program changed the database while it was read; the rows may not fit together.", "immutable=1")
	}
	return sqliteFault(err, f)
}

// unchanged reports that nobody began to write to the database: that would have made a journal beside it.
func (f dataFile) unchanged() bool {
	root, name, err := f.place.open()
	if err != nil {
		return false
	}
	defer root.Close()
	now, err := root.Stat(name)
	if err != nil || now.Size() != f.info.Size() || !now.ModTime().Equal(f.info.ModTime()) {
		return false
	}
	beside, err := sqliteBeside(root, name)
	return err == nil && !beside["-wal"] && !beside["-shm"] && !beside["-journal"]
}

// change opens the file for writing and hands it to use inside one transaction, which is committed if use succeeds.
func (d dataFiles) change(ctx context.Context, f dataFile, use func(c *dataConn) error) error {
	return sqliteFault(d.engine.open(ctx, dataDSN(f.Abs, "mode=rw"), &sqlGuard{writes: true}, func(c *dataConn) error {
		if err := c.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
			return err
		}
		err := f.same()
		if err == nil {
			err = c.boundGrowth(ctx)
		}
		if err == nil {
			err = use(c)
		}
		if err == nil {
			return c.exec(ctx, "COMMIT")
		}
		if ctx.Err() != nil { // closing the connection takes it back as well
			return err
		}
		return joinErrors(err, c.rollback(ctx))
	}), f)
}

// rollback takes the transaction back, unless SQLite did so itself, as it does on a full disk.
func (c *dataConn) rollback(ctx context.Context) error {
	if err := c.exec(ctx, "ROLLBACK"); err != nil && driverCode(err) != sqlite3.SQLITE_ERROR {
		return err
	}
	return nil
}

// boundGrowth keeps a statement without an end from filling the disk.
func (c *dataConn) boundGrowth(ctx context.Context) error {
	var size, pages int64
	if err := joinErrors(c.one(ctx, "PRAGMA page_size", &size), c.one(ctx, "PRAGMA page_count", &pages)); err != nil {
		return err
	}
	return c.exec(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", min(pages+sqliteGrowMax/max(size, 512), 4_294_967_294)))
}

// sqliteFault turns an error of the driver into a sentence about the file; others pass as they are.
func sqliteFault(err error, f dataFile) error {
	if err == nil {
		return nil
	}
	name := visibleLine(f.Rel)
	switch code := driverCode(err); {
	case isBusy(err):
		return errorf("%s is locked by another program, also after %v; try again when that has finished", name, dataBusyTime)
	case code == sqlite3.SQLITE_NOTADB:
		return errorf("%s %w", name, errNoDatabase)
	case code == sqlite3.SQLITE_CORRUPT:
		return errorf("%s is damaged: %s; PRAGMA integrity_check tells more", name, sqlText(err))
	case f.beside["-journal"] && isCannotWrite(err):
		return errorf("%s has an unfinished change of another program beside it (%s-journal), which a program that may write must take back first", name, name)
	case isUnshared(err), isCannotWrite(err):
		return errorf("%s cannot be opened or written as this needs: %s; look at the permissions of the file and its folder", name, sqlText(err))
	case code == sqlite3.SQLITE_FULL:
		return errorf("%s: the disk is full, or the database would grow by more than %d bytes in one call", name, sqliteGrowMax)
	}
	return sqlFault(err)
}

// sqlFault says what SQLite says of a statement, without the words and numbers around it.
func sqlFault(err error) error {
	switch driverCode(err) {
	case 0:
		return err
	case sqlite3.SQLITE_TOOBIG:
		return errorf("a value or row is over %d bytes; take substr() or length() of it", dataValueMax)
	case sqlite3.SQLITE_READONLY:
		return newError("refused: the database is only read here; sqlite_exec changes one")
	}
	return newError(sqlText(err))
}

// sqlText is the text of an error of the driver: "SQL logic error: no such table: x (1)" becomes "no such table: x".
func sqlText(err error) string {
	text := strings.TrimPrefix(err.Error(), "SQL logic error: ")
	if i := strings.LastIndex(text, " ("); i > 0 && strings.HasSuffix(text, ")") {
		text = text[:i]
	}
	return clip(visibleLine(text), 500)
}
