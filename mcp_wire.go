// This file holds what both directions of MCP share: the caps, the method names and the JSON-RPC 2.0 shapes (MCP 2025-11-25,
// Base Protocol). It splits and builds messages; it does no I/O and knows no transport.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Protocol revisions. tai proposes the newest and takes any of the four as an answer (MCP 2025-11-25, Lifecycle).
const (
	mcpProtocolVersion = "2025-11-25"
	mcpVersionBatch    = "2025-03-26" // the one revision in which a message may be an array
)

// mcpVersions lists the revisions that tai speaks as a client, newest first.
func mcpVersions() []string {
	return []string{mcpProtocolVersion, "2025-06-18", mcpVersionBatch, "2024-11-05"}
}

// Caps. Each has a row in mcp.md under its upper-case name, and a test keeps the values equal.
const (
	mcpConnectTimeout = 20 * time.Second   // spawn or dial, handshake and first list, per server
	mcpCallTimeout    = 60 * time.Second   // one tools/call; then a cancel notification and a local failure
	mcpResultMax      = 64 << 10           // bytes of result text kept inline; more becomes a record
	mcpHTTPMaxBody    = 10 << 20           // bytes of one message, on stdio as on HTTP, after decompression
	mcpMaxServers     = 32                 // registered servers
	mcpMaxTools       = 100                // tools bridged per server; more are listed, not offered
	mcpMaxListed      = 10_000             // tools read from one server's list
	mcpMaxPages       = 200                // pages of one tools/list
	mcpSchemaMax      = 256 << 10          // bytes of one tool's schema; a larger one withholds the tool
	mcpDescriptionMax = 4 << 10            // bytes of a tool's description that a model is given; the pin covers all of it
	mcpNameMax        = 256                // bytes of a tool's own name; a longer one withholds the tool
	mcpSessionIdle    = 3600 * time.Second // a served session without a request is dropped after this
	mcpMaxSessions    = 1000               // served sessions at a time; then the longest idle one goes
	mcpOauthTimeout   = 300 * time.Second  // a login waits so long for the answer in the browser
	mcpChatTimeout    = 600 * time.Second  // one served turn of chat, its wait for the turn before it included

	mcpResolverTimeout = 300 * time.Second // the sub-agent of one GitHub repository
	mcpResolverSteps   = 12                // replies of its model
)

// Method names.
const (
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodPing        = "ping"
	methodToolsList   = "tools/list"
	methodToolsCall   = "tools/call"
	methodCancelled   = "notifications/cancelled"
	methodListChanged = "notifications/tools/list_changed"
)

// JSON-RPC error codes (JSON-RPC 2.0, section 5.1) and the one code of tai's own: refused by the policy.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeUnknownMethod  = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeDenied         = -32001
)

// rpcMessage is one JSON-RPC message. ID is the raw bytes of the id, nil where there is none. All raw parts alias the bytes
// the message was read from.
type rpcMessage struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *rpcError
}

// rpcError is a protocol failure, never a tool's own.
type rpcError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

func (e *rpcError) Error() string {
	return fmt.Sprintf("protocol error %d: %s", e.Code, clip(visibleLine(e.Message), 500))
}

// rpcKind sorts messages by what they carry.
type rpcKind int

const (
	rpcInvalid      rpcKind = iota
	rpcRequest              // method and id
	rpcNotification         // method only
	rpcResponse             // id, and a result or an error
	rpcPeerError            // an error without id: about the connection
)

func (m rpcMessage) kind() rpcKind {
	switch {
	case m.Method != "" && m.ID != nil:
		return rpcRequest
	case m.Method != "":
		return rpcNotification
	case m.ID != nil && (m.Result != nil || m.Error != nil):
		return rpcResponse
	case m.Error != nil:
		return rpcPeerError
	}
	return rpcInvalid
}

func isNull(raw json.RawMessage) bool { return len(raw) == 4 && string(raw) == "null" }

// decodeMessage splits one message. What is no JSON is -32700, what is no message -32600, both as *rpcError.
func decodeMessage(b []byte) (rpcMessage, error) {
	var buf [8]jsonMember
	members, err := jsonObjectInto(buf[:0], b)
	if err != nil {
		return rpcMessage{}, messageFault(b, err)
	}
	var m rpcMessage
	var version bool
	var methodSeen bool
	for _, x := range members {
		switch x.Key {
		case "jsonrpc":
			version = string(x.Value) == `"2.0"`
		case "id":
			if m.ID, err = messageID(x.Value); err != nil {
				return rpcMessage{}, err
			}
		case "method":
			methodSeen = true
			m.Method, _ = jsonString(x.Value)
		case "params":
			m.Params = x.Value
		case "result":
			m.Result = x.Value
		case "error":
			m.Error = messageError(x.Value)
		}
	}
	if m.Error != nil && isNull(m.Result) {
		m.Result = nil
	}
	switch {
	case !version:
		return rpcMessage{}, &rpcError{Code: codeInvalidRequest, Message: `member "jsonrpc" is not "2.0"`}
	case methodSeen && m.Method == "":
		return rpcMessage{}, &rpcError{Code: codeInvalidRequest, Message: "method is no name"}
	case m.Result != nil && m.Error != nil:
		return rpcMessage{}, &rpcError{Code: codeInvalidRequest, Message: "both result and error"}
	case methodSeen && hasNullID(members), m.kind() == rpcInvalid:
		return rpcMessage{}, &rpcError{Code: codeInvalidRequest, Message: "neither request, notification nor response"}
	}
	return m, nil
}

// messageFault tells a text that is no JSON (-32700) from JSON that is no single message (-32600).
func messageFault(b []byte, err error) error {
	if checkJSON(b) == nil {
		return &rpcError{Code: codeInvalidRequest, Message: "one message object was expected"}
	}
	if je, ok := errors.AsType[*jsonError](err); ok && je.Offset == 0 && json.Valid(b) {
		return &rpcError{Code: codeInvalidRequest, Message: je.Msg}
	}
	return &rpcError{Code: codeParse, Message: err.Error()}
}

// messageID takes a string or an integer as it stands; null counts as no id.
func messageID(raw json.RawMessage) (json.RawMessage, error) {
	switch {
	case isNull(raw):
		return nil, nil
	case raw[0] == '"':
		return raw, nil
	case numberLen(raw) == len(raw) && !bytes.ContainsAny(raw, ".eE"):
		return raw, nil
	}
	return nil, &rpcError{Code: codeInvalidRequest, Message: "id is neither a string nor an integer"}
}

func hasNullID(members []jsonMember) bool {
	return slices.ContainsFunc(members, func(m jsonMember) bool { return m.Key == "id" && isNull(m.Value) })
}

// messageError reads an error member. One of the wrong shape still fails the request it answers, with what it said.
func messageError(raw json.RawMessage) *rpcError {
	if isNull(raw) {
		return nil
	}
	members, err := jsonObject(raw)
	if err != nil {
		return &rpcError{Code: codeInternal, Message: "error of the wrong shape: " + clip(string(raw), 200)}
	}
	e := &rpcError{}
	for _, m := range members {
		switch m.Key {
		case "code":
			e.Code, _ = strconv.Atoi(string(m.Value))
		case "message":
			e.Message, _ = jsonString(m.Value)
		case "data":
			e.Data = m.Value
		}
	}
	return e
}

// isBatch reports an array, which is a message under revision 2025-03-26 alone.
func isBatch(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == '['
}

// decodeBatch splits an array of messages (MCP 2025-03-26). One bad member makes the whole batch bad.
func decodeBatch(b []byte) ([]rpcMessage, error) {
	items, err := jsonArray(b)
	if err != nil {
		return nil, &rpcError{Code: codeParse, Message: err.Error()}
	}
	if len(items) == 0 {
		return nil, &rpcError{Code: codeInvalidRequest, Message: "empty batch"}
	}
	out := make([]rpcMessage, 0, len(items))
	for _, item := range items {
		m, err := decodeMessage(item)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// appendMessage appends m as one line without the line end.
func appendMessage(dst []byte, m rpcMessage) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if m.ID != nil {
		dst = append(append(dst, `,"id":`...), m.ID...)
	}
	if m.Method != "" {
		dst = appendJSONString(append(dst, `,"method":`...), m.Method)
		if m.Params != nil {
			dst = appendRaw(append(dst, `,"params":`...), m.Params)
		}
		return append(dst, '}')
	}
	if m.ID == nil {
		dst = append(dst, `,"id":null`...)
	}
	if m.Error != nil {
		dst = append(dst, `,"error":{"code":`...)
		dst = strconv.AppendInt(dst, int64(m.Error.Code), 10)
		dst = appendJSONString(append(dst, `,"message":`...), m.Error.Message)
		if m.Error.Data != nil {
			dst = appendRaw(append(dst, `,"data":`...), m.Error.Data)
		}
		return append(dst, "}}"...)
	}
	return append(appendRaw(append(dst, `,"result":`...), m.Result), '}')
}

// appendRaw appends JSON as it stands; only raw line ends, which would break the framing, are taken out.
func appendRaw(dst []byte, raw json.RawMessage) []byte {
	if bytes.IndexByte(raw, '\n') >= 0 || bytes.IndexByte(raw, '\r') >= 0 {
		return compactJSON(dst, raw)
	}
	return append(dst, raw...)
}

// answerPeer gives the answer to a request that a server sends to tai: {} to ping, -32601 to everything else, because tai
// declares no client features. It reports false for what needs no answer.
func answerPeer(m rpcMessage) (rpcMessage, bool) {
	if m.kind() != rpcRequest {
		return rpcMessage{}, false
	}
	if m.Method == methodPing {
		return rpcMessage{ID: m.ID, Result: json.RawMessage(`{}`)}, true
	}
	return rpcMessage{ID: m.ID, Error: &rpcError{Code: codeUnknownMethod, Message: "tai offers no such method"}}, true
}

// toolDef is one tool as a server lists it. Fault says why it cannot be offered, Warn what was repaired. All raw parts alias
// the list they were read from; whoever keeps a toolDef clones them.
type toolDef struct {
	Name         string
	Title        string
	Description  string
	InputSchema  json.RawMessage // as it came; nil where it was missing or no object, see Warn
	OutputSchema json.RawMessage
	Annotations  json.RawMessage
	Raw          json.RawMessage
	Fault        string
	Warn         string
}

const mcpToolBytes = 2 << 20 // bytes of one tool's whole definition; of a larger one nothing but the name is kept

// decodeToolList hands the tools of a tools/list result to take, one after another, as a list can name millions (R2). Each is
// looked at by itself, so that a bad one never sinks the list; after an error what was taken is void. more
// reports a further page; an empty cursor ends the list in the revisions up to 2025-11-25.
func decodeToolList(raw json.RawMessage, take func(toolDef)) (cursor string, more bool, err error) {
	members, err := jsonObject(raw)
	if err != nil {
		return "", false, errorf("tools/list result: %w", err)
	}
	found := false
	for _, m := range members {
		switch m.Key {
		case "tools":
			found = true
			if err := jsonEach(m.Value, func(item json.RawMessage) error { take(decodeTool(item)); return nil }); err != nil {
				return "", false, errorf("tools/list result: member tools: %w", err)
			}
		case "nextCursor":
			cursor, _ = jsonString(m.Value)
			more = cursor != ""
		}
	}
	if !found {
		return "", false, newError("tools/list result: member tools is missing")
	}
	return cursor, more, nil
}

func decodeTool(raw json.RawMessage) toolDef {
	t := decodeToolParts(raw)
	if len(raw) > mcpToolBytes {
		return toolDef{Name: t.Name, Fault: cmp.Or(t.Fault, fmt.Sprintf("its definition has %d bytes, at most %d are taken", len(raw), mcpToolBytes))}
	}
	return t
}

func decodeToolParts(raw json.RawMessage) toolDef {
	t := toolDef{Raw: raw}
	members, err := jsonObject(raw)
	if err != nil {
		t.Fault = "it is no JSON object"
		if len(raw) > 0 && raw[0] == '{' {
			t.Fault = err.Error()
		}
		return t
	}
	named := false
	for _, m := range members {
		switch m.Key {
		case "name":
			t.Name, named = jsonString(m.Value)
		case "title":
			t.Title, _ = jsonString(m.Value)
		case "description":
			if s, ok := jsonString(m.Value); ok {
				t.Description = s
			} else if !isNull(m.Value) {
				t.Warn = "its description is no text"
			}
		case "inputSchema":
			t.InputSchema = m.Value
		case "outputSchema":
			t.OutputSchema = m.Value
		case "annotations":
			t.Annotations = m.Value
		case "execution":
			t.Fault = taskFault(m.Value)
		}
	}
	t.checkSchema()
	switch {
	case !named || t.Name == "":
		t.Name, t.Fault = "", "it has no name"
	case len(t.Name) > mcpNameMax:
		t.Fault = fmt.Sprintf("its name has %d bytes, at most %d are taken", len(t.Name), mcpNameMax)
	}
	return t
}

// checkSchema repairs what means "no arguments" and faults what tai will not look into.
func (t *toolDef) checkSchema() {
	for _, s := range []json.RawMessage{t.InputSchema, t.OutputSchema} {
		if len(s) > mcpSchemaMax {
			t.Fault = fmt.Sprintf("its schema has %d bytes, at most %d are taken", len(s), mcpSchemaMax)
		} else if s != nil {
			if err := checkJSON(s); err != nil {
				t.Fault = "its schema is " + err.Error()
			}
		}
	}
	if len(t.InputSchema) == 0 || t.InputSchema[0] != '{' {
		t.Warn = "its inputSchema is no object; it is taken as one without arguments"
		t.InputSchema = nil
	}
}

// taskFault names the one way of calling that tai does not speak: a tool that must run as a task (MCP 2025-11-25, Tasks).
func taskFault(raw json.RawMessage) string {
	members, err := jsonObject(raw)
	if err != nil {
		return ""
	}
	for _, m := range members {
		if m.Key == "taskSupport" && string(m.Value) == `"required"` {
			return "it can be called as a task only, which tai does not do"
		}
	}
	return ""
}

// callResult is the outcome of a tool that ran. A failure of the tool has IsError; it is no protocol error.
type callResult struct {
	Content    []json.RawMessage
	Structured json.RawMessage // nil where absent or null
	IsError    bool

	texts []json.RawMessage // of each item of Content its text, as it was written; nil for an item of another type
}

// decodeCallResult splits the result of a tools/call, which decodeMessage gave. A missing content is an empty one. Results may be
// large, so one walk finds everything in them.
func decodeCallResult(raw json.RawMessage) (callResult, error) {
	var r callResult
	p := jsonScan{b: raw, again: true}
	if p.space(); p.i == len(raw) || raw[p.i] != '{' {
		return callResult{}, errorf("tools/call result: %w", p.fault("an object was expected"))
	}
	err := p.eachMember(func(key []byte) error { return r.takeMember(&p, string(key)) })
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return callResult{}, errorf("tools/call result: %w", err)
	}
	return r, nil
}

// takeMember reads one member of the result.
func (r *callResult) takeMember(p *jsonScan, key string) error {
	if key == "content" && p.i < len(p.b) && p.b[p.i] == '[' {
		if err := p.eachItem(func() error { return r.takeItem(p) }); err != nil {
			return errorf("member content: %w", err)
		}
		return nil
	}
	value, err := p.value()
	if err != nil {
		return err
	}
	switch {
	case key == "content" && !isNull(value):
		return newError("member content is no array")
	case key == "structuredContent" && !isNull(value):
		if err := checkJSON(value); err != nil {
			return errorf("member structuredContent: %w", err)
		}
		r.Structured = value
	case key == "isError" && string(value) == "true":
		r.IsError = true
	case key == "isError" && string(value) != "false" && !isNull(value):
		return newError("member isError is neither true nor false")
	}
	return nil
}

// takeItem reads one item of the content. What is more than an object of plain values is looked through to its bottom (R5).
func (r *callResult) takeItem(p *jsonScan) error {
	if len(r.Content) == jsonMaxItems {
		return errJSONItems
	}
	start := p.i
	var text json.RawMessage
	var buf [4]jsonMember
	members, err := p.members(buf[:0])
	if err == nil {
		text = itemText(members)
	}
	if err != nil || slices.ContainsFunc(members, func(m jsonMember) bool { return m.Value[0] == '{' || m.Value[0] == '[' }) {
		p.i = start
		if err := p.check(2); err != nil {
			return err
		}
	}
	r.Content = append(r.Content, p.b[start:p.i:p.i])
	r.texts = append(r.texts, text)
	return nil
}

// itemText gives the text of a content item of type text as it was written, nil for any other.
func itemText(members []jsonMember) json.RawMessage {
	var text json.RawMessage
	isText := false
	for _, m := range members {
		switch m.Key {
		case "type":
			isText = string(m.Value) == `"text"`
		case "text":
			text = m.Value
		}
	}
	if !isText || len(text) == 0 || text[0] != '"' {
		return nil
	}
	return text
}

// appendCallResult appends r as the result object of tools/call.
func appendCallResult(dst []byte, r callResult) []byte {
	dst = append(dst, `{"content":[`...)
	for i, c := range r.Content {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendRaw(dst, c)
	}
	dst = append(dst, ']')
	if r.Structured != nil {
		dst = appendRaw(append(dst, `,"structuredContent":`...), r.Structured)
	}
	return append(strconv.AppendBool(append(dst, `,"isError":`...), r.IsError), '}')
}

// textContent gives the content list that holds one text.
func textContent(s string) []json.RawMessage {
	return []json.RawMessage{append(appendJSONString([]byte(`{"type":"text","text":`), s), '}')}
}
