// This file sorts and sifts lists where the time does not count. It knows nothing of what they hold.
package main

import "sort"

// sortBy sorts a list in place and keeps equal elements in their order, as slices.SortStableFunc does, but through one compiled sort for all types:
// that one makes some 15 KB of program for each.
func sortBy[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}

// without gives the elements of a list that are not gone, in a list of their own, as slices.DeleteFunc of a clone does in more program.
func without[T any](list []T, gone func(T) bool) []T {
	kept := list[:0:0]
	for _, x := range list {
		if !gone(x) {
			kept = append(kept, x)
		}
	}
	return kept
}
