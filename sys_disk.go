//go:build linux || darwin || freebsd

// This file asks how much room a disk has, on systems with statfs.
package main

import "syscall"

// diskSpace gives the bytes of the file system that holds path, and those that an ordinary user can still write.
func diskSpace(path string) (total, free uint64, err error) {
	var s syscall.Statfs_t
	for {
		if err = syscall.Statfs(path, &s); err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		return 0, 0, err
	}
	return s.Blocks * uint64(s.Bsize), uint64(max(int64(s.Bavail), 0)) * uint64(s.Bsize), nil
}
