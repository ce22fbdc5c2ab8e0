// This file holds the commands about memories: tai memory save, list, search, show, delete. What they print has known secrets taken out.
package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const memoryIDsHint = "tai memory list shows the ids and keys"

func memoryCommands() []command {
	flags := []flagSpec{{Name: "tag", Value: "TAG", Help: "only those with this tag; several must all be there", Many: true},
		{Name: "limit", Value: "N", Help: fmt.Sprintf("at most this many (default %d)", recordListLimit)}}
	return []command{
		{Path: "memory save", Args: "TEXT", Short: "remember a fact, or replace what a key has", Example: `tai memory save "the build runs by make" --key build --tag go`, Flags: []flagSpec{
			{Name: "key", Value: "K", Help: "a short name under which it is kept and replaced"}, {Name: "tag", Value: "TAG", Help: "a word to find it by; without one a key keeps those it has", Many: true}},
			Min: 1, Max: -1, Store: storeWrite, Redacts: true, Run: cmdMemorySave},
		{Path: "memory list", Short: "what tai remembers, newest first", Example: "tai memory list --tag build", Flags: flags, Store: storeRead, Redacts: true, Run: cmdMemorySearch},
		{Path: "memory search", Args: "WORDS", Short: "find memories by words, best first", Example: "tai memory search build command", Flags: flags, Min: 1, Max: -1, Store: storeRead, Redacts: true, Run: cmdMemorySearch},
		{Path: "memory show", Args: "ID|KEY", Short: "print a memory and its earlier texts", Example: "tai memory show m-7k2m", Min: 1, Max: 1, Store: storeRead, Redacts: true, Run: cmdMemoryShow},
		{Path: "memory delete", Args: "ID|KEY", Short: "forget a memory, with its earlier texts", Example: "tai memory delete m-7k2m", Min: 1, Max: 1, Store: storeThere, Signs: true, Run: cmdMemoryDelete},
	}
}

// memoryDoc gives a memory with known secrets taken out.
func (c *invocation) memoryDoc(m memory) memoryEntry {
	e := memoryEntryOf(m)
	e.Key, e.Text = c.redact(e.Key), c.redact(e.Text)
	for i, tag := range e.Tags {
		e.Tags[i] = c.redact(tag)
	}
	return e
}

// cmdMemorySave keeps what memory_save would keep.
func cmdMemorySave(ctx context.Context, c *invocation) error {
	m := memory{Text: strings.Join(append(c.args, c.rest...), " "), Key: c.flag("key"), Tags: c.flags["tag"]}
	if c.given("key") && m.Key == "" {
		return usageError("--key WORD, or leave it out", "--key is empty")
	}
	if _, err := memoryTags(m.Tags); err != nil {
		return usageError("--tag WORD", "--tag: %v", err)
	}
	var err error
	if m.Profile, err = c.profile(ctx); err != nil {
		return err
	}
	desk, saved, state := memoryToolset{c.vault, c.redact}, memory{}, ""
	if err := desk.keeps(m); err != nil {
		return &cliError{Exit: exitFailed, Message: err.Error(), Hint: memorySecretHint, err: err}
	}
	err = c.recorded(ctx, deed{Kind: "memory-save", Subject: m.Key}, func(*vault) error {
		saved, state, err = desk.keep(ctx, m)
		return err
	})
	if err != nil {
		return err
	}
	e := c.memoryDoc(saved)
	return c.done(struct {
		State string `json:"state"`
		memoryEntry
	}{state, e}, "%s", strings.TrimSuffix(savedLine(e, state), "\n"))
}

// cmdMemorySearch finds memories; without words it lists them.
func cmdMemorySearch(ctx context.Context, c *invocation) error {
	limit, err := c.limit(recordListLimit)
	if err != nil {
		return err
	}
	if _, err := memoryTags(c.flags["tag"]); err != nil {
		return usageError("--tag WORD", "--tag: %v", err)
	}
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	list, total, err := v.searchMemories(ctx, memoryQuery{Words: strings.Join(append(c.args, c.rest...), " "), Tags: c.flags["tag"], Limit: limit})
	if err != nil {
		return err
	}
	docs := []memoryEntry{}
	for _, m := range list {
		docs = append(docs, c.memoryDoc(m))
	}
	if c.json {
		return writeJSON(c.stdout, map[string]any{"memories": docs, "total": total})
	}
	for _, e := range docs {
		fmt.Fprint(c.stdout, e.line())
	}
	switch {
	case total == 0 && len(c.args)+len(c.flags["tag"]) > 0:
		fmt.Fprintln(c.stdout, "no memory fits")
	case total == 0:
		fmt.Fprintln(c.stdout, "nothing is remembered")
	case total > len(list):
		fmt.Fprintf(c.stderr, "%d more; --limit shows them\n", total-len(list))
	}
	return nil
}

// memoryHistoryJSON is an earlier text.
type memoryHistoryJSON struct {
	Text string   `json:"text"`
	Tags []string `json:"tags"`
	Time string   `json:"time"`
}

func cmdMemoryShow(ctx context.Context, c *invocation) error {
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	m, earlier, err := v.memory(ctx, c.args[0])
	if err != nil {
		return orUnknown(err, memoryIDsHint)
	}
	e, history := c.memoryDoc(m), []memoryHistoryJSON{}
	for _, old := range earlier {
		for i, tag := range old.Tags {
			old.Tags[i] = c.redact(tag)
		}
		history = append(history, memoryHistoryJSON{c.redact(old.Text), old.Tags, old.Time.UTC().Format(time.RFC3339)})
	}
	if c.json {
		return writeJSON(c.stdout, struct {
			memoryEntry
			History []memoryHistoryJSON `json:"history"`
		}{e, history})
	}
	fmt.Fprint(c.stdout, e.line())
	for _, old := range history {
		fmt.Fprintf(c.stdout, "\nfrom %s on:\n  %s\n", old.Time, strings.ReplaceAll(visible(old.Text), "\n", "\n  "))
	}
	return nil
}

func cmdMemoryDelete(ctx context.Context, c *invocation) error {
	err := c.recorded(ctx, deed{Kind: "memory-delete", Subject: c.args[0]}, func(v *vault) error {
		_, err := v.deleteMemory(ctx, c.args[0])
		return err
	})
	if err != nil {
		return orUnknown(err, memoryIDsHint)
	}
	return c.done(map[string]string{"id": c.args[0], "state": "deleted"}, "%s: deleted", visibleLine(c.args[0]))
}
