// This file reads run logs back: it verifies the chain of one, lists those of a folder and yields the lines of one. It
// needs nothing but the file, holds one line at a time and never writes.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const auditListMax = 10_000 // logs that one listing reads

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

// verifyAudit reads a log to its end or to the first bad line, in memory bounded by one line. The error is non-nil only
// where nothing could be judged: the file cannot be read, or it holds no line at all. The report then says Unreadable.
func verifyAudit(r io.Reader) (auditReport, error) { return verifyAuditAt(r, 0) }

// verifyAuditAt is verifyAudit that also notes the hash of line number mark, counted from 1, for whoever holds a head of it.
func verifyAuditAt(r io.Reader, mark int64) (auditReport, error) {
	rep := auditReport{Head: auditGenesis}
	chk := auditChecker{prev: auditGenesis}
	lines := auditLines{r: bufio.NewReaderSize(r, auditLineMax)}
	for {
		line, err := lines.next()
		switch {
		case err == io.EOF && rep.Lines == 0 && !rep.Incomplete:
			rep.Unreadable, rep.Reason = true, "the file is empty"
			return rep, errors.New("verify run log: the file is empty")
		case err == io.EOF:
			return rep, nil
		case errors.Is(err, io.ErrUnexpectedEOF) && rep.Lines == 0 && !bytes.HasPrefix(line, []byte(auditLineStart)) && !strings.HasPrefix(auditLineStart, string(line)):
			rep.Unreadable, rep.Reason = true, "the file is no run log"
			return rep, errors.New("verify run log: the file is no run log")
		case errors.Is(err, io.ErrUnexpectedEOF):
			rep.Incomplete, rep.Reason = true, "the last line is incomplete"
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			rep.Bad, rep.Reason = rep.Lines+1, "the line is longer than any that tai writes"
			return rep, nil
		case err != nil:
			rep.Unreadable, rep.Reason = true, err.Error()
			return rep, fmt.Errorf("verify run log: %w", err)
		}
		if err := chk.check(line); err != nil {
			rep.Bad, rep.Reason = rep.Lines+1, err.Error()
			return rep, nil
		}
		rep.Lines++
		rep.Run, rep.Head, rep.Completed = chk.rec.Run, chk.prev, chk.rec.Event == auditRunCompleted
		if int64(rep.Lines) == mark {
			rep.at = rep.Head
		}
	}
}

// auditLineStart is how each line of a log begins.
const auditLineStart = `{"seq":`

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

// auditChecker judges one line after the other. Its buffers are reused, so that a line costs its parsing and one hash.
type auditChecker struct {
	auditParser
	seq   int64
	prev  string
	canon []byte
	line  []byte
}

// check takes one line (without newline). It must be byte for byte what record would write for its own values, chained
// to the line before; so no edit, not even of white space or of a number's spelling, goes unseen.
func (c *auditChecker) check(line []byte) error {
	rec, err := c.parse(line)
	if err != nil {
		return err
	}
	c.line = rec.appendLine(c.line[:0])
	if !bytes.Equal(c.line[:len(c.line)-1], line) {
		return errors.New("the line is not spelled as tai writes it")
	}
	c.canon = rec.appendCanonical(c.canon[:0])
	sum := sha256.Sum256(c.canon)
	var hash [2 * sha256.Size]byte
	hex.Encode(hash[:], sum[:])
	switch {
	case string(hash[:]) != rec.Hash:
		return errors.New("the hash does not fit the line")
	case rec.Prev != c.prev:
		return errors.New("the line does not follow the one before")
	case rec.Seq != c.seq+1:
		return fmt.Errorf("the line has number %d, not %d", rec.Seq, c.seq+1)
	case c.seq > 0 && rec.Run != c.rec.Run:
		return errors.New("the line belongs to another run")
	case c.seq == 0 && rec.Event != auditRunStarted:
		return errors.New("the log does not begin with " + auditRunStarted)
	}
	c.rec, c.seq, c.prev = rec, rec.Seq, rec.Hash
	return nil
}

// auditParser reads lines strictly, known fields of their type only; its caller compares the spelling. A log repeats its
// run, its events and each line's hash, so texts that stood in the line before are shared with it.
type auditParser struct {
	rec     auditRecord // of the line before
	members []jsonMember
}

func parseAuditLine(line []byte) (auditRecord, error) { return new(auditParser).parse(line) }

// parse reads one line; the record does not alias it.
func (p *auditParser) parse(line []byte) (auditRecord, error) {
	var rec auditRecord
	members, err := jsonObjectInto(p.members[:0], line)
	if err != nil {
		return rec, fmt.Errorf("the line is no JSON object: %w", err)
	}
	p.members = members
	for _, m := range members {
		if err := p.set(&rec, m.Key, m.Value); err != nil {
			return rec, err
		}
	}
	return rec, nil
}

// set puts one field's raw value in place.
func (p *auditParser) set(r *auditRecord, key string, raw json.RawMessage) error {
	var err error
	switch key {
	case "seq":
		r.Seq, err = strconv.ParseInt(string(raw), 10, 64)
	case "size":
		r.Size, err = strconv.ParseInt(string(raw), 10, 64)
	case "duration_ms":
		r.Duration = string(raw)
		var ms float64
		if ms, err = strconv.ParseFloat(r.Duration, 64); err == nil && strconv.FormatFloat(ms, 'f', -1, 64) != r.Duration {
			err = errors.New("not in canonical form")
		}
	case "data":
		r.Data, err = canonicalJSON(raw)
	default:
		field := r.textField(key)
		if field == nil {
			return fmt.Errorf("the line has an unknown field %q", clip(visibleLine(key), 64))
		}
		before := *p.rec.textField(key)
		if key == "prev" {
			before = p.rec.Hash
		}
		if len(raw) == len(before)+2 && string(raw[1:len(raw)-1]) == before && bytes.IndexByte(raw, '\\') < 0 {
			*field = before
			break
		}
		var ok bool
		if *field, ok = jsonString(raw); !ok {
			err = errors.New("not a string")
		}
	}
	if err != nil {
		return fmt.Errorf("field %s: %w", key, err)
	}
	return nil
}

// textField is the place of a text field, nil for a name that no line has.
func (r *auditRecord) textField(key string) *string {
	switch key {
	case "time":
		return &r.Time
	case "run":
		return &r.Run
	case "event":
		return &r.Event
	case "call":
		return &r.Call
	case "parent":
		return &r.Parent
	case "kind":
		return &r.Kind
	case "subject":
		return &r.Subject
	case "digest":
		return &r.Digest
	case "outcome":
		return &r.Outcome
	case "rule":
		return &r.Rule
	case "prev":
		return &r.Prev
	case "hash":
		return &r.Hash
	}
	return nil
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
		if err != nil {
			return fmt.Errorf("read run log: line %d: %w", n, err)
		}
		rec, err := parser.parse(line)
		if err != nil {
			return fmt.Errorf("read run log: line %d: %w", n, err)
		}
		parser.rec = rec
		if !yield(rec) {
			return nil
		}
	}
}

// auditRunInfo is one log as a listing shows it. Started is zero and Fault set where its first line cannot be read.
type auditRunInfo struct {
	Run       string    `json:"run"`
	Origin    string    `json:"origin"`
	Path      string    `json:"path"`
	Size      int64     `json:"size"`
	Lines     int64     `json:"lines"` // number of the last whole line, not verified
	Started   time.Time `json:"started"`
	Completed bool      `json:"completed"`
	Fault     string    `json:"fault,omitempty"`
}

// listAudit lists the logs of some folders, newest first; a folder that does not exist has none. It reads the first and the last
// line of each.
func listAudit(dirs ...string) ([]auditRunInfo, error) {
	var runs []auditRunInfo
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list run logs: %w", err)
		}
		for _, e := range entries {
			name, ok := strings.CutSuffix(e.Name(), auditExtension)
			if !ok || !e.Type().IsRegular() {
				continue
			}
			if len(runs) == auditListMax {
				return nil, fmt.Errorf("list run logs: more than %d logs", auditListMax)
			}
			runs = append(runs, auditInfo(name, filepath.Join(dir, e.Name())))
		}
	}
	slices.SortStableFunc(runs, func(a, b auditRunInfo) int { return b.Started.Compare(a.Started) })
	return runs, nil
}

// auditInfo reads the two ends of one log.
func auditInfo(name, path string) auditRunInfo {
	info := auditRunInfo{Run: name, Path: path}
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		info.Origin = name[:i]
	}
	if err := info.readEnds(); err != nil {
		info.Fault = err.Error()
	}
	return info
}

func (info *auditRunInfo) readEnds() (err error) {
	f, err := os.Open(info.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return err
	}
	info.Size = stat.Size()
	first, err := auditLines{r: bufio.NewReaderSize(f, auditLineMax)}.next()
	if err != nil {
		return fmt.Errorf("first line: %w", err)
	}
	rec, err := parseAuditLine(first)
	if err != nil {
		return fmt.Errorf("first line: %w", err)
	}
	if info.Started, err = time.Parse(auditTimeForm, rec.Time); err != nil {
		return fmt.Errorf("first line: %w", err)
	}
	from := max(0, info.Size-2*auditLineMax)
	tail, err := io.ReadAll(io.NewSectionReader(f, from, info.Size-from))
	if err != nil {
		return err
	}
	tail = tail[:bytes.LastIndexByte(tail, '\n')+1] // what follows is an incomplete line
	tail = bytes.TrimSuffix(tail, []byte("\n"))
	last, err := parseAuditLine(tail[bytes.LastIndexByte(tail, '\n')+1:])
	if err != nil {
		return fmt.Errorf("last line: %w", err)
	}
	info.Lines, info.Completed = last.Seq, last.Event == auditRunCompleted
	return nil
}
