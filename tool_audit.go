// This file holds audit_query and audit_verify: what was called, by whom and how it ended, and whether the logs that say so can be trusted. Both
// only read. What a log says was redacted when it was written, and is once more on the way out.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strings"
	"time"
)

const (
	auditQueryLimit = 20               // calls that audit_query gives unless the call says otherwise
	auditQueryMax   = 200              // the most that it may say
	auditQueryArgs  = 200              // bytes of arguments shown in a line of its text
	auditVerifyTime = 30 * time.Second // for checking all logs
	auditVerifyShow = 100              // logs with something to tell that one answer shows
)

// Directions of a call.
const (
	directionIn  = "in"  // a client of tai's server made it
	directionOut = "out" // a tool of another server
	directionOwn = "own" // tai's own: of the person, the model, a command
)

// auditOpen is the outcome of a call that has not ended: it runs, or tai was killed.
const auditOpen = "open"

// auditVerifier checks logs as tai audit verify does. A word is a run, the beginning of one, the word last, or an absolute path.
type auditVerifier interface {
	verifyRun(ctx context.Context, word string) (auditFinding, error)
	loggedRuns(ctx context.Context) (runs []auditRunInfo, notice string, err error)
	verifyListed(ctx context.Context, r auditRunInfo) auditFinding
}

// auditTools gives the two tools over the logs in some folders.
func auditTools(w workspace, dirs []string, now func() time.Time, verifier auditVerifier) []tool {
	reads := toolHints{ReadOnly: true, Idempotent: true}
	return []tool{{
		Name: "audit_query", Family: "audit",
		Description: "Look up past calls in the run logs of this home and workspace, newest first: when, which tool of which server, by whom, with which arguments, how it ended and by which rule it was refused.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"properties":{
"since":{"type":"string","minLength":1,"maxLength":40,"description":"Only calls within this time (30m, 2h, 7d, 1w) or since this one (2026-01-31 or RFC 3339)."},
"direction":{"type":"string","enum":["in","out","own"],"description":"in: calls of clients that tai serves; out: calls of tools of other servers; own: all others."},
"server":{"type":"string","minLength":1,"maxLength":128,"description":"Only what was about this MCP server."},
"tool":{"type":"string","minLength":1,"maxLength":512,"description":"Only calls of this tool: a native name, a server's own name for its tool, or mcp:SERVER/TOOL."},
"outcome":{"type":"string","enum":["ok","error","denied","open"],"description":"How they ended; open: not yet, or tai was killed."},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"Calls to show at most (default %d)."}}}`, auditQueryMax, auditQueryLimit)),
		Output: json.RawMessage(`{"type":"object","properties":{
"calls":{"type":"array","description":"The calls that fit, newest first.","items":{"type":"object","properties":{
"time":{"type":"string"},"run":{"type":"string"},"call":{"type":"string"},"parent":{"type":"string","description":"The call or session/turn that caused it."},"direction":{"type":"string"},"kind":{"type":"string"},
"subject":{"type":"string","description":"Tool, server, or server/tool."},"outcome":{"type":"string"},"rule":{"type":"string"},"duration_ms":{"type":"number"},"asked":{"type":"integer","description":"Bytes of the arguments."},"bytes":{"type":"integer","description":"Of the result."},
"digest":{"type":"string"},"arguments":{"description":"As the log has them; missing where they were too long."},"said":{"description":"What the log says of its end."}}}},
"left_out":{"type":"integer","description":"Calls that were seen, fit and are not shown."},
"more":{"type":"boolean","description":"Older ones may fit that were not looked at."},
"not_read":{"type":"integer","description":"Bytes of logs that were not read."},` + toolRecordSchema + `}}`),
		Hints: reads, run: func(ctx context.Context, c toolCall) (toolResult, error) { return auditQuery(ctx, dirs, now, c) },
	}, {
		Name: "audit_verify", Family: "audit",
		Description: "Check that run logs are what tai wrote: their chain, and the signed head that the vault has of each. Names the first bad line. Without log it checks all of this home and workspace.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
"log":{"type":"string","minLength":1,"maxLength":4096,"description":"A run, the beginning of its name, the word last, or the path of a log (default: all logs)."}}}`),
		Output: json.RawMessage(`{"type":"object","properties":{
"checked":{"type":"integer","description":"Logs."},"good":{"type":"integer"},"tampered":{"type":"integer"},"unreadable":{"type":"integer"},
"logs":{"type":"array","description":"The one asked for, else those that are not good or have a notice.","items":{"type":"object","properties":{
"run":{"type":"string"},"path":{"type":"string"},"lines":{"type":"integer"},"tampered":{"type":"boolean"},"unreadable":{"type":"boolean"},"bad":{"type":"integer","description":"The first bad line, from 1; missing where it is at none."},
"reason":{"type":"string"},"checked":{"type":"string","description":"Against what: chain or vault head."},"completed":{"type":"boolean"},"notices":{"type":"array","items":{"type":"string"}}}}},
"left_out":{"type":"integer","description":"Logs that were not checked, as the time was up."},
"notice":{"type":"string","description":"What could not be checked of all logs; missing where all could."},` + toolRecordSchema + `}}`),
		Hints: reads,
		judge: func(c toolCall) policyRequest { return judgeLog(w, c) },
		run:   func(ctx context.Context, c toolCall) (toolResult, error) { return auditVerify(ctx, w, verifier, c) },
	}}
}

// directionOf says which way a call went.
func directionOf(c auditCall) string {
	switch {
	case c.Kind == auditKindMCP:
		return directionOut
	case c.Kind == toolKind && c.Parent == "" && (c.Origin == originHTTP || c.Origin == originMCP):
		return directionIn
	}
	return directionOwn
}

// serverOf and toolOf take a subject apart: server/tool of a bridged call, else the one or the other.
//
//go:noinline for size: it is called in many places
func serverOf(c auditCall) string {
	switch {
	case c.Kind == auditKindMCP:
		return c.Subject[:max(strings.LastIndexByte(c.Subject, '/'), 0)]
	case strings.HasPrefix(c.Kind, "mcp-"):
		return c.Subject
	}
	return ""
}

//go:noinline for size: it is called in many places
func toolOf(c auditCall) string {
	switch c.Kind {
	case auditKindMCP:
		return c.Subject[strings.LastIndexByte(c.Subject, '/')+1:]
	case toolKind:
		return c.Subject
	}
	return ""
}

// outcomeOf gives ok, error, denied or open; a registration's own word is an ok.
//
//go:noinline for size: it is called in many places
func outcomeOf(c auditCall) string {
	switch {
	case !c.ended():
		return auditOpen
	case c.Outcome == auditError || c.Outcome == auditDenied:
		return c.Outcome
	}
	return auditOK
}

// auditFilter is what audit_query is asked for.
type auditFilter struct {
	Since, Direction, Server, Tool, Outcome string
	Limit                                   int
}

func (f auditFilter) fits(c auditCall) bool {
	switch {
	case f.Direction != "" && f.Direction != directionOf(c):
		return false
	case f.Server != "" && f.Server != serverOf(c):
		return false
	case f.Outcome != "" && f.Outcome != outcomeOf(c):
		return false
	case f.Tool == "":
		return true
	}
	if server, name, ok := subjectTool(f.Tool); ok {
		return c.Kind == auditKindMCP && serverOf(c) == server && toolOf(c) == name
	}
	return toolOf(c) == f.Tool
}

// auditRow is one call in a result.
type auditRow struct {
	Time      string          `json:"time"`
	Run       string          `json:"run"`
	Call      string          `json:"call"`
	Parent    string          `json:"parent,omitempty"`
	Direction string          `json:"direction"`
	Kind      string          `json:"kind"`
	Subject   string          `json:"subject"`
	Outcome   string          `json:"outcome"`
	Rule      string          `json:"rule,omitempty"`
	Duration  float64         `json:"duration_ms"`
	Asked     int64           `json:"asked,omitempty"`
	Bytes     int64           `json:"bytes,omitempty"`
	Digest    string          `json:"digest,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Said      json.RawMessage `json:"said,omitempty"`
}

func auditRowOf(c auditCall) auditRow {
	outcome := outcomeOf(c)
	if outcome == auditOK {
		outcome = cmp.Or(c.Outcome, auditOK)
	}
	return auditRow{c.Time.UTC().Format(time.RFC3339Nano), c.Run, c.Call, c.Parent, directionOf(c), c.Kind, c.Subject, outcome, c.Rule, math.Round(c.DurationMS*1000) / 1000, c.Asked, c.Size, c.Digest, c.Data, c.Said}
}

func (r auditRow) line() string {
	b := fmt.Sprintf("%s  %s %s  %s  %s %s  %s", r.Time, r.Run, r.Call, r.Direction, r.Kind, r.Subject, r.Outcome)
	if r.Rule != "" {
		b += " by " + r.Rule
	}
	if r.Outcome != auditOpen {
		b += fmt.Sprintf("  %g ms  %d bytes", r.Duration, r.Bytes)
	}
	if r.Parent != "" {
		b += "  of " + r.Parent
	}
	for _, data := range []json.RawMessage{r.Arguments, r.Said} {
		if len(data) > 0 {
			b += "  " + clip(string(data), auditQueryArgs)
		}
	}
	return visibleLine(b) + "\n"
}

func auditQuery(ctx context.Context, dirs []string, now func() time.Time, c toolCall) (toolResult, error) {
	f := auditFilter{Limit: auditQueryLimit}
	if err := json.Unmarshal(c.Args, &f); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	since, err := sinceTime(f.Since, now())
	if err != nil {
		return toolResult{}, errorf("since %w", err)
	}
	var found []auditCall // newest first, at most f.Limit
	fit, stopped := 0, false
	seen, err := auditScan{Dirs: dirs, Since: since, Each: func(a auditCall) {
		if !f.fits(a) || a.Call == c.ID && a.Subject == c.Name && !a.ended() { // this very call
			return
		}
		fit++
		at := sort.Search(len(found), func(i int) bool {
			return cmp.Or(a.Time.Compare(found[i].Time), cmp.Compare(a.Seq, found[i].Seq)) >= 0
		})
		if at < f.Limit {
			found = append(found, a)
			copy(found[at+1:], found[at:])
			found[at] = a
			found = found[:min(len(found), f.Limit)]
		}
	}, Done: func(latest time.Time) bool {
		stopped = len(found) == f.Limit && latest.Before(found[f.Limit-1].Time)
		return stopped
	}}.run(ctx)
	if err != nil {
		return toolResult{}, err
	}
	var text textBuilder
	rows := []auditRow{}
	for _, a := range found {
		r := auditRowOf(a)
		rows = append(rows, r)
		text.WriteString(r.line())
	}
	switch left := fit - len(found); {
	case fit == 0:
		fmt.Fprintf(&text, "no call in %s fits\n", plural(seen.Logs, "log"))
	case left > 0:
		fmt.Fprintf(&text, "%d more fit that were seen; limit shows up to %d, since and the others narrow the search\n", left, auditQueryMax)
	}
	if stopped {
		text.WriteString("older logs were not looked at, as the limit was reached\n")
	}
	if rest := seen.rest(); rest != "" {
		text.WriteString(rest + "\n")
	}
	return toolResult{Text: text.String(), Structured: procJSON(struct {
		Calls   []auditRow `json:"calls"`
		LeftOut int        `json:"left_out"`
		More    bool       `json:"more"`
		NotRead int64      `json:"not_read"`
	}{rows, fit - len(found), stopped || seen.LeftBytes > 0, seen.LeftBytes})}, nil
}

// judgeLog takes what names no run for a path.
func judgeLog(w workspace, c toolCall) policyRequest {
	var args struct{ Log string }
	if json.Unmarshal(c.Args, &args) != nil || args.Log == "" || namesRun(args.Log) {
		return policyRequest{}
	}
	return judgePlace(w, args.Log, policyRequest{})
}

// namesRun reports a run, the beginning of one, or the word for the newest.
func namesRun(word string) bool { return word == auditLast || isAuditRun(word) || isShortRun(word) }

// auditChecked is what audit_verify found of one log.
type auditChecked struct {
	Path string `json:"path,omitempty"`
	auditFinding
}

func (c auditChecked) line() string {
	name := cmp.Or(c.Run, c.Path)
	state := fmt.Sprintf("good, %d lines, checked against its %s", c.Lines, c.Checked)
	switch {
	case c.Tampered && c.Bad > 0:
		state = fmt.Sprintf("tampered with at line %d: %s", c.Bad, c.Reason)
	case c.Tampered:
		state = "tampered with: " + c.Reason
	case c.Unreadable:
		state = "unreadable: " + c.Reason
	}
	line := visibleLine(name+": "+state) + "\n"
	for _, n := range c.Notices {
		line += "  notice: " + visibleLine(n) + "\n"
	}
	return line
}

// auditVerdicts is what audit_verify gives.
type auditVerdicts struct {
	Checked    int            `json:"checked"`
	Good       int            `json:"good"`
	Tampered   int            `json:"tampered"`
	Unreadable int            `json:"unreadable"`
	Logs       []auditChecked `json:"logs"`
	LeftOut    int            `json:"left_out"`
	Notice     string         `json:"notice,omitempty"`
	hidden     int            // logs with something to tell that are not in Logs
}

// add counts a log; tell shows it though it is good.
//
//go:noinline for size: it is called in many places
func (v *auditVerdicts) add(c auditChecked, tell bool) {
	v.Checked++
	switch {
	case c.Tampered:
		v.Tampered++
	case c.Unreadable:
		v.Unreadable++
	default:
		v.Good++
		tell = tell || len(c.Notices) > 0
		if !tell {
			return
		}
	}
	if len(v.Logs) == auditVerifyShow {
		v.hidden++
		return
	}
	v.Logs = append(v.Logs, c)
}

func auditVerify(ctx context.Context, w workspace, verifier auditVerifier, c toolCall) (toolResult, error) {
	var args struct{ Log string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	out := auditVerdicts{Logs: []auditChecked{}}
	if args.Log != "" {
		word := args.Log
		if !namesRun(word) {
			p, err := w.locate(word)
			if err == nil {
				err = p.check(c.outside)
			}
			if err != nil {
				return toolResult{}, errorf("log: %w", err)
			}
			word = p.Abs
		}
		f, err := verifier.verifyRun(ctx, word)
		if err != nil {
			return toolResult{Hint: "audit_query shows runs by their calls, tai audit list all of them"}, errorf("log: %w", err)
		}
		out.add(auditChecked{auditFinding: f}, true)
	} else if err := out.addAll(ctx, verifier); err != nil {
		return toolResult{}, err
	}
	var text textBuilder
	if out.Notice != "" {
		text.WriteString("notice: " + visibleLine(out.Notice) + "\n")
	}
	for _, l := range out.Logs {
		text.WriteString(l.line())
	}
	if out.hidden > 0 {
		fmt.Fprintf(&text, "%s more have something to tell\n", plural(out.hidden, "log"))
	}
	if args.Log == "" {
		fmt.Fprintf(&text, "%s checked: %d good, %d tampered with, %d unreadable\n", plural(out.Checked, "log"), out.Good, out.Tampered, out.Unreadable)
	}
	if out.LeftOut > 0 {
		fmt.Fprintf(&text, "%s not checked, as the time was up; name them one by one\n", plural(out.LeftOut, "log"))
	}
	return toolResult{Text: text.String(), Structured: procJSON(out)}, nil
}

// addAll checks every log, the newest run first.
func (v *auditVerdicts) addAll(ctx context.Context, verifier auditVerifier) error {
	runs, notice, err := verifier.loggedRuns(ctx)
	if err != nil {
		return err
	}
	v.Notice = notice
	inner, cancel := context.WithTimeout(ctx, auditVerifyTime)
	defer cancel()
	for _, r := range runs {
		if inner.Err() != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			v.LeftOut++
			continue
		}
		f := verifier.verifyListed(inner, r)
		if inner.Err() != nil {
			v.LeftOut++ // it may have been cut short
			continue
		}
		v.add(auditChecked{Path: r.Path, auditFinding: f}, false)
	}
	return nil
}
