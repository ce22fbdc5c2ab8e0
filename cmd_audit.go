// This file holds the commands that read run logs: tai audit list, show, verify.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func auditCommands() []command {
	return []command{
		{Path: "audit list", Short: "run logs of this home and workspace, newest first", Example: "tai audit list", Store: storeNone, Run: cmdAuditList},
		{Path: "audit show", Args: "RUN|FILE", Short: "print a run log, one line an event", Example: "tai audit show cli-2f6c1a0b", Min: 1, Max: 1, Store: storeNone, Run: cmdAuditShow},
		{Path: "audit verify", Args: "RUN|FILE", Short: "check a run log's chain and name the first bad line",
			Long: "Exit 0: good. Exit 1: tampered with. Exit 2: unreadable. An incomplete last line\nis what a crash leaves, and is told as a notice.", Example: "tai audit verify cli-2f6c1a0b --ci",
			Flags: []flagSpec{{Name: "ci", Help: "one line of JSON, for machines"}}, Min: 1, Max: 1, Store: storeNone, Run: cmdAuditVerify},
	}
}

// auditFolders are where run logs lie: those of the home, and those of the workspace's own servers.
func (a *app) auditFolders() []string {
	return []string{filepath.Join(a.home, "runs"), filepath.Join(a.root, ".tai", "runs")}
}

func cmdAuditList(_ context.Context, c *invocation) error {
	runs, err := listAudit(c.auditFolders()...)
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"runs": orEmpty(runs)})
	}
	if len(runs) == 0 {
		fmt.Fprintln(c.stdout, "no runs are logged")
	}
	for _, r := range runs {
		state := "ended"
		switch {
		case r.Fault != "":
			state = "unreadable: " + r.Fault
		case !r.Completed:
			state = "not ended"
		}
		fmt.Fprintf(c.stdout, "%s  %s  %d lines  %s\n", visibleLine(r.Run), r.Started.Format(time.RFC3339), r.Lines, visibleLine(state))
	}
	return nil
}

// auditFile finds a log by its run or its path.
func (a *app) auditFile(word string) (*os.File, error) {
	names := []string{}
	if !strings.ContainsAny(word, `/\`) {
		for _, dir := range a.auditFolders() {
			names = append(names, filepath.Join(dir, word+auditExtension))
		}
	}
	for _, name := range append(names, absolute(word, a.out.Dir)) {
		info, err := os.Stat(name) // before it is opened: opening a pipe would wait for its writer
		if err == nil && !info.Mode().IsRegular() {
			return nil, usageError("", "run log %s is no regular file", quoteClip(word))
		}
		var f *os.File
		if err == nil {
			f, err = os.Open(name)
		}
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, &cliError{Exit: exitUsage, Message: fmt.Sprintf("read run log %s: %v", quoteClip(word), bareError(err)), err: err}
		}
	}
	return nil, usageError("tai audit list shows the runs", "no such run or file: %s", quoteClip(word))
}

func cmdAuditShow(_ context.Context, c *invocation) error {
	f, err := c.auditFile(c.args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	events := []json.RawMessage{}
	err = readAudit(f, func(r auditRecord) bool {
		if c.json {
			events = append(events, r.appendLine(nil))
		} else {
			fmt.Fprintln(c.stdout, auditLine(r))
		}
		return true
	})
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"events": events})
	}
	return nil
}

func auditLine(r auditRecord) string {
	parts := []string{fmt.Sprintf("%d", r.Seq), r.Time, r.Event}
	for _, p := range []struct{ name, value string }{{"", r.Call}, {"parent ", r.Parent}, {"", r.Kind}, {"", r.Subject}, {"", r.Outcome}, {"rule ", r.Rule}} {
		if p.value != "" {
			parts = append(parts, p.name+p.value)
		}
	}
	if len(r.Data) > 0 {
		parts = append(parts, string(r.Data))
	}
	return visibleLine(strings.Join(parts, "  "))
}

func cmdAuditVerify(_ context.Context, c *invocation) error {
	f, err := c.auditFile(c.args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	rep, err := verifyAudit(f)
	if err != nil && !rep.Unreadable {
		return err
	}
	if c.given("ci") || c.json {
		err = writeJSONLine(c.stdout, rep)
	} else {
		_, err = fmt.Fprintln(c.stdout, auditVerdict(rep))
	}
	if code := rep.exitCode(); err == nil && code != exitDone {
		return errQuiet{code}
	}
	return err
}

func auditVerdict(r auditReport) string {
	switch {
	case r.Unreadable:
		return "unreadable: " + visibleLine(r.Reason)
	case r.Bad > 0:
		return fmt.Sprintf("tampered with: line %d: %s", r.Bad, visibleLine(r.Reason))
	case r.Incomplete:
		return fmt.Sprintf("good: %d lines of %s; notice: an incomplete last line, as a crash leaves it", r.Lines, visibleLine(r.Run))
	}
	return fmt.Sprintf("good: %d lines of %s", r.Lines, visibleLine(r.Run))
}
