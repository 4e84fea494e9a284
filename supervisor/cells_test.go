//go:build !windows

package supervisor

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// TestAPausedChildGetsNoTime: between two cells nothing of a session's runs, and
// it can be ended there.
func TestAPausedChildGetsNoTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell how much time a process has had")
	}
	c := start(t, DefaultLimits(), nil, "burn")
	c.Attach(context.Background(), func(Event) {})
	uses := func(d time.Duration) bool {
		before, _ := c.Usage()
		time.Sleep(d)
		after, _ := c.Usage()
		return after > before
	}
	for !uses(time.Millisecond) { // until it has begun
	}
	c.Pause()
	for uses(20 * time.Millisecond) { // the signal arrives
	}
	if _, peak := c.Usage(); peak == 0 {
		t.Error("its memory is not known")
	}
	c.Resume()
	for !uses(time.Millisecond) {
	}
	c.Pause()
	c.Kill(Cancelled, "enough")
	if exit := c.Wait(); exit.Status != Cancelled {
		t.Errorf("it ended as %s", exit.Status)
	}
	if cpu, _ := c.Usage(); cpu == 0 {
		t.Error("the time of an ended child is not known")
	}
	c.Resume()
}
