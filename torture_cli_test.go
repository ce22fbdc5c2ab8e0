package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tortureCommand gives a command line for the number n, and what must be there once it exited with 0.
func tortureCommand(t testing.TB, n int) (words []string, ack string) {
	switch n % 4 {
	case 0:
		return []string{"secret", "set", fmt.Sprint("S_", n), "--from", "env:TORTURE_VALUE"}, fmt.Sprint("secret S_", n)
	case 1:
		name := fmt.Sprint("m-", n)
		return fakeWords(t, name, fakeStdio{}), "server " + name
	case 2:
		return []string{"tools", "call", "shell_run", fmt.Sprintf("command=touch deed-%d-", n)}, fmt.Sprint("deed ", n)
	default:
		return []string{"profile", "create", fmt.Sprint("p-", n)}, fmt.Sprint("profile p-", n)
	}
}

// tortureCLIWhole looks at the home and the folder that command lines worked in.
func tortureCLIWhole(ctx context.Context, r *cliRig, acks map[string]bool) (err error) {
	lines, _, err := tortureLogs(r.home)
	if err != nil {
		return err
	}
	deeds, err := filepath.Glob(filepath.Join(r.dir, "deed-*"))
	if err != nil {
		return err
	}
	for ack := range acks {
		if kind, n, _ := strings.Cut(ack, " "); kind == "deed" {
			if _, err := os.Stat(filepath.Join(r.dir, "deed-"+n+"-")); err != nil {
				return fmt.Errorf("%w: %s: %w", errTorture, ack, err)
			}
		}
	}
	requested := 0
	for line := range lines {
		if strings.HasPrefix(line, "requested ") {
			requested++
		}
	}
	if len(deeds) > requested {
		return fmt.Errorf("%w: %d deeds, %d requested lines", errTorture, len(deeds), requested)
	}
	v, err := openVault(ctx, r.home, vaultRead, time.Now, vaultKeys{Dir: filepath.Join(r.home+"-config", "tai", "keys")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	var sound string
	if err := v.db.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&sound); err != nil || sound != "ok" {
		return fmt.Errorf("integrity check: %q, %v", sound, err)
	}
	profiles, err := v.profiles(ctx)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, p := range profiles {
		known[p.Name] = true
	}
	for ack := range acks {
		kind, name, _ := strings.Cut(ack, " ")
		ok, err := true, error(nil)
		switch kind {
		case "secret":
			var value secret
			value, err = v.secretFor(ctx, "", name)
			ok = value.reveal() == tortureText("value")
		case "server":
			_, err = v.server(ctx, name)
		case "profile":
			ok = known[name]
		}
		if err != nil || !ok {
			return fmt.Errorf("%w: %s is not there (%v)", errTorture, ack, err)
		}
	}
	return nil
}

func (x *torture) commandLife(r *rand.Rand, dir string, rounds int) error {
	rig := &cliRig{t: x.t, home: filepath.Join(dir, "home"), dir: filepath.Join(dir, "work"), env: []string{"TORTURE_VALUE=" + tortureText("value")}}
	acks := map[string]bool{}
	if err := os.Mkdir(rig.dir, 0o700); err != nil {
		return err
	}
	for n := range rounds {
		words, ack := tortureCommand(x.t, n)
		cmd := rig.process(words...)
		if err := cmd.Start(); err != nil {
			return err
		}
		timer := time.AfterFunc(tortureDelay(r, 250), func() { cmd.Process.Kill() })
		_ = cmd.Wait() // killed, most of the time
		timer.Stop()
		switch code := cmd.ProcessState.ExitCode(); code {
		case exitDone:
			acks[ack] = true
			x.acks.Add(1)
		case -1:
			x.kills.Add(1)
		default:
			return fmt.Errorf("%q: exit %d", words, code)
		}
		ctx, cancel := context.WithTimeout(x.t.Context(), time.Minute)
		err := tortureCLIWhole(ctx, rig, acks)
		cancel()
		if err != nil {
			return fmt.Errorf("after %q: %w", words, err)
		}
	}
	return nil
}

// VLT-02, AUD-07: whole command lines, killed at any moment: what one of them ended well with is there, and nothing was run without
// its line in the log.
func TestTortureVLT02Commands(t *testing.T) {
	tortureKill(t, [2]int{2, 8}, [2]int{10, 40}, (*torture).commandLife)
}
