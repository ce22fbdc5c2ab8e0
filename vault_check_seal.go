// This file checks the vault's seal: what opens it is there, every sealed value opens in its place, and none stands in clear that should
// not. It shows no value, and changes nothing.
package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// checkSeal notes what is wrong with the seal. An error is a fault that kept it from looking.
func (v *vault) checkSeal(ctx context.Context, r *vaultReport) error {
	info, err := v.sealStatus(ctx)
	if driverCode(err) != 0 || errors.Is(err, errVaultDamaged) {
		return err
	}
	r.Seal.Kind, r.Seal.KeyFile = info.Kind, info.KeyFile
	for _, n := range info.Values {
		r.Seal.Values += n[1]
	}
	if err != nil {
		r.add("seal", findError, 1, "", "%v", err)
		return nil
	}
	switch info.Kind {
	case "":
		r.Seal.Kind = sealOff
		r.add("seal", findNote, 1, "the first command that writes seals it", "the vault is from before the seal: whoever reads the file has its secrets")
	case sealOff:
		if info.OffUnknown {
			r.add("seal", findWarning, 1, "tai vault seal seals it; tai vault unseal says that it is meant", "the seal is off, and nothing on this machine says that tai vault unseal did that: someone else may have")
			break
		}
		r.add("seal", findNote, 1, "tai vault seal", "the seal is off: whoever reads the file has its secrets")
	}
	if info.Unwiped {
		r.add("seal", findWarning, 1, "any command that writes wipes them, while no other tai is reading", "bytes from before the last change of the seal may be left in the file")
	}
	return v.checkSealed(ctx, info, r)
}

// checkSealed opens every value.
func (v *vault) checkSealed(ctx context.Context, info sealInfo, r *vaultReport) error {
	var broken, clear findNames
	opened, tried := 0, false
	err := v.viewSealed(ctx, func(tx *sql.Tx, s *sealer) error {
		broken, clear, opened, tried = findNames{}, findNames{}, 0, true
		for _, c := range sealedColumns() {
			err := c.each(ctx, tx, func(row []string, value []byte) {
				name := c.Table + "." + c.Column + " of " + strings.Join(row, "/")
				_, err := s.open(value, c.Table, c.Column, row...)
				switch marked := len(value) > 0 && value[0] == sealMark; {
				case err == nil:
					opened++
				case s.on() && !marked:
					clear.add(name)
				default:
					broken.add(name)
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	r.Seal.Opened = opened
	if err != nil && (tried || ctx.Err() != nil) {
		return err
	}
	if err != nil { // no key
		level, do := findError, "put the right key file back; if there is none, tai vault seal --discard gives these values up and keeps all else"
		if info.Kind == sealByPassphrase && !errors.Is(err, errWrongPassphrase) {
			level, do = findNote, "give it at the prompt, in TAI_PASSPHRASE or in the file that TAI_PASSPHRASE_FILE names"
		} else if info.Kind == sealByPassphrase {
			do = "give the right one; if it is forgotten, tai vault seal --discard gives these values up and keeps all else"
		}
		r.add("seal", level, r.Seal.Values, do, "%s could not be tried: %v", plural(r.Seal.Values, "sealed value"), err)
		return nil
	}
	const anew = "restore a backup, or give them up with tai vault seal --discard and set them anew: tai secret set NAME, tai mcp add SOURCE"
	if broken.count > 0 {
		r.add("seal", findError, broken.count, anew, "%s not what was sealed there: %s", plural(broken.count, "value"), &broken)
	}
	if clear.count > 0 {
		r.add("seal", findError, clear.count, anew, "%s in clear, though the seal is on: %s", plural(clear.count, "value"), &clear)
	}
	if err := v.checkAuditKey(ctx); errors.Is(err, errAuditKeyChanged) {
		r.add("seal", findError, 1, "restore a backup", "%v", err)
	}
	return nil
}

// each hands on every value of the column as it is stored, with the parts of its row's key.
func (c sealedColumn) each(ctx context.Context, tx *sql.Tx, f func(row []string, value []byte)) error {
	return eachRow(ctx, tx, func(rows *sql.Rows) error {
		row, into := make([]string, len(c.Row)), make([]any, len(c.Row)+1)
		for i := range row {
			into[i] = &row[i]
		}
		var value []byte
		into[len(row)] = &value
		err := rows.Scan(into...)
		if err == nil {
			f(row, value)
		}
		return err
	}, `SELECT `+strings.Join(c.Row, ", ")+`, `+c.Column+` FROM `+c.Table+` `+c.Where)
}

// checkKeyFolder names key files that this vault does not use. They may be another vault's, or a backup's from before tai vault rekey.
func checkKeyFolder(dir, used string, r *vaultReport) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there is none, or checkFiles has said why
	}
	var others findNames
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); filepath.Ext(path) == ".key" && path != used {
			others.add(e.Name())
		}
	}
	if others.count > 0 {
		r.add("seal", findNote, others.count, "", "%s in %s that this vault does not use: %s; they open other vaults, or backups from before a rekey", plural(others.count, "key file"), dir, &others)
	}
}
