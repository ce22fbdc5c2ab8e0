package main

import "testing"

// F18: what people ask for every day finds the native tool for it first, among all of them.
func TestF18EverydayQueries(t *testing.T) {
	t.Parallel()
	box := newToolsBox(t, modePrompt, nil, rankNatives(t)...)
	for _, tc := range [][2]string{
		{"find TODO in the code", "text_search"}, {"where is this function called in the source code", "text_search"}, {"commit my changes with a message", "git_commit"}, {"show the last commits", "git_log"},
		{"which files are staged or untracked", "git_status"}, {"diff of what is not staged", "git_diff"}, {"rename a file", "file_move"}, {"delete the old log files", "file_delete"}, {"undo the last change", "file_undo"},
		{"fetch this web page", "http_get"}, {"send a POST request to an API", "http_request"}, {"run the tests", "shell_run"}, {"start the dev server in the background", "proc_start"},
		{"stop the server that runs in the background", "proc_stop"}, {"read the output of the background command", "proc_read"}, {"how much disk space is free", "sys_info"}, {"remember that I prefer tabs", "memory_save"},
		{"what did we talk about last week", "session_search"}, {"query a csv file with SQL", "table_query"}, {"insert a row into the sqlite database", "sqlite_exec"}, {"list the tables of a sqlite database", "sqlite_query"},
		{"apply this patch", "file_patch"}, {"replace a word in a file", "file_edit"}, {"create a new file", "file_write"}, {"list the files in this folder", "dir_list"}, {"find all png files", "file_find"},
		{"add an MCP server from this config", "mcp_add"}, {"how many tokens were used", "usage_report"}, {"which models can I use", "model_list"}, {"would this command be allowed", "policy_check"}, {"ask me which one I want", "ask_user"},
	} {
		found, _, err := box.search(t.Context(), toolQuery{Words: tc[0], Limit: 4})
		got := ""
		for _, f := range found {
			got += " " + f.Name
		}
		if err != nil || len(found) == 0 || found[0].Name != tc[1] {
			t.Errorf("%q finds%s, %v, want %s first", tc[0], got, err, tc[1])
		}
	}
}
