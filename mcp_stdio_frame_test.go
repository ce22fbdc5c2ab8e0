package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", 3*frameBuffer+7)
	const max = 4 * frameBuffer
	at, over := strings.Repeat("m", max), strings.Repeat("o", max+1)
	tests := []struct {
		name, in string
		want     []string // a line, or "!" and the error
	}{
		{"lines", "a\nb\r\n\nc\n", []string{"a", "b", "", "c", "!EOF"}},
		{"cut", "a\n{\"id\":2", []string{"a", "!unexpected EOF"}},
		{"beyond the buffer", "a\n" + long + "\nb\n" + long + "\n" + long + "\nc\n", []string{"a", long, "b", long, long, "c", "!EOF"}},
		{"at the cap, over it", at + "\n" + over + "\nafter\n" + over + over + over + "\nend\n", []string{at, "!message over 0 MB", "after", "!message over 0 MB", "end", "!EOF"}},
		{"over it and cut", over + over, []string{"!unexpected EOF"}},
		{"fills the buffer", strings.Repeat("y", frameBuffer-1) + "\n" + strings.Repeat("z", frameBuffer) + "\nq\n", []string{strings.Repeat("y", frameBuffer-1), strings.Repeat("z", frameBuffer), "q", "!EOF"}},
	}
	readers := map[string]func(io.Reader) io.Reader{
		"whole":  func(r io.Reader) io.Reader { return r },
		"halves": iotest.HalfReader,
		"eof":    iotest.DataErrReader,
	}
	for _, tc := range tests {
		for how, wrap := range readers {
			l := newLineReader(wrap(strings.NewReader(tc.in)), max)
			for i, want := range tc.want {
				line, _, err := l.next()
				got := string(line)
				if err != nil {
					got = "!" + err.Error()
				}
				if got != want {
					t.Errorf("%s, %s: line %d is %.40q (%d bytes), want %.40q (%d bytes)", tc.name, how, i, got, len(got), want, len(want))
				}
			}
		}
	}
}

// A line handed out as kept is not touched by the lines after it; memory stays in proportion to the cap.
func TestLineReaderKept(t *testing.T) {
	long := strings.Repeat("k", 2*frameBuffer)
	l := newLineReader(strings.NewReader(long+"\n"+strings.Repeat("l\n", frameBuffer)), 10*frameBuffer)
	line, kept, err := l.next()
	if err != nil || !kept {
		t.Fatalf("next = kept %v, %v", kept, err)
	}
	for err == nil {
		_, _, err = l.next()
	}
	if err != io.EOF || string(line) != long {
		t.Errorf("after %v the kept line has changed", err)
	}
}

func TestLineTooLongKeepsItsEnds(t *testing.T) {
	in := `{"jsonrpc":"2.0",` + strings.Repeat(" ", 2*frameBuffer) + `"id":17}`
	_, _, err := newLineReader(iotest.OneByteReader(strings.NewReader(in+"\n")), frameBuffer).next()
	e, ok := errors.AsType[*lineTooLong](err)
	if !ok {
		t.Fatalf("next = %v", err)
	}
	if id, isRPC := replyID(e.Head, e.Tail); string(id) != "17" || !isRPC {
		t.Errorf("replyID = %q, %v, want 17", id, isRPC)
	}
}

func TestReplyID(t *testing.T) {
	tests := []struct {
		head, tail, id string
		isRPC          bool
	}{
		{`{"jsonrpc":"2.0","id":5,"result":{"content":[{"te`, `"}]}}`, "5", true},
		{`{"id": "a,b" , "jsonrpc":"2.0","result":{`, ``, `"a,b"`, true},
		{`{"result":{"content":[{"text":"\"id\":9}`, `x"}]},"jsonrpc":"2.0","id":6}`, "6", true},
		{`{"result":{"content":[`, `","id":7 } `, "7", true},
		{`{"error":{"message":"`, `"},"id":8}`, "8", true},
		{`{"jsonrpc":"2.0","method":"notifications/message","params":{"id":5,`, `"id":5}`, "", false},
		{`{"level":"info","id":5,"error":"x"}`, ``, "5", false},
		{`{"jsonrpc":"2.0","result":{"id":3},"id":4}`, ``, "4", true},
		{`{"jsonrpc":"2.0","result":{"x":"` + strings.Repeat("y", 50), `y"}}`, "", true},
		{`{"jsonrpc":"2.0","id":1`, ``, "", true},
		{`[1,2]`, ``, "", false},
		{`Server running`, ``, "", false},
		{``, ``, "", false},
		{`{`, ``, "", false},
		{`{"jsonrpc"`, `}`, "", false},
	}
	for _, tc := range tests {
		id, isRPC := replyID([]byte(tc.head), []byte(tc.tail))
		if isRPC != tc.isRPC || string(id) != tc.id {
			t.Errorf("replyID(%.60q, %q) = %q, %v, want %q, %v", tc.head, tc.tail, id, isRPC, tc.id, tc.isRPC)
		}
	}
}

func FuzzReplyID(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":5,"result":{}}`), []byte(`"id":5}`))
	f.Add([]byte(`{"a":"\`), []byte(`}`))
	f.Fuzz(func(t *testing.T, head, tail []byte) {
		id, _ := replyID(head, tail) // must end, and in bounds
		if len(id) > 0 && !bytes.Contains(head, id) && !bytes.Contains(tail, id) {
			t.Errorf("replyID(%q, %q) = %q, which is in neither", head, tail, id)
		}
	})
}

func TestTailBuffer(t *testing.T) {
	var all strings.Builder
	b := &tailBuffer{max: 10}
	for _, s := range []string{"", "abc", "0123456789", "x", strings.Repeat("long", 20), "é", "end", "0123456789ABCDEFé"} {
		b.Write([]byte(s))
		all.WriteString(s)
		want := all.String()[max(0, all.Len()-10):]
		if got := b.String(); got != want {
			t.Errorf("after %q the tail is %q, want %q", s, got, want)
		}
	}
	b.Write([]byte("12345678")) // é is cut in half now and goes
	b.Write([]byte("9"))
	if got := b.String(); got != "123456789" {
		t.Errorf("the tail is %q, want it from the start of a character", got)
	}
}
