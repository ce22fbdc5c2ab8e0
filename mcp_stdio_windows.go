// This file holds the system calls that start and end a child on Windows, which has no process groups in the Unix sense.
package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup keeps the console's Ctrl-C from the child, so that an interrupted call does not end its server.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// ownSession is ownGroup: nothing ends a child with tai here.
func ownSession(cmd *exec.Cmd) { ownGroup(cmd) }

// terminate sends Ctrl-Break to the group that pid leads. Without a shared console it does nothing but return the error; killGroup follows.
func terminate(pid int) error {
	const ctrlBreak = 1 // CTRL_BREAK_EVENT
	dll, err := syscall.LoadDLL("kernel32.dll")
	if err != nil {
		return err
	}
	defer dll.Release()
	proc, err := dll.FindProc("GenerateConsoleCtrlEvent")
	if err != nil {
		return err
	}
	if ok, _, err := proc.Call(ctrlBreak, uintptr(pid)); ok == 0 {
		return err
	}
	return nil
}

// killGroup ends the process itself; what it started sees the end of its pipes. A process that is gone is no error.
func killGroup(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil // no such process
	}
	defer p.Release()
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// guardGroup does nothing: a child of a killed tai sees the end of its pipes.
func guardGroup(pid int) (stop func(), err error) { return func() {}, nil }

// writeNow writes nothing: a pipe cannot be written without waiting here, so that the writing goroutine takes it all.
func writeNow(c syscall.RawConn, b []byte) (n int, err error) { return 0, nil }

// shutInherited has nothing to do: only the handles named at the start are passed on.
func shutInherited() {}
