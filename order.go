// This file sorts lists where the time does not count. It knows nothing of what they hold.
package main

import "sort"

// sortBy sorts a list in place and keeps equal elements in their order, as slices.SortStableFunc does, but through one compiled sort for all types:
// that one makes some 15 KB of program for each.
func sortBy[T any](list []T, compare func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return compare(list[i], list[j]) < 0 })
}
