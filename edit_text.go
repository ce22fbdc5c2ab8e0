// This file changes texts as the editing tools ask: one text for another, and lines named by anchors. It keeps what a file has of its own (line ends, a byte
// order mark, no end of the last line), and says where the nearest thing stands when what was asked for is not there. Pure functions: it opens no file.
package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	editShown    = 10             // line numbers or lines that an error names at most
	editShowLine = 120            // bytes of a line that an error quotes
	editNearWork = 2_000_000      // bytes compared in looking for similar lines
	anchorDigits = 6              // hex digits of an anchor's hash, the first of SHA-256 over the line without its end
	editMaxLines = 2_000_000      // lines of a file that is edited
	utf8BOM      = "\xef\xbb\xbf" // the byte order mark that some editors put first
)

// usesCRLF reports whether most lines of a text end in CR LF.
func usesCRLF(s string) bool {
	return 2*strings.Count(s, "\r\n") > strings.Count(s, "\n")
}

func toCRLF(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// showLine quotes a line of a file for an error.
func showLine(s string) string {
	return strconv.Quote(clip(visibleLine(strings.TrimRight(s, "\r\n")), editShowLine))
}

// editableText refuses what cannot be edited as text. UTF-16 has NUL bytes.
func editableText(data []byte) error {
	if slices.Contains(data[:min(len(data), binarySniff)], 0) {
		return newError("is binary or UTF-16 and cannot be edited as text")
	}
	return nil
}

// replaceText puts now in the place of old, which must stand exactly once unless all is set. A text with line ends is also found where the file ends its
// lines in CR LF, and what comes new then does so too.
func replaceText(text, old, now string, all bool) (string, error) {
	crlf := usesCRLF(text)
	if crlf {
		if n := strings.Count(text, old); n == 0 || strings.Contains(old, "\n") && !strings.Contains(old, "\r\n") {
			old = toCRLF(old)
		}
		now = toCRLF(now)
	}
	if !utf8.ValidString(text) && strings.IndexFunc(now, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return "", newError("is not UTF-8, so that only ASCII can be put in")
	}
	switch n := strings.Count(text, old); {
	case old == now:
		return "", newError("old and new are the same")
	case n == 0:
		return "", newError("old is not in the file" + nearText(text, old))
	case n > 1 && !all:
		return "", errorf("old stands %d times in the file, %s; take more of the lines around it, or set all", n, placesOf(text, old))
	}
	return strings.ReplaceAll(text, old, now), nil
}

// placesOf names the lines where old begins.
func placesOf(text, old string) string {
	var at []string
	line, from := 1, 0
	for len(at) < editShown {
		i := strings.Index(text[from:], old)
		if i < 0 {
			return "at lines " + strings.Join(at, ", ")
		}
		line += strings.Count(text[from:from+i], "\n")
		at = append(at, strconv.Itoa(line))
		line += strings.Count(old, "\n")
		from += i + len(old)
	}
	return "at lines " + strings.Join(at, ", ") + " and further on"
}

// nearText says what in the text comes nearest to old, "" when nothing does.
func nearText(text, old string) string {
	lines, want := splitLines(text), splitLines(old)
	squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	first, key := 0, ""
	for i, l := range want { // the first line that holds something
		if key = squeeze(l); key != "" {
			first = i
			break
		}
	}
	if key == "" {
		return ""
	}
	var same []string
	best, bestLine, work := 0.0, -1, 0
	for i, l := range lines {
		s := squeeze(l)
		if s == key || len(want) == 1 && strings.Contains(s, key) {
			if len(same) < editShown {
				same = append(same, strconv.Itoa(max(1, i+1-first)))
			}
			continue
		}
		if work += len(s) + len(key); work < editNearWork && s != "" {
			if like := likeness(s, key); like > best {
				best, bestLine = like, i
			}
		}
	}
	switch {
	case len(same) > 0 && len(want) > 1:
		return fmt.Sprintf("; its first line stands at line %s, but what follows differs, or the white space does", strings.Join(same, ", "))
	case len(same) > 0:
		return fmt.Sprintf("; with other white space it stands at line %s", strings.Join(same, ", "))
	case bestLine >= 0 && best > 0.5:
		return fmt.Sprintf("; the nearest is line %d: %s", bestLine+1, showLine(lines[bestLine]))
	}
	return ""
}

// likeness is how many pairs of neighbouring bytes two lines share, from 0 to 1 (Dice's coefficient).
func likeness(a, b string) float64 {
	if len(a) < 2 || len(b) < 2 {
		return 0
	}
	pairs := make(map[[2]byte]int, len(a))
	for i := range len(a) - 1 {
		pairs[[2]byte{a[i], a[i+1]}]++
	}
	shared := 0
	for i := range len(b) - 1 {
		if p := [2]byte{b[i], b[i+1]}; pairs[p] > 0 {
			pairs[p]--
			shared++
		}
	}
	return 2 * float64(shared) / float64(len(a)+len(b)-2)
}

// lineHash is the hash of a line in its anchor. The line's end does not count.
func lineHash(line string) string {
	return sha256Hex([]byte(strings.TrimRight(line, "\r\n")))[:anchorDigits]
}

// anchoredEdit is one edit of file_edit_anchored.
type anchoredEdit struct {
	Op       string `json:"op"` // replace, insert_after, delete
	Anchor   string `json:"anchor"`
	ToAnchor string `json:"to_anchor"`
	Text     *string
}

// lineSpan is an edit by line numbers: lines from up to to (counted from 0, to not included) become text.
type lineSpan struct {
	from, to int
	text     []string
	edit     int // its number, from 1
}

// editAnchored makes all edits or none. All anchors are those of the text before any edit.
func editAnchored(text string, edits []anchoredEdit) (string, error) {
	body, bom := strings.CutPrefix(text, utf8BOM)
	lines := splitLines(body)
	if len(lines) > editMaxLines {
		return "", errorf("has %d lines, at most %d", len(lines), editMaxLines)
	}
	var spans []lineSpan
	var stale []string
	for i, e := range edits {
		s, faults, err := e.span(lines, i+1)
		if err != nil {
			return "", errorf("edit %d: %w", i+1, err)
		}
		if !utf8.ValidString(text) && strings.IndexFunc(strings.Join(s.text, ""), func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
			return "", newError("is not UTF-8, so that only ASCII can be put in")
		}
		spans, stale = append(spans, s), append(stale, faults...)
	}
	if len(stale) > 0 {
		more := ""
		if len(stale) > editShown {
			more = fmt.Sprintf("; and %d more", len(stale)-editShown)
			stale = stale[:editShown]
		}
		return "", errorf("nothing was changed, as the file is no longer what was read: %s%s", strings.Join(stale, "; "), more)
	}
	sortBy(spans, func(a, b lineSpan) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return a.to - b.to // an insertion at the edge of another edit comes first
	})
	end, crlf := "\n", usesCRLF(body)
	if crlf {
		end = "\r\n"
	}
	unended := len(lines) > 0 && !strings.HasSuffix(lines[len(lines)-1], "\n")
	if unended {
		lines[len(lines)-1] += end
	}
	var out []string
	at := 0
	for i, s := range spans {
		if i > 0 && s.from < spans[i-1].to {
			return "", errorf("edits %d and %d overlap at line %d", spans[i-1].edit, s.edit, s.from+1)
		}
		out = append(out, lines[at:s.from]...)
		for _, l := range s.text {
			out = append(out, l+end)
		}
		at = s.to
	}
	body = strings.Join(append(out, lines[at:]...), "")
	if unended {
		body = strings.TrimSuffix(body, end)
	}
	if bom {
		body = utf8BOM + body
	}
	return body, nil
}

// span finds the lines that the edit is about; faults tell of anchors whose line has changed.
func (e anchoredEdit) span(lines []string, number int) (s lineSpan, faults []string, err error) {
	first, fault, err := anchorLine(e.Anchor, lines)
	if err != nil {
		return s, nil, err
	}
	if fault != "" {
		faults = append(faults, fault)
	}
	last := first
	if e.ToAnchor != "" {
		if last, fault, err = anchorLine(e.ToAnchor, lines); err != nil {
			return s, nil, err
		}
		if fault != "" {
			faults = append(faults, fault)
		}
	}
	if e.Text != nil {
		text := strings.ReplaceAll(*e.Text, "\r\n", "\n")
		s.text = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	}
	s.from, s.to, s.edit = first-1, last, number
	switch {
	case e.Op == "delete" && e.Text != nil:
		return s, nil, newError("delete takes no text")
	case e.Op != "delete" && e.Text == nil:
		return s, nil, errorf("%s needs text", e.Op)
	case e.Op == "insert_after" && e.ToAnchor != "":
		return s, nil, newError("insert_after takes no to_anchor")
	case e.Op == "insert_after":
		s.from = first
	case first == 0:
		return s, nil, newError("anchor 0 is the place before the first line; only insert_after takes it")
	case last < first:
		return s, nil, errorf("to_anchor %s stands before anchor %s", quoteClip(e.ToAnchor), quoteClip(e.Anchor))
	}
	return s, faults, nil
}

// anchorLine gives the line number of an anchor, 0 for the place before the first line; fault says what is there now if it is not what it was.
func anchorLine(anchor string, lines []string) (n int, fault string, err error) {
	if anchor == "0" {
		return 0, "", nil
	}
	number, hash, ok := strings.Cut(anchor, "#")
	n, nerr := strconv.Atoi(number)
	if !ok || nerr != nil || n < 1 || len(hash) != anchorDigits {
		return 0, "", errorf("anchor %s is no LINE#HASH as file_read_hashed gives it", quoteClip(anchor))
	}
	if n > len(lines) {
		return n, fmt.Sprintf("%s: the file has %s now", anchor, plural(len(lines), "line")), nil
	}
	if now := lineHash(lines[n-1]); now != hash {
		moved := ""
		for i, l := range lines {
			if lineHash(l) == hash {
				moved = fmt.Sprintf(" (the line it meant is now %d#%s)", i+1, hash)
				break
			}
		}
		return n, fmt.Sprintf("%s: line %d is now %d#%s %s%s", visibleLine(anchor), n, n, now, showLine(lines[n-1]), moved), nil
	}
	return n, "", nil
}
