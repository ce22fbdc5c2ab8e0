package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// stdioPrompt bounds what has to happen at once: a second on a machine that does nothing else, far below every cap.
const stdioPrompt = 3 * time.Second

// stdioSend calls method with id; the wait is far below the caps, so that what must fail at once is seen to.
func stdioSend(tr *stdioTransport, id int, method, params string) (rpcMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	m := rpcMessage{ID: json.RawMessage(strconv.Itoa(id)), Method: method}
	if params != "" {
		m.Params = json.RawMessage(params)
	}
	return tr.call(ctx, m)
}

func stdioTool(tr *stdioTransport, id int, tool, args string) (rpcMessage, error) {
	return stdioSend(tr, id, methodToolsCall, `{"name":"`+tool+`","arguments":`+args+`}`)
}

// stdioText returns the text of a successful call of a tool of the fake.
func stdioText(t testing.TB, tr *stdioTransport, id int, tool, args string) string {
	t.Helper()
	m, err := stdioTool(tr, id, tool, args)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	r, err := decodeCallResult(m.Result)
	if err != nil || len(r.Content) == 0 {
		t.Fatalf("%s: result %.200s: %v", tool, m.Result, err)
	}
	var c struct{ Text string }
	if err := json.Unmarshal(r.Content[0], &c); err != nil {
		t.Fatal(err)
	}
	return c.Text
}

// stdioWorks makes an ordinary call, to see that the connection lives.
func stdioWorks(t testing.TB, tr *stdioTransport, id int) {
	t.Helper()
	if got := stdioText(t, tr, id, "add", `{"a":2,"b":3}`); got != "5" {
		t.Errorf("add = %q, want 5", got)
	}
}

func stdioLog(t testing.TB, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

func on(key string, steps ...fakeStep) map[string][]fakeStep {
	return map[string][]fakeStep{key: steps}
}

func TestStdioDefaults(t *testing.T) {
	c := fakeStdioConfig(t, fakeStdio{})
	c.Grace, c.Drain = 0, 0
	tr := startStdioTest(t, c)
	if tr.grace != 2*time.Second || tr.drain != 500*time.Millisecond {
		t.Errorf("grace %v, drain %v", tr.grace, tr.drain)
	}
	if worst := 3*tr.grace + 2*tr.drain; worst >= 12*time.Second { // STD-14
		t.Errorf("a close may take %v", worst)
	}
}

// W1, W2: what the child reads is one JSON object a line, whatever stands in the arguments.
func TestW01OneObjectALine(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	tr := fakeStdioStart(t, fakeStdio{Log: log})
	got := stdioText(t, tr, 1, "echo", "{\n\t\"a\": \"x\\ny\",\r\n\"b\": [1,\n2]}")
	if got != `{"a":"x\ny","b":[1,2]}` {
		t.Errorf("echo = %s", got)
	}
	if err := tr.notify(t.Context(), rpcMessage{Method: methodInitialized}); err != nil {
		t.Fatal(err)
	}
	stdioWorks(t, tr, 2)
	lines := stdioLog(t, log)
	if len(lines) != 3 {
		t.Errorf("%d lines for 3 messages", len(lines))
	}
	for _, line := range lines {
		if m, err := decodeMessage([]byte(line)); err != nil || m.Method == "" {
			t.Errorf("line %q: %v", line, err)
		}
	}
	if _, err := stdioSend(tr, 3, "x", `{"a":"`+strings.Repeat("y", mcpHTTPMaxBody)+`"}`); !errors.Is(err, errMessageTooBig) {
		t.Errorf("a request over the cap: %v", err)
	}
	stdioWorks(t, tr, 4)
}

func TestSTD03ClosedInsideAMessage(t *testing.T) {
	tr := fakeStdioStart(t, fakeStdio{On: on("tools/call", fakeStep{Out: `{"jsonrpc":"2.0","id":$ID,"res`, Exit: 1})})
	start := time.Now()
	_, err := stdioTool(tr, 2, "x", "{}")
	e, ok := errors.AsType[*stdioExitError](err)
	if !ok || !e.Cut || e.Code != 0 || !strings.Contains(err.Error(), "in the middle of a message") {
		t.Errorf("call = %v", err)
	}
	if d := time.Since(start); d > stdioPrompt {
		t.Errorf("it took %v", d)
	}
	// A whole message without its line end counts as cut too: nothing says that it is whole.
	tr = fakeStdioStart(t, fakeStdio{On: on("tools/call", fakeStep{Out: `{"jsonrpc":"2.0","id":$ID,"result":{}}`, Exit: 1})})
	if m, err := stdioTool(tr, 2, "x", "{}"); err == nil {
		t.Errorf("call = %s", m.Result)
	}
}

// STD-04, F06: results beyond a line reader's usual 64 KiB arrive whole; one over the cap fails that call alone.
func TestSTD04BigLines(t *testing.T) {
	tr := fakeStdioStart(t, fakeStdio{On: map[string][]fakeStep{
		"tools/call ts": {{Out: `{"result":{"content":[{"type":"text","text":"`}, {Times: 12 << 6, Out: strings.Repeat("x", 16<<10)}, {Out: `"}]},"jsonrpc":"2.0","id":$ID}` + "\n"}},
	}})
	for i, n := range []int{70_000, 5 << 20, frameBuffer, 8 << 20} {
		if got := stdioText(t, tr, 10+2*i, "big", fmt.Sprintf(`{"n":%d}`, n)); len(got) != n || got[n-16:n-16+4] != strings.Repeat("0123456789abcdef", 2)[n%16:n%16+4] {
			t.Errorf("big %d came with %d bytes", n, len(got))
		}
		stdioWorks(t, tr, 11+2*i)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	sleeping := make(chan error, 1)
	go func() {
		_, err := stdioTool(tr, 49, "sleep", `{"ms":300}`) // another call of the same server goes on
		sleeping <- err
	}()
	if _, err := stdioTool(tr, 50, "big", `{"n":67108864}`); !errors.Is(err, errMessageTooBig) || !strings.Contains(err.Error(), "10 MB") {
		t.Errorf("64 MB: %v", err)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.Sys) - int64(before.Sys); grown > 64<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	stdioWorks(t, tr, 51)
	if _, err := stdioTool(tr, 52, "ts", "{}"); !errors.Is(err, errMessageTooBig) { // id at the end
		t.Errorf("12 MB, id last: %v", err)
	}
	stdioWorks(t, tr, 53)
	if err := <-sleeping; err != nil {
		t.Errorf("the other call: %v", err)
	}
}

// When nothing tells whose reply was over the cap, every call of that server fails rather than waiting in vain; a notification fails none.
func TestStdioTooBigWithoutID(t *testing.T) {
	huge := []fakeStep{{Times: 11 << 6, Out: strings.Repeat("x", 16<<10)}, {Out: `"}}` + "\n"}}
	tr := fakeStdioStart(t, fakeStdio{On: map[string][]fakeStep{
		"tools/call a": append([]fakeStep{{Out: `{"jsonrpc":"2.0","result":{"id":"`}}, huge...),
		"tools/call b": append(append([]fakeStep{{Out: `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"`}}, huge...), fakeStep{Reply: "{}"}),
		"tools/call c": append(append([]fakeStep{}, huge...), fakeStep{Reply: "{}"}),
	}})
	if _, err := stdioTool(tr, 1, "a", "{}"); !errors.Is(err, errMessageTooBig) {
		t.Errorf("reply: %v", err)
	}
	for i, tool := range []string{"b", "c"} {
		if _, err := stdioTool(tr, 2+i, tool, "{}"); err != nil {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

func TestSTD05NotUTF8(t *testing.T) {
	tr := fakeStdioStart(t, fakeStdio{On: map[string][]fakeStep{
		// Go's encoder would replace the bytes in the spec, so the fake writes them by way of sh.
		"tools/call bad": {{Spawn: []string{"/bin/sh", "-c", `printf '{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a\377\376b"}]}}\n'`}}},
	}})
	_, err := stdioTool(tr, 7, "bad", "{}")
	if !errors.Is(err, errMessageInvalid) || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("call = %v", err)
	}
	stdioWorks(t, tr, 8)
	if d := tr.diagnostics(); !strings.Contains(d, "1 messages break the protocol") {
		t.Errorf("diagnostics = %q", d)
	}
}

// STD-06, F04: what is no message is skipped, with the first line kept and one sentence for all of them.
func TestSTD06Banners(t *testing.T) {
	noise := "\n" + `{"level":"info"}` + "\r\n[INFO] ready\nnull\n{\"id\":5,\"msg\":\"x\"}\n{}\n"
	tr := fakeStdioStart(t, fakeStdio{
		Start: []fakeStep{{Out: "Notes server 1.4 \x1b[31mready\n" + noise}},
		On:    on("tools/call pct", fakeStep{Out: "50 %\n"}, fakeStep{Reply: `{"content":[]}`}, fakeStep{Out: noise}),
	})
	if _, err := stdioSend(tr, 4, methodInitialize, `{"protocolVersion":"2025-11-25"}`); err != nil {
		t.Errorf("initialize: %v", err)
	}
	if _, err := stdioTool(tr, 5, "pct", "{}"); err != nil {
		t.Errorf("call: %v", err)
	}
	stdioWorks(t, tr, 6)
	d := tr.diagnostics()
	if !strings.Contains(d, "Notes server 1.4 ") || strings.Contains(d, "\x1b") || strings.Count(d, "no messages") != 1 || strings.Contains(d, "protocol") {
		t.Errorf("diagnostics = %q", d)
	}
	if !strings.HasPrefix(d, "12 lines") {
		t.Errorf("diagnostics = %q, want 12 lines counted", d)
	}
}

// STD-07, W30.
func TestSTD07Batch(t *testing.T) {
	const note, ping = `{"jsonrpc":"2.0","method":"notifications/message"}`, `{"jsonrpc":"2.0","id":"p","method":"ping"}`
	batch := fakeStep{Out: "[" + note + `,{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}]` + "\n"}
	tr := fakeStdioStart(t, fakeStdio{On: map[string][]fakeStep{
		"tools/call batch": {batch},
		"tools/call asked": {{Out: "[" + note + "," + ping + "]\n"}, {Await: 1}, batch},
	}})
	if _, err := stdioTool(tr, 1, "batch", "{}"); !errors.Is(err, errMessageInvalid) || !strings.Contains(err.Error(), "2025-03-26") {
		t.Errorf("call under another revision: %v", err)
	}
	stdioWorks(t, tr, 2)
	tr.setVersion("2025-03-26")
	if m, err := stdioTool(tr, 3, "asked", "{}"); err != nil || string(m.Result) != `{"content":[]}` {
		t.Errorf("call under 2025-03-26: %s, %v", m.Result, err)
	}
	stdioWorks(t, tr, 4)
	tr.setVersion("2025-06-18")
	if _, err := stdioTool(tr, 5, "batch", "{}"); !errors.Is(err, errMessageInvalid) {
		t.Errorf("call under 2025-06-18: %v", err)
	}
}

// STD-08, STD-09, W11: replies that nobody waits for are dropped; the first one for an id wins; "5" is not 5.
func TestSTD08UnknownReplies(t *testing.T) {
	line := func(id, text string) fakeStep {
		return fakeStep{Out: `{"jsonrpc":"2.0","id":` + id + `,"result":{"n":"` + text + `"}}` + "\n"}
	}
	tr := fakeStdioStart(t, fakeStdio{On: on("tools/call many", line("999", "unknown"), line(`"5"`, "string"), line("$ID", "first"), line("$ID", "second"))})
	m, err := stdioTool(tr, 5, "many", "{}")
	if err != nil || string(m.Result) != `{"n":"first"}` || string(m.ID) != "5" {
		t.Errorf("call = %s, %v", m.Result, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no longer wanted"))
	if _, err := tr.call(ctx, rpcMessage{ID: json.RawMessage("6"), Method: methodToolsCall, Params: json.RawMessage(`{"name":"sleep","arguments":{"ms":1}}`)}); err == nil || err.Error() != "no longer wanted" {
		t.Errorf("cancelled call: %v", err)
	}
	if got := stdioText(t, tr, 7, "sleep", `{"ms":60}`); got != "late" { // the answer to 6 comes while 7 waits
		t.Errorf("call 7 = %q", got)
	}
	if tr.mu.Lock(); tr.dropped != 4 || len(tr.pending) != 0 {
		t.Errorf("%d dropped, want 4; %d pending", tr.dropped, len(tr.pending))
	}
	tr.mu.Unlock()
	for _, id := range []json.RawMessage{nil, json.RawMessage("8")} {
		tr.pending["8"] = make(chan stdioReply, 1)
		if _, err := tr.call(t.Context(), rpcMessage{ID: id, Method: "x"}); err == nil {
			t.Errorf("call with id %q in use was sent", id)
		}
	}
}

// STD-10, F05, W3: stderr is drained whatever comes, and only its tail is kept.
func TestSTD10Stderr(t *testing.T) {
	tr := fakeStdioStart(t, fakeStdio{On: map[string][]fakeStep{
		"tools/call loud":    {{ErrBytes: 256 << 10, Reply: "{}"}},
		"tools/call loudest": {{ErrBytes: 100 << 20, Err: "last \x1b[2J words\n", Reply: "{}"}},
	}})
	for i := range 10 {
		if _, err := stdioTool(tr, i+1, "loud", "{}"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stdioTool(tr, 20, "loudest", "{}"); err != nil {
		t.Fatal(err)
	}
	if got := tr.tail.String(); len(got) > stdioTail {
		t.Errorf("%d bytes of stderr kept", len(got))
	}
	if d := tr.diagnostics(); !strings.Contains(d, "eee") || strings.Contains(d, "\x1b") || len(d) > 2*stdioShown {
		t.Errorf("diagnostics = %q", d)
	}
}

func TestSTD11NotificationFlood(t *testing.T) {
	const flood = 100_000
	c := fakeStdioConfig(t, fakeStdio{On: on("tools/call chatty",
		fakeStep{Times: flood / 100, Out: strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`+"\n", 100)},
		fakeStep{Reply: `{"content":[]}`})})
	heard := 0
	c.Notify = func(method string, params json.RawMessage) {
		if method == "notifications/message" && len(params) > 0 {
			heard++
		}
	}
	tr := startStdioTest(t, c)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := stdioTool(tr, 1, "chatty", "{}"); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if heard != flood {
		t.Errorf("%d notifications heard, want %d", heard, flood)
	}
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 16<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if d := tr.diagnostics(); d != "" {
		t.Errorf("diagnostics = %q", d)
	}
}

// STD-12, F12, W8, W9.
func TestSTD12ServerRequests(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	var ask []fakeStep
	for i, method := range []string{"ping", "roots/list", "sampling/createMessage", "elicitation/create"} {
		ask = append(ask, fakeStep{Out: fmt.Sprintf(`{"jsonrpc":"2.0","id":"s-%d","method":"%s","params":{}}`, i+1, method) + "\n"})
	}
	ask = append(ask, fakeStep{Out: `{"jsonrpc":"2.0","method":"notifications/progress"}` + "\n"}, fakeStep{Await: 4}, fakeStep{Reply: `{"content":[]}`})
	tr := fakeStdioStart(t, fakeStdio{Log: log, On: on("tools/call asks", ask...)})
	start := time.Now()
	if _, err := stdioTool(tr, 1, "asks", "{}"); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > stdioPrompt {
		t.Errorf("the answers took %v", d)
	}
	lines := stdioLog(t, log)
	if len(lines) != 5 {
		t.Fatalf("the server read %q", lines)
	}
	for i, line := range lines[1:] {
		want := `{"jsonrpc":"2.0","id":"s-1","result":{}}`
		if i > 0 {
			want = fmt.Sprintf(`{"jsonrpc":"2.0","id":"s-%d","error":{"code":-32601,`, i+1)
		}
		if !strings.HasPrefix(line, want) {
			t.Errorf("answer %d is %s, want %s", i+1, line, want)
		}
	}
}

// A server that asks and asks and reads nothing: its replies are still heard, and what waits for it stays bounded.
func TestStdioAsksAndNeverReads(t *testing.T) {
	t.Parallel()
	ping := strings.Repeat(`{"jsonrpc":"2.0","id":"`+strings.Repeat("p", 1000)+`","method":"ping"}`+"\n", 100)
	tr := fakeStdioStart(t, fakeStdio{On: on("tools/call deaf", fakeStep{Times: 40, Out: ping}, fakeStep{Reply: `{"content":[]}`}, fakeStep{SleepMS: 60_000})})
	if _, err := stdioTool(tr, 1, "deaf", "{}"); err != nil {
		t.Fatal(err)
	}
	tr.mu.Lock()
	queued, dropped := len(tr.answers), tr.dropped
	tr.mu.Unlock()
	if queued > stdioAnswers || dropped == 0 {
		t.Errorf("%d bytes queued, %d dropped", queued, dropped)
	}
	// A call that cannot be written ends with its context, and the connection can still be closed.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := tr.call(ctx, rpcMessage{ID: json.RawMessage("2"), Method: "x"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("call = %v", err)
	}
}

// A child that never reads its stdin holds nobody longer than the context says; what it gets is never cut.
func TestStdioNeverReads(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	args := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
	c := fakeStdioConfig(t, fakeStdio{Log: log, On: on("stall", fakeStep{Out: `{"jsonrpc":"2.0","method":"stalling"}` + "\n", SleepMS: 400}, fakeStep{Reply: "{}"})})
	stalling, stalled := make(chan bool, 1), make(chan error, 1)
	c.Notify = func(string, json.RawMessage) { stalling <- true }
	tr := startStdioTest(t, c)
	go func() { _, err := stdioSend(tr, 1, "stall", ""); stalled <- err }()
	<-stalling
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			if _, err := tr.call(ctx, rpcMessage{ID: json.RawMessage(strconv.Itoa(10 + i)), Method: "x", Params: json.RawMessage(args)}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("call = %v", err)
			}
		})
	}
	wg.Wait()
	if err := <-stalled; err != nil {
		t.Fatal(err)
	}
	stdioWorks(t, tr, 20)
	for _, line := range stdioLog(t, log) {
		if err := checkJSON([]byte(line)); err != nil {
			t.Errorf("the server read a cut line of %d bytes: %v", len(line), err)
		}
	}
}

func TestStdioManyCallsAtOnce(t *testing.T) {
	tr := fakeStdioStart(t, fakeStdio{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				want := fmt.Sprintf(`{"i":%d,"j":%d}`, i, j)
				if got := stdioText(t, tr, 1000*i+j+1, "echo", want); got != want {
					t.Errorf("echo = %s, want %s", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// STD-20, F03: the child has what is configured and a small base, and no descriptor but its three.
func TestSTD20Environment(t *testing.T) {
	base := []string{
		"PATH=/usr/bin:/bin", "HOME=/home/u", "USER=u", "LANG=C.UTF-8", "LC_ALL=C", "TMPDIR=/tmp", "TERM=xterm", "TZ=UTC", "SHELL=/bin/sh", "LOGNAME=u",
		"TAI_PASSPHRASE=hidden-1", "TAI_HOME=/h", "OPENAI_API_KEY=hidden-2", "GITHUB_TOKEN=hidden-3", "ANTHROPIC_API_KEY=hidden-4", "LD_PRELOAD=/x.so",
		"HTTPS_PROXY=http://proxy:8080", "HTTP_PROXY=http://u:hidden-5@proxy:8080", "LC_EVIL=() { hidden-6; }", "broken",
	}
	got := stdioEnv(base, map[string]string{"LEVEL": "debug", "EMPTY": "", "PATH": "/opt/bin", "TERM": "dumb"}, "linux")
	want := []string{"HOME=/home/u", "USER=u", "LANG=C.UTF-8", "LC_ALL=C", "TMPDIR=/tmp", "TZ=UTC", "SHELL=/bin/sh", "LOGNAME=u",
		"HTTPS_PROXY=http://proxy:8080", "EMPTY=", "LEVEL=debug", "PATH=/opt/bin", "TERM=dumb"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("stdioEnv = %q, want %q", got, want)
	}
	win := stdioEnv([]string{`Path=C:\bin`, `SystemRoot=C:\Windows`, "PATHEXT=.EXE", "OneDrive=x", "API_KEY=hidden"}, map[string]string{"PATH": `D:\bin`}, "windows")
	if strings.Join(win, "|") != `SystemRoot=C:\Windows|PATHEXT=.EXE|PATH=D:\bin` {
		t.Errorf("stdioEnv for windows = %q", win)
	}

	c := fakeStdioConfig(t, fakeStdio{}, got...)
	tr := startStdioTest(t, c)
	lines := strings.Split(stdioText(t, tr, 1, "env", "{}"), "\n")
	if len(lines) != len(c.Env) {
		t.Errorf("the child has %q, want %q", lines, c.Env)
	}
	if !strings.Contains("\n"+strings.Join(lines, "\n")+"\n", "\nEMPTY=\n") {
		t.Errorf("an empty value was dropped: %q", lines)
	}
}

// F03: the entry's PATH finds the command; what is not found fails at once, naming it and where it was looked for.
func TestF03FindCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs scripts")
	}
	dir, other := t.TempDir(), t.TempDir()
	script := filepath.Join(dir, "my-server")
	if err := os.WriteFile(script, []byte("#!/usr/bin/env sh\necho \"level $LEVEL\" >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"not-exec": 0o600, "no-interp": 0o700} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/no/such/interpreter\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	env := stdioEnv([]string{"PATH=" + other}, map[string]string{"PATH": dir + ":/usr/bin:/bin", "LEVEL": "debug"}, "linux")
	tr := startStdioTest(t, stdioConfig{Argv: []string{"my-server"}, Env: env})
	_, err := stdioSend(tr, 1, "x", "")
	if e, ok := errors.AsType[*stdioExitError](err); !ok || e.Code != 3 || !strings.Contains(err.Error(), "level debug") {
		t.Errorf("call = %v", err)
	}
	tests := []struct {
		argv []string
		path string
		dir  string
		want []string
	}{
		{[]string{"my-server"}, other + ":.:" + filepath.Join(other, "none"), dir, []string{"my-server", other, "not found"}},
		{[]string{"my-server"}, "", dir, []string{"my-server", "not found"}},
		{[]string{"not-exec"}, dir, "", []string{"not-exec", "not found"}},
		{[]string{filepath.Join(dir, "not-exec")}, dir, "", []string{"not-exec", "not executable"}},
		{[]string{filepath.Join(dir, "absent")}, dir, "", []string{"absent", "no such file"}},
		{[]string{dir}, dir, "", []string{"is a folder"}},
		{[]string{"no-interp"}, dir, "", []string{"no-interp", "interpreter"}},
		{[]string{"./my-server"}, dir, filepath.Join(dir, "gone"), []string{"working folder", "gone"}},
		{[]string{"./my-server"}, dir, script, []string{"is no folder"}},
		{[]string{"a\x1b[2Jb"}, dir, "", []string{`a\u001b`, "not found"}},
		{nil, dir, "", []string{"no command"}},
	}
	for _, tc := range tests {
		_, err := startStdio(t.Context(), stdioConfig{Argv: tc.argv, Env: []string{"PATH=" + tc.path}, Dir: tc.dir})
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("start %q with PATH %q in %q: %v, want %q in it", tc.argv, tc.path, tc.dir, err, want)
			}
		}
	}
	for _, name := range []string{"./my-server", script} {
		if got, err := findCommand([]string{name}, nil, dir); err != nil || got != script {
			t.Errorf("findCommand(%q) = %q, %v", name, got, err)
		}
	}
}

func TestSTD21ArgvUnchanged(t *testing.T) {
	args := []string{";rm -rf x", "$(id)", "`id`", `"q" 'q'`, "a\nb", "", "*", "%PATH%"}
	c := fakeStdioConfig(t, fakeStdio{})
	c.Argv = append(c.Argv, args...)
	if got := stdioText(t, startStdioTest(t, c), 1, "argv", "{}"); got != strings.Join(args, "\x00") {
		t.Errorf("argv = %q, want %q", got, args)
	}
}

func BenchmarkStdioCall(b *testing.B) {
	tr := fakeStdioStart(b, fakeStdio{})
	params := json.RawMessage(`{"name":"echo","arguments":{"a":1}}`)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		m, err := tr.call(b.Context(), rpcMessage{ID: strconv.AppendInt(nil, int64(i+1), 10), Method: methodToolsCall, Params: params})
		if err != nil || m.Error != nil || !bytes.Contains(m.Result, []byte("content")) {
			b.Fatal(m, err)
		}
	}
}

func BenchmarkBigResult(b *testing.B) {
	for _, n := range []int{1 << 20, 8 << 20} {
		b.Run(fmt.Sprintf("%dMiB", n>>20), func(b *testing.B) {
			tr := fakeStdioStart(b, fakeStdio{})
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if m, err := stdioTool(tr, i+1, "big", fmt.Sprintf(`{"n":%d}`, n)); err != nil || len(m.Result) < n {
					b.Fatal(err)
				}
			}
		})
	}
}
