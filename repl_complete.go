// This file knows what the words of the prompt may become: commands, flags, names that the vault holds, tools and their arguments, files.
// It only reads, and nothing that waits for a person or a server.
package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

const completeReadMax = 5000 // entries of a folder that are looked at

// replCompleter completes the words of one run's prompt.
type replCompleter struct {
	*app
	commands []command
}

// complete looks at the word that before ends with.
func (c *replCompleter) complete(ctx context.Context, before string) completion {
	if line, ok := strings.CutPrefix(before, "/"); ok {
		return c.command(ctx, line)
	}
	at := strings.LastIndexAny(before, " \t\n") + 1
	if name, ok := strings.CutPrefix(before[at:], "@"); ok {
		return matching(name, name, c.files(ctx, name))
	}
	return completion{}
}

// matching keeps the candidates that go on with what is typed. raw is what is typed as it stands in the line.
//
//go:noinline for size: it is called in many places
func matching(raw, typed string, list []candidate) completion {
	out := completion{replace: utf8.RuneCountInString(raw)}
	for _, cand := range list {
		if strings.HasPrefix(cand.text, typed) {
			out.list = append(out.list, cand)
		}
	}
	return out
}

// command completes a line without its slash.
func (c *replCompleter) command(ctx context.Context, line string) completion {
	start, typed := openWord(line)
	words, err := splitWords(line[:start])
	if err != nil {
		return completion{}
	}
	raw := line[start:]
	if len(words) > 0 && words[0] == "call" {
		words = append([]string{"tools"}, words...)
	}
	if key, value, ok := strings.Cut(typed, "="); ok && len(words) >= 3 && takesFiles(words[0]+" "+words[1]) { // k=v of a call
		return matching(raw, value, c.files(ctx, value)).quoted(key + "=")
	}
	return matching(raw, typed, c.words(ctx, words, typed)).quoted("")
}

// quoted writes candidates as words of a command line, each behind what stands before its sign of equality.
func (c completion) quoted(before string) completion {
	for i := range c.list {
		c.list[i].show = c.list[i].shown()
		c.list[i].text = before + quoteUnlessPlain(c.list[i].text)
	}
	return c
}

// quoteUnlessPlain leaves alone what splitWords takes for one word as it is.
func quoteUnlessPlain(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\r\n\v\f\"'\\") && visibleLine(s) == s {
		return s
	}
	return quoteWord(s)
}

// openWord finds the word that a line ends in, by the rules of splitWords: where it starts, and what of it is typed without its quotes.
func openWord(s string) (start int, typed string) {
	var word []byte
	var quote byte
	start = len(s)
	for i := 0; i < len(s); i++ {
		blank := quote == 0 && strings.IndexByte(" \t\r\n\v\f", s[i]) >= 0
		if blank {
			start, word = len(s), nil
			continue
		}
		start = min(start, i)
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && strings.IndexByte(" '\"", s[i+1]) >= 0:
			i++
			word = append(word, s[i])
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		default:
			word = append(word, c)
		}
	}
	return start, string(word)
}

// words gives what may come after words, as far as typed tells.
func (c *replCompleter) words(ctx context.Context, words []string, typed string) []candidate {
	plain := plainWords(words, command{})
	cmd, used := commandFor(plain, c.commands)
	if len(plain) == 1 && plain[0] == "resume" {
		return names(c.stored(ctx, sessionIDs))
	}
	if len(plain) == 1 && plain[0] == "show" {
		return names(c.stored(ctx, recordIDs))
	}
	if len(plain) == 1 && plain[0] == "mode" {
		return names(modeWords())
	}
	if cmd.Run == nil {
		return c.commandWords(plain)
	}
	if strings.HasPrefix(typed, "-") {
		return flagCandidates(append(slices.Clone(cmd.Flags), flagSpec{Name: "json"}, flagSpec{Name: "help"}))
	}
	args := plain[used:]
	list := names(c.named(ctx, cmd.Path, args))
	list = append(list, c.commandWords(plain)...) // a command that others begin with
	if list == nil && takesFiles(cmd.Path) {
		return c.files(ctx, typed)
	}
	return list
}

// commandWords gives the words with which commands go on.
func (c *replCompleter) commandWords(words []string) []candidate {
	var out []candidate
	for _, cmd := range c.commands {
		path := strings.Fields(cmd.Path)
		if len(path) > len(words) && slices.Equal(path[:len(words)], words) {
			out = append(out, candidate{text: path[len(words)]})
		}
	}
	if len(words) == 0 {
		out = append(out, names([]string{"call", "compact", "cost", "edit", "exit", "history", "mode", "new", "quit", "resume", "show", "todo", "undo"})...)
	}
	return out
}

//go:noinline for size: it is called in many places
func names(list []string) []candidate {
	var out []candidate
	for _, s := range list {
		out = append(out, candidate{text: s, open: strings.HasSuffix(s, "=")})
	}
	return out
}

func flagCandidates(flags []flagSpec) []candidate {
	var out []candidate
	for _, f := range flags {
		out = append(out, candidate{text: "--" + f.Name})
	}
	return out
}

// takesFiles names the commands whose arguments may be files.
//
//go:noinline for size: it is called in many places
func takesFiles(path string) bool {
	return slices.Contains([]string{"mcp add", "mcp normalize", "mcp call", "tools call", "audit show", "audit verify"}, path)
}

// named gives the names that the next argument of a command may be; nil where it has none.
func (c *replCompleter) named(ctx context.Context, path string, args []string) []string {
	first := len(args) == 0
	switch path {
	case "mcp enable", "mcp disable", "mcp remove", "mcp login", "mcp logout", "mcp tools":
		if first {
			return c.stored(ctx, serverNames)
		}
	case "mcp import":
		return appIDs(importApps())
	case "mcp call", "mcp check", "mcp grant":
		if first {
			return c.stored(ctx, serverNames)
		}
		if path != "mcp call" || len(args) == 1 {
			return c.stored(ctx, func(ctx context.Context, v *vault) ([]string, error) { return cachedNames(ctx, v, args[0]) })
		}
	case "tools call", "tools digest":
		if first {
			return c.toolNames(ctx)
		}
		return c.toolArguments(args[0])
	case "profile use", "profile delete":
		return c.stored(ctx, profileNames)
	case "record show", "record delete":
		return c.stored(ctx, recordIDs)
	case "secret delete", "secret set":
		return c.stored(ctx, secretNames)
	case "session show", "session export", "session delete":
		return c.stored(ctx, sessionIDs)
	case "model use", "model remove", "model test":
		return c.stored(ctx, modelNames)
	case "audit show", "audit verify", "audit head", "audit report":
		return c.runs(ctx)
	case "help":
		var out []string
		for _, cand := range c.commandWords(args) {
			out = append(out, cand.text)
		}
		return out
	}
	return nil
}

// stored reads names from the vault, if there is one. It is opened anew, to read only and with no one to ask for a passphrase: a key press
// must neither make nor change one, nor wait for an answer.
func (c *replCompleter) stored(ctx context.Context, read func(context.Context, *vault) ([]string, error)) []string {
	if _, there, err := vaultPath(c.home); err != nil || !there {
		return nil
	}
	keys := c.keys()
	keys.Passphrase = nil
	v, err := openVault(ctx, c.home, vaultRead, c.out.Now, keys)
	if err != nil {
		return nil
	}
	defer v.close()
	list, err := read(ctx, v)
	if err != nil {
		return nil
	}
	return list
}

func serverNames(ctx context.Context, v *vault) (out []string, err error) {
	list, err := v.servers(ctx)
	for _, s := range list {
		out = append(out, s.Name)
	}
	return out, err
}

func cachedNames(ctx context.Context, v *vault, server string) (out []string, err error) {
	list, err := v.cachedTools(ctx, server)
	for _, t := range list {
		out = append(out, t.Tool)
	}
	return out, err
}

func profileNames(ctx context.Context, v *vault) (out []string, err error) {
	list, err := v.profiles(ctx)
	for _, p := range list {
		out = append(out, p.Name)
	}
	return out, err
}

func recordIDs(ctx context.Context, v *vault) (out []string, err error) {
	list, _, err := v.records(ctx, "", "", completeMax)
	for _, r := range list {
		out = append(out, r.ID)
	}
	return out, err
}

func secretNames(ctx context.Context, v *vault) (out []string, err error) {
	list, err := v.secrets(ctx)
	for _, s := range list {
		if s.Profile == "" {
			out = append(out, s.Name)
		}
	}
	return out, err
}

func modelNames(ctx context.Context, v *vault) (out []string, err error) {
	list, err := v.models(ctx)
	for _, m := range list {
		out = append(out, m.Name)
	}
	return out, err
}

func sessionIDs(ctx context.Context, v *vault) (out []string, err error) {
	list, _, err := v.sessions(ctx, sessionQuery{Limit: completeMax})
	for _, s := range list {
		out = append(out, s.ID)
	}
	return out, err
}

// runs gives the run logs by their names.
func (c *replCompleter) runs(ctx context.Context) []string {
	var out []string
	for _, dir := range c.auditFolders() {
		for _, e := range readFolder(ctx, dir) {
			if run, ok := strings.CutSuffix(e.Name(), auditExtension); ok {
				out = append(out, run)
			}
		}
	}
	return out
}

// toolNames gives the native tools, and the bridged ones of the profile as far as they are stored.
func (c *replCompleter) toolNames(ctx context.Context) []string {
	var out []string
	if tools, err := c.nativeTools(); err == nil {
		for _, t := range tools {
			out = append(out, t.Name)
		}
	}
	return append(out, c.stored(ctx, c.bridged)...)
}

// bridged gives the names of the stored tools of the profile's servers.
func (c *replCompleter) bridged(ctx context.Context, v *vault) (out []string, err error) {
	profile := c.profileWord()
	if profile == "" {
		if profile, err = v.currentProfile(ctx); err != nil {
			return nil, err
		}
	}
	servers, err := v.servers(ctx)
	var refs []toolRef
	for _, s := range servers {
		if !s.Profiles[profile] {
			continue
		}
		tools, err := cachedNames(ctx, v, s.Name)
		if err != nil {
			return nil, err
		}
		for _, t := range tools {
			refs = append(refs, toolRef{Server: s.Name, Tool: t})
		}
	}
	_, back := bridgedNames(refs, c.nativeName)
	return slices.Collect(maps.Keys(back)), err
}

// toolArguments gives the names of a native tool's arguments, each with its sign of equality.
func (c *replCompleter) toolArguments(name string) []string {
	tools, err := c.nativeTools()
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(tools, func(t tool) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	var out []string
	for _, p := range schemaProperties(tools[i].Schema) {
		out = append(out, p+"=")
	}
	return out
}

// schemaProperties gives the names of the properties that an object's schema declares.
func schemaProperties(schema []byte) []string {
	members, err := jsonObject(schema)
	if err != nil {
		return nil
	}
	var out []string
	for _, m := range members {
		if m.Key != "properties" {
			continue
		}
		properties, err := jsonObject(m.Value)
		if err != nil {
			return nil
		}
		for _, p := range properties {
			out = append(out, p.Key)
		}
	}
	return out
}

// files gives the entries of the folder that a path leads to, relative to the workspace. Those that begin with a dot come only where a
// dot is typed.
func (c *replCompleter) files(ctx context.Context, path string) []candidate {
	slash := strings.LastIndexByte(path, '/')
	if c.goos == "windows" {
		slash = strings.LastIndexAny(path, `/\`)
	}
	folder, base := path[:slash+1], path[slash+1:]
	var out []candidate
	dir := absolute(folder, c.root)
	for _, e := range readFolder(ctx, dir) {
		name := e.Name()
		if !strings.HasPrefix(name, base) || name[0] == '.' && !strings.HasPrefix(base, ".") {
			continue
		}
		cand := candidate{text: folder + name, show: name}
		isDir := e.IsDir()
		if e.Type()&os.ModeSymlink != 0 {
			info, err := os.Stat(filepath.Join(dir, name))
			isDir = err == nil && info.IsDir()
		}
		if isDir {
			cand.text, cand.show, cand.open = cand.text+"/", cand.show+"/", true
		}
		out = append(out, cand)
	}
	return out
}

// readFolder reads a folder as far as ctx and the bound let it.
func readFolder(ctx context.Context, dir string) []os.DirEntry {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []os.DirEntry
	for len(out) < completeReadMax && ctx.Err() == nil {
		more, err := f.ReadDir(500)
		out = append(out, more...)
		if err != nil {
			break // the end, or what cannot be read
		}
	}
	return out
}
