package main

import (
	"context"
	"path/filepath"
	"testing"
)

// BenchmarkSealOpen is one process's first secret: opening a vault, reading one value, closing. The seal may add 2 ms.
func BenchmarkSealOpen(b *testing.B) {
	for _, kind := range []string{sealOff, sealByKeyFile} {
		b.Run(kind, func(b *testing.B) {
			home := filepath.Join(b.TempDir(), "home")
			vaultMade(b, home)
			if kind == sealOff {
				v := vaultAt(b, home)
				if _, err := v.unseal(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				v, err := openVault(b.Context(), home, vaultRead, vaultClock, testKeys())
				if err == nil {
					_, err = v.secretFor(b.Context(), "", "KEPT")
				}
				if err != nil {
					b.Fatal(err)
				}
				if err := v.close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSealPassphrase compares PBKDF2 alone with the first use of a vault's passphrase, and gives what each later use costs (P19).
func BenchmarkSealPassphrase(b *testing.B) {
	home := filepath.Join(b.TempDir(), "home")
	vaultMade(b, home)
	v := vaultAt(b, home)
	if _, err := v.sealWithPassphrase(b.Context(), "right-passphrase"); err != nil {
		b.Fatal(err)
	}
	keys := testKeys()
	keys.Passphrase = func(context.Context, string) (secret, error) { return "right-passphrase", nil }
	b.Run("pbkdf2", func(b *testing.B) {
		for b.Loop() {
			if _, err := keyFromPassphrase("right-passphrase", make([]byte, sealSaltSize), sealRounds); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			v, err := openVault(b.Context(), home, vaultRead, vaultClock, keys)
			if err == nil {
				err = v.openSeal(b.Context())
			}
			if err != nil {
				b.Fatal(err)
			}
			v.close()
		}
	})
	text := v.seals.get().text
	b.Run("second", func(b *testing.B) {
		for b.Loop() {
			if _, err := v.unlock(b.Context(), text, false); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("secret", func(b *testing.B) {
		for b.Loop() {
			if _, err := v.secretFor(b.Context(), "", "KEPT"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
