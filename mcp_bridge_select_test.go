package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// storedTools makes a run of tai whose vault has n granted tools, 100 a server, each with a schema of about 2 KB.
func storedTools(t testing.TB, n int) (*app, *toolbox) {
	t.Helper()
	home := t.TempDir()
	out := outside{Getenv: testEnv(filepath.Join(home, "config")), Stdin: strings.NewReader(""), Stdout: &strings.Builder{}, Stderr: &strings.Builder{}, GOOS: runtime.GOOS, Now: time.Now, Dir: home}
	a, err := openApp(out, map[string][]string{"home": {home}}, storeWrite, "cli")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	})
	v, err := a.vault(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for docs := range slices.Chunk(rankMany(n), 100) {
		var rows []toolRow
		for _, d := range docs {
			rows = append(rows, toolRow{Tool: d.Name, Description: d.Description, Schema: d.Schema, Hash: strings.Repeat("0", 58) + fmt.Sprintf("%06d", len(rows))})
		}
		e := serverEntry{Name: docs[0].Server, Transport: "http", URL: "https://" + docs[0].Server + ".example.invalid/mcp"}
		if err := v.putServer(t.Context(), e, profileDefault, true, rows, 1000); err != nil {
			t.Fatal(err)
		}
	}
	box, err := (&invocation{app: a}).toolbox()
	if err != nil {
		t.Fatal(err)
	}
	return a, box
}

// What a conversation writes leaves the list of tools as it is; any other write, by this process or another, and a secret that is new, have it read
// anew. What is chosen from the list comes whole.
func TestSelectStored(t *testing.T) {
	t.Parallel()
	a, box := storedTools(t, 400)
	v, err := a.vault(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, err := a.bridge.offered(t.Context())
	if err != nil || len(all) != 400 {
		t.Fatalf("%d tools, %v", len(all), err)
	}
	slices.SortFunc(all, func(a, b sourceTool) int { return strings.Compare(a.Name, b.Name) })
	choose := func() (chosen []toolDef, list *offeredList) {
		t.Helper()
		chosen, err := box.selectFor(t.Context(), "list the files of "+all[7].Name, []string{all[9].Name}, 100)
		if err != nil {
			t.Fatal(err)
		}
		return chosen, box.listed
	}
	chosen, first := choose()
	foreign := 0
	for _, d := range chosen {
		if i := slices.IndexFunc(all, func(s sourceTool) bool { return s.Name == d.Name }); i >= 0 {
			if foreign++; d.Description != all[i].Description || string(d.InputSchema) != string(all[i].InputSchema) || d.Title != all[i].Title {
				t.Errorf("%s comes as %+v, want %+v", d.Name, d, all[i])
			}
		}
	}
	if !first.brief || foreign < 10 || !slices.ContainsFunc(chosen, func(d toolDef) bool { return d.Name == all[7].Name }) || !slices.ContainsFunc(chosen, func(d toolDef) bool { return d.Name == all[9].Name }) {
		t.Errorf("brief %v, %d bridged tools of %d", first.brief, foreign, len(chosen))
	}
	session, err := v.createSession(t.Context(), sessionInfo{Profile: profileDefault})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.appendMessages(t.Context(), session, []storedMessage{{Role: "user", Content: "hello"}}); err != nil {
		t.Fatal(err)
	}
	if err := v.putUsage(t.Context(), usageRow{Session: session, Model: "m"}); err != nil {
		t.Fatal(err)
	}
	again, kept := choose()
	if kept != first || !slices.EqualFunc(again, chosen, func(a, b toolDef) bool { return a.Name == b.Name && string(a.InputSchema) == string(b.InputSchema) }) {
		t.Error("the list was read anew, or another choice came of it")
	}
	found, _, err := box.search(t.Context(), toolQuery{Words: all[3].Name, Server: all[3].Server, Limit: 2})
	if err != nil || len(found) == 0 || found[0].Description != all[3].Description {
		t.Errorf("found %+v, %v", found, err)
	}
	other, err := openVault(context.Background(), a.home, vaultWrite, time.Now, a.keys())
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	for _, tc := range []struct {
		what  string
		write func() error
		gone  int
	}{
		{"dropped here", func() error { return v.dropTools(t.Context(), all[7].Server, []string{all[7].Tool}) }, 7},
		{"dropped by another process", func() error { return other.dropTools(t.Context(), all[9].Server, []string{all[9].Tool}) }, 9},
	} {
		if err := tc.write(); err != nil {
			t.Fatal(err)
		}
		if now, list := choose(); list == kept || slices.ContainsFunc(now, func(d toolDef) bool { return d.Name == all[tc.gone].Name }) {
			t.Errorf("%s, but offered", tc.what)
		}
		_, kept = choose()
	}
	word := strings.Fields(all[3].Description)[1]
	if err := other.putSecret(t.Context(), "", "WORD", secret(word), nil); err != nil {
		t.Fatal(err)
	}
	knownStale(a.known)
	named, err := box.named(t.Context(), []string{all[3].Name})
	if err != nil || len(named) != 1 || strings.Contains(named[0].Description, word) {
		t.Errorf("a secret stands in %+v, %v", named, err)
	}
}

// BenchmarkSelect3200 is the choice for one message among 3,200 stored tools: the first one, one after a message was kept, and one with other words.
func BenchmarkSelect3200(b *testing.B) {
	a, box := storedTools(b, 3200)
	v, err := a.vault(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	session, err := v.createSession(b.Context(), sessionInfo{Profile: profileDefault})
	if err != nil {
		b.Fatal(err)
	}
	words := strings.Fields(rankWords(5000))
	choose := func(message string) {
		if defs, err := box.selectFor(b.Context(), message, nil, toolMaxOffered); err != nil || len(defs) == 0 {
			b.Fatal(len(defs), err)
		}
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			box.listed = nil
			choose("list the files in this folder and search them for todo")
		}
	})
	for _, name := range []string{"same", "other"} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				b.StopTimer()
				if err := v.appendMessages(b.Context(), session, []storedMessage{{Role: "user", Content: "hello"}}); err != nil {
					b.Fatal(err)
				}
				message := "list the files in this folder and search them for todo"
				if name == "other" {
					message = strings.Join(words[i*7%4000:][:12], " ")
				}
				b.StartTimer()
				choose(message)
			}
		})
	}
}
