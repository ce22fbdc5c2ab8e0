// This file holds tai help and tai version, made from the command table itself.
package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// helpHead is what tai is, in the words its help opens with.
const helpHead = `tai is a terminal AI agent that speaks MCP in both directions.

usage:
`

// helpUsage is how it is called.
func helpUsage() [][2]string {
	return [][2]string{
		{"tai", "the prompt"},
		{`tai "PROMPT"`, "one turn, then exit"},
		{`COMMAND | tai "PROMPT"`, "the same, about what COMMAND prints"},
		{"tai --serve-mcp KEY", "serve tai's tools over HTTP"},
		{"tai COMMAND …", "one of the commands below"},
	}
}

const (
	helpColumn = 32 // where the second column starts
	helpWidth  = 80 // columns that help fills at most
	helpNarrow = 64 // columns below which the second column stands below the first
	helpIndent = 6  // where it starts then
)

// helpColumns gives the columns that help fills on a screen, helpWidth on what is none.
func helpColumns(w io.Writer) int {
	cols, _ := screenBehind(w)
	if cols == 0 || cols > helpWidth {
		return helpWidth
	}
	return cols
}

// printParagraphs writes a text of several lines: as it stands where each fits, else each paragraph anew. Lines that begin with a blank stay lines.
func printParagraphs(w io.Writer, text string) {
	width := helpColumns(w)
	lines := strings.Split(text, "\n")
	if !slices.ContainsFunc(lines, func(line string) bool { return textWidth(line) > width }) {
		fmt.Fprintln(w, text)
		return
	}
	paragraph := ""
	end := func() {
		if paragraph != "" {
			fmt.Fprint(w, wrapWords("", paragraph, "", width))
		}
		paragraph = ""
	}
	for _, line := range lines {
		switch {
		case line == "":
			end()
			fmt.Fprintln(w)
		case line[0] == ' ':
			end()
			name, what, _ := strings.Cut(strings.TrimSpace(line), "   ")
			fmt.Fprint(w, wrapWords("  ", name, "    ", width))
			if what != "" {
				fmt.Fprint(w, wrapWords("      ", what, "      ", width))
			}
		default:
			paragraph += " " + line
		}
	}
	end()
}

// printHelp writes the overview, one group of commands, or one command's own help with a real example.
func printHelp(w io.Writer, all []command, prompt command, path string) error {
	if path == "" {
		printParagraphs(w, strings.TrimSuffix(helpHead, "\n"))
		for _, u := range helpUsage() {
			printColumns(w, u[0], u[1])
		}
		fmt.Fprint(w, "\ncommands:\n")
		printCommands(w, all)
		if len(prompt.Flags) > 0 {
			fmt.Fprint(w, "\nflags without a command:\n")
			printFlags(w, prompt.Flags)
		}
		fmt.Fprint(w, "\nflags of every command:\n")
		printFlags(w, globalFlags())
		fmt.Fprint(w, "\n"+wrapWords("", "tai help COMMAND shows a command with an example.", "", helpColumns(w)))
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
	fmt.Fprint(w, "\n"+wrapWords("", "tai help "+path+" COMMAND shows a command with an example.", "", helpColumns(w)))
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

// printColumns writes a name and, beside it or, where it is long or the screen narrow, below it, what it is.
func printColumns(w io.Writer, name, what string) {
	width := helpColumns(w)
	indent := strings.Repeat(" ", helpColumn)
	if width < helpNarrow {
		indent = strings.Repeat(" ", helpIndent)
	}
	if used := textWidth(name) + 2; width < helpNarrow || used+2 > helpColumn {
		fmt.Fprint(w, wrapWords("  ", name, "    ", width))
		fmt.Fprint(w, wrapWords(indent, what, indent, width))
		return
	}
	fmt.Fprint(w, wrapWords("  "+name+indent[textWidth(name)+2:], what, indent, width))
}

func printFlags(w io.Writer, flags []flagSpec) {
	for _, f := range flags {
		printColumns(w, strings.TrimSpace(f.dashed()+" "+f.Value), f.Help)
	}
}

func printCommand(w io.Writer, c command) {
	width := helpColumns(w)
	fmt.Fprint(w, wrapWords("", "tai "+c.Path+": "+c.Short, "", width), "\nusage:\n")
	fmt.Fprint(w, wrapWords("  ", strings.TrimSpace("tai "+c.Path+" "+c.Args), "    ", width))
	if c.Long != "" {
		fmt.Fprintln(w)
		printParagraphs(w, c.Long)
	}
	if len(c.Flags) > 0 {
		fmt.Fprint(w, "\nflags:\n")
		printFlags(w, c.Flags)
	}
	fmt.Fprint(w, "\nexample:\n  "+c.Example+"\n\n"+wrapWords("", "The flags of every command are in tai help.", "", width))
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
