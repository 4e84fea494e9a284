package sandbox

import (
	"io"
	"testing"
	"time"

	"rillbox/supervisor/job"
)

func TestProcessorTimeIsLimited(t *testing.T) {
	if !TellsCPU {
		t.Skip("the system does not tell how much is used")
	}
	limits := job.DefaultLimits()
	limits.CPUTime = 300 * time.Millisecond
	const reason = "the program used more than its 0.3 s of processor time"
	for _, role := range []string{"burn", "delegate"} { // a process, and what it has started
		t.Run(role, func(t *testing.T) {
			c := start(t, limits, nil, role)
			if role == "delegate" && c.group == nil {
				t.Skip("no cgroups here")
			}
			c.Attach(t.Context(), func(job.Event) {})
			c.SetDeadline(30*time.Second, "the test")
			c.LimitCPU("the program", func(reason string) { c.Kill(job.TimedOut, reason) })
			_, _ = io.ReadAll(c.Frames())
			if exit := c.Wait(); exit.Status != job.TimedOut || exit.Reason != reason {
				t.Errorf("%s %q", exit.Status, exit.Reason)
			}
		})
	}
	c := start(t, limits, nil, "sleep")
	c.Attach(t.Context(), func(job.Event) {})
	c.LimitCPU("the program", func(reason string) { c.Kill(job.TimedOut, reason) })
	select {
	case <-c.Ended():
		t.Errorf("a program that waits was ended: %+v", c.Wait())
	case <-time.After(2 * limits.CPUTime):
	}
}
