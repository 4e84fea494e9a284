//go:build !windows

package main

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// didYouMean suggests the nearest of some words for one that is none of them; it is
// empty when none is near. Two letters in the wrong order count as two mistakes.
func didYouMean(word string, known []string) string {
	best, least := "", 3
	if len(word) < 4 {
		least = 2
	}
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}
