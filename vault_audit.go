// This file holds the heads of the run logs (audit_runs) and the key that signs them. It knows no log file: what a head says is its
// caller's word, and that it was not changed since is this file's.
package main

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"encoding/base64"
	"errors"
	"time"
)

// auditPublicSetting is the public key of the signing key settingAuditKey, base64.
const auditPublicSetting = "audit_public"

// errAuditKeyChanged says that the public key in the vault is not that of the signing key: then no head of this vault proves anything.
var errAuditKeyChanged = errors.New("the vault's public key for run logs is not that of its signing key: one of them was changed")

// putAuditHead signs a head and keeps it as the run's. It never goes back: a head of fewer lines than are on record changes nothing. The
// signing key is made with the first head, once, however many processes begin at a time. A head outlives the process when putAuditHead
// returns, and the machine some time after: without the last ones logs are longer than their heads, which accuses nobody.
func (v *vault) putAuditHead(ctx context.Context, h auditHead) (err error) {
	defer wrapDeed(&err, "put run %s on record", h.Run)
	err = v.underSeal(ctx, v.withLateTx, func(tx *sql.Tx, s *sealer) error {
		key, err := readSigningKey(ctx, tx, s)
		if err != nil {
			return err
		}
		if err := publish(ctx, tx, key); err != nil {
			return err
		}
		return writeAuditHead(ctx, tx, h, key)
	})
	if !errors.Is(err, errNotFound) {
		return err
	}
	return v.underSeal(ctx, v.withTaleTx, func(tx *sql.Tx, s *sealer) error { // a key is on disk before it signs anything
		key, err := v.signingKey(ctx, tx, s)
		if err != nil {
			return err
		}
		return writeAuditHead(ctx, tx, h, key)
	})
}

// renewAuditHead is putAuditHead for a run that is on record: it gives the head that is on record then, signed, and errNotFound for a run that
// is not.
func (v *vault) renewAuditHead(ctx context.Context, h auditHead) (renewed auditHead, err error) {
	defer wrapDeed(&err, "renew the head of run %s", h.Run)
	err = v.underSeal(ctx, v.withTaleTx, func(tx *sql.Tx, s *sealer) error {
		if _, err := readAuditRow(ctx, tx, h.Run); err != nil {
			return err
		}
		key, err := v.signingKey(ctx, tx, s)
		if err != nil {
			return err
		}
		if err := writeAuditHead(ctx, tx, h, key); err != nil {
			return err
		}
		renewed, err = readAuditRow(ctx, tx, h.Run)
		renewed.Key = ed25519.PublicKey(key[ed25519.SeedSize:])
		return err
	})
	return renewed, err
}

// writeAuditHead stores a head unless more lines are on record.
func writeAuditHead(ctx context.Context, tx *sql.Tx, h auditHead, key ed25519.PrivateKey) error {
	h, err := h.signed(key)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO audit_runs (run, origin, path, lines, head, signature, started, updated)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (run) DO UPDATE SET
			origin = excluded.origin,
			path = excluded.path,
			lines = excluded.lines,
			head = excluded.head,
			signature = excluded.signature,
			started = excluded.started,
			updated = excluded.updated
		WHERE excluded.lines >= audit_runs.lines`,
		h.Run, h.Origin, h.Path, h.Lines, h.Hash, h.Signature, h.Started.Unix(), h.Updated.Unix())
	return err
}

// signingKey reads the key, or makes it where there is none yet. The public key beside it is always that of the seed.
func (v *vault) signingKey(ctx context.Context, tx *sql.Tx, s *sealer) (ed25519.PrivateKey, error) {
	key, err := readSigningKey(ctx, tx, s)
	if errors.Is(err, errNotFound) {
		key, err = v.makeSigningKey(ctx, tx, s)
	}
	if err != nil {
		return nil, err
	}
	return key, publish(ctx, tx, key)
}

// publish puts the public key beside the seed, where it is not there as it must be.
func publish(ctx context.Context, tx *sql.Tx, key ed25519.PrivateKey) error {
	public, err := readPublicKey(ctx, tx)
	if err == nil && public.Equal(key.Public()) {
		return nil
	}
	if err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	return putSetting(ctx, tx, auditPublicSetting, base64.StdEncoding.EncodeToString(key[ed25519.SeedSize:]))
}

// sealedSetting gives a setting that is kept sealed, one of those that sealedColumns picks, or errNotFound.
func sealedSetting(ctx context.Context, tx *sql.Tx, s *sealer, key string) (secret, error) {
	var value []byte
	if err := tx.QueryRowContext(ctx, `SELECT value FROM settings WHERE key = ?`, key).Scan(&value); err != nil {
		return "", orNotFound(err)
	}
	plain, err := s.open(value, "settings", "value", key)
	return secret(plain), err
}

// putSealedSetting stores or replaces such a setting.
func putSealedSetting(ctx context.Context, tx *sql.Tx, s *sealer, key string, value secret) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO settings (key, value)
		VALUES (?, ?)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
		key, s.seal([]byte(value.reveal()), "settings", "value", key))
	return err
}

func (v *vault) makeSigningKey(ctx context.Context, tx *sql.Tx, s *sealer) (ed25519.PrivateKey, error) {
	seed, err := newAuditKey(v.random)
	if err != nil {
		return nil, err
	}
	if err := putSealedSetting(ctx, tx, s, settingAuditKey, seed); err != nil {
		return nil, err
	}
	return auditKeyOf(seed)
}

func readSigningKey(ctx context.Context, tx *sql.Tx, s *sealer) (ed25519.PrivateKey, error) {
	seed, err := sealedSetting(ctx, tx, s, settingAuditKey)
	if err != nil {
		return nil, err
	}
	return auditKeyOf(seed)
}

// readPublicKey gives the public key, nil where the stored one is none, or errNotFound.
func readPublicKey(ctx context.Context, tx *sql.Tx) (ed25519.PublicKey, error) {
	var text string
	if err := tx.QueryRowContext(ctx, `SELECT value FROM settings WHERE key = ?`, auditPublicSetting).Scan(&text); err != nil {
		return nil, orNotFound(err)
	}
	public, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return nil, nil // what was signed with it does not verify, and the next head puts it right
	}
	return public, nil
}

// auditHead gives the head on record of a run, verified; errNotFound where the run is not on record, errHeadForged where its row is not
// what tai wrote.
func (v *vault) auditHead(ctx context.Context, run string) (h auditHead, err error) {
	defer wrapDeed(&err, "read the head of run %s", quoteClip(run))
	err = v.view(ctx, func(tx *sql.Tx) (err error) {
		if h, err = readAuditRow(ctx, tx, run); err != nil {
			return err
		}
		h.Key, err = readPublicKey(ctx, tx)
		if errors.Is(err, errNotFound) {
			return nil // then the signature fits nothing
		}
		return err
	})
	if err == nil {
		err = h.verify()
	}
	return h, err
}

// auditHeads gives the heads of all runs on record, newest first. They are not verified, which takes 50 microseconds each: verify does it.
func (v *vault) auditHeads(ctx context.Context) (list []auditHead, err error) {
	defer wrapDeed(&err, "list the runs on record")
	err = v.view(ctx, func(tx *sql.Tx) error {
		public, err := readPublicKey(ctx, tx)
		if err != nil && !errors.Is(err, errNotFound) {
			return err
		}
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			h, err := scanAuditRow(r.Scan)
			h.Key = public
			list = append(list, h)
			return err
		}, auditRowColumns+` ORDER BY started DESC, run`)
	})
	return list, err
}

// checkAuditKey holds the public key against the signing key: errAuditKeyChanged where they are no pair, errNotFound where the vault has
// neither. It needs what opens the seal.
func (v *vault) checkAuditKey(ctx context.Context) (err error) {
	defer wrapDeed(&err, "check the signing key")
	return v.viewSealed(ctx, func(tx *sql.Tx, s *sealer) error {
		public, err := readPublicKey(ctx, tx)
		if err != nil {
			return err
		}
		key, err := readSigningKey(ctx, tx, s)
		if errors.Is(err, errNotFound) || err == nil && !public.Equal(key.Public()) {
			return errAuditKeyChanged
		}
		return err
	})
}

// auditRowColumns takes a row also where someone put values of other types into it: then its signature does not fit.
const auditRowColumns = `
	SELECT
		CAST(run AS TEXT),
		CAST(origin AS TEXT),
		CAST(path AS TEXT),
		CAST(lines AS INTEGER),
		CAST(head AS TEXT),
		CAST(signature AS BLOB),
		CAST(started AS INTEGER),
		CAST(updated AS INTEGER)
	FROM audit_runs`

func readAuditRow(ctx context.Context, tx *sql.Tx, run string) (auditHead, error) {
	h, err := scanAuditRow(tx.QueryRowContext(ctx, auditRowColumns+` WHERE run = ?`, run).Scan)
	return h, orNotFound(err)
}

func scanAuditRow(scan func(...any) error) (h auditHead, err error) {
	var started, updated int64
	err = scan(&h.Run, &h.Origin, &h.Path, &h.Lines, &h.Hash, &h.Signature, &started, &updated)
	h.Started, h.Updated = time.Unix(started, 0).UTC(), time.Unix(updated, 0).UTC()
	return h, err
}
