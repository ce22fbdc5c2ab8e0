// This file reads the calls back that run logs tell of: the lines of each call put together, of many logs, within bounds of bytes and time. It
// verifies nothing, knows no tool and never writes.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"time"
)

const (
	auditScanMax  = 64 << 20         // bytes of all logs that one look reads
	auditScanLog  = 16 << 20         // bytes of one log that it reads, its end
	auditScanTime = 10 * time.Second // one look
)

// auditCall is one call as the lines about it tell it. What is not known is "" or 0. Data is what was asked for, Said what was told of its end.
type auditCall struct {
	Run, Origin                 string
	Seq                         int64 // of its first line
	Time                        time.Time
	Call, Parent, Kind, Subject string
	Digest, Outcome, Rule       string
	Event                       string // of its last line
	DurationMS                  float64
	Asked, Size                 int64 // bytes of the arguments, of the result
	Data, Said                  []byte
}

// ended reports a call that came to an end, refused ones too.
//
//go:noinline for size: it is called in many places
func (c auditCall) ended() bool {
	return c.Event == auditCallBlocked || c.Event == auditCallCompleted || c.Event == auditCallFailed
}

// auditScan is a look through the logs of some folders. Since is the time of the oldest call wanted, zero for all.
type auditScan struct {
	Dirs  []string
	Since time.Time
	Each  func(auditCall)
	Done  func(latest time.Time) bool // whether calls up to that time are not wanted any more; nil for never
}

// auditSeen is what a look has come to. Faults are logs that could not be read to their end.
type auditSeen struct {
	Logs, LeftLogs   int
	Bytes, LeftBytes int64
	Faults           int
}

// rest says in one sentence what was not looked at; "" if nothing.
func (s auditSeen) rest() string {
	text := ""
	if s.LeftBytes > 0 {
		text = fmt.Sprintf("%d bytes of older lines were not read (%s not opened); since narrows the search, tai audit show reads one run", s.LeftBytes, plural(s.LeftLogs, "log"))
	}
	if s.Faults > 0 {
		if text != "" {
			text += "; "
		}
		text += plural(s.Faults, "log") + " could not be read to the end; audit_verify tells more"
	}
	return text
}

// run reads the logs, the one last written first. Within one log calls come as they ended. ctx ends it with an error, its own bounds do not.
func (s auditScan) run(ctx context.Context) (seen auditSeen, err error) {
	logs, err := auditLogs(s.Dirs)
	if err != nil {
		return seen, err
	}
	sortBy(logs, func(a, b auditRunInfo) int { return b.latest.Compare(a.latest) })
	inner, cancel := context.WithTimeout(ctx, auditScanTime)
	defer cancel()
	for _, log := range logs {
		if log.latest.Before(s.Since) || s.Done != nil && s.Done(log.latest) {
			break
		}
		if ctx.Err() != nil {
			return seen, ctx.Err()
		}
		most := min(auditScanLog, auditScanMax-seen.Bytes)
		if most <= 0 || inner.Err() != nil {
			seen.LeftLogs++
			seen.LeftBytes += log.Size
			continue
		}
		read, err := s.readLog(inner, log, most)
		if ctx.Err() != nil {
			return seen, ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		seen.Logs++
		seen.Bytes += min(read, most)
		seen.LeftBytes += max(0, log.Size-most)
		switch {
		case inner.Err() != nil: // how far it came is not known
			seen.LeftBytes += min(read, most)
		case err != nil:
			seen.Faults++
		}
	}
	return seen, nil
}

// readLog reads the last most bytes of a log and tells of the calls in them.
func (s auditScan) readLog(ctx context.Context, log auditRunInfo, most int64) (size int64, err error) {
	f, err := openRegular(log.Path)
	if err != nil {
		return 0, err
	}
	defer f.Close() // only read
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size = info.Size()
	var from io.Reader = io.LimitReader(f, most)
	if size > most {
		buffered := bufio.NewReaderSize(io.NewSectionReader(f, size-most, most), auditLineMax)
		if _, err := buffered.ReadSlice('\n'); err != nil { // the rest of a line
			return size, err
		}
		from = buffered
	}
	open, since, lines := map[string]*auditCall{}, s.Since.UTC(), 0
	tell := func(c *auditCall) {
		if !c.Time.Before(since) {
			s.Each(*c)
		}
	}
	err = readAudit(from, func(r auditRecord) bool {
		if lines++; lines%1024 == 0 && ctx.Err() != nil {
			return false
		}
		if r.Call == "" {
			return true
		}
		c := open[r.Call]
		if c == nil {
			c = &auditCall{Run: log.Run, Origin: log.Origin, Seq: r.Seq, Call: r.Call}
			c.Time, _ = time.Parse(auditTimeForm, r.Time) // of a line that is none it stays zero, and sorts last
			open[r.Call] = c
		}
		if c.add(r); c.ended() {
			tell(c)
			delete(open, r.Call)
		}
		return true
	})
	for _, c := range slices.SortedFunc(maps.Values(open), func(a, b *auditCall) int { return cmp.Compare(a.Seq, b.Seq) }) {
		tell(c)
	}
	return size, cmp.Or(err, ctx.Err())
}

// add takes one more line of the call.
func (c *auditCall) add(r auditRecord) {
	c.Parent, c.Kind, c.Subject = cmp.Or(r.Parent, c.Parent), cmp.Or(r.Kind, c.Kind), cmp.Or(r.Subject, c.Subject)
	c.Digest, c.Outcome, c.Rule = cmp.Or(r.Digest, c.Digest), cmp.Or(r.Outcome, c.Outcome), cmp.Or(r.Rule, c.Rule)
	c.Event = r.Event
	if r.Event == auditCallRequested {
		c.Asked, c.Data = r.Size, bytes.Clone(r.Data)
		return
	}
	if len(r.Data) > 0 {
		c.Said = bytes.Clone(r.Data)
	}
	if c.ended() {
		c.Size = r.Size
		c.DurationMS, _ = strconv.ParseFloat(r.Duration, 64) // "" is none
	}
}
