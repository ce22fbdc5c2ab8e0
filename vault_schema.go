// This file holds the vault's schema as numbered migrations. A migration that was released is never edited; a change is
// another one at the end.
package main

import "fmt"

// vaultMigrations gives the steps from nothing to the newest schema; step n leaves PRAGMA user_version = n. Times are
// unix seconds.
//
//go:noinline for size: it is called in many places
func vaultMigrations() []string {
	return []string{fmt.Sprintf("PRAGMA application_id = %d;\n", vaultAppID) + vaultSchema1, vaultSchema2, vaultSchema3, vaultSchemaChanges, vaultSchemaPlaces, vaultSchemaMemories}
}

// What every vault file has to know of settings.
const (
	vaultReadsFrom = 1 // the oldest schema whose tables read as those of the newest, for a file that cannot be written

	settingSeal     = "seal"      // how the vault is sealed: a sealState
	settingScrub    = "scrub"     // there while bytes from before the last change of the seal may be left in the file
	settingAuditKey = "audit_key" // signs the heads of run logs; sealed
)

// vaultSchema2 changes no table. It keeps programs away that would take a sealed value for the value itself.
const vaultSchema2 = `
-- values may be sealed`

// vaultSchema3 holds the models that a person has set, and what completions have cost.
const vaultSchema3 = `
CREATE TABLE models (
	name       TEXT PRIMARY KEY,
	provider   TEXT NOT NULL,        -- a well-known endpoint, or ''
	base_url   TEXT NOT NULL,        -- '' for the provider's own
	model      TEXT NOT NULL,
	key_ref    TEXT NOT NULL,        -- env:NAME, secret:NAME or ''; never a key
	context    INTEGER NOT NULL,     -- tokens, 0: not known
	max_tokens INTEGER NOT NULL,     -- of one reply, 0: the endpoint's own bound
	created    INTEGER NOT NULL,
	updated    INTEGER NOT NULL
);
CREATE TABLE usage (
	seq         INTEGER PRIMARY KEY,
	session     TEXT NOT NULL,
	model       TEXT NOT NULL,
	input       INTEGER NOT NULL,    -- tokens, the cached ones too
	output      INTEGER NOT NULL,
	cached      INTEGER NOT NULL,
	duration_ms INTEGER NOT NULL,
	time        INTEGER NOT NULL
);
CREATE INDEX usage_session ON usage (session, time)`

// vaultSchemaChanges holds what the file tools changed, one row a file, so that it can be undone.
const vaultSchemaChanges = `
CREATE TABLE changes (
	seq     INTEGER PRIMARY KEY,
	id      TEXT NOT NULL,         -- h-7k2m, the same for all files of one change
	step    INTEGER NOT NULL,      -- 1, 2, ... within the change
	session TEXT NOT NULL,
	call    TEXT NOT NULL,
	tool    TEXT NOT NULL,
	root    TEXT NOT NULL,         -- the workspace, absolute
	path    TEXT NOT NULL,         -- absolute
	target  TEXT NOT NULL,         -- where a move went, or ''
	kind    TEXT NOT NULL,         -- file, link, folder, move
	existed INTEGER NOT NULL,      -- 1: it was there before
	mode    INTEGER NOT NULL,      -- permission bits before
	size    INTEGER NOT NULL,      -- bytes before; of a move, those that went to the trash
	before  TEXT NOT NULL,         -- SHA-256, or '' where there was nothing
	after   TEXT NOT NULL,         -- SHA-256, or '' where there is nothing now
	state   TEXT NOT NULL,         -- kept: about to be done; done
	undoes  TEXT NOT NULL,         -- the change that this one undid, or ''
	undone  TEXT NOT NULL,         -- the change that undid this one, or ''
	created INTEGER NOT NULL,
	body    BLOB NOT NULL          -- content before; last, so that lists do not read it
);
CREATE UNIQUE INDEX changes_steps ON changes (id, step);
CREATE INDEX changes_sizes ON changes (id, kind, size, created);
CREATE INDEX changes_kept ON changes (created) WHERE state = 'kept'`

// vaultSchemaPlaces says where a session belongs: its root is the workspace, absolute, its parent the session that started it; both may be
// empty.
const vaultSchemaPlaces = `
ALTER TABLE sessions ADD COLUMN root TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN parent TEXT NOT NULL DEFAULT ''`

// vaultSchemaMemories holds what the agent is to remember, the earlier texts of each, and the words of memories and messages. A row of
// messages_fts has the session's seq above its lowest 32 bits and the message's in them: the rows of messages have no number of their own that
// lasts. Of messages that are there already each word is indexed as often as it stands.
const vaultSchemaMemories = `
CREATE TABLE memories (
	seq     INTEGER PRIMARY KEY,   -- a new one with each change, so the newest has the highest
	id      TEXT NOT NULL UNIQUE,  -- m-7k2m
	key     TEXT NOT NULL COLLATE NOCASE, -- or ''
	text    TEXT NOT NULL,
	tags    TEXT NOT NULL,         -- in order, a newline before and after each; or ''
	sha256  TEXT NOT NULL,         -- of the text
	profile TEXT NOT NULL,         -- it was saved in
	session TEXT NOT NULL,
	created INTEGER NOT NULL,
	updated INTEGER NOT NULL
);
CREATE UNIQUE INDEX memories_key ON memories (key) WHERE key <> '';
CREATE INDEX memories_sha256 ON memories (sha256);
CREATE TABLE memory_history (
	memory TEXT NOT NULL,          -- its id
	n      INTEGER NOT NULL,       -- 1, 2, ...; the lowest ones may be gone
	text   TEXT NOT NULL,
	tags   TEXT NOT NULL,
	time   INTEGER NOT NULL,       -- from when on it was the text
	PRIMARY KEY (memory, n)
);
CREATE VIRTUAL TABLE memories_fts USING fts5(
	text, key, tags,
	content='', contentless_delete=1,
	tokenize="unicode61 remove_diacritics 2 categories 'L* N* Co So'"
);
CREATE VIRTUAL TABLE messages_fts USING fts5(
	said, result,                  -- by the person or the model; by a tool
	content='', contentless_delete=1,
	tokenize="unicode61 remove_diacritics 2 categories 'L* N* Co So'"
);
INSERT INTO messages_fts (messages_fts, rank) VALUES ('hashsize', 33554432), ('automerge', 0);
INSERT INTO messages_fts (rowid, said, result)
SELECT s.seq << 32 | m.seq, iif(m.role = 'tool', '', m.content), iif(m.role = 'tool', substr(m.content, 1, 4096), '')
FROM messages AS m JOIN sessions AS s ON s.id = m.session
WHERE m.role <> 'compaction' AND m.content <> ''
ORDER BY 1;
INSERT INTO messages_fts (messages_fts, rank) VALUES ('hashsize', 1048576), ('automerge', 4)`

// vaultSchema1 holds the four mcp_* tables by the letter of mcp.md. FTS5 keeps no copy of a record's text: an index row has the record's seq.
const vaultSchema1 = `
CREATE TABLE mcp_servers (
	name         TEXT PRIMARY KEY,
	transport    TEXT NOT NULL,    -- stdio, http
	command      TEXT NOT NULL,
	args_json    TEXT NOT NULL,
	env_json     TEXT NOT NULL,
	url          TEXT NOT NULL,
	headers_json TEXT NOT NULL,
	cwd          TEXT NOT NULL,
	allow_json   TEXT NOT NULL,
	deny_json    TEXT NOT NULL,
	source       TEXT NOT NULL,    -- config-json, config-toml, github:<owner>/<repo>, explicit
	created      INTEGER NOT NULL,
	updated      INTEGER NOT NULL
);
CREATE TABLE mcp_server_profiles (
	server  TEXT NOT NULL,
	profile TEXT NOT NULL,
	enabled INTEGER NOT NULL,
	PRIMARY KEY (server, profile)
);
CREATE TABLE mcp_tool_pins (
	server  TEXT NOT NULL,
	tool    TEXT NOT NULL,
	hash    TEXT NOT NULL,
	updated INTEGER NOT NULL,
	PRIMARY KEY (server, tool)
);
CREATE TABLE mcp_server_tools (
	server      TEXT NOT NULL,
	tool        TEXT NOT NULL,
	description TEXT NOT NULL,
	schema_json TEXT NOT NULL,
	updated     INTEGER NOT NULL,
	PRIMARY KEY (server, tool)
);
CREATE TABLE secrets (
	profile   TEXT NOT NULL,       -- '' for ordinary secrets
	name      TEXT NOT NULL,
	value     BLOB NOT NULL,
	meta_json TEXT NOT NULL,
	created   INTEGER NOT NULL,
	updated   INTEGER NOT NULL,
	PRIMARY KEY (profile, name)
);
CREATE TABLE profiles (
	name    TEXT PRIMARY KEY,
	created INTEGER NOT NULL
);
INSERT INTO profiles (name, created) VALUES ('default', unixepoch());
CREATE TABLE settings (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
);
CREATE TABLE records (
	seq     INTEGER PRIMARY KEY,
	id      TEXT NOT NULL UNIQUE,  -- r-7k2m
	kind    TEXT NOT NULL,
	origin  TEXT NOT NULL,
	session TEXT NOT NULL,
	size    INTEGER NOT NULL,
	sha256  TEXT NOT NULL,
	text    INTEGER NOT NULL,      -- 1: valid UTF-8 without NUL, in the index
	created INTEGER NOT NULL,
	body    BLOB NOT NULL          -- last, so that lists do not read it
);
CREATE VIRTUAL TABLE records_fts USING fts5(
	body, origin,
	content='', contentless_delete=1,
	tokenize="unicode61 remove_diacritics 2 categories 'L* N* Co So'"
);
CREATE TABLE sessions (
	seq     INTEGER PRIMARY KEY,
	id      TEXT NOT NULL UNIQUE,  -- s-7k2m
	profile TEXT NOT NULL,
	title   TEXT NOT NULL,
	created INTEGER NOT NULL,
	updated INTEGER NOT NULL
);
CREATE TABLE messages (
	session      TEXT NOT NULL,
	seq          INTEGER NOT NULL, -- 1, 2, ... without a gap
	role         TEXT NOT NULL,
	content      TEXT NOT NULL,
	tool_calls   TEXT NOT NULL,    -- JSON as the model sent it, or ''
	tool_call_id TEXT NOT NULL,
	meta_json    TEXT NOT NULL,
	created      INTEGER NOT NULL,
	PRIMARY KEY (session, seq)
);
CREATE TABLE audit_runs (
	run       TEXT PRIMARY KEY,
	origin    TEXT NOT NULL,       -- mcp, http, repl, cli
	path      TEXT NOT NULL,       -- the log file
	lines     INTEGER NOT NULL,
	head      TEXT NOT NULL,       -- hash of the last line
	signature BLOB NOT NULL,
	started   INTEGER NOT NULL,
	updated   INTEGER NOT NULL
)`
