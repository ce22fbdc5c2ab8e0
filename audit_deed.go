// This file puts the run log around one act: what was asked for before anything is decided, what began, and how it ended. It knows no act.
package main

import (
	"cmp"
	"encoding/json"
)

// deed names an act for the run log.
type deed struct {
	Kind, Subject, Parent string
	Data                  json.RawMessage
}

// perform asks, and if the answer is no error does the act. rule is what decided, and goes into the log. The act begins when its lines are on
// disk; what cannot be recorded is not done. outcome "" is auditOK.
func (a *auditLog) perform(d deed, ask func() (rule string, err error), do func() (outcome string, err error)) error {
	ev := auditEvent{Call: a.nextCall(), Parent: d.Parent, Kind: d.Kind, Subject: d.Subject}
	note := func(event, outcome, rule string, data json.RawMessage) error {
		x := ev
		x.Event, x.Outcome, x.Rule, x.Data = event, outcome, rule, data
		if err := a.record(x); err != nil {
			return errorf("record %s: %w", d.Kind, err)
		}
		return nil
	}
	if err := note(auditCallRequested, "", "", d.Data); err != nil {
		return err
	}
	rule, err := ask()
	if err != nil {
		return joinErrors(err, note(auditCallBlocked, auditDenied, rule, auditText("reason", err.Error())))
	}
	if err := joinErrors(note(auditCallStarted, "", rule, nil), a.sync()); err != nil {
		return err
	}
	outcome, err := do()
	if err != nil {
		return joinErrors(err, note(auditCallFailed, auditError, "", auditText("error", err.Error())))
	}
	return note(auditCallCompleted, cmp.Or(outcome, auditOK), "", nil)
}

// auditText makes a data object of one text.
func auditText(key, text string) json.RawMessage {
	return append(appendJSONString(append(appendJSONString([]byte{'{'}, key), ':'), text), '}')
}
