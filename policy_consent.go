// This file builds and renders what a person is asked: every byte of what will run, made visible, in lines that cannot be
// taken for tai's own. It owns the layout, the marks, the difference of two texts and the list of dangerous forms; it
// decides nothing and reads no key.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	consentOwn      = "tai: " // begins each line of tai's own
	consentText     = "  | "  // begins each line that holds anything else
	consentMore     = "  |~ " // begins the rest of such a line that was too wide
	consentFoldOver = 20      // screen lines of an argument beyond which it folds
	consentFoldKeep = 10      // screen lines of a folded one that stay
	consentWidth    = 80      // columns where the screen's width is unknown
	consentMinWidth = 24      // columns below which the text is laid out as for this many
	consentShort    = 160     // bytes of a one-line value that is shown behind its name
)

// The answers to a consent. Nothing else counts.
const (
	choiceYes     = "y"
	choiceSession = "s"
	choiceAlways  = "a"
	choiceNo      = "n"
	choiceWhy     = "w" // w REASON
	choiceOpen    = "o" // shows what is folded and asks again
)

// consent is one question. Title, Rule and Danger are tai's own words (foreign names in them quoted); Lines are what is
// being asked about.
type consent struct {
	Title   string
	Rule    string
	Lines   []consentLine
	Digest  string
	Choices []consentChoice
	Danger  []string
	Asker   string // who asks, if it is not the agent that the person talks to
}

// consentLine is one thing shown. Label is tai's own word for it and stands once for neighbours that share it; Name and
// Text are foreign. Exact is never folded; Quoted is shown as one string in quotes (Go syntax, so that it is unmistakable).
type consentLine struct {
	Label, Name, Text string
	Exact, Quoted     bool
}

type consentChoice struct{ Key, Text string }

// consentAnswer is a person's answer; Why goes with choiceWhy.
type consentAnswer struct{ Key, Why string }

// parseConsentAnswer takes a line as typed. Only a documented answer counts, letter by letter (TTY-07): false means ask again.
func parseConsentAnswer(line string, choices []consentChoice) (consentAnswer, bool) {
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	for _, c := range choices {
		if c.Key == choiceWhy {
			if why, ok := strings.CutPrefix(line, choiceWhy+" "); ok && strings.TrimSpace(why) != "" {
				return consentAnswer{Key: choiceWhy, Why: strings.TrimSpace(why)}, true
			}
		} else if line == c.Key {
			return consentAnswer{Key: c.Key}, true
		}
	}
	return consentAnswer{}, false
}

// unfolded is the same consent with nothing folded.
func (c consent) unfolded() consent {
	c.Lines = slices.Clone(c.Lines)
	for i := range c.Lines {
		c.Lines[i].Exact = true
	}
	return c
}

// choices are the answers to offer at that width: the consent's own, and choiceOpen where something is folded.
func (c consent) choices(width int) []consentChoice {
	for _, l := range c.Lines {
		if !l.Exact && len(layoutConsent(l, width)) > consentFoldOver {
			return append(slices.Clone(c.Choices), consentChoice{choiceOpen, "open what is folded, then ask again"})
		}
	}
	return c.Choices
}

// renderConsent lays a consent out for a screen of width columns (0: unknown). Every line begins with one of the marks,
// no line is wider than the screen, nothing in it is a control or hidden character, and the choices come last.
func renderConsent(c consent, width int) string {
	r := consentRender{width: width}
	if c.Asker != "" {
		r.own(c.Asker + " asks:")
	}
	r.own(c.Title)
	label := ""
	for _, l := range c.Lines {
		rows := layoutConsent(l, width)
		size := ""
		if !l.Quoted && (len(rows) > 1 || len(l.Text) > consentShort) {
			size = fmt.Sprintf(" (lines: %d, bytes: %d)", strings.Count(strings.TrimSuffix(l.Text, "\n"), "\n")+1, len(l.Text))
		}
		if l.Label != label || size != "" {
			r.own(l.Label + size)
		}
		if label = l.Label; size != "" {
			label = "" // what follows is not part of this text, and says so
		}
		if n := hiddenCount(l.Name + l.Text); n > 0 {
			r.own(fmt.Sprintf("! hidden or control characters in it: %d, written out here", n))
		}
		if !l.Exact && len(rows) > consentFoldOver {
			r.rows(rows[:consentFoldKeep])
			r.own(fmt.Sprintf("folded: %d more lines, %d bytes in all; %s opens it", len(rows)-consentFoldKeep, len(l.Text), choiceOpen))
		} else {
			r.rows(rows)
		}
	}
	for _, d := range c.Danger {
		r.own("! dangerous: " + d)
	}
	if c.Digest != "" {
		r.own("digest " + c.Digest)
	}
	if c.Rule != "" {
		r.own("asked because: " + c.Rule)
	}
	for _, choice := range c.choices(width) {
		r.own("  " + choice.Key + "  " + choice.Text)
	}
	return r.b.String()
}

type consentRender struct {
	b     textBuilder
	width int
}

// own writes a line of tai's own. What foreign text it may quote is escaped, and its rest is marked as its own too.
func (r *consentRender) own(s string) {
	s = visibleLine(s)
	width := consentColumns(r.width) - len(consentOwn) - 2
	for indent := ""; ; indent = "  " {
		row := wrapColumns(s, width)[0]
		if len(row) == len(s) {
			r.b.WriteString(consentOwn + indent + row + "\n")
			return
		}
		if blank := strings.LastIndexByte(row, ' '); blank > len(row)/2 {
			row = row[:blank+1]
		}
		s = s[len(row):]
		r.b.WriteString(consentOwn + indent + strings.TrimSuffix(row, " ") + "\n")
	}
}

//go:noinline for size: it is called in many places
func (r *consentRender) rows(rows []string) {
	for _, row := range rows {
		r.b.WriteString(row + "\n")
	}
}

// layoutConsent gives the screen lines of one thing, each with its mark.
func layoutConsent(l consentLine, width int) []string {
	var rows []string
	emit := func(s string) {
		for i, part := range wrapColumns(s, consentColumns(width)-len(consentMore)) {
			mark := consentText
			if i > 0 {
				mark = consentMore
			}
			rows = append(rows, mark+part)
		}
	}
	name := ""
	if l.Name != "" {
		name = quoteShown(l.Name) + " ="
	}
	switch {
	case l.Quoted:
		emit(strings.TrimSpace(name + " " + quoteShown(l.Text)))
	case !strings.Contains(l.Text, "\n") && len(l.Text) <= consentShort:
		emit(strings.TrimPrefix(name+" "+lineShown(l.Text), " "))
	default:
		indent := ""
		if name != "" {
			emit(name)
			indent = "  " // so that a line of it cannot be taken for the next name
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(l.Text, "\n"), "\n") {
			emit(indent + lineShown(line))
		}
	}
	return rows
}

// lineShown gives a line as it is, or in quotes where something in it is written out: what stands there means one text alone (TTY-02).
func lineShown(line string) string {
	if visibleLine(line) != line || strings.HasPrefix(line, `"`) {
		return quoteShown(line)
	}
	return line
}

// quoteShown gives a text in quotes (Go syntax) with every character that is not seen written out in them.
func quoteShown(s string) string {
	q := strconv.Quote(s)
	if visibleLine(q) != q {
		q = strconv.QuoteToASCII(s)
	}
	return q
}

func consentColumns(width int) int {
	if width <= 0 {
		width = consentWidth
	}
	return max(width, consentMinWidth)
}

// wrapColumns cuts s into pieces of at most max columns. Anything but ASCII counts as two columns: too narrow a line is
// harmless, but one that the terminal wraps itself would begin without its mark.
//
//go:noinline for size: it is called in many places
func wrapColumns(s string, max int) []string {
	var rows []string
	start, cols := 0, 0
	for i, r := range s {
		w := 1
		if r >= utf8.RuneSelf {
			w = 2
		}
		if cols+w > max {
			rows, start, cols = append(rows, s[start:i]), i, 0
		}
		cols += w
	}
	return append(rows, s[start:])
}

// argumentLines shows the arguments of a call, one object, each by its name: short strings in quotes, longer text line
// by line, other values as their JSON.
func argumentLines(args json.RawMessage) ([]consentLine, error) {
	if len(bytes.TrimSpace(args)) == 0 {
		return nil, nil
	}
	members, err := jsonObject(args)
	if err != nil {
		return nil, errorf("arguments: %w", err)
	}
	var lines []consentLine
	for _, m := range members {
		line := consentLine{Label: "arguments", Name: m.Key}
		if s, ok := jsonString(m.Value); ok {
			line.Text, line.Quoted = s, len(s) <= consentShort && !strings.Contains(s, "\n")
		} else {
			var b bytes.Buffer
			if err := json.Indent(&b, m.Value, "", "  "); err != nil {
				return nil, errorf("arguments: %w", err)
			}
			line.Text = b.String()
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// callConsent asks about one call: the tool, its server where it has one, every argument and the digest (TTY-09). An
// argument named command is never folded.
func callConsent(tool, server, digest, rule string, args json.RawMessage) (consent, error) {
	lines, err := argumentLines(args)
	if err != nil {
		return consent{}, err
	}
	for i := range lines {
		lines[i].Exact = lines[i].Name == "command" || lines[i].Name == "argv"
	}
	title := "run " + strconv.Quote(tool)
	if server != "" {
		title += " of the server " + strconv.Quote(server)
	}
	return consent{Title: title + "?", Rule: rule, Lines: lines, Digest: digest}, nil
}

// spawnInfo is what starting a server means: the exact argv, the folder, and the names of the variables it gets. Was is the
// difference to what was approved before under the same name, "" for a new one.
type spawnInfo struct {
	Server, Profile string
	Argv            []string
	Cwd             string
	Env             []string
	Was             string
}

// spawnConsent asks about starting a server (CFG-03): argv element by element, in quotes, whole.
func spawnConsent(s spawnInfo) consent {
	c := consent{Title: "start the server " + strconv.Quote(s.Server) + serverProfile(s.Profile) + "?", Danger: dangerousArgv(s.Argv)}
	for _, arg := range s.Argv {
		c.Lines = append(c.Lines, consentLine{Label: fmt.Sprintf("argv, %d elements, started without a shell", len(s.Argv)), Text: arg, Exact: true, Quoted: true})
	}
	if s.Cwd != "" {
		c.Lines = append(c.Lines, consentLine{Label: "in the folder", Text: s.Cwd, Exact: true, Quoted: true})
	}
	for _, name := range slices.Sorted(slices.Values(s.Env)) {
		c.Lines = append(c.Lines, consentLine{Label: "with these variables (values not shown)", Text: name, Exact: true, Quoted: true})
		if upper := strings.ToUpper(name); strings.HasPrefix(upper, "LD_") || strings.HasPrefix(upper, "DYLD_") || upper == "NODE_OPTIONS" || upper == "PATH" || upper == "BASH_ENV" || upper == "PYTHONPATH" {
			c.Danger = append(c.Danger, "the variable "+strconv.Quote(name)+" decides which code runs")
		}
	}
	c.Lines = append(c.Lines, changeLines(s.Was)...)
	return c
}

// dialInfo is what talking to a remote server means. URL is the display form, without secret values; Headers are names.
type dialInfo struct {
	Server, Profile, URL string
	Headers              []string
	Was                  string
}

// dialConsent asks about a server at a URL.
func dialConsent(d dialInfo) consent {
	c := consent{Title: "connect to the server " + strconv.Quote(d.Server) + serverProfile(d.Profile) + "?"}
	c.Lines = append(c.Lines, consentLine{Label: "at", Text: d.URL, Exact: true, Quoted: true})
	for _, name := range slices.Sorted(slices.Values(d.Headers)) {
		c.Lines = append(c.Lines, consentLine{Label: "with these headers (values not shown)", Text: name, Exact: true, Quoted: true})
	}
	c.Lines = append(c.Lines, changeLines(d.Was)...)
	u, err := url.Parse(d.URL)
	if err != nil {
		c.Danger = append(c.Danger, "the URL cannot be parsed")
		return c
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	if u.Scheme == "http" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		c.Danger = append(c.Danger, "plain http: everybody on the way can read and change it")
	}
	if u.User != nil {
		c.Danger = append(c.Danger, "the URL holds a user name or password")
	}
	if strings.IndexFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 || strings.Contains(strings.ToLower(host), "xn--") {
		c.Danger = append(c.Danger, "the host's name has letters that may look like others: "+strconv.QuoteToASCII(host))
	}
	return c
}

func serverProfile(profile string) string {
	if profile == "" {
		return ""
	}
	return " and enable it for the profile " + strconv.Quote(profile)
}

func changeLines(was string) []consentLine {
	if was == "" {
		return nil
	}
	return []consentLine{{Label: "changed since it was approved (- before, + now)", Text: was, Exact: true}}
}

// dangerousArgv names what in an argv a person should look at twice (CFG-04). It looks into scripts handed to a shell. It
// highlights and never decides.
func dangerousArgv(argv []string) []string {
	var found []string
	addDangers(&found, argv, 0)
	return found
}

func addDangers(found *[]string, argv []string, depth int) {
	if depth > 3 || len(argv) == 0 {
		return
	}
	add := func(what string) {
		if !slices.Contains(*found, what) {
			*found = append(*found, what)
		}
	}
	for i, arg := range argv {
		rest := argv[i+1:]
		switch name := argvProgram(arg); name {
		case "sudo", "doas", "pkexec", "runas", "su":
			if i == 0 || name != "su" {
				add(name + " runs as another user")
			}
		case "rm", "rmdir", "del", "rd":
			if name == "rm" && (hasFlag(rest, 'r', "--recursive") || hasFlag(rest, 'R', "--recursive")) {
				add("rm deletes whole folders")
			}
		case "sh", "bash", "zsh", "dash", "ksh", "fish", "ash":
			if hasFlag(rest, 'c', "--command") {
				add(name + " -c runs a script")
			}
		case "npx", "npm", "bunx", "pnpx":
			if name == "npm" && len(rest) > 0 && (rest[0] == "exec" || rest[0] == "x") {
				rest = rest[1:]
			}
			if fetcherScript(rest) {
				add(name + " -c runs a script")
			}
		case "powershell", "pwsh":
			add(name + " runs a script")
		case "python", "python3", "py", "perl", "ruby", "node", "php", "deno", "bun", "osascript":
			if opts := leadingOptions(rest); hasFlag(opts, 'c', "--eval") || hasFlag(opts, 'e', "--print") || name == "php" && hasFlag(opts, 'r', "--run") || name == "deno" && hasFlag(rest, 0, "eval") {
				add(name + " runs code given as an argument")
			}
		case "docker", "podman", "nerdctl":
			for _, what := range containerDangers(rest) {
				add(name + " " + what)
			}
		case "dd", "mkfs", "shred", "eval", "nc", "ncat", "socat":
			if i == 0 {
				add(name + " is rarely needed to start a server")
			}
		}
		if strings.ContainsAny(arg, " \t\n;|&") {
			addScriptDangers(found, arg, depth)
		}
	}
}

// addScriptDangers looks into an argument that a shell may read.
func addScriptDangers(found *[]string, script string, depth int) {
	v := classifyShell(script, shellScope{})
	fetch := ""
	for _, cmd := range v.Words {
		addDangers(found, cmd, depth+1)
		switch name := argvProgram(cmd[0]); name {
		case "curl", "wget", "fetch", "iwr":
			fetch = name
		case "sh", "bash", "zsh", "dash", "python", "python3", "node", "perl", "ruby", "source", ".", "sudo":
			if what := fetch + " fetches what " + name + " then runs"; fetch != "" && !slices.Contains(*found, what) {
				*found = append(*found, what)
			}
		}
	}
}

// containerDangers names options that open the machine to a container.
func containerDangers(args []string) []string {
	var found []string
	for i, arg := range args {
		value := arg
		if name, v, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(name, "--") {
			value = v
		}
		prev := ""
		if i > 0 {
			prev = args[i-1]
		}
		mount := strings.HasPrefix(arg, "-v") || strings.HasPrefix(arg, "--volume") || strings.HasPrefix(arg, "--mount") || prev == "-v" || prev == "--volume" || prev == "--mount"
		switch {
		case arg == "--privileged" || arg == "--privileged=true":
			found = append(found, "--privileged gives it the whole machine")
		case (strings.HasPrefix(arg, "--pid") || strings.HasPrefix(arg, "--ipc") || strings.HasPrefix(arg, "--userns") || prev == "--pid") && value == "host":
			found = append(found, "shares the machine's processes")
		case strings.HasPrefix(arg, "--cap-add") || prev == "--cap-add":
			found = append(found, "adds capabilities")
		case mount && strings.Contains(value, "docker.sock"):
			found = append(found, "is given the container engine itself")
		case mount && (strings.HasPrefix(strings.TrimPrefix(value, "-v"), "/:") || strings.Contains(value, "source=/,") || strings.Contains(value, "src=/,")):
			found = append(found, "is given the whole disk")
		}
	}
	return found
}

// argvProgram is the program of an argv element: its last path part, without .exe.
func argvProgram(arg string) string {
	return strings.TrimSuffix(strings.ToLower(path.Base(strings.ReplaceAll(arg, `\`, "/"))), ".exe")
}

// leadingOptions are the options before the first operand.
func leadingOptions(args []string) []string {
	n := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	if n < 0 {
		return args
	}
	return args[:n]
}

// fetcherScript reports that npx or one of its kin is given a script for a shell, before the name of a package (docs.npmjs.com, npm exec).
func fetcherScript(args []string) bool {
	for i := 0; i < len(args) && strings.HasPrefix(args[i], "-") && args[i] != "--"; i++ {
		switch a := args[i]; {
		case a == "-p" || a == "--package":
			i++
		case hasFlag([]string{a}, 'c', "--call") || strings.HasPrefix(a, "--call="):
			return true
		}
	}
	return false
}

// hasFlag reports whether args hold a short option, alone or in a cluster, or the long one.
func hasFlag(args []string, short byte, long string) bool {
	for _, arg := range args {
		if arg == long || (len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.IndexByte(arg[1:], short) >= 0) {
			return true
		}
	}
	return false
}
