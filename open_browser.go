// This file opens an address in the person's browser: which commands may do that on each system, and that no address can be more than one. What
// the address is for it does not know.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// browserTime is how long a command that opens a browser may take to fail. One that still runs then is the browser.
const browserTime = 10 * time.Second

// browserCommands gives the commands that may open an address, the likeliest first. Without any, none says why. BROWSER is a list, separated as
// PATH is; the address takes the place of %s, or comes last.
func browserCommands(goos string, getenv func(string) string) (commands [][]string, none string) {
	if list := getenv("BROWSER"); list != "" {
		for _, line := range filepath.SplitList(list) {
			if words, err := splitWords(line); err == nil && len(words) > 0 {
				commands = append(commands, words)
			}
		}
		return commands, "BROWSER names no command"
	}
	remote := getenv("SSH_CONNECTION") != "" || getenv("SSH_TTY") != ""
	switch {
	case goos == "windows" && !remote:
		return [][]string{{"rundll32", "url.dll,FileProtocolHandler"}}, ""
	case goos == "darwin" && !remote:
		return [][]string{{"open"}}, ""
	case goos == "windows", goos == "darwin":
		return nil, "this is a session from another machine"
	case getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "" && getenv("WSL_DISTRO_NAME") == "":
		return nil, "no screen is here that a browser could open on"
	}
	return [][]string{{"xdg-open"}, {"sensible-browser"}, {"x-www-browser"}, {"wslview"}}, ""
}

// browserAddress checks an address and gives it in a form that is one word to every shell (OAU-01, OAU-02, W69): only https, or http on this
// machine, and no byte that an address needs not hold as it stands.
func browserAddress(s string) (string, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "", newError("it is no address")
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopbackHost(u.Hostname())):
		return "", newError("only https is opened, or http on this machine")
	case u.Host == "" || u.Opaque != "" || u.User != nil:
		return "", newError("it names no host, or a user beside it")
	}
	var b strings.Builder
	for _, c := range []byte(u.String()) {
		if c > ' ' && c < 0x7f && !strings.ContainsRune("\"'`$()<>\\^{|}", rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String(), nil
}

// openBrowser opens an address of browserAddress with the first command that can. It waits for a command to fail, but not for one that still runs
// when ctx ends or browserTime is over: that one is the browser, which is the person's own and stays.
func openBrowser(ctx context.Context, commands [][]string, environ []string, address string) error {
	var faults []string
	for _, words := range commands {
		err := runBrowser(ctx, words, environ, address)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		faults = append(faults, fmt.Sprintf("%s: %v", visibleLine(filepath.Base(words[0])), err))
	}
	return newError(strings.Join(faults, "; "))
}

func runBrowser(ctx context.Context, words, environ []string, address string) error {
	file, err := findCommand(words, environ, "")
	if err != nil {
		return newError("not found")
	}
	argv, filled := append([]string(nil), words...), false
	for i, w := range argv[1:] {
		argv[i+1], filled = strings.ReplaceAll(w, "%s", address), filled || strings.Contains(w, "%s")
	}
	if !filled {
		argv = append(argv, address)
	}
	cmd := exec.Cmd{Path: file, Args: argv, Env: environ} // input and output are the null device
	ownSession(&cmd)
	if err := cmd.Start(); err != nil {
		return bareError(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the command; a browser may outlive tai
	timer := time.NewTimer(browserTime)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}
