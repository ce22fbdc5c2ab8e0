// This file splits command lines and finds out what a command really runs: the package, image or program that gives an
// unnamed entry its name. It starts nothing and knows no configuration format.
package main

import (
	"errors"
	"slices"
	"strings"
)

var errOpenQuote = errors.New("a quote is not closed")

// splitWords splits a command line: white space separates, single and double quotes group (also inside a word, and an
// empty pair is an empty word), a backslash escapes a space or a quote and is otherwise plain. With an error the words
// read so far are returned too.
func splitWords(s string) ([]string, error) {
	var words []string
	var b textBuilder
	var quote byte
	open := false // inside a word
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && strings.IndexByte(" '\"", s[i+1]) >= 0:
			i++
			b.WriteByte(s[i])
			open = true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			b.WriteByte(c)
		case c == '"' || c == '\'':
			quote, open = c, true
		case strings.IndexByte(" \t\r\n\v\f", c) >= 0:
			if open {
				words = append(words, b.String())
			}
			b.Reset()
			open = false
		default:
			b.WriteByte(c)
			open = true
		}
	}
	if quote != 0 {
		return words, errOpenQuote
	}
	if open {
		words = append(words, b.String())
	}
	return words, nil
}

// programName is programBase without the endings that Windows adds to programs.
func programName(command string) string {
	base := programBase(command)
	for _, ext := range programEndings() {
		base = strings.TrimSuffix(base, ext)
	}
	return base
}

func programEndings() []string { return []string{".exe", ".cmd", ".bat", ".com"} }

// valueOptions lists, for each package runner, the options that take the next word as their value.
func valueOptions(program string) []string {
	switch program {
	case "npx", "bunx":
		return []string{"-p", "--package", "-c", "--call", "--registry", "-w", "--workspace", "--cache", "--userconfig", "--prefix", "--loglevel"}
	case "uvx":
		return []string{"--from", "--with", "-w", "--with-editable", "--with-requirements", "-p", "--python", "--python-platform", "--index",
			"--default-index", "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-P", "--upgrade-package", "--reinstall-package",
			"--refresh-package", "--index-strategy", "--keyring-provider", "--resolution", "--prerelease", "--fork-strategy", "-C",
			"--config-setting", "--exclude-newer", "--link-mode", "--cache-dir", "--color", "--allow-insecure-host", "--directory",
			"--project", "--config-file", "--env-file", "-c", "--constraints", "--overrides", "-b", "--build-constraints", "--no-binary-package"}
	case "pipx":
		return []string{"--spec", "--python", "--pip-args", "-i", "--index-url", "--with"}
	case "dnx":
		return []string{"--version", "--source", "--add-source", "--configfile", "--verbosity", "-v"}
	}
	return nil
}

// packageSource names the option whose value is the package, for runners where it outranks the first plain word.
func packageSource(program string) []string {
	if program == "npx" || program == "bunx" {
		return []string{"-p", "--package"}
	}
	return nil
}

// runnerName finds what a package runner runs: the package, or with uvx --from (pipx --spec) the program.
func runnerName(program string, args []string) string {
	if program == "pipx" {
		if len(args) == 0 || args[0] != "run" {
			return ""
		}
		args = args[1:]
	}
	takes, source := valueOptions(program), packageSource(program)
	for i := 0; i < len(args); i++ {
		a := args[i]
		name, value, joined := strings.Cut(a, "=")
		switch {
		case a == "--":
		case !strings.HasPrefix(a, "-"):
			return packageName(a)
		case slices.Contains(source, name) && (joined || i+1 < len(args)):
			if !joined {
				value = args[i+1]
			}
			return packageName(value)
		case !joined && slices.Contains(takes, a):
			i++
		}
	}
	return ""
}

// packageName takes scope, version, extras and address off a package: @acme/notes-mcp@1.2, notes[x]==1,
// git+https://host/acme/notes.git@v1 and ./dir/notes all give the bare name.
func packageName(pkg string) string {
	if strings.Contains(pkg, "${") {
		return ""
	}
	pkg = strings.TrimPrefix(pkg, "npm:")
	address := strings.Contains(pkg, "://")
	if i := strings.IndexByte(pkg, '#'); i >= 0 {
		pkg = pkg[:i]
	}
	if i := strings.Index(pkg, " @ "); i >= 0 { // PEP 508: name @ address
		pkg = pkg[:i]
	}
	pkg = strings.TrimRight(pkg, `/\`)
	pkg = pkg[strings.LastIndexAny(pkg, `/\`)+1:]
	if !address {
		pkg = pkg[strings.IndexByte(pkg, ':')+1:]
	}
	if i := strings.IndexAny(pkg, "@[=<>!~ ;?"); i > 0 {
		pkg = pkg[:i]
	}
	for _, ext := range []string{".git", ".tgz", ".tar.gz", ".whl"} {
		pkg = strings.TrimSuffix(pkg, ext)
	}
	return strings.TrimLeft(pkg, "@")
}

// containerRun is what matters of the arguments of docker run.
type containerRun struct {
	image       string
	interactive bool // -i keeps standard input open
}

// isContainerRun reports docker run and podman run.
func isContainerRun(command string, args []string) bool {
	p := programName(command)
	return (p == "docker" || p == "podman") && len(args) > 0 && args[0] == "run"
}

// readContainerRun reads the options between run and the image (docker run reference). Options that are no switches take
// a value, joined by = or as the next word.
func readContainerRun(args []string) containerRun {
	switches := []string{"--detach", "--init", "--no-healthcheck", "--oom-kill-disable", "--privileged", "--publish-all", "--quiet",
		"--read-only", "--rm", "--sig-proxy", "--tty", "--disable-content-trust", "--use-api-socket", "--replace", "--rmi", "--env-host",
		"--http-proxy", "--no-hosts", "--no-hostname", "--passwd", "--read-only-tmpfs", "--tls-verify", "--help"}
	var out containerRun
	for i := 1; i < len(args); i++ {
		a := args[i]
		name, value, joined := strings.Cut(a, "=")
		switch {
		case a == "--":
			continue
		case !strings.HasPrefix(a, "-") || a == "-":
			out.image = a
			return out
		case name == "--interactive":
			out.interactive = !joined || value != "false"
		case strings.HasPrefix(a, "--"):
			if !joined && !slices.Contains(switches, a) {
				i++
			}
		default:
			i += shortOptions(a, &out)
		}
	}
	return out
}

// shortOptions reads a cluster such as -it or -e, and says how many further words it takes.
func shortOptions(a string, out *containerRun) int {
	for k := 1; k < len(a); k++ {
		switch a[k] {
		case 'i':
			out.interactive = !strings.HasPrefix(a[k+1:], "=false")
		case 'd', 't', 'P', 'q':
		case '=':
			return 0
		default: // takes a value: the rest of the word, or the next one
			if k == len(a)-1 {
				return 1
			}
			return 0
		}
	}
	return 0
}

// imageName takes registry, tag and digest off an image.
func imageName(image string) string {
	if strings.Contains(image, "${") {
		return ""
	}
	image, _, _ = strings.Cut(image, "@")
	image = image[strings.LastIndexByte(image, '/')+1:]
	image, _, _ = strings.Cut(image, ":")
	return image
}

// commandName is the name that a command gives to an entry without one, or "" when it would mislead (an interpreter, a
// reference).
func commandName(command string, args []string) string {
	program := programName(command)
	switch {
	case strings.Contains(command, "${"):
		return ""
	case slices.Contains([]string{"npx", "bunx", "uvx", "pipx", "dnx"}, program):
		return runnerName(program, args)
	case isContainerRun(command, args):
		return imageName(readContainerRun(args).image)
	case program == "cmd" && len(args) > 1 && strings.EqualFold(args[0], "/c"):
		return commandName(args[1], args[2:])
	case isInterpreter(program):
		return ""
	}
	if looksLikeSeveral(command) { // a whole line that was meant to be split
		return ""
	}
	name := command[strings.LastIndexAny(command, `/\`)+1:]
	for _, ext := range programEndings() {
		if n := len(name) - len(ext); n > 0 && strings.EqualFold(name[n:], ext) {
			return name[:n]
		}
	}
	return name
}

// isInterpreter reports programs that run another one, so that their own name says nothing.
func isInterpreter(program string) bool {
	for _, p := range []string{"python", "pypy", "ruby", "perl", "php", "node", "lua"} { // python3.12, node20 ...
		if rest, ok := strings.CutPrefix(program, p); ok && strings.Trim(rest, "0123456789.w") == "" {
			return true
		}
	}
	return slices.Contains([]string{"nodejs", "py", "deno", "bun", "java", "bash", "sh", "zsh", "fish", "dash", "ksh", "cmd", "powershell",
		"pwsh", "uv", "npm", "pnpm", "yarn", "docker", "podman", "dotnet", "go", "cargo", "tsx", "ts-node", "env", "sudo", "doas", "rscript",
		"julia", "elixir", "escript", "make", "wsl", "ssh", "poetry", "pdm", "hatch", "rye", "pixi", "conda", "mamba", "mise", "nix", "nohup", "exec", "time"}, program)
}

// addressName is the host of an address, or "" when a reference stands in its place.
func addressName(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 && !strings.Contains(rest[:i], "${") {
		rest = rest[:i]
	}
	host := rest[strings.LastIndexByte(rest, '@')+1:]
	if inner, _, ok := strings.Cut(strings.TrimPrefix(host, "["), "]"); ok && host[0] == '[' {
		return inner
	}
	if host, _, _ = strings.Cut(host, ":"); strings.ContainsAny(host, "${}") {
		return ""
	}
	return host
}

// looksLikeSeveral reports a list item that seems to hold several arguments: it has spaces and starts with a plain
// word or an option, or an option stands further inside. A path or --option=text with spaces is meant.
func looksLikeSeveral(item string) bool {
	words := strings.FieldsFunc(item, func(c rune) bool { return c == ' ' })
	if len(words) < 2 || strings.ContainsAny(item, "\n\t") {
		return false
	}
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "-") && len(w) > 1 {
			return true
		}
	}
	return !strings.ContainsAny(words[0], `/\=`)
}

// toolPrefix is the part of bridged tool names that a server name turns into.
func toolPrefix(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case 'A' <= c && c <= 'Z':
			return c + 'a' - 'A'
		case c == '_' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			return c
		}
		return '_'
	}, name)
}
