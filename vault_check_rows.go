// This file checks what stands in the vault's tables: rows that lost what they belong to, values that are no longer what was stored,
// and the index of the records. It knows no file, opens no sealed value, and changes a row only where it was told to drop it.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// orphanRule finds the rows of a table that have lost what they belong to. Name is the column that a finding shows.
type orphanRule struct {
	table, name, where, what string
}

// orphanRules are the rows that nothing uses any more and that may go.
func orphanRules() []orphanRule {
	const noServer, noProfile = `server NOT IN (SELECT name FROM mcp_servers)`, `profile NOT IN (SELECT name FROM profiles)`
	return []orphanRule{
		{"mcp_server_profiles", "server", noServer, "of servers that are gone"},
		{"mcp_tool_pins", "server", noServer, "of servers that are gone"},
		{"mcp_server_tools", "server", noServer, "of servers that are gone"},
		{"mcp_server_profiles", "profile", noProfile, "of profiles that are gone"},
		{"secrets", "profile", `profile <> '' AND ` + noProfile, "of profiles that are gone"},
		{"messages", "session", `session NOT IN (SELECT id FROM sessions)`, "of sessions that are gone"},
		{"memory_history", "memory", `memory NOT IN (SELECT id FROM memories)`, "of memories that are gone"},
	}
}

// brokenRules are the rows that lack something. They stay, for something can still be read of them.
func brokenRules() []struct {
	orphanRule
	do string
} {
	return []struct {
		orphanRule
		do string
	}{
		{orphanRule{"mcp_tool_pins", "server || '/' || tool", `server IN (SELECT name FROM mcp_servers) AND
			NOT EXISTS (SELECT 1 FROM mcp_server_tools AS t WHERE t.server = mcp_tool_pins.server AND t.tool = mcp_tool_pins.tool)`,
			"without the text that was granted"}, "tai mcp check SERVER, then tai mcp grant SERVER TOOL"},
		{orphanRule{"sessions", "id", `id IN (SELECT session FROM messages GROUP BY session HAVING min(seq) <> 1 OR max(seq) <> count(*))`,
			"lack messages in the middle"}, "restore a backup, if one has them"},
		{orphanRule{"settings", "value", `key = '` + settingProfile + `' AND value NOT IN (SELECT name FROM profiles)`,
			"name a current profile that is gone"}, "tai profile use default"},
	}
}

// checkRows notes rows without their owner and values that are not what they should be.
func checkRows(ctx context.Context, tx *sql.Tx, r *vaultReport) error {
	for _, rule := range orphanRules() {
		if err := rule.check(ctx, tx, r, findWarning, repairHint); err != nil {
			return err
		}
	}
	for _, rule := range brokenRules() {
		if err := rule.check(ctx, tx, r, findError, rule.do); err != nil {
			return err
		}
	}
	lost, err := orphanTokens(ctx, tx)
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		var names findNames
		for _, s := range lost {
			names.add(s.Name)
		}
		r.add("rows", findWarning, names.count, repairHint, "%s of OAuth servers that are gone: %s", plural(names.count, "token"), &names)
		r.canMend(mending{Kind: mendRows})
	}
	if err := checkRecords(ctx, tx, r); err != nil {
		return err
	}
	if err := checkMemories(ctx, tx, r); err != nil {
		return err
	}
	if err := checkChanges(ctx, tx, r); err != nil {
		return err
	}
	for _, x := range wordIndexes() {
		if err := x.check(ctx, tx, r); err != nil {
			return err
		}
	}
	return checkValues(ctx, tx, r)
}

func (o orphanRule) check(ctx context.Context, tx *sql.Tx, r *vaultReport, level, do string) error {
	if there, err := hasTable(ctx, tx, o.table); err != nil || !there {
		return err // an older schema
	}
	var names findNames
	err := eachRow(ctx, tx, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names.add(name)
		return err
	}, `SELECT coalesce(`+o.name+`, '') FROM `+o.table+` WHERE `+o.where)
	if err == nil && names.count > 0 {
		r.add("rows", level, names.count, do, "%s: %s %s: %s", o.table, plural(names.count, "row"), o.what, &names)
		if do == repairHint {
			r.canMend(mending{Kind: mendRows})
		}
	}
	return err
}

// orphanTokens lists the OAuth secrets that belong to no server.
func orphanTokens(ctx context.Context, tx *sql.Tx) (lost []secretInfo, err error) {
	owned := map[string]bool{}
	err = eachRow(ctx, tx, func(r *sql.Rows) error {
		var server string
		err := r.Scan(&server)
		owned[oauthSecretPrefix(server)] = true
		return err
	}, `SELECT name FROM mcp_servers`)
	if err != nil {
		return nil, err
	}
	err = eachRow(ctx, tx, func(r *sql.Rows) error {
		var s secretInfo
		err := r.Scan(&s.Profile, &s.Name)
		if i := strings.LastIndexByte(s.Name, '-'); i >= 0 && !owned[s.Name[:i+1]] {
			lost = append(lost, s)
		}
		return err
	}, `SELECT profile, name FROM secrets WHERE substr(name, 1, ?) = ?`, len(oauthPrefix), oauthPrefix)
	return lost, err
}

// wordIndex is an index of words and what it is of: Row gives the row of the index that a row of From has where Where holds.
type wordIndex struct {
	Name, From, Where, Row string
	ID, Thing              string // the column that a finding shows, and what it calls a row
	Texts                  string // columns that are indexed
	add                    func(ctx context.Context, tx *sql.Tx, row int64, texts []string) error
}

func wordIndexes() []wordIndex {
	return []wordIndex{{
		Name: "records_fts", From: "records", Where: "text = 1", Row: "seq", ID: "id", Thing: "record", Texts: "body, origin",
		add: func(ctx context.Context, tx *sql.Tx, row int64, t []string) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO records_fts (rowid, body, origin) VALUES (?, ?, ?)`, row, indexText(t[0]), t[1])
			return err
		},
	}, {
		Name: "memories_fts", From: "memories", Where: "TRUE", Row: "seq", ID: "id", Thing: "memory", Texts: "text, key, tags",
		add: func(ctx context.Context, tx *sql.Tx, row int64, t []string) error {
			return indexMemory(ctx, tx, row, memory{Text: t[0], Key: t[1], Tags: tagList(t[2])})
		},
	}, {
		Name: "messages_fts", From: "messages AS m JOIN sessions AS s ON s.id = m.session", Where: "m.role <> '" + messageSummary + "' AND m.content <> ''",
		Row: "s.seq << 32 | m.seq", ID: "s.id || '/' || m.seq", Thing: "message", Texts: "m.role, m.content",
		add: func(ctx context.Context, tx *sql.Tx, row int64, t []string) error {
			return indexMessage(ctx, tx, row, t[0], t[1])
		},
	}}
}

// orphans picks the rows of the index without what they are of.
//
//go:noinline for size: it is called in many places
func (x wordIndex) orphans() string {
	return `id NOT IN (SELECT ` + x.Row + ` FROM ` + x.From + ` WHERE ` + x.Where + `)`
}

// missing picks what has no row in the index.
func (x wordIndex) missing() string {
	return ` FROM ` + x.From + ` WHERE ` + x.Where + ` AND ` + x.Row + ` NOT IN (SELECT id FROM ` + x.Name + `_docsize)`
}

// check holds the index against what it is of.
func (x wordIndex) check(ctx context.Context, tx *sql.Tx, r *vaultReport) error {
	if there, err := hasTable(ctx, tx, x.Name); err != nil || !there {
		return err
	}
	var extra int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM `+x.Name+`_docsize WHERE `+x.orphans()).Scan(&extra); err != nil {
		return err
	}
	if extra > 0 {
		r.add("rows", findWarning, extra, repairHint, "%s: %s of the words' index without a %s", x.Name, plural(extra, "row"), x.Thing)
		r.canMend(mending{Kind: mendRows})
	}
	var unindexed findNames
	err := eachRow(ctx, tx, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		unindexed.add(id)
		return err
	}, `SELECT `+x.ID+x.missing())
	if err == nil && unindexed.count > 0 {
		r.add("rows", findWarning, unindexed.count, repairHint, "%s: %s that no search finds: %s", strings.TrimSuffix(x.Name, wordsSuffix), plural(unindexed.count, "text"), &unindexed)
		r.canMend(mending{Kind: mendRows})
	}
	return err
}

// repair writes the words anew that the index lacks.
func (x wordIndex) repair(ctx context.Context, tx *sql.Tx) (n int, err error) {
	if there, err := hasTable(ctx, tx, x.Name); err != nil || !there {
		return 0, err
	}
	columns := strings.Count(x.Texts, ",") + 1
	for {
		var row int64
		texts, targets := make([]string, columns), []any{&row}
		for i := range texts {
			targets = append(targets, &texts[i])
		}
		err := tx.QueryRowContext(ctx, `SELECT `+x.Row+`, `+x.Texts+x.missing()+` LIMIT 1`).Scan(targets...)
		if errors.Is(err, sql.ErrNoRows) {
			return n, nil
		}
		if err == nil {
			err = x.add(ctx, tx, row, texts)
		}
		if err != nil {
			return n, err
		}
		n++
	}
}

// checkRecords holds each record against its SHA-256 and its size.
func checkRecords(ctx context.Context, tx *sql.Tx, r *vaultReport) error {
	var changed findNames
	err := eachRow(ctx, tx, func(rows *sql.Rows) error {
		var id, sum string
		var size int64
		var body []byte
		if err := rows.Scan(&id, &size, &sum, &body); err != nil {
			return err
		}
		if sha256Hex(body) != sum || int64(len(body)) != size {
			changed.add(id)
		}
		return nil
	}, `SELECT id, size, sha256, body FROM records`)
	if err == nil && changed.count > 0 {
		r.add("rows", findError, changed.count, "restore a backup, or tai record delete ID", "records: %s no longer what was stored: %s", plural(changed.count, "body"), &changed)
	}
	return err
}

// checkMemories holds each memory against its SHA-256.
func checkMemories(ctx context.Context, tx *sql.Tx, r *vaultReport) error {
	if there, err := hasTable(ctx, tx, "memories"); err != nil || !there {
		return err
	}
	var changed findNames
	err := eachRow(ctx, tx, func(rows *sql.Rows) error {
		var id, text, sum string
		err := rows.Scan(&id, &text, &sum)
		if err == nil && sha256Hex([]byte(text)) != sum {
			changed.add(id)
		}
		return err
	}, `SELECT id, text, sha256 FROM memories`)
	if err == nil && changed.count > 0 {
		r.add("rows", findError, changed.count, "restore a backup, or tai memory delete ID", "memories: %s no longer what was stored: %s", plural(changed.count, "text"), &changed)
	}
	return err
}

// checkChanges holds what is kept of each changed file against its SHA-256 and its size; one that would be put back wrong is worse than none.
func checkChanges(ctx context.Context, tx *sql.Tx, r *vaultReport) error {
	if there, err := hasTable(ctx, tx, "changes"); err != nil || !there {
		return err
	}
	var changed findNames
	err := eachRow(ctx, tx, func(rows *sql.Rows) error {
		var id, sum string
		var step, size int64
		var body []byte
		if err := rows.Scan(&id, &step, &size, &sum, &body); err != nil {
			return err
		}
		if sha256Hex(body) != sum || int64(len(body)) != size {
			changed.add(fmt.Sprintf("%s/%d", id, step))
		}
		return nil
	}, `SELECT id, step, size, before, body FROM changes WHERE kind IN (?, ?) AND before <> ''`, changeFile, changeLink)
	if err == nil && changed.count > 0 {
		r.add("rows", findError, changed.count, "restore a backup; file_undo must not be used for these", "changes: %s no longer what was stored: %s", plural(changed.count, "body"), &changed)
	}
	return err
}

// columnKind is what the schema says of one column.
type columnKind struct{ table, column, kind string }

// checkValues looks at every value but the records' bodies: of its column's type, valid UTF-8, and JSON where the name says so. A blob in
// a column for text is a sealed value.
func checkValues(ctx context.Context, tx *sql.Tx, r *vaultReport) error {
	var columns []columnKind
	err := eachRow(ctx, tx, func(rows *sql.Rows) error {
		var c columnKind
		err := rows.Scan(&c.table, &c.column, &c.kind)
		columns = append(columns, c)
		return err
	}, `
		SELECT l.name, i.name, i.type
		FROM pragma_table_list AS l, pragma_table_info(l.name) AS i
		WHERE l.schema = 'main' AND l.type = 'table' AND l.name NOT LIKE 'sqlite\_%' ESCAPE '\'
			AND i.type IN ('TEXT', 'INTEGER')
		ORDER BY l.name, i.cid`)
	if err != nil {
		return err
	}
	for _, c := range columns {
		faults := map[string]int{}
		err := eachRow(ctx, tx, func(rows *sql.Rows) error {
			var value any
			err := rows.Scan(&value)
			if fault := c.fault(value); fault != "" {
				faults[fault]++
			}
			return err
		}, `SELECT `+quoteName(c.column)+` FROM `+quoteName(c.table))
		if err != nil {
			return err
		}
		for _, fault := range []string{"of another type", "that are no UTF-8", "that are no JSON"} {
			if n := faults[fault]; n > 0 {
				r.add("rows", findError, n, "restore a backup", "%s.%s: %s %s", c.table, c.column, plural(n, "value"), fault)
			}
		}
	}
	return nil
}

func (c columnKind) fault(value any) string {
	switch v := value.(type) {
	case int64:
		if c.kind != "INTEGER" {
			return "of another type"
		}
	case []byte:
		if c.kind != "TEXT" {
			return "of another type"
		}
	case string:
		switch {
		case c.kind != "TEXT":
			return "of another type"
		case !utf8.ValidString(v):
			return "that are no UTF-8"
		case v != "" && (strings.HasSuffix(c.column, "_json") || c.column == "tool_calls") && !json.Valid([]byte(v)):
			return "that are no JSON"
		}
	case nil:
		if c.table != "profiles" { // a NULL stands only where a primary key of old allows it
			return "of another type"
		}
	default:
		return "of another type"
	}
	return ""
}

// compareSchema holds the tables and indexes against those of a fresh vault of the same number.
func compareSchema(ctx context.Context, tx, fresh *sql.Tx, r *vaultReport) error {
	have, err := readSchema(ctx, tx)
	if err != nil {
		return err
	}
	want, err := readSchema(ctx, fresh)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch got, ok := have[name]; {
		case !ok:
			r.add("schema", findError, 1, "restore a backup", "%s is missing", name)
		case got != want[name]:
			r.add("schema", findError, 1, "restore a backup", "%s is not the one that tai makes", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, ok := want[name]; !ok {
			r.add("schema", findWarning, 1, "", "%s is none of tai's; something else wrote it", visibleLine(clip(name, 100)))
		}
	}
	return nil
}

// readSchema maps each thing of the schema to its SQL; what SQLite makes for itself is left out.
func readSchema(ctx context.Context, tx *sql.Tx) (map[string]string, error) {
	found := map[string]string{}
	err := eachRow(ctx, tx, func(r *sql.Rows) error {
		var kind, name, text string
		err := r.Scan(&kind, &name, &text)
		found[kind+" "+name] = text
		return err
	}, `SELECT type, name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_stat%' ESCAPE '\'`)
	return found, err
}

const wordsSuffix = "_fts" // of the name of an index of words

// measureTables adds up the pages of each table with its indexes; an index of words counts as one.
func measureTables(ctx context.Context, tx *sql.Tx, rows map[string]int64, r *vaultReport) error {
	bytes := map[string]int64{}
	var order []string
	err := eachRow(ctx, tx, func(q *sql.Rows) error {
		var name string
		var n int64
		if err := q.Scan(&name, &n); err != nil {
			return err
		}
		if i := strings.Index(name, wordsSuffix); i >= 0 {
			name = name[:i+len(wordsSuffix)]
		}
		if _, ok := bytes[name]; !ok {
			order = append(order, name)
		}
		bytes[name] += n
		return nil
	}, `
		SELECT coalesce(s.tbl_name, d.name), sum(d.pgsize)
		FROM dbstat AS d LEFT JOIN sqlite_schema AS s ON s.name = d.name
		WHERE d.aggregate = TRUE
		GROUP BY 1
		ORDER BY 2 DESC, 1`)
	for _, name := range order {
		count := rows[name]
		if strings.HasSuffix(name, wordsSuffix) {
			count = rows[name+"_docsize"]
		}
		r.Tables = append(r.Tables, tableSize{name, count, bytes[name]})
	}
	return err
}

// repairRows drops what checkRows calls left over and writes the words of records anew that the index lacks. It returns what it did.
func repairRows(ctx context.Context, tx *sql.Tx) (done []string, err error) {
	drop := func(table, where, what string, args ...any) error {
		if there, err := hasTable(ctx, tx, table); err != nil || !there {
			return err
		}
		res, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE `+where, args...)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil {
			return err
		} else if n > 0 {
			done = append(done, fmt.Sprintf("%s: %s %s dropped", table, plural(int(n), "row"), what))
		}
		return nil
	}
	for _, rule := range orphanRules() {
		if err := drop(rule.table, rule.where, rule.what); err != nil {
			return nil, err
		}
	}
	lost, err := orphanTokens(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, s := range lost {
		if err := drop("secrets", `profile = ? AND name = ?`, "of an OAuth server that is gone", s.Profile, s.Name); err != nil {
			return nil, err
		}
	}
	for _, x := range wordIndexes() {
		if err := drop(x.Name, `rowid IN (SELECT id FROM `+x.Name+`_docsize WHERE `+x.orphans()+`)`, "without a "+x.Thing); err != nil {
			return nil, err
		}
		n, err := x.repair(ctx, tx)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			done = append(done, fmt.Sprintf("%s: %s can be found again", strings.TrimSuffix(x.Name, wordsSuffix), plural(n, "text")))
		}
	}
	return done, nil
}
