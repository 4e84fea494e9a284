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

// Cgroup holds a child and all that it starts. It bounds their memory and number as a
// whole, and kills all of them at once. A nil Cgroup stands for a machine without.
type Cgroup struct {
	dirs    []string // one with version 2; with version 1 one a controller, memory's first
	cpu     string   // the directory that bounds processor time, if any does
	unified bool     // version 2
}

// CgroupSupport says what cgroups this machine offers.
type CgroupSupport struct {
	Offered    bool
	Processors bool   // they can bound processor time
	Detail     string // their version, or why there are none
}

// processorPeriod is how often processor time is dealt out anew. It is the
// longest that the kernel knows: V8 compiles beside a program's first moments, so
// that with the kernel's default of 100 ms those took twice as long.
const processorPeriod = time.Second

// BoundsProcessors reports whether the cgroup can bound processor time.
func (c *Cgroup) BoundsProcessors() bool { return c != nil && c.cpu != "" }

// BoundProcessors limits the cgroup to n processors' worth of time, where it can.
func (c *Cgroup) BoundProcessors(n float64) {
	period := processorPeriod.Microseconds()
	quota := int64(n * float64(period))
	c.setProcessors("cpu.cfs_period_us", fmt.Sprint(period), "cpu.max", fmt.Sprint(quota, period))
	c.setProcessors("cpu.cfs_quota_us", fmt.Sprint(quota), "", "")
}

// Yield gives the cgroup a twentieth of another's share of the processors, where it can.
func (c *Cgroup) Yield() { c.setProcessors("cpu.shares", "51", "cpu.weight", "5") }

// Resume undoes Yield.
func (c *Cgroup) Resume() { c.setProcessors("cpu.shares", "1024", "cpu.weight", "100") }

// setProcessors writes to a file of the cpu controller, by its name and text in each
// version. Where that fails, the child still has its niceness.
func (c *Cgroup) setProcessors(name1, text1, name2, text2 string) {
	if !c.BoundsProcessors() {
		return
	}
	name, text := name1, text1
	if c.unified {
		name, text = name2, text2
	}
	if name != "" {
		_ = os.WriteFile(filepath.Join(c.cpu, name), []byte(text), 0)
	}
}

// file is a file of the memory controller, by its name in each version.
func (c *Cgroup) file(name1, name2 string) string {
	if c.unified {
		return filepath.Join(c.dirs[0], name2)
	}
	return filepath.Join(c.dirs[0], name1)
}

// Join are the cgroup.procs files, to which a process writes "0" to join.
func (c *Cgroup) Join() (files []string) {
	if c != nil {
		for _, dir := range c.dirs {
			files = append(files, filepath.Join(dir, "cgroup.procs"))
		}
	}
	return files
}

// Kill kills every process in the cgroup.
func (c *Cgroup) Kill() {
	if c == nil {
		return
	}
	if os.WriteFile(filepath.Join(c.dirs[0], "cgroup.kill"), []byte("1"), 0) != nil { // version 1, or Linux before 5.14
		_ = killAll(c.Join()[0]) // the process group is killed as well; Remove fails if any is left
	}
}

// Add moves a process into the cgroup. The kernel may take 30 ms for it.
func (c *Cgroup) Add(pid int) error {
	for _, procs := range c.Join() {
		if err := os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("put process %d into its cgroup: %w", pid, err)
		}
	}
	return nil
}

// Threads are the IDs of all threads in the cgroup, without zombies.
func (c *Cgroup) Threads() ([]string, error) {
	if c == nil {
		return nil, errors.New("there is no cgroup")
	}
	list, err := os.ReadFile(c.file("tasks", "cgroup.threads"))
	return strings.Fields(string(list)), err
}

// Processes are the IDs of the processes in the cgroup.
func (c *Cgroup) Processes() (pids []int) {
	if c == nil {
		return nil
	}
	pids, _ = pidsIn(c.Join()[0]) // it may have just been removed
	return pids
}

// CPUTime is the processor time of all that has ever been in the cgroup, where the
// machine counts it: with version 2, and with version 1 where cpu and cpuacct are
// mounted as one hierarchy, as usual.
func (c *Cgroup) CPUTime() (time.Duration, bool) {
	if !c.BoundsProcessors() {
		return 0, false
	}
	name, format, unit := "cpuacct.usage", "%d", time.Nanosecond
	if c.unified {
		name, format, unit = "cpu.stat", "usage_usec %d", time.Microsecond
	}
	text, err := os.ReadFile(filepath.Join(c.cpu, name))
	if err != nil {
		return 0, false
	}
	var count time.Duration
	_, err = fmt.Sscanf(string(text), format, &count)
	return count * unit, err == nil
}

// OutOfMemory reports whether the kernel killed a process of the cgroup because
// all of them together used too much memory.
func (c *Cgroup) OutOfMemory() bool {
	if c == nil {
		return false
	}
	events, _ := os.ReadFile(c.file("memory.oom_control", "memory.events")) // it may have just been removed
	_, count, found := strings.Cut("\n"+string(events), "\noom_kill ")
	return found && !strings.HasPrefix(count, "0")
}

// Remove removes the cgroup, which must be empty.
func (c *Cgroup) Remove() (failed error) {
	if c == nil {
		return nil
	}
	for _, dir := range c.dirs {
		if err := syscall.Rmdir(dir); err != nil && err != syscall.ENOENT {
			failed = err
		}
	}
	return failed
}

// CgroupsOf begins the names of the cgroups of a server's children; a number follows.
func CgroupsOf(server int) string { return fmt.Sprintf("%s%d-", CgroupPrefix, server) }

// CgroupPrefix begins the names of all our cgroups; a server's process ID and a dash
// follow.
const CgroupPrefix = "rillbox-"

// killAll kills the processes of a cgroup.procs file until there are none: a process
// may start another meanwhile.
func killAll(procs string) error {
	for range 100 {
		pids, err := pidsIn(procs)
		if errors.Is(err, os.ErrNotExist) || err == nil && len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return fmt.Errorf("processes are left in %s", procs)
}

// pidsIn are the processes that a cgroup.procs file lists.
func pidsIn(procs string) (pids []int, err error) {
	list, err := os.ReadFile(procs)
	for field := range strings.FieldsSeq(string(list)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 { // kill(2) takes others for more than a process
			pids = append(pids, pid)
		}
	}
	return pids, err
}
