//go:build unix && !linux

// This file sets how a child starts on macOS and the BSDs.
package main

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the child a process group of its own. There is no signal at the parent's death here: a child of a killed tai
// sees the end of its input.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
