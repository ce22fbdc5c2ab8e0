// This file owns the type that keeps a secret from being printed, logged or marshalled by accident, and the cryptography that seals values at
// rest. It knows no storage: what is sealed, and with whose key, is the vault's business.
package main

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// sealedText is what every way of printing a secret gives.
const sealedText = "[sealed]"

// secret is a value that must not leave the program as text. reveal is the only way out, so that each use is visible in review.
type secret string

func (s secret) reveal() string { return string(s) }

func (secret) String() string { return sealedText }

func (secret) GoString() string { return sealedText }

func (secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, sealedText) }

func (secret) MarshalText() ([]byte, error) { return []byte(sealedText), nil }

func (secret) MarshalBinary() ([]byte, error) { return []byte(sealedText), nil } // gob asks for no other

func (secret) MarshalJSON() ([]byte, error) { return []byte(`"` + sealedText + `"`), nil }

const (
	sealKeySize  = 32                 // bytes of a data key and of the key that wraps it: AES-256
	sealMark     = 0x01               // first byte of a sealed value; nonce, ciphertext and tag follow
	sealPlain    = 0x00               // first byte before an open value that would else look like a marked one
	sealOverhead = 12 + 16            // bytes of nonce and tag
	sealDomain   = "tai vault seal 1" // bound into every wrap, so that a key serves for nothing else
)

// errSealBroken is a value that its seal does not fit: changed, cut, moved from another place, or not sealed where it must be.
var errSealBroken = errors.New("the stored value does not fit its seal: it was changed, or belongs elsewhere")

// sealer seals and opens single values, each for one place in the vault. It is safe for concurrent use.
type sealer struct {
	aead cipher.AEAD // nil: values stay open
	raw  bool        // a vault from before the seal: values stand as they are, whatever they begin with
}

// newSealer makes a sealer with a data key of sealKeySize bytes.
func newSealer(key []byte) *sealer { return &sealer{aead: sealAEAD(key)} }

// sealAEAD is AES-256-GCM with a random nonce in front of each ciphertext (NIST SP 800-38D, 8.2.2).
func sealAEAD(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // a key of another size: no input brings that about
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return aead
}

// on reports whether values are stored sealed.
func (s *sealer) on() bool { return s.aead != nil }

// seal gives what is stored for plain in this table, column and row, row being the parts of its key. It keeps no part of plain.
func (s *sealer) seal(plain []byte, table, column string, row ...string) []byte {
	switch {
	case s.aead != nil:
		out := make([]byte, 1, 1+sealOverhead+len(plain))
		out[0] = sealMark
		return s.aead.Seal(out, nil, plain, sealPlace(table, column, row))
	case !s.raw && len(plain) > 0 && plain[0] <= sealMark:
		return append([]byte{sealPlain}, plain...)
	}
	return bytes.Clone(plain)
}

// open gives what seal was given for the same place, else errSealBroken with the place and never a byte of the value.
func (s *sealer) open(value []byte, table, column string, row ...string) ([]byte, error) {
	if s.raw {
		return value, nil
	}
	marked := len(value) > 0 && value[0] == sealMark
	if marked && s.aead != nil {
		if plain, err := s.aead.Open(nil, nil, value[1:], sealPlace(table, column, row)); err == nil {
			return plain, nil
		}
	}
	if marked || s.aead != nil {
		return nil, errorf("column %s of %s %q: %w", column, table, strings.TrimPrefix(strings.Join(row, "/"), "/"), errSealBroken)
	}
	if len(value) > 0 && value[0] == sealPlain {
		value = value[1:]
	}
	return value, nil
}

// sealPlace is the associated data of a value: table, row and column, each behind its length, so that no two places read the same.
//
//go:noinline for size: it is called in many places
func sealPlace(table, column string, row []string) []byte {
	parts := append([]string{table}, row...)
	return sealParts(append(parts, column)...)
}

//go:noinline for size: it is called in many places
func sealParts(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return b
}

// wrapKey seals a data key with another key; about says what the wrap is bound to.
func wrapKey(wrapping, key []byte, about ...string) []byte {
	return sealAEAD(wrapping).Seal(nil, nil, key, sealParts(append([]string{sealDomain}, about...)...))
}

// unwrapKey undoes wrapKey. The error says nothing of why.
func unwrapKey(wrapping, wrapped []byte, about ...string) ([]byte, error) {
	key, err := sealAEAD(wrapping).Open(nil, nil, wrapped, sealParts(append([]string{sealDomain}, about...)...))
	if err != nil || len(key) != sealKeySize {
		return nil, errSealBroken
	}
	return key, nil
}

// keyFromKey derives the wrapping key from the random one of a key file (HKDF, RFC 5869).
func keyFromKey(secret, salt []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, secret, salt, sealDomain, sealKeySize)
}

// keyFromPassphrase derives the wrapping key from a passphrase (PBKDF2-HMAC-SHA256, RFC 8018). It takes a good fifth of a second on purpose.
func keyFromPassphrase(passphrase secret, salt []byte, rounds int) ([]byte, error) {
	return pbkdf2.Key(sha256.New, passphrase.reveal(), salt, rounds, sealKeySize)
}

// randomBytes gives n bytes that nobody can guess; crypto/rand never fails.
func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}
