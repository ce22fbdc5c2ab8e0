// This file adds up what was used: tokens and time of completions by model or session, calls by server or tool. It holds usage_report, whose sums
// tai usage prints too. No price is known to tai, so none is told.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

const usageRowsMax = 100 // rows that one report shows; the total is of all

// What a report is by.
const (
	usageByModel   = "model"
	usageBySession = "session"
	usageByServer  = "server"
	usageByTool    = "tool"
)

// usageNative is the row of tai's own tools in a report by server.
const usageNative = "(native)"

// usageNoPrice is said in the place of a cost.
const usageNoPrice = "price not known: tai has no list of prices, so no cost is told"

// usageTokens are tokens as the providers reported them. Input counts the cached ones too.
type usageTokens struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
	Cached int64 `json:"cached"`
}

// usageCalls says how calls ended; those that ran well are the rest.
type usageCalls struct {
	Failed  int   `json:"failed"`
	Refused int   `json:"refused"`
	Open    int   `json:"open"`
	Bytes   int64 `json:"bytes"` // of results
}

// usageLine is one row: completions with their tokens, or calls with their ends.
type usageLine struct {
	Name       string  `json:"name"`
	Title      string  `json:"title,omitempty"`
	Calls      int     `json:"calls"`
	DurationMS float64 `json:"duration_ms"`
	*usageTokens
	*usageCalls
}

// usageReport is what was used. LeftOut counts the rows over usageRowsMax; Total is of all of them.
type usageReport struct {
	By      string      `json:"by"`
	Since   string      `json:"since,omitempty"`
	Rows    []usageLine `json:"rows"`
	Total   usageLine   `json:"total"`
	LeftOut int         `json:"left_out"`
	Notes   []string    `json:"notes"`
}

// usageSource is where the figures come from.
type usageSource struct {
	Vault func(context.Context) (*vault, error)
	Dirs  []string // of run logs
	Now   func() time.Time
}

// usageTools gives usage_report.
func usageTools(s usageSource) []tool {
	const line = `"name":{"type":"string"},"title":{"type":"string","description":"Of a session."},"calls":{"type":"integer","description":"Completions, or calls of tools."},"duration_ms":{"type":"number"},
"input":{"type":"integer","description":"Tokens, the cached ones too."},"output":{"type":"integer"},"cached":{"type":"integer"},
"failed":{"type":"integer"},"refused":{"type":"integer"},"open":{"type":"integer","description":"Without an end."},"bytes":{"type":"integer","description":"Of results."}`
	return []tool{{
		Name: "usage_report", Family: "models",
		Description: "Add up what was used: tokens (input, output and cached tokens) and time by model or session, calls, failures and time by server or tool. No prices are known, so no cost is told.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
"by":{"type":"string","enum":["session","model","server","tool"],"description":"What to add up by (default model)."},
"since":{"type":"string","minLength":1,"maxLength":40,"description":"Only what was used within this time (30m, 2h, 7d, 1w) or since this one (2026-01-31 or RFC 3339)."}}}`),
		Output: json.RawMessage(`{"type":"object","properties":{
"by":{"type":"string"},"since":{"type":"string"},
"rows":{"type":"array","description":"What used most first.","items":{"type":"object","properties":{` + line + `}}},
"total":{"type":"object","description":"Of all rows, shown or not.","properties":{` + line + `}},
"left_out":{"type":"integer","description":"Rows that are not shown."},"notes":{"type":"array","items":{"type":"string"}},` + toolRecordSchema + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		run: func(ctx context.Context, c toolCall) (toolResult, error) {
			var args struct{ By, Since string }
			if err := json.Unmarshal(c.Args, &args); err != nil {
				return toolResult{}, errorf("read arguments: %w", err)
			}
			r, err := s.report(ctx, args.By, args.Since)
			if err != nil {
				return toolResult{}, err
			}
			return toolResult{Text: r.text(), Structured: procJSON(r)}, nil
		},
	}}
}

// report adds up by one of the four, "" for model, what was used since a time or age, "" for all.
func (s usageSource) report(ctx context.Context, by, since string) (r usageReport, err error) {
	at, err := sinceTime(since, s.Now())
	if err != nil {
		return r, errorf("since %w", err)
	}
	r = usageReport{By: cmp.Or(by, usageByModel), Rows: []usageLine{}, Notes: []string{}}
	if !at.IsZero() {
		r.Since = at.UTC().Format(time.RFC3339)
	}
	switch r.By {
	case usageByModel, usageBySession:
		err = s.addTokens(ctx, &r, at)
	case usageByServer, usageByTool:
		err = s.addCalls(ctx, &r, at)
	default:
		err = errorf("by %s: it is model, session, server or tool", quoteClip(by))
	}
	if len(r.Rows) > usageRowsMax {
		r.Rows, r.LeftOut = r.Rows[:usageRowsMax], len(r.Rows)-usageRowsMax
	}
	return r, err
}

// addTokens takes the sums of the vault.
func (s usageSource) addTokens(ctx context.Context, r *usageReport, since time.Time) error {
	v, err := s.Vault(ctx)
	if err != nil {
		return err
	}
	sums, err := v.usageSums(ctx, r.By == usageBySession, since)
	if err != nil {
		return err
	}
	r.Total = usageLine{Name: "total", usageTokens: &usageTokens{}}
	for _, u := range sums {
		l := usageLine{Name: u.Name, Title: u.Title, Calls: u.Calls, DurationMS: float64(u.Duration.Milliseconds()), usageTokens: &usageTokens{u.Input, u.Output, u.Cached}}
		r.Rows = append(r.Rows, l)
		r.Total.Calls += l.Calls
		r.Total.DurationMS += l.DurationMS
		r.Total.Input += l.Input
		r.Total.Output += l.Output
		r.Total.Cached += l.Cached
	}
	r.Notes = append(r.Notes, usageNoPrice)
	return nil
}

// addCalls adds up what the run logs tell.
func (s usageSource) addCalls(ctx context.Context, r *usageReport, since time.Time) error {
	lines := map[string]*usageLine{}
	r.Total = usageLine{Name: "total", usageCalls: &usageCalls{}}
	seen, err := auditScan{Dirs: s.Dirs, Since: since, Each: func(c auditCall) {
		name := usageName(c, r.By)
		if name == "" {
			return
		}
		if lines[name] == nil {
			lines[name] = &usageLine{Name: name, usageCalls: &usageCalls{}}
		}
		lines[name].count(c)
		r.Total.count(c)
	}}.run(ctx)
	if err != nil {
		return err
	}
	for _, l := range lines {
		l.DurationMS = math.Round(l.DurationMS*1000) / 1000
		r.Rows = append(r.Rows, *l)
	}
	r.Total.DurationMS = math.Round(r.Total.DurationMS*1000) / 1000
	sortBy(r.Rows, func(a, b usageLine) int { return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name)) })
	if rest := seen.rest(); rest != "" {
		r.Notes = append(r.Notes, rest)
	}
	return nil
}

// usageName is the row that a call counts in, "" for what is no call of a tool.
func usageName(c auditCall, by string) string {
	switch {
	case c.Kind == auditKindMCP && by == usageByServer:
		return serverOf(c)
	case c.Kind == auditKindMCP:
		return bridgedSubject(serverOf(c), toolOf(c))
	case c.Kind == toolKind && by == usageByServer:
		return usageNative
	case c.Kind == toolKind:
		return c.Subject
	}
	return ""
}

//go:noinline for size: it is called in many places
func (l *usageLine) count(c auditCall) {
	l.Calls++
	l.DurationMS += c.DurationMS
	switch outcomeOf(c) {
	case auditOpen:
		l.Open++
	case auditError:
		l.Failed++
	case auditDenied:
		l.Refused++
		return // its size is none of a result
	}
	l.Bytes += c.Size
}

// text is the report as a model and a person read it.
func (r usageReport) text() string {
	var b textBuilder
	if len(r.Rows) == 0 {
		b.WriteString("nothing was used")
		if r.Since != "" {
			b.WriteString(" since " + r.Since)
		}
		b.WriteByte('\n')
	} else {
		for _, l := range append(slices.Clone(r.Rows), r.Total) {
			b.WriteString(l.text())
		}
	}
	if r.LeftOut > 0 {
		fmt.Fprintf(&b, "%s more are in the total and not shown\n", plural(r.LeftOut, "row"))
	}
	for _, n := range r.Notes {
		b.WriteString(n + "\n")
	}
	return b.String()
}

func (l usageLine) text() string {
	s := fmt.Sprintf("%s  %s  %g s", cmp.Or(l.Name, "(none)"), plural(l.Calls, "call"), math.Round(l.DurationMS)/1000)
	if l.usageTokens != nil {
		s += fmt.Sprintf("  input %d (cached %d)  output %d tokens", l.Input, l.Cached, l.Output)
	}
	if l.usageCalls != nil {
		s += fmt.Sprintf("  %d failed  %d refused  %d without an end  %d bytes", l.Failed, l.Refused, l.Open, l.Bytes)
	}
	if l.Title != "" {
		s += "  " + l.Title
	}
	return visibleLine(s) + "\n"
}
