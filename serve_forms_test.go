package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// F23: bound to loopback, it answers at no other address of the machine.
func TestServeAddresses(t *testing.T) {
	f := serveMake(t, modeDanger, nil)
	addr, stop := f.serveRun(t)
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "127.0.0.1" {
		t.Fatalf("%s, %v", addr, err)
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		ip, ok := a.(*net.IPNet)
		if !ok || ip.IP.IsLoopback() || ip.IP.IsLinkLocalUnicast() {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(ip.IP.String(), port))
		cancel()
		if err == nil {
			conn.Close()
			t.Errorf("it answers at %s", ip.IP)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestServeW85Natives: what the reading tools give fits the outputSchema that they declare, at both doors; a spilled one too.
func TestServeW85Natives(t *testing.T) {
	r := newCLIRig(t)
	seedWrite(t, filepath.Join(r.dir, "a.txt"), "Tea at four.\n")
	seedWrite(t, filepath.Join(r.dir, "big.txt"), strings.Repeat("0123456789\n", 20_000))
	s := r.governed("--permission-mode", "danger-full-access")
	natives, err := (&app{root: r.dir}).nativeTools()
	if err != nil {
		t.Fatal(err)
	}
	args := map[string]string{
		"file_read": `{"path":"a.txt"}`, "file_read_hashed": `{"path":"a.txt"}`, "file_find": `{"pattern":"*.txt"}`, "text_search": `{"pattern":"Tea"}`, "shell_inspect": `{"argv":["ls"]}`, "policy_check": `{"tool":"file_write"}`,
		"tool_search": `{"query":"read a file"}`, "shell_run": `{"command":"cat big.txt"}`, "file_write": `{"path":"b.txt","content":"x"}`,
	}
	checked := 0
	for _, tl := range natives {
		given, known := args[tl.Name]
		if !known {
			if given = `{}`; !tl.Hints.ReadOnly {
				continue
			}
		}
		m := s.call(tl.Name, given)
		if m.Error != nil {
			continue
		}
		_, res := servedResult(t, m)
		if res.IsError || tl.Output == nil {
			continue
		}
		checked++
		if err := checkStructured(tl.Output, res.Structured); len(res.Structured) == 0 || err != nil {
			t.Errorf("%s %s: %s does not fit its outputSchema: %v", tl.Name, given, clip(string(res.Structured), 300), err)
		}
		if tl.Name == "shell_run" && !strings.Contains(string(res.Structured), `"record"`) {
			t.Errorf("it was not spilled: %.300s", res.Structured)
		}
	}
	if checked < 8 {
		t.Errorf("only %d results were checked", checked)
	}
}

// A result without what its tool declares is given as an empty one: clients refuse a missing one.
func TestServeStructuredMissing(t *testing.T) {
	f := serveStart(t, modeDanger, nil)
	count := f.server.core.tools.byName["count"]
	count.tool.run = func(context.Context, toolCall) (toolResult, error) { return toolResult{Text: "three"}, nil }
	if r := f.send(t, "POST", serveCall("count", `{}`), f.open(t)); r.body != `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"three"}],"isError":false,"structuredContent":{}}}` {
		t.Error(r.body)
	}
}

// TestServeResultForms: the parts of a result at both doors.
func TestServeResultForms(t *testing.T) {
	structured := json.RawMessage("{\n\"n\": 1}")
	for name, tc := range map[string]struct {
		r           toolResult
		plain, json string
	}{
		"text":         {toolResult{Text: "a\nb"}, `["a\nb"]`, `["{\"text\":\"a\\nb\"}"]`},
		"hint":         {toolResult{Text: "a", Hint: "h"}, `["a\nhint: h"]`, `["{\"text\":\"a\",\"hint\":\"h\"}"]`},
		"notice":       {toolResult{Text: "a", Notice: "n"}, `["a","n"]`, `["{\"text\":\"a\"}","n"]`},
		"structured":   {toolResult{Text: "a", Structured: structured}, `["a"]`, `["{\"n\":1}"]`},
		"all":          {toolResult{Text: "a", Structured: structured, Hint: "h", Notice: "n"}, `["a\nhint: h","n"]`, `["{\"n\":1}","n\nh"]`},
		"spilled":      {toolResult{Text: "head", Structured: json.RawMessage(`{"record":"r-1","size":9}`), Record: "r-1"}, `["head"]`, `["{\"text\":\"head\",\"record\":\"r-1\"}"]`},
		"failed":       {toolResult{Text: "a", Hint: "h", IsError: true}, `["a\nhint: h"]`, `["a\nhint: h"]`},
		"nothing":      {toolResult{}, `[""]`, `["{\"text\":\"\"}"]`},
		"failed, more": {toolResult{Text: "a", IsError: true, Structured: structured}, `["a"]`, `["a"]`},
	} {
		for asJSON, want := range map[bool]string{false: tc.plain, true: tc.json} {
			got, err := decodeCallResult(appendToolResult(nil, tc.r, asJSON))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var texts []string
			for _, part := range got.Content {
				var p struct{ Type, Text string }
				if err := json.Unmarshal(part, &p); err != nil || p.Type != "text" {
					t.Errorf("%s: %s, %v", name, part, err)
				}
				texts = append(texts, p.Text)
			}
			if b, err := json.Marshal(texts); err != nil || string(b) != want || got.IsError != tc.r.IsError || (len(got.Structured) > 0) != (len(tc.r.Structured) > 0) {
				t.Errorf("%s, as JSON %v: %s, want %s", name, asJSON, b, want)
			}
		}
	}
}

// At the prompt there is no tai mcp serve.
func TestMCPServeAtThePrompt(t *testing.T) {
	a := appOver(t, "linux")
	err := cmdMCPServe(t.Context(), &invocation{app: a})
	if err == nil || failure(err).Exit != exitUsage || !strings.Contains(fmt.Sprint(err), "not from the prompt") {
		t.Error(err)
	}
}
