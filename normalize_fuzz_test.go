package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// normAgain reads the result of normalize as the configuration that it is: it has to come out as it went in, but for its
// source. Commands are given as lists, which are never split.
func normAgain(t *testing.T, servers []serverEntry, goos string) {
	t.Helper()
	var list []map[string]any
	for _, e := range servers {
		m := normAsMap(t, e)
		if e.Command != "" {
			m["command"] = append([]string{e.Command}, e.Args...)
			delete(m, "args")
		}
		list = append(list, m)
	}
	text, err := json.Marshal(map[string]any{"mcpServers": list})
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > normalizeMax {
		return
	}
	res, err := normalize(text, normalizeOptions{OS: goos})
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	if len(res.Servers) != len(servers) {
		t.Fatalf("%d servers became %d", len(servers), len(res.Servers))
	}
	for i, e := range res.Servers {
		if e.Source = servers[i].Source; !reflect.DeepEqual(normAsMap(t, e), normAsMap(t, servers[i])) {
			t.Errorf("%+v became %+v", servers[i], e)
		}
	}
}

// FuzzNormalize: no input may panic, and what comes out is canonical.
func FuzzNormalize(f *testing.F) {
	inputs, err := filepath.Glob("testdata/corpus/normalize/*/input.*")
	if err != nil || len(inputs) == 0 {
		f.Fatal(len(inputs), err)
	}
	for _, name := range inputs {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(b) < 1<<15 {
			f.Add(b, false)
			f.Add(b, true)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, windows bool) {
		goos := "linux"
		if windows {
			goos = "windows"
		}
		res, err := normalize(b, normalizeOptions{OS: goos})
		if err != nil {
			if len(res.Servers)+len(res.Notes)+len(res.Warnings) > 0 || err.Error() == "" {
				t.Errorf("an error with a result: %+v", res)
			}
			return
		}
		if len(res.Servers) == 0 {
			t.Fatal("neither servers nor an error")
		}
		seen := map[string]bool{}
		for _, e := range res.Servers {
			if err := goodServerName(e.Name); err != nil || seen[e.Name] {
				t.Errorf("server %q: %v, seen %v", e.Name, err, seen[e.Name])
			}
			seen[e.Name] = true
			if (e.Command == "") == (e.URL == "") || (e.Transport == "stdio") != (e.Command != "") {
				t.Errorf("neither a command nor a remote server: %+v", e)
			}
			empty := func(string) (string, bool) { return "", true }
			expandEntry(e, empty, empty) // only must not panic
			entryReferences(e)
		}
		normAgain(t, res.Servers, goos)
	})
}

// A text of any kind is read in about the time of its length: a quarter of what is allowed stays far below a second.
func TestNormalizeHostileText(t *testing.T) {
	fill := func(head, body, tail string) string {
		return head + strings.Repeat(body, (normalizeMax/4-len(head)-len(tail))/len(body)) + tail
	}
	for name, text := range map[string]string{
		"brackets":          fill("", "[{", ""),
		"small numbers":     fill(`{"a":{"command":"x","y":[`, "0,", "0]}}"),
		"open quotes":       fill(`{"a":`, `"\" `, ""),
		"drive paths":       fill(`{"a":"C:\x`, `\" `, `"}`),
		"duplicate keys":    fill(`{"a":{"command":"x",`, `"k":1,"k":2,`, `"z":1}}`),
		"duplicate servers": fill(`{"mcpServers":{`, `"a":{"command":"x"},`, `"b":{"command":"x"}}}`),
		"wrappers":          fill(`{`, `"mcpServers":{"a":{"command":"x"}},`, `"z":1}`),
		"nested maps":       fill(`{"p":[`, `{"mcpServers":{"a":{"command":"x"}}},`, `{}]}`),
		"unnamed":           fill(`[`, `{"command":"npx","args":["p"]},`, `{"command":"npx","args":["p"]}]`),
		"unusable":          fill(`[`, `{"command":5},`, `{"command":5}]`),
		"headers":           fill(`{"a":{"url":"http://h","headers":{`, `"x":"1","X":"2",`, `"z":"1"}}}`),
		"addresses":         fill(`{"a":{"url":[`, `"http://a","http://b",`, `"http://c"]}}`),
		"allow lists":       fill(`{"a":{"command":"x","tools":[`, `"t",`, `"t"],"includeTools":["u"]}}`),
		"references":        fill(`{"a":{"command":"x","args":["`, `${A:-`, `"]}}`),
		"file references":   fill(`{"a":{"command":"x","args":["`, `{file:`, `"]}}`),
		"env references":    fill(`{"a":{"command":"x","args":["`, `${env:{env:`, `"]}}`),
		"placeholders":      fill(`{"a":{"command":"x","env":{"K":"`, `<a`, `"}}}`),
		"dollars":           fill(`{"a":{"command":"x","env":{"K":"`, `$$$`, `"}}}`),
		"several objects":   fill("", `{"command":"npx","args":["p"]},`, ""),
		"fences":            fill("", "```\n", ""),
		"fence pairs":       fill("", "```\nnpx\n```\n", ""),
		"run lines":         fill("", "npx \\\n", ""),
		"prompts":           fill("", "> npx ", ""),
		"quoted run line":   fill("npx ", `'a"`, ""),
		"TOML tables":       fill("", "[mcp_servers.a]\n", ""),
		"TOML keys":         fill("", "a.b=1\n", ""),
		"YAML":              fill("", "a: b\n", ""),
		"log":               fill("", "a log line of no interest 0123456789\n", ""),
		"curly quotes":      fill("", "“", ""),
		"comments":          fill("", "/**/", ""),
		"odd spaces":        fill("", "\u00a0", ""),
		"one word":          fill("", "x", ""),
		"long keys":         fill(`{"`, "k", `":{"command":"x"}}`),
	} {
		start := time.Now()
		res, err := normalize([]byte(text), normalizeOptions{})
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("%s took %v", name, d)
		} else if testing.Verbose() {
			t.Logf("%-18s %8v %d servers, %d warnings, error of %d bytes", name, d.Round(time.Millisecond), len(res.Servers), len(res.Warnings), len(errText(err)))
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func BenchmarkNormalize(b *testing.B) {
	text := []byte(`{
  "mcpServers": {
    "notes": {"command": "npx", "args": ["-y", "@acme/notes-mcp", "/srv/notes"], "env": {"NOTES_TOKEN": "${env:NOTES_TOKEN}", "LEVEL": "debug"}},
    "tracker": {"type": "http", "url": "https://tracker.example.com/mcp", "headers": {"Authorization": "Bearer ${TRACKER_TOKEN}", "X-Team": "blue"}},
    "harbor": {"command": "docker", "args": ["run", "-i", "--rm", "-e", "HARBOR_KEY", "registry.example.com/harbor-mcp"], "env": {"HARBOR_KEY": "${input:harbor-key}"}},
    "ledger": {"command": "uvx", "args": ["ledger-mcp"], "disabled": true, "timeout": 60, "autoApprove": ["list"]}
  }
}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if res, err := normalize(text, normalizeOptions{OS: "linux"}); err != nil || len(res.Servers) != 4 {
			b.Fatal(len(res.Servers), err)
		}
	}
}
