package main

import (
	"errors"
	"path/filepath"
	"testing"
)

// VLT-07: a seal that another process changes between the making of a new one and its transaction is not overwritten: the change begins
// anew from it, and the key file that came to no use is gone.
func TestSealMovedMeanwhile(t *testing.T) {
	t.Parallel()
	ctx, home, keys := t.Context(), filepath.Join(t.TempDir(), "home"), vaultKeys{Dir: filepath.Join(t.TempDir(), "keys")}
	open := func() *vault {
		t.Helper()
		v, err := openVault(ctx, home, vaultWrite, vaultClock, keys)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { v.close() })
		return v
	}
	v := open()
	other := open()
	if err := errors.Join(v.putSecret(ctx, "", "A", "value-1", nil), other.putSecret(ctx, "", "B", "value-2", nil)); err != nil {
		t.Fatal(err)
	}
	made := 0
	r, err := v.reseal(ctx, false, func(from *openedSeal) (*openedSeal, error) {
		if made++; made == 1 {
			if _, err := other.rekey(ctx); err != nil {
				return nil, err
			}
		}
		return sealByFile(keys.Dir)
	})
	if err != nil || !r.Changed || made != 2 {
		t.Fatalf("made %d times, want 2: %+v, %v", made, r, err)
	}
	for name, one := range map[string]*vault{"this": v, "the other": other, "a later": open()} {
		a, err := one.secretFor(ctx, "", "A")
		b, errB := one.secretFor(ctx, "", "B")
		if err != nil || errB != nil || a.reveal() != "value-1" || b.reveal() != "value-2" {
			t.Errorf("%s: %v, %v", name, err, errB)
		}
	}
	files, err := filepath.Glob(filepath.Join(keys.Dir, "*.key"))
	if err != nil || len(files) != 3 {
		t.Errorf("key files %q, %v; want the first one, the other's and this one's", files, err)
	}
}
