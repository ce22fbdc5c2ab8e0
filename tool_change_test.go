package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// changeRig is the changing tools over a workspace with a vault, as a run has them.
type changeRig struct {
	*toolsBox
	t       *testing.T
	w       workspace
	outside string
	home    string
	f       *fileChanger
}

func newChangeRig(t *testing.T, mode approvalMode) *changeRig {
	t.Helper()
	w, outside := workspaceDirs(t)
	r := &changeRig{t: t, w: w, outside: outside}
	var own string
	r.f = newFileChanger(w, "", func() []string { return []string{own} }, func(ctx context.Context) (*vault, error) { return r.toolsBox.toolbox.vault(ctx) }, time.Now)
	r.toolsBox = newToolsBox(t, mode, nil, append(changingTools(r.f), fileTools(w)...)...)
	own = filepath.Join(r.toolsBox.dir, "home")
	r.home, r.f.trash = own, filepath.Join(own, "trash")
	return r
}

// call runs a tool with arguments and gives its result.
func (r *changeRig) call(name string, args map[string]any) toolResult {
	r.t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	b, err := json.Marshal(args)
	if err != nil {
		r.t.Fatal(err)
	}
	return toolsRun(r.t, r.toolsBox, name, string(b))
}

// good is call for one that has to work; it gives the id of the change.
func (r *changeRig) good(name string, args map[string]any) string {
	r.t.Helper()
	res := r.call(name, args)
	if res.IsError {
		r.t.Fatalf("%s %v: %s", name, args, res.Text)
	}
	var doc struct{ Change string }
	if err := json.Unmarshal(res.Structured, &doc); err != nil {
		r.t.Fatalf("%s: structured %s: %v", name, res.Structured, err)
	}
	return doc.Change
}

// tree gives every path of a folder with mode and content.
func changeTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			out[rel] = "folder"
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			out[rel] = "link " + target
			return err
		case d.Type().IsRegular():
			b, err := os.ReadFile(path)
			out[rel] = fmt.Sprintf("%v %s", info.Mode(), b)
			return err
		default:
			out[rel] = info.Mode().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func changeSameTree(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if got[k] != want[k] {
			t.Errorf("%s: %s is %.200q, want %.200q", what, k, got[k], want[k])
		}
	}
	for k := range want {
		if _, ok := got[k]; !ok {
			t.Errorf("%s: %s is missing", what, k)
		}
	}
}

// changeCase is one call: what it finds, and what is there after it. An error leaves everything as it was.
type changeCase struct {
	name  string
	tool  string
	args  map[string]any
	files map[string]string // to be there before, over in.txt and sub/deep.go
	want  map[string]string // contents after; "-" for none
	text  string            // part of the result, or of the error
	err   bool
}

const changeHash = "2f8cbf52ecb6d28a0eecbc1c6e1a1dd1c2b5f28cd4e9c5c7b0ec5b6ff0e7d8a1" // of nothing here

func changeCases() []changeCase {
	type m = map[string]any
	type s = map[string]string
	long := strings.Repeat("line\n", 30)
	return []changeCase{
		{"create", "file_write", m{"path": "new.txt", "content": "x\n"}, nil, s{"new.txt": "x\n"}, "new.txt: created, lines +1 -0, 2 bytes", false},
		{"create empty", "file_write", m{"path": "new.txt", "content": ""}, nil, s{"new.txt": ""}, "created, 0 bytes", false},
		{"create in a new folder", "file_write", m{"path": "a/b/new.txt", "content": "x", "mkdirs": true}, nil, s{"a/b/new.txt": "x"}, "a/b: folder made", false},
		{"no folder", "file_write", m{"path": "a/b/new.txt", "content": "x"}, nil, s{"a": "-"}, "the folder a/b does not exist; mkdirs makes it", true},
		{"create over a file", "file_write", m{"path": "in.txt", "content": "x"}, nil, s{"in.txt": "one\ntwo\n"}, "exists already, with 8 bytes; mode replace", true},
		{"create, the same", "file_write", m{"path": "in.txt", "content": "one\ntwo\n"}, nil, nil, "it is so already", false},
		{"replace", "file_write", m{"path": "in.txt", "content": "one\n2\n", "mode": "replace"}, nil, s{"in.txt": "one\n2\n"}, "-two\n+2\n", false},
		{"replace through a link", "file_write", m{"path": "link-in", "content": "z", "mode": "replace"}, nil, s{"in.txt": "z"}, "in.txt: changed", false},
		{"replace what is not there", "file_write", m{"path": "new.txt", "content": "x", "mode": "replace"}, nil, s{"new.txt": "x"}, "created", false},
		{"replace drops a mark", "file_write", m{"path": "b.txt", "content": "x", "mode": "replace"}, s{"b.txt": utf8BOM + "a\r\n"}, s{"b.txt": "x"}, "byte order mark", false},
		{"append", "file_write", m{"path": "in.txt", "content": "three\n", "mode": "append"}, nil, s{"in.txt": "one\ntwo\nthree\n"}, "+three", false},
		{"append to CRLF", "file_write", m{"path": "c.txt", "content": "c\nd\n", "mode": "append"}, s{"c.txt": "a\r\nb\r\n"}, s{"c.txt": "a\r\nb\r\nc\r\nd\r\n"}, "+2 -0", false},
		{"append without an end", "file_write", m{"path": "c.txt", "content": "c\n", "mode": "append"}, s{"c.txt": "a"}, s{"c.txt": "ac\n"}, "goes on with its last line", false},
		{"append to nothing", "file_write", m{"path": "new.txt", "content": "c", "mode": "append"}, nil, s{"new.txt": "c"}, "created", false},
		{"if_hash right", "file_write", m{"path": "in.txt", "content": "x", "if_hash": sha256Hex([]byte("one\ntwo\n"))}, nil, s{"in.txt": "x"}, "changed", false},
		{"if_hash wrong", "file_write", m{"path": "in.txt", "content": "x", "if_hash": changeHash}, nil, s{"in.txt": "one\ntwo\n"}, "its SHA-256 is now " + sha256Hex([]byte("one\ntwo\n")), true},
		{"if_hash and no file", "file_write", m{"path": "new.txt", "content": "x", "if_hash": changeHash}, nil, s{"new.txt": "-"}, "the file does not exist", true},
		{"if_hash no hash", "file_write", m{"path": "in.txt", "content": "x", "if_hash": "abc"}, nil, nil, "if_hash", true},
		{"bad mode", "file_write", m{"path": "in.txt", "content": "x", "mode": "overwrite"}, nil, nil, "mode", true},
		{"no content", "file_write", m{"path": "in.txt"}, nil, nil, "content", true},
		{"no path", "file_write", m{"path": "", "content": ""}, nil, nil, "path", true},
		{"a folder", "file_write", m{"path": "sub", "content": "x", "mode": "replace"}, nil, nil, "is a folder", true},
		{"a folder's name", "file_write", m{"path": "neu/", "content": "x"}, nil, s{"neu": "-"}, "ends in / is that of a folder", true},
		{"the root", "file_write", m{"path": ".", "content": "x"}, nil, nil, "is the workspace root itself", true},
		{"below a file", "file_write", m{"path": "in.txt/x", "content": "x", "mkdirs": true}, nil, nil, "not a directory", true},
		{"a dead link", "file_write", m{"path": "link-dead", "content": "x"}, nil, nil, "leads nowhere", true},
		{"write-protected", "file_write", m{"path": "ro.txt", "content": "x", "mode": "replace"}, s{"ro.txt": "keep"}, s{"ro.txt": "keep"}, "is write-protected (mode 0444)", true},

		{"edit", "file_edit", m{"path": "in.txt", "old": "two", "new": "2"}, nil, s{"in.txt": "one\n2\n"}, "lines +1 -1", false},
		{"edit away", "file_edit", m{"path": "in.txt", "old": "one\n", "new": ""}, nil, s{"in.txt": "two\n"}, "lines +0 -1", false},
		{"edit CRLF", "file_edit", m{"path": "c.txt", "old": "a\nb", "new": "x\ny\nz"}, s{"c.txt": "a\r\nb\r\nc"}, s{"c.txt": "x\r\ny\r\nz\r\nc"}, "changed", false},
		{"edit behind a mark", "file_edit", m{"path": "c.txt", "old": "a", "new": "b"}, s{"c.txt": utf8BOM + "a"}, s{"c.txt": utf8BOM + "b"}, "changed", false},
		{"edit Latin-1", "file_edit", m{"path": "l.txt", "old": "au", "new": "with"}, s{"l.txt": "caf\xe9 au lait\n"}, s{"l.txt": "caf\xe9 with lait\n"}, "changed", false},
		{"edit Latin-1 with more", "file_edit", m{"path": "l.txt", "old": "au", "new": "à"}, s{"l.txt": "caf\xe9 au lait\n"}, s{"l.txt": "caf\xe9 au lait\n"}, "not UTF-8, so that only ASCII", true},
		{"edit a binary", "file_edit", m{"path": "b", "old": "a", "new": "b"}, s{"b": "a\x00"}, s{"b": "a\x00"}, "binary or UTF-16", true},
		{"edit twice there", "file_edit", m{"path": "t", "old": "x", "new": "y"}, s{"t": "x\nb\nx x\n"}, s{"t": "x\nb\nx x\n"}, "stands 3 times in the file, at lines 1, 3, 3", true},
		{"edit many there", "file_edit", m{"path": "t", "old": "line", "new": "y"}, s{"t": long}, nil, "and further on", true},
		{"edit all", "file_edit", m{"path": "t", "old": "x", "new": "y", "all": true}, s{"t": "x\nb\nx x\n"}, s{"t": "y\nb\ny y\n"}, "lines +2 -2", false},
		{"edit, other white space", "file_edit", m{"path": "t", "old": "if x {", "new": "y"}, s{"t": "a\n\tif  x {\n"}, nil, "with other white space it stands at line 2", true},
		{"edit, only the first line", "file_edit", m{"path": "t", "old": "alpha\nbeta\n", "new": "y"}, s{"t": "q\nalpha\ngamma\n"}, nil, "its first line stands at line 2", true},
		{"edit, something like it", "file_edit", m{"path": "t", "old": "return values, nil", "new": "y"}, s{"t": "a\nreturn value, nil\n"}, nil, `the nearest is line 2: "return value, nil"`, true},
		{"edit, nothing like it", "file_edit", m{"path": "in.txt", "old": "zzzz", "new": "y"}, nil, nil, "old is not in the file", true},
		{"edit, the same", "file_edit", m{"path": "in.txt", "old": "one", "new": "one"}, nil, nil, "old and new are the same", true},
		{"edit nothing", "file_edit", m{"path": "in.txt", "old": "", "new": "x"}, nil, nil, "old", true},
		{"edit no file", "file_edit", m{"path": "nope", "old": "a", "new": "x"}, nil, nil, "no such file", true},
		{"edit a folder", "file_edit", m{"path": "sub", "old": "a", "new": "x"}, nil, nil, "is a folder", true},

		{"move", "file_move", m{"src": "in.txt", "dst": "sub/out.txt"}, nil, s{"in.txt": "-", "sub/out.txt": "one\ntwo\n"}, "in.txt: moved to sub/out.txt", false},
		{"move a folder", "file_move", m{"src": "sub", "dst": "other"}, nil, s{"sub": "-", "other/deep.go": "package deep\n"}, "moved", false},
		{"move a link", "file_move", m{"src": "link-in", "dst": "l2"}, nil, s{"link-in": "-", "in.txt": "one\ntwo\n"}, "moved", false},
		{"move over", "file_move", m{"src": "in.txt", "dst": "sub/deep.go"}, nil, s{"in.txt": "one\ntwo\n"}, "exists already; overwrite replaces it", true},
		{"move over, told", "file_move", m{"src": "in.txt", "dst": "sub/deep.go", "overwrite": true}, nil, s{"in.txt": "-", "sub/deep.go": "one\ntwo\n"}, "deleted", false},
		{"move onto a folder", "file_move", m{"src": "in.txt", "dst": "sub", "overwrite": true}, nil, nil, "give the whole new path, as sub/in.txt", true},
		{"move a folder onto a file", "file_move", m{"src": "sub", "dst": "in.txt", "overwrite": true}, nil, nil, "a folder is never moved over a file", true},
		{"move into itself", "file_move", m{"src": "sub", "dst": "sub/x"}, nil, nil, "lies in sub itself", true},
		{"move nothing", "file_move", m{"src": "nope", "dst": "x"}, nil, nil, "nope: no such file or folder", true},
		{"move to no folder", "file_move", m{"src": "in.txt", "dst": "no/x"}, nil, s{"in.txt": "one\ntwo\n"}, "no such file", true},
		{"move to itself", "file_move", m{"src": "in.txt", "dst": "./in.txt"}, nil, s{"in.txt": "one\ntwo\n"}, "it is so already", false},
		{"move the root", "file_move", m{"src": ".", "dst": "x"}, nil, nil, "tai's own files are there", true},
		{"move without dst", "file_move", m{"src": "in.txt"}, nil, nil, "dst", true},

		{"delete", "file_delete", m{"path": "in.txt"}, nil, s{"in.txt": "-"}, "in.txt: deleted, lines +0 -2", false},
		{"delete a link", "file_delete", m{"path": "link-in"}, nil, s{"link-in": "-", "in.txt": "one\ntwo\n"}, "symbolic link to", false},
		{"delete a link that leads out", "file_delete", m{"path": "link-dir"}, nil, s{"link-dir": "-"}, "deleted", false},
		{"delete a folder", "file_delete", m{"path": "sub"}, nil, nil, "is a folder that holds 1 files and folders; recursive", true},
		{"delete a folder, told", "file_delete", m{"path": "sub", "recursive": true}, nil, s{"sub": "-"}, "moved to the trash", false},
		{"delete an empty folder", "file_delete", m{"path": "e/f"}, s{"e/f/": ""}, s{"e/f": "-"}, "folder removed", false},
		{"delete nothing", "file_delete", m{"path": "nope"}, nil, nil, "no such file or folder", true},
		{"delete the root", "file_delete", m{"path": ".", "recursive": true}, nil, nil, "tai's own files are there", true},
		{"delete without a path", "file_delete", m{}, nil, nil, "path", true},
	}
}

// prepare puts the files of a case there. A name that ends in / is a folder, ro.txt is write-protected.
func (tc changeCase) prepare(t *testing.T, root string) {
	t.Helper()
	for name, text := range tc.files {
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		filesWrite(t, root, map[string]string{name: text})
		if name == "ro.txt" {
			if err := os.Chmod(filepath.Join(root, name), 0o444); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Each tool does what it says, in all its ways, or says why not and changes nothing; and what it did is undone to the byte, and done again by undoing that.
func TestChangingTools(t *testing.T) {
	t.Parallel()
	for _, tc := range changeCases() {
		t.Run(tc.tool+"/"+tc.name, func(t *testing.T) {
			t.Parallel()
			r := newChangeRig(t, modeAllow)
			tc.prepare(t, r.w.root)
			before := changeTree(t, r.w.root)
			res := r.call(tc.tool, tc.args)
			if res.IsError != tc.err || !strings.Contains(res.Text, tc.text) {
				t.Fatalf("error %v, want %v: %s\nwant %q", res.IsError, tc.err, res.Text, tc.text)
			}
			after := changeTree(t, r.w.root)
			for name, want := range tc.want {
				got, there := after[filepath.FromSlash(name)]
				if _, text, _ := strings.Cut(got, " "); there == (want == "-") || there && text != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			var doc struct{ Change string }
			if tc.err {
				changeSameTree(t, "after an error", after, before)
			} else if err := json.Unmarshal(res.Structured, &doc); err != nil {
				t.Fatal(err)
			}
			if doc.Change == "" {
				changeSameTree(t, "nothing to do", after, before)
				return
			}
			if again := r.call("file_undo", map[string]any{"dry_run": true}); again.IsError || !strings.Contains(again.Text, "dry run, nothing was changed") {
				t.Errorf("a dry run: %s", again.Text)
			}
			changeSameTree(t, "after a dry run", changeTree(t, r.w.root), after)
			undo := r.good("file_undo", map[string]any{})
			changeSameTree(t, "undone", changeTree(t, r.w.root), before)
			redo := r.good("file_undo", map[string]any{"change": undo})
			changeSameTree(t, "done again", changeTree(t, r.w.root), after)
			r.good("file_undo", map[string]any{"change": redo})
			changeSameTree(t, "undone again", changeTree(t, r.w.root), before)
			if res := r.call("file_undo", map[string]any{}); !res.IsError || !strings.Contains(res.Text, "there is no change to undo") {
				t.Errorf("nothing is left to undo: %s", res.Text)
			}
		})
	}
}
