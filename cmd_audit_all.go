// This file is tai audit verify --all: every run log, one after the other, and what they come to together.
package main

import (
	"context"
	"fmt"
)

// auditAll is what all logs come to. Runs holds those that are not good, and the good ones that there is something to say of.
type auditAll struct {
	Good       int            `json:"good"`
	Tampered   int            `json:"tampered"`
	Unreadable int            `json:"unreadable"`
	Runs       []auditFinding `json:"runs"`
}

// exitCode is that of the worst log.
func (a auditAll) exitCode() int {
	switch {
	case a.Tampered > 0:
		return exitFailed
	case a.Unreadable > 0:
		return exitUsage
	}
	return exitDone
}

// verifyAll checks every log of the home and the workspace, and every run on record.
func (c *invocation) verifyAll(ctx context.Context) error {
	runs, notice, err := c.loggedRuns(ctx)
	if err != nil {
		return err
	}
	if notice != "" {
		fmt.Fprintln(c.stderr, "tai: "+visibleLine(notice))
	}
	all := auditAll{Runs: []auditFinding{}}
	for _, r := range runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := c.verifyListed(ctx, r)
		switch {
		case f.Tampered:
			all.Tampered++
		case f.Unreadable:
			all.Unreadable++
		default:
			all.Good++
		}
		if f.exitCode() != exitDone || len(f.Notices) > 0 || f.Incomplete {
			all.Runs = append(all.Runs, f)
		}
	}
	if c.given("ci") || c.json {
		err = writeJSONLine(c.stdout, all)
	} else {
		for _, f := range all.Runs {
			fmt.Fprintf(c.stdout, "%s: %s\n", visibleLine(f.Run), auditVerdict(f))
		}
		_, err = fmt.Fprintf(c.stdout, "%s checked: %d good, %d tampered with, %d unreadable\n", plural(len(runs), "log"), all.Good, all.Tampered, all.Unreadable)
	}
	if code := all.exitCode(); err == nil && code != exitDone {
		return errQuiet{code}
	}
	return err
}

// verifyListed checks one log of a listing. One that cannot be looked at is unreadable, and the others are checked all the same.
func (a *app) verifyListed(ctx context.Context, r auditRunInfo) auditFinding {
	word := r.Path
	if r.State == runGone {
		word = r.Run
	}
	f, err := a.verifyRun(ctx, word)
	if err != nil {
		f = auditFinding{auditReport: auditReport{Run: r.Run, Unreadable: true, Reason: err.Error()}, Checked: auditByChain}
	}
	if f.Run == "" {
		f.Run = r.Run
	}
	return f
}
