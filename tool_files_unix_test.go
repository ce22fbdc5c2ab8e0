//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A named pipe is turned away before it is opened, which would wait for its writer for ever.
func TestFilePipe(t *testing.T) {
	w, _ := workspaceDirs(t)
	if err := syscall.Mkfifo(filepath.Join(w.root, "pipe"), 0o600); err != nil {
		skipMissing(t, "no named pipes here: %v", err)
	}
	box := newToolsBox(t, modePrompt, nil, append(fileTools(w), searchTools(w)...)...)
	for name, args := range map[string]string{"file_read": `{"path":"pipe"}`, "text_search": `{"pattern":"x","path":"pipe"}`} {
		if r := toolsRun(t, box, name, args); !r.IsError || !strings.Contains(r.Text, "is no regular file") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := toolsRun(t, box, "text_search", `{"pattern":"two"}`); r.IsError || !strings.Contains(r.Text, "in.txt:2: two") {
		t.Errorf("a search beside a pipe: %+v", r)
	}
}
