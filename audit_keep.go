// This file owns when the head of a running log is put on record again: in batches, behind the back of those who record, by one goroutine.
// It knows no log, no head and no vault.
package main

import (
	"context"
	"sync"
	"time"
)

const (
	auditHeadEvery = 2 * time.Second        // a line waits no longer than this to be covered by the head on record
	auditHeadBatch = 256                    // lines after which the head is put on record earlier
	auditHeadPause = 250 * time.Millisecond // between two heads, however fast lines come
	auditHeadLimit = 20 * time.Second       // for putting one head on record
)

// auditKeeper is the goroutine that keeps one run's head on record, and how it is told of new lines.
type auditKeeper struct {
	wake  chan struct{} // there is a line that the head does not cover
	full  chan struct{} // there are auditHeadBatch of them
	taken int64         // lines that the last head covers; under the log's lock, as note and covers are
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

// startAuditKeeper begins after a head of that many lines. renew puts the head of what is written by then on record; warn is told of the first
// failure. The caller ends it.
func startAuditKeeper(lines int64, renew func(context.Context) error, warn func(error)) *auditKeeper {
	life, stop := context.WithCancel(context.Background()) // the log's, which outlives every call
	k := &auditKeeper{wake: make(chan struct{}, 1), full: make(chan struct{}, 1), taken: lines, stop: stop}
	k.wg.Go(func() { k.run(life, renew, warn) }) // ends when end is called
	return k
}

// note is told of each new line. It never waits.
func (k *auditKeeper) note(seq int64) {
	var c chan struct{}
	switch seq - k.taken {
	case 1:
		c = k.wake
	case auditHeadBatch:
		c = k.full
	default:
		return
	}
	tellOnce(c)
}

// covers is told of how many lines the next head speaks.
func (k *auditKeeper) covers(lines int64) {
	k.taken = lines
	select {
	case <-k.full: // it spoke of lines that are covered now
	default:
	}
}

func tellOnce(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // told already
	}
}

// end stops the goroutine and waits for it.
func (k *auditKeeper) end() {
	k.stop()
	k.wg.Wait()
}

// run puts the head on record some time after each new line, until life ends.
func (k *auditKeeper) run(life context.Context, renew func(context.Context) error, warn func(error)) {
	told := false
	for {
		select {
		case <-k.wake:
		case <-life.Done():
			return
		}
		if !pauseUnless(life, auditHeadEvery, k.full) {
			return
		}
		pause := auditHeadPause
		if err := renewWithin(life, renew); err != nil && life.Err() == nil {
			pause = auditHeadEvery
			tellOnce(k.wake) // it is tried again though no line comes
			if !told {
				warn(err)
			}
			told = true
		}
		if !pauseUnless(life, pause, nil) {
			return
		}
	}
}

func renewWithin(ctx context.Context, renew func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, auditHeadLimit)
	defer cancel()
	return renew(ctx)
}

// pauseUnless waits for d, or until early; it reports false when life has ended.
func pauseUnless(life context.Context, d time.Duration, early <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-life.Done():
	}
	return life.Err() == nil
}
