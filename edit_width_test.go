package main

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func clustersOf(s string) []string {
	var out []string
	for text := []rune(s); len(text) > 0; {
		n := clusterLen(text)
		out = append(out, string(text[:n]))
		text = text[n:]
	}
	return out
}

func TestClusters(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, in string
		want     []string
		widths   []int
	}{
		{"letters", "ab", []string{"a", "b"}, []int{1, 1}},
		{"mark", "e\u0301x", []string{"e\u0301", "x"}, []int{1, 1}},
		{"marks", "a\u0300\u0301\u0302", []string{"a\u0300\u0301\u0302"}, []int{1}},
		{"mark alone", "\u0301a", []string{"\u0301", "a"}, []int{1, 1}},
		{"Chinese", "一二", []string{"一", "二"}, []int{2, 2}},
		{"full width", "Ａ１", []string{"Ａ", "１"}, []int{2, 2}},
		{"half width", "ｱ", []string{"ｱ"}, []int{1}},
		{"Hangul syllables", "한국", []string{"한", "국"}, []int{2, 2}},
		{"Hangul letters", "\u1112\u1161\u11ab\u1100", []string{"\u1112\u1161\u11ab", "\u1100"}, []int{2, 2}},
		{"emoji", "😀😁", []string{"😀", "😁"}, []int{2, 2}},
		{"skin tone", "👍🏽x", []string{"👍🏽", "x"}, []int{2, 1}},
		{"joined", "👨\u200d👩\u200d👧x", []string{"👨\u200d👩\u200d👧", "x"}, []int{2, 1}},
		{"joined with a sign", "🏳\ufe0f\u200d🌈", []string{"🏳\ufe0f\u200d🌈"}, []int{2}},
		{"flags", "🇩🇪🇫🇷🇯", []string{"🇩🇪", "🇫🇷", "🇯"}, []int{2, 2, 1}},
		{"flag of a region", "🏴\U000e0067\U000e0062\U000e007f!", []string{"🏴\U000e0067\U000e0062\U000e007f", "!"}, []int{2, 1}},
		{"styles", "❤\ufe0f❤\ufe0e", []string{"❤\ufe0f", "❤\ufe0e"}, []int{2, 1}},
		{"keycap", "1\ufe0f\u20e3", []string{"1\ufe0f\u20e3"}, []int{1}},
		{"Devanagari", "नि", []string{"नि"}, []int{1}},
		{"line ends", "a\nb\t", []string{"a", "\n", "b", "\t"}, []int{1, 1, 1, editTabColumns}},
		{"direction mark", "a\u202eb", []string{"a", "\u202e", "b"}, []int{1, 8, 1}},
		{"hidden tags", "a\U000e0041", []string{"a", "\U000e0041"}, []int{1, 9}},
		{"hidden selector", "a\ufe01", []string{"a", "\ufe01"}, []int{1, 8}},
		{"joiner alone", "\u200d", []string{"\u200d"}, []int{8}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := clustersOf(tc.in)
			if !slices.Equal(got, tc.want) {
				t.Fatalf("clusters %q, want %q", got, tc.want)
			}
			for i, c := range got {
				if w := clusterWidth([]rune(c)); w != tc.widths[i] {
					t.Errorf("width of %q is %d, want %d", c, w, tc.widths[i])
				}
			}
		})
	}
	heap := "a" + strings.Repeat("\u0301", 1000)
	for _, c := range clustersOf(heap) {
		if n := utf8.RuneCountInString(c); n > editClusterRunes {
			t.Errorf("a cluster has %d characters", n)
		}
	}
}

// TTY-02, TTY-11: what is shown moves nothing, hides nothing, and takes the columns that it is said to take.
func TestClusterTextIsHarmless(t *testing.T) {
	t.Parallel()
	for r := rune(0); r < 0x1f000; r++ {
		if r == '\n' || r == '\t' || r >= 0xd800 && r <= 0xdfff {
			continue
		}
		shown, _ := clusterText([]rune{r})
		if shown == "" {
			t.Fatalf("%U is shown as nothing", r)
		}
		if s := shown; visibleLine(s) != s && s != string(r) {
			t.Errorf("%U is shown as %q", r, s)
		}
		if r < 0x20 && shown != "^"+string(r+'@') || r >= 0x7f && r < 0xa0 && len(shown) < 2 {
			t.Errorf("%U is shown as %q", r, shown)
		}
		if len(shown) > utf8.RuneLen(r) && clusterWidth([]rune{r}) != utf8.RuneCountInString(shown) && !strings.HasPrefix(shown, "\u25cc") {
			t.Errorf("%U is shown as %q in %d columns", r, shown, clusterWidth([]rune{r}))
		}
	}
}

func TestCleanRunes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"line ends", "a\r\nb\rc\nd\n\re", "a\nb\nc\nd\n\ne"},
		{"tab", "a\tb", "a\tb"},
		{"escapes", "a\x1b[2Jb\x07\x00\x7f\u009b", `a\u001b[2Jb\u0007\u0000\u007f\u009b`},
		{"not UTF-8", "a\xff\xfeb", "a\ufffd\ufffdb"},
		{"hidden characters stay", "👨\u200d👩 \u202e", "👨\u200d👩 \u202e"},
	} {
		if got := string(cleanRunes([]byte(tc.in))); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestClipWidth(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in    string
		width int
		want  string
	}{{"short", 10, "short"}, {"exactly ten", 11, "exactly ten"}, {"longer than that", 8, "longer …"}, {"一二三四", 6, "一二…"}, {"一二三", 6, "一二三"}, {"e\u0301e\u0301e\u0301", 2, "e\u0301…"}} {
		if got := clipWidth(tc.in, tc.width); got != tc.want || textWidth(got) > tc.width {
			t.Errorf("clipWidth(%q, %d) = %q, want %q", tc.in, tc.width, got, tc.want)
		}
	}
}
