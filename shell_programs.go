// This file judges one command whose words are already split, by the list of programs that can be called so that they only read; what is
// not on it is not reading.
package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// shellScope is where a command would run. An absolute path under Root counts as inside; Trusted says whether a bare program
// name is found in a trusted folder (nil: all are).
type shellScope struct {
	Root    string
	Dir     string // where the line starts, absolute; "" is the root
	Trusted func(program string) bool
}

// judge gives the reason why one command is not known to only read, "" when it is.
func (sc shellScope) judge(cmd []shellWord) string {
	name := cmd[0].text
	prog, ok := shellProgramFor(name)
	why, special := "", false
	if !cmd[0].glob || name == "[" {
		why, special = sc.judgeSpecial(name, cmd[1:])
	}
	builtin := prog.builtin || slices.Contains([]string{"test", "[", "printf", "command", "type"}, name)
	switch {
	case special && (builtin || sc.Trusted == nil || sc.Trusted(name)):
		return why
	case cmd[0].glob || !ok && !special:
		return fmt.Sprintf("%q is no program that is known to only read", clip(name, 80))
	case !builtin && sc.Trusted != nil && !sc.Trusted(name):
		return fmt.Sprintf("%q is not found in a trusted folder", clip(name, 80))
	}
	args := cmd[1:]
	if name == "git" {
		if len(args) == 0 {
			return "git without a command"
		}
		if args[0].text == "--no-pager" && len(args) > 1 {
			args = args[1:]
		}
		command := args[0].text
		if prog, ok = shellGitFor(command); !ok {
			return fmt.Sprintf("git %s is not known to only read", clip(command, 80))
		}
		if args = args[1:]; len(prog.first) > 0 { // the word that says which of its deeds it is
			if len(args) == 0 || !slices.Contains(prog.first, args[0].text) {
				return fmt.Sprintf("git %s is known to only read with %s alone", command, strings.Join(prog.first, ", "))
			}
			args = args[1:]
		}
	}
	return sc.judgeArgs(name, prog, args)
}

// judgeArgs checks options by the program's list and operands as paths.
func (sc shellScope) judgeArgs(name string, prog shellProgram, args []shellWord) string {
	if prog.free {
		for _, w := range args {
			if why := sc.judgePath(w, false); w.glob && why != "" {
				return why
			}
		}
		return ""
	}
	operands, options, pattern := 0, true, prog.pattern && (prog.script != nil || !shellHasPatternOption(args))
	for i := 0; i < len(args); i++ {
		text := args[i].text
		switch {
		case options && text == "--":
			options = false
			continue
		case options && prog.script != nil && pattern && (text == "-e" || text == "-ne") && name == "sed":
			if i++; i >= len(args) || args[i].glob || !prog.script(args[i].text) {
				return "the script of sed is not known to only read"
			}
			pattern = slices.ContainsFunc(args[i+1:], func(w shellWord) bool { return w.text == "-e" || w.text == "-ne" })
			continue
		case options && strings.HasPrefix(text, "-") && text != "-":
			takesNext, ok := prog.option(text)
			if !ok {
				return fmt.Sprintf("option %s of %s is not known to only read", clip(text, 80), name)
			}
			if args[i].glob {
				return fmt.Sprintf("an option of %s holds a pattern", name)
			}
			if takesNext {
				if i++; i < len(args) && args[i].glob {
					return fmt.Sprintf("an option of %s holds a pattern", name)
				}
			}
			if name == "git" && gitSigned(text) {
				return "a format of git for which it checks signatures"
			}
			if name == "rg" && !rgGlobReads(text, args[min(i, len(args)-1)].text) {
				return "a glob of rg that could take in hidden files or credentials"
			}
			continue
		}
		if operands++; prog.operands >= 0 && operands > prog.operands {
			return fmt.Sprintf("%s has more operands than it may have to only read", name)
		}
		switch {
		case args[i].glob && (prog.operands > 0 || !prog.globs && strings.IndexByte("*?[", text[0]) >= 0 && !(prog.suffix && globForSuffix(text))):
			return "a pattern whose files could be read as more: " + clip(text, 80) // a file may be named like an option
		case name == "strings" && text != "" && text[0] == '@': // a file of further arguments
			return fmt.Sprintf("operand %s of strings", clip(text, 80))
		case prog.prefix != "" && !strings.HasPrefix(text, prog.prefix):
			return fmt.Sprintf("operand %s of %s", clip(text, 80), name)
		case pattern:
			if pattern = false; prog.script != nil && (args[i].glob || !prog.script(text)) {
				return fmt.Sprintf("the script of %s is not known to only read", name)
			}
		case prog.paths:
			if name == "git" {
				if why := gitOperand(&args[i]); why != "" {
					return why
				}
			}
			if why := sc.judgePath(args[i], prog.contents); why != "" {
				return why
			}
		}
	}
	return ""
}

// shellHasPatternOption reports whether grep's pattern may come from an option wherever it stands, so that every operand is a
// path.
func shellHasPatternOption(args []shellWord) bool {
	for _, w := range args {
		if strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "e") || w.text == "--files" {
			return true
		}
	}
	return false
}

// rgGlobReads reports whether an option of rg is no glob, or one that cannot name a hidden file or credentials: a glob takes in what rg
// leaves out on its own.
func rgGlobReads(option, next string) bool {
	glob, ok := strings.CutPrefix(option, "--glob=")
	if !ok {
		if !strings.HasPrefix(option, "-") || strings.HasPrefix(option, "--") || !strings.Contains(option, "g") {
			return true
		}
		if glob = option[strings.IndexByte(option, 'g')+1:]; glob == "" {
			glob = next
		}
	}
	if strings.HasPrefix(glob, "!") {
		return true
	}
	for part := range strings.SplitSeq(glob, "/") {
		if part != "**" && (strings.HasPrefix(part, ".") || strings.ContainsAny(part, `{[\`) || shellCredential(part, true)) {
			return false
		}
	}
	return !strings.HasSuffix(glob, "**")
}

// gitOperand prepares an operand of git: a path may be a pattern of git's own, also in quotes, or carry magic, which is not followed.
func gitOperand(w *shellWord) string {
	if strings.HasPrefix(w.text, ":") && !strings.HasPrefix(w.text, ":/") && strings.ContainsAny(w.text[:min(2, len(w.text))], "(!^") {
		return "a path of git with magic: " + clip(w.text, 80)
	}
	if strings.ContainsAny(w.text, "*?[") {
		w.glob = true
	}
	return ""
}

// gitSigned reports an option with a format for which git starts gpg, which may write and fetch keys.
func gitSigned(option string) bool {
	return strings.HasPrefix(option, "--") && (strings.Contains(option, "%G") || strings.Contains(option, "signature") && !strings.HasPrefix(option, "--grep="))
}

// option reports whether an option is on the program's list and whether its value is the next word. Long names must be
// spelled out: an abbreviation could be another program's wider one.
func (pr shellProgram) option(text string) (takesNext, ok bool) {
	if strings.HasPrefix(text, "--") {
		name, _, valued := strings.Cut(text[2:], "=")
		for _, known := range strings.Fields(pr.long) {
			if bare, takes := strings.CutSuffix(known, "="); bare == name && (takes || !valued) {
				return false, true
			}
		}
		return false, false
	}
	if n, ok := strings.CutPrefix(text, "-U"); ok && shellDigits(n) && strings.Contains(pr.long, "unified=") { // attached alone: git once took no other
		return false, true
	}
	if pr.digits && shellDigits(text[1:]) {
		return false, true
	}
	for i := 1; i < len(text); i++ {
		switch {
		case strings.IndexByte(pr.values, text[i]) >= 0 && pr.bundles && i < len(text)-1: // the letters behind it are options, too
			return false, shellDigits(text[i+1:])
		case strings.IndexByte(pr.values, text[i]) >= 0:
			return i == len(text)-1, true
		case strings.IndexByte(pr.flags, text[i]) < 0:
			return false, false
		}
	}
	return false, true
}

// judgePath gives the reason why a path may not be read unasked. Git's REV:PATH counts as its path.
func (sc shellScope) judgePath(w shellWord, contents bool) string {
	text := w.text
	if strings.HasPrefix(text, "~") || strings.Contains(text, ":~") || strings.Contains(text, "=~") {
		return "a path outside the root: " + clip(text, 80)
	}
	if w.glob && strings.ContainsAny(text, `\[`) {
		return "a pattern that cannot be followed: " + clip(text, 80)
	}
	if path.IsAbs(text) {
		if clean := path.Clean(text); text != "/dev/null" && (sc.Root == "" || clean != sc.Root && !strings.HasPrefix(clean, strings.TrimSuffix(sc.Root, "/")+"/")) {
			return "a path outside the root: " + clip(text, 80)
		}
	}
	git := false
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '/' || r == ':' }) {
		if contents && git && (part == "config" || part == "credentials" || w.glob && strings.ContainsAny(part, "*?")) {
			return "git's own configuration, which may hold credentials: " + clip(text, 80)
		}
		git = strings.EqualFold(part, ".git")
		switch {
		case part == "..":
			return "a path with ..: " + clip(text, 80)
		case w.glob && strings.HasPrefix(part, ".") && part != "." && strings.ContainsAny(part, "*?"):
			return "a pattern for hidden files: " + clip(text, 80)
		case contents && shellCredential(part, w.glob):
			return "a file that may hold credentials: " + clip(text, 80)
		}
	}
	return ""
}

// globForSuffix reports a pattern of the form *.EXT.
func globForSuffix(pattern string) bool {
	return regexp.MustCompile(`^\*\.[A-Za-z0-9]+$`).MatchString(pattern) && !shellCredential(pattern, true)
}

// judgeFind judges the words after find: starting points, then tests and prints.
func (sc shellScope) judgeFind(args []shellWord) string {
	i := 0
	for ; i < len(args) && !strings.HasPrefix(args[i].text, "-") && !slices.Contains([]string{"(", "!", ","}, args[i].text); i++ {
		if args[i].glob && strings.IndexByte("*?[", args[i].text[0]) >= 0 {
			return "a pattern whose files could be read as more: " + clip(args[i].text, 80)
		}
		if why := sc.judgePath(args[i], false); why != "" {
			return why
		}
	}
	for ; i < len(args); i++ {
		switch text := args[i].text; text {
		case "(", ")", "!", "-not", "-a", "-and", "-o", "-or", "-print", "-print0", "-prune", "-empty", "-quit", "-ls", "-readable", "-writable", "-executable", "-true", "-false", "-mount", "-xdev", "-depth", "-P":
			if args[i].glob {
				return "a pattern stands where find has a test"
			}
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-type", "-maxdepth", "-mindepth", "-size", "-mtime", "-mmin", "-ctime", "-cmin", "-atime", "-amin", "-newermt", "-perm", "-regex", "-iregex", "-regextype", "-user", "-group", "-links", "-printf", "-newer":
			if i++; i >= len(args) {
				return "a test of find has no value"
			}
			if args[i].glob && !globForSuffix(args[i].text) {
				return "an unquoted pattern whose files find could read as more: " + clip(args[i].text, 80)
			}
			if text == "-newer" {
				if why := sc.judgePath(args[i], false); why != "" {
					return why
				}
			}
		default:
			return "find " + clip(text, 80) + " is not known to only read"
		}
	}
	return ""
}

// judgeTest judges the words after test, or after [ with the ] at the end: files are looked at, texts and numbers compared. -v would look into an
// index, which may be a command.
func (sc shellScope) judgeTest(name string, args []shellWord) string {
	if name == "[" {
		if len(args) == 0 || args[len(args)-1].text != "]" {
			return "[ without ]"
		}
		args = args[:len(args)-1]
	}
	counts := slices.ContainsFunc(args, func(w shellWord) bool {
		return slices.Contains([]string{"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}, w.text)
	})
	for _, w := range args {
		if counts && !numberReads(w.text) {
			return name + " with " + clip(w.text, 80) + " as a number"
		}
		switch w.text {
		case "-f", "-d", "-e", "-r", "-w", "-x", "-s", "-L", "-h", "-n", "-z", "!", "=", "!=", "-a", "-o", "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
			continue
		}
		if w.glob || strings.HasPrefix(w.text, "-") {
			return name + " with " + clip(w.text, 80)
		}
		if why := sc.judgePath(w, false); why != "" {
			return why
		}
	}
	return ""
}

// judgeSpecial judges the programs whose words follow rules of their own; known is false for the others.
func (sc shellScope) judgeSpecial(name string, args []shellWord) (why string, known bool) {
	switch {
	case len(args) == 1 && args[0].text == "--version" && !args[0].glob && shellTellsVersion(name):
		return "", true
	case name == "find":
		return sc.judgeFind(args), true
	case name == "test" || name == "[":
		return sc.judgeTest(name, args), true
	case name == "printf":
		if len(args) == 0 || args[0].glob || !printfReads(args[0].text) {
			return "the format of printf is not known to only print", true
		}
		if printfCounts(args[0].text) && slices.ContainsFunc(args[1:], func(w shellWord) bool { return !numberReads(w.text) }) {
			return "an argument of printf is not known to be a number", true
		}
		return sc.judgeArgs(name, shellProgram{free: true}, args[1:]), true
	case name == "command" || name == "type":
		if name == "command" && (len(args) < 2 || args[0].text != "-v") {
			return "command runs a program", true
		}
		for _, w := range args {
			if w.glob || w.text != "-v" && strings.HasPrefix(w.text, "-") {
				return name + " with " + clip(w.text, 80), true
			}
		}
		return "", true
	}
	return "", false
}

// shellTellsVersion names programs that do nothing but tell their version when asked for it. Those that a file in the folder can make fetch
// another version (go, cargo, rustc, npm …) are not among them.
func shellTellsVersion(name string) bool {
	return slices.Contains([]string{"git", "node", "python", "python3", "gcc", "cc", "clang", "make", "cmake", "perl", "ruby", "bash", "curl", "jq", "rg", "sqlite3", "docker", "tar", "grep", "sed"}, name)
}
