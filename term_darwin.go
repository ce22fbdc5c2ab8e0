// This file holds the terminal's system calls on macOS (termios(4), tty(4)). It decides nothing.
package main

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// terminalMode is how a terminal treats input.
type terminalMode struct{ termios syscall.Termios }

// terminalSize gives the size in characters, and false if f is no terminal or does not know.
func terminalSize(f *os.File) (cols, rows int, ok bool) {
	var size struct{ rows, cols, x, y uint16 }
	err := terminalCall(f, syscall.TIOCGWINSZ, unsafe.Pointer(&size))
	return int(size.cols), int(size.rows), err == nil && size.cols > 0 && size.rows > 0
}

// terminalModeOf fails if f is no terminal.
func terminalModeOf(f *os.File) (terminalMode, error) {
	var m terminalMode
	err := terminalCall(f, syscall.TIOCGETA, unsafe.Pointer(&m.termios))
	return m, err
}

func (m terminalMode) apply(f *os.File) error {
	return terminalCall(f, syscall.TIOCSETA, unsafe.Pointer(&m.termios))
}

// hidden gives m without echo, byte by byte, with Ctrl-C as a signal and Ctrl-Z as a byte.
func (m terminalMode) hidden() terminalMode {
	const disabled = 0xff // _POSIX_VDISABLE
	t := &m.termios
	t.Lflag &^= syscall.ECHO | syscall.ECHONL | syscall.ICANON
	t.Lflag |= syscall.ISIG
	t.Cc[syscall.VMIN], t.Cc[syscall.VTIME] = 1, 0
	t.Cc[syscall.VSUSP], t.Cc[syscall.VDSUSP] = disabled, disabled
	return m
}

// editing gives m with every key handed over as it comes, byte by byte, but for the one that quits. Output stays as it is.
func (m terminalMode) editing() terminalMode {
	const disabled = 0xff // _POSIX_VDISABLE
	t := &m.termios
	t.Iflag &^= syscall.ICRNL | syscall.INLCR | syscall.IGNCR | syscall.ISTRIP | syscall.IXON
	t.Lflag &^= syscall.ECHO | syscall.ECHONL | syscall.ICANON | syscall.IEXTEN
	t.Lflag |= syscall.ISIG
	t.Cc[syscall.VMIN], t.Cc[syscall.VTIME] = 1, 0
	t.Cc[syscall.VINTR], t.Cc[syscall.VSUSP], t.Cc[syscall.VDSUSP] = disabled, disabled, disabled
	return m
}

// prepareScreen readies a terminal for cursor moves and gives what puts it back: nothing is needed here.
func prepareScreen(*os.File) (restore func() error, err error) {
	return func() error { return nil }, nil
}

// flushInput drops what was typed and not yet read.
func flushInput(f *os.File) error {
	which := int32(1) // FREAD
	return terminalCall(f, syscall.TIOCFLUSH, unsafe.Pointer(&which))
}

// inputReady waits for input until wait is over; a signal may end it earlier.
func inputReady(f *os.File, wait time.Duration) (bool, error) {
	ready := false
	err := terminalControl(f, func(fd uintptr) error {
		var set syscall.FdSet
		const word = 8 * unsafe.Sizeof(set.Bits[0])
		if fd >= 8*unsafe.Sizeof(set) {
			return syscall.EBADF
		}
		set.Bits[fd/word] |= 1 << (fd % word)
		timeout := syscall.NsecToTimeval(wait.Nanoseconds())
		err := syscall.Select(int(fd)+1, &set, nil, nil, &timeout)
		ready = err == nil && set.Bits[fd/word]&(1<<(fd%word)) != 0
		if errors.Is(err, syscall.EINTR) {
			return nil
		}
		return err
	})
	return ready, err
}

// suspendSelf stops the process group as Ctrl-Z does, if its shell can continue it (an orphaned group ignores it).
func suspendSelf() error { return syscall.Kill(0, syscall.SIGTSTP) }

// endSignals are those that end a prompt.
func endSignals() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
}

// resumeSignals are those that tell of a continued process.
func resumeSignals() []os.Signal { return []os.Signal{syscall.SIGCONT} }

func terminalCall(f *os.File, request uintptr, arg unsafe.Pointer) error {
	return terminalControl(f, func(fd uintptr) error {
		for {
			_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(arg))
			if errno == 0 {
				return nil
			}
			if errno != syscall.EINTR {
				return errno
			}
		}
	})
}

// terminalControl calls do with f's descriptor, which stays open meanwhile.
func terminalControl(f *os.File, do func(fd uintptr) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var fault error
	if err := c.Control(func(fd uintptr) { fault = do(fd) }); err != nil {
		return err
	}
	return fault
}
