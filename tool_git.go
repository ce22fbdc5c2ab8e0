// This file holds the git tools that read: git_status, git_diff and git_log. They run the real git so that nothing which the repository names
// is executed, and stay below the workspace root where the repository reaches above it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	gitListMax   = 200 // entries of each list in a result; the counts are of all
	gitLogCount  = 20  // commits unless the call says otherwise
	gitLogMax    = 200 // the most that it may say
	gitMaxRev    = 300 // bytes of a revision
	gitMaxFilter = 300 // bytes of a filter of git_log
	gitBodyMax   = 4 << 10
)

const gitFilesSchema = `"files":{"type":"array","description":"Paths with their counts of lines.","items":{"type":"object","properties":{
"path":{"type":"string"},"from":{"type":"string"},"added":{"type":"integer"},"deleted":{"type":"integer"},"binary":{"type":"boolean"}}}},
"files_changed":{"type":"integer","description":"Paths in all."},"added":{"type":"integer","description":"Lines in all."},"deleted":{"type":"integer","description":"Lines in all."}`

// gitToolset holds what the git tools share.
type gitToolset struct {
	gitRunner
	now func() time.Time
}

// readTools gives those that read.
func (g gitToolset) readTools() []tool {
	const path = `"path":{"type":"string","description":"File or folder to look at (default: the whole repository, as far as it is in the workspace)."}`
	const change = `"items":{"type":"object","properties":{"path":{"type":"string"},"change":{"type":"string"},"from":{"type":"string"},"submodule":{"type":"boolean"}}}`
	reads := toolHints{ReadOnly: true, Idempotent: true}
	return []tool{{
		Name: "git_status", Family: "git", Core: true,
		Description: "Show the state of a git repository: branch, ahead and behind, staged, changed, conflicting and untracked files. Paths are relative to the workspace root.",
		Schema:      json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` + path + `}}`),
		Output: json.RawMessage(`{"type":"object","properties":{
"repository":{"type":"string","description":"Top folder of the work tree."},
"branch":{"type":"string","description":"Missing where no branch is checked out."},
"head":{"type":"string","description":"Commit that is checked out; missing before the first one."},
"upstream":{"type":"string"},"ahead":{"type":"integer"},"behind":{"type":"integer"},
"operation":{"type":"string","description":"What is under way: merge, rebase, cherry-pick, revert or bisect."},
"stashes":{"type":"integer"},"clean":{"type":"boolean"},
"counts":{"type":"object","description":"Of all, also of what the lists leave out.","properties":{"staged":{"type":"integer"},"changed":{"type":"integer"},"conflicts":{"type":"integer"},"untracked":{"type":"integer"}}},
"staged":{"type":"array","description":"Changes in the index.",` + change + `},
"changed":{"type":"array","description":"Changes in the work tree that are not staged.",` + change + `},
"conflicts":{"type":"array","description":"Paths to be merged.",` + change + `},
"untracked":{"type":"array","description":"Paths git does not know; a folder ends with a slash.","items":{"type":"string"}},` + toolRecordSchema + `}}`),
		Hints: reads, judge: g.judge, run: g.status,
	}, {
		Name: "git_diff", Family: "git", Core: true,
		Description: "Show a diff: what is changed and not staged, what is staged, or against a revision or between two (A..B). Paths are relative to the workspace root. Untracked files are not in it.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"properties":{
"rev":{"type":"string","minLength":1,"maxLength":%d,"description":"Revision to compare with, or two of them as A..B or A...B (default: the index)."},
"staged":{"type":"boolean","description":"What is staged, against rev or the last commit."},
%s,"stat":{"type":"boolean","description":"Only the files with their counts of lines."}}}`, gitMaxRev, path)),
		Output: json.RawMessage(`{"type":"object","properties":{` + gitFilesSchema + `,"truncated":{"type":"boolean","description":"The diff was too long and its rest is missing."},` + toolRecordSchema + `}}`),
		Hints:  reads, judge: g.judge, run: g.diff,
	}, {
		Name: "git_log", Family: "git",
		Description: "List commits, the last first: the last commits of a path, by message or time, or one commit with its patch.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"properties":{
"n":{"type":"integer","minimum":1,"maximum":%d,"description":"How many commits at most (default %d)."},
%s,
"grep":{"type":"string","minLength":1,"maxLength":%d,"description":"Only commits whose message fits this extended regular expression, case ignored."},
"since":{"type":"string","minLength":1,"maxLength":%d,"description":"Only commits after this time: 2026-01-31, or 2 weeks ago."},
"rev":{"type":"string","minLength":1,"maxLength":%d,"description":"Revision to start from, or a range A..B (default: HEAD)."},
"patch":{"type":"boolean","description":"Show only the newest commit that fits, with its patch."}}}`, gitLogMax, gitLogCount, path, gitMaxFilter, gitMaxFilter, gitMaxRev)),
		Output: json.RawMessage(`{"type":"object","properties":{
"commits":{"type":"array","description":"Newest first.","items":{"type":"object","properties":{"hash":{"type":"string"},"parents":{"type":"array","items":{"type":"string"}},
"author":{"type":"string"},"email":{"type":"string"},"date":{"type":"string"},"refs":{"type":"string"},"subject":{"type":"string"},"body":{"type":"string"}}}},
"more":{"type":"boolean","description":"There are further commits."},` + gitFilesSchema + `,"truncated":{"type":"boolean","description":"The patch was too long and its rest is missing."},` + toolRecordSchema + `}}`),
		Hints: reads, judge: g.judge, run: g.log,
	}}
}

// judge judges a reading call by its path, and by where the repository keeps its data.
func (g gitToolset) judge(c toolCall) policyRequest {
	req := judgePath(g.shell.workspace, c)
	var args struct{ Path string }
	if json.Unmarshal(c.Args, &args) != nil {
		return req
	}
	return g.judgeRepo(args.Path, req)
}

// judgeRepo adds to req that the repository at path leads outside.
func (g gitToolset) judgeRepo(path string, req policyRequest) policyRequest {
	p, err := g.shell.workspace.locate(path)
	if err != nil {
		return req // the tool fails on it
	}
	if to := g.strays(p); to != "" {
		req.Outside = true
		req.Danger = append(req.Danger, "the .git there leads to a repository outside the workspace root: "+visibleLine(to))
	}
	return req
}

// at finds the repository for a call. spec narrows a command to the call's path, or to the workspace where the repository reaches above it.
func (g gitToolset) at(ctx context.Context, c toolCall, path string) (r gitRepo, spec []string, err error) {
	p, err := g.shell.workspace.locate(path)
	if err == nil {
		err = p.check(c.outside)
	}
	if err == nil && !c.outside && g.strays(p) != "" {
		err = newError("its .git leads outside the workspace root")
	}
	if err != nil {
		return r, nil, errorf("path: %w", err)
	}
	r, spot, err := g.open(ctx, p)
	if err != nil {
		return r, nil, err
	}
	if path == "" && spot == "." && r.dir == r.top {
		return r, nil, nil
	}
	return r, []string{"--", spot}, nil
}

// name gives a path of the work tree as the other tools take it: relative to the workspace root, or absolute outside.
func (g gitToolset) name(r gitRepo, path string) string {
	abs := filepath.Join(r.top, filepath.FromSlash(path))
	shown := abs
	if rel, err := filepath.Rel(g.shell.workspace.root, abs); err == nil && filepath.IsLocal(rel) {
		shown = rel
	}
	if strings.HasSuffix(path, "/") {
		shown += "/"
	}
	return filepath.ToSlash(shown)
}

// checkRev refuses what git could take for an option, and objects named by a path: a path has its own argument.
func checkRev(rev string) error {
	switch {
	case strings.HasPrefix(rev, "-"):
		return errorf("property %q: %s begins with -, which no revision does", "rev", quoteClip(rev))
	case strings.ContainsRune(rev, ':'):
		return errorf("property %q: %s holds a colon; give the path as path", "rev", quoteClip(rev))
	case strings.IndexFunc(rev, func(r rune) bool { return unicode.IsControl(r) || r == '*' || r == '?' || r == '[' }) >= 0:
		return errorf("property %q: %s is no revision", "rev", quoteClip(rev))
	}
	return nil
}

func (g gitToolset) status(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct{ Path string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	r, spec, err := g.at(ctx, c, args.Path)
	if err != nil {
		return gitResult(err)
	}
	s, cut, err := g.statusOf(ctx, r, spec)
	if err != nil {
		return gitResult(err)
	}
	return g.statusResult(r, s, cut, len(spec) > 0), nil
}

// statusOf asks for the status of what spec names.
func (g gitToolset) statusOf(ctx context.Context, r gitRepo, spec []string) (gitStatus, bool, error) {
	out, cut, err := g.read(ctx, r, append([]string{"status", "--porcelain=v2", "-z", "--branch", "--show-stash", "--ahead-behind", "--untracked-files=normal",
		"--ignore-submodules=dirty", "--find-renames"}, spec...)...)
	if err != nil {
		return gitStatus{}, false, err
	}
	s := parseGitStatus(string(out))
	for _, list := range [][]gitChange{s.Staged, s.Changed, s.Conflicts} {
		for i := range list {
			list[i].Path = g.name(r, list[i].Path)
			if list[i].From != "" {
				list[i].From = g.name(r, list[i].From)
			}
		}
	}
	for i, path := range s.Untracked {
		s.Untracked[i] = g.name(r, path)
	}
	return s, cut, nil
}

// operation names what is under way in the repository.
func (r gitRepo) operation() string {
	for _, o := range [][2]string{{"rebase-merge", "rebase"}, {"rebase-apply", "rebase"}, {"MERGE_HEAD", "merge"}, {"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"BISECT_LOG", "bisect"}} {
		if existsAt(filepath.Join(r.gitDir, o[0])) {
			return o[1]
		}
	}
	return ""
}

// head says in words what is checked out.
func (s gitStatus) head() string {
	line := "branch " + visibleLine(s.Branch)
	switch {
	case s.Branch == "" && s.Head != "":
		line = "no branch, at commit " + s.Head[:min(12, len(s.Head))]
	case s.Head == "":
		line += ", without commits yet"
	}
	switch {
	case s.Upstream == "":
	case s.Ahead == nil:
		line += ", upstream " + visibleLine(s.Upstream) + " is gone"
	case *s.Ahead == 0 && *s.Behind == 0:
		line += ", level with " + visibleLine(s.Upstream)
	default:
		line += fmt.Sprintf(", %d ahead of and %d behind %s", *s.Ahead, *s.Behind, visibleLine(s.Upstream))
	}
	return line
}

func (g gitToolset) statusResult(r gitRepo, s gitStatus, cut, narrowed bool) toolResult {
	type counts struct {
		Staged    int `json:"staged"`
		Changed   int `json:"changed"`
		Conflicts int `json:"conflicts"`
		Untracked int `json:"untracked"`
	}
	n := counts{len(s.Staged), len(s.Changed), len(s.Conflicts), len(s.Untracked)}
	clean := n == counts{}
	var b textBuilder
	b.WriteString(s.head() + "\n")
	if r.top != g.shell.workspace.root {
		fmt.Fprintf(&b, "repository %s\n", visibleLine(r.top))
	}
	if op := r.operation(); op != "" {
		fmt.Fprintf(&b, "a %s is under way\n", op)
	}
	if s.Stash > 0 {
		fmt.Fprintf(&b, "stashes: %d\n", s.Stash)
	}
	if clean && narrowed {
		b.WriteString("nothing changed there\n")
	} else if clean {
		b.WriteString("nothing changed\n")
	}
	for _, list := range []struct {
		name string
		all  []gitChange
	}{{"staged", s.Staged}, {"changed, not staged", s.Changed}, {"conflicts", s.Conflicts}} {
		writeGitList(&b, list.name, len(list.all), func(i int) string { return list.all[i].line() })
	}
	writeGitList(&b, "untracked", n.Untracked, func(i int) string { return visibleLine(s.Untracked[i]) })
	if cut {
		fmt.Fprintf(&b, "[git said more than %d bytes: the counts are lower bounds; name a path]\n", gitMaxOutput)
	}
	doc := struct {
		Repository string      `json:"repository"`
		Branch     string      `json:"branch,omitempty"`
		Head       string      `json:"head,omitempty"`
		Upstream   string      `json:"upstream,omitempty"`
		Ahead      *int        `json:"ahead,omitempty"`
		Behind     *int        `json:"behind,omitempty"`
		Operation  string      `json:"operation,omitempty"`
		Stashes    int         `json:"stashes"`
		Clean      bool        `json:"clean"`
		Counts     counts      `json:"counts"`
		Staged     []gitChange `json:"staged"`
		Changed    []gitChange `json:"changed"`
		Conflicts  []gitChange `json:"conflicts"`
		Untracked  []string    `json:"untracked"`
	}{r.top, s.Branch, s.Head, s.Upstream, s.Ahead, s.Behind, r.operation(), s.Stash, clean && !cut, n, gitFirst(s.Staged), gitFirst(s.Changed), gitFirst(s.Conflicts), gitFirst(s.Untracked)}
	return toolResult{Text: b.String(), Structured: procJSON(doc)}
}

// gitFirst is the part of a list that a result shows.
func gitFirst[T any](list []T) []T { return orEmpty(list[:min(len(list), gitListMax)]) }

func writeGitList(b *textBuilder, name string, n int, line func(int) string) {
	if n == 0 {
		return
	}
	fmt.Fprintf(b, "%s: %d\n", name, n)
	for i := range min(n, gitListMax) {
		b.WriteString("  " + line(i) + "\n")
	}
	if n > gitListMax {
		fmt.Fprintf(b, "  [%d more]\n", n-gitListMax)
	}
}

func (c gitChange) line() string {
	line := c.Change + "  " + visibleLine(c.Path)
	if c.From != "" {
		line = c.Change + "  " + visibleLine(c.From) + " -> " + visibleLine(c.Path)
	}
	if c.Submodule {
		line += " (submodule)"
	}
	return line
}

func (g gitToolset) diff(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct {
		Rev, Path    string
		Staged, Stat bool
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	if err := checkRev(args.Rev); err != nil {
		return toolResult{}, err
	}
	r, spec, err := g.at(ctx, c, args.Path)
	if err != nil {
		return gitResult(err)
	}
	words := g.diffWords(r, !args.Stat)
	if args.Staged {
		words = append(words, "--cached")
	}
	if args.Rev != "" {
		words = append(words, args.Rev)
	}
	if spec == nil {
		spec = []string{"--"} // a revision is never taken for a path
	}
	d, err := g.changes(ctx, r, append([]string{"diff"}, append(words, spec...)...))
	if err != nil {
		return gitResult(err)
	}
	var b textBuilder
	d.write(&b)
	return toolResult{Text: b.String(), Structured: procJSON(d)}, nil
}

// diffWords are the options with which a difference comes as changes reads it, with names as name gives them.
func (g gitToolset) diffWords(r gitRepo, patch bool) []string {
	words := append(gitDiffing(), "--numstat", "-z", "--find-renames")
	if patch {
		words = append(words, "--patch")
	}
	prefix := ""
	switch root := g.shell.workspace.root; {
	case r.dir != r.top:
		words = append(words, "--relative")
	case insideFolder(root, r.top) && r.top != root:
		prefix = g.name(r, ".") + "/"
	}
	return append(words, "--src-prefix=a/"+prefix, "--dst-prefix=b/"+prefix)
}

// gitDelta is a difference: paths with their counts, and the patch, if one was asked for.
type gitDelta struct {
	Files   []gitFile `json:"files"`
	Total   int       `json:"files_changed"`
	Added   int       `json:"added"`
	Deleted int       `json:"deleted"`
	Cut     bool      `json:"truncated,omitempty"`
	patch   string
}

// changes runs a command that has diffWords.
func (g gitToolset) changes(ctx context.Context, r gitRepo, words []string) (gitDelta, error) {
	out, cut, err := g.read(ctx, r, words...)
	if err != nil {
		return gitDelta{}, err
	}
	files, patch := parseGitCounts(string(out))
	d := gitDelta{Total: len(files), Cut: cut, patch: strings.ToValidUTF8(patch, "\uFFFD")}
	base := r
	base.top = r.dir // what the paths are relative to
	for i := range files {
		files[i].Path = g.name(base, files[i].Path)
		if files[i].From != "" {
			files[i].From = g.name(base, files[i].From)
		}
		d.Added, d.Deleted = d.Added+files[i].Added, d.Deleted+files[i].Deleted
	}
	d.Files = gitFirst(files)
	return d, nil
}

// write says what changed in all, then file by file, then the patch.
func (d gitDelta) write(b *textBuilder) {
	if d.Total == 0 {
		b.WriteString("no differences\n")
		return
	}
	fmt.Fprintf(b, "%s changed, +%d -%d\n", plural(d.Total, "file"), d.Added, d.Deleted)
	for _, f := range d.Files {
		b.WriteString("  " + f.line() + "\n")
	}
	if n := d.Total - len(d.Files); n > 0 {
		fmt.Fprintf(b, "  [%d more]\n", n)
	}
	if d.patch != "" {
		b.WriteString("\n" + d.patch)
	}
	if d.Cut {
		fmt.Fprintf(b, "\n[cut after %d bytes: the counts are lower bounds; name a path]\n", gitMaxOutput)
	}
}

func (f gitFile) line() string {
	name := visibleLine(f.Path)
	if f.From != "" {
		name = visibleLine(f.From) + " -> " + name
	}
	if f.Binary {
		return "binary  " + name
	}
	return fmt.Sprintf("+%d -%d  %s", f.Added, f.Deleted, name)
}

type gitLogArgs struct {
	N                      int
	Path, Grep, Since, Rev string
	Patch                  bool
}

func (g gitToolset) log(ctx context.Context, c toolCall) (toolResult, error) {
	var args gitLogArgs
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	if err := checkRev(args.Rev); err != nil {
		return toolResult{}, err
	}
	switch {
	case args.Patch && args.N > 1:
		return toolResult{}, errorf("property %q: a patch is shown of one commit; rev names another than the newest", "n")
	case args.Patch:
		args.N = 1
	case args.N == 0:
		args.N = gitLogCount
	}
	r, spec, err := g.at(ctx, c, args.Path)
	if err != nil {
		return gitResult(err)
	}
	list, err := g.commits(ctx, r, args, spec)
	if err != nil {
		return gitResult(err)
	}
	doc := struct {
		Commits []gitCommit `json:"commits"`
		More    bool        `json:"more"`
		*gitDelta
	}{Commits: list[:min(len(list), args.N)], More: len(list) > args.N}
	var b textBuilder
	for i := range doc.Commits {
		commit := &doc.Commits[i]
		commit.write(&b, args.Patch)
		if len(commit.Body) > gitBodyMax {
			commit.Body = brief(commit.Body, gitBodyMax)
		}
	}
	if len(list) == 0 {
		b.WriteString("no commits\n")
	}
	if args.Patch && len(list) > 0 {
		d, err := g.deltaOf(ctx, r, list[0], spec, true)
		if err != nil {
			return gitResult(err)
		}
		doc.gitDelta = &d
		d.write(&b)
	} else if doc.More {
		b.WriteString("[there are more; n, rev or since go further]\n")
	}
	return toolResult{Text: b.String(), Structured: procJSON(doc)}, nil
}

// commits lists one commit more than asked for, if there is one. A repository without commits has none to list.
func (g gitToolset) commits(ctx context.Context, r gitRepo, args gitLogArgs, spec []string) ([]gitCommit, error) {
	words := []string{"log", gitCommitFormat, "--no-color", "--decorate=short", "--encoding=UTF-8", "--max-count=" + strconv.Itoa(args.N+1)}
	if args.Grep != "" {
		words = append(words, "--extended-regexp", "--regexp-ignore-case", "--grep="+args.Grep)
	}
	if args.Since != "" {
		since, err := g.since(ctx, r, args.Since)
		if err != nil {
			return nil, err
		}
		words = append(words, since)
	}
	if args.Rev != "" {
		words = append(words, args.Rev)
	}
	if spec == nil {
		spec = []string{"--"}
	}
	out, _, err := g.read(ctx, r, append(words, spec...)...)
	if e, ok := errors.AsType[*gitError](err); ok && args.Rev == "" && strings.Contains(e.text, "does not have any commits yet") {
		return []gitCommit{}, nil
	}
	if err != nil {
		return nil, err
	}
	return parseGitCommits(string(out)), nil
}

// since turns a time into an option of git log. Git takes any text, and what it cannot read for now.
func (g gitToolset) since(ctx context.Context, r gitRepo, text string) (string, error) {
	out, _, err := g.read(ctx, r, "rev-parse", "--since="+text)
	if err != nil {
		return "", err
	}
	option := strings.TrimSpace(string(out))
	at, err := strconv.ParseInt(strings.TrimPrefix(option, "--max-age="), 10, 64)
	if err != nil || at > g.now().Unix()-2 {
		return "", &gitError{what: fmt.Sprintf("property %q: %s is no time in the past that git understands", "since", quoteClip(text)), hint: "such as 2026-01-31, or 2 weeks ago"}
	}
	return option, nil
}

// deltaOf gives what a commit changed against its first parent.
func (g gitToolset) deltaOf(ctx context.Context, r gitRepo, commit gitCommit, spec []string, patch bool) (gitDelta, error) {
	words := append([]string{"diff-tree", "-r"}, g.diffWords(r, patch)...)
	if len(commit.Parents) == 0 {
		words = append(words, "--root", "--no-commit-id")
	} else {
		words = append(words, commit.Parents[0])
	}
	return g.changes(ctx, r, append(append(words, commit.Hash), spec...))
}

// write shows a commit in one line, or whole.
func (c gitCommit) write(b *textBuilder, whole bool) {
	refs := ""
	if c.Refs != "" {
		refs = " (" + visibleLine(c.Refs) + ")"
	}
	if !whole {
		fmt.Fprintf(b, "%s %s %s%s: %s\n", c.Hash[:min(12, len(c.Hash))], visibleLine(c.Date), visibleLine(c.Author), refs, visibleLine(c.Subject))
		return
	}
	fmt.Fprintf(b, "commit %s%s\nauthor %s <%s>\ndate %s\n", c.Hash, refs, visibleLine(c.Author), visibleLine(c.Email), visibleLine(c.Date))
	if len(c.Parents) > 1 {
		fmt.Fprintf(b, "a merge; what it changed against its first parent, %s\n", c.Parents[0])
	}
	b.WriteString("\n" + strings.ToValidUTF8(strings.TrimSpace(c.Subject+"\n\n"+c.Body), "\uFFFD") + "\n\n")
}
