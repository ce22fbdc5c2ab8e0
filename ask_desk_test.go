package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// deskPrompter writes down who asked and says yes.
type deskPrompter struct {
	mu    sync.Mutex
	asked []string
	hold  chan struct{} // the foreground's question waits for it
}

func (p *deskPrompter) confirm(ctx context.Context, c consent) (consentAnswer, error) {
	p.mu.Lock()
	p.asked = append(p.asked, c.Asker)
	p.mu.Unlock()
	if c.Asker == "" && p.hold != nil {
		<-p.hold
	}
	if err := ctx.Err(); err != nil {
		return consentAnswer{}, err
	}
	return consentAnswer{Key: choiceYes}, nil
}

// Questions of the background wait for serve, in their order; those of the foreground do not wait for them.
func TestDeskTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(nil, func(string) {}, func(s string) string { return strings.ReplaceAll(s, "hush", "[secret]") })
		p := &deskPrompter{}
		pol := newPolicy(policyConfig{Mode: modePrompt, Prompter: p, Turn: d.turn, Redact: d.mask})
		ask := func(ctx context.Context) decision {
			got, err := pol.approve(ctx, policyRequest{Tool: "x", Destructive: true, Args: json.RawMessage(`{}`)})
			if err != nil {
				got.Reason += err.Error()
			}
			return got
		}
		back := func(id string) context.Context {
			return withAsker(t.Context(), askerInfo{ID: id, Name: "agent " + id + " hush", Background: true})
		}
		if got := ask(back("a-0")); got.Rule != ruleNobody {
			t.Errorf("without a prompt: %+v", got)
		}
		d.attend(true)
		var wg sync.WaitGroup
		results := make([]decision, 2)
		for i, id := range []string{"a-1", "a-2"} {
			wg.Go(func() { results[i] = ask(back(id)) })
			synctest.Wait()
		}
		if !d.asking("a-1") || !d.asking("a-2") || len(p.asked) > 0 {
			t.Errorf("asked %q", p.asked)
		}
		if got := ask(t.Context()); !got.Allow { // of the turn that runs meanwhile
			t.Errorf("foreground: %+v", got)
		}
		if told := d.told(); len(told) > 0 { // whoever is asked at once need not be told that there is a question
			t.Errorf("told %q", told)
		}
		if told := d.typing(); len(told) != 2 || !strings.HasPrefix(told[0], "agent a-1 [secret] has a question") || len(d.typing()) > 0 {
			t.Errorf("told while typing: %q", told)
		}
		for d.serve(t.Context()) {
		}
		wg.Wait()
		if want := []string{"", "agent a-1 [secret]", "agent a-2 [secret]"}; !slices.Equal(p.asked, want) || !results[0].Allow || !results[1].Allow {
			t.Errorf("asked %q, want %q, %+v", p.asked, want, results)
		}

		gave, stop := context.WithCancel(t.Context())
		stop()
		wg.Go(func() { results[0] = ask(back("a-3")) })
		synctest.Wait()
		if !d.serve(gave) || d.serve(t.Context()) { // an interrupt gives up that question alone
			t.Error("nothing was served, or too much")
		}
		wg.Wait()
		if results[0].Allow || results[0].Rule != ruleRefused {
			t.Errorf("given up: %+v", results[0])
		}

		ctx, cancel := context.WithCancel(back("a-4"))
		wg.Go(func() { results[0] = ask(ctx) })
		wg.Go(func() { results[1] = ask(back("a-5")) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		if d.asking("a-4") || !d.asking("a-5") {
			t.Error("who has gone still waits")
		}
		d.attend(false)
		wg.Wait()
		if results[0].Rule != ruleRefused || results[1].Rule != ruleNobody {
			t.Errorf("%+v", results)
		}
	})
}

// Two of the foreground never ask at once.
func TestDeskOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(nil, func(string) {}, func(s string) string { return s })
		p := &deskPrompter{hold: make(chan struct{})}
		pol := newPolicy(policyConfig{Mode: modePrompt, Prompter: p, Turn: d.turn})
		var wg sync.WaitGroup
		for _, args := range []string{`{"n":1}`, `{"n":2}`} {
			wg.Go(func() {
				if got, err := pol.approve(t.Context(), policyRequest{Tool: "x", Destructive: true, Args: json.RawMessage(args)}); err != nil || !got.Allow {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
		synctest.Wait()
		if len(p.asked) != 1 {
			t.Errorf("%d questions at once", len(p.asked))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errSubStopped)
		if _, _, err := d.turn(ctx); !errors.Is(err, errSubStopped) {
			t.Errorf("%v", err)
		}
		close(p.hold)
		wg.Wait()
	})
}

// Without a prompt news are shown at once, with one they wait; too many are counted.
func TestDeskNews(t *testing.T) {
	var shown []string
	d := newDesk(nil, func(s string) { shown = append(shown, s) }, func(s string) string { return s })
	d.post("one\x1b[2J")
	d.attend(true)
	for range deskNewsMax + 2 {
		d.post("more")
	}
	if told := d.told(); len(shown) != 1 || strings.Contains(shown[0], "\x1b") || len(told) != deskNewsMax+1 || told[deskNewsMax] != "2 more lines left out" {
		t.Errorf("shown %q, %d told, the last %q", shown, len(told), told[len(told)-1])
	}
}
