// This file reads run logs back: it verifies the chain of one and yields its lines. It needs nothing but the file, holds
// a bounded part of it at a time and never writes.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
)

const (
	auditBatchSize  = 256 << 10 // bytes of a log that are judged at one go
	auditWorkersMax = 4         // goroutines that judge the lines of one log
	auditLineStart  = `{"seq":` // of each line
)

// errAuditLong is a line that record never writes.
var errAuditLong = errors.New("the line is longer than any that tai writes")

// auditReport is what verifying a log found. Lines are the whole, chained lines; Bad is the first line (from 1) that is
// not what was written, 0 when there is none. An incomplete last line is a crash, not tampering: a whole line is one
// write that ends in a newline. Without a head kept elsewhere a cleanly cut tail cannot show.
type auditReport struct {
	Lines      int    `json:"lines"`
	Run        string `json:"run,omitempty"`
	Head       string `json:"head,omitempty"`
	Bad        int    `json:"bad,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Incomplete bool   `json:"incomplete,omitempty"`
	Unreadable bool   `json:"unreadable,omitempty"`
	Completed  bool   `json:"completed"` // the last line is run_completed

	at string // hash of the line asked for, "" where the log has no such whole line
}

// exitCode is that of tai audit verify: 0 good, 1 tampered, 2 unreadable.
func (r auditReport) exitCode() int {
	switch {
	case r.Bad > 0:
		return 1
	case r.Unreadable:
		return 2
	}
	return 0
}

// verifyAuditAt reads a log to its end or to the first bad line, in bounded memory, and notes the hash of line number mark, counted from 1,
// for whoever holds a head of it; 0 for none. The error is non-nil only where nothing could be judged: the file cannot be read, or it holds
// no line at all. The report then says Unreadable.
func verifyAuditAt(r io.Reader, mark int64) (rep auditReport, err error) {
	c := auditChain{mark: mark, prev: []byte(auditGenesis)}
	rest, end := c.readAll(r)
	rep = auditReport{Lines: c.lines, Run: string(c.run), Head: string(c.prev), Completed: c.completed, at: c.marked}
	switch {
	case c.bad != nil:
		rep.Bad, rep.Reason = c.lines+1, c.bad.Error()
	case end == io.EOF && len(rest) == 0 && c.lines == 0:
		rep.Unreadable, rep.Reason = true, "the file is empty"
		err = newError("verify run log: the file is empty")
	case end == io.EOF && len(rest) > 0 && c.lines == 0 && !bytes.HasPrefix(rest, []byte(auditLineStart)) && !strings.HasPrefix(auditLineStart, string(rest)):
		rep.Unreadable, rep.Reason = true, "the file is no run log"
		err = newError("verify run log: the file is no run log")
	case end == io.EOF && len(rest) > 0:
		rep.Incomplete, rep.Reason = true, "the last line is incomplete"
	case end != io.EOF:
		rep.Unreadable, rep.Reason = true, end.Error()
		err = errorf("verify run log: %w", end)
	}
	return rep, err
}

// auditBatch is a part of a log that ends with a line. Its lines are judged by themselves, in any goroutine; their links are
// compared in order afterwards.
type auditBatch struct {
	buf    []byte
	whole  int // bytes of buf that are whole lines
	links  []auditLink
	bad    error // of the line after those in links
	judged chan struct{}
}

// fill puts the rest of the batch before and the next bytes of r into buf. end is nil where more may follow; the rest that is no
// whole line stays behind buf[:whole].
func (b *auditBatch) fill(r io.Reader, rest []byte) (end error) {
	n := copy(b.buf[:cap(b.buf)], rest)
	for n < cap(b.buf) && end == nil {
		var got int
		got, end = r.Read(b.buf[n:cap(b.buf)])
		n += got
	}
	b.buf = b.buf[:n]
	b.whole = bytes.LastIndexByte(b.buf, '\n') + 1
	b.links, b.bad = b.links[:0], nil
	return end
}

func (b *auditBatch) rest() []byte { return b.buf[b.whole:] }

// judge takes the lines up to the first that is bad by itself.
func (b *auditBatch) judge(j *auditJudge) {
	for text := b.buf[:b.whole]; len(text) > 0 && b.bad == nil; {
		n := bytes.IndexByte(text, '\n')
		if n >= auditLineMax {
			b.bad = errAuditLong
			break
		}
		var link auditLink
		if link, b.bad = j.judge(text[:n]); b.bad == nil {
			b.links = append(b.links, link)
		}
		text = text[n+1:]
	}
}

// auditChain is how far a log was followed.
type auditChain struct {
	lines     int
	prev, run []byte
	completed bool
	bad       error // of line lines+1
	mark      int64 // a line whose hash is noted
	marked    string
}

// readAll follows r to its end, to an error or to the first bad line, and gives what stands behind the last whole line. A log
// of one batch is judged here; of a larger one the batches go to workers, and this goroutine reads, and compares them in order.
func (c *auditChain) readAll(r io.Reader) (rest []byte, end error) {
	workers := min(runtime.GOMAXPROCS(0), auditWorkersMax)
	jobs := make(chan *auditBatch, 2*workers) // as many as there are batches
	var wg sync.WaitGroup
	defer wg.Wait() // the workers end when jobs is closed
	defer close(jobs)
	var free, waiting []*auditBatch
	for started := 0; c.bad == nil; {
		for end == nil && len(waiting) < 2*workers-1 {
			b := &auditBatch{judged: make(chan struct{}, 1)}
			if len(free) > 0 {
				b, free = free[len(free)-1], free[:len(free)-1]
			} else {
				b.buf = make([]byte, 0, auditBatchSize)
			}
			end = b.fill(r, rest)
			rest = b.rest()
			if len(rest) >= auditLineMax {
				end = errAuditLong
			}
			if waiting = append(waiting, b); end != nil && len(waiting) == 1 && started == 0 {
				b.judge(new(auditJudge))
				b.judged <- struct{}{}
				continue
			}
			if started < workers {
				started++
				wg.Go(func() {
					var j auditJudge
					for b := range jobs {
						b.judge(&j)
						b.judged <- struct{}{}
					}
				})
			}
			jobs <- b
		}
		if len(waiting) == 0 {
			break
		}
		b := waiting[0]
		<-b.judged
		c.follow(b)
		waiting, free = waiting[1:], append(free, b)
	}
	if errors.Is(end, errAuditLong) && c.bad == nil {
		c.bad = errAuditLong
	}
	return rest, end
}

// follow compares the lines of one judged batch with those before.
func (c *auditChain) follow(b *auditBatch) {
	for i := range b.links {
		l := &b.links[i]
		switch {
		case !bytes.Equal(l.prev, c.prev):
			c.bad = newError("the line does not follow the one before")
		case l.seq != int64(c.lines)+1:
			c.bad = errorf("the line has number %d, not %d", l.seq, c.lines+1)
		case c.lines > 0 && !bytes.Equal(l.run, c.run):
			c.bad = newError("the line belongs to another run")
		case c.lines == 0 && string(l.event) != auditRunStarted:
			c.bad = newError("the log does not begin with " + auditRunStarted)
		}
		if c.bad != nil {
			return
		}
		if c.lines == 0 {
			c.run = bytes.Clone(l.run)
		}
		c.lines++
		c.prev, c.completed = append(c.prev[:0], l.hash...), string(l.event) == auditRunCompleted
		if int64(c.lines) == c.mark {
			c.marked = string(c.prev)
		}
	}
	c.bad = b.bad
}

// auditLines cuts a log into lines without their newline. A last line without one is io.ErrUnexpectedEOF, and io.EOF
// follows; a line over auditLineMax is bufio.ErrBufferFull.
type auditLines struct{ r *bufio.Reader }

func (l auditLines) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if err == nil {
		return line[:len(line)-1], nil
	}
	if err == io.EOF && len(line) > 0 {
		return line, io.ErrUnexpectedEOF
	}
	return nil, err
}

// readAudit yields the lines of a log in order until yield returns false. An incomplete last line is passed over; a line
// that cannot be read is an error that names it. It does not verify the chain.
func readAudit(r io.Reader, yield func(auditRecord) bool) error {
	lines := auditLines{r: bufio.NewReaderSize(r, auditLineMax)}
	var parser auditParser
	for n := 1; ; n++ {
		line, err := lines.next()
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err == bufio.ErrBufferFull {
			err = errAuditLong
		}
		if err != nil {
			return errorf("read run log: line %d: %w", n, err)
		}
		rec, err := parser.parse(line)
		if err != nil {
			return errorf("read run log: line %d: %w", n, err)
		}
		parser.rec = rec
		if !yield(rec) {
			return nil
		}
	}
}
