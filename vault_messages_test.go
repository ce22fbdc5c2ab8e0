package main

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// messageTestSession makes a session of messages: "user text", "tool text" and so on.
func messageTestSession(t testing.TB, v *vault, title string, lines ...string) string {
	t.Helper()
	id, err := v.createSession(t.Context(), sessionInfo{Profile: profileDefault, Root: "/" + title, Title: title})
	if err != nil {
		t.Fatal(err)
	}
	var list []storedMessage
	for _, l := range lines {
		role, text, _ := strings.Cut(l, " ")
		m := storedMessage{Role: role, Content: text}
		if role == messageTool {
			m.ToolCallID = "c"
		}
		list = append(list, m)
	}
	if err := v.appendMessages(t.Context(), id, list); err != nil {
		t.Fatal(err)
	}
	return id
}

// messageTestFound gives title, number and turn of each hit.
func messageTestFound(t testing.TB, v *vault, q messageQuery) (found string, left int) {
	t.Helper()
	hits, left, err := v.searchMessages(t.Context(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	for _, h := range hits {
		found += fmt.Sprintf("%s/%d/%d ", h.Title, h.Seq, h.Turn)
	}
	return strings.TrimSpace(found), left
}

func TestSearchMessages(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, t.TempDir())
	tea := messageTestSession(t, v, "tea", "user when is the tea ready?", "assistant ", "tool kettle: boiling; deploy", "assistant at four", "user and the deploy?", "assistant the deploy of the blue kettle is done", "compaction tea and kettle")
	messageTestSession(t, v, "war", "user deploy", "assistant deploy again", "user deploy once more", "assistant deploy it", "tool "+strings.Repeat("x", messageResultMax)+" hidden")
	messageTestSession(t, v, "long", "user "+strings.Repeat("x ", 5000)+"needle東京都")
	for _, tc := range []struct {
		query messageQuery
		want  string
		left  int
	}{
		{messageQuery{Words: "tea", Limit: 9}, "tea/1/1", 0},
		{messageQuery{Words: "kettle", Limit: 9}, "tea/6/2 tea/3/1", 0},
		{messageQuery{Words: "kettle", Limit: 1}, "tea/6/2", 1},
		{messageQuery{Words: "BLUE kettle", Limit: 9}, "tea/6/2", 0},
		{messageQuery{Words: "kettle nowhere", Limit: 9}, "tea/6/2 tea/3/1", 0},
		{messageQuery{Words: "blue deploy nowhere", Limit: 9}, "tea/6/2 war/4/2 war/3/2 war/2/1 tea/5/2 tea/3/1", 1},
		{messageQuery{Words: "deploy", Limit: 9}, "war/4/2 war/3/2 war/2/1 tea/6/2 tea/5/2 tea/3/1", 1},
		{messageQuery{Words: "deploy", Limit: 9, Except: tea}, "war/4/2 war/3/2 war/2/1", 1},
		{messageQuery{Words: "kett", Limit: 9}, "tea/6/2 tea/3/1", 0},
		{messageQuery{Words: "ke", Limit: 9}, "", 0},
		{messageQuery{Words: "京都", Limit: 9}, "long/1/1", 0},
		{messageQuery{Words: "needle", Limit: 9}, "long/1/1", 0},
		{messageQuery{Words: "hidden", Limit: 9}, "", 0},
		{messageQuery{Words: "?!", Limit: 9}, "", 0},
	} {
		if got, left := messageTestFound(t, v, tc.query); got != tc.want || left != tc.left {
			t.Errorf("%+v: %q and %d more, want %q and %d", tc.query, got, left, tc.want, tc.left)
		}
	}
	hits, _, err := v.searchMessages(t.Context(), messageQuery{Words: "needle", Limit: 1})
	if err != nil || !strings.Contains(hits[0].Snippet, "needle") || hits[0].Root != "/long" || hits[0].Role != "user" || !hits[0].Created.Equal(vaultClock()) {
		t.Errorf("%+v, %v", hits, err)
	}
	if err := v.deleteSession(t.Context(), tea); err != nil {
		t.Fatal(err)
	}
	if got, _ := messageTestFound(t, v, messageQuery{Words: "kettle", Limit: 9}); got != "" {
		t.Errorf("after delete: %q", got)
	}
	if err := v.appendMessages(t.Context(), "s-none", []storedMessage{{Role: "user", Content: "kettle"}}); !errors.Is(err, errNotFound) {
		t.Error(err)
	}
	var rows int
	if err := v.db.QueryRow(`SELECT count(*) FROM messages_fts_docsize`).Scan(&rows); err != nil || rows != 6 {
		t.Errorf("%d rows of the index, %v", rows, err)
	}
}

// A vault of the schema before gets its messages indexed, those of gone sessions and empty ones aside, and a later index goes on from it.
func TestMessagesMigrated(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home")
	before := 0
	for i, m := range vaultMigrations() {
		if m == vaultSchemaMemories {
			before = i
		}
	}
	v, err := openVaultAs(t.Context(), home, vaultWrite, vaultClock, testKeys(), vaultMigrations()[:before])
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := v.searchMessages(t.Context(), messageQuery{Words: "x"}); !errors.Is(err, errNoMessageIndex) {
		t.Errorf("without an index: %v", err)
	}
	if _, _, err := v.searchMemories(t.Context(), memoryQuery{Limit: 1}); err != nil {
		t.Error(err)
	}
	if _, _, err := v.memory(t.Context(), "x"); !errors.Is(err, errNotFound) {
		t.Error(err)
	}
	err = v.withTx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec(`
			INSERT INTO sessions (id, profile, title, created, updated) VALUES ('s-1', '', 'one', 1, 1), ('s-2', '', 'two', 1, 1);
			INSERT INTO messages (session, seq, role, content, tool_calls, tool_call_id, meta_json, created) VALUES
				('s-2', 1, 'user', 'AND "kettle" '||char(0)||' tea', '', '', '', 1), ('s-1', 1, 'tool', 'kettle', '', '', '', 1), ('s-1', 2, 'assistant', '', '', '', '', 1),
				('s-1', 3, 'compaction', 'kettle', '', '', '', 1), ('s-gone', 1, 'user', 'kettle', '', '', '', 1)`)
		return err
	})
	if err := errors.Join(err, v.close()); err != nil {
		t.Fatal(err)
	}
	v = vaultAt(t, home)
	if err := v.appendMessages(t.Context(), "s-1", []storedMessage{{Role: "user", Content: "kettle"}}); err != nil {
		t.Fatal(err)
	}
	if got, _ := messageTestFound(t, v, messageQuery{Words: "kettle", Limit: 9}); got != "two/1/1 one/4/1 one/1/0" {
		t.Errorf("found %q", got)
	}
	r := checkedVault(t, home)
	for _, f := range r.Problems {
		if strings.Contains(f.What, "search finds") || strings.Contains(f.What, "index") {
			t.Errorf("%+v", f)
		}
	}
}

// BenchmarkSearch looks through 100,000 messages and 10,000 memories.
func BenchmarkSearch(b *testing.B) {
	v := vaultAt(b, b.TempDir())
	benchFill(b, v, 100_000, 10_000)
	for _, query := range []string{"w777", "common", "w777 common", "how was w777 with w778 nowhere"} {
		b.Run("messages/"+query, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := v.searchMessages(b.Context(), messageQuery{Words: query, Limit: 10}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("memories/"+query, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := v.searchMemories(b.Context(), memoryQuery{Words: query, Limit: 10}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			if err := v.appendMessages(b.Context(), "s-1", []storedMessage{{Role: "user", Content: benchWords(1, 60)}}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// benchWords gives n words, few of them often and many seldom.
func benchWords(seed, n int) string {
	var b strings.Builder
	for i := range n {
		seed = (seed*1103515245 + 12345 + i) & 0x7fffffff
		x := float64(seed%10007) / 10007
		fmt.Fprintf(&b, "w%d ", int(x*x*x*20_000))
	}
	return b.String() + "common"
}

func benchFill(b *testing.B, v *vault, messages, memories int) {
	b.Helper()
	start := time.Now()
	err := v.withTx(b.Context(), func(tx *sql.Tx) error {
		for i := range messages {
			session := int64(i/200 + 1)
			if i%200 == 0 {
				if _, err := tx.Exec(`INSERT INTO sessions (seq, id, profile, title, created, updated) VALUES (?, ?, '', 't', 1, 1)`, session, fmt.Sprint("s-", session)); err != nil {
					return err
				}
			}
			role, text := []string{"user", "assistant", "tool"}[i%3], benchWords(i, []int{20, 60, 100}[i%3])
			_, err := tx.Exec(`INSERT INTO messages (session, seq, role, content, tool_calls, tool_call_id, meta_json, created) VALUES (?, ?, ?, ?, '', '', '', 1)`, fmt.Sprint("s-", session), i%200+1, role, text)
			if err == nil {
				err = indexMessage(b.Context(), tx, messageRow(session, i%200+1), role, text)
			}
			if err != nil {
				return err
			}
		}
		for i := range memories {
			if _, err := v.addMemory(b.Context(), tx, memory{Text: fmt.Sprint(i, " ", benchWords(i, 20))}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d messages and %d memories stored in %v", messages, memories, time.Since(start))
}
