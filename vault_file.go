// This file knows the vault as a file: where it really is, who may read it, whether its head is that of a vault, and
// which sentence a fault of the driver becomes. It opens no database.
package main

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	vaultFile     = "vault.db"
	vaultTemp     = vaultFile + ".new-" // a vault in the making, and random digits
	vaultAppID    = 0x74616901          // application_id of tai's files: "tai" and 1
	vaultHeadSize = 100                 // bytes of the SQLite file header
	vaultPageSize = 4096                // bytes; SQLite's default, which createVault leaves
	vaultLooksMax = 100                 // times a head that keeps changing is read again
	vaultRoom     = 64 << 10            // bytes that a disk which is not full has room for; a journal's index takes 32 KiB
)

// What a caller may have to tell apart. The path and the deed stand in front of them.
var (
	errNotFound      = errors.New("not found")
	errVaultNewer    = errors.New("was written by a newer tai and is left as it is; update this tai")
	errVaultForeign  = errors.New("is not a tai vault and is left as it is; move it away or choose another --home")
	errVaultDamaged  = errors.New("is damaged and is left as it is; restore a backup or move it away")
	errVaultBusy     = errors.New("is busy: other processes kept it locked; try again")
	errVaultFull     = errors.New("could not be written: the disk is full")
	errVaultJournal  = errors.New("stands beside the journal (-wal) of another vault and is left as it is; move that journal away, then it opens")
	errVaultReadOnly = errors.New("cannot be opened or written here; check the permissions of the file and its folder")
	errVaultReading  = errors.New("was opened for reading only")
	errVaultUnsure   = errors.New("what was to be stored may be there or not: look before you store it again")
)

// vaultNowhere stands for the path of a vault that is not on disk.
const vaultNowhere = "(memory)"

// vaultMode says whether a missing vault may be made.
type vaultMode int

const (
	vaultRead  vaultMode = iota // a missing file is an empty vault in memory; nothing is created and writes are refused
	vaultWrite                  // folder (0700) and file (0600) are created
)

// vaultPath gives the real path of the vault, so that two names of one file share one journal. A link that leads
// nowhere is an error: a disk that is not mounted must not look like an empty vault.
func vaultPath(home string) (path string, exists bool, err error) {
	if home == "" {
		return "", false, newError("no home folder is known; give --home or TAI_HOME")
	}
	home, err = filepath.Abs(home)
	if err != nil {
		return "", false, err
	}
	home, exists, err = realPath(home)
	if err != nil || !exists {
		return filepath.Join(home, vaultFile), false, err
	}
	return realPath(filepath.Join(home, vaultFile))
}

// realPath resolves links. A path where nothing stands comes back as it is, with exists false.
func realPath(path string) (_ string, exists bool, err error) {
	_, err = os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, false, nil
	}
	if err != nil {
		return "", false, err
	}
	found, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, errorf("%s is a link that leads nowhere", path)
	}
	return found, true, err
}

// makeHome makes the folder readable by its owner alone, whatever the umask. A folder that was there keeps its mode:
// it may be somebody's whole home.
func makeHome(home string) error {
	if _, err := os.Stat(home); err == nil {
		return nil
	}
	if err := makeFolders(home, 0o700); err != nil {
		return err
	}
	return os.Chmod(home, 0o700)
}

// claim gives temp the name path, or fs.ErrExist where that is taken.
func claim(temp, path string) error {
	err := os.Link(temp, path)
	if err != nil && !errors.Is(err, fs.ErrExist) && noHardLinks(err, runtime.GOOS) {
		return renameNew(temp, path)
	}
	return err
}

// noHardLinks tells the errors of a file system that has no hard links. After any other one, another process may link at this
// very moment, so that a rename could take its vault from it; on Windows no rename does.
func noHardLinks(err error, goos string) bool {
	return goos == "windows" || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) // link(2): EPERM
}

// makeFolders makes a folder and those above it that are missing, and makes their names durable: what is synced in a folder is lost
// with the folder.
func makeFolders(path string, perm fs.FileMode) error {
	var above []string // of each folder that is missing
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir {
			break
		}
		above = append(above, filepath.Dir(dir))
	}
	if err := os.MkdirAll(path, perm); err != nil {
		return err
	}
	for _, dir := range above {
		if err := syncFolder(dir); err != nil {
			return err
		}
	}
	return nil
}

func syncPath(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return joinErrors(f.Sync(), f.Close())
}

// syncFolder makes a new name in it durable; Windows neither needs nor knows it.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return joinErrors(f.Sync(), f.Close())
}

// vaultDSN names a file to the driver. The path is escaped, for it may hold '?', '#' or '%'.
func vaultDSN(path string, params ...string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/x
	}
	u := url.URL{Scheme: "file", Path: path}
	return u.String() + "?" + strings.Join(params, "&")
}

// vaultHead is what the first bytes of the file and the files beside it say.
type vaultHead struct {
	version int  // user_version; a journal may hold a newer one
	wal     bool // the write-ahead journal is on
	journal bool // there is something in it
}

// checkVaultFile reads the file's head without SQLite, which would change a file that it takes for an empty or unfinished database. Field
// positions are those of "Database File Format", section 1.3 (sqlite.org/fileformat2.html).
func checkVaultFile(path string, mode vaultMode, newest int) (vaultHead, error) {
	info, err := os.Stat(path)
	if err != nil {
		return vaultHead{}, errorf("open vault: %w", err)
	}
	if !info.Mode().IsRegular() {
		return vaultHead{}, errorf("vault %s %w", path, errVaultForeign)
	}
	if err := checkOneName(path, info); err != nil {
		return vaultHead{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return vaultHead{}, vaultFault(path, err)
	}
	defer f.Close() // only read
	if mode == vaultWrite && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(info.Mode().Perm() &^ 0o077); err != nil {
			return vaultHead{}, errorf("close vault %s to other users: %w", path, err)
		}
	}
	return settledHead(f, path, newest)
}

// settledHead judges the head of a file that others may be writing.
func settledHead(f *os.File, path string, newest int) (vaultHead, error) {
	var last vaultLook
	for try := 1; ; try++ {
		look, err := lookAtVault(f, path)
		if err != nil {
			return vaultHead{}, vaultFault(path, err)
		}
		h, err := look.judge(f, newest)
		if err == nil {
			return h, nil
		}
		// Another process may have been moving its journal into the file between two of our reads: a fault counts
		// when nothing changed since the look before.
		if look == last || try == vaultLooksMax {
			return vaultHead{}, errorf("vault %s %w", path, err)
		}
		last = look
	}
}

// vaultLook is what was read of a vault at one time.
type vaultLook struct {
	size    int64
	head    [vaultHeadSize]byte // zeros beyond a shorter file
	journal bool
}

func lookAtVault(f *os.File, path string) (l vaultLook, err error) {
	info, err := f.Stat()
	if err != nil {
		return l, err
	}
	l.size = info.Size()
	if _, err := f.ReadAt(l.head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return l, err
	}
	wal, err := os.Stat(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	l.journal = wal.Size() > 0
	return l, nil
}

func (l vaultLook) judge(f io.ReaderAt, newest int) (vaultHead, error) {
	h, err := readVaultHead(l.head[:], newest)
	if err != nil {
		return h, err
	}
	h.journal = l.journal
	if h.journal && !h.wal {
		return h, errVaultJournal
	}
	if !h.journal {
		err = checkPages(f, l.head[:], l.size)
	}
	return h, err
}

// checkOneName refuses a file with a second hard link: it could be opened under the other name, with another journal.
func checkOneName(path string, info fs.FileInfo) error {
	if fileLinks(info) < 2 {
		return nil
	}
	// A process that died, or is, between giving a new vault its name and dropping the first one.
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return vaultFault(path, err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), vaultTemp) {
			continue
		}
		temp := filepath.Join(dir, e.Name())
		if t, err := os.Lstat(temp); err == nil && os.SameFile(t, info) {
			if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return vaultFault(path, err)
			}
		}
	}
	if info, err = os.Stat(path); err != nil {
		return err
	}
	if fileLinks(info) > 1 {
		return errorf("vault %s has a second name (a hard link); two names would mean two journals: remove one, or copy the file", path)
	}
	return nil
}

// readVaultHead checks the fields of the header that have one right value in a vault. The schema cookie and the
// version of the last writer may be anything.
func readVaultHead(b []byte, newest int) (vaultHead, error) {
	u32 := func(at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
	if string(b[:16]) != "SQLite format 3\x00" {
		return vaultHead{}, errVaultForeign
	}
	if u32(68) != vaultAppID {
		return vaultHead{}, errVaultForeign
	}
	version := u32(60)
	if version > uint32(newest) {
		return vaultHead{}, errVaultNewer
	}
	size := binary.BigEndian.Uint16(b[16:])
	ok := version > 0 &&
		size == vaultPageSize &&
		b[18] == b[19] && (b[18] == 1 || b[18] == 2) && // write and read version: rollback or write-ahead journal
		b[20] == 0 && b[21] == 64 && b[22] == 32 && b[23] == 32 && // reserved bytes, payload fractions
		u32(24) == u32(92) && // change counter, and the one the page count is valid for
		u32(44) == 4 && u32(56) == 1 && // schema format, UTF-8
		u32(48) == 0 && u32(52) == 0 && u32(64) == 0 && // page cache, auto-vacuum, incremental vacuum: never set
		(u32(32) == 0) == (u32(36) == 0) // free list: first page and count
	for _, c := range b[72:92] {
		ok = ok && c == 0
	}
	if !ok {
		return vaultHead{}, errVaultDamaged
	}
	return vaultHead{version: int(version), wal: b[18] == 2}, nil
}

// checkPages compares the header with the file's size and walks the trunk pages of the free list, one for each
// thousand free pages. It holds only when the journal is empty.
func checkPages(f io.ReaderAt, head []byte, size int64) error {
	pages := binary.BigEndian.Uint32(head[28:])
	if int64(pages)*vaultPageSize != size {
		return errVaultDamaged
	}
	free := int64(binary.BigEndian.Uint32(head[36:]))
	for trunk := binary.BigEndian.Uint32(head[32:]); trunk != 0; {
		var b [8]byte // next trunk page, count of the leaves named here
		if trunk > pages || free <= 0 {
			return errVaultDamaged
		}
		if _, err := f.ReadAt(b[:], int64(trunk-1)*vaultPageSize); err != nil {
			return errVaultDamaged
		}
		trunk = binary.BigEndian.Uint32(b[:])
		free -= 1 + int64(binary.BigEndian.Uint32(b[4:]))
	}
	if free != 0 {
		return errVaultDamaged
	}
	return nil
}

// driverCode gives the primary result code of an error of the driver, 0 for any other error.
func driverCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// errJournalHeld is a journal that could not be emptied because somebody reads from it.
var errJournalHeld = errors.New("other processes read from the journal")

func isBusy(err error) bool {
	if errors.Is(err, errJournalHeld) {
		return true
	}
	c := driverCode(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// isUnshared tells that the memory which connections share could not be made. It is a file too, "-shm", and grows.
func isUnshared(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	switch e.Code() {
	case sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMLOCK, sqlite3.SQLITE_IOERR_SHMMAP:
		return true
	}
	return false
}

// isDiskFull tells what the system says of a full disk, of a quota that is used up and of a file that may not grow. Windows
// has its own numbers (winerror.h): handle disk full, disk full, file too large, quota exceeded.
func isDiskFull(err error, goos string) bool {
	no, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return false
	}
	if goos == "windows" {
		return no == 39 || no == 112 || no == 223 || no == 1295
	}
	return no == syscall.ENOSPC || no == syscall.EDQUOT || no == syscall.EFBIG
}

// noRoomFor tries whether the folder of a vault has no room. The driver says so for ENOSPC in a write alone; for a quota, a limit
// of a file's size and the memory it shares, all it says is that there was a fault. The trial ends beyond the largest of the vault's
// files, where a limit of the size shows, and leaves nothing.
func noRoomFor(path string) bool {
	if path == vaultNowhere {
		return false
	}
	var end int64
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(path + suffix); err == nil {
			end = max(end, info.Size())
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), vaultTemp+"*")
	if err == nil {
		defer os.Remove(f.Name())
		_, err = f.WriteAt(make([]byte, vaultRoom), end)
		if err == nil {
			err = f.Sync() // some file systems find out only then
		}
		err = joinErrors(err, f.Close())
	}
	return isDiskFull(err, runtime.GOOS)
}

// isCannotWrite tells the faults that a folder or file without write permission gives.
func isCannotWrite(err error) bool {
	switch driverCode(err) {
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return true
	}
	return errors.Is(err, fs.ErrPermission)
}

// vaultFault turns an error of the driver, and a refusal of the system, into a sentence about the file. The driver's
// own text ("database is locked") is never shown where there is a better one. Other errors pass as they are.
func vaultFault(path string, err error) error {
	var what error
	switch code := driverCode(err); {
	case err == nil:
		return nil
	case errors.Is(err, errVaultBusy), errors.Is(err, errVaultNewer):
		what = err
	case isBusy(err):
		what = errVaultBusy
	case code == sqlite3.SQLITE_FULL, isDiskFull(err, runtime.GOOS),
		(code == sqlite3.SQLITE_IOERR || code == sqlite3.SQLITE_CANTOPEN) && noRoomFor(path):
		what = errVaultFull
	case isCannotWrite(err):
		what = errVaultReadOnly
	case code == sqlite3.SQLITE_CORRUPT, code == sqlite3.SQLITE_NOTADB:
		what = errVaultDamaged
	case code == sqlite3.SQLITE_IOERR:
		what = errorf("could not be read or written: disk fault (%w)", err)
	case code != 0:
		what = errorf("refused: %w", err)
	default:
		return err
	}
	return errorf("vault %s %w", path, what)
}

// vaultOutcome adds to fault what became of a write that a full or faulty disk ended with err. A commit can fail after all of it was
// written, in its sync or in the index that others read it by: it is undone in this process, but after a crash it may be found
// complete. SQLite gives SQLITE_FULL and SQLITE_IOERR_WRITE for a journal whose last page is not there.
func vaultOutcome(fault, err error, committing bool) error {
	code := driverCode(err)
	if code != sqlite3.SQLITE_FULL && code != sqlite3.SQLITE_IOERR {
		return fault
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok && committing && code == sqlite3.SQLITE_IOERR && e.Code() != sqlite3.SQLITE_IOERR_WRITE {
		return errorf("%w; %w", fault, errVaultUnsure)
	}
	return errorf("%w; nothing was changed", fault)
}

// wrapDeed puts the deed before an error, for use with defer.
func wrapDeed(err *error, format string, args ...any) {
	if *err != nil {
		*err = errorf(format+": %w", append(args, *err)...)
	}
}
