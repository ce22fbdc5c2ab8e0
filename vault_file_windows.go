package main

import (
	"io/fs"
	"os"
	"syscall"
)

// fileLinks is 1: the number is not in what Windows tells of a file by its name.
func fileLinks(fs.FileInfo) uint64 { return 1 }

// renameNew gives temp the name path, or is fs.ErrExist where that is taken: MoveFile replaces nothing.
func renameNew(temp, path string) error {
	from, err := syscall.UTF16PtrFromString(temp)
	if err != nil {
		return err
	}
	to, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	if err := syscall.MoveFile(from, to); err != nil {
		return &os.LinkError{Op: "rename", Old: temp, New: path, Err: err}
	}
	return nil
}

// fileOwner is 0: Windows does not number users.
func fileOwner(fs.FileInfo) int64 { return 0 }
