// This file holds the four mcp_* tables as rows in and rows out. It knows no transport, computes no hash and decides
// nothing: what a pin means and who may grant one is the bridge's business.
package main

import (
	"encoding/json"
	"time"
)

// serverEntry is one MCP server from the pasted text to the row to the spawn; its JSON is the canonical entry.
// ${VAR} stays as written: it is expanded at use.
type serverEntry struct {
	Name      string            `json:"name"`
	Transport string            `json:"transport"` // "stdio" or "http"
	Command   string            `json:"command,omitempty"`
	Args      []string          `json:"args,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Cwd       string            `json:"cwd,omitempty"`
	URL       string            `json:"url,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Allow     []string          `json:"allow,omitempty"`   // tools that may be offered; empty means all
	Deny      []string          `json:"deny,omitempty"`    // tools that may not, stronger than Allow
	Enabled   *bool             `json:"enabled,omitempty"` // what the pasted text said; the vault keeps it per profile instead
	Source    string            `json:"source"`            // config-json, config-toml, github:<owner>/<repo> or explicit
}

// serverRow is a stored server. Profiles holds only profiles with a row; one without is disabled.
type serverRow struct {
	serverEntry
	Created, Updated time.Time
	Profiles         map[string]bool
}

// toolRow is a tool of a server under its original name, with the text that was granted (or, with no Hash, the text
// last listed and never granted).
type toolRow struct {
	Tool, Description string
	Schema            json.RawMessage // may be empty
	Hash              string          // the pin; "" means never granted
	Updated           time.Time
}
