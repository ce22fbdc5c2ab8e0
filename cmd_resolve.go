// This file holds the whole command tree and finds the command that a line of words names, for the shell as for the prompt.
package main

import (
	"context"
	"slices"
	"strings"
)

// resolve finds the command that the words name and reads the rest against its flags. Words that name none
// belong to prompt, the command without a name.
func resolve(words []string, all []command, prompt command) (*invocation, error) {
	plain := plainWords(words, prompt)
	cmd, used := commandFor(plain, all)
	switch {
	case cmd.Run != nil:
	case len(plain) > 0 && isGroup(plain[0], all) && len(plain) == 1 && asksHelp(words):
		return &invocation{cmd: command{Path: plain[0]}, flags: map[string][]string{"help": {"true"}}}, nil
	case len(plain) > 0 && isGroup(plain[0], all):
		return nil, unknownInGroup(plain, all)
	case len(plain) > 1:
		return nil, usageError(`a prompt stands in quotes: tai "…"; tai help lists the commands`, "no such command: %s", visibleLine(plain[0]))
	default:
		cmd, used = prompt, 0
	}
	specs := append(slices.Clone(cmd.Flags), globalFlags()...)
	var line []string
	if cmd.Path == "mcp add" {
		words, line = cutRunLine(words, specs)
	}
	args, rest, dash, flags, err := parseWords(words, specs)
	if err != nil {
		return nil, err
	}
	args = append(args, line...)
	inv := &invocation{cmd: cmd, args: args[used:], rest: rest, dash: dash, flags: flags}
	if inv.given("help") {
		return inv, nil
	}
	return inv, inv.checkCount()
}

// cutRunLine takes a run line off the words of tai mcp add: from npx or docker run on, flags are the other program's own.
func cutRunLine(words []string, specs []flagSpec) (own, line []string) {
	plain := 0
	for i := 0; i < len(words) && words[i] != "--"; i++ {
		w := words[i]
		if len(w) > 1 && w[0] == '-' {
			if slices.ContainsFunc(specs, func(f flagSpec) bool { return "--"+f.Name == w && f.Value != "" }) {
				i++
			}
			continue
		}
		if plain++; plain == 3 {
			if isRunner(words[i:]) {
				return words[:i], words[i:]
			}
			break
		}
	}
	return words, nil
}

// plainWords gives the words before -- that are no flags and no values of the flags that every command knows.
func plainWords(words []string, prompt command) []string {
	var out []string
	for i := 0; i < len(words) && words[i] != "--"; i++ {
		w := words[i]
		if len(w) < 2 || w[0] != '-' {
			out = append(out, w)
			continue
		}
		name := strings.TrimLeft(w, "-")
		if slices.ContainsFunc(slices.Concat(prompt.Flags, globalFlags()), func(f flagSpec) bool { return f.Name == name && f.Value != "" }) {
			i++
		}
	}
	return out
}

// commandFor gives the command with the longest path that the words begin with, and how many words that is.
func commandFor(words []string, all []command) (command, int) {
	var best command
	used := 0
	for _, c := range all {
		path := strings.Fields(c.Path)
		if len(path) > used && len(path) <= len(words) && slices.Equal(path, words[:len(path)]) {
			best, used = c, len(path)
		}
	}
	return best, used
}

// asksHelp reports --help among the words before --.
func asksHelp(words []string) bool {
	i := slices.Index(words, "--help")
	end := slices.Index(words, "--")
	return i >= 0 && (end < 0 || i < end)
}

func isGroup(word string, all []command) bool {
	return slices.ContainsFunc(all, func(c command) bool { return strings.HasPrefix(c.Path, word+" ") })
}

func unknownInGroup(words []string, all []command) error {
	var names []string
	for _, c := range all {
		if rest, ok := strings.CutPrefix(c.Path, words[0]+" "); ok {
			names = append(names, rest)
		}
	}
	hint := "tai " + words[0] + " " + strings.Join(names, " | ")
	if len(words) == 1 {
		return usageError(hint, "tai %s needs a command", words[0])
	}
	return usageError(hint, "no such command: %s %s", words[0], visibleLine(words[1]))
}

// isCommandWord reports a word that a command begins with.
func isCommandWord(word string, all []command) bool {
	return isGroup(word, all) || slices.ContainsFunc(all, func(c command) bool { return c.Path == word })
}

func (c *invocation) checkCount() error {
	usage := strings.TrimSpace("tai " + c.cmd.Path + " " + c.cmd.Args)
	switch n := len(c.args); {
	case n < c.cmd.Min:
		return usageError(usage, "too few arguments")
	case c.cmd.Max >= 0 && n > c.cmd.Max:
		return usageError(usage, "too many arguments, the first is %s", quoteClip(c.args[c.cmd.Max]))
	case c.dash && c.cmd.Path != "mcp add" && c.cmd.Path != "mcp call" && c.cmd.Path != "tools call" && c.cmd.Path != "":
		return usageError(usage, "this command takes nothing after --")
	}
	return nil
}

// commands is the whole tree. What is not in it does not exist.
func commands() []command {
	all := slices.Concat(mcpCommands(), mcpCallCommands(), toolCommands(), approvalCommands(), vaultCommands(), vaultCheckCommands(), sealCommands(), auditCommands(), auditReportCommands())
	help := command{Path: "help", Args: "[COMMAND]", Short: "list the commands, or show one", Example: "tai help mcp add", Max: -1, Alone: true}
	help.Run = func(_ context.Context, c *invocation) error {
		return printHelp(c.stdout, commands(), command{}, strings.Join(c.args, " "))
	}
	return append(all, command{Path: "version", Short: "tai's version and what it was built with", Example: "tai version --json", Alone: true, Run: cmdVersion}, help)
}
