package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// keepHeads takes heads in the place of a vault.
type keepHeads struct {
	mu    sync.Mutex
	heads []auditHead
	fault error
	warns []string
}

func (k *keepHeads) put(_ context.Context, h auditHead) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fault == nil {
		k.heads = append(k.heads, h)
	}
	return k.fault
}

func (k *keepHeads) fails(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fault = err
}

// lines gives the lines of each head so far.
func (k *keepHeads) lines() (out []int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range k.heads {
		out = append(out, h.Lines)
	}
	return out
}

func keepTestLog(t testing.TB) (*auditLog, *keepHeads) {
	t.Helper()
	k := &keepHeads{}
	a := auditTestLog(t)
	a.cfg.Heads = k.put
	a.cfg.Warn = func(line string) { k.warns = append(k.warns, line) }
	return a, k
}

// AUD-03, AUD-04: the run is on record when its first record returns, then within two seconds of each line, sooner for a batch, never more
// often than four times a second, and whole at the end.
func TestAUD03HeadRefreshed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a, k := keepTestLog(t)
		a.cfg.Dir = dir
		record := func(n int) {
			for range n {
				auditTestRecord(t, a, auditEvent{Event: auditCallRequested})
			}
		}
		wait := func(d time.Duration, want ...int64) {
			t.Helper()
			time.Sleep(d) // of the bubble's clock
			synctest.Wait()
			if got := k.lines(); !slices.Equal(got, want) {
				t.Fatalf("heads of %v lines, want %v", got, want)
			}
		}
		record(1)
		wait(0, 2)
		wait(time.Hour, 2) // nothing new, nothing done
		record(1)
		wait(auditHeadEvery-time.Millisecond, 2)
		record(1)
		wait(time.Millisecond, 2, 4)
		record(auditHeadBatch - 1)
		wait(auditHeadPause, 2, 4)
		record(1)
		wait(0, 2, 4, 4+auditHeadBatch)
		record(2 * auditHeadBatch) // in the pause after it
		wait(auditHeadPause-time.Millisecond, 2, 4, 4+auditHeadBatch)
		wait(time.Millisecond, 2, 4, 4+auditHeadBatch, 4+3*auditHeadBatch)
		record(1)
		if err := a.close(); err != nil {
			t.Fatal(err)
		}
		wait(time.Hour, 2, 4, 4+auditHeadBatch, 4+3*auditHeadBatch, 6+3*auditHeadBatch)
	})
	a, _ := listOne(t, dir)
	if a.Lines != 6+3*auditHeadBatch || !a.Completed {
		t.Errorf("%+v", a)
	}
}

// listOne gives the only log of a folder and its text.
func listOne(t testing.TB, dir string) (auditRunInfo, string) {
	t.Helper()
	runs, total, err := listAudit(nil, 9, dir)
	if err != nil || total != 1 {
		t.Fatalf("%d logs, %v", total, err)
	}
	b, err := os.ReadFile(runs[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	return runs[0], string(b)
}

// Every head speaks of a line that is in the log, with its hash.
func TestAUD03HeadFitsLog(t *testing.T) {
	t.Parallel()
	a, k := keepTestLog(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				if err := a.record(auditEvent{Event: auditCallRequested, Call: a.nextCall()}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(auditTestLines(t, a), "") + "\n"
	lines := k.lines()
	if !slices.IsSorted(lines) || lines[0] != 2 || lines[len(lines)-1] != 2002 {
		t.Errorf("heads of %v lines", lines)
	}
	for _, h := range k.heads {
		rep, err := verifyAuditAt(strings.NewReader(text), h.Lines)
		if err != nil || rep.at != h.Hash || h.Run != a.name || h.Path != a.path() || h.check() != nil {
			t.Errorf("%+v: %+v, %v", h, rep, err)
		}
	}
}

// AUD-06: a run that cannot be put on record does nothing and leaves no log; when it can, it goes on.
func TestAUD06NotOnRecord(t *testing.T) {
	t.Parallel()
	a, k := keepTestLog(t)
	k.fails(errVaultFull)
	err := a.record(auditEvent{Event: auditCallRequested})
	if !errors.Is(err, errVaultFull) || !strings.Contains(err.Error(), "is not begun") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(a.path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a log was left: %v", err)
	}
	if n, hash := auditTestHead(a); n != 0 || hash != auditGenesis {
		t.Errorf("%d lines, %s", n, hash)
	}
	k.fails(nil)
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested})
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	if rep := auditTestVerify(t, strings.Join(auditTestLines(t, a), "")+"\n"); rep.Bad != 0 || rep.Lines != 3 || !slices.Equal(k.lines(), []int64{2, 3}) {
		t.Errorf("%+v, heads %v", rep, k.lines())
	}
	b, k := keepTestLog(t)
	k.fails(errVaultFull)
	if b.record(auditEvent{}) == nil {
		t.Error("recorded")
	}
	if err := b.close(); err != nil {
		t.Errorf("close of a run that never began: %v", err)
	}
}

// A refresh that fails is told once, tried again, and told at the end if it still fails; the log itself goes on.
func TestAuditHeadLate(t *testing.T) {
	t.Parallel()
	for name, mended := range map[string]bool{"mended": true, "not mended": false} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			a, k := keepTestLog(t)
			a.cfg.Dir = dir
			auditTestRecord(t, a, auditEvent{Event: auditCallRequested})
			k.fails(errVaultBusy)
			auditTestRecord(t, a, auditEvent{Event: auditCallRequested})
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(k.warns) != 1 || !strings.Contains(k.warns[0], "is busy") || !strings.Contains(k.warns[0], a.name) {
				t.Errorf("%s: told %q", name, k.warns)
			}
			if mended {
				k.fails(nil)
				time.Sleep(2*auditHeadEvery + auditHeadPause)
				synctest.Wait()
				if !slices.Equal(k.lines(), []int64{2, 3}) {
					t.Errorf("%s: heads of %v lines", name, k.lines())
				}
			}
			err := a.close()
			if mended != (err == nil) || !mended && (!errors.Is(err, errVaultBusy) || !strings.Contains(err.Error(), "is whole")) {
				t.Errorf("%s: close: %v", name, err)
			}
		})
		if info, _ := listOne(t, dir); info.Lines != 4 || !info.Completed {
			t.Errorf("%s: %+v", name, info)
		}
	}
}

// AUD-06: the refresh too sees that the log was taken away; the head then stays where it was.
func TestAUD06HeadOfLostLog(t *testing.T) {
	t.Parallel()
	a, k := keepTestLog(t)
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested})
	auditTestRecord(t, a, auditEvent{Event: auditCallRequested})
	if err := os.Remove(a.path()); err != nil {
		t.Fatal(err)
	}
	if err := a.renewHead(t.Context()); err == nil {
		t.Error("the head of a removed log was renewed")
	}
	if a.record(auditEvent{Event: auditCallStarted}) == nil || a.close() == nil || !slices.Equal(k.lines(), []int64{2}) {
		t.Errorf("records on; heads of %v lines", k.lines())
	}
}

// AUD-07, R11: the order on disk, told by the file itself: the lines before the head that speaks of them, the requested line before a
// destructive tool begins, the outcome before the answer.
func TestAUD07Order(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	did := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	act := toolsPlain("act", toolHints{Destructive: true}, func(context.Context, toolCall) (toolResult, error) {
		did("act")
		return toolResult{Text: "x"}, nil
	})
	look := toolsPlain("look", toolHints{ReadOnly: true}, func(context.Context, toolCall) (toolResult, error) {
		did("look")
		return toolResult{Text: "x"}, nil
	})
	box := newToolsBox(t, modeDanger, nil, act, look)
	box.log.cfg.Heads = func(_ context.Context, h auditHead) error { did(fmt.Sprintf("head of %d", h.Lines)); return nil }
	box.log.open = func(name string) (auditFile, error) {
		f, err := openNewLog(name)
		return &orderedFile{f, did}, err
	}
	for _, name := range []string{"look", "act"} {
		if _, err := box.dispatchNative(t.Context(), toolCall{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := box.log.close(); err != nil {
		t.Fatal(err)
	}
	want := []string{"run_started", "tool_call_requested", "sync", "head of 2", "tool_call_started", "look", "tool_call_completed",
		"tool_call_requested", "sync", "tool_call_started", "act", "tool_call_completed", "run_completed", "sync", "head of 8"}
	if !slices.Equal(order, want) {
		t.Errorf("got  %v\nwant %v", order, want)
	}
}

// orderedFile tells of what is written and synced.
type orderedFile struct {
	auditFile
	did func(string)
}

func (f *orderedFile) Write(b []byte) (int, error) {
	rec, err := parseAuditLine(bytes.TrimSuffix(b, []byte("\n")))
	if err != nil {
		return 0, errors.Join(err, syscall.EINVAL)
	}
	f.did(rec.Event)
	return f.auditFile.Write(b)
}

func (f *orderedFile) Sync() error {
	f.did("sync")
	return f.auditFile.Sync()
}

// The vault has one connection, so a record inside one of its transactions would wait for itself: no function that is given a
// transaction may record, ask or call.
func TestNoRecordInTransaction(t *testing.T) {
	t.Parallel()
	opens := map[string]bool{"withTx": true, "withLateTx": true, "view": true, "withSealed": true, "viewSealed": true, "underSeal": true}
	records := map[string]bool{"perform": true, "decided": true, "putHead": true, "putAuditHead": true, "dispatch": true, "dispatchNative": true, "callTool": true, "approve": true, "redact": true}
	_, files := layerFiles(t)
	seen := 0
	for name, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !opens[sel.Sel.Name] {
				return true
			}
			seen++
			for _, arg := range call.Args {
				ast.Inspect(arg, func(n ast.Node) bool {
					inner, ok := n.(*ast.CallExpr)
					if !ok {
						return true
					}
					s, ok := inner.Fun.(*ast.SelectorExpr)
					if ok && (records[s.Sel.Name] || s.Sel.Name == "record" && strings.Contains(strings.ToLower(types.ExprString(s.X)), "audit")) {
						t.Errorf("%s: %s inside a transaction", name, types.ExprString(inner.Fun))
					}
					return true
				})
			}
			return true
		})
	}
	if seen < 20 {
		t.Errorf("only %d transactions were found", seen)
	}
}
