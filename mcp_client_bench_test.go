package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// fakeBenchClient is tai's client as a program of its own (fake "bench-client"), so that it can be measured beside other clients:
//
//	TAI_TEST_FAKE=bench-client ./tai.test -stdio 'server --stdio' -n 3000 -tool echo -args '{"text":"hello"}'
//
// It prints one JSON line. Times are of the whole path from arguments to the text of the result.
func fakeBenchClient() {
	flags := flag.NewFlagSet("bench-client", flag.ExitOnError)
	stdio := flags.String("stdio", "", "command of the server, split at spaces")
	n := flags.Int("n", 1000, "calls")
	warmup := flags.Int("warmup", 100, "calls before those")
	lists := flags.Int("lists", 1, "tool lists")
	tool := flags.String("tool", "echo", "tool to call")
	args := flags.String("args", `{"text":"hello"}`, "its arguments")
	flags.Parse(os.Args[1:])
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench-client:", err)
			os.Exit(1)
		}
	}
	ctx := context.Background()
	tr, err := startStdio(ctx, stdioConfig{Argv: strings.Fields(*stdio), Env: os.Environ()})
	check(err)
	c, err := connectMCP(ctx, tr, clientInfo{Name: "bench", Version: "0"})
	check(err)
	var listed []time.Duration
	for range *lists {
		start := time.Now()
		_, err := c.listTools(ctx)
		check(err)
		listed = append(listed, time.Since(start))
	}
	chars := 0
	call := func() {
		r, err := c.callTool(ctx, *tool, json.RawMessage(*args))
		check(err)
		members, err := jsonObject(r.Content[0])
		check(err)
		for _, m := range members {
			if m.Key == "text" {
				s, _ := jsonString(m.Value)
				chars += len(s)
			}
		}
	}
	for range *warmup {
		call()
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
	slices.Sort(took)
	slices.Sort(listed)
	fmt.Printf(`{"call_p50_us":%.1f,"list_ms":%.3f,"alloc_kib_per_call":%.2f,"chars":%d}`+"\n",
		float64(took[*n/2].Nanoseconds())/1e3, float64(listed[*lists/2].Nanoseconds())/1e6,
		float64(after.TotalAlloc-before.TotalAlloc)/1024/float64(*n), chars)
	check(c.close())
}
