package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// shownOn draws a text with its cursor (|) on a fresh screen.
func shownOn(t *testing.T, text string, cols, rows int) *vtScreen {
	t.Helper()
	v := newVTScreen(t, cols, rows)
	var r renderer
	v.write(r.frame(laidOut(text, cols, rows), cols))
	return v
}

func laidOut(text string, cols, rows int) layout {
	before, after, _ := strings.Cut(text, "|")
	e := editedText{prompt: "› ", more: "  ", text: []rune(before + after), cursor: len([]rune(before))}
	return e.layout(cols, rows)
}

func TestRenderer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		cols, rows int
		want       []string
		x, y       int
	}{
		{"empty", "|", 10, 5, []string{"›"}, 2, 0},
		{"text", "he|llo", 10, 5, []string{"› hello"}, 4, 0},
		{"full row", "12345678|", 10, 5, []string{"› 12345678", ""}, 0, 1},
		{"full row, cursor inside", "1234567|8", 10, 5, []string{"› 12345678"}, 9, 0},
		{"wrapped", "1234567890abc|", 10, 5, []string{"› 12345678", "90abc"}, 5, 1},
		{"cursor where it wraps", "12345678|90", 10, 5, []string{"› 12345678", "90"}, 0, 1},
		{"lines", "one\ntwo|", 10, 5, []string{"› one", "  two"}, 5, 1},
		{"full row before a line end", "12345678|\nx", 10, 5, []string{"› 12345678", "", "  x"}, 0, 1},
		{"wide at the edge", "1234567一|", 10, 5, []string{"› 1234567", "一"}, 2, 1},
		{"wide fills the row", "123456一|", 10, 5, []string{"› 123456一", ""}, 0, 1},
		{"marks", "e\u0301e\u0301|", 10, 5, []string{"› e\u0301e\u0301"}, 4, 0},
		{"tab", "a\tb|", 20, 5, []string{"› a    b"}, 8, 0},
		{"control characters", "a\x1b[2J\x07|", 20, 5, []string{"› a^[[2J^G"}, 10, 0},
		{"hidden character", "a\u202eb|", 20, 5, []string{"› a<U+202E>b"}, 12, 0},
		{"hidden character on a narrow screen", "a\u202eb|", 5, 5, []string{"› a<U", "+202E", ">b"}, 2, 2},
		{"higher than the screen, end", "1\n2\n3\n4\n5\n6|", 10, 3, []string{"  4", "  5", "  6"}, 3, 2},
		{"higher than the screen, start", "|1\n2\n3\n4\n5\n6", 10, 3, []string{"› 1", "  2", "  3"}, 2, 0},
		{"higher than the screen, middle", "1\n2\n3|\n4\n5\n6", 10, 3, []string{"  2", "  3", "  4"}, 3, 1},
		{"very narrow", "abcdef|", 1, 5, []string{"› ab", "cdef", ""}, 0, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := shownOn(t, tc.text, max(tc.cols, editMinColumns), tc.rows)
			x, y := v.cursor()
			if got := v.text(); !slices.Equal(got, tc.want) || x != tc.x || y != tc.y {
				t.Errorf("the screen shows\n%v\nwant\n%s\n(cursor %d,%d)", v, strings.Join(tc.want, "\n"), tc.x, tc.y)
			}
		})
	}
}

// A family that the terminal takes for three people: what follows still stands where the editor thinks it does.
func TestRendererUnsureWidths(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"👨\u200d👩\u200d👧abc|", "👍🏽x|", "🇩🇪🇫🇷x|", "❤\ufe0fx|", "a👨\u200d👩\u200d👧|b"} {
		v := shownOn(t, text, 40, 5)
		before, _, _ := strings.Cut(text, "|")
		if x, y := v.cursor(); x != 2+textWidth(before) || y != 0 {
			t.Errorf("%q: the cursor is at %d,%d, want %d,0", text, x, y, 2+textWidth(before))
		}
		if row := v.text()[0]; !strings.HasSuffix(row, text[len(text)-1:]) && !strings.HasSuffix(row, "x") && !strings.HasSuffix(row, "abc") {
			t.Errorf("%q is shown as %q", text, row)
		}
	}
}

// Whatever is edited, the screen shows the same as if it had been drawn anew, and what stood above stays.
func TestRendererRedrawsWhatChanged(t *testing.T) {
	t.Parallel()
	pieces := []string{"a", "b", "xyz", "一", "한국", "e\u0301", "\n", "long words of text ", "\t", "\u202e", "1234567890", "😀"}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		cols, rows := 4+rnd.IntN(20), 2+rnd.IntN(8)
		v := newVTScreen(t, cols, rows)
		for i := range rnd.IntN(12) {
			v.write(fmt.Appendf(nil, "%d\r\n", i%10))
		}
		above := v.y
		var r renderer
		b := editBuffer{goal: -1}
		for step := range 40 {
			switch n := rnd.IntN(10); {
			case n < 5:
				b.insert([]rune(pieces[rnd.IntN(len(pieces))]))
			case n < 7:
				b.moveTo(rnd.IntN(len(b.text) + 1))
			case n < 9:
				b.deleteTo(b.previous(b.cursor))
			default:
				b.deleteTo(rnd.IntN(b.cursor + 1))
			}
			text := string(b.text[:b.cursor]) + "|" + string(b.text[b.cursor:])
			v.write(r.frame(laidOut(text, cols, rows), cols))
			want := shownOn(t, text, cols, rows)
			first := v.y - want.y
			got := newVTScreen(t, cols, rows)
			got.lines, got.x, got.y = v.lines[first:], v.x, want.y
			if !slices.Equal(got.text(), want.text()) || v.x != want.x || v.pending || first < above {
				t.Fatalf("seed %d, step %d, %d columns: %q shows\n%v\nwant\n%v", seed, step, cols, text, got, want)
			}
			for i := range above {
				if v.lines[i].cells[0] != fmt.Sprint(i%10) {
					t.Fatalf("seed %d, step %d: row %d above the text was overwritten", seed, step, i)
				}
			}
		}
	}
}

// Only what changed is written: one more character costs one character.
func TestRendererWritesLittle(t *testing.T) {
	t.Parallel()
	var r renderer
	r.frame(laidOut("hello world|", 40, 10), 40)
	if got := string(r.frame(laidOut("hello world!|", 40, 10), 40)); got != "!" {
		t.Errorf("typing at the end writes %q", got)
	}
	if got := string(r.frame(laidOut("hello world|!", 40, 10), 40)); got != "\x1b[D" {
		t.Errorf("a move writes %q", got)
	}
	if got := string(r.frame(laidOut("hello world|!", 40, 10), 40)); got != "" {
		t.Errorf("nothing writes %q", got)
	}
	if got := string(r.frame(laidOut("hello world?|!", 40, 10), 40)); got != "?!\x1b[D" {
		t.Errorf("typing in the middle writes %q", got)
	}
}

// After a resize the text stands there once, whether the terminal wraps lines anew or not, and nothing above it is lost.
func TestRendererResize(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"|", "short|", "a long line that goes over several rows of the screen|", "a long line that goes |over several rows of the screen", "one\ntwo and three and four and five\nsix|", "一二三四五六七八九十一二三四五|六七八九十"} {
		for _, to := range []int{10, 13, 25, 40, 79} {
			t.Run(fmt.Sprintf("%q to %d", text, to), func(t *testing.T) {
				v := newVTScreen(t, 20, 12)
				v.write([]byte("above\r\n"))
				var r renderer
				before, after, _ := strings.Cut(text, "|")
				for i := range []rune(before) { // typed, so that rows wrap as they do for a person
					if s := before[i:]; s != "" {
						v.write(r.frame(laidOut(before[:i]+"|", 20, 12), 20))
					}
				}
				v.write(r.frame(laidOut(before+"|"+after, 20, 12), 20))
				v.resize(to, 12, true)
				v.write(slices.Clone(r.again(to, true)))
				v.write(r.frame(laidOut(text, to, 12), to))
				want := newVTScreen(t, to, 12)
				want.write([]byte("above\r\n"))
				var fresh renderer
				want.write(fresh.frame(laidOut(text, to, 12), to))
				if v.String() != want.String() {
					t.Errorf("got\n%v\nwant\n%v", v, want)
				}
			})
		}
	}
	// A terminal that cuts rows instead: what stands above is kept.
	v := newVTScreen(t, 20, 12)
	v.write([]byte("above\r\n"))
	var r renderer
	v.write(r.frame(laidOut("a long line that goes over rows|", 20, 12), 20))
	v.resize(40, 12, false)
	v.write(slices.Clone(r.again(40, false)))
	v.write(r.frame(laidOut("a long line that goes over rows|", 40, 12), 40))
	if got, want := v.text(), []string{"above", "› a long line that goes over rows"}; !slices.Equal(got, want) {
		t.Errorf("without wrapping anew: %q, want %q", got, want)
	}
}

// A megabyte in the editor is laid out for a key press in less time than a person notices; the bound is loose for a busy machine.
func BenchmarkLayoutMegabyte(b *testing.B) {
	text := []rune(strings.Repeat("all work and no play 一二\n", 1<<20/26))
	for b.Loop() {
		e := editedText{prompt: "› ", more: "  ", text: text, cursor: len(text)}
		if l := e.layout(80, 24); len(l.rows) != 24 {
			b.Fatal(len(l.rows))
		}
	}
}
