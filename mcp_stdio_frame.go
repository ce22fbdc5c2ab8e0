// This file splits a byte stream into lines of bounded size, finds the id of a message that cannot be decoded, and keeps the
// end of a stream that nobody reads. It knows nothing of processes or calls.
package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"
)

const (
	frameBuffer = 64 << 10 // bytes of the read buffer, also the most taken in one read
	framePart   = 1 << 20  // bytes of one part of a long line while it is read
	frameHead   = 4 << 10  // bytes kept from the start of a line over the cap
	frameTail   = 256      // bytes kept from its end
)

// lineTooLong is the error of a line over the cap. The line has been read to its end; the stream goes on after it.
type lineTooLong struct {
	Max        int
	Head, Tail []byte // the start and the end of the line, for its id
}

func (e *lineTooLong) Error() string { return fmt.Sprintf("message over %d MB", e.Max>>20) }

// lineReader reads lines that end in LF, of at most max bytes without it.
type lineReader struct {
	r          io.Reader
	buf        []byte // buf[start:end] has been read and not handed out
	start, end int
	max        int
}

func newLineReader(r io.Reader, max int) *lineReader {
	return &lineReader{r: r, buf: make([]byte, frameBuffer), max: max}
}

// next returns the next line without its line end (LF or CRLF). Unless kept is true the line is valid only until the following
// call. At the end of the stream the error is io.EOF, or io.ErrUnexpectedEOF inside a line: the fragment is not returned.
func (l *lineReader) next() (line []byte, kept bool, err error) {
	for seen := l.start; ; {
		if i := bytes.IndexByte(l.buf[seen:l.end], '\n'); i >= 0 {
			line, l.start = l.buf[l.start:seen+i], seen+i+1
			break
		}
		if l.start == l.end {
			l.start, l.end = 0, 0
		}
		if l.end == len(l.buf) && l.start > 0 {
			l.end = copy(l.buf, l.buf[l.start:l.end])
			l.start = 0
		}
		seen = l.end
		if l.end == len(l.buf) {
			if line, err = l.long(); err != nil {
				return nil, false, err
			}
			kept = true
			break
		}
		n, err := l.r.Read(l.buf[l.end:])
		if l.end += n; n == 0 && err != nil {
			return nil, false, l.ended(err, l.end > l.start)
		}
	}
	if len(line) > l.max {
		return nil, false, &lineTooLong{Max: l.max, Head: bytes.Clone(line[:min(len(line), frameHead)]), Tail: bytes.Clone(line[max(0, len(line)-frameTail):])}
	}
	return bytes.TrimSuffix(line, []byte{'\r'}), kept, nil
}

// long reads on a line that fills the whole buffer and returns it in memory of its own, which is of just its size: parts are
// gathered first, so that a line of many megabytes is copied once and never held in a buffer twice as large.
func (l *lineReader) long() ([]byte, error) {
	var parts [][]byte // full ones
	size := len(l.buf) // of the line so far, with big
	big := append(make([]byte, 0, 4*len(l.buf)), l.buf...)
	l.start, l.end = 0, 0
	for {
		if size > l.max {
			return nil, l.skip(join(parts, big, size))
		}
		if cap(big)-len(big) < len(l.buf) {
			parts = append(parts, big)
			big = make([]byte, 0, min(2*cap(big), framePart))
		}
		// No more than one buffer at a time, so that what follows the line fits into it.
		n, err := l.r.Read(big[len(big) : len(big)+len(l.buf)])
		part := big[len(big) : len(big)+n]
		if i := bytes.IndexByte(part, '\n'); i >= 0 {
			l.end = copy(l.buf, part[i+1:])
			return join(parts, big[:len(big)+i], size+i), nil
		}
		big, size = big[:len(big)+n], size+n
		if n == 0 && err != nil {
			return nil, l.ended(err, true)
		}
	}
}

// join gives parts and last, together size bytes, as one piece.
//
//go:noinline for size: it is called in many places
func join(parts [][]byte, last []byte, size int) []byte {
	if len(parts) == 0 {
		return last
	}
	whole := make([]byte, 0, size)
	for _, p := range parts {
		whole = append(whole, p...)
	}
	return append(whole, last...)
}

// skip reads to the end of a line over the cap and keeps its two ends alone.
func (l *lineReader) skip(big []byte) error {
	e := &lineTooLong{Max: l.max, Head: bytes.Clone(big[:frameHead]), Tail: bytes.Clone(big[len(big)-frameTail:])}
	for {
		n, err := l.r.Read(l.buf)
		part := l.buf[:n]
		i := bytes.IndexByte(part, '\n')
		if i >= 0 {
			part = part[:i]
			l.start, l.end = i+1, n
		}
		e.Tail = append(e.Tail, part[max(0, len(part)-frameTail):]...)
		e.Tail = append(e.Tail[:0], e.Tail[max(0, len(e.Tail)-frameTail):]...)
		if i >= 0 {
			return e
		}
		if n == 0 && err != nil {
			return l.ended(err, true)
		}
	}
}

// ended is the error at the end of the stream.
func (l *lineReader) ended(err error, inside bool) error {
	if err == io.EOF && inside {
		return io.ErrUnexpectedEOF
	}
	return err
}

// replyID finds the id of a reply that cannot be decoded: head is its start (or all of it), tail its last bytes if head is cut.
// The id is raw JSON. isRPC is false for a line that is no JSON-RPC message, as a log line in JSON, and for a request or notification.
// A hostile message can name any id here, so all that may follow is that the call of that id, its own, fails.
func replyID(head, tail []byte) (id []byte, isRPC bool) {
	b, ok := bytes.CutPrefix(bytes.TrimLeft(head, " \t\r"), []byte{'{'})
	for ok {
		var key, value []byte
		key, b = frameToken(b)
		key, ok = bytes.CutSuffix(key, []byte{':'})
		if !ok {
			break
		}
		value, b = frameToken(b)
		whole := len(value) > 0 && (value[len(value)-1] == ',' || value[len(value)-1] == '}')
		switch string(bytes.TrimSpace(key)) {
		case `"method"`:
			return nil, false
		case `"jsonrpc"`, `"result"`:
			isRPC = true
		case `"error"`:
			isRPC = isRPC || !whole
		case `"id"`:
			if whole {
				id = bytes.TrimSpace(value[:len(value)-1])
			}
		}
		ok = whole && value[len(value)-1] == ','
	}
	if id == nil && isRPC {
		id = trailingID(tail)
	}
	return id, isRPC
}

// requestID finds the id of a request over the cap, so that its sender need not wait for an answer; nil where it does not show.
func requestID(head, tail []byte) []byte {
	b, ok := bytes.CutPrefix(bytes.TrimLeft(head, " \t\r"), []byte{'{'})
	for ok {
		var key, value []byte
		key, b = frameToken(b)
		if key, ok = bytes.CutSuffix(key, []byte{':'}); !ok {
			break
		}
		value, b = frameToken(b)
		ok = len(value) > 0 && value[len(value)-1] == ','
		if ok && string(bytes.TrimSpace(key)) == `"id"` {
			return plainID(value[:len(value)-1])
		}
	}
	return plainID(trailingID(tail))
}

// plainID is an id as it may be given back: a string that needs no escape, or an integer. Nil for anything else.
func plainID(raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	id, quoted := bytes.CutPrefix(raw, []byte{'"'})
	if quoted {
		if id, quoted = bytes.CutSuffix(id, []byte{'"'}); !quoted || len(id) > frameTail {
			return nil
		}
		for _, c := range id {
			if c < ' ' || c > '~' || c == '"' || c == '\\' {
				return nil
			}
		}
		return raw
	}
	digits := bytes.TrimPrefix(raw, []byte{'-'})
	if len(digits) == 0 || len(digits) > 18 || len(digits) > 1 && digits[0] == '0' || len(bytes.Trim(digits, "0123456789")) > 0 {
		return nil
	}
	return raw
}

// trailingID reads the id from the end of an object whose last member it is, as some servers write it.
func trailingID(tail []byte) []byte {
	tail, ok := bytes.CutSuffix(bytes.TrimSpace(tail), []byte{'}'})
	i := bytes.LastIndex(tail, []byte(`"id"`))
	if !ok || i < 0 {
		return nil
	}
	id, ok := bytes.CutPrefix(bytes.TrimSpace(tail[i+len(`"id"`):]), []byte{':'})
	id = bytes.TrimSpace(id)
	if !ok || bytes.ContainsAny(id, "{}[],:") {
		return nil
	}
	return id
}

// frameToken cuts b after the first colon, comma or closing bracket that stands outside strings and nested values. A cut value comes without one.
func frameToken(b []byte) (token, rest []byte) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return b[:i+1], b[i+1:]
			}
			depth--
		case ':', ',':
			if depth == 0 {
				return b[:i+1], b[i+1:]
			}
		}
	}
	return b, nil
}

// tailBuffer keeps the last max bytes written to it. It may be used from several goroutines.
type tailBuffer struct {
	max int
	mu  sync.Mutex
	buf []byte
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buf == nil {
		t.buf = make([]byte, 0, 2*t.max)
	}
	keep := p[max(0, len(p)-t.max):]
	if len(t.buf)+len(keep) > cap(t.buf) {
		t.buf = append(t.buf[:0], t.buf[max(0, len(t.buf)-t.max):]...)
	}
	t.buf = append(t.buf, keep...)
	return len(p), nil
}

// String returns what is kept, from the start of a character on. It is as untrusted as what was written.
func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf[max(0, len(t.buf)-t.max):]
	for i := 0; len(b) < len(t.buf) && i < utf8.UTFMax && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
		b = b[1:]
	}
	return string(b)
}
