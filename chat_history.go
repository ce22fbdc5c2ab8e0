// This file makes a history one that every model endpoint takes, whatever interrupted it, and gives ids and names of calls the form that an
// endpoint wants. The history itself stays as it is kept.
package main

import (
	"fmt"
	"strings"
)

const (
	chatMaxID    = 40 // characters of a call's id; OpenAI takes no longer one
	chatUnknown  = "interrupted: tai ended before this call had a result; whether it ran, wholly or in part, is not known"
	chatNoText   = "(empty)"               // stands for a text without a visible character, which endpoints refuse
	chatNoAnswer = "(no answer was given)" // stands between a result and what the person says next, where an endpoint wants it
	chatGoOn     = "(the conversation goes on)"
)

// repairHistory makes any list of messages one that endpoints take: after an assistant message exactly one result for each of its calls, in
// their order; results of no call and empty answers are dropped. A result that stands further down, since two tai wrote at once, is
// found there. missing holds the results made up, for calls at the end.
func repairHistory(msgs []chatMessage) (fixed, missing []chatMessage) {
	late := lateResults(msgs)
	for i := 0; i < len(msgs); {
		m := msgs[i]
		i++
		switch {
		case m.Role == roleTool, m.Role == roleAssistant && strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0:
			continue
		case len(m.Calls) == 0:
			if m.Role == roleAssistant {
				missing = nil
			}
			fixed = append(fixed, m)
			continue
		}
		fixed = append(fixed, m)
		results := map[string]chatMessage{}
		var others []chatMessage // said by another tai on the same session meanwhile
		for ; i < len(msgs) && msgs[i].Role != roleAssistant; i++ {
			if msgs[i].Role != roleTool {
				others = append(others, msgs[i])
			} else if have, twice := results[msgs[i].CallID]; !twice || have.Content == chatUnknown {
				results[msgs[i].CallID] = msgs[i]
			}
		}
		missing = nil
		answered := map[string]bool{}
		for _, c := range m.Calls {
			r, ok := results[c.ID]
			if !ok || r.Content == chatUnknown {
				if l, found := late[c.ID]; found {
					r, ok = l, true
				}
			}
			if !ok {
				r = chatMessage{Role: roleTool, CallID: c.ID, Content: chatUnknown, IsError: true}
				missing = append(missing, r)
			}
			if !answered[c.ID] { // one result an id, whatever an older version kept
				fixed = append(fixed, r)
			}
			answered[c.ID] = true
		}
		fixed = append(fixed, others...)
	}
	return fixed, missing
}

// lateResults gives the real results of calls whose id stands once in the whole session.
func lateResults(msgs []chatMessage) map[string]chatMessage {
	calls, late := map[string]int{}, map[string]chatMessage{}
	for _, m := range msgs {
		for _, c := range m.Calls {
			calls[c.ID]++
		}
		if _, twice := late[m.CallID]; m.Role == roleTool && m.Content != chatUnknown && !twice && calls[m.CallID] > 0 {
			late[m.CallID] = m
		}
	}
	for id := range late {
		if calls[id] > 1 {
			delete(late, id)
		}
	}
	return late
}

// wireHistory gives the messages as a request has them: repaired, nothing empty, the person's and the model's in turn, ids and names of calls
// as the endpoint takes them.
func wireHistory(msgs []chatMessage, shortIDs bool) []chatMessage {
	fixed, _ := repairHistory(msgs)
	out := make([]chatMessage, 0, len(fixed))
	ids := chatIDs{short: shortIDs, used: map[string]bool{}}
	for _, m := range fixed {
		if strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0 {
			m.Content = chatNoText
		}
		if n := len(out); n > 0 && m.Role == out[n-1].Role && m.Role != roleTool && len(out[n-1].Calls) == 0 {
			out[n-1].Content = strings.TrimSpace(out[n-1].Content + "\n\n" + m.Content)
			if len(m.Calls) > 0 {
				out[n-1].Calls = ids.calls(m.Calls)
			}
			continue
		}
		if len(m.Calls) > 0 {
			m.Calls = ids.calls(m.Calls)
		}
		if m.Role == roleTool {
			m.CallID = ids.now[m.CallID]
		}
		out = append(out, m)
	}
	return out
}

// chatIDs gives calls the ids of one request. An id of another endpoint may be too long or hold what this one refuses, and one that comes
// twice, as from a server that counts anew in each reply, is refused by some.
type chatIDs struct {
	short bool // nine letters and digits, as Mistral's models want them
	used  map[string]bool
	now   map[string]string // of the last message with calls: kept id to id on the wire
}

// calls gives a copy of the calls of one message for the wire.
func (c *chatIDs) calls(calls []chatToolCall) []chatToolCall {
	c.now = make(map[string]string, len(calls))
	out := make([]chatToolCall, len(calls))
	for i, call := range calls {
		id := call.ID
		for n := 0; !c.fits(id) || c.used[id]; n++ {
			sum := sha256Hex(fmt.Appendf(nil, "%s#%d", call.ID, n))
			if id = "call_" + sum[:24]; c.short {
				id = sum[:9]
			}
		}
		c.used[id], c.now[call.ID] = true, id
		out[i] = chatToolCall{ID: id, Name: fitCallName(call.Name), Args: call.Args}
	}
	return out
}

func (c *chatIDs) fits(id string) bool {
	if c.short {
		return len(id) == 9 && fitName(id) && !strings.ContainsAny(id, "-_")
	}
	return len(id) <= chatMaxID && fitName(id)
}

// fitCallName gives the name of a call that a model made up a form that endpoints take back; the call's result has said what was wrong.
func fitCallName(name string) string {
	if fitName(name) {
		return name
	}
	clean := strings.Map(func(r rune) rune {
		if fitName(string(r)) {
			return r
		}
		return '_'
	}, name)
	if clean == "" {
		return "unnamed"
	}
	return clean[:min(len(clean), chatMaxToolName)]
}
