package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"
)

// injection is one run with one fault: the nth of the calls named fails so.
type injection struct {
	op, calls, fault string
	nth              int
	crash            bool // the process dies after the deed that failed
	noLinks          bool // the file system knows no hard links
}

func (i injection) String() string {
	return fmt.Sprintf("%s, %s of %s number %d (crash %v, no links %v)", i.op, i.fault, i.calls, i.nth, i.crash, i.noLinks)
}

// injectionCount is one row of the table.
type injectionCount struct{ runs, fired, clean, broken, falseAcks int }

// injector runs operations with faults and counts what came of them.
type injector struct {
	*torture
	templates map[string]string // folder of each operation
	mu        sync.Mutex
	rows      map[string]*injectionCount
	n         atomic.Int64
}

// injectedCalls are the system calls that are made to fail, by the names of both kinds of file access in the process (Go's and
// SQLite's).
var injectedCalls = []string{"pwrite64", "write", "fsync,fdatasync", "open,openat", "ftruncate", "linkat,renameat,renameat2,rename", "unlink,unlinkat", "mmap", "pread64"}

func newInjector(t *testing.T) *injector {
	t.Helper()
	if out, err := exec.Command("strace", "--seccomp-bpf", "-f", "-e", "trace=none", "-e", "inject=fsync:error=EIO:when=1", "true").CombinedOutput(); err != nil {
		if os.Getenv("TAI_TORTURE") != "" {
			t.Fatalf("strace cannot be used here: %v %s", err, out)
		}
		skipMissing(t, "strace cannot be used here: %v %s", err, out)
	}
	return &injector{torture: newTorture(t), templates: map[string]string{}, rows: map[string]*injectionCount{}}
}

// inject does one run and judges it. fired tells whether the fault came up at all, failed whether the deed said so.
func (x *injector) inject(in injection) (fired, failed bool, err error) {
	dir := filepath.Join(x.t.TempDir(), strconv.FormatInt(x.n.Add(1), 10))
	defer os.RemoveAll(dir)
	home := filepath.Join(dir, "home")
	if err := os.CopyFS(dir, os.DirFS(x.templates[in.op])); err != nil {
		return false, false, err
	}
	said, fired, err := x.strace(in, dir, home)
	if err != nil {
		return fired, false, err
	}
	ctx, cancel := context.WithTimeout(x.t.Context(), 20*time.Second)
	defer cancel()
	if in.op == tortureLogOp {
		failed, err = tortureLogAfter(ctx, home, said)
	} else {
		failed, err = tortureOpAfter(ctx, in, home, said)
	}
	return fired, failed, err
}

// strace runs the operation and gives the answers of its steps.
func (x *injector) strace(in injection, dir, home string) (said map[string]string, fired bool, err error) {
	trace := filepath.Join(dir, "trace")
	what := ":error=" + in.fault
	if in.fault == "SIGKILL" {
		what = ":signal=SIGKILL"
	}
	args := []string{"-f", "--seccomp-bpf", "-o", trace, "-e", fmt.Sprintf("inject=%s%s:when=%d", in.calls, what, in.nth)}
	if in.noLinks {
		args = append(args, "-e", "inject=linkat:error=EPERM")
	}
	if in.calls == "mmap" { // the program's own memory apart
		args = append(args, "-P", filepath.Join(home, vaultFile+"-shm"))
	}
	ctx, cancel := context.WithTimeout(x.t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "strace", append(args, os.Args[0])...)
	cmd.Env = append(os.Environ(), "TAI_TEST_FAKE=torture-op", "TAI_TEST_OP="+in.op, "TAI_HOME="+home, "GODEBUG=asyncpreemptoff=1", "GOGC=off")
	if in.crash {
		cmd.Env = append(cmd.Env, "TAI_TEST_CRASH=1")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, false, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	cmd.ExtraFiles = []*os.File{theirs}
	err = errors.Join(cmd.Start(), theirs.Close())
	if err != nil {
		return nil, false, err
	}
	text, readErr := io.ReadAll(ours)
	_ = cmd.Wait() // strace dies as its child did
	if ctx.Err() != nil {
		return nil, true, fmt.Errorf("%w: it hangs; said %q", errTorture, text)
	}
	said = map[string]string{}
	for line := range strings.Lines(string(text)) {
		step, answer, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		said[step] = answer
	}
	b, err := os.ReadFile(trace)
	for line := range strings.Lines(string(b)) {
		injected := strings.Contains(line, "(INJECTED)") && !(in.noLinks && strings.Contains(line, " linkat("))
		fired = fired || injected || in.fault == "SIGKILL" && strings.Contains(line, "+++ killed by SIGKILL")
	}
	return said, fired, errors.Join(err, readErr)
}

// tortureOpAfter opens the vault without faults and holds it against what the process said.
func tortureOpAfter(ctx context.Context, in injection, home string, said map[string]string) (failed bool, err error) {
	ops := tortureOps()
	op := ops[slices.IndexFunc(ops, func(op tortureOp) bool { return op.name == in.op })]
	v, err := tortureOpen(ctx, home, vaultWrite, op.newer)
	if err != nil {
		return false, fmt.Errorf("%w: the next open: %w", errTorture, err)
	}
	defer func() { err = errors.Join(err, v.close()) }()
	if err := tortureSound(ctx, v); err != nil {
		return false, err
	}
	if err := tortureBaseWhole(ctx, v, op); err != nil {
		return false, fmt.Errorf("%w: %w", errTorture, err)
	}
	state := op.state(ctx, v)
	failed = strings.HasPrefix(said["deed"], "failed") || strings.HasPrefix(said["open"], "failed")
	switch {
	case state != tortureAll && state != tortureNone:
		return failed, fmt.Errorf("%w: half a deed: %s", errTorture, state)
	case said["deed"] == "ok" && state != tortureAll:
		return failed, fmt.Errorf("%w: %w", errTorture, errFalseAck)
	case state == tortureAll && strings.Contains(said["deed"], "nothing was changed"):
		return failed, fmt.Errorf("%w: the deed is there after %q", errTorture, said["deed"])
	}
	if _, err := v.setting(ctx, tortureLater); said[tortureLater] == "ok" && err != nil {
		return failed, fmt.Errorf("%w: %w: what was stored later: %w", errTorture, errFalseAck, err)
	}
	// The deed must work now, on the vault as it is.
	if !op.once || state == tortureNone {
		if err := op.do(ctx, v); err != nil {
			return failed, fmt.Errorf("%w: the deed again: %w", errTorture, err)
		}
	}
	return failed, tortureWiped(ctx, v)
}

// tortureWiped wants no mark of old bytes after an open for writing, and no secret in clear in the files of a vault that is sealed (VLT-07).
func tortureWiped(ctx context.Context, v *vault) error {
	info, err := v.sealStatus(ctx)
	if err != nil || info.Kind == sealOff {
		return err
	}
	if info.Unwiped {
		return fmt.Errorf("%w: old bytes may be left", errTorture)
	}
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(v.path + suffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for i := range tortureBase {
			if name := fmt.Sprint("BASE_", i); strings.Contains(string(b), tortureText(name)) {
				return fmt.Errorf("%w: %s is in clear in %s", errTorture, name, vaultFile+suffix)
			}
		}
	}
	return nil
}

var errFalseAck = errors.New("false acknowledgement")

// tortureLogAfter verifies the log and holds it against what the process said.
func tortureLogAfter(ctx context.Context, home string, said map[string]string) (failed bool, err error) {
	acks := map[string]bool{}
	lost := false // a sync failed: nothing may be acknowledged any more
	begun := slices.ContainsFunc(slices.Collect(maps.Keys(said)), func(step string) bool { return strings.HasPrefix(step, "requested") && said[step] == "ok" })
	for step, answer := range said {
		event, _, _ := strings.Cut(step, " ")
		switch {
		case strings.HasPrefix(answer, "failed"):
			failed = true
			lost = lost || event == "synced"
		case event == "closed" && !begun: // there is no log
		case event != "synced" && event != "open" && event != "close":
			acks[step] = true
		}
	}
	if lost {
		for step, answer := range said {
			if strings.HasPrefix(step, "closed") && answer == "ok" {
				return true, fmt.Errorf("%w: %w: a clean end after a sync that failed", errTorture, errFalseAck)
			}
		}
	}
	return failed, tortureLogsWhole(ctx, home, acks)
}

// all injects a fault into the first, second, … of some calls of an operation until there is none left to fail.
func (x *injector) all(in injection, most int) error {
	row := &injectionCount{}
	name := in.op
	if in.noLinks {
		name += ", no hard links"
	}
	key := name + "\t" + in.calls + "\t" + in.fault
	x.mu.Lock()
	x.rows[key] = row
	x.mu.Unlock()
	var faults []error
	for in.nth = 1; in.nth <= most; in.nth++ {
		in.crash = false
		fired, failed, err := x.inject(in)
		row.count(fired, failed, err)
		if err != nil {
			faults = append(faults, fmt.Errorf("%v: %w", in, err))
		}
		if !fired {
			return errors.Join(faults...)
		}
		if failed {
			in.crash = true
			fired, failed, err := x.inject(in)
			row.count(fired, failed, err)
			if err != nil {
				faults = append(faults, fmt.Errorf("%v: %w", in, err))
			}
		}
	}
	return errors.Join(faults...)
}

func (c *injectionCount) count(fired, failed bool, err error) {
	c.runs++
	if fired {
		c.fired++
	}
	switch {
	case errors.Is(err, errFalseAck):
		c.falseAcks++
	case err != nil:
		c.broken++
	case failed:
		c.clean++
	}
}

// prepare makes the template of each operation.
func (x *injector) prepare(names ...string) {
	x.t.Helper()
	for _, op := range tortureOps() {
		if len(names) > 0 && !slices.Contains(names, op.name) {
			continue
		}
		dir := x.t.TempDir()
		if err := tortureTemplate(x.t.Context(), filepath.Join(dir, "home"), op); err != nil {
			x.t.Fatal(err)
		}
		x.templates[op.name] = dir
	}
	dir := x.t.TempDir()
	err := tortureTemplate(x.t.Context(), filepath.Join(dir, "home"), tortureOp{})
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "home", "deeds"), 0o700)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	x.templates[tortureLogOp] = dir
}

// run does many series, two at a time, and prints the table.
func (x *injector) run(series []injection, most int) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(series); i = int(next.Add(1)) - 1 {
				if err := x.all(series[i], most); err != nil {
					x.t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "operation\tsystem call\tfault\truns\tfired\tclean errors\tbroken\tfalse acks")
	var sum injectionCount
	keys := []string{}
	for key, c := range x.rows {
		sum.runs, sum.fired, sum.clean, sum.broken, sum.falseAcks = sum.runs+c.runs, sum.fired+c.fired, sum.clean+c.clean, sum.broken+c.broken, sum.falseAcks+c.falseAcks
		if c.fired > 0 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		c := x.rows[key]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\n", key, c.runs, c.fired, c.clean, c.broken, c.falseAcks)
	}
	fmt.Fprintf(w, "all\t\t\t%d\t%d\t%d\t%d\t%d\n", sum.runs, sum.fired, sum.clean, sum.broken, sum.falseAcks)
	w.Flush()
	x.t.Logf("\n%s", &text)
	if sum.fired == 0 {
		x.t.Error("no fault came up")
	}
}

// injectedFaults are the faults that a call is given; reading knows no full disk.
func injectedFaults(calls string) []string {
	if calls == "pread64" {
		return []string{"EIO"}
	}
	return []string{"EIO", "ENOSPC", "SIGKILL"}
}

func slow(name string) bool {
	return slices.ContainsFunc(tortureOps(), func(op tortureOp) bool { return op.name == name && op.few })
}

// R10, R11, VLT-02, VLT-03, AUD-06, AUD-07: one system call after the other fails, or the process dies at it. What was acknowledged is
// there, what failed says so and left nothing half, and the next open needs no help.
func TestTortureInjected(t *testing.T) {
	x := newInjector(t)
	only := os.Getenv("TAI_TORTURE_OP") // one operation of the long form
	var series []injection
	if !x.full {
		x.prepare("create", "put secret", "rekey")
		series = append(series, injection{op: "put secret", calls: "pwrite64", fault: "EIO"})
		for _, op := range []string{"put secret", "rekey", tortureLogOp} {
			series = append(series, injection{op: op, calls: "fsync,fdatasync", fault: "EIO"})
		}
		series = append(series, injection{op: tortureLogOp, calls: "write", fault: "ENOSPC"},
			injection{op: "create", calls: "renameat", fault: "SIGKILL", noLinks: true}, injection{op: "create", calls: "unlink,unlinkat", fault: "EIO"})
		x.run(series, 12/raceScale)
		return
	}
	x.prepare()
	names := []string{tortureLogOp}
	for _, op := range tortureOps() {
		names = append(names, op.name)
	}
	if only != "" {
		names = []string{only}
	}
	for _, name := range names {
		for _, calls := range injectedCalls {
			if slow(name) && !slices.Contains([]string{"fsync,fdatasync", "ftruncate", "linkat,renameat,renameat2,rename", "unlink,unlinkat"}, calls) {
				continue
			}
			for _, fault := range injectedFaults(calls) {
				series = append(series, injection{op: name, calls: calls, fault: fault})
			}
		}
	}
	for _, calls := range injectedCalls {
		for _, fault := range injectedFaults(calls) {
			if only == "" && !strings.Contains(calls, "linkat") {
				series = append(series, injection{op: "create", calls: calls, fault: fault, noLinks: true})
			}
		}
	}
	for _, fault := range injectedFaults("renameat") {
		if only == "" {
			series = append(series, injection{op: "create", calls: "renameat", fault: fault, noLinks: true})
		}
	}
	x.run(series, 400)
}
