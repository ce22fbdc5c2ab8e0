// This file holds records: what did not fit inline, kept whole with its origin and found again by its words. It knows
// nothing of who spills what.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"time"
	"unicode/utf8"
)

const (
	recordPrefix  = "r-"
	recordColumns = `id, kind, origin, session, size, sha256, text, created`
)

// recordInfo is a record without its body. Size is in bytes; SHA256 is lower-case hex.
type recordInfo struct {
	ID, Kind, Origin, Session string
	Size                      int64
	SHA256                    string
	Text                      bool // valid UTF-8 without NUL, and so searchable
	Created                   time.Time
}

// recordHit is a record that a search found, with a piece of its text around the first word found.
type recordHit struct {
	recordInfo
	Snippet string
}

// recordTargets lists where to scan recordColumns, the creation time apart.
//
//go:noinline for size: it is called in many places
func (r *recordInfo) recordTargets(created *int64) []any {
	return []any{&r.ID, &r.Kind, &r.Origin, &r.Session, &r.Size, &r.SHA256, &r.Text, created}
}

// putRecord keeps body under a new short id. session is "" when there is none.
func (v *vault) putRecord(ctx context.Context, kind, origin, session string, body []byte) (info recordInfo, err error) {
	defer wrapDeed(&err, "store record of %d bytes", len(body))
	sum := sha256.Sum256(body)
	info = recordInfo{
		Kind: kind, Origin: origin, Session: session,
		Size: int64(len(body)), SHA256: hex.EncodeToString(sum[:]),
		Text:    utf8.Valid(body) && !bytes.ContainsRune(body, 0),
		Created: time.Unix(v.now().Unix(), 0),
	}
	var words string
	if info.Text {
		words = indexText(string(body))
	}
	if body == nil {
		body = []byte{} // nil would be NULL
	}
	err = v.withTaleTx(ctx, func(tx *sql.Tx) error {
		info.ID, err = v.newID(recordPrefix, func(id string) (taken bool, err error) {
			err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM records WHERE id = ?)`, id).Scan(&taken)
			return taken, err
		})
		if err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx, `
			INSERT INTO records (`+recordColumns+`, body)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			info.ID, kind, origin, session, info.Size, info.SHA256, info.Text, info.Created.Unix(), body)
		if err != nil || !info.Text {
			return err
		}
		seq, err := res.LastInsertId()
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO records_fts (rowid, body, origin) VALUES (?, ?, ?)`, seq, words, origin)
		return err
	})
	return info, err
}

// record gives a record whole, or errNotFound.
func (v *vault) record(ctx context.Context, id string) (info recordInfo, body []byte, err error) {
	defer wrapDeed(&err, "read record %q", id)
	err = v.view(ctx, func(tx *sql.Tx) error {
		var created int64
		row := tx.QueryRowContext(ctx, `SELECT `+recordColumns+`, body FROM records WHERE id = ?`, spokenID(id))
		err := orNotFound(row.Scan(append(info.recordTargets(&created), &body)...))
		info.Created = time.Unix(created, 0)
		return err
	})
	return info, body, err
}

// records lists the newest records first, at most limit (0: all), with the number of all that match. kind and session
// limit the list unless "".
func (v *vault) records(ctx context.Context, kind, session string, limit int) (list []recordInfo, total int, err error) {
	defer wrapDeed(&err, "list records")
	if limit < 1 {
		limit = -1 // SQLite: no limit
	}
	const match = ` FROM records WHERE (?1 = '' OR kind = ?1) AND (?2 = '' OR session = ?2)`
	err = v.view(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, `SELECT count(*)`+match, kind, session).Scan(&total); err != nil {
			return err
		}
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var info recordInfo
			var created int64
			err := r.Scan(info.recordTargets(&created)...)
			info.Created = time.Unix(created, 0)
			list = append(list, info)
			return err
		}, `SELECT `+recordColumns+match+` ORDER BY seq DESC LIMIT ?3`, kind, session, limit)
	})
	return list, total, err
}

// searchRecords finds text records by words, best first and of equals the newest, at most limit (0: 20): those that hold all words, or if
// there are none those that hold any. The query is words, never an expression: quotes and operators are text.
func (v *vault) searchRecords(ctx context.Context, query string, limit int) (hits []recordHit, err error) {
	defer wrapDeed(&err, "search records")
	if limit < 1 {
		limit = 20
	}
	terms := searchTerms(query)
	err = v.view(ctx, func(tx *sql.Tx) error {
		return eachMatch(terms, func(expression string) (found int, err error) {
			err = eachRow(ctx, tx, func(r *sql.Rows) error {
				var h recordHit
				var created int64
				var body []byte
				err := r.Scan(append(h.recordTargets(&created), &body)...)
				h.Created, h.Snippet = time.Unix(created, 0), snippet(body, terms)
				hits = append(hits, h)
				return err
			}, `
				SELECT `+recordColumns+`, substr(body, 1, ?3)
				FROM (SELECT rowid AS hit, rank AS score FROM records_fts WHERE records_fts MATCH ?1 ORDER BY rank, rowid DESC LIMIT ?2)
				JOIN records ON seq = hit
				ORDER BY score, seq DESC`,
				expression, limit, searchScanMax)
			return len(hits), err
		})
	})
	return hits, err
}

// deleteRecord drops a record and its words, or says errNotFound.
func (v *vault) deleteRecord(ctx context.Context, id string) (err error) {
	defer wrapDeed(&err, "delete record %q", id)
	return v.withTaleTx(ctx, func(tx *sql.Tx) error {
		var seq int64
		err := tx.QueryRowContext(ctx, `SELECT seq FROM records WHERE id = ?`, spokenID(id)).Scan(&seq)
		if err := orNotFound(err); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM records_fts WHERE rowid = ?`, seq); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM records WHERE seq = ?`, seq)
		return err
	})
}
