package main

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// sseAll reads a whole stream, events without data included.
func sseAll(r io.Reader, max int, buf []byte) ([]sseEvent, error) {
	s := newSSEReader(r, max, buf)
	var out []sseEvent
	for {
		f, err := s.next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, sseEvent{Event: f.Event, Data: string(f.Data), ID: f.ID, HasID: f.HasID, Retry: f.Retry})
	}
}

func sseMessage(data string) sseEvent {
	return sseEvent{Event: "message", Data: data, Retry: -1}
}

func TestSSE(t *testing.T) {
	tests := []struct {
		name, stream string
		want         []sseEvent
	}{
		{"W39 LF", "data: a\n\ndata: b\n\n", []sseEvent{sseMessage("a"), sseMessage("b")}},
		{"HTC-07 CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []sseEvent{sseMessage("a"), sseMessage("b")}},
		{"HTC-07 CRLF ends one line, not two", "event: x\r\ndata: a\r\ndata: b\r\n\r\n", []sseEvent{{Event: "x", Data: "a\nb", Retry: -1}}},
		{"HTC-07 CR alone", "data: a\r\rdata: b\r\r", []sseEvent{sseMessage("a"), sseMessage("b")}},
		{"HTC-07 mixed", "data: a\r\n\ndata: b\n\r\n", []sseEvent{sseMessage("a"), sseMessage("b")}},
		{"HTC-08 F09 several data lines", "data: {\"id\":7,\ndata:\"result\":{}}\n\n", []sseEvent{sseMessage("{\"id\":7,\n\"result\":{}}")}},
		{"data lines with others between", "data: a\n: c\nid: 9\ndata:b\ndata\ndata: \n\n", []sseEvent{{Event: "message", Data: "a\nb\n\n", ID: "9", HasID: true, Retry: -1}}},
		{"one blank dropped, not two", "data:  a\n\n", []sseEvent{sseMessage(" a")}},
		{"HTC-09 priming, retry, comments", "id: 1\ndata:\n\nretry: 10\n\n: keep-alive\n\n:\n\ndata: a\n\n", []sseEvent{
			{Event: "message", ID: "1", HasID: true, Retry: -1},
			{Event: "message", Retry: 10},
			sseMessage("a"),
		}},
		{"HTC-10 named events", "event: endpoint\ndata: /x\n\nevent: message\ndata: a\n\nevent:\ndata: b\n\n", []sseEvent{
			{Event: "endpoint", Data: "/x", Retry: -1}, sseMessage("a"), sseMessage("b"),
		}},
		{"the name of an empty event is not kept", "event: ping\n\ndata: a\n\n", []sseEvent{sseMessage("a")}},
		{"HTC-06 no blank line", "data: a\n", []sseEvent{sseMessage("a")}},
		{"HTC-06 no line end", "data: a\n\ndata: b", []sseEvent{sseMessage("a"), sseMessage("b")}},
		{"bad retry, id with NUL, unknown field", "retry: 1x\nretry: -4\nretry: 99999999999\nid: a\x00b\nfoo: 1\ndata: a\n\n", []sseEvent{sseMessage("a")}},
		{"byte order mark once", "\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", []sseEvent{sseMessage("a")}},
		{"empty", "", nil},
		{"blank lines", "\n\r\n\r", nil},
	}
	readers := map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader, "end with data": iotest.DataErrReader,
	}
	for _, tc := range tests {
		for name, reader := range readers {
			for _, size := range []int{0, 1, 8} { // a tiny first buffer makes every move and growth happen
				var buf []byte
				if size > 0 {
					buf = make([]byte, 0, size)
				}
				got, err := sseAll(reader(strings.NewReader(tc.stream)), 1000, buf)
				if err != nil {
					t.Errorf("%s, %s, buffer %d: %v", tc.name, name, size, err)
				}
				if !reflect.DeepEqual(got, tc.want) {
					t.Errorf("%s, %s, buffer %d:\n got %+v\nwant %+v", tc.name, name, size, got, tc.want)
				}
			}
		}
	}
}

func TestSSECap(t *testing.T) {
	const limit = 1000
	tests := []struct {
		name, stream string
		ok           bool
	}{
		{"event of the cap", "data: " + strings.Repeat("x", limit) + "\n\n", true},
		{"one byte over", "data: " + strings.Repeat("x", limit+1) + "\n\n", false},
		{"many small lines", strings.Repeat("data: xxxxxxxxx\n", limit/10+1) + "\n", false},
		{"endless line", strings.Repeat("x", 100*limit), false},
		{"endless comment", ":" + strings.Repeat("x", 100*limit) + "\n\n", false},
		{"R2 many events, each small", strings.Repeat("data: xxxxxxxxx\n\n: c\n\n", limit), true},
	}
	for _, tc := range tests {
		for _, reader := range []io.Reader{strings.NewReader(tc.stream), iotest.HalfReader(strings.NewReader(tc.stream))} {
			got, err := sseAll(reader, limit, make([]byte, 0, 16))
			if ok := err == nil; ok != tc.ok || !ok && !errors.Is(err, errSSETooLarge) {
				t.Errorf("%s: %d events, error %v; want success %v", tc.name, len(got), err, tc.ok)
			}
		}
	}
}

// STD-11's rule on HTTP: 100,000 events before the one that counts need no memory of their own.
func TestSSEFlatMemory(t *testing.T) {
	s := newSSEReader(strings.NewReader(strings.Repeat("data: {\"method\":\"notifications/message\"}\n\n", 100_000)), mcpHTTPMaxBody, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := 0
	for ; ; n++ {
		if _, err := s.next(); err != nil {
			break
		}
	}
	runtime.ReadMemStats(&after)
	if n != 100_000 {
		t.Fatalf("%d events, want 100000", n)
	}
	if cap(s.buf) > 2*sseBufferMin {
		t.Errorf("buffer grew to %d bytes", cap(s.buf))
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("%d bytes allocated for 100000 events", grown)
	}
}

func TestSSEBrokenStream(t *testing.T) {
	broken := errors.New("broken")
	s := newSSEReader(io.MultiReader(strings.NewReader("data: a\n"), iotest.ErrReader(broken)), 100, nil)
	if f, err := s.next(); err != broken {
		t.Errorf("got %q, %v; want the reader's error and no event", f.Data, err)
	}
	s = newSSEReader(io.MultiReader(strings.NewReader("data: a\n"), iotest.ErrReader(io.ErrUnexpectedEOF)), 100, nil)
	if f, err := s.next(); err != nil || string(f.Data) != "a" {
		t.Errorf("HTC-06, cut stream: got %q, %v; want a", f.Data, err)
	}
	if _, err := s.next(); err != io.ErrUnexpectedEOF {
		t.Errorf("after the last event: %v, want %v", err, io.ErrUnexpectedEOF)
	}
}

func TestReadSSE(t *testing.T) {
	const stream = "id: 1\ndata:\n\nevent: delta\nid: 2\nretry: 5\ndata: a\n\ndata: b\n\ndata: c\n\n"
	var got []sseEvent
	err := readSSE(strings.NewReader(stream), 100, func(e sseEvent) (bool, error) {
		got = append(got, e)
		return e.Data != "b", nil
	})
	want := []sseEvent{{Event: "delta", Data: "a", ID: "2", HasID: true, Retry: 5}, {Event: "message", Data: "b", Retry: -1}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	stop := errors.New("stop")
	if err := readSSE(strings.NewReader(stream), 100, func(sseEvent) (bool, error) { return true, stop }); err != stop {
		t.Errorf("error of yield: got %v, want %v", err, stop)
	}
	if err := readSSE(strings.NewReader(stream), 100, func(sseEvent) (bool, error) { return true, nil }); err != nil {
		t.Errorf("end of stream: %v", err)
	}
}

func FuzzSSE(f *testing.F) {
	f.Add("data: a\r\n\r\nid: 1\ndata:\n\n", uint8(3))
	f.Add("data: a\rdata: b\n\n: c\r\n", uint8(1))
	f.Fuzz(func(t *testing.T, stream string, size uint8) {
		whole, err1 := sseAll(strings.NewReader(stream), 1<<20, nil)
		parts, err2 := sseAll(iotest.OneByteReader(strings.NewReader(stream)), 1<<20, make([]byte, 0, int(size)+1))
		if !slices.Equal(whole, parts) || err1 != err2 {
			t.Errorf("%q: read at once %+v, by bytes %+v", stream, whole, parts)
		}
	})
}

func BenchmarkSSE(b *testing.B) {
	for _, size := range []int{100, 8 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			stream := "event: message\ndata: " + strings.Repeat("x", size) + "\n\n"
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				s := newSSEReader(strings.NewReader(stream), mcpHTTPMaxBody, nil)
				if f, err := s.next(); err != nil || len(f.Data) != size {
					b.Fatal(len(f.Data), err)
				}
			}
		})
	}
}
