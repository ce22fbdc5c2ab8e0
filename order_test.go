package main

import (
	"slices"
	"strings"
	"testing"
)

func TestSortBy(t *testing.T) {
	type item struct{ key, mark string }
	list := []item{{"b", "1"}, {"a", "1"}, {"b", "2"}, {"a", "2"}, {"c", "1"}, {"b", "3"}}
	want := slices.Clone(list)
	compare := func(a, b item) int { return strings.Compare(a.key, b.key) }
	slices.SortStableFunc(want, compare)
	sortBy(list, compare)
	if !slices.Equal(list, want) {
		t.Errorf("got %v, want %v", list, want)
	}
}
