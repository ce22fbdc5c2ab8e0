// This file holds file_undo: it works out from what the vault kept how to get back to the state before a change, and refuses where that would take away what came
// since. Going back is a change of its own, which can be undone again.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

const undoLookTime = 5 * time.Second // for looking into the vault while a call is judged

// undoTools gives file_undo.
func undoTools(f *fileChanger) []tool {
	return []tool{{
		Name: "file_undo", Family: "files", Core: true,
		Description: "Put back the state before a change that a file tool made: the last one in this workspace, the last one of a file, or one by its id. All files of a change go back, or none. An undo can be undone by its own id.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
"change":{"type":"string","minLength":1,"maxLength":40,"description":"Id of the change, as h-7k2m (default: the last one that is in force and no undo itself)."},
"path":{"type":"string","minLength":1,"description":"Only a change that touched this file."},
"dry_run":{"type":"boolean","description":"Only show what would change (default false)."}}}`),
		Output: json.RawMessage(fileOutput), Hints: toolHints{Destructive: true},
		judge: f.judgeUndo,
		run:   f.undo,
	}}
}

type undoArgs struct {
	Change, Path string
	DryRun       bool `json:"dry_run"`
}

// undo is also what /undo does.
func (f *fileChanger) undo(ctx context.Context, c toolCall) (toolResult, error) {
	var args undoArgs
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	var was fileChange
	so := false // all is as it was before the change already
	r, err := f.change(ctx, c, args.DryRun, func() (p *changePlan, err error) {
		p, was, err = f.planUndo(ctx, args, c.outside, !args.DryRun)
		so = err == nil && p.empty()
		return p, err
	})
	if err != nil || args.DryRun || !so {
		return r, err
	}
	v, err := f.vault(ctx)
	if err == nil {
		err = v.settleUndone(ctx, was.ID)
	}
	return r, err
}

// judgeUndo asks with the difference that going back makes.
func (f *fileChanger) judgeUndo(c toolCall) policyRequest {
	var args undoArgs
	if json.Unmarshal(c.Args, &args) != nil {
		return policyRequest{Destructive: true}
	}
	ctx, cancel := context.WithTimeout(context.Background(), undoLookTime)
	defer cancel()
	var places []place
	if was, err := f.findChange(ctx, args); err == nil {
		for _, s := range was.Steps {
			for _, abs := range []string{s.Path, s.Target} {
				if abs != "" && !within(abs, f.trash) {
					places = append(places, f.workspace.at(abs))
				}
			}
		}
	}
	req := f.judge(c, places, func() (*changePlan, error) {
		p, _, err := f.planUndo(ctx, args, false, false)
		return p, err
	})
	req.Destructive = !args.DryRun
	return req
}

// findChange gives the change that a call means.
func (f *fileChanger) findChange(ctx context.Context, args undoArgs) (was fileChange, err error) {
	v, err := f.vault(ctx)
	if err != nil {
		return was, err
	}
	abs := ""
	if args.Path != "" {
		p, err := f.workspace.entry(args.Path)
		if err != nil {
			return was, err
		}
		abs = p.Abs
		if real, err := f.workspace.locate(args.Path); err == nil && args.Change == "" {
			if _, err := v.lastChange(ctx, f.workspace.root, abs); errors.Is(err, errNotFound) {
				abs = real.Abs // what a link leads to
			}
		}
	}
	id := args.Change
	if id == "" {
		id, err = v.lastChange(ctx, f.workspace.root, abs)
		if errors.Is(err, errNotFound) {
			return was, errorf("there is no change to undo%s in this workspace", map[bool]string{true: " of " + visibleLine(args.Path)}[abs != ""])
		}
		if err != nil {
			return was, err
		}
	}
	was, err = v.change(ctx, id)
	if errors.Is(err, errNotFound) {
		return was, errorf("there is no change %s: it was never made, or is older than what is kept", quoteClip(id))
	}
	if err != nil {
		return was, err
	}
	touched := func(s changeStep) bool { return s.Path == abs || s.Target == abs }
	switch {
	case was.Root != f.workspace.root:
		return was, errorf("change %s was made in another workspace, %s", was.ID, visibleLine(was.Root))
	case was.Undone == was.ID:
		return was, errorf("change %s is undone already", was.ID)
	case was.Undone != "":
		return was, errorf("change %s is undone already, by %s; file_undo with that id does it again", was.ID, was.Undone)
	case abs != "" && !slices.ContainsFunc(was.Steps, touched):
		return was, errorf("change %s did not touch %s", was.ID, visibleLine(args.Path))
	}
	return was, nil
}

// undoWork is one plan for going back. over holds what paths will be while the plan goes on.
type undoWork struct {
	f       *fileChanger
	ctx     context.Context
	was     fileChange
	outside bool
	over    map[string]fileState
	plan    *changePlan
}

// settleFor clears up after a change, and after undos of it, whose process was killed.
func (f *fileChanger) settleFor(ctx context.Context, was fileChange) error {
	v, err := f.vault(ctx)
	if err != nil {
		return err
	}
	list, err := v.unfinishedChanges(ctx, f.workspace.root, f.now().Add(time.Hour))
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.ID != was.ID && c.Undoes != was.ID {
			continue
		}
		if err := f.settle(c); err != nil {
			return errorf("clear up after the unfinished change %s: %w", c.ID, err)
		}
	}
	return nil
}

// planUndo plans the way back, last step first. settle clears up first after a change whose process was killed.
func (f *fileChanger) planUndo(ctx context.Context, args undoArgs, outside, settle bool) (*changePlan, fileChange, error) {
	was, err := f.findChange(ctx, args)
	if err != nil {
		return nil, was, err
	}
	if settle {
		if err := f.settleFor(ctx, was); err != nil {
			return nil, was, err
		}
	}
	u := undoWork{f: f, ctx: ctx, was: was, outside: outside, over: map[string]fileState{}, plan: &changePlan{tool: "file_undo", undoes: was.ID}}
	for _, s := range slices.Backward(was.Steps) {
		switch s.Kind {
		case changeMove:
			err = u.move(s)
		case changeFolder:
			err = u.folder(s)
		default:
			err = u.file(s)
		}
		if err != nil {
			return nil, was, err
		}
	}
	u.plan.notes = append(u.plan.notes, fmt.Sprintf("back to the state before %s (%s, %s)", was.ID, was.Tool, was.Created.UTC().Format(time.RFC3339)))
	return u.plan, was, nil
}

// state looks at a path as it will be when the plan comes to it. What lies in the trash was put there by tai and may be taken from there.
func (u *undoWork) state(abs string) (st fileState, folders []plannedStep, err error) {
	if st, ok := u.over[abs]; ok {
		return st, nil, nil
	}
	p := u.f.workspace.at(abs)
	if !within(abs, u.f.trash) {
		if err := joinErrors(p.check(u.outside), u.f.guard.check(p, false)); err != nil {
			return st, nil, errorf("%s: %w", visibleLine(p.Rel), err)
		}
	}
	s, missing, err := p.spot()
	if missing != "" && errors.Is(err, fs.ErrNotExist) || p.Outside && errors.Is(err, fs.ErrNotExist) {
		if missing != "" {
			_, folders, err = u.f.lookup(p, u.outside)
			return st, folders, err
		}
		return st, nil, nil
	}
	if err == nil {
		defer s.close()
		st, err = s.look()
	}
	if err != nil {
		err = errorf("%s: %w", visibleLine(p.Rel), err)
	}
	return st, nil, err
}

// conflict says what stands in the way.
func (u *undoWork) conflict(abs, what string) error {
	shown := visibleLine(u.f.showPath(abs))
	v, err := u.f.vault(u.ctx)
	if err != nil {
		return err
	}
	id, tool, err := v.changeAfter(u.ctx, u.was, abs)
	switch {
	case err == nil:
		return errorf("change %s cannot be undone: %s %s, by %s (%s); undo that one first; nothing was changed", u.was.ID, shown, what, id, tool)
	case errors.Is(err, errNotFound):
		return errorf("change %s cannot be undone: %s %s, and not by a file tool; put it back by hand, or move it away; nothing was changed", u.was.ID, shown, what)
	}
	return err
}

// makeFolders adds the folders that have to be there again, each once.
//
//go:noinline for size: it is called in many places
func (u *undoWork) makeFolders(folders []plannedStep) {
	for _, d := range folders {
		if _, ok := u.over[d.Path]; !ok {
			u.plan.steps = append(u.plan.steps, d)
			u.over[d.Path] = fileState{Kind: changeFolder}
		}
	}
}

func (u *undoWork) file(s changeStep) error {
	now, folders, err := u.state(s.Path)
	if err != nil {
		return err
	}
	if (now.Kind != "") == s.Existed && now.Sum == s.Before {
		return nil // it is so already, or was never changed
	}
	if (now.Kind != "") != (s.After != "") || now.Sum != s.After {
		return u.conflict(s.Path, "has been changed since")
	}
	u.makeFolders(folders)
	step := now.step(u.f.workspace.at(s.Path), s.Body, !s.Existed)
	if s.Existed {
		step.Kind, step.mode = s.Kind, &s.Mode
	}
	u.plan.steps = append(u.plan.steps, step)
	u.over[s.Path] = fileState{Kind: map[bool]string{true: s.Kind}[s.Existed], Sum: step.After, Body: s.Body}
	return nil
}

func (u *undoWork) folder(s changeStep) error {
	now, folders, err := u.state(s.Path)
	if err != nil || (now.Kind != "") == s.Existed {
		return err
	}
	step := plannedStep{place: u.f.workspace.at(s.Path), changeStep: changeStep{Path: s.Path, Kind: changeFolder, Existed: !s.Existed}}
	if s.Existed {
		u.makeFolders(append(folders, step))
		return nil
	}
	if now.Kind != changeFolder {
		return u.conflict(s.Path, "is no folder any more")
	}
	if left, err := u.left(s.Path); err != nil || left != "" {
		u.plan.notes = append(u.plan.notes, fmt.Sprintf("the folder %s stays, as it holds %s", u.f.showPath(s.Path), left))
		return err
	}
	step.Before = changeFolder
	u.plan.steps = append(u.plan.steps, step)
	u.over[s.Path] = fileState{}
	return nil
}

// left names something that will still be in a folder.
func (u *undoWork) left(abs string) (string, error) {
	s, _, err := u.f.workspace.at(filepath.Join(abs, "x")).spot()
	if err != nil {
		return "", err
	}
	defer s.close()
	entries, err := fs.ReadDir(s.dir.FS(), ".")
	for _, e := range entries {
		if st, ok := u.over[filepath.Join(abs, e.Name())]; !ok || st.Kind != "" {
			return e.Name(), err
		}
	}
	return "", err
}

func (u *undoWork) move(s changeStep) error {
	from, folders, err := u.state(s.Path)
	if err != nil {
		return err
	}
	to, _, err := u.state(s.Target)
	switch {
	case err != nil:
		return err
	case from.Kind != "" && to.Kind == "":
		return nil // never moved, or moved back
	case from.Kind != "" && from.Sum == s.Before && u.untouched(s.Target, to):
		return nil // what it was to be moved over is there too
	case from.Kind != "":
		return u.conflict(s.Path, "is there again")
	case to.Kind == "":
		return u.conflict(s.Target, "is gone")
	case s.After != "" && to.Sum != s.After:
		return u.conflict(s.Target, "has been changed since")
	}
	u.makeFolders(folders)
	u.plan.steps = append(u.plan.steps, to.move(u.f.workspace.at(s.Target), s.Path, 0))
	u.over[s.Path], u.over[s.Target] = to, fileState{}
	return nil
}

// untouched reports that a path still is what a step of the change would have taken away.
func (u *undoWork) untouched(abs string, now fileState) bool {
	return slices.ContainsFunc(u.was.Steps, func(s changeStep) bool {
		return s.Path == abs && s.Kind == now.Kind && s.Existed && s.Before == now.Sum
	})
}
