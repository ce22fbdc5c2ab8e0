//go:build !windows

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// importRig is a command line whose home folder has these files; .cursor/mcp.json is the first.
func importRig(t *testing.T, cursor string, more ...string) *cliRig {
	t.Helper()
	r := newCLIRig(t)
	importWrite(t, filepath.Join(r.dir, ".cursor/mcp.json"), cursor)
	for i := 0; i+1 < len(more); i += 2 {
		importWrite(t, filepath.Join(r.dir, more[i]), more[i+1])
	}
	return r
}

func cursorFile(entries ...string) string {
	return `{"mcpServers":{` + strings.Join(entries, ",") + `}}`
}

// states gives name=state of each server in the document of a run.
func (c cliRun) states() string {
	c.t.Helper()
	var out []string
	for _, s := range cliJSON[importDoc](c).Servers {
		out = append(out, s.Name+"="+s.State)
	}
	return strings.Join(out, " ")
}

// CFG-02, CFG-03, CFG-04: looking starts nothing and writes nothing, shows what would run, and without a person nothing comes in unless --yes.
func TestImportLooks(t *testing.T) {
	t.Parallel()
	token := moveToken(21)
	r := importRig(t, cursorFile(`"bad":{"command":"sh","args":["-c","touch started"]}`, `"sec":{"command":"x","args":["--api-key","`+token+`","a b"],"env":{"T_KEY":"`+token+`"}}`,
		`"web":{"url":"https://h.test/mcp?api_key=`+token+`","headers":{"X-Key":"`+token+`"}}`))
	for _, words := range [][]string{{"--dry-run"}, {}, {"--json"}, {"--dry-run", "--json"}} {
		got := r.tai(append([]string{"mcp", "import"}, words...)...)
		if want := map[bool]int{true: exitDone, false: exitRefused}[len(words) > 0 && words[0] == "--dry-run"]; got.code != want {
			t.Errorf("%v: exit %d, want %d", words, got.code, want)
		}
		got.hides(token)
		if len(words) == 0 {
			got.outHas(`sh -c 'touch started'`, "dangerous: sh -c runs a script", `x --api-key '[secret]' 'a b'`, "variables T_KEY", "headers X-Key", "from cursor ~/.cursor/mcp.json")
			got.errHas("3 servers could be imported", "--yes")
		}
	}
	for _, path := range []string{r.home, filepath.Join(r.dir, "started")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is there", path)
		}
	}
	if got := r.tai("mcp", "import", "--yes", "--permission-mode", "read-only"); got.code != exitRefused {
		t.Errorf("read-only: exit %d", got.code)
	}
	if len(r.servers()) != 0 {
		t.Error("read-only imports")
	}
	r.tai("mcp", "import", "nothing").fails(exitUsage, "no such app", "claude-desktop", "project")
	r.tai("mcp", "import", "--server", "nothing").fails(exitFailed, "no app has a server named")
	r.tai("mcp", "import", "--move-secrets", "--keep-secrets").fails(exitUsage, "exclude")
}

// What comes in is disabled and unchecked; it says so when it is imported again, and adding it by name checks and enables it. CFG-01: another
// content under its name is shown, and replaces it only where it is named.
func TestImportStores(t *testing.T) {
	t.Parallel()
	r := importRig(t, cursorFile(`"s":`+fakeConfig(t, ""), `"o":{"command":"o-mcp","env":{"A":"1"}}`))
	first := r.tai("mcp", "import", "cursor", "--yes", "--json")
	first.ok()
	if got := first.states(); got != "s=imported o=imported" {
		t.Errorf("first: %s", got)
	}
	for _, s := range r.servers() {
		if s.State != statusDisabled || s.Source != "import:cursor" || s.Tools != 0 {
			t.Errorf("stored: %+v", s)
		}
	}
	r.tai("mcp", "call", "s", "echo", "x=y").fails(exitRefused, "not enabled")
	r.tai("mcp", "enable", "s").ok()
	r.tai("mcp", "tools", "s").fails(exitRefused, "tai mcp add s")
	r.tai("mcp", "add", "s", "--yes").ok()
	r.tai("mcp", "call", "s", "echo", "x=y").ok()
	importWrite(t, filepath.Join(r.dir, ".cursor/mcp.json"), cursorFile(`"s":`+fakeConfig(t, `,"args":["new"]`), `"o":{"command":"o-mcp","env":{"A":"2"}}`, `"n":{"command":"n-mcp"}`))
	again := r.tai("mcp", "import", "--yes")
	again.ok()
	again.outHas("s  differs", "+ argv[1]: new", "only values of variables or headers differ", "n: imported")
	again.errHas("--yes --server s replaces it")
	if e := r.entryOf("s"); len(e.Args) != 0 {
		t.Errorf("replaced without being named: %+v", e)
	}
	named := r.tai("mcp", "import", "--yes", "--server", "s", "--json")
	named.ok()
	if got := named.states(); got != "s=imported" || len(r.entryOf("s").Args) != 1 {
		t.Errorf("named: %s", got)
	}
	for _, s := range r.servers() {
		if s.State != statusDisabled || s.Tools != 0 {
			t.Errorf("after: %+v", s)
		}
	}
	if got := r.tai("mcp", "import", "--dry-run", "--json").states(); got != "s=stored o=differs n=stored" {
		t.Errorf("last: %s", got)
	}
}

// Two of one name come in under two names, and are both known again, whichever app is read.
func TestImportNames(t *testing.T) {
	t.Parallel()
	r := importRig(t, cursorFile(`"files":{"command":"one"}`), ".lmstudio/mcp.json", cursorFile(`"files":{"command":"two"}`))
	r.tai("mcp", "import", "--yes").ok()
	if a, b := r.entryOf("files"), r.entryOf("files-lm-studio"); a.Command != "one" || b.Command != "two" || b.Source != "import:lm-studio" {
		t.Errorf("stored %+v and %+v", a, b)
	}
	r.tai("mcp", "import", "--yes").errHas("note: nothing new to import")
	for app, want := range map[string]string{"": "files=stored files-lm-studio=stored", "cursor": "files=stored", "lm-studio": "files-lm-studio=stored"} {
		if got := r.tai(append([]string{"mcp", "import", "--dry-run", "--json"}, strings.Fields(app)...)...).states(); got != want {
			t.Errorf("%q: %s, want %s", app, got, want)
		}
	}
}

// Secrets move into the vault on request, and the server is the same as before to the next import.
func TestImportMoves(t *testing.T) {
	t.Parallel()
	token := moveToken(22)
	r := importRig(t, cursorFile(`"web":{"url":"https://h.test/mcp","headers":{"Authorization":"Bearer `+token+`"}}`, `"ref":{"command":"x","args":["${NOT_THERE}"]}`))
	got := r.tai("mcp", "import", "--yes", "--move-secrets")
	got.ok()
	got.hides(token)
	got.errHas("in the vault as WEB_TOKEN", "NOT_THERE is set neither")
	if e := r.entryOf("web"); e.Headers["Authorization"] != "Bearer ${WEB_TOKEN}" || r.secretNames() != "WEB_TOKEN" {
		t.Errorf("stored %v, secrets %q", e.Headers, r.secretNames())
	}
	if got := r.tai("mcp", "import", "--dry-run", "--json").states(); got != "web=stored ref=stored" {
		t.Errorf("again: %s", got)
	}
}

// --enable checks each live as tai mcp add does: one that fails stops no other.
func TestImportEnables(t *testing.T) {
	t.Parallel()
	r := importRig(t, cursorFile(`"gone":{"command":"`+filepath.Join(t.TempDir(), "gone")+`"}`, `"s":`+fakeConfig(t, ""), `"off":`+fakeConfig(t, `,"disabled":true`)))
	got := r.tai("mcp", "import", "--yes", "--enable", "--json")
	if got.code != exitFailed || got.states() != "gone=failed s=enabled off=disabled" {
		t.Errorf("exit %d: %s", got.code, got.out)
	}
	r.tai("mcp", "call", "s", "echo", "x=y").ok()
}

// CFG-06: what does not fit is refused with how much does; a broken file fails what named its app, and nothing else.
func TestImportRoom(t *testing.T) {
	t.Parallel()
	var list []string
	for i := range mcpMaxServers + 2 {
		list = append(list, fmt.Sprintf(`"s%02d":{"command":"x%d"}`, i, i))
	}
	r := importRig(t, cursorFile(list...), ".lmstudio/mcp.json", "{")
	r.tai("mcp", "import", "cursor", "--dry-run").errHas("34 new servers", "room for 32")
	full := r.tai("mcp", "import", "cursor", "--yes")
	if full.code != exitFailed || len(r.servers()) != 0 {
		t.Errorf("exit %d, stored %d", full.code, len(r.servers()))
	}
	full.errHas("chosen: 34 new servers, and 32 fit", "tai mcp remove")
	importWrite(t, filepath.Join(r.dir, ".cursor/mcp.json"), cursorFile(list[:mcpMaxServers]...))
	some := r.tai("mcp", "import", "--yes")
	some.ok()
	some.errHas("lm-studio", "was not read", "line 1")
	if n := len(r.servers()); n != mcpMaxServers {
		t.Errorf("stored %d", n)
	}
	importWrite(t, filepath.Join(r.dir, ".cursor/mcp.json"), cursorFile(list[mcpMaxServers]))
	r.tai("mcp", "import", "--yes").errHas("chosen: 1 new server, and 0 fit")
	for words, code := range map[string]int{"lm-studio": exitFailed, "cursor": exitDone, "project": exitDone, "gemini": exitDone, "": exitDone} {
		if got := r.tai(append([]string{"mcp", "import", "--dry-run"}, strings.Fields(words)...)...); got.code != code {
			t.Errorf("%q: exit %d, want %d\n%s", words, got.code, code, got.err)
		}
	}
}
