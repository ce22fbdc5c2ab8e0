// This file finds the configs of other apps and reads the servers in them, each in the app's own form. Where things lie is a function of the
// system, the environment and the project that it is given. It opens regular files to read, starts nothing, and knows no vault and no person.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	importFileMax    = 16 << 20         // bytes of one config; the one of Claude Code holds its history too
	importFilesMax   = 200              // files that are read
	importServersMax = 500              // servers that are taken from them
	importPatience   = 10 * time.Second // for one file
	importProject    = "project"        // what stands for a project's own files in the place of an app
)

// The states of a file.
const (
	confRead    = "read"
	confEmpty   = "empty"   // it names no server
	confMissing = "missing" // told of the files that an app has of its own accord
	confFailed  = "failed"
)

// importPlace is where configs are looked for.
type importPlace struct {
	GOOS string
	Env  func(string) string
	Root string // the project, without links on the way to it
}

// importFile is one config and what came of it.
type importFile struct {
	App      string   `json:"app"`
	Path     string   `json:"file"`
	Project  bool     `json:"project"` // it is the project's own
	Link     string   `json:"link,omitempty"`
	Status   string   `json:"status"`
	Servers  int      `json:"servers"` // usable ones
	Reason   string   `json:"reason,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`

	known bool // looked for by its full name
	any   bool // it names a server, usable or not
	app   *clientApp
}

// importOrigin is where a server stands. Folder is that of the project it is for, "" for one of all.
type importOrigin struct {
	App    string `json:"app"`
	File   string `json:"file"`
	Name   string `json:"name"`
	Folder string `json:"folder,omitempty"`
	Off    bool   `json:"off,omitempty"` // switched off there
}

// importServer is a server that other apps have. Its entry's name is the one that it is to have; Fault says why it cannot be used.
type importServer struct {
	Entry           serverEntry
	Origins         []importOrigin
	Fault           string
	Notes, Warnings []string
}

// importer gathers.
type importer struct {
	place   importPlace
	files   []*importFile
	servers []*importServer
}

// importApps are those whose configs are known, and last what stands for a project's own files.
func importApps() []clientApp {
	return append(knownApps(), clientApp{ID: importProject, Keys: serverMapKeys(), Projects: []string{"mcp.json"}})
}

// findImports reads the configs of the apps named (all, where none is; importProject for a project's own) and gives files and servers in the
// order of the apps. A file that cannot be read is told of in its place and stops no other.
func findImports(ctx context.Context, p importPlace, apps []string) ([]*importFile, []*importServer, error) {
	x := &importer{place: p}
	for _, f := range p.candidates() {
		if len(apps) == 0 || slices.Contains(apps, f.App) || f.Project && slices.Contains(apps, importProject) {
			x.files = append(x.files, f)
		}
	}
	shown := x.files[:0]
	for i, f := range x.files {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		rep := &confReport{}
		if i >= importFilesMax {
			f.Status, f.Reason = confFailed, fmt.Sprintf("no more than %d files are read at once; name the apps", importFilesMax)
		} else if err := x.file(ctx, f, rep); err != nil {
			f.Status, f.Reason = confFailed, maskShapes(err.Error())
		}
		if f.Notes, f.Warnings = rep.notes, rep.warnings; f.known || f.Status != confMissing {
			shown = append(shown, f)
		}
	}
	x.name()
	return shown, x.servers, nil
}

// candidates are all files that may hold servers, each once.
func (p *importPlace) candidates() []*importFile {
	var out []*importFile
	seen := map[string]bool{"": true}
	add := func(a *clientApp, path string, project, known bool) {
		if !seen[path] {
			seen[path] = true
			out = append(out, &importFile{App: a.ID, Path: path, Project: project, known: known, app: a})
		}
	}
	apps := importApps()
	for i := range apps {
		a := &apps[i]
		own := p.path(a.file(p.GOOS))
		if folder := p.Env(a.Home); own != "" && a.Home != "" && folder != "" {
			own = filepath.Join(folder, filepath.Base(own))
		}
		add(a, own, false, true)
		for _, pattern := range a.Beside {
			if pattern[0] == '%' {
				pattern = p.path(pattern)
			} else if pattern = filepath.Join(filepath.Dir(own), pattern); own == "" {
				continue
			}
			for _, path := range expandStar(pattern) {
				add(a, path, false, false)
			}
		}
		for _, name := range append([]string{a.Project}, a.Projects...) {
			if name != "" {
				add(a, filepath.Join(p.Root, name), true, false)
			}
		}
	}
	return out
}

// path writes a path of the table out, "" where a folder of it is not known. On a system with other separators than the one it is for, it
// follows the system it is on.
func (p *importPlace) path(path string) string {
	path = clientPath(path, p.GOOS, p.Env)
	if path == "" || path[0] == '~' || path[0] == '%' {
		return ""
	}
	if p.GOOS == "windows" {
		path = strings.ReplaceAll(path, `\`, string(filepath.Separator))
	}
	return filepath.Clean(path)
}

// expandStar gives the paths that a pattern with one star, for a part of one name, stands for.
func expandStar(pattern string) []string {
	at := strings.LastIndexByte(pattern, '*')
	if at < 0 {
		return []string{pattern}
	}
	dir, prefix := filepath.Split(pattern[:at])
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []string{pattern} // reading it tells why
	}
	var out []string
	for _, e := range list {
		if strings.HasPrefix(e.Name(), prefix) {
			out = append(out, filepath.Join(dir, e.Name())+pattern[at+1:])
		}
	}
	return out
}

// maskShapes takes what looks like a token out of a message about a file.
func maskShapes(s string) string {
	return regexp.MustCompile(`[^\s"'(),;]+`).ReplaceAllStringFunc(s, func(word string) string {
		if !strings.ContainsAny(word, `/\`) && secretShape(word) {
			return "[secret]"
		}
		return word
	})
}

// file reads one file and takes its servers.
func (x *importer) file(ctx context.Context, f *importFile, rep *confReport) error {
	b, err := f.read(ctx, x.place.Root)
	if err != nil || f.Status == confMissing {
		return err
	}
	n, err := f.app.parse(b, rep)
	if err != nil {
		return err
	}
	folder := ""
	if f.Project {
		folder = x.place.Root
	}
	err = x.take(f, n, folder, rep)
	if f.App == "claude-code" && !f.Project && err == nil {
		projects, _ := n.get("projects")
		for _, m := range projects.last() {
			if err = x.take(f, m.node, m.key, rep); err != nil {
				err = errorf("projects, %s: %w", confQuote(m.key), err)
				break
			}
		}
	}
	if f.Status = confRead; !f.any {
		f.Status = confEmpty
	}
	return err
}

// read gives the bytes of the file. Only a regular one is opened, so that nothing is waited for; a link is followed, but not out of the project.
func (f *importFile) read(ctx context.Context, root string) ([]byte, error) {
	info, err := os.Lstat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		f.Status = confMissing
		return nil, nil
	}
	if err != nil {
		return nil, bareError(err)
	}
	real, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return nil, errorf("it is a link that cannot be followed: %w", bareError(err))
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		f.Link = real
	}
	if f.Project && !within(real, root) {
		return nil, errorf("it is a link out of the project, to %s, and is not followed", confShow(real))
	}
	file, err := openRegular(real)
	if err != nil {
		return nil, bareError(err)
	}
	defer file.Close() // only read
	ctx, cancel := context.WithTimeoutCause(ctx, importPatience, errorf("it was not read within %s", importPatience))
	defer cancel()
	b, err := readBounded(ctx, file, importFileMax, "it")
	if err == nil && len(b) > importFileMax {
		err = errorf("it is too large: at most %d bytes are read", importFileMax)
	} else if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return b, err
}

// parse reads a config in the app's format: JSON as people write it, with comments, or TOML.
func (a *clientApp) parse(b []byte, rep *confReport) (confNode, error) {
	text, wide, err := decodeText(b)
	if err != nil || strings.TrimFunc(text, isBlank) == "" {
		return confNode{}, err
	}
	if wide {
		rep.note("it was converted from UTF-16")
	}
	if a.Format == "toml" {
		m, err := parseTOML([]byte(text))
		return tomlNode(m), err
	}
	docs, r, err := readLenient(text, 1)
	if err != nil {
		return confNode{}, err
	}
	if len(docs) > 1 || docs[0].kind != confMap {
		return confNode{}, newError("it must be one JSON object")
	}
	noteRepairs(r, rep)
	warnDuplicates(docs, rep)
	return docs[0], nil
}

// take adds the servers that stand in n under the app's keys. folder is that of the project they are for, "" for all.
func (x *importer) take(f *importFile, n confNode, folder string, rep *confReport) error {
	for _, key := range f.app.Keys {
		if v, ok := n.get(key); ok && v.kind < confList {
			return errorf("%s must be an object, not %s", key, v.kind)
		}
	}
	var places []confPlace
	sse := map[string]bool{}
	for _, p := range topMaps(n) {
		if !slices.Contains(f.app.Keys, p.path) || len(p.node.items) == 0 {
			continue
		}
		p.node = x.rewrite(f.app, p.node, folder)
		places = append(places, p)
		for _, m := range p.node.items {
			_, typed := m.node.get("type")
			_, address := m.node.get("url")
			sse[m.key] = f.App == "gemini" && address && !typed
		}
	}
	if len(places) == 0 {
		return nil
	}
	b := newConfBuilder(x.place.GOOS, "import:"+f.App, "", rep)
	if err := b.maps(places, readGate(n)); err != nil {
		return err
	}
	for _, s := range b.slots {
		if f.any = true; len(x.servers) >= importServersMax {
			return errorf("no more than %d servers are read; name the apps", importServersMax)
		}
		x.add(f, s, folder, sse[s.name])
	}
	return nil
}

// rewrite puts in what the app itself would: the folders that an editor's variables stand for, and ${NAME} for the $NAME of Gemini CLI.
func (x *importer) rewrite(a *clientApp, n confNode, folder string) confNode {
	separator := "/"
	if x.place.GOOS == "windows" {
		separator = `\`
	}
	pairs := []string{"${pathSeparator}", separator, "${/}", separator}
	if home := x.place.Env(map[bool]string{true: "USERPROFILE", false: "HOME"}[x.place.GOOS == "windows"]); home != "" {
		pairs = append(pairs, "${userHome}", home)
	}
	if folder != "" {
		pairs = append(pairs, "${workspaceFolder}", folder, "${workspaceRoot}", folder, "${workspaceFolderBasename}", filepath.Base(folder))
	}
	switch a.ID {
	case "cursor", "vscode":
		return mapTexts(n, strings.NewReplacer(pairs...).Replace)
	case "gemini":
		bare := regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)
		return mapTexts(n, func(s string) string { return bare.ReplaceAllString(s, "$${$1}") })
	}
	return n
}

// mapTexts gives n with f over each text in it, keys excepted.
func mapTexts(n confNode, f func(string) string) confNode {
	if n.kind == confText {
		n.text = f(n.text)
	}
	n.items = slices.Clone(n.items)
	for i := range n.items {
		n.items[i].node = mapTexts(n.items[i].node, f)
	}
	return n
}

// add takes one entry: as a further origin of the same server, or as a new one.
func (x *importer) add(f *importFile, s confSlot, folder string, sse bool) {
	origin := importOrigin{App: f.App, File: f.Path, Name: s.name, Folder: folder}
	if origin.Name == "" {
		origin.Name = s.place
	}
	if s.err != nil {
		x.servers = append(x.servers, &importServer{Entry: serverEntry{Name: origin.Name}, Origins: []importOrigin{origin}, Fault: maskShapes(s.err.Error())})
		return
	}
	e := s.entry
	e.Name = s.name
	e = finishEntry(e, x.place.GOOS, s.rep)
	origin.Off = e.Enabled != nil && !*e.Enabled
	if sse {
		s.rep.warn("Gemini CLI speaks the legacy HTTP+SSE transport at a url without a type; tai speaks Streamable HTTP only")
	}
	if note := anchorEntry(&e, folder); note != "" {
		s.rep.note("%s", note)
	} else if folder == "" && e.Cwd == "" && strings.HasPrefix(e.Command, ".") {
		s.rep.warn("its command names a file by a path that is relative to a folder of %s", f.app.Title)
	}
	if folder != "" {
		e = fixedPlace(e, folder)
	}
	f.Servers++
	for _, have := range x.servers {
		if have.Fault == "" && have.Entry.Name == e.Name && sameImport(have.Entry, e) {
			have.Origins = append(have.Origins, origin)
			return
		}
	}
	fresh := &importServer{Entry: e, Origins: []importOrigin{origin}, Notes: s.rep.notes, Warnings: s.rep.warnings}
	if base := programName(e.Command); base == "tai" && len(e.Args) > 1 && e.Args[0] == "mcp" && e.Args[1] == "serve" {
		fresh.Fault = "it is tai itself"
	}
	x.servers = append(x.servers, fresh)
}

// sameImport compares what decides a connection and which tools there may be.
func sameImport(a, b serverEntry) bool {
	return sameEntry(a, b) && slices.Equal(a.Allow, b.Allow) && slices.Equal(a.Deny, b.Deny)
}

// name tells different servers of one name apart: the first keeps it, the app's id follows in the others, and a number where that is taken too.
func (x *importer) name() {
	taken := map[string]bool{}
	for _, s := range x.servers {
		if s.Fault != "" {
			continue
		}
		want := s.Entry.Name
		for n := 1; taken[s.Entry.Name]; n++ {
			if s.Entry.Name = want + "-" + s.Origins[0].App; n > 1 {
				s.Entry.Name += fmt.Sprintf("-%d", n)
			}
		}
		taken[s.Entry.Name] = true
		if err := goodServerName(s.Entry.Name); err != nil {
			s.Fault = err.Error()
		}
	}
}
