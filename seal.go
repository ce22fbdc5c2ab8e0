// This file owns the type that keeps a secret from being printed, logged or marshalled by accident. It knows no storage.
package main

import (
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

// secretName reports a variable's, header's or field's name that speaks of a secret value. It errs towards yes.
func secretName(name string) bool {
	n := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	for _, word := range [...]string{"TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "APIKEY", "PRIVATE", "AUTHORIZATION", "BEARER", "COOKIE"} {
		if strings.Contains(n, word) {
			return true
		}
	}
	return n == "KEY" || n == "AUTH" || n == "PAT" || strings.HasSuffix(n, "_KEY") || strings.HasSuffix(n, "_PAT") || strings.HasSuffix(n, "_AUTH") || strings.HasSuffix(n, "_PWD") && n != "OLD_PWD"
}

// sealer seals and opens single values for their place in the vault.
type sealer struct{}

// seal gives what is stored for plain in this table, column and row.
func (s *sealer) seal(plain []byte, table, column string, row ...string) []byte { return plain }

// open gives what seal was given for the same place.
func (s *sealer) open(value []byte, table, column string, row ...string) ([]byte, error) {
	return value, nil
}
