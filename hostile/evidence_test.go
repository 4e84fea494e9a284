//go:build !windows

package hostile

import (
	"strings"
	"time"

	"rillbox/supervisor/job"
)

// crash is for attacks that may end their own process by a signal.
var crash = []job.Status{job.Crashed}

// contains says that a text is in what the program printed, its value or its error.
func contains(o outcome, text string) bool { return strings.Contains(o.text(), text) }

// settle gives what the attack set off the time to be noticed.
func settle(s *scene, _ outcome) string {
	for range 20 {
		s.mu.Lock()
		happened := len(s.happened)
		s.mu.Unlock()
		if happened > 0 {
			return "something happened in the scene"
		}
		time.Sleep(10 * time.Millisecond)
	}
	return ""
}
