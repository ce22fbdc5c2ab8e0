package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// auditSpoils are the ways in which a log stops taking lines between two calls. The log has a line when it is spoilt.
var auditSpoils = map[string]func(t *testing.T, a *auditLog){
	"disk full": func(t *testing.T, a *auditLog) { a.file = &fakeAuditFile{auditFile: a.file, room: 0} },
	"disk full after the requested line": func(t *testing.T, a *auditLog) {
		a.file = &onceAuditFile{auditFile: a.file}
	},
	"disk full, nothing can be cut": func(t *testing.T, a *auditLog) {
		a.file = &fakeAuditFile{auditFile: a.file, room: 60, noCut: true}
	},
	"sync fails": func(t *testing.T, a *auditLog) {
		a.file = &fakeAuditFile{auditFile: a.file, room: -1, syncErr: syscall.EIO}
	},
	"made read-only": func(t *testing.T, a *auditLog) {
		if err := os.Chmod(a.path(), 0o400); err != nil {
			t.Fatal(err)
		}
	},
	"removed": func(t *testing.T, a *auditLog) {
		if err := os.Remove(a.path()); err != nil {
			t.Fatal(err)
		}
	},
	"replaced": func(t *testing.T, a *auditLog) {
		if err := errors.Join(os.Rename(a.path(), a.path()+".old"), os.WriteFile(a.path(), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	},
	"cut": func(t *testing.T, a *auditLog) { // as a log rotation that copies does it
		if err := os.Truncate(a.path(), 10); err != nil {
			t.Fatal(err)
		}
	},
	"file closed": func(t *testing.T, a *auditLog) { a.file.Close() },
}

// onceAuditFile takes one write; then the disk is full.
type onceAuditFile struct {
	auditFile
	full bool
}

func (f *onceAuditFile) Write(b []byte) (int, error) {
	if f.full {
		return 0, syscall.ENOSPC
	}
	f.full = true
	return f.auditFile.Write(b)
}

// TestAUD06Dispatch: a native call that changes something does not run once its log no longer takes lines.
func TestAUD06Dispatch(t *testing.T) {
	t.Parallel()
	for name, spoil := range auditSpoils {
		ran := 0
		box := newToolsBox(t, modeDanger, nil, toolsPlain("change", toolHints{Destructive: true}, func(context.Context, toolCall) (toolResult, error) {
			ran++
			return toolResult{Text: "done"}, nil
		}))
		box.audit = newAuditLog(auditConfig{Dir: filepath.Join(box.dir, "spoilt"), Origin: "cli"})
		if r, err := box.dispatch(t.Context(), toolCall{Name: "change"}); err != nil || r.IsError || ran != 1 {
			t.Fatalf("%s: before: %+v %v, ran %d times", name, r, err, ran)
		}
		spoil(t, box.audit)
		if r, err := box.dispatch(t.Context(), toolCall{Name: "change"}); err == nil || ran != 1 || !strings.Contains(err.Error(), "run log") {
			t.Errorf("%s: %+v %v, ran %d times, want an error of the run log and no second run", name, r, err, ran)
		}
		box.audit.close() // may fail: the log is spoilt
	}
}

// TestAUD06Bridged: nor does a call of a server's tool go out.
func TestAUD06Bridged(t *testing.T) {
	t.Parallel()
	for name, spoil := range auditSpoils {
		r := newBridgeRig(t, modeDanger, "")
		received := filepath.Join(t.TempDir(), "received")
		r.add(t, stdioEntry(t, "s", fakeStdio{Log: received}))
		whole := r.cfg.Audit
		r.cfg.Audit = newAuditLog(auditConfig{Dir: filepath.Join(t.TempDir(), "spoilt"), Origin: "cli", Now: time.Now})
		if res, err := r.run1("s", "echo", `{"text":"first"}`); err != nil || res.IsError {
			t.Fatalf("%s: before: %+v %v", name, res, err)
		}
		spoil(t, r.cfg.Audit)
		if res, err := r.run1("s", "echo", `{"text":"second"}`); err == nil || !strings.Contains(err.Error(), "cannot be recorded") {
			t.Errorf("%s: %+v %v, want a refusal", name, res, err)
		}
		text, err := os.ReadFile(received)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "first") || strings.Contains(string(text), "second") {
			t.Errorf("%s: the server got %s", name, text)
		}
		r.cfg.Audit.close() // may fail: the log is spoilt
		r.cfg.Audit = whole
	}
}

// TestAUD11Dispatch: a call with 10 MB of arguments is logged by digest and size in short lines, and the digest is the one that
// approves it.
func TestAUD11Dispatch(t *testing.T) {
	t.Parallel()
	got := 0
	box := newToolsBox(t, modePrompt, nil, toolsPlain("change", toolHints{Destructive: true}, func(_ context.Context, c toolCall) (toolResult, error) {
		got = len(c.Args)
		return toolResult{Text: "done"}, nil
	}))
	text, _ := json.Marshal(strings.Repeat("\x01é\"\n 7 bytes", 10<<20/16))
	args := json.RawMessage(`{ "path" : ` + string(text) + ` , "n" : 1.0 }`)
	if len(args) < 10<<20 {
		t.Fatalf("%d bytes of arguments", len(args))
	}
	canon, err := canonicalJSON([]byte(`{"tool":"change","arguments":` + string(args) + `}`))
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256Hex(canon)
	box.toolbox.policy = newPolicy(policyConfig{Mode: modePrompt, ScopedFlag: true})
	if r, err := box.dispatch(t.Context(), toolCall{Name: "change", Args: args}); err != nil || !r.IsError || got != 0 || !strings.Contains(r.Hint+r.Text, digest) {
		t.Fatalf("without approval: %v %.300s %.300s, want a refusal that names %s", err, r.Text, r.Hint, digest)
	}
	box.toolbox.policy = newPolicy(policyConfig{Mode: modePrompt, Digests: []string{"change:" + digest}})
	if r, err := box.dispatch(t.Context(), toolCall{Name: "change", Args: args}); err != nil || r.IsError || got != len(plainNumbers(args)) {
		t.Fatalf("approved: %.200s %v, %d bytes came", r.Text, err, got)
	}
	file, err := os.Open(box.log.path())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	requested, size := 0, int64(0)
	err = readAudit(file, func(rec auditRecord) bool {
		line := int64(len(rec.appendLine(nil)))
		size += line
		if line > 1000 || len(rec.Data) > 0 && rec.Event != auditRunStarted {
			t.Errorf("line %d has %d bytes and %d of data", rec.Seq, line, len(rec.Data))
		}
		if rec.Event == auditCallRequested {
			if requested++; rec.Digest != digest || rec.Size != int64(len(args)) {
				t.Errorf("line %d: digest %s size %d, want %s %d", rec.Seq, rec.Digest, rec.Size, digest, len(args))
			}
		}
		return true
	})
	if err != nil || requested != 2 || size > 4000 {
		t.Errorf("%d requests in %d bytes, %v", requested, size, err)
	}
}
