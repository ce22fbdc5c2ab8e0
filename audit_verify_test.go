package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// auditVerifyText is a whole log of n lines.
func auditVerifyText(t *testing.T, n int) string {
	t.Helper()
	a := auditTestLog(t)
	for i := range n - 2 {
		auditTestRecord(t, a, auditEvent{Event: auditCallRequested, Call: a.nextCall(), Subject: fmt.Sprintf("files/tool %d \u202e", i), Size: int64(i),
			Data: []byte(`{"n":1.5,"path":"a\"b","x":[1e30,null]}`)})
	}
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(auditTestLines(t, a), "") + "\n"
}

// TestAUD01IncompleteLastLine: a crash inside the last line is no tampering, and the lines before it hold.
func TestAUD01IncompleteLastLine(t *testing.T) {
	t.Parallel()
	text := auditVerifyText(t, 6)
	last := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
	for cut := last + 1; cut < len(text); cut++ {
		rep := auditTestVerify(t, text[:cut])
		if rep.Lines != 5 || rep.Bad != 0 || !rep.Incomplete || rep.exitCode() != 0 {
			t.Fatalf("cut at %d of %d: %+v", cut, len(text), rep)
		}
	}
	if rep := auditTestVerify(t, text[:last]); rep.Incomplete || rep.Lines != 5 || rep.Completed {
		t.Errorf("whole lines: %+v", rep)
	}
	seen := 0
	if err := readAudit(strings.NewReader(text[:last+9]), func(auditRecord) bool { seen++; return true }); err != nil || seen != 5 {
		t.Errorf("readAudit: %d lines, %v", seen, err)
	}
}

// TestAUD02EveryEdit: each single byte flipped in some way, and each line dropped, doubled, swapped or inserted, is found at
// the line where it happened.
func TestAUD02EveryEdit(t *testing.T) {
	t.Parallel()
	text := auditVerifyText(t, 5)
	line := 1
	for i := range text {
		for _, c := range []byte{text[i] ^ 1, text[i] ^ 0x20, 'e', '0', ' '} {
			if c == text[i] || c == '\n' {
				continue
			}
			want := line
			rep := auditTestVerify(t, text[:i]+string(rune(c))+text[i+1:])
			if rep.Bad != want && !(i == len(text)-1 && rep.Incomplete) {
				t.Fatalf("byte %d %q to %q: bad line %d, want %d", i, text[i], c, rep.Bad, want)
			}
		}
		if text[i] == '\n' {
			line++
		}
	}
	lines := strings.SplitAfter(text, "\n")[:5]
	for i := range lines[:4] {
		drop := strings.Join(lines[:i], "") + strings.Join(lines[i+1:], "")
		double := strings.Join(lines[:i+1], "") + strings.Join(lines[i:], "")
		swap := strings.Join(lines[:i], "") + lines[i+1] + lines[i] + strings.Join(lines[i+2:], "")
		for what, edit := range map[string]string{"drop": drop, "swap": swap} {
			if rep := auditTestVerify(t, edit); rep.Bad != i+1 || rep.exitCode() != 1 || rep.Reason == "" {
				t.Errorf("%s line %d: %+v", what, i+1, rep)
			}
		}
		if rep := auditTestVerify(t, double); rep.Bad != i+2 {
			t.Errorf("double line %d: %+v", i+1, rep)
		}
	}
}

// TestAUD02OtherSpelling: the same values in another spelling, another run's line, and strange fields are edits too.
func TestAUD02OtherSpelling(t *testing.T) {
	t.Parallel()
	text := auditVerifyText(t, 4)
	for old, with := range map[string]string{
		`"n":1.5`:              `"n":1.50`,
		`"event":"tool_call_r`: `"event":"\u0074ool_call_r`,
		`{"seq":2,`:            `{"seq":2,"note":"x",`,
		`"call":"c-1"`:         `"call":1`,
		`"call":"c-1",`:        `"call":"c-1","call":"c-1",`,
		`\u202e"`:              "\u202e\"",
	} {
		edit := strings.Replace(text, old, with, 1)
		if edit == text {
			t.Fatalf("%s is not in the log", old)
		}
		if rep := auditTestVerify(t, edit); rep.Bad != 2 {
			t.Errorf("%s to %s: %+v", old, with, rep)
		}
	}
	if rep := auditTestVerify(t, text+strings.Repeat("x", auditLineMax+1)+"\n"); rep.Bad != 5 {
		t.Errorf("long line: %+v", rep)
	}
}

// TestAUD12ExitCodes: 0 good, 1 tampered, 2 unreadable.
func TestAUD12ExitCodes(t *testing.T) {
	t.Parallel()
	text := auditVerifyText(t, 3)
	if rep := auditTestVerify(t, text); rep.exitCode() != 0 {
		t.Errorf("good: %+v", rep)
	}
	if rep := auditTestVerify(t, strings.Replace(text, "c-1", "c-2", 1)); rep.exitCode() != 1 || rep.Bad != 2 {
		t.Errorf("tampered: %+v", rep)
	}
	if rep := auditTestVerify(t, "hello\n"); rep.exitCode() != 1 || rep.Bad != 1 {
		t.Errorf("another file: %+v", rep)
	}
	rep, err := verifyAuditAt(strings.NewReader(""), 0)
	if err == nil || rep.exitCode() != 2 {
		t.Errorf("empty: %+v, %v", rep, err)
	}
	broken := errors.New("disk on fire")
	if rep, err = verifyAuditAt(iotest.ErrReader(broken), 0); !errors.Is(err, broken) || rep.exitCode() != 2 {
		t.Errorf("unreadable: %+v, %v", rep, err)
	}
}

func TestAuditListFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"cli-00.jsonl": "no log\n", "cli-01.jsonl": auditVerifyText(t, 9) + `{"seq":`, "notes.txt": "x", "cli-02.jsonl": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runs, total, err := listAudit(nil, 99, dir)
	if err != nil || len(runs) != 3 || total != 3 {
		t.Fatalf("%v %v", runs, err)
	}
	slices.SortFunc(runs, func(a, b auditRunInfo) int { return strings.Compare(a.Run, b.Run) })
	if r := runs[1]; r.Lines != 9 || !r.Completed || r.State != runEnded || r.Fault != "" || r.Started.Year() != 2026 {
		t.Errorf("%+v", r)
	}
	for _, r := range []auditRunInfo{runs[0], runs[2]} {
		if r.Fault == "" || r.State != runUnreadable || r.Started.IsZero() {
			t.Errorf("%+v", r)
		}
	}
	if err := readAudit(strings.NewReader("{}\nx\n"), func(auditRecord) bool { return true }); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("readAudit: %v", err)
	}
}

// The hash of any one line can be had, so that a head kept elsewhere can be held against it.
func TestAuditVerifyAt(t *testing.T) {
	t.Parallel()
	text := auditVerifyText(t, 5)
	lines := strings.SplitAfter(text, "\n")[:5]
	for i := range lines {
		rec, err := parseAuditLine([]byte(strings.TrimSuffix(lines[i], "\n")))
		if err != nil {
			t.Fatal(err)
		}
		if rep, err := verifyAuditAt(strings.NewReader(text), int64(i+1)); err != nil || rep.at != rec.Hash || rep.Lines != 5 {
			t.Errorf("line %d: %q, want %q; %+v, %v", i+1, rep.at, rec.Hash, rep, err)
		}
	}
	for _, mark := range []int64{0, 6, -1} {
		if rep, err := verifyAuditAt(strings.NewReader(text), mark); err != nil || rep.at != "" {
			t.Errorf("line %d: %q, %v", mark, rep.at, err)
		}
	}
}

// AUD-02: a line that was written anew with a hash of its own is told by the line after it, and the last one by the head.
func TestAUD02Rehashed(t *testing.T) {
	t.Parallel()
	a := auditTestLog(t)
	for i := range 4 {
		auditTestRecord(t, a, auditEvent{Event: auditCallRequested, Subject: fmt.Sprint("tool-", i)})
	}
	lines := auditTestLines(t, a)
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	for at := range lines {
		edited := slices.Clone(lines)
		rec, err := parseAuditLine([]byte(strings.TrimSuffix(lines[at], "\n")))
		if err != nil {
			t.Fatal(err)
		}
		was := rec.Hash
		rec.Subject = "another"
		rec.Hash = sha256Hex(rec.appendCanonical(nil))
		edited[at] = string(rec.appendLine(nil))
		for i, l := range edited {
			edited[i] = strings.TrimSuffix(l, "\n") + "\n"
		}
		rep, err := verifyAuditAt(strings.NewReader(strings.Join(edited, "")), int64(at+1))
		want, reason := at+2, "does not follow"
		if at == len(lines)-1 {
			want, reason = 0, ""
		}
		if err != nil || rep.Bad != want || !strings.Contains(rep.Reason, reason) {
			t.Errorf("line %d written anew: %+v, %v; want line %d", at+1, rep, err, want)
		}
		f := judgeAudit(rep, a.name, &auditHead{Run: a.name, Lines: int64(at + 1), Hash: was}, auditByVault)
		if !f.Tampered || f.exitCode() != 1 {
			t.Errorf("line %d written anew, held against its head: %+v", at+1, f)
		}
	}
}
