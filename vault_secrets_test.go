package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestSecretNames(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"A": true, "_x": true, "GITHUB_TOKEN": true, "api-key.v2": true, strings.Repeat("a", 128): true,
		"": false, "1A": false, "-a": false, ".a": false, "a b": false, "a/b": false, "é": false, "a\n": false, "[": false, "@": false, "`": false, "{": false, strings.Repeat("a", 129): false,
	} {
		if err := validSecretName(name); (err == nil) != ok {
			t.Errorf("validSecretName(%q) = %v, want ok %v", name, err, ok)
		}
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	for _, s := range []struct{ profile, name, value string }{
		{"", "B", "plain"}, {"", "A", "old"}, {"", "A", "new\x00\xff"}, {"work", "A", "of work"},
	} {
		if err := v.putSecret(ctx, s.profile, s.name, secret(s.value), json.RawMessage(`{"n":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		profile, name, want string
		err                 error
	}{
		{"", "A", "new\x00\xff", nil}, {"work", "A", "of work", nil}, {"work", "B", "", errNotFound}, {"", "b", "", errNotFound},
	} {
		got, err := v.secretFor(ctx, tc.profile, tc.name)
		if got.reveal() != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("secretFor(%q, %q) = %q, %v", tc.profile, tc.name, got.reveal(), err)
		}
	}
	list, err := v.secrets(ctx)
	if err != nil || len(list) != 3 {
		t.Fatalf("%d secrets, %v", len(list), err)
	}
	if got := fmt.Sprintf("%s/%s %s/%s %s/%s %s %d", list[0].Profile, list[0].Name, list[1].Profile, list[1].Name, list[2].Profile, list[2].Name, list[0].Meta, list[0].Updated.Unix()); got != `/A work/A /B {"n":1} 1800000000` {
		t.Errorf("secrets: %s", got)
	}
	var known []string
	all, err := v.knownSecrets(ctx)
	for _, s := range all {
		known = append(known, s.Name+"="+s.Value.reveal())
	}
	if got, want := strings.Join(known, " "), "A=new\x00\xff A=of work B=plain"; err != nil || got != want {
		t.Errorf("knownSecrets = %q, %v; want %q", got, err, want)
	}
	for name, value := range map[string]secret{"bad name": "x", "EMPTY": "", "BIG": secret(bytes.Repeat([]byte("x"), secretValueMax+1))} {
		if err := v.putSecret(ctx, "", name, value, nil); err == nil {
			t.Errorf("%s was stored", name)
		}
	}
	if err := v.deleteSecret(ctx, "", "A"); err != nil {
		t.Error(err)
	}
	if err := v.deleteSecret(ctx, "", "A"); !errors.Is(err, errNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if _, err := v.secretFor(ctx, "work", "A"); err != nil {
		t.Errorf("the other profile's secret went: %v", err)
	}
}

func TestOAuthSecretPrefix(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, server := range []string{"files", "my server", "my_server", "my/server", "größe", strings.Repeat("x", 128), strings.Repeat("x", 127) + "y"} {
		p := oauthSecretPrefix(server)
		if err := validSecretName(p + "refresh"); err != nil {
			t.Errorf("%q: %v", server, err)
		}
		if other, ok := seen[p]; ok {
			t.Errorf("%q and %q share %q", server, other, p)
		}
		seen[p] = server
	}
	if p := oauthSecretPrefix("files"); p != "mcp-oauth-files-" {
		t.Errorf("prefix %q", p)
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	if err := errors.Join(v.createProfile(ctx, "work"), v.createProfile(ctx, "büro-2"), v.useProfile(ctx, "work")); err != nil {
		t.Fatal(err)
	}
	list, err := v.profiles(ctx)
	var got []string
	for _, p := range list {
		got = append(got, fmt.Sprint(p.Name, p.Current))
	}
	if want := "[büro-2false defaultfalse worktrue]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("profiles %v, %v; want %s", got, err, want)
	}
	for what, tc := range map[string]struct {
		err  error
		want string
	}{
		"twice":          {v.createProfile(ctx, "work"), "exists already"},
		"bad name":       {v.createProfile(ctx, "a b"), "profile name"},
		"dot first":      {v.createProfile(ctx, ".a"), "profile name"},
		"too long":       {v.createProfile(ctx, strings.Repeat("a", 65)), "at most 64"},
		"use unknown":    {v.useProfile(ctx, "nowhere"), `use profile "nowhere": not found`},
		"delete current": {v.deleteProfile(ctx, "work"), "in use"},
		"delete default": {v.deleteProfile(ctx, "default"), "stays"},
		"delete unknown": {v.deleteProfile(ctx, "nowhere"), "not found"},
	} {
		if tc.err == nil || !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", what, tc.err, tc.want)
		}
	}
	e := serverEntry{Name: "s", Transport: "stdio"}
	err = errors.Join(v.putServer(ctx, e, "work", true, nil, 1), v.putServer(ctx, e, "default", true, nil, 1), v.putSecret(ctx, "work", "T", "x", nil),
		v.useProfile(ctx, "default"), v.deleteProfile(ctx, "work"))
	if err != nil {
		t.Fatal(err)
	}
	row, err := v.server(ctx, "s")
	if _, there := row.Profiles["work"]; err != nil || there || !row.Profiles["default"] {
		t.Errorf("rows left: %v, %v", row.Profiles, err)
	}
	if _, err := v.secretFor(ctx, "work", "T"); !errors.Is(err, errNotFound) {
		t.Errorf("the profile's secret: %v", err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	if _, err := v.setting(ctx, "k"); !errors.Is(err, errNotFound) {
		t.Errorf("unset: %v", err)
	}
	for _, want := range []string{"one", ""} {
		if err := v.setSetting(ctx, "k", want); err != nil {
			t.Fatal(err)
		}
		if got, err := v.setting(ctx, "k"); err != nil || got != want {
			t.Errorf("setting = %q, %v; want %q", got, err, want)
		}
	}
}

// A secret that comes in with an entry takes no name that another process has given another value meanwhile: then neither is stored.
func TestR9MovedOtherValue(t *testing.T) {
	t.Parallel()
	ctx, v := t.Context(), vaultAt(t, t.TempDir())
	if err := v.putSecret(ctx, "", "KEY", "value-of-another", nil); err != nil {
		t.Fatal(err)
	}
	entry := serverEntry{Name: "srv", Transport: "stdio", Command: "c", Env: map[string]string{"KEY": "${KEY}"}, Source: "explicit"}
	put := func(value secret) error {
		return v.putServer(ctx, entry, profileDefault, true, nil, mcpMaxServers, namedSecret{"NEW", "value-new"}, namedSecret{"KEY", value})
	}
	if err := put("value-of-mine"); err == nil || !strings.Contains(err.Error(), `"KEY" has another value`) || strings.Contains(err.Error(), "value-of") {
		t.Errorf("another value: %v", err)
	}
	rows, err := v.servers(ctx)
	if _, newErr := v.secretFor(ctx, "", "NEW"); err != nil || len(rows) != 0 || !errors.Is(newErr, errNotFound) {
		t.Errorf("stored all the same: %v, %v, %v", rows, err, newErr)
	}
	if err := put("value-of-another"); err != nil {
		t.Errorf("the same value: %v", err)
	}
	if s, err := v.secretFor(ctx, "", "KEY"); err != nil || s.reveal() != "value-of-another" {
		t.Errorf("the value changed: %v", err)
	}
}
