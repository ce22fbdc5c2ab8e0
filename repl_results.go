// This file holds the results of tool calls that a prompt has seen, numbered as they came in, and the two lines that a call has on the screen. It
// prints nothing and fetches nothing.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	resultLogKept  = 500      // results that stay at hand; the vault has all
	resultLogBytes = 16 << 20 // of their texts and arguments together
	resultLineRoom = 24       // columns that a summary needs at least to stand on the line of its result
	resultLineMax  = 200      // bytes of arguments or of a summary where the screen's width is unknown
)

// keptResult is one result as it can be shown again. Record is set where the text is only the head of it; State and Took are "" and 0 where the
// conversation was read back.
type keptResult struct {
	N                   int // from 1 on
	ID, Name, Args      string
	Text, Record, State string
	Size                int // bytes of the whole
	Took                time.Duration
}

// resultLog is what /show knows. The oldest go when it is full; their numbers stay theirs.
type resultLog struct {
	list  []keptResult
	last  int // the highest number given
	bytes int
}

// add takes a result in and gives it its number.
func (l *resultLog) add(r keptResult) int {
	l.last++
	r.N = l.last
	l.list = append(l.list, r)
	l.bytes += len(r.Text) + len(r.Args)
	for len(l.list) > resultLogKept || l.bytes > resultLogBytes && len(l.list) > 1 {
		l.bytes -= len(l.list[0].Text) + len(l.list[0].Args)
		l.list = slices.Delete(l.list, 0, 1)
	}
	return r.N
}

// number finds a result by its number; 0 is the last one.
func (l *resultLog) number(n int) (keptResult, bool) {
	if n == 0 {
		n = l.last
	}
	i := slices.IndexFunc(l.list, func(r keptResult) bool { return r.N == n })
	if i < 0 {
		return keptResult{}, false
	}
	return l.list[i], true
}

// called finds the last result of a call by the id that the model gave the call.
func (l *resultLog) called(id string) (keptResult, bool) {
	for _, r := range slices.Backward(l.list) {
		if r.ID == id {
			return r, true
		}
	}
	return keptResult{}, false
}

// readBack takes in the results of a kept conversation, which go on counting where they stopped.
func (l *resultLog) readBack(rows []storedMessage) error {
	calls := map[string]chatToolCall{}
	for _, row := range rows {
		if row.Role == roleCompact {
			continue
		}
		m, err := fromStored(row)
		if err != nil {
			return errorf("message %d: %w", row.Seq, err)
		}
		for _, c := range m.Calls {
			calls[c.ID] = c
		}
		if c, ok := calls[m.CallID]; ok && m.Role == roleTool {
			l.add(keptResult{ID: c.ID, Name: c.Name, Args: c.Args, Text: m.Content, Size: len(m.Content), State: map[bool]string{true: "failed"}[m.IsError]})
		}
	}
	return nil
}

// keepResult gives a result as the log has it.
func keepResult(c chatToolCall, r toolResult, took time.Duration) keptResult {
	k := keptResult{ID: c.ID, Name: c.Name, Args: c.Args, Text: r.Text, Record: r.Record, State: "done", Size: len(r.Text), Took: took}
	switch {
	case r.Rule != "":
		k.State = "refused (" + r.Rule + ")"
	case r.IsError:
		k.State = "failed"
	}
	if r.Record != "" {
		var whole struct{ Size int }
		if json.Unmarshal(r.Structured, &whole) == nil && whole.Size > 0 {
			k.Size = whole.Size
		}
	}
	return k
}

// callLine is a call as it starts, on one line of at most width columns, 0 for a width that is not known. args are masked.
func callLine(name, args string, width int) string {
	var tight bytes.Buffer
	if json.Compact(&tight, []byte(args)) == nil {
		args = tight.String()
	}
	if args == "{}" {
		args = ""
	}
	return shortLine(strings.TrimSpace("· "+visibleLine(name)+" "+visibleLine(args)), width)
}

func shortLine(line string, width int) string {
	if width <= 0 {
		return brief(line, resultLineMax)
	}
	return clipWidth(line, max(width, consentMinWidth)-1)
}

// lines are what a result has on the screen: how the call ended, and how its text begins, on the same line where there is room, else on one of its
// own, under the mark of what is not tai's. summary is masked. numbered says that /show knows it.
func (k keptResult) lines(summary string, numbered bool, width int) string {
	line := fmt.Sprintf("· %s %s in %s", visibleLine(k.Name), k.State, shortTime(k.Took))
	if !k.refused() {
		line += fmt.Sprintf(", %d bytes", k.Size)
	}
	if numbered {
		line += fmt.Sprintf(", /show %d", k.N)
	}
	summary = k.summary(summary)
	if room := width - textWidth(line) - len(": "); summary != "" && (width <= 0 || room >= resultLineRoom) {
		return shortLine(line+": "+summary, width) + "\n"
	}
	if width > 0 {
		line = wrapWords("", line, "  ", max(width, consentMinWidth)-1)
	} else {
		line += "\n"
	}
	if summary != "" {
		line += shortLine(consentText+summary, width) + "\n"
	}
	return line
}

// refused says that the call did not run.
func (k keptResult) refused() bool { return strings.HasPrefix(k.State, "refused") }

// summary is how a text begins, its first lines on one, "" for a refusal, whose rule says it all.
func (k keptResult) summary(text string) string {
	if k.refused() {
		return ""
	}
	text = strings.TrimPrefix(strings.TrimSpace(text), k.Name+": ")
	var said []string
	for line := range strings.Lines(brief(text, 8*resultLineMax)) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			said = append(said, line)
		}
	}
	return visibleLine(strings.Join(said, " / "))
}
