// This file holds tai mcp config: the entry with which another app uses tai as a server, for either door. It writes no file and starts nothing.
package main

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
)

// clientEntryName is what tai is called in another app unless --name says otherwise.
const clientEntryName = "tai"

func clientAppIDs() (ids []string) {
	for _, a := range clientApps() {
		ids = append(ids, a.ID)
	}
	return ids
}

func clientConfigCommands() []command {
	return []command{{Path: "mcp config", Args: "[APP]", Short: "print the entry with which another app uses tai as a server", Example: "tai mcp config cursor --root .",
		Long: "APP is one of\n  " + strings.Join(clientAppIDs(), ", ") + "\nWithout it they are listed with their files. The entry starts tai mcp serve in\nthe workspace; with --http it reaches a tai --serve-mcp that runs already, and\nthe key stands in it as a reference wherever the app takes one.",
		Flags: []flagSpec{{Name: "http", Help: "for a tai --serve-mcp that runs already"}, {Name: "url", Value: "URL", Help: fmt.Sprintf("where it is reached (default: http://%s:%d%s); means --http", mcpDefaultBind, mcpDefaultPort, mcpPath)},
			{Name: "key", Value: "NAME", Help: "the variable that holds the key (default: " + serveKeyName + ")"}, {Name: "name", Value: "NAME", Help: "what tai is called there (default: " + clientEntryName + ")"},
			{Name: "mode", Value: "MODE", Help: "the permission mode that the started tai serves in"}}, Max: 1, Run: cmdClientConfig}}
}

// clientJSON is an app as tai mcp config shows it. Entry is the text to paste.
type clientJSON struct {
	App     string   `json:"app"`
	Title   string   `json:"title"`
	File    string   `json:"file"`
	Project string   `json:"project,omitempty"`
	Format  string   `json:"format"`
	Entry   string   `json:"entry,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

func cmdClientConfig(_ context.Context, c *invocation) error {
	apps := clientApps()
	if len(c.args) == 0 {
		list := []clientJSON{}
		for _, a := range apps {
			list = append(list, c.clientJSON(a))
		}
		if c.json {
			return writeJSON(c.stdout, map[string]any{"apps": list})
		}
		for _, a := range list {
			fmt.Fprintf(c.stdout, "%-15s %-15s %s\n", a.App, a.Title, visibleLine(a.File))
		}
		return nil
	}
	i := slices.IndexFunc(apps, func(a clientApp) bool {
		return strings.EqualFold(a.ID, c.args[0]) || strings.EqualFold(a.Title, c.args[0])
	})
	if i < 0 {
		return usageError("it is one of "+orList(clientAppIDs()), "no such app: %s", quoteClip(c.args[0]))
	}
	d, err := c.clientDoor()
	if err != nil {
		return err
	}
	doc := c.clientJSON(apps[i])
	if doc.Entry, err = apps[i].text(d); err != nil {
		return err
	}
	if apps[i].Notes != nil {
		doc.Notes = apps[i].Notes(d)
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"apps": []clientJSON{doc}})
	}
	if _, err := fmt.Fprint(c.stdout, visible(doc.Entry)); err != nil {
		return errorf("write the entry: %w", err)
	}
	where := doc.File
	if doc.Project != "" {
		where += ", or " + doc.Project + " in a project"
	}
	fmt.Fprintf(c.stderr, "for %s, in %s\n", doc.Title, visibleLine(where))
	for _, note := range doc.Notes {
		fmt.Fprintln(c.stderr, "note: "+visibleLine(note))
	}
	return nil
}

// clientJSON lays out an app; the home folder is written out where it is known.
func (c *invocation) clientJSON(a clientApp) clientJSON {
	return clientJSON{App: a.ID, Title: a.Title, File: clientPath(a.file(c.goos), c.goos, c.out.Getenv), Project: a.Project, Format: a.Format}
}

// clientDoor reads the flags into the door that the entry is for.
func (c *invocation) clientDoor() (d clientDoor, err error) {
	d = clientDoor{Name: clientEntryName, Key: serveKeyName, GOOS: c.goos}
	if c.given("name") {
		if d.Name = c.flag("name"); goodServerName(d.Name) != nil {
			return d, usageError("", "--name %s: %v", quoteClip(d.Name), goodServerName(d.Name))
		}
	}
	mode, err := c.doorMode()
	if err != nil {
		return d, err
	}
	if c.given("http") || c.given("url") {
		if mode != "" {
			return d, usageError("tai --serve-mcp takes --permission-mode where it is started", "--mode, like --permission-mode, is for the tai that the app starts")
		}
		return d, c.httpDoor(&d)
	}
	if c.given("key") {
		return d, usageError("", "--key is for --http; a tai that the app starts needs none")
	}
	// The program as it was started, not what a link leads to: an update changes what a link leads to.
	exe, err := os.Executable()
	if err != nil {
		return d, errorf("find tai's own program: %w", err)
	}
	d.Command, d.Args = exe, []string{"mcp", "serve", "--root", c.root}
	if c.given("home") || c.out.Getenv("TAI_HOME") != "" { // an app has not this shell's variables
		d.Args = append(d.Args, "--home", c.home)
	}
	if c.given("profile") {
		d.Args = append(d.Args, "--profile", c.flag("profile"))
	}
	if mode != "" {
		d.Args = append(d.Args, "--permission-mode", string(mode))
	}
	return d, nil
}

// doorMode is the mode that --mode or a flag of every command states, "" where none does.
func (c *invocation) doorMode() (approvalMode, error) {
	stated := c.given("permission-mode") || c.given("auto") || c.given("yolo")
	switch {
	case c.given("mode") && stated:
		return "", usageError("", "--mode and the flags of the permission mode exclude each other")
	case c.given("mode"):
		mode, err := parseMode(c.flag("mode"), true)
		if err != nil {
			return "", &cliError{Exit: exitUsage, Message: err.Error(), err: err}
		}
		return mode, nil
	case stated:
		return c.policy.mode(), nil
	}
	return "", nil
}

// httpDoor reads --url and --key.
func (c *invocation) httpDoor(d *clientDoor) error {
	d.URL = "http://" + netip.AddrPortFrom(netip.MustParseAddr(mcpDefaultBind), mcpDefaultPort).String() + mcpPath
	if c.given("url") {
		u, err := url.Parse(c.flag("url"))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			return usageError("--url http://HOST:PORT"+mcpPath, "--url is no http or https address")
		}
		d.URL = u.String()
	}
	if c.given("key") {
		d.Key = c.flag("key")
	}
	if letters := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"; d.Key == "" || !strings.Contains(letters, d.Key[:1]) || strings.Trim(d.Key, letters+"0123456789") != "" {
		return usageError("--key NAME, the variable, never the key itself", "--key is no name of a variable") // without it: it may be the key
	}
	return nil
}
