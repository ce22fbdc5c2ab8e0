// This file finds which lines two texts share and writes their difference as a unified diff, one that patch and git apply take. Pure functions over
// strings; how much of a diff is shown, and to whom, is not its matter.
package main

import (
	"fmt"
	"strings"
)

const (
	unifiedContext = 3       // unchanged lines around a change
	unifiedCells   = 1 << 20 // size of the table in which the lines of two stretches are matched exactly; larger ones are split first
	unifiedDepth   = 12      // times that a stretch is split before the rest of it counts as changed
)

// splitLines cuts a text into lines that keep their ends. The last one may have none.
func splitLines(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	return lines[:len(lines)-btoi(lines[len(lines)-1] == "")]
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// lineMatch says that n lines from a on in one text are those from b on in the other.
type lineMatch struct{ a, b, n int }

type lineMatcher struct {
	a, b []int // lines as numbers, the same for equal ones
	out  []lineMatch
}

// matchLines gives what two lists of lines share, in order. It is the longest common subsequence where that is cheap to find; else the lines that stand
// once on either side hold the places.
func matchLines(a, b []string) []lineMatch {
	numbers := make(map[string]int, len(a))
	number := func(lines []string) []int {
		out := make([]int, len(lines))
		for i, l := range lines {
			n, ok := numbers[l]
			if !ok {
				n = len(numbers)
				numbers[l] = n
			}
			out[i] = n
		}
		return out
	}
	m := lineMatcher{a: number(a), b: number(b)}
	m.between(0, len(a), 0, len(b), 0)
	return m.out
}

func (m *lineMatcher) emit(a, b, n int) {
	if last := len(m.out) - 1; last >= 0 && m.out[last].a+m.out[last].n == a && m.out[last].b+m.out[last].n == b {
		m.out[last].n += n
	} else if n > 0 {
		m.out = append(m.out, lineMatch{a, b, n})
	}
}

// between matches a[a0:a1] with b[b0:b1].
func (m *lineMatcher) between(a0, a1, b0, b1, depth int) {
	head := 0
	for a0+head < a1 && b0+head < b1 && m.a[a0+head] == m.b[b0+head] {
		head++
	}
	m.emit(a0, b0, head)
	a0, b0 = a0+head, b0+head
	tail := 0
	for a0 < a1-tail && b0 < b1-tail && m.a[a1-1-tail] == m.b[b1-1-tail] {
		tail++
	}
	switch a1, b1 := a1-tail, b1-tail; {
	case a0 == a1 || b0 == b1 || depth == unifiedDepth:
	case (a1-a0+1)*(b1-b0+1) <= unifiedCells:
		m.exact(a0, a1, b0, b1)
	default:
		anchors := m.anchors(a0, a1, b0, b1)
		for _, p := range anchors {
			m.between(a0, p.a, b0, p.b, depth+1)
			m.emit(p.a, p.b, 1)
			a0, b0 = p.a+1, p.b+1
		}
		if len(anchors) > 0 {
			m.between(a0, a1, b0, b1, depth+1)
		}
	}
	m.emit(a1-tail, b1-tail, tail)
}

// exact finds the longest common subsequence by the table of its lengths.
func (m *lineMatcher) exact(a0, a1, b0, b1 int) {
	rows, cols := a1-a0, b1-b0
	length := make([]int32, (rows+1)*(cols+1)) // of what a[i:] and b[j:] share
	at := func(i, j int) int { return i*(cols+1) + j }
	for i := rows - 1; i >= 0; i-- {
		for j := cols - 1; j >= 0; j-- {
			if m.a[a0+i] == m.b[b0+j] {
				length[at(i, j)] = length[at(i+1, j+1)] + 1
			} else {
				length[at(i, j)] = max(length[at(i+1, j)], length[at(i, j+1)])
			}
		}
	}
	for i, j := 0, 0; i < rows && j < cols; {
		switch {
		case m.a[a0+i] == m.b[b0+j]:
			m.emit(a0+i, b0+j, 1)
			i, j = i+1, j+1
		case length[at(i+1, j)] >= length[at(i, j+1)]:
			i++
		default:
			j++
		}
	}
}

// anchors gives the lines that stand once on either side, as many as keep their order: the longest increasing run, by patience sorting.
func (m *lineMatcher) anchors(a0, a1, b0, b1 int) []lineMatch {
	type seen struct{ a, b, inA, inB int }
	lines := map[int]*seen{}
	for i := a0; i < a1; i++ {
		s := lines[m.a[i]]
		if s == nil {
			s = &seen{}
			lines[m.a[i]] = s
		}
		s.a, s.inA = i, s.inA+1
	}
	for j := b0; j < b1; j++ {
		if s := lines[m.b[j]]; s != nil {
			s.b, s.inB = j, s.inB+1
		}
	}
	var pairs []lineMatch
	for i := a0; i < a1; i++ {
		if s := lines[m.a[i]]; s.inA == 1 && s.inB == 1 {
			pairs = append(pairs, lineMatch{s.a, s.b, 1})
		}
	}
	var tops []int // of each pile, the pair on top
	before := make([]int, len(pairs))
	for i, p := range pairs {
		low, high := 0, len(tops)
		for low < high {
			if mid := (low + high) / 2; pairs[tops[mid]].b < p.b {
				low = mid + 1
			} else {
				high = mid
			}
		}
		before[i] = -1
		if low > 0 {
			before[i] = tops[low-1]
		}
		if low == len(tops) {
			tops = append(tops, i)
		} else {
			tops[low] = i
		}
	}
	run := make([]lineMatch, len(tops))
	for i, n := len(tops)-1, 0; i >= 0; i-- {
		if i == len(tops)-1 {
			n = tops[i]
		}
		run[i], n = pairs[n], before[n]
	}
	return run
}

// diffSide names one side of a unified diff; "" stands for a file that is not there.
func diffSide(prefix, name string) string {
	switch {
	case name == "":
		return "/dev/null"
	case strings.ContainsAny(name, "\"\\\n\r\t") || strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0:
		return quoteGitName(prefix + name)
	case strings.Contains(name, " "):
		return prefix + name + "\t" // as git does, so that the end of the name shows
	}
	return prefix + name
}

// quoteGitName writes a name as git does where it holds what would break the line.
func quoteGitName(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// unifiedDiff writes the difference of two texts with its two header lines, "" when they are equal, and counts its lines.
func unifiedDiff(oldName, newName, a, b string) (text string, added, removed int) {
	if a == b {
		return "", 0, 0
	}
	x, y := splitLines(a), splitLines(b)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", diffSide("a/", oldName), diffSide("b/", newName))
	var hunk []string // lines of the open hunk with their marks
	var fromA, fromB, nA, nB int
	line := func(mark byte, s string) {
		if !strings.HasSuffix(s, "\n") {
			s += "\n\\ No newline at end of file\n"
		}
		hunk = append(hunk, string(mark)+s)
		nA, nB = nA+btoi(mark != '+'), nB+btoi(mark != '-')
	}
	flush := func() {
		if len(hunk) > 0 {
			fmt.Fprintf(&out, "@@ -%s +%s @@\n%s", hunkRange(fromA, nA), hunkRange(fromB, nB), strings.Join(hunk, ""))
		}
		hunk, nA, nB = nil, 0, 0
	}
	atA, atB := 0, 0
	for _, m := range append(matchLines(x, y), lineMatch{len(x), len(y), 0}) {
		if atA < m.a || atB < m.b {
			if len(hunk) == 0 {
				ahead := min(unifiedContext, atA)
				fromA, fromB = atA-ahead, atB-ahead
				for _, l := range x[fromA:atA] {
					line(' ', l)
				}
			}
			for _, l := range x[atA:m.a] {
				line('-', l)
				removed++
			}
			for _, l := range y[atB:m.b] {
				line('+', l)
				added++
			}
		}
		atA, atB = m.a+m.n, m.b+m.n
		if len(hunk) == 0 {
			continue
		}
		keep, last := m.n, atA == len(x) && atB == len(y)
		if keep > 2*unifiedContext || last {
			keep = min(keep, unifiedContext)
		}
		for _, l := range x[m.a : m.a+keep] {
			line(' ', l)
		}
		if keep < m.n || last {
			flush()
		}
	}
	flush()
	return out.String(), added, removed
}

// hunkRange writes lines from (counted from 0) on; an empty range names the line before it.
func hunkRange(from, n int) string {
	if n != 1 {
		return fmt.Sprintf("%d,%d", from+btoi(n > 0), n)
	}
	return fmt.Sprint(from + 1)
}
