// This file holds tai help and tai version, made from the command table itself.
package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"unicode/utf8"
)

// helpHead is what tai is, in the words its help opens with.
const helpHead = `tai is a terminal AI agent that speaks MCP in both directions.

usage:
  tai                             the prompt
  tai "PROMPT"                    one turn, then exit
  COMMAND | tai "PROMPT"          the same, about what COMMAND prints
  tai --serve-mcp KEY             serve tai's tools over HTTP
  tai COMMAND …                   one of the commands below

commands:
`

const (
	helpColumn = 32 // where the second column starts
	helpWidth  = 80 // columns that help fills at most
)

// printHelp writes the overview, one group of commands, or one command's own help with a real example.
func printHelp(w io.Writer, all []command, prompt command, path string) error {
	if path == "" {
		fmt.Fprint(w, helpHead)
		printCommands(w, all)
		if len(prompt.Flags) > 0 {
			fmt.Fprint(w, "\nflags without a command:\n")
			printFlags(w, prompt.Flags)
		}
		fmt.Fprint(w, "\nflags of every command:\n")
		printFlags(w, globalFlags())
		fmt.Fprintln(w, "\ntai help COMMAND shows a command with an example.")
		return nil
	}
	var group []command
	for _, c := range all {
		if c.Path == path {
			printCommand(w, c)
			return nil
		}
		if strings.HasPrefix(c.Path, path+" ") {
			group = append(group, c)
		}
	}
	if len(group) == 0 {
		return usageError("tai help lists the commands", "no such command: %s", visibleLine(path))
	}
	printCommands(w, group)
	fmt.Fprintf(w, "\ntai help %s COMMAND shows a command with an example.\n", path)
	return nil
}

// printCommands lists commands, an empty line between groups.
func printCommands(w io.Writer, list []command) {
	group := ""
	for i, c := range list {
		word, _, many := strings.Cut(c.Path, " ")
		if !many {
			word = "" // the commands of one word stand together
		}
		if i > 0 && word != group {
			fmt.Fprintln(w)
		}
		group = word
		printColumns(w, strings.TrimSpace("tai "+c.Path+" "+c.Args), c.Short)
	}
}

// printColumns writes a name and, beside it or, where it is long, below it, what it is.
func printColumns(w io.Writer, name, what string) {
	line := "  " + name
	used := utf8.RuneCountInString(line)
	if used+2 > helpColumn {
		fmt.Fprintln(w, line)
		line, used = "", 0
	}
	line += strings.Repeat(" ", helpColumn-used)
	used = helpColumn
	for i, word := range strings.Fields(what) {
		n := utf8.RuneCountInString(word)
		switch {
		case i > 0 && used+1+n > helpWidth:
			fmt.Fprintln(w, line)
			line, used = strings.Repeat(" ", helpColumn), helpColumn
		case i > 0:
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	fmt.Fprintln(w, line)
}

func printFlags(w io.Writer, flags []flagSpec) {
	for _, f := range flags {
		printColumns(w, strings.TrimSpace(f.dashed()+" "+f.Value), f.Help)
	}
}

func printCommand(w io.Writer, c command) {
	fmt.Fprintf(w, "tai %s: %s\n\nusage:\n  %s\n", c.Path, c.Short, strings.TrimSpace("tai "+c.Path+" "+c.Args))
	if c.Long != "" {
		fmt.Fprintf(w, "\n%s\n", c.Long)
	}
	if len(c.Flags) > 0 {
		fmt.Fprint(w, "\nflags:\n")
		printFlags(w, c.Flags)
	}
	fmt.Fprintf(w, "\nexample:\n  %s\n\nThe flags of every command are in tai help.\n", c.Example)
}

func cmdVersion(_ context.Context, c *invocation) error {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				revision = s.Value[:12]
			}
		}
	}
	if c.json {
		return writeJSON(c.stdout, map[string]string{"version": version, "revision": revision, "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH, "protocol": mcpProtocolVersion})
	}
	fmt.Fprintln(c.stdout, strings.TrimSpace("tai "+version+" "+revision))
	return nil
}
