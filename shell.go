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
	Open     [][]bool // for each word of Words: what it stands for is not known, a shell fills it in
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
		words, open := make([]string, len(cmd.words)), make([]bool, len(cmd.words))
		for i, w := range cmd.words {
			words[i], open[i] = w.text, w.open || w.glob
		}
		why := scope.judge(cmd.words)
		v.Words, v.Open, v.Runs = append(v.Words, words), append(v.Open, open), append(v.Runs, why == "")
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
// denies, so it would rather match too much: a word that is open may be any that the pattern wants, the program where one is expected.
func shellCommandMatch(cmd []string, open []bool, pattern []string) bool {
	for i := range cmd {
		if len(pattern) == 0 {
			return false
		}
		name := path.Base(strings.ReplaceAll(cmd[i], `\`, "/"))
		args, after := cmd[i+1:], open[min(i+1, len(open)):]
		if name == pattern[0] && shellArgsMatch(args, after, pattern[1:]) {
			return true
		}
		leads := i == 0 || shellWraps(argvName(cmd[0])) || shellAssignment(cmd[i-1])
		if leads && shellMayBe(cmd, open, i, pattern[0]) && (shellSplits(cmd[i:], open[i:]) || shellArgsMatch(args, after, pattern[1:])) {
			return true
		}
	}
	return false
}

// shellMayBe reports whether an open word may stand for want: a pattern that fits it, or what is not known at all.
func shellMayBe(words []string, open []bool, i int, want string) bool {
	if i >= len(open) || !open[i] {
		return false
	}
	if strings.ContainsAny(words[i], "*?[") && !strings.ContainsAny(words[i], "${}") {
		fits, err := path.Match(path.Base(words[i]), want)
		return fits || err != nil
	}
	return true
}

// shellArgsMatch reports whether args begin with want when options, each perhaps with a value, are passed over.
func shellArgsMatch(args []string, open []bool, want []string) bool {
	for i := 0; ; i++ {
		if len(args)-i < len(want) {
			return i < len(args) && len(want) > 0 && shellSplits(args[i:], open[min(i, len(open)):])
		}
		whole := true
		for j, w := range want {
			whole = whole && (args[i+j] == w || shellMayBe(args, open, i+j, w))
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

// shellSplits reports a first word that may stand for several.
func shellSplits(words []string, open []bool) bool {
	return len(open) > 0 && open[0] && !strings.ContainsAny(words[0], "*?[")
}

// shellLooseMatch looks for pattern in the bare text of a command line, quotes and backslashes taken out: for lines whose
// words do not say what runs (a shell's -c, eval, a here-document, a variable).
func shellLooseMatch(command string, pattern []string) bool {
	bare := strings.NewReplacer(`\`, "", `'`, "", `"`, "").Replace(command)
	words := strings.FieldsFunc(bare, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>`${}", r) })
	return shellCommandMatch(words, nil, pattern)
}
