// This file finds the entry that starts a repository's server in the text of one of its files, and says why another one is no use to somebody without a copy of the repository.
// It is a pure function of the text: no network, no disk.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const resolveOthersMax = 5 // other offers that are told

// repoEntry is one entry that a file offers.
type repoEntry struct {
	serverEntry
	Line  int      // of its block in the file, 0 for the whole file
	Notes []string // of its reading
	Bare  bool     // a command line without the word of a configuration around it
}

// repoWords are what entries are known by that belong to a repository.
type repoWords struct {
	Owner string
	Names []string // of the repository, and of the folder in it that is meant
	Want  string   // the name that the person gave, "" for none
}

// foldWord leaves the letters and digits of a name, in lower case.
func foldWord(s string) string { return strings.ReplaceAll(toolPrefix(s), "_", "") }

// coreWord is a name without what most names of servers have, "" where little else is left.
func coreWord(s string) string {
	core := foldWord(s)
	for _, w := range []string{"modelcontextprotocol", "mcp", "server"} {
		core = strings.ReplaceAll(core, w, "")
	}
	if len(core) < 3 {
		return ""
	}
	return core
}

// owns reports an entry that names the repository: by its own name, by the package, image or program that it runs, or by its address.
func (w repoWords) owns(e *serverEntry) bool {
	what := commandName(e.Command, e.Args)
	texts := []string{e.Name, what, addressName(e.URL)}
	for _, a := range e.Args {
		lower := strings.ToLower(a)
		if owner := strings.ToLower(w.Owner); what != "" && strings.Contains(lower, strings.ToLower(what)) && (strings.HasPrefix(lower, "@"+owner+"/") || strings.Contains(lower, "/"+owner+"/") || strings.HasPrefix(lower, owner+"/")) {
			return true
		}
	}
	owner := foldWord(w.Owner)
	for _, text := range texts {
		t, bare := foldWord(text), coreWord(text)
		if len(owner) > 3 && strings.Contains(t, owner) {
			return true
		}
		for _, name := range w.Names {
			core := coreWord(name)
			if t != "" && (t == foldWord(name) || core != "" && strings.Contains(t, core) || len(bare) > 3 && strings.Contains(core, bare)) {
				return true
			}
		}
	}
	return false
}

// choose takes the entry that the person named, else the first of the best rank. sure is false where nothing ties it to the repository. Entries that are no use are told in said.
func (w repoWords) choose(list []*repoEntry) (pick *repoEntry, sure bool, others, said []string) {
	best := rankOther
	for _, e := range list {
		text, rank := entryText(&e.serverEntry), w.rank(&e.serverEntry)
		switch why := needsCopy(&e.serverEntry); {
		case why != "":
			said = addOnce(said, text+" "+why)
			continue
		case e.Bare && rank == rankOther:
			said = addOnce(said, text+" has nothing in its name of the repository's")
			continue
		case pick == nil || rank < best:
			pick, best = e, rank
		}
		others = addOnce(others, text)
	}
	if pick != nil {
		taken := entryText(&pick.serverEntry)
		others = slices.DeleteFunc(others, func(s string) bool { return s == taken })
	}
	return pick, best < rankOther, others[:min(len(others), resolveOthersMax)], said
}

// The ranks of an entry, best first.
const (
	rankNamed   = iota // by the person
	rankFetched        // it belongs to the repository, and is fetched or only dialled
	rankOwn            // it belongs to the repository, and its program has to be here
	rankOther
)

func (w repoWords) rank(e *serverEntry) int {
	switch {
	case w.Want != "" && e.Name == w.Want:
		return rankNamed
	case !w.owns(e):
		return rankOther
	case e.URL != "" || fetchesProgram(programName(e.Command), e.Args) || isContainerRun(e.Command, e.Args):
		return rankFetched
	}
	return rankOwn
}

func addOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// entryText is what an entry runs or dials, in one line.
func entryText(e *serverEntry) string {
	if e.URL != "" {
		return brief(visibleLine(e.URL), 200)
	}
	return brief(visibleLine(quoteLine(append([]string{e.Command}, e.Args...))), 200)
}

// needsCopy says why an entry is of no use without a copy of the repository or what is built from it, "" where it is.
func needsCopy(e *serverEntry) string {
	if e.URL != "" {
		host := addressName(e.URL)
		switch {
		case isLoopbackHost(host) || host == "0.0.0.0" || host == "::":
			return "is an address of a program that already runs here"
		case hasPlaceholder(e.URL) || holeWord(host) || host == "example.com" || strings.HasSuffix(host, ".example.com"):
			return "is only an example of an address"
		}
		return ""
	}
	program := programName(e.Command)
	if isContainerRun(e.Command, e.Args) {
		run := readContainerRun(e.Args)
		switch {
		case run.image != "" && !strings.ContainsAny(run.image, "/."):
			return "runs an image that has to be built first"
		case !run.interactive:
			return "runs a container without -i, so that it has no standard input to speak on"
		}
		return ""
	}
	if fetchesProgram(program, e.Args) {
		return ""
	}
	if isInterpreter(program) && !(program == "env" || program == "time") && !slices.Contains(e.Args, "-m") {
		return "needs a copy of the repository"
	}
	for i, a := range append([]string{e.Command}, e.Args...) {
		if pathHole(a) || i > 0 && holePath(a) || strings.HasPrefix(a, "./") || strings.HasPrefix(a, "../") {
			return "needs a copy of the repository"
		}
	}
	return ""
}

// fetchesProgram reports a program that fetches what it runs.
func fetchesProgram(program string, args []string) bool {
	first := ""
	if len(args) > 0 {
		first = args[0]
	}
	remote := func(signs ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return containsAny(a, signs...) })
	}
	switch program {
	case "npx", "bunx", "uvx", "dnx":
		return true
	case "pipx":
		return first == "run"
	case "pnpm", "yarn":
		return first == "dlx"
	case "npm":
		return first == "exec" || first == "x"
	case "bun":
		return first == "x"
	case "uv":
		return first == "tool" && len(args) > 1 && args[1] == "run" || first == "run" && remote("--with", "git+https://")
	case "deno":
		return first == "run" && remote("jsr:", "npm:", "https://")
	case "go":
		return first == "run" && remote("@")
	case "cmd":
		return len(args) > 1 && strings.EqualFold(first, "/c") && fetchesProgram(programName(args[1]), args[2:])
	}
	return false
}

// pathHole reports a path that is none, to be filled in by the reader.
func pathHole(s string) bool {
	return containsAny(strings.ToLower(strings.ReplaceAll(s, `\`, "/")), "path/to", "path-to", "absolute/path", "full/path")
}

// holePath reports such a path, or one of the author's machine.
func holePath(s string) bool {
	return pathHole(s) || containsAny(strings.ToLower(strings.ReplaceAll(s, `\`, "/")), "/users/", "/home/")
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}

// holeWord reports a value that stands for one of the reader's.
func holeWord(s string) bool {
	return hasPlaceholder(s) || containsAny(strings.ToUpper(s), "YOUR_", "YOUR-", "YOUR ", "REPLACE_", "REPLACE-", "REPLACE ", "CHANGE_ME", "CHANGEME", "XXXX", "_HERE", "-HERE") ||
		len(s) > 2 && strings.Trim(s, ".…*") == ""
}

// entryHoles says which values of an entry stand for the reader's own.
func entryHoles(e *serverEntry) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(e.Env)) {
		if v := e.Env[k]; holeWord(v) || holePath(v) {
			out = append(out, fmt.Sprintf("the variable %s holds only an example, %s: --env %s='${%s}' takes it from the environment or the vault", visibleLine(k), confClip(v, 60), visibleLine(k), visibleLine(k)))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(e.Headers)) {
		if v := e.Headers[k]; holeWord(v) {
			out = append(out, fmt.Sprintf("the header %s holds only an example, %s: --header '%s: ${NAME}' takes it from the environment or the vault", visibleLine(k), confClip(v, 60), visibleLine(k)))
		}
	}
	for _, a := range e.Args {
		if holeWord(a) || holePath(a) {
			out = append(out, "the argument "+confQuote(a)+" is only an example")
		}
	}
	return out
}

// configEntries are those of a file that is a configuration as a whole. fallback names a bare entry without a name.
func configEntries(text, fallback, goos string) ([]*repoEntry, error) {
	o := normalizeOptions{OS: goos}
	res, err := normalize([]byte(text), o)
	if err != nil { // a bare entry may lack a name alone
		o.Name = fallback
		named, fault := normalize([]byte(text), o)
		if fault != nil {
			return nil, err
		}
		res = named
	}
	out := make([]*repoEntry, len(res.Servers))
	for i, e := range res.Servers {
		out[i] = &repoEntry{serverEntry: e}
		for _, note := range slices.Concat(res.Notes, res.Warnings) {
			if len(res.Servers) == 1 || strings.Contains(note, e.Name) {
				out[i].Notes = append(out[i].Notes, note)
			}
		}
	}
	return out, nil
}

// packageEntry is that of a package.json. npx can run a package that is published and has a program.
func packageEntry(text, fallback, goos string) ([]*repoEntry, error) {
	var p struct {
		Name       string
		Private    bool
		Workspaces json.RawMessage
		Bin        json.RawMessage
	}
	_ = json.Unmarshal([]byte(text), &p) // what it cannot read, configEntries explains
	switch {
	case p.Private:
		return nil, newError("the package is private, so that it is in no registry")
	case p.Workspaces != nil && p.Bin == nil:
		return nil, newError("it holds only workspaces; name the folder of one: https://github.com/OWNER/REPOSITORY/tree/BRANCH/FOLDER")
	}
	list, err := configEntries(text, fallback, goos)
	if err == nil && len(list) > 0 && !containsAny(strings.ToLower(text), "mcp", "model context protocol", "modelcontextprotocol") {
		list[0].Notes = append(list[0].Notes, "nothing in it says that it is an MCP server; the live check will tell")
	}
	return list, err
}

// readmeEntries are those that a README shows: configurations first, then command lines.
func readmeEntries(text, fallback, goos string) []*repoEntry {
	var configs, lines []*repoEntry
	for _, b := range fencedBlocks(text) {
		if (confInput{text: b.text}).structured() {
			list, _ := configEntries(b.text, fallback, goos) // a page shows many blocks that are no configuration
			for _, e := range list {
				e.Line = b.line
				configs = append(configs, e)
			}
			continue
		}
		lines = append(lines, shownLines(b.text, b.line, 0, goos)...)
	}
	return slices.Concat(configs, lines, shownLines(ownLines(text), 1, 1, goos))
}

// ownLines keeps of a page what stands as code without a fence: indented lines, and lines that are one code span. The others become blank, so that the lines keep their numbers.
func ownLines(text string) string {
	var out strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimLeft(strings.TrimSpace(line), "-*+> ")
		mark, rest := fenceMark(trimmed)
		switch n := len(trimmed); {
		case fence != "":
			if strings.HasPrefix(mark, fence) && strings.TrimSpace(rest) == "" {
				fence = ""
			}
		case mark != "":
			fence = mark
		case n > 2 && trimmed[0] == '`' && trimmed[n-1] == '`' || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t"):
			out.WriteString(strings.Trim(trimmed, "`"))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// shownLines are the entries of the command lines of a text, step being how far one line moves the number of it.
func shownLines(text string, line, step int, goos string) []*repoEntry {
	var out []*repoEntry
	for _, l := range joinedLines(text) {
		if e := shownLine(l, goos); e != nil {
			e.Line, e.Bare = line, true
			out = append(out, e)
		}
		line += step
	}
	return out
}

// shownLine reads one command line: one that runs a server, or one that adds it to another client (… mcp add NAME -- COMMAND, … mcp add NAME URL).
func shownLine(line, goos string) *repoEntry {
	line = strings.TrimSpace(line)
	words, err := splitWords(strings.TrimPrefix(strings.TrimPrefix(line, "$ "), "> "))
	if err != nil || len(words) < 2 || len(line) > 4<<10 {
		return nil
	}
	if i := slices.Index(words, "mcp"); i > 0 && i+1 < len(words) && words[i+1] == "add" {
		if line = addedLine(words[i+2:]); line == "" {
			return nil
		}
	} else if run, found, _, err := findRunLine(line); !found || err != nil || setsUp(run.argv[0], run.argv[1:]) {
		return nil
	}
	res, err := normalize([]byte(line), normalizeOptions{OS: goos})
	if err != nil || len(res.Servers) != 1 {
		return nil
	}
	if e := res.Servers[0]; e.URL == "" && (hasShellSign(e.Args) != "" || setsUp(e.Command, e.Args)) {
		return nil
	}
	return &repoEntry{serverEntry: res.Servers[0]}
}

// addedLine is the command or the address that another client's mcp add would take, "" for none that can be told from the words.
func addedLine(words []string) string {
	var env []string
	for i, w := range words {
		switch {
		case w == "--":
			return quoteLine(append(env, words[i+1:]...))
		case (w == "-e" || w == "--env") && i+1 < len(words):
			env = append(env, words[i+1])
		case w == "-H" || strings.HasPrefix(w, "--header"):
			return ""
		case isHTTPAddress(w) && !slices.Contains(words, "--") && !slices.ContainsFunc(words, func(w string) bool { return w == "-H" || strings.HasPrefix(w, "--header") || w == "sse" }):
			return w
		}
	}
	return ""
}

// setsUp reports a command line that installs or tries a server instead of being one.
func setsUp(command string, args []string) bool {
	name := commandName(command, args)
	if slices.Contains([]string{"inspector", "cli", "mcp-get", "mcp-installer", "install-mcp", "add-mcp", "skills", "degit"}, name) || strings.HasPrefix(name, "create-") {
		return true
	}
	for _, a := range args {
		switch strings.ToLower(a) {
		case "install", "uninstall", "init", "setup", "add", "login", "auth", "config", "configure", "update", "upgrade", "--help", "-h", "--version", "build", "test", "dev":
			return true
		}
	}
	return false
}
