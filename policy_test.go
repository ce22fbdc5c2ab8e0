package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fakePrompter answers each question with the next key and keeps what it was asked.
type fakePrompter struct {
	mu    sync.Mutex
	keys  []string
	asked []consent
	err   error
}

func (f *fakePrompter) confirm(ctx context.Context, c consent) (consentAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, c)
	if f.err != nil {
		return consentAnswer{}, f.err
	}
	if len(f.keys) == 0 {
		return consentAnswer{}, errors.New("asked once too often")
	}
	key := f.keys[0]
	f.keys = f.keys[1:]
	return consentAnswer{Key: key, Why: "too wide"}, nil
}

func policyTestDecide(t *testing.T, p *policy, r policyRequest) decision {
	t.Helper()
	d, err := p.approve(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if !d.Allow && (d.Rule == "" || d.Reason == "") {
		t.Errorf("a refusal without rule or reason: %+v", d)
	}
	return d
}

var policyTestArgs = json.RawMessage(`{"path":"a.txt"}`)

func policyTestScoped(t *testing.T, tool string, args json.RawMessage) string {
	t.Helper()
	d, err := payloadDigest(tool, args)
	if err != nil {
		t.Fatal(err)
	}
	return tool + ":" + d
}

// TestPOL01Table: the 32 cells of the documented table, with the rule each names and whether it is shown.
func TestPOL01Table(t *testing.T) {
	type cell struct {
		allow bool
		rule  string
		shown bool
	}
	run := func(rule string) cell { return cell{true, rule, false} }
	deny := func(rule string) cell { return cell{false, rule, false} }
	shown, denied := cell{true, "mode allow", true}, deny("deny preset p-9c11")
	danger, readOnly := run("mode danger-full-access"), deny("mode read-only")
	// columns: no rule, allow preset, digest, deny preset
	table := map[string][4]cell{
		"read-only reading":              {run("reading"), run("reading"), run("reading"), denied},
		"read-only destructive":          {readOnly, readOnly, readOnly, denied},
		"prompt reading":                 {run("reading"), run("reading"), run("reading"), denied},
		"prompt destructive":             {deny("nobody to ask"), run("allow preset p-3f2a"), run("digest"), denied},
		"allow reading":                  {shown, shown, shown, denied},
		"allow destructive":              {shown, shown, shown, denied},
		"danger-full-access reading":     {danger, danger, danger, denied},
		"danger-full-access destructive": {danger, danger, danger, denied},
	}
	cells := 0
	for row, want := range table {
		mode, kind, _ := strings.Cut(row, " ")
		for col, w := range want {
			var lines []string
			c := policyConfig{Mode: approvalMode(mode), Show: func(_ context.Context, s string) { lines = append(lines, s) }}
			switch col {
			case 1:
				c.Presets = []preset{{ID: "p-3f2a", Effect: "allow", Tool: "file_*"}}
			case 2:
				c.Digests = []string{policyTestScoped(t, "file_write", policyTestArgs)}
			case 3:
				c.Presets = []preset{{ID: "p-9c11", Effect: "deny", Tool: "file_write"}}
			}
			d := policyTestDecide(t, newPolicy(c), policyRequest{Tool: "file_write", Destructive: kind == "destructive", Args: policyTestArgs})
			if got := (cell{d.Allow, d.Rule, d.Shown}); got != w {
				t.Errorf("%s, column %d: %+v, want %+v", row, col, got, w)
			}
			if (len(lines) == 1) != w.shown {
				t.Errorf("%s, column %d: shown %q", row, col, lines)
			}
			cells++
		}
	}
	if cells != 32 {
		t.Errorf("%d cells", cells)
	}
}

// TestPOL01Asked: the one cell that asks, where a person sits.
func TestPOL01Asked(t *testing.T) {
	for key, want := range map[string]decision{
		"y": {Allow: true, Rule: "consent"}, "s": {Allow: true, Rule: "consent"},
		"n": {Rule: "person said no", Reason: "nothing was done"}, "w": {Rule: "person said no", Reason: "too wide"},
		"yy": {Rule: "person said no", Reason: "the answer was none of those offered"}, "a": {Rule: "person said no", Reason: "the answer was none of those offered"},
	} {
		f := &fakePrompter{keys: []string{key}}
		d := policyTestDecide(t, newPolicy(policyConfig{Mode: modePrompt, Prompter: f}), policyRequest{Tool: "file_write", Destructive: true, Args: policyTestArgs})
		if d != want || len(f.asked) != 1 {
			t.Errorf("%s: %+v, want %+v", key, d, want)
		}
	}
	broken := &fakePrompter{err: errors.New("terminal gone")}
	d, err := newPolicy(policyConfig{Mode: modePrompt, Prompter: broken}).approve(context.Background(), policyRequest{Tool: "x", Destructive: true})
	if !errors.Is(err, broken.err) || d.Allow || d.Rule == "" {
		t.Errorf("failed question: %+v, %v", d, err)
	}
}

// TestPOL02DenyWins: over mode, preset, digest, flag and a person's own words, at once.
func TestPOL02DenyWins(t *testing.T) {
	for _, mode := range []approvalMode{modeReadOnly, modePrompt, modeAllow, modeDanger} {
		f := &fakePrompter{}
		p := newPolicy(policyConfig{Mode: mode, Yes: true, Prompter: f, Digests: []string{policyTestScoped(t, "file_write", policyTestArgs)},
			Presets: []preset{{ID: "p-1", Effect: "allow", Tool: "file_write"}, {ID: "p-2", Effect: "deny", Tool: "file_w*", Arguments: map[string]string{"path": "a.*"}}}})
		for _, r := range []policyRequest{{}, {Person: true}, {Always: true}, {Outside: true}, {Destructive: true}} {
			r.Tool, r.Args = "file_write", policyTestArgs
			if d := policyTestDecide(t, p, r); d.Allow || d.Rule != "deny preset p-2" || !strings.Contains(d.refusal(), "(deny preset p-2)") {
				t.Errorf("%s %+v: %+v", mode, r, d)
			}
		}
		if len(f.asked) != 0 {
			t.Error("a denied call was asked about")
		}
	}
}

func TestPOL03Modes(t *testing.T) {
	for _, s := range []string{"workspace-write", "", "Allow", "ALLOW", " allow", "yolo", "auto", "danger", "read_only", "allow\n"} {
		for _, serve := range []bool{false, true} {
			if m, err := parseMode(s, serve); err == nil || m != "" {
				t.Errorf("%q: mode %q", s, m)
			}
		}
	}
	for _, s := range []string{"read-only", "prompt", "allow", "danger-full-access"} {
		if m, err := parseMode(s, true); err != nil || string(m) != s {
			t.Errorf("%q: %q, %v", s, m, err)
		}
	}
	if _, err := parseMode("workspace-write", true); !strings.Contains(err.Error(), "bound plan") {
		t.Errorf("workspace-write: %v", err)
	}
	if d := policyTestDecide(t, newPolicy(policyConfig{}), policyRequest{Tool: "x"}); d.Allow {
		t.Error("an empty mode allows")
	}
}

// TestPOL04Approved, POL-05, POL-07: what was approved is what runs, however it is spelled, and nothing else.
func TestPOL04Approved(t *testing.T) {
	approved := json.RawMessage(`{"n":1,"path":"é","s":"1"}`)
	p := newPolicy(policyConfig{Mode: modePrompt, Digests: []string{policyTestScoped(t, "mcp:files/w", approved)}})
	for args, want := range map[string]bool{
		`{"s":"1","path":"é","n":1}`: true, "{ \"n\" : 1.0,\n\"s\":\"1\", \"path\":\"\\u00e9\"}": true, `{"n":1e0,"path":"é","s":"1"}`: true,
		`{"n":"1","path":"é","s":"1"}`: false, `{"n":1,"path":"é","s":1}`: false, `{"n":1,"path":"é","s":null}`: false, `{"n":1,"path":"é"}`: false, // POL-05
		"{\"n\":1,\"path\":\"e\u0301\",\"s\":\"1\"}": false,
		`{"n":1,"path":"é","s":"1","force":true}`:    false, `{"n":1,"Path":"é","s":"1"}`: false, // POL-07
	} {
		if d := policyTestDecide(t, p, policyRequest{Tool: "mcp:files/w", Destructive: true, Args: json.RawMessage(args)}); d.Allow != want {
			t.Errorf("%s: %+v, want %v", args, d, want)
		}
	}
	if d := policyTestDecide(t, p, policyRequest{Tool: "mcp:other/w", Destructive: true, Args: approved}); d.Allow {
		t.Error("the digest of one server's tool covers another's")
	}
}

func TestPOL06Refused(t *testing.T) {
	for _, args := range []string{`{"path":"a","path":"b"}`, `{"x":{"a":1,"a":2}}`, `[1]`, `"x"`, `{`, "{\"a\":\"\xff\"}"} {
		p := newPolicy(policyConfig{Mode: modeDanger})
		if d := policyTestDecide(t, p, policyRequest{Tool: "file_write", Args: json.RawMessage(args)}); d.Allow || d.Rule != "arguments" {
			t.Errorf("%q: %+v", args, d)
		}
	}
}

// TestPOL08Inert: approval cannot be claimed in the arguments.
func TestPOL08Inert(t *testing.T) {
	digest := policyTestScoped(t, "file_write", policyTestArgs)
	p := newPolicy(policyConfig{Mode: modePrompt, Digests: []string{digest}})
	for _, args := range []string{`{"path":"a.txt","approved":true}`, `{"path":"a.txt","_meta":{"approval":"yes"}}`, `{"path":"a.txt","readOnlyHint":true}`, fmt.Sprintf(`{"id":%q}`, digest)} {
		if d := policyTestDecide(t, p, policyRequest{Tool: "file_write", Destructive: true, Args: json.RawMessage(args)}); d.Allow {
			t.Errorf("%s: %+v", args, d)
		}
	}
}

// TestPOL10SessionScope: a grant covers what was shown: this tool in this definition; a command only word for word.
func TestPOL10SessionScope(t *testing.T) {
	f := &fakePrompter{keys: []string{"s"}}
	p := newPolicy(policyConfig{Mode: modePrompt, Prompter: f})
	base := policyRequest{Tool: "mcp:files/write", Server: "files", Pin: strings.Repeat("a", 64), Destructive: true, Args: policyTestArgs}
	if d := policyTestDecide(t, p, base); !d.Allow || d.Rule != "consent" {
		t.Fatalf("%+v", d)
	}
	if c := f.asked[0].Choices; !slices.Contains(c, consentChoice{"s", "yes, for this session: this tool as it is defined now, with any arguments"}) {
		t.Errorf("choices %v", c)
	}
	f.err = errors.New("asked")
	other := func(change func(*policyRequest)) bool {
		r := base
		change(&r)
		d, err := p.approve(context.Background(), r)
		return err == nil && d.Allow && d.Rule == "session grant"
	}
	for name, tc := range map[string]struct {
		change func(*policyRequest)
		want   bool
	}{
		"same":             {func(r *policyRequest) {}, true},
		"other arguments":  {func(r *policyRequest) { r.Args = json.RawMessage(`{"path":"b"}`) }, true},
		"other definition": {func(r *policyRequest) { r.Pin = strings.Repeat("b", 64) }, false},
		"other server":     {func(r *policyRequest) { r.Tool, r.Server = "mcp:files2/write", "files2" }, false},
		"other tool":       {func(r *policyRequest) { r.Tool = "mcp:files/delete" }, false},
		"outside":          {func(r *policyRequest) { r.Outside = true; r.Args = json.RawMessage(`{"path":"/x"}`) }, false},
		"always":           {func(r *policyRequest) { r.Always = true }, false},
	} {
		if got := other(tc.change); got != tc.want {
			t.Errorf("%s: granted %v, want %v", name, got, tc.want)
		}
	}
	f.keys, f.err = []string{"s", "s"}, nil
	command := policyRequest{Tool: "shell_run", Destructive: true, Command: "make test", Args: json.RawMessage(`{"command":"make test"}`)}
	pinless := policyRequest{Tool: "mcp:x/y", Server: "x", Destructive: true, Args: policyTestArgs}
	policyTestDecide(t, p, command)
	policyTestDecide(t, p, pinless)
	f.err = errors.New("asked")
	if d := policyTestDecide(t, p, command); d.Rule != "session grant" {
		t.Errorf("same command: %+v", d)
	}
	command.Command, command.Args = "make clean", json.RawMessage(`{"command":"make clean"}`)
	pinless.Args = json.RawMessage(`{}`)
	for _, r := range []policyRequest{command, pinless} {
		if d, err := p.approve(context.Background(), r); err == nil || d.Allow {
			t.Errorf("%s: a grant covers other arguments: %+v", r.Tool, d)
		}
	}
}

// TestPOL10Always: "always in this workspace" writes a preset that covers just what was shown, bound to the pin.
func TestPOL10Always(t *testing.T) {
	var saved []preset
	f := &fakePrompter{keys: []string{"a", "a", "a"}}
	c := policyConfig{Mode: modePrompt, Prompter: f, SavePreset: func(_ context.Context, ps preset) (preset, error) {
		if len(saved) == 2 {
			return preset{}, errors.New("disk full")
		}
		ps.ID = fmt.Sprint("p-", len(saved))
		saved = append(saved, ps)
		return ps, nil
	}}
	p := newPolicy(c)
	pin := strings.Repeat("a", 64)
	bridged := policyRequest{Tool: "mcp:files/write", Server: "files", Pin: pin, Destructive: true, Args: policyTestArgs}
	command := policyRequest{Tool: "shell_run", Destructive: true, Command: "make test", Args: json.RawMessage(`{"command":"make test"}`)}
	for _, r := range []policyRequest{bridged, command} {
		if d := policyTestDecide(t, p, r); !d.Allow {
			t.Fatalf("%+v", d)
		}
		if d := policyTestDecide(t, p, r); !strings.HasPrefix(d.Rule, "allow preset p-") {
			t.Errorf("again: %+v", d)
		}
	}
	if saved[0].Pin != pin || saved[0].Tool != "mcp:files/write" || saved[1].Arguments["command"] != "make test" {
		t.Errorf("saved %+v", saved)
	}
	native := policyRequest{Tool: "file_write", Destructive: true, Args: policyTestArgs}
	if d := policyTestDecide(t, p, native); !d.Allow || !strings.Contains(d.Reason, "disk full") {
		t.Errorf("not saved: %+v", d)
	}
	f.err = errors.New("asked")
	bridged.Pin = strings.Repeat("b", 64)
	command.Args = json.RawMessage(`{"command":"make test","env":{"LD_PRELOAD":"x"}}`)
	for _, r := range []policyRequest{bridged, command, native} {
		if d, err := p.approve(context.Background(), r); err == nil || d.Allow {
			t.Errorf("%s: the preset covers more than was shown: %+v", r.Tool, d)
		}
	}
	for name, r := range map[string]policyRequest{
		"glob": {Tool: "shell_run", Command: "rm *", Args: json.RawMessage(`{"command":"rm *"}`)}, "pinless": {Tool: "mcp:x/y", Server: "x"},
		"always": {Tool: "mcp_add", Always: true}, "outside": {Tool: "file_write", Outside: true}, "unparsable": {Tool: "shell_run", Command: "'", Args: json.RawMessage(`{"command":"'"}`)},
	} {
		if _, ok := p.lasting(&r); ok {
			t.Errorf("%s: offered always", name)
		}
	}
}

// TestPolicyPerson: a person's own words run without asking, but for denies, a narrower stated mode and what words do not show.
func TestPolicyPerson(t *testing.T) {
	call := policyRequest{Tool: "mcp:files/write", Server: "files", Destructive: true, Person: true, Args: policyTestArgs}
	for name, tc := range map[string]struct {
		c    policyConfig
		edit func(*policyRequest)
		want string
	}{
		"default":          {policyConfig{Mode: modePrompt}, nil, "mode allow"},
		"stated prompt":    {policyConfig{Mode: modePrompt, ModeGiven: true}, nil, "nobody to ask"},
		"stated read-only": {policyConfig{Mode: modeReadOnly, ModeGiven: true}, nil, "mode read-only"},
		"stated, --yes":    {policyConfig{Mode: modePrompt, ModeGiven: true, Yes: true}, nil, "--yes"},
		"yolo":             {policyConfig{Mode: modeDanger, ModeGiven: true}, nil, "mode danger-full-access"},
		"always":           {policyConfig{Mode: modePrompt}, func(r *policyRequest) { r.Always = true }, "nobody to ask"},
		"outside":          {policyConfig{Mode: modePrompt}, func(r *policyRequest) { r.Outside = true }, "nobody to ask"},
		"outside, auto":    {policyConfig{Mode: modeAllow, ModeGiven: true}, func(r *policyRequest) { r.Outside = true }, "outside the root"},
		"a model, --yes":   {policyConfig{Mode: modePrompt, Yes: true}, func(r *policyRequest) { r.Person = false }, "nobody to ask"},
	} {
		r := call
		if tc.edit != nil {
			tc.edit(&r)
		}
		if d := policyTestDecide(t, newPolicy(tc.c), r); d.Rule != tc.want || d.Shown {
			t.Errorf("%s: %+v, want rule %q", name, d, tc.want)
		}
	}
}

// TestPolicyOutside: the column of paths outside the root; neither preset nor digest nor a wide grant covers them.
func TestPolicyOutside(t *testing.T) {
	r := policyRequest{Tool: "file_read", Outside: true, Args: policyTestArgs}
	for mode, want := range map[approvalMode]string{modeReadOnly: ruleOutside, modePrompt: ruleNobody, modeAllow: ruleOutside, modeDanger: "mode danger-full-access"} {
		c := policyConfig{Mode: mode, Digests: []string{policyTestScoped(t, r.Tool, r.Args)}, Presets: []preset{{ID: "p", Effect: "allow", Tool: "*"}}}
		if d := policyTestDecide(t, newPolicy(c), r); d.Rule != want || d.Allow != (mode == modeDanger) {
			t.Errorf("%s: %+v, want rule %q", mode, d, want)
		}
	}
	f := &fakePrompter{keys: []string{"y"}}
	if d := policyTestDecide(t, newPolicy(policyConfig{Mode: modePrompt, Prompter: f}), r); !d.Allow || !strings.Contains(f.asked[0].Rule, "outside the root") {
		t.Errorf("%+v %+v", d, f.asked)
	}
}

// TestSHL11Policy: a command that cannot be split asks in prompt, is denied in allow, runs in danger; only its digest lifts that.
func TestSHL11Policy(t *testing.T) {
	r := policyRequest{Tool: "shell_run", Destructive: true, Command: `echo "x`, Args: json.RawMessage(`{"command":"echo \"x"}`)}
	digest := []string{policyTestScoped(t, r.Tool, r.Args)}
	any := []preset{{ID: "p", Effect: "allow", Tool: "shell_run"}}
	for name, tc := range map[string]struct {
		c    policyConfig
		want string
	}{
		"prompt": {policyConfig{Mode: modePrompt}, ruleNobody}, "prompt preset": {policyConfig{Mode: modePrompt, Presets: any}, ruleNobody},
		"prompt digest": {policyConfig{Mode: modePrompt, Digests: digest}, ruleDigest},
		"allow":         {policyConfig{Mode: modeAllow, Presets: any}, ruleUnparsable}, "allow digest": {policyConfig{Mode: modeAllow, Digests: digest}, "mode allow"},
		"danger": {policyConfig{Mode: modeDanger}, "mode danger-full-access"},
	} {
		if d := policyTestDecide(t, newPolicy(tc.c), r); d.Rule != tc.want {
			t.Errorf("%s: %+v, want rule %q", name, d, tc.want)
		}
	}
}

// TestF22NobodyToAsk: without a person a call, an add and a remove are refused at once, each naming the flag; nothing waits.
func TestF22NobodyToAsk(t *testing.T) {
	digest := policyTestScoped(t, "mcp:files/write", policyTestArgs)
	call := policyRequest{Tool: "mcp:files/write", Server: "files", Destructive: true, Args: policyTestArgs}
	add := policyRequest{Tool: "mcp_add", Destructive: true, Always: true, Args: json.RawMessage(`{}`)}
	mine := add
	mine.Person = true
	blank := call
	blank.Tool = "mcp:my files/write"
	inexact := call
	inexact.Args = json.RawMessage(`{"id":9007199254740993}`)
	big := policyTestScoped(t, call.Tool, inexact.Args)
	login := add
	login.Yes = "tai mcp login files --yes"
	for _, tc := range []struct {
		c    policyConfig
		r    policyRequest
		hint string
	}{
		{policyConfig{Mode: modePrompt}, call, "--auto would allow it"},
		{policyConfig{Mode: modePrompt, ScopedFlag: true}, call, "--approve-scoped " + digest + " would allow just this call"},
		{policyConfig{Mode: modePrompt, ScopedFlag: true}, call, "; tai approval grant writes a preset for more"},
		{policyConfig{Mode: modeReadOnly, ScopedFlag: true}, call, "--permission-mode prompt with --approve-scoped " + digest + " would allow just this call"},
		{policyConfig{Mode: modePrompt, ScopedFlag: true}, blank, "--approve-scoped 'mcp:my files/write:"}, // as a shell takes it
		{policyConfig{Mode: modePrompt, ScopedFlag: true, Digests: []string{big}}, inexact, "beyond 2^53"}, // POL-07: another call has that digest too
		{policyConfig{Mode: modePrompt}, add, "--auto would allow it"},
		{policyConfig{Mode: modePrompt}, mine, "--yes would allow it"},
		{policyConfig{Mode: modePrompt}, login, "tai mcp login files --yes would allow it"},
		{policyConfig{Mode: modeReadOnly}, add, "--permission-mode prompt would ask"},
	} {
		d := policyTestDecide(t, newPolicy(tc.c), tc.r)
		if d.Allow || !strings.Contains(d.Hint, tc.hint) || !strings.Contains(d.refusal(), tc.hint) || strings.Contains(d.refusal(), "\n") {
			t.Errorf("%s: %+v, want hint %q", tc.r.Tool, d, tc.hint)
		}
	}
	for rule, c := range map[string]policyConfig{"--yes": {Mode: modePrompt, Yes: true}, "mode allow": {Mode: modeAllow}, "mode danger-full-access": {Mode: modeDanger}} {
		if d := policyTestDecide(t, newPolicy(c), mine); !d.Allow || d.Rule != rule {
			t.Errorf("%s: %+v", rule, d)
		}
	}
}

// TestPolicyOneQuestion: questions come one at a time, a grant settles those that wait, and who waits can be interrupted.
func TestPolicyOneQuestion(t *testing.T) {
	f := &fakePrompter{keys: []string{"s"}}
	p := newPolicy(policyConfig{Mode: modePrompt, Prompter: f})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			d, err := p.approve(context.Background(), policyRequest{Tool: "file_write", Destructive: true, Args: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))})
			if err != nil || !d.Allow {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
	wg.Wait()
	if len(f.asked) != 1 {
		t.Errorf("%d questions", len(f.asked))
	}
	p.asking <- struct{}{} // somebody else is being asked
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if d, err := p.approve(ctx, policyRequest{Tool: "other", Destructive: true}); !errors.Is(err, context.Canceled) || d.Allow {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestPolicyShownLine(t *testing.T) {
	var got string
	p := newPolicy(policyConfig{Mode: modeAllow, Show: func(_ context.Context, s string) { got = s }, Redact: func(s string) string { return strings.ReplaceAll(s, "hunter22", "[secret:PW]") }})
	policyTestDecide(t, p, policyRequest{Tool: "mcp:a/b\x1b", Args: json.RawMessage("{\"x\" : \"hunter22\u202e\"}")})
	if got != `runs mcp:a/b\u001b {"x":"[secret:PW]<U+202E>"}` {
		t.Errorf("%q", got)
	}
	policyTestDecide(t, p, policyRequest{Tool: "t", Args: json.RawMessage(`{"x":"` + strings.Repeat("y", 5000) + `"}`)})
	if got != "runs t with 5008 bytes of arguments" {
		t.Errorf("%q", got)
	}
}
