package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// auditRig is a home with runs in it.
type auditRig struct {
	*cliRig
	runs []string // newest first
}

// newAuditRig makes n runs of one native call each.
func newAuditRig(t *testing.T, n int) *auditRig {
	t.Helper()
	r := &auditRig{cliRig: newCLIRig(t)}
	if err := os.WriteFile(filepath.Join(r.dir, "a.txt"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range n {
		r.tai("tools", "call", "file_read", "path=a.txt").ok()
	}
	for _, run := range cliJSON[struct{ Runs []auditRunInfo }](r.tai("audit", "list", "--json")).Runs {
		r.runs = append(r.runs, run.Run)
	}
	if len(r.runs) != n {
		t.Fatalf("%d runs, want %d", len(r.runs), n)
	}
	return r
}

func (r *auditRig) path(i int) string {
	return filepath.Join(r.home, "runs", r.runs[i]+auditExtension)
}

func (r *auditRig) read(i int) string {
	r.t.Helper()
	b, err := os.ReadFile(r.path(i))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func (r *auditRig) write(i int, text string) {
	r.t.Helper()
	if err := os.WriteFile(r.path(i), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// inVault changes the vault as another program could.
func (r *auditRig) inVault(query string, args ...any) {
	r.t.Helper()
	v, err := openVault(context.Background(), r.home, vaultWrite, time.Now, vaultKeys{Dir: filepath.Join(r.home+"-config", "tai", "keys")})
	if err != nil {
		r.t.Fatal(err)
	}
	headTestExec(r.t, v, query, args...)
	if err := v.close(); err != nil {
		r.t.Fatal(err)
	}
}

// verdict wants an exit code of tai audit verify, texts in what it says, and the same from --ci, which it gives.
func (r *auditRig) verdict(code int, words []string, texts ...string) auditFinding {
	r.t.Helper()
	got := r.tai(append([]string{"audit", "verify"}, words...)...)
	if got.code != code {
		r.t.Errorf("verify %q: exit %d, want %d: %s%s", words, got.code, code, got.out, got.err)
	}
	got.outHas(texts...)
	ci := r.tai(append([]string{"audit", "verify", "--ci"}, words...)...)
	f := cliJSON[auditFinding](ci)
	if ci.code != code || strings.Count(ci.out, "\n") != 1 || f.Tampered != (code == 1) {
		r.t.Errorf("verify --ci %q: exit %d, want %d: %s", words, ci.code, code, ci.out)
	}
	return f
}

// AUD-03: lines removed cleanly from the end show by the head, however many.
func TestAUD03CLICutTail(t *testing.T) {
	t.Parallel()
	r := newAuditRig(t, 1)
	text := r.read(0)
	lines := strings.SplitAfter(text, "\n")[:5]
	r.verdict(0, r.runs[:1], "good: 5 lines", "checked against: the vault's head of 5 lines, key sha256:")
	for keep := 1; keep < 5; keep++ {
		r.write(0, strings.Join(lines[:keep], ""))
		f := r.verdict(1, r.runs[:1], fmt.Sprintf("tampered with: line %d: the log ends before this line, and 5 lines are on record", keep+1))
		if f.Checked != auditByVault || f.Recorded != 5 || f.Bad != keep+1 || f.Lines != keep {
			t.Errorf("%d lines kept: %+v", keep, f)
		}
		r.write(0, strings.Join(lines[:keep], "")+lines[keep][:20])
		r.verdict(1, r.runs[:1], "the line is incomplete, and the head says that it was whole")
		r.verdict(1, []string{r.path(0)}, "the line is incomplete")
	}
	r.write(0, "")
	r.verdict(1, r.runs[:1], "tampered with: line 1: the log ends before this line")
	r.write(0, text+lines[4][:9])
	r.verdict(0, r.runs[:1], "good: 5 lines", "notice: an incomplete last line")
	r.write(0, text)
	r.verdict(0, []string{r.path(0)}, "good: 5 lines", "the vault's head")
	copied := filepath.Join(r.dir, "copy.jsonl")
	if err := os.WriteFile(copied, []byte(lines[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	r.verdict(1, []string{"copy.jsonl"}, "tampered with: line 2")
}

// AUD-04: a log that was removed shows, in the list too.
func TestAUD04CLIGone(t *testing.T) {
	t.Parallel()
	r := newAuditRig(t, 2)
	if err := os.Remove(r.path(1)); err != nil {
		t.Fatal(err)
	}
	f := r.verdict(1, r.runs[1:], "tampered with: the log is gone: 5 lines of run "+r.runs[1]+" are on record")
	if f.Bad != 0 || f.Recorded != 5 || f.Run != r.runs[1] {
		t.Errorf("%+v", f)
	}
	r.verdict(1, []string{r.path(1)}, "the log is gone")
	r.verdict(0, r.runs[:1], "good")
	list := strings.Split(strings.TrimSpace(r.tai("audit", "list").ok()), "\n")
	if len(list) != 2 || !strings.HasSuffix(list[0], "5 lines  ended  tool-call file_read") || !strings.HasPrefix(list[1], r.runs[1]) || !strings.HasSuffix(list[1], "5 lines  log gone") {
		t.Errorf("%q", list)
	}
	r.tai("audit", "show", r.runs[1]).fails(exitFailed, "the log is gone")
	r.tai("audit", "head", r.runs[1]).fails(exitFailed, "the log is gone")
	r.tai("audit", "verify", "cli-00000000000000aa").fails(exitUsage, "no such run or file", "hint: tai audit list")
	if err := os.RemoveAll(filepath.Dir(r.path(0))); err != nil {
		t.Fatal(err)
	}
	if got := r.tai("audit", "list").ok(); strings.Count(got, "log gone") != 2 {
		t.Errorf("without the folder: %s", got)
	}
}

// AUD-03 and its siblings: logs that are chains by themselves, and are not what was written.
func TestAUD03CLIReplaced(t *testing.T) {
	t.Parallel()
	r := newAuditRig(t, 2)
	a, b := r.read(0), r.read(1)
	r.write(0, b)
	r.write(1, a)
	for i := range 2 {
		r.verdict(1, r.runs[i:i+1], "line 1: the lines are those of run "+r.runs[1-i])
		r.verdict(1, []string{r.path(i)}, "the lines are those of run")
	}
	// A chain of the same name, made anew with other contents, of as many lines and of more.
	for _, more := range []int{0, 3} {
		anew := newAuditLog(auditConfig{Dir: t.TempDir(), Origin: "cli", Now: time.Now})
		anew.name = r.runs[0]
		for range 3 + more {
			auditTestRecord(t, anew, auditEvent{Event: auditCallRequested, Call: "c-1", Subject: "harmless"})
		}
		if err := anew.close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(anew.path())
		if err != nil {
			t.Fatal(err)
		}
		r.write(0, string(text))
		r.verdict(1, r.runs[:1], "line 5: the line is not the one on record")
		show := r.tai("audit", "show", r.runs[0])
		if show.code != 0 {
			t.Errorf("show: exit %d", show.code)
		}
		show.outHas("harmless", "run_completed")
		show.errHas("warning: this log cannot be trusted: tampered with: line 5")
	}
	// An edited line is told by the chain first.
	r.write(0, strings.Replace(a, "file_read", "file_rEad", 1))
	r.verdict(1, r.runs[:1], "tampered with: line 2: the hash does not fit")
	r.write(0, a)
	r.verdict(0, r.runs[:1], "good")
	r.write(1, b)
}

// AUD-03: the row of a run edited, its key swapped, and its row deleted. The last shows as a notice: it is what an older copy of the vault is like too.
func TestAUD03CLIVaultEdited(t *testing.T) {
	t.Parallel()
	r := newAuditRig(t, 2)
	r.inVault(`UPDATE audit_runs SET lines = 2 WHERE run = ?`, r.runs[0])
	r.verdict(1, r.runs[:1], "tampered with: the head's signature does not fit")
	r.tai("audit", "head", r.runs[0]).fails(exitFailed, "no head is given out")
	r.verdict(0, r.runs[1:], "good")
	text := r.read(0)
	if err := os.Remove(r.path(0)); err != nil {
		t.Fatal(err)
	}
	r.verdict(1, r.runs[:1], "tampered with: the log is gone, and the head's signature does not fit")
	r.write(0, text)
	r.inVault(`DELETE FROM audit_runs WHERE run = ?`, r.runs[0])
	f := r.verdict(0, r.runs[:1], "good: 5 lines", "checked against: its chain alone", "notice: no head of this run is on record")
	if f.Checked != auditByChain || len(f.Notices) != 1 {
		t.Errorf("%+v", f)
	}
	r.tai("audit", "head", r.runs[0]).fails(exitFailed, "only what was on record")
	r.inVault(`UPDATE settings SET value = 'AAAA' WHERE key = 'audit_public'`)
	r.verdict(1, r.runs[1:], "tampered with: the head's signature does not fit")
}

// A vault that was put back to an older state while its logs grew accuses nobody.
func TestAUD03CLIVaultRolledBack(t *testing.T) {
	t.Parallel()
	r := newAuditRig(t, 1)
	old, err := os.ReadFile(filepath.Join(r.home, vaultFile))
	if err != nil {
		t.Fatal(err)
	}
	r.inVault(`UPDATE settings SET value = value WHERE key = 'audit_public'`)
	text := r.read(0)
	r.tai("tools", "call", "file_read", "path=a.txt").ok()
	if err := os.WriteFile(filepath.Join(r.home, vaultFile), old, 0o600); err != nil {
		t.Fatal(err)
	}
	later := cliJSON[struct{ Runs []auditRunInfo }](r.tai("audit", "list", "--json")).Runs[0].Run
	r.verdict(0, []string{later}, "good: 5 lines", "notice: no head of this run is on record")
	r.verdict(0, r.runs, "good: 5 lines", "the vault's head of 5 lines")
	// The head of an unfinished run, older than its log.
	lines := strings.SplitAfter(text, "\n")
	rec, err := parseAuditLine([]byte(strings.TrimSpace(lines[2])))
	if err != nil {
		t.Fatal(err)
	}
	r.inVault(`DELETE FROM audit_runs`)
	keys := vaultKeys{Dir: filepath.Join(r.home+"-config", "tai", "keys")}
	v, err := openVault(t.Context(), r.home, vaultWrite, time.Now, keys)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.putAuditHead(t.Context(), auditHead{Run: r.runs[0], Origin: "cli", Lines: 3, Hash: rec.Hash, Started: time.Now(), Updated: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := v.close(); err != nil {
		t.Fatal(err)
	}
	r.verdict(0, r.runs, "good: 5 lines", "the vault's head of 3 lines")
	r.write(0, strings.Join(lines[:3], ""))
	r.verdict(0, r.runs, "good: 3 lines")
	if out := r.tai("audit", "list").ok(); !strings.Contains(out, "3 lines  not ended") {
		t.Errorf("%s", out)
	}
	r.write(0, strings.Join(lines[:2], ""))
	if out := r.tai("audit", "list").ok(); !strings.Contains(out, "2 lines  not ended: 3 lines are on record") {
		t.Errorf("%s", out)
	}
	r.write(0, text)
}

// A head that was exported proves a log on a machine that has no vault; what does not fit it is told.
func TestAUD03CLIExportedHead(t *testing.T) {
	t.Parallel()
	r := newAuditRig(t, 2)
	got := r.tai("audit", "head", r.runs[0], "-o", "head.json")
	got.outHas("head of run "+r.runs[0]+": 5 lines, key sha256:", "in head.json")
	file := filepath.Join(r.dir, "head.json")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if plain, asJSON := r.tai("audit", "head", r.runs[0]).ok(), r.tai("audit", "head", r.runs[0], "--json").ok(); plain != string(doc) || asJSON != plain {
		t.Errorf("%s%s, in the file %s", plain, asJSON, doc)
	}
	r.tai("audit", "head", r.runs[0], "-o", "head.json").fails(exitUsage, "is there already")
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, doc) {
		t.Error("another file was written over")
	}

	away := &auditRig{cliRig: newCLIRig(t)} // another machine
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(away.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := r.read(0)
	lines := strings.SplitAfter(text, "\n")
	put("head.json", string(doc))
	put("log.jsonl", text)
	f := away.verdict(0, []string{"log.jsonl", "--head", "head.json"}, "good: 5 lines", "checked against: an exported head of 5 lines, key sha256:")
	if f.Checked != auditByExported || f.Key == "" {
		t.Errorf("%+v", f)
	}
	put("log.jsonl", strings.Join(lines[:2], ""))
	away.verdict(1, []string{"log.jsonl", "--head", "head.json"}, "tampered with: line 3: the log ends before this line")
	put("log.jsonl", "")
	away.verdict(1, []string{r.runs[0] + auditExtension, "--head", "head.json"}, "the log is gone")
	away.verdict(1, []string{r.runs[0], "--head", "head.json"}, "the log is gone")
	put("log.jsonl", text)
	put("forged.json", strings.Replace(string(doc), `"lines": 5`, `"lines": 4`, 1))
	away.verdict(1, []string{"log.jsonl", "--head", "forged.json"}, "tampered with: the head's signature does not fit")
	put("other.jsonl", r.read(1))
	away.tai("audit", "verify", "other.jsonl", "--head", "head.json").fails(exitUsage, "is of run "+r.runs[0])
	away.tai("audit", "verify", r.runs[1], "--head", "head.json").fails(exitUsage, "no such run")
	put("bad.json", "{}")
	away.tai("audit", "verify", "log.jsonl", "--head", "bad.json").fails(exitUsage, "not a head as tai audit head writes it")
	away.tai("audit", "verify", "log.jsonl", "--head", "none.json").fails(exitUsage, "head file")
	away.tai("audit", "verify", "log.jsonl", "--head", away.dir).fails(exitUsage, "no regular file")
	if _, err := os.Stat(away.home); !os.IsNotExist(err) {
		t.Errorf("verifying with an exported head made a home: %v", err)
	}
	r.write(0, strings.Join(lines[:4], ""))
	r.tai("audit", "head", r.runs[0]).fails(exitFailed, "no head is given out of a log that was tampered with")
	r.write(0, text)
}

// A head is brought up to date before it is given out, from a log that fits it.
func TestAuditHeadRenewed(t *testing.T) {
	t.Parallel()
	r := newAuditRig(t, 1)
	text := r.read(0)
	lines := strings.SplitAfter(text, "\n")
	rec, err := parseAuditLine([]byte(strings.TrimSpace(lines[1])))
	if err != nil {
		t.Fatal(err)
	}
	h := auditHead{Run: r.runs[0], Origin: "cli", Lines: 2, Hash: rec.Hash, Started: time.Now(), Updated: time.Now()}
	r.inVault(`DELETE FROM audit_runs`)
	v, err := openVault(t.Context(), r.home, vaultWrite, time.Now, vaultKeys{Dir: filepath.Join(r.home+"-config", "tai", "keys")})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.putAuditHead(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := v.close(); err != nil {
		t.Fatal(err)
	}
	out, err := readAuditHead([]byte(r.tai("audit", "head", r.runs[0]).ok()))
	if err != nil || out.Lines != 5 || out.verify() != nil {
		t.Errorf("%+v, %v", out, err)
	}
	r.verdict(0, r.runs, "the vault's head of 5 lines")
}

// A vault that cannot be opened leaves the chain, and says so.
func TestAuditVerifyWithoutVault(t *testing.T) {
	t.Parallel()
	r := newAuditRig(t, 1)
	if err := os.WriteFile(filepath.Join(r.home, vaultFile), []byte("no vault"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := r.verdict(0, r.runs, "good: 5 lines", "checked against: its chain alone", "notice: the head on record could not be checked", "is not a tai vault")
	if f.Checked != auditByChain {
		t.Errorf("%+v", f)
	}
	list := r.tai("audit", "list")
	list.outHas(r.runs[0], "ended")
	list.errHas("logs that are gone do not show")
	r.tai("audit", "show", r.runs[0]).outHas("run_completed")
	r.tai("audit", "head", r.runs[0]).fails(exitFailed, "is not a tai vault")
}

// AUD-06: where the run cannot be put on record, nothing is done, and the error says why.
func TestAUD06CLINoRecordNoAction(t *testing.T) {
	t.Parallel()
	r := newAuditRig(t, 1)
	if err := os.WriteFile(filepath.Join(r.home, vaultFile), []byte("no vault"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.tai("tools", "call", "shell_run", "command=touch made").fails(exitFailed, "is not begun", "is not a tai vault")
	if _, err := os.Stat(filepath.Join(r.dir, "made")); err == nil {
		t.Error("the tool ran")
	}
	if logs, err := os.ReadDir(filepath.Join(r.home, "runs")); err != nil || len(logs) != 1 {
		t.Errorf("%d logs, %v", len(logs), err)
	}
}

// Commands that record nothing make no vault and no key; the first that records makes both.
func TestAuditHeadTouchesNothing(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	for _, words := range [][]string{{"audit", "list"}, {"mcp", "list"}, {"tools", "list"}, {"record", "list"}, {"mcp", "tools"}} {
		r.tai(words...).ok()
	}
	if _, err := os.Stat(r.home); !os.IsNotExist(err) {
		t.Errorf("a home was made: %v", err)
	}
	r.tai("mcp", "call", "none", "x").fails(exitFailed, "none")
	runs := cliJSON[struct{ Runs []auditRunInfo }](r.tai("audit", "list", "--json")).Runs
	if len(runs) != 1 || runs[0].Lines != 4 {
		t.Fatalf("%+v", runs)
	}
	r.tai("audit", "verify", runs[0].Run).outHas("good: 4 lines", "the vault's head of 4 lines")
}

// What a run is filtered by.
func TestAuditShowFilters(t *testing.T) {
	t.Parallel()
	r := newAuditRig(t, 1)
	count := func(want int, words ...string) {
		t.Helper()
		if got := strings.Count(r.tai(append([]string{"audit", "show", r.runs[0]}, words...)...).ok(), "\n"); got != want {
			t.Errorf("%q: %d lines, want %d", words, got, want)
		}
	}
	count(5)
	count(3, "--call", "c-1")
	count(0, "--call", "c-2")
	count(1, "--event", "run_started")
	count(2, "--event", "run_started", "--event", "run_completed")
	count(5, "--since", "1h")
	count(0, "--since", "2999-01-01T00:00:00Z")
	count(1, "--call", "c-1", "--event", "tool_call_started", "--since", "10m")
	r.tai("audit", "show", r.runs[0], "--since", "soon").fails(exitUsage, "is no time")
	doc := cliJSON[struct {
		Events   []json.RawMessage
		Tampered bool
	}](r.tai("audit", "show", r.runs[0], "--call", "c-1", "--json"))
	if len(doc.Events) != 3 || doc.Tampered {
		t.Errorf("%+v", doc)
	}
}

// A listing shows the newest runs of any number, those of other workspaces too, and says how many there are.
func TestAuditListMany(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const many = 10_050
	first := auditVerifyText(t, 3)
	for i := range many {
		name := filepath.Join(dir, fmt.Sprintf("cli-%016x%s", i, auditExtension))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if i < 3 { // real ones, made last but begun in March
			if err := os.WriteFile(name, []byte(first), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		at := time.Date(2025, 1, 1, 0, 0, i, 0, time.UTC)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	gone := headTestRun(1 << 40)
	gone.Started, gone.Path = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).Add(time.Hour), filepath.Join(dir, "none")
	elsewhere := headTestRun(1 << 41)
	elsewhere.Path = filepath.Join(t.TempDir(), "x.jsonl")
	if err := os.WriteFile(elsewhere.Path, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	runs, total, err := listAudit([]auditHead{gone, elsewhere}, 5, dir)
	if err != nil || total != many+2 || len(runs) != 5 {
		t.Fatalf("%d of %d, %v", len(runs), total, err)
	}
	if runs[0].Run != gone.Run || runs[0].State != runGone || runs[0].Fault == "" { // its head has no signature
		t.Errorf("%+v", runs[0])
	}
	found := false
	for _, r := range runs[1:] {
		found = found || r.Run == elsewhere.Run && r.Fault != "" // 42 lines are on record, 3 there
		if r.Started.Year() != 2026 || r.State != runEnded {
			t.Errorf("%+v", r)
		}
	}
	if !found {
		t.Errorf("the log of another workspace is missing: %+v", runs)
	}
	all, _, err := listAudit(nil, 100_000, dir)
	if err != nil || len(all) != many || !slices.IsSortedFunc(all, func(a, b auditRunInfo) int { return b.Started.Compare(a.Started) }) {
		t.Errorf("%d runs, %v", len(all), err)
	}
}

// What a person changes by a command is in a log: who and what, never a secret's value.
func TestAuditDeeds(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.addFake("fake", fakeStdio{})
	r.with("hush-hush-77", "secret", "set", "ONE", "--from", "-").ok()
	rec := ""
	v, err := openVault(t.Context(), r.home, vaultWrite, time.Now, vaultKeys{Dir: filepath.Join(r.home+"-config", "tai", "keys")})
	if err != nil {
		t.Fatal(err)
	}
	info, err := v.putRecord(t.Context(), "result", "test", "", []byte("x"))
	if err := errors.Join(err, v.close()); err != nil {
		t.Fatal(err)
	}
	rec = info.ID
	for _, words := range [][]string{{"mcp", "disable", "fake"}, {"mcp", "enable", "fake"}, {"profile", "create", "work"}, {"profile", "use", "work"}, {"profile", "use", "default"},
		{"profile", "delete", "work"}, {"record", "delete", rec}, {"secret", "delete", "ONE"}} {
		r.tai(words...).ok()
	}
	r.tai("secret", "delete", "ONE").fails(exitFailed, "not found")
	var got []string
	for _, run := range cliJSON[struct{ Runs []auditRunInfo }](r.tai("audit", "list", "--json")).Runs {
		out := r.tai("audit", "show", run.Run, "--event", auditCallCompleted, "--event", auditCallFailed).ok()
		if all := r.tai("audit", "show", run.Run).ok(); strings.Contains(all, "hush") {
			t.Errorf("the value is in the log: %s", all)
		}
		_, what, _ := strings.Cut(strings.TrimSpace(out), "c-1  ")
		got = append(got, strings.ReplaceAll(what, "  ", " "))
	}
	slices.Reverse(got)
	want := []string{"mcp-register fake enabled", "secret-set ONE ok", "mcp-disable fake ok", "mcp-enable fake ok", "profile-create work ok", "profile-use work ok", "profile-use default ok",
		"profile-delete work ok", "record-delete " + rec + " ok", "secret-delete ONE ok"}
	if len(got) != len(want)+1 || !slices.Equal(got[:len(want)], want) || !strings.HasPrefix(got[len(want)], "secret-delete ONE error") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	fresh := newCLIRig(t)
	fresh.tai("secret", "delete", "ONE").fails(exitFailed, "not found")
	if _, err := os.Stat(fresh.home); !os.IsNotExist(err) {
		t.Errorf("a home was made to say that there is nothing: %v", err)
	}
}

// A vault whose seal cannot be opened: a run is refused with the reason, a log is verified with a notice, and nothing is shown that needs the key.
func TestAuditHeadSealed(t *testing.T) {
	t.Parallel()
	r := newAuditRig(t, 1)
	keys := vaultKeys{Dir: filepath.Join(r.home+"-config", "tai", "keys")}
	v, err := openVault(t.Context(), r.home, vaultWrite, time.Now, keys)
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.sealWithPassphrase(t.Context(), "open sesame please")
	if err := errors.Join(err, v.close()); err != nil {
		t.Fatal(err)
	}
	r.tai("tools", "call", "shell_run", "command=touch made").fails(exitFailed, "sealed with a passphrase")
	if _, err := os.Stat(filepath.Join(r.dir, "made")); err == nil {
		t.Error("the tool ran")
	}
	f := r.verdict(0, r.runs, "good: 5 lines", "the vault's head of 5 lines", "notice: the vault's seal could not be opened, so its public key was taken as it stands")
	if f.Checked != auditByVault || len(f.Notices) != 1 {
		t.Errorf("%+v", f)
	}
	show := r.tai("audit", "show", r.runs[0])
	show.outHas("run_completed")
	if show.err != "" {
		t.Errorf("show: %s", show.err)
	}
	r.tai("audit", "list").outHas("5 lines  ended")
	r.tai("audit", "head", r.runs[0]).fails(exitFailed, "the vault's seal could not be opened")
	lines := strings.SplitAfter(r.read(0), "\n")
	r.write(0, strings.Join(lines[:4], ""))
	r.verdict(1, r.runs, "tampered with: line 5")
}

// A run may be named by the word last, or by its beginning where that is clear; a newest log that was removed is not passed over.
func TestAuditRunNames(t *testing.T) {
	t.Parallel()
	r := newAuditRig(t, 2)
	newest := strings.Fields(r.tai("audit", "list", "--limit", "1").ok())[0]
	r.tai("audit", "verify", "last").outHas("good: 5 lines of " + newest)
	for _, run := range r.runs {
		r.tai("audit", "verify", run[:len(run)-2]).outHas("good: 5 lines of " + run)
	}
	r.tai("audit", "verify", "cli-").fails(exitUsage, "no such run or file")
	r.tai("audit", "verify", "cli-zz").fails(exitUsage, "no such run or file")
	head := filepath.Join(t.TempDir(), "head.json")
	r.tai("audit", "head", "last", "-o", head).outHas("of the log ", newest+auditExtension)
	r.tai("audit", "show", "last", "--event", "nothing").errHas("no line of the log")
	for i := range r.runs {
		if err := os.Remove(r.path(i)); err != nil {
			t.Fatal(err)
		}
	}
	gone := r.tai("audit", "verify", "last")
	gone.outHas("the log is gone")
	if gone.code != 1 {
		t.Errorf("exit %d, want 1", gone.code)
	}
	r.tai("audit", "verify", newest[:len(newest)-2], "--head", head).fails(exitUsage, "no such run or file")
	r.tai("audit", "verify", newest, "--head", head).outHas("the log is gone", "named by its file")
}

// --all checks every log, says what is not good, and ends with the exit code of the worst: tampered before unreadable.
func TestCLIAuditAll(t *testing.T) {
	t.Parallel()
	r := newAuditRig(t, 3)
	all := func(code int, good, tampered, unreadable int) auditAll {
		t.Helper()
		plain := r.tai("audit", "verify", "--all")
		line := fmt.Sprintf("%s checked: %d good, %d tampered with, %d unreadable\n", plural(good+tampered+unreadable, "log"), good, tampered, unreadable)
		if plain.code != code || !strings.HasSuffix(plain.out, line) {
			t.Errorf("exit %d, want %d: %s%s, want %s", plain.code, code, plain.out, plain.err, line)
		}
		got := r.tai("audit", "verify", "--all", "--ci")
		var doc auditAll
		if err := json.Unmarshal([]byte(got.out), &doc); err != nil || got.code != code || doc.Good != good || doc.Tampered != tampered || doc.Unreadable != unreadable || strings.Count(got.out, "\n") != 1 {
			t.Errorf("%v, exit %d: %s%s", err, got.code, got.out, got.err)
		}
		return doc
	}
	if doc := all(exitDone, 3, 0, 0); len(doc.Runs) != 0 {
		t.Errorf("%+v", doc)
	}
	empty := filepath.Join(r.home, "runs", "other"+auditExtension)
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all(exitUsage, 3, 0, 1)
	whole := r.read(0)
	r.write(0, strings.Replace(whole, "file_read", "file_Read", 1))
	if doc := all(exitFailed, 2, 1, 1); len(doc.Runs) != 2 {
		t.Errorf("%+v", doc)
	}
	r.write(0, whole)
	if err := errors.Join(os.Remove(r.path(1)), os.Remove(empty)); err != nil {
		t.Fatal(err)
	}
	if doc := all(exitFailed, 2, 1, 0); len(doc.Runs) != 1 || doc.Runs[0].Run != r.runs[1] || !strings.Contains(doc.Runs[0].Reason, "the log is gone") {
		t.Errorf("%+v", doc)
	}
	r.tai("audit", "verify").fails(exitUsage, "no run was named", "--all")
	r.tai("audit", "verify", "--all", r.runs[0]).fails(exitUsage, "--all checks every log")
	r.tai("audit", "verify", "--all", "--head", "x").fails(exitUsage, "--all checks every log")
	none := newCLIRig(t)
	none.tai("audit", "verify", "--all").outHas("0 logs checked: 0 good, 0 tampered with, 0 unreadable\n")
}
