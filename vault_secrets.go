// This file holds secrets, profiles and settings. It knows no MCP beyond the names that OAuth tokens are kept under, and
// hands a value out only as the secret type.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	secretNameMax  = 128     // bytes
	secretValueMax = 1 << 20 // bytes; a token or a key file, no document
	profileNameMax = 64      // bytes
	profileDefault = "default"
	settingProfile = "current_profile"
	oauthPrefix    = "mcp-oauth-"
	oauthServerMax = 96 // bytes of a server's name inside a secret's name
)

// validSecretName accepts a letter or _ followed by letters, digits, '_', '.' and '-', ASCII only, at most 128 bytes:
// what ${NAME} can hold, and the ids of ${input:id}.
func validSecretName(name string) error {
	ok := name != "" && len(name) <= secretNameMax
	for i, c := range []byte(name) {
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		ok = ok && (letter || i > 0 && (c >= '0' && c <= '9' || c == '.' || c == '-'))
	}
	if !ok {
		return errorf("secret name %q: use a letter or _, then letters, digits, _ . -, at most %d bytes", name, secretNameMax)
	}
	return nil
}

// secretInfo is a secret without its value.
type secretInfo struct {
	Profile, Name    string
	Meta             json.RawMessage
	Created, Updated time.Time
}

// putSecret stores or replaces a secret. profile is "" for an ordinary one. meta is JSON or nil.
func (v *vault) putSecret(ctx context.Context, profile, name string, value secret, meta json.RawMessage) (err error) {
	defer wrapDeed(&err, "store secret %q", name)
	if err := validSecretName(name); err != nil {
		return err
	}
	if n := len(value.reveal()); n == 0 || n > secretValueMax {
		return errorf("the value has %d bytes; 1 to %d are kept", n, secretValueMax)
	}
	if meta == nil {
		meta = json.RawMessage(`{}`)
	}
	return v.withSealed(ctx, func(tx *sql.Tx, s *sealer) error {
		return putSecretRow(ctx, tx, s, profile, name, value, string(meta), v.now().Unix())
	})
}

func putSecretRow(ctx context.Context, tx *sql.Tx, s *sealer, profile, name string, value secret, meta string, now int64) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO secrets (profile, name, value, meta_json, created, updated)
		VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (profile, name) DO UPDATE SET
			value = excluded.value,
			meta_json = excluded.meta_json,
			updated = excluded.updated`,
		profile, name, s.seal([]byte(value.reveal()), "secrets", "value", profile, name), meta, now, now)
	return err
}

// putMoved stores ordinary secrets that come in with an entry. One that is there with the same value stays as it is; another value
// under the name, which another process has stored meanwhile, is an error.
func putMoved(ctx context.Context, tx *sql.Tx, s *sealer, moved []namedSecret, now int64) error {
	for _, m := range moved {
		var value []byte
		err := tx.QueryRowContext(ctx, `SELECT value FROM secrets WHERE profile = '' AND name = ?`, m.Name).Scan(&value)
		if err == nil {
			if value, err = s.open(value, "secrets", "value", "", m.Name); err == nil && string(value) != m.Value.reveal() {
				err = errorf("secret %q has another value by now; try again", m.Name)
			}
			if err != nil {
				return err
			}
			continue
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO secrets (profile, name, value, meta_json, created, updated)
			VALUES ('', ?, ?, '{}', ?, ?)`,
			m.Name, s.seal([]byte(m.Value.reveal()), "secrets", "value", "", m.Name), now, now)
		if err != nil {
			return err
		}
	}
	return nil
}

// secretFor gives the value kept for exactly this profile and name, or errNotFound. Ordinary secrets have profile "".
func (v *vault) secretFor(ctx context.Context, profile, name string) (_ secret, err error) {
	defer wrapDeed(&err, "read secret %q", name)
	var value secret
	err = v.viewSealed(ctx, func(tx *sql.Tx, s *sealer) (err error) {
		value, err = openSecret(ctx, tx, s, profile, name)
		return err
	})
	return value, err
}

// openSecret reads one value, or says errNotFound.
func openSecret(ctx context.Context, tx *sql.Tx, s *sealer, profile, name string) (secret, error) {
	var value []byte
	err := tx.QueryRowContext(ctx, `SELECT value FROM secrets WHERE profile = ? AND name = ?`, profile, name).Scan(&value)
	if err != nil {
		return "", orNotFound(err)
	}
	value, err = s.open(value, "secrets", "value", profile, name)
	return secret(value), err
}

// hasSecret reports whether a value is kept for exactly this profile and name. It needs no key.
func (v *vault) hasSecret(ctx context.Context, profile, name string) (has bool, err error) {
	defer wrapDeed(&err, "look for secret %q", name)
	err = v.view(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM secrets WHERE profile = ? AND name = ?)`, profile, name).Scan(&has)
	})
	return has, err
}

// secrets lists all secrets of all profiles, by name.
func (v *vault) secrets(ctx context.Context) (list []secretInfo, err error) {
	defer wrapDeed(&err, "list secrets")
	err = v.view(ctx, func(tx *sql.Tx) error {
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var s secretInfo
			var meta string
			var created, updated int64
			err := r.Scan(&s.Profile, &s.Name, &meta, &created, &updated)
			s.Meta, s.Created, s.Updated = json.RawMessage(meta), time.Unix(created, 0), time.Unix(updated, 0)
			list = append(list, s)
			return err
		}, `
			SELECT profile, name, meta_json, created, updated
			FROM secrets
			ORDER BY name, profile`)
	})
	return list, err
}

// deleteSecret drops a secret, or says errNotFound.
func (v *vault) deleteSecret(ctx context.Context, profile, name string) (err error) {
	defer wrapDeed(&err, "delete secret %q", name)
	return v.withTx(ctx, func(tx *sql.Tx) error {
		return execOne(ctx, tx, `DELETE FROM secrets WHERE profile = ? AND name = ?`, profile, name)
	})
}

// knownSecrets gives every value, for redaction.
func (v *vault) knownSecrets(ctx context.Context) (list []namedSecret, err error) {
	defer wrapDeed(&err, "read secrets")
	err = v.viewSealed(ctx, func(tx *sql.Tx, s *sealer) error {
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var profile, name string
			var value []byte
			if err := r.Scan(&profile, &name, &value); err != nil {
				return err
			}
			value, err := s.open(value, "secrets", "value", profile, name)
			list = append(list, namedSecret{Name: name, Value: secret(value)})
			return err
		}, `
			SELECT profile, name, value
			FROM secrets
			ORDER BY name, profile`)
	})
	return list, err
}

// oauthSecretPrefix is what the names of a server's OAuth secrets start with, one word (access, refresh) following. A
// server name that does not fit a secret's name is cleaned and told from others by 6 hex digits of its SHA-256.
func oauthSecretPrefix(server string) string {
	clean := strings.Map(func(c rune) rune {
		if c < utf8.RuneSelf && validSecretName("_"+string(c)) == nil {
			return c
		}
		return '_'
	}, server)
	if clean != server || len(clean) > oauthServerMax {
		clean = clean[:min(len(clean), oauthServerMax)] + "-" + sha256Hex([]byte(server))[:6]
	}
	return oauthPrefix + clean + "-"
}

// dropOAuthSecrets deletes a server's OAuth secrets of every profile. What follows the prefix is one word, so that those of a server
// named "a-b" stay when "a" goes.
func dropOAuthSecrets(ctx context.Context, tx *sql.Tx, server string) error {
	prefix := oauthSecretPrefix(server)
	_, err := tx.ExecContext(ctx, `
		DELETE FROM secrets
		WHERE substr(name, 1, ?) = ?
			AND instr(substr(name, ?), '-') = 0`,
		len(prefix), prefix, len(prefix)+1)
	return err
}

// profileInfo is one profile; exactly one is current.
type profileInfo struct {
	Name    string
	Current bool
	Created time.Time
}

// validProfileName accepts letters and digits of any script, '_', '.' and '-', not first a '.' or '-', at most 64
// bytes of UTF-8.
func validProfileName(name string) error {
	ok := name != "" && len(name) <= profileNameMax && utf8.ValidString(name)
	for i, c := range name {
		word := c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c)
		ok = ok && (word || i > 0 && (c == '.' || c == '-'))
	}
	if !ok {
		return errorf("profile name %q: use letters, digits, _ . -, not first . or -, at most %d bytes", name, profileNameMax)
	}
	return nil
}

// profiles lists the profiles by name; "default" is always among them.
func (v *vault) profiles(ctx context.Context) (list []profileInfo, err error) {
	defer wrapDeed(&err, "list profiles")
	err = v.view(ctx, func(tx *sql.Tx) error {
		current, err := currentProfile(ctx, tx)
		if err != nil {
			return err
		}
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var p profileInfo
			var created int64
			err := r.Scan(&p.Name, &created)
			p.Current, p.Created = p.Name == current, time.Unix(created, 0)
			list = append(list, p)
			return err
		}, `
			SELECT name, created
			FROM profiles
			ORDER BY name`)
	})
	return list, err
}

// currentProfile is the profile in use, "default" until useProfile chose another.
func (v *vault) currentProfile(ctx context.Context) (name string, err error) {
	defer wrapDeed(&err, "read the current profile")
	err = v.view(ctx, func(tx *sql.Tx) (err error) {
		name, err = currentProfile(ctx, tx)
		return err
	})
	return name, err
}

func currentProfile(ctx context.Context, tx *sql.Tx) (name string, err error) {
	err = tx.QueryRowContext(ctx, `SELECT value FROM settings WHERE key = ?`, settingProfile).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		return profileDefault, nil
	}
	return name, err
}

// createProfile adds a profile; one that exists is an error.
func (v *vault) createProfile(ctx context.Context, name string) (err error) {
	defer wrapDeed(&err, "create profile %q", name)
	if err := validProfileName(name); err != nil {
		return err
	}
	return v.withTx(ctx, func(tx *sql.Tx) error {
		if err := hasProfile(ctx, tx, name); !errors.Is(err, errNotFound) {
			if err == nil {
				err = newError("it exists already")
			}
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO profiles (name, created) VALUES (?, ?)`, name, v.now().Unix())
		return err
	})
}

// deleteProfile drops a profile with its secrets and server rows. The default and the current one are refused.
func (v *vault) deleteProfile(ctx context.Context, name string) (err error) {
	defer wrapDeed(&err, "delete profile %q", name)
	if name == profileDefault {
		return newError("the default profile stays")
	}
	return v.withTx(ctx, func(tx *sql.Tx) error {
		current, err := currentProfile(ctx, tx)
		if err != nil {
			return err
		}
		if name == current {
			return newError("it is in use; choose another one first with tai profile use")
		}
		if err := execOne(ctx, tx, `DELETE FROM profiles WHERE name = ?`, name); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM mcp_server_profiles WHERE profile = ?`, name); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM secrets WHERE profile = ?`, name)
		return err
	})
}

// useProfile makes a profile the current one.
func (v *vault) useProfile(ctx context.Context, name string) (err error) {
	defer wrapDeed(&err, "use profile %q", name)
	return v.withTx(ctx, func(tx *sql.Tx) error {
		if err := hasProfile(ctx, tx, name); err != nil {
			return err
		}
		return putSetting(ctx, tx, settingProfile, name)
	})
}

// hasProfile is errNotFound for an unknown name.
func hasProfile(ctx context.Context, tx *sql.Tx, name string) error {
	var one int
	return orNotFound(tx.QueryRowContext(ctx, `SELECT 1 FROM profiles WHERE name = ?`, name).Scan(&one))
}

// setting gives a stored setting, or errNotFound.
func (v *vault) setting(ctx context.Context, key string) (value string, err error) {
	defer wrapDeed(&err, "read setting %q", key)
	err = v.view(ctx, func(tx *sql.Tx) error {
		return orNotFound(tx.QueryRowContext(ctx, `SELECT value FROM settings WHERE key = ?`, key).Scan(&value))
	})
	return value, err
}

// setSetting stores or replaces a setting.
func (v *vault) setSetting(ctx context.Context, key, value string) (err error) {
	defer wrapDeed(&err, "store setting %q", key)
	return v.withTx(ctx, func(tx *sql.Tx) error { return putSetting(ctx, tx, key, value) })
}

//go:noinline for size: it is called in many places
func putSetting(ctx context.Context, tx *sql.Tx, key, value string) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO settings (key, value)
		VALUES (?, ?)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
		key, value)
	return err
}
