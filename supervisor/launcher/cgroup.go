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
	// dirs are its directories, that of the memory controller first: with version 1
	// each controller has one, with version 2 all are in one.
	dirs []string
	// cpu is the directory that bounds processor time, empty where none does.
	cpu string
	// unified says that they are of version 2.
	unified bool
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
func (c *Cgroup) BoundsProcessors() bool { return c != nil && c.cpu != "" }

// BoundProcessors gives all processes of the cgroup together no more than so
// many processors' worth of time, where the machine can hold that.
func (c *Cgroup) BoundProcessors(n float64) {
	period := processorPeriod.Microseconds()
	quota := int64(n * float64(period))
	c.setProcessors("cpu.cfs_period_us", fmt.Sprint(period), "cpu.max", fmt.Sprint(quota, period))
	c.setProcessors("cpu.cfs_quota_us", fmt.Sprint(quota), "", "")
}

// Yield leaves the processors to all others as far as they want them, where the
// machine can hold that: a quarter of what another cgroup gets is left.
func (c *Cgroup) Yield() { c.setProcessors("cpu.shares", "51", "cpu.weight", "5") }

// Resume takes back what Yield has left to others.
func (c *Cgroup) Resume() { c.setProcessors("cpu.shares", "1024", "cpu.weight", "100") }

// setProcessors writes to a file that holds the cgroup's processor time, by its name in
// each version. Where that fails, the child's niceness is left.
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

// file is a file of the cgroup, by its name in each version.
func (c *Cgroup) file(name1, name2 string) string {
	if c.unified {
		return filepath.Join(c.dirs[0], name2)
	}
	return filepath.Join(c.dirs[0], name1)
}

// Join are the files to which a process writes "0" to join; for Command.
func (c *Cgroup) Join() (files []string) {
	if c != nil {
		for _, dir := range c.dirs {
			files = append(files, filepath.Join(dir, "cgroup.procs"))
		}
	}
	return files
}

// Kill ends every process in the cgroup.
func (c *Cgroup) Kill() {
	if c == nil {
		return
	}
	if os.WriteFile(filepath.Join(c.dirs[0], "cgroup.kill"), []byte("1"), 0) != nil { // version 1, or Linux before 5.14
		_ = killListed(c.Join()[0]) // the process group is killed as well; Remove fails if any is left
	}
}

// Add moves a process into the cgroup, with all its threads. The kernel may take
// 30 ms for it, however little there is to move.
func (c *Cgroup) Add(pid int) error {
	for _, procs := range c.Join() {
		if err := os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0); err != nil {
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
	list, err := os.ReadFile(c.file("tasks", "cgroup.threads"))
	return strings.Fields(string(list)), err
}

// Processes are those in the cgroup, by their IDs; none where there is no cgroup.
func (c *Cgroup) Processes() (pids []int) {
	if c == nil {
		return nil
	}
	pids, _ = listed(c.Join()[0]) // it may have just been removed
	return pids
}

// CPUTime is the processor time of all that has ever been in the cgroup, where the
// machine counts it beside its bound: with version 2, and with version 1 where cpu and
// cpuacct are one hierarchy, as they usually are.
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

// OutOfMemory says whether the kernel ended a process of the cgroup because
// all of them together used more memory than they may.
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

// killListed kills what a cgroup holds, again until it is empty: a process may have
// started another meanwhile.
func killListed(procs string) error {
	for range 100 {
		pids, err := listed(procs)
		if errors.Is(err, os.ErrNotExist) || err == nil && len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return fmt.Errorf("processes are left in %s", procs)
}

// listed are the processes that such a file names.
func listed(procs string) (pids []int, err error) {
	list, err := os.ReadFile(procs)
	for field := range strings.FieldsSeq(string(list)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 { // kill(2) takes others for more than a process
			pids = append(pids, pid)
		}
	}
	return pids, err
}
