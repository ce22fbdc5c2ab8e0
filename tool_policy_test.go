package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func checkTestCall(t *testing.T, box *toolbox, c toolCall, tool, args string) policyForecast {
	t.Helper()
	c.Name = "policy_check"
	c.Args = append(appendJSONString([]byte(`{"tool":`), tool), `,"args":`+args+`}`...)
	r, err := box.dispatch(t.Context(), c)
	if err != nil || r.IsError {
		t.Fatalf("%s %s: %+v, %v", tool, args, r, err)
	}
	var f policyForecast
	if err := json.Unmarshal(r.Structured, &f); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(r.Text, visibleLine(f.Tool)+": "+f.Decision+"\nrule: "+visibleLine(f.Rule)+"\n") || !strings.Contains(r.Text, f.Digest) {
		t.Errorf("the text says otherwise: %s\n%s", r.Text, r.Structured)
	}
	return f
}

// policy_check tells what the call itself then meets, in every mode: same rule, same digest, and nothing runs before.
func TestPolicyCheckHolds(t *testing.T) {
	ran := 0
	write := toolsPlain("file_write", toolHints{Destructive: true}, nil)
	text := toolsText("done")
	write.run = text
	for _, mode := range []approvalMode{modeReadOnly, modePrompt, modeAllow, modeDanger} {
		var box *toolsBox
		tools := append(policyTools(func() (policyForeseer, error) { return box.toolbox, nil }), write, toolsPlain("look", toolHints{ReadOnly: true}, text))
		box = newToolsBox(t, mode, nil, tools...)
		box.policy.presets = []preset{{ID: "p-1", Effect: "deny", Tool: "file_write", Arguments: map[string]string{"path": "secret/*"}}, {ID: "p-2", Effect: "allow", Tool: "file_write", Arguments: map[string]string{"path": "docs/*"}}}
		for _, call := range [][2]string{{"look", `{}`}, {"file_write", `{}`}, {"file_write", `{"path":"secret/a"}`}, {"file_write", `{"path":"docs/a"}`}} {
			for _, person := range []bool{false, true} {
				f := checkTestCall(t, box.toolbox, toolCall{Person: person}, call[0], call[1])
				real, err := box.dispatch(t.Context(), toolCall{Name: call[0], Args: json.RawMessage(call[1]), Person: person})
				if err != nil {
					t.Fatal(err)
				}
				ran++
				want := forecastAllow
				if real.Rule != "" {
					want = forecastDeny
				}
				digest, err := payloadDigest(call[0], json.RawMessage(call[1]))
				if f.Decision != want || real.Rule != "" && (f.Rule != real.Rule || f.Hint != real.Hint) || f.Digest != digest || f.Mode != string(mode) || err != nil {
					t.Errorf("%s %v %v: %+v, the call came to %+v", mode, call, person, f, real)
				}
			}
		}
	}
	if ran != 32 {
		t.Errorf("%d calls", ran)
	}
}

// Where a person sits the answer is ask, and nobody is asked by asking. Unknown tools, bridged ones and those that need a person are told apart.
func TestPolicyCheckAnswers(t *testing.T) {
	var box *toolsBox
	src := &fakeSource{defs: []toolDef{{Name: "mcp_a_b"}}}
	talk := toolsPlain("talk", toolHints{ReadOnly: true}, toolsText("hi"))
	talk.unattended = func(toolCall) bool { return true }
	tools := append(policyTools(func() (policyForeseer, error) { return box.toolbox, nil }), toolsPlain("file_write", toolHints{Destructive: true}, toolsText("done")), talk)
	box = newToolsBox(t, modePrompt, src, tools...)
	asked := &fakePrompter{}
	box.policy.cfg.Prompter = asked
	for tool, want := range map[string]policyForecast{
		"file_write": {Decision: forecastAsk, Rule: "mode prompt"}, "policy_check": {Decision: forecastAllow, Rule: "reading"},
		"nothing": {Decision: forecastDeny, Rule: ruleUnknown}, "File_Write": {Decision: forecastDeny, Rule: ruleUnknown}, "mcp:none/such": {Decision: forecastDeny, Rule: ruleUnknown}, "\x1b[2J": {Decision: forecastDeny, Rule: ruleUnknown},
		"mcp_a_b": {Decision: forecastAsk, Rule: "from the bridge"}, "talk": {Decision: forecastDeny, Rule: toolRulePerson},
	} {
		if f := checkTestCall(t, box.toolbox, toolCall{}, tool, `{}`); f.Decision != want.Decision || f.Rule != want.Rule {
			t.Errorf("%q: %+v, want %+v", tool, f, want)
		}
	}
	if len(asked.asked) != 0 || len(src.calls) != 0 {
		t.Errorf("asked %v, called %v", asked.asked, src.calls)
	}
	for args, want := range map[string]string{`{"tool":"file_write","args":{"a":1,"a":2}}`: "a", `{"tool":""}`: "tool", `{"args":{}}`: "tool", `{"tool":"x","args":[]}`: "args", `{"tool":"x","more":1}`: "more"} {
		r, err := box.dispatch(t.Context(), toolCall{Name: "policy_check", Args: json.RawMessage(args)})
		if err == nil && !r.IsError || err == nil && !strings.Contains(r.Text, want) {
			t.Errorf("%s: %+v, %v", args, r, err)
		}
	}
}

// The same over real servers and commands: a withheld tool, a disabled server, mcp_call as the bridged call that it is, shell_run by its command.
func TestPolicyCheckBridged(t *testing.T) {
	r := newCLIRig(t)
	r.tai(fakeWords(t, "fake", fakeStdio{})...).ok()
	check := func(tool, args string) policyForecast {
		t.Helper()
		out := r.tai("--json", "--permission-mode", "prompt", "tools", "call", "policy_check", `{"tool":`+string(appendJSONString(nil, tool))+`,"args":`+args+`}`)
		out.ok()
		var doc struct{ StructuredContent policyForecast }
		if err := json.Unmarshal([]byte(out.out), &doc); err != nil {
			t.Fatal(err)
		}
		return doc.StructuredContent
	}
	direct, named, inner := check("mcp_fake_echo", `{"a":"b"}`), check("mcp:fake/echo", `{"a":"b"}`), check("mcp_call", `{"server":"fake","tool":"echo","args":{"a":"b"}}`)
	digest := strings.TrimSpace(r.tai("tools", "digest", "mcp_fake_echo", `{"a":"b"}`).out)
	if direct != named || direct != inner || direct.Decision != forecastDeny || direct.Rule != ruleNobody || direct.Tool != "mcp:fake/echo" || direct.Digest != digest {
		t.Errorf("three names of one call: %+v %+v %+v", direct, named, inner)
	}
	for _, tc := range []struct{ tool, args, decision, rule string }{
		{"mcp:fake/none", `{}`, forecastDeny, "pin"}, {"mcp:nobody/x", `{}`, forecastDeny, ruleUnknown}, {"mcp_call", `{"server":"nobody","tool":"x"}`, forecastDeny, ruleUnknown},
		{"shell_run", `{"command":"ls -la"}`, forecastAllow, ruleReading}, {"shell_run", `{"command":"rm x"}`, forecastDeny, ruleNobody}, {"file_read", `{"path":"../x"}`, forecastDeny, ruleNobody},
		{"mcp_add", `{"source":"x"}`, forecastDeny, ruleNobody}, {"ask_user", `{"question":"x"}`, forecastDeny, toolRulePerson},
	} {
		if f := check(tc.tool, tc.args); f.Decision != tc.decision || f.Rule != tc.rule {
			t.Errorf("%s %s: %+v, want %s by %s", tc.tool, tc.args, f, tc.decision, tc.rule)
		}
	}
	r.tai("mcp", "disable", "fake").ok()
	if f := check("mcp:fake/echo", `{}`); f.Decision != forecastDeny || f.Rule != "enablement" {
		t.Errorf("disabled: %+v", f)
	}
}
