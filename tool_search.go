// This file holds the native tools that search the workspace. They walk through an os.Root, follow no link, and skip what git ignores.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"time"
)

const (
	searchLimit      = 100              // matching lines shown unless the call says how many
	searchMaxLimit   = 1000             // the most it may ask for
	searchMaxContext = 20               // lines around a match
	searchMaxPattern = 4096             // bytes of a pattern
	searchMaxFile    = 10 << 20         // bytes of a file that is searched; larger ones are counted and skipped
	searchMaxLine    = 500              // bytes of a line that are shown
	searchMaxIgnore  = 1 << 20          // bytes read of one ignore file
	searchTextMax    = 60_000           // bytes of one answer, so that it stays inline (mcpResultMax)
	searchTime       = 30 * time.Second // one search; what was found until then is given, marked incomplete
)

// searchTools gives the tools of this file over w.
func searchTools(w workspace) []tool {
	return []tool{{
		Name: "text_search", Family: "files", Core: true,
		Description: "Search file contents by regular expression or literal text: every TODO in the code, TODO or FIXME comments of code files, a word in notes or logs, where source code calls a function. Skips binary files and what git ignores.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{
"pattern":{"type":"string","minLength":1,"maxLength":%d,"description":"Regular expression (RE2 syntax), matched line by line, such as TODO|FIXME in code; or the text itself with literal."},
"path":{"type":"string","description":"Folder or file to search (default: the workspace root)."},
"glob":{"type":"string","minLength":1,"maxLength":1000,"description":"Only files whose path fits, e.g. *.go or src/**/*.{ts,tsx}."},
"literal":{"type":"boolean","description":"Take the pattern as plain text (default false)."},
"ignore_case":{"type":"boolean","description":"Match upper and lower case alike (default false)."},
"context":{"type":"integer","minimum":0,"maximum":%d,"description":"Lines to show around each match (default 0)."},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"Matching lines to show at most (default %d)."}}}`,
			searchMaxPattern, searchMaxContext, searchMaxLimit, searchLimit)),
		Output: json.RawMessage(`{"type":"object","properties":{
"matches":{"type":"array","description":"The matches shown.","items":{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"},"text":{"type":"string"}}}},
"matching_lines":{"type":"integer","description":"All matching lines, shown or not."},
"matching_files":{"type":"integer","description":"Files with a match."},
"files_searched":{"type":"integer","description":"Files that were read."},
"skipped_binary":{"type":"integer","description":"Binary files passed over."},
"skipped_ignored":{"type":"integer","description":"Files and folders that git ignores."},
"skipped_large":{"type":"integer","description":"Files over the size limit."},
"skipped_unreadable":{"type":"integer","description":"Files and folders that could not be read."},
"incomplete":{"type":"boolean","description":"The time limit came before the end."},` + toolRecordSchema + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		judge: func(c toolCall) policyRequest { return judgePath(w, c) },
		run: func(ctx context.Context, c toolCall) (toolResult, error) {
			return textSearch(ctx, w, c, searchTime)
		},
	}}
}

type searchArgs struct {
	Pattern    string
	Path       string
	Glob       string
	Literal    bool
	IgnoreCase bool `json:"ignore_case"`
	Context    int
	Limit      int
}

func textSearch(ctx context.Context, w workspace, c toolCall, within time.Duration) (toolResult, error) {
	args := searchArgs{Limit: searchLimit}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	re, err := args.compile()
	if err != nil {
		return toolResult{}, err
	}
	if args.Glob != "" && !globValid(args.Glob) {
		return toolResult{}, errorf("glob %q is malformed", args.Glob)
	}
	p, err := w.locate(args.Path)
	if err != nil {
		return toolResult{}, err
	}
	if err := p.check(c.outside); err != nil {
		return toolResult{}, errorf("%s: %w", visibleLine(args.Path), err)
	}
	inner, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	s := &search{ctx: inner, args: args, re: re}
	if err := s.start(p); err != nil {
		return toolResult{}, errorf("search %s: %w", visibleLine(cmpOrRoot(args.Path)), err)
	}
	if ctx.Err() != nil {
		return toolResult{}, ctx.Err()
	}
	return s.result(), nil
}

// compile reads the pattern.
func (a searchArgs) compile() (*regexp.Regexp, error) {
	expr := a.Pattern
	if a.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	if a.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, errorf("pattern: %w (use literal for plain text)", err)
	}
	return re, nil
}

func cmpOrRoot(p string) string {
	if p == "" {
		return "the workspace"
	}
	return p
}

// search is one walk and what it found.
type search struct {
	ctx  context.Context
	args searchArgs
	re   *regexp.Regexp
	root *os.Root

	prefix  string // in front of paths shown: the folder outside the root, else nothing
	out     bytes.Buffer
	matches []searchMatch
	last    string // file of the last line written
	lastNo  int

	lines, files, read, binary, skipped, large, unreadable int
	incomplete                                             bool
}

type searchMatch struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// start opens the place and walks it. Inside the workspace the ignore files from the root down count, also when the walk starts deeper.
func (s *search) start(p place) error {
	root, name, err := p.open()
	if err != nil {
		return err
	}
	defer root.Close()
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	info, err := root.Stat(name)
	if err != nil {
		return bareError(err)
	}
	if p.Outside {
		s.prefix = strings.TrimSuffix(path.Dir(p.Rel), "/") + "/"
	}
	s.root = root
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return newError("is no regular file")
		}
		s.file(name, info.Size())
		return nil
	}
	s.walk(name, s.rulesAbove(name))
	return nil
}

// rulesAbove gives the rules of the ignore files from the root down to the folder that holds name.
func (s *search) rulesAbove(name string) []ignoreRule {
	var rules []ignoreRule
	if text, err := s.readSmall(".git/info/exclude", searchMaxIgnore); err == nil {
		rules = parseIgnore("", text)
	}
	at := ""
	for step := range strings.SplitSeq(name, "/") {
		if step == "." {
			break
		}
		rules = s.withIgnore(rules, at)
		at = path.Join(at, step)
	}
	return rules
}

// withIgnore adds the rules of the .gitignore in the folder dir.
func (s *search) withIgnore(rules []ignoreRule, dir string) []ignoreRule {
	text, err := s.readSmall(path.Join(dir, ".gitignore"), searchMaxIgnore)
	if err != nil {
		return rules // none there, or none that can be read: then nothing is ignored by it
	}
	if dir == "." {
		dir = ""
	}
	return append(rules[:len(rules):len(rules)], parseIgnore(dir, text)...)
}

// walk searches the files of dir and then its folders, each in the order of names. Links are not followed.
func (s *search) walk(dir string, rules []ignoreRule) {
	if s.stopped() {
		return
	}
	entries, err := fs.ReadDir(s.root.FS(), dir)
	if err != nil {
		s.unreadable++
		return
	}
	rules = s.withIgnore(rules, dir)
	var folders []string
	for _, e := range entries {
		rel := path.Join(dir, e.Name())
		switch {
		case e.Name() == ".git":
		case (e.IsDir() || e.Type().IsRegular()) && ignored(rules, rel, e.IsDir()):
			s.skipped++
		case e.IsDir():
			folders = append(folders, rel)
		case e.Type().IsRegular() && (s.args.Glob == "" || s.globFits(rel)):
			if info, err := e.Info(); err == nil {
				s.file(rel, info.Size())
			} else {
				s.unreadable++
			}
		}
	}
	for _, f := range folders {
		s.walk(f, rules)
	}
}

// globFits matches the glob against the path from the root and from where the search started, as both are meant by people.
func (s *search) globFits(rel string) bool {
	if globPath(s.args.Glob, rel) {
		return true
	}
	under, ok := strings.CutPrefix(rel, path.Clean(s.args.Path)+"/")
	return ok && globPath(s.args.Glob, under)
}

func (s *search) stopped() bool {
	if s.ctx.Err() != nil {
		s.incomplete = true
	}
	return s.incomplete
}

// file searches one file.
func (s *search) file(rel string, size int64) {
	if s.stopped() {
		return
	}
	if size > searchMaxFile {
		s.large++
		return
	}
	text, err := s.readSmall(rel, searchMaxFile)
	if err != nil {
		s.unreadable++
		return
	}
	if isBinary([]byte(text[:min(len(text), binarySniff)])) {
		s.binary++
		return
	}
	s.read++
	if s.args.Literal && !s.args.IgnoreCase && !strings.Contains(text, s.args.Pattern) {
		return
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	found := false
	for i, line := range lines {
		if i%1024 == 0 && s.stopped() {
			return
		}
		line = strings.TrimSuffix(line, "\r")
		at := s.re.FindStringIndex(line)
		if at == nil {
			continue
		}
		if !found {
			found = true
			s.files++
		}
		s.lines++
		if len(s.matches) < s.args.Limit && s.out.Len() < searchTextMax {
			s.show(rel, lines, i, at[0])
		}
	}
}

// show writes one match with its context; lines that a match before has shown are not written again.
func (s *search) show(rel string, lines []string, i, at int) {
	name := visibleLine(s.prefix + rel)
	from, to := max(0, i-s.args.Context), min(len(lines)-1, i+s.args.Context)
	if s.last == rel && from <= s.lastNo {
		from = s.lastNo + 1
	} else if s.args.Context > 0 && s.out.Len() > 0 && (s.last != rel || from > s.lastNo+1) {
		s.out.WriteString("--\n")
	}
	for n := from; n <= to; n++ {
		mark, start := "-", 0
		line := strings.TrimSuffix(lines[n], "\r")
		if n == i {
			mark, start = ":", at
		} else if n > i && s.re.MatchString(line) {
			break // the next match shows it with its own mark
		}
		fmt.Fprintf(&s.out, "%s%s%d%s %s\n", name, mark, n+1, mark, searchClip(line, start))
		s.lastNo = n
	}
	s.last = rel
	s.matches = append(s.matches, searchMatch{s.prefix + rel, i + 1, searchClip(strings.TrimSuffix(lines[i], "\r"), at)})
}

// searchClip shows at most searchMaxLine bytes of a line, those around the match at byte at.
func searchClip(line string, at int) string {
	line = strings.ToValidUTF8(line, "\uFFFD")
	if len(line) <= searchMaxLine {
		return line
	}
	from := max(0, min(at-searchMaxLine/4, len(line)-searchMaxLine))
	part := strings.ToValidUTF8(line[from:from+searchMaxLine], "")
	return fmt.Sprintf("%s [of a line of %d bytes]", part, len(line))
}

// readSmall reads a file of at most limit bytes through the root.
func (s *search) readSmall(name string, limit int64) (string, error) {
	info, err := s.root.Lstat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", newError("is no regular file")
	}
	f, err := s.root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var b textBuilder
	n, err := io.Copy(&b, io.LimitReader(f, limit+1))
	if err == nil && n > limit {
		err = errorf("over %d bytes", limit)
	}
	return b.String(), err
}

func (s *search) result() toolResult {
	var b textBuilder
	if s.lines == 0 {
		b.WriteString("no matches\n")
	}
	b.Write(s.out.Bytes())
	fmt.Fprintf(&b, "[%d matching lines in %d files; %d files searched", s.lines, s.files, s.read)
	if left := s.lines - len(s.matches); left > 0 {
		fmt.Fprintf(&b, "; %d matching lines not shown", left)
	}
	for _, skip := range []struct {
		n    int
		what string
	}{{s.skipped, "ignored by git"}, {s.binary, "binary"}, {s.large, "too large"}, {s.unreadable, "unreadable"}} {
		if skip.n > 0 {
			fmt.Fprintf(&b, "; %d skipped: %s", skip.n, skip.what)
		}
	}
	if s.incomplete {
		b.WriteString("; incomplete: the time limit came first")
	}
	b.WriteString("]")
	return toolResult{Text: b.String(), Structured: s.structured()}
}

func (s *search) structured() json.RawMessage {
	doc := struct {
		Matches    []searchMatch `json:"matches"`
		Lines      int           `json:"matching_lines"`
		Files      int           `json:"matching_files"`
		Read       int           `json:"files_searched"`
		Binary     int           `json:"skipped_binary"`
		Ignored    int           `json:"skipped_ignored"`
		Large      int           `json:"skipped_large"`
		Unreadable int           `json:"skipped_unreadable"`
		Incomplete bool          `json:"incomplete"`
	}{s.matches, s.lines, s.files, s.read, s.binary, s.skipped, s.large, s.unreadable, s.incomplete}
	if doc.Matches == nil {
		doc.Matches = []searchMatch{}
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic("tool_search: marshal of plain strings and numbers: " + err.Error())
	}
	return b
}
