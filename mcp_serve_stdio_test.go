package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// stdioFixture is the stdio door over the tools of serveFixture.
type stdioFixture struct {
	*servedTai
	*serveTools
	server *stdioServer
	result chan error
}

// stdioStart serves on pipes. edit changes the server before it starts.
func stdioStart(t *testing.T, mode approvalMode, edit func(*stdioServer)) *stdioFixture {
	t.Helper()
	base := serveMake(t, mode, nil)
	in, inWriter := io.Pipe()
	outReader, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	f := &stdioFixture{servedTai: &servedTai{serveFixture: base, t: t, in: inWriter, out: make(chan string, 10_000), cancel: cancel}, serveTools: base.serveTools, result: make(chan error, 1)}
	f.server = newStdioServer(base.server.core, out)
	if edit != nil {
		edit(f.server)
	}
	go func() { // ends with serve
		f.result <- f.server.serve(ctx, in)
		out.Close()
	}()
	go func() { // ends with out
		defer close(f.out)
		b, err := io.ReadAll(io.TeeReader(outReader, stdioLines{f.out, new(strings.Builder)}))
		if err != nil && len(b) == 0 {
			t.Log(err)
		}
	}()
	t.Cleanup(func() { cancel(); inWriter.Close(); f.wait() })
	return f
}

// stdioLines hands on whole lines.
type stdioLines struct {
	to   chan<- string
	part *strings.Builder
}

func (l stdioLines) Write(p []byte) (int, error) {
	l.part.Write(p)
	for {
		line, rest, whole := strings.Cut(l.part.String(), "\n")
		if !whole {
			return len(p), nil
		}
		l.part.Reset()
		l.part.WriteString(rest)
		l.to <- line + "\n"
	}
}

func (f *stdioFixture) wait() error {
	f.t.Helper()
	select {
	case err := <-f.result:
		f.result <- err
		return err
	case <-time.After(servedWait):
		f.t.Fatalf("serve has not ended within %v", servedWait)
		return nil
	}
}

// end closes stdin and gives what serve came to, and what was still answered.
func (f *stdioFixture) end() (rest []string, err error) {
	f.t.Helper()
	f.in.Close()
	err = f.wait()
	for line := range f.out {
		servedMessage(f.t, line)
		rest = append(rest, line)
	}
	return rest, err
}

// TestServeStdioW107W109W110: versions by negotiation, ping before anything, ids as they came.
func TestServeStdioW107W109W110(t *testing.T) {
	f := stdioStart(t, modeDanger, nil)
	for _, id := range []string{"7", `"7"`, `"a-b"`, "-1", "0", "9007199254740993"} {
		if m := f.ask(id, methodPing, `{}`); string(m.Result) != "{}" { // W109, W110
			t.Errorf("ping before initialize: %+v", m)
		}
	}
	for asked, want := range map[string]string{"2024-11-05": "2024-11-05", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25", "2025-03-26": "2025-11-25", "2026-07-28": "2025-11-25"} { // W107
		m := f.ask("1", methodInitialize, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{}}`, asked))
		if got := fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"tai","version":"9.9"}}`, want); string(m.Result) != got {
			t.Errorf("asked %s: %s", asked, m.Result)
		}
	}
	if rest, err := f.end(); err != nil || len(rest) > 0 {
		t.Errorf("end: %q, %v", rest, err)
	}
}

// Before initialize a call is answered with an error, and the process stays up (W115); unknown methods are told so in any state.
func TestServeStdioW115BeforeInitialize(t *testing.T) {
	f := stdioStart(t, modeDanger, nil)
	for _, method := range []string{methodToolsList, methodToolsCall} {
		if m := f.ask("1", method, `{"name":"deed"}`); m.Error == nil || m.Error.Code != codeInvalidParams || !strings.Contains(m.Error.Message, "initialize first") {
			t.Errorf("%s: %+v", method, m)
		}
	}
	if m := f.ask("1", methodInitialize, `{}`); m.Error == nil || m.Error.Code != codeInvalidParams {
		t.Errorf("initialize without a revision: %+v", m)
	}
	if m := f.ask("1", methodToolsList, `{}`); m.Error == nil {
		t.Error("a failed initialize opened the door")
	}
	for _, method := range []string{"resources/list", "prompts/list", methodDiscover, "roots/list", "sampling/createMessage", "elicitation/create", "logging/setLevel"} {
		if m := f.ask("1", method, `{}`); m.Error == nil || m.Error.Code != codeUnknownMethod {
			t.Errorf("%s: %+v", method, m)
		}
	}
	f.hello()
	if m := f.ask("1", methodToolsList, `{}`); m.Error != nil || f.deeds.Load() != 0 {
		t.Errorf("after initialize: %+v, %d deeds", m.Error, f.deeds.Load())
	}
}

// TestServeStdioSRV21: a broken line is answered -32700 or -32600 with a null id, and the process goes on.
func TestServeStdioSRV21(t *testing.T) {
	f := stdioStart(t, modeDanger, func(s *stdioServer) { s.maxLine = 200_000 })
	f.hello()
	deep := strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)
	for name, tc := range map[string]struct {
		line string
		code int
	}{
		"junk": {"junk", codeParse}, "truncated": {`{"jsonrpc":"2.0","id":1,"method":"pi`, codeParse}, "a number": {"5", codeInvalidRequest}, "empty object": {"{}", codeInvalidRequest},
		"null": {"null", codeInvalidRequest}, "a string": {`"ping"`, codeInvalidRequest}, "two on a line": {`{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`, codeParse},
		"batch":        {`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deed"}}]`, codeInvalidRequest}, // SRV-06 on stdio
		"method twice": {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"deed"}}`, codeInvalidRequest},
		"null id":      {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, codeInvalidRequest}, "id a fraction": {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, codeInvalidRequest},
		"version 1": {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, codeInvalidRequest}, "no version": {`{"id":1,"method":"ping"}`, codeInvalidRequest},
		"not UTF-8": {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}", codeParse}, "deep": {`{"jsonrpc":"2.0","method":"ping","id":null,"params":{"x":` + deep + `}}`, codeInvalidRequest}, // SRV-07
	} {
		f.write(tc.line)
		line := <-f.out
		if m := servedMessage(t, line); m.Error == nil || m.Error.Code != tc.code || !strings.Contains(line, `"id":null`) {
			t.Errorf("%s: %s want %d with a null id", name, line, tc.code)
		}
	}
	// Where the id can be read it is given back: its sender waits for it.
	for name, params := range map[string]string{"deep": `{"x":` + deep + `}`, "a key twice": `{"name":"deed","arguments":{"a":1,"a":2}}`} { // SRV-07, POL-06
		if m := f.ask("8", methodToolsCall, params); m.Error == nil || m.Error.Code != codeParse {
			t.Errorf("%s: %+v", name, m)
		}
	}
	f.write("", "  ", "\r")
	if m := f.ask("3", methodPing, `{}`); m.Error != nil || f.deeds.Load() != 0 {
		t.Errorf("after broken lines: %+v, %d deeds", m, f.deeds.Load())
	}
}

// A line over the cap is answered under its own id, where that shows at one of its ends, and the stream goes on.
func TestServeStdioCap(t *testing.T) {
	f := stdioStart(t, modeDanger, func(s *stdioServer) { s.maxLine = 100_000 })
	f.hello()
	fill := strings.Repeat("x", 100_000)
	for name, tc := range map[string]struct{ line, id string }{
		"id first": {`{"jsonrpc":"2.0","id":41,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + fill + `"}}}`, "41"},
		"a text":   {`{"id" : "call-7", "jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"text":"` + fill + `"}}}`, `"call-7"`},
		"id last":  {`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"text":"` + fill + `"}},"id":42}`, "42"},
		"no id":    {`{"jsonrpc":"2.0","method":"x","params":"` + fill + `"}`, "null"}, "junk": {fill + fill, "null"},
		"an object": {`{"id":{"a":1},"params":"` + fill + `"}`, "null"}, "an escape": {`{"id":"a\nb","params":"` + fill + `"}`, "null"}, "a fraction": {`{"id":1.5,"params":"` + fill + `"}`, "null"},
	} {
		f.write(tc.line)
		line := <-f.out
		if m := servedMessage(t, line); m.Error == nil || m.Error.Code != codeInvalidRequest || !strings.Contains(line, `"id":`+tc.id+`,`) {
			t.Errorf("%s: %s want id %s", name, line, tc.id)
		}
	}
	if m := f.ask("3", methodPing, `{}`); m.Error != nil {
		t.Error(m.Error)
	}
	if mcpHTTPMaxBody != 10<<20 || newStdioServer(nil, nil).maxLine != mcpHTTPMaxBody {
		t.Error("the documented cap is 10 MB")
	}
}

// TestServeStdioW108: what has no id gets no answer, unknown or malformed.
func TestServeStdioW108(t *testing.T) {
	f := stdioStart(t, modeDanger, nil).orHello()
	f.write(
		`{"jsonrpc":"2.0","method":"notifications/nobody/knows"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":3}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"deed"}}`, `{"jsonrpc":"2.0","method":"ping"}`, `{"jsonrpc":"2.0","id":4,"result":{}}`, `{"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"x"}}`,
	)
	if m := f.ask("5", methodPing, `{}`); m.Error != nil || f.deeds.Load() != 0 { // the next answer is that of the ping
		t.Errorf("%+v, %d deeds", m, f.deeds.Load())
	}
}

func (f *stdioFixture) orHello() *stdioFixture {
	f.t.Helper()
	f.hello()
	return f
}

// TestServeStdioW104W105: concurrent answers are whole lines, also beside tools that panic; the log goes elsewhere (SRV-18, SRV-22).
func TestServeStdioW104W105(t *testing.T) {
	f := stdioStart(t, modeDanger, nil).orHello()
	text := strings.Repeat("line\\n", 2000)
	want := map[string]bool{}
	for i := range 40 {
		name, args := "echo", `{"text":"`+text+`"}`
		switch i % 4 {
		case 1:
			name, args = "panics", `{}`
		case 2:
			name, args = "falls", `{}`
		case 3:
			name, args = "count", `{}`
		}
		want[fmt.Sprint(i)] = name == "panics" || name == "falls"
		f.write(serveRequest(fmt.Sprint(i), methodToolsCall, fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args)))
	}
	for range 40 {
		m := f.next()
		fault, ok := want[string(m.ID)]
		if delete(want, string(m.ID)); !ok || fault != (m.Error != nil) || fault && (m.Error.Code != codeInternal || strings.Contains(m.Error.Message, "boom")) {
			t.Errorf("%s: %+v", m.ID, m.Error)
		}
	}
	for range 20 {
		if line := <-f.logged; !strings.Contains(line, "boom") || strings.Contains(line, "\n") {
			t.Errorf("logged %q", line)
		}
	}
}

// A call keeps nothing waiting: ping, list and other calls are answered beside it (W88, F24, SRV-16 on stdio).
func TestServeStdioW88Concurrent(t *testing.T) {
	f := stdioStart(t, modeDanger, nil).orHello()
	f.write(serveRequest("1", methodToolsCall, `{"name":"wait"}`))
	<-f.started
	f.ask("2", methodPing, `{}`)
	f.ask("3", methodToolsList, `{}`)
	f.call("echo", `{"text":"quick"}`)
	close(f.release)
	if m := f.next(); string(m.ID) != "1" || m.Error != nil {
		t.Errorf("%+v", m)
	}
}

// A cancel on the line after its call finds it, always; the call gets no answer. Ids are equal in type.
func TestServeStdioW111Cancel(t *testing.T) {
	f := stdioStart(t, modeDanger, nil).orHello()
	for i := range 50 {
		f.write(serveRequest(fmt.Sprint(i), methodToolsCall, `{"name":"wait"}`),
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"%d"}}`, i),
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"tired"}}`, i))
		<-f.started
		if err := <-f.ended(); !errors.Is(err, context.Canceled) {
			t.Fatalf("the tool's context ended with %v", err)
		}
	}
	f.ask("99", methodPing, `{}`)
	if rest, err := f.end(); err != nil || len(rest) > 0 {
		t.Errorf("end: %q, %v", rest, err)
	}
}

func (f *stdioFixture) ended() chan error { return f.serveTools.ended }

// One call too many is told so, and a cancel is still heard.
func TestServeStdioBusy(t *testing.T) {
	f := stdioStart(t, modeDanger, nil).orHello()
	for i := range serveMaxCalls {
		f.write(serveRequest(fmt.Sprint(i), methodToolsCall, `{"name":"wait"}`))
	}
	for range serveMaxCalls {
		<-f.started
	}
	if m := f.call("deed", `{}`); m.Error == nil || m.Error.Code != codeInternal || !strings.Contains(m.Error.Message, "busy") || f.deeds.Load() != 0 {
		t.Errorf("one call too many: %+v", m)
	}
	f.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`)
	<-f.ended()
	close(f.release)
	for range serveMaxCalls - 1 {
		if m := f.next(); m.Error != nil || string(m.ID) == "0" {
			t.Errorf("%+v", m)
		}
	}
}

// TestServeStdioW106End: the end of stdin ends it at once where nothing is under way; what is gets its grace and is answered; then it is
// cancelled and answered; what heeds nothing is left and said.
func TestServeStdioW106End(t *testing.T) {
	t.Run("idle", func(t *testing.T) {
		f := stdioStart(t, modeDanger, nil).orHello()
		begin := time.Now()
		if rest, err := f.end(); err != nil || len(rest) > 0 || time.Since(begin) > serveGrace {
			t.Errorf("%q, %v after %v", rest, err, time.Since(begin))
		}
	})
	t.Run("a call that ends", func(t *testing.T) {
		f := stdioStart(t, modeDanger, nil).orHello()
		f.write(serveRequest("1", methodToolsCall, `{"name":"wait"}`))
		<-f.started
		f.in.Close()
		close(f.release)
		if rest, err := f.end(); err != nil || len(rest) != 1 || !strings.Contains(rest[0], "released") {
			t.Errorf("%q, %v", rest, err)
		}
	})
	t.Run("a call that takes too long", func(t *testing.T) {
		f := stdioStart(t, modeDanger, func(s *stdioServer) { s.grace = 20 * time.Millisecond }).orHello()
		f.write(serveRequest("1", methodToolsCall, `{"name":"wait"}`))
		<-f.started
		f.in.Close()
		if err := <-f.ended(); !errors.Is(err, context.Canceled) {
			t.Errorf("the tool's context ended with %v", err)
		}
		if rest, err := f.end(); err != nil || len(rest) != 1 || !strings.Contains(rest[0], `"isError":true`) {
			t.Errorf("%q, %v", rest, err)
		}
	})
	t.Run("a call that heeds nothing", func(t *testing.T) {
		f := stdioStart(t, modeDanger, func(s *stdioServer) { s.grace = 20 * time.Millisecond }).orHello()
		f.write(serveRequest("1", methodToolsCall, `{"name":"deaf"}`))
		<-f.started
		f.in.Close()
		if err := f.wait(); err == nil || !strings.Contains(err.Error(), "did not end in time") {
			t.Errorf("%v", err)
		}
		close(f.stuck)
	})
	t.Run("no line end", func(t *testing.T) {
		f := stdioStart(t, modeDanger, nil).orHello()
		if _, err := io.WriteString(f.in, `{"jsonrpc":"2.0","id":"last","method":"ping"}`); err != nil {
			t.Fatal(err)
		}
		if rest, err := f.end(); err != nil || len(rest) != 1 || !strings.Contains(rest[0], `"id":"last","result":{}`) {
			t.Errorf("%q, %v", rest, err)
		}
	})
	t.Run("cut in the middle", func(t *testing.T) {
		f := stdioStart(t, modeDanger, nil).orHello()
		if _, err := io.WriteString(f.in, `{"jsonrpc":"2.0","id":"last","met`); err != nil {
			t.Fatal(err)
		}
		if rest, err := f.end(); err != nil || len(rest) != 1 || !strings.Contains(rest[0], "-32700") {
			t.Errorf("%q, %v", rest, err)
		}
	})
	t.Run("SIGTERM", func(t *testing.T) { // its context ends, while stdin stays open
		f := stdioStart(t, modeDanger, nil).orHello()
		f.write(serveRequest("1", methodToolsCall, `{"name":"wait"}`))
		<-f.started
		f.cancel()
		close(f.release)
		if err := f.wait(); err != nil {
			t.Error(err)
		}
		if m := f.next(); m.Error != nil || string(m.ID) != "1" {
			t.Errorf("%+v", m)
		}
	})
}

// A client that is gone ends it: nothing more is taken, and what is under way is cancelled.
func TestServeStdioReaderGone(t *testing.T) {
	base := serveMake(t, modeDanger, nil)
	in, inWriter := io.Pipe()
	defer inWriter.Close()
	outReader, out := io.Pipe()
	s := newStdioServer(base.server.core, out)
	result := make(chan error, 1)
	go func() { result <- s.serve(t.Context(), in) }() // ends below
	send := func(lines ...string) {
		for _, line := range lines {
			if _, err := io.WriteString(inWriter, line+"\n"); err != nil {
				t.Error(err)
			}
		}
	}
	go send(serveRequest("0", methodInitialize, `{"protocolVersion":"2025-11-25"}`), serveRequest("1", methodToolsCall, `{"name":"wait"}`)) // ends when both are read
	buf := make([]byte, 4096)
	if _, err := outReader.Read(buf); err != nil {
		t.Fatal(err)
	}
	<-base.started
	outReader.Close()
	go send(serveRequest("2", methodPing, `{}`)) // ends when it is read
	if err := <-base.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if err := <-result; err == nil || !strings.Contains(err.Error(), "write stdout") {
		t.Errorf("serve: %v", err)
	}
}

// A client that does not read holds nothing for ever: the end of the run comes all the same, and says that answers were not read.
func TestServeStdioUnread(t *testing.T) {
	base := serveMake(t, modeDanger, nil)
	in, inWriter := io.Pipe()
	outReader, out := io.Pipe()
	s := newStdioServer(base.server.core, out)
	s.grace = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- s.serve(ctx, in) }() // ends below
	for range 3 * stdioQueue {
		if _, err := io.WriteString(inWriter, servePing+"\n"); err != nil {
			t.Fatal(err)
		}
		if len(s.queue) == stdioQueue {
			break
		}
	}
	cancel()
	select {
	case err := <-result:
		if err == nil || !strings.Contains(err.Error(), "not read") {
			t.Errorf("serve: %v", err)
		}
	case <-time.After(servedWait):
		t.Error("it does not end")
	}
	inWriter.Close()
	outReader.Close()
	<-s.wrote
}

// A read that fails is told, after what is under way has ended.
func TestServeStdioReadFails(t *testing.T) {
	s := newStdioServer(serveMake(t, modeDanger, nil).server.core, io.Discard)
	if err := s.serve(t.Context(), io.MultiReader(strings.NewReader(servePing+"\n"), stdioBroken{})); err == nil || !strings.Contains(err.Error(), "read stdin: the cable is cut") {
		t.Errorf("serve: %v", err)
	}
}

type stdioBroken struct{}

func (stdioBroken) Read([]byte) (int, error) { return 0, errors.New("the cable is cut") }
