package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// completed gives the candidates for what is typed, as a list shows them, and the line with the only one put in.
func completed(t *testing.T, r *cliRig, typed string) string {
	t.Helper()
	get := func(name string) string {
		for _, kv := range r.environ() {
			if k, v, _ := strings.Cut(kv, "="); k == name {
				return v
			}
		}
		return ""
	}
	a, err := openApp(outside{Getenv: get, Environ: r.environ(), Stdin: strings.NewReader(""), Stdout: &strings.Builder{}, Stderr: &strings.Builder{}, GOOS: "linux", Now: time.Now, Dir: r.dir}, nil, storeWrite, "repl")
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	c := (&replCompleter{app: a, commands: commands()}).complete(t.Context(), typed).sorted()
	if len(c.list) == 1 {
		text := []rune(typed)
		return string(text[:len(text)-c.replace]) + c.list[0].text
	}
	var out []string
	for _, cand := range c.list {
		out = append(out, cand.shown())
	}
	return strings.Join(out, " ")
}

func TestREPLCompletes(t *testing.T) {
	r := newCLIRig(t)
	for _, name := range []string{"docs/sub/deep.md", "docs/two.md", "a b.txt", "note.txt", ".hidden", "nested/x"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(r.dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("docs", filepath.Join(r.dir, "link")); err != nil {
		t.Fatal(err)
	}
	check := func(typed, want string) {
		t.Helper()
		if got := completed(t, r, typed); got != want {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
	check("/mode p", "plan prompt")
	check("/tod", "/todo")
	check("/mcp enable ", "") // without a vault there is no server, and none is made
	for _, typed := range []string{"/mcp call x ", "/call file_re", "/call mcp_", "/call file_read path=", "/tools call sys_info ", "/resume ", "/show ", "/profile use ", "/secret delete ", "/model use ", "/audit show ", "/mcp import lm", "@no"} {
		completed(t, r, typed)
	}
	for _, made := range []string{r.home, r.home + "-config"} {
		if _, err := os.Stat(made); !os.IsNotExist(err) {
			t.Errorf("completion made %s", made)
		}
	}
	r.addFake("fake", fakeStdio{})
	r.tai("profile", "create", "work").ok()
	r.tai("secret", "set", "API_THING", "--from", "env:HOME").ok()

	check("/pro", "/profile")
	check("/profile ", "create delete list use")
	check("/h", "help history")
	check("/ed", "/edit")
	check("/mcp li", "/mcp list")
	check("/mcp list --", "--help --json")
	check("/audit verify --c", "/audit verify --ci")
	check("/mcp disable ", "/mcp disable fake")
	check("/mcp call fa", "/mcp call fake")
	check("/mcp call fake ech", "/mcp call fake echo")
	check("/mcp grant fake echo ad", "/mcp grant fake echo add")
	check("/profile use w", "/profile use work")
	check("/secret delete ", "/secret delete API_THING")
	r.tai("model", "set", "workmodel", "--base-url", "http://127.0.0.1:1/v1", "--model", "m").ok()
	check("/model use wo", "/model use workmodel")
	check("/model test ", "/model test workmodel")
	check("/sho", "/show")
	check("/und", "/undo")
	check("/call file_re", "file_read file_read_hashed")
	check("/tools call mcp_fake_ech", "/tools call mcp_fake_echo")
	check("/call file_read pa", "/call file_read path=")
	check("/call file_read path=no", "/call file_read path=note.txt")
	check("/call file_read path=a", "/call file_read path='a b.txt'")
	check("/call file_read path='a ", "/call file_read path='a b.txt'")
	check("/call file_read path=docs/s", "/call file_read path=docs/sub/")
	check("/call file_read path=docs/", "sub/ two.md")
	check("/help mcp nor", "/help mcp normalize")
	check("/mcp normalize no", "/mcp normalize note.txt")
	check("/mcp import lm", "/mcp import lm-studio")
	check("/nothing x", "")
	check("/call 'unbal", "")

	check("look at @no", "look at @note.txt")
	check("look at @n", "nested/ note.txt")
	check("look at @", "a b.txt docs/ link/ nested/ note.txt")
	check("look at @.", "look at @.hidden")
	check("one\n@link/tw", "one\n@link/two.md")
	check("@/no/such/folder/", "")
	check("plain words no", "")
	check("mail me@no", "")
	check("", "")
}
