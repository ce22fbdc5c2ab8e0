// This file writes Markdown or plain text line by line: blank lines between blocks, the marks of lists and quotes before each line, emphasis that holds to its
// words. It knows no HTML. Text is not escaped: what is written is for reading, and stays what it was.
package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

const (
	htmlMaxNest  = 12       // lists and quotes that put marks before a line; those further in add none
	htmlOutBase  = 64 << 10 // bytes of output beyond htmlOutGrow times the input, after which no more is written
	htmlOutGrow  = 3
	htmlLinkText = 1000 // bytes of text of one link, after which the next block ends it: it was never closed
)

// The emphasis of a text.
const (
	htmlBold = iota
	htmlItalic
	htmlStrike
	htmlStyles
)

// htmlNest is something that puts a mark before its lines: first before the first one, rest before the others.
type htmlNest struct {
	name        string
	first, rest string
	marked      bool // it has a mark
	used        bool // the first line was written
	count       int  // of an ordered list: the number of the next item; -1 for a list without numbers
	items       int  // of a list
}

// htmlWriter writes one text. plain leaves out the marks of Markdown.
type htmlWriter struct {
	plain bool
	limit int
	out   *strings.Builder
	spent int // bytes in finished outputs
	full  bool

	nests  []htmlNest
	counts map[string]int // open nests by name
	marked int            // of them, those with a mark

	need  int  // line ends before the next text
	blank bool // a blank before it
	fresh bool // nothing was written yet
	flat  int  // within a table cell: no line ends
	head  int  // bytes of the heading that is open
	want  [htmlStyles]int
	open  []int // styles whose opening mark is written
	link  *htmlLink
}

// htmlLink is the link that text is written into.
type htmlLink struct {
	url   string
	depth int // nests when it began
	begun bool
	size  int
}

func newHTMLWriter(plain bool, input int) *htmlWriter {
	return &htmlWriter{plain: plain, limit: htmlOutGrow*input + htmlOutBase, out: &strings.Builder{}, counts: map[string]int{}, fresh: true}
}

// block asks for lines ends before the next text: 1 for a new line, 2 for a blank line between. In a link or a cell, which stay on one line, it is a blank.
func (w *htmlWriter) block(need int) {
	if l := w.link; l != nil && (l.size > htmlLinkText || len(w.nests) < l.depth) {
		w.endLink()
	}
	if w.head > htmlLinkText {
		w.leave("h")
	}
	if w.flat > 0 || w.link != nil || w.counts["h"] > 0 {
		w.blank = true
		return
	}
	w.closeStyles(nil)
	if n := len(w.nests); n > 0 && w.nests[n-1].marked && !w.nests[n-1].used {
		need = min(need, 1) // the first text of an item stands behind its mark
	}
	w.need, w.blank = max(w.need, need), false
}

// enter begins a nest.
func (w *htmlWriter) enter(n htmlNest) {
	if n.first != "" && w.marked < htmlMaxNest && w.flat == 0 {
		n.marked = true
		w.marked++
	}
	w.nests = append(w.nests, n)
	w.counts[n.name]++
	w.head = 0
}

// leave ends the innermost nest of that name and all within it.
//
//go:noinline for size: it is called in many places
func (w *htmlWriter) leave(name string) {
	if w.counts[name] == 0 {
		return
	}
	for w.pop() != name {
	}
}

// pop ends the innermost nest and gives its name.
func (w *htmlWriter) pop() string {
	n := w.nests[len(w.nests)-1]
	w.nests = w.nests[:len(w.nests)-1]
	w.counts[n.name]--
	w.head = 0
	if n.marked {
		w.marked--
	}
	return n.name
}

// prefix writes the marks before a line. On a line without text marks that were used lose their blanks at the end.
func (w *htmlWriter) prefix(text bool) {
	var line strings.Builder
	left := w.marked
	for i := 0; i < len(w.nests) && left > 0; i++ {
		n := &w.nests[i]
		if !n.marked {
			continue
		}
		left--
		switch {
		case n.used:
			line.WriteString(n.rest)
		case text:
			line.WriteString(n.first)
			n.used = true
		}
	}
	s := line.String()
	if !text {
		s = strings.TrimRight(s, " ")
	}
	w.out.WriteString(s)
}

// start writes what stands between the text before and the one that comes now.
func (w *htmlWriter) start() {
	switch {
	case w.flat > 0:
		if w.blank && w.out.Len() > 0 {
			w.out.WriteByte(' ')
		}
	case w.fresh:
		w.prefix(true)
		w.fresh = false
	case w.need > 0:
		w.out.WriteByte('\n')
		for range w.need - 1 {
			w.prefix(false)
			w.out.WriteByte('\n')
		}
		w.prefix(true)
	case w.blank:
		w.out.WriteByte(' ')
	}
	w.need, w.blank = 0, false
	if w.spent+w.out.Len() > w.limit {
		w.full = true
	}
}

// word writes a piece of text that holds no blank at its ends.
func (w *htmlWriter) word(s string) {
	if s == "" || w.full {
		return
	}
	if !w.plain {
		w.closeStyles(&w.want)
	}
	w.start()
	if l := w.link; l != nil {
		if !l.begun && !w.plain {
			w.out.WriteByte('[')
		}
		l.begun = true
		l.size += len(s)
		if !w.plain {
			s = strings.ReplaceAll(s, "]", `\]`)
		}
	}
	if !w.plain && w.flat > 0 {
		s = strings.ReplaceAll(s, "|", `\|`)
	}
	if w.counts["h"] > 0 {
		w.head += len(s)
	} else if !w.plain {
		w.openStyles()
	}
	w.out.WriteString(s)
}

func htmlStyleMark(style int) string {
	return [...]string{htmlBold: "**", htmlItalic: "*", htmlStrike: "~~"}[style]
}

// closeStyles ends the open styles that are not wanted, and with them those that were opened after; nil ends all.
func (w *htmlWriter) closeStyles(want *[htmlStyles]int) {
	keep := 0
	for want != nil && keep < len(w.open) && want[w.open[keep]] > 0 {
		keep++
	}
	for len(w.open) > keep {
		last := len(w.open) - 1
		w.out.WriteString(htmlStyleMark(w.open[last]))
		w.open = w.open[:last]
	}
}

func (w *htmlWriter) openStyles() {
	for style, n := range w.want {
		if n > 0 && !slices.Contains(w.open, style) {
			w.out.WriteString(htmlStyleMark(style))
			w.open = append(w.open, style)
		}
	}
}

// text writes a text whose runs of white space count as one blank. Characters that show nothing are left out, but those that join letters.
func (w *htmlWriter) text(s string) {
	for len(s) > 0 && !w.full {
		i := 0
		for i < len(s) && !htmlBlank(s[i]) {
			i++
		}
		w.word(htmlClean(s[:i]))
		j := i
		for j < len(s) && htmlBlank(s[j]) {
			j++
		}
		if j > i {
			w.blank = true
		}
		s = s[j:]
	}
}

func htmlBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' && c != '\v' }

// htmlClean takes out what would not show; a no-break space becomes a plain one.
func htmlClean(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 0x80 || c < ' ' || c == 0x7f {
			return strings.Map(htmlCleanRune, s)
		}
	}
	return s
}

func htmlCleanRune(r rune) rune {
	switch {
	case r == 0xa0:
		return ' '
	case r == 0x200c, r == 0x200d: // they decide the shape of letters, and of emoji
		return r
	case unicode.Is(unicode.Zs, r):
		return ' '
	case r != '\n' && r != '\t' && unicode.IsControl(r), hiddenRune(r):
		return -1
	}
	return r
}

// startLink begins a link; one that is open ends, as links do not nest.
func (w *htmlWriter) startLink(url string) {
	w.endLink()
	w.closeStyles(&w.want)
	w.link = &htmlLink{url: url, depth: len(w.nests)}
}

func (w *htmlWriter) endLink() {
	l := w.link
	w.link = nil
	if l == nil || !l.begun || w.plain {
		return
	}
	w.closeStyles(nil)
	if l.url == "" {
		w.out.WriteByte(']')
		return
	}
	w.out.WriteString("](" + htmlAddress(l.url) + ")")
}

// htmlAddress is an address as it stands in the brackets of a link.
func htmlAddress(url string) string {
	if strings.ContainsAny(url, "()<> ") {
		return "<" + strings.NewReplacer("<", "%3C", ">", "%3E", " ", "%20").Replace(url) + ">"
	}
	return url
}

// code writes a short piece of code in as many back quotes as it needs (CommonMark 6.1).
func (w *htmlWriter) code(s string) {
	blank := s != "" && htmlBlank(s[0])
	after := s != "" && htmlBlank(s[len(s)-1])
	s = htmlClean(strings.Join(strings.Fields(s), " "))
	w.blank = w.blank || blank
	if s != "" && !w.plain {
		fence := strings.Repeat("`", htmlTicks(s, 0)+1)
		if s[0] == '`' || s[len(s)-1] == '`' {
			s = " " + s + " "
		}
		s = fence + s + fence
	}
	w.word(s)
	w.blank = w.blank || after
}

// htmlTicks is the longest run of back quotes in s of at least min.
func htmlTicks(s string, min int) int {
	best, run := min, 0
	for i := range len(s) {
		if run++; s[i] != '`' {
			run = 0
		}
		best = max(best, run)
	}
	return best
}

// verbatim writes lines as they are, as a block of code in the language.
func (w *htmlWriter) verbatim(s, language string) {
	s = strings.Trim(htmlClean(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")), "\n")
	if strings.TrimSpace(s) == "" {
		return
	}
	if w.flat > 0 || w.counts["h"] > 0 || w.link != nil {
		w.code(s)
		return
	}
	w.block(2)
	fence := ""
	if !w.plain {
		fence = strings.Repeat("`", htmlTicks(s, 2)+1)
		s = fence + language + "\n" + s + "\n" + fence
	}
	for i, line := range strings.Split(s, "\n") {
		if w.full {
			break
		}
		if i > 0 {
			w.need = 1
		}
		if line == "" && i > 0 {
			w.out.WriteByte('\n')
			w.prefix(false)
			w.need = 0
			continue
		}
		w.start()
		w.out.WriteString(strings.TrimRight(line, " "))
	}
	w.need = 2
}

// rule writes a line across.
func (w *htmlWriter) rule() {
	w.block(2)
	if w.flat == 0 && w.link == nil && !w.plain {
		w.word("---")
	}
	w.block(2)
}

// capture sends what is written into a cell, on one line; the result ends that.
func (w *htmlWriter) capture() (end func() string) {
	outer, need, blank, depth, want := w.out, w.need, w.blank, len(w.nests), w.want
	w.endLink()
	w.closeStyles(nil)
	w.out, w.need, w.blank = &strings.Builder{}, 0, false
	w.flat++
	return func() string {
		w.endLink()
		w.closeStyles(nil)
		s := w.out.String()
		w.spent += w.out.Len()
		for len(w.nests) > depth {
			w.pop()
		}
		w.out, w.need, w.blank, w.want = outer, need, blank, want
		w.flat--
		return s
	}
}

// item begins an item of the innermost list.
func (w *htmlWriter) item(value int) {
	first := "- "
	for i := len(w.nests) - 1; i >= 0; i-- {
		n := &w.nests[i]
		if n.name != "ul" && n.name != "ol" {
			break
		}
		if n.items++; n.count >= 0 {
			if value >= 0 {
				n.count = value
			}
			first = fmt.Sprintf("%d. ", n.count)
			n.count++
		}
		if n.items > 1 && w.flat == 0 && w.link == nil {
			w.need = min(w.need, 1)
		}
		break
	}
	w.enter(htmlNest{name: "li", first: first, rest: strings.Repeat(" ", len(first)), count: -1})
}
