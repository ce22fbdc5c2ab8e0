package main

import (
	"strings"
	"testing"
)

// lineAfter types bytes into a line that begins as text and gives the text with the cursor as |, and the last deed.
func lineAfter(text, typed string, history ...string) (string, editDeed, *editLine) {
	l := newEditLine(text, func() []string { return history })
	var d keyDecoder
	deed := deedNone
	for _, k := range append(d.feed([]byte(typed)), d.flush()...) {
		if k.code == keyPaste {
			l.pasted(k.paste, k.tooLong)
			continue
		}
		if deed = l.press(k); deed == deedSend {
			break
		}
	}
	prompt, shown, cursor := l.view()
	return prompt + string(shown[:cursor]) + "|" + string(shown[cursor:]), deed, l
}

func TestLineKeys(t *testing.T) {
	t.Parallel()
	const (
		left, right, up, down, home, end, del = "\x1b[D", "\x1b[C", "\x1b[A", "\x1b[B", "\x1b[H", "\x1b[F", "\x1b[3~"
		pageUp, pageDown                      = "\x1b[5~", "\x1b[6~"
	)
	for _, tc := range []struct{ name, text, keys, want string }{
		{"typing", "", "abc", "abc|"},
		{"typing in the middle", "abd", left + "c", "abc|d"},
		{"Ctrl-B, Ctrl-F", "abcd", "\x02\x02\x02\x06X", "abX|cd"},
		{"Ctrl-A, Ctrl-E", "one", "\x01x\x05y", "xoney|"},
		{"Home, End", "one", home + "x" + end + "y", "xoney|"},
		{"start of a line of several", "one\ntwo", "\x01x", "one\nx|two"},
		{"Ctrl-Home, Ctrl-End", "one\ntwo", "\x1b[1;5Hx\x1b[1;5Fy", "xone\ntwoy|"},
		{"ends hold", "a", left + left + left + "x" + right + right + right + "y", "xay|"},
		{"Backspace", "a一e\u0301", "\x7f", "a一|"},
		{"Backspace twice", "a一e\u0301", "\x7f\x08", "a|"},
		{"Backspace takes a family", "x👨\u200d👩\u200d👧", "\x7f", "x|"},
		{"Backspace takes a flag", "🇩🇪🇫🇷", "\x7f", "🇩🇪|"},
		{"left over wide and joined", "一👍🏽e\u0301", left + left, "一|👍🏽e\u0301"},
		{"Delete", "abc", home + del + "\x04", "|c"},
		{"Ctrl-D at the end", "abc", "\x04", "abc|"},
		{"Alt-B, Alt-F", "one two-three", "\x1bb\x1bb\x1bfX", "one twoX|-three"},
		{"Ctrl-Left, Ctrl-Right", "one two", "\x1b[1;5D\x1b[1;5D\x1b[1;5CX", "oneX| two"},
		{"Alt-D", "one two", home + "\x1bd", "| two"},
		{"Alt-Backspace", "one two-three", "\x1b\x7f", "one two-|"},
		{"Ctrl-W", "one two-three ", "\x17", "one |"},
		{"Ctrl-K", "one two", home + "\x1bf\x0b", "one|"},
		{"Ctrl-K at a line's end", "one\ntwo", "\x1b[1;5H\x05\x0b", "one|two"},
		{"Ctrl-U", "one two", "\x1bb\x15", "|two"},
		{"Ctrl-U on the second line", "one\ntwo", "\x15", "one\n|"},
		{"Ctrl-Y", "one two", "\x17\x01\x19", "two|one "},
		{"kills in a row join", "one two three", "\x17\x17\x01\x19 ", "two three |one "},
		{"kills on both sides join", "one two three", "\x1bb\x17\x0b\x01\x19|", "two three||one "},
		{"kills apart do not", "one two", "\x17\x02\x05\x17\x19\x19", "one one |"},
		{"Ctrl-T", "abc", "\x14", "acb|"},
		{"Ctrl-T in the middle", "abcd", left + left + "\x14", "acb|d"},
		{"Ctrl-T with wide ones", "一e\u0301", "\x14", "e\u0301一|"},
		{"Ctrl-T at the start", "ab", home + "\x14", "|ab"},
		{"Ctrl-_ takes back a word", "", "one two\x1f", "one|"},
		{"Ctrl-_ twice", "", "one two\x1f\x1f", "|"},
		{"Ctrl-_ after a kill", "one two", "\x17\x1f", "one two|"},
		{"Ctrl-_ after a paste", "x", "\x1b[200~a\nb\x1b[201~\x1f", "x|"},
		{"Ctrl-X Ctrl-U", "", "one\x18\x15", "|"},
		{"Ctrl-J", "", "a\nb", "a\nb|"},
		{"Alt-Enter", "", "a\x1b\rb", "a\nb|"},
		{"Shift-Enter where it is sent", "", "a\x1b[13;2ub", "a\nb|"},
		{"backslash", "", "a\\\rb", "a\nb|"},
		{"two backslashes send", "", "a\\\\\rb", `a\\|`},
		{"a backslash elsewhere sends", "a\\", left + "\rb", `a|\`},
		{"up and down in the text", "one\ntwo\nthree", up + up + "X" + down + "Y", "oneX\ntwoY|\nthree"},
		{"up aims at the column", "long line\nx\nlonger line", "\x01" + right + right + right + right + right + up + up + "X", "long X|line\nx\nlonger line"},
		{"up over wide ones", "一二三\nabcdef", left + up + "X", "一二X|三\nabcdef"},
		{"up from the first line", "one", up, "/last|"},
		{"history and back", "typed", up + up + down + down, "typed|"},
		{"history keeps edits", "typed", up + "X" + up + down, "/lastX|"},
		{"history ends", "", up + up + up + up + up, "first|\nlines"},
		{"into a text of several lines", "", up + up + up + "X" + up + "Y", "firstY|\nlinesX"},
		{"Ctrl-P, Ctrl-N", "t", "\x10\x10\x0e", "/last|"},
		{"Page up, page down", "t\nu", pageUp + pageUp + pageDown, "/last|"},
		{"Alt-<", "t", "\x1b<", "first\nlines|"},
		{"Alt->", "t", "\x1b<\x1b>", "t|"},
		{"Alt-.", "say ", "\x1b.", "say /last|"},
		{"Alt-. again", "say ", "\x1b.\x1b.!", "say word!|"},
		{"Alt-. beyond the first", "", "\x1b.\x1b.\x1b.\x1b.\x1b.", "lines|"},
		{"Ctrl-R", "t", "\x12se", "search 'se': a |second word"},
		{"Ctrl-R ignores case", "t", "\x12SECOND", "search 'SECOND': a |second word"},
		{"Ctrl-R again", "t", "\x12s\x12", "search 's': a |second word"},
		{"Ctrl-R again and again", "t", "\x12s\x12\x12", "search 's': fir|st\nlines"},
		{"Ctrl-S", "t", "\x12s\x12\x12\x13", "search 's': a |second word"},
		{"Ctrl-R without a match", "t", "\x12last\x12", "no match 'last': /|last"},
		{"Ctrl-R, nothing found", "t", "\x12zzz", "no match 'zzz': t|"},
		{"Ctrl-R Backspace", "t", "\x12lasx\x7f", "search 'las': /|last"},
		{"Ctrl-R Ctrl-G", "typ|ed", "\x12se\x07", "typ|ed|"},
		{"Ctrl-R Esc", "typed", "\x12se\x1b", "typed|"},
		{"Ctrl-R Ctrl-C", "typed", "\x12se\x03", "typed|"},
		{"Ctrl-R and on with the match", "t", "\x12se\x05!", "a second word!|"},
		{"Ctrl-R and to the right", "t", "\x12se" + right + "X", "a sX|econd word"},
		{"Ctrl-R Enter", "t", "\x12se\r", "a |second word"},
		{"Ctrl-R nothing found, Enter", "typed", "\x12zzz\r", "typed|"},
		{"paste", "ab", left + "\x1b[200~1\r\n2\x1b[201~", "a1\n2|b"},
		{"paste into a search", "t", "\x12\x1b[200~sec\x1b[201~", "search 'sec': a |second word"},
		{"nothing for what means nothing", "a", "\x1b[99~\x1bOP\x1b[24~\x0f\x11\x16\x1bz", "a|"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _, _ := lineAfter(tc.text, tc.keys, "first\nlines", "a second word", "/last")
			if got != tc.want {
				t.Errorf("%q then %q: got %q, want %q", tc.text, tc.keys, got, tc.want)
			}
		})
	}
}

func TestLineDeeds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text, keys string
		want             editDeed
	}{
		{"Enter", "a", "\r", deedSend}, {"Enter with nothing", "", "\r", deedSend}, {"Enter in a search", "a", "\x12x\r", deedSend},
		{"Ctrl-D", "", "\x04", deedEnd}, {"Ctrl-D with text", "a", "\x04", deedNone},
		{"Ctrl-C", "", "\x03", deedInterrupt}, {"Ctrl-C with text", "a", "\x03", deedCancel}, {"Ctrl-C in a search", "a", "\x12\x03", deedNone},
		{"Ctrl-Z", "a", "\x1a", deedSuspend}, {"Ctrl-L", "a", "\x0c", deedClear}, {"Ctrl-X Ctrl-E", "a", "\x18\x05", deedOutside}, {"Tab", "a", "\t", deedComplete},
	} {
		if _, got, _ := lineAfter(tc.text, tc.keys); got != tc.want {
			t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
		}
	}
}

// What does not fit is refused with a word, and the text stays as it was.
func TestLineBounds(t *testing.T) {
	t.Parallel()
	_, _, l := lineAfter("kept", "\x1b[200~"+strings.Repeat("x", editPasteMax+1)+"\x1b[201~")
	if l.buf.String() != "kept" || !strings.Contains(l.told, "1 MiB") {
		t.Errorf("a long paste: %d bytes, told %q", len(l.buf.text), l.told)
	}
	paste := "\x1b[200~" + strings.Repeat("x", editPasteMax) + "\x1b[201~"
	if _, _, l = lineAfter("", paste); len(l.buf.text) != editPasteMax || l.told != "" {
		t.Errorf("a paste of the bound: %d bytes, told %q", len(l.buf.text), l.told)
	}
	_, _, l = lineAfter("", paste+paste+"y")
	if len(l.buf.text) != 2*editPasteMax || !strings.Contains(l.told, "full") {
		t.Errorf("beyond the whole: %d bytes, told %q", len(l.buf.text), l.told)
	}
}

// Undo goes back through everything, to the empty line.
func TestLineUndoAll(t *testing.T) {
	t.Parallel()
	got, _, l := lineAfter("", "one two 一二\x17\x19\x14\x1b[Dx\x1b[200~p\x1b[201~\x01\x0b")
	if got != "|" {
		t.Fatalf("before: %q", got)
	}
	for range 100 {
		l.buf.takeBack()
	}
	if l.buf.String() != "" || len(l.buf.undo) != 0 || l.buf.undoSize != 0 {
		t.Errorf("left: %q, %d steps of %d", l.buf.String(), len(l.buf.undo), l.buf.undoSize)
	}
}

// Whatever keys come, the cursor stands between two clusters and nothing breaks.
func FuzzLine(f *testing.F) {
	for _, s := range []string{"a一\x02\x14", "e\u0301\x02\u0301", "🇩🇪🇫\x02🇷\x7f", "a\nb\x1b[A\x1b[B", "\x12s\x12\x13\x07", "x\x17\x19\x1f\x1b.", "\x1b[200~a\r\nb\x1b[201~\x1b[A"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, keys string) {
		_, _, l := lineAfter("한\u200d👨", keys, "one", "e\u0301 two", "th\nree")
		at, b := 0, &l.buf
		for at < b.cursor {
			at = b.next(at)
		}
		if at != b.cursor || b.cursor > len(b.text) {
			t.Errorf("%q: the cursor is at %d of %q", keys, b.cursor, b.String())
		}
	})
}
