// This file is the wire of OpenAI-compatible chat completions: the request body, and the reply from its chunks. The providers differ in small
// ways; what they do in common is written here, where they differ chatQuirks says it. It sends nothing; chat.go does.
package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// chatSignature stands for the signature of a model's thoughts at a call that has none, as of another model's or of an earlier session
// (ai.google.dev, Gemini API, Thought signatures).
const chatSignature = "skip_thought_signature_validator"

// appendOpenAIRequest writes the body of a streaming chat completion request.
func appendOpenAIRequest(dst []byte, e chatEndpoint, r chatRequest) []byte {
	dst = append(dst, `{"model":`...)
	dst = appendJSONString(dst, e.Model)
	dst = append(dst, `,"stream":true`...)
	if !e.plainUsage {
		dst = append(dst, `,"stream_options":{"include_usage":true}`...)
	}
	if n := r.maxTokens(e); n > 0 {
		dst = append(dst, `,"`...)
		dst = append(dst, e.maxTokensKey()...)
		dst = append(dst, `":`...)
		dst = strconv.AppendInt(dst, int64(n), 10)
	}
	if e.noEffort && len(r.Tools) > 0 {
		dst = append(dst, `,"reasoning_effort":"none"`...)
	}
	if e.noThinking {
		dst = append(dst, `,"thinking":{"type":"disabled"}`...)
	}
	dst = append(dst, `,"messages":[`...)
	if r.System != "" {
		dst = append(dst, `{"role":"system","content":`...)
		dst = appendJSONString(dst, r.System)
		dst = append(dst, "},"...)
	}
	last := roleUser
	for _, m := range wireHistory(r.Messages, e.shortIDs) {
		if e.answersFirst && last == roleTool && m.Role == roleUser {
			dst = append(appendOpenAIMessage(dst, chatMessage{Role: roleAssistant, Content: chatNoAnswer}, e), ',')
		}
		last = m.Role
		dst = append(appendOpenAIMessage(dst, m, e), ',')
	}
	dst = append(bytes.TrimSuffix(dst, []byte(",")), ']')
	if len(r.Tools) > 0 {
		dst = append(dst, `,"tools":[`...)
		for _, t := range r.Tools {
			dst = append(appendOpenAITool(dst, t), ',')
		}
		dst = append(bytes.TrimSuffix(dst, []byte(",")), ']')
	}
	return append(dst, '}')
}

// maxTokensKey is the member that bounds the answer; OpenAI's newer models refuse the old name that everyone else takes.
func (e chatEndpoint) maxTokensKey() string {
	if e.newMaxTokens {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

func appendOpenAITool(dst []byte, t chatTool) []byte {
	dst = append(dst, `{"type":"function","function":{"name":`...)
	dst = appendJSONString(dst, t.Name)
	dst = append(dst, `,"description":`...)
	dst = appendJSONString(dst, t.Description)
	dst = append(dst, `,"parameters":`...)
	return append(append(dst, t.Schema...), "}}"...)
}

func appendOpenAIMessage(dst []byte, m chatMessage, e chatEndpoint) []byte {
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
		for i, c := range m.Calls {
			dst = append(dst, `{"id":`...)
			dst = appendJSONString(dst, c.ID)
			dst = append(dst, `,"type":"function","function":{"name":`...)
			dst = appendJSONString(dst, c.Name)
			dst = append(dst, `,"arguments":`...)
			dst = appendJSONString(dst, chatWireArgs(c.Args))
			dst = append(dst, '}')
			if e.signedCalls && i == 0 {
				dst = append(dst, `,"extra_content":{"google":{"thought_signature":"`+chatSignature+`"}}`...)
			}
			dst = append(dst, "},"...)
		}
		dst = append(bytes.TrimSuffix(dst, []byte(",")), ']')
	}
	return append(dst, '}')
}

// openAIReader puts a reply together from its chunks.
type openAIReader struct {
	reply   chatReply
	text    []byte
	calls   []*chatPartialCall
	stopped bool // a finish_reason has come
}

func (a *openAIReader) over() bool { return a.stopped }

func (a *openAIReader) partial() chatReply {
	return chatReply{Text: string(a.text), Usage: a.reply.Usage}
}

// take reads one chunk, or one whole reply. [DONE] ends a stream; an endpoint that names no finish_reason has still come to its end with it.
func (a *openAIReader) take(b []byte) (text string, more bool, err error) {
	if string(bytes.TrimSpace(b)) == "[DONE]" {
		if !a.stopped {
			a.reply.Stop, a.stopped = stopEnd, true
		}
		return "", false, nil
	}
	text, err = a.chunk(b)
	return text, err == nil, err
}

func (a *openAIReader) chunk(b []byte) (text string, err error) {
	top, err := chatFields(b)
	if err != nil {
		return "", errorf("read reply chunk: %w", err)
	}
	if chatPresent(top["error"]) {
		return "", chatErrorOf(0, b)
	}
	a.usage(top["usage"])
	if groq, err := chatFields(top["x_groq"]); err == nil {
		a.usage(groq["usage"])
	}
	if !chatPresent(top["choices"]) {
		return "", nil
	}
	choices, err := jsonArray(top["choices"])
	if err != nil {
		return "", errorf("read reply chunk: choices: %w", err)
	}
	if len(choices) == 0 {
		return "", nil // the usage chunk
	}
	choice, err := chatFields(choices[0])
	if err != nil {
		return "", errorf("read reply chunk: choice: %w", err)
	}
	if chatPresent(choice["error"]) {
		return "", chatErrorOf(0, choices[0])
	}
	a.usage(choice["usage"])
	body := choice["delta"]
	if !chatPresent(body) {
		body = choice["message"]
	}
	if chatPresent(body) {
		if text, err = a.delta(body); err != nil {
			return text, errorf("read reply chunk: %w", err)
		}
	}
	if stop, ok := jsonString(choice["finish_reason"]); ok && stop != "" {
		return text, a.stop(stop)
	}
	return text, nil
}

// stop brings the reasons of the providers to those of chatReply.
func (a *openAIReader) stop(why string) error {
	switch strings.ToLower(why) {
	case "stop", "eos", "end_turn", "stop_sequence":
		why = stopEnd
	case "tool_calls", "function_call", "tool_use":
		why = stopCalls
	case "length", "model_length", "max_tokens":
		why = stopLength
	case "content_filter", "safety", "refusal":
		why = stopFilter
	case "insufficient_system_resource":
		return &chatError{Fault: faultOverloaded, Message: "the endpoint ran out of resources in the middle of the reply"}
	case "error":
		return &chatError{Fault: faultReply, Message: "the endpoint ended the reply with an error that it does not name"}
	}
	a.reply.Stop, a.stopped = why, true
	return nil
}

func (a *openAIReader) delta(b json.RawMessage) (string, error) {
	d, err := chatFields(b)
	if err != nil {
		return "", err
	}
	text := openAIText(d["content"])
	if text == "" {
		text, _ = jsonString(d["refusal"])
	}
	a.text = append(a.text, text...)
	if !chatPresent(d["tool_calls"]) {
		return text, nil
	}
	calls, err := jsonArray(d["tool_calls"])
	if err != nil {
		return text, errorf("tool_calls: %w", err)
	}
	for _, c := range calls {
		if err := a.toolCall(c); err != nil {
			return text, errorf("tool call: %w", err)
		}
	}
	return text, nil
}

// openAIText gives the text of content: a string by the book, a list of parts from reasoning models of Mistral, of which only the text counts.
func openAIText(raw json.RawMessage) string {
	if s, ok := jsonString(raw); ok {
		return s
	}
	parts, err := jsonArray(raw)
	if err != nil {
		return ""
	}
	var text strings.Builder
	for _, p := range parts {
		fields, err := chatFields(p)
		if kind, _ := jsonString(fields["type"]); err == nil && kind == "text" {
			s, _ := jsonString(fields["text"])
			text.WriteString(s)
		}
	}
	return text.String()
}

// toolCall adds a piece of a call. Pieces belong together by index; an endpoint that leaves the index out, or counts every call as 0, is
// understood by the id, which only the first piece of a call carries.
func (a *openAIReader) toolCall(b json.RawMessage) error {
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
	p := a.call(chatIndex(c["index"]), id, name)
	if p == nil {
		return errorf("more than %d in one reply", chatMaxCalls)
	}
	return p.add(args)
}

// call finds or starts the call that a piece belongs to; nil if there are too many.
func (a *openAIReader) call(index int, id, name string) *chatPartialCall {
	for i := len(a.calls) - 1; i >= 0; i-- {
		p := a.calls[i]
		same := p.index == index && (id == "" || p.id == "" || id == p.id)
		if index < 0 { // without an id a name starts a new call, and a piece without either goes on with the last one
			same = id != "" && id == p.id || id == "" && name == ""
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

func (a *openAIReader) finish() (chatReply, error) {
	if !a.stopped {
		return chatReply{}, chatCut(len(a.calls))
	}
	r := a.reply
	r.Text = string(a.text)
	return r, finishCalls(&r, a.calls)
}

// usage takes the counts where they stand: at the top, in the choice, or in a member of the provider's own.
func (a *openAIReader) usage(b json.RawMessage) {
	u, err := chatFields(b)
	if err != nil {
		return
	}
	usage := chatUsage{Input: chatCount(u["prompt_tokens"]), Output: chatCount(u["completion_tokens"]), Cached: chatCount(u["prompt_cache_hit_tokens"])}
	for _, details := range []string{"prompt_tokens_details", "input_tokens_details"} {
		if d, err := chatFields(u[details]); err == nil {
			usage.Cached = max(usage.Cached, chatCount(d["cached_tokens"]))
		}
	}
	if usage != (chatUsage{}) {
		a.reply.Usage = usage
	}
}
