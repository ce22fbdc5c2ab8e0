package main

import (
	"strings"
	"testing"
	"time"
)

func TestGlobPath(t *testing.T) {
	for _, tc := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.go", "main.go", true},
		{"*.go", "a/b/main.go", true}, // no slash: the last element, at any depth
		{"*.go", "main.goo", false},
		{"/*.go", "a/main.go", false},
		{"/*.go", "main.go", true},
		{"src/*.go", "src/a.go", true},
		{"src/*.go", "src/x/a.go", false},
		{"src/**/*.go", "src/a.go", true},
		{"src/**/*.go", "src/x/y/a.go", true},
		{"src/**", "src/x/y", true},
		{"src/**", "src", false},
		{"**/test/*", "a/test/x", true},
		{"**/test/*", "test/x", true},
		{"*.{ts,tsx}", "a/b.tsx", true},
		{"*.{ts,tsx}", "a/b.js", false},
		{"{a,b{c,d}}.x", "bd.x", true},
		{"{a,b{c,d}}.x", "b.x", false},
		{"{a}.x", "{a}.x", true}, // no alternatives: literal
		{"[!a]x", "bx", true},
		{"[!a]x", "ax", false},
		{`\*x`, "*x", true},
		{`\*x`, "ax", false},
		{"[", "[", false},
	} {
		if got := globPath(tc.pattern, tc.name); got != tc.want {
			t.Errorf("globPath(%q, %q) = %v, want %v", tc.pattern, tc.name, got, tc.want)
		}
	}
	for _, bad := range []string{"[", "a/[b", `x\`, ""} {
		if globValid(bad) {
			t.Errorf("globValid(%q) = true", bad)
		}
	}
}

// A pattern of many ** and one of many braces cost a bounded amount of work.
func TestGlobCost(t *testing.T) {
	start := time.Now()
	if globPath(strings.Repeat("**/", 200)+"x", strings.Repeat("a/", 200)+"y") {
		t.Error("matched")
	}
	if n := len(globBraces(strings.Repeat("{a,b}", 30))); n > globMaxBraces {
		t.Errorf("%d alternatives, at most %d", n, globMaxBraces)
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("took %s", d)
	}
}

func TestIgnored(t *testing.T) {
	rules := parseIgnore("", "# note\n\n*.log\n!keep.log\nbuild/\n/top\ndoc/**/x.txt\n\\#odd\ntrail  \r\n")
	rules = append(rules, parseIgnore("sub/dir", "*.tmp\n/only\n!/back.log\n")...)
	for _, tc := range []struct {
		path string
		dir  bool
		want bool
	}{
		{"a.log", false, true},
		{"x/y/a.log", false, true},
		{"x/keep.log", false, false},
		{"build", true, true},
		{"x/build", true, true},
		{"build", false, false}, // a file of that name is kept: the rule says folder
		{"top", false, true},
		{"x/top", false, false},
		{"doc/x.txt", false, true},
		{"doc/a/b/x.txt", false, true},
		{"#odd", false, true},
		{"trail", false, true},
		{"a.tmp", false, false},
		{"sub/dir/a.tmp", false, true},
		{"sub/dir/x/a.tmp", false, true},
		{"sub/dir/only", false, true},
		{"sub/dir/x/only", false, false},
		{"sub/dir/back.log", false, false}, // the deeper file's rule comes last and wins
		{"sub/dir", true, false},
	} {
		if got := ignored(rules, tc.path, tc.dir); got != tc.want {
			t.Errorf("ignored(%q, dir=%v) = %v, want %v", tc.path, tc.dir, got, tc.want)
		}
	}
}
