// This file holds the commands that keep the vault safe: tai vault backup and tai vault check. It looks into no table itself.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

func vaultCheckCommands() []command {
	return []command{
		{Path: "vault backup", Args: "FILE", Short: "copy the vault to a new file, also while others use it",
			Long: "FILE must not be there yet. The copy is read back before it gets its name.\n" +
				"Sealed values stay sealed: keep the key file or the passphrase too, elsewhere.\n" +
				"To restore, end every tai, then:\n" +
				"  rm -f HOME/vault.db HOME/vault.db-wal HOME/vault.db-shm\n" +
				"  cp FILE HOME/vault.db && chmod 600 HOME/vault.db",
			Example: "tai vault backup /media/stick/vault-2026-05.db", Min: 1, Max: 1, Store: storeRead, Run: cmdVaultBackup},
		{Path: "vault check", Args: "[FILE]", Short: "look the vault over, or a copy of it",
			Long: "The file, its schema, who may read it, the seal, rows that lost their owner, run\n" +
				"logs and sizes. It writes nothing. Exit 0: fine, 1: there is something to do.\n" +
				"--repair shows what it would do, asks, and drops rows and files left over,\n" +
				"closes files to other users and gives free pages back.",
			Example: "tai vault check --json", Flags: []flagSpec{{Name: "repair", Help: "mend what can be mended without loss; asks"}},
			Max: 1, Store: storeRead, Run: cmdVaultCheck},
	}
}

func cmdVaultBackup(ctx context.Context, c *invocation) error {
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	info, err := v.backup(ctx, absolute(c.args[0], c.out.Dir))
	if err != nil {
		return backupHint(err)
	}
	if c.json {
		doc := struct {
			Path    string `json:"path"`
			Bytes   int64  `json:"bytes"`
			Schema  int    `json:"schema"`
			Seal    string `json:"seal"`
			KeyFile string `json:"key_file"`
		}{info.Path, info.Bytes, info.Schema, cmp.Or(info.Seal.Kind, sealOff), info.Seal.KeyFile}
		return writeJSON(c.stdout, doc)
	}
	fmt.Fprintf(c.stdout, "%s: backed up, %d bytes, read back and found whole\n%s\n", visibleLine(info.Path), info.Bytes, visible(copyKey(info.Seal)))
	return nil
}

func backupHint(err error) error {
	for cause, hint := range map[error]string{
		errBackupTaken: "tai vault backup never writes over a file",
		errBackupEmpty: "tai --home DIR names another data folder",
	} {
		if errors.Is(err, cause) {
			return &cliError{Exit: exitFailed, Message: err.Error(), Hint: hint, err: err}
		}
	}
	return err
}

// copyKey says what opens the sealed values of a copy.
func copyKey(s sealInfo) string {
	switch s.Kind {
	case sealByKeyFile:
		return "its secrets open only with the key file " + s.KeyFile + ": without it they are lost; keep a copy of it elsewhere"
	case sealByPassphrase:
		return "its secrets open only with the vault's passphrase: without it they are lost"
	}
	return "warning: the seal is off, so whoever reads this file has its secrets; tai vault seal turns it on"
}

func cmdVaultCheck(ctx context.Context, c *invocation) error {
	checker := vaultChecker{Home: c.home, Keys: c.keys(), GOOS: c.goos, Now: c.out.Now}
	if len(c.args) > 0 {
		checker.File = absolute(c.args[0], c.out.Dir)
	}
	if c.given("repair") && checker.File != "" {
		return usageError("restore the copy first, then tai vault check --repair", "--repair mends the vault, not a copy")
	}
	report, err := checker.check(ctx)
	if err != nil {
		return err
	}
	if c.given("repair") {
		if err := c.repairVault(ctx, report); err != nil {
			return err
		}
		if report, err = checker.check(ctx); err != nil {
			return err
		}
	}
	if c.json {
		err = writeJSON(c.stdout, report)
	} else {
		tellReport(c.stdout, report)
	}
	if err == nil && !report.fine() {
		return errQuiet{exitFailed}
	}
	return err
}

// tellReport prints the verdict first, then what there is to do, then the sizes.
func tellReport(w io.Writer, r vaultReport) {
	fmt.Fprintf(w, "%s: %s\n", visibleLine(r.Vault), r.State)
	for _, f := range r.Problems {
		fmt.Fprintf(w, "%-8s %s: %s\n", f.Level, f.Section, visibleLine(f.What))
		if f.Do != "" {
			fmt.Fprintf(w, "         do: %s\n", visibleLine(f.Do))
		}
	}
	if len(r.Tables) == 0 {
		return
	}
	fmt.Fprintf(w, "%d bytes, %d of them free, %d in the journal; schema %d\n", r.Bytes, r.Free, r.Journal, r.Schema)
	fmt.Fprintf(w, "seal: %s; %d of %d values open\n", r.Seal.Kind, r.Seal.Opened, r.Seal.Values)
	for _, t := range r.Tables {
		fmt.Fprintf(w, "%12d bytes %8d rows  %s\n", t.Bytes, t.Rows, visibleLine(t.Table))
	}
}

// repairVault asks once for all that can be mended, and mends it.
func (c *invocation) repairVault(ctx context.Context, r vaultReport) error {
	plan := r.repairs()
	if len(plan) == 0 {
		fmt.Fprintln(c.stderr, "tai: there is nothing that --repair could mend")
		return nil
	}
	fmt.Fprintln(c.stderr, "tai: to be mended in "+visibleLine(r.Vault)+":")
	for _, f := range plan {
		fmt.Fprintln(c.stderr, "  "+visibleLine(f.What))
	}
	if err := c.agree(ctx, "mend this? (yes or no): "); err != nil {
		return err
	}
	done, err := mendFiles(plan)
	if err == nil {
		err = c.mendRows(ctx, r, &done)
	}
	for _, line := range done {
		fmt.Fprintln(c.stderr, "tai: "+visibleLine(line))
	}
	return err
}

func (c *invocation) mendRows(ctx context.Context, r vaultReport, done *[]string) error {
	if !r.mends(mendRows) && !r.mends(mendPages) {
		return nil
	}
	v, err := openVault(ctx, c.home, vaultWrite, c.out.Now, c.keys()) // that of the run is for reading
	if err != nil {
		return err
	}
	lines, err := v.repair(ctx, r.mends(mendPages))
	*done = append(*done, lines...)
	return joinErrors(err, v.close())
}

// agree asks a question of tai's own; --yes answers it.
func (c *invocation) agree(ctx context.Context, question string) error {
	if c.given("yes") {
		return nil
	}
	if c.console == nil {
		return &cliError{Exit: exitRefused, Rule: "nobody to ask", Message: "this is asked about first, and nobody can be asked here", Hint: "--yes would allow it"}
	}
	if err := flushInput(c.console.in); err != nil {
		return errorf("ask: %w", err)
	}
	fmt.Fprint(c.stderr, question)
	line, err := c.console.readLine(ctx)
	if err != nil {
		return err
	}
	if a := strings.ToLower(strings.TrimSpace(line)); a != "y" && a != "yes" {
		return &cliError{Exit: exitRefused, Rule: ruleRefused, Message: "nothing was changed"}
	}
	return nil
}
