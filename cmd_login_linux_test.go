package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

const loginPaste = "(hidden): "

// loginAddress waits for the question for an address and gives the one that is shown.
func (c *cliPty) loginAddress() string {
	c.t.Helper()
	from := c.seen
	c.await(loginPaste)
	m := regexp.MustCompile(`\n  (http://\S+)\r?\n`).FindStringSubmatch(c.screen.String()[from:])
	if m == nil {
		c.t.Fatalf("no address: %s", c.screen.String()[from:])
	}
	return m[1]
}

// The person pastes the address that their browser ended at elsewhere: it is not shown, and what is no answer is told and asked for again. Ctrl-C
// ends the wait at once.
func TestPtyLoginPasted(t *testing.T) {
	t.Parallel()
	r, f := loginCLI(t)
	c := r.pty(t, newTermPty(t), false, "mcp", "login", "f", "--no-browser")
	c.await(cliQuestion)
	c.shows(`log in at the server "f" in the browser`, f.URL+"/mcp")
	c.keys("y\n")
	back := fakeBrowse(t, c.loginAddress())
	if c.mode().echoes() {
		t.Error("what is pasted shows")
	}
	c.keys(back.Get("code") + "\r")
	c.await("a code alone does not show of which login it is")
	c.await(loginPaste)
	c.keys("\r")
	c.await(loginPaste)
	c.keys("http://127.0.0.1:1/callback?code=x&state=other\r")
	c.await("that was the answer to another login, or not all of it; it was not used")
	c.await(loginPaste)
	c.keys("http://127.0.0.1:1/callback?" + back.Encode() + "\r")
	c.exit(exitDone)
	if got := c.stdout.String(); !strings.HasPrefix(got, "f: logged in\n") || !c.mode().echoes() {
		t.Errorf("stdout %q, echo %v", got, c.mode().echoes())
	}
	if shown := c.screen.String(); strings.Contains(shown, back.Get("code")) || strings.Contains(shown, f.access) {
		t.Errorf("the screen shows a code or a token:\n%s", shown)
	}

	c = r.pty(t, newTermPty(t), false, "mcp", "login", "f", "--no-browser", "--yes")
	c.loginAddress()
	c.keys("\x03")
	c.exit(exitInterrupted)
	if !c.mode().echoes() {
		t.Error("the terminal stays hidden")
	}
	c = r.pty(t, newTermPty(t), false, "mcp", "login", "f", "--no-browser")
	c.await(cliQuestion)
	c.keys("n\n")
	c.exit(exitRefused)
}

// At the prompt a login takes the person's place until it is over: by the browser, with /mcp login, and in a model's turn.
func TestPtyLoginPrompt(t *testing.T) {
	t.Parallel()
	r, f := loginCLI(t)
	model := newTaskModel(t, func(_ string, n int, msgs []taskMessage) []string {
		if last := msgs[len(msgs)-1]; last.Role == "tool" {
			return taskSays("It says: " + last.Content)
		}
		return taskCalls("c1", "mcp_login", `{"server":"f"}`)
	})
	r.env = []string{"TAI_BASE_URL=" + model.URL + "/v1", "TAI_MODEL=m-1"} // and no browser
	c := r.pty(t, newTermPty(t), true)
	comes := func() {
		t.Helper()
		resp, err := http.Get(c.loginAddress())
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	c.await(replPrompt)
	c.keys("/mcp login f\r")
	c.await(cliQuestion)
	c.keys("y\r")
	comes()
	c.await("f: logged in")
	c.await(replPrompt)
	c.keys("/mcp logout f\r")
	c.await("f: logged out of profile default")
	c.await(replPrompt)
	c.keys("log in there\r")
	c.await(cliQuestion)
	c.shows(f.URL + "/mcp")
	c.keys("y\r")
	comes()
	c.await("It says: logged in")
	c.await(replPrompt)
	c.keys("/exit\r")
	c.exit(exitDone)
}
