// This file sets how a child starts on Linux.
package main

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the child a process group of its own and has the kernel kill it when the thread that starts it ends
// (PR_SET_PDEATHSIG), so that it does not outlive a tai that was killed. The caller keeps that thread for the child's whole life.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
