// This file holds tai help and tai version, made from the command table itself.
package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
)

// helpHead is what tai is, in the words its help opens with.
const helpHead = `tai is a terminal AI agent that speaks MCP in both directions.

usage:
  tai                                        the prompt
  tai "PROMPT"  |  COMMAND | tai "PROMPT"    one turn, then exit
  tai --serve-mcp KEY|env:NAME|file:PATH     serve tai's tools over HTTP
  tai COMMAND …

commands:
`

// printHelp writes the overview, or one command's own help with a real example.
func printHelp(w io.Writer, all []command, prompt command, path string) error {
	if path == "" {
		fmt.Fprint(w, helpHead)
		for _, c := range all {
			fmt.Fprintf(w, "  %-44s %s\n", strings.TrimSpace("tai "+c.Path+" "+c.Args), c.Short)
		}
		if len(prompt.Flags) > 0 {
			fmt.Fprintf(w, "\nflags without a command:\n%s", flagLines(prompt.Flags))
		}
		fmt.Fprintf(w, "\nflags of every command:\n%s\ntai help COMMAND shows a command with an example.\n", flagLines(globalFlags()))
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
	for _, c := range group {
		fmt.Fprintf(w, "  %-44s %s\n", strings.TrimSpace("tai "+c.Path+" "+c.Args), c.Short)
	}
	return nil
}

func printCommand(w io.Writer, c command) {
	fmt.Fprintf(w, "%s\n\nusage: %s\n", c.Short, strings.TrimSpace("tai "+c.Path+" "+c.Args))
	if c.Long != "" {
		fmt.Fprintf(w, "\n%s\n", c.Long)
	}
	if len(c.Flags) > 0 {
		fmt.Fprintf(w, "\nflags:\n%s", flagLines(c.Flags))
	}
	fmt.Fprintf(w, "\nexample:\n  %s\n\nThe flags of every command are in tai help.\n", c.Example)
}

func flagLines(flags []flagSpec) string {
	var b strings.Builder
	for _, f := range flags {
		fmt.Fprintf(&b, "  %-28s %s\n", strings.TrimSpace("--"+f.Name+" "+f.Value), f.Help)
	}
	return b.String()
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
