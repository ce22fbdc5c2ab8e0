// This file holds tai audit report: it checks a log, has its page made and puts the page where it was asked for.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

func auditReportCommands() []command {
	return []command{{
		Path: "audit report", Args: "RUN|FILE", Short: "make one HTML page of a run log", Example: "tai audit report cli-2f6c1a0b93d4e857 -o report.html",
		Long:  "Time line, calls by tool and server, durations, refusals, bytes. The page loads\nnothing and has no script. Of a log that was tampered with the page is made too,\nsays so at its top, and the exit code is 1. Without -o the page goes to standard\noutput, if that is no terminal.",
		Flags: []flagSpec{{Name: "o", Value: "FILE", Help: "write it to a new file; - is standard output"}, {Name: "force", Help: "replace the file if it is there"}},
		Min:   1, Max: 1, Store: storeRead, Run: cmdAuditReport,
	}}
}

// auditReportDoc is what --json says of a page that was written.
type auditReportDoc struct {
	Run      string `json:"run"`
	File     string `json:"file"`
	Bytes    int    `json:"bytes"`
	Calls    int    `json:"calls"`
	Tampered bool   `json:"tampered"`
}

func cmdAuditReport(ctx context.Context, c *invocation) error {
	name := c.flag("o")
	switch {
	case name == "" && c.given("o"):
		return usageError("-o report.html", "-o needs a file name")
	case name == "" && c.given("force"):
		return usageError("give -o FILE with it", "--force has no file to replace")
	case (name == "" || name == "-") && c.json:
		return usageError("give -o FILE with --json", "the page is no JSON, so it needs a file of its own")
	case name == "" && c.outTerminal:
		return usageError("tai audit report "+quoteWord(c.args[0])+" -o report.html", "a page of HTML is nothing for a terminal")
	}
	file, f, err := c.checkedLog(ctx, c.args[0], true)
	if err != nil {
		return err
	}
	defer file.Close() // only read
	if f.Unreadable {
		return &cliError{Exit: exitUsage, Message: "run log " + quoteClip(c.args[0]) + " cannot be read: " + visibleLine(f.Reason)}
	}
	page := &reportPage{finding: f, name: c.args[0], made: c.out.Now()}
	if page.run, err = readReport(file); err != nil {
		return err
	}
	html := page.html()
	if name == "" || name == "-" {
		_, err = c.stdout.Write(html)
	} else {
		err = c.saveReport(name, html)
	}
	if err == nil && c.json {
		err = writeJSON(c.stdout, auditReportDoc{Run: page.title(), File: absolute(name, c.out.Dir), Bytes: len(html), Calls: len(page.run.calls), Tampered: f.Tampered})
	}
	if f.Tampered && err == nil {
		fmt.Fprintf(c.stderr, "warning: %s\n", visibleLine(page.verdict()))
		return errQuiet{exitFailed}
	}
	return err
}

// readReport gathers a log in two readings: of all calls their sums, then of those that are listed their details.
func readReport(log io.ReadSeeker) (*reportRun, error) {
	r := newReportRun()
	if err := readAudit(log, r.add); err != nil {
		if _, disk := errors.AsType[*fs.PathError](err); disk {
			return nil, err
		}
		r.broken = err.Error()
	}
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return nil, errorf("read run log again: %w", err)
	}
	rows, _ := r.listed()
	if err := readAudit(log, reportDetails(rows)); err != nil && r.broken == "" {
		return nil, err
	}
	return r, nil
}

// saveReport writes the page for its owner alone. With --force a file that is there is replaced in one step.
func (c *invocation) saveReport(name string, html []byte) error {
	path := absolute(name, c.out.Dir)
	err := writeNewFile(path, html)
	if errors.Is(err, fs.ErrExist) {
		if !c.given("force") {
			return usageError("--force replaces it", "%s is there already and is left as it is", quoteClip(name))
		}
		err = replaceFile(path, html)
	}
	if err != nil {
		return errorf("write the report: %w", err)
	}
	if !c.json {
		_, err = fmt.Fprintf(c.stdout, "report of %s in %s\n", visibleLine(c.args[0]), visibleLine(name))
	}
	return err
}

// replaceFile puts a new file in the place of a regular one.
func replaceFile(path string, b []byte) error {
	if info, err := os.Lstat(path); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return errorf("%s is no regular file", quoteClip(path))
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tai-report-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = joinErrors(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return joinErrors(err, os.Remove(f.Name()))
	}
	return nil
}
