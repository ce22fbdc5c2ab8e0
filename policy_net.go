// This file says what the policy makes of a call that goes to the network: to which host, how far it reaches, and which secrets go along. It judges by what a call
// says; what a name stands for is looked up by the tool, which asks again then.
package main

import (
	"encoding/json"
	"slices"
	"strings"
)

// netTouch is what a call wants of the network; Host "" is nothing.
type netTouch struct {
	Host    string // as hostKey gives it
	URL     string // the address in its one form
	Reach   netReach
	Secrets []string // names of what ${NAME} in it stands for, sorted
}

// asks says why mode prompt asks about it, "" if only the host counts and that is known.
func (n netTouch) asks(known bool) string {
	switch {
	case n.Host == "":
		return ""
	case len(n.Secrets) > 0:
		return "it sends " + strings.Join(n.Secrets, ", ") + " to " + visibleLine(n.Host)
	case known:
		return ""
	case n.Reach == reachLoopback:
		return visibleLine(n.Host) + " is this machine itself"
	}
	return visibleLine(n.Host) + " is new to this session"
}

// presetsCount reports whether an allow preset can cover it: it says nothing of this machine and of secrets.
func (n netTouch) presetsCount() bool { return n.Reach == reachPublic && len(n.Secrets) == 0 }

// secrets are the names as one word, for a grant.
func (n netTouch) secrets() string { return strings.Join(n.Secrets, " ") }

// scope is what a "yes for this session" covers.
func (n netTouch) scope() string {
	s := "this tool at " + visibleLine(n.Host) + " with any arguments, and reading from there"
	if len(n.Secrets) > 0 {
		s += ", with " + strings.Join(n.Secrets, ", ")
	}
	return s
}

// lasting is the glob that an allow preset for this host has.
func (n netTouch) lasting() string {
	scheme, rest, _ := strings.Cut(n.URL, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host + "/*"
}

// plainArgs are the arguments with the address in its one form, so that no spelling of it passes a deny.
func (n netTouch) plainArgs(args json.RawMessage) json.RawMessage {
	members, err := jsonObject(args)
	i := slices.IndexFunc(members, func(m jsonMember) bool { return m.Key == "url" })
	if err != nil || i < 0 || n.URL == "" {
		return args
	}
	members[i].Value = appendJSONString(nil, n.URL)
	return appendMembers(nil, members)
}
