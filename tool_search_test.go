package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTextSearch(t *testing.T) {
	w, outside := workspaceDirs(t)
	filesWrite(t, w.root, map[string]string{
		".gitignore": "*.log\nbuilt/\n", "a.go": "package a\nfunc Alpha() {}\n// needle one\nfunc Beta() {}\n", "b.txt": "Needle two\r\nneedle.three\nlast",
		"x.log": "needle in an ignored file\n", "built/out.go": "needle built\n", ".git/config": "needle git\n", "sub/.gitignore": "skip.txt\n",
		"sub/skip.txt": "needle skipped\n", "sub/deep/c.ts": "needle c\n", "bin": "needle\x00\n", "many.txt": strings.Repeat("common\n", 250),
		"wide.txt": strings.Repeat("y", 3000) + "WIDE" + strings.Repeat("z", 3000) + "\n", "other/n\u202e.txt": "rtl mark\n",
	})
	if err := os.WriteFile(filepath.Join(w.root, "huge.txt"), make([]byte, searchMaxFile+1), 0o644); err != nil {
		t.Fatal(err)
	}
	box := newToolsBox(t, modePrompt, nil, searchTools(w)...)
	for _, tc := range []struct {
		args    string
		want    []string
		not     []string
		isError bool
	}{
		{
			args: `{"pattern":"needle"}`,
			want: []string{"a.go:3: // needle one\n", "b.txt:2: needle.three\n", "sub/deep/c.ts:1: needle c\n", "[3 matching lines in 3 files", "3 skipped: ignored by git", "1 skipped: binary", "1 skipped: too large"},
			not:  []string{"ignored file", "built/", "git/config", "skip.txt", "Needle", "bin:"},
		},
		{args: `{"pattern":"needle","ignore_case":true}`, want: []string{"b.txt:1: Needle two\n", "[4 matching lines"}},
		{args: `{"pattern":"needle.three","literal":true}`, want: []string{"b.txt:2:", "[1 matching lines"}},
		{args: `{"pattern":"e{2}dle|Beta"}`, want: []string{"a.go:4: func Beta() {}", "[5 matching lines"}},
		{args: `{"pattern":"e{2}","literal":true}`, want: []string{"no matches", "[0 matching lines in 0 files"}},
		{args: `{"pattern":"^last$"}`, want: []string{"b.txt:3: last"}},
		{args: `{"pattern":"two$"}`, want: []string{"b.txt:1: Needle two\n"}}, // the line end of Windows is no part of the line
		{args: `{"pattern":"needle","glob":"*.go"}`, want: []string{"a.go:3", "[1 matching lines"}},
		{args: `{"pattern":"needle","glob":"sub/**/*.{ts,tsx}"}`, want: []string{"c.ts:1", "[1 matching lines"}},
		{args: `{"pattern":"needle","path":"sub"}`, want: []string{"sub/deep/c.ts:1", "1 skipped: ignored by git"}, not: []string{"a.go"}},
		{args: `{"pattern":"needle","path":"sub","glob":"deep/*"}`, want: []string{"sub/deep/c.ts:1"}},
		{args: `{"pattern":"needle","path":"x.log"}`, want: []string{"x.log:1: needle in an ignored file"}}, // named outright
		{args: `{"pattern":"Alpha|Beta","context":1}`, want: []string{"a.go-1- package a\na.go:2: func Alpha() {}\na.go-3- // needle one\na.go:4: func Beta() {}\n"}, not: []string{"--"}},
		{args: `{"pattern":"package a|Beta","context":1,"glob":"a.go"}`, want: []string{"a.go:1: package a\na.go-2- func Alpha() {}\na.go-3- // needle one\na.go:4:"}},
		{args: `{"pattern":"needle","context":0,"limit":1}`, want: []string{"a.go:3", "[3 matching lines", "2 matching lines not shown"}, not: []string{"c.ts"}},
		{args: `{"pattern":"common"}`, want: []string{"many.txt:100:", "[250 matching lines in 1 files", "150 matching lines not shown"}, not: []string{"many.txt:101:"}},
		{args: `{"pattern":"WIDE"}`, want: []string{"WIDE", "[of a line of 6004 bytes]"}},
		{args: `{"pattern":"rtl"}`, want: []string{"other/n"}, not: []string{"\u202e"}},
		{args: `{"pattern":"("}`, want: []string{"pattern:", "literal"}, isError: true},
		{args: `{"pattern":"(","literal":true}`, want: []string{"func Alpha()"}},
		{args: `{"pattern":"x","glob":"["}`, want: []string{"malformed"}, isError: true},
		{args: `{"pattern":"x","path":"missing"}`, want: []string{"missing: no such file"}, isError: true},
		{args: `{"pattern":""}`, want: []string{"pattern"}, isError: true},
		{args: `{}`, want: []string{"pattern"}, isError: true},
		{args: `{"pattern":"x","context":21}`, want: []string{"context"}, isError: true},
		{args: `{"pattern":"x","limit":0}`, want: []string{"limit"}, isError: true},
		{args: `{"pattern":"x","limit":1001}`, want: []string{"limit"}, isError: true},
		{args: `{"pattern":"x","regex":true}`, want: []string{"regex"}, isError: true},

		{args: `{"pattern":"outside"}`, want: []string{"no matches"}},                                                       // ROO-02: links are not followed
		{args: `{"pattern":"outside","path":"link-dir"}`, want: []string{"refused by policy"}, isError: true},               // ROO-02
		{args: `{"pattern":"outside","path":"link-file"}`, want: []string{"refused by policy"}, isError: true},              // ROO-02
		{args: `{"pattern":"root","path":"../../etc"}`, want: []string{"refused by policy"}, isError: true},                 // ROO-01
		{args: `{"pattern":"root","path":"/etc/passwd"}`, want: []string{"refused by policy"}, isError: true},               // ROO-01
		{args: `{"pattern":"root","path":"a/../../x"}`, want: []string{"refused by policy"}, isError: true},                 // ROO-01
		{args: fmt.Sprintf(`{"pattern":"outside","path":%q}`, outside), want: []string{"refused by policy"}, isError: true}, // ROO-03
		{args: `{"pattern":"x","path":"a\u0000"}`, want: []string{"NUL"}, isError: true},                                    // ROO-04
		{args: `{"pattern":"x","path":"~/x"}`, want: []string{"no such file"}, isError: true},                               // ROO-04
		{args: `{"pattern":"x","path":"` + strings.Repeat("a", 5000) + `"}`, want: []string{"at most 4096"}, isError: true}, // ROO-04
	} {
		r := toolsRun(t, box, "text_search", tc.args)
		for _, want := range tc.want {
			if !strings.Contains(r.Text, want) {
				t.Errorf("text_search %.80s: %.400q, want %q", tc.args, r.Text, want)
			}
		}
		for _, not := range tc.not {
			if strings.Contains(r.Text, not) {
				t.Errorf("text_search %.80s: %.400q, must not hold %q", tc.args, r.Text, not)
			}
		}
		if r.IsError != tc.isError || strings.Contains(r.Text, "the outside secret") {
			t.Errorf("text_search %.80s: error %v, want %v: %.300q", tc.args, r.IsError, tc.isError, r.Text)
		}
	}
	free := newToolsBox(t, modeDanger, nil, searchTools(w)...)
	r := toolsRun(t, free, "text_search", fmt.Sprintf(`{"pattern":"outside","path":%q}`, outside))
	if want := filepath.ToSlash(outside) + "/x:1: the outside secret"; !strings.Contains(r.Text, want) {
		t.Errorf("a place outside that the policy allows: %q, want %q", r.Text, want)
	}
}

// The structured result says the same as the text and fits its schema.
func TestTextSearchStructured(t *testing.T) {
	w, _ := workspaceDirs(t)
	tools := searchTools(w)
	box := newToolsBox(t, modePrompt, nil, tools...)
	schema, err := compileSchema(tools[0].Output)
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"two", "nothing of the kind"} {
		r := toolsRun(t, box, "text_search", fmt.Sprintf(`{"pattern":%q}`, pattern))
		if err := schema.validate(r.Structured); err != nil {
			t.Errorf("%s: %v", r.Structured, err)
		}
		var doc struct {
			Matches []searchMatch
			Lines   int `json:"matching_lines"`
		}
		if err := json.Unmarshal(r.Structured, &doc); err != nil {
			t.Fatal(err)
		}
		if pattern == "two" && (doc.Lines != 1 || len(doc.Matches) != 1 || doc.Matches[0] != searchMatch{"in.txt", 2, "two"}) {
			t.Errorf("structured %s", r.Structured)
		}
	}
}

// At its time limit a search gives what it has and says that there is more.
func TestTextSearchTime(t *testing.T) {
	w, _ := workspaceDirs(t)
	r, err := textSearch(t.Context(), w, toolCall{Args: json.RawMessage(`{"pattern":"one"}`)}, time.Nanosecond)
	if err != nil || !strings.Contains(r.Text, "incomplete") {
		t.Errorf("%q, %v", r.Text, err)
	}
	if searchTime != 30*time.Second {
		t.Errorf("the time limit is %s", searchTime)
	}
}
