// This file finds the model endpoint in the environment's usual variables, and holds what is known of the well-known ones. It reads names and
// values that are handed to it and dials nothing.
package main

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// chatWire is the form of an endpoint's requests and replies.
type chatWire string

const (
	wireOpenAI    chatWire = "openai"    // POST /chat/completions
	wireAnthropic chatWire = "anthropic" // POST /messages
)

// chatEndpoint is one endpoint and the model to ask for there.
type chatEndpoint struct {
	Name      string // as tai speaks of it: openai, groq, …
	Wire      chatWire
	BaseURL   string // up to and without /chat/completions or /messages
	Model     string
	Key       secret // "" for an endpoint without one
	KeyFrom   string // the variable, or "secret NAME"
	Context   int    // tokens that the model takes, 0 where it is not known
	MaxTokens int    // most tokens of one reply, 0 for the endpoint's own bound

	chatQuirks
}

// chatQuirks is where an endpoint differs from the others of its wire. What is not known beforehand is learned from its refusals.
type chatQuirks struct {
	plainUsage   bool // sends usage unasked and refuses stream_options
	newMaxTokens bool // wants max_completion_tokens, which others do not know
	noEffort     bool // takes tools only with reasoning_effort none
	noThinking   bool // thinks unless told not to, and then wants its thoughts back
	shortIDs     bool // ids of calls have nine letters and digits
	answersFirst bool // no message of the person right after a result
	shortTexts   bool // descriptions of tools have at most 1024 characters
	openAPI      bool // schemas are of the OpenAPI subset
	signedCalls  bool // earlier calls carry a signature of the model's thoughts, or the word that stands for one
}

// errNoModel is returned when no endpoint is set; its text says what was looked for.
var errNoModel = errors.New("no model is set")

// chatProvider is a well-known endpoint; model is asked for when no variable names one. Names of models change: TAI_MODEL and tai model set
// name another.
type chatProvider struct {
	name              string
	keys              []string // variables and secrets, the first is its own
	base              string
	baseVar, modelVar string // variables of another address and model, where they are usual
	model             string
	wire              chatWire
	context           int // tokens, of model; 0 where it is not known
}

// chatProviders lists the well-known endpoints in the order they are looked for.
func chatProviders() []chatProvider {
	return []chatProvider{
		{name: "anthropic", keys: []string{"ANTHROPIC_API_KEY"}, base: "https://api.anthropic.com/v1", baseVar: "ANTHROPIC_BASE_URL", modelVar: "ANTHROPIC_MODEL", model: "claude-sonnet-5-5", wire: wireAnthropic, context: 1_000_000},
		{name: "openai", keys: []string{"OPENAI_API_KEY"}, base: "https://api.openai.com/v1", baseVar: "OPENAI_BASE_URL", modelVar: "OPENAI_MODEL", model: "gpt-6-sol"},
		{name: "openrouter", keys: []string{"OPENROUTER_API_KEY"}, base: "https://openrouter.ai/api/v1", model: "openrouter/auto"},
		{name: "gemini", keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, base: "https://generativelanguage.googleapis.com/v1beta/openai", model: "gemini-flash-latest"},
		{name: "groq", keys: []string{"GROQ_API_KEY"}, base: "https://api.groq.com/openai/v1", model: "openai/gpt-oss-120b", context: 131_072},
		{name: "mistral", keys: []string{"MISTRAL_API_KEY"}, base: "https://api.mistral.ai/v1", model: "mistral-large-latest"},
		{name: "deepseek", keys: []string{"DEEPSEEK_API_KEY"}, base: "https://api.deepseek.com/v1", model: "deepseek-v4-flash", context: 1_000_000},
		{name: "xai", keys: []string{"XAI_API_KEY"}, base: "https://api.x.ai/v1", model: "grok-4.6"},
	}
}

// chatProviderOf gives the well-known endpoint of that name.
func chatProviderOf(name string) (chatProvider, bool) {
	all := chatProviders()
	i := slices.IndexFunc(all, func(p chatProvider) bool { return p.name == name })
	if i < 0 {
		return chatProvider{}, false
	}
	return all[i], true
}

// quirksOf gives what is known of a provider's endpoint, "" for an address of one's own, where only the model's name speaks.
func quirksOf(provider, model string) chatQuirks {
	model = strings.ToLower(model)
	stral := strings.Contains(model, "mixtral") || strings.Contains(model, "stral-") || strings.HasSuffix(model, "stral")
	return chatQuirks{
		plainUsage:   provider == "mistral",
		newMaxTokens: provider == "openai",
		noThinking:   provider == "deepseek",
		shortIDs:     provider == "mistral" || stral,
		answersFirst: provider == "mistral" || stral,
		shortTexts:   provider == "openai",
		openAPI:      provider == "gemini",
		signedCalls:  provider == "gemini" && !strings.Contains(model, "gemini-1") && !strings.Contains(model, "gemini-2"),
	}
}

// findEndpoint takes TAI_BASE_URL (with TAI_API_KEY) first, then the usual variables of the providers in their order. TAI_MODEL names the
// model anywhere; an address of one's own needs a model. A key only ever goes to the address its own variables name. errNoModel if nothing is
// set.
func findEndpoint(getenv func(string) string) (chatEndpoint, error) {
	if base := getenv("TAI_BASE_URL"); base != "" {
		e := chatEndpoint{Name: "custom", Wire: wireOpenAI, BaseURL: base, Model: getenv("TAI_MODEL"), chatQuirks: quirksOf("", getenv("TAI_MODEL"))}
		return e.withKey(getenv, "TAI_API_KEY").checked("TAI_BASE_URL", "TAI_MODEL")
	}
	if getenv("TAI_API_KEY") != "" {
		return chatEndpoint{}, newError("TAI_API_KEY is set without TAI_BASE_URL, which says where the key may go")
	}
	for _, p := range chatProviders() {
		base, model := "", ""
		if p.baseVar != "" {
			base, model = strings.TrimSpace(getenv(p.baseVar)), getenv(p.modelVar)
		}
		if m := getenv("TAI_MODEL"); m != "" {
			model = m
		}
		e := p.endpoint(model).withKey(getenv, p.keys...)
		if base != "" && chatBase(base, p.wire) != p.base {
			e.Name, e.BaseURL, e.Model, e.Context, e.chatQuirks = "custom", base, model, 0, quirksOf("", model)
		}
		if e.Key != "" || e.Name == "custom" {
			return e.checked(p.baseVar, p.modelVar+" or TAI_MODEL")
		}
	}
	return chatEndpoint{}, errorf("%w: looked for TAI_BASE_URL and %s", errNoModel, strings.Join(chatKeyNames(), ", "))
}

// chatKeyNames gives the variables that hold the providers' keys.
//
//go:noinline for size: it is called in many places
func chatKeyNames() (names []string) {
	for _, p := range chatProviders() {
		names = append(names, p.keys...)
	}
	return names
}

// endpoint is the provider's own address with a model, its default where model is "". It has no key yet.
func (p chatProvider) endpoint(model string) chatEndpoint {
	e := chatEndpoint{Name: p.name, Wire: p.wire, BaseURL: p.base, Model: model}
	if e.Wire == "" {
		e.Wire = wireOpenAI
	}
	if model == "" {
		e.Model = p.model
	}
	if e.Model == p.model {
		e.Context = p.context
	}
	e.chatQuirks = quirksOf(p.name, e.Model)
	return e
}

// withKey takes the first of the variables that is set.
func (e chatEndpoint) withKey(getenv func(string) string, names ...string) chatEndpoint {
	for _, name := range names {
		if v := strings.TrimSpace(getenv(name)); v != "" {
			e.Key, e.KeyFrom = secret(v), name
			return e
		}
	}
	return e
}

// checked refuses what cannot work; baseVar and modelVar are the variables, or flags, that the complaint names.
func (e chatEndpoint) checked(baseVar, modelVar string) (chatEndpoint, error) {
	u, err := url.Parse(e.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return chatEndpoint{}, errorf("%s: %q is no http or https address", baseVar, clip(visibleLine(e.BaseURL), 200))
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return chatEndpoint{}, errorf("%s: an address with a user, a query or a fragment is not taken", baseVar)
	}
	if strings.ContainsFunc(e.Key.reveal(), func(r rune) bool { return r < ' ' || r > '~' }) {
		return chatEndpoint{}, errorf("%s holds a line break, or a character that no key has", e.KeyFrom)
	}
	e.BaseURL = chatBase(e.BaseURL, e.Wire)
	if e.Model == "" {
		return chatEndpoint{}, errorf("%s is set but no model: set %s", baseVar, modelVar)
	}
	return e, nil
}

// chatBase brings an address to the form that a path is put behind. Anthropic's SDKs take it without the version.
func chatBase(base string, wire chatWire) string {
	base = strings.TrimRight(base, "/")
	if wire != wireAnthropic {
		return strings.TrimRight(strings.TrimSuffix(base, "/chat/completions"), "/")
	}
	base = strings.TrimRight(strings.TrimSuffix(base, "/messages"), "/")
	if !strings.HasSuffix(base, "/v1") {
		base += "/v1"
	}
	return base
}

// modelWindow gives the tokens that a model takes by what its name begins with, 0 where that is not known. The smaller number stands where one
// name has had several.
func modelWindow(model string) int {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, w := range [...]struct {
		prefix string
		tokens int
	}{
		{"gpt-3.5", 16_000}, {"gpt-4.1", 1_000_000}, {"gpt-4o", 128_000}, {"gpt-4-turbo", 128_000}, {"gpt-4", 8_000}, {"gpt-5", 272_000}, {"o1", 128_000}, {"o3", 200_000}, {"o4", 200_000},
		{"claude", 200_000}, {"gemini", 1_000_000}, {"grok-3", 128_000}, {"grok-4", 256_000}, {"deepseek", 64_000}, {"mistral", 128_000}, {"codestral", 128_000},
	} {
		if strings.HasPrefix(name, w.prefix) {
			return w.tokens
		}
	}
	return 0
}
