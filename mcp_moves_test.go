package main

import (
	"fmt"
	"strings"
	"testing"
)

// moveToken is an obviously made-up token of the shape of a real one.
func moveToken(i int) string { return "made" + "_" + redactToken(i)[3:] }

func TestEntryTokens(t *testing.T) {
	shaped := "ghp" + "_" + redactToken(1)[3:]
	for _, tc := range []struct {
		name string
		e    serverEntry
		want string // name=value of each, in order
	}{
		{"headers", serverEntry{Name: "git-hub", Headers: map[string]string{"Authorization": "Bearer tok-made-up-1", "X-Api-Key": "tok-made-up-2", "Accept": "text/html; version=2", "X-Trace": shaped}},
			"GIT_HUB_TOKEN=tok-made-up-1 GIT_HUB_API_KEY=tok-made-up-2 GIT_HUB_TRACE=" + shaped},
		{"variables", serverEntry{Name: "db", Env: map[string]string{"GITLAB_TOKEN": "tok-made-up-1", "MODE": "production", "KEY_FILE": "/run/key/file", "SOME": shaped, "URL": "postgres://u:pw-made-up@h/d", "API_KEY": "YOUR_API_KEY_HERE", "A_TOKEN": "<your-token>", "B_TOKEN": "${B_TOKEN}", "DEBUG_KEY": "localhost"}},
			"GITLAB_TOKEN=tok-made-up-1 SOME=" + shaped + " URL_PASSWORD=pw-made-up"},
		{"arguments", serverEntry{Name: "7z", Args: []string{"-y", "--api-key", "tok-made-up-1", "--token=tok-made-up-2", "-e", "GITLAB_TOKEN=tok-made-up-3", "--header", "Authorization:Bearer tok-made-up-4", "postgres://u:pw-made-up@h/d", shaped, "--token", "-v", "/a/b", "https://h.test/mcp?key=tok-made-up-5"}},
			"MCP_7Z_API_KEY=tok-made-up-1 MCP_7Z_TOKEN=tok-made-up-2 GITLAB_TOKEN=tok-made-up-3 MCP_7Z_TOKEN=tok-made-up-4 MCP_7Z_PASSWORD=pw-made-up MCP_7Z_TOKEN=" + shaped + " MCP_7Z_KEY=tok-made-up-5"},
		{"address", serverEntry{Name: "web", URL: "https://me:pw-made-up@h.test/s/" + shaped + "/mcp?q=words-of-mine&api_key=tok%2Fmade-up-1&key=${KEY}#x"},
			"WEB_PASSWORD=pw-made-up WEB_TOKEN=" + shaped + " WEB_API_KEY=tok%2Fmade-up-1"},
		{"none", serverEntry{Name: "fs", Args: []string{"-y", "@modelcontextprotocol/server-filesystem@2026.1.2", "/home/user/Some/Path1", "--max-tokens=4096", "3f2504e0-4f89-11d3-9a0c-0305e82c3301"}, URL: "https://h.test/v1/projects/3f2504e0-4f89-11d3-9a0c-0305e82c3301/mcp?page=2"}, ""},
	} {
		var got []string
		tokens := entryTokens(tc.e)
		for _, f := range tokens {
			got = append(got, f.Base+"="+f.value(tc.e).reveal())
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, s, tc.want)
		}
		// With references in their place the entry holds none, and filled in it is the old one.
		texts := make([]string, len(tokens))
		for i := range tokens {
			texts[i] = fmt.Sprintf("${N%d}", i)
		}
		put := putTexts(tc.e, tokens, texts)
		if rest := entryTokens(put); len(rest) > 0 {
			t.Errorf("%s: left: %+v", tc.name, rest)
		}
		put.Transport, put.Command = "stdio", "x"
		back, _, err := expandEntry(put, func(string) (string, bool) { return "", false }, func(name string) (string, bool) {
			var i int
			if _, err := fmt.Sscanf(name, "N%d", &i); err != nil {
				return "left", true
			}
			return tokens[i].value(tc.e).reveal(), true
		})
		if want := shownText(tc.e, "linux"); err != nil || strings.ReplaceAll(shownText(withTransport(back, tc.e), "linux"), "key=left", "key=${KEY}") != want {
			t.Errorf("%s: back: %v\n%s\nwant\n%s", tc.name, err, shownText(withTransport(back, tc.e), "linux"), want)
		}
		masked := maskedEntry(tc.e)
		for _, f := range tokens {
			if v := f.value(tc.e).reveal(); strings.Contains(fmt.Sprint(masked), v) {
				t.Errorf("%s: masked entry holds %s", tc.name, v)
			}
		}
	}
}

func withTransport(e, as serverEntry) serverEntry {
	e.Transport, e.Command = as.Transport, as.Command
	return e
}

// entryOf gives the stored entry.
func (r *cliRig) entryOf(name string) serverEntry {
	r.t.Helper()
	a := knownApp(r.t.(*testing.T), r)
	v, err := a.vault(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	row, err := v.server(r.t.Context(), name)
	if err != nil {
		r.t.Fatal(err)
	}
	return row.serverEntry
}

func (r *cliRig) secretNames() string {
	r.t.Helper()
	var names []string
	for _, s := range cliJSON[struct{ Secrets []struct{ Name string } }](r.tai("secret", "list", "--json")).Secrets {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// R9: --move-secrets puts a pasted header's token into the vault with the registration; the entry keeps the name, a live call sends the
// value, and nothing is asked again.
func TestR9MoveHeader(t *testing.T) {
	t.Parallel()
	r, web, token := newCLIRig(t), newFakeHTTP(t), moveToken(1)
	added := r.tai("mcp", "add", "--yes", "--move-secrets", "web", web.URL+"/mcp", "--header", "Authorization: Bearer "+token)
	added.ok()
	added.hides(token)
	if e := r.entryOf("web"); e.Headers["Authorization"] != "Bearer ${WEB_TOKEN}" {
		t.Errorf("stored: %v", e.Headers)
	}
	if names := r.secretNames(); names != "WEB_TOKEN" {
		t.Errorf("secrets: %q", names)
	}
	call := r.tai("mcp", "call", "web", "echo", "x="+token)
	call.outHas("[secret:WEB_TOKEN]")
	call.hides(token)
	for _, req := range web.requests("") {
		if got := req.Header.Get("Authorization"); got != "Bearer "+token {
			t.Errorf("%s sent %q", req.RPC.Method, got)
		}
	}
	if len(web.requests(methodToolsCall)) != 1 {
		t.Error("the call did not come")
	}
}

// A variable keeps its own name; a started server gets the value.
func TestR9MoveVariable(t *testing.T) {
	t.Parallel()
	r, token := newCLIRig(t), moveToken(2)
	config := `{"mcpServers":{"s":` + strings.Replace(fakeConfig(t, ""), `"env":{`, `"env":{"SOME_API_KEY":"`+token+`",`, 1) + `}}`
	added := r.tai("mcp", "add", "--yes", "--move-secrets", config)
	added.ok()
	added.hides(token)
	if e := r.entryOf("s"); e.Env["SOME_API_KEY"] != "${SOME_API_KEY}" {
		t.Errorf("stored: %v", e.Env)
	}
	got := r.tai("mcp", "call", "s", "env", "name=SOME_API_KEY")
	got.outHas("[secret:SOME_API_KEY]")
	got.hides(token)
}

// Without a person and without a flag everything stays as pasted, with the command that moves it; that command does.
func TestR9KeptThenMoved(t *testing.T) {
	t.Parallel()
	r, web, token := newCLIRig(t), newFakeHTTP(t), moveToken(3)
	added := r.tai("mcp", "add", "--yes", "web", web.URL+"/mcp", "--header", "Authorization: Bearer "+token)
	added.ok()
	added.errHas("kept in the entry as pasted", `the header "Authorization"`, "tai mcp add web --move-secrets")
	added.hides(token)
	if e := r.entryOf("web"); e.Headers["Authorization"] != "Bearer "+token || r.secretNames() != "" {
		t.Errorf("stored: %v, secrets %q", e.Headers, r.secretNames())
	}
	r.tai("mcp", "add", "web", "--move-secrets", "--yes").ok()
	if e := r.entryOf("web"); e.Headers["Authorization"] != "Bearer ${WEB_TOKEN}" || r.secretNames() != "WEB_TOKEN" {
		t.Errorf("moved: %v, secrets %q", e.Headers, r.secretNames())
	}
	quiet := r.tai("mcp", "add", "--yes", "--keep-secrets", "web2", web.URL+"/mcp", "--header", "Authorization: Bearer "+token)
	quiet.ok()
	if strings.Contains(quiet.err, "kept") {
		t.Errorf("--keep-secrets warns: %s", quiet.err)
	}
	r.tai("mcp", "add", "--yes", "--keep-secrets", "--move-secrets", "x", web.URL+"/mcp").fails(exitUsage, "exclude each other")
}

// Nothing is left behind when the server fails its check, wants a login, or the person says no.
func TestR9MoveLeavesNothing(t *testing.T) {
	t.Parallel()
	r, web, token := newCLIRig(t), newFakeHTTP(t), moveToken(4)
	web.on(methodInitialize, fakeHTTPStatus(401, "text/plain", "no: "+token))
	failed := r.tai("mcp", "add", "--yes", "--move-secrets", "web", web.URL+"/mcp", "--header", "Authorization: Bearer "+token)
	if failed.code == exitDone {
		t.Error("a 401 is a success")
	}
	failed.hides(token)
	refused := r.tai("mcp", "add", "--move-secrets", "web", web.URL+"/mcp", "--header", "Authorization: Bearer "+token)
	refused.fails(exitRefused)
	refused.hides(token)
	if names := r.secretNames(); names != "" || len(r.servers()) != 0 {
		t.Errorf("left: secrets %q, servers %+v", names, r.servers())
	}
}

// A name that stands for something else is never taken over: not in the vault, not in the environment, not twice in one source.
func TestR9MoveNames(t *testing.T) {
	t.Parallel()
	r, web := newCLIRig(t), newFakeHTTP(t)
	one, two, three := moveToken(5), moveToken(6), moveToken(7)
	add := func(name, token string) string {
		t.Helper()
		r.tai("mcp", "add", "--yes", "--move-secrets", name, web.URL+"/"+name, "--header", "Authorization: Bearer "+token).ok()
		return r.entryOf(name).Headers["Authorization"]
	}
	r.with(one, "secret", "set", "WEB_TOKEN", "--from", "-").ok()
	if got := add("web", one); got != "Bearer ${WEB_TOKEN}" {
		t.Errorf("the same value: %s", got)
	}
	if got := add("web", two); got != "Bearer ${WEB_TOKEN_2}" {
		t.Errorf("another value: %s", got)
	}
	r.env = []string{"OTHER_TOKEN=something-else-0"}
	if got := add("other", three); got != "Bearer ${OTHER_TOKEN_2}" {
		t.Errorf("a variable of the environment: %s", got)
	}
	if names := r.secretNames(); names != "OTHER_TOKEN_2 WEB_TOKEN WEB_TOKEN_2" {
		t.Errorf("secrets: %q", names)
	}
	both := fmt.Sprintf(`{"mcpServers":{"a":{"url":%q,"headers":{"X-Token":%q}},"A":{"url":%q,"headers":{"X-Token":%q}}}}`, web.URL+"/a", one, web.URL+"/b", two)
	r.tai("mcp", "add", "--yes", "--move-secrets", both).ok()
	if a, b := r.entryOf("a").Headers["X-Token"], r.entryOf("A").Headers["X-Token"]; a == b || a+b != "${A_TOKEN}${A_TOKEN_2}" && a+b != "${A_TOKEN_2}${A_TOKEN}" {
		t.Errorf("twice in one source: %s, %s", a, b)
	}
}

// R9: what stands on a command line or in an address is told of also when its value is in the vault: ps and logs show it.
func TestR9MovedStillInTheClear(t *testing.T) {
	t.Parallel()
	r, web, token := newCLIRig(t), newFakeHTTP(t), moveToken(8)
	got := r.tai("mcp", "add", "--yes", "--move-secrets", "web", web.URL+"/mcp?api_key="+token)
	got.ok()
	got.errHas("in the clear in the server's address", "WEB_API_KEY")
	got.hides(token)
	if e := r.entryOf("web"); !strings.HasSuffix(e.URL, "/mcp?api_key=${WEB_API_KEY}") {
		t.Errorf("stored: %s", e.URL)
	}
	words := append(fakeWords(t, "s", fakeStdio{}), "--api-key", token)
	words = append([]string{words[0], words[1], "--move-secrets"}, words[2:]...)
	got = r.tai(words...)
	got.ok()
	got.errHas("in the clear on the server's command line", "S_API_KEY", "from the vault too")
	got.hides(token)
	call := r.tai("mcp", "call", "s", "argv")
	call.outHas("[secret:S_API_KEY]")
	call.hides(token)
}

// TTY-09: a consent shows an address without the secrets in it, moved or not.
func TestTTY09ConsentAddress(t *testing.T) {
	f, token := newFakeHTTP(t), moveToken(10)
	r := newBridgeRig(t, modePrompt, "n")
	e := httpEntry("web", f)
	e.URL += "?api_key=" + token
	if _, err := r.register(t.Context(), e, registerOptions{}); err == nil {
		t.Error("registered against a no")
	}
	if got := r.asked.last(t); strings.Contains(got, token) || !strings.Contains(got, "api_key=(secret)") {
		t.Errorf("asked: %s", got)
	}
}
