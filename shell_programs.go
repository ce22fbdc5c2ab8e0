// This file lists the programs that can be called so that they only read, and with which options and operands. It judges one
// command whose words are already split; what is not listed is not reading.
package main

import (
	"fmt"
	"path"
	"strings"
)

// shellScope is where a command would run. An absolute path under Root counts as inside; Trusted says whether a bare program
// name is found in a trusted folder (nil: all are).
type shellScope struct {
	Root    string
	Trusted func(program string) bool
}

// shellWord is one word without its quotes.
type shellWord struct {
	text   string
	glob   bool // holds an unquoted * ? or [
	quoted bool
}

// judge gives the reason why one command is not known to only read, "" when it is.
func (sc shellScope) judge(cmd []shellWord) string {
	name := cmd[0].text
	prog, ok := shellProgramFor(name)
	switch {
	case cmd[0].glob || !ok:
		return fmt.Sprintf("%q is no program that is known to only read", clip(name, 80))
	case !prog.builtin && sc.Trusted != nil && !sc.Trusted(name):
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
		if prog, ok = shellGitFor(args[0].text); !ok {
			return fmt.Sprintf("git %s is not known to only read", clip(args[0].text, 80))
		}
		args = args[1:]
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
	operands, options, pattern := 0, true, prog.pattern && !shellHasPatternOption(args)
	for i := 0; i < len(args); i++ {
		text := args[i].text
		switch {
		case options && text == "--":
			options = false
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
				i++
			}
			continue
		}
		if operands++; prog.operands >= 0 && operands > prog.operands {
			return fmt.Sprintf("%s has more operands than it may have to only read", name)
		}
		switch {
		case args[i].glob && (prog.operands > 0 || !prog.globs && strings.IndexByte("*?[", text[0]) >= 0):
			return "a pattern whose files could be read as more: " + clip(text, 80) // a file may be named like an option
		case prog.prefix != "" && !strings.HasPrefix(text, prog.prefix):
			return fmt.Sprintf("operand %s of %s", clip(text, 80), name)
		case pattern:
			pattern = false
		case prog.paths:
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
		if strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "e") {
			return true
		}
	}
	return false
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
	if pr.digits && shellDigits(text[1:]) {
		return false, true
	}
	for i := 1; i < len(text); i++ {
		switch {
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
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '/' || r == ':' }) {
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

// shellCredential reports whether a path's component is, or as a pattern could be, a usual name of credentials.
func shellCredential(part string, glob bool) bool {
	part = strings.ToLower(part)
	for _, name := range []string{
		".ssh", ".env", ".aws", ".azure", ".gnupg", ".netrc", "_netrc", ".npmrc", ".pypirc", ".docker", ".kube", ".git-credentials", ".pgpass",
		".my.cnf", ".htpasswd", ".vault-token", ".tai", "vault.db", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "shadow", "credentials",
		"credentials.json", "secrets.json", "secrets.yml", "secrets.yaml", ".bash_history", ".zsh_history", ".gitconfig", "a.pem", "a.key", "a.p12",
		"a.pfx", "a.jks", "a.kdbx", "a.tfstate",
	} {
		if glob {
			if ok, err := path.Match(part, name); ok || err != nil {
				return true
			}
		}
		if bare, any := strings.CutPrefix(name, "a."); any && strings.HasSuffix(part, "."+bare) || part == name {
			return true
		}
	}
	for _, start := range []string{".env.", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"} {
		if strings.HasPrefix(part, start) {
			return true
		}
	}
	return false
}

// shellDigits reports whether s is a row of digits.
func shellDigits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// shellProgram says how a program may be called so that it only reads. What is not listed is not allowed.
type shellProgram struct {
	flags    string // short options without a value
	values   string // short options with one, none of them a path or a program
	long     string // long options; a trailing = allows a value
	operands int    // at most; negative: any number
	prefix   string // of every operand
	digits   bool   // -20 is an option
	pattern  bool   // the first operand is a pattern, not a path
	paths    bool   // operands are paths
	contents bool   // what the paths hold is shown
	globs    bool   // none of its options is harmful, so a file named like one is not either
	builtin  bool   // of every shell
	free     bool   // the arguments do not matter: they are only printed
}

// shellProgramFor is the list of programs that can be called so that they only read.
func shellProgramFor(name string) (shellProgram, bool) {
	const any = -1
	switch name {
	case "echo", "true", "false", ":":
		return shellProgram{free: true, builtin: true}, true
	case "pwd":
		return shellProgram{flags: "LP", builtin: true}, true
	case "whoami", "nproc", "arch", "hostname", "tty":
		return shellProgram{long: "all"}, true
	case "id", "groups":
		return shellProgram{flags: "ugGnr", long: "user group groups name real", operands: 1}, true
	case "uname":
		return shellProgram{flags: "asnrvmpio", long: "all kernel-name nodename kernel-release machine operating-system"}, true
	case "which":
		return shellProgram{flags: "a", operands: any}, true
	case "date":
		return shellProgram{flags: "uR", values: "d", long: "utc universal rfc-email date= iso-8601= rfc-3339=", operands: 1, prefix: "+"}, true
	case "ls":
		return shellProgram{flags: "aAlhtrSRd1FiksnogpQmxCUcXNLHZGB", long: "all almost-all human-readable color= recursive reverse size sort= time= time-style= " +
			"classify directory inode group-directories-first full-time si no-group numeric-uid-gid", operands: any, paths: true, globs: true}, true
	case "cat":
		return shellProgram{flags: "nbAEsTvetu", long: "number number-nonblank show-all show-ends show-tabs squeeze-blank", operands: any, paths: true, globs: true, contents: true}, true
	case "tac", "rev", "nl":
		return shellProgram{operands: any, paths: true, globs: true, contents: true}, true
	case "head", "tail":
		return shellProgram{flags: "qv", values: "nc", digits: true, long: "lines= bytes= quiet silent verbose", operands: any, paths: true, globs: true, contents: true}, true
	case "wc":
		return shellProgram{flags: "lwcmL", long: "lines words bytes chars max-line-length", operands: any, paths: true, globs: true}, true
	case "grep", "egrep", "fgrep":
		return shellProgram{flags: "EFGPinvclLoqshHrwxaIbyz", values: "ABCme", digits: true, long: "include= exclude= exclude-dir= color= colour= ignore-case line-number " +
			"invert-match count files-with-matches files-without-match only-matching quiet no-messages no-filename with-filename recursive word-regexp line-regexp " +
			"text extended-regexp fixed-strings perl-regexp basic-regexp after-context= before-context= context= max-count= null",
			operands: any, pattern: true, paths: true, globs: true, contents: true}, true
	case "file":
		return shellProgram{flags: "bihkNr", long: "brief mime mime-type mime-encoding no-dereference", operands: any, paths: true}, true
	case "stat":
		return shellProgram{flags: "Lft", values: "c", long: "format= printf= terse file-system dereference", operands: any, paths: true, globs: true}, true
	case "sort":
		return shellProgram{flags: "bdfghinMRrVuscmz", values: "kt", long: "reverse unique numeric-sort human-numeric-sort version-sort ignore-case key= field-separator= check stable",
			operands: any, paths: true, contents: true}, true
	case "uniq": // the second operand would be written
		return shellProgram{flags: "cdDiuz", values: "fsw", long: "count repeated unique ignore-case skip-fields= skip-chars= check-chars=", operands: 1, paths: true, contents: true}, true
	case "cut":
		return shellProgram{flags: "nsz", values: "bcdf", long: "fields= delimiter= characters= bytes= output-delimiter= only-delimited complement", operands: any, paths: true, contents: true}, true
	case "tr":
		return shellProgram{flags: "cCdst", long: "complement delete squeeze-repeats truncate-set1", operands: 2}, true
	case "du":
		return shellProgram{flags: "shackmxLb0", values: "d", long: "summarize human-readable all total max-depth= apparent-size bytes one-file-system", operands: any, paths: true, globs: true}, true
	case "df":
		return shellProgram{flags: "hiTklPa", long: "human-readable inodes print-type all total local", operands: any, paths: true}, true
	case "tree":
		return shellProgram{flags: "adfilpsughDFNrtCn", values: "LIP", long: "dirsfirst noreport gitignore", operands: any, paths: true}, true
	case "basename", "dirname":
		return shellProgram{operands: any}, true
	case "diff", "cmp", "comm":
		return shellProgram{flags: "urNqbBwyis123", long: "unified= brief recursive ignore-case color=", operands: 2, paths: true, contents: true}, true
	case "md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum":
		return shellProgram{flags: "bt", operands: any, paths: true, globs: true, contents: true}, true
	case "git":
		return shellProgram{}, true
	}
	return shellProgram{}, false
}

// shellGitFor is the same for git's commands. Options that write, run a program or look at another repository are left out.
func shellGitFor(command string) (shellProgram, bool) {
	const any = -1
	const diff = " stat= shortstat numstat name-only name-status patch no-patch summary no-ext-diff no-textconv color= no-color word-diff= unified= diff-filter= " +
		"ignore-all-space ignore-space-change ignore-blank-lines find-renames= check minimal patience histogram raw abbrev="
	const log = " oneline graph all decorate= no-decorate reverse merges no-merges follow first-parent format= pretty= since= until= after= before= author= committer= grep= max-count= skip= " +
		"date= branches= tags= remotes= left-right abbrev-commit relative-date"
	switch command {
	case "status":
		return shellProgram{flags: "sbuz", long: "short branch porcelain= untracked-files= ignored= long show-stash ahead-behind", operands: any, paths: true}, true
	case "diff":
		return shellProgram{flags: "pswbuRMCz", values: "USG", long: "cached staged merge-base" + diff, operands: any, paths: true, contents: true}, true
	case "log", "show":
		return shellProgram{flags: "pswbuiMCz", values: "nUSG", digits: true, long: log + diff, operands: any, paths: true, contents: true}, true
	case "ls-files":
		return shellProgram{flags: "cdmosz", long: "cached deleted modified others stage exclude-standard full-name", operands: any, paths: true}, true
	case "rev-parse":
		return shellProgram{long: "show-toplevel abbrev-ref short= verify git-dir is-inside-work-tree show-prefix", operands: any, paths: true}, true
	case "blame":
		return shellProgram{flags: "wMCltse", values: "L", operands: any, paths: true, contents: true}, true
	case "version":
		return shellProgram{}, true
	}
	return shellProgram{}, false
}
