package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestCommonPrefix(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		list []string
		want string
	}{{nil, ""}, {[]string{"one"}, "one"}, {[]string{"file_read", "file_write"}, "file_"}, {[]string{"a", "b"}, ""}, {[]string{"一二", "一三"}, "一"}, {[]string{"ab", "abc"}, "ab"}, {[]string{"é", "è"}, ""}} {
		if got := string(commonPrefix(names(tc.list))); got != tc.want {
			t.Errorf("commonPrefix(%q) = %q, want %q", tc.list, got, tc.want)
		}
	}
}

func TestListColumns(t *testing.T) {
	t.Parallel()
	five := []string{"alpha", "beta", "gamma", "delta", "一二"}
	for _, tc := range []struct {
		name string
		list []string
		cols int
		want string
	}{
		{"none", nil, 80, ""},
		{"one row", five, 80, "alpha  beta   gamma  delta  一二\n"},
		{"two columns", five, 14, "alpha  delta\nbeta   一二\ngamma\n"},
		{"one column", five, 10, "alpha\nbeta\ngamma\ndelta\n一二\n"},
		{"too narrow", []string{"long_name_of_a_tool", "b"}, 10, "long_name…\nb\n"},
		{"control characters", []string{"a\x1b[2Jb"}, 40, `a\u001b[2Jb` + "\n"},
	} {
		got := listColumns(names(tc.list), tc.cols)
		if got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.name, got, tc.want)
		}
		for line := range strings.Lines(got) {
			if w := textWidth(strings.TrimSuffix(line, "\n")); w > tc.cols {
				t.Errorf("%s: %q takes %d columns of %d", tc.name, line, w, tc.cols)
			}
		}
	}
	var many []string
	for i := range 450 {
		many = append(many, fmt.Sprintf("name-%03d", i))
	}
	if got := listColumns(names(many), 80); !strings.HasSuffix(got, "… and 350 more\n") || strings.Count(got, "name-") != completeShow {
		t.Errorf("450 names: %s", got)
	}
	c := completion{list: names(append(many, many...))}
	if got := c.sorted(); len(got.list) != 450 {
		t.Errorf("%d candidates are left of twice 450", len(got.list))
	}
}
