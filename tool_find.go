// This file holds tool_search, with which a model finds the tools that it was not offered.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	findLimit     = 8        // tools found unless the call says otherwise
	findMaxLimit  = 50       // the most that it may say
	findSchemaMax = 8 << 10  // bytes of a schema that is given along; a longer one comes when the tool is offered
	findTextMax   = 48 << 10 // bytes of one answer, so that it stays inline (mcpResultMax)
)

// toolFinder finds tools by words; the toolbox.
type toolFinder interface {
	search(ctx context.Context, q toolQuery) (found []foundTool, fit int, err error)
}

// findTools gives tool_search. finder is asked at each call, as it holds the tool itself.
func findTools(finder func() (toolFinder, error)) []tool {
	return []tool{{
		Name: "tool_search", Family: "tools", Core: true,
		Description: "Find tools by words, among the native ones and those of all enabled MCP servers, also when they are not offered now. What is found can be called from the next step on.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["query"],"properties":{
"query":{"type":"string","minLength":1,"maxLength":%d,"description":"What the tool has to do, in a few words, or its name."},
"server":{"type":"string","minLength":1,"maxLength":128,"description":"Only tools of this MCP server, or of this family of native tools (default: all)."},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"How many to give at most (default %d)."}}}`, rankMaxMessage, findMaxLimit, findLimit)),
		Output: json.RawMessage(`{"type":"object","properties":{
"tools":{"type":"array","description":"The tools found, best first.","items":{"type":"object","properties":{
"name":{"type":"string","description":"The name to call it by."},
"server":{"type":"string","description":"The MCP server that has it; missing for a native tool."},
"tool":{"type":"string","description":"Its own name there."},
"description":{"type":"string"},"inputSchema":{"type":"object"},
"score":{"type":"number","description":"How well it fits; comparable within one answer."}}}},
"left_out":{"type":"integer","description":"Tools that fit too and are not shown."},` + toolRecordSchema + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		run: func(ctx context.Context, c toolCall) (toolResult, error) {
			f, err := finder()
			if err != nil {
				return toolResult{}, err
			}
			return toolSearch(ctx, f, c)
		},
	}}
}

// toolSearch answers one call. What it gives is offered from the next step on.
func toolSearch(ctx context.Context, f toolFinder, c toolCall) (toolResult, error) {
	args := struct {
		Query, Server string
		Limit         int
	}{Limit: findLimit}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	found, fit, err := f.search(ctx, toolQuery{Words: args.Query, Server: args.Server, Except: c.Name, Limit: args.Limit})
	var r toolResult
	if errors.Is(err, errNotFound) {
		r.Hint = "mcp_list shows the servers and which of them are enabled"
	}
	if err != nil {
		return r, err
	}
	var text textBuilder
	list := []byte(`{"tools":[`)
	for _, t := range found {
		entry, line := findEntry(t), findLine(t)
		if max(len(list)+len(entry), text.Len()+len(line)) > findTextMax {
			break
		}
		if len(r.Found) > 0 {
			list = append(list, ',')
		}
		list = append(list, entry...)
		text.WriteString(line)
		r.Found = append(r.Found, t.Name)
	}
	out := fit - len(r.Found)
	r.Structured = fmt.Appendf(list, `],"left_out":%d}`, out)
	switch {
	case fit == 0:
		text.WriteString("no tool fits; try other words for what it has to do\n")
	case out > 0:
		fmt.Fprintf(&text, "%d more fit and are left out; other words, a server or a larger limit show them\n", out)
	}
	r.Text = text.String()
	return r, nil
}

// findEntry gives a tool as one JSON object.
func findEntry(t foundTool) []byte {
	dst := appendJSONString([]byte(`{"name":`), t.Name)
	if t.Server != "" {
		dst = appendJSONString(append(dst, `,"server":`...), t.Server)
		dst = appendJSONString(append(dst, `,"tool":`...), t.Tool)
	}
	dst = appendJSONString(append(dst, `,"description":`...), t.Description)
	if len(t.InputSchema) > 0 && len(t.InputSchema) <= findSchemaMax && checkJSON(t.InputSchema) == nil {
		dst = append(append(dst, `,"inputSchema":`...), t.InputSchema...)
	}
	return fmt.Appendf(dst, `,"score":%.2f}`, t.Score)
}

// findLine gives a tool as one line.
func findLine(t foundTool) string {
	from := ""
	if t.Server != "" {
		from = " (" + visibleLine(t.Server+"/"+t.Tool) + ")"
	}
	return t.Name + from + ": " + brief(visibleLine(summaryLine(t.Description)), 200) + "\n"
}
