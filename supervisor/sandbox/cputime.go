package sandbox

import (
	"fmt"
	"time"
)

// allowance is the processor time that a guest may still use.
type allowance struct {
	until time.Duration // of what the child has used
	over  func(reason string)
	what  string
}

// LimitCPU has over called, once, with a sentence that says so, when the child and
// what it has started have used more than Limits.CPUTime from now on; nothing where
// that is 0. It replaces the limit before, and over = nil ends it. what names what
// uses the time: "the program".
func (c *Child) LimitCPU(what string, over func(reason string)) {
	if c.limits.CPUTime == 0 {
		return
	}
	until := c.spent() + c.limits.CPUTime
	c.mu.Lock()
	defer c.mu.Unlock()
	c.allowed = allowance{until, over, what}
}

// checkCPU enforces LimitCPU.
func (c *Child) checkCPU() {
	c.mu.Lock()
	a := c.allowed
	c.mu.Unlock()
	if a.over == nil || c.spent() <= a.until {
		return
	}
	c.mu.Lock()
	c.allowed.over = nil
	c.mu.Unlock()
	a.over(fmt.Sprintf("%s used more than its %v s of processor time", a.what, c.limits.CPUTime.Seconds()))
}
