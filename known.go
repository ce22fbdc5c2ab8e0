// This file owns what a run masks: it reads the secrets of the vault and of the environment, notices when they change, and forgets none
// that was one while it runs. It knows no spelling of them and prints nothing.
package main

import (
	"context"
	"strings"
	"sync"
	"time"
)

const (
	knownReadTime  = time.Minute            // reading the secrets; a person may be typing the passphrase
	knownCheckTime = 200 * time.Millisecond // asking whether others changed the vault
	knownFresh     = time.Millisecond       // how long an answer to that holds, so that many texts ask once
	knownOldMax    = 1000                   // values that are no longer stored and still masked; further ones push the oldest out
	knownWithheld  = "[withheld: the vault's secrets cannot be read, so nothing can be redacted]"
)

// knownSecrets masks what is a secret to this run. It is safe for many goroutines.
type knownSecrets struct {
	vault   func(context.Context) (*vault, error)
	environ []string
	sealed  func() bool // that sealed values are left out where they do not open, because they are being given up; nil for never

	mu      sync.Mutex
	mask    *redactor // nil where there is no secret
	read    bool      // mask was made
	told    int       // changes that this process made itself
	made    int       // told when mask was made
	others  int64     // the vault's count of other processes' commits when mask was made
	checked time.Time // when that was last asked

	environOnce sync.Once
	environMask *redactor // for quick

	reading sync.Mutex    // one reader at a time; it guards the rest
	Own     []namedSecret // of this run, in no vault
	Values  []namedSecret
	seen    map[string]bool // by knownID
}

// text takes every known secret out of a text. Where they could never be read the text is withheld: in doubt nothing shows.
func (k *knownSecrets) text(s string) string {
	r, err := k.redactor(context.Background()) // a text is masked also after its call was cancelled
	if err != nil {
		return knownWithheld
	}
	return r.text(s)
}

// adopt masks a secret that this run was given and keeps in no vault. A short one would take ordinary words out of texts, as of a variable.
func (k *knownSecrets) adopt(s namedSecret) {
	if len(s.Value) < secretEnvMin {
		return
	}
	k.reading.Lock()
	k.Own = append(k.Own, s)
	k.reading.Unlock()
	k.changed()
}

// changed tells that this process stored, replaced or dropped a secret, or put one to use: the next text reads them anew.
func (k *knownSecrets) changed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told++
}

// current gives the mask and whether it can be used without asking the vault.
func (k *knownSecrets) current() (r *redactor, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mask, k.read && k.made == k.told && time.Since(k.checked) < knownFresh
}

// redactor gives the mask of this moment.
func (k *knownSecrets) redactor(ctx context.Context) (*redactor, error) {
	if r, fresh := k.current(); fresh {
		return r, nil
	}
	k.reading.Lock()
	defer k.reading.Unlock()
	if r, fresh := k.current(); fresh {
		return r, nil // another goroutine has just looked
	}
	k.mu.Lock()
	mask, read, told, made, others := k.mask, k.read, k.told, k.made, k.others
	k.mu.Unlock()
	now, err := k.commits(ctx, read && made == told)
	if err != nil && (!read || made != told) {
		return nil, err
	}
	if err != nil || read && made == told && now == others {
		// A vault that is busy at this moment is asked again soon; what it held stays masked meanwhile.
		k.keep(mask, told, others)
		return mask, nil
	}
	news, err := k.load(ctx, mask)
	if err != nil && (!read || made != told) {
		return nil, err
	}
	if err != nil {
		news, now = mask, others // what another process changed cannot be read now: what was known stays masked
	}
	k.keep(news, told, now)
	return news, nil
}

func (k *knownSecrets) keep(mask *redactor, told int, others int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mask, k.read, k.made, k.others, k.checked = mask, true, told, others, time.Now()
}

// commits asks the vault how often other processes have written. quick is for one that was read before.
func (k *knownSecrets) commits(ctx context.Context, quick bool) (int64, error) {
	wait := knownReadTime
	if quick {
		wait = knownCheckTime
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	v, err := k.vault(ctx)
	if err != nil {
		return 0, err
	}
	at, err := v.stamp(ctx)
	return at.others, err
}

// load reads all secrets and gives the mask for them and for every earlier one; the same mask if nothing is new.
func (k *knownSecrets) load(ctx context.Context, mask *redactor) (*redactor, error) {
	ctx, cancel := context.WithTimeout(ctx, knownReadTime)
	defer cancel()
	v, err := k.vault(ctx)
	if err != nil {
		return nil, err
	}
	stored, rows, err := k.stored(ctx, v)
	if err != nil {
		return nil, err
	}
	list := make([]namedSecret, 0, 2*len(stored))
	for _, s := range stored {
		list = append(append(list, s), valuePasswords(s.Name, s.Value.reveal())...)
	}
	for _, kv := range k.environ {
		if name, value, ok := strings.Cut(kv, "="); ok {
			list = append(list, environSecrets(name, value)...)
		}
	}
	list = append(list, k.Own...)
	for _, row := range rows {
		list = append(list, entrySecrets(row.serverEntry)...)
	}
	if !k.add(list) && mask != nil {
		return mask, nil
	}
	return newRedactor(k.Values), nil
}

// stored reads what the vault holds of secrets.
func (k *knownSecrets) stored(ctx context.Context, v *vault) (list []namedSecret, rows []serverRow, err error) {
	list, err = v.knownSecrets(ctx)
	if err == nil {
		rows, err = v.servers(ctx)
	}
	if err != nil && k.sealed != nil && k.sealed() {
		rows, err = v.serverList(ctx)
		return nil, rows, err
	}
	return list, rows, err
}

// environSecrets gives what of a variable is a secret: its value where the name says so, else the password of a connection string.
func environSecrets(name, value string) []namedSecret {
	list := valuePasswords(name, value)
	if secretName(name) && len(value) >= secretEnvMin {
		list = append(list, namedSecret{Name: name, Value: secret(value)})
	}
	return list
}

// add takes the values that are secrets now and reports whether one is new.
func (k *knownSecrets) add(list []namedSecret) (news bool) {
	if k.seen == nil {
		k.seen = map[string]bool{}
	}
	live := make(map[string]bool, len(list))
	for _, s := range list {
		id := knownID(s)
		live[id] = true
		if !k.seen[id] {
			k.seen[id], news = true, true
			k.Values = append(k.Values, s)
		}
	}
	over := len(k.Values) - len(live) - knownOldMax
	if over <= 0 {
		return news
	}
	kept := make([]namedSecret, 0, len(k.Values)) // the mask of before has the old list
	for _, s := range k.Values {
		if id := knownID(s); over > 0 && !live[id] {
			over--
			delete(k.seen, id)
		} else {
			kept = append(kept, s)
		}
	}
	k.Values = kept
	return true
}

func knownID(s namedSecret) string { return s.Name + "=" + sha256Hex([]byte(s.Value.reveal())) }

// quick masks with what was read last and never looks into the vault: where nothing was read yet, only secrets of the environment can be in
// what the run says. It is for the last door, which prompts pass while the vault is being opened, and words such as those of help.
func (k *knownSecrets) quick(s string) string {
	k.mu.Lock()
	mask, read := k.mask, k.read
	k.mu.Unlock()
	if read {
		return mask.text(s)
	}
	k.environOnce.Do(func() {
		var list []namedSecret
		for _, kv := range k.environ {
			if name, value, ok := strings.Cut(kv, "="); ok {
				list = append(list, environSecrets(name, value)...)
			}
		}
		k.environMask = newRedactor(list)
	})
	return k.environMask.text(s)
}
