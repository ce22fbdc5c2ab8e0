package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// serveScreen is stderr as lines.
type serveScreen struct{ lines chan string }

func (s serveScreen) Write(p []byte) (int, error) {
	s.lines <- string(p)
	return len(p), nil
}

// serveCommand runs tai with the words. It gives what came on stderr up to the line that ends the notice, the URL, and how to stop it.
func serveCommand(t *testing.T, env map[string]string, words ...string) (notice, url string, stop func() (code int, stdout, rest string)) {
	t.Helper()
	screen := serveScreen{make(chan string, 100)}
	var stdout bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	code := make(chan int, 1)
	out := serveOutside(t, env)
	out.Stdout, out.Stderr = &stdout, screen
	go func() { // ends with ctx
		code <- run(ctx, words, out)
		close(screen.lines)
	}()
	timeout := time.After(20 * time.Second)
	for ended := false; !ended; {
		select {
		case line, ok := <-screen.lines:
			if !ok {
				t.Fatalf("tai %q ended: exit %d\n%s", words, <-code, notice)
			}
			notice += line
			if _, after, found := strings.Cut(line, "tools over MCP on "); found {
				url, _, _ = strings.Cut(after, " ")
			}
			ended = strings.Contains(line, "SIGTERM")
		case <-timeout:
			t.Fatalf("no notice within 20 s:\n%s", notice)
		}
	}
	return notice, url, func() (int, string, string) {
		cancel()
		rest := ""
		for line := range screen.lines {
			rest += line
		}
		return <-code, stdout.String(), rest
	}
}

func serveOutside(t *testing.T, env map[string]string) outside {
	t.Helper()
	out := outside{Getenv: func(k string) string { return env[k] }, Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}, GOOS: runtime.GOOS, Now: time.Now, Dir: t.TempDir()}
	if env == nil {
		env = map[string]string{}
	}
	env["HOME"], env["XDG_CONFIG_HOME"] = t.TempDir(), t.TempDir()
	env["TAI_HOME"] = filepath.Join(t.TempDir(), "home")
	for k, v := range env {
		out.Environ = append(out.Environ, k+"="+v)
	}
	return out
}

// TestServeCmdNotice: the whole way from the command line to an answered call and a graceful end.
func TestServeCmdNotice(t *testing.T) {
	key := "sesame-0123456789"
	notice, url, stop := serveCommand(t, map[string]string{"DOOR": key, "TAI_MCP_PORT": "0"}, "--serve-mcp", "env:DOOR")
	f := &serveFixture{url: url}
	if !strings.HasPrefix(url, "http://127.0.0.1:") || !strings.HasSuffix(url, "/mcp") {
		t.Fatalf("address %q in\n%s", url, notice)
	}
	if !strings.Contains(notice, "danger-full-access") || !strings.Contains(notice, "WARNING") || strings.Contains(notice, "sesame") || strings.Contains(notice, "ps shows") {
		t.Errorf("notice:\n%s", notice)
	}
	auth := "Authorization: Bearer " + key
	r := f.send(t, "POST", serveRequest("1", methodInitialize, `{"protocolVersion":"2025-11-25"}`), auth)
	session := headerSession + ": " + r.header.Get(headerSession)
	r = f.send(t, "POST", serveCall("shell_run", `{"command":"echo served"}`), auth, session)
	if res, err := decodeCallResult(r.rpc.Result); err != nil || res.IsError || !strings.Contains(r.body, "served") {
		t.Errorf("shell_run in the default mode: %s", r.body)
	}
	if r := f.send(t, "POST", serveCall("ask_user", `{"question":"?"}`), auth, session); r.code() != codeDenied {
		t.Errorf("ask_user: %s", r.body)
	}
	// The entry to paste is one that tai itself takes.
	_, rest, _ := strings.Cut(notice, "{")
	entry, _, _ := strings.Cut("{"+rest, "\n")
	got, err := normalize([]byte(entry), normalizeOptions{OS: "linux"})
	if err != nil || len(got.Servers) != 1 || got.Servers[0].URL != url || got.Servers[0].Headers["Authorization"] != "Bearer ${DOOR}" {
		t.Errorf("entry %s reads as %+v, %v", entry, got, err)
	}
	if code, stdout, rest := stop(); code != exitDone || stdout != "" || !strings.Contains(rest, "stopped") {
		t.Errorf("end: exit %d, stdout %q, stderr %q", code, stdout, rest)
	}
}

// TestServeCmdMode: --permission-mode narrows what the key opens, and a short key on the command line is warned about twice.
func TestServeCmdMode(t *testing.T) {
	notice, url, stop := serveCommand(t, nil, "--serve-mcp", "k4", "--mcp-port", "0", "--permission-mode", "read-only", "--allowed-origin", "https://app.example")
	for _, want := range []string{"ps shows", "2 characters", "mode read-only", "${TAI_MCP_KEY}"} {
		if !strings.Contains(notice, want) {
			t.Errorf("notice lacks %q:\n%s", want, notice)
		}
	}
	f := &serveFixture{url: url}
	r := f.send(t, "POST", serveRequest("1", methodInitialize, `{"protocolVersion":"2025-11-25"}`), "Authorization: Bearer k4", "Origin: https://app.example")
	session := headerSession + ": " + r.header.Get(headerSession)
	if r := f.send(t, "POST", serveCall("shell_run", `{"command":"touch x"}`), "Authorization: Bearer k4", session); r.code() != codeDenied || !strings.Contains(r.body, "read-only") {
		t.Errorf("a destructive call in read-only: %s", r.body)
	}
	if code, _, rest := stop(); code != exitDone {
		t.Errorf("end: exit %d, %s", code, rest)
	}
}

// TestServeCmdRefusals: what cannot be served is exit 2 before anything listens, a port that is taken exit 1.
func TestServeCmdRefusals(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, taken, _ := net.SplitHostPort(ln.Addr().String())
	const key = "sesame-0123456789"
	for _, tc := range []struct {
		env   map[string]string
		words []string
		code  int
		want  string
	}{
		{nil, []string{"--serve-mcp", ""}, exitUsage, "empty"}, // SRV-03
		{nil, []string{"--serve-mcp", "env:NOBODY"}, exitUsage, "NOBODY"},
		{map[string]string{"E": ""}, []string{"--serve-mcp", "env:E"}, exitUsage, "no key"},
		{nil, []string{"--serve-mcp", "file:nowhere"}, exitUsage, "nowhere"},
		{nil, []string{"--serve-mcp", "open sesame"}, exitUsage, "blank"},
		{nil, []string{"--serve-mcp", "open sesame"}, exitUsage, "hint: --serve-mcp takes the key itself, env:NAME or file:PATH"}, // not another address
		{nil, []string{"--serve-mcp", key, "--mcp-port", "65536"}, exitUsage, "65536"},
		{nil, []string{"--serve-mcp", key, "--mcp-port", "-1"}, exitUsage, "--mcp-port"},
		{nil, []string{"--serve-mcp", key, "--mcp-bind", "127.0.0.1:80"}, exitUsage, "--mcp-bind"},
		{map[string]string{"TAI_MCP_BIND": "http://h"}, []string{"--serve-mcp", key}, exitUsage, "TAI_MCP_BIND"},
		{nil, []string{"--serve-mcp", "env:"}, exitUsage, "names no variable"},
		{nil, []string{"--serve-mcp", "file:"}, exitUsage, "names no file"},
		{map[string]string{"TAI_MCP_PORT": "http"}, []string{"--serve-mcp", key}, exitUsage, "TAI_MCP_PORT"},
		{nil, []string{"--serve-mcp", key, "--allowed-origin", "*"}, exitUsage, "scheme://"},
		{nil, []string{"--serve-mcp", key, "--profile", "nobody"}, exitUsage, "nobody"},
		{nil, []string{"--serve-mcp", key, "--mcp-port", taken}, exitFailed, "in use"},
		{map[string]string{"TAI_MCP_BIND": "192.0.2.77"}, []string{"--serve-mcp", key, "--mcp-port", "0"}, exitFailed, "--mcp-bind"}, // no address of this machine
	} {
		out := serveOutside(t, tc.env)
		var stdout, stderr bytes.Buffer
		out.Stdout, out.Stderr = &stdout, &stderr
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		code := run(ctx, tc.words, out)
		cancel()
		if code != tc.code || !strings.Contains(stderr.String(), tc.want) || stdout.Len() > 0 {
			t.Errorf("%q with %v: exit %d, stdout %q, stderr %q, want %d and %q", tc.words, tc.env, code, stdout.String(), stderr.String(), tc.code, tc.want)
		}
		if strings.Contains(stderr.String(), "sesame-") || strings.Contains(stderr.String(), "open sesame") {
			t.Errorf("%q: the key is repeated: %s", tc.words, stderr.String())
		}
	}
}

// TestServeCmdSRV03KeyFile: a key file is its owner's alone, bounded, and its line end is no part of the key.
func TestServeCmdSRV03KeyFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("good", "sesame-0123456789\r\n", 0o600)
	write("group", "sesame", 0o640)
	write("world", "sesame", 0o604)
	write("empty", "\n", 0o600)
	write("bom", "\ufeffsesame-0123456789\n", 0o600)
	write("two", "sesame-0123456789\nsesame\n", 0o600)
	write("long", strings.Repeat("x", serveKeyFileMax+1), 0o600)
	none := func(string) (string, bool) { return "", false }
	for _, arg := range []string{"file:good", "file:" + filepath.Join(dir, "good")} {
		if key, name, err := serveKey("--serve-mcp", arg, none, dir, "linux"); err != nil || key.reveal() != "sesame-0123456789" || name != serveKeyName {
			t.Errorf("%s: key %q, name %q, %v", arg, key.reveal(), name, err)
		}
	}
	for arg, want := range map[string]string{"file:group": "0640", "file:world": "0604", "file:empty": "empty", "file:bom": "outside ASCII", "file:two": "control character", "file:long": "too many bytes", "file:": "names no file", "file:nobody": "no such file"} {
		_, _, err := serveKey("--serve-mcp", arg, none, dir, "linux")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") || failure(err).Exit != exitUsage || failure(err).Hint == "" {
			t.Errorf("%s: %v, want %q with exit 2 and a hint", arg, err, want)
		}
	}
	if key, _, err := serveKey("--serve-mcp", "file:group", none, dir, "windows"); err != nil || key.reveal() != "sesame" {
		t.Errorf("on Windows modes mean nothing: %v", err)
	}
}

// TestServeCmdSRV20Bind: where more than this machine can reach the server, it says so loudly; the URL is one that can be called.
func TestServeCmdSRV20Bind(t *testing.T) {
	a := &app{policy: newPolicy(policyConfig{Mode: modeDanger}), root: "/w"}
	for addr, want := range map[string]string{
		"127.0.0.1:8765": "http://127.0.0.1:8765/mcp", "[::1]:8765": "http://[::1]:8765/mcp", "127.0.0.9:1": "http://127.0.0.9:1/mcp",
		"0.0.0.0:8765": "http://127.0.0.1:8765/mcp", "[::]:8765": "http://[::1]:8765/mcp", "192.0.2.7:80": "http://192.0.2.7:80/mcp",
	} {
		var stderr strings.Builder
		a.stderr = &stderr
		say := func(line string) { stderr.WriteString(line + "\n") }
		if err := a.serveNotice(say, addr, "K", "default", 3); err != nil {
			t.Fatal(err)
		}
		local := strings.HasPrefix(addr, "127.") || strings.HasPrefix(addr, "[::1]")
		if !strings.Contains(stderr.String(), want) || strings.Contains(stderr.String(), "unencrypted") == local {
			t.Errorf("%s:\n%s", addr, stderr.String())
		}
	}
	var stdout strings.Builder
	a.json, a.stdout = true, &checkedWriter{w: &stdout}
	if err := a.serveNotice(func(string) {}, "127.0.0.1:8765", "K", "default", 3); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		URL, Mode, Profile string
		Tools              int
	}
	if err := json.Unmarshal([]byte(stdout.String()), &doc); err != nil || doc.URL != "http://127.0.0.1:8765/mcp" || doc.Mode != "danger-full-access" || doc.Tools != 3 {
		t.Errorf("--json: %s, %v", stdout.String(), err)
	}
}

func TestServeCmdSettings(t *testing.T) {
	for _, tc := range []struct {
		flag      []string
		env, want string
	}{{nil, "", "d"}, {nil, "e", "e"}, {[]string{"f"}, "e", "f"}, {[]string{""}, "e", "e"}, {[]string{"a", "b"}, "", "b"}} {
		if got := serveSetting(tc.flag, tc.env, "d"); got != tc.want {
			t.Errorf("serveSetting(%q, %q) = %q, want %q", tc.flag, tc.env, got, tc.want)
		}
	}
	if mcpDefaultPort != 8765 || mcpDefaultBind != "127.0.0.1" {
		t.Error("the documented address is 127.0.0.1:8765")
	}
}
