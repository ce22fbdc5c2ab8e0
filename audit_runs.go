// This file knows which runs there are: the logs of some folders and the runs on record, and what a log that is held against its head
// comes to. It opens no vault and never writes.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// States of a run in a listing.
const (
	runEnded      = "ended"
	runNotEnded   = "not ended" // it goes on, or a crash ended it
	runGone       = "log gone"  // it is on record, and its log is not where it was
	runUnreadable = "unreadable"
)

const auditLast = "last" // the newest run, in the place of its name

const firstDeedLines = 4 // lines after the first one among which a listing looks for the first call

// auditRunInfo is one run as a listing shows it. Where its log cannot be read, Started is the time of the file and Fault says why; where the
// log is gone, Lines and Started are those of its head.
type auditRunInfo struct {
	Run       string    `json:"run"`
	Origin    string    `json:"origin"`
	Path      string    `json:"path"`
	Size      int64     `json:"size"`
	Lines     int64     `json:"lines"` // number of the last whole line, not verified
	Started   time.Time `json:"started"`
	Completed bool      `json:"completed"`
	State     string    `json:"state"`
	Fault     string    `json:"fault,omitempty"`
	First     string    `json:"first,omitempty"` // kind and subject of what it did first, not verified

	latest time.Time  // it began at this time or before
	head   *auditHead // on record, if it is
}

// listAudit gives the newest runs, at most limit, and how many there are: those with a log in one of the folders, and those on record. A
// folder that does not exist has none. It reads the first and the last line of the logs that it gives, and of few others.
func listAudit(heads []auditHead, limit int, dirs ...string) (runs []auditRunInfo, total int, err error) {
	all, err := auditLogs(dirs)
	if err != nil {
		return nil, 0, err
	}
	logs := make(map[string]int, len(all))
	for i, r := range all {
		logs[r.Run] = i
	}
	for i := range heads {
		h := &heads[i]
		if at, ok := logs[h.Run]; ok {
			all[at].head = h
			continue
		}
		r := auditRunInfo{Run: h.Run, Origin: h.Origin, Path: h.Path, Lines: h.Lines, Started: h.Started, State: runGone, latest: h.Started, head: h}
		if info, err := os.Lstat(h.Path); err == nil && info.Mode().IsRegular() { // the log of another workspace's server
			r.State, r.latest = "", latestStart(info)
		}
		all = append(all, r)
	}
	sortBy(all, func(a, b auditRunInfo) int { return b.latest.Compare(a.latest) })
	for _, r := range all {
		if len(runs) == limit && !r.latest.After(runs[limit-1].Started) {
			break // nor did any after it begin later
		}
		r.look()
		at := sort.Search(len(runs), func(i int) bool { return !runs[i].Started.After(r.Started) })
		runs = append(runs, r)
		copy(runs[at+1:], runs[at:])
		runs[at] = r
		runs = runs[:min(len(runs), limit)]
	}
	return runs, len(all), nil
}

// auditLogs finds the logs of some folders without opening one.
func auditLogs(dirs []string) (logs []auditRunInfo, err error) {
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, errorf("list run logs: %w", err)
		}
		for _, e := range entries {
			name, ok := strings.CutSuffix(e.Name(), auditExtension)
			if !ok || !e.Type().IsRegular() {
				continue
			}
			info, err := e.Info()
			if err != nil {
				continue // removed meanwhile
			}
			origin, _, _ := strings.Cut(name, "-")
			logs = append(logs, auditRunInfo{Run: name, Origin: origin, Path: filepath.Join(dir, e.Name()), Size: info.Size(), latest: latestStart(info)})
		}
	}
	return logs, nil
}

// latestStart is the latest time at which a log can have begun: that of its last change, and what a file's clock may be behind.
func latestStart(info fs.FileInfo) time.Time { return info.ModTime().UTC().Add(time.Second) }

// look reads the two ends of a log and says what state the run is in.
func (r *auditRunInfo) look() {
	if r.State == runGone {
		if err := r.head.verify(); err != nil {
			r.Fault = err.Error()
		}
		return
	}
	r.Lines = 0
	switch err := r.readEnds(); {
	case err != nil:
		r.State, r.Fault = runUnreadable, err.Error()
		if r.Started.IsZero() {
			r.Started = r.latest.Add(-time.Second)
		}
	case r.Completed:
		r.State = runEnded
	default:
		r.State = runNotEnded
	}
	if r.head != nil && r.Fault == "" && r.Lines < r.head.Lines {
		r.Fault = fmt.Sprintf("%d lines are on record; tai audit verify tells more", r.head.Lines)
	}
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
	lines := auditLines{r: bufio.NewReaderSize(f, auditLineMax)}
	first, err := lines.next()
	if err == io.EOF {
		return newError("the file is empty")
	}
	if err != nil {
		return errorf("first line: %w", err)
	}
	rec, err := parseAuditLine(first)
	if err != nil {
		return errorf("first line: %w", err)
	}
	if info.Started, err = time.Parse(auditTimeForm, rec.Time); err != nil {
		return errorf("first line: %w", err)
	}
	info.First = firstDeed(lines)
	from := max(0, info.Size-2*auditLineMax)
	tail, err := io.ReadAll(io.NewSectionReader(f, from, info.Size-from))
	if err != nil {
		return err
	}
	tail = tail[:bytes.LastIndexByte(tail, '\n')+1] // what follows is an incomplete line
	tail = bytes.TrimSuffix(tail, []byte("\n"))
	last, err := parseAuditLine(tail[bytes.LastIndexByte(tail, '\n')+1:])
	if err != nil {
		return errorf("last line: %w", err)
	}
	info.Lines, info.Completed = last.Seq, last.Event == auditRunCompleted
	return nil
}

// firstDeed gives kind and subject of the first call in the few lines that follow, "" where there is none.
func firstDeed(lines auditLines) string {
	for range firstDeedLines {
		line, err := lines.next()
		if err != nil {
			return ""
		}
		rec, err := parseAuditLine(line)
		if err != nil {
			return ""
		}
		if rec.Call != "" {
			return strings.TrimSpace(rec.Kind + " " + rec.Subject)
		}
	}
	return ""
}

// Against what a log can be checked.
const (
	auditByChain    = "chain"
	auditByVault    = "vault head"
	auditByExported = "exported head"
)

// auditFinding is what checking a log came to, with a head where there is one.
type auditFinding struct {
	auditReport
	Tampered bool     `json:"tampered"`
	Checked  string   `json:"checked"`
	Recorded int64    `json:"recorded,omitempty"` // lines that the head speaks of
	Key      string   `json:"key,omitempty"`      // fingerprint of the key that signed the head
	Notices  []string `json:"notices,omitempty"`
}

func (f auditFinding) exitCode() int {
	if f.Tampered {
		return 1
	}
	return f.auditReport.exitCode()
}

// tampered gives the finding with a fault at a line, 0 for one that is at none.
//
//go:noinline for size: it is called in many places
func (f auditFinding) tampered(line int64, format string, args ...any) auditFinding {
	f.Tampered, f.Unreadable, f.Bad, f.Reason = true, false, int(line), fmt.Sprintf(format, args...)
	return f
}

// judgeAudit holds what verifyAuditAt found of the log of run ("" if it is not known whose it must be) against a head of that run, nil where
// there is none; by says whose head it is. The mark must have been h.Lines. Lines after the head are fine, for a head is never newer than its log.
func judgeAudit(rep auditReport, run string, h *auditHead, by string) auditFinding {
	f := auditFinding{auditReport: rep, Tampered: rep.Bad > 0, Checked: auditByChain}
	if h != nil {
		f.Checked, f.Recorded, f.Key = by, h.Lines, fingerprint(h.Key)
	}
	lines := int64(rep.Lines)
	switch {
	case f.Tampered:
	case run != "" && rep.Run != "" && rep.Run != run:
		f = f.tampered(1, "the lines are those of run %s: another log was put in the place of run %s", rep.Run, run)
	case h == nil:
	case lines < h.Lines && rep.Incomplete:
		f = f.tampered(lines+1, "the line is incomplete, and the head says that it was whole: %d lines are on record", h.Lines)
	case lines < h.Lines:
		f = f.tampered(lines+1, "the log ends before this line, and %d lines are on record", h.Lines)
	case rep.at != h.Hash:
		f = f.tampered(h.Lines, "the line is not the one on record: it or lines before it were written anew")
	}
	return f
}

// goneAudit is the finding about a log that is not there.
func goneAudit(h *auditHead, by string) auditFinding {
	f := auditFinding{auditReport: auditReport{Run: h.Run}, Checked: by, Recorded: h.Lines, Key: fingerprint(h.Key)}
	return f.tampered(0, "the log is gone: %d lines of run %s are on record, the last from %s, and no log of that name is there", h.Lines, h.Run, h.Updated.UTC().Format(time.RFC3339))
}
