// This file holds the native tools about secrets, and who uses a secret, for them and for tai secret. No argument carries a value and no answer
// shows one: it goes from where the person has it into the vault. It checks no value and asks for none itself.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	secretMax     = 64 << 10 // bytes of one secret's value
	secretListMax = 500      // secrets that secret_list gives
	secretHint    = "secret_list shows the names"
	secretPrompt  = "prompt" // where secret_set takes a value that the person types
)

// secretDesk is what the secret tools work with.
type secretDesk struct {
	vault   func(context.Context) (*vault, error)
	quiet   func(context.Context, *vault) bool                                          // the seal opens without asking anyone
	env     func(string) (string, bool)                                                 // the process environment
	hidden  func(ctx context.Context, prompt string) (string, error)                    // has the person type a value; nil where none sits
	store   func(ctx context.Context, name, value string) (state, warn string, e error) // checks a value and keeps it
	changed func()                                                                      // told when one was dropped
	guard   fileGuard
	goos    string
}

// secretJSON is a secret as commands and tools give it. Servers and Models are of ordinary secrets; Servers is nil where the seal would have to be
// opened for it.
type secretJSON struct {
	Name    string    `json:"name"`
	Profile string    `json:"profile"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Servers []string  `json:"servers,omitzero"`
	Models  []string  `json:"models,omitzero"`
}

func (s secretJSON) line() string {
	text := visibleLine(s.Name) + "  set " + s.Updated.Format(time.RFC3339)
	if users := userNames(s.Servers, s.Models); users != "" {
		text += "  used by " + users
	}
	return text
}

// userNames names servers and models in one line, "" where there are none.
func userNames(servers, models []string) string {
	names := slices.Clone(servers)
	for _, m := range models {
		names = append(names, m+" (model)")
	}
	return visibleLine(strings.Join(names, ", "))
}

// listSecrets gives all secrets and who uses them; the servers only with open.
func listSecrets(ctx context.Context, v *vault, open bool) ([]secretJSON, error) {
	list, err := v.secrets(ctx)
	if err != nil {
		return nil, err
	}
	models, err := secretModels(ctx, v)
	if err != nil {
		return nil, err
	}
	var servers map[string][]string
	if open {
		if servers, err = secretServers(ctx, v); err != nil {
			servers = nil // an entry that cannot be read hides no name
		}
	}
	out := []secretJSON{}
	for _, s := range list {
		row := secretJSON{Name: s.Name, Profile: s.Profile, Created: s.Created.UTC(), Updated: s.Updated.UTC()}
		if s.Profile == "" {
			row.Models = orEmpty(models[s.Name])
			if servers != nil {
				row.Servers = orEmpty(servers[s.Name])
			}
		}
		out = append(out, row)
	}
	return out, nil
}

// secretServers gives by the name of a secret the servers whose entries refer to it. It needs the seal's key.
func secretServers(ctx context.Context, v *vault) (map[string][]string, error) {
	rows, err := v.servers(ctx)
	if err != nil {
		return nil, err
	}
	users := map[string][]string{}
	for _, row := range rows {
		for _, ref := range entryReferences(row.serverEntry) {
			if !slices.Contains(users[ref.Name], row.Name) {
				users[ref.Name] = append(users[ref.Name], row.Name)
			}
		}
	}
	return users, nil
}

// secretModels gives by the name of a secret the models whose key it is.
func secretModels(ctx context.Context, v *vault) (map[string][]string, error) {
	list, err := v.models(ctx)
	users := map[string][]string{}
	for _, m := range list {
		name, named := strings.CutPrefix(m.Key, "secret:")
		if p, known := chatProviderOf(m.Provider); known && m.Key == "" && m.BaseURL == "" { // as modelFinder takes it, where no variable has a key
			name, named = p.keys[0], true
		}
		if named {
			users[name] = append(users[name], m.Name)
		}
	}
	return users, err
}

// dropSecret deletes an ordinary secret and says in a sentence who still uses it, "" for nobody.
func dropSecret(ctx context.Context, v *vault, name string) (users string, err error) {
	servers, err := secretServers(ctx, v)
	if err != nil && !errors.Is(err, errSealBroken) { // an entry that cannot be read stops no deletion
		return "", err
	}
	models, err := secretModels(ctx, v)
	if err != nil {
		return "", err
	}
	if err := v.deleteSecret(ctx, "", name); err != nil {
		return "", err
	}
	if users = userNames(servers[name], models[name]); users != "" {
		users = fmt.Sprintf("still used by %s; without a value for ${%s} they will not work", users, visibleLine(name))
	}
	return users, nil
}

// secretTools gives secret_list, secret_set and secret_delete.
func secretTools(d secretDesk) []tool {
	name := fmt.Sprintf(`"name":{"type":"string","minLength":1,"maxLength":%d,"description":"The secret's name: a letter or _, then letters, digits, _ . and -."}`, secretNameMax)
	named := `{"type":"object","properties":{"name":{"type":"string"},"state":{"type":"string","description":"stored, replaced or deleted."},"warning":{"type":"string"},` + toolRecordSchema + `}}`
	return []tool{{
		Name: "secret_list", Family: "secrets",
		Description: "List the names of stored secrets: when each was set and which servers and models use it. Never a value.",
		Schema:      json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{}}`),
		Output: json.RawMessage(`{"type":"object","properties":{
"secrets":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"profile":{"type":"string","description":"Empty but for tokens of a login."},"created":{"type":"string"},"updated":{"type":"string"},
"servers":{"type":"array","description":"Servers that refer to it; missing where the vault is locked.","items":{"type":"string"}},"models":{"type":"array","description":"Models whose key it is.","items":{"type":"string"}}}}},
"left_out":{"type":"integer","description":"Secrets that are not shown."},
` + toolRecordSchema + `}}`),
		Hints: toolHints{ReadOnly: true, Idempotent: true},
		run:   func(ctx context.Context, _ toolCall) (toolResult, error) { return d.list(ctx) },
	}, {
		Name: "secret_set", Family: "secrets",
		Description: "Store a secret such as an API key, token or password in the vault, to be used as ${NAME} by servers: from a hidden prompt on the person's terminal, an environment variable or a file. There is no argument for the value.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["name","from"],"properties":{` + name + `,
"from":{"type":"string","minLength":1,"maxLength":4200,"description":"Where the value is: prompt (the person types it, hidden), env:NAME or file:PATH (a file that only its owner can read); never the value itself."}}}`),
		Output: json.RawMessage(named),
		Hints:  toolHints{Destructive: true, Idempotent: true},
		judge:  d.judge,
		unattended: func(c toolCall) bool {
			from, _ := secretArg(c.Args, "from")
			return from == secretPrompt && (d.hidden == nil || c.served())
		},
		run: d.set,
	}, {
		Name: "secret_delete", Family: "secrets",
		Description: "Delete (forget) a secret such as a password, token or API key from the vault, and say which servers and models still refer to it.",
		Schema:      json.RawMessage(`{"type":"object","additionalProperties":false,"required":["name"],"properties":{` + name + `}}`),
		Output:      json.RawMessage(named),
		Hints:       toolHints{Destructive: true, Idempotent: true},
		judge:       func(toolCall) policyRequest { return policyRequest{Destructive: true, Exact: true} },
		run:         d.delete,
	}}
}

func (d secretDesk) list(ctx context.Context) (toolResult, error) {
	v, err := d.vault(ctx)
	if err != nil {
		return toolResult{}, err
	}
	open := d.quiet(ctx, v)
	list, err := listSecrets(ctx, v, open)
	if err != nil {
		return toolResult{}, err
	}
	left := max(0, len(list)-secretListMax)
	list = list[:len(list)-left]
	var text textBuilder
	for _, s := range list {
		text.WriteString(s.line() + "\n")
	}
	if len(list) == 0 {
		text.WriteString("no secrets are stored\n")
	}
	if left > 0 {
		fmt.Fprintf(&text, "[%d more are left out]\n", left)
	}
	if !open {
		text.WriteString("[which servers use them is not looked up while the vault asks for its passphrase]\n")
	}
	structured, err := json.Marshal(struct {
		Secrets []secretJSON `json:"secrets"`
		LeftOut int          `json:"left_out"`
	}{list, left})
	return toolResult{Text: text.String(), Structured: structured}, err
}

// secretArg reads a text argument of arguments that were not checked yet.
func secretArg(args json.RawMessage, key string) (string, bool) {
	members, err := jsonObject(args)
	if err != nil {
		return "", false
	}
	for _, m := range members {
		if m.Key == key {
			return jsonString(m.Value)
		}
	}
	return "", false
}

// judge says where a file lies that a value is taken from. A yes covers only the same name and source.
func (d secretDesk) judge(c toolCall) policyRequest {
	req := policyRequest{Destructive: true, Exact: true}
	from, _ := secretArg(c.Args, "from")
	if path, ok := strings.CutPrefix(from, "file:"); ok {
		req = judgePlace(d.guard.workspace, path, req)
	}
	return req
}

func (d secretDesk) set(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct{ Name, From string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	if err := validSecretName(args.Name); err != nil {
		return toolResult{}, errorf(`property "name": %w`, err)
	}
	value, err := d.value(ctx, args.Name, args.From, c.outside)
	if err != nil {
		return toolResult{}, err
	}
	state, warning, err := d.store(ctx, args.Name, value)
	if err != nil {
		var hint string
		if h, ok := errors.AsType[*hintedError](err); ok {
			hint = h.Hint
		}
		return toolResult{Hint: hint}, err
	}
	return secretResult(args.Name, state, warning, fmt.Sprintf("%s: %s; refer to it as ${%s}", args.Name, state, args.Name))
}

func secretResult(name, state, warning, text string) (toolResult, error) {
	if warning != "" {
		text += "\nwarning: " + warning
	}
	structured, err := json.Marshal(struct {
		Name    string `json:"name"`
		State   string `json:"state"`
		Warning string `json:"warning,omitempty"`
	}{name, state, warning})
	return toolResult{Text: text, Structured: structured}, err
}

// value takes the value from where from says. An error never repeats a from that is none of the forms: it may be the secret.
func (d secretDesk) value(ctx context.Context, name, from string, outside bool) (string, error) {
	kind, rest, _ := strings.Cut(from, ":")
	switch {
	case from == secretPrompt && d.hidden != nil:
		return d.hidden(ctx, "value of "+name+" (not shown): ")
	case kind == "env" && rest != "":
		value, ok := d.env(rest)
		if !ok {
			return "", errorf(`property "from": variable %s is not set where tai runs`, quoteClip(rest))
		}
		return value, nil
	case kind == "file" && rest != "":
		value, err := d.file(rest, outside)
		if err != nil {
			return "", errorf(`property "from": file %s: %w`, quoteClip(rest), err)
		}
		return value, nil
	}
	return "", newError(`property "from": expected prompt, env:NAME or file:PATH`)
}

// file reads a value from a file that nobody else can read, never one of tai's own. One line end at its end is cut.
func (d secretDesk) file(path string, outside bool) (string, error) {
	p, err := d.guard.workspace.locate(path)
	if err != nil {
		return "", err
	}
	if d.guard.check(p, false) != nil {
		return "", newError("tai's own files are there, and no secret is taken from them")
	}
	f, _, err := openFile(p, outside)
	if err != nil {
		return "", err
	}
	defer f.Close()                                       // only read
	b, err := privateBytes(f, p.Rel, secretMax+2, d.goos) // and a line end
	if err != nil {
		return "", bareError(err)
	}
	return cutLineEnd(string(b)), nil
}

func (d secretDesk) delete(ctx context.Context, c toolCall) (toolResult, error) {
	var args struct{ Name string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return toolResult{}, errorf("read arguments: %w", err)
	}
	v, err := d.vault(ctx)
	if err != nil {
		return toolResult{}, err
	}
	users, err := dropSecret(ctx, v, args.Name)
	if errors.Is(err, errNotFound) {
		return toolResult{Hint: secretHint}, errorf(`property "name": there is no secret %s`, quoteClip(args.Name))
	}
	if err != nil {
		return toolResult{}, err
	}
	d.changed()
	return secretResult(args.Name, "deleted", users, visibleLine(args.Name)+": deleted")
}
