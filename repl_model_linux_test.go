package main

import (
	"strings"
	"testing"
)

// A prompt without a model says in three lines what it looked for; one that is stored and chosen there answers, and another one after it goes
// on with the same conversation.
func TestREPLPtyModel(t *testing.T) {
	first := newFakeModel(t, chatStream(50, chatText("The first says hello."), chatStop("stop")))
	second := newFakeModel(t, claudeStream(50, append(claudeText(0, "The second goes on."), claudeStop("end_turn"), claudeEnd)...))
	r := newCLIRig(t)
	c := r.pty(t, newTermPty(t), true)
	c.await(replPrompt)
	notice := strings.SplitAfter(c.screen.String(), "\r\n")
	if len(notice) != 5 || !strings.HasPrefix(notice[1], "No model: none in use, no TAI_BASE_URL, no key; TAI_LOCAL_MODELS is off.") || !strings.Contains(notice[2], "ANTHROPIC_API_KEY") || !strings.Contains(notice[3], "/model set NAME") {
		t.Errorf("the notice is\n%s", &c.screen)
	}
	for _, line := range notice {
		if textWidth(strings.TrimSpace(line)) > 80 {
			t.Errorf("wider than 80 columns: %q", line)
		}
	}
	c.keys("/model set one --base-url " + first.URL + "/v1 --model m\n")
	c.await("one: stored")
	c.await(replPrompt)
	c.keys("/model use one\n")
	c.await("one: in use")
	c.await(replPrompt)
	c.keys("hello\n")
	c.await("The first says hello.")
	c.await(replPrompt)
	c.keys("/model set two --provider anthropic --base-url " + second.URL + " --model m\n")
	c.await("two: stored")
	c.await(replPrompt)
	c.keys("/model use two\n")
	c.await("two: in use")
	c.await(replPrompt)
	c.keys("and now?\n")
	c.await("The second goes on.")
	c.await(replPrompt)
	c.keys("/exit\n")
	c.exit(exitDone)
	if second.seen() != 1 || !strings.Contains(string(second.requests[0]), "The first says hello.") {
		t.Errorf("the second model was told %q", second.requests)
	}
	again := r.pty(t, newTermPty(t), true)
	again.await(replPrompt)
	if strings.Contains(again.screen.String(), "No model") {
		t.Errorf("the screen shows %s", &again.screen)
	}
	again.keys("/exit\n")
	again.exit(exitDone)
}
