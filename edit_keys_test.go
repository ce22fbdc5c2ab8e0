package main

import (
	"fmt"
	"strings"
	"testing"
)

// keyName writes a key for a table: C-a, M-left, paste(…).
func keyName(k key) string {
	names := map[keyCode]string{keyEnter: "enter", keyTab: "tab", keyBackspace: "backspace", keyDelete: "delete", keyInsert: "insert", keyUp: "up", keyDown: "down",
		keyLeft: "left", keyRight: "right", keyHome: "home", keyEnd: "end", keyPageUp: "pageup", keyPageDown: "pagedown", keyEsc: "esc"}
	mods := ""
	for _, m := range []struct {
		bit  keyMods
		name string
	}{{modCtrl, "C-"}, {modAlt, "M-"}, {modShift, "S-"}} {
		if k.mods&m.bit != 0 {
			mods += m.name
		}
	}
	switch k.code {
	case keyRune:
		return mods + string(k.r)
	case keyPaste:
		if k.tooLong {
			return "paste too long"
		}
		return fmt.Sprintf("paste(%q)", k.paste)
	}
	return mods + names[k.code]
}

func keyNames(keys []key) string {
	var out []string
	for _, k := range keys {
		out = append(out, keyName(k))
	}
	return strings.Join(out, " ")
}

func TestKeyDecoder(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"letters", "aé一😀", "a é 一 😀"},
		{"control", "\x01\x1a\x1f\x00\t\r\n\x7f\x08", "C-a C-z C-_ C-  tab enter C-j backspace backspace"},
		{"not UTF-8", "a\xffb\xc3(", "a � b � ("},
		{"C1", "a\u009bb", "a b"},
		{"alt", "\x1bb\x1b.\x1b\x7f\x1b\r\x1b\n\x1bé", "M-b M-. M-backspace M-enter C-M-j M-é"},
		{"xterm arrows", "\x1b[A\x1b[B\x1b[C\x1b[D\x1b[H\x1b[F", "up down right left home end"},
		{"application arrows", "\x1bOA\x1bOB\x1bOC\x1bOD\x1bOH\x1bOF", "up down right left home end"},
		{"xterm modifiers", "\x1b[1;5C\x1b[1;3D\x1b[1;2A\x1b[1;6H\x1b[1;9D\x1b[3;5~", "C-right M-left S-up C-S-home M-left C-delete"},
		{"vt220, Linux console", "\x1b[1~\x1b[2~\x1b[3~\x1b[4~\x1b[5~\x1b[6~", "home insert delete end pageup pagedown"},
		{"rxvt", "\x1b[7~\x1b[8~\x1bOd\x1bOc\x1b[d\x1b[3^\x1b[3$x\x1b[7@", "home end C-left C-right S-left C-delete S-delete x C-S-home"},
		{"rxvt Alt", "\x1b\x1b[D\x1b\x1bOA\x1b\x1b[3~", "M-left M-up M-delete"},
		{"PuTTY", "\x1b[1~\x1b[4~\x1bOD\x1b[5D", "home end left C-left"},
		{"Windows", "\x1b[1;5A\x1b[Z\x7f", "C-up S-tab backspace"},
		{"CSI u", "\x1b[13;2u\x1b[13u\x1b[97;5u\x1b[127;5u\x1b[27u\x1b[9;2u\x1b[57399u\x1b[65;6u", "S-enter enter C-a C-backspace esc S-tab C-S-a"},
		{"modifyOtherKeys", "\x1b[27;2;13~\x1b[27;5;9~", "S-enter C-tab"},
		{"keypad", "\x1bOM\x1bOq\x1bOk\x1bO5C", "enter 1 + C-right"},
		{"function keys", "\x1bOP\x1b[15~\x1b[24;2~\x1b[[A\x1b[[Ex\x1b[1;2P", "x"},
		{"reports", "\x1b[?1;2c\x1b[>0;1;2c\x1b[12;40R\x1b[?2026;2$y\x1b[I\x1b[O\x1b[0nx", "x"},
		{"mouse", "\x1b[M !!\x1b[<0;10;5M\x1b[<0;10;5mx", "x"},
		{"OSC and DCS", "\x1b]11;rgb:0000/0000/0000\x1b\\a\x1b]0;title\x07b\x1bP1$r0m\x1b\\c\x1b_app\x1b\\d", "a b c d"},
		{"OSC broken by a sequence", "\x1b]0;t\x1b[Ax", "up x"},
		{"unknown sequences", "\x1b[99~\x1b[1;2;3;4Q\x1b[!p\x1b[ qa", "a"},
		{"a sequence broken off", "\x1b[1;\x1b[Aa\x1b[\rb", "up a enter b"},
		{"a sequence without end", "\x1b[" + strings.Repeat("1;", 60), ""},
		{"paste", "x\x1b[200~one\r\ntwo \x1b[A\x03\x1b[201~y", `x paste("one\r\ntwo \x1b[A\x03") y`},
		{"paste with a begin mark inside", "\x1b[200~a\x1b[200~b\x1b[201~", `paste("a\x1b[200~b")`},
		{"empty paste", "\x1b[200~\x1b[201~", `paste("")`},
		{"end mark alone", "\x1b[201~a", "a"},
		{"too long a paste", "\x1b[200~" + strings.Repeat("x", editPasteMax+1) + "\x1b[201~y", "paste too long y"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var d keyDecoder
			if got := keyNames(d.feed([]byte(tc.in))); got != tc.want {
				t.Errorf("whole: got %q, want %q", got, tc.want)
			}
			if len(tc.in) > 1000 {
				return
			}
			var bytewise keyDecoder // cut everywhere
			var keys []key
			for i := range len(tc.in) {
				keys = append(keys, bytewise.feed([]byte{tc.in[i]})...)
			}
			if got := keyNames(keys); got != tc.want {
				t.Errorf("byte by byte: got %q, want %q", got, tc.want)
			}
		})
	}
}

// What is unfinished is a key, or nothing, once no more comes; the next key is whole again.
func TestKeyDecoderFlush(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"\x1b", "esc"}, {"\x1b\x1b", "esc esc"}, {"\x1b[", "M-["}, {"\x1bO", "M-O"}, {"\x1b]", "M-]"}, {"\x1b[1;5", ""}, {"\x1b]0;half a title", ""},
		{"\xe4\xb8", "�"}, {"\x1b[200~no end", `paste("no end")`}, {"\x1b[200~no end\x1b[20", `paste("no end\x1b[20")`}, {"", ""},
	} {
		var d keyDecoder
		if got := d.feed([]byte(tc.in)); len(got) > 0 {
			t.Errorf("%q gives %q before its end", tc.in, keyNames(got))
		}
		if d.pending() != (tc.in != "") {
			t.Errorf("%q: pending is %v", tc.in, d.pending())
		}
		if got := keyNames(d.flush()); got != tc.want {
			t.Errorf("%q: flush gives %q, want %q", tc.in, got, tc.want)
		}
		if got := keyNames(d.feed([]byte("a\x1b[A"))); got != "a up" || d.pending() {
			t.Errorf("after %q come %q", tc.in, got)
		}
	}
}

func FuzzKeyDecoder(f *testing.F) {
	for _, s := range []string{"a\x1b[A", "\x1b[200~x\x1b[201~", "\x1b]0;t\x07", "\x1b\x1b[D\xe4\xb8\x80", "\x1bOM\x1b[M !!"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		var whole, parts keyDecoder
		want := keyNames(append(whole.feed(b), whole.flush()...))
		cut = max(0, min(cut, len(b)))
		got := keyNames(append(append(parts.feed(b[:cut]), parts.feed(b[cut:])...), parts.flush()...))
		if got != want {
			t.Errorf("cut at %d: got %q, want %q", cut, got, want)
		}
		if whole.pending() {
			t.Error("pending after flush")
		}
	})
}
