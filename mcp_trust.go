// This file brings a workspace's trust file to the bridge: it is looked at for each decision, so that a change by anyone counts from the next
// call on, and parsed only when it is another one. It decides nothing.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
)

// errTrustFile is what the bridge meets where the trust file cannot be relied on: no tool is offered or called (POL-09).
var errTrustFile = errors.New("trust file")

// trustNote is the data of the line in the run log that tells what trust decided about a call: of the started line where an allow list let
// it through, of the blocked one where it did not run. Rule begins with trustRulePrefix.
type trustNote struct {
	File   string `json:"file"`
	Server string `json:"server"`
	Tool   string `json:"tool"`
	Rule   string `json:"trust"`
}

// note gives the data of a verdict, nil where trust says nothing.
func (s *trustSource) note(ref toolRef, v trustVerdict) json.RawMessage {
	if v.Rule == "" {
		return nil
	}
	data, err := json.Marshal(trustNote{filepath.Join(s.Dir, trustName), ref.Server, ref.Tool, v.Rule})
	if err != nil {
		return nil // strings cannot fail
	}
	return data
}

// trustSource reads the trust file in Dir, the .tai folder of a workspace. Trusted tells of a SHA-256 whether the file counts. It is safe for
// concurrent use.
type trustSource struct {
	Dir     string
	Trusted func(sha256 string) bool

	mu    sync.Mutex
	at    vaultStamp
	text  []byte
	rules *trustRules // nil where there is no file
}

// read gives the rules as they are now: the same pointer as before where file and vault say the same. Whether the file counts is asked
// anew when at, the state of the vault, is another one. A nil source has no rules.
func (s *trustSource) read(at vaultStamp) (*trustRules, error) {
	if s == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := readPolicyFile(s.Dir, trustName)
	if err != nil {
		return nil, errorf("%w .tai/%s: %w", errTrustFile, trustName, err)
	}
	if text == nil {
		s.text, s.rules = nil, nil
		return nil, nil
	}
	same := s.rules != nil && bytes.Equal(text, s.text)
	if same && (s.at == at || s.rules.Confirmed == s.Trusted(sha256Hex(text))) {
		s.at = at
		return s.rules, nil
	}
	rules, _, err := parseTrust(text, s.Trusted(sha256Hex(text)))
	if err != nil {
		return nil, errorf("%w .tai/%s: %w", errTrustFile, trustName, err)
	}
	s.at, s.text, s.rules = at, text, rules
	return rules, nil
}

// settle finishes the judgement of a server's list: what trust shuts out, before the server's own lists, and then the cap.
func settle(tools []listedTool, server string, trust *trustRules) {
	offered := 0
	for i := range tools {
		t := &tools[i]
		if v := trust.judge(server, t.Name); v.Deny && (t.State == stateGranted || t.State == stateDenied) {
			t.State, t.Reason = stateDenied, v.Rule+": "+v.Reason
		}
		t.judgeCap(&offered)
	}
}
