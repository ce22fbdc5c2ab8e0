package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkVaultTools takes each tool over memories, sessions, audit and usage once through the toolbox, with its lines in the run log.
func BenchmarkVaultTools(b *testing.B) {
	v, dir := vaultAt(b, b.TempDir()), b.TempDir()
	open := func(context.Context) (*vault, error) { return v, nil }
	w, err := openWorkspace(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	tools := append(memoryTools(open, func(s string) string { return s }), sessionTools(open)...)
	tools = append(append(tools, auditTools(w, []string{dir}, time.Now, nil)...), usageTools(usageSource{Vault: open, Dirs: []string{dir}, Now: time.Now})...)
	log := newAuditLog(auditConfig{Dir: filepath.Join(b.TempDir(), "runs"), Origin: "test", Now: time.Now})
	defer log.close()
	box, err := newToolbox(tools, newPolicy(policyConfig{Mode: modeAllow}), log, open, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	messageTestSession(b, v, "tea", "user when is the tea ready?", "assistant at four")
	for range 20 {
		auditTestCalls(b, dir, "cli", time.Now(), auditEvent{Kind: toolKind, Subject: "file_read", Outcome: auditOK, Data: json.RawMessage(`{"path":"a"}`)})
	}
	var session string
	if err := v.db.QueryRow(`SELECT id FROM sessions`).Scan(&session); err != nil {
		b.Fatal(err)
	}
	for _, call := range [][2]string{{"memory_save", `{"text":"make","key":"build"}`}, {"memory_search", `{"query":"make"}`}, {"session_search", `{"query":"tea"}`}, {"session_read", `{"id":"` + session + `"}`},
		{"audit_query", `{"tool":"file_read"}`}, {"usage_report", `{}`}, {"usage_report", `{"by":"tool"}`}} {
		b.Run(call[0]+call[1][:2], func(b *testing.B) {
			for b.Loop() {
				if r, err := box.dispatch(b.Context(), toolCall{Name: call[0], Args: json.RawMessage(call[1])}); err != nil || r.IsError {
					b.Fatal(r, err)
				}
			}
		})
	}
}
