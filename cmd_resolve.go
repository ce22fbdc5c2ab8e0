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
	case len(plain) > 0 && isGroup(strings.Join(plain, " "), all) && asksHelp(words):
		return &invocation{cmd: command{Path: strings.Join(plain, " ")}, flags: map[string][]string{"help": {"true"}}}, nil
	case len(plain) > 0 && isGroup(plain[0], all):
		return nil, unknownInGroup(plain, all)
	case len(plain) > 1:
		hint := `a prompt stands in quotes: tai "…"; tai help lists the commands`
		if group := meantGroup(plain[0], all); group != "" {
			hint = "did you mean tai " + group + "? " + hint
		} else if plain[0] == "serve" {
			hint = "tai mcp serve and tai --serve-mcp KEY serve"
		}
		return nil, usageError(hint, "no such command: %s", visibleLine(plain[0]))
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
		if slices.ContainsFunc(slices.Concat(prompt.Flags, globalFlags()), func(f flagSpec) bool { return f.Name == name && f.takes(words[i+1:]) }) {
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
	i := slices.IndexFunc(words, func(w string) bool { return w == "--help" || w == "-h" })
	end := slices.Index(words, "--")
	return i >= 0 && (end < 0 || i < end)
}

//go:noinline for size: it is called in many places
func isGroup(word string, all []command) bool {
	return slices.ContainsFunc(all, func(c command) bool { return strings.HasPrefix(c.Path, word+" ") })
}

// aloneWords gives the words of a line whose first word, a group of commands, stands alone: what shows the group's things is meant.
func aloneWords(words []string, all []command) []string {
	if len(words) == 0 || asksHelp(words) || len(plainWords(words, command{})) != 1 || !isGroup(words[0], all) {
		return words
	}
	for _, deed := range []string{"list", "status"} {
		if cmd, used := commandFor([]string{words[0], deed}, all); used == 2 && cmd.Run != nil {
			return append([]string{words[0], deed}, words[1:]...)
		}
	}
	return words
}

func unknownInGroup(words []string, all []command) error {
	group, rest := words[0], words[1:]
	for len(rest) > 0 && isGroup(group+" "+rest[0], all) { // a group may stand in a group
		group, rest = group+" "+rest[0], rest[1:]
	}
	var names []string
	for _, c := range all {
		if name, ok := strings.CutPrefix(c.Path, group+" "); ok {
			if first, _, inner := strings.Cut(name, " "); inner {
				name = first + " …"
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	hint := "tai " + group + " " + strings.Join(names, " | ")
	if len(rest) == 0 {
		return usageError(hint, "tai %s needs a command", group)
	}
	if meant := otherWord(group, rest[0]); meant != "" {
		hint = meant
	} else if i := slices.IndexFunc(names, func(name string) bool { return isForm(rest[0], name) }); i >= 0 {
		hint = "did you mean tai " + group + " " + names[i] + "? " + hint
	}
	return usageError(hint, "no such command: %s %s", group, visibleLine(rest[0]))
}

// isForm reports a word that begins as a name does or goes on after it (serv, server).
func isForm(word, name string) bool {
	return len(word) > 2 && (strings.HasPrefix(name, word) || strings.HasPrefix(word, name))
}

// otherWord gives the way to what a word means that other programs have in such a group, "" for any other word.
func otherWord(group, word string) string {
	switch group + " " + word {
	case "secret get", "secret show", "secret print":
		return "no command prints a value; it goes where ${NAME} stands in a server's entry; tai secret list shows the names"
	case "secret add", "secret create", "secret update":
		return "tai secret set NAME"
	case "secret remove", "secret rm":
		return "tai secret delete NAME"
	case "mcp delete", "mcp rm":
		return "tai mcp remove SERVER"
	case "vault restore":
		return "end every tai and cp the copy back: tai help vault backup tells how"
	case "vault lock", "vault encrypt", "vault passphrase", "vault passwd":
		return "tai vault seal --passphrase; tai help vault seal tells more"
	case "vault unlock", "vault open":
		return "tai asks for the passphrase when it needs it; tai vault unseal stores the secrets in the clear"
	}
	return ""
}

// meantGroup is the word that a wrong first word is a form of (secrets, audi), "" where there is none.
func meantGroup(word string, all []command) string {
	for _, c := range all {
		group, _, _ := strings.Cut(c.Path, " ")
		if isForm(word, group) {
			return group
		}
	}
	return ""
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
	all := slices.Concat(mcpCommands(), mcpImportCommands(), mcpCallCommands(), loginCommands(), mcpServeCommands(), toolCommands(), trustCommands(), clientConfigCommands(), approvalCommands(), vaultCommands(), vaultCheckCommands(), modelCommands(), sealCommands(), auditCommands(), auditReportCommands(), sessionCommands(), memoryCommands(), usageCommands())
	help := command{Path: "help", Args: "[COMMAND]", Short: "list the commands, or show one", Example: "tai help mcp add", Max: -1, Alone: true}
	help.Run = func(_ context.Context, c *invocation) error {
		return printHelp(c.stdout, commands(), command{}, strings.Join(c.args, " "))
	}
	return append(all, command{Path: "version", Short: "tai's version and what it was built with", Example: "tai version --json", Alone: true, Run: cmdVersion}, help)
}
