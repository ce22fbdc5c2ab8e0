package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// trustTools gives a fake tool list of these names.
func trustTools(t testing.TB, names ...string) string {
	t.Helper()
	var list []map[string]any
	for _, name := range names {
		list = append(list, map[string]any{"name": name, "description": "does " + name, "inputSchema": map[string]any{"type": "object"}})
	}
	b, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// trustRig is a bridge whose workspace has a trust file; put writes another one.
type trustRig struct {
	*bridgeRig
	confirmed bool
}

func newTrustRig(t testing.TB, mode approvalMode, answer string) *trustRig {
	r := &trustRig{newBridgeRig(t, mode, answer), true}
	r.cfg.Trust = &trustSource{Dir: filepath.Join(r.dir, ".tai"), Trusted: func(string) bool { return r.confirmed }}
	return r
}

func (r *trustRig) put(t testing.TB, text string) {
	t.Helper()
	if err := writePolicyFile(r.cfg.Trust.Dir, trustName, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// rule calls a tool and gives the rule that refused it, "" where it ran.
func (r *trustRig) rule(t testing.TB, server, tool string) string {
	t.Helper()
	res, err := r.run1(server, tool, `{}`)
	if err != nil {
		t.Fatalf("%s/%s: %v", server, tool, err)
	}
	if res.Rule == "" && res.IsError {
		t.Fatalf("%s/%s failed: %s", server, tool, res.Text)
	}
	return res.Rule
}

// trustAnswers makes a fake server whose tools all answer.
func trustServer(t testing.TB, name string, tools ...string) serverEntry {
	return stdioEntry(t, name, fakeStdio{Tools: trustTools(t, tools...), On: map[string][]fakeStep{"tools/call": {{Reply: `{"content":[{"type":"text","text":"ran"}]}`}}}})
}

// The bridge obeys the file on every call, in lists, in what is offered and in forecasts, all with the same rule, whatever the names are like.
func TestTrustBridge(t *testing.T) {
	t.Parallel()
	const server = `my "odd" server / x`
	tools := []string{"read_file", "write_file", "Write_File", "a/b", "a/b/c", "näme ✓", "with space", "x*y", "-flag", "..", "read_dir"}
	r := newTrustRig(t, modeDanger, "")
	r.add(t, trustServer(t, server, tools...))
	key := string(appendJSONString(nil, server))
	for _, tc := range []struct {
		name, file string
		refused    map[string]string // tool to rule; the others run
	}{
		{"no file", "", nil},
		{"nothing said", `{"version":1}`, nil},
		{"of another server", `{"version":1,"servers":{"my":{"deny":["*"]},"MY \"odd\" server / x":{"deny":["*"]}}}`, nil},
		{"exact deny, letter by letter", `{"version":1,"servers":{` + key + `:{"deny":["write_file"]}}}`, map[string]string{"write_file": "trust deny write_file"}},
		{"glob deny", `{"version":1,"servers":{` + key + `:{"deny":["*_file"]}}}`, map[string]string{"read_file": "trust deny *_file", "write_file": "trust deny *_file"}},
		{"slash, space and letters", `{"version":1,"servers":{` + key + `:{"deny":["a/*","with space","näme ✓"]}}}`,
			map[string]string{"a/b": "trust deny a/*", "a/b/c": "trust deny a/*", "with space": `trust deny "with space"`, "näme ✓": `trust deny "näme ✓"`}},
		{"a star in a name", `{"version":1,"servers":{` + key + `:{"deny":["x*y"]}}}`, map[string]string{"x*y": "trust deny x*y"}},
		{"only what is allowed", `{"version":1,"servers":{` + key + `:{"allow":["read_*","..","-flag","a/b"]}}}`, map[string]string{"write_file": "", "Write_File": "", "a/b/c": "", "näme ✓": "", "with space": "", "x*y": ""}},
		{"deny wins", `{"version":1,"servers":{` + key + `:{"allow":["*"],"deny":["read_dir"]}}}`, map[string]string{"read_dir": "trust deny read_dir"}},
		{"every entry that fits narrows", `{"version":1,"servers":{` + key + `:{"allow":["*file","read_*"]},"*":{"allow":["*e"],"deny":["Write*"]},"my *":{}}}`,
			map[string]string{"Write_File": "trust deny Write*", "a/b": "", "a/b/c": "", "näme ✓": "", "with space": "", "x*y": "", "-flag": "", "..": "", "read_dir": ""}},
		{"an empty list is none", `{"version":1,"servers":{` + key + `:{"allow":[],"deny":[]}}}`, nil},
	} {
		if tc.file != "" {
			r.put(t, tc.file)
		}
		row, err := r.enabledServer(t.Context(), server, "")
		if err != nil {
			t.Fatal(err)
		}
		stored, err := r.storedList(t.Context(), row)
		if err != nil {
			t.Fatal(err)
		}
		live, err := r.liveList(t.Context(), row)
		if err != nil {
			t.Fatal(err)
		}
		offered, err := r.offered(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			want, shut := tc.refused[tool]
			if shut && want == "" {
				want = ruleTrustAllowList
			}
			if got := r.rule(t, server, tool); got != want {
				t.Errorf("%s: call %q: rule %q, want %q", tc.name, tool, got, want)
			}
			f, err := r.foreseeTool(t.Context(), toolRef{server, tool}, toolCall{})
			if err != nil || shut && f.Rule != want || shut != (f.Decision == forecastDeny) {
				t.Errorf("%s: forecast %q: %+v, %v", tc.name, tool, f, err)
			}
			if got := slices.ContainsFunc(offered, func(s sourceTool) bool { return s.Tool == tool }); got == shut {
				t.Errorf("%s: %q offered %v", tc.name, tool, got)
			}
			for which, list := range map[string][]listedTool{"stored": stored, "live": live} {
				i := slices.IndexFunc(list, func(l listedTool) bool { return l.Name == tool })
				if i < 0 || (list[i].State == stateDenied) != shut || shut && !strings.HasPrefix(list[i].Reason, want+": ") {
					t.Errorf("%s: %s list: %q is %+v", tc.name, which, tool, list[max(i, 0)])
				}
			}
		}
	}
}

// A bridged name of a tool that trust shuts out is known, so that a model is told why, and what names there are does not depend on trust.
func TestTrustBridgedName(t *testing.T) {
	t.Parallel()
	r := newTrustRig(t, modeDanger, "")
	r.add(t, trustServer(t, "files", "read_file", "write_file"))
	r.put(t, `{"version":1,"servers":{"files":{"deny":["write_*"]}}}`)
	res, err := r.call(t.Context(), toolCall{Name: "mcp_files_write_file", Args: json.RawMessage(`{}`)})
	if err != nil || res.Rule != "trust deny write_*" || !strings.Contains(res.Text, ".tai/trust.json denies write_* of files") || !strings.Contains(res.Hint, "tai mcp trust revoke --server files --tools 'write_*'") {
		t.Errorf("%+v, %v", res, err)
	}
	if d, err := r.described(t.Context(), []string{"mcp_files_write_file", "mcp_files_read_file"}); err != nil || len(d) != 1 || d[0].Tool != "read_file" {
		t.Errorf("described %+v, %v", d, err)
	}
}

// The order is pin, trust, the server's own lists, deny presets: the first that refuses is named.
func TestTrustOrder(t *testing.T) {
	t.Parallel()
	r := newTrustRig(t, modeDanger, "")
	e := trustServer(t, "s", "a", "b", "c", "d")
	e.Deny = []string{"b", "c"}
	r.add(t, e)
	r.cfg.Policy = newPolicy(policyConfig{Mode: modeDanger, Root: r.dir, Presets: []preset{{ID: "p-1", Effect: "deny", Tool: "mcp:s/*"}}})
	v := r.store
	rows, err := v.cachedTools(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	rows = slices.DeleteFunc(rows, func(row toolRow) bool { return row.Tool != "a" })
	rows[0].Hash = strings.Repeat("0", 64) // not the definition that the server has
	if err := v.grantTools(t.Context(), "s", rows); err != nil {
		t.Fatal(err)
	}
	if err := r.forget("s"); err != nil {
		t.Fatal(err)
	}
	row, err := r.enabledServer(t.Context(), "s", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.liveList(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	r.put(t, `{"version":1,"servers":{"s":{"deny":["b"]}}}`)
	for tool, want := range map[string]string{"b": "trust deny b", "c": "tool list", "d": ruleDeny + "p-1"} {
		if got := r.rule(t, "s", tool); got != want {
			t.Errorf("%s: %q, want %q", tool, got, want)
		}
	}
	r.put(t, `{"version":1,"servers":{"s":{"deny":["nothing"]}}}`)
	r.cfg.Policy = newPolicy(policyConfig{Mode: modeDanger, Root: r.dir})
	if got := r.rule(t, "s", "a"); got != "pin" {
		t.Errorf("changed tool: %q", got)
	}
	if got := refuseTool(toolRef{"s", "a"}, bridgeTool{State: stateWithheld, Trust: trustVerdict{Deny: true, Rule: "trust deny a"}}); got.Rule != "pin" {
		t.Errorf("a withheld tool that trust denies: %q", got.Rule)
	}
}

// A change of the file counts from the next call on, also where a question was open meanwhile; one that cannot be relied on stops every call and
// every offer (POL-09), and a call that cannot be judged is in the log.
func TestTrustChanges(t *testing.T) {
	t.Parallel()
	r := newTrustRig(t, modePrompt, choiceYes)
	r.add(t, trustServer(t, "s", "a", "b"))
	call := func() (toolResult, error) {
		return r.callTool(t.Context(), toolRef{"s", "a"}, toolCall{Args: json.RawMessage(`{}`)})
	}
	if res, err := call(); err != nil || res.Rule != "" {
		t.Fatalf("%+v, %v", res, err)
	}
	state := func() any {
		s, err := r.stamp(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s.trust
	}
	r.put(t, `{"version":1,"servers":{"s":{"allow":["a"]}}}`)
	first := state()
	if first != state() || first == (*trustRules)(nil) {
		t.Error("the same file is another state")
	}
	r.cfg.Policy = newPolicy(policyConfig{Mode: modePrompt, Root: r.dir, Prompter: trustMeanwhile{func() { r.put(t, `{"version":1,"servers":{"s":{"deny":["a"]}}}`) }}})
	if res, err := call(); err != nil || res.Rule != "trust deny a" {
		t.Errorf("denied while the question was open: %+v, %v", res, err)
	}
	r.confirmed = false
	r.put(t, `{"version":1,"servers":{"s":{"allow":["a"]}}}`)
	if got := r.rule(t, "s", "a"); got != ruleTrustUnconfirmed {
		t.Errorf("not confirmed: %q", got)
	}
	r.put(t, `{"version":1,"servers":{"s":{"deny":["a"]}}}`)
	if got := r.rule(t, "s", "a"); got != "trust deny a" { // what narrows counts always
		t.Errorf("a deny that nobody confirmed: %q", got)
	}
	for name, spoil := range map[string]func(file string) error{
		"not JSON": func(file string) error { return os.WriteFile(file, []byte("deny all"), 0o600) },
		"linked":   func(file string) error { os.Remove(file); return os.Symlink(file+".real", file) },
	} {
		if err := spoil(filepath.Join(r.cfg.Trust.Dir, trustName)); err != nil {
			t.Fatal(err)
		}
		if _, err := call(); err == nil || !strings.Contains(err.Error(), ".tai/trust.json") || failure(err).Hint == "" {
			t.Errorf("POL-09 %s: %v", name, err)
		}
		if _, err := r.offered(t.Context()); err == nil {
			t.Errorf("POL-09 %s: tools are offered", name)
		}
		if f, err := r.foreseeTool(t.Context(), toolRef{"s", "a"}, toolCall{}); err != nil || f.Rule != ruleTrustFile || f.Decision != forecastDeny {
			t.Errorf("POL-09 %s: %+v, %v", name, f, err)
		}
	}
}

// trustMeanwhile says yes after something happened.
type trustMeanwhile struct{ do func() }

func (m trustMeanwhile) confirm(_ context.Context, _ consent) (consentAnswer, error) {
	m.do()
	return consentAnswer{Key: choiceYes}, nil
}

// Tools that trust shuts out take no place among those that are offered.
func TestTrustCap(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range mcpMaxTools + 20 {
		names = append(names, "t"+string(rune('a'+i/26))+string(rune('a'+i%26)))
	}
	r := newTrustRig(t, modeDanger, "")
	r.add(t, trustServer(t, "many", names...))
	r.put(t, `{"version":1,"servers":{"many":{"deny":["ta*"]}}}`) // 26 of them
	offered, err := r.offered(t.Context())
	if err != nil || len(offered) != len(names)-26 {
		t.Fatalf("%d offered, %v", len(offered), err)
	}
	row, err := r.enabledServer(t.Context(), "many", "")
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.storedList(t.Context(), row)
	if err != nil || slices.ContainsFunc(list, func(l listedTool) bool { return l.State == stateOverCap }) {
		t.Errorf("over the cap: %v", err)
	}
}
