// This file holds plan_submit, with which a model hands its plan to the person and learns what they say of it. What is shown and asked is the
// reviewer's, what a yes does to the permission mode is the run's.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

const planTextMax = 64 << 10 // bytes of a plan

// planAnswer is what the person says of a plan. Changed is the plan as they have changed it, "" where it is as it was.
type planAnswer struct {
	Yes     bool
	Why     string // of a no
	Changed string
}

// planReviewer shows a plan to the person and waits for the answer.
type planReviewer interface {
	review(ctx context.Context, plan string) (planAnswer, error)
}

// planSubmitTools gives plan_submit. r is nil where no person sits; over MCP none ever does. agreed is told of a yes and the call that led to it, and says
// what it has done to the permission mode, "" for nothing.
func planSubmitTools(r planReviewer, agreed func(call string) (string, error)) []tool {
	return []tool{{
		Name: "plan_submit", Family: "person", Core: true,
		Description: "Show the person a plan before anything is changed, and wait for the answer: yes, no with a reason, or a plan that they have edited. In plan mode a yes lets the work begin.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["plan"],"properties":{
"plan":{"type":"string","minLength":1,"maxLength":%d,"description":"The plan in full, as Markdown or plain text: what will be changed, in which order, and how it is checked."}}}`, planTextMax)),
		Output: json.RawMessage(`{"type":"object","properties":{
"answer":{"type":"string","description":"yes, no, or edited: a yes to the plan as the person changed it."},
"reason":{"type":"string","description":"Why not."},
"plan":{"type":"string","description":"The plan as the person changed it."},
"mode":{"type":"string","description":"What the permission mode is now, if it changed."},
` + toolRecordSchema + `}}`),
		Hints:      toolHints{Stateful: true},
		unattended: func(c toolCall) bool { return r == nil || c.served() },
		run: func(ctx context.Context, c toolCall) (toolResult, error) {
			return planSubmit(ctx, r, agreed, c)
		},
	}}
}

func planSubmit(ctx context.Context, r planReviewer, agreed func(string) (string, error), c toolCall) (toolResult, error) {
	var args struct{ Plan string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	switch {
	case strings.TrimSpace(args.Plan) == "":
		return toolResult{}, newError(`property "plan": expected a text that says something`)
	case len(args.Plan) > planTextMax:
		return toolResult{}, errorf(`property "plan": it has %d bytes, at most %d can be shown`, len(args.Plan), planTextMax)
	}
	answer, err := r.review(ctx, args.Plan)
	if err != nil {
		return toolResult{}, err
	}
	out := struct {
		Answer string `json:"answer"`
		Reason string `json:"reason,omitempty"`
		Plan   string `json:"plan,omitempty"`
		Mode   string `json:"mode,omitempty"`
	}{"no", answer.Why, answer.Changed, ""}
	var text string
	switch {
	case !answer.Yes && answer.Why == "":
		text = "The person said no to the plan. Change nothing; ask what they want, or make another plan."
	case !answer.Yes:
		text = "The person said no to the plan: " + answer.Why + "\nChange nothing; make another plan that heeds this."
	case answer.Changed != "":
		out.Answer, text = "edited", "The person said yes to the plan as they have changed it. Follow this one:\n\n"+answer.Changed
	default:
		out.Answer, text = "yes", "The person said yes to the plan."
	}
	shown := ""
	if answer.Yes {
		if out.Mode, err = agreed(c.ID); err != nil {
			return toolResult{}, errorf("the plan was agreed on, but the permission mode stays as it is: %w", err)
		}
		if out.Mode != "" {
			text += "\n\nThe permission mode is " + out.Mode + " again: go on with the work."
			shown = "plan agreed on: permission mode " + out.Mode
		}
	}
	structured, err := json.Marshal(out)
	return toolResult{Text: text, Structured: structured, Shown: shown}, err
}
