package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// VLT-08: a sealed value opens in its own place alone. Every flipped bit, every cut, and every other table, column or row is refused.
func TestVLT08Sealer(t *testing.T) {
	t.Parallel()
	s := newSealer(randomBytes(sealKeySize))
	plain := []byte("value-of-a-secret")
	value := s.seal(plain, "secrets", "value", "work", "TOKEN")
	if got, err := s.open(value, "secrets", "value", "work", "TOKEN"); err != nil || string(got) != string(plain) {
		t.Fatalf("opened as %q, %v", got, err)
	}
	if len(value) != len(plain)+1+sealOverhead || value[0] != sealMark {
		t.Errorf("%d bytes, the first %d", len(value), value[0])
	}
	if string(s.seal(plain, "secrets", "value", "work", "TOKEN")) == string(value) {
		t.Error("sealed the same way twice")
	}
	refused := func(what string, value []byte, table, column string, row ...string) {
		t.Helper()
		got, err := s.open(value, table, column, row...)
		if !errors.Is(err, errSealBroken) || got != nil {
			t.Errorf("%s: opened as %q, %v", what, got, err)
			return
		}
		if text := err.Error(); !strings.Contains(text, table) || !strings.Contains(text, column) || strings.Contains(text, string(plain)) {
			t.Errorf("%s: says %q", what, text)
		}
	}
	for bit := range len(value) * 8 {
		bad := bytes.Clone(value)
		bad[bit/8] ^= 1 << (bit % 8)
		refused(fmt.Sprintf("bit %d flipped", bit), bad, "secrets", "value", "work", "TOKEN")
	}
	for n := range value {
		refused(fmt.Sprintf("cut to %d bytes", n), value[:n], "secrets", "value", "work", "TOKEN")
	}
	refused("longer", append(bytes.Clone(value), 0), "secrets", "value", "work", "TOKEN")
	refused("other table", value, "settings", "value", "work", "TOKEN")
	refused("other column", value, "secrets", "meta_json", "work", "TOKEN")
	refused("other profile", value, "secrets", "value", "", "TOKEN")
	refused("other name", value, "secrets", "value", "work", "TOKEN2")
	refused("key parts joined", value, "secrets", "value", "workTOKEN")
	refused("key parts split elsewhere", value, "secrets", "value", "wor", "kTOKEN")
	refused("one part more", value, "secrets", "value", "work", "TOKEN", "")
	refused("not sealed", plain, "secrets", "value", "work", "TOKEN")
	refused("empty", nil, "secrets", "value", "work", "TOKEN")
	other := newSealer(randomBytes(sealKeySize))
	if got, err := other.open(value, "secrets", "value", "work", "TOKEN"); !errors.Is(err, errSealBroken) {
		t.Errorf("another key opens it: %q, %v", got, err)
	}
}

// With the seal off values stand as they are, whatever they begin with, and a sealed one is no value.
func TestSealerOff(t *testing.T) {
	t.Parallel()
	off, on := &sealer{}, newSealer(randomBytes(sealKeySize))
	for _, plain := range []string{"", "plain", "\x00", "\x01", "\x00\x01x", "\x01" + strings.Repeat("y", 40), "{}"} {
		value := off.seal([]byte(plain), "secrets", "value", "", "A")
		if got, err := off.open(value, "secrets", "value", "", "A"); err != nil || string(got) != plain {
			t.Errorf("%q came back as %q, %v", plain, got, err)
		}
	}
	if got := off.seal([]byte("plain"), "secrets", "value", "", "A"); string(got) != "plain" {
		t.Errorf("stored as %q", got)
	}
	if got, err := off.open(on.seal([]byte("x"), "secrets", "value", "", "A"), "secrets", "value", "", "A"); !errors.Is(err, errSealBroken) {
		t.Errorf("a sealed value opens as %q, %v", got, err)
	}
	raw := &sealer{raw: true}
	if got, err := raw.open([]byte("\x01\x02"), "secrets", "value", "", "A"); err != nil || string(got) != "\x01\x02" {
		t.Errorf("before the seal: %q, %v", got, err)
	}
}

// A wrapped key opens with its own key and for what it was wrapped for, and no other way.
func TestSealWrap(t *testing.T) {
	t.Parallel()
	wrapping, key := randomBytes(sealKeySize), randomBytes(sealKeySize)
	wrapped := wrapKey(wrapping, key, "key-file", "ab")
	if got, err := unwrapKey(wrapping, wrapped, "key-file", "ab"); err != nil || !bytes.Equal(got, key) {
		t.Fatalf("%v", err)
	}
	for name, try := range map[string]func() ([]byte, error){
		"another key":   func() ([]byte, error) { return unwrapKey(randomBytes(sealKeySize), wrapped, "key-file", "ab") },
		"another id":    func() ([]byte, error) { return unwrapKey(wrapping, wrapped, "key-file", "ac") },
		"split anew":    func() ([]byte, error) { return unwrapKey(wrapping, wrapped, "key-filea", "b") },
		"cut":           func() ([]byte, error) { return unwrapKey(wrapping, wrapped[:len(wrapped)-1], "key-file", "ab") },
		"another size":  func() ([]byte, error) { return unwrapKey(wrapping, wrapKey(wrapping, key[:16], "a"), "a") },
		"no associated": func() ([]byte, error) { return unwrapKey(wrapping, wrapped) },
	} {
		if got, err := try(); err == nil {
			t.Errorf("%s: opens as %x", name, got)
		}
	}
	salt := make([]byte, sealSaltSize)
	a, errA := keyFromKey(key, salt)
	b, errB := keyFromKey(key, append(salt[:sealSaltSize-1], 1))
	if errA != nil || errB != nil || bytes.Equal(a, b) || len(a) != sealKeySize {
		t.Errorf("the salt makes no difference: %v, %v", errA, errB)
	}
	// PBKDF2-HMAC-SHA256 with 1 round, "passwd" and "salt" (RFC 7914, section 11).
	if got, err := keyFromPassphrase("passwd", []byte("salt"), 1); err != nil || hex.EncodeToString(got) != "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc" {
		t.Errorf("PBKDF2 gives %x, %v", got, err)
	}
}
