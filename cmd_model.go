// This file holds the commands about models: which there are, which is in use, whether one works.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	modelTokensMax  = 100_000_000      // tokens that --context and --max-tokens may say
	modelTestTokens = 2000             // of each answer in a test; models that think need more than the answer
	modelTestTime   = 90 * time.Second // for each of the two completions of a test
)

func modelCommands() []command {
	return []command{
		{Path: "model list", Short: "models that are set or found, the one in use marked", Example: "tai model list --json", Store: storeRead, Run: cmdModelList,
			Long: "Found are those whose key is in a variable or a secret of the usual name, and\nthose of a server on this machine (Ollama, LM Studio, llama.cpp).\nTAI_LOCAL_MODELS=off leaves the latter out."},
		{Path: "model set", Args: "NAME", Short: "store a model under a name of your own", Example: "tai model set work --provider anthropic --key-from prompt",
			Long: "Give --provider (" + strings.Join(modelProviderNames()[:4], ", ") + ",\n" + strings.Join(modelProviderNames()[4:], ", ") + "), or --base-url of an OpenAI-compatible\nendpoint, or both for a provider's wire at another address. The key itself is\nnever kept with the model: --key says where it is, --key-from stores it as a\nsecret first. Without either a provider's usual variable or secret is used, at\nits own address only.",
			Flags: []flagSpec{
				{Name: "provider", Value: "P", Help: "a well-known provider"},
				{Name: "base-url", Value: "U", Help: "the address up to /chat/completions or /messages"},
				{Name: "model", Value: "M", Help: "the model's name there (default: the provider's usual one)"},
				{Name: "key", Value: "env:X|secret:Y", Help: "where its key is"},
				{Name: "key-from", Value: "prompt|env:X|file:P|-", Help: "store the key as a secret and use that"},
				{Name: "context", Value: "N", Help: "tokens that the model takes"},
				{Name: "max-tokens", Value: "N", Help: "most tokens of one reply"}},
			Min: 1, Max: 1, Store: storeWrite, Run: cmdModelSet},
		{Path: "model use", Args: "[NAME]", Short: "talk to a stored model from now on", Example: "tai model use work",
			Long: "A model in use comes before everything that the environment says.", Flags: []flagSpec{{Name: "none", Help: "use none: what the environment says counts again"}}, Max: 1, Store: storeThere, Run: cmdModelUse},
		{Path: "model remove", Args: "NAME", Short: "drop a stored model; its key's secret stays", Example: "tai model remove work", Min: 1, Max: 1, Store: storeThere, Run: cmdModelRemove},
		{Path: "model test", Args: "[NAME]", Short: "two tiny completions: does it answer, stream, and call tools?", Example: "tai model test work", Max: 1, Store: storeRead, Run: cmdModelTest},
	}
}

//go:noinline for size: it is called in many places
func modelProviderNames() (names []string) {
	for _, p := range chatProviders() {
		names = append(names, p.name)
	}
	return names
}

// models gives the finder of this run.
//
//go:noinline for size: it is called in many places
func (a *app) models() *modelFinder {
	return &modelFinder{Getenv: a.out.Getenv, Vault: a.vault, HTTP: a.http}
}

// talkTo gives the model in use and who writes down what its replies cost. A model that was not chosen by a person is told of.
func (a *app) talkTo(ctx context.Context, notice func(string)) (*chatClient, func(context.Context, string, chatUsage, time.Duration) error, error) {
	m, err := a.models().inUse(ctx)
	if err != nil {
		return nil, nil, modelFailure(err)
	}
	if m.Source == foundLocal {
		notice(fmt.Sprintf("talking to %s at %s, which was found on this machine; tai model set and tai model use choose another one", m.Endpoint.Model, m.Endpoint.BaseURL))
	}
	usage := func(ctx context.Context, session string, u chatUsage, took time.Duration) error {
		v, err := a.vault(ctx)
		if err != nil {
			return err
		}
		return v.putUsage(ctx, usageRow{Session: session, Model: m.Endpoint.Model, Input: u.Input, Output: u.Output, Cached: u.Cached, Duration: took})
	}
	return newChatClient(m.Endpoint, a.http), usage, nil
}

// noModelHint says in few words how to get a model.
const noModelHint = "set ANTHROPIC_API_KEY, OPENAI_API_KEY or the like, or store one: tai model set, then tai model use; tai model list tells all ways"

// modelWays says what is looked for, and every way to get a model.
func modelWays() string {
	return "hint: set one of " + strings.Join(chatKeyNames(), ", ") + " (variable or secret), or TAI_BASE_URL and TAI_MODEL\n" +
		"or start a server on this machine: Ollama, LM Studio, llama.cpp\n" +
		"or store one: tai model set NAME --provider P --key-from prompt, then tai model use NAME\n" +
		"Tools work without a model: tai tools list"
}

// modelFailure tells that there is no model, or what is wrong with it.
func modelFailure(err error) error {
	if errors.Is(err, errNoModel) {
		return &cliError{Exit: exitUsage, Message: err.Error(), Hint: noModelHint, err: err}
	}
	if ce, ok := errors.AsType[*chatError](err); ok {
		return &cliError{Exit: exitUsage, Message: ce.Message, Hint: ce.Hint, err: err}
	}
	return err
}

// modelNotice says at the start of the prompt that no model is set, in three lines; "" where one is. It asks no server, makes no vault and
// opens no seal: all that takes time waits for the first message.
func (c *invocation) modelNotice(ctx context.Context) string {
	_, err := findEndpoint(c.out.Getenv)
	if path, there, pathErr := vaultPath(c.home); err != nil && pathErr == nil && there && path != "" {
		set, setErr := c.models().anySet(ctx)
		if err = cmp.Or(setErr, err); set {
			return ""
		}
	}
	switch {
	case err == nil:
		return ""
	case !errors.Is(err, errNoModel):
		return visible(err.Error())
	}
	local := "a message tries local servers"
	if len(localServers(c.out.Getenv)) == 0 {
		local = "TAI_LOCAL_MODELS is off"
	}
	return "No model: none in use, no TAI_BASE_URL, no key; " + local + ".\n" +
		"Set ANTHROPIC_API_KEY, OPENAI_API_KEY or the like and start tai again, or:\n" +
		"/model set NAME --provider P --key-from prompt, then /model use NAME"
}

type modelJSON struct {
	Name      string `json:"name"`
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model"`
	BaseURL   string `json:"base_url"`
	Wire      string `json:"wire"`
	Source    string `json:"source"`
	Key       string `json:"key,omitempty"`
	Context   int    `json:"context,omitempty"`
	MaxTokens int    `json:"max_tokens,omitempty"`
	InUse     bool   `json:"in_use"`
	Problem   string `json:"problem,omitempty"`
}

func modelJSONOf(m foundModel) modelJSON {
	e := m.Endpoint
	return modelJSON{Name: m.Name, Provider: m.Provider, Model: e.Model, BaseURL: e.BaseURL, Wire: string(e.Wire), Source: m.Source, Key: e.KeyFrom,
		Context: e.Context, MaxTokens: e.MaxTokens, InUse: m.InUse, Problem: m.Problem}
}

func cmdModelList(ctx context.Context, c *invocation) error {
	list, err := c.models().all(ctx)
	if err != nil {
		return err
	}
	if c.json {
		out := []modelJSON{}
		for _, m := range list {
			out = append(out, modelJSONOf(m))
		}
		return writeJSON(c.stdout, map[string]any{"models": out})
	}
	for _, m := range list {
		mark := " "
		if m.InUse {
			mark = "*"
		}
		printWrapped(c.stdout, mark+" "+m.line())
	}
	if len(list) == 0 {
		fmt.Fprintln(c.stdout, "no model is set or found")
		printWrapped(c.stderr, modelWays())
	}
	return nil
}

func cmdModelSet(ctx context.Context, c *invocation) error {
	m, err := c.modelFlags(c.args[0])
	if err != nil {
		return err
	}
	if err := validProfileName(m.Name); err != nil {
		return usageError("", "model name %s: use letters, digits, _ . -, not first . or -, at most %d bytes", quoteClip(m.Name), profileNameMax)
	}
	if c.given("key-from") {
		name, ok := strings.CutPrefix(m.Key, "secret:")
		if !ok {
			return usageError("--key secret:NAME, or leave --key out", "--key-from stores a secret, --key %s is none", visibleLine(m.Key))
		}
		from := c.flag("key-from")
		if from == "prompt" {
			from = ""
		}
		if _, err := c.storeSecret(ctx, name, from); err != nil {
			return err
		}
	}
	err = c.recorded(ctx, deed{Kind: "model-set", Subject: m.Name}, func(v *vault) error { return v.putModel(ctx, m) })
	if err != nil {
		return err
	}
	if u, err := url.Parse(m.BaseURL); err == nil && m.Key != "" && u.Scheme == "http" && !isLoopbackHost(u.Hostname()) {
		fmt.Fprintln(c.stderr, "warning: the address is not https: the key and everything said can be read on the way")
	}
	return c.done(map[string]string{"name": m.Name, "state": "stored"}, "%s: stored; tai model use %s talks to it, tai model test %s tries it", m.Name, quoteWord(m.Name), quoteWord(m.Name))
}

// modelFlags reads what tai model set is given.
func (c *invocation) modelFlags(name string) (storedModel, error) {
	m := storedModel{Name: name, Provider: c.flag("provider"), BaseURL: c.flag("base-url"), Model: c.flag("model"), Key: c.flag("key")}
	p, known := chatProviderOf(m.Provider)
	switch {
	case m.Provider == "" && m.BaseURL == "":
		return m, usageError("--provider "+strings.Join(modelProviderNames(), "|")+", or --base-url of an OpenAI-compatible endpoint", "model %s needs a provider or an address", quoteClip(name))
	case m.Provider != "" && !known:
		return m, usageError("one of "+strings.Join(modelProviderNames(), ", ")+"; another endpoint has --base-url", "no such provider: %s", quoteClip(m.Provider))
	}
	e := chatEndpoint{Wire: wireOpenAI, BaseURL: m.BaseURL, Model: m.Model}
	if known {
		e = p.endpoint(m.Model)
		m.Model = e.Model
		if m.BaseURL != "" {
			e.BaseURL = m.BaseURL
		}
	}
	e, err := e.checked("--base-url", "--model")
	if err != nil {
		return m, &cliError{Exit: exitUsage, Message: err.Error(), Hint: "tai model set NAME --base-url http://127.0.0.1:11434/v1 --model M", err: err}
	}
	if m.BaseURL != "" {
		m.BaseURL = e.BaseURL
	}
	if c.given("key-from") && m.Key == "" {
		m.Key = "secret:" + modelSecretName(p, m)
	}
	if from, ref, ok := strings.Cut(m.Key, ":"); m.Key != "" && (!ok || from != "env" && from != "secret" || validSecretName(ref) != nil) {
		return m, usageError("--key env:VARIABLE or --key secret:NAME; --key-from prompt asks for the key itself", "--key takes no key, only where one is")
	}
	if m.Context, err = c.tokens("context"); err != nil {
		return m, err
	}
	m.MaxTokens, err = c.tokens("max-tokens")
	return m, err
}

// modelSecretName is the secret that --key-from makes: the provider's usual name at its own address, else one after the model's name.
func modelSecretName(p chatProvider, m storedModel) string {
	if p.name != "" && m.BaseURL == "" {
		return p.keys[0]
	}
	clean := strings.Map(func(r rune) rune {
		if r < 128 && validSecretName("_"+string(r)) == nil && r != '.' && r != '-' {
			return r
		}
		return '_'
	}, strings.ToUpper(m.Name))
	if validSecretName(clean) != nil {
		clean = "_" + clean
	}
	return clean + "_API_KEY"
}

// tokens reads a flag that counts tokens, 0 without it.
func (c *invocation) tokens(flag string) (int, error) {
	if !c.given(flag) {
		return 0, nil
	}
	n, err := strconv.Atoi(c.flag(flag))
	if err != nil || n < 1 || n > modelTokensMax {
		return 0, usageError("", "--%s takes a whole number of tokens, from 1 to %d", flag, modelTokensMax)
	}
	return n, nil
}

func cmdModelUse(ctx context.Context, c *invocation) error {
	name, state := "", "none in use"
	switch {
	case len(c.args) == 1 && c.given("none"), len(c.args) == 0 && !c.given("none"):
		return usageError("tai model use NAME, or tai model use --none", "name a model, or --none")
	case len(c.args) == 1:
		name, state = c.args[0], "in use"
	}
	err := c.recorded(ctx, deed{Kind: "model-use", Subject: name}, func(v *vault) error { return v.useModel(ctx, name) })
	if err != nil {
		return orUnknown(err, "tai model set NAME stores one; tai model list shows the names")
	}
	if name == "" {
		return c.done(map[string]string{"name": "", "state": state}, "no stored model is in use; what the environment says counts")
	}
	return c.done(map[string]string{"name": name, "state": state}, "%s: in use", visibleLine(name))
}

func cmdModelRemove(ctx context.Context, c *invocation) error {
	err := c.recorded(ctx, deed{Kind: "model-remove", Subject: c.args[0]}, func(v *vault) error { return v.removeModel(ctx, c.args[0]) })
	if err != nil {
		return orUnknown(err, "tai model list shows the names")
	}
	return c.done(map[string]string{"name": c.args[0], "state": "removed"}, "%s: removed", visibleLine(c.args[0]))
}

// modelTest is what a test has found.
type modelTest struct {
	Name      string         `json:"name"`
	Model     string         `json:"model"`
	BaseURL   string         `json:"base_url"`
	Answer    string         `json:"answer"`
	Streaming bool           `json:"streaming"`
	Tools     bool           `json:"tools"`
	Problem   string         `json:"problem,omitempty"` // why it calls no tool
	FirstMS   int64          `json:"first_ms"`
	Duration  int64          `json:"duration_ms"`
	Usage     modelTestUsage `json:"usage"`
}

type modelTestUsage struct {
	Input  int `json:"input"`
	Output int `json:"output"`
	Cached int `json:"cached"`
}

// cmdModelTest makes one completion without a tool and one with a tool that it has to call. That it answers decides the exit code.
func cmdModelTest(ctx context.Context, c *invocation) error {
	var m foundModel
	var err error
	if len(c.args) == 1 {
		m, err = c.models().named(ctx, c.args[0])
	} else {
		m, err = c.models().inUse(ctx)
	}
	if err == nil && m.Problem != "" {
		err = &chatError{Fault: faultKey, Message: fmt.Sprintf("model %s cannot be used: %s", visibleLine(m.Name), m.Problem)}
	}
	if err != nil {
		return modelFailure(orUnknown(err, "tai model list shows the names"))
	}
	r, err := testModel(ctx, newChatClient(m.Endpoint, c.http), m, func(s string) { fmt.Fprintln(c.stderr, "· "+visibleLine(c.redact(s))) })
	if err != nil {
		return err
	}
	r.Answer = c.redact(r.Answer)
	if c.json {
		return writeJSON(c.stdout, r)
	}
	yes := map[bool]string{true: "yes", false: "no"}
	fmt.Fprintf(c.stdout, "%s: %s at %s answers\n", visibleLine(r.Name), visibleLine(r.Model), visibleLine(r.BaseURL))
	fmt.Fprintf(c.stdout, "answer     %s\n", clip(visibleLine(r.Answer), 200))
	fmt.Fprintf(c.stdout, "time       %s, first text after %s\n", shortTime(time.Duration(r.Duration)*time.Millisecond), shortTime(time.Duration(r.FirstMS)*time.Millisecond))
	fmt.Fprintf(c.stdout, "tokens     %d in, %d out\n", r.Usage.Input, r.Usage.Output)
	fmt.Fprintf(c.stdout, "streaming  %s\n", yes[r.Streaming])
	fmt.Fprintf(c.stdout, "tools      %s\n", strings.TrimSpace(yes[r.Tools]+"  "+visibleLine(c.redact(r.Problem))))
	return nil
}

// testModel runs the two completions. The error is that of the first; what is wrong with the second is a finding.
func testModel(ctx context.Context, client chatModel, m foundModel, notice func(string)) (modelTest, error) {
	r := modelTest{Name: m.Name, Model: m.Endpoint.Model, BaseURL: m.Endpoint.BaseURL}
	begin := time.Now()
	ask := func(req chatRequest) (chatReply, error) {
		ctx, cancel := context.WithTimeout(ctx, modelTestTime)
		defer cancel()
		req.MaxTokens = modelTestTokens
		return client.complete(ctx, req, func(d chatDelta) {
			if d.Notice != "" {
				notice(d.Notice)
			}
			if d.Text != "" && r.FirstMS == 0 {
				r.FirstMS = max(1, time.Since(begin).Milliseconds())
			}
		})
	}
	reply, err := ask(chatRequest{Messages: []chatMessage{{Role: roleUser, Content: "Answer with the one word: ready"}}})
	if err != nil {
		return r, err
	}
	r.Duration, r.Answer, r.Streaming = time.Since(begin).Milliseconds(), strings.TrimSpace(reply.Text), reply.Streamed
	r.Usage = modelTestUsage(reply.Usage)
	if r.FirstMS == 0 {
		r.FirstMS = r.Duration
	}
	reply, err = ask(chatRequest{
		System:   "Use the tool you are given.",
		Messages: []chatMessage{{Role: roleUser, Content: "Add 2 and 3 with the tool add."}},
		Tools:    []chatTool{{"add", "Adds two whole numbers.", json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer","description":"The first."},"b":{"type":"integer","description":"The second."}},"required":["a","b"]}`)}},
	})
	switch {
	case err != nil:
		r.Problem = err.Error()
	case len(reply.Calls) == 0:
		r.Problem = "it called no tool, though it was asked to"
	default:
		var args struct{ A, B json.Number }
		if err := json.Unmarshal([]byte(reply.Calls[0].Args), &args); reply.Calls[0].Name != "add" || err != nil || args.A == "" || args.B == "" {
			r.Problem = "it called the tool wrongly: " + clip(visibleLine(reply.Calls[0].Name+" "+reply.Calls[0].Args), 200)
		}
	}
	r.Tools = r.Problem == ""
	return r, nil
}
