package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The tables are those of the contract by the letter, columns in order and keys.
func TestVaultMCPTables(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, t.TempDir())
	for table, want := range map[string]string{
		"mcp_servers":         "name* transport command args_json env_json url headers_json cwd allow_json deny_json source created updated",
		"mcp_server_profiles": "server* profile* enabled",
		"mcp_tool_pins":       "server* tool* hash updated",
		"mcp_server_tools":    "server* tool* description schema_json updated",
	} {
		var got []string
		err := v.view(t.Context(), func(tx *sql.Tx) error {
			return eachRow(t.Context(), tx, func(r *sql.Rows) error {
				var name, key string
				err := r.Scan(&name, &key)
				got = append(got, name+key)
				return err
			}, `SELECT name, iif(pk > 0, '*', '') FROM pragma_table_info(?) ORDER BY cid`, table)
		})
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v; want %s", table, got, err, want)
		}
	}
}

func TestServerRoundTrip(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	on := true
	full := serverEntry{
		Name: "files & \"more\"/ü", Transport: "stdio", Command: "npx", Args: []string{"-y", "", "${X}"}, Env: map[string]string{"A": "<&>", "a": ""}, Cwd: "/w",
		URL: "u", Headers: map[string]string{"Authorization": "Bearer ${T}"}, Allow: []string{"x"}, Deny: []string{"y", "z"}, Enabled: &on, Source: "config-json",
	}
	bare := serverEntry{Name: "bare", Transport: "http", URL: "http://127.0.0.1/mcp", Source: "explicit"}
	for _, e := range []serverEntry{full, bare} {
		if err := v.putServer(ctx, e, "default", true, nil, 2); err != nil {
			t.Fatal(err)
		}
		got, err := v.server(ctx, e.Name)
		e.Enabled = nil
		want := serverRow{serverEntry: e, Created: vaultClock(), Updated: vaultClock(), Profiles: map[string]bool{"default": true}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
	v.now = func() time.Time { return vaultClock().Add(time.Hour) }
	full.Args = nil
	if err := errors.Join(v.createProfile(ctx, "work"), v.putServer(ctx, full, "work", false, nil, 2)); err != nil {
		t.Fatal(err)
	}
	list, err := v.servers(ctx)
	if err != nil || len(list) != 2 || list[0].Name != "bare" {
		t.Fatalf("servers %+v, %v", list, err)
	}
	got := list[1]
	if !got.Created.Equal(vaultClock()) || !got.Updated.Equal(v.now()) || got.Args != nil || !reflect.DeepEqual(got.Profiles, map[string]bool{"default": true, "work": false}) {
		t.Errorf("after an update: %+v", got)
	}
}

func TestServerErrors(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	if err := v.putServer(ctx, serverEntry{Name: "s"}, "default", true, nil, 1); err != nil {
		t.Fatal(err)
	}
	_, readErr := v.server(ctx, "x")
	for what, err := range map[string]error{
		"server":         readErr,
		"setEnabled":     v.setEnabled(ctx, "x", "default", true),
		"profile":        v.setEnabled(ctx, "s", "nowhere", true),
		"putServer":      v.putServer(ctx, serverEntry{Name: "s"}, "nowhere", true, nil, 1),
		"removeServer":   v.removeServer(ctx, "x"),
		"grantTools":     v.grantTools(ctx, "x", []toolRow{{Tool: "a", Hash: "h"}}),
		"cacheTools":     v.cacheTools(ctx, "x", []toolRow{{Tool: "a"}}),
		"deleteSecret":   v.deleteSecret(ctx, "", "x"),
		"deleteProfile":  v.deleteProfile(ctx, "x"),
		"appendMessages": v.appendMessages(ctx, "x", nil),
	} {
		if !errors.Is(err, errNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestSetEnabled(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	if err := v.putServer(ctx, serverEntry{Name: "s"}, "default", false, nil, 1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if err := v.setEnabled(ctx, "s", "default", want); err != nil {
			t.Fatal(err)
		}
		if row, err := v.server(ctx, "s"); err != nil || row.Profiles["default"] != want {
			t.Errorf("enabled %v, %v; want %v", row.Profiles, err, want)
		}
	}
}

// vaultTools shows kept tools as "name=description/schema/hash".
func vaultTools(t *testing.T, v *vault, server string) string {
	t.Helper()
	list, err := v.cachedTools(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range list {
		out = append(out, fmt.Sprintf("%s=%s/%s/%s", r.Tool, r.Description, r.Schema, r.Hash))
	}
	return strings.Join(out, " ")
}

func TestToolsAndPins(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	e := serverEntry{Name: "s", Transport: "stdio"}
	first := []toolRow{{Tool: "b", Description: "B", Schema: json.RawMessage(`{"x": 1.0}`), Hash: "hb"}, {Tool: "a", Description: "A", Hash: "ha"}, {Tool: "A", Description: "big"}}
	if err := errors.Join(v.putServer(ctx, e, "default", true, first, 2), v.putServer(ctx, serverEntry{Name: "other"}, "default", true, first, 2)); err != nil {
		t.Fatal(err)
	}
	check := func(step, want string) {
		t.Helper()
		if got := vaultTools(t, v, "s"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", step, got, want)
		}
	}
	check("stored", `b=B/{"x": 1.0}/hb a=A//ha A=big//`)

	// A listing never changes granted text, and forgets what was never granted and is gone.
	if err := v.cacheTools(ctx, "s", []toolRow{{Tool: "b", Description: "changed", Hash: "new"}, {Tool: "c", Description: "C"}}); err != nil {
		t.Fatal(err)
	}
	check("listed", `b=B/{"x": 1.0}/hb a=A//ha c=C//`)

	if err := v.grantTools(ctx, "s", []toolRow{{Tool: "b", Description: "changed", Hash: "hb2"}, {Tool: "c", Description: "C2", Hash: "hc"}}); err != nil {
		t.Fatal(err)
	}
	check("granted", `b=changed//hb2 a=A//ha c=C2//hc`)
	if err := v.grantTools(ctx, "s", []toolRow{{Tool: "a", Description: "x", Hash: "hx"}, {Tool: "d"}}); err == nil {
		t.Error("a grant without a pin")
	}
	check("refused grant", `b=changed//hb2 a=A//ha c=C2//hc`)

	if err := v.dropTools(ctx, "s", []string{"a", "unknown"}); err != nil {
		t.Fatal(err)
	}
	check("dropped", `b=changed//hb2 c=C2//hc`)
	if pins, err := v.pins(ctx, "s"); err != nil || !reflect.DeepEqual(pins, map[string]string{"b": "hb2", "c": "hc"}) {
		t.Errorf("pins %v, %v", pins, err)
	}

	// Stored again: what is not listed now is gone with its pin.
	if err := v.putServer(ctx, e, "default", true, []toolRow{{Tool: "z", Description: "Z", Hash: "hz"}}, 2); err != nil {
		t.Fatal(err)
	}
	check("stored again", `z=Z//hz`)
	if pins, err := v.pins(ctx, "s"); err != nil || !reflect.DeepEqual(pins, map[string]string{"z": "hz"}) {
		t.Errorf("pins %v, %v", pins, err)
	}
	if got := vaultTools(t, v, "other"); got != `b=B/{"x": 1.0}/hb a=A//ha A=big//` {
		t.Errorf("the other server's tools: %s", got)
	}
}

// A fault in the middle leaves nothing of the server: server, profile row, pins and tools are one transaction.
func TestPutServerIsOneTransaction(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	_, err := v.db.Exec(`CREATE TRIGGER stop BEFORE INSERT ON mcp_tool_pins WHEN new.tool = 'last' BEGIN SELECT raise(ABORT, 'stop'); END`)
	if err != nil {
		t.Fatal(err)
	}
	err = v.putServer(ctx, serverEntry{Name: "s"}, "default", true, []toolRow{{Tool: "a", Hash: "h"}, {Tool: "last", Hash: "h"}}, 5)
	if err == nil || !strings.Contains(err.Error(), `tool "last"`) {
		t.Errorf("got %v", err)
	}
	for _, table := range []string{"mcp_servers", "mcp_server_profiles", "mcp_tool_pins", "mcp_server_tools"} {
		var n int
		if err := v.db.QueryRow(`SELECT count(*) FROM ` + table).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s has %d rows, %v", table, n, err)
		}
	}
}

func TestRemoveServer(t *testing.T) {
	t.Parallel()
	v, ctx := vaultAt(t, t.TempDir()), t.Context()
	tools := []toolRow{{Tool: "a", Hash: "h"}}
	err := v.createProfile(ctx, "work")
	for _, name := range []string{"a", "a-b", "my server"} {
		err = errors.Join(err, v.putServer(ctx, serverEntry{Name: name}, "default", true, tools, 9))
		for _, profile := range []string{"default", "work", "gone"} {
			for _, kind := range []string{"access", "refresh"} {
				err = errors.Join(err, v.putSecret(ctx, profile, oauthSecretPrefix(name)+kind, "t", nil))
			}
		}
	}
	if err = errors.Join(err, v.putSecret(ctx, "", "mcp_oauth_a_access", "t", nil), v.removeServer(ctx, "a"), v.removeServer(ctx, "my server")); err != nil {
		t.Fatal(err)
	}
	secrets, err := v.secrets(ctx)
	if err != nil || len(secrets) != 7 {
		t.Errorf("%d secrets left, %v; want the 6 of a-b and the ordinary one", len(secrets), err)
	}
	for table, want := range map[string]int{"mcp_servers": 1, "mcp_server_profiles": 1, "mcp_tool_pins": 1, "mcp_server_tools": 1} {
		var n int
		if err := v.db.QueryRow(`SELECT count(*) FROM ` + table).Scan(&n); err != nil || n != want {
			t.Errorf("%s has %d rows, %v; want %d", table, n, err, want)
		}
	}
}

// fakeVaultRegistrar tries to store TAI_TEST_N servers of its own under a cap of 32.
func fakeVaultRegistrar() {
	n, err := strconv.Atoi(os.Getenv("TAI_TEST_N"))
	ctx := context.Background()
	v, openErr := openVault(ctx, os.Getenv("TAI_HOME"), vaultWrite, time.Now, testKeys())
	if err = errors.Join(err, openErr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	stored := 0
	for i := range n {
		err := v.putServer(ctx, serverEntry{Name: fmt.Sprint(os.Getenv("TAI_TEST_ID"), i)}, "default", true, nil, 32)
		switch {
		case err == nil:
			stored++
		case !errors.Is(err, errTooManyServers):
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fmt.Print(stored)
	if err := v.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// CFG-06: registration stops at 32, also when two processes come near it together; a stored name can still be replaced.
func TestCFG06AtMost32Servers(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home")
	var cmds [2]*exec.Cmd
	var outs [2]strings.Builder
	for i := range cmds {
		cmds[i] = vaultProcess(t, "TAI_TEST_FAKE=vault-registrar", "TAI_HOME="+home, "TAI_TEST_N=30", fmt.Sprintf("TAI_TEST_ID=p%d-", i))
		cmds[i].Stdout, cmds[i].Stderr = &outs[i], &outs[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	sum := 0
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, &outs[i])
		}
		n, err := strconv.Atoi(outs[i].String())
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	v := vaultAt(t, home)
	list, err := v.servers(t.Context())
	if err != nil || len(list) != 32 || sum != 32 {
		t.Errorf("%d servers, %d said to be stored, %v; want 32", len(list), sum, err)
	}
	if err := v.putServer(t.Context(), serverEntry{Name: "the 33rd"}, "default", true, nil, 32); !errors.Is(err, errTooManyServers) {
		t.Errorf("the 33rd: %v", err)
	}
	if err := v.putServer(t.Context(), serverEntry{Name: list[0].Name}, "default", true, nil, 32); err != nil {
		t.Errorf("a stored one again: %v", err)
	}
}
