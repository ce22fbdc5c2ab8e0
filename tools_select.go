// This file chooses the tools that a message is offered, and finds tools by words for whoever asks: native and bridged ones alike, ranked by
// one index that is built when first needed. It runs no tool.
package main

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// toolQuery is what a search looks for. Server narrows it to one server, or to one family of native tools; Except leaves a tool out by name.
type toolQuery struct {
	Words, Server, Except string
	Limit                 int
}

// foundTool is a tool that a search found. Server and Tool are "" for a native one.
type foundTool struct {
	sourceTool
	Score float64
}

// selectFor gives the tools for one request, at most limit and never more than toolMaxOffered. Where all fit, all are in. Else a place goes
// first to those named in the message, then to the native core, the other native tools that fit the message, those used before
// (the last used first), and the bridged ones that fit best. They come in a fixed order, native core, other native ones, bridged
// ones by name, so that the same choice gives the same bytes. When the bridged tools cannot be listed, the native ones come with the error.
func (t *toolbox) selectFor(ctx context.Context, message string, used []string, limit int) ([]toolDef, error) {
	limit = max(0, min(limit, toolMaxOffered))
	bridged, err := t.bridged(ctx)
	if err != nil {
		err = fmt.Errorf("list bridged tools: %w", err)
	}
	chosen := make([]bool, len(t.tools)+len(bridged))
	if len(chosen) <= limit {
		for i := range chosen {
			chosen[i] = true
		}
	} else {
		t.choose(chosen, bridged, message, used, limit)
	}
	out := make([]toolDef, 0, limit)
	for _, core := range [...]bool{true, false} {
		for i, tl := range t.tools {
			if chosen[i] && tl.Core == core {
				out = append(out, t.defs[i])
			}
		}
	}
	for i, d := range bridged {
		if chosen[len(t.tools)+i] {
			out = append(out, d.toolDef)
		}
	}
	return out, err
}

// choose marks limit tools at most: native ones by their place, then bridged ones.
func (t *toolbox) choose(chosen []bool, bridged []sourceTool, message string, used []string, limit int) {
	room, natives := limit, len(t.tools)
	take := func(i int) {
		if room > 0 && !chosen[i] {
			chosen[i] = true
			room--
		}
	}
	scan := t.rank(bridged).scan(message)
	native, _ := scan.top(natives, func(doc int) bool { return doc < natives })
	foreign, _ := scan.top(limit, func(doc int) bool { return doc >= natives })
	for _, h := range slices.Concat(native, foreign) {
		if h.Named && room > limit/2 { // a message full of names leaves room for what it takes to work at all
			take(h.Doc)
		}
	}
	for _, fits := range [...]bool{true, false} { // the core first; where not even that has room, what fits the message
		for _, h := range native {
			if fits && t.tools[h.Doc].Core {
				take(h.Doc)
			}
		}
		for i, tl := range t.tools {
			if !fits && tl.Core {
				take(i)
			}
		}
	}
	for _, h := range native {
		take(h.Doc)
	}
	places := make(map[string]int, len(chosen))
	for i, tl := range t.tools {
		places[tl.Name] = i
	}
	for i, d := range bridged {
		places[d.Name] = natives + i
	}
	for _, name := range slices.Backward(used) {
		if i, known := places[name]; known {
			take(i)
		}
	}
	for _, h := range foreign {
		take(h.Doc)
	}
}

// bridged gives the bridged tools that a model can be offered, by name.
func (t *toolbox) bridged(ctx context.Context) ([]sourceTool, error) {
	if t.bridge == nil {
		return nil, nil
	}
	offered, err := t.bridge.offered(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]sourceTool, 0, len(offered))
	for _, d := range offered {
		if d.Fault == "" && t.byName[d.Name] == nil && fitName(d.Name) {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b sourceTool) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// rank gives the index over the native tools and, behind them, the bridged ones. It is built anew only when one of these has changed. Native
// tools take their family for a server.
func (t *toolbox) rank(bridged []sourceTool) *rankIndex {
	stamps := make([]uint64, len(bridged))
	for i, d := range bridged {
		stamps[i] = d.stamp(t.seed)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.index != nil && slices.Equal(stamps, t.ranked) {
		return t.index
	}
	docs := make([]rankDoc, 0, len(t.tools)+len(bridged))
	for _, tl := range t.tools {
		docs = append(docs, rankDoc{Server: tl.Family, Name: tl.Name, Description: tl.Description, Schema: tl.Schema})
	}
	for _, d := range bridged {
		docs = append(docs, rankDoc{Server: d.Server, Name: d.Tool, Alias: d.Name, Description: d.Description, Schema: d.InputSchema})
	}
	t.ranked, t.index = stamps, newRankIndex(docs)
	return t.index
}

// stamp tells two states of a tool apart without keeping its text.
func (d sourceTool) stamp(seed maphash.Seed) uint64 {
	const mix = 0x9e3779b97f4a7c15 // odd, so that the order of the parts counts
	h := maphash.String(seed, d.Server)
	for _, part := range [...]string{d.Tool, d.Name, d.Hash} {
		h = h*mix ^ maphash.String(seed, part)
	}
	if d.Hash == "" {
		h = h*mix ^ maphash.String(seed, d.Description)
		h = h*mix ^ maphash.Bytes(seed, d.InputSchema)
	}
	return h
}

// search gives the tools that fit the query, best first, and how many fit in all. A server without any tool is an error.
func (t *toolbox) search(ctx context.Context, q toolQuery) (found []foundTool, fit int, err error) {
	bridged, err := t.bridged(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("list bridged tools: %w", err)
	}
	all := make([]sourceTool, 0, len(t.tools)+len(bridged))
	for i, tl := range t.tools {
		all = append(all, sourceTool{toolDef: t.defs[i], Server: tl.Family})
	}
	all = append(all, bridged...)
	if q.Server != "" && !slices.ContainsFunc(all, func(d sourceTool) bool { return d.Server == q.Server }) {
		return nil, 0, fmt.Errorf("%w: no tool is offered of a server %s", errNotFound, quoteClip(q.Server))
	}
	hits, fit := t.rank(bridged).look(readMessage(q.Words, true)).top(q.Limit, func(doc int) bool {
		return (q.Server == "" || all[doc].Server == q.Server) && all[doc].Name != q.Except
	})
	for _, h := range hits {
		f := foundTool{all[h.Doc], h.Score}
		if h.Doc < len(t.tools) {
			f.Server = ""
		}
		found = append(found, f)
	}
	return found, fit, nil
}

// named gives the definitions of tools by their names; those that are not there are left out.
func (t *toolbox) named(ctx context.Context, names []string) ([]toolDef, error) {
	bridged, err := t.bridged(ctx)
	var out []toolDef
	for _, name := range names {
		if i := slices.IndexFunc(t.defs, func(d toolDef) bool { return d.Name == name }); i >= 0 {
			out = append(out, t.defs[i])
		} else if i := slices.IndexFunc(bridged, func(d sourceTool) bool { return d.Name == name }); i >= 0 {
			out = append(out, bridged[i].toolDef)
		}
	}
	return out, err
}
