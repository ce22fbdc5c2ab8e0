// This file turns the bytes of a terminal into keys: UTF-8, control characters, the sequences that xterm, the Linux console, tmux, rxvt,
// PuTTY and Windows send, and pasted text in its brackets. It does no I/O and keeps no time: who reads says when nothing more came.
package main

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// keyCode names a key. keyRune stands for a character, with the letter in key.r.
type keyCode int

const (
	keyNone keyCode = iota // a sequence that means nothing here
	keyRune
	keyPaste
	keyEnter
	keyTab
	keyBackspace
	keyDelete
	keyInsert
	keyUp
	keyDown
	keyLeft
	keyRight
	keyHome
	keyEnd
	keyPageUp
	keyPageDown
	keyEsc
)

// keyMods are the modifiers held, in xterm's bits.
type keyMods int

const (
	modShift keyMods = 1 << iota
	modAlt
	modCtrl
)

// key is one key press, or one pasted text. Ctrl-A is keyRune 'a' with modCtrl.
type key struct {
	code    keyCode
	r       rune
	mods    keyMods
	paste   []byte // as it came
	tooLong bool   // the paste was over editPasteMax and is left out
}

const (
	editPasteMax   = 1 << 20 // bytes of one pasted text; a longer one is refused whole
	keySequenceMax = 64      // bytes of an escape sequence, beyond which it is noise
	ss3Max         = 8       // bytes before the letter of ESC O
)

// keyDecoder holds what the last bytes have begun. The zero value is ready.
type keyDecoder struct {
	held    []byte // an unfinished character or sequence
	text    []byte // of a paste that has begun
	pasting bool
	over    bool // the paste is too long
	quoting bool // inside a string sequence (OSC, DCS …), which is swallowed to its end
	noise   bool // inside a sequence that is too long, which is swallowed to its end
}

const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// feed takes bytes and gives the keys that they complete.
func (d *keyDecoder) feed(b []byte) []key {
	var out []key
	d.held = append(d.held, b...)
	for len(d.held) > 0 {
		var n int
		var k key
		inside := d.quoting || d.noise
		switch {
		case d.pasting:
			n, k = d.pasted()
		case d.quoting:
			n = d.quoted()
		case d.noise:
			n = d.swallowed()
		default:
			n, k = d.next(d.held)
		}
		if n == 0 && inside == (d.quoting || d.noise) { // else what broke a sequence off is read anew
			break
		}
		d.held = d.held[n:]
		if k.code != keyNone {
			out = append(out, k)
		}
	}
	if len(d.held) == 0 {
		d.held = nil
	}
	return out
}

// pending reports an unfinished character, sequence or paste: after a while without input, flush says what it was.
func (d *keyDecoder) pending() bool { return len(d.held) > 0 || d.pasting || d.quoting || d.noise }

// flush ends what is unfinished because nothing more comes: a lone ESC is a key, a cut character is replaced, the rest is dropped.
func (d *keyDecoder) flush() []key {
	held := d.held
	d.held, d.quoting, d.noise = nil, false, false
	if d.pasting {
		k := key{code: keyPaste, paste: append(d.text, held...), tooLong: d.over}
		d.pasting, d.text, d.over = false, nil, false
		return []key{k}
	}
	switch {
	case len(held) == 0:
		return nil
	case held[0] != 0x1b:
		return []key{{code: keyRune, r: utf8.RuneError}}
	case len(held) == 1:
		return []key{{code: keyEsc}}
	case len(held) == 2 && held[1] == 0x1b:
		return []key{{code: keyEsc}, {code: keyEsc}}
	case len(held) == 2: // Alt with a key that also begins a sequence
		return []key{{code: keyRune, r: rune(held[1]), mods: modAlt}}
	}
	return nil
}

// pasted takes what belongs to the paste. The end mark may be cut in two.
func (d *keyDecoder) pasted() (int, key) {
	if i := bytes.Index(d.held, []byte(pasteEnd)); i >= 0 {
		d.keepPasted(d.held[:i])
		k := key{code: keyPaste, paste: d.text, tooLong: d.over}
		d.pasting, d.text, d.over = false, nil, false
		return i + len(pasteEnd), k
	}
	keep := 0
	for n := min(len(d.held), len(pasteEnd)-1); n > 0; n-- {
		if strings.HasPrefix(pasteEnd, string(d.held[len(d.held)-n:])) {
			keep = n
			break
		}
	}
	n := len(d.held) - keep
	d.keepPasted(d.held[:n])
	return n, key{}
}

//go:noinline for size: it is called in many places
func (d *keyDecoder) keepPasted(b []byte) {
	if d.over = d.over || len(d.text)+len(b) > editPasteMax; d.over {
		d.text = nil
		return
	}
	d.text = append(d.text, b...)
}

// quoted swallows a string sequence up to BEL or ST. CAN and SUB end it too.
func (d *keyDecoder) quoted() int {
	i := bytes.IndexAny(d.held, "\x07\x18\x1a\x1b")
	if i < 0 {
		return len(d.held)
	}
	if d.held[i] == 0x1b && i+1 == len(d.held) {
		return i
	}
	d.quoting = false
	if d.held[i] == 0x1b && d.held[i+1] != '\\' {
		return i // another sequence begins; it ends this one
	}
	if d.held[i] == 0x1b {
		return i + 2
	}
	return i + 1
}

// swallowed takes the rest of a sequence that is too long.
func (d *keyDecoder) swallowed() int {
	for i, c := range d.held {
		if c >= 0x40 && c <= 0x7e {
			d.noise = false
			return i + 1
		}
		if c < 0x20 || c >= 0x7f {
			d.noise = false
			return i
		}
	}
	return len(d.held)
}

// next reads one key off b; 0 says that more bytes are needed.
func (d *keyDecoder) next(b []byte) (int, key) {
	c := b[0]
	switch {
	case c == 0x1b:
		return d.escape(b)
	case c >= utf8.RuneSelf:
		if !utf8.FullRune(b) {
			return 0, key{}
		}
		r, n := utf8.DecodeRune(b)
		if r >= 0x80 && r <= 0x9f { // C1 controls
			return n, key{}
		}
		return n, key{code: keyRune, r: r}
	}
	return 1, controlKey(c)
}

// controlKey names an ASCII character that came alone.
func controlKey(c byte) key {
	switch {
	case c == '\r':
		return key{code: keyEnter}
	case c == '\t':
		return key{code: keyTab}
	case c == 0x7f, c == '\b':
		return key{code: keyBackspace}
	case c == 0:
		return key{code: keyRune, r: ' ', mods: modCtrl}
	case c <= 0x1a:
		return key{code: keyRune, r: rune(c) + 'a' - 1, mods: modCtrl}
	case c < 0x20:
		return key{code: keyRune, r: rune(c) + '@', mods: modCtrl}
	}
	return key{code: keyRune, r: rune(c)}
}

// escape reads what follows an ESC.
func (d *keyDecoder) escape(b []byte) (int, key) {
	if len(b) == 1 {
		return 0, key{}
	}
	switch c := b[1]; c {
	case '[':
		return d.csi(b)
	case 'O':
		return ss3(b)
	case ']', 'P', '_', '^', 'X':
		if len(b) == 2 {
			return 0, key{}
		}
		d.quoting = true
		return 2, key{}
	case 0x1b:
		if len(b) == 2 {
			return 0, key{}
		}
		if b[2] == '[' || b[2] == 'O' { // rxvt and PuTTY send Alt as one more ESC
			n, k := d.escape(b[1:])
			if n == 0 {
				return 0, key{}
			}
			if k.code != keyNone && k.code != keyPaste {
				k.mods |= modAlt
			}
			return n + 1, k
		}
		return 1, key{code: keyEsc}
	}
	n, k := d.next(b[1:])
	if n == 0 {
		return 0, key{}
	}
	if k.code != keyNone {
		k.mods |= modAlt
	}
	return n + 1, k
}

// csi reads ESC [ parameters intermediates final (ECMA-48 5.4).
func (d *keyDecoder) csi(b []byte) (int, key) {
	if len(b) > 2 && b[2] == '[' { // the Linux console's F1 to F5
		if len(b) == 3 {
			return 0, key{}
		}
		return 4, key{}
	}
	for i := 2; i < len(b); i++ {
		if i == keySequenceMax {
			d.noise = true
			return i, key{}
		}
		switch c := b[i]; {
		case c == '$' && rxvtShift(b[2:i]), c >= 0x40 && c <= 0x7e:
			return d.csiKey(b[2:i], c, b, i+1)
		case c < 0x20 || c >= 0x7f: // broken off; what broke it is read anew
			return i, key{}
		}
	}
	return 0, key{}
}

// rxvtShift reports parameters after which rxvt's $ is a final byte, as in ESC [ 3 $.
func rxvtShift(params []byte) bool {
	return len(params) > 0 && len(bytes.Trim(params, "0123456789")) == 0
}

func (d *keyDecoder) csiKey(params []byte, final byte, b []byte, n int) (int, key) {
	if final == 'M' && len(params) == 0 { // an old mouse report: three bytes more
		if len(b) < n+3 {
			return 0, key{}
		}
		return n + 3, key{}
	}
	if len(bytes.Trim(params, "0123456789;:")) > 0 {
		return n, key{} // a report or a private sequence
	}
	num := csiNumbers(params)
	mods := csiMods(num)
	switch final {
	case '~', '^', '$', '@':
		if num[0] == 200 && final == '~' {
			d.pasting = true
			return n, key{}
		}
		if num[0] == 27 && len(num) >= 3 { // xterm's modifyOtherKeys
			return n, codeKey(num[2], mods)
		}
		switch final { // rxvt tells the modifiers by the last byte
		case '^':
			mods |= modCtrl
		case '$':
			mods |= modShift
		case '@':
			mods |= modCtrl | modShift
		}
		return n, withMods(tildeKey(num[0]), mods)
	case 'u':
		return n, codeKey(num[0], mods)
	case 'Z':
		return n, key{code: keyTab, mods: mods | modShift}
	}
	if len(num) == 1 && num[0] > 1 && final != 'P' { // PuTTY and old xterms: ESC [ 5 C
		mods = modBits(num[0])
	}
	return n, letterKey(final, mods)
}

// csiNumbers reads parameters; a missing one is 0. Sub-parameters after a colon are left out.
func csiNumbers(params []byte) []int {
	var out []int
	for part := range strings.SplitSeq(string(params), ";") {
		part, _, _ = strings.Cut(part, ":")
		n, err := strconv.Atoi(part)
		if err != nil || n > utf8.MaxRune {
			n = 0
		}
		out = append(out, n)
	}
	return out
}

// csiMods takes the modifiers from the second parameter.
func csiMods(num []int) keyMods {
	if len(num) < 2 {
		return 0
	}
	return modBits(num[1])
}

// modBits decodes xterm's number of modifiers: 1 plus shift 1, Alt 2, Ctrl 4, Meta 8.
func modBits(n int) keyMods {
	if n < 2 {
		return 0
	}
	m := keyMods(n-1) & (modShift | modAlt | modCtrl)
	if (n-1)&8 != 0 {
		m |= modAlt
	}
	return m
}

// tildeKey names the keys of ESC [ number ~ in the numberings of vt220, rxvt and the Linux console.
func tildeKey(n int) keyCode {
	switch n {
	case 1, 7:
		return keyHome
	case 2:
		return keyInsert
	case 3:
		return keyDelete
	case 4, 8:
		return keyEnd
	case 5:
		return keyPageUp
	case 6:
		return keyPageDown
	}
	return keyNone
}

// letterKey names the keys of ESC [ letter and ESC O letter. rxvt writes the letters of arrows small for shift and Ctrl.
func letterKey(c byte, mods keyMods) key {
	switch c {
	case 'A':
		return key{code: keyUp, mods: mods}
	case 'B':
		return key{code: keyDown, mods: mods}
	case 'C':
		return key{code: keyRight, mods: mods}
	case 'D':
		return key{code: keyLeft, mods: mods}
	case 'H':
		return key{code: keyHome, mods: mods}
	case 'F':
		return key{code: keyEnd, mods: mods}
	case 'a', 'b', 'c', 'd':
		return letterKey(c-'a'+'A', mods|modShift)
	}
	return key{}
}

// codeKey is a key told by its character: CSI u, and xterm's modifyOtherKeys.
func codeKey(code int, mods keyMods) key {
	switch {
	case code == 13, code == 57414:
		return key{code: keyEnter, mods: mods}
	case code == 9:
		return key{code: keyTab, mods: mods}
	case code == 27:
		return key{code: keyEsc, mods: mods}
	case code == 127 || code == 8:
		return key{code: keyBackspace, mods: mods}
	case code < 0x20, code >= 57344 && code <= 63743: // private characters stand for keys that mean nothing here
		return key{}
	}
	if r := rune(code); mods&modCtrl != 0 && r >= 'A' && r <= 'Z' {
		return key{code: keyRune, r: r + 'a' - 'A', mods: mods}
	}
	return key{code: keyRune, r: rune(code), mods: mods &^ modShift}
}

func withMods(c keyCode, mods keyMods) key {
	if c == keyNone {
		return key{}
	}
	return key{code: c, mods: mods}
}

// ss3 reads ESC O letter, with the modifiers that some terminals put before the letter.
func ss3(b []byte) (int, key) {
	i := 2
	for i < len(b) && i < ss3Max && (b[i] >= '0' && b[i] <= '9' || b[i] == ';') {
		i++
	}
	if i == len(b) {
		return 0, key{}
	}
	num := csiNumbers(b[2:i])
	mods := modBits(num[len(num)-1])
	switch c := b[i]; {
	case c < 0x20 || c >= 0x7f:
		return i, key{}
	case c == 'M':
		return i + 1, key{code: keyEnter, mods: mods}
	case c == 'I':
		return i + 1, key{code: keyTab, mods: mods}
	case c >= 'j' && c <= 'y': // the keypad's digits and signs in application mode
		return i + 1, key{code: keyRune, r: rune(c) - 'j' + '*', mods: mods}
	case c >= 'a' && c <= 'd': // rxvt: Ctrl with an arrow
		return i + 1, letterKey(c-'a'+'A', mods|modCtrl)
	default:
		return i + 1, letterKey(c, mods)
	}
}
