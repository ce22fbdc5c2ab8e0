package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"
)

const redactSample = "S3cr3t/+v@lue&\"é😀\\<x> ~'!*"

func redactOf(pairs ...string) *redactor {
	var known []namedSecret
	for i := 0; i < len(pairs); i += 2 {
		known = append(known, namedSecret{pairs[i], secret(pairs[i+1])})
	}
	return newRedactor(known)
}

func TestAUD09Plain(t *testing.T) {
	t.Parallel()
	r := redactOf("TOKEN", "tok-1234567", "PIN", "4711", "LONG", "tok-1234567-and-more")
	for in, want := range map[string]string{
		"":                                   "",
		"nothing here":                       "nothing here",
		"tok-1234567":                        "[secret:TOKEN]",
		"a tok-1234567, b tok-1234567.":      "a [secret:TOKEN], b [secret:TOKEN].",
		"tok-1234567tok-1234567":             "[secret:TOKEN][secret:TOKEN]",
		"tok-1234567-and-more":               "[secret:LONG]",
		"tok-1234567-and-mor":                "[secret:TOKEN]-and-mor",
		"tok-123456":                         "tok-123456",
		"pin 4711!":                          "pin [secret:PIN]!",
		"471":                                "471",
		"https://h/?key=tok-1234567#4711":    "https://h/?key=[secret:TOKEN]#[secret:PIN]",
		"\x00\xfftok-1234567\xff":            "\x00\xff[secret:TOKEN]\xff",
		"tok-tok-1234567":                    "tok-[secret:TOKEN]",
		"tok-1234tok-1234567-and-tok-123456": "tok-1234[secret:TOKEN]-and-tok-123456",
	} {
		if got := r.text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestAUD09WhichName(t *testing.T) {
	t.Parallel()
	r := redactOf("B", "same-value", "A", "same-value", "C", "value-of-c", "E", "", "F", "abc", "G", "  \n ", "H", "  trimmed-value\n")
	for in, want := range map[string]string{
		"same-value":          "[secret:A]",          // names sort, whatever the order given
		"same-value-of-c":     "[secret:A]",          // overlapping: nothing of either is left
		"abc and   \n ":       "abc and   \n ",       // too short to be masked
		"x=trimmed-value;y":   "x=[secret:H];y",      // white space at the ends does not count
		"[secret:A]":          "[secret:A]",          // a label is no secret
		"same-valu value-of-": "same-valu value-of-", // parts stay
	} {
		if got := r.text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	// Overlaps of one value with itself are one.
	if got := redactOf("A", "aaaa").text("baaaaaaab aaa"); got != "b[secret:A]b aaa" {
		t.Errorf("self overlap: %q", got)
	}
	if got := redactOf("A", "abcdef", "B", "cdefgh", "C", "fghi").text("xabcdefghix"); got != "x[secret:A]x" {
		t.Errorf("chain of overlaps: %q", got)
	}
	if got := redactOf("A", "bcde", "B", "abcdefg").text("abcdefg abcdef"); got != "[secret:B] a[secret:A]f" {
		t.Errorf("inside another: %q", got)
	}
}

func TestAUD09Nil(t *testing.T) {
	t.Parallel()
	for _, r := range []*redactor{nil, newRedactor(nil), redactOf("A", "abc")} {
		if r != nil {
			t.Error("a redactor without secrets")
		}
		s := r.stream()
		if got := r.text("abc") + s.feed("abc") + s.flush(); got != "abcabc" {
			t.Errorf("nil: %q", got)
		}
	}
}

// redactSpellings writes a value as encoders of the world do.
func redactSpellings(t *testing.T, v string) map[string]string {
	t.Helper()
	quote := func(html bool) string {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		s := strings.TrimSpace(b.String())
		return s[1 : len(s)-1]
	}
	upper := url.QueryEscape(v)
	lower := []byte(upper)
	for i := range lower {
		if i >= 1 && lower[i-1] == '%' || i >= 2 && lower[i-2] == '%' {
			lower[i] |= 0x20
		}
	}
	nested, err := json.Marshal(quote(false))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"plain": v, "hex": hex.EncodeToString([]byte(v)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(v))),
		"base64": base64.StdEncoding.EncodeToString([]byte(v)), "base64 raw": base64.RawStdEncoding.EncodeToString([]byte(v)),
		"base64 url": base64.URLEncoding.EncodeToString([]byte(v)), "base64 url raw": base64.RawURLEncoding.EncodeToString([]byte(v)),
		"query": upper, "query lower": string(lower), "query %20": strings.ReplaceAll(upper, "+", "%20"), "path": url.PathEscape(v),
		"json": quote(false), "json html": quote(true), "json slash": strings.ReplaceAll(quote(false), "/", `\/`),
		"json in json": strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(nested[1 : len(nested)-1])),
	}
}

func TestAUD10Encodings(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"plain-token_123", redactSample, "line1\nline2\tx\x01", "p@ss/w+rd==", "six666", strings.Repeat("long value / ", 40) + "end"} {
		r := redactOf("K", v)
		for form, text := range redactSpellings(t, v) {
			want := "<[secret:K]|"
			if got := r.text("<" + text + "|"); got != want {
				t.Errorf("%.20q as %s: %q becomes %q", v, form, text, got)
			}
		}
	}
	r := redactOf("K", redactSample)
	for form, text := range map[string]string{
		"Python json":        `S3cr3t/+v@lue&\"\u00e9\ud83d\ude00\\<x> ~'!*`,
		"PHP json":           `S3cr3t\/+v@lue&\"\u00e9\ud83d\ude00\\<x> ~'!*`,
		"upper digits":       `S3cr3t/+v@lue&\"\u00E9\uD83D\uDE00\\<x> ~'!*`,
		".NET json":          `S3cr3t/\u002Bv@lue\u0026\u0022\u00E9\uD83D\uDE00\\\u003Cx\u003E ~\u0027!*`,
		"encodeURIComponent": "S3cr3t%2F%2Bv%40lue%26%22%C3%A9%F0%9F%98%80%5C%3Cx%3E%20~'!*",
		"encodeURI":          "S3cr3t/+v@lue&%22%C3%A9%F0%9F%98%80%5C%3Cx%3E%20~'!*",
		"form":               "S3cr3t%2F%2Bv%40lue%26%22%C3%A9%F0%9F%98%80%5C%3Cx%3E+%7E%27%21*",
	} {
		if got := r.text(text); got != "[secret:K]" {
			t.Errorf("%s: %q becomes %q", form, text, got)
		}
	}
	if got := redactOf("K", "a\nb\x7f\x01cd").text(`a\u000ab` + "\x7f" + `\u0001cd`); got != "[secret:K]" {
		t.Errorf("control characters by number: %q", got)
	}
}

// TestAUD10Base64Offsets: whatever stands before and after inside the encoded text, at most the signs that the value shares
// with its neighbours are left.
func TestAUD10Base64Offsets(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"sk-live-0123456789", "exactly9!", "?>?>~~~", redactSample} {
		r := redactOf("K", v)
		for before := range 7 {
			for after := range 4 {
				for name, enc := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding, "raw": base64.RawStdEncoding, "raw url": base64.RawURLEncoding} {
					text := enc.EncodeToString([]byte("user:pw"[:before] + v + "xyz"[:after]))
					got := r.text(text)
					head, tail, ok := strings.Cut(got, "[secret:K]")
					// signs wholly of the neighbours, and at most one shared at each side
					if !ok || len(head) > (before*8+5)/6 || len(strings.TrimRight(tail, "=")) > (after*8+5)/6+1 || strings.Contains(tail, "[") {
						t.Errorf("%q after %d before %d, %s: %q becomes %q", v, before, after, name, text, got)
					}
					if !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
						t.Errorf("%q: what is around the mask changed: %q becomes %q", v, text, got)
					}
				}
			}
		}
	}
	// HTTP Basic, as it stands in a header.
	header := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("me:hunter22-hunter22"))
	if got := redactOf("PW", "hunter22-hunter22").text(header); !strings.Contains(got, "[secret:PW]") || strings.Contains(got, base64.RawStdEncoding.EncodeToString([]byte("hunter22-"))) {
		t.Errorf("%q", got)
	}
}

func TestAUD10ShortValuesOnlyPlain(t *testing.T) {
	t.Parallel()
	r := redactOf("S", "12345", "M", "a b/c")
	for _, text := range []string{"3132333435", "MTIzNDU=", "a+b%2Fc", "a%20b%2Fc", `a b\/c`} {
		if got := r.text(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if got := r.text("12345 a b/c"); got != "[secret:S] [secret:M]" {
		t.Errorf("plain: %q", got)
	}
}

// TestAUD10Stream: however text is cut, the parts together are the masked whole, and what cannot be part of a secret comes
// at once.
func TestAUD10Stream(t *testing.T) {
	t.Parallel()
	r := redactOf("TOKEN", "tok-1234567", "LONG", "tok-1234567-and-more", "A", "aaaa", "O", "7-andXY")
	text := "x tok-1234567 tok-1234567-and-mor tok-1234567-and-more baaaaaaab tok-tok-1234567-andXY " + base64.StdEncoding.EncodeToString([]byte("u:tok-1234567")) + " tok-12"
	want := r.text(text)
	s := r.stream()
	for size := 1; size <= len(text); size++ {
		var got strings.Builder
		for at := 0; at < len(text); at += size {
			got.WriteString(s.feed(text[at:min(at+size, len(text))]))
		}
		got.WriteString(s.flush())
		if got.String() != want {
			t.Fatalf("in parts of %d:\n got %q\nwant %q", size, got.String(), want)
		}
	}
	for _, step := range [][2]string{{"plain line", "plain line"}, {" tok-", " "}, {"x", "tok-x"}, {"aaa", ""}, {"a", ""}, {"aaaa", ""}, {"b", "[secret:A]b"}, {"tok-1234567", ""}, {".", "[secret:TOKEN]."}, {"", ""}} {
		if got := s.feed(step[0]); got != step[1] {
			t.Errorf("feed(%q) = %q, want %q", step[0], got, step[1])
		}
	}
	if got := s.feed("tok-12") + "|" + s.flush() + "|" + s.flush(); got != "|tok-12|" {
		t.Errorf("rest: %q", got)
	}
}

// TestAUD10StreamBounded: an endless overlap holds back no more than the longest form.
func TestAUD10StreamBounded(t *testing.T) {
	t.Parallel()
	s := redactOf("A", "aaaa").stream()
	for range 10000 {
		if got := s.feed("aaaaaaa"); got != "" {
			t.Fatalf("gave %q", got)
		}
		if len(s.held) > 8 {
			t.Fatalf("holds %d bytes", len(s.held))
		}
	}
	if got := s.flush(); got != "[secret:A]" {
		t.Errorf("flush gave %q", got)
	}
}

// TestRedactAgainstPlainSearch holds the automaton and its skipping against a search for each form by itself.
func TestRedactAgainstPlainSearch(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	word := func(letters string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	for round := range 3000 {
		letters := [...]string{"ab", "abc", "abcdefghij"}[round%3]
		var known []namedSecret
		for i := range 1 + random.IntN(5) {
			known = append(known, namedSecret{fmt.Sprint("N", i), secret(word(letters, 4+random.IntN(9)))})
		}
		text := word(letters, random.IntN(80))
		if random.IntN(2) == 0 {
			text += known[0].Value.reveal() + word(letters, random.IntN(6))
		}
		masked := make([]bool, len(text))
		for _, k := range known {
			for _, form := range redactForms(k.Value.reveal()) {
				for at := 0; ; at++ {
					i := strings.Index(text[at:], form)
					if i < 0 {
						break
					}
					at += i
					for j := range len(form) {
						masked[at+j] = true
					}
				}
			}
		}
		var want strings.Builder
		for i, m := range masked {
			if !m {
				want.WriteByte(text[i])
			} else if i == 0 || !masked[i-1] {
				want.WriteByte('*')
			}
		}
		got := newRedactor(known).text(text)
		for _, k := range known {
			got = strings.ReplaceAll(got, "[secret:"+k.Name+"]", "*")
		}
		for strings.Contains(got, "**") {
			got = strings.ReplaceAll(got, "**", "*")
		}
		if got != want.String() {
			t.Fatalf("%q with %v:\n got %q\nwant %q", text, redactForms(known[0].Value.reveal())[:1], got, want.String())
		}
	}
}

// TestAUD09LongSecrets: of a long form the automaton knows the head; the rest is masked as far as it goes, and what looks
// like it is told apart.
func TestAUD09LongSecrets(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	key := make([]byte, 3000)
	for i := range key {
		key[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ/+\t"[random.IntN(29)]
	}
	one := "BEGIN" + string(key)
	two := one[:1000] + "<other>" + one[1500:2500] // the same head
	three := one[2000:2400]                        // lies inside the first
	r := redactOf("ONE", one, "TWO", two, "THREE", three, "TAIL", one[2990:]+"after")
	for _, tc := range []struct{ name, in, want string }{
		{"whole", "a " + one + " b", "a [secret:ONE] b"},
		{"other", "a " + two + " b", "a [secret:TWO] b"},
		{"inner", "a " + three + " b", "a [secret:THREE] b"},
		{"both", one + two, "[secret:ONE][secret:TWO]"},
		{"cut", one[:700] + "#" + one[700:], "[secret:ONE]#" + strings.Replace(one[700:], three, "[secret:THREE]", 1)},
		{"less than a head", one[:255], one[:255]},
		{"overlap at the end", one + "after", "[secret:ONE]"},
		{"base64", base64.StdEncoding.EncodeToString([]byte(one)), "[secret:ONE]"},
		{"hex", hex.EncodeToString([]byte(two)), "[secret:TWO]"},
		{"json", strings.ReplaceAll(one, "\t", `\t`), "[secret:ONE]"},
	} {
		if got := r.text(tc.in); got != tc.want {
			t.Errorf("%s: %.80q… (%d), want %.80q… (%d)", tc.name, got, len(got), tc.want, len(tc.want))
		}
		for _, size := range []int{1, 7, 255, 256, 257, 1024} {
			s := r.stream()
			var got strings.Builder
			for at := 0; at < len(tc.in); at += size {
				got.WriteString(s.feed(tc.in[at:min(at+size, len(tc.in))]))
				if len(s.held) > 2*redactHead {
					t.Fatalf("%s: holds %d bytes", tc.name, len(s.held))
				}
			}
			if got.WriteString(s.flush()); got.String() != tc.want {
				t.Errorf("%s in parts of %d: %.80q, want %.80q", tc.name, size, got.String(), tc.want)
			}
		}
	}
	// The largest secret that the vault takes costs no table of its size.
	big := redactOf("BIG", strings.Repeat("0123456789abcdef-ghi", 1<<20/20))
	if got := big.text("x" + big.secrets[0].Value.reveal() + "y"); got != "x[secret:BIG]y" || len(big.nodes) > 32*redactHead {
		t.Errorf("%.40q, %d states", got, len(big.nodes))
	}
}

func FuzzRedactStream(f *testing.F) {
	f.Add("tok-1234567", "aaaa", "x tok-1234567aaaaaa", uint8(3))
	f.Add("abcabcabd", "bcab", "abcabcabcabd", uint8(1))
	f.Add("é/+<\"\\", "six666", "\\u00e9\\/+<", uint8(2))
	f.Fuzz(func(t *testing.T, one, two, text string, cut uint8) {
		r := redactOf("ONE", one, "TWO", two)
		want := r.text(text)
		s := r.stream()
		size := int(cut%16) + 1
		got := ""
		for at := 0; at < len(text); at += size {
			got += s.feed(text[at:min(at+size, len(text))])
		}
		if got += s.flush(); got != want {
			t.Fatalf("%q in parts of %d: %q, whole %q", text, size, got, want)
		}
		if v := strings.TrimSpace(one); len(v) >= redactMin && !strings.Contains("[secret:ONE][secret:TWO]", v) {
			for piece := range strings.SplitSeq(strings.ReplaceAll(want, "[secret:TWO]", "[secret:ONE]"), "[secret:ONE]") {
				if strings.Contains(piece, v) {
					t.Fatalf("%q is left in %q", v, want)
				}
			}
		}
	})
}

// TestP20Linear: text made to be hard costs a small multiple of any other.
func TestP20Linear(t *testing.T) {
	for _, size := range []int{200, 4000} { // forms that the automaton knows whole, and such whose tail is compared
		as := strings.Repeat("a", size)
		r := redactOf("A", "b"+as, "B", as+"b", "C", strings.Repeat("ab", size/2)+"c")
		r.text("x")
		for name, text := range map[string]string{"a": strings.Repeat("a", 1<<20), "ab": strings.Repeat("ab", 1<<19), "near": strings.Repeat(as[1:]+"c", 1<<20/size), "b": strings.Repeat("b"+as[2:], 1<<20/size)} {
			start := time.Now()
			got := r.text(text)
			if d := time.Since(start); d > 2*time.Second { // about 30 ms; a search that starts anew at each place takes many times that
				t.Errorf("%d %s: 1 MiB took %v", size, name, d)
			}
			if long := size > redactHead; (got == text) == long {
				t.Errorf("%d %s: changed %v", size, name, !long)
			}
		}
	}
}

func redactBench(b *testing.B, secrets int, value func(i int) string) {
	var known []namedSecret
	for i := range secrets {
		known = append(known, namedSecret{fmt.Sprintf("KEY_%d", i), secret(value(i))})
	}
	line := `2026-01-02T03:04:05Z INFO request served path=/api/v1/items?id=42 status=200 bytes=5123 {"ok":true,"items":[1,2,3]}` + "\n"
	text := strings.Repeat(line, 64<<10/len(line)+1)[:64<<10]
	r := newRedactor(known)
	if r.text(text) != text {
		b.Fatal("masked")
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r.text(text)
	}
	b.ReportMetric(float64(len(r.nodes)), "states")
}

func redactToken(i int) string {
	random := rand.New(rand.NewPCG(uint64(i), 9))
	b := []byte("sk-")
	for range 29 {
		b = append(b, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[random.IntN(62)])
	}
	return string(b)
}

// The target counts forms (P20): a token has about 11.
func BenchmarkRedact64K10(b *testing.B)  { redactBench(b, 1, redactToken) }
func BenchmarkRedact64K100(b *testing.B) { redactBench(b, 10, redactToken) }

func BenchmarkRedact64K100Secrets(b *testing.B) { redactBench(b, 100, redactToken) }
func BenchmarkRedact64K10Short(b *testing.B) {
	redactBench(b, 10, func(i int) string { return redactToken(i)[3:11] })
}

func BenchmarkRedactBuild10(b *testing.B) {
	var known []namedSecret
	for i := range 10 {
		known = append(known, namedSecret{fmt.Sprint(i), secret(redactToken(i))})
	}
	b.ReportAllocs()
	for b.Loop() {
		newRedactor(known).text("x")
	}
}
