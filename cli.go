// This file owns what every command line shares: exit codes, flags, and how a failure is said. It knows no command.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Exit codes of tai.
const (
	exitDone        = 0
	exitFailed      = 1   // a tool's own failure, network, disk
	exitUsage       = 2   // usage or unusable input
	exitRefused     = 3   // by policy, consent or pin
	exitLogin       = 4   // a login is needed
	exitInterrupted = 130 // by the person
)

// flagSpec declares one flag. Value names what follows it; "" means a switch. Many flags may be given more than once. Fits is set for a flag whose
// value may be left out: the next word is the value if it fits.
type flagSpec struct {
	Name, Value, Help string
	Many              bool
	Fits              func(word string) bool
}

// takes reports whether the word after the flag is its value, where it stands without an equals sign.
func (f flagSpec) takes(words []string) bool {
	return f.Value != "" && (f.Fits == nil || len(words) > 0 && f.Fits(words[0]))
}

// dashed is the flag as it is written: -o, --json.
//
//go:noinline for size: it is called in many places
func (f flagSpec) dashed() string {
	if len(f.Name) == 1 {
		return "-" + f.Name
	}
	return "--" + f.Name
}

// globalFlags are known to every command.
func globalFlags() []flagSpec {
	return []flagSpec{
		{Name: "json", Help: "one JSON document on stdout; of a turn, one line an event"},
		{Name: "root", Value: "DIR", Help: "the workspace (default: the current folder)"},
		{Name: "home", Value: "DIR", Help: "tai's data folder (default: TAI_HOME, else the system's)"},
		{Name: "profile", Value: "NAME", Help: "the profile to work in"},
		{Name: "permission-mode", Value: "MODE", Help: "read-only, prompt, allow or danger-full-access"},
		{Name: "auto", Help: "the same as --permission-mode allow"},
		{Name: "yolo", Help: "the same as --permission-mode danger-full-access"},
		{Name: "yes", Help: "answer this command's one question with yes"},
		{Name: "help", Help: "show the help of the command"},
	}
}

// cliError is a failure as a person or a program sees it.
type cliError struct {
	Exit    int
	Message string
	Rule    string
	Hint    string
	err     error
}

func (e *cliError) Error() string { return e.Message }

func (e *cliError) Unwrap() error { return e.err }

//go:noinline for size: it is called in many places
func usageError(hint, format string, args ...any) error {
	return &cliError{Exit: exitUsage, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// parseWords reads words against flags. A flag may stand anywhere before --; --name=value and --name value mean the same.
func parseWords(words []string, specs []flagSpec) (args, rest []string, dash bool, flags map[string][]string, err error) {
	flags = map[string][]string{}
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			return args, words[i+1:], true, flags, nil
		}
		if len(w) < 2 || w[0] != '-' {
			args = append(args, w)
			continue
		}
		if w == "-h" {
			w = "--help"
		}
		name, value, inline := strings.Cut(strings.TrimLeft(w, "-"), "=")
		k := slices.IndexFunc(specs, func(s flagSpec) bool { return s.Name == name })
		if k < 0 || !strings.HasPrefix(w, "--") && len(name) > 1 {
			return nil, nil, false, nil, usageError(nearest(name, specs), "unknown flag %s", visibleLine(w[:len(w)-len(strings.TrimLeft(w, "-"))]+name)) // without what it would set: that may be a secret
		}
		spec := specs[k]
		switch {
		case spec.Value == "" && inline:
			return nil, nil, false, nil, usageError("", "flag %s takes no value", spec.dashed())
		case !inline && spec.Value != "" && !spec.takes(words[i+1:]):
			value = ""
		case spec.Value != "" && !inline && i+1 >= len(words):
			return nil, nil, false, nil, usageError(spec.dashed()+" "+spec.Value+": "+spec.Help, "flag %s needs %s", spec.dashed(), spec.Value)
		case spec.Value != "" && !inline && isFlag(words[i+1], specs):
			return nil, nil, false, nil, usageError(spec.dashed()+"="+words[i+1]+" if that is meant", "flag %s needs %s, and %s is a flag", spec.dashed(), spec.Value, visibleLine(words[i+1]))
		case spec.Value != "" && !inline:
			i++
			value = words[i]
		case spec.Value == "":
			value = "true"
		}
		if len(flags[name]) > 0 && !spec.Many && spec.Value != "" {
			return nil, nil, false, nil, usageError("", "flag %s is given twice", spec.dashed())
		}
		flags[name] = append(flags[name], value)
	}
	return args, nil, false, flags, nil
}

// isFlag reports a word that is one of the flags as it stands.
func isFlag(word string, specs []flagSpec) bool {
	name, ok := strings.CutPrefix(word, "--")
	return ok && slices.ContainsFunc(specs, func(s flagSpec) bool { return s.Name == name })
}

// nearest suggests the flag that a wrong one may have meant.
func nearest(name string, specs []flagSpec) string {
	for _, s := range specs {
		if len(name) > 2 && len(s.Name) > 1 && (strings.HasPrefix(s.Name, name) || strings.HasPrefix(name, s.Name) || strings.HasSuffix(s.Name, "-"+name) || strings.HasSuffix(name, "-"+s.Name)) {
			return "did you mean --" + s.Name + "?"
		}
	}
	return "the flags are in the command's --help; what belongs to another program goes after --"
}

// failure gives an error the form in which it is told: exit code, rule and hint.
func failure(err error) *cliError {
	if ce, ok := errors.AsType[*cliError](err); ok {
		return ce
	}
	ce := &cliError{Exit: exitFailed, Message: err.Error(), err: err}
	if h, ok := errors.AsType[*hintedError](err); ok {
		ce.Hint = h.Hint
	}
	if me, ok := errors.AsType[*chatError](err); ok {
		ce.Hint = me.Hint
	}
	if re, ok := errors.AsType[*refusedError](err); ok {
		ce.Exit, ce.Rule, ce.Hint = exitRefused, re.Rule, re.Hint
		return ce
	}
	if ue, ok := errors.AsType[*unresolvedError](err); ok && len(ue.Missing) > 0 {
		ce.Hint = "tai secret set " + quoteWord(ue.Missing[0]) + " stores a value; a variable of that name does too"
	}
	he, isHTTP := errors.AsType[*mcpHTTPError](err)
	_, own := errors.AsType[*credentialsError](err)
	le, login := errors.AsType[*loginError](err)
	switch {
	case errors.Is(err, context.Canceled):
		ce.Exit = exitInterrupted
	case own:
		ce.Hint = "check your credentials in the entry's headers"
	case login:
		ce.Exit, ce.Hint = exitLogin, loginWords(le.Server, le.Profile)+" logs in with the browser"
	case isHTTP && he.Status == 401 && ce.Hint == "":
		ce.Exit, ce.Hint = exitLogin, "the server wants a login"
	case errors.Is(err, errNoAnswer):
		ce.Exit, ce.Rule = exitRefused, ruleRefused
	case errors.Is(err, errSealBroken) && ce.Hint == "":
		ce.Hint = "tai secret delete or tai mcp remove drops what is named here, tai vault seal --discard all that does not open; a backup may still hold it whole"
	case ce.Hint == "" && (errors.Is(err, errKeyFileMissing) || errors.Is(err, errKeyFileDamaged) || errors.Is(err, errWrongKeyFile) || errors.Is(err, errSealStripped)):
		ce.Hint = "if no copy of the key file is left, tai vault seal --discard gives the sealed values up and keeps all else"
	case ce.Hint == "" && errors.Is(err, errWrongPassphrase):
		ce.Hint = "where TAI_PASSPHRASE or TAI_PASSPHRASE_FILE is set, it is taken and nobody is asked; if it is forgotten, tai vault seal --discard gives the sealed values up and keeps all else"
	case errors.Is(err, errServerUnknown) && ce.Hint == "":
		ce.Hint = "tai mcp list shows the names"
	case errors.Is(err, errNotEnabled):
		ce.Exit, ce.Rule = exitRefused, "enablement"
	case errors.Is(err, errNoSuchTool) && ce.Hint == "":
		ce.Hint = "tai tools list shows the names"
	case errors.Is(err, errConnectTimeout) && strings.Contains(ce.Message, "://"):
		ce.Hint = "is the address right, and does the server run?"
	case errors.Is(err, errConnectTimeout):
		ce.Hint = "npx and uvx download a program at its first start: run the command once by hand until it is there, then try again"
	case errors.Is(err, errBadArguments):
		ce.Exit = exitUsage
	}
	return ce
}

// maskFailure takes known secrets out of what a failure will say; its kind stays.
func maskFailure(err error, mask func(string) string) error {
	if _, quiet := errors.AsType[errQuiet](err); err == nil || quiet {
		return err
	}
	ce := failure(err)
	message, hint := mask(ce.Message), mask(ce.Hint)
	if message == ce.Message && hint == ce.Hint {
		return err
	}
	return &cliError{Exit: ce.Exit, Message: message, Rule: ce.Rule, Hint: hint, err: err}
}

// tell writes a failure: a sentence and a hint on stderr, or the document on stdout.
func tell(err error, asJSON bool, stdout, stderr io.Writer) int {
	ce := failure(err)
	if asJSON {
		doc := struct {
			Error jsonFailure `json:"error"`
		}{ce.json()}
		if err := writeJSON(stdout, doc); err != nil {
			fmt.Fprintln(stderr, "tai: "+err.Error())
		}
		return ce.Exit
	}
	printWrapped(stderr, "tai: "+visible(ce.Message))
	if ce.Hint != "" {
		printWrapped(stderr, "hint: "+visible(ce.Hint))
	}
	return ce.Exit
}

type jsonFailure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Rule    string `json:"rule,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

func (e *cliError) json() jsonFailure {
	return jsonFailure{e.Exit, visible(e.Message), e.Rule, visible(e.Hint)}
}

// writeJSON writes one document and a line end.
//
//go:noinline for size: it is called in many places
func writeJSON(w io.Writer, v any) error { return encodeJSON(w, v, "  ") }

// writeJSONLine writes one document as one line.
func writeJSONLine(w io.Writer, v any) error { return encodeJSON(w, v, "") }

// encodeJSON escapes nothing for HTML, and hidden characters always: the value is the same and a screen shows no trick.
func encodeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return errorf("write the answer: %w", err)
	}
	if _, err := w.Write(escapeHidden(b.Bytes())); err != nil {
		return errorf("write the answer: %w", err)
	}
	return nil
}

// errQuiet is a failure that was told already; only its code is left.
type errQuiet struct{ Exit int }

func (e errQuiet) Error() string { return fmt.Sprintf("exit %d", e.Exit) }

// worse keeps the first failure, so that one exit code and one message tell what went wrong first.
func worse(have, err error) error {
	if have == nil {
		return err
	}
	return have
}

// readBounded reads all of r, or gives ctx's error. One byte over the limit is handed on, so that the reader of the text names its
// own limit.
func readBounded(ctx context.Context, r io.Reader, limit int64, what string) ([]byte, error) {
	type all struct {
		b   []byte
		err error
	}
	got := make(chan all, 1)
	go func() { // ends with the text; one that never ends lasts as long as the program, which an interrupt must still end
		b, err := io.ReadAll(io.LimitReader(r, limit+1))
		got <- all{b, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-got:
		if a.err != nil {
			return nil, errorf("read %s: %w", visibleLine(what), a.err)
		}
		return a.b, nil
	}
}
