package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// tracedCalls runs an operation and gives its system calls on files in their order, each as its name and the path it is about;
// "say" is what the process reported.
func tracedCalls(t *testing.T, op, home string) (calls []string) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	defer theirs.Close()
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-y", "-s", "64", "--seccomp-bpf", "-o", trace, "-e", "trace=write,fsync,fdatasync,mkdirat,linkat,sendmsg", os.Args[0])
	cmd.Env = append(os.Environ(), "TAI_TEST_FAKE=torture-op", "TAI_TEST_OP="+op, "TAI_HOME="+home)
	cmd.ExtraFiles = []*os.File{theirs}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^\d+ +(\w+)\((?:AT_FDCWD(?:<[^>]*>)?, "([^"]*)"|\d+<([^>]*)>(?:.*?"([^"]*)")?)`)
	for s := range strings.Lines(string(text)) {
		m := line.FindStringSubmatch(s)
		switch {
		case m == nil:
		case m[1] == "sendmsg":
			calls = append(calls, "say "+strings.ReplaceAll(m[4], `\t`, " "))
		default:
			calls = append(calls, m[1]+" "+m[2]+m[3])
		}
	}
	return calls
}

// R10, AUD-07: before a first write is acknowledged the names of all new folders and the key file are on disk, and before a deed its line is.
func TestTortureAUD07Order(t *testing.T) {
	newInjector(t)
	for op, acknowledged := range map[string]string{"create": "say deed ok", tortureLogOp: "say synced "} {
		top := filepath.Join(t.TempDir(), "a")
		home := filepath.Join(top, "b", "home")
		if op == tortureLogOp { // its deeds need a folder; the log's own is still missing
			if err := os.MkdirAll(filepath.Join(home, "deeds"), 0o700); err != nil {
				t.Fatal(err)
			}
			top = home
		}
		pending, written := map[string]bool{}, map[string]bool{}
		made, deeds, acks, files := 0, 0, 0, 0
		for _, call := range tracedCalls(t, op, home) {
			name, path, _ := strings.Cut(call, " ")
			switch {
			case name == "mkdirat" && filepath.Base(filepath.Dir(path)) == "deeds":
				deeds++
				if len(written)+len(pending) > 0 {
					t.Errorf("%s: %s before the sync of %v %v", op, path, written, pending)
				}
			case name == "mkdirat":
				made++
				pending[filepath.Dir(path)] = true
			case name == "write" && (strings.HasSuffix(path, auditExtension) || strings.Contains(filepath.Base(path), keyFileTemp)):
				files++
				written[path] = true
			case strings.HasSuffix(name, "sync"):
				delete(pending, path)
				delete(written, path)
			case strings.HasPrefix(call, acknowledged):
				acks++
				if len(pending)+len(written) > 0 {
					t.Errorf("%s: %q before the sync of %v %v", op, call, pending, written)
				}
			}
		}
		if made == 0 || acks == 0 || files == 0 || deeds == 0 && op == tortureLogOp {
			t.Errorf("%s: %d folders, %d acknowledgements, %d deeds under %s: nothing was tested", op, made, acks, deeds, top)
		}
	}
}
