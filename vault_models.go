// This file holds the models that a person has set, which of them is in use, and what completions have cost in tokens. Keys are not kept
// here: a row only says where one is. It dials nothing.
package main

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

const (
	modelMax     = 100             // models that are kept
	settingModel = "current_model" // the name of the model in use
)

// storedModel is one model as a person has set it.
type storedModel struct {
	Name             string
	Provider         string // a well-known endpoint's name, or "" for an address that speaks OpenAI's wire
	BaseURL          string // "" for the provider's own
	Model            string
	Key              string // env:NAME, secret:NAME, or "" for the provider's usual one at its own address, else none
	Context          int    // tokens, 0 where it is not known
	MaxTokens        int    // of one reply, 0 for the endpoint's own bound
	Current          bool
	Created, Updated time.Time
}

// putModel stores or replaces a model.
func (v *vault) putModel(ctx context.Context, m storedModel) (err error) {
	defer wrapDeed(&err, "store model %q", m.Name)
	if err := validProfileName(m.Name); err != nil {
		return errorf("a model's name is like a profile's: %w", err)
	}
	return v.withTx(ctx, func(tx *sql.Tx) error {
		var others int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM models WHERE name <> ?`, m.Name).Scan(&others); err != nil {
			return err
		}
		if others >= modelMax {
			return errorf("%d models are stored, the most there can be; remove one first", others)
		}
		now := v.now().Unix()
		_, err := tx.ExecContext(ctx, `
			INSERT INTO models (name, provider, base_url, model, key_ref, context, max_tokens, created, updated)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET
				provider = excluded.provider,
				base_url = excluded.base_url,
				model = excluded.model,
				key_ref = excluded.key_ref,
				context = excluded.context,
				max_tokens = excluded.max_tokens,
				updated = excluded.updated`,
			m.Name, m.Provider, m.BaseURL, m.Model, m.Key, m.Context, m.MaxTokens, now, now)
		return err
	})
}

// models lists the stored models by name.
func (v *vault) models(ctx context.Context) (list []storedModel, err error) {
	defer wrapDeed(&err, "list models")
	err = v.view(ctx, func(tx *sql.Tx) error {
		if there, err := hasTable(ctx, tx, "models"); err != nil || !there {
			return err
		}
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var m storedModel
			var created, updated int64
			err := r.Scan(&m.Name, &m.Provider, &m.BaseURL, &m.Model, &m.Key, &m.Context, &m.MaxTokens, &created, &updated, &m.Current)
			m.Created, m.Updated = time.Unix(created, 0), time.Unix(updated, 0)
			list = append(list, m)
			return err
		}, `
			SELECT name, provider, base_url, model, key_ref, context, max_tokens, created, updated,
				name = coalesce((SELECT value FROM settings WHERE key = ?), '')
			FROM models
			ORDER BY name`, settingModel)
	})
	return list, err
}

// useModel makes a model the one in use, "" none; errNotFound for an unknown name.
func (v *vault) useModel(ctx context.Context, name string) (err error) {
	defer wrapDeed(&err, "use model %q", name)
	return v.withTx(ctx, func(tx *sql.Tx) error {
		if name == "" {
			return dropCurrentModel(ctx, tx)
		}
		var one int
		if err := tx.QueryRowContext(ctx, `SELECT 1 FROM models WHERE name = ?`, name).Scan(&one); err != nil {
			return orNotFound(err)
		}
		return putSetting(ctx, tx, settingModel, name)
	})
}

func dropCurrentModel(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM settings WHERE key = ?`, settingModel)
	return err
}

// removeModel drops a model, or says errNotFound. If it was in use, none is.
func (v *vault) removeModel(ctx context.Context, name string) (err error) {
	defer wrapDeed(&err, "remove model %q", name)
	return v.withTx(ctx, func(tx *sql.Tx) error {
		if err := execOne(ctx, tx, `DELETE FROM models WHERE name = ?`, name); err != nil {
			return err
		}
		var current string
		err := tx.QueryRowContext(ctx, `SELECT value FROM settings WHERE key = ?`, settingModel).Scan(&current)
		if errors.Is(err, sql.ErrNoRows) || err == nil && current != name {
			return nil
		}
		if err != nil {
			return err
		}
		return dropCurrentModel(ctx, tx)
	})
}

// usageRow is what one completion has cost. Input counts the cached tokens too.
type usageRow struct {
	Session, Model        string
	Input, Output, Cached int
	Duration              time.Duration
	Time                  time.Time // set by the vault
}

// putUsage adds a row. A power cut may lose the last ones; nothing rests on them.
func (v *vault) putUsage(ctx context.Context, u usageRow) (err error) {
	defer wrapDeed(&err, "store usage")
	return v.withLateTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO usage (session, model, input, output, cached, duration_ms, time)
			VALUES (?, ?, ?, ?, ?, ?, ?)`,
			u.Session, u.Model, u.Input, u.Output, u.Cached, u.Duration.Milliseconds(), v.now().Unix())
		return err
	})
}

// usage gives the rows since a time, oldest first; of one session, or of all for "".
func (v *vault) usage(ctx context.Context, session string, since time.Time) (list []usageRow, err error) {
	defer wrapDeed(&err, "read usage")
	err = v.view(ctx, func(tx *sql.Tx) error {
		if there, err := hasTable(ctx, tx, "usage"); err != nil || !there {
			return err
		}
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var u usageRow
			var ms, at int64
			err := r.Scan(&u.Session, &u.Model, &u.Input, &u.Output, &u.Cached, &ms, &at)
			u.Duration, u.Time = time.Duration(ms)*time.Millisecond, time.Unix(at, 0)
			list = append(list, u)
			return err
		}, `
			SELECT session, model, input, output, cached, duration_ms, time
			FROM usage
			WHERE time >= ? AND (? = '' OR session = ?)
			ORDER BY seq`, since.Unix(), session, session)
	})
	return list, err
}

// usageSum adds up the completions of one model or session. Title is that of the session, "" where it is gone.
type usageSum struct {
	Name, Title           string
	Calls                 int
	Input, Output, Cached int64
	Duration              time.Duration
}

// usageSums adds up the rows since a time by session, else by model, what took most tokens first.
func (v *vault) usageSums(ctx context.Context, bySession bool, since time.Time) (list []usageSum, err error) {
	defer wrapDeed(&err, "add up usage")
	column := "model"
	if bySession {
		column = "session"
	}
	from := int64(0)
	if !since.IsZero() {
		from = since.Unix()
	}
	err = v.view(ctx, func(tx *sql.Tx) error {
		if there, err := hasTable(ctx, tx, "usage"); err != nil || !there {
			return err
		}
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var u usageSum
			var ms int64
			err := r.Scan(&u.Name, &u.Calls, &u.Input, &u.Output, &u.Cached, &ms, &u.Title)
			u.Duration = time.Duration(ms) * time.Millisecond
			list = append(list, u)
			return err
		}, `
			SELECT `+column+`, count(*), sum(input), sum(output), sum(cached), sum(duration_ms),
				coalesce((SELECT title FROM sessions WHERE id = `+column+`), '')
			FROM usage
			WHERE time >= ?
			GROUP BY `+column+`
			ORDER BY sum(input) + sum(output) DESC, `+column, from)
	})
	return list, err
}
