package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func headTestKey(t testing.TB, fill byte) ed25519.PrivateKey {
	t.Helper()
	seed, err := newAuditKey(bytes.NewReader(bytes.Repeat([]byte{fill}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	key, err := auditKeyOf(seed)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func headTestPlain() auditHead {
	return auditHead{
		Run: "cli-0123456789abcdef", Origin: "cli", Path: "/home/me/runs/cli-0123456789abcdef.jsonl", Lines: 42, Hash: strings.Repeat("ab", 32),
		Started: time.Date(2026, 3, 1, 9, 0, 0, 5e8, time.FixedZone("", 3600)), Updated: time.Date(2026, 3, 1, 9, 0, 7, 0, time.UTC),
	}
}

func headTestSigned(t testing.TB) auditHead {
	t.Helper()
	h, err := headTestPlain().signed(headTestKey(t, 7))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// headTestMessage takes the message, the signature and the key out of an exported head, as mcp.md says and with none of tai's code.
func headTestMessage(t *testing.T, doc []byte) (message, signature, key []byte) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		t.Fatal(err)
	}
	text := func(name string) []byte {
		s, _ := m[name].(string)
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	signature, key = text("signature"), text("public_key")
	sum := sha256.Sum256(key)
	if got, want := m["fingerprint"], "sha256:"+hex.EncodeToString(sum[:]); got != want {
		t.Errorf("fingerprint %v, want %v", got, want)
	}
	for _, name := range []string{"signature", "public_key", "fingerprint"} {
		delete(m, name)
	}
	message, err := json.Marshal(m) // keys in order, no white space; the texts hold nothing that is escaped
	if err != nil {
		t.Fatal(err)
	}
	return message, signature, key
}

// AUD-03: what is exported can be checked by anyone with RFC 8032 and RFC 8785 alone.
func TestAUD03HeadIndependent(t *testing.T) {
	t.Parallel()
	h := headTestSigned(t)
	doc, err := h.export()
	if err != nil {
		t.Fatal(err)
	}
	message, signature, key := headTestMessage(t, doc)
	want := `{"head":"` + strings.Repeat("ab", 32) + `","lines":42,"origin":"cli","run":"cli-0123456789abcdef","started":"2026-03-01T08:00:00Z","time":"2026-03-01T09:00:07Z","type":"tai-audit-head","version":1}`
	if string(message) != want {
		t.Errorf("message %s, want %s", message, want)
	}
	if !ed25519.Verify(key, message, signature) {
		t.Error("the signature does not fit")
	}
	canon, err := canonicalJSON(message)
	if err != nil || string(canon) != string(message) || string(h.canonical()) != want {
		t.Errorf("signed is %s, canonical %s, %v", h.canonical(), canon, err)
	}
	if len(doc) > 1000 || len(doc) > auditHeadMax {
		t.Errorf("an exported head has %d bytes", len(doc))
	}
}

// AUD-03: the same by another program.
func TestAUD03HeadOpenSSL(t *testing.T) {
	t.Parallel()
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		skipMissing(t, "no openssl here")
	}
	h := headTestSigned(t)
	doc, err := h.export()
	if err != nil {
		t.Fatal(err)
	}
	message, signature, key := headTestMessage(t, doc)
	dir := t.TempDir()
	der, err := hex.DecodeString("302a300506032b6570032100") // SubjectPublicKeyInfo of Ed25519 (RFC 8410)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"message": message, "signature": signature, "key.der": append(der, key...), "edited": bytes.Replace(message, []byte("42"), []byte("41"), 1)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, good := range map[string]bool{"message": true, "edited": false} {
		cmd := exec.CommandContext(t.Context(), openssl, "pkeyutl", "-verify", "-rawin", "-pubin", "-keyform", "DER", "-inkey", "key.der", "-sigfile", "signature", "-in", name)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "rawin") || strings.Contains(string(out), "not supported") {
			skipMissing(t, "this openssl knows no Ed25519: %s", out)
		}
		if (err == nil) != good {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// AUD-03: whatever is changed in a signed head shows, but for where its log lay.
func TestAUD03HeadEdited(t *testing.T) {
	t.Parallel()
	good := headTestSigned(t)
	if err := good.verify(); err != nil {
		t.Fatal(err)
	}
	moved := good
	moved.Path = "/elsewhere"
	if err := moved.verify(); err != nil {
		t.Errorf("a log that was moved: %v", err)
	}
	other, err := headTestPlain().signed(headTestKey(t, 8))
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*auditHead){
		"run":           func(h *auditHead) { h.Run = "cli-0123456789abcdee" },
		"origin":        func(h *auditHead) { h.Run, h.Origin = "repl-0123456789abcdef", "repl" },
		"lines less":    func(h *auditHead) { h.Lines-- },
		"lines more":    func(h *auditHead) { h.Lines++ },
		"no lines":      func(h *auditHead) { h.Lines = 0 },
		"hash":          func(h *auditHead) { h.Hash = strings.Repeat("ac", 32) },
		"hash's case":   func(h *auditHead) { h.Hash = strings.Repeat("AB", 32) },
		"started":       func(h *auditHead) { h.Started = h.Started.Add(time.Second) },
		"updated":       func(h *auditHead) { h.Updated = h.Updated.Add(-time.Second) },
		"signature":     func(h *auditHead) { h.Signature = append([]byte{h.Signature[0] ^ 1}, h.Signature[1:]...) },
		"signature cut": func(h *auditHead) { h.Signature = h.Signature[:63] },
		"no signature":  func(h *auditHead) { h.Signature = nil },
		"key":           func(h *auditHead) { h.Key = other.Key },
		"no key":        func(h *auditHead) { h.Key = nil },
		"of another":    func(h *auditHead) { h.Signature = other.Signature },
	} {
		h := good
		edit(&h)
		if err := h.verify(); !errors.Is(err, errHeadForged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An exported head is read strictly.
func TestReadAuditHead(t *testing.T) {
	t.Parallel()
	h := headTestSigned(t)
	doc, err := h.export()
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAuditHead(doc)
	if err != nil || got.verify() != nil || got.Run != h.Run || got.Lines != h.Lines || !got.Started.Equal(h.Started) || !got.Updated.Equal(h.Updated) {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, tc := range []struct{ name, old, with, says string }{
		{"empty", string(doc), "", "not valid JSON"},
		{"large", "{", "{" + strings.Repeat(" ", auditHeadMax), "more than 4096 bytes"},
		{"more after it", "}\n", "}{}", "not valid JSON"},
		{"unknown field", "{", `{"path":"x",`, "unknown field"},
		{"twice", "{", `{"lines": 42,`, "twice"},
		{"other case", `"lines"`, `"Lines"`, "unknown field"},
		{"version", `"version": 1`, `"version": 2`, "version 2"},
		{"no version", `"version": 1,`, ``, "version 0"},
		{"type", auditHeadType, "other", "of type"},
		{"run", h.Run, "../../etc/passwd", "no name of a run"},
		{"origin", `"origin": "cli"`, `"origin": "mcp"`, "origin"},
		{"lines as text", `"lines": 42`, `"lines": "42"`, "not the expected JSON"},
		{"no lines", `"lines": 42`, `"lines": 0`, "no number of lines"},
		{"fraction", `"lines": 42`, `"lines": 42.5`, "not the expected JSON"},
		{"many lines", `"lines": 42`, `"lines": 9007199254740992`, "no number of lines"},
		{"hash", strings.Repeat("ab", 32), strings.Repeat("ab", 31), "hash"},
		{"time", "2026-03-01T09:00:07Z", "2026-03-01T09:00:07.5Z", "not spelled"},
		{"no time", "2026-03-01T09:00:07Z", "soon", "not both times"},
		{"fingerprint", "sha256:", "sha256:0", "fingerprint"},
		{"key", `"public_key": "`, `"public_key": "AAAA`, "bytes"},
		{"base64", `"signature": "`, `"signature": "*`, "signature"},
	} {
		edit := strings.Replace(string(doc), tc.old, tc.with, 1)
		if edit == string(doc) {
			t.Fatalf("%s: nothing was changed", tc.name)
		}
		if _, err := readAuditHead([]byte(edit)); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.says)
		}
	}
	if _, err := headTestPlain().signed(nil); err == nil {
		t.Error("signed without a key")
	}
	for _, bad := range []string{"", "00", strings.Repeat("zz", 32), strings.Repeat("0", 62)} {
		if _, err := auditKeyOf(secret(bad)); err == nil || len(bad) > 4 && strings.Contains(err.Error(), bad[:4]) {
			t.Errorf("key %q: %v", bad, err)
		}
	}
	for name, want := range map[string]bool{"cli-0123456789abcdef": true, "mcp-0123456789abcdef": true, "cli-0123456789abcdeF": false, "cli-0123456789abcde": false, "-0123456789abcdef": false, "c.i-0123456789abcdef": false, "cli": false, "a-cli-0123456789abcdef": false} {
		if got := isAuditRun(name); got != want {
			t.Errorf("isAuditRun(%q) = %v", name, got)
		}
	}
}

func FuzzReadAuditHead(f *testing.F) {
	h := headTestSigned(f)
	doc, err := h.export()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(doc)
	f.Add([]byte(`{"version":1,"type":"tai-audit-head","run":"\u0063li-0123456789abcdef"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readAuditHead(b)
		if err != nil {
			return
		}
		if again, err := h.export(); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		} else if back, err := readAuditHead(again); err != nil || back.statement() != h.statement() {
			t.Errorf("%+v reads back as %+v, %v", h, back, err)
		}
	})
}
