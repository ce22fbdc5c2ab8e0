// This file owns what opens a sealed vault: the row that says how the data key is wrapped, the key files, and passphrases that come from the
// environment or a file. It knows neither the database nor a terminal.
package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// How a vault is sealed.
const (
	sealByKeyFile    = "key-file"
	sealByPassphrase = "passphrase"
	sealOff          = "off" // a person opened it; it stays open until one seals it again
)

const (
	sealVersion     = 1
	sealSaltSize    = 32         // bytes
	sealIDSize      = 8          // bytes
	sealRounds      = 600_000    // rounds of PBKDF2 that are written, and the fewest that are taken (OWASP Password Storage)
	sealRoundsMax   = 10_000_000 // the most that are taken: a vault from elsewhere must not stop tai for minutes
	passphraseMin   = 8          // bytes
	passphraseMax   = 4 << 10    // bytes of a passphrase, and of its file
	keyFileMax      = 4 << 10    // bytes of a key file
	keyFileHead     = "tai-vault-key-1 "
	keyFileTemp     = ".new-" // in the name of a key file in the making, random digits following
	passphraseTries = 3       // times that a person is asked
)

var (
	errSealNewer       = errors.New("is sealed in a way that this tai does not know; update it")
	errSealDamaged     = errors.New("does not say in full how it is sealed; restore a backup")
	errKeyFileMissing  = errors.New("the key file is missing")
	errKeyFileDamaged  = errors.New("the key file is none, or damaged")
	errWrongKeyFile    = errors.New("the key file does not open this vault")
	errSealRounds      = errors.New("asks for a number of rounds of PBKDF2 that is not taken")
	errForgotten       = errors.New("it has a passphrase, which is forgotten")
	errWrongPassphrase = errors.New("the passphrase is wrong")
)

// vaultKeys is what opens a sealed vault.
type vaultKeys struct {
	Dir        string                                                // folder of the key files, "" where no config folder is known
	Passphrase func(ctx context.Context, why string) (secret, error) // nil where there is none to be had
	Tries      int                                                   // times that Passphrase may be asked until it is right; 0 means once
	Derive     keyDerivation                                         // nil for keyFromPassphrase
}

// keyDerivation makes a wrapping key of a passphrase.
type keyDerivation func(passphrase secret, salt []byte, rounds int) ([]byte, error)

func (k vaultKeys) derive(passphrase secret, salt []byte, rounds int) ([]byte, error) {
	if k.Derive != nil {
		return k.Derive(passphrase, salt, rounds)
	}
	return keyFromPassphrase(passphrase, salt, rounds)
}

// sealState is the seal as the vault keeps it, in clear: it tells how to get at the data key, and nothing of the key.
type sealState struct {
	Version int    `json:"version"`
	Kind    string `json:"kind"`
	ID      string `json:"id,omitempty"`         // names the key file
	Key     string `json:"key,omitempty"`        // names the data key: the same while it is only wrapped anew
	Rounds  int    `json:"iterations,omitempty"` // of PBKDF2
	Salt    []byte `json:"salt,omitempty"`
	Wrapped []byte `json:"wrapped,omitempty"` // the data key
}

// about is what the wrap is bound to, so that nothing of the row can be changed alone.
func (s sealState) about() []string {
	return []string{s.Kind, s.ID, s.Key, strconv.Itoa(s.Rounds), string(s.Salt)}
}

// row is the state as it is stored.
func (s sealState) row() (string, error) {
	b, err := json.Marshal(s)
	return string(b), err
}

// parseSealState reads a stored state and refuses what cannot be meant: rounds beyond the bounds, an id that is no id.
func parseSealState(row string) (s sealState, err error) {
	if err := json.Unmarshal([]byte(row), &s); err != nil {
		return s, errSealDamaged
	}
	if s.Version != sealVersion {
		return s, errSealNewer
	}
	isID := func(id string) bool {
		b, err := hex.DecodeString(id)
		return err == nil && len(b) == sealIDSize && strings.ToLower(id) == id
	}
	whole := isID(s.ID) && isID(s.Key) && len(s.Salt) == sealSaltSize && len(s.Wrapped) == sealKeySize+sealOverhead
	switch {
	case s.Kind == sealOff:
	case s.Kind != sealByKeyFile && s.Kind != sealByPassphrase:
		return s, errSealNewer
	case !whole:
		return s, errSealDamaged
	case s.Kind == sealByPassphrase && (s.Rounds < sealRounds || s.Rounds > sealRoundsMax):
		return s, errorf("%w: %d, and %d to %d are; restore a backup", errSealRounds, s.Rounds, sealRounds, sealRoundsMax)
	}
	return s, nil
}

// openedSeal is a seal with its key, ready to use.
type openedSeal struct {
	state    sealState
	text     string // the row that it was opened from
	key      []byte // the data key; nil with the seal off
	wrapping []byte // what wraps it; nil where only the data key is known
	*sealer
}

// newOpenedSeal makes a seal of that kind over a data key, a new one where key is nil; wrap completes it.
func newOpenedSeal(kind string, key []byte, keyID string) *openedSeal {
	id := func() string { return hex.EncodeToString(randomBytes(sealIDSize)) }
	o := &openedSeal{state: sealState{Version: sealVersion, Kind: kind}, sealer: &sealer{}}
	if kind == sealOff {
		return o
	}
	if key == nil {
		key, keyID = randomBytes(sealKeySize), id()
	}
	o.state.ID, o.state.Key, o.state.Salt = id(), keyID, randomBytes(sealSaltSize)
	o.key, o.sealer = key, newSealer(key)
	return o
}

// wrap closes the data key with wrapping and writes the row.
func (o *openedSeal) wrap(wrapping []byte) (err error) {
	if o.key != nil {
		o.wrapping = wrapping
		o.state.Wrapped = wrapKey(wrapping, o.key, o.state.about()...)
	}
	o.text, err = o.state.row()
	return err
}

// openState opens the data key of a state with its wrapping key; errSealBroken for another one.
func openState(state sealState, text string, wrapping []byte) (*openedSeal, error) {
	key, err := unwrapKey(wrapping, state.Wrapped, state.about()...)
	if err != nil {
		return nil, err
	}
	return &openedSeal{state: state, text: text, key: key, wrapping: wrapping, sealer: newSealer(key)}, nil
}

// sealCache is what one open vault remembers of its seal, so that a key is derived once.
type sealCache struct {
	fetch  chan struct{} // full while a key is fetched: two callers must not ask twice
	mu     sync.Mutex
	opened *openedSeal
	failed error  // of a passphrase that could not be had or was wrong
	tried  string // the row it was for
}

func newSealCache() *sealCache { return &sealCache{fetch: make(chan struct{}, 1)} }

// get gives the opened seal, nil before the first one.
func (c *sealCache) get() *openedSeal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened
}

func (c *sealCache) put(o *openedSeal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened = o
}

// keyFilePath names the key file of an id, which is known to be hex digits.
//
//go:noinline for size: it is called in many places
func keyFilePath(dir, id string) string { return filepath.Join(dir, id+".key") }

// makeKeyFile writes a new key file, on disk when it returns, and gives the random bytes in it. It never replaces a file.
func makeKeyFile(dir, id string) (key []byte, err error) {
	defer wrapDeed(&err, "write the key file of the vault")
	if dir == "" {
		return nil, newError("no folder for it is known; set HOME, or XDG_CONFIG_HOME (APPDATA on Windows)")
	}
	if err := makeHome(dir); err != nil {
		return nil, err
	}
	key = randomBytes(sealKeySize)
	return key, writeKeyFolder(dir, keyFilePath(dir, id), keyFileHead+base64.StdEncoding.EncodeToString(key)+"\n")
}

// writeKeyFolder makes a new file in the folder of the key files, on disk when it returns. It never replaces one.
func writeKeyFolder(dir, path, text string) error {
	f, err := os.CreateTemp(dir, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))+keyFileTemp+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when it was renamed
	_, err = f.WriteString(text)
	if err := joinErrors(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := claim(f.Name(), path); err != nil {
		return err
	}
	return joinErrors(syncFolder(dir), syncFolder(filepath.Dir(dir)))
}

// offWitnessPath names the file that says that a person has switched the seal off: whoever can write the vault alone cannot make it.
//
//go:noinline for size: it is called in many places
func offWitnessPath(dir, id string) string { return filepath.Join(dir, id+".off") }

// sealNone makes a seal that is off, with the file that bears witness to it where a folder for it is known.
func sealNone(dir string) (_ *openedSeal, err error) {
	defer wrapDeed(&err, "note that the seal is off")
	o := newOpenedSeal(sealOff, nil, "")
	o.state.ID = hex.EncodeToString(randomBytes(sealIDSize))
	if dir != "" {
		if err := makeHome(dir); err != nil {
			return nil, err
		}
		if err := writeKeyFolder(dir, offWitnessPath(dir, o.state.ID), "tai vault unseal\n"); err != nil {
			return nil, err
		}
	}
	return o, o.wrap(nil)
}

// offUnwitnessed reports a seal that is said to be off while nothing in the folder of the key files says that a person did that.
func offUnwitnessed(state sealState, dir string) bool {
	if state.Kind != sealOff || dir == "" {
		return false
	}
	if id, err := hex.DecodeString(state.ID); err != nil || len(id) != sealIDSize {
		return true
	}
	_, err := os.Stat(offWitnessPath(dir, state.ID))
	return errors.Is(err, fs.ErrNotExist)
}

// sealByFile makes a seal over a new data key that a new key file wraps. The file is on disk when it returns.
func sealByFile(dir string) (*openedSeal, error) {
	o := newOpenedSeal(sealByKeyFile, nil, "")
	file, err := makeKeyFile(dir, o.state.ID)
	if err != nil {
		return nil, err
	}
	wrapping, err := keyFromKey(file, o.state.Salt)
	if err != nil {
		return nil, err
	}
	return o, o.wrap(wrapping)
}

// readVaultKeyFile gives the random bytes of a key file. The error names the path and the way out.
func readVaultKeyFile(dir, id string) ([]byte, error) {
	if dir == "" {
		return nil, errorf("%w: no folder for it is known; set HOME, or XDG_CONFIG_HOME (APPDATA on Windows)", errKeyFileMissing)
	}
	path := keyFilePath(dir, id)
	b, err := readPrivateFile(path, keyFileMax, runtime.GOOS)
	if _, loose := errors.AsType[*looseFileError](err); loose { // put back by a program that keeps no modes; the vault itself is closed likewise
		if err = os.Chmod(path, 0o600); err == nil {
			b, err = readPrivateFile(path, keyFileMax, runtime.GOOS)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errorf("%w: %s; put it back from a backup. Without it the sealed values are lost, all else can still be read", errKeyFileMissing, path)
	}
	if err != nil {
		return nil, errorf("read the key file: %w", err)
	}
	text, isKey := strings.CutPrefix(cutLineEnd(string(b)), keyFileHead)
	key, err := base64.StdEncoding.DecodeString(text)
	if !isKey || err != nil || len(key) != sealKeySize {
		return nil, errorf("%w: %s; put it back from a backup", errKeyFileDamaged, path)
	}
	return key, nil
}

// cutLineEnd takes one line end off the end.
func cutLineEnd(s string) string {
	if t, ok := strings.CutSuffix(s, "\n"); ok {
		return strings.TrimSuffix(t, "\r")
	}
	return s
}

// givenPassphrase takes a passphrase from the variable's value or else from the file that the other one names; is is false where both are
// empty.
func givenPassphrase(value, file string) (_ secret, is bool, err error) {
	if value != "" {
		return secret(value), true, nil
	}
	if file == "" {
		return "", false, nil
	}
	b, err := readPrivateFile(file, passphraseMax, runtime.GOOS)
	if err != nil {
		return "", true, errorf("read the passphrase file: %w", err)
	}
	text := cutLineEnd(string(b))
	if text == "" {
		return "", true, errorf("read the passphrase file: %s is empty", visibleLine(file))
	}
	return secret(text), true, nil
}

// checkPassphrase refuses what is too short to protect anything.
func checkPassphrase(p secret) error {
	if n := len(p.reveal()); n < passphraseMin || n > passphraseMax {
		return errorf("the passphrase has %d bytes; %d to %d are taken", n, passphraseMin, passphraseMax)
	}
	return nil
}
