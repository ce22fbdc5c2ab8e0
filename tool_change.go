// This file carries out changes to files so that they can be undone, also after a crash at any point: the state before is kept in the vault, then the files are
// changed, each by a rename, then the change is marked as done. What fails halfway is put back. It asks nobody and knows no tool.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	changeSettle = 10 * time.Minute // after which a change that was never marked as done is taken for a crashed one
	changeFinish = 20 * time.Second // for marking a change that was done, also when its call was interrupted
	changeShown  = 256              // plans remembered between the question about them and their run
)

// fileChanger makes the changes of all file tools of one run. It is safe for concurrent use; one change is made at a time.
type fileChanger struct {
	workspace workspace
	guard     fileGuard
	vault     func(context.Context) (*vault, error)
	trash     string // tai's trash: a folder a change
	now       func() time.Time
	reached   func(point string) // nil, but where a test looks at a state in between
	// alwaysCopy moves as between two disks.
	alwaysCopy bool
	turn       chan struct{} // one slot

	mu    sync.Mutex
	shown []shownPlan
}

// shownPlan is the mark of a plan that a person was asked about.
type shownPlan struct{ call, mark string }

// newFileChanger makes the changer of a workspace. own gives the folders of tai's own that nobody may change, the home among them.
func newFileChanger(w workspace, home string, own func() []string, v func(context.Context) (*vault, error), now func() time.Time) *fileChanger {
	return &fileChanger{workspace: w, guard: fileGuard{w, own}, vault: v, trash: filepath.Join(home, "trash"), now: now, turn: make(chan struct{}, 1)}
}

// plannedStep is a step before it is done.
type plannedStep struct {
	changeStep
	place, to place
	data      []byte       // what is to be there
	mode      *fs.FileMode // nil: that of any new file
	gone      bool         // nothing is to be there
	erased    bool         // nothing is kept
}

// changePlan is what one call wants to do.
type changePlan struct {
	tool   string
	steps  []plannedStep
	notes  []string
	undoes string
	done   []string // what is to be said of it, a line a file
}

// empty reports a plan that would leave everything as it is.
func (p *changePlan) empty() bool { return len(p.steps) == 0 }

// mark names what a plan does: the states before and after of every path.
func (p *changePlan) mark() string {
	var b textBuilder
	for _, s := range p.steps {
		fmt.Fprintf(&b, "%q %q %s %v %s %s\n", s.Path, s.Target, s.Kind, s.Existed, s.Before, s.After)
	}
	return sha256Hex([]byte(b.String()))
}

// remember keeps the mark of a plan that is shown, so that what runs is what was shown.
func (f *fileChanger) remember(call string, p *changePlan) {
	if call == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown = append(f.shown, shownPlan{call, p.mark()})
	if len(f.shown) > changeShown {
		f.shown = slices.Delete(f.shown, 0, 1)
	}
}

// unchanged reports whether the plan is the one that a person was asked about, if one was.
func (f *fileChanger) unchanged(c toolCall, p *changePlan) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.shown, func(s shownPlan) bool { return s.call == c.ID })
	if i < 0 {
		return true
	}
	mark := f.shown[i].mark
	f.shown = slices.Delete(f.shown, i, i+1)
	return !c.asked || mark == p.mark()
}

// lookup opens the folder of a place that may be changed, and looks at what is there. Folders that are missing are given as steps that make them; nothing is
// there then. The caller closes nothing.
func (f *fileChanger) lookup(p place, outside bool) (st fileState, folders []plannedStep, err error) {
	if err := joinErrors(p.check(outside), f.guard.check(p, false)); err != nil {
		return st, nil, err
	}
	s, missing, err := p.spot()
	if missing != "" && errors.Is(err, fs.ErrNotExist) {
		for dir := filepath.Dir(p.Abs); len(dir) >= len(missing); dir = filepath.Dir(dir) {
			folders = append(folders, plannedStep{changeStep: changeStep{Path: dir, Kind: changeFolder, After: changeFolder}, place: f.workspace.at(dir)})
		}
		slices.Reverse(folders)
		return st, folders, nil
	}
	if err != nil {
		return st, nil, err
	}
	defer s.close()
	st, err = s.state(changeBodyMax)
	return st, nil, err
}

// step plans that data is to be at p, or nothing where gone is set, in the place of st.
func (st fileState) step(p place, data []byte, gone bool) plannedStep {
	s := plannedStep{place: p, data: data, gone: gone}
	s.Path, s.Kind, s.Before = p.Abs, changeFile, st.Sum
	if st.Kind != "" {
		s.Existed, s.Kind, s.Body, s.Size = true, st.Kind, st.Body, int64(len(st.Body))
	}
	if st.Info != nil {
		s.Mode = st.Info.Mode().Perm()
		mode := s.Mode
		s.mode = &mode
	}
	if !gone {
		s.After = sha256Hex(data)
	}
	return s
}

// run makes the change of a plan. change is its id, "" when there was nothing to do.
func (f *fileChanger) run(ctx context.Context, c toolCall, plan func() (*changePlan, error)) (p *changePlan, change string, err error) {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return nil, "", ctx.Err()
	}
	p, err = plan()
	if err != nil || p.empty() {
		return p, "", err
	}
	if !f.unchanged(c, p) {
		return p, "", newError("what is there has changed since this change was shown, so that it would do something else; nothing was done, call again")
	}
	v, err := f.vault(ctx)
	if err != nil {
		return p, "", err
	}
	if err := f.sweep(ctx, v); err != nil {
		return p, "", err
	}
	change, err = f.make(ctx, v, c, p)
	return p, change, err
}

// make keeps, does and marks.
func (f *fileChanger) make(ctx context.Context, v *vault, c toolCall, p *changePlan) (string, error) {
	fc := fileChange{Session: c.Session, Call: c.ID, Tool: p.tool, Root: f.workspace.root, Undoes: p.undoes}
	total := 0
	for _, s := range p.steps {
		fc.Steps = append(fc.Steps, s.changeStep)
		total += len(s.Body)
	}
	if total > changeBodies {
		return "", errorf("the files hold %d bytes together, at most %d can be kept for undo", total, changeBodies)
	}
	dropped, err := v.keepChange(ctx, &fc)
	if err != nil {
		return "", err
	}
	for _, id := range dropped {
		if err := os.RemoveAll(filepath.Join(f.trash, id)); err != nil {
			p.notes = append(p.notes, "the trash of "+id+" could not be emptied: "+bareError(err).Error())
		}
	}
	f.point("kept")
	for i := range p.steps {
		p.steps[i].Target = fc.Steps[i].Target
	}
	w := changeWork{changer: f, id: fc.ID, plan: p, spots: make([]spot, len(p.steps))}
	defer w.close()
	err = w.do(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeFinish)
	defer cancel()
	if err != nil {
		if back := w.back(); back != nil {
			return fc.ID, errorf("%w; and putting back what was done failed: %w; file_undo with change %s tries it again", err, back, fc.ID)
		}
		return "", joinErrors(err, v.dropChange(ctx, fc.ID))
	}
	f.point("changed")
	if err := v.finishChange(ctx, &fc); err != nil {
		p.notes = append(p.notes, "the change is done, but not marked so: "+err.Error())
	}
	f.point("done")
	return fc.ID, nil
}

func (f *fileChanger) point(name string) {
	if f.reached != nil {
		f.reached(name)
	}
}

// changeWork is one change while it is done: what to put back, last first, if it fails.
type changeWork struct {
	changer *fileChanger
	id      string
	plan    *changePlan
	spots   []spot // of the steps, those that were opened
	undo    []func() error
}

// close ends the use of the folders.
func (w *changeWork) close() {
	for _, s := range w.spots {
		if s.dir != nil {
			s.close()
		}
	}
}

// open gives the spot of step i.
func (w *changeWork) open(i int) (s spot, err error) {
	if w.spots[i].dir == nil {
		w.spots[i], _, err = w.plan.steps[i].place.spot()
	}
	return w.spots[i], err
}

// back puts back what was done.
func (w *changeWork) back() error {
	var err error
	for _, u := range slices.Backward(w.undo) {
		err = joinErrors(err, u())
	}
	return err
}

// do makes the folders, writes all new content beside its place, and then gives everything its name. Until then no file has changed.
func (w *changeWork) do(ctx context.Context) error {
	for i, s := range w.plan.steps {
		if s.Kind == changeFolder && !s.Existed {
			at, err := w.open(i)
			if err != nil {
				return err
			}
			if err := at.dir.Mkdir(at.name, 0o777); err != nil { // less what the umask takes
				return errorf("make folder %s: %w", visibleLine(s.place.Rel), bareError(err))
			}
			w.undo = append(w.undo, at.remove)
			w.changer.point("folder")
		}
	}
	for i, s := range w.plan.steps {
		if s.Kind != changeFile || s.gone {
			continue
		}
		at, err := w.open(i)
		if err != nil {
			return err
		}
		temp := changeTemp(w.id, i)
		if err := at.stage(temp, s.data, s.mode); err != nil {
			return errorf("write beside %s: %w", visibleLine(s.place.Rel), err)
		}
		w.undo = append(w.undo, func() error { return ignoreMissing(at.dir.Remove(temp)) })
		w.changer.point("staged")
	}
	for i, s := range w.plan.steps {
		if s.Kind == changeFolder && !s.Existed {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		at, err := w.open(i)
		if err == nil {
			err = w.commit(ctx, at, s, i)
		}
		if err != nil {
			return errorf("%s: %w", visibleLine(s.place.Rel), err)
		}
		w.changer.point("renamed")
	}
	for i, s := range w.spots {
		if s.dir == nil {
			continue
		}
		if err := s.sync(); err != nil && !errors.Is(err, fs.ErrNotExist) { // a folder that this change removed
			return errorf("sync folder of %s: %w", visibleLine(w.plan.steps[i].place.Rel), bareError(err))
		}
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// remove takes a name away. On some systems os.Root wants to know whether it is a folder; Remove finds out.
func (s spot) remove() error {
	if err := s.dir.Remove(s.name); err != nil {
		return bareError(err)
	}
	return s.sync()
}

// commit brings one step about, if what is there is still what was kept.
func (w *changeWork) commit(ctx context.Context, at spot, s plannedStep, n int) error {
	switch s.Kind {
	case changeMove:
		m, err := w.changer.mover(at, s.changeStep, w.id, n)
		if err != nil {
			return err
		}
		defer m.close()
		if err := m.do(ctx); err != nil {
			return err
		}
		keep := context.WithoutCancel(ctx)
		w.undo = append(w.undo, func() error { return w.changer.moveBack(keep, s.changeStep, w.id, n) })
		return nil
	case changeFolder: // one that was made before and is empty again
		err := at.dir.Remove(at.name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return newError("is not empty, so that it cannot be removed")
		}
		w.undo = append(w.undo, func() error { return at.dir.Mkdir(at.name, 0o777) })
		return nil
	}
	now, err := at.state(changeBodyMax)
	if err != nil {
		return err
	}
	if now.Sum != s.Before || (now.Kind != "") != s.Existed {
		return newError("was changed by somebody else at this moment")
	}
	switch {
	case s.gone:
		err = bareError(at.dir.Remove(at.name))
	case s.Kind == changeLink:
		err = at.dir.Symlink(string(s.data), at.name)
	default:
		err = at.give(changeTemp(w.id, n), s.Existed)
	}
	if err != nil {
		return err
	}
	w.undo = append(w.undo, func() error { return at.restore(s.changeStep, changeTemp(w.id, n)) })
	return nil
}

// give gives temp its name. Where nothing was there before, nothing is written over: a link fails if the name is taken. File systems without hard links
// get the rename at once.
func (s spot) give(temp string, existed bool) error {
	if !existed {
		err := s.dir.Link(temp, s.name)
		if err == nil {
			return bareError(s.dir.Remove(temp))
		}
		if _, there := s.dir.Lstat(s.name); there == nil {
			return newError("was made by somebody else at this moment")
		}
	}
	return bareError(s.dir.Rename(temp, s.name))
}

// restore puts the state before a step back.
func (s spot) restore(step changeStep, temp string) error {
	switch {
	case !step.Existed:
		return ignoreMissing(s.dir.Remove(s.name))
	case step.Kind == changeLink:
		return s.dir.Symlink(string(step.Body), s.name)
	}
	mode := step.Mode
	if err := s.stage(temp, step.Body, &mode); err != nil {
		return err
	}
	if err := s.dir.Rename(temp, s.name); err != nil {
		return err
	}
	return s.sync()
}

// mover opens the other end of a move. In the trash a change has a folder of its own, which is made now.
func (f *fileChanger) mover(from spot, s changeStep, id string, n int) (fileMove, error) {
	m := fileMove{from: from, id: id, n: n, goos: runtime.GOOS, reached: f.point, alwaysCopy: f.alwaysCopy, caseOnly: strings.EqualFold(s.Path, s.Target)}
	if filepath.Dir(filepath.Dir(s.Target)) == f.trash {
		if err := os.MkdirAll(filepath.Dir(s.Target), 0o700); err != nil {
			return m, errorf("make the trash: %w", bareError(err))
		}
	}
	a, b := f.workspace.at(s.Path), f.workspace.at(s.Target)
	var err error
	if m.to, _, err = b.spot(); err != nil {
		return m, err
	}
	if !a.Outside && !b.Outside {
		m.relFrom, m.relTo = a.Rel, b.Rel
		if m.inside, err = os.OpenRoot(f.workspace.root); err != nil {
			m.to.close()
			return m, bareError(err)
		}
	}
	return m, nil
}

// moveBack takes a move back that was done within this change.
func (f *fileChanger) moveBack(ctx context.Context, s changeStep, id string, n int) error {
	s.Path, s.Target = s.Target, s.Path
	from, _, err := f.workspace.at(s.Path).spot()
	if err != nil {
		return err
	}
	defer from.close()
	m, err := f.mover(from, s, id, n)
	if err != nil {
		return err
	}
	defer m.close()
	return m.do(ctx)
}

// settle clears up after a change whose process was killed: what was on its way gets one of its two names, and what was written beside its place goes.
func (f *fileChanger) settle(c fileChange) error {
	var all error
	for i, s := range c.Steps {
		at, missing, err := f.workspace.at(s.Path).spot()
		if missing != "" {
			continue
		}
		if err != nil {
			all = joinErrors(all, err)
			continue
		}
		err = ignoreMissing(at.dir.Remove(changeTemp(c.ID, i)))
		if s.Kind == changeMove {
			m, merr := f.mover(at, s, c.ID, i)
			if merr == nil {
				merr = m.settle()
				m.close()
			}
			err = joinErrors(err, merr)
		}
		at.close()
		all = joinErrors(all, err)
	}
	return all
}

// sweep settles the changes of this workspace that were left behind long ago.
func (f *fileChanger) sweep(ctx context.Context, v *vault) error {
	list, err := v.unfinishedChanges(ctx, f.workspace.root, f.now().Add(-changeSettle))
	if err != nil {
		return err
	}
	for _, c := range list {
		if err := f.settle(c); err != nil {
			continue // it can still be undone, which tries it again
		}
		c.Undoes = "" // whether all of it was done is not known; what it undid can be undone again
		if err := v.finishChange(ctx, &c); err != nil {
			return err
		}
	}
	return nil
}
