// This file holds memories: short facts that are kept for later conversations, under a key or an id, with the earlier texts of each. It knows
// no secret and nobody who remembers: what may be kept is its caller's to judge.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	memoryMax        = 10_000  // memories that are kept
	memoryTextMax    = 4 << 10 // bytes of one memory
	memoryKeyMax     = 128     // bytes of a key
	memoryTagMax     = 64      // bytes of a tag
	memoryTagsMax    = 16      // tags of one memory
	memoryRankMax    = 1000    // memories that a search ranks; of more it gives the newest
	memoryHistoryMax = 20      // earlier texts that are kept of one memory
	memoryPrefix     = "m-"
	memoryRank       = `'bm25(1.0, 3.0, 2.0)'` // of text, key and tags
	memoryColumns    = `id, key, text, tags, profile, session, created, updated, (SELECT count(*) FROM memory_history WHERE memory = id)`
)

// What saveMemory did.
const (
	memorySaved     = "saved"
	memoryChanged   = "changed"
	memoryUnchanged = "unchanged"
)

// memory is one fact. Tags are in lower case and in order. Earlier is the number of earlier texts that are kept.
type memory struct {
	ID, Key, Text    string
	Tags             []string
	Profile, Session string // it was last saved in
	Created, Updated time.Time
	Earlier          int
}

// memoryVersion is an earlier text and from when on it was the text.
type memoryVersion struct {
	Text string
	Tags []string
	Time time.Time
}

// memoryQuery asks for memories that hold words and all of the tags; without both it is all.
type memoryQuery struct {
	Words string
	Tags  []string
	Limit int
}

// checked gives the memory as it is kept, or says what of it cannot be.
func (m memory) checked() (memory, error) {
	switch m.Text = strings.TrimSpace(m.Text); {
	case m.Text == "":
		return m, newError("text: there is nothing in it")
	case len(m.Text) > memoryTextMax:
		return m, errorf("text: it has %d bytes, at most %d are kept; keep a document in a file and remember where it is", len(m.Text), memoryTextMax)
	case !utf8.ValidString(m.Text) || strings.ContainsRune(m.Text, 0):
		return m, newError("text: it is no UTF-8 text, or holds a NUL")
	}
	if m.Key = strings.TrimSpace(m.Key); m.Key != "" {
		if err := checkMemoryWord(m.Key, memoryKeyMax); err != nil {
			return m, errorf("key: %w", err)
		}
		if strings.HasPrefix(strings.ToLower(m.Key), memoryPrefix) {
			return m, errorf("key: what begins with %q is the id of a memory", memoryPrefix)
		}
	}
	var err error
	m.Tags, err = memoryTags(m.Tags)
	return m, err
}

// checkMemoryWord takes a key or a tag: one line without control characters.
func checkMemoryWord(s string, most int) error {
	switch {
	case s == "":
		return newError("it is empty")
	case len(s) > most:
		return errorf("it has %d bytes, at most %d", len(s), most)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(c rune) bool { return unicode.IsControl(c) || hiddenRune(c) || c == '\u2028' || c == '\u2029' }):
		return newError("it holds a line end, a control character or a hidden one")
	}
	return nil
}

// memoryTags gives tags as they are kept: lower case, in order, each once. nil stays nil.
func memoryTags(tags []string) (kept []string, err error) {
	if tags == nil {
		return nil, nil
	}
	kept = []string{}
	for _, tag := range tags {
		tag = strings.ToLower(strings.TrimSpace(tag))
		if err := checkMemoryWord(tag, memoryTagMax); err != nil {
			return nil, errorf("tags: %w", err)
		}
		kept = append(kept, tag)
	}
	slices.Sort(kept)
	if kept = slices.Compact(kept); len(kept) > memoryTagsMax {
		return nil, errorf("tags: there are %d, at most %d", len(kept), memoryTagsMax)
	}
	return kept, nil
}

// tagColumn and tagList move tags between their form here and in the vault.
func tagColumn(tags []string) string {
	if len(tags) == 0 {
		return ""
	}
	return "\n" + strings.Join(tags, "\n") + "\n"
}

func tagList(column string) []string {
	if column == "" {
		return []string{}
	}
	return strings.Split(strings.Trim(column, "\n"), "\n")
}

// scan reads a row of memoryColumns.
func (m *memory) scan(row interface{ Scan(...any) error }) error {
	var tags string
	var created, updated int64
	err := row.Scan(&m.ID, &m.Key, &m.Text, &tags, &m.Profile, &m.Session, &created, &updated, &m.Earlier)
	m.Tags, m.Created, m.Updated = tagList(tags), time.Unix(created, 0), time.Unix(updated, 0)
	return err
}

// saveMemory keeps a memory. Under a key that is there already the text before goes into the history; so do its tags, and without tags it keeps
// them. The same text again changes nothing, also without a key. state says what was done.
func (v *vault) saveMemory(ctx context.Context, m memory) (saved memory, state string, err error) {
	defer wrapDeed(&err, "save memory")
	if m, err = m.checked(); err != nil {
		return memory{}, "", err
	}
	err = v.withTx(ctx, func(tx *sql.Tx) error {
		seq, old, err := findMemory(ctx, tx, m)
		switch {
		case errors.Is(err, errNotFound):
			state = memorySaved
			saved, err = v.addMemory(ctx, tx, m)
			return err
		case err != nil:
			return err
		}
		if m.Tags == nil {
			m.Tags = old.Tags
		}
		if saved, state = old, memoryUnchanged; m.Text == old.Text && slices.Equal(m.Tags, old.Tags) {
			return nil
		}
		state = memoryChanged
		saved, err = v.changeMemory(ctx, tx, seq, old, m)
		return err
	})
	return saved, state, err
}

// findMemory gives the memory in whose place m would be kept, or errNotFound.
func findMemory(ctx context.Context, tx *sql.Tx, m memory) (seq int64, old memory, err error) {
	if m.Key != "" {
		err = tx.QueryRowContext(ctx, `SELECT seq FROM memories WHERE key = ? AND key <> ''`, m.Key).Scan(&seq)
	} else {
		err = tx.QueryRowContext(ctx, `SELECT seq FROM memories WHERE sha256 = ? AND key = '' ORDER BY seq DESC LIMIT 1`, sha256Hex([]byte(m.Text))).Scan(&seq)
	}
	if err != nil {
		return 0, old, orNotFound(err)
	}
	return seq, old, old.scan(tx.QueryRowContext(ctx, `SELECT `+memoryColumns+` FROM memories WHERE seq = ?`, seq))
}

func (v *vault) addMemory(ctx context.Context, tx *sql.Tx, m memory) (memory, error) {
	var count int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM memories`).Scan(&count); err != nil {
		return m, err
	}
	if count >= memoryMax {
		return m, errorf("%d memories are kept, the most there can be; delete some first", count)
	}
	var err error
	m.ID, err = v.newID(memoryPrefix, func(id string) (taken bool, err error) {
		err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM memories WHERE id = ?)`, id).Scan(&taken)
		return taken, err
	})
	if err != nil {
		return m, err
	}
	m.Tags, m.Created = orEmpty(m.Tags), time.Unix(v.now().Unix(), 0)
	m.Updated = m.Created
	res, err := tx.ExecContext(ctx, `
		INSERT INTO memories (id, key, text, tags, sha256, profile, session, created, updated)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.ID, m.Key, m.Text, tagColumn(m.Tags), sha256Hex([]byte(m.Text)), m.Profile, m.Session, m.Created.Unix(), m.Created.Unix())
	if err != nil {
		return m, err
	}
	seq, err := res.LastInsertId()
	if err != nil {
		return m, err
	}
	return m, indexMemory(ctx, tx, seq, m)
}

// changeMemory puts the text before into the history, and the row at the end of all.
func (v *vault) changeMemory(ctx context.Context, tx *sql.Tx, seq int64, old, m memory) (memory, error) {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO memory_history (memory, n, text, tags, time)
		SELECT ?1, coalesce(max(n), 0) + 1, ?2, ?3, ?4 FROM memory_history WHERE memory = ?1`,
		old.ID, old.Text, tagColumn(old.Tags), old.Updated.Unix())
	if err != nil {
		return m, err
	}
	_, err = tx.ExecContext(ctx, `
		DELETE FROM memory_history
		WHERE memory = ?1 AND n <= (SELECT max(n) FROM memory_history WHERE memory = ?1) - ?2`,
		old.ID, memoryHistoryMax)
	if err != nil {
		return m, err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM memories_fts WHERE rowid = ?`, seq); err != nil {
		return m, err
	}
	m.ID, m.Key, m.Created, m.Updated, m.Earlier = old.ID, old.Key, old.Created, time.Unix(v.now().Unix(), 0), min(old.Earlier+1, memoryHistoryMax)
	err = tx.QueryRowContext(ctx, `
		UPDATE memories SET
			seq = (SELECT max(seq) + 1 FROM memories),
			text = ?,
			tags = ?,
			sha256 = ?,
			profile = ?,
			session = ?,
			updated = ?
		WHERE seq = ?
		RETURNING seq`,
		m.Text, tagColumn(m.Tags), sha256Hex([]byte(m.Text)), m.Profile, m.Session, m.Updated.Unix(), seq).Scan(&seq)
	if err != nil {
		return m, err
	}
	return m, indexMemory(ctx, tx, seq, m)
}

func indexMemory(ctx context.Context, tx *sql.Tx, seq int64, m memory) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO memories_fts (rowid, text, key, tags) VALUES (?, ?, ?, ?)`,
		seq, indexText(m.Text), indexText(m.Key), indexText(strings.Join(m.Tags, " ")))
	return err
}

// searchMemories gives the memories that fit, best first and of equals the newest, and how many fit in all: those that hold all words, or if
// there are none those that hold any. Without words it lists the newest first.
func (v *vault) searchMemories(ctx context.Context, q memoryQuery) (list []memory, total int, err error) {
	defer wrapDeed(&err, "search memories")
	tags, err := memoryTags(q.Tags)
	if err != nil {
		return nil, 0, err
	}
	tagged, args := "", []any{}
	for _, tag := range tags {
		tagged += ` AND instr(tags, ?) > 0`
		args = append(args, tagColumn([]string{tag}))
	}
	err = v.view(ctx, func(tx *sql.Tx) error {
		if there, err := hasTable(ctx, tx, "memories"); err != nil || !there {
			return err
		}
		if strings.TrimSpace(q.Words) == "" {
			if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM memories WHERE TRUE`+tagged, args...).Scan(&total); err != nil {
				return err
			}
			list, err = readMemories(ctx, tx, ` WHERE TRUE`+tagged+` ORDER BY seq DESC LIMIT ?`, append(args, q.Limit)...)
			return err
		}
		return eachMatch(searchTerms(q.Words), func(expression string) (int, error) {
			list, total, err = matchMemories(ctx, tx, expression, tagged, args, q.Limit)
			return total, err
		})
	})
	return list, total, err
}

// matchMemories runs one expression over the memories with some tags. Words that more than memoryRankMax hold rank nothing: then the newest come first.
func matchMemories(ctx context.Context, tx *sql.Tx, expression, tagged string, tags []any, limit int) (list []memory, total int, err error) {
	matched := ` FROM memories_fts WHERE memories_fts MATCH ?`
	count := `SELECT count(*)` + matched
	if tagged != "" {
		count += ` AND rowid IN (SELECT seq FROM memories WHERE TRUE` + tagged + `)`
	}
	args := append([]any{expression}, tags...)
	if err := tx.QueryRowContext(ctx, count, args...).Scan(&total); err != nil || total == 0 {
		return nil, total, err
	}
	hits := `SELECT rowid AS hit, rank AS score` + matched + ` AND rank MATCH ` + memoryRank
	order := `rank, rowid DESC`
	if total > memoryRankMax {
		hits, order = `SELECT rowid AS hit, 0 AS score`+matched, `rowid DESC`
	}
	if tagged == "" {
		hits += fmt.Sprintf(` ORDER BY %s LIMIT %d`, order, limit)
	}
	list, err = readMemories(ctx, tx, ` JOIN (`+hits+`) ON seq = hit WHERE TRUE`+tagged+` ORDER BY score, seq DESC LIMIT ?`, append(args, limit)...)
	return list, total, err
}

// readMemories reads rows of memories; rest is the query from its table on.
func readMemories(ctx context.Context, tx *sql.Tx, rest string, args ...any) (list []memory, err error) {
	err = eachRow(ctx, tx, func(r *sql.Rows) error {
		var m memory
		err := m.scan(r)
		list = append(list, m)
		return err
	}, `SELECT `+memoryColumns+` FROM memories`+rest, args...)
	return list, err
}

// oneMemory finds a memory by its id or key; errNotFound.
func oneMemory(ctx context.Context, tx *sql.Tx, word string) (seq int64, m memory, err error) {
	if there, err := hasTable(ctx, tx, "memories"); err != nil || !there {
		return 0, m, joinErrors(err, errNotFound)
	}
	err = tx.QueryRowContext(ctx, `SELECT seq FROM memories WHERE id = ? OR key = ? AND key <> ''`, spokenID(word), strings.TrimSpace(word)).Scan(&seq)
	if err != nil {
		return 0, m, orNotFound(err)
	}
	return seq, m, m.scan(tx.QueryRowContext(ctx, `SELECT `+memoryColumns+` FROM memories WHERE seq = ?`, seq))
}

// memory gives one memory by its id or key, with its earlier texts, the newest first; errNotFound.
func (v *vault) memory(ctx context.Context, word string) (m memory, earlier []memoryVersion, err error) {
	defer wrapDeed(&err, "read memory %s", quoteClip(word))
	err = v.view(ctx, func(tx *sql.Tx) (err error) {
		if _, m, err = oneMemory(ctx, tx, word); err != nil {
			return err
		}
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var e memoryVersion
			var tags string
			var at int64
			err := r.Scan(&e.Text, &tags, &at)
			e.Tags, e.Time = tagList(tags), time.Unix(at, 0)
			earlier = append(earlier, e)
			return err
		}, `SELECT text, tags, time FROM memory_history WHERE memory = ? ORDER BY n DESC`, m.ID)
	})
	return m, earlier, err
}

// deleteMemory drops a memory, by its id or key, with its history and its words, and gives what it was; errNotFound.
func (v *vault) deleteMemory(ctx context.Context, word string) (m memory, err error) {
	defer wrapDeed(&err, "delete memory %s", quoteClip(word))
	err = v.withTx(ctx, func(tx *sql.Tx) error {
		var seq int64
		if seq, m, err = oneMemory(ctx, tx, word); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM memory_history WHERE memory = ?`, m.ID); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM memories_fts WHERE rowid = ?`, seq); err != nil {
			return err
		}
		return execOne(ctx, tx, `DELETE FROM memories WHERE seq = ?`, seq)
	})
	return m, err
}
