// This file holds todo_write, the list of tasks that a model keeps for the person to see. The list is the last one that stands in the history of the
// conversation, so that it goes on where the conversation does; nothing else keeps it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	todoTool    = "todo_write"
	todoMax     = 100 // items of the list
	todoTextMax = 500 // characters of one item
)

// The states of an item.
const (
	todoPending = "pending"
	todoDoing   = "in_progress"
	todoDone    = "done"
)

// todoItem is one task.
type todoItem struct {
	Text   string `json:"text"`
	Status string `json:"status"`
}

// todoTools gives todo_write.
func todoTools() []tool {
	return []tool{{
		Name: todoTool, Family: "person", Core: true,
		Description: "Set the list of what is to be done in a longer piece of work, shown to the person: all of it each time, with what is pending, in progress and done. Replaces the list before and returns it.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["items"],"properties":{
"items":{"type":"array","maxItems":%d,"description":"All tasks in their order; none clears the list.","items":{"type":"object","additionalProperties":false,"required":["text"],"properties":{
"text":{"type":"string","minLength":1,"maxLength":%d,"description":"What is to be done, in one line."},
"status":{"type":"string","enum":["%s","%s","%s"],"description":"How far it is (default pending)."}}}}}}`, todoMax, todoTextMax, todoPending, todoDoing, todoDone)),
		Output: json.RawMessage(`{"type":"object","properties":{
"items":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"status":{"type":"string"}}}},
"done":{"type":"integer","description":"Items that are done."},"total":{"type":"integer"},
` + toolRecordSchema + `}}`),
		Hints: toolHints{Idempotent: true, Stateful: true},
		run:   todoWrite,
	}}
}

func todoWrite(_ context.Context, c toolCall) (toolResult, error) {
	items, err := todoItems(c.Args)
	if err != nil {
		return toolResult{}, err
	}
	structured, err := json.Marshal(struct {
		Items []todoItem `json:"items"`
		Done  int        `json:"done"`
		Total int        `json:"total"`
	}{items, todoCount(items), len(items)})
	text := todoText(items)
	r := toolResult{Text: text, Structured: structured, Shown: text}
	if c.Session == "" {
		r.Text += "[shown and not kept: this call belongs to no conversation]\n"
	}
	return r, err
}

// todoItems reads the list out of the arguments of a call.
func todoItems(args json.RawMessage) ([]todoItem, error) {
	var list struct{ Items []todoItem }
	if err := json.Unmarshal(args, &list); err != nil {
		return nil, errorf("read arguments: %w", err)
	}
	for i := range list.Items {
		item := &list.Items[i]
		if strings.TrimSpace(item.Text) == "" {
			return nil, errorf(`property "items": expected a text in item %d`, i+1)
		}
		if item.Status == "" {
			item.Status = todoPending
		}
	}
	return orEmpty(list.Items), nil
}

func todoCount(items []todoItem) (done int) {
	for _, item := range items {
		if item.Status == todoDone {
			done++
		}
	}
	return done
}

// todoText is the list as the person and the model see it, one item a line.
func todoText(items []todoItem) string {
	if len(items) == 0 {
		return "the task list is empty\n"
	}
	var b textBuilder
	for _, item := range items {
		mark := map[string]string{todoDone: "x", todoDoing: ">"}[item.Status]
		if mark == "" {
			mark = " "
		}
		fmt.Fprintf(&b, "[%s] %s\n", mark, visibleLine(item.Text))
	}
	fmt.Fprintf(&b, "%d of %s done\n", todoCount(items), plural(len(items), "task"))
	return b.String()
}

var errNoTodo = errors.New("no task list was made in this conversation")

// lastTodo finds the list of a conversation: that of the last call that did not fail. It looks at all rows, also at those that a summary stands for.
func lastTodo(rows []storedMessage) ([]todoItem, error) {
	calls := map[string]string{} // arguments by the id of the call
	args := ""
	for _, row := range rows {
		if row.Role == roleCompact {
			continue
		}
		m, err := fromStored(row)
		if err != nil {
			return nil, errorf("message %d: %w", row.Seq, err)
		}
		for _, c := range m.Calls {
			if c.Name == todoTool {
				calls[c.ID] = c.Args
			}
		}
		if made, ok := calls[m.CallID]; ok && m.Role == roleTool && !m.IsError {
			args = made
		}
	}
	if args == "" {
		return nil, errNoTodo
	}
	return todoItems(json.RawMessage(args))
}
