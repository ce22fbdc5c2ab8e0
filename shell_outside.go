// This file finds the paths that a command line writes out and that lead out of the root, so that the policy can say so before anything runs.
// It sees what is written: a path in a variable, in a script or in a program's own file it cannot see. It touches no file.
package main

import (
	"path"
	"slices"
	"strings"
)

// shellDirsMax bounds the folders that a line may be in; over it the root's is taken for what cannot be followed.
const shellDirsMax = 16

// outside gives the first path that leads out, and every word that may be a path, of the commands that are not reading. A cd that only a &&
// follows moves what stands behind it; behind any other operator it may have failed.
func (sc shellScope) outside(parts []shellClause, targets []shellTarget, reads []bool) (first string, paths []string) {
	now := []string{sc.folder()}
	ever, piped := now, false
	look := func(w shellWord) {
		paths = append(paths, w.text)
		if first == "" && sc.leaves(w.text, now) {
			first = w.text
		}
	}
	for i, part := range parts {
		if !reads[i] {
			words := shellPathWords(part.words, 0)
			for _, w := range words {
				look(w)
			}
			if part.depth == 0 && !piped && part.end == "&&" && len(part.words) == 2 && slices.Contains([]string{"cd", "pushd"}, part.words[0].text) {
				now = sc.moved(now, part.words[1].text)
				ever = append(slices.Clone(ever), now...)
			}
			if part.words[0].text == "cd" && len(part.words) == 1 && first == "" {
				first = "cd" // home
			}
		}
		for _, t := range targets {
			if t.at == i {
				look(t.word)
			}
		}
		if piped = part.end == "|" || part.end == "|&"; part.depth == 0 && part.end != "&&" || len(ever) > shellDirsMax {
			now = ever
		}
	}
	for _, t := range targets {
		if t.at >= len(parts) {
			look(t.word)
		}
	}
	return first, paths
}

// folder is where the line starts.
func (sc shellScope) folder() string {
	if sc.Dir != "" {
		return sc.Dir
	}
	return sc.Root
}

// moved gives the folders after a cd from each of dirs.
func (sc shellScope) moved(dirs []string, to string) []string {
	out := make([]string, len(dirs))
	for i, dir := range dirs {
		if out[i] = path.Join(dir, to); path.IsAbs(to) {
			out[i] = path.Clean(to)
		}
	}
	return out
}

// leaves reports whether a word names a path out of the root, seen from any of dirs: alone, as the value of an option or assignment, or as
// one of several.
func (sc shellScope) leaves(text string, dirs []string) bool {
	if sc.leads(text, dirs) {
		return true
	}
	if strings.Contains(text, "://") {
		return strings.Contains(strings.ToLower(text), "file:/")
	}
	if len(text) > 2 && text[0] == '-' && text[1] != '-' && !slices.Contains([]string{"-F/", "-d/", "-t/"}, text) && sc.leads(text[2:], dirs) {
		return true
	}
	for piece := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("=,:{}@", r) }) {
		if (piece[0] != '~' || piece == "~" && piece == text || strings.HasPrefix(piece, "~/")) && sc.leads(piece, dirs) {
			return true
		}
	}
	return false
}

// leads reports whether p as it stands names a path out of the root, or tai's own folder in it.
func (sc shellScope) leads(p string, dirs []string) bool {
	for _, home := range []string{"$HOME", "${HOME}", "$OLDPWD", "${OLDPWD}", "$TMPDIR", "${TMPDIR"} {
		if rest, ok := strings.CutPrefix(p, home); ok && (rest == "" || strings.IndexByte("/:-}", rest[0]) >= 0) {
			return true
		}
	}
	for _, here := range []string{"$PWD", "${PWD}"} {
		if rest, ok := strings.CutPrefix(p, here); ok && (rest == "" || rest[0] == '/') {
			p = "." + rest
		}
	}
	switch {
	case p == "":
		return false
	case p[0] == '~':
		return true
	case slices.ContainsFunc(strings.Split(p, "/"), shellOwn):
		return true
	case path.IsAbs(p):
		return !shellDevice(p) && !sc.inside(path.Clean(p))
	case p[0] == '$', !strings.Contains(p, ".."):
		return false
	}
	return slices.ContainsFunc(dirs, func(dir string) bool { return !sc.inside(path.Join(dir, p)) })
}

// inside reports whether a clean absolute path is the root or below it.
func (sc shellScope) inside(p string) bool {
	return sc.Root != "" && (p == sc.Root || strings.HasPrefix(p, strings.TrimSuffix(sc.Root, "/")+"/"))
}

// shellDevice reports a path that stands for no file.
func shellDevice(p string) bool {
	switch p {
	case "/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/random", "/dev/urandom", "/dev/full":
		return true
	}
	fd, ok := strings.CutPrefix(p, "/dev/fd/")
	return ok && shellDigits(fd)
}

// shellOwn reports a component that is, or as a pattern could be, the name of tai's own folder where letters' case may not count.
func shellOwn(part string) bool {
	part = strings.ToLower(part)
	fits, err := path.Match(part, ".tai")
	return part == ".tai" || strings.HasPrefix(part, ".") && fits && err == nil
}

// shellPathWords gives the words of a command that may be paths. Scripts, patterns and texts, which may look like one, are left out; the
// script of a shell is looked into.
func shellPathWords(words []shellWord, depth int) []shellWord {
	for len(words) > 1 && (shellAssignment(words[0].text) || slices.Contains([]string{"if", "then", "else", "elif", "while", "until", "do", "!", "{"}, words[0].text)) {
		words = words[1:] // an assignment is for the program alone; the line does not see it
	}
	if len(words) == 0 || depth > shellDepthMax {
		return words
	}
	if shellAssignment(words[0].text) {
		return words // the line may use it later
	}
	name, args := argvName(words[0].text), words[1:]
	switch {
	case shellWraps(name):
		n := slices.IndexFunc(args, func(w shellWord) bool {
			return !strings.HasPrefix(w.text, "-") && !shellAssignment(w.text) && strings.Trim(w.text, "0123456789.smhd") != ""
		})
		if n < 0 {
			return args
		}
		return slices.Concat(args[:n], shellPathWords(args[n:], depth+1))
	case slices.Contains([]string{"sh", "bash", "zsh", "dash", "ksh", "ash", "su", "eval"}, name):
		return shellScriptPaths(name, args, depth)
	}
	return shellDropTexts(name, args)
}

// shellWraps names programs that run the one among their arguments.
//
//go:noinline for size: it is called in many places
func shellWraps(name string) bool {
	return slices.Contains([]string{"sudo", "doas", "env", "nice", "nohup", "time", "timeout", "command", "builtin", "exec", "stdbuf", "setsid", "ionice", "busybox", "xargs", "watch"}, name)
}

// shellScriptPaths looks into the script that a shell is given.
func shellScriptPaths(name string, args []shellWord, depth int) []shellWord {
	var out []shellWord
	script := ""
	for i, w := range args {
		switch {
		case name == "eval":
			script += w.text + " "
		case i > 0 && strings.HasPrefix(args[i-1].text, "-") && !strings.HasPrefix(args[i-1].text, "--") && strings.Contains(args[i-1].text, "c"):
			script = w.text
		default:
			out = append(out, w)
		}
	}
	p := shellParser{s: script}
	if p.check() != nil || p.list(0, 0) != nil {
		return append(out, shellWord{text: script})
	}
	for _, part := range p.commands {
		out = append(out, shellPathWords(part.words, depth+1)...)
	}
	for _, t := range p.targets {
		out = append(out, t.word)
	}
	return out
}

// shellDropTexts leaves out the words of a program that are patterns, scripts or messages by their place.
func shellDropTexts(name string, args []shellWord) []shellWord {
	texts := "" // options whose value is a text
	first, given := false, []string(nil)
	switch name {
	case "echo", "printf", "true", "false", ":", "expr", "seq", "tr", "kill", "sleep", "exit", "return", "export", "unset", "set", "shift":
		if name == "export" {
			return args
		}
		return nil
	case "sed":
		texts, first, given = "-e --expression", true, []string{"-e", "-f", "--expression", "--file"}
	case "awk", "gawk", "mawk", "nawk":
		texts, first, given = "-F -v --field-separator", true, []string{"-f", "--file"}
	case "grep", "egrep", "fgrep", "rg", "ag", "ack", "jq", "yq":
		texts, first, given = "-e --regexp -g --glob --include --exclude -A -B -C -m --arg", true, []string{"-e", "-f", "--regexp", "--file", "--from-file", "--files"}
	case "perl", "ruby", "lua", "node", "bun":
		texts = "-e -E --eval"
	case "python", "python3":
		texts = "-c"
	case "php":
		texts = "-r"
	case "git":
		texts = "-m --message -S -G --grep --author --format --pretty --date"
	case "find", "fd", "fdfind":
		texts = "-name -iname -path -ipath -wholename -iwholename -regex -iregex -printf -perm"
	case "curl", "wget", "http":
		texts = "-H --header -A --user-agent -X --request -w --write-out"
	case "cut", "sort", "column", "paste", "join", "nl":
		texts = "-d -t -s --delimiter --field-separator --output-delimiter"
	case "test", "[":
		texts = "= == !="
	}
	first = first && !slices.ContainsFunc(args, func(w shellWord) bool {
		return slices.ContainsFunc(given, func(o string) bool {
			return w.text == o || strings.HasPrefix(w.text, o+"=") || len(o) == 2 && strings.HasPrefix(w.text, o)
		})
	})
	var out []shellWord
	for i, w := range args {
		switch {
		case i > 0 && slices.Contains(strings.Fields(texts), args[i-1].text):
		case strings.HasPrefix(w.text, "-") && slices.ContainsFunc(strings.Fields(texts), func(o string) bool { return strings.HasPrefix(w.text, o+"=") }):
		case first && !strings.HasPrefix(w.text, "-"):
			first = false
		default:
			out = append(out, w)
		}
	}
	return out
}

// shellAssignment reports a word of the form NAME=value.
func shellAssignment(text string) bool {
	name, _, ok := strings.Cut(text, "=")
	if !ok || name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	return strings.Trim(strings.TrimSuffix(name, "+"), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == ""
}

// argvName is the last part of a program's path.
func argvName(program string) string { return path.Base(program) }
