// This file shows a plan to the person, whole and escaped as a consent is, and takes the answer: yes, no, why not, or the plan changed in their
// editor or typed anew. What an answer means is not its own.
package main

import (
	"context"
	"fmt"
	"strings"
)

const (
	choiceEdit = "e" // of a plan: change it and be asked again
	planEnd    = "." // a line that ends a plan typed anew
)

// planDesk is where a person looks at plans. editor is the command line of their editor, nil where they have named none. It implements planReviewer.
type planDesk struct {
	*desk
	editor []string
}

// review asks until the plan is agreed on or refused. Known secrets are taken out before it is shown.
func (d planDesk) review(ctx context.Context, plan string) (planAnswer, error) {
	ctx, done, err := d.turn(ctx)
	if err != nil {
		return planAnswer{}, errorf("ask about the plan: %w", err)
	}
	defer done()
	first := d.mask(plan)
	for now := first; ; {
		a, err := d.confirm(ctx, d.question(now, now != first))
		if err != nil {
			return planAnswer{}, errorf("ask about the plan: %w", err)
		}
		switch a.Key {
		case choiceYes:
			if now == first {
				return planAnswer{Yes: true}, nil
			}
			return planAnswer{Yes: true, Changed: now}, nil
		case choiceNo:
			return planAnswer{}, nil
		case choiceWhy:
			return planAnswer{Why: a.Why}, nil
		}
		edited, err := d.edit(ctx, now)
		switch {
		case ctx.Err() != nil:
			return planAnswer{}, ctx.Err()
		case err != nil:
			fmt.Fprintln(d.out, consentOwn+visibleLine(err.Error())+"; the plan is as it was")
		default:
			now = edited
		}
	}
}

func (d planDesk) question(plan string, changed bool) consent {
	label, edit := "the plan", "edit it, then be asked again"
	if changed {
		label = "the plan as you have changed it"
	}
	if d.editor == nil {
		edit = "type another one in its place, then be asked again"
	}
	return consent{Title: "go on with this plan?", Lines: []consentLine{{Label: label, Text: plan}}, Choices: []consentChoice{
		{choiceYes, "yes"}, {choiceEdit, edit}, {choiceNo, "no"}, {choiceWhy, "no, and say why: w REASON"}}}
}

// edit has the person change the plan, in their editor where they have one.
func (d planDesk) edit(ctx context.Context, plan string) (string, error) {
	var edited string
	var err error
	if d.editor != nil {
		edited, err = editOutside(ctx, d.editor, plan, d.in, d.out)
	} else {
		edited, err = d.typed(ctx)
	}
	edited = strings.TrimRight(edited, "\n")
	switch {
	case err != nil:
		return "", err
	case strings.TrimSpace(edited) == "":
		return "", newError("no text was given")
	case len(edited) > planTextMax:
		return "", errorf("the text has %d bytes, a plan at most %d", len(edited), planTextMax)
	}
	return edited, nil
}

// typed reads lines up to one that is a full stop.
func (d planDesk) typed(ctx context.Context) (string, error) {
	fmt.Fprintln(d.out, consentOwn+"the plan in your words; a line with a full stop alone ends it")
	var text textBuilder
	for {
		line, err := d.readLine(ctx)
		if err != nil {
			return "", err
		}
		if line == planEnd {
			return text.String(), nil
		}
		if text.Len()+len(line) > planTextMax {
			return "", errorf("the text has more than %d bytes", planTextMax)
		}
		text.WriteString(string(cleanRunes([]byte(line))) + "\n")
	}
}
