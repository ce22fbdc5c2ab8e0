// This file changes the vault's seal: sealing, opening, another key, another way of wrapping it. Each change rewrites what it must in one
// transaction and then wipes the bytes from before it. It knows no command and asks nobody.
package main

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"time"
)

const (
	scrubOpenWait = 2 * time.Second  // how long an open waits to finish a wipe that was cut short
	scrubWait     = 10 * time.Second // how long a change of the seal waits for others to let the old bytes go
)

var (
	errNotSealed  = errors.New("the vault is not sealed; tai vault seal seals it")
	errNotWiped   = errors.New("old bytes may still be in the vault's file, because other processes are reading it; the next command that writes wipes them")
	errOffUnknown = errors.New("the vault's seal is off, and nothing on this machine says that tai vault unseal did that: what is stored stands in the clear. tai vault seal seals it; tai vault unseal says that it is meant")
	errNothingNew = errors.New("nothing to change") // of a maker to reseal
)

// resealed is what a change of the seal came to.
type resealed struct {
	From, To sealState
	OldKey   string // path of the key file that older copies of the vault still need; "" where there is none
	Changed  bool
	Unwiped  error // nil when no old byte is left
}

// sealWithKeyFile seals by a new key file, unless it is sealed by one already.
func (v *vault) sealWithKeyFile(ctx context.Context) (_ resealed, err error) {
	defer wrapDeed(&err, "seal the vault")
	return v.reseal(ctx, false, func(from *openedSeal) (*openedSeal, error) {
		if from.state.Kind == sealByKeyFile {
			return nil, errNothingNew
		}
		return sealByFile(v.keys.Dir)
	})
}

// sealWithPassphrase seals by a passphrase. Where one was in use it only wraps the data key anew; else the data key is a new one, for the
// old one can be had from older copies of vault and key file.
func (v *vault) sealWithPassphrase(ctx context.Context, passphrase secret) (_ resealed, err error) {
	defer wrapDeed(&err, "seal the vault")
	if err := checkPassphrase(passphrase); err != nil {
		return resealed{}, err
	}
	return v.reseal(ctx, false, func(from *openedSeal) (*openedSeal, error) {
		var key []byte
		if from.state.Kind == sealByPassphrase {
			key = from.key
		}
		to := newOpenedSeal(sealByPassphrase, key, from.state.Key)
		to.state.Rounds = sealRounds
		wrapping, err := v.keys.derive(passphrase, to.state.Salt, sealRounds)
		if err != nil {
			return nil, err
		}
		return to, to.wrap(wrapping)
	})
}

// unseal opens every value for good.
func (v *vault) unseal(ctx context.Context) (_ resealed, err error) {
	defer wrapDeed(&err, "unseal the vault")
	return v.reseal(ctx, false, func(from *openedSeal) (*openedSeal, error) {
		if from.state.Kind == sealOff && !offUnwitnessed(from.state, v.keys.Dir) {
			return nil, errNothingNew
		}
		return sealNone(v.keys.Dir)
	})
}

// rekey seals every value with a new data key: by a new key file, or with the passphrase as it is.
func (v *vault) rekey(ctx context.Context) (_ resealed, err error) {
	defer wrapDeed(&err, "rekey the vault")
	return v.reseal(ctx, true, func(from *openedSeal) (*openedSeal, error) {
		switch from.state.Kind {
		case sealByKeyFile:
			return sealByFile(v.keys.Dir)
		case sealByPassphrase:
			to := newOpenedSeal(sealByPassphrase, nil, "")
			to.state.Salt, to.state.Rounds = from.state.Salt, from.state.Rounds
			return to, to.wrap(from.wrapping)
		}
		return nil, errNotSealed
	})
}

// settleSeal seals a vault from before the seal, and finishes a wipe that was cut short. It is called once, at an open for writing.
func (v *vault) settleSeal(ctx context.Context) error {
	return v.settleSealFor(ctx, scrubOpenWait, scrubWait)
}

func (v *vault) settleSealFor(ctx context.Context, openWait, wait time.Duration) (err error) {
	var row string
	var unwiped bool
	err = v.view(ctx, func(tx *sql.Tx) (err error) {
		if row, err = storedSeal(ctx, tx); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM settings WHERE key = ?)`, settingScrub).Scan(&unwiped)
	})
	switch {
	case err != nil:
		return err
	case row == "":
		r, err := v.resealFor(ctx, wait, false, func(from *openedSeal) (*openedSeal, error) {
			if from.text != "" {
				return nil, errNothingNew // another process has just sealed it
			}
			return sealByFile(v.keys.Dir)
		})
		if errors.Is(err, errSealStripped) {
			return nil // whoever needs a sealed value is told
		}
		if err != nil {
			return errorf("seal vault %s: %w", v.path, err)
		}
		v.unwiped = r.Unwiped
	case unwiped:
		v.unwiped = v.scrub(ctx, openWait)
	}
	if state, err := parseSealState(row); row != "" && err == nil && offUnwitnessed(state, v.keys.Dir) {
		v.unwitnessed = errOffUnknown
	}
	return nil
}

// reseal replaces the seal by what maker makes of it, or leaves it where that is errNothingNew. wrapping: maker needs the key that wraps the
// data key. A key file that came to no use is removed again.
//
//go:noinline for size: it is called in many places
func (v *vault) reseal(ctx context.Context, wrapping bool, maker func(from *openedSeal) (*openedSeal, error)) (resealed, error) {
	return v.resealFor(ctx, scrubWait, wrapping, maker)
}

// resealFor is reseal with its own bound on the wait for others.
func (v *vault) resealFor(ctx context.Context, wait time.Duration, wrapping bool, maker func(from *openedSeal) (*openedSeal, error)) (r resealed, err error) {
	for range sealTries {
		var row string
		err := v.view(ctx, func(tx *sql.Tx) (err error) {
			row, err = storedSeal(ctx, tx)
			return err
		})
		if err != nil {
			return r, err
		}
		from, err := v.unlock(ctx, row, wrapping)
		if err != nil {
			return r, err
		}
		to, err := maker(from)
		if errors.Is(err, errNothingNew) {
			return resealed{From: from.state, To: from.state}, nil
		}
		if err != nil {
			return r, err
		}
		if from.sealer.on() && !to.sealer.on() { // a crash amid the change may leave open values in the journal, of no commit and under the old seal
			if err := v.withTx(ctx, markUnwiped(ctx)); err != nil {
				return r, err
			}
		}
		err = v.withTx(ctx, func(tx *sql.Tx) error { return replaceSeal(ctx, tx, from, to) })
		if err != nil && !errors.Is(err, errVaultUnsure) { // else a crash may still bring it into use
			err = joinErrors(err, v.dropKeyFile(ctx, to))
		}
		if errors.Is(err, errSealMoved) {
			continue
		}
		if err != nil {
			return r, err
		}
		v.seals.put(to)
		if from.state.Kind == sealOff && from.state.ID != "" && v.keys.Dir != "" {
			_ = os.Remove(offWitnessPath(v.keys.Dir, from.state.ID)) // it bears witness to nothing now; left behind it would to an old copy
		}
		r = resealed{From: from.state, To: to.state, Changed: true, Unwiped: v.scrub(ctx, wait)}
		if from.state.Kind == sealByKeyFile {
			r.OldKey = keyFilePath(v.keys.Dir, from.state.ID)
		}
		return r, nil
	}
	return r, v.fault(errVaultBusy)
}

// replaceSeal is the one transaction of a change.
func replaceSeal(ctx context.Context, tx *sql.Tx, from, to *openedSeal) error {
	if row, err := storedSeal(ctx, tx); err != nil {
		return err
	} else if row != from.text {
		return errSealMoved
	}
	if from.key == nil || string(from.key) != string(to.key) {
		for _, c := range sealedColumns() {
			if err := rewriteColumn(ctx, tx, c, from.sealer, to.sealer); err != nil {
				return err
			}
		}
	}
	if err := putSetting(ctx, tx, settingSeal, to.text); err != nil {
		return err
	}
	return markUnwiped(ctx)(tx)
}

// markUnwiped says that old bytes are to be wiped. The mark has a number of its own, so that whoever wipes takes away no mark but the one that
// was there when the wipe began.
func markUnwiped(ctx context.Context) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		return putSetting(ctx, tx, settingScrub, hex.EncodeToString(randomBytes(sealIDSize)))
	}
}

// rewriteColumn opens each value with from and stores it as to seals it. Rows are read one at a time: all values together may be large.
func rewriteColumn(ctx context.Context, tx *sql.Tx, c sealedColumn, from, to *sealer) error {
	var rows [][]string
	err := eachRow(ctx, tx, func(r *sql.Rows) error {
		key := make([]string, len(c.Row))
		into := make([]any, len(key))
		for i := range key {
			into[i] = &key[i]
		}
		rows = append(rows, key)
		return r.Scan(into...)
	}, `SELECT `+strings.Join(c.Row, ", ")+` FROM `+c.Table+` `+c.Where)
	if err != nil {
		return err
	}
	where := ` WHERE ` + strings.Join(c.Row, ` = ? AND `) + ` = ?`
	for _, key := range rows {
		args := make([]any, len(key))
		for i, part := range key {
			args[i] = part
		}
		var value []byte
		if err := tx.QueryRowContext(ctx, `SELECT `+c.Column+` FROM `+c.Table+where, args...).Scan(&value); err != nil {
			return err
		}
		plain, err := from.open(value, c.Table, c.Column, key...)
		if err != nil {
			return err
		}
		var stored any = to.seal(plain, c.Table, c.Column, key...)
		if c.Text && !to.on() {
			stored = string(plain)
		}
		if _, err := tx.ExecContext(ctx, `UPDATE `+c.Table+` SET `+c.Column+` = ?`+where, append([]any{stored}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// dropKeyFile removes the key file of a seal that did not come into use. In doubt it stays: an unused one harms nobody.
func (v *vault) dropKeyFile(ctx context.Context, o *openedSeal) error {
	path := keyFilePath(v.keys.Dir, o.state.ID)
	switch {
	case o.state.Kind == sealOff && v.keys.Dir != "":
		path = offWitnessPath(v.keys.Dir, o.state.ID)
	case o.state.Kind != sealByKeyFile:
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	var row string
	err := v.view(ctx, func(tx *sql.Tx) (err error) {
		row, err = storedSeal(ctx, tx)
		return err
	})
	if err != nil || row == o.text {
		return nil
	}
	return os.Remove(path)
}

// scrub wipes what the last change of the seal left behind: VACUUM writes the file anew without free pages and gaps, and emptying the journal
// takes away the pages as they were. The mark goes only when both are done. limit bounds the wait for other processes.
func (v *vault) scrub(ctx context.Context, limit time.Duration) error {
	mark, err := v.setting(ctx, settingScrub)
	if errors.Is(err, errNotFound) {
		return nil
	}
	if err == nil {
		err = retryFor(ctx, limit, func(context.Context) error {
			_, err := v.db.ExecContext(ctx, `VACUUM`)
			return err
		})
	}
	if err == nil {
		err = retryFor(ctx, limit, func(context.Context) error { return v.emptyJournal(ctx) })
	}
	if err == nil {
		err = v.withTx(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `DELETE FROM settings WHERE key = ? AND value = ?`, settingScrub, mark)
			return err
		})
	}
	if errors.Is(err, errVaultBusy) {
		return errNotWiped
	}
	if err != nil {
		return errorf("old bytes may still be in the vault's file: %w", v.fault(err))
	}
	return nil
}

// emptyJournal moves the journal into the file and cuts it to nothing, or is errJournalHeld.
func (v *vault) emptyJournal(ctx context.Context) error {
	var busy, frames, moved int
	if err := v.db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &frames, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return errJournalHeld
	}
	return nil
}
