package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const toolsSchema = `{"type":"object","additionalProperties":false,"properties":{"n":{"type":"integer","description":"A number."},"path":{"type":"string","description":"A path."}}}`

// toolsBox is a toolbox over a fresh vault and run log.
type toolsBox struct {
	*toolbox
	vault *vault
	dir   string
	log   *auditLog
}

func newToolsBox(t *testing.T, mode approvalMode, bridge toolSource, tools ...tool) *toolsBox {
	t.Helper()
	dir := t.TempDir()
	v, err := openVault(t.Context(), filepath.Join(dir, "home"), vaultWrite, time.Now, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	log := newAuditLog(auditConfig{Dir: filepath.Join(dir, "runs"), Origin: "test", Now: time.Now})
	t.Cleanup(func() {
		if err := errors.Join(log.close(), v.close()); err != nil {
			t.Error(err)
		}
	})
	redact := newRedactor([]namedSecret{{Name: "TOKEN", Value: "hush-hush-1"}}).text
	open := func(context.Context) (*vault, error) { return v, nil }
	box, err := newToolbox(tools, newPolicy(policyConfig{Mode: mode}), log, open, redact, bridge)
	if err != nil {
		t.Fatal(err)
	}
	return &toolsBox{box, v, dir, log}
}

// events gives event and rule of each line of the run log about calls.
func (b *toolsBox) events(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(b.log.path())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		var ev struct{ Event, Subject, Outcome string }
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(ev.Event, "tool_call_") {
			out = append(out, strings.TrimPrefix(ev.Event, "tool_call_"))
		}
	}
	return out
}

func toolsPlain(name string, hints toolHints, run func(ctx context.Context, c toolCall) (toolResult, error)) tool {
	return tool{Name: name, Family: "test", Description: "Does it.", Schema: json.RawMessage(toolsSchema), Hints: hints, run: run}
}

func toolsText(text string) func(context.Context, toolCall) (toolResult, error) {
	return func(context.Context, toolCall) (toolResult, error) { return toolResult{Text: text}, nil }
}

func TestToolRegistration(t *testing.T) {
	good := toolsPlain("good", toolHints{ReadOnly: true}, toolsText("x"))
	for name, tc := range map[string]struct {
		change func(*tool)
		want   string
	}{
		"upper case":     {func(tl *tool) { tl.Name = "Good" }, "name does not fit"},
		"long name":      {func(tl *tool) { tl.Name = strings.Repeat("a", 65) }, "name does not fit"},
		"no description": {func(tl *tool) { tl.Description = " " }, "description"},
		"no run":         {func(tl *tool) { tl.run = nil }, "nothing to run"},
		"both hints":     {func(tl *tool) { tl.Hints.Destructive = true }, "at once"},
		"no schema":      {func(tl *tool) { tl.Schema = nil }, "schema"},
		"open schema":    {func(tl *tool) { tl.Schema = json.RawMessage(`{"type":"object","properties":{}}`) }, "additionalProperties"},
		"unknown keyword": {func(tl *tool) {
			tl.Schema = json.RawMessage(strings.Replace(toolsSchema, `"n":{`, `"n":{"minimun":1,`, 1))
		}, "minimun"},
		"no line": {func(tl *tool) { tl.Schema = json.RawMessage(strings.Replace(toolsSchema, "A number.", "", 1)) }, `property "n"`},
		"missing required": {func(tl *tool) {
			tl.Schema = json.RawMessage(strings.Replace(toolsSchema, `{"type"`, `{"required":["x"],"type"`, 1))
		}, `"x" does not exist`},
		"no room to spill": {func(tl *tool) { tl.Output = json.RawMessage(`{"type":"object","required":["rows"]}`) }, "spilled"},
	} {
		tl := good
		tc.change(&tl)
		if _, err := newToolbox([]tool{tl}, nil, nil, nil, nil, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if _, err := newToolbox([]tool{good, good}, nil, nil, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a name that stands twice: %v", err)
	}
	box, err := newToolbox([]tool{good}, nil, nil, nil, nil, nil)
	if err != nil || len(box.natives()) != 1 {
		t.Fatalf("good declaration: %v", err)
	}
	want := `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":false,"statefulHint":false}`
	if got := string(box.natives()[0].def().Annotations); got != want {
		t.Errorf("annotations %s, want %s", got, want)
	}
}

// The order of a native call, as the run log shows it, and what each fault comes back as (POL-11).
func TestPOL11DispatchNative(t *testing.T) {
	ran := 0
	run := func(ctx context.Context, c toolCall) (toolResult, error) {
		ran++
		switch string(c.Args) {
		case `{"n":1}`:
			return toolResult{}, errors.New("the disk is gone: hush-hush-1")
		case `{"n":2}`:
			panic("boom")
		case `{"n":3}`:
			return toolResult{Text: "no luck", IsError: true}, nil
		}
		return toolResult{Text: "fine hush-hush-1", Structured: json.RawMessage(`{"a":"hush-hush-1"}`)}, nil
	}
	for name, tc := range map[string]struct {
		tool, args string
		code       int // of an *rpcError
		text       string
		isError    bool
		refused    bool
		ran        int
		events     string
	}{
		"good":         {tool: "look", args: `{}`, text: "fine [secret:TOKEN]", ran: 1, events: "requested started completed"},
		"no args":      {tool: "look", args: ``, text: "fine", ran: 1, events: "requested started completed"},
		"error":        {tool: "look", args: `{"n":1}`, text: "look: the disk is gone: [secret:TOKEN]", isError: true, ran: 1, events: "requested started failed"},
		"panic":        {tool: "look", args: `{"n":2}`, text: "a fault in tai itself: boom", isError: true, ran: 1, events: "requested started failed"},
		"tool failure": {tool: "look", args: `{"n":3}`, text: "no luck", isError: true, ran: 1, events: "requested started failed"},
		"wrong type":   {tool: "look", args: `{"n":"x"}`, text: "n", isError: true, events: "requested started failed"},
		"unknown key":  {tool: "look", args: `{"m":1}`, text: "m", isError: true, events: "requested started failed"},
		"refused":      {tool: "change", args: `{}`, text: "change: refused by policy", isError: true, refused: true, events: "requested blocked"},
		"unknown tool": {tool: "nope", args: `{}`, code: codeInvalidParams, text: `unknown tool "nope"`},
		"other case":   {tool: "Look", args: `{}`, code: codeInvalidParams, text: `unknown tool "Look"`},
		"string":       {tool: "look", args: `"x"`, code: codeInvalidParams, text: "arguments of look"},
		"array":        {tool: "look", args: `[]`, code: codeInvalidParams, text: "arguments of look"},
		"null":         {tool: "look", args: `null`, code: codeInvalidParams, text: "arguments of look"},
		"duplicate":    {tool: "look", args: `{"n":1,"n":2}`, code: codeInvalidParams, text: "arguments of look"},
		"half":         {tool: "look", args: `{"n":`, code: codeInvalidParams, text: "arguments of look"},
	} {
		t.Run(name, func(t *testing.T) {
			ran = 0
			box := newToolsBox(t, modeReadOnly, nil,
				toolsPlain("look", toolHints{ReadOnly: true}, run), toolsPlain("change", toolHints{Destructive: true}, run))
			r, err := box.dispatch(t.Context(), toolCall{Name: tc.tool, Args: json.RawMessage(tc.args), Origin: "cli"})
			if tc.code != 0 {
				re, ok := errors.AsType[*rpcError](err)
				if !ok || re.Code != tc.code || !strings.Contains(re.Message, tc.text) {
					t.Fatalf("%+v, %v, want code %d with %q", r, err, tc.code, tc.text)
				}
			} else if err != nil || !strings.Contains(r.Text, tc.text) || r.IsError != tc.isError || (r.Rule != "") != tc.refused {
				t.Fatalf("%+v, %v, want %q, error %v, refused %v", r, err, tc.text, tc.isError, tc.refused)
			}
			if strings.Contains(r.Text+string(r.Structured), "hush") {
				t.Errorf("a secret came through: %+v", r)
			}
			if ran != tc.ran {
				t.Errorf("ran %d times, want %d", ran, tc.ran)
			}
			if tc.events != "" {
				if got := strings.Join(box.events(t), " "); got != tc.events {
					t.Errorf("events %q, want %q", got, tc.events)
				}
			}
		})
	}
}

// No record, no action (R11).
func TestDispatchNoRecordNoAction(t *testing.T) {
	ran := false
	box := newToolsBox(t, modeDanger, nil, toolsPlain("change", toolHints{Destructive: true}, func(context.Context, toolCall) (toolResult, error) {
		ran = true
		return toolResult{Text: "done"}, nil
	}))
	if err := os.WriteFile(filepath.Join(box.dir, "runs"), nil, 0o600); err != nil { // a file where the folder has to be
		t.Fatal(err)
	}
	r, err := box.dispatch(t.Context(), toolCall{Name: "change"})
	if err == nil || ran {
		t.Errorf("%+v, %v, ran %v, want an error and no run", r, err, ran)
	}
}

func TestDispatchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	box := newToolsBox(t, modePrompt, nil, toolsPlain("look", toolHints{ReadOnly: true}, func(ctx context.Context, _ toolCall) (toolResult, error) {
		cancel()
		<-ctx.Done()
		return toolResult{}, ctx.Err()
	}))
	r, err := box.dispatch(ctx, toolCall{Name: "look"})
	if err != nil || !r.IsError || r.Text != "look: interrupted" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A result over the cap keeps its head inline and is a record whole; nothing of a secret is in either.
func TestResultSpills(t *testing.T) {
	line := "a line with hush-hush-1 in it\n"
	box := newToolsBox(t, modePrompt, nil,
		toolsPlain("fits", toolHints{ReadOnly: true}, toolsText(strings.Repeat("x", mcpResultMax))),
		toolsPlain("long", toolHints{ReadOnly: true}, func(context.Context, toolCall) (toolResult, error) {
			return toolResult{Text: strings.Repeat(line, 4000), Structured: json.RawMessage(`{"a":1}`)}, nil
		}),
		toolsPlain("wide", toolHints{ReadOnly: true}, func(context.Context, toolCall) (toolResult, error) {
			return toolResult{Text: "short", Structured: json.RawMessage(`{"a":"` + strings.Repeat("y", mcpResultMax) + `"}`)}, nil
		}))
	r, err := box.dispatch(t.Context(), toolCall{Name: "fits"})
	if err != nil || r.Record != "" || len(r.Text) != mcpResultMax {
		t.Errorf("a result of just the cap: record %q, %d bytes, %v", r.Record, len(r.Text), err)
	}
	r, err = box.dispatch(t.Context(), toolCall{Name: "long"})
	if err != nil || r.Record == "" || len(r.Text) > toolHeadMax+200 || !strings.Contains(r.Text, r.Record) {
		t.Fatalf("long: %.80q…, record %q, %v", r.Text, r.Record, err)
	}
	want := strings.Repeat(strings.ReplaceAll(line, "hush-hush-1", "[secret:TOKEN]"), 4000)
	if !strings.Contains(r.Text, fmt.Sprint(len(want))) {
		t.Errorf("the size %d is not told: %q", len(want), r.Text[len(r.Text)-120:])
	}
	info, body, err := box.vault.record(t.Context(), r.Record)
	if err != nil || string(body) != want || info.Kind != "result" || info.Origin != "long" {
		t.Errorf("record %+v, %d bytes, %v, want %d bytes", info, len(body), err, len(want))
	}
	if got := string(r.Structured); got != fmt.Sprintf(`{"record":%q,"size":%d}`, r.Record, len(want)) {
		t.Errorf("structured %s", got)
	}
	r, err = box.dispatch(t.Context(), toolCall{Name: "wide"})
	if err != nil || r.Record == "" || !strings.HasPrefix(r.Text, "short\n") || len(r.Structured) > 200 {
		t.Errorf("wide: %q, record %q, %v", r.Text, r.Record, err)
	}
}

// A result that cannot be stored says so and keeps its head: what ran is not hidden.
func TestResultSpillFails(t *testing.T) {
	box := newToolsBox(t, modePrompt, nil, toolsPlain("long", toolHints{ReadOnly: true}, toolsText(strings.Repeat("x", mcpResultMax+1))))
	box.toolbox.vault = func(context.Context) (*vault, error) { return nil, errors.New("disk full") }
	r, err := box.dispatch(t.Context(), toolCall{Name: "long"})
	if err != nil || r.Record != "" || !strings.HasPrefix(r.Text, "xxx") || !strings.Contains(r.Text, "the rest is lost: open the vault: disk full") {
		t.Errorf("%q, %v", r.Text[max(0, len(r.Text)-200):], err)
	}
}

// The policy sees what judge says of the arguments, and a place outside the root is open only to a call it let through.
func TestDispatchOutside(t *testing.T) {
	tl := toolsPlain("look", toolHints{ReadOnly: true}, func(_ context.Context, c toolCall) (toolResult, error) {
		return toolResult{Text: fmt.Sprint("outside ", c.outside)}, nil
	})
	tl.judge = func(c toolCall) policyRequest {
		return policyRequest{Outside: strings.Contains(string(c.Args), "/etc")}
	}
	for _, tc := range []struct {
		mode approvalMode
		args string
		want string
	}{
		{modePrompt, `{"path":"x"}`, "outside false"},
		{modePrompt, `{"path":"/etc/x"}`, "refused by policy"},
		{modeReadOnly, `{"path":"/etc/x"}`, "refused by policy"},
		{modeAllow, `{"path":"/etc/x"}`, "refused by policy"},
		{modeDanger, `{"path":"/etc/x"}`, "outside true"},
		{modeDanger, `{"path":"x"}`, "outside false"},
	} {
		box := newToolsBox(t, tc.mode, nil, tl)
		r, err := box.dispatch(t.Context(), toolCall{Name: "look", Args: json.RawMessage(tc.args), outside: true})
		if err != nil || !strings.Contains(r.Text, tc.want) {
			t.Errorf("%s %s: %q, %v, want %q", tc.mode, tc.args, r.Text, err, tc.want)
		}
	}
}

func TestReading(t *testing.T) {
	out := toolsPlain("path", toolHints{ReadOnly: true}, toolsText(""))
	out.judge = func(c toolCall) policyRequest { return policyRequest{Outside: len(c.Args) > 2} }
	ask := toolsPlain("ask", toolHints{ReadOnly: true}, toolsText(""))
	ask.unattended = func(toolCall) bool { return false }
	box := newToolsBox(t, modePrompt, nil, out, ask, toolsPlain("change", toolHints{Destructive: true}, toolsText("")), toolsPlain("keep", toolHints{Idempotent: true}, toolsText("")))
	for _, tc := range []struct {
		name, args string
		want       bool
	}{{"path", "{}", true}, {"path", `{"path":"/"}`, false}, {"ask", "{}", false}, {"change", "{}", false}, {"keep", "{}", false}, {"mcp_x_y", "{}", false}} {
		if got := box.reading(toolCall{Name: tc.name, Args: json.RawMessage(tc.args)}); got != tc.want {
			t.Errorf("reading(%s %s) = %v, want %v", tc.name, tc.args, got, tc.want)
		}
	}
}

// fakeSource offers bridged tools without a server.
type fakeSource struct {
	defs   []toolDef
	err    error // of the list
	broken error // of each call

	mu    sync.Mutex
	calls []string
}

func (f *fakeSource) offered(context.Context) ([]sourceTool, error) {
	var out []sourceTool
	for _, d := range f.defs {
		server, own, _ := strings.Cut(strings.TrimPrefix(d.Name, "mcp_"), "_")
		out = append(out, sourceTool{toolDef: d, Server: server, Tool: own})
	}
	return out, f.err
}

func (f *fakeSource) state(context.Context) (any, error) { return nil, nil }

func (f *fakeSource) described(ctx context.Context, names []string) ([]sourceTool, error) {
	all, err := f.offered(ctx)
	return slices.DeleteFunc(all, func(d sourceTool) bool { return !slices.Contains(names, d.Name) }), err
}

func (f *fakeSource) owns(name string) bool {
	return slices.ContainsFunc(f.defs, func(d toolDef) bool { return d.Name == name })
}

func (f *fakeSource) call(_ context.Context, c toolCall) (toolResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c.Name+" "+string(c.Args))
	return toolResult{Text: "from the bridge"}, f.broken
}

func (f *fakeSource) foresee(_ context.Context, c toolCall) (policyForecast, bool, error) {
	return policyForecast{Tool: c.Name, Decision: forecastAsk, Rule: "from the bridge"}, f.owns(c.Name), nil
}

func TestDispatchBridged(t *testing.T) {
	src := &fakeSource{defs: []toolDef{{Name: "mcp_a_b"}, {Name: "look"}}}
	box := newToolsBox(t, modePrompt, src, toolsPlain("look", toolHints{ReadOnly: true}, toolsText("native")))
	if r, err := box.dispatch(t.Context(), toolCall{Name: "mcp_a_b", Args: json.RawMessage(`{"x":1}`)}); err != nil || r.Text != "from the bridge" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := box.dispatch(t.Context(), toolCall{Name: "look"}); err != nil || r.Text != "native" {
		t.Errorf("a native tool loses against a bridged one of its name: %+v, %v", r, err)
	}
	if _, err := box.dispatchNative(t.Context(), toolCall{Name: "mcp_a_b"}); err == nil {
		t.Error("dispatchNative reached the bridge")
	}
	if len(src.calls) != 1 || src.calls[0] != `mcp_a_b {"x":1}` {
		t.Errorf("calls of the bridge: %q", src.calls)
	}
}
