// This file holds the agent's sessions and their messages, in the order they were said. It knows nothing of models.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"
)

// sessionInfo is one session; Messages is how many rows it holds. Root is the workspace, Parent the session that started it.
type sessionInfo struct {
	ID, Profile, Root, Parent, Title string
	Messages                         int
	Created, Updated                 time.Time
}

// sessionQuery narrows a list of sessions. "" is any; those that another session started are left out. Limit 0 is all.
type sessionQuery struct {
	Root, Profile string
	Limit         int
}

// storedMessage is one row of a session. Seq counts from 1; appendMessages gives it, and the time.
type storedMessage struct {
	Seq           int
	Created       time.Time
	Role, Content string
	ToolCalls     json.RawMessage // as the model sent them; nil when there are none
	ToolCallID    string          // of the call that this message answers
	Meta          json.RawMessage // nil when there is none
}

// createSession starts an empty session and gives its id (s-7k2m). Of s the profile, root, parent and title count.
func (v *vault) createSession(ctx context.Context, s sessionInfo) (id string, err error) {
	defer wrapDeed(&err, "create session")
	err = v.withTaleTx(ctx, func(tx *sql.Tx) error {
		id, err = v.newID("s-", func(id string) (taken bool, err error) {
			err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?)`, id).Scan(&taken)
			return taken, err
		})
		if err != nil {
			return err
		}
		now := v.now().Unix()
		_, err = tx.ExecContext(ctx, `
			INSERT INTO sessions (id, profile, title, created, updated, root, parent)
			VALUES (?, ?, ?, ?, ?, ?, ?)`,
			id, s.Profile, s.Title, now, now, s.Root, s.Parent)
		return err
	})
	return id, err
}

// appendMessages adds messages at the end of a session, all or none; errNotFound for an unknown session. It sets the Seq of each: two
// processes that append to one session get numbers of their own.
func (v *vault) appendMessages(ctx context.Context, session string, messages []storedMessage) (err error) {
	defer wrapDeed(&err, "append to session %q", session)
	last := 0
	err = v.withTaleTx(ctx, func(tx *sql.Tx) error {
		now := v.now().Unix()
		if err := execOne(ctx, tx, `UPDATE sessions SET updated = ? WHERE id = ?`, now, session); err != nil {
			return err
		}
		var owner int64
		err := tx.QueryRowContext(ctx, `
			SELECT seq, (SELECT coalesce(max(seq), 0) FROM messages WHERE session = s.id)
			FROM sessions AS s
			WHERE id = ?`,
			session).Scan(&owner, &last)
		if err != nil {
			return err
		}
		for i, m := range messages {
			_, err := tx.ExecContext(ctx, `
				INSERT INTO messages (session, seq, role, content, tool_calls, tool_call_id, meta_json, created)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
				session, last+1+i, m.Role, m.Content, string(m.ToolCalls), m.ToolCallID, string(m.Meta), now)
			if err == nil {
				err = indexMessage(ctx, tx, messageRow(owner, last+1+i), m.Role, m.Content)
			}
			if err != nil {
				return errorf("message %d: %w", i+1, err)
			}
		}
		return nil
	})
	for i := range messages {
		if err == nil {
			messages[i].Seq = last + 1 + i
		}
	}
	return err
}

// messages gives a session's messages in order; errNotFound for an unknown session.
func (v *vault) messages(ctx context.Context, session string) (list []storedMessage, err error) {
	session = spokenID(session)
	defer wrapDeed(&err, "read session %q", session)
	err = v.view(ctx, func(tx *sql.Tx) error {
		var one int
		err := tx.QueryRowContext(ctx, `SELECT 1 FROM sessions WHERE id = ?`, session).Scan(&one)
		if err := orNotFound(err); err != nil {
			return err
		}
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var m storedMessage
			var calls, meta string
			var created int64
			err := r.Scan(&m.Seq, &m.Role, &m.Content, &calls, &m.ToolCallID, &meta, &created)
			m.Created = time.Unix(created, 0)
			m.ToolCalls, m.Meta = rawOrNil(calls), rawOrNil(meta)
			list = append(list, m)
			return err
		}, `
			SELECT seq, role, content, tool_calls, tool_call_id, meta_json, created
			FROM messages
			WHERE session = ?
			ORDER BY seq`,
			session)
	})
	return list, err
}

func rawOrNil(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// sessionTable gives what sessions are read from: in a vault of a schema before vaultSchemaPlaces, which could not be written to bring it up to date,
// none has a root or a parent.
func sessionTable(ctx context.Context, tx *sql.Tx) (string, error) {
	var there bool
	err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pragma_table_info('sessions') WHERE name = 'parent')`).Scan(&there)
	if err != nil || there {
		return `sessions`, err
	}
	return `(SELECT *, '' AS root, '' AS parent FROM sessions) AS sessions`, nil
}

const sessionColumns = `id, profile, root, parent, title, created, updated, (SELECT count(*) FROM messages WHERE session = id)`

// scan reads a row of sessionColumns.
func (s *sessionInfo) scan(row interface{ Scan(...any) error }) error {
	var created, updated int64
	err := row.Scan(&s.ID, &s.Profile, &s.Root, &s.Parent, &s.Title, &created, &updated, &s.Messages)
	s.Created, s.Updated = time.Unix(created, 0), time.Unix(updated, 0)
	return err
}

// session gives one session, or errNotFound.
func (v *vault) session(ctx context.Context, id string) (s sessionInfo, err error) {
	id = spokenID(id)
	defer wrapDeed(&err, "read session %q", id)
	err = v.view(ctx, func(tx *sql.Tx) error {
		table, err := sessionTable(ctx, tx)
		if err != nil {
			return err
		}
		return orNotFound(s.scan(tx.QueryRowContext(ctx, `SELECT `+sessionColumns+` FROM `+table+` WHERE id = ?`, id)))
	})
	return s, err
}

// sessions lists the sessions last used first, with the number of all that match.
func (v *vault) sessions(ctx context.Context, q sessionQuery) (list []sessionInfo, total int, err error) {
	defer wrapDeed(&err, "list sessions")
	if q.Limit < 1 {
		q.Limit = -1 // SQLite: no limit
	}
	const match = ` WHERE parent = '' AND (?1 = '' OR root = ?1) AND (?2 = '' OR profile = ?2)`
	err = v.view(ctx, func(tx *sql.Tx) error {
		table, err := sessionTable(ctx, tx)
		if err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM `+table+match, q.Root, q.Profile).Scan(&total); err != nil {
			return err
		}
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var s sessionInfo
			err := s.scan(r)
			list = append(list, s)
			return err
		}, `
			SELECT `+sessionColumns+` FROM `+table+match+`
			ORDER BY updated DESC, (SELECT max(rowid) FROM messages WHERE session = id) DESC, seq DESC
			LIMIT ?3`,
			q.Root, q.Profile, q.Limit)
	})
	return list, total, err
}

// deleteSession drops a session with its messages and those that it started; errNotFound for an unknown one. Kept results stay.
func (v *vault) deleteSession(ctx context.Context, id string) (err error) {
	id = spokenID(id)
	defer wrapDeed(&err, "delete session %q", id)
	return v.withTaleTx(ctx, func(tx *sql.Tx) error {
		const below = `
			WITH RECURSIVE below(id) AS (SELECT ? UNION SELECT s.id FROM sessions AS s JOIN below ON s.parent = below.id)`
		_, err := tx.ExecContext(ctx, below+`
			DELETE FROM messages_fts
			WHERE rowid IN (
				SELECT s.seq << 32 | m.seq
				FROM messages AS m JOIN sessions AS s ON s.id = m.session
				WHERE s.id IN below)`, id)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, below+` DELETE FROM messages WHERE session IN below`, id); err != nil {
			return err
		}
		return execOne(ctx, tx, below+` DELETE FROM sessions WHERE id IN below`, id)
	})
}
