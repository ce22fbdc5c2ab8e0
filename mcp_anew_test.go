package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
)

// Whatever changes which servers there are has the tools of the turn chosen anew (agent: TestProfileUseOffersAnew); what changes nothing does not.
func TestMCPToolsOfferAnew(t *testing.T) {
	t.Parallel()
	f := newFakeHTTP(t)
	r := newBridgeRig(t, modePrompt, "y")
	box := newToolsBox(t, modeDanger, nil, mcpTools(r.mcpBridge, newResolver(resolverConfig{Env: r.cfg.Env}), "linux", nil)...)
	for _, tc := range []struct {
		name, args  string
		anew, fails bool
	}{
		{"mcp_add", fmt.Sprintf(`{"source":%q,"name":"s"}`, f.URL+"/mcp"), true, false},
		{"mcp_list", `{}`, false, false},
		{"mcp_tools", `{}`, false, false},
		{"mcp_disable", `{"server":"s"}`, true, false},
		{"mcp_enable", `{"server":"s"}`, true, false},
		{"mcp_enable", `{"server":"other"}`, false, true},
		{"mcp_remove", `{"server":"s"}`, true, false},
		{"mcp_remove", `{"server":"s"}`, false, true},
		{"mcp_add", `{"source":"http://127.0.0.1:1/mcp","name":"gone"}`, false, true},
	} {
		got, err := box.dispatch(context.Background(), toolCall{Name: tc.name, Args: json.RawMessage(tc.args), Person: true, Origin: "cli"})
		if err != nil || got.Anew != tc.anew || got.IsError != tc.fails {
			t.Errorf("%s %s: anew %v, error %v, want %v, %v: %s, %v", tc.name, tc.args, got.Anew, got.IsError, tc.anew, tc.fails, got.Text, err)
		}
	}
}
