// This file holds the native tools that write and edit one file: file_read_hashed, file_write, file_edit and file_edit_anchored. What they do to a text is
// decided by edit_text.go, how it gets onto the disk by tool_change.go.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	fileWriteMax = 8 << 20 // characters of a text that a tool is given
	fileMaxEdits = 1000    // edits of one file_edit_anchored
)

// writeTools gives the tools of this file.
func writeTools(f *fileChanger) []tool {
	path := `"path":{"type":"string","minLength":1,"description":"File, relative to the workspace root or absolute."}`
	hints := toolHints{Destructive: true}
	return []tool{{
		Name: "file_read_hashed", Family: "files",
		Description: "Read a text file as lines with LINE#HASH anchors, for file_edit_anchored, and its SHA-256, for if_hash.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["path"],"properties":{`+path+`,
"offset":{"type":"integer","minimum":1,"description":"First line to show, counted from 1 (default 1)."},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"How many lines to show at most (default %d)."}}}`, fileMaxLines, fileLines)),
		Output: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"sha256":{"type":"string","description":"SHA-256 of the whole file."},
"lines":{"type":"integer","description":"Lines of the whole file."},"bytes":{"type":"integer","description":"Bytes of the whole file."},` + toolRecordSchema + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		judge: func(c toolCall) policyRequest { return judgePath(f.workspace, c) },
		run:   f.readHashed,
	}, {
		Name: "file_write", Family: "files", Core: true,
		Description: "Write a whole file: create a new one (an existing one is refused), replace it, or append to it. It is written byte for byte as given; file_undo puts the state before back.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["path","content"],"properties":{`+path+`,
"content":{"type":"string","maxLength":%d,"description":"The text to write; end it with a line end if the file should end with one."},
"mode":{"type":"string","enum":["create","replace","append"],"description":"create: only a file that is not there yet (default); replace: the whole file, or a new one (default with if_hash); append: at the end, or a new one."},
"if_hash":{"type":"string","pattern":"^[0-9a-f]{64}$","description":"Write only if the file still has this SHA-256, as file_read_hashed and dir_list give it."},
"mkdirs":{"type":"boolean","description":"Make the folders that are missing (default false)."}}}`, fileWriteMax)),
		Output: json.RawMessage(fileOutput), Hints: toolHints{Destructive: true, Idempotent: true},
		judge: func(c toolCall) policyRequest { return f.judgeOne(c, f.planWrite) },
		run: func(ctx context.Context, c toolCall) (toolResult, error) {
			return f.change(ctx, c, false, func() (*changePlan, error) { return f.planWrite(c) })
		},
	}, {
		Name: "file_edit", Family: "files", Core: true,
		Description: "Replace one exact text in a file by another. It must stand there once, unless all is set. Line ends of the file are kept. file_undo puts the state before back.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["path","old","new"],"properties":{`+path+`,
"old":{"type":"string","minLength":1,"maxLength":%[1]d,"description":"The text to replace, exactly as it is in the file, without line numbers; with lines around it so that it stands there once."},
"new":{"type":"string","maxLength":%[1]d,"description":"The text to put in its place; empty removes it."},
"all":{"type":"boolean","description":"Replace it wherever it stands (default false)."}}}`, fileWriteMax)),
		Output: json.RawMessage(fileOutput), Hints: hints,
		judge: func(c toolCall) policyRequest { return f.judgeOne(c, f.planEdit) },
		run: func(ctx context.Context, c toolCall) (toolResult, error) {
			return f.change(ctx, c, false, func() (*changePlan, error) { return f.planEdit(c) })
		},
	}, {
		Name: "file_edit_anchored", Family: "files",
		Description: "Edit lines of a file by the LINE#HASH anchors of file_read_hashed: replace, insert after, delete; all edits or none. A line that has changed since is named and nothing is done.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["path","edits"],"properties":{`+path+`,
"edits":{"type":"array","minItems":1,"maxItems":%d,"description":"The edits; all anchors are those of the file before any of them.","items":{"type":"object","additionalProperties":false,"required":["op","anchor"],"properties":{
"op":{"type":"string","enum":["replace","insert_after","delete"],"description":"What to do with the lines."},
"anchor":{"type":"string","maxLength":40,"description":"LINE#HASH of the line, or of the first of several; 0 with insert_after is the place before the first line."},
"to_anchor":{"type":"string","maxLength":40,"description":"LINE#HASH of the last line (default: one line only)."},
"text":{"type":"string","maxLength":%d,"description":"The lines to put in, for replace and insert_after; a line end behind the last one does not count."}}}}}}`, fileMaxEdits, fileWriteMax)),
		Output: json.RawMessage(fileOutput), Hints: hints,
		judge: func(c toolCall) policyRequest { return f.judgeOne(c, f.planAnchored) },
		run: func(ctx context.Context, c toolCall) (toolResult, error) {
			return f.change(ctx, c, false, func() (*changePlan, error) { return f.planAnchored(c) })
		},
	}}
}

// judgeOne judges a call that changes the file of its path argument.
func (f *fileChanger) judgeOne(c toolCall, plan func(toolCall) (*changePlan, error)) policyRequest {
	var args struct{ Path string }
	if json.Unmarshal(c.Args, &args) != nil {
		return policyRequest{Destructive: true}
	}
	p, err := f.workspace.locate(args.Path)
	if err != nil {
		return policyRequest{Destructive: true}
	}
	return f.judge(c, []place{p}, func() (*changePlan, error) { return plan(c) })
}

// target finds the file that a call names, and what is there. An error says the path.
func (f *fileChanger) target(c toolCall, path string) (p place, st fileState, folders []plannedStep, err error) {
	p, err = f.workspace.locate(path)
	if err != nil {
		return p, st, nil, err
	}
	if strings.HasSuffix(path, "/") {
		return p, st, nil, errorf("%s: a name that ends in / is that of a folder", visibleLine(path))
	}
	st, folders, err = f.lookup(p, c.outside)
	switch {
	case err != nil:
	case st.Kind == changeFolder:
		err = newError("is a folder")
	case st.Kind == changeLink:
		err = newError("a symbolic link was put in its place")
	case st.Kind == changeFile && st.Info.Mode().Perm()&0o200 == 0:
		err = errorf("is write-protected (mode %04o)", st.Info.Mode().Perm())
	}
	if err != nil {
		err = errorf("%s: %w", visibleLine(path), err)
	}
	return p, st, folders, err
}

// existing is target for a file that has to be there and be text.
func (f *fileChanger) existing(c toolCall, path string) (place, fileState, error) {
	p, st, _, err := f.target(c, path)
	if err == nil && st.Kind == "" {
		err = errorf("%s: no such file", visibleLine(path))
	}
	if err == nil {
		if terr := editableText(st.Body); terr != nil {
			err = errorf("%s: %w", visibleLine(path), terr)
		}
	}
	return p, st, err
}

// planFor is the plan that brings text into a file, with what there is to be said of it.
func planFor(tool string, p place, st fileState, folders []plannedStep, text string) (*changePlan, error) {
	plan := &changePlan{tool: tool}
	if st.Kind != "" && text == string(st.Body) {
		return plan, nil
	}
	if len(text) > changeBodyMax {
		return nil, errorf("%s would have %d bytes, at most %d", visibleLine(p.Rel), len(text), changeBodyMax)
	}
	plan.steps = append(folders, st.step(p, []byte(text), false))
	if st.Info != nil && fileLinks(st.Info) > 1 {
		plan.notes = append(plan.notes, fmt.Sprintf("%s had %d names (hard links); the others keep the old content", p.Rel, fileLinks(st.Info)))
	}
	return plan, nil
}

func (f *fileChanger) planWrite(c toolCall) (*changePlan, error) {
	var args struct {
		Path, Content, Mode string
		IfHash              string `json:"if_hash"`
		Mkdirs              bool
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return nil, err
	}
	p, st, folders, err := f.target(c, args.Path)
	if err != nil {
		return nil, err
	}
	shown := visibleLine(args.Path)
	text, old := args.Content, string(st.Body)
	switch {
	case len(folders) > 0 && !args.Mkdirs:
		return nil, errorf("%s: the folder %s does not exist; mkdirs makes it", shown, visibleLine(f.showPath(folders[len(folders)-1].Path)))
	case args.IfHash != "" && st.Kind == "":
		return nil, errorf("%s: if_hash is given and the file does not exist", shown)
	case args.IfHash != "" && st.Sum != args.IfHash:
		return nil, errorf("%s: has changed: its SHA-256 is now %s, not that of if_hash; read it again", shown, st.Sum)
	case args.Mode == "append":
		if usesCRLF(old) {
			text = toCRLF(text)
		}
		text = old + text
	case st.Kind != "" && (args.Mode == "create" || args.Mode == "" && args.IfHash == "") && text != old:
		return nil, errorf("%s: exists already, with %d bytes; mode replace writes over it, append adds to it, file_edit changes a part", shown, len(st.Body))
	}
	plan, err := planFor("file_write", p, st, folders, text)
	if err == nil && !plan.empty() && st.Kind != "" {
		switch {
		case args.Mode == "append" && old != "" && !strings.HasSuffix(old, "\n"):
			plan.notes = append(plan.notes, "the file did not end with a line end; the text goes on with its last line")
		case args.Mode != "append" && strings.HasPrefix(old, utf8BOM) && !strings.HasPrefix(text, utf8BOM):
			plan.notes = append(plan.notes, "the byte order mark at the start of the file goes")
		case args.Mode != "append" && usesCRLF(old) && !strings.Contains(text, "\r\n"):
			plan.notes = append(plan.notes, "the lines of the file ended in CR LF and now end in LF")
		}
	}
	return plan, err
}

func (f *fileChanger) planEdit(c toolCall) (*changePlan, error) {
	var args struct {
		Path, Old, New string
		All            bool
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return nil, err
	}
	p, st, err := f.existing(c, args.Path)
	if err != nil {
		return nil, err
	}
	text, err := replaceText(string(st.Body), args.Old, args.New, args.All)
	if err != nil {
		return nil, errorf("%s: %w", visibleLine(args.Path), err)
	}
	return planFor("file_edit", p, st, nil, text)
}

func (f *fileChanger) planAnchored(c toolCall) (*changePlan, error) {
	var args struct {
		Path  string
		Edits []anchoredEdit
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return nil, err
	}
	p, st, err := f.existing(c, args.Path)
	if err != nil {
		return nil, err
	}
	text, err := editAnchored(string(st.Body), args.Edits)
	if err != nil {
		return nil, errorf("%s: %w", visibleLine(args.Path), err)
	}
	return planFor("file_edit_anchored", p, st, nil, text)
}

// readHashed shows lines with their anchors.
func (f *fileChanger) readHashed(ctx context.Context, c toolCall) (toolResult, error) {
	args := struct {
		Path          string
		Offset, Limit int
	}{Offset: 1, Limit: fileLines}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	p, err := f.workspace.locate(args.Path)
	if err != nil {
		return toolResult{}, err
	}
	file, size, err := openFile(p, c.outside)
	if err != nil {
		return toolResult{}, errorf("%s: %w", visibleLine(args.Path), err)
	}
	defer file.Close()
	if size > changeBodyMax {
		return toolResult{}, errorf("%s: has %d bytes; files over %d cannot be edited, file_read shows them", visibleLine(args.Path), size, changeBodyMax)
	}
	var body bytes.Buffer
	if _, err := io.Copy(&body, io.LimitReader(file, changeBodyMax)); err != nil {
		return toolResult{}, errorf("read %s: %w", visibleLine(args.Path), bareError(err))
	}
	if err := editableText(body.Bytes()); err != nil {
		return toolResult{}, errorf("%s: %w", visibleLine(args.Path), err)
	}
	sum := sha256Hex(body.Bytes())
	lines := splitLines(strings.TrimPrefix(body.String(), utf8BOM))
	if args.Offset > max(1, len(lines)) {
		return toolResult{}, errorf("offset %d is past the end: the file has %s", args.Offset, plural(len(lines), "line"))
	}
	var out textBuilder
	n := args.Offset - 1
	for ; n < len(lines) && n < args.Offset-1+args.Limit && out.Len() < fileTextMax; n++ {
		text := strings.TrimRight(lines[n], "\r\n")
		if !utf8.ValidString(text) {
			text = strings.ToValidUTF8(text, "\uFFFD")
		}
		fmt.Fprintf(&out, "%d#%s\t%s\n", n+1, lineHash(lines[n]), clip(text, fileLineMax))
	}
	if left := len(lines) - n; left > 0 {
		fmt.Fprintf(&out, "[%d lines left out; go on with offset %d]\n", left, n+1)
	}
	fmt.Fprintf(&out, "[%s, %d bytes, sha256 %s]\n", plural(len(lines), "line"), body.Len(), sum)
	doc, err := json.Marshal(map[string]any{"path": p.Rel, "sha256": sum, "lines": len(lines), "bytes": body.Len()})
	return toolResult{Text: out.String(), Structured: doc}, err
}
