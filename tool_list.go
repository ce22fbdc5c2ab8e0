// This file holds the native tools that list: file_find and dir_list. They walk through an os.Root, follow no link, skip what git ignores, and stop at a limit.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

const (
	pathLimit    = 200              // paths that file_find shows unless the call says how many
	pathMaxLimit = 5000             // the most it may ask for
	pathMaxSeen  = 500_000          // paths that fit and are counted; then the search ends
	listDepth    = 2                // levels of dir_list unless the call says how many
	listMaxDepth = 20               // the most it may ask for
	listMax      = 1000             // entries of one dir_list
	listHashMax  = int64(1) << 30   // bytes of the files that one dir_list hashes
	listTime     = 30 * time.Second // one walk; what was found until then is given, marked incomplete
)

// pathTools gives the tools of this file over w.
func pathTools(w workspace, now func() time.Time) []tool {
	return []tool{{
		Name: "file_find", Family: "files", Core: true,
		Description: "Find files and folders by glob such as **/*.png, by type and by age, with their sizes. Skips .git and what git ignores.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{
"pattern":{"type":"string","minLength":1,"maxLength":1000,"description":"Glob, e.g. *.go (at any depth), src/**/*.{ts,tsx} or * for all."},
"path":{"type":"string","description":"Folder to look in (default: the workspace root)."},
"type":{"type":"string","enum":["f","d","l"],"description":"Only files, folders or symbolic links (default: all of them)."},
"newer":{"type":"string","minLength":1,"maxLength":40,"description":"Only what was changed within this time (30m, 2h, 3d, 1w) or since this one (2026-01-31 or RFC 3339)."},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"Paths to show at most (default %d)."}}}`, pathMaxLimit, pathLimit)),
		Output: json.RawMessage(`{"type":"object","properties":{
"paths":{"type":"array","description":"The paths shown, in order.","items":{"type":"object","properties":{"path":{"type":"string"},"type":{"type":"string"},"size":{"type":"integer"},"modified":{"type":"string"}}}},
"found":{"type":"integer","description":"All that fit, shown or not."},` + listOutput),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		judge: func(c toolCall) policyRequest { return judgePath(w, c) },
		run:   func(ctx context.Context, c toolCall) (toolResult, error) { return fileFind(ctx, w, c, now) },
	}, {
		Name: "dir_list", Family: "files", Core: true,
		Description: "List a folder as a tree with sizes, or tell size, mode, time and SHA-256 of one file.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"properties":{
"path":{"type":"string","description":"Folder or file (default: the workspace root)."},
"depth":{"type":"integer","minimum":1,"maximum":%d,"description":"Levels of folders to open (default %d)."},
"hidden":{"type":"boolean","description":"Also names that begin with a dot, and what git ignores (default false)."},
"hash":{"type":"boolean","description":"Give the SHA-256 of each file, as if_hash takes it (default false)."}}}`, listMaxDepth, listDepth)),
		Output: json.RawMessage(`{"type":"object","properties":{
"entries":{"type":"array","description":"What is shown, each folder before what is in it.","items":{"type":"object","properties":{"path":{"type":"string"},"type":{"type":"string"},"size":{"type":"integer"},"mode":{"type":"string"},"modified":{"type":"string"},"sha256":{"type":"string"}}}},
"left_out":{"type":"integer","description":"Entries over the limit."},"skipped_hidden":{"type":"integer","description":"Names that begin with a dot."},` + listOutput),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		judge: func(c toolCall) policyRequest { return judgePath(w, c) },
		run:   func(ctx context.Context, c toolCall) (toolResult, error) { return dirList(ctx, w, c) },
	}}
}

// listOutput ends both outputSchemas.
const listOutput = `
"skipped_ignored":{"type":"integer","description":"Files and folders that git ignores."},
"unreadable":{"type":"integer","description":"Folders that could not be read."},
"incomplete":{"type":"boolean","description":"A limit of time or number came before the end."},` + toolRecordSchema + `}}`

// listEntry is one path as both tools tell it.
type listEntry struct {
	Path     string `json:"path"`
	Type     string `json:"type"` // f, d, l, o (other)
	Size     int64  `json:"size"`
	Mode     string `json:"mode,omitempty"`
	Modified string `json:"modified"`
	SHA256   string `json:"sha256,omitempty"`
	depth    int
}

func entryOf(rel string, info fs.FileInfo) listEntry {
	e := listEntry{Path: rel, Type: "o", Modified: info.ModTime().UTC().Format(time.RFC3339)}
	switch mode := info.Mode(); {
	case mode.IsDir():
		e.Type = "d"
	case mode&fs.ModeSymlink != 0:
		e.Type = "l"
	case mode.IsRegular():
		e.Type, e.Size = "f", info.Size()
	}
	return e
}

// listWalk walks folders as text_search does, and lends its sense of what git ignores.
type listWalk struct {
	search
	hidden   bool // see names with a dot and ignored ones
	skipDots bool // leave names with a dot out, and count them
	dots     int
	visit    func(e listEntry, info fs.FileInfo) (enter bool)
}

// open begins a walk at p. name is p in the root, which the caller closes.
func (l *listWalk) open(p place, allowed bool) (name string, info fs.FileInfo, err error) {
	if err := p.check(allowed); err != nil {
		return "", nil, err
	}
	root, name, err := p.open()
	if err != nil {
		return "", nil, err
	}
	l.root = root
	if p.Outside {
		l.prefix = strings.TrimSuffix(path.Dir(p.Rel), "/") + "/"
	}
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if info, err = root.Stat(name); err != nil {
		root.Close()
		return "", nil, bareError(err)
	}
	return name, info, nil
}

// folder visits what is in dir, in the order of names, and then each folder that is to be entered right behind its own entry.
func (l *listWalk) folder(dir string, rules []ignoreRule, depth int) {
	if l.stopped() {
		return
	}
	entries, err := fs.ReadDir(l.root.FS(), dir)
	if err != nil {
		l.unreadable++
		return
	}
	rules = l.withIgnore(rules, dir)
	for _, d := range entries {
		rel := path.Join(dir, d.Name())
		switch {
		case l.hidden:
		case d.Name() == ".git":
			continue
		case ignored(rules, rel, d.IsDir()):
			l.skipped++
			continue
		case l.skipDots && strings.HasPrefix(d.Name(), "."):
			l.dots++
			continue
		}
		info, err := d.Info()
		if err != nil {
			continue // gone meanwhile
		}
		e := entryOf(rel, info)
		e.depth = depth
		if l.visit(e, info) && d.IsDir() && d.Name() != ".git" {
			l.folder(rel, rules, depth+1)
		}
		if l.stopped() {
			return
		}
	}
}

func fileFind(ctx context.Context, w workspace, c toolCall, now func() time.Time) (toolResult, error) {
	args := struct {
		Pattern, Path, Type, Newer string
		Limit                      int
	}{Limit: pathLimit}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	if !globValid(args.Pattern) {
		return toolResult{}, errorf("pattern %q is malformed", clip(args.Pattern, 200))
	}
	since, err := sinceTime(args.Newer, now())
	if err != nil {
		return toolResult{}, errorf("newer %w", err)
	}
	p, err := w.locate(args.Path)
	if err != nil {
		return toolResult{}, err
	}
	inner, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	l := listWalk{search: search{ctx: inner}}
	name, info, err := l.open(p, c.outside)
	if err != nil {
		return toolResult{}, errorf("%s: %w", visibleLine(cmpOrRoot(args.Path)), err)
	}
	defer l.root.Close()
	if !info.IsDir() {
		return toolResult{}, errorf("%s is no folder", visibleLine(args.Path))
	}
	l.args = searchArgs{Glob: args.Pattern, Path: name}
	var found []listEntry
	l.visit = func(e listEntry, info fs.FileInfo) bool {
		if (args.Type == "" || e.Type == args.Type) && !info.ModTime().Before(since) && l.globFits(e.Path) {
			found = append(found, e)
			l.incomplete = l.incomplete || len(found) >= pathMaxSeen
		}
		return true
	}
	l.folder(name, l.rulesAbove(name), 0)
	if ctx.Err() != nil {
		return toolResult{}, ctx.Err()
	}
	sortBy(found, func(a, b listEntry) int { return strings.Compare(a.Path, b.Path) })
	return l.found(found, args.Limit)
}

// found shows the first paths.
func (l *listWalk) found(all []listEntry, limit int) (toolResult, error) {
	var b textBuilder
	shown := []listEntry{}
	for _, e := range all {
		if len(shown) == limit || b.Len() > searchTextMax/2 {
			break
		}
		line := visibleLine(l.prefix + e.Path)
		switch e.Type {
		case "d":
			line += "/"
		case "f":
			line += fmt.Sprintf("  %d", e.Size)
		case "l":
			target, err := l.root.Readlink(e.Path)
			line += " -> " + visibleLine(cmp.Or(target, fmt.Sprint(err)))
		}
		b.WriteString(line + "\n")
		e.Path = l.prefix + e.Path
		shown = append(shown, e)
	}
	if len(all) == 0 {
		b.WriteString("nothing found\n")
	}
	fmt.Fprintf(&b, "[%d found", len(all))
	if left := len(all) - len(shown); left > 0 {
		fmt.Fprintf(&b, "; %d not shown", left)
	}
	b.WriteString(l.rest() + "]")
	doc := map[string]any{"paths": shown, "found": len(all), "skipped_ignored": l.skipped, "unreadable": l.unreadable, "incomplete": l.incomplete}
	text, err := json.Marshal(doc)
	return toolResult{Text: b.String(), Structured: text}, err
}

// rest says what a walk left out.
func (l *listWalk) rest() string {
	s := ""
	for _, skip := range []struct {
		n    int
		what string
	}{{l.skipped, "ignored by git"}, {l.dots, "hidden"}, {l.unreadable, "unreadable"}} {
		if skip.n > 0 {
			s += fmt.Sprintf("; %d skipped: %s", skip.n, skip.what)
		}
	}
	if l.incomplete {
		s += "; incomplete: a limit came first"
	}
	return s
}

// sinceTime reads an age (30m, 2h, 3d, 1w), a date or a time; "" is the zero time.
func sinceTime(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	unit := time.Duration(0)
	switch s[len(s)-1] {
	case 'd':
		unit = 24 * time.Hour
	case 'w':
		unit = 7 * 24 * time.Hour
	}
	if n, err := strconv.ParseFloat(s[:len(s)-1], 64); unit > 0 && err == nil && n >= 0 && n < 100_000 {
		return now.Add(-time.Duration(n * float64(unit))), nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, errorf("%s is no age (30m, 2h, 3d, 1w), date or RFC 3339 time", quoteClip(s))
}

func dirList(ctx context.Context, w workspace, c toolCall) (toolResult, error) {
	args := struct {
		Path         string
		Depth        int
		Hidden, Hash bool
	}{Depth: listDepth}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	p, err := w.locate(args.Path)
	if err != nil {
		return toolResult{}, err
	}
	inner, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	l := listWalk{search: search{ctx: inner}, hidden: args.Hidden, skipDots: true}
	name, info, err := l.open(p, c.outside)
	if err != nil {
		return toolResult{}, errorf("%s: %w", visibleLine(cmpOrRoot(args.Path)), err)
	}
	defer l.root.Close()
	if !info.IsDir() {
		return l.file(p, name, info)
	}
	entries, left, hashed := []listEntry{}, 0, int64(0)
	l.visit = func(e listEntry, info fs.FileInfo) bool {
		if len(entries) == listMax {
			left++
			return false
		}
		e.Mode = fmt.Sprintf("%04o", info.Mode().Perm())
		if args.Hash && e.Type == "f" && hashed+e.Size <= listHashMax {
			hashed += e.Size
			if e.SHA256, err = l.hash(e.Path); err != nil {
				l.unreadable++
			}
		}
		entries = append(entries, e)
		return e.depth+1 < args.Depth
	}
	l.folder(name, l.rulesAbove(name), 0)
	if ctx.Err() != nil {
		return toolResult{}, ctx.Err()
	}
	return l.tree(p, entries, left, args.Hash)
}

// file tells all about one file.
func (l *listWalk) file(p place, name string, info fs.FileInfo) (toolResult, error) {
	e := entryOf(p.Rel, info)
	e.Mode = fmt.Sprintf("%04o", info.Mode().Perm())
	text := fmt.Sprintf("%s: %d bytes, mode %s, modified %s", visibleLine(p.Rel), info.Size(), e.Mode, e.Modified)
	switch {
	case e.Type != "f":
		text += ", no regular file"
	case info.Size() > listHashMax:
		text += fmt.Sprintf(", too large for a hash (over %d bytes)", listHashMax)
	default:
		var err error
		if e.SHA256, err = l.hash(name); err != nil {
			return toolResult{}, errorf("read %s: %w", visibleLine(p.Rel), err)
		}
		text += ", sha256 " + e.SHA256
	}
	doc, err := json.Marshal(map[string]any{"entries": []listEntry{e}})
	return toolResult{Text: text, Structured: doc}, err
}

// hash is the SHA-256 of a file of at most listHashMax bytes.
func (l *listWalk) hash(name string) (string, error) {
	f, err := l.root.Open(name)
	if err != nil {
		return "", bareError(err)
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, listHashMax+1))
	switch {
	case err != nil:
		return "", bareError(err)
	case n > listHashMax:
		return "", newError("it grows while it is read")
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// tree writes the entries, each indented by its depth.
func (l *listWalk) tree(p place, entries []listEntry, left int, hash bool) (toolResult, error) {
	var b textBuilder
	if len(entries) == 0 {
		b.WriteString("nothing in it\n")
	}
	for i, e := range entries {
		line := strings.Repeat("  ", e.depth) + visibleLine(path.Base(e.Path))
		switch e.Type {
		case "d":
			line += "/"
		case "f":
			line += fmt.Sprintf("  %d", e.Size)
			if hash {
				line += "  " + cmp.Or(e.SHA256, "(not hashed)")
			}
		case "l":
			target, err := l.root.Readlink(e.Path)
			line += " -> " + visibleLine(cmp.Or(target, fmt.Sprint(err)))
		default:
			line += "  (no regular file)"
		}
		b.WriteString(line + "\n")
		entries[i].Path = l.prefix + e.Path
	}
	fmt.Fprintf(&b, "[%s: %d entries", visibleLine(p.Rel), len(entries))
	if left > 0 {
		fmt.Fprintf(&b, "; %d more left out, path or depth narrow it", left)
	}
	b.WriteString(l.rest() + "]")
	doc := map[string]any{"entries": entries, "left_out": left, "skipped_hidden": l.dots, "skipped_ignored": l.skipped, "unreadable": l.unreadable, "incomplete": l.incomplete}
	text, err := json.Marshal(doc)
	return toolResult{Text: b.String(), Structured: text}, err
}
