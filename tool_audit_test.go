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

// auditToolsBox is a toolbox with the audit tools over its own log and those of another folder.
func auditToolsBox(t *testing.T, now time.Time, verifier auditVerifier) (box *toolsBox, other string) {
	t.Helper()
	other = t.TempDir()
	root := t.TempDir()
	w, err := openWorkspace(root)
	if err != nil {
		t.Fatal(err)
	}
	return newToolsBox(t, modePrompt, nil, auditTools(w, []string{other, filepath.Join(other, "none")}, func() time.Time { return now }, verifier)...), other
}

// auditTestCalls writes a log of calls, a minute apart from begin on.
func auditTestCalls(t testing.TB, dir, origin string, begin time.Time, calls ...auditEvent) {
	t.Helper()
	at := begin
	log := newAuditLog(auditConfig{Dir: dir, Origin: origin, Now: func() time.Time { return at }})
	for _, c := range calls {
		c.Call = log.nextCall()
		asked := c
		asked.Event, asked.Outcome, asked.Rule, asked.Duration = auditCallRequested, "", "", 0
		list := []auditEvent{asked}
		c.Data = nil
		switch c.Outcome {
		case auditDenied:
			c.Event = auditCallBlocked
		case auditError:
			c.Event, c.Data = auditCallFailed, json.RawMessage(`{"error":"it broke"}`)
		case auditOpen:
			c.Event, c.Outcome = auditCallStarted, ""
		default:
			c.Event = auditCallCompleted
		}
		for _, ev := range append(list, c) {
			if err := log.record(ev); err != nil {
				t.Fatal(err)
			}
		}
		at = at.Add(time.Minute)
	}
	path := log.path()
	if err := errors.Join(log.close(), os.Chtimes(path, at, at)); err != nil {
		t.Fatal(err)
	}
}

func TestAuditQuery(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	box, dir := auditToolsBox(t, begin.Add(2*time.Hour), nil)
	auditTestCalls(t, dir, "http", begin,
		auditEvent{Kind: toolKind, Subject: "file_read", Outcome: auditOK, Size: 7, Data: json.RawMessage(`{"path":"a"}`), Duration: 1500 * time.Microsecond},
		auditEvent{Kind: auditKindMCP, Subject: "a/b/read", Outcome: auditError, Parent: "c-1"},
		auditEvent{Kind: toolKind, Subject: "file_write", Outcome: auditDenied, Rule: "mode read-only"})
	auditTestCalls(t, dir, "repl", begin.Add(time.Hour),
		auditEvent{Kind: toolKind, Subject: "file_read", Outcome: auditOK, Parent: "s-1/1"},
		auditEvent{Kind: "mcp-register", Subject: "a/b", Outcome: "enabled"},
		auditEvent{Kind: auditKindMCP, Subject: "c/read", Outcome: auditOpen, Data: json.RawMessage(`{"x":1}`)})
	type results struct {
		Calls []auditRow
		Left  int `json:"left_out"`
		More  bool
	}
	for _, tc := range []struct {
		args, want string
		left       int
		more       bool
	}{
		{`{}`, "out c/read open; own a/b enabled; own file_read ok; in file_write denied; out a/b/read error; in file_read ok", 0, false},
		{`{"limit":2}`, "out c/read open; own a/b enabled", 1, true},
		{`{"direction":"in"}`, "in file_write denied; in file_read ok", 0, false},
		{`{"direction":"out"}`, "out c/read open; out a/b/read error", 0, false},
		{`{"direction":"own","outcome":"ok"}`, "own a/b enabled; own file_read ok", 0, false},
		{`{"server":"a/b"}`, "own a/b enabled; out a/b/read error", 0, false},
		{`{"tool":"read"}`, "out c/read open; out a/b/read error", 0, false},
		{`{"tool":"mcp:a%2Fb/read"}`, "out a/b/read error", 0, false},
		{`{"tool":"mcp:file_read"}`, "", 0, false},
		{`{"tool":"file_read","outcome":"ok"}`, "own file_read ok; in file_read ok", 0, false},
		{`{"outcome":"denied"}`, "in file_write denied", 0, false},
		{`{"outcome":"open"}`, "out c/read open", 0, false},
		{`{"since":"90m"}`, "out c/read open; own a/b enabled; own file_read ok", 0, false},
		{`{"since":"2026-03-01T09:01:00Z","tool":"file_write"}`, "in file_write denied", 0, false},
		{`{"since":"1m"}`, "", 0, false},
	} {
		r := toolTestCall(t, box.toolbox, toolCall{}, "audit_query", tc.args)
		doc := toolTestDoc[results](t, r)
		var got []string
		for _, c := range doc.Calls {
			got = append(got, c.Direction+" "+c.Subject+" "+c.Outcome)
		}
		if strings.Join(got, "; ") != tc.want || doc.Left != tc.left || doc.More != tc.more {
			t.Errorf("%s: %q, %d left, %v; want %q, %d, %v", tc.args, got, doc.Left, doc.More, tc.want, tc.left, tc.more)
		}
	}
	r := toolTestCall(t, box.toolbox, toolCall{}, "audit_query", `{"direction":"in"}`)
	row := toolTestDoc[results](t, r).Calls[1]
	if want := (auditRow{Time: "2026-03-01T09:00:00Z", Run: row.Run, Call: "c-1", Direction: "in", Kind: toolKind, Subject: "file_read", Outcome: "ok", Duration: 1.5, Asked: 7, Bytes: 7, Arguments: json.RawMessage(`{"path":"a"}`)}); fmt.Sprint(row) != fmt.Sprint(want) {
		t.Errorf("%+v", row)
	}
	if !strings.Contains(r.Text, "  in  tool-call file_write  denied by mode read-only  ") || !strings.HasSuffix(r.Text, `1.5 ms  7 bytes  {"path":"a"}`+"\n") {
		t.Error(r.Text)
	}
	for _, bad := range [][2]string{{`{"since":"yesterday"}`, `since "yesterday" is no age`}, {`{"since":""}`, "since"}, {`{"direction":"up"}`, "direction"}, {`{"server":""}`, "server"}, {`{"tool":""}`, "tool"}, {`{"outcome":"fine"}`, "outcome"}, {`{"limit":0}`, "limit"}, {`{"limit":201}`, "limit"}, {`{"x":1}`, "x"}} {
		toolTestCall(t, box.toolbox, toolCall{}, "audit_query", bad[0], bad[1])
	}
}

// Of logs that are too long the end is read, and it is said what was not; a log that is broken gives what stands before.
func TestAuditScanBounds(t *testing.T) {
	t.Parallel()
	dir, begin := t.TempDir(), time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	var calls []auditEvent
	for i := range 50 {
		calls = append(calls, auditEvent{Kind: toolKind, Subject: fmt.Sprint("t", i), Outcome: auditOK})
	}
	auditTestCalls(t, dir, "cli", begin, calls...)
	logs, err := auditLogs([]string{dir})
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	var seen []string
	scan := auditScan{Each: func(c auditCall) { seen = append(seen, c.Subject) }}
	size, err := scan.readLog(t.Context(), logs[0], 3000)
	if err != nil || size != logs[0].Size || len(seen) < 3 || len(seen) > 10 || seen[len(seen)-1] != "t49" {
		t.Errorf("%d of %d bytes, %q, %v", size, logs[0].Size, seen, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cli-broken.jsonl"), []byte("{\"seq\":1,\"call\":\"c-1\",\"time\":\"x\"}\nnothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	seen = nil
	got, err := auditScan{Dirs: []string{dir}, Each: scan.Each}.run(t.Context())
	if err != nil || got.Logs != 2 || got.Faults != 1 || len(seen) != 51 || !strings.Contains(got.rest(), "1 log could not be read") {
		t.Errorf("%+v, %d calls, %v", got, len(seen), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (auditScan{Dirs: []string{dir}, Each: scan.Each}).run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if rest := (auditSeen{LeftLogs: 2, LeftBytes: 5}).rest(); !strings.HasPrefix(rest, "5 bytes of older lines were not read (2 logs not opened)") {
		t.Error(rest)
	}
}

// audit_verify is tai audit verify: same finding, for one log and for all, and the first bad line is named.
func TestAuditVerifyTool(t *testing.T) {
	r := newCLIRig(t)
	r.tai("tools", "call", "memory_search").ok()
	r.tai("secret", "set", "X", "--from", "-").fails(exitUsage)
	r.tai("tools", "call", "memory_save", "text=x").ok()
	verify := func(args string) (doc auditVerdicts) {
		t.Helper()
		out := cliJSON[struct{ StructuredContent auditVerdicts }](r.tai("--json", "--yolo", "tools", "call", "audit_verify", args))
		return out.StructuredContent
	}
	logs, err := filepath.Glob(filepath.Join(r.home, "runs", "*"+auditExtension))
	if err != nil || len(logs) != 2 {
		t.Fatal(logs, err)
	}
	slices.Sort(logs)
	if all := verify(`{}`); all.Checked != 3 || all.Good != 3 || len(all.Logs) != 0 {
		t.Errorf("%+v", all)
	}
	text, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer os.WriteFile(logs[0], text, 0o600) // the rig verifies all at its end
	run := strings.TrimSuffix(filepath.Base(logs[0]), auditExtension)
	if one := verify(`{"log":"` + run + `"}`); one.Checked != 1 || one.Good != 1 || len(one.Logs) != 1 || one.Logs[0].Run != run || one.Logs[0].Checked != auditByVault {
		t.Errorf("%+v", one)
	}
	if err := os.WriteFile(logs[0], []byte(strings.Replace(string(text), "tool_call_started", "tool_call_Started", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	all := verify(`{}`)
	if all.Tampered != 1 || len(all.Logs) != 1 || all.Logs[0].Bad != 3 || all.Logs[0].Path != logs[0] {
		t.Errorf("%+v", all)
	}
	var plain auditFinding
	if out := r.tai("audit", "verify", run, "--ci"); json.Unmarshal([]byte(out.out), &plain) != nil || out.code != 1 || plain.Bad != 3 {
		t.Errorf("%+v", out)
	}
	for _, word := range []string{run, run[:len(run)-2], logs[0]} {
		if one := verify(`{"log":"` + word + `"}`); one.Tampered != 1 || len(one.Logs) != 1 || one.Logs[0].Reason != plain.Reason {
			t.Errorf("%s: %+v", word, one)
		}
	}
	r.tai("tools", "call", "audit_verify", "log="+logs[0]).fails(exitRefused, "outside the root")
	if out := r.tai("--json", "tools", "call", "audit_verify", "log=cli-0000000000000000"); out.code != exitFailed || !strings.Contains(out.out, "log: no such run or file") {
		t.Errorf("%+v", out)
	}
	if out := r.tai("tools", "call", "audit_verify").ok(); !strings.Contains(out, "tampered with at line 3: ") || !strings.Contains(out, "1 tampered with, 0 unreadable\n") {
		t.Error(out)
	}
}

// A vault that cannot be opened leaves the chains of all logs to be checked, and it is said; tai audit verify --all goes on likewise.
func TestAuditVerifyToolWithoutVault(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a := appOver(t, "linux")
	if err := errors.Join(os.MkdirAll(a.home, 0o700), os.WriteFile(filepath.Join(a.home, vaultFile), bytes.Repeat([]byte("tea"), 9000), 0o600)); err != nil {
		t.Fatal(err)
	}
	auditTestCalls(t, filepath.Join(a.home, "runs"), "cli", now, auditEvent{Kind: toolKind, Subject: "file_read", Outcome: auditOK})
	box, _ := auditToolsBox(t, now, a)
	r := toolTestCall(t, box.toolbox, toolCall{}, "audit_verify", `{}`)
	doc := toolTestDoc[auditVerdicts](t, r)
	if doc.Checked != 1 || doc.Good != 1 || !strings.Contains(doc.Notice, errVaultForeign.Error()) || !strings.HasPrefix(r.Text, "notice: logs are checked by their chains alone") {
		t.Errorf("%+v, %s", doc, r.Text)
	}
}

// usageScript reports other tokens with each reply.
type usageScript struct {
	fakeScript
	told []chatUsage
}

func (u *usageScript) complete(ctx context.Context, r chatRequest, onDelta func(chatDelta)) (chatReply, error) {
	reply, err := u.fakeScript.complete(ctx, r, onDelta)
	n := len(u.told) + 1
	reply.Usage = chatUsage{Input: 1000*n + 7, Output: 10*n + 3, Cached: 100 * n}
	u.told = append(u.told, reply.Usage)
	return reply, err
}

// The sums of a report are what the models have reported to the agent, to the token, and its calls those that were made.
func TestUsageReport(t *testing.T) {
	t.Parallel()
	look := toolsPlain("look", toolHints{ReadOnly: true}, toolsText("seen"))
	fail := toolsPlain("fail", toolHints{ReadOnly: true}, func(context.Context, toolCall) (toolResult, error) { return toolResult{}, errors.New("no") })
	rig := newAgentRig(t, modePrompt, []tool{look, fail, toolsPlain("write", toolHints{Destructive: true}, toolsText("done"))})
	source := usageSource{Vault: func(context.Context) (*vault, error) { return rig.box.vault, nil }, Dirs: []string{filepath.Join(rig.box.dir, "runs")}, Now: time.Now}
	sums, sessions := map[string]chatUsage{}, map[string]chatUsage{}
	for _, model := range []string{"m-1", "m-2", "m-1"} {
		script := &usageScript{fakeScript: fakeScript{steps: []func(chatRequest) (chatReply, error){
			agentWants(chatToolCall{ID: "1", Name: "look"}, chatToolCall{ID: "2", Name: "fail"}, chatToolCall{ID: "3", Name: "write"}), agentSays("done")}}}
		a := newAgent(agentConfig{Model: script, ModelName: model, Tools: rig.box.toolbox, Store: rig.box.vault, Sink: &fakeSink{stored: func() int { return 0 }}, Profile: "default", Origin: "agent",
			Usage: func(ctx context.Context, session string, u chatUsage, took time.Duration) error {
				return rig.box.vault.putUsage(ctx, usageRow{Session: session, Model: model, Input: u.Input, Output: u.Output, Cached: u.Cached, Duration: took})
			}})
		if _, err := a.runTurn(t.Context(), "go on with "+model); err != nil {
			t.Fatal(err)
		}
		if len(script.told) != 2 {
			t.Fatalf("%d replies", len(script.told))
		}
		for _, u := range script.told {
			sums[model], sessions[a.session] = sums[model].plus(u), sessions[a.session].plus(u)
		}
	}
	for by, want := range map[string]map[string]chatUsage{"model": sums, "session": sessions} {
		r, err := source.report(t.Context(), by, "1h")
		if err != nil || len(r.Rows) != len(want) {
			t.Fatalf("%s: %+v, %v", by, r, err)
		}
		total := chatUsage{}
		for _, l := range r.Rows {
			if got := (chatUsage{Input: int(l.Input), Output: int(l.Output), Cached: int(l.Cached)}); got != want[l.Name] {
				t.Errorf("%s %s: %+v, want %+v", by, l.Name, got, want[l.Name])
			}
			total = total.plus(want[l.Name])
		}
		if r.Total.Calls != 6 || (chatUsage{Input: int(r.Total.Input), Output: int(r.Total.Output), Cached: int(r.Total.Cached)}) != total || !strings.Contains(r.text(), "price not known") {
			t.Errorf("%s: total %+v, want %+v", by, r.Total, total)
		}
		if by == "session" && !strings.HasPrefix(r.Rows[0].Title, "go on with m-") {
			t.Errorf("title %q", r.Rows[0].Title)
		}
	}
	r, err := source.report(t.Context(), "tool", "")
	got := ""
	for _, l := range append(r.Rows, r.Total) {
		got += fmt.Sprintf("%s %d %d %d; ", l.Name, l.Calls, l.Failed, l.Refused)
	}
	if want := "fail 3 3 0; look 3 0 0; write 3 0 3; total 9 3 3; "; err != nil || got != want || r.Rows[1].Bytes != 12 {
		t.Errorf("%q, %+v, %v; want %q", got, r.Rows, err, want)
	}
	if r, err := source.report(t.Context(), "server", ""); err != nil || len(r.Rows) != 1 || r.Rows[0].Name != usageNative || r.Rows[0].Calls != 9 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := source.report(t.Context(), "", "2100-01-01"); err != nil || len(r.Rows) != 0 || r.By != usageByModel || !strings.HasPrefix(r.text(), "nothing was used since 2100-01-01T00:00:00Z\n") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestUsageTool(t *testing.T) {
	t.Parallel()
	var box *toolsBox
	dir := t.TempDir()
	box = newToolsBox(t, modeReadOnly, nil, usageTools(usageSource{Vault: func(context.Context) (*vault, error) { return box.vault, nil }, Dirs: []string{dir}, Now: time.Now})...)
	for i := range usageRowsMax + 2 {
		if err := box.vault.putUsage(t.Context(), usageRow{Session: "s-1", Model: fmt.Sprint("m", i), Input: i}); err != nil {
			t.Fatal(err)
		}
	}
	auditTestCalls(t, dir, "cli", time.Now(), auditEvent{Kind: auditKindMCP, Subject: "a/b/read", Outcome: auditOK, Size: 5}, auditEvent{Kind: auditKindMCP, Subject: "a/b/read", Outcome: auditOpen}, auditEvent{Kind: "mcp-register", Subject: "a/b", Outcome: "enabled"})
	type line struct {
		Name         string
		Calls, Input int
	}
	doc := toolTestDoc[struct {
		Rows    []line
		Total   line
		LeftOut int `json:"left_out"`
	}](t, toolTestCall(t, box.toolbox, toolCall{}, "usage_report", `{}`))
	if len(doc.Rows) != usageRowsMax || doc.LeftOut != 2 || doc.Total.Calls != usageRowsMax+2 || doc.Total.Input != (usageRowsMax+1)*(usageRowsMax+2)/2 || doc.Rows[0].Name != fmt.Sprint("m", usageRowsMax+1) {
		t.Errorf("%d rows, %+v", len(doc.Rows), doc.Total)
	}
	for by, want := range map[string]string{"server": "a/b", "tool": "mcp:a%2Fb/read"} {
		r := toolTestCall(t, box.toolbox, toolCall{}, "usage_report", `{"by":"`+by+`","since":"1d"}`)
		if !strings.HasPrefix(r.Text, want+"  2 calls  0 s  0 failed  0 refused  1 without an end  5 bytes\ntotal  2 calls") || strings.Contains(r.Text, "price") {
			t.Error(r.Text)
		}
	}
	for _, bad := range [][2]string{{`{"by":"day"}`, "by"}, {`{"since":"soon"}`, `since "soon" is no age`}, {`{"since":""}`, "since"}, {`{"x":1}`, "x"}} {
		toolTestCall(t, box.toolbox, toolCall{}, "usage_report", bad[0], bad[1])
	}
}

func TestUsageCommand(t *testing.T) {
	r := newCLIRig(t)
	if out := r.tai("usage").ok(); !strings.HasPrefix(out, "nothing was used\n"+usageNoPrice) {
		t.Error(out)
	}
	r.tai("tools", "call", "memory_search").ok()
	if out := r.tai("usage", "--by", "tool", "--since", "1h").ok(); !strings.HasPrefix(out, "memory_search  1 call  ") {
		t.Error(out)
	}
	r.tai("usage", "--by", "day").fails(exitUsage, "--by model, session, server or tool")
	r.tai("usage", "--since", "soon").fails(exitUsage, "--since", "soon")
}
