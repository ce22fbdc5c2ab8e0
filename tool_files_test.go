package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// toolsRun calls one tool through the whole door.
func toolsRun(t *testing.T, box *toolsBox, name, args string) toolResult {
	t.Helper()
	r, err := box.dispatch(t.Context(), toolCall{Name: name, Args: json.RawMessage(args), Origin: "cli"})
	if err != nil {
		t.Fatalf("%s %s: %v", name, args, err)
	}
	return r
}

func filesWrite(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFileRead(t *testing.T) {
	w, outside := workspaceDirs(t)
	var long strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&long, "line %d\n", i+1)
	}
	filesWrite(t, w.root, map[string]string{
		"long.txt": long.String(), "empty": "", "noend": "a\r\nb", "wide.txt": strings.Repeat("é", 100_000) + "\nshort\n",
		"latin.txt": "caf\xe9 au lait\n", "png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "big.txt": strings.Repeat(strings.Repeat("x", 99)+"\n", 2000), "a\nb": "odd name\n",
	})
	box := newToolsBox(t, modePrompt, nil, fileTools(w)...)
	for _, tc := range []struct {
		args    string
		want    []string // parts of the text
		not     string
		isError bool
	}{
		{args: `{"path":"in.txt"}`, want: []string{"     1\tone\n     2\ttwo\n"}, not: "["},
		{args: `{"path":"sub/../in.txt"}`, want: []string{"\tone\n"}},
		{args: `{"path":"link-in"}`, want: []string{"\tone\n"}},
		{args: `{"path":"noend"}`, want: []string{"     1\ta\n     2\tb\n"}},
		{args: `{"path":"long.txt"}`, want: []string{"  2000\tline 2000\n", "[lines 1 to 2000 of 3000]", "[1000 lines left out; go on with offset 2001]"}, not: "line 2001"},
		{args: `{"path":"long.txt","offset":2999,"limit":5}`, want: []string{"  2999\tline 2999\n  3000\tline 3000\n[lines 2999 to 3000 of 3000]"}, not: "left out"},
		{args: `{"path":"long.txt","offset":3001}`, want: []string{"past the end: the file has 3000 lines"}, isError: true},
		{args: `{"path":"big.txt"}`, want: []string{"go on with offset"}},
		{args: `{"path":"wide.txt"}`, want: []string{"… (line of 200001 bytes)", "     2\tshort"}},
		{args: `{"path":"latin.txt"}`, want: []string{"caf\uFFFD au lait"}},
		{args: `{"path":"empty"}`, want: []string{"empty is empty"}},
		{args: `{"path":"png"}`, want: []string{"png is binary: 16 bytes, image/png"}},
		{args: `{"path":"sub"}`, want: []string{"is a folder"}, isError: true},
		{args: `{"path":"missing"}`, want: []string{"missing: no such file"}, isError: true},
		{args: `{"path":"in.txt/x"}`, want: []string{"not a directory"}, isError: true},
		{args: `{"path":"a\nb"}`, want: []string{"odd name"}},
		{args: `{}`, want: []string{"path"}, isError: true},
		{args: `{"path":""}`, want: []string{"path"}, isError: true},
		{args: `{"path":"in.txt","offset":0}`, want: []string{"offset"}, isError: true},
		{args: `{"path":"in.txt","limit":100001}`, want: []string{"limit"}, isError: true},
		{args: `{"path":"in.txt","lines":3}`, want: []string{"lines"}, isError: true},
		{args: `{"path":5}`, want: []string{"path"}, isError: true},

		{args: `{"path":"../../etc/passwd"}`, want: []string{"refused by policy"}, isError: true}, // ROO-01
		{args: `{"path":"/etc/passwd"}`, want: []string{"refused by policy"}, isError: true},      // ROO-01
		{args: `{"path":"a/../../x"}`, want: []string{"refused by policy"}, isError: true},        // ROO-01
		{args: `{"path":"link-file"}`, want: []string{"refused by policy"}, isError: true},        // ROO-02
		{args: `{"path":"link-rel"}`, want: []string{"refused by policy"}, isError: true},         // ROO-02
		{args: `{"path":"link-dir/x"}`, want: []string{"refused by policy"}, isError: true},       // ROO-02
		{args: `{"path":"link-dead"}`, want: []string{"leads nowhere"}, isError: true},
		{args: fmt.Sprintf(`{"path":%q}`, filepath.Join(outside, "x")), want: []string{"refused by policy"}, isError: true}, // ROO-03
		{args: `{"path":"a\u0000b"}`, want: []string{"NUL"}, isError: true},                                                 // ROO-04
		{args: `{"path":"~/x"}`, want: []string{"no such file"}, isError: true},                                             // ROO-04
		{args: `{"path":"%2e%2e/app-secret/x"}`, want: []string{"no such file"}, isError: true},                             // ROO-04
		{args: `{"path":"..\\app-secret\\x"}`, want: []string{"no such file"}, isError: true},                               // ROO-04
		{args: `{"path":"` + strings.Repeat("a", 5000) + `"}`, want: []string{"at most 4096"}, isError: true},               // ROO-04
	} {
		r := toolsRun(t, box, "file_read", tc.args)
		for _, want := range tc.want {
			if !strings.Contains(r.Text, want) {
				t.Errorf("file_read %.80s: %.300q, want %q", tc.args, r.Text, want)
			}
		}
		if r.IsError != tc.isError || (tc.not != "" && strings.Contains(r.Text, tc.not)) {
			t.Errorf("file_read %.80s: error %v, want %v; or %q in %.300q", tc.args, r.IsError, tc.isError, tc.not, r.Text)
		}
		if strings.Contains(r.Text, "outside secret") || len(r.Text) > mcpResultMax || r.Record != "" {
			t.Errorf("file_read %.80s: gave what it must not: %d bytes, record %q", tc.args, len(r.Text), r.Record)
		}
	}
	free := newToolsBox(t, modeDanger, nil, fileTools(w)...)
	if r := toolsRun(t, free, "file_read", `{"path":"link-dir/x"}`); r.IsError || !strings.Contains(r.Text, "the outside secret") {
		t.Errorf("a place outside that the policy allows: %+v", r)
	}
}
