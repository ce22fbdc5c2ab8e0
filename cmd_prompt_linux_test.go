package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// At a terminal --resume shows what there is to choose from; at the prompt /new, /resume, /compact and /cost belong to the conversation.
func TestPromptPtyResume(t *testing.T) {
	r, m := promptRig(t, promptSays("One."), promptSays("Two."), promptSays("Three."), promptSays("Four."), promptSays("The sum."), promptSays("Five."))
	r.tai("first question").ok()
	r.tai("second question").ok()
	ids := cliJSON[struct{ Sessions []sessionJSON }](r.tai("session", "list", "--json")).Sessions
	c := r.pty(t, newTermPty(t), true, "--resume")
	c.await("number or id (Enter: 1): ")
	c.shows("  1  "+ids[0].ID, "second question", "  2  "+ids[1].ID, "first question")
	c.keys("7\n")
	c.await("none of these")
	c.await("number or id (Enter: 1): ")
	c.keys("2\n")
	c.await("going on with " + ids[1].ID)
	c.await("tai: One.")
	c.await(replPrompt)
	say := func(line string, shows ...string) {
		t.Helper()
		c.keys(line + "\n")
		for _, s := range shows {
			c.await(s)
		}
		c.await(replPrompt)
	}
	say("/cost", "no model was asked yet")
	say("third question", "Three.", "· 12 in, 5 out")
	say("/cost", "m-1  1 request  12 in (4 cached)  5 out")
	say("/cost now", "takes no arguments")
	say("/new", "a new conversation begins")
	say("fourth question", "Four.")
	say("/compact", "there is nothing to sum up yet")
	say("/resume "+ids[1].ID, "going on with "+ids[1].ID, "tai: Three.")
	say("/compact", "the conversation was made shorter")
	say("/resume nonsense", "is no id of a session")
	say("fifth question", "Five.")
	c.keys("/exit\n")
	c.exit(exitDone)
	if got := promptSaid(t, m.requests[2]); len(got) != 2 || got[1] != "first question" {
		t.Errorf("after --resume: %q", got)
	}
	if got := promptSaid(t, m.requests[3]); len(got) != 1 {
		t.Errorf("after /new: %q", got)
	}
	if got := promptSaid(t, m.requests[5]); len(got) != 3 || !strings.Contains(got[2], "The sum.") || got[1] != "third question" {
		t.Errorf("after /compact: %q", got)
	}
	agentBodies(t, m.requests)
}

// A task over a small repository, end to end at a terminal: it reads, asks before it changes, changes, tests, and answers.
func TestPromptPtyTask(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		skipMissing(t, "no git here: %v", err)
	}
	r, m := promptRig(t,
		chatStream(64, chatFirst, chatText("I look first."), chatCall(0, "c1", "shell_run", `{"command":"git status --short"}`), chatCall(1, "c2", "file_read", `{"path":"sum.sh"}`), chatStop("tool_calls"), chatUses, "[DONE]"),
		chatStream(64, chatFirst, chatCall(0, "c3", "shell_run", `{"command":"sed -i 's/-/+/' sum.sh"}`), chatStop("tool_calls"), chatUses, "[DONE]"),
		chatStream(64, chatFirst, chatCall(0, "c4", "shell_run", `{"command":"sh test.sh"}`), chatCall(1, "c5", "shell_run", `{"command":"git commit -qam fixed"}`), chatStop("tool_calls"), chatUses, "[DONE]"),
		promptSays("It adds now, and the test passes. I did not commit."))
	for name, text := range map[string]string{"sum.sh": "echo $(($1 - $2))\n", "test.sh": `[ "$(sh sum.sh 2 3)" = 5 ] && echo PASS` + "\n"} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(git, append([]string{"-c", "user.name=n", "-c", "user.email=n@example.invalid"}, args...)...)
		cmd.Dir, cmd.Env = r.dir, append(r.environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("init", "-q")
	run("add", ".")
	run("commit", "-qm", "begin")
	c := r.pty(t, newTermPty(t), false, "make sum.sh add, and test it")
	for i, answer := range []string{"y", "y", "n"} { // sed, the test, the commit
		c.await("your answer (")
		c.shows([]string{"sed -i", "sh test.sh", "git commit"}[i])
		c.keys(answer + "\n")
	}
	c.exit(exitDone)
	if out := c.stdout.String(); out != "It adds now, and the test passes. I did not commit.\n" {
		t.Errorf("stdout %q", out)
	}
	c.await("refused (person said no)")
	if diff := run("diff"); !strings.Contains(diff, "+echo $(($1 + $2))") || strings.Count(run("log", "--oneline"), "\n") != 1 {
		t.Errorf("%s", diff)
	}
	agentBodies(t, m.requests)
	last := string(m.requests[3])
	if !strings.Contains(last, "PASS") || !strings.Contains(last, "refused by policy") {
		t.Errorf("the model was told %s", clip(last, 3000))
	}
}
