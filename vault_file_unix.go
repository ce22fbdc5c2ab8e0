//go:build unix

package main

import (
	"io/fs"
	"syscall"
)

// fileLinks is the number of names that the file has.
func fileLinks(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
