package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A call reads the vault anew as soon as anyone has written to it: this bridge, another one, or another process.
func TestBridgeMemoSeesWrites(t *testing.T) {
	r := newBridgeRig(t, modeDanger, "")
	r.add(t, stdioEntry(t, "s", fakeStdio{}))
	ctx := context.Background()
	call := func() (toolResult, error) { return r.run1("s", "add", `{"a":1,"b":1}`) }
	works := func(when string) {
		t.Helper()
		for range 2 { // the second one is answered from the memo
			if res, err := call(); err != nil || res.Text != "2" {
				t.Fatalf("%s: %+v, %v", when, res, err)
			}
		}
	}
	works("registered")
	if err := r.store.setEnabled(ctx, "s", profileDefault, false); err != nil {
		t.Fatal(err)
	}
	if _, err := call(); !errors.Is(err, errNotEnabled) {
		t.Errorf("after it was disabled here: %v", err)
	}
	other, err := openVault(ctx, r.dir, vaultWrite, time.Now, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	if err := other.setEnabled(ctx, "s", profileDefault, true); err != nil {
		t.Fatal(err)
	}
	works("enabled over another connection")
	if err := other.dropTools(ctx, "s", []string{"add"}); err != nil {
		t.Fatal(err)
	}
	if names, err := r.names(ctx); err != nil || names["mcp_s_add"] != (toolRef{}) {
		t.Errorf("dropped over another connection, but offered: %v, %v", names, err)
	}
	if err := other.removeServer(ctx, "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := call(); !errors.Is(err, errServerUnknown) {
		t.Errorf("after it was removed over another connection: %v", err)
	}
}

// Version and help work where nothing else does: without a home, and in a folder that is gone.
func TestVersionAndHelpOpenNothing(t *testing.T) {
	for _, words := range [][]string{{"--version"}, {"version"}, {"version", "--json"}, {"help"}, {"help", "mcp", "add"}} {
		var stdout, stderr strings.Builder
		out := outside{Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, GOOS: "linux", Now: time.Now, Dir: "/no/such/folder"}
		if code := run(context.Background(), words, out); code != exitDone || stdout.Len() == 0 || stderr.Len() > 0 {
			t.Errorf("%q: exit %d, %q, %q", words, code, stdout.String(), stderr.String())
		}
	}
}
