// This file owns the signed head of a run log: how many lines a run has and the hash of the last one, signed with Ed25519 (RFC 8032), so
// that a log cut at a line's end shows. It owns the bytes that are signed and the form in which a head travels. It knows no log, no vault
// and no file.
package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	auditHeadVersion = 1
	auditHeadType    = "tai-audit-head" // so that a signature under a head can pass for nothing else
	auditHeadMax     = 4 << 10          // bytes of an exported head; tai writes under 700
	auditHeadLines   = 1 << 53          // lines; JSON numbers are exact below it (RFC 8785, appendix D)
	auditHeadTime    = "2006-01-02T15:04:05Z"
	auditOriginMax   = 16 // bytes of a run's origin
	auditRunDigits   = 16 // hex digits of a run's name
)

// errHeadForged is a head whose signature does not fit what it says.
var errHeadForged = errors.New("the head's signature does not fit: the head or the key was changed")

// auditHead says how far a run's log had come. Times are whole seconds. Path is where the log was written; it is not signed, because a log
// may be moved, and nothing is believed for where it lies. Key and Signature are empty before it is signed.
type auditHead struct {
	Run, Origin, Path string
	Lines             int64
	Hash              string // of the last of these lines
	Started, Updated  time.Time
	Key               ed25519.PublicKey
	Signature         []byte
}

// auditStatement is what is signed, as a JSON document.
type auditStatement struct {
	Version int    `json:"version"`
	Type    string `json:"type"`
	Run     string `json:"run"`
	Origin  string `json:"origin"`
	Lines   int64  `json:"lines"`
	Head    string `json:"head"`
	Started string `json:"started"`
	Time    string `json:"time"`
}

// auditHeadDoc is an exported head: the statement, then what proves it. Without the last three members its canonical form is what was
// signed, so that anyone can check it.
type auditHeadDoc struct {
	auditStatement
	PublicKey   string `json:"public_key"` // base64 (RFC 4648, section 4) of 32 bytes
	Signature   string `json:"signature"`  // of 64 bytes
	Fingerprint string `json:"fingerprint"`
}

func (h *auditHead) statement() auditStatement {
	return auditStatement{
		Version: auditHeadVersion, Type: auditHeadType, Run: h.Run, Origin: h.Origin, Lines: h.Lines, Head: h.Hash,
		Started: h.Started.UTC().Format(auditHeadTime), Time: h.Updated.UTC().Format(auditHeadTime),
	}
}

// canonical gives the bytes that are signed: the statement as canonical JSON (RFC 8785). check holds its texts to characters that need no escape.
func (h *auditHead) canonical() []byte {
	s := h.statement()
	b := appendJSONString([]byte(`{"head":`), s.Head)
	b = strconv.AppendInt(append(b, `,"lines":`...), s.Lines, 10)
	b = appendJSONString(append(b, `,"origin":`...), s.Origin)
	b = appendJSONString(append(b, `,"run":`...), s.Run)
	b = appendJSONString(append(b, `,"started":`...), s.Started)
	b = appendJSONString(append(b, `,"time":`...), s.Time)
	b = appendJSONString(append(b, `,"type":`...), s.Type)
	return append(strconv.AppendInt(append(b, `,"version":`...), int64(s.Version), 10), '}')
}

// check holds a head to what tai writes, whatever it was read from.
func (h *auditHead) check() error {
	switch {
	case !isAuditRun(h.Run):
		return errorf("%s is no name of a run", quoteClip(h.Run))
	case !strings.HasPrefix(h.Run, h.Origin+"-") || strings.Contains(h.Origin, "-"):
		return errorf("the origin %s is not that of run %s", quoteClip(h.Origin), h.Run)
	case h.Lines < 1 || h.Lines >= auditHeadLines:
		return errorf("%d is no number of lines", h.Lines)
	case !isLowerHex(h.Hash, 2*sha256.Size):
		return errorf("the hash is not %d lower-case hex digits", 2*sha256.Size)
	}
	for _, at := range []time.Time{h.Started, h.Updated} {
		if y := at.UTC().Year(); y < 1 || y > 9999 {
			return newError("the time is outside the years 1 to 9999")
		}
	}
	return nil
}

// isAuditRun reports the form of a run's name: an origin in small letters, a hyphen, 16 hex digits.
func isAuditRun(name string) bool {
	origin, digits, ok := strings.Cut(name, "-")
	for _, c := range []byte(origin) {
		ok = ok && c >= 'a' && c <= 'z'
	}
	return ok && origin != "" && len(origin) <= auditOriginMax && isLowerHex(digits, auditRunDigits)
}

// isShortRun reports the beginning of a run's name, of its origin and some digits.
func isShortRun(word string) bool {
	_, digits, _ := strings.Cut(word, "-")
	missing := auditRunDigits - len(digits)
	return digits != "" && missing > 0 && isAuditRun(word+strings.Repeat("0", missing))
}

func isLowerHex(s string, n int) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == n
}

// signed gives the head with key's signature. A head that tai would not read again is refused.
func (h auditHead) signed(key ed25519.PrivateKey) (auditHead, error) {
	h.Started, h.Updated = h.Started.Truncate(time.Second), h.Updated.Truncate(time.Second)
	if err := h.check(); err != nil {
		return auditHead{}, errorf("sign the head of run %s: %w", quoteClip(h.Run), err)
	}
	if len(key) != ed25519.PrivateKeySize {
		return auditHead{}, newError("sign a head: there is no key")
	}
	h.Key, h.Signature = ed25519.PublicKey(key[ed25519.SeedSize:]), ed25519.Sign(key, h.canonical())
	return h, nil
}

// verify is nil for a head that its own key has signed as it is, else wraps errHeadForged. Whether that key is the right one is for the
// caller to know.
func (h *auditHead) verify() error {
	if err := h.check(); err != nil {
		return errorf("%w (%w)", errHeadForged, err)
	}
	if len(h.Key) != ed25519.PublicKeySize || len(h.Signature) != ed25519.SignatureSize || !ed25519.Verify(h.Key, h.canonical(), h.Signature) {
		return errHeadForged
	}
	return nil
}

// fingerprint names a public key: the SHA-256 of its 32 bytes.
func fingerprint(key ed25519.PublicKey) string { return "sha256:" + sha256Hex(key) }

// export gives a signed head as one JSON document with a line end.
func (h *auditHead) export() ([]byte, error) {
	b, err := json.MarshalIndent(auditHeadDoc{
		auditStatement: h.statement(), PublicKey: base64.StdEncoding.EncodeToString(h.Key), Signature: base64.StdEncoding.EncodeToString(h.Signature), Fingerprint: fingerprint(h.Key),
	}, "", "  ")
	if err != nil {
		return nil, errorf("export a head: %w", err)
	}
	return append(b, '\n'), nil
}

// readAuditHead reads an exported head strictly: the known members and no others, each in its one spelling. It does not verify the
// signature.
func readAuditHead(b []byte) (auditHead, error) {
	h, err := parseAuditHead(b)
	if err != nil {
		return auditHead{}, errorf("not a head as tai audit head writes it: %w", err)
	}
	return h, nil
}

func parseAuditHead(b []byte) (h auditHead, err error) {
	if len(b) > auditHeadMax {
		return h, errorf("more than %d bytes", auditHeadMax)
	}
	var d auditHeadDoc
	if err := decodeStrict(b, &d); err != nil {
		return h, err
	}
	if d.Version != auditHeadVersion || d.Type != auditHeadType {
		return h, errorf("version %d of type %s; this tai reads version %d of %s", d.Version, quoteClip(d.Type), auditHeadVersion, auditHeadType)
	}
	h = auditHead{Run: d.Run, Origin: d.Origin, Lines: d.Lines, Hash: d.Head}
	if h.Key, err = base64.StdEncoding.Strict().DecodeString(d.PublicKey); err != nil {
		return h, errorf("public_key: %w", err)
	}
	if h.Signature, err = base64.StdEncoding.Strict().DecodeString(d.Signature); err != nil {
		return h, errorf("signature: %w", err)
	}
	var faults [2]error
	h.Started, faults[0] = time.Parse(auditHeadTime, d.Started)
	h.Updated, faults[1] = time.Parse(auditHeadTime, d.Time)
	if joinErrors(faults[:]...) != nil {
		return h, newError("started and time are not both times")
	}
	if err := h.check(); err != nil {
		return h, err
	}
	switch {
	case len(h.Key) != ed25519.PublicKeySize || len(h.Signature) != ed25519.SignatureSize:
		return h, errorf("public_key has %d bytes and signature %d, not %d and %d", len(h.Key), len(h.Signature), ed25519.PublicKeySize, ed25519.SignatureSize)
	case d.Fingerprint != fingerprint(h.Key):
		return h, newError("the fingerprint is not that of public_key")
	case h.statement() != d.auditStatement:
		return h, newError("started and time are not spelled as tai writes them")
	}
	return h, nil
}

// newAuditKey makes a signing key's seed in the form in which it is kept, from a source of random bytes.
func newAuditKey(random io.Reader) (secret, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return "", errorf("make the signing key: %w", err)
	}
	return secret(hex.EncodeToString(seed)), nil
}

// auditKeyOf reads a seed as newAuditKey gave it.
func auditKeyOf(s secret) (ed25519.PrivateKey, error) {
	seed, err := hex.DecodeString(s.reveal())
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, newError("the signing key is damaged") // what hex would quote is a part of the key
	}
	return ed25519.NewKeyFromSeed(seed), nil
}
