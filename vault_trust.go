// This file keeps which states of a workspace's policy files count: their SHA-256, each with the path it was confirmed for, and the
// text that counted last. It knows no policy and opens no such file.
package main

import (
	"context"
	"database/sql"
	"errors"
)

const (
	settingTrustedFile = "trusted-file:" // and the SHA-256 of a file; the value is its path
	settingTrustedText = "trusted-text:" // and the path of a file; the value is the text that counted last
)

// trustedChange is one state of a file giving way to the next. Was and Now are SHA-256, "" for no file. Trust: the next one counts.
type trustedChange struct {
	Was, Now, Text string
	Trust          bool
}

// changeTrusted runs change with the vault locked for writing, so that several tais change a file one after the other, and stores what it
// gives. The state before counts no longer at that path: a grant that was taken back does not come back with an old file. trusted tells of
// a SHA-256 whether it counts. change must not use the vault. If it wrote a file and the vault then could not be written, that
// file does not count.
func (v *vault) changeTrusted(ctx context.Context, path string, change func(trusted func(sha256 string) bool) (trustedChange, error)) (err error) {
	defer wrapDeed(&err, "change %q", path)
	return v.withTx(ctx, func(tx *sql.Tx) error {
		var fault error
		c, err := change(func(sha256 string) bool {
			value, err := settingIn(ctx, tx, settingTrustedFile+sha256)
			fault = joinErrors(fault, err)
			return value != ""
		})
		if err = joinErrors(err, fault); err != nil {
			return err
		}
		if c.Was != c.Now {
			if _, err := tx.ExecContext(ctx, `DELETE FROM settings WHERE key = ? AND value = ?`, settingTrustedFile+c.Was, path); err != nil {
				return err
			}
		}
		if !c.Trust || c.Now == "" {
			return nil
		}
		return joinErrors(putSetting(ctx, tx, settingTrustedFile+c.Now, path), putSetting(ctx, tx, settingTrustedText+path, c.Text))
	})
}

// trustedFile reports whether a file of that SHA-256 counts.
func (v *vault) trustedFile(ctx context.Context, sha256 string) (bool, error) {
	value, err := v.setting(ctx, settingTrustedFile+sha256)
	if errors.Is(err, errNotFound) {
		err = nil
	}
	return value != "", err
}

// trustedText gives the text that counted last at path, "" if none did.
func (v *vault) trustedText(ctx context.Context, path string) (string, error) {
	text, err := v.setting(ctx, settingTrustedText+path)
	if errors.Is(err, errNotFound) {
		err = nil
	}
	return text, err
}

// settingIn gives a stored setting, "" if there is none.
func settingIn(ctx context.Context, tx *sql.Tx, key string) (value string, err error) {
	err = orNotFound(tx.QueryRowContext(ctx, `SELECT value FROM settings WHERE key = ?`, key).Scan(&value))
	if errors.Is(err, errNotFound) {
		err = nil
	}
	return value, err
}
