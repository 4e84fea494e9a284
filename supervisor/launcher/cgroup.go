//go:build !windows

package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Cgroup holds one child and all that it starts, so that their memory and
// number are bounded as a whole and all of them can be ended at once, whatever
// process group they are in. A nil Cgroup is that of a machine that offers none.
type Cgroup struct {
	// procs are the files to which a process writes "0" to join.
	procs  []string
	kill   func() error
	remove func() error
	events string // the file with the oom_kill count
	quota  string // the file with the processor time, empty when there is none
}

// CgroupSupport says what cgroups this machine offers.
type CgroupSupport struct {
	Offered bool
	// Processors says that they can bound processor time.
	Processors bool
	// Detail is their version, or why there are none.
	Detail string
}

// processorPeriod is how often processor time is dealt out anew. It is the
// longest that the kernel knows: V8 compiles beside a program's first moments, so
// that with the kernel's default of 100 ms those took twice as long.
const processorPeriod = time.Second

// BoundsProcessors says whether the cgroup can hold a bound on processor time.
func (c *Cgroup) BoundsProcessors() bool { return c != nil && c.quota != "" }

// BoundProcessors gives all processes of the cgroup together no more than so
// many processors' worth of time, where the machine can hold that.
func (c *Cgroup) BoundProcessors(n float64) {
	if !c.BoundsProcessors() {
		return
	}
	period := processorPeriod.Microseconds()
	quota := int64(n * float64(period))
	if filepath.Base(c.quota) == "cpu.max" { // version 2
		c.setProcessors("cpu.max", fmt.Sprint(quota, period))
		return
	}
	c.setProcessors("cpu.cfs_period_us", fmt.Sprint(period))
	c.setProcessors("cpu.cfs_quota_us", fmt.Sprint(quota))
}

// Yield leaves the processors to all others as far as they want them, where the
// machine can hold that: a quarter of what another cgroup gets is left.
func (c *Cgroup) Yield() { c.weigh("51", "5") }

// Resume takes back what Yield has left to others.
func (c *Cgroup) Resume() { c.weigh("1024", "100") }

// weigh sets the cgroup's share of the processors, by the measures of cgroups of
// version 1 and 2.
func (c *Cgroup) weigh(shares, weight string) {
	if !c.BoundsProcessors() {
		return
	}
	name, text := "cpu.shares", shares
	if filepath.Base(c.quota) == "cpu.max" { // version 2
		name, text = "cpu.weight", weight
	}
	c.setProcessors(name, text)
}

// setProcessors writes to one of the files that hold the cgroup's processor
// time. Where that fails, the child's niceness is left.
func (c *Cgroup) setProcessors(name, text string) {
	_ = os.WriteFile(filepath.Join(filepath.Dir(c.quota), name), []byte(text), 0)
}

// Join are the files to which a process writes "0" to join; for Policy.
func (c *Cgroup) Join() []string {
	if c == nil {
		return nil
	}
	return c.procs
}

// Kill ends every process in the cgroup.
func (c *Cgroup) Kill() {
	if c != nil {
		_ = c.kill() // the process group is killed as well; Remove fails if any is left
	}
}

// Add moves a process into the cgroup, with all its threads. The kernel may take
// 30 ms for it, however little there is to move.
func (c *Cgroup) Add(pid int) error {
	for _, procs := range c.Join() {
		if err := os.WriteFile(procs, strconv.AppendInt(nil, int64(pid), 10), 0); err != nil {
			return fmt.Errorf("put process %d into its cgroup: %w", pid, err)
		}
	}
	return nil
}

// Threads are those of all processes in the cgroup by their IDs, as text. One that
// has ended, save for being waited for, is none of them.
func (c *Cgroup) Threads() ([]string, error) {
	if c == nil {
		return nil, errors.New("there is no cgroup")
	}
	name := "cgroup.threads"
	if filepath.Base(c.quota) != "cpu.max" { // version 1
		name = "tasks"
	}
	list, err := os.ReadFile(filepath.Join(filepath.Dir(c.procs[0]), name))
	return strings.Fields(string(list)), err
}

// Processes are those in the cgroup, by their IDs; none where there is no cgroup.
func (c *Cgroup) Processes() (pids []int) {
	if c == nil {
		return nil
	}
	list, _ := os.ReadFile(c.procs[0]) // it may have just been removed
	for _, line := range strings.Fields(string(list)) {
		if pid, err := strconv.Atoi(line); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// CPUTime is the processor time of all that has ever been in the cgroup, where the
// machine counts it beside its bound: with version 2, and with version 1 where cpu and
// cpuacct are one hierarchy, as they usually are.
func (c *Cgroup) CPUTime() (time.Duration, bool) {
	if !c.BoundsProcessors() {
		return 0, false
	}
	dir := filepath.Dir(c.quota)
	if filepath.Base(c.quota) == "cpu.max" { // version 2
		var usec int64
		text, err := os.ReadFile(filepath.Join(dir, "cpu.stat"))
		if err == nil {
			_, err = fmt.Sscanf(string(text), "usage_usec %d", &usec)
		}
		return time.Duration(usec) * time.Microsecond, err == nil
	}
	var nsec int64
	text, err := os.ReadFile(filepath.Join(dir, "cpuacct.usage"))
	if err == nil {
		_, err = fmt.Sscan(string(text), &nsec)
	}
	return time.Duration(nsec), err == nil
}

// Remove removes the cgroup, which must be empty.
func (c *Cgroup) Remove() error {
	if c == nil {
		return nil
	}
	return c.remove()
}

// killListed kills what a version 1 cgroup holds, again until it is empty: a
// process may have started another meanwhile.
func killListed(procs string) error {
	for range 100 {
		list, err := os.ReadFile(procs)
		if errors.Is(err, os.ErrNotExist) || len(list) == 0 {
			return nil
		}
		for _, line := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(line); err == nil && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	return fmt.Errorf("processes are left in %s", procs)
}
