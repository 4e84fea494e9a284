package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/containerd/cgroups/v3"
	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// mountpoint is where systems mount cgroups, cgroups(7).
const mountpoint = "/sys/fs/cgroup"

// NewCgroup makes a cgroup below our own. memory bounds what its processes use
// together, in bytes; tasks bounds their threads. Processor time is shared
// evenly between cgroups, whatever number of threads they have, and can be
// bounded, where the machine can do that.
func NewCgroup(name string, memory, tasks int64) (*Cgroup, error) {
	return newCgroup(name, memory, tasks, sharesProcessors())
}

func newCgroup(name string, memory, tasks int64, processors bool) (*Cgroup, error) {
	if cgroups.Mode() == cgroups.Unified {
		return newCgroup2(name, memory, tasks, processors)
	}
	return newCgroup1(name, memory, tasks, processors)
}

// OfferedCgroup says whether cgroups can be made here, by making one.
var OfferedCgroup = sync.OnceValue(func() CgroupSupport {
	if err := probeCgroup(false); err != nil {
		return CgroupSupport{Detail: err.Error()}
	}
	detail := "version 1"
	if cgroups.Mode() == cgroups.Unified {
		detail = "version 2"
	}
	if !sharesProcessors() {
		detail += ", without processor time: a program with many threads gets more than its share"
	}
	return CgroupSupport{Offered: true, Processors: sharesProcessors(), Detail: detail}
})

// sharesProcessors says whether cgroups here can have processor time.
var sharesProcessors = sync.OnceValue(func() bool { return probeCgroup(true) == nil })

func probeCgroup(processors bool) error {
	probe, err := newCgroup(fmt.Sprintf("rillbox-%d-probe", os.Getpid()), 64<<20, 16, processors)
	if err != nil {
		return err
	}
	return probe.Remove()
}

func newCgroup2(name string, memory, tasks int64, processors bool) (*Cgroup, error) {
	group, err := cgroup2.NestedGroupPath(name)
	if err != nil {
		return nil, fmt.Errorf("find our own cgroup: %w", err)
	}
	noSwap := int64(0)
	resources := &cgroup2.Resources{
		Memory: &cgroup2.Memory{Max: &memory, Swap: &noSwap},
		Pids:   &cgroup2.Pids{Max: tasks},
	}
	dir := filepath.Join(mountpoint, group)
	quota := ""
	if processors {
		resources.CPU = &cgroup2.CPU{Max: cgroup2.NewCPUMax(nil, nil)}
		quota = filepath.Join(dir, "cpu.max")
	}
	manager, err := cgroup2.NewManager(mountpoint, group, resources)
	if err != nil {
		return nil, fmt.Errorf("make a cgroup below ours (it works as root, and in a scope of one's own with delegated controllers: systemd-run --user --scope -p Delegate=yes): %w", err)
	}
	return &Cgroup{
		procs:  []string{filepath.Join(dir, "cgroup.procs")},
		kill:   manager.Kill,
		remove: manager.Delete,
		events: filepath.Join(dir, "memory.events"),
		quota:  quota,
	}, nil
}

func newCgroup1(name string, memory, tasks int64, processors bool) (*Cgroup, error) {
	path := func(controller cgroup1.Name) (string, error) {
		own, err := ownPath1(controller)
		return filepath.Join(own, name), err
	}
	controllers := []controller1{cgroup1.NewMemory(mountpoint), cgroup1.NewPids(mountpoint)}
	if processors {
		controllers = append(controllers, cgroup1.NewCpu(mountpoint))
	}
	var dirs, procs []string
	for _, c := range controllers {
		if _, err := os.Stat(c.Path("cgroup.procs")); err != nil {
			return nil, fmt.Errorf("no %s cgroups are mounted: %w", c.Name(), err)
		}
		own, err := path(c.Name())
		if err != nil {
			return nil, fmt.Errorf("find our own %s cgroup: %w", c.Name(), err)
		}
		dirs = append(dirs, c.Path(own))
		procs = append(procs, filepath.Join(c.Path(own), "cgroup.procs"))
	}
	_, err := cgroup1.New(path, &specs.LinuxResources{
		Memory: &specs.LinuxMemory{Limit: &memory},
		Pids:   &specs.LinuxPids{Limit: &tasks},
	}, cgroup1.WithHierarchy(func() (list []cgroup1.Subsystem, _ error) {
		for _, c := range controllers {
			list = append(list, c)
		}
		return list, nil
	}))
	if err != nil {
		_ = removeDirectories(dirs) // those that were made before
		return nil, fmt.Errorf("make a cgroup below ours (it works as root): %w", err)
	}
	quota := ""
	if processors {
		quota = filepath.Join(dirs[2], "cpu.cfs_quota_us")
	}
	return &Cgroup{
		procs:  procs,
		kill:   func() error { return killListed(procs[0]) },
		remove: func() error { return removeDirectories(dirs) },
		events: filepath.Join(dirs[0], "memory.oom_control"),
		quota:  quota,
	}, nil
}

// ownPath1 is our own cgroup in a hierarchy of version 1. It is looked up once
// for each: reading what is mounted took a third of making a cgroup.
func ownPath1(controller cgroup1.Name) (string, error) {
	known, err := ownPaths1()
	if err != nil {
		return "", err
	}
	path, ok := known[controller]
	if !ok {
		return "", fmt.Errorf("there is no %s hierarchy", controller)
	}
	return path, nil
}

var ownPaths1 = sync.OnceValues(func() (map[cgroup1.Name]string, error) {
	paths := map[cgroup1.Name]string{}
	for _, controller := range []cgroup1.Name{cgroup1.Memory, cgroup1.Pids, cgroup1.Cpu} {
		path, err := cgroup1.NestedPath("")(controller)
		if err != nil && !errors.Is(err, cgroup1.ErrControllerNotActive) {
			return nil, err
		}
		if err == nil {
			paths[controller] = path
		}
	}
	return paths, nil
})

// removeDirectories removes a cgroup of version 1, which has no others below it.
// The library's own way reads what is below first, a tenth of what a run costs us.
func removeDirectories(dirs []string) error {
	var failed error
	for _, dir := range dirs {
		if err := syscall.Rmdir(dir); err != nil && err != syscall.ENOENT {
			failed = err
		}
	}
	return failed
}

// controller1 is one hierarchy of version 1.
type controller1 interface {
	cgroup1.Subsystem
	Path(string) string
}

// OutOfMemory says whether the kernel ended a process of the cgroup because
// all of them together used more memory than they may.
func (c *Cgroup) OutOfMemory() bool {
	if c == nil {
		return false
	}
	events, err := os.ReadFile(c.events)
	if err != nil {
		return false
	}
	_, count, found := bytes.Cut(append([]byte("\n"), events...), []byte("\noom_kill "))
	return found && !bytes.HasPrefix(count, []byte("0"))
}

// RemoveEmptyCgroups removes the cgroups below our own whose names are stale and
// in which there is no process; the kernel refuses to remove the others.
func RemoveEmptyCgroups(stale func(name string) bool) {
	for _, parent := range ownCgroups() {
		entries, err := os.ReadDir(parent)
		if err != nil {
			continue // there is no such controller
		}
		for _, entry := range entries {
			if entry.IsDir() && stale(entry.Name()) {
				_ = syscall.Rmdir(filepath.Join(parent, entry.Name()))
			}
		}
	}
}

// ownCgroups are the directories in which NewCgroup makes cgroups.
func ownCgroups() (dirs []string) {
	if cgroups.Mode() == cgroups.Unified {
		if group, err := cgroup2.NestedGroupPath(""); err == nil {
			dirs = append(dirs, filepath.Join(mountpoint, group))
		}
		return dirs
	}
	for _, name := range []cgroup1.Name{cgroup1.Memory, cgroup1.Pids, cgroup1.Cpu} {
		if group, err := ownPath1(name); err == nil {
			dirs = append(dirs, filepath.Join(mountpoint, string(name), group))
		}
	}
	return dirs
}
