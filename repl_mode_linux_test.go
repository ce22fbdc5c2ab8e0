package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// /mode narrows and widens the run as the person says; in plan mode the model is told so and changes nothing until a plan is agreed on, which the
// person may change first; then the mode before is back. The task list shows as it is set, by /todo, and after --continue.
func TestREPLPtyPlan(t *testing.T) {
	t.Parallel()
	call := func(id, name, args string) func(http.ResponseWriter) {
		return chatStream(1<<16, chatCall(0, id, name, args), chatStop("tool_calls"), "[DONE]")
	}
	model := newFakeModel(t,
		call("a", "file_write", `{"path":"made.txt","content":"x"}`),
		call("b", "plan_submit", `{"plan":"one: write made.txt\u001b[2J"}`),
		call("c", "todo_write", `{"items":[{"text":"write it","status":"in_progress"},{"text":"check it"}]}`),
		call("d", "file_write", `{"path":"made.txt","content":"x"}`),
		chatStream(1<<16, chatText("All is written."), chatStop("stop"), "[DONE]"))
	r := newCLIRig(t)
	r.env = []string{"TAI_BASE_URL=" + model.URL + "/v1", "TAI_MODEL=m", "EDITOR=sed -i s/one/two/"}
	c := r.pty(t, newTermPty(t), true, "--permission-mode", "allow")
	say := func(keys string, texts ...string) {
		t.Helper()
		c.await(replPrompt)
		c.keys(keys + "\n")
		for _, text := range texts {
			c.await(text)
		}
	}
	say("/mode", "mode allow: ")
	say("/todo", "no task list was made")
	say("/mode wide", "permission mode \"wide\": use read-only, prompt, allow, danger-full-access or plan")
	say("/mode plan", "mode plan: only reading, until you agree on a plan; a yes to it brings back allow")
	say("make it", "file_write refused (mode read-only)", "go on with this plan?", `"one: write made.txt\x1b[2J"`, "your answer (y e n w): ")
	if _, err := os.Stat(filepath.Join(r.dir, "made.txt")); !os.IsNotExist(err) {
		t.Errorf("written before the plan was agreed on: %v", err)
	}
	c.keys("e\n")
	c.await("the plan as you have changed it")
	c.await("two: write made.txt")
	c.await("your answer (y e n w): ")
	c.keys("y\n")
	c.await("plan agreed on: permission mode allow")
	c.await("[>] write it")
	c.await("0 of 2 tasks done")
	c.await("All is written.")
	say("/mode", "mode allow: ")
	say("/mode read-only", "mode read-only: ")
	say("/todo", "[>] write it", "[ ] check it")
	say("/exit")
	c.exit(exitDone)
	if b, err := os.ReadFile(filepath.Join(r.dir, "made.txt")); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
	for i, planning := range []bool{true, true, false, false, false} {
		if got := strings.Contains(string(model.requests[i]), "Plan mode: the person wants a plan"); got != planning {
			t.Errorf("request %d speaks of plan mode: %v, want %v", i, got, planning)
		}
	}
	if !strings.Contains(string(model.requests[2]), "two: write made.txt") {
		t.Errorf("the model was not told the changed plan: %s", model.requests[2])
	}
	log := replLog(t, r)
	for _, want := range []string{`"kind":"permission-mode","subject":"plan"`, `"kind":"permission-mode","subject":"allow"`, `"kind":"permission-mode","subject":"read-only"`, `"data":{"before":"plan"}`} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in the log\n%s", want, log)
		}
	}
	again := r.pty(t, newTermPty(t), true, "--continue")
	again.await(replPrompt)
	again.keys("/todo\n")
	again.await("[ ] check it")
	again.await(replPrompt)
	again.keys("/exit\n")
	again.exit(exitDone)
}

// replLog gives the logs of the prompts of a home.
func replLog(t *testing.T, r *cliRig) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(r.home, "runs", "repl-*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%q, %v", names, err)
	}
	var all strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

// Without an editor another plan is typed in the place of the first one; a no says why; a secret's value is typed unseen.
func TestREPLPtyPlanTyped(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	c := r.pty(t, newTermPty(t), true)
	ask := func(line string) {
		t.Helper()
		c.await(replPrompt)
		c.keys(line + "\n")
	}
	ask(`/call plan_submit plan=first`)
	c.await("your answer (y e n w): ")
	c.keys("e\n")
	c.await("a line with a full stop alone ends it")
	c.keys(".\n")
	c.await("no text was given; the plan is as it was")
	c.await("your answer (y e n w): ")
	c.keys("e\n")
	c.await("a line with a full stop alone ends it")
	c.keys("second\n- and more\n.\n")
	c.await("the plan as you have changed it")
	c.await("your answer (y e n w): ")
	c.keys("y\n")
	c.await("said yes to the plan as they have changed it")
	c.await("- and more")
	ask(`/call plan_submit plan=third`)
	c.await("your answer (y e n w): ")
	c.keys("w not now\n")
	c.await("The person said no to the plan: not now")
	ask(`/call secret_set name=KEY from=prompt`)
	c.await("value of KEY (not shown): ")
	c.keys("val-typed-unseen\n")
	c.await("KEY: stored; refer to it as ${KEY}")
	ask(`/call profile_list`)
	c.await("default  current")
	ask("/exit")
	c.exit(exitDone)
	if strings.Contains(c.screen.String(), "val-typed") || strings.Contains(replLog(t, r), "val-typed") {
		t.Errorf("the value shows: %s", &c.screen)
	}
	r.tai("secret", "list").outHas("KEY  set ")
}
