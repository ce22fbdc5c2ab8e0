// This file holds file_move and file_delete. A small file that is deleted is kept in the vault; a folder or a large file goes to tai's trash. Both work on the
// name itself: a symbolic link is moved or deleted, not what it leads to.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// moveTools gives the tools of this file.
func moveTools(f *fileChanger) []tool {
	return []tool{{
		Name: "file_move", Family: "files",
		Description: "Move or rename a file or folder. Never over something that is there, unless overwrite is set for a file. file_undo moves it back.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["src","dst"],"properties":{
"src":{"type":"string","minLength":1,"description":"File or folder to move, relative to the workspace root or absolute."},
"dst":{"type":"string","minLength":1,"description":"Its whole new path, not the folder to put it in; the folder has to exist."},
"overwrite":{"type":"boolean","description":"Replace a file that is there (default false)."}}}`),
		Output: json.RawMessage(fileOutput), Hints: toolHints{Destructive: true},
		judge: func(c toolCall) policyRequest {
			var args struct{ Src, Dst string }
			if json.Unmarshal(c.Args, &args) != nil {
				return policyRequest{Destructive: true}
			}
			return f.judge(c, f.entries(args.Src, args.Dst), func() (*changePlan, error) { return f.planMove(c) })
		},
		run: func(ctx context.Context, c toolCall) (toolResult, error) {
			return f.change(ctx, c, false, func() (*changePlan, error) { return f.planMove(c) })
		},
	}, {
		Name: "file_delete", Family: "files",
		Description: "Delete a file, or with recursive a folder: into tai's trash, from which file_undo takes it back; or with erase for good.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["path"],"properties":{
"path":{"type":"string","minLength":1,"description":"File or folder to delete, relative to the workspace root or absolute."},
"recursive":{"type":"boolean","description":"Also a folder with all that is in it (default false)."},
"erase":{"type":"boolean","description":"For good: nothing is kept, and file_undo cannot bring it back (default false)."}}}`),
		Output: json.RawMessage(fileOutput), Hints: toolHints{Destructive: true, Idempotent: true},
		judge: f.judgeDelete,
		run: func(ctx context.Context, c toolCall) (toolResult, error) {
			var args deleteArgs
			if err := json.Unmarshal(c.Args, &args); err != nil {
				return toolResult{}, err
			}
			if args.Erase {
				return f.erase(ctx, c, args)
			}
			return f.change(ctx, c, false, func() (*changePlan, error) { return f.planDelete(c, args) })
		},
	}}
}

// entries gives the places of names that can be resolved.
func (f *fileChanger) entries(names ...string) []place {
	var out []place
	for _, n := range names {
		if p, err := f.workspace.entry(n); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// entrySpot opens the folder of a name that may be moved or deleted, and looks at what it holds. The caller closes the spot unless there is an error.
func (f *fileChanger) entrySpot(path string, outside bool) (p place, s spot, st fileState, err error) {
	p, err = f.workspace.entry(path)
	if err == nil {
		err = joinErrors(p.check(outside), f.guard.check(p, true))
	}
	if err == nil {
		s, _, err = p.spot()
	}
	if err == nil {
		if st, err = s.look(); err != nil {
			s.close()
		}
	}
	if err != nil {
		err = errorf("%s: %w", visibleLine(path), err)
	}
	return p, s, st, err
}

func (f *fileChanger) planMove(c toolCall) (*changePlan, error) {
	var args struct {
		Src, Dst  string
		Overwrite bool
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return nil, err
	}
	src, a, from, err := f.entrySpot(args.Src, c.outside)
	if err != nil {
		return nil, err
	}
	defer a.close()
	dst, b, to, err := f.entrySpot(args.Dst, c.outside)
	if err != nil {
		return nil, err
	}
	defer b.close()
	plan := &changePlan{tool: "file_move"}
	same := from.Info != nil && to.Info != nil && os.SameFile(from.Info, to.Info) && sameFile(src.Abs, dst.Abs)
	shown := visibleLine(args.Dst)
	switch {
	case from.Kind == "":
		return nil, errorf("%s: no such file or folder", visibleLine(args.Src))
	case src.Abs == dst.Abs:
		return plan, nil
	case from.Kind == changeFolder && within(filepath.Dir(dst.Abs), src.Abs):
		return nil, errorf("%s lies in %s itself", shown, visibleLine(args.Src))
	case to.Kind == "" || same:
	case to.Kind == changeFolder:
		return nil, errorf("%s: is a folder; give the whole new path, as %s", shown, visibleLine(f.showPath(filepath.Join(dst.Abs, filepath.Base(src.Abs)))))
	case from.Kind == changeFolder:
		return nil, errorf("%s: exists already, and a folder is never moved over a file", shown)
	case !args.Overwrite:
		return nil, errorf("%s: exists already; overwrite replaces it", shown)
	case to.Sum == "":
		return nil, errorf("%s: has %d bytes, over %d, and could not be put back; delete it first", shown, to.Info.Size(), changeBodyMax)
	default:
		plan.steps = append(plan.steps, to.step(dst, nil, true))
	}
	plan.steps = append(plan.steps, from.move(src, dst.Abs, 0))
	return plan, nil
}

// move plans that what is at p goes to target. trashed is its size if that is in the trash.
func (st fileState) move(p place, target string, trashed int64) plannedStep {
	return plannedStep{place: p, changeStep: changeStep{Path: p.Abs, Target: target, Kind: changeMove, Existed: true, Mode: st.Info.Mode().Perm(), Size: trashed, Before: st.Sum, After: st.Sum}}
}

type deleteArgs struct {
	Path             string
	Recursive, Erase bool
}

// judgeDelete says what goes, and that it cannot come back where that is so.
func (f *fileChanger) judgeDelete(c toolCall) policyRequest {
	var args deleteArgs
	if json.Unmarshal(c.Args, &args) != nil {
		return policyRequest{Destructive: true}
	}
	req := f.judge(c, f.entries(args.Path), func() (*changePlan, error) { return f.planDelete(c, args) })
	if args.Erase {
		req.Danger = append(slices.Clone(req.Danger), "erases for good: nothing is kept, and it cannot be undone")
	}
	return req
}

func (f *fileChanger) planDelete(c toolCall, args deleteArgs) (*changePlan, error) {
	p, s, st, err := f.entrySpot(args.Path, c.outside)
	if err != nil {
		return nil, err
	}
	defer s.close()
	plan := &changePlan{tool: "file_delete"}
	defer func() {
		for i := range plan.steps {
			plan.steps[i].erased = args.Erase
		}
	}()
	shown := visibleLine(args.Path)
	files, bytes := 1, int64(0)
	switch {
	case st.Kind == "":
		return nil, errorf("%s: no such file or folder", shown)
	case st.Kind == changeFolder:
		if files, bytes, err = treeSize(s); err != nil {
			return nil, errorf("%s: %w", shown, err)
		}
		if files > 0 && !args.Recursive {
			return nil, errorf("%s: is a folder that holds %d files and folders; recursive deletes it with all of them", shown, files)
		}
	case st.Sum != "":
		plan.steps = append(plan.steps, st.step(p, nil, true))
		return plan, nil
	default:
		bytes = st.Info.Size()
	}
	if files == 0 {
		plan.steps = append(plan.steps, plannedStep{place: p, changeStep: changeStep{Path: p.Abs, Kind: changeFolder, Existed: true, Before: changeFolder, Mode: st.Info.Mode().Perm()}})
		return plan, nil
	}
	if bytes > trashMax && !args.Erase {
		return nil, errorf("%s: has %d bytes, and the trash takes %d; erase deletes it for good", shown, bytes, trashMax)
	}
	plan.steps = append(plan.steps, st.move(p, filepath.Join(f.trash, changeIDMark, filepath.Base(p.Abs)), bytes))
	plan.notes = append(plan.notes, fmt.Sprintf("%s: %d files and folders, %d bytes", p.Rel, files, bytes))
	return plan, nil
}

// erase deletes for good.
func (f *fileChanger) erase(ctx context.Context, c toolCall, args deleteArgs) (toolResult, error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return toolResult{}, ctx.Err()
	}
	plan, err := f.planDelete(c, args)
	if err != nil {
		return toolResult{}, err
	}
	if !f.unchanged(c, plan) {
		return toolResult{}, newError("what is there has changed since this was shown; nothing was done, call again")
	}
	_, s, st, err := f.entrySpot(args.Path, c.outside)
	if err != nil {
		return toolResult{}, err
	}
	defer s.close()
	if st.Kind == changeFolder && args.Recursive {
		err = s.dir.RemoveAll(s.name)
	} else {
		err = s.dir.Remove(s.name)
	}
	if err = joinErrors(bareError(err), s.sync()); err != nil {
		return toolResult{}, errorf("erase %s: %w", visibleLine(args.Path), err)
	}
	r := f.result(plan, "", false)
	r.Text = "erased for good; file_undo cannot bring it back\n" + r.Text
	return r, nil
}
