package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// selectNatives gives core tools and others, of which two fit the message of F18.
func selectNatives(core, others int) []tool {
	var tools []tool
	for i := range core {
		tl := toolsPlain(fmt.Sprintf("core%02d", i), toolHints{}, toolsText("core"))
		tl.Core = true
		tools = append(tools, tl)
	}
	for i := range others {
		tools = append(tools, toolsPlain(fmt.Sprintf("rest%02d", i), toolHints{}, toolsText("rest")))
		tools[len(tools)-1].Family = fmt.Sprint("rest", i)
	}
	for _, name := range []string{"dir_list", "text_search"} {
		tools = append(tools, toolsPlain(name, toolHints{ReadOnly: true}, toolsText("native")))
		tools[len(tools)-1].Family = "files"
	}
	return tools
}

// selectMany gives four servers of 60 tools that all speak of the words of the message (F18).
func selectMany() *fakeSource {
	src := &fakeSource{}
	for s := range 4 {
		for i := range 60 {
			src.defs = append(src.defs, toolDef{Name: fmt.Sprintf("mcp_s%d_search_list_file_%02d", s, i), Description: "Search, list or read each file: list files, search files."})
		}
	}
	return src
}

func selectNames(t *testing.T, box *toolsBox, message string, used []string, limit int) []string {
	t.Helper()
	defs, err := box.selectFor(t.Context(), message, used, limit)
	if err != nil {
		t.Errorf("selectFor(%q): %v", message, err)
	}
	var names []string
	for _, d := range defs {
		names = append(names, d.Name)
	}
	return names
}

const selectMessage = "list the files here and search them for TODO"

// F18: the request never has more tools than the endpoint takes, native tools that fit are in it and first, whatever the bridged ones score,
// and the same message over the same servers gives the same choice.
func TestF18SelectFor(t *testing.T) {
	t.Parallel()
	src := selectMany()
	src.defs = append(src.defs,
		toolDef{Name: "mcp_zoo_feed_lion", Description: "Feed the lion."},
		toolDef{Name: "mcp_zoo_broken", Description: "Feed the lion, broken.", Fault: "bad schema"},
		toolDef{Name: "dir_list", Description: "Feed the lion in place of the native tool."},
		toolDef{Name: "no good name", Description: "Feed the lion."})
	box := newToolsBox(t, modePrompt, src, selectNatives(25, 34)...)
	names := selectNames(t, box, selectMessage, nil, 500)
	if len(names) != toolMaxOffered {
		t.Fatalf("%d tools, want %d", len(names), toolMaxOffered)
	}
	for i, name := range names {
		switch {
		case i < 25 && name != fmt.Sprintf("core%02d", i):
			t.Errorf("place %d has %s, want the core in its order", i, name)
		case i == 25 && name != "dir_list" || i == 26 && name != "text_search":
			t.Errorf("place %d has %s, want the native tools that fit", i, name)
		case i > 26 && !strings.HasPrefix(name, "mcp_s"):
			t.Errorf("place %d has %s, want a bridged tool that fits", i, name)
		}
	}
	if !slices.IsSorted(names[27:]) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("bridged tools are not in order, or one stands twice: %q", names[27:])
	}
	if again := selectNames(t, box, selectMessage, nil, 500); !slices.Equal(again, names) {
		t.Errorf("another choice for the same message: %q", again)
	}
	slices.Reverse(src.defs)
	if again := selectNames(t, newToolsBox(t, modePrompt, src, selectNatives(25, 34)...), selectMessage, nil, 500); !slices.Equal(again, names) {
		t.Errorf("the order of the servers changes the choice: %q", again)
	}
	for _, tc := range []struct {
		name, message string
		used          []string
		limit         int
		in, out       string // names that have to be there, and may not
		want          int
	}{
		{"used before", selectMessage, []string{"mcp_zoo_feed_lion", "rest07", "mcp_gone_x"}, 128, "mcp_zoo_feed_lion rest07 text_search", "mcp_zoo_broken", 128},
		{"used more than there is room for", selectMessage, append(slices.Repeat([]string{"mcp_s0_search_list_file_00"}, 200), "mcp_zoo_feed_lion"), 28, "core24 text_search mcp_zoo_feed_lion", "mcp_s0_search_list_file_00", 28},
		{"named in the message", "use mcp_zoo_feed_lion: " + selectMessage, nil, 40, "mcp_zoo_feed_lion core24", "", 40},
		{"named as its server names it", "zoo/feed_lion and rest09: " + selectMessage, nil, 128, "mcp_zoo_feed_lion core24", "", 128},
		{"names fill no more than half", strings.Join(names[27:], " "), nil, 50, "core24", "", 50},
		{"what does not fit is not there to fill up", "feed the lion", nil, 128, "mcp_zoo_feed_lion core24", "mcp_zoo_broken dir_list text_search rest01", 26},
		{"nothing fits", "hello", nil, 128, "core24", "rest01", 25},
		{"not even the core has room", selectMessage, nil, 10, "core00 core09", "core10 text_search", 10},
		{"no room", selectMessage, nil, 0, "", "", 0},
		{"less than none", selectMessage, nil, -3, "", "", 0},
	} {
		got := selectNames(t, box, tc.message, tc.used, tc.limit)
		if len(got) != tc.want {
			t.Errorf("%s: %d tools, want %d: %q", tc.name, len(got), tc.want, got)
		}
		for _, name := range strings.Fields(tc.in) {
			if !slices.Contains(got, name) {
				t.Errorf("%s: %s is not there: %q", tc.name, name, got)
			}
		}
		for _, name := range strings.Fields(tc.out) {
			if slices.Contains(got, name) {
				t.Errorf("%s: %s is there", tc.name, name)
			}
		}
	}
	src.defs = src.defs[len(src.defs)-10:]
	if got := selectNames(t, box, "hello", nil, 128); len(got) != 25+34+2+10 {
		t.Errorf("all are offered when all fit: %d tools", len(got))
	}
	src.err = errors.New("vault closed")
	if defs, err := box.selectFor(t.Context(), "hello", nil, 128); err == nil || len(defs) != 25+34+2 {
		t.Errorf("a bridge that fails leaves the native tools: %d tools, %v", len(defs), err)
	}
}

// The index is kept while the tools are the same, and follows them when they change; it may be asked from several sides at once.
func TestRankIndexKept(t *testing.T) {
	t.Parallel()
	src := selectMany()
	box := newToolsBox(t, modePrompt, src, selectNatives(1, 0)...)
	bridged := func() *offeredList {
		list, err := box.bridged(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	first := box.rank(bridged())
	if again := box.rank(bridged()); again != first {
		t.Error("the index was built again over the same tools")
	}
	for what, change := range map[string]func(*toolDef){
		"description": func(d *toolDef) { d.Description = "Feed the lion." },
		"schema": func(d *toolDef) {
			d.InputSchema = json.RawMessage(`{"properties":{"lion":{}}}`)
		},
		"name": func(d *toolDef) { d.Name = "mcp_s0_lion" },
	} {
		src = selectMany()
		box.bridge = src
		box.rank(bridged())
		change(&src.defs[0])
		if found, _, err := box.search(t.Context(), toolQuery{Words: "lion", Limit: 5}); err != nil || len(found) == 0 || found[0].Name != src.defs[0].Name {
			t.Errorf("a changed %s is not found: %v, %v", what, found, err)
		}
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 5 {
				if found, fit, err := box.search(t.Context(), toolQuery{Words: selectMessage, Server: fmt.Sprint("s", i%4), Limit: 3}); err != nil || len(found) != 3 || fit != 60 {
					t.Errorf("search: %d of %d, %v", len(found), fit, err)
				}
			}
		})
	}
	wg.Wait()
}
