// This file holds memory_save, memory_search and memory_delete: what a model keeps for later conversations. It keeps nothing that holds a known
// secret; where memories lie is the vault's matter.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	memoryLimit    = 10 // memories that memory_search gives unless the call says otherwise
	memoryMaxLimit = 50 // the most that it may say
)

// memoryFields are what a result says of one memory.
const memoryFields = `
"id":{"type":"string"},"key":{"type":"string","description":"Missing where it has none."},"text":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},
"profile":{"type":"string","description":"The profile it was last saved in."},"session":{"type":"string","description":"The session it was last saved in, if any."},
"created":{"type":"string"},"updated":{"type":"string"},"earlier":{"type":"integer","description":"Earlier texts that are kept."}`

// memoryToolset holds what the three tools share.
type memoryToolset struct {
	vault  func(context.Context) (*vault, error)
	redact func(string) string
}

// memoryTools gives the tools over the memories of a vault. redact tells a text that holds a known secret: it changes it.
func memoryTools(v func(context.Context) (*vault, error), redact func(string) string) []tool {
	m := memoryToolset{v, redact}
	return []tool{{
		Name: "memory_save", Family: "memory",
		Description: "Remember a fact for later conversations. Under a key there is one text: a new one takes its place, and the earlier ones are kept as history. Memories are for every workspace and profile, so say in the text what it is about.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["text"],"properties":{
"text":{"type":"string","minLength":1,"maxLength":%d,"description":"The fact, complete in itself; never a password or a key."},
"key":{"type":"string","minLength":1,"maxLength":%d,"description":"A short name under which it is kept and replaced; case does not matter (default: none, and it gets an id)."},
"tags":{"type":"array","maxItems":%d,"items":{"type":"string","minLength":1,"maxLength":%d},"description":"Words to find it by; without them a key keeps those it has."}}}`, memoryTextMax, memoryKeyMax, memoryTagsMax, memoryTagMax)),
		Output: json.RawMessage(`{"type":"object","properties":{
"state":{"type":"string","description":"saved, changed or unchanged."},` + memoryFields + `,` + toolRecordSchema + `}}`),
		Hints: toolHints{Idempotent: true}, run: m.save,
	}, {
		Name: "memory_search", Family: "memory",
		Description: "Recall what was remembered, by words or tags, best first. Without both it lists the newest.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"properties":{
"query":{"type":"string","description":"Words to look for; quotes and operators mean nothing (default: none, which lists the newest)."},
"tags":{"type":"array","maxItems":%d,"items":{"type":"string","minLength":1,"maxLength":%d},"description":"Only memories that have all of these tags."},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"Memories to show at most (default %d)."}}}`, memoryTagsMax, memoryTagMax, memoryMaxLimit, memoryLimit)),
		Output: json.RawMessage(`{"type":"object","properties":{
"memories":{"type":"array","description":"What fits, best first.","items":{"type":"object","properties":{` + memoryFields + `}}},
"left_out":{"type":"integer","description":"Memories that fit too and are not shown."},` + toolRecordSchema + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true}, run: m.search,
	}, {
		Name: "memory_delete", Family: "memory",
		Description: "Forget a memory, with all its earlier texts.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["id"],"properties":{
"id":{"type":"string","minLength":1,"maxLength":%d,"description":"The id of the memory, such as m-7k2m, or its key."}}}`, memoryKeyMax)),
		Output: json.RawMessage(`{"type":"object","properties":{` + memoryFields + `,` + toolRecordSchema + `}}`),
		Hints:  toolHints{Destructive: true, Idempotent: true}, run: m.delete,
	}}
}

// memoryEntry is one memory in a result.
type memoryEntry struct {
	ID      string   `json:"id"`
	Key     string   `json:"key,omitempty"`
	Text    string   `json:"text"`
	Tags    []string `json:"tags"`
	Profile string   `json:"profile,omitempty"`
	Session string   `json:"session,omitempty"`
	Created string   `json:"created"`
	Updated string   `json:"updated"`
	Earlier int      `json:"earlier"`
}

func memoryEntryOf(m memory) memoryEntry {
	return memoryEntry{m.ID, m.Key, m.Text, orEmpty(m.Tags), m.Profile, m.Session, m.Created.UTC().Format(time.RFC3339), m.Updated.UTC().Format(time.RFC3339), m.Earlier}
}

// line is a memory in text: a line about it, and what it says.
func (e memoryEntry) line() string {
	head := e.ID
	if e.Key != "" {
		head += "  " + e.Key
	}
	head += "  " + e.Updated
	if len(e.Tags) > 0 {
		head += "  [" + strings.Join(e.Tags, ", ") + "]"
	}
	if e.Earlier > 0 {
		head += "  (" + plural(e.Earlier, "earlier text") + ")"
	}
	return visibleLine(head) + "\n  " + strings.ReplaceAll(visible(e.Text), "\n", "\n  ") + "\n"
}

// errMemorySecret is why a memory is not kept, memorySecretHint what to do then.
var errMemorySecret = errors.New("nothing was saved: the text, key or tags hold the value of a known secret, or the secrets cannot be read to tell")

const memorySecretHint = "leave the value out and name the secret as ${NAME}; secret values are kept by tai secret set alone"

// keeps refuses a memory that a known secret stands in.
func (m memoryToolset) keeps(of memory) error {
	for _, s := range append([]string{of.Text, of.Key}, of.Tags...) {
		if m.redact(s) != s {
			return errMemorySecret
		}
	}
	return nil
}

// keep saves a memory that holds no known secret.
func (m memoryToolset) keep(ctx context.Context, of memory) (saved memory, state string, err error) {
	if err := m.keeps(of); err != nil {
		return memory{}, "", err
	}
	v, err := m.vault(ctx)
	if err != nil {
		return memory{}, "", err
	}
	return v.saveMemory(ctx, of)
}

// savedLine says what came of a memory.
func savedLine(e memoryEntry, state string) string {
	text := fmt.Sprintf("%s %s", state, e.ID)
	if e.Key != "" {
		text += " under " + visibleLine(e.Key)
	}
	switch {
	case state == memoryUnchanged:
		text += ": the same text is kept already"
	case state == memoryChanged:
		text += ": " + plural(e.Earlier, "earlier text") + " kept"
	}
	return text + "\n"
}

func (m memoryToolset) save(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct {
		Text, Key string
		Tags      []string
	}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	saved, state, err := m.keep(ctx, memory{Text: args.Text, Key: args.Key, Tags: args.Tags, Profile: c.Profile, Session: c.Session})
	if errors.Is(err, errMemorySecret) {
		return toolResult{Hint: memorySecretHint}, err
	}
	if err != nil {
		return toolResult{}, err
	}
	e := memoryEntryOf(saved)
	return toolResult{Text: savedLine(e, state), Structured: procJSON(struct {
		State string `json:"state"`
		memoryEntry
	}{state, e})}, nil
}

func (m memoryToolset) search(ctx context.Context, c toolCall) (toolResult, error) {
	args := struct {
		Query string
		Tags  []string
		Limit int
	}{Limit: memoryLimit}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	v, err := m.vault(ctx)
	if err != nil {
		return toolResult{}, err
	}
	list, total, err := v.searchMemories(ctx, memoryQuery{Words: args.Query, Tags: args.Tags, Limit: args.Limit})
	if err != nil {
		return toolResult{}, err
	}
	var text textBuilder
	entries := []memoryEntry{}
	for _, found := range list {
		e := memoryEntryOf(found)
		entries = append(entries, e)
		text.WriteString(e.line())
	}
	switch left := total - len(list); {
	case total == 0 && args.Query == "" && len(args.Tags) == 0:
		text.WriteString("nothing is remembered yet\n")
	case total == 0:
		text.WriteString("no memory fits; other words may, or no query, which lists the newest\n")
	case left > 0:
		fmt.Fprintf(&text, "%d more fit; limit shows up to %d, further words or tags narrow the search\n", left, memoryMaxLimit)
	}
	return toolResult{Text: text.String(), Structured: procJSON(struct {
		Memories []memoryEntry `json:"memories"`
		LeftOut  int           `json:"left_out"`
	}{entries, total - len(list)})}, nil
}

func (m memoryToolset) delete(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct{ ID string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	v, err := m.vault(ctx)
	if err != nil {
		return toolResult{}, err
	}
	gone, err := v.deleteMemory(ctx, args.ID)
	if errors.Is(err, errNotFound) {
		return toolResult{Hint: "memory_search shows the ids and keys"}, errorf("id: no memory is called %s; nothing was deleted", quoteClip(args.ID))
	}
	if err != nil {
		return toolResult{}, err
	}
	e := memoryEntryOf(gone)
	text := "forgotten, with " + plural(gone.Earlier, "earlier text") + ":\n" + e.line()
	return toolResult{Text: text, Structured: procJSON(e)}, nil
}
