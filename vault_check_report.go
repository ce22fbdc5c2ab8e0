// This file owns what a check of the vault says: findings, sizes and the verdict. It looks at nothing itself.
package main

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// How bad a finding is. A note alone leaves a vault fine.
const (
	findError   = "error"   // something is lost, wrong or open to others who could change it
	findWarning = "warning" // something is left over, or open to others who could read it
	findNote    = "note"
)

// What a check comes to.
const (
	vaultFine       = "fine"
	vaultProblems   = "problems"
	vaultNone       = "none"       // no vault is there
	vaultDamaged    = "damaged"    // it cannot be read as a whole
	vaultForeign    = "foreign"    // it is no vault of tai's
	vaultNewer      = "newer"      // of a newer tai
	vaultUnreadable = "unreadable" // it could not be opened
)

const (
	findNamesMax  = 3   // things that one finding names
	findFaultsMax = 100 // faults of the file that a check lists
)

// vaultFinding is one thing that a check found. Count is how many things it is about, Do what to do about it, "" where there is nothing.
type vaultFinding struct {
	Section string `json:"section"` // file, schema, permissions, seal, rows, runs
	Level   string `json:"level"`
	What    string `json:"what"`
	Count   int    `json:"count"`
	Do      string `json:"do"`
	mend    mending
}

// mending is what --repair would do about a finding. Path and Mode are those of a file.
type mending struct {
	Kind string // mendRows, mendPages, mendMode, mendLeftover; "" where it can do nothing
	Path string
	Mode fs.FileMode
}

const (
	mendRows     = "rows"     // drop, or index anew
	mendPages    = "pages"    // rewrite the file without free pages
	mendMode     = "mode"     // close a file to other users
	mendLeftover = "leftover" // remove an unfinished file
)

// repairHint is the way out of what --repair mends.
const repairHint = "tai vault check --repair"

// tableSize is what one table takes with its indexes, in bytes of whole pages.
type tableSize struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// sealReport says how the sealed values did. Opened counts those that could be opened.
type sealReport struct {
	Kind    string `json:"kind"` // key-file, passphrase, off
	KeyFile string `json:"key_file"`
	Values  int    `json:"values"` // that are sealed, or would be
	Opened  int    `json:"opened"`
}

// vaultReport is the outcome of a check. Sizes are in bytes.
type vaultReport struct {
	Vault    string         `json:"vault"`
	State    string         `json:"state"`
	Schema   int            `json:"schema"`
	Newest   int            `json:"newest_schema"` // that this tai knows
	Seal     sealReport     `json:"seal"`
	Bytes    int64          `json:"bytes"`
	Free     int64          `json:"free_bytes"`
	Journal  int64          `json:"journal_bytes"`
	Tables   []tableSize    `json:"tables"`
	Problems []vaultFinding `json:"problems"`
}

// add notes one finding about count things.
//
//go:noinline for size: it is called in many places
func (r *vaultReport) add(section, level string, count int, do, format string, args ...any) {
	r.Problems = append(r.Problems, vaultFinding{section, level, fmt.Sprintf(format, args...), count, do, mending{}})
}

// canMend says of the last finding what --repair would do about it.
//
//go:noinline for size: it is called in many places
func (r *vaultReport) canMend(m mending) { r.Problems[len(r.Problems)-1].mend = m }

// repairs are the findings that --repair can do something about.
func (r *vaultReport) repairs() []vaultFinding {
	return without(r.Problems, func(f vaultFinding) bool { return f.mend.Kind == "" })
}

//go:noinline for size: it is called in many places
func (r *vaultReport) mends(kind string) bool {
	return slices.ContainsFunc(r.Problems, func(f vaultFinding) bool { return f.mend.Kind == kind })
}

// addFault notes a fault that kept a part of the check from being made.
//
//go:noinline for size: it is called in many places
func (r *vaultReport) addFault(section string, err error) {
	r.add(section, findError, 1, "", "%v", err)
}

// settle gives the verdict, the worst findings first.
func (r *vaultReport) settle() {
	order := []string{findError, findWarning, findNote}
	sortBy(r.Problems, func(a, b vaultFinding) int { return slices.Index(order, a.Level) - slices.Index(order, b.Level) })
	r.Tables, r.Problems = orEmpty(r.Tables), orEmpty(r.Problems)
	if r.State != "" {
		return
	}
	r.State = vaultFine
	if len(r.Problems) > 0 && r.Problems[0].Level != findNote {
		r.State = vaultProblems
	}
}

// fine reports that there is nothing to do.
func (r *vaultReport) fine() bool {
	return !slices.ContainsFunc(r.Problems, func(f vaultFinding) bool { return f.Level != findNote })
}

// findNames counts things and keeps the first names, each once.
type findNames struct {
	count int
	names []string
}

func (n *findNames) add(name string) {
	n.count++
	if name = visibleLine(clip(name, 60)); len(n.names) < findNamesMax && !slices.Contains(n.names, name) {
		n.names = append(n.names, name)
	}
}

// String lists the names, with an ellipsis where there may be more.
func (n *findNames) String() string {
	s := strings.Join(n.names, ", ")
	if n.count > len(n.names) {
		s += ", …"
	}
	return s
}
