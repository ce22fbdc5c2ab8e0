package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestSecretNeverPrints(t *testing.T) {
	s := secret("hunter-two-value")
	marshalled, err := json.Marshal(map[string]any{"s": s, "p": &s})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{
		fmt.Sprint(s), fmt.Sprintf("%s %v %+v %#v %q %x %d", s, s, s, s, s, s, s), fmt.Sprintf("%v", struct{ S secret }{s}), string(marshalled),
		fmt.Errorf("bad %w", fmt.Errorf("%v", s)).Error(),
	} {
		if strings.Contains(got, "hunter") || strings.Contains(got, "68756e746572") {
			t.Errorf("printed a secret: %s", got)
		}
	}
	if s.reveal() != "hunter-two-value" {
		t.Errorf("reveal = %q", s.reveal())
	}
}
