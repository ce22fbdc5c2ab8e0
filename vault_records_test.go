package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
)

func TestRecords(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	bodies := [][]byte{[]byte("hello world"), {0, 0xff, 1}, nil}
	var ids []string
	for i, body := range bodies {
		info, err := v.putRecord(ctx, fmt.Sprintf("kind%d", i%2), "files/read", fmt.Sprintf("s%d", i), body)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`^r-[0-9a-hjkmnp-tv-z]{4,}$`).MatchString(info.ID) {
			t.Errorf("id %q", info.ID)
		}
		ids = append(ids, info.ID)
		again, got, err := v.record(ctx, strings.ToUpper(info.ID))
		if err != nil || again != info || !bytes.Equal(got, body) {
			t.Errorf("record %d: %+v %q %v, want %+v", i, again, got, err, info)
		}
	}
	info, _, err := v.record(ctx, ids[0])
	if want := (recordInfo{ids[0], "kind0", "files/read", "s0", 11, "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9", true, vaultClock()}); err != nil || info != want {
		t.Errorf("got %+v, %v; want %+v", info, err, want)
	}
	if info, _, err := v.record(ctx, ids[1]); err != nil || info.Text {
		t.Errorf("bytes taken for text (%v)", err)
	}
	for _, tc := range []struct {
		kind, session string
		limit, total  int
		want          string
	}{
		{"", "", 0, 3, ids[2] + ids[1] + ids[0]}, {"", "", 2, 3, ids[2] + ids[1]}, {"kind0", "", 0, 2, ids[2] + ids[0]}, {"kind0", "s0", 9, 1, ids[0]}, {"x", "", 0, 0, ""},
	} {
		list, total, err := v.records(ctx, tc.kind, tc.session, tc.limit)
		got := ""
		for _, r := range list {
			got += r.ID
		}
		if err != nil || got != tc.want || total != tc.total {
			t.Errorf("records(%q, %q, %d) = %s, %d, %v; want %s, %d", tc.kind, tc.session, tc.limit, got, total, err, tc.want, tc.total)
		}
	}
	if hits, err := v.searchRecords(ctx, "hello", 0); err != nil || len(hits) != 1 {
		t.Errorf("before: %d hits, %v", len(hits), err)
	}
	if err := v.deleteRecord(ctx, ids[0]); err != nil {
		t.Error(err)
	}
	if hits, err := v.searchRecords(ctx, "hello", 0); err != nil || len(hits) != 0 {
		t.Errorf("after: %d hits, %v", len(hits), err)
	}
	if _, _, err := v.record(ctx, ids[0]); !errors.Is(err, errNotFound) {
		t.Errorf("read after delete: %v", err)
	}
	if err := v.deleteRecord(ctx, ids[0]); !errors.Is(err, errNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
}

// zeroReader makes every id clash.
type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestRecordIDsGrow(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, t.TempDir())
	v.random = zeroReader{}
	for _, want := range []string{"r-0000", "r-00000", "r-000000"} {
		if info, err := v.putRecord(t.Context(), "k", "o", "", []byte("x")); err != nil || info.ID != want {
			t.Errorf("id %q, %v; want %q", info.ID, err, want)
		}
	}
	v.random = io.LimitReader(rand.Reader, 2)
	if _, err := v.putRecord(t.Context(), "k", "o", "", nil); err == nil {
		t.Error("no randomness, yet an id")
	}
	if got := spokenID(" R-oIl7 "); got != "r-0117" {
		t.Errorf("spokenID = %q", got)
	}
}

func TestSearchRecords(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	texts := map[string]string{
		"fox":     "The quick brown fox jumps over the lazy dog's \"den\"",
		"café":    "Ein Café in Zürich 🚀 start",
		"and":     "rock AND roll NEAR here",
		"numbers": "error 404: path/to/file_name.go:12",
		"han":     "日本語 テキスト",
		"marks":   "Ame\u0301lie",
	}
	kind := map[string]string{}
	for name, text := range texts {
		info, err := v.putRecord(ctx, name, "web/fetch", "", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		kind[info.ID] = name
	}
	long := strings.Repeat(`fox" OR (`, 10<<10/9)
	for query, want := range map[string]string{
		"fox": "fox", "QUICK": "fox", "jum": "fox", "brown fox": "fox", "cafe": "café", "zurich": "café", "🚀": "café", "日本": "han", "amélie": "marks", "ame\u0301lie": "marks", "\u0301": "",
		`"`: "", `"fox`: "fox", `fox"`: "fox", `"dog's"`: "fox", "": "", "  ": "", "AND": "and", "NOT": "", "NEAR(": "and", "fox*": "fox", "^fox": "fox", "body:fox": "fox", "(((": "", "-": "", "--fox": "fox",
		"file_name.go:12": "numbers", "404": "numbers", "\x00fox\xff": "fox", "fox nowhere": "fox", "nowhere": "", long: "fox", strings.Repeat("z", 10<<10): "", "'; DROP TABLE records": "",
	} {
		hits, err := v.searchRecords(ctx, query, 0)
		if err != nil {
			t.Errorf("%.40q: %v", query, err)
			continue
		}
		if want == "" && len(hits) == 0 {
			continue
		}
		if len(hits) != 1 || kind[hits[0].ID] != want || hits[0].Kind != want {
			t.Errorf("%.40q: %d hits, want %q", query, len(hits), want)
		}
	}
	if hits, err := v.searchRecords(ctx, "fetch", 3); err != nil || len(hits) != 3 {
		t.Errorf("by origin: %d hits, %v; want the limit of 3", len(hits), err)
	}
}

// A large text is indexed by its different words, the cap being its only limit.
func TestIndexText(t *testing.T) {
	t.Parallel()
	if got, want := indexText("b a, b\xff\u00e9-a "+strings.Repeat("x", 200)), "b a é "+strings.Repeat("x", searchTermMax)+" "; got != want {
		t.Errorf("indexText = %q, want %q", got, want)
	}
	var b strings.Builder
	for i := range searchWordsMax + 10 {
		fmt.Fprintf(&b, "w%d w0 ", i)
	}
	if n := len(strings.Fields(indexText(b.String()))); n != searchWordsMax {
		t.Errorf("%d words, want %d", n, searchWordsMax)
	}
}

// BenchmarkPutRecord stores 8 MiB of log text, the largest result that comes.
func BenchmarkPutRecord(b *testing.B) {
	v := vaultAt(b, b.TempDir())
	var text bytes.Buffer
	for i := 0; text.Len() < 8<<20; i++ {
		fmt.Fprintf(&text, "line %d of file_%x some words here: value=%d\n", i, i*7919, i*i)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := v.putRecord(b.Context(), "spill", "s/t", "", text.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}

func TestSnippet(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("ä ", 200) + "Needle\n\tthread " + strings.Repeat("ö ", 200))
	got := snippet(text, []string{"needle"})
	if !strings.Contains(got, "Needle thread") || !strings.HasPrefix(got, "… ä") || !strings.HasSuffix(got, "ö …") || len(got) > searchSnippet+10 {
		t.Errorf("snippet = %q", got)
	}
	if got := snippet([]byte("short"), []string{"absent"}); got != "short" {
		t.Errorf("snippet = %q", got)
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	first, err := v.createSession(ctx, sessionInfo{Profile: "default", Title: "first", Root: "/a"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := v.createSession(ctx, sessionInfo{Profile: "work", Title: "second", Root: "/b"})
	if err != nil || !strings.HasPrefix(first, "s-") || first == second {
		t.Fatalf("ids %q, %q, %v", first, second, err)
	}
	said := []storedMessage{
		{Role: "user", Content: "do it"},
		{Role: "assistant", ToolCalls: []byte(`[{"id": "c1"}]`), Meta: []byte(`{"tokens":3}`)},
		{Role: "tool", Content: "done\x00\n", ToolCallID: "c1"},
	}
	if err := errors.Join(v.appendMessages(ctx, first, said[:2]), v.appendMessages(ctx, first, said[2:]), v.appendMessages(ctx, second, nil)); err != nil {
		t.Fatal(err)
	}
	got, err := v.messages(ctx, first)
	if err != nil || len(got) != 3 {
		t.Fatalf("%d messages, %v", len(got), err)
	}
	for i, m := range said {
		m.Seq, m.Created = i+1, got[i].Created
		if fmt.Sprintf("%#v", got[i]) != fmt.Sprintf("%#v", m) {
			t.Errorf("message %d: %#v, want %#v", i, got[i], m)
		}
	}
	if got, err := v.messages(ctx, second); err != nil || len(got) != 0 {
		t.Errorf("second: %v, %v", got, err)
	}
	if err := v.appendMessages(ctx, "s-none", said); !errors.Is(err, errNotFound) {
		t.Errorf("append to nothing: %v", err)
	}
	if _, err := v.messages(ctx, "s-none"); !errors.Is(err, errNotFound) {
		t.Errorf("read of nothing: %v", err)
	}
	list, total, err := v.sessions(ctx, sessionQuery{})
	if err != nil || len(list) != 2 || total != 2 || list[1].ID != second || list[0].Messages != 3 || list[0].Title != "first" || list[1].Profile != "work" {
		t.Errorf("sessions %+v, %v", list, err)
	}
	if list, total, err := v.sessions(ctx, sessionQuery{Limit: 1}); err != nil || len(list) != 1 || total != 2 {
		t.Errorf("limit: %d, %v", len(list), err)
	}
}
