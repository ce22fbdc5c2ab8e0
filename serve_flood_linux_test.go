package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// floodSize is how hard a serving tai is pressed. The short form runs with the other tests and looks at no clock.
type floodSize struct {
	initialises, halfOpen, wrongKeys, quick int
	judged                                  bool // by time and memory
}

func floodForm() floodSize {
	if os.Getenv("TAI_FLOOD") != "" { // testdata/serve/flood
		return floodSize{10_000, 2_000, 100, 300, true}
	}
	return floodSize{300, 60, 5, 20, false}
}

// floodRig is tai --serve-mcp as a process of its own, with a model that answers when it is told to.
type floodRig struct {
	*serveFixture
	t       *testing.T
	auth    string
	pid     int
	release chan struct{}
}

const floodKey = "open-sesame-0123456789"

func newFloodRig(t *testing.T) *floodRig {
	t.Helper()
	f := &floodRig{serveFixture: &serveFixture{}, t: t, auth: "Authorization: Bearer " + floodKey, release: make(chan struct{})}
	model := newFakeModel(t, func(w http.ResponseWriter) {
		<-f.release
		promptSays("At last.")(w)
	})
	r := newCLIRig(t)
	r.env = []string{"TAI_BASE_URL=" + model.URL + "/v1", "TAI_MODEL=m-1", "DOOR=" + floodKey}
	cmd := r.process("--serve-mcp", "env:DOOR", "--mcp-port", "0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.pid = cmd.Process.Pid
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		kill := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
		defer kill.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("end: %v", err)
		}
	})
	lines := bufio.NewReader(stderr)
	for f.url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("it ended: %v", err)
		}
		if _, after, found := strings.Cut(line, "tools over MCP on "); found {
			f.url, _, _ = strings.Cut(after, " ")
		}
	}
	go io.Copy(io.Discard, lines) // ends with the process
	return f
}

// peak is the most memory that the process has held, in bytes.
func (f *floodRig) peak() int64 {
	f.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.pid))
	if err != nil {
		f.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		f.t.Fatal(err)
	}
	return kb << 10
}

// session opens one and gives its header.
func (f *floodRig) session() string {
	f.t.Helper()
	r := f.send(f.t, "POST", serveRequest("0", methodInitialize, `{"protocolVersion":"2025-11-25","capabilities":{}}`), f.auth)
	if r.status != 200 {
		f.t.Fatalf("%d %s", r.status, r.body)
	}
	return headerSession + ": " + r.header.Get(headerSession)
}

// timed sends one request and gives how long its answer took.
func (f *floodRig) timed(session, body string) time.Duration {
	f.t.Helper()
	begin := time.Now()
	if r := f.send(f.t, "POST", body, f.auth, session); r.status != 200 || r.rpc.Error != nil {
		f.t.Fatalf("%.100s: %d %.300s", body, r.status, r.body)
	}
	return time.Since(begin)
}

// TestServeFlood: while a turn of chat stands still, ping and tools/list are quick (SRV-16, W88); thousands of initialises, connections stuck in
// half a header and clients with wrong keys and big bodies leave a client with the right key served, in bounded memory (SRV-12, SRV-13, F24).
func TestServeFlood(t *testing.T) {
	size := floodForm()
	f := newFloodRig(t)
	talk, quick := f.session(), f.session()
	done := make(chan serveReply, 1)
	go func() { // ends when the model answers
		r, err := f.try(context.Background(), "POST", serveCall("chat", `{"message":"take your time"}`), f.auth, talk)
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	var ping, list time.Duration
	for range size.quick {
		ping, list = max(ping, f.timed(quick, servePing)), max(list, f.timed(quick, serveRequest("1", methodToolsList, `{}`)))
	}
	t.Logf("beside a turn of chat: slowest of %d pings %v, of %d tools/list %v", size.quick, ping, size.quick, list)
	if size.judged && max(ping, list) > 100*time.Millisecond {
		t.Errorf("slower than 100 ms")
	}
	slowest, asked := f.press(quick, size)
	t.Logf("%d initialises, %d connections stuck in half a header, %d clients with wrong keys and 10 MB bodies at once: slowest of %d answers to the right key %v, peak memory %d MB",
		size.initialises, size.halfOpen, size.wrongKeys, asked, slowest, f.peak()>>20)
	if size.judged && (slowest > time.Second || f.peak() > 200<<20) {
		t.Errorf("over 1 s or 200 MB")
	}
	close(f.release)
	if r := <-done; !strings.Contains(r.body, "At last.") {
		t.Errorf("the turn: %d %s", r.status, r.body)
	}
}

// press does all of it at once and gives how long the slowest answer to the right key took, and of how many.
func (f *floodRig) press(quick string, size floodSize) (slowest time.Duration, asked int) {
	ctx, stop := context.WithTimeout(f.t.Context(), 2*time.Minute) // of the connections, as of all else
	defer stop()
	addr := strings.TrimSuffix(strings.TrimPrefix(f.url, "http://"), mcpPath)
	var wg, halves sync.WaitGroup
	var closed atomic.Int64
	for range size.halfOpen {
		halves.Go(func() { // ends when the server closes
			if halfOpen(ctx, addr) {
				closed.Add(1)
			}
		})
	}
	var refused, opened atomic.Int64
	body := strings.Repeat("x", 10<<20)
	for range size.wrongKeys {
		wg.Go(func() { // ends with its requests
			for range 3 {
				r, err := f.try(ctx, "POST", body, "Authorization: Bearer wrong")
				if err == nil && r.status == http.StatusUnauthorized || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
					refused.Add(1)
				} else {
					f.t.Errorf("a wrong key: %d, %v", r.status, err)
				}
			}
		})
	}
	for range 20 {
		wg.Go(func() { // ends with its share
			for range size.initialises / 20 {
				if r, err := f.try(ctx, "POST", serveRequest("0", methodInitialize, `{"protocolVersion":"2025-11-25"}`), f.auth); err != nil || r.status != 200 && r.status != 503 {
					f.t.Errorf("initialize: %d, %v", r.status, err)
				} else {
					opened.Add(1)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { // ends with all of them
		wg.Wait()
		close(ended)
	}()
	for over := false; !over; asked++ {
		slowest = max(slowest, f.timed(quick, servePing))
		select {
		case <-ended:
			over = true
		default:
		}
	}
	if !size.judged {
		stop() // that they are closed in time another test shows, with shorter waits
	}
	halves.Wait()
	if size.judged && closed.Load() != int64(size.halfOpen) || refused.Load() != int64(3*size.wrongKeys) || opened.Load() != int64(size.initialises/20*20) {
		f.t.Errorf("%d of %d stuck connections were closed, %d wrong keys refused, %d sessions opened", closed.Load(), size.halfOpen, refused.Load(), opened.Load())
	}
	return slowest, asked
}

// halfOpen sends half a header and then a byte a second, and reports whether the server closed within 10 s.
func halfOpen(ctx context.Context, addr string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	end := time.Now().Add(2 * serveHeaderTime)
	if _, err := io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: "); err != nil {
		return false
	}
	buf := make([]byte, 512)
	for time.Now().Before(end) {
		if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return false
		}
		if _, err = conn.Read(buf); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return true
		}
		if _, err := io.WriteString(conn, "x"); err != nil {
			return true
		}
	}
	return false
}
