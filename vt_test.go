package main

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// vtScreen is a small terminal for tests: it takes what a program writes and holds what a person sees. It knows no clusters: like many
// terminals it adds up the widths of single characters, which it takes from a table of its own. A sequence that it does not know fails
// the test.
type vtScreen struct {
	t          *testing.T
	cols, rows int
	lines      []vtLine // all of it; the last rows of it are the screen
	x, y       int      // y counts from the first of lines
	pending    bool     // the last column was written: the next character wraps
	partial    []byte
}

// vtLine is one row. A cell holds a character with its marks, "" for blank, or vtHalf for the second half of a wide one.
type vtLine struct {
	cells   []string
	wrapped bool // goes on in the next row
}

const vtHalf = "\x00"

func newVTScreen(t *testing.T, cols, rows int) *vtScreen {
	v := &vtScreen{t: t, cols: cols, rows: rows}
	v.lines = []vtLine{v.blank()}
	return v
}

func (v *vtScreen) blank() vtLine { return vtLine{cells: make([]string, v.cols)} }

// top is the first row of the screen.
func (v *vtScreen) top() int { return max(0, len(v.lines)-v.rows) }

func vtWidth(r rune) int {
	switch {
	case r == 0x200d, unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff, r >= 0xff01 && r <= 0xff60,
		r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f680 && r <= 0x1f6ff, r >= 0x1f900 && r <= 0x1f9ff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

func (v *vtScreen) write(b []byte) {
	v.t.Helper()
	b = append(v.partial, b...)
	v.partial = nil
	for len(b) > 0 {
		n := 1
		switch c := b[0]; {
		case c == '\r':
			v.x, v.pending = 0, false
		case c == '\n':
			v.pending = false
			v.down()
		case c == '\b':
			v.x, v.pending = max(0, v.x-1), false
		case c == '\t':
			v.x = min(v.cols-1, v.x/8*8+8)
		case c == 0x1b:
			if n = v.escape(b); n == 0 {
				v.partial = append([]byte(nil), b...)
				return
			}
		case c < 0x20 || c == 0x7f:
			v.t.Errorf("the screen gets the control character %#x before %q", c, b[1:min(len(b), 20)])
		default:
			if !utf8.FullRune(b) {
				v.partial = append([]byte(nil), b...)
				return
			}
			var r rune
			r, n = utf8.DecodeRune(b)
			v.put(r)
		}
		b = b[n:]
	}
}

// escape does one control sequence and gives its length, 0 while it is not whole.
func (v *vtScreen) escape(b []byte) int {
	v.t.Helper()
	if len(b) < 2 {
		return 0
	}
	if b[1] != '[' {
		v.t.Errorf("the screen gets the sequence %q", b[:min(len(b), 10)])
		return 2
	}
	end := 2
	for end < len(b) && (b[end] < 0x40 || b[end] > 0x7e) {
		end++
	}
	if end == len(b) {
		return 0
	}
	params := string(b[2:end])
	n, err := strconv.Atoi(params)
	if err != nil || n == 0 {
		n = 1
	}
	switch b[end] {
	case 'A':
		v.y, v.pending = max(v.top(), v.y-n), false
	case 'B':
		v.y, v.pending = min(len(v.lines)-1, v.y+n), false
	case 'C':
		v.x, v.pending = min(v.cols-1, v.x+n), false
	case 'D':
		v.x, v.pending = max(0, v.x-n), false
	case 'G':
		v.x, v.pending = min(v.cols, n)-1, false
	case 'H':
		v.x, v.y, v.pending = 0, v.top(), false
	case 'J':
		v.erase(params)
	case 'K':
		clear(v.lines[v.y].cells[v.x:])
		v.lines[v.y].wrapped = false
	case 'h', 'l':
		if params != "?2004" {
			v.t.Errorf("the screen gets the mode %q", b[:end+1])
		}
	default:
		v.t.Errorf("the screen gets the sequence %q", b[:end+1])
	}
	return end + 1
}

// erase clears from the cursor to the end, or with 2 all of the screen.
func (v *vtScreen) erase(params string) {
	if params == "2" {
		top := v.top()
		for len(v.lines) < top+2*v.rows {
			v.lines = append(v.lines, v.blank())
		}
		v.lines = v.lines[:top+v.rows+1]
		v.y = v.top()
		v.lines = v.lines[:v.y+1]
		return
	}
	clear(v.lines[v.y].cells[v.x:])
	v.lines[v.y].wrapped = false
	v.lines = v.lines[:v.y+1]
}

func (v *vtScreen) down() {
	v.y++
	if v.y == len(v.lines) {
		v.lines = append(v.lines, v.blank())
	}
}

func (v *vtScreen) put(r rune) {
	w := vtWidth(r)
	if w == 0 {
		at := v.x - 1
		if v.pending {
			at = v.x
		}
		if at > 0 && v.lines[v.y].cells[at] == vtHalf {
			at--
		}
		if at >= 0 {
			v.lines[v.y].cells[at] += string(r)
		}
		return
	}
	if v.pending || v.x+w > v.cols {
		v.lines[v.y].wrapped = true
		v.x, v.pending = 0, false
		v.down()
	}
	cells := v.lines[v.y].cells
	for i := v.x; i < v.x+w; i++ { // half of a wide character takes the other half along
		if cells[i] == vtHalf && i > 0 {
			cells[i-1] = ""
		}
		if i+1 < v.cols && cells[i+1] == vtHalf {
			cells[i+1] = ""
		}
	}
	cells[v.x] = string(r)
	if w == 2 {
		cells[v.x+1] = vtHalf
	}
	if v.x += w; v.x >= v.cols {
		v.x, v.pending = v.cols-1, true
	}
}

// resize changes the size. With reflow, rows that wrapped are joined and wrapped anew, else they are cut or widened.
func (v *vtScreen) resize(cols, rows int, reflow bool) {
	old := v.lines
	oldX, oldY := v.x, v.y
	v.cols, v.rows, v.pending = cols, rows, false
	v.lines = nil
	if !reflow {
		for _, l := range old {
			n := v.blank()
			copy(n.cells, l.cells)
			v.lines = append(v.lines, n)
		}
		v.x = min(oldX, cols-1)
		return
	}
	for i := 0; i < len(old); i++ {
		v.lines = append(v.lines, v.blank())
		x := 0
		for {
			l := old[i]
			used := len(l.cells)
			for used > 0 && l.cells[used-1] == "" && !(i == oldY && used > oldX) {
				used--
			}
			for j := 0; j < used; j++ {
				if l.cells[j] == vtHalf {
					continue
				}
				w := 1
				if j+1 < len(l.cells) && l.cells[j+1] == vtHalf {
					w = 2
				}
				if x+w > cols {
					v.lines[len(v.lines)-1].wrapped = true
					v.lines = append(v.lines, v.blank())
					x = 0
				}
				if i == oldY && j == oldX {
					v.x, v.y = x, len(v.lines)-1
				}
				row := v.lines[len(v.lines)-1].cells
				row[x] = l.cells[j]
				if w == 2 {
					row[x+1] = vtHalf
				}
				x += w
			}
			if i == oldY && oldX >= used {
				if x == cols {
					v.lines = append(v.lines, v.blank())
					x = 0
				}
				v.x, v.y = x, len(v.lines)-1
			}
			if !l.wrapped || i+1 == len(old) {
				break
			}
			i++
		}
	}
}

// text gives the screen's rows without the blanks at their ends, and without blank rows below the cursor.
func (v *vtScreen) text() []string {
	var out []string
	for _, l := range v.lines[v.top():] {
		var b strings.Builder
		for _, c := range l.cells {
			switch c {
			case "":
				b.WriteByte(' ')
			case vtHalf:
			default:
				b.WriteString(c)
			}
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	for len(out) > v.y-v.top()+1 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// cursor gives column and row on the screen.
func (v *vtScreen) cursor() (x, y int) { return v.x, v.y - v.top() }

func (v *vtScreen) String() string {
	x, y := v.cursor()
	return strings.Join(v.text(), "\n") + "\n(cursor " + strconv.Itoa(x) + "," + strconv.Itoa(y) + ")"
}
