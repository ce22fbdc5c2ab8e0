// This file holds the tools for background commands: proc_start, proc_read, proc_write, proc_list and proc_stop. The processes themselves are
// the manager's; a command is judged as shell_run judges it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	procMaxName   = 40                    // bytes of the name of a background command
	procSettle    = 50 * time.Millisecond // that proc_start waits for a command that ends at once
	procReadLimit = 16 << 10              // bytes of output in one proc_read unless the call says otherwise
	procMaxRead   = 48 << 10              // bytes, the most that it may say, so that it stays inline (mcpResultMax)
	procMaxWait   = 300                   // seconds that proc_read may wait
	procMaxUntil  = 1000                  // bytes of the text that proc_read waits for
	procGrace     = 5                     // seconds between asking and killing unless the call of proc_stop says otherwise
	procMaxGrace  = 60                    // the most that it may say
	procLineMax   = 8 << 10               // bytes looked at on each side of a piece of output for a secret that it may cut
)

const procInfoSchema = `"id":{"type":"string","description":"Id for the other proc_ tools."},
"kind":{"type":"string","description":"command or agent."},
"name":{"type":"string"},"command":{"type":"string"},"cwd":{"type":"string"},
"state":{"type":"string","description":"running, exited, or stopped (by proc_stop)."},
"status":{"type":"string","description":"How it ended, in words."},
"exit":{"type":"integer","description":"Exit status, -1 if a signal ended it."},
"pid":{"type":"integer"},
"started":{"type":"string","description":"RFC 3339."},
"ran_ms":{"type":"integer","description":"Milliseconds until now, or until it ended."},
"bytes":{"type":"integer","description":"Bytes of output since the start."}`

// procTools gives the tools over m. Commands run in w with the variables of environ; redact says what is masked.
func procTools(m *procManager, w workspace, environ func() []string, goos string, redact func(string) string) []tool {
	p := procToolset{m, newShellRunner(w, environ, goos), redact}
	info := json.RawMessage(`{"type":"object","properties":{` + procInfoSchema + "," + toolRecordSchema + `}}`)
	const id = `"id":{"type":"string","minLength":1,"maxLength":40,"description":"Id that proc_start gave, such as p-1."}`
	return []tool{{
		Name: "proc_start", Family: "proc", Core: true,
		Description: "Start a long-running command (a server, a watcher, a build) in the background and return its id at once. It ends with tai, and what it leaves running ends with it. proc_read shows its output.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["command"],"properties":{
"command":{"type":"string","minLength":1,"maxLength":%d,"description":"Command line for /bin/sh (cmd on Windows), without & at its end."},
"cwd":{"type":"string","description":"Folder to run in (default: the workspace root)."},
"env":{"type":"object","additionalProperties":{"type":"string"},"description":"Variables to set on top of the inherited ones."},
"name":{"type":"string","minLength":1,"maxLength":%d,"description":"What to call it in lists."}}}`, shellMaxCommand, procMaxName)),
		Output: info, Hints: toolHints{Destructive: true, Stateful: true}, judge: p.shell.judge, run: p.start,
	}, {
		Name: "proc_read", Family: "proc", Core: true,
		Description: "Read the output of a background command from a cursor on, or its newest part; can wait for new output, for a text, or for the end.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["id"],"properties":{%s,
"cursor":{"type":"integer","minimum":0,"description":"Byte of the output to start at, as the last proc_read gave it (default: show the newest part)."},
"wait_s":{"type":"integer","minimum":0,"maximum":%d,"description":"Seconds to wait for output behind the cursor, for until, or for the end (default 0)."},
"until":{"type":"string","minLength":1,"maxLength":%d,"description":"Literal text to wait for behind the cursor."},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"Bytes of output to give at most (default %d)."}}}`, id, procMaxWait, procMaxUntil, procMaxRead, procReadLimit)),
		Output: json.RawMessage(`{"type":"object","properties":{` + procInfoSchema + `,
"output":{"type":"array","description":"Output in the order it came.","items":{"type":"object","properties":{"stream":{"type":"string"},"text":{"type":"string"}}}},
"from":{"type":"integer","description":"Byte at which this output starts."},
"cursor":{"type":"integer","description":"Cursor for the next proc_read."},
"more":{"type":"integer","description":"Bytes behind the cursor that are there already."},
"lost":{"type":"integer","description":"Bytes that were asked for and are no longer kept."},
"found":{"type":"boolean","description":"The text of until has come."},` + toolRecordSchema + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true, Stateful: true}, run: p.read,
	}, {
		Name: "proc_write", Family: "proc",
		Description: "Send text to the standard input of a background command, or close it. A line needs its line end.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["id"],"properties":{%s,
"text":{"type":"string","maxLength":%d,"description":"Text to send as it is; end a line with a line end."},
"close":{"type":"boolean","description":"Close standard input afterwards."}}}`, id, shellMaxStdin)),
		Output: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"},"sent":{"type":"integer","description":"Bytes sent."},"closed":{"type":"boolean"},` + toolRecordSchema + `}}`),
		Hints:  toolHints{Destructive: true, Stateful: true}, run: p.write,
	}, {
		Name: "proc_list", Family: "proc",
		Description: "List the background commands and agents of this tai with state, age and exit status, also those that ended lately.",
		Schema:      json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{}}`),
		Output:      json.RawMessage(`{"type":"object","properties":{"processes":{"type":"array","description":"Oldest first.","items":{"type":"object","properties":{` + procInfoSchema + `}}},` + toolRecordSchema + `}}`),
		Hints:       toolHints{ReadOnly: true, Idempotent: true, Stateful: true}, run: p.list,
	}, {
		Name: "proc_stop", Family: "proc",
		Description: "End a background command with all it started, or an agent: ask it to end, and kill it after a grace time.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["id"],"properties":{%s,
"grace_s":{"type":"integer","minimum":0,"maximum":%d,"description":"Seconds between asking and killing (default %d)."}}}`, id, procMaxGrace, procGrace)),
		Output: info, Hints: toolHints{Destructive: true, Idempotent: true, Stateful: true}, run: p.stop,
	}}
}

type procToolset struct {
	m      *procManager
	shell  shellRunner
	redact func(string) string
}

func (t procToolset) start(_ context.Context, c toolCall) (toolResult, error) {
	var args struct {
		Command, Cwd, Name string
		Env                map[string]string
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	dir, env, err := t.shell.place(c, args.Command, args.Cwd, args.Env)
	if err != nil {
		return toolResult{}, err
	}
	p, err := t.m.start(procSpec{Name: args.Name, Command: args.Command, Argv: t.shell.argv(args.Command), Dir: dir.Abs, Cwd: dir.Rel, Env: env})
	if err != nil {
		return toolResult{Hint: "proc_list shows what is running, proc_stop ends it"}, errorf("start the command: %w", err)
	}
	waitFor(procSettle, p.done)
	info := p.info()
	text := procLine(info) + "\n"
	if info.State == procRunning {
		text += fmt.Sprintf("proc_read %s shows its output, proc_stop %s ends it.\n", p.id, p.id)
	} else {
		var b textBuilder
		appendShellText(&b, procLines(p.out.slice(0, procReadLimit)))
		text += b.String()
	}
	return toolResult{Text: text, Structured: procJSON(info), IsError: info.Exit != nil && *info.Exit != 0}, nil
}

// process finds the process that a call names.
func (t procToolset) process(id string) (*proc, toolResult, error) {
	if p, ok := t.m.find(id); ok {
		return p, toolResult{}, nil
	}
	return nil, toolResult{Hint: "proc_list shows the ids"}, errorf("no background command has the id %s", quoteClip(id))
}

type procReadArgs struct {
	ID     string
	Cursor *int64
	Wait   int `json:"wait_s"`
	Until  string
	Limit  int64
}

func (t procToolset) read(ctx context.Context, c toolCall) (toolResult, error) {
	args := procReadArgs{Limit: procReadLimit}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	p, r, err := t.process(args.ID)
	if err != nil {
		return r, err
	}
	start, end := p.out.bounds()
	from := start
	if args.Cursor != nil {
		from = *args.Cursor
	}
	if from > end {
		return toolResult{}, errorf("property %q: %d is behind the %d bytes of output", "cursor", from, end)
	}
	found, err := p.await(ctx, from, args.Until, time.Duration(args.Wait)*time.Second)
	if err != nil {
		return toolResult{}, err
	}
	return t.show(p, args, from, found), nil
}

// await waits until there is output behind from, or, if until is given, until that text is; at most d, and no longer than the process runs. found
// says that the text is there.
func (p *proc) await(ctx context.Context, from int64, until string, d time.Duration) (found bool, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	seen := from
	for {
		changed, over := p.out.watch(), p.over()
		start, end := p.out.bounds()
		if until != "" {
			seen = max(seen, start)
			found = bytes.Contains(p.out.bytes(seen, end), []byte(until))
			seen = max(seen, end-int64(len(until)-1))
		}
		if found || over || d <= 0 || until == "" && end > from {
			return found, nil
		}
		select {
		case <-changed:
		case <-p.done:
		case <-timer.C:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// show gives the output from a cursor on, or the newest part where the call names none.
func (t procToolset) show(p *proc, args procReadArgs, from int64, found bool) toolResult {
	info := p.info() // before the output, so that an ended process has said all
	start, end := p.out.bounds()
	lost := max(start-from, 0)
	from = max(from, start)
	skipped := int64(0)
	if args.Cursor == nil && end-from > args.Limit {
		skipped = end - args.Limit - from
		from = end - args.Limit
	}
	to := min(end, from+args.Limit)
	from, to = t.whole(p, from, to, info.State == procRunning)
	parts := p.out.slice(from, to)
	var b textBuilder
	b.WriteString(procLine(info) + "\n")
	if lost > 0 {
		fmt.Fprintf(&b, "[%d bytes before are no longer kept]\n", lost)
	}
	if skipped > 0 {
		fmt.Fprintf(&b, "[%d bytes before; cursor %d reads from their start]\n", skipped, start)
	}
	appendShellText(&b, procLines(parts))
	if len(parts) == 0 {
		b.WriteString("[no output from here on]\n")
	}
	if args.Until != "" && !found {
		b.WriteString("[the text of until has not come]\n")
	}
	fmt.Fprintf(&b, "[next cursor %d, %d bytes are there behind it]\n", to, end-to)
	doc := struct {
		procInfo
		Output []shellPart `json:"output"`
		From   int64       `json:"from"`
		Cursor int64       `json:"cursor"`
		More   int64       `json:"more"`
		Lost   int64       `json:"lost"`
		Found  *bool       `json:"found,omitempty"`
	}{procInfo: info, Output: mergeParts(procLines(parts)), From: from, Cursor: to, More: end - to, Lost: lost}
	if args.Until != "" {
		doc.Found = &found
	}
	return toolResult{Text: b.String(), Structured: procJSON(doc)}
}

// whole moves the ends of a piece of output so that it cuts no character, and no secret that is to be masked: where one is near, whole lines are
// given. The rest of a character that has not come yet waits, as long as the process runs.
func (t procToolset) whole(p *proc, from, to int64, running bool) (int64, int64) {
	start, end := p.out.bounds()
	a, b := max(from-procLineMax, start), min(to+procLineMax, end)
	text := p.out.bytes(a, b)
	if int64(len(text)) != b-a { // it went meanwhile
		return from, to
	}
	head, tail := text[:from-a], text[to-a:]
	wideHead, wideTail := head[bytes.LastIndexByte(head, '\n')+1:], tail
	if i := bytes.IndexByte(tail, '\n'); to > a && text[to-a-1] == '\n' {
		wideTail = nil
	} else if i >= 0 {
		wideTail = tail[:i+1]
	}
	wide := string(text[len(head)-len(wideHead) : len(text)-len(tail)+len(wideTail)])
	if t.redact(wide) != wide {
		return from - int64(len(wideHead)), to + int64(len(wideTail))
	}
	for i := 1; i < utf8.UTFMax && from > a && to-from > utf8.UTFMax && !utf8.RuneStart(text[from-a]); i++ {
		from++
	}
	if piece := text[from-a : to-a]; to < end || running {
		for i := 1; i < utf8.UTFMax && i < len(piece); i++ {
			if last := piece[len(piece)-i:]; utf8.RuneStart(last[0]) {
				if !utf8.FullRune(last) {
					to -= int64(i)
				}
				break
			}
		}
	}
	return from, to
}

func (t procToolset) write(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct {
		ID    string
		Text  *string
		Close bool
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	p, r, err := t.process(args.ID)
	if err != nil {
		return r, err
	}
	if args.Text == nil && !args.Close {
		return toolResult{}, newError("nothing to do: give text, or close")
	}
	doc := struct {
		ID     string `json:"id"`
		Sent   int    `json:"sent"`
		Closed bool   `json:"closed"`
	}{ID: p.id}
	if p.over() {
		return toolResult{Hint: "proc_read shows its last output"}, errorf("%s has ended: %s", p.id, p.status)
	}
	if args.Text != nil {
		doc.Sent, err = p.write(ctx, *args.Text, procWriteTime)
		switch {
		case errors.Is(err, os.ErrClosed) && doc.Sent == 0:
			return toolResult{}, errorf("standard input of %s was closed before", p.id)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return toolResult{}, errorf("%s does not read its input: %d of %d bytes went out, the rest was not sent", p.id, doc.Sent, len(*args.Text))
		case err != nil:
			return toolResult{}, errorf("write to %s: %d of %d bytes went out: %w", p.id, doc.Sent, len(*args.Text), bareError(err))
		}
	}
	text := fmt.Sprintf("%d bytes sent to %s", doc.Sent, p.id)
	if args.Close {
		if err := p.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			return toolResult{}, errorf("close the input of %s: %w", p.id, bareError(err))
		}
		doc.Closed = true
		text += ", its input is closed"
	}
	return toolResult{Text: text + "\n", Structured: procJSON(doc)}, nil
}

func (t procToolset) list(context.Context, toolCall) (toolResult, error) {
	all := t.m.all()
	var b textBuilder
	for _, i := range all {
		b.WriteString(procLine(i) + "\n")
	}
	if len(all) == 0 {
		b.WriteString("nothing runs in the background\n")
	}
	return toolResult{Text: b.String(), Structured: procJSON(map[string]any{"processes": all})}, nil
}

func (t procToolset) stop(ctx context.Context, c toolCall) (toolResult, error) {
	args := struct {
		ID    string
		Grace int `json:"grace_s"`
	}{Grace: procGrace}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, err
	}
	info, ok, err := t.m.stop(ctx, args.ID, time.Duration(args.Grace)*time.Second)
	switch {
	case !ok:
		return toolResult{Hint: "proc_list shows the ids"}, errorf("nothing in the background has the id %s", quoteClip(args.ID))
	case err != nil:
		return toolResult{}, errorf("stop %s: %w", info.ID, err)
	}
	return toolResult{Text: procLine(info) + "\n", Structured: procJSON(info)}, nil
}

// procLine is one line about a process.
func procLine(i procInfo) string {
	name := i.ID
	if i.Name != "" {
		name += " (" + visibleLine(i.Name) + ")"
	}
	ran := (time.Duration(i.Ran) * time.Millisecond).Round(100 * time.Millisecond)
	state := fmt.Sprintf("%s for %s", i.State, ran)
	if i.State != procRunning {
		state = fmt.Sprintf("%s after %s", i.State, ran)
	}
	if i.Status != "" {
		state += ", " + visibleLine(i.Status)
	}
	if i.Pid > 0 {
		state += fmt.Sprintf(", pid %d", i.Pid)
	}
	if i.What != "command" {
		return fmt.Sprintf("%s %s: %s", name, state, brief(visibleLine(i.Command), 200))
	}
	return fmt.Sprintf("%s %s, %d bytes of output: %s", name, state, i.Bytes, brief(visibleLine(i.Command), 200))
}

// procLines cuts output into lines, each of one stream.
func procLines(parts []procPart) []shellPart {
	var out []shellPart
	for _, p := range parts {
		for line := range strings.SplitAfterSeq(string(p.Text), "\n") {
			last := len(out) - 1
			switch {
			case line == "":
			case last >= 0 && out[last].Stream == p.Stream && !strings.HasSuffix(out[last].Text, "\n"):
				out[last].Text += line
			default:
				out = append(out, shellPart{p.Stream, line})
			}
		}
	}
	return out
}

// procJSON writes plain strings and numbers.
func procJSON(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("encode plain strings and numbers: " + err.Error())
	}
	return bytes.TrimSpace(b.Bytes())
}
