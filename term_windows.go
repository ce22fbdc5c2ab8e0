// This file holds the console's system calls on Windows (Console API of kernel32). It decides nothing.
package main

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// terminalMode is how a console treats input.
type terminalMode struct{ flags uint32 }

// terminalSize gives the size of the window in characters, and false if f is no console. f must be an output.
func terminalSize(f *os.File) (cols, rows int, ok bool) {
	var info struct { // CONSOLE_SCREEN_BUFFER_INFO
		width, height, cursorX, cursorY int16
		attributes                      uint16
		left, top, right, bottom        int16
		maximumWidth, maximumHeight     int16
	}
	if err := consoleCall("GetConsoleScreenBufferInfo", f, uintptr(unsafe.Pointer(&info))); err != nil {
		return 0, 0, false
	}
	cols, rows = int(info.right)-int(info.left)+1, int(info.bottom)-int(info.top)+1
	return cols, rows, cols > 0 && rows > 0
}

// terminalModeOf fails if f is no console.
func terminalModeOf(f *os.File) (terminalMode, error) {
	var m terminalMode
	err := syscall.GetConsoleMode(syscall.Handle(f.Fd()), &m.flags)
	return m, err
}

func (m terminalMode) apply(f *os.File) error {
	return consoleCall("SetConsoleMode", f, uintptr(m.flags))
}

// hidden gives m without echo, key by key, with Ctrl-C as a signal.
func (m terminalMode) hidden() terminalMode {
	const processedInput, lineInput, echoInput = 0x1, 0x2, 0x4
	m.flags = m.flags&^(lineInput|echoInput) | processedInput
	return m
}

// editing gives m with every key handed over as it comes, in the sequences of a terminal. It fails to apply where a console has none.
func (m terminalMode) editing() terminalMode {
	const processedInput, lineInput, echoInput, virtualTerminalInput = 0x1, 0x2, 0x4, 0x200
	m.flags = m.flags&^(processedInput|lineInput|echoInput) | virtualTerminalInput
	return m
}

// prepareScreen readies a console for the sequences that move the cursor, and gives what puts it back.
func prepareScreen(f *os.File) (restore func() error, err error) {
	found, err := terminalModeOf(f)
	if err != nil {
		return nil, err
	}
	const processedOutput, virtualTerminalProcessing = 0x1, 0x4
	screen := terminalMode{found.flags | processedOutput | virtualTerminalProcessing}
	if err := screen.apply(f); err != nil {
		return nil, err
	}
	return func() error { return found.apply(f) }, nil
}

// flushInput drops what was typed and not yet read.
func flushInput(f *os.File) error { return consoleCall("FlushConsoleInputBuffer", f) }

// inputReady waits for a typed character until wait is over.
func inputReady(f *os.File, wait time.Duration) (bool, error) {
	event, err := syscall.WaitForSingleObject(syscall.Handle(f.Fd()), uint32(wait.Milliseconds()))
	if err != nil || event != syscall.WAIT_OBJECT_0 {
		return false, err
	}
	var record struct { // INPUT_RECORD with a KEY_EVENT_RECORD
		kind    uint16
		_       uint16
		down    int32
		repeat  uint16
		key     uint16
		scan    uint16
		char    uint16
		control uint32
	}
	var n uint32
	if err := consoleCall("PeekConsoleInputW", f, uintptr(unsafe.Pointer(&record)), 1, uintptr(unsafe.Pointer(&n))); err != nil || n == 0 {
		return false, err
	}
	const keyEvent = 1
	if record.kind == keyEvent && record.down != 0 && record.char != 0 {
		return true, nil
	}
	// A released key, the mouse or a resize: a read would wait on, so it is taken away.
	return false, consoleCall("ReadConsoleInputW", f, uintptr(unsafe.Pointer(&record)), 1, uintptr(unsafe.Pointer(&n)))
}

// suspendSelf does nothing: there is no job control.
func suspendSelf() error { return nil }

// endSignals are those that end a prompt.
func endSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// resumeSignals are none: there is no job control.
func resumeSignals() []os.Signal { return nil }

// consoleCall calls a function of kernel32 that takes f's handle first and answers 0 for a fault.
//
//go:uintptrescapes
func consoleCall(name string, f *os.File, args ...uintptr) error {
	all := append([]uintptr{f.Fd()}, args...)
	if ok, _, err := syscall.NewLazyDLL("kernel32.dll").NewProc(name).Call(all...); ok == 0 {
		return err
	}
	return nil
}
