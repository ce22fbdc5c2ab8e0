package main

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A joiner stays in an answer between two emoji and nowhere else, however the answer is cut.
func TestVisibleAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string][2]string{
		"family":               {"a \U0001f469\u200d\U0001f469\u200d\U0001f467 b", "a \U0001f469\u200d\U0001f469\u200d\U0001f467 b"},
		"style and skin":       {"\u2764\ufe0f\u200d\U0001f525\U0001f469\U0001f3fd\u200d\u2695\ufe0f", "\u2764\ufe0f\u200d\U0001f525\U0001f469\U0001f3fd\u200d\u2695\ufe0f"},
		"in a word":            {"pay\u200dpal", "pay<U+200D>pal"},
		"before a word":        {"\U0001f469\u200dx", "\U0001f469<U+200D>x"},
		"behind a word":        {"x\u200d\U0001f469", "x<U+200D>\U0001f469"},
		"two":                  {"\U0001f469\u200d\u200d\U0001f469", "\U0001f469<U+200D><U+200D>\U0001f469"},
		"at the ends":          {"\u200d\U0001f469\u200d", "<U+200D>\U0001f469<U+200D>"},
		"another hidden one":   {"\U0001f469\u200b\U0001f469\u200d\u202e\U0001f469", "\U0001f469<U+200B>\U0001f469<U+200D><U+202E>\U0001f469"},
		"over lines":           {"\U0001f469\u200d\n\U0001f469", "\U0001f469<U+200D>\n\U0001f469"},
		"letters that join so": {"\u0915\u094d\u200d\u0937", "\u0915\u094d<U+200D>\u0937"},
	} {
		for size := 1; size <= len(tc[0]); size++ {
			var a visibleAnswer
			got, part := "", ""
			for _, r := range tc[0] {
				if part += string(r); len(part) >= size {
					got, part = got+a.text(part), ""
				}
			}
			if got += a.text(part) + a.rest(); got != tc[1] {
				t.Errorf("%s, in parts of %d: %q, want %q", name, size, got, tc[1])
			}
		}
		if got := visible(tc[0]); strings.Contains(got, "\u200d") {
			t.Errorf("%s: visible keeps it: %q", name, got)
		}
	}
}

func TestLST06ControlCharacters(t *testing.T) {
	for _, tc := range []struct{ in, text, line string }{
		{"", "", ""},
		{"plain text, é 漢字 😀 ❤️", "plain text, é 漢字 😀 ❤️", "plain text, é 漢字 😀 ❤️"},
		{"\x1b[2K\x1b[1A", `\u001b[2K\u001b[1A`, `\u001b[2K\u001b[1A`},
		{"\x1b]0;x\x07", `\u001b]0;x\u0007`, `\u001b]0;x\u0007`},
		{"a\tb\nc", "a\tb\nc", `a\tb\nc`},
		{"a\rb\r\nc", "a\\u000db\\u000d\nc", `a\rb\r\nc`},
		{"\x00\x08\x7f", `\u0000\u0008\u007f`, `\u0000\u0008\u007f`},
		{"\u0080\u009b31m\u009d0;x\u009c", `\u0080\u009b31m\u009d0;x\u009c`, `\u0080\u009b31m\u009d0;x\u009c`},
		{"\x9b31m\xff\xc3(", `\x9b31m\xff\xc3(`, `\x9b31m\xff\xc3(`}, // C1 as raw bytes is no UTF-8
		{"\xed\xa0\x80", `\xed\xa0\x80`, `\xed\xa0\x80`},
		{"\ufffd", "\ufffd", "\ufffd"}, // a real replacement character is text
		{"e\u0301 \u00a0x", "e\u0301 \u00a0x", "e\u0301 \u00a0x"},
	} {
		if got := visible(tc.in); got != tc.text {
			t.Errorf("visible(%q) = %q, want %q", tc.in, got, tc.text)
		}
		if got := visibleLine(tc.in); got != tc.line {
			t.Errorf("visibleLine(%q) = %q, want %q", tc.in, got, tc.line)
		}
	}
}

func TestLST07Direction(t *testing.T) {
	if got, want := visible("pay \u202egro.live\u202c now"), "pay <U+202E>gro.live<U+202C> now"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, r := range "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" {
		if got, want := visibleLine(string(r)), fmt.Sprintf("<U+%04X>", r); got != want || hiddenCount(string(r)) != 1 {
			t.Errorf("%U: %q, want %q", r, got, want)
		}
	}
}

func TestLST08HiddenText(t *testing.T) {
	tags := ""
	for _, c := range "ignore all" {
		tags += string(0xe0000 + c)
	}
	if got := visible("hello" + tags); strings.ContainsFunc(got, func(r rune) bool { return r >= 0xe0000 && r <= 0xe007f }) || !strings.HasPrefix(got, "hello<U+E0069><U+E0067>") {
		t.Errorf("tags: %q", got)
	}
	if n := hiddenCount("hello" + tags); n != len("ignore all") {
		t.Errorf("%d hidden, want %d", n, len("ignore all"))
	}
	for _, r := range []rune{
		0xad, 0x34f, 0x115f, 0x1160, 0x1680, 0x17b4, 0x17b5, 0x180b, 0x180e, 0x180f, 0x2000, 0x200a, 0x200b, 0x200c, 0x200d, 0x2028, 0x2029, 0x205f, 0x2060, 0x2064, 0x2065, 0x206f,
		0x2800, 0x3164, 0xe000, 0xfe00, 0xfe0d, 0xfeff, 0xffa0, 0xfff0, 0xfff9, 0xfffb, 0x1d173, 0xe0001, 0xe0020, 0xe007f, 0xe0100, 0xe01ef, 0xe0fff, 0xf0000, 0x10fffd,
	} {
		s := string(r)
		if want := fmt.Sprintf("<U+%04X>", r); visible(s) != want || visibleLine(s) != want || hiddenCount(s) != 1 {
			t.Errorf("%U: %q %q, %d hidden", r, visible(s), visibleLine(s), hiddenCount(s))
		}
	}
	for _, s := range []string{"ordinary", "\u00a0\u3000\u202f\u2009", "❤\ufe0f", "1\ufe0f\u20e3 #\ufe0f\u20e3", "ℹ\ufe0f‼\ufe0f〰\ufe0f©\ufe0e", "漢字かな한글", "naïve e\u0301", "\n\t"} {
		if n := hiddenCount(s); n != 0 {
			t.Errorf("%q: %d hidden", s, n)
		}
	}
	for in, want := range map[string]string{ // a style that styles nothing: two names would look like one
		"read\ufe0f_file": "read<U+FE0F>_file", "a.txt\ufe0e": "a.txt<U+FE0E>", "❤\ufe0f\ufe0e": "❤\ufe0f<U+FE0E>", "1\ufe0f": "1<U+FE0F>", "字\ufe0fx": "字<U+FE0F>x", "e\u0301\ufe0f": "e\u0301<U+FE0F>", "\xff\ufe0f": `\xff<U+FE0F>`,
	} {
		if visible(in) != want || visibleLine(in) != want || hiddenCount(in) == 0 {
			t.Errorf("%q: %q %q, %d hidden", in, visible(in), visibleLine(in), hiddenCount(in))
		}
	}
	if got := visibleLine("\ufe0fread_file"); got != "<U+FE0F>read_file" {
		t.Errorf("a style at the start of a name: %q", got)
	}
	if n := hiddenCount("a\r\x1b\xff\u200bb"); n != 4 {
		t.Errorf("%d hidden, want 4", n)
	}
}

// TestHiddenRuneTable holds the short cuts against the definition, for every character there is.
func TestHiddenRuneTable(t *testing.T) {
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		want := unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) ||
			r == 0x2800 || r >= 0xe0000 && r <= 0xe0fff || r == 0x13441 || r == 0x13442 || r == 0x16fe4 || r == 0x1d159
		if strings.ContainsRune("\u00a0\u2009\u202f\u3000\ufe0e\ufe0f", r) {
			want = false
		}
		if got := hiddenRune(r); got != want {
			t.Errorf("%U: %v, want %v", r, got, want)
		}
	}
}

func TestTTY01CommandShownWhole(t *testing.T) {
	for in, want := range map[string]string{
		"rm -rf x\x1b[2K\x1b[1Als": `rm -rf x\u001b[2K\u001b[1Als`,
		"evil\rls":                 `evil\rls`,
		"evil\b\b\b\bls":           `evil\u0008\u0008\u0008\u0008ls`,
		"ls\n\n\nrm -rf x":         `ls\n\n\nrm -rf x`,
	} {
		if got := visibleLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestTTY02NeverShorter(t *testing.T) {
	for in, want := range map[string]string{
		"/srv/app/hello\x1b[/../../etc/hosts": `/srv/app/hello\u001b[/../../etc/hosts`,
		"x\x1b":                               `x\u001b`,
		"x\x1b]8;;":                           `x\u001b]8;;`,
		"\xe2\x82":                            `\xe2\x82`,
	} {
		if got := visibleLine(in); got != want || len(got) < len(in) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestTTY03OperatingSystemCommands(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b]52;c;ZXZpbA==\x07":                             `\u001b]52;c;ZXZpbA==\u0007`,
		"\x1b]8;;https://evil\x1b\\click\x1b]8;;\x1b\\":      `\u001b]8;;https://evil\u001b\click\u001b]8;;\u001b\`,
		"\u009d2;title\u009c":                                `\u009d2;title\u009c`,
		"\x1bP+q544e\x1b\\ \x1b_Gf=100;AAAA\x1b\\ \x1bc\x0e": `\u001bP+q544e\u001b\ \u001b_Gf=100;AAAA\u001b\ \u001bc\u000e`,
	} {
		if got := visible(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, tc := range []struct {
		in   string
		max  int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "abc… (4 bytes)"}, {"", 0, ""}, {"a", 0, "… (1 bytes)"}, {"éé", 3, "é… (4 bytes)"}, {"😀x", 3, "… (5 bytes)"}, {"x😀", 4, "x… (5 bytes)"},
		{strings.Repeat("\x80", 100), 50, strings.Repeat("\x80", 46) + "… (100 bytes)"}, // no border near: what is no UTF-8 anyway is cut within reach
	} {
		if got := clip(tc.in, tc.max); got != tc.want {
			t.Errorf("clip(%q, %d) = %q, want %q", tc.in, tc.max, got, tc.want)
		}
	}
}

// FuzzVisible: nothing that moves, hides or reorders is left, nothing is lost, and text without such comes back as it is.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{"a\x1b[2Kb", "\u202e\u200b\xff\r\n\t", "漢字 ❤️", "\U000e0041", "\u0085\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, lines := range []bool{true, false} {
			got := escapeText(s, lines)
			if !utf8.ValidString(got) {
				t.Fatalf("%q: %q is no UTF-8", s, got)
			}
			for _, r := range got {
				if hiddenRune(r) || unicode.IsControl(r) && !(lines && (r == '\n' || r == '\t')) {
					t.Fatalf("%q: %U is left in %q", s, r, got)
				}
			}
			if len(got) < len(s) {
				t.Fatalf("%q: %q is shorter", s, got)
			}
			if escapeText(got, lines) != got {
				t.Fatalf("%q: not stable", s)
			}
		}
		if (hiddenCount(s) == 0) != (visible(s) == s) {
			t.Fatalf("%q: %d hidden, but visible gives %q", s, hiddenCount(s), visible(s))
		}
		if c := clip(s, 10); len(s) <= 10 && c != s || len(s) > 10 && (!strings.HasSuffix(c, fmt.Sprintf("… (%d bytes)", len(s))) || utf8.ValidString(s) && !utf8.ValidString(c)) {
			t.Fatalf("clip(%q) = %q", s, c)
		}
	})
}

func BenchmarkVisible64K(b *testing.B) {
	for name, line := range map[string]string{"ascii": "an ordinary line of a result\n", "cjk": "結果の行です。\n", "escapes": "\x1b[31mred\x1b[0m\n"} {
		b.Run(name, func(b *testing.B) {
			s := strings.Repeat(line, 64<<10/len(line))
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				visible(s)
			}
		})
	}
}
