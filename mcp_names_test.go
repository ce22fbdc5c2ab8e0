package main

import (
	"regexp"
	"strings"
	"testing"
)

func noNative(string) bool { return false }

// F15: names that models take, different for different tools, the same on every run.
func TestF15BridgedNames(t *testing.T) {
	refs := []toolRef{
		{"internal-knowledge-platform-eu-production", "search_customer_documentation_by_product"},
		{"internal-knowledge-platform-eu-production", "search_customer_documentation_by_project"},
		{"数据库", "查询"}, {"café", "查询"}, {"files", "read_text_file"}, {"everything", "get-sum"},
	}
	names, back := bridgedNames(refs, noNative)
	good := regexp.MustCompile(`^[a-z0-9_]{1,64}$`)
	for _, r := range refs {
		if !good.MatchString(names[r]) {
			t.Errorf("name of %v = %q", r, names[r])
		}
		if back[names[r]] != r {
			t.Errorf("%q leads back to %v, want %v", names[r], back[names[r]], r)
		}
	}
	if len(back) != len(refs) {
		t.Errorf("%d names for %d tools", len(back), len(refs))
	}
	if got := names[refs[4]]; got != "mcp_files_read_text_file" {
		t.Errorf("plain name = %q", got)
	}
	if got := names[refs[5]]; got != "mcp_everything_get_sum" {
		t.Errorf("cleaned name = %q", got)
	}
}

// LST-04: three tools that clean to one name stay three, and the exact one keeps it.
func TestLST04ClashingNames(t *testing.T) {
	refs := []toolRef{{"s", "read-file"}, {"s", "read.file"}, {"s", "read_file"}}
	names, back := bridgedNames(refs, noNative)
	if names[refs[2]] != "mcp_s_read_file" || len(back) != 3 {
		t.Errorf("names = %v", names)
	}
	// A name does not change when another tool comes, nor with the order.
	again, _ := bridgedNames([]toolRef{refs[2], {"s", "read file"}, refs[1], refs[0]}, noNative)
	for _, r := range refs {
		if again[r] != names[r] {
			t.Errorf("name of %v changed from %q to %q", r, names[r], again[r])
		}
	}
}

func TestBridgedNameEdges(t *testing.T) {
	long := strings.Repeat("a", 80)
	for _, tc := range []struct {
		name  string
		refs  []toolRef
		taken string
		want  []string
	}{
		{"fits exactly", []toolRef{{"s", strings.Repeat("b", 58)}}, "", []string{"mcp_s_" + strings.Repeat("b", 58)}},
		{"native wins", []toolRef{{"a", "dd"}}, "mcp_a_dd", nil},
		{"across servers", []toolRef{{"a_b", "c"}, {"a", "b_c"}}, "", nil},
		{"long twice", []toolRef{{"s", long + "1"}, {"s", long + "2"}}, "", nil},
		{"case", []toolRef{{"s", "READ"}, {"s", "read"}}, "", []string{"", "mcp_s_read"}},
	} {
		names, back := bridgedNames(tc.refs, func(n string) bool { return n == tc.taken })
		if len(back) != len(tc.refs) {
			t.Errorf("%s: %d names for %d tools", tc.name, len(back), len(tc.refs))
		}
		for i, r := range tc.refs {
			if names[r] == tc.taken || len(names[r]) > bridgedNameMax || names[r] == "" {
				t.Errorf("%s: %v = %q", tc.name, r, names[r])
			}
			if i < len(tc.want) && tc.want[i] != "" && names[r] != tc.want[i] {
				t.Errorf("%s: %v = %q, want %q", tc.name, r, names[r], tc.want[i])
			}
		}
	}
}
