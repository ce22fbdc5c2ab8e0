package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestRankSplit(t *testing.T) {
	for in, want := range map[string]string{
		"getHTTPLog":        "get http log",
		"read_text-file v2": "read text file v 2",
		"café Straße":       "café straße",
		"查询文件":              "查询 询文 文件",
		"a查b":               "a b",
		"":                  "",
	} {
		if got := strings.Join(rankSplit(in), " "); got != want {
			t.Errorf("rankSplit(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestRankStem(t *testing.T) {
	for in, want := range map[string]string{
		"queries": "query", "searches": "search", "searching": "search", "files": "file", "status": "status", "news": "news",
		"translation": "transl", "translate": "translat", "running": "runn", "bus": "bus", "boxes": "box", "editors": "edit", "class": "class", "café": "café",
	} {
		if got := rankStem(in); got != want {
			t.Errorf("rankStem(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestRankTop(t *testing.T) {
	docs := []rankDoc{
		{"mcp_files_read_text_file", "Read the complete contents of a file as text."},
		{"mcp_files_list_directory", "List files and folders in a directory."},
		{"mcp_weather_get_forecast", "Weather forecast for a place."},
		{"mcp_charts_word_cloud", "Draw a picture of the words of a text."},
		{"mcp_calc_add", "Add two numbers."},
		{"mcp_docs_查询", "查询文件 in the library"},
	}
	ix := newRankIndex(docs)
	for _, tc := range []struct {
		message string
		first   string
		none    bool
	}{
		{message: "list the directories here", first: "mcp_files_list_directory"},
		{message: "What will the weather be tomorrow?", first: "mcp_weather_get_forecast"},
		{message: "please make a wordcloud", first: "mcp_charts_word_cloud"},
		{message: "use mcp_calc_add on the weather forecast", first: "mcp_calc_add"}, // a full name goes first
		{message: "查询", first: "mcp_docs_查询"},
		{message: "please could you", none: true},
		{message: "", none: true},
		{message: "zzz qqq", none: true}, // without any score nothing is listed
		{message: strings.Repeat("A1b2", 40) + "weather", none: true},
	} {
		got := ix.top(tc.message, 3)
		switch {
		case tc.none && len(got) > 0:
			t.Errorf("top(%.40q) = %v, want none", tc.message, got)
		case !tc.none && (len(got) == 0 || docs[got[0]].Name != tc.first):
			t.Errorf("top(%q) = %v, want %s first", tc.message, got, tc.first)
		}
	}
	all := ix.top("file text weather list", 100)
	for k := -1; k <= len(all); k++ {
		if got := ix.top("file text weather list", k); !slices.Equal(got, all[:max(k, 0)]) {
			t.Errorf("top with k=%d = %v, want the first of %v", k, got, all)
		}
	}
}

// The same message gives the same list; equal scores keep the order of the tools.
func TestRankStable(t *testing.T) {
	var docs []rankDoc
	for i := range 200 {
		docs = append(docs, rankDoc{fmt.Sprintf("mcp_s%d_search", i%4), "Search files."})
	}
	want := newRankIndex(docs).top("search files", 50)
	if !slices.IsSorted(want) || len(want) != 50 {
		t.Errorf("ties not in order: %v", want)
	}
	for range 5 {
		if got := newRankIndex(docs).top("search files", 50); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func BenchmarkRankTop3200(b *testing.B) {
	var docs []rankDoc
	for i := range 3200 {
		docs = append(docs, rankDoc{fmt.Sprintf("mcp_server%d_tool_%d", i/100, i), fmt.Sprintf("Does the thing number %d with files, lists and searches. And more words to read.", i)})
	}
	ix := newRankIndex(docs)
	for b.Loop() {
		ix.top("list the files in this folder and search them for todo", 100)
	}
}
