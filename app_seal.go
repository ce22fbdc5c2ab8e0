// This file gives one run what opens the vault's seal: the folder of the key files, and the passphrase from the environment, a file or the
// person. It also opens the seal before a command whose output must be redacted. It changes no seal.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// keys is what this run can open a sealed vault with.
func (a *app) keys() vaultKeys {
	k := vaultKeys{Passphrase: a.passphrase, Derive: a.out.Derive}
	if dir := configFolder(a.out); dir != "" {
		k.Dir = filepath.Join(dir, "keys")
	}
	if a.canAsk() && !a.passphraseGiven() {
		k.Tries = passphraseTries
	}
	return k
}

// passphraseGiven reports whether the passphrase can be had without asking.
func (a *app) passphraseGiven() bool {
	return a.out.Getenv("TAI_PASSPHRASE") != "" || a.out.Getenv("TAI_PASSPHRASE_FILE") != ""
}

// canAsk reports whether someone sits at a terminal. Of a run that serves, that is so at its start alone: a call that comes later is not
// theirs.
//
//go:noinline for size: it is called in many places
func (a *app) canAsk() bool {
	return a.inTerminal && a.errTerminal && (!a.serves() || !a.serving.Load())
}

// passphrase gives the passphrase of the vault; why is the question where a person is asked.
func (a *app) passphrase(ctx context.Context, why string) (secret, error) {
	p, is, err := givenPassphrase(a.out.Getenv("TAI_PASSPHRASE"), a.passphraseFile(a.out.Getenv("TAI_PASSPHRASE_FILE")))
	if is || err != nil {
		return p, err
	}
	if a.discarding.Load() {
		return a.rememberedPassphrase(ctx)
	}
	if !a.canAsk() {
		return "", &cliError{Exit: exitFailed, Message: "the vault is sealed with a passphrase, and no terminal is here to ask for it",
			Hint: "set TAI_PASSPHRASE, or TAI_PASSPHRASE_FILE to a file that only you can read, or run this at a terminal"}
	}
	if a.signing.Load() {
		why += ", for the key that signs the run log" // the command itself may need no secret
	}
	return a.askHidden(ctx, why)
}

// rememberedPassphrase asks for the passphrase where what nothing opens is to be given up; errForgotten where the person has none to give.
func (a *app) rememberedPassphrase(ctx context.Context) (secret, error) {
	if !a.canAsk() {
		return "", errForgotten
	}
	p, err := a.askHidden(ctx, "passphrase of the vault, or nothing if it is forgotten")
	if err == nil && p.reveal() == "" {
		err = errForgotten
	}
	return p, err
}

// newPassphrase gives the passphrase to seal with: from the environment, else asked for twice. first: the vault has none yet, so that the
// variables of the present one serve too.
func (a *app) newPassphrase(ctx context.Context, first bool) (secret, error) {
	value, file := a.out.Getenv("TAI_NEW_PASSPHRASE"), a.out.Getenv("TAI_NEW_PASSPHRASE_FILE")
	hint := "set TAI_NEW_PASSPHRASE, or TAI_NEW_PASSPHRASE_FILE to a file that only you can read, or run this at a terminal"
	if first && value == "" && file == "" {
		value, file = a.out.Getenv("TAI_PASSPHRASE"), a.out.Getenv("TAI_PASSPHRASE_FILE")
		hint = "set TAI_PASSPHRASE, or TAI_PASSPHRASE_FILE to a file that only you can read, or run this at a terminal"
	}
	p, is, err := givenPassphrase(value, a.passphraseFile(file))
	switch {
	case err != nil:
		return "", err
	case is:
		return p, asUsage(checkPassphrase(p))
	case !a.canAsk():
		return "", &cliError{Exit: exitFailed, Message: "the new passphrase is asked for at a hidden prompt, and no terminal is here", Hint: hint}
	}
	if p, err = a.askHidden(ctx, fmt.Sprintf("new passphrase of the vault, at least %d bytes", passphraseMin)); err != nil {
		return "", err
	}
	if err := checkPassphrase(p); err != nil {
		return "", asUsage(err)
	}
	again, err := a.askHidden(ctx, "the same again")
	if err != nil {
		return "", err
	}
	if again != p {
		return "", usageError("", "the two passphrases differ; nothing was changed")
	}
	return p, nil
}

// commandEnviron is what commands that a tool runs start with: all but the passphrase of the vault.
func (a *app) commandEnviron() []string {
	return slices.DeleteFunc(slices.Clone(a.out.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(passphraseVariables(), func(v string) bool { return sameVariable(v, name, a.goos) })
	})
}

// passphraseVariables are the variables that a passphrase is taken from.
func passphraseVariables() []string {
	return []string{"TAI_PASSPHRASE", "TAI_PASSPHRASE_FILE", "TAI_NEW_PASSPHRASE", "TAI_NEW_PASSPHRASE_FILE"}
}

// passphraseFile takes a file's name from the current folder, as the person does.
func (a *app) passphraseFile(name string) string {
	if name == "" {
		return ""
	}
	return absolute(name, a.out.Dir)
}

func (a *app) askHidden(ctx context.Context, question string) (secret, error) {
	in, ok := a.stdin.(*os.File)
	if !ok {
		return "", errNoAnswer
	}
	line, err := readHidden(ctx, in, a.stderr, question+" (not shown): ")
	return secret(line), err
}

// asUsage gives an error of what was typed its exit code.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return &cliError{Exit: exitUsage, Message: err.Error(), err: err}
}

// unlock reads the secrets that are to be redacted, before anything is printed or logged, so that a run that cannot do so ends at once and
// says why. A vault that is not there, or cannot be opened, is the command's own business.
func (a *app) unlock(ctx context.Context) error {
	if _, there, err := vaultPath(a.home); err != nil || !there {
		return nil
	}
	if _, err := a.vault(ctx); err != nil {
		return nil
	}
	if err := a.openSealed(ctx); err != nil {
		return err
	}
	_, err := a.known.redactor(ctx)
	return err
}

// unlockLog opens the seal for the key that signs the run log, before the log begins: a person needs the time that they need to type a
// passphrase, and signing a head has a bound. What cannot be opened for another reason is the command's own business.
func (a *app) unlockLog(ctx context.Context) error {
	if _, there, err := vaultPath(a.home); err != nil || !there {
		return nil
	}
	v, err := a.vault(ctx)
	if err != nil {
		return nil
	}
	if needs, err := v.needsPassphrase(ctx); err != nil || !needs {
		return nil
	}
	a.signing.Store(true)
	defer a.signing.Store(false)
	return v.openSeal(ctx)
}

// openSealed opens the seal without reading anything. It may ask the person, who needs the time that they need.
func (a *app) openSealed(ctx context.Context) error {
	v, err := a.vault(ctx)
	if err != nil {
		return err
	}
	return v.openSeal(ctx)
}
