package sandbox

import (
	"fmt"
	"time"

	"rillbox/supervisor/job"
)

// How often a child is looked at: its memory while it works (a guest that
// writes to new memory as fast as it can gets some 100 MB further meanwhile),
// its directories in every diskLooks-th look, and all of it while nobody has
// asked it for anything, as a warm worker or a session between two cells.
const (
	BusyInterval = 20 * time.Millisecond
	DiskLooks    = 5
	idleInterval = 500 * time.Millisecond
)

// watch ends the child when it uses more than it may.
func (c *Child) watch() {
	defer c.looks.Stop()
	for look := 1; ; look++ {
		select {
		case <-c.done:
			return
		case <-c.looks.C:
		}
		if used, ok := c.meter.see(c.pid()); ok && used > c.limits.Memory {
			c.Kill(job.OutOfMemory, fmt.Sprintf("the program used more than its %d MiB of memory", c.limits.Memory>>20))
		}
		c.checkCPU()
		if look%DiskLooks == 0 && !c.paused.Load() { // what it shares with others may be theirs to answer for
			c.checkDisk()
		}
	}
}

// Memory is how many bytes the child uses now, what it shares with others left
// out; 0 when it has ended.
func (c *Child) Memory() int64 {
	select {
	case <-c.done:
		return 0 // its process ID may be another's
	default:
		now, _ := readMemory(c.pid())
		return now.own
	}
}
