// This file holds the agent's sessions and their messages, in the order they were said. It knows nothing of models.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// sessionInfo is one session; Messages is how many it holds.
type sessionInfo struct {
	ID, Profile, Title string
	Messages           int
	Created, Updated   time.Time
}

// storedMessage is one message of a session. Seq counts from 1; appendMessages gives it.
type storedMessage struct {
	Seq           int
	Role, Content string
	ToolCalls     json.RawMessage // as the model sent them; nil when there are none
	ToolCallID    string          // of the call that this message answers
	Meta          json.RawMessage // nil when there is none
}

// createSession starts an empty session and gives its id (s-7k2m).
func (v *vault) createSession(ctx context.Context, profile, title string) (id string, err error) {
	defer wrapDeed(&err, "create session")
	err = v.withTx(ctx, func(tx *sql.Tx) error {
		id, err = v.newID("s-", func(id string) (taken bool, err error) {
			err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?)`, id).Scan(&taken)
			return taken, err
		})
		if err != nil {
			return err
		}
		now := v.now().Unix()
		_, err = tx.ExecContext(ctx, `
			INSERT INTO sessions (id, profile, title, created, updated)
			VALUES (?, ?, ?, ?, ?)`,
			id, profile, title, now, now)
		return err
	})
	return id, err
}

// appendMessages adds messages at the end of a session, all or none; errNotFound for an unknown session. Seq of the
// arguments is not read: two processes that append to one session get numbers of their own.
func (v *vault) appendMessages(ctx context.Context, session string, messages []storedMessage) (err error) {
	defer wrapDeed(&err, "append to session %q", session)
	return v.withTx(ctx, func(tx *sql.Tx) error {
		now := v.now().Unix()
		if err := execOne(ctx, tx, `UPDATE sessions SET updated = ? WHERE id = ?`, now, session); err != nil {
			return err
		}
		var last int
		err := tx.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM messages WHERE session = ?`, session).Scan(&last)
		if err != nil {
			return err
		}
		for i, m := range messages {
			_, err := tx.ExecContext(ctx, `
				INSERT INTO messages (session, seq, role, content, tool_calls, tool_call_id, meta_json, created)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
				session, last+1+i, m.Role, m.Content, string(m.ToolCalls), m.ToolCallID, string(m.Meta), now)
			if err != nil {
				return fmt.Errorf("message %d: %w", i+1, err)
			}
		}
		return nil
	})
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
			err := r.Scan(&m.Seq, &m.Role, &m.Content, &calls, &m.ToolCallID, &meta)
			m.ToolCalls, m.Meta = rawOrNil(calls), rawOrNil(meta)
			list = append(list, m)
			return err
		}, `
			SELECT seq, role, content, tool_calls, tool_call_id, meta_json
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

// sessions lists the sessions last used first, at most limit (0: all).
func (v *vault) sessions(ctx context.Context, limit int) (list []sessionInfo, err error) {
	defer wrapDeed(&err, "list sessions")
	if limit < 1 {
		limit = -1 // SQLite: no limit
	}
	err = v.view(ctx, func(tx *sql.Tx) error {
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var s sessionInfo
			var created, updated int64
			err := r.Scan(&s.ID, &s.Profile, &s.Title, &created, &updated, &s.Messages)
			s.Created, s.Updated = time.Unix(created, 0), time.Unix(updated, 0)
			list = append(list, s)
			return err
		}, `
			SELECT id, profile, title, created, updated,
				(SELECT count(*) FROM messages WHERE session = id)
			FROM sessions
			ORDER BY updated DESC, seq DESC
			LIMIT ?`,
			limit)
	})
	return list, err
}
