// This file holds shell_inspect: one program that only reads, started with its words as they are. There is no shell, so nothing in them is
// expanded; which programs and options only read is the classifier's to say.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

const (
	inspectTime     = 30 * time.Second // one program unless the call says otherwise
	inspectMaxTime  = 120              // seconds, the most it may ask for
	inspectMaxWords = 200              // words of a call
	inspectMaxWord  = 8 << 10          // bytes of one
)

// inspectTools gives shell_inspect over w.
func inspectTools(w workspace, environ func() []string, goos string) []tool {
	i := inspector{gitRunner{newShellRunner(w, environ, goos)}}
	return []tool{{
		Name: "shell_inspect", Family: "shell",
		Description: "Run one program that only reads (ls, cat, head, grep, wc, stat, du, diff, git log …) without a shell: no operators, patterns or variables. What may change something is refused; shell_run does that.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["argv"],"properties":{
"argv":{"type":"array","minItems":1,"maxItems":%d,"items":{"type":"string","maxLength":%d},"description":"Program and its arguments, each a word of its own."},
"cwd":{"type":"string","description":"Folder to run in (default: the workspace root)."},
"timeout_s":{"type":"integer","minimum":1,"maximum":%d,"description":"Seconds after which it is ended (default %d)."}}}`, inspectMaxWords, inspectMaxWord, inspectMaxTime, int(inspectTime/time.Second))),
		Output: shellResultSchema(),
		Hints:  toolHints{ReadOnly: true, Idempotent: true},
		judge:  i.judge, run: i.run,
	}}
}

type inspector struct{ gitRunner }

type inspectArgs struct {
	Argv    []string
	Cwd     string
	Timeout int `json:"timeout_s"`
}

// judge lets the call run unasked, as what does more than read is refused by the tool itself. The command is given so that a workspace's deny of
// it holds here too.
func (i inspector) judge(c toolCall) policyRequest {
	var req policyRequest
	var args inspectArgs
	if json.Unmarshal(c.Args, &args) != nil || len(args.Argv) == 0 {
		return req
	}
	req.Dir = i.shell.folder(args.Cwd)
	if i.refuses(args.Argv, args.Cwd) != "" {
		return req // nobody is asked about what does not run anyway
	}
	words := make([]string, len(args.Argv))
	for n, word := range args.Argv {
		words[n] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	req.Command = strings.Join(words, " ")
	if out := i.shell.leavesRoot([][]string{args.Argv}, req.Dir, true, false); out != "" {
		req.Outside = true
		req.Danger = append(req.Danger, "a link leads outside the workspace root: "+visibleLine(out))
	}
	if args.Argv[0] == "git" {
		if p, err := i.shell.workspace.locate(args.Cwd); err == nil {
			if to := i.strays(p); to != "" {
				req.Outside = true
				req.Danger = append(req.Danger, "the .git there leads to a repository outside the workspace root: "+visibleLine(to))
			}
		}
	}
	return judgePlace(i.shell.workspace, args.Cwd, req)
}

// refuses gives the reason why a program is not known to only read, "" when it is.
func (i inspector) refuses(argv []string, cwd string) string {
	words := make([]shellWord, len(argv))
	for n, word := range argv {
		words[n] = shellWord{text: word, quoted: true}
	}
	dir := i.shell.folder(cwd)
	if why := (shellScope{Root: i.shell.workspace.root, Dir: dir, Trusted: i.shell.trusted}).judge(words); why != "" {
		return why
	}
	searched := [][]string{argv}
	if argv[0] == "git" { // which is kept from running what a repository names
		searched = nil
	}
	if secret := shellReadsBelow(searched, dir, cwd); secret != "" {
		return "it is not known to only read, because of " + visibleLine(secret)
	}
	return ""
}

func (i inspector) run(ctx context.Context, c toolCall) (toolResult, error) {
	var args inspectArgs
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	if slices.ContainsFunc(args.Argv, func(w string) bool { return strings.ContainsRune(w, 0) }) {
		return toolResult{}, newError("argv holds a NUL byte")
	}
	if why := i.refuses(args.Argv, args.Cwd); why != "" {
		return toolResult{Hint: "shell_run runs it, after asking"}, errorf("refused: %s; only what is known to read runs here", why)
	}
	program, _ := i.shell.find(args.Argv[0]) // trusted: the judgement above says so
	if program == "" {
		return toolResult{}, errorf("%s is not found in PATH", quoteClip(args.Argv[0]))
	}
	dir, env, err := i.shell.place(c, "", args.Cwd, nil)
	if err != nil {
		return toolResult{}, err
	}
	argv := args.Argv[1:]
	if args.Argv[0] == "git" {
		if argv, env, err = i.harden(ctx, dir, argv); err != nil {
			return gitResult(err)
		}
	}
	limit := inspectTime
	if args.Timeout > 0 {
		limit = time.Duration(args.Timeout) * i.shell.unit
	}
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(inner, program, argv...)
	cmd.Args[0], cmd.Dir, cmd.Env = args.Argv[0], dir.Abs, env
	return i.shell.outcome(ctx, inner, cmd, limit)
}

// harden gives the words and variables with which git runs nothing that the repository names. The words passed the classifier, which knows no
// option that would undo it.
func (i inspector) harden(ctx context.Context, dir place, argv []string) (words, env []string, err error) {
	if env, err = i.env(true); err != nil {
		return nil, nil, err
	}
	env = append(env, "GIT_LITERAL_PATHSPECS=0") // here its patterns are the caller's own
	words = gitReading()
	var r gitRepo
	r.dir = dir.Abs
	if err := i.config(ctx, r).read(&r); err != nil {
		return nil, nil, err
	}
	for _, setting := range r.off {
		words = append(words, "-c", setting)
	}
	if argv[0] == "--no-pager" {
		argv = argv[1:]
	}
	words = append(words, argv[0])
	switch argv[0] {
	case "diff", "log", "show":
		words = append(words, gitDiffing()...)
	case "status":
		words = append(words, "--ignore-submodules=dirty")
	case "blame":
		words = append(words, "--no-textconv")
	}
	return append(words, argv[1:]...), env, nil
}
