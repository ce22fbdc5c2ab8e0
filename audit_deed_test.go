package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// fakeSyncedFile counts the bytes that were written and those that were on disk at the last sync.
type fakeSyncedFile struct {
	auditFile
	written, synced int
}

func (f *fakeSyncedFile) Write(b []byte) (int, error) {
	n, err := f.auditFile.Write(b)
	f.written += n
	return n, err
}

func (f *fakeSyncedFile) Sync() error {
	f.synced = f.written
	return f.auditFile.Sync()
}

// An act begins when what leads to it is on disk; one that is refused, or cannot be made durable, does not begin (AUD-07).
func TestAUD07DeedOnDiskFirst(t *testing.T) {
	t.Parallel()
	refused := errors.New("no")
	for _, tc := range []struct {
		name          string
		ask, disk, do error
		acts          bool
		last, outcome string
	}{
		{"done", nil, nil, nil, true, auditCallCompleted, auditOK},
		{"failed", nil, nil, errors.New("broken"), true, auditCallFailed, auditError},
		{"refused", refused, nil, nil, false, auditCallBlocked, auditDenied},
		{"not on disk", nil, syscall.EIO, nil, false, auditCallStarted, ""},
	} {
		a := auditTestLog(t)
		file := &fakeSyncedFile{}
		a.open = func(name string) (auditFile, error) {
			f, err := openNewLog(name)
			file.auditFile = &fakeAuditFile{auditFile: f, room: -1, syncErr: tc.disk}
			return file, err
		}
		acted := false
		err := a.perform(deed{Kind: "secret-set", Subject: "A"},
			func() (string, error) { return "rule", tc.ask },
			func() (string, error) {
				if acted = true; file.synced != file.written || file.written == 0 {
					t.Errorf("%s: %d of %d bytes are on disk when it begins", tc.name, file.synced, file.written)
				}
				return "", tc.do
			})
		if want := errors.Join(tc.ask, tc.disk, tc.do); (err == nil) != (want == nil) || acted != tc.acts {
			t.Errorf("%s: %v, acted %v; want %v, %v", tc.name, err, acted, want, tc.acts)
		}
		var last auditRecord
		text, err := os.ReadFile(a.path())
		if err != nil {
			t.Fatal(err)
		}
		if err := readAudit(bytes.NewReader(text), func(r auditRecord) bool { last = r; return true }); err != nil || last.Event != tc.last || last.Outcome != tc.outcome {
			t.Errorf("%s: the log ends with %s %q, want %s %q; %v", tc.name, last.Event, last.Outcome, tc.last, tc.outcome, err)
		}
		if err := a.close(); (err == nil) != (tc.disk == nil) {
			t.Errorf("%s: close: %v", tc.name, err)
		}
	}
}

// AUD-09: a secret at the place where a long field is cut is masked whole, not cut in two.
func TestAUD09FieldBorder(t *testing.T) {
	t.Parallel()
	a := auditTestLog(t)
	a.cfg.Redact = redactOf("TOKEN", "tok-1234567-and-more").text
	for before := range 40 {
		auditTestRecord(t, a, auditEvent{Event: auditCallRequested, Subject: strings.Repeat("x", auditFieldMax-before) + "tok-1234567-and-more"})
	}
	if text := strings.Join(auditTestLines(t, a), "\n"); strings.Contains(text, "tok-") {
		t.Errorf("a part of the secret is left: %s", text)
	}
	if err := a.close(); err != nil {
		t.Error(err)
	}
}
