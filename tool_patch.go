// This file holds file_patch: a unified diff over one or many files, all of it or nothing. Reading and applying are done by patch_parse.go and patch_apply.go.
package main

import (
	"context"
	"encoding/json"
	"fmt"
)

// patchTools gives file_patch.
func patchTools(f *fileChanger) []tool {
	return []tool{{
		Name: "file_patch", Family: "files", Core: true,
		Description: "Apply a unified diff (of git, or diff -u) to one or many files: all of it or nothing. Creates, deletes, renames and copies files too. file_undo takes it back as one change.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["patch"],"properties":{
"patch":{"type":"string","minLength":1,"maxLength":%d,"description":"The diff, with --- and +++ lines and @@ hunks whose counts are right. Lines must be as they are in the files; only their place may differ."},
"strip":{"type":"integer","minimum":0,"maximum":20,"description":"Leading folders to take off the names (default: the a/ and b/ of git, nothing else)."},
"dry_run":{"type":"boolean","description":"Only say what would change (default false)."}}}`, patchMaxBytes)),
		Output: json.RawMessage(fileOutput), Hints: toolHints{Destructive: true},
		judge: f.judgePatch,
		run: func(ctx context.Context, c toolCall) (toolResult, error) {
			args, files, err := patchArgs(c)
			if err != nil {
				return toolResult{}, err
			}
			return f.change(ctx, c, args.DryRun, func() (*changePlan, error) { return f.planPatch(c, files) })
		},
	}}
}

type patchCall struct {
	Patch  string
	Strip  *int
	DryRun bool `json:"dry_run"`
}

func patchArgs(c toolCall) (patchCall, []patchFile, error) {
	var args patchCall
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return args, nil, err
	}
	strip := -1
	if args.Strip != nil {
		strip = *args.Strip
	}
	files, err := parsePatch(args.Patch, strip)
	return args, files, err
}

// judgePatch judges a patch by every name in it. A dry run only reads.
func (f *fileChanger) judgePatch(c toolCall) policyRequest {
	args, files, err := patchArgs(c)
	if err != nil {
		return policyRequest{Destructive: true}
	}
	var places []place
	for _, pf := range files {
		for _, name := range []string{pf.Old, pf.New} {
			if name == "" {
				continue
			}
			if p, err := f.workspace.locate(name); err == nil {
				places = append(places, p)
			}
		}
	}
	req := f.judge(c, places, func() (*changePlan, error) { return f.planPatch(c, files) })
	req.Destructive = !args.DryRun
	return req
}

// planPatch works out what every file comes to. Two parts about one file are refused, as the second would have to be read against what is not there yet.
func (f *fileChanger) planPatch(c toolCall, files []patchFile) (*changePlan, error) {
	plan := &changePlan{tool: "file_patch"}
	made := map[string]bool{}
	for _, pf := range files {
		steps, notes, err := f.planPatchFile(c, pf)
		if err != nil {
			return nil, errorf("%w; nothing was changed", err)
		}
		for _, s := range steps {
			if s.Kind == changeFolder && made[s.Path] {
				continue
			}
			made[s.Path] = true
			for _, other := range plan.steps {
				if other.Path == s.Path || other.Existed && s.Existed && sameFile(other.Path, s.Path) {
					return nil, errorf("patch line %d: a second part for %s; put both into one, or apply them one after the other; nothing was changed", pf.Line, visibleLine(f.showPath(s.Path)))
				}
			}
			plan.steps = append(plan.steps, s)
		}
		name := pf.New
		if name == "" {
			name = pf.Old
		}
		for _, n := range notes {
			plan.notes = append(plan.notes, name+": "+n)
		}
	}
	return plan, nil
}

// planPatchFile is the part of a patch about one file.
func (f *fileChanger) planPatchFile(c toolCall, pf patchFile) (steps []plannedStep, notes []string, err error) {
	fail := func(format string, args ...any) ([]plannedStep, []string, error) {
		return nil, nil, errorf("patch line %d: "+format, append([]any{pf.Line}, args...)...)
	}
	if err := f.chooseNames(c, &pf); err != nil {
		return fail("%w", err)
	}
	var from, to fileState
	var fromPlace, toPlace place
	var folders []plannedStep
	if pf.Old != "" {
		if fromPlace, from, err = f.existing(c, pf.Old); err != nil {
			return fail("%w", err)
		}
	}
	if pf.New != "" {
		if toPlace, to, folders, err = f.target(c, pf.New); err != nil {
			return fail("%w", err)
		}
		if to.Kind != "" && pf.Old != pf.New {
			return fail("%s: exists already, and the patch wants to make it", visibleLine(pf.New))
		}
	}
	text, applied, err := applyHunks(string(from.Body), pf.Hunks)
	if err != nil {
		return fail("%s: %w", visibleLine(pf.Old+map[bool]string{true: pf.New}[pf.Old == ""]), err)
	}
	notes = append(pf.Notes, applied...)
	if len(text) > changeBodyMax {
		return fail("%s would have %d bytes, at most %d", visibleLine(pf.New), len(text), changeBodyMax)
	}
	switch {
	case pf.New == "" && text != "":
		return fail("%s: the patch deletes it, but it holds more than the patch takes away", visibleLine(pf.Old))
	case pf.New == "":
		return []plannedStep{from.step(fromPlace, nil, true)}, notes, nil
	case pf.Old == "":
		return append(folders, to.step(toPlace, []byte(text), false)), notes, nil
	case pf.Old != pf.New:
		s := to.step(toPlace, []byte(text), false)
		mode := from.Info.Mode().Perm()
		s.mode = &mode
		if steps = append(folders, s); pf.Rename {
			steps = append(steps, from.step(fromPlace, nil, true))
		}
		return steps, notes, nil
	case text == string(from.Body):
		return nil, notes, nil
	}
	return []plannedStep{from.step(fromPlace, []byte(text), false)}, notes, nil
}

// chooseNames settles which file a part is about where the patch has two names and says nothing of a rename: that which exists, and of two the shorter one, as
// patch(1) does. It also finds out what diff -N makes and deletes.
func (f *fileChanger) chooseNames(c toolCall, pf *patchFile) error {
	if pf.Old == "" || pf.New == "" || pf.Rename || pf.Copy {
		return nil
	}
	there := func(name string) (bool, error) {
		_, st, _, err := f.target(c, name)
		return st.Kind != "", err
	}
	name := pf.New
	if pf.Old != pf.New {
		old, oerr := there(pf.Old)
		now, nerr := there(pf.New)
		if oerr != nil || nerr != nil {
			return joinErrors(oerr, nerr)
		}
		if old && (!now || len(pf.Old) < len(pf.New)) {
			name = pf.Old
		}
	}
	is, err := there(name)
	if err != nil {
		return err
	}
	fresh := len(pf.Hunks) == 1 && pf.Hunks[0].OldLines == 0 && pf.Hunks[0].OldStart == 0
	empties := len(pf.Hunks) == 1 && pf.Hunks[0].NewLines == 0 && pf.Hunks[0].NewStart == 0
	switch {
	case !is && fresh:
		pf.Old, pf.New = "", name
	case is && empties && pf.NewEpoch:
		pf.Old, pf.New = name, ""
	default:
		pf.Old, pf.New = name, name
	}
	return nil
}
