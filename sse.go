// This file reads server-sent events (WHATWG HTML, section 9.2) from a stream, one buffer for lines and data alike. It knows
// no JSON and sends nothing.
package main

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

const (
	sseBufferMin = 16 << 10 // bytes the buffer starts with if the caller has none
	sseLineSlack = 64       // bytes that a line may have beyond the cap of its event: field name, colon, space
)

// errSSETooLarge says that one event, or one line of any kind, is over the cap of the reader.
var errSSETooLarge = errors.New("event is too large")

// sseEvent is one event that carries data. Event is "message" where the stream names none. Retry is in milliseconds, -1 for none.
type sseEvent struct {
	Event string
	Data  string
	ID    string
	HasID bool
	Retry int
}

// readSSE gives yield each event that has data, until the stream ends, yield wants no more or either fails. maxBytes caps one
// event and one line, not the stream. A last event that no blank line ends is given too.
func readSSE(r io.Reader, maxBytes int64, yield func(sseEvent) (more bool, err error)) error {
	s := newSSEReader(r, int(maxBytes), nil)
	for {
		f, err := s.next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case len(f.Data) == 0:
			continue
		}
		more, err := yield(sseEvent{Event: f.Event, Data: string(f.Data), ID: f.ID, HasID: f.HasID, Retry: f.Retry})
		if err != nil || !more {
			return err
		}
	}
}

// sseFrame is sseEvent for readers that care for copies: Data lies in the reader's buffer and is good until the next call of
// next. Events without data, which only set an id or a retry time, are frames too.
type sseFrame struct {
	Event string
	Data  []byte
	ID    string
	HasID bool
	Retry int
}

// sseReader splits a stream. The buffer holds the data of the open event, then bytes not yet read as lines: the first data
// line stays where it was read, further ones are moved up behind it.
type sseReader struct {
	src     io.Reader
	max     int
	buf     []byte
	from    int // data of the open event is buf[from:to]
	to      int
	hasData bool
	pos     int // start of the line being read
	scan    int // no line end in buf[pos:scan]
	skipLF  bool
	started bool  // the byte order mark is behind us
	end     error // why nothing more can be read
}

// newSSEReader reads from r with buf as its first buffer. max is the cap in bytes of one event.
func newSSEReader(r io.Reader, max int, buf []byte) *sseReader {
	if cap(buf) == 0 {
		buf = make([]byte, 0, sseBufferMin)
	}
	return &sseReader{src: r, max: max, buf: buf[:0]}
}

// next returns the next event, or io.EOF after the last one. A stream that ends, or is cut, inside an event still gives what
// data was there; whoever reads it can tell a whole message from a part.
func (s *sseReader) next() (sseFrame, error) {
	f := sseFrame{Event: "message", Retry: -1}
	s.hasData, s.from, s.to = false, 0, 0
	for {
		start, end, err := s.line()
		if err != nil {
			if s.hasData && (err == io.EOF || err == io.ErrUnexpectedEOF) {
				f.Data, s.hasData = s.buf[s.from:s.to], false
				return f, nil
			}
			return sseFrame{}, err
		}
		if start < end {
			if err := s.field(&f, start, end); err != nil {
				return sseFrame{}, err
			}
			continue
		}
		if s.hasData {
			f.Data = s.buf[s.from:s.to]
		}
		if s.hasData || f.HasID || f.Retry >= 0 {
			return f, nil
		}
		f.Event = "message" // a blank line ends an event without data and its name with it
	}
}

// line finds the next line as offsets into the buffer. LF, CRLF and CR end a line.
func (s *sseReader) line() (start, end int, err error) {
	for {
		if s.skipLF && s.pos < len(s.buf) {
			if s.buf[s.pos] == '\n' {
				s.pos++
			}
			s.skipLF = false
			s.scan = max(s.scan, s.pos)
		}
		if i := lineEnd(s.buf[s.scan:]); i >= 0 {
			start, end = s.pos, s.scan+i
			s.skipLF = s.buf[end] == '\r'
			s.pos, s.scan = end+1, end+1
			return s.skipBOM(start, end), end, nil
		}
		s.scan = len(s.buf)
		if s.end != nil {
			if start, end = s.pos, len(s.buf); start < end && (s.end == io.EOF || s.end == io.ErrUnexpectedEOF) {
				s.pos = end
				return s.skipBOM(start, end), end, nil
			}
			return 0, 0, s.end
		}
		if err := s.fill(); err != nil {
			return 0, 0, err
		}
	}
}

func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf < 0 {
		lf = len(b)
	}
	if cr := bytes.IndexByte(b[:lf], '\r'); cr >= 0 {
		return cr
	}
	if lf == len(b) {
		return -1
	}
	return lf
}

func (s *sseReader) skipBOM(start, end int) int {
	if !s.started && bytes.HasPrefix(s.buf[start:end], []byte("\xef\xbb\xbf")) {
		start += 3
	}
	s.started = true
	return start
}

// fill reads once. It is called only with an unfinished line, so what is kept is that line and the data before it.
func (s *sseReader) fill() error {
	live := s.to - s.from + len(s.buf) - s.pos
	if live > s.max+sseLineSlack {
		return errorf("%w: over %d bytes", errSSETooLarge, s.max)
	}
	if len(s.buf) == cap(s.buf) || s.pos == len(s.buf) && !s.hasData {
		s.makeRoom(live)
	}
	// A reader may give nothing without a fault; the one behind an HTTP body blocks instead, so this is no busy loop.
	n, err := s.src.Read(s.buf[len(s.buf):cap(s.buf)])
	s.buf = s.buf[:len(s.buf)+n]
	s.end = err
	return nil
}

// makeRoom moves the live bytes to the front, into a larger buffer if they fill half of this one.
func (s *sseReader) makeRoom(live int) {
	dst := s.buf[:cap(s.buf)]
	if live > cap(s.buf)/2 {
		dst = make([]byte, max(live+sseLineSlack, min(4*cap(s.buf), s.max+2*sseLineSlack)))
	}
	n := copy(dst, s.buf[s.from:s.to])
	m := copy(dst[n:], s.buf[s.pos:])
	s.scan += n - s.pos
	s.from, s.to, s.pos = 0, n, n
	s.buf = dst[:n+m]
}

// field takes one line that is not blank.
func (s *sseReader) field(f *sseFrame, start, end int) error {
	line := s.buf[start:end]
	colon := bytes.IndexByte(line, ':')
	name, at := line, end
	if colon >= 0 {
		name, at = line[:colon], start+colon+1
		if at < end && s.buf[at] == ' ' {
			at++
		}
	}
	switch string(name) {
	case "data":
		return s.data(at, end)
	case "event":
		if f.Event = string(s.buf[at:end]); f.Event == "" {
			f.Event = "message"
		}
	case "id":
		if bytes.IndexByte(s.buf[at:end], 0) < 0 {
			f.ID, f.HasID = string(s.buf[at:end]), true
		}
	case "retry":
		if n, err := strconv.ParseUint(string(s.buf[at:end]), 10, 31); err == nil {
			f.Retry = int(n)
		}
	}
	return nil
}

// data adds the bytes at offsets at to end to the data of the open event, after a line feed if it has some.
func (s *sseReader) data(at, end int) error {
	if !s.hasData {
		s.from, s.to, s.hasData = at, end, true
	} else {
		s.buf[s.to] = '\n' // at least the field name lies between, so nothing unread is overwritten
		s.to += 1 + copy(s.buf[s.to+1:], s.buf[at:end])
	}
	if s.to-s.from > s.max {
		return errorf("%w: over %d bytes", errSSETooLarge, s.max)
	}
	return nil
}
