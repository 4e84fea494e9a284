package supervisor

import (
	"cmp"
	"time"

	"rillbox/supervisor/job"
)

// Terms are what the operator allows one client. What is zero or nil is as the Limits
// have it, for all clients.
type Terms struct {
	// Sessions is how many it may have, Running how many runs at once, Waiting how many
	// may queue.
	Sessions, Running, Waiting int
	// Timeout is the most that a program may ask for.
	Timeout time.Duration
	// Permissions are the most that its programs in a language may have, as Deno flags; an
	// empty list is for none.
	Permissions map[job.Language][]string
	// Policy is which packages its programs may use.
	Policy job.PackagePolicy
}

// SetTerms has of asked for a client's terms each time they matter. It must be called
// before the first run, and of must not call back.
func (s *Supervisor) SetTerms(of func(client string) Terms) { s.terms = of }

// TermsOf are a client's, complete.
func (s *Supervisor) TermsOf(client string) Terms {
	var t Terms
	if s.terms != nil {
		t = s.terms(client)
	}
	t.Sessions = cmp.Or(t.Sessions, s.limits.Sessions)
	t.Running, t.Waiting = cmp.Or(t.Running, s.limits.ClientRunning), cmp.Or(t.Waiting, s.limits.ClientWaiting)
	if t.Timeout == 0 || t.Timeout > s.limits.MaxTimeout {
		t.Timeout = s.limits.MaxTimeout
	}
	return t
}

func (s *Supervisor) mostOf(client string) (running, waiting int) {
	t := s.TermsOf(client)
	return t.Running, t.Waiting
}
