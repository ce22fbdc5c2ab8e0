// This file says what would happen to a call of a bridged tool: pin, trust, lists and policy as in the call itself, by the vault alone. Nothing is
// connected or sent.
package main

import (
	"context"
	"errors"
	"strings"
)

// foresee judges a call by its bridged name, or by mcp:SERVER/TOOL (part of toolSource). known is false where no server has such a tool.
func (b *mcpBridge) foresee(ctx context.Context, c toolCall) (f policyForecast, known bool, err error) {
	var ref toolRef
	if ref.Server, ref.Tool, known = subjectTool(c.Name); !known {
		back, err := b.names(ctx)
		if err != nil {
			return f, false, err
		}
		if ref, known = back[c.Name]; !known {
			return f, false, nil
		}
	}
	f, err = b.foreseeTool(ctx, ref, c)
	return f, true, err
}

// foreseeTool judges a call of one tool of a stored server.
func (b *mcpBridge) foreseeTool(ctx context.Context, ref toolRef, c toolCall) (policyForecast, error) {
	args, err := objectArguments(c.Args)
	if err != nil {
		return policyForecast{}, errorf("call %s/%s: %w", visibleLine(ref.Server), visibleLine(ref.Tool), err)
	}
	subject := bridgedSubject(ref.Server, ref.Tool)
	digest, err := payloadDigest(subject, args)
	if err != nil {
		return policyForecast{}, errorf("call %s/%s: %w", visibleLine(ref.Server), visibleLine(ref.Tool), err)
	}
	_, pinned, err := b.storedTool(ctx, ref, c.Profile)
	switch {
	case errors.Is(err, errServerUnknown):
		return b.cfg.Policy.refuse(subject, digest, ruleUnknown, err.Error(), "tai mcp list shows the servers"), nil
	case errors.Is(err, errNotEnabled):
		return b.cfg.Policy.refuse(subject, digest, "enablement", err.Error(), "tai mcp enable "+quoteWord(ref.Server)), nil
	case errors.Is(err, errTrustFile):
		return b.cfg.Policy.refuse(subject, digest, ruleTrustFile, err.Error(), "mend or remove the file"), nil
	case err != nil:
		return policyForecast{}, err
	}
	if pinned.State == stateWithheld && pinned.Reason == "" {
		pinned.Reason = "it was never granted, or is not there"
	}
	if r := refuseTool(ref, pinned); r.Rule != "" {
		return b.cfg.Policy.refuse(subject, digest, r.Rule, strings.TrimPrefix(r.Text, "refused ("+r.Rule+"): "), r.Hint), nil
	}
	return b.cfg.Policy.foresee(bridgedRequest(ref, c, args, digest, pinned.Hash)), nil
}
