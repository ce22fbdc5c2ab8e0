package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeTortureLog keeps run logs in the folder runs of its home until it is killed: several callers at once, each asking,
// syncing, acting and telling how it ended. A deed is an empty file that is named after the run and the call.
func fakeTortureLog() {
	home, deeds := os.Getenv("TAI_HOME"), filepath.Join(os.Getenv("TAI_HOME"), "deeds")
	tortureFail(os.MkdirAll(deeds, 0o700))
	r := tortureRand()
	fmt.Println("up")
	v, err := tortureOpen(context.Background(), home, vaultWrite, false)
	tortureFail(err)
	for {
		a := newAuditLog(auditConfig{Dir: filepath.Join(home, "runs"), Origin: "cli", Now: time.Now, Heads: v.putAuditHead})
		most := 12
		if r.IntN(4) == 0 {
			most = 300 // enough for a head on the way
		}
		var wg sync.WaitGroup
		for range 1 + r.IntN(4) {
			calls, sizes := 1+r.IntN(most), rand.New(rand.NewPCG(r.Uint64(), 3))
			wg.Go(func() {
				for range calls {
					tortureFail(tortureDeed(a, sizes, deeds))
				}
			})
		}
		wg.Wait()
		tortureFail(a.close())
		fmt.Println("closed", a.name)
	}
}

// tortureDeed is one destructive call as the tools do it: requested, synced, done, completed.
func tortureDeed(a *auditLog, r *rand.Rand, deeds string) error {
	call := a.nextCall()
	data := fmt.Appendf(nil, `{"path":%q}`, strings.Repeat("x", r.IntN(3000)))
	if err := a.record(auditEvent{Event: auditCallRequested, Call: call, Subject: "file_write", Data: data}); err != nil {
		return err
	}
	fmt.Println("requested", a.name, call)
	if err := a.sync(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(deeds, a.name+"_"+call), nil, 0o600); err != nil {
		return err
	}
	if err := a.record(auditEvent{Event: auditCallCompleted, Call: call, Outcome: auditOK}); err != nil {
		return err
	}
	fmt.Println("completed", a.name, call)
	return nil
}

// tortureLogs verifies each log of a home and gives its lines as "requested RUN CALL" and so on. Incomplete counts the
// logs whose last line was cut.
func tortureLogs(home string) (lines map[string]bool, incomplete int, err error) {
	lines = map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(home, "runs", "*"))
	if err != nil {
		return nil, 0, err
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, 0, err
		}
		rep, err := verifyAuditAt(f, 0)
		if rep.Unreadable && rep.Lines == 0 { // killed between the making of the file and its first line
			if info, statErr := f.Stat(); statErr == nil && info.Size() == 0 {
				err = nil
			}
		}
		if err == nil && rep.Bad > 0 {
			err = fmt.Errorf("%w: line %d: %s", errTorture, rep.Bad, rep.Reason)
		}
		if rep.Incomplete {
			incomplete++
		}
		if err == nil {
			_, err = f.Seek(0, 0)
		}
		if err == nil {
			err = readAudit(f, func(rec auditRecord) bool {
				lines[strings.TrimPrefix(rec.Event, "tool_call_")+" "+rec.Run+" "+rec.Call] = true
				return true
			})
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
	return lines, incomplete, nil
}

// tortureLogsWhole wants each acknowledged line in its log, and no deed that its log does not know.
func tortureLogsWhole(ctx context.Context, home string, acks map[string]bool) error {
	lines, _, err := tortureLogs(home)
	if err != nil {
		return err
	}
	for ack := range acks {
		event, rest, _ := strings.Cut(ack, " ")
		if event == "closed" {
			ack = auditRunCompleted + " " + rest + " "
		}
		if !lines[ack] {
			return fmt.Errorf("%w: no line for %q", errTorture, ack)
		}
	}
	heads, err := tortureHeads(ctx, home)
	if err != nil {
		return err
	}
	deeds, err := os.ReadDir(filepath.Join(home, "deeds"))
	if err != nil {
		return err
	}
	for _, deed := range deeds {
		run, call, _ := strings.Cut(deed.Name(), "_")
		if !lines["requested "+run+" "+call] || !heads[run] {
			return fmt.Errorf("%w: %s was done and never requested, or its run is not on record", errTorture, deed.Name())
		}
	}
	return nil
}

// tortureHeads holds each run on record against its log and gives their names.
func tortureHeads(ctx context.Context, home string) (runs map[string]bool, err error) {
	v, err := tortureOpen(ctx, home, vaultRead, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	list, err := v.auditHeads(ctx)
	if err != nil {
		return nil, err
	}
	runs = map[string]bool{}
	for _, h := range list {
		runs[h.Run] = true
		if h, err = v.auditHead(ctx, h.Run); err != nil {
			return nil, err
		}
		f, err := os.Open(h.Path)
		if err != nil {
			return nil, fmt.Errorf("%w: a run on record: %w", errTorture, err)
		}
		rep, err := verifyAuditAt(f, h.Lines)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		if found := judgeAudit(rep, h.Run, &h, auditByVault); found.exitCode() != 0 {
			return nil, fmt.Errorf("%w: %s: %s", errTorture, h.Run, found.Reason)
		}
	}
	return runs, nil
}

func (x *torture) logLife(r *rand.Rand, dir string, rounds int) error {
	acks := map[string]bool{}
	for round := range rounds {
		c, err := startTorture("torture-log", "TAI_HOME="+filepath.Join(dir, "home"), fmt.Sprintf("TAI_TEST_SEED=%d", r.Uint64()))
		if err != nil {
			return err
		}
		most := 40
		if r.IntN(8) == 0 {
			most = 600 // a head is renewed no more often than every auditHeadPause
		}
		lines, err := c.killAfter(tortureDelay(r, most))
		x.kills.Add(1)
		x.acks.Add(int64(len(lines)))
		for _, line := range lines {
			acks[line] = true
		}
		ctx, cancel := context.WithTimeout(x.t.Context(), time.Minute)
		if err == nil {
			err = tortureLogsWhole(ctx, filepath.Join(dir, "home"), acks)
		}
		cancel()
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

// AUD-01, AUD-07: a run whose process is killed at any moment leaves a log that verifies, with every acknowledged line in it, and
// nothing was done that its log does not know.
func TestTortureAUD07Killed(t *testing.T) {
	tortureKill(t, [2]int{3, 5}, [2]int{50, 10}, (*torture).logLife)
}

// AUD-04, AUD-06: where the vault cannot tell whether the run is on record, its log stays: it would look removed. It ends there. Where
// nothing is on record, the next call begins anew.
func TestAUD06UnsureRecord(t *testing.T) {
	for _, unsure := range []bool{true, false} {
		a := auditTestLog(t)
		tries := 0
		a.cfg.Heads = func(context.Context, auditHead) error {
			if tries++; tries > 1 {
				return nil
			}
			if unsure {
				return fmt.Errorf("store: %w", errVaultUnsure)
			}
			return errVaultBusy
		}
		if err := a.record(auditEvent{Event: auditCallRequested}); err == nil {
			t.Fatal("recorded")
		}
		if _, err := os.Stat(a.path()); unsure != (err == nil) {
			t.Errorf("unsure %v: the log: %v", unsure, err)
		}
		if err := a.record(auditEvent{Event: auditCallRequested}); unsure != errors.Is(err, errVaultUnsure) || !unsure && err != nil {
			t.Errorf("unsure %v: the next record: %v", unsure, err)
		}
		if err := a.close(); err != nil {
			t.Error(err)
		}
	}
}
