package modules

import (
	"regexp"
	"sync"
)

// Pattern compiles a regular expression when it is first asked for: every start
// of our binary would pay for it otherwise, those of scanners included.
func Pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
