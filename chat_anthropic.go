// This file is the wire of Anthropic's Messages API (platform.claude.com, API reference, Messages and Streaming): the request body, and the
// reply from its events. Thinking is neither asked for nor sent back: models that think by themselves take their calls without it. It sends
// nothing; chat.go does.
package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

const (
	anthropicMaxTokens = 32_000                                  // tokens of one reply where nothing is set; the API wants a number. A model that takes fewer says so
	anthropicMark      = `,"cache_control":{"type":"ephemeral"}` // the API takes four of them in one request
)

// anthropicTurn is one message on the wire. Each block lacks its closing brace, so that a cache mark can be put in.
type anthropicTurn struct {
	role   chatRole
	blocks [][]byte
}

// appendAnthropicRequest writes the body of a streaming request. Marks for the prompt cache stand at the tools, the system text, and the last
// two messages of the person's side: the second finds the prefix that the request before has left there.
func appendAnthropicRequest(dst []byte, e chatEndpoint, r chatRequest) []byte {
	dst = append(dst, `{"model":`...)
	dst = appendJSONString(dst, e.Model)
	dst = append(dst, `,"max_tokens":`...)
	tokens := r.maxTokens(e)
	if tokens <= 0 {
		tokens = anthropicMaxTokens
	}
	dst = strconv.AppendInt(dst, int64(tokens), 10)
	dst = append(dst, `,"stream":true`...)
	if strings.TrimSpace(r.System) != "" {
		dst = append(dst, `,"system":[{"type":"text","text":`...)
		dst = append(appendJSONString(dst, r.System), anthropicMark+"}]"...)
	}
	if len(r.Tools) > 0 {
		dst = append(dst, `,"tools":[`...)
		for i, t := range r.Tools {
			dst = append(appendJSONString(append(dst, `{"name":`...), t.Name), `,"description":`...)
			dst = append(appendJSONString(dst, t.Description), `,"input_schema":`...)
			dst = append(dst, t.Schema...)
			if i == len(r.Tools)-1 {
				dst = append(dst, anthropicMark...)
			}
			dst = append(dst, "},"...)
		}
		dst = append(bytes.TrimSuffix(dst, []byte(",")), ']')
	}
	turns := anthropicTurns(r.Messages)
	for i, left := len(turns)-1, 2; i >= 0 && left > 0; i, left = i-2, left-1 { // the sides take turns and the last message is the person's
		t := turns[i]
		t.blocks[len(t.blocks)-1] = append(t.blocks[len(t.blocks)-1], anthropicMark...)
	}
	dst = append(dst, `,"messages":[`...)
	for _, t := range turns {
		dst = append(appendJSONString(append(dst, `{"role":`...), string(t.role)), `,"content":[`...)
		for _, b := range t.blocks {
			dst = append(append(dst, b...), "},"...)
		}
		dst = append(bytes.TrimSuffix(dst, []byte(",")), "]},"...)
	}
	return append(bytes.TrimSuffix(dst, []byte(",")), "]}"...)
}

// anthropicTurns brings the history to messages of the two sides in turn: the results of one message stand together in the next, before
// anything else that the person says; the first and the last message are the person's, and no text is blank.
func anthropicTurns(msgs []chatMessage) []anthropicTurn {
	var turns []anthropicTurn
	put := func(role chatRole, block []byte) {
		if len(turns) == 0 && role == roleAssistant {
			turns = append(turns, anthropicTurn{roleUser, [][]byte{anthropicText(chatGoOn)}})
		}
		if n := len(turns); n == 0 || turns[n-1].role != role {
			turns = append(turns, anthropicTurn{role: role})
		}
		t := &turns[len(turns)-1]
		t.blocks = append(t.blocks, block)
	}
	for _, m := range wireHistory(msgs, false) {
		switch m.Role {
		case roleTool:
			put(roleUser, anthropicResult(m))
			continue
		case roleUser:
			put(roleUser, anthropicText(m.Content))
			continue
		}
		if strings.TrimSpace(m.Content) != "" {
			put(roleAssistant, anthropicText(m.Content))
		}
		for _, c := range m.Calls {
			block := appendJSONString([]byte(`{"type":"tool_use","id":`), c.ID)
			block = append(appendJSONString(append(block, `,"name":`...), c.Name), `,"input":`...)
			put(roleAssistant, append(block, chatWireArgs(c.Args)...))
		}
	}
	if n := len(turns); n == 0 || turns[n-1].role == roleAssistant {
		put(roleUser, anthropicText(chatGoOn))
	}
	return turns
}

// anthropicText is a text block. Blank texts are refused, and so is white space at the end of what the model said.
func anthropicText(text string) []byte {
	if strings.TrimSpace(text) == "" {
		text = chatNoText
	}
	return appendJSONString([]byte(`{"type":"text","text":`), strings.TrimRight(text, " \t\r\n"))
}

func anthropicResult(m chatMessage) []byte {
	block := appendJSONString([]byte(`{"type":"tool_result","tool_use_id":`), m.CallID)
	if strings.TrimSpace(m.Content) == "" {
		m.Content = chatNoText
	}
	block = appendJSONString(append(block, `,"content":`...), m.Content)
	if m.IsError {
		block = append(block, `,"is_error":true`...)
	}
	return block
}

// anthropicReader puts a reply together from its events, which are told apart by their type; the event's name says the same.
type anthropicReader struct {
	reply   chatReply
	text    []byte
	calls   []*chatPartialCall
	stopped bool // the reason to stop has come
}

func (a *anthropicReader) over() bool { return a.stopped }

func (a *anthropicReader) partial() chatReply {
	return chatReply{Text: string(a.text), Usage: a.reply.Usage}
}

// take passes over events and blocks of types that it does not know, as the API asks its readers to.
func (a *anthropicReader) take(b []byte) (text string, more bool, err error) {
	top, err := chatFields(b)
	if err != nil {
		return "", false, errorf("read reply event: %w", err)
	}
	kind, _ := jsonString(top["type"])
	switch kind {
	case "error":
		return "", false, chatErrorOf(0, b)
	case "message_start":
		if m, err := chatFields(top["message"]); err == nil {
			a.usage(m["usage"])
		}
	case "content_block_start":
		text, err = a.block(chatIndex(top["index"]), top["content_block"])
	case "content_block_delta":
		text, err = a.delta(chatIndex(top["index"]), top["delta"])
	case "content_block_stop":
		a.close(chatIndex(top["index"]))
	case "message_delta":
		a.usage(top["usage"])
		if d, err := chatFields(top["delta"]); err == nil {
			a.stop(d["stop_reason"])
		}
	case "message_stop":
		return "", false, nil
	case "message":
		text, err = a.whole(top)
	case "":
		if chatPresent(top["error"]) {
			return "", false, chatErrorOf(0, b)
		}
		err = errorf("an event without a type")
	}
	if err != nil {
		err = errorf("read reply event: %w", err)
	}
	return text, err == nil, err
}

// whole reads a reply that was not streamed.
func (a *anthropicReader) whole(top map[string]json.RawMessage) (string, error) {
	a.usage(top["usage"])
	blocks, err := jsonArray(top["content"])
	if err != nil {
		return "", errorf("content: %w", err)
	}
	for i, b := range blocks {
		if _, err := a.block(i, b); err != nil {
			return string(a.text), err
		}
		a.close(i)
	}
	a.stop(top["stop_reason"])
	return string(a.text), nil
}

// block starts a block. The input of a call is an empty object here, and then comes in deltas; some compatible servers send it whole.
func (a *anthropicReader) block(index int, raw json.RawMessage) (string, error) {
	b, err := chatFields(raw)
	if err != nil {
		return "", errorf("content block: %w", err)
	}
	switch kind, _ := jsonString(b["type"]); kind {
	case "text":
		text, _ := jsonString(b["text"])
		a.text = append(a.text, text...)
		return text, nil
	case "tool_use":
		if len(a.calls) == chatMaxCalls {
			return "", errorf("more than %d tool calls in one reply", chatMaxCalls)
		}
		p := &chatPartialCall{index: index}
		p.id, _ = jsonString(b["id"])
		p.name, _ = jsonString(b["name"])
		a.calls = append(a.calls, p)
		if members, err := jsonObject(b["input"]); err == nil && len(members) > 0 {
			return "", p.add(string(b["input"]))
		}
	}
	return "", nil
}

func (a *anthropicReader) delta(index int, raw json.RawMessage) (string, error) {
	d, err := chatFields(raw)
	if err != nil {
		return "", errorf("delta: %w", err)
	}
	switch kind, _ := jsonString(d["type"]); kind {
	case "text_delta":
		text, _ := jsonString(d["text"])
		a.text = append(a.text, text...)
		return text, nil
	case "input_json_delta":
		part, _ := jsonString(d["partial_json"])
		for _, p := range a.calls {
			if p.index == index {
				return "", p.add(part)
			}
		}
	}
	return "", nil
}

// close ends a block: a call that has no arguments by then takes none.
func (a *anthropicReader) close(index int) {
	for _, p := range a.calls {
		if p.index == index && len(p.args) == 0 {
			p.args = []byte("{}")
		}
	}
}

// stop brings the API's reasons to those of chatReply; one that it does not know stays as it is.
func (a *anthropicReader) stop(raw json.RawMessage) {
	why, ok := jsonString(raw)
	if !ok || why == "" {
		return
	}
	switch why {
	case "end_turn", "stop_sequence":
		why = stopEnd
	case "tool_use":
		why = stopCalls
	case "max_tokens", "model_context_window_exceeded":
		why = stopLength
	case "refusal":
		why = stopFilter
	}
	a.reply.Stop, a.stopped = why, true
}

func (a *anthropicReader) finish() (chatReply, error) {
	if !a.stopped {
		return chatReply{}, chatCut(len(a.calls))
	}
	r := a.reply
	r.Text = string(a.text)
	return r, finishCalls(&r, a.calls)
}

// usage takes the counts of an event over those before: they are sums. Tokens read from and written to the cache are not in input_tokens; here
// they are, as on the other wire.
func (a *anthropicReader) usage(raw json.RawMessage) {
	u, err := chatFields(raw)
	if err != nil {
		return
	}
	cached := chatCount(u["cache_read_input_tokens"])
	if in := chatCount(u["input_tokens"]) + chatCount(u["cache_creation_input_tokens"]) + cached; in > 0 {
		a.reply.Usage.Input, a.reply.Usage.Cached = max(a.reply.Usage.Input, in), max(a.reply.Usage.Cached, cached)
	}
	a.reply.Usage.Output = max(a.reply.Usage.Output, chatCount(u["output_tokens"]))
}
