package main

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCharsetDecodes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, body, header, charset, want string }{
		{"nothing said, UTF-8", "caf\xc3\xa9", "text/plain", "utf-8", "café"},
		{"nothing said, no UTF-8", "caf\xe9 \x80\x93x\x94", "text/plain", "windows-1252", "café €“x”"},
		{"a part of a character at the end", "caf\xc3\xa9 \xe2\x82", "text/plain; charset=utf-8", "utf-8", "café \uFFFD"},
		{"Latin-1 with its only letter at the end", "caf\xe9", "", "windows-1252", "café"},
		{"a label in quotes of the wrong kind", "caf\xc3\xa9", "text/plain; charset='utf-8'", "utf-8", "café"},
		{"UTF-8 that is none", "a\xffb", "text/plain; charset=utf-8", "utf-8", "a\uFFFDb"},
		{"Latin-1 is windows-1252", "\x80\x81\xff", "text/html; charset=ISO-8859-1", "windows-1252", "€\u0081ÿ"},
		{"Latin-9", "\xa4\xa6\xa8\xb4\xb8\xbc\xbd\xbe\xe9", "text/plain; charset=iso-8859-15", "iso-8859-15", "€ŠšŽžŒœŸé"},
		{"1250", "P\xf8\xedli\x9a \x9elu\x9dou\xe8k\xfd", "text/plain;charset=windows-1250", "windows-1250", "Příliš žluťoučký"},
		{"1251", "\xcf\xf0\xe8\xe2\xe5\xf2 \xb8\xa8", "text/plain; charset=cp1251", "windows-1251", "Привет ёЁ"},
		{"1253", "\xca\xe1\xeb\xe7\xec\xdd\xf1\xe1\xaa", "text/plain; charset=windows-1253", "windows-1253", "Καλημέρα\uFFFD"},
		{"1254", "\xdd\xfe\xf0\xd0", "text/plain; charset=iso-8859-9", "windows-1254", "İşğĞ"},
		{"1255", "\xf9\xec\xe5\xed\xca\xd9", "text/plain; charset=windows-1255", "windows-1255", "\u05e9\u05dc\u05d5\u05dd\u05ba\uFFFD"},
		{"1256", "\xe3\xd1\xcd\xc8\xc7\x9d", "text/plain; charset=windows-1256", "windows-1256", "\u0645\u0631\u062d\u0628\u0627\u200c"},
		{"1257", "\xc0\xe8i\xfb\xa1", "text/plain; charset=windows-1257", "windows-1257", "Ąčiū\uFFFD"},
		{"1258", "Vi\xea\xf2t \xfe", "text/plain; charset=windows-1258", "windows-1258", "Viê\u0323t ₫"},
		{"UTF-16 little", "a\x00\xac\x20\x3d\xd8\x00\xde", "text/plain; charset=UTF-16", "utf-16le", "a€😀"},
		{"UTF-16 big, half a pair, half a unit", "\x00a\xd8\x3d\x00b\x00", "text/plain; charset=utf-16be", "utf-16be", "a\uFFFDb\uFFFD"},
		{"the mark before the header", "\xff\xfea\x00", "text/plain; charset=utf-8", "utf-16le", "a"},
		{"the mark of the other end", "\xfe\xff\x00a", "text/html; charset=windows-1251", "utf-16be", "a"},
		{"the mark of UTF-8", "\xef\xbb\xbfa", "text/plain; charset=windows-1251", "utf-8", "a"},
		{"the header before the meta", "<meta charset=windows-1251>\xe9", "text/html; charset=windows-1252", "windows-1252", "<meta charset=windows-1251>é"},
		{"meta", "<!-- <meta charset=utf-8> --><META Charset='windows-1251'>\xcf", "text/html", "windows-1251", "<!-- <meta charset=utf-8> --><META Charset='windows-1251'>П"},
		{"meta with a type", `<meta content="text/html; charset = koi-nope;x" http-equiv=other><meta http-equiv=Content-Type content="text/html; charset=latin1">` + "\xe9", "text/html", "windows-1252", ""},
		{"meta says UTF-16", "<meta charset=utf-16>\xc3\xa9", "text/html", "utf-8", "<meta charset=utf-16>é"},
		{"meta too late", strings.Repeat(" ", charsetPrescan) + "<meta charset=windows-1251>", "text/html", "utf-8", ""},
		{"XML", `<?xml version="1.0" encoding='windows-1251'?>` + "\xcf", "application/xml", "windows-1251", `<?xml version="1.0" encoding='windows-1251'?>П`},
		{"empty", "", "", "utf-8", ""},
	} {
		name, err := findCharset([]byte(tc.body), tc.header)
		if err != nil || name != tc.charset {
			t.Errorf("%s: charset %q, %v, want %q", tc.name, name, err, tc.charset)
			continue
		}
		got := decodeCharset([]byte(tc.body), name)
		if tc.want != "" && got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestCharsetRefused(t *testing.T) {
	t.Parallel()
	for body, header := range map[string]string{"a": "text/plain; charset=Shift_JIS", "b": `text/plain; charset="gb 18030"`, "<meta charset=x-user-defined>": "text/html", "<meta charset=\"\x1b[31m\">": "text/html"} {
		name, err := findCharset([]byte(body), header)
		var fault *charsetFault
		if !errors.As(err, &fault) || strings.ContainsRune(err.Error(), 0x1b) || !strings.Contains(err.Error(), "save_to") {
			t.Errorf("%q as %q: %q, %v", body, header, name, err)
		}
	}
}

// Each table has 128 characters, no character but U+FFFD twice, and is reached by its labels.
func TestCharsetTables(t *testing.T) {
	t.Parallel()
	for _, c := range charsetLabels() {
		if strings.HasPrefix(c[0], "utf-") {
			continue
		}
		upper, seen := []rune(charsetUpper(c[0])), map[rune]bool{}
		if len(upper) != 128 {
			t.Errorf("%s: %d characters", c[0], len(upper))
		}
		for _, r := range upper {
			if seen[r] && r != utf8.RuneError || r < 0x80 {
				t.Errorf("%s: %U", c[0], r)
			}
			seen[r] = true
		}
		for label := range strings.FieldsSeq(c[1]) {
			if got := charsetNamed(" " + strings.ToUpper(label) + "\n"); got != c[0] {
				t.Errorf("%s means %q, want %q", label, got, c[0])
			}
		}
	}
	if charsetUpper("koi8-r") != "" || charsetNamed("utf") != "" || charsetNamed("l1 latin1") != "" {
		t.Error("a name that is none is known")
	}
}
