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

// stdioServer serves one client on a pair of streams. It is used once.
type stdioServer struct {
	core    *serveCore
	maxLine int           // bytes of one message
	grace   time.Duration // at the end, for calls under way; then they are cancelled and get it once more
	session string        // what tools and records see
	opened  bool          // initialize has been answered
	calls   sync.WaitGroup

	mu     sync.Mutex // out and gone
	out    io.Writer
	gone   error         // why nothing can be written any more
	broken chan struct{} // closed then
}

func newStdioServer(core *serveCore, out io.Writer) *stdioServer {
	return &stdioServer{
		core: core, out: out, maxLine: mcpHTTPMaxBody, grace: serveGrace, session: newServedSession(), broken: make(chan struct{}),
	}
}

// serve answers until in ends, ctx ends, or out can no longer be written. At the end calls under way get the grace, are then cancelled and get
// it once more to answer. Nil means that all came to their end and were answered.
func (s *stdioServer) serve(ctx context.Context, in io.Reader) error {
	lines, stop := make(chan stdioLine), make(chan struct{})
	go s.read(in, lines, stop) // ends with in, or at the next line once stop is closed; a read that waits lasts as long as the program
	defer close(stop)
	err := s.loop(ctx, lines)
	return errors.Join(err, s.finish(), s.fault())
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
			return nil
		case <-s.broken:
			return nil
		case line := <-lines:
			long, isLong := errors.AsType[*lineTooLong](line.err)
			switch {
			case isLong:
				id := requestID(long.Head, long.Tail)
				s.write(appendMessage(nil, rpcMessage{ID: id, Error: &rpcError{Code: codeInvalidRequest, Message: fmt.Sprintf("a message has at most %d bytes", s.maxLine)}}))
			case errors.Is(line.err, io.EOF):
				return nil
			case line.err != nil:
				return fmt.Errorf("serve MCP: read stdin: %w", line.err)
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
	if fault, isRPC := errors.AsType[*rpcError](err); isRPC {
		s.write(appendMessage(nil, rpcMessage{ID: m.ID, Error: fault})) // with a null id where it cannot be told whose it is
		return
	}
	ctx = context.WithoutCancel(ctx) // the end of the run leaves calls their grace
	switch request := m.kind() == rpcRequest; {
	case request && !s.opened && (m.Method == methodToolsList || m.Method == methodToolsCall):
		s.write(appendMessage(nil, rpcMessage{ID: m.ID, Error: &rpcError{Code: codeInvalidParams, Message: "initialize first: " + m.Method + " needs a session"}}))
	case request && m.Method == methodToolsCall:
		s.call(ctx, m)
	default:
		if request && m.Method == methodInitialize {
			_, fault := negotiate(m.Params)
			s.opened = s.opened || fault == nil
		}
		s.write(s.core.reply(ctx, nil, s.session, m))
	}
}

// call starts a tools/call. It is under way when call returns, so that a cancel on the next line finds it.
func (s *stdioServer) call(ctx context.Context, m rpcMessage) {
	ctx, call, fault := s.core.start(ctx, s.session, m.ID)
	if fault != nil {
		s.write(appendMessage(nil, rpcMessage{ID: m.ID, Error: fault}))
		return
	}
	s.calls.Go(func() { // ends with the call, which has a deadline; finish waits for it
		s.write(s.core.answer(ctx, nil, m, call))
	})
}

// write writes one message as one line with one write; nothing where no answer is due.
func (s *stdioServer) write(message []byte) {
	if len(message) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil {
		return // what was done is in the run log
	}
	if _, err := s.out.Write(append(message, '\n')); err != nil {
		s.gone = fmt.Errorf("serve MCP: write stdout: %w", err)
		close(s.broken)
	}
}

func (s *stdioServer) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// finish lets calls under way come to their end. Where nobody can be answered any more they are cancelled at once.
func (s *stdioServer) finish() error {
	ended := make(chan struct{})
	go func() { // ends with the calls
		s.calls.Wait()
		close(ended)
	}()
	grace := time.NewTimer(s.grace)
	defer grace.Stop()
	select {
	case <-ended:
		return nil
	case <-grace.C:
	case <-s.broken:
	}
	s.core.cancelAll()
	grace.Reset(s.grace)
	select {
	case <-ended:
		return nil
	case <-grace.C:
		return errors.New("stop serving MCP: calls did not end in time")
	}
}
