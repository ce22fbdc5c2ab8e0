// This file is the one queue for the person at the console: whoever has a question takes a turn there, so that two never mix. What runs in the
// background disturbs nobody who types or reads: its questions and news wait until the prompt has a line, or a turn has ended. It decides
// nothing and calls nothing.
package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

const deskNewsMax = 100 // lines that wait to be shown; later ones are counted

// desk is safe for concurrent use. It implements asker; as a prompter its console serves once a turn was taken.
type desk struct {
	*console
	show func(string)        // shows a line at once
	mask func(string) string // takes known secrets out

	slot    chan struct{} // held by whoever asks
	mu      sync.Mutex
	open    bool // a prompt takes questions and news of the background
	waiting []*deskTicket
	news    []string
	dropped int
}

// deskTicket is one question of the background that waits. call hands over the context to ask in; over is closed when it has been asked or has
// gone away.
type deskTicket struct {
	who  askerInfo
	call chan context.Context
	over chan struct{}
	note string // that it waits; "" once told
}

func newDesk(c *console, show func(string), mask func(string) string) *desk {
	return &desk{console: c, show: show, mask: mask, slot: make(chan struct{}, 1)}
}

// attend says whether a prompt is there that calls serve from time to time. Questions that wait when it goes are refused.
func (d *desk) attend(on bool) {
	d.mu.Lock()
	d.open = on
	var left []*deskTicket
	if !on {
		left, d.waiting = d.waiting, nil
	}
	d.mu.Unlock()
	for _, t := range left {
		close(t.call)
	}
}

// attended reports whether questions of the background are put.
func (d *desk) attended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open
}

// asking reports whether a question of that asker waits.
func (d *desk) asking(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.waiting, func(t *deskTicket) bool { return t.who.ID == id })
}

// turn waits until whoever asks in ctx may put a question, and gives the context to ask in; the caller calls done once it has its answer.
// errNobodyAsked: no prompt is there for a question of the background.
func (d *desk) turn(ctx context.Context) (asked context.Context, done func(), err error) {
	who := askerOf(ctx)
	if !who.Background {
		if err := d.take(ctx); err != nil {
			return ctx, nil, err
		}
		return ctx, d.leave, nil
	}
	t := &deskTicket{who: who, call: make(chan context.Context, 1), over: make(chan struct{}),
		note: visibleLine(d.mask(who.Name + " has a question; it comes when your line is done, Enter is enough"))}
	d.mu.Lock()
	open := d.open
	if open {
		d.waiting = append(d.waiting, t)
	}
	d.mu.Unlock()
	if !open {
		return ctx, nil, errNobodyAsked
	}
	select {
	case until, ok := <-t.call:
		return d.called(ctx, until, ok, t)
	case <-ctx.Done():
		d.withdraw(t)
		return ctx, nil, context.Cause(ctx)
	}
}

// called begins the turn of a ticket that was called.
func (d *desk) called(ctx, until context.Context, ok bool, t *deskTicket) (context.Context, func(), error) {
	if !ok {
		close(t.over)
		return ctx, nil, errNobodyAsked
	}
	ctx, cancel := context.WithCancelCause(ctx)
	give := func() { cancel(context.Cause(until)) }
	stop := context.AfterFunc(until, give)
	if until.Err() != nil {
		give()
	}
	end := func() {
		stop()
		cancel(nil)
		close(t.over)
	}
	if err := d.take(ctx); err != nil {
		end()
		return ctx, nil, err
	}
	return ctx, func() { d.leave(); end() }, nil
}

func (d *desk) take(ctx context.Context) error {
	select {
	case d.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *desk) leave() { <-d.slot }

// withdraw takes a ticket back whose asker has gone.
func (d *desk) withdraw(t *deskTicket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = slices.DeleteFunc(d.waiting, func(other *deskTicket) bool { return other == t })
	close(t.over)
}

// serve lets the question that has waited longest be put, and waits until it was answered, or given up with ctx; false if none waits.
func (d *desk) serve(ctx context.Context) bool {
	d.mu.Lock()
	if len(d.waiting) == 0 {
		d.mu.Unlock()
		return false
	}
	t := d.waiting[0]
	d.waiting = slices.Delete(d.waiting, 0, 1)
	d.mu.Unlock()
	t.call <- ctx
	<-t.over // its asker ends it with its own context or this one
	return true
}

// ask puts a question of ask_user (part of asker).
func (d *desk) ask(ctx context.Context, question string, choices []string, def string) (string, error) {
	ctx, done, err := d.turn(ctx)
	if err != nil {
		return "", errorf("ask: %w", err)
	}
	defer done()
	if who := askerOf(ctx).Name; who != "" {
		fmt.Fprintln(d.out, consentOwn+visibleLine(d.mask(who))+" asks:")
	}
	return d.console.ask(ctx, question, choices, def)
}

// post tells the person a line of the background: at once where no prompt is, else when it disturbs nobody.
func (d *desk) post(line string) {
	line = visibleLine(d.mask(line))
	d.mu.Lock()
	open := d.open
	switch {
	case !open:
	case len(d.news) < deskNewsMax:
		d.news = append(d.news, line)
	default:
		d.dropped++
	}
	d.mu.Unlock()
	if !open {
		d.show(line)
	}
}

// typing gives the lines that wait while somebody types: what told gives, and which questions wait for the end of the line.
func (d *desk) typing() []string {
	news := d.told()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.waiting {
		if t.note != "" {
			news, t.note = append(news, t.note), ""
		}
	}
	return news
}

// told gives the lines that wait, and forgets them.
func (d *desk) told() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	news := d.news
	if d.dropped > 0 {
		news = append(news, plural(d.dropped, "more line")+" left out")
	}
	d.news, d.dropped = nil, 0
	return news
}
