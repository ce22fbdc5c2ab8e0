// This file carries with a context who asks the person. A question is put by whatever stands at the end of a call, and only its context has
// come all the way. It asks nobody.
package main

import (
	"context"
	"errors"
)

// errNobodyAsked ends a question that can never be put: nobody sits where it would appear.
var errNobodyAsked = errors.New("no person can be asked here")

// askerInfo is who asks. Name is for the person and holds what a model wrote, in quotes; it is "" for the agent that the person talks to. Background:
// nobody waits for its answer, so that its questions wait for a moment when they disturb nothing.
type askerInfo struct {
	ID, Name   string
	Background bool
}

type askerKey struct{}

func withAsker(ctx context.Context, a askerInfo) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// askerOf is the zero value where nobody was named.
//
//go:noinline for size: it is called in many places
func askerOf(ctx context.Context) askerInfo {
	a, _ := ctx.Value(askerKey{}).(askerInfo)
	return a
}
