// This file matches slash-separated paths against globs and against the rules of .gitignore files, and any text against a pattern with *.
// Pure functions over strings: it opens nothing and knows no tool.
package main

import (
	"path"
	"strings"
)

const globMaxBraces = 64 // alternatives that the braces of one pattern may unfold to; what is over is not matched

// globPath reports whether name, a slash-separated path, matches pattern. * and ? stay within one path element, ** spans any number of
// them (at the end of a pattern at least one), [a-z], [!a] and \x are as in gitignore(5), {a,b} stands for either. A pattern without
// a slash is matched against the last element, as people write *.go and mean it everywhere. A malformed pattern matches nothing.
func globPath(pattern, name string) bool {
	for _, p := range globBraces(pattern) {
		target := name
		if !strings.Contains(p, "/") {
			target = path.Base(name)
		}
		if globSegments(strings.Split(strings.TrimPrefix(p, "/"), "/"), strings.Split(target, "/")) {
			return true
		}
	}
	return false
}

// globValid reports whether pattern can match anything at all: its brackets and escapes are complete.
func globValid(pattern string) bool {
	for _, p := range globBraces(pattern) {
		for seg := range strings.SplitSeq(p, "/") {
			if _, err := path.Match(globClass(seg), ""); err != nil {
				return false
			}
		}
	}
	return pattern != ""
}

// globBraces unfolds {a,b} left to right; an unbalanced brace stays as it is.
func globBraces(pattern string) []string {
	done, open := []string(nil), []string{pattern}
	for len(open) > 0 && len(done)+len(open) <= globMaxBraces {
		p := open[0]
		open = open[1:]
		start, end, commas := globBrace(p)
		if start < 0 {
			done = append(done, p)
			continue
		}
		from := start + 1
		for _, c := range append(commas, end) {
			open = append(open, p[:start]+p[from:c]+p[end+1:])
			from = c + 1
		}
	}
	return done
}

// globBrace finds the first balanced {…,…} of p and its top-level commas; start is -1 if there is none.
func globBrace(p string) (start, end int, commas []int) {
	start = -1
	depth := 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '{':
			if depth == 0 {
				start, commas = i, nil
			}
			depth++
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth == 1 && len(commas) > 0 {
				return start, i, commas
			}
			depth = max(depth-1, 0)
		}
	}
	return -1, 0, nil
}

// globSegments matches element by element. ok[j] says that the pattern elements so far match the first j elements of the name, so the
// work is the product of both lengths however many ** there are.
func globSegments(pat, name []string) bool {
	ok := make([]bool, len(name)+1)
	ok[0] = true
	for i, p := range pat {
		next := make([]bool, len(name)+1)
		seen := false
		for j := range next {
			if p == "**" {
				last := i == len(pat)-1
				next[j] = seen || (!last && ok[j])
				seen = seen || ok[j]
				continue
			}
			if j > 0 && ok[j-1] {
				m, err := path.Match(globClass(p), name[j-1])
				next[j] = err == nil && m
			}
		}
		ok = next
	}
	return ok[len(name)]
}

// globClass turns the [!a] of gitignore(5) into the [^a] of path.Match.
func globClass(seg string) string {
	if !strings.Contains(seg, "[!") {
		return seg
	}
	return strings.ReplaceAll(seg, "[!", "[^")
}

// ignoreRule is one line of a .gitignore file.
type ignoreRule struct {
	base    []string // elements of the folder the file lies in; none for the root
	pattern []string
	negate  bool // a line that starts with !
	dirOnly bool // a line that ends in /
	nameAny bool // no slash in the line: it holds for a name at any depth
}

// parseIgnore reads the rules of one ignore file (gitignore(5)) that lies in the folder base ("" or a slash-separated path).
func parseIgnore(base, text string) []ignoreRule {
	var rules []ignoreRule
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
			line = line[:len(line)-1]
		}
		if line == "" || line[0] == '#' {
			continue
		}
		r := ignoreRule{}
		if base != "" {
			r.base = strings.Split(base, "/")
		}
		line, r.negate = strings.CutPrefix(line, "!")
		line, r.dirOnly = strings.CutSuffix(line, "/")
		r.nameAny = !strings.Contains(line, "/")
		r.pattern = strings.Split(strings.TrimPrefix(line, "/"), "/")
		if line != "" {
			rules = append(rules, r)
		}
	}
	return rules
}

// ignored reports whether the last rule that fits rel ignores it. The caller asks for each folder on the way down and does not enter an
// ignored one, as git does.
func ignored(rules []ignoreRule, rel string, dir bool) bool {
	parts := strings.Split(rel, "/")
	for i := len(rules) - 1; i >= 0; i-- {
		if rules[i].fits(parts, dir) {
			return !rules[i].negate
		}
	}
	return false
}

func (r ignoreRule) fits(parts []string, dir bool) bool {
	if (r.dirOnly && !dir) || len(parts) <= len(r.base) {
		return false
	}
	for i, b := range r.base {
		if parts[i] != b {
			return false
		}
	}
	rest := parts[len(r.base):]
	if r.nameAny {
		rest = rest[len(rest)-1:]
	}
	return globSegments(r.pattern, rest)
}

// globMatch reports whether s fits pattern, in which * stands for any text and everything else for itself.
func globMatch(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	if len(s) < len(parts[0])+len(parts[len(parts)-1]) || !strings.HasPrefix(s, parts[0]) || !strings.HasSuffix(s, parts[len(parts)-1]) {
		return false
	}
	s = s[len(parts[0]) : len(s)-len(parts[len(parts)-1])]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}
