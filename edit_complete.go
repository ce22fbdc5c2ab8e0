// This file holds the part of completion that knows no names: what is typed of a word, what candidates share, and their list in columns.
package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	completeWait = 200 * time.Millisecond // for the candidates of one word
	completeMax  = 500                    // candidates of one word
	completeShow = 100                    // of those in a list
)

// completer gives what a word may become. It is asked with a deadline and gives nothing rather than late.
type completer interface {
	complete(ctx context.Context, before string) completion
}

// completion is what may stand in the place of the last runes before the cursor.
type completion struct {
	replace int // runes before the cursor that a candidate replaces
	list    []candidate
}

// candidate is one of them.
type candidate struct {
	text string // what is put in
	show string // what a list shows; text if empty
	open bool   // more is to follow at once, as after a folder: no space is put behind it
}

func (c candidate) shown() string {
	if c.show != "" {
		return c.show
	}
	return c.text
}

// sorted orders candidates, each once, and bounds their number.
func (c completion) sorted() completion {
	sortBy(c.list, func(a, b candidate) int { return strings.Compare(a.text, b.text) })
	c.list = slices.CompactFunc(c.list, func(a, b candidate) bool { return a.text == b.text })
	c.list = c.list[:min(len(c.list), completeMax)]
	return c
}

// commonPrefix gives what all candidates begin with, cut between characters.
func commonPrefix(list []candidate) []rune {
	if len(list) == 0 {
		return nil
	}
	prefix := []rune(list[0].text)
	for _, c := range list[1:] {
		n := 0
		for _, r := range c.text {
			if n == len(prefix) || prefix[n] != r {
				break
			}
			n++
		}
		prefix = prefix[:n]
	}
	return prefix
}

// listColumns writes candidates in columns, as many as fit, read downwards, with a word about those that are left out.
func listColumns(list []candidate, cols int) string {
	cols = max(cols, editMinColumns)
	left := len(list) - completeShow
	if left > 0 {
		list = list[:completeShow]
	}
	width, names := 0, make([]string, len(list))
	for i, c := range list {
		names[i] = clipWidth(visibleLine(c.shown()), cols)
		width = max(width, textWidth(names[i]))
	}
	perRow := max(1, (cols+1)/(width+2))
	rows := (len(names) + perRow - 1) / perRow
	var b strings.Builder
	for row := range rows {
		for i := row; i < len(names); i += rows {
			b.WriteString(names[i])
			if i+rows < len(names) {
				b.WriteString(strings.Repeat(" ", width+2-textWidth(names[i])))
			}
		}
		b.WriteByte('\n')
	}
	if left > 0 {
		fmt.Fprintf(&b, "… and %d more\n", left)
	}
	return b.String()
}
