package main

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// VLT-05: what is not a whole vault of ours is refused with its name and keeps every byte.
func TestVLT05Refused(t *testing.T) {
	t.Parallel()
	_, good := vaultMade(t, t.TempDir())
	random := make([]byte, len(good))
	for i := range random {
		random[i] = byte(i*i>>3 ^ i)
	}
	other := filepath.Join(t.TempDir(), "other.db")
	db, err := sql.Open("sqlite", other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	theirs, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		content []byte
		want    error
	}{
		"empty":          {nil, errVaultForeign},
		"zeros":          {make([]byte, len(good)), errVaultForeign},
		"random":         {random, errVaultForeign},
		"cut in half":    {good[:len(good)/2], errVaultDamaged},
		"cut in a page":  {good[:len(good)-100], errVaultDamaged},
		"head only":      {good[:100], errVaultDamaged},
		"longer":         {append(bytes.Clone(good), 1), errVaultDamaged},
		"theirs":         {theirs, errVaultForeign},
		"text":           {[]byte("hello\n"), errVaultForeign},
		"schema nothing": {vaultWith(good, 63, 0), errVaultDamaged},
	} {
		for _, mode := range []vaultMode{vaultRead, vaultWrite} {
			t.Run(fmt.Sprintf("%s, mode %d", name, mode), func(t *testing.T) { vaultRefused(t, tc.content, mode, tc.want) })
		}
	}
}

func vaultWith(content []byte, at int, b byte) []byte {
	c := bytes.Clone(content)
	c[at] = b
	return c
}

func vaultRefused(t *testing.T, content []byte, mode vaultMode, want error) {
	t.Helper()
	home := t.TempDir()
	path := filepath.Join(home, vaultFile)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := openVault(t.Context(), home, mode, vaultClock, testKeys())
	if err == nil {
		v.close()
		t.Fatal("opened")
	}
	if !errors.Is(err, want) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %q, want %q with %s", err, want, path)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(after, content) {
		t.Errorf("the file changed (%v)", err)
	}
	if got := vaultNames(t, home); len(got) != 1 {
		t.Errorf("files beside it: %v", got)
	}
}

// VLT-05: each byte of the header changed alone is refused, but for the schema cookie and the writer's version, which
// may be anything.
func TestVLT05HeaderByte(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path, good := vaultMade(t, home)
	for at := range vaultHeadSize {
		harmless := at >= 40 && at < 44 || at >= 96
		bad := vaultWith(good, at, good[at]^0x41)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := openVault(t.Context(), home, vaultRead, vaultClock, testKeys())
		if err == nil {
			if s, err := v.secretFor(t.Context(), "", "KEPT"); err != nil || s.reveal() != "value-1" {
				t.Errorf("byte %d: %v", at, err)
			}
			if err := v.close(); err != nil {
				t.Error(err)
			}
		}
		if harmless != (err == nil) {
			t.Errorf("byte %d: %v", at, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, bad) {
			t.Errorf("byte %d: the file changed (%v)", at, err)
		}
	}
}

// VLT-05: damage behind the header is one clear error when it is met, and no row is made up.
func TestVLT05DamagedPage(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path, good := vaultMade(t, home)
	for at := vaultHeadSize; at < len(good); at++ {
		good[at] = 0xa5
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := openVault(t.Context(), home, vaultRead, vaultClock, testKeys())
	if err == nil {
		defer v.close()
		_, err = v.secrets(t.Context())
	}
	if !errors.Is(err, errVaultDamaged) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

// VLT-05: a vault that shrank opens, and a wrong count of its free pages is damage.
func TestVLT05FreePages(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path, _ := vaultMade(t, home)
	v, err := openVault(t.Context(), home, vaultWrite, vaultClock, testKeys())
	if err != nil {
		t.Fatal(err)
	}
	// 3,000 pages, so that the list has more than one trunk
	r, err := v.putRecord(t.Context(), "spill", "x", "", bytes.Repeat([]byte{0, 1, 2}, 4<<20))
	if err := errors.Join(err, v.deleteRecord(t.Context(), r.ID), v.close()); err != nil {
		t.Fatal(err)
	}
	free, err := os.ReadFile(path)
	if err != nil || binary.BigEndian.Uint32(free[36:]) < 3000 {
		t.Fatalf("%d free pages to test with (%v)", free[36:40], err)
	}
	vaultAt(t, home)
	for _, count := range []uint32{1, 2999, 1 << 31} {
		vaultRefused(t, append(append(bytes.Clone(free[:36]), binary.BigEndian.AppendUint32(nil, count)...), free[40:]...), vaultRead, errVaultDamaged)
	}
	vaultRefused(t, vaultWith(free, 32, 0x7f), vaultRead, errVaultDamaged)
	ring := bytes.Clone(free) // the first trunk names itself as the next, and no leaves
	trunk := binary.BigEndian.Uint32(ring[32:])
	binary.BigEndian.PutUint64(ring[(trunk-1)*vaultPageSize:], uint64(trunk)<<32)
	binary.BigEndian.PutUint32(ring[36:], 3)
	vaultRefused(t, ring, vaultRead, errVaultDamaged)
}
