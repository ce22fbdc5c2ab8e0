// This file shows a text that is being edited: it lays it out in rows of a terminal, and writes only what differs from what is there. It
// assumes what ECMA-48 terminals share (relative cursor moves, erase, a last column that wraps with the next character) and knows no key.
package main

import (
	"bytes"
	"math"
	"strconv"
)

const (
	editMinColumns = 4   // a narrower screen is treated as one of these
	editPrintRows  = 500 // rows of a finished text that are written out; of a longer one the last screen stays
)

// cell is one cluster on the screen.
type cell struct {
	text   string
	width  int
	unsure bool // terminals disagree on its width
}

// screenRow is one row of a layout. A row that wraps goes on in the next one without a line end.
type screenRow struct {
	cells []cell
	width int
	wraps bool
}

// layout is a text in rows, and where the cursor is.
type layout struct {
	rows     []screenRow
	row, col int
	total    int // rows of the whole text; 0 if rows has them all
}

// layoutWriter fills rows. Only rows from keepFrom up to keepTo get cells, so that a long text costs little for what is not shown.
type layoutWriter struct {
	cols             int
	rows             []screenRow
	row, col         int // of the cursor, once it was met
	keepFrom, keepTo int
}

func (w *layoutWriter) last() *screenRow { return &w.rows[len(w.rows)-1] }

// newRow begins a row; with wraps the one before goes on in it.
func (w *layoutWriter) newRow(wraps bool) {
	w.last().wraps = wraps
	w.rows = append(w.rows, screenRow{})
}

// put adds one cluster. What stands for a character that is not shown itself, and a tab, may be parted at the end of a row: a terminal
// would part it there too.
func (w *layoutWriter) put(cluster []rune) {
	mark := shownRune(cluster[0])
	if cluster[0] == '\t' {
		mark = "    "[:editTabColumns]
	}
	if mark == "" {
		w.add(cluster, clusterWidth(cluster))
		return
	}
	for _, r := range mark {
		w.add([]rune{r}, 1)
	}
	if len(cluster) > 1 {
		w.put(cluster[1:])
	}
}

func (w *layoutWriter) add(cluster []rune, width int) {
	if w.last().width+width > w.cols {
		w.newRow(true)
	}
	row, i := w.last(), len(w.rows)-1
	row.width += width
	if i >= w.keepFrom && i < w.keepTo {
		text, unsure := clusterText(cluster)
		row.cells = append(row.cells, cell{text, width, unsure})
	}
}

// mark notes that the cursor is here. Behind a full row it is at the start of the next one.
//
//go:noinline for size: it is called in many places
func (w *layoutWriter) mark() {
	if w.last().width >= w.cols {
		w.newRow(true)
	}
	w.row, w.col = len(w.rows)-1, w.last().width
}

func (w *layoutWriter) text(s string) {
	for text := []rune(s); len(text) > 0; {
		n := clusterLen(text)
		w.put(text[:n])
		text = text[n:]
	}
}

// editedText is what is laid out: a text behind its prompt, the lines after the first behind more, the cursor before text[cursor].
type editedText struct {
	prompt, more string
	text         []rune
	cursor       int
}

func (e *editedText) write(w *layoutWriter) {
	w.rows = make([]screenRow, 1, 1+len(e.text)/w.cols)
	w.text(e.prompt)
	marked := false
	for i := 0; i < len(e.text); {
		if i >= e.cursor && !marked {
			w.mark()
			marked = true
		}
		if e.text[i] == '\n' {
			w.newRow(false)
			w.text(e.more)
			i++
			continue
		}
		if r := e.text[i]; r >= 0x20 && r < 0x7f && (i+1 == len(e.text) || e.text[i+1] < 0x300) { // most of all text, and quick
			w.add(e.text[i:i+1], 1)
			i++
			continue
		}
		n := clusterLen(e.text[i:])
		w.put(e.text[i : i+n])
		i += n
	}
	if !marked {
		w.mark()
	}
}

// layout gives no more than height rows, those around the cursor; 0 stands for all.
func (e *editedText) layout(cols, height int) layout {
	w := &layoutWriter{cols: max(cols, editMinColumns)}
	if height == 0 {
		w.keepTo = math.MaxInt
	}
	e.write(w)
	if height == 0 {
		return layout{rows: w.rows, row: w.row, col: w.col}
	}
	top := 0
	if len(w.rows) > height {
		top = min(max(0, w.row-height/2), len(w.rows)-height)
	}
	w.keepFrom, w.keepTo = top, top+height
	e.write(w)
	return layout{rows: w.rows[top:min(len(w.rows), top+height)], row: w.row - top, col: w.col, total: len(w.rows)}
}

// renderer knows what of a text is on the screen and where the cursor stands.
type renderer struct {
	shown    []screenRow
	row, col int // of the cursor; col is cols behind a full row
	cols     int
	out      bytes.Buffer
}

// frame gives the bytes that turn what is shown into l. The slice is good until the next call.
func (r *renderer) frame(l layout, cols int) []byte {
	r.out.Reset()
	r.cols = max(cols, editMinColumns)
	for i := range l.rows {
		r.drawRow(i, l.rows)
	}
	if len(r.shown) > len(l.rows) {
		r.moveTo(len(l.rows), 0)
		r.out.WriteString("\x1b[J")
	}
	r.shown = l.rows
	r.moveTo(l.row, l.col)
	return r.out.Bytes()
}

// drawRow writes a row from the first cell that differs. Where the row before wraps into it for the first time, the terminal is let
// wrap by itself, so that it knows the two for one line when it is resized or copied from.
func (r *renderer) drawRow(i int, rows []screenRow) {
	want, have, isNew := &rows[i], screenRow{}, i >= len(r.shown)
	if !isNew {
		have = r.shown[i]
	}
	if i > 0 && rows[i-1].wraps && (isNew || !r.shown[i-1].wraps) {
		r.wrapInto(i, &rows[i-1], want, have.width)
		return
	}
	if isNew && i > 0 {
		r.moveTo(i-1, 0)
		r.out.WriteString("\r\n")
		r.row, r.col = i, 0
	}
	same, col := 0, 0
	for same < len(want.cells) && same < len(have.cells) && want.cells[same] == have.cells[same] {
		col += want.cells[same].width
		same++
	}
	if same == len(want.cells) && same == len(have.cells) {
		return
	}
	r.moveTo(i, col)
	if want.width < have.width {
		r.out.WriteString("\x1b[K") // before writing: behind a full row it would take the last character
	}
	r.write(want.cells[same:])
}

// wrapInto writes row i by going on behind the row before.
func (r *renderer) wrapInto(i int, before, want *screenRow, have int) {
	if len(before.cells) > 0 && (r.row != i-1 || r.col != before.width) {
		last := before.cells[len(before.cells)-1:]
		r.moveTo(i-1, before.width-last[0].width)
		r.write(last)
	}
	if len(want.cells) == 0 {
		r.out.WriteString(" \r")
		r.row, r.col = i, 0
		if have > 0 {
			r.out.WriteString("\x1b[K")
		}
		return
	}
	r.row, r.col = i, 0
	r.write(want.cells[:1])
	if want.width < have {
		r.out.WriteString("\x1b[K")
	}
	r.write(want.cells[1:])
}

func (r *renderer) write(cells []cell) {
	for _, c := range cells {
		r.out.WriteString(c.text)
		r.col += c.width
		if c.unsure && r.col < r.cols { // the cursor is put where it belongs, and what a terminal drew beyond it goes
			r.out.WriteString("\x1b[" + strconv.Itoa(r.col+1) + "G\x1b[K")
		}
	}
}

// moveTo puts the cursor on a row that is there.
func (r *renderer) moveTo(row, col int) {
	if r.col >= r.cols && (row != r.row || col != r.col) { // behind a full row only a return is the same everywhere
		r.out.WriteByte('\r')
		r.col = 0
	}
	switch {
	case row < r.row:
		r.escape(r.row-row, 'A')
	case row > r.row:
		r.escape(row-r.row, 'B')
	}
	switch {
	case col == r.col:
	case col == 0:
		r.out.WriteByte('\r')
	case col < r.col:
		r.escape(r.col-col, 'D')
	default:
		r.escape(col-r.col, 'C')
	}
	r.row, r.col = row, col
}

func (r *renderer) escape(n int, final byte) {
	r.out.WriteString("\x1b[")
	if n > 1 {
		r.out.WriteString(strconv.Itoa(n))
	}
	r.out.WriteByte(final)
}

// again forgets what is shown and gives the bytes that clear it, so that the next frame draws all from the first row on. After a
// resize, cols is the new width, and reflows says whether the terminal wraps its lines anew. Where in doubt fewer rows are cleared:
// something of the old picture may stay, nothing else is lost.
func (r *renderer) again(cols int, reflows bool) []byte {
	up := r.row
	if cols != r.cols && r.cols > 0 && reflows {
		up = r.rowsAbove(max(cols, editMinColumns))
	}
	r.out.Reset()
	r.out.WriteByte('\r')
	if up > 0 {
		r.escape(up, 'A')
	}
	r.out.WriteString("\x1b[J")
	r.shown, r.row, r.col = nil, 0, 0
	return r.out.Bytes()
}

// rowsAbove counts the rows above the cursor after the terminal has wrapped the lines anew.
func (r *renderer) rowsAbove(cols int) int {
	above, line := 0, 0
	for i := 0; i < r.row && i < len(r.shown); i++ {
		line += r.shown[i].width
		if !r.shown[i].wraps {
			above += max(1, (line+cols-1)/cols)
			line = 0
		}
	}
	return above + (line+r.col)/cols
}

// restart forgets what is shown: the cursor stands at the start of a row of its own.
func (r *renderer) restart() { r.shown, r.row, r.col = nil, 0, 0 }
