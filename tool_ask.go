// This file holds ask_user, the one native tool whose work is done by the person.
package main

import (
	"context"
	"encoding/json"
	"slices"
)

// asker puts one question to the person and waits for the answer. choices may be empty; def is "" without a default.
type asker interface {
	ask(ctx context.Context, question string, choices []string, def string) (string, error)
}

// maskedAsker keeps known secrets out of what a person is asked.
type maskedAsker struct {
	asker
	mask func(string) string
}

func (m maskedAsker) ask(ctx context.Context, question string, choices []string, def string) (string, error) {
	shown := make([]string, len(choices))
	for i, c := range choices {
		shown[i] = m.mask(c)
	}
	answer, err := m.asker.ask(ctx, m.mask(question), shown, m.mask(def))
	if i := slices.Index(shown, answer); i >= 0 {
		answer = choices[i]
	}
	return answer, err
}

// askTools gives ask_user. a is nil where no person sits; over MCP none ever does.
func askTools(a asker) []tool {
	return []tool{{
		Name: "ask_user", Family: "person", Core: true,
		Description: "Ask the person one question, with choices if given, and wait for the answer.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["question"],"properties":{
"question":{"type":"string","minLength":1,"maxLength":10000,"description":"The question, in full."},
"choices":{"type":"array","maxItems":20,"items":{"type":"string","minLength":1,"maxLength":200},"description":"Answers to choose from (default: free text)."},
"default":{"type":"string","maxLength":1000,"description":"The answer if the person just presses Enter; one of the choices if there are any."}}}`),
		Hints:      toolHints{ReadOnly: true},
		unattended: func(c toolCall) bool { return a == nil || c.served() },
		run: func(ctx context.Context, c toolCall) (toolResult, error) {
			var args struct {
				Question string
				Choices  []string
				Default  string
			}
			if err := json.Unmarshal(c.Args, &args); err != nil {
				return toolResult{}, err
			}
			if args.Default != "" && len(args.Choices) > 0 && !slices.Contains(args.Choices, args.Default) {
				return toolResult{}, newError(`property "default": expected one of the choices`)
			}
			answer, err := a.ask(ctx, args.Question, args.Choices, args.Default)
			if err != nil {
				return toolResult{}, err
			}
			return toolResult{Text: answer}, nil
		},
	}}
}
