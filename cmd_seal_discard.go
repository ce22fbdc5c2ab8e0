// This file holds tai vault seal --discard: what the person is shown before sealed values are given up, and what is told after.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// cmdVaultDiscard gives up what nothing opens, after a consent that names all of it. The run log begins after the consent: before, there may
// be no key to sign its head with.
func cmdVaultDiscard(ctx context.Context, c *invocation) error {
	c.discarding.Store(true)
	begun := false
	defer func() {
		if !begun {
			c.discarding.Store(false)
		}
	}()
	v, err := c.vaultThere(ctx)
	if err != nil {
		return err
	}
	lost, why, err := v.lost(ctx)
	if errors.Is(err, errWrongPassphrase) {
		return &cliError{Exit: exitFailed, Message: err.Error(), Hint: "if it is forgotten, give none: without TAI_PASSPHRASE and TAI_PASSPHRASE_FILE, and with an empty line at the prompt", err: err}
	}
	if err != nil {
		return err
	}
	if why == nil && lost.none() {
		opened := v.seals.get()
		return c.discardDone(lost, resealed{From: opened.state, To: opened.state})
	}
	digest, err := deedDigest("vault_discard", lost.named())
	if err != nil {
		return err
	}
	req := policyRequest{Tool: "vault_discard", Digest: digest, Title: "give up what nothing opens any more?", Destructive: true, Always: true, Yes: "--yes", Lines: discardLines(v, lost, why),
		Danger: []string{"what is given up cannot be had back, but from a copy of the vault and what opens it"}}
	answer, err := c.policy.approve(ctx, req)
	if err != nil {
		return err
	}
	if !answer.Allow {
		return &refusedError{Rule: answer.Rule, Reason: answer.Reason, Hint: answer.Hint}
	}
	data, err := json.Marshal(lost.named())
	if err != nil {
		return err
	}
	begun = true
	var r resealed
	d := deed{Kind: "vault-discard", Subject: "sealed values", Data: data}
	err = c.audit.perform(d, func() (string, error) { return answer.Rule, nil }, func() (_ string, err error) {
		if lost, r, err = v.discard(ctx); err == nil {
			c.discarding.Store(false) // now there is a key
			c.known.changed()
		}
		return "", err
	})
	if err != nil {
		return err
	}
	return c.discardDone(lost, r)
}

// discardLines names all that is lost.
func discardLines(v *vault, l lostValues, why error) []consentLine {
	line := func(label, text string) consentLine { return consentLine{Label: label, Text: text, Exact: true} }
	lines := []consentLine{line("vault", v.path)}
	if why != nil {
		lines = append(lines, line("the seal", why.Error()))
	}
	for _, name := range l.named().Secrets {
		lines = append(lines, line("lost: secret", name))
	}
	for _, s := range l.Servers {
		lines = append(lines, line("lost: mcp server", s.Name+", its "+strings.Join(s.parts(), " and ")+"; it is switched off until it is added again with them"))
	}
	if l.AuditKey {
		text := "a new one signs the heads of " + plural(l.Heads, "run") + " that are on record"
		if l.Public != "" {
			text += ", where they fit the old one, " + l.Public + ". Heads that were exported before stay good by that one"
		}
		lines = append(lines, line("lost: signing key", text))
	}
	if why != nil {
		lines = append(lines, line("then", "the vault is sealed by a new key file"))
	}
	return append(lines, line("before", "tai vault backup FILE keeps a copy with the sealed values, in case the key turns up"))
}

// parts names what of the server is lost.
//
//go:noinline for size: it is called in many places
func (s lostServer) parts() (parts []string) {
	if s.Env {
		parts = append(parts, "variables")
	}
	if s.Headers {
		parts = append(parts, "headers")
	}
	return parts
}

// lostNames is what a discard takes, as the document names it.
type lostNames struct {
	Secrets    []string     `json:"secrets"` // those of a profile as profile/name
	Servers    []lostServer `json:"servers"`
	SigningKey bool         `json:"signing_key"`
}

//go:noinline for size: it is called in many places
func (l *lostValues) named() lostNames {
	n := lostNames{Secrets: []string{}, Servers: append([]lostServer{}, l.Servers...), SigningKey: l.AuditKey}
	for _, s := range l.Secrets {
		n.Secrets = append(n.Secrets, strings.TrimPrefix(s.Profile+"/"+s.Name, "/"))
	}
	return n
}

// discardDone tells what was given up, and what to do to have it again.
func (c *invocation) discardDone(l lostValues, r resealed) error {
	if r.Unwiped != nil {
		fmt.Fprintln(c.stderr, "tai: "+visible(r.Unwiped.Error()))
	}
	resealed := r.Changed && r.To.Kind == sealByKeyFile && r.To.ID != r.From.ID
	doc := struct {
		Seal        string    `json:"seal"`
		Changed     bool      `json:"changed"`
		KeyFile     string    `json:"key_file,omitempty"` // a new one
		Lost        lostNames `json:"lost"`
		WipePending bool      `json:"wipe_pending"`
	}{Seal: cmp.Or(r.To.Kind, sealOff), Changed: r.Changed, Lost: l.named(), WipePending: r.Unwiped != nil}
	if resealed {
		doc.KeyFile = keyFilePath(c.keys().Dir, r.To.ID)
	}
	if c.json {
		return writeJSON(c.stdout, doc)
	}
	var b textBuilder
	if !r.Changed {
		b.WriteString("every sealed value opens; nothing was changed\n")
	}
	for _, name := range doc.Lost.Secrets {
		fmt.Fprintf(&b, "secret %s: given up; tai secret set %s stores it again\n", visibleLine(name), quoteWord(name[strings.LastIndex(name, "/")+1:]))
	}
	for _, s := range l.Servers {
		fmt.Fprintf(&b, "mcp server %s: its %s are given up and it is switched off; add it again with them: tai mcp add SOURCE\n", visibleLine(s.Name), strings.Join(s.parts(), " and "))
	}
	if l.AuditKey {
		b.WriteString("the key that signs run logs is a new one\n")
	}
	if resealed {
		fmt.Fprintf(&b, "the vault is sealed with a new key, by %s. Keep a copy of it elsewhere: without it the sealed values are lost\n", visibleLine(doc.KeyFile))
	}
	_, err := fmt.Fprint(c.stdout, b.String())
	return err
}
