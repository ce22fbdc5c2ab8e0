// This file reads a server's whole tool list, page by page (MCP 2025-11-25, Tools and Pagination). What a single tool must look
// like is decided in mcp_wire.go; here it is about pages, names that come twice, and bounds.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	mcpListBytes    = mcpHTTPMaxBody // bytes of all pages after which none is asked for
	mcpCursorMax    = 64 << 10       // bytes of one cursor; each is kept, to see it come back
	mcpListWarnings = 20             // warnings of one list; the rest are counted
)

// toolList is what a server lists. The raw parts of Tools are the list's own memory.
type toolList struct {
	Tools      []toolDef // in the server's order, names unique, at most mcpMaxListed
	Total      int       // tools that were listed, refused ones included
	Incomplete string    // why there may be more tools; "" if these are all
	Warnings   []string  // what was refused or looks wrong, safe to show
	silent     int       // warnings beyond mcpListWarnings
}

//go:noinline for size: it is called in many places
func (l *toolList) warn(format string, args ...any) {
	if len(l.Warnings) < mcpListWarnings {
		l.Warnings = append(l.Warnings, fmt.Sprintf(format, args...))
		return
	}
	l.silent++
}

// listTools reads the whole list. It clears stale, unless it fails. ctx bounds the whole of it.
func (c *mcpClient) listTools(ctx context.Context) (toolList, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.callTimeout, errCallTimeout)
	defer cancel()
	was := c.changed.Swap(false)
	list, err := c.listOnce(ctx, true)
	if errors.Is(err, errSessionRenewed) {
		c.changed.Store(false)
		list, err = c.listOnce(ctx, false) // from the start: cursors belong to a session
	}
	if err != nil {
		if was {
			c.changed.Store(true)
		}
		return toolList{}, err
	}
	return list, nil
}

func (c *mcpClient) listOnce(ctx context.Context, renew bool) (toolList, error) {
	var l toolList
	names, cursors := map[string]int{}, map[string]bool{}
	params, size, unnamed := json.RawMessage(`{}`), 0, 0
	for page := 1; ; page++ {
		raw, err := c.request(ctx, methodToolsList, params, renew)
		if err != nil {
			return toolList{}, err
		}
		cursor, more, err := decodeToolList(raw, func(t toolDef) {
			if !l.add(t, names) {
				unnamed++
			}
		})
		if err != nil {
			return toolList{}, err
		}
		size += len(raw)
		if !more {
			break
		}
		l.Incomplete = listEnd(page, size, len(l.Tools), len(cursor), cursors[cursor])
		if l.Incomplete != "" {
			break
		}
		cursors[cursor] = true
		params = append(appendJSONString([]byte(`{"cursor":`), cursor), '}')
	}
	if unnamed > 0 {
		l.warn("%d tools without a name are left out", unnamed)
	}
	if l.silent > 0 {
		l.Warnings = append(l.Warnings, fmt.Sprintf("%d more warnings of this list are not shown", l.silent))
	}
	if l.Incomplete == "" && len(l.Tools) == mcpMaxListed && l.Total > mcpMaxListed {
		l.Incomplete = fmt.Sprintf("%d tools are listed, %d are read", l.Total, mcpMaxListed)
	}
	return l, nil
}

// listEnd says why the next page is not asked for, "" if it is.
func listEnd(page, size, tools, cursor int, cursorAgain bool) string {
	switch {
	case cursorAgain:
		return "the server's list goes round in a circle: a cursor came back"
	case cursor > mcpCursorMax:
		return fmt.Sprintf("a cursor of the list has more than %d KB", mcpCursorMax>>10)
	case page >= mcpMaxPages:
		return fmt.Sprintf("the list has more than %d pages", mcpMaxPages)
	case size >= mcpListBytes:
		return fmt.Sprintf("the list is larger than %d MB", mcpListBytes>>20)
	case tools >= mcpMaxListed:
		return fmt.Sprintf("the list has more than %d tools", mcpMaxListed)
	}
	return ""
}

// add takes one tool into the list and reports false if it has no name. Of two with one name the first stays: a later one never
// replaces it silently (LST-03), and the same definition once more is nothing new (a page sent twice).
func (l *toolList) add(t toolDef, names map[string]int) bool {
	if t.Name == "" {
		l.Total++
		return false
	}
	if at, ok := names[t.Name]; ok {
		if !bytes.Equal(l.Tools[at].Raw, t.Raw) {
			l.Total++
			l.warn("tool %s is listed twice with different definitions; the first is taken", clip(visibleLine(t.Name), 100))
		}
		return true
	}
	l.Total++
	if len(l.Tools) == mcpMaxListed {
		return true
	}
	names[t.Name] = len(l.Tools)
	l.Tools = append(l.Tools, t)
	return true
}
