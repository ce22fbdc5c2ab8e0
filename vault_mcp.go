// This file holds the four mcp_* tables as rows in and rows out. It knows no transport, computes no hash and decides
// nothing: what a pin means and who may grant one is the bridge's business.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// errTooManyServers refuses one more server than the cap.
var errTooManyServers = errors.New("too many servers")

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

// putServer stores or replaces a server with its row for profile, its pins and its tools, in one transaction. Rows of
// other profiles stay; pins and tools that are not in tools go. A new server beyond max is refused with
// errTooManyServers, counted inside the transaction so that two processes cannot pass the cap together. moved are the
// ordinary secrets that the entry refers to from now on: they come in with it or not at all.
func (v *vault) putServer(ctx context.Context, e serverEntry, profile string, enabled bool, tools []toolRow, max int, moved ...namedSecret) (err error) {
	defer wrapDeed(&err, "store mcp server %q", e.Name)
	return v.withSealed(ctx, func(tx *sql.Tx, s *sealer) error {
		var others int
		err := tx.QueryRowContext(ctx, `SELECT count(*) FROM mcp_servers WHERE name <> ?`, e.Name).Scan(&others)
		if err != nil {
			return err
		}
		if others >= max {
			if err := hasServer(ctx, tx, e.Name); errors.Is(err, errNotFound) {
				return errorf("%w: %d are stored, the most there can be; remove one first", errTooManyServers, others)
			} else if err != nil {
				return err
			}
		}
		if err := hasProfile(ctx, tx, profile); err != nil {
			return errorf("profile %q: %w", profile, err)
		}
		now := v.now().Unix()
		if err := putServerRow(ctx, tx, s, e, now); err != nil {
			return err
		}
		if err := putEnabled(ctx, tx, e.Name, profile, enabled); err != nil {
			return err
		}
		if err := dropAllTools(ctx, tx, e.Name); err != nil {
			return err
		}
		if err := putMoved(ctx, tx, s, moved, now); err != nil {
			return err
		}
		if err := dropLostMark(ctx, tx, e.Name); err != nil {
			return err
		}
		return putTools(ctx, tx, e.Name, tools, now)
	})
}

func putServerRow(ctx context.Context, tx *sql.Tx, s *sealer, e serverEntry, now int64) error {
	columns := make([]any, 0, 13)
	columns = append(columns, e.Name, e.Transport, e.Command)
	for _, part := range []struct {
		value  any
		sealed string // the column, of those that are sealed
	}{{listOrEmpty(e.Args), ""}, {mapOrEmpty(e.Env), "env_json"}, {mapOrEmpty(e.Headers), "headers_json"}, {listOrEmpty(e.Allow), ""}, {listOrEmpty(e.Deny), ""}} {
		b, err := json.Marshal(part.value)
		if err != nil {
			return err
		}
		var column any = string(b)
		if part.sealed != "" && s.on() {
			column = s.seal(b, "mcp_servers", part.sealed, e.Name)
		}
		columns = append(columns, column)
	}
	columns = append(columns, e.URL, e.Cwd, e.Source, now, now)
	_, err := tx.ExecContext(ctx, `
		INSERT INTO mcp_servers (name, transport, command,
			args_json, env_json, headers_json, allow_json, deny_json,
			url, cwd, source, created, updated)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET
			transport = excluded.transport,
			command = excluded.command,
			args_json = excluded.args_json,
			env_json = excluded.env_json,
			headers_json = excluded.headers_json,
			allow_json = excluded.allow_json,
			deny_json = excluded.deny_json,
			url = excluded.url,
			cwd = excluded.cwd,
			source = excluded.source,
			updated = excluded.updated`,
		columns...)
	return err
}

func listOrEmpty(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}

func mapOrEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// server gives one server, or errNotFound.
func (v *vault) server(ctx context.Context, name string) (row serverRow, err error) {
	defer wrapDeed(&err, "read mcp server %q", name)
	err = v.viewSealed(ctx, func(tx *sql.Tx, s *sealer) error {
		list, err := readServers(ctx, tx, s, `WHERE name = ?`, name)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return errNotFound
		}
		row = list[0]
		return nil
	})
	return row, err
}

// servers lists all servers by name.
func (v *vault) servers(ctx context.Context) (list []serverRow, err error) {
	defer wrapDeed(&err, "list mcp servers")
	err = v.viewSealed(ctx, func(tx *sql.Tx, s *sealer) (err error) {
		list, err = readServers(ctx, tx, s, ``)
		return err
	})
	return list, err
}

// serverList is servers without Env and Headers, which stay sealed: it needs no key.
func (v *vault) serverList(ctx context.Context) (list []serverRow, err error) {
	defer wrapDeed(&err, "list mcp servers")
	err = v.view(ctx, func(tx *sql.Tx) (err error) {
		list, err = readServers(ctx, tx, nil, ``)
		return err
	})
	return list, err
}

// readServers reads the servers that where picks, by name. An empty list or map comes back as nil, as it was pasted. Without a sealer so do
// Env and Headers.
func readServers(ctx context.Context, tx *sql.Tx, seal *sealer, where string, args ...any) (list []serverRow, err error) {
	at := map[string]int{}
	err = eachRow(ctx, tx, func(r *sql.Rows) error {
		var s serverRow
		var texts [5][]byte
		var created, updated int64
		err := r.Scan(&s.Name, &s.Transport, &s.Command,
			&texts[0], &texts[1], &texts[2], &texts[3], &texts[4],
			&s.URL, &s.Cwd, &s.Source, &created, &updated)
		if err != nil {
			return err
		}
		for i, column := range [...]string{1: "env_json", 2: "headers_json"} {
			if column == "" {
				continue
			}
			if seal == nil {
				texts[i] = []byte(`{}`)
			} else if texts[i], err = seal.open(texts[i], "mcp_servers", column, s.Name); err != nil {
				return err
			}
		}
		for i, into := range []any{&s.Args, &s.Env, &s.Headers, &s.Allow, &s.Deny} {
			if text := string(texts[i]); text == "[]" || text == "{}" {
				continue
			}
			if err := decodeStrict(texts[i], into); err != nil {
				return errorf("mcp server %q: stored entry: %w", s.Name, err)
			}
		}
		s.Created, s.Updated = time.Unix(created, 0), time.Unix(updated, 0)
		s.Profiles = map[string]bool{}
		at[s.Name] = len(list)
		list = append(list, s)
		return nil
	}, `
		SELECT name, transport, command,
			args_json, env_json, headers_json, allow_json, deny_json,
			url, cwd, source, created, updated
		FROM mcp_servers `+where+`
		ORDER BY name`,
		args...)
	if err != nil {
		return nil, err
	}
	err = eachRow(ctx, tx, func(r *sql.Rows) error {
		var server, profile string
		var on bool
		err := r.Scan(&server, &profile, &on)
		if i, ok := at[server]; ok {
			list[i].Profiles[profile] = on
		}
		return err
	}, `SELECT server, profile, enabled FROM mcp_server_profiles`)
	return list, err
}

// hasServer is errNotFound for an unknown name.
func hasServer(ctx context.Context, tx *sql.Tx, name string) error {
	var one int
	return orNotFound(tx.QueryRowContext(ctx, `SELECT 1 FROM mcp_servers WHERE name = ?`, name).Scan(&one))
}

// setEnabled turns a server on or off for one profile; errNotFound for an unknown server or profile.
func (v *vault) setEnabled(ctx context.Context, server, profile string, on bool) (err error) {
	defer wrapDeed(&err, "set mcp server %q for profile %q", server, profile)
	return v.withTx(ctx, func(tx *sql.Tx) error {
		if err := hasServer(ctx, tx, server); err != nil {
			return errorf("server: %w", err)
		}
		if err := hasProfile(ctx, tx, profile); err != nil {
			return errorf("profile: %w", err)
		}
		return putEnabled(ctx, tx, server, profile, on)
	})
}

//go:noinline for size: it is called in many places
func putEnabled(ctx context.Context, tx *sql.Tx, server, profile string, on bool) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO mcp_server_profiles (server, profile, enabled)
		VALUES (?, ?, ?)
		ON CONFLICT (server, profile) DO UPDATE SET enabled = excluded.enabled`,
		server, profile, on)
	return err
}

// removeServer drops a server with its profile rows, pins, tools and the OAuth secrets of every profile; errNotFound
// for an unknown one.
func (v *vault) removeServer(ctx context.Context, name string) (err error) {
	defer wrapDeed(&err, "remove mcp server %q", name)
	return v.withTx(ctx, func(tx *sql.Tx) error {
		if err := execOne(ctx, tx, `DELETE FROM mcp_servers WHERE name = ?`, name); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM mcp_server_profiles WHERE server = ?`, name); err != nil {
			return err
		}
		if err := dropAllTools(ctx, tx, name); err != nil {
			return err
		}
		if err := dropLostMark(ctx, tx, name); err != nil {
			return err
		}
		return dropOAuthSecrets(ctx, tx, name)
	})
}

func dropAllTools(ctx context.Context, tx *sql.Tx, server string) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM mcp_tool_pins WHERE server = ?`, server); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM mcp_server_tools WHERE server = ?`, server)
	return err
}

// putTools writes the text of each tool, and its pin when it has one.
func putTools(ctx context.Context, tx *sql.Tx, server string, tools []toolRow, now int64) error {
	for _, t := range tools {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO mcp_server_tools (server, tool, description, schema_json, updated)
			VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (server, tool) DO UPDATE SET
				description = excluded.description,
				schema_json = excluded.schema_json,
				updated = excluded.updated`,
			server, t.Tool, t.Description, string(t.Schema), now)
		if err != nil {
			return errorf("tool %q: %w", t.Tool, err)
		}
		if t.Hash == "" {
			continue
		}
		_, err = tx.ExecContext(ctx, `
			INSERT INTO mcp_tool_pins (server, tool, hash, updated)
			VALUES (?, ?, ?, ?)
			ON CONFLICT (server, tool) DO UPDATE SET
				hash = excluded.hash,
				updated = excluded.updated`,
			server, t.Tool, t.Hash, now)
		if err != nil {
			return errorf("tool %q: %w", t.Tool, err)
		}
	}
	return nil
}

// pins gives the granted tools of a server under their original names, each with its hash.
func (v *vault) pins(ctx context.Context, server string) (pins map[string]string, err error) {
	defer wrapDeed(&err, "read the pins of mcp server %q", server)
	pins = map[string]string{}
	err = v.view(ctx, func(tx *sql.Tx) error {
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var tool, hash string
			err := r.Scan(&tool, &hash)
			pins[tool] = hash
			return err
		}, `SELECT tool, hash FROM mcp_tool_pins WHERE server = ?`, server)
	})
	return pins, err
}

// pin gives the hash of one granted tool; errNotFound if it was never granted.
func (v *vault) pin(ctx context.Context, server, tool string) (hash string, err error) {
	defer wrapDeed(&err, "read the pin of tool %q of mcp server %q", tool, server)
	err = v.view(ctx, func(tx *sql.Tx) error {
		return orNotFound(tx.QueryRowContext(ctx, `SELECT hash FROM mcp_tool_pins WHERE server = ? AND tool = ?`, server, tool).Scan(&hash))
	})
	return hash, err
}

// cachedTools gives the kept text of a server's tools, in the order they were stored, with the pin of those that were granted.
func (v *vault) cachedTools(ctx context.Context, server string) (list []toolRow, err error) {
	defer wrapDeed(&err, "read the tools of mcp server %q", server)
	err = v.view(ctx, func(tx *sql.Tx) error {
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var t toolRow
			var schema string
			var updated int64
			err := r.Scan(&t.Tool, &t.Description, &schema, &updated, &t.Hash)
			t.Schema, t.Updated = rawOrNil(schema), time.Unix(updated, 0)
			list = append(list, t)
			return err
		}, `
			SELECT t.tool, t.description, t.schema_json, t.updated, coalesce(p.hash, '')
			FROM mcp_server_tools AS t
			LEFT JOIN mcp_tool_pins AS p ON p.server = t.server AND p.tool = t.tool
			WHERE t.server = ?
			ORDER BY t.rowid`,
			server)
	})
	return list, err
}

// toolTexts gives the kept text and the pin of just these tools, each a server and a tool of it; those that are not there are left out.
func (v *vault) toolTexts(ctx context.Context, tools [][2]string) (list map[[2]string]toolRow, err error) {
	defer wrapDeed(&err, "read the text of %d tools", len(tools))
	asked, err := json.Marshal(tools)
	if err != nil {
		return nil, err
	}
	list = make(map[[2]string]toolRow, len(tools))
	err = v.view(ctx, func(tx *sql.Tx) error {
		return eachRow(ctx, tx, func(r *sql.Rows) error {
			var t toolRow
			var server, schema string
			err := r.Scan(&server, &t.Tool, &t.Description, &schema, &t.Hash)
			t.Schema = rawOrNil(schema)
			list[[2]string{server, t.Tool}] = t
			return err
		}, `
			SELECT t.server, t.tool, t.description, t.schema_json, p.hash
			FROM json_each(?) AS j
			CROSS JOIN mcp_server_tools AS t ON t.server = j.value ->> 0 AND t.tool = j.value ->> 1
			CROSS JOIN mcp_tool_pins AS p ON p.server = t.server AND p.tool = t.tool`, // CROSS keeps this order: one look by key for each
			string(asked))
	})
	return list, err
}

// grantTools replaces pin and text of just these tools; each must have a hash.
func (v *vault) grantTools(ctx context.Context, server string, tools []toolRow) (err error) {
	defer wrapDeed(&err, "grant tools of mcp server %q", server)
	for _, t := range tools {
		if t.Hash == "" {
			return errorf("tool %q has no pin", t.Tool)
		}
	}
	return v.withTx(ctx, func(tx *sql.Tx) error {
		if err := hasServer(ctx, tx, server); err != nil {
			return err
		}
		return putTools(ctx, tx, server, tools, v.now().Unix())
	})
}

// cacheTools refreshes the listing of tools that were never granted: those in listed are written, others go. A granted
// tool keeps its granted text whatever is listed, so that the difference can be shown.
func (v *vault) cacheTools(ctx context.Context, server string, listed []toolRow) (err error) {
	defer wrapDeed(&err, "store the tools of mcp server %q", server)
	return v.withTx(ctx, func(tx *sql.Tx) error {
		if err := hasServer(ctx, tx, server); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			DELETE FROM mcp_server_tools
			WHERE server = ?1
				AND tool NOT IN (SELECT tool FROM mcp_tool_pins WHERE server = ?1)`,
			server)
		if err != nil {
			return err
		}
		now := v.now().Unix()
		for _, t := range listed {
			_, err := tx.ExecContext(ctx, `
				INSERT INTO mcp_server_tools (server, tool, description, schema_json, updated)
				VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (server, tool) DO NOTHING`, // the rows left are granted
				server, t.Tool, t.Description, string(t.Schema), now)
			if err != nil {
				return errorf("tool %q: %w", t.Tool, err)
			}
		}
		return nil
	})
}

// dropTools forgets tools that the server no longer has, pins included. Unknown names are no error.
func (v *vault) dropTools(ctx context.Context, server string, tools []string) (err error) {
	defer wrapDeed(&err, "drop tools of mcp server %q", server)
	return v.withTx(ctx, func(tx *sql.Tx) error {
		for _, tool := range tools {
			if _, err := tx.ExecContext(ctx, `DELETE FROM mcp_tool_pins WHERE server = ? AND tool = ?`, server, tool); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM mcp_server_tools WHERE server = ? AND tool = ?`, server, tool); err != nil {
				return err
			}
		}
		return nil
	})
}

// setLogin keeps whether a server answered its last check with 401.
func (v *vault) setLogin(ctx context.Context, server string, wanted bool) error {
	value := ""
	if wanted {
		value = "wanted"
	}
	return v.setSetting(ctx, "mcp-login:"+server, value)
}

// wantsLogin says whether a server waits for a login.
func (v *vault) wantsLogin(ctx context.Context, server string) (bool, error) {
	value, err := v.setting(ctx, "mcp-login:"+server)
	if errors.Is(err, errNotFound) {
		return false, nil
	}
	return value != "", err
}

// lostSetting keeps what of a server was given up because nothing opens it any more, until the server is stored anew or removed.
func lostSetting(server string) string { return "mcp-lost:" + server }

func dropLostMark(ctx context.Context, tx *sql.Tx, server string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM settings WHERE key = ?`, lostSetting(server))
	return err
}

// lostOf tells which of a server's values were given up: "env", "headers", both or none.
func (v *vault) lostOf(ctx context.Context, server string) ([]string, error) {
	value, err := v.setting(ctx, lostSetting(server))
	if errors.Is(err, errNotFound) {
		return nil, nil
	}
	return strings.Fields(value), err
}
