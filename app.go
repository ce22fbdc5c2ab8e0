// This file wires one run of tai: where things live, the vault opened when first needed, the policy, the run log, the bridge and
// the tools. It holds no command.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// outside is the world as run gets it, so that a test can give another one.
type outside struct {
	Getenv  func(string) string
	Environ []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	GOOS    string
	Now     func() time.Time
	Dir     string // the current folder

	Derive keyDerivation // nil for keyFromPassphrase, which takes its time
}

// storeUse says what a command does with the vault.
type storeUse int

const (
	storeNone  storeUse = iota
	storeRead           // reads; a missing vault is an empty one, nothing is created
	storeThere          // writes to a vault that is there, else the same as storeRead
	storeWrite          // creates the vault if need be
)

// app is one run. Its parts are made when first needed; close ends them.
type app struct {
	out         outside
	stdin       io.Reader
	stdout      *checkedWriter
	stderr      io.Writer
	outTerminal bool
	errTerminal bool
	inTerminal  bool
	person      bool // someone sits at a terminal and can be asked
	goos        string
	json        bool
	home        string
	root        string
	profileFlag string
	profileNow  atomic.Pointer[string] // that the run was switched to, nil for none
	origin      string                 // repl, cli, http or mcp, for the run log
	use         storeUse

	signing    atomic.Bool // the seal is opened for the key that signs the run log
	discarding atomic.Bool // what nothing opens is being given up: no head can be signed until that is done

	known  *knownSecrets
	policy *policy
	rates  *rateLimiter // of the workspace
	audit  *auditLog
	bridge *mcpBridge
	repos  *resolver
	http   *http.Client
	web    *webFetcher  // what tools fetch with
	procs  *procManager // background commands
	agents *agentHost   // sub-agents
	window int          // tokens that the model takes, by --window; 0 without it

	serving  atomic.Bool // calls of others come in
	console  *console    // nil where no person sits
	desk     *desk       // the queue for it
	mu       sync.Mutex
	store    *vault
	storeErr error
	empty    *vault // the one in memory that store was before, nil if it was none
	tools    *toolbox
	foretold *toolbox        // what policy_check judges by where more than the native tools is served; nil: tools
	natives  map[string]bool // names of the native tools; nil before they were asked for
}

// openApp makes the parts that cost nothing; files are opened when a command needs them.
func openApp(out outside, flags map[string][]string, use storeUse, origin string) (*app, error) {
	a := &app{out: out, stdin: out.Stdin, goos: out.GOOS, origin: origin, use: use}
	a.known = &knownSecrets{vault: a.vault, environ: out.Environ, sealed: a.discarding.Load}
	a.stdout = &checkedWriter{w: &maskedWriter{out.Stdout, a.known.quick}}
	a.stderr = &maskedWriter{out.Stderr, a.known.quick}
	a.outTerminal, a.errTerminal = writerIsTerminal(out.Stdout), writerIsTerminal(out.Stderr)
	in, isFile := out.Stdin.(*os.File)
	a.inTerminal = isFile && isTerminal(in)
	a.person = a.inTerminal && a.errTerminal && !a.serves() // nobody sits behind a served call
	get := func(name string) string {
		if v := flags[name]; len(v) > 0 {
			return v[len(v)-1]
		}
		return ""
	}
	a.json, a.profileFlag = get("json") != "", get("profile")
	var err error
	if a.home, err = homeFolder(get("home"), out); err != nil {
		return nil, err
	}
	if a.root, err = rootFolder(get("root"), out.Dir); err != nil {
		return nil, err
	}
	if a.person {
		a.console = &console{in: in, out: out.Stderr}
		a.desk = newDesk(a.console, a.showLine, a.redact)
	}
	a.procs, a.agents = newProcManager(out.Now), a.newAgents()
	a.procs.join(a.agents)
	a.http = newHTTPClient(httpClientConfig{Env: out.Getenv})
	a.web = newWebFetcher(webFetcherConfig{Env: out.Getenv})
	a.audit = newAuditLog(auditConfig{
		Dir: a.runFolder(), Origin: origin, Now: out.Now, Redact: a.redact, Heads: a.putHead,
		Warn: func(line string) { fmt.Fprintln(a.stderr, "tai: "+visibleLine(a.redact(line))) },
	})
	if a.policy, err = a.newPolicy(flags, get); err != nil {
		return nil, err
	}
	a.bridge = newMCPBridge(bridgeConfig{
		Vault: a.vault, Policy: a.policy, Trust: &trustSource{Dir: a.policyFolder(), Trusted: a.trustedFile}, Rates: a.rates, Audit: a.audit, Redact: a.redact, Mask: a.known.redactor, Env: a.lookupEnv, Environ: out.Environ, Dir: out.Dir, GOOS: out.GOOS,
		Profile: a.profile, HTTP: a.http, Web: a.web, Taken: a.nativeName, Now: out.Now, Changed: a.known.changed,
	})
	a.repos = newResolver(resolverConfig{Web: a.web, Env: a.lookupEnv, Secret: a.namedSecret, Policy: a.policy, Audit: a.audit, Now: out.Now, GOOS: a.goos, Fork: a.forkReader})
	return a, nil
}

// serves reports a run whose calls come from others.
//
//go:noinline for size: it is called in many places
func (a *app) serves() bool { return a.origin == originHTTP || a.origin == originMCP }

// runFolder is where this run is logged: a governed workspace keeps what was done in it.
func (a *app) runFolder() string {
	if a.origin == originMCP {
		return filepath.Join(a.policyFolder(), "runs")
	}
	return filepath.Join(a.home, "runs")
}

// newPolicy takes the mode from the command line, else from the workspace, else prompt. A wider mode or an allow preset of the
// workspace counts only if the vault holds that file's hash; what narrows always counts.
func (a *app) newPolicy(flags map[string][]string, get func(string) string) (*policy, error) {
	cfg := policyConfig{Mode: modePrompt, Yes: get("yes") != "", Root: a.root, Redact: a.redact}
	if a.origin == originHTTP {
		cfg.Mode = modeDanger // the key is the authority; the workspace's own mode or --permission-mode narrows it
	}
	if a.console != nil {
		cfg.Prompter, cfg.Turn = a.console, a.desk.turn
	}
	if a.origin == originMCP {
		cfg.ScopedFlag, cfg.Digests = true, flags["approve-scoped"]
	}
	for _, scoped := range cfg.Digests {
		if err := checkScoped(scoped); err != nil {
			return nil, usageError("tai approval digest TOOL JSON prints the flag of one exact call", "--approve-scoped: %v", err)
		}
	}
	if a.serves() {
		cfg.Fresh = newPresetWatch(a.policyFolder(), a.trustedFile, func(note string) { fmt.Fprintln(a.stderr, "tai: "+visibleLine(note)) }).fresh
	}
	ws, err := loadWorkspacePolicy(a.policyFolder(), a.trustedFile)
	if err != nil {
		return nil, &cliError{Exit: exitUsage, Message: err.Error(), Hint: "mend or remove the file; a lost deny is worse than no service", err: err}
	}
	for _, note := range ws.Notes {
		fmt.Fprintln(a.stderr, "tai: "+visibleLine(note))
	}
	cfg.Presets, a.rates = ws.Presets, newRateLimiter(ws.Rates, a.out.Now)
	if ws.Mode != "" {
		cfg.Mode, cfg.ModeGiven = ws.Mode, ws.Mode == modeReadOnly
	}
	cfg.SavePreset = a.savePreset
	cfg.Show = func(ctx context.Context, line string) {
		if askerOf(ctx).Background {
			a.tellBackground(line)
			return
		}
		fmt.Fprintln(a.stderr, "tai: "+line)
	}
	modes := 0
	for flag, mode := range map[string]string{"auto": string(modeAllow), "yolo": string(modeDanger), "permission-mode": get("permission-mode")} {
		if len(flags[flag]) == 0 {
			continue
		}
		m, err := parseMode(mode, a.origin == originMCP)
		if err != nil {
			return nil, &cliError{Exit: exitUsage, Message: err.Error(), err: err}
		}
		cfg.Mode, cfg.ModeGiven = m, true
		modes++
	}
	if modes > 1 {
		return nil, usageError("", "--auto, --yolo and --permission-mode exclude each other")
	}
	return newPolicy(cfg), nil
}

// trustTimeout bounds one look into the vault for a file's hash.
const trustTimeout = 5 * time.Second

// trustedFile reports whether the vault holds the hash of a workspace file, because tai wrote it or a person confirmed it.
func (a *app) trustedFile(sha256 string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), trustTimeout)
	defer cancel()
	v, err := a.vault(ctx)
	if err != nil {
		return false // in doubt it widens nothing
	}
	trusted, err := v.trustedFile(ctx, sha256)
	return err == nil && trusted
}

// homeFolder finds tai's data folder: the flag, TAI_HOME, else the system's place for application data.
func homeFolder(flag string, out outside) (string, error) {
	if flag == "" {
		flag = out.Getenv("TAI_HOME")
	}
	if flag != "" {
		return absolute(flag, out.Dir), nil
	}
	user := out.Getenv("HOME")
	switch out.GOOS {
	case "windows":
		if dir := out.Getenv("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "tai"), nil
		}
		user = out.Getenv("USERPROFILE")
	case "darwin":
		if user != "" {
			return filepath.Join(user, "Library", "Application Support", "tai"), nil
		}
	default:
		if dir := out.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "tai"), nil
		}
	}
	if user == "" {
		return "", usageError("give --home or TAI_HOME", "no home folder is known")
	}
	return filepath.Join(user, ".local", "share", "tai"), nil
}

// configFolder finds the folder of tai's settings, apart from its data: the key files are there, so that a copy of the data alone opens
// nothing. It is "" where the system names none.
func configFolder(out outside) string {
	user := out.Getenv("HOME")
	switch out.GOOS {
	case "windows":
		if dir := out.Getenv("APPDATA"); dir != "" {
			return filepath.Join(dir, "tai")
		}
		return ""
	case "darwin": // Application Support holds the data
	default:
		if dir := out.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
			return filepath.Join(dir, "tai")
		}
	}
	if user == "" {
		return ""
	}
	return filepath.Join(user, ".config", "tai")
}

// rootFolder resolves the workspace once, so that a link changed later moves nothing (ROO-05).
func rootFolder(flag, dir string) (string, error) {
	root, err := filepath.EvalSymlinks(absolute(flag, dir))
	if err != nil {
		return "", usageError("--root names a folder that is there", "workspace %s cannot be used: %v", quoteClip(flag), bareError(err))
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return "", usageError("--root names a folder", "workspace %s is no folder", quoteClip(flag))
	}
	return root, nil
}

func absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// checkedWriter remembers that something could not be written, so that a command whose answer went nowhere does not end well.
type checkedWriter struct {
	w      io.Writer
	err    error
	broken func() // told once of the first fault; may be nil
}

func (c *checkedWriter) unwrap() io.Writer { return c.w }

func (c *checkedWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if err != nil && c.err == nil {
		c.err = err
		if c.broken != nil {
			c.broken()
		}
	}
	return n, err
}

// errOutputGone is the fault of an output whose reader went away, as head does when it has enough.
var errOutputGone = errors.New("the reader of the output is gone")

// outcome is what a command came to whose answer went here: a reader that is gone explains every other failure.
func (c *checkedWriter) outcome(err error) error {
	if fault := c.fault(); err == nil || errors.Is(fault, errOutputGone) {
		return fault
	}
	return err
}

// fault is what kept the answer from being written.
func (c *checkedWriter) fault() error {
	switch {
	case c.err == nil:
		return nil
	case errors.Is(c.err, syscall.EPIPE):
		return errOutputGone
	}
	return errorf("write the answer: %w", c.err)
}

// errWidth gives the columns of stderr, 0 where it is no screen.
func (a *app) errWidth() int {
	cols, _ := screenSize(a.out.Stderr)
	return cols
}

func writerIsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f)
}

// vault opens the vault on first use; later uses get the same one.
func (a *app) vault(ctx context.Context) (*vault, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.store == nil && a.storeErr == nil {
		mode := vaultRead
		if _, there, err := vaultPath(a.home); a.use == storeWrite || a.use == storeThere && err == nil && there {
			mode = vaultWrite
		}
		store, err := openVault(ctx, a.home, mode, a.out.Now, a.keys())
		if why := err; (errors.Is(err, errVaultReadOnly) || errors.Is(err, errVaultFull)) && a.use == storeThere {
			store, err = openVault(ctx, a.home, vaultRead, a.out.Now, a.keys()) // reading still works; a write tells what is wrong (VLT-03, VLT-04)
			if err == nil {
				store.unwritable = why
			}
		}
		if err != nil && ctx.Err() != nil {
			return nil, err // whoever gave up: the next one may try again
		}
		if errors.Is(err, fs.ErrPermission) {
			err = &hintedError{err, "tai must be able to read and write there; --home or TAI_HOME names another data folder, XDG_CONFIG_HOME another place for the key file"}
		}
		if a.store, a.storeErr = store, err; err == nil {
			for _, warning := range []error{store.unwiped, store.unwitnessed} {
				if warning != nil {
					fmt.Fprintln(a.stderr, "tai: "+visible(warning.Error()))
				}
			}
		}
	}
	return a.store, a.storeErr
}

// putHead puts the head of this run's log on record in the vault, which is made if need be: whatever the command, the log is written beside it.
// It must be called with no transaction of the vault open.
func (a *app) putHead(ctx context.Context, h auditHead) error {
	if a.discarding.Load() {
		return nil // the log begins before there is a key to sign its head with; the next head says more
	}
	v, err := a.writableVault(ctx)
	if err != nil {
		return err
	}
	return v.putAuditHead(ctx, h)
}

// writableVault gives a vault that can be written; it is made if need be.
func (a *app) writableVault(ctx context.Context) (*vault, error) {
	v, err := a.vault(ctx)
	if err == nil && v.path == vaultNowhere {
		v, err = a.makeVault(ctx)
	}
	return v, err
}

// makeVault puts a vault on disk in the place of the empty one in memory.
func (a *app) makeVault(ctx context.Context) (*vault, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.store.path != vaultNowhere {
		return a.store, nil // made meanwhile
	}
	made, err := openVault(ctx, a.home, vaultWrite, a.out.Now, a.keys())
	if err != nil {
		return nil, err
	}
	a.empty, a.store = a.store, made // the empty one may be in use
	a.known.changed()
	return made, nil
}

// profile gives the profile to work in: the one that the run was switched to or the flag, which must name one that is there, else the stored current one.
func (a *app) profile(ctx context.Context) (string, error) {
	if profile := profileOf(ctx); profile != "" {
		return profile, nil // of a served turn, which has made sure that it is there
	}
	v, err := a.vault(ctx)
	if err != nil {
		return "", err
	}
	chosen := a.profileFlag
	if name := a.profileNow.Load(); name != nil {
		chosen = *name
	}
	if chosen == "" {
		return v.currentProfile(ctx)
	}
	list, err := v.profiles(ctx)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(list, func(p profileInfo) bool { return p.Name == chosen }) {
		return "", usageError("tai profile list shows the names, tai profile create makes one", "no such profile: %s", quoteClip(chosen))
	}
	return chosen, nil
}

func (a *app) lookupEnv(name string) (string, bool) {
	for i := len(a.out.Environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(a.out.Environ[i], "="); ok && sameVariable(k, name, a.goos) {
			return v, true
		}
	}
	return "", false
}

// redact takes every known secret out of a text.
//
//go:noinline for size: it is called in many places
func (a *app) redact(s string) string { return a.known.text(s) }

// close ends the sub-agents, the background commands, the servers, the run log and the vault, in this order.
func (a *app) close() error {
	err := joinErrors(a.agents.close(), a.procs.close(), a.bridge.close(), a.audit.close())
	a.web.close()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, v := range []*vault{a.store, a.empty} {
		if v != nil {
			err = joinErrors(err, v.close())
		}
	}
	if err != nil {
		return errorf("end: %w", err)
	}
	return nil
}
