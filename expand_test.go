package main

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"
)

func expandLookup(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func TestExpandCorpus(t *testing.T) {
	for _, dir := range normCorpus(t, "expand", 35) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var in struct {
				Entry      serverEntry
				Env, Vault map[string]string
			}
			var want struct {
				Entry, Display map[string]any
				Refuse         string
				RefuseAlso     []string `json:"refuse_also"`
			}
			if err := json.Unmarshal(normRead(t, filepath.Join(dir, "input.json")), &in); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(normRead(t, filepath.Join(dir, "expect.json")), &want); err != nil {
				t.Fatal(err)
			}
			before := normAsMap(t, in.Entry)
			expanded, display, err := expandEntry(in.Entry, expandLookup(in.Env), expandLookup(in.Vault))
			if !reflect.DeepEqual(normAsMap(t, in.Entry), before) {
				t.Error("the stored entry was changed")
			}
			if want.Refuse == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got := normAsMap(t, expanded); !reflect.DeepEqual(got, want.Entry) {
					t.Errorf("got %v, want %v", got, want.Entry)
				}
				return
			}
			if err == nil {
				t.Fatalf("expanded to %+v, want a refusal with %q", expanded, want.Refuse)
			}
			for _, w := range append(want.RefuseAlso, want.Refuse, in.Entry.Name) {
				if !normHas([]string{err.Error()}, w) {
					t.Errorf("error %q, want %q in it", err, w)
				}
			}
			if got := normAsMap(t, display); want.Display != nil && !reflect.DeepEqual(got, want.Display) {
				t.Errorf("display %v, want %v", got, want.Display)
			}
		})
	}
}
