// This file holds the commands that keep the vault safe: tai vault backup. It looks into no table itself.
package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
	key, words := sealKey(info.Seal, c.keys().Dir)
	if c.json {
		doc := struct {
			Path    string `json:"path"`
			Bytes   int64  `json:"bytes"`
			Schema  int    `json:"schema"`
			Seal    string `json:"seal"`
			KeyFile string `json:"key_file"`
		}{info.Path, info.Bytes, info.Schema, sealKind(info.Seal), key}
		return writeJSON(c.stdout, doc)
	}
	fmt.Fprintf(c.stdout, "%s: backed up, %d bytes, read back and found whole\n%s\n", visibleLine(info.Path), info.Bytes, visible(words))
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

func sealKind(s sealRow) string {
	if s.Kind == "" {
		return "off"
	}
	return s.Kind
}

// sealKey says what opens the sealed values of a copy, and names the key file where one does.
func sealKey(s sealRow, dir string) (keyFile, words string) {
	switch s.Kind {
	case "key-file":
		keyFile = filepath.Join(dir, s.ID+".key")
		return keyFile, "its secrets open only with the key file " + keyFile + ": without it they are lost; keep a copy of it elsewhere"
	case "passphrase":
		return "", "its secrets open only with the vault's passphrase: without it they are lost"
	}
	return "", "warning: the seal is off, so whoever reads this file has its secrets; tai vault seal turns it on"
}
