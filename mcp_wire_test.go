package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestDecodeMessage(t *testing.T) {
	for _, tc := range []struct {
		in   string
		kind rpcKind
		code int // of the error, 0 for none
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, rpcRequest, 0},
		{`{"jsonrpc":"2.0","id":"7","method":"ping","params":{}}`, rpcRequest, 0},
		{`{"jsonrpc":"2.0","method":"notifications/x"}`, rpcNotification, 0},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, rpcResponse, 0},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`, rpcResponse, 0},
		{`{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":-1,"message":"x"}}`, rpcResponse, 0},
		{`{"jsonrpc":"2.0","id":1,"error":"boom"}`, rpcResponse, 0},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`, rpcPeerError, 0},
		{`{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`, rpcPeerError, 0},
		{` {"extra":[1,{"a":2}],"jsonrpc":"2.0","id":-4,"result":{"a":[]}} `, rpcResponse, 0},
		{`{"jsonrpc":"2.0","ID":1,"Result":{}}`, 0, codeInvalidRequest},                  // HTC-21
		{`{"jsonrpc":"2.0","id":1,"re\u017fult":{}}`, 0, codeInvalidRequest},             // HTC-21: long s folds to s
		{`{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}`, 0, codeInvalidRequest}, // SRV-06
		{`{"jsonrpc":"2.0","id":1,"m\u0065thod":"ping","method":"x"}`, 0, codeInvalidRequest},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, 0, codeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, 0, codeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1e2,"method":"ping"}`, 0, codeInvalidRequest},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, 0, codeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, 0, codeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":""}`, 0, codeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, 0, codeInvalidRequest},
		{`{"jsonrpc":"1.0","id":1,"method":"ping"}`, 0, codeInvalidRequest},
		{`{"id":1,"method":"ping"}`, 0, codeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1}`, 0, codeInvalidRequest},
		{`{}`, 0, codeInvalidRequest},
		{`5`, 0, codeInvalidRequest},
		{`"x"`, 0, codeInvalidRequest},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, 0, codeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"res`, 0, codeParse},
		{`Server running on stdio`, 0, codeParse},
		{`{"jsonrpc":"2.0","id":1,"result":{}} trailing`, 0, codeParse},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\xfe\"}}", 0, codeParse}, // STD-05
		{``, 0, codeParse},
	} {
		m, err := decodeMessage([]byte(tc.in))
		if tc.code != 0 {
			e, ok := errors.AsType[*rpcError](err)
			if !ok || e.Code != tc.code {
				t.Errorf("decodeMessage(%q) = %v, want code %d", tc.in, err, tc.code)
			}
			continue
		}
		if err != nil || m.kind() != tc.kind {
			t.Errorf("decodeMessage(%q) = kind %d, %v, want kind %d", tc.in, m.kind(), err, tc.kind)
		}
	}
}

// W110: an id goes back with its type and value.
func TestMessageRoundTrip(t *testing.T) {
	for _, in := range []string{
		`{"jsonrpc":"2.0","id":"7","method":"tools/call","params":{"name":"a\u001b"}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"x":[1,2.50,1e3]}}`,
		`{"jsonrpc":"2.0","id":90071992547409931234,"error":{"code":-32601,"message":"no \"x\"","data":{"a":1}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		m, err := decodeMessage([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(appendMessage(nil, m)); got != in {
			t.Errorf("appendMessage = %s, want %s", got, in)
		}
	}
}

// W1: one message is one line, whatever white space its parts came with.
func TestAppendMessageOneLine(t *testing.T) {
	m := rpcMessage{ID: json.RawMessage(`1`), Method: "tools/call", Params: json.RawMessage("{\n \"a\":\r\n [1,\t\"b c\\n\"] }")}
	want := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":[1,"b c\n"]}}`
	if got := string(appendMessage(nil, m)); got != want {
		t.Errorf("appendMessage = %q, want %q", got, want)
	}
}

func TestAnswerPeer(t *testing.T) {
	for in, want := range map[string]string{
		`{"jsonrpc":"2.0","id":"s-1","method":"ping"}`:                   `{"jsonrpc":"2.0","id":"s-1","result":{}}`,
		`{"jsonrpc":"2.0","id":4,"method":"roots/list"}`:                 `{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"tai offers no such method"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"sampling/createMessage"}`:     `{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"tai offers no such method"}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`: ``,
	} {
		m, err := decodeMessage([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		a, ok := answerPeer(m)
		if got := string(appendMessage(nil, a)); ok != (want != "") || ok && got != want {
			t.Errorf("answerPeer(%s) = %s, %v, want %s", in, got, ok, want)
		}
	}
}

func TestDecodeToolList(t *testing.T) {
	deep := strings.Repeat(`{"items":`, jsonMaxDepth+1) + `{}` + strings.Repeat(`}`, jsonMaxDepth+1)
	list := `{"tools":[` + strings.Join([]string{
		`{"name":"ok","description":"d","inputSchema":{"type":"object"}}`,
		`{"name":"s","inputSchema":"x"}`, `{"name":"a","inputSchema":[]}`, `{"name":"n","inputSchema":null}`, `{"name":"m"}`, // LST-09
		`{"name":7,"inputSchema":{}}`, `{"name":"","inputSchema":{}}`, `{"inputSchema":{}}`, `"tool"`, // LST-05
		`{"name":"deep","inputSchema":` + deep + `}`, // LST-10
		`{"name":"big","inputSchema":{"description":"` + strings.Repeat("x", mcpSchemaMax) + `"}}`,
		`{"name":"task","inputSchema":{},"execution":{"taskSupport":"required"}}`,
		`{"name":"optional","inputSchema":{},"execution":{"taskSupport":"optional"}}`,
		`{"name":"` + strings.Repeat("n", 1<<20) + `","inputSchema":{}}`,
		`{"name":"twice","inputSchema":{"type":"object","type":"array"}}`,
	}, ",") + `],"nextCursor":"p2"}`
	var tools []toolDef
	cursor, more, err := decodeToolList([]byte(list), func(d toolDef) { tools = append(tools, d) })
	if err != nil || cursor != "p2" || !more {
		t.Fatalf("decodeToolList = cursor %q, %v, %v", cursor, more, err)
	}
	want := []struct {
		name        string
		fault, warn bool
	}{
		{"ok", false, false}, {"s", false, true}, {"a", false, true}, {"n", false, true}, {"m", false, true},
		{"", true, false}, {"", true, false}, {"", true, false}, {"", true, false},
		{"deep", true, false}, {"big", true, false}, {"task", true, false}, {"optional", false, false},
		{strings.Repeat("n", 1<<20), true, false}, {"twice", true, false},
	}
	if len(tools) != len(want) {
		t.Fatalf("%d tools, want %d", len(tools), len(want))
	}
	for i, w := range want {
		if got := tools[i]; got.Name != w.name || (got.Fault != "") != w.fault || (got.Warn != "") != w.warn {
			t.Errorf("tool %d = %q fault %q warn %q, want %v", i, clip(got.Name, 20), got.Fault, got.Warn, w.fault)
		}
	}
}

// W21, F11: an empty cursor ends the list, an absent or null one too.
func TestDecodeToolListEnd(t *testing.T) {
	for in, want := range map[string]bool{`{"tools":[]}`: false, `{"tools":[],"nextCursor":""}`: false, `{"tools":[],"nextCursor":null}`: false, `{"tools":[],"nextCursor":"a"}`: true} {
		if _, more, err := decodeToolList([]byte(in), func(toolDef) {}); err != nil || more != want {
			t.Errorf("decodeToolList(%s) more = %v, %v, want %v", in, more, err, want)
		}
	}
	for _, in := range []string{`{}`, `{"tools":{}}`, `[]`, `null`} {
		if _, _, err := decodeToolList([]byte(in), func(toolDef) {}); err == nil {
			t.Errorf("decodeToolList(%s) was taken", in)
		}
	}
}

// nestedKeys is an object of n keys, the last of which holds another, and so on, to the given depth.
func nestedKeys(depth, n int) string {
	var b strings.Builder
	for d := range depth {
		for i := range n - 1 {
			fmt.Fprintf(&b, `%s"%d":0`, map[bool]string{true: "{", false: ","}[i == 0], i)
		}
		b.WriteString(`,"last":` + map[bool]string{true: "0", false: ""}[d == depth-1])
	}
	return b.String() + strings.Repeat("}", depth)
}

// R2: a list of millions of entries that are no tools costs no memory of their number; a huge definition is not kept.
func TestR2ToolListCost(t *testing.T) {
	list := []byte(`{"tools":[` + strings.Repeat("1,", 1_000_000) + `{"name":"big","description":"` + strings.Repeat("d", mcpToolBytes) + `"}]}`)
	n, unnamed := 0, 0
	var before, inside runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	_, _, err := decodeToolList(list, func(d toolDef) {
		if n++; d.Name == "" {
			unnamed++
			return
		}
		runtime.GC()
		runtime.ReadMemStats(&inside)
		if d.Name != "big" || d.Raw != nil || !strings.Contains(d.Fault, "definition") {
			t.Errorf("%s: %d bytes kept, %s", d.Name, len(d.Raw), d.Fault)
		}
	})
	if err != nil || n != 1_000_001 || unnamed != 1_000_000 {
		t.Errorf("%d tools, %d unnamed, %v", n, unnamed, err)
	}
	if inside.HeapAlloc > before.HeapAlloc+16<<20 {
		t.Errorf("reading the list holds %d bytes", inside.HeapAlloc-before.HeapAlloc)
	}
}

func TestDecodeCallResult(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in         string
		parts      int
		structured string
		isError    bool
		bad        bool
	}{
		{in: `{"content":[{"type":"text","text":"a"}]}`, parts: 1},
		{in: `{}`},               // F20: a missing content is empty
		{in: `{"content":null}`}, // likewise
		{in: `{"content":[],"structuredContent":{"rows":[1,2]}}`, structured: `{"rows":[1,2]}`},
		{in: `{"content":[],"isError":true}`, isError: true},
		{in: `{"content":[],"structuredContent":null,"isError":null}`},
		{in: `{"content":"x"}`, bad: true},
		{in: `{"isError":"yes"}`, bad: true},
		{in: `{"structuredContent":{"a":1,"a":2}}`, bad: true},
		{in: `[]`, bad: true},
		// R5: nothing in a result stands twice, is cut short, or is nested without end.
		{in: `{"content":[{"type":"text","text":"a","text":"b"}]}`, bad: true},
		{in: `{"content":[{"type":"text","a":[1,,2]}]}`, bad: true},
		{in: `{"content":[{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}]}`, bad: true},
		// R2: parts and keys that take many times their own size.
		{in: `{"content":[` + strings.Repeat("1,", jsonMaxItems-1) + `1]}`, parts: jsonMaxItems},
		{in: `{"content":[` + strings.Repeat("1,", jsonMaxItems) + `1]}`, bad: true},
		{in: `{"structuredContent":` + nestedKeys(2, jsonMaxItems/2) + `}`, structured: nestedKeys(2, jsonMaxItems/2)},
		{in: `{"structuredContent":` + nestedKeys(2, jsonMaxItems/2+1) + `}`, bad: true},
		{in: nestedKeys(1, jsonMaxItems+1), bad: true},
	} {
		r, err := decodeCallResult([]byte(tc.in))
		if (err != nil) != tc.bad {
			t.Errorf("decodeCallResult(%s) = %v, want an error: %v", tc.in, err, tc.bad)
		}
		if !tc.bad && (len(r.Content) != tc.parts || string(r.Structured) != tc.structured || r.IsError != tc.isError) {
			t.Errorf("decodeCallResult(%s) = %+v", tc.in, r)
		}
	}
}
