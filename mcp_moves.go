// This file plans the move of pasted secrets into the vault: under which names, and what the entry holds then. Nothing is stored here:
// they come in with the entry, in one transaction (mcp_register.go), or not at all.
package main

import (
	"context"
	"errors"
	"fmt"
)

// tokenMove is one secret of an entry with the name it is to have in the vault.
type tokenMove struct {
	entryToken
	Name  string
	Value secret
}

// planMoves names every secret that stands in an entry. taken are the names that other entries of the same source have been given; it
// is added to.
func (b *mcpBridge) planMoves(ctx context.Context, e serverEntry, taken map[string]secret) ([]tokenMove, error) {
	var moves []tokenMove
	for _, t := range entryTokens(e) {
		m := tokenMove{entryToken: t, Value: t.value(e)}
		for n := 1; ; n++ {
			m.Name = t.Base
			if n > 1 {
				m.Name = fmt.Sprintf("%s_%d", t.Base, n)
			}
			free, err := b.moveNameFree(ctx, m.Name, m.Value, taken)
			if err != nil {
				return nil, err
			}
			if free {
				break
			}
		}
		taken[m.Name] = m.Value
		moves = append(moves, m)
	}
	return moves, nil
}

// moveNameFree reports whether ${name} can stand for value: a name that is not in use, or is with the same value. The environment
// counts, since it is asked first.
func (b *mcpBridge) moveNameFree(ctx context.Context, name string, value secret, taken map[string]secret) (bool, error) {
	if validSecretName(name) != nil {
		return false, nil
	}
	if other, ok := taken[name]; ok && other != value {
		return false, nil
	}
	if other, ok := b.cfg.Env(name); ok && other != value.reveal() {
		return false, nil
	}
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return false, err
	}
	other, err := v.secretFor(ctx, "", name)
	if errors.Is(err, errNotFound) {
		return true, nil
	}
	return other == value, err
}

// applyMoves gives the entry with references in the place of its secrets, and the secrets.
func applyMoves(e serverEntry, moves []tokenMove) (serverEntry, []namedSecret) {
	tokens, texts, secrets := make([]entryToken, len(moves)), make([]string, len(moves)), make([]namedSecret, len(moves))
	for i, m := range moves {
		tokens[i], texts[i], secrets[i] = m.entryToken, "${"+m.Name+"}", namedSecret{m.Name, m.Value}
	}
	return putTexts(e, tokens, texts), secrets
}
