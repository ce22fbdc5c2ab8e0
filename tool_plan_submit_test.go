package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
)

// fakeReviewer answers plans as it is told to.
type fakeReviewer struct {
	answer planAnswer
	err    error
	shown  []string
}

func (f *fakeReviewer) review(_ context.Context, plan string) (planAnswer, error) {
	f.shown = append(f.shown, plan)
	return f.answer, f.err
}

func TestPlanSubmit(t *testing.T) {
	t.Parallel()
	who, mode, told := &fakeReviewer{}, "", 0
	box := newToolsBox(t, modeReadOnly, nil, planSubmitTools(who, func(string) (string, error) { told++; return mode, nil })...)
	for _, tc := range []struct {
		name       string
		answer     planAnswer
		mode       string
		want, body string
	}{
		{"yes", planAnswer{Yes: true}, "", "The person said yes to the plan.", `{"answer":"yes"}`},
		{"yes in plan mode", planAnswer{Yes: true}, "allow", "The permission mode is allow again", `{"answer":"yes","mode":"allow"}`},
		{"changed", planAnswer{Yes: true, Changed: "1. less"}, "", "Follow this one:\n\n1. less", `{"answer":"edited","plan":"1. less"}`},
		{"no", planAnswer{}, "allow", "The person said no", `{"answer":"no"}`},
		{"no, because", planAnswer{Why: "too much"}, "allow", "no to the plan: too much", `{"answer":"no","reason":"too much"}`},
	} {
		who.answer, mode, who.shown, told = tc.answer, tc.mode, nil, 0
		r := toolsRun(t, box, "plan_submit", `{"plan":"1. all"}`)
		if r.IsError || !strings.Contains(r.Text, tc.want) || string(r.Structured) != tc.body || len(who.shown) != 1 || who.shown[0] != "1. all" || (told == 1) != tc.answer.Yes {
			t.Errorf("%s: %+v, shown %q, told %d", tc.name, r, who.shown, told)
		}
	}
	who.shown = nil
	for args, want := range map[string]string{`{}`: "plan", `{"plan":""}`: "plan", `{"plan":" \n"}`: `property "plan"`, `{"plan":7}`: "plan", `{"plan":"x","title":"y"}`: "title",
		`{"plan":"` + strings.Repeat("x", planTextMax+1) + `"}`: "plan", `{"plan":"` + strings.Repeat("é", planTextMax/2+1) + `"}`: `property "plan": it has`} {
		if r := toolsRun(t, box, "plan_submit", args); !r.IsError || !strings.Contains(r.Text, want) || len(who.shown) != 0 {
			t.Errorf("%s: %+v, want %q", clip(args, 60), r, want)
		}
	}
	who.err = errors.New("terminal closed")
	if r := toolsRun(t, box, "plan_submit", `{"plan":"x"}`); !r.IsError || !strings.Contains(r.Text, "terminal closed") {
		t.Errorf("%+v", r)
	}
}

// Where no person sits plan_submit is refused in every mode, and nothing is shown.
func TestPlanSubmitUnattended(t *testing.T) {
	t.Parallel()
	for _, mode := range []approvalMode{modeReadOnly, modePrompt, modeAllow, modeDanger} {
		who := &fakeReviewer{answer: planAnswer{Yes: true}}
		for name, tc := range map[string]struct {
			r      planReviewer
			origin string
		}{"piped": {nil, "cli"}, "served over stdio": {who, "mcp"}, "served over HTTP": {who, "http"}} {
			box := newToolsBox(t, mode, nil, planSubmitTools(tc.r, nil)...)
			r, err := box.dispatch(t.Context(), toolCall{Name: "plan_submit", Args: json.RawMessage(`{"plan":"x"}`), Origin: tc.origin})
			if err != nil || r.Rule != toolRulePerson || len(who.shown) > 0 {
				t.Errorf("%s in %s: %+v, %v", name, mode, r, err)
			}
		}
	}
}

// While a plan is wanted only reading runs, also of a person's own words; then the mode before is back, stated or not.
func TestPolicyPlan(t *testing.T) {
	t.Parallel()
	write := policyRequest{Tool: "file_write", Destructive: true, Args: json.RawMessage(`{}`)}
	own := write
	own.Person = true
	rule := func(p *policy, r policyRequest) string {
		t.Helper()
		return policyTestDecide(t, p, r).Rule
	}
	for _, tc := range []struct {
		mode         approvalMode
		given        bool
		before, mine string // rules of a model's call and of a person's
	}{
		{modePrompt, false, "nobody to ask", "mode allow"}, {modePrompt, true, "nobody to ask", "nobody to ask"}, {modeAllow, true, "mode allow", "mode allow"},
		{modeDanger, true, "mode danger-full-access", "mode danger-full-access"}, {modeReadOnly, true, "mode read-only", "mode read-only"},
	} {
		p := newPolicy(policyConfig{Mode: tc.mode, ModeGiven: tc.given})
		for range 2 { // once more is the same
			p.startPlan()
		}
		back, planning := p.afterPlan()
		if !planning || !p.planning() || back != tc.mode || p.mode() != modeReadOnly || rule(p, write) != "mode read-only" || rule(p, own) != "mode read-only" {
			t.Errorf("%s: planning %v, back to %s, mode %s", tc.mode, planning, back, p.mode())
		}
		if d := policyTestDecide(t, p, write); !strings.Contains(d.Hint, "plan_submit") || !strings.Contains(d.Hint, string(tc.mode)) {
			t.Errorf("hint %q", d.Hint)
		}
		p.endPlan()
		if p.planning() || p.mode() != tc.mode || rule(p, write) != tc.before || rule(p, own) != tc.mine {
			t.Errorf("%s after the plan: %s, %q, %q", tc.mode, p.mode(), rule(p, write), rule(p, own))
		}
	}
	p := newPolicy(policyConfig{Mode: modeAllow})
	p.startPlan()
	p.setMode(modePrompt) // a person's word ends the planning
	p.endPlan()
	if p.planning() || p.mode() != modePrompt || rule(p, own) != "nobody to ask" {
		t.Errorf("after another mode: %s, %v", p.mode(), p.planning())
	}
	for _, word := range []string{"plan", "Plan"} {
		if m, err := parseMode(word, false); err == nil {
			t.Errorf("%s is a mode: %s", word, m)
		}
	}
}

// The mode may change while calls are decided.
func TestPolicyModeConcurrent(t *testing.T) {
	t.Parallel()
	p := newPolicy(policyConfig{Mode: modePrompt})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { // ends with its loop
			for range 100 {
				d, err := p.approve(t.Context(), policyRequest{Tool: "x", Destructive: true, Args: json.RawMessage(`{}`)})
				if err != nil || d.Allow && d.Rule != "mode danger-full-access" {
					t.Errorf("%+v, %v", d, err)
				}
				p.foresee(policyRequest{Tool: "x", Args: json.RawMessage(`{}`)})
			}
		})
	}
	for range 100 {
		p.startPlan()
		p.endPlan()
		p.setMode(modeDanger)
		p.setMode(modePrompt)
	}
	wg.Wait()
}
