package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// torture is one run of the crash tests. TAI_TORTURE=full makes it long; TAI_TORTURE_SEED repeats a run's random choices (what
// the scheduler does between them stays its own).
type torture struct {
	t     *testing.T
	full  bool
	seed  uint64
	kills atomic.Int64 // processes killed
	acks  atomic.Int64 // acknowledgements that were checked
}

func newTorture(t *testing.T) *torture {
	x := &torture{t: t, full: os.Getenv("TAI_TORTURE") == "full", seed: rand.Uint64()}
	if text := os.Getenv("TAI_TORTURE_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("TAI_TORTURE_SEED: %v", err)
		}
		x.seed = seed
	}
	start := time.Now()
	t.Cleanup(func() {
		t.Logf("TAI_TORTURE_SEED=%d: %d kills, %d acknowledgements, %.1f s", x.seed, x.kills.Load(), x.acks.Load(), time.Since(start).Seconds())
	})
	return x
}

// lives runs f for each of so many lives, two at a time, in a folder of its own. An error fails the test and ends it.
func (x *torture) lives(n int, f func(r *rand.Rand, dir string) error) {
	var next atomic.Int64
	var failed atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := int(next.Add(1)); i <= n && !failed.Load(); i = int(next.Add(1)) {
				dir := filepath.Join(x.t.TempDir(), strconv.Itoa(i))
				err := os.Mkdir(dir, 0o700)
				if err == nil {
					err = f(rand.New(rand.NewPCG(x.seed, uint64(i))), dir)
				}
				if err != nil {
					failed.Store(true)
					x.t.Errorf("life %d: %v", i, err)
				}
				os.RemoveAll(dir)
			}
		})
	}
	wg.Wait()
}

// tortureKill kills processes in so many lives of so many rounds each.
func tortureKill(t *testing.T, short, full [2]int, life func(x *torture, r *rand.Rand, dir string, rounds int) error) {
	t.Parallel()
	x, n := newTorture(t), short
	if x.full {
		n = full
	}
	x.lives(n[0], func(r *rand.Rand, dir string) error { return life(x, r, dir, n[1]) })
}

// tortureChild is a process that works until it is killed and says line by line what was acknowledged to it.
type tortureChild struct {
	cmd    *exec.Cmd
	out    *bufio.Scanner
	stderr bytes.Buffer
	cancel context.CancelFunc
}

// startTorture starts a fake and waits until it is about to begin.
func startTorture(fake string, env ...string) (*tortureChild, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	c := &tortureChild{cmd: exec.CommandContext(ctx, os.Args[0]), cancel: cancel}
	c.cmd.Env = append(append(os.Environ(), "TAI_TEST_FAKE="+fake), env...)
	c.cmd.Stderr = &c.stderr
	stdout, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	c.out = bufio.NewScanner(stdout)
	if !c.out.Scan() {
		_, err := c.end()
		return nil, fmt.Errorf("%s did not begin: %w", fake, err)
	}
	return c, nil
}

// killAfter kills the process a while from now and gives all that it said before.
func (c *tortureChild) killAfter(d time.Duration) (lines []string, err error) {
	timer := time.AfterFunc(d, func() { c.cmd.Process.Kill() })
	defer timer.Stop()
	return c.end()
}

// end reads what the process says until it is gone. That it ended in any other way than by the kill is an error.
func (c *tortureChild) end() (lines []string, err error) {
	defer c.cancel()
	for c.out.Scan() {
		lines = append(lines, c.out.Text())
	}
	_ = c.cmd.Wait() // killed: that is its error
	if code := c.cmd.ProcessState.ExitCode(); code >= 0 && code != 137 {
		return lines, fmt.Errorf("exit %d: %s", code, &c.stderr)
	}
	return lines, nil
}

// tortureFail ends a child whose work failed though nothing was broken on purpose.
func tortureFail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// tortureRand gives a child its random choices.
func tortureRand() *rand.Rand {
	seed, err := strconv.ParseUint(os.Getenv("TAI_TEST_SEED"), 10, 64)
	tortureFail(err)
	return rand.New(rand.NewPCG(seed, 1))
}

// tortureText is the value that belongs to a name: a few bytes for most, some kilobytes for others.
func tortureText(name string) string {
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(h.Sum64(), 2))
	n := 1 + r.IntN(40)
	if r.IntN(8) == 0 {
		n = r.IntN(1500)
	}
	var b strings.Builder
	b.WriteString(name)
	for range n {
		fmt.Fprintf(&b, " w%d", r.IntN(1<<20))
	}
	return b.String()
}

// tortureOpen opens a vault as a child or the check after it does; its key files lie beside the home. newer has one schema more.
func tortureOpen(ctx context.Context, home string, mode vaultMode, newer bool) (*vault, error) {
	migrations := vaultMigrations()
	if newer {
		migrations = append(migrations, tortureMigration)
	}
	keys := vaultKeys{
		Dir:        filepath.Join(filepath.Dir(home), "keys"),
		Passphrase: func(context.Context, string) (secret, error) { return torturePassphrase, nil },
	}
	return openVaultAs(ctx, home, mode, time.Now, keys, migrations)
}

// tortureMigration touches many rows and counts how often it ran.
const tortureMigration = `
CREATE TABLE torture_runs (ran INTEGER);
INSERT INTO torture_runs VALUES (1);
CREATE TABLE torture_copy (key TEXT PRIMARY KEY, value TEXT);
INSERT INTO torture_copy SELECT profile || name, value FROM secrets`

// tortureDelay is how long a process lives: often too short to have done anything, at most so many milliseconds.
func tortureDelay(r *rand.Rand, most int) time.Duration {
	if r.IntN(4) == 0 {
		most = cmp.Or(most/8, 1)
	}
	return time.Duration(r.IntN(most*1000)) * time.Microsecond
}

// tortureAcks is what a vault acknowledged over the lives of its processes.
type tortureAcks struct {
	there   map[string]string // "secret NAME", "server NAME", …; the id where there is one
	gone    map[string]bool   // deleted
	counter map[string]int    // last value of a counter
}

func newTortureAcks() *tortureAcks {
	return &tortureAcks{there: map[string]string{}, gone: map[string]bool{}, counter: map[string]int{}}
}

// take reads the lines of one process.
func (a *tortureAcks) take(lines []string) error {
	for _, line := range lines {
		f := strings.Fields(line)
		switch {
		case len(f) == 3 && f[0] == "counter":
			n, err := strconv.Atoi(f[2])
			if err != nil {
				return err
			}
			a.counter[f[1]] = n
		case len(f) == 3 && f[0] == "deleting": // until it is acknowledged, either may be
			delete(a.there, f[1]+" "+f[2])
		case len(f) == 3 && f[0] == "deleted":
			a.gone[f[1]+" "+f[2]] = true
		case len(f) == 2:
			a.there[f[0]+" "+f[1]] = ""
		case len(f) == 3:
			a.there[f[0]+" "+f[1]] = f[2]
		default:
			return fmt.Errorf("a line nobody knows: %q", line)
		}
	}
	return nil
}

var errTorture = errors.New("the promise is broken")
