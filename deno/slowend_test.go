//go:build !windows

package deno_test

import (
	"testing"
	"time"

	"rillbox/supervisor/job"
)

// TestASlowEndIsTheProgramsOwn: on a busy machine a process may take seconds between
// the end of its inspector's connection and its own; this one takes two.
func TestASlowEndIsTheProgramsOwn(t *testing.T) {
	s := openSession(t, newEngine(t, ""), job.JavaScript)
	r := s.cell(`process.getBuiltinModule("inspector").close(); for (const until = Date.now() + 2000; Date.now() < until;); Deno.exit(3)`)
	if r.Status != job.Failed || r.ExitCode != 3 || r.State != job.StateLost {
		t.Errorf("it ends as %s with %d: %+v", r.Status, r.ExitCode, r.Error)
	}
	s = openSession(t, newEngine(t, ""), job.JavaScript)
	r = s.run(job.Program{Code: `process.getBuiltinModule("inspector").close(); for (;;);`, Timeout: time.Second})
	if r.Status != job.TimedOut || r.State != job.StateLost {
		t.Errorf("without an end it ends as %s: %+v", r.Status, r.Error)
	}
}
