// This file holds session_search and session_read: past conversations, found by their words and read turn by turn. A turn is what the person said
// and all that followed. It changes no session.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	sessionHits      = 10       // hits that session_search gives unless the call says otherwise
	sessionMaxHits   = 50       // the most that it may say
	sessionTurns     = 10       // turns that session_read gives unless the call says otherwise
	sessionMaxTurns  = 100      // the most that it may say
	sessionTextMax   = 4 << 10  // bytes shown of what the person or the model said
	sessionResultMax = 300      // bytes shown of a tool's result
	sessionArgsMax   = 200      // bytes shown of a call's arguments
	sessionReadMax   = 40 << 10 // bytes of text in one session_read
)

// sessionTools gives the tools over the sessions of a vault.
func sessionTools(v func(context.Context) (*vault, error)) []tool {
	reads := toolHints{ReadOnly: true, Idempotent: true}
	return []tool{{
		Name: "session_search", Family: "sessions",
		Description: "Find past conversations by words: what was said or talked about, last week or long ago, and, less, what tools gave. Gives the session, the turn and the text around the words; session_read reads on. The conversation that goes on now is left out.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["query"],"properties":{
"query":{"type":"string","minLength":1,"description":"Words to look for; quotes and operators mean nothing."},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"Hits to show at most (default %d)."}}}`, sessionMaxHits, sessionHits)),
		Output: json.RawMessage(`{"type":"object","properties":{
"hits":{"type":"array","description":"Messages that fit, best first.","items":{"type":"object","properties":{
"session":{"type":"string"},"title":{"type":"string"},"root":{"type":"string","description":"The workspace."},"parent":{"type":"string","description":"The session that started this one, if any."},
"turn":{"type":"integer","description":"As session_read counts."},"message":{"type":"integer"},"role":{"type":"string","description":"user, assistant or tool."},"time":{"type":"string"},"text":{"type":"string","description":"Around the words."}}}},
"left_out":{"type":"integer","description":"Messages that fit too and are not shown."},
"more":{"type":"boolean","description":"Older ones may fit that were not looked at."},` + toolRecordSchema + `}}`),
		Hints: reads, run: func(ctx context.Context, c toolCall) (toolResult, error) { return sessionSearch(ctx, v, c) },
	}, {
		Name: "session_read", Family: "sessions",
		Description: "Read turns of a past conversation. Calls of tools and their results are given in short; a long message is cut in its middle.",
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","additionalProperties":false,"required":["id"],"properties":{
"id":{"type":"string","minLength":1,"maxLength":64,"description":"The session, such as s-7k2m."},
"from":{"type":"integer","minimum":1,"description":"The first turn to read, counted from 1 (default 1)."},
"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"Turns to read at most (default %d)."}}}`, sessionMaxTurns, sessionTurns)),
		Output: json.RawMessage(`{"type":"object","properties":{
"session":{"type":"string"},"title":{"type":"string"},"root":{"type":"string","description":"The workspace."},"parent":{"type":"string","description":"The session that started this one, if any."},
"turns":{"type":"integer","description":"Turns in all."},
"messages":{"type":"array","description":"What is shown, in order.","items":{"type":"object","properties":{
"turn":{"type":"integer"},"message":{"type":"integer"},"role":{"type":"string","description":"user, assistant, tool, or compaction for a summary of what came before."},"time":{"type":"string"},
"text":{"type":"string"},"bytes":{"type":"integer","description":"Of the whole text, where it was cut."},"error":{"type":"boolean","description":"The tool failed."},
"calls":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"string","description":"As the model sent them, cut where they are long."}}}}}}},
"next":{"type":"integer","description":"The turn to go on from; missing at the end."},
"left_out":{"type":"integer","description":"Messages of the last turn shown that are left out."},` + toolRecordSchema + `}}`),
		Hints: reads, run: func(ctx context.Context, c toolCall) (toolResult, error) { return sessionRead(ctx, v, c) },
	}}
}

// sessionHit is one hit in a result.
type sessionHit struct {
	Session string `json:"session"`
	Title   string `json:"title"`
	Root    string `json:"root,omitempty"`
	Parent  string `json:"parent,omitempty"`
	Turn    int    `json:"turn"`
	Message int    `json:"message"`
	Role    string `json:"role"`
	Time    string `json:"time"`
	Text    string `json:"text"`
}

func sessionSearch(ctx context.Context, open func(context.Context) (*vault, error), c toolCall) (toolResult, error) {
	args := struct {
		Query string
		Limit int
	}{Limit: sessionHits}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	v, err := open(ctx)
	if err != nil {
		return toolResult{}, err
	}
	hits, left, err := v.searchMessages(ctx, messageQuery{Words: args.Query, Except: c.Session, Limit: args.Limit})
	if err != nil {
		return toolResult{}, err
	}
	var text textBuilder
	out, more := []sessionHit{}, len(hits)+left >= messageFetch
	for _, h := range hits {
		e := sessionHit{h.Session, h.Title, h.Root, h.Parent, max(h.Turn, 1), h.Seq, h.Role, h.Created.UTC().Format(time.RFC3339), h.Snippet}
		out = append(out, e)
		fmt.Fprintf(&text, "%s turn %d  %s  %s  %s\n  %s\n", e.Session, e.Turn, e.Time, e.Role, visibleLine(e.Title), visibleLine(e.Text))
	}
	switch {
	case len(hits) == 0:
		text.WriteString("no past conversation holds these words; other words may\n")
	case more:
		fmt.Fprintf(&text, "at least %d more messages fit, of one session at most %d are shown; further words narrow the search\n", left, messagePerSession)
	case left > 0:
		fmt.Fprintf(&text, "%s left out, of one session at most %d are shown; session_read reads on, further words narrow the search\n", plural(left, "hit"), messagePerSession)
	}
	return toolResult{Text: text.String(), Structured: procJSON(struct {
		Hits    []sessionHit `json:"hits"`
		LeftOut int          `json:"left_out"`
		More    bool         `json:"more"`
	}{out, left, more})}, nil
}

// sessionMessage is one message in a result.
type sessionMessage struct {
	Turn    int              `json:"turn"`
	Message int              `json:"message"`
	Role    string           `json:"role"`
	Time    string           `json:"time"`
	Text    string           `json:"text"`
	Bytes   int              `json:"bytes,omitempty"`
	Error   bool             `json:"error,omitempty"`
	Calls   []sessionToolUse `json:"calls,omitempty"`
}

// sessionToolUse is a call in short form.
type sessionToolUse struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// sessionPart is what one session_read gives.
type sessionPart struct {
	Session  string           `json:"session"`
	Title    string           `json:"title"`
	Root     string           `json:"root,omitempty"`
	Parent   string           `json:"parent,omitempty"`
	Turns    int              `json:"turns"`
	Messages []sessionMessage `json:"messages"`
	Next     int              `json:"next,omitempty"`
	LeftOut  int              `json:"left_out"`
}

func sessionRead(ctx context.Context, open func(context.Context) (*vault, error), c toolCall) (toolResult, error) {
	args := struct {
		ID          string
		From, Limit int
	}{From: 1, Limit: sessionTurns}
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	v, err := open(ctx)
	if err != nil {
		return toolResult{}, err
	}
	s, err := v.session(ctx, args.ID)
	var rows []storedMessage
	if err == nil {
		rows, err = v.messages(ctx, s.ID)
	}
	if errors.Is(err, errNotFound) {
		return toolResult{Hint: "session_search finds sessions by their words"}, errorf("id: there is no session %s", quoteClip(args.ID))
	}
	if err != nil {
		return toolResult{}, err
	}
	part, err := sessionPartOf(s, rows, args.From, args.Limit)
	if err != nil {
		return toolResult{}, err
	}
	if args.From > 1 && args.From > part.Turns {
		return toolResult{}, errorf("from: the session has %s", plural(part.Turns, "turn"))
	}
	return toolResult{Text: part.text(), Structured: procJSON(part)}, nil
}

// sessionPartOf takes limit turns from number from on, as far as sessionReadMax reaches: whole turns, but for a first one that is too long.
func sessionPartOf(s sessionInfo, rows []storedMessage, from, limit int) (p sessionPart, err error) {
	p = sessionPart{Session: s.ID, Title: s.Title, Root: s.Root, Parent: s.Parent, Messages: []sessionMessage{}}
	size, begun := 0, 0 // begun: where the messages of this turn begin
	for _, row := range rows {
		if row.Role == string(roleUser) || p.Turns == 0 {
			p.Turns++
			begun = len(p.Messages)
		}
		if p.Turns < from || p.Next > 0 {
			continue
		}
		if p.Turns >= from+limit {
			p.Next = p.Turns
			continue
		}
		m, err := shortMessage(row, p.Turns)
		if err != nil {
			return p, errorf("session %s: message %d: %w", s.ID, row.Seq, err)
		}
		n := len(m.Text)
		for _, call := range m.Calls {
			n += len(call.Name) + len(call.Arguments)
		}
		switch size += n; {
		case size <= sessionReadMax:
			p.Messages = append(p.Messages, m)
		case p.Turns > from:
			p.Messages, p.Next = p.Messages[:begun], p.Turns
		default:
			p.LeftOut++
		}
	}
	return p, nil
}

// shortMessage gives a message as it is shown.
func shortMessage(row storedMessage, turn int) (sessionMessage, error) {
	m := sessionMessage{Turn: turn, Message: row.Seq, Role: row.Role, Time: row.Created.UTC().Format(time.RFC3339), Text: row.Content}
	if row.Role != roleCompact {
		said, err := fromStored(row)
		if err != nil {
			return m, err
		}
		m.Error = said.IsError
		for _, call := range said.Calls {
			m.Calls = append(m.Calls, sessionToolUse{call.Name, clip(call.Args, sessionArgsMax)})
		}
	}
	most := sessionTextMax
	if row.Role == string(roleTool) {
		most = sessionResultMax
	}
	if len(m.Text) > most {
		m.Text, m.Bytes = clipMiddle(m.Text, most), len(row.Content)
	}
	return m, nil
}

// text is the part as a model reads it.
func (p sessionPart) text() string {
	var b textBuilder
	fmt.Fprintf(&b, "%s  %s  (%s)\n", p.Session, visibleLine(p.Title), plural(p.Turns, "turn"))
	turn := 0
	for _, m := range p.Messages {
		if m.Turn != turn {
			turn = m.Turn
			fmt.Fprintf(&b, "\nturn %d  %s\n", turn, m.Time)
		}
		role := m.Role
		if m.Error {
			role += " (failed)"
		}
		if m.Text != "" {
			fmt.Fprintf(&b, "%s: %s\n", role, visible(m.Text))
		}
		for _, call := range m.Calls {
			fmt.Fprintf(&b, "%s calls %s %s\n", role, visibleLine(call.Name), visibleLine(call.Arguments))
		}
	}
	if p.LeftOut > 0 {
		fmt.Fprintf(&b, "\n[%s of this turn left out: it is too long for one answer]\n", plural(p.LeftOut, "message"))
	}
	if p.Next > 0 {
		fmt.Fprintf(&b, "\n[goes on with turn %d of %d]\n", p.Next, p.Turns)
	}
	return b.String()
}
