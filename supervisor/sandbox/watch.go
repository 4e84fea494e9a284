package sandbox

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"rillbox/supervisor/job"
	"rillbox/workspace"
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
		m.baseline, m.largest = now.own, max(m.largest, now.peak)
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

// seen is the largest resident size that was seen.
func (m *meter) seen() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.largest
}

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

// checkDisk ends the child when its directories hold more than they may. A
// single file can't outgrow Limits.FileBytes: the kernel refuses that.
func (c *Child) checkDisk() {
	unnamed := c.unnamed()
	for _, dir := range []string{c.command.Dir, c.command.WorkDir} {
		if dir == "" || dir == c.command.WorkDir && !IsRunDir(dir) {
			continue // a directory of the operator's own, with limits of its own
		}
		except := ""
		if filepath.Dir(c.command.OwnDir) == dir {
			except = filepath.Base(c.command.OwnDir)
		}
		ours := int64(0)
		if dir == c.command.Dir {
			ours = c.placed.Load()
		}
		used, err := workspace.Measure(dir, except, c.limits.Files+ours)
		if err != nil {
			continue // it has just been removed
		}
		switch {
		case used.Files-ours > c.limits.Files:
			c.Kill(job.Failed, fmt.Sprintf("the program's directory holds more than its %d files", c.limits.Files))
		case used.Deep:
			c.Kill(job.Failed, "the folders in the program's directory nest too deep to be counted")
		case used.Bytes > c.limits.Disk-unnamed:
			c.Kill(job.Failed, fmt.Sprintf("the files in the program's directory have more than their %d MiB", c.limits.Disk>>20))
		}
	}
}
