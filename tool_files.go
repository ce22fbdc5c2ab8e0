// This file holds the native tools that read files. Every access goes through an os.Root; where a path lies is decided by workspace.go, and
// what lies outside runs only after the policy has said so.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

const (
	fileLines    = 2000           // lines of one file_read unless it says how many
	fileMaxLines = 100_000        // the most it may ask for
	fileLineMax  = 4000           // bytes of one line that are shown
	fileTextMax  = 60_000         // bytes of one answer, so that it stays inline (mcpResultMax); the next offset goes on
	fileScanMax  = int64(1) << 30 // bytes that are read to count lines
)

// fileTools gives the tools of this file over w.
func fileTools(w workspace) []tool {
	return []tool{{
		Name: "file_read", Family: "files", Core: true,
		Description: "Read a text file as numbered lines, or learn size and type of a binary file.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["path"],"properties":{
"path":{"type":"string","minLength":1,"description":"File to read, relative to the workspace root or absolute."},
"offset":{"type":"integer","minimum":1,"description":"First line to show, counted from 1 (default 1)."},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"How many lines to show at most (default %d)."}}}`, fileMaxLines, fileLines)),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		judge: func(c toolCall) policyRequest { return judgePath(w, c) },
		run:   func(ctx context.Context, c toolCall) (toolResult, error) { return fileRead(ctx, w, c) },
	}}
}

func fileRead(ctx context.Context, w workspace, c toolCall) (toolResult, error) {
	args := struct {
		Path          string
		Offset, Limit int
	}{Offset: 1, Limit: fileLines}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	p, err := w.locate(args.Path)
	if err != nil {
		return toolResult{}, err
	}
	f, size, err := openFile(p, c.outside)
	if err != nil {
		return toolResult{}, errorf("%s: %w", visibleLine(args.Path), err)
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 64<<10)
	head, err := r.Peek(binarySniff)
	if err != nil && err != io.EOF {
		return toolResult{}, errorf("read %s: %w", visibleLine(args.Path), bareError(err))
	}
	if isBinary(head) {
		return toolResult{Text: fmt.Sprintf("%s is binary: %d bytes, %s", visibleLine(p.Rel), size, http.DetectContentType(head))}, nil
	}
	if size == 0 {
		return toolResult{Text: visibleLine(p.Rel) + " is empty"}, nil
	}
	return numberedLines(ctx, r, "file", args.Offset, args.Limit)
}

// openFile opens a regular file for reading. allowed says that the policy let a place outside the root through.
func openFile(p place, allowed bool) (*os.File, int64, error) {
	if err := p.check(allowed); err != nil {
		return nil, 0, err
	}
	root, name, err := p.open()
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	info, err := root.Stat(name) // before it is opened: opening a pipe would wait for its writer
	switch {
	case err != nil:
		return nil, 0, bareError(err)
	case info.IsDir():
		return nil, 0, newError("is a folder")
	case !info.Mode().IsRegular():
		return nil, 0, newError("is no regular file")
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, 0, bareError(err)
	}
	return f, info.Size(), nil
}

// numberedLines shows limit lines from offset on, each with its number, and says how many are left. what is what has them: file, record.
func numberedLines(ctx context.Context, r *bufio.Reader, what string, offset, limit int) (toolResult, error) {
	var out textBuilder
	line, shown, read, full := 0, 0, int64(0), false
	for read < fileScanMax {
		if line%4096 == 0 && ctx.Err() != nil {
			return toolResult{}, ctx.Err()
		}
		text, n, err := readLine(r)
		read += n
		if n > 0 {
			line++
			full = full || shown == limit || out.Len() >= fileTextMax
			if line >= offset && !full {
				fmt.Fprintf(&out, "%6d\t%s\n", line, clip(strings.ToValidUTF8(text, "\uFFFD"), fileLineMax))
				shown++
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return toolResult{}, bareError(err)
		}
	}
	switch {
	case shown == 0:
		return toolResult{}, errorf("offset %d is past the end: the %s has %d lines", offset, what, line)
	case read >= fileScanMax:
		fmt.Fprintf(&out, "[lines %d to %d; the %s goes on past %d bytes, which is as far as lines are counted]\n", offset, offset+shown-1, what, fileScanMax)
	case offset > 1 || offset+shown-1 < line:
		fmt.Fprintf(&out, "[lines %d to %d of %d]\n", offset, offset+shown-1, line)
	}
	if left := line - (offset + shown - 1); left > 0 {
		fmt.Fprintf(&out, "[%d lines left out; go on with offset %d]\n", left, offset+shown)
	}
	return toolResult{Text: out.String()}, nil
}

// readLine gives the next line without its end. Of a line longer than fileLineMax only the beginning is kept, with the size told by clip; n is
// the number of bytes read, 0 at the end of the file.
func readLine(r *bufio.Reader) (text string, n int64, err error) {
	var kept []byte
	for {
		part, err := r.ReadSlice('\n')
		n += int64(len(part))
		if room := fileLineMax + 1 - len(kept); room > 0 {
			kept = append(kept, part[:min(room, len(part))]...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if n > int64(len(kept)) {
			head := strings.ToValidUTF8(string(kept[:fileLineMax]), "\uFFFD")
			return fmt.Sprintf("%s… (line of %d bytes)", headOf(head, fileLineMax-40), n), n, err
		}
		kept = bytes.TrimSuffix(kept, []byte("\n"))
		return string(bytes.TrimSuffix(kept, []byte("\r"))), n, err
	}
}
