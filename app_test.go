package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// appOver wires a run over folders of its own.
func appOver(t *testing.T, goos string, environ ...string) *app {
	t.Helper()
	a, err := openApp(outside{
		Getenv: testEnv(t.TempDir()), Environ: environ, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, GOOS: goos, Now: time.Now, Dir: t.TempDir(),
	}, map[string][]string{"home": {t.TempDir()}}, storeWrite, "cli")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// Names of variables are the system's: Windows has Path, and ${PATH} means it.
func TestAppLookupEnv(t *testing.T) {
	for goos, want := range map[string]string{"windows": `C:\bin`, "linux": ""} {
		a := appOver(t, goos, `Path=C:\bin`)
		if got, ok := a.lookupEnv("PATH"); got != want || ok != (want != "") {
			t.Errorf("%s: PATH = %q, %v, want %q", goos, got, ok, want)
		}
	}
}

// Who gives up waiting for the vault leaves it to be opened by the next one.
func TestAppVaultAfterInterrupt(t *testing.T) {
	a := appOver(t, "linux")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.vault(ctx); err == nil {
		t.Fatal("a vault was opened after the interrupt")
	}
	if _, err := a.vault(t.Context()); err != nil {
		t.Errorf("the next use: %v", err)
	}
}

// A confirmation that was taken back confirms nothing.
func TestAppTrustedFile(t *testing.T) {
	a := appOver(t, "linux")
	v, err := a.vault(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]bool{"confirmed": true, "": false} {
		if err := v.setSetting(t.Context(), "trusted-file:abc", value); err != nil {
			t.Fatal(err)
		}
		if got := a.trustedFile("abc"); got != want {
			t.Errorf("setting %q: trusted %v", value, got)
		}
	}
	if a.trustedFile("abd") {
		t.Error("an unknown file is trusted")
	}
}

// What a turn shows is masked on both sinks, also where the secret comes in two parts, and nothing of the answer is lost.
func TestTurnSinksMask(t *testing.T) {
	const value = "sink-value-0001"
	r := newRedactor([]namedSecret{{"S", value}})
	var out, notes, lines bytes.Buffer
	text := &textSink{out: &out, notes: &notes, redact: r.text, mask: r.stream()}
	doc := &jsonSink{out: &lines, redact: r.text, mask: r.stream()}
	for _, s := range []answerSink{text, doc} {
		s.textDelta("it is sink-val")
		s.textDelta("ue-0001, and sink-")
		s.toolStarted(chatToolCall{ID: "c", Name: "echo", Args: `{"a":"` + value + `"}`})
		s.toolFinished(chatToolCall{ID: "c", Name: "echo"}, toolResult{Text: "x", Notice: "odd " + value}, time.Second)
		s.notice("retry with " + value)
		s.textDelta("sink-v")
		s.finish()
	}
	if err := doc.completed(turnResult{Text: "it is " + value}); err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{out.String(), notes.String(), lines.String()} {
		if strings.Contains(got, value) || !strings.Contains(got, "[secret:S]") {
			t.Errorf("shown: %s", got)
		}
	}
	if want := "it is [secret:S], and sink-sink-v\n"; out.String() != want {
		t.Errorf("answer %q, want %q", out.String(), want)
	}
	if !strings.Contains(notes.String(), "  warning: odd [secret:S]\n") || !strings.Contains(lines.String(), `"notice":"odd [secret:S]"`) {
		t.Errorf("the notice of a result: %s%s", notes.String(), lines.String())
	}
	first, _, _ := strings.Cut(lines.String(), `"tool_started"`)
	if !strings.Contains(first, `"text":"sink-"`) {
		t.Errorf("text held back comes after the call: %s", lines.String())
	}
}

// tai audit show --json gives the events as they stand in the log.
func TestCLIAuditShowJSON(t *testing.T) {
	r := newCLIRig(t)
	r.tai("tools", "call", "text_search", "pattern=x").ok()
	runs := cliJSON[struct{ Runs []struct{ Run string } }](r.tai("audit", "list", "--json"))
	if len(runs.Runs) != 1 {
		t.Fatalf("runs %+v", runs)
	}
	shown := cliJSON[struct{ Events []map[string]json.RawMessage }](r.tai("audit", "show", runs.Runs[0].Run, "--json"))
	if len(shown.Events) < 4 {
		t.Fatalf("%d events", len(shown.Events))
	}
	for _, key := range []string{"seq", "time", "run", "event", "call", "kind", "subject", "digest", "outcome", "prev", "hash"} {
		if shown.Events[len(shown.Events)-2][key] == nil {
			t.Errorf("no %q in %v", key, shown.Events[len(shown.Events)-2])
		}
	}
}

// fakeStuck is a tai whose command does not end when it is interrupted.
func fakeStuck() {
	cmd := command{Store: storeNone, Run: func(ctx context.Context, c *invocation) error {
		fmt.Fprintln(c.stdout, "ready")
		<-ctx.Done()
		fmt.Fprintln(c.stdout, "interrupted")
		time.Sleep(time.Minute)
		return nil
	}}
	dir := os.TempDir()
	err := execute(context.Background(), &invocation{cmd: cmd, flags: map[string][]string{"home": {dir}}}, outside{
		Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: os.Stdout, Stderr: os.Stderr, GOOS: runtime.GOOS, Now: time.Now, Dir: dir,
	})
	fmt.Println("ended:", err)
}

// The first interrupt asks a run to end; one more ends it, whatever hangs.
func TestSecondInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted from outside there")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = []string{"TAI_TEST_FAKE=stuck", "GORACE=atexit_sleep_ms=0"}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []string{"ready", "interrupted"} {
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("it says %q, want %q", lines.Text(), want)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
	}
	ended := make(chan struct{})
	go func() { // until it has ended: the second may have come while the first was still being handled
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = cmd.Process.Signal(os.Interrupt) // it may be gone by now
			case <-ended:
				return
			}
		}
	}()
	err = cmd.Wait()
	close(ended)
	if ctx.Err() != nil || err == nil || !strings.Contains(err.Error(), "interrupt") {
		t.Errorf("it ended with %v, want by the interrupt", err)
	}
}

// The rate limits of a workspace hold for the tools that are called in it.
func TestCLIRateLimits(t *testing.T) {
	r := newCLIRig(t)
	if err := os.Mkdir(filepath.Join(r.dir, ".tai"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := `{"version":1,"rate_limits":{"text_search":{"calls":0,"per_s":60}}}`
	if err := os.WriteFile(filepath.Join(r.dir, ".tai", "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	r.tai("tools", "call", "text_search", "pattern=x").fails(exitFailed, "rate limit: text_search may not be called here")
	r.tai("tools", "call", "shell_run", "command=echo hi").ok()
}

// What a config gives is shown with the characters it has.
func TestCLINormalizePlain(t *testing.T) {
	r := newCLIRig(t)
	r.with(`{"mcpServers":{"a":{"url":"https://a.example/mcp?x=1&y=<2>"}}}`, "mcp", "normalize").outHas("?x=1&y=<2>")
}
