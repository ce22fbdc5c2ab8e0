package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// waysToken is a secret with signs that URLs and JSON escape, and how it may come out.
const waysToken = `made/up+tok"en&0001`

func waysSpellings() []string {
	quoted := strconvJSON(waysToken)
	return []string{waysToken, quoted, strings.ReplaceAll(quoted, "&", `\u0026`), base64.RawStdEncoding.EncodeToString([]byte(waysToken)), "made%2Fup%2Btok%22en%260001", "made%2fup%2btok%22en%260001"}
}

func strconvJSON(s string) string {
	b := appendJSONString(nil, s)
	return string(b[1 : len(b)-1])
}

// hidesAll wants no spelling of the token on any stream.
func (c cliRun) hidesAll() cliRun {
	c.t.Helper()
	for _, s := range waysSpellings() {
		c.hides(s)
	}
	return c
}

// AUD-09, AUD-10: a server says the token it was given in every place it can; no way out of tai shows it.
func TestAUD09WaysOut(t *testing.T) {
	t.Parallel()
	r, web := newCLIRig(t), newFakeHTTP(t)
	r.with(waysToken, "secret", "set", "WEB_TOKEN", "--from", "-").ok()
	all := strings.Join(waysSpellings(), " ")
	quoted := string(appendJSONString(nil, all))
	tools := func(more string) {
		alwaysAnswer(web, methodToolsList, fmt.Sprintf(`{"tools":[{"name":"echo","title":%[1]s,"description":%[2]s,"inputSchema":{"type":"object","title":%[1]s,"properties":{"x":{"type":"string","description":%[1]s,"default":%[1]s}}},"annotations":{"title":%[1]s}},
			{"name":%[3]s,"description":"d","inputSchema":{"type":"object"}},{"name":"broken","description":"d","inputSchema":{"type":%[1]s}}]}`, quoted, string(appendJSONString(nil, all+more)), string(appendJSONString(nil, "n"+waysToken))))
	}
	tools("")
	r.tai("mcp", "add", "--yes", "web", web.URL+"/mcp?key=${WEB_TOKEN}", "--header", "Authorization: Bearer ${WEB_TOKEN}").hidesAll().ok()
	for _, words := range [][]string{{"mcp", "tools"}, {"mcp", "tools", "--stored"}, {"tools", "list"}, {"mcp", "list"}, {"mcp", "check", "web"}, {"mcp", "normalize", "web"}, {"mcp", "enable", "web"}, {"secret", "list"}, {"profile", "list"}, {"audit", "list"},
		{"mcp", "add", "web", "--yes"}, {"tools", "call", "mcp_tools"}, {"tools", "call", "mcp_list"}} {
		r.tai(words...).hidesAll().ok()
		r.tai(append(words, "--json")...).hidesAll().ok()
	}
	call := func(words ...string) cliRun {
		run := r.tai(append([]string{"mcp", "call", "web", "echo"}, words...)...).hidesAll()
		r.tai(append([]string{"mcp", "call", "web", "echo", "--json"}, words...)...).hidesAll()
		return run
	}
	call("x="+waysToken, `y={"deep":[`+string(appendJSONString(nil, waysToken))+`]}`).outHas("[secret:WEB_TOKEN]")
	alwaysAnswer(web, methodToolsCall, fmt.Sprintf(`{"content":[{"type":"text","text":%[1]s},{"type":"resource_link","uri":%[1]s,"name":"n"}],"structuredContent":{"v":%[1]s},"isError":true}`, quoted))
	call()
	alwaysAnswer(web, methodToolsCall, fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, string(appendJSONString(nil, strings.Repeat(all+"\n", 1000)))))
	if big := call(); !strings.Contains(big.out, "record") {
		t.Errorf("no record: %.300s", big.out)
	}
	for _, id := range cliJSON[struct{ Records []recordJSON }](r.tai("record", "list", "--json").hidesAll()).Records {
		r.tai("record", "show", id.ID).hidesAll().outHas("[secret:WEB_TOKEN]")
	}
	r.tai("record", "search", "secret").hidesAll()
	web.on(methodToolsCall, func(w http.ResponseWriter, req fakeHTTPRequest) {
		web.send(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s,"data":%[2]s}}`, req.RPC.ID, quoted))
	})
	call()
	web.on(methodToolsCall, fakeHTTPStatus(500, "text/plain", all))
	call()
	tools(" changed")
	if got := r.tai("mcp", "check", "web").hidesAll(); got.code != exitRefused {
		t.Errorf("check: exit %d", got.code)
	}
	r.tai("mcp", "check", "web", "--json").hidesAll()
	r.tai("mcp", "grant", "web", "echo", "--yes").hidesAll().ok()
	web.on(methodInitialize, fakeHTTPStatus(502, "text/html", "<b>"+all+"</b> "+web.URL+"/mcp?key="+waysToken))
	r.tai("mcp", "check", "web").hidesAll()
	r.tai("mcp", "add", "web", "--yes", "--json").hidesAll()
	// A started server that dies with its variable on stderr.
	e := stdioEntry(t, "s", fakeStdio{On: on(methodInitialize, fakeStep{Err: "bad " + all, Exit: 3})})
	r.tai("mcp", "add", "s", "--yes", "--env", "A_TOKEN=${WEB_TOKEN}", "--env", "TAI_TEST_FAKE=stdio", "--env", "TAI_FAKE_STDIO="+e.Env["TAI_FAKE_STDIO"], "--", e.Command).hidesAll()
	// A person's own words come back in no message and no log.
	r.tai("tools", "call", "no_such_tool", "x="+waysToken).hidesAll()
	r.tai("tools", "call", "file_read", "path="+waysToken).hidesAll()
	r.tai("mcp", "call", "web", "x"+waysToken).hidesAll()
	waysOnDisk(t, r.home)

	// What a model is offered, and its own words.
	a := knownApp(t, r)
	defs, err := a.bridge.offered(t.Context())
	if err != nil || len(defs) == 0 {
		t.Fatalf("offered: %d, %v", len(defs), err)
	}
	offered, err := json.Marshal(defs)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(waysSpellings(), strconvJSON(strconvJSON(waysToken))) {
		if strings.Contains(string(offered), s) {
			t.Errorf("a model is offered %q: %s", s, offered)
		}
	}
}

// waysOnDisk wants the token in no file of the home: not in a run log, a record or what the vault keeps of a server's tools.
func waysOnDisk(t *testing.T, home string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(home, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		files++
		for _, s := range waysSpellings() {
			if bytes.Contains(b, []byte(s)) {
				t.Errorf("%s holds %q", name, s)
			}
		}
		return err
	})
	if logs, _ := filepath.Glob(filepath.Join(home, "runs", "*")); err != nil || len(logs) == 0 || files <= len(logs) {
		t.Fatalf("%d files, %d of them logs: %v", files, len(logs), err)
	}
}
