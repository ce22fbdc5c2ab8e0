// This file holds what the policy is told in advance: permission modes, presets and rate limits, and how they are read
// from a workspace's .tai folder. It owns their file format and what each covers; it asks nobody and decides no call.
package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// The policy files in a workspace's .tai folder: its presets, and its mode and rate limits. A third is in policy_trust.go.
const (
	approvalsName = "approvals.json"
	configName    = "config.json"
)

const (
	policyPresetMax = 1000    // presets of a file
	policyRateMax   = 100_000 // calls that a rate limit may allow in its window
)

// approvalMode is how far calls run without being asked about, narrowest first.
type approvalMode string

const (
	modeReadOnly approvalMode = "read-only"
	modePrompt   approvalMode = "prompt"
	modeAllow    approvalMode = "allow"
	modeDanger   approvalMode = "danger-full-access"
)

// rank orders modes by how much they let through.
func (m approvalMode) rank() int {
	return slices.Index([]approvalMode{modeReadOnly, modePrompt, modeAllow, modeDanger}, m)
}

// parseMode reads a permission mode, letter by letter. serve tells that it is for a served workspace, where the error says
// why workspace-write cannot be.
func parseMode(s string, serve bool) (approvalMode, error) {
	m := approvalMode(s)
	switch {
	case m.rank() >= 0:
		return m, nil
	case s == "workspace-write" && serve:
		return "", newError("permission mode workspace-write: it depends on a bound plan, which MCP clients cannot provide; use read-only, prompt, allow or danger-full-access")
	}
	return "", errorf("permission mode %q: use read-only, prompt, allow or danger-full-access", clip(visibleLine(s), 40))
}

// checkScoped checks an --approve-scoped value, TOOL:SHA256 with the digest in lower-case hex.
func checkScoped(s string) error {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 || !isSHA256(s[i+1:]) {
		return errorf("%q is not TOOL:SHA256 (64 lower-case hex digits)", clip(visibleLine(s), 120))
	}
	return nil
}

func isSHA256(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32 && s == strings.ToLower(s)
}

// preset is one standing decision of a workspace. Tool is exact or a glob over digest names; Arguments are globs over
// top-level strings that must all match; Command is a program with leading arguments; Pin binds an allow to one definition.
type preset struct {
	ID        string            `json:"id"`
	Effect    string            `json:"effect"` // allow or deny
	Tool      string            `json:"tool"`
	Arguments map[string]string `json:"arguments,omitempty"`
	Command   string            `json:"command,omitempty"`
	Pin       string            `json:"pin,omitempty"`
	Created   string            `json:"created,omitempty"`
}

// presetCall is the call that a preset is held against. Command is the text for a shell, "" for other tools, and Shell what
// it was judged to be.
type presetCall struct {
	Tool, Pin, Command string
	Root               string // of the workspace, "" if there is none
	Args               json.RawMessage
	Shell              shellVerdict
}

// pathForms gives the ways to write a path that a deny may have in mind: as it stands, cleaned, from the root, absolute, and where links lead.
func pathForms(root, value string) []string {
	forms := []string{value, path.Clean(value)}
	if root == "" || value == "" || len(value) > 4096 || strings.ContainsAny(value, "\x00\n") {
		return forms
	}
	abs := filepath.FromSlash(value)
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(root, abs)
	}
	add := func(abs string) {
		forms = append(forms, filepath.ToSlash(abs))
		if rel, err := filepath.Rel(root, abs); err == nil {
			forms = append(forms, filepath.ToSlash(rel))
		}
	}
	add(filepath.Clean(abs))
	rest := ""
	for at := filepath.Clean(abs); ; at = filepath.Dir(at) { // what is not there yet has no links
		if real, err := filepath.EvalSymlinks(at); err == nil {
			add(filepath.Join(real, rest))
			return forms
		}
		if filepath.Dir(at) == at {
			return forms
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// denies reports whether a deny preset covers the call. In doubt it does: paths also match in their other forms, commands wherever they
// stand and words that a shell fills in whatever they may be, and a line that cannot be split is denied where any command is.
func (ps preset) denies(c presetCall) bool {
	if ps.Effect != "deny" || !globMatch(ps.Tool, c.Tool) {
		return false
	}
	for key, pattern := range ps.Arguments {
		value, ok := argumentString(c.Args, key)
		if !ok || !slices.ContainsFunc(pathForms(c.Root, value), func(form string) bool { return globMatch(pattern, form) }) {
			return false
		}
	}
	if ps.Command == "" {
		return true
	}
	pattern := strings.Fields(ps.Command)
	switch {
	case c.Command == "":
		return false
	case !c.Shell.Parsable:
		return true
	}
	opaque := !c.Shell.Simple
	for i, cmd := range c.Shell.Words {
		if shellCommandMatch(cmd, c.Shell.Open[i], pattern) {
			return true
		}
		opaque = opaque || slices.ContainsFunc(cmd, runsText)
	}
	return opaque && shellLooseMatch(c.Command, pattern)
}

// runsText reports whether a word is a program that runs the text of its arguments or input.
func runsText(word string) bool {
	return slices.Contains([]string{"sh", "bash", "zsh", "dash", "ksh", "fish", "ash", "eval", "ssh", "su", "xargs", "watch", "env", "parallel", "script", "busybox", "source", "."}, argvProgram(word))
}

// allows reports whether an allow preset covers the call. In doubt it does not: a path with .. must match cleaned too, every
// command of a line must be the preset's or only read, and what a limited preset does not mention may not change how a
// command runs.
func (ps preset) allows(c presetCall) bool {
	if ps.Effect != "allow" || !globMatch(ps.Tool, c.Tool) || ps.Pin != "" && ps.Pin != c.Pin {
		return false
	}
	for key, pattern := range ps.Arguments {
		value, ok := argumentString(c.Args, key)
		if !ok || !globMatch(pattern, value) || strings.Contains(value, "..") && !globMatch(pattern, path.Clean(value)) {
			return false
		}
	}
	if c.Command == "" {
		return ps.Command == ""
	}
	if !c.Shell.Parsable {
		return false
	}
	if ps.Command == "" && len(ps.Arguments) == 0 {
		return true
	}
	if members, err := jsonObject(c.Args); err != nil || slices.ContainsFunc(members, func(m jsonMember) bool {
		_, named := ps.Arguments[m.Key]
		return !named && m.Key != "command" && m.Key != "timeout_s"
	}) {
		return false
	}
	if ps.Command == "" {
		return true
	}
	pattern := strings.Fields(ps.Command)
	for i, cmd := range c.Shell.Words {
		if !c.Shell.Runs[i] && (len(cmd) < len(pattern) || !slices.Equal(cmd[:len(pattern)], pattern)) {
			return false
		}
	}
	return c.Shell.Simple && len(c.Shell.Words) > 0
}

// argumentString is the string under a top-level key.
func argumentString(args json.RawMessage, key string) (string, bool) {
	members, err := jsonObject(args)
	if err != nil {
		return "", false
	}
	for _, m := range members {
		if m.Key == key {
			return jsonString(m.Value)
		}
	}
	return "", false
}

// rateLimit allows Calls calls of a tool in any PerS seconds.
type rateLimit struct {
	Calls int     `json:"calls"`
	PerS  float64 `json:"per_s"`
}

// rateLimiter counts calls for the limits of a workspace. It is safe for concurrent use.
type rateLimiter struct {
	limits map[string]rateLimit
	now    func() time.Time

	mu    sync.Mutex
	taken map[string][]time.Time // oldest first, within the window
}

func newRateLimiter(limits map[string]rateLimit, now func() time.Time) *rateLimiter {
	return &rateLimiter{limits: limits, now: now, taken: map[string][]time.Time{}}
}

// take counts one call of a tool, or says in an error how often it may be called and when again. The error is a tool's
// failure, not a refusal by the policy. A nil limiter has no limits.
func (l *rateLimiter) take(tool string) error {
	if l == nil {
		return nil
	}
	limit, ok := l.limits[tool]
	if !ok {
		return nil
	}
	if limit.Calls == 0 {
		return errorf("rate limit: %s may not be called here", tool)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now, window := l.now(), time.Duration(limit.PerS*float64(time.Second))
	taken := l.taken[tool]
	for len(taken) > 0 && now.Sub(taken[0]) >= window {
		taken = taken[1:]
	}
	if len(taken) >= limit.Calls {
		l.taken[tool] = taken
		wait := window - now.Sub(taken[0])
		return errorf("rate limit: %s may be called %d times in %v; again in %v", tool, limit.Calls, window, wait.Round(time.Millisecond))
	}
	l.taken[tool] = append(taken, now)
	return nil
}

// workspacePolicy is what a workspace's .tai folder says. Mode is "" where it says none. Notes name what was passed over
// because nobody confirmed the file.
type workspacePolicy struct {
	Mode    approvalMode
	Rates   map[string]rateLimit
	Presets []preset
	Trust   *trustRules // nil where there is no such file
	Notes   []string
}

// loadWorkspacePolicy reads config.json, approvals.json and trust.json of dir, the .tai folder of a workspace. What widens counts only
// where trusted knows the SHA-256 of the file; what narrows always does. A missing file says nothing; one that cannot be
// relied on is an error that names it, and tai must not start: a lost deny is worse than no service (POL-09).
func loadWorkspacePolicy(dir string, trusted func(sha256 string) bool) (workspacePolicy, error) {
	var w workspacePolicy
	for name, parse := range map[string]func([]byte, bool, *workspacePolicy) error{configName: parseConfigFile, approvalsName: parseApprovals, trustName: parseTrustFile} {
		file := filepath.Join(dir, name)
		b, err := readPolicyFile(dir, name)
		if err == nil && b != nil {
			err = parse(b, trusted != nil && trusted(sha256Hex(b)), &w)
		}
		if err != nil {
			return workspacePolicy{}, errorf("policy file %s: %w", file, err)
		}
	}
	for i, note := range w.Notes {
		w.Notes[i] = filepath.Join(dir, note)
	}
	slices.Sort(w.Notes)
	return w, nil
}

// readPolicyFile reads one file of the folder; nil when it does not exist. Links and files that others may write are
// refused.
func readPolicyFile(dir, name string) ([]byte, error) {
	file := filepath.Join(dir, name)
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	folder, err := os.Lstat(dir)
	switch {
	case err != nil:
		return nil, err
	case !folder.IsDir():
		return nil, newError("its folder is a symbolic link")
	case !info.Mode().IsRegular():
		return nil, newError("it is a symbolic link or no regular file")
	case runtime.GOOS != "windows" && (info.Mode().Perm()|folder.Mode().Perm())&0o002 != 0:
		return nil, newError("it or its folder is writable by everybody; run chmod o-w on it")
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if open, err := f.Stat(); err != nil || !os.SameFile(open, info) {
		return nil, joinErrors(newError("it was replaced while it was read"), err)
	}
	b, err := io.ReadAll(io.LimitReader(f, policyFileMax+1))
	if err == nil && len(b) > policyFileMax {
		err = errorf("it has more than %d bytes", policyFileMax)
	}
	if b == nil {
		b = []byte{}
	}
	return b, err
}

// parseApprovals reads approvals.json. Deny presets always count.
func parseApprovals(b []byte, trusted bool, w *workspacePolicy) error {
	var file struct {
		Version int      `json:"version"`
		Presets []preset `json:"presets"`
	}
	if err := decodeStrict(b, &file); err != nil {
		return err
	}
	if file.Version != 1 {
		return errorf("version %d is not known", file.Version)
	}
	if len(file.Presets) > policyPresetMax {
		return errorf("it has more than %d presets", policyPresetMax)
	}
	ids, passed := map[string]bool{}, 0
	for i, ps := range file.Presets {
		switch {
		case ps.ID == "" || ids[ps.ID]:
			return errorf("preset %d: it needs an id of its own", i+1)
		case ps.Effect != "allow" && ps.Effect != "deny":
			return errorf("preset %s: effect %q is neither allow nor deny", clip(visibleLine(ps.ID), 40), clip(visibleLine(ps.Effect), 40))
		case ps.Tool == "":
			return errorf("preset %s: it names no tool", clip(visibleLine(ps.ID), 40))
		case ps.Pin != "" && !isSHA256(ps.Pin):
			return errorf("preset %s: its pin is not a SHA-256", clip(visibleLine(ps.ID), 40))
		case ps.Command != "" && len(strings.Fields(ps.Command)) == 0:
			return errorf("preset %s: its command is empty", clip(visibleLine(ps.ID), 40))
		}
		ids[ps.ID] = true
		if ps.Effect == "allow" && !trusted {
			passed++
			continue
		}
		w.Presets = append(w.Presets, ps)
	}
	if passed > 0 {
		w.Notes = append(w.Notes, fmt.Sprintf("approvals.json: %d allow presets are passed over, nobody here confirmed this file; tai approval list --confirm shows it and asks", passed))
	}
	return nil
}

// parseTrustFile reads trust.json.
func parseTrustFile(b []byte, trusted bool, w *workspacePolicy) error {
	rules, passed, err := parseTrust(b, trusted)
	if err != nil {
		return err
	}
	w.Trust = rules
	if passed > 0 {
		w.Notes = append(w.Notes, fmt.Sprintf("trust.json: what it allows of %s is passed over, so that none of their tools runs; nobody here confirmed this file; tai mcp trust list --confirm shows it and asks", plural(passed, "server")))
	}
	return nil
}

// parseConfigFile reads config.json. A mode wider than prompt counts only in a trusted file.
func parseConfigFile(b []byte, trusted bool, w *workspacePolicy) error {
	var file struct {
		Version int                  `json:"version"`
		Mode    *string              `json:"permission_mode,omitempty"`
		Rates   map[string]rateLimit `json:"rate_limits,omitempty"`
	}
	if err := decodeStrict(b, &file); err != nil {
		return err
	}
	if file.Version != 1 {
		return errorf("version %d is not known", file.Version)
	}
	for tool, limit := range file.Rates {
		if limit.Calls < 0 || limit.Calls > policyRateMax || !(limit.PerS > 0 && limit.PerS <= 1e7) {
			return errorf("rate limit of %s: calls from 0 to %d in per_s seconds, more than none", clip(visibleLine(tool), 80), policyRateMax)
		}
	}
	w.Rates = file.Rates
	if file.Mode == nil {
		return nil
	}
	mode, err := parseMode(*file.Mode, true)
	if err != nil {
		return err
	}
	if mode.rank() > modePrompt.rank() && !trusted {
		w.Notes = append(w.Notes, fmt.Sprintf("config.json: permission_mode %s is passed over, nobody here confirmed this file; tai approval list --confirm shows it and asks", mode))
		return nil
	}
	w.Mode = mode
	return nil
}
