package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// toolsUncalled are the native tools that TestToolsStructured does not call: a login needs a browser.
const toolsUncalled = " mcp_login "

// yesPlan is a person who agrees to every plan.
type yesPlan struct{}

func (yesPlan) review(context.Context, string) (planAnswer, error) {
	return planAnswer{Yes: true}, nil
}

// toolsRows are the rows of the long session and those of the tools that it leaves out.
func toolsRows() []manyRow {
	rows := []manyRow{
		{tool: "ask_user", args: `{"question":"Which?","choices":["tea","milk"]}`, want: `tea`},
		{tool: "plan_submit", args: `{"plan":"1. put the sums right"}`, want: `yes`},
		{tool: "record_read", args: `{"id":"{record}"}`, want: `a,1`},
		{tool: "record_search", args: `{"id":"{record}","pattern":"b"}`, want: `b,2`},
		{tool: "profile_use", args: `{"name":"default"}`, want: `default`},
		{tool: "mcp_add", args: `{"source":{server},"name":"fake"}`, want: `fake`},
		{tool: "mcp_list", args: `{}`, want: `fake`},
		{tool: "mcp_tools", args: `{"server":"fake"}`, want: `add`},
		{tool: "mcp_call", args: `{"server":"fake","tool":"add","args":{"a":2,"b":3}}`, want: `5`},
		{tool: "mcp_disable", args: `{"server":"fake"}`, want: `fake`},
		{tool: "mcp_enable", args: `{"server":"fake"}`, want: `fake`},
		{tool: "mcp_remove", args: `{"server":"fake"}`, want: `fake`},
	}
	return append(manyRows(), rows...)
}

// toolsRig is one run of tai in which a person sits who agrees, over the repository of the long session.
type toolsRig struct {
	*app
	box  *toolbox
	kept map[string]string
}

func newToolsRig(t *testing.T) *toolsRig {
	t.Helper()
	r := newCLIRig(t)
	manyRepo(t, r)
	model := newTaskModel(t, func(task string, n int, _ []taskMessage) []string {
		if task != manyBefore && n == 0 {
			return taskCalls("s1", "file_find", `{"pattern":"*"}`)
		}
		return taskSays("There are enough.")
	})
	r.env = []string{"TAI_BASE_URL=" + model.URL + "/v1", "TAI_MODEL=m-1", "SHOP_KEY=made-up-shop-key-1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1"}
	r.tai(manyBefore).ok()
	a, err := openApp(outside{Getenv: r.getenv, Environ: r.environ(), Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, GOOS: runtime.GOOS, Now: time.Now, Dir: r.dir},
		map[string][]string{"yolo": {"true"}}, storeWrite, "repl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	})
	tools, err := a.nativeTools()
	if err != nil {
		t.Fatal(err)
	}
	for _, with := range slices.Concat(askTools(&fakeAsker{answer: "tea"}), planSubmitTools(yesPlan{}, a.planAgreed)) {
		i := slices.IndexFunc(tools, func(tl tool) bool { return tl.Name == with.Name })
		tools[i] = with
	}
	box, err := newToolbox(tools, a.policy, a.audit, a.vault, a.redact, a.bridge)
	if err != nil {
		t.Fatal(err)
	}
	a.tools = box
	v, err := a.vault(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	info, err := v.putRecord(t.Context(), "result", "test", "", []byte("k,v\na,1\nb,2\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := stdioEntry(t, "fake", fakeStdio{})
	source := dataArgs(t, map[string]any{"mcpServers": map[string]any{"fake": map[string]any{"command": e.Command, "args": e.Args, "env": e.Env}}})
	return &toolsRig{a, box, map[string]string{"web": manyWeb(t).URL, "record": info.ID, "server": string(appendJSONString(nil, source))}}
}

// call makes one call and holds its structured result against the tool's output schema.
func (r *toolsRig) call(t *testing.T, row manyRow) time.Duration {
	t.Helper()
	args := row.args
	for name, value := range r.kept {
		args = strings.ReplaceAll(args, "{"+name+"}", value)
	}
	start := time.Now()
	res, err := r.box.dispatch(t.Context(), toolCall{Name: row.tool, Args: json.RawMessage(args), Origin: "agent"})
	took := time.Since(start)
	if err != nil {
		t.Fatalf("%s %s: %v", row.tool, args, err)
	}
	found := regexp.MustCompile(row.want).FindStringSubmatch(res.Text)
	if res.IsError || found == nil {
		t.Fatalf("%s %s: no %q in %+v", row.tool, args, row.want, res)
	}
	if row.keep != "" {
		r.kept[row.keep] = found[1]
	}
	output := r.box.byName[row.tool].tool.Output
	switch {
	case (output == nil) != (len(res.Structured) == 0):
		t.Errorf("%s has the output schema %s and gave %s", row.tool, output, res.Structured)
	case output != nil:
		if err := checkStructured(output, res.Structured); err != nil {
			t.Errorf("%s gave %s: %v", row.tool, res.Structured, err)
		}
	}
	return took
}

// Every native tool but the one that needs a browser does its work in one run, and its structured result is what its schema says. TAI_BENCH_TOOLS=N makes N
// such runs and prints how long the tools took.
func TestToolsStructured(t *testing.T) {
	rounds := 1
	if s := os.Getenv("TAI_BENCH_TOOLS"); s != "" {
		var err error
		if rounds, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	times := map[string][]time.Duration{}
	for n := range rounds {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			r := newToolsRig(t)
			for _, row := range toolsRows() {
				if row.unix && runtime.GOOS == "windows" {
					continue
				}
				took := r.call(t, row)
				times[row.tool] = append(times[row.tool], took)
			}
			for _, tl := range r.box.natives() {
				if times[tl.Name] == nil && !strings.Contains(toolsUncalled, " "+tl.Name+" ") && runtime.GOOS != "windows" {
					t.Errorf("%s was not called", tl.Name)
				}
			}
		})
	}
	if rounds == 1 {
		return
	}
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(times)) {
		d := times[name]
		slices.Sort(d)
		fmt.Fprintf(&table, "%-20s %8.2f %8.2f %8.2f\n", name, toolsMS(d[0]), toolsMS(d[len(d)/2]), toolsMS(d[len(d)*9/10]))
	}
	t.Logf("ms of one call through the toolbox: best, median, p90 of %d runs\n%s", rounds, table.String())
}

func toolsMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
