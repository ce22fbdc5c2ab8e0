//go:build !windows

// This file asks how much memory this process takes, on systems other than Windows.
package main

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// residentMemory gives the bytes of main memory that this process holds, or where only that is known the most it ever held; 0 if neither is.
func residentMemory() int64 {
	if b, err := os.ReadFile("/proc/self/statm"); err == nil { // Linux, proc(5): pages; the second field
		if fields := bytes.Fields(b); len(fields) > 1 {
			if pages, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				return pages * int64(os.Getpagesize())
			}
		}
	}
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" { // getrusage(2): bytes there, KiB elsewhere
		return int64(use.Maxrss)
	}
	return int64(use.Maxrss) << 10
}
