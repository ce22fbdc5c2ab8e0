// This file holds the commands about run logs: tai audit list, show, verify, head.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func auditCommands() []command {
	return []command{
		{Path: "audit list", Short: "runs of this home and workspace, newest first", Long: "At the end of a line stands what the run did first. A run that is on record and\nhas no log any more is listed too: \"log gone\".", Example: "tai audit list --limit 10",
			Flags: []flagSpec{{Name: "limit", Value: "N", Help: fmt.Sprintf("at most this many (default %d)", recordListLimit)}}, Store: storeRead, Run: cmdAuditList},
		{Path: "audit show", Args: "RUN|FILE", Short: "print a run log, one line an event", Long: "A log that does not verify is shown all the same, with a warning. RUN may be\ncut short where it stays clear, and the word last is the newest run; so for\nverify, head and report.", Example: "tai audit show cli-2f6c1a0b93d4e857 --since 10m",
			Flags: []flagSpec{{Name: "call", Value: "ID", Help: "only the events of this call, and of those that it caused"}, {Name: "event", Value: "NAME", Help: "only these events", Many: true},
				{Name: "since", Value: "TIME", Help: "only what came later: a time as in the log, or how long ago (90s, 10m, 2h)"}}, Min: 1, Max: 1, Store: storeRead, Run: cmdAuditShow},
		{Path: "audit verify", Args: "[RUN|FILE]", Short: "check a run log's chain, and its head on record; or all logs", Example: "tai audit verify cli-2f6c1a0b93d4e857 --ci",
			Long:  "Exit 0: good. Exit 1: tampered with. Exit 2: unreadable. The chain shows what\nwas changed inside the log; the head that the vault holds, or --head FILE, also\nwhat was cut off its end. With --head no vault is opened. An incomplete last\nline that the head does not speak of is what a crash leaves, and a notice. With\n--all every log of the home and the workspace is checked, also those that are\non record and gone; the exit code is that of the worst.",
			Flags: []flagSpec{{Name: "ci", Help: "one line of JSON, for machines"}, {Name: "head", Value: "FILE", Help: "a head that tai audit head wrote"}, {Name: "all", Help: "check every log"}}, Max: 1, Store: storeRead, Run: cmdAuditVerify},
		{Path: "audit head", Args: "RUN", Short: "export the signed head of a run log, to be kept elsewhere", Example: "tai audit head cli-2f6c1a0b93d4e857 -o head.json",
			Long:  "tai audit verify LOG --head FILE holds the log against it, on any machine that\nhas both files; the log is HOME/runs/RUN.jsonl. Whoever can change both could\nsign anew: so note the key that this command shows, and compare it with the\none that verify shows.",
			Flags: []flagSpec{{Name: "o", Value: "FILE", Help: "write it to a new file"}}, Min: 1, Max: 1, Store: storeThere, Run: cmdAuditHead},
	}
}

// auditFolders are where run logs lie: those of the home, and those of the workspace's own servers.
func (a *app) auditFolders() []string {
	return []string{filepath.Join(a.home, "runs"), filepath.Join(a.root, ".tai", "runs")}
}

// recordedHeads gives the heads on record, to be read before the logs are looked at: a head is never newer than its log. Where they cannot be read, it
// says so and what that means, and gives none.
func (c *invocation) recordedHeads(ctx context.Context, without string) []auditHead {
	var heads []auditHead
	v, err := c.vault(ctx)
	if err == nil {
		heads, err = v.auditHeads(ctx)
	}
	if err != nil {
		fmt.Fprintf(c.stderr, "tai: %s: %s\n", without, visibleLine(err.Error()))
		return nil
	}
	return heads
}

func cmdAuditList(ctx context.Context, c *invocation) error {
	limit, err := c.limit(recordListLimit)
	if err != nil {
		return err
	}
	heads := c.recordedHeads(ctx, "logs that are gone do not show")
	runs, total, err := listAudit(heads, limit, c.auditFolders()...)
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"runs": orEmpty(runs), "total": total})
	}
	if total == 0 {
		fmt.Fprintln(c.stdout, "no runs are logged")
	}
	for _, r := range runs {
		state := r.State
		if r.Fault != "" {
			state += ": " + r.Fault
		}
		if r.First != "" {
			state += "  " + r.First
		}
		printWrapped(c.stdout, fmt.Sprintf("%s  %s  %d lines  %s", visibleLine(r.Run), r.Started.UTC().Format(time.RFC3339), r.Lines, visibleLine(state)))
	}
	if total > len(runs) {
		fmt.Fprintf(c.stderr, "%d more; --limit shows them\n", total-len(runs))
	}
	return nil
}

// auditSource is a log that a command was told of. Run is whose it must be, "" where only its lines can tell.
type auditSource struct {
	*os.File
	run string
}

// auditSource finds a log by its run or its path. placed, which may be nil, knows where else the log of a run may lie. Nothing of that name
// is fs.ErrNotExist.
func (a *app) auditSource(word string, placed func(run string) string) (auditSource, error) {
	src := auditSource{}
	var names []string
	if !strings.ContainsAny(word, `/\`) {
		for _, dir := range a.auditFolders() {
			names = append(names, filepath.Join(dir, word+auditExtension))
		}
	}
	if isAuditRun(word) {
		src.run = word
		if placed != nil {
			names = append(names, placed(word))
		}
	} else if base, ok := strings.CutSuffix(filepath.Base(word), auditExtension); ok && isAuditRun(base) {
		src.run = base
	}
	for _, name := range append(names, absolute(word, a.out.Dir)) {
		var err error
		src.File, err = openRegular(name)
		if err == nil {
			return src, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return src, &cliError{Exit: exitUsage, Message: fmt.Sprintf("read run log %s: %v", quoteClip(word), bareError(err)), err: err}
		}
	}
	return src, noSuchRun(word, "tai audit list shows the runs")
}

//go:noinline for size: it is called in many places
func noSuchRun(word, hint string) error {
	return &cliError{Exit: exitUsage, Message: "no such run or file: " + quoteClip(word), Hint: hint, err: fs.ErrNotExist}
}

// wholeRun gives the run that a word means which is no whole one: the newest for last, else the only one that begins with it, on record or
// in the folders. Any other word stays as it is, and so does the name of a file. heads, which may be nil, gives the runs on record.
func (a *app) wholeRun(word string, heads func() []auditHead) (string, error) {
	if !isShortRun(word) && word != auditLast {
		return word, nil
	}
	if _, err := os.Lstat(absolute(word, a.out.Dir)); err == nil && word != auditLast {
		return word, nil
	}
	var recorded []auditHead
	if heads != nil {
		recorded = heads()
	}
	limit := 1
	if word != auditLast {
		limit = math.MaxInt
	}
	runs, _, err := listAudit(recorded, limit, a.auditFolders()...)
	if err != nil {
		return "", err
	}
	if word == auditLast && len(runs) == 0 {
		return "", noSuchRun(word, "no runs are logged here yet")
	}
	if word != auditLast {
		runs = without(runs, func(r auditRunInfo) bool { return !strings.HasPrefix(r.Run, word) })
	}
	switch len(runs) {
	case 0:
		return word, nil
	case 1:
		return runs[0].Run, nil
	}
	return "", usageError("give more of its digits; tai audit list shows the runs", "%d runs begin with %s", len(runs), quoteClip(word))
}

// firstRun gives the run that a log's first line names, "" where there is none to be read.
func firstRun(f *os.File) string {
	line, err := auditLines{r: bufio.NewReaderSize(io.NewSectionReader(f, 0, auditLineMax), auditLineMax)}.next()
	if err != nil {
		return ""
	}
	rec, err := parseAuditLine(line)
	if err != nil {
		return ""
	}
	return rec.Run
}

// checkLog verifies a log against the head that the vault has of its run, and gives the file, at its start, for further reading. It is nil
// where the log is gone. strict also holds the key that signed against its seed, for which the seal may have to be opened.
func (a *app) checkLog(ctx context.Context, word string, strict bool) (*os.File, auditFinding, error) {
	v, fault := a.vault(ctx)
	placed := func(run string) string {
		if fault != nil {
			return ""
		}
		h, err := v.auditHead(ctx, run)
		if err != nil {
			return ""
		}
		return h.Path
	}
	word, err := a.wholeRun(word, func() []auditHead {
		if fault != nil {
			return nil
		}
		heads, err := v.auditHeads(ctx)
		if err != nil {
			return nil
		}
		return heads
	})
	if err != nil {
		return nil, auditFinding{}, err
	}
	src, err := a.auditSource(word, placed)
	gone := errors.Is(err, fs.ErrNotExist)
	if err != nil && (!gone || src.run == "") {
		return nil, auditFinding{}, err
	}
	if src.run == "" {
		src.run = firstRun(src.File)
	}
	var h *auditHead
	var notice string
	if fault == nil && src.run != "" {
		h, notice, fault = recordedHead(ctx, v, src.run, strict)
	}
	was := forgery(fault)
	if gone {
		switch {
		case h != nil:
			return nil, goneAudit(h, auditByVault), nil
		case was != nil:
			return nil, auditFinding{auditReport: auditReport{Run: src.run}, Checked: auditByChain}.tampered(0, "the log is gone, and %v", was), nil
		}
		return nil, auditFinding{}, joinErrors(err, fault)
	}
	f, err := src.judge(h, auditByVault)
	if err != nil {
		return nil, f, joinErrors(err, src.Close())
	}
	switch {
	case was != nil && !f.Tampered:
		f = f.tampered(0, "%v", was)
	case was == nil && fault != nil:
		notice = "the head on record could not be checked: " + fault.Error()
	}
	if notice != "" {
		f.Notices = append(f.Notices, notice)
	}
	return src.File, f, nil
}

// verifyRun is tai audit verify for the tool of that name.
func (a *app) verifyRun(ctx context.Context, word string) (auditFinding, error) {
	file, f, err := a.checkLog(ctx, word, true)
	if file != nil {
		err = joinErrors(err, file.Close())
	}
	return f, err
}

// loggedRuns gives every run, the newest first: those with a log here, and those on record. Where the vault cannot be read, notice says what does
// not show.
func (a *app) loggedRuns(ctx context.Context) (runs []auditRunInfo, notice string, err error) {
	var heads []auditHead
	v, err := a.vault(ctx)
	if err == nil {
		heads, err = v.auditHeads(ctx) // before the logs are looked at: a head is never newer than its log
	}
	if err != nil {
		notice = "logs are checked by their chains alone, and those that are gone do not show: " + err.Error()
	}
	runs, _, err = listAudit(heads, math.MaxInt, a.auditFolders()...)
	return runs, notice, err
}

// checkedLog is checkLog for what has to read the log: one that is gone is an error.
func (c *invocation) checkedLog(ctx context.Context, word string, strict bool) (*os.File, auditFinding, error) {
	file, f, err := c.checkLog(ctx, word, strict)
	if err == nil && file == nil {
		err = &cliError{Exit: exitFailed, Message: f.Reason, Hint: "tai audit verify " + quoteWord(word) + " tells what is on record"}
	}
	return file, f, err
}

// forgery gives the plain sentence for a fault that means that someone changed the vault, nil for any other.
func forgery(fault error) error {
	for _, f := range []error{errHeadForged, errAuditKeyChanged} {
		if errors.Is(fault, f) {
			return f
		}
	}
	return nil
}

// recordedHead gives the head on record of a run, nil with a notice where there is none. A fault says that it could not be had or is not what tai
// wrote.
func recordedHead(ctx context.Context, v *vault, run string, strict bool) (h *auditHead, notice string, fault error) {
	found, err := v.auditHead(ctx, run)
	if errors.Is(err, errNotFound) {
		return nil, "no head of this run is on record here, so lines cut off its end would not show", nil
	}
	if err == nil && strict {
		err = v.checkAuditKey(ctx)
	}
	if forgery(err) != nil {
		return nil, "", err
	}
	if err != nil && len(found.Signature) > 0 {
		return &found, "the vault's seal could not be opened, so its public key was taken as it stands: " + err.Error(), nil
	}
	return &found, "", err
}

// judge verifies the log against a head of its run, nil for its chain alone, and puts the file back to its start.
func (s auditSource) judge(h *auditHead, by string) (auditFinding, error) {
	mark := int64(0)
	if h != nil {
		mark = h.Lines
	}
	rep, err := verifyAuditAt(s.File, mark)
	if _, broken := errors.AsType[*fs.PathError](err); broken {
		h = nil // what could not be read is no proof against anyone
	}
	if err != nil && !rep.Unreadable {
		return auditFinding{}, err
	}
	_, err = s.Seek(0, io.SeekStart)
	return judgeAudit(rep, s.run, h, by), err
}

func cmdAuditVerify(ctx context.Context, c *invocation) error {
	switch one := len(c.args) == 1; {
	case c.given("all") && (one || c.given("head")):
		return usageError("", "--all checks every log: it takes neither a run nor --head")
	case c.given("all"):
		return c.verifyAll(ctx)
	case !one:
		return usageError("tai audit list shows the runs, --all checks every log", "no run was named")
	}
	var f auditFinding
	var err error
	if c.given("head") {
		f, err = c.verifyExported(c.args[0], c.flag("head"))
	} else {
		var file *os.File
		if file, f, err = c.checkLog(ctx, c.args[0], true); file != nil {
			defer file.Close()
		}
	}
	if err != nil {
		return err
	}
	if c.given("ci") || c.json {
		err = writeJSONLine(c.stdout, f)
	} else {
		_, err = fmt.Fprint(c.stdout, auditVerdict(f))
	}
	if code := f.exitCode(); err == nil && code != exitDone {
		return errQuiet{code}
	}
	return err
}

// verifyExported checks a log against an exported head. It opens no vault.
func (c *invocation) verifyExported(word, name string) (auditFinding, error) {
	h, err := readHeadFile(absolute(name, c.out.Dir))
	if err != nil {
		return auditFinding{}, &cliError{Exit: exitUsage, Message: fmt.Sprintf("head file %s: %v", quoteClip(name), bareError(err)), Hint: "tai audit head RUN -o FILE writes one", err: err}
	}
	if word, err = c.wholeRun(word, nil); err != nil {
		return auditFinding{}, err
	}
	src, err := c.auditSource(word, nil)
	gone := errors.Is(err, fs.ErrNotExist) && src.run == h.Run
	if err != nil && !gone {
		return auditFinding{}, err
	}
	if !gone {
		defer src.Close()
		if src.run == "" {
			src.run = firstRun(src.File)
		}
	}
	if src.run != "" && src.run != h.Run {
		return auditFinding{}, usageError("give the head of the same run", "head file %s is of run %s, the log of run %s", quoteClip(name), h.Run, visibleLine(clip(src.run, 100)))
	}
	forged := h.verify()
	if gone && forged == nil {
		f := goneAudit(&h, auditByExported)
		f.Notices = append(f.Notices, "looked for in "+strings.Join(c.auditFolders(), " and ")+"; a log that is elsewhere is named by its file")
		return f, nil
	}
	f := auditFinding{auditReport: auditReport{Run: h.Run}, Checked: auditByChain}
	if !gone {
		if forged != nil {
			f, err = src.judge(nil, "")
		} else {
			f, err = src.judge(&h, auditByExported)
		}
	}
	if forged != nil && !f.Tampered {
		f = f.tampered(0, "%v", errHeadForged)
	}
	return f, err
}

func readHeadFile(name string) (auditHead, error) {
	f, err := openRegular(name)
	if err != nil {
		return auditHead{}, err
	}
	defer f.Close() // only read
	b, err := io.ReadAll(io.LimitReader(f, auditHeadMax+1))
	if err != nil {
		return auditHead{}, err
	}
	return readAuditHead(b)
}

// auditVerdict says a finding in lines: the verdict, what the log was checked against, and what else is to be known.
func auditVerdict(f auditFinding) string {
	var b textBuilder
	switch {
	case f.Tampered && f.Bad > 0:
		fmt.Fprintf(&b, "tampered with: line %d: %s\n", f.Bad, visibleLine(f.Reason))
	case f.Tampered:
		fmt.Fprintf(&b, "tampered with: %s\n", visibleLine(f.Reason))
	case f.Unreadable:
		fmt.Fprintf(&b, "unreadable: %s\n", visibleLine(f.Reason))
	default:
		fmt.Fprintf(&b, "good: %d lines of %s\n", f.Lines, visibleLine(f.Run))
	}
	switch f.Checked {
	case auditByChain:
		b.WriteString("checked against: its chain alone\n")
	case auditByVault:
		fmt.Fprintf(&b, "checked against: the vault's head of %d lines, key %s\n", f.Recorded, f.Key)
	default:
		fmt.Fprintf(&b, "checked against: an exported head of %d lines, key %s\n", f.Recorded, f.Key)
	}
	if f.Incomplete && !f.Tampered {
		b.WriteString("notice: an incomplete last line, as a crash leaves it\n")
	}
	for _, n := range f.Notices {
		fmt.Fprintf(&b, "notice: %s\n", visibleLine(n))
	}
	return b.String()
}

func cmdAuditShow(ctx context.Context, c *invocation) error {
	keep, err := c.eventFilter()
	if err != nil {
		return err
	}
	file, f, err := c.checkedLog(ctx, c.args[0], false)
	if err != nil {
		return err
	}
	defer file.Close() // only read
	if f.Tampered || f.Unreadable {
		fmt.Fprint(c.stderr, "warning: this log cannot be trusted: "+auditVerdict(f))
	}
	events, shown, read := []json.RawMessage{}, 0, 0
	err = readAudit(file, func(r auditRecord) bool {
		if read++; !keep(r) {
			return true
		}
		if shown++; c.json {
			events = append(events, r.appendLine(nil))
		} else {
			fmt.Fprintln(c.stdout, auditLine(r))
		}
		return true
	})
	if err != nil && read == 0 {
		return &cliError{Exit: exitUsage, Message: fmt.Sprintf("%s: nothing of it can be shown: %s", quoteClip(c.args[0]), visibleLine(err.Error())), err: err}
	}
	if err != nil {
		fmt.Fprintf(c.stderr, "warning: what follows cannot be shown: %s\n", visibleLine(err.Error()))
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"events": events, "tampered": f.Tampered})
	}
	if shown == 0 && len(c.flags["call"])+len(c.flags["event"])+len(c.flags["since"]) > 0 {
		fmt.Fprintln(c.stderr, "tai: no line of the log is what the flags ask for")
	}
	return nil
}

// eventFilter reads --call, --event and --since.
func (c *invocation) eventFilter() (func(auditRecord) bool, error) {
	var since string
	if c.given("since") {
		at, err := time.Parse(time.RFC3339, c.flag("since"))
		if ago, isAgo := time.ParseDuration(c.flag("since")); isAgo == nil {
			at, err = c.out.Now().Add(-ago.Abs()), nil
		}
		if err != nil {
			return nil, usageError("--since 2026-03-01T09:00:00Z, or --since 10m", "%s is no time", quoteClip(c.flag("since")))
		}
		since = at.UTC().Format(auditTimeForm)
	}
	events := map[string]bool{}
	for _, e := range c.flags["event"] {
		events[e] = true
	}
	caused := map[string]bool{c.flag("call"): true} // calls that it caused, in turn
	return func(r auditRecord) bool {
		if r.Call != "" && caused[r.Parent] && r.Parent != "" {
			caused[r.Call] = true
		}
		return (since == "" || r.Time >= since) && (len(events) == 0 || events[r.Event]) && (!c.given("call") || caused[r.Call])
	}, nil
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

// cmdAuditHead gives out the head on record, brought up to date first from a log that verifies against it. It vouches for nothing else.
func cmdAuditHead(ctx context.Context, c *invocation) error {
	word := c.args[0]
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	file, f, err := c.checkLog(ctx, word, true)
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
	}
	switch {
	case f.Tampered:
		return &cliError{Exit: exitFailed, Message: "no head is given out of a log that was tampered with: " + f.Reason, Hint: "tai audit verify " + quoteWord(word) + " tells more"}
	case f.Unreadable:
		return &cliError{Exit: exitUsage, Message: "run log " + quoteClip(word) + " cannot be read: " + f.Reason}
	case f.Checked != auditByVault || len(f.Notices) > 0:
		return &cliError{Exit: exitFailed, Message: fmt.Sprintf("no head of run %s can be given out: %s", visibleLine(f.Run), strings.Join(f.Notices, "; ")), Hint: "only what was on record while it ran can be vouched for"}
	}
	h, err := c.renewedHead(ctx, v, file.Name(), f)
	if err != nil {
		return err
	}
	doc, err := h.export()
	if err != nil {
		return err
	}
	if !c.given("o") {
		_, err = c.stdout.Write(doc)
		return err
	}
	if err := writeNewFile(absolute(c.flag("o"), c.out.Dir), doc); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return usageError("choose another name, or remove it", "%s is there already and is left as it is", quoteClip(c.flag("o")))
		}
		return errorf("write the head: %w", err)
	}
	if c.json {
		_, err = c.stdout.Write(doc)
		return err
	}
	_, err = fmt.Fprintf(c.stdout, "head of run %s: %d lines, key %s, in %s\nof the log %s\n", h.Run, h.Lines, fingerprint(h.Key), visibleLine(c.flag("o")), visibleLine(file.Name()))
	return err
}

// renewedHead brings the head on record up to what the log, verified as f says, has beyond it. Those lines are synced before, as a run does.
func (c *invocation) renewedHead(ctx context.Context, v *vault, name string, f auditFinding) (auditHead, error) {
	h, err := v.auditHead(ctx, f.Run)
	if err != nil || h.Lines >= int64(f.Lines) {
		return h, err
	}
	if err := syncPath(name); err != nil {
		return h, errorf("sync the log before its head is signed: %w", err)
	}
	h.Lines, h.Hash, h.Updated = int64(f.Lines), f.Head, c.out.Now()
	if h, err = v.renewAuditHead(ctx, h); err != nil {
		return h, err
	}
	return h, h.verify()
}

// writeNewFile makes a file that only its owner can read, never in the place of another.
func writeNewFile(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return joinErrors(err, f.Close(), os.Remove(name))
	}
	return joinErrors(f.Sync(), f.Close())
}
