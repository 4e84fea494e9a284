package cachetest

import (
	"os"
	"testing"
)

// Long says that this is scripts/test --long: random tests go on as long as they
// can be waited for overnight.
func Long() bool { return os.Getenv("RILLBOX_TEST_LONG") != "" }

// Rounds is how often a test that works by chance tries: few with -short, many
// when it is Long.
func Rounds(short, usual, long int) int {
	switch {
	case Long():
		return long
	case testing.Short():
		return short
	}
	return usual
}
