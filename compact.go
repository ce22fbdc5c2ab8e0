// This file holds doors to helpers of the standard library that the compiler copies into every caller. Calls through a door make the program smaller;
// code that a person waits for, many times in a call, uses the library itself. It knows nothing of tai.
package main

import "errors"

// joinErrors is errors.Join, some 400 bytes of program in each of its callers.
//
//go:noinline for size: it is called in many places
func joinErrors(errs ...error) error { return errors.Join(errs...) }
