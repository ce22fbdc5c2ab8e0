package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// vaultToolsBox is a toolbox with the tools over a vault.
func vaultToolsBox(t *testing.T, mode approvalMode) *toolsBox {
	t.Helper()
	var box *toolsBox
	open := func(context.Context) (*vault, error) { return box.vault, nil }
	box = newToolsBox(t, mode, nil, append(memoryTools(open, func(s string) string { return box.redact(s) }), sessionTools(open)...)...)
	return box
}

// toolTestCall runs a call and wants it done, or failed with every one of the texts.
func toolTestCall(t *testing.T, box *toolbox, c toolCall, name, args string, fails ...string) toolResult {
	t.Helper()
	c.Name, c.Args = name, json.RawMessage(args)
	r, err := box.dispatch(t.Context(), c)
	if err != nil {
		t.Fatalf("%s %s: %v", name, args, err)
	}
	if r.IsError != (len(fails) > 0) {
		t.Fatalf("%s %s: %+v", name, args, r)
	}
	for _, s := range fails {
		if !strings.Contains(r.Text+r.Hint, s) {
			t.Errorf("%s %s: no %q in %s (%s)", name, args, s, r.Text, r.Hint)
		}
	}
	if e := box.byName[name]; !r.IsError && len(r.Structured) > 0 {
		out, err := compileSchema(e.tool.Output)
		if err == nil {
			err = out.validate(r.Structured)
		}
		if err != nil {
			t.Errorf("%s %s: %s: %v", name, args, r.Structured, err)
		}
	}
	return r
}

func toolTestDoc[T any](t *testing.T, r toolResult) (doc T) {
	t.Helper()
	if err := json.Unmarshal(r.Structured, &doc); err != nil {
		t.Fatalf("%s: %v", r.Structured, err)
	}
	return doc
}

func TestMemoryTools(t *testing.T) {
	t.Parallel()
	box := vaultToolsBox(t, modeAllow)
	here := toolCall{Profile: "work", Session: "s-1"}
	call := func(name, args string, fails ...string) toolResult {
		t.Helper()
		return toolTestCall(t, box.toolbox, here, name, args, fails...)
	}
	first := call("memory_save", `{"text":"the build runs by make","key":"Build","tags":["Go","ci"]}`)
	e := toolTestDoc[memoryEntry](t, first)
	if first.Text != "saved "+e.ID+" under Build\n" || e.Profile != "work" || e.Session != "s-1" || strings.Join(e.Tags, " ") != "ci go" || e.Updated == "" {
		t.Errorf("%s %+v", first.Text, e)
	}
	if r := call("memory_save", `{"text":"the build runs by make","key":"build"}`); r.Text != "unchanged "+e.ID+" under Build: the same text is kept already\n" {
		t.Error(r.Text)
	}
	if r := call("memory_save", `{"text":"the build runs by just","key":"build"}`); r.Text != "changed "+e.ID+" under Build: 1 earlier text kept\n" {
		t.Error(r.Text)
	}
	for i := range 12 {
		call("memory_save", fmt.Sprintf(`{"text":"fact %d\nof the garden"}`, i))
	}
	found := call("memory_search", `{"query":"BUILD"}`)
	if !strings.HasPrefix(found.Text, e.ID+"  Build  ") || !strings.HasSuffix(found.Text, "  [ci, go]  (1 earlier text)\n  the build runs by just\n") {
		t.Error(found.Text)
	}
	type results struct {
		Memories []memoryEntry
		Left     int `json:"left_out"`
	}
	if r := call("memory_search", `{}`); toolTestDoc[results](t, r).Left != 3 || !strings.Contains(r.Text, "fact 11\n  of the garden\n") || !strings.Contains(r.Text, "3 more fit") {
		t.Error(r.Text)
	}
	if doc := toolTestDoc[results](t, call("memory_search", `{"query":"","tags":["GO"],"limit":1}`)); len(doc.Memories) != 1 || doc.Memories[0].ID != e.ID || doc.Left != 0 {
		t.Errorf("%+v", doc)
	}
	if r := call("memory_search", `{"query":"nowhere"}`); !strings.Contains(r.Text, "no memory fits") || string(r.Structured) != `{"memories":[],"left_out":0}` {
		t.Errorf("%s %s", r.Text, r.Structured)
	}
	if r := call("memory_delete", `{"id":"BUILD"}`); !strings.HasPrefix(r.Text, "forgotten, with 1 earlier text:\n"+e.ID) {
		t.Error(r.Text)
	}
	call("memory_delete", `{"id":"`+e.ID+`"}`, "id: no memory is called", "nothing was deleted", "memory_search")
	for name, list := range map[string][][2]string{
		"memory_save": {{`{}`, "text"}, {`{"text":""}`, "text"}, {`{"text":" "}`, "text"}, {`{"text":1}`, "text"}, {`{"text":"x","key":""}`, "key"}, {`{"text":"x","key":"a\nb"}`, "key"}, {`{"text":"x","key":"m-1"}`, "key"},
			{`{"text":"x","tags":"a"}`, "tags"}, {`{"text":"x","tags":[""]}`, "tags"}, {`{"text":"x","more":1}`, "more"}, {`{"text":"` + strings.Repeat("é", memoryTextMax*2/3) + `"}`, "at most 4096"}, {`{"text":"` + strings.Repeat("x", memoryTextMax+1) + `"}`, "text"}},
		"memory_search": {{`{"query":1}`, "query"}, {`{"tags":[1]}`, "tags"}, {`{"limit":0}`, "limit"}, {`{"limit":51}`, "limit"}, {`{"tags":["a\nb"]}`, "tags"}},
		"memory_delete": {{`{}`, "id"}, {`{"id":""}`, "id"}, {`{"id":5}`, "id"}},
	} {
		for _, bad := range list {
			call(name, bad[0], bad[1])
		}
	}
	read := vaultToolsBox(t, modeReadOnly)
	if r, err := read.dispatch(t.Context(), toolCall{Name: "memory_delete", Args: json.RawMessage(`{"id":"x"}`)}); err != nil || r.Rule == "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A known secret is never kept, however it is spelled, in the text, the key or a tag; what is kept before it is known is masked on the way out.
func TestMemorySecrets(t *testing.T) {
	t.Parallel()
	box := vaultToolsBox(t, modeAllow)
	const value = "hush-hush-1"
	for _, text := range []string{value, "it is " + value + ".", base64.StdEncoding.EncodeToString([]byte(value))} {
		for _, args := range []string{`{"text":%q}`, `{"text":"x","key":%q}`, `{"text":"x","tags":[%q]}`} {
			r := toolTestCall(t, box.toolbox, toolCall{}, "memory_save", fmt.Sprintf(args, text), "nothing was saved", "${NAME}")
			if strings.Contains(r.Text+r.Hint, value) {
				t.Error(r.Text)
			}
		}
	}
	if list, total, err := box.vault.searchMemories(t.Context(), memoryQuery{Limit: 9}); err != nil || total != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, _, err := box.vault.saveMemory(t.Context(), memory{Text: "once " + value}); err != nil {
		t.Fatal(err)
	}
	if r := toolTestCall(t, box.toolbox, toolCall{}, "memory_search", `{"query":"once"}`); !strings.Contains(r.Text, "once [secret:TOKEN]") || strings.Contains(string(r.Structured), value) {
		t.Errorf("%s %s", r.Text, r.Structured)
	}
}

func TestSessionTools(t *testing.T) {
	t.Parallel()
	box := vaultToolsBox(t, modeReadOnly)
	id := messageTestSession(t, box.vault, "tea", "user when is the tea ready?", "assistant I look", "tool kettle "+strings.Repeat("x", 500), "assistant at four", "user and the milk?", "assistant "+strings.Repeat("milk ", 2000), "user thanks hush-hush-1")
	calls := []storedMessage{{Role: "assistant", ToolCalls: json.RawMessage(`[{"id":"c1","name":"file_read","args":"{\"path\":\"` + strings.Repeat("p", 400) + `\"}"}]`)}, {Role: "tool", ToolCallID: "c1", Content: "no such file", Meta: json.RawMessage(`{"is_error":true}`)}, {Role: "compaction", Content: "tea was had", Meta: json.RawMessage(`{"compaction":{"keep_from":5,"by":"model","tokens":5}}`)}}
	if err := box.vault.appendMessages(t.Context(), id, calls); err != nil {
		t.Fatal(err)
	}
	other := messageTestSession(t, box.vault, "other", "user the tea again")
	call := func(c toolCall, name, args string, fails ...string) toolResult {
		t.Helper()
		return toolTestCall(t, box.toolbox, c, name, args, fails...)
	}
	type hits struct {
		Hits []sessionHit
		Left int `json:"left_out"`
		More bool
	}
	r := call(toolCall{}, "session_search", `{"query":"tea"}`)
	if doc := toolTestDoc[hits](t, r); len(doc.Hits) != 2 || doc.Hits[0].Session != other || doc.Hits[1] != (sessionHit{id, "tea", "/tea", "", 1, 1, "user", doc.Hits[1].Time, "when is the tea ready?"}) || doc.More {
		t.Errorf("%+v", doc)
	}
	if !strings.HasPrefix(r.Text, other+" turn 1  ") || !strings.Contains(r.Text, "\n  when is the tea ready?\n") {
		t.Error(r.Text)
	}
	if doc := toolTestDoc[hits](t, call(toolCall{Session: other}, "session_search", `{"query":"tea","limit":1}`)); len(doc.Hits) != 1 || doc.Hits[0].Session != id {
		t.Errorf("its own session: %+v", doc)
	}
	if r := call(toolCall{}, "session_search", `{"query":"tea","limit":1}`); !strings.Contains(r.Text, "1 hit left out") {
		t.Error(r.Text)
	}
	if r := call(toolCall{}, "session_search", `{"query":"\"\u0000"}`); !strings.Contains(r.Text, "no past conversation") {
		t.Error(r.Text)
	}
	part := toolTestDoc[sessionPart](t, call(toolCall{}, "session_read", `{"id":"`+strings.ToUpper(id)+`","limit":2}`))
	if part.Turns != 3 || part.Next != 3 || len(part.Messages) != 6 || part.Messages[2].Bytes != 507 || len(part.Messages[2].Text) > sessionResultMax+60 || part.Messages[5].Turn != 2 || part.Messages[5].Bytes != 10_000-1 && part.Messages[5].Bytes != 10_000 {
		t.Errorf("%+v", part)
	}
	r = call(toolCall{}, "session_read", `{"id":"`+id+`","from":3}`)
	part = toolTestDoc[sessionPart](t, r)
	if part.Next != 0 || len(part.Messages) != 4 || len(part.Messages[1].Calls) != 1 || part.Messages[1].Calls[0].Name != "file_read" || len(part.Messages[1].Calls[0].Arguments) > sessionArgsMax+30 || !part.Messages[2].Error || part.Messages[3].Role != roleCompact {
		t.Errorf("%+v", part)
	}
	for _, want := range []string{"\nturn 3  ", "user: thanks [secret:TOKEN]\n", "assistant calls file_read {", "tool (failed): no such file\n", "compaction: tea was had\n"} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("no %q in %s", want, r.Text)
		}
	}
	call(toolCall{}, "session_read", `{"id":"`+id+`","from":4}`, "from: the session has 3 turns")
	call(toolCall{}, "session_read", `{"id":"s-none"}`, "id: there is no session", "session_search")
	for name, list := range map[string][][2]string{
		"session_search": {{`{}`, "query"}, {`{"query":""}`, "query"}, {`{"query":"x","limit":0}`, "limit"}, {`{"query":"x","limit":51}`, "limit"}, {`{"query":"x","from":1}`, "from"}},
		"session_read":   {{`{}`, "id"}, {`{"id":""}`, "id"}, {`{"id":"x","from":0}`, "from"}, {`{"id":"x","limit":101}`, "limit"}, {`{"id":"x","limit":0}`, "limit"}},
	} {
		for _, bad := range list {
			call(toolCall{}, name, bad[0], bad[1])
		}
	}
}

// A session_read ends before the turn that would not fit, and says which; of a first turn that is too long it shows the beginning.
func TestSessionReadBound(t *testing.T) {
	t.Parallel()
	row := func(seq int, role string) storedMessage {
		return storedMessage{Seq: seq, Role: role, Content: strings.Repeat("x", sessionTextMax)}
	}
	var rows []storedMessage
	for i := range 12 {
		rows = append(rows, row(2*i+1, "user"), row(2*i+2, "assistant"))
	}
	p, err := sessionPartOf(sessionInfo{ID: "s-1"}, rows, 2, 100)
	if err != nil || len(p.Messages) != 10 || p.Next != 7 || p.Turns != 12 || p.LeftOut != 0 || !strings.Contains(p.text(), "goes on with turn 7 of 12") {
		t.Errorf("%d messages, %+v, %v", len(p.Messages), p.Next, err)
	}
	for i := range rows {
		rows[i].Role = "assistant"
	}
	p, err = sessionPartOf(sessionInfo{ID: "s-1"}, rows, 1, 1)
	if err != nil || len(p.Messages) != 10 || p.Next != 0 || p.Turns != 1 || p.LeftOut != 14 || !strings.Contains(p.text(), "14 messages of this turn left out") {
		t.Errorf("%d messages, %+v, %v", len(p.Messages), p.LeftOut, err)
	}
	if _, err := sessionPartOf(sessionInfo{}, []storedMessage{{Role: "odd"}}, 1, 1); err == nil {
		t.Error("an unknown role passed")
	}
}

// The commands of a person over the same memories.
func TestMemoryCommands(t *testing.T) {
	r := newCLIRig(t)
	if out := r.tai("memory", "list").ok(); out != "nothing is remembered\n" {
		t.Error(out)
	}
	r.tai("tools", "call", "memory_save", "text=make all", "key=build").ok()
	r.tai("tools", "call", "memory_save", "text=just all", "key=build", `tags=["go"]`).ok()
	if out := r.tai("memory", "search", "just").ok(); !strings.Contains(out, "  build  ") || !strings.HasSuffix(out, "[go]  (1 earlier text)\n  just all\n") {
		t.Error(out)
	}
	if out := r.tai("memory", "list", "--tag", "rust").ok(); out != "no memory fits\n" {
		t.Error(out)
	}
	if out := r.tai("memory", "show", "BUILD").ok(); !strings.Contains(out, "\n  just all\n\nfrom ") || !strings.HasSuffix(out, " on:\n  make all\n") {
		t.Error(out)
	}
	if out := r.tai("memory", "save", "just", "the", "same", "--key", "Build").ok(); !strings.HasPrefix(out, "changed m-") || !strings.HasSuffix(out, " under build: 2 earlier texts kept\n") {
		t.Error(out)
	}
	if out := r.tai("memory", "save", "roses are cut in March", "--tag", "garden", "--tag", "spring").ok(); !strings.HasPrefix(out, "saved m-") {
		t.Error(out)
	}
	if out := r.tai("memory", "list", "--tag", "spring").ok(); !strings.Contains(out, "[garden, spring]\n  roses are cut in March\n") {
		t.Error(out)
	}
	r.tai("memory", "save").fails(exitUsage, "TEXT")
	r.tai("memory", "save", " ").fails(exitFailed, "text")
	r.tai("memory", "save", "x", "--key", "").fails(exitUsage, "--key")
	r.tai("memory", "save", "x", "--tag", "").fails(exitUsage, "--tag")
	r.env = []string{"GATE_TOKEN=value-of-the-gate"}
	r.tai("secret", "set", "GATE_TOKEN", "--from", "env:GATE_TOKEN").ok()
	r.tai("memory", "save", "it opens by value-of-the-gate").fails(exitFailed, "nothing was saved", "${NAME}")
	r.tai("memory", "list", "--tag", "").fails(exitUsage, "--tag")
	r.tai("memory", "show", "m-none").fails(exitFailed, "m-none", "tai memory list")
	if out := r.tai("memory", "delete", "build").ok(); out != "build: deleted\n" {
		t.Error(out)
	}
	r.tai("memory", "delete", "build").fails(exitFailed, "tai memory list")
	if out := r.tai("audit", "list", "--json").ok(); !strings.Contains(out, "memory-delete build") || !strings.Contains(out, "memory-save Build") {
		t.Error(out)
	}
}
