// This file is tai mcp serve: the native tools of one workspace, held by a permission mode, presets and exact calls approved beforehand, over
// stdio or HTTP, with a run log of its own in the workspace.
package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

const mcpServePort = 7330 // of tai mcp serve --http

func mcpServeCommands() []command {
	return []command{{
		Path: "mcp serve", Short: "serve this workspace's tools under a permission mode", Example: "tai mcp serve --root . --permission-mode prompt",
		Long: "On stdio, which is the default, a client starts it; with --http it listens on\nthis machine. Nobody is asked: what would need a question is refused, unless a\npreset (tai approval grant) or --approve-scoped allows it. --permission-mode is\nread-only, prompt (the default), allow or danger-full-access. The run is logged\nin .tai/runs of the workspace. tai mcp config APP prints an entry for a client.",
		Flags: []flagSpec{
			{Name: "http", Help: "serve over HTTP instead of stdio"},
			{Name: "port", Value: "N", Help: fmt.Sprintf("port of --http, 0 for a free one (default %d)", mcpServePort)},
			{Name: "host", Value: "ADDR", Help: "address of --http (default " + mcpDefaultBind + "); another one than this machine's own needs a token"},
			{Name: "auth-token", Value: "T", Help: "key that clients of --http must send; T, env:NAME or file:PATH"},
			{Name: "allowed-origin", Value: "ORIGIN", Help: "a web origin that may call --http", Many: true},
			{Name: "approve-scoped", Value: "TOOL:SHA256", Help: "approve one exact call beforehand, by its digest", Many: true},
		},
		Store: storeWrite, Origin: originMCP, Redacts: true, Run: cmdMCPServe,
	}}
}

func cmdMCPServe(ctx context.Context, c *invocation) error {
	if c.origin != originMCP {
		return usageError("tai mcp serve in a shell, or as the command of a client's entry", "it serves from its own start on, not from the prompt")
	}
	if !c.given("http") {
		for _, name := range []string{"port", "host", "auth-token", "allowed-origin", "json"} {
			if c.given(name) {
				return usageError("add --http, or leave it out", "--%s is for --http; stdin and stdout carry messages alone", name)
			}
		}
	}
	profile, err := c.profile(ctx)
	if err != nil {
		return err
	}
	box, err := c.toolbox()
	if err != nil {
		return err
	}
	for _, scoped := range c.flags["approve-scoped"] {
		if tool := scoped[:strings.LastIndexByte(scoped, ':')]; !box.native(tool) && !strings.HasPrefix(tool, bridgedSubjectPrefix) {
			c.sayLine("warning: --approve-scoped names no tool that is served: " + quoteClip(tool))
		}
	}
	config := serveConfig{Tools: box, Profile: profile, AsJSON: true}
	if c.given("http") {
		return c.serveWorkspaceHTTP(ctx, config)
	}
	if err := c.beginGoverned("stdio"); err != nil {
		return err
	}
	core := newServeCore(box, originMCP, profile, version, c.sayLine)
	core.asJSON = true
	c.sayServed(c.sayLine, "stdin and stdout", "whoever starts it", profile, len(box.natives()))
	if c.inTerminal {
		c.sayLine("a client starts this and sends messages here, one a line; tai mcp config APP prints its entry; Ctrl-D or Ctrl-C ends it")
	}
	return newStdioServer(core, c.out.Stdout).serve(ctx, c.stdin)
}

// serveWorkspaceHTTP serves over HTTP. Without a token only this machine can be served.
func (c *invocation) serveWorkspaceHTTP(ctx context.Context, config serveConfig) error {
	const hint = "--port and --host choose another address; a host other than this machine needs --auth-token"
	name := ""
	if config.Open = !c.given("auth-token"); !config.Open {
		var err error
		if config.Key, name, err = serveKey("--auth-token", c.flag("auth-token"), c.lookupEnv, c.out.Dir, c.goos); err != nil {
			return err
		}
		c.warnKey(config.Key, name == "")
		if name == "" {
			name = serveKeyName
		}
	}
	var err error
	if config.Port, err = servePort("--port", serveSetting(c.flags["port"], "", strconv.Itoa(mcpServePort))); err != nil {
		return err
	}
	config.Bind, config.AllowedOrigins = serveSetting(c.flags["host"], "", mcpDefaultBind), c.flags["allowed-origin"]
	if err := serveHost("--host", config.Bind); err != nil {
		return err
	}
	if config.Open && !isLoopbackHost(strings.Trim(config.Bind, "[]")) {
		return usageError("--auth-token env:NAME, or a host of this machine alone", "without a token %s is not served: everyone who reaches it could call", quoteClip(config.Bind))
	}
	return c.serveHTTP(ctx, config, name, hint)
}
