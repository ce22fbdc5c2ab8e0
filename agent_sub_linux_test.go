package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// subPtyRig is a rig whose model answers each conversation by its own script.
func subPtyRig(t *testing.T, answer func(task string, n int, msgs []taskMessage) []string) *cliRig {
	t.Helper()
	r, m := newCLIRig(t), newTaskModel(t, answer)
	r.env = []string{"TAI_BASE_URL=" + m.URL + "/v1", "TAI_MODEL=m-1"}
	return r
}

// TTY-05: a background agent asks while the person types. A line tells of it, the question comes once the line is done, what was typed is no answer to
// it, and the line is carried out after it.
func TestTTY05PtyBackgroundAsks(t *testing.T) {
	for _, how := range []string{"plain", "editor"} {
		t.Run(how, func(t *testing.T) { ptyBackgroundAsks(t, how == "editor") })
	}
}

func ptyBackgroundAsks(t *testing.T, edited bool) {
	typing := make(chan struct{})
	r := subPtyRig(t, func(task string, n int, msgs []taskMessage) []string {
		last := msgs[len(msgs)-1]
		switch {
		case task == "write it" && n == 0:
			<-typing
			return taskCalls("w1", "file_write", `{"path":"x.txt","content":"x"}`)
		case task == "write it":
			return taskSays("It says: " + last.Content)
		case last.Role == "tool":
			return taskSays("Started.")
		case last.Content == "start it":
			return taskCalls("c1", "agent_run", `{"task":"write it","background":true}`)
		}
		return taskSays("You said " + last.Content + ".")
	})
	var e *editPty
	var c *cliPty
	if edited {
		e = r.editor(t, 120, 50)
		c = e.cliPty
	} else {
		c = r.pty(t, newTermPty(t), true)
		c.await(replPrompt)
	}
	c.keys("start it\r")
	c.await("your answer (y s a n w): ")
	c.keys("y\r")
	c.await("Started.")
	c.await(replPrompt)
	c.keys("y")
	c.await("y")
	close(typing)
	c.await(`agent a-1 ("write it") has a question`)
	c.await(replPrompt)
	if edited {
		e.screen.write(c.screen.Bytes()) // what was waited for so far
		e.sees("› y", `· agent a-1 ("write it") has a question; it comes when your line is done, Enter is enough`, "› y")
	}
	c.keys("\r")
	c.await(`agent a-1 ("write it") asks:`)
	c.await("your answer (y s a n w): ")
	if _, err := os.Stat(filepath.Join(r.dir, "x.txt")); err == nil {
		t.Error("what was typed before has answered")
	}
	c.keys("w not now\r")
	c.await("You said y.")
	c.await(`agent a-1 ("write it") done after `)
	c.await(replPrompt)
	c.keys("/cost\r")
	c.await("m-1 (agents)  2 requests")
	c.await(replPrompt)
	c.keys("/call proc_list\r")
	c.await("a-1 exited after ")
	c.await(replPrompt)
	c.keys("/exit\r")
	c.exit(exitDone)
	if _, err := os.Stat(filepath.Join(r.dir, "x.txt")); err == nil {
		t.Error("a refused call has written")
	}
	sessions := cliJSON[struct{ Sessions []sessionJSON }](r.tai("session", "list", "--json")).Sessions
	if len(sessions) != 1 || sessions[0].Title != "start it" {
		t.Errorf("%+v", sessions)
	}
}

// In one turn what an agent does is told on stderr, its answer goes to the other one alone; a background agent ends with tai, and its question is refused
// because no prompt is open. --continue goes on with the conversation, not with the agent's.
func TestAgentSubOneTurn(t *testing.T) {
	over := make(chan struct{})
	r := subPtyRig(t, func(task string, n int, msgs []taskMessage) []string {
		last := msgs[len(msgs)-1]
		switch {
		case task == "look" && n == 0:
			return taskCalls("l1", "file_find", `{"pattern":"*.md"}`)
		case task == "look":
			return taskSays("There is nothing.")
		case task == "hang":
			<-over
			return taskSays("too late")
		case last.Content == "go on":
			return taskSays("Going on.")
		case n == 0:
			return taskCalls("c1", "agent_run", `{"task":"look","tools":["file_*"]}`)
		case n == 1:
			return taskCalls("c2", "agent_run", `{"task":"hang","background":true}`)
		}
		return taskSays("Nothing there.")
	})
	t.Cleanup(func() { close(over) })
	got := r.tai("--auto", "look round")
	if got.ok() != "Nothing there.\n" || !strings.Contains(got.err, `· a-1 · file_find {"pattern":"*.md"}`) || !strings.Contains(got.err, `agent a-2 ("hang") stopped after `) {
		t.Errorf("stdout %q, stderr %s", got.out, got.err)
	}
	r.tai("--continue", "go on").ok()
	list := cliJSON[struct{ Sessions []sessionJSON }](r.tai("session", "list", "--json")).Sessions
	if len(list) != 1 || list[0].Count != 8 {
		t.Errorf("%+v", list)
	}
}
