// This file lets a person widen what a workspace allows: a preset saved at a question, and policy files that somebody else wrote and a person
// has seen. It decides no call.
package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

const approvalsTries = 3 // times a preset is saved anew because the file was changed underway

// policyFolder is where the workspace's policy files are.
//
//go:noinline for size: it is called in many places
func (a *app) policyFolder() string { return filepath.Join(a.root, ".tai") }

// approvals reads the workspace's approvals.json.
func (a *app) approvals() (policyFile, error) { return readApprovals(a.policyFolder(), a.trustedFile) }

// savePreset stores what a person answered with "always in this workspace". Where the file holds allows that nobody confirmed, saving would
// make them count too, so they are shown and asked about first.
func (a *app) savePreset(ctx context.Context, ps preset) (preset, error) {
	v, err := a.writableVault(ctx)
	if err != nil {
		return preset{}, err
	}
	for try := 1; ; try++ {
		f, err := a.approvals()
		if err != nil {
			return preset{}, err
		}
		if !f.Known {
			if err := a.confirmAtConsole(ctx, v, f); err != nil {
				return preset{}, err
			}
		}
		var added []preset
		err = changeApprovals(ctx, v, a.policyFolder(), f.Hash, true, addPresets(a.out.Now(), []preset{ps}, &added))
		if err == nil {
			return added[0], nil
		}
		if !errors.Is(err, errPolicyChanged) || try == approvalsTries {
			return preset{}, err
		}
	}
}

// confirmAtConsole asks, outside the policy, whose own question is still open, about a file that somebody else wrote.
func (a *app) confirmAtConsole(ctx context.Context, v *vault, f policyFile) error {
	if a.console == nil {
		return errPolicyChanged
	}
	lines, err := policyFileLines(ctx, v, f)
	if err != nil {
		return err
	}
	c := consent{Title: "let this policy file count in this workspace?", Danger: []string{"saving the preset would make what somebody else wrote there count too"}, Lines: lines, Digest: f.Hash, Choices: []consentChoice{{choiceYes, "yes, what it allows counts from now on"}, {choiceNo, "no, and save nothing"}}}
	for i := range c.Lines {
		c.Lines[i].Text = a.redact(c.Lines[i].Text)
	}
	answer, err := a.console.confirm(ctx, c)
	if err != nil {
		return err
	}
	if answer.Key != choiceYes {
		return errPolicyChanged
	}
	return nil
}

// policyFileLines shows a policy file whole, and how it differs from the state that counted last.
func policyFileLines(ctx context.Context, v *vault, f policyFile) ([]consentLine, error) {
	last, err := v.trustedText(ctx, f.Path)
	if err != nil {
		return nil, err
	}
	lines := []consentLine{{Label: "the file", Text: f.Path, Exact: true, Quoted: true}, {Label: "as it is now", Text: string(f.Text), Exact: true}}
	if last != "" && last != string(f.Text) {
		lines = append(lines, consentLine{Label: "changed since it counted last (- before, + now)", Text: diffText(last, string(f.Text)), Exact: true})
	}
	return lines, nil
}

// confirmRequest is the question whether files count. Its digest binds the answer to their content.
func confirmRequest(ctx context.Context, v *vault, files []policyFile) (policyRequest, error) {
	req := policyRequest{Tool: "approval_confirm", Title: "let what these files allow count in this workspace?", Destructive: true, Always: true, Person: true}
	var all textBuilder
	for _, f := range files {
		lines, err := policyFileLines(ctx, v, f)
		if err != nil {
			return req, err
		}
		req.Lines = append(req.Lines, lines...)
		fmt.Fprintf(&all, "%s\n", f.Hash)
	}
	args := append(appendJSONString([]byte(`{"files":`), all.String()), '}')
	digest, err := payloadDigest(req.Tool, args)
	req.Args, req.Digest = args, digest
	return req, err
}
