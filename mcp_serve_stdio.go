// This file is the stdio door of tai as an MCP server: one message a line in, one a line out (MCP 2025-11-25, Transports, stdio). It owns the
// framing, the order of answers on the wire, and the end. What a message means is the core's. Nothing but messages is ever written.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const stdioQueue = 16 // answers that wait for a client to read those before

// stdioServer serves one client on a pair of streams. It is used once.
type stdioServer struct {
	core    *serveCore
	maxLine int           // bytes of one message
	grace   time.Duration // at the end, for calls under way; then they are cancelled and get it once more
	session string        // what tools and records see
	opened  bool          // initialize has been answered
	calls   sync.WaitGroup

	out    io.Writer
	queue  chan []byte   // whole lines on their way to out
	over   chan struct{} // closed when nobody waits for answers any more
	broken chan struct{} // closed when out can no longer be written; gone says why, and belongs to pump before
	gone   error
	wrote  chan struct{} // closed when pump has ended
}

func newStdioServer(core *serveCore, out io.Writer) *stdioServer {
	return &stdioServer{
		core: core, out: out, maxLine: mcpHTTPMaxBody, grace: serveGrace, session: newServedSession(),
		queue: make(chan []byte, stdioQueue), over: make(chan struct{}), broken: make(chan struct{}), wrote: make(chan struct{}),
	}
}

// serve answers until in ends, ctx ends, or out can no longer be written. At the end calls under way get the grace, are then cancelled and get
// it once more to answer. Nil means that all came to their end and were answered.
func (s *stdioServer) serve(ctx context.Context, in io.Reader) error {
	lines, stop := make(chan stdioLine), make(chan struct{})
	go s.read(in, lines, stop) // ends with in, or at the next line once stop is closed; a read that waits lasts as long as the program
	defer close(stop)
	go s.pump() // ends when finish is over; a write that waits for a client which does not read lasts as long as the program
	err := s.loop(ctx, lines)
	return joinErrors(err, s.finish())
}

// stdioLine is a line that was read, or why there is none.
type stdioLine struct {
	text []byte
	err  error
}

// read hands on what comes in, line by line. The last line needs no line end.
func (s *stdioServer) read(in io.Reader, lines chan<- stdioLine, stop <-chan struct{}) {
	r := newLineReader(io.MultiReader(in, strings.NewReader("\n")), s.maxLine)
	for {
		text, kept, err := r.next()
		if !kept {
			text = bytes.Clone(text)
		}
		select {
		case lines <- stdioLine{text, err}:
		case <-stop:
			return
		}
		if _, long := errors.AsType[*lineTooLong](err); err != nil && !long {
			return
		}
	}
}

func (s *stdioServer) loop(ctx context.Context, lines <-chan stdioLine) error {
	for {
		select {
		case <-ctx.Done():
			s.core.tellWaiting(s.grace)
			return nil
		case <-s.broken:
			return nil
		case line := <-lines:
			long, isLong := errors.AsType[*lineTooLong](line.err)
			switch {
			case isLong:
				id := requestID(long.Head, long.Tail)
				s.write(ctx.Done(), appendMessage(nil, rpcMessage{ID: id, Error: &rpcError{Code: codeInvalidRequest, Message: fmt.Sprintf("a message has at most %d bytes", s.maxLine)}}))
			case errors.Is(line.err, io.EOF):
				return nil
			case line.err != nil:
				return errorf("serve MCP: read stdin: %w", line.err)
			default:
				s.take(ctx, line.text)
			}
		}
	}
}

// take answers one line. A tools/call goes its own way, so that nothing waits for it; the rest is answered at once.
func (s *stdioServer) take(ctx context.Context, line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	m, err := decodeMessage(line)
	if err == nil {
		if err = checkJSON(line); err != nil {
			err = &rpcError{Code: codeParse, Message: err.Error()}
		}
	}
	fault, _ := errors.AsType[*rpcError](err)
	request := m.kind() == rpcRequest
	switch {
	case err != nil: // with a null id where it cannot be told whose it is
	case request && !s.opened && (m.Method == methodToolsList || m.Method == methodToolsCall):
		fault = &rpcError{Code: codeInvalidParams, Message: "initialize first: " + m.Method + " needs a session"}
	case request && m.Method == methodToolsCall:
		if fault = s.call(ctx, m); fault == nil {
			return
		}
	}
	if fault != nil {
		s.write(ctx.Done(), appendMessage(nil, rpcMessage{ID: m.ID, Error: fault}))
		return
	}
	if request && m.Method == methodInitialize {
		_, bad := negotiate(m.Params)
		s.opened = s.opened || bad == nil
	}
	s.write(ctx.Done(), s.core.reply(ctx, nil, s.session, m))
}

// call starts a tools/call. It is under way when call returns, so that a cancel on the next line finds it. The end of the run leaves it its grace.
func (s *stdioServer) call(ctx context.Context, m rpcMessage) *rpcError {
	ctx, call, fault := s.core.start(context.WithoutCancel(ctx), s.session, m.ID)
	if fault != nil {
		return fault
	}
	s.calls.Go(func() { // ends with the call, which has a deadline; finish waits for it
		s.write(s.over, s.core.answer(ctx, nil, m, call))
	})
	return nil
}

// write puts one message on its way, unless quit is closed before there is room; nothing where no answer is due.
//
//go:noinline for size: it is called in many places
func (s *stdioServer) write(quit <-chan struct{}, message []byte) {
	if len(message) == 0 {
		return
	}
	select {
	case s.queue <- append(message, '\n'):
	case <-quit: // what was done is in the run log
	case <-s.broken:
	}
}

// pump writes one message a write, until the queue is closed, out is broken, or nobody waits any more.
func (s *stdioServer) pump() {
	defer close(s.wrote)
	for {
		select {
		case <-s.over:
			return
		case line, more := <-s.queue:
			if !more {
				return
			}
			if _, err := s.out.Write(line); err != nil {
				s.gone = errorf("serve MCP: write stdout: %w", err)
				close(s.broken)
				return
			}
		}
	}
}

// finish lets calls under way come to their end, and what they give be written. Where nobody can be answered any more they are cancelled at once.
func (s *stdioServer) finish() error {
	ended := make(chan struct{})
	go func() { // ends with the calls
		s.calls.Wait()
		close(ended)
	}()
	if !s.within(ended, s.broken) {
		s.core.cancelAll()
		if !s.within(ended, nil) {
			close(s.over)
			return newError("stop serving MCP: calls did not end in time, or were not read")
		}
	}
	close(s.queue) // who wrote has ended
	if !s.within(s.wrote, nil) {
		close(s.over)
		return newError("stop serving MCP: the last answers were not read in time")
	}
	return s.gone
}

// within waits for done for as long as the grace, at most until early.
func (s *stdioServer) within(done, early <-chan struct{}) bool {
	grace := time.NewTimer(s.grace)
	defer grace.Stop()
	select {
	case <-done:
		return true
	case <-grace.C:
	case <-early:
	}
	return false
}
