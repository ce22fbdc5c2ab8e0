// This file holds git_commit: what it would commit, as the person is shown it, and the commit itself, with the person's own hooks and filters.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	gitCommitTime = 300 * time.Second // one commit with its hooks
	gitShowTime   = 10 * time.Second  // for finding out what a commit would hold, before the person is asked
	gitMaxMessage = 64 << 10          // bytes of a commit message
	gitMaxPaths   = 500               // paths to stage
)

// gitTools gives the git tools over w.
func gitTools(w workspace, environ func() []string, goos string, now func() time.Time) []tool {
	g := gitToolset{gitRunner{newShellRunner(w, environ, goos)}, now}
	return append(g.readTools(), tool{
		Name: "git_commit", Family: "git",
		Description: "Stage the given paths, or all changes, and commit them. Hooks run. Without paths and all, what is staged already is taken.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["message"],"properties":{
"message":{"type":"string","minLength":1,"maxLength":%d,"description":"Commit message: a subject, an empty line, a body."},
"paths":{"type":"array","minItems":1,"maxItems":%d,"items":{"type":"string","minLength":1},"description":"Files or folders to stage first, new and deleted ones too."},
"all":{"type":"boolean","description":"Stage every change below the workspace root first, new files too; what git ignores stays out."}}}`, gitMaxMessage, gitMaxPaths)),
		Output: json.RawMessage(`{"type":"object","properties":{
"commit":{"type":"string","description":"Hash of the new commit."},"branch":{"type":"string","description":"Missing where no branch is checked out."},` + gitFilesSchema + `,
"output":{"type":"array","description":"What hooks said.","items":{"type":"object","properties":{"stream":{"type":"string"},"text":{"type":"string"}}}},` + toolRecordSchema + `}}`),
		Hints: toolHints{Destructive: true}, judge: g.judgeCommit, run: g.commit,
	})
}

type gitCommitArgs struct {
	Message string
	Paths   []string
	All     bool
}

// judgeCommit shows the message, the paths and what would be committed. It is judged as exactly this call: another message is another commit.
func (g gitToolset) judgeCommit(c toolCall) policyRequest {
	req := policyRequest{Destructive: true, Exact: true}
	var args gitCommitArgs
	if json.Unmarshal(c.Args, &args) != nil {
		return req
	}
	for _, path := range args.places() {
		req = g.judgeRepo(path, judgePlace(g.shell.workspace, path, req))
	}
	req.Lines = []consentLine{{Label: "commit message", Text: args.Message, Exact: true}}
	for _, path := range args.Paths {
		req.Lines = append(req.Lines, consentLine{Label: "stages these paths", Text: path, Exact: true, Quoted: true})
	}
	if req.Outside {
		return req // nothing there is looked at before it is allowed
	}
	ctx, cancel := context.WithTimeout(context.Background(), gitShowTime)
	defer cancel()
	r, spec, err := g.commitPlan(ctx, c, args)
	text := ""
	if err == nil {
		text, err = g.preview(ctx, r, spec)
	}
	if err != nil {
		req.Lines = append(req.Lines, consentLine{Label: "what would be committed cannot be shown", Text: err.Error()})
		return req
	}
	req.Lines = append(req.Lines, consentLine{Label: "in the repository", Text: r.top, Exact: true, Quoted: true}, consentLine{Label: "would be committed", Text: text})
	if hooks := r.commitHooks(g.shell.goos); len(hooks) > 0 {
		req.Danger = append(req.Danger, "it runs the hooks in "+visibleLine(r.hooks)+": "+strings.Join(hooks, ", "))
	}
	if len(r.runs) > 0 {
		req.Danger = append(req.Danger, "it runs programs that the repository's configuration names: "+visibleLine(strings.Join(r.runs, ", ")))
	}
	return req
}

// places are the paths that say which repository is meant.
func (a gitCommitArgs) places() []string {
	if len(a.Paths) == 0 {
		return []string{""}
	}
	return a.Paths
}

// commitPlan finds the repository and what is to be staged in it: nil for nothing.
func (g gitToolset) commitPlan(ctx context.Context, c toolCall, args gitCommitArgs) (r gitRepo, spec []string, err error) {
	switch {
	case strings.TrimSpace(args.Message) == "":
		return r, nil, newError(`property "message": there is nothing but blanks in it`)
	case strings.ContainsRune(args.Message, 0):
		return r, nil, newError(`property "message": it holds a NUL byte`)
	case args.All && len(args.Paths) > 0:
		return r, nil, newError("paths and all exclude each other")
	}
	for i, path := range args.places() {
		p, err := g.shell.workspace.locate(path)
		if err == nil {
			err = p.check(c.outside)
		}
		if err == nil && !c.outside && g.strays(p) != "" {
			err = newError("its .git leads outside the workspace root")
		}
		if err != nil {
			return r, nil, errorf("paths: %w", err)
		}
		if i == 0 {
			if r, _, err = g.open(ctx, p); err != nil {
				return r, nil, err
			}
		}
		rel, err := filepath.Rel(r.dir, p.Abs)
		if err != nil || !insideFolder(r.top, p.Abs) {
			return r, nil, errorf("paths: %s is in another repository than the first one", quoteClip(path))
		}
		if args.All {
			rel = "." // as far as the workspace reaches
		}
		if args.All || len(args.Paths) > 0 {
			spec = append(spec, filepath.ToSlash(rel))
		}
	}
	return r, spec, nil
}

// preview says what is staged and what spec would add to it.
func (g gitToolset) preview(ctx context.Context, r gitRepo, spec []string) (string, error) {
	var b textBuilder
	staged, err := g.changes(ctx, r, append(append([]string{"diff"}, g.diffWords(r, false)...), "--cached", "--"))
	if err != nil {
		return "", err
	}
	s, cut, err := g.statusOf(ctx, r, append([]string{"--"}, spec...))
	if err != nil {
		return "", err
	}
	b.WriteString(s.head() + "\n")
	if staged.Total > 0 {
		b.WriteString("staged already: ")
		staged.write(&b)
	}
	if spec != nil {
		more, err := g.changes(ctx, r, append(append(append([]string{"diff"}, g.diffWords(r, false)...), "--"), spec...))
		if err != nil {
			return "", err
		}
		if more.Total > 0 {
			b.WriteString("staged now: ")
			more.write(&b)
		}
		writeGitList(&b, "new files and folders", len(s.Untracked), func(i int) string { return visibleLine(s.Untracked[i]) })
	}
	if cut {
		b.WriteString("and more\n")
	}
	return b.String(), nil
}

func (g gitToolset) commit(ctx context.Context, c toolCall) (toolResult, error) {
	var args gitCommitArgs
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	r, spec, err := g.commitPlan(ctx, c, args)
	if err != nil {
		return gitResult(err)
	}
	before, err := g.readyToCommit(ctx, r, args, c.outside)
	if err != nil {
		return gitResult(err)
	}
	if spec != nil {
		if err := g.stage(ctx, r, spec); err != nil {
			return gitResult(err)
		}
	}
	now, _, err := g.statusOf(ctx, r, nil)
	switch {
	case err != nil:
		return gitResult(err)
	case len(now.Conflicts) > 0:
		return gitResult(&gitError{what: fmt.Sprintf("%s still in conflict, such as %s: nothing was committed", plural(len(now.Conflicts), "path"), visibleLine(now.Conflicts[0].Path)), hint: "resolve them, then name them in paths"})
	case len(now.Staged) == 0 && r.operation() == "":
		hint := "nothing changed"
		if len(now.Changed)+len(now.Untracked) > 0 {
			hint = "git_status shows what is changed; name it in paths, or give all"
		}
		return gitResult(&gitError{what: "nothing is staged, so there is nothing to commit", hint: hint})
	}
	out := &shellOutput{}
	end, err := g.write(ctx, r, gitCommitTime, args.Message, out, "commit", "--quiet", "--cleanup=whitespace", "--file=-")
	if err != nil {
		return gitResult(err)
	}
	return g.committed(context.WithoutCancel(ctx), r, before, end, out)
}

// readyToCommit makes sure that the commit has an author and holds nothing from outside the workspace that the call does not name, and gives
// the commit that is checked out now.
func (g gitToolset) readyToCommit(ctx context.Context, r gitRepo, args gitCommitArgs, outside bool) (head string, err error) {
	for _, who := range []string{"GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"} {
		if _, _, err := g.read(ctx, r, "var", who); err != nil {
			if e, ok := errors.AsType[*gitError](err); ok {
				e.what, e.hint = "git does not know who commits: "+e.what, "git config --global user.name and user.email set it, which is for the person to do"
			}
			return "", err
		}
	}
	s, cut, err := g.statusOf(ctx, r, nil)
	if err != nil {
		return "", err
	}
	if cut {
		return "", &gitError{what: "there are too many changes to see what would be committed", hint: "shell_run with git commits them"}
	}
	if args.All && len(s.Conflicts) > 0 {
		return "", &gitError{what: fmt.Sprintf("%s in conflict, such as %s: all would take them for resolved", plural(len(s.Conflicts), "path"), visibleLine(s.Conflicts[0].Path)), hint: "resolve them, then name them in paths"}
	}
	for _, change := range s.Staged {
		if filepath.IsAbs(filepath.FromSlash(change.Path)) && !outside {
			return "", &gitError{what: visibleLine(change.Path) + " is staged and lies outside the workspace root: the commit would hold it too", hint: "commit or unstage it first, or work with another --root"}
		}
	}
	return s.Head, nil
}

// stage puts what spec names into the index.
func (g gitToolset) stage(ctx context.Context, r gitRepo, spec []string) error {
	out := &shellOutput{}
	end, err := g.write(ctx, r, gitTime, strings.Join(spec, "\x00"), out, "--literal-pathspecs", "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul")
	switch {
	case err != nil:
		return err
	case end.timedOut:
		return &gitError{what: fmt.Sprintf("staging took longer than %s and was ended: nothing was committed", gitTime), hint: "a file .git/index.lock may be left"}
	case end.failed || end.exit != 0:
		var text textBuilder
		for _, p := range out.all() {
			text.WriteString(p.Text)
		}
		return gitFault("add", end.exit, text.String())
	}
	return nil
}

// write runs a git command that changes the repository, with the person's own hooks and filters.
func (g gitToolset) write(ctx context.Context, r gitRepo, limit time.Duration, stdin string, out *shellOutput, args ...string) (shellEnd, error) {
	program, err := g.program()
	if err != nil {
		return shellEnd{}, err
	}
	env, err := g.env(false)
	if err != nil {
		return shellEnd{}, err
	}
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// What git would leave running in the background waits for the next git of the person.
	cmd := exec.CommandContext(inner, program, append([]string{"--no-pager", "-c", "core.fsmonitor=", "-c", "gc.auto=0", "-c", "maintenance.auto=false"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = r.dir, env, strings.NewReader(stdin)
	return g.shell.finish(ctx, inner, cmd, out)
}

// committed says what came of the commit: git's own word is not enough, as it may have been ended behind it.
func (g gitToolset) committed(ctx context.Context, r gitRepo, before string, end shellEnd, out *shellOutput) (toolResult, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	parts := out.all()
	var said textBuilder
	appendShellText(&said, parts)
	s, _, err := g.statusOf(ctx, r, []string{"--", "."})
	if err != nil {
		return toolResult{}, errorf("it is not known whether git committed (%s): %w", end.status, err)
	}
	if s.Head == before {
		text := "nothing was committed, what was staged stays staged: git commit ended with " + end.status
		if end.timedOut {
			text += fmt.Sprintf(" at its time limit of %s", gitCommitTime)
		}
		hint := ""
		if hooks := r.commitHooks(g.shell.goos); len(hooks) > 0 {
			hint = "hooks that ran or could: " + strings.Join(hooks, ", ")
		}
		return toolResult{Text: text + "\n" + said.String(), IsError: true, Hint: hint}, nil
	}
	list, err := g.commits(ctx, r, gitLogArgs{N: 1, Rev: s.Head}, nil)
	if err != nil || len(list) == 0 {
		return toolResult{}, errorf("git committed %s, which cannot be read: %w", s.Head, err)
	}
	d, err := g.deltaOf(ctx, r, list[0], nil, false)
	if err != nil {
		return toolResult{}, errorf("git committed %s, which cannot be read: %w", s.Head, err)
	}
	on := "branch " + visibleLine(s.Branch)
	if s.Branch == "" {
		on = "no branch"
	}
	var b textBuilder
	fmt.Fprintf(&b, "committed %s on %s: %s\n", s.Head, on, visibleLine(list[0].Subject))
	d.write(&b)
	if end.failed || end.exit != 0 {
		fmt.Fprintf(&b, "git ended with %s behind the commit\n", end.status)
	}
	if said.Len() > 0 {
		b.WriteString("hooks said:\n" + said.String())
	}
	return toolResult{Text: b.String(), Structured: procJSON(struct {
		Commit string `json:"commit"`
		Branch string `json:"branch,omitempty"`
		gitDelta
		Output []shellPart `json:"output"`
	}{s.Head, s.Branch, d, mergeParts(parts)})}, nil
}
