// This file shows the difference of two texts line by line, for definitions and entries that changed after they were
// approved. Its result is safe for a screen and bounded, whatever the texts hold.
package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	diffContext  = 2       // unchanged lines shown around a change
	diffExact    = 400     // changed lines of a side up to which lines are matched; beyond, all of them count as changed
	diffMaxLines = 400     // lines of a difference
	diffMaxLine  = 4 << 10 // bytes of one of its lines
	diffNear     = 60      // bytes kept around the change inside two long lines
)

// diffText gives the lines that differ, "- " before and "+ " now, with unchanged ones around them ("  "), every character
// visible; "" when the texts are equal. Two long lines that differ in one place are shown around that place.
func diffText(old, now string) string {
	if old == now {
		return ""
	}
	a, b := strings.Split(old, "\n"), strings.Split(now, "\n")
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var d diffLines
	for _, line := range a[max(0, head-diffContext):head] {
		d.add("  ", line)
	}
	d.middle(a[head:len(a)-tail], b[head:len(b)-tail])
	for _, line := range a[len(a)-tail : min(len(a), len(a)-tail+diffContext)] {
		d.add("  ", line)
	}
	if d.left > 0 {
		d.rows = append(d.rows, fmt.Sprintf("  … %d more lines", d.left))
	}
	return strings.Join(d.rows, "\n")
}

type diffLines struct {
	rows []string
	left int // lines beyond diffMaxLines
}

func (d *diffLines) add(mark, line string) {
	if len(d.rows) >= diffMaxLines {
		d.left++
		return
	}
	d.rows = append(d.rows, mark+clip(visibleLine(line), diffMaxLine))
}

// middle writes what lies between the common head and tail: the longest common subsequence stays, the rest changed.
func (d *diffLines) middle(a, b []string) {
	if len(a) > diffExact || len(b) > diffExact {
		d.changed(a, b)
		return
	}
	length := make([][]int, len(a)+1) // of the common subsequence of a[i:] and b[j:]
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i, x := range slices.Backward(a) {
		for j, y := range slices.Backward(b) {
			if x == y {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	fromA, fromB := 0, 0
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			d.changed(a[fromA:i], b[fromB:j])
			run := 0
			for i+run < len(a) && j+run < len(b) && a[i+run] == b[j+run] {
				run++
			}
			d.same(a[i : i+run])
			i, j = i+run, j+run
			fromA, fromB = i, j
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	d.changed(a[fromA:], b[fromB:])
}

// same shows unchanged lines between two changes, folded when they are many.
func (d *diffLines) same(lines []string) {
	if len(lines) <= 2*diffContext+1 {
		for _, line := range lines {
			d.add("  ", line)
		}
		return
	}
	for _, line := range lines[:diffContext] {
		d.add("  ", line)
	}
	d.add("  ", fmt.Sprintf("… %d equal lines", len(lines)-2*diffContext))
	for _, line := range lines[len(lines)-diffContext:] {
		d.add("  ", line)
	}
}

func (d *diffLines) changed(a, b []string) {
	if len(a) == 1 && len(b) == 1 {
		x, y := nearChange(a[0], b[0])
		a, b = []string{x}, []string{y}
	}
	for _, line := range a {
		d.add("- ", line)
	}
	for _, line := range b {
		d.add("+ ", line)
	}
}

// nearChange leaves out of two long lines what they have in common far from the change.
func nearChange(a, b string) (string, string) {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	from, to := max(0, head-diffNear), max(0, tail-diffNear)
	for from > 0 && !utf8.RuneStart(a[from]) {
		from--
	}
	for to > 0 && !utf8.RuneStart(a[len(a)-to]) {
		to--
	}
	if from < diffNear { // not worth leaving out
		from = 0
	}
	if to < diffNear {
		to = 0
	}
	cut := func(s string) string {
		s = s[from : len(s)-to]
		if from > 0 {
			s = fmt.Sprintf("… (%d equal bytes) %s", from, s)
		}
		if to > 0 {
			s = fmt.Sprintf("%s … (%d equal bytes)", s, to)
		}
		return s
	}
	return cut(a), cut(b)
}
