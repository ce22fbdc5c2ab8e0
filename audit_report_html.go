// This file writes the report of a run log as one HTML page that stands alone: no script, nothing loaded, its style inside and named by
// hash in its policy. Every text of the log is made visible and escaped at one door (reportText). It reads no file.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const (
	reportDataBudget = 1 << 20 // bytes of arguments and errors on one page, as written; of what is beyond only the size is told
	reportGroupsMax  = 100     // rows of a table of sums
	reportNoticesMax = 20
	reportToolsMax   = 6 // tools that are named beside a rule
)

// reportPage is what a page is made of. Name is how the log was asked for.
type reportPage struct {
	run     *reportRun
	finding auditFinding
	name    string
	made    time.Time
}

// reportWriter gathers the page. Its methods escape what they are given; raw is for what this file says itself.
type reportWriter struct {
	b      []byte
	budget int // bytes of data that may still be shown
}

//go:noinline for size: it is called in many places
func (w *reportWriter) raw(s string) { w.b = append(w.b, s...) }

// printf escapes every string among args.
func (w *reportWriter) printf(format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = reportText(s)
		}
	}
	w.b = fmt.Appendf(w.b, format, args...)
}

// html writes the page.
func (p *reportPage) html() []byte {
	w := &reportWriter{budget: reportDataBudget}
	sum := sha256.Sum256([]byte(reportStyle))
	w.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	w.raw(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-` + base64.StdEncoding.EncodeToString(sum[:]) + `'; img-src data:; base-uri 'none'; form-action 'none'">` + "\n")
	w.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n")
	w.printf("<title>Run %s</title>\n<style>", p.title())
	w.raw(reportStyle + "</style>\n</head>\n<body>\n<main>\n")
	p.head(w)
	p.banner(w)
	p.sums(w)
	p.timeLine(w)
	p.groups(w)
	p.troubles(w)
	p.calls(w)
	p.facts(w)
	w.printf("</main>\n<footer>Made by tai %s at %s.</footer>\n</body>\n</html>\n", version, p.made.UTC().Format(time.RFC3339))
	return w.b
}

func (p *reportPage) title() string {
	switch {
	case p.run.run != "":
		return p.run.run
	case p.finding.Run != "":
		return p.finding.Run
	}
	return p.name
}

func (p *reportPage) origin() string {
	origin, _, _ := strings.Cut(p.title(), "-")
	return origin
}

func (p *reportPage) head(w *reportWriter) {
	w.printf("<header>\n<p class=\"eyebrow\">tai run log</p>\n<h1>%s</h1>\n<p class=\"when\">", p.title())
	if !p.run.started.IsZero() {
		w.printf("%s <span class=\"quiet\">for</span> %s", p.run.started.Format("2 January 2006, 15:04:05 UTC"), reportSpan(float64(p.run.ended)/1000))
	} else {
		w.raw("no line with a time")
	}
	class, says := "good", "chain verified"
	switch {
	case p.finding.Tampered:
		class, says = "bad", "tampered with"
	case p.finding.Unreadable:
		class, says = "bad", "unreadable"
	case p.finding.Incomplete:
		class, says = "warn", "incomplete last line"
	case !p.finding.Completed:
		class, says = "warn", "verified, run not ended"
	case p.finding.Checked != auditByChain:
		says = "chain and head verified"
	}
	w.printf("</p>\n<p><span class=\"badge "+class+"\">%s</span></p>\n</header>\n", says)
}

// banner says at the top what keeps the page from being taken at its word.
func (p *reportPage) banner(w *reportWriter) {
	switch f := p.finding; {
	case f.Tampered && f.Bad > 0:
		w.printf("<section class=\"banner bad\" role=\"alert\"><h2>This log was tampered with</h2><p>Line %d: %s. What stands there and after it is no proof of anything, though it is shown below.</p></section>\n", f.Bad, f.Reason)
	case f.Tampered:
		w.printf("<section class=\"banner bad\" role=\"alert\"><h2>This log was tampered with</h2><p>%s.</p></section>\n", f.Reason)
	case f.Unreadable:
		w.printf("<section class=\"banner bad\" role=\"alert\"><h2>This log cannot be read</h2><p>%s.</p></section>\n", f.Reason)
	case f.Incomplete:
		w.raw("<section class=\"banner warn\"><h2>The last line is incomplete</h2><p>That is what a crash leaves. The lines before it hold.</p></section>\n")
	}
	if p.run.broken != "" {
		w.printf("<section class=\"banner warn\"><h2>The page ends before the log does</h2><p>%s. What follows could not be read.</p></section>\n", p.run.broken)
	}
	if p.run.full {
		w.printf("<section class=\"banner warn\"><h2>The page ends before the log does</h2><p>The log has more than %d calls; the sums and the time line are of the first ones.</p></section>\n", reportCallsMax)
	}
}

func (p *reportPage) sums(w *reportWriter) {
	all := p.run.whole()
	w.raw("<section aria-label=\"Sums\">\n<dl class=\"sums\">\n")
	put := func(class, name, value string) {
		w.printf("<div class=\""+class+"\"><dt>%s</dt><dd>%s</dd></div>\n", name, value)
	}
	class := func(s reportState, name string) string {
		if all.states[s] == 0 {
			return "none"
		}
		return name
	}
	put("", "calls", reportCount(all.calls))
	put(class(reportFailed, "is-failed"), "failed", reportCount(all.states[reportFailed]))
	put(class(reportRefused, "is-refused"), "refused", reportCount(all.states[reportRefused]))
	put(class(reportOpen, "is-open"), "not ended", reportCount(all.states[reportOpen]))
	put("", "time in tools", reportSpan(all.total))
	put("", "bytes sent", reportBytes(all.sent))
	put("", "bytes received", reportBytes(all.received))
	w.raw("</dl>\n</section>\n")
}

func (p *reportPage) timeLine(w *reportWriter) {
	w.raw("<section>\n<h2>Time line</h2>\n")
	if len(p.run.calls) == 0 {
		w.raw("<p class=\"quiet\">No tool was called in this run.</p>\n</section>\n")
		return
	}
	w.raw("<p class=\"legend\">")
	states := p.run.whole().states
	for s := range reportStates {
		if s == reportOK || states[s] > 0 {
			w.b = append(w.b, `<span><svg class="key" viewBox="0 0 26 14" aria-hidden="true">`...)
			w.b = appendReportShape(w.b, s, 2, 2, 20, 10)
			w.printf("</svg>%s</span>", s.String())
		}
	}
	if len(p.run.calls) <= reportBarsMax {
		w.raw(`<span><svg class="key" viewBox="0 0 26 14" aria-hidden="true"><line class="wait" x1="2" x2="22" y1="7" y2="7"/></svg>waited to begin</span>`)
	}
	w.raw("</p>\n<div class=\"box\" role=\"region\" aria-label=\"Time line\" tabindex=\"0\">")
	w.b = appendReportChart(w.b, p.run)
	w.raw("</div>\n</section>\n")
}

func (p *reportPage) groups(w *reportWriter) {
	if len(p.run.calls) == 0 {
		return
	}
	p.groupTable(w, "Calls by tool", "tool", p.run.groups(func(c *reportCall) (string, bool) { return c.subject, true }))
	p.groupTable(w, "Calls by server", "server", p.run.groups(func(c *reportCall) (string, bool) {
		if s := c.server(); s != "" {
			return s, true
		}
		return "tai itself", true
	}))
}

func (p *reportPage) groupTable(w *reportWriter, title, first string, groups []*reportGroup) {
	w.printf("<section>\n<h2>%s</h2>\n<div class=\"box\" role=\"region\" aria-label=\"%s\" tabindex=\"0\"><table class=\"groups\">\n<thead><tr><th scope=\"col\">%s</th>", title, title, first)
	for _, name := range []string{"calls", "failed", "refused", "not ended", "median", "p95", "longest", "all together", "sent", "received"} {
		w.printf("<th scope=\"col\" class=\"n\">%s</th>", name)
	}
	w.raw("</tr></thead>\n<tbody>\n")
	for _, g := range groups[:min(len(groups), reportGroupsMax)] {
		w.printf("<tr><th scope=\"row\"><bdi>%s</bdi></th><td class=\"n\">%s</td>", g.name, reportCount(g.calls))
		for s, class := range [...]string{"", "is-failed", "is-refused", "is-open"} {
			switch {
			case s == 0:
			case g.states[s] == 0:
				w.raw(`<td class="n none">0</td>`)
			default:
				w.printf("<td class=\"n "+class+"\">%s</td>", reportCount(g.states[s]))
			}
		}
		if len(g.took) == 0 {
			w.raw(strings.Repeat(`<td class="n none">–</td>`, 4))
		} else {
			for _, ms := range []float64{g.rank(0.5), g.rank(0.95), g.rank(1), g.total} {
				w.printf("<td class=\"n\">%s</td>", reportSpan(ms))
			}
		}
		w.printf("<td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n", reportBytes(g.sent), reportBytes(g.received))
	}
	w.raw("</tbody>\n</table></div>\n")
	if n := len(groups) - reportGroupsMax; n > 0 {
		w.printf("<p class=\"quiet\">%d more took less time and are left out.</p>\n", n)
	}
	w.raw("</section>\n")
}

// troubles sums the refusals by the rule that refused.
func (p *reportPage) troubles(w *reportWriter) {
	rules := p.run.groups(func(c *reportCall) (string, bool) { return c.rule, c.state == reportRefused })
	if len(rules) == 0 {
		return
	}
	w.raw("<section>\n<h2>Refusals by rule</h2>\n<div class=\"box\" role=\"region\" aria-label=\"Refusals by rule\" tabindex=\"0\"><table class=\"rules\">\n<thead><tr><th scope=\"col\">rule</th><th scope=\"col\" class=\"n\">refused</th><th scope=\"col\">tools</th></tr></thead>\n<tbody>\n")
	for _, g := range rules[:min(len(rules), reportGroupsMax)] {
		name := g.name
		if name == "" {
			name = "(no rule named)"
		}
		w.printf("<tr><th scope=\"row\"><bdi>%s</bdi></th><td class=\"n\">%s</td><td>", name, reportCount(g.calls))
		tools := p.run.groups(func(c *reportCall) (string, bool) { return c.subject, c.state == reportRefused && c.rule == g.name })
		for i, t := range tools[:min(len(tools), reportToolsMax)] {
			if i > 0 {
				w.raw(", ")
			}
			w.printf("<bdi>%s</bdi>", t.name)
		}
		if n := len(tools) - reportToolsMax; n > 0 {
			w.printf(" and %d more", n)
		}
		w.raw("</td></tr>\n")
	}
	w.raw("</tbody>\n</table></div>\n</section>\n")
}

func (p *reportPage) calls(w *reportWriter) {
	if len(p.run.calls) == 0 {
		return
	}
	rows, all := p.run.listed()
	w.raw("<section>\n<h2>Calls</h2>\n")
	if !all {
		w.printf("<p class=\"quiet\">%s of %s calls: first what failed, was refused or did not end, then what took longest. tai audit show prints the rest.</p>\n", reportCount(len(rows)), reportCount(len(p.run.calls)))
	}
	w.raw("<div class=\"box\" role=\"region\" aria-label=\"Calls\" tabindex=\"0\"><table class=\"calls\">\n<thead><tr><th scope=\"col\" class=\"n\">line</th><th scope=\"col\" class=\"n\">at</th><th scope=\"col\">tool</th><th scope=\"col\">outcome</th><th scope=\"col\">rule</th><th scope=\"col\" class=\"n\">took</th><th scope=\"col\" class=\"n\">sent</th><th scope=\"col\" class=\"n\">received</th></tr></thead>\n<tbody>\n")
	for _, c := range rows {
		p.call(w, c, all)
	}
	w.raw("</tbody>\n</table></div>\n</section>\n")
}

// call writes one row. nested says that the rows stand in the order of the log, so that depth can be seen.
func (p *reportPage) call(w *reportWriter, c *reportCall, nested bool) {
	class := ""
	if p.finding.Tampered && p.finding.Bad > 0 && c.last >= int64(p.finding.Bad) {
		class = ` class="unproven"`
	}
	at := p.run.started.Add(time.Duration(c.begin) * time.Microsecond).UTC().Format("2006-01-02 15:04:05.000 UTC")
	w.printf("<tr id=\"line-%d\""+class+"><td class=\"n\">%d</td><td class=\"n\"><span title=\"%s\">%s</span></td><th scope=\"row\"", c.first, c.first, at, reportOffset(c.begin, 1000))
	if nested && c.depth > 0 {
		w.printf(" class=\"d%d\"", c.depth)
	}
	w.raw("><details><summary>")
	if nested && c.depth > 0 {
		w.raw(`<span class="turn" aria-hidden="true">↳</span> `)
	}
	w.printf("<bdi>%s</bdi></summary>\n<dl class=\"detail\">", c.subject)
	put := func(name, value string) {
		if value != "" {
			w.printf("<div><dt>%s</dt><dd>%s</dd></div>", name, value)
		}
	}
	put("call", c.id)
	put("caused by", c.parent)
	put("kind", c.kind)
	if c.detail != nil {
		put("digest", c.detail.digest)
	}
	if c.start >= 0 && c.start-c.begin > 1000 {
		put("waited", reportSpan(float64(c.start-c.begin)/1000)+" before it began")
	}
	w.raw("</dl>")
	if c.detail != nil {
		p.data(w, "arguments", c.detail.args, c.sent)
		p.data(w, "at its end", c.detail.finished, 0)
	}
	w.raw("</details></th>")
	state := [...]string{"is-done", "is-failed", "is-refused", "is-open"}[c.state]
	w.raw(`<td class="` + state + `"><svg class="key" viewBox="0 0 26 14" aria-hidden="true">`)
	w.b = appendReportShape(w.b, c.state, 2, 2, 20, 10)
	w.printf("</svg>%s", c.state.String())
	if c.outcome != "" && c.outcome != auditOK && c.outcome != auditError && c.outcome != auditDenied {
		w.printf(", <bdi>%s</bdi>", c.outcome)
	}
	if class != "" {
		w.raw(", unproven")
	}
	w.printf("</td><td><bdi>%s</bdi></td>", c.rule)
	if c.state == reportOK || c.state == reportFailed {
		w.printf("<td class=\"n\">%s</td>", reportSpan(c.took))
	} else {
		w.raw(`<td class="n none">–</td>`)
	}
	w.printf("<td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n", reportBytes(c.sent), reportBytes(c.received))
}

// data writes one JSON value, indented, as long as the page has room for it.
func (p *reportPage) data(w *reportWriter, name string, raw json.RawMessage, size int64) {
	if len(raw) == 0 {
		if size > auditDataMax {
			w.printf("<p class=\"quiet\">%s: %s, only their digest is in the log</p>", name, reportBytes(size))
		}
		return
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		b.Reset()
		b.Write(raw)
	}
	text := escapeHTML(visible(b.String()))
	if len(text) > w.budget {
		w.printf("<p class=\"quiet\">%s: %s, left out of this page; tai audit show prints them</p>", name, reportBytes(int64(len(raw))))
		return
	}
	w.budget -= len(text)
	w.printf("<p class=\"quiet\">%s</p><pre dir=\"ltr\">", name)
	w.raw(text + "</pre>")
}

func (p *reportPage) facts(w *reportWriter) {
	f, r := p.finding, p.run
	w.raw("<section>\n<h2>The log</h2>\n<dl class=\"facts\">\n")
	put := func(name, value string) {
		if value != "" {
			w.printf("<div><dt>%s</dt><dd>%s</dd></div>\n", name, value)
		}
	}
	put("run", p.title())
	put("origin", p.origin())
	if !r.started.IsZero() {
		put("started", r.started.UTC().Format(time.RFC3339Nano))
		end := r.started.Add(time.Duration(r.ended) * time.Microsecond).UTC().Format(time.RFC3339Nano)
		if r.completed {
			put("ended", end)
		} else {
			put("ended", "the log does not say; last line "+end)
		}
	}
	put("lines", fmt.Sprintf("%s verified, %s read", reportCount(f.Lines), reportCount(int(r.lines))))
	put("verdict", p.verdict())
	switch f.Checked {
	case auditByChain:
		put("checked against", "its chain alone")
	default:
		put("checked against", fmt.Sprintf("its chain and the %s of %s", f.Checked, plural(int(f.Recorded), "line")))
		put("signed by key", f.Key)
	}
	put("hash of the last verified line", f.Head)
	for _, n := range f.Notices[:min(len(f.Notices), reportNoticesMax)] {
		put("notice", n)
	}
	w.raw("</dl>\n")
	if len(r.first) > 0 {
		p.data(w, "what it says of its start", r.first, 0)
	}
	w.raw("</section>\n")
}

func (p *reportPage) verdict() string {
	switch f := p.finding; {
	case f.Tampered && f.Bad > 0:
		return fmt.Sprintf("tampered with at line %d: %s", f.Bad, f.Reason)
	case f.Tampered:
		return "tampered with: " + f.Reason
	case f.Unreadable:
		return "unreadable: " + f.Reason
	case f.Incomplete:
		return "good, but for an incomplete last line"
	}
	return "good"
}

// reportBytes writes a size for a reader.
func reportBytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	size := float64(n) / 1000
	for _, unit := range []string{"kB", "MB", "GB"} {
		if size < 999.5 {
			if size < 10 {
				return fmt.Sprintf("%.1f %s", size, unit)
			}
			return fmt.Sprintf("%.0f %s", size, unit)
		}
		size /= 1000
	}
	return fmt.Sprintf("%.0f TB", size)
}
