// This file holds the commands for the presets of a workspace: tai approval grant, deny, list, revoke, digest. What widens asks, what narrows
// does not.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

func approvalCommands() []command {
	preset := []flagSpec{{Name: "arg", Value: "K=GLOB", Help: "only where the argument K is a text that fits GLOB (* is any text)", Many: true},
		{Name: "command", Value: "WORDS", Help: "only command lines made of this program with these leading arguments"}}
	return []command{
		{Path: "approval grant", Args: "TOOL", Short: "let calls run unasked in this workspace; asks first", Example: `tai approval grant shell_run --command "go test"`,
			Long: `TOOL is a native tool, a bridged one, or mcp:SERVER/TOOL; * in it stands for
any text. A grant of a bridged tool holds for its definition as it is granted
now, and of several for each of them. It covers calls in the modes prompt and
up, and never what lies outside the root or what a deny covers.`,
			Flags: append(slices.Clone(preset), flagSpec{Name: "pin", Value: "HASH", Help: "only this definition of a bridged tool (default: the granted one)"}), Min: 1, Max: 1, Store: storeWrite, Signs: true, Run: cmdApprovalGrant},
		{Path: "approval deny", Args: "TOOL", Short: "refuse calls of a tool in this workspace, in every mode", Example: `tai approval deny shell_run --command "git push"`, Flags: preset, Min: 1, Max: 1, Store: storeWrite, Signs: true, Run: cmdApprovalDeny},
		{Path: "approval list", Short: "the presets of this workspace, and whether they count", Example: "tai approval list --json",
			Flags: []flagSpec{{Name: "confirm", Help: "show the policy files that somebody else wrote, and ask whether they count"}}, Store: storeThere, Run: cmdApprovalList},
		{Path: "approval revoke", Args: "ID", Short: "take a preset back; asks where that lifts a deny", Example: "tai approval revoke p-3f2a", Min: 1, Max: 1, Store: storeWrite, Signs: true, Run: cmdApprovalRevoke},
		{Path: "approval digest", Args: "TOOL [JSON|-|k=v…]", Short: "the payload digest of one exact call", Example: `tai approval digest shell_run '{"command":"make test"}'`, Min: 1, Max: -1, Store: storeRead, Run: cmdApprovalDigest},
	}
}

// approvalArgs reads TOOL and the flags into a preset.
func approvalArgs(c *invocation, effect string) (preset, error) {
	ps := preset{Effect: effect, Tool: c.args[0], Command: strings.Join(strings.Fields(c.flag("command")), " "), Pin: c.flag("pin")}
	if ps.Tool == "" {
		return ps, usageError("tai tools list shows the names", "the tool has no name")
	}
	if c.given("command") && ps.Command == "" {
		return ps, usageError("", "--command names no program")
	}
	if ps.Pin != "" && !isSHA256(ps.Pin) {
		return ps, usageError("", "--pin takes a SHA-256, 64 lower-case hex digits")
	}
	for _, kv := range c.flags["arg"] {
		k, v, ok := strings.Cut(kv, "=")
		if _, twice := ps.Arguments[k]; !ok || k == "" || twice {
			return ps, usageError("--arg path='docs/*', each name once", "argument %s cannot be used", quoteClip(kv))
		}
		ps.Arguments = withPair(ps.Arguments, k, v)
	}
	return ps, nil
}

func cmdApprovalGrant(ctx context.Context, c *invocation) error {
	ps, err := approvalArgs(c, "allow")
	if err != nil {
		return err
	}
	list, err := c.grantPresets(ctx, ps)
	if err != nil {
		return err
	}
	f, err := c.approvals()
	if err != nil {
		return approvalsFault(err)
	}
	v, err := c.writableVault(ctx)
	if err != nil {
		return err
	}
	req, err := grantRequest(ctx, v, list, f)
	if err != nil {
		return err
	}
	var added []preset
	err = c.bridge.decided(ctx, req, deed{Kind: "approval-grant", Subject: ps.Tool, Data: req.Args}, func() (string, error) {
		return "", approvalsFault(changeApprovals(ctx, v, c.policyFolder(), f.Hash, true, addPresets(c.out.Now(), list, &added)))
	})
	if err != nil {
		return err
	}
	return c.printPresets(added, "granted")
}

// grantPresets gives the presets that a grant stands for: its own, or one for each bridged tool that it names, bound to its definition.
func (c *invocation) grantPresets(ctx context.Context, ps preset) ([]preset, error) {
	reach, _, glob := strings.Cut(ps.Tool, "*")
	if glob && strings.HasPrefix(bridgedSubjectPrefix, reach) {
		return nil, usageError("name the tools more closely; --auto runs everything in this root", "%s would cover every bridged tool, in whatever definition", quoteClip(ps.Tool))
	}
	if !glob {
		name, err := c.digestName(ctx, ps.Tool)
		if err != nil {
			return nil, err
		}
		ps.Tool = name
	}
	if !strings.HasPrefix(ps.Tool, bridgedSubjectPrefix) {
		_, err := c.checkNative(ps)
		return []preset{ps}, err
	}
	if ps.Command != "" {
		return nil, usageError("", "--command is for tools that run a command line, %s is none", quoteClip(ps.Tool))
	}
	v, err := c.vault(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := v.serverList(ctx)
	if err != nil {
		return nil, err
	}
	var out []preset
	for _, row := range rows {
		pins, err := v.pins(ctx, row.Name)
		if err != nil {
			return nil, err
		}
		for tool, pin := range pins {
			one := ps
			if one.Tool = bridgedSubject(row.Name, tool); pin != "" && globMatch(ps.Tool, one.Tool) && (ps.Pin == "" || ps.Pin == pin) {
				one.Pin = pin
				out = append(out, one)
			}
		}
	}
	if len(out) == 0 {
		return nil, &cliError{Exit: exitRefused, Rule: "pin", Message: fmt.Sprintf("no granted tool is %s with that definition", quoteClip(ps.Tool)), Hint: "tai mcp tools shows the tools and their state, tai mcp grant approves one"}
	}
	sortBy(out, func(a, b preset) int { return strings.Compare(a.Tool, b.Tool) })
	return out, nil
}

// checkNative refuses a preset that no call could ever fit. misfits are the tools of its name that have not what it asks for.
func (c *invocation) checkNative(ps preset) (misfits []string, err error) {
	tools, err := c.nativeTools()
	if err != nil {
		return nil, err
	}
	if ps.Pin != "" {
		return nil, usageError("", "--pin is for bridged tools, %s is none", quoteClip(ps.Tool))
	}
	found := false
	for _, t := range tools {
		if !globMatch(ps.Tool, t.Name) {
			continue
		}
		schema, err := chatFields(t.Schema)
		if err != nil {
			return nil, err
		}
		has, err := chatFields(schema["properties"])
		if err != nil {
			return nil, err
		}
		fits := ps.Command == "" || has["command"] != nil
		for k := range ps.Arguments {
			of, err := chatFields(has[k])
			fits = fits && err == nil && string(of["type"]) == `"string"`
		}
		if found = found || fits; !fits {
			misfits = append(misfits, t.Name)
		}
	}
	if !found {
		return nil, usageError("tai tools list --json shows the tools with their arguments", "no native tool %s takes these arguments as text", quoteClip(ps.Tool))
	}
	return misfits, nil
}

// grantRequest is the question of a grant. A file that somebody else wrote is shown with it, since it would come to count.
func grantRequest(ctx context.Context, v *vault, list []preset, f policyFile) (policyRequest, error) {
	req := policyRequest{Tool: "approval_grant", Title: "let these calls run unasked in this workspace from now on?", Destructive: true, Always: true, Person: true}
	for _, ps := range list {
		req.Lines = append(req.Lines, consentLine{Label: "calls of", Text: ps.scope(), Exact: true})
		if ps.Command == "" && len(ps.Arguments) == 0 && slices.Contains([]string{"shell_run", "proc_start"}, ps.Tool) {
			req.Danger = append(req.Danger, "every command line, whatever it does")
		}
	}
	if !f.Known {
		lines, err := policyFileLines(ctx, v, f)
		if err != nil {
			return req, err
		}
		req.Lines = append(req.Lines, lines...)
		req.Danger = append(req.Danger, "somebody else wrote "+approvalsName+", and what it allows would count too")
	}
	args, err := json.Marshal(map[string]any{"presets": list, "file": f.Hash})
	if err != nil {
		return req, err
	}
	req.Args = args
	req.Digest, err = payloadDigest(req.Tool, args)
	return req, err
}

func cmdApprovalDeny(ctx context.Context, c *invocation) error {
	ps, err := approvalArgs(c, "deny")
	if err != nil {
		return err
	}
	if !strings.Contains(ps.Tool, "*") {
		if ps.Tool, err = c.digestName(ctx, ps.Tool); err != nil {
			return err
		}
	}
	if reach, _, _ := strings.Cut(ps.Tool, "*"); !strings.HasPrefix(bridgedSubjectPrefix, reach) && !strings.HasPrefix(reach, bridgedSubjectPrefix) {
		misfits, err := c.checkNative(ps)
		if err != nil { // somebody would rely on a deny that no call can fit
			return err
		}
		if len(misfits) > 0 {
			fmt.Fprintf(c.stderr, "note: not of %s, which %s no such text\n", strings.Join(misfits, ", "), map[bool]string{true: "takes", false: "take"}[len(misfits) == 1])
		}
	}
	var added []preset
	if err := c.narrow(ctx, deed{Kind: "approval-deny", Subject: ps.Tool}, addPresets(c.out.Now(), []preset{ps}, &added)); err != nil {
		return err
	}
	return c.printPresets(added, "denied")
}

// narrow edits the file without a question: the words typed are the permission.
func (c *invocation) narrow(ctx context.Context, d deed, edit func([]preset) ([]preset, error)) error {
	v, err := c.writableVault(ctx)
	if err != nil {
		return err
	}
	return c.audit.perform(d, func() (string, error) { return "", nil }, func() (string, error) {
		return "", approvalsFault(changeApprovals(ctx, v, c.policyFolder(), "", false, edit))
	})
}

func cmdApprovalRevoke(ctx context.Context, c *invocation) error {
	f, err := c.approvals()
	if err != nil {
		return approvalsFault(err)
	}
	i := slices.IndexFunc(f.Presets, func(ps preset) bool { return ps.ID == c.args[0] })
	if i < 0 {
		return &cliError{Exit: exitFailed, Message: "no such preset: " + quoteClip(c.args[0]), Hint: "tai approval list shows the ids", err: errNotFound}
	}
	gone := f.Presets[i]
	edit := func(have []preset) ([]preset, error) {
		at := slices.IndexFunc(have, func(ps preset) bool { return ps.ID == gone.ID && ps.same(gone) })
		if at < 0 {
			return nil, newError("the preset was changed or removed meanwhile")
		}
		return slices.Delete(have, at, at+1), nil
	}
	if gone.Effect != "deny" {
		err = c.narrow(ctx, deed{Kind: "approval-revoke", Subject: gone.ID}, edit)
	} else {
		err = c.liftDeny(ctx, gone, edit)
	}
	if err != nil {
		return err
	}
	return c.done(map[string]string{"id": gone.ID, "state": "revoked"}, "%s: revoked", visibleLine(gone.ID))
}

// liftDeny asks before a deny goes.
func (c *invocation) liftDeny(ctx context.Context, gone preset, edit func([]preset) ([]preset, error)) error {
	args, err := json.Marshal(map[string]any{"preset": gone})
	if err != nil {
		return err
	}
	req := policyRequest{Tool: "approval_revoke", Args: args, Title: "lift this deny in this workspace?", Destructive: true, Always: true, Person: true,
		Lines: []consentLine{{Label: "no longer refused: calls of", Text: gone.scope(), Exact: true}}}
	v, err := c.writableVault(ctx)
	if err != nil {
		return err
	}
	return c.bridge.decided(ctx, req, deed{Kind: "approval-revoke", Subject: gone.ID, Data: args}, func() (string, error) {
		return "", approvalsFault(changeApprovals(ctx, v, c.policyFolder(), "", false, edit))
	})
}

// presetJSON is one preset as tai approval shows it.
type presetJSON struct {
	preset
	Counts bool `json:"counts"`
}

func cmdApprovalList(ctx context.Context, c *invocation) error {
	read := func() (files []policyFile, err error) {
		approvals, err := c.approvals()
		config, err2 := readConfig(c.policyFolder(), c.trustedFile)
		return []policyFile{approvals, config}, approvalsFault(joinErrors(err, err2))
	}
	files, err := read()
	if err != nil {
		return err
	}
	if c.given("confirm") {
		if err := c.confirmFiles(ctx, files, deed{Kind: "approval-confirm"}); err != nil {
			return err
		}
		if files, err = read(); err != nil {
			return err
		}
	}
	doc := struct {
		Path    string       `json:"path"`
		Counts  bool         `json:"counts"`
		Config  bool         `json:"config_counts"`
		Presets []presetJSON `json:"presets"`
	}{files[0].Path, files[0].Known, files[1].Known, []presetJSON{}}
	for _, ps := range files[0].Presets {
		doc.Presets = append(doc.Presets, presetJSON{ps, ps.Effect == "deny" || files[0].Known})
	}
	if c.json {
		return writeJSON(c.stdout, doc)
	}
	for _, ps := range doc.Presets {
		fmt.Fprintf(c.stdout, "%s  %s  %s", visibleLine(ps.ID), ps.Effect, visibleLine(c.redact(ps.scope())))
		if ps.Created != "" {
			fmt.Fprintf(c.stdout, "  since %s", visibleLine(ps.Created))
		}
		if !ps.Counts {
			fmt.Fprint(c.stdout, "  does not count")
		}
		fmt.Fprintln(c.stdout)
	}
	switch {
	case !files[0].Known || !files[1].Known:
		fmt.Fprintln(c.stderr, "tai: what these files widen does not count, nobody here confirmed them; tai approval list --confirm shows them and asks")
	case len(doc.Presets) == 0:
		fmt.Fprintln(c.stdout, "no presets in this workspace; tai approval grant and deny make them")
	}
	return nil
}

// confirmFiles shows those files that do not count yet, asks, and makes them count. d is the deed for the run log, but for what it is about.
func (c *invocation) confirmFiles(ctx context.Context, files []policyFile, d deed) error {
	files = without(files, func(f policyFile) bool { return f.Known })
	if len(files) == 0 {
		return nil
	}
	v, err := c.writableVault(ctx)
	if err != nil {
		return err
	}
	req, err := confirmRequest(ctx, v, files)
	if err != nil {
		return err
	}
	d.Subject, d.Data = c.policyFolder(), req.Args
	return c.bridge.decided(ctx, req, d, func() (string, error) {
		var err error
		for _, f := range files {
			err = joinErrors(err, confirmFile(ctx, v, f))
		}
		return "", err
	})
}

// printPresets tells of presets that were made.
func (c *invocation) printPresets(list []preset, deed string) error {
	if c.json {
		out := []presetJSON{}
		for _, ps := range list {
			out = append(out, presetJSON{ps, true})
		}
		return writeJSON(c.stdout, map[string]any{"presets": out})
	}
	for _, ps := range list {
		fmt.Fprintf(c.stdout, "%s: %s %s\n", visibleLine(ps.ID), deed, visibleLine(c.redact(ps.scope())))
	}
	return nil
}

func cmdApprovalDigest(ctx context.Context, c *invocation) error {
	name, digest, err := c.callDigest(ctx)
	if err != nil {
		return err
	}
	flag := "--approve-scoped " + quoteWord(name+":"+digest)
	return c.done(map[string]string{"tool": name, "digest": digest, "flag": flag}, "%s\n%s", digest, flag)
}

// approvalsFault gives a fault of the presets' file the way out.
func approvalsFault(err error) error { return policyFault(approvalsName, err) }

// policyFault gives a fault of a policy file the way out.
func policyFault(name string, err error) error {
	if errors.Is(err, errPolicyChanged) {
		return &cliError{Exit: exitRefused, Rule: "consent", Message: name + " was changed meanwhile: " + err.Error(), Hint: "run the command again", err: err}
	}
	return err
}
