package main

import (
	"bytes"
	"strings"
	"testing"
)

// Lines are broken at blanks; commands, quoted texts and long words stay whole, and no character is lost.
func TestWrapLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		width    int
		in, want string
	}{
		"fits":                  {30, "no such server", "no such server"},
		"words":                 {24, "tai: no such server is stored here", "tai: no such server is\n  stored here"},
		"columns stay":          {24, "s-7k2m  2 messages  yesterday", "s-7k2m  2 messages\n  yesterday"},
		"a command":             {24, "hint: list them with tai mcp list, then go on", "hint: list them with\n  tai mcp list, then go\n  on"},
		"a command to the end":  {24, "hint: chmod 600 /home/x/.config/tai/key and so on", "hint:\n  chmod 600 /home/x/.config/tai/key and so on"},
		"a command of a prompt": {24, "a message may follow /model use NAME; then go on", "a message may follow\n  /model use NAME; then\n  go on"},
		"a path":                {24, "cannot be read: /etc/tai x and the rest", "cannot be read: /etc/tai\n  x and the rest"},
		"quoted":                {24, "no profile is called 'my own one', see the list", "no profile is called\n  'my own one', see the\n  list"},
		"quote without an end":  {24, "it doesn't end 'here and goes on so", "it doesn't end 'here and\n  goes on so"},
		"a long word":           {24, "see " + strings.Repeat("x", 40) + " there", "see\n  " + strings.Repeat("x", 40) + "\n  there"},
		"begins with blanks":    {24, "  two and three and four five", "  two and three and four\n  five"},
		"wide characters":       {24, "名前 名前 名前 名前 名前 名前", "名前 名前 名前 名前 名前\n  名前"},
		"ends with blanks":      {24, "one two three four five   ", "one two three four five"},
		"blanks alone":          {24, strings.Repeat(" ", 30), ""},
	} {
		got := wrapLine(tc.in, tc.width)
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(tc.in), " ") {
			t.Errorf("%s: words are lost in %q", name, got)
		}
	}
	var out bytes.Buffer
	long := strings.Repeat("word ", 50) + "end"
	if printWrapped(&maskedWriter{&checkedWriter{w: &out}, strings.ToUpper}, long); out.String() != strings.ToUpper(long)+"\n" {
		t.Errorf("what is no screen gets %q", out.String())
	}
}
