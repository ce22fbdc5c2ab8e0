package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// governed serves the rig's folder over stdio.
func (r *cliRig) governed(words ...string) *servedTai {
	r.t.Helper()
	return r.serve(append([]string{"mcp", "serve"}, words...)...).hello()
}

// TestMCPServePOL03Refusals: what cannot be served is told with exit 2, before anything is answered or logged (POL-03, POL-09, ROO-05).
func TestMCPServePOL03Refusals(t *testing.T) {
	r := newCLIRig(t)
	if err := os.WriteFile(filepath.Join(r.dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := strings.Repeat("ab", 32)
	for _, tc := range []struct {
		words []string
		texts []string
	}{
		{[]string{"--permission-mode", "workspace-write"}, []string{"workspace-write", "bound plan"}}, {[]string{"--permission-mode", "bypass"}, []string{"bypass", "read-only"}},
		{[]string{"--permission-mode", ""}, []string{"permission mode"}}, {[]string{"--permission-mode", "PROMPT"}, []string{"PROMPT"}}, {[]string{"--permission-mode", "allow "}, []string{"permission mode"}},
		{[]string{"--auto", "--yolo"}, []string{"exclude each other"}},
		{[]string{"--approve-scoped", "shell_run"}, []string{"TOOL:SHA256", "hint: tai approval digest"}}, {[]string{"--approve-scoped", ":" + sum}, []string{"TOOL:SHA256"}}, {[]string{"--approve-scoped", "shell_run:" + strings.ToUpper(sum)}, []string{"lower-case"}},
		{[]string{"--approve-scoped", "shell_run:" + sum[1:]}, []string{"TOOL:SHA256"}}, {[]string{"--approve-scoped", "shell_run:" + sum, "--approve-scoped", "x"}, []string{"TOOL:SHA256"}},
		{[]string{"--approve-call-id", "7"}, []string{"--approve-call-id"}}, // there is none
		{[]string{"--root", "nowhere"}, []string{"nowhere"}}, {[]string{"--root", "file"}, []string{"no folder"}}, {[]string{"more"}, []string{"too many arguments"}},
		{[]string{"--port", "1"}, []string{"--http"}}, {[]string{"--host", "::1"}, []string{"--http"}}, {[]string{"--auth-token", "t"}, []string{"--http"}}, {[]string{"--allowed-origin", "http://a"}, []string{"--http"}},
		{[]string{"--http", "--port", "65536"}, []string{"65536"}}, {[]string{"--http", "--port", "x"}, []string{"no port"}}, {[]string{"--http", "--allowed-origin", "*"}, []string{"scheme://"}},
		{[]string{"--http", "--host", "0.0.0.0"}, []string{"without a token", "--auth-token"}}, {[]string{"--http", "--host", "::"}, []string{"without a token"}}, {[]string{"--http", "--host", "192.0.2.7"}, []string{"without a token"}},
		{[]string{"--http", "--host", "127.0.0.1:80"}, []string{"no host"}}, {[]string{"--http", "--host", "http://localhost"}, []string{"no host"}},
		{[]string{"--http", "--host", "box.example"}, []string{"without a token"}}, {[]string{"--http", "--auth-token", ""}, []string{"empty"}}, {[]string{"--http", "--auth-token", "env:NOBODY"}, []string{"NOBODY"}},
		{[]string{"--http", "--host", "0.0.0.0", "--auth-token", ""}, []string{"empty"}}, {[]string{"--http", "--auth-token", "file:nowhere"}, []string{"nowhere"}}, {[]string{"--http", "--auth-token", "two words"}, []string{"blank"}},
		{[]string{"--profile", "nobody"}, []string{"nobody"}},
	} {
		r.tai(append([]string{"mcp", "serve"}, tc.words...)...).fails(exitUsage, tc.texts...)
	}
	if e := r.tai("mcp", "serve", "--json", "--permission-mode", "x").failsJSON(exitUsage); e.Message == "" {
		t.Error("no message")
	}
	for name, text := range map[string]string{"config.json": `{"version":1,"permission_mode":"workspace-write"}`, "approvals.json": `{"version":1,"presets":[`} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, ".tai"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".tai", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.tai("mcp", "serve", "--root", dir).fails(exitUsage, name)
	}
	if _, err := os.Lstat(filepath.Join(r.dir, ".tai")); err == nil {
		t.Error("a refused start left .tai in the workspace")
	}
}

// What a start cannot log is not served.
func TestMCPServeNoLog(t *testing.T) {
	r := newCLIRig(t)
	if err := os.Mkdir(filepath.Join(r.dir, ".tai"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, ".tai", "runs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.with(servePing+"\n", "mcp", "serve").fails(exitFailed, "nothing is served that cannot be logged", "hint: --root names a folder")
}

// TestMCPServeRunLog: the log begins with the run and ends with it, also without a call, and the vault holds its head.
func TestMCPServeRunLog(t *testing.T) {
	r := newCLIRig(t)
	s := r.serve("mcp", "serve")
	if code := s.close(); code != exitDone {
		t.Errorf("exit %d\n%s", code, s.stderr())
	}
	run, events := servedLog(t, r.dir)
	if strings.Join(events, ",") != "run_started,run_completed" {
		t.Errorf("events %q", events)
	}
	if got := r.tai("audit", "verify", run, "--root", r.dir, "--ci").ok(); !strings.Contains(got, auditByVault) || !strings.Contains(got, run) {
		t.Errorf("verify: %s", got)
	}
	if logs, err := filepath.Glob(filepath.Join(r.home, "runs", "*")); err != nil || len(logs) != 0 {
		t.Errorf("logs in the home: %q, %v", logs, err)
	}
	b, err := os.ReadFile(filepath.Join(r.dir, ".tai", "runs", run+auditExtension))
	if err != nil {
		t.Fatal(err)
	}
	var first struct {
		Data struct{ Origin, Transport, Permission_mode string }
	}
	line, rest, _ := strings.Cut(string(b), "\n")
	if err := json.Unmarshal([]byte(line), &first); err != nil || first.Data.Origin != "mcp" || first.Data.Transport != "stdio" || first.Data.Permission_mode != "prompt" {
		t.Errorf("run_started %s: %v", line, err)
	}
	// A log cut behind its head shows.
	if err := os.WriteFile(filepath.Join(r.dir, ".tai", "runs", run+auditExtension), []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := r.tai("audit", "verify", run, "--root", r.dir); got.code != 1 || rest == "" {
		t.Errorf("verify of a cut log: exit %d, %s", got.code, got.out)
	}
	if err := os.RemoveAll(filepath.Join(r.dir, ".tai")); err != nil {
		t.Fatal(err)
	}
}

// TestMCPServePOL01: the modes, presets and digests of the table at the stdio door, with tools as they are.
func TestMCPServePOL01(t *testing.T) {
	const change, read = `{"path":"made.txt","content":"x"}`, `{"path":"here.txt"}`
	digest, err := payloadDigest("file_write", json.RawMessage(change))
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"read-only", "prompt", "allow", "danger-full-access"} {
		for _, given := range []string{"none", "allow preset", "deny preset", "digest"} {
			t.Run(mode+", "+given, func(t *testing.T) {
				r := newCLIRig(t)
				if err := os.WriteFile(filepath.Join(r.dir, "here.txt"), []byte("here"), 0o600); err != nil {
					t.Fatal(err)
				}
				words := []string{"--permission-mode", mode}
				switch given {
				case "allow preset":
					r.tai("approval", "grant", "file_write", "--yes").ok()
				case "deny preset":
					r.tai("approval", "deny", "file_*").ok()
				case "digest":
					words = append(words, "--approve-scoped", "file_write:"+digest)
				}
				s := r.governed(words...)
				reads, changes := s.call("file_read", read), s.call("file_write", change)
				if given == "deny preset" {
					servedDenied(t, reads, ruleDeny)
					servedDenied(t, changes, ruleDeny)
					return
				}
				if _, res := servedResult(t, reads); res.IsError {
					t.Errorf("reading: %s", reads.Result)
				}
				switch {
				case mode == "read-only":
					servedDenied(t, changes, ruleMode+mode)
				case mode == "prompt" && given == "none":
					servedDenied(t, changes, ruleNobody)
					if !strings.Contains(changes.Error.Message, "--approve-scoped file_write:"+digest) {
						t.Errorf("the way out is not said: %s", changes.Error.Message)
					}
				default:
					if _, res := servedResult(t, changes); res.IsError {
						t.Errorf("changing: %s", changes.Result)
					}
				}
				_, err := os.Stat(filepath.Join(r.dir, "made.txt"))
				if made := err == nil; made != (changes.Error == nil) {
					t.Errorf("made %v, answer %+v", made, changes.Error)
				}
			})
		}
	}
}

// TestMCPServePOL07POL08: a digest covers the one value it was made of, however it is spelled; nothing that a client sends covers anything.
func TestMCPServePOL07POL08(t *testing.T) {
	r := newCLIRig(t)
	out := cliJSON[struct{ Digest, Flag string }](r.tai("approval", "digest", "file_write", `{"path":"a.txt","content":"x"}`, "--json"))
	flag := strings.Fields(out.Flag)
	s := r.governed(flag[0], flag[1])
	for _, args := range []string{
		`{"path":"a.txt","content":"x","mkdirs":true}`, `{"Path":"a.txt","content":"x"}`, `{"path":"a.txt","content":"y"}`, `{"path":"./a.txt","content":"x"}`, `{"path":"a.txt"}`, `{}`,
	} {
		servedDenied(t, s.call("file_write", args), ruleNobody)
	}
	quoted := fmt.Sprintf("%q", out.Digest)
	for _, params := range []string{
		`{"name":"file_write","arguments":{"path":"b.txt","content":"x"},"_meta":{"approval":` + quoted + `,"approved":true}}`, `{"name":"file_write","arguments":{"path":"b.txt","content":"x"},"approved":true,"annotations":{"readOnlyHint":true}}`,
		`{"name":"shell_run","arguments":{"command":"touch b.txt"},"approve":` + quoted + `}`,
	} {
		servedDenied(t, s.ask(quoted, methodToolsCall, params), ruleNobody) // the id is a digest, too
	}
	for _, args := range []string{`{"path":"a.txt","path":"b.txt","content":"x"}`, `[]`, `"x"`, `null`} { // POL-06, POL-11
		if m := s.call("file_write", args); m.Error == nil || m.Error.Code != codeInvalidParams && (m.Error.Code != codeParse || !strings.Contains(args, "b.txt")) {
			t.Errorf("%s: %+v", args, m)
		}
	}
	if _, res := servedResult(t, s.call("file_write", ` { "content" : "x", "path" : "\u0061.txt" } `)); res.IsError {
		t.Error("the approved call failed")
	}
	entries, err := os.ReadDir(r.dir)
	if err != nil || len(entries) != 2 { // .tai and a.txt
		t.Errorf("%v, %v", entries, err)
	}
}

// TestMCPServeShell: a command counts as changing however harmless, is refused in allow where it cannot be split, and a digest allows just it.
func TestMCPServeShell(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its commands are for a Unix shell")
	}
	r := newCLIRig(t)
	s := r.governed()
	for _, tool := range []string{"shell_run", "proc_start"} {
		servedDenied(t, s.call(tool, `{"command":"echo hi"}`), ruleNobody)
	}
	if m := s.call("policy_check", `{"tool":"shell_run","args":{"command":"ls"}}`); !strings.Contains(string(m.Result), `"decision":"deny"`) {
		t.Errorf("policy_check: %s", m.Result)
	}
	s.close()
	a := r.governed("--permission-mode", "allow")
	if text, res := servedResult(t, a.call("shell_run", `{"command":"echo hi"}`)); res.IsError || !strings.Contains(text, "hi") {
		t.Errorf("in allow: %s", text)
	}
	for _, seconds := range []string{"10.0", "1e1"} { // the same number to a schema and to a digest, and so to the tool
		if text, res := servedResult(t, a.call("shell_run", `{"command":"echo hi","timeout_s":`+seconds+`}`)); res.IsError || !strings.Contains(text, "hi") {
			t.Errorf("%s s: %s", seconds, text)
		}
	}
	servedDenied(t, a.call("shell_run", `{"command":"echo 'hi"}`), ruleUnparsable)
	r.tai("approval", "deny", "shell_run", "--command", "echo").ok()
	servedDenied(t, a.call("shell_run", `{"command":"echo hi","timeout_s":10.0}`), ruleDeny) // whatever the numbers beside it
	if !strings.Contains(a.stderr(), "runs shell_run") {                                     // shown
		t.Errorf("stderr: %s", a.stderr())
	}
}

// TestMCPServeBridged: other servers' tools are not served, and mcp_call reaches one only by a preset or the digest of the bridged call, whatever the mode.
func TestMCPServeBridged(t *testing.T) {
	r := newCLIRig(t)
	r.addFake("s", fakeStdio{})
	digest, err := payloadDigest(bridgedSubject("s", "echo"), json.RawMessage(`{"n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	call := func(n int) string { return fmt.Sprintf(`{"server":"s","tool":"echo","args":{"n":%d}}`, n) }
	for _, mode := range []string{"prompt", "allow", "danger-full-access"} {
		s := r.governed("--permission-mode", mode, "--approve-scoped", bridgedSubject("s", "echo")+":"+digest)
		if m := s.ask("1", methodToolsList, `{}`); strings.Contains(string(m.Result), "mcp_s_") {
			t.Errorf("%s: a bridged tool is served", mode)
		}
		if m := s.call("mcp_s_echo", `{"n":1}`); m.Error == nil || m.Error.Code != codeInvalidParams {
			t.Errorf("%s: by its bridged name: %+v", mode, m)
		}
		no := s.call("mcp_call", call(2))
		if servedDenied(t, no, ruleApproved); !strings.Contains(no.Error.Message, "--approve-scoped mcp:s/echo:") {
			t.Errorf("%s: the way out is not said: %s", mode, no.Error.Message)
		}
		if m := s.call("policy_check", `{"tool":"mcp_call","args":`+call(2)+`}`); !strings.Contains(string(m.Result), ruleApproved) {
			t.Errorf("%s: policy_check: %s", mode, m.Result)
		}
		if text, res := servedResult(t, s.call("mcp_call", call(1))); res.IsError {
			t.Errorf("%s: the approved call: %s", mode, text)
		}
		if strings.Contains(s.stderr(), "names no tool") {
			t.Errorf("%s: %s", mode, s.stderr())
		}
		s.close()
	}
	s := r.governed("--permission-mode", "read-only", "--approve-scoped", bridgedSubject("s", "echo")+":"+digest, "--approve-scoped", "nobody:"+digest)
	servedDenied(t, s.call("mcp_call", call(1)), ruleMode+"read-only")
	if !strings.Contains(s.notice, `names no tool that is served: "nobody"`) {
		t.Errorf("notice: %s", s.notice)
	}
	s.close()
	r.tai("approval", "grant", "mcp:s/echo", "--yes").ok()
	p := r.governed()
	if _, res := servedResult(t, p.call("mcp_call", call(3))); res.IsError {
		t.Error("a preset does not allow it")
	}
	servedDenied(t, p.call("mcp_call", `{"server":"s","tool":"add","args":{"a":1,"b":2}}`), ruleApproved)
	logs, err := filepath.Glob(filepath.Join(r.dir, ".tai", "runs", "mcp-*"))
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]bool{} // what let calls through
	for _, log := range logs {
		for _, rec := range auditRows(t, log) {
			if rec.Event == auditCallStarted && rec.Kind == auditKindMCP {
				rule, _, _ := strings.Cut(rec.Rule, " p-")
				rules[rule] = true
			}
		}
	}
	if want := map[string]bool{"digest": true, "mode allow": true, "mode danger-full-access": true, "allow preset": true}; !maps.Equal(rules, want) {
		t.Errorf("the log tells %v, want %v", rules, want)
	}
}

// TestMCPServeROO: paths outside the root, under every spelling, and tai's own files, over the wire (ROO-01 to ROO-04, ROO-06).
func TestMCPServeROO(t *testing.T) {
	r := newCLIRig(t)
	outside := filepath.Join(filepath.Dir(r.dir), "work-secret")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "x"), []byte("hidden-9"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link-file": filepath.Join(outside, "x"), "link-dir": outside} {
		if err := os.Symlink(to, filepath.Join(r.dir, link)); err != nil {
			skipMissing(t, "%v", err)
		}
	}
	for _, mode := range []string{"read-only", "prompt", "allow"} {
		s := r.governed("--permission-mode", mode)
		for _, path := range []string{"../../etc/passwd", "/etc/passwd", "a/../../x", "link-file", "link-dir/x", "../work-secret/x", filepath.Join(outside, "x")} {
			for _, tool := range []string{"file_read", "file_read_hashed", "dir_list"} {
				m := s.call(tool, fmt.Sprintf(`{"path":%q}`, path))
				if tool == "dir_list" && m.Error == nil && strings.Contains(string(m.Result), "is a file") {
					continue
				}
				rule := ruleOutside
				if mode == "prompt" {
					rule = ruleNobody
				}
				servedDenied(t, m, rule)
			}
			if m := s.call("file_write", fmt.Sprintf(`{"path":%q,"content":"x"}`, path)); m.Error == nil || m.Error.Code != codeDenied {
				t.Errorf("%s: file_write %s: %s", mode, path, m.Result)
			}
		}
		for _, path := range []string{`a\u0000b`, strings.Repeat("a", 5000), "~/x", "%2e%2e/work-secret/x", `..\\work-secret\\x`} {
			if m := s.call("file_read", `{"path":"`+path+`"}`); m.Error == nil {
				if text, res := servedResult(t, m); !res.IsError || strings.Contains(text, "hidden-9") {
					t.Errorf("%s: file_read %.40s: %s", mode, path, text)
				}
			}
		}
		s.close()
	}
	d := r.governed("--permission-mode", "danger-full-access") // ROO-06 holds in it, too
	run := filepath.Base(d.rig.dir)
	for _, path := range []string{".tai/approvals.json", ".tai/config.json", ".tai/runs/mcp-x.jsonl", ".TAI/approvals.json", "./x/../.tai/trust.json", filepath.Join(r.home, "vault.db"), filepath.Join(r.home, "runs", "x")} {
		if runtime.GOOS != "windows" && runtime.GOOS != "darwin" && strings.Contains(path, "TAI") {
			continue // another name there
		}
		if m := d.call("file_write", fmt.Sprintf(`{"path":%q,"content":"x","mkdirs":true}`, path)); m.Error == nil {
			if text, res := servedResult(t, m); !res.IsError {
				t.Errorf("%s: wrote %s: %s", run, path, text)
			}
		}
	}
	if text, _ := servedResult(t, d.call("file_read", fmt.Sprintf(`{"path":%q}`, filepath.Join(outside, "x")))); !strings.Contains(text, "hidden-9") {
		t.Errorf("danger-full-access does not reach outside: %s", text)
	}
}

// TestMCPServePersonDenied: the tools that talk to a person are refused in every mode (SRV-19).
func TestMCPServePersonDenied(t *testing.T) {
	r := newCLIRig(t)
	for _, mode := range []string{"read-only", "prompt", "allow", "danger-full-access"} {
		s := r.governed("--permission-mode", mode)
		list := s.ask("1", methodToolsList, `{}`)
		for tool, args := range map[string]string{"ask_user": `{"question":"?"}`, "plan_submit": `{"plan":"x"}`, "mcp_login": `{"server":"s"}`, "secret_set": `{"name":"A","from":"prompt"}`} {
			if !strings.Contains(string(list.Result), `{"name":"`+tool+`"`) {
				continue // not among the native tools yet
			}
			servedDenied(t, s.call(tool, args), "")
		}
		servedDenied(t, s.call("ask_user", `{"question":"?"}`), toolRulePerson)
		s.close()
	}
}

// TestMCPServeHTTP: the same over HTTP, on loopback without a token, elsewhere with one; with --json the first line on stdout says where.
func TestMCPServeHTTP(t *testing.T) {
	r := newCLIRig(t)
	s := r.serve("mcp", "serve", "--http", "--port", "0")
	if !strings.HasPrefix(s.url, "http://127.0.0.1:") || !strings.Contains(s.notice, "no key is needed") || strings.Contains(s.notice, "Authorization") {
		t.Errorf("%s", s.notice)
	}
	session := s.session()
	if r := s.post(serveCall("file_write", `{"path":"a","content":"x"}`), session); r.code() != codeDenied {
		t.Errorf("in prompt: %s", r.body)
	}
	for want, headers := range map[int][]string{403: {session, "Origin: https://evil.example"}, 404: {headerSession + ": other"}, 200: {session, "Authorization: Bearer whatever"}} {
		if r := s.post(servePing, headers...); r.status != want {
			t.Errorf("%q: %d %s", headers, r.status, r.body)
		}
	}
	if r := s.post(servePing, session, "Host: evil.example"); r.status != 403 {
		t.Errorf("a foreign Host: %d", r.status)
	}
	if code := s.stop(); code != exitDone {
		t.Errorf("exit %d: %s", code, s.stderr())
	}
	if _, events := servedLog(t, r.dir); strings.Join(events, ",") != "run_started,tool_call_requested file_write,tool_call_blocked file_write,run_completed" {
		t.Errorf("events %q", events)
	}
	r.env = append(r.env, "DOOR=open-sesame-0123456789")
	k := r.serve("mcp", "serve", "--http", "--port", "0", "--host", "localhost", "--auth-token", "env:DOOR", "--allowed-origin", "https://app.example", "--permission-mode", "read-only")
	if strings.Contains(k.notice, "sesame") || !strings.Contains(k.notice, "${DOOR}") {
		t.Errorf("%s", k.notice)
	}
	if r := k.send(t, "POST", servePing, "Authorization: "); r.status != 401 || r.header.Get("WWW-Authenticate") == "" {
		t.Errorf("without the token: %d", r.status)
	}
	k.auth = "Bearer open-sesame-0123456789"
	if r := k.post(serveCall("file_read", `{"path":"none"}`), k.session(), "Origin: https://app.example"); r.status != 200 || !strings.Contains(r.body, `"isError":true`) {
		t.Errorf("with the token: %d %s", r.status, r.body)
	}
	if r := k.post(serveCall("file_read", `{"path":"open-sesame-0123456789"}`), k.session()); !strings.Contains(r.body, "[secret:DOOR]") || strings.Contains(r.body, "sesame") {
		t.Errorf("the key is repeated: %s", r.body) // AUD-09
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	r.tai("mcp", "serve", "--http", "--port", port).fails(exitFailed, "in use", "--port")
	if mcpServePort != 7330 {
		t.Error("the documented port is 7330")
	}
}

// TestMCPServeOwnClient: tai's own client against tai's own server over stdio, brought in, called, refused and cancelled as any other.
func TestMCPServeOwnClient(t *testing.T) {
	r := newCLIRig(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	seedWrite(t, filepath.Join(r.dir, "note.txt"), "Tea at four.\n")
	words := []string{"mcp", "add", "self", "--yes", "--env", "TAI_TEST_FAKE=tai", "--env", "GORACE=atexit_sleep_ms=0", "--env", "XDG_CONFIG_HOME=" + r.home + "-other", "--env", "TAI_HOME=" + r.home + "-other", "--", exe, "mcp", "serve", "--root", r.dir}
	r.tai(words...).ok()
	if got := r.tai("mcp", "call", "self", "dir_list", "path=note.txt").ok(); !strings.Contains(got, "note.txt") {
		t.Errorf("%s", got)
	}
	if got := r.tai("mcp", "call", "self", "file_write", "path=a", "content=b"); got.code == exitDone || !strings.Contains(got.err, "-32001") || !strings.Contains(got.err, "--approve-scoped file_write:") {
		t.Errorf("exit %d: %s", got.code, got.err)
	}
	logs, err := filepath.Glob(filepath.Join(r.dir, ".tai", "runs", "mcp-*"+auditExtension))
	if err != nil || len(logs) != 3 {
		t.Fatalf("%q, %v", logs, err)
	}
	verifyLogs(t, filepath.Join(r.dir, ".tai", "runs"))
	for _, log := range logs {
		if rows := auditRows(t, log); rows[len(rows)-1].Event != auditRunCompleted {
			t.Errorf("%s was not ended: %+v", log, rows[len(rows)-1])
		}
	}
}

// Presets that a person changes while it serves count from the next call on, at both doors; a file that cannot be relied on any more refuses all.
func TestMCPServePresetsChange(t *testing.T) {
	r := newCLIRig(t)
	s := r.governed()
	w := r.serve("mcp", "serve", "--http", "--port", "0")
	session := w.session()
	both := func(want string) {
		t.Helper()
		for _, m := range []rpcMessage{s.call("file_write", `{"path":"a","content":"x"}`), w.post(serveCall("file_write", `{"path":"b","content":"x"}`), session).rpc} {
			if want != "" {
				servedDenied(t, m, want)
			} else if _, res := servedResult(t, m); res.IsError {
				t.Errorf("%s", m.Result)
			}
		}
	}
	both(ruleNobody)
	granted := cliJSON[struct{ Presets []struct{ ID string } }](r.tai("approval", "grant", "file_write", "--yes", "--json"))
	both("")
	r.tai("approval", "deny", "file_*").ok()
	both(ruleDeny)
	for _, id := range []string{granted.Presets[0].ID, cliJSON[struct{ Presets []struct{ ID, Effect string } }](r.tai("approval", "list", "--json")).Presets[1].ID} {
		r.tai("approval", "revoke", id, "--yes").ok()
	}
	both(ruleNobody)
	file := filepath.Join(r.dir, ".tai", "approvals.json")
	if err := os.WriteFile(file, []byte(`{"version":1,"presets":[{`), 0o600); err != nil {
		t.Fatal(err)
	}
	both(rulePresets)
	servedDenied(t, s.call("dir_list", `{}`), rulePresets)
	seedWrite(t, file, `{"version":1,"presets":[{"id":"p-1","effect":"allow","tool":"*"}]}`) // nobody confirmed it
	both(ruleNobody)
	if !strings.Contains(s.stderr(), "1 allow presets are passed over") {
		t.Errorf("%s", s.stderr())
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	both(ruleNobody)
}
