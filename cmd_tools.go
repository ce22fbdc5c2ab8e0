// This file holds the commands for tai's own tools, and makes the toolbox of a run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

const toolsSearchLimit = 20 // tools shown without --limit

func toolCommands() []command {
	return []command{
		{Path: "tools list", Short: "the native tools and the bridged ones of the enabled servers", Example: "tai tools list --json", Store: storeRead, Redacts: true, Run: cmdToolsList},
		{Path: "tools search", Args: "WORDS", Short: "find native and bridged tools by words, best first", Example: "tai tools search read a text file", Flags: []flagSpec{
			{Name: "server", Value: "S", Help: "only of this server, or of this family of native tools"},
			{Name: "limit", Value: "N", Help: fmt.Sprintf("at most this many (default %d)", toolsSearchLimit)}}, Min: 1, Max: -1, Store: storeRead, Redacts: true, Run: cmdToolsSearch},
		{Path: "tools call", Args: "NAME [JSON|-|k=v…]", Short: "call a native or bridged tool, with or without a model",
			Long:    "Arguments are one JSON object, - for standard input, or k=v words. In k=v a\nvalue that is JSON is taken as it is (n=3, on=true, list=[1,2]), any other as\ntext; k:=v is always text, and so is what a native tool takes as text alone.",
			Example: `tai tools call text_search pattern=func glob='*.go'`, Min: 1, Max: -1, Store: storeWrite, Redacts: true, Run: cmdToolsCall},
		{Path: "tools digest", Args: "NAME [JSON|-|k=v…]", Short: "the payload digest of one exact call", Example: `tai tools digest shell_run '{"command":"make test"}'`, Min: 1, Max: -1, Store: storeRead, Run: cmdToolsDigest},
	}
}

// nativeTools declares the native tools of this run. Where no person sits, ask_user, plan_submit and the hidden prompt of secret_set have nobody to ask.
func (a *app) nativeTools() ([]tool, error) {
	w, err := openWorkspace(a.root)
	if err != nil {
		return nil, err
	}
	var person asker
	if a.desk != nil {
		person = maskedAsker{a.desk, a.redact}
	}
	own := func() []string { return []string{a.home, a.keys().Dir} }
	changer := newFileChanger(w, a.home, own, a.vault, a.out.Now)
	tools := append(fileTools(w), changingTools(changer)...)
	tools = append(tools, searchTools(w)...)
	environ := a.commandEnviron
	tools = append(tools, shellTools(w, environ)...)
	tools = append(tools, inspectTools(w, environ, a.goos)...)
	tools = append(tools, procTools(a.procs, w, environ, a.goos, a.redact)...)
	tools = append(tools, sysTools(w, environ, a.goos, a.home, a.out.Now, a.sysState)...)
	tools = append(tools, gitTools(w, environ, a.goos, a.out.Now)...)
	tools = append(tools, webTools(a.web, changer, a.policy.foresee, a.namedVariable, a.namedSecret)...)
	tools = append(tools, dataTools(dataFiles{newDataEngine(), fileGuard{w, own}}, a.vault)...)
	tools = append(tools, askTools(person)...)
	tools = append(tools, findTools(func() (toolFinder, error) { return a.toolbox() })...)
	tools = append(tools, policyTools(a.foreseer)...)
	tools = append(tools, modelTools(a.models())...)
	tools = append(tools, a.ownTools(w, own)...)
	tools = append(tools, memoryTools(a.vault, a.redact)...)
	tools = append(tools, sessionTools(a.vault)...)
	tools = append(tools, auditTools(w, a.auditFolders(), a.out.Now, a)...)
	tools = append(tools, usageTools(a.usageSource())...)
	tools = append(tools, subagentTools(a.agentScope())...)
	return append(tools, mcpTools(a.bridge, a.repos, a.goos, a.loginFace())...), nil
}

// ownTools are those about the run itself and what the vault keeps for it.
func (a *app) ownTools(w workspace, own func() []string) []tool {
	tools := append(todoTools(), planSubmitTools(a.planReviewer(), a.planAgreed)...)
	tools = append(tools, recordTools(recordDesk{a.vault, a.redact})...)
	tools = append(tools, secretTools(secretDesk{
		vault: a.vault, quiet: a.opensQuietly, env: a.lookupEnv, hidden: a.hiddenLine(), changed: func() { a.known.changed() }, guard: fileGuard{w, own}, goos: a.goos,
		store: func(ctx context.Context, name, value string) (state, warning string, err error) {
			if warning, err = checkSecret(name, value); err != nil {
				return "", "", withHint(err)
			}
			v, err := a.vault(ctx)
			if err == nil {
				state, err = a.keepSecret(ctx, v, name, value)
			}
			return state, warning, err
		},
	})...)
	desk := profileDesk{vault: a.vault, current: a.profile, use: a.switchProfile, mode: a.modeName, model: func(ctx context.Context) string {
		name, _ := a.modelName(ctx)
		return name
	}}
	if a.rates != nil {
		desk.limits = a.rates.limits
	}
	return append(tools, profileTools(desk)...)
}

// modelName is the model that this run talks to, "" without one.
func (a *app) modelName(ctx context.Context) (string, error) {
	m, err := a.models().inUse(ctx)
	switch {
	case err == nil:
		return m.Name + "/" + m.Endpoint.Model, nil
	case errors.Is(err, errNoModel):
		return "", nil
	}
	return "", err
}

// namedVariable gives a variable that a call names; the passphrase of the vault is none.
func (a *app) namedVariable(name string) (string, bool) {
	if slices.ContainsFunc(passphraseVariables(), func(v string) bool { return sameVariable(v, name, a.goos) }) {
		return "", false
	}
	return a.lookupEnv(name)
}

// namedSecret gives a secret that a call names; from then on it is masked, also if another process has stored it just now.
func (a *app) namedSecret(ctx context.Context, name string) (secret, error) {
	v, err := a.vault(ctx)
	if err != nil {
		return "", err
	}
	s, err := v.secretFor(ctx, "", name)
	if err == nil {
		a.known.changed()
	}
	return s, err
}

// sysState is what sys_info says of this run. What cannot be found out is said in a note.
func (a *app) sysState(ctx context.Context) sysState {
	s := sysState{Version: version, Mode: a.modeName(), Root: a.root, Home: a.home}
	note := func(err error) {
		if err != nil {
			s.Notes = append(s.Notes, err.Error())
		}
	}
	var err error
	s.Model, err = a.modelName(ctx)
	note(err)
	s.Profile, err = a.profile(ctx)
	note(err)
	v, err := a.vault(ctx)
	note(err)
	if err != nil {
		return s
	}
	rows, err := v.servers(ctx)
	note(err)
	for _, row := range rows {
		s.Servers = append(s.Servers, sysServer{row.Name, row.Transport, row.Profiles[s.Profile]})
	}
	return s
}

// toolbox makes the registry on first use.
func (a *app) toolbox() (*toolbox, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tools != nil {
		return a.tools, nil
	}
	tools, err := a.nativeTools()
	if err != nil {
		return nil, err
	}
	box, err := newToolbox(tools, a.policy, a.audit, a.vault, a.redact, a.bridge)
	if err != nil {
		return nil, err
	}
	box.rates = a.rates
	a.tools = box
	return box, nil
}

// foreseer is who says what would happen to a call.
func (a *app) foreseer() (policyForeseer, error) {
	a.mu.Lock()
	foretold := a.foretold
	a.mu.Unlock()
	if foretold != nil {
		return foretold, nil
	}
	return a.toolbox()
}

// nativeName reports a name that a native tool has; a bridged tool never gets it.
func (a *app) nativeName(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.natives == nil { // the declarations alone: their schemas need not be compiled for this
		tools, err := a.nativeTools()
		if err != nil {
			return false
		}
		a.natives = make(map[string]bool, len(tools))
		for _, t := range tools {
			a.natives[t.Name] = true
		}
	}
	return a.natives[name]
}

func cmdToolsList(ctx context.Context, c *invocation) error {
	box, err := c.toolbox()
	if err != nil {
		return err
	}
	bridged, err := c.bridge.offered(ctx)
	if err != nil {
		return err
	}
	type listed struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations json.RawMessage `json:"annotations,omitempty"`
	}
	var out []listed
	for _, t := range box.natives() {
		out = append(out, listed{t.Name, t.Description, t.Schema, t.def().Annotations})
	}
	for _, d := range bridged {
		if len(d.InputSchema) == 0 {
			d.InputSchema = json.RawMessage(`{"type":"object"}`)
		}
		out = append(out, listed{Name: d.Name, Description: c.redact(d.Description), InputSchema: d.InputSchema})
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"tools": out})
	}
	for _, t := range out {
		printWrapped(c.stdout, t.Name+"  "+brief(visibleLine(summaryLine(t.Description)), 100))
	}
	return nil
}

// cmdToolsSearch shows how tools rank for words, as a model's message would rank them.
func cmdToolsSearch(ctx context.Context, c *invocation) error {
	limit, err := c.limit(toolsSearchLimit)
	if err != nil {
		return err
	}
	box, err := c.toolbox()
	if err != nil {
		return err
	}
	found, fit, err := box.search(ctx, toolQuery{Words: strings.Join(append(c.args, c.rest...), " "), Server: c.flag("server"), Limit: limit})
	if err != nil {
		return orUnknown(err, "tai mcp list shows the servers and which of them are enabled")
	}
	if c.json {
		type hit struct {
			Name   string  `json:"name"`
			Server string  `json:"server,omitempty"`
			Score  float64 `json:"score"`
		}
		out := []hit{}
		for _, t := range found {
			out = append(out, hit{t.Name, t.Server, math.Round(t.Score*100) / 100})
		}
		return writeJSON(c.stdout, map[string]any{"tools": out})
	}
	for _, t := range found {
		fmt.Fprint(c.stdout, c.redact(findLine(t)))
	}
	switch {
	case fit == 0:
		fmt.Fprintln(c.stderr, "no tool fits these words")
	case fit > len(found):
		fmt.Fprintf(c.stderr, "%d more fit; --limit N shows more\n", fit-len(found))
	}
	return nil
}

// cmdToolsCall is a person's own word, as tai mcp call is.
func cmdToolsCall(ctx context.Context, c *invocation) error {
	box, err := c.toolbox()
	if err != nil {
		return err
	}
	args, err := callArguments(ctx, append(c.args[1:], c.rest...), c.stdin, box.textProperties(c.args[0]))
	if err != nil {
		return err
	}
	res, err := box.dispatch(ctx, toolCall{Name: c.args[0], Args: args, Person: true, Origin: c.origin, Profile: c.profileWord()})
	if err != nil {
		if _, unknown := c.digestName(ctx, c.args[0]); errors.Is(unknown, errNoSuchTool) {
			return unknown
		}
		return err
	}
	if err := c.result(res); err != nil || c.desk != nil && c.desk.attended() {
		return err
	}
	for _, p := range c.procs.all() { // the prompt keeps them
		if p.State == procRunning {
			fmt.Fprintf(c.stderr, "note: %s ends with this command; started at the prompt it goes on there\n", p.ID)
		}
	}
	return nil
}

// cmdToolsDigest gives the number that consent, presets and the run log show for a call. A bridged tool's is that of its real
// name, which mcp:SERVER/TOOL writes out.
func cmdToolsDigest(ctx context.Context, c *invocation) error {
	name, digest, err := c.callDigest(ctx)
	if err != nil {
		return err
	}
	return c.done(map[string]string{"tool": name, "digest": digest}, "%s", digest)
}

// callDigest gives the digest of the call that the words are, as tai tools call reads them, and the name it is made with.
func (c *invocation) callDigest(ctx context.Context) (name, digest string, err error) {
	box, err := c.toolbox()
	if err != nil {
		return "", "", err
	}
	args, err := callArguments(ctx, c.args[1:], c.stdin, box.textProperties(c.args[0]))
	if err != nil {
		return "", "", err
	}
	if name, err = c.digestName(ctx, c.args[0]); err != nil {
		return "", "", err
	}
	digest, err = payloadDigest(name, args)
	return name, digest, err
}

// digestName is the name under which a tool is decided and digested: a native tool's own, mcp:SERVER/TOOL of a bridged one.
func (c *invocation) digestName(ctx context.Context, name string) (string, error) {
	if strings.HasPrefix(name, bridgedSubjectPrefix) || c.nativeName(name) {
		return name, nil
	}
	_, back, err := c.bridge.table(ctx)
	if err != nil {
		return "", err
	}
	ref, ok := back[name]
	if !ok {
		return "", errorf("%w: %s", errNoSuchTool, quoteClip(name))
	}
	return bridgedSubject(ref.Server, ref.Tool), nil
}
