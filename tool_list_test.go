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

// listBox is the listing tools over a workspace with hidden, ignored, old and linked files.
func listBox(t *testing.T, mode approvalMode) (*toolsBox, workspace, string) {
	t.Helper()
	w, outside := workspaceDirs(t)
	filesWrite(t, w.root, map[string]string{
		".gitignore": "*.log\nbuilt/\n", "a.go": "package a\n", "src/b.go": "package b\n", "src/deep/c.ts": "c\n", "x.log": "x\n", "built/out": "x\n", ".git/config": "x\n",
		".hidden/h.go": "package h\n", "old.txt": "old\n", "odd\u202e.txt": "odd\n", "a/b/c/d/e.txt": "e\n",
	})
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(w.root, "old.txt"), old, old); err != nil {
		t.Fatal(err)
	}
	return newToolsBox(t, mode, nil, pathTools(w, time.Now)...), w, outside
}

func TestFileFind(t *testing.T) {
	t.Parallel()
	box, _, outside := listBox(t, modePrompt)
	for _, tc := range []struct {
		args      string
		want, not []string
		err       bool
	}{
		{`{"pattern":"*.go"}`, []string{".hidden/h.go  10\na.go  10\nsrc/b.go  10\nsub/deep.go  13\n[4 found", "2 skipped: ignored by git"}, []string{"built"}, false},
		{`{"pattern":"src/**/*.{ts,go}"}`, []string{"src/b.go", "src/deep/c.ts", "[2 found"}, nil, false},
		{`{"pattern":"*","path":"src"}`, []string{"src/b.go", "src/deep/\n", "src/deep/c.ts", "[3 found"}, []string{"a.go"}, false},
		{`{"pattern":"deep/*","path":"src"}`, []string{"src/deep/c.ts", "[1 found"}, nil, false},
		{`{"pattern":"*","type":"d"}`, []string{"src/\n", "src/deep/\n", "a/b/c/d/\n"}, []string{".go", ".git/", "built", "link"}, false},
		{`{"pattern":"*","type":"l"}`, []string{"link-dir -> " + outside, "[5 found"}, []string{"a.go"}, false},
		{`{"pattern":"*.log"}`, []string{"nothing found", "skipped: ignored by git"}, nil, false},
		{`{"pattern":"*.txt","newer":"2h"}`, []string{"in.txt"}, []string{"old.txt"}, false},
		{`{"pattern":"*.txt","newer":"2020-01-02T03:04:05Z"}`, []string{"old.txt"}, nil, false},
		{`{"pattern":"*.txt","newer":"2020-01-03"}`, []string{"in.txt"}, []string{"old.txt"}, false},
		{`{"pattern":"old.txt","newer":"5200w"}`, []string{"old.txt"}, nil, false},
		{`{"pattern":"*.go","limit":1}`, []string{".hidden/h.go", "[4 found; 3 not shown"}, []string{"a.go"}, false},
		{`{"pattern":"odd*"}`, []string{"[1 found"}, []string{"\u202e"}, false},
		{`{"pattern":"["}`, []string{"malformed"}, nil, true},
		{`{"pattern":"*","newer":"yesterday"}`, []string{`newer "yesterday" is no age`}, nil, true},
		{`{"pattern":"*","newer":"-2h"}`, []string{"is no age"}, nil, true},
		{`{"pattern":"*","newer":"d"}`, []string{"is no age"}, nil, true},
		{`{"pattern":"*","type":"x"}`, []string{"type"}, nil, true},
		{`{"pattern":"*","limit":0}`, []string{"limit"}, nil, true},
		{`{"pattern":"*","limit":5001}`, []string{"limit"}, nil, true},
		{`{"pattern":""}`, []string{"pattern"}, nil, true},
		{`{"pattern":"*","path":"a.go"}`, []string{"a.go is no folder"}, nil, true},
		{`{"pattern":"*","path":"no"}`, []string{"no: no such file"}, nil, true},
		{`{"pattern":"*","path":"link-dir"}`, []string{"refused by policy"}, nil, true},                // ROO-02
		{`{"pattern":"x","path":"link-in"}`, []string{"is no folder"}, nil, true},                      // a link within
		{`{"pattern":"*","path":"../app-secret"}`, []string{"refused by policy"}, nil, true},           // ROO-03
		{`{"pattern":"*","path":"/etc"}`, []string{"refused by policy"}, nil, true},                    // ROO-01
		{`{"pattern":"../app-secret/*"}`, []string{"nothing found"}, nil, false},                       // ROO-01
		{`{"pattern":"*","path":"a\u0000"}`, []string{"NUL"}, nil, true},                               // ROO-04
		{`{"pattern":"*","path":"~"}`, []string{"no such file"}, nil, true},                            // ROO-04
		{`{"pattern":"x","path":"` + strings.Repeat("a", 5000) + `"}`, []string{"at most"}, nil, true}, // ROO-04
	} {
		listCheck(t, box, "file_find", tc.args, tc.want, tc.not, tc.err)
	}
}

func listCheck(t *testing.T, box *toolsBox, tool, args string, want, not []string, fault bool) {
	t.Helper()
	res := toolsRun(t, box, tool, args)
	for _, w := range want {
		if res.IsError != fault || !strings.Contains(res.Text, w) {
			t.Errorf("%s %.80s: error %v, want %v\n%.900s\nwant %q", tool, args, res.IsError, fault, res.Text, w)
		}
	}
	for _, n := range not {
		if strings.Contains(res.Text, n) {
			t.Errorf("%s %.80s: %.900s\nmust not hold %q", tool, args, res.Text, n)
		}
	}
}

func TestDirList(t *testing.T) {
	t.Parallel()
	box, w, outside := listBox(t, modePrompt)
	if err := os.Chmod(filepath.Join(w.root, "a.go"), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args      string
		want, not []string
		err       bool
	}{
		{`{"path":"src"}`, []string{"b.go  10\ndeep/\n  c.ts  2\n[src: 3 entries]"}, nil, false},
		{`{"path":"src","depth":1}`, []string{"deep/\n[src: 2 entries]"}, []string{"c.ts"}, false},
		{`{"path":"a","depth":20}`, []string{"b/\n  c/\n    d/\n      e.txt  2\n"}, nil, false},
		{`{"depth":1}`, []string{"a.go  10\n", "link-dir -> " + outside, "2 skipped: ignored by git", "2 skipped: hidden"}, []string{".hidden", "x.log", "built", "\u202e"}, false},
		{`{"depth":2,"hidden":true,"path":"."}`, []string{".git/\n", ".hidden/\n  h.go", "x.log", "built/\n  out"}, []string{"config"}, false},
		{`{"path":"src","hash":true}`, []string{"b.go  10  " + sha256Hex([]byte("package b\n"))}, nil, false},
		{`{"path":"a.go"}`, []string{"a.go: 10 bytes, mode 0640, modified 20", "sha256 " + sha256Hex([]byte("package a\n"))}, nil, false},
		{`{"path":"link-in"}`, []string{"in.txt: 8 bytes"}, nil, false},
		{`{"path":"old.txt"}`, []string{"modified 2020-01-02T03:04:05Z"}, nil, false},
		{`{"path":"no"}`, []string{"no: no such file"}, nil, true},
		{`{"depth":0}`, []string{"depth"}, nil, true},
		{`{"depth":21}`, []string{"depth"}, nil, true},
		{`{"deep":1}`, []string{"deep"}, nil, true},
		{`{"path":"link-dir"}`, []string{"refused by policy"}, nil, true},      // ROO-02
		{`{"path":"link-file"}`, []string{"refused by policy"}, nil, true},     // ROO-02
		{`{"path":"../app-secret"}`, []string{"refused by policy"}, nil, true}, // ROO-03
		{`{"path":"../.."}`, []string{"refused by policy"}, nil, true},         // ROO-01
		{`{"path":"a\u0000"}`, []string{"NUL"}, nil, true},                     // ROO-04
		{`{"path":"%2e%2e"}`, []string{"no such file"}, nil, true},             // ROO-04
	} {
		listCheck(t, box, "dir_list", tc.args, tc.want, tc.not, tc.err)
	}
	many := map[string]string{}
	for i := range listMax + 5 {
		many[fmt.Sprintf("many/%04d", i)] = ""
	}
	filesWrite(t, w.root, many)
	listCheck(t, box, "dir_list", `{"path":"many"}`, []string{"[many: 1000 entries; 5 more left out"}, []string{"1003"}, false)
	res := toolsRun(t, box, "dir_list", `{"path":"src","hash":true}`)
	var doc struct{ Entries []listEntry }
	if err := json.Unmarshal(res.Structured, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Entries) != 3 || doc.Entries[2].Path != "src/deep/c.ts" || doc.Entries[2].Type != "f" || doc.Entries[1].Type != "d" || doc.Entries[0].SHA256 != sha256Hex([]byte("package b\n")) {
		t.Errorf("structured %s", res.Structured)
	}
	free, _, outside := listBox(t, modeDanger)
	listCheck(t, free, "dir_list", fmt.Sprintf(`{"path":%q}`, outside), []string{"x  19"}, nil, false)
	listCheck(t, free, "file_find", fmt.Sprintf(`{"pattern":"x","path":%q}`, outside), []string{filepath.ToSlash(outside) + "/x  19"}, nil, false)
}
