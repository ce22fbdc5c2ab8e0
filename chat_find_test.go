package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeLocal is a server of models on this machine; it answers its list and nothing else.
func fakeLocal(t *testing.T, body string) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "" {
			http.Error(w, "wrong door", http.StatusTeapot)
			return
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv
}

const localModels = `{"object":"list","data":[{"id":"nomic-embed-text:latest","object":"model","created":1,"owned_by":"library"},{"id":"qwen3:8b","owned_by":"library"},{"id":"llama4:8b","owned_by":"library"}]}`

func newFinder(t *testing.T, env map[string]string) (*modelFinder, *vault) {
	t.Helper()
	v := vaultAt(t, t.TempDir())
	return &modelFinder{
		Getenv: func(name string) string { return env[name] },
		Vault:  func(context.Context) (*vault, error) { return v, nil },
		HTTP:   newHTTPClient(httpClientConfig{}),
	}, v
}

// The model is found in the order that mcp.md has: chosen, TAI_BASE_URL, a variable, a secret, this machine.
func TestModelFound(t *testing.T) {
	t.Parallel()
	env := map[string]string{"OLLAMA_HOST": fakeLocal(t, localModels).URL}
	f, v := newFinder(t, env)
	want := func(what, name, source, model, key, from string) {
		t.Helper()
		m, err := f.inUse(t.Context())
		if err != nil || m.Name != name || m.Source != source || m.Endpoint.Model != model || m.Endpoint.Key.reveal() != key || m.Endpoint.KeyFrom != from || !m.InUse {
			t.Errorf("%s: got %+v with key %q, %v", what, m, m.Endpoint.Key.reveal(), err)
		}
		list, err := f.all(t.Context())
		used := slices.DeleteFunc(list, func(m foundModel) bool { return !m.InUse })
		if err != nil || len(used) != 1 || used[0].Name != name || used[0].Source != source {
			t.Errorf("%s: the list marks %+v, %v", what, used, err)
		}
	}
	want("this machine", "ollama", foundLocal, "qwen3:8b", "", "")
	env["TAI_MODEL"] = "llama4:8b"
	want("this machine, another one", "ollama", foundLocal, "llama4:8b", "", "")
	delete(env, "TAI_MODEL")

	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(v.putSecret(t.Context(), "", "XAI_API_KEY", "x-key\n", nil))
	must(v.putSecret(t.Context(), "work", "ANTHROPIC_API_KEY", "of a profile", nil))
	want("a secret", "xai", foundSecret, "grok-4.6", "x-key", "secret XAI_API_KEY")
	env["GROQ_API_KEY"] = "g-key"
	want("a variable", "groq", foundEnv, "openai/gpt-oss-120b", "g-key", "GROQ_API_KEY")
	env["TAI_BASE_URL"], env["TAI_MODEL"] = "http://127.0.0.1:9/v1", "m"
	want("an address", "custom", foundEnv, "m", "", "")

	for _, m := range []storedModel{
		{Name: "a", Provider: "xai", Model: "grok-x", Context: 9, MaxTokens: 7},
		{Name: "b", Provider: "xai", BaseURL: "http://127.0.0.1:9/v1", Model: "grok-x"},
		{Name: "c", BaseURL: "http://127.0.0.1:9/v1", Model: "x", Key: "env:C_KEY"},
		{Name: "d", Provider: "anthropic", BaseURL: "http://127.0.0.1:9", Model: "x", Key: "secret:XAI_API_KEY"},
		{Name: "e", Provider: "openai", Model: "x"},
	} {
		must(v.putModel(t.Context(), m))
	}
	env["C_KEY"] = "c-key"
	must(v.useModel(t.Context(), "a"))
	want("stored, the usual secret", "a", foundStored, "grok-x", "x-key", "secret XAI_API_KEY")
	if m, err := f.inUse(t.Context()); err != nil || m.Endpoint.Context != 9 || m.Endpoint.MaxTokens != 7 {
		t.Errorf("bounds: got %+v, %v", m.Endpoint, err)
	}
	must(v.useModel(t.Context(), "b")) // R9: the usual key stays with the provider's own address
	want("stored, another address", "b", foundStored, "grok-x", "", "")
	must(v.useModel(t.Context(), "c"))
	want("stored, a variable", "c", foundStored, "x", "c-key", "C_KEY")
	must(v.useModel(t.Context(), "d"))
	want("stored, a secret", "d", foundStored, "x", "x-key", "secret XAI_API_KEY")
	if m, err := f.inUse(t.Context()); err != nil || m.Endpoint.Wire != wireAnthropic || m.Endpoint.BaseURL != "http://127.0.0.1:9/v1" {
		t.Errorf("the provider's wire at another address: got %+v, %v", m.Endpoint, err)
	}
	must(v.useModel(t.Context(), "e")) // nothing else is taken in its place
	m, err := f.inUse(t.Context())
	if ce, ok := errors.AsType[*chatError](err); !ok || ce.Fault != faultKey || !strings.Contains(ce.Message, "OPENAI_API_KEY") || !strings.Contains(ce.Hint, "tai model use") {
		t.Errorf("a choice without its key: got %+v, %v", m, err)
	}
	must(v.removeModel(t.Context(), "e"))
	want("removed", "custom", foundEnv, "m", "", "")
	if _, err := f.named(t.Context(), "zz"); !errors.Is(err, errNotFound) {
		t.Errorf("an unknown name: %v", err)
	}
	for name, key := range map[string]string{"c": "c-key", "xai": "x-key", "groq": "g-key", "ollama": ""} {
		if m, err := f.named(t.Context(), name); err != nil || m.Endpoint.Key.reveal() != key {
			t.Errorf("named %s: got %+v, %v", name, m, err)
		}
	}
	list, err := f.all(t.Context())
	var names []string
	for _, m := range list {
		names = append(names, m.Name+" "+m.Source)
	}
	if got, want := strings.Join(names, ", "), "a stored, b stored, c stored, d stored, custom environment, groq environment, xai secret, ollama local, ollama local"; err != nil || got != want {
		t.Errorf("the list is %q, %v, want %q", got, err, want)
	}
}

// Where there is none the search says what it looked for, and a server that hangs or says something else costs no more than its bound.
func TestModelNone(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer slow.Close()
	defer close(hang)
	for name, host := range map[string]string{
		"hangs": slow.URL, "no JSON": fakeLocal(t, "<html>").URL, "no list": fakeLocal(t, `{"data":{}}`).URL, "names that are none": fakeLocal(t, `{"data":[{"id":7},{"id":""},{"id":"`+strings.Repeat("x", 300)+`"}]}`).URL,
		"odd entries": fakeLocal(t, `{"data":[7]}`).URL, "endless": fakeLocal(t, `{"data":[`+strings.Repeat(" ", 2<<20)+`]}`).URL, "embeddings alone": fakeLocal(t, `{"data":[{"id":"mxbai-Embed"}]}`).URL,
	} {
		f, _ := newFinder(t, map[string]string{"OLLAMA_HOST": host})
		begin := time.Now()
		m, err := f.inUse(t.Context())
		if m.Source == foundLocal && m.Name != "ollama" {
			skipMissing(t, "a server of models runs on this machine: %s", m.line())
		}
		if !errors.Is(err, errNoModel) || !strings.Contains(err.Error(), "TAI_BASE_URL") || !strings.Contains(err.Error(), "on this machine") {
			t.Errorf("%s: got %+v, %v", name, m, err)
		}
		if took := time.Since(begin); took > 20*localTime {
			t.Errorf("%s: the search took %s", name, took)
		}
	}
	f, _ := newFinder(t, map[string]string{"TAI_API_KEY": "k"})
	if _, err := f.inUse(t.Context()); err == nil || errors.Is(err, errNoModel) || !strings.Contains(err.Error(), "TAI_BASE_URL") {
		t.Errorf("a key without its address: %v", err)
	}
}

func TestLocalServers(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"": "http://127.0.0.1:11434/v1", "0.0.0.0": "http://127.0.0.1:11434/v1", ":5000": "http://127.0.0.1:5000/v1", "localhost:5000": "http://localhost:5000/v1", "[::1]:5000": "http://[::1]:5000/v1",
		"[::]:5000": "http://127.0.0.1:5000/v1", "::1": "http://[::1]:11434/v1", "http://127.0.0.1": "http://127.0.0.1:80/v1", "https://127.0.0.1:1/": "https://127.0.0.1:1/v1", ` "127.0.0.1:7" `: "http://127.0.0.1:7/v1",
		"gpu-box:11434": "", "http://10.0.0.7:11434": "", "ftp://127.0.0.1": "",
	} {
		if got := ollamaBase(host); got != want {
			t.Errorf("ollamaBase(%q) = %q, want %q", host, got, want)
		}
	}
	if got := localServers(func(name string) string { return map[string]string{"TAI_LOCAL_MODELS": "OFF"}[name] }); got != nil {
		t.Errorf("turned off: %+v", got)
	}
	for _, s := range localServers(func(string) string { return "" }) {
		e, err := chatEndpoint{BaseURL: s.base, Model: "m"}.checked("", "")
		if err != nil || e.BaseURL != s.base || !strings.Contains(s.base, "127.0.0.1") {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestModelRows(t *testing.T) {
	t.Parallel()
	v := vaultAt(t, t.TempDir())
	ctx := t.Context()
	for _, m := range []storedModel{{Name: "b", Provider: "openai", Model: "x", Key: "env:K", Context: 5, MaxTokens: 6}, {Name: "a", BaseURL: "http://h/v1", Model: "y"}, {Name: "b", Provider: "groq", Model: "z"}} {
		if err := v.putModel(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.useModel(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	list, err := v.models(ctx)
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[0].Current || list[1].Provider != "groq" || list[1].Key != "" || !list[1].Current {
		t.Errorf("got %+v, %v", list, err)
	}
	for _, name := range []string{"", "a/b", ".a", strings.Repeat("x", 65)} {
		if err := v.putModel(ctx, storedModel{Name: name}); err == nil {
			t.Errorf("the name %q is taken", name)
		}
	}
	if err := v.useModel(ctx, "c"); !errors.Is(err, errNotFound) {
		t.Errorf("use of none: %v", err)
	}
	if err := v.removeModel(ctx, "c"); !errors.Is(err, errNotFound) {
		t.Errorf("removal of none: %v", err)
	}
	for i := range modelMax - 2 {
		if err := v.putModel(ctx, storedModel{Name: fmt.Sprintf("m%d", i), Model: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.putModel(ctx, storedModel{Name: "more", Model: "x"}); err == nil || !strings.Contains(err.Error(), "100 models") {
		t.Errorf("one too many: %v", err)
	}
	if err := v.putModel(ctx, storedModel{Name: "b", Model: "x"}); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	for _, u := range []usageRow{{Session: "s-1", Model: "m", Input: 5, Output: 2, Cached: 1, Duration: 1500 * time.Millisecond}, {Session: "s-2", Model: "m"}} {
		if err := v.putUsage(ctx, u); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := v.usage(ctx, "s-1", time.Time{})
	if err != nil || len(rows) != 1 || rows[0].Input != 5 || rows[0].Output != 2 || rows[0].Cached != 1 || rows[0].Duration != 1500*time.Millisecond || rows[0].Time.IsZero() {
		t.Errorf("usage: got %+v, %v", rows, err)
	}
	if rows, err = v.usage(ctx, "", rows[0].Time.Add(time.Hour)); err != nil || len(rows) != 0 {
		t.Errorf("usage of tomorrow: got %+v, %v", rows, err)
	}
}
