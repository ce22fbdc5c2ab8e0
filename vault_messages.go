// This file keeps the words of messages and finds messages by them. It knows nothing of models; who appends and deletes keeps the index in step.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"time"
)

// Roles of a message that the index tells from what the person and the model said.
const (
	messageTool    = "tool"
	messageSummary = "compaction" // what it sums up is in the index already
)

const (
	messageFetch      = 500     // newest hits of one expression that are looked at; it bounds what a word costs that is everywhere
	messagePerSession = 3       // of which one session may have so many
	messageResultMax  = 4 << 10 // bytes of a tool's result that are indexed; what is over mcpResultMax is a record with an index of its own
	messageResultRank = 0.3     // of a word in a tool's result; one that was said counts 1
)

// errNoMessageIndex is a vault of an older schema that cannot be written.
var errNoMessageIndex = errors.New("the vault has no index of messages yet, and cannot be written")

// messageQuery asks for messages by words. Except is a session that is left out.
type messageQuery struct {
	Words, Except string
	Limit         int
}

// messageHit is a message that a search found. Turn counts from 1, as the person spoke.
type messageHit struct {
	Session, Title, Root, Parent string
	Seq, Turn                    int
	Role, Snippet                string
	Created                      time.Time
}

// messageRow is the row of messages_fts of a message; session is the seq of its session.
func messageRow(session int64, seq int) int64 { return session<<32 | int64(seq) }

// indexMessage adds the words of a message. Summaries and empty messages have no row.
func indexMessage(ctx context.Context, tx *sql.Tx, row int64, role, content string) error {
	if role == messageSummary || content == "" {
		return nil
	}
	said, result := content, ""
	if role == messageTool {
		said, result = "", content[:min(len(content), messageResultMax)]
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO messages_fts (rowid, said, result) VALUES (?, ?, ?)`, row, indexText(said), indexText(result))
	return err
}

// messageMatch is one message that holds words of a query.
type messageMatch struct {
	row   int64
	score float64
}

// searchMessages finds messages by words: those that hold all of them, or if there are none those that hold any. What was said comes before what
// tools gave, rare words before common ones, and of equals the newest. Of one session it gives at most messagePerSession. left is how many
// others fit; there may be more where it is messageFetch or over.
func (v *vault) searchMessages(ctx context.Context, q messageQuery) (hits []messageHit, left int, err error) {
	defer wrapDeed(&err, "search sessions")
	terms := searchTerms(q.Words)
	err = v.view(ctx, func(tx *sql.Tx) error {
		if there, err := hasTable(ctx, tx, "messages_fts"); err != nil || !there {
			return joinErrors(err, errNoMessageIndex)
		}
		if len(terms) == 0 {
			return nil
		}
		except, err := sessionRows(ctx, tx, q.Except)
		if err != nil {
			return err
		}
		found, err := matchMessages(ctx, tx, terms)
		if err != nil {
			return err
		}
		of := map[int64]int{}
		for _, m := range found {
			session := m.row >> 32
			if session == except {
				continue
			}
			if of[session]++; of[session] > messagePerSession || len(hits) == q.Limit {
				left++
				continue
			}
			h, err := readHit(ctx, tx, m.row, terms)
			if err != nil {
				return err
			}
			hits = append(hits, h)
		}
		return nil
	})
	return hits, left, err
}

// sessionRows gives the upper bits of a session's rows, -1 where there is no such session.
func sessionRows(ctx context.Context, tx *sql.Tx, id string) (rows int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT coalesce((SELECT seq FROM sessions WHERE id = ?), -1)`, id).Scan(&rows)
	return rows, err
}

// matchMessages gives what fits, best first. An expression of whole words is followed row by row from the newest on, so that its cost does not grow
// with the messages that fit.
func matchMessages(ctx context.Context, tx *sql.Tx, terms []string) (found []messageMatch, err error) {
	scores := map[int64]float64{}
	for _, expression := range []string{matchExpression(terms, " AND ", 0), matchExpression(terms, " AND ", searchPrefixMin)} {
		if err := scoreMessages(ctx, tx, scores, expression); err != nil {
			return nil, err
		}
		if len(scores) > 0 {
			break
		}
	}
	if len(scores) == 0 && len(terms) > 1 {
		if err := scoreWords(ctx, tx, scores, terms); err != nil {
			return nil, err
		}
	}
	for row, score := range scores {
		found = append(found, messageMatch{row, score})
	}
	sortBy(found, func(a, b messageMatch) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.row, a.row)) })
	return found, nil
}

// scoreWords adds up what each word by itself finds, a rare one more than one that is everywhere.
func scoreWords(ctx context.Context, tx *sql.Tx, scores map[int64]float64, terms []string) error {
	for i := range terms {
		of := map[int64]float64{}
		for _, prefix := range []int{0, searchPrefixMin} {
			if err := scoreMessages(ctx, tx, of, matchExpression(terms[i:i+1], "", prefix)); err != nil {
				return err
			}
			if len(of) > 0 {
				break
			}
		}
		rare := math.Log1p(messageFetch / float64(max(len(of), 1)))
		for row, score := range of {
			scores[row] += score * rare
		}
	}
	return nil
}

// scoreMessages gives 1 to the newest messages that hold what the expression asks for in what was said, and less to the others that fit.
func scoreMessages(ctx context.Context, tx *sql.Tx, scores map[int64]float64, expression string) error {
	for _, part := range []struct {
		expression string
		score      float64
	}{{expression, messageResultRank}, {"said : (" + expression + ")", 1}} {
		err := eachRow(ctx, tx, func(r *sql.Rows) error {
			var row int64
			err := r.Scan(&row)
			scores[row] = part.score
			return err
		}, `SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? ORDER BY rowid DESC LIMIT ?`, part.expression, messageFetch)
		if err != nil || len(scores) == 0 {
			return err
		}
	}
	return nil
}

// readHit reads the message of a row of the index.
func readHit(ctx context.Context, tx *sql.Tx, row int64, terms []string) (h messageHit, err error) {
	var created int64
	var body []byte
	err = tx.QueryRowContext(ctx, `
		SELECT s.id, s.title, s.root, s.parent, m.seq, m.role, m.created, substr(m.content, 1, ?3),
			(SELECT count(*) FROM messages WHERE session = s.id AND seq <= m.seq AND role = 'user')
		FROM sessions AS s JOIN messages AS m ON m.session = s.id
		WHERE s.seq = ?1 AND m.seq = ?2`,
		row>>32, row&math.MaxUint32, searchScanMax).Scan(&h.Session, &h.Title, &h.Root, &h.Parent, &h.Seq, &h.Role, &created, &body, &h.Turn)
	h.Created, h.Snippet = time.Unix(created, 0), snippet(body, terms)
	return h, orNotFound(err)
}
