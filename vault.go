// This file opens the vault: it finds the one real file, refuses what is not ours or too new before anything is
// written, migrates, and hands out short transactions on one connection. It knows no table's meaning. Only vault files
// and those of the data tools name the SQLite driver; to the rest of the program a fault is one of the sentences below.
package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
)

const (
	vaultLockWait = 200 * time.Millisecond // SQLite's own wait for a lock, repeated up to vaultBusyWait
	vaultBusyWait = 10 * time.Second       // how long one operation waits for other processes in all
)

// vault is an open vault. One connection serves reads and writes in turn, so code inside a transaction must use the
// transaction and never a method of the vault. A process should open a vault once: where the system knows only
// POSIX locks, looking at a vault's header drops the locks of another connection of the same process.
type vault struct {
	db          *sql.DB
	path        string // the real path, links resolved; vaultNowhere for an empty vault that is not on disk
	mode        vaultMode
	unwritable  error // why it was opened for reading though it was to be written; nil otherwise
	now         func() time.Time
	keys        vaultKeys
	random      io.Reader     // for ids
	busyWait    time.Duration // see vaultBusyWait
	writes      atomic.Int64  // write transactions that have ended, but for those of withTaleTx and withLateTx
	seals       *sealCache
	unwitnessed error // that the seal is off and nobody here did that; nil else
	unwiped     error // what kept old bytes from being wiped at open; nil when nothing is left to wipe
}

// openVault opens <home>/vault.db. It refuses, without changing a byte, a file that is not a vault, is damaged at its
// head, or was written by a newer tai (errVaultForeign, errVaultDamaged, errVaultNewer). now gives row times, keys what
// opens the seal. The caller closes it.
func openVault(ctx context.Context, home string, mode vaultMode, now func() time.Time, keys vaultKeys) (*vault, error) {
	return openVaultAs(ctx, home, mode, now, keys, vaultMigrations())
}

// openVaultAs is openVault for a program whose newest schema is the last of migrations.
func openVaultAs(ctx context.Context, home string, mode vaultMode, now func() time.Time, keys vaultKeys, migrations []string) (*vault, error) {
	// OFD locks survive a close of another descriptor of the same file. Where they do not exist, or a first lock was
	// already taken in the other way, the ordinary ones serve as well as they always did.
	_, _ = sqlite.OFDLocking(true)
	path, exists, err := vaultPath(home)
	if err != nil {
		return nil, errorf("open vault: %w", err)
	}
	v := &vault{path: path, mode: mode, now: now, keys: keys, random: rand.Reader, busyWait: vaultBusyWait, seals: newSealCache()}
	switch {
	case !exists && mode == vaultRead:
		if err := v.openMemory(ctx, migrations); err != nil {
			return nil, errorf("open an empty vault: %w", err)
		}
		return v, nil
	case !exists:
		if v.path, err = createVault(ctx, home, keys.Dir, migrations); err != nil {
			return nil, err
		}
	}
	if err := v.openFile(ctx, migrations); err != nil {
		return nil, err
	}
	if mode == vaultWrite {
		if err := v.settleSeal(ctx); err != nil {
			return nil, joinErrors(err, v.close())
		}
	}
	return v, nil
}

// createVault makes the folder and a complete vault under another name, sealed by a key file in the folder keyDir, then gives it its
// own name only if nobody else did meanwhile: no process ever sees a half-made vault. It returns the real path.
func createVault(ctx context.Context, home, keyDir string, migrations []string) (path string, err error) {
	if err := makeHome(home); err != nil {
		return "", errorf("create vault: %w", err)
	}
	path, exists, err := vaultPath(home)
	if err != nil || exists {
		return path, err
	}
	defer wrapDeed(&err, "create vault")
	// SQLite would play a journal left behind by a vanished vault into the new one.
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return "", errorf("%s-wal belongs to a vault that is gone; put the vault back or move this file away", path)
		}
		return path, nil // another process has just made it
	}
	temp, err := os.CreateTemp(filepath.Dir(path), vaultTemp+"*")
	if err != nil {
		return "", vaultFault(path, err)
	}
	defer os.Remove(temp.Name()) // gone already when it was renamed
	if err := joinErrors(temp.Chmod(0o600), temp.Close()); err != nil {
		return "", err
	}
	seal, err := sealByFile(keyDir)
	if err != nil {
		return "", err
	}
	inUse := false
	defer func() {
		if !inUse {
			err = joinErrors(err, os.Remove(keyFilePath(keyDir, seal.state.ID)))
		}
	}()
	if err := makeVaultIn(ctx, temp.Name(), seal.text, migrations); err != nil {
		return "", vaultFault(path, err)
	}
	err = claim(temp.Name(), path)
	if inUse = !errors.Is(err, fs.ErrExist); inUse && err != nil { // it may have come far enough
		return "", err
	}
	return path, syncFolder(filepath.Dir(path))
}

// makeVaultIn makes a vault of an empty file.
func makeVaultIn(ctx context.Context, name, seal string, migrations []string) error {
	// Nobody waits for this file yet, so it needs no journal on disk: one sync at the end makes it durable.
	db, err := sql.Open("sqlite", vaultDSN(name, "mode=rw", "_pragma=journal_mode(MEMORY)", "_pragma=synchronous(OFF)"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	err = migrate(ctx, db, migrations)
	if err == nil {
		_, err = db.ExecContext(ctx, `INSERT INTO settings (key, value) VALUES (?, ?)`, settingSeal, seal)
	}
	if err == nil {
		_, err = db.ExecContext(ctx, `PRAGMA journal_mode=WAL`)
	}
	if err := joinErrors(err, db.Close()); err != nil {
		return err
	}
	return syncPath(name)
}

// connect opens the one connection on the file and reads the schema's number through it.
func (v *vault) connect(ctx context.Context, params ...string) (version int, err error) {
	params = append(params, "_txlock=immediate", fmt.Sprintf("_pragma=busy_timeout(%d)", vaultLockWait.Milliseconds()),
		"_pragma=synchronous(FULL)", "_pragma=secure_delete(ON)")
	db, err := sql.Open("sqlite", vaultDSN(v.path, params...))
	if err != nil {
		return 0, err
	}
	db.SetMaxOpenConns(1)
	err = v.retry(ctx, func(context.Context) error {
		return db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version)
	})
	if err != nil {
		return 0, joinErrors(err, db.Close())
	}
	v.db = db
	return version, nil
}

// openFile checks the file, opens it and brings its schema up to date.
func (v *vault) openFile(ctx context.Context, migrations []string) error {
	head, err := checkVaultFile(v.path, v.mode, len(migrations))
	if err != nil {
		return err
	}
	if head.journal {
		// The newest schema number may stand in the journal alone. A connection that cannot write leaves both files
		// as they are when it closes.
		version, err := v.connect(ctx, "mode=ro")
		if err == nil {
			err = v.close()
		}
		if err == nil && version > len(migrations) {
			err = errVaultNewer
		}
		if err != nil && v.mode == vaultWrite || errors.Is(err, errVaultNewer) {
			return v.fault(err)
		}
	}
	version, err := v.connect(ctx, "mode=rw")
	if err != nil && v.mode == vaultRead && isCannotWrite(err) {
		version, err = v.connectLocked(ctx, head)
	}
	if v.mode == vaultRead && isUnshared(err) {
		version, err = v.connectAlone(ctx, err)
	}
	if err != nil {
		return v.fault(err)
	}
	if err := v.settle(ctx, version, head, migrations); err != nil {
		return joinErrors(v.fault(err), v.close())
	}
	return nil
}

// connectLocked reads a vault whose file or folder cannot be written: with the journal files that are there, or, when
// there is nothing in the journal, as a file that nobody changes.
func (v *vault) connectLocked(ctx context.Context, head vaultHead) (version int, err error) {
	if head.journal {
		return v.connect(ctx, "mode=ro")
	}
	return v.connect(ctx, "mode=ro", "immutable=1")
}

// connectAlone reads a vault whose "-shm" cannot grow, as on a full disk. With the whole file locked, the journal's index needs no
// shared memory (sqlite.org/wal.html, section 8, "Use of WAL Without Shared-Memory"). Others wait meanwhile; where one of them
// has the vault open, its "-shm" is there already and this is not needed. unshared is the error to give when that fails too.
func (v *vault) connectAlone(ctx context.Context, unshared error) (version int, err error) {
	version, err = v.connect(ctx, "mode=rw", "_pragma=locking_mode(EXCLUSIVE)") // before the first read, which would share
	if isUnshared(err) || isCannotWrite(err) {
		err = unshared
	}
	return version, err
}

// settle migrates an older vault and turns the write-ahead journal on where a backup had turned it off.
func (v *vault) settle(ctx context.Context, version int, head vaultHead, migrations []string) error {
	switch {
	case version > len(migrations):
		return errVaultNewer
	case version < len(migrations):
		err := v.retry(ctx, func(context.Context) error { return migrate(ctx, v.db, migrations) })
		if why := v.fault(err); v.mode == vaultRead && version >= vaultReadsFrom && (errors.Is(why, errVaultReadOnly) || errors.Is(why, errVaultFull)) {
			return nil
		}
		if err != nil {
			return errorf("update the schema: %w", err)
		}
	}
	if v.mode == vaultWrite && !head.wal {
		if _, err := v.db.ExecContext(ctx, `PRAGMA journal_mode=WAL`); err != nil {
			return err
		}
	}
	return nil
}

// openMemory stands for a vault that does not exist yet.
func (v *vault) openMemory(ctx context.Context, migrations []string) error {
	v.path = vaultNowhere
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1) // a second connection would be a second, empty database
	if err := migrate(ctx, db, migrations); err != nil {
		return joinErrors(err, db.Close())
	}
	v.db = db
	return nil
}

// migrate runs each migration that the database has not had, each in one transaction together with its number, so that
// two processes that start at once run it once.
func migrate(ctx context.Context, db *sql.DB, migrations []string) error {
	for i, m := range migrations {
		err := func() error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback() // no effect once committed
			var version int
			if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil || version > i {
				return err
			}
			if _, err := tx.ExecContext(ctx, m+fmt.Sprintf(";\nPRAGMA user_version = %d", i+1)); err != nil {
				return errorf("migration %d: %w", i+1, err)
			}
			return tx.Commit()
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

// close ends all use of the vault.
func (v *vault) close() error {
	err := v.db.Close()
	if err != nil {
		return errorf("close %w", v.fault(err))
	}
	return nil
}

// withTx runs f in one write transaction (BEGIN IMMEDIATE), committed and on disk when it returns nil. f must not keep
// tx, must not call methods of v, and is run at most once.
func (v *vault) withTx(ctx context.Context, f func(tx *sql.Tx) error) error {
	defer v.writes.Add(1)
	return v.write(ctx, vaultSynced, f)
}

// withTaleTx is withTx for what only tells what came to pass: conversations, records, states before a change. It leaves the stamp as it is, since
// such rows are written with every message.
func (v *vault) withTaleTx(ctx context.Context, f func(tx *sql.Tx) error) error {
	return v.write(ctx, vaultSynced, f)
}

// withLateTx is withTaleTx for what may be lost with the machine's power, though never with the process: it is on disk with the next transaction
// that is synced, or when the vault is closed. It spares the wait for the disk.
func (v *vault) withLateTx(ctx context.Context, f func(tx *sql.Tx) error) error {
	return v.write(ctx, vaultLate, f)
}

func (v *vault) write(ctx context.Context, how vaultSync, f func(tx *sql.Tx) error) error {
	if v.mode == vaultRead && v.path == vaultNowhere {
		return errorf("%w: nothing is stored yet, and the vault %w", errNotFound, errVaultReading)
	}
	if v.unwritable != nil {
		return v.unwritable
	}
	if v.mode == vaultRead {
		return errorf("vault %s %w", v.path, errVaultReading)
	}
	return v.inTx(ctx, nil, how, f)
}

// vaultStamp names one state of the vault. Whoever takes a stamp, then reads, and later finds the same stamp would read the same, but for what
// this process wrote by withTaleTx and withLateTx.
type vaultStamp struct {
	others int64 // commits of other connections
	own    int64
}

// stamp costs a fraction of a read. The error is that of a vault which cannot be read at this moment.
func (v *vault) stamp(ctx context.Context) (vaultStamp, error) {
	s := vaultStamp{own: v.writes.Load()}
	conn, err := v.db.Conn(ctx)
	if err != nil {
		return s, v.fault(err)
	}
	defer conn.Close() // gives it back
	// The answer is in memory, so nothing has to watch ctx meanwhile.
	err = conn.QueryRowContext(context.WithoutCancel(ctx), `PRAGMA data_version`).Scan(&s.others)
	return s, v.fault(err)
}

// view runs f on one consistent state of the vault, without the right to write.
//
//go:noinline for size: it is called in many places
func (v *vault) view(ctx context.Context, f func(tx *sql.Tx) error) error {
	return v.inTx(ctx, &sql.TxOptions{ReadOnly: true}, vaultSynced, f)
}

// vaultSync says when a commit is on disk; see withLateTx. Its values are those of PRAGMA synchronous, which a write-ahead journal needs at
// NORMAL to stay whole.
type vaultSync string

const (
	vaultSynced vaultSync = "FULL"
	vaultLate   vaultSync = "NORMAL"
)

func (v *vault) inTx(ctx context.Context, o *sql.TxOptions, how vaultSync, f func(tx *sql.Tx) error) error {
	var conn *sql.Conn
	var tx *sql.Tx
	err := v.retry(ctx, func(wait context.Context) (err error) {
		if conn == nil {
			if conn, err = v.db.Conn(wait); err != nil {
				return err
			}
			if how != vaultSynced {
				if _, err = conn.ExecContext(ctx, `PRAGMA synchronous=`+string(how)); err != nil {
					return err
				}
			}
		}
		tx, err = conn.BeginTx(ctx, o)
		return err
	})
	if conn != nil {
		defer conn.Close() // gives it back; says nothing that Commit did not
		if how != vaultSynced {
			defer syncAgain(context.WithoutCancel(ctx), conn)
		}
	}
	if err != nil {
		return v.fault(err)
	}
	defer tx.Rollback() // no effect once committed
	committing := false
	if err = f(tx); err == nil {
		committing = true
		err = tx.Commit()
	}
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		err = ctx.Err() // database/sql has rolled back on its own; why is in the context alone
	}
	if o != nil { // only read
		return v.fault(err)
	}
	return vaultOutcome(v.fault(err), err, committing)
}

// syncAgain puts a connection back to synced commits; one that cannot be is not used again.
func syncAgain(ctx context.Context, conn *sql.Conn) {
	if _, err := conn.ExecContext(ctx, `PRAGMA synchronous=`+string(vaultSynced)); err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes it, which is all that it can say
	}
}

// retry runs f again while others hold a lock, up to busyWait in all. wait ends then, for what f waits for itself.
func (v *vault) retry(ctx context.Context, f func(wait context.Context) error) error {
	return retryFor(ctx, v.busyWait, f)
}

func retryFor(ctx context.Context, limit time.Duration, f func(wait context.Context) error) error {
	wait, cancel := context.WithTimeoutCause(ctx, limit, errVaultBusy)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := f(wait)
		if wait.Err() != nil && (isBusy(err) || errors.Is(err, wait.Err())) {
			return context.Cause(wait)
		}
		if !isBusy(err) {
			return err
		}
		select {
		case <-wait.Done():
		case <-time.After(pause):
		}
	}
}

// fault turns an error of the driver into one of ours; others pass as they are.
func (v *vault) fault(err error) error { return vaultFault(v.path, err) }

// orNotFound gives a missing row its name in this program.
//
//go:noinline for size: it is called in many places
func orNotFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return errNotFound
	}
	return err
}

// execOne runs a statement that must change a row; errNotFound when it changed none.
func execOne(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
	res, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		err = errNotFound
	}
	return err
}

// eachRow runs a query and hands each row to f.
func eachRow(ctx context.Context, tx *sql.Tx, f func(*sql.Rows) error, query string, args ...any) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// hasTable reports a table: a vault of an older schema that cannot be written lacks the newer ones.
func hasTable(ctx context.Context, tx *sql.Tx, name string) (there bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?)`, name).Scan(&there)
	return there, err
}

// vaultAlphabet is Crockford's base 32 in lower case: no i, l, o, u.
const vaultAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// newID makes an id that taken does not know: the prefix and 4 letters, one more after each clash.
func (v *vault) newID(prefix string, taken func(id string) (bool, error)) (string, error) {
	for n := 4; n <= 16; n++ {
		b := make([]byte, n)
		if _, err := io.ReadFull(v.random, b); err != nil {
			return "", errorf("make an id: %w", err)
		}
		for i := range b {
			b[i] = vaultAlphabet[b[i]%32]
		}
		id := prefix + string(b)
		if is, err := taken(id); err != nil || !is {
			return id, err
		}
	}
	return "", newError("make an id: every one tried is taken")
}

// spokenID reads an id as a person may type it: case aside, and o, i, l for 0 and 1.
func spokenID(id string) string {
	prefix, rest, ok := strings.Cut(strings.ToLower(strings.TrimSpace(id)), "-")
	if !ok {
		return id
	}
	return prefix + "-" + strings.NewReplacer("o", "0", "i", "1", "l", "1").Replace(rest)
}
