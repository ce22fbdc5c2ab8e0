// This file is tai --serve-mcp: all native tools, chat and completions over HTTP for whoever has the key.
package main

import (
	"context"
	"slices"
	"strconv"
)

// serveMCP serves until ctx ends. --serve-mcp is KEY, env:NAME or file:PATH.
func serveMCP(ctx context.Context, c *invocation) error {
	key, name, err := serveKey("--serve-mcp", c.flag("serve-mcp"), c.lookupEnv, c.out.Dir, c.goos)
	if err != nil {
		return err
	}
	port, err := servePort(settingName(c.flags["mcp-port"], "--mcp-port", "TAI_MCP_PORT"), serveSetting(c.flags["mcp-port"], c.out.Getenv("TAI_MCP_PORT"), strconv.Itoa(mcpDefaultPort)))
	if err != nil {
		return err
	}
	bind := serveSetting(c.flags["mcp-bind"], c.out.Getenv("TAI_MCP_BIND"), mcpDefaultBind)
	if err := serveHost(settingName(c.flags["mcp-bind"], "--mcp-bind", "TAI_MCP_BIND"), bind); err != nil {
		return err
	}
	profile, err := c.profile(ctx)
	if err != nil {
		return err
	}
	chat := newServeChat(serveChatConfig{Agent: c.servedAgent, Model: c.useModel, Vault: c.vault, Log: func(line string) { c.sayLine(c.redact(line)) }, Timeout: mcpChatTimeout, Now: c.out.Now})
	box, err := c.servedToolbox(chat.tools())
	if err != nil {
		return err
	}
	config := serveConfig{Tools: box, Key: key, Bind: bind, Port: port, AllowedOrigins: c.flags["allowed-origin"], Profile: profile, Ended: chat.forget}
	c.warnKey(key, name == "")
	if name == "" {
		name = serveKeyName
	}
	return c.serveHTTP(ctx, config, name, "--mcp-port and --mcp-bind choose another address; tai --help shows the flags of --serve-mcp")
}

// servedToolbox is the registry that is served: the native tools and extra ones. The agent's own has only the first, so that a turn of chat
// begins none.
func (a *app) servedToolbox(extra []tool) (*toolbox, error) {
	box, err := a.toolbox()
	if err != nil {
		return nil, err
	}
	served, err := newToolbox(slices.Concat(box.natives(), extra), a.policy, a.audit, a.vault, a.redact, a.bridge)
	if err != nil {
		return nil, err
	}
	served.rates = a.rates
	a.mu.Lock()
	defer a.mu.Unlock()
	a.foretold = served
	return served, nil
}

// servedAgent is what the agent of a served conversation works with in one turn.
func (c *invocation) servedAgent(ctx context.Context, profile string, sink turnSink) (agentConfig, error) {
	config := agentConfig{Sink: sink, Origin: c.origin, Root: c.root, Profile: profile}
	err := c.equip(ctx, &config)
	return config, err
}
