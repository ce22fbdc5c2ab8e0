// This file finds the model to talk to: the one that a person chose, else one that the environment, the vault's secrets or a server on this
// machine offers. Beyond this machine it dials nothing.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	localTime    = 150 * time.Millisecond // for all servers of this machine together to list their models
	localMaxBody = 1 << 20                // bytes of such a list
	localMaxList = 200                    // models of it that are looked at
	localMaxName = 256                    // bytes of a model's name
)

// Where a model was found.
const (
	foundStored = "stored"      // by tai model set
	foundEnv    = "environment" // by a variable
	foundSecret = "secret"      // by a secret with the name of a provider's variable
	foundLocal  = "local"       // on this machine
)

// foundModel is one model that tai could talk to. Problem says why it cannot, as where its key is missing.
type foundModel struct {
	Name     string // as set, else the provider's
	Provider string // "" for an address of one's own
	Source   string
	InUse    bool
	Problem  string
	Endpoint chatEndpoint
}

// line is the model on one line, for a screen.
func (m foundModel) line() string {
	text := visibleLine(m.Name) + "  " + visibleLine(cmp.Or(m.Endpoint.Model, "?")) + "  " + m.Source
	if m.Endpoint.Context > 0 {
		text += fmt.Sprintf("  %d tokens", m.Endpoint.Context)
	}
	if m.InUse {
		text += "  in use"
	}
	if m.Problem != "" {
		text += "  cannot be used: " + visibleLine(m.Problem)
	}
	return text
}

// modelFinder looks for models. Vault may open one that is empty; it is asked for nothing that is sealed but the key of the model found.
type modelFinder struct {
	Getenv func(string) string
	Vault  func(context.Context) (*vault, error)
	HTTP   *http.Client
}

// inUse gives the model to talk to: the stored one in use, else the first of the environment, of the secrets, of this machine. Where a
// choice was made that cannot be followed, nothing else is taken in its place. errNoModel if there is none at all.
func (f *modelFinder) inUse(ctx context.Context) (foundModel, error) {
	m, err := f.configured(ctx)
	if !errors.Is(err, errNoModel) {
		return m, err
	}
	if local := f.local(ctx); len(local) > 0 {
		local[0].InUse = true
		return local[0], nil
	}
	return foundModel{}, errorf("%w: none in use, no TAI_BASE_URL, no key of a provider, no server on this machine", errNoModel)
}

// configured is inUse without a look at this machine's servers, which takes time.
func (f *modelFinder) configured(ctx context.Context) (foundModel, error) {
	v, err := f.Vault(ctx)
	if err != nil {
		return foundModel{}, err
	}
	list, err := v.models(ctx)
	if err != nil {
		return foundModel{}, err
	}
	for _, s := range list {
		if s.Current {
			m, err := f.stored(ctx, v, s)
			m.InUse = err == nil
			return m, err
		}
	}
	e, err := findEndpoint(f.Getenv)
	if err == nil {
		return foundModel{Name: e.Name, Provider: providerName(e), Source: foundEnv, InUse: true, Endpoint: e}, nil
	}
	if !errors.Is(err, errNoModel) {
		return foundModel{}, &chatError{Fault: faultRequest, Message: err.Error(), Hint: "mend the variable, or choose a stored model with tai model use", cause: err}
	}
	secrets, err := f.secrets(ctx, v)
	if err != nil {
		return foundModel{}, err
	}
	if len(secrets) == 0 {
		return foundModel{}, errNoModel
	}
	m := secrets[0]
	m.InUse = true
	err = f.open(ctx, v, &m)
	return m, err
}

// anySet reports a stored model in use, or a secret that holds a provider's key.
func (f *modelFinder) anySet(ctx context.Context) (bool, error) {
	v, err := f.Vault(ctx)
	if err != nil {
		return false, err
	}
	list, err := v.models(ctx)
	if err != nil || slices.ContainsFunc(list, func(s storedModel) bool { return s.Current }) {
		return err == nil, err
	}
	secrets, err := f.secrets(ctx, v)
	return len(secrets) > 0, err
}

// providerName is the well-known name of an endpoint, "" for an address of one's own.
func providerName(e chatEndpoint) string {
	if _, ok := chatProviderOf(e.Name); ok {
		return e.Name
	}
	return ""
}

// stored makes the endpoint of a stored model. A key goes to the address that it was set for: a provider's usual one only to its own.
func (f *modelFinder) stored(ctx context.Context, v *vault, s storedModel) (foundModel, error) {
	m := foundModel{Name: s.Name, Provider: s.Provider, Source: foundStored}
	p, known := chatProviderOf(s.Provider)
	e := chatEndpoint{Name: s.Name, Wire: wireOpenAI, BaseURL: s.BaseURL, Model: s.Model, chatQuirks: quirksOf(s.Provider, s.Model)}
	if known {
		e = p.endpoint(s.Model)
		e.Name = s.Name
		if s.BaseURL != "" {
			e.BaseURL = s.BaseURL
		}
	}
	e.Context, e.MaxTokens = cmp.Or(s.Context, e.Context), s.MaxTokens
	from, name, _ := strings.Cut(s.Key, ":")
	switch {
	case from == "env":
		e = e.withKey(f.Getenv, name)
		if e.Key == "" {
			e.KeyFrom = name
			m.Problem = fmt.Sprintf("its key is in the variable %s, which is not set", name)
		}
	case from == "secret":
		e.KeyFrom = "secret " + name
	case known && s.BaseURL == "":
		e = e.withKey(f.Getenv, p.keys...)
		if e.Key == "" {
			e.KeyFrom = "secret " + p.keys[0]
		}
	}
	m.Endpoint = e
	if m.Problem == "" {
		if err := f.open(ctx, v, &m); err != nil {
			return m, err
		}
	}
	if m.Problem != "" {
		return m, &chatError{Fault: faultKey, Message: fmt.Sprintf("model %s cannot be used: %s", visibleLine(s.Name), m.Problem), Hint: "set it, or choose another model: tai model list, tai model use NAME, tai model use --none"}
	}
	checked, err := m.Endpoint.checked("the address", "a model")
	if err != nil {
		m.Problem = err.Error()
		return m, err
	}
	m.Endpoint = checked
	return m, nil
}

// open reads the key of a model out of the vault, if it is there.
func (f *modelFinder) open(ctx context.Context, v *vault, m *foundModel) error {
	name, ok := strings.CutPrefix(m.Endpoint.KeyFrom, "secret ")
	if !ok || m.Endpoint.Key != "" {
		return nil
	}
	key, err := v.secretFor(ctx, "", name)
	if errors.Is(err, errNotFound) {
		m.Problem = fmt.Sprintf("its key is the secret %s, which is not stored (tai secret set %s)", name, quoteWord(name))
		return nil
	}
	m.Endpoint.Key = secret(strings.TrimSpace(key.reveal()))
	return err
}

// secrets gives the providers whose usual variable is the name of a secret. The keys stay sealed.
func (f *modelFinder) secrets(ctx context.Context, v *vault) ([]foundModel, error) {
	list, err := v.secrets(ctx)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, s := range list {
		there[s.Name] = there[s.Name] || s.Profile == ""
	}
	var found []foundModel
	for _, p := range chatProviders() {
		for _, key := range p.keys {
			if there[key] {
				e := p.endpoint(f.Getenv("TAI_MODEL"))
				e.KeyFrom = "secret " + key
				found = append(found, foundModel{Name: p.name, Provider: p.name, Source: foundSecret, Endpoint: e})
				break
			}
		}
	}
	return found, nil
}

// all lists every model: stored, in the environment, by secrets, on this machine; which of them is in use.
func (f *modelFinder) all(ctx context.Context) ([]foundModel, error) {
	v, err := f.Vault(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := v.models(ctx)
	if err != nil {
		return nil, err
	}
	var list []foundModel
	inUse := false
	for _, s := range stored {
		m, err := f.stored(ctx, v, s)
		if err != nil {
			m.Problem = cmp.Or(m.Problem, err.Error())
		}
		m.InUse = s.Current
		inUse = inUse || s.Current
		list = append(list, m)
	}
	more := f.environment()
	secrets, err := f.secrets(ctx, v)
	if err != nil {
		return nil, err
	}
	for _, m := range append(append(more, secrets...), f.local(ctx)...) {
		m.InUse, inUse = !inUse && m.Problem == "", inUse || m.Problem == ""
		list = append(list, m)
	}
	return list, nil
}

// environment gives every model that variables offer, the first as findEndpoint finds it.
func (f *modelFinder) environment() []foundModel {
	var list []foundModel
	hidden := map[string]bool{} // variables that earlier finds have used
	get := func(name string) string {
		if hidden[name] {
			return ""
		}
		return f.Getenv(name)
	}
	for range 2 + len(chatProviders()) {
		e, err := findEndpoint(get)
		if errors.Is(err, errNoModel) {
			break
		}
		m := foundModel{Name: e.Name, Provider: providerName(e), Source: foundEnv, Endpoint: e}
		if err != nil {
			m.Name, m.Problem = "custom", err.Error()
		}
		list = append(list, m)
		if get("TAI_BASE_URL") != "" || get("TAI_API_KEY") != "" {
			hidden["TAI_BASE_URL"], hidden["TAI_API_KEY"] = true, true
			continue
		}
		for _, p := range chatProviders() {
			keys := append([]string{p.baseVar}, p.keys...)
			used := false
			for _, k := range keys {
				used = used || k != "" && get(k) != ""
			}
			if used {
				for _, k := range keys {
					hidden[k] = true
				}
				break
			}
		}
	}
	return list
}

// named gives a model by its stored name, else by the name under which all lists it.
func (f *modelFinder) named(ctx context.Context, name string) (foundModel, error) {
	v, err := f.Vault(ctx)
	if err != nil {
		return foundModel{}, err
	}
	stored, err := v.models(ctx)
	if err != nil {
		return foundModel{}, err
	}
	for _, s := range stored {
		if s.Name == name {
			return f.stored(ctx, v, s)
		}
	}
	list, err := f.all(ctx)
	if err != nil {
		return foundModel{}, err
	}
	for _, m := range list {
		if m.Name == name && m.Source != foundStored {
			err := f.open(ctx, v, &m)
			return m, err
		}
	}
	return foundModel{}, errorf("model %s: %w", quoteClip(name), errNotFound)
}

// localServer is a server of models that people run on their own machine.
type localServer struct {
	name, base string
	owner      string // what its list says, "" for anything; asked for where the port is a common one
}

// localServers gives the usual addresses. OLLAMA_HOST counts where it names this machine; TAI_LOCAL_MODELS=off turns the search off.
func localServers(getenv func(string) string) []localServer {
	if strings.EqualFold(strings.TrimSpace(getenv("TAI_LOCAL_MODELS")), "off") {
		return nil
	}
	list := []localServer{{name: "lmstudio", base: "http://127.0.0.1:1234/v1"}, {name: "llamacpp", base: "http://127.0.0.1:8080/v1", owner: "llamacpp"}}
	if base := ollamaBase(getenv("OLLAMA_HOST")); base != "" {
		list = append([]localServer{{name: "ollama", base: base}}, list...)
	}
	return list
}

// ollamaBase reads OLLAMA_HOST as Ollama does: a host, a port, or both, with or without a scheme. An address to listen on at all interfaces
// means this machine; another machine gives "".
func ollamaBase(host string) string {
	host = strings.Trim(strings.TrimSpace(host), `"'/`)
	scheme, rest, ok := strings.Cut(host, "://")
	port := map[string]string{"http": "80", "https": "443"}[scheme]
	if !ok {
		scheme, rest, port = "http", host, "11434"
	}
	if port == "" {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "/")
	name := strings.Trim(rest, "[]")
	if h, p, err := net.SplitHostPort(rest); err == nil {
		name, port = h, cmp.Or(p, port)
	}
	switch name {
	case "", "0.0.0.0", "::":
		name = "127.0.0.1"
	}
	if !isLoopbackHost(name) {
		return ""
	}
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(name, port), Path: "/v1"}
	return u.String()
}

// local asks the servers of this machine what they have, side by side. Of each the first model counts that is no embedding model, or the one
// that TAI_MODEL names.
func (f *modelFinder) local(ctx context.Context) []foundModel {
	ctx, cancel := context.WithTimeout(ctx, localTime)
	defer cancel()
	servers := localServers(f.Getenv)
	found := make([][]string, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { found[i] = f.list(ctx, s) }) // ends with its request; all are waited for below
	}
	wg.Wait()
	var list []foundModel
	for i, s := range servers {
		for _, model := range found[i] {
			e := chatEndpoint{Name: s.name, Wire: wireOpenAI, BaseURL: s.base, Model: model, chatQuirks: quirksOf("", model)}
			list = append(list, foundModel{Name: s.name, Source: foundLocal, Endpoint: e})
		}
	}
	if want := f.Getenv("TAI_MODEL"); want != "" {
		for i, m := range list {
			if m.Endpoint.Model == want {
				list[0], list[i] = list[i], list[0]
			}
		}
	}
	return list
}

// list gives the names of a server's models, none where it does not answer as such a server does.
func (f *modelFinder) list(ctx context.Context, s localServer) []string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/models", nil)
	if err != nil {
		return nil
	}
	resp, err := f.HTTP.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, localMaxBody+1))
	if err != nil || resp.StatusCode != http.StatusOK || len(b) > localMaxBody {
		return nil
	}
	top, err := chatFields(b)
	if err != nil {
		return nil
	}
	data, err := jsonArray(top["data"])
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range data[:min(len(data), localMaxList)] {
		m, err := chatFields(entry)
		if err != nil {
			return nil
		}
		id, ok := jsonString(m["id"])
		owner, _ := jsonString(m["owned_by"])
		if ok && id != "" && len(id) <= localMaxName && !strings.Contains(strings.ToLower(id), "embed") && (s.owner == "" || owner == s.owner) {
			names = append(names, id)
		}
	}
	return names
}
