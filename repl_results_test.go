package main

import (
	"strings"
	"testing"
	"time"
)

// A call has one line, cut to the screen's width; its result has one that says how it ended and how it begins, and where there is no room for
// that, a second one under the mark of what is not tai's (TTY-08).
func TestResultLines(t *testing.T) {
	call := chatToolCall{ID: "c1", Name: "file_read", Args: "{\n \"path\": \"a/" + strings.Repeat("long", 60) + "\"}"}
	if got := callLine(call.Name, call.Args, 40); textWidth(got) != 39 || !strings.HasPrefix(got, `· file_read {"path":"a/long`) || !strings.HasSuffix(got, "…") {
		t.Errorf("%q", got)
	}
	for args, want := range map[string]string{"{}": "· x", "": "· x", `{"a":"b`: `· x {"a":"b`, "{\"a\":\"\x1b\"}": `· x {"a":"\u001b"}`, `{"ü":"漢"}`: `· x {"ü":"漢"}`} {
		if got := callLine("x", args, 0); got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
	for _, tc := range []struct {
		name  string
		r     toolResult
		width int
		want  string
	}{
		{"room", toolResult{Text: "\n  1\tTea at\x1b[2J four.\n\n2\tMilk.\n"}, 80, "· file_read done in 3 ms, 31 bytes, /show 7: 1 Tea at\\u001b[2J four. / 2 Milk.\n"},
		{"cut", toolResult{Text: strings.Repeat("word ", 100)}, 80, "· file_read done in 3 ms, 500 bytes, /show 7: word word word word word word wo…\n"},
		{"narrow", toolResult{Text: "tai: your answer (y n): and more than fits"}, 40, "· file_read done in 3 ms, 42 bytes,\n  /show 7\n  | tai: your answer (y n): and more t…\n"},
		{"no screen", toolResult{Text: "one\ntwo"}, 0, "· file_read done in 3 ms, 7 bytes, /show 7: one / two\n"},
		{"failed", toolResult{Text: "file_read: no such file", IsError: true}, 80, "· file_read failed in 3 ms, 23 bytes, /show 7: no such file\n"},
		{"refused", toolResult{Text: "file_read: refused by policy", IsError: true, Rule: "mode read-only"}, 80, "· file_read refused (mode read-only) in 3 ms, /show 7\n"},
		{"spilled", toolResult{Text: "head", Record: "r-1", Structured: []byte(`{"record":"r-1","size":70000}`)}, 80, "· file_read done in 3 ms, 70000 bytes, /show 7: head\n"},
		{"empty", toolResult{}, 80, "· file_read done in 3 ms, 0 bytes, /show 7\n"},
	} {
		k := keepResult(call, tc.r, 3*time.Millisecond)
		k.N = 7
		if got := k.lines(tc.r.Text, true, tc.width); got != tc.want {
			t.Errorf("%s:\n%q, want\n%q", tc.name, got, tc.want)
		}
	}
}

// The oldest results go when there are too many or too much; numbers stay.
func TestResultLog(t *testing.T) {
	var l resultLog
	if _, ok := l.number(0); ok {
		t.Error("an empty log has a last result")
	}
	for range resultLogKept + 3 {
		l.add(keptResult{ID: "c", Text: "x"})
	}
	_, first := l.number(3)
	if k, ok := l.number(4); first || !ok || k.N != 4 || len(l.list) != resultLogKept {
		t.Errorf("%v %v %d", first, ok, len(l.list))
	}
	if k, ok := l.number(0); !ok || k.N != resultLogKept+3 {
		t.Errorf("the last is %d", k.N)
	}
	for range 3 {
		l.add(keptResult{ID: "big", Text: strings.Repeat("x", resultLogBytes/2+1)})
	}
	if k, ok := l.called("big"); !ok || k.N != resultLogKept+6 || len(l.list) != 1 || l.bytes != resultLogBytes/2+1 {
		t.Errorf("%d results of %d bytes", len(l.list), l.bytes)
	}
}

// A group's word alone means what shows its things.
func TestAloneWords(t *testing.T) {
	for line, want := range map[string]string{
		"mcp": "mcp list", "tools": "tools list", "model": "model list", "session": "session list", "audit": "audit list", "secret": "secret list", "record": "record list", "profile": "profile list",
		"approval": "approval list", "vault": "vault status", "mcp --json": "mcp list --json", "mcp --help": "mcp --help", "mcp tools": "mcp tools", "nonsense": "nonsense", "version": "version", "": "",
	} {
		if got := strings.Join(aloneWords(strings.Fields(line), commands()), " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// Words are kept whole, by the columns they take; one that is too wide has a line of its own.
func TestWrapWords(t *testing.T) {
	for _, tc := range []struct{ head, text, indent, want string }{
		{"", "one two three four", "", "one two\nthree four\n"},
		{"- ", "one two three", "  ", "- one two\n  three\n"},
		{"", "漢字 漢字 漢字", "", "漢字 漢字\n漢字\n"},
		{"", "e\u0301e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301e\u0301e\u0301", "", "e\u0301e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301e\u0301e\u0301\n"},
		{"", "a verylongwordindeed b", " ", "a\n verylongwordindeed\n b\n"},
		{"", "", "  ", "\n"},
	} {
		if got := wrapWords(tc.head, tc.text, tc.indent, 10); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.text, got, tc.want)
		}
	}
}
