package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func historyOf(t *testing.T, home string) []string {
	t.Helper()
	list, err := newLineHistory(home, time.Now).all()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func storeLines(t *testing.T, h *lineHistory, lines ...string) {
	t.Helper()
	for _, l := range lines {
		h.remember(l)
		if err := h.store(l); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHistoryRoundTrip(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home")
	h := newLineHistory(home, time.Now)
	if list, err := h.all(); err != nil || len(list) != 0 {
		t.Fatalf("a new history: %q, %v", list, err)
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("reading made %s", home)
	}
	lines := []string{"one", "two\nlines\twith \"quotes\"", "一 e\u0301 👨\u200d👩", "<html> & co", "one"}
	storeLines(t, h, lines...)
	want := []string{lines[1], lines[2], lines[3], "one"}
	if got := historyOf(t, home); !slices.Equal(got, want) {
		t.Errorf("read back %q, want %q", got, want)
	}
	info, err := os.Stat(filepath.Join(home, historyFile))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	for _, l := range []string{"", "  ", "\n", strings.Repeat("x", historyEntryMax+1)} {
		storeLines(t, h, l)
	}
	if got := historyOf(t, home); !slices.Equal(got, want) {
		t.Errorf("after lines that are not kept: %q", got)
	}
	if err := h.clear(); err != nil {
		t.Fatal(err)
	}
	if got := historyOf(t, home); len(got) != 0 || len(h.entries) != 0 {
		t.Errorf("after clear: %q, %q", got, h.entries)
	}
	if left, err := filepath.Glob(filepath.Join(home, "*")); err != nil || len(left) != 1 {
		t.Errorf("files left: %q, %v", left, err)
	}
}

// Lines that are no entries are passed over and the rest is read; control characters in an entry are written out.
func TestHistoryDamaged(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	text := "\"one\"\n{\"a\":1}\nplain words\n\n\"bad \xff\"\n\"esc \\u001b[2J\"\n\"cut off"
	if err := os.WriteFile(filepath.Join(home, historyFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := historyOf(t, home), []string{"one", "bad \ufffd", `esc \u001b[2J`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// A line that a crash cut off does not swallow the next one.
	storeLines(t, newLineHistory(home, time.Now), "next")
	if got := historyOf(t, home); !slices.Contains(got, "next") {
		t.Errorf("after a cut line: %q", got)
	}
}

func TestHistoryNoFile(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, historyFile), 0o700); err != nil {
		t.Fatal(err)
	}
	h := newLineHistory(home, time.Now)
	if _, err := h.all(); err == nil {
		t.Error("a folder is read as history")
	}
	if err := h.store("x"); err == nil {
		t.Error("a folder is written as history")
	}
	h.remember("x")
	if list, err := h.all(); err != nil || !slices.Equal(list, []string{"x"}) {
		t.Errorf("in memory: %q, %v", list, err)
	}
}

// The file stays within its bounds, and what is dropped is the oldest.
func TestHistoryBounds(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	var text strings.Builder
	for i := range historyMax + historyMax/historySlack {
		fmt.Fprintf(&text, "\"line %d\"\n", i)
	}
	if err := os.WriteFile(filepath.Join(home, historyFile), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newLineHistory(home, time.Now)
	if list, err := h.all(); err != nil || len(list) != historyMax || list[0] != "line 250" {
		t.Fatalf("%d entries from %q, %v", len(list), list[0], err)
	}
	storeLines(t, h, "newest")
	b, err := os.ReadFile(h.path)
	if err != nil || strings.Count(string(b), "\n") != historyMax || !strings.HasSuffix(string(b), "\"newest\"\n") {
		t.Errorf("%d lines in the file, %v", strings.Count(string(b), "\n"), err)
	}
	big := strings.Repeat("y", historyEntryMax-10)
	for i := range 25 {
		storeLines(t, h, fmt.Sprint(i, big))
	}
	info, err := os.Stat(h.path)
	if err != nil || info.Size() > historyMaxBytes+historyMaxBytes/historySlack {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	if list := historyOf(t, home); !strings.HasPrefix(list[len(list)-1], "24y") || len(list) < 10 {
		t.Errorf("%d entries are left", len(list))
	}
}

// Two at once lose nothing, also while the file is made smaller again and again.
func TestHistoryTwoAtOnce(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	const each = 60
	var group sync.WaitGroup
	for who := range 3 {
		group.Go(func() { // ends with its lines
			h := newLineHistory(home, time.Now)
			for i := range each {
				line := fmt.Sprintf("%d-%d", who, i)
				h.remember(line)
				if err := h.store(line); err != nil {
					t.Error(err)
				}
				if i%10 == 0 {
					unlock := h.lock()
					if err := h.compact(); err != nil {
						t.Error(err)
					}
					unlock()
				}
			}
		})
	}
	group.Wait()
	got := historyOf(t, home)
	if len(got) != 3*each {
		t.Errorf("%d lines are kept, want %d", len(got), 3*each)
	}
	for who := range 3 {
		for i := range each {
			if line := fmt.Sprintf("%d-%d", who, i); !slices.Contains(got, line) {
				t.Errorf("%s is lost", line)
			}
		}
	}
}

// Of two that found a lock left behind the late one leaves the lock of the first alone, and who held one for too long leaves that of who took over.
func TestHistoryLockTakenOver(t *testing.T) {
	t.Parallel()
	h := newLineHistory(t.TempDir(), time.Now)
	name := h.path + ".lock"
	there := func(want bool) {
		t.Helper()
		if _, err := os.Stat(name); (err == nil) != want {
			t.Errorf("the lock: %v, want it there: %v", err, want)
		}
	}
	slow := h.lock()
	old := time.Now().Add(-2 * historyLockStale)
	if err := os.Chtimes(name, old, old); err != nil {
		t.Fatal(err)
	}
	stale, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	fast := h.lock()
	h.dropStale(name, stale)
	there(true)
	slow()
	there(true)
	fast()
	there(false)
	mark := fmt.Sprintf("%s-%d", name, old.UnixNano())
	for _, path := range []string{name, mark} { // who took over died, too
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	h.lock()()
	if left, err := filepath.Glob(name + "*"); err != nil || len(left) != 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// A lock that a crash left behind holds nobody up for long, and one that is held is waited for, but not for ever.
func TestHistoryLock(t *testing.T) {
	t.Parallel()
	h := newLineHistory(t.TempDir(), time.Now)
	name := h.path + ".lock"
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * historyLockStale)
	if err := os.Chtimes(name, old, old); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	storeLines(t, h, "after a crash")
	if time.Since(begin) > historyLockTries*historyLockPause/2 {
		t.Errorf("a stale lock cost %v", time.Since(begin))
	}
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Errorf("the lock is left: %v", err)
	}
	h.now = func() time.Time { return old } // a clock that stands, or was put back, ends the wait too
	unlock := h.lock()
	begin = time.Now()
	storeLines(t, h, "while another has it")
	if took, least := time.Since(begin), historyLockTries*historyLockPause; took < least {
		t.Errorf("waited %v, want %v", took, least)
	}
	unlock()
	if got := historyOf(t, filepath.Dir(h.path)); !slices.Contains(got, "while another has it") {
		t.Errorf("kept: %q", got)
	}
}
