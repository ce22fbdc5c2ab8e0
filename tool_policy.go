// This file holds policy_check, with which a model or a person learns what would happen to a call before it is made. It judges nothing itself.
package main

import (
	"context"
	"encoding/json"
	"fmt"
)

// policyForeseer judges calls that are not made; the toolbox.
type policyForeseer interface {
	foresee(ctx context.Context, c toolCall) (policyForecast, error)
}

// policyTools gives policy_check. foreseer is asked at each call, as it holds the tool itself.
//
//go:noinline for size: it is called in many places
func policyTools(foreseer func() (policyForeseer, error)) []tool {
	return []tool{{
		Name: "policy_check", Family: "policy", Core: true,
		Description: "Say what would happen to a call of any tool: whether it would run, be asked about or be refused, by which rule, what would allow it, and its payload digest. Nothing is run.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["tool"],"properties":{
"tool":{"type":"string","minLength":1,"maxLength":512,"description":"Name of a native tool, a bridged one, or mcp:SERVER/TOOL."},
"args":{"type":"object","description":"The arguments that it would be called with (default: none)."}}}`),
		Output: json.RawMessage(`{"type":"object","properties":{
"tool":{"type":"string","description":"The name that is decided and digested; mcp:SERVER/TOOL of a bridged tool."},
"decision":{"type":"string","enum":["allow","ask","deny"],"description":"What would happen."},
"rule":{"type":"string","description":"The rule that decides."},
"reason":{"type":"string","description":"Why, in one clause."},
"hint":{"type":"string","description":"What would allow just this call."},
"digest":{"type":"string","description":"The payload digest, SHA-256 in hex."},
"mode":{"type":"string","description":"The permission mode in force."},` + toolRecordSchema + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		run: func(ctx context.Context, c toolCall) (toolResult, error) {
			f, err := foreseer()
			if err != nil {
				return toolResult{}, err
			}
			return policyCheck(ctx, f, c)
		},
	}}
}

// policyCheck answers one call: as the same caller would fare with the other one.
func policyCheck(ctx context.Context, f policyForeseer, c toolCall) (toolResult, error) {
	var args struct {
		Tool string
		Args json.RawMessage
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	other := c
	other.Name, other.Args = args.Tool, args.Args
	found, err := f.foresee(ctx, other)
	if err != nil {
		return toolResult{}, err
	}
	structured, err := json.Marshal(found)
	if err != nil {
		return toolResult{}, errorf("write the answer: %w", err)
	}
	var text textBuilder
	fmt.Fprintf(&text, "%s: %s\nrule: %s\n", visibleLine(found.Tool), found.Decision, visibleLine(found.Rule))
	for _, line := range [][2]string{{"reason", found.Reason}, {"hint", found.Hint}, {"digest", found.Digest}, {"mode", found.Mode}} {
		if line[1] != "" {
			fmt.Fprintf(&text, "%s: %s\n", line[0], visibleLine(line[1]))
		}
	}
	return toolResult{Text: text.String(), Structured: structured}, nil
}
