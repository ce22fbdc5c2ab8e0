// This file reads the tables of an HTML page: those that hold data become rows of cells, those that only lay a page out are read as if they were not there.
package main

import (
	"strconv"
	"strings"
)

const (
	htmlSpanMax   = 20 // columns that one cell may stand for
	htmlColumnMax = 50 // columns of a table that shorter rows are filled up to
)

// htmlGrid is a table of data on its way. Within a cell end gives its text.
type htmlGrid struct {
	rows    [][]string
	end     func() string
	colspan int   // of the open cell
	rowspan int   // of the open cell
	down    []int // for each column: rows that a cell from above still stands for
}

// htmlDataTables reads a page once and says of each of its tables, in order, whether it holds data: no table, heading or block of code is within it, and a
// row of it has two cells.
func htmlDataTables(page string) []bool {
	type openTable struct {
		index, cells int
		layout       bool
	}
	var data []bool
	var open []openTable
	z := htmlTokenizer{s: page}
	for {
		t, ok := z.next()
		if !ok {
			return data
		}
		if t.kind == htmlStart && t.name == "table" {
			if n := len(open); n > 0 {
				open[n-1].layout = true
				data[open[n-1].index] = false
			}
			open = append(open, openTable{index: len(data)})
			data = append(data, false)
			continue
		}
		if len(open) == 0 {
			continue
		}
		switch top := &open[len(open)-1]; {
		case t.kind == htmlEnd && t.name == "table":
			open = open[:len(open)-1]
		case t.kind != htmlStart:
		case t.name == "tr":
			top.cells = 0
		case t.name == "td" || t.name == "th":
			if top.cells++; top.cells == 2 && !top.layout {
				data[top.index] = true
			}
		case t.name == "pre" || len(t.name) == 2 && t.name[0] == 'h' && t.name[1] >= '1' && t.name[1] <= '6':
			top.layout = true
			data[top.index] = false
		}
	}
}

// write writes the rows, the first one as the head.
func (g *htmlGrid) write(w *htmlWriter) {
	w.block(2)
	columns := 0
	for _, row := range g.rows {
		if strings.Join(row, "") == "" {
			continue
		}
		head := columns == 0
		if head {
			columns = min(len(row), htmlColumnMax)
		}
		for len(row) < columns {
			row = append(row, "")
		}
		w.need = max(w.need, 1)
		if w.plain {
			w.line(strings.TrimRight(strings.Join(row, " | "), " |"))
			continue
		}
		w.line("| " + strings.Join(row, " | ") + " |")
		if head {
			w.need = 1
			w.line("|" + strings.Repeat("---|", len(row)))
		}
	}
	w.need = 2
}

// line writes a line as it is.
func (w *htmlWriter) line(s string) {
	if w.full {
		return
	}
	w.start()
	w.out.WriteString(s)
}

// row begins a row: the columns that a cell from above reaches into stay empty.
//
//go:noinline for size: it is called in many places
func (g *htmlGrid) row() {
	g.rows = append(g.rows, nil)
	g.fill()
}

// fill puts the cells from above into the row, as far as the next free column.
func (g *htmlGrid) fill() {
	row := &g.rows[len(g.rows)-1]
	for len(*row) < len(g.down) && g.down[len(*row)] > 0 {
		g.down[len(*row)]--
		*row = append(*row, "")
	}
}

// open begins a cell.
func (g *htmlGrid) open(w *htmlWriter, across, down int) {
	if len(g.rows) == 0 {
		g.row()
	}
	g.colspan, g.rowspan = min(max(across, 1), htmlSpanMax), min(max(down, 1), htmlSpanMax)
	g.end = w.capture()
}

// close ends the open cell.
func (g *htmlGrid) close() {
	if g.end == nil {
		return
	}
	text := g.end()
	g.end = nil
	row := &g.rows[len(g.rows)-1]
	for range g.colspan {
		if n := len(*row); n < htmlColumnMax && g.rowspan > 1 {
			for len(g.down) <= n {
				g.down = append(g.down, 0)
			}
			g.down[n] = g.rowspan - 1
		}
		*row = append(*row, text)
		text = ""
	}
	g.fill()
}

func htmlNumber(s string, def int) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 || n > 1_000_000_000 {
		return def
	}
	return n
}
