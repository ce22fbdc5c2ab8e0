package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// workspaceDirs makes a root with a file, a folder beside it whose name starts like the root's, and links that lead out.
func workspaceDirs(t *testing.T) (w workspace, outside string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, outside := filepath.Join(base, "app"), filepath.Join(base, "app-secret")
	for path, text := range map[string]string{
		filepath.Join(root, "in.txt"):         "one\ntwo\n",
		filepath.Join(root, "sub", "deep.go"): "package deep\n",
		filepath.Join(outside, "x"):           "the outside secret\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"link-file": filepath.Join(outside, "x"),
		"link-dir":  outside,
		"link-rel":  "../app-secret/x",
		"link-in":   filepath.Join(root, "in.txt"),
		"link-dead": filepath.Join(base, "nowhere"),
	} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			skipMissing(t, "no symbolic links here: %v", err)
		}
	}
	w, err = openWorkspace(root)
	if err != nil {
		t.Fatal(err)
	}
	return w, outside
}

func TestWorkspaceLocate(t *testing.T) {
	w, outside := workspaceDirs(t)
	for _, tc := range []struct {
		path, rel string
		outside   bool
		fault     string
	}{
		{path: "", rel: "."},
		{path: ".", rel: "."},
		{path: "in.txt", rel: "in.txt"},
		{path: "sub/../in.txt", rel: "in.txt"},
		{path: filepath.Join(w.root, "sub"), rel: "sub"},
		{path: "new/file", rel: "new/file"},
		{path: "link-in", rel: "in.txt"},
		{path: "../../etc/passwd", outside: true}, // ROO-01
		{path: "/etc/passwd", outside: true},      // ROO-01
		{path: "a/../../x", outside: true},        // ROO-01
		{path: "link-file", outside: true},        // ROO-02
		{path: "link-rel", outside: true},         // ROO-02
		{path: "link-dir", outside: true},         // ROO-02
		{path: "link-dir/x", outside: true},       // ROO-02
		{path: "link-dir/new", outside: true},     // ROO-02
		{path: "link-dead", fault: "leads nowhere"},
		{path: filepath.Join(outside, "x"), outside: true},          // ROO-03
		{path: "~/x", rel: "~/x"},                                   // ROO-04: names, not expanded
		{path: "%2e%2e/x", rel: "%2e%2e/x"},                         // ROO-04
		{path: "$HOME", rel: "$HOME"},                               // ROO-04
		{path: "a\nb", rel: "a\nb"},                                 // ROO-04
		{path: "a\x00b", fault: "NUL"},                              // ROO-04
		{path: strings.Repeat("a", 5000), fault: "path of 5000"},    // ROO-04
		{path: strings.Repeat("a", 300), fault: "name too long"},    // ROO-04
		{path: "in.txt/x", fault: "not a directory", rel: "in.txt"}, // a file is no folder
	} {
		p, err := w.locate(tc.path)
		if tc.fault != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("locate(%.40q) = %+v, %v, want a fault with %q", tc.path, p, err, tc.fault)
			}
			continue
		}
		if err != nil || p.Outside != tc.outside || (!tc.outside && p.Rel != tc.rel) {
			t.Errorf("locate(%q) = %+v, %v, want rel %q, outside %v", tc.path, p, err, tc.rel, tc.outside)
		}
		if (p.check(false) != nil) != tc.outside || p.check(true) != nil {
			t.Errorf("locate(%q): check lets through what it must not, or the reverse", tc.path)
		}
	}
}

// A link that is put in place after the path was judged does not lead out (ROO-02): the open goes through the root.
func TestROO02LinkSwapped(t *testing.T) {
	w, outside := workspaceDirs(t)
	p, err := w.locate("sub/deep.go")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(w.root, "sub")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "deep.go"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(w.root, "sub")); err != nil {
		t.Fatal(err)
	}
	if f, _, err := openFile(p, false); err == nil {
		f.Close()
		t.Error("opened a file outside the root")
	}
}

func TestROO05OpenWorkspace(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{filepath.Join(dir, "missing"): "no such file", file: "not a folder"} {
		if _, err := openWorkspace(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("openWorkspace(%q): %v, want %q", path, err, want)
		}
	}
	link := filepath.Join(dir, "l")
	if err := os.Symlink(dir, link); err != nil {
		skipMissing(t, "%v", err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if w, err := openWorkspace(link); err != nil || w.root != real {
		t.Errorf("openWorkspace(link) = %q, %v, want %q", w.root, err, real)
	}
}
