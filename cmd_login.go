// This file holds tai mcp login and logout, and how a login meets the person: where to go, in their browser or on another machine, and the address
// that they paste back. What is asked of whom, and what is kept, is the bridge's.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

func loginCommands() []command {
	return []command{
		{Path: "mcp login", Args: "SERVER [-]", Short: "log in at a server with the browser, keep its tokens sealed, enable it",
			Long: `tai finds the server's authorization server, asks, and opens the browser there;
the address is shown as well, for a browser on another machine. What the browser
comes back with goes to a port of this machine that is open for this login only.
If its last page does not load, as from another machine, paste that page's
address at the prompt; a - reads it from standard input. BROWSER names another
browser. Without a terminal --yes answers the question.`,
			Example: "tai mcp login linear", Flags: []flagSpec{{Name: "no-browser", Help: "show the address, open no browser"}}, Min: 1, Max: 2, Store: storeThere, Redacts: true, Run: cmdMCPLogin},
		{Path: "mcp logout", Args: "SERVER", Short: "forget a server's tokens; the server stays", Example: "tai mcp logout linear --profile work",
			Flags: []flagSpec{{Name: "all-profiles", Help: "in every profile"}}, Min: 1, Max: 1, Store: storeThere, Signs: true, Run: cmdMCPLogout},
	}
}

// cmdMCPLogin logs in. Whatever ends it once the browser was asked leaves a server that still wants a login.
func cmdMCPLogin(ctx context.Context, c *invocation) error {
	name := c.args[0]
	d := c.newLoginDesk(!c.given("no-browser"))
	if len(c.args) == 2 {
		if c.args[1] != "-" || c.inTerminal {
			return usageError("a - reads the pasted address from standard input, which a terminal asks for anyway", "%s cannot be used here", quoteClip(c.args[1]))
		}
		d.typed = c.pipedLine
	}
	defer d.end()
	r, err := c.bridge.login(ctx, name, loginOptions{Profile: c.profileWord(), Yes: "--yes", Show: d.show, Pasted: d.paster(), Waiting: c.waiting(name, "")})
	if err != nil {
		ce := failure(err)
		switch {
		case errors.Is(err, errNoLogin):
			ce.Hint = "tai mcp enable " + quoteWord(name) + " offers its tools"
		case d.shown && ce.Exit == exitFailed:
			ce.Exit = exitLogin
		}
		if d.shown && ce.Hint == "" {
			ce.Hint = loginWords(name, c.profileWord()) + " starts anew"
		}
		if _, refused := errors.AsType[*refusedError](err); refused {
			ce.Message = "log in at " + quoteClip(name) + ": " + ce.Message
		}
		return ce
	}
	if c.json {
		return writeJSON(c.stdout, addedJSONOf(r))
	}
	fmt.Fprintf(c.stdout, "%s: logged in\n", visibleLine(r.Name))
	c.printAdded(r)
	c.say(r.Warnings, "warning")
	return nil
}

// pipedLine reads one line of standard input and nothing of what follows it.
func (c *invocation) pipedLine(ctx context.Context, _ string) (string, error) {
	var line []byte
	got := make(chan error, 1)
	go func() { // ends with the line; one that never comes lasts as long as the program, which an interrupt must still end
		b := make([]byte, 1)
		for len(line) < pastedMax {
			n, err := c.stdin.Read(b)
			switch {
			case n == 1 && b[0] == '\n', err == io.EOF && len(line) > 0:
				err = nil
				fallthrough
			case err != nil:
				got <- err
				return
			}
			line = append(line, b[:n]...)
		}
		got <- errorf("a line of standard input has more than %d bytes", pastedMax)
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case err := <-got:
		return string(line), err
	}
}

const pastedMax = 16 << 10 // bytes of a pasted address on standard input; a terminal's are bounded by hiddenMax

// cmdMCPLogout forgets tokens: a person's own word.
func cmdMCPLogout(ctx context.Context, c *invocation) error {
	name := c.args[0]
	profile, err := c.profile(ctx)
	if err != nil {
		return err
	}
	profiles, out := []string{profile}, []loggedOutJSON{}
	if c.given("all-profiles") {
		v, err := c.vault(ctx)
		if err != nil {
			return err
		}
		list, err := v.profiles(ctx)
		if err != nil {
			return err
		}
		profiles = profiles[:0]
		for _, p := range list {
			profiles = append(profiles, p.Name)
		}
	}
	for _, p := range profiles {
		r, err := c.bridge.logout(ctx, name, p)
		if err != nil {
			return err
		}
		if r.Had {
			out = append(out, loggedOutJSON{p, r.Revoked, r.Note})
		}
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"name": name, "profiles": out})
	}
	if len(out) == 0 {
		fmt.Fprintf(c.stdout, "%s: there was no login\n", visibleLine(name))
	}
	for _, p := range out {
		fmt.Fprintf(c.stdout, "%s: logged out of profile %s\n", visibleLine(name), visibleLine(p.Profile))
		if p.Note != "" {
			c.say([]string{p.Note}, "note")
		}
	}
	return nil
}

// loggedOutJSON is one profile that was logged out. Revoked: the authorization server knows of it.
type loggedOutJSON struct {
	Profile string `json:"profile"`
	Revoked bool   `json:"revoked"`
	Note    string `json:"note,omitempty"`
}

// loginDesk is where a person is during one login.
type loginDesk struct {
	out     io.Writer
	turn    func(context.Context) (context.Context, func(), error)   // at the queue for the person; nil where none is
	typed   func(ctx context.Context, prompt string) (string, error) // nil: nobody can paste
	open    func(ctx context.Context, address string) error          // opens the browser; nil: none says why not
	none    string                                                   //
	shown   bool                                                     // the person was told where to go
	asked   int                                                      // how often a line was asked for
	opening sync.WaitGroup
	stop    context.CancelFunc
	done    func()
}

// newLoginDesk is for the command and for the tool.
func (a *app) newLoginDesk(browser bool) *loginDesk {
	d := &loginDesk{out: a.stderr, none: "as asked for"}
	if a.desk != nil {
		d.turn = a.desk.turn
		d.typed = func(ctx context.Context, prompt string) (string, error) {
			return readHidden(ctx, a.console.in, a.console.out, prompt)
		}
	}
	if browser {
		var commands [][]string
		if commands, d.none = browserCommands(a.goos, a.out.Getenv); len(commands) > 0 {
			d.open = func(ctx context.Context, address string) error {
				return openBrowser(ctx, commands, a.out.Environ, address)
			}
		}
	}
	return d
}

// loginFace is what mcp_login meets the person with, nil where none sits.
func (a *app) loginFace() func() loginFace {
	if a.desk == nil {
		return nil
	}
	return func() loginFace { return a.newLoginDesk(true) }
}

// show tells where to go, and has the browser go there. It is called once.
func (d *loginDesk) show(ctx context.Context, v loginShown) error {
	address, err := browserAddress(v.Address)
	if err != nil {
		return errorf("the address to log in at is not opened: %w", err)
	}
	if d.turn != nil {
		if ctx, d.done, err = d.turn(ctx); err != nil {
			return errorf("show where to log in: %w", err)
		}
	}
	d.shown = true
	printWrapped(d.out, "tai: log in at "+visibleLine(v.Issuer)+" for the server "+quoteClip(v.Server)+":")
	fmt.Fprintf(d.out, "\n  %s\n\n", address) // one line, whatever the screen: it is copied
	var b strings.Builder
	if v.Scope != "" {
		fmt.Fprintf(&b, "tai: it is asked for the scopes %s\n", visibleLine(v.Scope))
	}
	if len(v.Elsewhere) > 0 {
		fmt.Fprintf(&b, "tai: tokens or registrations go to %s, which is another origin\n", visibleLine(strings.Join(v.Elsewhere, ", ")))
	}
	if d.open != nil {
		b.WriteString("tai: your browser is being opened\n")
	} else {
		fmt.Fprintf(&b, "tai: no browser is opened (%s); open the address in any browser\n", d.none)
	}
	fmt.Fprintf(&b, "tai: waiting up to %.0f minutes for its answer; Ctrl-C stops", mcpOauthTimeout.Minutes())
	printWrapped(d.out, b.String())
	if d.open != nil {
		ctx, d.stop = context.WithCancel(ctx)
		d.opening.Go(func() { // ends with the login
			if err := d.open(ctx, address); err != nil {
				printWrapped(d.out, fmt.Sprintf("\ntai: no browser could be opened (%v); open the address above yourself", err))
			}
		})
	}
	return nil
}

// paster gives what waits for a pasted address, nil where nobody can paste.
func (d *loginDesk) paster() func(context.Context) (string, error) {
	if d.typed == nil {
		return nil
	}
	return d.pasted
}

// pasted waits for an address that may be an answer. That it is called again says that the last one did not count.
func (d *loginDesk) pasted(ctx context.Context) (string, error) {
	if d.asked++; d.asked > 1 {
		printWrapped(d.out, "tai: that was the answer to another login, or not all of it; it was not used")
	}
	for {
		line, err := d.typed(ctx, "tai: if the last page does not load, paste its address here (hidden): ")
		if err != nil {
			return "", err
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		if _, err = pastedAnswer(line); err == nil {
			return line, nil
		}
		printWrapped(d.out, "tai: "+err.Error())
	}
}

// end gives the person's place free, and waits for what was begun; a browser stays open.
func (d *loginDesk) end() {
	if d.stop != nil {
		d.stop()
	}
	d.opening.Wait()
	if d.done != nil {
		d.done()
	}
}
