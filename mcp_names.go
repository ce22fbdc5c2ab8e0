// This file owns the names under which bridged tools are offered to a model, and the map back. A name is never taken apart.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

const (
	bridgedNameMax    = 64     // characters; what the narrowest model API takes
	bridgedNamePrefix = "mcp_" // no native tool but the mcp_* commands starts so
	bridgedHashDigits = 6      // hex digits of SHA-256(server NUL tool) at the end of a name that cannot stand alone
)

// toolRef is the address of one tool: its server and its own name there, byte for byte.
type toolRef struct{ Server, Tool string }

// bridgedNames gives each tool its bridged name and the way back. A name is mcp_<server>_<tool> cleaned to [a-z0-9_]; one that
// is too long, loses a whole part to the cleaning, or would be shared, ends in hex digits of its own address instead, so that it
// does not depend on which other tools there are. Of several tools that share a name only one that needed no cleaning may keep
// it. taken holds the native names, which win.
func bridgedNames(refs []toolRef, taken func(string) bool) (names map[toolRef]string, back map[string]toolRef) {
	refs = slices.Clone(refs)
	sortBy(refs, func(a, b toolRef) int {
		if c := strings.Compare(a.Server, b.Server); c != 0 {
			return c
		}
		return strings.Compare(a.Tool, b.Tool)
	})
	refs = slices.Compact(refs)
	groups := map[string][]toolRef{}
	for _, r := range refs {
		if name, ok := plainBridgedName(r); ok {
			groups[name] = append(groups[name], r)
		}
	}
	names, back = make(map[toolRef]string, len(refs)), make(map[string]toolRef, len(refs))
	put := func(r toolRef, name string) { names[r], back[name] = name, r }
	for name, group := range groups {
		if r, ok := keeper(group); ok && !taken(name) {
			put(r, name)
		}
	}
	for _, r := range refs {
		if names[r] != "" {
			continue
		}
		for digits := bridgedHashDigits; ; digits += 2 {
			name := hashedBridgedName(r, digits)
			if _, used := back[name]; !used && !taken(name) {
				put(r, name)
				break
			}
		}
	}
	return names, back
}

// keeper picks the one tool of a group that keeps the plain name: the only one, or the only one that needed no cleaning.
func keeper(group []toolRef) (toolRef, bool) {
	if len(group) == 1 {
		return group[0], true
	}
	var exact []toolRef
	for _, r := range group {
		if cleanName(r.Server) == r.Server && cleanName(r.Tool) == r.Tool {
			exact = append(exact, r)
		}
	}
	if len(exact) == 1 {
		return exact[0], true
	}
	return toolRef{}, false
}

// plainBridgedName gives the cleaned name, or false where it is too long or a part of it is lost.
func plainBridgedName(r toolRef) (string, bool) {
	server, tool := cleanName(r.Server), cleanName(r.Tool)
	name := bridgedNamePrefix + server + "_" + tool
	return name, len(name) <= bridgedNameMax && strings.Trim(server, "_") != "" && strings.Trim(tool, "_") != ""
}

func hashedBridgedName(r toolRef, digits int) string {
	sum := sha256.Sum256([]byte(r.Server + "\x00" + r.Tool))
	parts := []string{strings.TrimSuffix(bridgedNamePrefix, "_")}
	for _, p := range []string{cleanName(r.Server), cleanName(r.Tool)} {
		if p = strings.Trim(p, "_"); p != "" {
			parts = append(parts, p)
		}
	}
	head := strings.Join(parts, "_")
	if room := bridgedNameMax - 1 - digits; len(head) > room {
		head = head[:room]
	}
	return head + "_" + hex.EncodeToString(sum[:])[:digits]
}

// cleanName lower-cases ASCII letters and turns every character outside [a-z0-9_] into one underscore.
func cleanName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, s)
}
