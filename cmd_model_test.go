package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const modelTestKey = "made-up-key-of-a-test"

// A model is stored with a reference to its key, chosen, tried, talked to and dropped; the key shows nowhere.
func TestModelCommands(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	answers := []func(http.ResponseWriter){
		chatStream(50, chatText("ready"), chatStop("stop"), chatUses, "[DONE]"), chatStream(50, chatCall(0, "c", "add", `{"a":2,"b":3}`), chatStop("tool_calls"), chatUses, "[DONE]"),
		chatStream(50, chatText("It works."), chatStop("stop"), chatUses, "[DONE]"),
	}
	m := newFakeModel(t, answers...)
	r.tai("model", "list").done("no model is set or found")
	r.tai("model", "test").fails(exitUsage, "no model is set", "tai model set")
	r.tai("hello").fails(exitUsage, "no model is set", "TAI_BASE_URL", "ANTHROPIC_API_KEY", "tai model set", "tai model use", "tai model list")
	if got := r.tai("hello"); len(got.err) > 250 {
		t.Errorf("%d bytes: %s", len(got.err), got.err)
	}
	if got := r.tai("model", "list"); !strings.Contains(got.err, "XAI_API_KEY") || !strings.Contains(got.err, "Ollama") {
		t.Errorf("what is looked for: %s", got.err)
	}
	r.with(modelTestKey+"\n", "model", "set", "mine", "--base-url", m.URL+"/v1/", "--model", "m-1", "--key-from", "-", "--context", "9000").done("mine: stored")
	if got := r.tai("secret", "list").ok(); !strings.HasPrefix(got, "MINE_API_KEY ") {
		t.Errorf("secrets: %q", got)
	}
	r.tai("hello").fails(exitUsage, "no model is set") // stored is not chosen
	r.tai("model", "use", "mine").done("mine: in use")
	list := r.tai("model", "list", "--json")
	var doc struct{ Models []modelJSON }
	if err := json.Unmarshal([]byte(list.ok()), &doc); err != nil || len(doc.Models) != 1 {
		t.Fatalf("%v: %s", err, list.out)
	}
	want := modelJSON{Name: "mine", Model: "m-1", BaseURL: m.URL + "/v1", Wire: "openai", Source: "stored", Key: "secret MINE_API_KEY", Context: 9000, InUse: true}
	if doc.Models[0] != want {
		t.Errorf("got %+v, want %+v", doc.Models[0], want)
	}
	r.tai("model", "list").done("* mine  m-1  stored  9000 tokens  in use")
	test := r.tai("model", "test")
	test.done("mine: m-1 at "+m.URL+"/v1 answers", "answer     ready", "12 in, 5 out", "streaming  yes", "tools      yes")
	r.tai("hello").done("It works.")
	m.answers = append(m.answers, chatStatus(401, "application/json", `{"error":{"message":"bad key `+modelTestKey+`"}}`), chatStatus(400, "application/json", `{"error":{"message":"m-1 does not support tools"}}`))
	refused := r.tai("hello")
	refused.errHas("bad key [secret:MINE_API_KEY]", "hint: check the secret MINE_API_KEY: tai secret set MINE_API_KEY")
	r.tai("hello").errHas("does not support tools", "hint: this model calls no tools")
	for i := range m.requests {
		if got := m.headers[i].Get("Authorization"); got != "Bearer "+modelTestKey {
			t.Errorf("request %d: Authorization %q", i, got)
		}
	}
	v := vaultAt(t, r.home)
	rows, err := v.usage(t.Context(), "", time.Time{})
	if err != nil || len(rows) != 1 || rows[0].Model != "m-1" || rows[0].Input != 12 || rows[0].Output != 5 || rows[0].Cached != 4 || rows[0].Session == "" {
		t.Errorf("usage: got %+v, %v", rows, err)
	}
	r.tai("model", "remove", "mine").done("mine: removed")
	r.tai("model", "use", "mine").fails(exitFailed, "not found", "tai model list")
	r.tai("hello").fails(exitUsage, "no model is set")
	for _, c := range []cliRun{list, test, refused, r.tai("audit", "list"), r.tai("model", "list")} {
		c.hides(modelTestKey)
	}
}

func TestModelSetRefuses(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	for words, want := range map[string]string{
		"x": "needs a provider or an address", "x --provider nobody": "no such provider", "x --base-url http://h/v1": "no model: set --model", "x --base-url h --model m": "no http or https address",
		"x --base-url http://u:p@h/v1 --model m": "a user", "a/b --provider openai": "model name", "x --provider openai --key sk-something": "--key takes no key", "x --provider openai --key env:a=b": "--key takes no key",
		"x --provider openai --key env:K --key-from -": "--key-from stores a secret", "x --provider openai --context many": "--context takes", "x --provider openai --max-tokens 0": "--max-tokens takes",
		"x --provider openai --key-from prompt": "no terminal is here",
	} {
		c := r.tai(append([]string{"model", "set"}, strings.Fields(words)...)...)
		if c.code == exitDone || c.out != "" || !strings.Contains(c.err, want) || strings.Contains(c.err, "sk-something") {
			t.Errorf("model set %s: exit %d, %s%s, want %q", words, c.code, c.out, c.err, want)
		}
	}
	r.tai("model", "use").fails(exitUsage, "name a model, or --none")
	r.tai("model", "use", "x", "--none").fails(exitUsage, "name a model, or --none")
	r.tai("model", "remove", "x").fails(exitFailed, "not found")
	r.tai("model", "list").done("no model is set or found")
	r.tai("model", "set", "x", "--base-url", "http://gpu.example/v1", "--model", "m", "--key", "env:K").errHas("not https")
	r.tai("model", "set", "claude", "--provider", "anthropic").done("claude: stored")
	r.tai("model", "use", "claude").done("claude: in use")
	r.tai("hello").fails(exitUsage, "model claude cannot be used", "ANTHROPIC_API_KEY", "tai model use --none")
	r.tai("model", "test", "x").fails(exitUsage, "variable K, which is not set")
	r.tai("model", "use", "--none").done("no stored model")
	r.env = []string{"GROQ_API_KEY=g", "TAI_API_KEY=t"}
	r.tai("hello").fails(exitUsage, "TAI_API_KEY is set without TAI_BASE_URL")
}

// A model that answers and calls no tool is told of as such; one that does not answer fails with the reason and the way out.
func TestModelTestFinds(t *testing.T) {
	t.Parallel()
	whole := chatStatus(200, "application/json", `{"choices":[{"message":{"content":"ready"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`)
	for name, tc := range map[string]struct {
		answers []func(http.ResponseWriter)
		want    []string
		code    int
	}{
		"no tools":     {[]func(http.ResponseWriter){whole}, []string{"streaming  no", "tools      no  it called no tool"}, 0},
		"wrong tool":   {[]func(http.ResponseWriter){whole, chatStream(50, chatCall(0, "c", "sum", `{}`), chatStop("tool_calls"))}, []string{"called the tool wrongly: sum"}, 0},
		"refuses them": {[]func(http.ResponseWriter){whole, chatStatus(400, "application/json", `{"error":{"message":"m does not support tools"}}`)}, []string{"tools      no", "does not support tools"}, 0},
		"no answer":    {[]func(http.ResponseWriter){chatStatus(401, "application/json", `{"error":{"message":"bad key `+modelTestKey+`"}}`)}, []string{"HTTP 401: bad key [secret:", "hint: check TAI_API_KEY"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFakeModel(t, tc.answers...)
			r := newCLIRig(t)
			r.env = []string{"TAI_BASE_URL=" + m.URL + "/v1", "TAI_MODEL=m", "TAI_API_KEY=" + modelTestKey}
			c := r.tai("model", "test")
			for _, want := range tc.want {
				if c.code != tc.code || !strings.Contains(c.out+c.err, want) {
					t.Errorf("exit %d, no %q in %s%s", c.code, want, c.out, c.err)
				}
			}
			c.hides(modelTestKey)
		})
	}
}

// A model of this machine is used when nothing else is set, and the person is told which.
func TestModelOnThisMachine(t *testing.T) {
	t.Parallel()
	model := newFakeModel(t, chatStream(50, chatText("Hello."), chatStop("stop")))
	both := fakeLocal(t, `{"data":[{"id":"m-local"}]}`)
	front := http.NewServeMux()
	front.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) { both.Config.Handler.ServeHTTP(w, r) })
	front.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { model.Config.Handler.ServeHTTP(w, r) })
	host := httptest.NewServer(front)
	defer host.Close()
	srv := host.URL
	r := newCLIRig(t)
	r.env = []string{"TAI_LOCAL_MODELS=", "OLLAMA_HOST=" + srv}
	c := r.tai("hello")
	c.done("Hello.")
	c.errHas("talking to m-local at "+srv+"/v1", "found on this machine")
	if r.env[0] = "TAI_LOCAL_MODELS=off"; r.tai("hello").code != exitUsage {
		t.Error("it is looked for although that is turned off")
	}
}

func TestModelListTool(t *testing.T) {
	t.Parallel()
	r := newCLIRig(t)
	r.env = []string{"GROQ_API_KEY=" + modelTestKey}
	r.tai("model", "set", "mine", "--base-url", "http://127.0.0.1:9/v1", "--model", "m\x1b[1m", "--context", "77").ok()
	c := r.tai("tools", "call", "model_list")
	c.done("mine  m", "stored  77 tokens", "groq  openai/gpt-oss-120b  environment  131072 tokens  in use")
	c.hides(modelTestKey)
	c.hides("127.0.0.1")
	c.hides("\x1b[1m")
	r.tai("tools", "call", "model_list", "provider=groq").done("groq  openai")
	if got := r.tai("tools", "call", "model_list", "provider=groq").ok(); strings.Contains(got, "mine") {
		t.Errorf("of one provider: %s", got)
	}
	r.tai("tools", "call", "model_list", "provider=nobody").done("no model of nobody is set or found")
	if c := r.tai("tools", "call", "model_list", "provider=7"); c.code == exitDone && !strings.Contains(c.out+c.err, "no model of 7") {
		t.Errorf("a number: %s%s", c.out, c.err)
	}
	if c := r.tai("tools", "call", "model_list", "vendor=x"); c.code == exitDone {
		t.Errorf("an unknown argument is taken: %s", c.out)
	}
	var doc struct {
		Structured struct {
			Models []struct {
				Name, Model, Source string
				Context             int
				InUse               bool `json:"in_use"`
			}
			LeftOut int `json:"left_out"`
		} `json:"structuredContent"`
	}
	out := r.tai("tools", "call", "model_list", "--json").ok()
	if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Structured.Models) != 2 || !doc.Structured.Models[1].InUse || doc.Structured.Models[0].Context != 77 {
		t.Errorf("%v: %s", err, out)
	}
}
