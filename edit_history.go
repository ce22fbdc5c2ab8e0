// This file keeps the lines that were entered, across sessions: a file of JSON strings, one a line, the oldest first. It knows nothing of
// what a line means; who adds one says whether it may be kept.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	historyFile      = "history"
	historyMax       = 1000                 // entries
	historyMaxBytes  = 1 << 20              // bytes of the file, after it was made smaller
	historyEntryMax  = 64 << 10             // bytes of one entry; a longer one is not kept
	historySlack     = 4                    // the file is made smaller when it is over a bound by one part in so many
	historyLockTries = 500                  // to get the lock: a second in all
	historyLockPause = 2 * time.Millisecond // between them
	historyLockStale = 10 * time.Second     // after which a lock was left behind by a crash
)

// lineHistory holds the entries in memory and adds to the file. It reads the file when it is first asked for, and writes nothing before
// a line is added. It is for one goroutine.
type lineHistory struct {
	path    string // "" keeps nothing on disk
	now     func() time.Time
	entries []string // oldest first
	loaded  bool
	lines   int // lines of the file, as far as known
}

func newLineHistory(home string, now func() time.Time) *lineHistory {
	return &lineHistory{path: filepath.Join(home, historyFile), now: now}
}

// all gives the entries, oldest first. Not to be changed by the caller.
func (h *lineHistory) all() ([]string, error) {
	if h.loaded {
		return h.entries, nil
	}
	h.loaded = true
	b, err := h.read()
	if err != nil {
		return h.entries, errorf("read the history: %w", err)
	}
	entries, lines := parseHistory(b)
	h.lines = lines
	h.entries = append(entries, h.entries...)
	return h.entries, nil
}

// read gives the file's end, at most a quarter more than its bound. A file that is none is told as an error.
func (h *lineHistory) read() ([]byte, error) {
	f, err := openRegular(h.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	const most = historyMaxBytes + historyMaxBytes/historySlack + historyEntryMax
	if info.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err == nil && info.Size() > most { // the first line is cut
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return b, err
}

// parseHistory reads the file's lines; those that are no JSON string are passed over. An entry that comes again stays where it came last.
func parseHistory(b []byte) (entries []string, lines int) {
	for line := range bytes.Lines(b) {
		lines++
		var s string
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '"' || json.Unmarshal(line, &s) != nil {
			continue
		}
		if s = string(cleanRunes([]byte(s))); strings.TrimSpace(s) == "" || len(s) > historyEntryMax {
			continue
		}
		entries = append(entries, s)
	}
	return boundHistory(entries), lines
}

// boundHistory keeps each entry once, and of those the last ones within the bounds.
func boundHistory(entries []string) []string {
	seen, bytes, kept := map[string]bool{}, 0, []string{}
	for _, e := range slices.Backward(entries) {
		if seen[e] {
			continue
		}
		if bytes += len(e) + len(`""`+"\n"); len(kept) == historyMax || bytes > historyMaxBytes {
			break
		}
		seen[e] = true
		kept = append(kept, e)
	}
	slices.Reverse(kept)
	return kept
}

// remember takes a line into memory, for this session. An entry that comes again stands where it came last.
func (h *lineHistory) remember(line string) {
	h.all() // what cannot be read was told when it was asked for
	if strings.TrimSpace(line) == "" || len(line) > historyEntryMax {
		return
	}
	h.forget(line)
	h.entries = append(h.entries, line)
	if len(h.entries) > historyMax+historyMax/historySlack {
		h.entries = boundHistory(h.entries)
	}
}

// forget takes a line out of memory again.
func (h *lineHistory) forget(line string) {
	h.entries = slices.DeleteFunc(h.entries, func(e string) bool { return e == line })
}

// store adds one line to the file, which it makes if need be, and makes the file smaller where it is over its bounds. Two processes may
// do so at once: a lock beside the file keeps one from writing to a file that the other is replacing.
func (h *lineHistory) store(line string) error {
	if h.path == "" || strings.TrimSpace(line) == "" || len(line) > historyEntryMax {
		return nil
	}
	if err := makeHome(filepath.Dir(h.path)); err != nil {
		return errorf("keep the history: %w", err)
	}
	unlock := h.lock()
	defer unlock()
	size, err := h.append(line)
	if err != nil {
		return errorf("keep the history: %w", err)
	}
	h.lines++
	if size > historyMaxBytes+historyMaxBytes/historySlack || h.lines > historyMax+historyMax/historySlack {
		if err := h.compact(); err != nil {
			return errorf("make the history smaller: %w", err)
		}
	}
	return nil
}

// append writes one line in one write and gives the file's size. Where a crash has cut the last line, a new one is begun.
func (h *lineHistory) append(line string) (size int64, err error) {
	if info, err := os.Lstat(h.path); err == nil && !info.Mode().IsRegular() {
		return 0, &fs.PathError{Op: "open", Path: h.path, Err: errNotRegular}
	}
	f, err := os.OpenFile(h.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = joinErrors(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size = info.Size()
	var last [1]byte
	var entry []byte
	if size > 0 {
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return 0, err
		}
		if last[0] != '\n' {
			entry = append(entry, '\n')
		}
	}
	n, err := f.Write(append(appendJSONString(entry, line), '\n'))
	return size + int64(n), err
}

// compact writes what is within the bounds to a file beside and puts that in the place of the old one.
func (h *lineHistory) compact() error {
	b, err := h.read()
	if err != nil {
		return err
	}
	entries, _ := parseHistory(b)
	return h.rewrite(entries)
}

func (h *lineHistory) rewrite(entries []string) error {
	var out []byte
	for _, e := range entries {
		out = append(appendJSONString(out, e), '\n')
	}
	f, err := os.CreateTemp(filepath.Dir(h.path), historyFile+"-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(out)
	if err = joinErrors(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), h.path)
	}
	if err != nil {
		return joinErrors(err, os.Remove(f.Name()))
	}
	h.lines = len(entries)
	return nil
}

// clear forgets every entry, in memory and on disk.
func (h *lineHistory) clear() error {
	h.entries, h.loaded, h.lines = nil, true, 0
	if _, err := os.Lstat(h.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock := h.lock()
	defer unlock()
	if err := h.rewrite(nil); err != nil {
		return errorf("clear the history: %w", err)
	}
	return nil
}

// lock waits for the file to be free and gives what frees it. It is a file that one process alone can create. When the wait is over the
// work is done without it: a line kept twice or an old one lost is better than a prompt that does not come.
func (h *lineHistory) lock() (unlock func()) {
	name := h.path + ".lock"
	for range historyLockTries {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return func() { freeLock(f, name) }
		}
		if info, err := os.Stat(name); err == nil && h.now().Sub(info.ModTime()) > historyLockStale {
			h.dropStale(name, info)
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
		time.Sleep(historyLockPause)
	}
	return func() {}
}

// freeLock drops a lock, unless it was held for so long that another process has taken it over.
func freeLock(f *os.File, name string) {
	mine, err := f.Stat()
	f.Close() // nothing was written
	if now, statErr := os.Stat(name); err == nil && statErr == nil && os.SameFile(mine, now) {
		os.Remove(name) // a lock that stays is stale soon
	}
}

// dropStale drops a lock that was left behind. Only who makes the mark for this very lock may do so, and looks again first: one that came late would
// drop the fresh lock of who was faster.
func (h *lineHistory) dropStale(name string, stale fs.FileInfo) {
	mark := fmt.Sprintf("%s-%d", name, stale.ModTime().UnixNano())
	f, err := os.OpenFile(mark, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		if info, err := os.Stat(mark); err == nil && h.now().Sub(info.ModTime()) > historyLockStale {
			os.Remove(mark) // who made it died, too
		}
		return
	}
	f.Close() // nothing was written
	if now, err := os.Stat(name); err == nil && os.SameFile(now, stale) && now.ModTime().Equal(stale.ModTime()) {
		os.Remove(name) // what stays is tried again
	}
	os.Remove(mark)
}

// historySearch is a search through the entries, newest first, and the place where it stands.
type historySearch struct {
	entries []string
	query   string
	at      int // of the match; len(entries) before the first
	failed  bool
}

// find looks from place i on, towards older entries or newer ones. Without a match the place stays.
func (s *historySearch) find(i int, older bool) {
	step := 1
	if older {
		step = -1
	}
	for ; s.query != "" && i >= 0 && i < len(s.entries); i += step {
		if strings.Contains(strings.ToLower(s.entries[i]), strings.ToLower(s.query)) {
			s.at, s.failed = i, false
			return
		}
	}
	s.failed = s.query != ""
}

// match gives the entry found and where in it the query stands, in runes.
func (s *historySearch) match() (line string, at int, ok bool) {
	if s.at >= len(s.entries) {
		return "", 0, false
	}
	line = s.entries[s.at]
	small := strings.ToLower(line) // of other bytes than line, perhaps, and of as many runes
	if i := strings.Index(small, strings.ToLower(s.query)); i >= 0 {
		at = utf8.RuneCountInString(small[:i])
	}
	return line, at, true
}
