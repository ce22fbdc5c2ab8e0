// This file holds the commands about what the vault keeps: tai secret, tai profile, tai record.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unicode/utf8"
)

func vaultCommands() []command {
	limit := flagSpec{Name: "limit", Value: "N", Help: fmt.Sprintf("at most this many (default %d)", recordListLimit)}
	return []command{
		{Path: "secret set", Args: "NAME", Short: "store a secret, from a hidden prompt or --from", Example: "tai secret set GITHUB_TOKEN --from env:GITHUB_TOKEN",
			Long:  "The value never stands on the command line: without --from it is asked for, not\nshown. One line end at the end of a file or of standard input is cut. Names\nstart with a letter or _ and hold letters, digits, _, - and . (at most 128).",
			Flags: []flagSpec{{Name: "from", Value: "env:X|file:P|-", Help: "where the value comes from: a variable, a file that only you can read, standard input"}}, Min: 1, Max: -1, Store: storeWrite, Signs: true, Run: cmdSecretSet},
		{Path: "secret list", Short: "names, times and users of stored secrets, never a value", Example: "tai secret list",
			Long: "No command prints a value: it goes where ${NAME} stands in a server's entry, or\nto the model that names it, and nowhere else. While the vault asks for its\npassphrase, servers are not listed.", Store: storeRead, Run: cmdSecretList},
		{Path: "secret delete", Args: "NAME", Short: "drop a secret", Example: "tai secret delete GITHUB_TOKEN", Min: 1, Max: 1, Store: storeThere, Signs: true, Run: cmdSecretDelete},
		{Path: "profile list", Short: "profiles, the current one marked", Example: "tai profile list", Store: storeRead, Run: cmdProfileList},
		{Path: "profile use", Args: "NAME", Short: "make a profile the current one", Example: "tai profile use work", Min: 1, Max: 1, Store: storeWrite, Signs: true, Run: cmdProfileUse},
		{Path: "profile create", Args: "NAME", Short: "make a profile; no server is enabled in it", Example: "tai profile create work", Min: 1, Max: 1, Store: storeWrite, Signs: true, Run: cmdProfileCreate},
		{Path: "profile delete", Args: "NAME", Short: "delete a profile", Example: "tai profile delete work", Min: 1, Max: 1, Store: storeThere, Signs: true, Run: cmdProfileDelete},
		{Path: "record list", Short: "kept results with size and origin", Example: "tai record list --limit 10", Flags: []flagSpec{limit}, Store: storeRead, Run: cmdRecordList},
		{Path: "record show", Args: "ID", Short: "print a record", Example: "tai record show r-7k2m", Min: 1, Max: 1, Store: storeRead, Redacts: true, Run: cmdRecordShow},
		{Path: "record search", Args: "WORDS", Short: "find records by their words", Example: "tai record search invoice 2026", Flags: []flagSpec{limit}, Min: 1, Max: -1, Store: storeRead, Redacts: true, Run: cmdRecordSearch},
		{Path: "record delete", Args: "ID", Short: "delete a record", Example: "tai record delete r-7k2m", Min: 1, Max: 1, Store: storeThere, Signs: true, Run: cmdRecordDelete},
	}
}

func cmdSecretSet(ctx context.Context, c *invocation) error {
	name := c.args[0]
	if before, _, assigned := strings.Cut(name, "="); len(c.args) > 1 || assigned && validSecretName(before) == nil { // neither is repeated: it is the secret
		return usageError("tai secret set "+quoteWord(before)+" asks for it; and take it out of the shell's history", "a secret's value never stands on the command line, and nothing was stored")
	}
	if err := validSecretName(name); err != nil {
		return &cliError{Exit: exitUsage, Message: err.Error(), err: err}
	}
	state, err := c.storeSecret(ctx, name, c.flag("from"))
	if err != nil {
		return err
	}
	return c.done(map[string]string{"name": name, "state": state}, "%s: %s; refer to it as ${%s}", name, state, name)
}

// storeSecret takes a value from where from says, "" for a hidden prompt, and stores it. state is stored or replaced.
func (c *invocation) storeSecret(ctx context.Context, name, from string) (state string, err error) {
	value, err := c.secretValue(ctx, name, from)
	if err != nil {
		return "", err
	}
	warning, err := checkSecret(name, value)
	if err != nil {
		return "", err
	}
	err = c.recorded(ctx, deed{Kind: "secret-set", Subject: name}, func(v *vault) (err error) {
		state, err = c.keepSecret(ctx, v, name, value)
		return err
	})
	if err != nil {
		return "", err
	}
	if warning != "" {
		fmt.Fprintln(c.stderr, "warning: "+warning)
	}
	return state, nil
}

// keepSecret stores or replaces an ordinary secret, which is masked from then on. state is stored or replaced.
func (a *app) keepSecret(ctx context.Context, v *vault, name, value string) (state string, err error) {
	had, err := v.hasSecret(ctx, "", name)
	if err != nil {
		return "", err
	}
	if err := v.putSecret(ctx, "", name, secret(value), nil); err != nil {
		return "", err
	}
	a.known.changed()
	if had {
		return "replaced", nil
	}
	return "stored", nil
}

// checkSecret refuses a value that cannot be used, and warns of one that is stored but cannot be kept out of texts, or would spoil
// them. Spaces and line ends around a value do not count there.
func checkSecret(name, value string) (warning string, err error) {
	switch {
	case value == "":
		return "", usageError("", "secret %s would be empty", name)
	case len(value) > secretMax:
		return "", usageError("keep a document in a file and its path in the entry", "secret %s has %d bytes, at most %d are kept", name, len(value), secretMax)
	case strings.Contains(value, "\x00"):
		return "", usageError("a variable or a header cannot hold one; encode the value, in base64 for example", "secret %s holds a zero byte", name)
	case !utf8.ValidString(value):
		return "", usageError("encode it, in base64 for example", "secret %s is not UTF-8 text", name)
	}
	switch word := strings.TrimSpace(value); {
	case len(word) < redactMin:
		return fmt.Sprintf("%s has under %d bytes: it is stored and can be used, but it is NOT masked anywhere, since it would spoil ordinary text", name, redactMin), nil
	case ordinaryWord(word):
		return fmt.Sprintf("the value of %s is an ordinary word: every text that holds it will show [secret:%s] there", name, name), nil
	case len(word) < redactEncoded:
		return fmt.Sprintf("%s has under %d bytes: it is masked only as it stands, not in base64, hex, URLs or escapes", name, redactEncoded), nil
	}
	return "", nil
}

// secretValue reads a value from where from says, else from a hidden prompt. One line end at the end is taken off.
func (c *invocation) secretValue(ctx context.Context, name, from string) (string, error) {
	switch {
	case strings.HasPrefix(from, "env:"):
		value, ok := c.lookupEnv(from[4:])
		if !ok {
			return "", usageError("export it in this shell, or leave --from out to be asked for the value", "variable %s is not set", quoteClip(from[4:]))
		}
		return value, nil
	case strings.HasPrefix(from, "file:"):
		return secretFile(from[5:])
	case from == "-":
		b, err := readBounded(ctx, c.stdin, secretMax+2, "standard input")
		return cutLineEnd(string(b)), err
	case from != "":
		return "", usageError("--from env:NAME, --from file:PATH or --from -", "cannot take a secret from %s", quoteClip(from))
	case !c.person:
		return "", &cliError{Exit: exitRefused, Rule: "nobody to ask", Message: "the value of " + name + " is asked for at a hidden prompt, and no terminal is here", Hint: "--from env:NAME, --from file:PATH or --from - for standard input"}
	}
	in, ok := c.stdin.(*os.File)
	if !ok {
		return "", newError("standard input is no terminal")
	}
	return readHidden(ctx, in, c.stderr, "value of "+name+" (not shown): ")
}

// secretFile reads a value from a file that nobody else can read.
func secretFile(path string) (string, error) {
	b, err := readPrivateFile(path, secretMax+2, runtime.GOOS) // and a line end
	if err != nil {
		return "", privateFault("secret file", path, "--from file:PATH names a file that holds the value", err)
	}
	return cutLineEnd(string(b)), nil
}

func cmdSecretList(ctx context.Context, c *invocation) error {
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	list, err := listSecrets(ctx, v, c.opensQuietly(ctx, v))
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"secrets": list})
	}
	if len(list) == 0 {
		fmt.Fprintln(c.stdout, "no secrets are stored")
	}
	for _, s := range list {
		printWrapped(c.stdout, s.line())
	}
	return nil
}

// opensQuietly reports that the seal opens without asking anyone: a list asks nobody, and is to be had without the key.
func (a *app) opensQuietly(ctx context.Context, v *vault) bool {
	locked, err := v.needsPassphrase(ctx)
	return err == nil && (!locked || a.passphraseGiven())
}

func cmdSecretDelete(ctx context.Context, c *invocation) error {
	var users string
	err := c.recorded(ctx, deed{Kind: "secret-delete", Subject: c.args[0]}, func(v *vault) (err error) {
		users, err = dropSecret(ctx, v, c.args[0])
		return err
	})
	if err != nil {
		return orUnknown(err, "tai secret list shows the names")
	}
	c.known.changed()
	if users != "" {
		fmt.Fprintf(c.stderr, "warning: %s: %s\n", visibleLine(c.args[0]), users)
	}
	return c.done(map[string]string{"name": c.args[0], "state": "deleted"}, "%s: deleted", visibleLine(c.args[0]))
}

// done tells a deed in one line or one document.
func (c *invocation) done(doc any, format string, args ...any) error {
	if c.json {
		return writeJSON(c.stdout, doc)
	}
	_, err := fmt.Fprintf(c.stdout, format+"\n", args...)
	return err
}

func cmdProfileList(ctx context.Context, c *invocation) error {
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	list, err := v.profiles(ctx)
	if err != nil {
		return err
	}
	current, err := c.profile(ctx)
	if err != nil {
		return err
	}
	names := []string{}
	for _, p := range list {
		names = append(names, p.Name)
		mark := " "
		if p.Name == current {
			mark = "*"
		}
		if !c.json {
			fmt.Fprintf(c.stdout, "%s %s\n", mark, visibleLine(p.Name))
		}
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"profiles": names, "current": current})
	}
	return nil
}

func cmdProfileUse(ctx context.Context, c *invocation) error {
	return c.profileDeed(ctx, deed{Kind: "profile-use"}, (*vault).useProfile, "current")
}

func cmdProfileCreate(ctx context.Context, c *invocation) error {
	return c.profileDeed(ctx, deed{Kind: "profile-create"}, (*vault).createProfile, "created")
}

func cmdProfileDelete(ctx context.Context, c *invocation) error {
	return c.profileDeed(ctx, deed{Kind: "profile-delete"}, (*vault).deleteProfile, "deleted")
}

func (c *invocation) profileDeed(ctx context.Context, d deed, do func(*vault, context.Context, string) error, state string) error {
	d.Subject = c.args[0]
	if err := c.recorded(ctx, d, func(v *vault) error { return do(v, ctx, d.Subject) }); err != nil {
		return orUnknown(err, "tai profile list shows the names")
	}
	if d.Kind == "profile-use" { // at the prompt it counts at once, also where the run was switched to another one
		if err := c.switchProfile(ctx, ""); err != nil {
			return err
		}
	}
	return c.done(map[string]string{"name": c.args[0], "state": state}, "%s: %s", visibleLine(c.args[0]), state)
}

func cmdRecordList(ctx context.Context, c *invocation) error {
	limit, err := c.limit(recordListLimit)
	if err != nil {
		return err
	}
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	list, total, err := v.records(ctx, "", "", limit)
	if err != nil {
		return err
	}
	out := []recordJSON{}
	for _, r := range list {
		out = append(out, recordJSONOf(r))
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"records": out, "total": total})
	}
	for _, r := range out {
		printWrapped(c.stdout, r.line())
	}
	if total > len(out) {
		fmt.Fprintf(c.stderr, "%d more; --limit shows them\n", total-len(out))
	} else if total == 0 {
		fmt.Fprintln(c.stdout, "no records are kept")
	}
	return nil
}

// cmdRecordShow prints a record: redacted, and on a terminal with control characters written out; into a pipe byte for byte.
func cmdRecordShow(ctx context.Context, c *invocation) error {
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	info, body, err := v.record(ctx, c.args[0])
	if err != nil {
		return orUnknown(err, "tai record list shows the ids")
	}
	if c.json {
		out := recordJSONOf(info)
		out.Text = c.redact(string(body))
		return writeJSON(c.stdout, out)
	}
	text := c.redact(string(body))
	if c.outTerminal {
		text = visible(text) + "\n"
	}
	if _, err := fmt.Fprint(c.stdout, text); err != nil {
		return errorf("write the record: %w", err)
	}
	return nil
}

func cmdRecordSearch(ctx context.Context, c *invocation) error {
	limit, err := c.limit(recordListLimit)
	if err != nil {
		return err
	}
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	hits, err := v.searchRecords(ctx, strings.Join(c.args, " "), limit)
	if err != nil {
		return err
	}
	out := []recordJSON{}
	for _, h := range hits {
		r := recordJSONOf(h.recordInfo)
		r.Text = c.redact(h.Snippet)
		out = append(out, r)
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"records": out})
	}
	for _, r := range out {
		fmt.Fprintf(c.stdout, "%s\n  %s\n", r.line(), visibleLine(r.Text))
	}
	if len(out) == 0 {
		fmt.Fprintln(c.stdout, "no record holds these words")
	}
	return nil
}

func cmdRecordDelete(ctx context.Context, c *invocation) error {
	err := c.recorded(ctx, deed{Kind: "record-delete", Subject: c.args[0]}, func(v *vault) error { return v.deleteRecord(ctx, c.args[0]) })
	if err != nil {
		return orUnknown(err, "tai record list shows the ids")
	}
	return c.done(map[string]string{"id": c.args[0], "state": "deleted"}, "%s: deleted", visibleLine(c.args[0]))
}
