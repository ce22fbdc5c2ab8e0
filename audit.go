// This file appends the run log: one JSON object a line, each chained to the line before by its SHA-256. It owns the
// file, the order of the lines, their exact bytes and the shared sync; it knows no tool and no policy, and it is given
// nothing that may not be written down (Redact is the last guard, not the first).
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	auditGenesis   = "genesis" // prev of the first line
	auditDataMax   = 4 << 10   // bytes of data kept in a line; more is left out, its digest and size stay
	auditFieldMax  = 512       // bytes of any other text of a line, then clipped with its size
	auditLineMax   = 64 << 10  // bytes of one line; what record writes is always shorter
	auditTimeForm  = "2006-01-02T15:04:05.000000Z"
	auditDirPerm   = 0o700
	auditFilePerm  = 0o600
	auditExtension = ".jsonl"
)

// The events of a run (design: audit). A reader may meet no others.
const (
	auditRunStarted    = "run_started"
	auditRunCompleted  = "run_completed"
	auditCallRequested = "tool_call_requested"
	auditCallBlocked   = "tool_call_blocked"
	auditCallStarted   = "tool_call_started"
	auditCallCompleted = "tool_call_completed"
	auditCallFailed    = "tool_call_failed"
)

// How a call ended. A registration that came to its end says instead what the server is now: enabled, disabled or login.
const (
	auditOK     = "ok"
	auditError  = "error"  // it failed, or it could not be tried
	auditDenied = "denied" // by policy, consent or pin
)

// auditKindMCP is the kind of a bridged call; its subject is server/tool.
const auditKindMCP = "mcp-call"

// auditEvent is what a caller has to say about one step of one call. Size is in bytes. Data is one JSON value; it is
// redacted, and left out when it is larger than auditDataMax: Digest (or, without one, the SHA-256 of the data) and Size
// then stand for it.
type auditEvent struct {
	Event, Call, Parent, Kind, Subject, Digest, Outcome, Rule string
	Duration                                                  time.Duration
	Size                                                      int64
	Data                                                      json.RawMessage
}

// auditRecord is one line of a run log. Duration is the number of milliseconds as written, "" where the line has none.
type auditRecord struct {
	Seq      int64
	Time     string
	Run      string
	Event    string
	Call     string
	Parent   string
	Kind     string
	Subject  string
	Digest   string
	Outcome  string
	Duration string
	Size     int64
	Rule     string
	Data     json.RawMessage // canonical
	Prev     string
	Hash     string
}

// appendCanonical writes what is hashed: the canonical JSON (RFC 8785) of the line without its hash.
func (r *auditRecord) appendCanonical(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendAuditText(dst, "call", r.Call)
	if len(r.Data) > 0 {
		dst = append(append(append(dst, `"data":`...), r.Data...), ',')
	}
	dst = appendAuditText(dst, "digest", r.Digest)
	dst = appendAuditNumber(dst, "duration_ms", r.Duration)
	dst = appendAuditText(dst, "event", r.Event)
	dst = appendAuditText(dst, "kind", r.Kind)
	dst = appendAuditText(dst, "outcome", r.Outcome)
	dst = appendAuditText(dst, "parent", r.Parent)
	dst = appendAuditText(dst, "prev", r.Prev)
	dst = appendAuditText(dst, "rule", r.Rule)
	dst = appendAuditText(dst, "run", r.Run)
	dst = append(strconv.AppendInt(append(dst, `"seq":`...), r.Seq, 10), ',')
	dst = appendAuditSize(dst, r.Size)
	dst = appendAuditText(dst, "subject", r.Subject)
	dst = appendAuditText(dst, "time", r.Time)
	dst[len(dst)-1] = '}'
	return dst
}

// appendLine writes the line as it stands in the file, newline included: the fields in the order of the contract, and
// no character in it that a screen would act on. The hash covers its canonical form, where such characters are plain.
func (r *auditRecord) appendLine(dst []byte) []byte {
	start := len(dst)
	dst = append(strconv.AppendInt(append(dst, `{"seq":`...), r.Seq, 10), ',')
	dst = appendAuditText(dst, "time", r.Time)
	dst = appendAuditText(dst, "run", r.Run)
	dst = appendAuditText(dst, "event", r.Event)
	dst = appendAuditText(dst, "call", r.Call)
	dst = appendAuditText(dst, "parent", r.Parent)
	dst = appendAuditText(dst, "kind", r.Kind)
	dst = appendAuditText(dst, "subject", r.Subject)
	dst = appendAuditText(dst, "digest", r.Digest)
	dst = appendAuditText(dst, "outcome", r.Outcome)
	dst = appendAuditNumber(dst, "duration_ms", r.Duration)
	dst = appendAuditSize(dst, r.Size)
	dst = appendAuditText(dst, "rule", r.Rule)
	if len(r.Data) > 0 {
		dst = append(append(append(dst, `"data":`...), r.Data...), ',')
	}
	dst = appendAuditText(dst, "prev", r.Prev)
	dst = appendAuditText(dst, "hash", r.Hash)
	dst[len(dst)-1] = '}'
	return append(escapeAuditLine(dst, start), '\n')
}

//go:noinline for size: it is called in many places
func appendAuditText(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(append(append(dst, '"'), key...), `":`...)
	return append(appendJSONString(dst, value), ',')
}

//go:noinline for size: it is called in many places
func appendAuditNumber(dst []byte, key, digits string) []byte {
	if digits == "" {
		return dst
	}
	dst = append(append(append(dst, '"'), key...), `":`...)
	return append(append(dst, digits...), ',')
}

func appendAuditSize(dst []byte, size int64) []byte {
	if size <= 0 {
		return dst
	}
	return append(strconv.AppendInt(append(dst, `"size":`...), size, 10), ',')
}

// escapeAuditLine rewrites in dst[start:] the characters a terminal or an editor acts on (DEL, C1, format characters, line
// separators) as \u escapes. They can stand only inside JSON strings there, so the value stays the same.
func escapeAuditLine(dst []byte, start int) []byte {
	first := start
	for first < len(dst) && dst[first] < 0x7f {
		first++
	}
	if first == len(dst) {
		return dst
	}
	tail := string(dst[first:])
	dst = dst[:first]
	for _, r := range tail {
		switch {
		case r < 0x7f || !unicode.IsControl(r) && !hiddenRune(r):
			dst = utf8.AppendRune(dst, r)
		case r > 0xffff:
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
	}
	return dst
}

// auditConfig is what a run log is made of. Dir is the folder of the logs, Origin the first part of the run's name (mcp,
// cli, repl, http), Data what run_started says. Redact may be nil. Heads puts the run's head on record outside the file, one call at a time;
// without it the run is on record nowhere else. Warn, which may be nil, takes a line for the person where that fails and the run goes on.
type auditConfig struct {
	Dir, Origin string
	Data        json.RawMessage
	Now         func() time.Time
	Redact      func(string) string
	Heads       func(ctx context.Context, h auditHead) error
	Warn        func(line string)
}

// auditFile is what a log needs of its file: *os.File, or one that fails in a test.
type auditFile interface {
	io.WriteCloser
	Truncate(size int64) error
	Sync() error
	Stat() (os.FileInfo, error)
}

// auditLog is one run's log and the only writer of its file. It is safe for concurrent use; close it once.
type auditLog struct {
	cfg   auditConfig
	name  string // of the run: origin and random hex
	open  func(name string) (auditFile, error)
	calls atomic.Int64

	mu     sync.Mutex // file, chain and buffers
	file   auditFile  // nil before the first record
	closed bool
	broken error // once set, nothing is recorded any more
	size   int64 // bytes of whole lines in the file
	seq    int64
	prev   string
	canon  []byte
	line   []byte
	second int64        // of clock, Unix time
	clock  []byte       // the time written last
	keep   *auditKeeper // nil until the run is on record
	since  time.Time    // of run_started

	syncMu sync.Mutex // held during a sync; those who wait for it share the next one
	synced int64      // seq that is known to be on disk
}

// newAuditLog makes a run with a new name. Nothing is on disk before the first record.
func newAuditLog(c auditConfig) *auditLog {
	var id [8]byte
	rand.Read(id[:]) // never fails (crypto/rand)
	if c.Now == nil {
		c.Now = time.Now
	}
	return &auditLog{cfg: c, name: c.Origin + "-" + hex.EncodeToString(id[:]), open: openNewLog, prev: auditGenesis}
}

// openNewLog makes a log's file, which must be new: no two processes ever write one log.
func openNewLog(name string) (auditFile, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, auditFilePerm)
}

// path is the log's file, whether it exists yet or not.
//
//go:noinline for size: it is called in many places
func (a *auditLog) path() string { return filepath.Join(a.cfg.Dir, a.name+auditExtension) }

// nextCall gives the id of a new call of this run: c-1, c-2 …
func (a *auditLog) nextCall() string { return "c-" + strconv.FormatInt(a.calls.Add(1), 10) }

// record appends a line for each event, all with one write; the first call also makes the file and its run_started line, and puts the run on record
// elsewhere. The lines survive the end of the process when record returns, and the end of the machine after sync. After an
// error the caller must not act; nothing of the events is in the log then, unless the log has ended with it. It must not be called inside a transaction of the vault.
func (a *auditLog) record(events ...auditEvent) error {
	var few [2]auditRecord
	recs := few[:0]
	for _, ev := range events {
		recs = append(recs, a.prepare(ev))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return errorf("record in run log %s: %w", a.name, os.ErrClosed)
	}
	if a.broken != nil {
		return a.broken
	}
	if a.file == nil {
		return a.begin(recs)
	}
	return a.append(recs)
}

// start begins the run at once, though it has no call yet.
func (a *auditLog) start() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return errorf("begin run log %s: %w", a.name, os.ErrClosed)
	case a.broken != nil || a.file != nil:
		return a.broken
	}
	return a.begin(nil)
}

// begin makes the log with its first line and recs, and puts the run on record: from then on a log that is removed, replaced
// or cut shows. What fails leaves no file; a.mu is held.
func (a *auditLog) begin(recs []auditRecord) error {
	if err := a.create(); err != nil {
		return err
	}
	var err error
	if len(recs) > 0 {
		err = a.append(recs)
	}
	if err == nil {
		err = a.register()
	}
	if errors.Is(err, errVaultUnsure) { // the run may be on record, and then its log must be there: it stays, and ends here
		a.broken = err
		return err
	}
	if err != nil {
		err = joinErrors(err, a.file.Close(), os.Remove(a.path()))
		a.file, a.broken = nil, nil
		a.size, a.seq, a.prev, a.synced = 0, 0, auditGenesis, 0
	}
	return err
}

// register puts a new run on record. Its lines are synced before: a head must never speak of lines that a power cut can still take. a.mu is
// held, and nobody else has the file yet.
func (a *auditLog) register() error {
	if a.cfg.Heads == nil {
		return nil
	}
	err := a.file.Sync()
	if err == nil {
		err = syncFolder(a.cfg.Dir)
	}
	if err != nil {
		return errorf("sync run log %s: %w", a.path(), err)
	}
	a.synced = a.seq
	h := a.headNow()
	err = renewWithin(context.Background(), func(ctx context.Context) error { return a.cfg.Heads(ctx, h) }) // the run outlives the call
	if err != nil {
		return errorf("run %s is not begun, since what it does could not be proved later: %w", a.name, err)
	}
	a.keep = startAuditKeeper(a.seq, a.renewHead, func(err error) {
		if a.cfg.Warn != nil {
			a.cfg.Warn(fmt.Sprintf("the head of run %s is behind its log and is tried again: %v", a.name, err))
		}
	})
	return nil
}

// renewHead syncs the log and puts the head of what is then on disk on record.
func (a *auditLog) renewHead(ctx context.Context) error {
	a.mu.Lock()
	h := a.headNow()
	a.keep.covers(h.Lines)
	a.mu.Unlock()
	if err := a.sync(); err != nil {
		return err
	}
	return a.cfg.Heads(ctx, h)
}

// headNow is the head of the lines written so far; a.mu is held.
func (a *auditLog) headNow() auditHead {
	return auditHead{Run: a.name, Origin: a.cfg.Origin, Path: a.path(), Lines: a.seq, Hash: a.prev, Started: a.since, Updated: a.cfg.Now()}
}

// prepare does the part of a record that needs no lock: redaction, bounds and canonical data.
func (a *auditLog) prepare(ev auditEvent) auditRecord {
	rec := auditRecord{Run: a.name, Event: ev.Event, Call: ev.Call, Digest: ev.Digest, Size: ev.Size, Parent: ev.Parent, Kind: ev.Kind, Subject: ev.Subject, Outcome: ev.Outcome, Rule: ev.Rule}
	// Where all of them together hold no secret, none does, which is one look instead of six. Without any (a run begins or ends) nothing is
	// masked, since that may need the passphrase.
	const marks = "\n\n\n\n\n"
	all := ev.Digest + "\n" + ev.Parent + "\n" + ev.Kind + "\n" + ev.Subject + "\n" + ev.Outcome + "\n" + ev.Rule
	if len(all) > auditFieldMax || a.cfg.Redact != nil && all != marks && a.cfg.Redact(all) != all {
		for _, field := range []*string{&rec.Digest, &rec.Parent, &rec.Kind, &rec.Subject, &rec.Outcome, &rec.Rule} {
			*field = a.text(*field)
		}
	}
	if ev.Duration > 0 {
		rec.Duration = auditMillis(ev.Duration)
	}
	if len(ev.Data) == 0 {
		return rec
	}
	if rec.Data = a.data(ev.Data); rec.Data == nil {
		rec.Size = cmp.Or(rec.Size, int64(len(ev.Data)))
		if rec.Digest == "" {
			rec.Digest = sha256Hex(ev.Data)
		}
	}
	return rec
}

// text bounds and redacts one short field. The redaction comes first: a cut secret would no longer be found.
func (a *auditLog) text(s string) string {
	if s == "" {
		return ""
	}
	if a.cfg.Redact != nil {
		s = a.cfg.Redact(s)
	}
	return clip(s, auditFieldMax)
}

// data gives the canonical, redacted form of raw, or nil when it is too large or no canonical JSON.
func (a *auditLog) data(raw json.RawMessage) json.RawMessage {
	if len(raw) > auditDataMax {
		return nil
	}
	canon, err := canonicalLog(raw)
	if err != nil {
		return nil
	}
	if a.cfg.Redact != nil {
		if s := a.cfg.Redact(string(canon)); s != string(canon) {
			if canon, err = canonicalJSON([]byte(s)); err != nil {
				canon = appendJSONString(nil, s) // the secret was no string: the text is kept, its structure is gone
			}
		}
	}
	if len(canon) > auditDataMax {
		return nil
	}
	return canon
}

// auditMillis writes d in milliseconds with at most three decimals, spelled as canonical JSON spells that number.
func auditMillis(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', -1, 64)
}

// create makes folder and file and writes run_started. A folder that is a symbolic link is refused, since a workspace may
// bring one along.
func (a *auditLog) create() error {
	if err := makeFolders(a.cfg.Dir, auditDirPerm); err != nil {
		return errorf("create run log folder: %w", err)
	}
	for _, dir := range []string{a.cfg.Dir, filepath.Dir(a.cfg.Dir)} {
		if dir != a.cfg.Dir && filepath.Base(dir) != ".tai" {
			continue
		}
		if info, err := os.Lstat(dir); err != nil {
			return errorf("create run log: %w", err)
		} else if !info.IsDir() {
			return errorf("create run log: %s is not a folder of its own", dir)
		}
	}
	f, err := a.open(a.path())
	if err != nil {
		return errorf("create run log: %w", err)
	}
	a.file = f
	if err := a.append([]auditRecord{a.prepare(auditEvent{Event: auditRunStarted, Data: a.cfg.Data})}); err != nil {
		a.file, a.broken = nil, nil
		return joinErrors(err, f.Close(), os.Remove(a.path()))
	}
	return nil
}

// append chains and writes prepared records; a.mu is held. A write that fails is taken back, so that the chain goes on
// when there is room again; when even that fails, the log is broken for good.
func (a *auditLog) append(recs []auditRecord) error {
	now := a.cfg.Now()
	if a.seq == 0 {
		a.since = now
	}
	at, seq, prev := a.clockText(now), a.seq, a.prev
	a.line = a.line[:0]
	for i := range recs {
		rec := &recs[i]
		seq++
		rec.Seq, rec.Prev, rec.Time = seq, prev, at
		a.canon = rec.appendCanonical(a.canon[:0])
		sum := sha256.Sum256(a.canon)
		rec.Hash = hex.EncodeToString(sum[:])
		a.line = rec.appendLine(a.line)
		prev = rec.Hash
	}
	if _, err := a.file.Write(a.line); err != nil {
		if isDiskFull(err, runtime.GOOS) {
			err = errorf("the disk is full (%w)", err)
		}
		err = errorf("write run log %s: %w", a.path(), err)
		if cut := a.file.Truncate(a.size); cut != nil {
			a.broken = joinErrors(err, cut)
		}
		return err
	}
	a.size += int64(len(a.line))
	a.seq, a.prev = seq, prev
	if a.keep != nil {
		a.keep.note(a.seq)
	}
	return nil
}

// clockText writes a time as auditTimeForm says; within one second only the fraction is new. a.mu is held.
func (a *auditLog) clockText(now time.Time) string {
	if s := now.Unix(); s != a.second || len(a.clock) == 0 {
		a.second, a.clock = s, now.UTC().AppendFormat(a.clock[:0], auditTimeForm)
	}
	const digits = 6
	for i, micros := len(a.clock)-2, now.Nanosecond()/1000; i > len(a.clock)-2-digits; i-- {
		a.clock[i] = byte('0' + micros%10)
		micros /= 10
	}
	return string(a.clock)
}

// sync returns when every line recorded before the call is on disk. Calls that come during a sync wait and then share
// one. A sync that failed may have lost lines without a second chance to know (the kernel drops them), so it breaks the log.
func (a *auditLog) sync() error {
	a.mu.Lock()
	want, file := a.seq, a.file
	a.mu.Unlock()
	if file == nil {
		return nil
	}
	a.syncMu.Lock()
	defer a.syncMu.Unlock()
	if a.synced >= want {
		return nil
	}
	a.mu.Lock()
	have, size, err := a.seq, a.size, a.broken
	a.mu.Unlock()
	if err != nil {
		return err
	}
	err = a.stillOurs(file, size)
	if err == nil {
		err = file.Sync()
	}
	if err == nil && a.synced == 0 {
		err = syncFolder(a.cfg.Dir)
	}
	if err != nil {
		err = errorf("sync run log %s: %w", a.path(), err)
		a.mu.Lock()
		a.broken = err
		a.mu.Unlock()
		return err
	}
	a.synced = have
	return nil
}

// stillOurs refuses a log that was removed, replaced, cut or made read-only while it was open: lines written to it would be
// no record. What is in the file at size least was written by this run.
func (a *auditLog) stillOurs(file auditFile, size int64) error {
	open, err := file.Stat()
	if err != nil {
		return err
	}
	named, err := os.Lstat(a.path())
	if err != nil {
		return err
	}
	if !os.SameFile(open, named) {
		return newError("another file has its name")
	}
	if named.Size() < size {
		return errorf("it was cut: %d of %d bytes are left", named.Size(), size)
	}
	if named.Mode().Perm()&0o200 == 0 {
		return os.ErrPermission
	}
	return nil
}

// close ends the run: run_completed, sync, the head of the whole log is put on record, and the file is let go. A log that never recorded
// anything leaves nothing. Later records fail; closing twice is harmless.
func (a *auditLog) close() error {
	a.mu.Lock()
	done := a.closed || a.file == nil
	a.closed = true
	var err error
	if !done && a.broken == nil {
		err = a.append([]auditRecord{a.prepare(auditEvent{Event: auditRunCompleted})})
	}
	a.mu.Unlock()
	if done {
		return nil
	}
	if a.keep != nil {
		a.keep.end()
	}
	synced := a.sync()
	if err = joinErrors(err, synced); synced == nil && a.keep != nil {
		if renewed := renewWithin(context.Background(), a.renewHead); renewed != nil {
			err = joinErrors(err, errorf("the log of run %s is whole, but its last lines are not on record: %w", a.name, renewed))
		}
	}
	a.syncMu.Lock() // nobody else may be in a sync of the file
	defer a.syncMu.Unlock()
	return joinErrors(err, a.file.Close())
}
