package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestOAU01BrowserAddress(t *testing.T) { // W69
	t.Parallel()
	for _, tc := range []struct{ name, address, want, fault string }{
		{"https", "https://as.test/a?x=1&y=2%2F#f", "https://as.test/a?x=1&y=2%2F#f", ""},
		{"http here", "http://127.0.0.1:4711/a", "http://127.0.0.1:4711/a", ""},
		{"http here by name", "http://localhost:1/a", "http://localhost:1/a", ""},
		{"http elsewhere", "http://as.test/a", "", "only https"},
		{"a script", "javascript:alert(1)", "", "only https"},
		{"a file", "file:///bin/sh", "", "only https"},
		{"data", "data:text/html,x", "", "only https"},
		{"a login elsewhere", "ssh://as.test/", "", "only https"},
		{"no scheme", "as.test/a", "", "only https"},
		{"no host", "https:///a", "", "no host"},
		{"a user", "https://as.test@evil.test/a", "", "a user"},
		{"a control character", "https://as.test/a?x=\n-a", "", "no address"},
		{"words of a shell, OAU-02", "https://as.test/a?x=$(touch${IFS}p)&y=`id`|^\"'<>\\é z", "https://as.test/a?x=%24%28touch%24%7BIFS%7Dp%29&y=%60id%60%7C%5E%22%27%3C%3E%5C%C3%A9%20z", ""},
	} {
		got, err := browserAddress(tc.address)
		fault := ""
		if err != nil {
			fault = err.Error()
		}
		if got != tc.want || (fault == "") != (tc.fault == "") || !strings.Contains(fault, tc.fault) {
			t.Errorf("%s: %q, %q, want %q, %q", tc.name, got, fault, tc.want, tc.fault)
		}
	}
}

func TestBrowserCommands(t *testing.T) {
	t.Parallel()
	list := string(filepath.ListSeparator)
	for _, tc := range []struct {
		name, goos string
		env        map[string]string
		want       [][]string
		none       bool
	}{
		{"Linux with X", "linux", map[string]string{"DISPLAY": ":0"}, [][]string{{"xdg-open"}, {"sensible-browser"}, {"x-www-browser"}, {"wslview"}}, false},
		{"Linux with Wayland", "linux", map[string]string{"WAYLAND_DISPLAY": "w"}, [][]string{{"xdg-open"}, {"sensible-browser"}, {"x-www-browser"}, {"wslview"}}, false},
		{"Linux without a screen", "linux", nil, nil, true},
		{"Linux, from afar", "linux", map[string]string{"SSH_TTY": "/dev/pts/1", "SSH_CONNECTION": "x"}, nil, true},
		{"Linux, from afar with its screen", "linux", map[string]string{"SSH_TTY": "/dev/pts/1", "DISPLAY": "localhost:10"}, [][]string{{"xdg-open"}, {"sensible-browser"}, {"x-www-browser"}, {"wslview"}}, false},
		{"macOS", "darwin", nil, [][]string{{"open"}}, false},
		{"macOS, from afar", "darwin", map[string]string{"SSH_CONNECTION": "x"}, nil, true},
		{"Windows", "windows", nil, [][]string{{"rundll32", "url.dll,FileProtocolHandler"}}, false},
		{"named", "linux", map[string]string{"BROWSER": "firefox -P 'my own' %s" + list + list + "w3m", "SSH_TTY": "x"}, [][]string{{"firefox", "-P", "my own", "%s"}, {"w3m"}}, false},
		{"named badly", "linux", map[string]string{"BROWSER": "'x", "DISPLAY": ":0"}, nil, true},
	} {
		got, none := browserCommands(tc.goos, func(name string) string { return tc.env[name] })
		if !slices.EqualFunc(got, tc.want, slices.Equal[[]string]) || tc.none != (len(got) == 0 && none != "") {
			t.Errorf("%s: %q, %q, want %q", tc.name, got, none, tc.want)
		}
	}
}

func TestOAU02BrowserArguments(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the browser here is a shell script")
	}
	dir := t.TempDir()
	script := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
		return file
	}
	said := filepath.Join(dir, "said")
	tell := script("tell", `printf '%s\n' "$@" > "$SAID.tmp"; echo noise; mv "$SAID.tmp" "$SAID"`)
	fails, stays := script("fails", "exit 3"), script("stays", `: > "$SAID.up"; while [ ! -e "$SAID.end" ]; do sleep 0.01; done; : > "$SAID.gone"`)
	environ := []string{"PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH"), "SAID=" + said}
	address, err := browserAddress("https://as.test/a?x=$(id)&y=`id` z")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		commands [][]string
		want     string
	}{
		{"last", [][]string{{tell, "-n"}}, "-n\n" + address + "\n"},
		{"in its place", [][]string{{tell, "--url=%s", "%s", "x"}}, "--url=" + address + "\n" + address + "\nx\n"},
		{"the next one", [][]string{{"none-such"}, {fails}, {"tell"}}, address + "\n"},
	} {
		if err := openBrowser(t.Context(), tc.commands, environ, address); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got, err := os.ReadFile(said); err != nil || string(got) != tc.want {
			t.Errorf("%s: %q, %v, want %q", tc.name, got, err, tc.want)
		}
	}
	if err := openBrowser(t.Context(), [][]string{{"none-such"}, {fails}}, environ, address); err == nil || err.Error() != "none-such: not found; fails: exit status 3" {
		t.Errorf("none can: %v", err)
	}

	// One that stays is the browser: it is not waited for, and not ended.
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- openBrowser(ctx, [][]string{{stays}}, environ, address) }()
	awaitFile(t, said+".up")
	cancel()
	if err := <-done; err != nil {
		t.Errorf("one that stays: %v", err)
	}
	if err := os.WriteFile(said+".end", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, said+".gone")
}

func awaitFile(t *testing.T, name string) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for {
		if _, err := os.Stat(name); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s does not appear", name)
		}
	}
}
