package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// findRig is a toolbox with tool_search and 240 bridged tools besides a lion's.
func findRig(t *testing.T, more ...toolDef) (*toolsBox, *fakeSource) {
	t.Helper()
	var box *toolsBox
	src := selectMany()
	src.defs = append(src.defs, more...)
	tools := append(selectNatives(1, 1), findTools(func() (toolFinder, error) { return box.toolbox, nil })...)
	box = newToolsBox(t, modeReadOnly, src, tools...)
	return box, src
}

type findAnswer struct {
	Tools []struct {
		Name, Server, Tool, Description string
		InputSchema                     json.RawMessage
		Score                           float64
	}
	Left int `json:"left_out"`
}

// F18: what a request leaves out can be seen on demand, with what it takes to call it.
func TestF18ToolSearch(t *testing.T) {
	t.Parallel()
	lion := toolDef{Name: "mcp_zoo_feed_lion", Description: "Feed the lion.\nWith meat.", InputSchema: json.RawMessage(`{"type":"object","properties":{"meat":{"type":"string"}}}`)}
	wide := toolDef{Name: "mcp_zoo_wide", Description: "Zebra.", InputSchema: json.RawMessage(`{"type":"object","description":"` + strings.Repeat("x", findSchemaMax) + `"}`)}
	box, src := findRig(t, lion, wide)
	for _, tc := range []struct {
		name, args string
		first      string
		shown, out int
		text       string
	}{
		{"by words", `{"query":"give a lion its meat"}`, "mcp_zoo_feed_lion", 2, 0, "mcp_zoo_feed_lion (zoo/feed_lion): Feed the lion.\n"},
		{"by name", `{"query":"Zoo/Feed_Lion"}`, "mcp_zoo_feed_lion", 2, 0, ""},
		{"native ones too", `{"query":"dir_list"}`, "dir_list", findLimit, 240 + 2 - findLimit, "dir_list: Does it.\n"},
		{"many", `{"query":"search files"}`, "mcp_s0_search_list_file_00", findLimit, 240 + 2 - findLimit, "more fit and are left out"},
		{"limit", `{"query":"search files","limit":3}`, "mcp_s0_search_list_file_00", 3, 240 + 2 - 3, "239 more"},
		{"server", `{"query":"search files","server":"s2","limit":50}`, "mcp_s2_search_list_file_00", 50, 10, ""},
		{"family", `{"query":"search files","server":"files"}`, "text_search", 2, 0, ""},
		{"nothing fits", `{"query":"xyzzy"}`, "", 0, 0, "no tool fits"},
	} {
		r, err := box.dispatch(t.Context(), toolCall{Name: "tool_search", Args: json.RawMessage(tc.args)})
		if err != nil || r.IsError || !strings.Contains(r.Text, tc.text) {
			t.Errorf("%s: %+v, %v, want %q", tc.name, r, err, tc.text)
			continue
		}
		var got findAnswer
		if err := json.Unmarshal(r.Structured, &got); err != nil {
			t.Fatalf("%s: %v: %s", tc.name, err, r.Structured)
		}
		var names []string
		for _, tl := range got.Tools {
			names = append(names, tl.Name)
		}
		if len(got.Tools) != tc.shown || got.Left != tc.out || append(names, "")[0] != tc.first || !slices.Equal(names, r.Found) {
			t.Errorf("%s: %d shown, %d left out, %q; want %d, %d, %q first; to be offered: %q", tc.name, len(got.Tools), got.Left, names, tc.shown, tc.out, tc.first, r.Found)
		}
	}
	r, err := box.dispatch(t.Context(), toolCall{Name: "tool_search", Args: json.RawMessage(`{"query":"lion zebra","server":"zoo"}`)})
	var got findAnswer
	if err := errors.Join(err, json.Unmarshal(r.Structured, &got)); err != nil || len(got.Tools) != 2 {
		t.Fatalf("%s, %v", r.Structured, err)
	}
	for _, tl := range got.Tools {
		if want := map[string]string{"feed_lion": string(lion.InputSchema), "wide": ""}[tl.Tool]; string(tl.InputSchema) != want || tl.Server != "zoo" || tl.Score <= 0 {
			t.Errorf("%+v, want the schema %q", tl, want)
		}
	}
	for name, args := range map[string]string{"unknown server": `{"query":"lion","server":"nope"}`, "empty query": `{"query":""}`, "no limit": `{"query":"x","limit":0}`} {
		if r, err := box.dispatch(t.Context(), toolCall{Name: "tool_search", Args: json.RawMessage(args)}); err != nil || !r.IsError || r.Rule != "" {
			t.Errorf("%s: %+v, %v, want a failed result", name, r, err)
		}
	}
	src.err = errors.New("vault closed")
	if r, err := box.dispatch(t.Context(), toolCall{Name: "tool_search", Args: json.RawMessage(`{"query":"lion"}`)}); err != nil || !r.IsError || !strings.Contains(r.Text, "vault closed") {
		t.Errorf("a bridge that fails: %+v, %v", r, err)
	}
}

// An answer stays inline however long the descriptions are, and counts what it had no room for.
func TestToolSearchBounded(t *testing.T) {
	t.Parallel()
	var defs []toolDef
	for i := range 50 {
		defs = append(defs, toolDef{Name: fmt.Sprintf("mcp_zoo_lion%02d", i), Description: "Lion. " + strings.Repeat("\"roar\" ", 500),
			InputSchema: json.RawMessage(`{"type":"object","title":"` + strings.Repeat("y", 2000) + `"}`)})
	}
	box, _ := findRig(t, defs...)
	r, err := box.dispatch(t.Context(), toolCall{Name: "tool_search", Args: json.RawMessage(`{"query":"lion","limit":50}`)})
	var got findAnswer
	if err := errors.Join(err, json.Unmarshal(r.Structured, &got)); err != nil || r.Record != "" {
		t.Fatalf("%v: record %q", err, r.Record)
	}
	if n := len(got.Tools); n < 2 || n+got.Left != 50 || len(r.Structured) > findTextMax+100 || !strings.Contains(r.Text, fmt.Sprint(50-n, " more fit")) {
		t.Errorf("%d shown, %d left out, %d bytes", n, got.Left, len(r.Structured))
	}
}

// What a search found is offered in the next step, behind what was there, and in the turns after; never more than the limit (F18).
func TestF18FoundIsOffered(t *testing.T) {
	t.Parallel()
	lion := toolDef{Name: "mcp_zoo_feed_lion", Description: "Feed the lion."}
	box, _ := findRig(t, lion)
	rig := agentRigOver(box, agentWants(chatToolCall{"a", "tool_search", `{"query":"lion"}`}), agentWants(chatToolCall{"b", lion.Name, `{}`}), agentSays("fed"), agentSays("again"))
	for _, message := range []string{selectMessage, selectMessage} {
		if _, err := rig.runTurn(t.Context(), message); err != nil {
			t.Fatal(err)
		}
	}
	var offered [][]string
	for _, req := range rig.model.requests {
		var names []string
		for _, tl := range req.Tools {
			names = append(names, tl.Name)
		}
		if len(names) != toolMaxOffered {
			t.Errorf("%d tools are offered, want %d", len(names), toolMaxOffered)
		}
		offered = append(offered, names)
	}
	last := toolMaxOffered - 1
	if slices.Contains(offered[0], lion.Name) || offered[1][last] != lion.Name || !slices.Equal(offered[0][:last], offered[1][:last]) {
		t.Errorf("the found tool does not take the last place: %q, then %q", offered[0][last], offered[1][last])
	}
	if !slices.Equal(offered[1], offered[2]) || !slices.Contains(offered[3], lion.Name) {
		t.Error("the found tool does not stay")
	}
}

// What the person named in one message is there in the next, by its bridged name or as its server names it (F18).
func TestF18NamedStays(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mcp_zoo_feed_lion", "Zoo/Feed_Lion"} {
		box, _ := findRig(t, toolDef{Name: "mcp_zoo_feed_lion", Title: "zoo/feed_lion", Description: "Feed the lion."})
		rig := agentRigOver(box, agentSays("one"), agentSays("two"))
		for _, message := range []string{"there is " + name, selectMessage} {
			if _, err := rig.runTurn(t.Context(), message); err != nil {
				t.Fatal(err)
			}
		}
		for i, req := range rig.model.requests {
			if !slices.ContainsFunc(req.Tools, func(tl chatTool) bool { return tl.Name == "mcp_zoo_feed_lion" }) {
				t.Errorf("named as %s, the tool is not offered in request %d", name, i)
			}
		}
	}
}

// The same search from the shell.
func TestToolsSearchCommand(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	r := &docRig{t: t, home: home, dir: t.TempDir(), env: map[string]string{"TAI_HOME": home, "HOME": home}}
	for _, tc := range []struct {
		words     string
		exit      int
		out, errs string // how they begin
	}{
		{"search file contents", 0, "text_search: ", ""},
		{"tool_search", 0, "tool_search: ", ""},
		{"find", 0, "file_find: ", ""},
		{"run a command --server shell", 0, "shell_run: ", ""},
		{"file --limit 1", 0, "file_read: ", ""},
		{"xyzzy", 0, "", "no tool fits"},
		{"file --server nope", 1, "", `tai: not found: no tool is offered of a server "nope"`},
		{"file --limit none", 2, "", "tai: --limit takes a whole number"},
		{"", 2, "", "tai: "},
	} {
		code, out, errs := r.run("", append([]string{"tools", "search"}, strings.Fields(tc.words)...)...)
		if code != tc.exit || !strings.HasPrefix(out, tc.out) || (tc.out == "") != (out == "") || tc.out == "" && !strings.HasPrefix(errs, tc.errs) {
			t.Errorf("tai tools search %s: exit %d, want %d\n%s%s", tc.words, code, tc.exit, out, errs)
		}
		if tc.words == "file --limit 1" && (strings.Count(out, "\n") != 1 || !strings.Contains(errs, "more fit; --limit N shows more")) {
			t.Errorf("tai tools search %s gives\n%s%s", tc.words, out, errs)
		}
	}
}
