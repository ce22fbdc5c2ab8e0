package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// normCase is expect.json of a normalize case; testdata/corpus/README.md says how it is compared.
type normCase struct {
	With struct {
		OS, Name string
		Stored   []serverEntry
	}
	Servers         []map[string]any
	Notes, Warnings *[]string
	Error           string
	ErrorAlso       []string `json:"error_also"`
}

// normCorpus returns the folders of one set of cases.
func normCorpus(t *testing.T, set string, atLeast int) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join("testdata", "corpus", set, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) < atLeast {
		t.Fatalf("%d %s cases, want at least %d", len(dirs), set, atLeast)
	}
	return dirs
}

func normRead(t *testing.T, pattern string) []byte {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) != 1 {
		t.Fatalf("%s: %d files, %v", pattern, len(names), err)
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// normAsMap is an entry as the JSON that a reader of the output sees.
func normAsMap(t *testing.T, e serverEntry) map[string]any {
	t.Helper()
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func normHas(texts []string, want string) bool {
	return slices.ContainsFunc(texts, func(s string) bool {
		return strings.Contains(strings.ToLower(s), strings.ToLower(want))
	})
}

func normWantTexts(t *testing.T, what string, got []string, want *[]string) {
	t.Helper()
	if want == nil {
		return
	}
	if len(*want) == 0 && len(got) > 0 {
		t.Errorf("%s: %q, want none", what, got)
	}
	for _, w := range *want {
		if !normHas(got, w) {
			t.Errorf("%s: %q, want one with %q", what, got, w)
		}
	}
}

func (c normCase) check(t *testing.T, input []byte) {
	t.Helper()
	res, err := normalize(input, normalizeOptions{OS: c.With.OS, Name: c.With.Name, Stored: c.With.Stored})
	if c.Error != "" {
		if err == nil {
			t.Fatalf("read %+v, want an error with %q", res.Servers, c.Error)
		}
		for _, want := range append([]string{c.Error}, c.ErrorAlso...) {
			if !normHas([]string{err.Error()}, want) {
				t.Errorf("error %q, want %q in it", err, want)
			}
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]any{}
	for _, e := range res.Servers {
		got[e.Name] = normAsMap(t, e)
	}
	for _, want := range c.Servers {
		name := want["name"].(string)
		if !reflect.DeepEqual(got[name], want) {
			t.Errorf("server %q is\n%v, want\n%v", name, got[name], want)
		}
	}
	if len(got) != len(c.Servers) || len(res.Servers) != len(c.Servers) {
		t.Errorf("%d servers, want %d", len(res.Servers), len(c.Servers))
	}
	normWantTexts(t, "notes", res.Notes, c.Notes)
	normWantTexts(t, "warnings", res.Warnings, c.Warnings)
}

func TestNormalizeCorpus(t *testing.T) {
	for _, dir := range normCorpus(t, "normalize", 143) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var c normCase
			if err := json.Unmarshal(normRead(t, filepath.Join(dir, "expect.json")), &c); err != nil {
				t.Fatal(err)
			}
			if c.Error == "" && len(c.Servers) == 0 {
				t.Fatal("the case expects nothing")
			}
			c.check(t, normRead(t, filepath.Join(dir, "input.*")))
		})
	}
}
