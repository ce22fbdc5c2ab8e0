// This file holds the commands about the vault's seal: tai vault status, seal, unseal, rekey.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func sealCommands() []command {
	return []command{
		{Path: "vault status", Short: "where the vault is, and how it is sealed", Example: "tai vault status --json", Store: storeRead, Run: cmdVaultStatus},
		{Path: "vault seal", Short: "seal by a key file or a passphrase, or change it", Example: "tai vault seal --passphrase",
			Long: "A vault is sealed by a key file from its first write: a file in tai's config\nfolder, apart from the data, so that a copy of the data alone opens nothing.\n" +
				"With --passphrase tai asks for one (twice); where no person sits it comes from\nTAI_PASSPHRASE or the file that TAI_PASSPHRASE_FILE names. A vault that has a\n" +
				"passphrase gets a new one: from the prompt, TAI_NEW_PASSPHRASE or\nTAI_NEW_PASSPHRASE_FILE. Without a flag only a vault that is not sealed is\nsealed, by a key file. Whoever loses the key file or the passphrase has lost the\nsealed values: there is no other way in.\n" +
				"--discard is the way on when key file or passphrase are lost for good, or single\nvalues are damaged: after a consent that names all of it, what does not open is\ngiven up, all else is kept, and a vault without a key gets a new key file.",
			Flags: []flagSpec{{Name: "passphrase", Help: "seal by a passphrase, or change it"}, {Name: "key-file", Help: "seal by a key file, also in the place of a passphrase"}, {Name: "discard", Help: "give up the values that nothing opens"}},
			Store: storeWrite, Run: cmdVaultSeal},
		{Path: "vault unseal", Short: "store every secret in the clear, until tai vault seal", Example: "tai vault unseal", Store: storeThere, Redacts: true, Run: cmdVaultUnseal},
		{Path: "vault rekey", Short: "seal every value with a new key", Example: "tai vault rekey",
			Long:  "Every sealed value is encrypted anew in one step, and what the file held before\nis wiped. A passphrase stays as it is; a key file is replaced by a new one, and\nthe old one stays, because older copies of the vault need it.",
			Store: storeThere, Redacts: true, Run: cmdVaultRekey},
	}
}

// vaultStatus is the document of tai vault status.
type vaultStatus struct {
	Path         string        `json:"path"`
	Exists       bool          `json:"exists"`
	Size         int64         `json:"size"`
	Schema       int           `json:"schema"`
	Seal         string        `json:"seal"` // key-file, passphrase, off; none before the first write of this tai
	KeyFile      string        `json:"key_file,omitempty"`
	KeyFileThere *bool         `json:"key_file_there,omitempty"`
	Iterations   int           `json:"iterations,omitempty"`
	Values       []sealedCount `json:"values"`
	OffUnknown   bool          `json:"off_unknown,omitempty"` // the seal is off, and nothing on this machine says that a person did that
	WipePending  bool          `json:"wipe_pending"`
}

// sealedCount says how many of a table's values are sealed.
type sealedCount struct {
	Table  string `json:"table"`
	Sealed int    `json:"sealed"`
	Of     int    `json:"of"`
}

func cmdVaultStatus(ctx context.Context, c *invocation) error {
	doc := vaultStatus{Seal: "none", Values: []sealedCount{}}
	path, there, err := vaultPath(c.home)
	if err != nil {
		return err
	}
	doc.Path, doc.Exists = path, there
	if there {
		if err := c.fillStatus(ctx, &doc); err != nil {
			return err
		}
	}
	if c.json {
		return writeJSON(c.stdout, doc)
	}
	if !there {
		_, err := fmt.Fprintf(c.stdout, "%s: there is no vault yet; the first thing that is stored makes it\n", visibleLine(path))
		return err
	}
	_, err = fmt.Fprint(c.stdout, doc.text())
	return err
}

// fillStatus reads a vault that is there. It needs no key.
func (c *invocation) fillStatus(ctx context.Context, doc *vaultStatus) error {
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	for _, name := range []string{v.path, v.path + "-wal"} {
		if info, err := os.Stat(name); err == nil {
			doc.Size += info.Size()
		} else if name == v.path {
			return errorf("vault status: %w", err)
		}
	}
	info, err := v.sealStatus(ctx)
	if err != nil {
		return err
	}
	doc.Schema, doc.Iterations, doc.WipePending, doc.OffUnknown = info.Schema, info.Rounds, info.Unwiped, info.OffUnknown
	if info.Kind != "" {
		doc.Seal = info.Kind
	}
	if info.KeyFile != "" {
		doc.KeyFile, doc.KeyFileThere = info.KeyFile, &info.KeyFileThere
	}
	for table, n := range info.Values {
		doc.Values = append(doc.Values, sealedCount{table, n[0], n[1]})
	}
	sortBy(doc.Values, func(a, b sealedCount) int { return strings.Compare(a.Table, b.Table) })
	return nil
}

func (s vaultStatus) text() string {
	var b textBuilder
	fmt.Fprintf(&b, "vault   %s\nsize    %d bytes, schema %d\n", visibleLine(s.Path), s.Size, s.Schema)
	switch s.Seal {
	case sealByKeyFile:
		b.WriteString("sealed  by a key file\n")
		switch {
		case s.KeyFile == "":
			b.WriteString("key     no config folder is known: set HOME, or XDG_CONFIG_HOME (APPDATA on Windows)\n")
		case *s.KeyFileThere:
			fmt.Fprintf(&b, "key     %s\n", visibleLine(s.KeyFile))
		default:
			fmt.Fprintf(&b, "key     MISSING: %s; put it back from a backup. If there is none, tai vault seal --discard\n        gives the sealed values up and keeps all else\n", visibleLine(s.KeyFile))
		}
	case sealByPassphrase:
		fmt.Fprintf(&b, "sealed  by a passphrase (PBKDF2-SHA256, %d rounds)\n", s.Iterations)
	case sealOff:
		if s.OffUnknown {
			b.WriteString("sealed  NO, and nothing on this machine says that tai vault unseal did that:\n        tai vault seal seals it, tai vault unseal says that it is meant\n")
			break
		}
		b.WriteString("sealed  no: tai vault unseal opened it, and tai vault seal seals it\n")
	default:
		b.WriteString("sealed  not yet: the next command that writes seals it\n")
	}
	for _, n := range s.Values {
		fmt.Fprintf(&b, "values  %d of %d sealed in %s\n", n.Sealed, n.Of, n.Table)
	}
	if s.WipePending {
		b.WriteString("wipe    old bytes may still be in the file; the next command that writes wipes them\n")
	}
	return b.String()
}

func cmdVaultSeal(ctx context.Context, c *invocation) error {
	if len(slices.DeleteFunc([]string{"passphrase", "key-file", "discard"}, func(f string) bool { return !c.given(f) })) > 1 {
		return usageError("", "--passphrase, --key-file and --discard exclude each other")
	}
	if c.given("discard") {
		return cmdVaultDiscard(ctx, c)
	}
	if err := c.unlock(ctx); err != nil {
		return err
	}
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	info, err := v.sealStatus(ctx)
	if err != nil {
		return err
	}
	if !c.given("passphrase") && !c.given("key-file") && info.Kind == sealByPassphrase {
		return c.sealDone(resealed{From: sealState{Kind: info.Kind}, To: sealState{Kind: info.Kind}})
	}
	to, change := sealByKeyFile, v.sealWithKeyFile
	if c.given("passphrase") {
		p, err := c.newPassphrase(ctx, info.Kind != sealByPassphrase)
		if err != nil {
			return err
		}
		to, change = sealByPassphrase, func(ctx context.Context) (resealed, error) { return v.sealWithPassphrase(ctx, p) }
	}
	digest, err := deedDigest("vault_seal", map[string]string{"by": to})
	if err != nil {
		return err
	}
	req := policyRequest{Tool: "vault_seal", Digest: digest, Title: "seal the vault by a " + to + "?", Destructive: true, Person: true}
	return c.sealDeed(ctx, req, deed{Kind: "vault-seal", Subject: to}, change)
}

// vaultThere gives the vault, and an error where none is: nothing is to be made just to be unsealed.
func (c *invocation) vaultThere(ctx context.Context) (*vault, error) {
	if path, there, err := vaultPath(c.home); err != nil || !there {
		return nil, cmp.Or(err, errorf("there is no vault yet at %s", visibleLine(path)))
	}
	return c.vault(ctx)
}

func cmdVaultUnseal(ctx context.Context, c *invocation) error {
	v, err := c.vaultThere(ctx)
	if err != nil {
		return err
	}
	info, err := v.sealStatus(ctx)
	if err != nil {
		return err
	}
	if info.Kind == sealOff && !info.OffUnknown {
		return c.sealDone(resealed{From: sealState{Kind: sealOff}, To: sealState{Kind: sealOff}})
	}
	digest, err := deedDigest("vault_unseal", map[string]string{})
	if err != nil {
		return err
	}
	lines := []consentLine{{Label: "vault", Text: v.path, Exact: true}}
	for _, c := range slices.Sorted(maps.Keys(info.Values)) {
		lines = append(lines, consentLine{Label: "in the clear", Text: fmt.Sprintf("%s of %s", plural(info.Values[c][1], "value"), c), Exact: true})
	}
	req := policyRequest{Tool: "vault_unseal", Digest: digest, Title: "store every secret of the vault in the clear?", Destructive: true, Always: true, Yes: "--yes", Lines: lines,
		Danger: []string{"whoever reads the file, or a copy of it, then has every secret in it"}}
	return c.sealDeed(ctx, req, deed{Kind: "vault-unseal", Subject: sealOff}, v.unseal)
}

func cmdVaultRekey(ctx context.Context, c *invocation) error {
	v, err := c.vaultThere(ctx)
	if err != nil {
		return err
	}
	digest, err := deedDigest("vault_rekey", map[string]string{})
	if err != nil {
		return err
	}
	req := policyRequest{Tool: "vault_rekey", Digest: digest, Title: "seal every value of the vault with a new key?", Destructive: true, Person: true}
	return c.sealDeed(ctx, req, deed{Kind: "vault-rekey", Subject: "new key"}, v.rekey)
}

// sealDeed changes the seal if the policy lets it, with the run log around it, and tells what came of it.
func (c *invocation) sealDeed(ctx context.Context, req policyRequest, d deed, change func(context.Context) (resealed, error)) error {
	var r resealed
	err := c.bridge.decided(ctx, req, d, func() (outcome string, err error) {
		r, err = change(ctx)
		return "", err
	})
	if errors.Is(err, errNotSealed) {
		return &cliError{Exit: exitFailed, Message: err.Error(), err: err}
	}
	if err != nil {
		return err
	}
	return c.sealDone(r)
}

// sealDone tells how the vault is sealed now, and what is left to do about older copies.
func (c *invocation) sealDone(r resealed) error {
	if r.Unwiped != nil {
		fmt.Fprintln(c.stderr, "tai: "+visible(r.Unwiped.Error()))
	}
	doc := struct {
		Seal        string `json:"seal"`
		Changed     bool   `json:"changed"`
		KeyFile     string `json:"key_file,omitempty"`
		OldKeyFile  string `json:"old_key_file,omitempty"`
		WipePending bool   `json:"wipe_pending"`
	}{Seal: r.To.Kind, Changed: r.Changed, OldKeyFile: r.OldKey, WipePending: r.Unwiped != nil}
	if r.To.Kind == sealByKeyFile && r.Changed {
		doc.KeyFile = keyFilePath(c.keys().Dir, r.To.ID)
	}
	if c.json {
		return writeJSON(c.stdout, doc)
	}
	var b textBuilder
	switch {
	case !r.Changed && r.To.Kind == sealOff:
		b.WriteString("the vault is not sealed; nothing was changed\n")
	case !r.Changed:
		other := "tai vault seal --passphrase takes a passphrase instead, tai vault rekey a new key"
		if r.To.Kind == sealByPassphrase {
			other = "tai vault seal --passphrase changes it, --key-file goes back to a key file"
		}
		fmt.Fprintf(&b, "the vault is sealed by a %s already; nothing was changed (%s)\n", strings.ReplaceAll(r.To.Kind, "-", " "), other)
	case r.To.Kind == sealOff:
		b.WriteString("the vault is unsealed: its secrets stand in the clear until tai vault seal\n")
	case r.To.Kind == sealByPassphrase && r.From.Key == r.To.Key:
		b.WriteString("the passphrase is changed. Copies of the vault from before open with the old one\n")
	case r.To.Kind == sealByPassphrase:
		b.WriteString("the vault is sealed with a new key, by the passphrase. Without it the sealed values are lost\n")
	default:
		fmt.Fprintf(&b, "the vault is sealed with a new key, by %s. Keep a copy of it elsewhere: without it the sealed values are lost\n", visibleLine(doc.KeyFile))
	}
	if r.OldKey != "" {
		fmt.Fprintf(&b, "older copies of the vault still need %s; once there are none: rm %s\n", visibleLine(filepath.Base(r.OldKey)), quoteWord(r.OldKey))
	}
	_, err := fmt.Fprint(c.stdout, b.String())
	return err
}
