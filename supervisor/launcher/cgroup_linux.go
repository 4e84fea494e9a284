package launcher

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// mountpoint is where systems mount cgroups, cgroups(7).
const mountpoint = "/sys/fs/cgroup"

// unified reports whether the cgroups there are of version 2.
var unified = sync.OnceValue(func() bool {
	var stat unix.Statfs_t
	return unix.Statfs(mountpoint, &stat) == nil && stat.Type == unix.CGROUP2_SUPER_MAGIC
})

// NewCgroup makes a cgroup below our own. memory bounds what its processes use
// together, in bytes; tasks bounds their threads. Where the machine can, cgroups share
// processor time evenly, whatever their number of threads.
func NewCgroup(name string, memory, tasks int64) (*Cgroup, error) {
	return makeCgroup(ownCgroups(), unified(), name, memory, tasks, sharesProcessors())
}

// OfferedCgroup says whether cgroups can be made here, by making one.
var OfferedCgroup = sync.OnceValue(func() CgroupSupport {
	if err := probeCgroup(false); err != nil {
		return CgroupSupport{Detail: err.Error()}
	}
	s := CgroupSupport{Offered: true, Processors: sharesProcessors(), Detail: "version 1"}
	if unified() {
		s.Detail = "version 2"
	}
	if !s.Processors {
		s.Detail += ", without processor time: a program with many threads gets more than its share"
	}
	return s
})

// sharesProcessors reports whether cgroups here can share processor time.
var sharesProcessors = sync.OnceValue(func() bool { return probeCgroup(true) == nil })

func probeCgroup(processors bool) error {
	probe, err := makeCgroup(ownCgroups(), unified(), fmt.Sprintf("rillbox-%d-probe", os.Getpid()), 64<<20, 16, processors)
	if err != nil {
		return err
	}
	return probe.Remove()
}

// makeCgroup makes a cgroup below others, whose directories are given by controller.
func makeCgroup(parents map[string]string, unified bool, name string, memory, tasks int64, processors bool) (_ *Cgroup, err error) {
	controllers := []string{"memory", "pids", "cpu"}
	if !processors {
		controllers = controllers[:2]
	}
	var dirs []string
	for _, controller := range controllers {
		if parents[controller] == "" {
			return nil, fmt.Errorf("no %s cgroups are mounted", controller)
		}
		dirs = append(dirs, filepath.Join(parents[controller], name))
	}
	c := &Cgroup{dirs: slices.Compact(slices.Clone(dirs)), unified: unified}
	if processors {
		c.cpu = dirs[2]
	}
	for _, dir := range c.dirs {
		err = cmp.Or(err, os.MkdirAll(dir, 0o755))
	}
	write := func(dir, file, text string) {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), []byte(text), 0)
		}
	}
	help := "it works as root"
	if c.unified {
		help += ", and in a scope of one's own with delegated controllers: systemd-run --user --scope -p Delegate=yes"
		enabled := "+" + strings.Join(controllers, " +")
		if err = cmp.Or(err, delegate(parents["memory"], enabled)); errors.Is(err, syscall.EBUSY) {
			if err = vacate(parents["memory"]); err == nil {
				err = delegate(parents["memory"], enabled)
			}
		}
		write(dirs[0], "memory.max", fmt.Sprint(memory))
		write(dirs[0], "memory.swap.max", "0")
	} else {
		write(dirs[0], "memory.limit_in_bytes", fmt.Sprint(memory))
	}
	write(dirs[1], "pids.max", fmt.Sprint(tasks))
	if err != nil {
		_ = c.Remove() // what was made before
		return nil, fmt.Errorf("make a cgroup below ours (%s): %w", help, err)
	}
	return c, nil
}

// delegate enables controllers for the children of a cgroup of version 2, and of those
// above it.
func delegate(dir, controllers string) error {
	if above := filepath.Dir(dir); within(above, mountpoint) {
		_ = delegate(above, controllers) // they may be enabled, and not ours to change
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(controllers), 0)
}

// serverGroup is the cgroup of version 2 that we move to, below our own: one whose
// children have controllers can't hold processes itself (cgroups(7), "no internal
// processes"). Our children's are beside it. Systemd can start us there, with
// DelegateSubgroup=.
const serverGroup = "rillbox-server"

// vacate moves us, and what we have started, from a cgroup to the serverGroup below it. It
// moves nothing if somebody else is there, too.
func vacate(dir string) error {
	leaf := filepath.Join(dir, serverGroup)
	for range 100 { // what is moved may be starting another
		list, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		pids := strings.Fields(string(list))
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			if !isOurs(pid) {
				return fmt.Errorf("%s holds processes of others (%s), so that it can't have cgroups below it: start Rillbox in a cgroup of its own", dir, pid)
			}
		}
		if err := os.MkdirAll(leaf, 0o755); err != nil {
			return err
		}
		for _, pid := range pids {
			err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(pid), 0)
			if err != nil && !errors.Is(err, syscall.ESRCH) { // it has ended
				return err
			}
		}
	}
	return fmt.Errorf("processes are left in %s", dir)
}

// isOurs reports whether a process, as a cgroup.procs file lists it, is this one or was
// started by it, or by what it started.
func isOurs(pid string) bool {
	self := strconv.Itoa(os.Getpid())
	for range 100 {
		if pid == self {
			return true
		}
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ") // its name may hold anything
		fields := strings.Fields(rest)                                                  // the state, the parent
		if err != nil || len(fields) < 2 {
			return errors.Is(err, fs.ErrNotExist) && pid != "0" // it has ended; 0 is in no PID namespace of ours
		}
		pid = fields[1]
	}
	return false
}

// ownCgroups are the directories of our own cgroups, by controller. They are looked
// up once: reading what is mounted took a third of making a cgroup.
var ownCgroups = sync.OnceValue(func() map[string]string {
	cgroups, _ := os.ReadFile("/proc/self/cgroup") // what can't be read names none
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	return cgroupDirs(string(cgroups), string(mounts))
})

// cgroupDirs finds the directories of a process's cgroups in its /proc/self/cgroup
// and /proc/self/mountinfo.
func cgroupDirs(cgroups, mounts string) map[string]string {
	paths := map[string]string{} // by controller; version 2's has no name
	for line := range strings.Lines(cgroups) {
		if fields := strings.SplitN(strings.TrimSpace(line), ":", 3); len(fields) == 3 {
			for controller := range strings.SplitSeq(fields[1], ",") {
				paths[controller] = fields[2]
			}
		}
	}
	dirs := map[string]string{}
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line) // proc_pid_mountinfo(5)
		if len(fields) < 10 || !within(fields[4], mountpoint) {
			continue
		}
		root, at, kind, options := fields[3], fields[4], fields[len(fields)-3], fields[len(fields)-1]
		for _, controller := range []string{"memory", "pids", "cpu"} {
			path := paths[""]
			if kind == "cgroup2" { // below which the children's are
				path = cmp.Or(strings.TrimSuffix(path, "/"+serverGroup), "/")
			}
			if kind == "cgroup" && slices.Contains(strings.Split(options, ","), controller) {
				path = paths[controller]
			} else if kind != "cgroup2" || at != mountpoint {
				continue
			}
			rel, err := filepath.Rel(root, path)
			if err == nil && filepath.IsLocal(rel) && !strings.HasPrefix(path, "/..") { // else it is not mounted here
				dirs[controller] = filepath.Join(at, rel)
			}
		}
	}
	return dirs
}

// RemoveEmptyCgroups removes the stale cgroups below our own. The kernel keeps those
// that hold a process: then some are left.
func RemoveEmptyCgroups(stale func(name string) bool) (none bool) {
	none = true
	for _, parent := range ownCgroups() {
		entries, _ := os.ReadDir(parent) // it may not be ours to read
		for _, entry := range entries {
			if entry.IsDir() && stale(entry.Name()) {
				err := syscall.Rmdir(filepath.Join(parent, entry.Name()))
				none = none && (err == nil || err == syscall.ENOENT)
			}
		}
	}
	return none
}
