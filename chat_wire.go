// This file holds the shapes of a conversation with a model, one form for every kind of endpoint, and what the wires share. It sends nothing
// and knows no wire.
package main

import (
	"encoding/json"
	"fmt"
)

const (
	chatMaxCalls = 128     // tool calls in one reply
	chatMaxArgs  = 4 << 20 // bytes of arguments of one tool call
)

// chatRole says who speaks.
type chatRole string

const (
	roleUser      chatRole = "user"
	roleAssistant chatRole = "assistant"
	roleTool      chatRole = "tool" // the result of one tool call
)

// chatMessage is one entry of a conversation; the system text is no message, it travels beside them.
type chatMessage struct {
	Role    chatRole       `json:"role"`
	Content string         `json:"content,omitempty"`
	Calls   []chatToolCall `json:"calls,omitempty"`    // assistant: what it wants done
	CallID  string         `json:"call_id,omitempty"`  // tool: which call this answers
	IsError bool           `json:"is_error,omitempty"` // tool: the call failed or was refused

	seq int // of the row that keeps it, 0 for none; the history's own, never sent
}

// chatToolCall is one call as the model wrote it. Args is its text, which need not be JSON.
type chatToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// chatTool is a tool as the model sees it; fitTool makes it.
type chatTool struct {
	Name, Description string
	Schema            json.RawMessage // type object and properties an object, always
}

type chatRequest struct {
	System    string
	Messages  []chatMessage
	Tools     []chatTool
	MaxTokens int // most tokens of the answer; 0 leaves it to the endpoint
}

// maxTokens is the bound of the answer for an endpoint: the request's own, else the endpoint's.
func (r chatRequest) maxTokens(e chatEndpoint) int {
	if r.MaxTokens > 0 && (e.MaxTokens <= 0 || r.MaxTokens < e.MaxTokens) {
		return r.MaxTokens
	}
	return e.MaxTokens
}

// chatDelta is what arrives while a reply is being made: a piece of its text, or a notice about the wait.
type chatDelta struct{ Text, Notice string }

// chatUsage counts tokens as the endpoint says; all zero if it does not say.
type chatUsage struct{ Input, Output, Cached int }

// chatReply is a whole reply. Stop is one of stop, tool_calls, length, content_filter, or the endpoint's own word. Streamed says that it came
// as events.
type chatReply struct {
	Text     string
	Calls    []chatToolCall
	Stop     string
	Usage    chatUsage
	Streamed bool
}

// The reasons to stop that every wire is brought to.
const (
	stopEnd    = "stop"
	stopCalls  = "tool_calls"
	stopLength = "length"
	stopFilter = "content_filter"
)

// chatReader puts one reply together from what an endpoint sends.
type chatReader interface {
	// take reads one event, or a whole reply that was not streamed, and gives the new text in it; more is false after the last one. An error
	// that the endpoint sends is a *chatError.
	take(data []byte) (text string, more bool, err error)
	// over reports that the end of the reply has come; what follows is only its usage.
	over() bool
	// finish gives the whole reply, or says what is missing.
	finish() (chatReply, error)
	// partial gives the text and the usage that have come so far.
	partial() chatReply
}

// chatPartialCall is a tool call on its way. index is the endpoint's own number of it, -1 for none.
type chatPartialCall struct {
	index    int
	id, name string
	args     []byte
}

// add appends a piece of the arguments.
func (p *chatPartialCall) add(args string) error {
	if len(p.args)+len(args) > chatMaxArgs {
		return errorf("arguments over %d bytes", chatMaxArgs)
	}
	p.args = append(p.args, args...)
	return nil
}

// finishCalls puts the calls into the reply. Those without an id, or with one that came before, get one, since each result has to name its
// call. Where the model ran out of tokens in the middle of a call there is no telling what it wanted, and none is run.
func finishCalls(r *chatReply, calls []*chatPartialCall) error {
	seen := map[string]bool{}
	for i, p := range calls {
		if r.Stop == stopLength && i == len(calls)-1 {
			if _, err := jsonObject(p.args); err != nil {
				return &chatError{Fault: faultReply, Message: "the reply was cut in the middle of a tool call, at the most tokens the model gives",
					Hint: "ask for it in smaller parts, or allow more with tai model set … --max-tokens N"}
			}
		}
		if p.id == "" || seen[p.id] {
			p.id = fmt.Sprintf("call_%d_%s", i, sha256Hex(append([]byte(p.name), p.args...))[:8])
		}
		seen[p.id] = true
		r.Calls = append(r.Calls, chatToolCall{ID: p.id, Name: p.name, Args: string(p.args)})
	}
	return nil
}

// chatCut is the error of a reply without an end.
func chatCut(calls int) error {
	if calls > 0 {
		return errorf("the reply ended before it was complete, in the middle of %s", plural(calls, "tool call"))
	}
	return newError("the reply ended before it was complete")
}

// chatWireArgs gives the arguments as they go back to the endpoint. Several refuse a whole conversation for one call whose arguments are
// no JSON object, so such a text goes back as {}; the call's result has told the model what was wrong.
func chatWireArgs(args string) string {
	if _, err := jsonObject([]byte(args)); err != nil || checkJSON([]byte(args)) != nil {
		return "{}"
	}
	return args
}
