// This file says what each key does to the line being edited: the Emacs-like keys, history, search, words of earlier lines. It knows no
// terminal: what needs one is handed back as a deed.
package main

import (
	"slices"
	"strings"
)

// editDeed is what a key asks of whoever has the terminal.
type editDeed int

const (
	deedNone      editDeed = iota
	deedSend               // the line is complete
	deedEnd                // end of input in an empty line
	deedInterrupt          // Ctrl-C in an empty line
	deedCancel             // Ctrl-C: a new prompt below what was typed
	deedSuspend            // Ctrl-Z
	deedClear              // Ctrl-L
	deedOutside            // Ctrl-X Ctrl-E: the text goes to an editor
	deedComplete           // Tab
)

// editKeysHelp is the keys as /help shows them.
func editKeysHelp() [][2]string {
	return [][2]string{
		{"Enter", `send; Ctrl-J, Alt-Enter or \ before Enter begin a new line`},
		{"Tab", "complete commands, flags, names, files after @; twice lists them"},
		{"Up Down, Ctrl-P Ctrl-N", "move between lines, then through the history"},
		{"Ctrl-R, Ctrl-S", "search the history; Enter sends, Ctrl-G or Esc ends it"},
		{"Ctrl-A Ctrl-E, Home End", "start and end of the line"},
		{"Alt-B Alt-F, Ctrl-Left Ctrl-Right", "one word back or on"},
		{"Ctrl-W, Alt-Backspace, Alt-D", "cut the word before or after the cursor"},
		{"Ctrl-K Ctrl-U Ctrl-Y", "cut to the end or the start of the line, put back"},
		{"Ctrl-T, Ctrl-_, Alt-.", "swap characters, undo, last word of an earlier line"},
		{"Ctrl-X Ctrl-E, /edit", "write the text in $VISUAL or $EDITOR"},
		{"Ctrl-C", "clear the line, end what runs; twice at an empty prompt leaves"},
		{"Ctrl-D, Ctrl-Z, Ctrl-L", "leave at an empty prompt, stop (fg goes on), clear the screen"},
	}
}

// editLine is one line from the first key to the last. recall gives the history, oldest first, when it is first needed.
type editLine struct {
	buf    editBuffer
	recall func() []string

	entries []string       // of the history, once recalled
	known   bool           // entries were recalled
	at      int            // entry shown; len(entries) is the line itself
	edits   map[int]string // what became of entries, and of the line, that were left
	search  *historySearch // while a search is on
	prefixX bool           // Ctrl-X was pressed
	tabs    int            // Tab presses in a row
	lastArg int            // entries back that the last Alt-. looked; 0: the last key was none
	argSpan int            // runes that it put in
	told    string         // a sentence for the person, taken by whoever has the screen
}

//go:noinline for size: it is called in many places
func newEditLine(text string, recall func() []string) *editLine {
	l := &editLine{recall: recall, edits: map[int]string{}}
	l.buf.reset(text)
	return l
}

// history recalls the entries once; the line itself is the place after the last.
func (l *editLine) history() []string {
	if !l.known {
		l.entries, l.known = slices.Clone(l.recall()), true
		l.at = len(l.entries)
	}
	return l.entries
}

// view gives what is to be shown instead of the prompt, and the text and cursor; prompt is "" where no search is on.
func (l *editLine) view() (prompt string, text []rune, cursor int) {
	if l.search == nil {
		return "", l.buf.text, l.buf.cursor
	}
	prompt = "search '" + l.search.query + "': "
	if l.search.failed {
		prompt = "no match '" + l.search.query + "': "
	}
	if line, at, ok := l.search.match(); ok {
		return prompt, []rune(line), at
	}
	return prompt, l.buf.text, l.buf.cursor
}

// typed inserts characters that came together.
func (l *editLine) typed(text []rune) {
	if l.search != nil {
		l.search.query += string(text)
		l.search.find(min(l.search.at, len(l.search.entries)-1), true)
		return
	}
	l.rest()
	ok := true
	if len(text) == 1 {
		ok = l.buf.typeRune(text[0])
	} else {
		ok = l.buf.insert(text)
	}
	l.tellFull(ok)
}

// pasted inserts a pasted text as it is: its line ends do not send.
func (l *editLine) pasted(b []byte, tooLong bool) {
	text := cleanRunes(b)
	if tooLong {
		l.told = "the pasted text has more than 1 MiB and was left out; put it in a file and name the file"
		return
	}
	if l.search != nil && !slices.Contains(text, '\n') {
		l.typed(text)
		return
	}
	l.acceptMatch()
	l.rest()
	l.tellFull(l.buf.insert(text))
}

func (l *editLine) tellFull(ok bool) {
	if !ok {
		l.told = "the text is full; put it in a file and name the file"
	}
}

// rest ends what only a run of the same key keeps going.
func (l *editLine) rest() { l.prefixX, l.tabs, l.lastArg = false, 0, 0 }

// press does what a key stands for.
func (l *editLine) press(k key) editDeed {
	if l.search != nil {
		if deed, done := l.searchKey(k); done {
			return deed
		}
	}
	prefix, tabs, lastArg := l.prefixX, l.tabs, l.lastArg
	l.rest()
	if prefix {
		return l.afterX(k)
	}
	if k.code == keyTab && k.mods == 0 {
		l.tabs = tabs + 1
		return deedComplete
	}
	if k.code == keyRune && k.mods == modAlt && (k.r == '.' || k.r == '_') {
		l.lastWord(lastArg)
		return deedNone
	}
	switch {
	case k.code == keyRune && k.mods == 0:
		l.typed([]rune{k.r})
	case k.code == keyRune && k.mods == modCtrl:
		return l.controlKey(k.r)
	case k.code == keyRune && k.mods == modAlt:
		l.altKey(k.r)
	default:
		return l.namedKey(k)
	}
	return deedNone
}

func (l *editLine) afterX(k key) editDeed {
	if k.code != keyRune || k.mods != modCtrl {
		return deedNone
	}
	switch k.r {
	case 'e':
		return deedOutside
	case 'u':
		l.buf.takeBack()
	}
	return deedNone
}

func (l *editLine) controlKey(r rune) editDeed {
	b := &l.buf
	switch r {
	case 'a':
		b.moveTo(b.lineStart(b.cursor))
	case 'e':
		b.moveTo(b.lineEnd(b.cursor))
	case 'b':
		b.moveTo(b.previous(b.cursor))
	case 'f':
		b.moveTo(b.next(b.cursor))
	case 'p':
		l.up()
	case 'n':
		l.down()
	case 'h':
		b.deleteTo(b.previous(b.cursor))
	case 'j':
		l.typed([]rune{'\n'})
	case 'k':
		b.killLine()
	case 'u':
		b.killTo(b.lineStart(b.cursor))
	case 'w':
		b.killTo(b.blankWordStart(b.cursor))
	case 'y':
		l.tellFull(b.yank())
	case 't':
		b.transpose()
	case '_':
		b.takeBack()
	case 'r', 's':
		l.search = &historySearch{entries: l.history(), at: len(l.history())}
	case 'x':
		l.prefixX = true
	case 'l':
		return deedClear
	case 'z':
		return deedSuspend
	case 'c':
		if len(b.text) == 0 {
			return deedInterrupt
		}
		return deedCancel
	case 'd':
		if len(b.text) == 0 {
			return deedEnd
		}
		b.deleteTo(b.next(b.cursor))
	}
	return deedNone
}

func (l *editLine) altKey(r rune) {
	b := &l.buf
	switch r {
	case 'b', 'B':
		b.moveTo(b.wordStart(b.cursor))
	case 'f', 'F':
		b.moveTo(b.wordEnd(b.cursor))
	case 'd', 'D':
		b.killTo(b.wordEnd(b.cursor))
	case '<':
		l.goTo(0)
	case '>':
		l.goTo(len(l.history()))
	}
}

func (l *editLine) namedKey(k key) editDeed {
	b, word := &l.buf, k.mods&(modCtrl|modAlt) != 0
	switch k.code {
	case keyEnter:
		return l.enter(k.mods)
	case keyBackspace:
		if word {
			b.killTo(b.wordStart(b.cursor))
		} else {
			b.deleteTo(b.previous(b.cursor))
		}
	case keyDelete:
		if word {
			b.killTo(b.wordEnd(b.cursor))
		} else {
			b.deleteTo(b.next(b.cursor))
		}
	case keyLeft:
		if word {
			b.moveTo(b.wordStart(b.cursor))
		} else {
			b.moveTo(b.previous(b.cursor))
		}
	case keyRight:
		if word {
			b.moveTo(b.wordEnd(b.cursor))
		} else {
			b.moveTo(b.next(b.cursor))
		}
	case keyHome:
		if word {
			b.moveTo(0)
		} else {
			b.moveTo(b.lineStart(b.cursor))
		}
	case keyEnd:
		if word {
			b.moveTo(len(b.text))
		} else {
			b.moveTo(b.lineEnd(b.cursor))
		}
	case keyUp:
		l.up()
	case keyDown:
		l.down()
	case keyPageUp:
		l.goTo(l.place() - 1)
	case keyPageDown:
		l.goTo(l.place() + 1)
	}
	return deedNone
}

// enter sends, or begins a new line: with a modifier, or behind a backslash that is not itself escaped.
func (l *editLine) enter(mods keyMods) editDeed {
	if mods != 0 {
		l.typed([]rune{'\n'})
		return deedNone
	}
	text, slashes := l.buf.text, 0
	for slashes < len(text) && text[len(text)-1-slashes] == '\\' {
		slashes++
	}
	if slashes%2 == 1 && l.buf.cursor == len(text) {
		l.buf.replace(len(text)-1, len(text), []rune{'\n'})
		return deedNone
	}
	return deedSend
}

func (l *editLine) up() {
	if !l.buf.vertical(true) {
		l.goTo(l.place() - 1)
	}
}

func (l *editLine) down() {
	if !l.buf.vertical(false) {
		l.goTo(l.place() + 1)
	}
}

func (l *editLine) place() int {
	l.history()
	return l.at
}

// goTo shows another entry; what was made of the one left is kept until the line is done.
func (l *editLine) goTo(i int) {
	entries := l.history()
	if i < 0 || i > len(entries) || i == l.at {
		return
	}
	if text := l.buf.String(); l.at == len(entries) || text != entries[l.at] {
		l.edits[l.at] = text
	}
	text, edited := l.edits[i]
	if !edited && i < len(entries) {
		text = entries[i]
	}
	l.at = i
	l.buf.reset(text)
}

// lastWord puts in the last word of the entry before, and with each further press that of an earlier one instead.
func (l *editLine) lastWord(back int) {
	entries := l.history()
	for i := len(entries) - 1 - back; i >= 0; i-- {
		words := strings.Fields(entries[i])
		if len(words) == 0 {
			continue
		}
		word := []rune(words[len(words)-1])
		from := l.buf.cursor
		if back > 0 {
			from = max(0, from-l.argSpan)
		}
		l.buf.replace(from, l.buf.cursor, word)
		l.lastArg, l.argSpan = len(entries)-i, len(word)
		return
	}
	l.lastArg = back
}

// searchKey handles a key while a search is on; done is false where the key ends the search and is still to be done.
func (l *editLine) searchKey(k key) (deed editDeed, done bool) {
	s := l.search
	ctrl := k.code == keyRune && k.mods == modCtrl
	switch {
	case ctrl && k.r == 'r':
		s.find(s.at-1, true)
	case ctrl && k.r == 's':
		s.find(s.at+1, false)
	case k.code == keyRune && k.mods == 0:
		l.typed([]rune{k.r})
	case k.code == keyBackspace, ctrl && k.r == 'h':
		query := []rune(s.query)
		if len(query) == 0 {
			return deedNone, true
		}
		*s = historySearch{entries: s.entries, at: len(s.entries), query: string(query[:len(query)-1])}
		s.find(len(s.entries)-1, true)
	case ctrl && (k.r == 'g' || k.r == 'c'), k.code == keyEsc:
		l.search = nil
	default:
		l.acceptMatch()
		return deedNone, false
	}
	return deedNone, true
}

// acceptMatch ends a search with what it has found.
func (l *editLine) acceptMatch() {
	s := l.search
	if s == nil {
		return
	}
	l.search = nil
	line, at, ok := s.match()
	if !ok {
		return
	}
	l.goTo(s.at)
	if l.buf.String() == line {
		l.buf.moveTo(at)
	}
}
