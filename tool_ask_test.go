package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// fakeAsker answers with what it is told to.
type fakeAsker struct {
	answer string
	err    error
	asked  []string
}

func (f *fakeAsker) ask(_ context.Context, question string, choices []string, def string) (string, error) {
	f.asked = append(f.asked, question+"|"+strings.Join(choices, ",")+"|"+def)
	return f.answer, f.err
}

func TestAskUser(t *testing.T) {
	who := &fakeAsker{answer: "blue"}
	box := newToolsBox(t, modePrompt, nil, askTools(who)...)
	for _, tc := range []struct {
		args, asked, want string
		isError           bool
	}{
		{`{"question":"Which?"}`, "Which?||", "blue", false},
		{`{"question":"Which?","choices":["red","blue"],"default":"red"}`, "Which?|red,blue|red", "blue", false},
		{`{"question":"Which?","choices":["red"],"default":"green"}`, "", `property "default"`, true},
		{`{"question":""}`, "", "question", true},
		{`{}`, "", "question", true},
		{`{"question":"x","choices":"red"}`, "", "choices", true},
		{`{"question":"x","choices":[1]}`, "", "choices", true},
		{`{"question":"x","why":"y"}`, "", "why", true},
	} {
		who.asked = nil
		r := toolsRun(t, box, "ask_user", tc.args)
		if r.IsError != tc.isError || !strings.Contains(r.Text, tc.want) || strings.Join(who.asked, ";") != tc.asked {
			t.Errorf("ask_user %s: %+v, asked %q, want %q and %q", tc.args, r, who.asked, tc.want, tc.asked)
		}
	}
	who.err = errors.New("terminal closed")
	if r := toolsRun(t, box, "ask_user", `{"question":"x"}`); !r.IsError || !strings.Contains(r.Text, "terminal closed") {
		t.Errorf("an asker that fails: %+v", r)
	}
}

// Where no person sits ask_user is refused in every mode, and nothing is asked (F22).
func TestF22AskUserUnattended(t *testing.T) {
	for _, mode := range []approvalMode{modeReadOnly, modePrompt, modeAllow, modeDanger} {
		who := &fakeAsker{answer: "x"}
		for name, tc := range map[string]struct {
			a      asker
			origin string
		}{"piped": {nil, "agent"}, "served over stdio": {who, "mcp"}, "served over HTTP": {who, "http"}} {
			box := newToolsBox(t, mode, nil, askTools(tc.a)...)
			r, err := box.dispatch(t.Context(), toolCall{Name: "ask_user", Args: json.RawMessage(`{"question":"x"}`), Origin: tc.origin})
			if err != nil || r.Rule != toolRulePerson || len(who.asked) > 0 {
				t.Errorf("%s in %s: %+v, %v", name, mode, r, err)
			}
			if got := strings.Join(box.events(t), " "); got != "requested blocked" {
				t.Errorf("%s in %s: events %q", name, mode, got)
			}
		}
	}
}
