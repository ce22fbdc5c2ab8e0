// This file holds the vault's seal: transactions that may read and write sealed values. It knows no table but settings.
package main

import (
	"context"
	"database/sql"
)

// withSealed is withTx for what writes or reads sealed values; s is never nil.
func (v *vault) withSealed(ctx context.Context, f func(tx *sql.Tx, s *sealer) error) error {
	return v.withTx(ctx, func(tx *sql.Tx) error { return f(tx, &sealer{}) })
}

// viewSealed is view for what reads sealed values; s is never nil.
func (v *vault) viewSealed(ctx context.Context, f func(tx *sql.Tx, s *sealer) error) error {
	return v.view(ctx, func(tx *sql.Tx) error { return f(tx, &sealer{}) })
}

// secretSetting gives the value of a setting that is kept sealed, or errNotFound.
func (v *vault) secretSetting(ctx context.Context, key string) (_ secret, err error) {
	defer wrapDeed(&err, "read setting %q", key)
	var plain []byte
	err = v.viewSealed(ctx, func(tx *sql.Tx, s *sealer) error {
		var value []byte
		err := tx.QueryRowContext(ctx, `SELECT value FROM settings WHERE key = ?`, key).Scan(&value)
		if err != nil {
			return orNotFound(err)
		}
		plain, err = s.open(value, "settings", "value", key)
		return err
	})
	return secret(plain), err
}

// setSecretSetting stores or replaces a setting that is kept sealed.
func (v *vault) setSecretSetting(ctx context.Context, key string, value secret) (err error) {
	defer wrapDeed(&err, "store setting %q", key)
	return v.withSealed(ctx, func(tx *sql.Tx, s *sealer) error {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO settings (key, value)
			VALUES (?, ?)
			ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
			key, s.seal([]byte(value.reveal()), "settings", "value", key))
		return err
	})
}
