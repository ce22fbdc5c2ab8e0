// This file holds the shapes of a conversation with a model and turns them into the request body and back from the reply chunks of
// OpenAI-compatible chat completions. It sends nothing; chat.go does.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
	MaxTokens int // most tokens of the answer; 0 leaves it to the model
}

// chatDelta is what arrives while a reply is being made: a piece of its text, or a notice about the wait.
type chatDelta struct{ Text, Notice string }

// chatUsage counts tokens as the endpoint says; all zero if it does not say.
type chatUsage struct{ Input, Output, Cached int }

// chatReply is a whole reply. Stop is one of stop, tool_calls, length, content_filter, or the endpoint's own word.
type chatReply struct {
	Text  string
	Calls []chatToolCall
	Stop  string
	Usage chatUsage
}

// appendChatRequest writes the body of a streaming chat completion request.
func appendChatRequest(dst []byte, e chatEndpoint, r chatRequest) []byte {
	dst = append(dst, `{"model":`...)
	dst = appendJSONString(dst, e.Model)
	dst = append(dst, `,"stream":true`...)
	if !e.plainUsage {
		dst = append(dst, `,"stream_options":{"include_usage":true}`...)
	}
	if r.MaxTokens > 0 {
		dst = append(dst, `,"`...)
		dst = append(dst, e.maxTokensKey()...)
		dst = append(dst, `":`...)
		dst = strconv.AppendInt(dst, int64(r.MaxTokens), 10)
	}
	dst = append(dst, `,"messages":[`...)
	if r.System != "" {
		dst = append(dst, `{"role":"system","content":`...)
		dst = appendJSONString(dst, r.System)
		dst = append(dst, "},"...)
	}
	for _, m := range r.Messages {
		dst = append(appendChatMessage(dst, m), ',')
	}
	dst = append(bytes.TrimSuffix(dst, []byte(",")), ']')
	if len(r.Tools) > 0 {
		dst = append(dst, `,"tools":[`...)
		for _, t := range r.Tools {
			dst = append(appendChatTool(dst, t), ',')
		}
		dst = append(bytes.TrimSuffix(dst, []byte(",")), ']')
	}
	return append(dst, '}')
}

func appendChatTool(dst []byte, t chatTool) []byte {
	dst = append(dst, `{"type":"function","function":{"name":`...)
	dst = appendJSONString(dst, t.Name)
	dst = append(dst, `,"description":`...)
	dst = appendJSONString(dst, t.Description)
	dst = append(dst, `,"parameters":`...)
	return append(append(dst, t.Schema...), "}}"...)
}

func appendChatMessage(dst []byte, m chatMessage) []byte {
	dst = append(dst, `{"role":`...)
	dst = appendJSONString(dst, string(m.Role))
	if m.Role == roleTool {
		dst = append(dst, `,"tool_call_id":`...)
		dst = appendJSONString(dst, m.CallID)
	}
	dst = append(dst, `,"content":`...)
	if m.Content == "" && len(m.Calls) > 0 {
		dst = append(dst, "null"...)
	} else {
		dst = appendJSONString(dst, m.Content)
	}
	if len(m.Calls) > 0 {
		dst = append(dst, `,"tool_calls":[`...)
		for _, c := range m.Calls {
			dst = append(dst, `{"id":`...)
			dst = appendJSONString(dst, c.ID)
			dst = append(dst, `,"type":"function","function":{"name":`...)
			dst = appendJSONString(dst, c.Name)
			dst = append(dst, `,"arguments":`...)
			dst = appendJSONString(dst, chatWireArgs(c.Args))
			dst = append(dst, "}},"...)
		}
		dst = append(bytes.TrimSuffix(dst, []byte(",")), ']')
	}
	return append(dst, '}')
}

// chatWireArgs gives the arguments as they go back to the endpoint. Several refuse a whole conversation for one call whose arguments are
// no JSON object, so such a text goes back as {}; the call's result has told the model what was wrong.
func chatWireArgs(args string) string {
	if _, err := jsonObject([]byte(args)); err != nil || checkJSON([]byte(args)) != nil {
		return "{}"
	}
	return args
}

// chatAssembler puts a reply together from its chunks.
type chatAssembler struct {
	reply   chatReply
	text    []byte
	calls   []*chatPartialCall
	stopped bool // a finish_reason has come
}

type chatPartialCall struct {
	index    int
	id, name string
	args     []byte
}

// chunk takes one chunk (or one whole, unstreamed reply) and gives the new text in it. An error the endpoint sends inside the stream is a
// *chatError.
func (a *chatAssembler) chunk(b []byte) (text string, err error) {
	top, err := chatFields(b)
	if err != nil {
		return "", fmt.Errorf("read reply chunk: %w", err)
	}
	if e := top["error"]; chatPresent(e) {
		return "", chatErrorOf(0, b)
	}
	if u := top["usage"]; chatPresent(u) {
		a.reply.Usage = chatUsageOf(u)
	}
	if !chatPresent(top["choices"]) {
		return "", nil
	}
	choices, err := jsonArray(top["choices"])
	if err != nil {
		return "", fmt.Errorf("read reply chunk: choices: %w", err)
	}
	if len(choices) == 0 {
		return "", nil // the usage chunk
	}
	choice, err := chatFields(choices[0])
	if err != nil {
		return "", fmt.Errorf("read reply chunk: choice: %w", err)
	}
	body := choice["delta"]
	if !chatPresent(body) {
		body = choice["message"]
	}
	if chatPresent(body) {
		if text, err = a.delta(body); err != nil {
			return "", fmt.Errorf("read reply chunk: %w", err)
		}
	}
	if stop, ok := jsonString(choice["finish_reason"]); ok && stop != "" {
		a.reply.Stop, a.stopped = stop, true
	}
	return text, nil
}

func (a *chatAssembler) delta(b json.RawMessage) (string, error) {
	d, err := chatFields(b)
	if err != nil {
		return "", err
	}
	text, _ := jsonString(d["content"])
	if text == "" {
		text, _ = jsonString(d["refusal"])
	}
	a.text = append(a.text, text...)
	if !chatPresent(d["tool_calls"]) {
		return text, nil
	}
	calls, err := jsonArray(d["tool_calls"])
	if err != nil {
		return text, fmt.Errorf("tool_calls: %w", err)
	}
	for _, c := range calls {
		if err := a.toolCall(c); err != nil {
			return text, fmt.Errorf("tool call: %w", err)
		}
	}
	return text, nil
}

// toolCall adds a piece of a call. Pieces belong together by index; an endpoint that leaves the index out, or counts every call as 0, is
// understood by the id, which only the first piece of a call carries.
func (a *chatAssembler) toolCall(b json.RawMessage) error {
	c, err := chatFields(b)
	if err != nil {
		return err
	}
	id, _ := jsonString(c["id"])
	var name, args string
	if chatPresent(c["function"]) {
		f, err := chatFields(c["function"])
		if err != nil {
			return err
		}
		name, _ = jsonString(f["name"])
		args = chatArgsText(f["arguments"])
	}
	index := -1
	if n, err := strconv.Atoi(string(c["index"])); err == nil && n >= 0 {
		index = n
	}
	p := a.partial(index, id, name)
	if p == nil {
		return fmt.Errorf("more than %d in one reply", chatMaxCalls)
	}
	if len(p.args)+len(args) > chatMaxArgs {
		return fmt.Errorf("arguments over %d bytes", chatMaxArgs)
	}
	p.args = append(p.args, args...)
	return nil
}

// partial finds or starts the call that a piece belongs to; nil if there are too many.
func (a *chatAssembler) partial(index int, id, name string) *chatPartialCall {
	for i := len(a.calls) - 1; i >= 0; i-- {
		p := a.calls[i]
		same := p.index == index && (id == "" || p.id == "" || id == p.id)
		if index < 0 {
			same = id == p.id || (id == "" && name == "")
		}
		if same {
			if p.id == "" {
				p.id = id
			}
			if p.name == "" {
				p.name = name
			}
			return p
		}
	}
	if len(a.calls) == chatMaxCalls {
		return nil
	}
	p := &chatPartialCall{index: index, id: id, name: name}
	a.calls = append(a.calls, p)
	return p
}

// done takes the [DONE] that ends a stream; an endpoint that names no finish_reason has still come to its end.
func (a *chatAssembler) done() {
	if !a.stopped {
		a.reply.Stop, a.stopped = "stop", true
	}
}

// finish gives the whole reply. Calls without an id, or with one that came before, get one, since each result has to name its call.
func (a *chatAssembler) finish() (chatReply, error) {
	if !a.stopped {
		return chatReply{}, errors.New("the reply ended before it was complete")
	}
	r := a.reply
	r.Text = string(a.text)
	seen := map[string]bool{}
	for i, p := range a.calls {
		if p.id == "" || seen[p.id] {
			p.id = fmt.Sprintf("call_%d_%s", i, sha256Hex(append([]byte(p.name), p.args...))[:8])
		}
		seen[p.id] = true
		r.Calls = append(r.Calls, chatToolCall{ID: p.id, Name: p.name, Args: string(p.args)})
	}
	return r, nil
}

func chatUsageOf(b json.RawMessage) chatUsage {
	u, err := chatFields(b)
	if err != nil {
		return chatUsage{}
	}
	count := func(raw json.RawMessage) int {
		n, err := strconv.Atoi(string(raw))
		if err != nil || n < 0 {
			return 0
		}
		return n
	}
	usage := chatUsage{Input: count(u["prompt_tokens"]), Output: count(u["completion_tokens"])}
	if d, err := chatFields(u["prompt_tokens_details"]); err == nil {
		usage.Cached = count(d["cached_tokens"])
	}
	return usage
}

// chatArgsText gives the text of arguments: a string by the book, an object as it stands from endpoints that send one.
func chatArgsText(raw json.RawMessage) string {
	if s, ok := jsonString(raw); ok {
		return s
	}
	if !chatPresent(raw) {
		return ""
	}
	return string(raw)
}

// chatFields splits an object by its exact member names.
func chatFields(b []byte) (map[string]json.RawMessage, error) {
	members, err := jsonObject(b)
	if err != nil {
		return nil, err
	}
	fields := make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		fields[m.Key] = m.Value
	}
	return fields, nil
}

// chatPresent is false for a missing member and for null, which endpoints use for the same thing.
func chatPresent(raw json.RawMessage) bool {
	return len(raw) > 0 && string(bytes.TrimSpace(raw)) != "null"
}

// chatFault says what kind of failure an endpoint's answer is, for the hint and for the callers that branch on it.
type chatFault string

const (
	faultKey         chatFault = "key"         // the key is missing, wrong or not allowed
	faultCredit      chatFault = "credit"      // the account has nothing left
	faultModel       chatFault = "model"       // the model is not known there
	faultContext     chatFault = "context"     // the conversation is longer than the model takes
	faultRate        chatFault = "rate"        // too many requests
	faultOverloaded  chatFault = "overloaded"  // 5xx: the endpoint cannot answer now
	faultUnreachable chatFault = "unreachable" // no connection
	faultRequest     chatFault = "request"     // refused for another reason
	faultReply       chatFault = "reply"       // what came is no chat completion, or is cut
)

// chatError is a failed completion: what happened and, apart from it, what to do. Status is the HTTP status, 0 without one.
type chatError struct {
	Fault   chatFault
	Status  int
	Message string
	Hint    string
	cause   error
}

func (e *chatError) Error() string { return e.Message }
func (e *chatError) Unwrap() error { return e.cause }

const chatMaxMessage = 600 // bytes of an endpoint's own error text that are shown

// chatErrorOf reads the error body of an endpoint; status is 0 for an error inside a stream. Understood are {"error":{"message","code","type"}},
// {"error":"text"}, {"message":"text"}, {"detail":"text"} and each of them in a list of one.
func chatErrorOf(status int, body []byte) *chatError {
	body = bytes.TrimSpace(body)
	if list, err := jsonArray(body); err == nil && len(list) > 0 {
		body = list[0]
	}
	message, code := "", ""
	if top, err := chatFields(body); err == nil {
		inner, err := chatFields(top["error"])
		if err != nil {
			inner = top
			message, _ = jsonString(top["error"])
		}
		for _, key := range []string{"message", "detail"} {
			if s, ok := jsonString(inner[key]); ok && message == "" {
				message = s
			}
		}
		for _, key := range []string{"code", "type", "status"} {
			s, ok := jsonString(inner[key])
			if n, err := strconv.Atoi(string(inner[key])); err == nil && !ok && status == 0 && n >= 400 && n < 600 {
				status = n
			}
			code += " " + s
		}
	}
	e := &chatError{Status: status, Message: clip(visibleLine(message), chatMaxMessage)}
	e.Fault = chatFaultOf(status, strings.ToLower(message+code))
	if message == "" && bytes.HasPrefix(body, []byte("<")) {
		e.Message, e.Fault = "the address answers with a web page, not with an API", faultRequest
		if status >= 500 {
			e.Fault = faultOverloaded
		}
	}
	if e.Message == "" {
		e.Message = "no reason given"
	}
	if status > 0 {
		e.Message = fmt.Sprintf("HTTP %d: %s", status, e.Message)
	}
	return e
}

// chatFaultOf sorts an answer by its status and the lower-case text of its message and codes.
func chatFaultOf(status int, text string) chatFault {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
	}
	switch {
	case status == 402, has("insufficient_quota", "insufficient balance", "insufficient credits", "billing"):
		return faultCredit
	case has("context_length_exceeded", "context length", "maximum context", "context window", "too many tokens", "prompt is too long", "input token count"):
		return faultContext
	case status == 401, status == 403, has("invalid_api_key", "api key not valid", "incorrect api key"):
		return faultKey
	case has("model_not_found", "no endpoints found"), has("model") && (status == 404 || has("not found", "does not exist", "invalid model", "not a valid model", "unknown model")):
		return faultModel
	case status == 429, has("rate_limit", "rate limit"):
		return faultRate
	case status >= 500, has("overloaded"):
		return faultOverloaded
	}
	return faultRequest
}
