package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// reportPageOf makes the page of a log's text.
func reportPageOf(t testing.TB, text string) (*reportPage, string) {
	t.Helper()
	rep, err := verifyAuditAt(strings.NewReader(text), 0)
	if err != nil && !rep.Unreadable {
		t.Fatal(err)
	}
	p := &reportPage{finding: judgeAudit(rep, "", nil, ""), name: "a log", made: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)}
	if p.run, err = readReport(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return p, string(p.html())
}

var (
	reportTag  = regexp.MustCompile(`^<(/?)([a-zA-Z][a-z0-9]*)((?: [a-zA-Z0-9:-]+="[^"<>]*")*) ?(/?)>`)
	reportAttr = regexp.MustCompile(` ([a-zA-Z0-9:-]+)="([^"]*)"`)
)

// reportTags walks a page as a strict reader of HTML would and gives its tags with the names of their attributes. It fails where a
// tag is not closed, an attribute not quoted, a reference leads anywhere, an id stands twice, or something hidden stands in the text.
func reportTags(t testing.TB, page string) []string {
	t.Helper()
	var tags, open []string
	ids, seen := map[string]bool{}, map[string][]string{}
	void := []string{"meta", "link"}
	rest, ok := strings.CutPrefix(page, "<!doctype html>\n")
	if !ok || !utf8.ValidString(page) {
		t.Fatalf("the page begins with %.40q", page)
	}
	for rest != "" {
		at := strings.IndexByte(rest, '<')
		if at < 0 {
			at = len(rest)
		}
		reportPlain(t, rest[:at], len(open) > 0 && open[len(open)-1] == "style")
		if rest = rest[at:]; rest == "" {
			break
		}
		tag := rest[:strings.IndexByte(rest, '>')+1]
		m := seen[tag]
		if m == nil {
			if m = reportTag.FindStringSubmatch(tag); m == nil {
				t.Fatalf("no tag: %.200q", rest)
			}
			seen[tag] = m
		}
		rest = rest[len(m[0]):]
		name := m[2]
		if m[1] == "/" {
			if len(open) == 0 || open[len(open)-1] != name {
				t.Fatalf("</%s> closes %v", name, open)
			}
			open = open[:len(open)-1]
			continue
		}
		shape := name
		for _, a := range reportAttr.FindAllStringSubmatch(m[3], -1) {
			shape += " " + a[1]
			key, value := strings.ToLower(a[1]), strings.ToLower(a[2])
			switch {
			case strings.HasPrefix(key, "on") || key == "style" || key == "src" || key == "srcset" || key == "action":
				t.Errorf("attribute %s in %s", key, m[0])
			case key == "href" && value != "data:,":
				t.Errorf("a reference to %s", value)
			case strings.Contains(value, "url(") && value != "url(#hatch)" || strings.Contains(value, "javascript:"):
				t.Errorf("a reference in %s", m[0])
			case key == "id" && ids[value]:
				t.Errorf("id %s stands twice", value)
			case key == "id":
				ids[value] = true
			}
			reportPlain(t, a[2], key == "content") // the policy, which is quoted
		}
		if tags = append(tags, shape); slices.Contains([]string{"script", "iframe", "object", "embed", "img", "base", "form", "image", "foreignobject", "animate", "set", "use"}, strings.ToLower(name)) {
			t.Errorf("a tag %s", m[0])
		}
		if m[4] == "" && !slices.Contains(void, name) {
			open = append(open, name)
		}
	}
	if len(open) > 0 {
		t.Errorf("never closed: %v", open)
	}
	return tags
}

// reportPlain wants text with nothing that HTML or a screen acts on.
func reportPlain(t testing.TB, text string, style bool) {
	t.Helper()
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || hiddenRune(r) || !style && (r == '>' || r == '"' || r == '\'') {
			t.Fatalf("%U stands in %.200q", r, text)
		}
	}
	for i := range len(text) {
		if text[i] == '&' && !style && !slices.ContainsFunc([]string{"amp;", "lt;", "gt;", "#34;", "#39;"}, func(e string) bool { return strings.HasPrefix(text[i+1:], e) }) {
			t.Fatalf("%.8q stands in %.200q", text[i:], text)
		}
	}
}

// reportSample is a log with a call of every kind; put makes each text of it.
func reportSample(t testing.TB, put func(string) string) string {
	t.Helper()
	a := auditTestLog(t)
	clock := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	a.cfg.Now = func() time.Time { clock = clock.Add(40 * time.Millisecond); return clock }
	data := func(name, value string) json.RawMessage {
		b, err := json.Marshal(map[string]string{name: value})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a.cfg.Data = data("version", put("0.1.0"))
	call := func(id, parent, kind, subject string, events ...auditEvent) {
		auditTestRecord(t, a, auditEvent{Event: auditCallRequested, Call: id, Parent: parent, Kind: kind, Subject: put(subject), Digest: put("digest"), Size: 100, Data: data(put("path"), put("value"))})
		for _, ev := range events {
			ev.Call, ev.Parent, ev.Kind, ev.Subject = id, parent, kind, put(subject)
			auditTestRecord(t, a, ev)
		}
	}
	started, done := auditEvent{Event: auditCallStarted, Rule: put("mode")}, auditEvent{Event: auditCallCompleted, Outcome: auditOK, Rule: put("mode"), Duration: 20 * time.Millisecond, Size: 3000}
	call("c-1", "turn-1", "tool-call", "file_read", started, done)
	call("c-2", put("turn-1"), auditKindMCP, "files/read", started)
	call(put("c-3"), "c-2", auditKindMCP, "files/read", started, auditEvent{Event: auditCallFailed, Outcome: auditError, Data: data("error", put("no such file"))})
	auditTestRecord(t, a, auditEvent{Event: auditCallCompleted, Call: "c-2", Outcome: auditOK, Duration: 1500 * time.Millisecond, Size: 7})
	call("c-4", "", "tool-call", "shell_run", auditEvent{Event: auditCallBlocked, Outcome: auditDenied, Rule: put("read-only")})
	call("c-5", "c-2", auditKindMCP, "tickets/search", auditEvent{Event: auditCallBlocked, Outcome: auditError, Rule: "not reachable"})
	call("c-6", "", put("mcp-register"), "new", started, auditEvent{Event: auditCallCompleted, Outcome: put("login"), Duration: time.Millisecond})
	call("c-7", "", "tool-call", "shell_run", started)
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(auditTestLines(t, a), "") + "\n"
}

// TestReportPage: the page is well formed, alone and whole, and its sums are those of a plain count.
func TestReportPage(t *testing.T) {
	t.Parallel()
	p, page := reportPageOf(t, reportSample(t, func(s string) string { return s }))
	reportTags(t, page)
	for _, want := range []string{
		`<html lang="en">`, `<title>Run cli-`, `<dt>calls</dt><dd>7</dd>`, `<dt>failed</dt><dd>2</dd>`, `<dt>refused</dt><dd>1</dd>`, `<dt>not ended</dt><dd>1</dd>`,
		`<dt>time in tools</dt><dd>1.6 s</dd>`, `<dt>bytes sent</dt><dd>700 B</dd>`, `<dt>bytes received</dt><dd>3.0 kB</dd>`,
		"2 done, 2 failed", "<bdi>files/read</bdi></th><td class=\"n\">2</td>", "<bdi>tai itself</bdi></th><td class=\"n\">4</td>", "no such file", "chain verified", "its chain alone", p.finding.Head,
		`<bdi>read-only</bdi></th><td class="n">1</td><td><bdi>shell_run</bdi>`, `, <bdi>login</bdi>`, "&#34;version&#34;: &#34;0.1.0&#34;",
	} {
		if want = strings.Replace(want, "2 done, 2 failed", "3 done, 2 failed, 1 refused, 1 not ended", 1); !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if n := strings.Count(page, `<tr id="line-`); n != 7 {
		t.Errorf("%d rows of calls, want 7", n)
	}
	sum := sha256.Sum256([]byte(reportStyle))
	if !strings.Contains(page, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") || strings.Count(page, "<style>") != 1 {
		t.Error("the policy does not name the style")
	}
	for _, bad := range []string{"url(", "@import", "http:", "https:", "expression"} {
		if strings.Contains(reportStyle, bad) {
			t.Errorf("the style holds %s", bad)
		}
	}
	for _, want := range []string{"prefers-color-scheme:dark", "@media print", "max-width:600px", "tabular-nums"} {
		if !strings.Contains(reportStyle, want) {
			t.Errorf("the style has no %s", want)
		}
	}
}

// TestReportUntrusted: whatever the texts of a log are, the page has the tags that it has with harmless ones.
func TestReportUntrusted(t *testing.T) {
	t.Parallel()
	n := 0
	_, page := reportPageOf(t, reportSample(t, func(s string) string { n++; return s }))
	plain := reportTags(t, page)
	for _, evil := range []string{
		"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "' onmouseover='x", "]]></style><script>", "</title></svg></style></pre></details>", "&lt;b&gt;&amp;&#60;",
		"<!--", "-->", "%s%d%!s(MISSING)%", "\u202e\u2066txt.exe\u2069", "\x00\x1b[31m\r\n\t\x7f\u009b", "שלום עולם مرحبا", "\ufeff\u200b\u00ad\U000e0041", "javascript:alert(1)", "url(http://example.org)", "\xff\xfe", "<\u0338 ＜script＞",
		strings.Repeat("<b>", 120), strings.Repeat("\u202e", 120), strings.Repeat("x", 600),
	} {
		i := 0
		text := reportSample(t, func(s string) string { i++; return s + evil })
		_, page := reportPageOf(t, text)
		if got := reportTags(t, page); !slices.Equal(got, plain) || i != n {
			t.Errorf("%.40q: %d tags, want %d as with harmless text", evil, len(got), len(plain))
		}
	}
}

// TestReportDamaged: of any log that can be opened there is a page, and the page of a bad one says so at its top.
func TestReportDamaged(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 9))
	text := reportSample(t, func(s string) string { return s })
	said := 0
	for range 200 / raceScale {
		what, edited := auditEdit(random, text)
		p, page := reportPageOf(t, edited)
		reportTags(t, page)
		if top, _, _ := strings.Cut(page, "Time line"); p.finding.Tampered {
			said++
			if !strings.Contains(top, `<section class="banner bad" role="alert"><h2>This log was tampered with</h2>`) || !strings.Contains(top, fmt.Sprintf("Line %d: ", p.finding.Bad)) {
				t.Fatalf("%s: %+v, and the top of the page says %.400s", what, p.finding, top)
			}
		}
	}
	if said < 100/raceScale {
		t.Errorf("only %d of 200 edits left a log that was tampered with", said)
	}
	for name, text := range map[string]string{"nothing": "", "a word": "hello\n", "half a line": `{"seq":1,"ti`, "not even text": "\xff\x00\n\n\n",
		"strange events": `{"seq":7,"time":"yesterday","run":"r","event":"x","call":"c","hash":"h"}` + "\n" + `{"seq":-9,"time":"0001-01-01T00:00:00.000000Z","event":"tool_call_completed","call":"d","duration_ms":-1,"size":-5}` + "\n" +
			`{"seq":7,"time":"9999-12-31T23:59:59.999999Z","event":"tool_call_requested","call":"c","parent":"c"}` + "\n"} {
		_, page := reportPageOf(t, text)
		if reportTags(t, page); !strings.Contains(page, "banner") {
			t.Errorf("%s: the page says nothing of it", name)
		}
	}
}

// TestReportLargeLog: the page of a log of 30,000 lines is bounded, counts all and lists what did not go well before the slowest.
func TestReportLargeLog(t *testing.T) {
	t.Parallel()
	text := auditMixedText(t, 30_000)
	p, page := reportPageOf(t, text)
	reportTags(t, page)
	if len(page) > 2<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
	count := func(event string) int { return strings.Count(text, `"event":"`+event+`"`) }
	for name, n := range map[string]int{"calls": count(auditCallRequested), "failed": count(auditCallFailed), "refused": count(auditCallBlocked)} {
		if want := "<dt>" + name + "</dt><dd>" + reportCount(n) + "</dd>"; n <= reportTroubles || !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	rows, all := p.run.listed()
	if all || len(rows) != reportRowsMax || strings.Count(page, `<tr id="line-`) != reportRowsMax {
		t.Errorf("%d rows, want %d", len(rows), reportRowsMax)
	}
	slowest := 0.0
	for _, c := range p.run.calls {
		slowest = max(slowest, c.took)
	}
	for i, c := range rows {
		if (c.state != reportOK) != (i < reportTroubles) && i < reportTroubles || i == reportTroubles && c.took != slowest || i > reportTroubles && c.took > rows[i-1].took {
			t.Fatalf("row %d: %s after %g ms", i, c.state, c.took)
		}
		if c.detail == nil || len(c.detail.args) == 0 {
			t.Fatalf("row %d has no arguments", i)
		}
	}
	if n := strings.Count(page, "<rect"); n > 6000 {
		t.Errorf("%d shapes are drawn", n)
	}
}

// TestReportBoundedData: however much the lines hold, the page has its bound and says what it leaves out.
func TestReportBoundedData(t *testing.T) {
	t.Parallel()
	a := auditTestLog(t)
	data := json.RawMessage(`"` + strings.Repeat("<\u202e", (auditDataMax-10)/4) + `"`)
	long := strings.Repeat("<\u202e", 200)
	for range reportRowsMax {
		auditTestRecord(t, a, auditEvent{Event: auditCallRequested, Call: a.nextCall(), Subject: long, Parent: long, Kind: long, Rule: long, Digest: long, Data: data})
	}
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	_, page := reportPageOf(t, strings.Join(auditTestLines(t, a), "")+"\n")
	reportTags(t, page)
	if len(page) > 12<<20 || !strings.Contains(page, "left out of this page") {
		t.Errorf("the page has %d bytes", len(page))
	}
}

func TestReportLanes(t *testing.T) {
	t.Parallel()
	r := &reportRun{ended: 1_000_000}
	call := func(id, parent string, from, to int64) {
		r.calls = append(r.calls, &reportCall{id: id, parent: parent, caused: parent != "", subject: "t", begin: from, start: from, end: to})
	}
	call("a", "", 0, 500_000)
	call("b", "", 100_000, 200_000)
	call("c", "a", 300_000, 400_000)
	call("d", "c", 310_000, 390_000)
	call("e", "", 700_000, 800_000)
	call("f", "", 999_999, 1_000_000)
	bars, lanes := r.lanes(reportScale{span: r.ended, width: 1000})
	var got []int
	for _, b := range bars {
		got = append(got, b.lane)
		if b.labelAt < 0 || b.labelAt > reportChartWidth || b.to <= b.from {
			t.Errorf("%s: %+v", b.c.id, b)
		}
	}
	if want := []int{0, 1, 1, 2, 0, 0}; !slices.Equal(got, want) || lanes != 3 {
		t.Errorf("lanes %v of %d, want %v of 3", got, lanes, want)
	}
	for range reportLanesMax {
		call("x", "", 0, 1_000_000)
	}
	if bars, _ := r.lanes(reportScale{span: r.ended, width: 1000}); bars != nil {
		t.Errorf("%d calls at once are drawn one by one", reportLanesMax)
	}
}

func TestReportNumbers(t *testing.T) {
	t.Parallel()
	g := reportGroup{}
	for i := range 20 {
		g.took = append(g.took, float64(i+1))
	}
	if a, b, c := g.rank(0.5), g.rank(0.95), g.rank(1); a != 10 || b != 19 || c != 20 {
		t.Errorf("median %g, p95 %g, longest %g of 1 to 20, want 10 19 20", a, b, c)
	}
	if one := (&reportGroup{took: []float64{7}}); one.rank(0.5) != 7 || one.rank(0.95) != 7 {
		t.Error("one call has no median of its own")
	}
	for ms, want := range map[float64]string{0: "0 ms", 0.04: "0 ms", 0.34: "0.3 ms", 9.96: "10 ms", 12.4: "12 ms", 999.4: "999 ms", 999.6: "1.0 s", 59_900: "59.9 s", 61_000: "1 min 01 s", 7_260_000: "2 h 01 min", 1e300: "2562047 h 47 min"} {
		if got := reportSpan(ms); got != want {
			t.Errorf("reportSpan(%g) = %s, want %s", ms, got, want)
		}
	}
	for _, tc := range []struct {
		at, step int64
		want     string
	}{{0, 1000, "0"}, {1_234_567, 1000, "+1.234 s"}, {2_000_000, 1_000_000, "+2 s"}, {500_000, 100_000, "+0.5 s"}, {250, 10, "0.25 ms"}, {59_999_999, 100_000, "+59.9 s"}, {61_500_000, 1_000_000, "+01:01"}, {3_600_000_000 + 65_250_000, 1000, "+1:01:05.250"}} {
		if got := reportOffset(tc.at, tc.step); got != tc.want {
			t.Errorf("reportOffset(%d, %d) = %s, want %s", tc.at, tc.step, got, tc.want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 12_345: "12 kB", 999_600: "1.0 MB", 5_000_000_000: "5.0 GB", 1 << 62: "4611686 TB"} {
		if got := reportBytes(n); got != want {
			t.Errorf("reportBytes(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234"} {
		if got := reportCount(n); got != want {
			t.Errorf("reportCount(%d) = %s, want %s", n, got, want)
		}
	}
	for _, span := range []int64{1, 7, 999, 123_456, 1_000_000, 90_000_000, 86_400_000_000, 1 << 62} {
		if step := reportTicks(span); step <= 0 || span/step > 9 {
			t.Errorf("reportTicks(%d) = %d", span, step)
		}
	}
}

// TestCLIReport: where the page goes, and which exit code a log that was tampered with has (AUD-12).
func TestCLIReport(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.addFake("fake", fakeStdio{})
	r.tai("mcp", "call", "fake", "add", "a=1", "b=2").ok()
	id := cliJSON[struct{ Runs []auditRunInfo }](r.tai("audit", "list", "--json")).Runs[0].Run
	page := r.tai("audit", "report", id).ok()
	reportTags(t, page)
	if !strings.Contains(page, "<bdi>fake/add</bdi>") || !strings.Contains(page, "chain and head verified") || !strings.Contains(page, "sha256:") {
		t.Errorf("%.3000s", page)
	}
	name := filepath.Join(r.dir, "out.html")
	r.tai("audit", "report", id, "-o", "out.html").outHas("report of " + id + " in out.html")
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	if b, err := os.ReadFile(name); err != nil || !strings.HasPrefix(string(b), "<!doctype html>") {
		t.Errorf("%v %.60s", err, b)
	}
	r.tai("audit", "report", id, "-o", "out.html").fails(exitUsage, "is there already", "hint: --force replaces it")
	doc := cliJSON[auditReportDoc](r.tai("audit", "report", id, "-o", "out.html", "--force", "--json"))
	if info, err = os.Stat(name); err != nil || doc.File != name || doc.Run != id || int64(doc.Bytes) != info.Size() || doc.Calls != 1 || doc.Tampered || info.Mode().Perm() != 0o600 {
		t.Errorf("%+v of %v, %v", doc, info, err)
	}
	if left, err := filepath.Glob(filepath.Join(r.dir, ".tai-report-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	r.tai("audit", "report", id, "-o", r.dir, "--force").fails(exitFailed, "no regular file")
	r.tai("audit", "report", id, "--json").failsJSON(exitUsage)
	r.tai("audit", "report", id, "--force").fails(exitUsage, "no file to replace")
	r.tai("audit", "report", "none").fails(exitUsage, "no such run")

	log := filepath.Join(r.home, "runs", id+auditExtension)
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	put := func(text []byte) {
		if err := os.WriteFile(filepath.Join(r.dir, "copy.jsonl"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(bytes.Replace(whole, []byte("fake/add"), []byte("fake/bad"), 1))
	bad := r.tai("audit", "report", "copy.jsonl")
	if bad.code != exitFailed || !strings.Contains(bad.out, "This log was tampered with") || !strings.Contains(bad.out, ", unproven") || !strings.Contains(bad.err, "tampered with at line 2") {
		t.Errorf("exit %d: %.300s %s", bad.code, bad.out, bad.err)
	}
	if bad = r.tai("audit", "report", "copy.jsonl", "-o", "bad.html"); bad.code != exitFailed {
		t.Errorf("exit %d: %s", bad.code, bad.err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "bad.html")); err != nil {
		t.Error(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	put(bytes.Join(lines[:3], nil)) // a tail cut off cleanly: the head knows
	if cut := r.tai("audit", "report", "copy.jsonl"); cut.code != exitFailed || !strings.Contains(cut.out, "This log was tampered with") {
		t.Errorf("cut: exit %d: %.300s", cut.code, cut.out)
	}
	put(nil)
	r.tai("audit", "report", "copy.jsonl").fails(exitUsage, "cannot be read")
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	r.tai("audit", "report", id).fails(exitFailed)
	if _, err := os.Stat(log); err == nil || !os.IsNotExist(err) {
		t.Error("the log is back")
	}
}
