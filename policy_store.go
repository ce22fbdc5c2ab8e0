// This file changes the approvals.json and the trust.json of a workspace: several tais at once lose nothing, a reader sees the state before or
// after, and what somebody else wrote does not come to count by the way. It asks nobody and decides no call.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// errPolicyChanged says that a file is not the one that a person confirmed, so that nothing was changed.
var errPolicyChanged = errors.New("it holds what nobody here confirmed")

// policyFile is one policy file of a workspace as it is now. Text is nil where there is none. Known: it widens nothing, or its
// SHA-256 is among those that count.
type policyFile struct {
	Path, Hash string
	Text       []byte
	Presets    []preset    // of approvals.json, also those that do not count
	Trust      *trustRules // of trust.json; nil for another file, and where there is none
	Known      bool
}

// readApprovals reads approvals.json in dir, the .tai folder of a workspace. A file that cannot be relied on is an error that names it.
func readApprovals(dir string, trusted func(sha256 string) bool) (policyFile, error) {
	return readPolicyState(dir, approvalsName, parseApprovals, trusted)
}

// readConfig reads config.json likewise.
func readConfig(dir string, trusted func(sha256 string) bool) (policyFile, error) {
	return readPolicyState(dir, configName, parseConfigFile, trusted)
}

// readTrust reads trust.json likewise.
func readTrust(dir string, trusted func(sha256 string) bool) (policyFile, error) {
	return readPolicyState(dir, trustName, parseTrustFile, trusted)
}

func readPolicyState(dir, name string, parse func([]byte, bool, *workspacePolicy) error, trusted func(string) bool) (policyFile, error) {
	f := policyFile{Path: filepath.Join(dir, name), Known: true}
	b, err := readPolicyFile(dir, name)
	if err == nil && b == nil {
		return f, nil
	}
	var all, safe workspacePolicy
	if err == nil {
		err = joinErrors(parse(b, true, &all), parse(b, false, &safe))
	}
	if err != nil {
		return f, errorf("policy file %s: %w", f.Path, err)
	}
	f.Text, f.Hash, f.Presets = b, sha256Hex(b), all.Presets
	f.Known, f.Trust = len(safe.Notes) == 0 || trusted(f.Hash), all.Trust
	if !f.Known && f.Trust != nil {
		f.Trust = safe.Trust
	}
	return f, nil
}

// changeApprovals edits the presets of dir; see changePolicyFile.
func changeApprovals(ctx context.Context, v *vault, dir, confirmed string, widen bool, edit func([]preset) ([]preset, error)) error {
	return changePolicyFile(ctx, v, dir, approvalsName, readApprovals, confirmed, widen, func(f policyFile) ([]byte, error) {
		next, err := edit(slices.Clone(f.Presets))
		if err != nil {
			return nil, err
		}
		return approvalsText(next)
	})
}

// changeTrust edits the entries of dir's trust.json, a copy of which edit gets; see changePolicyFile.
func changeTrust(ctx context.Context, v *vault, dir, confirmed string, widen bool, edit func(map[string]trustEntry) error) error {
	return changePolicyFile(ctx, v, dir, trustName, readTrust, confirmed, widen, func(f policyFile) ([]byte, error) {
		next := map[string]trustEntry{}
		for _, name := range f.Trust.names() {
			e := f.Trust.Servers[name]
			e.Allow, e.Deny = slices.Clone(e.Allow), slices.Clone(e.Deny)
			next[name] = e
		}
		if err := edit(next); err != nil {
			return nil, err
		}
		return trustText(next)
	})
}

// changePolicyFile gives one file of dir the text that edit makes of it. Where widen is set the file must be one that counts, or have the
// SHA-256 confirmed, and the new one counts; else it is errPolicyChanged. Without widen the new file counts if the old one did.
func changePolicyFile(ctx context.Context, v *vault, dir, name string, read func(string, func(string) bool) (policyFile, error), confirmed string, widen bool, edit func(policyFile) ([]byte, error)) error {
	return v.changeTrusted(ctx, filepath.Join(dir, name), func(trusted func(string) bool) (trustedChange, error) {
		f, err := read(dir, trusted)
		if err != nil {
			return trustedChange{}, err
		}
		counts := f.Known || confirmed != "" && f.Hash == confirmed
		if widen && !counts {
			return trustedChange{}, errPolicyChanged
		}
		text, err := edit(f)
		if err != nil {
			return trustedChange{}, err
		}
		if err := writePolicyFile(dir, name, text); err != nil {
			return trustedChange{}, err
		}
		return trustedChange{Was: f.Hash, Now: sha256Hex(text), Text: string(text), Trust: counts}, nil
	})
}

// presetWatch reads the presets of a workspace anew when its approvals.json has changed, for a run that nobody starts again for it: a
// server. It is used under the lock of the policy that it serves.
type presetWatch struct {
	dir     string
	trusted func(sha256 string) bool
	note    func(string) // is told what is passed over
	seen    os.FileInfo  // of the file that was read last, nil for none
	fault   error        // why that could not be relied on
}

// newPresetWatch begins at the file as it is now. The caller reads the presets after it, so that no change is missed.
func newPresetWatch(dir string, trusted func(string) bool, note func(string)) *presetWatch {
	w := &presetWatch{dir: dir, trusted: trusted, note: note}
	w.seen, w.fault = w.look()
	return w
}

func (w *presetWatch) look() (os.FileInfo, error) {
	info, err := os.Lstat(filepath.Join(w.dir, approvalsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// fresh gives the presets where the file has changed. An error says that what stands there cannot be relied on; it holds until it is mended.
func (w *presetWatch) fresh() (presets []preset, changed bool, err error) {
	info, err := w.look()
	if err == nil && w.fault == nil && sameState(w.seen, info) {
		return nil, false, nil
	}
	var ws workspacePolicy
	var text []byte
	if err == nil {
		text, err = readPolicyFile(w.dir, approvalsName)
	}
	if err == nil && text != nil {
		err = parseApprovals(text, w.trusted(sha256Hex(text)), &ws)
	}
	if err != nil {
		err = errorf("policy file %s: %w", filepath.Join(w.dir, approvalsName), err)
	}
	for _, note := range ws.Notes {
		w.note(note)
	}
	w.seen, w.fault = info, err
	return ws.Presets, true, err
}

// sameState reports a file that was neither replaced nor written in between.
func sameState(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}

// confirmFile makes one state of a policy file count; it must be the one that was shown.
func confirmFile(ctx context.Context, v *vault, f policyFile) error {
	return v.changeTrusted(ctx, f.Path, func(func(string) bool) (trustedChange, error) {
		b, err := readPolicyFile(filepath.Dir(f.Path), filepath.Base(f.Path))
		if err == nil && sha256Hex(b) != f.Hash {
			err = newError("it changed while it was shown")
		}
		return trustedChange{Was: f.Hash, Now: f.Hash, Text: string(f.Text), Trust: true}, err
	})
}

// approvalsText writes presets as a file, which must be one that tai can read again.
func approvalsText(presets []preset) ([]byte, error) {
	text, err := policyText(struct {
		Version int      `json:"version"`
		Presets []preset `json:"presets"`
	}{1, orEmpty(presets)})
	if err == nil {
		err = parseApprovals(text, true, &workspacePolicy{})
	}
	return text, err
}

// writePolicyFile puts text in the place of a policy file: 0600 in a folder that is made 0700, on disk before it has the name.
func writePolicyFile(dir, name string, text []byte) (err error) {
	if err := makePolicyFolder(dir); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+name+".new-*") // 0600
	if err != nil {
		return bareError(err)
	}
	defer func() {
		if err != nil {
			err = joinErrors(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(text)
	if err = joinErrors(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	return syncFolder(dir)
}

// makePolicyFolder makes .tai where it is missing, and refuses one that others could put files into.
func makePolicyFolder(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return bareError(err)
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return bareError(err)
	case !info.IsDir():
		return errorf("%s is a symbolic link or no folder", visibleLine(dir))
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0:
		return errorf("%s is writable by everybody; run chmod o-w on it", visibleLine(dir))
	}
	return syncFolder(filepath.Dir(dir))
}

// addPresets gives the edit that adds presets, each with an id and a time of its own, and where the ids are put. One that is there already, but for
// those two, is not added again.
func addPresets(now time.Time, add []preset, added *[]preset) func([]preset) ([]preset, error) {
	return func(have []preset) ([]preset, error) {
		*added = nil
		for _, ps := range add {
			if i := slices.IndexFunc(have, ps.same); i >= 0 {
				*added = append(*added, have[i])
				continue
			}
			for ps.ID == "" || slices.ContainsFunc(have, func(x preset) bool { return x.ID == ps.ID }) {
				var b [2]byte
				_, _ = rand.Read(b[:]) // never fails (crypto/rand)
				ps.ID = "p-" + hex.EncodeToString(b[:])
			}
			ps.Created = now.UTC().Format(time.RFC3339)
			have, *added = append(have, ps), append(*added, ps)
		}
		if len(have) > policyPresetMax {
			return nil, errorf("it would have more than %d presets; tai approval revoke ID removes one", policyPresetMax)
		}
		return have, nil
	}
}

// same reports whether two presets say the same.
//
//go:noinline for size: it is called in many places
func (ps preset) same(other preset) bool {
	if len(ps.Arguments) != len(other.Arguments) {
		return false
	}
	for k, v := range ps.Arguments {
		if w, ok := other.Arguments[k]; !ok || v != w {
			return false
		}
	}
	return ps.Effect == other.Effect && ps.Tool == other.Tool && ps.Command == other.Command && ps.Pin == other.Pin
}

// scope says in words what a preset covers, every foreign text in quotes.
func (ps preset) scope() string {
	var b textBuilder
	b.WriteString(visibleLine(ps.Tool))
	if ps.Pin != "" {
		b.WriteString(" as it is defined now")
	}
	switch {
	case ps.Command != "":
		fmt.Fprintf(&b, " with the command %s and any further arguments", strconv.Quote(ps.Command))
	case len(ps.Arguments) == 0:
		b.WriteString(" with any arguments")
	}
	names := make([]string, 0, len(ps.Arguments))
	for k := range ps.Arguments {
		names = append(names, k)
	}
	slices.Sort(names)
	for i, k := range names {
		word := ", and "
		if i == 0 {
			word = " where "
		}
		fmt.Fprintf(&b, "%s%s is %s", word, strconv.Quote(k), strconv.Quote(ps.Arguments[k]))
	}
	return b.String()
}
