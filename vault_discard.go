// This file gives up what nothing opens any more: the sealed values of a vault whose key file or passphrase is lost, or single values that do
// not fit their seal. All else in the vault stays. It knows no command and asks nobody.
package main

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
)

// lostServer is a server some of whose sealed values are lost. Their names are sealed with them.
type lostServer struct {
	Name    string `json:"name"`
	Env     bool   `json:"env"`
	Headers bool   `json:"headers"`
}

// lostValues is what a discard takes away.
type lostValues struct {
	Secrets  []secretInfo
	Servers  []lostServer
	AuditKey bool
	Heads    int    // runs on record
	Public   string // fingerprint of the public key that their heads were signed with, "" where there is none
}

func (l *lostValues) none() bool { return len(l.Secrets) == 0 && len(l.Servers) == 0 && !l.AuditKey }

// lostSeal reports an error of opening the seal that no other try can mend. A key file that cannot be read, or whose folder is not known, is
// not lost, nor is a passphrase that was typed wrong.
func (v *vault) lostSeal(err error) bool {
	if errors.Is(err, errKeyFileMissing) {
		return v.keys.Dir != ""
	}
	return slices.ContainsFunc([]error{errWrongKeyFile, errKeyFileDamaged, errForgotten, errSealDamaged, errSealRounds, errSealStripped}, func(e error) bool {
		return errors.Is(err, e)
	})
}

// lost tells what a discard would take away, and why the seal as a whole does not open, nil where it does. It changes nothing.
func (v *vault) lost(ctx context.Context) (l lostValues, why error, err error) {
	defer wrapDeed(&err, "look for what nothing opens")
	from, why, err := v.openOrLost(ctx)
	if err != nil {
		return l, nil, err
	}
	err = v.view(ctx, func(tx *sql.Tx) error { return findLost(ctx, tx, from.sealer, &l) })
	return l, why, err
}

// openOrLost opens the seal. Where it is lost it gives one that opens nothing sealed, with the reason.
func (v *vault) openOrLost(ctx context.Context) (from *openedSeal, why, err error) {
	var row string
	err = v.view(ctx, func(tx *sql.Tx) (err error) {
		row, err = storedSeal(ctx, tx)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	from, why = v.unlock(ctx, row, false)
	switch {
	case why == nil:
		return from, nil, nil
	case !v.lostSeal(why):
		return nil, nil, why
	case errors.Is(why, errSealStripped): // what was stored open since then still reads
		return &openedSeal{text: row, sealer: &sealer{}}, why, nil
	}
	return &openedSeal{text: row, sealer: newSealer(randomBytes(sealKeySize))}, why, nil
}

// discard drops every value that does not open. Where the seal as a whole is lost, what is left is sealed by a new key file. Servers that
// lose something are switched off in every profile and marked; a lost signing key is replaced, and the heads that its public key vouches
// for are signed with the new one. All of it happens in one transaction.
func (v *vault) discard(ctx context.Context) (l lostValues, r resealed, err error) {
	defer wrapDeed(&err, "discard what nothing opens")
	for range sealTries {
		from, why, err := v.openOrLost(ctx)
		if err != nil {
			return l, r, err
		}
		to := from
		if why != nil {
			if to, err = sealByFile(v.keys.Dir); err != nil {
				return l, r, err
			}
		}
		err = v.withTx(ctx, func(tx *sql.Tx) error {
			l = lostValues{}
			if err := findLost(ctx, tx, from.sealer, &l); err != nil {
				return err
			}
			return v.dropLost(ctx, tx, from, to, l)
		})
		if err != nil && why != nil && !errors.Is(err, errVaultUnsure) {
			err = joinErrors(err, v.dropKeyFile(ctx, to))
		}
		if errors.Is(err, errSealMoved) {
			continue
		}
		if err != nil {
			return l, r, err
		}
		v.seals.put(to)
		return l, resealed{From: from.state, To: to.state, Changed: true, Unwiped: v.scrub(ctx, scrubWait)}, nil
	}
	return l, r, v.fault(errVaultBusy)
}

// findLost collects what s does not open.
func findLost(ctx context.Context, tx *sql.Tx, s *sealer, l *lostValues) error {
	servers := map[string]*lostServer{}
	for _, c := range sealedColumns() {
		err := c.each(ctx, tx, func(row []string, value []byte) {
			if _, err := s.open(value, c.Table, c.Column, row...); err == nil || c.Table == "mcp_servers" && isEmptySealed(value) {
				return
			}
			switch c.Table {
			case "secrets":
				l.Secrets = append(l.Secrets, secretInfo{Profile: row[0], Name: row[1]})
			case "settings":
				l.AuditKey = true
			default:
				if servers[row[0]] == nil {
					servers[row[0]] = &lostServer{Name: row[0]}
				}
				servers[row[0]].Env = servers[row[0]].Env || c.Column == "env_json"
				servers[row[0]].Headers = servers[row[0]].Headers || c.Column == "headers_json"
			}
		})
		if err != nil {
			return err
		}
	}
	for _, s := range servers {
		l.Servers = append(l.Servers, *s)
	}
	sortBy(l.Servers, func(a, b lostServer) int { return strings.Compare(a.Name, b.Name) })
	sortBy(l.Secrets, func(a, b secretInfo) int { return strings.Compare(a.Profile+"/"+a.Name, b.Profile+"/"+b.Name) })
	public, err := readPublicKey(ctx, tx)
	if err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	if public != nil {
		l.Public = fingerprint(public)
	}
	return tx.QueryRowContext(ctx, `SELECT count(*) FROM audit_runs`).Scan(&l.Heads)
}

// isEmptySealed tells by its length that a sealed object has no members: nothing is lost with it.
func isEmptySealed(value []byte) bool {
	return len(value) == 1+sealOverhead+len(`{}`) && value[0] == sealMark
}

// dropLost is the transaction of a discard. Until the values are rewritten, from seals what takes the place of the lost ones.
func (v *vault) dropLost(ctx context.Context, tx *sql.Tx, from, to *openedSeal, l lostValues) error {
	if row, err := storedSeal(ctx, tx); err != nil {
		return err
	} else if row != from.text {
		return errSealMoved
	}
	for _, s := range l.Secrets {
		if err := execOne(ctx, tx, `DELETE FROM secrets WHERE profile = ? AND name = ?`, s.Profile, s.Name); err != nil {
			return err
		}
	}
	for _, s := range l.Servers {
		if err := markLost(ctx, tx, s); err != nil {
			return err
		}
	}
	for _, column := range []string{"env_json", "headers_json"} {
		if err := emptyLost(ctx, tx, from.sealer, column); err != nil {
			return err
		}
	}
	if l.AuditKey {
		if err := execOne(ctx, tx, `DELETE FROM settings WHERE key = ?`, settingAuditKey); err != nil {
			return err
		}
	}
	if to != from {
		if err := replaceSeal(ctx, tx, from, to); err != nil {
			return err
		}
	}
	if !l.AuditKey {
		return nil
	}
	return v.renewSigningKey(ctx, tx, to.sealer)
}

// emptyLost gives each object of a column that s does not open no members.
func emptyLost(ctx context.Context, tx *sql.Tx, s *sealer, column string) error {
	var names []string
	c := sealedColumn{Table: "mcp_servers", Column: column, Row: []string{"name"}}
	err := c.each(ctx, tx, func(row []string, value []byte) {
		if _, err := s.open(value, c.Table, c.Column, row...); err != nil {
			names = append(names, row[0])
		}
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		var stored any = `{}`
		if s.on() {
			stored = s.seal([]byte(`{}`), c.Table, column, name)
		}
		if err := execOne(ctx, tx, `UPDATE mcp_servers SET `+column+` = ? WHERE name = ?`, stored, name); err != nil {
			return err
		}
	}
	return nil
}

// markLost switches a server off in every profile and notes what of it is lost, until it is stored anew or removed.
func markLost(ctx context.Context, tx *sql.Tx, s lostServer) error {
	if _, err := tx.ExecContext(ctx, `UPDATE mcp_server_profiles SET enabled = 0 WHERE server = ?`, s.Name); err != nil {
		return err
	}
	var parts []string
	if s.Env {
		parts = append(parts, "env")
	}
	if s.Headers {
		parts = append(parts, "headers")
	}
	return putSetting(ctx, tx, lostSetting(s.Name), strings.Join(parts, " "))
}

// renewSigningKey makes a new signing key. It signs each head that the old public key vouches for, so that their logs can still be checked;
// a head that did not verify before does not verify after.
func (v *vault) renewSigningKey(ctx context.Context, tx *sql.Tx, s *sealer) error {
	old, err := readPublicKey(ctx, tx)
	if err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	key, err := v.makeSigningKey(ctx, tx, s)
	if err != nil {
		return err
	}
	if err := publish(ctx, tx, key); err != nil {
		return err
	}
	var heads []auditHead
	err = eachRow(ctx, tx, func(r *sql.Rows) error {
		h, err := scanAuditRow(r.Scan)
		h.Key = old
		heads = append(heads, h)
		return err
	}, auditRowColumns)
	if err != nil {
		return err
	}
	for _, h := range heads {
		if old == nil || h.verify() != nil {
			continue
		}
		again, err := h.signed(key)
		if err != nil {
			return err
		}
		if err := execOne(ctx, tx, `UPDATE audit_runs SET signature = ? WHERE run = ?`, again.Signature, h.Run); err != nil {
			return err
		}
	}
	return nil
}
