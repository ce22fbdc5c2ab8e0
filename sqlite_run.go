// This file runs the SQL of the data tools: one call at a time, bounded in time and memory, on a connection whose every statement passes a guard while it is
// compiled. It knows no file, no tool and no result; what a statement may do is sqlGuard's.
package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	dataTime     = 60 * time.Second // one call of a data tool, the wait for another one included
	dataGrace    = 5 * time.Second  // that a call which was stopped may take to end
	dataMemory   = 768 << 20        // bytes that tai may grow by during one call
	dataValueMax = 16 << 20         // bytes of one value, and of one row
	dataBusyTime = 5 * time.Second  // that a locked database is waited for
	dataWatch    = 20 * time.Millisecond
	dataLikeMax  = 1000 // bytes of a pattern of LIKE or GLOB, whose work is that times the text
)

// dataBounds are the bounds of one call.
type dataBounds struct {
	time, grace time.Duration
	memory      int64
}

// errDataMemory ends a call that takes too much; the text is for the model.
var errDataMemory = fmt.Errorf("took more than %d bytes of memory; aggregate in SQL, sort less or ask for fewer and shorter values", dataMemory)

// dataEngine is the one SQLite of the data tools. Only one call is inside it at a time, so that its memory is that call's; pump is what that call reads rows
// with. It opens nothing until it is used.
type dataEngine struct {
	slot   chan struct{}
	bounds dataBounds
	driver func() (*sqlite.Driver, error)
	pump   func() error // of the call in the slot
}

func newDataEngine() *dataEngine {
	e := &dataEngine{slot: make(chan struct{}, 1), bounds: dataBounds{dataTime, dataGrace, dataMemory}}
	e.driver = sync.OnceValues(func() (*sqlite.Driver, error) {
		// The vault asks for these locks too, and only the first lock of a process decides; see openVaultAs.
		_, _ = sqlite.OFDLocking(true)
		d := &sqlite.Driver{}
		err := d.RegisterScalarFunction(dataPump, 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) { return nil, e.pump() })
		return d, err
	})
	return e
}

// do runs f, which opens and closes what it needs, with a context that ends when the call has had its time or memory. A call that cannot be stopped, as it is
// inside one long step of SQLite, is left behind with an error after a grace; it keeps the slot until it ends, and its result goes nowhere.
func (e *dataEngine) do(ctx context.Context, f func(context.Context) (toolResult, error)) (toolResult, error) {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, e.bounds.time)
	defer cancel()
	select {
	case e.slot <- struct{}{}:
	case <-ctx.Done():
		if outer.Err() != nil {
			return toolResult{}, outer.Err()
		}
		return toolResult{}, newError("another call that reads or changes data has not ended yet; try again later")
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan dataOutcome, 1)
	go func() { // ends with f, which ends with ctx but for one step of SQLite
		var o dataOutcome
		defer func() {
			o.panicked = recover()
			stop(nil)
			<-e.slot
			done <- o
		}()
		o.r, o.err = f(ctx)
	}()
	go watchMemory(ctx, e.bounds.memory, stop) // ends with ctx
	o, ended := awaitData(ctx, done, e.bounds.grace)
	switch cause := context.Cause(ctx); {
	case o.panicked != nil:
		panic(o.panicked)
	case ended && o.err == nil:
		return o.r, nil
	case outer.Err() != nil:
		return toolResult{}, outer.Err()
	case errors.Is(cause, errDataMemory):
		return o.r, errDataMemory
	case errors.Is(cause, context.DeadlineExceeded):
		o.err = errorf("was stopped after %v; narrow it with WHERE or LIMIT, or look for a join without a condition", e.bounds.time)
	}
	if !ended {
		return toolResult{}, errorf("%w; one step of it cannot be interrupted and keeps a core busy until it ends, and no other call on data runs before", o.err)
	}
	return o.r, o.err
}

// dataOutcome is what a call came to.
type dataOutcome struct {
	r        toolResult
	err      error
	panicked any
}

// awaitData waits for a call, and a grace longer once its context has ended; false if it goes on all the same.
func awaitData(ctx context.Context, done <-chan dataOutcome, grace time.Duration) (dataOutcome, bool) {
	select {
	case o := <-done:
		return o, true
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case o := <-done:
		return o, true
	case <-late.C:
		return dataOutcome{}, false
	}
}

// watchMemory stops a call during which the process grows by more than limit bytes.
func watchMemory(ctx context.Context, limit int64, stop context.CancelCauseFunc) {
	from := residentMemory()
	tick := time.NewTicker(dataWatch)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if residentMemory()-from > limit {
				stop(errDataMemory)
				return
			}
		}
	}
}

// dataConn is one open database. Its methods are for the goroutine that opened it.
type dataConn struct {
	engine *dataEngine
	guard  *sqlGuard
	raw    rawConn
}

// rawConn is what the driver's connection can do beyond database/sql.
type rawConn interface {
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnPrepareContext
	ColumnInfo(query string) ([]sqlite.ColumnInfo, error)
	RegisterAuthorizer(sqlite.AuthorizerFn) error
}

// dataConnector opens connections of the engine's own driver.
type dataConnector struct {
	driver *sqlite.Driver
	dsn    string
}

func (c dataConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.driver.Open(c.dsn)
}

func (c dataConnector) Driver() driver.Driver { return c.driver }

// open opens a database, hands it to f and closes it. The statements of f's own are free until it calls guarded.
func (e *dataEngine) open(ctx context.Context, dsn string, guard *sqlGuard, f func(*dataConn) error) (err error) {
	d, err := e.driver()
	if err != nil {
		return err
	}
	db := sql.OpenDB(dataConnector{d, dsn})
	defer func() { err = joinErrors(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = joinErrors(err, conn.Close()) }()
	for id, most := range map[int]int{
		sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_LENGTH: dataValueMax, sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: dataLikeMax,
		sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 500, sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 100, sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
	} {
		if _, err := sqlite.Limit(conn, id, most); err != nil {
			return err
		}
	}
	return conn.Raw(func(raw any) error {
		c := &dataConn{engine: e, guard: guard}
		var ok bool
		if c.raw, ok = raw.(rawConn); !ok {
			return newError("the SQLite driver lacks what the data tools need")
		}
		if err := c.raw.RegisterAuthorizer(guard.judge); err != nil {
			return err
		}
		return f(c)
	})
}

// dataDSN names a database with what every connection of these tools has: no temporary files, no trust in what a file's schema calls, no change of its inner
// tables by hand, no memory mapping.
func dataDSN(path string, params ...string) string {
	params = append(params, "_defensive=1", "_error_rc=1", "_pragma=temp_store(2)", "_pragma=trusted_schema(0)", "_pragma=mmap_size(0)", fmt.Sprintf("_pragma=busy_timeout(%d)", dataBusyTime.Milliseconds()))
	if path == "" {
		return "file::memory:?" + strings.Join(params, "&")
	}
	return vaultDSN(path, params...)
}

// exec runs one statement of the tools' own.
//
//go:noinline for size: it is called in many places
func (c *dataConn) exec(ctx context.Context, text string) error {
	_, err := c.raw.ExecContext(ctx, text, nil)
	return err
}

// one runs a query of the tools' own that gives one row of integers.
func (c *dataConn) one(ctx context.Context, text string, into ...*int64) (err error) {
	rows, err := c.raw.QueryContext(ctx, text, nil)
	if err != nil {
		return err
	}
	defer func() { err = joinErrors(err, rows.Close()) }()
	values := make([]driver.Value, len(into))
	if err := rows.Next(values); err != nil {
		return err
	}
	for i, v := range values {
		n, ok := v.(int64)
		if !ok {
			return errorf("%s gave no number", text)
		}
		*into[i] = n
	}
	return nil
}

// guarded runs a caller's statement under the guard.
func (c *dataConn) guarded(f func() error) error {
	c.guard.on, c.guard.why = true, ""
	defer func() { c.guard.on = false }()
	return c.guard.explain(f())
}

// query hands each row of a caller's statement to take, until that returns false. The driver watches the context while a statement is executed, not from row to
// row; so the rows are read inside the execution of another statement, which calls back.
func (c *dataConn) query(ctx context.Context, text string, args []driver.NamedValue, take func(row []driver.Value) bool) error {
	var fault error
	c.engine.pump = func() error {
		fault = c.guarded(func() error { return c.rows(text, args, take) })
		return fault
	}
	defer func() { c.engine.pump = nil }()
	_, err := c.raw.ExecContext(ctx, "SELECT "+dataPump+"()", nil)
	if fault != nil && ctx.Err() == nil {
		return fault
	}
	return err
}

// rows reads the rows of one statement. The execution around it is what the context of the call interrupts.
func (c *dataConn) rows(text string, args []driver.NamedValue, take func(row []driver.Value) bool) (err error) {
	rows, err := c.raw.QueryContext(context.Background(), text, args)
	if err != nil {
		return err
	}
	defer func() { err = joinErrors(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if !take(row) {
			return nil
		}
	}
}
