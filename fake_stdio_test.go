package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// fakeStdio is a stdio server that the test binary plays (fake "stdio", its spec in TAI_FAKE_STDIO). Without a spec it is an
// honest server with the tools of fakeStdioTools; On and Start make it misbehave.
type fakeStdio struct {
	Version string                // answered to initialize; "" echoes what was proposed if it is known
	Caps    string                // capabilities object; "" is {"tools":{}}
	Tools   string                // the array of tools/list; "" is fakeStdioTools
	Start   []fakeStep            // done before anything is read
	On      map[string][]fakeStep // instead of the honest answer; by method, or "tools/call NAME"
	AtEOF   []fakeStep            // done at the end of stdin; then it exits with 0
	Log     string                // file that each received line is appended to
}

// fakeStep is one deed. The fields set are done in the order they stand here.
type fakeStep struct {
	IgnoreTerm bool     // SIGTERM does nothing from here on
	Spawn      []string // a program that gets our pipes and is not waited for
	PidFile    string   // written with our process id
	Err        string   // text on stderr
	ErrBytes   int      // bytes on stderr without a line end
	Times      int      // how often Out is written; 0 is once
	Items      bool     // with a comma between
	Out        string   // text on stdout as it stands; $ID is the id of the message, $N the number of the time
	Big        int      // a reply whose text has that many bytes
	Reply      string   // a reply with this result
	Await      int      // that many further lines are read and put into Log before going on
	SleepMS    int
	CloseOut   bool
	Signal     int // sent to itself
	Exit       int // status + 1
}

// fakeStdioTools are the tools of the honest server.
const fakeStdioTools = `[
{"name":"echo","description":"Returns its arguments","inputSchema":{"type":"object"}},
{"name":"add","description":"Adds a and b","inputSchema":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}},
{"name":"fail","description":"Fails as a tool","inputSchema":{"type":"object"}},
{"name":"protocol","description":"Fails as a protocol error","inputSchema":{"type":"object"}},
{"name":"big","description":"Returns n bytes of text","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}},
{"name":"sleep","description":"Answers late after ms milliseconds","inputSchema":{"type":"object","properties":{"ms":{"type":"integer"}}}},
{"name":"env","description":"Returns its environment","inputSchema":{"type":"object"}},
{"name":"argv","description":"Returns its arguments","inputSchema":{"type":"object"}},
{"name":"fds","description":"Returns its open descriptors","inputSchema":{"type":"object"}},
{"name":"pid","description":"Returns its process id","inputSchema":{"type":"object"}},
{"name":"structured","description":"Returns structured content","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"rows":{"type":"array"}},"required":["rows"]}},
{"name":"exit","description":"Exits with status code","inputSchema":{"type":"object","properties":{"code":{"type":"integer"}}}},
{"name":"cancelled","description":"Returns the ids that were cancelled","inputSchema":{"type":"object"}}]`

// fakeStdioConfig starts the fake with extra environment variables KEY=VALUE. Its waits are short.
func fakeStdioConfig(t testing.TB, spec fakeStdio, env ...string) stdioConfig {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return stdioConfig{
		Argv: []string{exe},
		// GORACE: a test binary built with -race waits a second at each exit.
		Env:   append([]string{"TAI_TEST_FAKE=stdio", "TAI_FAKE_STDIO=" + string(b), "GORACE=atexit_sleep_ms=0"}, env...),
		Grace: 300 * time.Millisecond, Drain: 200 * time.Millisecond,
	}
}

// fakeStdioStart starts the fake and stops it at the end of the test.
func fakeStdioStart(t testing.TB, spec fakeStdio, env ...string) *stdioTransport {
	t.Helper()
	return startStdioTest(t, fakeStdioConfig(t, spec, env...))
}

func startStdioTest(t testing.TB, c stdioConfig) *stdioTransport {
	t.Helper()
	tr, err := startStdio(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// fakePlay is the running fake.
type fakePlay struct {
	fakeStdio
	in        *bufio.Reader
	mu        sync.Mutex // holds stdout and cancelled
	cancelled []string
	texts     map[int]string // quoted texts of the tool big
}

func fakeStdioMain() {
	p := &fakePlay{in: bufio.NewReaderSize(os.Stdin, 64<<10), texts: map[int]string{}}
	if spec := os.Getenv("TAI_FAKE_STDIO"); spec != "" {
		if err := json.Unmarshal([]byte(spec), &p.fakeStdio); err != nil {
			fmt.Fprintln(os.Stderr, "fake spec:", err)
			os.Exit(2)
		}
	}
	p.do(p.Start, nil)
	for {
		line, err := p.read()
		if err != nil {
			break
		}
		p.handle(line)
	}
	p.do(p.AtEOF, nil)
}

func (p *fakePlay) read() ([]byte, error) {
	line, err := p.in.ReadBytes('\n')
	if err == nil && p.Log != "" {
		f, err := os.OpenFile(p.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			os.Exit(2)
		}
		f.Write(line)
		f.Close()
	}
	return line, err
}

type fakeRequest struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name            string
		Arguments       json.RawMessage
		ProtocolVersion string
		RequestID       json.RawMessage
	}
}

func (p *fakePlay) handle(line []byte) {
	var r fakeRequest
	if err := json.Unmarshal(line, &r); err != nil {
		fmt.Fprintf(os.Stderr, "fake got no JSON: %s\n", line)
		return
	}
	for _, key := range []string{r.Method + " " + r.Params.Name, r.Method} {
		if steps, ok := p.On[key]; ok && r.Method != "" {
			p.do(steps, r.ID)
			return
		}
	}
	switch r.Method {
	case "initialize":
		version, caps := p.Version, p.Caps
		if version == "" {
			version = r.Params.ProtocolVersion
		}
		if caps == "" {
			caps = `{"tools":{}}`
		}
		p.reply(r.ID, `{"protocolVersion":"`+version+`","capabilities":`+caps+`,"serverInfo":{"name":"fake","version":"1"}}`)
	case "tools/list":
		tools := p.Tools
		if tools == "" {
			tools = strings.ReplaceAll(fakeStdioTools, "\n", "")
		}
		p.reply(r.ID, `{"tools":`+tools+`}`)
	case "tools/call":
		p.callTool(r)
	case "ping":
		p.reply(r.ID, `{}`)
	case "notifications/cancelled":
		p.mu.Lock()
		p.cancelled = append(p.cancelled, string(r.Params.RequestID))
		p.mu.Unlock()
	default:
		if r.ID != nil && r.Method != "" {
			p.write(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"error":{"code":-32601,"message":"unknown method"}}` + "\n")
		}
	}
}

func (p *fakePlay) callTool(r fakeRequest) {
	var a struct {
		A, B        float64
		N, MS, Code int
	}
	json.Unmarshal(r.Params.Arguments, &a) // wrong arguments are the tool's business, and it takes them as zero
	text := ""
	switch r.Params.Name {
	case "echo":
		text = string(r.Params.Arguments)
	case "add":
		text = strconv.FormatFloat(a.A+a.B, 'g', -1, 64)
	case "fail":
		p.reply(r.ID, `{"content":[{"type":"text","text":"it failed"}],"isError":true}`)
		return
	case "big":
		p.big(r.ID, a.N)
		return
	case "sleep":
		go func() {
			time.Sleep(time.Duration(a.MS) * time.Millisecond)
			p.text(r.ID, "late")
		}()
		return
	case "env":
		text = strings.Join(os.Environ(), "\n")
	case "argv":
		text = strings.Join(os.Args[1:], "\x00")
	case "fds":
		text = fakeDescriptors()
	case "pid":
		text = strconv.Itoa(os.Getpid())
	case "structured":
		p.reply(r.ID, `{"content":[],"structuredContent":{"rows":[1,2]}}`)
		return
	case "exit":
		fmt.Fprintln(os.Stderr, "fatal: told to exit")
		os.Exit(a.Code)
	case "cancelled":
		p.mu.Lock()
		text = strings.Join(p.cancelled, ",")
		p.mu.Unlock()
	default:
		p.write(`{"jsonrpc":"2.0","id":` + string(r.ID) + `,"error":{"code":-32602,"message":"unknown tool","data":{"name":"x"}}}` + "\n")
		return
	}
	p.text(r.ID, text)
}

// fakeDescriptors lists the open descriptors but for those of the Go runtime.
func fakeDescriptors() string {
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return err.Error()
	}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err.Error()
	}
	var open []string
	for _, name := range names {
		if name == strconv.Itoa(int(dir.Fd())) {
			continue
		}
		target, err := os.Readlink(filepath.Join("/dev/fd", name))
		own := strings.HasPrefix(target, "anon_inode:") || strings.HasPrefix(target, "/sys/fs/cgroup/") // the Go runtime's
		if err == nil && !own {
			open = append(open, name)
		}
	}
	slices.Sort(open)
	return strings.Join(open, ",")
}

func (p *fakePlay) write(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	io.WriteString(os.Stdout, s)
}

func (p *fakePlay) reply(id json.RawMessage, result string) {
	p.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + "}\n")
}

func (p *fakePlay) text(id json.RawMessage, s string) {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	p.reply(id, `{"content":[{"type":"text","text":`+string(quoted)+`}]}`)
}

func (p *fakePlay) big(id json.RawMessage, n int) {
	text, ok := p.texts[n]
	if !ok {
		text = strings.Repeat("0123456789abcdef", n/16+1)[:n]
		p.texts[n] = text
	}
	p.reply(id, `{"content":[{"type":"text","text":"`+text+`"}]}`)
}

func (p *fakePlay) do(steps []fakeStep, id json.RawMessage) {
	for _, s := range steps {
		if s.IgnoreTerm {
			signal.Ignore(syscall.SIGTERM)
		}
		if s.Spawn != nil {
			cmd := exec.Command(s.Spawn[0], s.Spawn[1:]...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			if err := cmd.Start(); err != nil {
				fmt.Fprintln(os.Stderr, "fake:", err)
				os.Exit(2)
			}
		}
		if s.PidFile != "" {
			os.WriteFile(s.PidFile+".new", []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
			os.Rename(s.PidFile+".new", s.PidFile)
		}
		io.WriteString(os.Stderr, s.Err)
		for n := s.ErrBytes; n > 0; n -= 1 << 16 {
			io.WriteString(os.Stderr, strings.Repeat("e", min(n, 1<<16)))
		}
		var out strings.Builder
		for i := range max(s.Times, 1) {
			if s.Items && i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(strings.ReplaceAll(strings.ReplaceAll(s.Out, "$ID", string(id)), "$N", strconv.Itoa(i)))
			if out.Len() >= 64<<10 || i == s.Times-1 {
				p.write(out.String())
				out.Reset()
			}
		}
		p.write(out.String())
		if s.Big > 0 {
			p.big(id, s.Big)
		}
		if s.Reply != "" {
			p.reply(id, s.Reply)
		}
		for range s.Await {
			if _, err := p.read(); err != nil {
				return
			}
		}
		time.Sleep(time.Duration(s.SleepMS) * time.Millisecond)
		if s.CloseOut {
			os.Stdout.Close()
		}
		if s.Signal != 0 {
			self, _ := os.FindProcess(os.Getpid())
			self.Signal(syscall.Signal(s.Signal))
			select {} // until it arrives
		}
		if s.Exit != 0 {
			os.Exit(s.Exit - 1)
		}
	}
}

// fakeStdioParent stands in for a tai that gets killed: it starts three servers, one through a wrapper, a background command and a command of
// shell_run, and waits for ever.
func fakeStdioParent() {
	dir := os.Getenv("TAI_FAKE_DIR")
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	ignores := fakeStdio{Start: []fakeStep{{IgnoreTerm: true, PidFile: filepath.Join(dir, "1")}}, AtEOF: []fakeStep{{SleepMS: 60_000}}}
	wrapped := fakeStdio{Start: []fakeStep{{IgnoreTerm: true, PidFile: filepath.Join(dir, "2")}}, AtEOF: []fakeStep{{SleepMS: 60_000}}} // busy with a call
	honest := fakeStdio{Start: []fakeStep{{PidFile: filepath.Join(dir, "3")}}}
	for i, spec := range []fakeStdio{ignores, wrapped, honest} {
		b, err := json.Marshal(spec)
		if err != nil {
			panic(err)
		}
		argv := []string{exe}
		if i == 1 {
			argv = []string{"/bin/sh", "-c", `"$0"; exit $?`, exe}
		}
		if _, err := startStdio(context.Background(), stdioConfig{Argv: argv, Env: []string{"TAI_TEST_FAKE=stdio", "TAI_FAKE_STDIO=" + string(b)}}); err != nil {
			panic(err)
		}
	}
	b, err := json.Marshal(fakeStdio{Start: []fakeStep{{IgnoreTerm: true, PidFile: filepath.Join(dir, "5")}}, AtEOF: []fakeStep{{SleepMS: 60_000}}})
	if err != nil {
		panic(err)
	}
	background := procSpec{Argv: []string{"/bin/sh", "-c", `"$0"; exit $?`, exe}, Env: []string{"TAI_TEST_FAKE=stdio", "TAI_FAKE_STDIO=" + string(b)}}
	if _, err := newProcManager(time.Now).start(background); err != nil {
		panic(err)
	}
	b, err = json.Marshal(fakeStdio{Start: []fakeStep{{PidFile: filepath.Join(dir, "4")}}, AtEOF: []fakeStep{{SleepMS: 60_000}}})
	if err != nil {
		panic(err)
	}
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", `"$0"; exit $?`, exe)
	cmd.Env = []string{"TAI_TEST_FAKE=stdio", "TAI_FAKE_STDIO=" + string(b)}
	panic(shellRunner{}.wait(cmd, &shellOutput{})) // killed before it ends
}
