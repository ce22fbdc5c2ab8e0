// This file holds the pure parts of making a history shorter: how long it is, where it may be cut, how it reads as plain text, and the digest that
// stands for it where the model cannot sum it up. It asks no model and keeps nothing.
package main

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	compactAt      = 80        // percent of the model's window from which a history is made shorter
	compactKeep    = 30        // percent of it that the kept end may have
	compactText    = 16 << 10  // bytes of a summary
	compactSay     = 1500      // bytes of one tool result, and of the arguments of one call, in the text that is summed up
	compactSpoken  = 8 << 10   // bytes of one message there
	compactMinText = 4 << 10   // bytes of that text, however small the window
	compactMaxText = 512 << 10 // and however large
)

var errNothingToCompact = errors.New("there is nothing to sum up yet")

// textTokens estimates tokens: 2 for 7 bytes of ASCII, as code and JSON have them, and 1 for 2 bytes of anything else.
func textTokens(s string) int {
	ascii := 0
	for i := range len(s) {
		if s[i] < utf8.RuneSelf {
			ascii++
		}
	}
	return ascii*2/7 + (len(s)-ascii)/2
}

// messageTokens estimates one message, with a few for its frame.
func messageTokens(m chatMessage) int {
	n := 6 + textTokens(m.Content)
	for _, c := range m.Calls {
		n += 12 + textTokens(c.Name) + textTokens(c.Args)
	}
	return n
}

//go:noinline for size: it is called in many places
func messagesTokens(msgs []chatMessage) int {
	n := 0
	for _, m := range msgs {
		n += messageTokens(m)
	}
	return n
}

func replyTokens(r chatReply) int {
	return messageTokens(chatMessage{Content: r.Text, Calls: r.Calls})
}

// compactCut gives where the kept end of a history begins: with the earliest turn from which on all fits into room tokens; where not even the last
// turn fits, with the earliest step in it that does, at least the last one. Never between a call and its result, and only at a message that
// has a row.
func compactCut(msgs []chatMessage, room int) int {
	said := 0
	for i, m := range msgs {
		if m.Role == roleUser {
			said = i
		}
	}
	size, turn, step := 0, 0, 0
	for i := len(msgs) - 1; i > 0; i-- {
		size += messageTokens(msgs[i])
		switch {
		case msgs[i].seq == 0:
		case msgs[i].Role == roleUser && size <= room:
			turn = i
		case msgs[i].Role == roleAssistant && i > said && (size <= room || step == 0):
			step = i
		}
	}
	switch {
	case turn > 0:
		return turn
	case step > 0:
		return step
	case len(msgs) > 0 && msgs[said].seq > 0:
		return said
	}
	return 0
}

// compactStart gives the first place where a cut leaves something out: behind what stands for an earlier one, or behind the first message.
func compactStart(msgs []chatMessage) int {
	n := 0
	for n < len(msgs) && msgs[n].seq == 0 && msgs[n].Role != roleTool {
		n++
	}
	return max(n, 1)
}

// compactClip gives the number of bytes that results and arguments keep so that the messages fit into room tokens; 0 where they do as they
// are. The smallest number is given where they never do.
func compactClip(msgs []chatMessage, room int) int {
	if messagesTokens(msgs) <= room {
		return 0
	}
	sizes := []int{16 << 10, 4 << 10, 1 << 10, 256}
	for _, n := range sizes {
		total := 0
		for _, m := range msgs {
			total += messageTokens(m.clipped(n))
		}
		if total <= room {
			return n
		}
	}
	return sizes[len(sizes)-1]
}

// compactTranscript writes messages as plain text of about max bytes at most; what is left out comes from the middle.
func compactTranscript(msgs []chatMessage, max int) string {
	var b textBuilder
	for _, m := range msgs {
		text := clipMiddle(m.Content, compactSpoken)
		switch m.Role {
		case roleUser:
			b.WriteString("PERSON: " + text + "\n\n")
		case roleTool:
			state := "RESULT"
			if m.IsError {
				state = "FAILED"
			}
			b.WriteString(state + " (" + m.CallID + "): " + clipMiddle(m.Content, compactSay) + "\n\n")
		case roleAssistant:
			if text != "" {
				b.WriteString("YOU: " + text + "\n\n")
			}
			for _, c := range m.Calls {
				b.WriteString("CALL (" + c.ID + "): " + c.Name + " " + clipMiddle(c.Args, compactSay) + "\n\n")
			}
		}
	}
	return clipMiddle(b.String(), min(max, compactMaxText))
}

// compactDigest says in a few lines what messages hold, without a model: what was asked and answered, and which tools were called with what. earlier
// is the summary before, of which the head stays.
func compactDigest(msgs []chatMessage, earlier string) string {
	failed := map[string]bool{}
	for _, m := range msgs {
		if m.Role == roleTool && m.IsError {
			failed[m.CallID] = true
		}
	}
	var lines []string
	for _, m := range msgs {
		switch {
		case m.seq == 0: // stands for an earlier summary
		case m.Role == roleUser:
			lines = append(lines, "- the person: "+oneLine(m.Content, 600))
		case m.Role == roleAssistant:
			if m.Content != "" {
				lines = append(lines, "- answered: "+oneLine(m.Content, 400))
			}
			for _, c := range m.Calls {
				state := ""
				if failed[c.ID] {
					state = " (failed)"
				}
				lines = append(lines, "- called "+c.Name+state+": "+oneLine(c.Args, 160))
			}
		}
	}
	head := ""
	if earlier != "" {
		head = clipMiddle(earlier, compactText/3) + "\n\n"
	}
	size, from := len(head), len(lines)
	for from > 0 && size+len(lines[from-1]) < compactText { // the latest ones count most
		from--
		size += len(lines[from]) + 1
	}
	if from > 0 {
		head += fmt.Sprintf("- (%s left out)\n", plural(from, "earlier line"))
	}
	return head + strings.Join(lines[from:], "\n")
}

// oneLine gives a text as one line of at most max bytes.
func oneLine(s string, max int) string { return clip(strings.Join(strings.Fields(s), " "), max) }
