package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// shellCorpus reads one of the lists of command lines: one a line, as a Go string where it begins with a double quote and a colon stands before it.
// Lines that begin with # name the group of those below.
func shellCorpus(t testing.TB, name string) (lines, groups []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "shell", name))
	if err != nil {
		t.Fatal(err)
	}
	group := ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			group = rest
			continue
		}
		if quoted, ok := strings.CutPrefix(line, ":"); ok && strings.HasPrefix(quoted, `"`) {
			if line, err = strconv.Unquote(quoted); err != nil {
				t.Fatalf("%s: %s: %v", name, quoted, err)
			}
		}
		if line != "" {
			lines, groups = append(lines, line), append(groups, group)
		}
	}
	return lines, groups
}

// TestShellEveryday: what people and models write to look around runs unasked.
func TestShellEveryday(t *testing.T) {
	lines, _ := shellCorpus(t, "reading.txt")
	if len(lines) < 200 {
		t.Fatalf("%d lines", len(lines))
	}
	asks := 0
	for _, line := range lines {
		if v := classifyShell(line, shellScope{Root: "/srv/app"}); !v.Reading {
			asks++
			t.Logf("asks: %s: %s", line, v.Reason)
		}
	}
	t.Logf("%d of %d run unasked", len(lines)-asks, len(lines))
	if 20*asks > len(lines) {
		t.Errorf("%d of %d ask, at most one in twenty may", asks, len(lines))
	}
}

// TestShellBypass: SHL-01 to SHL-14 and their siblings: none of these runs unasked, whatever it looks like.
func TestShellBypass(t *testing.T) {
	lines, groups := shellCorpus(t, "bypass.txt")
	if len(lines) < 500 {
		t.Fatalf("%d lines", len(lines))
	}
	seen := map[string]bool{}
	for i, line := range lines {
		if seen[line] {
			t.Errorf("%s: %q stands twice", groups[i], line)
		}
		seen[line] = true
		if v := classifyShell(line, shellScope{Root: "/srv/app"}); v.Reading || v.Reason == "" {
			t.Errorf("%s: %q runs unasked", groups[i], line)
		}
	}
}
