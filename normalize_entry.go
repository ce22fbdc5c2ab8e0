// This file joins the fields of one server entry into its canonical form: the rules between fields, the references in
// them, and the reasons to refuse the entry. It knows neither where the entry stood nor, but for the source it is given, in
// which format.
package main

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// readEntry reads one entry for the given source. The entry has no name yet and its command is not yet wrapped for an
// operating system; messages in rep and the error don't name the server either: the caller does all three.
func readEntry(n confNode, source string, rep *confReport) (serverEntry, error) {
	if n.kind != confMap {
		return serverEntry{}, errorf("an entry must be an object, not %s", n.kind)
	}
	r := &entryReader{rep: rep}
	for _, m := range n.last() {
		r.field(m.key, m.node)
	}
	return buildEntry(r, source)
}

// ruleEntry puts an entry that was not read from fields through the same rules.
func ruleEntry(e serverEntry, source string, rep *confReport) (serverEntry, error) {
	r := &entryReader{rep: rep, command: e.Command, args: e.Args}
	for _, k := range slices.Sorted(maps.Keys(e.Env)) {
		r.env = append(r.env, confPair{"env", k, e.Env[k]})
	}
	for _, k := range slices.Sorted(maps.Keys(e.Headers)) {
		r.fixed = append(r.fixed, confPair{"headers", k, e.Headers[k]})
	}
	if e.URL != "" {
		r.urls = []confPair{{key: "url", value: e.URL}}
	}
	return buildEntry(r, source)
}

// buildEntry applies the rules between the fields that r gathered.
func buildEntry(r *entryReader, source string) (serverEntry, error) {
	e := serverEntry{Source: source}
	address := oneAddress(r)
	checkTypes(r)
	switch {
	case r.command != "" && len(r.urls) > 0:
		r.fault("both command and url are given, so it can't be known which one is meant")
	case r.command == "" && len(r.urls) == 0:
		r.fault("neither command nor url is given")
	}
	if len(r.urls) > 0 {
		address.value = rewriteRefs(r, address.key, address.value)
		checkURL(r, address)
	}
	vars, headers := joinVariables(r), joinHeaders(r)
	if len(r.faults) > 0 {
		return serverEntry{}, newError(strings.Join(r.faults, "; "))
	}
	refs := &entryRefs{r: r, seen: map[string]bool{}}
	if r.command != "" {
		e.Transport, e.Command, e.Cwd = "stdio", refs.text("command", r.command, refsPlain), r.cwd
		for i, a := range r.args {
			e.Args = append(e.Args, refs.text(fmt.Sprintf("args[%d]", i), a, refsArgument))
		}
		e.Env = refs.values("env", vars)
		if len(headers) > 0 {
			r.rep.warn("a command server has no headers; left out: %s", joinNames(headers))
		}
		checkCommand(r, e)
	} else {
		e.Transport, e.URL = "http", refs.text(address.key, address.value, refsPlain)
		e.Headers = refs.values("header", headers)
		checkLost(r, vars)
	}
	checkMismatch(r, e.Transport)
	e.Allow, e.Deny, e.Enabled = r.allow, r.deny, joinSwitches(r)
	if slices.Contains(e.Deny, "*") {
		r.rep.warn("a * among the denied tools is taken as the name of a tool; to switch the server off use enabled: false")
	}
	return e, nil
}

// oneAddress picks the address: equal ones are one, httpUrl wins over the others, any other pair is refused.
func oneAddress(r *entryReader) confPair {
	var out confPair
	for _, u := range r.urls {
		switch best := foldKey(u.key) == "http_url"; {
		case out.key == "":
			out = u
		case u.value == out.value:
		case best == (foldKey(out.key) == "http_url"):
			r.fault("%s and %s hold different addresses", out.key, u.key)
		case best:
			r.rep.note("%s is taken as the address and %s is ignored", u.key, out.key)
			out = u
		default:
			r.rep.note("%s is taken as the address and %s is ignored", out.key, u.key)
		}
	}
	return out
}

// transportKind tells transports apart in any spelling: stdio, http, sse, ws, or "" for an unknown one.
func transportKind(s string) string {
	s = strings.Map(func(c rune) rune {
		if c = unicode.ToLower(c); unicode.IsLetter(c) || unicode.IsDigit(c) {
			return c
		}
		return -1
	}, s)
	switch s {
	case "stdio", "local":
		return "stdio"
	case "http", "remote", "streamablehttp", "httpstreamable", "httpstream", "streaminghttp", "httpstreaming":
		return "http"
	case "ws", "wss":
		return "ws"
	}
	switch {
	case strings.Contains(s, "sse"), strings.Contains(s, "serversentevent"):
		return "sse"
	case strings.Contains(s, "websocket"):
		return "ws"
	}
	return ""
}

func checkTypes(r *entryReader) {
	for _, t := range r.types {
		shown := t.key + " " + confQuote(t.value)
		switch transportKind(t.value) {
		case "sse":
			r.fault("%s: the legacy HTTP+SSE transport is not supported", shown)
		case "ws":
			r.fault("%s: WebSocket is not supported", shown)
		case "":
			r.fault("%s is no known transport", shown)
		}
	}
}

// checkMismatch warns when a type says something else than the fields do.
func checkMismatch(r *entryReader, transport string) {
	for _, t := range r.types {
		if transportKind(t.value) != transport {
			field := map[string]string{"stdio": "command", "http": "url"}[transport]
			r.rep.warn("%s %s does not fit %s; the %s is followed", t.key, confQuote(t.value), field, field)
		}
	}
}

// checkURL refuses an address that can't be dialled and warns about one that looks like the legacy transport.
func checkURL(r *entryReader, p confPair) {
	v := p.value
	scheme, _, _ := strings.Cut(strings.ToLower(v), ":")
	switch {
	case scheme == "ws" || scheme == "wss":
		r.fault("%s is a WebSocket address, which is not supported", p.key)
		return
	case strings.HasPrefix(v, "${"), strings.HasPrefix(v, "{file:"):
	case !isHTTPAddress(v):
		r.fault("%s must start with http:// or https://", p.key)
		return
	case !strings.Contains(v, "${"):
		if u, err := url.Parse(v); err != nil || u.Host == "" {
			r.fault("%s is no address that can be dialled: after http:// or https:// comes a host", p.key)
			return
		}
	}
	path := v
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	if strings.HasSuffix(strings.ToLower(strings.TrimRight(path, "/")), "/sse") {
		r.rep.warn("%s ends in /sse, which is most likely the legacy HTTP+SSE transport; tai speaks Streamable HTTP only", p.key)
	}
}

// joinVariables joins env and environment (the later value counts) and the names of env_vars (env wins).
func joinVariables(r *entryReader) []confPair {
	out, at := []confPair(nil), map[string]int{}
	for _, p := range r.env {
		if i, ok := at[p.name]; ok {
			if out[i].value != p.value {
				r.rep.warn("the variable %s is given in %s and in %s; the last one counts", confShow(p.name), out[i].key, p.key)
			}
			out[i] = p
			continue
		}
		at[p.name] = len(out)
		out = append(out, p)
	}
	for _, name := range r.envVars {
		if _, ok := at[name]; !ok {
			at[name] = len(out)
			out = append(out, confPair{key: "env_vars", name: name, value: "${" + name + "}"})
		}
	}
	return out
}

// joinHeaders joins the headers of all fields. Names are the same in upper and lower case (RFC 9110 5.1). Those that name
// a variable win over fixed ones, and headers over the ones a client library is told.
func joinHeaders(r *entryReader) []confPair {
	out, at := []confPair(nil), map[string]int{}
	put := func(p confPair, wins bool) {
		folded := strings.ToLower(p.name)
		i, ok := at[folded]
		switch {
		case !ok:
			at[folded] = len(out)
			out = append(out, p)
		case out[i].value == p.value:
		case wins:
			r.rep.warn("%s sets the header %s again; the one in %s is dropped", p.key, confShow(p.name), out[i].key)
			out[i] = p
		default:
			r.rep.warn("%s sets the header %s again and is ignored; the one in %s counts", p.key, confShow(p.name), out[i].key)
		}
	}
	for _, p := range r.fixed {
		put(p, true)
	}
	for _, p := range r.request {
		put(p, false)
	}
	if r.bearer != "" {
		r.rep.warn("%s puts a token into the entry itself; a reference such as ${NAME} keeps it out", r.bearerKey)
		token := strings.TrimSpace(r.bearer)
		if rest, ok := strings.CutPrefix(token, "Bearer "); ok {
			token = strings.TrimSpace(rest)
		}
		put(confPair{r.bearerKey, "Authorization", "Bearer " + token}, false)
	}
	for _, p := range r.fromEnv {
		put(p, true)
	}
	if r.bearerVar != "" {
		if ref := refToVariable(r, r.bearerVarKey, r.bearerVar); ref != "" {
			put(confPair{r.bearerVarKey, "Authorization", "Bearer " + ref}, true)
		}
	}
	return out
}

func joinNames(ps []confPair) string {
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = confShow(p.name)
	}
	return strings.Join(names, ", ")
}

// joinSwitches joins enabled, disabled and the like; a contradiction means off.
func joinSwitches(r *entryReader) *bool {
	if len(r.enabled) == 0 && !r.off {
		return nil
	}
	on := !slices.Contains(r.enabled, false)
	if !on && slices.Contains(r.enabled, true) {
		r.rep.warn("enabled and disabled contradict each other: the server is switched off")
	}
	on = on && !r.off
	return &on
}

// checkLost warns about what a remote server can't use.
func checkLost(r *entryReader, vars []confPair) {
	var lost []string
	if len(r.args) > 0 {
		lost = append(lost, "args")
	}
	if len(vars) > 0 {
		lost = append(lost, "env ("+joinNames(vars)+")")
	}
	if r.cwd != "" {
		lost = append(lost, "cwd")
	}
	if len(lost) > 0 {
		r.rep.warn("a remote server has no %s; left out", strings.Join(lost, ", no "))
	}
}

// checkCommand warns about commands that will most likely not work as they are written.
func checkCommand(r *entryReader, e serverEntry) {
	if strings.Contains(e.Cwd, "${") || strings.Contains(e.Cwd, "{env:") || strings.Contains(e.Cwd, "{file:") {
		r.rep.warn("cwd is never expanded: %s stays as it is", confClip(e.Cwd, refShown))
	}
	if isContainerRun(e.Command, e.Args) && !readContainerRun(e.Args).interactive {
		r.rep.warn("%s run without -i gives the container no standard input, so the server can't answer", programName(e.Command))
	}
}

// refPlace says which looks of a text are worth a warning where it stands.
type refPlace uint8

const (
	refsPlain    refPlace = iota
	refsArgument          // a bare $NAME as the whole text
	refsValue             // a bare $NAME or a <placeholder> anywhere
)

// entryRefs rewrites the references of one entry and says what the user should know about them, each once.
type entryRefs struct {
	r    *entryReader
	seen map[string]bool
}

func (x *entryRefs) values(what string, ps []confPair) map[string]string {
	if len(ps) == 0 {
		return nil
	}
	out := make(map[string]string, len(ps))
	for _, p := range ps {
		out[p.name] = x.text(what+" "+confShow(p.name), p.value, refsValue)
	}
	return out
}

func (x *entryRefs) warn(what, ref, format string, args ...any) {
	ref = confClip(ref, refShown)
	if key := what + "\x00" + ref; !x.seen[key] {
		x.seen[key] = true
		x.r.rep.warn("%s: %s %s", what, ref, fmt.Sprintf(format, args...))
	}
}

func (x *entryRefs) text(what, s string, place refPlace) string {
	if s = rewriteRefs(x.r, what, s); !strings.ContainsAny(s, "${<") {
		return s
	}
	t := newRefText(s)
	collectRefs(t, 0, len(s), 0, func(ref refSpan, _ bool) {
		raw := s[ref.start:ref.end]
		switch ref.kind {
		case refInput:
			if !x.seen[raw] {
				x.seen[raw] = true
				x.r.rep.note("the vault must hold the value of ${input:%s} under the id %s", confShow(ref.name), confShow(ref.name))
			}
		case refName:
			if isEditorVariable(ref.name) {
				x.warn(what, raw, "is known to an editor only, so the server can't be started like this")
			}
		case refOpen:
			x.warn(what, raw, "is never closed")
		case refUnknown, refEnv:
			x.warn(what, raw, "is no reference that tai knows and is kept as it stands")
		}
	})
	for at := 0; ; {
		i := strings.Index(s[at:], "{file:")
		if i < 0 {
			break
		}
		if i += at; i > 0 && s[i-1] == '$' { // told above
			at = i + len("{file:")
			continue
		}
		at = len(s)
		if t.close[i] >= 0 {
			at = int(t.close[i]) + 1
		}
		x.warn(what, s[i:at], "is no reference that tai knows and is kept as it stands")
	}
	x.look(what, s, place)
	return s
}

// look warns about text that was most likely meant to be filled in.
func (x *entryRefs) look(what, s string, place refPlace) {
	if place == refsPlain {
		return
	}
	if name := bareDollar(s); name != "" && (place == refsValue || "$"+name == s) {
		x.warn(what, "$"+name, "stays text: only ${%s} is a reference", name)
	}
	if place == refsValue && hasPlaceholder(s) {
		x.warn(what, "the value", "still holds a <placeholder>")
	}
}

func isEditorVariable(name string) bool {
	return slices.Contains([]string{"workspaceFolder", "workspaceFolderBasename", "workspaceRoot", "userHome", "pathSeparator"}, name)
}

// bareDollar finds the first $NAME in s, a name without dashes and dots.
func bareDollar(s string) string {
	for i := 0; i+1 < len(s); i++ {
		if s[i] != '$' {
			continue
		}
		if s[i+1] == '$' {
			i++
			continue
		}
		name := refNamePrefix(s[i+1:])
		if name, _, _ = strings.Cut(name, "-"); name != "" {
			name, _, _ = strings.Cut(name, ".")
			return name
		}
	}
	return ""
}

// hasPlaceholder finds <some text> that starts with a letter, on one line and not longer than 100 bytes.
func hasPlaceholder(s string) bool {
	for i := 0; i+1 < len(s); i++ {
		if s[i] != '<' || !unicode.IsLetter(rune(s[i+1])) {
			continue
		}
		rest := s[i+1 : min(len(s), i+102)]
		if j := strings.IndexAny(rest, "<>\n"); j > 0 && rest[j] == '>' {
			return true
		}
	}
	return false
}

// rewriteRefs turns ${env:NAME} into ${NAME}, and {env:NAME} without a dollar too, with a note. A reference of an unknown
// kind stays as it is, whatever stands inside.
func rewriteRefs(r *entryReader, what, s string) string {
	if !strings.Contains(s, "{env:") {
		return s
	}
	t, bare := newRefText(s), false
	var b textBuilder
	for i := 0; i < len(s); {
		rest := s[i:]
		size := 1
		switch {
		case strings.HasPrefix(rest, "$${"):
			size = 3
		case strings.HasPrefix(rest, "${"):
			switch ref := t.span(i, len(s)); ref.kind {
			case refEnv:
				b.WriteString("${")
				size, i = 0, i+len("${env:")
			case refUnknown:
				size = ref.end - i
			default:
				size = 2
			}
		case strings.HasPrefix(rest, "{env:") && t.close[i] >= 0:
			if ref := (&refSpan{}); ref.named(s[i+5:t.close[i]], refEnv, int(t.close[i])) {
				bare = true
				b.WriteString("${")
				size, i = 0, i+len("{env:")
			}
		}
		b.WriteString(s[i : i+size])
		i += size
	}
	if bare {
		r.rep.note("%s: {env:...} without a dollar sign was rewritten to ${...}", what)
	}
	return b.String()
}

// finishEntry makes the entry what goos starts, and warns about a command of another system.
func finishEntry(e serverEntry, goos string, rep *confReport) serverEntry {
	if e.Command == "" {
		return e
	}
	if base := programBase(e.Command); goos != "windows" && (base == "cmd" || base == "cmd.exe") {
		rep.warn("the command %s exists on Windows only", e.Command)
	}
	argv := spawnArgv(e, goos)
	e.Command, e.Args = argv[0], argv[1:]
	if len(e.Args) == 0 {
		e.Args = nil
	}
	return e
}

// entryNameFrom is the name that an entry gives itself by what it runs, or "".
func entryNameFrom(e serverEntry) string {
	if e.Transport == "http" {
		return addressName(e.URL)
	}
	return commandName(e.Command, e.Args)
}

// cloneEntry copies an entry, so that the result shares nothing with the caller's list of stored ones.
func cloneEntry(e serverEntry) serverEntry {
	e.Args, e.Allow, e.Deny = slices.Clone(e.Args), slices.Clone(e.Allow), slices.Clone(e.Deny)
	e.Env, e.Headers = maps.Clone(e.Env), maps.Clone(e.Headers)
	if e.Enabled != nil {
		on := *e.Enabled
		e.Enabled = &on
	}
	return e
}
