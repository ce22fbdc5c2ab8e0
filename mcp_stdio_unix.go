//go:build unix

// This file ends a child's process group, also after tai's own sudden end, and feeds its pipe, for Unix systems.
package main

import (
	"errors"
	"os"
	"os/exec"
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

// ownSession gives the child a session of its own: neither the terminal's signals nor its end are for it, nor can it write there.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// guardGroup has the group led by pid killed should tai end without calling stop, as it does under kill -9: what a launcher such as
// npx has started learns nothing of that, and a busy server does not look at the end of its input. The guard is a shell that waits
// for the end of a pipe which only tai holds open. stop ends the guard and waits for it; the group is to be gone by then, so that its
// id can be no other's. The error says that nothing guards the group.
func guardGroup(pid int) (stop func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	const script = `trap '' HUP INT QUIT TERM; read -r _ || kill -s KILL -- "-$1"`
	cmd := &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", script, "sh", strconv.Itoa(pid)}, Env: []string{}, Stdin: r}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal from the terminal is not for it
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, err
	}
	return func() {
		cmd.Process.Kill()
		cmd.Wait() // killed: that is its error
		w.Close()
	}, nil
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
