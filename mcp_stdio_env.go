// This file finds a stdio server's command and lays out its environment. Nothing here starts anything.
package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// waitFor waits until all channels are closed, at most d, and reports whether they are.
func waitFor(d time.Duration, all ...<-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for _, c := range all {
		select {
		case <-c:
			continue
		default:
		}
		select {
		case <-c:
		case <-timer.C:
			return false
		}
	}
	return true
}

// spawnFault says which file is missing when the kernel does not: the command itself is there.
func spawnFault(path string, err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		err = pe.Err
	}
	if errors.Is(err, os.ErrNotExist) {
		return errorf("the interpreter named in its first line: %w", err)
	}
	return err
}

// findCommand returns the file that argv[0] names. A bare name is looked for in the PATH of env, which is the child's own, in
// absolute folders only; no shell and no current folder take part.
func findCommand(argv, env []string, dir string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", newError("no command is given")
	}
	if dir != "" {
		if info, err := os.Stat(dir); err != nil {
			return "", errorf("working folder %s: %w", visibleLine(dir), bareError(err))
		} else if !info.IsDir() {
			return "", errorf("working folder %s is no folder", visibleLine(dir))
		}
	}
	name := argv[0]
	exts := executableExts(env, runtime.GOOS)
	if filepath.Base(name) != name {
		at := name
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, name)
		}
		found, err := executable(at, exts)
		if err != nil {
			return "", errorf("command %s: %w", visibleLine(name), bareError(err))
		}
		return filepath.Abs(found)
	}
	path := envValue(env, "PATH", runtime.GOOS)
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue
		}
		if found, err := executable(filepath.Join(folder, name), exts); err == nil {
			return found, nil
		}
	}
	return "", errorf("command %s was not found in PATH %s", visibleLine(name), visibleLine(path))
}

// executable returns file, or file with the first of exts, if that is a file which may be run.
func executable(file string, exts []string) (string, error) {
	var first error
	for _, ext := range exts {
		info, err := os.Stat(file + ext)
		switch {
		case err == nil && info.IsDir():
			err = newError("is a folder")
		case err == nil && runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
			err = newError("is not executable")
		case err == nil:
			return file + ext, nil
		}
		if first == nil {
			first = err
		}
	}
	return "", first
}

// executableExts are the endings that may be left off a command's name.
func executableExts(env []string, goos string) []string {
	if goos != "windows" {
		return []string{""}
	}
	list := envValue(env, "PATHEXT", goos)
	if list == "" {
		list = ".COM;.EXE;.BAT;.CMD"
	}
	exts := strings.Split(strings.ToLower(list), ";")
	return append(exts, "") // a name that already has its ending
}

// bareError takes the path and the system call out of an error that is shown with the path already.
//
//go:noinline for size: it is called in many places
func bareError(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

// stdioEnv is the whole environment of a stdio server: of base (KEY=VALUE, tai's own) only what programs need to work at all,
// and the entry's own variables laid over it, empty ones included. Keys and passphrases of tai or of other programs are not in
// the base list and so never reach a server unless its entry names them.
func stdioEnv(base []string, entry map[string]string, goos string) []string {
	var env []string
	for _, kv := range base {
		key, value, ok := strings.Cut(kv, "=")
		if !ok || !baseVariable(key, value, goos) {
			continue
		}
		if !overlaid(entry, key, goos) {
			env = append(env, kv)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		env = append(env, key+"="+entry[key])
	}
	return env
}

// baseVariable reports whether a variable of tai's own environment is passed on.
func baseVariable(key, value, goos string) bool {
	if strings.HasPrefix(value, "()") {
		return false // an exported shell function is code
	}
	if goos == "windows" {
		switch strings.ToUpper(key) {
		case "PATH", "PATHEXT", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "TEMP", "TMP", "OS",
			"USERNAME", "USERPROFILE", "USERDOMAIN", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
			"PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "COMMONPROGRAMFILES", "PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS":
			return true
		}
		key = strings.ToUpper(key)
	}
	switch key {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ",
		"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME":
		return true
	case "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS": // certificates of a company's proxy: paths, no secrets
		return true
	case "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy":
		return !strings.Contains(value, "@") // one with a password is passed on only by the entry
	}
	return strings.HasPrefix(key, "LC_")
}

func overlaid(entry map[string]string, key, goos string) bool {
	for k := range entry {
		if sameVariable(k, key, goos) {
			return true
		}
	}
	return false
}

//go:noinline for size: it is called in many places
func sameVariable(a, b, goos string) bool {
	return a == b || goos == "windows" && strings.EqualFold(a, b)
}

// envValue returns the last value of a variable, as the child sees it.
func envValue(env []string, name, goos string) (value string) {
	for _, kv := range env {
		if key, v, ok := strings.Cut(kv, "="); ok && sameVariable(key, name, goos) {
			value = v
		}
	}
	return value
}
