// This file finds the servers in a document that was read: the known keys, lists, gates, bare entries and maps further
// down. It builds the whole result, so that one unusable entry never sinks the others.
package main

import (
	"fmt"
	"slices"
	"strings"
)

// serverMapKeys are the keys under which clients keep their servers.
//
//go:noinline for size: it is called in many places
func serverMapKeys() []string {
	return []string{"mcpServers", "servers", "context_servers", "mcp_servers"}
}

// isServerMapKey reports such a key, or a settings key whose last dotted part is one.
//
//go:noinline for size: it is called in many places
func isServerMapKey(key string) bool {
	return slices.Contains(serverMapKeys(), key[strings.LastIndexByte(key, '.')+1:])
}

// confSlot is one entry on its way into the result.
type confSlot struct {
	name  string // "" when there is none yet
	place string // how messages call it before it has a name
	entry serverEntry
	err   error
	rep   *confReport
}

// confBuilder gathers entries from one or several documents.
type confBuilder struct {
	goos, source, name string // name is the caller's, for an entry without one
	rep                *confReport
	slots              []confSlot
	index              map[string]int // slots by name
	derived            map[string]int // how often a name was derived
}

//go:noinline for size: it is called in many places
func newConfBuilder(goos, source, name string, rep *confReport) *confBuilder {
	return &confBuilder{goos: goos, source: source, name: name, rep: rep, index: map[string]int{}, derived: map[string]int{}}
}

// put adds an entry. Of two with the same name the last one counts, with a warning; names that were only derived are told
// apart by a number.
func (b *confBuilder) put(s confSlot) {
	if i, ok := b.index[s.name]; ok && s.name != "" {
		b.rep.warn("server %s is given more than once; the last one counts", confQuote(s.name))
		b.slots[i] = s
		return
	}
	if s.name != "" {
		b.index[s.name] = len(b.slots)
	}
	b.slots = append(b.slots, s)
}

// read reads an entry that stands under a name, or without one at some place of a list.
func (b *confBuilder) read(name, place string, named bool, n confNode) {
	s := confSlot{place: place, rep: &confReport{}}
	if named {
		s.name = strings.TrimFunc(name, isBlank)
		if s.err = goodServerName(s.name); s.err != nil {
			b.slots = append(b.slots, confSlot{place: place + ", " + confQuote(s.name), err: s.err, rep: s.rep})
			return
		}
		s.place = "server " + confQuote(s.name)
		if s.name != name {
			s.rep.note("white space around the name was cut off")
		}
	}
	if s.entry, s.err = readEntry(n, b.source, s.rep); s.err == nil && !named {
		s.name, s.err = b.derive(s.entry, s.rep)
	}
	b.put(s)
}

// derive names an entry after what it runs.
func (b *confBuilder) derive(e serverEntry, rep *confReport) (string, error) {
	name := strings.TrimSpace(entryNameFrom(e))
	if name == "" {
		return "", newError("it has no name and what it runs gives none: give it a name")
	}
	if err := goodServerName(name); err != nil {
		return "", errorf("it has no name and what it runs gives none: %w", err)
	}
	unique := name
	for {
		b.derived[name]++
		if n := b.derived[name]; n > 1 {
			unique = fmt.Sprintf("%s-%d", name, n)
		}
		if _, taken := b.index[unique]; !taken {
			break
		}
	}
	rep.note("it had no name and is called %s after what it runs", confQuote(unique))
	return unique, nil
}

// single adds the one entry of a document: it is named by the caller, by itself, or by what it runs.
func (b *confBuilder) single(own string, e serverEntry, err error, rep *confReport) {
	s := confSlot{place: "the entry", entry: e, err: err, rep: rep}
	if own = strings.TrimFunc(own, isBlank); b.name != "" {
		own = b.name
	}
	if s.name = own; own != "" {
		s.place = "server " + confQuote(own)
		if bad := goodServerName(own); bad != nil {
			s.name, s.err = "", bad
		}
	} else if err == nil {
		s.name, s.err = b.derive(e, rep)
	}
	b.put(s)
}

// result finishes the entries. Without a usable one the error holds every name and reason.
func (b *confBuilder) result() ([]serverEntry, error) {
	var servers []serverEntry
	var reasons []string
	for _, s := range b.slots {
		if s.err != nil {
			reasons = append(reasons, fmt.Sprintf("%s: %v", s.place, s.err))
			continue
		}
		s.entry.Name = s.name
		s.entry = finishEntry(s.entry, b.goos, s.rep)
		b.rep.add("server "+confQuote(s.name)+": ", s.rep)
		servers = append(servers, s.entry)
	}
	if len(servers) == 0 {
		return nil, newError("no server can be used: " + strings.Join(reasons, "; "))
	}
	for _, reason := range reasons {
		b.rep.warn("left out: %s", reason)
	}
	b.overall(servers)
	return servers, nil
}

// overall warns about what only shows over all entries.
func (b *confBuilder) overall(servers []serverEntry) {
	if len(servers) > mcpMaxServers {
		b.rep.warn("%d servers were read, but at most %d can be registered", len(servers), mcpMaxServers)
	}
	byPrefix := map[string][]string{}
	for _, e := range servers {
		p := toolPrefix(e.Name)
		byPrefix[p] = append(byPrefix[p], confQuote(e.Name))
	}
	for _, e := range servers {
		p := toolPrefix(e.Name)
		if names := byPrefix[p]; len(names) > 1 {
			b.rep.warn("the names %s give their tools the same prefix mcp_%s_", strings.Join(names, ", "), clip(p, 100))
		}
		delete(byPrefix, p)
	}
}

// looksLikeEntry reports an object that starts or dials something: it has a command or an address, itself or in transport.
func looksLikeEntry(n confNode) bool {
	for _, m := range n.items {
		if n.kind != confMap {
			return false
		}
		switch foldKey(m.key) {
		case "command":
			if _, path := m.node.get("path"); m.node.kind == confText || m.node.kind == confList || path {
				return true
			}
		case "url", "server_url", "http_url", "base_url":
			if m.node.kind == confText || m.node.kind == confList {
				return true
			}
		case "transport":
			if m.node.kind == confMap && looksLikeEntry(m.node) {
				return true
			}
		}
	}
	return false
}

//go:noinline for size: it is called in many places
func hasEntries(n confNode) bool {
	return slices.ContainsFunc(n.items, func(m confMember) bool { return looksLikeEntry(m.node) })
}

// confPlace is a server map and where it was found.
type confPlace struct {
	path string
	node confNode
}

// document adds the servers of one JSON document.
func (b *confBuilder) document(n confNode) error {
	if n.kind == confList {
		return b.servers(confPlace{"the list", n})
	}
	for _, key := range []string{"openapi", "swagger"} {
		if v, ok := n.get(key); ok && v.kind != confMap {
			return newError("this is an OpenAPI document, not the configuration of MCP servers")
		}
	}
	if places := topMaps(n); len(places) > 0 {
		return b.maps(places, readGate(n))
	}
	inner := nestedMaps(n)
	switch {
	case isRegistryFile(n):
		rep := &confReport{}
		e, name, err := readRegistry(n, b.source, rep)
		b.single(name, e, err, rep)
	case looksLikeEntry(n):
		b.bare(n)
	case isPackageFile(n, hasEntries(n)):
		rep := &confReport{}
		e, name, err := readPackage(n, b.source, rep)
		b.single(name, e, err, rep)
	case isPlainMap(n, len(inner) > 0):
		b.plainMap(n)
	case len(inner) > 0:
		err := b.maps(inner, confGate{})
		if err == nil {
			b.rep.note("the servers were found further down, under %s", placeList(without(inner, func(p confPlace) bool { return len(p.node.items) == 0 })))
		}
		return err
	default:
		return errorf("no MCP servers were found (looked for %s); the keys are: %s", strings.Join(serverMapKeys(), ", "), keyList(n))
	}
	return nil
}

func keyList(n confNode) string {
	var keys []string
	for i, m := range n.items {
		if i == 30 {
			keys = append(keys, fmt.Sprintf("and %d more", len(n.items)-i))
			break
		}
		keys = append(keys, confClip(m.key, 100))
	}
	if len(keys) == 0 {
		return "none, it is empty"
	}
	return strings.Join(keys, ", ")
}

// bare adds the document itself as one entry.
func (b *confBuilder) bare(n confNode) {
	rep := &confReport{}
	e, err := readEntry(n, b.source, rep)
	own, _ := n.get("name")
	if own.kind != confText && own.kind != confNull && err == nil {
		err = errorf("its name must be text, not %s", own.kind)
	}
	b.single(own.text, e, err, rep)
}

// isPlainMap reports a map of names to entries. Where other things stand among them, as in a settings file, an address
// alone makes no entry (it may be a repository or a proxy), and a server map further down is the better find.
func isPlainMap(n confNode, further bool) bool {
	entries, commands, others := 0, 0, 0
	for _, m := range n.items {
		_, command := m.node.get("command")
		switch {
		case looksLikeEntry(m.node) && command:
			commands++
			entries++
		case looksLikeEntry(m.node):
			entries++
		case !besideEntries(m.key):
			others++
		}
	}
	return entries > 0 && (others == 0 || !further && (commands > 0 || entries >= others))
}

func besideEntries(key string) bool {
	return key == "inputs" || strings.HasPrefix(key, "$") || strings.HasPrefix(key, "_")
}

func (b *confBuilder) plainMap(n confNode) {
	for i, m := range n.items {
		if besideEntries(m.key) && !looksLikeEntry(m.node) {
			b.rep.note("%s is no server and is ignored", confClip(m.key, 200))
			continue
		}
		b.read(m.key, fmt.Sprintf("entry %d", i+1), true, m.node)
	}
}

// maps adds the servers of all places, and switches off what the gate shuts out.
func (b *confBuilder) maps(places []confPlace, g confGate) error {
	from := len(b.slots)
	full := without(places, func(p confPlace) bool { return len(p.node.items) == 0 })
	if len(full) == 0 {
		return errorf("%s is empty: it holds no server", placeList(places))
	}
	if slices.ContainsFunc(full, func(p confPlace) bool { return p.path != full[0].path }) {
		b.rep.note("servers were read from several keys together: %s", placeList(full))
	}
	for _, p := range places {
		if err := b.servers(p); err != nil {
			return err
		}
	}
	for i := range b.slots[from:] {
		s := &b.slots[from+i]
		if s.err == nil && g.shuts(s.name) {
			off := false
			s.entry.Enabled = &off
			s.rep.note("it is switched off by mcp.allowed or mcp.excluded")
		}
	}
	return nil
}

// placeList names the places of a document, each once.
func placeList(places []confPlace) string {
	var names []string
	seen := map[string]bool{}
	for i, p := range places {
		if len(names) == 20 {
			names = append(names, fmt.Sprintf("and %d more", len(places)-i))
			break
		}
		if !seen[p.path] {
			seen[p.path] = true
			names = append(names, p.path)
		}
	}
	return strings.Join(names, ", ")
}

// servers adds the entries of one server map, an object or a list.
func (b *confBuilder) servers(p confPlace) error {
	if looksLikeEntry(p.node) {
		return errorf("an entry stands right under %s: a name is missing around it", p.path)
	}
	for _, unnamed := range []bool{false, true} { // names given go first, so that derived ones make way
		for i, m := range p.node.items {
			name := m.key
			if p.node.kind == confList {
				if name = listName(m.node); name == "" && len(p.node.items) == 1 {
					name = b.name
				}
			}
			if (p.node.kind == confList && name == "") == unnamed {
				b.read(name, fmt.Sprintf("entry %d of %s", i+1, p.path), !unnamed, m.node)
			}
		}
	}
	return nil
}

// listName is the name of an entry in a list.
func listName(n confNode) string {
	for _, key := range []string{"name", "key", "id"} {
		if s, ok := scalarOf(n.get(key)); ok && strings.TrimFunc(s, isBlank) != "" {
			return s
		}
	}
	return ""
}

// topMaps finds the server maps at the top of a document, every copy of them.
func topMaps(n confNode) []confPlace {
	var out []confPlace
	for _, m := range n.items {
		switch {
		case m.node.kind != confMap && m.node.kind != confList:
		case slices.Contains(serverMapKeys(), m.key), isServerMapKey(m.key) && !looksLikeEntry(m.node):
			out = append(out, confPlace{confShow(m.key), m.node})
		case m.node.kind == confMap && (m.key == "mcp" || strings.HasSuffix(m.key, ".mcp")) && !looksLikeEntry(m.node):
			out = append(out, mcpMaps(confShow(m.key), m.node)...)
		}
	}
	return out
}

// mcpMaps finds the servers inside an mcp key: in a server map there, or as its own members.
func mcpMaps(path string, n confNode) []confPlace {
	var out []confPlace
	for _, inner := range n.items {
		if slices.Contains(serverMapKeys(), inner.key) && (inner.node.kind == confMap || inner.node.kind == confList) && !looksLikeEntry(inner.node) {
			out = append(out, confPlace{path + "." + inner.key, inner.node})
		}
	}
	if len(out) > 0 || !hasEntries(n) {
		return out
	}
	entries := confNode{kind: confMap, line: n.line}
	for _, inner := range n.items {
		if looksLikeEntry(inner.node) || inner.node.kind == confMap {
			entries.items = append(entries.items, inner)
		}
	}
	return []confPlace{{path, entries}}
}

// nestedMaps finds the server maps below the top, every one of them, and does not look inside those.
func nestedMaps(n confNode) []confPlace {
	var out []confPlace
	var walk func(n confNode, path string)
	walk = func(n confNode, path string) {
		for i, m := range n.items {
			if m.node.kind != confMap && m.node.kind != confList {
				continue
			}
			key := m.key
			if n.kind == confList {
				key = fmt.Sprintf("[%d]", i)
			}
			at := confPlace{confClip(strings.TrimPrefix(path+"."+key, "."), 1000), m.node}
			switch named := isServerMapKey(m.key); {
			case named && (len(m.node.items) == 0 || hasEntries(m.node) || !strings.HasSuffix(m.key, "servers") || strings.HasSuffix(m.key, "_servers")) && !looksLikeEntry(m.node):
				out = append(out, at)
			case m.key == "mcp" && hasEntries(m.node) && m.node.kind == confMap:
				out = append(out, mcpMaps(at.path, m.node)...)
			default:
				walk(m.node, at.path)
			}
		}
	}
	walk(n, "")
	return out
}

// confGate is mcp.allowed and mcp.excluded: which servers may be on.
type confGate struct {
	allowed  map[string]bool // nil: all
	excluded map[string]bool
}

func (g confGate) shuts(name string) bool {
	return g.excluded[name] || g.allowed != nil && !g.allowed[name]
}

func readGate(n confNode) confGate {
	var g confGate
	read := func(v confNode, ok bool) map[string]bool {
		if !ok || v.kind != confList {
			return nil
		}
		out := map[string]bool{}
		for _, m := range v.items {
			out[strings.TrimFunc(m.node.text, isBlank)] = true
		}
		return out
	}
	mcp, _ := n.get("mcp")
	if g.allowed = read(mcp.get("allowed")); g.allowed == nil {
		g.allowed = read(n.get("mcp.allowed"))
	}
	if g.excluded = read(mcp.get("excluded")); g.excluded == nil {
		g.excluded = read(n.get("mcp.excluded"))
	}
	return g
}

// warnDuplicates says which keys stand more than once in an object: copies of a server map are joined, of any other key
// the last one counts. Names of servers are left to put, which sees all copies of a map.
func warnDuplicates(docs []confNode, rep *confReport) {
	d := &duplicates{rep: rep, left: 100} // more messages is no paste of a person
	for _, doc := range docs {
		d.walk(doc, false)
	}
	if d.left == 0 {
		rep.warn("further keys may be given more than once; of each the last one counts")
	}
}

type duplicates struct {
	rep  *confReport
	path []string
	left int
}

// walk looks into n; inMap is true below a server map.
func (d *duplicates) walk(n confNode, inMap bool) {
	var seen map[string]bool
	if n.kind == confMap {
		seen = make(map[string]bool, len(n.items))
	}
	for _, m := range n.items {
		key := m.key
		if n.kind == confList { // messages about an entry hold its name
			key = listName(m.node)
		}
		d.path = append(d.path, key)
		if seen[m.key] && d.left > 0 {
			what := "the last one counts"
			if !inMap && (isServerMapKey(m.key) || m.key == "mcp") {
				what = "the copies are joined"
			}
			d.rep.warn("%s is given more than once (again in line %d); %s", d.where(), m.node.line, what)
			d.left--
		}
		if n.kind == confMap {
			seen[m.key] = true
		}
		if m.node.kind >= confList {
			d.walk(m.node, inMap || n.kind == confMap && isServerMapKey(m.key))
		}
		d.path = d.path[:len(d.path)-1]
	}
}

func (d *duplicates) where() string {
	var parts []string
	for _, p := range d.path {
		if p != "" {
			parts = append(parts, confClip(p, 200))
		}
	}
	return strings.Join(parts, ".")
}
