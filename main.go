// This file is the top of the program: it reads the command line, wires one run and turns its outcome into an exit code. It
// holds no logic of its own.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	log.SetOutput(io.Discard) // net/http logs raw bytes of peers there
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tai: the current folder cannot be read: "+err.Error())
		os.Exit(exitFailed)
	}
	// Terminate and interrupt (in execute) end the run through its contexts, so that servers, log and vault are closed in order.
	// So does SIGHUP, a terminal that is closed, unless nohup has it ignored. A second one ends tai at once, should that hang; what guards the
	// servers then ends them. SIGTSTP is left alone: once a Go program asks for it, it can no longer be stopped by it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // read by nobody: a reader of stdout that went away is a failed write, not the end
	ends := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], outside{
		Getenv: os.Getenv, Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, GOOS: runtime.GOOS, Now: time.Now, Dir: dir,
	})
	stop()
	os.Exit(code)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, words []string, out outside) int {
	own := words // what follows -- belongs to another program
	if i := slices.Index(words, "--"); i >= 0 {
		own = words[:i]
	}
	asJSON := slices.Contains(own, "--json")
	inv, err := resolve(words, commands(), promptCommand())
	if err == nil && inv.given("help") {
		err = printHelp(out.Stdout, commands(), promptCommand(), inv.cmd.Path)
		inv = nil
	}
	if err == nil && inv != nil && inv.cmd.Path == "help" && !asJSON {
		err = printHelp(out.Stdout, commands(), promptCommand(), strings.Join(inv.args, " "))
		inv = nil
	}
	if err == nil && inv != nil {
		err = execute(ctx, inv, out)
	}
	if err == nil {
		return exitDone
	}
	if q, ok := errors.AsType[errQuiet](err); ok {
		return q.Exit
	}
	if errors.Is(err, errOutputGone) || inv == nil && errors.Is(err, syscall.EPIPE) { // nobody is there to be told
		return exitFailed
	}
	known := knownSecrets{environ: out.Environ} // a run that never began has masked nothing
	return tell(maskFailure(err, known.quick), asJSON, out.Stdout, out.Stderr)
}

// execute opens the run, runs the command and closes everything, whatever came of it.
func execute(ctx context.Context, inv *invocation, out outside) error {
	if inv.given("serve-mcp") {
		inv.cmd.Origin = originHTTP
	}
	if inv.cmd.Alone || inv.given("version") {
		inv.app, inv.json, inv.life = &app{out: out, stdout: &checkedWriter{w: out.Stdout}, stderr: out.Stderr}, inv.given("json"), ctx
		return inv.stdout.outcome(inv.cmd.Run(ctx, inv))
	}
	a, err := openApp(out, inv.flags, inv.cmd.Store, cmp.Or(inv.cmd.Origin, "cli"))
	if err != nil {
		return err
	}
	inv.app, inv.json, inv.life = a, a.json, ctx
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // the next interrupt is the system's own
	if a.profileFlag != "" {
		_, err = a.profile(ctx)
	}
	if err == nil && inv.cmd.Redacts {
		err = a.unlock(ctx)
	} else if err == nil && inv.cmd.Signs {
		err = a.unlockLog(ctx)
	}
	a.serving.Store(true)
	if err == nil {
		err = inv.cmd.Run(ctx, inv)
	}
	err = maskFailure(a.stdout.outcome(err), a.known.quick)
	if closeErr := a.close(); closeErr != nil && err == nil {
		return maskFailure(closeErr, a.known.quick)
	} else if closeErr != nil {
		fmt.Fprintln(a.stderr, "tai: "+visible(closeErr.Error()))
	}
	if ce, told := errors.AsType[*cliError](err); ctx.Err() != nil && err != nil && !(told && ce.Exit == exitInterrupted) {
		return &cliError{Exit: exitInterrupted, Message: "interrupted", err: err}
	}
	return err
}

// promptCommand is tai without a command: the prompt, one turn, or the server.
func promptCommand() command {
	return command{Args: `["PROMPT"]`, Short: "the prompt, or one turn", Example: `tai "what changed in this repository today?"`, Max: 1, Store: storeWrite, Origin: "repl", Redacts: true, Flags: append([]flagSpec{
		{Name: "p", Help: "one turn with what stands on standard input, then exit"},
		{Name: "serve-mcp", Value: "KEY", Help: "serve tai's tools over HTTP; KEY, env:NAME or file:PATH"},
		{Name: "mcp-port", Value: "N", Help: "port of --serve-mcp (default TAI_MCP_PORT, else 8765)"},
		{Name: "mcp-bind", Value: "ADDR", Help: "address of --serve-mcp (default TAI_MCP_BIND, else 127.0.0.1)"},
		{Name: "allowed-origin", Value: "ORIGIN", Help: "a web origin that may call --serve-mcp", Many: true},
		{Name: "version", Help: "tai's version"},
	}, turnFlags()...), Run: cmdPrompt}
}

func cmdPrompt(ctx context.Context, c *invocation) error {
	switch {
	case c.given("version"):
		return cmdVersion(ctx, c)
	case c.given("serve-mcp"):
		for _, f := range append(turnFlags(), flagSpec{Name: "p"}) {
			if c.given(f.Name) {
				return usageError("start one or the other", "%s is for the prompt, and --serve-mcp serves", f.dashed())
			}
		}
		if len(c.args)+len(c.rest) > 0 {
			return usageError("start one or the other; in the served tools chat is a turn", "a prompt stands beside --serve-mcp")
		}
		return serveMCP(ctx, c)
	}
	for _, name := range []string{"mcp-port", "mcp-bind", "allowed-origin"} {
		if c.given(name) {
			return usageError("tai --serve-mcp KEY --"+name+" …; tai mcp serve --http has flags of its own", "--%s is for --serve-mcp", name)
		}
	}
	return runPrompt(ctx, c)
}
