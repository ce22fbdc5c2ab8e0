package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// layerOf gives each file its layer, lowest first. A file may name only files of a lower layer.
var layerOf = map[string]float64{
	"escape.go": 0.0, "escape_answer.go": 0.1, "seal.go": 0.0, "json.go": 0.05, "toml_values.go": 0.0, "toml.go": 0.05,
	"mcp_stdio_unix.go": 0.0, "mcp_stdio_linux.go": 0.0, "mcp_stdio_windows.go": 0.0,
	"term_linux.go": 0.0, "term_darwin.go": 0.0, "term_windows.go": 0.0, "term_other.go": 0.0, "term.go": 0.1,
	"schema_value.go": 0.07, "schema_pattern.go": 0.07, "schema_apply.go": 0.12, "schema_strict.go": 0.1, "schema_validate.go": 0.15,
	"mcp_stdio_bsd.go": 0.0, "mcp_stdio_frame.go": 0.0, "mcp_stdio_env.go": 0.9, "mcp_tools.go": 2.05,
	"canon.go": 0.1, "schema.go": 0.1, "sse.go": 0.1, "redact_forms.go": 0.07, "secret_shape.go": 0.15, "private_file.go": 0.1, "known.go": 5.9, "output.go": 1.0, "entry_tokens.go": 2.1, "redact.go": 0.1, "httpclient.go": 0.1,
	"mcp_wire.go": 0.2, "mcp_http_reply.go": 0.3,
	"vault_file_unix.go": 0.0, "vault_file_windows.go": 0.0, "vault_schema.go": 0.4, "vault_file.go": 0.3,
	"vault.go": 1.0, "mcp_stdio.go": 1.0, "mcp_http.go": 1.0, "chat.go": 1.0,
	"vault_records.go": 1.1, "vault_secrets.go": 1.1, "vault_sessions.go": 1.1,
	"vault_mcp.go": 2.0, "mcp_client.go": 2.0, "audit.go": 2.0, "shell.go": 2.0, "shell_parse.go": 1.8, "shell_scripts.go": 1.85, "shell_tables.go": 1.87, "shell_programs.go": 1.9, "shell_outside.go": 1.95, "shell_below.go": 1.9, "shell_git.go": 1.85,
	"expand.go": 3.0, "normalize_json.go": 3.05, "normalize_name.go": 3.05, "normalize_text.go": 3.1, "normalize_fields.go": 3.1,
	"normalize_entry.go": 3.2, "normalize_registry.go": 3.25, "normalize_find.go": 3.3, "normalize.go": 3.4,
	"policy.go": 2.1, "policy_consent.go": 2.05, "policy_diff.go": 2.0, "policy_presets.go": 2.06,
	"glob.go": 0.0, "chat_endpoint.go": 0.1, "chat_wire.go": 0.3, "chat_fit.go": 0.4, "workspace.go": 1.0,
	"tools.go": 3.0, "tool_paths.go": 3.5, "tool_files.go": 4.0, "tool_search.go": 4.0, "tool_shell.go": 4.0, "tool_ask.go": 4.0,
	"rank_words.go": 0.0, "rank_tables.go": 0.01, "rank_message.go": 0.02, "rank.go": 0.1, "rank_score.go": 0.2, "tools_select.go": 3.1, "tool_find.go": 4.0,
	"agent.go": 5.0, "mcp_serve.go": 6.0, "mcp_serve_http.go": 6.1,
	"compact.go": -0.1, "version.go": 0.0, "order.go": 0.0, "json_text.go": 0.03,
	"mcp_names.go": 4.0, "mcp_results.go": 4.0, "mcp_pins.go": 4.0, "mcp_views.go": 4.2, "mcp_moves.go": 4.4, "mcp_bridge.go": 4.3, "mcp_bridge_memo.go": 4.35, "mcp_bridge_call.go": 4.4, "mcp_register.go": 4.4,
	"tool_mcp.go": 5.0, "ask.go": 5.8, "screen_wrap.go": 5.85, "cli.go": 5.9, "app.go": 6.0, "cmd.go": 6.1,
	"cmd_mcp_call.go": 6.2, "cmd_vault.go": 6.2, "cmd_audit.go": 6.25, "cmd_help.go": 6.2, "cmd_mcp_moves.go": 6.25, "cmd_mcp.go": 6.3, "cmd_tools.go": 6.3,
	"cmd_serve.go": 6.2, "cmd_resolve.go": 6.4, "repl.go": 6.5,
	"audit_line.go": 2.05, "audit_verify.go": 2.1,
	"audit_report_style.go": 0.0, "audit_report.go": 2.3, "audit_report_svg.go": 5.95, "audit_report_html.go": 5.96, "cmd_audit_report.go": 6.3, "audit_head.go": 0.4, "vault_audit.go": 1.2, "audit_keep.go": 1.9, "audit_runs.go": 2.2, "audit_deed.go": 2.1,
	"vault_keys.go": 0.4, "vault_seal.go": 1.05, "vault_reseal.go": 1.15, "cmd_seal.go": 6.2, "app_seal.go": 6.05,
	"vault_backup.go": 1.2, "vault_check_report.go": 0.15, "vault_check_rows.go": 1.25, "vault_check_seal.go": 1.3, "vault_check_files.go": 2.25, "vault_check.go": 2.3, "cmd_vault_check.go": 6.2,
	"edit_keys.go": 0.0, "edit_width.go": 0.05, "edit_buffer.go": 0.1, "edit_render.go": 0.1, "edit_complete.go": 0.15, "edit_history.go": 0.35, "edit_line.go": 0.4, "edit.go": 5.7, "edit_outside.go": 5.95,
	"repl_complete.go": 6.45, "repl_lines.go": 6.46,
	"vault_trust.go": 1.2, "policy_store.go": 2.07, "tools_foresee.go": 3.05, "tool_policy.go": 4.0, "mcp_bridge_foresee.go": 4.45, "cmd_approval.go": 6.35, "app_approvals.go": 6.05,
	"vault_discard.go": 2.05, "cmd_seal_discard.go": 6.15,
	"chat_json.go": 0.2, "chat_error.go": 0.25, "chat_history.go": 0.45, "chat_fit_deep.go": 0.45, "chat_openai.go": 0.5, "chat_anthropic.go": 0.5,
	"vault_models.go": 1.2, "chat_find.go": 1.3, "tool_model.go": 4.0, "cmd_model.go": 6.3,
	"diff_unified.go": 0.05, "patch_parse.go": 0.1, "patch_apply.go": 3.65, "edit_text.go": 3.6, "vault_changes.go": 1.1, "tool_places.go": 3.6, "tool_trash.go": 3.65,
	"tool_change.go": 3.7, "tool_plan.go": 3.8, "tool_undo.go": 4.0, "tool_move.go": 4.0, "tool_write.go": 4.1, "tool_patch.go": 4.2, "tool_list.go": 4.1, "tool_family.go": 4.3,
	"proc_output.go": 0.0, "proc.go": 1.0, "git_parse.go": 0.1, "sys_disk.go": 0.0, "sys_disk_windows.go": 0.0, "sys_disk_other.go": 0.0, "git.go": 4.05,
	"tool_inspect.go": 4.1, "tool_proc.go": 4.1, "tool_sys.go": 4.15, "tool_git.go": 4.12, "tool_git_commit.go": 4.13,
	"agent_history.go": 4.9, "agent_shorten.go": 4.92, "agent_calls.go": 5.1, "agent_tools.go": 5.1, "agent_compact.go": 5.1, "agent_notes.go": 5.95, "turn_sink.go": 6.22,
	"cmd_session.go": 6.26, "cmd_prompt.go": 6.52, "cmd_repl.go": 6.53,
	"repl_results.go": 6.21, "cmd_repl_show.go": 6.53,
	"tool_record.go": 4.16, "tool_secret.go": 4.4, "tool_profile.go": 4.16, "tool_plan_submit.go": 4.16, "tool_todo.go": 4.95, "ask_plan.go": 5.96, "app_mode.go": 6.05, "cmd_audit_all.go": 6.26,
	"charset_tables.go": 0.0, "html_token.go": 0.0, "charset.go": 0.1, "html_write.go": 0.1, "html_table.go": 0.2, "html_text.go": 0.3, "net_reach.go": 0.2, "policy_net.go": 2.05, "http_fetch.go": 2.2, "http_body.go": 0.2, "tool_http.go": 4.2, "tool_http_request.go": 4.3,
	"sqlite_text.go": 0.05, "sys_memory.go": 0.0, "sys_memory_windows.go": 0.0, "sqlite_guard.go": 0.5, "sqlite_run.go": 3.1, "sqlite_file.go": 3.65, "sqlite_rows.go": 3.66, "tool_sqlite.go": 4.15, "table_infer.go": 0.1, "table_csv.go": 0.2, "table_load.go": 3.7, "table_json.go": 3.75, "tool_table.go": 4.2,
	"vault_search.go": 1.05, "vault_messages.go": 1.08, "vault_memories.go": 1.15, "tool_memory.go": 4.12, "tool_session.go": 4.95, "audit_rows.go": 2.3, "tool_audit.go": 4.15, "tool_usage.go": 4.2, "cmd_memory.go": 6.25, "cmd_usage.go": 6.27,
	"asking.go": 0.0, "tools_narrow.go": 4.45, "agent_sub.go": 5.2, "tool_agent.go": 5.3, "ask_desk.go": 5.85, "app_agents.go": 6.05,
	"mcp_serve_chat.go": 6.05, "mcp_serve_stdio.go": 6.15, "cmd_mcp_serve.go": 6.3, "cmd_serve_key.go": 6.54,
	"policy_trust.go": 2.0, "mcp_trust.go": 4.2, "cmd_trust_show.go": 6.36, "cmd_trust.go": 6.37, "client_config.go": 3.0, "cmd_client_config.go": 6.3,
	"mcp_challenge.go": 0.35, "mcp_oauth_find.go": 2.3, "mcp_oauth.go": 2.35, "vault_oauth.go": 1.2, "mcp_login.go": 4.45, "mcp_oauth_callback.go": 2.4,
	"open_browser.go": 5.9, "cmd_login.go": 6.35,
	"mcp_import.go": 5.95, "cmd_mcp_import.go": 6.35,
	"github_link.go": 0.1, "github_api.go": 2.3, "resolve_entries.go": 3.5, "resolve_answer.go": 3.6, "mcp_resolve.go": 4.5,
	"main.go": 7,
}

const (
	layerMaxFile = 700 // lines of a file
	layerMaxFunc = 80  // lines of a function
)

func layerFiles(t *testing.T) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset, files := token.NewFileSet(), map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = f
	}
	return fset, files
}

func TestLayers(t *testing.T) {
	_, files := layerFiles(t)
	owner := map[string][]string{} // a name may be declared once for each operating system
	for name, f := range files {
		if _, ok := layerOf[name]; !ok {
			t.Errorf("%s has no layer", name)
		}
		for id := range f.Scope.Objects {
			owner[id] = append(owner[id], name)
		}
	}
	for name, f := range files {
		for _, id := range f.Unresolved {
			for _, o := range owner[id.Name] {
				if o != name && layerOf[o] >= layerOf[name] {
					t.Errorf("%s (layer %v) names %s of %s (layer %v)", name, layerOf[name], id.Name, o, layerOf[o])
				}
			}
		}
	}
}

func TestStructure(t *testing.T) {
	fset, files := layerFiles(t)
	for name, f := range files {
		if n := fset.File(f.Pos()).LineCount(); n > layerMaxFile {
			t.Errorf("%s has %d lines, at most %d", name, n, layerMaxFile)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s has an init", name)
			}
			if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > layerMaxFunc {
				t.Errorf("%s: %s has %d lines, at most %d", name, fn.Name.Name, n, layerMaxFunc)
			}
		}
	}
}

// TestOneRequirement holds the design's rule: the standard library and modernc.org/sqlite, nothing else.
func TestOneRequirement(t *testing.T) {
	b, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		direct := strings.Contains(line, " v") && !strings.HasSuffix(line, "// indirect")
		if direct && !strings.Contains(line, "modernc.org/sqlite ") {
			t.Errorf("go.mod requires %q directly", line)
		}
	}
}
