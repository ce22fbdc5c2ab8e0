// This file reads unified diffs: those of git with its extra headers, and those of diff -u. It finds out what each part wants, and neither opens a file nor
// applies anything. A patch that does not say exactly what it means is refused with the line where it goes wrong.
package main

import (
	"regexp"
	"strconv"
	"strings"
)

const (
	patchMaxBytes = 8 << 20 // bytes of one patch
	patchMaxFiles = 500     // files in one patch
)

// patchHunk is one stretch of changed lines. OldStart counts from 1, and is the line before where OldLines is 0.
type patchHunk struct {
	OldStart, OldLines, NewStart, NewLines int
	Line                                   int // of the patch
	Lines                                  []patchLine
}

// patchLine is one line with its end: Op is ' ', '-' or '+'.
type patchLine struct {
	Op   byte
	Text string
}

// patchFile is what a patch wants of one file. Old and New are names as they are to be used, "" for a side that is not there.
type patchFile struct {
	Old, New             string
	Line                 int // of the patch
	Rename, Copy         bool
	OldEpoch, NewEpoch   bool // the time of that side is 1970, which is how diff -N marks a file that is not there
	Notes                []string
	Hunks                []patchHunk
	git, create, deleted bool
	oldRaw, newRaw       string
	renamed              [2]string // names of rename and copy lines
}

type patchReader struct {
	lines []string
	at    int
	strip int // leading folders to take off names; -1 where that is to be found out
	files []patchFile
}

// parsePatch reads a whole patch. strip is how many leading folders to take off the names; -1 takes off the a/ and b/ of git, and nothing else.
func parsePatch(text string, strip int) ([]patchFile, error) {
	if len(text) > patchMaxBytes {
		return nil, errorf("the patch has %d bytes, at most %d", len(text), patchMaxBytes)
	}
	r := patchReader{lines: splitLines(text), strip: strip}
	for r.at < len(r.lines) {
		if err := r.next(); err != nil {
			return nil, errorf("patch line %d: %w", r.at+1, err)
		}
		if len(r.files) > patchMaxFiles {
			return nil, errorf("the patch changes more than %d files", patchMaxFiles)
		}
	}
	if len(r.files) == 0 {
		return nil, newError("there is no change in the patch: it needs lines --- FILE, +++ FILE and @@ -1,2 +1,2 @@")
	}
	for i := range r.files {
		if err := r.files[i].settle(strip); err != nil {
			return nil, errorf("patch line %d: %w", r.files[i].Line, err)
		}
	}
	return r.files, nil
}

// line gives the line at n without its end, "" behind the last.
//
//go:noinline for size: it is called in many places
func (r *patchReader) line(n int) string {
	if n >= len(r.lines) {
		return ""
	}
	return strings.TrimRight(r.lines[n], "\r\n")
}

// next reads one line outside of hunks, or a whole hunk. What is no header is a remark, as in a mail.
func (r *patchReader) next() error {
	line := r.line(r.at)
	switch {
	case strings.HasPrefix(line, "diff --git "):
		r.files = append(r.files, patchFile{Line: r.at + 1, git: true})
		return r.gitHeader(strings.TrimPrefix(line, "diff --git "))
	case strings.HasPrefix(line, "--- ") && strings.HasPrefix(r.line(r.at+1), "+++ "):
		return r.names()
	case strings.HasPrefix(line, "@@ "):
		return r.hunk()
	case strings.HasPrefix(line, "GIT binary patch"), strings.HasPrefix(line, "Binary files ") && strings.HasSuffix(line, " differ"):
		return newError("it changes a binary file, which cannot be patched as text")
	case strings.HasPrefix(line, "@@@ "):
		return newError("it is the combined diff of a merge, which cannot be applied")
	}
	r.at++
	return nil
}

// gitHeader reads the extra header lines behind "diff --git" (git-diff(1), Generating patch text with -p).
func (r *patchReader) gitHeader(names string) error {
	f := &r.files[len(r.files)-1]
	f.oldRaw, f.newRaw = gitNames(names)
	for r.at++; r.at < len(r.lines); r.at++ {
		line := r.line(r.at)
		key, value := line, ""
		for _, k := range []string{"old mode ", "new mode ", "new file mode ", "deleted file mode ", "similarity index ", "dissimilarity index ", "index ",
			"rename from ", "rename to ", "copy from ", "copy to "} {
			if v, ok := strings.CutPrefix(line, k); ok {
				key, value = k, v
			}
		}
		mode := strings.HasSuffix(key, "mode ")
		if kind := value[:min(3, len(value))]; mode && kind != "100" {
			return errorf("it is about no regular file (mode %s)", clip(visibleLine(value), 20))
		}
		name, err := patchName(value)
		switch {
		case err != nil:
			return err
		case key == "new mode ":
			f.Notes = append(f.Notes, "the mode "+clip(visibleLine(value), 20)+" is not applied")
		case key == "new file mode ":
			f.create = true
			if value != "100644" {
				f.Notes = append(f.Notes, "the mode "+clip(visibleLine(value), 20)+" is not applied")
			}
		case key == "deleted file mode ":
			f.deleted = true
		case key == "rename from ", key == "copy from ":
			f.renamed[0], f.Rename, f.Copy = name, key == "rename from ", key == "copy from "
		case key == "rename to ", key == "copy to ":
			f.renamed[1] = name
		case value == "":
			return nil
		}
	}
	return nil
}

// gitNames takes the two names of a "diff --git" line apart. Without quotes that is only possible where they are the same but for their first folder, and
// only then are they needed.
func gitNames(s string) (string, string) {
	if strings.HasPrefix(s, `"`) {
		if end := strings.Index(s[1:], `" `); end >= 0 {
			return s[:end+2], s[end+3:]
		}
	}
	for i := range len(s) {
		if s[i] != ' ' {
			continue
		}
		a, b := s[:i], s[i+1:]
		_, x, _ := strings.Cut(a, "/")
		_, y, _ := strings.Cut(b, "/")
		if a == b || x == y && x != "" {
			return a, b
		}
	}
	return "", ""
}

// names reads the two lines --- and +++. Behind a git header they belong to its file.
func (r *patchReader) names() error {
	n := len(r.files) - 1
	if n < 0 || !r.files[n].git || len(r.files[n].Hunks) > 0 {
		r.files = append(r.files, patchFile{Line: r.at + 1})
		n++
	}
	f := &r.files[n]
	for i, raw := range []*string{&f.oldRaw, &f.newRaw} {
		name, stamp, _ := strings.Cut(r.line(r.at)[len("--- "):], "\t")
		*raw = name
		epoch := strings.HasPrefix(stamp, "1970-01-01 ") || strings.HasPrefix(stamp, "1969-12-31 ")
		if i == 0 {
			f.OldEpoch = epoch
		} else {
			f.NewEpoch = epoch
		}
		r.at++
	}
	if !strings.HasPrefix(r.line(r.at), "@@ ") {
		return newError("behind --- and +++ a hunk has to follow: @@ -1,2 +1,2 @@")
	}
	return nil
}

// hunk reads a hunk by the counts of its header, so that no line of a file can be taken for a header.
func (r *patchReader) hunk() error {
	if len(r.files) == 0 {
		return newError("a hunk before any --- FILE and +++ FILE")
	}
	f := &r.files[len(r.files)-1]
	if f.oldRaw == "" && f.newRaw == "" {
		return newError("a hunk, and no --- FILE and +++ FILE before it")
	}
	m := regexp.MustCompile(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@`).FindStringSubmatch(r.line(r.at))
	if m == nil {
		return errorf("not a hunk header: %s; it reads @@ -LINE,COUNT +LINE,COUNT @@", quoteClip(r.line(r.at)))
	}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil { // left out
			return 1
		}
		return n
	}
	h := patchHunk{OldStart: number(m[1]), OldLines: number(m[2]), NewStart: number(m[3]), NewLines: number(m[4]), Line: r.at + 1}
	start, olds, news := r.at, 0, 0
	for r.at++; olds < h.OldLines || news < h.NewLines; r.at++ {
		if r.at >= len(r.lines) {
			return errorf("the patch ends inside the hunk of line %d: its header says %d old and %d new lines, there are %d and %d", start+1, h.OldLines, h.NewLines, olds, news)
		}
		l := patchLine{' ', r.lines[r.at]}
		if strings.Trim(l.Text, "\r\n") != "" { // an empty line is an empty line of the file whose blank was lost on the way
			l.Op, l.Text = l.Text[0], l.Text[1:]
		}
		switch {
		case l.Op == '\\':
			h.cutEnd()
			continue
		case l.Op != ' ' && l.Op != '-' && l.Op != '+':
			return errorf("a line of a hunk begins with a blank, - or +, not %s; the header of line %d says %d old and %d new lines, so far there are %d and %d",
				quoteClip(string(l.Op)), start+1, h.OldLines, h.NewLines, olds, news)
		}
		olds, news = olds+btoi(l.Op != '+'), news+btoi(l.Op != '-')
		h.Lines = append(h.Lines, l)
	}
	if olds != h.OldLines || news != h.NewLines {
		r.at--
		return errorf("the header of line %d says %d old and %d new lines, the hunk has %d and %d or more", start+1, h.OldLines, h.NewLines, olds, news)
	}
	if strings.HasPrefix(r.line(r.at), `\`) {
		h.cutEnd()
		r.at++
	}
	if c := r.line(r.at); c != "" && c != "--" && c != "-- " && strings.ContainsRune(" +-", rune(c[0])) && !strings.HasPrefix(c, "--- ") {
		return errorf("more lines than the header of line %d says: %d old and %d new", start+1, h.OldLines, h.NewLines)
	}
	f.Hunks = append(f.Hunks, h)
	return nil
}

// cutEnd takes the line end off the last line, as "\ No newline at end of file" says.
func (h *patchHunk) cutEnd() {
	if n := len(h.Lines) - 1; n >= 0 {
		h.Lines[n].Text = strings.TrimSuffix(h.Lines[n].Text, "\n")
	}
}

// patchName reads a name that may be quoted as git quotes names with odd characters.
func patchName(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	inner, ok := strings.CutSuffix(strings.TrimRight(s, "\t")[1:], `"`)
	if !ok {
		return "", errorf("name %s: the quote is not closed", quoteClip(s))
	}
	var b textBuilder
	for i := 0; i < len(inner); i++ {
		if inner[i] != '\\' {
			b.WriteByte(inner[i])
			continue
		}
		i++
		if i < len(inner) {
			if j := strings.IndexByte(`abfnrtv\"`, inner[i]); j >= 0 {
				b.WriteByte("\a\b\f\n\r\t\v\\\""[j])
				continue
			}
		}
		if i+3 > len(inner) {
			return "", errorf("name %s: a broken escape", quoteClip(s))
		}
		n, err := strconv.ParseUint(inner[i:i+3], 8, 8)
		if err != nil {
			return "", errorf("name %s: a broken escape", quoteClip(s))
		}
		b.WriteByte(byte(n))
		i += 2
	}
	return b.String(), nil
}

// settle turns the names as written into those to be used.
func (f *patchFile) settle(strip int) error {
	old, err := patchName(f.oldRaw)
	if err != nil {
		return err
	}
	now, err := patchName(f.newRaw)
	if err != nil {
		return err
	}
	auto := strip < 0
	if auto {
		strip = btoi(gitPrefixed(old) && gitPrefixed(now) && (old == "/dev/null" || now == "/dev/null" || old[:2] != now[:2]))
	}
	for i, side := range []struct {
		name string
		to   *string
		gone bool
	}{{old, &f.Old, f.create}, {now, &f.New, f.deleted}} {
		name := side.name
		if name == "/dev/null" || side.gone {
			continue
		}
		n := strip
		if f.renamed[i] != "" {
			if name, n = f.renamed[i], strip-1; auto { // these never have the a/ or b/
				n = 0
			}
		}
		if *side.to, err = stripName(name, max(n, 0)); err != nil {
			return err
		}
	}
	switch {
	case f.Old == "" && f.New == "":
		return newError("it names no file")
	case (f.Rename || f.Copy) && (f.Old == "" || f.New == "" || f.Old == f.New):
		return newError("a rename or copy needs two names")
	case len(f.Hunks) == 0 && !f.Rename && !f.Copy && !f.create && !f.deleted && len(f.Notes) == 0:
		return newError("no change follows this header")
	}
	return nil
}

// gitPrefixed reports one of the folders that git puts before names (git-config(1), diff.mnemonicPrefix), or a side that is not there.
func gitPrefixed(name string) bool {
	return name == "/dev/null" || len(name) > 2 && name[1] == '/' && strings.IndexByte("abciow", name[0]) >= 0
}

func stripName(name string, n int) (string, error) {
	rest := name
	for range n {
		_, after, ok := strings.Cut(rest, "/")
		if !ok || after == "" {
			return "", errorf("name %s has fewer than %s to strip", quoteClip(name), plural(n, "folder"))
		}
		rest = strings.TrimLeft(after, "/")
	}
	if rest == "" {
		return "", newError("an empty name")
	}
	return rest, nil
}
