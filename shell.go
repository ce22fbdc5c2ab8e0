// This file judges a command line for the policy: can it be read, does it only read, and which commands does it hold. It
// is a classifier, not a shell: whatever it does not know is not reading, and whatever it cannot split is unparsable. It
// starts nothing, opens nothing and knows no mode.
package main

import (
	"path"
	"strings"
)

// shellVerdict is what classifyShell finds. Reading commands may run unasked. Simple ones hold nothing but plain commands
// joined by operators: no substitution, variable, redirection to a file, here-document, subshell or assignment. Words
// are the commands with their words unquoted, also those inside substitutions, so that a deny finds them wherever they
// stand; they are nil when the line is not Parsable.
type shellVerdict struct {
	Reading  bool
	Parsable bool
	Simple   bool
	Reason   string // why it is not reading, one clause
	Words    [][]string
	Runs     []bool   // for each of Words: a reading command on its own
	Outside  string   // the first written path that leads out of the root, of a command that is not reading; "" if there is none
	Paths    []string // what may be paths in the commands that are not reading, and the targets of redirections
}

// classifyShell judges a POSIX or bash command line. It is pure; symbolic links under the root are not its matter.
func classifyShell(command string, scope shellScope) shellVerdict {
	p := shellParser{s: command}
	err := p.check()
	if err == nil {
		err = p.list(0, 0)
	}
	if err != nil {
		return shellVerdict{Reason: "the command cannot be split: " + err.Error()}
	}
	v := shellVerdict{Parsable: true, Simple: p.special == "", Reason: p.special, Words: [][]string{}}
	for _, cmd := range p.commands {
		words := make([]string, len(cmd.words))
		for i, w := range cmd.words {
			words[i] = w.text
		}
		why := scope.judge(cmd.words)
		v.Words, v.Runs = append(v.Words, words), append(v.Runs, why == "")
		if v.Reason == "" {
			v.Reason = why
		}
	}
	if len(v.Words) == 0 && v.Reason == "" {
		v.Reason = "there is no command"
	}
	v.Reading = v.Reason == ""
	if !v.Reading {
		v.Outside, v.Paths = scope.outside(p.commands, p.targets, v.Runs)
	}
	return v
}

// shellCommandMatch reports whether pattern, a program with leading arguments, stands anywhere in a command: also behind
// wrappers (sudo, env, xargs …), with a path before the program, and with options before the arguments. It is for
// denies, so it would rather match too much.
func shellCommandMatch(cmd, pattern []string) bool {
	for i := range cmd {
		if len(pattern) > 0 && path.Base(strings.ReplaceAll(cmd[i], `\`, "/")) == pattern[0] && shellArgsMatch(cmd[i+1:], pattern[1:]) {
			return true
		}
	}
	return false
}

// shellArgsMatch reports whether args begin with want when options, each perhaps with a value, are passed over.
func shellArgsMatch(args, want []string) bool {
	for i := 0; ; i++ {
		if len(args)-i < len(want) {
			return false
		}
		whole := true
		for j, w := range want {
			whole = whole && args[i+j] == w
		}
		if whole {
			return true
		}
		option := strings.HasPrefix(args[i], "-") || (i > 0 && strings.HasPrefix(args[i-1], "-"))
		if !option {
			return false
		}
	}
}

// shellLooseMatch looks for pattern in the bare text of a command line, quotes and backslashes taken out: for lines whose
// words do not say what runs (a shell's -c, eval, a here-document, a variable).
func shellLooseMatch(command string, pattern []string) bool {
	bare := strings.NewReplacer(`\`, "", `'`, "", `"`, "").Replace(command)
	words := strings.FieldsFunc(bare, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>`${}", r) })
	return shellCommandMatch(words, pattern)
}
