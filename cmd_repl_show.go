// This file holds the prompt's commands that show and take back what tools have done, /show and /undo. They exist at the prompt
// alone.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const showTabColumns = 8 // a tab in a result goes on to the next column that this divides

// showing does /show and /undo; false where the line is neither.
func (r *repl) showing(ctx context.Context, word, rest string) (done bool, err error) {
	switch word {
	case "show":
		return true, r.show(ctx, rest)
	case "undo":
		return true, r.undo(ctx, rest)
	}
	return false, nil
}

// show puts the whole of a result on the screen, a screen at a time: the last one of this conversation, one by its number or by its call's id, or a
// record.
func (r *repl) show(ctx context.Context, id string) error {
	k, err := r.resultFor(id)
	if err != nil {
		return err
	}
	if k.Record != "" {
		v, err := r.vault(ctx)
		if err != nil {
			return err
		}
		info, body, err := v.record(ctx, k.Record)
		switch {
		case err == nil:
			k.Text, k.Size = string(body), int(info.Size)
			if k.Name == "" {
				k.Name = info.Origin
			}
		case k.N == 0 || !errors.Is(err, errNotFound):
			return orUnknown(err, "tai record list shows the ids")
		default:
			k.Text += "\n[record " + k.Record + " was deleted; this is what the conversation holds of it]"
		}
	}
	cols, _ := screenSize(r.out.Stdout)
	text := k.page(r.redact, cols)
	if cols == 0 || r.console == nil {
		fmt.Fprint(r.stdout, text)
		return nil
	}
	_, err = r.console.page(ctx, r.stdout, text, 0, consentChoice{"q", "end"})
	return err
}

// resultFor finds what a word after /show means.
func (r *repl) resultFor(id string) (keptResult, error) {
	n := 0
	if number, err := strconv.Atoi(id); err == nil && number > 0 {
		n = number
	} else if k, ok := r.results.called(id); ok {
		return k, nil
	} else if spoken := spokenID(id); strings.HasPrefix(spoken, recordPrefix) {
		return keptResult{Record: spoken}, nil
	} else if id != "" {
		return keptResult{}, usageError("/show is the last result, /show 3 the third, /show r-7k2m a record", "%s is no result", quoteClip(id))
	}
	k, ok := r.results.number(n)
	switch {
	case ok:
		return k, nil
	case r.results.last == 0:
		return k, usageError("/call runs a tool, and a model does", "no tool has a result yet in this conversation")
	case n > r.results.last:
		return k, usageError("", "the last result is number %d", r.results.last)
	}
	return k, usageError("/session show "+r.session()+" prints the whole conversation", "result %d is not at hand any more", n)
}

// session is the conversation's id, "" before its first message.
func (r *repl) session() string {
	if r.agent != nil && r.agent.session != "" {
		return r.agent.session
	}
	return r.turn.session
}

// page lays a result out for a screen of that many columns, 0 where that is not known: tai's own lines say what it is, each line of the result itself
// stands under the mark of what is not tai's, with nothing in it that moves a cursor (TTY-03, TTY-08). It is masked before it is cut.
func (k keptResult) page(redact func(string) string, width int) string {
	p := consentRender{width: width}
	head := "record " + k.Record
	if k.N > 0 {
		head = fmt.Sprintf("result %d: %s %s", k.N, k.Name, k.State)
		if k.Took > 0 {
			head += " in " + shortTime(k.Took)
		}
		if k.Record != "" {
			head += ", record " + k.Record
		}
	} else if k.Name != "" {
		head += " of " + k.Name
	}
	p.own(strings.TrimSpace(head))
	if args := redact(k.Args); args != "" {
		p.own("with")
		p.rows(foreignRows(args, width))
	}
	text := redact(k.Text)
	if n := hiddenCount(text); n > 0 {
		p.own(fmt.Sprintf("! hidden or control characters in it: %d, written out here", n))
	}
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		p.own("it is empty")
		return p.b.String()
	}
	p.own(fmt.Sprintf("lines: %d, bytes: %d", strings.Count(text, "\n")+1, k.Size))
	p.rows(foreignRows(text, width))
	return p.b.String()
}

// foreignRows gives the screen lines of a text that is not tai's, each with its mark.
func foreignRows(text string, width int) []string {
	var rows []string
	for line := range strings.SplitSeq(text, "\n") {
		line = visible(expandTabs(strings.TrimSuffix(line, "\r")))
		for i, part := range wrapColumns(line, consentColumns(width)-len(consentMore)) {
			mark := consentText
			if i > 0 {
				mark = consentMore
			}
			rows = append(rows, mark+part)
		}
	}
	return rows
}

// expandTabs puts blanks in the place of tabs, which would move on by the columns of the mark too.
func expandTabs(line string) string {
	var b textBuilder
	for {
		before, after, found := strings.Cut(line, "\t")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString(strings.Repeat(" ", showTabColumns-textWidth(b.String())%showTabColumns))
		line = after
	}
}

// undo takes a change of the file tools back, the last one without an id, in the person's own words.
func (r *repl) undo(ctx context.Context, change string) error {
	args := json.RawMessage("{}")
	if strings.ContainsAny(change, " \t") {
		return usageError("/undo [CHANGE], as /undo h-7k2m", "/undo takes one id of a change")
	} else if change != "" {
		args = append(appendJSONString([]byte(`{"change":`), change), '}')
	}
	box, err := r.toolbox()
	if err != nil {
		return err
	}
	res, err := box.dispatch(ctx, toolCall{Name: "file_undo", Args: args, Person: true, Origin: r.origin, Profile: r.profileWord(), Session: r.session()})
	if err != nil {
		return err
	}
	return r.result(res)
}
