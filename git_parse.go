// This file reads what git prints for programs: status, counts of changed lines, commits. It is pure; names in its results are git's, relative
// to what the command says.
package main

import (
	"strconv"
	"strings"
)

// gitChange is one changed path. Change is a word: modified, added, deleted, renamed, copied, type changed, or for a conflict what both sides did.
type gitChange struct {
	Path      string `json:"path"`
	Change    string `json:"change"`
	From      string `json:"from,omitempty"` // of a rename or a copy
	Submodule bool   `json:"submodule,omitempty"`
}

// gitStatus is what git status --porcelain=v2 says.
type gitStatus struct {
	Branch, Head, Upstream string // Branch is "" when detached, Head before the first commit
	Ahead, Behind          *int   // nil without an upstream that is there
	Stash                  int
	Staged, Changed        []gitChange
	Conflicts              []gitChange
	Untracked              []string
}

// parseGitStatus reads git status --porcelain=v2 -z --branch --show-stash. An entry that was cut off or is not known is passed over.
func parseGitStatus(out string) gitStatus {
	var s gitStatus
	entries := strings.Split(out, "\x00")
	entries = entries[:len(entries)-1] // behind the last end is nothing, or an entry cut off
	for i := 0; i < len(entries); i++ {
		kind, rest, _ := strings.Cut(entries[i], " ")
		switch kind {
		case "#":
			s.header(rest)
		case "1":
			if f := strings.SplitN(rest, " ", 8); len(f) == 8 {
				s.add(f[0], f[1], f[7], "")
			}
		case "2":
			if f := strings.SplitN(rest, " ", 9); len(f) == 9 && i+1 < len(entries) {
				i++
				s.add(f[0], f[1], f[8], entries[i])
			}
		case "u":
			if f := strings.SplitN(rest, " ", 10); len(f) == 10 {
				s.Conflicts = append(s.Conflicts, gitChange{Path: f[9], Change: gitConflict(f[0]), Submodule: strings.HasPrefix(f[1], "S")})
			}
		case "?":
			s.Untracked = append(s.Untracked, rest)
		}
	}
	return s
}

func (s *gitStatus) header(line string) {
	name, value, _ := strings.Cut(line, " ")
	switch {
	case name == "branch.oid" && value != "(initial)":
		s.Head = value
	case name == "branch.head" && value != "(detached)":
		s.Branch = value
	case name == "branch.upstream":
		s.Upstream = value
	case name == "branch.ab":
		a, b, _ := strings.Cut(value, " ")
		ahead, err := strconv.Atoi(a)
		behind, err2 := strconv.Atoi(b)
		if err == nil && err2 == nil {
			behind = -behind
			s.Ahead, s.Behind = &ahead, &behind
		}
	case name == "stash":
		if n, err := strconv.Atoi(value); err == nil {
			s.Stash = n
		}
	}
}

// add takes a path with the letters of the index and of the work tree. Only the side that was renamed has a from.
func (s *gitStatus) add(letters, sub, path, from string) {
	if len(letters) != 2 {
		return
	}
	for i, list := range []*[]gitChange{&s.Staged, &s.Changed} {
		word := gitChangeWord(letters[i])
		if word == "" {
			continue
		}
		c := gitChange{Path: path, Change: word, Submodule: strings.HasPrefix(sub, "S")}
		if letters[i] == 'R' || letters[i] == 'C' {
			c.From = from
		}
		*list = append(*list, c)
	}
}

// gitChangeWord gives the word for a letter of status; "" for unchanged.
func gitChangeWord(letter byte) string {
	return map[byte]string{'M': "modified", 'T': "type changed", 'A': "added", 'D': "deleted", 'R': "renamed", 'C': "copied"}[letter]
}

func gitConflict(letters string) string {
	word, ok := map[string]string{"DD": "deleted by both", "AU": "added by us", "UD": "deleted by them", "UA": "added by them", "DU": "deleted by us", "AA": "added by both", "UU": "modified by both"}[letters]
	if !ok {
		return "in conflict"
	}
	return word
}

// gitFile is one path of a difference with its counts of lines; Binary ones have none.
type gitFile struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty"`
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
}

// parseGitCounts reads --numstat -z, and gives back what follows: the patch, where one was asked for.
func parseGitCounts(out string) (files []gitFile, rest string) {
	for out != "" {
		entry, after, ok := strings.Cut(out, "\x00")
		if entry == "" {
			return files, after // an empty entry stands before the patch
		}
		f := strings.SplitN(entry, "\t", 3)
		if !ok || len(f) != 3 {
			return files, ""
		}
		file := gitFile{Path: f[2], Binary: f[0] == "-"}
		file.Added, _ = strconv.Atoi(f[0]) // "-" counts nothing
		file.Deleted, _ = strconv.Atoi(f[1])
		out = after
		if file.Path == "" { // a rename has both names behind it
			if file.From, out, ok = strings.Cut(out, "\x00"); !ok {
				return files, ""
			}
			file.Path, out, _ = strings.Cut(out, "\x00")
		}
		files = append(files, file)
	}
	return files, ""
}

// gitCommit is one commit. Date is that of the author, RFC 3339.
type gitCommit struct {
	Hash    string   `json:"hash"`
	Parents []string `json:"parents"`
	Author  string   `json:"author"`
	Email   string   `json:"email"`
	Date    string   `json:"date"`
	Refs    string   `json:"refs,omitempty"`
	Subject string   `json:"subject"`
	Body    string   `json:"body,omitempty"`
}

// gitCommitFormat makes git log print commits as parseGitCommits reads them. No field of a commit can hold a NUL.
const gitCommitFormat = "--format=tformat:%H%x00%P%x00%an%x00%ae%x00%aI%x00%D%x00%s%x00%b%x00"

func parseGitCommits(out string) []gitCommit {
	list := []gitCommit{}
	for {
		f := strings.SplitN(strings.TrimPrefix(out, "\n"), "\x00", 9)
		if len(f) < 9 {
			return list
		}
		list = append(list, gitCommit{Hash: f[0], Parents: orEmpty(strings.Fields(f[1])), Author: f[2], Email: f[3], Date: f[4], Refs: f[5], Subject: f[6], Body: strings.TrimSpace(f[7])})
		out = f[8]
	}
}
