// This file owns the shape of a command and of one command being run. It knows no command.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// command is one command of the tree. Its last word names the deed.
type command struct {
	Path    string // words, such as "mcp add"
	Args    string // usage of its arguments
	Short   string // one line
	Long    string // further lines for its own help, may be empty
	Example string // a real line
	Flags   []flagSpec
	Min     int // arguments it needs
	Max     int // arguments it takes; -1 for any number
	Store   storeUse
	Origin  string // of its run log; "" means cli
	Redacts bool   // what it prints or logs is redacted, so the vault's seal is opened before it runs
	Signs   bool   // what it does is logged though it redacts nothing, so a passphrase for the key that signs the log is asked for before it runs
	Alone   bool   // it needs no run: nothing is looked up, opened or checked for it
	Run     func(context.Context, *invocation) error
}

// turnSetup is how the turns of this run are to go.
type turnSetup struct {
	bounds  turnBounds
	window  int
	session string // to go on with; "" for a new one
}

// invocation is one command being run, from the shell or from the prompt.
type invocation struct {
	*app
	cmd   command
	args  []string
	rest  []string // after --
	dash  bool     // whether there was a --
	flags map[string][]string
	json  bool            // one JSON document on stdout
	turn  turnSetup       // of the prompt
	life  context.Context // of the run; an interrupt ends Run's context, not this one
}

//go:noinline for size: it is called in many places
func (c *invocation) flag(name string) string {
	if v := c.flags[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// orUnknown gives what is not found the hint where to look for what is.
func orUnknown(err error, hint string) error {
	if errors.Is(err, errNotFound) {
		return &cliError{Exit: exitFailed, Message: err.Error(), Hint: hint, err: err}
	}
	return err
}

// privateFault gives a fault of a file of secrets, which a person named, its exit code and the way out: hint, unless the
// way out is known. what says what it holds.
func privateFault(what, path, hint string, err error) error {
	if loose, ok := errors.AsType[*looseFileError](err); ok {
		return usageError("chmod 600 "+quoteWord(path), "%s %s can be read by others (mode %04o)", what, quoteClip(path), loose.Mode)
	}
	return &cliError{Exit: exitUsage, Message: fmt.Sprintf("%s %s: %v", what, quoteClip(path), bareError(err)), Hint: hint, err: err}
}

//go:noinline for size: it is called in many places
func (c *invocation) given(name string) bool { return len(c.flags[name]) > 0 }

// limit reads --limit; without it the command's own.
func (c *invocation) limit(otherwise int) (int, error) {
	if !c.given("limit") {
		return otherwise, nil
	}
	n, err := strconv.Atoi(c.flag("limit"))
	if err != nil || n < 1 || n > 10_000 {
		return 0, usageError("", "--limit takes a whole number from 1 to 10000")
	}
	return n, nil
}

// recorded does what a person's own command changes in the vault, with the run log around it: the words typed are the permission. Where there is
// no vault yet there is nothing to change, and no run is begun to say so.
func (c *invocation) recorded(ctx context.Context, d deed, do func(*vault) error) error {
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	if v.path == vaultNowhere {
		return do(v)
	}
	return c.audit.perform(d, func() (string, error) { return "", nil }, func() (string, error) { return "", do(v) })
}
