package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// bufferedAuditFile gathers the writes of a log that a test makes for its length.
type bufferedAuditFile struct {
	auditFile
	w *bufio.Writer
}

func (f *bufferedAuditFile) Write(b []byte) (int, error) { return f.w.Write(b) }
func (f *bufferedAuditFile) Sync() error                 { return f.w.Flush() }

// Stat tells the true size, as a file does: a sync looks at it first.
func (f *bufferedAuditFile) Stat() (os.FileInfo, error) {
	if err := f.w.Flush(); err != nil {
		return nil, err
	}
	return f.auditFile.Stat()
}

// auditMixedLog writes a log of about so many lines as a busy run does: calls that overlap, their arguments in 100 to 300 bytes,
// now and then with quotes, line ends, letters beyond ASCII and hidden characters, some that fail and some that are refused.
func auditMixedLog(t testing.TB, lines int) *auditLog {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 8))
	a := auditTestLog(t)
	clock := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	a.cfg.Now = func() time.Time {
		clock = clock.Add(time.Duration(1+random.IntN(3000)) * time.Microsecond)
		return clock
	}
	tools := []string{"file_read", "file_write", "shell_run", "mcp:files/read_text_file", "mcp:tickets/search"}
	for left := lines - 2; left > 0; {
		call, tool := a.nextCall(), tools[random.IntN(len(tools))]
		text := strings.Repeat("the quick brown fox ", 3+random.IntN(8))
		switch random.IntN(12) {
		case 0:
			text = "say \"hello\"\n\tC:\\temp\\" + text
		case 1:
			text = "déjà vu, 日本語 – " + text
		case 2:
			text = "\u202e\x1b[31m " + text
		}
		args, err := json.Marshal(map[string]any{"path": "src/pkg/file.go", "limit": random.IntN(5000), "all": true, "content": text, "list": []any{1, "two", nil, map[string]int{"x": 1, "a": 2}}})
		if err != nil {
			t.Fatal(err)
		}
		ev := auditEvent{Event: auditCallRequested, Call: call, Kind: "native", Subject: tool, Digest: sha256Hex(args), Size: int64(len(args)), Data: args}
		if strings.HasPrefix(tool, "mcp:") {
			ev.Kind, ev.Parent = auditKindMCP, "turn-"+strconv.Itoa(random.IntN(9)+1)
		}
		steps := []auditEvent{ev, {Event: auditCallStarted, Call: call, Rule: "mode"}, {Event: auditCallCompleted, Call: call, Outcome: auditOK,
			Duration: time.Duration(random.IntN(900_000)) * time.Microsecond, Size: int64(random.IntN(60_000))}}
		switch random.IntN(20) {
		case 0:
			steps = []auditEvent{ev, {Event: auditCallBlocked, Call: call, Outcome: auditDenied, Rule: "read-only"}}
		case 1:
			steps[2].Event, steps[2].Outcome = auditCallFailed, auditError
		}
		for _, ev := range steps[:min(left, len(steps))] {
			auditTestRecord(t, a, ev)
			if f, ok := a.file.(*os.File); ok {
				a.file = &bufferedAuditFile{auditFile: f, w: bufio.NewWriterSize(f, 1<<20)}
			}
			left--
		}
	}
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	return a
}

func auditMixedText(t testing.TB, lines int) string {
	t.Helper()
	text, err := os.ReadFile(auditMixedLog(t, lines).path())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// auditEdit changes a text in one place, in one of the ways in which logs are changed by hand, by a program or by a fault.
func auditEdit(random *rand.Rand, text string) (what, edited string) {
	at := random.IntN(len(text))
	lines := strings.SplitAfter(text, "\n")
	lines = lines[:len(lines)-1]
	n := random.IntN(len(lines))
	join := func(parts ...[]string) string {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(strings.Join(p, ""))
		}
		return b.String()
	}
	respell := func(old, with string) string { // the occurrence after at, else the first
		if i := strings.Index(text[at:], old); i >= 0 {
			return text[:at+i] + with + text[at+i+len(old):]
		}
		return strings.Replace(text, old, with, 1)
	}
	switch random.IntN(16) {
	case 0:
		return "flip a bit", text[:at] + string([]byte{text[at] ^ 1<<random.IntN(8)}) + text[at+1:]
	case 1:
		return "another character", text[:at] + string([]byte{byte(random.IntN(256))}) + text[at+1:]
	case 2:
		return "drop a line", join(lines[:n], lines[n+1:])
	case 3:
		m := random.IntN(len(lines))
		swapped := append([]string{}, lines...)
		swapped[n], swapped[m] = swapped[m], swapped[n]
		return "swap two lines", join(swapped)
	case 4:
		return "insert a line", join(lines[:n], []string{strings.Replace(lines[random.IntN(len(lines))], "c-", "c-9", 1)}, lines[n:])
	case 5:
		return "cut", text[:at]
	case 6:
		return "double a line", join(lines[:n+1], lines[n:])
	case 7:
		return "insert white space", text[:at] + []string{" ", "\t", "\r", "\n", "\u00a0"}[random.IntN(5)] + text[at:]
	case 8:
		return "number with a fraction", respell(`,"list"`, `.0,"list"`)
	case 9:
		return "number with an exponent", respell(`,"prev"`, `e0,"prev"`)
	case 10:
		return "escape for a letter", respell(`"event":"t`, `"event":"\u0074`)
	case 11:
		return "letter for an escape", respell(`\"`, `\u0022`)
	case 12:
		return "another order of fields", respell(`"outcome":"ok","duration_ms":`, `"duration_ms":1,"outcome":"ok","x":`)
	case 13:
		return "a further field", respell(`,"prev":`, `,"note":"x","prev":`)
	case 14:
		return "drop a character", text[:at] + text[at+1:]
	}
	return "double a character", text[:at+1] + text[at:]
}

// TestAUD02TenThousandEdits: of 10,000 edits of a log each is found, and told by the first line that is not as it was. An edit
// that leaves a clean beginning of the log is for the head to find, not for the chain.
func TestAUD02TenThousandEdits(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 10_000))
	text := auditMixedText(t, 60)
	before := strings.SplitAfter(text, "\n")
	kinds := map[string]int{}
	for found := 0; found < 10_000/raceScale; {
		what, edited := auditEdit(random, text)
		if edited == text || strings.HasPrefix(text, edited) && (edited == "" || strings.HasSuffix(edited, "\n")) {
			continue
		}
		found++
		kinds[what]++
		want := 0
		for want < len(before) {
			n := len(before[want])
			if n == 0 || len(edited) < n || edited[:n] != before[want] {
				break
			}
			edited, want = edited[n:], want+1
		}
		edited = strings.Join(before[:want], "") + edited
		rep, err := verifyAuditAt(strings.NewReader(edited), 0)
		got := rep.Bad
		if rep.Incomplete || rep.Unreadable {
			got = rep.Lines + 1
		}
		if got != want+1 || (err != nil) != rep.Unreadable {
			t.Fatalf("%s: line %d is told, want %d: %+v %v", what, got, want+1, rep, err)
		}
	}
	for what, n := range kinds {
		if n < 100/raceScale {
			t.Errorf("%s: only %d edits", what, n)
		}
	}
	if len(kinds) != 16 {
		t.Errorf("%d kinds of edits, want 16: %v", len(kinds), kinds)
	}
}

// TestAUD02TwoBatches: in a log that several workers judge the first bad line is told too, wherever it stands.
func TestAUD02TwoBatches(t *testing.T) {
	t.Parallel()
	text := auditMixedText(t, 6000)
	if len(text) < 8*auditBatchSize {
		t.Fatalf("the log has %d bytes, less than eight batches", len(text))
	}
	whole := auditTestVerify(t, text)
	if whole.Lines != 6000 || whole.Bad != 0 || !whole.Completed {
		t.Fatalf("%+v", whole)
	}
	if halves, err := verifyAuditAt(iotest.DataErrReader(iotest.HalfReader(strings.NewReader(text))), 0); err != nil || halves != whole {
		t.Errorf("read in pieces: %+v %v, want %+v", halves, err, whole)
	}
	lineAt := func(at int) int { return strings.Count(text[:at], "\n") + 1 }
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 60 / raceScale {
		at := random.IntN(len(text) - 2)
		if i < 16 { // around the borders of batches
			at = (i/2+1)*auditBatchSize - i%2 - 1
		}
		if text[at] == '\n' {
			at++
		}
		later := at + random.IntN(len(text)-1-at)
		edited := text[:at] + "~" + text[at+1:later] + "~" + text[later:]
		if rep := auditTestVerify(t, edited); rep.Bad != lineAt(at) || rep.Lines != rep.Bad-1 {
			t.Errorf("byte %d: %+v, want line %d", at, rep, lineAt(at))
		}
		if rep := auditTestVerify(t, text[:at]); at > 0 && text[at-1] != '\n' && (!rep.Incomplete || rep.Lines != lineAt(at)-1) {
			t.Errorf("cut at byte %d: %+v, want %d lines", at, rep, lineAt(at)-1)
		}
	}
	broken := errors.New("disk on fire")
	at := 5*auditBatchSize + 100
	rep, err := verifyAuditAt(io.MultiReader(strings.NewReader(text[:at]), iotest.ErrReader(broken)), 0)
	if !errors.Is(err, broken) || rep.exitCode() != 2 || rep.Lines != lineAt(at)-1 {
		t.Errorf("unreadable after %d lines: %+v %v", lineAt(at)-1, rep, err)
	}
	cut := strings.Index(text[3*auditBatchSize:], "\n") + 3*auditBatchSize + 1
	for what, tail := range map[string]string{"in the middle": strings.Repeat("x", auditLineMax) + "\n" + text[cut:], "at the end": strings.Repeat("x", auditLineMax), "without end": strings.Repeat("x", 3*auditBatchSize)} {
		if rep := auditTestVerify(t, text[:cut]+tail); rep.Bad != lineAt(cut) || rep.Reason != errAuditLong.Error() {
			t.Errorf("a long line %s: %+v, want line %d", what, rep, lineAt(cut))
		}
	}
	for _, mark := range []int64{0, 1, 3000, 6000, 6001} {
		want := ""
		if lines := strings.SplitAfter(text, "\n"); mark > 0 && mark <= 6000 {
			var line struct{ Hash string }
			if err := json.Unmarshal([]byte(lines[mark-1]), &line); err != nil {
				t.Fatal(err)
			}
			want = line.Hash
		}
		if rep, err := verifyAuditAt(strings.NewReader(text), mark); err != nil || rep.at != want || rep.Lines != whole.Lines {
			t.Errorf("hash of line %d: %+v %v, want %q", mark, rep, err, want)
		}
	}
}

// auditQuickAgrees holds the quick way against the exact one: what the quick way takes, the exact one writes back byte for byte
// and hashes from the same bytes.
func auditQuickAgrees(t *testing.T, line []byte) (taken bool) {
	t.Helper()
	var quick, exact auditJudge
	link, ok := quick.quick(line)
	if !ok {
		return false
	}
	rec, err := exact.parse(line)
	if err != nil {
		t.Fatalf("the quick way takes %q: %v", line, err)
	}
	if again := rec.appendLine(nil); string(again) != string(line)+"\n" {
		t.Fatalf("the quick way takes %q, tai writes %q", line, again)
	}
	if canon := rec.appendCanonical(nil); !bytes.Equal(canon, quick.canon) {
		t.Fatalf("of %q\n%q is hashed, want\n%q", line, quick.canon, canon)
	}
	if link.seq != rec.Seq || string(link.run) != rec.Run || string(link.event) != rec.Event || string(link.prev) != rec.Prev {
		t.Fatalf("of %q the link is %d %q %q %q", line, link.seq, link.run, link.event, link.prev)
	}
	return true
}

// TestAuditQuickWay: the quick way takes the lines of an ordinary run, and of edited ones none that the exact way would refuse.
func TestAuditQuickWay(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	text := auditMixedText(t, 300)
	taken, all := 0, 0
	for line := range strings.Lines(text) {
		all++
		if auditQuickAgrees(t, []byte(strings.TrimSuffix(line, "\n"))) {
			taken++
		} else if !strings.Contains(line, `\u`) {
			t.Errorf("not taken: %s", line)
		}
	}
	if taken < all*9/10 {
		t.Errorf("%d of %d lines are taken", taken, all)
	}
	taken = 0
	for range 20_000 {
		_, edited := auditEdit(random, text[:4000])
		for line := range strings.Lines(edited) {
			if random.IntN(4) == 0 && auditQuickAgrees(t, []byte(strings.TrimSuffix(line, "\n"))) {
				taken++
			}
		}
	}
	if taken < 20_000 {
		t.Errorf("only %d edited lines are taken", taken)
	}
}

func auditQuickSeeds() []string {
	const head, tail = `{"seq":1,"time":"t","run":"r","event":"e"`, `,"prev":"genesis","hash":"x"}`
	seeds := []string{"", "{", "{}", head, head + tail, `{"seq":01` + head[8:] + tail, `{"seq":-1` + head[8:] + tail, head + `,"call":""` + tail,
		head + tail + " ", head + tail + "}", head + `,"call":"a","call":"b"` + tail, "{\"seq\":1,\"time\":\"\x7f\"" + head[18:] + tail}
	for _, number := range []string{"0", "-0", "1", "-1", "01", "1.0", "1.5", "0.5", "1e3", "1E3", "999999999999999", "1000000000000001", "9007199254740993", "1.50", "0.001", "0.0000001", "1.", ".5", "1e400"} {
		seeds = append(seeds, head+`,"duration_ms":`+number+tail, head+`,"size":`+number+tail, head+`,"data":`+number+tail, head+`,"data":[`+number+`,{"a":`+number+`}]`+tail)
	}
	for _, value := range []string{`{}`, `[]`, `[[]]`, `{"a":1,"b":2}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"":1}`, `{"\ufb33":1,"😀":2}`, `{"😀":1,"ﬀ":2}`, `{"é":1,"z":2}`, `{"a":1,}`, `[1,]`, `{"a\"":1}`,
		`"\/"`, `"\u000f"`, `"\u000F"`, `"\u0041"`, `"\b\f\n\r\t\"\\"`, `"\u202e"`, "\"\u202e\"", `true`, `false`, `null`, `nul`, ` 1`, `"\`, `"`, strings.Repeat("[", 40) + strings.Repeat("]", 40)} {
		seeds = append(seeds, head+`,"data":`+value+tail, head+`,"subject":`+value+tail)
	}
	return seeds
}

func TestAuditQuickWaySeeds(t *testing.T) {
	t.Parallel()
	for _, line := range auditQuickSeeds() {
		auditQuickAgrees(t, []byte(line))
	}
}

func FuzzAuditQuickWay(f *testing.F) {
	for _, line := range auditQuickSeeds() {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) { auditQuickAgrees(t, line) })
}

// BenchmarkAuditMillion verifies a log of a million lines beside a loop that only hashes them, so that one run gives the ratio.
// It makes some 500 MB in the folder for temporary files, so it asks for TAI_BENCH_MILLION=1.
func BenchmarkAuditMillion(b *testing.B) {
	if os.Getenv("TAI_BENCH_MILLION") == "" {
		b.Skip("TAI_BENCH_MILLION is not set")
	}
	const lines = 1_000_000
	path := auditMixedLog(b, lines).path()
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			f, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			if rep, err := verifyAuditAt(f, 0); err != nil || rep.Lines != lines || rep.Bad != 0 {
				b.Fatal(err, rep)
			}
			f.Close()
		}
		b.ReportMetric(float64(b.N)*lines/b.Elapsed().Seconds(), "lines/s")
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		b.ReportMetric(float64(mem.Sys)/1e6, "MB-from-system")
	})
	b.Run("hash-alone", func(b *testing.B) {
		for b.Loop() {
			f, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			n, r := 0, bufio.NewReaderSize(f, auditBatchSize)
			for ; ; n++ {
				line, err := r.ReadSlice('\n')
				if err != nil {
					break
				}
				sha256.Sum256(line)
			}
			if f.Close(); n != lines {
				b.Fatal(n)
			}
		}
		b.ReportMetric(float64(b.N)*lines/b.Elapsed().Seconds(), "lines/s")
	})
}
