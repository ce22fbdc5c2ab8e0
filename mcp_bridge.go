// This file makes enabled MCP servers usable as tools: it connects on first need, holds the live lists against the pins, and
// passes each call through pin, trust, lists, policy and audit, in that order. It parses no config and prints nothing.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// bridgeConfig holds what the bridge works with. Nothing in it changes after newMCPBridge.
type bridgeConfig struct {
	Vault   func(context.Context) (*vault, error)
	Policy  *policy
	Trust   *trustSource // what the workspace says of servers; nil: nothing
	Rates   *rateLimiter // by digest name (mcp:SERVER/TOOL); nil: none
	Audit   *auditLog
	Redact  func(string) string
	Mask    func(context.Context) (*redactor, error) // what Redact masks with at this moment; nil: lists are read anew each time
	Env     func(string) (string, bool)              // the process environment, for references and for finding commands
	Environ []string                                 // the same as NAME=value, the base of a child's environment
	Dir     string                                   // the current folder, for what an entry says relative to it
	GOOS    string                                   // what is depended on is decided by this, not by the build
	Profile func(context.Context) (string, error)    // the current profile, or that of the turn in ctx
	HTTP    *http.Client                             // the program's one client
	Web     *webFetcher                              // what logins are made with; nil: no tokens are used
	Taken   func(string) bool                        // names of native tools, which win over bridged ones
	Now     func() time.Time
	Changed func()        // told when a stored entry changed, or a secret of the vault is put to use; nil: nobody cares
	Connect time.Duration // deadline of one connect; mcpConnectTimeout when 0
	Call    time.Duration // deadline of one call; mcpCallTimeout when 0

	// Dial opens the transport of an expanded entry; nil means the real ones.
	Dial func(context.Context, serverEntry) (transport, error)
}

// mcpBridge is safe for concurrent use. close ends every server it started.
type mcpBridge struct {
	cfg bridgeConfig

	mu     sync.Mutex
	conns  map[connKey]*bridgeConn
	closed bool
	done   chan struct{} // closed by close; ends connects on their way

	memoMu   sync.Mutex
	memo     bridgeMemo
	switches atomic.Int64 // of the profile
}

// connKey names a connection. Profile is "" but where a login of that profile may be sent.
type connKey struct{ server, profile string }

// bridgeConn is one server's place. turn is a lock that a context can give up waiting for; it guards the rest.
type bridgeConn struct {
	turn  chan struct{}
	entry serverEntry // as stored when the connection was made
	view  *bridgeView // nil without a connection
}

// bridgeView is one connection with its list as judged last. It is never changed, only replaced, so a call uses it without a
// lock. Of each tool it keeps what a call needs; the whole list goes to whoever asked for it.
type bridgeView struct {
	client   *mcpClient
	entry    serverEntry // as stored
	tools    map[string]bridgeTool
	warnings []string
	partial  string // why the list is incomplete
}

// bridgeTool is a live tool as a call sees it. Output is the tool's own outputSchema, nil without one.
type bridgeTool struct {
	State  toolState
	Reason string
	Hash   string
	Output json.RawMessage
	Trust  trustVerdict // not of a view, which outlives it
	Ruled  string       // the policy's rule that let one call of it through; neither of a view
}

// bridgeMemo is what was read at one stamp. A write by anyone empties it.
type bridgeMemo struct {
	at    bridgeStamp
	tools map[bridgeAsked]bridgeStored
	names map[string]map[string]toolRef // by profile, "" being the current one; filled as it is asked for
}

// bridgeStamp names one state of the vault, the profile that the run works in, and the workspace's trust file.
type bridgeStamp struct {
	vaultStamp
	switches int64
	trust    *trustRules
}

// bridgeAsked is a tool as it was asked about; Profile "" is the current one.
type bridgeAsked struct {
	toolRef
	Profile string
}

type bridgeStored struct {
	row  serverRow
	tool bridgeTool
}

func newMCPBridge(cfg bridgeConfig) *mcpBridge {
	b := &mcpBridge{cfg: cfg, conns: map[connKey]*bridgeConn{}, done: make(chan struct{})}
	b.cfg.Connect = cmp.Or(cfg.Connect, mcpConnectTimeout)
	if cfg.Changed == nil {
		b.cfg.Changed = func() {}
	}
	return b
}

var (
	errBridgeClosed  = errors.New("tai is ending")
	errNoSuchTool    = errors.New("no such tool")
	errNotEnabled    = errors.New("server is not enabled")
	errBadArguments  = errors.New("arguments are no JSON object")
	errServerUnknown = errors.New("no such MCP server")
)

// hintedError is an error with the one thing to do about it.
type hintedError struct {
	err  error
	Hint string
}

func (e *hintedError) Error() string { return e.err.Error() }

func (e *hintedError) Unwrap() error { return e.err }

// close ends all connections, several at a time. It is safe to call twice.
func (b *mcpBridge) close() error {
	b.mu.Lock()
	if !b.closed {
		close(b.done)
	}
	b.closed = true
	conns := b.conns
	b.conns = map[connKey]*bridgeConn{}
	b.mu.Unlock()
	var wg sync.WaitGroup
	errs := make(chan error, len(conns))
	for _, c := range conns {
		wg.Go(func() { // ends with the transport's own bounded close
			c.turn <- struct{}{}
			defer func() { <-c.turn }()
			errs <- c.drop()
		})
	}
	wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return joinErrors(all...)
}

func (c *bridgeConn) drop() error {
	if c.view == nil {
		return nil
	}
	err := c.view.client.close()
	c.view = nil
	return err
}

// forget ends the connections to one server, so that the next use starts anew.
func (b *mcpBridge) forget(server string) error {
	b.mu.Lock()
	var conns []*bridgeConn
	for key, c := range b.conns {
		if key.server == server {
			conns = append(conns, c)
			delete(b.conns, key)
		}
	}
	b.mu.Unlock()
	var all []error
	for _, c := range conns {
		c.turn <- struct{}{}
		all = append(all, c.drop())
		<-c.turn
	}
	return joinErrors(all...)
}

func (b *mcpBridge) conn(key connKey) (*bridgeConn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errBridgeClosed
	}
	c := b.conns[key]
	if c == nil {
		c = &bridgeConn{turn: make(chan struct{}, 1)}
		b.conns[key] = c
	}
	return c, nil
}

// open gives the live connection of a stored server, connecting or reconnecting once if needed, with its list judged against
// the pins. fresh wants the whole list, as the server has it now. Callers of one server share the work; servers do not wait for
// each other.
func (b *mcpBridge) open(ctx context.Context, row serverRow, fresh bool) (*bridgeView, []listedTool, error) {
	key := connKey{server: row.Name}
	if row.Transport == "http" && !ownCredential(row.serverEntry) {
		var err error
		if key.profile, err = b.cfg.Profile(ctx); err != nil {
			return nil, nil, err
		}
	}
	c, err := b.conn(key)
	if err != nil {
		return nil, nil, err
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, nil, errorf("mcp server %s: connect: %w", quoteClip(row.Name), context.Cause(ctx))
	}
	if c.view != nil && !fresh && c.view.client.alive() && !c.view.client.stale() && sameEntry(c.entry, row.serverEntry) {
		return c.view, nil, nil // nothing to wait for
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := ctx.Done()
	go func() { // ends with ctx, which cancel ends at the latest
		select {
		case <-b.done:
			cancel()
		case <-over:
		}
	}()
	if c.view != nil && (!c.view.client.alive() || !sameEntry(c.entry, row.serverEntry)) {
		_ = c.drop() // how a dead or replaced server ended was told to the call it ended
	}
	if c.view == nil {
		tools, err := b.connect(ctx, c, row, key.profile)
		if err != nil {
			return nil, nil, b.cleanError(errorf("mcp server %s: connect: %w", quoteClip(row.Name), b.authFault(ctx, row.serverEntry, err)))
		}
		return c.view, tools, nil
	}
	ctx, stop := context.WithTimeoutCause(ctx, b.cfg.Connect, errConnectTimeout)
	defer stop()
	view, tools, err := b.list(ctx, c.view.client, row)
	if err != nil {
		return nil, nil, b.cleanError(errorf("mcp server %s: list tools: %w", quoteClip(row.Name), b.authFault(ctx, row.serverEntry, err)))
	}
	c.view = view
	return view, tools, nil
}

// connect dials, shakes hands and lists, all inside one deadline. What has to be asked before is asked without it: a person
// reads as long as they need.
func (b *mcpBridge) connect(ctx context.Context, c *bridgeConn, row serverRow, profile string) ([]listedTool, error) {
	entry, err := b.expand(ctx, row.serverEntry)
	if err != nil {
		return nil, err
	}
	if err := b.sameArgv(ctx, row.serverEntry); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.cfg.Connect, errConnectTimeout)
	defer cancel()
	client, err := b.dialClient(ctx, entry, b.tokens(entry, profile))
	if err != nil {
		return nil, err
	}
	view, tools, err := b.list(ctx, client, row)
	if err != nil {
		return nil, joinErrors(err, client.close())
	}
	c.view, c.entry = view, row.serverEntry
	return tools, nil
}

// tokenGiver is asked for the token of each message, and for another one where that was refused.
type tokenGiver interface {
	token(context.Context) (secret, error)
	renew(ctx context.Context, used secret, challenge []string) (secret, error)
}

func (b *mcpBridge) dialClient(ctx context.Context, entry serverEntry, tokens tokenGiver) (*mcpClient, error) {
	open := b.cfg.Dial
	if open == nil {
		open = func(ctx context.Context, e serverEntry) (transport, error) { return b.dial(ctx, e, tokens) }
	}
	t, err := open(ctx, entry)
	if err != nil {
		return nil, err
	}
	client, err := connectMCP(ctx, t, clientInfo{Name: "tai", Version: version})
	if err != nil {
		return nil, err
	}
	if b.cfg.Call > 0 {
		client.callTimeout = b.cfg.Call
	}
	return client, nil
}

// dial opens the real transport of an expanded entry. tokens may be nil.
func (b *mcpBridge) dial(ctx context.Context, e serverEntry, tokens tokenGiver) (transport, error) {
	if e.Transport == "http" {
		cfg := httpConfig{URL: e.URL, Headers: e.Headers, Client: b.cfg.HTTP, Now: b.cfg.Now}
		if tokens != nil {
			cfg.Token, cfg.Renew = tokens.token, tokens.renew
		}
		return newHTTPTransport(cfg)
	}
	return startStdio(ctx, stdioConfig{Argv: spawnArgv(e, b.cfg.GOOS), Env: stdioEnv(b.cfg.Environ, e.Env, b.cfg.GOOS), Dir: e.Cwd})
}

// expand fills in the references of an entry: process environment first, then the vault, with what is to come into it.
func (b *mcpBridge) expand(ctx context.Context, e serverEntry, moved ...namedSecret) (serverEntry, error) {
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return serverEntry{}, err
	}
	var fault error
	expanded, _, err := expandEntry(e, b.cfg.Env, func(name string) (string, bool) {
		if s, ok := movedSecret(moved, name); ok {
			return s.reveal(), true
		}
		s, err := v.secretFor(ctx, "", name)
		switch {
		case err == nil:
			b.cfg.Changed() // another process may have stored it since they were read for masking
		case !errors.Is(err, errNotFound):
			fault = err
		}
		return s.reveal(), err == nil
	})
	return expanded, joinErrors(fault, err)
}

// list asks for the tools and judges them. What is gone is dropped from the vault without a word, if the list is whole.
func (b *mcpBridge) list(ctx context.Context, client *mcpClient, row serverRow) (*bridgeView, []listedTool, error) {
	live, err := client.listTools(ctx)
	if err != nil {
		return nil, nil, err
	}
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return nil, nil, err
	}
	granted, err := v.cachedTools(ctx, row.Name)
	if err != nil {
		return nil, nil, err
	}
	tools, removed := judgeTools(row.serverEntry, live.Tools, granted)
	dropSecretNames(tools, b.cfg.Redact)
	if live.Incomplete == "" && len(removed) > 0 {
		if err := v.dropTools(ctx, row.Name, removed); err != nil {
			return nil, nil, err
		}
	}
	if rows, changed := neverGranted(tools, b.cfg.Redact); changed {
		if err := v.cacheTools(ctx, row.Name, rows); err != nil {
			return nil, nil, err
		}
	}
	trust, err := b.trust(ctx)
	if err != nil {
		return nil, nil, err
	}
	view := &bridgeView{client: client, entry: row.serverEntry, tools: make(map[string]bridgeTool, len(tools)), warnings: append(live.Warnings, client.noise()...), partial: live.Incomplete}
	for _, t := range tools {
		if _, twice := view.tools[t.Name]; !twice && t.Name != "" {
			view.tools[t.Name] = bridgeTool{State: t.State, Reason: t.Reason, Hash: t.Hash, Output: bytes.Clone(t.OutputSchema)}
		}
	}
	settle(tools, row.Name, trust)
	return view, tools, nil
}

// neverGranted gives the rows of the usable tools without a pin, so that lists can show them without a connection, and whether
// they are other than those stored.
func neverGranted(tools []listedTool, mask func(string) string) (rows []toolRow, changed bool) {
	for _, t := range tools {
		if t.State == stateUnusable || t.Was != nil && t.Was.Hash != "" {
			continue
		}
		row := t.pinRow(mask)
		row.Hash = ""
		rows = append(rows, row)
		changed = changed || t.Was == nil || t.Was.Description != row.Description || !bytes.Equal(t.Was.Schema, row.Schema)
	}
	return rows, changed
}

// enabledServer gives the row of a server that is enabled for the profile; "" means the current one.
func (b *mcpBridge) enabledServer(ctx context.Context, server, profile string) (serverRow, error) {
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return serverRow{}, err
	}
	row, err := v.server(ctx, server)
	if errors.Is(err, errNotFound) {
		return serverRow{}, errorf("%w as %s", errServerUnknown, quoteClip(server))
	}
	if err != nil {
		return serverRow{}, err
	}
	if profile == "" {
		if profile, err = b.cfg.Profile(ctx); err != nil {
			return serverRow{}, err
		}
	}
	if !row.Profiles[profile] {
		hint := "tai mcp enable " + quoteWord(server) + " allows it for the profile"
		if wanted, err := v.wantsLogin(ctx, server); err == nil && wanted {
			hint = "it wants a login first: " + loginWords(server, profile) + " logs in and enables it"
		}
		return serverRow{}, &hintedError{errorf("mcp server %s: %w for profile %s", quoteClip(server), errNotEnabled, quoteClip(profile)), hint}
	}
	return row, nil
}

// loginWords is the command that logs in. A profile other than the first one is named: a login is for one.
func loginWords(server, profile string) string {
	words := "tai mcp login " + quoteWord(server)
	if profile != "" && profile != profileDefault {
		words += " --profile " + quoteWord(profile)
	}
	return words
}

// enabledServers gives one enabled server by name, or with "" all that are enabled for the current profile.
func (b *mcpBridge) enabledServers(ctx context.Context, server string) ([]serverRow, error) {
	if server != "" {
		row, err := b.enabledServer(ctx, server, "")
		return []serverRow{row}, err
	}
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := v.servers(ctx)
	if err != nil {
		return nil, err
	}
	profile, err := b.cfg.Profile(ctx)
	if err != nil {
		return nil, err
	}
	return without(rows, func(r serverRow) bool { return !r.Profiles[profile] }), nil
}

// turn switches a server for a profile, "" being the current one, which it gives back.
func (b *mcpBridge) turn(ctx context.Context, server, profile string, on bool) (string, error) {
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return "", err
	}
	if profile == "" {
		if profile, err = b.cfg.Profile(ctx); err != nil {
			return "", err
		}
	}
	if err := v.setEnabled(ctx, server, profile, on); errors.Is(err, errNotFound) {
		return "", errorf("%w as %s", errServerUnknown, quoteClip(server))
	} else if err != nil {
		return "", err
	}
	return profile, b.forget(server)
}

// liveList connects if need be and gives the judged list of a server as it is now.
func (b *mcpBridge) liveList(ctx context.Context, row serverRow) ([]listedTool, error) {
	_, tools, err := b.open(ctx, row, true)
	return tools, err
}

// storedList gives a server's tools as last seen, from the vault alone.
func (b *mcpBridge) storedList(ctx context.Context, row serverRow) ([]listedTool, error) {
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := v.cachedTools(ctx, row.Name)
	if err != nil {
		return nil, err
	}
	trust, err := b.trust(ctx)
	if err != nil {
		return nil, err
	}
	tools := make([]listedTool, 0, len(rows))
	for i := range rows {
		t := listedTool{toolDef: toolDef{Name: rows[i].Tool, Description: rows[i].Description, InputSchema: rows[i].Schema}, State: stateGranted, Hash: rows[i].Hash, Was: &rows[i]}
		if t.Hash == "" {
			t.State, t.Reason = stateWithheld, reasonNew
		} else {
			t.judgeLists(row.serverEntry)
		}
		tools = append(tools, t)
	}
	settle(tools, row.Name, trust)
	return tools, nil
}

// table gives the bridged names of every tool that is pinned on a server enabled for the current profile, from the vault
// alone: nothing is connected, so the prompt never waits. A tool that trust shuts out has its name, so that a call is told why it is
// refused, and is not among defs.
func (b *mcpBridge) table(ctx context.Context) (defs []sourceTool, back map[string]toolRef, err error) {
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return nil, nil, err
	}
	profile, err := b.cfg.Profile(ctx)
	if err != nil {
		return nil, nil, err
	}
	rows, err := v.serverList(ctx)
	if err != nil {
		return nil, nil, err
	}
	trust, err := b.trust(ctx)
	if err != nil {
		return nil, nil, err
	}
	var refs []toolRef
	found := map[toolRef]grantedTool{}
	for _, row := range rows {
		if !row.Profiles[profile] {
			continue
		}
		tools, err := v.cachedTools(ctx, row.Name)
		if err != nil {
			return nil, nil, err
		}
		for _, t := range grantedOf(row.serverEntry, tools, trust) {
			if b.cfg.Redact(t.Tool) != t.Tool {
				continue // a name cannot be masked and still be called by: a model gets no such tool
			}
			ref := toolRef{row.Name, t.Tool}
			refs, found[ref] = append(refs, ref), t
		}
	}
	names, back := bridgedNames(refs, b.cfg.Taken)
	for _, ref := range refs {
		if found[ref].shut {
			continue
		}
		if d, ok := b.toolOf(ref, names[ref], found[ref].toolRow); ok {
			defs = append(defs, d)
		}
	}
	return defs, back, nil
}

// toolOf gives a stored tool as a model sees it, unless a secret stands in its schema outside strings.
func (b *mcpBridge) toolOf(ref toolRef, name string, t toolRow) (d sourceTool, ok bool) {
	schema := b.redactJSON(t.Schema)
	if schema == nil && len(t.Schema) > 0 {
		return d, false
	}
	def := toolDef{Name: name, Title: visibleLine(ref.Server + "/" + ref.Tool), Description: modelText(b.cfg.Redact(t.Description)), InputSchema: modelSchema(schema)}
	return sourceTool{def, ref.Server, ref.Tool, t.Hash}, true
}

// grantedTool is a pinned tool that the entry's own lists let through. Shut: trust does not.
type grantedTool struct {
	toolRow
	shut bool
}

// grantedOf gives the rows that may be called by a bridged name: pinned, not shut out by the entry's lists, within the cap, for which those
// that trust shuts out do not count.
func grantedOf(e serverEntry, rows []toolRow, trust *trustRules) []grantedTool {
	var out []grantedTool
	offered := 0
	for _, t := range rows {
		if t.Hash == "" || slices.Contains(e.Deny, t.Tool) || len(e.Allow) > 0 && !slices.Contains(e.Allow, t.Tool) {
			continue
		}
		shut := trust.judge(e.Name, t.Tool).Deny
		if !shut {
			if offered == mcpMaxTools {
				continue
			}
			offered++
		}
		out = append(out, grantedTool{t, shut})
	}
	return out
}

// offered gives the bridged tools for selection (part of toolSource).
func (b *mcpBridge) offered(ctx context.Context) ([]sourceTool, error) {
	defs, _, err := b.table(ctx)
	return defs, err
}

// bridgeState is what a list of tools depends on.
type bridgeState struct {
	at      bridgeStamp
	profile string // of a served turn, "" for that of the run
	mask    *redactor
}

// state names the state that offered reads (part of toolSource).
func (b *mcpBridge) state(ctx context.Context) (any, error) {
	if b.cfg.Mask == nil {
		return nil, nil
	}
	at, err := b.stamp(ctx)
	if err != nil {
		return nil, err
	}
	mask, err := b.cfg.Mask(ctx)
	return bridgeState{at, profileOf(ctx), mask}, err
}

// described gives just the tools of these names, whole (part of toolSource). One that is no longer offered is left out.
func (b *mcpBridge) described(ctx context.Context, names []string) ([]sourceTool, error) {
	back, err := b.names(ctx)
	if err != nil {
		return nil, err
	}
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return nil, err
	}
	trust, err := b.trust(ctx)
	if err != nil {
		return nil, err
	}
	var asked [][2]string
	for _, name := range names {
		if ref, ok := back[name]; ok && !trust.judge(ref.Server, ref.Tool).Deny {
			asked = append(asked, [2]string{ref.Server, ref.Tool})
		}
	}
	rows, err := v.toolTexts(ctx, asked)
	if err != nil {
		return nil, err
	}
	out := make([]sourceTool, 0, len(rows))
	for _, name := range names {
		ref := back[name]
		row, ok := rows[[2]string{ref.Server, ref.Tool}]
		if !ok {
			continue
		}
		if d, ok := b.toolOf(ref, name, row); ok {
			out = append(out, d)
		}
	}
	return out, nil
}

// owns reports whether a name could be a bridged one (part of toolSource).
func (b *mcpBridge) owns(name string) bool {
	return len(name) > len(bridgedNamePrefix) && name[:len(bridgedNamePrefix)] == bridgedNamePrefix && !b.cfg.Taken(name)
}

// call runs one bridged tool by its bridged name (part of toolSource).
func (b *mcpBridge) call(ctx context.Context, call toolCall) (toolResult, error) {
	back, err := b.names(ctx)
	if err != nil {
		return toolResult{}, err
	}
	ref, ok := back[call.Name]
	if !ok {
		return toolResult{}, errorf("%w: %s", errNoSuchTool, quoteClip(call.Name))
	}
	return b.callTool(ctx, ref, call)
}

// objectArguments gives the arguments as an object: none, null and the empty text that some models send mean {} (F17).
func objectArguments(raw json.RawMessage) (json.RawMessage, error) {
	if s := string(raw); s == "" || s == "null" || s == `""` {
		return json.RawMessage(`{}`), nil
	}
	if err := checkJSON(raw); err != nil {
		return nil, errorf("%w: %w", errBadArguments, err)
	}
	if _, err := jsonObject(raw); err != nil {
		return nil, errBadArguments
	}
	return raw, nil
}
