// This file checks a vault as a whole, and writes nothing: the file, its schema, what stands in it and what lies around it. What the
// sections look at is in vault_check_rows.go and vault_check_files.go.
package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
)

const (
	freeShareMax   = 4        // a file of which more than one part in so many is free is worth shrinking
	freeBytesMin   = 1 << 20  // bytes; less is not worth a word
	journalNoteMin = 64 << 20 // bytes of a journal that are worth a word: SQLite empties it at 4 MiB
)

// vaultChecker is what a check needs to know. File is a copy to look at instead of the home's vault, "" for none.
type vaultChecker struct {
	Home, File string
	Keys       vaultKeys
	GOOS       string
	Now        func() time.Time
}

// check looks at the vault and everything that belongs to it. It fails in no way but ctx's: what cannot be looked at is a finding.
func (c vaultChecker) check(ctx context.Context) (vaultReport, error) {
	r := vaultReport{Newest: len(vaultMigrations())}
	files := fileCheck{goos: c.GOOS, home: c.Home, r: &r}
	path, there, err := vaultPath(c.Home)
	if c.File != "" {
		path, there, err = realPath(c.File)
		files.home = filepath.Dir(path)
	}
	r.Vault = path
	switch {
	case err != nil:
		r.State = vaultUnreadable
		r.addFault("file", err)
	case !there:
		c.checkNothing(path, &r)
	default:
		c.checkVault(ctx, path, &r, files)
		if c.File == "" {
			files.checkFiles(path, c.Keys.Dir)
			checkKeyFolder(c.Keys.Dir, r.Seal.KeyFile, &r)
		} else {
			files.private(path)
		}
	}
	if there {
		files.checkLeftovers(filepath.Dir(path), c.Now())
	}
	r.settle()
	return r, ctx.Err()
}

// checkNothing says what it means that no vault is there: nothing was stored yet, or it was lost.
func (c vaultChecker) checkNothing(path string, r *vaultReport) {
	r.State = vaultNone
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		r.add("file", findError, 1, "put "+vaultFile+" back; without it the journal is of no use", "%s is gone, and its journal is there", path)
		return
	}
	if c.File != "" {
		r.add("file", findError, 1, "name the copy as tai vault backup did", "no such file: %s", path)
		return
	}
	if logs, err := auditLogs([]string{filepath.Join(c.Home, "runs")}); err == nil && len(logs) > 0 {
		r.add("file", findNote, len(logs), "if one was there: cp a backup to "+quoteWord(path), "no vault is there, and %s", plural(len(logs), "run log"))
		return
	}
	r.add("file", findNote, 0, "", "no vault is there yet")
}

// checkVault looks into the file, as far as it lets itself be opened.
func (c vaultChecker) checkVault(ctx context.Context, path string, r *vaultReport, files fileCheck) {
	v, err := c.open(ctx, path, r)
	if err == nil {
		err = c.checkOpen(ctx, v, r, files)
		err = joinErrors(err, v.close())
	}
	if err == nil {
		return
	}
	for state, is := range map[string]error{vaultDamaged: errVaultDamaged, vaultForeign: errVaultForeign, vaultNewer: errVaultNewer} {
		if errors.Is(err, is) {
			r.State = state
		}
	}
	if r.State == "" {
		r.State = vaultUnreadable
	}
	r.addFault("file", err)
}

// open opens the file for a check. A connection that may write empties the journal into the file when it ends as the last one, so
// where there is a journal it may not; without one it may, for that one leaves no files of its own. The one exception is a journal on
// a full disk whose "-shm" is gone: it can be read by locking the file alone, and then goes where the next command would bring it.
func (c vaultChecker) open(ctx context.Context, path string, r *vaultReport) (*vault, error) {
	_, _ = sqlite.OFDLocking(true) // see openVaultAs
	head, err := c.readHead(path, r)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path + "-wal"); err == nil {
		if r.Journal = info.Size(); r.Journal > journalNoteMin {
			r.add("file", findNote, 1, "end all tai; the last one empties it", "the journal has %d bytes", r.Journal)
		}
	}
	v := &vault{path: path, mode: vaultRead, now: c.Now, keys: c.Keys, random: rand.Reader, busyWait: vaultBusyWait, seals: newSealCache()}
	params := []string{"mode=rw", "_pragma=query_only(1)"}
	if head.journal {
		params = []string{"mode=ro"}
	}
	if info, err := os.Stat(path + "-journal"); err == nil && info.Size() > 0 {
		r.add("file", findError, 1, "restore a backup", "%s-journal holds a change that was cut short and would be taken back", path)
		params = []string{"mode=ro", "immutable=1"}
	}
	r.Schema, err = v.connect(ctx, params...)
	if isCannotWrite(err) {
		r.Schema, err = v.connectLocked(ctx, head)
	}
	if isUnshared(err) {
		r.Schema, err = v.connectAlone(ctx, err)
	}
	if err != nil {
		return nil, v.fault(err)
	}
	if r.Schema > r.Newest {
		return nil, joinErrors(v.fault(errVaultNewer), v.close())
	}
	return v, nil
}

// readHead reads the head of the file, and notes a second name.
func (c vaultChecker) readHead(path string, r *vaultReport) (head vaultHead, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return head, err
	}
	if !info.Mode().IsRegular() {
		return head, errorf("vault %s %w", path, errVaultForeign)
	}
	if fileLinks(info) > 1 {
		r.add("file", findError, 1, "find "+quoteWord(filepath.Dir(path))+" -samefile "+quoteWord(path), "%s has %d names (hard links): two names would mean two journals", path, fileLinks(info))
	}
	f, err := os.Open(path)
	if err != nil {
		return head, vaultFault(path, err)
	}
	defer f.Close() // only read
	r.Bytes = info.Size()
	return settledHead(f, path, r.Newest)
}

// checkOpen goes through an open vault. An error is a fault that ended it.
func (c vaultChecker) checkOpen(ctx context.Context, v *vault, r *vaultReport, files fileCheck) error {
	if err := v.checkIntegrity(ctx, r); err != nil {
		return err
	}
	if r.Schema < r.Newest {
		r.add("schema", findNote, 1, "any command that writes brings it up to date", "the schema is %d, and this tai's is %d", r.Schema, r.Newest)
	}
	fresh := &vault{now: c.Now, busyWait: vaultBusyWait}
	if err := fresh.openMemory(ctx, vaultMigrations()[:r.Schema]); err != nil {
		return err
	}
	defer fresh.close() // in memory
	whole := false
	err := v.view(ctx, func(tx *sql.Tx) error {
		return fresh.view(ctx, func(freshTx *sql.Tx) error {
			found := len(r.Problems)
			err := compareSchema(ctx, tx, freshTx, r)
			whole = len(r.Problems) == found
			return err
		})
	})
	if err != nil || !whole {
		return err // a table that is not there holds nothing to look at
	}
	if err := v.view(ctx, func(tx *sql.Tx) error { return checkRows(ctx, tx, r) }); err != nil {
		return err
	}
	if err := v.checkSeal(ctx, r); err != nil {
		return err
	}
	if err := v.measure(ctx, r); err != nil {
		return err
	}
	if c.File != "" {
		return nil
	}
	heads, err := v.auditHeads(ctx)
	if err == nil {
		files.checkRuns(heads, filepath.Join(c.Home, "runs"))
	}
	return err
}

// checkIntegrity lets SQLite go through every page, index and the words' index (sqlite.org/pragma.html#pragma_integrity_check).
func (v *vault) checkIntegrity(ctx context.Context, r *vaultReport) error {
	faults := 0
	err := v.view(ctx, func(tx *sql.Tx) error {
		return eachRow(ctx, tx, func(rows *sql.Rows) error {
			var text string
			if err := rows.Scan(&text); err != nil || text == "ok" {
				return err
			}
			faults++
			r.add("file", findError, 1, "restore a backup", "%s", visibleLine(clip(text, 200)))
			return nil
		}, fmt.Sprintf(`PRAGMA integrity_check(%d)`, findFaultsMax))
	})
	if faults > 0 {
		r.State = vaultDamaged
	}
	return err
}

// measure tells the sizes, and of free pages where they are many.
func (v *vault) measure(ctx context.Context, r *vaultReport) error {
	rows, err := v.countRows(ctx)
	if err != nil {
		return err
	}
	var pages, free int64
	err = v.view(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT page_count, freelist_count FROM pragma_page_count, pragma_freelist_count`).Scan(&pages, &free)
		if err != nil {
			return err
		}
		return measureTables(ctx, tx, rows, r)
	})
	r.Bytes, r.Free = pages*vaultPageSize, free*vaultPageSize
	if free*freeShareMax > pages && r.Free > freeBytesMin {
		r.add("file", findNote, 1, repairHint+" gives them back", "%d of %d bytes are free", r.Free, r.Bytes)
		r.canMend(mending{Kind: mendPages})
	}
	return err
}

// repair drops the rows that are left over, brings the words' index up to date, and with shrink rewrites the file without free pages.
func (v *vault) repair(ctx context.Context, shrink bool) (done []string, err error) {
	defer wrapDeed(&err, "mend the vault")
	err = v.withTx(ctx, func(tx *sql.Tx) (err error) {
		done, err = repairRows(ctx, tx)
		return err
	})
	if err != nil || !shrink {
		return done, err
	}
	err = v.retry(ctx, func(context.Context) error {
		_, err := v.db.ExecContext(ctx, `VACUUM`)
		return err
	})
	if err != nil {
		return done, v.fault(err)
	}
	return append(done, "the free pages were given back"), nil
}
