// This file reads what people paste to name a GitHub repository: addresses of browsers, of git and of package managers. It is a pure function of the words;
// whether there is such a repository it does not know.
package main

import (
	"net/url"
	"strings"
)

const (
	githubOwnerMax = 100 // bytes of an owner's name; GitHub itself takes fewer
	githubRepoMax  = 100 // bytes of a repository's name
	githubWordMax  = 2048
	githubWeb      = "github.com"
)

// githubLink is a repository, and a place in it where the address names one.
type githubLink struct {
	Owner, Name string
	Place       []string // what stands behind tree or blob: a branch, tag or commit, which may have slashes, and a path
	File        bool     // the place is a file
}

// full is owner and name.
func (l githubLink) full() string { return l.Owner + "/" + l.Name }

// parseGitHubLink reads one word. ok is false where it is no address of a repository at one of the hosts (in lower case, with a port that is not the usual one); an error says what an
// address of such a host lacks.
func parseGitHubLink(word string, hosts ...string) (l githubLink, ok bool, err error) {
	word = strings.TrimSpace(word)
	word = strings.TrimSuffix(strings.TrimPrefix(word, "<"), ">")
	if word == "" || len(word) > githubWordMax || strings.ContainsAny(word, " \t\r\n\"'`{}") {
		return l, false, nil
	}
	rest := strings.TrimPrefix(word, "git+")
	scheme, after, has := strings.Cut(rest, "://")
	switch {
	case !has: // github.com/o/r, git@github.com:o/r.git
		rest = strings.TrimPrefix(rest, "git@")
	case strings.EqualFold(scheme, "ssh"):
		rest = strings.TrimPrefix(after, "git@")
	case strings.EqualFold(scheme, "https"), strings.EqualFold(scheme, "http"), strings.EqualFold(scheme, "git"):
		rest = after
	default:
		return l, false, nil
	}
	host, path, known := cutGitHubHost(rest, hosts, has)
	if !known {
		return l, false, nil
	}
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		if part, err = url.PathUnescape(part); err != nil || part == "." || part == ".." || strings.ContainsAny(part, "/\\\x00") {
			return l, true, newError("the address of the repository holds a part that is none")
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) < 2 {
		if host != githubWeb {
			return l, false, nil // any other address of a host that also has repositories
		}
		return l, true, newError("the address names no repository; it has the form https://github.com/OWNER/REPOSITORY")
	}
	l.Owner, l.Name = parts[0], strings.TrimSuffix(parts[1], ".git")
	if !githubName(l.Owner, githubOwnerMax) || !githubName(l.Name, githubRepoMax) {
		return l, true, newError("the address names no repository: owner and name have letters, digits, -, _ and dots")
	}
	if len(parts) > 3 {
		switch parts[2] {
		case "tree":
			l.Place = parts[3:]
		case "blob", "raw", "blame", "edit":
			l.Place, l.File = parts[3:], len(parts) > 4
		}
	}
	return l, true, nil
}

// cutGitHubHost splits off the host if it is one of those wanted; www. before it means the same. port says that a number behind the host is a port, not an owner.
func cutGitHubHost(s string, hosts []string, port bool) (host, path string, ok bool) {
	lower := strings.ToLower(s)
	for _, h := range hosts {
		for _, prefix := range []string{"", "www."} {
			if !strings.HasPrefix(lower, prefix+h) {
				continue
			}
			rest := s[len(prefix+h):]
			if port {
				for _, usual := range []string{":22", ":80", ":443"} {
					if after, ok := strings.CutPrefix(rest, usual); ok && strings.HasPrefix(after, "/") {
						rest = after
					}
				}
			}
			if rest == "" || strings.IndexByte("/?#", rest[0]) >= 0 || rest[0] == ':' && !port {
				return h, strings.TrimLeft(rest, ":/"), true
			}
		}
	}
	return "", "", false
}

// githubName reports a name of an owner or a repository.
func githubName(s string, max int) bool {
	if s == "" || len(s) > max || strings.Trim(s, ".") == "" || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return true
}
