package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestGlobMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, s string
		want       bool
	}{
		{"a", "a", true}, {"a", "A", false}, {"a", "ab", false}, {"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a/b", true}, {"a*", "abc", true}, {"*c", "abc", true}, {"a*c", "ac", true},
		{"a*c", "abd", false}, {"a*b*c", "a-b-b-c", true}, {"a*a", "a", false}, {"ab*ba", "aba", false}, {"mcp:files/read_*", "mcp:files/read_file", true}, {"mcp:files/*", "mcp:files2/x", false},
		{"a?", "ab", false}, {"[a]", "a", false}, {"**", "x", true}, {"*b*", "abc", true}, {"*b*", "ac", false}, {strings.Repeat("*a", 50), strings.Repeat("a", 5000) + "b", false},
	} {
		if got := globMatch(tc.pattern, tc.s); got != tc.want {
			t.Errorf("globMatch(%.20q, %.20q) = %v", tc.pattern, tc.s, got)
		}
	}
}

func TestCheckScoped(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	for s, want := range map[string]bool{"file_write:" + hash: true, "mcp:files/w:" + hash: true, ":" + hash: false, hash: false, "x:" + strings.ToUpper(hash): false, "x:" + hash[1:]: false, "x:" + hash + "\n": false, "": false} {
		if err := checkScoped(s); (err == nil) != want {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func presetTestCall(tool, args, pin string) presetCall {
	c := presetCall{Tool: tool, Pin: pin, Args: json.RawMessage(args)}
	if tool == "shell_run" {
		c.Command, _ = argumentString(c.Args, "command")
		c.Shell = classifyShell(c.Command, shellScope{})
	}
	return c
}

// TestPresetCovers: what allows and denies reach; SHL-13 and POL-10 at the preset's level.
func TestPresetCovers(t *testing.T) {
	pin := strings.Repeat("a", 64)
	command := func(c string) string { return `{"command":` + string(appendJSONString(nil, c)) + `}` }
	docs := preset{Tool: "file_write", Arguments: map[string]string{"path": "docs/*"}}
	test := preset{Tool: "shell_run", Command: "go test"}
	clean := preset{Tool: "shell_*", Command: "git clean"}
	for _, tc := range []struct {
		ps           preset
		call         presetCall
		allow, deny_ bool
	}{
		{docs, presetTestCall("file_write", `{"path":"docs/a"}`, ""), true, true},
		{docs, presetTestCall("file_write", `{"path":"docs/../secret"}`, ""), false, true},
		{docs, presetTestCall("file_write", `{"path":"./docs/a"}`, ""), false, true},
		{docs, presetTestCall("file_write", `{"path":"src/a"}`, ""), false, false},
		{docs, presetTestCall("file_write", `{"path":5}`, ""), false, false},
		{docs, presetTestCall("file_write", `{"Path":"docs/a"}`, ""), false, false},
		{docs, presetTestCall("file_write", `{`, ""), false, false},
		{docs, presetTestCall("file_read", `{"path":"docs/a"}`, ""), false, false},
		{preset{Tool: "mcp:f/*", Pin: pin}, presetTestCall("mcp:f/x", `{}`, pin), true, true},
		{preset{Tool: "mcp:f/*", Pin: pin}, presetTestCall("mcp:f/x", `{}`, ""), false, true}, // POL-10; a deny needs no pin
		{test, presetTestCall("shell_run", command("go test ./..."), ""), true, true},
		{test, presetTestCall("shell_run", command("go test && ls | wc -l"), ""), true, true},
		{test, presetTestCall("shell_run", command("go test; rm x"), ""), false, true},
		{test, presetTestCall("shell_run", command("go test > f"), ""), false, true},
		{test, presetTestCall("shell_run", command("go test $(rm x)"), ""), false, true},
		{test, presetTestCall("shell_run", command("go build"), ""), false, false},
		{test, presetTestCall("shell_run", command("GOFLAGS=x go test"), ""), false, true},
		{test, presetTestCall("shell_run", `{"command":"go test","env":{"A":"b"}}`, ""), false, true},
		{test, presetTestCall("shell_run", `{"command":"go test","timeout_s":5}`, ""), true, true},
		{test, presetTestCall("file_read", `{}`, ""), false, false},
		{clean, presetTestCall("shell_run", command("git fetch && git clean -fd"), ""), false, true}, // SHL-13
		{clean, presetTestCall("shell_run", command(`bash -c "git clean"`), ""), false, true},
		{clean, presetTestCall("shell_run", command("X=git; $X clean; env git clean"), ""), false, true},
		{clean, presetTestCall("shell_run", command("cat <<E | sh\ngit clean\nE"), ""), false, true},
		{clean, presetTestCall("shell_run", command(`echo "`), ""), false, true}, // a parser that fails means no
		{clean, presetTestCall("shell_run", command("git commit -m 'git clean'"), ""), false, false},
		{clean, presetTestCall("shell_run", command("git $(echo clean) -fd"), ""), false, true}, // what a shell fills in may be it
		{clean, presetTestCall("shell_run", command("git -C x ${c} -fd"), ""), false, true},
		{clean, presetTestCall("shell_run", command("A=1 $G clean"), ""), false, true},
		{clean, presetTestCall("shell_run", command("sudo $G clean"), ""), false, true},
		{clean, presetTestCall("shell_run", command("git cl\"$X\"ean"), ""), false, true},
		{clean, presetTestCall("shell_run", command("git $'\\x63lean'"), ""), false, true},
		{clean, presetTestCall("shell_run", command("{git,clean,-fd}"), ""), false, true},
		{clean, presetTestCall("shell_run", command("git {clean,-fd}"), ""), false, true},
		{clean, presetTestCall("shell_run", command("/usr/bin/g?t cl*"), ""), false, true},
		{clean, presetTestCall("shell_run", command("`echo git` clean"), ""), false, true},
		{clean, presetTestCall("shell_run", command("git commit -m \"$MSG\""), ""), false, false},
		{clean, presetTestCall("shell_run", command("git log *.go; cat x* | grep $Y"), ""), false, false},
		{clean, presetTestCall("shell_run", command("X='git clean'; $X -fd"), ""), false, true},
		{clean, presetTestCall("shell_run", command("cc -c $F && echo $X clean"), ""), false, false},
		{preset{Tool: "shell_run"}, presetTestCall("shell_run", command("rm x > y"), ""), true, true},
		{preset{Tool: "shell_run"}, presetTestCall("shell_run", command("'"), ""), false, true},
		{preset{Tool: "*", Command: "git"}, presetTestCall("file_read", `{}`, ""), false, false},
	} {
		tc.ps.Effect = "allow"
		if got := tc.ps.allows(tc.call); got != tc.allow {
			t.Errorf("%+v allows %s %s: %v", tc.ps, tc.call.Tool, tc.call.Args, got)
		}
		if tc.ps.denies(tc.call) {
			t.Errorf("an allow preset denies: %+v", tc.ps)
		}
		tc.ps.Effect = "deny"
		if got := tc.ps.denies(tc.call); got != tc.deny_ {
			t.Errorf("%+v denies %s %s: %v", tc.ps, tc.call.Tool, tc.call.Args, got)
		}
		if tc.ps.allows(tc.call) {
			t.Errorf("a deny preset allows: %+v", tc.ps)
		}
	}
}

// ROO-02: a deny of a path holds however the path is written, and where a link leads.
func TestPresetDeniesEveryForm(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(base, "w")
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "secrets"), 0o700), os.MkdirAll(filepath.Join(root, "docs"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "secrets"), filepath.Join(root, "docs", "way")); err != nil {
		skipMissing(t, "no symbolic links here")
	}
	slash := filepath.ToSlash(root)
	for _, pattern := range []string{"secrets/*", slash + "/secrets/*"} {
		p := newPolicy(policyConfig{Mode: modeDanger, Root: root, Presets: []preset{{ID: "p-1", Effect: "deny", Tool: "file_*", Arguments: map[string]string{"path": pattern}}}})
		for path, want := range map[string]bool{"secrets/a": true, "./secrets//a": true, "docs/../secrets/a": true, slash + "/secrets/a": true, slash + "/docs/../secrets/new/b": true, "docs/way/a": true, "docs/way/new/a": true,
			slash + "/docs/way/a": true, "docs/a": false, "secrets2/a": false, slash + "/docs/a": false, "": false, "x\u0000": false} {
			args, err := json.Marshal(map[string]string{"path": path})
			if err != nil {
				t.Fatal(err)
			}
			if f := p.foresee(policyRequest{Tool: "file_read", Args: args}); (f.Rule == ruleDeny+"p-1") != want {
				t.Errorf("%s against %q: %s, want denied %v", pattern, path, f.Rule, want)
			}
		}
	}
}

func presetTestDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), ".tai")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const presetTestApprovals = `{"version":1,"presets":[{"id":"p-3f2a","effect":"allow","tool":"file_write","arguments":{"path":"docs/*"},"created":"2026-01-02T03:04:05Z"},
 {"id":"p-9c11","effect":"deny","tool":"shell_run","command":"git clean"}]}`

// TestCFG02Workspace: what widens counts only where this very file was confirmed; what narrows always does.
func TestCFG02Workspace(t *testing.T) {
	config := `{"version":1,"permission_mode":"danger-full-access","rate_limits":{"shell_run":{"calls":10,"per_s":60}}}`
	dir := presetTestDir(t, map[string]string{"approvals.json": presetTestApprovals, "config.json": config})
	w, err := loadWorkspacePolicy(dir, nil)
	if err != nil || w.Mode != "" || len(w.Presets) != 1 || w.Presets[0].ID != "p-9c11" || len(w.Notes) != 2 || w.Rates["shell_run"] != (rateLimit{10, 60}) {
		t.Errorf("unconfirmed: %+v, %v", w, err)
	}
	known := map[string]bool{sha256Hex([]byte(presetTestApprovals)): true, sha256Hex([]byte(config)): true}
	w, err = loadWorkspacePolicy(dir, func(s string) bool { return known[s] })
	if err != nil || w.Mode != modeDanger || len(w.Presets) != 2 || len(w.Notes) != 0 || w.Presets[0].Arguments["path"] != "docs/*" {
		t.Errorf("confirmed: %+v, %v", w, err)
	}
	if w, err = loadWorkspacePolicy(presetTestDir(t, map[string]string{"config.json": `{"version":1,"permission_mode":"read-only"}`}), nil); err != nil || w.Mode != modeReadOnly {
		t.Errorf("narrower: %+v, %v", w, err)
	}
	if w, err = loadWorkspacePolicy(filepath.Join(dir, "missing"), nil); err != nil || !reflect.DeepEqual(w, workspacePolicy{}) {
		t.Errorf("none: %+v, %v", w, err)
	}
}

// TestPOL09BadFiles: a policy file that cannot be relied on stops the start and is named.
func TestPOL09BadFiles(t *testing.T) {
	approvals := func(s string) map[string]string { return map[string]string{"approvals.json": s} }
	config := func(s string) map[string]string { return map[string]string{"config.json": s} }
	for name, files := range map[string]map[string]string{
		"cut": approvals(presetTestApprovals[:60]), "empty": approvals(""), "text": approvals("deny all"), "unknown field": approvals(`{"version":1,"presets":[],"x":1}`),
		"unknown preset field": approvals(`{"version":1,"presets":[{"id":"p","effect":"deny","tool":"x","paths":[]}]}`), "case": approvals(`{"version":1,"Presets":[]}`),
		"twice": approvals(`{"version":1,"presets":[],"presets":[]}`), "version": approvals(`{"version":2,"presets":[]}`), "effect": approvals(`{"version":1,"presets":[{"id":"p","effect":"Deny","tool":"x"}]}`),
		"no id": approvals(`{"version":1,"presets":[{"effect":"deny","tool":"x"}]}`), "same id": approvals(`{"version":1,"presets":[{"id":"p","effect":"deny","tool":"x"},{"id":"p","effect":"deny","tool":"y"}]}`),
		"no tool": approvals(`{"version":1,"presets":[{"id":"p","effect":"deny","tool":""}]}`), "pin": approvals(`{"version":1,"presets":[{"id":"p","effect":"allow","tool":"x","pin":"ab"}]}`),
		"blank command": approvals(`{"version":1,"presets":[{"id":"p","effect":"deny","tool":"x","command":" "}]}`), "large": approvals(strings.Repeat(" ", policyFileMax+1)),
		"mode": config(`{"version":1,"permission_mode":"workspace-write"}`), "empty mode": config(`{"version":1,"permission_mode":""}`), "upper-case mode": config(`{"version":1,"permission_mode":"ALLOW"}`),
		"no window": config(`{"version":1,"rate_limits":{"x":{"calls":1,"per_s":0}}}`), "negative": config(`{"version":1,"rate_limits":{"x":{"calls":-1,"per_s":1}}}`),
	} {
		dir := presetTestDir(t, files)
		w, err := loadWorkspacePolicy(dir, func(string) bool { return true })
		if err == nil || !reflect.DeepEqual(w, workspacePolicy{}) {
			t.Errorf("POL-09 %s: %+v", name, w)
			continue
		}
		for file := range files {
			if !strings.Contains(err.Error(), filepath.Join(dir, file)) {
				t.Errorf("POL-09 %s: %v does not name the file", name, err)
			}
		}
	}
	for name, spoil := range map[string]func(dir, file string) error{
		"world-writable":        func(_, file string) error { return os.Chmod(file, 0o602) },
		"world-writable folder": func(dir, _ string) error { return os.Chmod(dir, 0o777) },
		"folder":                func(_, file string) error { os.Remove(file); return os.Mkdir(file, 0o700) },
		"linked": func(dir, file string) error {
			if err := os.Rename(file, file+".real"); err != nil {
				return err
			}
			return os.Symlink(file+".real", file)
		},
		"linked folder": func(dir, _ string) error {
			if err := os.Rename(dir, dir+".real"); err != nil {
				return err
			}
			return os.Symlink(dir+".real", dir)
		},
	} {
		dir := presetTestDir(t, approvals(presetTestApprovals))
		file := filepath.Join(dir, "approvals.json")
		if err := spoil(dir, file); err != nil {
			t.Fatal(err)
		}
		if _, err := loadWorkspacePolicy(dir, nil); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("POL-09 %s: %v", name, err)
		}
	}
}

// TestPOL11RateLimit: a sliding window; what is over it is a tool's failure that says when to try again.
func TestPOL11RateLimit(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	l := newRateLimiter(map[string]rateLimit{"shell_run": {2, 60}, "never": {0, 1}}, func() time.Time { return now })
	steps := []struct {
		after time.Duration
		want  string
	}{{0, ""}, {10 * time.Second, ""}, {10 * time.Second, "again in 40s"}, {39 * time.Second, "again in 1s"}, {time.Second, ""}, {0, "again in 10s"}, {10 * time.Second, ""}}
	for i, s := range steps {
		now = now.Add(s.after)
		err := l.take("shell_run")
		if (err == nil) != (s.want == "") || err != nil && !strings.Contains(err.Error(), s.want) {
			t.Errorf("step %d: %v, want %q", i, err, s.want)
		}
	}
	for range 100 {
		if err := l.take("other"); err != nil {
			t.Fatal(err)
		}
	}
	if l.take("never") == nil {
		t.Error("a tool with no calls was called")
	}
}
