// This file copies the vault while others use it: under another name first, read back and on disk before it gets its own, never over a
// file that is there. It knows no table's meaning, and sealed values stay sealed in the copy.
package main

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// backupTemp stands between the name of a backup and random digits while it is being made.
const backupTemp = ".tai-part-"

// What keeps a backup from being made before anything is written.
var (
	errBackupTaken  = errors.New("is there already and is left as it is; choose another name")
	errBackupSelf   = errors.New("is the vault itself; choose another name")
	errBackupEmpty  = errors.New("nothing is stored yet, so there is nothing to back up")
	errBackupBroken = errors.New("is not what the vault holds and was removed; run tai vault check")
)

// backupInfo says what a backup is. Bytes is the file's size.
type backupInfo struct {
	Path   string
	Bytes  int64
	Schema int
	Rows   map[string]int64 // by table
	Seal   sealInfo         // what opens its sealed values
}

// backup writes a copy of one consistent state of the vault to a new file (0600) at target, an absolute path in a folder that is
// there. Others may write meanwhile. The copy is one file without a journal, and holds no free pages with what was deleted. It is
// compared with the vault before it gets its name; a fault leaves nothing.
func (v *vault) backup(ctx context.Context, target string) (info backupInfo, err error) {
	defer wrapDeed(&err, "back up to %s", target)
	if v.path == vaultNowhere {
		return info, errBackupEmpty
	}
	if target, err = v.backupTarget(target); err != nil {
		return info, err
	}
	temp, err := os.CreateTemp(filepath.Dir(target), filepath.Base(target)+backupTemp+"*")
	if err != nil {
		return info, backupFault(err)
	}
	defer func() { // the temporary name is gone in the end, whatever came of it; with SQLite's journal, where it left one
		for _, name := range []string{temp.Name(), temp.Name() + "-journal"} {
			if gone := os.Remove(name); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = joinErrors(err, gone)
			}
		}
	}()
	if err := joinErrors(temp.Chmod(0o600), temp.Close()); err != nil {
		return info, backupFault(err)
	}
	if info, err = v.copyInto(ctx, temp.Name()); err != nil {
		return info, backupFault(err)
	}
	info.Path = target
	if err := syncPath(temp.Name()); err != nil {
		return info, backupFault(err)
	}
	if err := claim(temp.Name(), target); errors.Is(err, fs.ErrExist) {
		return info, errBackupTaken
	} else if err != nil {
		return info, backupFault(err)
	}
	return info, syncFolder(filepath.Dir(target))
}

// backupTarget gives the real path to write to, or says why that cannot be.
func (v *vault) backupTarget(target string) (string, error) {
	dir, there, err := realPath(filepath.Dir(target))
	if err != nil {
		return "", err
	}
	if !there {
		return "", errorf("folder %s is not there; make it first", filepath.Dir(target))
	}
	target = filepath.Join(dir, filepath.Base(target))
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if target == v.path+suffix {
			return "", errBackupSelf
		}
	}
	info, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return target, nil
	}
	if err != nil {
		return "", err
	}
	if own, err := os.Stat(v.path); err == nil {
		if real, err := os.Stat(target); err == nil && os.SameFile(own, real) {
			return "", errBackupSelf // by a link
		}
	}
	if info.IsDir() {
		return "", newError("is a folder; name a file in it")
	}
	return "", errBackupTaken
}

// copyInto fills the empty file temp and reads it back. The rows are counted before and after: where nobody wrote meanwhile, the copy
// must have the same.
func (v *vault) copyInto(ctx context.Context, temp string) (info backupInfo, err error) {
	before, err := v.stamp(ctx)
	if err != nil {
		return info, err
	}
	rows, err := v.countRows(ctx)
	if err != nil {
		return info, err
	}
	err = v.retry(ctx, func(context.Context) error {
		if err := os.Truncate(temp, 0); err != nil {
			return err
		}
		_, err := v.db.ExecContext(ctx, `VACUUM INTO ?`, temp)
		return err
	})
	if err != nil {
		if isDiskFull(err, runtime.GOOS) || driverCode(err) != 0 && errors.Is(vaultFault(temp, err), errVaultFull) {
			return info, errVaultFull
		}
		return info, v.fault(err)
	}
	after, err := v.stamp(ctx)
	if err != nil {
		return info, err
	}
	if info, err = readBackup(ctx, temp, v.keys); err != nil {
		return info, err
	}
	for table, n := range info.Rows {
		if before == after && rows[table] != n {
			return info, errorf("the copy has %d rows in %s, the vault %d: it %w", n, table, rows[table], errBackupBroken)
		}
	}
	if len(info.Rows) != len(rows) {
		return info, errorf("the copy has %d tables, the vault %d: it %w", len(info.Rows), len(rows), errBackupBroken)
	}
	return info, nil
}

// readBackup checks a copy as a file of its own, from its first byte to its last.
func readBackup(ctx context.Context, path string, keys vaultKeys) (info backupInfo, err error) {
	f, err := os.Open(path)
	if err != nil {
		return info, err
	}
	defer f.Close() // only read
	look, err := lookAtVault(f, path)
	if err != nil {
		return info, err
	}
	head, err := look.judge(f, len(vaultMigrations()))
	if err != nil {
		return info, errorf("the copy %w", err)
	}
	db, err := sql.Open("sqlite", vaultDSN(path, "mode=ro", "immutable=1"))
	if err != nil {
		return info, err
	}
	defer db.Close() // only read
	db.SetMaxOpenConns(1)
	copied := &vault{db: db, path: path, keys: keys, busyWait: vaultBusyWait, seals: newSealCache()}
	var sound string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&sound); err != nil {
		return info, err
	}
	if sound != "ok" {
		return info, errorf("the copy %w: %s", errBackupBroken, visibleLine(sound))
	}
	info = backupInfo{Bytes: look.size, Schema: head.version}
	if info.Rows, err = copied.countRows(ctx); err != nil {
		return info, err
	}
	info.Seal, err = copied.sealStatus(ctx)
	return info, err
}

// countRows counts the rows of each table, those of the index's own aside.
func (v *vault) countRows(ctx context.Context) (map[string]int64, error) {
	rows := map[string]int64{}
	err := v.view(ctx, func(tx *sql.Tx) error {
		names, err := tableNames(ctx, tx)
		if err != nil {
			return err
		}
		for _, name := range names {
			var n int64
			if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM `+quoteName(name)).Scan(&n); err != nil {
				return err
			}
			rows[name] = n
		}
		return nil
	})
	return rows, err
}

// tableNames lists the tables that hold rows, by name; a virtual table's rows stand in its shadow tables.
func tableNames(ctx context.Context, tx *sql.Tx) (names []string, err error) {
	err = eachRow(ctx, tx, func(r *sql.Rows) error {
		var name string
		err := r.Scan(&name)
		names = append(names, name)
		return err
	}, `
		SELECT name
		FROM pragma_table_list
		WHERE schema = 'main' AND type IN ('table', 'shadow') AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
		ORDER BY name`)
	return names, err
}

// quoteName writes a name of the schema as SQL.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// backupFault calls a full disk by its name; it is that of the copy, which the deed names.
func backupFault(err error) error {
	if isDiskFull(err, runtime.GOOS) {
		return errVaultFull
	}
	return err
}

// backupLeftovers lists what backups that were killed left in a folder.
func backupLeftovers(dir string) (paths []string, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	for {
		names, err := f.Readdirnames(256)
		for _, name := range names {
			if strings.Contains(name, backupTemp) || strings.HasPrefix(name, vaultTemp) {
				paths = append(paths, filepath.Join(dir, name))
			}
		}
		if errors.Is(err, io.EOF) {
			return paths, nil
		}
		if err != nil {
			return paths, err
		}
	}
}
