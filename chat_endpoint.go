// This file finds the model endpoint in the environment's usual variables. It reads names and values that are handed to it and dials nothing.
package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// chatEndpoint is one OpenAI-compatible endpoint and the model to ask for there.
type chatEndpoint struct {
	Name    string // as tai speaks of it: openai, groq, …
	BaseURL string // up to and without /chat/completions
	Model   string
	Key     secret // "" for an endpoint without one
	KeyFrom string // the variable the key came from

	plainUsage bool // sends usage unasked and refuses stream_options
}

// errNoModel is returned when no endpoint is set; its text says what was looked for.
var errNoModel = errors.New("no model is set")

// chatProvider is a well-known endpoint; model is asked for when no variable names one.
type chatProvider struct {
	name, keyVar, base, model string
	plainUsage                bool
}

// chatProviders lists the well-known endpoints in the order they are looked for.
func chatProviders() []chatProvider {
	return []chatProvider{
		{name: "openai", keyVar: "OPENAI_API_KEY", base: "https://api.openai.com/v1", model: "gpt-5-mini"},
		{name: "openrouter", keyVar: "OPENROUTER_API_KEY", base: "https://openrouter.ai/api/v1", model: "openrouter/auto"},
		{name: "groq", keyVar: "GROQ_API_KEY", base: "https://api.groq.com/openai/v1", model: "openai/gpt-oss-120b"},
		{name: "mistral", keyVar: "MISTRAL_API_KEY", base: "https://api.mistral.ai/v1", model: "mistral-large-latest", plainUsage: true},
		{name: "deepseek", keyVar: "DEEPSEEK_API_KEY", base: "https://api.deepseek.com/v1", model: "deepseek-chat"},
		{name: "xai", keyVar: "XAI_API_KEY", base: "https://api.x.ai/v1", model: "grok-4"},
		{name: "gemini", keyVar: "GEMINI_API_KEY", base: "https://generativelanguage.googleapis.com/v1beta/openai", model: "gemini-2.5-flash"},
	}
}

// findEndpoint takes TAI_BASE_URL (with TAI_API_KEY) first, then OPENAI_BASE_URL or OPENAI_API_KEY, then the other providers' keys. TAI_MODEL
// names the model anywhere, OPENAI_MODEL at the OpenAI endpoint; an address of one's own needs one of them. A key only ever goes to the
// address its own variables name. errNoModel if nothing is set.
func findEndpoint(getenv func(string) string) (chatEndpoint, error) {
	if base := getenv("TAI_BASE_URL"); base != "" {
		e := chatEndpoint{Name: "custom", BaseURL: base, Model: getenv("TAI_MODEL")}
		return e.withKey(getenv, "TAI_API_KEY").checked("TAI_BASE_URL", "TAI_MODEL")
	}
	if getenv("TAI_API_KEY") != "" {
		return chatEndpoint{}, errors.New("TAI_API_KEY is set without TAI_BASE_URL, which says where the key may go")
	}
	for _, p := range chatProviders() {
		e := chatEndpoint{Name: p.name, BaseURL: p.base, Model: getenv("TAI_MODEL"), plainUsage: p.plainUsage}.withKey(getenv, p.keyVar)
		if p.name == "openai" {
			if base := getenv("OPENAI_BASE_URL"); base != "" && base != p.base {
				e.Name, e.BaseURL, p.model = "custom", base, ""
			}
			if e.Model == "" {
				e.Model = getenv("OPENAI_MODEL")
			}
		}
		if e.Key == "" && e.Name != "custom" {
			continue
		}
		if e.Model == "" {
			e.Model = p.model
		}
		return e.checked("OPENAI_BASE_URL", "OPENAI_MODEL or TAI_MODEL")
	}
	names := make([]string, 0, len(chatProviders()))
	for _, p := range chatProviders() {
		names = append(names, p.keyVar)
	}
	return chatEndpoint{}, fmt.Errorf("%w: looked for TAI_BASE_URL, OPENAI_BASE_URL, %s", errNoModel, strings.Join(names, ", "))
}

func (e chatEndpoint) withKey(getenv func(string) string, name string) chatEndpoint {
	if v := strings.TrimSpace(getenv(name)); v != "" {
		e.Key, e.KeyFrom = secret(v), name
	}
	return e
}

// checked refuses what cannot work; baseVar and modelVar are the variables that the complaint names.
func (e chatEndpoint) checked(baseVar, modelVar string) (chatEndpoint, error) {
	u, err := url.Parse(e.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return chatEndpoint{}, fmt.Errorf("%s: %q is no http or https address", baseVar, clip(e.BaseURL, 200))
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return chatEndpoint{}, fmt.Errorf("%s: an address with a user, a query or a fragment is not taken", baseVar)
	}
	if strings.ContainsAny(e.Key.reveal(), "\r\n\x00") {
		return chatEndpoint{}, fmt.Errorf("%s holds a line break", e.KeyFrom)
	}
	e.BaseURL = strings.TrimSuffix(strings.TrimRight(e.BaseURL, "/"), "/chat/completions")
	if e.Model == "" {
		return chatEndpoint{}, fmt.Errorf("%s is set but no model: set %s", baseVar, modelVar)
	}
	return e, nil
}

// maxTokensKey is the member that bounds the answer; OpenAI's newer models refuse the old name that everyone else takes.
func (e chatEndpoint) maxTokensKey() string {
	if e.Name == "openai" {
		return "max_completion_tokens"
	}
	return "max_tokens"
}
