//go:build !linux && !darwin && !freebsd && !windows

// This file stands in where tai does not know how to ask for the room on a disk.
package main

// diskSpace is not known here.
func diskSpace(path string) (total, free uint64, err error) {
	return 0, 0, newError("not known on this system")
}
