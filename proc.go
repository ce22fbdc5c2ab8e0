// This file owns the background processes of one tai: it starts each in a group of its own, keeps its output and its end, and ends all of
// them with tai. It knows no tool, no policy and no shell.
package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	procMax       = 16              // background processes at a time
	procKept      = 32              // ended ones that are remembered
	procDrain     = 2 * time.Second // for output that a child of an ended process holds open
	procKillTime  = 5 * time.Second // for a killed process to be gone
	procCloseTime = 2 * time.Second // between asking and killing when tai itself ends
	procWriteTime = 5 * time.Second // for one write to a process that may not be reading
)

// The states of background work.
const (
	procRunning = "running"
	procExited  = "exited"
	procStopped = "stopped" // ended because somebody asked for it
)

// procInfo is what lists say of one piece of background work.
type procInfo struct {
	ID      string    `json:"id"`
	What    string    `json:"kind"` // command, or agent
	Name    string    `json:"name,omitempty"`
	Command string    `json:"command"`
	Cwd     string    `json:"cwd,omitempty"`
	State   string    `json:"state"`
	Status  string    `json:"status,omitempty"` // how it ended, in words
	Exit    *int      `json:"exit,omitempty"`   // -1 if a signal ended it
	Pid     int       `json:"pid,omitempty"`
	Started time.Time `json:"started"`
	Ran     int64     `json:"ran_ms"` // until now, or until it ended
	Bytes   int64     `json:"bytes"`  // of output since the start
}

// procSource is background work of another kind that is listed and stopped beside the processes, as sub-agents are.
type procSource interface {
	background() []procInfo
	// stopBackground ends the one with that id; false says that it has none.
	stopBackground(ctx context.Context, id string, grace time.Duration) (procInfo, bool, error)
}

// procSpec is a process to start. Argv is started as it is, without a shell.
type procSpec struct {
	Name, Command string
	Argv          []string
	Dir, Cwd      string // the folder, and how it is shown
	Env           []string
}

// procManager is safe for concurrent use.
type procManager struct {
	now func() time.Time

	mu      sync.Mutex
	list    []*proc // oldest first
	last    int     // the number of the newest id
	closed  bool
	sources []procSource
}

// proc is one process. The fields above out are set before anybody sees it.
type proc struct {
	spec    procSpec
	id      string
	pid     int
	started time.Time
	now     func() time.Time
	stdin   *os.File
	out     procOutput
	asked   atomic.Bool   // somebody wants it to end
	done    chan struct{} // closed when the process and its group are gone; what follows is set by then
	ended   time.Time
	exit    int
	status  string

	writing chan struct{} // one slot
}

func newProcManager(now func() time.Time) *procManager { return &procManager{now: now} }

// join adds another kind of background work to what list shows and stop ends.
func (m *procManager) join(s procSource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sources = append(m.sources, s)
}

// start starts a process, which then runs until it ends, is stopped or tai ends.
func (m *procManager) start(s procSpec) (*proc, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	running := 0
	for _, p := range m.list {
		if !p.over() {
			running++
		}
	}
	switch {
	case m.closed:
		return nil, newError("tai is ending")
	case running >= procMax:
		return nil, errorf("%d background commands are running, at most %d may", running, procMax)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p := &proc{spec: s, id: "p-" + strconv.Itoa(m.last+1), started: m.now(), now: m.now, stdin: w, done: make(chan struct{}), writing: make(chan struct{}, 1)}
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.WaitDelay = s.Dir, s.Env, r, procDrain
	cmd.Stdout, cmd.Stderr = p.out.stream("stdout"), p.out.stream("stderr")
	ownGroup(cmd)
	began := make(chan error)
	go p.live(cmd, began) // ends with the process; close waits for it
	if err := <-began; err != nil {
		w.Close()
		return nil, err
	}
	m.last++
	m.list = append(m.list, p)
	m.forget(len(m.list) - running - 1 - procKept)
	return p, nil
}

// forget drops the n oldest processes that have ended; m.mu is held.
func (m *procManager) forget(n int) {
	kept := m.list[:0]
	for _, p := range m.list {
		if n > 0 && p.over() {
			n--
			continue
		}
		kept = append(kept, p)
	}
	clear(m.list[len(kept):])
	m.list = kept
}

// live starts the process, waits for it, and ends what is left of its group. The thread is kept as long as the process, which is what ownGroup
// asks for.
func (p *proc) live(cmd *exec.Cmd, began chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	if err == nil {
		p.pid = cmd.Process.Pid
	}
	began <- err
	if err != nil {
		return
	}
	unguard, err := guardGroup(p.pid)
	if err != nil {
		unguard = func() {} // the process itself still ends with tai
	}
	err = cmd.Wait()
	killErr := killGroup(p.pid)
	unguard()
	p.stdin.Close()
	p.ended, p.exit, p.status = p.now(), cmd.ProcessState.ExitCode(), cmd.ProcessState.String()
	if errors.Is(err, exec.ErrWaitDelay) {
		p.status += ", and a process it left running was ended"
	}
	if killErr != nil {
		p.status += ", and its group could not be ended: " + killErr.Error()
	}
	close(p.done)
}

// over reports whether the process and its group are gone.
func (p *proc) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// info says how the process is.
func (p *proc) info() procInfo {
	_, end := p.out.bounds()
	i := procInfo{ID: p.id, What: "command", Name: p.spec.Name, Command: p.spec.Command, Cwd: p.spec.Cwd, State: procRunning, Pid: p.pid, Started: p.started.UTC(), Bytes: end}
	if !p.over() {
		i.Ran = p.now().Sub(p.started).Milliseconds()
		return i
	}
	i.State, i.Status, i.Exit, i.Ran = procExited, p.status, &p.exit, p.ended.Sub(p.started).Milliseconds()
	if p.asked.Load() {
		i.State = procStopped
	}
	return i
}

// find gives the process with that id.
func (m *procManager) find(id string) (*proc, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.list {
		if p.id == id {
			return p, true
		}
	}
	return nil, false
}

// all gives all processes and what was joined, oldest first.
func (m *procManager) all() []procInfo {
	m.mu.Lock()
	list, sources := append([]*proc(nil), m.list...), append([]procSource(nil), m.sources...)
	m.mu.Unlock()
	out := []procInfo{}
	for _, p := range list {
		out = append(out, p.info())
	}
	for _, s := range sources {
		out = append(out, s.background()...)
	}
	return out
}

// stop ends the process or other work with that id and says how it is then; false means that there is none.
func (m *procManager) stop(ctx context.Context, id string, grace time.Duration) (procInfo, bool, error) {
	if p, ok := m.find(id); ok {
		err := p.stop(ctx.Done(), grace)
		return p.info(), true, err
	}
	m.mu.Lock()
	sources := append([]procSource(nil), m.sources...)
	m.mu.Unlock()
	for _, s := range sources {
		if info, ok, err := s.stopBackground(ctx, id, grace); ok {
			return info, true, err
		}
	}
	return procInfo{}, false, nil
}

// stop asks the group to end and kills it after grace, or as soon as hurry is closed. It waits until the process is gone.
func (p *proc) stop(hurry <-chan struct{}, grace time.Duration) error {
	if p.over() {
		return nil
	}
	p.asked.Store(true)
	err := terminate(p.pid)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-hurry:
	case <-timer.C:
	}
	err = joinErrors(err, killGroup(p.pid))
	if !waitFor(procDrain+procKillTime, p.done) {
		return joinErrors(errorf("process %d is still there", p.pid), err)
	}
	return nil
}

// write sends text to the process, waiting at most within, and says how many bytes went out.
func (p *proc) write(ctx context.Context, text string, within time.Duration) (n int, err error) {
	select {
	case p.writing <- struct{}{}:
	default:
		return 0, newError("another write to it is under way")
	}
	if p.stdin.SetWriteDeadline(time.Now().Add(within)) == nil {
		defer func() { <-p.writing }()
		hurry := context.AfterFunc(ctx, func() { p.stdin.SetWriteDeadline(time.Now()) })
		defer hurry()
		return p.stdin.WriteString(text)
	}
	type written struct {
		n   int
		err error
	}
	came := make(chan written, 1)
	go func() { // a pipe without deadlines: this ends with the process at the latest, which closes the pipe
		n, err := p.stdin.WriteString(text)
		<-p.writing
		came <- written{n, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case w := <-came:
		return w.n, w.err
	case <-ctx.Done():
		return 0, os.ErrDeadlineExceeded
	}
}

// close ends all processes and waits until they are gone.
func (m *procManager) close() error {
	m.mu.Lock()
	m.closed = true
	list := append([]*proc(nil), m.list...)
	m.mu.Unlock()
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, p := range list {
		wg.Go(func() { errs[i] = p.stop(nil, procCloseTime) })
	}
	wg.Wait()
	if err := joinErrors(errs...); err != nil {
		return errorf("end background commands: %w", err)
	}
	return nil
}
