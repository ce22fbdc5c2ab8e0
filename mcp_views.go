// This file gives MCP servers and their tools the form in which lists show them, to a person as to a model. It decides nothing.
package main

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// What a stored server is for a profile.
const (
	statusEnabled  = "enabled"
	statusDisabled = "disabled"
	statusLogin    = "login"
)

// serverSummary is one stored server in a list. Values of variables and headers are never part of it.
type serverSummary struct {
	Name      string    `json:"name"`
	Transport string    `json:"transport"`
	Command   string    `json:"command,omitempty"`
	Args      []string  `json:"args,omitempty"`
	URL       string    `json:"url,omitempty"`
	Env       []string  `json:"envNames,omitempty"`
	Headers   []string  `json:"headerNames,omitempty"`
	Profiles  []string  `json:"profiles"`
	Tools     int       `json:"tools"`
	Withheld  int       `json:"withheld,omitempty"`
	State     string    `json:"state"`            // enabled, disabled or login, for the profile at hand
	Lost      []string  `json:"lost,omitempty"`   // env, headers: given up with a seal that nothing opens
	Logins    []string  `json:"logins,omitempty"` // profiles that hold tokens of a login there
	Source    string    `json:"source"`
	Created   time.Time `json:"created"`
}

// summarize lays out a row for a profile; login says that the server waits for one.
func summarize(row serverRow, tools []toolRow, profile string, login bool) serverSummary {
	s := serverSummary{Name: row.Name, Transport: row.Transport, Command: row.Command, Args: maskedEntry(row.serverEntry).Args, URL: row.URL,
		Env: slices.Sorted(maps.Keys(row.Env)), Headers: slices.Sorted(maps.Keys(row.Headers)), Profiles: []string{},
		Tools: len(tools), Source: row.Source, Created: row.Created, State: statusDisabled}
	for p, on := range row.Profiles {
		if on {
			s.Profiles = append(s.Profiles, p)
		}
	}
	slices.Sort(s.Profiles)
	for _, t := range tools {
		if t.Hash == "" {
			s.Withheld++
		}
	}
	switch {
	case row.Profiles[profile]:
		s.State = statusEnabled
	case login:
		s.State = statusLogin
	}
	return s
}

// toolView is one tool in a list: tool is its own name, name the bridged one.
type toolView struct {
	Server      string          `json:"server"`
	Tool        string          `json:"tool"`
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"` // as the server sent it
	Annotations json.RawMessage `json:"annotations,omitempty"`
	State       toolState       `json:"state"`
	Reason      string          `json:"reason,omitempty"`
}

// toolViews lays out lists, server by server in the order of rows.
func toolViews(rows []serverRow, lists map[string][]listedTool, taken func(string) bool) []toolView {
	var refs []toolRef
	for _, row := range rows {
		for _, t := range lists[row.Name] {
			refs = append(refs, toolRef{row.Name, t.Name})
		}
	}
	names, _ := bridgedNames(refs, taken)
	out := []toolView{}
	for _, row := range rows {
		for _, t := range lists[row.Name] {
			v := toolView{Server: row.Name, Tool: t.Name, Name: names[toolRef{row.Name, t.Name}], Title: t.Title, Description: t.Description,
				InputSchema: sentSchema(t.toolDef), Annotations: t.Annotations, State: t.State, Reason: t.Reason}
			if checkJSON(v.InputSchema) != nil {
				v.InputSchema = json.RawMessage("null")
			}
			if checkJSON(v.Annotations) != nil {
				v.Annotations = nil
			}
			out = append(out, v)
		}
	}
	return out
}
