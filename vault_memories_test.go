package main

import (
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func memoryTestIDs(list []memory) string {
	var ids []string
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, " ")
}

// A key has one text, and those before in its history; the same again changes nothing, with a key and without.
func TestMemories(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	save := func(m memory, want string) memory {
		t.Helper()
		saved, state, err := v.saveMemory(ctx, m)
		if err != nil || state != want {
			t.Fatalf("%+v: %+v, %s, %v; want %s", m, saved, state, err, want)
		}
		if got, _, err := v.memory(ctx, saved.ID); err != nil || fmt.Sprint(got) != fmt.Sprint(saved) {
			t.Errorf("read back %+v, %v; saved %+v", got, err, saved)
		}
		return saved
	}
	plain := save(memory{Text: " the tea is green\n", Tags: []string{"Tea", "tea ", "a b"}, Profile: "default", Session: "s-1"}, memorySaved)
	if plain.Text != "the tea is green" || !slices.Equal(plain.Tags, []string{"a b", "tea"}) || plain.Earlier != 0 || !plain.Created.Equal(vaultClock()) {
		t.Errorf("%+v", plain)
	}
	if !regexp.MustCompile(`^m-[0-9a-hjkmnp-tv-z]{4,}$`).MatchString(plain.ID) {
		t.Errorf("id %q", plain.ID)
	}
	if again := save(memory{Text: "the tea is green"}, memoryUnchanged); again.ID != plain.ID || len(again.Tags) != 2 {
		t.Errorf("%+v", again)
	}
	if again := save(memory{Text: "the tea is green", Tags: []string{}}, memoryChanged); again.ID != plain.ID || len(again.Tags) != 0 || again.Earlier != 1 {
		t.Errorf("%+v", again)
	}
	v.now = func() time.Time { return vaultClock().Add(time.Hour) }
	keyed := save(memory{Text: "make", Key: "Build", Tags: []string{"go"}}, memorySaved)
	if other := save(memory{Text: "make all", Key: " build "}, memoryChanged); other.ID != keyed.ID || other.Key != "Build" || other.Tags[0] != "go" || other.Earlier != 1 {
		t.Errorf("%+v", other)
	}
	save(memory{Text: "make all", Key: "BUILD", Tags: []string{"GO"}}, memoryUnchanged)
	for i := range memoryHistoryMax + 5 {
		save(memory{Text: fmt.Sprint("make ", i), Key: "build"}, memoryChanged)
	}
	m, earlier, err := v.memory(ctx, "bUiLd")
	if err != nil || m.Earlier != memoryHistoryMax || len(earlier) != memoryHistoryMax || earlier[0].Text != fmt.Sprint("make ", memoryHistoryMax+3) || earlier[0].Tags[0] != "go" {
		t.Errorf("%+v, %d earlier, %v", m, len(earlier), err)
	}
	if list, total, err := v.searchMemories(ctx, memoryQuery{Limit: 9}); err != nil || total != 2 || memoryTestIDs(list) != keyed.ID+" "+plain.ID {
		t.Errorf("%+v, %d, %v", list, total, err)
	}
	if gone, err := v.deleteMemory(ctx, strings.ToUpper(keyed.ID)); err != nil || gone.Key != "Build" {
		t.Errorf("%+v, %v", gone, err)
	}
	for _, word := range []string{keyed.ID, "build", "", "m-", "\x00"} {
		if _, err := v.deleteMemory(ctx, word); !errors.Is(err, errNotFound) {
			t.Errorf("%q: %v", word, err)
		}
	}
	if list, total, err := v.searchMemories(ctx, memoryQuery{Words: "make", Limit: 9}); err != nil || total != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	var left int
	if err := v.db.QueryRow(`SELECT (SELECT count(*) FROM memory_history) + (SELECT count(*) FROM memories_fts_docsize)`).Scan(&left); err != nil || left != 2 {
		t.Errorf("%d rows left, %v", left, err)
	}
}

func TestMemoryLimits(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	var tags []string
	for i := range memoryTagsMax + 1 {
		tags = append(tags, fmt.Sprint("t", i))
	}
	for name, tc := range map[string]struct {
		m    memory
		want string
	}{
		"nothing": {memory{}, "text"}, "blank": {memory{Text: " \n"}, "text"}, "long": {memory{Text: strings.Repeat("x", memoryTextMax+1)}, "at most 4096"},
		"NUL": {memory{Text: "a\x00b"}, "text"}, "bytes": {memory{Text: "a\xff"}, "text"}, "key of lines": {memory{Text: "x", Key: "a\nb"}, "key"},
		"long key": {memory{Text: "x", Key: strings.Repeat("k", memoryKeyMax+1)}, "key"}, "an id": {memory{Text: "x", Key: "M-7k2m"}, "key"}, "hidden": {memory{Text: "x", Key: "a\u200bb"}, "key"},
		"empty tag": {memory{Text: "x", Tags: []string{" "}}, "tags"}, "long tag": {memory{Text: "x", Tags: []string{strings.Repeat("k", memoryTagMax+1)}}, "tags"},
		"a tag of lines": {memory{Text: "x", Tags: []string{"a\nb"}}, "tags"}, "tags": {memory{Text: "x", Tags: tags}, "tags"},
	} {
		if _, _, err := v.saveMemory(ctx, tc.m); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	most := memory{Text: strings.Repeat("x", memoryTextMax), Key: strings.Repeat("k", memoryKeyMax), Tags: tags[:memoryTagsMax]}
	if _, _, err := v.saveMemory(ctx, most); err != nil {
		t.Error(err)
	}
	err := v.withTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(`
			WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			INSERT INTO memories (id, key, text, tags, sha256, profile, session, created, updated)
			SELECT 'm-' || i, '', 'x', '', i, '', '', 1, 1 FROM n`, memoryMax)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := v.saveMemory(ctx, memory{Text: "one more"}); err == nil || !strings.Contains(err.Error(), "10000 memories are kept") {
		t.Error(err)
	}
	most.Text = "another"
	if _, state, err := v.saveMemory(ctx, most); err != nil || state != memoryChanged {
		t.Errorf("%s, %v", state, err)
	}
}

// Words in a key count most, then those of tags; of equals the newest comes first; tags narrow, and all of them must be there.
func TestSearchMemories(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	ids := map[string]string{}
	for _, m := range []memory{
		{Text: "the deploy runs on friday", Tags: []string{"work"}},
		{Text: "the garden is watered on friday", Tags: []string{"home"}},
		{Text: "friday", Key: "garden", Tags: []string{"home", "week"}},
		{Text: "roses need water", Tags: []string{"garden", "home"}},
		{Text: "the deployment is blue"},
		{Text: "東京都に行く"},
	} {
		saved, _, err := v.saveMemory(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		ids[saved.ID] = strings.Fields(m.Text)[len(strings.Fields(m.Text))-1] + m.Key
	}
	for _, tc := range []struct {
		words string
		tags  []string
		want  string
	}{
		{"garden", nil, "fridaygarden water friday"}, {"deploy", nil, "friday"}, {"deployment", nil, "blue"}, {"deplo", nil, "blue friday"}, {"京都", nil, "東京都に行く"}, {"行", nil, "東京都に行く"}, {"く", nil, "東京都に行く"},
		{"friday", []string{"home"}, "fridaygarden friday"}, {"", []string{"home"}, "water fridaygarden friday"}, {"", []string{"HOME", "week"}, "fridaygarden"}, {"", []string{"none"}, ""}, {"", []string{"%"}, ""},
		{"garden nowhere", nil, "fridaygarden water friday"}, {"...", nil, ""}, {"nowhere", nil, ""},
	} {
		list, total, err := v.searchMemories(ctx, memoryQuery{Words: tc.words, Tags: tc.tags, Limit: 9})
		var got []string
		for _, m := range list {
			got = append(got, ids[m.ID])
		}
		if err != nil || strings.Join(got, " ") != tc.want || total != len(list) {
			t.Errorf("%q %q: %q, %d, %v; want %q", tc.words, tc.tags, got, total, err, tc.want)
		}
	}
	if list, total, err := v.searchMemories(ctx, memoryQuery{Words: "friday", Limit: 2}); err != nil || len(list) != 2 || total != 3 {
		t.Errorf("%d of %d, %v", len(list), total, err)
	}
	if _, _, err := v.searchMemories(ctx, memoryQuery{Tags: []string{"a\nb"}, Limit: 9}); err == nil {
		t.Error("a tag of two lines passed")
	}
}

// A word that very many memories hold ranks nothing: the newest come first, and all are counted.
func TestSearchMemoriesMany(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, t.TempDir())
	err := v.withTx(t.Context(), func(tx *sql.Tx) error {
		for i := range memoryRankMax + 1 {
			if _, err := v.addMemory(t.Context(), tx, memory{Text: fmt.Sprint("common n", i), Tags: []string{[]string{"even", "odd"}[i%2]}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		query memoryQuery
		total int
		first string
	}{
		{memoryQuery{Words: "common", Limit: 2}, memoryRankMax + 1, "common n1000"}, {memoryQuery{Words: "common", Tags: []string{"odd"}, Limit: 2}, memoryRankMax / 2, "common n999"},
		{memoryQuery{Words: "common n500", Limit: 2}, 1, "common n500"}, {memoryQuery{Words: "common n500", Tags: []string{"even"}, Limit: 2}, 1, "common n500"},
	} {
		list, total, err := v.searchMemories(t.Context(), tc.query)
		if err != nil || total != tc.total || len(list) != min(2, total) || list[0].Text != tc.first {
			t.Errorf("%+v: %d, %+v, %v", tc.query, total, list, err)
		}
	}
}

// searchOdd are queries that mean something to SQLite, or nothing to anybody.
func searchOdd() []string {
	list := []string{"", " ", `"`, `""`, `'`, "AND", "OR", "NOT", "NEAR", "NEAR(", "NEAR(a b, 3)", "a AND", "AND a", "a OR OR b", "NOT a", "*", "a*", "*a", "^a", "^", ":", "a:b", "said:a", "said : (a)", "text:a", "-", "-a", "a -b", "(", ")", "(a", "a)", "((((", "{a b} : c", "+", "a + b", ",", ";", "--", "/*", "\\", "%", "_",
		"\x00", "a\x00b", "\xff", "a\xff\xfeb", "🚀", "👩‍👩‍👧", "日本語", "한국어", "ไทย", "é", "e\u0301", "\u0301", "\u200b", "\u202e", "ß", "İ", "ǅ", "ﬁ", "²", "①", "\U000e0041", "\ue000", "\U0010ffff", "ー", "゛", "か\u3099",
		strings.Repeat("a", 10<<10), strings.Repeat(`"a" OR (`, 10<<10/8), strings.Repeat("漢", 10<<10/3), strings.Repeat("x ", 5<<10), strings.Repeat("\u0301", 5<<10)}
	var all strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&all, "w%d ", i)
	}
	return append(list, all.String())
}

// searchAll runs a query through every search and gives the first error.
func searchAll(t testing.TB, v *vault, query string) error {
	t.Helper()
	_, err := v.searchRecords(t.Context(), query, 3)
	_, _, err2 := v.searchMemories(t.Context(), memoryQuery{Words: query, Limit: 3})
	_, _, err3 := v.searchMessages(t.Context(), messageQuery{Words: query, Limit: 3})
	return errors.Join(err, err2, err3)
}

// searchFilled is a vault with a text of each kind.
func searchFilled(t testing.TB) *vault {
	t.Helper()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	id, err := v.createSession(ctx, sessionInfo{Profile: profileDefault})
	text := "the a b c said it in 日本語 with café 🚀"
	_, err2 := v.putRecord(ctx, "k", "o", "", []byte(text))
	_, _, err3 := v.saveMemory(ctx, memory{Text: text, Key: "AND", Tags: []string{"or"}})
	if err := errors.Join(err, err2, err3, v.appendMessages(ctx, id, []storedMessage{{Role: "user", Content: text}, {Role: "tool", Content: text}})); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSearchOdd(t *testing.T) {
	t.Parallel()
	v := searchFilled(t)
	for _, query := range searchOdd() {
		if err := searchAll(t, v, query); err != nil {
			t.Errorf("%.40q: %v", query, err)
		}
	}
}

// FuzzSearch wants no query to be an error, and each text to be found by its own words.
func FuzzSearch(f *testing.F) {
	for _, query := range searchOdd() {
		if len(query) < 1<<10 {
			f.Add(query)
		}
	}
	v := searchFilled(f)
	f.Fuzz(func(t *testing.T, query string) {
		if err := searchAll(t, v, query); err != nil {
			t.Errorf("%q: %v", query, err)
		}
	})
}
