// This file lists the programs that can be called so that they only read, with which options and operands, and the usual names of files
// that hold credentials. What is not listed is not reading.
package main

import (
	"path"
	"slices"
	"strings"
)

// shellProgram says how a program may be called so that it only reads. What is not listed is not allowed.
type shellProgram struct {
	flags    string            // short options without a value
	values   string            // short options with one, none of them a path or a program
	long     string            // long options; a trailing = allows a value
	operands int               // at most; negative: any number
	prefix   string            // of every operand
	digits   bool              // -20 is an option
	pattern  bool              // the first operand is a pattern, not a path
	paths    bool              // operands are paths
	contents bool              // what the paths hold is shown
	globs    bool              // none of its options is harmful, so a file named like one is not either
	suffix   bool              // one of its options shows a file, so that of leading patterns only *.EXT will do
	bundles  bool              // a short option takes the next word even when others follow it in its own
	builtin  bool              // of every shell
	free     bool              // the arguments do not matter: they are only printed
	script   func(string) bool // the first operand is a script that must pass it
	first    []string          // the word after a command of git
}

// shellProgramFor is the list of programs that can be called so that they only read.
func shellProgramFor(name string) (shellProgram, bool) {
	const any = -1
	switch name {
	case "echo", "true", "false", ":":
		return shellProgram{free: true, builtin: true}, true
	case "expr":
		return shellProgram{free: true}, true
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
		return shellProgram{flags: "aAlhtrSRd1FiksnogpQmxCUcXNZGB", long: "all almost-all human-readable color= recursive reverse size sort= time= time-style= " +
			"classify directory inode group-directories-first full-time si no-group numeric-uid-gid", operands: any, paths: true, globs: true}, true
	case "cat":
		return shellProgram{flags: "nbAEsTvetu", long: "number number-nonblank show-all show-ends show-tabs squeeze-blank", operands: any, paths: true, globs: true, contents: true}, true
	}
	return shellTextFor(name)
}

// shellTextFor is the list of those that show what files hold.
func shellTextFor(name string) (shellProgram, bool) {
	const any = -1
	switch name {
	case "nl":
		return shellProgram{flags: "p", values: "bnwsvhfil", operands: any, paths: true, globs: true, contents: true}, true
	case "sed":
		return shellProgram{flags: "nErsz", long: "quiet silent regexp-extended separate", operands: any, pattern: true, script: sedReads, paths: true, contents: true}, true
	case "awk", "gawk", "mawk":
		return shellProgram{values: "F", operands: any, pattern: true, script: awkReads, paths: true, globs: true, contents: true}, true
	case "jq":
		return shellProgram{flags: "rcSnsMCaje", long: "raw-output compact-output sort-keys null-input slurp monochrome-output color-output ascii-output join-output exit-status tab",
			operands: any, pattern: true, script: jqReads, paths: true, contents: true}, true
	case "rg":
		return shellProgram{flags: "nilcwFvoSsHIhNxU0Ppq", values: "ABCmetTgMjrd", long: "line-number ignore-case files-with-matches count count-matches word-regexp fixed-strings invert-match " +
			"only-matching smart-case case-sensitive no-heading heading with-filename no-filename no-line-number json stats files type= type-not= after-context= before-context= context= " +
			"max-count= max-depth= max-columns= color= sort= sortr= glob= multiline pcre2 trim vimgrep column null files-without-match quiet",
			operands: any, pattern: true, paths: true, contents: true}, true
	case "fd", "fdfind":
		return shellProgram{flags: "HIiasgp0", values: "etdE", long: "hidden no-ignore ignore-case case-sensitive extension= type= max-depth= min-depth= exclude= glob absolute-path full-path print0",
			operands: any, pattern: true, paths: true}, true
	case "seq":
		return shellProgram{flags: "w", values: "sf", operands: 3}, true
	case "uptime":
		return shellProgram{flags: "ps"}, true
	case "free":
		return shellProgram{flags: "bkmghtwv"}, true
	case "lscpu":
		return shellProgram{}, true
	case "paste":
		return shellProgram{flags: "sz", values: "d", operands: any, paths: true, contents: true}, true
	case "fold":
		return shellProgram{flags: "bs", values: "w", operands: any, paths: true, contents: true}, true
	case "column":
		return shellProgram{flags: "tx", values: "scN", operands: any, paths: true, contents: true}, true
	case "od":
		return shellProgram{flags: "cxbv", values: "AjtN", operands: 1, paths: true, contents: true}, true
	case "hexdump":
		return shellProgram{flags: "Cvcxb", values: "ns", operands: 1, paths: true, contents: true}, true
	case "strings":
		return shellProgram{flags: "a", values: "n", operands: 1, paths: true, contents: true}, true
	case "xxd": // the second operand would be written
		return shellProgram{flags: "pub", values: "lsc", operands: 1, paths: true, contents: true}, true
	case "readlink", "realpath":
		return shellProgram{flags: "femnsz", long: "canonicalize relative-to= no-symlinks", operands: any, paths: true}, true
	case "tac", "rev":
		return shellProgram{operands: any, paths: true, globs: true, contents: true}, true
	case "head", "tail":
		return shellProgram{flags: "qv", values: "nc", digits: true, long: "lines= bytes= quiet silent verbose", operands: any, paths: true, globs: true, contents: true}, true
	case "wc":
		return shellProgram{flags: "lwcmL", long: "lines words bytes chars max-line-length", operands: any, paths: true, suffix: true}, true
	case "grep", "egrep", "fgrep":
		return shellProgram{flags: "EFGPinvclLoqshHrwxaIbyz", values: "ABCme", digits: true, long: "include= exclude= exclude-dir= color= colour= ignore-case line-number " +
			"invert-match count files-with-matches files-without-match only-matching quiet no-messages no-filename with-filename recursive word-regexp line-regexp " +
			"text extended-regexp fixed-strings perl-regexp basic-regexp after-context= before-context= context= max-count= null",
			operands: any, pattern: true, paths: true, globs: true, contents: true}, true
	case "file":
		return shellProgram{flags: "bihkNr", long: "brief mime mime-type mime-encoding no-dereference", operands: any, paths: true}, true
	case "stat":
		return shellProgram{flags: "Lft", values: "c", long: "format= printf= terse file-system dereference", operands: any, paths: true, globs: true}, true
	}
	return shellFilterFor(name)
}

// shellFilterFor is the rest of the list: programs that take lines apart, and git.
func shellFilterFor(name string) (shellProgram, bool) {
	const any = -1
	switch name {
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
		return shellProgram{flags: "shackmxb0", values: "d", long: "summarize human-readable all total max-depth= apparent-size bytes one-file-system", operands: any, paths: true, suffix: true}, true
	case "df":
		return shellProgram{flags: "hiTklPa", long: "human-readable inodes print-type all total local", operands: any, paths: true}, true
	case "tree":
		return shellProgram{flags: "adfipsughDFNrtCn", values: "LIP", bundles: true, long: "dirsfirst noreport gitignore", operands: any, paths: true}, true
	case "basename", "dirname":
		return shellProgram{operands: any}, true
	case "diff", "cmp", "comm":
		return shellProgram{flags: "uqbBwyis123", values: "U", long: "unified= brief ignore-case color= side-by-side ignore-all-space", operands: 2, paths: true, contents: true}, true
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
		return shellProgram{flags: "sbuzv", long: "short branch porcelain= untracked-files= ignored= long show-stash ahead-behind", operands: any, paths: true}, true
	case "diff":
		return shellProgram{flags: "pswbuRMCz", values: "SG", long: "cached staged merge-base" + diff, operands: any, paths: true, contents: true}, true
	case "log", "show":
		return shellProgram{flags: "pswbuiMCz", values: "nSG", digits: true, long: log + diff, operands: any, paths: true, contents: true}, true
	case "ls-files":
		return shellProgram{flags: "cdmosz", long: "cached deleted modified others stage exclude-standard full-name", operands: any, paths: true}, true
	case "rev-parse":
		return shellProgram{long: "show-toplevel abbrev-ref short= verify git-dir is-inside-work-tree show-prefix", operands: any, paths: true}, true
	case "blame":
		return shellProgram{flags: "wMCltse", values: "L", operands: any, paths: true, contents: true}, true
	case "version":
		return shellProgram{}, true
	case "branch": // an operand would make one
		return shellProgram{flags: "avr", long: "all list show-current remotes verbose no-color sort= format= merged= no-merged= contains="}, true
	case "tag":
		return shellProgram{flags: "ln", long: "list sort= format="}, true
	case "remote":
		return shellProgram{}, true
	case "stash", "worktree", "submodule", "reflog", "bisect", "notes":
		first := map[string][]string{"stash": {"list"}, "worktree": {"list"}, "submodule": {"status"}, "reflog": {"show"}, "bisect": {"log"}, "notes": {"list"}}[command]
		return shellProgram{flags: "n", long: "oneline stat porcelain cached", digits: true, first: first}, true
	case "describe":
		return shellProgram{long: "tags all always abbrev= long exact-match dirty match=", operands: any, paths: true}, true
	case "rev-list":
		return shellProgram{values: "n", digits: true, long: "count all max-count= since= until= author= left-right oneline reverse", operands: any, paths: true}, true
	case "shortlog":
		return shellProgram{flags: "sne", long: "summary numbered email all since= until=", operands: any, paths: true}, true
	case "show-ref", "ls-tree", "merge-base", "name-rev", "cat-file", "diff-tree", "count-objects":
		return shellProgram{flags: "rtlpevH", long: "heads tags name-only long full-tree abbrev= is-ancestor all stat no-commit-id size-pack", operands: any, paths: true, contents: true}, true
	case "grep":
		return shellProgram{flags: "nilcwFEGPvoIhHpq", values: "ABCme", digits: true, long: "line-number ignore-case files-with-matches count word-regexp fixed-strings extended-regexp perl-regexp invert-match " +
			"only-matching cached show-function break heading color= max-depth= context= after-context= before-context= max-count=",
			operands: any, pattern: true, paths: true, contents: true}, true
	}
	return shellProgram{}, false
}

// shellCredential reports whether a path's component is, or as a pattern could be, a usual name of credentials.
func shellCredential(part string, glob bool) bool {
	part = strings.ToLower(part)
	for _, name := range []string{
		".ssh", ".env", ".aws", ".azure", ".gnupg", ".netrc", "_netrc", ".npmrc", ".pypirc", ".docker", ".kube", ".git-credentials", ".pgpass",
		".my.cnf", ".htpasswd", ".vault-token", ".tai", "vault.db", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "shadow", "credentials",
		"credentials.json", "secrets.json", "secrets.yml", "secrets.yaml", ".bash_history", ".zsh_history", ".gitconfig", "a.pem", "a.key", "a.p12",
		"a.pfx", "a.jks", "a.kdbx", "a.tfstate", "a.env", "a.ppk", "a.keystore", "a.gpg", "a.asc", "a.ovpn", "a.mobileprovision", ".envrc", ".dockercfg", ".dockerconfigjson", ".s3cfg", ".boto",
		".terraformrc", "authorized_keys", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history", ".rediscli_history", ".lesshst", ".viminfo", ".yarnrc.yml", ".yarnrc",
		".sops.yaml", ".password-store", ".gem", ".config", ".cargo", "tokens.json", "token.json", "client_secret.json", "application_default_credentials.json", "htpasswd",
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
	for _, start := range []string{".env.", ".env-", ".env_", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials.", "credential.", "secret.", "secrets.", "service-account", "service_account"} {
		if strings.HasPrefix(part, start) && !shellCode(part) {
			return true
		}
	}
	return false
}

// shellCode reports a name that is program text or prose, whatever it is about.
func shellCode(name string) bool {
	return slices.Contains([]string{".go", ".py", ".js", ".ts", ".tsx", ".rs", ".c", ".h", ".java", ".rb", ".md", ".html", ".css", ".php", ".sh"}, path.Ext(name))
}
