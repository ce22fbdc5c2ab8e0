// This file decides what a caller's SQL may do, statement by statement, from what SQLite says of it while it compiles it (https://sqlite.org/c3ref/set_authorizer.html).
// It is the first of several bars: a database that is only read is also opened so, and has query_only set.
package main

import (
	"fmt"
	"strings"

	"modernc.org/sqlite"
)

// sqlGuard is the authorizer of one connection. While on is false the tools' own statements are compiled.
type sqlGuard struct {
	writes bool
	on     bool
	why    string // the last refusal
}

// dataPump is the function by which rows are read; see dataConn.query.
const dataPump = "tai_rows"

// sqlReadPragmas are the pragmas that only read and take, if anything, the name of a table or index, or a number of faults.
// sqlStatePragmas read without a value and change something with one.
const (
	sqlReadPragmas = " table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list foreign_key_check database_list collation_list function_list" +
		" module_list pragma_list compile_options integrity_check quick_check page_count freelist_count data_version "
	sqlStatePragmas = " user_version application_id schema_version encoding page_size auto_vacuum journal_mode foreign_keys synchronous recursive_triggers query_only cache_size "
	sqlSetPragmas   = " user_version application_id defer_foreign_keys recursive_triggers optimize " // that sqlite_exec may give a value
	sqlNoFunctions  = " load_extension fts3_tokenizer " + dataPump + " "
	sqlModules      = " fts5 fts5vocab rtree rtree_i32 geopoly "
)

// judge is the sqlite.AuthorizerFn.
func (g *sqlGuard) judge(action sqlite.AuthorizerActionCode, arg1, arg2, _, _ string) sqlite.AuthorizerReturnCode {
	if !g.on {
		return sqlite.AuthorizerOK
	}
	why := g.refusal(action, arg1, arg2)
	if why == "" {
		return sqlite.AuthorizerOK
	}
	g.why = why
	return sqlite.AuthorizerDeny
}

// refusal says why an action is not allowed, "" if it is.
func (g *sqlGuard) refusal(action sqlite.AuthorizerActionCode, arg1, arg2 string) string {
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRead, sqlite.AuthRecursive:
		return ""
	case sqlite.AuthFunction:
		if sqlHolds(sqlNoFunctions, arg2) {
			return fmt.Sprintf("the function %s is not allowed", visibleLine(arg2))
		}
		return ""
	case sqlite.AuthPragma:
		return g.pragma(arg1, arg2)
	case sqlite.AuthAttach, sqlite.AuthDetach:
		return "no other database is attached, detached or written (ATTACH, DETACH, VACUUM); a call works on the one file of its path"
	case sqlite.AuthTransaction, sqlite.AuthSavepoint:
		return "a transaction is not begun or ended here; all statements of a call of sqlite_exec are one transaction already"
	}
	switch {
	case g.writes && action == sqlite.AuthCreateVTable && !sqlHolds(sqlModules, arg2):
		return fmt.Sprintf("virtual tables of the module %s are not allowed", visibleLine(arg2))
	case g.writes:
		return ""
	case (action == sqlite.AuthInsert || action == sqlite.AuthUpdate || action == sqlite.AuthDelete) && sqlShadow(arg1):
		return "" // an R-tree compiles its own writing statements when it is read; the database is read-only all the same
	}
	return "it would change the database, which is only read here; sqlite_exec changes one"
}

// sqlShadow reports the names that an R-tree gives its inner tables (https://sqlite.org/rtree.html, section 6.1).
func sqlShadow(table string) bool {
	return strings.HasSuffix(table, "_node") || strings.HasSuffix(table, "_rowid") || strings.HasSuffix(table, "_parent")
}

func (g *sqlGuard) pragma(name, value string) string {
	switch {
	case sqlHolds(sqlReadPragmas, name), value == "" && sqlHolds(sqlStatePragmas, name), g.writes && sqlHolds(sqlSetPragmas, name):
		return ""
	case sqlHolds(sqlStatePragmas, name):
		return fmt.Sprintf("PRAGMA %s can be read here, not set", visibleLine(name))
	}
	return fmt.Sprintf("PRAGMA %s is not allowed", visibleLine(name))
}

// explain puts the guard's reason in the place of SQLite's "not authorized".
func (g *sqlGuard) explain(err error) error {
	if err == nil || g.why == "" {
		return err
	}
	why := g.why
	g.why = ""
	return newError("refused: " + why)
}
