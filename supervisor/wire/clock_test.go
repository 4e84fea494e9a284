//go:build !windows

package wire

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

// TestCellClock: what interrupts a cell first says why.
func TestCellClock(t *testing.T) {
	for name, tc := range map[string]struct {
		during func(cancel func(), c *CellClock)
		status job.Status
		reason string
	}{
		"ends in time":       {func(func(), *CellClock) {}, "", ""},
		"takes too long":     {func(func(), *CellClock) { time.Sleep(3 * time.Second) }, job.TimedOut, "the cell took longer than 2s"},
		"is cancelled":       {func(cancel func(), _ *CellClock) { cancel() }, job.Cancelled, "the cell was cancelled"},
		"is cancelled later": {func(cancel func(), _ *CellClock) { time.Sleep(3 * time.Second); cancel() }, job.TimedOut, "the cell took longer than 2s"},
		"has a new limit": {func(_ func(), c *CellClock) {
			c.Limit(time.Minute, "package installation")
			time.Sleep(30 * time.Second)
		}, "", ""},
		"exceeds it": {func(_ func(), c *CellClock) {
			c.Limit(time.Minute, "package installation")
			time.Sleep(time.Hour)
		}, job.TimedOut, "package installation took longer than 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := NewCellClock(ctx, new(sandbox.Child))
				c.Limit(2*time.Second, "the cell")
				tc.during(cancel, c)
				synctest.Wait()
				if interrupted := c.Err() != nil; interrupted != (tc.status != "") {
					t.Errorf("interrupted: %v", interrupted)
				}
				c.Stop()
				if status, reason := c.Interruption(); status != tc.status || reason != tc.reason {
					t.Errorf("%s, %q", status, reason)
				}
			})
		})
	}
}
