//go:build unix

// This file holds the system calls that end a child's process group and feed its pipe, for Unix systems.
package main

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// terminate asks every process of the group led by pid to end (SIGTERM). A group that is gone is no error.
func terminate(pid int) error { return signalGroup(pid, syscall.SIGTERM) }

// killGroup ends every process of the group led by pid (SIGKILL), stragglers of an exited leader included. A group that is gone is no error.
func killGroup(pid int) error { return signalGroup(pid, syscall.SIGKILL) }

func signalGroup(pid int, sig syscall.Signal) error {
	if err := syscall.Kill(-pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, syscall.EPERM) {
		return err // EPERM: macOS says so of a group in which only zombies are left
	}
	return nil
}

// writeNow writes as much of b as the pipe takes without waiting and returns the number of bytes written; a full pipe is no error.
func writeNow(c syscall.RawConn, b []byte) (n int, err error) {
	connErr := c.Write(func(fd uintptr) bool {
		for {
			if n, err = syscall.Write(int(fd), b); err != syscall.EINTR {
				return true // never wait here: the caller has a deadline
			}
		}
	})
	if connErr != nil {
		return 0, connErr
	}
	if err == syscall.EAGAIN {
		err = nil
	}
	return max(n, 0), err
}

// shutInherited marks every descriptor above 2 as not passed on. Go opens its own that way; this is for those tai itself
// was started with, which its children have no business with.
func shutInherited() {
	const guess = 256 // descriptors looked at where there is no list of them
	var names []string
	if dir, err := os.Open("/dev/fd"); err == nil {
		names, _ = dir.Readdirnames(-1) // what was read is used, and an empty list is guessed
		dir.Close()
	}
	if len(names) == 0 {
		for fd := 3; fd < guess; fd++ {
			syscall.CloseOnExec(fd) // no effect on one that is not open
		}
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
