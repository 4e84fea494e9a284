package supervisor

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"rillbox/supervisor/job"
)

// TestTermsAreOneClients: what the operator allows a client bounds its programs and
// sessions, and no other client's.
func TestTermsAreOneClients(t *testing.T) {
	var ran job.Program
	own := job.PackagePolicy{DenyPackages: []string{"evil"}, CacheOnly: true}
	s := newTestSupervisor(func(_ context.Context, p job.Program, _ func(job.Event)) (job.Result, error) {
		ran = p
		return job.Result{Status: job.Completed}, nil
	})
	s.SetTerms(func(client string) Terms {
		if client != "narrow" {
			return Terms{}
		}
		return Terms{Sessions: 1, Policy: own, Timeout: time.Second, Permissions: map[job.Language][]string{job.Python: {"--allow-env=A"}}}
	})
	run := func(client string, timeout time.Duration) error {
		_, err := s.Run(t.Context(), job.Program{Language: job.Python, Timeout: timeout}, Call{Client: client, Streams: quiet})
		return err
	}
	if err := run("narrow", 2*time.Second); err == nil || !strings.Contains(err.Error(), "between 0 and 1s") {
		t.Errorf("more time than it may have: %v", err)
	}
	if err := run("narrow", 0); err != nil || ran.Timeout != time.Second || len(ran.Most) != 1 || !reflect.DeepEqual(ran.Policy, own) {
		t.Errorf("%v: the program has %v and at most %q", err, ran.Timeout, ran.Most)
	}
	if err := run("other", 2*time.Second); err != nil || ran.Timeout != 2*time.Second || ran.Most != nil || !reflect.DeepEqual(ran.Policy, job.PackagePolicy{}) {
		t.Errorf("%v: the other's has %v and at most %q", err, ran.Timeout, ran.Most)
	}
	for client, want := range map[string]bool{"narrow": false, "other": true} {
		_, first := s.EnsureSession(client, "a")
		_, second := s.EnsureSession(client, "b")
		if first != nil || (second == nil) != want {
			t.Errorf("sessions of %s: %v, %v", client, first, second)
		}
		s.EndClient(client)
	}
}

// TestASessionsProcessHasItsClientsMost: whatever the session asks for narrows it further.
func TestASessionsProcessHasItsClientsMost(t *testing.T) {
	s, opened := withCells(t)
	s.SetTerms(func(string) Terms {
		return Terms{Permissions: map[job.Language][]string{job.Python: {}}, Policy: job.PackagePolicy{CacheOnly: true}}
	})
	id := create(t, s, "a")
	cell(t, s, "a", id, "1")
	if o := opened.opened[0].options; o.Most == nil || len(o.Most) != 0 || !o.Policy.CacheOnly {
		t.Errorf("it was opened with %+v", o)
	}
}
