package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// promptRig is a rig whose model answers by script and is remembered.
func promptRig(t *testing.T, answers ...func(http.ResponseWriter)) (*cliRig, *fakeModel) {
	t.Helper()
	r, m := newCLIRig(t), newFakeModel(t, answers...)
	r.env = []string{"TAI_BASE_URL=" + m.URL + "/v1", "TAI_MODEL=m-1"}
	return r, m
}

func promptSays(text string) func(http.ResponseWriter) {
	return chatStream(1<<10, chatFirst, chatText(text), chatStop("stop"), chatUses, "[DONE]")
}

// said gives what the person said in a request, the last message first.
func promptSaid(t *testing.T, body []byte) []string {
	t.Helper()
	var out []string
	for _, m := range slices.Backward(agentWire(t, body)) {
		if m.Role == roleUser {
			out = append(out, m.Content)
		}
	}
	return out
}

// What a pipe hands over stands behind the prompt in a frame that it cannot end; alone it is the prompt.
func TestPromptPiped(t *testing.T) {
	r, m := promptRig(t, promptSays("Seen."))
	if out := r.with("diff --git\n</stdin-x>\n", "review", "--json").ok(); !strings.Contains(out, `"turn_completed"`) {
		t.Error(out)
	}
	got := promptSaid(t, m.requests[0])[0]
	head, rest, _ := strings.Cut(got, "\n\nStandard input, 21 bytes between the marks:\n<stdin-")
	mark, body, _ := strings.Cut(rest, ">\n")
	if head != "review" || body != "diff --git\n</stdin-x>\n</stdin-"+mark+">" || len(mark) != 12 {
		t.Errorf("sent %q", got)
	}
	r.with("\xef\xbb\xbfwhat is this?\n").ok()
	if got := promptSaid(t, m.requests[1])[0]; got != "what is this?" {
		t.Errorf("sent %q", got)
	}
	r.with("a\x00b", "look").fails(exitUsage, "standard input is no text", "hint: ")
	r.with("a\xff\xfe", "look").fails(exitUsage, "standard input is no text")
	r.with(strings.Repeat("x", pipedMax+1), "look").fails(exitUsage, "more than 524288 bytes")
	if m.seen() != 2 {
		t.Errorf("%d requests", m.seen())
	}
}

// A pipe that stays open is waited for with a word, and an interrupt ends that.
func TestPromptPipeOpen(t *testing.T) {
	t.Parallel()
	in, out := io.Pipe()
	defer out.Close()
	ctx, cancel := context.WithCancel(t.Context())
	text, err := pipedText(ctx, in, func(s string) {
		if !strings.Contains(s, "standard input") {
			t.Errorf("told %q", s)
		}
		cancel()
	})
	if text != "" || err == nil || ctx.Err() == nil {
		t.Errorf("%q, %v", text, err)
	}
}

// stdout has the answer alone; what the model says before a call is told on stderr. Without a model one line says what to do.
func TestPromptStdout(t *testing.T) {
	r, _ := promptRig(t,
		chatStream(1<<10, chatFirst, chatText("Let me look."), chatCall(0, "c", "file_read", `{"path":"none"}`), chatStop("tool_calls"), chatUses, "[DONE]"),
		promptSays("It is not there.\n"))
	got := r.tai("look")
	if got.ok() != "It is not there.\n" || !strings.Contains(got.err, "Let me look.") {
		t.Errorf("stdout %q, stderr %q", got.out, got.err)
	}
	r.env = nil
	if got := r.with("some text", "look"); got.code != exitUsage || got.out != "" || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, "OPENAI_API_KEY") {
		t.Errorf("exit %d, %q, %q", got.code, got.out, got.err)
	}
}

// --continue goes on with the last session of the folder, --resume with the one named; each is told apart where it comes from elsewhere.
func TestPromptContinue(t *testing.T) {
	r, m := promptRig(t, promptSays("One."), promptSays("Two."), promptSays("Three."), promptSays("Four."), promptSays("Five."))
	r.tai("--continue", "x").fails(exitFailed, "no session of", "hint: tai session list")
	r.tai("first question").ok()
	other := filepath.Join(r.dir, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	r.tai("--root", other, "elsewhere").ok()
	r.tai("--continue", "second question").ok()
	if got := promptSaid(t, m.requests[2]); !slices.Equal(got, []string{"second question", "first question"}) {
		t.Errorf("sent %q", got)
	}
	list := cliJSON[struct {
		Sessions []sessionJSON
		Total    int
	}](r.tai("session", "list", "--json"))
	if list.Total != 2 || list.Sessions[0].Title != "first question" || list.Sessions[0].Count != 4 || list.Sessions[1].Root != other {
		t.Fatalf("%+v", list)
	}
	got := r.tai("--resume", strings.ToUpper(list.Sessions[1].ID), "and here?")
	got.ok()
	got.errHas("was begun in "+other, "it goes on in "+r.dir)
	if got := promptSaid(t, m.requests[3]); !slices.Equal(got, []string{"and here?", "elsewhere"}) {
		t.Errorf("sent %q", got)
	}
	r.tai("--resume", "s-none", "x").fails(exitFailed, "not found", "hint: tai session list")
	r.tai("--resume=", "x").fails(exitUsage, "needs the id of a session")
	if here := r.tai("session", "list", "--here", "--root", other).ok(); strings.Count(here, "\n") != 1 || !strings.Contains(here, "elsewhere") {
		t.Errorf("%q", here)
	}
	// The bounds are told with the way on, and the exit code says which end it was.
	r.tai("--max-tokens", "5", "--continue", "more").ok()
}

// The commands about sessions, as text and as Markdown; a secret that is known by now does not come out.
func TestSessionCommands(t *testing.T) {
	r, _ := promptRig(t,
		chatStream(1<<10, chatFirst, chatCall(0, "c1", "file_read", `{"path":"note.txt"}`), chatStop("tool_calls"), chatUses, "[DONE]"),
		promptSays("It says ```hush-hush-9```."))
	if err := os.WriteFile(filepath.Join(r.dir, "note.txt"), []byte("```\nhush-hush-9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.tai("what does it say?").ok()
	r.with("hush-hush-9", "secret", "set", "WORD", "--from", "-").ok()
	id := cliJSON[struct{ Sessions []sessionJSON }](r.tai("session", "list", "--json")).Sessions[0].ID
	for _, words := range [][]string{{"session", "show", id}, {"session", "show", strings.ToUpper(id), "--json"}, {"session", "export", id}, {"session", "export", id, "--json"}} {
		got := r.tai(words...)
		got.ok()
		got.hides("hush-hush-9")
		got.outHas("[secret:WORD]", "what does it say?", "file_read")
	}
	r.tai("session", "show", id, "--from", "4").outHas("4  model")
	if out := r.tai("session", "show", id, "--from", "4").ok(); strings.Contains(out, "file_read") {
		t.Errorf("%s", out)
	}
	md := r.tai("session", "export", id).ok()
	if !strings.HasPrefix(md, "# what does it say?\n") || !strings.Contains(md, "\n````\n     1\t```\n") {
		t.Errorf("%s", md)
	}
	r.tai("session", "export", id, "-o", "talk.md").outHas("4 messages", "in talk.md")
	if b, err := os.ReadFile(filepath.Join(r.dir, "talk.md")); err != nil || string(b) != md {
		t.Errorf("%s, %v", b, err)
	}
	r.tai("session", "export", id, "-o", "talk.md").fails(exitUsage, "there already")
	r.tai("session", "export", id, "--json", "--markdown").failsJSON(exitUsage)
	r.tai("session", "show", id, "--from", "0").fails(exitUsage, "--from takes")
	r.tai("session", "delete", id).outHas(id + ": deleted")
	r.tai("session", "show", id).fails(exitFailed, "hint: tai session list")
	r.tai("session", "delete", id).fails(exitFailed, "hint: tai session list")
	r.tai("session", "list").outHas("no conversations are kept")
}

// A reader of stdout that goes away ends the turn, and nobody is told.
func TestPromptReaderGone(t *testing.T) {
	r, _ := promptRig(t, promptSays(strings.Repeat("a long answer ", 1000)))
	for _, words := range [][]string{{"go"}, {"--json", "go"}, {"help"}, {"version"}, {"tools", "list"}} {
		cmd := r.process(words...)
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		read.Close()
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = write, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		write.Close()
		_ = cmd.Wait() // its exit code says it
		if code := cmd.ProcessState.ExitCode(); code != exitFailed && words[0] != "help" && words[0] != "version" || strings.Contains(stderr.String(), "pipe") || strings.Contains(stderr.String(), "gone") {
			t.Errorf("tai %q: exit %d, stderr %q", words, code, &stderr)
		}
	}
}

func TestNotesFolders(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		root, home, top string
		want            string
	}{
		{"/r/a/b", "/home/me", "/r", "/r /r/a /r/a/b"},
		{"/r", "/home/me", "/r", "/r"},
		{"/home/me/p/q", "/home/me", "", "/home/me /home/me/p /home/me/p/q"},
		{"/tmp/x/y", "/home/me", "", "/tmp/x/y"},
		{"/tmp/x/y", "", "", "/tmp/x/y"},
		{"/home/me/p/q", "/home/me", "/home/me/p", "/home/me/p /home/me/p/q"},
	} {
		got := notesFolders(filepath.FromSlash(tc.root), filepath.FromSlash(tc.home), func(dir string) bool { return filepath.ToSlash(dir) == tc.top })
		if s := filepath.ToSlash(strings.Join(got, " ")); s != tc.want {
			t.Errorf("%+v: %s", tc, s)
		}
	}
}

// AGENTS.md of the folder and of those above it are in the system text, the nearest last; a link that leads out, a long one and a binary name are not.
func TestPromptNotes(t *testing.T) {
	r, m := promptRig(t, promptSays("Ok."))
	repo := filepath.Join(r.dir, "repo")
	inner := filepath.Join(repo, "inner")
	if err := os.MkdirAll(filepath.Join(repo, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{filepath.Join(r.dir, "AGENTS.md"): "above the repository", filepath.Join(repo, "AGENTS.md"): "use tabs", filepath.Join(inner, "AGENTS.md"): "use spaces here"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := r.tai("--root", inner, "go")
	got.ok()
	got.errHas("read for the model: ../AGENTS.md, AGENTS.md")
	body := string(m.requests[0])
	if strings.Contains(body, "above the repository") || strings.Index(body, "use tabs") < 0 || strings.Index(body, "use tabs") > strings.Index(body, "use spaces here") {
		t.Errorf("sent %s", clip(body, 2000))
	}
	if err := os.Remove(filepath.Join(inner, "AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(r.dir, "AGENTS.md"), filepath.Join(inner, "AGENTS.md")); err != nil {
		skipMissing(t, "no links here: %v", err)
	}
	if err := os.WriteFile(filepath.Join(repo, "AGENTS.md"), bytes.Repeat([]byte("x"), notesMax+1), 0o600); err != nil {
		t.Fatal(err)
	}
	got = r.tai("--root", inner, "go")
	got.errHas("outside the workspace", "more than 65536 bytes")
	if strings.Contains(string(m.requests[1]), "above the repository") {
		t.Error("a link out of the folder was followed")
	}
}

// F25: a tai that is killed in the middle of a call leaves a session that goes on: the results that are there stand, the others are said to be
// unknown, and nothing runs again.
func TestF25KilledInACall(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		skipMissing(t, "no shell here: %v", err)
	}
	r, m := promptRig(t,
		chatStream(1<<10, chatFirst, chatCall(0, "c1", "file_read", `{"path":"note.txt"}`),
			chatCall(1, "c2", "shell_run", `{"command":"echo ran >> ran.txt; while [ -e hold ]; do sleep 0.1; done"}`),
			chatCall(2, "c3", "shell_run", `{"command":"echo third >> ran.txt"}`), chatStop("tool_calls"), chatUses, "[DONE]"),
		promptSays("Going on."))
	for _, name := range []string{"note.txt", "hold"} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte("the note\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := r.process("--yolo", "do three things")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(r.dir, "ran.txt")
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(ran); err == nil {
			break
		}
		if time.Now().After(end) {
			cmd.Process.Kill()
			t.Fatal("the second call never ran")
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if err := os.Remove(filepath.Join(r.dir, "hold")); err != nil {
		t.Fatal(err)
	}
	if out := r.tai("--continue", "go on").ok(); out != "Going on.\n" {
		t.Errorf("%q", out)
	}
	agentBodies(t, m.requests)
	var results []string
	for _, msg := range agentWire(t, m.requests[1]) {
		if msg.Role == roleTool {
			results = append(results, msg.Content)
		}
	}
	if len(results) != 3 || !strings.Contains(results[0], "the note") || results[1] != chatUnknown || results[2] != chatUnknown {
		t.Errorf("results %q", results)
	}
	if b, err := os.ReadFile(ran); err != nil || string(b) != "ran\n" {
		t.Errorf("ran %q, %v", b, err)
	}
	var doc sessionJSON
	if err := json.Unmarshal([]byte(r.tai("session", "show", cliJSON[struct{ Sessions []sessionJSON }](r.tai("session", "list", "--json")).Sessions[0].ID, "--json").ok()), &doc); err != nil || len(*doc.Messages) != 8 {
		t.Errorf("%v: %s", err, fmt.Sprint(doc))
	}
}
