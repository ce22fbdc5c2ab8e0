// This file opens files that a person or a program names to tai: regular ones alone, so that no pipe is waited for, and those of secrets
// only where nobody else can read them. It knows no content.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// errNotRegular is a pipe, a folder or a device where a file is needed.
var errNotRegular = errors.New("it is no regular file")

// looseFileError is a file of secrets that other users could read.
type looseFileError struct {
	Path string
	Mode fs.FileMode
}

func (e *looseFileError) Error() string {
	return fmt.Sprintf("%s can be read by others (mode %04o); chmod 600 it", visibleLine(e.Path), e.Mode)
}

// errTooLarge is a file with more bytes than its reader takes.
var errTooLarge = errors.New("it has too many bytes")

// openRegular opens a regular file to read, which the caller closes; it wraps errNotRegular for any other thing. It never waits for the
// writer of a pipe. Errors name the path.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path) // before it is opened: opening a pipe would wait
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() { // it was put in the place of the other meanwhile
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, joinErrors(err, f.Close())
	}
	return f, nil
}

// readPrivateFile reads a file that only its owner may read, of at most limit bytes; else the error is a *looseFileError or
// wraps errNotRegular or errTooLarge. Errors name the path.
func readPrivateFile(path string, limit int64, goos string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	return privateBytes(f, path, limit, goos)
}

// privateBytes is readPrivateFile for a file that is open, under the name by which errors speak of it.
func privateBytes(f *os.File, path string, limit int64, goos string) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if goos != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, &looseFileError{path, info.Mode().Perm()}
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: errorf("%w: at most %d are taken", errTooLarge, limit)}
	}
	return b, err
}
