// This file applies the hunks of a patch to a text. Every line of a hunk has to be there as the patch has it; only the place may have moved. It knows no
// file and no name.
package main

import (
	"fmt"
	"strings"
)

const patchMaxWork = 50_000_000 // lines compared for one file; a patch that needs more is refused

type patchApplier struct {
	lines []string
	crlf  bool // what the file's lines end in
	work  int
	notes []string
}

// applyHunks gives the text after all hunks, with a note for each that was not applied just as written. Where lines differ from the patch in their ends
// alone, the file keeps its own, also in the lines that come new.
func applyHunks(text string, hunks []patchHunk) (out string, notes []string, err error) {
	p := patchApplier{lines: splitLines(text), crlf: usesCRLF(text)}
	var b strings.Builder
	done, offset := 0, 0
	for i, h := range hunks {
		at, loose, err := p.find(h, done, offset)
		if err != nil {
			return "", nil, errorf("hunk %d (patch line %d): %w", i+1, h.Line, err)
		}
		if moved := at - h.place(); moved != offset || moved != 0 && i == 0 {
			p.notes = append(p.notes, fmt.Sprintf("hunk %d fits %s %s than it says", i+1, plural(max(moved, -moved), "line"), map[bool]string{true: "later", false: "earlier"}[moved > 0]))
			offset = moved
		}
		for _, l := range p.lines[done:at] {
			b.WriteString(l)
		}
		p.write(&b, h, at, loose)
		done = at + h.OldLines
	}
	for _, l := range p.lines[done:] {
		b.WriteString(l)
	}
	return b.String(), p.notes, nil
}

// place is where the hunk says it belongs, in lines counted from 0.
func (h patchHunk) place() int {
	if h.OldLines == 0 {
		return h.OldStart
	}
	return h.OldStart - 1
}

// find looks for the hunk's old lines from line low on, the nearest to its own place first; loose tells that they fit but for line ends. Lines that
// are only added stand where the hunk says, as nothing shows where else they would belong.
func (p *patchApplier) find(h patchHunk, low, offset int) (at int, loose bool, err error) {
	var old []string
	for _, l := range h.Lines {
		if l.Op != '+' {
			old = append(old, l.Text)
		}
	}
	want, high := h.place()+offset, len(p.lines)-len(old)
	if len(old) == 0 {
		if want < low || want > high {
			return 0, false, errorf("it adds lines behind line %d, and the file has %d", h.OldStart, len(p.lines))
		}
		return want, false, nil
	}
	for _, loose := range []bool{false, true} {
		for d := 0; want-d >= low || want+d <= high; d++ {
			before := want-d >= low && want-d <= high && p.fits(old, want-d, loose)
			after := d > 0 && want+d >= low && want+d <= high && p.fits(old, want+d, loose)
			switch {
			case before && after:
				return 0, false, errorf("its lines stand at line %d and at line %d, both as near to line %d; give it more context", want-d+1, want+d+1, want+1)
			case before:
				return want - d, loose, nil
			case after:
				return want + d, loose, nil
			case p.work > patchMaxWork:
				return 0, false, errorf("looking for its place takes too long (over %d lines compared)", patchMaxWork)
			}
		}
	}
	return 0, false, p.missing(old, max(low, min(want, len(p.lines))))
}

func (p *patchApplier) fits(old []string, at int, loose bool) bool {
	for i, l := range old {
		p.work++
		have := p.lines[at+i]
		if have != l && !(loose && strings.TrimRight(have, "\r\n") == strings.TrimRight(l, "\r\n")) {
			return false
		}
	}
	return true
}

// missing says how a hunk differs from what stands where it belongs.
func (p *patchApplier) missing(old []string, want int) error {
	for i, l := range old {
		if want+i >= len(p.lines) {
			return errorf("its lines are not in the file: the patch has %s as line %d, the file has %s", showLine(l), want+i+1, plural(len(p.lines), "line"))
		}
		if have := p.lines[want+i]; strings.TrimRight(have, "\r\n") != strings.TrimRight(l, "\r\n") {
			return errorf("its lines are not in the file: line %d is %s, the patch has %s", want+i+1, showLine(have), showLine(l))
		}
	}
	return errorf("its lines are not in the file from line %d on", want+1)
}

// write adds what the hunk leaves in the place of its old lines. An exact one is written as it is.
func (p *patchApplier) write(b *strings.Builder, h patchHunk, at int, loose bool) {
	ended := true
	for _, l := range h.Lines {
		switch {
		case l.Op == '+' && !loose:
			b.WriteString(l.Text)
		case l.Op == '+':
			end := "\n"
			if p.crlf {
				end = "\r\n"
			}
			b.WriteString(strings.TrimRight(l.Text, "\r\n") + end)
		case l.Op == ' ':
			b.WriteString(p.lines[at])
			at++
		default:
			at++
		}
		ended = l.Op != '+' || strings.HasSuffix(l.Text, "\n")
	}
	if n := len(p.lines); !loose || at < n || n == 0 || strings.HasSuffix(p.lines[n-1], "\n") || !ended {
		return
	}
	text := strings.TrimSuffix(strings.TrimSuffix(b.String(), "\n"), "\r") // the file's last line had no end and keeps none
	b.Reset()
	b.WriteString(text)
}
