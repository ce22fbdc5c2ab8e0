package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const trustTestFile = `{"version":1,"servers":{"files":{"allow":["read_*"],"deny":["write_*"],"note":"only reads","created":"2026-01-02T03:04:05Z"},"web":{"deny":["*"]}}}`

// Trust reads exactly its form, and whatever it says narrows: without the file, or where it names no fitting server, it says nothing.
func TestTrustJudge(t *testing.T) {
	t.Parallel()
	for _, confirmed := range []bool{true, false} {
		rules, passed, err := parseTrust([]byte(trustTestFile), confirmed)
		if err != nil || confirmed == (passed == 1) {
			t.Fatalf("confirmed %v: %d passed over, %v", confirmed, passed, err)
		}
		for _, tc := range []struct{ server, tool, rule, unconfirmed string }{
			{"files", "read_file", "trust allow read_*", ruleTrustUnconfirmed},
			{"files", "write_file", "trust deny write_*", "trust deny write_*"},
			{"files", "list", ruleTrustAllowList, ruleTrustUnconfirmed},
			{"files", "Read_file", ruleTrustAllowList, ruleTrustUnconfirmed},
			{"files", "", ruleTrustAllowList, ruleTrustUnconfirmed},
			{"Files", "write_file", "", ""}, {"files ", "write_file", "", ""}, {"", "x", "", ""}, {"other", "x", "", ""},
			{"web", "anything/at all", "trust deny *", "trust deny *"},
		} {
			want := tc.rule
			if !confirmed {
				want = tc.unconfirmed
			}
			got := rules.judge(tc.server, tc.tool)
			if got.Rule != want || got.Deny != (want != "" && !strings.HasPrefix(want, ruleTrustAllow+"read")) || got.Deny && (got.Reason == "" || got.Hint == "") {
				t.Errorf("confirmed %v, %s/%s: %+v, want %q", confirmed, tc.server, tc.tool, got, want)
			}
		}
	}
	if got := (*trustRules)(nil).judge("files", "write_file"); got != (trustVerdict{}) {
		t.Errorf("no file: %+v", got)
	}
	hidden, _, err := parseTrust([]byte("{\"version\":1,\"servers\":{\"s\":{\"deny\":[\"a\\u001b[2J\\n*\"]}}}"), true)
	if err != nil {
		t.Fatal(err)
	}
	if got := hidden.judge("s", "a\x1b[2J\nb"); !got.Deny || strings.ContainsAny(got.Rule+got.Reason+visibleLine(got.Hint), "\x1b\n") {
		t.Errorf("a pattern with control characters: %+v", got)
	}
}

// TestPOL09Trust: a trust file that cannot be relied on stops the start and is named, as the other policy files.
func TestPOL09Trust(t *testing.T) {
	t.Parallel()
	many := `"` + strings.Repeat(`x","`, trustPatternMax) + `x"`
	for name, text := range map[string]string{
		"cut": trustTestFile[:40], "empty": "", "text": "deny all", "unknown field": `{"version":1,"servers":{},"x":1}`, "unknown entry field": `{"version":1,"servers":{"s":{"denied":["x"]}}}`,
		"case": `{"version":1,"Servers":{}}`, "entry case": `{"version":1,"servers":{"s":{"Deny":["x"]}}}`, "twice": `{"version":1,"servers":{"s":{"deny":["x"]},"s":{"deny":[]}}}`,
		"version": `{"version":2,"servers":{}}`, "no version": `{"servers":{}}`, "a text for a list": `{"version":1,"servers":{"s":{"deny":"x"}}}`, "a list of servers": `{"version":1,"servers":[]}`,
		"no server name": `{"version":1,"servers":{"":{"deny":["x"]}}}`, "no tool name": `{"version":1,"servers":{"s":{"deny":[""]}}}`, "too many": `{"version":1,"servers":{"s":{"deny":[` + many + `]}}}`,
		"long note": `{"version":1,"servers":{"s":{"note":"` + strings.Repeat("n", trustNoteMax+1) + `"}}}`, "large": strings.Repeat(" ", policyFileMax+1), "two documents": trustTestFile + trustTestFile,
	} {
		dir := presetTestDir(t, map[string]string{trustName: text})
		w, err := loadWorkspacePolicy(dir, func(string) bool { return true })
		if err == nil || w.Trust != nil || !strings.Contains(err.Error(), filepath.Join(dir, trustName)) {
			t.Errorf("POL-09 %s: %+v, %v", name, w, err)
		}
		if _, err := (&trustSource{Dir: dir, Trusted: func(string) bool { return true }}).read(vaultStamp{}); !errors.Is(err, errTrustFile) {
			t.Errorf("POL-09 %s while it runs: %v", name, err)
		}
	}
	for name, spoil := range map[string]func(dir, file string) error{
		"world-writable":        func(_, file string) error { return os.Chmod(file, 0o602) },
		"world-writable folder": func(dir, _ string) error { return os.Chmod(dir, 0o777) },
		"folder":                func(_, file string) error { os.Remove(file); return os.Mkdir(file, 0o700) },
		"linked": func(_, file string) error {
			return errors.Join(os.Rename(file, file+".real"), os.Symlink(file+".real", file))
		},
		"linked folder": func(dir, _ string) error {
			return errors.Join(os.Rename(dir, dir+".real"), os.Symlink(dir+".real", dir))
		},
	} {
		if runtime.GOOS == "windows" {
			break
		}
		dir := presetTestDir(t, map[string]string{trustName: trustTestFile})
		file := filepath.Join(dir, trustName)
		if err := spoil(dir, file); err != nil {
			t.Fatal(err)
		}
		if _, err := loadWorkspacePolicy(dir, nil); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("POL-09 %s: %v", name, err)
		}
		if _, err := (&trustSource{Dir: dir}).read(vaultStamp{}); !errors.Is(err, errTrustFile) {
			t.Errorf("POL-09 %s while it runs: %v", name, err)
		}
	}
}

// TestCFG02Trust: an allow that nobody confirmed allows nothing, with one line that says so; a deny counts without a word.
func TestCFG02Trust(t *testing.T) {
	t.Parallel()
	dir := presetTestDir(t, map[string]string{trustName: trustTestFile})
	for confirmed, notes := range map[bool]int{true: 0, false: 1} {
		w, err := loadWorkspacePolicy(dir, func(sum string) bool { return confirmed && sum == sha256Hex([]byte(trustTestFile)) })
		if err != nil || len(w.Notes) != notes || w.Trust.Confirmed != confirmed || notes == 1 && !strings.Contains(w.Notes[0], "tai mcp trust list --confirm") {
			t.Errorf("confirmed %v: %+v, %v", confirmed, w, err)
		}
	}
}

// Several tais that change the trust file at the same time lose nothing, and what they wrote counts.
func TestTrustStoreTogether(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), filepath.Join(t.TempDir(), ".tai")
	const writers, each = 4, 5
	var wg sync.WaitGroup
	for w := range writers {
		v := storeTestVault(t, home)
		wg.Go(func() {
			for i := range each {
				tc := trustChange{server: "s", edit: func(e *trustEntry) error {
					e.Allow = append(e.Allow, fmt.Sprintf("<%d/%d>*", w, i))
					return nil
				}}
				if err := changeTrust(t.Context(), v, dir, "", true, tc.apply(time.Now())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	f, err := readTrust(dir, storeTestTrusted(t, storeTestVault(t, home)))
	if err != nil || !f.Known || !f.Trust.Confirmed || len(f.Trust.Servers["s"].Allow) != writers*each {
		t.Fatalf("%+v, %v", f.Trust, err)
	}
	if info, err := os.Stat(f.Path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// What somebody else wrote does not come to count by a deny beside it, and an allow refuses to join it unless a person saw this very state.
func TestTrustStoreForeign(t *testing.T) {
	t.Parallel()
	dir := presetTestDir(t, map[string]string{trustName: trustTestFile})
	v := storeTestVault(t, t.TempDir())
	trusted := storeTestTrusted(t, v)
	put := func(confirmed string, widen bool, list func(*trustEntry) *[]string, tool string) error {
		c := trustChange{server: "files", edit: func(e *trustEntry) error { *list(e) = append(*list(e), tool); return nil }}
		return changeTrust(t.Context(), v, dir, confirmed, widen, c.apply(time.Now()))
	}
	for _, confirmed := range []string{"", strings.Repeat("0", 64)} {
		if err := put(confirmed, true, trustAllowList, "x"); !errors.Is(err, errPolicyChanged) {
			t.Errorf("confirmed %q: %v", confirmed, err)
		}
	}
	if err := put("", false, trustDenyList, "y"); err != nil {
		t.Fatal(err)
	}
	f, err := readTrust(dir, trusted)
	if err != nil || f.Known || f.Trust.Confirmed || !f.Trust.judge("files", "y").Deny || f.Trust.judge("files", "read_x").Rule != ruleTrustUnconfirmed {
		t.Fatalf("after a deny: %+v, %v", f, err)
	}
	if err := put(f.Hash, true, trustAllowList, "x"); err != nil {
		t.Fatal(err)
	}
	if f, err = readTrust(dir, trusted); err != nil || !f.Known || f.Trust.judge("files", "x").Deny || f.Trust.Servers["files"].Note != "only reads" || f.Trust.Servers["files"].Created != "2026-01-02T03:04:05Z" {
		t.Fatalf("after a confirmed allow: %+v, %v", f, err)
	}
}
