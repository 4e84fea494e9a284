//go:build !windows

package supervisor

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// memoryInterval is how often a child's memory is looked at. A guest that
// writes to new memory as fast as it can gets some 100 MB further in that time.
const memoryInterval = 20 * time.Millisecond

// meter keeps what was seen of a child's memory.
type meter struct {
	mu       sync.Mutex
	baseline int64
	largest  int64
}

// memory is what a process uses at one moment, in bytes.
type memory struct {
	// own is what the process does not share with files (its heaps, stacks and
	// shared memory); peak is the largest resident size that it ever had.
	own, peak int64
}

func (m *meter) markBaseline(pid int) {
	if now, ok := readMemory(pid); ok {
		m.mu.Lock()
		m.baseline = now.own
		m.mu.Unlock()
	}
}

// see takes note of the child's memory and says how much it uses above its
// baseline; false when it can't be told any more.
func (m *meter) see(pid int) (int64, bool) {
	now, ok := readMemory(pid)
	if !ok {
		return 0, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.largest = max(m.largest, now.peak)
	return now.own - m.baseline, true
}

// peak is the largest resident size that was seen. The kernel's own figure for
// an ended process is used only when the process was too short to be looked at:
// it also counts what the process was before it became the child.
func (m *meter) peak(state *os.ProcessState) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.largest > 0 {
		return m.largest
	}
	return maxResident(state)
}

// watchMemory ends the child when it uses more than it may.
func (c *Child) watchMemory() {
	tick := time.NewTicker(memoryInterval)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-tick.C:
		}
		used, ok := c.meter.see(c.pid())
		if !ok {
			continue
		}
		if used > c.limits.Memory {
			c.Kill(OutOfMemory, fmt.Sprintf("the program used more than its %d MiB of memory", c.limits.Memory>>20))
		}
	}
}
