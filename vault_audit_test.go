package main

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func headTestRun(i int) auditHead {
	h := headTestPlain()
	h.Run = fmt.Sprintf("cli-%016x", i)
	return h
}

func headTestExec(t testing.TB, v *vault, query string, args ...any) {
	t.Helper()
	err := v.withTx(context.Background(), func(tx *sql.Tx) error { return execOne(context.Background(), tx, query, args...) })
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// AUD-03: a head is kept, grows, and never goes back, whatever order two refreshes come in.
func TestAUD03VaultHead(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	v := vaultAt(t, t.TempDir())
	if _, err := v.auditHead(ctx, "cli-0000000000000001"); !errors.Is(err, errNotFound) {
		t.Errorf("a run that is not on record: %v", err)
	}
	if err := v.checkAuditKey(ctx); !errors.Is(err, errNotFound) {
		t.Errorf("before there is a key: %v", err)
	}
	h := headTestRun(1)
	for _, tc := range []struct{ put, want int64 }{{2, 2}, {300, 300}, {42, 300}, {299, 300}, {300, 300}} {
		h.Lines, h.Hash = tc.put, fmt.Sprintf("%064x", tc.put)
		if err := v.putAuditHead(ctx, h); err != nil {
			t.Fatal(err)
		}
		got, err := v.auditHead(ctx, h.Run)
		if err != nil || got.Lines != tc.want || got.Hash != fmt.Sprintf("%064x", tc.want) || got.Path != h.Path || got.Started.Unix() != h.Started.Unix() {
			t.Errorf("after %d: %+v, %v; want %d lines", tc.put, got, err, tc.want)
		}
	}
	if err := v.checkAuditKey(ctx); err != nil {
		t.Error(err)
	}
	later := headTestRun(2)
	later.Started = later.Started.Add(time.Hour)
	if err := v.putAuditHead(ctx, later); err != nil {
		t.Fatal(err)
	}
	list, err := v.auditHeads(ctx)
	if err != nil || len(list) != 2 || list[0].Run != later.Run || list[0].verify() != nil || list[1].verify() != nil || !list[0].Key.Equal(list[1].Key) {
		t.Errorf("%+v, %v", list, err)
	}
	h.Lines = 301
	renewed, err := v.renewAuditHead(ctx, h)
	if err != nil || renewed.Lines != 301 || renewed.verify() != nil {
		t.Errorf("%+v, %v", renewed, err)
	}
	h.Lines = 5
	if renewed, err = v.renewAuditHead(ctx, h); err != nil || renewed.Lines != 301 || renewed.verify() != nil {
		t.Errorf("with fewer lines: %+v, %v", renewed, err)
	}
	if _, err := v.renewAuditHead(ctx, headTestRun(3)); !errors.Is(err, errNotFound) {
		t.Errorf("a run that was never on record: %v", err)
	}
	bad := headTestRun(4)
	bad.Lines = 0
	if err := v.putAuditHead(ctx, bad); err == nil {
		t.Error("a head of no lines was stored")
	}
}

// AUD-03: each column of a row that is edited in the vault, and each key, is found.
func TestAUD03VaultRowEdited(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	v := vaultAt(t, t.TempDir())
	for name, tc := range map[string]struct {
		query string
		args  []any
	}{
		"run":       {`UPDATE audit_runs SET run = 'cli-00000000000000ff' WHERE run = ?`, nil},
		"origin":    {`UPDATE audit_runs SET origin = 'mcp' WHERE run = ?`, nil},
		"lines":     {`UPDATE audit_runs SET lines = 2 WHERE run = ?`, nil},
		"head":      {`UPDATE audit_runs SET head = upper(head) WHERE run = ?`, nil},
		"signature": {`UPDATE audit_runs SET signature = x'00' WHERE run = ?`, nil},
		"no bytes":  {`UPDATE audit_runs SET signature = '' WHERE run = ?`, nil},
		"started":   {`UPDATE audit_runs SET started = started - 1 WHERE run = ?`, nil},
		"updated":   {`UPDATE audit_runs SET updated = updated + 1 WHERE run = ?`, nil},
		"as text":   {`UPDATE audit_runs SET lines = 'many' WHERE run = ?`, nil},
		"as bytes":  {`UPDATE audit_runs SET started = x'ff' WHERE run = ?`, nil},
	} {
		h := headTestRun(1)
		if err := v.putAuditHead(ctx, h); err != nil {
			t.Fatal(err)
		}
		headTestExec(t, v, tc.query, h.Run)
		run := h.Run
		if name == "run" {
			run = "cli-00000000000000ff"
		}
		if _, err := v.auditHead(ctx, run); !errors.Is(err, errHeadForged) {
			t.Errorf("%s: %v", name, err)
		}
		headTestExec(t, v, `DELETE FROM audit_runs WHERE run = ?`, run)
	}
	a, b := headTestRun(1), headTestRun(2)
	if err := errors.Join(v.putAuditHead(ctx, a), v.putAuditHead(ctx, b)); err != nil {
		t.Fatal(err)
	}
	headTestExec(t, v, `UPDATE audit_runs SET signature = (SELECT signature FROM audit_runs WHERE run = ?) WHERE run = ?`, b.Run, a.Run)
	if _, err := v.auditHead(ctx, a.Run); !errors.Is(err, errHeadForged) {
		t.Errorf("another row's signature: %v", err)
	}
	if _, err := v.auditHead(ctx, b.Run); err != nil {
		t.Error(err)
	}
}

// AUD-03: one who puts a public key of their own into the vault and signs with it is found out by the sealed seed; and the next head puts the
// key right, after which what they signed does not verify.
func TestAUD03VaultKeySwapped(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	v := vaultAt(t, t.TempDir())
	h := headTestRun(1)
	if err := v.putAuditHead(ctx, h); err != nil {
		t.Fatal(err)
	}
	theirs := headTestKey(t, 9)
	h.Lines = 3
	forged, err := h.signed(theirs)
	if err != nil {
		t.Fatal(err)
	}
	headTestExec(t, v, `UPDATE audit_runs SET lines = 3, signature = ?, started = ?, updated = ? WHERE run = ?`, forged.Signature, forged.Started.Unix(), forged.Updated.Unix(), h.Run)
	if _, err := v.auditHead(ctx, h.Run); !errors.Is(err, errHeadForged) {
		t.Errorf("under the old key: %v", err)
	}
	headTestExec(t, v, `UPDATE settings SET value = ? WHERE key = ?`, base64.StdEncoding.EncodeToString(theirs.Public().(ed25519.PublicKey)), auditPublicSetting)
	if _, err := v.auditHead(ctx, h.Run); err != nil {
		t.Fatalf("the forgery does not hold by itself: %v", err)
	}
	if err := v.checkAuditKey(ctx); !errors.Is(err, errAuditKeyChanged) {
		t.Errorf("held against the seed: %v", err)
	}
	if err := v.putAuditHead(ctx, headTestRun(2)); err != nil {
		t.Fatal(err)
	}
	if err := v.checkAuditKey(ctx); err != nil {
		t.Errorf("after another head: %v", err)
	}
	if _, err := v.auditHead(ctx, h.Run); !errors.Is(err, errHeadForged) {
		t.Errorf("after another head: %v", err)
	}
	headTestExec(t, v, `DELETE FROM settings WHERE key = ?`, settingAuditKey)
	if err := v.checkAuditKey(ctx); !errors.Is(err, errAuditKeyChanged) {
		t.Errorf("the seed deleted: %v", err)
	}
	for _, text := range []string{"", "AAAA", "no base64"} {
		headTestExec(t, v, `UPDATE settings SET value = ? WHERE key = ?`, text, auditPublicSetting)
		if _, err := v.auditHead(ctx, "cli-0000000000000002"); !errors.Is(err, errHeadForged) {
			t.Errorf("public key %q: %v", text, err)
		}
	}
}

// Vaults that are opened at once end with one key, and every head is signed with it.
func TestAuditKeyMadeOnce(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	var wg sync.WaitGroup
	vaults := make([]*vault, 4)
	for i := range vaults {
		vaults[i] = vaultAt(t, home)
	}
	for i, v := range vaults {
		wg.Go(func() {
			if err := v.putAuditHead(context.Background(), headTestRun(i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := vaults[0].auditHeads(t.Context())
	if err != nil || len(list) != len(vaults) {
		t.Fatalf("%d heads, %v", len(list), err)
	}
	for _, h := range list {
		if err := h.verify(); err != nil {
			t.Errorf("%s: %v", h.Run, err)
		}
	}
	if err := vaults[0].checkAuditKey(t.Context()); err != nil {
		t.Error(err)
	}
}

// A vault that cannot be written gives the sentence about it, and no head.
func TestAuditHeadReadOnly(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home")
	vaultAt(t, home)
	v, err := openVault(t.Context(), home, vaultRead, time.Now, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	defer v.close()
	if err := v.putAuditHead(t.Context(), headTestRun(1)); !errors.Is(err, errVaultReading) || !strings.Contains(err.Error(), "put run cli-0000000000000001 on record") {
		t.Errorf("%v", err)
	}
}

// What may be lost with the power is for its own transaction alone: the next one waits for the disk again, also after one that was given up.
func TestVLT01LateSyncEnds(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, t.TempDir())
	mode := func(row *sql.Row) (n int) {
		t.Helper()
		if err := row.Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const normal, full = 1, 2 // sqlite.org/pragma.html#pragma_synchronous
	for _, fault := range []error{nil, errNotFound, context.Canceled} {
		ctx, cancel := context.WithCancel(t.Context())
		err := v.withLateTx(ctx, func(tx *sql.Tx) error {
			if got := mode(tx.QueryRowContext(ctx, `PRAGMA synchronous`)); got != normal {
				t.Errorf("inside: %d, want %d", got, normal)
			}
			if fault == context.Canceled {
				cancel()
			}
			return fault
		})
		cancel()
		if !errors.Is(err, fault) {
			t.Errorf("%v, want %v", err, fault)
		}
		if got := mode(v.db.QueryRowContext(t.Context(), `PRAGMA synchronous`)); got != full {
			t.Errorf("after %v: %d, want %d", fault, got, full)
		}
	}
}
