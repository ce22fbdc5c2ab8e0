package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTodoWrite(t *testing.T) {
	t.Parallel()
	box := newToolsBox(t, modeReadOnly, nil, todoTools()...)
	for _, tc := range []struct {
		name, args, want string
		isError          bool
	}{
		{"states", `{"items":[{"text":"look","status":"done"},{"text":"write","status":"in_progress"},{"text":"test"}]}`, "[x] look\n[>] write\n[ ] test\n1 of 3 tasks done\n", false},
		{"one", `{"items":[{"text":"a\nb\u001b[2J","status":"pending"}]}`, `[ ] a\nb\u001b[2J` + "\n0 of 1 task done\n", false},
		{"none", `{"items":[]}`, "the task list is empty\n", false},
		{"a secret", `{"items":[{"text":"use hush-hush-1"}]}`, "[ ] use [secret:TOKEN]\n", false},
		{"no items", `{}`, "items", true},
		{"an unknown state", `{"items":[{"text":"a","status":"half"}]}`, "status", true},
		{"no text", `{"items":[{"status":"done"}]}`, "text", true},
		{"a blank text", `{"items":[{"text":"a"},{"text":"  "}]}`, `property "items": expected a text in item 2`, true},
		{"a long text", `{"items":[{"text":"` + strings.Repeat("x", todoTextMax+1) + `"}]}`, "text", true},
		{"more of an item", `{"items":[{"text":"a","id":1}]}`, "id", true},
		{"too many", `{"items":[` + strings.Repeat(`{"text":"a"},`, todoMax) + `{"text":"a"}]}`, "items", true},
		{"no list", `{"items":"a"}`, "items", true},
	} {
		r := toolsRun(t, box, "todo_write", tc.args)
		if r.IsError != tc.isError || !strings.Contains(r.Text, tc.want) || !tc.isError && (!strings.HasPrefix(r.Text, r.Shown) || !strings.Contains(r.Shown, tc.want) || strings.Contains(r.Shown, "hush")) {
			t.Errorf("%s: %+v, want %q", tc.name, r, tc.want)
		}
	}
}

// The list is that of the last call of the conversation that did not fail: also after it was read back, also behind a summary.
func TestTodoBelongsToTheSession(t *testing.T) {
	t.Parallel()
	write := func(id, text string) chatToolCall {
		return chatToolCall{ID: id, Name: "todo_write", Args: `{"items":[{"text":"` + text + `"}]}`}
	}
	rig := newAgentRig(t, modePrompt, todoTools(), agentSays("hello"),
		agentWants(write("a", "first"), write("b", "second"), chatToolCall{ID: "c", Name: "todo_write", Args: `{"items":7}`}), agentSays("done"), agentSays("later"))
	list := func() ([]todoItem, error) {
		rows, err := rig.box.vault.messages(t.Context(), rig.session)
		if err != nil {
			t.Fatal(err)
		}
		return lastTodo(rows)
	}
	if rig.Tools.reading(toolCall{Name: "todo_write", Args: json.RawMessage(`{"items":[]}`)}) {
		t.Error("two lists of one reply may be written at the same time, though the second counts")
	}
	say := func(text string) {
		t.Helper()
		if _, err := rig.runTurn(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	say("hi")
	if _, err := list(); !errors.Is(err, errNoTodo) {
		t.Errorf("before a list: %v", err)
	}
	say("plan it")
	say("and then")
	if items, err := list(); err != nil || len(items) != 1 || items[0] != (todoItem{"second", todoPending}) {
		t.Errorf("%+v, %v", items, err)
	}
	mark := storedMessage{Role: roleCompact, Content: "a summary", Meta: json.RawMessage(`{"compaction":{"keep_from":99,"by":"model","tokens":5}}`)}
	if err := rig.box.vault.appendMessages(t.Context(), rig.session, []storedMessage{mark}); err != nil {
		t.Fatal(err)
	}
	if items, err := list(); err != nil || len(items) != 1 {
		t.Errorf("behind a summary: %+v, %v", items, err)
	}
}

// The sink of a screen shows the list whole and made safe.
func TestTodoShown(t *testing.T) {
	t.Parallel()
	var notes strings.Builder
	s := &textSink{out: &notes, notes: &notes, screen: true, redact: func(s string) string { return s }, mask: newRedactor(nil).stream()}
	s.toolFinished(chatToolCall{Name: "todo_write"}, toolResult{Text: "x", Shown: todoText([]todoItem{{"look", todoDone}, {"write", todoDoing}})}, time.Second)
	if got := notes.String(); !strings.HasSuffix(got, "  [x] look\n  [>] write\n  1 of 2 tasks done\n") {
		t.Errorf("%q", got)
	}
}
