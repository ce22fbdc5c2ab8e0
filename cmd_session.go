// This file holds the commands about kept conversations: tai session list, show, export, delete. What they print has known secrets taken out.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

const sessionIDsHint = "tai session list shows the ids"

func sessionCommands() []command {
	return []command{
		{Path: "session list", Short: "kept conversations, last used first", Example: "tai session list --here", Flags: []flagSpec{
			{Name: "limit", Value: "N", Help: fmt.Sprintf("at most this many (default %d)", recordListLimit)}, {Name: "here", Help: "only those of this workspace"}}, Store: storeRead, Redacts: true, Run: cmdSessionList},
		{Path: "session show", Args: "ID", Short: "print a conversation, whole", Long: "What a summary has replaced for the model is there too.", Example: "tai session show s-7k2m --from 12",
			Flags: []flagSpec{{Name: "from", Value: "N", Help: "from this message on"}}, Min: 1, Max: 1, Store: storeRead, Redacts: true, Run: cmdSessionShow},
		{Path: "session export", Args: "ID", Short: "write a conversation as Markdown, or with --json as JSON", Example: "tai session export s-7k2m -o talk.md",
			Flags: []flagSpec{{Name: "o", Value: "FILE", Help: "write it to a new file"}, {Name: "markdown", Help: "as Markdown, which it is without --json"}}, Min: 1, Max: 1, Store: storeRead, Redacts: true, Run: cmdSessionExport},
		{Path: "session delete", Args: "ID", Short: "delete a conversation", Example: "tai session delete s-7k2m", Min: 1, Max: 1, Store: storeThere, Run: cmdSessionDelete},
	}
}

type sessionJSON struct {
	ID       string           `json:"id"`
	Title    string           `json:"title"`
	Profile  string           `json:"profile"`
	Root     string           `json:"root,omitempty"`
	Parent   string           `json:"parent,omitempty"` // the session whose agent started it
	Count    int              `json:"count"`            // of messages
	Created  time.Time        `json:"created"`
	Updated  time.Time        `json:"updated"`
	Messages *[]sessionRecord `json:"messages,omitempty"`
}

// sessionRecord is one message as it is shown.
type sessionRecord struct {
	Seq        int               `json:"seq"`
	Role       string            `json:"role"` // user, assistant, tool, or compaction for a summary
	Text       string            `json:"text"`
	Calls      []sessionCallJSON `json:"calls,omitempty"`
	Call       string            `json:"call,omitempty"` // that this is the result of
	IsError    bool              `json:"isError,omitempty"`
	Compaction *compaction       `json:"compaction,omitempty"`
	Created    time.Time         `json:"created"`
}

type sessionCallJSON struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"arguments"` // what is no JSON stands as text
}

// sessionDoc gives a session without its messages.
func (a *app) sessionDoc(s sessionInfo) sessionJSON {
	return sessionJSON{ID: s.ID, Title: a.redact(s.Title), Profile: s.Profile, Root: a.redact(s.Root), Parent: s.Parent, Count: s.Messages, Created: s.Created, Updated: s.Updated}
}

// sessionLine is a session on one line.
func (a *app) sessionLine(s sessionInfo) string {
	line := fmt.Sprintf("%s  %s  %s  %s", s.ID, s.Updated.UTC().Format(time.RFC3339), plural(s.Messages, "message"), visibleLine(a.redact(s.Title)))
	if s.Root != "" && s.Root != a.root {
		line += "  (" + visibleLine(a.redact(s.Root)) + ")"
	}
	return line
}

func cmdSessionList(ctx context.Context, c *invocation) error {
	limit, err := c.limit(recordListLimit)
	if err != nil {
		return err
	}
	v, err := c.vault(ctx)
	if err != nil {
		return err
	}
	q := sessionQuery{Limit: limit}
	if c.given("here") {
		q.Root = c.root
	}
	list, total, err := v.sessions(ctx, q)
	if err != nil {
		return err
	}
	if c.json {
		docs := []sessionJSON{}
		for _, s := range list {
			docs = append(docs, c.sessionDoc(s))
		}
		return writeJSON(c.stdout, map[string]any{"sessions": docs, "total": total})
	}
	if total == 0 {
		fmt.Fprintln(c.stdout, "no conversations are kept")
	}
	for _, s := range list {
		printWrapped(c.stdout, c.sessionLine(s))
	}
	if total > len(list) {
		fmt.Fprintf(c.stderr, "%d more; --limit shows them\n", total-len(list))
	}
	return nil
}

// readSession reads a session with its messages from number from on.
func (c *invocation) readSession(ctx context.Context, id string, from int) (sessionJSON, error) {
	v, err := c.vault(ctx)
	if err != nil {
		return sessionJSON{}, err
	}
	s, err := v.session(ctx, id)
	if err != nil {
		return sessionJSON{}, orUnknown(err, sessionIDsHint)
	}
	rows, err := v.messages(ctx, s.ID)
	if err != nil {
		return sessionJSON{}, orUnknown(err, sessionIDsHint)
	}
	doc, records := c.sessionDoc(s), []sessionRecord{}
	for _, row := range rows {
		if row.Seq < from {
			continue
		}
		rec, err := c.sessionRecord(row)
		if err != nil {
			return doc, errorf("session %s: message %d: %w", s.ID, row.Seq, err)
		}
		records = append(records, rec)
	}
	doc.Messages = &records
	return doc, nil
}

func (c *invocation) sessionRecord(row storedMessage) (sessionRecord, error) {
	meta, err := row.meta()
	if err != nil {
		return sessionRecord{}, err
	}
	rec := sessionRecord{Seq: row.Seq, Role: row.Role, Text: c.redact(row.Content), Call: row.ToolCallID, IsError: meta.IsError, Compaction: meta.Compaction, Created: row.Created}
	if row.Role == roleCompact {
		return rec, nil
	}
	m, err := fromStored(row)
	for _, call := range m.Calls {
		args := json.RawMessage(c.redact(call.Args))
		if checkJSON(args) != nil {
			args = appendJSONString(nil, string(args))
		}
		rec.Calls = append(rec.Calls, sessionCallJSON{call.ID, c.redact(call.Name), args})
	}
	return rec, err
}

func cmdSessionShow(ctx context.Context, c *invocation) error {
	from := 1
	if c.given("from") {
		n, err := strconv.Atoi(c.flag("from"))
		if err != nil || n < 1 {
			return usageError("", "--from takes the number of a message")
		}
		from = n
	}
	doc, err := c.readSession(ctx, c.args[0], from)
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.stdout, doc)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s  %s\n%s, begun %s, profile %s", doc.ID, visibleLine(doc.Title), plural(doc.Count, "message"), doc.Created.UTC().Format(time.RFC3339), visibleLine(doc.Profile))
	if doc.Root != "" {
		b.WriteString(", in " + visibleLine(doc.Root))
	}
	if doc.Parent != "" {
		b.WriteString(", of a sub-agent of " + visibleLine(doc.Parent))
	}
	b.WriteByte('\n')
	for _, m := range *doc.Messages {
		fmt.Fprintf(&b, "\n%d  %s  %s\n", m.Seq, m.who(), m.Created.UTC().Format(time.RFC3339))
		if m.Text != "" {
			b.WriteString(strings.TrimRight(m.Text, "\n") + "\n")
		}
		for _, call := range m.Calls {
			fmt.Fprintf(&b, "→ %s  %s  %s\n", visibleLine(call.ID), visibleLine(call.Name), call.Args)
		}
	}
	text := b.String()
	if c.outTerminal {
		text = visible(text)
	}
	_, err = fmt.Fprint(c.stdout, text)
	return err
}

// who says whose message it is.
func (m sessionRecord) who() string {
	switch {
	case m.Compaction != nil:
		return fmt.Sprintf("summary of what came before %d (%s)", m.Compaction.KeepFrom, m.Compaction.By)
	case m.Role == string(roleUser):
		return "you"
	case m.Role == string(roleAssistant):
		return "model"
	case m.IsError:
		return "failed " + visibleLine(m.Call)
	}
	return "result " + visibleLine(m.Call)
}

func cmdSessionExport(ctx context.Context, c *invocation) error {
	if c.json && c.given("markdown") {
		return usageError("", "--json and --markdown exclude each other")
	}
	doc, err := c.readSession(ctx, c.args[0], 1)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if c.json {
		err = writeJSON(&b, doc)
	} else {
		doc.markdown(&b)
	}
	if err != nil {
		return err
	}
	if !c.given("o") {
		text := b.String()
		if c.outTerminal && !c.json {
			text = visible(text)
		}
		_, err = fmt.Fprint(c.stdout, text)
		return err
	}
	if err := writeNewFile(absolute(c.flag("o"), c.out.Dir), b.Bytes()); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return usageError("choose another name, or remove it", "%s is there already and is left as it is", quoteClip(c.flag("o")))
		}
		return errorf("write the conversation: %w", err)
	}
	if c.json { // the document is on stdout all the same, as with every command
		_, err = c.stdout.Write(b.Bytes())
		return err
	}
	_, err = fmt.Fprintf(c.stdout, "%s: %s, %d bytes, in %s\n", doc.ID, plural(doc.Count, "message"), b.Len(), visibleLine(c.flag("o")))
	return err
}

// markdown writes the session for a person to read.
func (doc sessionJSON) markdown(b *bytes.Buffer) {
	fmt.Fprintf(b, "# %s\n\nSession %s, %s, begun %s.\n", visibleLine(doc.Title), doc.ID, plural(doc.Count, "message"), doc.Created.UTC().Format(time.RFC3339))
	for _, m := range *doc.Messages {
		fmt.Fprintf(b, "\n## %d · %s · %s\n\n", m.Seq, m.who(), m.Created.UTC().Format(time.RFC3339))
		switch {
		case m.Text == "":
		case m.Role == string(roleTool):
			fenceText(b, m.Text)
		default:
			b.WriteString(strings.TrimRight(m.Text, "\n") + "\n")
		}
		for _, call := range m.Calls {
			fmt.Fprintf(b, "\n`%s` %s\n\n", visibleLine(call.ID), visibleLine(call.Name))
			fenceText(b, string(call.Args))
		}
	}
}

// fenceText writes a code block that its text cannot end.
func fenceText(b *bytes.Buffer, text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	b.WriteString(fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n")
}

func cmdSessionDelete(ctx context.Context, c *invocation) error {
	err := c.recorded(ctx, deed{Kind: "session-delete", Subject: c.args[0]}, func(v *vault) error { return v.deleteSession(ctx, c.args[0]) })
	if err != nil {
		return orUnknown(err, sessionIDsHint)
	}
	return c.done(map[string]string{"id": c.args[0], "state": "deleted"}, "%s: deleted", visibleLine(c.args[0]))
}
