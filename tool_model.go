// This file holds model_list, with which a model learns which models tai could talk to. It finds none itself.
package main

import (
	"context"
	"encoding/json"
	"fmt"
)

const modelListMax = 100 // models that one answer gives

// modelLister gives every model that is set or found; the finder.
type modelLister interface {
	all(ctx context.Context) ([]foundModel, error)
}

// modelTools gives model_list.
func modelTools(list modelLister) []tool {
	return []tool{{
		Name: "model_list", Family: "models",
		Description: "List the models that tai could talk to: those that are set, those whose key is in the environment or a secret, and those of a server on this machine; with the context window where it is known, and which is in use.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
"provider":{"type":"string","minLength":1,"maxLength":64,"description":"Only models of this provider or server, such as openai or ollama (default: all)."}}}`),
		Output: json.RawMessage(`{"type":"object","properties":{
"models":{"type":"array","description":"The models, the stored ones first.","items":{"type":"object","properties":{
"name":{"type":"string","description":"The name it is set under, else its provider."},
"provider":{"type":"string","description":"The provider; missing for an address of one's own."},
"model":{"type":"string"},
"source":{"type":"string","description":"stored, environment, secret or local."},
"context":{"type":"integer","description":"Its window in tokens; missing where it is not known."},
"in_use":{"type":"boolean"},
"problem":{"type":"string","description":"Why it cannot be used now."}}}},
"left_out":{"type":"integer","description":"Models that are not shown."},` + toolRecordSchema + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		run:   func(ctx context.Context, c toolCall) (toolResult, error) { return modelList(ctx, list, c) },
	}}
}

// modelList answers one call. Addresses and where keys are stay out of it.
func modelList(ctx context.Context, list modelLister, c toolCall) (toolResult, error) {
	var args struct{ Provider string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	models, err := list.all(ctx)
	if err != nil {
		return toolResult{}, err
	}
	var text textBuilder
	out, n, left := []byte(`{"models":[`), 0, 0
	for _, m := range models {
		if args.Provider != "" && m.Provider != args.Provider && m.Name != args.Provider {
			continue
		}
		if n == modelListMax {
			left++
			continue
		}
		if n > 0 {
			out = append(out, ',')
		}
		n++
		out = append(out, modelEntry(m)...)
		text.WriteString(m.line() + "\n")
	}
	switch {
	case n == 0 && args.Provider != "":
		fmt.Fprintf(&text, "no model of %s is set or found\n", visibleLine(args.Provider))
	case n == 0:
		text.WriteString("no model is set or found\n")
	case left > 0:
		fmt.Fprintf(&text, "%d more are left out; provider narrows the list\n", left)
	}
	return toolResult{Text: text.String(), Structured: fmt.Appendf(out, `],"left_out":%d}`, left)}, nil
}

func modelEntry(m foundModel) []byte {
	dst := appendJSONString([]byte(`{"name":`), m.Name)
	if m.Provider != "" {
		dst = appendJSONString(append(dst, `,"provider":`...), m.Provider)
	}
	dst = appendJSONString(append(dst, `,"model":`...), m.Endpoint.Model)
	dst = appendJSONString(append(dst, `,"source":`...), m.Source)
	if m.Endpoint.Context > 0 {
		dst = fmt.Appendf(dst, `,"context":%d`, m.Endpoint.Context)
	}
	dst = fmt.Appendf(dst, `,"in_use":%v`, m.InUse)
	if m.Problem != "" {
		dst = appendJSONString(append(dst, `,"problem":`...), m.Problem)
	}
	return append(dst, '}')
}
