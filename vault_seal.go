// This file holds the vault's seal in use: transactions that read and write sealed values, the key fetched when the first of them comes, and
// what the vault says of its seal. Changing the seal is in vault_reseal.go.
package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
)

// sealTries is how often a transaction begins anew because another process has changed the seal meanwhile.
const sealTries = 100

// errSealStripped is a row of the seal that says less than the values do: someone changed it, or took it away.
var errSealStripped = errors.New("values are sealed in it, and it says that none are: what says how it is sealed was changed or taken away; restore a backup")

// errSealMoved ends a transaction that began under another seal than the one that is open.
var errSealMoved = errors.New("the vault was sealed anew meanwhile")

// sealedColumn is a column whose values are sealed. Its rows are those where all columns of Row are as given.
type sealedColumn struct {
	Table, Column string
	Row           []string // columns of the row's key
	Where         string   // picks rows; "" all of them
	Text          bool     // text while the seal is off
}

// sealedColumns are all that is kept sealed.
//
//go:noinline for size: it is called in many places
func sealedColumns() []sealedColumn {
	return []sealedColumn{
		{Table: "secrets", Column: "value", Row: []string{"profile", "name"}},
		{Table: "mcp_servers", Column: "env_json", Row: []string{"name"}, Text: true},
		{Table: "mcp_servers", Column: "headers_json", Row: []string{"name"}, Text: true},
		{Table: "settings", Column: "value", Row: []string{"key"}, Where: `WHERE key = '` + settingAuditKey + `'`},
	}
}

// withSealed is withTx for what writes or reads sealed values; s is never nil, and with the seal off passes them through. The key is
// fetched before the transaction, which may ask the person; a seal that another process changes meanwhile is followed.
func (v *vault) withSealed(ctx context.Context, f func(tx *sql.Tx, s *sealer) error) error {
	return v.underSeal(ctx, v.withTx, f)
}

// viewSealed is view for what reads sealed values; see withSealed.
func (v *vault) viewSealed(ctx context.Context, f func(tx *sql.Tx, s *sealer) error) error {
	return v.underSeal(ctx, v.view, f)
}

func (v *vault) underSeal(ctx context.Context, begin func(context.Context, func(*sql.Tx) error) error, f func(*sql.Tx, *sealer) error) error {
	for range sealTries {
		var row string
		err := begin(ctx, func(tx *sql.Tx) (err error) {
			if row, err = storedSeal(ctx, tx); err != nil {
				return err
			}
			o := v.seals.get()
			if o == nil || o.text != row {
				return errSealMoved
			}
			return f(tx, o.sealer)
		})
		if !errors.Is(err, errSealMoved) {
			return err
		}
		if _, err := v.unlock(ctx, row, false); err != nil {
			return err
		}
	}
	return v.fault(errVaultBusy)
}

// openSeal makes sure that sealed values can be read. It may ask the person.
func (v *vault) openSeal(ctx context.Context) error {
	return v.viewSealed(ctx, func(*sql.Tx, *sealer) error { return nil })
}

// needsPassphrase reports whether the next sealed value that is read will take a passphrase.
func (v *vault) needsPassphrase(ctx context.Context) (needs bool, err error) {
	err = v.view(ctx, func(tx *sql.Tx) error {
		row, err := storedSeal(ctx, tx)
		if err != nil || row == "" {
			return err
		}
		state, err := parseSealState(row)
		if err != nil {
			return errorf("vault %s %w", v.path, err)
		}
		have := v.seals.get()
		needs = state.Kind == sealByPassphrase && (have == nil || have.state.Key != state.Key)
		return nil
	})
	return needs, err
}

// storedSeal gives the stored state of the seal, "" in a vault from before it.
func storedSeal(ctx context.Context, tx *sql.Tx) (row string, err error) {
	err = tx.QueryRowContext(ctx, `SELECT value FROM settings WHERE key = ?`, settingSeal).Scan(&row)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return row, err
}

// unlock opens the seal that row tells of. A data key that is known already needs nothing, unless the key that wraps it is wanted too.
func (v *vault) unlock(ctx context.Context, row string, wrapping bool) (_ *openedSeal, err error) {
	select {
	case v.seals.fetch <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-v.seals.fetch }()
	have := v.seals.get()
	if have != nil && have.text == row && (!wrapping || !have.on() || have.wrapping != nil) {
		return have, nil // another caller was faster
	}
	opened := &openedSeal{sealer: &sealer{raw: true}}
	if row != "" {
		opened, err = v.openRow(ctx, row, have, wrapping)
	}
	if err == nil && !opened.on() {
		err = v.checkStripped(ctx, row)
	}
	if err != nil {
		return nil, errorf("open the seal of vault %s: %w", v.path, err)
	}
	v.seals.put(opened)
	return opened, nil
}

// checkStripped is errSealStripped where row says that nothing is sealed and a value is: then new values must not be stored in the clear, nor
// sealed ones taken for the values. A change of the seal leaves no such vault behind. From before the seal a secret may begin with any byte;
// what is text may not.
func (v *vault) checkStripped(ctx context.Context, row string) error {
	return v.view(ctx, func(tx *sql.Tx) error {
		if now, err := storedSeal(ctx, tx); err != nil || now != row {
			return err // changed meanwhile: whoever asked looks again
		}
		for _, c := range sealedColumns() {
			if row == "" && c.Table == "secrets" {
				continue
			}
			n, err := c.sealedValues(ctx, tx)
			if err != nil {
				return err
			}
			if n[0] > 0 {
				return errSealStripped
			}
		}
		return nil
	})
}

// sealedValues counts the values that have the mark of a sealed one, and all.
func (c sealedColumn) sealedValues(ctx context.Context, tx *sql.Tx) (n [2]int, err error) {
	err = tx.QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE typeof(`+c.Column+`) = 'blob' AND substr(`+c.Column+`, 1, 1) = x'01'), count(*) FROM `+c.Table+` `+c.Where).Scan(&n[0], &n[1])
	return n, err
}

func (v *vault) openRow(ctx context.Context, row string, have *openedSeal, wrapping bool) (*openedSeal, error) {
	state, err := parseSealState(row)
	switch {
	case err != nil:
		return nil, errorf("it %w", err)
	case state.Kind == sealOff:
		return &openedSeal{state: state, text: row, sealer: &sealer{}}, nil
	case !wrapping && have != nil && have.on() && have.state.Key == state.Key:
		return &openedSeal{state: state, text: row, key: have.key, sealer: have.sealer}, nil // only wrapped anew
	case state.Kind == sealByPassphrase:
		return v.openByPassphrase(ctx, state, row)
	}
	file, err := readVaultKeyFile(v.keys.Dir, state.ID)
	if err != nil {
		return nil, err
	}
	key, err := keyFromKey(file, state.Salt)
	if err != nil {
		return nil, err
	}
	opened, err := openState(state, row, key)
	if err != nil {
		return nil, errorf("%w: %s", errWrongKeyFile, keyFilePath(v.keys.Dir, state.ID))
	}
	return opened, nil
}

// openByPassphrase asks for the passphrase as often as the keys allow. One that failed is not asked for again while the row stays.
func (v *vault) openByPassphrase(ctx context.Context, state sealState, row string) (*openedSeal, error) {
	if v.seals.failed != nil && v.seals.tried == row {
		return nil, v.seals.failed
	}
	if v.keys.Passphrase == nil {
		return nil, newError("it has a passphrase, and none was given")
	}
	why := "passphrase of the vault"
	var err error
	for range max(1, v.keys.Tries) {
		var given secret
		if given, err = v.keys.Passphrase(ctx, why); err != nil {
			break
		}
		var key []byte
		if key, err = v.keys.derive(given, state.Salt, state.Rounds); err != nil {
			break
		}
		var opened *openedSeal
		if opened, err = openState(state, row, key); err == nil {
			return opened, nil
		}
		err, why = errWrongPassphrase, "wrong; passphrase of the vault"
	}
	if ctx.Err() == nil {
		v.seals.failed, v.seals.tried = err, row
	}
	return nil, err
}

// sealInfo is what can be said of a vault's seal without its key.
type sealInfo struct {
	Kind         string // "" in a vault from before the seal
	KeyFile      string // path, "" where there is none
	KeyFileThere bool
	Rounds       int               // of PBKDF2, 0 without a passphrase
	Values       map[string][2]int // by table: values that are sealed, and all that would be
	OffUnknown   bool              // the seal is off, and nothing on this machine says that a person did that
	Unwiped      bool              // bytes from before the last change may be left
	Schema       int
}

// sealStatus says how the vault is sealed. It needs no key.
func (v *vault) sealStatus(ctx context.Context) (info sealInfo, err error) {
	defer wrapDeed(&err, "read the state of the seal")
	var row string
	info.Values = map[string][2]int{}
	err = v.view(ctx, func(tx *sql.Tx) (err error) {
		if row, err = storedSeal(ctx, tx); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT user_version, EXISTS (SELECT 1 FROM settings WHERE key = ?) FROM pragma_user_version`, settingScrub).Scan(&info.Schema, &info.Unwiped); err != nil {
			return err
		}
		for _, c := range sealedColumns() {
			n, err := c.sealedValues(ctx, tx)
			if err != nil {
				return err
			}
			before := info.Values[c.Table]
			info.Values[c.Table] = [2]int{before[0] + n[0], before[1] + n[1]}
		}
		return nil
	})
	if err != nil || row == "" {
		return info, err
	}
	state, err := parseSealState(row)
	if err != nil {
		return info, errorf("vault %s %w", v.path, err)
	}
	info.Kind, info.Rounds, info.OffUnknown = state.Kind, state.Rounds, offUnwitnessed(state, v.keys.Dir)
	if state.Kind == sealByKeyFile && v.keys.Dir != "" {
		info.KeyFile = keyFilePath(v.keys.Dir, state.ID)
		_, err := os.Stat(info.KeyFile)
		info.KeyFileThere = err == nil
	}
	return info, nil
}
