// This file owns the pins: what of a tool was approved, whether the live one is still that, and what the difference is. It
// stores nothing and asks nobody.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
)

// pinHash is SHA-256, in hex, over the canonical JSON (numbers as written) of what a person approves in a tool: name,
// description, input schema as the server sent it, and which server it is. A tool with a fault has no pin.
func pinHash(identity json.RawMessage, t toolDef) (string, error) {
	b := append([]byte(nil), `{"server":`...)
	b = append(b, identity...)
	b = appendJSONString(append(b, `,"name":`...), t.Name)
	b = appendJSONString(append(b, `,"description":`...), t.Description)
	if schema := sentSchema(t); schema != nil {
		b = append(append(b, `,"inputSchema":`...), schema...)
	}
	canonical, err := canonicalKeep(append(b, '}'))
	if err != nil {
		return "", errorf("pin tool %s: %w", quoteClip(t.Name), err)
	}
	return sha256Hex(canonical), nil
}

// sentSchema gives the input schema byte for byte as the server sent it, also where it was repaired for use.
func sentSchema(t toolDef) json.RawMessage {
	if t.InputSchema != nil {
		return t.InputSchema
	}
	members, err := jsonObject(t.Raw)
	if err != nil {
		return nil
	}
	for _, m := range members {
		if m.Key == "inputSchema" {
			return m.Value
		}
	}
	return nil
}

// serverIdentity says which server a pin belongs to: the command with its arguments as stored, or the address without query.
func serverIdentity(e serverEntry) json.RawMessage {
	if e.Transport == "http" {
		where := e.URL
		if u, err := url.Parse(e.URL); err == nil && u.Host != "" {
			where = u.Scheme + "://" + u.Host + u.EscapedPath()
		}
		return append(appendJSONString([]byte(`{"url":`), where), '}')
	}
	b := []byte(`{"argv":[`)
	for i, a := range slices.Concat([]string{e.Command}, e.Args) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSONString(b, a)
	}
	return append(b, "]}"...)
}

// toolState is what may be done with a listed tool.
type toolState string

const (
	stateGranted  toolState = "granted"  // pinned as it is: offered
	stateWithheld toolState = "withheld" // new or changed since the grant: not offered before a grant
	stateDenied   toolState = "denied"   // shut out by the entry's allow or deny list, or by the trust file
	stateOverCap  toolState = "over-cap" // beyond mcpMaxTools: listed, not offered
	stateUnusable toolState = "unusable" // with a fault
)

// reasonNew is why a tool without a pin is withheld.
const reasonNew = "it is new since the last grant"

// listedTool is one tool of a live list, judged against the pins.
type listedTool struct {
	toolDef
	State  toolState
	Reason string // why it is not granted
	Hash   string // of its live form; "" with a fault
	Was    *toolRow
}

// judgeTools sorts a live list by pins (tool to hash), the granted texts and the entry's own lists; trust and the cap are left to settle. The
// answer keeps the order of the list; removed names the pinned tools that are no longer there.
func judgeTools(e serverEntry, list []toolDef, granted []toolRow) (tools []listedTool, removed []string) {
	identity := serverIdentity(e)
	was := make(map[string]*toolRow, len(granted))
	for i := range granted {
		was[granted[i].Tool] = &granted[i]
	}
	live := make(map[string]bool, len(list))
	tools = make([]listedTool, 0, len(list))
	for _, def := range list {
		t := judgeTool(e, identity, def, was[def.Name])
		if def.Name != "" {
			live[def.Name] = true
		}
		tools = append(tools, t)
	}
	for _, row := range granted {
		if !live[row.Tool] {
			removed = append(removed, row.Tool)
		}
	}
	return tools, removed
}

func judgeTool(e serverEntry, identity json.RawMessage, def toolDef, was *toolRow) listedTool {
	t := listedTool{toolDef: def, State: stateGranted, Was: was}
	if t.Fault == "" {
		t.Fault = schemaFault(def)
	}
	if t.Fault == "" {
		hash, err := pinHash(identity, def)
		if err != nil {
			t.Fault = err.Error()
		}
		t.Hash = hash
	}
	switch {
	case t.Fault != "":
		t.State, t.Reason = stateUnusable, t.Fault
	case was == nil || was.Hash == "":
		t.State, t.Reason = stateWithheld, reasonNew
	case was.Hash != t.Hash:
		t.State, t.Reason = stateWithheld, "it changed since the last grant"
	default:
		t.judgeLists(e)
	}
	return t
}

// judgeCap counts a granted tool among those offered and keeps it from being the one too many.
func (t *listedTool) judgeCap(offered *int) {
	if t.State != stateGranted {
		return
	}
	if *offered++; *offered > mcpMaxTools {
		t.State, t.Reason = stateOverCap, fmt.Sprintf("only the first %d tools of a server are offered", mcpMaxTools)
	}
}

// judgeLists shuts a granted tool out by the entry's own lists; deny wins.
func (t *listedTool) judgeLists(e serverEntry) {
	switch {
	case slices.Contains(e.Deny, t.Name):
		t.State, t.Reason = stateDenied, "it is on the entry's deny list"
	case len(e.Allow) > 0 && !slices.Contains(e.Allow, t.Name):
		t.State, t.Reason = stateDenied, "it is not on the entry's allow list"
	}
}

// schemaFault says why a tool with this schema cannot be offered: a dialect tai does not know (W29), or a schema that is broken.
func schemaFault(def toolDef) string {
	if def.InputSchema == nil {
		return ""
	}
	if err := schemaDialect(def.InputSchema); err != nil {
		return err.Error()
	}
	if err := rootIsObject(def.InputSchema); err != nil {
		return err.Error()
	}
	return ""
}

// rootIsObject refuses a schema whose arguments could never be an object.
func rootIsObject(schema json.RawMessage) error {
	members, err := jsonObject(schema)
	if err != nil {
		return errorf("its schema is %w", err)
	}
	for _, m := range members {
		if m.Key != "type" || string(m.Value) == `"object"` {
			continue
		}
		if types, err := jsonArray(m.Value); err == nil && slices.ContainsFunc(types, func(t json.RawMessage) bool { return string(t) == `"object"` }) {
			continue
		}
		return errorf("its inputSchema has type %s, and arguments are an object", clip(visibleLine(string(m.Value)), 40))
	}
	return nil
}

// dropSecretNames makes those tools unusable whose name holds a secret: a name cannot be masked, and must be kept and said nowhere.
//
//go:noinline for size: it is called in many places
func dropSecretNames(tools []listedTool, mask func(string) string) {
	for i := range tools {
		if t := &tools[i]; mask(t.Name) != t.Name {
			t.State, t.Reason = stateUnusable, "its name holds a secret"
		}
	}
}

// pinRow gives the row that a grant of t stores. A server may write a secret of its own into its texts, and the vault must not keep that in
// clear (R9): it is masked there, while the hash stays that of what was sent.
func (t listedTool) pinRow(mask func(string) string) toolRow {
	row := toolRow{Tool: t.Name, Description: mask(t.Description), Schema: sentSchema(t.toolDef), Hash: t.Hash}
	if len(row.Schema) > 0 {
		row.Schema = json.RawMessage(maskJSONStrings(string(row.Schema), mask))
	}
	return row
}

// toolDiff shows what changed in a tool since the grant, as lines that a person can read.
func (t listedTool) toolDiff() string {
	if t.Was == nil || t.Was.Hash == "" {
		return "new tool " + quoteClip(t.Name) + "\n" + diffText("", toolText(t.Description, sentSchema(t.toolDef)))
	}
	return "changed tool " + quoteClip(t.Name) + "\n" + diffText(toolText(t.Was.Description, t.Was.Schema), toolText(t.Description, sentSchema(t.toolDef)))
}

// toolText lays a description and a schema out in lines, so that a difference names the line it is in.
//
//go:noinline for size: it is called in many places
func toolText(description string, schema json.RawMessage) string {
	text := "description: " + description
	if len(schema) > 0 {
		text += "\nschema: " + indentJSON(schema)
	}
	return text
}

func indentJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}

// sameEntry compares what decides a connection; lists, source and the pasted switch do not.
func sameEntry(a, b serverEntry) bool {
	return a.Transport == b.Transport && a.Command == b.Command && slices.Equal(a.Args, b.Args) && a.Cwd == b.Cwd && a.URL == b.URL &&
		maps.Equal(a.Env, b.Env) && maps.Equal(a.Headers, b.Headers)
}
