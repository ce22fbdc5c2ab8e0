// This file holds what the file tools changed: for each change the state of every file before it, so that it can be put back, also after a crash. It
// touches no file of a workspace, and does not know what a change means.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"io/fs"
	"strings"
	"time"
)

const (
	changePrefix   = "h-"
	changeIDMark   = "<id>"              // stands in a Target for the id of its change, until that has one
	changeBodyMax  = 32 << 20            // bytes of one file's content before a change
	changeBodies   = 128 << 20           // bytes of all of them in one change
	changesMax     = 512 << 20           // bytes of all changes; beyond, the oldest go
	trashMax       = int64(4) << 30      // bytes in tai's trash; beyond, the oldest go
	changesMaxRows = 20_000              // files of all changes; beyond, the oldest go
	changesMaxAge  = 30 * 24 * time.Hour // after which a change can no longer be undone
)

// The kinds of a step, and the states of a change.
const (
	changeFile   = "file"   // a file was made, changed or removed
	changeLink   = "link"   // a symbolic link was removed or made; its target is the body
	changeFolder = "folder" // a folder was made, or an empty one removed
	changeMove   = "move"   // something went from Path to Target
	changeKept   = "kept"   // written down, perhaps not done
	changeDone   = "done"
)

// changeStep is what happened to one path. Before and After are SHA-256 in lower-case hex, "" where nothing is there; for a moved folder, or a moved file
// over changeBodyMax, both are "" too.
type changeStep struct {
	Path, Target  string // absolute
	Kind          string
	Existed       bool
	Mode          fs.FileMode // permission bits before
	Size          int64
	Before, After string
	Body          []byte
}

// fileChange is one change: all of it is undone, or nothing. Undoes and Undone are ids of changes, or "".
type fileChange struct {
	ID, Session, Call, Tool, Root string
	State, Undoes, Undone         string
	Created                       time.Time
	Steps                         []changeStep
	seq                           int64 // of its last step
}

// keepChange puts a change on disk before it is done, gives it its id, and drops the oldest ones beyond the caps, whose ids it returns.
func (v *vault) keepChange(ctx context.Context, c *fileChange) (dropped []string, err error) {
	defer wrapDeed(&err, "keep the state before the change")
	c.Created, c.State = time.Unix(v.now().Unix(), 0), changeKept
	err = v.withTaleTx(ctx, func(tx *sql.Tx) error {
		c.ID, err = v.newID(changePrefix, func(id string) (taken bool, err error) {
			err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM changes WHERE id = ?)`, id).Scan(&taken)
			return taken, err
		})
		if err != nil {
			return err
		}
		for i := range c.Steps {
			s := &c.Steps[i]
			s.Target = strings.ReplaceAll(s.Target, changeIDMark, c.ID)
			body := s.Body
			if body == nil {
				body = []byte{} // nil would be NULL
			}
			_, err := tx.ExecContext(ctx, `
				INSERT INTO changes (id, step, session, call, tool, root, path, target, kind, existed, mode, size, before, after, state, undoes, undone, created, body)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', ?, ?)`,
				c.ID, i+1, c.Session, c.Call, c.Tool, c.Root, s.Path, s.Target, s.Kind, s.Existed, int64(s.Mode), s.Size, s.Before, s.After,
				changeKept, c.Undoes, c.Created.Unix(), body)
			if err != nil {
				return err
			}
		}
		dropped, err = pruneChanges(ctx, tx, c)
		return err
	})
	return dropped, err
}

// pruneChanges drops changes that are too old, and the oldest ones while there are too many, but never c itself.
func pruneChanges(ctx context.Context, tx *sql.Tx, c *fileChange) (dropped []string, err error) {
	var rows, bytes, trash int64
	oldest := c.Created.Add(-changesMaxAge).Unix()
	err = eachRow(ctx, tx, func(r *sql.Rows) error {
		var id string
		var n, size, moved, created int64
		if err := r.Scan(&id, &n, &size, &moved, &created); err != nil {
			return err
		}
		rows, bytes, trash = rows+n, bytes+size, trash+moved
		if id != c.ID && (rows > changesMaxRows || bytes > changesMax || trash > trashMax || created < oldest) {
			dropped = append(dropped, id)
		}
		return nil
	}, `
		SELECT id, count(*), sum(CASE kind WHEN ?1 THEN 0 ELSE size END), sum(CASE kind WHEN ?1 THEN size ELSE 0 END), max(created)
		FROM changes
		GROUP BY id
		ORDER BY max(seq) DESC`, changeMove)
	for _, id := range dropped {
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM changes WHERE id = ?`, id)
		}
	}
	return dropped, err
}

// dropChange forgets a change that was not done.
func (v *vault) dropChange(ctx context.Context, id string) (err error) {
	defer wrapDeed(&err, "forget change %s", id)
	return v.withTaleTx(ctx, func(tx *sql.Tx) error {
		return execOne(ctx, tx, `DELETE FROM changes WHERE id = ?`, id)
	})
}

// finishChange marks a change as done, and the one that it undid as undone. If that was an undo itself, what it had undone is in force again, and so on.
func (v *vault) finishChange(ctx context.Context, c *fileChange) (err error) {
	defer wrapDeed(&err, "mark change %s as done", c.ID)
	return v.withTaleTx(ctx, func(tx *sql.Tx) error {
		if err := execOne(ctx, tx, `UPDATE changes SET state = ? WHERE id = ?`, changeDone, c.ID); err != nil {
			return err
		}
		return markUndone(ctx, tx, c.Undoes, c.ID)
	})
}

// settleUndone marks a change as undone whose files are as they were before it already.
func (v *vault) settleUndone(ctx context.Context, id string) (err error) {
	defer wrapDeed(&err, "mark change %s as undone", id)
	return v.withTaleTx(ctx, func(tx *sql.Tx) error { return markUndone(ctx, tx, id, id) })
}

// markUndone follows the chain of undone undos from id on; by is what undid it.
func markUndone(ctx context.Context, tx *sql.Tx, id, by string) error {
	for undone := true; id != ""; undone = !undone {
		var undoes string
		err := tx.QueryRowContext(ctx, `SELECT undoes FROM changes WHERE id = ? AND step = 1`, id).Scan(&undoes)
		if orNotFound(err) == errNotFound {
			return nil // dropped, and nothing of it can be undone any more
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, `UPDATE changes SET undone = ? WHERE id = ?`, map[bool]string{true: by}[undone], id)
		}
		if err != nil {
			return err
		}
		id, by = undoes, id
	}
	return nil
}

const changeColumns = `id, session, call, tool, root, state, undoes, undone, created, seq, path, target, kind, existed, mode, size, before, after`

// change gives a change with its contents, or errNotFound.
func (v *vault) change(ctx context.Context, id string) (c fileChange, err error) {
	defer wrapDeed(&err, "read change %q", id)
	err = v.view(ctx, func(tx *sql.Tx) error {
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			return c.scan(r, true)
		}, `SELECT `+changeColumns+`, body FROM changes WHERE id = ? ORDER BY step`, spokenID(id))
	})
	return c, cmp.Or(err, map[bool]error{true: errNotFound}[c.ID == ""])
}

// scan adds the step of one row.
func (c *fileChange) scan(r *sql.Rows, body bool) error {
	var s changeStep
	var created, mode int64
	to := []any{&c.ID, &c.Session, &c.Call, &c.Tool, &c.Root, &c.State, &c.Undoes, &c.Undone, &created, &c.seq, &s.Path, &s.Target, &s.Kind, &s.Existed, &mode, &s.Size, &s.Before, &s.After}
	if body {
		to = append(to, &s.Body)
	}
	err := r.Scan(to...)
	c.Created, s.Mode = time.Unix(created, 0), fs.FileMode(mode)
	c.Steps = append(c.Steps, s)
	return err
}

// lastChange gives the id of the last change in a workspace that is in force and no undo itself; of those that touched path, unless that is "". errNotFound
// when there is none.
func (v *vault) lastChange(ctx context.Context, root, path string) (id string, err error) {
	err = v.view(ctx, func(tx *sql.Tx) error {
		return orNotFound(tx.QueryRowContext(ctx, `
			SELECT id FROM changes
			WHERE root = ?1 AND undone = '' AND undoes = '' AND (?2 = '' OR path = ?2 OR target = ?2)
			ORDER BY seq DESC LIMIT 1`,
			root, path).Scan(&id))
	})
	return id, err
}

// changeAfter gives the first change in force that touched path behind the change c; errNotFound when there is none.
func (v *vault) changeAfter(ctx context.Context, c fileChange, path string) (id, tool string, err error) {
	err = v.view(ctx, func(tx *sql.Tx) error {
		return orNotFound(tx.QueryRowContext(ctx, `
			SELECT id, tool FROM changes
			WHERE seq > ?1 AND undone = '' AND (path = ?2 OR target = ?2)
			ORDER BY seq LIMIT 1`,
			c.seq, path).Scan(&id, &tool))
	})
	return id, tool, err
}

// unfinishedChanges lists, without contents, the changes of a workspace that were begun before a time and never marked as done: their process was killed.
func (v *vault) unfinishedChanges(ctx context.Context, root string, before time.Time) (list []fileChange, err error) {
	defer wrapDeed(&err, "look for unfinished changes")
	err = v.view(ctx, func(tx *sql.Tx) error {
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var c fileChange
			err := c.scan(r, false)
			if n := len(list) - 1; n >= 0 && list[n].ID == c.ID {
				list[n].Steps = append(list[n].Steps, c.Steps...)
			} else {
				list = append(list, c)
			}
			return err
		}, `SELECT `+changeColumns+` FROM changes WHERE root = ? AND state = ? AND created < ? ORDER BY seq`, root, changeKept, before.Unix())
	})
	return list, err
}
