package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// servedTai is a tai that serves, run as a command line in this process.
type servedTai struct {
	*serveFixture // for HTTP: its url
	t             testing.TB
	rig           *cliRig
	auth          string         // header with the key, "" without one
	in            *io.PipeWriter // stdin
	out           chan string    // lines of stdout
	notice        string         // what stood on stderr before it was ready
	cancel        context.CancelFunc
	ended         chan int

	mu  sync.Mutex
	err strings.Builder // all of stderr
}

const servedWait = 20 * time.Second

// serve runs tai with the words until the test ends. It is ready when stderr says that it serves.
func (r *cliRig) serve(words ...string) *servedTai {
	r.t.Helper()
	in, inWriter := io.Pipe()
	outReader, out := io.Pipe()
	errReader, errs := io.Pipe()
	ctx, cancel := context.WithCancel(r.ctx)
	s := &servedTai{serveFixture: &serveFixture{}, t: r.t, rig: r, in: inWriter, out: make(chan string, 10_000), cancel: cancel, ended: make(chan int, 1)}
	go func() { // ends with the command
		s.ended <- run(ctx, words, outside{Getenv: r.getenv, Environ: r.environ(), Stdin: in, Stdout: out, Stderr: errs, GOOS: runtime.GOOS, Now: time.Now, Dir: r.dir})
		out.Close()
		errs.Close()
	}()
	go func() { // ends when the command has closed its stdout
		defer close(s.out)
		lines := bufio.NewReaderSize(outReader, 1<<20)
		for {
			line, err := lines.ReadString('\n')
			if line != "" {
				s.out <- line
			}
			if err != nil {
				return
			}
		}
	}()
	ready := make(chan struct{})
	go s.readNotice(errReader, ready) // ends when the command has closed its stderr
	r.t.Cleanup(func() { s.stop() })
	select {
	case <-ready:
	case code := <-s.ended:
		s.ended <- code
		r.t.Fatalf("tai %q ended: exit %d\n%s", words, code, s.stderr())
	case <-time.After(servedWait):
		r.t.Fatalf("tai %q is not ready within %v:\n%s", words, servedWait, s.stderr())
	}
	return s
}

func (s *servedTai) readNotice(r io.Reader, ready chan<- struct{}) {
	lines := bufio.NewReader(r)
	for told := false; ; {
		line, err := lines.ReadString('\n')
		s.mu.Lock()
		s.err.WriteString(line)
		if _, after, found := strings.Cut(line, "tools over MCP on http"); found {
			at, _, _ := strings.Cut(after, " ")
			s.url = "http" + at
		}
		s.mu.Unlock()
		if !told && (strings.Contains(line, "SIGTERM ends it") || s.url == "" && strings.Contains(line, "run mcp-")) {
			told = true
			s.notice = s.stderr()
			close(ready)
		}
		if err != nil {
			return
		}
	}
}

func (s *servedTai) stderr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err.String()
}

// stop ends it as SIGTERM does and gives its exit code.
func (s *servedTai) stop() int {
	s.cancel()
	return s.wait()
}

// close ends its stdin, and gives its exit code.
func (s *servedTai) close() int {
	s.in.Close()
	return s.wait()
}

func (s *servedTai) wait() int {
	s.t.Helper()
	select {
	case code := <-s.ended:
		s.ended <- code
		return code
	case <-time.After(servedWait):
		s.t.Fatalf("it has not ended within %v:\n%s", servedWait, s.stderr())
		return -1
	}
}

// write puts lines on stdin.
func (s *servedTai) write(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(s.in, line+"\n"); err != nil {
			s.t.Fatal(err)
		}
	}
}

// next gives the next message on stdout, which holds nothing else (W104).
func (s *servedTai) next() rpcMessage {
	s.t.Helper()
	select {
	case line, ok := <-s.out:
		if !ok {
			s.t.Fatalf("stdout has ended:\n%s", s.stderr())
		}
		return servedMessage(s.t, line)
	case <-time.After(servedWait):
		s.t.Fatalf("nothing on stdout within %v:\n%s", servedWait, s.stderr())
	}
	return rpcMessage{}
}

// servedMessage reads one line of stdout. An error to what has no id has a null id, which decodeMessage takes for none.
func servedMessage(t testing.TB, line string) rpcMessage {
	t.Helper()
	m, err := decodeMessage([]byte(line))
	if err != nil || strings.TrimRight(line, "\n") != strings.TrimSuffix(line, "\n") || !strings.HasSuffix(line, "\n") {
		t.Fatalf("on stdout: %q, %v", line, err)
	}
	return m
}

// ask sends one request over stdio and gives its answer.
func (s *servedTai) ask(id, method, params string) rpcMessage {
	s.t.Helper()
	s.write(serveRequest(id, method, params))
	m := s.next()
	if string(m.ID) != id {
		s.t.Fatalf("answer to %s: id %s, %+v", id, m.ID, m)
	}
	return m
}

// call calls one tool over stdio.
func (s *servedTai) call(name, args string) rpcMessage {
	s.t.Helper()
	return s.ask("9", methodToolsCall, fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))
}

// hello is the handshake over stdio.
func (s *servedTai) hello() *servedTai {
	s.t.Helper()
	if m := s.ask("0", methodInitialize, `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`); m.Error != nil {
		s.t.Fatal(m.Error)
	}
	s.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

// post sends one message over HTTP with the key.
func (s *servedTai) post(body string, headers ...string) serveReply {
	s.t.Helper()
	return s.send(s.t, "POST", body, append([]string{"Authorization: " + s.auth}, headers...)...)
}

// session opens one over HTTP and gives its header.
func (s *servedTai) session() string {
	s.t.Helper()
	r := s.post(serveRequest("0", methodInitialize, `{"protocolVersion":"2025-11-25","capabilities":{}}`))
	if r.status != 200 || r.header.Get(headerSession) == "" {
		s.t.Fatalf("initialize: %d %s", r.status, r.body)
	}
	return headerSession + ": " + r.header.Get(headerSession)
}

// servedResult reads the result of a call that was not refused: its first text, and the whole.
func servedResult(t testing.TB, m rpcMessage) (text string, r callResult) {
	t.Helper()
	if m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	r, err := decodeCallResult(m.Result)
	if err != nil || len(r.Content) == 0 {
		t.Fatalf("%s: %v", m.Result, err)
	}
	var part struct{ Type, Text string }
	if err := json.Unmarshal(r.Content[0], &part); err != nil || part.Type != "text" {
		t.Fatalf("content %s: %v", r.Content[0], err)
	}
	return part.Text, r
}

// auditRows reads a run log.
func auditRows(t testing.TB, path string) (rows []auditRecord) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		rec, err := parseAuditLine([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, rec)
	}
	return rows
}

// servedLog gives the one log of a governed workspace: its run, and of each line the event, the subject and the rule.
func servedLog(t testing.TB, root string) (run string, events []string) {
	t.Helper()
	dir := filepath.Join(root, ".tai", "runs")
	verifyLogs(t, dir)
	logs, err := filepath.Glob(filepath.Join(dir, "mcp-*"+auditExtension))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs of the workspace: %q, %v", logs, err)
	}
	for _, rec := range auditRows(t, logs[0]) {
		events = append(events, strings.TrimSpace(rec.Event+" "+rec.Subject))
	}
	return strings.TrimSuffix(filepath.Base(logs[0]), auditExtension), events
}

// servedDenied wants a refusal (-32001) whose message names the rule, and that has it with a hint as data.
func servedDenied(t testing.TB, m rpcMessage, rule string) {
	t.Helper()
	var data struct{ Rule, Hint string }
	if m.Error == nil || m.Error.Code != codeDenied || json.Unmarshal(m.Error.Data, &data) != nil {
		t.Errorf("not refused: %s %+v", m.Result, m.Error)
		return
	}
	if !strings.HasPrefix(data.Rule, rule) || !strings.Contains(m.Error.Message, data.Rule) || data.Hint == "" {
		t.Errorf("refused by %q with hint %q: %s, want rule %s", data.Rule, data.Hint, m.Error.Message, rule)
	}
}
