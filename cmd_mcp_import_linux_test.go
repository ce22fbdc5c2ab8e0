package main

import (
	"strings"
	"testing"
)

// A person is asked about each server by what it runs; a takes the rest but for dangerous and stored ones; q ends the questions and keeps the
// answers before it. TTY-07: nothing else counts.
func TestImportPty(t *testing.T) {
	t.Parallel()
	const question = "your answer (y n a q): "
	r := importRig(t, cursorFile(`"one":{"command":"one-mcp","args":["a b"],"env":{"MODE":"x"}}`, `"two":{"command":"two-mcp"}`, `"three":{"command":"three-mcp"}`, `"bad":{"command":"sudo","args":["x"]}`, `"four":{"command":"four-mcp"}`, `"five":{"command":"five-mcp"}`))
	names := func() string {
		var out []string
		for _, s := range r.servers() {
			out = append(out, s.Name)
		}
		return strings.Join(out, " ")
	}
	c := r.pty(t, newTermPty(t), true, "mcp", "import")
	c.await(question)
	c.shows(`import the server "one"`, `"a b"`, `"MODE"`)
	for _, answer := range []string{"yes", "", "A"} {
		c.keys(answer + "\n")
		c.await(question)
	}
	c.keys("y\n")
	c.await(question)
	c.keys("n\n")
	c.await(question)
	c.keys("q\n")
	c.exit(exitDone)
	if got := names(); got != "one" {
		t.Errorf("after q: %q", got)
	}
	c = r.pty(t, newTermPty(t), true, "mcp", "import")
	c.await(question)
	c.keys("a\n")
	c.await("your answer (y n q): ")
	c.shows(`import the server "bad"`, "dangerous: sudo")
	c.keys("n\n")
	c.exit(exitDone)
	if got := names(); got != "five four one three two" {
		t.Errorf("after a: %q", got)
	}
	c = r.pty(t, newTermPty(t), true, "mcp", "import")
	c.await("your answer (y n): ")
	c.keys("\x03")
	c.exit(exitInterrupted)
}
