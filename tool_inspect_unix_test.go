//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func inspectBox(t *testing.T, mode approvalMode, w workspace) *toolsBox {
	t.Helper()
	return newToolsBox(t, mode, nil, inspectTools(w, os.Environ, runtime.GOOS)...)
}

// What only reads runs in every mode, word by word as given; all else is refused with the way out, in every mode too.
func TestShellInspect(t *testing.T) {
	t.Parallel()
	w, outside := workspaceDirs(t)
	filesWrite(t, w.root, map[string]string{"-n": "dash\n", "$(touch made)": "odd\n", "*": "star\n"})
	for _, mode := range []approvalMode{modeReadOnly, modePrompt, modeAllow} {
		box := inspectBox(t, mode, w)
		for _, tc := range []struct {
			args, want string
			isError    bool
		}{
			{`{"argv":["cat","in.txt"]}`, "exit status 0 after", false},
			{`{"argv":["cat","$(touch made)"]}`, "\nodd\n", false},
			{`{"argv":["cat","*"]}`, "\nstar\n", false}, // no pattern
			{`{"argv":["echo","a; touch made"]}`, "\na; touch made\n", false},
			{`{"argv":["cat","--","-n"]}`, "\ndash\n", false},
			{`{"argv":["wc","-l","deep.go"],"cwd":"sub"}`, "1 deep.go", false},
			{`{"argv":["grep","-n","two","in.txt"]}`, "\n2:two\n", false},
			{`{"argv":["grep","-n","none","in.txt"]}`, "exit status 1", true},
			{`{"argv":["cat","missing"]}`, "stderr| ", true},
			{`{"argv":["rm","in.txt"]}`, "no program that is known to only read", true},
			{`{"argv":["sh","-c","ls"]}`, "no program that is known to only read", true},
			{`{"argv":["./cat","in.txt"]}`, "refused: ", true}, // SHL-12
			{`{"argv":["/bin/cat","in.txt"]}`, "refused: ", true},
			{`{"argv":["sort","-o","made","in.txt"]}`, "is not known to only read", true},
			{`{"argv":["date","-s","2020-01-01"]}`, "refused: ", true},
			{`{"argv":["git","-c","core.pager=x","log"]}`, "refused: ", true}, // SHL-07
			{`{"argv":["git","push"]}`, "git push is not known to only read", true},
			{`{"argv":["git","diff","--output=made"]}`, "refused: ", true},
			{`{"argv":["find",".","-delete"]}`, "refused: ", true}, // SHL-06
			{`{"argv":["cat",".env"]}`, "credentials", true},       // SHL-14
			{`{"argv":["cat","/etc/passwd"]}`, "outside the root", true},
			{`{"argv":["cat","../app-secret/x"]}`, "refused", true},
			{`{"argv":["A=b","cat"]}`, "refused: ", true},
			{`{"argv":[]}`, "argv", true},
			{`{}`, "argv", true},
			{`{"argv":"ls"}`, "argv", true},
			{`{"argv":[1]}`, "argv", true},
			{`{"argv":["ls","a\u0000b"]}`, "", true},
			{`{"argv":["ls"],"timeout_s":0}`, "timeout_s", true},
			{`{"argv":["ls"],"timeout_s":121}`, "timeout_s", true},
			{`{"argv":["ls"],"env":{}}`, "env", true},
			{`{"argv":["ls"],"cwd":"missing"}`, "cwd \"missing\": there is no such folder", true},
		} {
			r := toolsRun(t, box, "shell_inspect", tc.args)
			if r.IsError != tc.isError || !strings.Contains(r.Text, tc.want) {
				t.Errorf("mode %s: %s: error %v, %.300q, want %v, %q", mode, tc.args, r.IsError, r.Text, tc.isError, tc.want)
			}
			if strings.Contains(r.Text, "only read") && !strings.Contains(r.Hint, "shell_run") {
				t.Errorf("%s: no way out: %q", tc.args, r.Hint)
			}
		}
		for _, args := range []string{`{"argv":["cat","link-file"]}`, `{"argv":["ls"],"cwd":"link-dir"}`, fmt.Sprintf(`{"argv":["ls"],"cwd":%q}`, outside)} { // ROO-02
			if r := toolsRun(t, box, "shell_inspect", args); r.Rule == "" || strings.Contains(r.Text, "secret\n") {
				t.Errorf("mode %s: %s: %+v", mode, args, r)
			}
		}
	}
	for _, name := range []string{"made", "sub/made"} {
		if existsAt(filepath.Join(w.root, name)) {
			t.Errorf("%s was made", name)
		}
	}
	if !existsAt(filepath.Join(w.root, "in.txt")) {
		t.Error("in.txt is gone")
	}
}

// A workspace's deny of a command holds for it here too (SHL-13), and a command line over a served session is no different.
func TestShellInspectDenied(t *testing.T) {
	t.Parallel()
	w, _ := workspaceDirs(t)
	box := inspectBox(t, modePrompt, w)
	r, err := box.dispatch(t.Context(), toolCall{Name: "shell_inspect", Args: json.RawMessage(`{"argv":["echo","it's"]}`), Origin: "mcp"})
	if err != nil || r.IsError || !strings.Contains(r.Text, "\nit's\n") {
		t.Errorf("served: %+v, %v", r, err)
	}
	box.policy = newPolicy(policyConfig{Mode: modeAllow, Presets: []preset{{ID: "p-1", Effect: "deny", Tool: "shell_*", Command: "git log"}}})
	for args, denied := range map[string]bool{`{"argv":["git","log","-3"]}`: true, `{"argv":["git","--no-pager","log"]}`: true, `{"argv":["echo","git"]}`: false} {
		if r := toolsRun(t, box, "shell_inspect", args); (r.Rule == ruleDeny+"p-1") != denied {
			t.Errorf("%s: %+v, want denied %v", args, r, denied)
		}
	}
}

// It ends at its time limit with all its output so far.
func TestShellInspectTime(t *testing.T) {
	t.Parallel()
	w, _ := workspaceDirs(t)
	i := inspector{gitRunner{newShellRunner(w, os.Environ, runtime.GOOS)}}
	i.shell.unit, i.shell.grace = 100*time.Millisecond, 50*time.Millisecond
	if err := syscall.Mkfifo(filepath.Join(w.root, "pipe"), 0o600); err != nil {
		skipMissing(t, "no named pipes here: %v", err)
	}
	r, err := i.run(t.Context(), toolCall{Args: json.RawMessage(`{"argv":["cat","in.txt","pipe"],"timeout_s":5}`)})
	if err != nil || !r.IsError || !strings.Contains(r.Text, "ended at its time limit of 500ms") || !strings.Contains(r.Text, "\none\ntwo\n") {
		t.Errorf("%+v, %v", r, err)
	}
}
