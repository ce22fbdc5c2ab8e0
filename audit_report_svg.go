// This file draws the time line of a report as one SVG: a bar a call on as many lanes as calls ran at once, or columns of counts where
// there are too many calls for that. Each outcome has a shape of its own beside its colour. It knows no page around it, and owns how text,
// times and spans are written on one.
package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	reportChartWidth  = 1080 // units of the drawing; one is a pixel on a wide screen
	reportChartEdge   = 10   // units left free at either side
	reportAxisHeight  = 26
	reportLaneHeight  = 24
	reportThinLane    = 13
	reportBarsMax     = 400 // calls that are drawn one by one
	reportLabelsMax   = 60  // calls that still have their names beside them
	reportLanesMax    = 48  // lanes; more calls at once are drawn as columns
	reportColumns     = 90
	reportColumnsHigh = 150
	reportLetter      = 6.3 // units of an average letter of a name
	reportLabelMax    = 36  // characters of a name beside its bar
)

// reportText is the one door for text of a log or of a path: nothing hidden, nothing that HTML acts on.
func reportText(s string) string { return escapeHTML(visibleLine(s)) }

// reportScale maps times to places.
type reportScale struct {
	span  int64 // microseconds
	width float64
}

func (s reportScale) x(at int64) float64 {
	return reportChartEdge + float64(min(max(at, 0), s.span))/float64(s.span)*s.width
}

// reportTicks gives the distance between the marks of an axis of that length, in microseconds: some eight round ones.
func reportTicks(span int64) int64 {
	const second = int64(time.Second / time.Microsecond)
	steps := []int64{1, 2, 5}
	for unit := int64(10); unit <= second; unit *= 10 {
		steps = append(steps, unit, 2*unit, 5*unit)
	}
	for _, n := range []int64{10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600, 24 * 3600, 7 * 24 * 3600, 30 * 24 * 3600, 365 * 24 * 3600} {
		steps = append(steps, n*second)
	}
	for _, s := range steps {
		if span/s <= 8 {
			return s
		}
	}
	return span/8 + 1
}

// reportBar is one call on its lane.
type reportBar struct {
	c              *reportCall
	lane           int
	wait, from, to float64 // where it was asked for, began and ended
	label          string
	labelAt        float64
	labelEnd       bool // the label ends there, since there is no room behind the bar
}

// lanes places the calls: below the call that caused them, and where nothing else stands. It is nil where that takes too many lanes.
func (r *reportRun) lanes(scale reportScale) (bars []reportBar, count int) {
	if len(r.calls) > reportBarsMax {
		return nil, 0
	}
	laneOf := map[string]int{}
	var taken [][][2]float64 // of each lane, from and to
	for _, c := range r.calls {
		b := reportBar{c: c, wait: scale.x(c.begin), to: scale.x(c.until(r))}
		if b.from = b.wait; c.start >= 0 {
			b.from = scale.x(c.start)
		}
		if b.to = max(b.to, b.from+5); c.state == reportRefused {
			b.to = b.from + 15 // the diamond
		}
		left, right := b.wait, b.to+4
		if len(r.calls) <= reportLabelsMax {
			b.label = brief(visibleLine(c.subject), reportLabelMax)
			width := float64(utf8.RuneCountInString(b.label))*reportLetter + 6
			if b.labelAt = b.to + 5; b.labelAt+width > reportChartWidth && b.wait-width > 0 {
				b.labelAt, b.labelEnd, left = b.wait-5, true, b.wait-width
			} else {
				right = b.to + width + 8
			}
		}
		if c.caused {
			b.lane = laneOf[c.parent] + 1
		}
		for ; ; b.lane++ {
			if b.lane >= reportLanesMax {
				return nil, 0
			}
			for len(taken) <= b.lane {
				taken = append(taken, nil)
			}
			if !slices.ContainsFunc(taken[b.lane], func(t [2]float64) bool { return left < t[1] && t[0] < right }) {
				break
			}
		}
		taken[b.lane] = append(taken[b.lane], [2]float64{left, right})
		laneOf[c.id] = b.lane
		bars = append(bars, b)
	}
	return bars, len(taken)
}

// appendReportChart draws the time line of a run with at least one call.
func appendReportChart(dst []byte, r *reportRun) []byte {
	scale := reportScale{span: max(r.ended, 1), width: reportChartWidth - 2*reportChartEdge}
	bars, lanes := r.lanes(scale)
	height := reportAxisHeight + reportColumnsHigh + 8
	thick := reportLaneHeight
	if len(bars) > 0 {
		if bars[0].label == "" {
			thick = reportThinLane
		}
		height = reportAxisHeight + lanes*thick + 8
	}
	dst = fmt.Appendf(dst, `<svg class="chart" viewBox="0 0 %d %d" role="img" aria-labelledby="chart-title chart-desc" font-size="11.5">`, reportChartWidth, height)
	dst = fmt.Appendf(dst, `<title id="chart-title">Time line of %s</title><desc id="chart-desc">`, plural(len(r.calls), "call"))
	dst = append(dst, reportText(r.chartSays(len(bars) > 0))...)
	dst = append(dst, `</desc><defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="failed-back" width="5" height="5"/><rect class="failed" width="2.4" height="5"/></pattern></defs>`...)
	dst = appendReportAxis(dst, scale, height)
	if len(bars) == 0 {
		dst = r.appendColumns(dst, scale)
	}
	at := map[string]reportBar{}
	for _, b := range bars { // the lines from a call to those that it caused lie under the bars
		at[b.c.id] = b
		if p, ok := at[b.c.parent]; ok && b.c.caused && p.lane < b.lane {
			x, top, low := max(p.wait, min(b.wait, p.to)), laneMiddle(p.lane, thick), laneMiddle(b.lane, thick)
			dst = fmt.Appendf(dst, `<path class="link" d="M%s %s V%s H%s"/>`, reportUnits(x), reportUnits(top), reportUnits(low), reportUnits(b.wait))
		}
	}
	for _, b := range bars {
		dst = b.appendSVG(dst, r, thick)
	}
	return append(dst, `</svg>`...)
}

func laneMiddle(lane, thick int) float64 {
	return reportAxisHeight + (float64(lane)+0.5)*float64(thick)
}

// chartSays is the drawing in words, for who does not see it.
func (r *reportRun) chartSays(bars bool) string {
	all := r.whole()
	var b textBuilder
	fmt.Fprintf(&b, "%s calls over %s: ", reportCount(all.calls), reportSpan(float64(r.ended)/1000))
	for s := range reportStates {
		if s > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d %s", all.states[s], s)
	}
	if !bars {
		return b.String() + ". Each column counts the calls that began in one part of the run."
	}
	return b.String() + ". Each bar is a call; calls that ran at once stand on lanes below each other, calls caused by another below that one. The table of calls says the same."
}

func appendReportAxis(dst []byte, scale reportScale, height int) []byte {
	step := reportTicks(scale.span)
	for at := int64(0); at <= scale.span; at += step {
		x := scale.x(at)
		dst = fmt.Appendf(dst, `<line class="grid" x1="%s" x2="%s" y1="18" y2="%d"/>`, reportUnits(x), reportUnits(x), height)
		anchor := "middle"
		if x < 3*reportChartEdge {
			anchor, x = "start", x-reportChartEdge
		} else if x > reportChartWidth-4*reportChartEdge {
			anchor, x = "end", reportChartWidth
		}
		dst = fmt.Appendf(dst, `<text class="tick" x="%s" y="12" text-anchor="%s">%s</text>`, reportUnits(x), anchor, reportText(reportOffset(at, step)))
	}
	return dst
}

func (b reportBar) appendSVG(dst []byte, r *reportRun, thick int) []byte {
	mid, high := laneMiddle(b.lane, thick), float64(thick)*0.5
	c := b.c
	dst = append(dst, `<g><title>`...)
	says := fmt.Sprintf("%s %s: %s", c.id, c.subject, c.state)
	if c.end >= 0 && c.state != reportRefused {
		says += " in " + reportSpan(c.took)
	}
	if c.state == reportRefused && c.rule != "" {
		says += " by " + c.rule
	}
	dst = append(dst, reportText(says+", from "+reportOffset(c.begin, 1000))...)
	dst = append(dst, `</title>`...)
	if b.from-b.wait > 1 {
		dst = fmt.Appendf(dst, `<line class="wait" x1="%s" x2="%s" y1="%s" y2="%s"/>`, reportUnits(b.wait), reportUnits(b.from), reportUnits(mid), reportUnits(mid))
	}
	dst = appendReportShape(dst, c.state, b.from, mid-high/2, b.to-b.from, high)
	if b.label != "" {
		anchor := "start"
		if b.labelEnd {
			anchor = "end"
		}
		dst = fmt.Appendf(dst, `<text x="%s" y="%s" text-anchor="%s">%s</text>`, reportUnits(b.labelAt), reportUnits(mid+4), anchor, reportText(b.label))
	}
	return append(dst, `</g>`...)
}

// appendReportShape draws an outcome: full, hatched with a cross-stroke at its end, an empty diamond, or an outline of dashes.
func appendReportShape(dst []byte, s reportState, x, y, w, h float64) []byte {
	rect := fmt.Sprintf(`x="%s" y="%s" width="%s" height="%s"`, reportUnits(x), reportUnits(y), reportUnits(w), reportUnits(h))
	switch s {
	case reportOK:
		return fmt.Appendf(dst, `<rect class="done" %s rx="2"/>`, rect)
	case reportFailed:
		return fmt.Appendf(dst, `<rect class="failed-bar" %s fill="url(#hatch)"/>`, rect)
	case reportRefused:
		mid, half := y+h/2, min(h/2+1.5, 7)
		return fmt.Appendf(dst, `<path class="refused" d="M%s %s l%s %s l%s %s l-%s %s Z"/>`, reportUnits(x), reportUnits(mid),
			reportUnits(half), reportUnits(-half), reportUnits(half), reportUnits(half), reportUnits(half), reportUnits(half))
	}
	return fmt.Appendf(dst, `<rect class="open" %s rx="2"/>`, rect)
}

// appendColumns draws how many calls began in each part of the run, those that did not go well on top.
func (r *reportRun) appendColumns(dst []byte, scale reportScale) []byte {
	var counts [reportColumns][reportStates]int
	most := 1
	for _, c := range r.calls {
		col := &counts[min(int(float64(max(c.begin, 0))/float64(scale.span)*reportColumns), reportColumns-1)]
		col[c.state]++
		most = max(most, col[0]+col[1]+col[2]+col[3])
	}
	wide := scale.width / reportColumns
	for i, col := range counts {
		all, y := col[0]+col[1]+col[2]+col[3], float64(reportAxisHeight+reportColumnsHigh)
		if all == 0 {
			continue
		}
		part := scale.span / reportColumns
		dst = append(append(dst, `<g><title>`...), reportText(fmt.Sprintf("from %s: %s, %d failed, %d refused, %d not ended",
			reportOffset(int64(i)*part, max(part, 1)), plural(all, "call"), col[reportFailed], col[reportRefused], col[reportOpen]))...)
		dst = append(dst, `</title>`...)
		for s, n := range col {
			if n == 0 {
				continue
			}
			h := max(float64(n)/float64(most)*(reportColumnsHigh-10), 2)
			y -= h
			rect := fmt.Sprintf(`x="%s" y="%s" width="%s" height="%s"`, reportUnits(reportChartEdge+float64(i)*wide+1), reportUnits(y), reportUnits(wide-2), reportUnits(h))
			switch reportState(s) {
			case reportOK:
				dst = fmt.Appendf(dst, `<rect class="done" %s/>`, rect)
			case reportFailed:
				dst = fmt.Appendf(dst, `<rect class="failed-bar" %s fill="url(#hatch)"/>`, rect)
			case reportRefused:
				dst = fmt.Appendf(dst, `<rect class="refused" %s/>`, rect)
			default:
				dst = fmt.Appendf(dst, `<rect class="open" %s/>`, rect)
			}
		}
		dst = append(dst, `</g>`...)
	}
	dst = fmt.Appendf(dst, `<line class="grid" x1="%d" x2="%d" y1="%d" y2="%d"/>`, reportChartEdge, reportChartWidth-reportChartEdge, reportAxisHeight+10, reportAxisHeight+10)
	return fmt.Appendf(dst, `<text class="tick" x="%d" y="%d" text-anchor="end">at most %s calls a column</text>`, reportChartWidth-reportChartEdge, reportAxisHeight+6, reportCount(most))
}

// reportUnits writes a place with one decimal at most.
func reportUnits(f float64) string {
	return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64)
}

// reportCount writes a number with its thousands apart.
func reportCount(n int) string {
	s := strconv.Itoa(n)
	for at := len(s) - 3; at > 0 && s[at-1] != '-'; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// reportSpan writes milliseconds for a reader.
func reportSpan(ms float64) string {
	d := time.Duration(min(ms, float64(math.MaxInt64/int64(time.Millisecond))) * float64(time.Millisecond))
	switch {
	case ms < 10:
		return strconv.FormatFloat(math.Round(ms*10)/10, 'f', -1, 64) + " ms"
	case ms < 999.5:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	case ms < 59_950:
		return strconv.FormatFloat(ms/1000, 'f', 1, 64) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// reportOffset writes a time since the start, as finely as step asks for, both in microseconds.
func reportOffset(at, step int64) string {
	d := time.Duration(at) * time.Microsecond
	decimals := 0
	for unit := int64(1_000_000); unit > step && decimals < 3; unit /= 10 {
		decimals++
	}
	d = d.Truncate(time.Second / time.Duration(math.Pow10(decimals)))
	seconds := strconv.FormatFloat(math.Mod(d.Seconds(), 60), 'f', decimals, 64)
	switch {
	case at == 0:
		return "0"
	case d < time.Second && step < 1000:
		return strconv.FormatFloat(float64(at)/1000, 'f', -1, 64) + " ms"
	case d < time.Minute:
		return "+" + seconds + " s"
	}
	if at := strings.IndexByte(seconds+".", '.'); at == 1 {
		seconds = "0" + seconds
	}
	return fmt.Sprintf("+%s%02d:%s", cmp.Or(strings.TrimPrefix(fmt.Sprintf("%d:", int(d.Hours())), "0:"), ""), int(d.Minutes())%60, seconds)
}
