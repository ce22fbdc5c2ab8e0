// This file holds tai usage: what was used, as usage_report adds it up.
package main

import (
	"context"
	"fmt"
)

func usageCommands() []command {
	return []command{{
		Path: "usage", Short: "tokens by model or session, calls by server or tool", Example: "tai usage --by tool --since 7d",
		Long: "Tokens are what the providers reported. Calls are those of the run logs of this\nhome and workspace. No prices are known.",
		Flags: []flagSpec{{Name: "by", Value: "WHAT", Help: "model (default), session, server or tool"},
			{Name: "since", Value: "TIME", Help: "only what was used since a time or date, or within an age (2h, 7d, 1w)"}},
		Store: storeRead, Redacts: true, Run: cmdUsage,
	}}
}

// usageSource says where this run's figures are.
func (a *app) usageSource() usageSource {
	return usageSource{Vault: a.vault, Dirs: a.auditFolders(), Now: a.out.Now}
}

func cmdUsage(ctx context.Context, c *invocation) error {
	if c.given("by") {
		switch c.flag("by") {
		case usageByModel, usageBySession, usageByServer, usageByTool:
		default:
			return usageError("--by model, session, server or tool", "nothing is added up by %s", quoteClip(c.flag("by")))
		}
	}
	if _, err := sinceTime(c.flag("since"), c.out.Now()); err != nil {
		return usageError("--since 2h, 7d, 2026-03-01 or 2026-03-01T09:00:00Z", "--since %v", err)
	}
	r, err := c.usageSource().report(ctx, c.flag("by"), c.flag("since"))
	if err != nil {
		return err
	}
	if c.json {
		for i := range r.Rows {
			r.Rows[i].Name, r.Rows[i].Title = c.redact(r.Rows[i].Name), c.redact(r.Rows[i].Title)
		}
		return writeJSON(c.stdout, r)
	}
	_, err = fmt.Fprint(c.stdout, c.redact(r.text()))
	return err
}
