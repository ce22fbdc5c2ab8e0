// This file remembers what the vault said about tools while the vault and the trust file stay as they are, so that a call of a tool in use reads one
// number from it instead of four tables.
package main

import "context"

// storedTool gives a server that is enabled for the profile and one of its tools, as the vault judges it. The row is shared:
// nobody changes it.
func (b *mcpBridge) storedTool(ctx context.Context, ref toolRef, profile string) (serverRow, bridgeTool, error) {
	asked := bridgeAsked{ref, profile}
	at, err := b.stamp(ctx)
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
	tool.Trust = at.trust.judge(ref.Server, ref.Tool)
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
	at, err := b.stamp(ctx)
	if err != nil {
		return nil, err
	}
	b.memoMu.Lock()
	profile := profileOf(ctx)
	known := b.memoAt(at).names[profile]
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
		b.memo.names[profile] = names
	}
	return names, nil
}

func (b *mcpBridge) stamp(ctx context.Context) (at bridgeStamp, err error) {
	at.switches = b.switches.Load() // before the profile is read: what was found by the one before is then of a stamp that is gone
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return at, err
	}
	if at.vaultStamp, err = v.stamp(ctx); err != nil {
		return at, err
	}
	if at.trust, err = b.cfg.Trust.read(at.vaultStamp); err != nil {
		err = &hintedError{err, "mend or remove the file; a lost deny is worse than no service"}
	}
	return at, err
}

// trust gives the rules that hold at this moment.
func (b *mcpBridge) trust(ctx context.Context) (*trustRules, error) {
	at, err := b.stamp(ctx)
	return at.trust, err
}

// switched is to be called after the run has taken another profile. It ends the connections to servers that are not enabled there.
func (b *mcpBridge) switched(ctx context.Context) error {
	b.switches.Add(1)
	v, err := b.cfg.Vault(ctx)
	if err != nil {
		return err
	}
	rows, err := v.serverList(ctx)
	if err != nil {
		return err
	}
	profile, err := b.cfg.Profile(ctx)
	for _, row := range rows {
		if err == nil && !row.Profiles[profile] {
			err = b.forget(row.Name)
		}
	}
	return err
}

// memoAt gives the memo of that stamp, an empty one if it was of another. b.memoMu is held.
//
//go:noinline for size: it is called in many places
func (b *mcpBridge) memoAt(at bridgeStamp) *bridgeMemo {
	if b.memo.tools == nil || b.memo.at != at {
		b.memo = bridgeMemo{at: at, tools: map[bridgeAsked]bridgeStored{}, names: map[string]map[string]toolRef{}}
	}
	return &b.memo
}
