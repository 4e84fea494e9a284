package sandbox

import (
	"fmt"
	"os"
	"sync/atomic"

	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// What a cgroup allows beyond the guest's memory: the runtime's own, and as
// much again, so that the watchdog, which can say what happened, comes first.
const runtimeMemory = 256 << 20

// maxTasks bounds a child's threads: Deno has some thirty on a small machine.
const maxTasks = 512

var cgroups atomic.Int64

// newCgroup makes a child's cgroup, or nil where the machine offers none.
func newCgroup(limits job.Limits) *launcher.Cgroup {
	if !launcher.OfferedCgroup().Offered {
		return nil
	}
	name := fmt.Sprintf("%s%d", launcher.CgroupsOf(os.Getpid()), cgroups.Add(1))
	group, err := launcher.NewCgroup(name, 2*limits.Memory+runtimeMemory, maxTasks)
	if err != nil {
		return nil
	}
	return group
}

// checkGroup notes whether the kernel ended the child for its cgroup's memory.
func (c *Child) checkGroup() {
	if !c.group.OutOfMemory() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == "" {
		c.status = job.OutOfMemory
		c.reason = fmt.Sprintf("the program and what it started used more than twice their %d MiB of memory", c.limits.Memory>>20)
	}
}
