// This file gathers what a run log says into calls and sums for a report. It reads records only: no file, no HTML. Nothing in a log is
// believed further than it is spelled; times that run backwards, calls that stand twice and events that fit nothing all have a place.
package main

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	reportCallsMax  = 500_000 // calls that are kept; what comes after them is left out and said so
	reportRowsMax   = 500     // calls that are listed; of more, those that did not go well and the slowest
	reportTroubles  = 250     // of the rows, those kept for calls that did not go well
	reportDepthMax  = 8       // levels of nesting that are shown
	reportInternMax = 10_000  // texts that calls share
)

// reportState is how a call ended.
type reportState int

const (
	reportOK reportState = iota
	reportFailed
	reportRefused
	reportOpen // the log does not say
	reportStates
)

func (s reportState) String() string {
	return [...]string{"done", "failed", "refused", "not ended"}[s]
}

// reportCall is one call of a run. Times are microseconds since the first line; begin is when it was asked for, start when it began to
// run. First and last are its lines, counted in the file.
type reportCall struct {
	id, parent, kind, subject, rule, outcome string
	state                                    reportState
	begin, start, end                        int64
	took                                     float64 // milliseconds; as the log has it, else from its times
	sent, received                           int64   // bytes of arguments and of the result
	first, last                              int64
	depth                                    int
	caused                                   bool // its parent is a call of this log
	detail                                   *reportDetail
}

// reportDetail is what a second reading adds to a call that is listed.
type reportDetail struct {
	digest   string
	args     json.RawMessage
	finished json.RawMessage // what the last line says, mostly an error
}

// reportRun is a whole log, gathered.
type reportRun struct {
	run       string
	started   time.Time
	ended     int64 // microseconds since started, of the last line
	lines     int64
	completed bool
	first     json.RawMessage // what run_started says
	calls     []*reportCall
	full      bool // there were more than reportCallsMax calls
	broken    string

	byID  map[string]*reportCall
	texts map[string]string
}

func newReportRun() *reportRun {
	return &reportRun{byID: map[string]*reportCall{}, texts: map[string]string{}}
}

// share gives one copy of a text that many calls have.
//
//go:noinline for size: it is called in many places
func (r *reportRun) share(s string) string {
	if s == "" {
		return ""
	}
	if have, ok := r.texts[s]; ok {
		return have
	}
	if len(r.texts) < reportInternMax {
		r.texts[s] = s
	}
	return s
}

// add takes the next line of the log; false ends the reading.
func (r *reportRun) add(rec auditRecord) bool {
	at, err := time.Parse(auditTimeForm, rec.Time)
	switch {
	case r.lines == 0:
		r.run, r.started = rec.Run, at
	case err == nil:
		r.ended = max(r.ended, at.Sub(r.started).Microseconds())
	}
	r.lines++
	r.completed = rec.Event == auditRunCompleted
	if rec.Event == auditRunStarted && r.first == nil {
		r.first = rec.Data
	}
	if rec.Call == "" {
		return true
	}
	c := r.byID[rec.Call]
	if c == nil || rec.Event == auditCallRequested {
		if len(r.calls) == reportCallsMax {
			r.full = true
			return false
		}
		c = &reportCall{id: rec.Call, parent: r.share(rec.Parent), kind: r.share(rec.Kind), subject: r.share(rec.Subject), state: reportOpen,
			begin: r.ended, start: -1, end: -1, first: r.lines}
		if p := r.byID[rec.Parent]; p != nil {
			c.caused, c.depth = true, min(p.depth+1, reportDepthMax)
		}
		r.byID[c.id] = c
		r.calls = append(r.calls, c)
	}
	c.step(rec, r)
	return true
}

// step takes one event of the call.
func (c *reportCall) step(rec auditRecord, r *reportRun) {
	c.last = r.lines
	if rec.Rule != "" {
		c.rule = r.share(rec.Rule)
	}
	switch rec.Event {
	case auditCallRequested:
		c.sent = rec.Size
	case auditCallStarted:
		c.start = r.ended
	case auditCallBlocked, auditCallCompleted, auditCallFailed:
		c.end, c.outcome = r.ended, r.share(rec.Outcome)
		c.took = float64(c.end-max(c.start, c.begin)) / 1000
		if ms, err := strconv.ParseFloat(rec.Duration, 64); err == nil {
			c.took = max(ms, 0)
		}
		switch {
		case rec.Event == auditCallCompleted:
			c.state = reportOK
		case rec.Event == auditCallBlocked && rec.Outcome == auditDenied:
			c.state = reportRefused
		default:
			c.state = reportFailed
		}
		if rec.Event != auditCallBlocked {
			c.received = rec.Size
		}
	}
}

// until is when the call ended, or the log where it does not say.
func (c *reportCall) until(r *reportRun) int64 {
	if c.end < 0 {
		return r.ended
	}
	return c.end
}

// server is whose tool was called: the server of a bridged call, else tai itself.
func (c *reportCall) server() string {
	if server, _, ok := strings.Cut(c.subject, "/"); ok && c.kind == auditKindMCP {
		return server
	}
	return ""
}

// listed gives the calls that the page lists and whether these are all: in their order, or those that did not go well and then the
// slowest, where there are too many.
func (r *reportRun) listed() (rows []*reportCall, all bool) {
	if len(r.calls) <= reportRowsMax {
		return r.calls, true
	}
	var fine []*reportCall
	for _, c := range r.calls {
		if c.state != reportOK && len(rows) < reportTroubles {
			rows = append(rows, c)
		} else {
			fine = append(fine, c)
		}
	}
	sortBy(fine, func(a, b *reportCall) int { return cmp.Compare(b.took, a.took) })
	return append(rows, fine[:min(len(fine), reportRowsMax-len(rows))]...), false
}

// reportDetails fills in the details of the calls given, from a second reading of the log: it gives what takes each line.
func reportDetails(rows []*reportCall) func(auditRecord) bool {
	first, last := map[int64]*reportCall{}, map[int64]*reportCall{}
	for _, c := range rows {
		c.detail = &reportDetail{}
		first[c.first] = c
		if c.last != c.first {
			last[c.last] = c
		}
	}
	line := int64(0)
	return func(rec auditRecord) bool {
		line++
		if c := first[line]; c != nil {
			c.detail.digest, c.detail.args = rec.Digest, rec.Data
		}
		if c := last[line]; c != nil {
			c.detail.digest, c.detail.finished = cmp.Or(c.detail.digest, rec.Digest), rec.Data
		}
		return true
	}
}

// reportGroup sums the calls of one tool, one server or one rule.
type reportGroup struct {
	name           string
	calls          int
	states         [reportStates]int
	took           []float64 // milliseconds of each call that ended after it ran, in order once they are sorted
	total          float64
	sent, received int64
}

func (g *reportGroup) add(c *reportCall) {
	g.calls++
	g.states[c.state]++
	g.sent += c.sent
	g.received += c.received
	if c.state == reportOK || c.state == reportFailed {
		g.took = append(g.took, c.took)
		g.total += c.took
	}
}

// rank gives the smallest duration that share of the calls do not exceed (nearest rank), in milliseconds.
func (g *reportGroup) rank(share float64) float64 {
	n := len(g.took)
	return g.took[min(max(int(math.Ceil(share*float64(n))), 1), n)-1]
}

// groups sums the calls by a name, those that took longest first. Calls for which name is false are left out.
func (r *reportRun) groups(name func(*reportCall) (string, bool)) []*reportGroup {
	by := map[string]*reportGroup{}
	var list []*reportGroup
	for _, c := range r.calls {
		n, ok := name(c)
		if !ok {
			continue
		}
		g := by[n]
		if g == nil {
			g = &reportGroup{name: n}
			by[n] = g
			list = append(list, g)
		}
		g.add(c)
	}
	for _, g := range list {
		slices.Sort(g.took)
	}
	sortBy(list, func(a, b *reportGroup) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(b.calls, a.calls), strings.Compare(a.name, b.name))
	})
	return list
}

// whole sums all calls.
func (r *reportRun) whole() *reportGroup {
	if g := r.groups(func(*reportCall) (string, bool) { return "", true }); len(g) == 1 {
		return g[0]
	}
	return &reportGroup{}
}
