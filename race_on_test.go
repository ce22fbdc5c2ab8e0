//go:build race

package main

// raceScale divides the size of tests that only compute, one step after the other: there is nothing in them for the race detector to find.
const raceScale = 5
