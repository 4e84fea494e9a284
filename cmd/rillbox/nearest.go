//go:build !windows

package main

import (
	"fmt"

	"rillbox/supervisor/job"
)

// didYouMean suggests the nearest of some words for one that is none of them; it is
// empty when none is near.
func didYouMean(word string, known []string) string {
	best := job.Nearest(word, known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}
