// This file judges the little languages inside command lines that are known to only read: scripts of sed and awk, filters of jq, formats of printf. Each knows a plain subset; what is not in it is not reading.
package main

import (
	"regexp"
	"slices"
	"strings"
)

// sedReads reports a script that only prints, deletes from what is printed, or substitutes in it: no command that writes, reads or
// runs (POSIX sed, and e, r, w, F, W of GNU). A delimiter stands three times in a substitution and nowhere else, so that no reading of brackets
// and escapes can see other commands in it.
func sedReads(script string) bool {
	if len(script) > 3 && script[0] == 's' && strings.IndexByte("/|#,@:!", script[1]) >= 0 {
		d := script[1:2]
		parts := strings.Split(script, d)
		if len(parts) != 4 || strings.HasSuffix(parts[1], `\`) || strings.HasSuffix(parts[2], `\`) || strings.ContainsAny(script, "\n") {
			return false
		}
		return strings.Trim(parts[3], "gpI0123456789") == ""
	}
	const addr = `(?:[0-9]+|\$|/(?:[^/\\\n]|\\[^/\n])*/I?)`
	const one = addr + `?(?:,(?:` + addr + `|\+[0-9]+))?!?[pdq=]`
	return regexp.MustCompile(`^ *` + one + `(?: *; *` + one + `)* *;? *$`).MatchString(script)
}

// awkReads reports a program of conditions, prints and sums alone: no function, no getline, no pipe, no redirection. A > stands in
// conditions only.
func awkReads(program string) bool {
	const text = `"(?:[^"\\]|\\[nt])*"`
	const field = `(?:\$(?:[0-9]{1,4}|NF)|\$\(NF-[0-9]\)|NR|FNR|NF|FILENAME)`
	const item = `(?:` + field + `|` + text + `|[0-9]+(?:\.[0-9]+)?|[a-z])`
	// awks do not agree whether a slash ends a pattern inside brackets, so that none stands there
	const re = `/(?:[^/[\\\n]|\\[^/\n]|\[\^?(?:[^]^/[\\\n]|\[:[a-z]+:\])(?:[^]/[\\\n]|\[:[a-z]+:\])*\])*/`
	const match = `!?` + re
	const test = `(?:` + match + `|(?:` + field + `|[a-z]) ?(?:==|!=|>=|<=|>|<) ?` + item + `|(?:` + field + `) ?!?~ ?` + re + `|NF)`
	const cond = test + `(?: ?(?:&&|\|\|) ?` + test + `)*`
	const say = `printf? ?` + `(?:` + item + `(?:(?: ?[,+*/-] ?| )` + item + `)*)?`
	const stmt = `(?:` + say + `|[a-z] ?(?:\+\+|\+= ?` + item + `|= ?` + item + `)|next)`
	const body = `\{ ?` + stmt + `(?: ?; ?` + stmt + `)*;? ?\}`
	const rule = `(?:(?:BEGIN|END) ?` + body + `|` + cond + `(?:, ?` + cond + `)?(?: ?` + body + `)?|` + body + `)`
	return regexp.MustCompile(`^ *` + rule + `(?:[ ;]*` + rule + `)* *$`).MatchString(program)
}

// jqReads reports a filter that sees its input alone: not the environment, and no module.
func jqReads(filter string) bool {
	lower := strings.ToLower(filter)
	return !slices.ContainsFunc([]string{"env", "import", "include", "module", "search_list", "input_filename", "$__prog"}, func(s string) bool { return strings.Contains(lower, s) })
}

// printfReads reports a format with nothing but plain conversions: %n sets a variable, whose index may be a command (bash, printf).
func printfReads(format string) bool {
	return !strings.HasPrefix(format, "-") && regexp.MustCompile(`^(?:[^%]|%%|%[-+ #0]*[0-9]*(?:\.[0-9]*)?[sdiouxXcbeEfgG])*$`).MatchString(format)
}

// printfCounts reports a format that printfReads passes and that takes a number.
func printfCounts(format string) bool {
	return regexp.MustCompile(`%[-+ #0-9.]*[diouxXeEfgG]`).MatchString(strings.ReplaceAll(format, "%%", ""))
}

// numberReads reports a word that a shell may take for a number: some evaluate it, and then an index in it may hold a command (zsh, ksh).
func numberReads(word string) bool { return !strings.ContainsAny(word, "[$`") }
