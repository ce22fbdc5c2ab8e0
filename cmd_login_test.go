package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeBrowser opens the address it is given, wherever that leads.
func fakeBrowser() {
	resp, err := http.Get(os.Args[len(os.Args)-1])
	if err != nil || resp.StatusCode >= 400 {
		os.Exit(1)
	}
	io.Copy(io.Discard, resp.Body)
}

// loginCLI is a rig with a server behind a login, which is stored as f.
func loginCLI(t *testing.T) (*cliRig, *fakeOAuth) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, f := newCLIRig(t), newFakeOAuth(t)
	r.env = []string{"BROWSER=" + quoteWord(exe), "TAI_TEST_FAKE=browser", "GORACE=atexit_sleep_ms=0"}
	r.tai("mcp", "add", "f", f.URL+"/mcp", "--yes").fails(exitLogin, "the server wants a login", "hint: tai mcp login f logs in with the browser")
	return r, f
}

func TestCLILogin(t *testing.T) {
	t.Parallel()
	r, f := loginCLI(t)
	r.tai("mcp", "call", "f", "echo").fails(exitRefused, "not enabled", "hint: it wants a login first: tai mcp login f")
	r.tai("mcp", "enable", "f").ok()
	r.tai("mcp", "enable", "f").errHas("note: it wanted a login when it was checked last: tai mcp login f")
	r.tai("mcp", "login", "f").fails(exitRefused, `log in at "f": refused (nobody to ask)`, "hint: --yes would allow it")
	if n := len(f.paths()); n != 0 {
		t.Errorf("%d requests before a yes: %q", n, f.paths())
	}
	got := r.tai("mcp", "login", "f", "--yes")
	if got.ok(); got.out != "f: logged in\nf: enabled for profile default, 1 tool\n  echo  Says it again.\n" {
		t.Errorf("stdout %q", got.out)
	}
	got.errHas("tai: log in at "+f.URL+` for the server "f":`, "\n\n  "+f.URL+"/authorize?", "it is asked for the scopes tools more", "your browser is being opened", "waiting up to 5 minutes")
	got.hides(f.access)
	r.tai("mcp", "list").outHas("/mcp  (logged in)")
	r.tai("mcp", "call", "f", "echo").outHas("echoed")
	f.expire()
	r.tai("mcp", "call", "f", "echo").outHas("echoed")
	if n := f.refreshes(); n != 1 {
		t.Errorf("%d refreshes", n)
	}
	f.revoke()
	r.tai("mcp", "call", "f", "echo").fails(exitLogin, "tai mcp login f", "hint: tai mcp login f")
	r.tai("mcp", "login", "f", "--yes", "--json").ok()
	if got := r.tai("mcp", "logout", "f").ok(); got != "f: logged out of profile default\n" {
		t.Errorf("logout: %q", got)
	}
	r.tai("mcp", "call", "f", "echo").fails(exitLogin)
	if got := r.tai("mcp", "list").ok(); strings.Contains(got, "logged in") {
		t.Errorf("list: %q", got)
	}
	if got := r.tai("mcp", "logout", "f").ok(); got != "f: there was no login\n" {
		t.Errorf("logout again: %q", got)
	}
}

func TestCLILoginProfiles(t *testing.T) {
	t.Parallel()
	r, f := loginCLI(t)
	r.tai("profile", "create", "work").ok()
	r.tai("mcp", "login", "f", "--yes").ok()
	r.tai("mcp", "login", "f", "--yes", "--profile", "work").ok()
	if n := len(f.clients); n != 2 {
		t.Errorf("%d registrations", n)
	}
	r.tai("mcp", "call", "f", "echo", "--profile", "work").ok()
	r.tai("mcp", "logout", "f", "--profile", "work").ok()
	r.tai("mcp", "call", "f", "echo", "--profile", "work").fails(exitLogin, "hint: tai mcp login f --profile work")
	r.tai("mcp", "login", "f", "--yes", "--profile", "work").ok()
	got := cliJSON[struct{ Profiles []loggedOutJSON }](r.tai("mcp", "logout", "f", "--all-profiles", "--json"))
	if len(got.Profiles) != 2 || got.Profiles[0].Profile != "default" || got.Profiles[1].Profile != "work" {
		t.Errorf("logged out of %+v", got.Profiles)
	}
}

func TestCLILoginFails(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		set   func(*fakeOAuth)
		words []string
		code  int
		texts []string
	}{
		{"denied", func(f *fakeOAuth) { f.Back = map[string]string{"code": "", "error": "access_denied"} }, []string{"f"}, exitLogin,
			[]string{"the authorization server refuses the login: access_denied", "hint: tai mcp login f starts anew"}},
		{"another issuer", func(f *fakeOAuth) { f.Back = map[string]string{"iss": "https://evil.test"} }, []string{"f"}, exitLogin, []string{"does not come from the authorization server", "starts anew"}},
		{"an address that is none to open", func(f *fakeOAuth) { f.AS = map[string]any{"authorization_endpoint": "javascript:alert(1)"} }, []string{"f"}, exitFailed, []string{"authorization_endpoint"}},
		{"no registration", func(f *fakeOAuth) { f.AS = map[string]any{"registration_endpoint": nil} }, []string{"f"}, exitFailed, []string{"no registration_endpoint", "hint: make a token at the provider"}},
		{"a registration of known clients only", func(f *fakeOAuth) { f.Reg = map[string]any{"error": "access_denied"} }, []string{"f"}, exitFailed,
			[]string{"refuses the registration: access_denied", "hint: make a token at the provider"}},
		{"no S256", func(f *fakeOAuth) { f.AS = map[string]any{"code_challenge_methods_supported": nil} }, []string{"f"}, exitFailed, []string{"S256", "hint: make a token at the provider"}},
		{"no login needed", func(f *fakeOAuth) { f.open = true }, []string{"f"}, exitFailed, []string{"needs no login", "hint: tai mcp enable f"}},
		{"an unknown server", nil, []string{"g"}, exitFailed, []string{"hint: tai mcp list shows the names"}},
		{"an address", nil, []string{"https://mcp.test/mcp"}, exitFailed, []string{"hint: tai mcp add https://mcp.test/mcp adds it"}},
		{"two servers", nil, []string{"f", "g"}, exitUsage, []string{`"g" cannot be used here`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, f := loginCLI(t)
			f.mu.Lock()
			if tc.set != nil {
				tc.set(f)
			}
			f.mu.Unlock()
			r.tai(append([]string{"mcp", "login", "--yes"}, tc.words...)...).fails(tc.code, tc.texts...)
			if tc.code != exitUsage && r.tai("mcp", "logout", "f").ok() != "f: there was no login\n" {
				t.Error("something was stored")
			}
		})
	}
	r := newCLIRig(t)
	r.addFake("here", fakeStdio{})
	r.tai("mcp", "login", "here", "--yes").fails(exitFailed, "stdio") // W71
	r.tai("mcp", "logout", "none").fails(exitFailed, "hint: tai mcp list shows the names")
}

// watcher hands what is written to see, and keeps it.
type watcher struct {
	mu  sync.Mutex
	all bytes.Buffer
	see func(all string)
}

func (w *watcher) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(b)
	w.see(w.all.String())
	return len(b), nil
}

// Where no browser is here, the address it ended at elsewhere comes on standard input.
func TestCLILoginPiped(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, env string
		words     []string
		code      int
		texts     []string
	}{
		{"no browser wanted", "", []string{"--no-browser"}, exitDone, []string{"no browser is opened (as asked for); open the address in any browser"}},
		{"no screen", "BROWSER=", nil, exitDone, []string{"no browser is opened (no screen is here that a browser could open on)"}},
		{"none that works", "BROWSER=none-such", nil, exitDone, []string{"no browser could be opened (none-such: not found)"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, _ := loginCLI(t)
			r.env = append(r.env, tc.env)
			in, typed := io.Pipe()
			lines := make(chan string, 8)
			go func() { // ends with the test's last line
				for l := range lines {
					io.WriteString(typed, l+"\n")
				}
				typed.Close()
			}()
			address := regexp.MustCompile(`\n  (http://\S+)\n`)
			var once sync.Once
			errs := &watcher{see: func(all string) {
				if m := address.FindStringSubmatch(all); m != nil && strings.Contains(all, tc.texts[0]) {
					once.Do(func() {
						back := fakeBrowse(t, m[1])
						lines <- back.Get("code")
						lines <- "code=x&state=y"
						lines <- back.Encode()
						lines <- "this is left alone"
						close(lines)
					})
				}
			}}
			var stdout bytes.Buffer
			words := append([]string{"mcp", "login", "f", "-", "--yes"}, tc.words...)
			goos := runtime.GOOS
			if tc.name == "no screen" {
				goos = "linux"
			}
			code := run(context.Background(), words, outside{Getenv: r.getenv, Environ: r.environ(), Stdin: in, Stdout: &stdout, Stderr: errs, GOOS: goos, Now: time.Now, Dir: r.dir})
			got := cliRun{t, words, code, stdout.String(), errs.all.String()}
			if got.ok(); !strings.HasPrefix(got.out, "f: logged in\n") {
				t.Errorf("stdout %q", got.out)
			}
			got.errHas(append(tc.texts, "a code alone does not show of which login it is", "that was the answer to another login")...)
			if left, err := io.ReadAll(in); err != nil || string(left) != "this is left alone\n" {
				t.Errorf("left on standard input: %q, %v", left, err)
			}
		})
	}
}

// fakeFace is a person who logs in at once.
type fakeFace struct {
	t       *testing.T
	back    chan string
	shown   int
	ended   int
	refuses error
}

func (f *fakeFace) show(_ context.Context, v loginShown) error {
	f.shown++
	if f.refuses == nil {
		f.back <- fakeBrowse(f.t, v.Address).Encode()
	}
	return f.refuses
}

func (f *fakeFace) pasted(ctx context.Context) (string, error) {
	select {
	case line := <-f.back:
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (f *fakeFace) end() { f.ended++ }

func TestMCPLoginTool(t *testing.T) {
	t.Parallel()
	lr := newLoginRig(t)
	f, r := lr.f, lr.bridgeRig
	face := &fakeFace{t: t, back: make(chan string, 1)}
	box := newToolsBox(t, modeDanger, nil, mcpTools(r.mcpBridge, newResolver(resolverConfig{Env: r.cfg.Env}), "linux", func() loginFace { return face })...)
	call := func(name, args, origin string) toolResult {
		t.Helper()
		got, err := box.dispatch(t.Context(), toolCall{Name: name, Args: json.RawMessage(args), Origin: origin})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := call("mcp_add", `{"source":"`+f.URL+`/mcp","name":"f"}`, "repl"); got.IsError || !strings.Contains(got.Text, "mcp_login") {
		t.Errorf("mcp_add: %+v", got)
	}
	for _, origin := range []string{"http", "mcp"} { // F22
		if got := call("mcp_login", `{"server":"f"}`, origin); got.Rule != toolRulePerson || face.shown > 0 {
			t.Errorf("served over %s: %+v", origin, got)
		}
	}
	if got := call("mcp_login", `{"server":"none"}`, "repl"); !got.IsError || got.Hint != "mcp_list shows the names" {
		t.Errorf("an unknown server: %+v", got)
	}
	for _, args := range []string{`{}`, `{"server":""}`, `{"server":"f","x":1}`, `{"server":"f","profile":""}`, `{"server":7}`} {
		if got := call("mcp_login", args, "repl"); !got.IsError || face.shown > 0 {
			t.Errorf("%s: %+v", args, got)
		}
	}
	face.refuses = errors.New("the screen is gone")
	if got := call("mcp_login", `{"server":"f"}`, "repl"); !got.IsError || !strings.Contains(got.Text, "the screen is gone") {
		t.Errorf("the person cannot be reached: %+v", got)
	}
	face.refuses = nil
	if got := call("mcp_login", `{"server":"f"}`, "repl"); got.IsError || !got.Anew || !strings.HasPrefix(got.Text, "logged in\nf: enabled for profile default, 1 tools\n  echo (granted): Says it again.") {
		t.Errorf("%+v", got)
	}
	if face.shown != 2 || face.ended != 3 {
		t.Errorf("shown %d times, ended %d times", face.shown, face.ended)
	}
	alone := newToolsBox(t, modeDanger, nil, mcpTools(r.mcpBridge, newResolver(resolverConfig{Env: r.cfg.Env}), "linux", nil)...) // piped
	if got := toolsRun(t, alone, "mcp_login", `{"server":"f"}`); got.Rule != toolRulePerson {
		t.Errorf("nobody sits here: %+v", got)
	}
	if got := strings.Join(alone.events(t), " "); got != "requested blocked" {
		t.Errorf("events %q", got)
	}
}

// A sub-agent that nobody waits for is never given the person's place for minutes; one in the foreground is.
func TestMCPLoginBackground(t *testing.T) {
	t.Parallel()
	lr := newLoginRig(t).added()
	face := &fakeFace{t: t, back: make(chan string, 1)}
	parent := newToolsBox(t, modeDanger, nil, mcpTools(lr.mcpBridge, nil, "linux", func() loginFace { return face })...)
	for _, background := range []bool{true, false} {
		s := agentScope{host: newAgentHost(subConfig{Now: time.Now, Attended: func() bool { return true }})}
		box := s.narrowed(parent.toolbox, &subAgent{background: background}, subSet{patterns: []string{"mcp_login"}}, nil)
		got, err := box.dispatch(t.Context(), toolCall{Name: "mcp_login", Args: json.RawMessage(`{"server":"f"}`), Origin: "repl"})
		if err != nil || background != (got.Rule == toolRulePerson) || background == (face.shown > 0) || got.IsError != background {
			t.Errorf("background %v: %+v, %v, shown %d times", background, got, err, face.shown)
		}
	}
}
