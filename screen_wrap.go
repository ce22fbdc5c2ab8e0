// This file breaks lines between words where a person reads them on a screen; for a program, and for --json, nothing is broken. It knows no command.
package main

import (
	"fmt"
	"io"
	"strings"
)

// wrapIndent is how far the further lines of a broken one stand in.
const wrapIndent = "  "

// screenBehind gives the columns of the screen that w writes to, at least consentMinWidth, 0 where it is none; and what masks a text on the way there.
func screenBehind(w io.Writer) (cols int, mask func(string) string) {
	mask = func(s string) string { return s }
	for {
		switch x := w.(type) {
		case *maskedWriter:
			mask, w = x.mask, x.w
		case interface{ unwrap() io.Writer }:
			w = x.unwrap()
		default:
			if cols, _ = screenSize(w); cols > 0 {
				cols = max(cols, consentMinWidth)
			}
			return cols, mask
		}
	}
}

// printWrapped writes a text, which is safe for a screen, as lines that fit one. It is masked before it is broken: a secret over two lines would
// not be known.
func printWrapped(w io.Writer, text string) {
	if cols, mask := screenBehind(w); cols > 0 {
		var b strings.Builder
		for line := range strings.SplitSeq(mask(text), "\n") {
			b.WriteString(wrapLine(line, cols) + "\n")
		}
		text = strings.TrimSuffix(b.String(), "\n")
	}
	fmt.Fprintln(w, text)
}

// wrapLine breaks a line of more than width columns at blanks; those within a line stay as they are. A command to copy, a quoted text and a word
// that is wider than a line are left to the screen.
func wrapLine(line string, width int) string {
	if textWidth(line) <= width {
		return line
	}
	var b strings.Builder
	used, gap := 0, ""
	for i, word := range wrapPieces(line) {
		n := textWidth(word)
		switch {
		case i > 0 && used+len(gap)+n > width:
			b.WriteString("\n" + wrapIndent + word)
			used = len(wrapIndent) + n
		default:
			b.WriteString(gap + word)
			used += len(gap) + n
		}
		rest := line[len(word):]
		line = strings.TrimLeft(rest, " ")
		gap = rest[:len(rest)-len(line)]
	}
	return b.String()
}

// wrapPieces cuts a line at its blanks into what is not broken: words, texts in quotes, and what begins like a command of a shell, up to a mark or
// the line's end. Blanks at the beginning belong to the first piece.
func wrapPieces(line string) []string {
	var out []string
	for line != "" {
		start := len(line) - len(strings.TrimLeft(line, " "))
		rest := line[start:]
		if len(out) > 0 {
			line, start = rest, 0
		}
		end := strings.IndexByte(rest, ' ')
		if end < 0 {
			end = len(rest)
		}
		word := rest[:end]
		switch {
		case word == "tai" || word == "chmod" || strings.HasPrefix(word, "/") && strings.Count(word, "/") == 1:
			if stop := strings.IndexAny(rest, ";,:)"); stop < 0 {
				end = len(rest)
			} else {
				end = stop + 1
			}
		case word != "" && strings.IndexByte("'\"`", word[0]) >= 0:
			if closed := strings.IndexByte(rest[1:], word[0]); closed >= 0 {
				end = closed + 2
			}
		}
		if next := strings.IndexByte(rest[end:], ' '); next > 0 {
			end += next
		} else if next < 0 {
			end = len(rest)
		}
		if word != "" {
			out = append(out, line[:start+end])
		}
		line = rest[end:]
	}
	return out
}

// wrapWords lays a text out in lines of at most width columns, broken between words: the first line begins with head, the others with indent. A
// word that is wider than a line has one of its own.
func wrapWords(head, text, indent string, width int) string {
	var b strings.Builder
	line, used := head, textWidth(head)
	for i, word := range strings.Fields(text) {
		n := textWidth(word)
		switch {
		case i > 0 && used+1+n > width:
			b.WriteString(line + "\n")
			line, used = indent, textWidth(indent)
		case i > 0:
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	return b.String() + line + "\n"
}
