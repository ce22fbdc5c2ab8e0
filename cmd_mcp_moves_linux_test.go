package main

import (
	"strings"
	"testing"
)

const moveQuestion = "your answer (y n NAME=OTHER): "

// R9, TTY-09: a person is asked once about all secrets of a pasted config, by name and place; a name can be changed; then comes the
// consent, of the entry as it will be stored; and nothing is asked again at the first call.
func TestR9PtyMove(t *testing.T) {
	r, token := newCLIRig(t), moveToken(9)
	config := `{"mcpServers":{"s":` + strings.Replace(fakeConfig(t, ""), `"env":{`, `"env":{"SOME_API_KEY":"`+token+`",`, 1) + `}}`
	c := r.pty(t, newTermPty(t), false, "mcp", "add", config)
	c.await(moveQuestion)
	c.shows("move these secrets into the vault", `"SOME_API_KEY" = the variable "SOME_API_KEY"`)
	for _, answer := range []string{"yes", "Y", "", "NONE=X", "SOME_API_KEY=1 bad"} {
		c.keys(answer + "\n")
		c.await(moveQuestion)
	}
	c.keys("SOME_API_KEY=MY_NAME\n")
	c.await(moveQuestion)
	c.keys("y\n")
	c.await(cliQuestion)
	c.keys("y\n")
	c.exit(exitDone)
	if strings.Contains(c.screen.String(), token) {
		t.Errorf("the screen shows the secret:\n%s", &c.screen)
	}
	if e := r.entryOf("s"); e.Env["SOME_API_KEY"] != "${MY_NAME}" || r.secretNames() != "MY_NAME" {
		t.Errorf("stored %v, secrets %q", e.Env, r.secretNames())
	}
	r.tai("mcp", "call", "s", "env", "name=SOME_API_KEY").outHas("[secret:MY_NAME]")
}

// No to the move keeps what was pasted; no to the server, an interrupt and the end of input store nothing.
func TestR9PtyMoveRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, first, second string
		code                int
		stored              string
	}{
		{"keep", "n\n", "y\n", exitDone, "made"},
		{"no server", "y\n", "n\n", exitRefused, ""},
		{"end of input", "\x04", "", exitRefused, ""},
		{"Ctrl-C", "\x03", "", exitInterrupted, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, web := newCLIRig(t), newFakeHTTP(t)
			c := r.pty(t, newTermPty(t), false, "mcp", "add", "web", web.URL+"/mcp", "--header", "Authorization: Bearer "+moveToken(9))
			c.await(moveQuestion)
			c.keys(tc.first)
			if tc.second != "" {
				c.await(cliQuestion)
				c.keys(tc.second)
			}
			c.exit(tc.code)
			if r.secretNames() != "" {
				t.Errorf("secrets: %q", r.secretNames())
			}
			if n := len(r.servers()); (n == 1) != (tc.stored != "") {
				t.Errorf("%d servers", n)
			}
		})
	}
}
