// This file keeps what a background process writes: the newest part of both streams, in the order it came, each byte with its place since
// the start. It knows no process and no tool.
package main

import (
	"bytes"
	"io"
	"sync"
)

const (
	procOutputMax = 512 << 10 // bytes of output kept for one process; the oldest go first
	procPartMax   = 4 << 10   // bytes of one part
	procMaxParts  = 8192      // parts kept, for a process that changes streams with every byte
)

// procPart is a piece of one stream. At is the place of its first byte in the whole output. Text is not changed any more.
type procPart struct {
	Stream string
	At     int64
	Text   []byte
}

// procOutput is safe for concurrent use.
type procOutput struct {
	mu      sync.Mutex
	parts   []procPart // oldest first
	kept    int
	end     int64         // bytes since the start
	changed chan struct{} // closed at the next output; nil while nobody waits
}

// stream gives the writer for one stream. It never fails and never waits for a reader.
func (o *procOutput) stream(name string) io.Writer { return procStream{o, name} }

type procStream struct {
	out  *procOutput
	name string
}

func (w procStream) Write(b []byte) (int, error) {
	w.out.add(w.name, b)
	return len(b), nil
}

func (o *procOutput) add(stream string, b []byte) {
	if len(b) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(b) > 0 {
		last := len(o.parts) - 1
		if last < 0 || o.parts[last].Stream != stream || len(o.parts[last].Text) >= procPartMax {
			o.parts = append(o.parts, procPart{Stream: stream, At: o.end})
			last++
		}
		n := min(len(b), procPartMax-len(o.parts[last].Text))
		o.parts[last].Text = append(o.parts[last].Text, b[:n]...) // readers hold shorter slices of it
		b, o.end, o.kept = b[n:], o.end+int64(n), o.kept+n
	}
	drop := 0
	for o.kept > procOutputMax || len(o.parts)-drop > procMaxParts {
		o.kept -= len(o.parts[drop].Text)
		o.parts[drop].Text = nil
		drop++
	}
	o.parts = o.parts[drop:]
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// watch gives a channel that is closed when more output has come.
func (o *procOutput) watch() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	return o.changed
}

// bounds gives the places of the first byte kept and behind the last one.
func (o *procOutput) bounds() (start, end int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.end - int64(o.kept), o.end
}

// slice gives what is kept between two places.
func (o *procOutput) slice(from, to int64) []procPart {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []procPart
	for _, p := range o.parts {
		a, b := max(from-p.At, 0), min(to-p.At, int64(len(p.Text)))
		if a < b {
			out = append(out, procPart{p.Stream, p.At + a, p.Text[a:b]})
		}
	}
	return out
}

// bytes gives what is kept between two places as one text, both streams together.
func (o *procOutput) bytes(from, to int64) []byte {
	var b bytes.Buffer
	for _, p := range o.slice(from, to) {
		b.Write(p.Text)
	}
	return b.Bytes()
}
