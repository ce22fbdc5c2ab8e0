package main

import (
	"fmt"
	"strings"
	"testing"
)

// servePolicy serves with presets and digests beside the mode.
func servePolicy(t *testing.T, mode approvalMode, presets []preset, digests ...string) (*serveFixture, string) {
	t.Helper()
	f := serveStart(t, mode, func(c *serveConfig) {
		c.Tools.policy = newPolicy(policyConfig{Mode: mode, Presets: presets, Digests: digests})
	})
	return f, f.open(t)
}

// POL-02 at the door: a deny preset wins over the mode, an allow preset and a digest together, with -32001 and its rule.
func TestPOL02Served(t *testing.T) {
	for _, mode := range []approvalMode{modeReadOnly, modePrompt, modeAllow, modeDanger} {
		f, session := servePolicy(t, mode, []preset{{ID: "p-1", Effect: "allow", Tool: "deed"}, {ID: "p-2", Effect: "deny", Tool: "de*"}}, policyTestScoped(t, "deed", []byte(`{}`)))
		if r := f.send(t, "POST", serveCall("deed", `{}`), session); r.code() != codeDenied || !strings.Contains(r.rpc.Error.Message, "deny preset p-2") {
			t.Errorf("%s: %s", mode, r.body)
		}
		if f.deeds.Load() != 0 {
			t.Errorf("%s: a denied call ran", mode)
		}
	}
}

// POL-07, POL-08 at the door: the digest covers exactly the arguments it was made from; an id, flags and hints of the client cover nothing.
func TestPOL07Served(t *testing.T) {
	scoped := policyTestScoped(t, "deed", []byte(`{}`))
	_, digest, _ := strings.Cut(scoped, ":")
	f, session := servePolicy(t, modePrompt, nil, scoped)
	for _, args := range []string{`{"force":true}`, `{"":null}`, `{"Force":false}`} {
		if r := f.send(t, "POST", serveCall("deed", args), session); r.code() != codeDenied || !strings.Contains(r.rpc.Error.Message, ruleNobody) {
			t.Errorf("POL-07 %s: %s", args, r.body)
		}
	}
	g, other := servePolicy(t, modePrompt, nil)
	quoted := fmt.Sprintf("%q", digest)
	for name, body := range map[string]string{
		"id":          serveRequest(quoted, methodToolsCall, `{"name":"deed","arguments":{}}`),
		"meta":        serveRequest("1", methodToolsCall, `{"name":"deed","arguments":{},"_meta":{"approval":`+quoted+`,"approved":true}}`),
		"approved":    serveRequest("1", methodToolsCall, `{"name":"deed","arguments":{},"approved":true,"annotations":{"readOnlyHint":true}}`),
		"an argument": serveRequest("1", methodToolsCall, `{"name":"deed","arguments":{"approved":true,"digest":`+quoted+`}}`),
	} {
		if r := g.send(t, "POST", body, other); r.code() != codeDenied {
			t.Errorf("POL-08 %s: %s", name, r.body)
		}
	}
	if f.deeds.Load()+g.deeds.Load() != 0 {
		t.Error("a denied call ran")
	}
	if r := f.send(t, "POST", serveCall("deed", " { } "), session); r.code() != 0 || f.deeds.Load() != 1 {
		t.Errorf("the approved call: %s", r.body)
	}
}
