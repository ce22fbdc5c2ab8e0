// This file holds doors to helpers of the standard library that the compiler copies into every caller. Calls through a door make the program smaller;
// code that a person waits for, many times in a call, uses the library itself. It knows nothing of tai.
package main

import (
	"errors"
	"fmt"
	"strings"
)

// joinErrors is errors.Join, some 400 bytes of program in each of its callers.
//
//go:noinline for size: it is called in many places
func joinErrors(errs ...error) error { return errors.Join(errs...) }

// newError is errors.New.
//
//go:noinline for size: it is called in many places
func newError(text string) error { return errors.New(text) }

// errorf is fmt.Errorf.
//
//go:noinline for size: it is called in many places
func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// textBuilder is a strings.Builder whose methods stay where they are: each WriteString makes some 250 bytes of program where it is copied to.
type textBuilder struct{ strings.Builder }

//go:noinline for size: it is called in many places
func (b *textBuilder) WriteString(s string) (int, error) { return b.Builder.WriteString(s) }

//go:noinline for size: it is called in many places
func (b *textBuilder) WriteByte(c byte) error { return b.Builder.WriteByte(c) }
