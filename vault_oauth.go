// This file keeps the OAuth logins of MCP servers among the secrets: the tokens sealed, one login for each profile and server, and beside the access
// token what it is good for. It makes no request and judges no address.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The words after oauthSecretPrefix.
const (
	oauthAccess  = "access"
	oauthRefresh = "refresh"
	oauthProof   = "client" // a client secret, where the issuer insists on one
)

var errLoginChanged = errors.New("the login was changed meanwhile")

// oauthMeta says what a login is good for. Server is the address it was made for, Wanted the scopes that a later answer asked for, Expires seconds
// since 1970 or 0 for unknown.
type oauthMeta struct {
	Client   string `json:"client_id"`
	Method   string `json:"client_auth,omitempty"`
	Issuer   string `json:"issuer"`
	Resource string `json:"resource"`
	Server   string `json:"server"`
	Scope    string `json:"scope,omitempty"`
	Wanted   string `json:"wanted,omitempty"`
	Expires  int64  `json:"expires,omitempty"`
}

// oauthLogin is a login as it is kept. Refresh and Proof may be empty.
type oauthLogin struct {
	oauthMeta
	Access, Refresh, Proof secret
}

// putLogin stores a login whole. was is the access token that it follows on, "" for a new login; where another one is stored by then, or none, nothing
// is written and the error is errLoginChanged.
func (v *vault) putLogin(ctx context.Context, profile, server string, was secret, l oauthLogin) (err error) {
	defer wrapDeed(&err, "store the login at %q", server)
	meta, err := json.Marshal(l.oauthMeta)
	if err != nil {
		return err
	}
	return v.withSealed(ctx, func(tx *sql.Tx, s *sealer) error {
		if was != "" {
			if now, err := openSecret(ctx, tx, s, profile, oauthName(server, oauthAccess)); err != nil || now != was {
				if errors.Is(err, errNotFound) || err == nil {
					err = errLoginChanged
				}
				return err
			}
		}
		if err := hasProfile(ctx, tx, profile); err != nil { // deleted during the login
			return errorf("profile %q: %w", profile, err)
		}
		for _, p := range []struct {
			word  string
			value secret
			meta  string
		}{{oauthAccess, l.Access, string(meta)}, {oauthRefresh, l.Refresh, "{}"}, {oauthProof, l.Proof, "{}"}} {
			name := oauthName(server, p.word)
			if p.value != "" {
				err = putSecretRow(ctx, tx, s, profile, name, p.value, p.meta, v.now().Unix())
			} else {
				_, err = tx.ExecContext(ctx, `DELETE FROM secrets WHERE profile = ? AND name = ?`, profile, name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// login gives a stored login, or errNotFound.
func (v *vault) login(ctx context.Context, profile, server string) (l oauthLogin, err error) {
	defer wrapDeed(&err, "read the login at %q", server)
	err = v.viewSealed(ctx, func(tx *sql.Tx, s *sealer) error {
		var meta string
		name := oauthName(server, oauthAccess)
		if l.Access, err = openSecret(ctx, tx, s, profile, name); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT meta_json FROM secrets WHERE profile = ? AND name = ?`, profile, name).Scan(&meta); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(meta), &l.oauthMeta); err != nil {
			return errorf("its description is damaged: %w", err)
		}
		for word, to := range map[string]*secret{oauthRefresh: &l.Refresh, oauthProof: &l.Proof} {
			if *to, err = openSecret(ctx, tx, s, profile, oauthName(server, word)); err != nil && !errors.Is(err, errNotFound) {
				return err
			}
		}
		return nil
	})
	return l, err
}

// dropLogin forgets the login of a profile at a server; had says whether there was one. With was, not "", only that one is forgotten.
func (v *vault) dropLogin(ctx context.Context, profile, server string, was secret) (had bool, err error) {
	defer wrapDeed(&err, "forget the login at %q", server)
	drop := func(tx *sql.Tx) error {
		for _, word := range []string{oauthAccess, oauthRefresh, oauthProof} {
			r, err := tx.ExecContext(ctx, `DELETE FROM secrets WHERE profile = ? AND name = ?`, profile, oauthName(server, word))
			if err != nil {
				return err
			}
			n, err := r.RowsAffected()
			if err != nil {
				return err
			}
			had = had || n > 0
		}
		return nil
	}
	if was == "" {
		return had, v.withTx(ctx, drop) // needs no key, so that what no longer opens can be dropped
	}
	err = v.withSealed(ctx, func(tx *sql.Tx, s *sealer) error {
		now, err := openSecret(ctx, tx, s, profile, oauthName(server, oauthAccess))
		if errors.Is(err, errNotFound) || err == nil && now != was {
			return nil
		}
		if err != nil {
			return err
		}
		return drop(tx)
	})
	return had, err
}

// wantScope notes scopes that a server asks for, for the next login.
func (v *vault) wantScope(ctx context.Context, profile, server, scope string) (err error) {
	defer wrapDeed(&err, "note what %q asks for", server)
	return v.withTx(ctx, func(tx *sql.Tx) error {
		return execOne(ctx, tx, `UPDATE secrets SET meta_json = json_set(meta_json, '$.wanted', ?) WHERE profile = ? AND name = ?`,
			scope, profile, oauthName(server, oauthAccess))
	})
}

// loginProfiles lists the profiles that are logged in at a server, by name. It needs no key.
func (v *vault) loginProfiles(ctx context.Context, server string) (list []string, err error) {
	defer wrapDeed(&err, "look for logins at %q", server)
	err = v.view(ctx, func(tx *sql.Tx) error {
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var p string
			err := r.Scan(&p)
			list = append(list, p)
			return err
		}, `SELECT profile FROM secrets WHERE name = ? ORDER BY profile`, oauthName(server, oauthAccess))
	})
	return list, err
}

// A refresh is one process's at a time: an issuer that rotates tokens may take a second use for theft and end the login (RFC 9700, section
// 4.14.2). The right to it is a row that ends by itself if its holder dies.

func refreshSetting(profile, server string) string { return "mcp-refresh:" + profile + "/" + server }

// leaseRefresh takes the right for so long, under an id of the caller's; false: another one has it.
func (v *vault) leaseRefresh(ctx context.Context, profile, server, id string, life time.Duration) (got bool, err error) {
	defer wrapDeed(&err, "begin the refresh at %q", server)
	key := refreshSetting(profile, server)
	var value string
	free := func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT value FROM settings WHERE key = ?`, key).Scan(&value)
		if errors.Is(err, sql.ErrNoRows) {
			got, err = true, nil
		}
		if err == nil && !got {
			var until int64
			_, text, _ := strings.Cut(value, " ")
			_, scanErr := fmt.Sscan(text, &until)
			// One that lies further ahead than any can was made by another clock.
			left := time.UnixMilli(until).Sub(v.now())
			got = scanErr != nil || left <= 0 || left > life
		}
		return err
	}
	if err := v.view(ctx, free); err != nil || !got { // those who wait only read
		return false, err
	}
	err = v.withLateTx(ctx, func(tx *sql.Tx) error {
		got = false
		if err := free(tx); err != nil || !got {
			return err
		}
		return putSetting(ctx, tx, key, fmt.Sprintf("%s %d", id, v.now().Add(life).UnixMilli()))
	})
	return got && err == nil, err
}

// endRefresh gives the right back.
func (v *vault) endRefresh(ctx context.Context, profile, server, id string) (err error) {
	defer wrapDeed(&err, "end the refresh at %q", server)
	return v.withLateTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM settings WHERE key = ? AND value LIKE ?`, refreshSetting(profile, server), id+" %")
		return err
	})
}

func oauthName(server, word string) string { return oauthSecretPrefix(server) + word }
