// This file says what a planned change comes to: to the person who is asked about it, and to the caller when it is done. Both see the same difference. It changes
// nothing.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

const fileDiffMax = 8 << 10 // bytes of the diff in a result; a person who is asked sees all of it

// fileTally is one file of a change as results tell it.
type fileTally struct {
	Path    string `json:"path"`
	To      string `json:"to,omitempty"` // of a move
	Action  string `json:"action"`       // created, changed, deleted, moved, folder made, folder removed
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256,omitempty"`
	diff    string
}

// fileOutput is the outputSchema of the changing tools.
const fileOutput = `{"type":"object","properties":{
"change":{"type":"string","description":"Id of the change for file_undo; missing when nothing was changed or nothing can be undone."},
"path":{"type":"string","description":"The file, if there is one only."},
"added":{"type":"integer","description":"Lines that came, in all files."},
"removed":{"type":"integer","description":"Lines that went."},
"bytes":{"type":"integer","description":"Bytes of the file now."},
"sha256":{"type":"string","description":"SHA-256 of the file now, for if_hash."},
"dry_run":{"type":"boolean","description":"Nothing was changed; this is what would be."},
"files":{"type":"array","description":"Each file that changed.","items":{"type":"object","properties":{
"path":{"type":"string"},"to":{"type":"string"},"action":{"type":"string"},"added":{"type":"integer"},"removed":{"type":"integer"},"bytes":{"type":"integer"},"sha256":{"type":"string"}}}},
"notes":{"type":"array","description":"What else there is to know.","items":{"type":"string"}},` + toolRecordSchema + `}}`

// showPath is a path as results and diffs have it: relative to the root where it lies in it.
//
//go:noinline for size: it is called in many places
func (f *fileChanger) showPath(abs string) string { return f.workspace.at(abs).Rel }

// tally counts and compares one step.
func (f *fileChanger) tally(s plannedStep) fileTally {
	t := fileTally{Path: f.showPath(s.Path), Action: "changed", Bytes: int64(len(s.data)), SHA256: s.After}
	switch {
	case s.erased:
		t.Action, t.SHA256, t.Bytes = "erased for good", "", s.Size
		if s.Kind != changeFile {
			return t
		}
	case s.Kind == changeMove:
		t.Action, t.To, t.Bytes = "moved", f.showPath(s.Target), s.Size
		if within(s.Target, f.trash) {
			t.Action, t.To = "moved to the trash", ""
		} else if within(s.Path, f.trash) {
			t.Action, t.Path, t.To = "taken out of the trash", t.To, ""
		}
		return t
	case s.Kind == changeFolder:
		t.Action, t.SHA256 = "folder made", ""
		if s.Existed {
			t.Action = "folder removed"
		}
		return t
	case s.gone:
		t.Action = "deleted"
	case !s.Existed:
		t.Action = "created"
	}
	old, now := t.Path, t.Path
	if !s.Existed {
		old = ""
	}
	if s.gone {
		now = ""
	}
	switch {
	case s.Kind == changeLink && s.gone:
		t.diff = fmt.Sprintf("symbolic link to %s\n", visibleLine(string(s.Body)))
	case s.Kind == changeLink:
		t.diff = fmt.Sprintf("symbolic link to %s\n", visibleLine(string(s.data)))
	case isBinary(s.Body[:min(len(s.Body), binarySniff)]) || isBinary(s.data[:min(len(s.data), binarySniff)]):
		t.diff = fmt.Sprintf("binary: %d bytes before, %d after (SHA-256 %s)\n", len(s.Body), len(s.data), s.After)
	default:
		t.diff, t.Added, t.Removed = unifiedDiff(old, now, string(s.Body), string(s.data))
	}
	return t
}

// line says what was done to a file.
func (t fileTally) line() string {
	s := visibleLine(t.Path) + ": " + t.Action
	if t.To != "" {
		s += " to " + visibleLine(t.To)
	}
	if t.Added+t.Removed > 0 {
		s += fmt.Sprintf(", lines +%d -%d", t.Added, t.Removed)
	}
	if t.SHA256 != "" {
		s += fmt.Sprintf(", %d bytes", t.Bytes)
	}
	return s
}

// lines is the plan as a person is asked about it: every byte that comes and goes.
func (f *fileChanger) lines(p *changePlan) []consentLine {
	var out []consentLine
	for _, s := range p.steps {
		t := f.tally(s)
		out = append(out, consentLine{Label: "file by file", Text: t.line(), Exact: true})
		if t.diff != "" {
			out = append(out, consentLine{Label: "the change", Text: t.diff})
		}
	}
	for _, n := range p.notes {
		out = append(out, consentLine{Label: "note", Text: n, Exact: true})
	}
	return out
}

// judge asks the policy about a change: places say whether it stays in the workspace, and only then the files are looked at, to show what will change. A plan
// that fails is left to the tool; its arguments are shown.
func (f *fileChanger) judge(c toolCall, places []place, plan func() (*changePlan, error)) policyRequest {
	req := policyRequest{Destructive: true}
	for _, p := range places {
		if p.Outside {
			req.Outside = true
			req.Danger = append(req.Danger, "lies outside the workspace root: "+visibleLine(p.Abs))
		}
		if strings.Contains("/"+p.Rel+"/", "/.git/") {
			req.Danger = append(req.Danger, "lies in .git, whose settings and hooks decide what git runs: "+visibleLine(p.Rel))
		}
	}
	if req.Outside {
		return req
	}
	p, err := plan()
	if err != nil || p.empty() {
		return req
	}
	req.Lines = f.lines(p)
	f.remember(c.ID, p)
	return req
}

// change runs a plan and tells what came of it.
func (f *fileChanger) change(ctx context.Context, c toolCall, dry bool, plan func() (*changePlan, error)) (toolResult, error) {
	if dry {
		p, err := plan()
		if err != nil {
			return toolResult{}, err
		}
		return f.result(p, "", true), nil
	}
	p, change, err := f.run(ctx, c, plan)
	if err != nil {
		return toolResult{}, err
	}
	return f.result(p, change, false), nil
}

// result tells what was done, with the beginning of the difference.
func (f *fileChanger) result(p *changePlan, change string, dry bool) toolResult {
	doc := struct {
		Change  string      `json:"change,omitempty"`
		Path    string      `json:"path,omitempty"`
		Added   int         `json:"added"`
		Removed int         `json:"removed"`
		Bytes   int64       `json:"bytes"`
		SHA256  string      `json:"sha256,omitempty"`
		Dry     bool        `json:"dry_run,omitempty"`
		Files   []fileTally `json:"files"`
		Notes   []string    `json:"notes,omitempty"`
	}{Change: change, Dry: dry, Files: []fileTally{}, Notes: p.notes}
	var text, diff textBuilder
	if dry {
		text.WriteString("dry run, nothing was changed; this is what would be:\n")
	}
	single := -1
	for _, s := range p.steps {
		t := f.tally(s)
		doc.Files = append(doc.Files, t)
		doc.Added, doc.Removed = doc.Added+t.Added, doc.Removed+t.Removed
		text.WriteString(t.line() + "\n")
		diff.WriteString(t.diff)
		if s.Kind != changeFolder {
			single = map[bool]int{true: len(doc.Files) - 1, false: len(p.steps)}[single < 0]
		}
	}
	if single >= 0 && single < len(doc.Files) {
		t := doc.Files[single]
		doc.Path, doc.Bytes, doc.SHA256 = t.Path, t.Bytes, t.SHA256
	}
	if p.empty() {
		text.WriteString("nothing to change: it is so already\n")
	}
	for _, n := range p.notes {
		text.WriteString("note: " + visibleLine(n) + "\n")
	}
	if change != "" {
		fmt.Fprintf(&text, "change %s; file_undo puts it back\n", change)
	}
	if whole := diff.String(); len(whole) > fileDiffMax {
		head := headOf(whole, fileDiffMax)
		fmt.Fprintf(&text, "%s\n[%d more bytes of the difference left out]\n", head, len(whole)-len(head))
	} else {
		text.WriteString(whole)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic("tool_plan: marshal of plain strings and numbers: " + err.Error())
	}
	return toolResult{Text: text.String(), Structured: b}
}
