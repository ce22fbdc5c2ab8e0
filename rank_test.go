package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestRankSplit(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"getHTTPLog":                        "get http log",
		"read_text-file v2":                 "read text file v 2",
		"café Straße ÉCOLE":                 "café straße école",
		"查询文件":                              "查询 询文 文件",
		"a查b":                               "a b",
		"3D models":                         "3 d models",
		"it's":                              "it s",
		"😀 ok\xff\xfeno":                    "ok no",
		"":                                  "",
		strings.Repeat("x", 100) + " short": "short",
	} {
		if got := strings.Join(rankSplit(in), " "); got != want {
			t.Errorf("rankSplit(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestRankStem(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"queries": "query", "searches": "search", "searching": "search", "files": "file", "status": "status", "news": "news", "analysis": "analysis",
		"translation": "transl", "translate": "translat", "running": "runn", "bus": "bus", "boxes": "box", "editors": "edit", "class": "class", "café": "café",
		"controllers": "controll", "planner": "plan", "es": "es", "ies": "ies", "": "",
	} {
		if got := rankStem(in); got != want {
			t.Errorf("rankStem(%q) = %q, want %q", in, got, want)
		}
	}
}

// rankText writes what a message looks for: words, then hints in braces.
func rankText(q rankQuery) string {
	var b strings.Builder
	for _, w := range q.words {
		fmt.Fprintf(&b, "%s %.2f ", w.Word, w.Weight)
	}
	for _, hint := range q.hints {
		b.WriteString("{")
		for _, w := range hint {
			fmt.Fprintf(&b, "%s %.1f ", w.Word, w.Weight)
		}
		b.WriteString("}")
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func TestReadMessage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"stop-words and request words", "Could you please find me a chart of 2024?", "chart 1.00"},
		{"repeats", "boxes, box and Box", "box 1.66"},
		{"address", "see (https://Example.com/secret/x?key=1).", "see 1.00 exampl 1.00 com 1.00 {url 1.0 fetch 1.0 web 0.7 page 0.7 }"},
		{"file in an address", "https://a.example/b.pdf#x", "exampl 1.00 {url 1.0 fetch 1.0 web 0.7 page 0.7 }{pdf 1.0 document 1.0 }"},
		{"path", "save the sums to /tmp/out/sums.xlsx", "save 1.00 sum 1.00 {excel 1.0 spreadsheet 1.0 sheet 1.0 }{file 1.0 }{writ 1.0 }"},
		{"path to read", "open ~/notes.md", "open 1.00 {markdown 1.0 file 0.7 }{file 1.0 }{read 0.7 }"},
		{"Windows path", `parse "C:\data\a.csv"`, "pars 1.00 {csv 1.0 excel 1.0 spreadsheet 1.0 }{file 1.0 }{read 0.7 }"},
		{"no path", "km / h and/or 1/2", "km 1.00"},
		{"file name", "convert report.tar.gz", "convert 1.00 report 1.00 tar 1.00 gz 1.00 {archiv 1.0 }{archiv 1.0 }"},
		{"no file name", "e.g. this. Then that", ""},
		{"time", "storms this week", "storm 1.00 week 1.00 {time 0.6 date 0.5 current 0.4 }"},
		{"sums", "how much is the computed percentage", "comput 1.00 percentag 1.00 {calculat 1.0 calculat 1.0 }"},
		{"no sum", "my computer", "comput 1.00"},
		{"near", "cafes within 5 minutes", "cafe 1.00 within 1.00 minut 1.00 {nearby 1.0 geocod 0.8 plac 0.6 locat 0.6 }"},
		{"way", "from Paris to Rome", "paris 1.00 rome 1.00 {direct 1.0 rout 0.8 }"},
		{"no way", "from one to ten", "ten 1.00"},
		{"web", "look up its background", "background 1.00 {web 0.7 search 0.4 }"},
		{"Chinese", "今天的新闻", "今天 1.00 天的 1.00 的新 1.00 新闻 1.00 news 1.00"},
		{"data", strings.Repeat("Ab1+", 20) + " weather " + strings.Repeat("=", 70), "weath 1.00"},
		{"nothing", " \n\t", ""},
	} {
		if got := rankText(readMessage(tc.in, false)); got != tc.want {
			t.Errorf("%s: readMessage(%q)\n got %s\nwant %s", tc.name, tc.in, got, tc.want)
		}
	}
	long := strings.Repeat("é ", rankMaxMessage/2) + "weather"
	if got := rankText(readMessage(long, false)); strings.Contains(got, "weath") {
		t.Errorf("more than %d characters are looked at: %s", rankMaxMessage, got)
	}
	for in, want := range map[string]string{"create": "creat 1.00", "show me": "show 1.00", "create a chart": "chart 1.00", "of the": "", "7": ""} {
		if got := rankText(readMessage(in, true)); got != want {
			t.Errorf("a search for %q: got %q, want %q", in, got, want)
		}
	}
	if got := readMessage("Use Files/Read_It, camelCase and Search-", false).names; !slices.Equal(got, []string{"files/read_it", "camelcase"}) {
		t.Errorf("names in the message: %q", got)
	}
}

// rankFirst gives the names found, best first.
func rankFirst(docs []rankDoc, ix *rankIndex, message string, k int) []string {
	hits, _ := ix.scan(message).top(k, nil)
	var out []string
	for _, h := range hits {
		out = append(out, docs[h.Doc].Server+"/"+docs[h.Doc].Name)
	}
	return out
}

func TestRank(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"ticket":{"type":"string","description":"Number of the complaint"},"more":{"type":"array","items":{"type":"object","properties":{"postcode":{"type":"string"}}}}}}`
	docs := []rankDoc{
		{Server: "files", Name: "read_text_file", Description: "Read the complete contents of a file as text."},
		{Server: "files", Name: "list_directory", Description: "List files and folders in a directory."},
		{Server: "weather", Name: "get_forecast", Description: "Weather forecast for a place."},
		{Server: "weather", Name: "helper", Description: "Other things."},
		{Server: "charts", Name: "word_cloud", Description: "Draw a picture of the words of a text."},
		{Server: "calc", Name: "add", Alias: "mcp_calc_add", Description: "Add two numbers."},
		{Server: "docs", Name: "查询", Description: "查询文件 in the library"},
		{Server: "desk", Name: "act", Description: "Does it.", Schema: json.RawMessage(schema)},
		{Server: "other", Name: "getPlanet", Description: "Nothing to see."},
	}
	ix := newRankIndex(docs)
	for _, tc := range []struct{ name, message, first string }{
		{"words", "list the directories here", "files/list_directory"},
		{"synonym", "how hot is the climate, will it rain", "weather/get_forecast"},
		{"joined in the message", "please make a wordcloud", "charts/word_cloud"},
		{"joined in the name", "a word cloud", "charts/word_cloud"},
		{"bridged name", "use MCP_calc_add on the weather forecast", "calc/add"},
		{"name with a capital", "use getPlanet, not the weather forecast", "other/getPlanet"},
		{"name with its server", "Files/List_Directory, not the weather forecast", "files/list_directory"},
		{"Chinese", "查询", "docs/查询"},
		{"gloss", "天气", "weather/get_forecast"},
		{"Korean gloss", "날씨", "weather/get_forecast"},
		{"parameter", "where is my ticket", "desk/act"},
		{"parameter's description", "about complaints", "desk/act"},
		{"nested parameter", "a postcode", "desk/act"},
		{"file name", "what is in a.txt", "files/read_text_file"},
		{"stop-words", "please could you", ""},
		{"nothing", "", ""},
		{"unknown words", "zzz qqq", ""},
		{"data", strings.Repeat("A1b2", 40), ""},
	} {
		got := rankFirst(docs, ix, tc.message, 3)
		if first := append(got, "")[0]; first != tc.first {
			t.Errorf("%s: %q gives %q, want %q first", tc.name, tc.message, got, tc.first)
		}
	}
	// The server's score brings along what the message has no word for.
	if got := rankFirst(docs, ix, "the weather forecast", 10); !slices.Contains(got, "weather/helper") {
		t.Errorf("%q lacks the server's other tool", got)
	}
	hits, fit := ix.scan("file text weather list").top(100, nil)
	if fit != len(hits) || fit == 0 {
		t.Fatalf("%d fit, %d are given", fit, len(hits))
	}
	for k := -1; k <= len(hits); k++ {
		if got, n := ix.scan("file text weather list").top(k, nil); !slices.Equal(got, hits[:max(k, 0)]) || n != fit {
			t.Errorf("the best %d: got %v of %d, want the first of %v", k, got, n, hits)
		}
	}
	odd, _ := ix.scan("file text weather list").top(100, func(doc int) bool { return doc%2 == 1 })
	if len(odd) == 0 || slices.ContainsFunc(odd, func(h rankHit) bool { return h.Doc%2 == 0 }) {
		t.Errorf("the filter does not hold: %v", odd)
	}
	if hits, fit := newRankIndex(nil).scan("file").top(3, nil); len(hits) != 0 || fit != 0 {
		t.Errorf("no tools give %v", hits)
	}
	if hits, _ := newRankIndex(docs[:1]).scan("the file").top(3, nil); len(hits) != 1 {
		t.Errorf("one tool of one server gives %v", hits)
	}
}

// The same message gives the same list; equal scores keep the order of the tools.
func TestRankStable(t *testing.T) {
	t.Parallel()
	var docs []rankDoc
	for i := range 200 {
		docs = append(docs, rankDoc{Server: fmt.Sprintf("s%d", i/50), Name: "search", Description: "Search files."})
	}
	want, _ := newRankIndex(docs).scan("search files").top(50, nil)
	if len(want) != 50 || !slices.IsSortedFunc(want, func(a, b rankHit) int { return a.Doc - b.Doc }) {
		t.Errorf("ties not in order: %v", want)
	}
	for range 5 {
		if got, _ := newRankIndex(docs).scan("search files").top(50, nil); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// Messages and tools of any kind and size give an answer, soon.
func TestRankOddInput(t *testing.T) {
	t.Parallel()
	docs := append(rankMany(300), rankDoc{}, rankDoc{Name: strings.Repeat("a_", 5000), Description: strings.Repeat("word ", 1<<20), Schema: json.RawMessage(`{"properties":{"x":`)},
		rankDoc{Name: "\xff\xfe", Description: "\x00\xff", Schema: json.RawMessage(strings.Repeat(`{"properties":{"a":`, 2000) + "1" + strings.Repeat("}}", 2000))})
	ix := newRankIndex(docs)
	for name, message := range map[string]string{
		"a megabyte":       strings.Repeat("list files and search them ", 40000),
		"one long run":     strings.Repeat("x", 1<<20),
		"addresses":        strings.Repeat("https://", 100000),
		"slashes":          strings.Repeat("/", 1<<20),
		"dots":             strings.Repeat("a.csv", 1<<18),
		"emoji":            strings.Repeat("😀", 1<<18),
		"no UTF-8":         strings.Repeat("\xff\xc0 ", 1<<18),
		"Chinese":          strings.Repeat("查询文件", 1<<18),
		"marks":            strings.Repeat("é̂", 1<<18),
		"different words":  rankWords(8000),
		"names":            strings.Repeat("mcp_files_read files/list ", 1<<16),
		"from and capital": strings.Repeat("from A to B ", 1<<16),
	} {
		start := time.Now()
		hits, fit := ix.scan(message).top(128, nil)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
		again, _ := ix.scan(message).top(128, nil)
		if len(hits) > 128 || len(hits) > fit || !slices.Equal(hits, again) {
			t.Errorf("%s: %d hits of %d, then %d", name, len(hits), fit, len(again))
		}
	}
}

func FuzzRank(f *testing.F) {
	f.Add("list the files in /tmp/a.csv", "read_file", "Read a file. Really.", `{"properties":{"path":{"description":"A path"}}}`)
	f.Add("https://a/b.pdf 查询 from A to B", "查询", "文件", `{"properties":{"a":{"items":[{}]}}}`)
	f.Add("\xff://\x00", "", "\xff", `{`)
	f.Fuzz(func(t *testing.T, message, name, description, schema string) {
		docs := []rankDoc{{Server: "s", Name: name, Description: description, Schema: json.RawMessage(schema)}, {Server: description, Name: message, Alias: name}}
		hits, fit := newRankIndex(docs).scan(message).top(2, nil)
		again, _ := newRankIndex(docs).scan(message).top(2, nil)
		if !slices.Equal(hits, again) || fit != len(hits) {
			t.Errorf("got %v, then %v, of %d", hits, again, fit)
		}
		for _, h := range hits {
			if !h.Named && !(h.Score > 0 && h.Score < 1e9) {
				t.Errorf("score %v", h.Score)
			}
		}
		for _, w := range rankSplit(message) {
			if !utf8.ValidString(w) || w == "" || rankStem(w) == "" {
				t.Errorf("word %q, stem %q", w, rankStem(w))
			}
		}
	})
}

// rankWords gives n words that look like some, a few of them often and most of them seldom, the same each time.
func rankWords(n int) string {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	often := rand.NewZipf(r, 1.1, 5, 8000)
	var b strings.Builder
	for range n {
		x := often.Uint64() + 60
		for ; x > 0; x /= 60 {
			b.WriteByte("bdfgklmnprst"[x%12])
			b.WriteByte("aeiou"[x/12%5])
			b.WriteByte("dklmnrstx"[x%9])
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// rankMany gives n tools, 100 a server, each with a schema of about 2 KB.
func rankMany(n int) []rankDoc {
	words := strings.Fields(rankWords(200000))
	take := func(n int) string {
		head := strings.Join(words[:n], " ")
		words = append(words[n:], words[:n]...)
		return head
	}
	docs := make([]rankDoc, n)
	for i := range docs {
		var schema strings.Builder
		schema.WriteString(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false,"properties":{`)
		for p := range 12 {
			if p > 0 {
				schema.WriteByte(',')
			}
			fmt.Fprintf(&schema, `"%s":{"type":"string","minLength":1,"maxLength":1000,"default":"none","description":"The %s of the %s, as %s."}`,
				strings.ReplaceAll(take(2), " ", "_"), take(3), take(3), take(4))
		}
		schema.WriteString(`}}`)
		docs[i] = rankDoc{Server: fmt.Sprintf("server%d", i/100), Name: fmt.Sprintf("%s_%d", strings.ReplaceAll(take(2), " ", "_"), i),
			Description: fmt.Sprintf("Does %s with files, lists and searches. And %s.", take(4), take(20)), Schema: json.RawMessage(schema.String())}
		docs[i].Alias = "mcp_" + docs[i].Server + "_" + docs[i].Name
	}
	return docs
}

// 3,200 tools with schemas of 2 KB cost at most 6 MiB once read (P18).
func TestRankMemory(t *testing.T) {
	docs := rankMany(3200)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ix := newRankIndex(docs)
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(docs)
	got := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d terms, %d postings: %.1f MiB", len(ix.terms), len(ix.tools.postings), float64(got)/(1<<20))
	if got > 6<<20 {
		t.Errorf("the index takes %d bytes, want at most %d", got, 6<<20)
	}
	runtime.KeepAlive(ix)
}

func BenchmarkRankTop3200(b *testing.B) {
	ix := newRankIndex(rankMany(3200))
	for b.Loop() {
		ix.scan("list the files in this folder and search them for todo").top(128, nil)
	}
}

func BenchmarkRankTopLong3200(b *testing.B) {
	ix := newRankIndex(rankMany(3200))
	message := rankWords(2000)
	for b.Loop() {
		ix.scan(message).top(128, nil)
	}
}

func BenchmarkRankTop100(b *testing.B) {
	ix := newRankIndex(rankMany(100))
	for b.Loop() {
		ix.scan("list the files in this folder and search them for todo").top(128, nil)
	}
}

func BenchmarkRankBuild3200(b *testing.B) {
	docs := rankMany(3200)
	b.ReportAllocs()
	for b.Loop() {
		newRankIndex(docs)
	}
}
