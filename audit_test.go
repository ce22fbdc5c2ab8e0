package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func auditTestLog(t testing.TB) *auditLog {
	t.Helper()
	clock := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	return newAuditLog(auditConfig{
		Dir: filepath.Join(t.TempDir(), "runs"), Origin: "cli", Data: json.RawMessage(`{"version":"0.1.0"}`),
		Now: func() time.Time { return clock },
	})
}

func auditTestRecord(t testing.TB, a *auditLog, ev auditEvent) {
	t.Helper()
	if err := a.record(ev); err != nil {
		t.Fatal(err)
	}
}

func auditTestLines(t testing.TB, a *auditLog) []string {
	t.Helper()
	b, err := os.ReadFile(a.path())
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n")
}

func auditTestHead(a *auditLog) (count int64, hash string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seq, a.prev
}

func auditTestVerify(t testing.TB, text string) auditReport {
	t.Helper()
	rep, err := verifyAuditAt(strings.NewReader(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// fakeAuditFile lets a write through only in part, as a full disk does, or fails or holds up a sync.
type fakeAuditFile struct {
	auditFile
	room     int // bytes that still fit; negative: no bound
	noCut    bool
	syncErr  error
	syncGate chan struct{} // each sync takes one
	syncs    chan struct{} // each sync announces itself
}

func (f *fakeAuditFile) Write(b []byte) (int, error) {
	if f.room < 0 || len(b) <= f.room {
		f.room -= min(len(b), max(f.room, 0))
		return f.auditFile.Write(b)
	}
	n, _ := f.auditFile.Write(b[:f.room])
	f.room = 0
	return n, syscall.ENOSPC
}

func (f *fakeAuditFile) Truncate(size int64) error {
	if f.noCut {
		return syscall.EIO
	}
	return f.auditFile.Truncate(size)
}

func (f *fakeAuditFile) Sync() error {
	if f.syncs != nil {
		f.syncs <- struct{}{}
		<-f.syncGate
	}
	return errors.Join(f.syncErr, f.auditFile.Sync())
}

// TestAuditShape: the fields, their order, the chain, and that the hash is that of the canonical JSON of the line.
func TestAuditShape(t *testing.T) {
	t.Parallel()
	a := auditTestLog(t)
	if _, err := os.Stat(a.cfg.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before the first record: %v", err)
	}
	if err := a.sync(); err != nil {
		t.Fatalf("sync of nothing: %v", err)
	}
	call := a.nextCall()
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested, Call: call, Parent: "turn-1", Kind: auditKindMCP, Subject: "files/écrire",
		Digest: strings.Repeat("ab", 32), Size: 17, Data: json.RawMessage(`{ "path":"a/b", "n":1.0, "é":"\u00e9" }`)})
	auditTestRecord(t, a, auditEvent{Event: auditCallCompleted, Call: call, Outcome: "ok", Rule: "digest", Duration: 1234567 * time.Nanosecond})
	if err := errors.Join(a.close(), a.close()); err != nil {
		t.Fatal(err)
	}
	lines := auditTestLines(t, a)
	if len(lines) != 4 {
		t.Fatalf("%d lines", len(lines))
	}
	var events []string
	prev := auditGenesis
	for i, line := range lines {
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		hash, _ := jsonString(m["hash"])
		was, _ := jsonString(m["prev"])
		event, _ := jsonString(m["event"])
		events = append(events, event)
		delete(m, "hash")
		bare, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		canon, err := canonicalJSON(bare)
		if err != nil {
			t.Fatal(err)
		}
		if sha256Hex(canon) != hash || was != prev || string(m["seq"]) != fmt.Sprint(i+1) {
			t.Errorf("line %d: hash, prev or seq wrong: %s", i+1, line)
		}
		prev = hash
	}
	if got := strings.Join(events, " "); got != "run_started tool_call_requested tool_call_completed run_completed" {
		t.Errorf("events %s", got)
	}
	want := `{"seq":2,"time":"2026-03-01T09:00:00.000000Z","run":"` + a.name + `","event":"tool_call_requested","call":"c-1","parent":"turn-1",` +
		`"kind":"mcp-call","subject":"files/écrire","digest":"` + strings.Repeat("ab", 32) + `","size":17,"data":{"n":1,"path":"a/b","é":"é"},"prev":"`
	if !strings.HasPrefix(lines[1], want) {
		t.Errorf("line 2 = %s want %s", lines[1], want)
	}
	if !strings.Contains(lines[2], `"outcome":"ok","duration_ms":1.234,"rule":"digest","prev":`) {
		t.Errorf("line 3 = %s", lines[2])
	}
	if count, head := auditTestHead(a); count != 4 || head != prev {
		t.Errorf("head %d %s, want 4 %s", count, head, prev)
	}
	rep := auditTestVerify(t, strings.Join(lines, "")+"\n")
	if rep.Lines != 4 || rep.Bad != 0 || rep.Head != prev || rep.Run != a.name || !rep.Completed || rep.exitCode() != 0 {
		t.Errorf("report %+v", rep)
	}
	if err := a.record(auditEvent{Event: auditCallRequested}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("record after close: %v", err)
	}
}

// TestVLT09AuditPermissions: the log is the owner's alone and lies in a folder of its own.
func TestVLT09AuditPermissions(t *testing.T) {
	t.Parallel()
	a := auditTestLog(t)
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested})
	defer a.close()
	file, err := os.Stat(a.path())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Stat(a.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if file.Mode().Perm() != 0o600 || dir.Mode().Perm() != 0o700 {
		t.Errorf("modes %v %v", file.Mode(), dir.Mode())
	}
	if base := filepath.Base(a.path()); !strings.HasPrefix(base, "cli-") || len(base) != len("cli-")+16+len(".jsonl") {
		t.Errorf("name %s", base)
	}
	elsewhere, link := t.TempDir(), filepath.Join(t.TempDir(), "runs")
	if err := os.Symlink(elsewhere, link); err != nil {
		skipMissing(t, "no symbolic links here")
	}
	b := newAuditLog(auditConfig{Dir: link, Origin: "mcp"})
	if err := b.record(auditEvent{Event: auditCallRequested}); err == nil {
		t.Error("a linked log folder was used")
	}
}

// TestAUD05OneWriter: four writers keep one unbroken sequence; the same name is refused to a second log.
func TestAUD05OneWriter(t *testing.T) {
	t.Parallel()
	a := auditTestLog(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 2500 {
				if err := a.record(auditEvent{Event: auditCallRequested, Call: a.nextCall(), Subject: "time_now"}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	rep := auditTestVerify(t, strings.Join(auditTestLines(t, a), "")+"\n")
	if rep.Lines != 10002 || rep.Bad != 0 {
		t.Errorf("report %+v", rep)
	}
	b := newAuditLog(a.cfg)
	b.name = a.name
	if err := b.record(auditEvent{Event: auditCallRequested}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second writer of one log: %v", err)
	}
	if after := auditTestVerify(t, strings.Join(auditTestLines(t, a), "")+"\n"); after.Head != rep.Head {
		t.Error("the second writer changed the log")
	}
}

// fakeAuditWriter is a process that writes one run into the folder of its first argument.
func fakeAuditWriter() {
	a := newAuditLog(auditConfig{Dir: os.Args[1], Origin: "cli"})
	for i := range 200 {
		err := a.record(auditEvent{Event: auditCallRequested, Call: a.nextCall(), Size: int64(i)})
		if err == nil && i%20 == 0 {
			err = a.sync()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := a.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestAUD05Processes: processes that log at once into one folder each have a whole log of their own.
func TestAUD05Processes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "runs")
	const processes = 4
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], dir)
			cmd.Env = append(os.Environ(), "TAI_TEST_FAKE=audit-writer")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	runs, total, err := listAudit(nil, 99, dir, filepath.Join(dir, "missing"))
	if err != nil || len(runs) != processes || total != processes {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	for _, run := range runs {
		if run.Lines != 202 || !run.Completed || run.Fault != "" || run.Origin != "cli" || run.Started.IsZero() {
			t.Errorf("%+v", run)
		}
		b, err := os.ReadFile(run.Path)
		if err != nil {
			t.Fatal(err)
		}
		if rep := auditTestVerify(t, string(b)); rep.Bad != 0 || rep.Lines != 202 {
			t.Errorf("%s: %+v", run.Run, rep)
		}
	}
}

// TestAUD06NoRecordNoAction: a line that does not fit is an error and leaves no trace; the chain goes on when there is room.
func TestAUD06NoRecordNoAction(t *testing.T) {
	t.Parallel()
	a := auditTestLog(t)
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested})
	fake := &fakeAuditFile{auditFile: a.file, room: 40}
	a.file = fake
	if err := a.record(auditEvent{Event: auditCallRequested, Subject: "lost"}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("record on a full disk: %v", err)
	}
	if n, _ := auditTestHead(a); n != 2 {
		t.Errorf("head counts %d lines, want 2", n)
	}
	fake.room = -1
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested, Subject: "again"})
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(auditTestLines(t, a), "") + "\n"
	if rep := auditTestVerify(t, text); rep.Bad != 0 || rep.Lines != 4 || strings.Contains(text, "lost") {
		t.Errorf("report %+v of %s", rep, text)
	}
}

// TestAUD06Broken: what cannot be taken back, or was not synced, ends the log: nothing is recorded any more.
func TestAUD06Broken(t *testing.T) {
	t.Parallel()
	for name, fake := range map[string]*fakeAuditFile{
		"write": {room: 10, noCut: true},
		"sync":  {room: -1, syncErr: syscall.EIO},
	} {
		a := auditTestLog(t)
		auditTestRecord(t, a, auditEvent{Event: auditCallRequested})
		fake.auditFile = a.file
		a.file = fake
		err := a.record(auditEvent{Event: auditCallRequested})
		if err == nil {
			err = a.sync()
		}
		fake.room, fake.syncErr = -1, nil
		if err == nil || a.record(auditEvent{Event: auditCallRequested}) == nil || a.sync() == nil || a.close() == nil {
			t.Errorf("%s: a broken log records on (%v)", name, err)
		}
	}
}

// TestAUD06LogTakenAway: before a destructive act the sync sees a log removed, replaced, cut or made read-only.
func TestAUD06LogTakenAway(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"removed":   os.Remove,
		"replaced":  func(p string) error { return errors.Join(os.Rename(p, p+".old"), os.WriteFile(p, nil, 0o600)) },
		"read-only": func(p string) error { return os.Chmod(p, 0o400) },
		"cut":       func(p string) error { return os.Truncate(p, 10) },
	} {
		a := auditTestLog(t)
		auditTestRecord(t, a, auditEvent{Event: auditCallRequested})
		if err := spoil(a.path()); err != nil {
			t.Fatal(err)
		}
		if err := a.sync(); err == nil || !strings.Contains(err.Error(), a.path()) {
			t.Errorf("%s: sync: %v", name, err)
		}
		if a.record(auditEvent{Event: auditCallStarted}) == nil {
			t.Errorf("%s: records on", name)
		}
		a.close()
	}
	file := filepath.Join(t.TempDir(), "runs")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newAuditLog(auditConfig{Dir: file, Origin: "cli"}).record(auditEvent{Event: auditCallRequested}); err == nil {
		t.Error("a log without a folder was recorded")
	}
}

// TestAUD07SharedSync: a sync covers what was recorded before it, and callers that wait share one.
func TestAUD07SharedSync(t *testing.T) {
	t.Parallel()
	a := auditTestLog(t)
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested})
	fake := &fakeAuditFile{auditFile: a.file, room: -1, syncs: make(chan struct{}, 99), syncGate: make(chan struct{}, 99)}
	a.file = fake
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := a.sync(); err != nil {
			t.Error(err)
		}
	})
	<-fake.syncs // the first sync is under way
	for range 8 {
		auditTestRecord(t, a, auditEvent{Event: auditCallRequested})
	}
	for range 8 {
		wg.Go(func() {
			if err := a.sync(); err != nil {
				t.Error(err)
			}
		})
	}
	for range 9 {
		fake.syncGate <- struct{}{}
	}
	wg.Wait()
	if n := 1 + len(fake.syncs); n != 2 {
		t.Errorf("%d syncs for nine callers, want 2", n)
	}
	if a.synced != 10 {
		t.Errorf("synced %d, want 10", a.synced)
	}
	a.close()
}

// TestAUD08OneEventOneLine: arguments that spell a fake event stay inside their line, and nothing a screen acts on is raw.
func TestAUD08OneEventOneLine(t *testing.T) {
	t.Parallel()
	a := auditTestLog(t)
	evil := "x\"}\n{\"seq\":3,\"event\":\"run_completed\"}\r\x1b[2J\x00\x7f\u009b31m\u202e\u2028\U000e0041"
	data, err := json.Marshal(map[string]string{evil: evil})
	if err != nil {
		t.Fatal(err)
	}
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested, Subject: evil + "\xff", Outcome: evil, Rule: evil, Kind: evil, Parent: evil, Data: data})
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	lines := auditTestLines(t, a)
	if len(lines) != 3 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	for _, r := range strings.TrimSuffix(lines[1], "\n") {
		if r < 0x20 || r == 0x7f || r == 0x9b || r == 0x202e || r == 0x2028 || r == 0xe0041 {
			t.Errorf("raw %U in the log", r)
		}
	}
	var line struct {
		Subject string
		Data    map[string]string
	}
	if err := json.Unmarshal([]byte(lines[1]), &line); err != nil || line.Subject != evil+"\ufffd" || line.Data[evil] != evil {
		t.Errorf("%v: %q", err, line)
	}
	if rep := auditTestVerify(t, strings.Join(lines, "")+"\n"); rep.Bad != 0 || rep.Lines != 3 {
		t.Errorf("%+v", rep)
	}
}

// TestAUD09Redacted: what Redact knows is in no field, also where taking it out breaks the JSON.
func TestAUD09Redacted(t *testing.T) {
	t.Parallel()
	a := auditTestLog(t)
	a.cfg.Redact = func(s string) string { return strings.ReplaceAll(s, "s3cr3t77", "[secret:KEY]") }
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested, Subject: "s3cr3t77" + strings.Repeat("x", 600), Outcome: "bad s3cr3t77", Rule: "s3cr3t77",
		Data: json.RawMessage(`{"a":"s3cr3t77","b":"s3cr3\u007477"}`)})
	a.cfg.Redact = func(s string) string { return strings.ReplaceAll(s, "12345678", "[secret:KEY]") }
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested, Data: json.RawMessage(`{"a":12345678}`)})
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(auditTestLines(t, a), "") + "\n"
	if strings.Contains(text, "s3cr3t77") || strings.Contains(text, "12345678}") || strings.Count(text, "[secret:KEY]") != 6 {
		t.Errorf("log %s", text)
	}
	if rep := auditTestVerify(t, text); rep.Bad != 0 {
		t.Errorf("%+v", rep)
	}
}

// TestAUD11LargeData: of large arguments the digest and the size are kept; every line stays bounded.
func TestAUD11LargeData(t *testing.T) {
	t.Parallel()
	a := auditTestLog(t)
	args, err := json.Marshal(map[string]string{"content": strings.Repeat("\x01", 10<<20)})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := payloadDigest("file_write", args)
	if err != nil {
		t.Fatal(err)
	}
	huge := strings.Repeat("\u009b", 1<<20)
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested, Digest: digest, Data: args})
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested, Data: json.RawMessage(`"` + strings.Repeat("y", auditDataMax) + `"`)})
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested, Subject: huge, Kind: huge, Parent: huge, Outcome: huge, Rule: huge,
		Data: json.RawMessage(`"` + strings.Repeat("\u202e", (auditDataMax-2)/3) + `"`)})
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested, Data: json.RawMessage(`{"a":1,"a":2}`)})
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	lines := auditTestLines(t, a)
	for i, line := range lines {
		if len(line) > auditLineMax {
			t.Errorf("line %d has %d bytes", i+1, len(line))
		}
	}
	if want := fmt.Sprintf(`"digest":"%s","size":%d,"prev"`, digest, len(args)); !strings.Contains(lines[1], want) {
		t.Errorf("line = %s, want %s", lines[1], want)
	}
	if !strings.Contains(lines[2], `"size":4098`) || strings.Contains(lines[2], "yyy") {
		t.Errorf("line = %s", lines[2])
	}
	if !strings.Contains(lines[3], `"data":"\u202e\u202e`) {
		t.Error("data that fits was left out")
	}
	if want := `"digest":"` + sha256Hex([]byte(`{"a":1,"a":2}`)); !strings.Contains(lines[4], want) || strings.Contains(lines[4], "data") {
		t.Errorf("line = %s", lines[4])
	}
	if rep := auditTestVerify(t, strings.Join(lines, "")+"\n"); rep.Bad != 0 || rep.Lines != len(lines) {
		t.Errorf("%+v", rep)
	}
}

// BenchmarkAuditRecord is one line, of a run that is on record nowhere else and of one whose head a vault keeps meanwhile (P1, P17).
func BenchmarkAuditRecord(b *testing.B) {
	ev := auditEvent{Event: auditCallRequested, Call: "c-1", Parent: "turn-1", Kind: auditKindMCP, Subject: "files/read_text_file",
		Digest: strings.Repeat("ab", 32), Size: 40, Data: json.RawMessage(`{"path":"docs/readme.md","head":20}`)}
	for _, heads := range []string{"off", "on"} {
		b.Run("heads-"+heads, func(b *testing.B) {
			a := auditTestLog(b)
			a.cfg.Now = time.Now
			if heads == "on" {
				a.cfg.Heads = vaultAt(b, b.TempDir()).putAuditHead
			}
			auditTestRecord(b, a, ev) // makes the file and puts the run on record
			b.ReportAllocs()
			for b.Loop() {
				if err := a.record(ev); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			if err := a.close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkAuditVerify(b *testing.B) {
	a := auditTestLog(b)
	const lines = 10000
	for range lines - 2 {
		auditTestRecord(b, a, auditEvent{Event: auditCallRequested, Call: a.nextCall(), Subject: "files/read_text_file",
			Digest: strings.Repeat("ab", 32), Size: 40, Data: json.RawMessage(`{"path":"docs/readme.md"}`)})
	}
	if err := a.close(); err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(a.path())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if rep, err := verifyAuditAt(bytes.NewReader(text), 0); err != nil || rep.Lines != lines {
			b.Fatal(err, rep)
		}
	}
	b.ReportMetric(float64(b.N)*lines/b.Elapsed().Seconds(), "lines/s")
}

// TestAuditTwoLines: lines that are recorded together are one write, chained, with one time; of two that do not fit none is left. A field with a
// secret is masked, whichever it is.
func TestAuditTwoLines(t *testing.T) {
	t.Parallel()
	a := auditTestLog(t)
	a.cfg.Redact = func(s string) string {
		if strings.TrimSpace(s) == "" {
			t.Error("nothing was to be masked")
		}
		return strings.ReplaceAll(s, "sesame", "[secret:DOOR]")
	}
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested})
	pair := []auditEvent{{Event: auditCallRequested, Call: "c-9", Subject: "a sesame"}, {Event: auditCallStarted, Call: "c-9", Rule: "sesame", Parent: "turn-1"}}
	fake := &onceAuditFile{auditFile: a.file}
	a.file = fake
	if err := a.record(pair...); err != nil {
		t.Fatal(err)
	}
	if err := a.record(pair...); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk: %v", err)
	}
	fake.full = false
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	lines := auditTestLines(t, a)
	if len(lines) != 5 {
		t.Fatalf("%d lines, want 5: %q", len(lines), lines)
	}
	for i, want := range map[int]string{2: `"subject":"a [secret:DOOR]"`, 3: `"rule":"[secret:DOOR]"`} {
		if !strings.Contains(lines[i], want) || strings.Contains(lines[i], "sesame") {
			t.Errorf("line %d: %s", i+1, lines[i])
		}
	}
	if rows := auditRows(t, a.path()); rows[2].Time != rows[3].Time || rows[3].Prev != rows[2].Hash {
		t.Errorf("%+v", rows[2:4])
	}
	verifyLogs(t, a.cfg.Dir)
}

// TestAuditNothingRecorded: a log that nothing was recorded in ends without a file and masks nothing, which would open the vault, or make it.
func TestAuditNothingRecorded(t *testing.T) {
	t.Parallel()
	a := newAuditLog(auditConfig{Dir: filepath.Join(t.TempDir(), "runs"), Origin: "cli", Redact: func(s string) string { t.Errorf("%q was to be masked", s); return s }})
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(a.cfg.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there (%v)", a.cfg.Dir, err)
	}
}

// TestAuditClock: the time is written as its form says, also when a second begins and when the clock is put back.
func TestAuditClock(t *testing.T) {
	t.Parallel()
	a := auditTestLog(t)
	at := time.Date(2026, 3, 1, 9, 59, 59, 999_999_999, time.FixedZone("", 3600))
	for _, d := range []time.Duration{0, 1, 5 * time.Microsecond, time.Second, -time.Hour, 17*time.Hour + 123456*time.Microsecond, -400 * 24 * time.Hour} {
		at = at.Add(d)
		if got, want := a.clockText(at), at.UTC().Format(auditTimeForm); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
