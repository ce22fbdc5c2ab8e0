// This file runs a child process and moves JSON-RPC messages over its stdin and stdout, one a line (MCP, Transports, stdio).
// It owns framing, the pairing of replies with calls, and the child's whole life. It knows no tools, rules or secrets.
//
// The child is not trusted: it may write anything, never read, never end, or leave others behind that hold its pipes. So every
// buffer is bounded, the reading loop never waits for a write, and no wait for the child is without a limit.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"
)

const (
	stdioGrace   = 2 * time.Second        // wait after closing stdin, after SIGTERM, and after SIGKILL
	stdioDrain   = 500 * time.Millisecond // wait for what an exited child has still in its pipes, and for the exit of one that closed stdout
	stdioTail    = 8 << 10                // bytes of stderr kept
	stdioAnswers = 1 << 20                // bytes of answers to the server's own requests that wait to be written
	stdioShown   = 1 << 10                // bytes of it shown in an error
	stdioQuote   = 200                    // bytes of a skipped line that are quoted
)

var (
	errTransportClosed = errors.New("connection is closed")
	errMessageTooBig   = fmt.Errorf("message is over the cap of %d MB (MCP_HTTP_MAX_BODY)", mcpHTTPMaxBody>>20)
	errMessageInvalid  = errors.New("reply is not a valid JSON-RPC message")
)

// stdioConfig says what to start. Nothing is inherited: Env is the whole environment, see stdioEnv.
type stdioConfig struct {
	Argv   []string
	Env    []string                                    // KEY=VALUE
	Dir    string                                      // "" is tai's own folder
	Notify func(method string, params json.RawMessage) // as setNotify; both hear everything

	Grace time.Duration // 0 is stdioGrace
	Drain time.Duration // 0 is stdioDrain
}

// stdioExitError is the error of every call that was running when the child ended, and of those after it.
type stdioExitError struct {
	Code   int    // exit status, -1 after a signal or when Open
	Signal string // what ended it, "" if it exited
	Open   bool   // it closed its stdout without exiting
	Cut    bool   // its last line was not complete
	Tail   string // end of its stderr, made visible
	Stdout string // first line on its stdout that is no message, made visible
}

func (e *stdioExitError) Error() string {
	var b textBuilder
	switch {
	case e.Open:
		b.WriteString("server closed its output")
	case e.Signal != "":
		b.WriteString("server was ended by a signal (" + e.Signal + ")")
	default:
		fmt.Fprintf(&b, "server exited with status %d", e.Code)
	}
	if e.Cut {
		b.WriteString(" in the middle of a message")
	}
	if e.Tail != "" {
		b.WriteString("; its stderr ends: " + lastPart(e.Tail))
	}
	if e.Stdout != "" {
		b.WriteString("; its stdout begins: " + e.Stdout)
	}
	return b.String()
}

// lastPart returns the end of a text, short enough for an error.
func lastPart(s string) string {
	cut := len(s) - stdioShown
	if cut <= 0 {
		return s
	}
	for cut < len(s) && !utf8.RuneStart(s[cut]) {
		cut++
	}
	return "…" + s[cut:]
}

// stdioTransport is one running child. Its methods may be called from several goroutines.
type stdioTransport struct {
	grace, drain time.Duration
	cmd          *exec.Cmd
	in           *os.File // our end of the child's stdin
	out, stderr  *os.File
	rawIn        syscall.RawConn
	tail         *tailBuffer

	writing chan struct{} // one slot; holds the writer while nobody else may write
	line    []byte        // the writer's buffer
	rest    chan stdioRest

	batches  atomic.Bool
	notified func(method string, params json.RawMessage)
	onNote   atomic.Pointer[func(method string, params json.RawMessage)]

	exited     chan struct{} // closed when the child has been waited for
	readDone   chan struct{} // closed at the end of stdout
	stderrDone chan struct{}
	gone       chan struct{} // closed with dead set
	answerWake chan struct{} // one slot
	stopOnce   sync.Once
	stopErr    error
	stopped    chan struct{} // closed when the child has been stopped
	wg         sync.WaitGroup

	mu       sync.Mutex
	pending  map[string]chan stdioReply // by raw id
	dead     error
	answers  []byte // lines to be written by answerLoop
	skipped  int    // lines on stdout that are no message
	skippedA string // the first of them
	faults   int    // messages that break the protocol
	faultA   string // the first of them
	dropped  int    // replies nobody waits for, and answers that found no room
}

type stdioReply struct {
	msg rpcMessage
	err error
}

// stdioRest is what a full pipe did not take at once.
type stdioRest struct {
	b    []byte
	done chan error // one slot
}

// startStdio starts the child. The error names the command and where it was looked for. ctx bounds nothing but the start: the
// child lives until close, or until its own end.
func startStdio(ctx context.Context, c stdioConfig) (*stdioTransport, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := findCommand(c.Argv, c.Env, c.Dir)
	if err != nil {
		return nil, err
	}
	t := &stdioTransport{
		grace: c.Grace, drain: c.Drain, tail: &tailBuffer{max: stdioTail},
		writing: make(chan struct{}, 1), rest: make(chan stdioRest),
		exited: make(chan struct{}), readDone: make(chan struct{}), stderrDone: make(chan struct{}),
		gone: make(chan struct{}), answerWake: make(chan struct{}, 1), stopped: make(chan struct{}),
		pending: map[string]chan stdioReply{},
	}
	if t.grace == 0 {
		t.grace = stdioGrace
	}
	if t.drain == 0 {
		t.drain = stdioDrain
	}
	if t.notified = c.Notify; t.notified == nil {
		t.notified = func(string, json.RawMessage) {}
	}
	t.setNotify(func(string, json.RawMessage) {})
	t.cmd = &exec.Cmd{Path: path, Args: c.Argv, Env: append([]string{}, c.Env...), Dir: c.Dir}
	ownGroup(t.cmd)
	if err := t.spawn(); err != nil {
		return nil, errorf("start %s: %w", visibleLine(path), err)
	}
	return t, nil
}

// setVersion tells the negotiated revision: 2025-03-26 alone has batches.
func (t *stdioTransport) setVersion(v string) { t.batches.Store(v == mcpVersionBatch) }

// setNotify sets who hears the server's notifications. f runs in the reading loop: it must not wait, and params are valid only during the call.
func (t *stdioTransport) setNotify(f func(method string, params json.RawMessage)) { t.onNote.Store(&f) }

// alive reports whether the child still answers, as far as is known.
func (t *stdioTransport) alive() bool {
	select {
	case <-t.gone:
		return false
	default:
		return true
	}
}

// call sends a request, whose id must be new in this connection, and returns the reply to it, an error reply included. It ends
// with ctx, whose cause is the error then; a reply that comes later is dropped.
func (t *stdioTransport) call(ctx context.Context, m rpcMessage) (rpcMessage, error) {
	reply, id := make(chan stdioReply, 1), string(m.ID)
	t.mu.Lock()
	if t.dead != nil {
		defer t.mu.Unlock()
		return rpcMessage{}, t.dead
	}
	if _, ok := t.pending[id]; ok || id == "" {
		t.mu.Unlock()
		return rpcMessage{}, errorf("request id %q is missing or in use", id)
	}
	t.pending[id] = reply
	t.mu.Unlock()
	err := t.send(ctx, m)
	if err == nil {
		select {
		case r := <-reply:
			r.msg.ID = m.ID
			return r.msg, r.err
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pending, id)
	return rpcMessage{}, err
}

// notify sends a notification.
func (t *stdioTransport) notify(ctx context.Context, m rpcMessage) error { return t.send(ctx, m) }

// send writes one message as one line.
func (t *stdioTransport) send(ctx context.Context, m rpcMessage) error {
	if err := t.lockWriting(ctx); err != nil {
		return err
	}
	t.line = append(appendMessage(t.line[:0], m), '\n')
	var err error
	switch {
	case len(t.line) > mcpHTTPMaxBody:
		err = errMessageTooBig
	case bytes.IndexByte(t.line, '\n') != len(t.line)-1:
		err = newError("message has a line break in it") // it would be two to the child
	default:
		return t.write(ctx, t.line)
	}
	<-t.writing
	return err
}

func (t *stdioTransport) lockWriting(ctx context.Context) error {
	select {
	case t.writing <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.gone:
		return t.deadErr()
	}
}

// write puts b, whole lines, on the child's stdin. The caller holds the writing slot and write gives it back. What the pipe does
// not take at once is left to writeLoop, so that a child that never reads delays nobody beyond ctx and no line is ever cut.
func (t *stdioTransport) write(ctx context.Context, b []byte) error {
	n, err := writeNow(t.rawIn, b)
	if err != nil {
		<-t.writing
		return t.writeFault(err)
	}
	if n == len(b) {
		if cap(t.line) > frameBuffer {
			t.line = nil
		}
		<-t.writing
		return nil
	}
	t.line = nil // it is writeLoop's now
	r := stdioRest{b: b[n:], done: make(chan error, 1)}
	select {
	case t.rest <- r:
	case <-t.gone:
		<-t.writing
		return t.deadErr()
	}
	select {
	case err := <-r.done:
		if err != nil {
			return t.writeFault(err)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.gone:
		return t.deadErr()
	}
}

// writeLoop writes what the pipe did not take at once. It ends with the connection: closing stdin ends a write that waits.
func (t *stdioTransport) writeLoop() {
	for {
		select {
		case r := <-t.rest:
			_, err := t.in.Write(r.b)
			<-t.writing
			r.done <- err
		case <-t.gone:
			return
		}
	}
}

// writeFault is the error of a write that failed. That the child has ended says more, so its end is waited for a moment.
func (t *stdioTransport) writeFault(err error) error {
	if waitFor(t.drain, t.gone) {
		return t.deadErr()
	}
	return errorf("server reads no more: %w", err)
}

func (t *stdioTransport) deadErr() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dead
}

// readLoop hands every message of the child to where it belongs. It ends at the end of stdout, which ends the connection.
func (t *stdioTransport) readLoop() {
	lines := newLineReader(t.out, mcpHTTPMaxBody)
	for {
		line, kept, err := lines.next()
		if tooLong, ok := errors.AsType[*lineTooLong](err); ok {
			t.tooLong(tooLong)
			continue
		}
		if err != nil {
			close(t.readDone)
			t.ended(err == io.ErrUnexpectedEOF)
			return
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if isBatch(line) {
			t.takeBatch(line, kept)
			continue
		}
		m, err := decodeMessage(line)
		if err != nil || m.kind() == rpcInvalid {
			t.takeInvalid(line, err)
			continue
		}
		t.take(m, kept)
	}
}

// take handles one message. Unless kept is true its bytes are the read buffer's.
func (t *stdioTransport) take(m rpcMessage, kept bool) {
	switch m.kind() {
	case rpcResponse:
		t.mu.Lock()
		reply, ok := t.pending[string(m.ID)]
		delete(t.pending, string(m.ID))
		if !ok {
			t.dropped++
		}
		t.mu.Unlock()
		if !ok {
			return
		}
		if !kept {
			m.Result = bytes.Clone(m.Result)
			if m.Error != nil {
				m.Error.Data = bytes.Clone(m.Error.Data)
			}
		}
		reply <- stdioReply{msg: m} // one slot, and taken out of pending by one only
	case rpcRequest:
		if answer, ok := answerPeer(m); ok {
			t.queueAnswer(answer)
		}
	case rpcNotification:
		t.notified(m.Method, m.Params)
		(*t.onNote.Load())(m.Method, m.Params)
	case rpcPeerError:
		t.fault("error without an id: " + m.Error.Error())
	}
}

// takeBatch handles an array of messages, which only revision 2025-03-26 has. Elsewhere the calls that it answers fail.
func (t *stdioTransport) takeBatch(line []byte, kept bool) {
	batch, err := decodeBatch(line)
	if err != nil {
		t.skip(line) // a log line may begin with a bracket
		return
	}
	if t.batches.Load() {
		for _, m := range batch {
			t.take(m, kept)
		}
		return
	}
	t.fault("batch of messages, which only revision 2025-03-26 has")
	for _, m := range batch {
		if m.kind() == rpcResponse {
			t.failCall(m.ID, errorf("%w: it is a batch, which only revision 2025-03-26 has", errMessageInvalid))
		}
	}
}

// takeInvalid handles a line that is no message: a banner is skipped, a broken reply fails the call that it was for.
func (t *stdioTransport) takeInvalid(line []byte, err error) {
	id, isRPC := replyID(line, nil)
	if !isRPC {
		t.skip(line)
		return
	}
	if err == nil {
		err = newError("neither request, notification nor reply")
	}
	t.fault(err.Error())
	t.failCall(id, errorf("%w: %w", errMessageInvalid, err))
}

// tooLong handles a message over the cap: its call fails, or every call if there is no telling which it answered.
func (t *stdioTransport) tooLong(e *lineTooLong) {
	id, isRPC := replyID(e.Head, e.Tail)
	if !isRPC {
		t.skip(e.Head)
		return
	}
	t.fault(errMessageTooBig.Error())
	if id != nil {
		t.failCall(id, errMessageTooBig)
		return
	}
	t.failAll(errMessageTooBig)
}

// failCall ends the call of that raw id, if it is running.
func (t *stdioTransport) failCall(id []byte, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if reply, ok := t.pending[string(id)]; ok {
		delete(t.pending, string(id))
		reply <- stdioReply{err: err}
	}
}

func (t *stdioTransport) failAll(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, reply := range t.pending {
		delete(t.pending, id)
		reply <- stdioReply{err: err}
	}
}

func (t *stdioTransport) skip(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.skipped++; t.skipped == 1 {
		t.skippedA = visibleLine(clip(string(line[:min(len(line), 2*stdioQuote)]), stdioQuote))
	}
}

func (t *stdioTransport) fault(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.faults++; t.faults == 1 {
		t.faultA = visibleLine(clip(what, stdioQuote))
	}
}

// queueAnswer leaves an answer to answerLoop. A server that asks and never reads loses the answers that find no room.
func (t *stdioTransport) queueAnswer(m rpcMessage) {
	line := append(appendMessage(nil, m), '\n')
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.answers)+len(line) > stdioAnswers {
		t.dropped++
		return
	}
	t.answers = append(t.answers, line...)
	select {
	case t.answerWake <- struct{}{}:
	default:
	}
}

// answerLoop writes the answers to the server's own requests. It ends with the connection.
func (t *stdioTransport) answerLoop() {
	for {
		select {
		case <-t.answerWake:
		case <-t.gone:
			return
		}
		if t.lockWriting(context.Background()) != nil {
			return // the connection has ended, which ends every wait here
		}
		t.mu.Lock()
		lines := t.answers
		t.answers = nil
		t.mu.Unlock()
		if t.write(context.Background(), lines) != nil {
			return // stdin takes no more: calls report that
		}
	}
}

// noise tells of the lines on the server's stdout that were skipped because they are no messages; "" if there were none.
func (t *stdioTransport) noise() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.skipped == 0 {
		return ""
	}
	return fmt.Sprintf("%d lines on its stdout are no messages and were skipped, the first: %s", t.skipped, t.skippedA)
}

// diagnostics says what the child wrote beside its messages, made visible; "" if nothing.
func (t *stdioTransport) diagnostics() string {
	var parts []string
	if tail := strings.TrimSpace(t.tail.String()); tail != "" {
		parts = append(parts, "its stderr ends: "+lastPart(visible(tail)))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d lines on its stdout are no messages, the first: %s", t.skipped, t.skippedA))
	}
	if t.faults > 0 {
		parts = append(parts, fmt.Sprintf("%d messages break the protocol, the first: %s", t.faults, t.faultA))
	}
	if t.dropped > 0 {
		parts = append(parts, fmt.Sprintf("%d messages were dropped", t.dropped))
	}
	return strings.Join(parts, "; ")
}

// spawn starts the child with pipes of our own, so that waiting for the child never waits for whoever else holds its pipes.
func (t *stdioTransport) spawn() (err error) {
	var ends []*os.File
	defer func() {
		for i, f := range ends {
			if err != nil || i%2 == 0 { // the child has its own copies of the even ones
				f.Close()
			}
		}
	}()
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		ends = append(ends, r, w)
	}
	ends[2], ends[3], ends[4], ends[5] = ends[3], ends[2], ends[5], ends[4] // the child writes to these two
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = ends[0], ends[2], ends[4]
	t.in, t.out, t.stderr = ends[1], ends[3], ends[5]
	if t.rawIn, err = t.in.SyscallConn(); err != nil {
		return err
	}
	shutInherited()
	started := make(chan error)
	t.wg.Go(func() { t.live(started) }) // ends when the child has
	if err := <-started; err != nil {
		return spawnFault(t.cmd.Path, err)
	}
	t.wg.Go(t.drainStderr) // these end with the child: live closes the pipes
	t.wg.Go(t.readLoop)
	t.wg.Go(t.writeLoop)
	t.wg.Go(t.answerLoop)
	return nil
}

// live starts the child, waits for it and cleans up after it. It holds its thread for the child's whole life, because on Linux
// the kernel takes the end of the thread that started a child for the end of its parent.
func (t *stdioTransport) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := t.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	unguard, err := guardGroup(t.cmd.Process.Pid)
	if err != nil {
		unguard = func() {} // a system without a shell: the child itself still sees the end of its stdin
	}
	t.cmd.Wait() // the exit status is in ProcessState; there is no other fault, as no pipe is copied
	close(t.exited)
	// A launcher may exit before what it launched has written everything, or something else may hold the pipes for ever.
	waitFor(t.drain, t.readDone, t.stderrDone)
	killGroup(t.cmd.Process.Pid)
	unguard()
	t.in.Close()
	t.out.Close()
	t.stderr.Close()
}

// drainStderr reads the child's stderr to its end and keeps the tail, whatever the child does elsewhere (STD-10).
func (t *stdioTransport) drainStderr() {
	defer close(t.stderrDone)
	io.CopyBuffer(struct{ io.Writer }{t.tail}, struct{ io.Reader }{t.stderr}, make([]byte, frameBuffer))
}

// ended ends the connection after the end of stdout: with the child's exit if that follows at once, else as a server that
// closed its output, which is then stopped.
func (t *stdioTransport) ended(cut bool) {
	exited := waitFor(t.drain, t.exited, t.stderrDone)
	if !exited {
		exited = waitFor(0, t.exited)
	}
	e := &stdioExitError{Code: -1, Open: !exited, Cut: cut, Tail: visible(strings.TrimSpace(t.tail.String()))}
	if exited {
		e.Code, e.Signal = exitOf(t.cmd.ProcessState)
	}
	t.mu.Lock()
	e.Stdout = t.skippedA
	t.mu.Unlock()
	t.die(e)
	t.stop()
}

// exitOf splits how a process ended; nil, if waiting for it failed, is an unknown status.
func exitOf(ps *os.ProcessState) (code int, signal string) {
	if ps == nil {
		return -1, ""
	}
	if ws, ok := ps.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		signal = ws.Signal().String()
	}
	return ps.ExitCode(), signal
}

// die ends every running call and all later ones with err, once.
func (t *stdioTransport) die(err error) {
	t.mu.Lock()
	if t.dead == nil {
		t.dead = err
		close(t.gone)
	}
	t.mu.Unlock()
	t.failAll(err)
}

// close stops the child and its process group and waits for the end of everything that belongs to the connection: at most three
// times the grace, and twice the drain. Running calls end with errTransportClosed at once.
func (t *stdioTransport) close() error {
	t.die(errTransportClosed)
	t.stop()
	if t.stopErr == nil {
		t.wg.Wait()
	}
	return t.stopErr
}

// stop goes down the ladder, once; who comes second waits for its end. A rung that fails does not spare the next one.
func (t *stdioTransport) stop() {
	t.stopOnce.Do(func() {
		pid := t.cmd.Process.Pid
		t.in.Close()
		if waitFor(t.grace, t.exited) {
			return
		}
		terminate(pid)
		if waitFor(t.grace, t.exited) {
			return
		}
		err := killGroup(pid)
		if !waitFor(t.grace, t.exited) {
			t.stopErr = joinErrors(errorf("process %d does not end", pid), err)
			t.out.Close() // nobody waits for what it still writes
			t.stderr.Close()
		}
	})
}
