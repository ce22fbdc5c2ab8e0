// This file chooses the tools that a message is offered, and finds tools by words for whoever asks: native and bridged ones alike, ranked by
// one index that is built when first needed. It runs no tool.
package main

import (
	"context"
	"hash/maphash"
	"slices"
	"sort"
	"strings"
)

// toolQuery is what a search looks for. Server narrows it to one server, or to one family of native tools; Except leaves a tool out by name.
type toolQuery struct {
	Words, Server, Except string
	Limit                 int
}

// toolKeptText bounds in bytes the descriptions and schemas of bridged tools that stay in memory: all where they fit, else those chosen last.
const toolKeptText = 512 << 10

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
		err = errorf("list bridged tools: %w", err)
	}
	chosen := make([]bool, len(t.tools)+len(bridged.tools))
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
	foreign := make([]sourceTool, 0, limit)
	for i, d := range bridged.tools {
		if chosen[len(t.tools)+i] {
			foreign = append(foreign, d)
		}
	}
	foreign, fault := t.whole(ctx, bridged, foreign)
	for _, d := range foreign {
		out = append(out, d.toolDef)
	}
	return out, joinErrors(err, fault)
}

// choose marks limit tools at most: native ones by their place, then bridged ones.
func (t *toolbox) choose(chosen []bool, bridged *offeredList, message string, used []string, limit int) {
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
	places := make(map[string]int, natives)
	for i, tl := range t.tools {
		places[tl.Name] = i
	}
	for _, name := range slices.Backward(used) {
		i, known := places[name]
		if at, there := bridged.find(name); there {
			i, known = natives+at, true
		}
		if known {
			take(i)
		}
	}
	for _, h := range foreign {
		take(h.Doc)
	}
}

// bridged gives the bridged tools that a model can be offered, by name; without their texts where those are many, which whole adds. The list is
// read anew only when what it depends on has changed. With an error it is empty.
func (t *toolbox) bridged(ctx context.Context) (*offeredList, error) {
	if t.bridge == nil {
		return &offeredList{}, nil
	}
	state, err := t.bridge.state(ctx)
	if err != nil {
		return &offeredList{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.listed != nil && state != nil && t.listed.state == state {
		return t.listed, nil
	}
	offered, err := t.bridge.offered(ctx)
	if err != nil {
		return &offeredList{}, err
	}
	list := &offeredList{state: state, texts: map[string]sourceTool{}}
	fit, size := make([]*sourceTool, 0, len(offered)), 0 // sorting pointers moves less
	for i := range offered {
		if d := &offered[i]; d.Fault == "" && t.byName[d.Name] == nil && fitName(d.Name) {
			fit = append(fit, d)
			size += d.textSize()
		}
	}
	slices.SortFunc(fit, func(a, b *sourceTool) int { return strings.Compare(a.Name, b.Name) })
	list.tools = make([]sourceTool, 0, len(fit))
	for _, d := range fit {
		list.tools = append(list.tools, *d)
	}
	list.stamps = make([]uint64, len(list.tools))
	for i, d := range list.tools {
		list.stamps[i] = d.stamp(t.seed)
	}
	if t.listed != nil && slices.Equal(t.listed.stamps, list.stamps) {
		list.index = t.listed.index
	}
	if size > toolKeptText {
		t.shorten(list)
	}
	t.listed = list
	return list, nil
}

// shorten builds the index of a list and then lets go of what only that and a model read: with thousands of tools it is most of the memory.
func (t *toolbox) shorten(list *offeredList) {
	if list.index == nil {
		list.index = t.newIndex(list.tools)
	}
	for i, d := range list.tools {
		list.tools[i] = sourceTool{toolDef: toolDef{Name: d.Name}, Server: d.Server, Tool: d.Tool}
	}
	list.brief = true
}

// whole gives tools of a list with their texts. One that is gone meanwhile is left out.
func (t *toolbox) whole(ctx context.Context, list *offeredList, tools []sourceTool) ([]sourceTool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !list.brief {
		return tools, nil
	}
	texts := make(map[string]sourceTool, len(tools))
	var missing []string
	for _, d := range tools {
		if kept, ok := list.texts[d.Name]; ok {
			texts[d.Name] = kept
		} else {
			missing = append(missing, d.Name)
		}
	}
	if len(missing) > 0 {
		more, err := t.bridge.described(ctx, missing)
		if err != nil {
			return nil, errorf("read bridged tools: %w", err)
		}
		for _, d := range more {
			texts[d.Name] = d
			list.keep(d)
		}
	}
	out := make([]sourceTool, 0, len(tools))
	for _, d := range tools {
		if d, ok := texts[d.Name]; ok {
			out = append(out, d)
		}
	}
	return out, nil
}

// keep remembers a tool with its texts. Where they have become too many, those of before go.
func (l *offeredList) keep(d sourceTool) {
	if l.size += d.textSize(); l.size > toolKeptText {
		clear(l.texts)
		l.size = d.textSize()
	}
	l.texts[d.Name] = d
}

func (d sourceTool) textSize() int { return len(d.Description) + len(d.InputSchema) }

// find gives the place of a tool by its name.
func (l *offeredList) find(name string) (at int, ok bool) {
	return sort.Find(len(l.tools), func(i int) int { return strings.Compare(name, l.tools[i].Name) })
}

// rank gives the index over the native tools and, behind them, those of a list.
func (t *toolbox) rank(list *offeredList) *rankIndex {
	t.mu.Lock()
	defer t.mu.Unlock()
	if list.index == nil {
		list.index = t.newIndex(list.tools)
	}
	return list.index
}

// newIndex reads the tools. Native ones take their family for a server.
func (t *toolbox) newIndex(bridged []sourceTool) *rankIndex {
	docs := make([]rankDoc, 0, len(t.tools)+len(bridged))
	for _, tl := range t.tools {
		docs = append(docs, rankDoc{Server: tl.Family, Name: tl.Name, Description: tl.Description, Schema: tl.Schema})
	}
	for _, d := range bridged {
		docs = append(docs, rankDoc{Server: d.Server, Name: d.Tool, Alias: d.Name, Description: d.Description, Schema: d.InputSchema})
	}
	return newRankIndex(docs)
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
		return nil, 0, errorf("list bridged tools: %w", err)
	}
	natives := len(t.tools)
	tool := func(doc int) (name, server string) {
		if doc < natives {
			return t.tools[doc].Name, t.tools[doc].Family
		}
		return bridged.tools[doc-natives].Name, bridged.tools[doc-natives].Server
	}
	known := q.Server == ""
	hits, fit := t.rank(bridged).look(readMessage(q.Words, true)).top(q.Limit, func(doc int) bool {
		name, server := tool(doc)
		here := q.Server == "" || server == q.Server
		known = known || here
		return here && name != q.Except
	})
	if !known {
		return nil, 0, errorf("%w: no tool is offered of a server %s", errNotFound, quoteClip(q.Server))
	}
	var foreign []sourceTool
	for _, h := range hits {
		if h.Doc >= natives {
			foreign = append(foreign, bridged.tools[h.Doc-natives])
		}
	}
	if foreign, err = t.whole(ctx, bridged, foreign); err != nil {
		return nil, 0, err
	}
	for _, h := range hits {
		name, _ := tool(h.Doc)
		if h.Doc < natives {
			found = append(found, foundTool{sourceTool{toolDef: t.defs[h.Doc]}, h.Score})
		} else if len(foreign) > 0 && foreign[0].Name == name { // they are in the order of the hits
			found, foreign = append(found, foundTool{foreign[0], h.Score}), foreign[1:]
		}
	}
	return found, fit, nil
}

// named gives the definitions of tools by their names; those that are not there are left out.
func (t *toolbox) named(ctx context.Context, names []string) ([]toolDef, error) {
	bridged, err := t.bridged(ctx)
	var foreign []sourceTool
	for _, name := range names {
		if at, ok := bridged.find(name); ok {
			foreign = append(foreign, bridged.tools[at])
		}
	}
	foreign, fault := t.whole(ctx, bridged, foreign)
	var out []toolDef
	for _, name := range names {
		if i := slices.IndexFunc(t.defs, func(d toolDef) bool { return d.Name == name }); i >= 0 {
			out = append(out, t.defs[i])
		} else if i := slices.IndexFunc(foreign, func(d sourceTool) bool { return d.Name == name }); i >= 0 {
			out = append(out, foreign[i].toolDef)
		}
	}
	return out, joinErrors(err, fault)
}
