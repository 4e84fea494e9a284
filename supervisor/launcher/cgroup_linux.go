package launcher

import (
	"bytes"
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
// together, in bytes; tasks bounds their threads.
func NewCgroup(name string, memory, tasks int64) (*Cgroup, error) {
	if cgroups.Mode() == cgroups.Unified {
		return newCgroup2(name, memory, tasks)
	}
	return newCgroup1(name, memory, tasks)
}

// OfferedCgroup says whether cgroups can be made here, by making one.
var OfferedCgroup = sync.OnceValue(func() Support {
	probe, err := NewCgroup(fmt.Sprintf("rillbox-%d-probe", os.Getpid()), 64<<20, 16)
	if err != nil {
		return Support{Detail: err.Error()}
	}
	if err := probe.Remove(); err != nil {
		return Support{Detail: err.Error()}
	}
	if cgroups.Mode() == cgroups.Unified {
		return Support{Name: "cgroup", Detail: "version 2"}
	}
	return Support{Name: "cgroup", Detail: "version 1"}
})

func newCgroup2(name string, memory, tasks int64) (*Cgroup, error) {
	group, err := cgroup2.NestedGroupPath(name)
	if err != nil {
		return nil, fmt.Errorf("find our own cgroup: %w", err)
	}
	noSwap := int64(0)
	manager, err := cgroup2.NewManager(mountpoint, group, &cgroup2.Resources{
		Memory: &cgroup2.Memory{Max: &memory, Swap: &noSwap},
		Pids:   &cgroup2.Pids{Max: tasks},
	})
	if err != nil {
		return nil, fmt.Errorf("make a cgroup below ours (it works as root, and in a scope of one's own with delegated controllers: systemd-run --user --scope -p Delegate=yes): %w", err)
	}
	dir := filepath.Join(mountpoint, group)
	return &Cgroup{
		procs:  []string{filepath.Join(dir, "cgroup.procs")},
		kill:   manager.Kill,
		remove: manager.Delete,
		events: filepath.Join(dir, "memory.events"),
	}, nil
}

func newCgroup1(name string, memory, tasks int64) (*Cgroup, error) {
	memoryController, pidsController := cgroup1.NewMemory(mountpoint), cgroup1.NewPids(mountpoint)
	path := cgroup1.NestedPath(name)
	control, err := cgroup1.New(path, &specs.LinuxResources{
		Memory: &specs.LinuxMemory{Limit: &memory},
		Pids:   &specs.LinuxPids{Limit: &tasks},
	}, cgroup1.WithHierarchy(func() ([]cgroup1.Subsystem, error) {
		return []cgroup1.Subsystem{memoryController, pidsController}, nil
	}))
	if err != nil {
		return nil, fmt.Errorf("make a cgroup below ours (it works as root): %w", err)
	}
	memoryPath, err := path(cgroup1.Memory)
	if err != nil {
		return nil, fmt.Errorf("find our own memory cgroup: %w", err)
	}
	pidsPath, err := path(cgroup1.Pids)
	if err != nil {
		return nil, fmt.Errorf("find our own pids cgroup: %w", err)
	}
	memoryDir, pidsDir := memoryController.Path(memoryPath), pidsController.Path(pidsPath)
	procs := []string{filepath.Join(memoryDir, "cgroup.procs"), filepath.Join(pidsDir, "cgroup.procs")}
	return &Cgroup{
		procs:  procs,
		kill:   func() error { return killListed(procs[0]) },
		remove: control.Delete,
		events: filepath.Join(memoryDir, "memory.oom_control"),
	}, nil
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

// join makes the calling process a member.
func join(procs []string) error {
	for _, file := range procs {
		if err := os.WriteFile(file, []byte("0"), 0); err != nil {
			return err
		}
	}
	return nil
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
	for _, name := range []cgroup1.Name{cgroup1.Memory, cgroup1.Pids} {
		if group, err := cgroup1.NestedPath("")(name); err == nil {
			dirs = append(dirs, filepath.Join(mountpoint, string(name), group))
		}
	}
	return dirs
}
