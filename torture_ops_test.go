package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// tortureOp is one deed whose system calls are made to fail one after the other, in a process of its own.
type tortureOp struct {
	name  string
	fresh bool // there is no vault yet
	wal   bool // the vault was left by a killed process: its journal is full
	newer bool // the process knows one schema more
	once  bool // a deed that is done cannot be done again
	few   bool // a slow one: not every call is made to fail
	// before makes the vault ready, after its first values are stored.
	before func(ctx context.Context, v *vault) error
	do     func(ctx context.Context, v *vault) error
	// state says what the deed left: tortureAll, tortureNone, or what is wrong.
	state func(ctx context.Context, v *vault) string
}

const (
	tortureAll   = "all"
	tortureNone  = "none"
	tortureLater = "later" // setting that is stored after the deed, by the same process
	tortureBase  = 6       // secrets that are there before
)

// tortureBaseRecord is the origin of the one record that is there before.
const tortureBaseRecord = "base_record"

// tortureOps are the vault's deeds.
func tortureOps() []tortureOp {
	putSecret := func(ctx context.Context, v *vault) error {
		return v.putSecret(ctx, "", "DEED", secret(tortureText("DEED")), nil)
	}
	hasSecret := func(ctx context.Context, v *vault) string {
		return tortureState(tortureThere(ctx, v, "secret", "DEED", ""))
	}
	ops := []tortureOp{
		{name: "create", fresh: true, do: putSecret, state: hasSecret},
		{name: "open and migrate", newer: true, do: putSecret, state: hasSecret},
		{name: "recover a journal", wal: true, do: putSecret, state: hasSecret},
		{name: "put secret", do: putSecret, state: hasSecret},
		{name: "put secret, checkpoint", do: func(ctx context.Context, v *vault) error {
			if _, err := v.db.ExecContext(ctx, `PRAGMA wal_autocheckpoint = 1`); err != nil {
				return err
			}
			return putSecret(ctx, v)
		}, state: hasSecret},
		{name: "put server", do: func(ctx context.Context, v *vault) error {
			entry, tools := tortureServer("deed")
			return v.putServer(ctx, entry, profileDefault, true, tools, 32)
		}, state: func(ctx context.Context, v *vault) string {
			return tortureState(tortureThere(ctx, v, "server", "deed", ""))
		}},
		{name: "put record", do: func(ctx context.Context, v *vault) error {
			_, err := v.putRecord(ctx, "torture", "deed", "", []byte(strings.Repeat(tortureText("deed"), 100)))
			return err
		}, state: func(ctx context.Context, v *vault) string { return tortureRecordState(ctx, v, "deed") }},
		{name: "back up", once: true, do: func(ctx context.Context, v *vault) error {
			_, err := v.backup(ctx, tortureBackup(v))
			return err
		}, state: tortureBackupState},
		{name: "delete record", once: true, do: func(ctx context.Context, v *vault) error {
			list, _, err := v.records(ctx, "torture", "", 0)
			if err != nil || len(list) != 1 {
				return fmt.Errorf("%d records: %v", len(list), err)
			}
			return v.deleteRecord(ctx, list[0].ID)
		}, state: func(ctx context.Context, v *vault) string {
			switch s := tortureRecordState(ctx, v, tortureBaseRecord); s {
			case tortureAll:
				return tortureNone
			case tortureNone:
				return tortureAll
			default:
				return s
			}
		}},
	}
	return append(ops, tortureSeals()...)
}

// tortureSeals are the deeds that change the seal.
func tortureSeals() []tortureOp {
	unsealed := func(ctx context.Context, v *vault) error {
		_, err := v.unseal(ctx)
		return err
	}
	passphrase := func(ctx context.Context, v *vault) error {
		_, err := v.sealWithPassphrase(ctx, torturePassphrase)
		return err
	}
	ops := []tortureOp{
		{name: "rekey", do: func(ctx context.Context, v *vault) error {
			_, err := v.rekey(ctx)
			return err
		}},
		{name: "unseal", once: true, do: unsealed},
		{name: "seal by key file", once: true, before: unsealed, do: func(ctx context.Context, v *vault) error {
			_, err := v.sealWithKeyFile(ctx)
			return err
		}},
		{name: "seal by passphrase", few: true, do: passphrase},
		{name: "open a vault from before the seal", before: func(ctx context.Context, v *vault) error {
			if err := unsealed(ctx, v); err != nil {
				return err
			}
			return v.withTx(ctx, func(tx *sql.Tx) error {
				return execOne(ctx, tx, `DELETE FROM settings WHERE key = ?`, settingSeal)
			})
		}, do: func(context.Context, *vault) error { return nil }},
	}
	for i := range ops {
		ops[i].state = tortureSealState
	}
	return ops
}

// tortureSealState tells whether the seal is another one than that of the template.
func tortureSealState(ctx context.Context, v *vault) string {
	was, err := v.setting(ctx, tortureSealWas)
	var now string
	if err == nil {
		if now, err = v.setting(ctx, settingSeal); errors.Is(err, errNotFound) {
			err = nil
		}
	}
	switch {
	case err != nil:
		return err.Error()
	case was == now:
		return tortureNone
	}
	return tortureAll
}

const (
	tortureSealWas    = "torture_seal" // setting that holds the seal of the template
	torturePassphrase = secret("correct horse battery")
)

// tortureState reads the answer of tortureThere.
func tortureState(err error) string {
	switch {
	case err == nil:
		return tortureAll
	case errors.Is(err, errNotFound):
		return tortureNone
	}
	return err.Error()
}

func tortureRecordState(ctx context.Context, v *vault, origin string) string {
	list, _, err := v.records(ctx, "", "", 0)
	if err != nil {
		return err.Error()
	}
	i := slices.IndexFunc(list, func(r recordInfo) bool { return r.Origin == origin })
	if i < 0 {
		return tortureNone
	}
	_, body, err := v.record(ctx, list[i].ID)
	if err == nil && sha256Hex(body) != list[i].SHA256 {
		err = errors.New("the body does not fit its digest")
	}
	return tortureState(err)
}

// tortureBackup is where the backup of a vault goes.
func tortureBackup(v *vault) string {
	return filepath.Join(filepath.Dir(filepath.Dir(v.path)), "backup.db")
}

// tortureBackupState opens a copy of the backup as a vault: it must hold what the vault held.
func tortureBackupState(ctx context.Context, v *vault) string {
	b, err := os.ReadFile(tortureBackup(v))
	if errors.Is(err, os.ErrNotExist) {
		return tortureNone
	}
	home := filepath.Join(filepath.Dir(filepath.Dir(v.path)), "restored")
	if err == nil {
		err = os.RemoveAll(home)
	}
	if err == nil {
		err = os.Mkdir(home, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(home, vaultFile), b, 0o600)
	}
	var copied *vault
	if err == nil {
		copied, err = tortureOpen(ctx, home, vaultWrite, false)
	}
	if err != nil {
		return err.Error()
	}
	err = errors.Join(tortureSound(ctx, copied), tortureBaseWhole(ctx, copied, tortureOp{}), copied.close())
	return tortureState(err)
}

// tortureTemplate makes the vault that an operation finds: secrets, a server and a record.
func tortureTemplate(ctx context.Context, home string, op tortureOp) error {
	if op.fresh {
		return nil
	}
	at := home
	if op.wal {
		at = home + "-open"
	}
	v, err := tortureOpen(ctx, at, vaultWrite, false)
	for i := range tortureBase {
		if name := fmt.Sprint("BASE_", i); err == nil {
			err = v.putSecret(ctx, "", name, secret(tortureText(name)), nil)
		}
	}
	if err == nil {
		entry, tools := tortureServer("base")
		err = v.putServer(ctx, entry, profileDefault, true, tools, 32)
	}
	if err == nil {
		_, err = v.putRecord(ctx, "torture", tortureBaseRecord, "", []byte(strings.Repeat(tortureText(tortureBaseRecord), 60)))
	}
	if err == nil && op.before != nil {
		err = op.before(ctx, v)
	}
	if err == nil {
		var seal string
		if seal, err = v.setting(ctx, settingSeal); err == nil || errors.Is(err, errNotFound) {
			err = v.setSetting(ctx, tortureSealWas, seal)
		}
	}
	if err == nil && op.wal {
		err = os.CopyFS(home, os.DirFS(at)) // before the close: as a kill would leave it
	}
	if err == nil {
		err = v.close()
	}
	return err
}

// tortureBaseWhole wants what was there before the deed.
func tortureBaseWhole(ctx context.Context, v *vault, op tortureOp) error {
	if op.fresh {
		return nil
	}
	for i := range tortureBase {
		if name := fmt.Sprint("BASE_", i); tortureState(tortureThere(ctx, v, "secret", name, "")) != tortureAll {
			return fmt.Errorf("%s is lost", name)
		}
	}
	if s := tortureState(tortureThere(ctx, v, "server", "base", "")); s != tortureAll {
		return fmt.Errorf("the server: %s", s)
	}
	if s := tortureRecordState(ctx, v, tortureBaseRecord); s != tortureAll && op.name != "delete record" {
		return fmt.Errorf("the record: %s", s)
	}
	return nil
}

// tortureReport says the outcome of a step over descriptor 3, a socket: its system call is none of those that are made to
// fail.
type tortureReport struct{ conn *net.UnixConn }

func newTortureReport() tortureReport {
	conn, err := net.FileConn(os.NewFile(3, "report"))
	tortureFail(err)
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		tortureFail(errors.New("descriptor 3 is no socket"))
	}
	return tortureReport{unix}
}

func (r tortureReport) say(step string, err error) {
	text := "ok"
	if err != nil {
		text = "failed: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	_, _, err = r.conn.WriteMsgUnix([]byte(step+"\t"+text+"\n"), nil, nil)
	tortureFail(err)
}

// fakeTortureOp does TAI_TEST_OP on a thread that has made no system call yet, since strace counts the calls of each
// thread by itself. With TAI_TEST_CRASH it kills itself after a deed that failed.
func fakeTortureOp() {
	report := newTortureReport()
	done := make(chan bool)
	go func() {
		runtime.LockOSThread()
		before, _ := os.ReadDir("/proc/self/task")
		freshThread(before, func() {
			defer close(done)
			if op := os.Getenv("TAI_TEST_OP"); op == tortureLogOp {
				doTortureLog(report)
			} else {
				doTortureOp(report, op)
			}
		})
	}()
	<-done
}

// freshThread runs f on a thread that is not among before. Each goroutine keeps its thread, so that another one must be made.
func freshThread(before []os.DirEntry, f func()) {
	go func() {
		runtime.LockOSThread()
		self, _ := os.Readlink("/proc/thread-self")
		old := slices.ContainsFunc(before, func(e os.DirEntry) bool { return e.Name() == filepath.Base(self) })
		if !old {
			f()
			return
		}
		freshThread(before, f)
		select {}
	}()
}

func doTortureOp(report tortureReport, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	ops := tortureOps()
	op := ops[slices.IndexFunc(ops, func(op tortureOp) bool { return op.name == name })]
	v, err := tortureOpen(ctx, os.Getenv("TAI_HOME"), vaultWrite, op.newer)
	report.say("open", err)
	if err != nil {
		return
	}
	err = op.do(ctx, v)
	report.say("deed", err)
	if err != nil && os.Getenv("TAI_TEST_CRASH") != "" {
		tortureDie()
	}
	report.say(tortureLater, v.setSetting(ctx, tortureLater, "1"))
	report.say("close", v.close())
}

func tortureDie() {
	self, err := os.FindProcess(os.Getpid())
	tortureFail(cmp.Or(err, self.Signal(syscall.SIGKILL)))
	select {}
}

// tortureLogOp is the one operation on a run log.
const tortureLogOp = "run log"

// doTortureLog records, syncs, acts and closes, twice. The deed is a folder: making one is no call that is made to fail.
func doTortureLog(report tortureReport) {
	home := os.Getenv("TAI_HOME")
	v, err := tortureOpen(context.Background(), home, vaultWrite, false)
	report.say("open", err)
	if err != nil {
		return
	}
	a := newAuditLog(auditConfig{Dir: filepath.Join(home, "runs"), Origin: "cli", Now: time.Now, Heads: v.putAuditHead})
	for range 2 {
		call := a.nextCall()
		err := a.record(auditEvent{Event: auditCallRequested, Call: call, Subject: "file_write"})
		report.say("requested "+a.name+" "+call, err)
		if err == nil {
			err = a.sync()
			report.say("synced "+a.name+" "+call, err)
		}
		if err != nil {
			if os.Getenv("TAI_TEST_CRASH") != "" {
				tortureDie()
			}
			continue
		}
		tortureFail(os.Mkdir(filepath.Join(home, "deeds", a.name+"_"+call), 0o700))
		report.say("completed "+a.name+" "+call, a.record(auditEvent{Event: auditCallCompleted, Call: call, Outcome: auditOK}))
	}
	report.say("closed "+a.name, a.close())
	report.say("close", v.close())
}
