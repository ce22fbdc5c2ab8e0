//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	renameTries = 1000 // to get the lock, which nobody keeps for longer than a rename
	renamePause = 5 * time.Millisecond
)

// fileLinks is the number of names that the file has.
func fileLinks(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// renameNew gives temp the name path, or is fs.ErrExist where that is taken: those who do so at once are kept apart by a lock on
// the folder, which ends with the process that holds it.
func renameNew(temp, path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close() // unlocks
	for try := 0; ; try++ {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) || try == renameTries {
			return &fs.PathError{Op: "lock", Path: dir.Name(), Err: err}
		}
		time.Sleep(renamePause)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fs.ErrExist
		}
		return err
	}
	return os.Rename(temp, path)
}

// fileOwner is the number of the user that the file belongs to.
func fileOwner(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(st.Uid)
	}
	return 0
}
