// This file asks how much room a disk has, on Windows.
package main

import (
	"syscall"
	"unsafe"
)

// diskSpace gives the bytes of the volume that holds path, and those that this user can still write.
func diskSpace(path string) (total, free uint64, err error) {
	dll, err := syscall.LoadDLL("kernel32.dll")
	if err != nil {
		return 0, 0, err
	}
	defer dll.Release()
	proc, err := dll.FindProc("GetDiskFreeSpaceExW")
	if err != nil {
		return 0, 0, err
	}
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return 0, 0, err
	}
	ok, _, err := proc.Call(uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)), 0)
	if ok == 0 {
		return 0, 0, err
	}
	return total, free, nil
}
