package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// cliRig runs whole command lines in this process, in a home and a folder of their own.
type cliRig struct {
	t      testing.TB
	home   string
	dir    string
	env    []string // NAME=value beside PATH
	in     io.Reader
	ctx    context.Context
	derive keyDerivation // of its command lines; processes that it starts always take the real one
}

// cliRun is what a command line came to.
type cliRun struct {
	t        testing.TB
	words    []string
	code     int
	out, err string
}

func newCLIRig(t testing.TB) *cliRig {
	t.Helper()
	base := t.TempDir()
	r := &cliRig{t: t, home: filepath.Join(base, "home"), dir: filepath.Join(base, "work"), ctx: context.Background()}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { verifyLogs(t, filepath.Join(r.home, "runs")) })
	return r
}

func (r *cliRig) environ() []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "XDG_CONFIG_HOME=" + r.home + "-config", "TAI_HOME=" + r.home, "TAI_LOCAL_MODELS=off", "GORACE=atexit_sleep_ms=0"}, r.env...)
}

// keys is what the rig's command lines open a vault with.
func (r *cliRig) keys() vaultKeys {
	a := app{out: outside{Getenv: r.getenv, GOOS: runtime.GOOS, Derive: r.derive}}
	return a.keys()
}

func (r *cliRig) getenv(name string) string {
	value := ""
	for _, kv := range r.environ() {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			value = v
		}
	}
	return value
}

// tai runs one command line. Standard input is r.in, empty without one.
func (r *cliRig) tai(words ...string) cliRun {
	r.t.Helper()
	in := r.in
	if in == nil {
		in = strings.NewReader("")
	}
	var stdout, stderr bytes.Buffer
	code := run(r.ctx, words, outside{Getenv: r.getenv, Environ: r.environ(), Stdin: in, Stdout: &stdout, Stderr: &stderr, GOOS: runtime.GOOS, Now: time.Now, Dir: r.dir, Derive: r.derive})
	return cliRun{r.t, words, code, stdout.String(), stderr.String()}
}

// with is tai with a text on standard input.
func (r *cliRig) with(stdin string, words ...string) cliRun {
	r.t.Helper()
	r.in = strings.NewReader(stdin)
	defer func() { r.in = nil }()
	return r.tai(words...)
}

// ok wants exit 0 and gives what stood on stdout.
func (c cliRun) ok() string {
	c.t.Helper()
	if c.code != exitDone {
		c.t.Fatalf("tai %q: exit %d\nstdout: %s\nstderr: %s", c.words, c.code, c.out, c.err)
	}
	return c.out
}

// fails wants an exit code, nothing on stdout, and texts on stderr.
func (c cliRun) fails(code int, texts ...string) {
	c.t.Helper()
	if c.code != code || c.out != "" {
		c.t.Errorf("tai %q: exit %d, want %d\nstdout: %s\nstderr: %s", c.words, c.code, code, c.out, c.err)
		return
	}
	c.errHas(texts...)
}

func (c cliRun) errHas(texts ...string) {
	c.t.Helper()
	for _, s := range texts {
		if !strings.Contains(c.err, s) {
			c.t.Errorf("tai %q: no %q on stderr:\n%s", c.words, s, c.err)
		}
	}
}

func (c cliRun) outHas(texts ...string) {
	c.t.Helper()
	for _, s := range texts {
		if !strings.Contains(c.out, s) {
			c.t.Errorf("tai %q: no %q on stdout:\n%s", c.words, s, c.out)
		}
	}
}

// hides wants that no stream holds s.
func (c cliRun) hides(s string) {
	c.t.Helper()
	if strings.Contains(c.out, s) || strings.Contains(c.err, s) {
		c.t.Errorf("tai %q shows %q\nstdout: %s\nstderr: %s", c.words, s, c.out, c.err)
	}
}

// cliJSON reads stdout as one document.
func cliJSON[T any](c cliRun) T {
	c.t.Helper()
	var v T
	dec := json.NewDecoder(strings.NewReader(c.out))
	if err := dec.Decode(&v); err != nil {
		c.t.Fatalf("tai %q: stdout is no JSON: %v\n%s\nstderr: %s", c.words, err, c.out, c.err)
	}
	if _, err := dec.Token(); err != io.EOF {
		c.t.Errorf("tai %q: more than one document: %s", c.words, c.out)
	}
	return v
}

// failsJSON wants a failure as a document, whose code is the exit code, and gives it.
func (c cliRun) failsJSON(code int) jsonFailure {
	c.t.Helper()
	doc := cliJSON[struct{ Error jsonFailure }](c)
	if c.code != code || doc.Error.Code != code || doc.Error.Message == "" {
		c.t.Errorf("tai %q: exit %d, document %+v, want code %d", c.words, c.code, doc, code)
	}
	return doc.Error
}

// keys gives the names of a JSON object in their order.
func cliKeys(t testing.TB, raw json.RawMessage) []string {
	t.Helper()
	members, err := jsonObject(raw)
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	var out []string
	for _, m := range members {
		out = append(out, m.Key)
	}
	return out
}

// fakeWords are the words of tai mcp add for the fake stdio server under a name.
func fakeWords(t testing.TB, name string, spec fakeStdio) []string {
	t.Helper()
	e := stdioEntry(t, name, spec)
	return []string{"mcp", "add", name, "--yes", "--env", "TAI_TEST_FAKE=stdio", "--env", "GORACE=atexit_sleep_ms=0", "--env", "TAI_FAKE_STDIO=" + e.Env["TAI_FAKE_STDIO"], "--", e.Command}
}

// addFake brings the fake stdio server in.
func (r *cliRig) addFake(name string, spec fakeStdio) {
	r.t.Helper()
	r.tai(fakeWords(r.t, name, spec)...).ok()
}

// Every command's help shows a line that the command tree takes, and writes nothing.
func TestCLIHelp(t *testing.T) {
	r := newCLIRig(t)
	overview := r.tai("help").ok()
	if same := r.tai("--help").ok(); !strings.HasPrefix(same, helpHead) || !strings.Contains(same, "flags without a command") {
		t.Errorf("tai --help: %s", same)
	}
	for _, c := range commands() {
		if !strings.Contains(overview, "  tai "+c.Path) {
			t.Errorf("tai help does not list %s", c.Path)
		}
		words := strings.Fields(c.Path)
		out := r.tai(append(words, "--help")...).ok()
		if same := r.tai(append([]string{"help"}, words...)...).ok(); same != out {
			t.Errorf("tai help %s and tai %s --help differ", c.Path, c.Path)
		}
		if c.Short == "" || !strings.HasPrefix(c.Example, "tai "+c.Path) || !strings.Contains(out, "\n  "+c.Example+"\n") {
			t.Errorf("%s: no example in its help: %q", c.Path, c.Example)
			continue
		}
		example, err := splitWords(c.Example)
		if err != nil {
			t.Errorf("%s: %v", c.Path, err)
			continue
		}
		inv, err := resolve(example[1:], commands(), promptCommand())
		if err != nil || inv.cmd.Path != c.Path {
			t.Errorf("example %q: %v", c.Example, err)
		}
		for line := range strings.Lines(out + overview) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
				t.Errorf("%s: a line of help has %d columns: %s", c.Path, n, line)
			}
		}
	}
	group := r.tai("mcp", "--help")
	group.ok()
	group.outHas("tai mcp add", "tai help mcp COMMAND")
	if same := r.tai("help", "mcp").ok(); same != group.out {
		t.Errorf("tai help mcp: %s", same)
	}
	r.tai("help", "nonsense").fails(exitUsage, "no such command: nonsense", "hint: tai help")
	if _, err := os.Stat(r.home); !os.IsNotExist(err) {
		t.Errorf("help made the home: %v", err)
	}
}

// Wrong words are exit 2 with a hint, on stderr alone, and as a document with --json.
func TestCLIUsage(t *testing.T) {
	r := newCLIRig(t)
	for _, tc := range []struct {
		words []string
		texts []string
	}{
		{[]string{"mcp"}, []string{"tai mcp needs a command", "hint: tai mcp add | list"}},
		{[]string{"mcp", "trust"}, []string{"tai mcp trust needs a command", "hint: tai mcp trust list | inspect | allow"}},
		{[]string{"mcp", "trust", "bogus"}, []string{"no such command: mcp trust bogus", "hint: tai mcp trust list"}},
		{[]string{"mcp", "server"}, []string{"no such command: mcp server", "hint: did you mean tai mcp serve?"}},
		{[]string{"serve", "mcp"}, []string{"no such command: serve", "hint: tai mcp serve"}},
		{[]string{"mcp", "serve", "--mode", "allow"}, []string{"unknown flag --mode", "hint: did you mean --permission-mode?"}},
		{[]string{"mcp", "serve", "--mcp-port", "1"}, []string{"unknown flag --mcp-port", "hint: did you mean --port?"}},
		{[]string{"--serve-mcp"}, []string{"--serve-mcp needs KEY", "env:NAME or file:PATH"}},
		{[]string{"--serve-mcp", "env:K", "--port", "1"}, []string{"unknown flag --port", "hint: did you mean --mcp-port?"}},
		{[]string{"--mcp-port", "1"}, []string{"--mcp-port is for --serve-mcp", "hint: tai --serve-mcp KEY"}},
		{[]string{"--mcp-bind", "::1", "go on"}, []string{"--mcp-bind is for --serve-mcp"}},
		{[]string{"--serve-mcp", "env:K", "go on"}, []string{"a prompt stands beside --serve-mcp"}},
		{[]string{"--serve-mcp", "env:K", "-p"}, []string{"-p is for the prompt"}},
		{[]string{"secret", "show", "X"}, []string{"no such command: secret show", "hint: no command prints a value"}},
		{[]string{"vault", "restore", "x.db"}, []string{"no such command: vault restore", "tai help vault backup"}},
		{[]string{"secrets", "list"}, []string{"no such command: secrets", "hint: did you mean tai secret?"}},
		{[]string{"mcp", "frobnicate"}, []string{"no such command: mcp frobnicate", "hint:"}},
		{[]string{"frobnicate", "now"}, []string{"no such command: frobnicate", "hint:"}},
		{[]string{"mcp", "list", "--jsn"}, []string{"unknown flag --jsn", "hint:"}},
		{[]string{"mcp", "list", "--js"}, []string{"unknown flag --js", "hint:"}},
		{[]string{"mcp", "list", "--prof"}, []string{"unknown flag --prof", "hint: did you mean --profile?"}},
		{[]string{"mcp", "list", "-json"}, []string{"unknown flag -json"}},
		{[]string{"mcp", "list", "--json=yes"}, []string{"--json takes no value"}},
		{[]string{"mcp", "list", "--profile"}, []string{"--profile needs NAME"}},
		{[]string{"mcp", "list", "--profile", "a", "--profile", "b"}, []string{"--profile is given twice"}},
		{[]string{"mcp", "list", "more"}, []string{"too many arguments", `"more"`, "hint: tai mcp list"}},
		{[]string{"mcp", "list", "--", "more"}, []string{"nothing after --"}},
		{[]string{"mcp", "enable"}, []string{"too few arguments", "hint: tai mcp enable SERVER"}},
		{[]string{"mcp", "call", "s"}, []string{"too few arguments"}},
		{[]string{"mcp", "add"}, []string{"nothing to add", "hint:"}},
		{[]string{"mcp", "add", "x", "--"}, []string{"no command follows --"}},
		{[]string{"mcp", "list", "--permission-mode", "workspace-write"}, []string{"workspace-write"}},
		{[]string{"mcp", "list", "--permission-mode", "Prompt"}, []string{"Prompt"}},
		{[]string{"mcp", "list", "--auto", "--yolo"}, []string{"exclude each other"}},
		{[]string{"mcp", "list", "--root", "no-such-folder"}, []string{"no-such-folder", "hint:"}},
		{[]string{"mcp", "list", "--profile", "nobody"}, []string{"no such profile", "nobody", "hint: tai profile list"}},
		{[]string{"mcp", "enable", "x", "--profile", "nobody"}, []string{"no such profile"}},
		{[]string{"audit", "list", "--profile", "nobody"}, []string{"no such profile"}},
		{[]string{"record", "list", "--limit", "0"}, []string{"--limit takes a whole number"}},
		{[]string{"secret", "set", "bad name"}, []string{"name"}},
		{[]string{"secret", "set", "X", "--from", "nowhere"}, []string{"cannot take a secret"}},
		{[]string{"audit", "verify", "no-such-run"}, []string{"no such run or file", "hint: tai audit list"}},
		{[]string{"mcp", "list", "--x\x1b[2J"}, []string{`unknown flag --x\u001b[2J`}},
		{[]string{}, []string{"nothing to do", "hint:"}},
		{[]string{"what is this?"}, []string{"OPENAI_API_KEY"}},
		{[]string{"--resume", "go on"}, []string{"needs the id of a session", "hint: tai session list"}},
		{[]string{"--resume", "--continue", "go on"}, []string{"exclude each other"}},
		{[]string{"--max-steps", "0", "x"}, []string{"--max-steps takes a whole number from 1"}},
		{[]string{"--max-tokens", "many", "x"}, []string{"--max-tokens takes a whole number"}},
		{[]string{"--max-time", "5", "x"}, []string{"--max-time takes a time from 1s", "hint: 90s"}},
		{[]string{"--window", "10", "x"}, []string{"--window takes a whole number"}},
	} {
		got := r.tai(tc.words...)
		got.fails(exitUsage, append(tc.texts, "tai: ")...)
		if !strings.HasPrefix(got.err, "tai: ") {
			t.Errorf("tai %q: stderr starts with %q", tc.words, got.err)
		}
		if !slices.Contains(tc.words, "--") {
			r.tai(append(slices.Clone(tc.words), "--json")...).failsJSON(exitUsage)
		}
	}
	for _, help := range []string{"--help", "-h"} {
		if out := r.tai("mcp", "trust", help).ok(); !strings.Contains(out, "tai mcp trust allow") || strings.Contains(out, "tai mcp add") {
			t.Errorf("mcp trust %s gives %q", help, out)
		}
	}
	// What stands after -- is another program's: its --json asks nothing of tai.
	r.tai("mcp", "add", "x", "--", "no-such-program-here", "--json").fails(exitRefused, "--yes")
}

// The places of home, root and profile: flags before TAI_HOME before XDG before HOME.
func TestCLIPlaces(t *testing.T) {
	r := newCLIRig(t)
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	r.tai("profile", "create", "one").ok()
	if !exists(filepath.Join(r.home, "vault.db")) {
		t.Error("TAI_HOME is not used")
	}
	other := filepath.Join(r.dir, "other")
	r.tai("profile", "create", "two", "--home", "other").ok()
	if !exists(filepath.Join(other, "vault.db")) {
		t.Error("--home, taken from the current folder, is not used")
	}
	if out := r.tai("--home="+other, "profile", "list").ok(); !strings.Contains(out, "two") || strings.Contains(out, "one") {
		t.Errorf("--home before the command: %s", out)
	}
	if runtime.GOOS == "linux" {
		r.env = []string{"TAI_HOME=", "XDG_DATA_HOME=" + filepath.Join(r.dir, "xdg")}
		r.tai("profile", "create", "three").ok()
		if !exists(filepath.Join(r.dir, "xdg", "tai", "vault.db")) {
			t.Error("XDG_DATA_HOME is not used")
		}
		r.env = []string{"TAI_HOME=", "XDG_DATA_HOME=relative"}
		r.tai("profile", "create", "four").ok()
		if !exists(filepath.Join(r.dir, ".local", "share", "tai", "vault.db")) {
			t.Error("HOME is not used")
		}
		r.env = []string{"TAI_HOME=", "HOME="}
		r.tai("profile", "list").fails(exitUsage, "hint: give --home or TAI_HOME")
	}
	r.env = nil
	r.tai("profile", "use", "one").ok()
	type profiles struct {
		Profiles []string
		Current  string
	}
	if got := cliJSON[profiles](r.tai("profile", "list", "--json")); got.Current != "one" || !slices.Equal(got.Profiles, []string{"default", "one"}) {
		t.Errorf("profiles: %+v", got)
	}
	if got := cliJSON[profiles](r.tai("profile", "list", "--json", "--profile", "default")); got.Current != "default" {
		t.Errorf("--profile: %+v", got)
	}
	root := filepath.Join(r.dir, "tree")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "note.txt"), []byte("in the root\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.tai("tools", "call", "file_read", "path=note.txt", "--root", "tree").outHas("in the root")
	if got := r.tai("tools", "call", "file_read", "path=note.txt"); got.code == exitDone {
		t.Error("the root is not the current folder")
	}
}

// Commands that read make nothing on disk, neither in a home that is not there nor in the workspace.
func TestCLIReadingWritesNothing(t *testing.T) {
	r := newCLIRig(t)
	for _, words := range [][]string{
		{"mcp", "list"}, {"mcp", "tools"}, {"mcp", "tools", "--stored"}, {"tools", "list"}, {"secret", "list"}, {"profile", "list"}, {"record", "list"},
		{"record", "search", "x"}, {"audit", "list"}, {"version"}, {"help"}, {"tools", "digest", "file_read", "{}"},
	} {
		r.tai(words...).ok()
		r.tai(append(words, "--json")...).ok()
	}
	for _, words := range [][]string{{"mcp", "enable", "x"}, {"mcp", "disable", "x"}, {"mcp", "check", "x"}, {"mcp", "tools", "x"}, {"record", "show", "r-none"}, {"secret", "delete", "X"}, {"record", "delete", "r-none"}} {
		got := r.tai(words...)
		got.fails(exitFailed, "tai: ", "hint: ")
		r.tai(append(words, "--json")...).failsJSON(exitFailed)
	}
	r.with(`{"command":"npx","args":["-y","x"]}`, "mcp", "normalize").ok()
	r.with(`nonsense`, "mcp", "normalize").fails(exitUsage)
	for _, dir := range []string{r.home, r.dir} {
		if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
			t.Errorf("%s holds %v", dir, list)
		}
	}
	if _, err := os.Stat(r.home); !os.IsNotExist(err) {
		t.Errorf("the home was made: %v", err)
	}
}

// tai version, in both forms, and --version.
func TestCLIVersion(t *testing.T) {
	r := newCLIRig(t)
	plain := r.tai("version").ok()
	if same := r.tai("--version").ok(); same != plain || !strings.HasPrefix(plain, "tai "+version) {
		t.Errorf("version: %q, %q", plain, same)
	}
	doc := cliJSON[map[string]string](r.tai("version", "--json"))
	if doc["version"] != version || doc["protocol"] != mcpProtocolVersion || doc["system"] != runtime.GOOS+"/"+runtime.GOARCH {
		t.Errorf("version --json: %v", doc)
	}
}

// A run whose context ends is exit 130, whatever it was doing, and says so once.
func TestCLIInterrupted(t *testing.T) {
	r := newCLIRig(t)
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithCancel(context.Background())
	never, write := io.Pipe()
	defer write.Close()
	r.in = cancelOnRead{never, cancel}
	for _, words := range [][]string{{"mcp", "add", "-"}, {"mcp", "normalize"}, {"what is this?"}, {"secret", "set", "X", "--from", "-"}} {
		r.ctx, cancel = context.WithCancel(context.Background())
		r.in = cancelOnRead{never, cancel}
		r.tai(words...).fails(exitInterrupted, "tai: interrupted")
	}
}

// cancelOnRead is an input that never ends, and an interrupt as soon as it is waited for.
type cancelOnRead struct {
	io.Reader
	cancel context.CancelFunc
}

func (c cancelOnRead) Read(b []byte) (int, error) {
	c.cancel()
	return c.Reader.Read(b)
}

// STD-01: a server that was too slow to start is often one that was being downloaded; the hint says what helps.
func TestSTD01SlowStartHint(t *testing.T) {
	ce := failure(fmt.Errorf("mcp server %q: initialize: %w", "files", errConnectTimeout))
	if ce.Exit != exitFailed || !strings.Contains(ce.Message, "20s") || !strings.Contains(ce.Hint, "npx") {
		t.Errorf("failure = %+v", ce)
	}
	ce = failure(fmt.Errorf("mcp server %q: initialize: https://mcp.test/mcp: %w", "web", errConnectTimeout))
	if strings.Contains(ce.Hint, "npx") || !strings.Contains(ce.Hint, "the address") {
		t.Errorf("of an address: %+v", ce)
	}
}

// A wrong flag is named without what it would set, and a word that is a secret of the environment is masked also where no run began.
func TestCLIUnknownFlagTellsNoSecret(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.env = []string{"API_TOKEN=val-of-the-environment"}
	for _, words := range [][]string{{"--pass=typed-value-1"}, {"mcp", "list", "--pass=typed-value-1"}, {"-x=typed-value-1"}, {"--val-of-the-environment"}, {"mcp", "val-of-the-environment"}, {"--json", "secret", "set", "--val-of-the-environment", "A"}} {
		c := r.tai(words...)
		if c.code != exitUsage || !strings.Contains(c.out+c.err, "unknown flag") && !strings.Contains(c.out+c.err, "no such command") {
			t.Errorf("%q: exit %d: %s%s", words, c.code, c.out, c.err)
		}
		c.hides("typed-value")
		c.hides("val-of-the-environment")
	}
	r.tai("mcp", "list", "--pass=typed-value-1").errHas("unknown flag --pass\n")
}

// quickKey is keyFromPassphrase with a fraction of the rounds, for tests that seal and open often.
func quickKey(passphrase secret, salt []byte, rounds int) ([]byte, error) {
	return keyFromPassphrase(passphrase, salt, rounds/6000)
}

// raceKey is keyFromPassphrase, with fewer rounds under the race detector.
func raceKey(passphrase secret, salt []byte, rounds int) ([]byte, error) {
	return keyFromPassphrase(passphrase, salt, rounds/raceScale)
}
