// This file holds what the commands that serve share: it reads keys and addresses from the command line and the environment, runs an HTTP server
// until it is told to end, and says loudly what is served to whom. It declares no command.
package main

import (
	"context"
	"encoding/json"
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

// serveHTTP listens until ctx ends. box is what the notice counts, name the variable in which a client may keep the key, "" where none is needed.
// hint names the flags that choose another address.
func (a *app) serveHTTP(ctx context.Context, config serveConfig, name, hint string) error {
	a.known.adopt(namedSecret{Name: name, Value: config.Key})
	config.Now, config.Version, config.Origin, config.Log = a.out.Now, version, a.origin, a.sayLine
	s, err := newMCPServer(config)
	if err != nil {
		return &cliError{Exit: exitUsage, Message: "serve MCP: " + err.Error(), err: err} // the key or an origin: another address would not help
	}
	if a.origin == originMCP {
		if err := a.beginGoverned("http"); err != nil {
			return err
		}
	}
	var told error
	err = s.serve(ctx, func(addr string) {
		told = a.serveNotice(a.sayLine, addr, name, config.Profile, len(config.Tools.natives()))
	})
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return &cliError{Exit: exitFailed, Message: err.Error(), Hint: hint, err: err}
	}
	if err = joinErrors(err, told); err == nil {
		a.sayLine("stopped serving")
	}
	return err
}

// beginGoverned begins the run log of a governed workspace: what cannot be logged is not served.
func (a *app) beginGoverned(transport string) error {
	a.audit.cfg.Data = json.RawMessage(fmt.Sprintf(`{"origin":%q,"permission_mode":%q,"transport":%q}`, originMCP, a.policy.mode(), transport))
	if err := a.audit.start(); err != nil {
		return &hintedError{errorf("nothing is served that cannot be logged: %w", err), "--root names a folder in which tai may write .tai/runs"}
	}
	return nil
}

// sayLine tells the person who runs the server.
//
//go:noinline for size: it is called in many places
func (a *app) sayLine(line string) { fmt.Fprintln(a.stderr, "tai: "+line) }

// warnKey tells what is weak about a key. given says that it stood on the command line.
func (a *app) warnKey(key secret, given bool) {
	if given {
		a.sayLine("warning: the key stands on the command line, where ps shows it to everyone on this machine; env:NAME or file:PATH hide it")
	}
	if len(key) < serveKeyShort {
		a.sayLine(fmt.Sprintf("warning: the key has %d characters; one of %d or more cannot be guessed", len(key), serveKeyShort))
	}
}

// servePort reads a port; flag names where it came from.
func servePort(flag, text string) (int, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, usageError("a number from 0 (any free port) to 65535", "%s %s is no port", flag, quoteClip(text))
	}
	return int(port), nil
}

// serveHost checks that what names a host names nothing more.
func serveHost(flag, host string) error {
	if bare := strings.Trim(host, "[]"); strings.ContainsAny(bare, "/ ") || strings.Contains(bare, ":") && net.ParseIP(bare) == nil && !strings.Contains(bare, "%") {
		return usageError("an address or a name alone, as 127.0.0.1; the port has a flag of its own", "%s %s is no host", flag, quoteClip(host))
	}
	return nil
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

// settingName tells where serveSetting found its setting.
func settingName(flag []string, name, env string) string {
	if len(flag) > 0 && flag[len(flag)-1] != "" {
		return name
	}
	return env
}

// serveKey finds the key that a flag names. name is the variable in which a client may keep it, "" if the key itself was given.
func serveKey(flag, arg string, env func(string) (string, bool), dir, goos string) (key secret, name string, err error) {
	hint := flag + " takes the key itself, env:NAME or file:PATH"
	kind, rest, _ := strings.Cut(arg, ":")
	switch kind {
	case "env":
		if rest == "" {
			return "", "", usageError(hint, "%s env: names no variable", flag)
		}
		value, _ := env(rest)
		if value == "" {
			return "", "", usageError(hint, "variable %s holds no key", quoteClip(rest))
		}
		key, name = secret(value), rest
	case "file":
		if rest == "" {
			return "", "", usageError(hint, "%s file: names no file", flag)
		}
		if key, err = readKeyFile(absolute(rest, dir), goos); err != nil {
			return "", "", err
		}
		name = serveKeyName
	default:
		if arg == "" {
			return "", "", usageError(hint, "the key is empty, so anybody could call")
		}
		key = secret(arg)
	}
	if err := checkServeKey(key); err != nil {
		return "", "", usageError(hint+"; a key is visible ASCII on one line", "%v", err)
	}
	return key, name, nil
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

// serveNotice says who may do what, where. addr is where the server listens; the key itself is never shown, name is the variable in which a
// client may keep it, "" where none is needed.
func (a *app) serveNotice(say func(string), addr, name, profile string, tools int) error {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return errorf("address of the server: %w", err)
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
	whoever := "whoever has the key"
	if name == "" {
		whoever = "every program on this machine"
	}
	a.sayServed(say, url, whoever, profile, tools)
	if name == "" {
		say("WARNING: no key is needed; --auth-token env:NAME asks for one")
	}
	if !local {
		say(fmt.Sprintf("WARNING: %s is not this machine alone: everyone who reaches it can try the key, and key and data cross the network unencrypted", at))
	}
	if a.json {
		return writeJSONLine(a.stdout, map[string]any{"url": url, "mode": a.policy.mode(), "profile": profile, "tools": tools})
	}
	if name == "" {
		say("an entry for a client:")
		fmt.Fprintf(a.stderr, `{"mcpServers": {"tai": {"type": "http", "url": %q}}}`+"\n", url)
	} else {
		say("an entry for a client, with the key in the client's variable " + visibleLine(name) + ":")
		fmt.Fprintf(a.stderr, `{"mcpServers": {"tai": {"type": "http", "url": %q, "headers": {"Authorization": %s}}}}`+"\n", url, appendJSONString(nil, "Bearer ${"+name+"}"))
	}
	more := ""
	if name != "" {
		more = "; tai mcp config APP --url " + url + " prints the entry as Cursor, VS Code and others want it"
	}
	say("Ctrl-C or SIGTERM ends it" + more)
	return nil
}

// sayServed says what is served where, and what those who are served may do.
func (a *app) sayServed(say func(string), where, whoever, profile string, tools int) {
	say(fmt.Sprintf("serving %d tools over MCP on %s (profile %s, workspace %s)", tools, where, visibleLine(profile), visibleLine(a.root)))
	switch mode := a.policy.mode(); mode {
	case modeDanger:
		say("WARNING: mode danger-full-access: " + whoever + " runs commands and changes files as you, and nobody is asked; --permission-mode read-only, prompt or allow narrows it")
	default:
		say(fmt.Sprintf("mode %s: nobody is asked, what would need a question is refused", mode))
	}
	if a.origin == originMCP {
		say("run " + a.audit.name + ", logged in " + visibleLine(a.audit.path()))
	}
}
