package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// profileRig is a toolbox with the profile tools, over profiles default and work, with the server files enabled in work alone.
func profileRig(t *testing.T, mode approvalMode) (box *toolsBox, used *[]string) {
	t.Helper()
	used = &[]string{}
	d := profileDesk{
		vault: func(context.Context) (*vault, error) { return box.vault, nil }, current: func(context.Context) (string, error) { return profileDefault, nil },
		use:   func(_ context.Context, name string) error { *used = append(*used, name); return nil },
		model: func(context.Context) string { return "openai/m" }, mode: func() string { return "prompt" }, limits: map[string]rateLimit{"shell_run": {Calls: 10, PerS: 60}},
	}
	box = newToolsBox(t, mode, nil, profileTools(d)...)
	entry := serverEntry{Name: "files", Transport: "stdio", Command: "x", Source: "explicit"}
	tools := []toolRow{{Tool: "read", Hash: strings.Repeat("a", 64)}, {Tool: "new"}}
	if err := errors.Join(box.vault.createProfile(t.Context(), "work"), box.vault.putServer(t.Context(), entry, "work", true, tools, mcpMaxServers)); err != nil {
		t.Fatal(err)
	}
	return box, used
}

func TestProfileList(t *testing.T) {
	t.Parallel()
	box, _ := profileRig(t, modeReadOnly)
	r := toolsRun(t, box, "profile_list", `{}`)
	const foot = "in every profile of this run: model openai/m, permission mode prompt\nlimit in this workspace: shell_run, 10 calls in 60 s\n"
	if want := "default  current  no server enabled\nwork  servers: files (1 tool)\n" + foot; r.IsError || r.Text != want {
		t.Errorf("%+v, want %q", r, want)
	}
	var doc struct {
		Profiles []profileJSON
		Mode     string
	}
	if err := json.Unmarshal(r.Structured, &doc); err != nil || len(doc.Profiles) != 2 || !doc.Profiles[0].Stored || doc.Profiles[1].Current || fmt.Sprint(doc.Profiles[1].Servers) != "[{files 1}]" || doc.Mode != "prompt" {
		t.Errorf("%+v, %v", doc, err)
	}
	if r := toolsRun(t, box, "profile_list", `{"name":"work"}`); r.IsError || r.Text != "work  servers: files (1 tool)\n"+foot {
		t.Errorf("%+v", r)
	}
	for args, want := range map[string]string{`{"name":"none"}`: `property "name": there is no profile "none"`, `{"name":""}`: "name", `{"name":1}`: "name", `{"all":true}`: "all"} {
		if r := toolsRun(t, box, "profile_list", args); !r.IsError || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %+v, want %q", args, r, want)
		}
	}
}

func TestProfileUse(t *testing.T) {
	t.Parallel()
	box, used := profileRig(t, modeAllow)
	r := toolsRun(t, box, "profile_use", `{"name":"work"}`)
	if r.IsError || !strings.HasPrefix(r.Text, "this run works in profile work from now on; it was default before\nwork  current  servers: files (1 tool)") || strings.Join(*used, " ") != "work" ||
		string(r.Structured) != `{"name":"work","before":"default","servers":[{"name":"files","tools":1}]}` || r.Shown == "" {
		t.Errorf("%+v, used %q", r, *used)
	}
	*used = nil
	for args, want := range map[string]string{`{"name":"none"}`: `there is no profile "none"`, `{}`: "name", `{"name":""}`: "name", `{"name":"work","keep":true}`: "keep"} {
		if r := toolsRun(t, box, "profile_use", args); !r.IsError || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %+v, want %q", args, r, want)
		}
	}
	for _, origin := range []string{"mcp", "http"} {
		r, err := box.dispatch(t.Context(), toolCall{Name: "profile_use", Args: json.RawMessage(`{"name":"work"}`), Origin: origin})
		if err != nil || !r.IsError || !strings.Contains(r.Text, "a served session stays in the profile") || r.Hint == "" {
			t.Errorf("%s: %+v, %v", origin, r, err)
		}
	}
	asks, _ := profileRig(t, modePrompt)
	if r := toolsRun(t, asks, "profile_use", `{"name":"work"}`); r.Rule != ruleNobody {
		t.Errorf("%+v", r)
	}
	if len(*used) != 0 {
		t.Errorf("used %q", *used)
	}
}

// A run that is switched offers and calls what its new profile has, and nothing that the old one had; the stored choice stays.
func TestSwitchProfile(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.addFake("fake", fakeStdio{})
	r.tai("profile", "create", "work").ok()
	a, err := openApp(outside{Getenv: r.getenv, Environ: r.environ(), Stdin: strings.NewReader(""), Stdout: &strings.Builder{}, Stderr: &strings.Builder{}, GOOS: runtime.GOOS, Now: time.Now, Dir: r.dir}, nil, storeWrite, "cli")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	}()
	box, err := a.toolbox()
	if err != nil {
		t.Fatal(err)
	}
	call := func(name, args string) toolResult {
		t.Helper()
		res, err := box.dispatch(t.Context(), toolCall{Name: name, Args: json.RawMessage(args), Person: true, Origin: "cli"})
		if err != nil {
			return toolResult{Text: err.Error(), IsError: true}
		}
		return res
	}
	offered := func() int {
		t.Helper()
		list, err := a.bridge.offered(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	there := func(want bool) {
		t.Helper()
		for range 2 { // the second one may be answered from the memo
			if res := call("mcp_call", `{"server":"fake","tool":"echo","args":{"a":"b"}}`); (res.IsError || res.Rule != "") == want {
				t.Errorf("called: %+v, want it there: %v", res, want)
			}
		}
		if (offered() > 0) != want {
			t.Errorf("%d tools are offered", offered())
		}
	}
	there(true)
	if res := call("profile_use", `{"name":"work"}`); res.IsError {
		t.Fatalf("%+v", res)
	}
	there(false)
	if a.bridge.mu.Lock(); len(a.bridge.conns) != 0 {
		t.Errorf("%d connections are left", len(a.bridge.conns))
	}
	a.bridge.mu.Unlock()
	if res := call("profile_use", `{"name":"default"}`); res.IsError || !strings.Contains(res.Text, "it was work before") {
		t.Fatalf("%+v", res)
	}
	there(true)
	if err := a.switchProfile(t.Context(), "none"); err == nil || a.profileWord() != "default" {
		t.Errorf("switched to one that is not there: %v, %q", err, a.profileWord())
	}
	if got := r.tai("profile", "list").ok(); !strings.Contains(got, "* default\n") {
		t.Errorf("the stored choice: %s", got)
	}
}

// After a switch the same turn goes on with the tools of the other profile, and without those of the one before.
func TestProfileUseOffersAnew(t *testing.T) {
	t.Parallel()
	src := &fakeSource{defs: []toolDef{{Name: "mcp_old_x", Description: "Old."}}}
	var box *toolsBox
	d := profileDesk{
		vault: func(context.Context) (*vault, error) { return box.vault, nil }, current: func(context.Context) (string, error) { return "other", nil },
		use: func(context.Context, string) error {
			src.defs = []toolDef{{Name: "mcp_new_x", Description: "New."}}
			return nil
		},
		model: func(context.Context) string { return "" }, mode: func() string { return "allow" },
	}
	box = newToolsBox(t, modeAllow, src, profileTools(d)...)
	rig := agentRigOver(box, agentWants(chatToolCall{ID: "a", Name: "profile_use", Args: `{"name":"default"}`}), agentSays("done"))
	if _, err := rig.runTurn(t.Context(), "switch"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rig.model.requests {
		names := []string{}
		for _, tl := range r.Tools {
			names = append(names, tl.Name)
		}
		got = append(got, strings.Join(names, " "))
	}
	if want := "profile_list profile_use mcp_old_x|profile_list profile_use mcp_new_x"; strings.Join(got, "|") != want {
		t.Errorf("offered %q, want %q", got, want)
	}
}

// The calls of an agent that follows the run are made in no profile of its own.
func TestAgentFollowsProfile(t *testing.T) {
	t.Parallel()
	for _, follows := range []bool{true, false} {
		a := newAgent(agentConfig{Profile: "work", Follows: follows})
		if got, want := a.toolCall(chatToolCall{}, nil).Profile, map[bool]string{false: "work"}[follows]; got != want {
			t.Errorf("follows %v: %q, want %q", follows, got, want)
		}
	}
}

// F18: what people say of secrets, profiles, records, tasks and plans finds the tool for it first, among all native ones.
func TestF18OwnToolsRankFirst(t *testing.T) {
	t.Parallel()
	box := newToolsBox(t, modePrompt, nil, rankNatives(t)...)
	for words, want := range map[string]string{
		"store my API key": "secret_set", "which secrets are stored": "secret_list", "forget a password": "secret_delete", "switch to another profile": "profile_use", "what profiles are there": "profile_list",
		"update the todo list": "todo_write", "show the person my plan before changing anything": "plan_submit", "read the rest of a result that was too long": "record_read",
		"search in a record": "record_search", "list the kept results": "record_list", "read a text file": "file_read", "search file contents": "text_search",
	} {
		found, _, err := box.search(t.Context(), toolQuery{Words: words, Limit: 1})
		if err != nil || len(found) != 1 || found[0].Name != want {
			t.Errorf("%q finds %+v, %v, want %s", words, found, err, want)
		}
	}
}

// rankNatives gives every native tool of a run.
func rankNatives(t *testing.T) []tool {
	t.Helper()
	a := &app{root: t.TempDir()}
	tools, err := a.nativeTools()
	if err != nil {
		t.Fatal(err)
	}
	return tools
}
