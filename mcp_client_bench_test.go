package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeBenchClient is tai's client as a program of its own (fake "bench-client"), so that it can be measured beside other clients:
//
//	TAI_TEST_FAKE=bench-client ./tai.test -stdio 'server --stdio' -n 3000 -tool echo -args '{"text":"hello"}'
//
// With -url it dials instead. With -bridge the calls take tai's whole way: pins, policy, redaction, the cap and the run log.
// It prints one JSON line. Times are from the arguments to the text of the result.
func fakeBenchClient() {
	flags := flag.NewFlagSet("bench-client", flag.ExitOnError)
	stdio := flags.String("stdio", "", "command of the server, split at spaces")
	url := flags.String("url", "", "address of the server")
	key := flags.String("key", "bench-key", "bearer token for it")
	whole := flags.Bool("bridge", false, "calls through the bridge")
	n := flags.Int("n", 1000, "calls")
	warmup := flags.Int("warmup", 100, "calls before those")
	lists := flags.Int("lists", 1, "tool lists")
	tool := flags.String("tool", "echo", "tool to call")
	args := flags.String("args", `{"text":"hello"}`, "its arguments")
	nosync := flags.Bool("nosync", false, "with -bridge: the run log never waits for the disk")
	profile := flags.String("cpuprofile", "", "file for a profile of the calls")
	flags.Parse(os.Args[1:])
	entry := serverEntry{Name: "bench", Transport: "stdio"}
	if words := strings.Fields(*stdio); len(words) > 0 {
		entry.Command, entry.Args = words[0], words[1:]
	} else {
		entry.Transport, entry.URL, entry.Headers = "http", *url, map[string]string{"Authorization": "Bearer " + *key}
	}
	c, err := newBenchClient(entry, *whole, *nosync)
	benchCheck(err)
	var listed []time.Duration
	for range *lists {
		start := time.Now()
		benchCheck(c.list())
		listed = append(listed, time.Since(start))
	}
	chars := 0
	call := func() {
		text, err := c.call(*tool, json.RawMessage(*args))
		benchCheck(err)
		chars += len(text)
	}
	for range *warmup {
		call()
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		benchCheck(err)
		benchCheck(pprof.StartCPUProfile(f))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	took := make([]time.Duration, *n)
	for i := range took {
		start := time.Now()
		call()
		took[i] = time.Since(start)
	}
	runtime.ReadMemStats(&after)
	pprof.StopCPUProfile()
	slices.Sort(took)
	slices.Sort(listed)
	fmt.Printf(`{"call_p50_us":%.1f,"list_ms":%.3f,"alloc_kib_per_call":%.2f,"allocs_per_call":%.1f,"chars":%d}`+"\n",
		float64(took[*n/2].Nanoseconds())/1e3, float64(listed[*lists/2].Nanoseconds())/1e6,
		float64(after.TotalAlloc-before.TotalAlloc)/1024/float64(*n), float64(after.Mallocs-before.Mallocs)/float64(*n), chars)
	benchCheck(c.close())
}

func benchCheck(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-client:", err)
		os.Exit(1)
	}
}

// benchClient is one way to a server.
type benchClient struct {
	list  func() error
	call  func(tool string, args json.RawMessage) (string, error)
	close func() error
}

func newBenchClient(entry serverEntry, whole, nosync bool) (benchClient, error) {
	ctx := context.Background()
	if whole {
		return newBenchBridge(ctx, entry, nosync)
	}
	client := newHTTPClient(httpClientConfig{Env: os.Getenv})
	b := newMCPBridge(bridgeConfig{Environ: os.Environ(), GOOS: runtime.GOOS, HTTP: client, Now: time.Now})
	c, err := b.dialClient(ctx, entry, nil)
	if err != nil {
		return benchClient{}, err
	}
	return benchClient{
		list: func() error { _, err := c.listTools(ctx); return err },
		call: func(tool string, args json.RawMessage) (string, error) {
			r, err := c.callTool(ctx, tool, args)
			return resultText(r), err
		},
		close: c.close,
	}, nil
}

// newBenchBridge makes a run of tai over a new home where the server is stored and all its tools are granted.
func newBenchBridge(ctx context.Context, entry serverEntry, nosync bool) (benchClient, error) {
	home, err := os.MkdirTemp("", "tai-bench-")
	if err != nil {
		return benchClient{}, err
	}
	out := outside{Getenv: testEnv(filepath.Join(home, "config")), Environ: []string{"PATH=" + os.Getenv("PATH")}, Stdin: strings.NewReader(""), Stdout: io.Discard,
		Stderr: io.Discard, GOOS: runtime.GOOS, Now: time.Now, Dir: home}
	a, err := openApp(out, map[string][]string{"home": {home}, "yolo": {"true"}}, storeWrite, "cli")
	if err != nil {
		return benchClient{}, err
	}
	if _, err := a.bridge.register(ctx, entry, registerOptions{}); err != nil {
		return benchClient{}, err
	}
	if nosync {
		a.audit.file = unsynced{a.audit.file} // registering has made it
	}
	return benchClient{
		list: func() error {
			row, err := a.bridge.enabledServer(ctx, entry.Name, "")
			if err == nil {
				_, err = a.bridge.liveList(ctx, row)
			}
			return err
		},
		call: func(tool string, args json.RawMessage) (string, error) {
			r, err := a.bridge.callTool(ctx, toolRef{entry.Name, tool}, toolCall{Args: args})
			if err == nil && r.Rule != "" {
				err = errors.New(r.Text)
			}
			return r.Text, err
		},
		close: func() error { return errors.Join(a.close(), os.RemoveAll(home)) },
	}, nil
}

// unsynced is a run log's file that never waits for the disk.
type unsynced struct{ auditFile }

func (unsynced) Sync() error { return nil }

// BenchmarkBridgeCall is one call of a granted tool with all that tai does around it. The run log is synced before each call,
// which on most disks is most of its time; "unsynced" is the rest.
func BenchmarkBridgeCall(b *testing.B) {
	for _, name := range []string{"synced", "unsynced"} {
		b.Run(name, func(b *testing.B) {
			c, err := newBenchBridge(b.Context(), stdioEntry(b, "bench", fakeStdio{}), name == "unsynced")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if text, err := c.call("echo", json.RawMessage(`{"a":1}`)); err != nil || text == "" {
					b.Fatal(text, err)
				}
			}
			if err := c.close(); err != nil {
				b.Error(err)
			}
		})
	}
}
