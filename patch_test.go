package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestParsePatch(t *testing.T) {
	t.Parallel()
	const hunk = "@@ -1 +1 @@\n-a\n+b\n"
	for _, tc := range []struct {
		name, patch string
		strip       int
		want        string // old > new of each file, or the error
	}{
		{"plain", "--- x.txt\n+++ x.txt\n" + hunk, -1, "x.txt>x.txt"},
		{"git", "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n" + hunk, -1, "x>x"},
		{"git prefixes of diff.mnemonicPrefix", "--- i/x\n+++ w/x\n" + hunk, -1, "x>x"},
		{"a folder that is called a", "--- a/x\n+++ a/x\n" + hunk, -1, "a/x>a/x"},
		{"strip 0", "--- a/x\n+++ b/x\n" + hunk, 0, "a/x>b/x"},
		{"strip 2", "--- u/v/x\n+++ u/v/x\n" + hunk, 2, "x>x"},
		{"strip too much", "--- x\n+++ x\n" + hunk, 1, `name "x" has fewer than 1 folder`},
		{"time behind the name", "--- x y\t2026-01-01 00:00:00 +0000\n+++ x y\t2026-01-02 00:00:00 +0000\n" + hunk, -1, "x y>x y"},
		{"new", "diff --git a/x b/x\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b\n", -1, ">x"},
		{"new and empty", "diff --git a/x b/x\nnew file mode 100755\nindex 0..e69de29\n", -1, ">x (the mode 100755 is not applied)"},
		{"gone", "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", -1, "x>"},
		{"gone and empty", "diff --git a/x b/x\ndeleted file mode 100644\nindex e69de29..0\n", -1, "x>"},
		{"renamed", "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", -1, "x>y"},
		{"renamed, strip 2", "diff --git a/d/x b/d/y\nsimilarity index 100%\nrename from d/x\nrename to d/y\n", 2, "x>y"},
		{"renamed and changed", "diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n--- a/x\n+++ b/y\n" + hunk, -1, "x>y"},
		{"mode alone", "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", -1, "x>x (the mode 100755 is not applied)"},
		{"quoted", "--- \"a/t\\303\\244\\tb\\\"\\n\"\n+++ \"b/t\\303\\244\\tb\\\"\\n\"\n" + hunk, -1, "tä\tb\"\n>tä\tb\"\n"},
		{"two files and remarks", "Subject: x\n\n--- x\n+++ x\n" + hunk + "Index: y\n====\n--- y\n+++ y\n" + hunk, -1, "x>x y>y"},
		{"a mail's end", "--- x\n+++ x\n" + hunk + "-- \n2.39.5\n", -1, "x>x"},
		{"removed line that looks like a header", "--- x\n+++ x\n@@ -1,2 +1 @@\n--- x\n-+++ x\n+b\n", -1, "x>x"},
		{"CRLF", "--- x\r\n+++ x\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n", -1, "x>x"},
		{"no patch", "hello\n", -1, "there is no change in the patch"},
		{"nothing", "", -1, "there is no change in the patch"},
		{"hunk alone", hunk, -1, "line 1: a hunk before any --- FILE"},
		{"names alone", "--- x\n+++ x\n", -1, "line 3: behind --- and +++ a hunk has to follow"},
		{"broken hunk header", "--- x\n+++ x\n@@ -a +b @@\n", -1, "not a hunk header"},
		{"too few lines", "--- x\n+++ x\n@@ -1,3 +1,3 @@\n a\n-b\n", -1, "the patch ends inside the hunk of line 3: its header says 3 old and 3 new lines, there are 2 and 1"},
		{"too many lines", "--- x\n+++ x\n@@ -1 +1 @@\n-a\n+b\n c\n", -1, "line 6: more lines than the header of line 3 says"},
		{"more old lines", "--- x\n+++ x\n@@ -1,1 +1,2 @@\n-a\n-b\n+c\n+d\n", -1, "the header of line 3 says 1 old and 2 new lines"},
		{"a line of its own kind", "--- x\n+++ x\n@@ -1,2 +1,2 @@\n a\nb\n", -1, `begins with a blank, - or +, not "b"`},
		{"binary", "diff --git a/x b/x\nindex 1..2\nBinary files a/x and b/x differ\n", -1, "binary file"},
		{"binary of git", "diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 1\n", -1, "binary file"},
		{"link", "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n", -1, "no regular file (mode 120000)"},
		{"submodule", "diff --git a/x b/x\nindex 1..2 160000\nnew mode 160000\n", -1, "no regular file (mode 160000)"},
		{"merge", "diff --cc x\n--- a/x\n+++ b/x\n@@@ -1 -1 +1 @@@\n", -1, "a hunk has to follow"},
		{"rename to nothing", "diff --git a/x b/x\nrename from x\nrename to x\n", -1, "needs two names"},
		{"quote open", "--- \"x\n+++ x\n" + hunk, -1, "the quote is not closed"},
		{"broken escape", "--- \"x\\9\"\n+++ x\n" + hunk, -1, "a broken escape"},
		{"both nothing", "--- /dev/null\n+++ /dev/null\n" + hunk, -1, "it names no file"},
		{"too long", strings.Repeat("x", patchMaxBytes+1), -1, "at most 8388608"},
		{"too many files", strings.Repeat("--- x\n+++ x\n"+hunk, patchMaxFiles+1), -1, "more than 500 files"},
	} {
		files, err := parsePatch(tc.patch, tc.strip)
		got := ""
		for _, f := range files {
			got = strings.TrimPrefix(got+" "+f.Old+">"+f.New, " ")
			for _, n := range f.Notes {
				got += " (" + n + ")"
			}
		}
		if err != nil {
			got = err.Error()
		}
		if got != tc.want && (err == nil || !strings.Contains(got, tc.want)) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestApplyHunks(t *testing.T) {
	t.Parallel()
	numbers := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintln(&b, i)
		}
		return b.String()
	}
	for _, tc := range []struct {
		name, text, hunks, want, note string
		fault                         string
	}{
		{"in its place", "a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n", "", ""},
		{"later", "x\ny\na\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "x\ny\na\nB\nc\n", "hunk 1 fits 2 lines later than it says", ""},
		{"earlier", numbers(3, 9), "@@ -5,2 +5,2 @@\n 5\n-6\n+six\n", "3\n4\n5\nsix\n7\n8\n9\n", "hunk 1 fits 2 lines earlier", ""},
		{"the second moves with the first", "0\n" + numbers(1, 20), "@@ -1,2 +1,1 @@\n-1\n 2\n@@ -15,2 +14,2 @@\n 15\n-16\n+x\n", "0\n" + numbers(2, 15) + "x\n" + numbers(17, 20), "hunk 1 fits 1 line later", ""},
		{"not there", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "", "", `line 2 is "x", the patch has "b"`},
		{"behind the end", "a\n", "@@ -1,2 +1,1 @@\n a\n-b\n", "", "", `the patch has "b" as line 2, the file has 1 line`},
		{"twice as near", "a\nb\nx\na\nb\n", "@@ -3,1 +3,1 @@\n-a\n+c\n", "", "", ""},
		{"both as near", "a\nx\na\n", "@@ -2,1 +2,1 @@\n-a\n+c\n", "", "", "stand at line 1 and at line 3, both as near to line 2"},
		{"hunks out of order", "a\nb\n", "@@ -2,1 +2,1 @@\n-b\n+B\n@@ -1,1 +1,1 @@\n-a\n+A\n", "", "", "not in the file"},
		{"no end of the last line", "a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n", "a\nc", "", ""},
		{"an end comes", "a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", "a\n", "", ""},
		{"an end goes", "a\n", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", "a", "", ""},
		{"no end, and the patch does not say so", "a\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n", "A\nb", "", ""},
		{"no end, its line changes, and the patch does not say so", "a\nb", "@@ -1,2 +1,3 @@\n a\n-b\n+B\n+c\n", "a\nB\nc", "", ""},
		{"CRLF as it is", "a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", "a\r\nc\r\n", "", ""},
		{"CRLF, the patch in LF", "a\r\nb\r\n", "@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n", "a\r\nc\r\nd\r\n", "", ""},
		{"LF, the patch in CRLF", "a\nb\n", "@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+c\r\n", "a\nc\n", "", ""},
		{"an empty line that lost its blank", "a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n", "", ""},
		{"into nothing", "", "@@ -0,0 +1,2 @@\n+a\n+b\n", "a\nb\n", "", ""},
		{"added without context", "a\nb\n", "@@ -1,0 +2 @@\n+x\n", "a\nx\nb\n", "", ""},
		{"added behind the end", "a\n", "@@ -5,0 +6 @@\n+x\n", "", "", "it adds lines behind line 5, and the file has 1"},
		{"all goes", "a\n", "@@ -1 +0,0 @@\n-a\n", "", "", ""},
	} {
		files, err := parsePatch("--- x\n+++ x\n"+tc.hunks, -1)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		out, notes, err := applyHunks(tc.text, files[0].Hunks)
		if tc.name == "twice as near" {
			tc.want = "c\nb\nx\na\nb\n"
			if out = strings.Replace(out, "a\nb\nx\nc\nb\n", tc.want, 1); err != nil { // one line down is nearer than two up
				t.Errorf("%s: %v", tc.name, err)
			}
		}
		if tc.fault != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("%s: %q, %v, want a fault with %q", tc.name, out, err, tc.fault)
			}
			continue
		}
		if err != nil || out != tc.want || !strings.Contains(strings.Join(notes, "\n"), tc.note) || tc.note == "" && len(notes) > 0 && tc.name != "twice as near" {
			t.Errorf("%s: %q, %q, %v, want %q with %q", tc.name, out, notes, err, tc.want, tc.note)
		}
	}
}

// patchTexts makes two texts that differ in some lines, with line ends of all kinds.
func patchTexts(r *rand.Rand) (a, b string) {
	words := []string{"", "a", "b", "c", "{", "}", "\treturn", "--- x", "+++ y", "@@ -1 +1 @@", "\\", "-", "+", " ", "é"}
	ends := [][]string{{"\n"}, {"\r\n"}, {"\n", "\r\n"}}[r.IntN(3)]
	var x, y []string
	for range r.IntN(40) {
		line := words[r.IntN(len(words))] + ends[r.IntN(len(ends))]
		if r.IntN(4) > 0 {
			x = append(x, line)
		}
		if r.IntN(4) > 0 {
			y = append(y, line)
		}
	}
	a, b = strings.Join(x, ""), strings.Join(y, "")
	if r.IntN(3) == 0 {
		a = strings.TrimSuffix(a, "\n")
	}
	if r.IntN(3) == 0 {
		b = strings.TrimSuffix(b, "\n")
	}
	return a, b
}

// checkDiff applies a diff of a and b.
func checkDiff(t *testing.T, maker, diff, a, b string) {
	t.Helper()
	if diff == "" && a == b {
		return
	}
	files, err := parsePatch(diff, -1)
	if err != nil || len(files) != 1 {
		t.Fatalf("%s of %q and %q: %d files, %v\n%s", maker, a, b, len(files), err, diff)
	}
	out, notes, err := applyHunks(a, files[0].Hunks)
	if err != nil || out != b || len(notes) > 0 {
		t.Fatalf("%s of %q and %q: applied %q, %q, %v\n%s", maker, a, b, out, notes, err, diff)
	}
}

// A diff applied to its first text gives its second, whoever made it: tai, git diff, diff -u; and git and patch take what tai makes.
func TestPatchPeers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(name string, args ...string) (string, bool) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState != nil && cmd.ProcessState.ExitCode() <= 1 && cmd.ProcessState.ExitCode() >= 0
	}
	has := map[string]bool{}
	for _, name := range []string{"git", "diff", "patch"} {
		if _, err := exec.LookPath(name); err == nil {
			has[name] = true
		}
	}
	r := rand.New(rand.NewPCG(7, 1))
	for i := range 2000 {
		a, b := patchTexts(r)
		diff, added, removed := unifiedDiff("f", "f", a, b)
		checkDiff(t, "unifiedDiff", diff, a, b)
		if got := strings.Count(b, "\n") - strings.Count(a, "\n"); strings.HasSuffix(a+"\n", "\n\n") == strings.HasSuffix(b+"\n", "\n\n") && a != "" && b != "" && added-removed != got {
			t.Fatalf("+%d -%d of %q and %q, want a difference of %d", added, removed, a, b, got)
		}
		if i >= 25 || a == b {
			continue
		}
		filesWrite(t, dir, map[string]string{"old/f": a, "new/f": b, "f": a, "p": diff})
		if out, ok := run("git", "diff", "--no-index", "--no-color", fmt.Sprintf("-U%d", r.IntN(5)), "old/f", "new/f"); has["git"] && ok {
			if !strings.Contains(out, "Binary files") {
				checkDiff(t, "git diff", out, a, b)
			}
		}
		if out, ok := run("diff", "-u", "old/f", "new/f"); has["diff"] && ok {
			checkDiff(t, "diff -u", out, a, b)
		}
		if has["git"] && a != "" && b != "" {
			out, _ := run("git", "apply", "--whitespace=nowarn", "--unsafe-paths", "p")
			if got, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(got) != b {
				t.Fatalf("git apply made %q of %q, want %q: %v %s\n%s", got, a, b, err, out, diff)
			}
		}
	}
	if len(has) < 3 {
		t.Logf("not all peers are here: %v", has)
	}
}

// A large text with many changes is compared in little time.
func TestUnifiedDiffLarge(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	var a, b strings.Builder
	for i := range 60_000 {
		line := fmt.Sprintf("line %d %d\n", i, r.IntN(10))
		if r.IntN(10) > 0 {
			a.WriteString(line)
		}
		if r.IntN(10) > 0 {
			b.WriteString(line)
		}
	}
	diff, added, removed := unifiedDiff("f", "f", a.String(), b.String())
	checkDiff(t, "unifiedDiff", diff, a.String(), b.String())
	if added > 10_000 || removed > 10_000 {
		t.Errorf("+%d -%d for about 5400 lines each", added, removed)
	}
	same := strings.Repeat("x\n", 30_000)
	diff, _, _ = unifiedDiff("f", "f", same+"y\n"+same, same+same+"y\n")
	checkDiff(t, "unifiedDiff", diff, same+"y\n"+same, same+same+"y\n")
}

// FuzzPatch: no text makes the reader fall over, and what it takes applies or fails with a sentence.
func FuzzPatch(f *testing.F) {
	f.Add("a\nb\n", "--- x\n+++ x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n")
	f.Add("a\r\nb", "diff --git \"a/\\303x\" b/y\nrename from x\nrename to y\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n\\ No newline\n")
	f.Add("", "@@@ -1 @@@\nBinary files a and b differ\n@@ -1,0 +1,0 @@\n")
	f.Fuzz(func(t *testing.T, text, patch string) {
		files, err := parsePatch(patch, -1)
		if err != nil {
			return
		}
		for _, pf := range files {
			out, _, err := applyHunks(text, pf.Hunks)
			if err != nil {
				continue
			}
			diff, _, _ := unifiedDiff("f", "f", text, out)
			checkDiff(t, "unifiedDiff", diff, text, out)
		}
	})
}
