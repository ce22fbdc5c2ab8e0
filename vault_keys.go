// This file owns what opens a sealed vault: the folder of the key files and the passphrase, where it comes from. It knows neither the vault nor
// a terminal.
package main

import "context"

// vaultKeys is what opens a sealed vault.
type vaultKeys struct {
	Dir        string                                                // folder of the key files, "" where no config folder is known
	Passphrase func(ctx context.Context, why string) (secret, error) // nil where there is none to be had
}
