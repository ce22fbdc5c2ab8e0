// This file asks how much memory this process takes, on Windows.
package main

import (
	"syscall"
	"unsafe"
)

// memoryCounters is PROCESS_MEMORY_COUNTERS (psapi.h).
type memoryCounters struct {
	size, faults                                                          uint32
	peak, working, quotaPeakPaged, quotaPaged, quotaPeakOther, quotaOther uintptr
	pageFile, peakPageFile                                                uintptr
}

// residentMemory gives the bytes of main memory that this process holds, 0 if that is not known.
func residentMemory() int64 {
	dll, err := syscall.LoadDLL("kernel32.dll")
	if err != nil {
		return 0
	}
	defer dll.Release()
	proc, err := dll.FindProc("K32GetProcessMemoryInfo")
	if err != nil {
		return 0
	}
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0
	}
	c := memoryCounters{}
	c.size = uint32(unsafe.Sizeof(c))
	if ok, _, _ := proc.Call(uintptr(self), uintptr(unsafe.Pointer(&c)), uintptr(c.size)); ok == 0 {
		return 0
	}
	return int64(c.working)
}
