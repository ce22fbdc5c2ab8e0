// This file remembers what the vault said about tools while the vault stays as it is, so that a call of a tool in use reads one
// number from it instead of four tables.
package main

import "context"

// storedTool gives a server that is enabled for the profile and one of its tools, as the vault judges it. The row is shared:
// nobody changes it.
func (b *mcpBridge) storedTool(ctx context.Context, ref toolRef, profile string) (serverRow, bridgeTool, error) {
	asked := bridgeAsked{ref, profile}
	at, err := b.vaultStamp(ctx)
	if err != nil {
		return serverRow{}, bridgeTool{}, err
	}
	b.memoMu.Lock()
	known, ok := b.memoAt(at).tools[asked]
	b.memoMu.Unlock()
	if ok {
		return known.row, known.tool, nil
	}
	row, err := b.enabledServer(ctx, ref.Server, profile)
	if err != nil {
		return serverRow{}, bridgeTool{}, err
	}
	tool, err := b.pinnedTool(ctx, row, ref.Tool)
	if err == nil && tool.State == stateGranted { // of others there may be any number, since a caller can make up names
		b.memoMu.Lock()
		defer b.memoMu.Unlock()
		if b.memo.at == at {
			b.memo.tools[asked] = bridgeStored{row, tool}
		}
	}
	return row, tool, err
}

// names gives what each bridged name stands for. The map is shared: nobody changes it.
func (b *mcpBridge) names(ctx context.Context) (map[string]toolRef, error) {
	at, err := b.vaultStamp(ctx)
	if err != nil {
		return nil, err
	}
	b.memoMu.Lock()
	known := b.memoAt(at).names
	b.memoMu.Unlock()
	if known != nil {
		return known, nil
	}
	_, names, err := b.table(ctx)
	if err != nil {
		return nil, err
	}
	b.memoMu.Lock()
	defer b.memoMu.Unlock()
	if b.memo.at == at {
		b.memo.names = names
	}
	return names, nil
}

func (b *mcpBridge) vaultStamp(ctx context.Context) (vaultStamp, error) {
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return vaultStamp{}, err
	}
	return v.stamp(ctx)
}

// memoAt gives the memo of that stamp, an empty one if it was of another. b.memoMu is held.
func (b *mcpBridge) memoAt(at vaultStamp) *bridgeMemo {
	if b.memo.tools == nil || b.memo.at != at {
		b.memo = bridgeMemo{at: at, tools: map[bridgeAsked]bridgeStored{}}
	}
	return &b.memo
}
