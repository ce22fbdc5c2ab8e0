package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestParseGitStatus(t *testing.T) {
	n := func(i int) *int { return &i }
	const modes = " 100644 100644 100644 aaaa bbbb "
	for name, tc := range map[string]struct {
		entries []string
		want    gitStatus
	}{
		"empty":   {nil, gitStatus{}},
		"headers": {[]string{"# branch.oid abc", "# branch.head main", "# branch.upstream o/main", "# branch.ab +2 -3", "# stash 4"}, gitStatus{Branch: "main", Head: "abc", Upstream: "o/main", Ahead: n(2), Behind: n(3), Stash: 4}},
		"initial": {[]string{"# branch.oid (initial)", "# branch.head (detached)", "# branch.ab x y", "# stash x", "# new thing"}, gitStatus{}},
		"both sides": {[]string{"1 MD N..." + modes + "a b", "1 .T S.M." + modes + "sub"},
			gitStatus{Staged: []gitChange{{Path: "a b", Change: "modified"}}, Changed: []gitChange{{Path: "a b", Change: "deleted"}, {Path: "sub", Change: "type changed", Submodule: true}}}},
		"rename": {[]string{"2 R. N..." + modes + "R100 new", "old", "2 .C N..." + modes + "C75 copy\nline", "src"},
			gitStatus{Staged: []gitChange{{Path: "new", Change: "renamed", From: "old"}}, Changed: []gitChange{{Path: "copy\nline", Change: "copied", From: "src"}}}},
		"conflict": {[]string{"u UD N... 1 2 3 4 a b c path", "u ZZ N... 1 2 3 4 a b c p2"}, gitStatus{Conflicts: []gitChange{{Path: "path", Change: "deleted by them"}, {Path: "p2", Change: "in conflict"}}}},
		"others":   {[]string{"? new/", "! ignored", "9 what"}, gitStatus{Untracked: []string{"new/"}}},
		"broken":   {[]string{"1 M", "2 R. N..." + modes + "R100 new"}, gitStatus{}},
	} {
		out := ""
		for _, e := range tc.entries {
			out += e + "\x00"
		}
		for _, tail := range []string{"", "1 M. N... 100644 100", "? cut o"} { // an entry that is cut off counts for nothing
			if got := parseGitStatus(out + tail); !reflect.DeepEqual(got, tc.want) {
				if name == "broken" && tail != "" {
					continue // the rename takes it for its other name
				}
				t.Errorf("%s with %q: got %+v, want %+v", name, tail, got, tc.want)
			}
		}
	}
}

func TestParseGitCounts(t *testing.T) {
	for _, tc := range []struct{ out, want, rest string }{
		{"", "[]", ""},
		{"1\t2\ta\tb\x00", "[{a\tb  1 2 false}]", ""},
		{"-\t-\tbin\x00\x00diff --git\n", "[{bin  0 0 true}]", "diff --git\n"},
		{"1\t0\t\x00old\x00new\x003\t0\tz\x00", "[{new old 1 0 false} {z  3 0 false}]", ""},
		{"1\t0\tcut", "[]", ""},
		{"1\t0\t\x00cut", "[]", ""},
		{"what", "[]", ""},
	} {
		files, rest := parseGitCounts(tc.out)
		if got := fmt.Sprint(files); got != tc.want || rest != tc.rest {
			t.Errorf("parseGitCounts(%q) = %s, %q, want %s, %q", tc.out, got, rest, tc.want, tc.rest)
		}
	}
}

func TestParseGitCommits(t *testing.T) {
	one := "h\x00p1 p2\x00Ada\x00a@b\x002020-01-02T03:04:05Z\x00HEAD -> main\x00Subject\x00Body\n\x00\n"
	list := parseGitCommits(one + strings.Replace(one, "p1 p2", "", 1) + "cut\x00off")
	if len(list) != 2 || list[0].Body != "Body" || !reflect.DeepEqual(list[0].Parents, []string{"p1", "p2"}) || list[1].Parents == nil || len(list[1].Parents) != 0 || list[1].Hash != "h" {
		t.Errorf("%+v", list)
	}
	if got := parseGitCommits(""); got == nil || len(got) != 0 {
		t.Errorf("no commits: %#v", got)
	}
}
