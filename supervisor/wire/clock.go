//go:build !windows

package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

// CellClock is the time of a session's cell. As a context it ends when the cell is to be
// interrupted: its time or its processor time is up, or its caller's context has ended.
// Its methods are called from one goroutine.
type CellClock struct {
	context.Context
	caller context.Context
	end    context.CancelCauseFunc
	child  *sandbox.Child
	timer  *time.Timer
	until  time.Time
}

var errStopped = errors.New("the clock was stopped")

// NewCellClock makes the clock of a cell that child runs. Limit must be called before
// other methods.
func NewCellClock(ctx context.Context, child *sandbox.Child) *CellClock {
	c := &CellClock{caller: ctx, child: child}
	c.Context, c.end = context.WithCancelCause(ctx)
	return c
}

// Limit gives the cell a time from now on, in place of the one that it had before. what
// names what it does meanwhile.
func (c *CellClock) Limit(d time.Duration, what string) {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.until = time.Now().Add(d)
	c.timer = time.AfterFunc(d, func() { c.end(fmt.Errorf("%s took longer than %v", what, d)) })
}

// LimitCPU bounds the processor time that the cell uses from now on.
func (c *CellClock) LimitCPU() {
	c.child.LimitCPU("the cell", func(reason string) { c.end(errors.New(reason)) })
}

// Left is what is left of the time; it is negative when that is up.
func (c *CellClock) Left() time.Duration { return time.Until(c.until) }

// Stop ends the clock without an interruption, if there was none.
func (c *CellClock) Stop() {
	c.child.LimitCPU("", nil)
	c.timer.Stop()
	c.end(errStopped)
}

// Interruption is the status that the cell has by its interruption, and the reason; the
// status is empty when there was none.
func (c *CellClock) Interruption() (status job.Status, reason string) {
	switch cause := context.Cause(c); {
	case cause == nil, errors.Is(cause, errStopped):
		return "", ""
	case c.caller.Err() != nil && errors.Is(cause, context.Cause(c.caller)):
		return job.Cancelled, "the cell was cancelled"
	default:
		return job.TimedOut, cause.Error()
	}
}
