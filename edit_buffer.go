// This file holds the text being edited and what keys do to it: moves by characters, words and lines, killing and yanking, undo. It
// knows no key and no screen.
package main

import (
	"slices"
	"unicode"
)

const (
	editTextMax = 2 << 20 // bytes of the text being edited, as a sum of UTF-8; what would go beyond is refused
	editUndoMax = 200     // steps that can be taken back
	editUndoRun = 4 << 20 // characters that all kept steps hold together
)

// editBuffer is a text with a cursor, which always stands between two clusters. The zero value is empty.
type editBuffer struct {
	text   []rune
	cursor int // index into text

	killed   []rune // what yank brings back
	killing  bool   // the last deed killed: the next kill joins it
	undo     []editState
	undoSize int  // runes in undo
	typing   bool // the last deed typed a character: the next one is the same step
	goal     int  // column that up and down aim at; -1 for the cursor's own
}

// editState is a text to go back to.
type editState struct {
	text   []rune
	cursor int
}

func (b *editBuffer) String() string { return string(b.text) }

// reset puts another text in, the cursor at its end, with nothing to undo.
//
//go:noinline for size: it is called in many places
func (b *editBuffer) reset(text string) {
	*b = editBuffer{text: []rune(text), killed: b.killed, goal: -1}
	b.cursor = len(b.text)
}

// settle ends runs of typing and killing; every deed but those begins with it.
func (b *editBuffer) settle() { b.typing, b.killing, b.goal = false, false, -1 }

// save keeps the text as it is for undo.
//
//go:noinline for size: it is called in many places
func (b *editBuffer) save() {
	b.undo = append(b.undo, editState{slices.Clone(b.text), b.cursor})
	b.undoSize += len(b.text)
	for len(b.undo) > editUndoMax || b.undoSize > editUndoRun && len(b.undo) > 1 {
		b.undoSize -= len(b.undo[0].text)
		b.undo = b.undo[1:]
	}
}

// takeBack undoes one step.
func (b *editBuffer) takeBack() bool {
	b.settle()
	if len(b.undo) == 0 {
		return false
	}
	last := b.undo[len(b.undo)-1]
	b.undo = b.undo[:len(b.undo)-1]
	b.undoSize -= len(last.text)
	b.text, b.cursor = last.text, last.cursor
	return true
}

// fits reports whether so many more runes stay within the bound. A rune is counted as its widest form only when near it.
func (b *editBuffer) fits(more []rune) bool {
	if 4*(len(b.text)+len(more)) <= editTextMax {
		return true
	}
	return len(string(b.text))+len(string(more)) <= editTextMax
}

// typeRune inserts one character at the cursor; a run of them is one step to undo.
func (b *editBuffer) typeRune(r rune) bool {
	typing := b.typing
	b.settle()
	if !b.fits([]rune{r}) {
		return false
	}
	if !typing || r == ' ' || r == '\n' {
		b.save()
	}
	b.typing = true
	b.put([]rune{r})
	return true
}

// insert puts a text in at the cursor as one step; false if it does not fit.
func (b *editBuffer) insert(text []rune) bool {
	b.settle()
	if !b.fits(text) {
		return false
	}
	b.save()
	b.put(text)
	return true
}

func (b *editBuffer) put(text []rune) {
	b.text = slices.Insert(b.text, b.cursor, text...)
	b.cursor = b.boundary(b.cursor + len(text))
}

// replace puts text in the place of what stands between from and to, the cursor behind it.
func (b *editBuffer) replace(from, to int, text []rune) {
	b.settle()
	b.save()
	b.text = slices.Replace(b.text, from, to, text...)
	b.cursor = b.boundary(from + len(text))
}

// cut takes out what stands between two places and gives it.
func (b *editBuffer) cut(from, to int) []rune {
	gone := slices.Clone(b.text[from:to])
	b.text = slices.Delete(b.text, from, to)
	b.cursor = b.boundary(from)
	return gone
}

// boundary gives the nearest place at or after i where a cluster ends. Text grows together when what parted it goes.
func (b *editBuffer) boundary(i int) int {
	at := b.lineStart(min(i, len(b.text)))
	for at < i && at < len(b.text) {
		at += clusterLen(b.text[at:])
	}
	return at
}

// next and previous give the places of the neighbouring clusters.
//
//go:noinline for size: it is called in many places
func (b *editBuffer) next(i int) int { return min(len(b.text), i+clusterLen(b.text[i:])) }

func (b *editBuffer) previous(i int) int {
	if i == 0 {
		return 0
	}
	if b.text[i-1] == '\n' || b.text[i-1] < 0x300 {
		return i - 1
	}
	at := b.lineStart(i)
	for {
		n := at + clusterLen(b.text[at:])
		if n >= i {
			return at
		}
		at = n
	}
}

func (b *editBuffer) lineStart(i int) int {
	for i > 0 && b.text[i-1] != '\n' {
		i--
	}
	return i
}

func (b *editBuffer) lineEnd(i int) int {
	for i < len(b.text) && b.text[i] != '\n' {
		i++
	}
	return i
}

func isWordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || extendsCluster(r)
}

// wordEnd and wordStart give where Alt-F and Alt-B go: over what is no word, then over the word.
func (b *editBuffer) wordEnd(i int) int {
	for i < len(b.text) && !isWordRune(b.text[i]) {
		i++
	}
	for i < len(b.text) && isWordRune(b.text[i]) {
		i++
	}
	return i
}

func (b *editBuffer) wordStart(i int) int {
	for i > 0 && !isWordRune(b.text[i-1]) {
		i--
	}
	for i > 0 && isWordRune(b.text[i-1]) {
		i--
	}
	return i
}

// blankWordStart gives where Ctrl-W goes: over white space, then over all that is none.
func (b *editBuffer) blankWordStart(i int) int {
	for i > 0 && unicode.IsSpace(b.text[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(b.text[i-1]) {
		i--
	}
	return i
}

// moveTo puts the cursor somewhere.
//
//go:noinline for size: it is called in many places
func (b *editBuffer) moveTo(i int) {
	b.settle()
	b.cursor = b.boundary(i)
}

// deleteTo takes out what lies between the cursor and i.
func (b *editBuffer) deleteTo(i int) {
	b.settle()
	if i == b.cursor {
		return
	}
	b.save()
	b.cut(min(i, b.cursor), max(i, b.cursor))
}

// killTo is deleteTo that keeps what goes for yank; kills in a row are kept together.
func (b *editBuffer) killTo(i int) {
	joined := b.killing
	b.settle()
	b.killing = true
	if i == b.cursor {
		return
	}
	b.save()
	before := i < b.cursor
	gone := b.cut(min(i, b.cursor), max(i, b.cursor))
	switch {
	case !joined:
		b.killed = gone
	case before:
		b.killed = append(gone, b.killed...)
	default:
		b.killed = append(b.killed, gone...)
	}
}

// killLine takes the rest of the line, or the line's end where nothing is left of it.
func (b *editBuffer) killLine() {
	end := b.lineEnd(b.cursor)
	if end == b.cursor {
		end = b.next(end)
	}
	b.killTo(end)
}

// yank brings back what was killed last.
func (b *editBuffer) yank() bool { return len(b.killed) == 0 || b.insert(b.killed) }

// transpose swaps the clusters around the cursor and goes on; at a line's end the last two.
func (b *editBuffer) transpose() {
	b.settle()
	start, end := b.lineStart(b.cursor), b.lineEnd(b.cursor)
	at := b.cursor
	if at == end && at > start {
		at = b.previous(at)
	}
	if at == start {
		return
	}
	from, to := b.previous(at), b.next(at)
	b.save()
	swapped := slices.Concat(b.text[at:to], b.text[from:at])
	copy(b.text[from:to], swapped)
	b.cursor = b.boundary(to)
}

// vertical moves by one line of the text, up or down, towards the column where the first of such moves began. False: there is no line.
func (b *editBuffer) vertical(up bool) bool {
	goal := b.goal
	start := b.lineStart(b.cursor)
	var line int
	if up {
		if start == 0 {
			return false
		}
		line = b.lineStart(start - 1)
	} else {
		end := b.lineEnd(b.cursor)
		if end == len(b.text) {
			return false
		}
		line = end + 1
	}
	if goal < 0 {
		goal = 0
		for i := start; i < b.cursor; i = b.next(i) {
			goal += clusterWidth(b.text[i:b.next(i)])
		}
	}
	b.settle()
	b.goal = goal
	at, end := line, b.lineEnd(line)
	for used := 0; at < end; at = b.next(at) {
		if used += clusterWidth(b.text[at:b.next(at)]); used > goal {
			break
		}
	}
	b.cursor = at
	return true
}
