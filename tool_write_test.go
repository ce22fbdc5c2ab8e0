package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestFileReadHashed(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modePrompt)
	filesWrite(t, r.w.root, map[string]string{"c.txt": utf8BOM + "a\r\n\r\nb", "long": strings.Repeat("line\n", 3000), "wide": strings.Repeat("x", fileLineMax+1) + "\n", "empty": "", "bin": "a\x00b", "l.txt": "caf\xe9\n"})
	hash := func(s string) string { return sha256Hex([]byte(s))[:6] }
	for _, tc := range []struct {
		args map[string]any
		want []string
		err  bool
	}{
		{map[string]any{"path": "in.txt"}, []string{"1#" + hash("one") + "\tone\n2#" + hash("two") + "\ttwo\n[2 lines, 8 bytes, sha256 " + sha256Hex([]byte("one\ntwo\n")) + "]"}, false},
		{map[string]any{"path": "c.txt"}, []string{"1#" + hash("a") + "\ta\n2#" + hash("") + "\t\n3#" + hash("b") + "\tb\n[3 lines, 9 bytes"}, false},
		{map[string]any{"path": "long", "offset": 2999}, []string{"2999#", "3000#"}, false},
		{map[string]any{"path": "long"}, []string{"2000#", "[1000 lines left out; go on with offset 2001]"}, false},
		{map[string]any{"path": "long", "limit": 1}, []string{"1#" + hash("line") + "\tline\n[2999 lines left out; go on with offset 2]"}, false},
		{map[string]any{"path": "wide"}, []string{"… (4001 bytes)"}, false},
		{map[string]any{"path": "l.txt"}, []string{"1#" + hash("caf\xe9") + "\tcaf\uFFFD"}, false},
		{map[string]any{"path": "empty"}, []string{"[0 lines, 0 bytes"}, false},
		{map[string]any{"path": "long", "offset": 3001}, []string{"past the end: the file has 3000 lines"}, true},
		{map[string]any{"path": "bin"}, []string{"binary or UTF-16"}, true},
		{map[string]any{"path": "sub"}, []string{"is a folder"}, true},
		{map[string]any{"path": "no"}, []string{"no: no such file"}, true},
		{map[string]any{"path": "in.txt", "offset": 0}, []string{"offset"}, true},
		{map[string]any{"path": "in.txt", "limit": 0}, []string{"limit"}, true},
		{map[string]any{}, []string{"path"}, true},
	} {
		res := r.call("file_read_hashed", tc.args)
		for _, want := range tc.want {
			if res.IsError != tc.err || !strings.Contains(res.Text, want) {
				t.Errorf("%v: error %v, %.300q, want %q", tc.args, res.IsError, res.Text, want)
			}
		}
	}
}

func TestFileEditAnchored(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	at := func(n int, line string) string { return fmt.Sprintf("%d#%s", n, lineHash(line)) }
	const abc = "a\nb\nc\nd\n"
	for _, tc := range []struct {
		name, text string
		edits      []m
		want       string // the text after, or the fault
		fault      bool
	}{
		{"replace", abc, []m{{"op": "replace", "anchor": at(2, "b"), "text": "B"}}, "a\nB\nc\nd\n", false},
		{"replace several by more", abc, []m{{"op": "replace", "anchor": at(2, "b"), "to_anchor": at(3, "c"), "text": "x\ny\nz\n"}}, "a\nx\ny\nz\nd\n", false},
		{"replace by an empty line", abc, []m{{"op": "replace", "anchor": at(2, "b"), "text": ""}}, "a\n\nc\nd\n", false},
		{"delete", abc, []m{{"op": "delete", "anchor": at(1, "a"), "to_anchor": at(3, "c")}}, "d\n", false},
		{"delete all", abc, []m{{"op": "delete", "anchor": at(1, "a"), "to_anchor": at(4, "d")}}, "", false},
		{"insert", abc, []m{{"op": "insert_after", "anchor": at(2, "b"), "text": "x\ny"}}, "a\nb\nx\ny\nc\nd\n", false},
		{"insert first", abc, []m{{"op": "insert_after", "anchor": "0", "text": "x"}}, "x\na\nb\nc\nd\n", false},
		{"insert last", abc, []m{{"op": "insert_after", "anchor": at(4, "d"), "text": "x\n"}}, abc + "x\n", false},
		{"insert into nothing", "", []m{{"op": "insert_after", "anchor": "0", "text": "x"}}, "x\n", false},
		{"several, in any order", abc, []m{{"op": "delete", "anchor": at(4, "d")}, {"op": "insert_after", "anchor": at(1, "a"), "text": "x"}, {"op": "replace", "anchor": at(2, "b"), "text": "B"}}, "a\nx\nB\nc\n", false},
		{"two in one place", abc, []m{{"op": "insert_after", "anchor": at(1, "a"), "text": "x"}, {"op": "insert_after", "anchor": at(1, "a"), "text": "y"}}, "a\nx\ny\nb\nc\nd\n", false},
		{"CRLF and a mark", utf8BOM + "a\r\nb\r\n", []m{{"op": "replace", "anchor": at(1, "a"), "text": "x\ny"}}, utf8BOM + "x\r\ny\r\nb\r\n", false},
		{"no end", "a\nb", []m{{"op": "insert_after", "anchor": at(2, "b"), "text": "c"}}, "a\nb\nc", false},
		{"no end, CRLF", "a\r\nb", []m{{"op": "replace", "anchor": at(2, "b"), "text": "c\nd\n"}}, "a\r\nc\r\nd", false},
		{"Latin-1", "caf\xe9\nb\n", []m{{"op": "replace", "anchor": at(2, "b"), "text": "c"}}, "caf\xe9\nc\n", false},
		{"Latin-1 and more", "caf\xe9\nb\n", []m{{"op": "replace", "anchor": at(2, "b"), "text": "é"}}, "only ASCII", true},
		{"stale", abc, []m{{"op": "delete", "anchor": at(1, "a")}, {"op": "replace", "anchor": at(2, "x"), "text": "B"}}, "nothing was changed, as the file is no longer what was read: " + at(2, "x") + ": line 2 is now " + at(2, "b") + ` "b"`, true},
		{"stale, moved", abc, []m{{"op": "replace", "anchor": at(2, "c"), "text": "B"}}, "the line it meant is now " + at(3, "c"), true},
		{"stale, gone", abc, []m{{"op": "delete", "anchor": at(9, "x")}}, "the file has 4 lines now", true},
		{"stale to_anchor", abc, []m{{"op": "delete", "anchor": at(1, "a"), "to_anchor": at(2, "x")}}, "line 2 is now", true},
		{"overlap", abc, []m{{"op": "delete", "anchor": at(1, "a"), "to_anchor": at(3, "c")}, {"op": "replace", "anchor": at(3, "c"), "text": "x"}}, "edits 1 and 2 overlap at line 3", true},
		{"the same line twice", abc, []m{{"op": "replace", "anchor": at(3, "c"), "text": "y"}, {"op": "replace", "anchor": at(3, "c"), "text": "x"}}, "overlap at line 3", true},
		{"insert into a deleted part", abc, []m{{"op": "delete", "anchor": at(1, "a"), "to_anchor": at(3, "c")}, {"op": "insert_after", "anchor": at(2, "b"), "text": "x"}}, "overlap", true},
		{"backwards", abc, []m{{"op": "delete", "anchor": at(3, "c"), "to_anchor": at(1, "a")}}, "stands before anchor", true},
		{"no anchor", abc, []m{{"op": "delete", "anchor": "2"}}, `anchor "2" is no LINE#HASH`, true},
		{"short hash", abc, []m{{"op": "delete", "anchor": "2#abc"}}, "is no LINE#HASH", true},
		{"replace at 0", abc, []m{{"op": "replace", "anchor": "0", "text": "x"}}, "only insert_after takes it", true},
		{"delete with text", abc, []m{{"op": "delete", "anchor": at(1, "a"), "text": "x"}}, "delete takes no text", true},
		{"replace without text", abc, []m{{"op": "replace", "anchor": at(1, "a")}}, "replace needs text", true},
		{"insert with to_anchor", abc, []m{{"op": "insert_after", "anchor": at(1, "a"), "to_anchor": at(2, "b"), "text": "x"}}, "insert_after takes no to_anchor", true},
		{"unknown op", abc, []m{{"op": "swap", "anchor": at(1, "a")}}, "op", true},
		{"no edits", abc, []m{}, "edits", true},
		{"unknown field", abc, []m{{"op": "delete", "anchor": at(1, "a"), "line": 1}}, "line", true},
	} {
		r := newChangeRig(t, modeAllow)
		filesWrite(t, r.w.root, map[string]string{"f": tc.text})
		res := r.call("file_edit_anchored", map[string]any{"path": "f", "edits": tc.edits})
		b, err := os.ReadFile(filepath.Join(r.w.root, "f"))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case tc.fault && (!res.IsError || !strings.Contains(res.Text, tc.want) || string(b) != tc.text):
			t.Errorf("%s: %q, %s\nwant %q", tc.name, b, res.Text, tc.want)
		case !tc.fault && (res.IsError || string(b) != tc.want):
			t.Errorf("%s: %q, want %q: %s", tc.name, b, tc.want, res.Text)
		}
	}
}

// What file_read_hashed shows is what file_edit_anchored takes.
func TestAnchorsRoundTrip(t *testing.T) {
	t.Parallel()
	r := newChangeRig(t, modeAllow)
	filesWrite(t, r.w.root, map[string]string{"f": "package x\r\n\r\n\tfunc  y() {}  \r\n# 1#abcdef\tz\r\nend"})
	res := r.call("file_read_hashed", map[string]any{"path": "f"})
	var edits []map[string]any
	for _, a := range regexp.MustCompile(`(?m)^\d+#[0-9a-f]{6}`).FindAllString(res.Text, -1) {
		edits = append(edits, map[string]any{"op": "insert_after", "anchor": a, "text": "+"})
	}
	var doc struct{ SHA256 string }
	if err := json.Unmarshal(res.Structured, &doc); err != nil {
		t.Fatal(err)
	}
	r.good("file_edit_anchored", map[string]any{"path": "f", "edits": edits})
	b, err := os.ReadFile(filepath.Join(r.w.root, "f"))
	if want := "package x\r\n+\r\n\r\n+\r\n\tfunc  y() {}  \r\n+\r\n# 1#abcdef\tz\r\n+\r\nend\r\n+"; err != nil || string(b) != want {
		t.Errorf("%q, %v, want %q", b, err, want)
	}
	r.good("file_undo", nil)
	r.good("file_write", map[string]any{"path": "f", "content": "x", "if_hash": doc.SHA256})
}
