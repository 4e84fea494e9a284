package sandbox

import (
	"syscall"
	"time"
)

// EndGrace is how long a process may take from where it can be heard of no more to its
// end, which takes seconds on a busy machine; a cell's own time is up sooner.
const EndGrace = 10 * time.Second

// Pause stops the child and all that it has started until Resume: what a guest left
// going on, or goes on with after it claimed that its cell has ended, gets no
// time between two cells.
func (c *Child) Pause() {
	c.paused.Store(true)
	c.signal(syscall.SIGSTOP)
}

// Resume lets a paused child go on.
func (c *Child) Resume() {
	c.paused.Store(false)
	c.signal(syscall.SIGCONT)
}

func (c *Child) signal(signal syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exited {
		return
	}
	_ = syscall.Kill(-c.pid(), signal) // ESRCH: it has just ended
	// What left the group. What it starts before it is stopped is met in the next
	// round; what goes on was all there in the first.
	told := map[int]bool{}
	for range stopRounds {
		before := len(told)
		for _, pid := range c.processes() {
			if !told[pid] {
				told[pid] = true
				_ = syscall.Kill(pid, signal)
			}
		}
		if signal != syscall.SIGSTOP || len(told) == before {
			return
		}
	}
}

// stopRounds is how often what a child has started is looked for, to be stopped: it
// may be at work to have as many processes as it can.
const stopRounds = 100

// Usage is the processor time that the child has had, 0 where the system does
// not tell, and the largest resident size that it had, in bytes.
func (c *Child) Usage() (cpu time.Duration, peak int64) {
	select {
	case <-c.done: // its process ID may be another's
		return c.end.cpu, c.end.peak
	default:
		_, _ = c.meter.see(c.pid())
		return cpuTime(c.pid()), c.meter.seen()
	}
}
