// This file changes what a run goes by while it runs: its permission mode, as the person says, and its profile. Each change of the mode is in the run
// log. It decides no call.
package main

import (
	"context"
	"errors"
)

// modePlan is read-only until the person agrees on a plan. It is of the prompt alone and no mode of the policy.
const modePlan = "plan"

// planWord is what a model is told while a plan is wanted.
const planWord = `

Plan mode: the person wants a plan before anything is changed, so that only reading is allowed now. Look at what you need to know, ask what is unclear, then hand the plan to plan_submit: what you will change, in which order, and how you will check it. Go on to change things only after a yes.`

// modeWords are the words of /mode.
//
//go:noinline for size: it is called in many places
func modeWords() []string {
	return []string{string(modeReadOnly), string(modePrompt), string(modeAllow), string(modeDanger), modePlan}
}

// modeName is the mode in force, as a person calls it.
func (a *app) modeName() string {
	if a.policy.planning() {
		return modePlan
	}
	return string(a.policy.mode())
}

// modeWord is what stands behind the system text of each request.
func (a *app) modeWord() string {
	if a.policy.planning() {
		return planWord
	}
	return ""
}

// changeMode puts another permission mode in force for the rest of this run: a person's own word. A wrong one is an error and changes nothing.
func (a *app) changeMode(word string) error {
	mode, err := parseMode(word, false)
	if err != nil && word != modePlan {
		return usageError("/mode alone shows the one in force", "permission mode %s: use %s", quoteClip(word), orList(modeWords()))
	}
	return a.recordMode(word, "", func() {
		if word == modePlan {
			a.policy.startPlan()
		} else {
			a.policy.setMode(mode)
		}
	})
}

// planAgreed ends plan mode, after a yes to the plan of that call, and gives the mode that is in force again; "" where no plan was wanted.
func (a *app) planAgreed(call string) (string, error) {
	mode, planning := a.policy.afterPlan()
	if !planning {
		return "", nil
	}
	return string(mode), a.recordMode(string(mode), call, a.policy.endPlan)
}

// recordMode puts the run log around a change of the mode.
func (a *app) recordMode(to, parent string, change func()) error {
	d := deed{Kind: "permission-mode", Subject: to, Parent: parent, Data: auditText("before", a.modeName())}
	return a.audit.perform(d, func() (string, error) { return ruleConsent, nil }, func() (string, error) {
		change()
		return "", nil
	})
}

// modeMeaning says in a clause what a mode lets through.
func (a *app) modeMeaning() string {
	if mode, planning := a.policy.afterPlan(); planning {
		return "plan: only reading, until you agree on a plan; a yes to it brings back " + string(mode)
	}
	switch mode := a.policy.mode(); mode {
	case modeReadOnly:
		return "read-only: only reading, whatever would change something is refused"
	case modePrompt:
		return "prompt: you are asked before anything that may change something"
	case modeAllow:
		return "allow: what stays inside the workspace runs without asking, and is shown"
	default:
		return string(mode) + ": everything runs without asking"
	}
}

// orList joins words as a sentence does: a, b or c.
func orList(words []string) string {
	text := ""
	for i, w := range words {
		switch i {
		case 0:
		case len(words) - 1:
			text += " or "
		default:
			text += ", "
		}
		text += w
	}
	return text
}

// profileWord is the profile that was chosen for this run, "" for the stored one.
func (a *app) profileWord() string {
	if name := a.profileNow.Load(); name != nil {
		return *name
	}
	return a.profileFlag
}

// switchProfile makes a profile that of this run, "" the one that it would have without. What new runs begin in stays as it is.
func (a *app) switchProfile(ctx context.Context, name string) error {
	if name == "" {
		a.profileNow.Store(nil)
	} else {
		before := a.profileNow.Swap(&name)
		if _, err := a.profile(ctx); err != nil { // it is not there
			a.profileNow.Store(before)
			return err
		}
	}
	return a.bridge.switched(ctx)
}

// withHint gives an error of a command the form in which a tool tells its way out.
func withHint(err error) error {
	if ce, ok := errors.AsType[*cliError](err); ok && ce.Hint != "" {
		return &hintedError{err, ce.Hint}
	}
	return err
}

// planReviewer is where this run shows plans, nil where no person sits.
func (a *app) planReviewer() planReviewer {
	if a.console == nil {
		return nil
	}
	d := planDesk{desk: a.desk}
	if a.out.Getenv("VISUAL") != "" || a.out.Getenv("EDITOR") != "" {
		if argv, err := editorArgv(a.goos, a.out.Getenv); err == nil {
			d.editor = argv
		}
	}
	return d
}

// hiddenLine asks for a line that is not shown, nil where no person sits.
func (a *app) hiddenLine() func(context.Context, string) (string, error) {
	if a.console == nil {
		return nil
	}
	return func(ctx context.Context, prompt string) (string, error) {
		ctx, done, err := a.desk.turn(ctx)
		if err != nil {
			return "", errorf("ask for the value: %w", err)
		}
		defer done()
		line, err := readHidden(ctx, a.console.in, a.console.out, prompt)
		if err != nil {
			return "", errorf("ask for the value: %w", err)
		}
		return line, nil
	}
}
