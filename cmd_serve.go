// This file is tai --serve-mcp: it reads the key, address and origins from the command line and the environment, says loudly what is served
// to whom, and runs the server until it is told to end.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

const (
	serveKeyShort   = 16      // bytes below which a key is warned about
	serveKeyFileMax = 4 << 10 // bytes of a key file
	serveKeyName    = "TAI_MCP_KEY"
)

// serveMCP serves until ctx ends. keyArg is KEY, env:NAME or file:PATH.
func serveMCP(ctx context.Context, a *app, keyArg string, flags map[string][]string) error {
	say := func(line string) { fmt.Fprintln(a.stderr, "tai: "+line) }
	key, name, err := serveKey(keyArg, a.lookupEnv, a.out.Dir, a.goos)
	if err != nil {
		return err
	}
	bind := serveSetting(flags["mcp-bind"], a.out.Getenv("TAI_MCP_BIND"), mcpDefaultBind)
	portText := serveSetting(flags["mcp-port"], a.out.Getenv("TAI_MCP_PORT"), strconv.Itoa(mcpDefaultPort))
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return usageError("--mcp-port and TAI_MCP_PORT take a number from 0 (any free port) to 65535", "port %s is no port", quoteClip(portText))
	}
	box, err := a.toolbox()
	if err != nil {
		return err
	}
	profile, err := a.profile(ctx)
	if err != nil {
		return err
	}
	s, err := newMCPServer(serveConfig{
		Tools: box, Key: key, Bind: bind, Port: int(port), AllowedOrigins: flags["allowed-origin"], Now: a.out.Now, Version: version, Origin: "http", Profile: profile, Log: say,
	})
	if err != nil {
		return &cliError{Exit: exitUsage, Message: "serve MCP: " + err.Error(), Hint: "tai --help shows the flags of --serve-mcp", err: err}
	}
	if name == "" {
		name = serveKeyName
		say("warning: the key stands on the command line, where ps shows it to everyone on this machine; env:NAME or file:PATH hide it")
	}
	if len(key) < serveKeyShort {
		say(fmt.Sprintf("warning: the key has %d characters; one of %d or more cannot be guessed", len(key), serveKeyShort))
	}
	var told error
	err = s.serve(ctx, func(addr string) { told = a.serveNotice(say, addr, name, profile, len(box.natives())) })
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return &cliError{Exit: exitFailed, Message: err.Error(), Hint: "--mcp-port and --mcp-bind choose another address", err: err}
	}
	if err = errors.Join(err, told); err == nil {
		say("stopped serving")
	}
	return err
}

// serveSetting is the flag, else the variable, else the default; an empty one counts as not given.
func serveSetting(flag []string, env, def string) string {
	if len(flag) > 0 && flag[len(flag)-1] != "" {
		return flag[len(flag)-1]
	}
	if env != "" {
		return env
	}
	return def
}

// serveKey finds the key. name is the variable in which a client may keep it, "" if the key itself was given.
func serveKey(arg string, env func(string) (string, bool), dir, goos string) (key secret, name string, err error) {
	const hint = "--serve-mcp takes KEY, env:NAME or file:PATH"
	kind, rest, _ := strings.Cut(arg, ":")
	switch kind {
	case "env":
		value, _ := env(rest)
		if value == "" {
			return "", "", usageError(hint, "variable %s holds no key", quoteClip(rest))
		}
		return secret(value), rest, nil
	case "file":
		value, err := readKeyFile(absolute(rest, dir), goos)
		if err != nil {
			return "", "", err
		}
		return value, serveKeyName, nil
	}
	if arg == "" {
		return "", "", usageError(hint, "the key is empty, so anybody could call")
	}
	return secret(arg), "", nil
}

// readKeyFile reads a key that only its owner can read. A line end after it is no part of it.
func readKeyFile(path, goos string) (secret, error) {
	b, err := readPrivateFile(path, serveKeyFileMax, goos)
	if err != nil {
		return "", privateFault("key file", path, "file:PATH names a file that holds the key", err)
	}
	key := strings.TrimRight(string(b), "\r\n")
	if key == "" {
		return "", usageError("the file holds the key on one line", "key file %s is empty", quoteClip(path))
	}
	return secret(key), nil
}

// serveNotice says who may do what, where. addr is where the server listens; the key itself is never shown.
func (a *app) serveNotice(say func(string), addr, name, profile string, tools int) error {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return fmt.Errorf("address of the server: %w", err)
	}
	host := at.Addr().Unmap()
	local := host.IsLoopback()
	switch {
	case host.IsUnspecified() && host.Is4():
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case host.IsUnspecified():
		host = netip.IPv6Loopback()
	}
	url := "http://" + netip.AddrPortFrom(host, at.Port()).String() + mcpPath
	mode := a.policy.mode()
	say(fmt.Sprintf("serving %d tools over MCP on %s (profile %s, workspace %s)", tools, url, visibleLine(profile), visibleLine(a.root)))
	if mode == modeDanger {
		say("WARNING: mode danger-full-access: whoever has the key runs commands and changes files as you, and nobody is asked; --permission-mode read-only, prompt or allow narrows it")
	} else {
		say(fmt.Sprintf("mode %s: nobody is asked, what would need a question is refused", mode))
	}
	if !local {
		say(fmt.Sprintf("WARNING: %s is not this machine alone: everyone who reaches it can try the key, and key and data cross the network unencrypted", at))
	}
	if a.json {
		return writeJSONLine(a.stdout, map[string]any{"url": url, "mode": mode, "profile": profile, "tools": tools})
	}
	say("an entry for a client, with the key in the client's variable " + visibleLine(name) + ":")
	entry := fmt.Sprintf(`{"mcpServers": {"tai": {"type": "http", "url": %q, "headers": {"Authorization": %s}}}}`, url, appendJSONString(nil, "Bearer ${"+name+"}"))
	fmt.Fprintln(a.stderr, entry)
	say("Ctrl-C or SIGTERM ends it")
	return nil
}
