package main

import (
	"fmt"
	"strings"
	"testing"
)

// The newest output is kept whole and in order, however it comes, and its places stay true.
func TestProcOutputBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		size  int
		alter bool // every write on the other stream
	}{"lines": {100, false}, "large": {3 * procOutputMax, false}, "bytes of both streams": {1, true}, "blocks": {procPartMax, true}} {
		o := &procOutput{}
		var all strings.Builder
		for i := 0; all.Len() < 2*procOutputMax+1000 && i < 3*procMaxParts+all.Len(); i++ {
			text := strings.Repeat(fmt.Sprint(i%10), tc.size)
			stream := "stdout"
			if tc.alter && i%2 == 1 {
				stream = "stderr"
			}
			if n, err := o.stream(stream).Write([]byte(text)); n != len(text) || err != nil {
				t.Fatal(n, err)
			}
			all.WriteString(text)
			if tc.size == 1 && i > 2*procMaxParts {
				break
			}
		}
		start, end := o.bounds()
		if end != int64(all.Len()) || end-start > procOutputMax || len(o.parts) > procMaxParts {
			t.Errorf("%s: %d..%d of %d in %d parts", name, start, end, all.Len(), len(o.parts))
		}
		if got := string(o.bytes(0, end)); got != all.String()[start:] {
			t.Errorf("%s: what is kept is not the newest part", name)
		}
		if got, want := string(o.bytes(start+1, end-1)), all.String()[start+1:end-1]; got != want {
			t.Errorf("%s: a slice has %d bytes, want %d", name, len(got), len(want))
		}
	}
}

func TestProcLines(t *testing.T) {
	parts := []procPart{{Stream: "stdout", Text: []byte("a\nb")}, {Stream: "stdout", Text: []byte("c\nd")}, {Stream: "stderr", Text: []byte("e\n\nf")}}
	want := []shellPart{{"stdout", "a\n"}, {"stdout", "bc\n"}, {"stdout", "d"}, {"stderr", "e\n"}, {"stderr", "\n"}, {"stderr", "f"}}
	if got := procLines(parts); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// No character and no secret is cut by the ends of a piece.
func TestProcWhole(t *testing.T) {
	mask := newRedactor([]namedSecret{{Name: "TOKEN", Value: "hush-hush-1"}}).text
	tools := procToolset{redact: mask}
	const text = "first line\nkey hush-hush-1 here\nlast ü€"
	at := int64(strings.Index(text, "hush"))
	for _, tc := range []struct {
		from, to int64
		running  bool
		want     string
	}{
		{0, 11, true, "first line\n"},
		{0, 4, true, "firs"},
		{0, at + 4, true, "first line\nkey hush-hush-1 here\n"},
		{at + 4, at + 20, true, "key hush-hush-1 here\nlast ü€"},
		{at + 2, int64(len(text)), true, "key hush-hush-1 here\nlast ü€"},
		{33, int64(len(text)) - 1, true, "ast ü"},
		{33, int64(len(text)) - 3, true, "ast ü"},
		{int64(len(text)) - 4, int64(len(text)) - 3, true, text[len(text)-4 : len(text)-3]}, // what is asked for byte by byte still comes
	} {
		p := &proc{}
		p.out.add("stdout", []byte(text))
		from, to := tools.whole(p, tc.from, tc.to, tc.running)
		got := string(p.out.bytes(from, to))
		if got != tc.want {
			t.Errorf("%d..%d: got %q, want %q", tc.from, tc.to, got, tc.want)
		}
	}
	p := &proc{}
	p.out.add("stdout", []byte("half \xe2\x82"))
	if _, to := tools.whole(p, 0, 7, true); to != 5 {
		t.Errorf("the rest of a character is not waited for: %d", to)
	}
	if _, to := tools.whole(p, 0, 7, false); to != 7 {
		t.Errorf("an ended process keeps its last bytes: %d", to)
	}
}
