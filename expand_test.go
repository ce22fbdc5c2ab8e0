package main

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func expandLookup(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func TestExpandCorpus(t *testing.T) {
	for _, dir := range normCorpus(t, "expand", 35) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var in struct {
				Entry      serverEntry
				Env, Vault map[string]string
			}
			var want struct {
				Entry, Display map[string]any
				Refuse         string
				RefuseAlso     []string `json:"refuse_also"`
			}
			if err := json.Unmarshal(normRead(t, filepath.Join(dir, "input.json")), &in); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(normRead(t, filepath.Join(dir, "expect.json")), &want); err != nil {
				t.Fatal(err)
			}
			before := normAsMap(t, in.Entry)
			expanded, display, err := expandEntry(in.Entry, expandLookup(in.Env), expandLookup(in.Vault))
			if !reflect.DeepEqual(normAsMap(t, in.Entry), before) {
				t.Error("the stored entry was changed")
			}
			if want.Refuse == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got := normAsMap(t, expanded); !reflect.DeepEqual(got, want.Entry) {
					t.Errorf("got %v, want %v", got, want.Entry)
				}
				return
			}
			if err == nil {
				t.Fatalf("expanded to %+v, want a refusal with %q", expanded, want.Refuse)
			}
			for _, w := range append(want.RefuseAlso, want.Refuse, in.Entry.Name) {
				if !normHas([]string{err.Error()}, w) {
					t.Errorf("error %q, want %q in it", err, w)
				}
			}
			if got := normAsMap(t, display); want.Display != nil && !reflect.DeepEqual(got, want.Display) {
				t.Errorf("display %v, want %v", got, want.Display)
			}
		})
	}
}

// CFG-05: a missing name refuses the start; a value is put in as it is, whatever it looks like.
func TestExpandCFG05(t *testing.T) {
	e := serverEntry{Name: "a", Transport: "stdio", Command: "x", Args: []string{"${MISSING}"}, Source: "explicit"}
	_, display, err := expandEntry(e, expandLookup(nil), expandLookup(nil))
	if err == nil || !strings.Contains(err.Error(), "MISSING") || display.Args[0] != "${MISSING}" {
		t.Errorf("display %q, %v, want a refusal that names MISSING", display.Args, err)
	}
	asked := 0
	env := func(name string) (string, bool) {
		asked++
		v, ok := map[string]string{"VALUE": "${OTHER} $(id) $${X} ${", "OTHER": "no"}[name]
		return v, ok
	}
	e.Args = []string{"-${VALUE}-"}
	out, _, err := expandEntry(e, env, expandLookup(nil))
	if err != nil || out.Args[0] != "-${OTHER} $(id) $${X} ${-" || asked != 1 {
		t.Errorf("got %q after %d questions, %v", out.Args, asked, err)
	}
}

// F01: all five fields expand alike; the error names server, field and variable; the bad entry does not touch the other.
func TestExpandF01(t *testing.T) {
	const in = `{"mcpServers": {
  "docs": {"url": "${DOCS_BASE}/mcp", "headers": {"X-Team": "${TEAM:-blue}"}},
  "calc": {"command": "${CALC_BIN:-calc-server}", "args": ["--mode=${MODE}", "$MODE"], "env": {"KEY": "k-${SUFFIX:-0}"}}}}`
	res, err := normalize([]byte(in), normalizeOptions{})
	if err != nil || len(res.Servers) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	docs, calc := res.Servers[0], res.Servers[1]
	if docs.URL != "${DOCS_BASE}/mcp" || calc.Args[0] != "--mode=${MODE}" || calc.Env["KEY"] != "k-${SUFFIX:-0}" {
		t.Errorf("what is stored does not keep the references: %+v %+v", docs, calc)
	}
	env, none := expandLookup(map[string]string{"DOCS_BASE": "http://127.0.0.1:9100"}), expandLookup(nil)
	out, _, err := expandEntry(docs, env, none)
	if err != nil || out.URL != "http://127.0.0.1:9100/mcp" || out.Headers["X-Team"] != "blue" {
		t.Errorf("docs: %+v, %v", out, err)
	}
	out, display, err := expandEntry(calc, env, none)
	if err == nil || !reflect.DeepEqual(out, serverEntry{}) {
		t.Fatalf("calc: %+v, %v, want a refusal and no entry", out, err)
	}
	for _, want := range []string{`"calc"`, "args[0]", "MODE"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q in it", err, want)
		}
	}
	if strings.Contains(err.Error(), "args[1]") || strings.Contains(err.Error(), "SUFFIX") {
		t.Errorf("error %q names what is not missing", err)
	}
	if display.Command != "calc-server" || display.Args[0] != "--mode=${MODE}" || display.Args[1] != "$MODE" || display.Env["KEY"] != "k-0" {
		t.Errorf("display: %+v", display)
	}
}

func TestExpandRules(t *testing.T) {
	env := expandLookup(map[string]string{"A": "a", "EMPTY": "", "NL": "x\r\ny", "HOST": "h.example.com"})
	vault := expandLookup(map[string]string{"EMPTY": "vault", "V": "v", "my key": "k", "a-b.c": "d"})
	for _, tc := range []struct {
		name, in, want string
		err            string // pieces joined by |
	}{
		{name: "empty in the environment is set", in: "[${EMPTY}]", want: "[]"},
		{name: "empty takes the default", in: "${EMPTY:-d}", want: "d"},
		{name: "braces in a default", in: "${N:-{a}}b", want: "{a}b"},
		{name: "escape in a default", in: "${N:-$${A}}", want: "${A}"},
		{name: "default with its own default", in: "${N:-${M:-${A}}}", want: "a"},
		{name: "unused default is not looked at", in: "${A:-${file:x} ${input:no}}", want: "a"},
		{name: "three dollars", in: "$$${A}", want: "$${A}"},
		{name: "dollar before a reference", in: "$${A} ${A}$", want: "${A} a$"},
		{name: "input id with a space", in: "${input:my key}", want: "k"},
		{name: "name with dash and dot", in: "${a-b.c}", want: "d"},
		{name: "vault only", in: "${V}", want: "v"},
		{name: "input not from the environment", in: "${input:A}", err: "A|vault"},
		{name: "several missing in one text", in: "${X1}-${X2}-${A}", err: "X1|X2"},
		{name: "missing in a used default", in: "${N:-x${X3}}", err: "X3"},
		{name: "question mark form", in: "${A:?no}", err: "${A:?no}"},
		{name: "plus form", in: "${A:+no}", err: "${A:+no}"},
		{name: "digit first", in: "${1}", err: "${1}"},
		{name: "space inside", in: "${ A }", err: "${ A }"},
		{name: "other program's env", in: "${env:A}", err: "${env:A}"},
		{name: "double braces", in: "${{ secrets.A }}", err: "${{ secrets.A }}"},
		{name: "empty input", in: "${input:}", err: "${input:}"},
		{name: "never closed", in: "x${A", err: "${A"},
		{name: "closed by the wrong one", in: "${N:-{a}", err: "${N:-{a}"},
		{name: "editor variable", in: "${workspaceFolder}/x", err: "workspaceFolder"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := serverEntry{Name: "s", Transport: "stdio", Command: "x", Env: map[string]string{"F": tc.in}}
			out, display, err := expandEntry(e, env, vault)
			if tc.err == "" {
				if err != nil || out.Env["F"] != tc.want || !reflect.DeepEqual(out, display) {
					t.Errorf("%q, %v, want %q", out.Env["F"], err, tc.want)
				}
				return
			}
			for _, want := range append(strings.Split(tc.err, "|"), `"s"`, "env.F") {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q in the error", err, want)
				}
			}
		})
	}
	for _, tc := range []struct {
		name string
		e    serverEntry
		err  string
	}{
		{"line break in a header", serverEntry{Transport: "http", URL: "http://h", Headers: map[string]string{"X-K": "${NL}"}}, "X-K"},
		{"address without scheme", serverEntry{Transport: "http", URL: "${HOST}/mcp"}, "http://"},
		{"empty command", serverEntry{Transport: "stdio", Command: "${EMPTY}"}, "command"},
		{"no command", serverEntry{Transport: "stdio"}, "command"},
		{"no address", serverEntry{Transport: "http"}, "url"},
	} {
		if _, _, err := expandEntry(tc.e, env, vault); err == nil || !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v, want %q in the error", tc.name, err, tc.err)
		}
	}
	// An unresolved address is not blamed for its scheme as well.
	if _, _, err := expandEntry(serverEntry{Transport: "http", URL: "${NOPE}/mcp"}, env, vault); err == nil || strings.Contains(err.Error(), "http://") {
		t.Errorf("%v, want only the missing name", err)
	}
}

// Long and deep texts cost no more than their length, and errors stay short.
func TestExpandHostile(t *testing.T) {
	none := expandLookup(nil)
	for name, text := range map[string]string{
		"open":    strings.Repeat("${", 500000),
		"nested":  strings.Repeat("${A:-", 200000) + strings.Repeat("}", 200000),
		"unknown": strings.Repeat("${{", 300000) + strings.Repeat("}", 600000),
	} {
		start := time.Now()
		_, _, err := expandEntry(serverEntry{Name: "s", Transport: "stdio", Command: "x", Args: []string{text}}, none, none)
		if err == nil || len(err.Error()) > 1000 {
			t.Errorf("%s: %.200v", name, err)
		}
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("%s took %v", name, d)
		}
	}
}

func TestEntryReferences(t *testing.T) {
	e := serverEntry{Name: "${NO}", Cwd: "${NO}", Command: "${BIN:-x}", Args: []string{"${A}${A}", "$${NO} ${} ${file:NO}", "${B:-${C:-${input:d}}}"},
		Env: map[string]string{"K": "${A}"}, Headers: map[string]string{"H": "Bearer ${input:tok}"}, URL: "${U}/mcp"}
	want := []entryRef{
		{"command", "BIN", false, true}, {"args[0]", "A", false, false}, {"args[2]", "B", false, true}, {"args[2]", "C", false, true}, {"args[2]", "d", true, true},
		{"env.K", "A", false, false}, {"url", "U", false, false}, {"headers.H", "tok", true, false},
	}
	if got := entryReferences(e); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
